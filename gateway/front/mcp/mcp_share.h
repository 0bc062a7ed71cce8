/* mcp_share.h - what tenants hold of a worker in streams of the proxy: bytes of events that are not whole or have not left
 * (mcp-proxy.md 11), and streams that may be silent for hours. A tenant may have more while it holds no more than is free
 * (fair_share.h), so that none takes what others need. */
#ifndef GATEWAY_FRONT_MCP_MCP_SHARE_H
#define GATEWAY_FRONT_MCP_MCP_SHARE_H

#include "gateway/base/bounds.h"
#include "gateway/base/fair_share.h"
#include "gateway/front/mcp/mcp_token.h"

enum {
	/* Streams of a worker that may be silent for hours. A tenant that is alone may have half of them: 10,000 and more. */
	MCP_RESTING_MAX = REQUESTS_MAX / 4 * 3,
	MCP_BYTES_SHORT = 64 << 10, /* so many bytes of a stream are not counted */
};

struct mcp_shares {
	struct fair_share bytes, streams;
	uint64_t bytes_most; /* of all streams */
};

/* What one stream holds; all zero: nothing. */
struct mcp_held {
	uint32_t bytes_owner, stream_owner;
	size_t bytes;
};

/* False: no memory. */
MUST_USE bool mcp_shares_init(struct mcp_shares *shares);
/* All bytes together. A tenant that is alone may hold the largest event in any case. */
void mcp_shares_bound(struct mcp_shares *shares, uint64_t bytes);

/* The stream, of that tenant, holds so many bytes now. False: more than its tenant may have; it holds as many as before, and
 * ends. */
MUST_USE bool mcp_hold_bytes(struct mcp_shares *shares, struct mcp_held *held,
			     const struct mcp_digest *tenant, size_t bytes);
/* The stream may be silent from now on; harmless when repeated. FAIR_OWN: its tenant has its share of such streams; FAIR_FULL:
 * there are too many. */
MUST_USE enum fair_verdict mcp_hold_stream(struct mcp_shares *shares, struct mcp_held *held,
					   const struct mcp_digest *tenant);
/* It is over. */
void mcp_hold_nothing(struct mcp_shares *shares, struct mcp_held *held);

#endif
