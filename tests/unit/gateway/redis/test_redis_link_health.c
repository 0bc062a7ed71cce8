/* A slow Redis: the requests that wait for it, and when it counts as well again. */
#include "tests/unit/gateway/redis/redis_link_rig.h"

#define PATIENCE (250 * MSEC)

static bool ask_slow(struct redis_link *link)
{
	struct redis_buffer *to;
	uint64_t ticket;

	if (redis_link_begin_slow(link, PATIENCE, &to, &ticket) == NULL)
		return false;
	redis_put_count(to, 1);
	redis_put(to, SLICE("PING"));
	return redis_link_send(link);
}

/* One answer is late, and owed. */
static struct redis_link *slow_link(void)
{
	struct redis_link *link = ready_link();

	assert_true(ask(link));
	turn();
	pass(20 * MSEC);
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
	pass(PATIENCE - 20 * MSEC - 1);
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
		cmocka_unit_test(a_large_answer_that_is_arriving_makes_nobody_late),
		cmocka_unit_test(an_answer_that_stops_in_its_middle_or_drips_is_late),
	};

	return cmocka_run_group_tests_name("redis_link_health", tests, NULL, NULL);
}
