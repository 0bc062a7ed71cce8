/* limiter_redis.h - limits that hold across gateways: state in Redis, one round trip per attempt.
 *
 * Redis decides (limits/limits.lua), all or nothing; what an attempt really used, and places given back,
 * are summed per tenant and follow with the next request of that tenant, or within milliseconds. The
 * limit table counts along: it is this gateway's own part. While Redis is down, slow, read-only or
 * full, each tenant's on_store_failure says what happens, and nobody waits longer than the deadline.
 *
 * Money: each worker knows what it has told Redis of every tenant's day and month. A state that is new to
 * it and does not know the worker (flushed, evicted) is told all of it again, before it decides; one that comes
 * back from an older snapshot is not. One per worker; everything belongs to the loop's thread. */
#ifndef GATEWAY_LIMITS_LIMITER_REDIS_H
#define GATEWAY_LIMITS_LIMITER_REDIS_H

#include "gateway/base/config.h"
#include "gateway/limits/limiter.h"
#include "gateway/limits/limiter_query.h"
#include "gateway/net/net.h"
#include "gateway/redis/redis_link.h"
#include "gateway/telemetry/metrics.h"
#include "gateway/upstream/upstream.h"

struct store_redis;

/* `config` names the Redis (copied); `table` and `metrics` must outlive it. Lives until the process
 * ends. NULL with words in `problem` when memory is refused or the CA cannot be used. */
struct store_redis *store_redis_new(struct net_loop *loop, const struct config_store *config,
				    struct limit_table *table, struct metrics_worker *metrics,
				    uint32_t worker, char *problem, size_t room);

struct store *store_redis_store(struct store_redis *redis);

/* A turn of the loop is over: what it has to say to Redis, whoever's, leaves now and not with the next one. */
void store_redis_end_turn(struct store_redis *redis);

/* The connection has another user from now on, for as long as the process lives. */
struct redis_link *store_redis_join(struct store_redis *redis, struct redis_guest *guest);

/* A connection of its own that listens to `channel`, at most one; `events` without those of requests.
 * False: memory. */
MUST_USE bool store_redis_listen(struct store_redis *redis, const struct config_store *config,
				 struct slice channel, const struct redis_link_events *events,
				 void *owner);

/* Answers it within a second or so: what was sent is answered or lost by then. On the loop's thread. */
void store_redis_ask(struct store_redis *redis, struct store_question *question);

/* User and password of `config` from now on (redis_link_set_login); it is not looked at for anything
 * else. */
void store_redis_use_login(struct store_redis *redis, const struct config_store *config);

/* Addresses of the configured host, ports 0, for the next connection; count 0: none are known. */
void store_redis_resolved(struct store_redis *redis, const struct upstream_address *addresses,
			  uint32_t count);

#endif
