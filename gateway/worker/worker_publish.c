/* worker_publish.c - what a worker tells the scrape once a second. */
#include "gateway/worker/worker_parts.h"

#include "codec/base/must.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void publish_pools(struct worker *worker, uint32_t p)
{
	const struct provider *provider = &worker->core.config->providers[p];
	struct upstream_counts sum = { 0 };

	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		if ((worker->core.providers.firsts[p] >> e & 1) == 0)
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
	const struct provider *provider = &worker->core.config->providers[p];
	const struct health_view *view = worker->core.providers.health;
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

struct worker_lessons *worker_lessons_new(void)
{
	struct worker_lessons *lessons = calloc(1, sizeof(*lessons));

	if (lessons != NULL)
		must(pthread_mutex_init(&lessons->lock, NULL) == 0);
	return lessons;
}

static void put_lesson(struct worker_lessons *to, uint32_t model, enum learn fact, uint64_t tenant,
		       nsec_t until, nsec_t now)
{
	if (until > now && to->count < WORKER_LESSONS_MAX)
		to->list[to->count++] = (struct worker_lesson){ until, tenant, model, fact };
}

static void put_lessons(struct worker_lessons *to, uint32_t model, const struct lessons *from,
			nsec_t now)
{
	for (int fact = 0; fact < LEARN_COUNT; fact++)
		put_lesson(to, model, (enum learn)fact, 0, from->for_all[fact], now);
	for (size_t i = 0; i < LESSONS_MAX; i++)
		put_lesson(to, model, from->kept[i].fact, from->kept[i].tenant, from->kept[i].until,
			   now);
}

/* While control looks at the last ones they stay for a second more. */
static void publish_lessons(struct worker *worker)
{
	struct worker_lessons *to = worker->lessons;
	const nsec_t now = net_now(worker->loop);

	if (pthread_mutex_trylock(&to->lock) != 0)
		return;
	to->count = 0;
	to->seq = atomic_load_explicit(&worker->shared.config_seq, memory_order_relaxed);
	for (uint32_t m = 0; m < worker->core.config->catalog.count; m++) {
		const struct lessons *known = health_lessons(worker->core.providers.health, m, now);
		if (known != NULL)
			put_lessons(to, m, known, now);
	}
	must(pthread_mutex_unlock(&to->lock) == 0);
}

void worker_publish(struct worker *worker)
{
	for (uint32_t p = 0; p < worker->core.config->provider_count; p++) {
		publish_pools(worker, p);
		publish_health(worker, p);
	}
	publish_lessons(worker);
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

bool worker_lesson_is_of(const struct worker_lesson *lesson, const uint8_t limit_key[16])
{
	return lesson->tenant == health_tenant(limit_key);
}

uint32_t worker_lessons(struct worker *worker, uint64_t seq, struct worker_lesson *out)
{
	struct worker_lessons *from = worker->lessons;

	must(pthread_mutex_lock(&from->lock) == 0);
	const uint32_t count = from->seq == seq ? from->count : 0;
	(void)memcpy(out, from->list, count * sizeof(*out));
	must(pthread_mutex_unlock(&from->lock) == 0);
	return count;
}
