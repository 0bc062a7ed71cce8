/* store_redis_tell.c - requests to Redis: settlements, claims, and what becomes of them. */
#include "gateway/store_redis_parts.h"

#include "codec/base/must.h"
#include "gateway/store_redis_script.h"
#include "tenants/limit.h"

#include <stdio.h>

enum { KEY_ROOM = 96 };

#define FLUSH_AFTER (2 * MSEC)
#define ROOM_MAX (UINT64_MAX / 4 * 3) /* of a burst in ns: time itself must not end */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- tenants ---- */

struct redis_tenant *store_redis_tenant(struct store_redis *redis,
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

void store_redis_touch(struct store_redis *redis, struct redis_tenant *tenant)
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

/* What was used in the period of `wall_s` beyond, or short of, what Redis has counted. */
void store_redis_owe(struct redis_tenant *tenant, uint64_t wall_s, uint64_t more, uint64_t less)
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

void store_redis_note_told(struct redis_tenant *tenant, uint64_t server_s, uint64_t usd)
{
	struct redis_money *day = money_of(tenant, false, quota_day(server_s));
	struct redis_money *month = money_of(tenant, true, quota_month(server_s));

	if (day != NULL)
		day->told = plus(day->told, usd);
	if (month != NULL)
		month->told = plus(month->told, usd);
}

void store_redis_hold_place(struct store_redis *redis, struct redis_tenant *tenant)
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

bool store_redis_has_news(const struct redis_tenant *tenant)
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
void store_redis_part_back(struct store_redis *redis, const struct redis_part *part, bool lost)
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
	store_redis_touch(redis, tenant);
}

/* Without a claim. False: not now. */
bool store_redis_tell(struct store_redis *redis, struct redis_tenant *tenant)
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

bool store_redis_claim(struct store_redis *redis, struct reservation *reservation)
{
	struct redis_tenant *tenants[REDIS_SCOPES_MAX];
	struct redis_buffer *to;
	struct redis_request *request = redis_link_begin(redis->link, &to, &reservation->ticket);

	_Static_assert((int)REDIS_SCOPES_MAX >= (int)RESERVATION_SCOPES_MAX, "every scope fits");
	if (request == NULL)
		return false;
	for (uint32_t i = 0; i < reservation->scope_count; i++)
		tenants[i] = store_redis_tenant(redis, reservation, i);
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
