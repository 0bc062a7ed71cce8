/* mcp_get.c - a client's GET in a session that has a stream of the gateway's own: it is served from that
 * (mcp-proxy.md 5.1 (b)). */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"

#define OPENING_MAX (5 * SEC) /* that a client waits for the head of its GET */

static struct mcp_request *of_client(struct mcp_client *client)
{
	return CONTAINER_OF(client, struct mcp_request, client);
}

/* What is there for the client, as far as it keeps up. */
static void take_events(struct mcp_request *request)
{
	char room[16 << 10];

	while (mcp_out_waits(&request->out) < MCP_OUT_MAX) {
		const size_t len = mcp_client_take(&request->client, room, sizeof(room),
						   net_now(request->host->loop));
		if (len == 0)
			return;
		if (!mcp_out_add(&request->out, slice_of(room, len))) {
			mcp_get_end(request);
			return;
		}
	}
}

static void on_drained(struct mcp_out *out)
{
	struct mcp_request *request = CONTAINER_OF(out, struct mcp_request, out);

	if (request->client.channels != NULL)
		take_events(request);
}

static void begin_stream(struct mcp_request *request)
{
	mcp_begin_fields(request);
	mcp_add_field(request, SLICE("content-type"), SLICE("text/event-stream"));
	mcp_add_field(request, SLICE("cache-control"), SLICE("no-cache, no-transform"));
	mcp_add_field(request, SLICE("x-accel-buffering"), SLICE("no"));
	if (!mcp_session_pass(request, request->link.token.upstream_id)) {
		mcp_client_detach(&request->client, net_now(request->host->loop));
		mcp_fail(request, ERR_BUSY, NULL);
		return;
	}
	request->status = 200;
	request->phase = MCP_STREAMS;
	mcp_count_stream(request, true);
	mcp_out_init(&request->out, request->host->loop, request->host->arenas, request->exchange,
		     true, on_drained);
	mcp_out_head(&request->out, request->status, request->fields, request->field_count);
	mcp_out_flush(&request->out);
	take_events(request);
}

void mcp_get_end(struct mcp_request *request)
{
	mcp_client_detach(&request->client, net_now(request->host->loop));
	if (request->phase == MCP_STREAMS && !request->out.ended)
		mcp_out_end(&request->out, false);
}

static void refused(struct mcp_request *request)
{
	mcp_fail(request, ERR_HTTP_METHOD, "the MCP server has no stream for GET");
}

/* There are events, or the channel's state has changed. */
static void on_woken(struct mcp_client *client)
{
	struct mcp_request *request = of_client(client);

	switch (client->state) {
	case MCP_CHANNEL_OPENING:
		return;
	case MCP_CHANNEL_OPEN:
		if (request->phase == MCP_STREAMS)
			take_events(request);
		else if (request->phase == MCP_CALLED)
			begin_stream(request);
		return;
	case MCP_CHANNEL_REFUSED:
		if (request->phase == MCP_CALLED)
			refused(request);
		else
			mcp_get_end(request);
		return;
	case MCP_CHANNEL_CLOSED:
		if (request->phase == MCP_CALLED)
			begin_stream(request);
		if (request->phase == MCP_STREAMS)
			take_events(request);
		mcp_get_end(request);
		return;
	default:
		if (request->phase == MCP_CALLED)
			mcp_fail(request, ERR_SESSION_UNKNOWN, NULL);
		else
			mcp_get_end(request);
	}
}

/* The server does not say whether it has a stream: the client's is open, and silent so far. */
static void on_impatient(struct net_timer *timer)
{
	struct mcp_request *request = CONTAINER_OF(timer, struct mcp_request, patience);

	if (request->phase == MCP_CALLED)
		begin_stream(request);
}

static bool attach(struct mcp_request *request, bool may_open)
{
	const struct slice last_id = http_find_header(request->in, SLICE("last-event-id"));
	const struct fault none = {
		.err = ERR_HTTP_METHOD,
		.offset = FAULT_NO_OFFSET,
		.detail = "the MCP server has no stream for GET",
	};

	switch (mcp_client_attach(request->mcp->channels, &request->client, request->mcp->inbox,
				  last_id, net_now(request->host->loop))) {
	case MCP_ATTACHED:
		break;
	case MCP_ATTACH_REFUSED:
		return mcp_refuse(request, &none, NULL);
	case MCP_ATTACH_ENDED:
		return mcp_refuse_err(request, ERR_SESSION_UNKNOWN);
	case MCP_ATTACH_OTHER:
		return mcp_forward(request, slice_of("", 0));
	case MCP_ATTACH_NOBODY:
		/* The gateway was started anew, or the stream could not be opened before. */
		if (may_open && mcp_own_open(request->mcp, &request->link, &request->caller, NULL))
			return attach(request, false);
		return mcp_forward(request, slice_of("", 0));
	}
	request->phase = MCP_CALLED;
	mcp_rest(request);
	request->patience.fire = on_impatient;
	net_timer_set(request->host->loop, &request->patience,
		      net_now(request->host->loop) + OPENING_MAX);
	if (request->client.state == MCP_CHANNEL_OPEN)
		begin_stream(request);
	return true;
}

bool mcp_get(struct mcp_request *request)
{
	if (request->mcp->leaving)
		return mcp_refuse_err(request, ERR_DRAINING);
	if (!mcp_may_rest(request))
		return false;
	mcp_note_key(request);
	request->client.who = request->link.who;
	request->client.woken = on_woken;
	return attach(request, true);
}

void mcp_get_leave(struct mcp_request *request, enum err err)
{
	net_timer_stop(request->host->loop, &request->patience);
	upstream_cancel(&request->call); /* of one that passes from the server */
	if (request->phase == MCP_STREAMS) {
		mcp_get_end(request);
	} else if (request->phase == MCP_CALLED) {
		mcp_client_detach(&request->client, net_now(request->host->loop));
		mcp_fail(request, err, NULL);
	}
}
