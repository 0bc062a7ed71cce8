#include "gateway/store_redis.h"

#include "codec/base/must.h"
#include "gateway/store_redis_link.h"
#include "gateway/store_redis_script.h"
#include "gateway/tls.h"
#include "tenants/limit.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/un.h>

enum {
	REDIS_MAGIC = 0x52454453,
	ID_HEX = 16,
	KEY_ROOM = 96,
	PERIODS = 4, /* two days, two months */
};

#define FLUSH_AFTER (2 * MSEC)
#define RENEW_EVERY (10 * SEC)        /* a third of a lease */
#define ROOM_MAX (UINT64_MAX / 4 * 3) /* of a burst in ns: time itself must not end */

/* Money of one period: what Redis holds of ours, and what it has yet to be told. */
struct redis_money {
	uint32_t period;
	uint64_t told, more, less;
};

/* A tenant, or a part of one that has limits of its own, as this worker knows it: by its slot's number
 * in the limit table. */
struct redis_tenant {
	uint8_t tag[16], key[16]; /* the tenant's, which is the hash tag, and its own */
	bool known, dirty;
	bool active;         /* on the list of those whose places are renewed */
	bool renew;          /* its leases begin anew with the next request */
	uint32_t held;       /* places of requests in flight */
	uint32_t given_back; /* places that Redis has not been told of */
	uint64_t requests_less, tokens_more, tokens_less; /* ns */
	struct redis_money money[PERIODS]; /* days by parity, then months by parity */
};

/* Numbers of tenants, each at most once; room for all of them. */
struct tenant_list {
	uint32_t *at;
	uint32_t count;
};

struct store_redis {
	struct store store;
	uint32_t magic;
	struct net_loop *loop;
	struct limit_table *table;
	struct metrics_worker *metrics;
	struct redis_link *link;
	struct redis_tenant *tenants; /* pages that are never used cost no memory */
	struct tenant_list dirty, active;
	struct net_timer flush, renew;
	char me[ID_HEX + 1]; /* chance: process and worker */
	uint64_t generation; /* of the connection */
	bool loaded;         /* Redis has the script */
	uint16_t port;
};

static struct store_redis *redis_of(struct store *store)
{
	struct store_redis *redis = CONTAINER_OF(store, struct store_redis, store);

	must_obj(redis, REDIS_MAGIC);
	return redis;
}

/* ---- tenants ---- */

static struct redis_tenant *tenant_of(struct store_redis *redis,
				      const struct reservation *reservation, uint32_t scope)
{
	const struct limit_scope *of = &reservation->scopes[scope];
	struct redis_tenant *tenant = &redis->tenants[limit_slot_index(redis->table, of->slot)];

	if (!tenant->known) {
		(void)memcpy(tenant->tag, reservation->scopes[0].key, sizeof(tenant->tag));
		(void)memcpy(tenant->key, of->key, sizeof(tenant->key));
		tenant->known = true;
	}
	return tenant;
}

static uint32_t number_of(const struct store_redis *redis, const struct redis_tenant *tenant)
{
	return (uint32_t)(tenant - redis->tenants);
}

static void touch(struct store_redis *redis, struct redis_tenant *tenant)
{
	if (!tenant->dirty) {
		tenant->dirty = true;
		redis->dirty.at[redis->dirty.count++] = number_of(redis, tenant);
	}
	if (redis->flush.place == 0 && redis_link_ready(redis->link))
		net_timer_set(redis->loop, &redis->flush, net_now(redis->loop) + FLUSH_AFTER);
}

/* The counter of that period; NULL when a later one has taken its place: then it is over, and what
 * would be told of it does not matter. */
static struct redis_money *money_of(struct redis_tenant *tenant, bool month, uint32_t period)
{
	struct redis_money *money = &tenant->money[(month ? 2 : 0) + (period & 1)];

	if (money->period < period)
		*money = (struct redis_money){ .period = period };
	return money->period == period ? money : NULL;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* What was used in the period of `wall_s` beyond, or short of, what Redis has counted. */
static void owe(struct redis_tenant *tenant, uint64_t wall_s, uint64_t more, uint64_t less)
{
	struct redis_money *day = money_of(tenant, false, quota_day(wall_s));
	struct redis_money *month = money_of(tenant, true, quota_month(wall_s));

	if (day != NULL) {
		day->more = plus(day->more, more);
		day->less = plus(day->less, less);
	}
	if (month != NULL) {
		month->more = plus(month->more, more);
		month->less = plus(month->less, less);
	}
}

static void note_told(struct redis_tenant *tenant, uint64_t server_s, uint64_t usd)
{
	struct redis_money *day = money_of(tenant, false, quota_day(server_s));
	struct redis_money *month = money_of(tenant, true, quota_month(server_s));

	if (day != NULL)
		day->told = plus(day->told, usd);
	if (month != NULL)
		month->told = plus(month->told, usd);
}

static void hold_place(struct store_redis *redis, struct redis_tenant *tenant)
{
	tenant->held++;
	if (tenant->active)
		return;
	tenant->active = true;
	redis->active.at[redis->active.count++] = number_of(redis, tenant);
}

/* ---- requests ---- */

static void hex(const uint8_t *bytes, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++)
		(void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static void put_keys(struct redis_buffer *to, const struct redis_tenant *tenant)
{
	char tag[33], own[33] = "", key[KEY_ROOM];

	hex(tenant->tag, sizeof(tenant->tag), tag);
	if (memcmp(tenant->tag, tenant->key, sizeof(tenant->tag)) != 0)
		hex(tenant->key, sizeof(tenant->key), own);
	(void)snprintf(key, sizeof(key), "sluice:1:{%s}%s", tag, own);
	redis_put(to, slice_str(key));
	(void)snprintf(key, sizeof(key), "sluice:1:{%s}%s:places", tag, own);
	redis_put(to, slice_str(key));
}

static uint32_t periods_of(const struct redis_tenant *tenant)
{
	uint32_t periods = 0;

	for (uint32_t i = 0; i < PERIODS; i++)
		periods += tenant->money[i].period != 0;
	return periods;
}

/* Two keys, and what put_part writes. */
static uint32_t part_arguments(const struct redis_tenant *tenant, bool claim)
{
	enum { KEYS = 2, FIXED = 8, PER_PERIOD = 7, CLAIM = 14 };

	return KEYS + FIXED + periods_of(tenant) * PER_PERIOD + (claim ? CLAIM : 0);
}

/* EVALSHA with the script's digest, or EVAL with its text, which makes Redis know it. */
static void put_script(struct store_redis *redis, struct redis_buffer *to,
		       struct redis_request *request, struct redis_tenant *const *tenants)
{
	enum { FIXED = 9 };
	char link[24];
	uint32_t arguments = FIXED;

	for (uint32_t i = 0; i < request->part_count; i++)
		arguments += part_arguments(tenants[i], request->claim);
	redis_put_count(to, arguments);
	request->by_text = !redis->loaded;
	redis->loaded = true; /* by the time that Redis gets to what comes behind this */
	redis_put(to, request->by_text ? SLICE("EVAL") : SLICE("EVALSHA"));
	redis_put(to, request->by_text ? slice_of(limits_lua, limits_lua_len)
				       : slice_str(limits_lua_sha1));
	redis_put_number(to, (int64_t)request->part_count * 2);
	for (uint32_t i = 0; i < request->part_count; i++)
		put_keys(to, tenants[i]);
	(void)snprintf(link, sizeof(link), "%llu", (unsigned long long)redis->generation);
	redis_put(to, slice_str(redis->me));
	redis_put(to, slice_str(link));
	redis_put_number(to, request->claim);
	redis_put_number(to, request->places);
	redis_put_pair(to, request->usd);
}

/* A sign and the difference of two sums. */
static void put_change(struct redis_buffer *to, uint64_t more, uint64_t less)
{
	redis_put_number(to, more >= less ? 1 : -1);
	redis_put_pair(to, more >= less ? more - less : less - more);
}

static void put_money(struct redis_buffer *to, struct redis_part *part,
		      const struct redis_money *money, bool month)
{
	redis_put(to, month ? SLICE("m") : SLICE("d"));
	redis_put_number(to, money->period);
	redis_put_pair(to, money->told);
	put_change(to, money->more, money->less);
	if (money->more == money->less)
		return;
	part->changes[part->change_count++] = (struct redis_change){
		.month = month,
		.period = money->period,
		.more = minus(money->more, money->less),
		.less = minus(money->less, money->more),
	};
}

/* Everything that Redis has to be told of the tenant. */
static void put_part(struct store_redis *redis, struct redis_buffer *to, struct redis_part *part,
		     const struct redis_tenant *tenant)
{
	redis_put_number(to, (int64_t)tenant->held + tenant->given_back);
	redis_put_number(to, tenant->given_back);
	redis_put_pair(to, tenant->requests_less);
	put_change(to, tenant->tokens_more, tenant->tokens_less);
	redis_put_number(to, periods_of(tenant));
	for (uint32_t i = 0; i < PERIODS; i++)
		if (tenant->money[i].period != 0)
			put_money(to, part, &tenant->money[i], i >= 2);
	part->tenant = number_of(redis, tenant);
	part->given_back = tenant->given_back;
	part->requests_less = tenant->requests_less;
	part->tokens_more = tenant->tokens_more;
	part->tokens_less = tenant->tokens_less;
}

static bool has_news(const struct redis_tenant *tenant)
{
	bool news = tenant->renew || tenant->given_back != 0 || tenant->requests_less != 0 ||
		    tenant->tokens_more != tenant->tokens_less;

	for (uint32_t i = 0; i < PERIODS; i++)
		news = news || tenant->money[i].more != tenant->money[i].less;
	return news;
}

/* The request has been taken: what it tells counts as told. */
static void part_left(struct redis_tenant *tenant)
{
	tenant->renew = false;
	tenant->given_back = 0;
	tenant->requests_less = tenant->tokens_more = tenant->tokens_less = 0;
	for (uint32_t i = 0; i < PERIODS; i++) {
		struct redis_money *money = &tenant->money[i];
		money->told = minus(plus(money->told, money->more), money->less);
		money->more = money->less = 0;
	}
}

/* It was not done, or nobody knows (`lost`): then what was given back is not given back twice, and what
 * was owed is paid, if need be, twice. Places always come back: if the request was lost they are those
 * of a connection whose leases are replaced. */
static void part_back(struct store_redis *redis, const struct redis_part *part, bool lost)
{
	struct redis_tenant *tenant = &redis->tenants[part->tenant];

	for (uint32_t i = 0; i < part->change_count; i++) {
		const struct redis_change *change = &part->changes[i];
		struct redis_money *money = money_of(tenant, change->month, change->period);
		if (money == NULL || (lost && change->less != 0))
			continue;
		money->told = minus(plus(money->told, change->less), change->more);
		money->more = plus(money->more, change->more);
		money->less = plus(money->less, change->less);
	}
	tenant->given_back += part->given_back;
	if (!lost) {
		tenant->requests_less = plus(tenant->requests_less, part->requests_less);
		tenant->tokens_more = plus(tenant->tokens_more, part->tokens_more);
		tenant->tokens_less = plus(tenant->tokens_less, part->tokens_less);
	}
	touch(redis, tenant);
}

/* Without a claim. False: not now. */
static bool send_settlement(struct store_redis *redis, struct redis_tenant *tenant)
{
	struct redis_buffer *to;
	uint64_t ticket;
	struct redis_request *request = redis_link_begin(redis->link, &to, &ticket);

	if (request == NULL)
		return false;
	request->part_count = 1;
	put_script(redis, to, request, &tenant);
	put_part(redis, to, &request->parts[0], tenant);
	if (!redis_link_send(redis->link))
		return false;
	part_left(tenant);
	return true;
}

static uint64_t room_of(struct quota_limit limit)
{
	const uint64_t room = limit.per_minute == 0 ? 0 : quota_cost(limit, limit.burst);

	return room < ROOM_MAX ? room : ROOM_MAX;
}

/* More than the burst is never granted: a cost beyond the room says so. */
static uint64_t cost_of(struct quota_limit limit, uint64_t n)
{
	if (limit.per_minute == 0) /* no such limit */
		return 0;
	const uint64_t cost = quota_cost(limit, n), most = room_of(limit) + 1;

	return n > limit.burst || cost > most ? most : cost;
}

static void put_budget(struct redis_buffer *to, uint64_t most)
{
	if (most == LIMIT_NONE) {
		redis_put_number(to, -1);
		redis_put_number(to, 0);
	} else {
		redis_put_pair(to, most);
	}
}

static void put_claim(struct redis_buffer *to, struct redis_part *part,
		      const struct tenant_limits *limits, const struct limit_ask *ask)
{
	part->requests_cost = cost_of(limits->requests, ask->requests);
	part->tokens_cost = cost_of(limits->tokens, ask->tokens);
	redis_put_number(to, limits->count_only);
	redis_put_pair(to, part->requests_cost);
	redis_put_pair(to, room_of(limits->requests));
	redis_put_pair(to, part->tokens_cost);
	redis_put_pair(to, room_of(limits->tokens));
	redis_put_number(to, limits->concurrent);
	put_budget(to, limits->usd_per_day);
	put_budget(to, limits->usd_per_month);
}

static bool send_claim(struct store_redis *redis, struct reservation *reservation)
{
	struct redis_tenant *tenants[REDIS_SCOPES_MAX];
	struct redis_buffer *to;
	struct redis_request *request = redis_link_begin(redis->link, &to, &reservation->ticket);

	_Static_assert((int)REDIS_SCOPES_MAX >= (int)RESERVATION_SCOPES_MAX, "every scope fits");
	if (request == NULL)
		return false;
	for (uint32_t i = 0; i < reservation->scope_count; i++)
		tenants[i] = tenant_of(redis, reservation, i);
	request->claim = true;
	request->reservation = reservation;
	request->part_count = (uint8_t)reservation->scope_count;
	request->places = reservation->ask.concurrent;
	request->usd = reservation->ask.usd;
	put_script(redis, to, request, tenants);
	for (uint32_t i = 0; i < request->part_count; i++) {
		put_part(redis, to, &request->parts[i], tenants[i]);
		put_claim(to, &request->parts[i], &reservation->scopes[i].limits,
			  &reservation->ask);
	}
	if (!redis_link_send(redis->link))
		return false;
	for (uint32_t i = 0; i < request->part_count; i++)
		part_left(tenants[i]);
	return true;
}

/* ---- verdicts ---- */

static void refuse(struct reservation *reservation, enum err err, const char *limit, nsec_t wait_ns)
{
	reservation->granted = false;
	reservation->refusal =
		(struct limit_refusal){ .err = err, .limit = limit, .wait_ns = wait_ns };
}

static void hold_places(struct store_redis *redis, const struct reservation *reservation)
{
	for (uint32_t i = 0; reservation->ask.concurrent != 0 && i < reservation->scope_count; i++)
		hold_place(redis, tenant_of(redis, reservation, i));
}

/* What the tenant may spend in a day while Redis is not there, by all workers of this gateway: a slot of
 * its own. False: no room for one. */
static bool away_scope(struct store_redis *redis, const struct reservation *reservation,
		       struct limit_scope *out)
{
	*out = (struct limit_scope){ .limits = limit_none() };
	out->limits.usd_per_day = reservation->scopes[0].limits.away_usd;
	(void)memcpy(out->key, reservation->scopes[0].key, sizeof(out->key));
	out->key[sizeof(out->key) - 1] ^= UINT8_MAX; /* of a digest: as good as another one */
	out->slot = limit_table_slot(redis->table, out->key);
	return out->slot != NULL;
}

static void away_settle(struct store_redis *redis, const struct reservation *reservation,
			uint64_t usd)
{
	const struct limit_ask ask = { .usd = reservation->ask.usd };
	struct limit_scope away;

	if (away_scope(redis, reservation, &away))
		(void)limit_settle(&away, 1, &ask, reservation->wall_s, 0, usd, 0);
}

/* Redis is not there: the tenant's own choice (on_store_failure). */
static void decide_away(struct store_redis *redis, struct reservation *reservation)
{
	const struct limit_ask money = { .usd = reservation->ask.usd };
	struct limit_refusal refusal = { .err = ERR_STORE };
	struct limit_scope away;

	reservation->granted = false;
	if (reservation->scopes[0].limits.away_rates_closed ||
	    !away_scope(redis, reservation, &away) ||
	    !limit_take(&away, 1, &money, reservation->now, reservation->wall_s, &refusal)) {
		refuse(reservation, ERR_STORE, NULL, 0);
		return;
	}
	reservation->granted =
		limit_take(reservation->scopes, reservation->scope_count, &reservation->ask,
			   reservation->now, reservation->wall_s, &reservation->refusal);
	if (!reservation->granted) {
		away_settle(redis, reservation, 0);
		return;
	}
	reservation->away = true;
	hold_places(redis, reservation);
}

/* Of limits that count only: which would have refused, and rates that were left as they are. */
static void note_over(struct limit_scope *scope, uint64_t over)
{
	static const enum limit limits[] = { LIMIT_requests_per_minute, LIMIT_tokens_per_minute,
					     LIMIT_concurrent, LIMIT_usd_per_day,
					     LIMIT_usd_per_month };
	enum { RATES = 3 }; /* the first two bits */

	scope->would_refuse = NULL;
	scope->passed_over = (uint32_t)(over & RATES);
	for (size_t i = COUNT_OF(limits); i-- > 0;)
		if ((over >> i & 1) != 0)
			scope->would_refuse = limit_info(limits[i])->name;
}

static void grant(struct store_redis *redis, struct reservation *reservation,
		  const struct redis_verdict *verdict)
{
	enum { BITS = 5, MASK = (1 << BITS) - 1 };

	reservation->granted = true;
	reservation->wall_s = verdict->server_s; /* it is settled in the period that was charged */
	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		note_over(&reservation->scopes[i], verdict->over >> (i * BITS) & MASK);
		note_told(tenant_of(redis, reservation, i), verdict->server_s,
			  reservation->ask.usd);
	}
	limit_count(reservation->scopes, reservation->scope_count, &reservation->ask,
		    net_now(redis->loop), verdict->server_s);
	hold_places(redis, reservation);
}

/* Granted, but nobody waits for it any more. */
static void undo(struct store_redis *redis, const struct redis_request *request,
		 const struct redis_verdict *verdict)
{
	enum { BITS = 5 };

	for (uint32_t i = 0; i < request->part_count; i++) {
		const struct redis_part *part = &request->parts[i];
		struct redis_tenant *tenant = &redis->tenants[part->tenant];
		const uint64_t over = verdict->over >> (i * BITS);
		note_told(tenant, verdict->server_s, request->usd);
		owe(tenant, verdict->server_s, 0, request->usd);
		if ((over & 1) == 0)
			tenant->requests_less = plus(tenant->requests_less, part->requests_cost);
		if ((over & 2) == 0)
			tenant->tokens_less = plus(tenant->tokens_less, part->tokens_cost);
		tenant->given_back += request->places;
		touch(redis, tenant);
	}
}

static void take_refusal(struct reservation *reservation, const struct redis_verdict *verdict)
{
	static const struct {
		enum err err;
		enum limit limit;
	} rows[] = {
		[1] = { ERR_RATE_LIMITED, LIMIT_requests_per_minute },
		[2] = { ERR_RATE_LIMITED, LIMIT_tokens_per_minute },
		[3] = { ERR_CONCURRENCY, LIMIT_concurrent },
		[4] = { ERR_BUDGET, LIMIT_usd_per_day },
		[5] = { ERR_BUDGET, LIMIT_usd_per_month },
		[6] = { ERR_OVER_BURST, LIMIT_tokens_per_minute },
	};

	must(verdict->code > 0 && verdict->code < COUNT_OF(rows));
	refuse(reservation, rows[verdict->code].err, limit_info(rows[verdict->code].limit)->name,
	       verdict->wait_ns);
	if (verdict->scope < reservation->scope_count)
		reservation->refusal.holder = reservation->scopes[verdict->scope].holder;
}

/* Redis forgot the script (SCRIPT FLUSH, a restart): once more, with its text, as long as the caller
 * may wait. */
static bool ask_again(struct store_redis *redis, const struct redis_request *request,
		      const redisReply *reply)
{
	if (reply->type != REDIS_REPLY_ERROR || strncmp(reply->str, "NOSCRIPT", 8) != 0 ||
	    request->by_text)
		return false;
	redis->loaded = false;
	return request->reservation != NULL && send_claim(redis, request->reservation);
}

static void on_done(void *owner, const struct redis_request *request, enum redis_outcome outcome,
		    const struct redisReply *reply)
{
	struct store_redis *redis = owner;
	struct reservation *reservation = request->reservation;
	struct redis_verdict verdict;

	if (outcome != REDIS_ANSWERED || !redis_read_verdict(reply, &verdict)) {
		for (uint32_t i = 0; i < request->part_count; i++)
			part_back(redis, &request->parts[i], outcome != REDIS_REFUSED);
		if (outcome == REDIS_REFUSED && ask_again(redis, request, reply))
			return;
		if (reservation != NULL)
			decide_away(redis, reservation);
	} else if (reservation == NULL) {
		if (request->claim && verdict.code == 0)
			undo(redis, request, &verdict);
	} else if (verdict.code == 0) {
		grant(redis, reservation, &verdict);
	} else {
		take_refusal(reservation, &verdict);
	}
	if (reservation != NULL)
		reservation->done(reservation);
}

static void on_late(void *owner, struct redis_request *request)
{
	struct reservation *reservation = request->reservation;

	if (reservation == NULL)
		return;
	request->reservation = NULL;
	decide_away(owner, reservation);
	reservation->done(reservation);
}

/* ---- write-behind ---- */

static void flush(struct store_redis *redis)
{
	while (redis->dirty.count != 0) {
		struct redis_tenant *tenant =
			&redis->tenants[redis->dirty.at[redis->dirty.count - 1]];
		if (has_news(tenant) && !send_settlement(redis, tenant))
			return; /* on_ready, or the next change, comes back */
		redis->dirty.count--;
		tenant->dirty = false;
	}
}

static void on_flush(struct net_timer *timer)
{
	flush(CONTAINER_OF(timer, struct store_redis, flush));
}

/* Every tenant with requests in flight: its leases begin anew, in one request. */
static void renew(struct store_redis *redis)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < redis->active.count; i++) {
		const uint32_t number = redis->active.at[i];
		struct redis_tenant *tenant = &redis->tenants[number];
		tenant->active = tenant->held != 0;
		if (!tenant->active)
			continue;
		redis->active.at[kept++] = number;
		tenant->renew = true;
		touch(redis, tenant);
	}
	redis->active.count = kept;
}

static void on_renew(struct net_timer *timer)
{
	struct store_redis *redis = CONTAINER_OF(timer, struct store_redis, renew);

	renew(redis);
	net_timer_set(redis->loop, timer, net_now(redis->loop) + RENEW_EVERY);
}

/* Places were taken and given back without Redis: what it holds of this worker is replaced. */
static void on_ready(void *owner)
{
	struct store_redis *redis = owner;

	metrics_store_mode(redis->metrics, true, false);
	redis->generation++;
	redis->loaded = false;
	renew(redis);
	flush(redis);
}

static void on_unready(void *owner)
{
	struct store_redis *redis = owner;

	metrics_store_mode(redis->metrics, true, true);
}

static void on_measured(void *owner, enum redis_outcome outcome, bool late, nsec_t took)
{
	static const enum metrics_store_result results[] = { [REDIS_ANSWERED] = STORE_OK,
							     [REDIS_REFUSED] = STORE_ERROR,
							     [REDIS_LOST] = STORE_LOST };
	struct store_redis *redis = owner;

	metrics_store(redis->metrics, late && outcome != REDIS_LOST ? STORE_LATE : results[outcome],
		      took);
}

static const struct redis_link_events link_events = { .done = on_done,
						      .late = on_late,
						      .ready = on_ready,
						      .unready = on_unready,
						      .measured = on_measured };

/* ---- the interface ---- */

static enum store_outcome redis_reserve(struct store *store, struct reservation *reservation)
{
	struct store_redis *redis = redis_of(store);

	must(reservation->scope_count >= 1 && reservation->scope_count <= RESERVATION_SCOPES_MAX);
	reservation->granted = reservation->away = false;
	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		struct limit_scope *scope = &reservation->scopes[i];
		scope->slot = limit_table_slot(redis->table, scope->key);
		if (scope->slot == NULL) { /* more than the table was sized for */
			refuse(reservation, ERR_BUSY, NULL, 0);
			return STORE_DONE;
		}
	}
	if (send_claim(redis, reservation))
		return STORE_PENDING;
	decide_away(redis, reservation);
	return STORE_DONE;
}

static void settle_tokens(struct redis_tenant *tenant, const struct limit_scope *scope,
			  uint64_t taken, uint64_t used)
{
	const struct quota_limit rate = scope->limits.tokens;
	enum { TOKENS = 2 }; /* of passed_over */

	if (rate.per_minute == 0 || (scope->passed_over & TOKENS) != 0)
		return;
	tenant->tokens_more = plus(tenant->tokens_more, quota_cost(rate, used));
	tenant->tokens_less = plus(tenant->tokens_less, quota_cost(rate, taken));
}

static uint64_t redis_settle(struct store *store, struct reservation *reservation, uint64_t tokens,
			     uint64_t usd, nsec_t now)
{
	struct store_redis *redis = redis_of(store);
	const struct limit_ask *ask = &reservation->ask;

	must(reservation->granted);
	if (reservation->away)
		away_settle(redis, reservation, usd);
	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		struct redis_tenant *tenant = tenant_of(redis, reservation, i);
		owe(tenant, reservation->wall_s, usd, reservation->away ? 0 : ask->usd);
		if (!reservation->away)
			settle_tokens(tenant, &reservation->scopes[i], ask->tokens, tokens);
		touch(redis, tenant);
	}
	return limit_settle(reservation->scopes, reservation->scope_count, ask, reservation->wall_s,
			    tokens, usd, now);
}

static void redis_release(struct store *store, struct reservation *reservation)
{
	struct store_redis *redis = redis_of(store);

	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		struct redis_tenant *tenant = tenant_of(redis, reservation, i);
		must(tenant->held > 0);
		tenant->held--;
		tenant->given_back++;
		touch(redis, tenant);
	}
	limit_release(reservation->scopes, reservation->scope_count);
}

static void redis_forget(struct store *store, struct reservation *reservation)
{
	redis_link_request(redis_of(store)->link, reservation->ticket)->reservation = NULL;
}

static uint32_t redis_series(struct store *store, const uint8_t key[16])
{
	struct limit_table *table = redis_of(store)->table;
	const struct limit_slot *slot = limit_table_slot(table, key);

	return slot == NULL ? UINT32_MAX : limit_slot_index(table, slot);
}

/* ---- making one ---- */

/* Room for every slot of the table; memory is taken where it is used. */
static void *map_slots(const struct limit_table *table, size_t size)
{
	void *at = mmap(NULL, limit_table_slots(table) * size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static bool redis_build(struct store_redis *redis)
{
	uint8_t chance[ID_HEX / 2];

	redis->tenants = map_slots(redis->table, sizeof(*redis->tenants));
	redis->dirty.at = map_slots(redis->table, sizeof(*redis->dirty.at));
	redis->active.at = map_slots(redis->table, sizeof(*redis->active.at));
	if (redis->tenants == NULL || redis->dirty.at == NULL || redis->active.at == NULL)
		return false;
	must(getrandom(chance, sizeof(chance), 0) == (ssize_t)sizeof(chance));
	hex(chance, sizeof(chance), redis->me);
	return true;
}

static void target_of(const struct config_store *config, struct redis_link_args *args)
{
	struct redis_target *target = &args->targets[0];
	struct sockaddr_un *local = (struct sockaddr_un *)&target->address;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&target->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&target->address;

	args->target_count = 1;
	if (!slice_absent(config->path)) {
		local->sun_family = AF_UNIX;
		(void)memcpy(local->sun_path, config->path.at, config->path.len);
		target->len = sizeof(*local);
	} else if (inet_pton(AF_INET, config->host.at, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(config->port);
		target->len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, config->host.at, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(config->port);
		target->len = sizeof(*v6);
	} else {
		args->target_count = 0; /* a name: store_redis_resolved */
		args->server_name = config->host.at;
	}
}

static bool redis_connect(struct store_redis *redis, const struct config_store *config,
			  uint32_t worker, char *problem, size_t room)
{
	struct redis_link_args args = {
		.loop = redis->loop,
		.events = &link_events,
		.owner = redis,
		.user = config->user,
		.password = config->password,
		.database = config->database,
		.deadline = config->deadline,
		.name = config->name.at,
		.quiet = worker != 0,
	};

	target_of(config, &args);
	if (config->tls) {
		args.tls = tls_client_new(config->host.at, config->ca_pem, problem, room);
		if (args.tls == NULL)
			return false;
	}
	(void)memcpy(&args.seed, redis->me, sizeof(args.seed));
	redis->link = redis_link_new(&args);
	return redis->link != NULL;
}

struct store_redis *store_redis_new(struct net_loop *loop, const struct config_store *config,
				    struct limit_table *table, struct metrics_worker *metrics,
				    uint32_t worker, char *problem, size_t room)
{
	struct store_redis *redis = calloc(1, sizeof(*redis));

	(void)snprintf(problem, room, "out of memory");
	if (redis == NULL)
		return NULL;
	*redis = (struct store_redis){
		.store = { .reserve = redis_reserve,
			   .settle = redis_settle,
			   .release = redis_release,
			   .forget = redis_forget,
			   .series = redis_series },
		.magic = REDIS_MAGIC,
		.loop = loop,
		.table = table,
		.metrics = metrics,
		.flush.fire = on_flush,
		.renew.fire = on_renew,
		.port = config->port,
	};
	if (!redis_build(redis) || !redis_connect(redis, config, worker, problem, room))
		return NULL;                     /* the process ends: nothing to take apart */
	metrics_store_mode(metrics, true, true); /* until it is connected */
	net_timer_set(loop, &redis->renew, net_now(loop) + RENEW_EVERY);
	return redis;
}

struct store *store_redis_store(struct store_redis *redis)
{
	return &redis->store;
}

void store_redis_resolved(struct store_redis *redis, const struct upstream_address *addresses,
			  uint32_t count)
{
	struct redis_target targets[REDIS_ADDRESSES_MAX];

	count = count < REDIS_ADDRESSES_MAX ? count : REDIS_ADDRESSES_MAX;
	for (uint32_t i = 0; i < count; i++) {
		targets[i].address = addresses[i].address;
		targets[i].len = addresses[i].len;
		if (targets[i].address.ss_family == AF_INET6)
			((struct sockaddr_in6 *)&targets[i].address)->sin6_port =
				htons(redis->port);
		else
			((struct sockaddr_in *)&targets[i].address)->sin_port = htons(redis->port);
	}
	redis_link_set_targets(redis->link, targets, count);
}
