/* worker.h - one thread, one loop: its requests, pools and connections.
 *
 * The control thread talks to a worker by messages only (the functions below may be called from
 * it); a worker answers through the atomics in struct worker_shared, which control reads. */
#ifndef GATEWAY_WORKER_WORKER_H
#define GATEWAY_WORKER_WORKER_H

#include "gateway/base/config.h"
#include "gateway/base/seal_secret.h"
#include "gateway/http/http.h"
#include "gateway/identity/jwt_checker.h"
#include "gateway/limits/limit_table.h"
#include "gateway/limits/limiter_query.h"
#include "gateway/state/cancel.h"
#include "gateway/state/idempotency.h"
#include "gateway/state/mcp_session.h"
#include "gateway/state/state_memory.h"
#include "gateway/state/state_redis_alive.h"
#include "gateway/telemetry/log.h"
#include "gateway/telemetry/metrics.h"
#include "gateway/upstream/upstream.h"

struct worker;

enum { WORKER_SNAPSHOTS_MAX = 4, WORKER_PROVIDERS_MAX = CONFIG_PROVIDERS_MAX };

/* Written by the worker with relaxed stores, read by control. */
struct worker_shared {
	_Atomic uint64_t
		turned_ns; /* net_now of the last turn: the watchdog's and healthz's evidence */
	_Atomic uint64_t config_seq;        /* number of the newest configuration in use */
	_Atomic uint64_t config_oldest_seq; /* oldest configuration a request may still read */
	_Atomic uint64_t in_flight;
	_Atomic uint64_t connections;
};

struct worker_args {
	uint32_t index, count;
	const int *listen_fds; /* this worker's own, one per address */
	size_t listen_count;
	struct limit_table *limits;
	struct metrics_worker *metrics;
	struct state_memory *state; /* of the process, as the next three; outlives the worker */
	struct idempotency *idempotency;
	struct alive *alive;
	struct cancel_table *cancels;
	struct mcp_channels *channels; /* likewise */
	/* What texts are sealed with where the configuration has no secrets, and what opens them after it has. */
	const struct seal_secret *seal_secret;
	struct log_ring *log;
	const struct config *config; /* the first one, sequence number 1 */
};

/* Makes everything a worker needs; no thread yet. NULL with a line on stderr. */
struct worker *worker_new(const struct worker_args *args);

/* Starts the thread (all signals blocked but those of its own faults). 0 or an errno. It ends with the process. */
int worker_start(struct worker *worker);

const struct worker_shared *worker_shared(const struct worker *worker);

/* ---- from the control thread ---- */
/* The worker uses `config` from its next turn on and reports `seq` when it does; it lets go of
 * older ones when config_oldest_seq has passed them. */
void worker_set_config(struct worker *worker, const struct config *config, uint64_t seq);

/* Result of a name resolution, for the pools of that endpoint identity; copied. count 0: failed. */
void worker_set_addresses(struct worker *worker, struct slice identity,
			  const struct upstream_address *addresses, uint32_t count);

/* The same for the host of the store; ignored by a worker whose limits are kept in memory. */
void worker_set_store_addresses(struct worker *worker, const struct upstream_address *addresses,
				uint32_t count);

/* The keys that lie at a place of that name (struct jwks_place), taken over; NULL inside: none. */
void worker_set_keys(struct worker *worker, struct slice place, struct jwt_keys **keys);

/* An active check has come to a new verdict about a provider's endpoint (its identity and the path of its
 * URL); copied. */
void worker_set_endpoint_up(struct worker *worker, struct slice provider, struct slice identity,
			    struct slice path, bool up);

/* Bit i: a token came for which issuer i of the configuration in use (worker_shared) has no key; each
 * is told once. */
uint32_t worker_take_refetches(struct worker *worker);

/* Passes it on to the worker's store, which answers it; where limits are kept in memory it is answered
 * as if the store were away. */
void worker_ask_store(struct worker *worker, struct limiter_query *question);

/* Leaving, in this order (control_drain.h): everything is served, but callers over HTTP/1.1 are sent
 * elsewhere; no connection is accepted; GOAWAY, and connections are closed as they become idle; what
 * still waits is refused (503, draining), and what still comes. */
void worker_quiet(struct worker *worker);
void worker_stop_accepting(struct worker *worker);
void worker_shutdown(struct worker *worker);
void worker_give_up(struct worker *worker);

/* Tokens by result (jwt_checker.h); safe from control. */
uint64_t worker_token_count(const struct worker *worker, uint32_t result);
/* Counters of the edge and of the pools, for metrics; safe from control (relaxed loads). */
const struct http_counters *worker_http_counters(const struct worker *worker);
/* Connections by state of one provider, summed over its endpoints; published once a second. */
struct worker_pool_counts {
	_Atomic uint64_t idle, busy, connecting, queued;
};
const struct worker_pool_counts *worker_pool_counts(const struct worker *worker, uint32_t provider);
/* What it knows of one provider; published once a second. */
struct worker_health {
	_Atomic uint8_t breakers[CONFIG_ENDPOINTS_MAX]; /* enum breaker_state */
	_Atomic uint32_t cools_s[CONFIG_KEYS_MAX];      /* rounded up */
};
const struct worker_health *worker_health(const struct worker *worker, uint32_t provider);
/* The worker's lessons of refusals (routing/lessons.h); published once a second. */
enum { WORKER_LESSONS_MAX = 256 };
struct worker_lesson {
	nsec_t until;    /* by CLOCK_MONOTONIC */
	uint64_t tenant; /* by worker_lesson_is_of; 0: it is for all */
	uint32_t model;
	enum learn fact;
};
/* Whether the tenant with this limit_key learned it. Of any thread. */
bool worker_lesson_is_of(const struct worker_lesson *lesson, const uint8_t limit_key[16]);
/* Copies the first WORKER_LESSONS_MAX, and says how many they are. Models are those of snapshot `seq`: none while
 * the worker does not use that. Of any thread. */
uint32_t worker_lessons(struct worker *worker, uint64_t seq, struct worker_lesson *out);

#endif
