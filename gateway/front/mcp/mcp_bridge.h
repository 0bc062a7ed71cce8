/* mcp_bridge.h - sessions of clients of 2024-11-05 … 2025-11-25 in front of servers that speak only 2026-07-28
 * (contract/mcp-proxy.md 7.10): without sessions such a server cannot ask a client of an older revision for anything.
 *
 * The session is the gateway's own and stands in its token alone: the server hears of single calls of 2026-07-28, each played
 * inside the client's exchange (mcp_round.h). Only where samplings are answered here; whether a server that gives no
 * session speaks 2026-07-28 is asked with server/discover, and remembered for a while (mcp_bridge_era.h). */
#ifndef GATEWAY_FRONT_MCP_MCP_BRIDGE_H
#define GATEWAY_FRONT_MCP_MCP_BRIDGE_H

#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_bridge_era.h"
#include "gateway/front/mcp/mcp_round_text.h"

#define MCP_DISCOVER_TIME (5 * SEC) /* for a server's answer to server/discover */

/* ---- mcp_bridge_hello.c ---- */

extern const struct mcp_hello_watch mcp_bridge_hello_watch;

/* ---- mcp_bridge_answer.c ---- */

/* The response to a request of the gateway's own, whose call is over: as JSON, or as the first one of a stream, collected whole.
 * False: there is none. It lies in the answer and the request's arena. */
MUST_USE bool mcp_bridge_answer(struct mcp_request *request, struct mcp_message *out);

/* ---- mcp_bridge_list.c ---- */

/* Whether a response says that headers of the call's arguments are missing, and has not said so before. */
bool mcp_bridge_lacks(const struct mcp_request *request, const struct mcp_message *response);
/* Finds out which, and sends the call again. The request may be gone afterwards. */
void mcp_bridge_list(struct mcp_request *request);

/* ---- mcp_bridge_listen.c ---- */

/* Serves a GET. False: refused. */
MUST_USE bool mcp_bridge_listen(struct mcp_request *request);

/* ---- mcp_bridge.c: what comes in such a session ---- */

/* False: answered already, the answer is in place. */
MUST_USE bool mcp_bridge_serve(struct mcp_request *request);
struct mcp_round_rule mcp_bridge_rule(const struct mcp_request *request);
/* The status that the answer to a leg has on its way to the client becomes request->status. False: it is none that the client
 * could make sense of. */
MUST_USE bool mcp_bridge_show(struct mcp_request *request, const struct mcp_message *response);
/* A round begins. False: it was dealt with here, and the request may be gone. */
MUST_USE bool mcp_bridge_round(struct mcp_request *request, const struct mcp_entries *entries);

#endif
