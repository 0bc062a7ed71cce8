/* control_admin.c - what the admin listener says about the process. */
#include "gateway/control/control_parts.h"

#include "gateway/base/version.h"
#include "gateway/limits/limit_table.h"
#include "gateway/state/mcp_session.h"

static const double ms_per_s = 1e3;

/* For how long worker `i` has not turned its loop. A worker that never did counts from the start. */
static nsec_t still_for(const struct control *control, uint32_t i)
{
	const struct worker_shared *shared = worker_shared(control->args.workers[i]);
	nsec_t turned = atomic_load_explicit(&shared->turned_ns, memory_order_relaxed);
	nsec_t now = control_now();

	turned = turned < control->born ? control->born : turned;
	return now > turned ? now - turned : 0;
}

/* Names the workers whose loops stand still; true when there is none. */
static bool all_turn(const struct control *control, FILE *out)
{
	bool turn = true;

	for (uint32_t i = 0; i < control->args.worker_count; i++) {
		nsec_t still = still_for(control, i);
		if (still < WATCH_PATIENCE)
			continue;
		turn = false;
		(void)fprintf(out, "worker %u: its loop has not turned for %.1f s\n", i,
			      (double)(still / MSEC) / ms_per_s);
	}
	return turn;
}

int control_healthz(void *arg, FILE *out)
{
	if (!all_turn(arg, out))
		return 503;
	(void)fprintf(out, "ok\n");
	return 200;
}

int control_readyz(void *arg, FILE *out)
{
	struct control *control = arg;

	if (control->drain.phase != DRAIN_NOT) {
		(void)fprintf(out, "draining\n");
		return 503;
	}
	if (!all_turn(control, out))
		return 503;
	(void)fprintf(out, "ready, configuration %s\n", control->config->digest);
	control_store_note(control, out);
	return 200;
}

bool control_is_name(void *arg, struct slice host)
{
	const struct control *control = arg;

	for (uint32_t i = 0; i < control->config->admin_name_count; i++)
		if (slice_eq_nocase(control->config->admin_names[i], host))
			return true;
	return false;
}

/* ---- families that live elsewhere -------------------------------------------------------------- */

static void print_guard_kills(const struct control *control, FILE *out)
{
	const char *cause;

	metrics_print_head(METRIC_GUARD_KILLS, out);
	for (size_t n = 0; (cause = http_guard_cause(n)) != NULL; n++) {
		uint64_t kills = 0;
		struct slice value = slice_str(cause);
		for (uint32_t i = 0; i < control->args.worker_count; i++)
			kills += atomic_load_explicit(
				&worker_http_counters(control->args.workers[i])->guard_kills[n],
				memory_order_relaxed);
		metrics_print_sample(METRIC_GUARD_KILLS, &value, kills, out);
	}
}

static void print_handshakes(const struct control *control, FILE *out)
{
	static const struct slice results[] = { SLICE_INIT("full"), SLICE_INIT("resumed"),
						SLICE_INIT("failed") };
	uint64_t sums[COUNT_OF(results)] = { 0 };

	for (uint32_t i = 0; i < control->args.worker_count; i++) {
		const struct http_counters *counters =
			worker_http_counters(control->args.workers[i]);
		sums[0] += atomic_load_explicit(&counters->tls_full, memory_order_relaxed);
		sums[1] += atomic_load_explicit(&counters->tls_resumed, memory_order_relaxed);
		sums[2] += atomic_load_explicit(&counters->tls_failed, memory_order_relaxed);
	}
	metrics_print_head(METRIC_TLS_HANDSHAKES, out);
	for (size_t i = 0; i < COUNT_OF(results); i++)
		metrics_print_sample(METRIC_TLS_HANDSHAKES, &results[i], sums[i], out);
}

enum { POOL_STATES = 4 };
static const char *const pool_states[POOL_STATES] = { "idle", "busy", "connecting", "queued" };

/* A worker that has not swapped yet numbers the providers by another configuration. */
static bool uses_this(const struct control *control, const struct worker *worker)
{
	return atomic_load_explicit(&worker_shared(worker)->config_seq, memory_order_acquire) ==
	       control->seq;
}

/* Adds one worker's connections to provider `p`. */
static void add_pool(const struct control *control, uint32_t worker, uint32_t p,
		     uint64_t sums[POOL_STATES])
{
	struct worker *w = control->args.workers[worker];
	const struct worker_pool_counts *counts = worker_pool_counts(w, p);

	if (!uses_this(control, w))
		return;
	sums[0] += atomic_load_explicit(&counts->idle, memory_order_relaxed);
	sums[1] += atomic_load_explicit(&counts->busy, memory_order_relaxed);
	sums[2] += atomic_load_explicit(&counts->connecting, memory_order_relaxed);
	sums[3] += atomic_load_explicit(&counts->queued, memory_order_relaxed);
}

static void print_pools(const struct control *control, FILE *out)
{
	metrics_print_head(METRIC_POOL_CONNECTIONS, out);
	for (uint32_t p = 0; p < control->config->provider_count; p++) {
		uint64_t sums[POOL_STATES] = { 0 };
		for (uint32_t i = 0; i < control->args.worker_count; i++)
			add_pool(control, i, p, sums);
		for (size_t state = 0; state < POOL_STATES; state++) {
			struct slice values[] = { control->config->providers[p].name,
						  slice_str(pool_states[state]) };
			metrics_print_sample(METRIC_POOL_CONNECTIONS, values, sums[state], out);
		}
	}
}

/* The worst of the workers that use this configuration. */
static uint64_t worst_breaker(const struct control *control, uint32_t p, uint32_t e)
{
	uint64_t worst = 0;

	for (uint32_t i = 0; i < control->args.worker_count; i++) {
		const struct worker *w = control->args.workers[i];
		const uint64_t state = atomic_load_explicit(&worker_health(w, p)->breakers[e],
							    memory_order_relaxed);
		if (uses_this(control, w) && state > worst)
			worst = state;
	}
	return worst;
}

static uint64_t longest_cooling(const struct control *control, uint32_t p, uint32_t k)
{
	uint64_t longest = 0;

	for (uint32_t i = 0; i < control->args.worker_count; i++) {
		const struct worker *w = control->args.workers[i];
		const uint64_t s = atomic_load_explicit(&worker_health(w, p)->cools_s[k],
							memory_order_relaxed);
		if (uses_this(control, w) && s > longest)
			longest = s;
	}
	return longest;
}

/* A series has to have a name of its own: of endpoints with the same URL the first stands for all. */
static bool url_is_new(const struct provider *provider, uint32_t e)
{
	for (uint32_t i = 0; i < e; i++)
		if (slice_eq(provider->endpoints[i].url, provider->endpoints[e].url))
			return false;
	return true;
}

static void print_breakers(const struct control *control, FILE *out)
{
	metrics_print_head(METRIC_BREAKER_STATE, out);
	for (uint32_t p = 0; p < control->config->provider_count; p++) {
		const struct provider *provider = &control->config->providers[p];
		for (uint32_t e = 0; e < provider->endpoint_count; e++) {
			const struct slice values[] = { provider->name,
							provider->endpoints[e].url };
			if (url_is_new(provider, e))
				metrics_print_sample(METRIC_BREAKER_STATE, values,
						     worst_breaker(control, p, e), out);
		}
	}
}

static void print_keys(const struct control *control, FILE *out)
{
	metrics_print_head(METRIC_KEY_COOLDOWN, out);
	for (uint32_t p = 0; p < control->config->provider_count; p++) {
		const struct provider *provider = &control->config->providers[p];
		for (uint32_t k = 0; k < provider->key_count; k++) {
			char number[16];
			(void)snprintf(number, sizeof(number), "%u", k);
			const struct slice values[] = { provider->name, slice_str(number) };
			metrics_print_sample(METRIC_KEY_COOLDOWN, values,
					     longest_cooling(control, p, k), out);
		}
	}
}

static void print_tokens(const struct control *control, FILE *out)
{
	metrics_print_head(METRIC_JWT_CHECKS, out);
	for (uint32_t result = 0; result < JWT_RESULTS; result++) {
		const struct slice label = slice_str(jwt_result_name(result));
		uint64_t sum = 0;
		for (uint32_t i = 0; i < control->args.worker_count; i++)
			sum += worker_token_count(control->args.workers[i], result);
		metrics_print_sample(METRIC_JWT_CHECKS, &label, sum, out);
	}
}

static void print_state(const struct control *control, FILE *out)
{
	static const struct slice kinds[STATE_RECORDS] = {
		[STATE_OF_SESSION] = SLICE_INIT("session"),
		[STATE_OF_CALL] = SLICE_INIT("call"),
		[STATE_OF_LOOP] = SLICE_INIT("loop"),
		[STATE_OF_BLOCKS] = SLICE_INIT("blocks"),
	};
	struct state_figures figures;

	state_memory_figures(control->args.state, &figures);
	metrics_print_head(METRIC_STATE_RECORDS, out);
	for (size_t i = 0; i < STATE_RECORDS; i++)
		metrics_print_sample(METRIC_STATE_RECORDS, &kinds[i], figures.records[i], out);
	metrics_print_head(METRIC_STATE_EVICTIONS, out);
	for (size_t i = 0; i < STATE_RECORDS; i++)
		metrics_print_sample(METRIC_STATE_EVICTIONS, &kinds[i], figures.evicted[i], out);
	metrics_print_head(METRIC_STATE_BLOCKS_BYTES, out);
	metrics_print_sample(METRIC_STATE_BLOCKS_BYTES, NULL, figures.blocks_bytes, out);
}

static void print_slots(const struct control *control, FILE *out)
{
	const struct slice claimed = SLICE("claimed"), all = SLICE("all");

	metrics_print_head(METRIC_LIMIT_SLOTS, out);
	metrics_print_sample(METRIC_LIMIT_SLOTS, &claimed,
			     limit_table_claimed(control->args.limits), out);
	metrics_print_sample(METRIC_LIMIT_SLOTS, &all, limit_table_slots(control->args.limits),
			     out);
}

static void print_mcp(const struct control *control, FILE *out)
{
	const struct config *config = control->config;

	metrics_print_head(METRIC_MCP_SESSIONS, out);
	for (uint32_t i = 0; i < config->mcp_server_count; i++) {
		const struct slice name = config->mcp_servers[i].name;
		const struct state_key key = mcp_server_key(name);
		metrics_print_sample(METRIC_MCP_SESSIONS, &name,
				     mcp_sessions_of(control->args.channels, &key, control_now()),
				     out);
	}
}

static void print_more(FILE *out, void *arg)
{
	const struct control *control = arg;

	print_guard_kills(control, out);
	print_handshakes(control, out);
	print_pools(control, out);
	print_breakers(control, out);
	print_keys(control, out);
	print_slots(control, out);
	print_tokens(control, out);
	print_state(control, out);
	print_mcp(control, out);
	control_checks_print(control->checks, out);
	control_jwks_print(control->jwks, control_now(), out);
}

int control_metrics(void *arg, FILE *out)
{
	struct control *control = arg;
	const struct metrics_process process = {
		.reloads_ok = control->reloads_ok,
		.reloads_refused = control->reloads_refused,
		.restarts = control->args.restarts,
		.log_dropped = log_writer_dropped(control->log),
		.config_loaded_s = control->config->loaded_s,
		.away_usd_bound = control_store_bound(control),
		.config_refused = control->config_refused,
		.draining = control->drain.phase != DRAIN_NOT,
		.version = SLUICE_VERSION,
		.more = print_more,
		.arg = control,
	};

	metrics_print(control->args.metrics, &process, out);
	return 200;
}
