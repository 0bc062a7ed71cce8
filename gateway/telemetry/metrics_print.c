/* metrics_print.c - the scrape: adds the workers' blocks up and prints Prometheus text (version 0.0.4). */
#include "gateway/telemetry/metrics.h"

#include "codec/base/must.h"
#include "gateway/telemetry/metrics_block.h"

#include <inttypes.h>

static const struct row {
	const char *name, *type, *labels, *unit, *meaning;
} rows[METRIC_COUNT] = {
#define COUNTER "counter"
#define GAUGE "gauge"
#define HISTOGRAM "histogram"
#define METRIC(symbol, name, type, labels, unit, meaning) \
	[METRIC_##symbol] = { name, type, labels, unit, meaning },
#include "gateway/telemetry/tbl/metrics.h"
#undef METRIC
#undef COUNTER
#undef GAUGE
#undef HISTOGRAM
};

enum { LABELS_MAX = 3 };

/* ---- pieces of the format ------------------------------------------------------------------- */

void metrics_print_head(enum metric metric, FILE *out)
{
	must((unsigned)metric < METRIC_COUNT);
	(void)fprintf(out, "# HELP %s %s.\n# TYPE %s %s\n", rows[metric].name, rows[metric].meaning,
		      rows[metric].name, rows[metric].type);
}

static void print_escaped(struct slice s, FILE *out)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.at[i] == '\\' || s.at[i] == '"')
			(void)fputc('\\', out);
		if (s.at[i] == '\n')
			(void)fputs("\\n", out);
		else
			(void)fputc(s.at[i], out);
	}
}

/* name{label="value",...} with a blank behind it; `le` NULL: none. */
static void print_name(enum metric metric, const char *suffix, const struct slice *values,
		       const char *le, FILE *out)
{
	struct slice names = slice_str(rows[metric].labels);
	const char *before = "{";

	(void)fprintf(out, "%s%s", rows[metric].name, suffix);
	for (size_t i = 0; names.len > 0; i++, before = ",") {
		struct slice name = slice_cut(&names, ',');
		(void)fprintf(out, "%s%.*s=\"", before, (int)name.len, name.at);
		print_escaped(values[i], out);
		(void)fputc('"', out);
	}
	if (le != NULL) {
		(void)fprintf(out, "%sle=\"%s\"", before, le);
		before = ",";
	}
	(void)fputs(*before == ',' ? "} " : " ", out);
}

void metrics_print_sample(enum metric metric, const struct slice *values, uint64_t value, FILE *out)
{
	must((unsigned)metric < METRIC_COUNT);
	print_name(metric, "", values, NULL, out);
	(void)fprintf(out, "%" PRIu64 "\n", value);
}

/* Nanos of something, as a decimal that loses nothing. */
static void print_nano(uint64_t nano, FILE *out)
{
	(void)fprintf(out, "%" PRIu64 ".%09" PRIu64 "\n", nano / SEC, nano % SEC);
}

static void print_single_nano(enum metric metric, uint64_t nano, FILE *out)
{
	metrics_print_head(metric, out);
	print_name(metric, "", NULL, NULL, out);
	print_nano(nano, out);
}

static void print_histogram(enum metric metric, const struct slice *values,
			    const metrics_cell *cells, const nsec_t bounds[METRICS_BUCKETS],
			    FILE *out)
{
	uint64_t count = 0;
	char le[32];

	for (size_t i = 0; i < METRICS_BUCKETS; i++) {
		count += metrics_get(&cells[i]);
		(void)snprintf(le, sizeof(le), "%.12g", (double)bounds[i] / (double)SEC);
		print_name(metric, "_bucket", values, le, out);
		(void)fprintf(out, "%" PRIu64 "\n", count);
	}
	count += metrics_get(&cells[METRICS_BUCKETS]);
	print_name(metric, "_bucket", values, "+Inf", out);
	(void)fprintf(out, "%" PRIu64 "\n", count);
	print_name(metric, "_sum", values, NULL, out);
	print_nano(metrics_get(&cells[HISTOGRAM_SUM_NS]), out);
	print_name(metric, "_count", values, NULL, out);
	(void)fprintf(out, "%" PRIu64 "\n", count);
}

static bool histogram_used(const metrics_cell *cells)
{
	for (size_t i = 0; i <= METRICS_BUCKETS; i++)
		if (metrics_get(&cells[i]) != 0)
			return true;
	return false;
}

/* ---- families ------------------------------------------------------------------------------- */

static uint32_t rows_used(const struct metrics *metrics, enum metrics_table table)
{
	enum metrics_kind kind = metrics_shapes[table].kind;

	return kind == KIND_COUNT ? 1 : metrics_labels_count(&metrics->labels[kind]);
}

/* What is added while this runs belongs to the next scrape. */
static void sum_up(struct metrics *metrics)
{
	for (size_t table = 0; table < TABLE_COUNT; table++) {
		size_t cells = (size_t)rows_used(metrics, (enum metrics_table)table) *
			       metrics_shapes[table].cells;
		for (size_t i = 0; i < cells; i++) {
			uint64_t sum = 0;
			for (uint32_t w = 0; w < metrics->worker_count; w++)
				sum += metrics_get(&metrics->workers[w]->tables[table][i]);
			atomic_store_explicit(&metrics->sum->tables[table][i], sum,
					      memory_order_relaxed);
		}
	}
}

/* Rows of the sum whose cells at `from` are a counter per outcome; those at 0 never happened. */
static void print_outcomes(struct metrics *metrics, enum metric metric, enum metrics_table table,
			   size_t from, uint32_t count, FILE *out)
{
	const struct metrics_label *labels = metrics->labels[metrics_shapes[table].kind].rows;

	metrics_print_head(metric, out);
	for (uint32_t row = 0; row < count; row++) {
		const metrics_cell *cells = metrics_row(metrics->sum, table, row) + from;
		for (size_t err = 0; err < ERR_COUNT; err++) {
			struct slice values[] = { labels[row].a,
						  slice_str(err_info((enum err)err)->reason) };
			if (metrics_get(&cells[err]) != 0)
				metrics_print_sample(metric, values, metrics_get(&cells[err]), out);
		}
	}
}

static bool tenant_seen(const metrics_cell *cells)
{
	for (size_t err = 0; err < ERR_COUNT; err++)
		if (metrics_get(&cells[TENANT_OUTCOME + err]) != 0)
			return true;
	return false;
}

static void print_tenants(struct metrics *metrics, uint32_t count, FILE *out)
{
	const struct metrics_label *labels = metrics->labels[KIND_TENANT].rows;

	print_outcomes(metrics, METRIC_REQUESTS, TABLE_TENANTS, TENANT_OUTCOME, count, out);
	metrics_print_head(METRIC_TOKENS, out);
	for (uint32_t row = 0; row < count; row++) {
		const metrics_cell *cells = metrics_row(metrics->sum, TABLE_TENANTS, row);
		struct slice in[] = { labels[row].a, SLICE("input") };
		struct slice to[] = { labels[row].a, SLICE("output") };
		if (!tenant_seen(cells))
			continue;
		metrics_print_sample(METRIC_TOKENS, in, metrics_get(&cells[TENANT_TOKENS_IN]), out);
		metrics_print_sample(METRIC_TOKENS, to, metrics_get(&cells[TENANT_TOKENS_OUT]),
				     out);
	}
	metrics_print_head(METRIC_USD, out);
	for (uint32_t row = 0; row < count; row++) {
		const metrics_cell *cells = metrics_row(metrics->sum, TABLE_TENANTS, row);
		if (!tenant_seen(cells))
			continue;
		print_name(METRIC_USD, "", &labels[row].a, NULL, out);
		print_nano(metrics_get(&cells[TENANT_USD_NANO]), out);
	}
}

static void print_routes(struct metrics *metrics, uint32_t count, FILE *out)
{
	const struct metrics_label *labels = metrics->labels[KIND_ROUTE].rows;

	metrics_print_head(METRIC_REQUEST_DURATION, out);
	for (uint32_t row = 0; row < count; row++) {
		const metrics_cell *cells = metrics_row(metrics->sum, TABLE_DURATIONS, row);
		for (size_t err = 0; err < ERR_COUNT; err++, cells += HISTOGRAM_CELLS) {
			struct slice values[] = { labels[row].a, labels[row].b,
						  slice_str(err_info((enum err)err)->reason) };
			if (histogram_used(cells))
				print_histogram(METRIC_REQUEST_DURATION, values, cells,
						metrics_bounds_answer, out);
		}
	}
	metrics_print_head(METRIC_TTFT, out);
	for (uint32_t row = 0; row < count; row++) {
		const metrics_cell *cells = metrics_row(metrics->sum, TABLE_TTFT, row);
		struct slice values[] = { labels[row].a, labels[row].b };
		if (histogram_used(cells))
			print_histogram(METRIC_TTFT, values, cells, metrics_bounds_answer, out);
	}
}

static void print_limits(struct metrics *metrics, uint32_t count, FILE *out)
{
	static const char *const decisions[METRICS_DECISIONS] = { [METRICS_GRANTED] = "granted",
								  [METRICS_REFUSED] = "refused",
								  [METRICS_WOULD_REFUSE] =
									  "would_refuse" };
	const struct metrics_label *labels = metrics->labels[KIND_LIMIT].rows;

	metrics_print_head(METRIC_LIMIT_DECISIONS, out);
	for (uint32_t row = 0; row < count; row++) {
		const metrics_cell *cells = metrics_row(metrics->sum, TABLE_LIMITS, row);
		for (size_t i = 0; i < METRICS_DECISIONS; i++) {
			struct slice values[] = { labels[row].a, slice_str(decisions[i]) };
			if (metrics_get(&cells[i]) != 0)
				metrics_print_sample(METRIC_LIMIT_DECISIONS, values,
						     metrics_get(&cells[i]), out);
		}
	}
}

/* Samples of one row: its name, the text in front of the last label where there is one, and a figure for each word. */
static void print_words(enum metric metric, struct slice name, const char *between,
			const metrics_cell *cells, const char *const *words, size_t count,
			FILE *out)
{
	for (size_t i = 0; i < count; i++) {
		struct slice values[LABELS_MAX] = { name };
		size_t label = 1;
		if (between != NULL)
			values[label++] = slice_str(between);
		values[label] = slice_str(words[i]);
		metrics_print_sample(metric, values, metrics_get(&cells[i]), out);
	}
}

static bool mcp_seen(const metrics_cell *cells)
{
	for (size_t i = 0; i < MCP_CELLS; i++)
		if (metrics_get(&cells[i]) != 0)
			return true;
	return false;
}

/* A server that the configuration has is in all families from the start; _other only where there is one. */
static void print_mcp(struct metrics *metrics, uint32_t count, FILE *out)
{
	static const char *const kinds[METRICS_MCP_MESSAGES] = { "request", "notification",
								 "response", "other" };
	static const char *const streams[METRICS_MCP_STREAMS] = { "post", "get", "own" };
	const char *const failures[METRICS_MCP_FAILURES] = {
		[METRICS_MCP_AWAY] = err_info(ERR_SERVER_UNAVAILABLE)->reason,
		[METRICS_MCP_ANSWER] = err_info(ERR_SERVER_ANSWER)->reason,
		[METRICS_MCP_CREDENTIALS] = err_info(ERR_SERVER_CREDENTIALS)->reason,
	};
	const struct metrics_label *labels = metrics->labels[KIND_MCP].rows;

	const uint32_t first = mcp_seen(metrics_row(metrics->sum, TABLE_MCP, METRICS_LABEL_OTHER))
				       ? METRICS_LABEL_OTHER
				       : METRICS_LABEL_OTHER + 1;

	metrics_print_head(METRIC_MCP_MESSAGES, out);
	for (uint32_t row = first; row < count; row++) {
		const metrics_cell *cells = metrics_row(metrics->sum, TABLE_MCP, row);
		print_words(METRIC_MCP_MESSAGES, labels[row].a, "client",
			    cells + MCP_CLIENT_MESSAGES, kinds, COUNT_OF(kinds), out);
		print_words(METRIC_MCP_MESSAGES, labels[row].a, "server",
			    cells + MCP_SERVER_MESSAGES, kinds, COUNT_OF(kinds), out);
	}
	print_outcomes(metrics, METRIC_MCP_SAMPLINGS, TABLE_MCP, MCP_SAMPLINGS, count, out);
	metrics_print_head(METRIC_MCP_UPSTREAM, out);
	for (uint32_t row = first; row < count; row++)
		print_histogram(METRIC_MCP_UPSTREAM, &labels[row].a,
				metrics_row(metrics->sum, TABLE_MCP, row) + MCP_UPSTREAM,
				metrics_bounds_queue, out);
	metrics_print_head(METRIC_MCP_STREAMS, out);
	for (uint32_t row = first; row < count; row++)
		print_words(METRIC_MCP_STREAMS, labels[row].a, NULL,
			    metrics_row(metrics->sum, TABLE_MCP, row) + MCP_STREAMS, streams,
			    COUNT_OF(streams), out);
	metrics_print_head(METRIC_MCP_FAILURES, out);
	for (uint32_t row = first; row < count; row++)
		print_words(METRIC_MCP_FAILURES, labels[row].a, NULL,
			    metrics_row(metrics->sum, TABLE_MCP, row) + MCP_FAILURES, failures,
			    COUNT_OF(failures), out);
}

static void print_single(enum metric metric, uint64_t value, FILE *out)
{
	metrics_print_head(metric, out);
	metrics_print_sample(metric, NULL, value, out);
}

static void print_gauges(struct metrics *metrics, FILE *out)
{
	uint64_t in_flight = 0, connections = 0;

	for (uint32_t i = 0; i < metrics->worker_count; i++) {
		in_flight += metrics_get(&metrics->workers[i]->in_flight);
		connections += metrics_get(&metrics->workers[i]->connections_open);
	}
	print_single(METRIC_IN_FLIGHT, in_flight, out);
	print_single(METRIC_CONNECTIONS, connections, out);
}

static void print_by_worker(struct metrics *metrics, enum metric metric, size_t offset, FILE *out)
{
	char number[16];

	metrics_print_head(metric, out);
	for (uint32_t i = 0; i < metrics->worker_count; i++) {
		const void *cell = (const char *)metrics->workers[i] + offset;
		(void)snprintf(number, sizeof(number), "%" PRIu32, i);
		struct slice value = slice_str(number);
		metrics_print_sample(metric, &value, metrics_get(cell), out);
	}
}

static void print_away(const metrics_cell *single, uint64_t bound, FILE *out)
{
	static const struct slice labels[AWAY_DECISIONS][2] = {
		[AWAY_RATES_LOCAL] = { SLICE("rates"), SLICE("local") },
		[AWAY_RATES_CLOSED] = { SLICE("rates"), SLICE("closed") },
		[AWAY_BUDGET_LOCAL] = { SLICE("budget"), SLICE("local") },
		[AWAY_BUDGET_CLOSED] = { SLICE("budget"), SLICE("closed") },
		[AWAY_RATES_WAITED] = { SLICE("rates"), SLICE("waited") },
		[AWAY_BUDGET_WAITED] = { SLICE("budget"), SLICE("waited") },
	};

	metrics_print_head(METRIC_AWAY_DECISIONS, out);
	for (size_t i = 0; i < AWAY_DECISIONS; i++)
		metrics_print_sample(METRIC_AWAY_DECISIONS, labels[i],
				     metrics_get(&single[SINGLE_AWAY + i]), out);
	print_single_nano(METRIC_AWAY_USD, metrics_get(&single[SINGLE_AWAY_NANO]), out);
	print_single_nano(METRIC_AWAY_USD_BOUND, bound, out);
}

static void print_idempotency(const metrics_cell *single, FILE *out)
{
	static const char *const results[METRICS_IDEMPOTENCIES] = {
		[METRICS_IDEMPOTENCY_FIRST] = "first",
		[METRICS_IDEMPOTENCY_ANSWERED] = "answered",
		[METRICS_IDEMPOTENCY_DONE] = "done",
		[METRICS_IDEMPOTENCY_CONFLICT] = "conflict",
		[METRICS_IDEMPOTENCY_ELSEWHERE] = "elsewhere",
		[METRICS_IDEMPOTENCY_LATE] = "late",
		[METRICS_IDEMPOTENCY_FULL] = "full",
	};

	metrics_print_head(METRIC_IDEMPOTENCY, out);
	for (size_t i = 0; i < METRICS_IDEMPOTENCIES; i++) {
		const struct slice value = slice_str(results[i]);
		metrics_print_sample(METRIC_IDEMPOTENCY, &value,
				     metrics_get(&single[SINGLE_IDEMPOTENCY + i]), out);
	}
}

static void print_store_faults(struct metrics *metrics, FILE *out)
{
	uint64_t workers[STORE_FAULTS] = { 0 };

	for (uint32_t i = 0; i < metrics->worker_count; i++)
		workers[metrics_get(&metrics->workers[i]->store_fault)]++;
	metrics_print_head(METRIC_STORE_FAULT, out);
	for (enum store_fault fault = STORE_FAULT_NONE + 1; fault < STORE_FAULTS; fault++) {
		const struct slice value = slice_str(store_fault_label(fault));
		metrics_print_sample(METRIC_STORE_FAULT, &value, workers[fault], out);
	}
}

static void print_store(struct metrics *metrics, const metrics_cell *single,
			uint64_t away_usd_bound, FILE *out)
{
	static const char *const results[STORE_RESULTS] = { "ok", "error", "late", "lost" };
	uint64_t modes[3] = { 0 };
	static const char *const words[] = { "memory", "shared", "away" };
	static const char *const state_aways[STATE_AWAYS] = { "recall", "note", "claim" };

	for (uint32_t i = 0; i < metrics->worker_count; i++) {
		const bool used = metrics_get(&metrics->workers[i]->store_used) != 0;
		const bool away = metrics_get(&metrics->workers[i]->store_away) != 0;
		modes[!used ? 0 : away ? 2 : 1]++;
	}
	metrics_print_head(METRIC_LIMITER_MODE, out);
	for (size_t i = 0; i < COUNT_OF(words); i++) {
		const struct slice value = slice_str(words[i]);
		metrics_print_sample(METRIC_LIMITER_MODE, &value, modes[i], out);
	}
	print_store_faults(metrics, out);
	print_away(single, away_usd_bound, out);
	metrics_print_head(METRIC_STATE_AWAY, out);
	for (size_t i = 0; i < STATE_AWAYS; i++) {
		const struct slice value = slice_str(state_aways[i]);
		metrics_print_sample(METRIC_STATE_AWAY, &value,
				     metrics_get(&single[SINGLE_STATE_AWAY + i]), out);
	}
	print_idempotency(single, out);
	metrics_print_head(METRIC_STORE_COMMANDS, out);
	for (size_t i = 0; i < STORE_RESULTS; i++) {
		const struct slice value = slice_str(results[i]);
		metrics_print_sample(METRIC_STORE_COMMANDS, &value,
				     metrics_get(&single[SINGLE_STORE_RESULT + i]), out);
	}
	metrics_print_head(METRIC_STORE_SECONDS, out);
	print_histogram(METRIC_STORE_SECONDS, NULL, single + SINGLE_STORE, metrics_bounds_store,
			out);
}

static void print_process(const struct metrics_process *process, FILE *out)
{
	const struct slice version = slice_str(process->version);

	metrics_print_head(METRIC_RELOADS, out);
	metrics_print_sample(METRIC_RELOADS, &SLICE("ok"), process->reloads_ok, out);
	metrics_print_sample(METRIC_RELOADS, &SLICE("refused"), process->reloads_refused, out);
	print_single(METRIC_CONFIG_REFUSED, process->config_refused, out);
	print_single(METRIC_CONFIG_TIMESTAMP, process->config_loaded_s, out);
	print_single(METRIC_DRAINING, process->draining, out);
	print_single(METRIC_RESTARTS, process->restarts, out);
	print_single(METRIC_LOG_DROPPED, process->log_dropped, out);
	metrics_print_head(METRIC_BUILD_INFO, out);
	metrics_print_sample(METRIC_BUILD_INFO, &version, 1, out);
}

void metrics_print(struct metrics *metrics, const struct metrics_process *process, FILE *out)
{
	const metrics_cell *single = metrics_row(metrics->sum, TABLE_SINGLE, 0);
	uint32_t used[TABLE_COUNT];

	for (size_t i = 0; i < TABLE_COUNT; i++) /* rows that come later were not added up */
		used[i] = rows_used(metrics, (enum metrics_table)i);
	sum_up(metrics);
	print_tenants(metrics, used[TABLE_TENANTS], out);
	print_routes(metrics, used[TABLE_DURATIONS], out);
	metrics_print_head(METRIC_QUEUE, out);
	print_histogram(METRIC_QUEUE, NULL, single + SINGLE_QUEUE, metrics_bounds_queue, out);
	print_gauges(metrics, out);
	print_outcomes(metrics, METRIC_ATTEMPTS, TABLE_ATTEMPTS, 0, used[TABLE_ATTEMPTS], out);
	print_limits(metrics, used[TABLE_LIMITS], out);
	print_mcp(metrics, used[TABLE_MCP], out);
	print_store(metrics, single, process->away_usd_bound, out);
	print_single(METRIC_SETTLED_WITHOUT_USAGE,
		     metrics_get(&single[SINGLE_SETTLED_WITHOUT_USAGE]), out);
	print_single(METRIC_UNKNOWN_CALLS, metrics_get(&single[SINGLE_UNKNOWN_CALLS]), out);
	print_single_nano(METRIC_BUDGET_OVERRUN, metrics_get(&single[SINGLE_OVERRUN_NANO]), out);
	print_process(process, out);
	print_by_worker(metrics, METRIC_ARENA_CHUNKS_HIGH,
			offsetof(struct metrics_worker, arena_chunks_high), out);
	print_by_worker(metrics, METRIC_REQUESTS_SLAB_HIGH,
			offsetof(struct metrics_worker, requests_slab_high), out);
	if (process->more != NULL)
		process->more(out, process->arg);
}

void metrics_print_manual(FILE *out)
{
	for (size_t i = 0; i < METRIC_COUNT; i++)
		(void)fprintf(out, "%s%s%s%s\n    %s in %s. %s.\n", rows[i].name,
			      rows[i].labels[0] == '\0' ? "" : "{", rows[i].labels,
			      rows[i].labels[0] == '\0' ? "" : "}", rows[i].type, rows[i].unit,
			      rows[i].meaning);
}
