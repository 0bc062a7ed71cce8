/* mcp_hub.h - what the workers of a process know together of the other gateways, and what one of them has heard for
 * all: private to mcp_shared*.c and to what holds it (mcp_channel_parts.h).
 *
 * Any thread may call; a member is told on its own worker's thread. */
#ifndef GATEWAY_STATE_MCP_HUB_H
#define GATEWAY_STATE_MCP_HUB_H

#include "gateway/net/inbox.h"
#include "gateway/state/peer_address.h"
#include "gateway/state/state.h"

enum {
	MCP_PEERS_MAX = 1024, /* gateways; with more, nobody is found dead */
	MCP_FREED_MAX = 256,  /* keys that a worker has not taken yet */
};

/* What a worker has not taken yet. */
struct mcp_news {
	bool died;    /* a gateway has, or more keys were freed than can be told */
	bool doubted; /* others may have taken this gateway for dead */
	uint32_t freed_count;
	struct state_key freed[MCP_FREED_MAX];
};

/* A worker. */
struct mcp_member {
	uint32_t worker;
	struct inbox *inbox;
	/* There is news: mcp_member_take follows. */
	void (*told)(struct mcp_member *member);
	/* private */
	struct mcp_hub *hub;
	struct mcp_member *next;
	struct inbox_item item;
	struct mcp_news news;
};

struct mcp_peers {
	uint32_t count;
	uint8_t at[MCP_PEERS_MAX][ALIVE_NAME_BYTES];
};

struct mcp_hub {
	pthread_mutex_t lock;
	struct mcp_member *members;
	struct mcp_peers living;
};

void mcp_hub_init(struct mcp_hub *hub);
void mcp_hub_fini(struct mcp_hub *hub);

/* Its first three are set; it stays until the process ends. */
void mcp_hub_join(struct mcp_hub *hub, struct mcp_member *member);
/* The number of the worker with that inbox. False: it has not joined. */
MUST_USE bool mcp_hub_worker(struct mcp_hub *hub, const struct inbox *inbox, uint8_t *worker);

/* These gateways live: names, one behind the other. `all`: others do not, and members are told of each that did
 * before. */
void mcp_hub_see(struct mcp_hub *hub, struct slice names, bool all);
bool mcp_hub_lives(struct mcp_hub *hub, const uint8_t name[ALIVE_NAME_BYTES]);

/* The home of that session is free: all members are told. */
void mcp_hub_free_home(struct mcp_hub *hub, const struct state_key *key);

/* Others may have taken this gateway for dead: all members are told. */
void mcp_hub_doubt(struct mcp_hub *hub);

/* The news of a member, by its own worker. */
void mcp_member_take(struct mcp_member *member, struct mcp_news *news);

#endif
