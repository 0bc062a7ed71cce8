/* mcp_browser.h - what a browser asks of a server before it lets a page read an answer (CORS, DNS rebinding). */
#ifndef GATEWAY_FRONT_MCP_MCP_BROWSER_H
#define GATEWAY_FRONT_MCP_MCP_BROWSER_H

#include "gateway/http/http.h"

enum { MCP_BROWSER_FIELDS = 6 };

/* The fields that let a page of `origin`, which is allowed, read the answer; `preflight`: the answer to OPTIONS. Returns
 * how many of MCP_BROWSER_FIELDS were written; all are static but for the origin. */
size_t mcp_browser_fields(struct slice origin, bool preflight,
			  struct http_field fields[MCP_BROWSER_FIELDS]);

/* Whether a listener on a loopback address may be asked for by that name (Host, :authority): localhost, an IP address, or
 * the host of `public_url` (absent: none). A page of another name may have had that name resolved to this machine. */
bool mcp_browser_names_us(struct slice authority, struct slice public_url);

#endif
