/* mcp_peers.c - what other gateways of the same Redis tell this worker: who has died, whose streams are free, and what was
 * left to answer (mcp-proxy.md 4.5, 6.2). */
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_remote.h"

/* ---- streams that nobody has ---- */

/* A session's stream is to be open while a client has a request or GET of it here. */
static void take_over(struct mcp_request *request)
{
	const bool open = request->phase == MCP_CALLED || request->phase == MCP_STREAMS ||
			  request->phase == MCP_ORPHAN;
	struct peer_address home;

	if (open && request->verb == MCP_VERB_POST && request->link.token.own_get &&
	    !mcp_shared_home_known(request->mcp->shared, &request->link.who, &home))
		(void)mcp_own_open(request->mcp, &request->link, &request->caller, NULL);
}

static void on_died(void *owner)
{
	struct mcp_host *mcp = owner;

	mcp_remotes_died(mcp->remotes);
	for (struct mcp_request *at = mcp->all_requests, *older; at != NULL; at = older) {
		older = at->older;
		take_over(at);
	}
}

static void on_freed(void *owner, const struct state_key *key)
{
	struct mcp_host *mcp = owner;

	for (struct mcp_request *at = mcp->all_requests, *older; at != NULL; at = older) {
		older = at->older;
		if (mcp_link_has_session(&at->link) && state_key_eq(&at->link.who.key, key))
			take_over(at);
	}
}

void mcp_home_check(struct mcp_request *request)
{
	struct peer_address home;

	if (request->mcp->shared != NULL && request->link.token.own_get &&
	    request->posted.first.kind == MCP_REQUEST &&
	    mcp_home_look(request->mcp->channels, &request->link.who) == MCP_OPENED &&
	    !mcp_shared_home_known(request->mcp->shared, &request->link.who, &home))
		(void)mcp_own_open(request->mcp, &request->link, &request->caller, NULL);
}

/* ---- requests that nobody answers ---- */

static void on_orphan(void *owner, const struct mcp_who *who, struct slice id, struct slice kept)
{
	mcp_claim_inherit(owner, who, id, kept);
}

/* This gateway was taken for dead: what it was about to answer another one answers. */
static void on_taken(void *owner, const struct mcp_who *who, struct slice id)
{
	struct mcp_host *mcp = owner;

	(void)cancel_all(mcp->cancels, mcp_asked_key(&who->key, id));
}

const struct mcp_shared_events mcp_peer_events = {
	.died = on_died,
	.freed = on_freed,
	.orphan = on_orphan,
	.taken = on_taken,
};
