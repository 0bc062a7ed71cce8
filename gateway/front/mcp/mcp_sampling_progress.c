/* mcp_sampling_progress.c - what a server is told while its sampling is under way (mcp-proxy.md 6.5, mcp.md 10.3.7). */
#include "gateway/front/mcp/mcp_sampling_parts.h"

enum { PROGRESS_TOKEN_MAX = 1024 }; /* bytes of a token that is repeated with every notification */
#define PROGRESS_EVERY (10 * SEC)

static void tell_progress(struct mcp_sampling *sampling)
{
	struct arena arena;
	struct gather body;

	arena_init(&arena, sampling->mcp->front->arenas, MCP_ARENA_MAX);
	gather_init(&body, &arena);
	gather_lit(&body, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
			  "{\"progressToken\":");
	gather_raw(&body, sampling->request.progress_token);
	gather_lit(&body, ",\"progress\":");
	gather_uint(&body, sampling->seconds);
	gather_lit(&body, "}}");
	/* Without memory the server is told the next time. */
	if (gather_done(&body) == ERR_OK)
		(void)mcp_post(sampling->mcp, &sampling->link, &body);
	arena_give(&arena);
}

static void on_progress(struct net_timer *timer)
{
	struct mcp_sampling *sampling = CONTAINER_OF(timer, struct mcp_sampling, progress);
	struct net_loop *loop = sampling->mcp->front->loop;

	sampling->seconds += PROGRESS_EVERY / SEC;
	tell_progress(sampling);
	net_timer_set(loop, timer, net_now(loop) + PROGRESS_EVERY);
}

/* A server that gave a token begins its timeout anew with each notification. */
void mcp_sampling_progress(struct mcp_sampling *sampling)
{
	struct net_loop *loop = sampling->mcp->front->loop;
	const struct slice token = sampling->request.progress_token;

	sampling->progress.fire = on_progress;
	if (!slice_absent(token) && token.len <= PROGRESS_TOKEN_MAX && sampling->entry == NULL)
		net_timer_set(loop, &sampling->progress, net_now(loop) + PROGRESS_EVERY);
}
