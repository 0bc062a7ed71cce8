/* sampling_report.c - what is told of a request when it is over: its log line, counters, the tenant's last refusal. */
#include "gateway/sampling/sampling_core.h"

/* What an operator asks why: the limits' refusals and policy's. */
static bool is_refusal(enum err err)
{
	switch (err) {
	case ERR_BUDGET:
	case ERR_OVER_BUDGET:
	case ERR_POLICY:
	case ERR_MODEL_FORBIDDEN:
	case ERR_IMAGES_FORBIDDEN:
	case ERR_AUDIO_FORBIDDEN:
	case ERR_MAX_TOKENS_FORBIDDEN:
	case ERR_TOOL_ROUNDS:
	case ERR_LOOP_TOKENS:
	case ERR_LOOP_USD:
	case ERR_UNKNOWN_CALLS:
	case ERR_TOOLS_NOT_GRANTED:
	case ERR_OVER_BURST:
	case ERR_RATE_LIMITED:
	case ERR_CONCURRENCY:
		return true;
	default:
		return false;
	}
}

static void remember_refusal(const struct sampling_call *call)
{
	const struct reservation *reservation = &call->flow.reservation;
	const struct limit_note note = { .wall_s = net_wall_ns(call->core->loop) / SEC,
					 .err = call->flow.end.err,
					 .limit = limit_shown_name(reservation->refusal.holder,
								   reservation->refusal.limit),
					 .holder = reservation->refusal.holder };
	struct limit_slot *slot =
		limit_table_slot(call->core->limits, call->flow.ask->caller->limit_key);

	if (slot != NULL)
		limit_note(slot, &note);
}

/* What store and slots know nothing of: limits of the request's tool loop. */
static void count_loop_limit(const struct sampling_call *call)
{
	const enum err err = call->flow.end.err;
	const bool refused = err == ERR_LOOP_TOKENS || err == ERR_LOOP_USD;

	if (call->flow.state->loop.spent != NULL)
		metrics_limit(call->core->metrics, call->flow.state->loop.spent,
			      refused ? METRICS_REFUSED : METRICS_WOULD_REFUSE);
}

/* What became of it among its copies. */
static void count_copy(const struct sampling_call *call)
{
	static const enum metrics_idempotency results[] = {
		[IDEMPOTENCY_WAITS] = METRICS_IDEMPOTENCY_LATE,
		[IDEMPOTENCY_LEADS] = METRICS_IDEMPOTENCY_FIRST,
		[IDEMPOTENCY_ANSWERED] = METRICS_IDEMPOTENCY_ANSWERED,
		[IDEMPOTENCY_DONE] = METRICS_IDEMPOTENCY_DONE,
		[IDEMPOTENCY_CONFLICT] = METRICS_IDEMPOTENCY_CONFLICT,
		[IDEMPOTENCY_ELSEWHERE] = METRICS_IDEMPOTENCY_ELSEWHERE,
		[IDEMPOTENCY_FULL] = METRICS_IDEMPOTENCY_FULL,
		[IDEMPOTENCY_CROWDED] = METRICS_IDEMPOTENCY_FULL,
	};

	if (!call->flow.state->joined)
		return;
	metrics_idempotency(call->core->metrics, results[call->flow.state->copy.verdict]);
	if (call->flow.state->copy.verdict == IDEMPOTENCY_CROWDED)
		metrics_limit(call->core->metrics, "copies", METRICS_REFUSED);
}

void call_report(struct sampling_call *call, enum err how)
{
	struct sampling *core = call->core;
	struct flow *flow = &call->flow;
	struct log_request line;
	struct metrics_request sample;

	if (how != ERR_OK && flow->end.err == ERR_OK)
		flow->end.err = how;
	flow_report(flow, net_now(core->loop), &line, &sample);
	line.front = flow->front->name;
	if (flow->front->report != NULL)
		flow->front->report(flow->owner, &line);
	if (flow->ask->caller != NULL) {
		sample.tenant_series =
			core->limiter->series(core->limiter, flow->ask->caller->limit_key);
		if (is_refusal(flow->end.err))
			remember_refusal(call);
	}
	if (flow->caller.over_share)
		metrics_limit(core->metrics, "held_bytes", METRICS_REFUSED);
	if (flow->state != NULL) {
		count_loop_limit(call);
		count_copy(call);
	}
	(void)log_request(core->log, &line); /* a full ring counts what it drops */
	metrics_request(core->metrics, &sample);
}

void sampling_refused(struct sampling *core, const struct sampling_ask *ask,
		      const struct sampling_front *front, void *owner, enum err why)
{
	struct sampling_call call;

	call.core = core;
	flow_init(&call.flow, ask, front, owner);
	call_report(&call, why);
}
