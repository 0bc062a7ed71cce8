/* mcp_host.c - what a worker has for this front. */
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_removed.h"

/* Sessions that nobody uses end. */
static void on_minute(struct net_timer *timer)
{
	struct mcp_host *mcp = CONTAINER_OF(timer, struct mcp_host, minute);
	struct net_loop *loop = mcp->front->loop;

	mcp_sessions_expire(mcp->channels, net_now(loop));
	mcp_session_log_idle(mcp);
	mcp_removed_review(mcp);
	net_timer_set(loop, timer, net_now(loop) + 60 * SEC);
}

bool mcp_host_init(struct mcp_host *mcp)
{
	mcp->resting.chunk_bytes = MCP_REST_CHUNK;
	mcp->resting.keep_max = MCP_REST_KEPT;
	tenant_part(TENANT_PART_MCP, SLICE(""), mcp->messages_part);
	mcp->minute.fire = on_minute;
	net_timer_set(mcp->front->loop, &mcp->minute, net_now(mcp->front->loop) + 60 * SEC);
	return mcp_shares_init(&mcp->shares) && mcp_sampling_slab(&mcp->samplings) &&
	       mcp_post_slab(&mcp->posts) && mcp_own_slab(&mcp->owns);
}

size_t mcp_host_in_flight(const struct mcp_host *mcp)
{
	return mcp->samplings.out + mcp->posts.out;
}

void mcp_host_leave(struct mcp_host *mcp)
{
	mcp->leaving = true;
	for (struct mcp_request *at = mcp->all_gets, *next; at != NULL; at = next) {
		next = at->next;
		mcp_get_leave(at, ERR_DRAINING);
	}
	mcp_owns_end(mcp);
}

void mcp_host_give_up(struct mcp_host *mcp)
{
	mcp_host_leave(mcp);
	for (struct mcp_request *at = mcp->all_requests, *older; at != NULL; at = older) {
		older = at->older;
		mcp_forward_give_up(at);
	}
}

/* ---- a new configuration ---- */

/* The server is there no more. What goes on behind an event is a call's stream, which ends by itself; the session's own
 * stream ends the GETs that are served from it. */
static bool has_lost_server(struct mcp_request *request)
{
	struct mcp_link *link = &request->link;
	const struct mcp_server *server = mcp_link_server(request->mcp, link);

	return !request->goes_on && request->client.channels == NULL &&
	       (server == NULL || !mcp_link_place(link, server));
}

void mcp_host_use_config(struct mcp_host *mcp)
{
	mcp_owns_use_config(mcp);
	for (struct mcp_request *at = mcp->all_gets, *next; at != NULL; at = next) {
		next = at->next;
		if (mcp_is_revoked(mcp, &at->link, &at->caller))
			mcp_get_leave(at, ERR_UNAUTHORIZED);
		else if (has_lost_server(at))
			mcp_get_leave(at, ERR_SERVER_UNKNOWN);
	}
}
