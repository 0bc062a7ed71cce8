/* metrics.h - per-worker counters, summed at scrape into Prometheus text (DESIGN 4.5).
 *
 * Each worker writes its own block without locks or read-modify-write atomics; the scrape reads
 * them with relaxed loads. Names, types, units and help are rows of tbl/metrics.h, which also feed
 * `sluice metrics`. Blocks are sized at start: tenant series appear at first use, at most
 * `metrics.tenants` in the process (all workers agree on which), the rest is "_other"; model and
 * provider series are bounded the same way. */
#ifndef GATEWAY_TELEMETRY_METRICS_H
#define GATEWAY_TELEMETRY_METRICS_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/err.h"
#include "codec/mcp/sampling.h"
#include "gateway/base/redis_fault.h"

#include <stdio.h>

enum metric {
#define METRIC(symbol, name, type, labels, unit, meaning) METRIC_##symbol,
#include "gateway/telemetry/tbl/metrics.h"
#undef METRIC
	METRIC_COUNT
};

struct metrics;        /* of the process */
struct metrics_worker; /* of one worker */

/* `tenants_max`: tenant series in the process. NULL: memory. */
struct metrics *metrics_new(uint32_t workers, uint32_t tenants_max);
void metrics_free(struct metrics *metrics);
struct metrics_worker *metrics_worker(struct metrics *metrics, uint32_t worker);

/* One finished request. Slices are copied when a series is made. */
struct metrics_request {
	uint32_t tenant_series; /* store's number of the tenant (its limit slot); UINT32_MAX: nobody
				 */
	struct slice tenant;    /* id, for the label; absent: not authenticated */
	enum err outcome;
	struct slice model, provider;             /* absent when none was chosen */
	uint64_t tokens_in, tokens_out, usd_nano; /* of all its attempts */
	bool attempted;
	nsec_t duration, queue; /* queue: of the last attempt */
	uint32_t unknown_calls; /* in its history */
};
void metrics_request(struct metrics_worker *m, const struct metrics_request *request);

/* One attempt at a provider, when it is settled. Slices likewise. */
struct metrics_attempt {
	struct slice model, provider;
	enum err outcome; /* its class: ok, or the err_info reason of its failure */
	nsec_t ttft;      /* 0: no byte of an answer came */
	bool settled_without_usage;
	uint64_t usd_overrun_nano; /* used beyond the reserved bound */
};
void metrics_attempt(struct metrics_worker *m, const struct metrics_attempt *attempt);

enum metrics_decision { METRICS_GRANTED, METRICS_REFUSED, METRICS_WOULD_REFUSE, METRICS_DECISIONS };

/* One decision of a limit: `limit` NULL: all limits granted. `limit` is copied. */
void metrics_limit(struct metrics_worker *m, const char *limit, enum metrics_decision decision);

/* One request to the shared store: answered in time, refused, answered late, never answered. */
enum metrics_store_result { STORE_OK, STORE_ERROR, STORE_LATE, STORE_LOST, STORE_RESULTS };
void metrics_store(struct metrics_worker *m, enum metrics_store_result result, nsec_t took);
/* One request decided while the shared store was not there, and by which function; `usd` was granted. */
enum metrics_away {
	AWAY_RATES_LOCAL,
	AWAY_RATES_CLOSED,
	AWAY_BUDGET_LOCAL,
	AWAY_BUDGET_CLOSED,
	AWAY_RATES_WAITED,
	AWAY_BUDGET_WAITED,
	AWAY_DECISIONS
};
void metrics_away(struct metrics_worker *m, enum metrics_away decision, uint64_t usd);
/* One question about sessions and loops, one note of them, or one claim of a request that is not to be made
 * twice, that the shared store did not get in time. */
enum metrics_state_away { STATE_AWAY_RECALL, STATE_AWAY_NOTE, STATE_AWAY_CLAIM, STATE_AWAYS };
void metrics_state_away(struct metrics_worker *m, enum metrics_state_away what);
/* One request that is not made twice: what became of it (idempotency.h). */
enum metrics_idempotency {
	METRICS_IDEMPOTENCY_FIRST,
	METRICS_IDEMPOTENCY_ANSWERED,
	METRICS_IDEMPOTENCY_DONE,
	METRICS_IDEMPOTENCY_CONFLICT,
	METRICS_IDEMPOTENCY_ELSEWHERE,
	METRICS_IDEMPOTENCY_LATE,
	METRICS_IDEMPOTENCY_FULL,
	METRICS_IDEMPOTENCIES
};
void metrics_idempotency(struct metrics_worker *m, enum metrics_idempotency result);
/* Whether the shared store decides now, for this worker. */
void metrics_store_mode(struct metrics_worker *m, bool used, bool away);
/* Whether it is so for any worker. */
bool metrics_store_is_away(const struct metrics *metrics);
/* Why it is not in use; NONE while it is. */
void metrics_store_fault(struct metrics_worker *m, enum store_fault fault);
/* How many workers decide without it; *fault is the first one's reason. */
uint32_t metrics_store_away(const struct metrics *metrics, enum store_fault *fault);

/* ---- MCP servers behind the proxy ---- */

enum metrics_mcp_message {
	METRICS_MCP_REQUEST,
	METRICS_MCP_NOTIFICATION,
	METRICS_MCP_RESPONSE,
	METRICS_MCP_OTHER,
	METRICS_MCP_MESSAGES
};
enum metrics_mcp_failure {
	METRICS_MCP_AWAY,
	METRICS_MCP_ANSWER,      /* it cannot be passed on */
	METRICS_MCP_CREDENTIALS, /* the server refuses the gateway's */
	METRICS_MCP_FAILURES
};
enum metrics_mcp_stream { METRICS_MCP_POST, METRICS_MCP_GET, METRICS_MCP_OWN, METRICS_MCP_STREAMS };
/* The number of a server's series, for the functions below; the same on all workers and for the life of the process.
 * `server` is copied at first use. Beyond 2,048 names all share one number. */
uint32_t metrics_mcp_series(struct metrics_worker *m, struct slice server);
void metrics_mcp_message(struct metrics_worker *m, uint32_t series, bool from_server,
			 enum metrics_mcp_message kind);
/* The end of a sampling, or of an answer's way to its server. */
void metrics_mcp_sampling(struct metrics_worker *m, uint32_t series, enum err outcome);
/* A client's request fails for its server. */
void metrics_mcp_failure(struct metrics_worker *m, uint32_t series, enum metrics_mcp_failure why);
/* The head of a server's answer to a POST is there, `took` after the client's request. */
void metrics_mcp_head(struct metrics_worker *m, uint32_t series, nsec_t took);
/* An event stream opens or ends; both are told by the same worker. */
void metrics_mcp_stream(struct metrics_worker *m, uint32_t series, enum metrics_mcp_stream kind,
			bool open);

/* Gauges that a worker publishes once per turn at most. */
struct metrics_gauges {
	uint64_t in_flight, connections_open, arena_chunks_high, requests_slab_high;
};
void metrics_gauges(struct metrics_worker *m, const struct metrics_gauges *gauges);

/* What the scrape adds to the workers' sums. */
struct metrics_process {
	uint64_t reloads_ok, reloads_refused, restarts, log_dropped;
	uint64_t config_loaded_s;
	uint64_t away_usd_bound; /* nano-USD a day */
	bool config_refused, draining;
	const char *version;
	/* Writes further families (guard kills, pool connections) that live elsewhere; may be NULL.
	 */
	void (*more)(FILE *out, void *arg);
	void *arg;
};
void metrics_print(struct metrics *metrics, const struct metrics_process *process, FILE *out);

/* For `more`: a family's two comment lines, then its samples; each family once. `values` belong to
 * the row's labels in their order. */
void metrics_print_head(enum metric metric, FILE *out);
void metrics_print_sample(enum metric metric, const struct slice *values, uint64_t value,
			  FILE *out);

/* `sluice metrics`: every metric with type, labels, unit, meaning. */
void metrics_print_manual(FILE *out);

#endif
