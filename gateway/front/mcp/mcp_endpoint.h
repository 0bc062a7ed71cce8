/* mcp_endpoint.h - where a server of HTTP+SSE (2024-11-05) wants messages to be posted: the data of its `endpoint` event,
 * resolved against the server's URL (RFC 3986, 5.2). Pure.
 *
 * Only the server's own origin is taken: else a server could have the gateway send its credentials elsewhere
 * (contract/mcp-proxy.md 8, 12). */
#ifndef GATEWAY_FRONT_MCP_MCP_ENDPOINT_H
#define GATEWAY_FRONT_MCP_MCP_ENDPOINT_H

#include "gateway/base/config.h"

/* *path is path and query, for a request line: of `said`, or in `into`. False: `said` is another origin, or no URL, or there
 * is no memory. */
MUST_USE bool mcp_endpoint_resolve(const struct endpoint *base, struct slice said,
				   struct arena *into, struct slice *path);

#endif
