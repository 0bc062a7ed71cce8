/* state_redis_alive.h - that a gateway lives, for the other gateways: a key of its own in Redis, which goes away a few
 * seconds after its process does. What a gateway has in Redis and that only it can bring to an end (claims of
 * requests that are not made twice) may be taken over when its key is gone.
 *
 * One key per process: whichever worker finds first that a second has passed renews it, and every connection that
 * becomes ready sets it at once. A key that is gone proves less than that its gateway is dead: Redis may have
 * stood still, or have lost it. So nobody takes anything over before it has renewed its own key in time for
 * ALIVE_STEADY: by then every gateway that lives has set its key again, as far as it can reach Redis at all. One that
 * was stopped, or that alone could not reach Redis, may find what it has begun taken over when it goes on: what it
 * writes has to say whose it is (idempotency.lua). */
#ifndef GATEWAY_STATE_STATE_REDIS_ALIVE_H
#define GATEWAY_STATE_STATE_REDIS_ALIVE_H

#include "codec/base/slice.h"
#include "gateway/redis/redis_link.h"

enum { ALIVE_NAME_BYTES = 5 };

/* From its last renewal on. */
#define ALIVE_LASTS (4 * SEC)
#define ALIVE_LASTS_MS "4000" /* as text */
#define ALIVE_STEADY ALIVE_LASTS

/* Of the process: its workers share it. */
struct alive;

/* NULL: memory. Lives until the process ends, but for tests. */
struct alive *alive_new(void);
void alive_free(struct alive *alive);

/* By which other gateways know this process: chance, ALIVE_NAME_BYTES. */
struct slice alive_name(const struct alive *alive);
/* Its key is in Redis, as far as this process knows: it may be judged by it. Of any thread. */
bool alive_is_known(const struct alive *alive, nsec_t now);
/* It is, and has been for so long that a gateway without a key is dead. Of any thread. */
bool alive_is_steady(const struct alive *alive, nsec_t now);

/* How often there was doubt whether the key had been there all the time: it was gone, or nobody could tell. Then others may
 * have taken over what is this gateway's. Of any thread. */
uint32_t alive_doubts(const struct alive *alive);

/* Renews the key over that connection from now on. One per worker. `alive` and `link` must outlive it. NULL: memory. */
struct alive_redis;
struct alive_redis *alive_redis_new(struct net_loop *loop, struct redis_link *link,
				    struct alive *alive);

#endif
