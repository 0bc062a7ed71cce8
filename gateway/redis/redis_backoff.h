/* redis_backoff.h - how long to wait before Redis is called again. Pure. */
#ifndef GATEWAY_REDIS_REDIS_BACKOFF_H
#define GATEWAY_REDIS_REDIS_BACKOFF_H

#include "codec/base/clock.h"

#define REDIS_BACKOFF_MIN (25 * MSEC)
#define REDIS_BACKOFF_MAX (800 * MSEC)

struct redis_backoff {
	nsec_t next;     /* 0: the first one; set so when all is well */
	uint64_t chance; /* never 0 */
};

/* xorshift: pauses of many gateways must not fall together, and nothing else depends on it. */
static inline uint64_t redis_backoff_chance(struct redis_backoff *backoff)
{
	backoff->chance ^= backoff->chance << 13;
	backoff->chance ^= backoff->chance >> 7;
	backoff->chance ^= backoff->chance << 17;
	return backoff->chance;
}

/* This time's: from REDIS_BACKOFF_MIN on, twice as long each time up to REDIS_BACKOFF_MAX, and half of each is
 * chance. */
static inline nsec_t redis_backoff_next(struct redis_backoff *backoff)
{
	const nsec_t now = backoff->next == 0 ? REDIS_BACKOFF_MIN : backoff->next;

	backoff->next = now * 2 < REDIS_BACKOFF_MAX ? now * 2 : REDIS_BACKOFF_MAX;
	return now / 2 + redis_backoff_chance(backoff) % (now / 2);
}

#endif
