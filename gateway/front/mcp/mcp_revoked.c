/* mcp_revoked.c - streams that may be silent for hours: how many a tenant may have, and whether a new configuration lets its
 * caller have them. */
#include "gateway/front/mcp/mcp.h"
#include "tenants/auth.h"

/* ---- how many ---- */

bool mcp_may_rest(struct mcp_request *request)
{
	switch (mcp_hold_stream(&request->mcp->shares, &request->share,
				&request->link.token.tenant)) {
	case FAIR_TAKEN:
		return true;
	case FAIR_OWN:
		return mcp_refuse_err(request, ERR_CONCURRENCY);
	case FAIR_FULL:
		break;
	}
	return mcp_refuse_err(request, ERR_BUSY);
}

/* ---- a new configuration ---- */

static bool has_subject(const struct caller *caller)
{
	static const uint8_t none[sizeof(caller->subject)];

	return memcmp(caller->subject, none, sizeof(none)) != 0;
}

void mcp_note_key(struct mcp_request *request)
{
	struct mcp_link *link = &request->link;

	if (link->keyed || request->in == NULL || !request->shown.shown ||
	    !auth_may_be_key(request->shown.secret) || has_subject(&request->caller))
		return;
	sha256(request->shown.secret, link->key);
	link->keyed = true;
}

/* Another key of the same name does: its holder is the same principal. */
static bool has_lost_key(const struct mcp_link *link, const struct config *config,
			 const struct tenant *account, const struct caller *caller)
{
	const struct tenant_key *key =
		link->keyed ? auth_find_digest(&config->tenants, link->key) : NULL;

	return link->keyed &&
	       (key == NULL || key->tenant != account || !slice_eq(key->server, caller->server));
}

bool mcp_is_revoked(const struct mcp_host *mcp, const struct mcp_link *link,
		    const struct caller *caller)
{
	const struct config *config = mcp->front->config;
	const struct tenant *account;
	const struct plan *plan;

	return !caller_account(caller, config, &account, &plan) ||
	       (plan->fronts & FRONT_MCP) == 0 || !plan_may_use_mcp(plan, link->token.server) ||
	       has_lost_key(link, config, account, caller);
}
