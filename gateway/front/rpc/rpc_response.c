/* rpc_response.c - the answers: results, errors, and the headers that go with them (DESIGN 4.4). */
#include "gateway/front/rpc/rpc.h"

#include "codec/base/must.h"
#include "codec/mcp/sampling_exchange.h"
#include "codec/sse/sse_write.h"

void rpc_add_field(struct rpc_call *call, struct slice name, struct slice value)
{
	struct rpc_answer *answer = &call->answer;

	must(answer->field_count < COUNT_OF(answer->fields));
	answer->fields[answer->field_count++] = (struct http_field){ name, value };
}

static void begin_answer(struct rpc_call *call, int status)
{
	call->answer.status = status;
	call->answer.field_count = 0;
	gather_init(&call->answer.body, &call->arena);
	rpc_add_field(call, SLICE("sluice-request-id"),
		      slice_of(call->ids.request_id, REQUEST_ID_HEX));
}

void rpc_write_json(struct rpc_call *call)
{
	begin_answer(call, 200);
	rpc_add_field(call, SLICE("content-type"), SLICE("application/json"));
}

void rpc_write_empty(struct rpc_call *call, int status)
{
	begin_answer(call, status);
}

/* ---- errors ---- */

/* Whole seconds, rounded up; data.retryAfterMs is exact. Without memory it is left out: the body says it too. */
static void add_retry_after(struct rpc_call *call, int64_t ms)
{
	char *text = arena_take(&call->arena, 24);

	if (text == NULL)
		return;
	int len = snprintf(text, 24, "%lld", (long long)(ms + 999) / 1000);
	rpc_add_field(call, SLICE("retry-after"), slice_of(text, (size_t)len));
}

static void add_error_headers(struct rpc_call *call, enum err err, const struct error_data *data)
{
	if (data->retry_after_ms >= 0)
		add_retry_after(call, data->retry_after_ms);
	else if (err == ERR_UNAUTHORIZED) /* RFC 6750 3.1 */
		rpc_add_field(call, SLICE("www-authenticate"),
			      call->bad_token ? SLICE("Bearer error=\"invalid_token\"")
					      : SLICE("Bearer"));
	else if (err == ERR_HTTP_METHOD)
		rpc_add_field(call, SLICE("allow"), SLICE("POST, DELETE"));
}

static void write_error(struct rpc_call *call, const struct fault *fault,
			const struct error_data *data)
{
	const struct slice absent = { NULL, 0 };
	const int status = err_info(fault->err)->status;

	must(fault->err != ERR_OK);
	begin_answer(call, status);
	rpc_add_field(call, SLICE("content-type"), SLICE("application/json"));
	add_error_headers(call, fault->err, data);
	jsonrpc_write_error(&call->answer.body, call->envelope_read ? call->rpc.id : absent, fault,
			    data);
	if (gather_done(&call->answer.body) != ERR_OK)
		begin_answer(call,
			     status); /* not even memory for an error: the status alone says it */
}

bool rpc_refuse(struct rpc_call *call, const struct fault *fault, const struct error_data *data)
{
	call->wrote = fault->err;
	call->detail = fault->detail;
	write_error(call, fault, data != NULL ? data : &error_data_none);
	return false;
}

bool rpc_refuse_err(struct rpc_call *call, enum err err)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };

	return rpc_refuse(call, &fault, NULL);
}

/* ---- outcomes ---- */

static void write_result(struct rpc_call *call, const struct sampling_outcome *outcome)
{
	const struct sampling_request *request = call->ask.request;
	struct exchange exchange;
	const struct result_meta meta = {
		.usd_nano = outcome->usd_nano,
		.model_id = outcome->model_id,
		.provider = outcome->provider,
		.attempts = outcome->attempts,
		.exchange = request->exchange_wanted ? &exchange : NULL,
	};

	if (request->exchange_wanted)
		exchange = exchange_of(call->rpc.params, outcome->schema_wanted);
	rpc_write_json(call);
	sampling_write_result(&call->answer.body, call->rpc.id, outcome->result, call->revision,
			      request->tools_present, &meta);
	if (gather_done(&call->answer.body) != ERR_OK)
		(void)rpc_refuse_err(call, ERR_BUSY);
}

static const struct slice before_id = SLICE_INIT("{\"jsonrpc\":\"2.0\",\"id\":");

/* The answer that the first of several copies got, under this one's id. */
static void write_copy(struct rpc_call *call, const struct sampling_outcome *outcome)
{
	struct gather *body = &call->answer.body;
	const enum err err = outcome->fault.err;

	begin_answer(call, err_info(err)->status);
	rpc_add_field(call, SLICE("content-type"), SLICE("application/json"));
	if (outcome->data.retry_after_ms >= 0)
		add_retry_after(call, outcome->data.retry_after_ms);
	gather_raw(body, before_id);
	gather_raw(body, call->rpc.id);
	gather_lit(body, ",");
	gather_raw(body, outcome->copy);
	gather_lit(body, "}");
	if (gather_done(body) != ERR_OK)
		(void)rpc_refuse_err(call, ERR_BUSY);
}

static void write_outcome(struct rpc_call *call, const struct sampling_outcome *outcome)
{
	if (call->phase == RPC_KEPT)
		return;
	switch (outcome->end) {
	case SAMPLING_RESULT:
		write_result(call, outcome);
		return;
	case SAMPLING_REFUSED:
		write_error(call, &outcome->fault, &outcome->data);
		return;
	case SAMPLING_COPY:
		write_copy(call, outcome);
		return;
	case SAMPLING_NO_SAMPLE:
		rpc_write_method(call);
		return;
	case SAMPLING_CANCELLED:
		rpc_write_empty(call, 202);
		return;
	}
}

/* ---- event streams ---- */

/* What keeps proxies from holding events back is what MCP's servers send (contract/mcp.md 11). */
void rpc_write_stream_head(struct rpc_call *call)
{
	begin_answer(call, 200);
	rpc_add_field(call, SLICE("content-type"), SLICE("text/event-stream"));
	rpc_add_field(call, SLICE("cache-control"), SLICE("no-cache, no-transform"));
	rpc_add_field(call, SLICE("x-accel-buffering"), SLICE("no"));
}

/* A stream that has begun has to end, with words for whoever looks at it; the log line says why. */
static void end_with(struct rpc_call *call, const struct iovec *comment)
{
	rpc_write_stream_head(call);
	call->answer.body = (struct gather){ .v = (struct iovec *)(uintptr_t)comment,
					     .count = 1,
					     .total = comment->iov_len };
}

static void end_cancelled(struct rpc_call *call)
{
	static const char text[] = ": cancelled\n\n";
	static const struct iovec comment = { (void *)(uintptr_t)text, sizeof(text) - 1 };

	end_with(call, &comment);
}

static void end_without_memory(struct rpc_call *call)
{
	static const char text[] = ": out of memory\n\n";
	static const struct iovec comment = { (void *)(uintptr_t)text, sizeof(text) - 1 };

	end_with(call, &comment);
}

/* Makes the JSON answer that is there the last event of a stream. */
static void write_event(struct rpc_call *call)
{
	const struct gather json = call->answer.body;

	rpc_write_stream_head(call);
	sse_write_message(&call->answer.body, &json);
	if (json.total != 0 && gather_done(&call->answer.body) == ERR_OK)
		return;
	if (rpc_progress_begun(&call->progress))
		end_without_memory(call);
	else
		(void)rpc_refuse_err(call, ERR_BUSY);
}

void rpc_write(struct rpc_call *call, const struct sampling_outcome *outcome)
{
	if (outcome->end == SAMPLING_RESULT && call->phase != RPC_KEPT &&
	    !rpc_progress_wanted(&call->progress)) {
		write_result(call, outcome); /* the usual case */
		return;
	}
	if (outcome->end == SAMPLING_CANCELLED && rpc_progress_begun(&call->progress)) {
		end_cancelled(call);
		return;
	}
	write_outcome(call, outcome);
	const bool good = outcome->end != SAMPLING_CANCELLED && call->wrote == ERR_OK &&
			  outcome->fault.err == ERR_OK;
	if (rpc_progress_begun(&call->progress) || (rpc_progress_wanted(&call->progress) && good))
		write_event(call);
}

/* ---- copies of a request ---- */

struct slice rpc_keep(void *owner, const struct sampling_outcome *outcome)
{
	struct rpc_call *call = owner;

	write_outcome(call, outcome);
	const struct slice id = slice_absent(call->rpc.id) ? SLICE("null") : call->rpc.id;
	const struct slice whole = gather_flat(&call->answer.body, &call->arena);
	const size_t front = before_id.len + id.len + 1; /* the comma */

	call->phase = RPC_KEPT;
	if (slice_absent(whole) || whole.len == 0 || call->wrote != ERR_OK)
		return slice_of(NULL, 0);
	must(whole.len > front + 1 && slice_starts(whole, before_id));
	return slice_of(whole.at + front, whole.len - front - 1);
}

/* ---- the log line ---- */

static const char *method_name(const struct rpc_call *call)
{
	static const char *const names[] = {
		[RPC_CREATE_MESSAGE] = "sampling/createMessage",
		[RPC_INITIALIZE] = "initialize",
		[RPC_INITIALIZED] = "notifications/initialized",
		[RPC_PING] = "ping",
		[RPC_CANCELLED] = "notifications/cancelled",
		[RPC_OTHER_NOTIFICATION] = "notification",
		[RPC_RESPONSE] = "response",
		[RPC_UNKNOWN] = "unknown",
	};

	return call->envelope_read ? names[call->rpc.method] : NULL;
}

void rpc_report(const void *owner, struct log_request *line)
{
	const struct rpc_call *call = owner;

	line->revision = call->ask.caller != NULL ? revision_name(call->revision) : NULL;
	line->rpc = method_name(call);
	line->status = line->err == ERR_CANCELLED ? 499 : call->answer.status;
	if (call->detail != NULL && line->detail == NULL)
		line->detail = call->detail;
}
