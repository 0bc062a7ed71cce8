/* state_redis.h - sessions, loops and private blocks that every gateway finds: state in Redis.
 *
 * One script each to load and to save, over the connection that all share. The
 * memory store of the process is told everything, too: while Redis is away, what this process itself wrote
 * stays known here, and a session that begins or ends meanwhile is told to Redis when it is asked about
 * next. Whatever Redis has lost of loops and blocks is taken from there, so that it has to be lost twice.
 *
 * Nobody waits longer than store.deadline. One per worker; everything belongs to the loop's thread. */
#ifndef GATEWAY_STATE_STATE_REDIS_H
#define GATEWAY_STATE_STATE_REDIS_H

#include "gateway/base/config.h"
#include "gateway/net/net.h"
#include "gateway/redis/redis_link.h"
#include "gateway/state/state_memory.h"
#include "gateway/telemetry/metrics.h"

struct state_redis;

/* `link`, `memory` and `metrics` must outlive it; the store's settings are copied. Before the loop's first
 * turn. Lives until the process ends. NULL: memory. */
struct state_redis *state_redis_new(struct net_loop *loop, struct redis_link *link,
				    struct state_memory *memory, const struct config_store *config,
				    struct metrics_worker *metrics);

struct state *state_redis_state(struct state_redis *redis);

#endif
