/* Which bodies that have not come to their end a worker keeps. */
#include "gateway/http/guard_room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define START (1000 * SEC)
#define PATIENCE (10 * SEC)
#define GRACE (PATIENCE / 40)

enum { KB = 1 << 10, MB = 1 << 20, MOST = 16 * MB, LARGE = 15 * MB };

static struct guard_budget new_budget(void)
{
	return (struct guard_budget){ .body_bytes_max = 4 * MB,
				      .conn_bytes_max = MOST,
				      .worker_bytes_max = MOST,
				      .large_bytes_max = LARGE,
				      .patience = PATIENCE };
}

/* A connection with one body. */
struct one {
	struct guard_holder holder;
	struct guard_body body;
};

static void begin(struct guard_budget *budget, struct one *one, size_t bytes, nsec_t now)
{
	one->holder = (struct guard_holder){ 0 };
	guard_body_begin(budget, &one->body, &one->holder, 1, 0, now);
	guard_body_keep(budget, &one->body, bytes, now);
}

static size_t count_over(const struct one *ones, size_t count)
{
	size_t over = 0;
	for (size_t i = 0; i < count; i++)
		over += ones[i].body.over != GUARD_GOES_ON;
	return over;
}

static void end_all(struct guard_budget *budget, struct one *ones, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		guard_body_end(budget, &ones[i].body);
		assert_int_equal(ones[i].holder.bytes, 0);
		assert_int_equal(ones[i].holder.over, 0);
	}
	assert_int_equal(budget->unfinished_bytes, 0);
	for (size_t i = 0; i < GUARD_LINES; i++) {
		assert_null(budget->lines[i].first);
		assert_null(budget->lines[i].last);
	}
}

/* ---- room ---- */
static void a_body_finds_room_by_the_end_of_the_heaviest_that_does_not_grow(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one ones[5];
	begin(&budget, &ones[0], 2 * MB, START);
	begin(&budget, &ones[1], 4 * MB, START);
	begin(&budget, &ones[2], 4 * MB, START + SEC);
	begin(&budget, &ones[3], 4 * MB, START + 2 * SEC);
	begin(&budget, &ones[4], 2 * MB, START + 2 * SEC);
	assert_int_equal(count_over(ones, 5), 1);
	assert_int_equal(ones[1].body.over, GUARD_NO_ROOM);
	assert_int_equal(ones[1].holder.over, 1);
	assert_int_equal(ones[1].holder.bytes, 0);
	assert_int_equal(budget.unfinished_bytes, 12 * MB);
	end_all(&budget, ones, 5);
}

static void where_all_grow_the_one_that_asks_finds_none(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one ones[5];
	for (size_t i = 0; i < 4; i++)
		begin(&budget, &ones[i], 3 * MB + 700 * KB, START);
	assert_int_equal(count_over(ones, 4), 0);
	begin(&budget, &ones[4], MB, START + GRACE);
	assert_int_equal(count_over(ones, 4), 0);
	assert_int_equal(ones[4].body.over, GUARD_NO_ROOM);
	guard_body_end(&budget, &ones[4].body);
	begin(&budget, &ones[4], MB, START + GRACE + 1);
	assert_int_equal(ones[4].body.over, GUARD_GOES_ON);
	assert_int_equal(count_over(ones, 4), 1);
	end_all(&budget, ones, 5);
}

static void what_still_comes_of_one_that_has_ended_early_counts_for_nothing(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one one;
	begin(&budget, &one, MB, START);
	guard_body_end_early(&budget, &one.body, GUARD_NO_ROOM);
	guard_body_keep(&budget, &one.body, 2 * MB, START);
	guard_body_end_early(&budget, &one.body, GUARD_TOO_SLOW);
	assert_int_equal(one.body.over, GUARD_NO_ROOM);
	assert_int_equal(one.holder.over, 1);
	assert_int_equal(budget.unfinished_bytes, 0);
	end_all(&budget, &one, 1);
}

/* A byte now and then is no growth: who keeps much must bring much. */
static void to_drip_is_not_to_grow(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one ones[5];
	nsec_t now = START;
	for (size_t i = 0; i < 4; i++)
		begin(&budget, &ones[i], 3 * MB, START);
	for (size_t drip = 1; drip < 20; drip++) { /* three drip, the last one grows */
		now += GRACE / 4;
		for (size_t i = 0; i < 3; i++)
			guard_body_keep(&budget, &ones[i].body, 3 * MB + 4 * KB * drip, now);
		guard_body_keep(&budget, &ones[3].body, 3 * MB + 48 * KB * drip, now);
	}
	assert_int_equal(count_over(ones, 4), 0);
	begin(&budget, &ones[4], 4 * MB, now);
	assert_int_equal(ones[3].body.over, GUARD_GOES_ON);
	assert_int_equal(ones[4].body.over, GUARD_GOES_ON);
	assert_int_equal(count_over(ones, 3), 1);
	end_all(&budget, ones, 5);
}

/* A larger one that comes in pieces, with pauses, goes on: the others have been at rest for longer. */
static void many_small_ones_win_as_little(void **state)
{
	(void)state;
	enum { MANY = MOST / (64 * KB) };
	struct guard_budget budget = new_budget();
	struct one *many = calloc(MANY, sizeof(*many));
	struct one honest;
	for (size_t i = 0; i < MANY; i++)
		begin(&budget, &many[i], 64 * KB, START);
	assert_int_equal(count_over(many, MANY), 0);
	begin(&budget, &honest, 150 * KB, START + 5 * SEC);
	assert_int_equal(honest.body.over, GUARD_GOES_ON);
	assert_in_range(count_over(many, MANY), 3, 19); /* the last part is not for it */
	guard_body_keep(&budget, &honest.body, 300 * KB, START + 6 * SEC); /* after a second */
	guard_body_keep(&budget, &honest.body, 450 * KB, START + 7 * SEC);
	assert_int_equal(honest.body.over, GUARD_GOES_ON);
	guard_body_end(&budget, &honest.body);
	end_all(&budget, many, MANY);
	free(many);
}

static void a_large_one_may_pause_beside_small_ones_that_are_at_rest(void **state)
{
	(void)state;
	enum { MANY = 13 * MB / (64 * KB) };
	struct guard_budget budget = new_budget();
	struct one *many = calloc(MANY, sizeof(*many));
	struct one honest, other;
	for (size_t i = 0; i < MANY; i++)
		begin(&budget, &many[i], 64 * KB, START);
	begin(&budget, &honest, 2 * MB, START + 5 * SEC);
	begin(&budget, &other, MB, START + 5 * SEC + 800 * MSEC);
	assert_int_equal(honest.body.over, GUARD_GOES_ON);
	assert_int_equal(other.body.over, GUARD_GOES_ON);
	assert_in_range(count_over(many, MANY), 16, 17);
	guard_body_end(&budget, &honest.body);
	guard_body_end(&budget, &other.body);
	end_all(&budget, many, MANY);
	free(many);
}

static void the_last_part_is_for_little_ones(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one ones[7];
	for (size_t i = 0; i < 5; i++)
		begin(&budget, &ones[i], 3 * MB, START);
	begin(&budget, &ones[5], 64 * KB + 1, START);
	assert_int_equal(ones[5].body.over, GUARD_NO_ROOM);
	begin(&budget, &ones[6], 64 * KB, START);
	assert_int_equal(ones[6].body.over, GUARD_GOES_ON);
	end_all(&budget, ones, 7);
}

static void requests_that_are_held_find_room_likewise_but_never_end_early(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct guard_holder holder = { 0 };
	struct one ones[4];
	for (size_t i = 0; i < 4; i++)
		begin(&budget, &ones[i], 3 * MB, START + i * SEC);
	assert_true(guard_hold(&budget, &holder, 4 * MB, MOST, START + 3 * SEC));
	assert_int_equal(ones[0].body.over, GUARD_NO_ROOM);
	assert_int_equal(count_over(ones, 4), 1);
	guard_let_go(&budget, &holder, 4 * MB);
	end_all(&budget, ones, 4);
}

static void they_have_no_more_than_a_fourth_of_the_room_together(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct guard_holder holders[2] = { { 0 }, { 0 } };
	struct one one;
	begin(&budget, &one, 4 * MB, START);
	assert_true(guard_hold(&budget, &holders[0], 3 * MB, MOST, START + SEC));
	assert_true(guard_hold(&budget, &holders[1], MB, MOST, START + SEC));
	assert_false(guard_hold(&budget, &holders[1], 1, MOST, START + SEC));
	assert_int_equal(one.body.over, GUARD_GOES_ON); /* nobody makes room for that */
	guard_let_go(&budget, &holders[0], 3 * MB);
	guard_let_go(&budget, &holders[1], MB + 1);
	assert_int_equal(budget.held_bytes, 0);
	end_all(&budget, &one, 1);
}

static void a_body_may_move(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one ones[4];
	struct guard_body moved[4];
	for (size_t i = 0; i < 4; i++)
		begin(&budget, &ones[i], MB, START);
	for (size_t i = 0; i < 4; i++)
		guard_body_move(&budget, &moved[i], &ones[i].body);
	for (size_t i = 4; i-- != 0;) {
		guard_body_end(&budget, &moved[i]);
		assert_int_equal(budget.unfinished_bytes, i * MB);
	}
	end_all(&budget, ones, 0);
}

/* ---- pace ---- */
static bool is_slow(struct guard_budget *budget, struct one *one, nsec_t now)
{
	guard_body_check(budget, &one->body, now);
	return one->body.over == GUARD_TOO_SLOW;
}

static void what_was_brought_before_buys_no_time(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one one;
	begin(&budget, &one, 4 * MB, START);
	assert_false(is_slow(&budget, &one, START + PATIENCE));
	assert_true(is_slow(&budget, &one, START + PATIENCE + 1));
	end_all(&budget, &one, 1);
}

static void a_byte_in_its_patience_is_too_little(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one one;
	begin(&budget, &one, MB, START);
	guard_body_keep(&budget, &one.body, MB + 1, START + 9 * SEC);
	assert_true(is_slow(&budget, &one, START + PATIENCE + 1));
	end_all(&budget, &one, 1);
}

static void a_modem_is_fast_enough(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one one;
	begin(&budget, &one, 1, START);
	for (nsec_t s = 1; s < 600; s++) {
		guard_body_keep(&budget, &one.body, 5000 * s, START + s * SEC);
		assert_false(is_slow(&budget, &one, START + s * SEC));
	}
	end_all(&budget, &one, 1);
}

static void chunks_that_are_unpacked_are_no_growth(void **state)
{
	(void)state;
	struct guard_budget budget = new_budget();
	struct one one;
	begin(&budget, &one, 8 * KB, START);
	for (nsec_t s = 1; s <= 10; s++) {
		guard_body_keep(&budget, &one.body, 8 * KB + 200, START + s * SEC);
		guard_body_keep(&budget, &one.body, 8 * KB, START + s * SEC);
	}
	assert_true(guard_body_weight(&budget, &one.body, START + 10 * SEC) > 9000 * 8 * KB);
	assert_true(is_slow(&budget, &one, START + PATIENCE + 1));
	end_all(&budget, &one, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_body_finds_room_by_the_end_of_the_heaviest_that_does_not_grow),
		cmocka_unit_test(where_all_grow_the_one_that_asks_finds_none),
		cmocka_unit_test(what_still_comes_of_one_that_has_ended_early_counts_for_nothing),
		cmocka_unit_test(to_drip_is_not_to_grow),
		cmocka_unit_test(many_small_ones_win_as_little),
		cmocka_unit_test(a_large_one_may_pause_beside_small_ones_that_are_at_rest),
		cmocka_unit_test(the_last_part_is_for_little_ones),
		cmocka_unit_test(requests_that_are_held_find_room_likewise_but_never_end_early),
		cmocka_unit_test(they_have_no_more_than_a_fourth_of_the_room_together),
		cmocka_unit_test(a_body_may_move),
		cmocka_unit_test(what_was_brought_before_buys_no_time),
		cmocka_unit_test(a_byte_in_its_patience_is_too_little),
		cmocka_unit_test(a_modem_is_fast_enough),
		cmocka_unit_test(chunks_that_are_unpacked_are_no_growth),
	};
	return cmocka_run_group_tests_name("guard_room", tests, NULL, NULL);
}
