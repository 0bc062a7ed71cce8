/* worker_parts.h - what the files of a worker share: private to worker*.c. */
#ifndef GATEWAY_WORKER_WORKER_PARTS_H
#define GATEWAY_WORKER_WORKER_PARTS_H

#include "gateway/front/front.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/limits/limiter_redis.h"
#include "gateway/redis/redis_client.h"
#include "gateway/sampling/sampling_core.h"
#include "gateway/worker/panic.h"
#include "gateway/worker/worker.h"

#include <pthread.h>

enum { WORKER_MAGIC = 0x574f524b };

/* For other threads. */
struct worker_lessons {
	pthread_mutex_t lock;
	uint64_t seq; /* of the snapshot that the models are of */
	uint32_t count;
	struct worker_lesson list[WORKER_LESSONS_MAX];
};

struct worker {
	uint32_t magic;
	struct worker_args args;
	struct worker_shared shared;
	struct net_loop *loop;
	struct http_server *http;
	struct upstream *upstream;
	struct limiter_memory memory;
	struct redis_client *redis;          /* NULL: nothing is shared with other gateways */
	struct limiter_redis *shared_limits; /* NULL likewise: they are kept in the table alone */
	struct sampling core;
	struct front_host fronts;
	struct mcp_host mcp;
	struct worker_pool_counts *pool_counts; /* by provider; stays, because control reads it */
	struct worker_health *healths;          /* likewise */
	struct worker_lessons *lessons;         /* likewise */
	struct net_timer second;                /* gauges */
	struct panic_slab slabs[2];
	struct panic_context panic; /* what this thread is doing, should a promise break */
};

/* ---- worker.c ---- */

/* The drain is nearly over: who waits for a provider is told so, and whoever still comes. */
void worker_refuse_waiting(struct worker *worker);

/* ---- worker_mcp.c ---- */

/* Sets up the proxy; the fronts are there. False: no memory. */
MUST_USE bool worker_build_mcp(struct worker *worker);
/* The numbers of the servers' metrics. */
void worker_use_mcp_servers(struct worker *worker, const struct config *config);
/* Other gateways of the same Redis are listened to from the first MCP server on. Likewise. */
MUST_USE bool worker_join_peers(struct worker *worker, const struct config *config);
/* What seals sessions from now on. Likewise. */
MUST_USE bool worker_use_seals(struct worker *worker, const struct config *config);

/* ---- worker_publish.c ---- */

/* Pools, breakers and keys, for the scrape, and lessons. */
void worker_publish(struct worker *worker);
/* NULL: memory. */
struct worker_lessons *worker_lessons_new(void);

/* ---- worker_control.c ---- */

/* Takes over a snapshot; false when memory is refused: the one before stays in use. */
MUST_USE bool worker_use_config(struct worker *worker, const struct config *config, uint64_t seq);

/* What a configuration means for this worker's listeners. */
struct http_limits worker_http_limits(const struct worker *worker, const struct config *config);

#endif
