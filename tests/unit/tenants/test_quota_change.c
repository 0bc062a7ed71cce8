/* A limit that changes, and a fleet of which one part has the old figures and the other one the new. */
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

static void debt_under_another_rate_is_the_same_debt(void **state)
{
	static const struct {
		const char *name;
		uint64_t written, per_minute, most;
		nsec_t debt, is;
	} rows[] = {
		{ "none", 1, 60000, 10, 0, 0 },
		{ "the same rate", 60, 60, 10, 7 * SEC, 7 * SEC },
		{ "ten a minute's apart, raised", 1, 60000, 10, 600 * SEC, 10 * MSEC },
		{ "and lowered", 60000, 1, 10, 10 * MSEC, 600 * SEC },
		{ "rounded up", 1, 60000, 10, 1, 1 },
		{ "rounded up to the nanosecond", 1, 7, 10, 8, 2 },
		{ "no more than was ever used at once", 60000, 1, 10, 20 * MSEC, 600 * SEC },
		{ "not known: as its own", 0, 60, 10, 7 * SEC, 7 * SEC },
		{ "not known, and more than its own can be", 0, 60000, 10, 600 * SEC, 10 * MSEC },
		{ "128 bits on the way", QUOTA_RATE_MAX, QUOTA_RATE_MAX / 2, QUOTA_RATE_MAX,
		  UINT64_C(30000000000), UINT64_C(60000000000) },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct quota_limit limit = { rows[i].per_minute, 1 };
		const nsec_t now = 1000 * SEC;
		const nsec_t tat = quota_rescale(now + rows[i].debt, rows[i].written, limit,
						 rows[i].most, now);
		if (tat != now + rows[i].is)
			fail_msg("%s: %lld", rows[i].name, (long long)(tat - now));
	}
	assert_int_equal(quota_rescale(5, 1, (struct quota_limit){ 600, 5 }, 5, 9), 5); /* past */
}

__extension__ typedef unsigned __int128 wide;

static bool take(struct quota_state *state, struct quota_limit limit, uint64_t n, nsec_t now,
		 nsec_t *wait)
{
	nsec_t next;

	quota_align(state, limit, now);
	if (quota_take(state->tat, limit, n, now, &next, wait) != ERR_OK)
		return false;
	state->tat = next;
	return true;
}

static void a_raised_limit_holds_at_once_and_a_lowered_one_after_a_minute(void **state)
{
	static const struct quota_limit small = { 1, 10 }, large = { 60000, 6000 };
	struct quota_state is = { .tat = 0 };
	const nsec_t now = 500 * SEC;
	nsec_t wait = 0;

	(void)state;
	assert_true(take(&is, small, 10, now, &wait));
	assert_false(take(&is, small, 1, now, &wait));
	assert_int_equal(wait, 60 * SEC);
	assert_int_equal(quota_remaining(quota_read(&is, large, now), large, now), 5990);
	assert_true(take(&is, large, 5990, now, &wait));
	assert_false(take(&is, large, 1, now, &wait));
	assert_int_equal(wait, MSEC);

	/* Lowered: what the others took is owed for as long as one of them may still be there. */
	assert_false(take(&is, small, 1, now, &wait));
	assert_int_equal(wait, UINT64_C(5991) * 60 * SEC);
	assert_false(take(&is, small, 1, now + 60 * SEC, &wait));
	assert_int_equal(wait, UINT64_C(5990) * 60 * SEC);
	assert_false(take(&is, small, 1, now + 61 * SEC, &wait));
	assert_int_equal(wait, 60 * SEC);
	assert_int_equal(quota_remaining(is.tat, small, now + 121 * SEC), 1);
}

static void a_smaller_burst_alone_is_in_force_after_a_minute(void **state)
{
	static const struct quota_limit small = { 60, 10 }, large = { 60, 100000 };
	struct quota_state is = { .tat = 0 };
	nsec_t wait = 0;

	(void)state;
	assert_true(take(&is, large, 100000, 100 * SEC, &wait));
	assert_false(take(&is, small, 1, 160 * SEC, &wait));
	assert_int_equal(wait, (100000 - 60 - 9) * SEC);
	assert_false(take(&is, small, 1, 161 * SEC, &wait));
	assert_int_equal(wait, SEC);
	/* Once: what is used beyond its reservation from now on is owed as ever. */
	is.tat = quota_settle(is.tat, small, 0, 500, 161 * SEC);
	assert_false(take(&is, small, 1, 222 * SEC, &wait));
	assert_int_equal(wait, (500 + 10 - 61 - 9) * SEC);
}

static void what_is_owed_beyond_the_burst_stays_owed_without_a_change(void **state)
{
	static const struct quota_limit limit = { 60, 10 };
	struct quota_state is = { .tat = 0 };
	nsec_t wait = 0;

	(void)state;
	assert_true(take(&is, limit, 10, 100 * SEC, &wait));
	is.tat = quota_settle(is.tat, limit, 10, 1000, 100 * SEC);
	for (nsec_t now = 100 * SEC; now < 1090 * SEC; now += 70 * SEC) {
		assert_false(take(&is, limit, 1, now, &wait));
		assert_int_equal(wait, 1091 * SEC - now);
	}
}

static void a_settlement_under_another_rate_forgets_nothing(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		const struct quota_limit took = { 1 + next_random(&seed) % QUOTA_RATE_MAX, 1 };
		const struct quota_limit is = { 1 + next_random(&seed) % QUOTA_RATE_MAX, 1 };
		const uint64_t taken = next_random(&seed) % 1000, used = next_random(&seed) % 2000;
		const nsec_t now = SEC;
		nsec_t tat = now + quota_cost(took, taken);

		tat = quota_rescale(tat, took.per_minute, is, UINT64_MAX, now);
		tat = quota_settle_under(tat, is.per_minute, taken, used, now);
		assert_true(tat >= now + quota_cost(is, used));
		assert_true(tat <= now + quota_cost(is, used) + quota_cost(is, 1) +
					   took.per_minute / is.per_minute + 2);
	}
	assert_int_equal(quota_settle_under(SEC, 60, 5, 0, SEC), SEC); /* a full bucket at most */
}

static void a_use_is_known_for_a_minute_and_a_late_clock_ends_none(void **state)
{
	const uint64_t uses[QUOTA_USES] = { quota_use(100, 50 * SEC), 0 };

	(void)state;
	assert_int_equal(quota_uses_most(uses, 10, 110 * SEC), 100);
	assert_false(quota_uses_ended(uses, 10, 110 * SEC));
	assert_int_equal(quota_uses_most(uses, 10, 111 * SEC), 10);
	assert_true(quota_uses_ended(uses, 10, 111 * SEC));
	assert_false(quota_uses_ended(uses, 100, 111 * SEC)); /* it is used again */
	assert_int_equal(quota_uses_most(uses, 10, 49 * SEC), 100);
	assert_int_equal(quota_use_burst(quota_use(UINT64_MAX, 0)), (UINT64_C(1) << 36) - 1);
	/* When seconds begin anew. */
	const nsec_t wrap = (UINT64_C(1) << 28) * SEC;
	const uint64_t around[QUOTA_USES] = { quota_use(100, wrap - 30 * SEC), 0 };
	assert_int_equal(quota_uses_most(around, 10, wrap + 20 * SEC), 100);
	assert_int_equal(quota_uses_most(around, 10, wrap + 31 * SEC), 10);
}

/* Several gateways with figures of their own, each of which speaks once a minute at least. */
static void a_mixed_fleet_never_gets_more_than_its_largest_figures(void **state)
{
	enum { GRANTS = 300, GATEWAYS = 4, HISTORIES = 400 };
	uint64_t seed = 9;

	(void)state;
	for (int history = 0; history < HISTORIES; history++) {
		const uint64_t rates = history % 4 == 0   ? QUOTA_RATE_MAX
				       : history % 4 == 1 ? 90
							  : 5000;
		const uint32_t gateways = 2 + (uint32_t)history % (GATEWAYS - 1);
		struct quota_limit limits[GATEWAYS], most = { 0, 0 };
		struct quota_state is = { .tat = 0 };
		nsec_t at[GRANTS], now = SEC, wait = 0, spoke[GATEWAYS];
		uint64_t n[GRANTS];

		for (uint32_t i = 0; i < gateways; i++) {
			limits[i] = (struct quota_limit){ 1 + next_random(&seed) % rates,
							  1 + next_random(&seed) % 200 };
			most.per_minute = limits[i].per_minute > most.per_minute
						  ? limits[i].per_minute
						  : most.per_minute;
			most.burst = limits[i].burst > most.burst ? limits[i].burst : most.burst;
			spoke[i] = now;
		}
		size_t granted = 0;
		for (int step = 0; step < 2000 && granted < GRANTS; step++) {
			uint32_t by = (uint32_t)(next_random(&seed) % gateways);
			for (uint32_t i = 0; i < gateways; i++)
				if (now - spoke[i] > 50 * SEC)
					by = i;
			spoke[by] = now;
			n[granted] = 1 + next_random(&seed) % limits[by].burst;
			if (next_random(&seed) % 3 == 0)
				n[granted] = 1;
			if (take(&is, limits[by], n[granted], now, &wait))
				at[granted++] = now;
			const nsec_t pause = quota_cost(limits[next_random(&seed) % gateways], 2);
			now += next_random(&seed) % (pause < 10 * SEC ? pause + 1 : 10 * SEC);
		}
		for (size_t first = 0; first < granted; first++) {
			uint64_t sum = 0;
			for (size_t last = first; last < granted; last++) {
				sum += n[last];
				assert_true(sum <= most.burst ||
					    (wide)(sum - most.burst) * 60 * SEC <=
						    (wide)(at[last] - at[first] + 1) *
							    most.per_minute);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(debt_under_another_rate_is_the_same_debt),
		cmocka_unit_test(a_raised_limit_holds_at_once_and_a_lowered_one_after_a_minute),
		cmocka_unit_test(a_smaller_burst_alone_is_in_force_after_a_minute),
		cmocka_unit_test(what_is_owed_beyond_the_burst_stays_owed_without_a_change),
		cmocka_unit_test(a_settlement_under_another_rate_forgets_nothing),
		cmocka_unit_test(a_use_is_known_for_a_minute_and_a_late_clock_ends_none),
		cmocka_unit_test(a_mixed_fleet_never_gets_more_than_its_largest_figures),
	};

	return cmocka_run_group_tests_name("quota_change", tests, NULL, NULL);
}
