/* flow_refuse.c - how a call ends without an answer of its own: refused by a step, or given up after attempts. */
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"

enum flow_move flow_refuse(struct flow *flow, const struct fault *fault,
			   const struct error_data *data)
{
	must(fault->err != ERR_OK);
	flow->end.err = fault->err;
	if (flow->end.detail == NULL)
		flow->end.detail = fault->detail;
	flow->out.fault = *fault;
	flow->out.data = data != NULL ? *data : error_data_none;
	return FLOW_REFUSED;
}

enum flow_move flow_refuse_err(struct flow *flow, enum err err)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };

	return flow_refuse(flow, &fault, NULL);
}

enum flow_move flow_refuse_verdict(struct flow *flow, const struct verdict *verdict)
{
	struct error_data data = error_data_none;
	const struct fault fault = { .err = verdict->err,
				     .offset = FAULT_NO_OFFSET,
				     .detail = verdict->detail };

	data.rule = verdict->rule;
	return flow_refuse(flow, &fault, &data);
}

void flow_take_back(struct flow *flow)
{
	flow->end.err = ERR_OK;
	flow->end.detail = NULL;
	flow->end.copy = NULL;
}

/* ---- after attempts ---- */

/* "attempts":N as a member of data, and the failure's own; absent without memory, or when there was no
 * attempt. */
static struct slice attempts_member(struct flow *flow, struct slice particulars)
{
	struct gather g;

	if (flow->retries.attempts == 0)
		return slice_of(NULL, 0);
	gather_init(&g, flow->arena);
	gather_lit(&g, "\"attempts\":");
	gather_uint(&g, flow->retries.attempts);
	if (!slice_absent(particulars))
		gather_lit(&g, ",");
	gather_raw(&g, particulars);
	return gather_done(&g) == ERR_OK ? gather_flat(&g, flow->arena) : slice_of(NULL, 0);
}

enum flow_move flow_refuse_failure(struct flow *flow, const struct flow_failure *failure)
{
	const struct provider_failure *why = &failure->why;
	const struct fault fault = { .err = why->err,
				     .offset = FAULT_NO_OFFSET,
				     .detail = why->detail };
	struct error_data data = error_data_none;

	flow->end.detail = failure->detail;
	data.provider_status = why->status;
	data.retryable = why->retryable;
	/* what the provider says, else what we know */
	data.retry_after_ms = why->retry_after_ms;
	if (data.retry_after_ms < 0 && why->retryable && failure->back_ms > 0)
		data.retry_after_ms = failure->back_ms;
	data.provider_request_id = why->request_id;
	data.extra = attempts_member(flow, failure->particulars);
	return flow_refuse(flow, &fault, &data);
}

enum flow_move flow_give_up(struct flow *flow)
{
	if (flow->end.result != NULL) /* a second answer was wished for, and did not come */
		return FLOW_ANSWERED;
	must(flow->retries.reported != NULL);
	return flow_counts(flow) ? flow_count_give_up(flow)
				 : flow_refuse_failure(flow, flow->retries.reported);
}

enum flow_move flow_give_up_busy(struct flow *flow)
{
	return flow->end.result != NULL ? FLOW_ANSWERED : flow_refuse_err(flow, ERR_BUSY);
}
