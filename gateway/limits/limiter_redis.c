#include "gateway/limits/limiter_redis.h"

#include "codec/base/must.h"
#include "gateway/limits/limiter_redis_parts.h"
#include "gateway/limits/limiter_redis_script.h"
#include "gateway/tls/tls.h"
#include "tenants/limit.h"

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/un.h>

#define RENEW_EVERY (10 * SEC) /* a third of a lease */
#define FLUSH_AFTER (2 * MSEC)

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

static void grant(struct store_redis *redis, struct reservation *reservation,
		  const struct redis_verdict *verdict)
{
	enum { BITS = 5, MASK = (1 << BITS) - 1 };

	reservation->granted = true;
	reservation->wall_s = verdict->server_s; /* it is settled in the period that was charged */
	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		note_over(&reservation->scopes[i], verdict->over >> (i * BITS) & MASK);
		store_redis_note_told(store_redis_tenant(redis, reservation, i), verdict->server_s,
				      reservation->ask.usd);
	}
	limit_count(reservation->scopes, reservation->scope_count, &reservation->ask,
		    net_now(redis->loop), verdict->server_s);
	store_redis_hold_places(redis, reservation);
}

/* Granted, but nobody waits for it any more. */
static void undo(struct store_redis *redis, const struct redis_request *request,
		 const struct redis_verdict *verdict)
{
	enum { BITS = 5 };

	for (uint32_t i = 0; i < request->part_count; i++) {
		const struct redis_part *part = &request->parts[i];
		struct redis_tenant *tenant = &redis->tenants[part->tenant];
		const uint32_t over = verdict->over >> (i * BITS);
		store_redis_note_told(tenant, verdict->server_s, request->usd);
		store_redis_owe(tenant, verdict->server_s, 0, request->usd);
		store_redis_owe_times(
			tenant, &(struct redis_owed){
					.requests_rate = part->owed.requests_rate,
					.tokens_rate = part->owed.tokens_rate,
					.requests_less = (over & 1) == 0 ? part->requests_cost : 0,
					.tokens_less = (over & 2) == 0 ? part->tokens_cost : 0,
				});
		tenant->given_back += request->places;
		store_redis_touch(redis, tenant);
	}
}

static void take_refusal(struct reservation *reservation, const struct redis_verdict *verdict)
{
	static const struct {
		enum err err;
		enum limit limit;
	} rows[] = {
		[REDIS_REQUESTS] = { ERR_RATE_LIMITED, LIMIT_requests_per_minute },
		[REDIS_TOKENS] = { ERR_RATE_LIMITED, LIMIT_tokens_per_minute },
		[REDIS_PLACES] = { ERR_CONCURRENCY, LIMIT_concurrent },
		[REDIS_DAY] = { ERR_BUDGET, LIMIT_usd_per_day },
		[REDIS_MONTH] = { ERR_BUDGET, LIMIT_usd_per_month },
		[REDIS_OVER_BURST] = { ERR_OVER_BURST, LIMIT_tokens_per_minute },
		[REDIS_OVER_DAY] = { ERR_OVER_BUDGET, LIMIT_usd_per_day },
		[REDIS_OVER_MONTH] = { ERR_OVER_BUDGET, LIMIT_usd_per_month },
	};

	_Static_assert(COUNT_OF(rows) == REDIS_VERDICTS, "every verdict has a row");
	must(verdict->code != REDIS_GRANTED && verdict->code < COUNT_OF(rows));
	store_refuse(reservation, rows[verdict->code].err,
		     limit_info(rows[verdict->code].limit)->name, verdict->wait_ns);
	reservation->refusal.left = verdict->left;
	reservation->refusal.budget = verdict->budget;
	reservation->wall_s = verdict->server_s; /* of whose day and month it speaks */
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
	return request->reservation != NULL && store_redis_claim(redis, request->reservation);
}

/* The state of every scope as Redis has it now knows all that this worker has told. One that is new,
 * though it was told of before, is a sign that all are. */
static void note_births(struct store_redis *redis, const struct redis_request *request,
			const struct redis_verdict *verdict)
{
	static const uint8_t never[REDIS_BIRTH_BYTES];

	for (uint32_t i = 0; i < request->part_count; i++) {
		uint8_t *birth = redis->tenants[request->parts[i].tenant].birth;
		if (memcmp(birth, verdict->births[i], REDIS_BIRTH_BYTES) == 0)
			continue;
		if (memcmp(birth, never, sizeof(never)) != 0)
			store_redis_ask_birth(redis);
		(void)memcpy(birth, verdict->births[i], REDIS_BIRTH_BYTES);
	}
}

static void take_verdict(struct store_redis *redis, const struct redis_request *request,
			 const struct redis_verdict *verdict)
{
	struct reservation *reservation = request->reservation;

	if (reservation != NULL)
		store_redis_waited(redis, reservation, true);
	note_births(redis, request, verdict);
	if (request->kind == REDIS_TOP_UP)
		store_redis_note_top_up(redis, request, REDIS_ANSWERED, verdict->server_s);
	else if (reservation == NULL && request->kind == REDIS_CLAIM && verdict->code == 0)
		undo(redis, request, verdict);
	else if (reservation != NULL && verdict->code == 0)
		grant(redis, reservation, verdict);
	else if (reservation != NULL)
		take_refusal(reservation, verdict);
}

static void on_done(void *owner, const struct redis_request *request, enum redis_outcome outcome,
		    const struct redisReply *reply)
{
	struct store_redis *redis = owner;
	struct reservation *reservation = request->reservation;
	struct redis_verdict verdict;

	if (request->kind == REDIS_GUEST) {
		request->guest->done(request->guest, request, outcome, reply);
		return;
	}
	if (request->kind == REDIS_READ) {
		store_redis_note_read(request, outcome, reply);
		return;
	}
	if (request->kind == REDIS_BIRTH) {
		store_redis_note_birth(redis, outcome, reply);
		return;
	}
	if (outcome == REDIS_ANSWERED && redis_read_verdict(reply, request->part_count, &verdict)) {
		take_verdict(redis, request, &verdict);
	} else {
		for (uint32_t i = 0; i < request->part_count; i++)
			store_redis_part_back(redis, &request->parts[i], outcome != REDIS_REFUSED);
		if (outcome == REDIS_REFUSED && ask_again(redis, request, reply))
			return;
		if (request->kind == REDIS_TOP_UP)
			store_redis_note_top_up(redis, request,
						outcome == REDIS_ANSWERED ? REDIS_LOST : outcome,
						0);
		if (reservation != NULL) {
			store_redis_waited(redis, reservation, false);
			store_redis_decide_away(redis, reservation);
		}
	}
	if (reservation != NULL)
		reservation->done(reservation);
}

static void on_late(void *owner, struct redis_request *request)
{
	struct reservation *reservation = request->reservation;

	if (request->kind == REDIS_GUEST)
		request->guest->late(request->guest, request);
	if (reservation == NULL || store_redis_bear_with(owner, reservation))
		return;
	request->reservation = NULL;
	store_redis_decide_away(owner, reservation);
	reservation->done(reservation);
}

/* ---- write-behind ---- */

void store_redis_flush_soon(struct store_redis *redis)
{
	if (redis->flush.place == 0 && redis_link_ready(redis->link))
		net_timer_set(redis->loop, &redis->flush, net_now(redis->loop) + FLUSH_AFTER);
}

/* The last of those that are dirty, and, of the same tenant, what became dirty with it. Returns how many
 * places of the list that is; *count of them have something to tell. */
static uint32_t last_dirty(const struct store_redis *redis,
			   struct redis_tenant *tenants[REDIS_SCOPES_MAX], uint32_t *count)
{
	uint32_t taken = 0;

	*count = 0;
	while (taken < redis->dirty.count && *count < REDIS_SCOPES_MAX) {
		struct redis_tenant *tenant =
			&redis->tenants[redis->dirty.at[redis->dirty.count - taken - 1]];
		if (*count != 0 && memcmp(tenant->tag, tenants[0]->tag, sizeof(tenant->tag)) != 0)
			break;
		if (store_redis_has_news(tenant))
			tenants[(*count)++] = tenant;
		taken++;
	}
	return taken;
}

/* False: not all of it. */
static bool flush_dirty(struct store_redis *redis)
{
	struct redis_tenant *tenants[REDIS_SCOPES_MAX];
	uint32_t count;

	for (uint32_t left = FLUSHED_AT_ONCE; redis->dirty.count != 0; left--) {
		uint32_t taken = last_dirty(redis, tenants, &count);
		if (left == 0 || (count != 0 && !store_redis_tell(redis, tenants, count)))
			return false;
		for (; taken > 0; taken--)
			redis->tenants[redis->dirty.at[--redis->dirty.count]].dirty = false;
	}
	return true;
}

/* What does not leave now does a little later, or when Redis is back (on_ready). */
static void flush(struct store_redis *redis)
{
	const bool all = flush_dirty(redis);

	if (!store_redis_tell_again(redis) || !all)
		store_redis_flush_soon(redis);
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
		store_redis_touch(redis, tenant);
	}
	redis->active.count = kept;
}

static void on_renew(struct net_timer *timer)
{
	struct store_redis *redis = CONTAINER_OF(timer, struct store_redis, renew);

	renew(redis);
	store_redis_ask_birth(redis);
	net_timer_set(redis->loop, timer, net_now(redis->loop) + RENEW_EVERY);
}

static void tell_guests(struct store_redis *redis, bool ready)
{
	for (struct redis_guest *guest = redis->guests; guest != NULL; guest = guest->next)
		guest->settled(guest, ready);
}

/* Places were taken and given back without Redis: what it holds of this worker is replaced. */
static void on_ready(void *owner)
{
	struct store_redis *redis = owner;

	metrics_store_mode(redis->metrics, true, false);
	redis->generation++;
	redis->loaded = true; /* with the greeting */
	store_redis_ask_birth(redis);
	store_redis_end_waiting(redis);
	store_redis_go_on(redis);
	renew(redis);
	flush(redis);
	tell_guests(redis, true);
}

static void on_unready(void *owner)
{
	struct store_redis *redis = owner;

	metrics_store_mode(redis->metrics, true, true);
}

/* An attempt to connect: who waits for the first one need not wait for the next. */
static void on_failed(void *owner)
{
	store_redis_end_waiting(owner);
	store_redis_go_on(owner);
	tell_guests(owner, false);
}

static void on_turned(void *owner)
{
	store_redis_go_on(owner);
}

static void on_fault(void *owner, enum store_fault fault)
{
	const struct store_redis *redis = owner;

	metrics_store_fault(redis->metrics, fault);
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
						      .failed = on_failed,
						      .turned = on_turned,
						      .fault = on_fault,
						      .measured = on_measured };

/* ---- the interface ---- */

static enum store_outcome redis_reserve(struct store *store, struct reservation *reservation)
{
	struct store_redis *redis = store_redis_of(store);

	must(reservation->scope_count >= 1 && reservation->scope_count <= RESERVATION_SCOPES_MAX);
	reservation->granted = reservation->away = false;
	if (!limit_table_find(redis->table, reservation->scopes, reservation->scope_count)) {
		store_refuse(reservation, ERR_BUSY, NULL, 0);
		return STORE_DONE;
	}
	if (store_redis_claim(redis, reservation) || store_redis_persist(redis, reservation) ||
	    store_redis_await(redis, reservation))
		return STORE_PENDING;
	store_redis_decide_away(redis, reservation);
	return STORE_DONE;
}

static void redis_forget(struct store *store, struct reservation *reservation)
{
	struct store_redis *redis = store_redis_of(store);

	if (!store_redis_wait_no_more(redis, reservation) &&
	    !store_redis_await_no_more(redis, reservation))
		redis_link_request(redis->link, reservation->ticket)->reservation = NULL;
}

static uint32_t redis_series(struct store *store, const uint8_t key[16])
{
	struct limit_table *table = store_redis_of(store)->table;
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
	redis->tenants = map_slots(redis->table, sizeof(*redis->tenants));
	redis->dirty.at = map_slots(redis->table, sizeof(*redis->dirty.at));
	redis->active.at = map_slots(redis->table, sizeof(*redis->active.at));
	redis->known.at = map_slots(redis->table, sizeof(*redis->known.at));
	if (redis->tenants == NULL || redis->dirty.at == NULL || redis->active.at == NULL ||
	    redis->known.at == NULL)
		return false;
	must(getrandom(redis->me, sizeof(redis->me), 0) == (ssize_t)sizeof(redis->me));
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

/* A connection to the configured Redis, for whatever `args` says it is for. NULL with words in `problem`
 * likewise. */
static struct redis_link *connect_as(struct store_redis *redis, const struct config_store *config,
				     struct redis_link_args *args, char *problem, size_t room)
{
	args->loop = redis->loop;
	args->user = config->user;
	args->password = config->password;
	args->database = config->database;
	args->deadline = config->deadline;
	args->name = config->name.at;
	target_of(config, args);
	if (config->tls) {
		args->tls = tls_client_new(config->host.at, config->ca_pem, problem, room);
		if (args->tls == NULL)
			return NULL;
	}
	_Static_assert(sizeof(args->seed) == sizeof(redis->me), "chance for the pauses");
	(void)memcpy(&args->seed, redis->me, sizeof(args->seed));
	return redis_link_new(args);
}

static bool redis_connect(struct store_redis *redis, const struct config_store *config,
			  uint32_t worker, char *problem, size_t room)
{
	struct redis_link_args args = {
		.events = &link_events,
		.owner = redis,
		.script = slice_of(limits_lua, limits_lua_len),
		.quiet = worker != 0,
		.sniffs = worker == 0,
	};

	redis->link = connect_as(redis, config, &args, problem, room);
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
			   .settle = store_redis_settle,
			   .release = store_redis_release,
			   .undo = store_redis_undo,
			   .forget = redis_forget,
			   .series = redis_series },
		.magic = REDIS_MAGIC,
		.loop = loop,
		.table = table,
		.metrics = metrics,
		.flush.fire = on_flush,
		.renew.fire = on_renew,
		.port = config->port,
		.deadline = config->deadline,
		.longest = config->patience,
		.opening = true,
	};
	redis->unsent_end = &redis->unsent;
	store_redis_begin_waiting(redis);
	if (!redis_build(redis) || !redis_connect(redis, config, worker, problem, room))
		return NULL;                     /* the process ends: nothing to take apart */
	metrics_store_mode(metrics, true, true); /* until it is connected */
	metrics_store_fault(metrics, STORE_FAULT_CONNECTING);
	net_timer_set(loop, &redis->renew, net_now(loop) + RENEW_EVERY);
	return redis;
}

struct store *store_redis_store(struct store_redis *redis)
{
	return &redis->store;
}

struct redis_link *store_redis_join(struct store_redis *redis, struct redis_guest *guest)
{
	guest->next = redis->guests;
	redis->guests = guest;
	return redis->link;
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
	if (redis->listener != NULL)
		redis_link_set_targets(redis->listener, targets, count);
}

void store_redis_end_turn(struct store_redis *redis)
{
	redis_link_flush(redis->link);
}

void store_redis_use_login(struct store_redis *redis, const struct config_store *config)
{
	redis_link_set_login(redis->link, config->user, config->password);
	if (redis->listener != NULL)
		redis_link_set_login(redis->listener, config->user, config->password);
}

bool store_redis_listen(struct store_redis *redis, const struct config_store *config,
			struct slice channel, const struct redis_link_events *events, void *owner)
{
	struct redis_link_args args = {
		.events = events,
		.owner = owner,
		.channel = channel,
		.quiet = true, /* what is wrong with the other connection is told of that */
	};
	char problem[256];

	must(redis->listener == NULL);
	redis->listener = connect_as(redis, config, &args, problem, sizeof(problem));
	return redis->listener != NULL;
}
