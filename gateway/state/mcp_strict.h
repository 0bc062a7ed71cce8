/* mcp_strict.h - which MCP servers refuse what the gateway declares to them, so that not every session begins with the tries
 * that fail (mcp-proxy.md 2.2).
 *
 * Of the process, for MCP_STRICT_KEPT. What one tenant has found holds for that tenant alone until another has found the
 * same, for a server may refuse because of what the client sent. Thread safe. */
#ifndef GATEWAY_STATE_MCP_STRICT_H
#define GATEWAY_STATE_MCP_STRICT_H

#include "gateway/state/mcp_channel.h"

enum mcp_strictness {
	MCP_STRICT_NOT,      /* not known to be */
	MCP_STRICT_TOOLS,    /* it refuses sampling.tools */
	MCP_STRICT_SAMPLING, /* it refuses sampling */
};

#define MCP_STRICT_KEPT (600 * SEC)

/* What is known of the server for that tenant. `server` is any digest that names it. */
enum mcp_strictness mcp_strict_find(struct mcp_channels *channels, const struct state_key *server,
				    const struct state_key *tenant, nsec_t now);
/* The server has refused so much (not MCP_STRICT_NOT), and then taken what the tenant's client declared with less. */
void mcp_strict_note(struct mcp_channels *channels, const struct state_key *server,
		     const struct state_key *tenant, enum mcp_strictness found, nsec_t now);

#endif
