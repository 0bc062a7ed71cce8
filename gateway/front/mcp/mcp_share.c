#include "gateway/front/mcp/mcp_share.h"

#include "gateway/front/mcp/mcp_filter.h"

_Static_assert((int)FAIR_KEY_BYTES == (int)MCP_DIGEST_BYTES, "owners are tenants");

bool mcp_shares_init(struct mcp_shares *shares)
{
	mcp_shares_bound(shares, 0);
	if (!fair_share_map(&shares->bytes, REQUESTS_MAX, false))
		return false;
	if (fair_share_map(&shares->streams, REQUESTS_MAX, false))
		return true;
	fair_share_unmap(&shares->bytes);
	return false;
}

/* Half of it is what a tenant that is alone may hold. */
void mcp_shares_bound(struct mcp_shares *shares, uint64_t bytes)
{
	const uint64_t one = MCP_HELD_MAX + MCP_BYTES_SHORT;

	shares->bytes_most = bytes > 2 * one ? bytes : 2 * one;
}

bool mcp_hold_bytes(struct mcp_shares *shares, struct mcp_held *held,
		    const struct mcp_digest *tenant, size_t bytes)
{
	const struct fair_bound bound = { .most = shares->bytes_most, .small = 0 };
	const size_t counted = bytes > MCP_BYTES_SHORT ? bytes : 0;

	if (counted > held->bytes) {
		if (fair_share_take(&shares->bytes, &bound, tenant->at, counted - held->bytes,
				    &held->bytes_owner) != FAIR_TAKEN)
			return false;
	} else if (counted < held->bytes) {
		fair_share_sub(&shares->bytes, held->bytes_owner, held->bytes - counted);
	}
	held->bytes = counted;
	return true;
}

enum fair_verdict mcp_hold_stream(struct mcp_shares *shares, struct mcp_held *held,
				  const struct mcp_digest *tenant)
{
	const struct fair_bound bound = { .most = MCP_RESTING_MAX, .small = 0 };

	if (held->stream_owner != 0)
		return FAIR_TAKEN;
	return fair_share_take(&shares->streams, &bound, tenant->at, 1, &held->stream_owner);
}

void mcp_hold_nothing(struct mcp_shares *shares, struct mcp_held *held)
{
	if (held->bytes != 0)
		fair_share_sub(&shares->bytes, held->bytes_owner, held->bytes);
	if (held->stream_owner != 0)
		fair_share_sub(&shares->streams, held->stream_owner, 1);
	*held = (struct mcp_held){ .bytes = 0 };
}
