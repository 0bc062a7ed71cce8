/* redis_backoff.h - how long to wait before Redis is called again. Pure. */
#ifndef GATEWAY_REDIS_REDIS_BACKOFF_H
#define GATEWAY_REDIS_REDIS_BACKOFF_H

#include "codec/base/clock.h"

#define REDIS_PAUSE_MIN (25 * MSEC)
#define REDIS_PAUSE_MAX (800 * MSEC)

struct redis_pause {
	nsec_t next;     /* 0: the first one; set so when all is well */
	uint64_t chance; /* never 0 */
};

/* xorshift: pauses of many gateways must not fall together, and nothing else depends on it. */
static inline uint64_t redis_pause_chance(struct redis_pause *pause)
{
	pause->chance ^= pause->chance << 13;
	pause->chance ^= pause->chance >> 7;
	pause->chance ^= pause->chance << 17;
	return pause->chance;
}

/* This time's: from REDIS_PAUSE_MIN on, twice as long each time up to REDIS_PAUSE_MAX, and half of each is
 * chance. */
static inline nsec_t redis_pause(struct redis_pause *pause)
{
	const nsec_t now = pause->next == 0 ? REDIS_PAUSE_MIN : pause->next;

	pause->next = now * 2 < REDIS_PAUSE_MAX ? now * 2 : REDIS_PAUSE_MAX;
	return now / 2 + redis_pause_chance(pause) % (now / 2);
}

#endif
