/* mcp_sampling_answer.c - what a sampling's outcome is to its server, or to the round that it is of. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp_sampling_parts.h"

static void write_error(struct mcp_sampling *sampling, struct gather *body,
			const struct fault *fault, const struct error_data *data)
{
	sampling->status = err_info(fault->err)->status;
	jsonrpc_write_error(body, sampling->id, fault, data);
}

/* A drain is not the server's matter: -32603 (FRONTS 2, Leaving). */
static struct fault told(const struct fault *fault)
{
	struct fault out = *fault;

	if (out.err == ERR_DRAINING)
		out.err = ERR_SERVER_DRAINING;
	return out;
}

/* What is kept of an answer begins so, for whomever the copy is. */
static const struct slice before_result = SLICE_INIT("\"result\":");

static void write_result(struct mcp_sampling *sampling, struct gather *body,
			 const struct sampling_outcome *outcome)
{
	const struct result_meta meta = {
		.usd_nano = outcome->usd_nano,
		.model_id = outcome->model_id,
		.provider = outcome->provider,
		.attempts = outcome->attempts,
	};

	sampling->status = 200;
	if (sampling->entry != NULL)
		sampling_write_bare(body, outcome->result, mcp_link_revision(&sampling->link),
				    sampling->request.tools_present, &meta);
	else
		sampling_write_result(body, sampling->id, outcome->result,
				      mcp_link_revision(&sampling->link),
				      sampling->request.tools_present, &meta);
}

static const struct slice before_id = SLICE_INIT("{\"jsonrpc\":\"2.0\",\"id\":");

static void write_copy(struct mcp_sampling *sampling, struct gather *body,
		       const struct sampling_outcome *outcome)
{
	sampling->status = err_info(outcome->fault.err)->status;
	gather_raw(body, before_id);
	gather_raw(body, sampling->id);
	gather_lit(body, ",");
	gather_raw(body, outcome->copy);
	gather_lit(body, "}");
}

static void write_outcome(struct mcp_sampling *sampling, const struct sampling_outcome *outcome)
{
	struct gather *body = &sampling->answer;
	const struct fault fault = told(&outcome->fault);

	gather_init(body, &sampling->arena);
	if (outcome->end == SAMPLING_RESULT) {
		if (sampling->entry != NULL)
			gather_raw(body, before_result);
		write_result(sampling, body, outcome);
	} else if (outcome->end == SAMPLING_COPY) {
		write_copy(sampling, body, outcome);
	} else {
		write_error(sampling, body, &fault, &outcome->data);
	}
}

struct slice mcp_sampling_keep(void *owner, const struct sampling_outcome *outcome)
{
	struct mcp_sampling *sampling = owner;
	const size_t front = before_id.len + sampling->id.len + 1;

	sampling->kept = false;
	write_outcome(sampling, outcome);
	if (gather_done(&sampling->answer) != ERR_OK)
		return slice_of(NULL, 0);
	const struct slice whole = gather_flat(&sampling->answer, &sampling->arena);
	sampling->kept = !slice_absent(whole);
	if (sampling->entry != NULL && outcome->end == SAMPLING_RESULT)
		return whole;
	if (slice_absent(whole) || whole.len <= front + 1)
		return slice_of(NULL, 0);
	return slice_of(whole.at + front, whole.len - front - 1);
}

static void post_busy(struct mcp_sampling *sampling)
{
	const struct fault fault = { .err = ERR_BUSY, .offset = FAULT_NO_OFFSET };

	mcp_post_error(sampling->mcp, &sampling->link, sampling->id, &fault, NULL);
}

static void post_answer(struct mcp_sampling *sampling, const struct sampling_outcome *outcome)
{
	if (!sampling->kept)
		write_outcome(sampling, outcome);
	const bool written = sampling->kept || gather_done(&sampling->answer) == ERR_OK;
	/* The claim is over once the server has it. */
	const struct slice settles = sampling->claimed ? sampling->id_text : slice_of(NULL, 0);
	if (written && mcp_post_answer(sampling->mcp, &sampling->link, &sampling->answer, settles))
		sampling->claimed = false;
	else
		post_busy(sampling);
}

static void fail_entry(struct mcp_sampling *sampling, const struct fault *fault,
		       const struct error_data *data)
{
	sampling->status = err_info(fault->err)->status;
	sampling->entry->events->failed(sampling->entry, fault, data);
}

/* An entry of a round is answered with the bare result. */
static void tell_entry(struct mcp_sampling *sampling, const struct sampling_outcome *outcome)
{
	const struct fault busy = { .err = ERR_BUSY, .offset = FAULT_NO_OFFSET };
	const struct fault fault = told(&outcome->fault);

	if (outcome->end != SAMPLING_RESULT &&
	    (outcome->end != SAMPLING_COPY || outcome->fault.err != ERR_OK)) {
		fail_entry(sampling, &fault, &outcome->data);
		return;
	}
	gather_init(&sampling->answer, &sampling->arena);
	sampling->status = 200;
	if (outcome->end == SAMPLING_COPY) {
		const struct slice copy = outcome->copy;

		must(slice_starts(copy, before_result));
		gather_raw(&sampling->answer,
			   slice_of(copy.at + before_result.len, copy.len - before_result.len));
	} else {
		write_result(sampling, &sampling->answer, outcome);
	}
	if (gather_done(&sampling->answer) == ERR_OK)
		sampling->entry->events->answered(sampling->entry, &sampling->answer);
	else
		fail_entry(sampling, &busy, NULL);
}

void mcp_sampling_answer(struct mcp_sampling *sampling, const struct sampling_outcome *outcome)
{
	if (sampling->entry != NULL)
		tell_entry(sampling, outcome);
	else
		post_answer(sampling, outcome);
}
