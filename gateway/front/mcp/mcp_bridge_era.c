#include "gateway/front/mcp/mcp_bridge_era.h"

enum mcp_era mcp_era_of(const struct mcp_eras *eras, const struct mcp_digest *of, nsec_t now)
{
	const struct mcp_era_known *known = &eras->known[of->at[0]];

	_Static_assert(MCP_ERAS == UINT8_MAX + 1, "a byte is a place");
	return now < known->until && mcp_digest_eq(&known->of, of) ? known->era : MCP_ERA_UNKNOWN;
}

void mcp_era_note(struct mcp_eras *eras, const struct mcp_digest *of, enum mcp_era era, nsec_t now)
{
	eras->known[of->at[0]] =
		(struct mcp_era_known){ .of = *of, .until = now + MCP_ERA_KEPT, .era = era };
}
