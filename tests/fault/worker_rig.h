/* worker_rig.h - a real worker in a world that a test owns: its memory, its store's answers, its
 * connections on both sides, its clock.
 *
 * What is defined here stands in for the modules codec/base/arena, http, net and upstream, whose objects
 * the linker therefore leaves out. To be included once per program, by its only source. */
#ifndef TESTS_FAULT_WORKER_RIG_H
#define TESTS_FAULT_WORKER_RIG_H

/* ---- memory: every take can be made to fail --------------------------------------------------- */

#include "codec/base/arena.h"

#define arena_take_more true_arena_take_more
#define arena_init_in true_arena_init_in
#define arena_give_end true_arena_give_end
#include "codec/base/arena.c"
#undef arena_take_more
#undef arena_init_in
#undef arena_give_end

#include "codec/base/must.h"
#include "gateway/jwt_checker.h"
#include "gateway/state_redis.h"
#include "gateway/worker_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The takes of a run, counted; the `fail`-th has no memory. 0: none has to fail. */
static struct {
	size_t count, fail;
} takes;

static bool take_fails(void)
{
	return ++takes.count == takes.fail;
}

void arena_init_in(struct arena *arena, struct arena_pool *pool, size_t cap, void *room,
		   size_t room_bytes)
{
	(void)room;
	(void)room_bytes;
	arena_init(arena, pool, cap);
}

void arena_give_end(struct arena *arena, char *from, char *end)
{
	(void)arena;
	(void)from;
	(void)end;
}

/* Every take comes here: an arena never has room left that could be taken in line. */
void *arena_take_more(struct arena *arena, size_t size)
{
	void *bytes = take_fails() ? NULL : true_arena_take_more(arena, size);

	arena->end = arena->at;
	return bytes;
}

/* ---- the world -------------------------------------------------------------------------------- */

struct http_exchange {
	int status; /* 0: not answered */
	char *body; /* malloc'ed, with a NUL behind it */
	size_t len;
	bool pieces, unsent, ended; /* an answer in pieces */
};
struct net_loop {
	char unused;
};
struct http_server {
	char unused;
};
struct upstream {
	char unused;
};
struct upstream_pool {
	char unused;
};

static struct world {
	struct worker *worker;
	struct http_handler handler;
	struct http_exchange exchange;
	nsec_t now;
	uint64_t wall_ns;
	struct net_message *posted; /* in their order */
	/* the provider */
	struct upstream_call *call; /* started, neither done nor cancelled */
	uint8_t sent[SHA256_BYTES]; /* digest of the last request that was sent */
	uint32_t buffers;           /* answers that were not given back */
	/* the store: what it says next, and what it was told */
	struct store store;
	enum { STORE_ASKS, STORE_REFUSES, STORE_WAITS } store_mode;
	struct limit_refusal refusal;
	struct reservation *pending;
	uint32_t granted, settled, placed, released, forgotten;
	uint32_t undone; /* as if never granted */
	/* other gateways: what is asked of them, and how much of it is held */
	struct once_claim *claim;
	uint32_t held;
	uint64_t reserved_usd, settled_usd; /* of all attempts */
} world;

static struct net_loop the_loop;
static struct http_server the_http;
static struct upstream the_upstream;
static struct upstream_pool the_pool;

/* ---- net.h ---- */
struct net_loop *net_loop_new(void)
{
	return &the_loop;
}

void net_loop_set_owner(struct net_loop *loop, void *owner)
{
	(void)loop;
	(void)owner;
}

nsec_t net_now(const struct net_loop *loop)
{
	(void)loop;
	return world.now;
}

uint64_t net_wall_ns(const struct net_loop *loop)
{
	(void)loop;
	return world.wall_ns;
}

void net_turn(struct net_loop *loop, nsec_t max_wait)
{
	(void)loop;
	(void)max_wait;
	abort(); /* this worker has no thread */
}

void net_timer_set(struct net_loop *loop, struct net_timer *timer, nsec_t due)
{
	(void)loop;
	timer->due = due;
	timer->place = 1;
}

void net_timer_stop(struct net_loop *loop, struct net_timer *timer)
{
	(void)loop;
	timer->place = 0;
}

/* As timers, tasks are set and never run: what they tell is no answer. */
void net_soon(struct net_loop *loop, struct net_task *task)
{
	(void)loop;
	task->prev = &task->next;
}

void net_task_cancel(struct net_task *task)
{
	task->prev = NULL;
}

/* Messages come when the test says so: rig_deliver. */
void net_post(struct net_loop *loop, struct net_message *message)
{
	struct net_message **last = &world.posted;

	(void)loop;
	while (*last != NULL)
		last = &(*last)->next;
	message->next = NULL;
	*last = message;
}

/* ---- http.h ---- */
struct http_server *http_server_new(struct net_loop *loop, const struct http_listener *listeners,
				    size_t listener_count, const struct http_handler *handler,
				    const struct http_limits *limits)
{
	(void)loop;
	(void)listeners;
	(void)listener_count;
	(void)limits;
	world.handler = *handler;
	return &the_http;
}

void http_answer(struct http_exchange *exchange, int status, const struct http_field *fields,
		 size_t field_count, const struct iovec *body, size_t body_count, size_t body_total)
{
	must(exchange->status == 0 && status != 0);
	must(field_count == 0 || fields != NULL);
	exchange->status = status;
	exchange->body = malloc(body_total + 1);
	must(exchange->body != NULL);
	for (size_t i = 0; i < body_count; i++) {
		must(exchange->len + body[i].iov_len <= body_total);
		if (body[i].iov_len > 0)
			memcpy(exchange->body + exchange->len, body[i].iov_base, body[i].iov_len);
		exchange->len += body[i].iov_len;
	}
	must(exchange->len == body_total);
	exchange->body[body_total] = '\0';
}

static void take_piece(struct http_exchange *exchange, const struct iovec *body, size_t count,
		       size_t total)
{
	exchange->body = realloc(exchange->body, exchange->len + total + 1);
	must(exchange->body != NULL);
	for (size_t i = 0; i < count; i++) {
		(void)memcpy(exchange->body + exchange->len, body[i].iov_base, body[i].iov_len);
		exchange->len += body[i].iov_len;
	}
	exchange->body[exchange->len] = '\0';
}

void http_begin_pieces(struct http_exchange *exchange, int status, const struct http_field *fields,
		       size_t field_count, struct slice first)
{
	const struct iovec piece = { (void *)(uintptr_t)first.at, first.len };

	must(exchange->status == 0 && first.len != 0);
	must(field_count != 0 && fields != NULL);
	exchange->status = status;
	exchange->pieces = exchange->unsent = true;
	take_piece(exchange, &piece, 1, first.len);
}

void http_more(struct http_exchange *exchange, struct slice more)
{
	const struct iovec piece = { (void *)(uintptr_t)more.at, more.len };

	must(exchange->status != 0 && !exchange->unsent && !exchange->ended && more.len != 0);
	exchange->unsent = true;
	take_piece(exchange, &piece, 1, more.len);
}

void http_end(struct http_exchange *exchange, const struct iovec *body, size_t body_count,
	      size_t body_total)
{
	must(exchange->status != 0 && !exchange->unsent && !exchange->ended && body_total != 0);
	exchange->ended = true;
	take_piece(exchange, body, body_count, body_total);
}

void http_refuse(struct http_exchange *exchange, int status, const struct http_field *fields,
		 size_t field_count, struct slice body)
{
	const struct iovec whole = { (void *)(uintptr_t)body.at, body.len };

	http_answer(exchange, status, fields, field_count, &whole, 1, body.len);
}

void http_set_limits(struct http_server *server, const struct http_limits *limits)
{
	(void)server;
	(void)limits;
}

const struct http_counters *http_counters(const struct http_server *server)
{
	(void)server;
	return NULL;
}

size_t http_in_flight(const struct http_server *server)
{
	(void)server;
	return 0;
}

size_t http_connections(const struct http_server *server)
{
	(void)server;
	return 0;
}

void http_set_tls(struct http_server *server, size_t n, struct ssl_ctx_st *tls)
{
	(void)server;
	(void)n;
	(void)tls;
}

void http_prepare_tls(struct ssl_ctx_st *tls)
{
	(void)tls;
}

void http_quiet(struct http_server *server)
{
	(void)server;
}

void http_stop_accepting(struct http_server *server)
{
	(void)server;
}

void http_shutdown(struct http_server *server)
{
	(void)server;
}

/* ---- upstream.h ---- */
const struct upstream_limits upstream_limits_default;

struct upstream *upstream_new(struct net_loop *loop, const struct upstream_limits *limits)
{
	(void)loop;
	(void)limits;
	return &the_upstream;
}

struct upstream_pool *upstream_pool_for(struct upstream *up, const struct endpoint *endpoint,
					char *problem, size_t room)
{
	(void)up;
	(void)endpoint;
	(void)snprintf(problem, room, "for a test");
	return &the_pool;
}

void upstream_set_expect(struct upstream *up, upstream_expect_fn *expect)
{
	(void)up;
	(void)expect;
}

void upstream_mark(struct upstream *up)
{
	(void)up;
}

bool upstream_is_marked(const struct upstream *up, struct slice identity)
{
	(void)up;
	(void)identity;
	return false;
}

void upstream_sweep(struct upstream *up)
{
	(void)up;
}

void upstream_resolved(struct upstream *up, struct slice identity,
		       const struct upstream_address *addresses, uint32_t count)
{
	(void)up;
	(void)identity;
	(void)addresses;
	(void)count;
}

struct upstream_counts upstream_count(const struct upstream *up, struct slice identity)
{
	(void)up;
	(void)identity;
	return (struct upstream_counts){ 0 };
}

void upstream_start(struct upstream_pool *pool, struct upstream_call *call)
{
	must(pool == &the_pool && world.call == NULL && call->done != NULL);
	must(call->request_count > 0 && call->deadline > world.now);
	struct sha256_sum sum;
	sha256_begin(&sum);
	for (uint32_t i = 0; i < call->request_count; i++)
		sha256_add(&sum, slice_of(call->request[i].iov_base, call->request[i].iov_len));
	sha256_end(&sum, world.sent);
	world.call = call;
}

void upstream_cancel(struct upstream_call *call)
{
	if (world.call == call)
		world.call = NULL;
}

void upstream_pause(struct upstream_call *call)
{
	call->paused = true;
}

void upstream_resume(struct upstream_call *call)
{
	call->paused = false;
}

void upstream_enough(struct upstream_call *call, bool good)
{
	must(call == world.call && call->in_pieces);
	call->wish = good ? UPSTREAM_ENOUGH : UPSTREAM_BAD;
}

void upstream_hold(struct upstream_pool *pool)
{
	(void)pool;
}

void upstream_let_go(struct upstream_pool *pool)
{
	(void)pool;
}

void upstream_finish(struct upstream_call *call)
{
	if (call->buffer == NULL)
		return;
	call->buffer = NULL;
	must(world.buffers > 0);
	world.buffers--;
}

/* ---- the store, between the worker and the memory store ---- */
static struct store *true_store(void)
{
	return &world.worker->memory.store;
}

static void rig_ask(struct reservation *reservation)
{
	must(true_store()->reserve(true_store(), reservation) == STORE_DONE);
	if (!reservation->granted)
		return;
	world.granted++;
	world.placed += reservation->ask.concurrent;
	world.reserved_usd += reservation->ask.usd;
}

static enum store_outcome rig_reserve(struct store *store, struct reservation *reservation)
{
	(void)store;
	must(world.pending == NULL);
	switch (world.store_mode) {
	case STORE_ASKS:
		rig_ask(reservation);
		return STORE_DONE;
	case STORE_REFUSES:
		reservation->granted = false;
		reservation->refusal = world.refusal;
		return STORE_DONE;
	case STORE_WAITS:
		break;
	}
	world.pending = reservation;
	return STORE_PENDING;
}

static uint64_t rig_settle(struct store *store, struct reservation *reservation, uint64_t tokens,
			   uint64_t usd, nsec_t now)
{
	(void)store;
	world.settled++;
	world.settled_usd += usd;
	return true_store()->settle(true_store(), reservation, tokens, usd, now);
}

static void rig_release(struct store *store, struct reservation *reservation)
{
	(void)store;
	world.released++;
	true_store()->release(true_store(), reservation);
}

static void rig_undo(struct store *store, struct reservation *reservation, nsec_t now)
{
	(void)store;
	world.undone++;
	world.granted--;
	world.placed -= reservation->ask.concurrent;
	world.reserved_usd -= reservation->ask.usd;
	true_store()->undo(true_store(), reservation, now);
}

static void rig_forget(struct store *store, struct reservation *reservation)
{
	(void)store;
	must(world.pending == reservation || world.pending == NULL);
	world.forgotten += world.pending != NULL;
	world.pending = NULL;
}

static uint32_t rig_series(struct store *store, const uint8_t key[16])
{
	(void)store;
	return true_store()->series(true_store(), key);
}

/* ---- what a test does ------------------------------------------------------------------------- */

/* What was posted to the worker arrives, and what is posted meanwhile. */
static void rig_deliver(void)
{
	for (struct net_message *message; (message = world.posted) != NULL;) {
		world.posted = message->next;
		message->run(message, world.worker);
	}
}

/* The store that has let the worker wait says what STORE_ASKS would have said. */
static inline void rig_store_answers(void)
{
	struct reservation *reservation = world.pending;

	must(reservation != NULL);
	world.pending = NULL;
	rig_ask(reservation);
	reservation->done(reservation);
}

/* The call in progress ends: with an answer if `err` is ERR_OK. */
static void rig_provider_ends(enum err err, bool bytes_sent, const struct provider_answer *answer)
{
	struct upstream_call *call = world.call;

	must(call != NULL);
	world.call = NULL;
	call->err = err;
	call->detail = err == ERR_OK ? NULL : "for a test";
	call->bytes_sent = bytes_sent;
	call->sent_at = bytes_sent ? world.now : 0;
	call->done_at = world.now;
	if (err == ERR_OK) {
		call->answer = *answer;
		call->buffer = (struct net_buffer *)(void *)&world; /* somebody's memory */
		world.buffers++;
	}
	call->done(call);
}

/* A notification that is due is written, and leaves. */
static void rig_tell(struct request *request)
{
	struct net_timer *timer = &request->told.timer;

	if (timer->place == 0 || timer->due > world.now)
		return;
	timer->place = 0;
	timer->fire(timer);
	if (!world.exchange.unsent)
		return;
	world.exchange.unsent = false;
	world.handler.ready(world.handler.owner, request);
}

/* The call in progress brings its answer as a stream, in two pieces; in between the caller is told. False:
 * it is not taken as one. The call still has to end. */
static inline bool rig_provider_streams(struct request *request,
					const struct provider_answer *answer)
{
	struct upstream_call *call = world.call;
	size_t half = answer->body.len / 2;

	call->answer = *answer;
	call->answer.body = slice_of(NULL, 0);
	call->sent_at = call->first_byte_at = world.now;
	call->wish = UPSTREAM_WANTED;
	call->in_pieces = call->head != NULL && call->head(call);
	if (!call->in_pieces)
		return false;
	if (half != 0)
		call->piece(call, slice_of(answer->body.at, half));
	if (call->wish == UPSTREAM_WANTED)
		rig_tell(request);
	if (call->wish == UPSTREAM_WANTED && answer->body.len != 0)
		call->piece(call, slice_of(answer->body.at + half, answer->body.len - half));
	return true;
}

/* The end of its stream. */
static inline void rig_stream_ends(void)
{
	struct upstream_call *call = world.call;

	world.call = NULL;
	call->err = ERR_OK;
	call->bytes_sent = true;
	call->done_at = world.now;
	call->done(call);
}

/* The time has come for which the request waits. */
static inline void rig_time_comes(struct request *request)
{
	struct net_timer *timer = &request->wait;

	must(timer->place != 0 && timer->due >= world.now);
	world.now = timer->due;
	timer->place = 0;
	timer->fire(timer);
}

static void rig_start(const struct config *config, struct limit_table *table,
		      struct metrics *metrics, struct log_ring *ring)
{
	static const int no_fds[CONFIG_LISTEN_MAX];
	static const struct state_bounds bounds = {
		.sessions = 64,
		.calls = 1024,
		.loops = 1024,
		.blocks_bytes = 1 << 20,
		.blocks_each = 1 << 16,
		.blocks_ttl = 3600 * SEC,
	};
	const struct worker_args args = {
		.state = state_memory_new(&bounds),
		.count = 1,
		.listen_fds = no_fds,
		.listen_count = config->listen_count,
		.limits = table,
		.metrics = metrics_worker(metrics, 0),
		.log = ring,
		.config = config,
	};

	must(args.state != NULL);
	world.worker = worker_new(&args);
	must(world.worker != NULL);
	world.worker->arenas.keep_max = 64;
	world.store = (struct store){ .reserve = rig_reserve,
				      .settle = rig_settle,
				      .release = rig_release,
				      .undo = rig_undo,
				      .forget = rig_forget,
				      .series = rig_series };
	world.worker->store = &world.store;
}

/* A worker is never taken apart in the product: the process ends with it. */
static void rig_end(void)
{
	struct worker *worker = world.worker;

	slab_fini(&worker->requests);
	stream_slab_fini(&worker->streams);
	state_memory_free(worker->args.state);
	arena_pool_fini(&worker->arenas);
	json_work_free(worker->json);
	jwt_checker_free(worker->tokens);
	key_memory_free(worker->keys);
	health_view_free(worker->providers.health);
	health_free(worker->health);
	free(worker->providers.pools);
	free(worker->providers.firsts);
	free(worker->healths);
	free(worker->pool_counts);
	free(worker);
	world.worker = NULL;
}

/* The state before a request; a day later, so that no limit remembers the last one. */
static void rig_reset(void)
{
	free(world.exchange.body);
	world.exchange = (struct http_exchange){ .status = 0 };
	world.now += 3600 * SEC;
	world.wall_ns += UINT64_C(86400) * SEC;
	world.store_mode = STORE_ASKS;
	world.granted = world.settled = world.placed = world.released = world.forgotten = 0;
	world.undone = 0;
	world.reserved_usd = world.settled_usd = 0;
	world.worker->given_up = false;
	takes.count = takes.fail = 0;
}

/* ---- the shared store: no configuration of these tests names one ---- */
struct store_redis *store_redis_new(struct net_loop *loop, const struct config_store *config,
				    struct limit_table *table, struct metrics_worker *metrics,
				    uint32_t worker, char *problem, size_t room)
{
	(void)loop;
	(void)config;
	(void)table;
	(void)metrics;
	(void)worker;
	(void)problem;
	(void)room;
	return NULL;
}

struct store *store_redis_store(struct store_redis *redis)
{
	(void)redis;
	return NULL;
}

void store_redis_end_turn(struct store_redis *redis)
{
	(void)redis;
}

void store_redis_use_login(struct store_redis *redis, const struct config_store *config)
{
	(void)redis;
	(void)config;
}

void store_redis_resolved(struct store_redis *redis, const struct upstream_address *addresses,
			  uint32_t count)
{
	(void)redis;
	(void)addresses;
	(void)count;
}

void store_redis_ask(struct store_redis *redis, struct store_question *question)
{
	(void)redis;
	(void)question;
}

struct state_redis *state_redis_new(struct net_loop *loop, struct store_redis *redis,
				    struct state_memory *memory, const struct config_store *config,
				    struct metrics_worker *metrics)
{
	(void)loop;
	(void)redis;
	(void)memory;
	(void)config;
	(void)metrics;
	return NULL;
}

struct state *state_redis_state(struct state_redis *redis)
{
	(void)redis;
	return NULL;
}

struct once_redis *once_redis_new(struct store_redis *redis, const uint8_t *gateway,
				  struct json_work *json, struct metrics_worker *metrics)
{
	(void)redis;
	(void)gateway;
	(void)json;
	(void)metrics;
	return NULL;
}

/* ---- other gateways, where a test gives the worker some ---- */
struct once_redis {
	char unused;
};
static struct once_redis the_others;

bool once_redis_claim(struct once_redis *redis, struct once_claim *claim)
{
	must(redis == &the_others && world.claim == NULL);
	claim->held = false;
	claim->pending = true;
	world.claim = claim;
	return true;
}

void once_redis_forget(struct once_redis *redis, struct once_claim *claim)
{
	must(redis == &the_others);
	if (!claim->pending)
		return;
	must(world.claim == claim);
	world.claim = NULL;
	claim->pending = false;
	claim->held = true;
	world.held++;
}

static void give_claim(const struct once_redis *redis, const struct once_claim *claim)
{
	must(redis == &the_others && (claim->held || claim->call->waited) && world.held > 0);
	world.held--;
}

void once_redis_end(struct once_redis *redis, const struct once_claim *claim, struct slice member)
{
	(void)member;
	give_claim(redis, claim);
}

void once_redis_drop(struct once_redis *redis, const struct once_claim *claim)
{
	give_claim(redis, claim);
}

/* What they say to the claim. */
static inline void rig_others_answer(enum once_verdict verdict)
{
	struct once_claim *claim = world.claim;

	must(claim != NULL);
	world.claim = NULL;
	claim->pending = false;
	claim->held = verdict == ONCE_LEADS;
	world.held += claim->held;
	claim->call->verdict = verdict;
	claim->done(claim);
}

struct flights_redis *flights_redis_new(struct store_redis *redis, struct flights *flights,
					const struct config_store *config)
{
	(void)redis;
	(void)flights;
	(void)config;
	return NULL;
}

void flights_redis_call_off(struct flights_redis *redis, struct state_key key)
{
	(void)redis;
	(void)key;
}

#endif
