/* limiter_redis.h - limits that hold across gateways: state in Redis, one round trip per attempt.
 *
 * Redis decides (limits/limits.lua), all or nothing; what an attempt really used, and places given back,
 * are summed per tenant and follow with the next request of that tenant, or within milliseconds. The
 * limit table counts along: it is this gateway's own part. While Redis is down, slow, read-only or
 * full, each tenant's on_store_failure says what happens, and nobody waits longer than the deadline.
 *
 * Money: each worker knows what it has reported to Redis of every tenant's day and month. A state that is new to
 * it and does not know the worker (flushed, evicted) gets all of it again, before it decides; one that comes
 * back from an older snapshot is not. One per worker; everything belongs to the loop's thread. */
#ifndef GATEWAY_LIMITS_LIMITER_REDIS_H
#define GATEWAY_LIMITS_LIMITER_REDIS_H

#include "gateway/base/config.h"
#include "gateway/limits/limiter.h"
#include "gateway/limits/limiter_query.h"
#include "gateway/net/net.h"
#include "gateway/redis/redis_link.h"
#include "gateway/telemetry/metrics.h"

struct limiter_redis;

/* `link`, `table` and `metrics` must outlive it, and the link be new; the limiter's settings are copied. Lives until the
 * process ends. NULL: memory. */
struct limiter_redis *limiter_redis_new(struct net_loop *loop, struct redis_link *link,
					const struct config_store *config,
					struct limit_table *table, struct metrics_worker *metrics);

struct limiter *limiter_redis_limiter(struct limiter_redis *redis);

/* Answers it within a second or so: what was sent is answered or lost by then. On the loop's thread. */
void limiter_redis_ask(struct limiter_redis *redis, struct limiter_query *question);

#endif
