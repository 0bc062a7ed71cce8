/* worker.c - the thread, its loop, and what is wired to it. */
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

void worker_refuse_waiting(struct worker *worker)
{
	worker->fronts.leaving = true;
	sampling_give_up(&worker->core);
	mcp_host_give_up(&worker->mcp);
}

/* ---- the thread ---- */
static void on_second(struct net_timer *timer)
{
	struct worker *worker = CONTAINER_OF(timer, struct worker, second);

	health_tick(worker->core.providers.health, net_now(worker->loop));
	worker_publish(worker);
	net_timer_set(worker->loop, timer, net_now(worker->loop) + SEC);
}

static void publish_turn(struct worker *worker)
{
	struct worker_shared *shared = &worker->shared;
	const struct metrics_gauges gauges = {
		.in_flight = http_in_flight(worker->http) + mcp_host_in_flight(&worker->mcp),
		.connections_open = http_connections(worker->http),
		.arena_chunks_high = worker->core.arenas.out_high,
		.requests_slab_high = worker->core.calls.out_high,
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
	worker->slabs[0] = (struct panic_slab){ "requests", &worker->core.calls };
	worker->slabs[1] = (struct panic_slab){ "streams", &worker->core.streams.streams };
	worker->panic.flow = &worker->core.running;
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
	struct sampling *core = &worker->core;
	char problem[256];

	worker->redis =
		redis_client_new(worker->loop, config, args->index, problem, sizeof(problem));
	if (worker->redis == NULL) {
		(void)fprintf(stderr, "sluice: store: %s\n", problem);
		return false;
	}
	struct redis_link *link = redis_client_link(worker->redis);
	worker->shared_limits =
		limiter_redis_new(worker->loop, link, config, args->limits, args->metrics);
	struct state_redis *state =
		state_redis_new(worker->loop, link, args->state, config, args->metrics);
	core->elsewhere =
		idempotency_redis_new(worker->loop, link, args->alive, core->json, args->metrics);
	/* One of the workers listens for all of them. */
	core->cancels_elsewhere =
		cancel_redis_new(worker->redis, args->cancels, args->index == 0 ? config : NULL);
	if (worker->shared_limits == NULL || state == NULL || core->elsewhere == NULL ||
	    core->cancels_elsewhere == NULL ||
	    alive_redis_new(worker->loop, link, args->alive) == NULL)
		return false;
	core->limiter = limiter_redis_limiter(worker->shared_limits);
	core->state = state_redis_state(state);
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

static bool build_core(struct worker *worker)
{
	const struct worker_args *args = &worker->args;
	struct sampling *core = &worker->core;
	struct upstream_limits bounds = upstream_limits_default;

	core->loop = worker->loop;
	core->limiter = &worker->memory.limiter;
	core->state = state_memory_state(args->state);
	core->idempotency = args->idempotency;
	core->cancels = args->cancels;
	core->limits = args->limits;
	core->metrics = args->metrics;
	core->log = args->log;
	core->json = json_work_new(codec_set_best());
	if (core->json == NULL || !use_codec(core->json))
		return false;
	if (args->config->store.redis && !use_redis(worker))
		return false;
	bounds.workers = args->count;
	core->upstream = worker->upstream = upstream_new(worker->loop, &bounds);
	return core->upstream != NULL && sampling_init(core);
}

#define FRONT(path, symbol) extern const struct front symbol;
#include "gateway/front/tbl/fronts.h"
#undef FRONT

static bool build_fronts(struct worker *worker)
{
	static const struct front_path paths[] = {
#define FRONT(path, symbol) { SLICE_INIT(path), &symbol },
#include "gateway/front/tbl/fronts.h"
#undef FRONT
	};

	worker->fronts = (struct front_host){ .paths = paths,
					      .path_count = COUNT_OF(paths),
					      .core = &worker->core,
					      .loop = worker->loop,
					      .arenas = &worker->core.arenas,
					      .json = worker->core.json,
					      .tokens = worker->core.tokens,
					      .keys = worker->core.keys,
					      .upstream = worker->upstream };
	return front_host_init(&worker->fronts) && worker_build_mcp(worker);
}

static bool build_http(struct worker *worker)
{
	const struct worker_args *args = &worker->args;
	const struct http_limits limits = worker_http_limits(worker, args->config);
	const struct http_handler handler = front_handler(&worker->fronts);
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

static bool worker_build(struct worker *worker)
{
	worker->loop = net_loop_new();
	worker->pool_counts = calloc(WORKER_PROVIDERS_MAX, sizeof(*worker->pool_counts));
	worker->healths = calloc(WORKER_PROVIDERS_MAX, sizeof(*worker->healths));
	worker->lessons = worker_lessons_new();
	if (worker->loop == NULL || worker->pool_counts == NULL || worker->healths == NULL ||
	    worker->lessons == NULL)
		return false;
	net_loop_set_owner(worker->loop, worker);
	if (!build_core(worker) || !build_fronts(worker))
		return false;
	return worker_use_config(worker, worker->args.config, 1) && build_http(worker);
}

struct worker *worker_new(const struct worker_args *args)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	must(args->count > 0 && args->index < args->count);
	if (worker == NULL)
		return NULL;
	worker->magic = WORKER_MAGIC;
	worker->args = *args;
	limiter_memory_init(&worker->memory, args->limits);
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
