#include "routing/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { KEYS = 3 };

struct ring {
	struct key keys[KEYS];
	struct key_lanes all[KEYS];
	struct key_lane *lanes[KEYS]; /* of the model 1 */
	struct key *list[KEYS];
	const struct key_lane *lane_list[KEYS];
};

static const nsec_t begin = 1000 * SEC;
static const uint64_t wall = 1790000000 * SEC;

static void ring_init(struct ring *r)
{
	*r = (struct ring){ 0 };
	for (uint32_t i = 0; i < KEYS; i++) {
		r->list[i] = &r->keys[i];
		r->lane_list[i] = r->lanes[i] = key_lane_for(&r->all[i], 1);
	}
}

/* The key picked; it must be one. */
static uint32_t pick(struct ring *r, uint32_t tried, uint32_t turn, nsec_t now)
{
	uint32_t picked = KEYS;
	nsec_t wait = 0;

	assert_int_equal(keys_pick(r->list, r->lane_list, KEYS, tried, turn, now, &picked, &wait),
			 ERR_OK);
	assert_true(keys_any(r->list, r->lane_list, KEYS, now));
	assert_in_range(picked, 0, KEYS - 1);
	return picked;
}

static void keys_take_turns_and_tried_ones_come_last(void **state)
{
	struct ring r;

	(void)state;
	ring_init(&r);
	for (uint32_t turn = 0; turn < 9; turn++)
		assert_int_equal(pick(&r, 0, turn % KEYS, begin), turn % KEYS);
	assert_int_equal(pick(&r, 1, 0, begin), 1);
	assert_int_equal(pick(&r, 3, 0, begin), 2);
	assert_int_equal(pick(&r, 7, 1, begin), 1); /* there is no other */
}

static void a_rate_limit_cools_for_as_long_as_was_said(void **state)
{
	struct ring r;

	(void)state;
	ring_init(&r);
	key_lane_limited(r.lanes[0], 30000, begin);
	assert_int_equal(key_lane_cools(r.lanes[0], begin), 30 * SEC);
	assert_int_equal(pick(&r, 0, 0, begin), 1);
	assert_int_equal(pick(&r, 6, 0, begin), 1); /* tried, but it does not cool */
	assert_int_equal(pick(&r, 0, 0, begin + 30 * SEC), 0);
	key_lane_limited(r.lanes[1], INT64_C(30) * 24 * 3600 * 1000, begin);
	assert_int_equal(key_lane_cools(r.lanes[1], begin), 3600 * SEC); /* nobody says that */
}

static void without_a_word_it_cools_twice_as_long_each_time(void **state)
{
	static const nsec_t waits[] = { 2, 4, 8, 16, 32, 60, 60, 60 };
	struct ring r;
	nsec_t now = begin;

	(void)state;
	ring_init(&r);
	key_lane_limited(r.lanes[0], -1, now);
	assert_int_equal(key_lane_cools(r.lanes[0], now), 1 * SEC);
	key_lane_limited(r.lanes[0], 0, now); /* of a call side by side: one strike */
	assert_int_equal(key_lane_cools(r.lanes[0], now), 1 * SEC);
	now += SEC;
	for (size_t i = 0; i < COUNT_OF(waits); i++) {
		key_lane_limited(r.lanes[0], i % 2 == 0 ? -1 : 0, now); /* 0 is no time */
		assert_int_equal(key_lane_cools(r.lanes[0], now), waits[i] * SEC);
		now += waits[i] * SEC;
	}
	key_lanes_accepted(&r.all[0], 1, now);
	key_lane_limited(r.lanes[0], -1, now);
	assert_int_equal(key_lane_cools(r.lanes[0], now), 1 * SEC);
}

static void a_late_success_does_not_end_a_cool_down(void **state)
{
	struct ring r;

	(void)state;
	ring_init(&r);
	key_lane_limited(r.lanes[0], 5000, begin);
	key_lanes_accepted(&r.all[0], 1, begin + SEC);
	assert_int_equal(key_lane_cools(r.lanes[0], begin + SEC), 4 * SEC);
}

static void when_all_cool_the_first_one_back_says_why_and_for_how_long(void **state)
{
	struct ring r;
	uint32_t picked = KEYS;
	nsec_t wait = 0;

	(void)state;
	ring_init(&r);
	key_lane_limited(r.lanes[0], 30000, begin);
	key_lane_limited(r.lanes[1], 20000, begin);
	key_refused(&r.keys[2], ERR_PROVIDER_BILLING, begin);
	assert_int_equal(keys_pick(r.list, r.lane_list, KEYS, 0, 0, begin, &picked, &wait),
			 ERR_PROVIDER_RATE);
	assert_int_equal(wait, 20 * SEC);
	assert_int_equal(picked, KEYS);
	assert_false(keys_any(r.list, r.lane_list, KEYS, begin));
	assert_int_equal(keys_pick(&r.list[2], &r.lane_list[2], 1, 0, 0, begin, &picked, &wait),
			 ERR_PROVIDER_BILLING);
	assert_int_equal(wait, 60 * SEC);
}

static void refused_and_spent_keys_are_tried_where_there_is_no_other(void **state)
{
	struct ring r;

	(void)state;
	ring_init(&r);
	key_refused(&r.keys[0], ERR_PROVIDER_OPERATOR, begin);
	assert_int_equal(key_cools(&r.keys[0], begin), 60 * SEC);
	assert_int_equal(pick(&r, 0, 0, begin), 1);
	key_refused(&r.keys[1], ERR_PROVIDER_BILLING, begin);
	assert_int_equal(key_cools(&r.keys[1], begin), 3600 * SEC);
	key_lane_limited(r.lanes[2], 90000, begin);
	assert_int_equal(pick(&r, 0, 0, begin), 0);            /* the provider says it better */
	assert_int_equal(pick(&r, 1, 0, begin + 61 * SEC), 0); /* it is well again */
	key_lane_limited(r.lanes[0], 90000, begin + 61 * SEC);
	assert_int_equal(pick(&r, 0, 0, begin + 62 * SEC), 1); /* perhaps somebody has paid */
	key_refused(&r.keys[1], ERR_PROVIDER_BILLING, begin + 62 * SEC);
	assert_int_equal(pick(&r, 0, 0, begin + 90 * SEC), 2);
}

static void somebody_who_paid_does_not_wait_for_the_hour_to_end(void **state)
{
	struct ring r;

	(void)state;
	ring_init(&r);
	key_refused(&r.keys[0], ERR_PROVIDER_BILLING, begin);
	key_accepted(&r.keys[0]);
	assert_int_equal(key_cools(&r.keys[0], begin + 61 * SEC), 0);
}

/* ---- head-room ---- */

static void rates(struct key_lane *lane, enum rate_kind kind, const char *limit,
		  const char *remaining, const char *reset)
{
	struct rate_header headers[RATE_KINDS] = { 0 };

	headers[kind] =
		(struct rate_header){ slice_str(limit), slice_str(remaining), slice_str(reset) };
	key_lane_note_rates(lane, headers, begin, wall);
}

static void who_has_next_to_nothing_left_is_taken_last_until_it_is_renewed(void **state)
{
	static const struct {
		const char *name;
		enum rate_kind kind;
		const char *limit, *remaining, *reset;
		bool scarce;
	} rows[] = {
		{ "nothing left", RATE_REQUESTS, "1000", "0", "30s", true },
		{ "one in a hundred", RATE_TOKENS, "100000", "1000", "30s", true },
		{ "a tenth", RATE_INPUT_TOKENS, "100000", "10000", "30s", false },
		{ "output tokens", RATE_OUTPUT_TOKENS, "100000", "10", "2026-09-21T14:13:50Z",
		  true },
		{ "nothing left, no limit said", RATE_REQUESTS, NULL, "0", "30s", true },
		{ "little left, no limit said", RATE_REQUESTS, NULL, "3", "30s", false },
		{ "not a number", RATE_REQUESTS, "1000", "-1", "30s", false },
		{ "renewed at once", RATE_REQUESTS, "1000", "0", "0s", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct ring r;

		ring_init(&r);
		rates(r.lanes[0], rows[i].kind, rows[i].limit, rows[i].remaining, rows[i].reset);
		if ((pick(&r, 0, 0, begin) != 0) != rows[i].scarce)
			fail_msg("%s", rows[i].name);
		assert_int_equal(pick(&r, 6, 0, begin), 0); /* better than one tried */
		assert_int_equal(pick(&r, 0, 0, begin + 31 * SEC), 0);
	}
}

static void calls_on_their_way_count(void **state)
{
	struct ring r;

	(void)state;
	ring_init(&r);
	rates(r.lanes[0], RATE_REQUESTS, "10", "3", "1m0s");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pick(&r, 0, 0, begin), 0);
		key_lanes_began(&r.all[0], 1, begin);
	}
	key_lanes_began(&r.all[0], 1, begin); /* not below nothing */
	assert_int_equal(pick(&r, 0, 0, begin), 1);
	assert_int_equal(pick(&r, 0, 0, begin + 60 * SEC), 0);
}

/* ---- lanes ---- */

static void every_model_has_its_lane_and_the_coolest_stay(void **state)
{
	struct key_lanes lanes = { 0 };

	(void)state;
	assert_int_equal(key_lane_cools(key_lane_of(&lanes, 7), begin), 0);
	for (uint64_t m = 1; m <= KEY_LANES; m++)
		key_lane_limited(key_lane_for(&lanes, m), m == 3 ? 1000 : (int64_t)m * 10000,
				 begin);
	for (uint64_t m = 1; m <= KEY_LANES; m++)
		assert_int_equal(key_lane_cools(key_lane_of(&lanes, m), begin),
				 m == 3 ? SEC : m * 10 * SEC);
	assert_int_equal(key_lanes_cool(&lanes, begin), KEY_LANES * 10 * SEC);
	key_lane_limited(key_lane_for(&lanes, 99), 5000, begin); /* in place of 3 */
	assert_int_equal(key_lane_cools(key_lane_of(&lanes, 99), begin), 5 * SEC);
	assert_int_equal(key_lane_cools(key_lane_of(&lanes, 3), begin), 0);
	assert_int_equal(key_lane_cools(key_lane_of(&lanes, 1), begin), 10 * SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_take_turns_and_tried_ones_come_last),
		cmocka_unit_test(a_rate_limit_cools_for_as_long_as_was_said),
		cmocka_unit_test(without_a_word_it_cools_twice_as_long_each_time),
		cmocka_unit_test(a_late_success_does_not_end_a_cool_down),
		cmocka_unit_test(when_all_cool_the_first_one_back_says_why_and_for_how_long),
		cmocka_unit_test(refused_and_spent_keys_are_tried_where_there_is_no_other),
		cmocka_unit_test(somebody_who_paid_does_not_wait_for_the_hour_to_end),
		cmocka_unit_test(who_has_next_to_nothing_left_is_taken_last_until_it_is_renewed),
		cmocka_unit_test(calls_on_their_way_count),
		cmocka_unit_test(every_model_has_its_lane_and_the_coolest_stay),
	};

	return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
