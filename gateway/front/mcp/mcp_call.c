/* mcp_call.c - the way to a session's server, and the session's end. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"

const struct mcp_server *mcp_link_server(const struct mcp_host *mcp, const struct mcp_link *link)
{
	return config_mcp_server(mcp->front->config, link->token.server);
}

bool mcp_call_start(struct mcp_host *mcp, const struct mcp_server *server,
		    const struct mcp_link *link, struct upstream_call *call,
		    struct upstream_extra *extra, struct upstream_address *pin)
{
	const size_t number = (size_t)(server - mcp->front->config->mcp_servers);
	struct upstream_pool *pool = mcp->front->mcp_pools[number][link->endpoint];

	if (pool == NULL)
		return false;
	extra->pin = NULL;
	if (upstream_address_count(pool) > 1 && mcp_pin_address(&link->token.pin, pin))
		extra->pin = pin;
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
		return ERR_BUSY;
	case ERR_PROVIDER_ANSWER:
		return ERR_SERVER_ANSWER;
	default:
		return ERR_SERVER_UNAVAILABLE;
	}
}

void mcp_session_over(struct mcp_host *mcp, const struct mcp_link *link)
{
	(void)mcp_session_end(mcp->channels, &link->who, net_now(mcp->front->loop));
	(void)flights_call_off(mcp->flights, link->who.key);
	if (mcp->flights_elsewhere != NULL)
		flights_redis_call_off(mcp->flights_elsewhere, link->who.key);
}
