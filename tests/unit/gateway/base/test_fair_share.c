/* Who may have more of what has a bound, and who makes room, against sums that are searched. */
#include "gateway/base/fair_share.h"

#include "codec/base/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MIB = 1 << 20, PLENTY = 64 };

static struct fair_share share;
static void *memory;

static void begin(uint32_t most, bool ranked)
{
	memory = calloc(1, fair_share_bytes(most, ranked));
	must(memory != NULL);
	fair_share_init(&share, memory, most, ranked);
}

static int end(void **state)
{
	(void)state;
	free(memory);
	memory = NULL;
	return 0;
}

/* Several of them lie in one bucket. */
static const uint8_t *key_of(uint32_t n)
{
	static uint8_t key[FAIR_KEY_BYTES];

	(void)memset(key, 0, sizeof(key));
	key[0] = (uint8_t)(n % 8);
	(void)memcpy(key + 8, &n, sizeof(n));
	return key;
}

static const struct fair_bound bound = { .most = 1024 * MIB, .small = 64 << 10 };

static enum fair_verdict take(uint32_t who, uint64_t amount)
{
	uint32_t owner = 0;
	const enum fair_verdict verdict =
		fair_share_take(&share, &bound, key_of(who), amount, &owner);

	assert_true((owner != 0) == (verdict == FAIR_TAKEN));
	return verdict;
}

static uint64_t held(uint32_t who)
{
	return fair_share_held(&share, fair_share_find(&share, key_of(who)));
}

/* As often as it can be had, of at most so many; what that came to. */
static uint64_t take_all(uint32_t who, uint64_t amount, uint32_t times)
{
	while (times-- > 0 && take(who, amount) == FAIR_TAKEN)
		;
	return held(who);
}

/* ---- what is asked for ------------------------------------------------------------------------ */

static void one_owner_that_takes_all_it_can_leaves_nearly_half(void **state)
{
	(void)state;
	begin(PLENTY, false);
	assert_int_equal(take_all(1, 16 * MIB, 100), 528 * MIB);
	assert_int_equal(take(1, 1), FAIR_OWN);
	/* Another one is served meanwhile, with what is large and with what is small. */
	assert_int_equal(take_all(2, 16 * MIB, 10), 160 * MIB);
	assert_int_equal(take_all(3, 1000, 1000), 1000000);
	assert_int_equal(take(1, 1), FAIR_OWN);
}

static void what_was_given_back_may_be_had_again(void **state)
{
	(void)state;
	begin(PLENTY, false);
	(void)take_all(1, 16 * MIB, 100);
	fair_share_sub(&share, fair_share_find(&share, key_of(1)), 32 * MIB);
	assert_int_equal(take(1, 16 * MIB), FAIR_TAKEN);
	assert_int_equal(take(1, 16 * MIB), FAIR_TAKEN);
	assert_int_equal(take(1, 16 * MIB), FAIR_OWN);
}

static void two_that_take_in_turn_have_a_third_each(void **state)
{
	(void)state;
	begin(PLENTY, false);
	for (uint32_t i = 0; i < 1000; i++)
		(void)take(i % 2, MIB);
	assert_in_range(held(0), 341 * MIB, 343 * MIB);
	assert_in_range(held(1), 341 * MIB, 343 * MIB);
}

static void an_owner_with_its_share_gets_less_as_others_come(void **state)
{
	(void)state;
	begin(PLENTY, false);
	(void)take_all(1, MIB, 400);
	(void)take_all(2, MIB, 300);
	assert_int_equal(take(1, MIB), FAIR_OWN);
	assert_int_equal(take(2, MIB), FAIR_TAKEN);
}

static void the_last_sixteenth_is_for_what_is_small(void **state)
{
	(void)state;
	begin(PLENTY, false);
	for (uint32_t who = 1; who <= 60; who++)
		(void)take(who, 16 * MIB);
	assert_int_equal(share.sum, 960 * MIB);
	assert_int_equal(take(99, 65537), FAIR_FULL);
	assert_int_equal(take(99, 65536), FAIR_TAKEN);
	fair_share_sub(&share, fair_share_find(&share, key_of(99)), 65536);
	assert_int_equal(take_all(98, 65536, 2000), 32 * MIB + 65536);
	assert_int_equal(take(99, 65536), FAIR_TAKEN);
}

static void the_first_has_room_whatever_its_size_and_nobody_beside_it(void **state)
{
	(void)state;
	begin(PLENTY, false);
	assert_int_equal(take(1, 2 * bound.most), FAIR_TAKEN);
	assert_int_equal(take(1, 1), FAIR_OWN);
	assert_int_equal(take(2, 1), FAIR_FULL);
	fair_share_sub(&share, fair_share_find(&share, key_of(1)), 2 * bound.most);
	assert_int_equal(take(2, 1), FAIR_TAKEN);
}

/* ---- what is kept ----------------------------------------------------------------------------- */

static uint32_t named(uint32_t who)
{
	return fair_share_find(&share, key_of(who));
}

static void who_holds_most_makes_room(void **state)
{
	(void)state;
	begin(PLENTY, true);
	assert_int_equal(fair_share_victim(&share, key_of(1), 1), 0);
	(void)fair_share_add(&share, key_of(1), 90);
	(void)fair_share_add(&share, key_of(2), 10);
	assert_int_equal(fair_share_victim(&share, key_of(2), 1), named(1));
	assert_int_equal(fair_share_victim(&share, key_of(1), 1), named(1));
	assert_int_equal(fair_share_victim(&share, key_of(3), 1), named(1));
	fair_share_sub(&share, named(1), 85);
	assert_int_equal(fair_share_victim(&share, key_of(3), 1), named(2));
}

/* Else two of them would drive each other's out in turn. */
static void an_owner_that_would_hold_most_makes_room_among_its_own(void **state)
{
	(void)state;
	begin(PLENTY, true);
	(void)fair_share_add(&share, key_of(1), 50);
	(void)fair_share_add(&share, key_of(2), 50);
	assert_int_equal(fair_share_victim(&share, key_of(1), 1), named(1));
	assert_int_equal(fair_share_victim(&share, key_of(2), 1), named(2));
}

static void who_comes_when_all_accounts_are_taken_shares_one(void **state)
{
	(void)state;
	begin(2, true);
	(void)fair_share_add(&share, key_of(1), 5);
	(void)fair_share_add(&share, key_of(2), 5);
	const uint32_t owner = fair_share_add(&share, key_of(3), 1);
	assert_true(owner == named(1) || owner == named(2));
	assert_int_equal(fair_share_held(&share, owner), 6);
	assert_int_equal(share.count, 2);
	fair_share_sub(&share, owner, 6);
	assert_int_equal(share.count, 1);
	assert_int_equal(share.sum, 5);
}

/* ---- against a model -------------------------------------------------------------------------- */

static uint64_t most_of(const uint64_t *sums, uint32_t count)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < count; i++)
		most = sums[i] > most ? sums[i] : most;
	return most;
}

static void expect_same(const uint64_t *sums, uint32_t count)
{
	uint64_t sum = 0;
	uint32_t owners = 0;

	for (uint32_t who = 0; who < count; who++) {
		assert_int_equal(held(who), sums[who]);
		sum += sums[who];
		owners += sums[who] != 0;
	}
	assert_int_equal(share.sum, sum);
	assert_int_equal(share.count, owners);
	if (sum != 0)
		assert_int_equal(
			fair_share_held(&share, fair_share_victim(&share, key_of(count), 0)),
			most_of(sums, count));
}

static void any_row_of_steps_leaves_the_sums_and_the_first(void **state)
{
	enum { OWNERS = 24, STEPS = 50000 };
	uint64_t sums[OWNERS] = { 0 };
	uint64_t chance = 88172645463325252U;

	(void)state;
	begin(OWNERS, true);
	for (uint32_t step = 0; step < STEPS; step++) {
		chance ^= chance << 13;
		chance ^= chance >> 7;
		chance ^= chance << 17;
		const uint32_t who = (uint32_t)(chance % OWNERS);
		const uint64_t amount = 1 + (chance >> 32) % 20;
		if ((chance >> 40 & 1) == 0) {
			(void)fair_share_add(&share, key_of(who), amount);
			sums[who] += amount;
		} else if (sums[who] != 0) {
			const uint64_t less =
				amount < sums[who] && (chance >> 41 & 3) != 0 ? amount : sums[who];
			fair_share_sub(&share, named(who), less);
			sums[who] -= less;
		}
		expect_same(sums, OWNERS);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, end)
		TEST(one_owner_that_takes_all_it_can_leaves_nearly_half),
		TEST(what_was_given_back_may_be_had_again),
		TEST(two_that_take_in_turn_have_a_third_each),
		TEST(an_owner_with_its_share_gets_less_as_others_come),
		TEST(the_last_sixteenth_is_for_what_is_small),
		TEST(the_first_has_room_whatever_its_size_and_nobody_beside_it),
		TEST(who_holds_most_makes_room),
		TEST(an_owner_that_would_hold_most_makes_room_among_its_own),
		TEST(who_comes_when_all_accounts_are_taken_shares_one),
		TEST(any_row_of_steps_leaves_the_sums_and_the_first),
#undef TEST
	};
	return cmocka_run_group_tests_name("fair_share", tests, NULL, NULL);
}
