/* mcp_bridge_param.h - arguments of a tool that 2026-07-28 wants mirrored in headers (x-mcp-header in the tool's inputSchema,
 * Mcp-Param-* in the call). Pure. */
#ifndef GATEWAY_FRONT_MCP_MCP_BRIDGE_PARAM_H
#define GATEWAY_FRONT_MCP_MCP_BRIDGE_PARAM_H

#include "codec/json/json_write.h"
#include "codec/mcp/mcp_message.h"

enum { MCP_PARAM_DEPTH = 16 }; /* properties within properties; deeper ones are not looked at */

/* The inputSchema of the tool of that name (a JSON string) in a response to tools/list. Absent: it is not there; *cursor is
 * then the rest's, JSON text, or absent. */
struct slice mcp_param_schema(const struct mcp_message *listed, struct slice name,
			      struct slice *cursor);

/* The header lines of these arguments (absent: none), each once its value is a string, a number, true or false, and none for a
 * value of more than 8 KiB. */
void mcp_param_lines(struct slice schema, struct slice arguments, struct arena *into,
		     struct gather *head);

#endif
