#include "tenants/quota.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A repeatable source of chance (xorshift64*). */
static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return *seed * UINT64_C(2685821657736338717);
}

/* ---- rates ---- */

static const struct quota_limit ten_a_second_five_at_once = { .per_minute = 600, .burst = 5 };

static void a_cost_is_rounded_up_and_saturates(void **state)
{
	static const struct {
		const char *name;
		uint64_t per_minute, n;
		nsec_t cost;
	} rows[] = {
		{ "nothing", 60, 0, 0 },
		{ "one a second", 60, 3, 3 * SEC },
		{ "a rate that does not divide a minute", 7, 1, UINT64_C(8571428572) },
		{ "seven of them are a minute exactly", 7, 7, 60 * SEC },
		{ "one a nanosecond", QUOTA_RATE_MAX, 12345, 12345 },
		{ "more than one and a half a nanosecond", QUOTA_RATE_MAX * 2 / 3, 1, 2 },
		{ "128 bits on the way", 1000, UINT64_C(300000000000),
		  18 * SEC * UINT64_C(1000000000) },
		{ "at the edge of the short way", 59, UINT64_C(307445733),
		  UINT64_C(312656677627118645) },
		{ "too far for a clock", 1, UINT64_C(400000000000), UINT64_MAX },
		{ "the largest of all", 1, UINT64_MAX, UINT64_MAX },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const nsec_t cost =
			quota_cost((struct quota_limit){ rows[i].per_minute, 1 }, rows[i].n);
		if (cost != rows[i].cost)
			fail_msg("%s: %llu", rows[i].name, (unsigned long long)cost);
	}
}

static void take_is_all_or_nothing_and_names_the_wait(void **state)
{
	const nsec_t now = 1000 * MSEC;
	nsec_t tat = now, next = 0, wait = 0;

	(void)state;
	assert_int_equal(quota_take(tat, ten_a_second_five_at_once, 4, now, &next, &wait), ERR_OK);
	tat = next;
	assert_int_equal(quota_take(tat, ten_a_second_five_at_once, 3, now, &next, &wait),
			 ERR_RATE_LIMITED);
	assert_int_equal(next, tat);
	assert_int_equal(wait, 200 * MSEC);
	assert_int_equal(
		quota_take(tat, ten_a_second_five_at_once, 3, now + wait - 1, &next, &wait),
		ERR_RATE_LIMITED);
	assert_int_equal(wait, 1);
	assert_int_equal(
		quota_take(tat, ten_a_second_five_at_once, 3, now + 200 * MSEC, &next, &wait),
		ERR_OK);
	assert_int_equal(quota_take(tat, ten_a_second_five_at_once, 6, now, &next, &wait),
			 ERR_OVER_BURST);
}

static void an_idle_bucket_holds_the_burst_and_no_more(void **state)
{
	nsec_t tat = 0, next = 0, wait = 0;
	const nsec_t now = 3600 * SEC;

	(void)state;
	assert_int_equal(quota_remaining(tat, ten_a_second_five_at_once, now), 5);
	for (uint64_t left = 5; left > 0; left--) {
		assert_int_equal(quota_take(tat, ten_a_second_five_at_once, 1, now, &next, &wait),
				 ERR_OK);
		tat = next;
		assert_int_equal(quota_remaining(tat, ten_a_second_five_at_once, now), left - 1);
	}
	assert_int_equal(quota_take(tat, ten_a_second_five_at_once, 1, now, &next, &wait),
			 ERR_RATE_LIMITED);
	assert_int_equal(wait, 100 * MSEC);
}

static void a_minute_gives_exactly_the_rate(void **state)
{
	static const uint64_t rates[] = { 1, 6, 60, 600, 1000, 60000, 1000000 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rates); i++) {
		const struct quota_limit limit = { .per_minute = rates[i], .burst = 1 };
		nsec_t tat = 0, now = SEC, next = 0, wait = 0;
		uint64_t granted = 0;

		while (now < 61 * SEC) {
			if (quota_take(tat, limit, 1, now, &next, &wait) == ERR_OK) {
				tat = next;
				granted++;
			} else {
				now += wait;
			}
		}
		assert_int_equal(granted, rates[i]);
	}
}

static void the_end_of_time_is_no_way_in(void **state)
{
	/* The burst is worth more nanoseconds than a clock has. */
	const struct quota_limit limit = { .per_minute = 1, .burst = QUOTA_RATE_MAX };
	nsec_t tat = 0, next = 0, wait = 0;
	uint64_t granted = 0;
	enum err err;

	(void)state;
	while ((err = quota_take(tat, limit, 5000000, SEC, &next, &wait)) == ERR_OK) {
		assert_true(next > tat);
		tat = next;
		granted++;
	}
	assert_int_equal(err, ERR_RATE_LIMITED);
	assert_int_equal(granted, 3); /* 36 years at one a minute */
	assert_int_equal(quota_take(0, limit, QUOTA_RATE_MAX, SEC, &next, &wait), ERR_OVER_BURST);
}

static void settling_leaves_what_a_take_of_the_true_number_leaves(void **state)
{
	const struct quota_limit limit = { .per_minute = 7, .burst = 100 };
	const nsec_t now = 77 * SEC;
	nsec_t reserved = 0, exact = 0, wait = 0;

	(void)state;
	assert_int_equal(quota_take(0, limit, 50, now, &reserved, &wait), ERR_OK);
	for (uint64_t used = 0; used <= 100; used++) {
		assert_int_equal(quota_take(0, limit, used, now, &exact, &wait), ERR_OK);
		assert_int_equal(quota_settle(reserved, limit, 50, used, now), exact);
	}
}

static void debt_is_paid_off_before_anything_is_taken(void **state)
{
	const struct quota_limit limit = { .per_minute = 60, .burst = 10 };
	nsec_t tat = quota_settle(0, limit, 0, 25, 100 * SEC), next = 0, wait = 0;

	(void)state;
	assert_int_equal(tat, 125 * SEC);
	assert_int_equal(quota_remaining(tat, limit, 100 * SEC), 0);
	assert_int_equal(quota_take(tat, limit, 1, 100 * SEC, &next, &wait), ERR_RATE_LIMITED);
	assert_int_equal(wait, 16 * SEC);
	assert_int_equal(quota_take(tat, limit, 1, 116 * SEC, &next, &wait), ERR_OK);
}

static void what_is_given_back_fills_the_bucket_at_most(void **state)
{
	const struct quota_limit limit = { .per_minute = 60, .burst = 10 };
	const nsec_t tat = quota_settle(105 * SEC, limit, 30, 1, 100 * SEC);

	(void)state;
	assert_int_equal(tat, 100 * SEC);
	assert_int_equal(quota_remaining(tat, limit, 100 * SEC), 10);
}

static void debt_saturates_at_the_end_of_time(void **state)
{
	const struct quota_limit limit = { .per_minute = 1, .burst = 1 };

	(void)state;
	assert_int_equal(quota_settle(5, limit, 0, UINT64_MAX, SEC), QUOTA_TAT_MAX);
	assert_int_equal(quota_settle(QUOTA_TAT_MAX, limit, 1, 3, SEC), QUOTA_TAT_MAX);
	assert_int_equal(quota_rescale(QUOTA_TAT_MAX, QUOTA_RATE_MAX, limit, UINT64_MAX, SEC),
			 QUOTA_TAT_MAX);
}

/* The same limit said differently: a bucket of nanoseconds that is refilled step by step. */
struct bucket {
	__extension__ __int128 level, full;
	nsec_t at;
};

static void bucket_refill(struct bucket *bucket, nsec_t now)
{
	bucket->level += now - bucket->at;
	if (bucket->level > bucket->full)
		bucket->level = bucket->full;
	bucket->at = now;
}

static void random_histories_agree_with_a_bucket(void **state)
{
	uint64_t seed = 42;

	(void)state;
	for (int history = 0; history < 300; history++) {
		const uint64_t rate_max = history % 3 == 0   ? QUOTA_RATE_MAX
					  : history % 3 == 1 ? 100000
							     : 90;
		const struct quota_limit limit = { .per_minute = 1 + next_random(&seed) % rate_max,
						   .burst = 1 + next_random(&seed) % 1000 };
		nsec_t now = next_random(&seed) % (1000 * SEC), tat = 0, next = 0, wait = 0;
		struct bucket bucket = { .at = now, .full = quota_cost(limit, limit.burst) };
		bucket.level = bucket.full;

		for (int step = 0; step < 300; step++) {
			now += next_random(&seed) % (1 + quota_cost(limit, limit.burst / 3 + 1));
			bucket_refill(&bucket, now);
			const uint64_t n = 1 + next_random(&seed) % limit.burst;
			const nsec_t cost = quota_cost(limit, n);
			const enum err err = quota_take(tat, limit, n, now, &next, &wait);

			assert_int_equal(err, bucket.level >= cost ? ERR_OK : ERR_RATE_LIMITED);
			if (err != ERR_OK) {
				assert_int_equal(wait, cost - bucket.level);
				continue;
			}
			bucket.level -= cost;
			tat = next;
			if (next_random(&seed) % 2 ==
			    0) { /* the provider counted otherwise, some time later */
				now += next_random(&seed) % (1 + cost);
				bucket_refill(&bucket, now);
				const uint64_t used = next_random(&seed) % (2 * n);
				tat = quota_settle(tat, limit, n, used, now);
				bucket.level += (__int128)cost - quota_cost(limit, used);
				bucket_refill(&bucket, now);
			}
			const __int128 units =
				bucket.level < 0 ? 0 : bucket.level * limit.per_minute / (60 * SEC);
			assert_int_equal(quota_remaining(tat, limit, now), units);
		}
	}
}

static void no_window_of_a_random_history_exceeds_burst_plus_rate(void **state)
{
	enum { GRANTS = 400 };
	uint64_t seed = 7;

	(void)state;
	for (int history = 0; history < 20; history++) {
		const struct quota_limit limit = { .per_minute = 1 + next_random(&seed) % 5000,
						   .burst = 1 + next_random(&seed) % 50 };
		nsec_t at[GRANTS], tat = 0, now = SEC, next = 0, wait = 0;
		uint64_t n[GRANTS];

		for (size_t granted = 0; granted < GRANTS;) {
			n[granted] = 1 + next_random(&seed) % limit.burst;
			if (quota_take(tat, limit, n[granted], now, &next, &wait) == ERR_OK) {
				tat = next;
				at[granted++] = now;
			}
			now += next_random(&seed) % quota_cost(limit, 2);
		}
		for (size_t first = 0; first < GRANTS; first++) {
			uint64_t sum = 0;
			for (size_t last = first; last < GRANTS; last++) {
				sum += n[last];
				assert_true((__int128)(sum - limit.burst) * 60 * SEC <=
						    (__int128)(at[last] - at[first]) *
							    limit.per_minute ||
					    sum <= limit.burst);
			}
		}
	}
}

/* ---- costs ---- */

static void the_token_estimate_is_rounded_up(void **state)
{
	static const struct {
		const char *name;
		uint64_t bytes;
		uint32_t images, max_tokens;
		uint64_t estimate;
	} rows[] = {
		{ "nothing", 0, 0, 0, 0 },
		{ "one byte", 1, 0, 0, 1 },
		{ "four bytes", 4, 0, 0, 1 },
		{ "five bytes", 5, 0, 0, 2 },
		{ "all three", 2048, 2, 1000, 512 + 3200 + 1000 },
		{ "does not wrap", UINT64_MAX, UINT32_MAX, UINT32_MAX,
		  UINT64_MAX / 4 + 1 + UINT64_C(1600) * UINT32_MAX + UINT32_MAX },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const uint64_t estimate =
			quota_token_estimate(rows[i].bytes, rows[i].images, rows[i].max_tokens);
		if (estimate != rows[i].estimate)
			fail_msg("%s: %llu", rows[i].name, (unsigned long long)estimate);
	}
}

/* 3, 15, 0.3, 3.75 and 6 USD per million tokens. */
static const struct price sonnet = {
	.input = 3000000,
	.output = 15000000,
	.cache_read = 300000,
	.cache_write = 3750000,
	.cache_write_1h = 6000000,
};

static void the_money_bound_takes_the_dearest_way_in(void **state)
{
	static const struct price odd = {
		.input = 1, .output = 1, .cache_read = 1, .cache_write = 0
	};
	static const struct price huge = { UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
					   UINT64_MAX };
	static const struct price zero = { 0, 0, 0, 0, 0 };

	(void)state;
	assert_int_equal(quota_usd_bound(1000, 0, 100, &sonnet), 3000 * 3750 + 100 * 15000);
	assert_int_equal(quota_usd_bound(1000, 2, 100, &sonnet),
			 (3000 + 3200) * 3750 + 100 * 15000);
	assert_int_equal(quota_usd_bound(0, 0, 1, &odd), 3); /* 2,001 pico-USD, rounded up */
	assert_int_equal(quota_usd_bound(5000, 3, 4096, &zero), 0);
	assert_int_equal(quota_usd_bound(UINT64_MAX, UINT32_MAX, UINT32_MAX, &huge), UINT64_MAX);
}

static void a_factor_changes_every_price_and_rounds_up(void **state)
{
	struct price price = sonnet, odd = { .input = 1, .output = 3 };
	struct price huge = { UINT64_MAX, 1, 0, 0, UINT64_MAX };

	(void)state;
	quota_price_times(&price, 2 * QUOTA_FACTOR_ONE);
	assert_int_equal(price.input, 6000000);
	assert_int_equal(price.output, 30000000);
	assert_int_equal(price.cache_read, 600000);
	assert_int_equal(price.cache_write, 7500000);
	assert_int_equal(price.cache_write_1h, 12000000);
	quota_price_times(&price, QUOTA_FACTOR_ONE);
	assert_int_equal(price.input, 6000000);
	quota_price_times(&odd, QUOTA_FACTOR_ONE / 2);
	assert_int_equal(odd.input, 1);
	assert_int_equal(odd.output, 2);
	quota_price_times(&huge, 1000 * QUOTA_FACTOR_ONE);
	assert_true(huge.input == UINT64_MAX && huge.cache_write_1h == UINT64_MAX);
	assert_int_equal(huge.output, 1000);
	quota_price_times(&huge, 0);
	assert_int_equal(huge.input, 0);
}

static void a_bound_may_be_of_a_prompt_or_of_uses(void **state)
{
	(void)state;
	assert_int_equal(quota_usd_bound_of(quota_prompt_bound(1000, 2), 100, &sonnet),
			 quota_usd_bound(1000, 2, 100, &sonnet));
	assert_int_equal(quota_usd_bound_of(8000, 0, &sonnet), 8000 * 3750);
	assert_int_equal(quota_add_each(7, 3, 10), 37);
	assert_true(quota_add_each(7, UINT64_MAX, 10) == UINT64_MAX);
	assert_true(quota_add_each(UINT64_MAX, 1, 1) == UINT64_MAX);
}

static uint64_t used(uint64_t input, uint64_t read, uint64_t written, uint64_t output,
		     const struct price *price)
{
	const struct usage usage = {
		.input = input, .cache_read = read, .cache_write = written, .output = output
	};

	return quota_usd_used(&usage, price);
}

static void money_used_counts_every_token_once(void **state)
{
	(void)state;
	/* 1,000 in, of which 600 came from the cache and 100 went into it. */
	assert_int_equal(used(1000, 600, 100, 50, &sonnet),
			 300 * 3000 + 600 * 300 + 100 * 3750 + 50 * 15000);
	assert_int_equal(used(0, 0, 0, 0, &sonnet), 0);
	assert_int_equal(used(1, 1, 0, 0, &(struct price){ .cache_read = 1 }), 1);
	/* Of 100 written, 40 stay for an hour. */
	assert_int_equal(
		quota_usd_used(
			&(struct usage){ .input = 150, .cache_write = 100, .cache_write_1h = 40 },
			&sonnet),
		50 * 3000 + 60 * 3750 + 40 * 6000);
	/* Counters that contradict each other do not wrap. */
	assert_int_equal(
		quota_usd_used(
			&(struct usage){ .input = 10, .cache_write = 3, .cache_write_1h = 4 },
			&sonnet),
		7 * 3000 + 3 * 6000);
	assert_int_equal(used(10, 20, 0, 0, &sonnet), 20 * 300);
	assert_int_equal(used(10, UINT64_MAX, UINT64_MAX, 0, &sonnet), UINT64_MAX);
}

static void a_provider_within_its_limits_never_exceeds_the_bound(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const struct price price = { .input = next_random(&seed) % 100000000,
					     .output = next_random(&seed) % 100000000,
					     .cache_read = 0,
					     .cache_write = next_random(&seed) % 100000000 };
		const uint64_t bytes = next_random(&seed) % 1000000;
		const uint32_t max_tokens = (uint32_t)(next_random(&seed) % 100000);
		const uint64_t input = next_random(&seed) % (bytes + 2001);
		const uint64_t written = next_random(&seed) % (input + 1);
		const uint64_t output = next_random(&seed) % ((uint64_t)max_tokens + 1);

		assert_true(used(input, 0, written, output, &price) <=
			    quota_usd_bound(bytes, 0, max_tokens, &price));
	}
}

static void what_is_beyond_every_byte_and_the_window_is_not_believed(void **state)
{
	static const struct {
		const char *name;
		uint64_t tokens, context;
		bool credible;
	} rows[] = {
		{ "as estimated", 600, 0, true },
		{ "a token a byte, and the provider's own", 600 * 4 + 2000, 0, true },
		{ "more than that", 600 * 4 + 2001, 0, false },
		{ "a document whose bytes say little", 100000, 100000, true },
		{ "beyond the window, too", 100001, 100000, false },
		{ "a small window that is wrong", 600 * 4, 100, true },
		{ "what no number is too large for", UINT64_C(1) << 53, 100000, false },
	};
	const uint64_t estimate = quota_token_estimate(2000, 0, 100);
	(void)state;
	assert_int_equal(estimate, 600);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (quota_is_credible(rows[i].tokens, estimate, rows[i].context) !=
		    rows[i].credible)
			fail_msg("%s", rows[i].name);
	assert_true(quota_is_credible(UINT64_MAX, UINT64_MAX, 0));
}

static void what_was_seen_of_an_answer_is_counted_by_the_largest_of_its_measures(void **state)
{
	static const struct {
		struct quota_seen seen;
		uint64_t most, tokens;
	} rows[] = {
		{ { 0 }, 100, 0 },
		{ { .bytes = 1 }, 100, 1 },
		{ { .bytes = 30 }, 100, 10 },
		{ { .bytes = 31 }, 100, 11 },
		{ { .bytes = 30, .deltas = 12 }, 100, 12 },
		{ { .bytes = 30, .deltas = 12, .counted = 13 }, 100, 13 },
		{ { .bytes = 30, .deltas = 12, .counted = 13, .timed = 14 }, 100, 14 },
		{ { .bytes = 300, .timed = 14 }, 100, 100 },
		{ { .bytes = UINT64_MAX }, UINT64_MAX, UINT64_MAX / 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (quota_output_seen(&rows[i].seen, rows[i].most) != rows[i].tokens)
			fail_msg("row %zu", i);
}

/* ---- calendar ---- */

static bool leap(unsigned year)
{
	return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static void every_day_of_six_centuries_has_its_month(void **state)
{
	static const unsigned lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	uint64_t day = 0;

	(void)state;
	for (unsigned year = 1970; year < 2570; year++) {
		for (unsigned month = 0; month < 12; month++) {
			const unsigned length = lengths[month] + (month == 1 && leap(year));
			const uint64_t month_end = (day + length) * 86400;
			for (unsigned i = 0; i < length; i++, day++) {
				assert_int_equal(quota_month(day * 86400), year * 12 + month);
				assert_int_equal(quota_month(day * 86400 + 86399),
						 year * 12 + month);
				assert_int_equal(quota_day(day * 86400), day);
				assert_int_equal(quota_day(day * 86400 + 86399), day);
				assert_int_equal(quota_day_end(day * 86400 + 86399),
						 (day + 1) * 86400);
				assert_int_equal(quota_month_end(day * 86400), month_end);
				assert_int_equal(quota_month_end(day * 86400 + 86399), month_end);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cost_is_rounded_up_and_saturates),
		cmocka_unit_test(take_is_all_or_nothing_and_names_the_wait),
		cmocka_unit_test(an_idle_bucket_holds_the_burst_and_no_more),
		cmocka_unit_test(a_minute_gives_exactly_the_rate),
		cmocka_unit_test(the_end_of_time_is_no_way_in),
		cmocka_unit_test(settling_leaves_what_a_take_of_the_true_number_leaves),
		cmocka_unit_test(debt_is_paid_off_before_anything_is_taken),
		cmocka_unit_test(what_is_given_back_fills_the_bucket_at_most),
		cmocka_unit_test(debt_saturates_at_the_end_of_time),
		cmocka_unit_test(random_histories_agree_with_a_bucket),
		cmocka_unit_test(no_window_of_a_random_history_exceeds_burst_plus_rate),
		cmocka_unit_test(the_token_estimate_is_rounded_up),
		cmocka_unit_test(the_money_bound_takes_the_dearest_way_in),
		cmocka_unit_test(a_factor_changes_every_price_and_rounds_up),
		cmocka_unit_test(a_bound_may_be_of_a_prompt_or_of_uses),
		cmocka_unit_test(money_used_counts_every_token_once),
		cmocka_unit_test(a_provider_within_its_limits_never_exceeds_the_bound),
		cmocka_unit_test(what_is_beyond_every_byte_and_the_window_is_not_believed),
		cmocka_unit_test(
			what_was_seen_of_an_answer_is_counted_by_the_largest_of_its_measures),
		cmocka_unit_test(every_day_of_six_centuries_has_its_month),
	};

	return cmocka_run_group_tests_name("quota", tests, NULL, NULL);
}
