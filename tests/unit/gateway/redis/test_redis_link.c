/* The connection to Redis over sockets and a clock that the test is: deadlines, one probe at a time, pauses. */
#include "tests/unit/gateway/redis/redis_link_rig.h"

enum { SLOTS = 16384, PARTS = 16 };

/* The slot of a hash tag, as Redis Cluster's specification has it: CRC16/XMODEM. */
static unsigned slot_of(const char *tag, size_t len)
{
	unsigned crc = 0;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned)(uint8_t)tag[i] << 8;
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 0x8000) != 0 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1;
	}
	return crc % SLOTS;
}

/* Out of what was written: a key is asked for in each sixteenth of the slots. */
static void take_slots(void)
{
	bool asked[PARTS] = { false };
	char *from, *to;

	conn.written[conn.written_len] = '\0';
	while ((from = strstr(conn.written, "*2\r\n$3\r\nGET\r\n")) != NULL) {
		const char *tag = strchr(from, '{') + 1;
		const size_t len = (size_t)(strchr(tag, '}') - tag);
		to = strstr(from, "}slot\r\n") + strlen("}slot\r\n");
		asked[slot_of(tag, len) / (SLOTS / PARTS)] = true;
		(void)memmove(from, to, strlen(to) + 1);
	}
	conn.written_len = strlen(conn.written);
	for (size_t i = 0; i < PARTS; i++)
		assert_true(asked[i]);
}

static void a_node_that_has_not_all_slots_is_never_ready(void **state)
{
	static struct redis_script script = { .text = SLICE_INIT("return 1") };

	(void)state;
	redis_link_load(link_of(arguments(1)), &script);
	pass(0);
	opened();
	says("$-1\r\n$-1\r\n-MOVED 1523 10.0.0.2:6379\r\n");
	assert_false(conn.open);
	assert_int_equal(told.fault, STORE_FAULT_CLUSTER);
	assert_int_equal(told.ready, 0);
}

static void what_is_wrong_is_told_once_per_change(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_int_equal(told.faults, 1); /* it is connected */
	assert_int_equal(told.fault, STORE_FAULT_NONE);
	assert_true(ask(link));
	turn();
	pass(30 * MSEC);
	assert_int_equal(told.fault, STORE_FAULT_LATE);
	pass(SEC);
	assert_int_equal(told.fault, STORE_FAULT_SILENT);
	assert_int_equal(told.faults, 3);
	pass(30 * MSEC);
	ended(NET_END_FAILED);
	assert_int_equal(told.fault, STORE_FAULT_UNREACHABLE);
	pass(100 * MSEC);
	opened();
	says("+OK\r\n");
	assert_int_equal(told.fault, STORE_FAULT_NONE);
	assert_int_equal(told.faults, 5);
}

static void a_link_is_ready_when_its_greeting_and_a_write_were_answered(void **state)
{
	static struct redis_script script = { .text = SLICE_INIT("return 1") };
	struct redis_link_args args = arguments(1);

	(void)state;
	args.user = SLICE("gate");
	args.password = SLICE("pw");
	args.database = 3;
	struct redis_link *link = link_of(args);
	redis_link_load(link, &script);
	assert_false(ask(link));
	pass(0);
	assert_int_equal(conn.port, 1000);
	assert_false(ask(link));
	opened();
	take_slots();
	assert_written("*3\r\n$4\r\nAUTH\r\n$4\r\ngate\r\n$2\r\npw\r\n*2\r\n$6\r\nSELECT\r\n$"
		       "1\r\n3\r\n"
		       "*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n" PROBE);
	says("+OK\r\n+OK\r\n$0\r\n\r\n");
	for (int i = 0; i < PARTS; i++)
		says("$-1\r\n");
	assert_int_equal(told.ready, 0);
	assert_false(ask(link));
	says("+OK\r\n");
	assert_int_equal(told.ready, 1);
	assert_true(ask(link));
}

static void requests_of_a_tick_leave_in_one_write_and_are_answered_in_order(void **state)
{
	struct redis_link *link = ready_link();
	const size_t writes = conn.writes;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(ask(link));
	assert_int_equal(conn.writes, writes);
	turn();
	assert_int_equal(conn.writes, writes + 1);
	assert_written(PING PING PING);
	says("+PO");
	assert_int_equal(told.answered, 0);
	says("NG\r\n:1\r\n+PONG\r\n");
	assert_int_equal(told.answered, 3);
	assert_int_equal(told.unready, 0);
}

/* What was put off leaves when the write before it has left, and is put off again at once. */
static void requests_that_come_while_others_leave_follow_them(void **state)
{
	(void)state;
	struct redis_link *link = ready_link();
	assert_true(ask(link));
	struct net_task *task = loop.soon;
	loop.soon = NULL;
	task->run(task);
	assert_true(conn.writing);
	assert_true(ask(link));
	conn.writing = false;
	conn.events->written(&conn, conn.arg);
	assert_written(PING PING);
	assert_true(ask(link));
	turn();
	turn();
	assert_written(PING);
	says("+PONG\r\n+PONG\r\n+PONG\r\n");
	assert_int_equal(told.answered, 3);
}

static void who_does_not_want_to_wait_for_the_next_turn_flushes(void **state)
{
	(void)state;
	struct redis_link *link = ready_link();
	redis_link_flush(link); /* nothing to say */
	assert_int_equal(conn.writes, 1);
	assert_true(ask(link) && ask(link));
	assert_int_equal(conn.writes, 1);
	redis_link_flush(link);
	assert_int_equal(conn.writes, 2);
	assert_written(PING PING);
	assert_true(ask(link)); /* while those are on their way */
	redis_link_flush(link);
	assert_int_equal(conn.writes, 2);
	turn();
	assert_written(PING);
	turn(); /* not a second time */
	assert_int_equal(conn.writes, 3);
	says("+PONG\r\n+PONG\r\n+PONG\r\n");
	assert_int_equal(told.answered, 3);
}

static void late_answers_stop_all_until_one_probe_alone_was_answered_in_time(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	turn();
	pass(10 * MSEC);
	assert_true(ask(link));
	turn();
	assert_written(PING PING);
	pass(10 * MSEC);
	assert_int_equal(told.late, 1); /* the second has 10 ms more */
	assert_int_equal(told.unready, 0);
	pass(10 * MSEC);
	assert_int_equal(told.late, 2);
	assert_int_equal(told.unready, 1);
	assert_false(ask(link));
	pass(50 * MSEC);
	assert_written(""); /* no probe while anything is owed */
	says("+PONG\r\n+PONG\r\n");
	assert_int_equal(told.answered, 2);
	assert_false(ask(link));
	assert_written(PROBE);
	pass(19 * MSEC - 1);
	says("+OK\r\n");
	assert_int_equal(told.ready, 2);
	assert_int_equal(told.lost, 0);
	assert_true(ask(link));
}

/* Bytes leave at the end of a tick, which may have taken longer than the deadline. */
static void a_tick_that_takes_long_does_not_make_the_server_late(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	loop.stall = 50 * MSEC;
	turn();
	loop.now += loop.stall;
	loop.stall = 0;
	pass(19 * MSEC - 1);
	assert_int_equal(told.late + told.unready, 0);
	assert_true(ask(link)); /* not held up, it has less time left than the other had */
	turn();
	pass(1);
	assert_int_equal(told.late, 1);
	pass(19 * MSEC);
	assert_int_equal(told.late, 2);
}

/* A server that takes no bytes is late with those that wait for it to take some, too. */
static void what_waits_for_the_server_to_read_is_late(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	redis_link_flush(link); /* it does not leave */
	assert_true(ask(link));
	redis_link_flush(link);
	pass(18 * MSEC);
	assert_written(PING);
	assert_int_equal(told.late, 0);
	pass(1 * MSEC);
	assert_int_equal(told.late, 2);
}

static void a_slow_server_is_probed_once_at_a_time(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	turn();
	pass(50 * MSEC);
	says("+PONG\r\n");
	conn.written_len = 0;
	for (int i = 0; i < 5;
	     i++) { /* each probe is answered late, and the next comes 200 ms later */
		pass(500 * MSEC);
		assert_int_equal(told.ready, 1);
		assert_written(i == 0 ? "" : PROBE);
		says("+OK\r\n");
		pass(199 * MSEC);
		assert_written("");
		pass(1 * MSEC);
	}
	says("+OK\r\n");
	assert_int_equal(told.ready, 2);
	assert_int_equal(connects, 1);
}

static void an_error_stops_all_and_a_refused_probe_goes_to_the_next_address(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	assert_true(ask(link));
	turn();
	says("-READONLY You can't write against a read only replica.\r\n");
	assert_int_equal(told.refused, 1);
	assert_int_equal(told.unready, 1);
	assert_false(ask(link));
	assert_written(PING);
	pass(200 * MSEC);
	assert_written(PROBE);
	says("-READONLY You can't write against a read only replica.\r\n");
	assert_false(conn.open);
	pass(25 * MSEC);
	assert_int_equal(conn.port, 1001);
	opened();
	says("+OK\r\n");
	assert_int_equal(told.ready, 2);
}

static void what_is_asked_aside_may_be_refused(void **state)
{
	struct redis_link *link = ready_link();
	struct redis_buffer *to = redis_link_begin(link);

	(void)state;
	assert_non_null(to);
	redis_put_count(to, 1);
	redis_put(to, SLICE("PUBLISH"));
	const struct redis_command command = { .call = new_call(), .aside = true };
	assert_true(redis_link_send(link, &command));
	turn();
	says("-NOPERM this user has no permissions\r\n");
	assert_int_equal(told.refused, 1);
	assert_int_equal(told.unready, 0);
	assert_true(redis_link_ready(link));
}

static void a_connection_that_was_greeted_is_told_to_be_over_and_no_attempt(void **state)
{
	(void)state;
	(void)ready_link();
	assert_int_equal(told.gone, 0);
	ended(NET_END_FAILED);
	assert_int_equal(told.gone, 1);
	pass(25 * MSEC);
	ended(NET_END_FAILED);
	assert_int_equal(told.failed, 1);
	assert_int_equal(told.gone, 1);
}

/* ---- a link that listens ---- */

#define SUBSCRIBED "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define MESSAGE(text) "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\n" text "\r\n"
#define PONG "*2\r\n$4\r\npong\r\n$0\r\n\r\n"

static void who_listens_hears_what_is_said_and_asks_whether_anybody_is_there(void **state)
{
	struct redis_link_args args = arguments(2);

	(void)state;
	args.channels[0] = SLICE("c");
	args.channel_count = 1;
	args.password = SLICE("pw");
	(void)link_of(args);
	heard[0] = '\0';
	pass(0);
	opened();
	assert_written("*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n");
	says("+OK\r\n");
	assert_int_equal(told.ready, 0);
	says(SUBSCRIBED MESSAGE("m1"));
	assert_int_equal(told.ready, 1);
	assert_string_equal(heard, "m1");
	pass(5 * SEC);
	assert_written(PING);
	says(MESSAGE("m2")); /* before the answer */
	assert_string_equal(heard, "m2");
	says(PONG);
	pass(5 * SEC);
	assert_written(PING);
	pass(2 * SEC); /* nobody is there any more: the next address */
	assert_int_equal(connects, 2);
	assert_int_equal(conn.port, 1001);
}

static void who_listens_to_two_channels_is_ready_with_the_second(void **state)
{
	struct redis_link_args args = arguments(1);

	(void)state;
	args.channels[0] = SLICE("c");
	args.channels[1] = SLICE("d");
	args.channel_count = 2;
	(void)link_of(args);
	heard[0] = '\0';
	pass(0);
	opened();
	assert_written("*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nd\r\n");
	says(SUBSCRIBED);
	assert_int_equal(told.ready, 0);
	says("*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:2\r\n");
	assert_int_equal(told.ready, 1);
	says("*3\r\n$7\r\nmessage\r\n$1\r\nd\r\n$2\r\nm1\r\n");
	assert_string_equal(heard, "m1");
}

static void who_listens_and_is_told_something_else_begins_anew(void **state)
{
	static const char *const wrong[] = { "+OK\r\n", "*2\r\n$7\r\nmessage\r\n$1\r\nc\r\n",
					     "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n:1\r\n" };
	struct redis_link_args args = arguments(1);

	(void)state;
	args.channels[0] = SLICE("c");
	args.channel_count = 1;
	for (size_t i = 0; i < COUNT_OF(wrong); i++) {
		(void)link_of(args);
		pass(0);
		opened();
		says(SUBSCRIBED);
		assert_int_equal(told.ready, 1);
		says(wrong[i]);
		assert_int_equal(told.unready, 1);
		assert_false(conn.open);
	}
}

/* The pauses between ten attempts that are refused. */
static void pauses_of(uint64_t seed, nsec_t pauses[10])
{
	struct redis_link_args args = arguments(1);

	args.seed = seed;
	(void)link_of(args);
	pass(0);
	for (uint32_t i = 0; i < 10; i++) {
		const nsec_t from = loop.now;
		const uint32_t before = connects;
		ended(NET_END_FAILED);
		assert_int_equal(told.failed, i + 1);
		while (connects == before)
			pass(100 * USEC);
		pauses[i] = loop.now - from;
	}
}

static void pauses_grow_to_a_bound_and_differ_between_gateways(void **state)
{
	static const nsec_t most[10] = {
		25 * MSEC,  50 * MSEC,  100 * MSEC, 200 * MSEC, 400 * MSEC,
		800 * MSEC, 800 * MSEC, 800 * MSEC, 800 * MSEC, 800 * MSEC
	};
	nsec_t a[10], b[10];
	uint32_t different = 0;

	(void)state;
	pauses_of(1, a);
	pauses_of(UINT64_C(0x123456789abcdef), b);
	for (uint32_t i = 0; i < 10; i++) {
		assert_in_range(a[i], most[i] / 2, most[i]);
		assert_in_range(b[i], most[i] / 2, most[i]);
		different += a[i] != b[i];
	}
	assert_true(different >= 8);
}

static void after_a_good_connection_the_first_pause_is_short_again(void **state)
{
	(void)state;
	(void)link_of(arguments(1));
	pass(0);
	for (uint32_t i = 0; i < 8; i++) {
		ended(NET_END_FAILED);
		pass(800 * MSEC);
	}
	opened();
	says("+OK\r\n");
	ended(NET_END_CLOSED);
	assert_int_equal(told.unready, 1);
	assert_false(conn.open);
	pass(25 * MSEC);
	assert_true(conn.open);
}

static void who_gives_no_answer_for_a_second_is_given_up_and_all_is_lost(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(ask(link));
	turn();
	pass(999 * MSEC);
	assert_int_equal(told.late, 3);
	assert_true(conn.open);
	pass(1 * MSEC);
	assert_int_equal(told.lost, 3);
	assert_int_equal(told.failed, 0); /* that is for attempts to connect */
	pass(25 * MSEC);
	assert_int_equal(connects, 2);
}

static void who_is_slow_but_answers_is_not_silent(void **state)
{
	struct redis_link *link = ready_link();

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_true(ask(link));
	turn();
	for (int i = 0; i < 4; i++) {
		pass(900 * MSEC);
		says("+PONG\r\n");
	}
	assert_int_equal(told.lost, 0);
	assert_int_equal(told.answered, 4);
	assert_int_equal(connects, 1);
}

static void a_longer_deadline_is_kept(void **state)
{
	struct redis_link_args args = arguments(1);

	(void)state;
	args.deadline = 10 * SEC;
	struct redis_link *link = link_of(args);
	pass(0);
	opened();
	says("+OK\r\n");
	assert_true(ask(link));
	turn();
	pass(9 * SEC);
	assert_int_equal(told.late + told.lost, 0);
	says("+PONG\r\n");
	assert_int_equal(told.answered, 1);
	assert_int_equal(told.unready, 0);
}

static void an_address_that_does_not_answer_is_left_after_a_second(void **state)
{
	(void)state;
	(void)link_of(arguments(2));
	pass(0);
	pass(999 * MSEC);
	assert_int_equal(connects, 1);
	pass(26 * MSEC);
	assert_int_equal(connects, 2);
	assert_int_equal(conn.port, 1001);
	assert_int_equal(told.failed, 1);
}

static void addresses_that_come_later_are_used_at_once(void **state)
{
	struct redis_link *link = link_of(arguments(0));
	const struct redis_link_args later = arguments(2);

	(void)state;
	pass(5 * SEC);
	assert_int_equal(connects, 0);
	assert_int_equal(told.failed, 0);
	redis_link_set_targets(link, later.targets, 2);
	pass(0);
	assert_int_equal(connects, 1);
}

static void what_is_no_answer_ends_the_connection(void **state)
{
	static const struct {
		const char *name, *bytes;
	} rows[] = {
		{ "HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n" },
		{ "an answer that nobody asked for", "+PONG\r\n+PONG\r\n" },
		{ "a length that overflows", "$99999999999999999999\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct redis_link *link = ready_link();
		assert_true(ask(link));
		turn();
		says(rows[i].bytes);
		if (conn.open)
			fail_msg("still open after %s", rows[i].name);
		assert_int_equal(told.answered + told.lost, 1);
		assert_false(redis_link_ready(link));
	}
}

static void what_is_too_much_is_not_sent(void **state)
{
	struct redis_link *link = ready_link();
	uint32_t sent = 0;

	(void)state;
	while (sent <= REDIS_IN_FLIGHT_MAX && ask(link)) {
		sent++;
		if (sent % 128 == 0) {
			turn();
			conn.written_len = 0;
		}
	}
	assert_int_equal(sent, REDIS_IN_FLIGHT_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_has_not_all_slots_is_never_ready),
		cmocka_unit_test(what_is_wrong_is_told_once_per_change),
		cmocka_unit_test(a_link_is_ready_when_its_greeting_and_a_write_were_answered),
		cmocka_unit_test(requests_of_a_tick_leave_in_one_write_and_are_answered_in_order),
		cmocka_unit_test(requests_that_come_while_others_leave_follow_them),
		cmocka_unit_test(who_does_not_want_to_wait_for_the_next_turn_flushes),
		cmocka_unit_test(late_answers_stop_all_until_one_probe_alone_was_answered_in_time),
		cmocka_unit_test(a_tick_that_takes_long_does_not_make_the_server_late),
		cmocka_unit_test(what_waits_for_the_server_to_read_is_late),
		cmocka_unit_test(a_slow_server_is_probed_once_at_a_time),
		cmocka_unit_test(an_error_stops_all_and_a_refused_probe_goes_to_the_next_address),
		cmocka_unit_test(what_is_asked_aside_may_be_refused),
		cmocka_unit_test(a_connection_that_was_greeted_is_told_to_be_over_and_no_attempt),
		cmocka_unit_test(who_listens_to_two_channels_is_ready_with_the_second),
		cmocka_unit_test(who_listens_hears_what_is_said_and_asks_whether_anybody_is_there),
		cmocka_unit_test(who_listens_and_is_told_something_else_begins_anew),
		cmocka_unit_test(pauses_grow_to_a_bound_and_differ_between_gateways),
		cmocka_unit_test(after_a_good_connection_the_first_pause_is_short_again),
		cmocka_unit_test(who_gives_no_answer_for_a_second_is_given_up_and_all_is_lost),
		cmocka_unit_test(who_is_slow_but_answers_is_not_silent),
		cmocka_unit_test(a_longer_deadline_is_kept),
		cmocka_unit_test(an_address_that_does_not_answer_is_left_after_a_second),
		cmocka_unit_test(addresses_that_come_later_are_used_at_once),
		cmocka_unit_test(what_is_no_answer_ends_the_connection),
		cmocka_unit_test(what_is_too_much_is_not_sent),
	};

	return cmocka_run_group_tests_name("redis_link", tests, NULL, NULL);
}
