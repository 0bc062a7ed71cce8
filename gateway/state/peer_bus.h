/* peer_bus.h - messages between the workers of gateways that share a Redis.
 *
 * Each worker listens to a channel of its own, and worker 0 of each gateway to one that all share, over one connection.
 * Best effort, at most once and in order while both connections last: a message is lost while Redis, or the listener's
 * connection, is away. What must not be lost has a number, or is in Redis as well. One per worker. */
#ifndef GATEWAY_STATE_PEER_BUS_H
#define GATEWAY_STATE_PEER_BUS_H

#include "gateway/redis/redis_client.h"
#include "gateway/state/peer_address.h"

enum { PEER_MESSAGE_MAX = 80 << 10 }; /* bytes of one message */

/* What messages are about: a user of the bus has a kind for each of its messages. Part of what is sent, so only append. */
enum peer_kind {
	PEER_MCP_SHARED, /* mcp_shared.h */
	PEER_MCP_ATTACH, /* mcp_remote.h: to the home, */
	PEER_MCP_CREDIT,
	PEER_MCP_DETACH,
	PEER_MCP_EVENTS, /* and to the client's gateway */
	PEER_MCP_END,
	PEER_KINDS
};

struct peer_bus;

/* Listens from the loop's next turn on; lives until the process ends. `worker` is this one's number, below 256. NULL:
 * memory. */
struct peer_bus *peer_bus_new(struct redis_client *client, const struct config_store *config,
			      const struct alive *alive, uint32_t worker);

/* This worker's own address. */
struct peer_address peer_bus_own(const struct peer_bus *bus);

/* Messages of that kind go to `heard` from now on; one owner a kind. `body` is valid during the call. */
void peer_bus_hear(struct peer_bus *bus, enum peer_kind kind,
		   void (*heard)(void *owner, const struct peer_address *from, struct slice body),
		   void *owner);

/* Tells one worker, which may be of this gateway; the body is the parts, one behind the other. False: Redis is away, or does
 * not keep up, or it is too long. True says that it was sent, not that anybody hears it. */
MUST_USE bool peer_bus_tell(struct peer_bus *bus, const struct peer_address *to,
			    enum peer_kind kind, const struct slice *parts, size_t count);
/* Tells worker 0 of every other gateway. Nobody waits. */
void peer_bus_tell_all(struct peer_bus *bus, enum peer_kind kind, const struct slice *parts,
		       size_t count);

/* A connection came, or went: messages that were told, or would have been heard, may have been lost. One owner; `gap`
 * NULL: nobody. */
void peer_bus_on_gap(struct peer_bus *bus, void (*gap)(void *owner), void *owner);

#endif
