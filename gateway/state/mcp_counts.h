/* mcp_counts.h - how many sessions tenants and servers have, and how many bytes tenants' queued events take: private to
 * mcp_session.c, mcp_channel.c and mcp_queue.c.
 *
 * Any thread may call; the lock is taken last. */
#ifndef GATEWAY_STATE_MCP_COUNTS_H
#define GATEWAY_STATE_MCP_COUNTS_H

#include "gateway/base/fair_share.h"
#include "gateway/state/mcp_session.h"

#include <pthread.h>

struct mcp_counts {
	pthread_mutex_t lock;
	struct fair_share tenants, servers; /* sessions, and places for some */
	struct fair_share bytes;            /* of events, by tenant */
	uint32_t places;                    /* of sessions that have not begun yet */
};

/* A session's part in both; 0: it is not counted. */
struct mcp_counted {
	uint32_t tenant, server;
};

/* False: no memory. */
MUST_USE bool mcp_counts_init(struct mcp_counts *counts);
void mcp_counts_fini(struct mcp_counts *counts); /* nothing is counted any more */

/* A place for another session, within the bounds; *out is written with MCP_ROOM only. */
MUST_USE enum mcp_room mcp_counts_take(struct mcp_counts *counts, const struct state_key *tenant,
				       uint32_t tenant_max, const struct state_key *server,
				       uint32_t server_max, struct mcp_counted *out);
/* The place is a session's now, or is given back. */
void mcp_counts_keep(struct mcp_counts *counts);
void mcp_counts_drop(struct mcp_counts *counts, struct mcp_counted counted);

/* A session, whatever the bounds; and its end. */
struct mcp_counted mcp_counts_add(struct mcp_counts *counts, const struct state_key *tenant,
				  const struct state_key *server);
void mcp_counts_sub(struct mcp_counts *counts, struct mcp_counted counted);
uint32_t mcp_counts_of_server(struct mcp_counts *counts, const struct state_key *server);

/* So many bytes (at least 1) for the tenant, as far as it has its share; 0: it has not, or there is no room. */
MUST_USE uint32_t mcp_counts_take_bytes(struct mcp_counts *counts, const struct state_key *tenant,
					size_t bytes);
void mcp_counts_give_bytes(struct mcp_counts *counts, uint32_t owner, size_t bytes);

#endif
