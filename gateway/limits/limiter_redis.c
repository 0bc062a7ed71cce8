#include "gateway/limits/limiter_redis.h"

#include "codec/base/must.h"
#include "gateway/limits/limiter_redis_parts.h"
#include "tenants/limit.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

REDIS_SCRIPT_DECLARE(limits);

#define RENEW_EVERY (10 * SEC) /* a third of a lease */

/* Far more than a worker's traffic needs; what comes at once, when Redis is back, is spread out. */
enum { FLUSHED_AT_ONCE = 64 };

/* ---- verdicts ---- */

/* Of limits that count only: which would have refused, and rates that were left as they are. */
static void note_over(struct limit_scope *scope, uint32_t over)
{
	static const enum limit limits[] = { LIMIT_requests_per_minute, LIMIT_tokens_per_minute,
					     LIMIT_concurrent, LIMIT_usd_per_day,
					     LIMIT_usd_per_month };
	enum { RATES = 3 }; /* the first two bits */

	scope->would_refuse = NULL;
	scope->passed_over = over & RATES;
	for (size_t i = COUNT_OF(limits); i-- > 0;)
		if ((over >> i & 1) != 0)
			scope->would_refuse = limit_info(limits[i])->name;
}

static void grant(struct limiter_redis *redis, struct reservation *reservation,
		  const struct limiter_verdict *verdict)
{
	enum { BITS = 5, MASK = (1 << BITS) - 1 };

	reservation->granted = true;
	reservation->wall_s = verdict->server_s; /* it is settled in the period that was charged */
	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		note_over(&reservation->scopes[i], verdict->over >> (i * BITS) & MASK);
		limiter_redis_note_reported(limiter_redis_tenant(redis, reservation, i),
					    verdict->server_s, reservation->ask.usd);
	}
	limit_count(reservation->scopes, reservation->scope_count, &reservation->ask,
		    net_now(redis->loop), verdict->server_s);
	limiter_redis_hold_places(redis, reservation);
}

/* Granted, but nobody waits for it any more. */
static void undo(struct limiter_redis *redis, const struct limiter_call *call,
		 const struct limiter_verdict *verdict)
{
	enum { BITS = 5 };

	for (uint32_t i = 0; i < call->part_count; i++) {
		const struct limiter_part *part = &call->parts[i];
		struct redis_tenant *tenant = &redis->tenants[part->tenant];
		const uint32_t over = verdict->over >> (i * BITS);
		limiter_redis_note_reported(tenant, verdict->server_s, call->usd);
		limiter_redis_owe(tenant, verdict->server_s, 0, call->usd);
		limiter_redis_owe_times(
			tenant, &(struct limiter_owed){
					.requests_rate = part->owed.requests_rate,
					.tokens_rate = part->owed.tokens_rate,
					.requests_less = (over & 1) == 0 ? part->requests_cost : 0,
					.tokens_less = (over & 2) == 0 ? part->tokens_cost : 0,
				});
		tenant->given_back += call->places;
		limiter_redis_touch(redis, tenant);
	}
}

static void take_refusal(struct reservation *reservation, const struct limiter_verdict *verdict)
{
	static const struct {
		enum err err;
		enum limit limit;
	} rows[] = {
		[VERDICT_REQUESTS] = { ERR_RATE_LIMITED, LIMIT_requests_per_minute },
		[VERDICT_TOKENS] = { ERR_RATE_LIMITED, LIMIT_tokens_per_minute },
		[VERDICT_PLACES] = { ERR_CONCURRENCY, LIMIT_concurrent },
		[VERDICT_DAY] = { ERR_BUDGET, LIMIT_usd_per_day },
		[VERDICT_MONTH] = { ERR_BUDGET, LIMIT_usd_per_month },
		[VERDICT_OVER_BURST] = { ERR_OVER_BURST, LIMIT_tokens_per_minute },
		[VERDICT_OVER_DAY] = { ERR_OVER_BUDGET, LIMIT_usd_per_day },
		[VERDICT_OVER_MONTH] = { ERR_OVER_BUDGET, LIMIT_usd_per_month },
	};

	_Static_assert(COUNT_OF(rows) == VERDICT_COUNT, "every verdict has a row");
	must(verdict->code != VERDICT_GRANTED && verdict->code < COUNT_OF(rows));
	limiter_refuse(reservation, rows[verdict->code].err,
		       limit_info(rows[verdict->code].limit)->name, verdict->wait_ns);
	reservation->refusal.left = verdict->left;
	reservation->refusal.budget = verdict->budget;
	reservation->wall_s = verdict->server_s; /* of whose day and month it speaks */
	if (verdict->scope < reservation->scope_count)
		reservation->refusal.holder = reservation->scopes[verdict->scope].holder;
}

/* The state of every scope as Redis has it now knows all that this worker has reported. One that is new,
 * though it was reported before, is a sign that all are. */
static void note_epochs(struct limiter_redis *redis, const struct limiter_call *call,
			const struct limiter_verdict *verdict)
{
	static const uint8_t never[LIMITER_EPOCH_BYTES];

	for (uint32_t i = 0; i < call->part_count; i++) {
		uint8_t *epoch = redis->tenants[call->parts[i].tenant].epoch;
		if (memcmp(epoch, verdict->epochs[i], LIMITER_EPOCH_BYTES) == 0)
			continue;
		if (memcmp(epoch, never, sizeof(never)) != 0)
			limiter_redis_ask_epoch(redis);
		(void)memcpy(epoch, verdict->epochs[i], LIMITER_EPOCH_BYTES);
	}
}

static void take_verdict(struct limiter_redis *redis, const struct limiter_call *call,
			 const struct limiter_verdict *verdict)
{
	struct reservation *reservation = call->reservation;

	if (reservation != NULL)
		limiter_redis_waited(redis, reservation, true);
	note_epochs(redis, call, verdict);
	if (call->asks == LIMITER_TOP_UP)
		limiter_redis_note_top_up(call, REDIS_ANSWERED, verdict->server_s);
	else if (reservation == NULL && call->asks == LIMITER_CLAIM && verdict->code == 0)
		undo(redis, call, verdict);
	else if (reservation != NULL && verdict->code == 0)
		grant(redis, reservation, verdict);
	else if (reservation != NULL)
		take_refusal(reservation, verdict);
}

/* As a time from now on: its wall clock is further than a slot's times may be. */
static nsec_t debt_of(uint64_t free_at, uint64_t now)
{
	return free_at > now ? free_at - now : 0;
}

static void take_left(const struct limiter_call *call, const struct redisReply *reply,
		      uint64_t server_s)
{
	const struct reservation *reservation = call->reservation;
	struct limiter_told told;

	if (reservation == NULL)
		return;
	limiter_read_left(reply, call->part_count, server_s, &told);
	limit_left_begin(reservation->left, net_now(call->redis->loop));
	for (uint32_t i = 0; i < call->part_count; i++) {
		const struct tenant_limits *limits = &reservation->scopes[i].limits;
		if (limits->count_only)
			continue;
		limit_room_add(&reservation->left->requests, limits->requests,
			       debt_of(told.free_at[i].requests, told.now_ns), 0);
		limit_room_add(&reservation->left->tokens, limits->tokens,
			       debt_of(told.free_at[i].tokens, told.now_ns), 0);
	}
}

static void on_done(struct redis_call *of, enum redis_outcome outcome,
		    const struct redisReply *reply)
{
	struct limiter_call *call = CONTAINER_OF(of, struct limiter_call, call);
	struct limiter_redis *redis = call->redis;
	struct reservation *reservation = call->reservation;
	struct limiter_verdict verdict;

	if (outcome == REDIS_ANSWERED &&
	    limiter_read_verdict(reply, call->part_count, call->tells, &verdict)) {
		if (call->tells)
			take_left(call, reply, verdict.server_s);
		take_verdict(redis, call, &verdict);
	} else {
		limiter_redis_take_back(call, outcome != REDIS_REFUSED);
		if (call->asks == LIMITER_TOP_UP)
			limiter_redis_note_top_up(
				call, outcome == REDIS_ANSWERED ? REDIS_LOST : outcome, 0);
		if (reservation != NULL) {
			limiter_redis_waited(redis, reservation, false);
			limiter_redis_fall_back(redis, reservation);
		}
	}
	slab_give(&redis->calls, call);
	if (reservation != NULL)
		reservation->done(reservation);
}

static void on_late(struct redis_call *of)
{
	struct limiter_call *call = CONTAINER_OF(of, struct limiter_call, call);
	struct reservation *reservation = call->reservation;

	if (reservation == NULL || limiter_redis_bear_with(call->redis, reservation))
		return;
	call->reservation = NULL;
	limiter_redis_fall_back(call->redis, reservation);
	reservation->done(reservation);
}

static const struct redis_call_type call_type = { .put = limiter_redis_put,
						  .done = on_done,
						  .late = on_late };

/* ---- write-behind ---- */

/* The last of those that are dirty, and, of the same tenant, what became dirty with it. Returns how many
 * places of the list that is; *count of them have something to report. */
static uint32_t last_dirty(const struct limiter_redis *redis,
			   struct redis_tenant *tenants[RESERVATION_SCOPES_MAX], uint32_t *count)
{
	uint32_t taken = 0;

	*count = 0;
	while (taken < redis->dirty.count && *count < RESERVATION_SCOPES_MAX) {
		struct redis_tenant *tenant =
			&redis->tenants[redis->dirty.at[redis->dirty.count - taken - 1]];
		if (*count != 0 && memcmp(tenant->tag, tenants[0]->tag, sizeof(tenant->tag)) != 0)
			break;
		if (limiter_redis_has_news(tenant))
			tenants[(*count)++] = tenant;
		taken++;
	}
	return taken;
}

/* False: not all of it. */
static bool flush_dirty(struct limiter_redis *redis)
{
	struct redis_tenant *tenants[RESERVATION_SCOPES_MAX];
	uint32_t count;

	for (uint32_t left = FLUSHED_AT_ONCE; redis->dirty.count != 0; left--) {
		uint32_t taken = last_dirty(redis, tenants, &count);
		if (left == 0 || (count != 0 && !limiter_redis_report(redis, tenants, count)))
			return false;
		for (; taken > 0; taken--)
			redis->tenants[redis->dirty.at[--redis->dirty.count]].dirty = false;
	}
	return true;
}

/* What does not leave now does a little later, or when Redis is back (on_ready). */
static void flush(struct limiter_redis *redis)
{
	const bool all = flush_dirty(redis);

	if (!limiter_redis_report_again(redis) || !all)
		limiter_redis_flush_soon(redis);
}

static void on_flush(struct net_timer *timer)
{
	flush(CONTAINER_OF(timer, struct limiter_redis, flush));
}

/* Every tenant with requests in flight: its leases begin anew, in one request. */
static void renew(struct limiter_redis *redis)
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
		limiter_redis_touch(redis, tenant);
	}
	redis->active.count = kept;
}

static void on_renew(struct net_timer *timer)
{
	struct limiter_redis *redis = CONTAINER_OF(timer, struct limiter_redis, renew);

	renew(redis);
	limiter_redis_ask_epoch(redis);
	net_timer_set(redis->loop, timer, net_now(redis->loop) + RENEW_EVERY);
}

/* ---- the connection ---- */

static struct limiter_redis *of_user(struct redis_user *user)
{
	return CONTAINER_OF(user, struct limiter_redis, user);
}

/* Places were taken and given back without Redis: what it holds of this worker is replaced. */
static void on_ready(struct redis_user *user)
{
	struct limiter_redis *redis = of_user(user);

	metrics_store_mode(redis->metrics, true, false);
	redis->generation++;
	limiter_redis_ask_epoch(redis);
	limiter_redis_end_waiting(redis);
	limiter_redis_go_on(redis);
	renew(redis);
	flush(redis);
}

static void on_unready(struct redis_user *user)
{
	metrics_store_mode(of_user(user)->metrics, true, true);
}

/* An attempt to connect: who waits for the first one need not wait for the next. */
static void on_failed(struct redis_user *user)
{
	limiter_redis_end_waiting(of_user(user));
	limiter_redis_go_on(of_user(user));
}

static void on_turned(struct redis_user *user)
{
	limiter_redis_go_on(of_user(user));
}

static void on_fault(struct redis_user *user, enum store_fault fault)
{
	metrics_store_fault(of_user(user)->metrics, fault);
}

static void on_measured(struct redis_user *user, enum redis_outcome outcome, bool late, nsec_t took)
{
	static const enum metrics_store_result results[] = { [REDIS_ANSWERED] = STORE_OK,
							     [REDIS_REFUSED] = STORE_ERROR,
							     [REDIS_LOST] = STORE_LOST };

	metrics_store(of_user(user)->metrics,
		      late && outcome != REDIS_LOST ? STORE_LATE : results[outcome], took);
}

static const struct redis_user_events user_events = { .ready = on_ready,
						      .unready = on_unready,
						      .failed = on_failed,
						      .turned = on_turned,
						      .fault = on_fault,
						      .measured = on_measured };

/* ---- the interface ---- */

static enum limiter_outcome redis_reserve(struct limiter *limiter, struct reservation *reservation)
{
	struct limiter_redis *redis = limiter_redis_of(limiter);

	must(reservation->scope_count >= 1 && reservation->scope_count <= RESERVATION_SCOPES_MAX);
	reservation->granted = reservation->fallback = false;
	reservation->waits = (struct list_link){ 0 };
	if (!limit_table_find(redis->table, reservation->scopes, reservation->scope_count)) {
		limiter_refuse(reservation, ERR_BUSY, NULL, 0);
		return LIMITER_DONE;
	}
	if (limiter_redis_claim(redis, reservation) || limiter_redis_persist(redis, reservation) ||
	    limiter_redis_await(redis, reservation))
		return LIMITER_PENDING;
	limiter_redis_fall_back(redis, reservation);
	return LIMITER_DONE;
}

static void redis_forget(struct limiter *limiter, struct reservation *reservation)
{
	struct limiter_redis *redis = limiter_redis_of(limiter);
	const bool sent = !list_has(&reservation->waits);

	limiter_redis_wait_no_more(redis, reservation);
	if (sent)
		reservation->call->reservation = NULL;
}

static uint32_t redis_series(struct limiter *limiter, const uint8_t key[16])
{
	struct limit_table *table = limiter_redis_of(limiter)->table;
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

static bool redis_build(struct limiter_redis *redis)
{
	redis->tenants = map_slots(redis->table, sizeof(*redis->tenants));
	redis->dirty.at = map_slots(redis->table, sizeof(*redis->dirty.at));
	redis->active.at = map_slots(redis->table, sizeof(*redis->active.at));
	redis->known.at = map_slots(redis->table, sizeof(*redis->known.at));
	if (redis->tenants == NULL || redis->dirty.at == NULL || redis->active.at == NULL ||
	    redis->known.at == NULL ||
	    !slab_init(&redis->calls, sizeof(struct limiter_call), REDIS_IN_FLIGHT_MAX))
		return false;
	must(getrandom(redis->me, sizeof(redis->me), 0) == (ssize_t)sizeof(redis->me));
	return true;
}

struct limiter_redis *limiter_redis_new(struct net_loop *loop, struct redis_link *link,
					const struct config_store *config,
					struct limit_table *table, struct metrics_worker *metrics)
{
	struct limiter_redis *redis = calloc(1, sizeof(*redis));

	if (redis == NULL)
		return NULL;
	*redis = (struct limiter_redis){
		.limiter = { .reserve = redis_reserve,
			     .settle = limiter_redis_settle,
			     .release = limiter_redis_release,
			     .undo = limiter_redis_undo,
			     .forget = redis_forget,
			     .series = redis_series },
		.magic = REDIS_MAGIC,
		.loop = loop,
		.table = table,
		.metrics = metrics,
		.link = link,
		.user = { .events = &user_events },
		.script = REDIS_SCRIPT_INIT(limits),
		.call_type = &call_type,
		.flush.fire = on_flush,
		.renew.fire = on_renew,
		.deadline = config->deadline,
		.longest = config->patience,
		.opening = true,
	};
	list_init(&redis->unsent);
	limiter_redis_begin_waiting(redis);
	if (!redis_build(redis))
		return NULL; /* the process ends: nothing to take apart */
	redis_link_join(link, &redis->user);
	redis_link_load(link, &redis->script);
	metrics_store_mode(metrics, true, true); /* until it is connected */
	metrics_store_fault(metrics, STORE_FAULT_CONNECTING);
	net_timer_set(loop, &redis->renew, net_now(loop) + RENEW_EVERY);
	return redis;
}

struct limiter *limiter_redis_limiter(struct limiter_redis *redis)
{
	return &redis->limiter;
}
