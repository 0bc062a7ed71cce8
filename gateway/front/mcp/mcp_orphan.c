/* mcp_orphan.c - a client that leaves. In a session that is no cancellation (mcp-proxy.md 6.6): its call goes on, for the
 * server may be about to ask for a sampling, and waits for its answer. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"

/* ---- an orphan's life ---- */

static nsec_t patience_of(const struct mcp_request *request)
{
	return request->call.timeouts.idle;
}

/* Comments keep a stream open for ever, and nobody reads it: without a message it ends, unless a sampling is under way. */
static void on_alone(struct net_timer *timer)
{
	struct mcp_request *request = CONTAINER_OF(timer, struct mcp_request, alone);
	const nsec_t now = net_now(request->host->loop);
	nsec_t until = request->heard + patience_of(request);

	must(request->phase == MCP_ORPHAN);
	if (request->samplings != NULL)
		until = now + patience_of(request);
	if (until <= now)
		mcp_request_free(request);
	else
		net_timer_set(request->host->loop, timer, until);
}

static void begin(struct mcp_request *request)
{
	request->phase = MCP_ORPHAN;
	request->heard = net_now(request->host->loop);
	request->alone.fire = on_alone;
	net_timer_set(request->host->loop, &request->alone, request->heard + patience_of(request));
	upstream_resume(&request->call);
}

/* ---- the client leaves ---- */

/* The body is the client's exchange's, which goes; what was not sent yet is kept. False: a part of it was sent. */
static bool keep_body(struct mcp_request *request)
{
	struct iovec *body = &request->sent[1];

	if (upstream_is_sent(&request->call))
		return true;
	if (request->call.state != UPSTREAM_QUEUED && request->call.state != UPSTREAM_CONNECT)
		return false;
	if (request->call.request_count < 2)
		return true;
	const struct slice copy =
		arena_copy(&request->arena, slice_of(body->iov_base, body->iov_len));
	if (!slice_absent(copy))
		body->iov_base = (void *)(uintptr_t)copy.at;
	return !slice_absent(copy);
}

/* A stream that the client can resume is closed, for its server waits for that. */
static bool goes_on(struct mcp_request *request)
{
	switch (request->phase) {
	case MCP_CALLED:
		return request->legs == NULL && keep_body(request);
	case MCP_STREAMS:
		return !request->resumable && !request->out.ended &&
		       (request->patience.place != 0 || upstream_is_sent(&request->call));
	default:
		return false;
	}
}

void mcp_gone(struct mcp_request *request)
{
	const struct mcp_link *link = &request->link;
	const bool session = mcp_link_has_session(link);

	if (request->verb == MCP_VERB_DELETE && session)
		mcp_session_over(request->mcp, link, MCP_END_DELETED);
	if (request->verb == MCP_VERB_POST && session && mcp_link_takes(link) && goes_on(request) &&
	    mcp_hold_stream(&request->mcp->shares, &request->share, &link->token.tenant) ==
		    FAIR_TAKEN)
		begin(request);
	else
		mcp_request_free(request);
}
