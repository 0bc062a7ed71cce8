/* mcp_bridge_era.h - what a worker has found out about servers that give no sessions: whether they speak 2026-07-28, so that
 * not every client's initialize asks them anew. Pure. */
#ifndef GATEWAY_FRONT_MCP_MCP_BRIDGE_ERA_H
#define GATEWAY_FRONT_MCP_MCP_BRIDGE_ERA_H

#include "codec/base/clock.h"
#include "gateway/front/mcp/mcp_token.h"

#define MCP_ERA_KEPT (300 * SEC)

enum mcp_era {
	MCP_ERA_UNKNOWN,
	MCP_ERA_LEGACY, /* it does not speak 2026-07-28 */
	MCP_ERA_BOTH,   /* it does, and answers initialize, too */
	MCP_ERA_MODERN, /* it speaks nothing else */
};

enum { MCP_ERAS = 256 };

/* All zero: nothing is known. */
struct mcp_eras {
	struct mcp_era_known {
		struct mcp_digest of;
		nsec_t until;
		enum mcp_era era;
	} known[MCP_ERAS];
};

/* `of` names an endpoint and the credential for it. One takes the place of another whose digest begins as it does. */
enum mcp_era mcp_era_of(const struct mcp_eras *eras, const struct mcp_digest *of, nsec_t now);
void mcp_era_note(struct mcp_eras *eras, const struct mcp_digest *of, enum mcp_era era, nsec_t now);

#endif
