#include "routing/pool.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void one_member_is_always_picked(void **state)
{
	struct pool_member one = { .weight = 7 };

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(pool_pick(&one, 1), 0);
		assert_int_equal(one.current, 0);
	}
}

static void equal_members_take_turns(void **state)
{
	struct pool_member members[] = { { .weight = 1 }, { .weight = 1 }, { .weight = 1 } };

	(void)state;
	for (uint32_t i = 0; i < 30; i++)
		assert_int_equal(pool_pick(members, 3), i % 3);
}

static void a_heavy_member_is_spread_between_light_ones(void **state)
{
	static const uint32_t order[] = { 0, 0, 1, 0, 2, 0, 0 };
	struct pool_member members[] = { { .weight = 5 }, { .weight = 1 }, { .weight = 1 } };

	(void)state;
	for (size_t i = 0; i < 10 * COUNT_OF(order); i++)
		assert_int_equal(pool_pick(members, 3), order[i % COUNT_OF(order)]);
}

static void every_member_gets_its_weight_in_every_round(void **state)
{
	static const struct {
		const char *name;
		uint32_t weights[4];
		uint32_t count;
	} rows[] = {
		{ "two alike", { 1, 1 }, 2 },
		{ "one to ninety-nine", { 1, 99 }, 2 },
		{ "coprime", { 3, 7, 11, 13 }, 4 },
		{ "the heavy one last", { 1, 2, 3, 100 }, 4 },
	};

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct pool_member members[4] = { 0 };
		uint32_t total = 0;

		for (uint32_t i = 0; i < rows[r].count; i++)
			total += members[i].weight = rows[r].weights[i];
		for (int round = 0; round < 5; round++) {
			uint32_t picked[4] = { 0 };
			for (uint32_t i = 0; i < total; i++)
				picked[pool_pick(members, rows[r].count)]++;
			for (uint32_t i = 0; i < rows[r].count; i++)
				if (picked[i] != rows[r].weights[i])
					fail_msg("%s: member %u: %u", rows[r].name, i, picked[i]);
		}
	}
}

static void the_largest_weights_do_not_overflow(void **state)
{
	struct pool_member members[64] = { 0 };
	uint32_t picked[64] = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(members); i++)
		members[i].weight = UINT32_MAX;
	for (int i = 0; i < 640; i++)
		picked[pool_pick(members, COUNT_OF(members))]++;
	for (size_t i = 0; i < COUNT_OF(members); i++)
		assert_int_equal(picked[i], 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_member_is_always_picked),
		cmocka_unit_test(equal_members_take_turns),
		cmocka_unit_test(a_heavy_member_is_spread_between_light_ones),
		cmocka_unit_test(every_member_gets_its_weight_in_every_round),
		cmocka_unit_test(the_largest_weights_do_not_overflow),
	};

	return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
