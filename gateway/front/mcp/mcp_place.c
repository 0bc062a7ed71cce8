/* mcp_place.c - a place for a session that is about to begin, by the limits of plan and server: over all gateways where they
 * share a Redis, else in this process. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/telemetry/metrics.h"
#include "tenants/limit.h"

static bool refuse_full(struct mcp_request *request, bool tenant)
{
	struct error_data data = error_data_none;
	struct fault fault = { .err = ERR_SESSIONS, .offset = FAULT_NO_OFFSET };

	data.limit = tenant ? "mcp_sessions" : "sessions";
	data.scope = tenant ? limit_holder_name(LIMIT_OF_TENANT) : "server";
	if (!tenant)
		fault.detail = "The MCP server has as many sessions as its configuration allows";
	metrics_limit(request->mcp->metrics, data.limit, METRICS_REFUSED);
	return mcp_refuse(request, &fault, &data);
}

/* In this process. */
static bool take_here(struct mcp_request *request, uint32_t tenant_max, uint32_t server_max)
{
	const struct mcp_link *link = &request->link;
	struct state_key tenant;
	const struct state_key server = mcp_server_key(link->token.server);

	(void)memcpy(tenant.at, link->token.tenant.at, sizeof(tenant.at));
	switch (mcp_place_take(request->mcp->channels, &request->place, &tenant, tenant_max,
			       &server, server_max, net_now(request->host->loop))) {
	case MCP_ROOM:
		return true;
	case MCP_TENANT_FULL:
		return refuse_full(request, true);
	case MCP_SERVER_FULL:
		return refuse_full(request, false);
	case MCP_PROCESS_FULL:
		break;
	}
	return mcp_refuse_err(request, ERR_BUSY);
}

static bool go_on(struct mcp_request *request)
{
	const struct mcp_ask *ask = request->asked;
	const uint32_t tenant_max = ask->tenant_max, server_max = ask->server_max;

	switch (ask->answer) {
	case MCP_SHARED_ROOM:
		if (!take_here(request, UINT32_MAX, UINT32_MAX))
			return false;
		break;
	case MCP_SHARED_TENANT_FULL:
		return refuse_full(request, true);
	case MCP_SHARED_SERVER_FULL:
		return refuse_full(request, false);
	default:
		request->asked = NULL; /* there is none to give back */
		if (!take_here(request, tenant_max, server_max))
			return false;
	}
	request->server = mcp_link_server(request->mcp, &request->link);
	if (request->server == NULL || !mcp_link_place(&request->link, request->server))
		return mcp_refuse_err(request, ERR_SERVER_UNKNOWN);
	const bool begun = request->placed(request);
	request->server = NULL; /* a reload may come */
	return begun;
}

static void on_asked(struct mcp_ask *ask)
{
	struct mcp_request *request = ask->owner;

	if (!go_on(request))
		mcp_answer_whole(request, gather_flat(&request->answer, &request->arena));
}

static bool ask_all(struct mcp_request *request)
{
	struct mcp_ask *ask;

	if (request->mcp->shared == NULL)
		return false;
	ask = arena_zero(&request->arena, sizeof(*ask));
	if (ask == NULL)
		return false;
	mcp_link_who(&request->link); /* tenant and server; there is no session yet */
	ask->who = request->link.who;
	ask->owner = request;
	ask->done = on_asked;
	if (!mcp_ask_place(request->mcp->shared, ask, request->caller.account->plan->mcp_sessions,
			   request->server->sessions))
		return false;
	request->asked = ask;
	return true;
}

bool mcp_place_for(struct mcp_request *request, bool (*placed)(struct mcp_request *request))
{
	request->placed = placed;
	if (ask_all(request)) {
		request->phase = MCP_CALLED;
		return true;
	}
	return take_here(request, request->caller.account->plan->mcp_sessions,
			 request->server->sessions) &&
	       placed(request);
}

void mcp_place_begun(struct mcp_request *request)
{
	if (request->asked != NULL)
		mcp_shared_begun(request->mcp->shared, request->asked, &request->link.who);
	request->asked = NULL;
	mcp_session_begin(&request->place, &request->link.who, net_now(request->host->loop));
}

void mcp_place_give(struct mcp_request *request)
{
	mcp_place_drop(&request->place);
	if (request->asked == NULL)
		return;
	if (request->asked->answer == MCP_SHARED_ROOM)
		mcp_shared_unplaced(request->mcp->shared, request->asked);
	else
		mcp_ask_forget(request->asked);
	request->asked = NULL;
}
