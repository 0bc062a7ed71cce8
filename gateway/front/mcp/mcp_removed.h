/* mcp_removed.h - endpoints of MCP servers that a reload has taken out of the configuration: calls that run there go on,
 * and what their servers ask for on the way is answered there (FRONTS 2). No session begins there any more.
 *
 * Of one worker. What is kept of an endpoint goes MCP_REMOVED_KEPT after its last use. */
#ifndef GATEWAY_FRONT_MCP_MCP_REMOVED_H
#define GATEWAY_FRONT_MCP_MCP_REMOVED_H

#include "gateway/front/mcp/mcp_link.h"
#include "gateway/upstream/upstream.h"

struct mcp_host;
struct mcp_removed;

enum { MCP_REMOVED_MAX = 4096 };      /* beyond, the one goes that was not used for longest */
#define MCP_REMOVED_KEPT (3600 * SEC) /* no sampling takes longer */

/* `config` is about to replace the one in use, which is still there, as are its pools. */
void mcp_removed_note(struct mcp_host *mcp, const struct config *config);

/* The server that a link leads to, with link->endpoint among its endpoints: as configured, or as it was before it was
 * removed. NULL: there is none. Valid until the next turn of the loop. */
const struct mcp_server *mcp_link_way(struct mcp_host *mcp, struct mcp_link *link);

/* The pool of a server that mcp_link_way has found; NULL: it is one of the configuration. */
struct upstream_pool *mcp_removed_pool(const struct mcp_host *mcp, const struct mcp_server *server);

/* About once a minute: what nobody uses any more goes. */
void mcp_removed_review(struct mcp_host *mcp);

#endif
