/* mcp_remote.h - a client's GET whose session has its own upstream stream at another gateway, or on another worker of one
 * (mcp-proxy.md 4.5): that worker, the home, sends the events over the bus (peer_bus.h).
 *
 * At the home the GET is a client of the channel like any other (mcp_channel.h): there is one queue, and the newest GET
 * gets the events. Events have numbers; where one is missing, the GET ends, and its client comes again. What the home says
 * last is said again from time to time, so that nobody waits for what was lost, or for somebody who has forgotten. */
#ifndef GATEWAY_FRONT_MCP_MCP_REMOTE_H
#define GATEWAY_FRONT_MCP_MCP_REMOTE_H

#include "codec/base/list.h"
#include "gateway/state/key_shard.h"
#include "gateway/state/mcp_channel.h"
#include "gateway/state/mcp_shared.h"

enum {
	MCP_REMOTE_WINDOW = 128 << 10, /* bytes on their way to a client that has not taken them */
	/* At a home's worker: GETs that other gateways hold; those beyond are CLOSED. */
	MCP_REMOTES_MAX = 65536,
};
#define MCP_REMOTE_PATIENCE (2 * SEC) /* for the home's first answer */
#define MCP_REMOTE_SAYS (64 * SEC) /* a home that has nothing to tell says so at least as often */
#define MCP_REMOTE_SILENCE (150 * SEC) /* a home that says nothing for so long has gone */

struct mcp_host;
struct mcp_remotes;

/* The client's side; lives in its request, all zero before it is used. */
struct mcp_remote {
	struct mcp_who who; /* set by the caller, as are: */
	struct peer_address home;
	struct mcp_request *owner; /* for its functions */
	/* `state` has changed: it is, as of a struct mcp_client, OPEN, REFUSED, ENDED, CLOSED (the home has gone, is dead or
	 * does not answer), REPLACED or GAP; or `other` is set, and the state CLOSED: last_id is not one of the own GET's
	 * (MCP_ATTACH_OTHER). Of all but OPEN it is not in any more. Never from inside of a function of this header but
	 * mcp_remotes_died. It may detach, or free it. */
	void (*changed)(struct mcp_remote *remote);
	/* Bytes of events, in order: at most MCP_REMOTE_WINDOW that were not taken (mcp_remote_took). As `changed`. */
	void (*events)(struct mcp_remote *remote, struct slice bytes);
	enum mcp_channel_state state; /* OPENING at first */
	bool other;
	/* private */
	struct mcp_remotes *remotes; /* NULL: it is not in */
	uint64_t name;               /* by which both sides know it */
	uint32_t number;             /* of the next piece */
	uint64_t came, taken, told;  /* bytes in all; the home was told of `told` */
	struct state_key key;        /* of home and name, as is the link */
	struct key_link link;
	struct list_link all;
	struct net_timer patience; /* for what the home says next */
};

/* One per worker: its clients' GETs, and those of other gateways whose home it is. All must outlive it. `mcp` has inbox and
 * channels. NULL: memory. */
struct mcp_remotes *mcp_remotes_new(struct net_loop *loop, struct mcp_host *mcp,
				    struct peer_bus *bus, struct mcp_shared *shared);
/* For tests: none of its clients' GETs is in. */
void mcp_remotes_free(struct mcp_remotes *remotes);

/* Attaches to the home; as mcp_client_attach, but the answer comes later. False: Redis is away, nothing follows. */
MUST_USE bool mcp_remote_attach(struct mcp_remotes *remotes, struct mcp_remote *remote,
				struct slice last_id);
/* The client has taken so many bytes more: the home may send on. More than have come are all that have; harmless when it is
 * not in. */
void mcp_remote_took(struct mcp_remote *remote, size_t bytes);
/* The client has left; harmless when it is not in. */
void mcp_remote_detach(struct mcp_remote *remote);
/* A gateway has died: those whose home it was are CLOSED, and those of its clients are detached. */
void mcp_remotes_died(struct mcp_remotes *remotes);

#endif
