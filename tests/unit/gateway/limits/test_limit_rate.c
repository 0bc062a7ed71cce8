/* Limits of one slot that change: debt is the same debt under the new figures, whoever else is at it.
 * ctest: worker */
#include "gateway/limits/limit_rate.h"
#include "gateway/limits/limit_table.h"

#include "tenants/limit.h"
#include "tests/support/one_limit.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t monday = UINT64_C(1767571200); /* 2026-01-05 00:00 UTC */
static const nsec_t start = 1000 * SEC;

/* A repeatable source of chance (xorshift64*). */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(2685821657736338717);
}

struct fixture {
	int fd;
	struct limit_table *table;
	struct limit_slot *slot;
};

static struct fixture *fixture_init(struct fixture *f)
{
	*f = (struct fixture){ .fd = limit_table_create(2) };
	f->table = limit_table_map(f->fd);
	assert_non_null(f->table);
	f->slot = limit_table_slot(f->table, (uint8_t[16]){ 1 });
	return f;
}

static void fixture_fini(struct fixture *f)
{
	limit_table_unmap(f->table);
	assert_int_equal(close(f->fd), 0);
}

static const struct quota_limit small = { 1, 10 }, large = { 60000, 6000 };

/* How many of up to `most` requests, each with a token, are granted at once; *wait of the one that is not. */
static uint64_t granted(const struct fixture *f, const struct tenant_limits *limits, uint64_t most,
			nsec_t now, nsec_t *wait)
{
	const struct limit_ask ask = { .requests = 1, .tokens = 1 };
	struct limit_refusal refusal = { .wait_ns = 0 };
	uint64_t count = 0;

	while (count < most && one_take(f->slot, limits, &ask, now, monday, &refusal))
		count++;
	*wait = refusal.wait_ns;
	return count;
}

static struct tenant_limits with_requests(struct quota_limit limit)
{
	struct tenant_limits limits = limit_none();
	limits.requests = limit;
	return limits;
}

static struct tenant_limits with_tokens(struct quota_limit limit)
{
	struct tenant_limits limits = limit_none();
	limits.tokens = limit;
	return limits;
}

static void a_raised_limit_is_in_force_at_once_and_a_lowered_one_after_a_minute(void **state)
{
	struct tenant_limits (*const rows[])(struct quota_limit) = { with_requests, with_tokens };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct tenant_limits few = rows[i](small), many = rows[i](large);
		struct fixture f;
		nsec_t wait;

		assert_int_equal(granted(fixture_init(&f), &few, 20, start, &wait), 10);
		assert_int_equal(wait, 60 * SEC);
		assert_int_equal(granted(&f, &many, 10000, start, &wait), 5990);
		assert_int_equal(wait, MSEC);
		assert_int_equal(granted(&f, &few, 1, start, &wait), 0);
		assert_int_equal(wait, UINT64_C(5991) * 60 * SEC);
		assert_int_equal(granted(&f, &few, 1, start + 61 * SEC, &wait), 0);
		assert_int_equal(wait, 60 * SEC);
		fixture_fini(&f);
	}
}

/* limits.requests goes away and comes back: what was owed has been paid off at the old rate meanwhile. */
static void a_limit_that_was_away_finds_what_is_left_of_its_debt(void **state)
{
	const struct tenant_limits few = with_requests(small), many = with_requests(large);
	const struct tenant_limits none = limit_none();
	struct fixture f;
	nsec_t wait;

	(void)state;
	assert_int_equal(granted(fixture_init(&f), &none, 100, start, &wait), 100);
	assert_int_equal(granted(&f, &few, 20, start, &wait), 10);
	assert_int_equal(granted(&f, &none, 100, start + SEC, &wait), 100);
	assert_int_equal(granted(&f, &few, 20, start + 120 * SEC, &wait), 2);
	assert_int_equal(granted(&f, &none, 100, start + 121 * SEC, &wait), 100);
	assert_int_equal(granted(&f, &many, 20000, start + 120 * SEC, &wait), 5990);
	fixture_fini(&f);
}

/* enforce: false counts nothing beyond its limits, also under other ones than before. */
static void limits_that_count_only_change_like_others(void **state)
{
	struct tenant_limits few = with_requests(small), many = with_requests(large);
	struct fixture f;
	nsec_t wait;

	(void)state;
	few.count_only = many.count_only = true;
	assert_int_equal(granted(fixture_init(&f), &few, 20, start, &wait), 20);
	assert_int_equal(granted(&f, &many, 100, start, &wait), 100);
	few.count_only = many.count_only = false;
	assert_int_equal(granted(&f, &many, 20000, start, &wait), 6000 - 110);
	assert_int_equal(granted(&f, &few, 20, start, &wait), 0);
	assert_int_equal(wait, UINT64_C(5991) * 60 * SEC);
	fixture_fini(&f);
}

/* Places and money are counted as they are: a change is in force at once, and forgets nothing. */
static void places_and_money_need_no_conversion(void **state)
{
	const struct limit_ask ask = { .usd = 10, .concurrent = 1 };
	struct tenant_limits limits = limit_none(), none = limit_none();
	struct limit_refusal refusal;
	struct fixture f;

	(void)state;
	limits.concurrent = 2;
	limits.usd_per_day = 1000;
	fixture_init(&f);
	assert_true(one_take(f.slot, &limits, &ask, start, monday, &refusal));
	assert_true(one_take(f.slot, &limits, &ask, start, monday, &refusal));
	assert_false(one_take(f.slot, &limits, &ask, start, monday, &refusal));
	assert_int_equal(refusal.err, ERR_CONCURRENCY);
	limits.concurrent = 3;
	limits.usd_per_day = 25;
	assert_false(one_take(f.slot, &limits, &ask, start, monday, &refusal));
	assert_int_equal(refusal.err, ERR_BUDGET);
	assert_true(one_take(f.slot, &none, &ask, start, monday, &refusal));
	limits.usd_per_day = 40;
	assert_false(one_take(f.slot, &limits, &ask, start, monday, &refusal));
	assert_int_equal(refusal.err, ERR_CONCURRENCY);
	one_release(f.slot);
	assert_true(one_take(f.slot, &limits, &ask, start, monday, &refusal));
	assert_int_equal(limit_read(f.slot, monday).usd_day, 40);
	assert_int_equal(limit_read(f.slot, monday).concurrent, 3);
	fixture_fini(&f);
}

/* A request that was taken under the old figures ends under the new ones. */
static void what_was_taken_before_a_change_is_settled_behind_it(void **state)
{
	const struct limit_ask ask = { .tokens = 4 }, more = { .tokens = 1 };
	const struct tenant_limits few = with_tokens(small), many = with_tokens(large);
	struct limit_refusal refusal;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	assert_true(one_take(f.slot, &few, &ask, start, monday, &refusal));
	assert_true(one_take(f.slot, &few, &ask, start, monday, &refusal));
	assert_true(one_take(f.slot, &many, &more, start, monday, &refusal));
	assert_int_equal(limit_read(f.slot, monday).tokens.tat, start + 9 * MSEC);
	(void)one_settle(f.slot, &few, &ask, monday, 6, 0, start);
	assert_int_equal(limit_read(f.slot, monday).tokens.tat, start + 11 * MSEC);
	(void)one_settle(f.slot, &few, &ask, monday, 0, 0, start);
	assert_int_equal(limit_read(f.slot, monday).tokens.tat, start + 7 * MSEC);
	assert_int_equal(limit_read(f.slot, monday).tokens.written, 60000);
	fixture_fini(&f);
}

static struct quota_limit any_limit(uint64_t *seed)
{
	const uint64_t rates[] = { QUOTA_RATE_MAX, 1000000, 5000, 60 };

	return (struct quota_limit){ 1 + next_random(seed) % rates[next_random(seed) % 4],
				     1 + next_random(seed) % 300 };
}

/* More changes than a generation's bits hold, times at which uses are over, and figures that come back. */
static void a_slot_decides_as_a_state_that_is_changed_whole(void **state)
{
	enum { HISTORIES = 300, STEPS = 300, FIGURES = 4 };
	uint64_t seed = 5;

	(void)state;
	for (int history = 0; history < HISTORIES; history++) {
		struct quota_limit figures[FIGURES];
		struct quota_state is = { .tat = 0 };
		struct fixture f;
		nsec_t now = start;

		fixture_init(&f);
		for (size_t i = 0; i < FIGURES; i++)
			figures[i] = any_limit(&seed);
		for (int step = 0; step < STEPS; step++) {
			const struct quota_limit limit = figures[next_random(&seed) % FIGURES];
			const struct tenant_limits limits = with_requests(limit);
			const struct limit_ask ask = { .requests = 1 + next_random(&seed) %
									       limit.burst };
			struct limit_refusal refusal = { .wait_ns = 0 };
			nsec_t next = 0, wait = 0;

			now += next_random(&seed) % (20 * SEC) >> next_random(&seed) % 30;
			now += next_random(&seed) % 40 == 0 ? 70 * SEC : 0;
			quota_align(&is, limit, now);
			const bool may = quota_take(is.tat, limit, ask.requests, now, &next,
						    &wait) == ERR_OK;
			assert_int_equal(one_take(f.slot, &limits, &ask, now, monday, &refusal),
					 may);
			assert_int_equal(refusal.wait_ns, wait);
			if (may)
				is.tat = next;
			const struct quota_state in_slot = limit_read(f.slot, monday).requests;
			assert_int_equal(in_slot.tat, is.tat);
			assert_int_equal(in_slot.written, limit.per_minute);
		}
		fixture_fini(&f);
	}
}

/* The second step of a change is whoever's comes next, to the first one's rate and then to its own. */
static void a_change_that_was_left_half_done_is_finished(void **state)
{
	struct limit_rate rate = { .word = 0 };
	uint64_t word = rate_align(&rate, small, start, 0);
	const uint64_t other = ((UINT64_C(2) << RATE_UNITS_BITS) | large.per_minute);

	(void)state;
	word = rate_word(start + 600 * SEC, word);
	atomic_store(&rate.word, word);
	assert_int_equal(rate_read(&rate).written, 1);
	atomic_store(&rate.under[(word + 1) & 1], other); /* and then it died */
	assert_int_equal(rate_read(&rate).written, 1);
	assert_int_equal(rate_align(&rate, small, start, word), word); /* nobody needs it */
	word = rate_align(&rate, (struct quota_limit){ 600, 10 }, start, word);
	assert_int_equal(rate_tat(word), start + SEC);
	assert_int_equal(rate_read(&rate).written, 600);
	word = rate_align(&rate, large, start, word);
	assert_int_equal(rate_tat(word), start + 10 * MSEC);
}

/* ---- threads ---- */

enum { THREADS = 4, TURNS = 20000 };

static const struct quota_limit figures[THREADS] = {
	{ 60000, 2000 }, { 60, 10 }, { 6000, 500 }, { 60000, 40 }
};

struct scene {
	struct fixture f;
	_Atomic nsec_t now;
	_Atomic uint64_t granted;
	_Atomic unsigned next;
};

/* Some of it is given back under whatever rate is in force by then. */
static void *with_figures(void *arg)
{
	struct scene *scene = arg;
	const unsigned number = atomic_fetch_add(&scene->next, 1);
	const struct tenant_limits limits = with_tokens(figures[number]);
	uint64_t seed = number + 1;

	for (int turn = 0; turn < TURNS; turn++) {
		const nsec_t now = atomic_fetch_add(&scene->now, 500 * USEC);
		const struct limit_ask ask = { .tokens = 1 + next_random(&seed) % 5 };
		struct limit_refusal refusal;

		if (!one_take(scene->f.slot, &limits, &ask, now, monday, &refusal))
			continue;
		const uint64_t used = next_random(&seed) % 8 == 0 ? 0 : ask.tokens;
		atomic_fetch_add(&scene->granted, used);
		if (used == 0)
			(void)one_settle(scene->f.slot, &limits, &ask, monday, 0, 0, now);
	}
	return NULL;
}

static void threads_of_four_minds_get_no_more_than_the_largest_figures(void **state)
{
	struct scene scene = { .now = start };
	pthread_t threads[THREADS];

	(void)state;
	fixture_init(&scene.f);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, with_figures, &scene), 0);
	for (size_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	const nsec_t passed = atomic_load(&scene.now) - start;
	assert_true(passed < 60 * SEC); /* every use of a burst counts to the end */
	assert_true(atomic_load(&scene.granted) <= 2000 + passed / MSEC);
	assert_true(atomic_load(&scene.granted) >= 2000);
	fixture_fini(&scene.f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_raised_limit_is_in_force_at_once_and_a_lowered_one_after_a_minute),
		cmocka_unit_test(a_limit_that_was_away_finds_what_is_left_of_its_debt),
		cmocka_unit_test(limits_that_count_only_change_like_others),
		cmocka_unit_test(places_and_money_need_no_conversion),
		cmocka_unit_test(what_was_taken_before_a_change_is_settled_behind_it),
		cmocka_unit_test(a_slot_decides_as_a_state_that_is_changed_whole),
		cmocka_unit_test(a_change_that_was_left_half_done_is_finished),
		cmocka_unit_test(threads_of_four_minds_get_no_more_than_the_largest_figures),
	};

	return cmocka_run_group_tests_name("limit_rate", tests, NULL, NULL);
}
