/* mcp_request.c - what a client asks of which server, and whether it may (mcp-proxy.md 1, 3). */
#include "codec/base/must.h"
#include "gateway/front/front_caller.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_browser.h"
#include "gateway/telemetry/metrics.h"
#include "tenants/limit.h"

enum { SERVER_NAME_MAX = 64 };

static struct slice header(const struct mcp_request *request, enum http_header name)
{
	return request->in->headers[name];
}

/* ---- the head ---- */

/* The path behind "/mcp/"; exact. *message: it is where a client of HTTP+SSE posts. Absent: it is no server's. */
static struct slice server_name(struct slice path, bool *message)
{
	static const struct slice suffix = SLICE_INIT("/message");
	static const struct slice prefix = SLICE_INIT("/mcp/");

	if (!slice_starts(path, prefix))
		return slice_of(NULL, 0);
	struct slice name = slice_of(path.at + prefix.len, path.len - prefix.len);
	*message = name.len > suffix.len &&
		   slice_eq(slice_of(name.at + name.len - suffix.len, suffix.len), suffix);
	if (*message)
		name.len -= suffix.len;
	for (size_t i = 0; i < name.len; i++) {
		const char c = name.at[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_' || c == '.' || c == '-'))
			return slice_of(NULL, 0);
	}
	return name.len != 0 && name.len <= SERVER_NAME_MAX ? name : slice_of(NULL, 0);
}

static bool read_http(struct mcp_request *request, bool found)
{
	const struct http_incoming *in = request->in;

	request->verb = mcp_verb_of(in->method);
	if (request->host->leaving)
		return mcp_refuse_err(request, ERR_DRAINING);
	request->name = server_name(in->path, &request->sse_message);
	if (!found || slice_absent(request->name))
		return mcp_refuse_err(request, ERR_NOT_FOUND);
	if (request->verb == MCP_VERB_OTHER ||
	    (request->verb == MCP_VERB_OPTIONS && slice_absent(header(request, HTTP_ORIGIN))))
		return mcp_refuse_err(request, ERR_HTTP_METHOD);
	if (!front_origin_allowed(request->host->config, header(request, HTTP_ORIGIN)))
		return mcp_refuse_err(request, ERR_ORIGIN);
	if (in->loopback && !mcp_browser_names_us(in->authority, request->host->config->public_url))
		return mcp_refuse_err(request, ERR_HOST);
	/* A browser asks before it shows a key. */
	return request->verb != MCP_VERB_OPTIONS || mcp_settle(request, 204);
}

/* Says what is wrong with a token: its sender can read it, too. */
static bool refuse_caller(struct mcp_request *request, const struct caller_refusal *why)
{
	struct fault fault = { .err = why->err, .offset = FAULT_NO_OFFSET };
	struct error_data data = error_data_none;

	request->bad_token = why->token != JWT_OK;
	if (request->bad_token)
		fault.detail = jwt_fault_text(why->token);
	if (why->token == JWT_BUSY)
		data.retry_after_ms = 1000;
	return mcp_refuse(request, &fault, &data);
}

static bool find_caller(struct mcp_request *request)
{
	struct caller_refusal why;
	struct slice resource = { NULL, 0 };

	if (mcp_oauth_on(request->host->config)) {
		resource = mcp_resource(request->host->config, request->name, &request->arena);
		if (slice_absent(resource))
			return mcp_refuse_err(request, ERR_BUSY);
	}
	if (!front_find_caller(request->host, request->in, resource,
			       request->ask.started_wall_ns / SEC, &request->arena, &request->shown,
			       &request->caller, &why))
		return refuse_caller(request, &why);
	request->ask.caller = &request->caller;
	return true;
}

static bool find_server(struct mcp_request *request)
{
	const struct front_host *host = request->host;
	const struct plan *plan = request->caller.plan;

	if (!front_is_open(host, request->in, plan, FRONT_MCP))
		return mcp_refuse_err(request, ERR_FRONT_FORBIDDEN);
	request->server = config_mcp_server(host->config, request->name);
	if (request->server == NULL)
		return mcp_refuse_err(request, ERR_SERVER_UNKNOWN);
	if (!plan_may_use_mcp(plan, request->name))
		return mcp_refuse_err(request, ERR_SERVER_FORBIDDEN);
	request->link.series = request->mcp->series[request->server - host->config->mcp_servers];
	request->name = arena_copy(&request->arena, request->name);
	return !slice_absent(request->name) || mcp_refuse_err(request, ERR_BUSY);
}

bool mcp_read_head(struct mcp_request *request, bool found)
{
	return read_http(request, found) && find_caller(request) && find_server(request);
}

/* ---- limits ---- */

/* Messages are counted by each gateway alone: the store is not asked for what costs nothing. */
bool mcp_count_messages(struct mcp_request *request, uint32_t count)
{
	const uint64_t per_minute = request->caller.plan->mcp_messages_per_minute;
	const struct limit_ask ask = { .requests = count };
	struct limit_scope scope = { .holder = LIMIT_OF_TENANT, .limits = limit_none() };
	struct error_data data = error_data_none;
	struct limit_refusal refusal;

	scope.limits.requests = (struct quota_limit){ .per_minute = per_minute,
						      .burst = limit_requests_burst(per_minute) };
	tenant_part_key(request->caller.account, request->mcp->messages_part, scope.key);
	scope.slot = limit_table_slot(request->mcp->limits, scope.key);
	if (scope.slot == NULL || limit_take(&scope, 1, &ask, net_now(request->host->loop),
					     net_wall_s(request->host->loop), &refusal))
		return true;
	const struct fault fault = { .err = refusal.err, .offset = FAULT_NO_OFFSET };
	data.limit = "mcp_messages_per_minute";
	data.scope = limit_holder_name(LIMIT_OF_TENANT);
	data.retry_after_ms = (int64_t)((refusal.wait_ns + MSEC - 1) / MSEC);
	metrics_limit(request->mcp->metrics, "mcp_messages_per_minute", METRICS_REFUSED);
	return mcp_refuse(request, &fault, &data);
}

/* ---- the body ---- */

/* What the gateway acts on must mean one thing (mcp-proxy.md 6.3). */
static bool accept_message(struct mcp_request *request, const struct mcp_message *message)
{
	static const struct fault twice = {
		.err = ERR_DUPLICATE_KEY,
		.offset = FAULT_NO_OFFSET,
	};

	if (message->twice)
		return mcp_refuse(request, &twice, NULL);
	mcp_count_message(request, message->kind);
	return true;
}

static bool read_batch(struct mcp_request *request)
{
	struct mcp_posted *posted = &request->posted;
	struct mcp_message message;
	struct json_loose_walk walk;

	posted->batch = true;
	posted->first = (struct mcp_message){ .kind = MCP_REQUEST }; /* it may have some */
	json_loose_open(&walk, posted->value);
	while (json_loose_next(&walk)) {
		posted->messages++;
		if (json_loose_kind(walk.value) != JSON_LOOSE_OBJECT)
			continue;
		mcp_message_read(walk.value, &message);
		if (!accept_message(request, &message))
			return false;
	}
	return !walk.bad || mcp_refuse_err(request, ERR_JSON);
}

static bool check_http_body(struct mcp_request *request)
{
	const struct http_incoming *in = request->in;

	if (in->no_room)
		return mcp_refuse_err(request, ERR_BUSY);
	if (in->body_too_large)
		return mcp_refuse_err(request, ERR_BODY_TOO_LARGE);
	if (front_is_coded(header(request, HTTP_CONTENT_ENCODING)))
		return mcp_refuse_err(request, ERR_MEDIA_TYPE);
	return true;
}

/* Of a value that is neither object nor array. */
static bool is_json(struct slice value)
{
	double number;

	switch (json_loose_kind(value)) {
	case JSON_LOOSE_STRING:
		return true;
	case JSON_LOOSE_NUMBER:
		return json_loose_number(value, &number);
	default:
		return slice_eq(value, SLICE("null")) || slice_eq(value, SLICE("true")) ||
		       slice_eq(value, SLICE("false"));
	}
}

bool mcp_read_body(struct mcp_request *request)
{
	struct mcp_posted *posted = &request->posted;

	if (!check_http_body(request))
		return false;
	posted->messages = 1; /* a GET and a DELETE count as one */
	if (request->verb != MCP_VERB_POST) {
		mcp_count_message(request, MCP_ODD);
		return mcp_count_messages(request, 1);
	}
	posted->messages = 0;
	/* Nearly every body is an object and sound: then one walk finds its members and its end. */
	if (!json_loose_utf8(request->in->body) ||
	    (!mcp_message_read_text(request->in->body, &posted->first, &posted->value) &&
	     !json_loose_whole(request->in->body, &posted->value)))
		return mcp_refuse_err(request, ERR_JSON);
	switch (json_loose_kind(posted->value)) {
	case JSON_LOOSE_OBJECT:
		posted->messages = 1;
		if (!accept_message(request, &posted->first))
			return false;
		break;
	case JSON_LOOSE_ARRAY:
		if (!read_batch(request))
			return false;
		break;
	default:
		return mcp_refuse_err(request, is_json(posted->value) ? ERR_REQUEST : ERR_JSON);
	}
	return mcp_count_messages(request, posted->messages == 0 ? 1 : posted->messages);
}
