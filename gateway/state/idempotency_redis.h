/* idempotency_redis.h - requests that are not made twice by any of several gateways (idempotency.h): who has one in
 * flight, and what it was answered with, in Redis.
 *
 * Whoever leads in its process claims the request before it is made; what it was answered with is told
 * afterwards, and nobody waits for that. Redis away, or too slow: each process knows of its own alone. A claim
 * of a gateway that has died is taken over by the first copy that comes once its key is gone (state_redis_alive.h),
 * some seconds later; one of a version without keys, or made before the key was there, once its request's deadline has
 * passed. A gateway that lives all the same makes the request too, but does not end the claim: what is remembered is
 * the answer of whoever has it now. One per worker. */
#ifndef GATEWAY_STATE_IDEMPOTENCY_REDIS_H
#define GATEWAY_STATE_IDEMPOTENCY_REDIS_H

#include "codec/json/json_read.h"
#include "gateway/redis/redis_link.h"
#include "gateway/state/idempotency.h"
#include "gateway/state/state_redis_alive.h"
#include "gateway/telemetry/metrics.h"

struct idempotency_redis;

/* `alive` is the process's, and must outlive it, as must `link` and `json`, the loop's own; `metrics`
 * counts claims that had to do without Redis, and answers that it was never told for want of room. NULL: memory. */
struct idempotency_redis *idempotency_redis_new(struct net_loop *loop, struct redis_link *link,
						struct alive *alive, struct json_work *json,
						struct metrics_worker *metrics);

/* True: `done` will be called once, unless idempotency_redis_forget comes first. False: Redis is away, and the
 * call goes on. */
MUST_USE bool idempotency_redis_claim(struct idempotency_redis *redis,
				      struct idempotency_claim *claim);
/* The request is going away; harmless when its claim is not pending. */
void idempotency_redis_forget(struct idempotency_redis *redis, struct idempotency_claim *claim);

/* It was answered: `member` (see idempotency_answer) is kept, unless it is too long. Or it was not, and may be made
 * by others. Nobody waits. While Redis is known to be away, that it was answered is
 * kept, without the answer, and told when it is back. */
void idempotency_redis_end(struct idempotency_redis *redis, const struct idempotency_claim *claim,
			   struct slice member);
void idempotency_redis_drop(struct idempotency_redis *redis, const struct idempotency_claim *claim);

#endif
