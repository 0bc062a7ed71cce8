/* direct_answer.c - answers in the caller's own API: the provider's bytes, or an error in its shape. */
#include "gateway/front/api/direct.h"

#include "codec/api/api_answer.h"
#include "codec/api/api_redact.h"

/* ---- errors ---- */

static struct api_error error_of(const struct direct_call *call, const struct fault *fault,
				 const struct error_data *data)
{
	struct api_error error = {
		.fault = *fault,
		.data = data,
		.request_id = slice_of(call->ids.request_id, REQUEST_ID_HEX),
		.model = call->named,
	};

	if (slice_starts(fault->path, SLICE("."))) /* the core's: its paths go on behind ask.at */
		error.fault.path = slice_of(fault->path.at + 1, fault->path.len - 1);
	return error;
}

static void write_error(struct direct_call *call, const struct fault *fault,
			const struct error_data *data)
{
	const struct api_error error = error_of(call, fault, data);
	const struct api_error_row row = api_error_row(call->api, &error);

	direct_begin_answer(call, row.status, SLICE("application/json"));
	direct_add_retry(call, data == NULL ? -1 : data->retry_after_ms,
			 row.hint == API_HINT_NEVER);
	if (data != NULL)
		direct_add_field(call, SLICE("sluice-provider-request-id"),
				 data->provider_request_id);
	if (fault->err == ERR_HTTP_METHOD)
		direct_add_field(call, SLICE("allow"), call->allow);
	api_error_write(&call->answer.body, call->api, &error);
	if (gather_done(&call->answer.body) != ERR_OK) /* the status alone says it */
		direct_begin_answer(call, row.status, SLICE("application/json"));
}

bool direct_refuse(struct direct_call *call, const struct fault *fault,
		   const struct error_data *data)
{
	call->wrote = fault->err;
	call->detail = fault->detail;
	write_error(call, fault, data);
	return false;
}

bool direct_refuse_err(struct direct_call *call, enum err err)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };

	return direct_refuse(call, &fault, NULL);
}

struct slice direct_error_event(struct direct_call *call, const struct fault *fault,
				const struct error_data *data)
{
	const struct api_error error = error_of(call, fault, data);
	struct gather event;

	gather_init(&event, &call->arena);
	api_error_event(&event, call->api, &error);
	return gather_done(&event) == ERR_OK ? gather_flat(&event, &call->arena)
					     : slice_of(NULL, 0);
}

/* An account that is not as it should be is the operator's: its provider's words are none of the caller's. */
static bool is_callers(enum err err)
{
	return err != ERR_PROVIDER_OPERATOR && err != ERR_PROVIDER_BILLING;
}

struct slice direct_own_event(struct direct_call *call, enum err err)
{
	const struct direct_asked *asked = call->asked;
	const struct slice event = call->stream->error;

	if (slice_absent(event) || !is_callers(err))
		return slice_of(NULL, 0);
	return api_redact_event(call->api, event, asked->secrets, COUNT_OF(asked->secrets),
				call->host->json, &call->arena);
}

/* ---- the provider's ---- */

/* False: no memory. */
static bool put_answer(struct direct_call *call, const struct sampling_outcome *outcome)
{
	const struct slice body = outcome->answer->body;
	struct mcp_edits edits;

	mcp_edits_init(&edits, body, &call->arena);
	api_answer_edit(api_answer_model(call->api, body, outcome->result->model),
			call->asked->request.at[API_MODEL].text, &edits);
	return mcp_edits_write(&edits, &call->answer.body) == ERR_OK &&
	       gather_done(&call->answer.body) == ERR_OK;
}

/* A provider of another format has answered. */
static void write_crossed(struct direct_call *call, const struct sampling_outcome *outcome)
{
	const bool stream = call->stream != NULL;

	call->asked->adjustments = outcome->result->adjustments;
	direct_begin_answer(call, 200,
			    stream ? SLICE("text/event-stream") : SLICE("application/json"));
	direct_add_target(call, outcome->model_id, slice_of(NULL, 0));
	if (!stream)
		direct_add_usd(call, outcome->usd_nano);
	if (!direct_cross_answer(call, outcome))
		(void)direct_refuse_err(call, ERR_BUSY);
}

/* Our own number is never 0: a caller that trusts it would never shorten what it sends. */
static void put_estimate(struct direct_call *call)
{
	const struct direct_asked *asked = call->asked;
	const uint64_t tokens =
		sampling_count(&asked->view, call->in->body.len + asked->system.len);

	gather_lit(&call->answer.body, "{\"input_tokens\":");
	gather_uint(&call->answer.body, tokens == 0 ? 1 : tokens);
	gather_lit(&call->answer.body, "}");
}

/* Free, so nothing is said of money. Without a provider that counts: our own number, and that it is no more. */
static void write_count(struct direct_call *call, const struct sampling_outcome *outcome)
{
	const struct provider_answer *answer = outcome->answer;

	direct_begin_answer(call, 200, SLICE("application/json"));
	direct_add_target(call, outcome->model_id,
			  answer == NULL ? slice_of(NULL, 0) : answer->headers.request_id);
	if (answer == NULL) {
		direct_add_field(call, SLICE("sluice-estimated"), SLICE("1"));
		put_estimate(call);
	} else {
		gather_raw(&call->answer.body, answer->body);
	}
	if (gather_done(&call->answer.body) != ERR_OK)
		(void)direct_refuse_err(call, ERR_BUSY);
}

static void write_result(struct direct_call *call, const struct sampling_outcome *outcome)
{
	static const struct fault no_answer = { .err = ERR_PROVIDER_ANSWER,
						.offset = FAULT_NO_OFFSET };
	const struct provider_answer *answer = outcome->answer;

	if (call->api == API_COUNT) {
		write_count(call, outcome);
		return;
	}
	if (answer == NULL && call->asked->raw.crossed) {
		write_crossed(call, outcome);
		return;
	}
	if (answer == NULL ||
	    call->stream != NULL) { /* it came in the other form than was asked for */
		(void)direct_refuse(call, &no_answer, NULL);
		return;
	}
	direct_begin_answer(call, 200, SLICE("application/json"));
	direct_add_target(call, outcome->model_id, answer->headers.request_id);
	direct_add_usd(call, outcome->usd_nano);
	if (!put_answer(call, outcome))
		(void)direct_refuse_err(call, ERR_BUSY);
}

/* A provider's own words about the request, which clients recover by. False: there are none that may pass. */
static bool write_own_words(struct direct_call *call, const struct sampling_outcome *outcome)
{
	const struct provider_answer *answer = outcome->answer;
	const enum err err = outcome->fault.err;

	if (answer == NULL || (err != ERR_PROVIDER_REJECTED && err != ERR_CONTEXT_WINDOW) ||
	    (answer->status != 400 && answer->status != 413 && answer->status != 422))
		return false;
	const struct slice body =
		api_redact(call->api, answer->body, call->asked->secrets,
			   COUNT_OF(call->asked->secrets), call->host->json, &call->arena);
	if (slice_absent(body))
		return false;
	direct_begin_answer(call, answer->status, SLICE("application/json"));
	direct_add_field(call, SLICE("sluice-provider-request-id"), answer->headers.request_id);
	gather_raw(&call->answer.body, body);
	return gather_done(&call->answer.body) == ERR_OK;
}

void direct_write(struct direct_call *call, const struct sampling_outcome *outcome)
{
	if (call->kept)
		return;
	switch (outcome->end) {
	case SAMPLING_RESULT:
		write_result(call, outcome);
		return;
	case SAMPLING_REFUSED:
		if (!write_own_words(call, outcome))
			write_error(call, &outcome->fault, &outcome->data);
		return;
	case SAMPLING_COPY:
		direct_write_copy(call, outcome);
		return;
	case SAMPLING_NO_SAMPLE:
	case SAMPLING_CANCELLED:
		break;
	}
	(void)direct_refuse_err(call, ERR_INTERNAL);
}

void direct_write_stream_head(struct direct_call *call)
{
	direct_begin_answer(call, 200, SLICE("text/event-stream"));
	direct_add_field(call, SLICE("cache-control"), SLICE("no-cache, no-transform"));
	direct_add_field(call, SLICE("x-accel-buffering"), SLICE("no"));
	direct_add_target(call, sampling_model_id(call->call),
			  sampling_provider_headers(call->call)->request_id);
}

void direct_report(const void *owner, struct log_request *line)
{
	const struct direct_call *call = owner;

	line->agent = &call->agent;
	line->status = line->err == ERR_CANCELLED ? 499 : call->answer.status;
	if (call->detail != NULL && line->detail == NULL)
		line->detail = call->detail;
	direct_report_name(call, line);
}
