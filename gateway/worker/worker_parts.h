/* worker_parts.h - what the files of a worker share: private to worker*.c. */
#ifndef GATEWAY_WORKER_WORKER_PARTS_H
#define GATEWAY_WORKER_WORKER_PARTS_H

#include "codec/base/slab.h"
#include "gateway/flow/flow.h"
#include "gateway/limits/limiter_redis.h"
#include "gateway/net/inbox.h"
#include "gateway/redis/redis_client.h"
#include "gateway/state/cancel_redis.h"
#include "gateway/state/idempotency_redis.h"
#include "gateway/worker/panic.h"
#include "gateway/worker/worker.h"

#include <pthread.h>

enum { WORKER_MAGIC = 0x574f524b, REQUEST_MAGIC = 0x52455155 };

/* What the worker made of one snapshot: health and pools by the snapshot's indices. */
struct worker_providers {
	struct health_view *health;
	struct upstream_pool *(
		*pools)[CONFIG_ENDPOINTS_MAX]; /* NULL where a CA could not be used */
	uint64_t *firsts; /* by provider, a bit per endpoint: no earlier one has its pool */
};

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
	struct store_memory memory;
	struct redis_client *redis;        /* NULL: nothing is shared with other gateways */
	struct store_redis *shared_limits; /* NULL likewise: they are kept in the table alone */
	struct store *store;
	struct state *state; /* sessions, loops, private blocks */
	/* Copies at other gateways, and who is called off there; both NULL: there are none. */
	struct once_redis *elsewhere;
	struct flights_redis *flights_elsewhere;
	struct inbox inbox;
	struct slab requests;
	struct stream_slab streams; /* of answers that come as one */
	struct arena_pool arenas;
	struct json_work *json;
	struct health *health;
	struct jwt_checker *tokens;
	struct key_memory *keys;
	struct refusals *refusals;
	const struct config *config;
	struct worker_providers providers;
	struct worker_pool_counts *pool_counts; /* by provider; stays, because control reads it */
	struct worker_health *healths;          /* likewise */
	struct worker_lessons *lessons;         /* likewise */
	struct net_timer second;                /* gauges */
	uint8_t random[4096];
	size_t random_left;
	struct flow_bodies bodies; /* of requests that are here, whose tenants are known */
	struct request *waiting;   /* those without an answer yet */
	uint32_t
		waiting_early; /* of them, with a timer and without a place: nothing counts them yet */
	bool given_up;         /* requests are refused */
	struct panic_slab slabs[2];
	struct panic_context panic; /* what this thread is doing, should a promise break */
};

/* What an event of a stream touches lies in its first line of the cache, and in the flow's first two. */
struct request {
	uint32_t magic;
	bool placed : 1;     /* holds a concurrency place in the store */
	bool answered : 1;   /* the answer is there: http_answer was called, or it ends a stream */
	bool gone : 1;       /* nobody is there to answer: the exchange goes when this returns */
	bool early : 1;      /* one of waiting_early */
	bool unsent : 1;     /* what was told last has not left */
	bool late : 1;       /* and the next was due: the provider is held up */
	uint16_t connection; /* the number of its client's, but for the high bits */
	struct worker *worker;
	struct http_exchange *exchange;
	struct {
		struct net_task
			soon; /* the next notification is due in this turn, or when others are told, */
		struct net_timer timer; /* or then */
	} told;
	struct request *next, **place; /* in worker->waiting; place NULL: not on it */
	struct upstream_pool *pool;    /* chosen while the snapshot was at hand */
	struct net_timer wait;         /* before another attempt */
	_Alignas(64) struct flow flow;
	struct arena arena; /* begins in flow.in->room */
};

/* ---- worker.c ---- */

/* The drain is nearly over: who waits for a provider is told so, and whoever still comes. */
void worker_refuse_waiting(struct worker *worker);

/* What a request waited for is there. It may be gone afterwards. */
void worker_run(struct request *r, enum flow_event event);

/* One of the answers that flow->awaited says is there: with the last of them it goes on. Likewise. */
void worker_answered(struct request *r, enum flow_ask what);

/* Whatever it waits for, that does not matter any more: likewise. Not once it is answered. */
void worker_interrupt(struct request *r, enum flow_event event);

/* ---- sampling_report.c ---- */

/* It is over; `cut_short`: before all of its answer had left. */
void worker_report(struct request *r, bool cut_short);

/* ---- sampling_limits.c ---- */

/* Whether the tenant may begin the session that the request is to be remembered by, if it begins one; else
 * its reservation says until when not. */
MUST_USE bool worker_may_begin(struct request *r);

/* The effect of that name; true when its verdict is there, and the flow may look at it. */
MUST_USE bool worker_reserve(struct request *r);
/* The verdict is about to be looked at: what it means for the request's place, and for metrics. */
void worker_note_verdict(struct request *r);

/* ---- sampling_state.c ---- */

/* The effects of these names; true when it is done at once. */
MUST_USE bool worker_recall(struct request *r);
MUST_USE bool worker_join(struct request *r);
MUST_USE bool worker_remember(struct request *r);
/* The effect of that name. */
void worker_give_back(struct request *r);

/* It awaits nothing any more, nor waits for copies of it; harmless when it did not. */
void worker_forget(struct request *r);

/* Its answer is there, or it ends without one: others hear of it. Harmless when repeated. */
void worker_state_end(struct request *r);

/* ---- worker_publish.c ---- */

/* Pools, breakers and keys, for the scrape, and lessons. */
void worker_publish(struct worker *worker);
/* NULL: memory. */
struct worker_lessons *worker_lessons_new(void);

/* ---- sampling_stream.c ---- */

/* A new request; one that waits for no answer any more, in whatever state; harmless when repeated. */
void worker_stream_init(struct request *r);
void worker_stream_fini(struct request *r);

/* Once per worker: what an event of a stream touches is asked for before it comes. */
void worker_stream_expect(struct upstream *up);

/* The caller may be told from now on. */
void worker_stream_tell(struct request *r);

/* An attempt is about to be sent: its answer may come as a stream, and the caller be told. */
void worker_stream_begin(struct request *r);

/* The answer of a request whose stream has begun is there: it is sent as soon as it can. */
void worker_stream_end(struct request *r);

/* What was told last has left. */
void worker_stream_ready(struct request *r);

/* ---- worker_control.c ---- */

/* Takes over a snapshot; false when memory is refused: the one before stays in use. */
MUST_USE bool worker_use_config(struct worker *worker, const struct config *config, uint64_t seq);

/* What a configuration means for this worker's listeners. */
struct http_limits worker_http_limits(const struct worker *worker, const struct config *config);

#endif
