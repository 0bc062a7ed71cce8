/* mcp_remote.h - a client's GET whose session has its own upstream stream at another gateway, or on another worker of one
 * (mcp-proxy.md 4.5): that worker, the home, sends the events over the bus (peer_bus.h).
 *
 * At the home the GET is a client of the channel like any other (mcp_channel.h): there is one queue, and the newest GET
 * gets the events. Events have numbers; where one is missing, the GET ends, and its client comes again. */
#ifndef GATEWAY_FRONT_MCP_MCP_REMOTE_H
#define GATEWAY_FRONT_MCP_MCP_REMOTE_H

#include "gateway/front/mcp/mcp.h"

enum { MCP_REMOTE_WINDOW = 128 << 10 }; /* bytes on their way to a client that has not taken them */

/* The client's side; lives in its request, all zero before it is used. */
struct mcp_remote {
	struct mcp_who who; /* set by the caller, as are: */
	struct peer_address home;
	struct mcp_request *owner; /* for its functions */
	/* The home has answered, or it has ended: state is, as of a struct mcp_client, OPENING (nothing yet), OPEN, REFUSED,
	 * ENDED, CLOSED (the home has gone, or is dead), REPLACED or GAP; or `other` is set: last_id is not one of the own
	 * GET's (MCP_ATTACH_OTHER). Of all but OPENING and OPEN it is not in any more. */
	void (*changed)(struct mcp_remote *remote);
	/* Bytes of events, in order. */
	void (*events)(struct mcp_remote *remote, struct slice bytes);
	enum mcp_channel_state state;
	bool other;
	/* private */
	struct mcp_remotes *remotes; /* NULL: it is not in */
	uint64_t name;               /* by which both sides know it */
	uint32_t number;             /* of the next piece */
	struct mcp_remote *next, **place;
	struct net_timer patience; /* for the home's first answer */
};

struct mcp_remotes;

/* One per worker. NULL: memory. */
struct mcp_remotes *mcp_remotes_new(struct net_loop *loop, struct mcp_host *mcp,
				    struct peer_bus *bus, struct mcp_shared *shared);

/* Attaches to the home; as mcp_client_attach, but the answer comes later. False: Redis is away. */
MUST_USE bool mcp_remote_attach(struct mcp_remotes *remotes, struct mcp_remote *remote,
				struct slice last_id);
/* The client has taken so many bytes more: the home may send on. */
void mcp_remote_took(struct mcp_remote *remote, size_t bytes);
/* The client has left; harmless when it is not in. */
void mcp_remote_detach(struct mcp_remote *remote);
/* A gateway has died: those whose home it was are CLOSED, and those of its clients are detached. */
void mcp_remotes_died(struct mcp_remotes *remotes);

#endif
