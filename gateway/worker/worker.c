/* worker.c - drives flows: does what they ask for and comes back with what happened. */
#include "gateway/worker/worker.h"

#include "codec/base/must.h"
#include "codec/set.h"
#include "gateway/state/state_redis.h"
#include "gateway/tls/tls_memory.h"
#include "gateway/worker/worker_parts.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

/* Request ids and invented call ids; the kernel is asked once per some hundred requests. */
static void take_random(struct worker *worker, uint8_t out[FLOW_CHANCE_BYTES])
{
	if (worker->random_left < FLOW_CHANCE_BYTES) {
		must(getrandom(worker->random, sizeof(worker->random), 0) ==
		     (ssize_t)sizeof(worker->random));
		worker->random_left = sizeof(worker->random);
	}
	worker->random_left -= FLOW_CHANCE_BYTES;
	(void)memcpy(out, worker->random + worker->random_left, FLOW_CHANCE_BYTES);
}

static struct flow_env worker_env(struct worker *worker)
{
	return (struct flow_env){
		.config = worker->config,
		.health = worker->providers.health,
		.json = worker->json,
		.tokens = worker->tokens,
		.keys = worker->keys,
		.refusals = worker->refusals,
		.streams = &worker->streams,
		.bodies = &worker->bodies,
		.now = net_now(worker->loop),
		.wall_ns = net_wall_ns(worker->loop),
		.stateful = true,
		.draining = worker->given_up,
		.crowded = worker->waiting_early >= WAITING_EARLY_MAX,
	};
}

/* ---- who waits for an answer ---- */
/* What do_wait began; harmless when nothing did. */
static void wait_over(struct request *r)
{
	net_timer_stop(r->worker->loop, &r->wait);
	r->worker->waiting_early -= r->early;
	r->early = false;
}

static void waiting_add(struct worker *worker, struct request *r)
{
	r->next = worker->waiting;
	r->place = &worker->waiting;
	if (r->next != NULL)
		r->next->place = &r->next;
	worker->waiting = r;
}

/* Harmless when it is not on the list. */
static void waiting_remove(struct request *r)
{
	if (r->place == NULL)
		return;
	*r->place = r->next;
	if (r->next != NULL)
		r->next->place = r->place;
	r->place = NULL;
}

/* ---- a request's end: the one place where everything it holds is given back ---- */
static void request_end(struct request *r, bool cut_short)
{
	struct worker *worker = r->worker;

	must_obj(r, REQUEST_MAGIC);
	waiting_remove(r);
	wait_over(r);
	worker_stream_fini(r);
	worker_state_end(r);
	upstream_cancel(&r->flow.call);
	upstream_finish(&r->flow.call);
	if (r->pool != NULL)
		upstream_let_go(r->pool);
	if (r->placed)
		worker->store->release(worker->store, flow_place(&r->flow));
	worker_report(r, cut_short);
	worker->panic.flow = NULL; /* its texts lie in the arena */
	if (r->flow.holder != 0)
		fair_share_sub(&worker->bodies.share, r->flow.holder, r->flow.in->body.len);
	arena_give(&r->arena);
	r->magic = 0;
	slab_give(&worker->requests, r);
}

/* ---- effects ---- */

static void on_provider_done(struct upstream_call *call)
{
	struct flow *flow = CONTAINER_OF(call, struct flow, call);

	worker_run(CONTAINER_OF(flow, struct request, flow), FLOW_PROVIDER_DONE);
}

/* False when there is no pool to send to: the call is over before it began. */
static bool do_send(struct request *r)
{
	struct upstream_call *call = &r->flow.call;

	upstream_finish(call); /* the attempt before */
	call->done = on_provider_done;
	worker_stream_begin(r);
	if (r->pool != NULL) {
		upstream_start(r->pool, call);
		return true;
	}
	upstream_outcome(call, ERR_PROVIDER_NO_ATTEMPT, "the endpoint's CA cannot be used");
	return false;
}

static void do_settle(struct request *r)
{
	struct store *store = r->worker->store;
	struct flow *flow = &r->flow;

	flow->overrun = store->settle(store, &flow->reservation, flow->settle_tokens,
				      flow->settle_usd, net_now(r->worker->loop));
	refusals_settled(r->worker->refusals, flow->caller->limit_key, net_now(r->worker->loop));
	if (!flow->called)
		return;
	const struct metrics_attempt attempt = flow_attempt_report(flow);
	metrics_attempt(r->worker->args.metrics, &attempt);
}

static void on_waited(struct net_timer *timer)
{
	struct request *r = CONTAINER_OF(timer, struct request, wait);

	wait_over(r);
	worker_run(r, FLOW_WAITED);
}

static void do_wait(struct request *r)
{
	upstream_finish(&r->flow.call); /* the answer of one that failed is not kept so long */
	r->early = !r->placed;
	r->worker->waiting_early += r->early;
	r->wait.fire = on_waited;
	net_timer_set(r->worker->loop, &r->wait, r->flow.wait_until);
}

/* Whether an answer waits for its reader by itself: a short one to who may never take it, while a body is held that
 * is large, or that no tenant's share counts. */
static bool is_left_alone(const struct flow *flow)
{
	enum { SHORT_MAX = 4 << 10, MUCH = 64 << 10 };

	return flow->answer.body.total <= SHORT_MAX &&
	       (flow->holder == 0 || flow->in->body.len >= MUCH);
}

/* With a copy, so that the place and the request's body are free at once; the answer may wait for long. */
static void leave_alone(struct request *r, struct slice body)
{
	const struct flow_answer *answer = &r->flow.answer;
	struct http_exchange *exchange = r->exchange;

	http_refuse(exchange, answer->status, answer->fields, answer->field_count, body);
	request_end(r, false);
	http_drop_body(exchange);
}

static void do_answer(struct request *r)
{
	const struct flow_answer *answer = &r->flow.answer;

	r->answered = true;
	waiting_remove(r);
	worker_stream_fini(r);
	worker_state_end(r);
	if (r->gone) {
		request_end(r, true);
		return;
	}
	if (r->flow.progress.begun) {
		worker_stream_end(r);
		return;
	}
	struct slice copy = { NULL, 0 };
	if (is_left_alone(&r->flow))
		copy = gather_flat(&answer->body, &r->arena);
	if (!slice_absent(copy))
		leave_alone(r, copy);
	else
		http_answer(r->exchange, answer->status, answer->fields, answer->field_count,
			    answer->body.v, answer->body.count, answer->body.total);
}

/* Until the flow waits or is over; `r` may be gone afterwards. */
static void request_drive(struct request *r, enum flow_event event)
{
	const struct flow_env env = worker_env(r->worker);

	must_obj(r, REQUEST_MAGIC);
	for (;;) {
		if (event == FLOW_RESERVED)
			worker_note_verdict(r);
		switch (flow_run(&r->flow, &env, event)) {
		case FLOW_RECALL:
			if (!worker_recall(r))
				return;
			event = FLOW_RECALLED;
			break;
		case FLOW_JOIN:
			if (!worker_join(r))
				return;
			event = FLOW_JOINED;
			break;
		case FLOW_REMEMBER:
			if (!worker_remember(r))
				return;
			event = FLOW_REMEMBERED;
			break;
		case FLOW_RESERVE:
			if (!worker_reserve(r))
				return;
			event = FLOW_RESERVED;
			break;
		case FLOW_AWAIT:
			return;
		case FLOW_GIVE_BACK:
			worker_give_back(r);
			event = FLOW_GIVEN_BACK;
			break;
		case FLOW_SEND:
			if (do_send(r))
				return;
			event = FLOW_PROVIDER_DONE;
			break;
		case FLOW_SETTLE:
			do_settle(r);
			event = FLOW_SETTLED;
			break;
		case FLOW_WAIT:
			do_wait(r);
			return;
		case FLOW_ANSWER:
			do_answer(r);
			return;
		case FLOW_END:
			request_end(r, true);
			return;
		}
	}
}

void worker_run(struct request *r, enum flow_event event)
{
	struct worker *worker = r->worker;

	worker->panic.flow = &r->flow;
	request_drive(r, event);
	worker->panic.flow = NULL;
}

void worker_answered(struct request *r, enum flow_ask what)
{
	enum flow_event event;

	if (flow_answered(&r->flow, what, net_now(r->worker->loop), &event))
		worker_run(r, event);
}

void worker_interrupt(struct request *r, enum flow_event event)
{
	must(!r->answered);
	worker_forget(r);
	wait_over(r);
	upstream_cancel(&r->flow.call);
	worker_run(r, event);
}

/* ---- what HTTP tells us ---- */
/* Log line and counters of a request that has no place. */
static void report_refused(struct worker *worker, const struct flow *flow)
{
	struct log_request line;
	struct metrics_request sample;

	flow_report(flow, net_now(worker->loop), &line, &sample);
	(void)log_request(worker->args.log, &line);
	metrics_request(worker->args.metrics, &sample);
}

/* Every place is taken: the answer does without one. */
static void refuse_busy(struct worker *worker, struct http_exchange *exchange,
			const struct http_incoming *in, const uint8_t random[FLOW_CHANCE_BYTES])
{
	struct flow flow;
	struct arena arena;

	arena_init(&arena, &worker->arenas, REQUEST_ARENA_MAX);
	flow_init(&flow, in, &arena, random, in->came_at, net_wall_ns(worker->loop));
	flow_refuse_busy(&flow);
	http_refuse(exchange, flow.answer.status, flow.answer.fields, flow.answer.field_count,
		    gather_flat(&flow.answer.body, &arena));
	report_refused(worker, &flow);
	arena_give(&arena);
	http_drop_body(exchange);
}

static bool on_expects(void *owner, struct http_early *early, const struct http_incoming *in)
{
	struct worker *worker = owner;
	const struct flow_env env = worker_env(worker);
	uint8_t random[FLOW_CHANCE_BYTES];
	struct flow flow;
	struct arena arena;

	take_random(worker, random);
	arena_init(&arena, &worker->arenas, REQUEST_ARENA_MAX);
	flow_init(&flow, in, &arena, random, in->came_at, net_wall_ns(worker->loop));
	const bool refused = flow_refuses_early(&flow, &env);
	if (refused) {
		http_refuse_early(early, flow.answer.status, flow.answer.fields,
				  flow.answer.field_count, gather_flat(&flow.answer.body, &arena));
		report_refused(worker, &flow);
	}
	arena_give(&arena);
	return !refused;
}

static void *on_begin(void *owner, struct http_exchange *exchange, const struct http_incoming *in)
{
	struct worker *worker = owner;
	struct request *r = slab_take(&worker->requests);
	uint8_t random[FLOW_CHANCE_BYTES];

	take_random(worker, random);
	if (r == NULL) {
		refuse_busy(worker, exchange, in, random);
		return NULL;
	}
	r->magic = REQUEST_MAGIC;
	r->placed = r->answered = r->gone = r->early = false;
	r->worker = worker;
	r->exchange = exchange;
	r->connection = (uint16_t)in->connection;
	r->pool = NULL;
	r->wait = (struct net_timer){ .place = 0 };
	worker_stream_init(r);
	waiting_add(worker, r);
	/* All of it is given back in request_end, which `gone` and `sent` lead to before they return. */
	arena_init_in(&r->arena, &worker->arenas, REQUEST_ARENA_MAX, in->room, in->room_bytes);
	flow_init(&r->flow, in, &r->arena, random, in->came_at,
		  net_wall_ns(worker->loop) - (net_now(worker->loop) - in->came_at));
	worker_run(r, FLOW_START);
	return r;
}

static void on_gone(void *owner, void *request)
{
	struct worker *worker = owner;
	struct request *r = request;

	must_obj(worker, WORKER_MAGIC);
	if (r->answered) {
		request_end(r, true);
		return;
	}
	r->gone = true;
	worker_interrupt(r, FLOW_CLIENT_GONE);
}

void worker_refuse_waiting(struct worker *worker)
{
	worker->given_up = true;
	while (worker->waiting != NULL)
		worker_interrupt(worker->waiting, FLOW_GIVEN_UP);
}

static void on_sent(void *owner, void *request)
{
	(void)owner;
	request_end(request, false);
}

static void on_ready(void *owner, void *request)
{
	(void)owner;
	worker_stream_ready(request);
}

/* ---- the thread ---- */
static void on_second(struct net_timer *timer)
{
	struct worker *worker = CONTAINER_OF(timer, struct worker, second);

	health_tick(worker->providers.health, net_now(worker->loop));
	worker_publish(worker);
	net_timer_set(worker->loop, timer, net_now(worker->loop) + SEC);
}

static void publish_turn(struct worker *worker)
{
	struct worker_shared *shared = &worker->shared;
	const struct metrics_gauges gauges = {
		.in_flight = http_in_flight(worker->http),
		.connections_open = http_connections(worker->http),
		.arena_chunks_high = worker->arenas.out_high,
		.requests_slab_high = worker->requests.out_high,
	};

	atomic_store_explicit(&shared->turned_ns, net_now(worker->loop), memory_order_relaxed);
	atomic_store_explicit(&shared->in_flight, gauges.in_flight, memory_order_relaxed);
	atomic_store_explicit(&shared->connections, gauges.connections_open, memory_order_relaxed);
	metrics_gauges(worker->args.metrics, &gauges);
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	char name[16];

	(void)snprintf(name, sizeof(name), "worker-%u", worker->args.index);
	(void)pthread_setname_np(pthread_self(), name); /* for top, gdb and strace */
	worker->slabs[0] = (struct panic_slab){ "requests", &worker->requests };
	worker->slabs[1] = (struct panic_slab){ "streams", &worker->streams.streams };
	worker->panic.slabs = worker->slabs;
	worker->panic.slab_count = COUNT_OF(worker->slabs);
	panic_set_context(&worker->panic);
	tls_memory_bound();
	for (;;) {
		net_turn(worker->loop, WORKER_TURN_MAX_MS * MSEC);
		/* Its answers leave with the next one: what others are to know of them goes first. */
		if (worker->redis != NULL)
			redis_client_end_turn(worker->redis);
		publish_turn(worker);
	}
	return NULL;
}

static bool use_redis(struct worker *worker)
{
	const struct worker_args *args = &worker->args;
	const struct config_store *config = &args->config->store;
	char problem[256];

	worker->redis =
		redis_client_new(worker->loop, config, args->index, problem, sizeof(problem));
	if (worker->redis == NULL) {
		(void)fprintf(stderr, "sluice: store: %s\n", problem);
		return false;
	}
	struct redis_link *link = redis_client_link(worker->redis);
	worker->shared_limits =
		store_redis_new(worker->loop, link, config, args->limits, args->metrics);
	struct state_redis *state =
		state_redis_new(worker->loop, link, args->state, config, args->metrics);
	worker->elsewhere =
		once_redis_new(worker->loop, link, args->alive, worker->json, args->metrics);
	/* One of the workers listens for all of them. */
	worker->flights_elsewhere =
		flights_redis_new(worker->redis, args->flights, args->index == 0 ? config : NULL);
	if (worker->shared_limits == NULL || state == NULL || worker->elsewhere == NULL ||
	    worker->flights_elsewhere == NULL ||
	    alive_redis_new(worker->loop, link, args->alive) == NULL)
		return false;
	worker->store = store_redis_store(worker->shared_limits);
	worker->state = state_redis_state(state);
	return true;
}

/* The codec is there once for every instruction set: the best one of this machine is used, unless the
 * environment names another (README). */
static bool use_codec(struct json_work *work)
{
	const char *wanted = getenv("SLUICE_CODEC");
	const struct codec_set *set =
		wanted == NULL ? codec_set_best() : codec_set_find(slice_str(wanted));

	if (set == NULL) {
		(void)fprintf(stderr,
			      "sluice: SLUICE_CODEC is \"%s\", which is no instruction set of this "
			      "build and machine\n",
			      wanted);
		return false;
	}
	json_work_use(work, set);
	return true;
}

static bool worker_build(struct worker *worker)
{
	const struct worker_args *args = &worker->args;
	const struct http_limits limits = worker_http_limits(worker, args->config);
	const struct http_handler handler = { .owner = worker,
					      .begin = on_begin,
					      .gone = on_gone,
					      .sent = on_sent,
					      .ready = on_ready,
					      .expects = on_expects };

	worker->loop = net_loop_new();
	worker->json = json_work_new(codec_set_best());
	worker->health = health_new();
	worker->tokens = jwt_checker_new();
	worker->keys = key_memory_new();
	worker->refusals = calloc(1, sizeof(*worker->refusals));
	worker->pool_counts = calloc(WORKER_PROVIDERS_MAX, sizeof(*worker->pool_counts));
	worker->healths = calloc(WORKER_PROVIDERS_MAX, sizeof(*worker->healths));
	worker->lessons = worker_lessons_new();
	if (worker->loop == NULL || worker->json == NULL || worker->health == NULL ||
	    worker->tokens == NULL || worker->keys == NULL || worker->refusals == NULL ||
	    worker->pool_counts == NULL || worker->healths == NULL || worker->lessons == NULL ||
	    !fair_share_map(&worker->bodies.share, REQUESTS_MAX, false) ||
	    !slab_init(&worker->requests, sizeof(struct request), REQUESTS_MAX) ||
	    !stream_slab_init(&worker->streams, STREAMS_MAX))
		return false;
	net_loop_set_owner(worker->loop, worker);
	inbox_init(&worker->inbox, worker->loop);
	if (!use_codec(worker->json))
		return false;
	if (args->config->store.redis && !use_redis(worker))
		return false;
	struct upstream_limits bounds = upstream_limits_default;
	bounds.workers = args->count;
	worker->upstream = upstream_new(worker->loop, &bounds);
	if (worker->upstream == NULL || !worker_use_config(worker, args->config, 1))
		return false;
	worker_stream_expect(worker->upstream);
	struct http_listener listeners[CONFIG_LISTEN_MAX];
	must(args->listen_count == args->config->listen_count);
	for (size_t i = 0; i < args->listen_count; i++)
		listeners[i] = (struct http_listener){
			.fd = args->listen_fds[i],
			.tls = args->config->listen[i].tls,
			.trusted_proxy = args->config->listen[i].trusted_proxy,
		};
	worker->http =
		http_server_new(worker->loop, listeners, args->listen_count, &handler, &limits);
	return worker->http != NULL;
}

struct worker *worker_new(const struct worker_args *args)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	must(args->count > 0 && args->index < args->count);
	if (worker == NULL)
		return NULL;
	worker->magic = WORKER_MAGIC;
	worker->args = *args;
	worker->arenas.keep_max = ARENA_CHUNKS_KEPT;
	store_memory_init(&worker->memory, args->limits);
	worker->store = &worker->memory.store;
	worker->state = state_memory_state(args->state);
	if (worker_build(worker))
		return worker;
	(void)fprintf(stderr, "sluice: worker %u: out of memory or descriptors\n", args->index);
	return NULL; /* the process ends: nothing to take apart */
}

int worker_start(struct worker *worker)
{
	/* Of the thread itself: who wants to report on them may. */
	static const int own_faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
	sigset_t all, before;
	pthread_t thread;

	worker->second.fire = on_second;
	net_timer_set(worker->loop, &worker->second, net_now(worker->loop) + SEC);
	(void)sigfillset(&all);
	for (size_t i = 0; i < COUNT_OF(own_faults); i++)
		(void)sigdelset(&all, own_faults[i]);
	int err = pthread_sigmask(SIG_SETMASK, &all, &before);
	if (err != 0)
		return err;
	err = pthread_create(&thread, NULL, worker_main, worker);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err != 0 ? err : pthread_detach(thread);
}

const struct worker_shared *worker_shared(const struct worker *worker)
{
	return &worker->shared;
}

const struct http_counters *worker_http_counters(const struct worker *worker)
{
	return http_counters(worker->http);
}
