/* mcp_get.c - a client's GET in a session that has a stream of the gateway's own: it is served from that
 * (mcp-proxy.md 5.1 (b)). */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_remote.h"

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
	if (request->remote != NULL && request->untaken != 0)
		mcp_remote_took(request->remote, request->untaken);
	request->untaken = 0;
}

/* No events any more. */
static void detach(struct mcp_request *request)
{
	mcp_client_detach(&request->client, net_now(request->host->loop));
	if (request->remote != NULL)
		mcp_remote_detach(request->remote);
}

static void begin_stream(struct mcp_request *request)
{
	mcp_begin_fields(request);
	mcp_add_field(request, SLICE("content-type"), SLICE("text/event-stream"));
	mcp_add_field(request, SLICE("cache-control"), SLICE("no-cache, no-transform"));
	mcp_add_field(request, SLICE("x-accel-buffering"), SLICE("no"));
	if (!mcp_session_pass(request, request->link.token.upstream_id)) {
		detach(request);
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
	detach(request);
	if (request->phase == MCP_STREAMS && !request->out.ended)
		mcp_out_end(&request->out, false);
}

static void refused(struct mcp_request *request)
{
	mcp_fail(request, ERR_HTTP_METHOD, "the MCP server has no stream for GET");
}

/* The session's stream is another one than it was: open, gone, or somebody else's. */
static void follow(struct mcp_request *request, enum mcp_channel_state state)
{
	switch (state) {
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
	case MCP_CHANNEL_ENDED:
	case MCP_CHANNEL_IDLE:
		if (request->phase == MCP_CALLED)
			mcp_fail(request, ERR_SESSION_UNKNOWN, NULL);
		else
			mcp_get_end(request);
		return;
	case MCP_CHANNEL_REPLACED:
	case MCP_CHANNEL_GAP:
		if (request->phase == MCP_CALLED)
			begin_stream(request);
		mcp_get_end(request);
	}
}

/* There are events, or the channel's state has changed. */
static void on_woken(struct mcp_client *client)
{
	follow(of_client(client), client->state);
}

/* The server does not say whether it has a stream: the client's is open, and silent so far. */
static void on_impatient(struct net_timer *timer)
{
	struct mcp_request *request = CONTAINER_OF(timer, struct mcp_request, patience);

	if (request->phase == MCP_CALLED)
		begin_stream(request);
}

/* The head of the answer is to come. */
static void wait_for_stream(struct mcp_request *request)
{
	request->phase = MCP_CALLED;
	mcp_rest(request);
	request->patience.fire = on_impatient;
	net_timer_set(request->host->loop, &request->patience,
		      net_now(request->host->loop) + OPENING_MAX);
}

static bool refuse_method(struct mcp_request *request)
{
	const struct fault none = {
		.err = ERR_HTTP_METHOD,
		.offset = FAULT_NO_OFFSET,
		.detail = "the MCP server has no stream for GET",
	};

	return mcp_refuse(request, &none, NULL);
}

static struct slice last_id_of(const struct mcp_request *request)
{
	return http_find_header(request->in, SLICE("last-event-id"));
}

/* Passes it to the server; also later than when it came. */
static bool pass_on(struct mcp_request *request)
{
	net_timer_stop(request->host->loop,
		       &request->patience); /* mcp_forward has another use for it */
	request->server = mcp_link_server(request->mcp, &request->link);
	if (request->server == NULL || !mcp_link_place(&request->link, request->server))
		return mcp_refuse_err(request, ERR_SERVER_UNKNOWN);
	const bool passes = mcp_forward(request, slice_of("", 0));
	request->server = NULL; /* a reload may come */
	return passes;
}

static bool open_own(struct mcp_request *request);

static bool attach(struct mcp_request *request, bool may_open)
{
	switch (mcp_client_attach(request->mcp->channels, &request->client, request->mcp->inbox,
				  last_id_of(request), net_now(request->host->loop))) {
	case MCP_ATTACHED:
		break;
	case MCP_ATTACH_REFUSED:
		return refuse_method(request);
	case MCP_ATTACH_ENDED:
		return mcp_refuse_err(request, ERR_SESSION_UNKNOWN);
	case MCP_ATTACH_OTHER:
		if (may_open && request->mcp->shared != NULL &&
		    mcp_home_look(request->mcp->channels, &request->link.who) == MCP_OPENED)
			return open_own(request); /* the id may be one of another gateway's */
		return pass_on(request);
	case MCP_ATTACH_NOBODY:
		return may_open ? open_own(request) : pass_on(request);
	}
	wait_for_stream(request);
	if (request->client.state == MCP_CHANNEL_OPEN)
		begin_stream(request);
	return true;
}

/* ---- the stream is at another gateway ---- */

static void answer_refusal(struct mcp_request *request)
{
	mcp_answer_whole(request, gather_flat(&request->answer, &request->arena));
}

static void on_remote_events(struct mcp_remote *remote, struct slice bytes)
{
	struct mcp_request *request = remote->owner;

	if (request->phase == MCP_CALLED)
		begin_stream(request);
	if (request->phase != MCP_STREAMS || request->out.ended)
		return;
	request->untaken += bytes.len;
	if (!mcp_out_add(&request->out, bytes))
		mcp_get_end(request);
}

static void on_remote_changed(struct mcp_remote *remote)
{
	struct mcp_request *request = remote->owner;

	if (!remote->other)
		follow(request, remote->state);
	else if (!pass_on(request)) /* the stream of a POST is resumed */
		answer_refusal(request);
}

static bool attach_remote(struct mcp_request *request, const struct peer_address *home)
{
	struct mcp_remote *remote = arena_take(&request->arena, sizeof(*remote));

	if (remote == NULL)
		return mcp_refuse_err(request, ERR_BUSY);
	*remote = (struct mcp_remote){ .who = request->link.who,
				       .home = *home,
				       .owner = request,
				       .changed = on_remote_changed,
				       .events = on_remote_events };
	if (!mcp_remote_attach(request->mcp->remotes, remote, last_id_of(request)))
		return pass_on(request);
	request->remote = remote;
	wait_for_stream(request);
	return true;
}

/* ---- whose the stream is ---- */

static bool serve_found(struct mcp_request *request, const struct mcp_ask *ask)
{
	switch (ask->answer) {
	case MCP_SHARED_OTHERS:
		return attach_remote(request, &ask->home);
	case MCP_SHARED_REFUSED:
		return refuse_method(request);
	case MCP_SHARED_ENDED:
		return mcp_refuse_err(request, ERR_SESSION_UNKNOWN);
	default:
		return attach(request, false);
	}
}

static void on_home_found(struct mcp_request *request, const struct mcp_ask *ask)
{
	net_timer_stop(request->host->loop, &request->patience);
	if (!serve_found(request, ask))
		answer_refusal(request);
}

/* The stream that was to open will not. */
static void on_own_gone(struct mcp_request *request)
{
	mcp_fail(request, ERR_SERVER_UNAVAILABLE, NULL);
}

/* The gateway was started anew, the stream could not be opened before, or another gateway has it. */
static bool open_own(struct mcp_request *request)
{
	request->home_found = on_home_found;
	request->own_opened = on_own_gone;
	switch (mcp_own_open(request->mcp, &request->link, &request->caller, request)) {
	case MCP_OWN_NOT:
		return pass_on(request);
	case MCP_OWN_OPENS:
		mcp_own_forget(request);
		return attach(request, false);
	case MCP_OWN_ASKS:
		break;
	}
	wait_for_stream(request);
	net_timer_stop(request->host->loop, &request->patience); /* Redis answers in time, or not */
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
	mcp_own_forget(request);
	if (request->phase == MCP_STREAMS) {
		mcp_get_end(request);
	} else if (request->phase == MCP_CALLED) {
		detach(request);
		mcp_fail(request, err, NULL);
	}
}
