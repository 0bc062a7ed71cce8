/* mcp_count.c - what is counted of the proxy's work. */
#include "gateway/front/mcp/mcp.h"

void mcp_count_post(struct mcp_host *mcp, const struct mcp_link *link,
		    const struct upstream_call *call)
{
	(void)link;
	if (call->err != ERR_OK)
		mcp->posts_failed++;
	else if (call->answer.status >= 400)
		mcp->posts_refused++;
}

void mcp_count_lost(struct mcp_host *mcp, const struct mcp_link *link)
{
	(void)link;
	mcp->posts_failed++;
}
