/* peer_address.h - a worker of one of the gateways that share a Redis. */
#ifndef GATEWAY_STATE_PEER_ADDRESS_H
#define GATEWAY_STATE_PEER_ADDRESS_H

#include "gateway/state/state_redis_alive.h"

/* Which worker of which gateway. All zero: none. */
struct peer_address {
	uint8_t gateway[ALIVE_NAME_BYTES];
	uint8_t worker;
};

enum { PEER_ADDRESS_BYTES = ALIVE_NAME_BYTES + 1 };
_Static_assert(sizeof(struct peer_address) == PEER_ADDRESS_BYTES, "it is sent as it is");

static inline bool peer_address_eq(const struct peer_address *a, const struct peer_address *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline bool peer_address_none(const struct peer_address *address)
{
	static const struct peer_address none;

	return peer_address_eq(address, &none);
}

/* Whether both are workers of one gateway. */
static inline bool peer_address_same_gateway(const struct peer_address *a,
					     const struct peer_address *b)
{
	return memcmp(a->gateway, b->gateway, sizeof(a->gateway)) == 0;
}

#endif
