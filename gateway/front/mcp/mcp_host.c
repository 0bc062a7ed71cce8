/* mcp_host.c - what a worker has for this front. */
#include "gateway/front/mcp/mcp.h"

/* Sessions that nobody uses end. */
static void on_minute(struct net_timer *timer)
{
	struct mcp_host *mcp = CONTAINER_OF(timer, struct mcp_host, minute);
	struct net_loop *loop = mcp->front->loop;

	mcp_sessions_expire(mcp->channels, net_now(loop));
	mcp_session_log_idle(mcp);
	net_timer_set(loop, timer, net_now(loop) + 60 * SEC);
}

bool mcp_host_init(struct mcp_host *mcp)
{
	mcp->minute.fire = on_minute;
	net_timer_set(mcp->front->loop, &mcp->minute, net_now(mcp->front->loop) + 60 * SEC);
	return mcp_sampling_slab(&mcp->samplings) && mcp_post_slab(&mcp->posts) &&
	       mcp_own_slab(&mcp->owns);
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
		mcp_get_leave(at);
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
