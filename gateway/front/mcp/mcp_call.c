/* mcp_call.c - the way to a session's server, and the session's end. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_removed.h"

const struct mcp_server *mcp_link_server(const struct mcp_host *mcp, const struct mcp_link *link)
{
	return config_mcp_server(mcp->front->config, link->token.server);
}

static struct upstream_pool *pool_of(const struct mcp_host *mcp, const struct mcp_server *server,
				     const struct mcp_link *link)
{
	struct upstream_pool *removed = mcp_removed_pool(mcp, server);

	if (removed != NULL)
		return removed;
	const size_t number = (size_t)(server - mcp->front->config->mcp_servers);
	return mcp->front->mcp_pools[number][link->endpoint];
}

struct mcp_pin mcp_call_pin(struct mcp_host *mcp, const struct mcp_link *link,
			    const struct upstream_address *peer)
{
	struct mcp_link at = *link;
	const struct mcp_server *server = mcp_link_way(mcp, &at);
	const struct upstream_pool *pool = server == NULL ? NULL : pool_of(mcp, server, &at);

	return pool == NULL || peer->len == 0 || upstream_address_count(pool) < 2
		       ? (struct mcp_pin){ .family = 0 }
		       : mcp_pin_of(peer);
}

bool mcp_call_start(struct mcp_host *mcp, const struct mcp_server *server,
		    const struct mcp_link *link, struct upstream_call *call,
		    struct upstream_extra *extra, struct upstream_address *pin)
{
	struct upstream_pool *pool = pool_of(mcp, server, link);

	if (pool == NULL)
		return false;
	extra->pin = mcp_pin_address(&link->token.pin, pin) ? pin : NULL;
	call->extra = extra;
	upstream_start(pool, call);
	return true;
}

enum err mcp_call_error(const struct upstream_call *call)
{
	switch (call->err) {
	case ERR_OK:
		return ERR_OK;
	case ERR_BUSY:
	case ERR_DEADLINE:
		return call->err;
	case ERR_PROVIDER_ANSWER:
		return ERR_SERVER_ANSWER;
	default:
		return call->extra->gone ? ERR_SESSION_UNKNOWN : ERR_SERVER_UNAVAILABLE;
	}
}

void mcp_session_over(struct mcp_host *mcp, const struct mcp_link *link, enum mcp_end why)
{
	if (mcp_session_end(mcp->channels, &link->who, net_now(mcp->front->loop))) {
		mcp_session_log_end(mcp, link, why);
		if (mcp->shared != NULL)
			mcp_shared_ended(mcp->shared, &link->who);
	}
	(void)cancel_all(mcp->cancels, link->who.key);
	if (mcp->cancels_elsewhere != NULL)
		cancel_redis_tell(mcp->cancels_elsewhere, link->who.key);
}
