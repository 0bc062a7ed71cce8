/* mcp_bridge_listen.c - a client's GET in a bridged session: what 2026-07-28 has in its place is subscriptions/listen, on whose
 * stream a server says that its lists have changed. */
#include "gateway/front/mcp/mcp_bridge.h"
#include "gateway/front/mcp/mcp_bridge_text.h"

static const struct slice changes = SLICE_INIT(
	"{\"toolsListChanged\":true,\"promptsListChanged\":true,\"resourcesListChanged\":true}");

/* The client knows nothing of the request that its GET has become. */
static bool is_of_request(const struct mcp_message *message)
{
	return message->kind == MCP_RESPONSE || !slice_absent(mcp_message_cancels(message)) ||
	       json_loose_is(message->method, "notifications/subscriptions/acknowledged");
}

static bool on_pass(struct mcp_filter *filter, const struct mcp_passed *passed)
{
	struct mcp_request *request = CONTAINER_OF(filter, struct mcp_request, filter);

	if (passed->message != NULL && is_of_request(passed->message))
		return true;
	mcp_count_passed(request->mcp, &request->link, passed);
	request->out.between = passed->between;
	return mcp_out_add(&request->out, passed->raw);
}

static const struct mcp_filter_events events = { .pass = on_pass };

static bool on_head(struct mcp_request *request, const struct mcp_answer_head *head)
{
	if (!head->events || request->call.answer.status != 200 || !mcp_head_pass(request, head))
		return false;
	mcp_filter_init(&request->filter, &events, &request->arena, false);
	request->filter.whole = true;
	mcp_stream_begin(request, 200);
	return true;
}

/* A server that has no such stream: clients go on without one. */
static void refuse(struct mcp_request *request)
{
	const struct upstream_call *call = &request->call;
	const char *detail = call->detail;
	enum err err = mcp_call_error(call);

	if (err == ERR_OK)
		err = mcp_status_error(request, &detail);
	if (err == ERR_OK)
		err = call->answer.status < 500 ? ERR_HTTP_METHOD : ERR_SERVER_UNAVAILABLE;
	mcp_fail(request, err, detail);
}

static void on_done(struct mcp_request *request)
{
	if (request->phase == MCP_STREAMS)
		mcp_out_end(&request->out,
			    request->call.err != ERR_OK || !mcp_filter_end(&request->filter));
	else
		refuse(request);
}

static void on_drop(struct mcp_request *request)
{
	request->legs = NULL;
}

static const struct mcp_legs legs = { .head = on_head, .done = on_done, .drop = on_drop };

bool mcp_bridge_listen(struct mcp_request *request)
{
	const struct slice body = mcp_bridge_own("subscriptions/listen", "notifications", changes,
						 request->link.token.declared, &request->arena,
						 &request->link.modern_head);

	if (slice_absent(body))
		return mcp_refuse_err(request, ERR_BUSY);
	request->verb = MCP_VERB_POST;
	request->posted.first.method = SLICE("\"subscriptions/listen\""); /* it may be silent */
	request->legs = &legs;
	return mcp_forward(request, body);
}
