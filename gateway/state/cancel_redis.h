/* cancel_redis.h - cancellations at other gateways (cancel.h): one PUBLISH tells all of them, and one connection of each
 * listens.
 *
 * Best effort, as a cancellation is (DESIGN 4.3): while Redis is away nobody is told, and what was told then is not told
 * again. One per worker. */
#ifndef GATEWAY_STATE_CANCEL_REDIS_H
#define GATEWAY_STATE_CANCEL_REDIS_H

#include "gateway/redis/redis_client.h"
#include "gateway/state/cancel.h"

struct cancel_redis;

/* `cancels` and `client` must outlive it. With `config` it listens, too: one worker of a process does; NULL:
 * it tells others only. NULL: memory. */
struct cancel_redis *cancel_redis_new(struct redis_client *client, struct cancel_table *cancels,
				      const struct config_store *config);

/* Cancels the entries of that key at all gateways that listen. Nobody waits. */
void cancel_redis_tell(struct cancel_redis *redis, struct state_key key);

#endif
