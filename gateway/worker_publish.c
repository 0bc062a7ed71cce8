/* worker_publish.c - what a worker tells the scrape once a second. */
#include "gateway/worker_parts.h"

#include "codec/base/must.h"

#include <stdatomic.h>

static void publish_pools(struct worker *worker, uint32_t p)
{
	const struct provider *provider = &worker->config->providers[p];
	struct upstream_counts sum = { 0 };

	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		if ((worker->providers.firsts[p] >> e & 1) == 0)
			continue; /* counted where it was named first */
		const struct upstream_counts one =
			upstream_count(worker->upstream, provider->endpoints[e].identity);
		sum.idle += one.idle;
		sum.busy += one.busy;
		sum.connecting += one.connecting;
		sum.queued += one.queued;
	}
	struct worker_pool_counts *counts = &worker->pool_counts[p];
	atomic_store_explicit(&counts->idle, sum.idle, memory_order_relaxed);
	atomic_store_explicit(&counts->busy, sum.busy, memory_order_relaxed);
	atomic_store_explicit(&counts->connecting, sum.connecting, memory_order_relaxed);
	atomic_store_explicit(&counts->queued, sum.queued, memory_order_relaxed);
}

static void publish_health(struct worker *worker, uint32_t p)
{
	const struct provider *provider = &worker->config->providers[p];
	const struct health_view *view = worker->providers.health;
	struct worker_health *out = &worker->healths[p];
	const nsec_t now = net_now(worker->loop);

	for (uint32_t e = 0; e < provider->endpoint_count; e++)
		atomic_store_explicit(&out->breakers[e], (uint8_t)health_breaker(view, p, e, now),
				      memory_order_relaxed);
	for (uint32_t k = 0; k < provider->key_count; k++)
		atomic_store_explicit(&out->cools_s[k],
				      (uint32_t)((health_cools(view, p, k, now) + SEC - 1) / SEC),
				      memory_order_relaxed);
}

void worker_publish(struct worker *worker)
{
	for (uint32_t p = 0; p < worker->config->provider_count; p++) {
		publish_pools(worker, p);
		publish_health(worker, p);
	}
}

const struct worker_pool_counts *worker_pool_counts(const struct worker *worker, uint32_t provider)
{
	must(provider < WORKER_PROVIDERS_MAX);
	return &worker->pool_counts[provider];
}

const struct worker_health *worker_health(const struct worker *worker, uint32_t provider)
{
	must(provider < WORKER_PROVIDERS_MAX);
	return &worker->healths[provider];
}
