/* mcp_sse.c - HTTP+SSE of 2024-11-05 (mcp-proxy.md 8): a GET is the session, and its first event says where messages are
 * posted.
 *
 * The client is told a path of the gateway's with a token, which seals the server's own: so any worker posts there. Who
 * answers samplings is decided when `initialize` is posted, perhaps on another worker than the stream's, and noted in the
 * session's record. */
#include "codec/base/must.h"
#include "codec/mcp/mcp_edit.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_endpoint.h"

static struct mcp_request *of_filter(struct mcp_filter *filter)
{
	return CONTAINER_OF(filter, struct mcp_request, filter);
}

/* ---- what is noted of a session ---- */

enum { NOTED = 1, NOTE_MODE = 8, NOTE_REVISION = 16 };

void mcp_sse_note(struct mcp_request *request, enum revision revision)
{
	const struct mcp_link *link = &request->link;
	const uint32_t note = NOTED | (uint32_t)link->token.mode << NOTE_MODE |
			      (uint32_t)revision << NOTE_REVISION;
	const bool first = mcp_session_noted(request->mcp->channels, &link->who) == 0;

	mcp_session_note(request->mcp->channels, &link->who, note, net_now(request->host->loop));
	if (request->mcp->shared != NULL)
		mcp_shared_note(request->mcp->shared, &link->who, note);
	mcp_sse_refresh(request);
	if (first) /* initialize may be sent twice */
		mcp_session_log_begin(request);
}

void mcp_sse_over(struct mcp_request *request)
{
	mcp_sse_refresh(request);
	mcp_session_over(request->mcp, &request->link, MCP_END_CLOSED);
}

/* Before `initialize` nobody knows what the client declares: all passes. */
void mcp_sse_refresh(struct mcp_request *request)
{
	struct mcp_token *token = &request->link.token;
	const uint32_t note = mcp_session_noted(request->mcp->channels, &request->link.who);

	if ((note & NOTED) == 0)
		return;
	token->mode = (enum mcp_mode)(note >> NOTE_MODE & 0xff);
	token->revision = slice_str(revision_name((enum revision)(note >> NOTE_REVISION & 0xff)));
	request->filter.takes = mcp_link_takes(&request->link);
	request->filter.whole = mcp_link_hides(&request->link);
}

/* ---- the stream ---- */

static bool fail(struct mcp_request *request, const char *detail)
{
	request->sse_fault = detail;
	return false; /* the filter fails, and so does the stream */
}

/* The path for the client. Absent: no memory. */
static struct slice client_path(struct mcp_request *request)
{
	struct slice token;
	struct gather path;

	if (mcp_token_seal(request->mcp->seal, MCP_TOKEN_SSE, &request->link.token, &request->arena,
			   &token) != ERR_OK)
		return slice_of(NULL, 0);
	gather_init(&path, &request->arena);
	gather_lit(&path, "/mcp/");
	gather_raw(&path, request->link.token.server);
	gather_lit(&path, "/message?s=");
	gather_raw(&path, token);
	return gather_done(&path) == ERR_OK ? gather_flat(&path, &request->arena)
					    : slice_of(NULL, 0);
}

static bool begin_session(struct mcp_request *request, struct slice said)
{
	const struct mcp_server *server = mcp_link_server(request->mcp, &request->link);
	struct mcp_token *token = &request->link.token;
	struct slice path;

	if (server == NULL || !mcp_link_place(&request->link, server) ||
	    !mcp_endpoint_resolve(&server->endpoints[request->link.endpoint], said, &request->arena,
				  &path))
		return fail(request,
			    "the MCP server's endpoint event names another origin, or no URL");
	if (path.len > MCP_UPSTREAM_ID_MAX)
		return fail(request, "the MCP server's endpoint is longer than 512 bytes");
	token->upstream_id = arena_copy(&request->arena, path);
	if (slice_absent(token->upstream_id))
		return fail(request, NULL);
	token->issued_s = net_wall_s(request->host->loop);
	if (request->extra.peer.len != 0)
		token->pin = mcp_pin_of(&request->extra.peer);
	request->link.sse = request->sse_stream = true;
	mcp_link_who(&request->link);
	mcp_place_begun(request);
	return true;
}

/* The event as the client gets it: with the gateway's path for the server's. */
static bool pass_endpoint(struct mcp_request *request, const struct mcp_passed *passed)
{
	struct mcp_edits edits;

	if (!begin_session(request, passed->data))
		return false;
	const struct slice path = client_path(request);
	if (slice_absent(path))
		return fail(request, NULL);
	mcp_edits_init(&edits, passed->raw, &request->arena);
	mcp_edits_put(&edits, passed->data, path);
	const struct slice event = mcp_edits_flat(&edits, &request->arena);
	return !slice_absent(event) && mcp_buffer_add(&request->held, &request->arena, event);
}

static bool is_within(struct slice part, struct slice whole)
{
	return !slice_absent(part) && part.at >= whole.at &&
	       part.at + part.len <= whole.at + whole.len;
}

/* Up to the first event with data, which decides what the stream is. */
static bool on_first(struct mcp_filter *filter, const struct mcp_passed *passed)
{
	struct mcp_request *request = of_filter(filter);
	const bool endpoint = slice_eq(passed->name, SLICE("endpoint"));

	if (slice_absent(passed->data) && !endpoint)
		return mcp_buffer_add(&request->held, &request->arena, passed->raw);
	if (endpoint && !is_within(passed->data, passed->raw))
		return fail(request, "the MCP server's endpoint event has several lines, or none");
	if (endpoint ? !pass_endpoint(request, passed)
		     : !mcp_buffer_add(&request->held, &request->arena, passed->raw))
		return false;
	filter->events = &mcp_stream_events;
	if (request->phase != MCP_STREAMS)
		mcp_stream_begin(request, request->call.answer.status);
	return mcp_out_add(&request->out, mcp_buffer_slice(&request->held));
}

static void take_nothing(struct mcp_filter *filter, struct slice text,
			 const struct mcp_message *message)
{
	(void)filter;
	(void)text;
	(void)message;
	must(false); /* the filter does not take yet */
}

static bool cancel_nothing(struct mcp_filter *filter, struct slice id)
{
	(void)filter;
	(void)id;
	return false;
}

static void lose_nothing(struct mcp_filter *filter, struct slice id)
{
	(void)filter;
	(void)id;
}

static const struct mcp_filter_events first_events = {
	.pass = on_first, .take = take_nothing, .cancel = cancel_nothing, .too_large = lose_nothing
};

void mcp_sse_begin(struct mcp_request *request)
{
	mcp_filter_init(&request->filter, &first_events, &request->arena, false);
	/* A server that may speak Streamable HTTP may say nothing for hours. */
	if (!request->sse_only)
		mcp_stream_begin(request, request->call.answer.status);
}

/* ---- messages ---- */

struct slice mcp_sse_token(struct slice query)
{
	while (!slice_absent(query)) {
		struct slice value = slice_cut(&query, '&');
		if (slice_eq(slice_cut(&value, '='), SLICE("s")))
			return value;
	}
	return slice_of(NULL, 0);
}
