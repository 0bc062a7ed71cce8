/* Requests on their way to Redis: when they are late, when all are silent, and where they lie. */
#include "gateway/redis/redis_pending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct redis_line line;

static int set_up(void **state)
{
	(void)state;
	return redis_line_init(&line, 10 * MSEC) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	redis_line_fini(&line);
	return 0;
}

static uint64_t send_at(nsec_t now)
{
	struct redis_request *request = redis_line_begin(&line, now);

	assert_non_null(request);
	const uint64_t number = line.next;
	redis_line_push(&line);
	assert_ptr_equal(redis_line_at(&line, number), request);
	return number;
}

static void an_empty_line_is_neither_late_nor_silent(void **state)
{
	(void)state;
	assert_int_equal(redis_line_due(&line), NSEC_NEVER);
	assert_null(redis_line_late(&line, 1000 * SEC));
	assert_false(redis_line_is_silent(&line, 1000 * SEC));
}

static void what_is_late_is_said_once_and_oldest_first(void **state)
{
	(void)state;
	(void)send_at(1 * SEC);
	(void)send_at(1 * SEC + 5 * MSEC);
	assert_int_equal(redis_line_due(&line), 1 * SEC + 9 * MSEC); /* a loop may wake up late */
	assert_null(redis_line_late(&line, 1 * SEC + 9 * MSEC - 1));
	const struct redis_request *late = redis_line_late(&line, 1 * SEC + 9 * MSEC);
	assert_int_equal(late->sent, 1 * SEC);
	assert_true(late->late);
	assert_null(redis_line_late(&line, 1 * SEC + 9 * MSEC));
	assert_int_equal(redis_line_due(&line), 1 * SEC + 14 * MSEC);
	assert_int_equal(redis_line_late(&line, 2 * SEC)->sent, 1 * SEC + 5 * MSEC);
	assert_null(redis_line_late(&line, 2 * SEC));
}

static void what_leaves_later_is_late_later(void **state)
{
	(void)state;
	(void)send_at(1 * SEC);
	assert_true(redis_line_keeps(&line));
	redis_line_left(&line, 1 * SEC + 1 * MSEC);
	assert_false(redis_line_keeps(&line));
	(void)send_at(1 * SEC);
	(void)redis_line_pop(&line);
	redis_line_left(&line, 1 * SEC + 50 * MSEC);
	assert_int_equal(redis_line_due(&line), 1 * SEC + 59 * MSEC);
	(void)send_at(2 * SEC);
	redis_line_left(&line, 2 * SEC); /* the other has left already */
	assert_int_equal(redis_line_due(&line), 1 * SEC + 59 * MSEC);
	(void)redis_line_pop(&line);
	assert_int_equal(redis_line_pop(&line).sent, 2 * SEC);
	redis_line_left(&line, 3 * SEC);
	assert_int_equal(redis_line_due(&line), NSEC_NEVER);
}

static void an_answer_in_time_is_not_late_afterwards(void **state)
{
	(void)state;
	(void)send_at(1 * SEC);
	(void)send_at(1 * SEC);
	assert_false(redis_line_pop(&line).late);
	assert_non_null(redis_line_late(&line, 2 * SEC));
	assert_null(redis_line_late(&line, 2 * SEC));
	assert_true(redis_line_pop(&line).late);
	assert_true(redis_line_is_empty(&line));
	assert_int_equal(redis_line_due(&line), NSEC_NEVER);
}

static void an_answer_that_gets_on_is_not_late_for_a_second(void **state)
{
	(void)state;
	(void)send_at(1 * SEC);
	(void)send_at(1 * SEC + 5 * MSEC);
	redis_line_moved(&line, REDIS_LINE_PROGRESS - 1, 1 * SEC + 8 * MSEC);
	assert_int_equal(redis_line_due(&line), 1 * SEC + 9 * MSEC); /* a drip is no progress */
	redis_line_moved(&line, 1, 1 * SEC + 8 * MSEC);
	assert_int_equal(redis_line_due(&line), 1 * SEC + 17 * MSEC);
	assert_null(redis_line_late(&line, 1 * SEC + 17 * MSEC - 1));
	(void)redis_line_pop(&line);
	line.heard = 1 * SEC + 8 * MSEC;
	assert_int_equal(redis_line_due(&line), 1 * SEC + 17 * MSEC); /* it waited for the other */
	line.heard = 3 * SEC;
	redis_line_moved(&line, REDIS_LINE_PROGRESS, 3 * SEC);
	assert_int_equal(redis_line_due(&line), 2 * SEC + 14 * MSEC);
	(void)redis_line_pop(&line);
	(void)send_at(4 * SEC); /* nothing of that counts for what is asked later */
	assert_int_equal(redis_line_due(&line), 4 * SEC + 9 * MSEC);
}

/* A deadline of a millisecond or two is not made shorter. */
static void a_short_deadline_is_kept(void **state)
{
	(void)state;
	line.deadline = 2 * MSEC;
	(void)send_at(1 * SEC);
	assert_int_equal(redis_line_due(&line), 1 * SEC + 2 * MSEC);
}

static void who_owes_answers_is_silent_a_second_after_the_last_or_after_a_longer_deadline(
	void **state)
{
	(void)state;
	(void)send_at(5 * SEC);
	(void)send_at(5 * SEC);
	assert_non_null(redis_line_late(&line, 6 * SEC - 1));
	assert_non_null(redis_line_late(&line, 6 * SEC - 1));
	assert_int_equal(redis_line_due(&line), 6 * SEC);
	assert_false(redis_line_is_silent(&line, 6 * SEC - 1));
	assert_true(redis_line_is_silent(&line, 6 * SEC));
	(void)redis_line_pop(&line);
	line.heard = 6 * SEC;
	assert_false(redis_line_is_silent(&line, 7 * SEC - 1));
	assert_true(redis_line_is_silent(&line, 7 * SEC));
	line.deadline = 3 * SEC;
	assert_false(redis_line_is_silent(&line, 9 * SEC - 1));
	assert_true(redis_line_is_silent(&line, 9 * SEC));
}

static void a_full_line_takes_no_more_and_an_empty_one_begins_anew(void **state)
{
	(void)state;
	const struct redis_request *first = redis_line_place(&line, send_at(1 * SEC));
	assert_ptr_equal(first, line.ring);
	for (unsigned i = 1; i < REDIS_IN_FLIGHT_MAX; i++)
		(void)send_at(1 * SEC);
	assert_null(redis_line_begin(&line, 1 * SEC));
	(void)redis_line_pop(&line);
	assert_ptr_equal(redis_line_place(&line, send_at(2 * SEC)), line.ring);
	assert_null(redis_line_begin(&line, 2 * SEC));
	for (unsigned i = 0; i < REDIS_IN_FLIGHT_MAX; i++)
		(void)redis_line_pop(&line);
	for (unsigned i = 0; i < 3; i++) { /* so that no more pages than needed are touched */
		assert_ptr_equal(redis_line_place(&line, send_at(3 * SEC)), line.ring);
		assert_int_equal(redis_line_pop(&line).sent, 3 * SEC);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_empty_line_is_neither_late_nor_silent),
		CASE(what_is_late_is_said_once_and_oldest_first),
		CASE(what_leaves_later_is_late_later),
		CASE(an_answer_in_time_is_not_late_afterwards),
		CASE(an_answer_that_gets_on_is_not_late_for_a_second),
		CASE(a_short_deadline_is_kept),
		CASE(who_owes_answers_is_silent_a_second_after_the_last_or_after_a_longer_deadline),
		CASE(a_full_line_takes_no_more_and_an_empty_one_begins_anew),
	};
	return cmocka_run_group_tests_name("redis_pending", tests, NULL, NULL);
}
