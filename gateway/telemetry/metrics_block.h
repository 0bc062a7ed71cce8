/* metrics_block.h - how metrics.c counts and metrics_print.c reads: private to the two.
 *
 * A block is a handful of tables of 64-bit cells: one row per label number, one column per figure.
 * Each worker has a block that it alone writes; the scrape adds them up into one of its own. */
#ifndef GATEWAY_TELEMETRY_METRICS_BLOCK_H
#define GATEWAY_TELEMETRY_METRICS_BLOCK_H

#include "gateway/telemetry/metrics.h"
#include "gateway/telemetry/metrics_labels.h"

enum {
	METRICS_BUCKETS = 15,
	/* More than a configuration can have, because reloads may name others and numbers are never given back. */
	METRICS_ROUTES_MAX = 2048, /* pairs of model and provider */
	METRICS_PROVIDERS_MAX = 512,
	METRICS_LIMITS_MAX = 32,
	METRICS_MCP_MAX = 2048, /* MCP servers */
};

/* Columns of a histogram: a count per bucket, not cumulative, the last for what is over all bounds. */
enum { HISTOGRAM_SUM_NS = METRICS_BUCKETS + 1, HISTOGRAM_CELLS };

/* Columns of a tenant's row. */
enum {
	TENANT_OUTCOME = 0, /* one per enum err */
	TENANT_TOKENS_IN = ERR_COUNT,
	TENANT_TOKENS_OUT,
	TENANT_USD_NANO,
	TENANT_CELLS
};

/* Columns of an MCP server's row. */
enum {
	MCP_CLIENT_MESSAGES = 0, /* one per enum metrics_mcp_message */
	MCP_SERVER_MESSAGES = MCP_CLIENT_MESSAGES + METRICS_MCP_MESSAGES,
	MCP_SAMPLINGS = MCP_SERVER_MESSAGES + METRICS_MCP_MESSAGES, /* one per enum err */
	MCP_UPSTREAM = MCP_SAMPLINGS + ERR_COUNT,                   /* a histogram */
	/* One per enum metrics_mcp_stream: opened less closed, modulo 2^64. */
	MCP_STREAMS = MCP_UPSTREAM + HISTOGRAM_CELLS,
	MCP_FAILURES = MCP_STREAMS + METRICS_MCP_STREAMS, /* one per enum metrics_mcp_failure */
	MCP_CELLS = MCP_FAILURES + METRICS_MCP_FAILURES
};

enum {
	SINGLE_SETTLED_WITHOUT_USAGE,
	SINGLE_OVERRUN_NANO,
	SINGLE_UNKNOWN_CALLS,
	SINGLE_QUEUE,                                         /* a histogram */
	SINGLE_STORE_RESULT = SINGLE_QUEUE + HISTOGRAM_CELLS, /* one per result */
	SINGLE_STORE = SINGLE_STORE_RESULT + STORE_RESULTS,   /* a histogram */
	SINGLE_AWAY = SINGLE_STORE + HISTOGRAM_CELLS,         /* one per enum metrics_away */
	SINGLE_AWAY_NANO = SINGLE_AWAY + AWAY_DECISIONS,
	SINGLE_STATE_AWAY,                                    /* one per enum metrics_state_away */
	SINGLE_IDEMPOTENCY = SINGLE_STATE_AWAY + STATE_AWAYS, /* one per enum metrics_idempotency */
	SINGLE_CELLS = SINGLE_IDEMPOTENCY + METRICS_IDEMPOTENCIES
};

enum metrics_table {
	TABLE_TENANTS,
	TABLE_DURATIONS, /* by route: a histogram per enum err */
	TABLE_TTFT,      /* by route: a histogram */
	TABLE_ATTEMPTS,  /* by provider: one per enum err */
	TABLE_LIMITS,
	TABLE_MCP,    /* by MCP server */
	TABLE_SINGLE, /* one row */
	TABLE_COUNT
};

/* Which label numbers a table's rows go by. */
enum metrics_kind { KIND_TENANT, KIND_ROUTE, KIND_PROVIDER, KIND_LIMIT, KIND_MCP, KIND_COUNT };

struct metrics_shape {
	uint32_t cells;
	enum metrics_kind kind; /* KIND_COUNT: one row */
};
extern const struct metrics_shape metrics_shapes[TABLE_COUNT];

typedef _Atomic uint64_t metrics_cell;

struct metrics_worker {
	struct metrics *process;
	metrics_cell *tables[TABLE_COUNT];
	_Atomic uint64_t in_flight, connections_open, arena_chunks_high, requests_slab_high;
	_Atomic uint64_t store_used, store_away, store_fault;
	/* The worker's own: numbers that were asked for last. METRICS_LABEL_OTHER: none to be found again. */
	uint32_t last_route, last_provider, last_limit;
};

struct metrics {
	uint32_t worker_count;
	struct metrics_worker **workers;
	struct metrics_worker *sum; /* scratch of the scrape */
	struct metrics_labels labels[KIND_COUNT];
};

/* Bounds of the buckets in nanoseconds, rising. */
extern const nsec_t metrics_bounds_answer[METRICS_BUCKETS];
extern const nsec_t metrics_bounds_queue[METRICS_BUCKETS];
extern const nsec_t metrics_bounds_store[METRICS_BUCKETS];

static inline metrics_cell *metrics_row(const struct metrics_worker *m, enum metrics_table table,
					uint32_t row)
{
	return &m->tables[table][(size_t)row * metrics_shapes[table].cells];
}

static inline uint64_t metrics_get(const metrics_cell *cell)
{
	return atomic_load_explicit(cell, memory_order_relaxed);
}

#endif
