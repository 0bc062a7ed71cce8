/* mcp_rig.h - sessions of tenants and servers that are called by a letter, and two workers. Included once, by a test's
 * only source. */
#ifndef TESTS_UNIT_GATEWAY_MCP_RIG_H
#define TESTS_UNIT_GATEWAY_MCP_RIG_H

#include "gateway/state/mcp_channel_parts.h"

#include "tests/unit/gateway/net/inbox_rig.h"

#define NOW (1000 * SEC)

static struct mcp_channels *channels;

static inline struct state_key key_of(const char *name)
{
	return state_key_of(STATE_MCP_SESSION, SLICE(""), SLICE(""), SLICE(""), slice_str(name));
}

/* The session `name` of that tenant and server. */
static inline struct mcp_who who_of(const char *tenant, const char *server, const char *name)
{
	return (struct mcp_who){ .key = key_of(name),
				 .tenant = key_of(tenant),
				 .server = mcp_server_key(slice_str(server)) };
}

static inline struct mcp_who session(const char *name)
{
	return who_of("tenant", "server", name);
}

static inline uint32_t sessions_now(const char *server)
{
	const struct state_key key = mcp_server_key(slice_str(server));

	return mcp_counts_of_server(&channels->counts, &key);
}

#endif
