/* rpc_response.c - the answers: results, errors, and the headers that go with them (DESIGN 4.4). */
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"
#include "codec/mcp/sampling_exchange.h"
#include "codec/sse/sse_write.h"

void flow_answer_field(struct flow *flow, struct slice name, struct slice value)
{
	struct flow_answer *answer = &flow->answer;

	must(answer->field_count < COUNT_OF(answer->fields));
	answer->fields[answer->field_count++] = (struct http_field){ name, value };
}

static void begin_answer(struct flow *flow, int status)
{
	flow->answer.status = status;
	flow->answer.field_count = 0;
	gather_init(&flow->answer.body, flow->arena);
	flow_answer_field(flow, SLICE("sluice-request-id"),
			  slice_of(flow->request_id, REQUEST_ID_HEX));
}

void flow_answer_json(struct flow *flow)
{
	begin_answer(flow, 200);
	flow_answer_field(flow, SLICE("content-type"), SLICE("application/json"));
}

enum flow_move flow_answer_empty(struct flow *flow, int status)
{
	begin_answer(flow, status);
	return FLOW_ANSWERED;
}

static void add_retry_after(struct flow *flow, int64_t seconds)
{
	char *text = arena_take(flow->arena, 24);

	if (text == NULL)
		return; /* the header is a courtesy: the body says it too */
	int len = snprintf(text, 24, "%lld", (long long)seconds);
	flow_answer_field(flow, SLICE("retry-after"), slice_of(text, (size_t)len));
}

static void add_error_headers(struct flow *flow, enum err err, const struct rpc_error_data *data)
{
	if (data->retry_after_ms >= 0) /* whole seconds, rounded up; data.retryAfterMs is exact */
		add_retry_after(flow, (data->retry_after_ms + 999) / 1000);
	else if (err == ERR_UNAUTHORIZED) /* RFC 6750 3.1 */
		flow_answer_field(flow, SLICE("www-authenticate"),
				  flow->bad_token ? SLICE("Bearer error=\"invalid_token\"")
						  : SLICE("Bearer"));
	else if (err == ERR_HTTP_METHOD)
		flow_answer_field(flow, SLICE("allow"), SLICE("POST, DELETE"));
}

enum flow_move flow_refuse(struct flow *flow, const struct fault *fault,
			   const struct rpc_error_data *data)
{
	const struct slice absent = { NULL, 0 };

	must(fault->err != ERR_OK);
	if (data == NULL)
		data = &rpc_error_data_none;
	flow->outcome = fault->err;
	if (flow->detail == NULL)
		flow->detail = fault->detail;
	begin_answer(flow, err_info(fault->err)->status);
	flow_answer_field(flow, SLICE("content-type"), SLICE("application/json"));
	add_error_headers(flow, fault->err, data);
	jsonrpc_write_error(&flow->answer.body, flow->rpc_known ? flow->rpc.id : absent, fault,
			    data);
	if (gather_done(&flow->answer.body) == ERR_OK)
		return FLOW_REFUSED;
	/* Not even memory for an error: the status alone says it. */
	begin_answer(flow, err_info(fault->err)->status);
	return FLOW_REFUSED;
}

void flow_take_back_refusal(struct flow *flow)
{
	flow->outcome = ERR_OK;
	flow->detail = NULL;
	flow->answer = (struct flow_answer){ .status = 0 };
}

enum flow_move flow_refuse_err(struct flow *flow, enum err err)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };

	return flow_refuse(flow, &fault, NULL);
}

/* "attempts":N as a member of data, and the failure's own; absent without memory, or when there was no
 * attempt. */
static struct slice attempts_member(struct flow *flow, struct slice particulars)
{
	struct gather g;

	if (flow->attempts == 0)
		return slice_of(NULL, 0);
	gather_init(&g, flow->arena);
	gather_lit(&g, "\"attempts\":");
	gather_uint(&g, flow->attempts);
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
	struct rpc_error_data data = rpc_error_data_none;

	flow->detail = failure->detail;
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

void flow_answer_result(struct flow *flow)
{
	const struct exchange exchange =
		flow->made->request.exchange_wanted
			? exchange_of(flow->rpc.params, flow->made->encoded.decode.schema_wanted)
			: (struct exchange){ .structured = false };
	const struct result_meta meta = {
		.usd_nano = flow->usd,
		.model_id = flow->walk.model_id,
		.provider = flow->walk.provider_name,
		.attempts = flow->attempts,
		.exchange = flow->made->request.exchange_wanted ? &exchange : NULL,
	};

	flow->result->usage = flow->usage;
	flow->result->adjustments |= flow->adjustments;
	flow_answer_json(flow);
	sampling_write_result(&flow->answer.body, flow->rpc.id, flow->result, flow->revision,
			      flow->made->request.tools_present, &meta);
	if (gather_done(&flow->answer.body) != ERR_OK)
		(void)flow_refuse_err(flow, ERR_BUSY);
}

/* ---- copies of a request ---- */

static const struct slice before_id = SLICE_INIT("{\"jsonrpc\":\"2.0\",\"id\":");

static int64_t retry_after_of(const struct flow_answer *answer)
{
	uint64_t seconds;

	for (size_t i = 0; i < answer->field_count; i++)
		if (slice_eq(answer->fields[i].name, SLICE("retry-after")) &&
		    slice_to_u64(answer->fields[i].value, &seconds) && seconds <= INT64_MAX)
			return (int64_t)seconds;
	return -1;
}

bool flow_answer_member(struct flow *flow, struct once_answer *out)
{
	const struct slice id =
		flow->rpc_known && !slice_absent(flow->rpc.id) ? flow->rpc.id : SLICE("null");
	const struct slice whole = gather_flat(&flow->answer.body, flow->arena);
	const size_t front = before_id.len + id.len + 1; /* the comma */

	if (slice_absent(whole) || whole.len == 0)
		return false;
	must(whole.len > front + 1 && slice_starts(whole, before_id));
	*out = (struct once_answer){ .err = flow->outcome,
				     .member = slice_of(whole.at + front, whole.len - front - 1),
				     .retry_after_s = retry_after_of(&flow->answer) };
	return true;
}

enum flow_move flow_answer_copy(struct flow *flow, const struct once_answer *from)
{
	struct gather *body = &flow->answer.body;

	must(from->err < ERR_COUNT);
	if (slice_absent(from->member))
		return flow_refuse_err(flow, from->err != ERR_OK ? (enum err)from->err : ERR_BUSY);
	flow->outcome = (enum err)from->err;
	begin_answer(flow, flow->outcome == ERR_OK ? 200 : err_info(flow->outcome)->status);
	flow_answer_field(flow, SLICE("content-type"), SLICE("application/json"));
	if (from->retry_after_s >= 0)
		add_retry_after(flow, from->retry_after_s);
	gather_raw(body, before_id);
	gather_raw(body, flow->rpc.id);
	gather_lit(body, ",");
	gather_raw(body, from->member);
	gather_lit(body, "}");
	if (gather_done(body) != ERR_OK)
		return flow_refuse_err(flow, ERR_BUSY);
	return flow->outcome == ERR_OK ? FLOW_ANSWERED : FLOW_REFUSED;
}

/* ---- event streams ---- */

/* What keeps proxies from holding events back is what MCP's servers send (contract/mcp.md 11). */
static void stream_begin(struct flow *flow)
{
	begin_answer(flow, 200);
	flow_answer_field(flow, SLICE("content-type"), SLICE("text/event-stream"));
	flow_answer_field(flow, SLICE("cache-control"), SLICE("no-cache, no-transform"));
	flow_answer_field(flow, SLICE("x-accel-buffering"), SLICE("no"));
}

struct slice flow_tell(struct flow *flow, nsec_t now)
{
	if (!flow->progress.begun)
		stream_begin(flow);
	return flow_progress_tell(&flow->progress, now);
}

/* A stream that has begun has to end, with words for whoever looks at it; the log line says why. */
static void end_with(struct flow *flow, const struct iovec *comment)
{
	stream_begin(flow);
	flow->answer.body = (struct gather){ .v = (struct iovec *)(uintptr_t)comment,
					     .count = 1,
					     .total = comment->iov_len };
}

static void end_without_memory(struct flow *flow)
{
	static const char text[] = ": out of memory\n\n";
	static const struct iovec comment = { (void *)(uintptr_t)text, sizeof(text) - 1 };

	end_with(flow, &comment);
}

void flow_answer_called_off(struct flow *flow)
{
	static const char text[] = ": cancelled\n\n";
	static const struct iovec comment = { (void *)(uintptr_t)text, sizeof(text) - 1 };

	if (flow->progress.begun)
		end_with(flow, &comment);
	else
		(void)flow_answer_empty(flow, 202);
}

void flow_answer_event(struct flow *flow)
{
	const struct gather json = flow->answer.body;

	stream_begin(flow);
	sse_write_message(&flow->answer.body, &json);
	if (json.total != 0 && gather_done(&flow->answer.body) == ERR_OK)
		return;
	if (flow->progress.begun)
		end_without_memory(flow);
	else
		(void)flow_refuse_err(flow, ERR_BUSY);
}
