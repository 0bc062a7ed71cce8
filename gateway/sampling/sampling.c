/* sampling.c - drives calls: does what their flows ask for and comes back with what happened. */
#include "gateway/sampling/sampling.h"

#include "codec/base/must.h"
#include "gateway/sampling/sampling_core.h"

#include <stdlib.h>
#include <sys/random.h>

/* The kernel is asked for random bytes once per some hundred calls. */
void sampling_new_ids(struct sampling *core, struct slice traceparent, struct sampling_ids *ids)
{
	if (core->random_left < SAMPLING_CHANCE_BYTES) {
		must(getrandom(core->random, sizeof(core->random), 0) ==
		     (ssize_t)sizeof(core->random));
		core->random_left = sizeof(core->random);
	}
	core->random_left -= SAMPLING_CHANCE_BYTES;
	sampling_ids_make(ids, core->random + core->random_left, traceparent);
}

/* ---- what waits for an outcome ---- */

/* What do_wait began; harmless when nothing did. */
static void wait_over(struct sampling_call *call)
{
	if (call->wait.place != 0)
		net_timer_stop(call->core->loop, &call->wait);
	call->core->waiting_early -= call->early;
	call->early = false;
}

/* ---- a call's end: the one place where everything it holds is given back ---- */

static void give_stream(struct sampling_call *call)
{
	stream_give(&call->core->streams, call->flow.reading.stream);
	call->flow.reading.stream = NULL;
}

/* It waits for nothing any more. */
static void settle_down(struct sampling_call *call)
{
	if (list_has(&call->waits))
		list_remove(&call->waits);
	wait_over(call);
	if (call->flow.reading.stream != NULL)
		give_stream(call);
	if (call->flow.state != NULL)
		call_notify_others(call);
}

void sampling_end(struct sampling_call *call, enum err how)
{
	struct sampling *core = call->core;
	struct flow *flow = &call->flow;

	must_obj(call, CALL_MAGIC);
	if (call->phase != CALL_DECIDED) {
		settle_down(call);
		upstream_cancel(&flow->call);
	} else if (call->soon.prev != NULL) {
		net_task_cancel(&call->soon);
	}
	upstream_finish(&flow->call);
	if (call->pool != NULL)
		upstream_let_go(call->pool);
	if (call->placed)
		core->limiter->release(core->limiter, flow_place(flow));
	call_report(call, how);
	core->running = NULL; /* its texts lie in the front's arena */
	if (flow->caller.holder != 0)
		fair_share_sub(&core->bodies.share, flow->caller.holder, flow->ask->body.len);
	call->magic = 0;
	slab_give(&core->calls, call);
}

/* ---- effects ---- */

static void on_provider_done(struct upstream_call *upstream)
{
	struct flow *flow = CONTAINER_OF(upstream, struct flow, call);

	struct sampling_call *call = CONTAINER_OF(flow, struct sampling_call, flow);

	if (flow->ask->relay == SAMPLING_DELTAS)
		call_stream_ended(call);
	call_run(call, FLOW_PROVIDER_DONE);
}

/* False when there is no pool to send to: the call is over before it began. */
static bool do_send(struct sampling_call *call)
{
	struct upstream_call *upstream = &call->flow.call;

	upstream_finish(upstream); /* the attempt before */
	upstream->done = on_provider_done;
	call_stream_begin(call);
	if (call->pool != NULL) {
		upstream_start(call->pool, upstream);
		return true;
	}
	upstream_outcome(upstream, ERR_PROVIDER_NO_ATTEMPT, "the endpoint's CA cannot be used");
	return false;
}

static void do_settle(struct sampling_call *call)
{
	struct limiter *limiter = call->core->limiter;
	struct flow *flow = &call->flow;

	flow->charge.overrun = limiter->settle(limiter, &flow->reservation, flow->charge.tokens,
					       flow->charge.usd, net_now(call->core->loop));
	refusals_settled(call->core->refusals, flow->ask->caller->limit_key,
			 net_now(call->core->loop));
	if (!flow->attempt.called)
		return;
	if (flow->retries.phase == FLOW_FAILING)
		call_stream_failed(call);
	const struct metrics_attempt attempt = flow_attempt_report(flow);
	metrics_attempt(call->core->metrics, &attempt);
}

static void on_waited(struct net_timer *timer)
{
	struct sampling_call *call = CONTAINER_OF(timer, struct sampling_call, wait);

	wait_over(call);
	call_run(call, FLOW_WAITED);
}

static void do_wait(struct sampling_call *call)
{
	upstream_finish(&call->flow.call); /* the answer of one that failed is not kept so long */
	call->early = !call->placed;
	call->core->waiting_early += call->early;
	call->wait.fire = on_waited;
	net_timer_set(call->core->loop, &call->wait, call->flow.retries.wait_until);
}

/* Tells the front; the call may be gone afterwards. */
static void deliver_outcome(struct sampling_call *call)
{
	call->flow.front->done(call->flow.owner, &call->flow.out);
}

static void on_soon(struct net_task *task)
{
	deliver_outcome(CONTAINER_OF(task, struct sampling_call, soon));
}

static void do_answer(struct sampling_call *call)
{
	const enum call_phase before = call->phase;

	call->phase = CALL_DECIDED;
	settle_down(call);
	if (before == CALL_LEFT)
		sampling_end(call, ERR_CANCELLED);
	else if (before == CALL_BEGINS)
		net_soon(call->core->loop, &call->soon);
	else
		deliver_outcome(call);
}

/* Until the flow waits or is over; `call` may be gone afterwards. */
static void drive(struct sampling_call *call, enum flow_event event)
{
	struct sampling *core = call->core;
	struct flow_env *env = &core->env;

	must_obj(call, CALL_MAGIC);
	env->now = net_now(core->loop);
	env->wall_ns = net_wall_ns(core->loop);
	env->crowded = core->waiting_early >= WAITING_EARLY_MAX;
	for (;;) {
		if (event == FLOW_RESERVED)
			call_note_verdict(call);
		switch (flow_run(&call->flow, env, event)) {
		case FLOW_LOAD:
			if (!call_load(call))
				return;
			event = FLOW_LOADED;
			break;
		case FLOW_JOIN:
			if (!call_join(call))
				return;
			event = FLOW_JOINED;
			break;
		case FLOW_SAVE:
			if (!call_save(call))
				return;
			event = FLOW_SAVED;
			break;
		case FLOW_RESERVE:
			if (!call_reserve(call))
				return;
			event = FLOW_RESERVED;
			break;
		case FLOW_AWAIT:
			return;
		case FLOW_GIVE_BACK:
			call_give_back(call);
			event = FLOW_GIVEN_BACK;
			break;
		case FLOW_SEND:
			if (do_send(call))
				return;
			event = FLOW_PROVIDER_DONE;
			break;
		case FLOW_SETTLE:
			do_settle(call);
			event = FLOW_SETTLED;
			break;
		case FLOW_WAIT:
			do_wait(call);
			return;
		case FLOW_ANSWER:
			do_answer(call);
			return;
		case FLOW_END:
			sampling_end(call, ERR_CANCELLED);
			return;
		}
	}
}

void call_run(struct sampling_call *call, enum flow_event event)
{
	struct sampling *core = call->core;

	core->running = &call->flow;
	drive(call, event);
	core->running = NULL;
}

void call_answered(struct sampling_call *call, enum flow_pending what)
{
	enum flow_event event;

	if (flow_answered(&call->flow, what, net_now(call->core->loop), &event))
		call_run(call, event);
}

void call_interrupt(struct sampling_call *call, enum flow_event event)
{
	must(call->phase != CALL_DECIDED);
	call_forget(call);
	wait_over(call);
	upstream_cancel(&call->flow.call);
	call_run(call, event);
}

/* ---- from the front ---- */

struct sampling_call *sampling_begin(struct sampling *core, const struct sampling_ask *ask,
				     const struct sampling_front *front, void *owner)
{
	struct sampling_call *call = slab_take(&core->calls);

	must(ask->caller != NULL);
	if (call == NULL)
		return NULL;
	call->magic = CALL_MAGIC;
	call->phase = CALL_BEGINS;
	call->placed = call->early = call->admitted = call->notified = false;
	call->core = core;
	call->pool = NULL;
	call->soon = (struct net_task){ .run = on_soon };
	call->wait = (struct net_timer){ .place = 0 };
	call->waits = (struct list_link){ .next = NULL };
	list_add(&core->waiting, &call->waits);
	flow_init(&call->flow, ask, front, owner);
	call_run(call, core->given_up ? FLOW_GIVEN_UP : FLOW_START);
	if (call->phase == CALL_BEGINS) /* it is there: nothing ends it while it begins */
		call->phase = CALL_RUNS;
	return call;
}

uint64_t sampling_count(const struct sampling_request *request, size_t body_bytes)
{
	return flow_estimate_input(request, body_bytes);
}

void sampling_abandon(struct sampling_call *call)
{
	must_obj(call, CALL_MAGIC);
	if (call->phase == CALL_DECIDED) {
		sampling_end(call, ERR_CANCELLED);
		return;
	}
	call->phase = CALL_LEFT;
	call_interrupt(call, FLOW_CLIENT_GONE);
}

/* ---- from the worker ---- */

void sampling_give_up(struct sampling *core)
{
	core->given_up = true;
	for (struct list_link *link; (link = list_first(&core->waiting)) != NULL;)
		call_interrupt(CONTAINER_OF(link, struct sampling_call, waits), FLOW_GIVEN_UP);
}

bool sampling_init(struct sampling *core)
{
	core->magic = SAMPLING_MAGIC;
	list_init(&core->waiting);
	core->arenas.keep_max = ARENA_CHUNKS_KEPT;
	core->health = health_new();
	core->tokens = jwt_checker_new();
	core->keys = key_cache_new();
	core->refusals = calloc(1, sizeof(*core->refusals));
	inbox_init(&core->inbox, core->loop);
	if (core->health == NULL || core->tokens == NULL || core->keys == NULL ||
	    core->refusals == NULL || !fair_share_map(&core->bodies.share, REQUESTS_MAX, false) ||
	    !slab_init(&core->calls, sizeof(struct sampling_call), REQUESTS_MAX) ||
	    !stream_slab_init(&core->streams, STREAMS_MAX))
		return false;
	sampling_prefetch_streams(core->upstream);
	core->env = (struct flow_env){ .json = core->json,
				       .tokens = core->tokens,
				       .keys = core->keys,
				       .refusals = core->refusals,
				       .streams = &core->streams,
				       .bodies = &core->bodies,
				       .stateful = true };
	return true;
}

void sampling_use_config(struct sampling *core, const struct config *config,
			 struct health_view *health)
{
	core->config = core->env.config = config;
	core->env.health = health;
}
