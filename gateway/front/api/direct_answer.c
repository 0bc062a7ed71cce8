/* direct_answer.c - answers in the caller's own API: the provider's bytes, or an error in its shape. */
#include "gateway/front/api/direct.h"

#include "codec/api/api_answer.h"
#include "codec/api/api_redact.h"
#include "codec/base/must.h"

#include <stdio.h>

void direct_add_field(struct direct_call *call, struct slice name, struct slice value)
{
	struct direct_answer *answer = &call->answer;

	must(answer->field_count < COUNT_OF(answer->fields));
	if (!slice_absent(value))
		answer->fields[answer->field_count++] = (struct http_field){ name, value };
}

/* Both names of the id: each SDK reads one. */
void direct_begin_answer(struct direct_call *call, int status, struct slice content_type)
{
	const struct slice id = slice_of(call->ids.request_id, REQUEST_ID_HEX);

	call->answer.status = status;
	call->answer.field_count = 0;
	gather_init(&call->answer.body, &call->arena);
	direct_add_field(call, SLICE("content-type"), content_type);
	direct_add_field(call, SLICE("request-id"), id);
	direct_add_field(call, SLICE("x-request-id"), id);
}

/* ---- errors ---- */

static void add_retry(struct direct_call *call, int64_t wait_ms, bool never)
{
	struct api_header headers[API_RETRY_HEADERS];
	const size_t count = api_retry_headers(wait_ms, never, &call->arena, headers);

	for (size_t i = 0; i < count; i++)
		direct_add_field(call, headers[i].name, headers[i].value);
}

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
	add_retry(call, data == NULL ? -1 : data->retry_after_ms, row.hint == API_HINT_NEVER);
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

/* ---- the provider's ---- */

/* "a, b"; absent: none, or no memory. */
static struct slice adjustments_of(const struct direct_call *call, struct arena *into)
{
	const struct direct_asked *asked = call->asked;
	struct gather list;

	gather_init(&list, into);
	for (int i = 0; i < ADJUST_COUNT; i++) {
		if ((asked->adjustments & ADJUST_BIT(i)) == 0)
			continue;
		if (gather_offset(&list) != 0)
			gather_lit(&list, ", ");
		gather_raw(&list, slice_str(adjustment_code((enum adjustment)i)));
	}
	if (asked->store_disabled) {
		if (gather_offset(&list) != 0)
			gather_lit(&list, ", ");
		gather_lit(&list, "store_disabled");
	}
	if (gather_done(&list) != ERR_OK || list.total == 0)
		return slice_of(NULL, 0);
	return gather_flat(&list, into);
}

static void add_outcome(struct direct_call *call, const struct sampling_outcome *outcome)
{
	direct_add_field(call, SLICE("sluice-model"), outcome->model_id);
	direct_add_field(call, SLICE("sluice-adjustments"), adjustments_of(call, &call->arena));
}

/* Exactly: nine digits behind the point. */
static struct slice usd_text(uint64_t nano, struct arena *into)
{
	enum { ROOM = 40, NANO = 1000000000 };
	char *text = arena_take(into, ROOM);

	if (text == NULL)
		return slice_of(NULL, 0);
	const int len = snprintf(text, ROOM, "%llu.%09llu", (unsigned long long)(nano / NANO),
				 (unsigned long long)(nano % NANO));
	return slice_of(text, (size_t)len);
}

/* False: no memory. */
static bool put_answer(struct direct_call *call, const struct provider_answer *answer)
{
	struct mcp_edits *edits = arena_take(&call->arena, sizeof(*edits));
	struct api_answer read;

	if (edits == NULL)
		return false;
	mcp_edits_init(edits, answer->body, &call->arena);
	if (api_answer_read(call->api, answer->body, &read))
		api_answer_edit(&read, call->asked->request.at[API_MODEL].text, edits);
	return mcp_edits_write(edits, &call->answer.body) == ERR_OK &&
	       gather_done(&call->answer.body) == ERR_OK;
}

/* A provider of another format has answered. */
static void write_crossed(struct direct_call *call, const struct sampling_outcome *outcome)
{
	const bool stream = call->stream != NULL;

	call->asked->adjustments = outcome->result->adjustments;
	direct_begin_answer(call, 200,
			    stream ? SLICE("text/event-stream") : SLICE("application/json"));
	add_outcome(call, outcome);
	if (!stream)
		direct_add_field(call, SLICE("sluice-usd"),
				 usd_text(outcome->usd_nano, &call->arena));
	if (!direct_cross_answer(call, outcome))
		(void)direct_refuse_err(call, ERR_BUSY);
}

static void write_result(struct direct_call *call, const struct sampling_outcome *outcome)
{
	static const struct fault no_answer = { .err = ERR_PROVIDER_ANSWER,
						.offset = FAULT_NO_OFFSET };
	const struct provider_answer *answer = outcome->answer;

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
	add_outcome(call, outcome);
	direct_add_field(call, SLICE("sluice-usd"), usd_text(outcome->usd_nano, &call->arena));
	direct_add_field(call, SLICE("sluice-provider-request-id"), answer->headers.request_id);
	if (!put_answer(call, answer))
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
	direct_add_field(call, SLICE("sluice-adjustments"), adjustments_of(call, &call->arena));
}

void direct_report(const void *owner, struct log_request *line)
{
	const struct direct_call *call = owner;

	line->status = line->err == ERR_CANCELLED ? 499 : call->answer.status;
	if (call->detail != NULL && line->detail == NULL)
		line->detail = call->detail;
	direct_report_name(call, line);
}
