/* mcp_remote_parts.h - what mcp_remote.c, the client's side, and mcp_remote_home.c, the home's, share. Private to them. */
#ifndef GATEWAY_FRONT_MCP_MCP_REMOTE_PARTS_H
#define GATEWAY_FRONT_MCP_MCP_REMOTE_PARTS_H

#include "codec/base/slab.h"
#include "gateway/front/mcp/mcp_remote.h"
#include "gateway/front/mcp/mcp_remote_wire.h"

enum {
	MCP_REMOTE_BUCKETS = 16384,
	MCP_REMOTE_PIECE = 64 << 10, /* bytes of events in one message */
};
_Static_assert(MCP_REMOTE_PIECE + MCP_REMOTE_HEAD_MAX <= PEER_MESSAGE_MAX, "a piece is a message");

/* GETs by what mcp_remote_key says. They are one thread's, so that nobody locks them. */
struct mcp_remote_names {
	struct key_shard keys;
	struct list all;
	struct key_link *buckets[MCP_REMOTE_BUCKETS];
};

struct mcp_remotes {
	struct net_loop *loop;
	struct mcp_host *mcp;
	struct peer_bus *bus;
	struct mcp_shared *shared;
	uint64_t last_name;
	struct mcp_remote_names clients; /* struct mcp_remote */
	struct mcp_remote_names proxies; /* of mcp_remote_home.c, as are the next two */
	struct slab proxy_slab;
	char piece[MCP_REMOTE_PIECE];
};

/* Of the GET that this worker and the peer know by that name. */
struct state_key mcp_remote_key(const struct peer_address *peer, uint64_t name);

/* False: it is lost. */
MUST_USE bool mcp_remote_tell(struct mcp_remotes *remotes, const struct peer_address *to,
			      enum peer_kind kind, const struct mcp_remote_message *message);

/* ---- the home's side ---- */

/* Hears from now on. False: memory. */
MUST_USE bool mcp_proxies_init(struct mcp_remotes *remotes);
void mcp_proxies_fini(struct mcp_remotes *remotes);
void mcp_proxies_died(struct mcp_remotes *remotes);

#endif
