/* sampling_core.h - the core of one worker from the inside: for gateway/sampling/ and the worker that owns it. Fronts
 * include sampling.h. */
#ifndef GATEWAY_SAMPLING_SAMPLING_CORE_H
#define GATEWAY_SAMPLING_SAMPLING_CORE_H

#include "codec/base/list.h"
#include "codec/base/slab.h"
#include "gateway/flow/flow.h"
#include "gateway/net/inbox.h"
#include "gateway/sampling/sampling.h"
#include "gateway/state/cancel_redis.h"
#include "gateway/state/idempotency_redis.h"

enum { SAMPLING_MAGIC = 0x53414d50, CALL_MAGIC = 0x43414c4c };

/* What was made of one configuration: health and pools by its indices. */
struct sampling_providers {
	struct health_view *health;
	struct upstream_pool *(
		*pools)[CONFIG_ENDPOINTS_MAX]; /* NULL where a CA could not be used */
	uint64_t *firsts; /* by provider, a bit per endpoint: no earlier one has its pool */
};

struct sampling {
	uint32_t magic;
	bool given_up; /* whatever waits is refused, and whatever comes */
	struct net_loop *loop;
	struct upstream *upstream;
	struct limiter *limiter; /* of limits */
	struct state *state;     /* sessions, loops, private blocks */
	struct idempotency *idempotency;
	struct cancel_table *cancels;
	/* Copies at other gateways, and who is cancelled there; both NULL: there are none. */
	struct idempotency_redis *elsewhere;
	struct cancel_redis *cancels_elsewhere;
	struct inbox inbox;
	struct limit_table *limits;
	struct metrics_worker *metrics;
	struct log_ring *log;
	struct slab calls;
	struct stream_slab streams; /* of answers that come as one */
	struct arena_pool arenas;
	struct json_work *json;
	struct health *health;
	struct jwt_checker *tokens;
	struct key_cache *keys;
	struct refusals *refusals;
	const struct config *config; /* in use */
	struct flow_env env;         /* what every flow is lent */
	struct sampling_providers providers;
	struct flow_bodies bodies; /* of requests that are here */
	struct list waiting;       /* calls without an outcome yet */
	/* of them, with a timer and without a place: nothing counts them yet */
	uint32_t waiting_early;
	const struct flow *running; /* the one that is worked on; NULL: none */
	uint8_t random[4096];
	size_t random_left;
};

/* Where a call stands. */
enum call_phase {
	CALL_BEGINS,  /* sampling_begin has not returned: `done` waits for the end of the turn */
	CALL_RUNS,    /* up to its outcome */
	CALL_LEFT,    /* likewise, but the caller has left: it goes when the flow has an outcome */
	CALL_DECIDED, /* the outcome is there */
};

/* What an event of a stream touches lies in its first line of the cache, and in the flow's first two. */
struct sampling_call {
	uint32_t magic;
	enum call_phase phase : 8;
	bool placed : 1;   /* holds a concurrency place of the limiter */
	bool early : 1;    /* one of waiting_early */
	bool admitted : 1; /* the front was told so */
	bool notified : 1; /* the front was told of the attempt's stream */
	struct sampling *core;
	struct upstream_pool *pool;  /* chosen while the snapshot was at hand */
	struct list_link waits;      /* on core->waiting */
	struct net_task soon;        /* its outcome is told */
	struct stream_cursor cursor; /* how far the front was, for relay DELTAS */
	struct net_timer wait;       /* before another attempt, or for the first of copies */
	_Alignas(64) struct flow flow;
};

/* ---- sampling.c ---- */

/* Sets up what the core needs beside what the caller has set: loop, upstream, limiter, state, idempotency, cancels, elsewhere,
 * limits, metrics, log, json. False: no memory. */
MUST_USE bool sampling_init(struct sampling *core);

/* The configuration in use from now on, and its health; the caller changes core->providers. */
void sampling_use_config(struct sampling *core, const struct config *config,
			 struct health_view *health);

/* Everything that waits is refused (ERR_DRAINING), and whatever still comes. */
void sampling_give_up(struct sampling *core);

/* What a call waited for is there. It may be gone afterwards. */
void call_run(struct sampling_call *call, enum flow_event event);

/* One of the answers that flow->awaited says is there: with the last of them it goes on. Likewise. */
void call_answered(struct sampling_call *call, enum flow_pending what);

/* Cancels whatever the call waits for. Likewise. Only before its outcome. */
void call_interrupt(struct sampling_call *call, enum flow_event event);

/* ---- sampling_report.c ---- */

/* It is over; `how` as in sampling_end. */
void call_report(struct sampling_call *call, enum err how);

/* ---- sampling_limits.c ---- */

/* Whether the tenant may begin the session that the call is to be remembered by, if it begins one; else
 * its reservation says until when not. */
MUST_USE bool call_may_begin_session(struct sampling_call *call);

/* The effect of that name; true when its verdict is there, and the flow may look at it. */
MUST_USE bool call_reserve(struct sampling_call *call);
/* The verdict is about to be looked at: what it means for the call's place, and for metrics. */
void call_note_verdict(struct sampling_call *call);

/* ---- sampling_state.c ---- */

/* The effects of these names; true when it is done at once. */
MUST_USE bool call_load(struct sampling_call *call);
MUST_USE bool call_join(struct sampling_call *call);
MUST_USE bool call_save(struct sampling_call *call);
/* The effect of that name. */
void call_give_back(struct sampling_call *call);

/* It awaits nothing any more, nor waits for copies of it; harmless when it did not. */
void call_forget(struct sampling_call *call);

/* Its outcome is there, or it ends without one: others hear of it. flow.state is there. */
void call_notify_others(struct sampling_call *call);

/* ---- sampling_stream.c ---- */

/* Once per worker: what an event of a stream touches is asked for before it comes. */
void sampling_prefetch_streams(struct upstream *up);

/* The front may tell the caller from now on. */
void call_admit(struct sampling_call *call);

/* An attempt is about to be sent: its answer may come as a stream. */
void call_stream_begin(struct sampling_call *call);
/* Its provider has said all that it will. */
void call_stream_ended(struct sampling_call *call);
/* What the failed attempt has brought is no part of the answer. */
void call_stream_failed(struct sampling_call *call);

#endif
