/* sim_shared.h - what all threads of the simulator share: options, counters, the last request.
 *
 * Counters are relaxed atomics; the last request and the default behaviour have a mutex each. */
#ifndef BENCH_SIM_SIM_SHARED_H
#define BENCH_SIM_SIM_SHARED_H

#include <pthread.h>
#include <stdatomic.h>

#include <openssl/ssl.h>

#include "bench/sim/sim_buf.h"
#include "bench/sim/sim_http.h"
#include "bench/sim/sim_keys.h"
#include "bench/sim/sim_spec.h"

struct sim_counters {
	_Atomic uint64_t requests; /* to the provider's paths */
	_Atomic uint64_t by_dialect[SIM_DIALECTS];
	_Atomic uint64_t streams;        /* of these, streamed */
	_Atomic uint64_t pauses;         /* events after which a stream has paused (pace) */
	_Atomic uint64_t refused;        /* of these, bad in themselves */
	_Atomic uint64_t tool_calls;     /* answers with tool calls */
	_Atomic uint64_t connections;    /* that brought at least one of these */
	_Atomic uint64_t in_flight;      /* taken and not yet answered */
	_Atomic uint64_t in_flight_high; /* the most there ever were, since the last reset */
	_Atomic uint64_t cancelled;      /* the peer went away before the answer was complete */
	_Atomic uint64_t health;         /* GET /health */
	_Atomic uint64_t mcp;            /* requests to the MCP server */
	_Atomic uint64_t faults[SIM_FAULT_COUNT];
	_Atomic uint64_t statuses[600]; /* SIM_FAULT_ERROR by status */
};

/* The last request to a provider's path. */
struct sim_last {
	pthread_mutex_t lock;
	struct sim_buf bytes; /* head, then decoded body */
	size_t head_len;
	uint64_t number;               /* 0: none yet */
	uint64_t connection, position; /* which connection, and the how-manieth request on it */
	char tls[16];                  /* protocol version; "" for clear text */
	char server_name[256];         /* SNI; "" for none */
	bool resumed;                  /* TLS session */
};

struct sim_shared {
	SSL_CTX *tls;               /* NULL: clear text */
	const char *api_key;        /* NULL: any */
	struct sim_spec start_spec; /* from the command line */

	pthread_mutex_t spec_lock;
	struct sim_spec spec; /* in force; POST /default replaces it */
	_Atomic uint64_t spec_version;

	_Atomic uint64_t numbers;     /* of answers */
	_Atomic uint64_t connections; /* ids */
	_Atomic uint64_t faults_due;  /* requests with a fault so far, for `every` and `first` */
	struct sim_counters counters;
	struct sim_keys keys;
	struct sim_last last;
};

/* The simulator's clock: CLOCK_MONOTONIC. */
nsec_t sim_clock(void);

void sim_shared_init(struct sim_shared *shared);
void sim_shared_fini(struct sim_shared *shared);

static inline void sim_count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline void sim_uncount(_Atomic uint64_t *counter)
{
	atomic_fetch_sub_explicit(counter, 1, memory_order_relaxed);
}

/* Replaces the default behaviour in all threads, from their next request on; it is in force since now. */
void sim_shared_set_spec(struct sim_shared *shared, const struct sim_spec *spec);

/* Refreshes *spec if *version is not the current one. */
void sim_shared_get_spec(struct sim_shared *shared, struct sim_spec *spec, uint64_t *version);

/* Remembers the request; `bytes` are its head and, behind it, the body. `ssl` NULL: clear text. */
void sim_shared_remember(struct sim_shared *shared, const struct sim_http *http, const char *bytes,
			 uint64_t number, uint64_t connection, uint64_t position, SSL *ssl);

/* Counters to 0 (not those of what is open), keys unused, no last request, the default behaviour of the start. */
void sim_shared_reset(struct sim_shared *shared);

#endif
