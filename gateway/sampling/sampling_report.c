/* sampling_report.c - what is told of a request when it is over: its log line, counters, the tenant's last refusal. */
#include "gateway/worker/worker_parts.h"

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

static void remember_refusal(const struct request *r)
{
	const struct reservation *reservation = &r->flow.reservation;
	const struct limit_note note = { .wall_s = net_wall_ns(r->worker->loop) / SEC,
					 .err = r->flow.outcome,
					 .limit = reservation->refusal.limit,
					 .holder = reservation->refusal.holder };
	struct limit_slot *slot =
		limit_table_slot(r->worker->args.limits, r->flow.caller->limit_key);

	if (slot != NULL)
		limit_note(slot, &note);
}

/* What store and slots know nothing of: limits of the request's tool loop. */
static void count_loop_limit(const struct request *r)
{
	const enum err err = r->flow.outcome;
	const bool refused = err == ERR_LOOP_TOKENS || err == ERR_LOOP_USD;

	if (r->flow.state->loop.spent != NULL)
		metrics_limit(r->worker->args.metrics, r->flow.state->loop.spent,
			      refused ? METRICS_REFUSED : METRICS_WOULD_REFUSE);
}

/* What became of it among its copies. */
static void count_copy(const struct request *r)
{
	static const enum metrics_once results[] = {
		[ONCE_WAITS] = METRICS_ONCE_LATE,        [ONCE_LEADS] = METRICS_ONCE_FIRST,
		[ONCE_ANSWERED] = METRICS_ONCE_ANSWERED, [ONCE_DONE] = METRICS_ONCE_DONE,
		[ONCE_CONFLICT] = METRICS_ONCE_CONFLICT, [ONCE_ELSEWHERE] = METRICS_ONCE_ELSEWHERE,
		[ONCE_FULL] = METRICS_ONCE_FULL,         [ONCE_CROWDED] = METRICS_ONCE_FULL,
	};

	if (!r->flow.state->joined)
		return;
	metrics_once(r->worker->args.metrics, results[r->flow.state->once.verdict]);
	if (r->flow.state->once.verdict == ONCE_CROWDED)
		metrics_limit(r->worker->args.metrics, "copies", METRICS_REFUSED);
}

void worker_report(struct request *r, bool cut_short)
{
	struct worker *worker = r->worker;
	struct log_request line;
	struct metrics_request sample;

	if (cut_short && r->flow.outcome == ERR_OK)
		r->flow.outcome = ERR_CANCELLED;
	flow_report(&r->flow, net_now(worker->loop), &line, &sample);
	if (r->flow.caller != NULL)
		sample.tenant_series =
			worker->store->series(worker->store, r->flow.caller->limit_key);
	if (r->flow.caller != NULL && is_refusal(r->flow.outcome))
		remember_refusal(r);
	if (r->flow.over_share)
		metrics_limit(worker->args.metrics, "held_bytes", METRICS_REFUSED);
	if (r->flow.state != NULL) {
		count_loop_limit(r);
		count_copy(r);
	}
	(void)log_request(worker->args.log, &line); /* a full ring counts what it drops */
	metrics_request(worker->args.metrics, &sample);
}
