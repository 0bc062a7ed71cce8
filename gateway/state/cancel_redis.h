/* cancel_redis.h - requests that are called off at other gateways (cancel.h): told to all of them by one
 * PUBLISH, heard by one connection of each.
 *
 * Best effort, as calling off is (DESIGN 4.3): while Redis is away nobody is told, and what was told then is
 * not told again. One per worker. */
#ifndef GATEWAY_STATE_CANCEL_REDIS_H
#define GATEWAY_STATE_CANCEL_REDIS_H

#include "gateway/redis/redis_client.h"
#include "gateway/state/cancel.h"

struct flights_redis;

/* `flights` and `client` must outlive it. With `config` it listens, too: one worker of a process does; NULL:
 * it tells others only. NULL: memory. */
struct flights_redis *flights_redis_new(struct redis_client *client, struct flights *flights,
					const struct config_store *config);

/* Calls off, at all gateways that listen, those of that key. Nobody waits. */
void flights_redis_call_off(struct flights_redis *redis, struct state_key key);

#endif
