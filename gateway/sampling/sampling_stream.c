/* sampling_stream.c - a provider's answer that comes as a stream, and what the front is told of it meanwhile. */
#include "gateway/sampling/sampling_core.h"

#include "codec/base/must.h"

static struct sampling_call *of_upstream(struct upstream_call *upstream)
{
	struct flow *flow = CONTAINER_OF(upstream, struct flow, call);

	return CONTAINER_OF(flow, struct sampling_call, flow);
}

/* ---- to the front ---- */

void call_admit(struct sampling_call *call)
{
	const struct flow *flow = &call->flow;

	if (call->admitted || flow->ask->relay == SAMPLING_SILENT)
		return;
	call->admitted = true;
	if (flow->front->admitted != NULL)
		flow->front->admitted(flow->owner, net_now(call->core->loop));
}

static void notify_progress(struct sampling_call *call, uint64_t output_bytes)
{
	const struct flow *flow = &call->flow;

	if (flow->ask->relay == SAMPLING_PROGRESS && flow->front->progress != NULL)
		flow->front->progress(flow->owner, output_bytes, net_now(call->core->loop));
}

static void relay_deltas(struct sampling_call *call)
{
	struct flow *flow = &call->flow;
	const nsec_t now = net_now(call->core->loop);
	struct stream_delta delta;

	while (stream_next_delta(flow->reading.stream, &call->cursor, flow->arena, &delta)) {
		flow->attempt.relayed = true;
		flow->front->delta(flow->owner, &delta, now);
	}
}

/* Of a stream that fails before anything of it was told, nothing is: another attempt may follow. */
static void relay(struct sampling_call *call, struct slice bytes, enum stream_state state)
{
	struct flow *flow = &call->flow;

	if (!flow_may_relay(flow) || (state == STREAM_FAILED && !flow->attempt.relayed))
		return;
	if (!flow->attempt.raw) {
		if (flow->front->delta != NULL)
			relay_deltas(call);
	} else if (flow->front->raw != NULL) {
		if (flow->front->raw(flow->owner, bytes, net_now(call->core->loop)))
			flow->attempt.relayed = true;
	}
}

/* ---- from the provider ---- */

static bool on_head(struct upstream_call *upstream)
{
	struct sampling_call *call = of_upstream(upstream);
	const struct sampling *core = call->core;

	if (!flow_stream_head(&call->flow, core->json, net_now(core->loop),
			      net_wall_ns(core->loop)))
		return false;
	call->notified = true;
	notify_progress(call, 0);
	return true;
}

static void on_piece(struct upstream_call *upstream, struct slice bytes)
{
	struct sampling_call *call = of_upstream(upstream);
	enum stream_state state = flow_stream_take(&call->flow, bytes, net_now(call->core->loop));

	if (state != STREAM_OPEN)
		upstream_enough(upstream, state == STREAM_DONE);
	else
		upstream_holds(upstream, flow_stream_held(&call->flow));
	notify_progress(call, call->flow.reading.stream->progress.output_bytes);
	if (call->flow.ask->relay == SAMPLING_DELTAS)
		relay(call, bytes, state);
}

void call_stream_ended(struct sampling_call *call)
{
	const struct flow *flow = &call->flow;

	if (flow->attempt.raw || flow->front->delta == NULL || !flow_may_relay(flow) ||
	    flow->call.err != ERR_OK ||
	    (stream_failed(flow->reading.stream) && !flow->attempt.relayed))
		return;
	call->cursor.ended = true;
	relay_deltas(call);
}

void call_stream_begin(struct sampling_call *call)
{
	struct upstream_call *upstream = &call->flow.call;

	upstream->head = call->flow.attempt.wants_stream ? on_head : NULL;
	upstream->piece = call->flow.attempt.wants_stream ? on_piece : NULL;
	if (call->flow.ask->relay == SAMPLING_SILENT)
		return;
	call->cursor = (struct stream_cursor){ .cap = 0 };
	call_admit(call);
}

void call_stream_failed(struct sampling_call *call)
{
	if (call->notified)
		notify_progress(call, 0);
	call->notified = false;
}

void sampling_pause(struct sampling_call *call)
{
	must_obj(call, CALL_MAGIC);
	upstream_pause(&call->flow.call);
}

void sampling_resume(struct sampling_call *call)
{
	must_obj(call, CALL_MAGIC);
	upstream_resume(&call->flow.call);
}

struct slice sampling_model_id(const struct sampling_call *call)
{
	must_obj(call, CALL_MAGIC);
	return call->flow.walk.model_id;
}

const struct provider_headers *sampling_provider_headers(const struct sampling_call *call)
{
	must(call->flow.reading.form != FLOW_WHOLE);
	return &call->flow.call.answer.headers;
}

bool sampling_attempt_is_over(const struct sampling_call *call)
{
	return call->flow.call.done_at != 0;
}

/* ---- before either ---- */

static void on_prefetch(struct upstream_call *upstream, enum prefetch step)
{
	const struct sampling_call *call = of_upstream(upstream);
	const struct flow *flow = &call->flow;

	if (step == PREFETCH_REQUEST) {
		prefetch_lines(call, 1);
		prefetch_lines(flow, 2);
		return;
	}
	if (flow->reading.form != FLOW_STREAMING)
		return;
	stream_prefetch(flow->reading.stream, step);
	if (flow->front->prefetch != NULL)
		flow->front->prefetch(flow->owner, step);
}

void sampling_prefetch_streams(struct upstream *up)
{
	_Static_assert(offsetof(struct sampling_call, soon) < PREFETCH_LINE, "one line");
	_Static_assert(offsetof(struct flow, call.request) <= 2 * PREFETCH_LINE, "two lines");
	upstream_set_prefetch(up, on_prefetch);
}
