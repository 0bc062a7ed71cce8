#include "gateway/telemetry/metrics.h"

#include "codec/base/must.h"
#include "gateway/telemetry/metrics_block.h"

#include <stdlib.h>
#include <sys/mman.h>

const struct metrics_shape metrics_shapes[TABLE_COUNT] = {
	[TABLE_TENANTS] = { TENANT_CELLS, KIND_TENANT },
	[TABLE_DURATIONS] = { ERR_COUNT * HISTOGRAM_CELLS, KIND_ROUTE },
	[TABLE_TTFT] = { HISTOGRAM_CELLS, KIND_ROUTE },
	[TABLE_ATTEMPTS] = { ERR_COUNT, KIND_PROVIDER },
	[TABLE_LIMITS] = { METRICS_DECISIONS, KIND_LIMIT },
	[TABLE_MCP] = { MCP_CELLS, KIND_MCP },
	[TABLE_SINGLE] = { SINGLE_CELLS, KIND_COUNT },
};

/* A refusal takes milliseconds, a short answer a second, a long one minutes. */
const nsec_t metrics_bounds_answer[METRICS_BUCKETS] = {
	5 * MSEC, 25 * MSEC, 100 * MSEC, 250 * MSEC, 500 * MSEC, 1 * SEC,   2 * SEC,   4 * SEC,
	8 * SEC,  15 * SEC,  30 * SEC,   60 * SEC,   120 * SEC,  300 * SEC, 600 * SEC,
};
const nsec_t metrics_bounds_queue[METRICS_BUCKETS] = {
	100 * USEC, 500 * USEC, 1 * MSEC, 5 * MSEC, 10 * MSEC, 25 * MSEC, 50 * MSEC, 100 * MSEC,
	250 * MSEC, 500 * MSEC, 1 * SEC,  2 * SEC,  5 * SEC,   15 * SEC,  60 * SEC,
};

const nsec_t metrics_bounds_store[METRICS_BUCKETS] = {
	50 * USEC, 100 * USEC, 200 * USEC, 500 * USEC, 1 * MSEC,   2 * MSEC,   5 * MSEC, 10 * MSEC,
	15 * MSEC, 20 * MSEC,  30 * MSEC,  50 * MSEC,  100 * MSEC, 500 * MSEC, 1 * SEC,
};

/* ---- blocks -------------------------------------------------------------------------------- */

/* Mapped: rows that are never used cost no memory. (A heap gives out what was used before, and clears it.) */
static metrics_cell *table_new(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static size_t table_bytes(const struct metrics *metrics, size_t table)
{
	const struct metrics_shape *shape = &metrics_shapes[table];
	const size_t rows = shape->kind == KIND_COUNT ? 1 : metrics->labels[shape->kind].cap;

	return rows * shape->cells * sizeof(metrics_cell);
}

static void worker_free(struct metrics_worker *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (m->tables[i] != NULL)
			(void)munmap(m->tables[i], table_bytes(m->process, i));
	free(m);
}

static struct metrics_worker *worker_alloc(struct metrics *metrics)
{
	struct metrics_worker *m = aligned_alloc(64, (sizeof(*m) + 63) / 64 * 64);

	if (m == NULL)
		return NULL;
	memset(m, 0, sizeof(*m));
	m->process = metrics;
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		m->tables[i] = table_new(table_bytes(metrics, i));
		if (m->tables[i] == NULL) {
			worker_free(m);
			return NULL;
		}
	}
	return m;
}

static bool metrics_alloc(struct metrics *metrics, uint32_t workers, uint32_t tenants_max)
{
	const uint32_t max[KIND_COUNT] = {
		[KIND_TENANT] = tenants_max + 1, /* and _none */
		[KIND_ROUTE] = METRICS_ROUTES_MAX, [KIND_PROVIDER] = METRICS_PROVIDERS_MAX,
		[KIND_LIMIT] = METRICS_LIMITS_MAX, [KIND_MCP] = METRICS_MCP_MAX,
	};

	for (size_t i = 0; i < KIND_COUNT; i++)
		if (!metrics_labels_init(&metrics->labels[i], max[i]))
			return false;
	metrics->workers = calloc(workers, sizeof(struct metrics_worker *));
	metrics->sum = worker_alloc(metrics);
	if (metrics->workers == NULL || metrics->sum == NULL)
		return false;
	while (metrics->worker_count < workers) {
		struct metrics_worker *m = worker_alloc(metrics);
		if (m == NULL)
			return false;
		metrics->workers[metrics->worker_count++] = m;
	}
	return true;
}

static uint32_t tenant_number(struct metrics *metrics, uint32_t series, struct slice tenant);

struct metrics *metrics_new(uint32_t workers, uint32_t tenants_max)
{
	struct metrics *metrics = calloc(1, sizeof(*metrics));

	if (metrics == NULL)
		return NULL;
	if (!metrics_alloc(metrics, workers, tenants_max)) {
		metrics_free(metrics);
		return NULL;
	}
	(void)tenant_number(metrics, UINT32_MAX,
			    slice_of(NULL, 0)); /* _none has a place for sure */
	return metrics;
}

void metrics_free(struct metrics *metrics)
{
	if (metrics == NULL)
		return;
	for (uint32_t i = 0; i < metrics->worker_count; i++)
		worker_free(metrics->workers[i]);
	free(metrics->workers);
	worker_free(metrics->sum);
	for (size_t i = 0; i < KIND_COUNT; i++)
		if (metrics->labels[i].rows != NULL)
			metrics_labels_fini(&metrics->labels[i]);
	free(metrics);
}

struct metrics_worker *metrics_worker(struct metrics *metrics, uint32_t worker)
{
	must(worker < metrics->worker_count);
	return metrics->workers[worker];
}

/* ---- counting: one writer per block, so no atomic read-modify-write is needed ---------------- */

static void cell_add(metrics_cell *cell, uint64_t n)
{
	atomic_store_explicit(cell, metrics_get(cell) + n, memory_order_relaxed);
}

static void observe(metrics_cell *histogram, const nsec_t bounds[METRICS_BUCKETS], nsec_t value)
{
	size_t bucket = 0;

	while (bucket < METRICS_BUCKETS && value > bounds[bucket])
		bucket++;
	cell_add(&histogram[bucket], 1);
	cell_add(&histogram[HISTOGRAM_SUM_NS], value);
}

/* An authenticated tenant without a slot (the limit table is full) has no number to go by. */
static uint32_t tenant_number(struct metrics *metrics, uint32_t series, struct slice tenant)
{
	const struct slice none = SLICE("_none");

	if (slice_absent(tenant))
		return metrics_labels_number(&metrics->labels[KIND_TENANT], UINT32_MAX, none,
					     slice_of(NULL, 0));
	if (series == UINT32_MAX || slice_eq(tenant, none))
		return METRICS_LABEL_OTHER;
	return metrics_labels_number(&metrics->labels[KIND_TENANT], series, tenant,
				     slice_of(NULL, 0));
}

/* An attempt is followed by its request's end, and often by another request of the same model. */
static uint32_t route_number(struct metrics_worker *m, struct slice model, struct slice provider)
{
	struct metrics_labels *labels = &m->process->labels[KIND_ROUTE];
	struct slice a = slice_absent(model) ? SLICE("_none") : model;
	struct slice b = slice_absent(provider) ? SLICE("_none") : provider;
	const struct metrics_label *last = &labels->rows[m->last_route];

	if (m->last_route != METRICS_LABEL_OTHER && slice_eq(last->a, a) && slice_eq(last->b, b))
		return m->last_route;
	m->last_route = metrics_labels_number(labels, metrics_labels_hash(a, b), a, b);
	return m->last_route;
}

/* The same for a table whose labels are one text. */
static uint32_t name_number(struct metrics_worker *m, enum metrics_kind kind, uint32_t *last,
			    struct slice name)
{
	const struct slice no_second = slice_of(NULL, 0);
	struct metrics_labels *labels = &m->process->labels[kind];

	if (*last == METRICS_LABEL_OTHER || !slice_eq(labels->rows[*last].a, name))
		*last = metrics_labels_number(labels, metrics_labels_hash(name, no_second), name,
					      no_second);
	return *last;
}

void metrics_request(struct metrics_worker *m, const struct metrics_request *r)
{
	must((unsigned)r->outcome < ERR_COUNT);
	uint32_t route = route_number(m, r->model, r->provider);
	metrics_cell *tenant = metrics_row(m, TABLE_TENANTS,
					   tenant_number(m->process, r->tenant_series, r->tenant));

	cell_add(&tenant[TENANT_OUTCOME + r->outcome], 1);
	cell_add(&tenant[TENANT_TOKENS_IN], r->tokens_in);
	cell_add(&tenant[TENANT_TOKENS_OUT], r->tokens_out);
	cell_add(&tenant[TENANT_USD_NANO], r->usd_nano);
	observe(metrics_row(m, TABLE_DURATIONS, route) + r->outcome * HISTOGRAM_CELLS,
		metrics_bounds_answer, r->duration);
	if (r->unknown_calls != 0)
		cell_add(&metrics_row(m, TABLE_SINGLE, 0)[SINGLE_UNKNOWN_CALLS], r->unknown_calls);
	if (r->attempted)
		observe(metrics_row(m, TABLE_SINGLE, 0) + SINGLE_QUEUE, metrics_bounds_queue,
			r->queue);
}

void metrics_attempt(struct metrics_worker *m, const struct metrics_attempt *a)
{
	uint32_t number = name_number(m, KIND_PROVIDER, &m->last_provider, a->provider);
	metrics_cell *single = metrics_row(m, TABLE_SINGLE, 0);

	must((unsigned)a->outcome < ERR_COUNT);
	cell_add(&metrics_row(m, TABLE_ATTEMPTS, number)[a->outcome], 1);
	if (a->ttft > 0)
		observe(metrics_row(m, TABLE_TTFT, route_number(m, a->model, a->provider)),
			metrics_bounds_answer, a->ttft);
	cell_add(&single[SINGLE_SETTLED_WITHOUT_USAGE], a->settled_without_usage ? 1 : 0);
	cell_add(&single[SINGLE_OVERRUN_NANO], a->usd_overrun_nano);
}

void metrics_limit(struct metrics_worker *m, const char *limit, enum metrics_decision decision)
{
	const struct slice name = limit == NULL ? SLICE("all") : slice_str(limit);
	uint32_t number = name_number(m, KIND_LIMIT, &m->last_limit, name);

	must(decision < METRICS_DECISIONS);
	cell_add(&metrics_row(m, TABLE_LIMITS, number)[decision], 1);
}

void metrics_store(struct metrics_worker *m, enum metrics_store_result result, nsec_t took)
{
	metrics_cell *single = metrics_row(m, TABLE_SINGLE, 0);

	must(result < STORE_RESULTS);
	cell_add(&single[SINGLE_STORE_RESULT + result], 1);
	observe(single + SINGLE_STORE, metrics_bounds_store, took);
}

void metrics_away(struct metrics_worker *m, enum metrics_away decision, uint64_t usd)
{
	metrics_cell *single = metrics_row(m, TABLE_SINGLE, 0);

	must(decision < AWAY_DECISIONS);
	cell_add(&single[SINGLE_AWAY + decision], 1);
	cell_add(&single[SINGLE_AWAY_NANO], usd);
}

void metrics_state_away(struct metrics_worker *m, enum metrics_state_away what)
{
	must(what < STATE_AWAYS);
	cell_add(&metrics_row(m, TABLE_SINGLE, 0)[SINGLE_STATE_AWAY + what], 1);
}

void metrics_idempotency(struct metrics_worker *m, enum metrics_idempotency result)
{
	must(result < METRICS_IDEMPOTENCIES);
	cell_add(&metrics_row(m, TABLE_SINGLE, 0)[SINGLE_IDEMPOTENCY + result], 1);
}

void metrics_store_mode(struct metrics_worker *m, bool used, bool away)
{
	atomic_store_explicit(&m->store_used, used ? 1 : 0, memory_order_relaxed);
	atomic_store_explicit(&m->store_away, away ? 1 : 0, memory_order_relaxed);
}

void metrics_store_fault(struct metrics_worker *m, enum store_fault fault)
{
	atomic_store_explicit(&m->store_fault, fault, memory_order_relaxed);
}

uint32_t metrics_store_away(const struct metrics *metrics, enum store_fault *fault)
{
	uint32_t away = 0;

	*fault = STORE_FAULT_NONE;
	for (uint32_t i = 0; i < metrics->worker_count; i++) {
		if (metrics_get(&metrics->workers[i]->store_away) == 0)
			continue;
		away++;
		if (*fault == STORE_FAULT_NONE)
			*fault = (enum store_fault)metrics_get(&metrics->workers[i]->store_fault);
	}
	return away;
}

bool metrics_store_is_away(const struct metrics *metrics)
{
	for (uint32_t i = 0; i < metrics->worker_count; i++)
		if (metrics_get(&metrics->workers[i]->store_away) != 0)
			return true;
	return false;
}

uint32_t metrics_mcp_series(struct metrics_worker *m, struct slice server)
{
	const struct slice no_second = slice_of(NULL, 0);

	return metrics_labels_number(&m->process->labels[KIND_MCP],
				     metrics_labels_hash(server, no_second), server, no_second);
}

void metrics_mcp_message(struct metrics_worker *m, uint32_t series, bool from_server,
			 enum metrics_mcp_message kind)
{
	must(kind < METRICS_MCP_MESSAGES);
	cell_add(&metrics_row(
			 m, TABLE_MCP,
			 series)[(from_server ? MCP_SERVER_MESSAGES : MCP_CLIENT_MESSAGES) + kind],
		 1);
}

void metrics_mcp_sampling(struct metrics_worker *m, uint32_t series, enum err outcome)
{
	must((unsigned)outcome < ERR_COUNT);
	cell_add(&metrics_row(m, TABLE_MCP, series)[MCP_SAMPLINGS + outcome], 1);
}

void metrics_mcp_failure(struct metrics_worker *m, uint32_t series, enum metrics_mcp_failure why)
{
	must(why < METRICS_MCP_FAILURES);
	cell_add(&metrics_row(m, TABLE_MCP, series)[MCP_FAILURES + why], 1);
}

void metrics_mcp_head(struct metrics_worker *m, uint32_t series, nsec_t took)
{
	observe(metrics_row(m, TABLE_MCP, series) + MCP_UPSTREAM, metrics_bounds_queue, took);
}

void metrics_mcp_stream(struct metrics_worker *m, uint32_t series, enum metrics_mcp_stream kind,
			bool open)
{
	must(kind < METRICS_MCP_STREAMS);
	cell_add(&metrics_row(m, TABLE_MCP, series)[MCP_STREAMS + kind], open ? 1 : UINT64_MAX);
}

void metrics_gauges(struct metrics_worker *m, const struct metrics_gauges *g)
{
	atomic_store_explicit(&m->in_flight, g->in_flight, memory_order_relaxed);
	atomic_store_explicit(&m->connections_open, g->connections_open, memory_order_relaxed);
	atomic_store_explicit(&m->arena_chunks_high, g->arena_chunks_high, memory_order_relaxed);
	atomic_store_explicit(&m->requests_slab_high, g->requests_slab_high, memory_order_relaxed);
}
