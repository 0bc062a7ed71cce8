/* Requests on their way to Redis: when they are late, when all are silent, and where they lie. */
#include "gateway/redis/redis_pending.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct redis_pending pending;

static int set_up(void **state)
{
	(void)state;
	return redis_pending_init(&pending, 10 * MSEC) ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	redis_pending_fini(&pending);
	return 0;
}

static uint64_t send_at(nsec_t now)
{
	struct redis_request *request = redis_pending_begin(&pending, now);

	assert_non_null(request);
	const uint64_t number = pending.next;
	redis_pending_push(&pending);
	assert_ptr_equal(redis_pending_at(&pending, number), request);
	return number;
}

static void an_empty_queue_is_neither_late_nor_silent(void **state)
{
	(void)state;
	assert_int_equal(redis_pending_due(&pending), NSEC_NEVER);
	assert_null(redis_pending_late(&pending, 1000 * SEC));
	assert_false(redis_pending_is_silent(&pending, 1000 * SEC));
}

static void what_is_late_is_said_once_and_oldest_first(void **state)
{
	(void)state;
	(void)send_at(1 * SEC);
	(void)send_at(1 * SEC + 5 * MSEC);
	assert_int_equal(redis_pending_due(&pending),
			 1 * SEC + 9 * MSEC); /* a loop may wake up late */
	assert_null(redis_pending_late(&pending, 1 * SEC + 9 * MSEC - 1));
	const struct redis_request *late = redis_pending_late(&pending, 1 * SEC + 9 * MSEC);
	assert_int_equal(late->sent, 1 * SEC);
	assert_true(late->late);
	assert_null(redis_pending_late(&pending, 1 * SEC + 9 * MSEC));
	assert_int_equal(redis_pending_due(&pending), 1 * SEC + 14 * MSEC);
	assert_int_equal(redis_pending_late(&pending, 2 * SEC)->sent, 1 * SEC + 5 * MSEC);
	assert_null(redis_pending_late(&pending, 2 * SEC));
}

static void what_leaves_later_is_late_later(void **state)
{
	(void)state;
	(void)send_at(1 * SEC);
	assert_true(redis_pending_keeps(&pending));
	redis_pending_left(&pending, 1 * SEC + 1 * MSEC);
	assert_false(redis_pending_keeps(&pending));
	(void)send_at(1 * SEC);
	(void)redis_pending_pop(&pending);
	redis_pending_left(&pending, 1 * SEC + 50 * MSEC);
	assert_int_equal(redis_pending_due(&pending), 1 * SEC + 59 * MSEC);
	(void)send_at(2 * SEC);
	redis_pending_left(&pending, 2 * SEC); /* the other has left already */
	assert_int_equal(redis_pending_due(&pending), 1 * SEC + 59 * MSEC);
	(void)redis_pending_pop(&pending);
	assert_int_equal(redis_pending_pop(&pending).sent, 2 * SEC);
	redis_pending_left(&pending, 3 * SEC);
	assert_int_equal(redis_pending_due(&pending), NSEC_NEVER);
}

static void an_answer_in_time_is_not_late_afterwards(void **state)
{
	(void)state;
	(void)send_at(1 * SEC);
	(void)send_at(1 * SEC);
	assert_false(redis_pending_pop(&pending).late);
	assert_non_null(redis_pending_late(&pending, 2 * SEC));
	assert_null(redis_pending_late(&pending, 2 * SEC));
	assert_true(redis_pending_pop(&pending).late);
	assert_true(redis_pending_is_empty(&pending));
	assert_int_equal(redis_pending_due(&pending), NSEC_NEVER);
}

static void an_answer_that_gets_on_is_not_late_for_a_second(void **state)
{
	(void)state;
	(void)send_at(1 * SEC);
	(void)send_at(1 * SEC + 5 * MSEC);
	redis_pending_moved(&pending, REDIS_PENDING_PROGRESS - 1, 1 * SEC + 8 * MSEC);
	assert_int_equal(redis_pending_due(&pending),
			 1 * SEC + 9 * MSEC); /* a drip is no progress */
	redis_pending_moved(&pending, 1, 1 * SEC + 8 * MSEC);
	assert_int_equal(redis_pending_due(&pending), 1 * SEC + 17 * MSEC);
	assert_null(redis_pending_late(&pending, 1 * SEC + 17 * MSEC - 1));
	(void)redis_pending_pop(&pending);
	pending.heard = 1 * SEC + 8 * MSEC;
	assert_int_equal(redis_pending_due(&pending),
			 1 * SEC + 17 * MSEC); /* it waited for the other */
	pending.heard = 3 * SEC;
	redis_pending_moved(&pending, REDIS_PENDING_PROGRESS, 3 * SEC);
	assert_int_equal(redis_pending_due(&pending), 2 * SEC + 14 * MSEC);
	(void)redis_pending_pop(&pending);
	(void)send_at(4 * SEC); /* nothing of that counts for what is asked later */
	assert_int_equal(redis_pending_due(&pending), 4 * SEC + 9 * MSEC);
}

static void without_a_late_answer_the_server_is_not_away(void **state)
{
	(void)state;
	assert_int_equal(redis_pending_away_at(&pending), NSEC_NEVER);
	(void)send_at(1 * SEC);
	(void)send_at(1 * SEC + 5 * MSEC);
	assert_int_equal(redis_pending_away_at(&pending), NSEC_NEVER);
	assert_non_null(redis_pending_late(&pending, 1 * SEC + 9 * MSEC));
	assert_int_equal(redis_pending_away_at(&pending), 1 * SEC + 15 * MSEC);
	assert_true(redis_pending_pop(&pending).late);
	assert_int_equal(redis_pending_away_at(&pending), NSEC_NEVER); /* so far */
	assert_non_null(redis_pending_late(&pending, 1 * SEC + 14 * MSEC));
	assert_int_equal(redis_pending_away_at(&pending),
			 1 * SEC + 15 * MSEC); /* since the first */
	assert_true(redis_pending_pop(&pending).late);
	(void)send_at(2 * SEC);
	assert_false(redis_pending_pop(&pending).late);
	(void)send_at(3 * SEC);
	assert_non_null(redis_pending_late(&pending, 4 * SEC));
	assert_int_equal(redis_pending_away_at(&pending), 3 * SEC + 15 * MSEC);
	redis_pending_moved(&pending, REDIS_PENDING_PROGRESS, 3 * SEC + 50 * MSEC);
	assert_int_equal(redis_pending_away_at(&pending), 3 * SEC + 65 * MSEC);
}

static void what_is_given_up_is_late_at_once(void **state)
{
	(void)state;
	assert_null(redis_pending_give_up(&pending));
	(void)send_at(1 * SEC);
	(void)send_at(1 * SEC + 5 * MSEC);
	assert_non_null(redis_pending_late(&pending, 1 * SEC + 9 * MSEC));
	assert_null(redis_pending_late(&pending, 1 * SEC + 9 * MSEC));
	assert_true(redis_pending_give_up(&pending)->late);
	assert_null(redis_pending_give_up(&pending));
	assert_true(redis_pending_pop(&pending).late && redis_pending_pop(&pending).late);
}

/* A deadline of a millisecond or two is not made shorter. */
static void a_short_deadline_is_kept(void **state)
{
	(void)state;
	pending.deadline = 2 * MSEC;
	(void)send_at(1 * SEC);
	assert_int_equal(redis_pending_due(&pending), 1 * SEC + 2 * MSEC);
}

static void who_owes_answers_is_silent_a_second_after_the_last_or_a_longer_patience(void **state)
{
	(void)state;
	(void)send_at(5 * SEC);
	(void)send_at(5 * SEC);
	assert_non_null(redis_pending_late(&pending, 6 * SEC - 1));
	assert_non_null(redis_pending_late(&pending, 6 * SEC - 1));
	assert_int_equal(redis_pending_due(&pending), 6 * SEC);
	assert_false(redis_pending_is_silent(&pending, 6 * SEC - 1));
	assert_true(redis_pending_is_silent(&pending, 6 * SEC));
	(void)redis_pending_pop(&pending);
	pending.heard = 6 * SEC;
	assert_false(redis_pending_is_silent(&pending, 7 * SEC - 1));
	assert_true(redis_pending_is_silent(&pending, 7 * SEC));
	pending.deadline = 3 * SEC;
	assert_false(redis_pending_is_silent(&pending, 10 * SEC + 500 * MSEC - 1));
	assert_true(redis_pending_is_silent(&pending, 10 * SEC + 500 * MSEC));
}

static void a_full_queue_takes_no_more_and_an_empty_one_begins_anew(void **state)
{
	(void)state;
	const struct redis_request *first = redis_pending_place(&pending, send_at(1 * SEC));
	assert_ptr_equal(first, pending.ring);
	for (unsigned i = 1; i < REDIS_IN_FLIGHT_MAX; i++)
		(void)send_at(1 * SEC);
	assert_null(redis_pending_begin(&pending, 1 * SEC));
	(void)redis_pending_pop(&pending);
	assert_ptr_equal(redis_pending_place(&pending, send_at(2 * SEC)), pending.ring);
	assert_null(redis_pending_begin(&pending, 2 * SEC));
	for (unsigned i = 0; i < REDIS_IN_FLIGHT_MAX; i++)
		(void)redis_pending_pop(&pending);
	for (unsigned i = 0; i < 3; i++) { /* so that no more pages than needed are touched */
		assert_ptr_equal(redis_pending_place(&pending, send_at(3 * SEC)), pending.ring);
		assert_int_equal(redis_pending_pop(&pending).sent, 3 * SEC);
	}
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_empty_queue_is_neither_late_nor_silent),
		CASE(what_is_late_is_said_once_and_oldest_first),
		CASE(what_leaves_later_is_late_later),
		CASE(an_answer_in_time_is_not_late_afterwards),
		CASE(an_answer_that_gets_on_is_not_late_for_a_second),
		CASE(without_a_late_answer_the_server_is_not_away),
		CASE(what_is_given_up_is_late_at_once),
		CASE(a_short_deadline_is_kept),
		CASE(who_owes_answers_is_silent_a_second_after_the_last_or_a_longer_patience),
		CASE(a_full_queue_takes_no_more_and_an_empty_one_begins_anew),
	};
	return cmocka_run_group_tests_name("redis_pending", tests, NULL, NULL);
}
