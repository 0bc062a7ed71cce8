/* limiter_redis_report.c - requests to Redis: settlements, claims, and what becomes of them. */
#include "gateway/limits/limiter_redis_parts.h"

#include "codec/base/hex.h"
#include "codec/base/must.h"
#include "tenants/limit.h"

#include <string.h>

#define FLUSH_AFTER (2 * MSEC)

#define ROOM_MAX \
	(UINT64_C(2000000000) * SEC) /* of a burst: 63 years, so that a time fits (limits.lua) */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* ---- tenants ---- */

static uint32_t number_of(const struct limiter_redis *redis, const struct redis_tenant *tenant)
{
	return (uint32_t)(tenant - redis->tenants);
}

static struct redis_tenant *tenant_at(struct limiter_redis *redis, const struct limit_slot *slot,
				      const uint8_t tag[16], const uint8_t key[16])
{
	struct redis_tenant *tenant = &redis->tenants[limit_slot_index(redis->table, slot)];

	if (!tenant->known) {
		(void)memcpy(tenant->tag, tag, sizeof(tenant->tag));
		(void)memcpy(tenant->key, key, sizeof(tenant->key));
		tenant->known = true;
		redis->known.at[redis->known.count++] = number_of(redis, tenant);
	}
	return tenant;
}

struct redis_tenant *limiter_redis_tenant(struct limiter_redis *redis,
					  const struct reservation *reservation, uint32_t scope)
{
	const struct limit_scope *of = &reservation->scopes[scope];

	return tenant_at(redis, of->slot, reservation->scopes[0].key, of->key);
}

struct redis_tenant *limiter_redis_tenant_of(struct limiter_redis *redis, const uint8_t tag[16])
{
	const struct limit_slot *slot = limit_table_slot(redis->table, tag);

	return slot == NULL ? NULL : tenant_at(redis, slot, tag, tag);
}

void limiter_redis_flush_soon(struct limiter_redis *redis)
{
	if (redis->flush.place == 0 && redis_link_ready(redis->link))
		net_timer_set(redis->loop, &redis->flush, net_now(redis->loop) + FLUSH_AFTER);
}

void limiter_redis_touch(struct limiter_redis *redis, struct redis_tenant *tenant)
{
	if (!tenant->dirty) {
		tenant->dirty = true;
		redis->dirty.at[redis->dirty.count++] = number_of(redis, tenant);
	}
	limiter_redis_flush_soon(redis);
}

/* The counter of that period; NULL when a later one has taken its place: then it is over, and what
 * would be reported of it does not matter. */
static struct redis_money *money_of(struct redis_tenant *tenant, bool month, uint32_t period)
{
	struct redis_money *money = &tenant->money[(month ? 2 : 0) + (period & 1)];

	if (money->period < period)
		*money = (struct redis_money){ .period = period };
	return money->period == period ? money : NULL;
}

/* What was used in the period of `wall_s` beyond, or short of, what Redis has counted. */
void limiter_redis_owe(struct redis_tenant *tenant, uint64_t wall_s, uint64_t more, uint64_t less)
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

void limiter_redis_note_reported(struct redis_tenant *tenant, uint64_t server_s, uint64_t usd)
{
	struct redis_money *day = money_of(tenant, false, quota_day(server_s));
	struct redis_money *month = money_of(tenant, true, quota_month(server_s));

	if (day != NULL)
		day->reported = plus(day->reported, usd);
	if (month != NULL)
		month->reported = plus(month->reported, usd);
}

void limiter_redis_topped_up(struct redis_tenant *tenant, uint64_t server_s, uint64_t usd)
{
	struct redis_money *day = money_of(tenant, false, quota_day(server_s));
	struct redis_money *month = money_of(tenant, true, quota_month(server_s));

	if (day != NULL)
		day->topped_up = plus(day->topped_up, usd);
	if (month != NULL)
		month->topped_up = plus(month->topped_up, usd);
}

/* Places that are not reported to Redis, because this gateway granted them itself while the connection was up: they
 * are part of what is reported first over the next one. */
static uint32_t *unreported_places(const struct limiter_redis *redis, struct redis_tenant *tenant)
{
	if (tenant->unreported_at != redis->generation) {
		tenant->unreported_at = redis->generation;
		tenant->unreported = 0;
	}
	return &tenant->unreported;
}

static void hold_place(struct limiter_redis *redis, struct redis_tenant *tenant, bool fallback)
{
	tenant->held++;
	if (fallback)
		++*unreported_places(redis, tenant);
	if (tenant->active)
		return;
	tenant->active = true;
	redis->active.at[redis->active.count++] = number_of(redis, tenant);
}

void limiter_redis_hold_places(struct limiter_redis *redis, struct reservation *reservation)
{
	reservation->generation = redis->generation;
	for (uint32_t i = 0; reservation->ask.concurrent != 0 && i < reservation->scope_count; i++)
		hold_place(redis, limiter_redis_tenant(redis, reservation, i),
			   reservation->fallback);
}

void limiter_redis_give_place(struct limiter_redis *redis, const struct reservation *reservation,
			      uint32_t scope)
{
	struct redis_tenant *tenant = limiter_redis_tenant(redis, reservation, scope);

	must(tenant->held > 0);
	tenant->held--;
	if (!reservation->fallback || reservation->generation != redis->generation) {
		tenant->given_back++;
		return;
	}
	must(*unreported_places(redis, tenant) > 0);
	--*unreported_places(redis, tenant);
}

/* ---- calls ---- */

void limiter_redis_put_key(struct redis_buffer *to, const uint8_t tag[16], const uint8_t own[16])
{
	static const char prefix[] = "sluice:2:{"; /* the number is that of the state's layout */
	enum { BYTES = 16 };
	char key[sizeof(prefix) + 2 * (2 * BYTES) + 1];
	char *end = key + sizeof(prefix) - 1;

	(void)memcpy(key, prefix, sizeof(prefix) - 1);
	end = hex_put_bytes(end, tag, BYTES);
	*end++ = '}';
	if (memcmp(tag, own, BYTES) != 0)
		end = hex_put_bytes(end, own, BYTES);
	redis_put(to, slice_of(key, (size_t)(end - key)));
}

/* A sign, 0 for more, and the difference of two sums. */
static void pack_change(struct redis_pack *news, uint64_t more, uint64_t less)
{
	redis_pack_byte(news, more < less);
	redis_pack_amount(news, more >= less ? more - less : less - more);
}

static bool is_month(uint32_t place)
{
	return place >= PERIODS / 2;
}

static void pack_money(struct redis_pack *news, struct limiter_part *part,
		       const struct redis_tenant *tenant)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < PERIODS; i++)
		count += tenant->money[i].more != tenant->money[i].less;
	redis_pack_byte(news, (uint8_t)count);
	for (uint32_t i = 0; i < PERIODS; i++) {
		const struct redis_money *money = &tenant->money[i];
		if (money->more == money->less)
			continue;
		redis_pack_byte(news, is_month(i));
		redis_pack_number(news, money->period);
		pack_change(news, money->more, money->less);
		part->changes[part->change_count++] = (struct limiter_change){
			.month = is_month(i),
			.period = money->period,
			.more = minus(money->more, money->less),
			.less = minus(money->less, money->more),
		};
	}
}

/* Rates or money. */
static bool used_more(const struct redis_tenant *tenant)
{
	bool more = tenant->owed.requests_less != 0 ||
		    tenant->owed.tokens_more != tenant->owed.tokens_less;

	for (uint32_t i = 0; i < PERIODS; i++)
		more = more || tenant->money[i].more != tenant->money[i].less;
	return more;
}

static uint32_t reported_places(const struct limiter_redis *redis,
				const struct redis_tenant *tenant)
{
	return tenant->held - (tenant->unreported_at == redis->generation ? tenant->unreported : 0);
}

/* What there is to report of the tenant. */
static void pack_news(struct limiter_redis *redis, struct redis_pack *news,
		      struct limiter_part *part, const struct redis_tenant *tenant)
{
	part->given_back = tenant->given_back;
	part->change_count = 0;
	part->owed = tenant->owed;
	redis_pack_bytes(news, tenant->epoch, sizeof(tenant->epoch));
	redis_pack_number(news, reported_places(redis, tenant) + tenant->given_back);
	redis_pack_number(news, tenant->given_back);
	redis_pack_byte(news, used_more(tenant));
	redis_pack_bytes(news, tenant->figures, sizeof(tenant->figures));
	if (!used_more(tenant))
		return;
	redis_pack_amount(news, tenant->owed.requests_less);
	pack_change(news, tenant->owed.tokens_more, tenant->owed.tokens_less);
	pack_money(news, part, tenant);
}

/* All that was ever reported, in case that Redis has lost it. */
static void put_reported(struct redis_buffer *to, const struct redis_tenant *tenant)
{
	struct redis_pack all = { 0 };
	uint32_t count = 0;

	for (uint32_t i = 0; i < PERIODS; i++)
		count += tenant->money[i].period != 0;
	redis_pack_byte(&all, (uint8_t)count);
	for (uint32_t i = 0; i < PERIODS; i++) {
		const struct redis_money *money = &tenant->money[i];
		if (money->period == 0)
			continue;
		redis_pack_byte(&all, is_month(i));
		redis_pack_number(&all, money->period);
		redis_pack_amount(&all, money->reported);
		redis_pack_amount(&all, money->topped_up);
	}
	redis_put_pack(to, &all);
}

bool limiter_redis_has_news(const struct redis_tenant *tenant)
{
	return tenant->renew || tenant->given_back != 0 || used_more(tenant);
}

/* What the call reports counts as reported. */
static void part_left(struct redis_tenant *tenant)
{
	tenant->renew = false;
	tenant->given_back = 0;
	tenant->owed.requests_less = tenant->owed.tokens_more = tenant->owed.tokens_less = 0;
	for (uint32_t i = 0; i < PERIODS; i++) {
		struct redis_money *money = &tenant->money[i];
		money->reported = minus(plus(money->reported, money->more), money->less);
		money->more = money->less = 0;
	}
}

/* It was not done, or nobody knows (`lost`): then what was given back is not given back twice, and what
 * was owed is paid, if need be, twice. Places always come back: if the call was lost they are those
 * of a connection whose leases are replaced. */
static void part_back(struct limiter_redis *redis, const struct limiter_part *part, bool lost)
{
	struct redis_tenant *tenant = &redis->tenants[part->tenant];

	for (uint32_t i = 0; i < part->change_count; i++) {
		const struct limiter_change *change = &part->changes[i];
		struct redis_money *money = money_of(tenant, change->month, change->period);
		if (money == NULL || (lost && change->less != 0))
			continue;
		money->reported = minus(plus(money->reported, change->less), change->more);
		money->more = plus(money->more, change->more);
		money->less = plus(money->less, change->less);
	}
	tenant->given_back += part->given_back;
	if (!lost)
		limiter_redis_owe_times(tenant, &part->owed);
	limiter_redis_touch(redis, tenant);
}

void limiter_redis_take_back(struct limiter_call *call, bool lost)
{
	for (uint32_t i = 0; call->packed && i < call->part_count; i++)
		part_back(call->redis, &call->parts[i], lost);
	call->packed = false;
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

static void pack_budget(struct redis_pack *news, uint64_t most)
{
	if (most == LIMIT_NONE)
		limiter_pack_unbound(news);
	else
		redis_pack_amount(news, most);
}

static void pack_claim(struct redis_pack *news, struct limiter_part *part,
		       const struct tenant_limits *limits, const struct limit_ask *ask)
{
	part->requests_cost = cost_of(limits->requests, ask->requests);
	part->tokens_cost = cost_of(limits->tokens, ask->tokens);
	redis_pack_byte(news, limits->count_only);
	redis_pack_amount(news, part->requests_cost);
	redis_pack_amount(news, room_of(limits->requests));
	redis_pack_amount(news, part->tokens_cost);
	redis_pack_amount(news, room_of(limits->tokens));
	redis_pack_number(news, limits->concurrent);
	pack_budget(news, limits->usd_per_day);
	pack_budget(news, limits->usd_per_month);
}

static void put_header(const struct limiter_call *call, struct redis_buffer *to)
{
	const struct limiter_redis *redis = call->redis;
	struct redis_pack header = { 0 };

	redis_pack_bytes(&header, redis->me, sizeof(redis->me));
	redis_pack_number(&header, redis->generation);
	redis_pack_byte(&header, (uint8_t)(call->tells ? LIMITER_CLAIM_TOLD : call->asks));
	redis_pack_number(&header, call->places);
	redis_pack_amount(&header, call->usd);
	redis_put_pack(to, &header);
}

/* Two arguments for each part. */
static void put_part(struct limiter_call *call, uint32_t i, struct redis_buffer *to)
{
	struct limiter_redis *redis = call->redis;
	struct redis_tenant *tenant = &redis->tenants[call->parts[i].tenant];
	struct redis_pack news = { 0 };

	if (call->asks == LIMITER_CLAIM)
		limiter_redis_claim_under(tenant, &call->reservation->scopes[i].limits);
	pack_news(redis, &news, &call->parts[i], tenant);
	if (call->asks == LIMITER_CLAIM)
		pack_claim(&news, &call->parts[i], &call->reservation->scopes[i].limits,
			   &call->reservation->ask);
	redis_put_pack(to, &news);
	put_reported(to, tenant);
	part_left(tenant);
}

void limiter_redis_put(struct redis_call *of, const struct redis_script_run *run)
{
	enum { PER_PART = 2 };
	struct limiter_call *call = CONTAINER_OF(of, struct limiter_call, call);

	limiter_redis_take_back(call, false); /* Redis had forgotten the script */
	if (call->asks == LIMITER_CLAIM && call->reservation == NULL) {
		call->asks = LIMITER_REPORT; /* nobody waits for what it claimed */
		call->tells = false;
	}
	redis_put_script(run, call->part_count, 1 + call->part_count * (uint32_t)PER_PART);
	for (uint32_t i = 0; i < call->part_count; i++) {
		const struct redis_tenant *tenant = &call->redis->tenants[call->parts[i].tenant];
		limiter_redis_put_key(run->to, tenant->tag, tenant->key);
	}
	put_header(call, run->to);
	for (uint32_t i = 0; i < call->part_count; i++)
		put_part(call, i, run->to);
	call->packed = true;
}

/* NULL: too many are on their way. Its parts are the caller's to fill in. */
static struct limiter_call *call_new(struct limiter_redis *redis, enum limiter_asks asks,
				     uint32_t parts)
{
	struct limiter_call *call = slab_take(&redis->calls);

	must(parts >= 1 && parts <= RESERVATION_SCOPES_MAX);
	if (call == NULL)
		return NULL;
	call->call = (struct redis_call){ .type = redis->call_type };
	call->redis = redis;
	call->asks = asks;
	call->packed = call->tells = false;
	call->part_count = (uint8_t)parts;
	call->places = 0;
	call->usd = 0;
	call->reservation = NULL;
	call->asking = NULL;
	return call;
}

/* `patience`: as redis_link_begin_slow; 0: none. What was not sent is as if it never was. */
static bool call_send(struct limiter_call *call, nsec_t patience)
{
	struct limiter_redis *redis = call->redis;
	const bool slow = patience != 0 && !redis_link_ready(redis->link);

	if (slow ? redis_script_run_slow(redis->link, &redis->script, &call->call, patience)
		 : redis_script_run(redis->link, &redis->script, &call->call))
		return true;
	limiter_redis_take_back(call, false);
	slab_give(&redis->calls, call);
	return false;
}

/* The news of a tenant and its parts, without a claim. */
static struct limiter_call *news_new(struct limiter_redis *redis, enum limiter_asks asks,
				     struct redis_tenant *const *tenants, uint32_t count)
{
	struct limiter_call *call = call_new(redis, asks, count);

	for (uint32_t i = 0; call != NULL && i < count; i++)
		call->parts[i].tenant = number_of(redis, tenants[i]);
	return call;
}

bool limiter_redis_report(struct limiter_redis *redis, struct redis_tenant *const *tenants,
			  uint32_t count)
{
	struct limiter_call *call = news_new(redis, LIMITER_REPORT, tenants, count);

	return call != NULL && call_send(call, 0);
}

bool limiter_redis_top_up(struct limiter_redis *redis, struct redis_tenant *tenant, uint64_t usd,
			  struct asking *asking)
{
	struct limiter_call *call = news_new(redis, LIMITER_TOP_UP, &tenant, 1);

	if (call == NULL)
		return false;
	call->usd = usd;
	call->asking = asking;
	redis->script.generation =
		0; /* with its text: what is asked behind it is to find it done */
	return call_send(call, 0);
}

bool limiter_redis_claim(struct limiter_redis *redis, struct reservation *reservation)
{
	const bool patient = limiter_redis_is_patient(reservation);

	if (!patient && !redis_link_ready(redis->link))
		return false;
	struct limiter_call *call = call_new(redis, LIMITER_CLAIM, reservation->scope_count);
	if (call == NULL)
		return false;
	for (uint32_t i = 0; i < reservation->scope_count; i++)
		call->parts[i].tenant =
			number_of(redis, limiter_redis_tenant(redis, reservation, i));
	call->places = reservation->ask.concurrent;
	call->usd = reservation->ask.usd;
	call->reservation = reservation;
	call->tells = reservation->left != NULL;
	reservation->call = call;
	return call_send(call, patient ? redis->longest : 0);
}
