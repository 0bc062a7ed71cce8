/* mcp_browser.h - what a browser asks of a server before it lets a page read an answer (CORS, DNS rebinding). */
#ifndef GATEWAY_FRONT_MCP_MCP_BROWSER_H
#define GATEWAY_FRONT_MCP_MCP_BROWSER_H

#include "codec/base/arena.h"
#include "gateway/base/config.h"
#include "gateway/http/http.h"

enum { MCP_BROWSER_FIELDS = 6 };

/* The request headers that a page may send: those that always pass, and of `asked` (Access-Control-Request-Headers;
 * absent: none) those that pass to this server. `server` NULL: there is none of that name. Static, or in `into`. */
struct slice mcp_browser_headers(struct slice asked, const struct mcp_server *server,
				 struct arena *into);

/* The fields that let a page of `origin`, which is allowed, read the answer. `headers`: of the answer to OPTIONS, which it
 * may send; absent: it is another answer. Returns how many of MCP_BROWSER_FIELDS were written; all are static but for the
 * two. */
size_t mcp_browser_fields(struct slice origin, struct slice headers,
			  struct http_field fields[MCP_BROWSER_FIELDS]);

/* Whether a listener on a loopback address may be asked for by that name (Host, :authority): localhost, an IP address, or
 * the host of `public_url` (absent: none). A page of another name may have had that name resolved to this machine. */
bool mcp_browser_names_us(struct slice authority, struct slice public_url);

#endif
