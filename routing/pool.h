/* pool.h - a provider's endpoints in turn, by weight (smooth weighted round robin).
 *
 * State belongs to one worker. Latency, health and zones come with the routing issue. */
#ifndef ROUTING_POOL_H
#define ROUTING_POOL_H

#include <stdint.h>

struct pool_member {
	uint32_t weight; /* >= 1 */
	int64_t current; /* private to pool_pick */
};

/* Index of the next member; count >= 1. Over sum(weight) calls each member is picked weight times,
 * spread evenly. */
uint32_t pool_pick(struct pool_member *members, uint32_t count);

#endif
