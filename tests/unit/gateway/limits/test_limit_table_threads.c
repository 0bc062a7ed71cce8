/* Many callers on several threads against one slot: no limit is ever exceeded, nothing gets lost.
 * ctest: worker */
#include "gateway/limits/limit_table.h"

#include "tenants/limit.h"
#include "tests/support/one_limit.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { THREADS = 4, CALLERS = 64, STEPS = 20000, DAY_S = 86400, NAMES = 2000 };

static const uint64_t monday = UINT64_C(1767571200); /* 2026-01-05 00:00 UTC */
static const nsec_t noon = 1000 * SEC; /* of the monotonic clock, which stands still */

/* A repeatable source of chance (xorshift64*). */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(2685821657736338717);
}

/* A count kept beside the table. It grows after a grant and shrinks before a return, so it never
 * shows more than the table has given out; `over` is how often it showed more than the limit. */
struct tally {
	_Atomic uint64_t count, over;
	uint64_t limit;
};

static void tally_add(struct tally *tally, uint64_t n)
{
	if (atomic_fetch_add(&tally->count, n) + n > tally->limit)
		atomic_fetch_add(&tally->over, 1);
}

static void tally_give(struct tally *tally, uint64_t n)
{
	atomic_fetch_sub(&tally->count, n);
}

struct scene {
	struct limit_table *table;
	struct limit_slot *slot;
	struct tenant_limits limits;
	struct tally requests, tokens, concurrent, day, month;
	_Atomic uint64_t refused[LIMIT_COUNT];
	pthread_barrier_t together;
	int fd;
};

typedef void scene_body(struct scene *scene, unsigned thread);

struct thread {
	pthread_t id;
	struct scene *scene;
	scene_body *body;
	unsigned number;
};

static void *thread_main(void *argument)
{
	struct thread *thread = argument;

	(void)pthread_barrier_wait(&thread->scene->together);
	thread->body(thread->scene, thread->number);
	return NULL;
}

/* Runs `body` on all threads, which begin at once. */
static void scene_run(struct scene *scene, scene_body *body)
{
	struct thread threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .scene = scene, .body = body, .number = i };
		assert_int_equal(pthread_create(&threads[i].id, NULL, thread_main, &threads[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i].id, NULL), 0);
}

static void scene_init(struct scene *scene, const struct tenant_limits *limits)
{
	static const uint8_t key[16] = { 1 };

	*scene = (struct scene){ .limits = *limits, .fd = limit_table_create(2 * NAMES) };
	scene->table = limit_table_map(scene->fd);
	assert_non_null(scene->table);
	scene->slot = limit_table_slot(scene->table, key);
	scene->requests.limit = limits->requests.burst;
	scene->tokens.limit = limits->tokens.burst;
	scene->concurrent.limit = limits->concurrent;
	scene->day.limit = limits->usd_per_day;
	scene->month.limit = limits->usd_per_month;
	assert_int_equal(pthread_barrier_init(&scene->together, NULL, THREADS), 0);
}

static void scene_fini(struct scene *scene)
{
	assert_int_equal(pthread_barrier_destroy(&scene->together), 0);
	limit_table_unmap(scene->table);
	assert_int_equal(close(scene->fd), 0);
}

/* ---- callers that come, wait and go ---- */

struct caller {
	bool in_flight;
	struct limit_ask ask;
};

static void refusal_count(struct scene *scene, const struct limit_refusal *refusal)
{
	for (enum limit i = 0; i < LIMIT_COUNT; i++)
		if (limit_info(i)->name == refusal->limit)
			atomic_fetch_add(&scene->refused[i], 1);
}

static void caller_begin(struct scene *scene, struct caller *caller, uint64_t *seed)
{
	struct limit_refusal refusal;

	caller->ask = (struct limit_ask){ 1, 1 + next_random(seed) % 500,
					  1 + next_random(seed) % 1000, 1 };
	caller->in_flight =
		one_take(scene->slot, &scene->limits, &caller->ask, noon, monday, &refusal);
	if (!caller->in_flight) {
		refusal_count(scene, &refusal);
		return;
	}
	tally_add(&scene->requests, 1);
	tally_add(&scene->tokens, caller->ask.tokens);
	tally_add(&scene->concurrent, 1);
	tally_add(&scene->day, caller->ask.usd);
	tally_add(&scene->month, caller->ask.usd);
}

static void caller_end(struct scene *scene, struct caller *caller, uint64_t *seed)
{
	const uint64_t tokens = next_random(seed) % (caller->ask.tokens + 1);
	const uint64_t usd = next_random(seed) % (caller->ask.usd + 1);

	tally_give(&scene->tokens, caller->ask.tokens - tokens);
	tally_give(&scene->day, caller->ask.usd - usd);
	tally_give(&scene->month, caller->ask.usd - usd);
	(void)one_settle(scene->slot, &scene->limits, &caller->ask, monday, tokens, usd, noon);
	tally_give(&scene->concurrent, 1);
	one_release(scene->slot);
	caller->in_flight = false;
}

static void callers_come_and_go(struct scene *scene, unsigned thread)
{
	struct caller callers[CALLERS] = { 0 };
	uint64_t seed = thread + 1;

	for (int step = 0; step < STEPS; step++) {
		struct caller *caller = &callers[next_random(&seed) % CALLERS];
		if (caller->in_flight)
			caller_end(scene, caller, &seed);
		else
			caller_begin(scene, caller, &seed);
	}
	for (size_t i = 0; i < CALLERS; i++)
		if (callers[i].in_flight)
			caller_end(scene, &callers[i], &seed);
}

/* What no caller of this test can reach; a token is a millisecond, so nothing is rounded. */
static struct tenant_limits roomy(void)
{
	struct tenant_limits limits = limit_defaults();

	limits.requests = (struct quota_limit){ 60000, 100000000 };
	limits.tokens = (struct quota_limit){ 60000, 100000000 };
	limits.concurrent = 1000000;
	limits.usd_per_day = limits.usd_per_month = UINT64_C(1000000000000);
	return limits;
}

static struct tenant_limits with_few_requests(void)
{
	struct tenant_limits limits = roomy();
	limits.requests.burst = 1000;
	return limits;
}

static struct tenant_limits with_few_tokens(void)
{
	struct tenant_limits limits = roomy();
	limits.tokens.burst = 20000;
	return limits;
}

static struct tenant_limits with_few_places(void)
{
	struct tenant_limits limits = roomy();
	limits.concurrent = 50;
	return limits;
}

static struct tenant_limits with_little_money_a_day(void)
{
	struct tenant_limits limits = roomy();
	limits.usd_per_day = 100000;
	return limits;
}

static struct tenant_limits with_little_money_a_month(void)
{
	struct tenant_limits limits = roomy();
	limits.usd_per_month = 100000;
	return limits;
}

/* Each is in the way now and then, so that much is taken and has to be given back. */
static struct tenant_limits with_little_of_all(void)
{
	struct tenant_limits limits = roomy();
	limits.requests.burst = 20000;
	limits.tokens.burst = 3000000;
	limits.concurrent = 100;
	limits.usd_per_day = 4000000;
	limits.usd_per_month = 5000000;
	return limits;
}

/* Whatever was given back went back whole. */
static void assert_exact(const struct scene *scene)
{
	const struct limit_state is = limit_read(scene->slot, monday);

	assert_int_equal(is.requests.tat,
			 noon + quota_cost(scene->limits.requests, scene->requests.count));
	assert_int_equal(is.tokens.tat,
			 noon + quota_cost(scene->limits.tokens, scene->tokens.count));
	assert_int_equal(is.concurrent, 0);
	assert_int_equal(is.usd_day, scene->day.count);
	assert_int_equal(is.usd_month, scene->month.count);
}

static void no_limit_is_exceeded_and_nothing_is_lost(void **state)
{
	static const struct {
		const char *name;
		struct tenant_limits (*limits)(void);
		enum limit refuses;
	} rows[] = {
		{ "requests", with_few_requests, LIMIT_requests_per_minute },
		{ "tokens", with_few_tokens, LIMIT_tokens_per_minute },
		{ "places", with_few_places, LIMIT_concurrent },
		{ "money a day", with_little_money_a_day, LIMIT_usd_per_day },
		{ "money a month", with_little_money_a_month, LIMIT_usd_per_month },
		{ "all at once", with_little_of_all, LIMIT_usd_per_day },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct tenant_limits limits = rows[i].limits();
		struct scene scene;

		scene_init(&scene, &limits);
		/* On a busy machine the threads may run one after the other: then no place is short. */
		for (int round = 0; round < 200 && scene.refused[rows[i].refuses] == 0; round++)
			scene_run(&scene, callers_come_and_go);
		if (scene.requests.over + scene.tokens.over + scene.concurrent.over +
			    scene.day.over + scene.month.over !=
		    0)
			fail_msg("%s: a limit was exceeded", rows[i].name);
		if (scene.refused[rows[i].refuses] == 0)
			fail_msg("%s: the limit was never reached", rows[i].name);
		assert_exact(&scene);
		scene_fini(&scene);
	}
}

/* ---- a clock that runs ---- */

static _Atomic uint64_t ticking;

static void requests_while_time_passes(struct scene *scene, unsigned thread)
{
	uint64_t seed = thread + 1;
	struct limit_refusal refusal;

	for (int step = 0; step < STEPS; step++) {
		const struct limit_ask ask = { 1 + next_random(&seed) % 3, 0, 0, 0 };
		const nsec_t now = noon + atomic_fetch_add(&ticking, 100 * USEC);
		if (one_take(scene->slot, &scene->limits, &ask, now, monday, &refusal))
			tally_add(&scene->requests, ask.requests);
	}
}

static void over_time_no_more_than_burst_and_rate_is_granted(void **state)
{
	struct tenant_limits limits = roomy();
	struct scene scene;

	(void)state;
	limits.requests = (struct quota_limit){ 60000, 50 }; /* one a millisecond */
	scene_init(&scene, &limits);
	atomic_store(&ticking, 0);
	scene_run(&scene, requests_while_time_passes);
	const uint64_t passed_ms = (THREADS * STEPS - 1) * (100 * USEC) / MSEC;
	assert_in_range(scene.requests.count, passed_ms - 5, 50 + passed_ms);
	scene_fini(&scene);
}

/* ---- midnight ---- */

enum { DAYS = 70, PER_DAY = 200 };
static struct tally spent[DAYS + 1], spent_by_month[4];

/* Half of the threads live a day ahead: each day's money is asked for by both, around its change. */
static void spend_over_midnight(struct scene *scene, unsigned thread)
{
	struct limit_refusal refusal;
	uint64_t seed = thread + 1;

	for (unsigned phase = 0; phase < DAYS; phase++) {
		const unsigned day = phase + thread % 2;
		const uint64_t wall_s = monday + (uint64_t)day * DAY_S;
		struct tally *month = &spent_by_month[quota_month(wall_s) - quota_month(monday)];

		(void)pthread_barrier_wait(&scene->together);
		for (int i = 0; i < PER_DAY; i++) {
			const struct limit_ask ask = { 0, 0, 1 + next_random(&seed) % 100, 0 };
			if (!one_take(scene->slot, &scene->limits, &ask, noon, wall_s, &refusal))
				continue;
			const uint64_t used = next_random(&seed) % (ask.usd + 1);
			tally_add(&spent[day], ask.usd);
			tally_add(month, ask.usd);
			tally_give(&spent[day], ask.usd - used);
			tally_give(month, ask.usd - used);
			(void)one_settle(scene->slot, &scene->limits, &ask, wall_s, 0, used, noon);
		}
		(void)pthread_barrier_wait(&scene->together);
		if (thread == 0 && /* everybody else waits at the top */
		    limit_read(scene->slot, wall_s).usd_day != atomic_load(&spent[day].count))
			atomic_fetch_add(&spent[day].over, 1);
	}
}

static void the_change_of_a_period_loses_and_grants_nothing(void **state)
{
	struct tenant_limits limits = roomy();
	struct scene scene;

	(void)state;
	limits.usd_per_day = 15000;
	limits.usd_per_month = 200000;
	scene_init(&scene, &limits);
	for (size_t i = 0; i < COUNT_OF(spent); i++)
		spent[i] = (struct tally){ .limit = limits.usd_per_day };
	for (size_t i = 0; i < COUNT_OF(spent_by_month); i++)
		spent_by_month[i] = (struct tally){ .limit = limits.usd_per_month };
	scene_run(&scene, spend_over_midnight);
	for (size_t i = 0; i < COUNT_OF(spent); i++)
		assert_int_equal(spent[i].over, 0);
	for (size_t i = 0; i < COUNT_OF(spent_by_month); i++)
		assert_int_equal(spent_by_month[i].over, 0);
	const uint64_t last_s = monday + (uint64_t)DAYS * DAY_S;
	assert_int_equal(limit_read(scene.slot, last_s).usd_day, spent[DAYS].count);
	assert_int_equal(limit_read(scene.slot, last_s).usd_month,
			 spent_by_month[quota_month(last_s) - quota_month(monday)].count);
	scene_fini(&scene);
}

/* ---- names ---- */

static struct limit_slot *_Atomic named[NAMES];
static _Atomic uint64_t disagreements;

static void claim_names(struct scene *scene, unsigned thread)
{
	for (uint32_t i = 0; i < NAMES; i++) {
		/* Few different fronts: names fight for the same places as well. */
		uint8_t key[16] = { (uint8_t)(i % 7) };
		(void)memcpy(key + 8, &i, sizeof(i));
		struct limit_slot *slot = limit_table_slot(scene->table, key), *none = NULL;
		if (slot == NULL ||
		    (!atomic_compare_exchange_strong(&named[i], &none, slot) && none != slot))
			atomic_fetch_add(&disagreements, 1);
	}
	(void)thread;
}

static void threads_agree_on_the_slot_of_a_name(void **state)
{
	const struct tenant_limits limits = roomy();
	static bool taken[4 * NAMES];
	struct scene scene;

	(void)state;
	scene_init(&scene, &limits);
	scene_run(&scene, claim_names);
	assert_int_equal(disagreements, 0);
	for (uint32_t i = 0; i < NAMES; i++) {
		const uint32_t number = limit_slot_index(scene.table, named[i]);
		assert_in_range(number, 1, COUNT_OF(taken) - 1);
		assert_false(taken[number]);
		taken[number] = true;
	}
	scene_fini(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_limit_is_exceeded_and_nothing_is_lost),
		cmocka_unit_test(over_time_no_more_than_burst_and_rate_is_granted),
		cmocka_unit_test(the_change_of_a_period_loses_and_grants_nothing),
		cmocka_unit_test(threads_agree_on_the_slot_of_a_name),
	};

	return cmocka_run_group_tests_name("limit_table_threads", tests, NULL, NULL);
}
