/* worker_rig.h - a real worker in a world that a test owns: its memory, its limiter's answers, its
 * connections on both sides, its clock.
 *
 * What is defined here and in the parts stands in for modules whose objects the linker therefore leaves out. To be
 * included once per program, by its only source. */
#ifndef TESTS_FAULT_WORKER_RIG_H
#define TESTS_FAULT_WORKER_RIG_H

#include "gateway/front/mcp/mcp_opened.h"
#include "tests/fault/fake_http.h"
#include "tests/fault/fake_limiter.h"
#include "tests/fault/fake_peers.h"
#include "tests/fault/fake_upstream.h"
#include "tests/fault/world.h"

/* What was posted to the worker arrives, and what is posted meanwhile. */
static inline void rig_deliver(void)
{
	for (struct net_message *message; (message = world.posted) != NULL;) {
		world.posted = message->next;
		message->run(message, world.worker);
	}
}

/* The limiter that has let the worker wait says what LIMITER_ASKS would have said. */
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
static void rig_notify(struct rpc_call *call)
{
	struct net_timer *timer = &call->notify.timer;

	world_turn_ends();
	if (!rpc_progress_wanted(&call->progress))
		return;
	if (timer->place != 0 && timer->due <= world.now) {
		timer->place = 0;
		timer->fire(timer);
	}
	if (!world.exchange.unsent)
		return;
	world.exchange.unsent = false;
	world.handler.ready(world.handler.owner, call);
}

/* The call in progress brings its answer as a stream, in two pieces; in between the caller is told. False:
 * it is not taken as one. The call still has to end. */
static inline bool rig_provider_streams(struct rpc_call *call, const struct provider_answer *answer)
{
	struct upstream_call *upstream = world.call;
	size_t half = answer->body.len / 2;

	upstream->answer = *answer;
	upstream->answer.body = slice_of(NULL, 0);
	upstream->sent_at = upstream->first_byte_at = world.now;
	upstream->wish = UPSTREAM_WANTED;
	upstream->in_pieces = upstream->head != NULL && upstream->head(upstream);
	if (!upstream->in_pieces)
		return false;
	if (half != 0)
		upstream->piece(upstream, slice_of(answer->body.at, half));
	if (upstream->wish == UPSTREAM_WANTED)
		rig_notify(call);
	if (upstream->wish == UPSTREAM_WANTED && answer->body.len != 0)
		upstream->piece(upstream,
				slice_of(answer->body.at + half, answer->body.len - half));
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
static inline void rig_time_comes(struct rpc_call *call)
{
	struct net_timer *timer = &call->call->wait;

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
	static const struct seal_secret secret = { .at = "of the tests" };
	const struct worker_args args = {
		.seal_secret = &secret,
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
	world.worker->core.arenas.keep_max = 64;
	world.limiter = (struct limiter){ .reserve = rig_reserve,
					  .settle = rig_settle,
					  .release = rig_release,
					  .undo = rig_undo,
					  .forget = rig_forget,
					  .series = rig_series };
	world.worker->core.limiter = &world.limiter;
}

/* A worker is never taken apart in the product: the process ends with it. */
static void rig_end(void)
{
	struct worker *worker = world.worker;

	slab_fini(&worker->core.calls);
	slab_fini(&worker->fronts.records);
	slab_fini(&worker->mcp.samplings);
	slab_fini(&worker->mcp.posts);
	slab_fini(&worker->mcp.owns);
	seal_free(worker->mcp.seal);
	mcp_opened_free(worker->mcp.opened);
	free(worker->fronts.mcp_pools);
	stream_slab_fini(&worker->core.streams);
	state_memory_free(worker->args.state);
	arena_pool_fini(&worker->core.arenas);
	arena_pool_fini(&worker->mcp.resting);
	json_work_free(worker->core.json);
	jwt_checker_free(worker->core.tokens);
	key_cache_free(worker->core.keys);
	health_view_free(worker->core.providers.health);
	health_free(worker->core.health);
	free(worker->core.providers.pools);
	free(worker->core.providers.firsts);
	free(worker->healths);
	free(worker->core.refusals);
	free(worker->lessons);
	fair_share_unmap(&worker->core.bodies.share);
	free(worker->pool_counts);
	free(worker);
	world.worker = NULL;
}

/* The state before a request; a day later if the last one has spent anything, so that no limit remembers that. (Days on
 * which nothing is asked may not be many in a row: limit_take.c.) */
static void rig_reset(void)
{
	free(world.exchange.body);
	world.exchange = (struct http_exchange){ .status = 0 };
	world.now += 3600 * SEC;
	world.wall_ns += world.reserved_usd != 0 ? UINT64_C(86400) * SEC : 0;
	world.limiter_mode = LIMITER_ASKS;
	world.granted = world.settled = world.placed = world.released = world.forgotten = 0;
	world.undone = 0;
	world.reserved_usd = world.settled_usd = 0;
	world.worker->core.given_up = world.worker->fronts.leaving = false;
	takes.count = takes.fail = 0;
}

#endif
