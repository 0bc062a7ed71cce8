/* mcp_bridge_text.h - what messages of a client of 2024-11-05 … 2025-11-25 become in front of a server that speaks only
 * 2026-07-28, and what comes back (contract/mcp-proxy.md 7.10). Pure: texts in, texts out.
 *
 * A message is never written anew: all that is not named here stays as its author wrote it. */
#ifndef GATEWAY_FRONT_MCP_MCP_BRIDGE_TEXT_H
#define GATEWAY_FRONT_MCP_MCP_BRIDGE_TEXT_H

#include "codec/mcp/mcp_message.h"
#include "gateway/front/mcp/mcp_token.h"

enum { MCP_LOG_LEVELS = 8 };

/* ---- what a client has said of itself ---- */

/* An object with clientInfo and clientCapabilities as the server is to see them, of at most MCP_DECLARED_MAX bytes, in
 * `into`. The capabilities are none, for the client cannot be asked for anything; a longer clientInfo is cut to name and
 * version, or left out. Absent: no memory. */
MUST_USE struct slice mcp_bridge_declared(const struct mcp_message *initialize, struct arena *into);

/* The number of a level of logging/setLevel, from 1 on; 0: there is none of that name. */
uint32_t mcp_bridge_log_level(struct slice level);

/* ---- towards the server ---- */

/* A message of the client, an object, as one of 2026-07-28: params._meta says the version, and what `declared` (an object
 * of mcp_bridge_declared) and `log_level` (0: none) say. In `into`. ERR_PARAMS: its params are no object; ERR_BUSY. */
MUST_USE enum err mcp_bridge_body(struct slice object, const struct mcp_message *message,
				  struct slice declared, uint32_t log_level, struct arena *into,
				  struct slice *out);

/* The header lines that go with it, in `into`. ERR_PARAMS: its method or name is no string that can be told. */
MUST_USE enum err mcp_bridge_head(const struct mcp_message *message, struct arena *into,
				  struct slice *out);

/* What a string means, in `into`. Absent: it is no JSON string, or there is no memory. */
MUST_USE struct slice mcp_bridge_meaning(struct slice value, struct arena *into);

/* A header's line with a text of any bytes as its value, as 2026-07-28 spells it. */
void mcp_bridge_line(struct gather *head, struct slice name, struct slice value);

/* A request of the gateway's own, with its header lines in *head. `value`: of the member `name` of its params, JSON text;
 * absent: there is none. Absent: no memory. */
MUST_USE struct slice mcp_bridge_own(const char *method, const char *name, struct slice value,
				     struct slice declared, struct arena *into, struct slice *head);

/* ---- towards the client ---- */

/* The result of initialize from the response to server/discover, under the client's id; without `subscribe`, which a
 * bridged session does not bring. `server`: its name where it does not say one. Absent: no memory. */
MUST_USE struct slice mcp_bridge_hello(const struct mcp_message *initialize,
				       const struct mcp_message *discovered, struct slice server,
				       struct arena *into);

/* The revision that the session is of: the client's, or 2025-11-25 where that has no sessions. */
enum revision mcp_bridge_revision(const struct mcp_message *initialize);

/* Whether a response to server/discover says that the server speaks 2026-07-28. */
bool mcp_bridge_speaks(const struct mcp_message *discovered);

/* Whether an error is one that servers of 2026-07-28 answer to initialize. */
bool mcp_bridge_is_modern_error(const struct mcp_message *response);

#endif
