/* A slow Redis: the requests that wait for it, and when it counts as well again. */
#include "tests/unit/gateway/redis/redis_link_rig.h"

#define PATIENCE (250 * MSEC)

static bool ask_slow(struct redis_link *link)
{
	return ask_at(link, redis_link_begin_slow(link, PATIENCE));
}

/* One answer is owed, and nothing was heard for one and a half times the deadline. */
static struct redis_link *slow_link(void)
{
	struct redis_link *link = ready_link();

	assert_true(ask(link));
	turn();
	pass(30 * MSEC);
	assert_int_equal(told.late, 1);
	assert_int_equal(told.unready, 1);
	assert_int_equal(told.turned, 1);
	conn.written_len = 0;
	return link;
}

static void a_slow_server_is_asked_by_who_waits_for_it_and_nobody_else(void **state)
{
	struct redis_link *link = slow_link();

	(void)state;
	assert_true(redis_link_is_slow(link, PATIENCE));
	assert_false(ask(link));
	assert_true(ask_slow(link));
	turn();
	assert_written(PING);
	pass(30 * MSEC);
	assert_true(ask_slow(link));
	says("+PONG\r\n");
	assert_true(ask_slow(link)); /* it is slow still */
	assert_int_equal(told.answered, 1);
}

/* However many go on asking, it is found out whether it is well again. */
static void an_answer_in_time_lets_nobody_in_until_a_probe_has_told(void **state)
{
	struct redis_link *link = slow_link();

	(void)state;
	assert_true(ask_slow(link));
	turn();
	says("+PONG\r\n"); /* the late one */
	assert_true(ask_slow(link));
	turn();
	conn.written_len = 0;
	says("+PONG\r\n"); /* in time */
	assert_int_equal(told.turned, 2);
	assert_true(redis_link_is_slow(link, PATIENCE));
	assert_false(ask_slow(link));
	assert_written("");
	says("+PONG\r\n");
	assert_written(PROBE);
	assert_false(ask_slow(link));
	says("+OK\r\n");
	assert_int_equal(told.ready, 2);
	assert_false(redis_link_is_slow(link, PATIENCE));
	assert_true(ask(link));
}

static void a_probe_that_is_late_lets_them_in_again(void **state)
{
	struct redis_link *link = slow_link();

	(void)state;
	says("+PONG\r\n");
	assert_written(PROBE);
	assert_true(ask_slow(link)); /* behind the probe */
	turn();
	conn.written_len = 0;
	says("+OK\r\n"); /* in time, but it is not alone */
	assert_int_equal(told.ready, 1);
	assert_false(ask_slow(link));
	const uint32_t before = told.turned;
	pass(20 * MSEC);
	assert_int_equal(told.turned, before + 1);
	assert_true(ask_slow(link));
}

static void who_is_not_heard_for_the_patience_is_given_no_more(void **state)
{
	struct redis_link *link = slow_link();

	(void)state;
	assert_true(ask_slow(link));
	turn();
	pass(PATIENCE - 30 * MSEC - 1);
	assert_true(ask_slow(link));
	pass(1);
	assert_false(redis_link_is_slow(link, PATIENCE));
	assert_false(ask_slow(link));
	says("+PONG\r\n+PONG\r\n"); /* it is heard, and the second took less */
	assert_true(redis_link_is_slow(link, PATIENCE));
}

/* Nobody waits for what will not be in time; the probe goes on asking. */
static void a_server_that_takes_longer_than_the_patience_is_given_no_more(void **state)
{
	struct redis_link *link = slow_link();

	(void)state;
	assert_true(ask_slow(link));
	turn();
	pass(PATIENCE);
	says("+PONG\r\n+PONG\r\n");
	assert_false(redis_link_is_slow(link, PATIENCE));
	assert_false(ask_slow(link));
	conn.written_len = 0;
	pass(PATIENCE - 1);
	says("+OK\r\n");
	assert_true(ask_slow(link));
}

static void a_server_that_refuses_or_is_gone_is_not_slow(void **state)
{
	struct redis_link *link = slow_link();

	(void)state;
	assert_true(ask_slow(link));
	turn();
	says("-READONLY You can't write against a read only replica.\r\n");
	assert_int_equal(told.turned, 2);
	assert_false(redis_link_is_slow(link, PATIENCE));
	assert_false(ask_slow(link));

	link = slow_link();
	ended(NET_END_CLOSED);
	assert_int_equal(told.turned, 2);
	assert_int_equal(told.lost, 1);
	assert_false(redis_link_is_slow(link, PATIENCE));
	assert_false(ask_slow(link));
}

/* The error is over with its late answer, and what is left is that it is late. */
static void a_late_probe_behind_an_error_makes_it_slow(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	turn();
	says("-OOM command not allowed\r\n");
	assert_false(redis_link_is_slow(link, PATIENCE));
	pass(200 * MSEC);
	pass(20 * MSEC);
	says("+OK\r\n");
	assert_true(redis_link_is_slow(link, PATIENCE));
	assert_true(ask_slow(link));
}

static void a_server_that_is_slow_from_its_greeting_on_is_asked(void **state)
{
	struct redis_link *link = link_of(arguments(1));

	(void)state;
	pass(0);
	opened();
	pass(50 * MSEC);
	assert_false(ask_slow(link));
	says("+OK\r\n");
	assert_int_equal(told.ready, 0);
	assert_int_equal(told.turned, 1);
	assert_true(ask_slow(link));
}

/* ---- one late answer ---- */

/* Whose command took long is told so, and nobody else. */
static void one_late_answer_among_others_in_time_takes_nothing_from_them(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	for (int i = 0; i < 50; i++) {
		assert_true(ask(link)); /* a script of 25 ms */
		turn();
		pass(10 * MSEC);
		assert_true(ask(link));
		turn();
		pass(15 * MSEC);
		assert_int_equal(told.late, i + 1);
		says("+PONG\r\n+PONG\r\n"); /* the second waited 15 ms */
		assert_true(ask(link));
		turn();
		says("+PONG\r\n");
		pass(10 * MSEC);
	}
	assert_int_equal(told.unready + told.turned, 0);
	assert_int_equal(told.answered, 150);
}

static void a_lone_late_answer_leaves_the_link_as_it_was(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	turn();
	pass(29 * MSEC);
	says("+PONG\r\n");
	assert_int_equal(told.late, 1);
	pass(10 * SEC);
	assert_int_equal(told.unready, 0);
	conn.written_len = 0;
	assert_true(ask(link));
	turn();
	assert_written(PING); /* and not because of the one before */
	pass(18 * MSEC);
	assert_int_equal(told.unready, 0);
	says("+PONG\r\n");
	assert_true(redis_link_ready(link));
}

/* What waits behind a late answer is late by itself, but that is the same command's doing. */
static void those_that_wait_for_the_same_late_answer_are_no_others(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_true(ask(link));
		turn();
		pass(MSEC);
	}
	pass(18 * MSEC);
	assert_int_equal(told.late, 10);
	assert_int_equal(told.unready, 0);
	assert_true(ask(link));
	turn();
	for (int i = 0; i < 11; i++)
		says("+PONG\r\n");
	pass(SEC);
	assert_int_equal(told.unready, 0);
}

static void a_second_late_answer_without_one_in_time_between_is_too_many(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	turn();
	pass(25 * MSEC);
	says("+PONG\r\n");
	pass(10 * SEC);
	assert_true(ask(link));
	turn();
	pass(19 * MSEC);
	assert_int_equal(told.late, 2);
	assert_int_equal(told.unready, 1);
	assert_int_equal(told.fault, STORE_FAULT_LATE);
	says("+PONG\r\n");
	says("+OK\r\n"); /* the probe */
	assert_int_equal(told.ready, 2);
	assert_true(ask(link)); /* what was before does not count any more */
	turn();
	pass(25 * MSEC);
	says("+PONG\r\n");
	assert_int_equal(told.late, 3);
	assert_int_equal(told.unready, 1);
}

static void a_server_whose_answers_are_all_late_is_away_before_twice_the_deadline(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	for (int i = 0; i < 30; i++) { /* one each millisecond, and each takes 25 ms */
		assert_true(ask(link));
		turn();
		if (i >= 25)
			says("+PONG\r\n");
		assert_int_equal(told.unready, 0);
		pass(MSEC);
	}
	assert_int_equal(told.unready, 1);
	assert_false(ask(link));
}

static void a_server_that_says_nothing_is_away_before_twice_the_deadline(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	turn();
	pass(30 * MSEC - 1);
	assert_int_equal(told.late, 1);
	assert_true(redis_link_ready(link));
	pass(1);
	assert_int_equal(told.unready, 1);
	assert_false(redis_link_ready(link));
}

/* Together they wait as long as if the first late answer counted. */
static void nobody_waits_for_a_server_that_is_away(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	turn();
	pass(25 * MSEC);
	assert_true(ask(link)); /* with 20 ms of its own */
	turn();
	pass(5 * MSEC - 1);
	assert_int_equal(told.late, 1);
	pass(1);
	assert_int_equal(told.late, 2);
	assert_int_equal(told.unready, 1);
	says("+PONG\r\n+PONG\r\n"); /* which both were too late for */
	assert_int_equal(told.answered, 2);
	says("+OK\r\n");
	assert_int_equal(told.ready, 2);
}

/* Bytes of an answer, `len` of them. */
static void says_part(size_t len)
{
	char part[2048];

	assert_true(len < sizeof(part));
	(void)memset(part, 'm', len);
	part[len] = '\0';
	says(part);
}

static void a_large_answer_that_is_arriving_makes_nobody_late(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	assert_true(ask(link));
	turn();
	says("$6000\r\n");
	for (int i = 0; i < 4; i++) {
		pass(15 * MSEC);
		says_part(1500);
	}
	assert_int_equal(told.answered, 0);
	pass(15 * MSEC);
	says("\r\n");
	assert_int_equal(told.answered, 1);
	pass(3 * MSEC);
	assert_int_equal(told.late + told.unready, 0);
	says("+PONG\r\n");
	assert_int_equal(told.answered, 2);
	assert_int_equal(told.late + told.unready, 0);
	assert_true(ask(link));
}

static void an_answer_that_stops_in_its_middle_or_drips_is_late(void **state)
{
	struct redis_link *link;

	(void)state;
	link = ready_link();
	assert_true(ask(link));
	turn();
	says("$6000\r\n");
	pass(15 * MSEC);
	says_part(1500);
	pass(19 * MSEC);
	assert_int_equal(told.late, 1);
	assert_int_equal(told.unready, 0);
	pass(11 * MSEC);
	assert_int_equal(told.unready, 1);
	link = ready_link();
	assert_true(ask(link));
	turn();
	says("$6000\r\n");
	pass(15 * MSEC);
	says_part(500);
	pass(4 * MSEC);
	assert_int_equal(told.late, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_server_is_asked_by_who_waits_for_it_and_nobody_else),
		cmocka_unit_test(an_answer_in_time_lets_nobody_in_until_a_probe_has_told),
		cmocka_unit_test(a_probe_that_is_late_lets_them_in_again),
		cmocka_unit_test(who_is_not_heard_for_the_patience_is_given_no_more),
		cmocka_unit_test(a_server_that_takes_longer_than_the_patience_is_given_no_more),
		cmocka_unit_test(a_server_that_refuses_or_is_gone_is_not_slow),
		cmocka_unit_test(a_late_probe_behind_an_error_makes_it_slow),
		cmocka_unit_test(a_server_that_is_slow_from_its_greeting_on_is_asked),
		cmocka_unit_test(one_late_answer_among_others_in_time_takes_nothing_from_them),
		cmocka_unit_test(a_lone_late_answer_leaves_the_link_as_it_was),
		cmocka_unit_test(those_that_wait_for_the_same_late_answer_are_no_others),
		cmocka_unit_test(a_second_late_answer_without_one_in_time_between_is_too_many),
		cmocka_unit_test(
			a_server_whose_answers_are_all_late_is_away_before_twice_the_deadline),
		cmocka_unit_test(a_server_that_says_nothing_is_away_before_twice_the_deadline),
		cmocka_unit_test(nobody_waits_for_a_server_that_is_away),
		cmocka_unit_test(a_large_answer_that_is_arriving_makes_nobody_late),
		cmocka_unit_test(an_answer_that_stops_in_its_middle_or_drips_is_late),
	};

	return cmocka_run_group_tests_name("redis_link_health", tests, NULL, NULL);
}
