/* mcp_error.c - answers that the gateway gives itself: JSON-RPC errors under the client's id. */
#include "codec/base/must.h"
#include "gateway/front/front_caller.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_browser.h"

#include <stdio.h>

enum { UNREAD_MAX = 64 << 10 /* bytes of a body that is read for its id alone */ };

void mcp_add_field(struct mcp_request *request, struct slice name, struct slice value)
{
	must(request->field_count < COUNT_OF(request->fields));
	request->fields[request->field_count++] = (struct http_field){ name, value };
}

/* What a page of an allowed Origin needs to read the answer. */
static void add_browser_fields(struct mcp_request *request)
{
	struct http_field fields[MCP_BROWSER_FIELDS];
	struct slice headers = { NULL, 0 };
	const struct slice origin =
		request->in == NULL ? slice_of(NULL, 0) : request->in->headers[HTTP_ORIGIN];

	if (slice_absent(origin) || !front_origin_allowed(request->host->config, origin))
		return;
	if (request->verb == MCP_VERB_OPTIONS)
		headers = mcp_browser_headers(
			http_find_header(request->in, SLICE("access-control-request-headers")),
			config_mcp_server(request->host->config, request->name), &request->arena);
	const size_t count = mcp_browser_fields(origin, headers, fields);
	for (size_t i = 0; i < count; i++)
		mcp_add_field(request, fields[i].name, fields[i].value);
}

void mcp_begin_fields(struct mcp_request *request)
{
	request->field_count = 0;
	add_browser_fields(request);
	mcp_add_field(request, SLICE("sluice-request-id"),
		      slice_of(request->ids.request_id, REQUEST_ID_HEX));
}

/* Whole seconds, rounded up. */
static void add_retry_after(struct mcp_request *request, int64_t ms)
{
	char *text = arena_take(&request->arena, 24);

	if (text == NULL)
		return;
	const int len = snprintf(text, 24, "%lld", (long long)(ms + 999) / 1000);
	mcp_add_field(request, SLICE("retry-after"), slice_of(text, (size_t)len));
}

static void add_error_fields(struct mcp_request *request, enum err err,
			     const struct error_data *data)
{
	mcp_add_field(request, SLICE("content-type"), SLICE("application/json"));
	if (data->retry_after_ms >= 0)
		add_retry_after(request, data->retry_after_ms);
	if (err == ERR_UNAUTHORIZED)
		mcp_add_field(request, SLICE("www-authenticate"), mcp_challenge(request));
	if (err == ERR_HTTP_METHOD)
		mcp_add_field(request, SLICE("allow"),
			      request->verb == MCP_VERB_GET    ? SLICE("POST, DELETE")
			      : request->verb == MCP_VERB_POST ? SLICE("GET")
							       : SLICE("GET, POST, DELETE"));
	if (err == ERR_MEDIA_TYPE)
		mcp_add_field(request, SLICE("accept-encoding"), SLICE("identity"));
}

/* The id of the client's message, so that the client finds its request. Of a message that was refused before it was read
 * only if it is short: a stranger's body is not worth more. */
static struct slice caller_id(const struct mcp_request *request)
{
	struct mcp_message message;
	struct slice value;

	if (request->posted.batch || request->posted.messages != 0 ||
	    request->verb != MCP_VERB_POST || request->in->body.len == 0 ||
	    request->in->body.len > UNREAD_MAX)
		return request->posted.batch ? slice_of(NULL, 0) : request->posted.first.id;
	if (!json_loose_whole(request->in->body, &value) ||
	    json_loose_kind(value) != JSON_LOOSE_OBJECT)
		return slice_of(NULL, 0);
	mcp_message_read(value, &message);
	return message.kind == MCP_REQUEST ? message.id : slice_of(NULL, 0);
}

bool mcp_refuse(struct mcp_request *request, const struct fault *fault,
		const struct error_data *data)
{
	const struct slice id = caller_id(request);

	if (data == NULL)
		data = &error_data_none;
	must(fault->err != ERR_OK && request->refused == ERR_OK);
	request->refused = fault->err;
	request->detail = fault->detail;
	request->status = err_info(fault->err)->status;
	mcp_begin_fields(request);
	add_error_fields(request, fault->err, data);
	gather_init(&request->answer, &request->arena);
	jsonrpc_write_error(&request->answer, id, fault, data);
	if (gather_done(&request->answer) != ERR_OK)
		gather_init(&request->answer, &request->arena); /* the status alone says it */
	return false;
}

bool mcp_settle(struct mcp_request *request, int status)
{
	request->status = status;
	mcp_begin_fields(request);
	gather_init(&request->answer, &request->arena);
	return false;
}

bool mcp_refuse_err(struct mcp_request *request, enum err err)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };

	return mcp_refuse(request, &fault, NULL);
}

/* What of a message is not a secret. */
static const char *rpc_name(const struct mcp_request *request)
{
	switch (request->verb) {
	case MCP_VERB_GET:
		return "GET";
	case MCP_VERB_DELETE:
		return "DELETE";
	default:
		return request->hello != MCP_HELLO_NONE ? "initialize" : "message";
	}
}

/* The log line and counters of a refusal, as for any other front. */
static void report(const void *owner, struct log_request *line)
{
	const struct mcp_request *request = owner;

	line->rpc = rpc_name(request);
	line->status = request->status;
	if (line->detail == NULL)
		line->detail = request->detail;
}

static const struct sampling_front refusal_front = { .name = "mcp", .report = report };

void mcp_log_refusal(struct mcp_request *request)
{
	mcp_count_failure(request);
	sampling_refused(request->host->core, &request->ask, &refusal_front, request,
			 request->refused);
}
