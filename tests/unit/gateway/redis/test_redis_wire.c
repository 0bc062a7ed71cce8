/* Requests to Redis byte by byte, and answers that are none. */
#include "codec/base/clock.h"
#include "gateway/redis/redis_wire.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1 << 20 };

static void a_request_is_a_count_and_its_arguments(void **state)
{
	static const char wanted[] = "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$10\r\n4294967295\r\n";
	struct redis_buffer buffer = { .most = MOST };

	(void)state;
	redis_put_count(&buffer, 3);
	redis_put(&buffer, SLICE("SET"));
	redis_put(&buffer, SLICE(""));
	redis_put_number(&buffer, UINT32_MAX);
	assert_false(buffer.failed);
	assert_int_equal(buffer.len, sizeof(wanted) - 1);
	assert_memory_equal(buffer.at, wanted, buffer.len);
	redis_buffer_fini(&buffer);
}

static void an_amount_is_a_billions_worth_and_the_rest(void **state)
{
	static const struct {
		uint64_t value;
		uint8_t bytes[8];
	} rows[] = {
		{ 0, { 0 } },
		{ 999999999, { 0, 0, 0, 0, 0xff, 0xc9, 0x9a, 0x3b } },
		{ 1000000000, { 1 } },
		{ (UINT64_C(1) << 53) + 1, { 0x5f, 0x70, 0x89, 0, 0x01, 0x0a, 0x2f, 0x0f } },
		{ UINT64_C(4294967295000000001), { 0xff, 0xff, 0xff, 0xff, 1 } },
		{ UINT64_C(5000000000000000001), { 0xff, 0xff, 0xff, 0xff, 1 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct redis_pack pack = { 0 };
		redis_pack_amount(&pack, rows[i].value);
		assert_int_equal(pack.len, sizeof(rows[i].bytes));
		assert_memory_equal(pack.at, rows[i].bytes, pack.len);
	}
}

static void what_is_packed_is_one_argument(void **state)
{
	static const char wanted[] = "$15\r\n\7\2\1\0\0\377\377\377\377\0\0\0\0\r\n\r\n";
	struct redis_buffer buffer = { .most = MOST };
	struct redis_pack pack = { 0 };

	(void)state;
	redis_pack_byte(&pack, 7);
	redis_pack_number(&pack, 258);
	redis_pack_unbound(&pack);
	redis_pack_bytes(&pack, "\r\n", 2);
	redis_put_pack(&buffer, &pack);
	assert_int_equal(buffer.len, sizeof(wanted) - 1);
	assert_memory_equal(buffer.at, wanted, buffer.len);
	redis_buffer_fini(&buffer);
}

static void a_buffer_grows_up_to_its_bound_and_no_further(void **state)
{
	struct redis_buffer buffer = { .most = 20000 };
	char text[10000];

	(void)state;
	(void)memset(text, 'x', sizeof(text));
	redis_put(&buffer, slice_of(text, sizeof(text)));
	assert_false(buffer.failed);
	redis_put(&buffer, slice_of(text, sizeof(text)));
	assert_true(buffer.failed);
	assert_true(buffer.len <= 20000);
	redis_put(&buffer, SLICE("a"));
	assert_true(buffer.failed);
	redis_buffer_clear(&buffer);
	redis_put(&buffer, SLICE("a"));
	assert_false(buffer.failed);
	redis_buffer_fini(&buffer);
}

/* As the link reads: what comes in pieces of `step` bytes. NULL: more is awaited, or a protocol error. */
static redisReply *read_in_steps(const char *bytes, size_t len, size_t step)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;
	int ok = REDIS_OK;

	assert_non_null(reader);
	for (size_t at = 0; at < len && ok == REDIS_OK && reply == NULL; at += step) {
		ok = redisReaderFeed(reader, bytes + at, len - at < step ? len - at : step);
		if (ok == REDIS_OK)
			ok = redisReaderGetReply(reader, &reply);
	}
	redisReaderFree(reader);
	return reply;
}

#define READ(bytes) read_in_steps(bytes, sizeof(bytes) - 1, sizeof(bytes))

static void a_verdict_is_read_however_it_is_split(void **state)
{
	static const char bytes[] = "$34\r\n\2\1"
				    "\41\0\0\0"
				    "\314\112\2\153"
				    "\3\0\0\0\200\262\346\16"
				    "birth--1birth--2\r\n";

	(void)state;
	for (size_t step = 1; step <= sizeof(bytes); step++) {
		struct redis_verdict verdict;
		redisReply *reply = read_in_steps(bytes, sizeof(bytes) - 1, step);
		assert_non_null(reply);
		assert_true(redis_read_verdict(reply, 2, &verdict));
		assert_int_equal(verdict.code, 2);
		assert_int_equal(verdict.server_s, 1795312332);
		assert_int_equal(verdict.wait_ns, 3250000000);
		assert_int_equal(verdict.scope, 1);
		assert_int_equal(verdict.over, 33);
		assert_memory_equal(verdict.births, "birth--1birth--2", 16);
		freeReplyObject(reply);
	}
}

/* A gateway is told what is left, and of a budget that is too small how large it is. */
static void a_verdict_on_money_says_what_is_left(void **state)
{
#define FRONT(code) code "\0\0\0\0\0\314\112\2\153"
	static const struct {
		const char *bytes;
		size_t len;
		uint64_t wait_ns, left, budget;
	} rows[] = {
#define ROW(text, ...) { text, sizeof(text) - 1, __VA_ARGS__ }
		ROW("$26\r\n" FRONT("\1") "\3\0\0\0\7\0\0\0birth--1\r\n", 3000000007, 0, 0),
		ROW("$26\r\n" FRONT("\4") "\3\0\0\0\7\0\0\0birth--1\r\n", 0, 3000000007, 0),
		ROW("$26\r\n" FRONT("\5") "\3\0\0\0\7\0\0\0birth--1\r\n", 0, 3000000007, 0),
		ROW("$34\r\n" FRONT("\7") "\3\0\0\0\7\0\0\0\5\0\0\0\1\0\0\0birth--1\r\n", 0,
		    3000000007, 5000000001),
		ROW("$34\r\n" FRONT("\10") "\0\0\0\0\7\0\0\0\5\0\0\0\1\0\0\0birth--1\r\n", 0, 7,
		    5000000001),
#undef ROW
#undef FRONT
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct redis_verdict verdict;
		redisReply *reply = read_in_steps(rows[i].bytes, rows[i].len, 4096);
		assert_non_null(reply);
		assert_true(redis_read_verdict(reply, 1, &verdict));
		assert_true(verdict.wait_ns == rows[i].wait_ns);
		assert_true(verdict.left == rows[i].left);
		assert_true(verdict.budget == rows[i].budget);
		assert_memory_equal(verdict.births, "birth--1", 8);
		freeReplyObject(reply);
	}
}

#define ZEROS8 "\0\0\0\0\0\0\0\0"
#define ZEROS16 ZEROS8 ZEROS8

/* Each of the right length for one scope but the first rows. */
static void what_is_no_verdict_is_refused(void **state)
{
	static const struct {
		const char *name, *bytes;
		size_t len;
	} rows[] = {
#define ROW(name, text) { name, text, sizeof(text) - 1 }
		ROW("a status", "+OK\r\n"),
		ROW("nil", "$-1\r\n"),
		ROW("no array", "*-1\r\n"),
		ROW("an empty array", "*0\r\n"),
		ROW("a number", ":0\r\n"),
		ROW("an error", "-ERR no\r\n"),
		ROW("nothing in it", "$0\r\n\r\n"),
		ROW("one byte short", "$25\r\n" ZEROS16 ZEROS8 "\0\r\n"),
		ROW("of two scopes", "$34\r\n" ZEROS16 ZEROS16 "\0\0\r\n"),
		ROW("an unknown limit", "$26\r\n\11\0" ZEROS16 ZEROS8 "\r\n"),
		ROW("a small budget that is missing", "$26\r\n\7\0" ZEROS16 ZEROS8 "\r\n"),
		ROW("a budget that fits", "$34\r\n\4\0" ZEROS16 ZEROS16 "\r\n"),
		ROW("a scope that was not asked", "$26\r\n\1\1" ZEROS16 ZEROS8 "\r\n"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct redis_verdict verdict;
		redisReply *reply = read_in_steps(rows[i].bytes, rows[i].len, 4096);
		assert_non_null(reply);
		if (redis_read_verdict(reply, 1, &verdict))
			fail_msg("taken for a verdict: %s", rows[i].name);
		freeReplyObject(reply);
	}
}

static void the_clock_is_seconds_and_microseconds(void **state)
{
	static const char *const not_clocks[] = {
		"*2\r\n$1\r\n1\r\n$7\r\n1000000\r\n",
		"*1\r\n$1\r\n1\r\n",
		"*2\r\n$2\r\n-1\r\n$1\r\n0\r\n",
		"*2\r\n$1\r\nx\r\n$1\r\n0\r\n",
		"*2\r\n$0\r\n\r\n$1\r\n0\r\n",
		"*2\r\n:1\r\n:2\r\n",
		"*2\r\n$18\r\n999999999999999999\r\n$1\r\n0\r\n",
	};
	redisReply *reply = READ("*2\r\n$10\r\n1795312332\r\n$6\r\n000250\r\n");
	uint64_t wall_ns = 0;

	(void)state;
	assert_non_null(reply);
	assert_true(redis_read_time(reply, &wall_ns));
	assert_true(wall_ns == UINT64_C(1795312332000250000));
	freeReplyObject(reply);
	for (size_t i = 0; i < COUNT_OF(not_clocks); i++) {
		reply = read_in_steps(not_clocks[i], strlen(not_clocks[i]), 4096);
		assert_non_null(reply);
		if (redis_read_time(reply, &wall_ns))
			fail_msg("taken for a clock: %s", not_clocks[i]);
		freeReplyObject(reply);
	}
}

/* A state as limits.lua writes it, for a wall clock in January 2026. */
static size_t make_state(uint8_t out[256], uint32_t day, uint32_t month, uint32_t lease_until_s)
{
	struct redis_pack state = { 0 };

	redis_pack_bytes(&state, "birthday", REDIS_BIRTH_BYTES);
	redis_pack_amount(&state, 11);
	redis_pack_amount(&state, 12);
	redis_pack_number(&state, 7);
	redis_pack_number(&state, 1);
	for (uint32_t i = 0; i < 2;
	     i++) { /* today's is where its parity is, yesterday's beside it */
		redis_pack_number(&state, (day & 1) == i ? day : day - 1);
		redis_pack_amount(&state, (day & 1) == i ? 100 : 1);
	}
	for (uint32_t i = 0; i < 2; i++) {
		redis_pack_number(&state, (month & 1) == i ? month : month - 1);
		redis_pack_amount(&state, (month & 1) == i ? 200 : 2);
	}
	for (uint32_t i = 0; i < 2; i++)
		redis_pack_amount(&state, (day & 1) == i ? 30 : 3);
	for (uint32_t i = 0; i < 2; i++)
		redis_pack_amount(&state, (month & 1) == i ? 40 : 4);
	for (uint32_t i = 0; i < 2; i++) { /* the second is over */
		redis_pack_bytes(&state, "workers8", REDIS_WORKER_BYTES);
		redis_pack_number(&state, 1);
		redis_pack_number(&state, 5);
		redis_pack_number(&state, lease_until_s - i);
	}
	(void)memcpy(out, state.at, state.len);
	return state.len;
}

static void a_state_shows_the_periods_of_the_clock_and_leases_that_last(void **state)
{
	enum { JANUARY_1_2026 = 20454, JANUARY = 2026 * 12 };
	const uint64_t noon = (UINT64_C(86400) * JANUARY_1_2026 + 43200) * SEC;
	struct redis_state out;
	char bytes[256];

	(void)state;
	for (uint32_t day = JANUARY_1_2026; day < JANUARY_1_2026 + 2; day++) {
		const uint64_t now = noon + (day - JANUARY_1_2026) * 86400 * SEC;
		const uint32_t until_s = (uint32_t)(now / SEC + 1);
		const size_t len = make_state((uint8_t *)bytes, day, JANUARY, until_s);
		const redisReply reply = { .type = REDIS_REPLY_STRING,
					   .str = bytes,
					   .len = (size_t)len };
		assert_true(redis_read_state(&reply, now, &out));
		assert_int_equal(out.requests.ns, 11);
		assert_int_equal(out.tokens.ns, 12);
		assert_int_equal(out.places, 5);
		assert_int_equal(out.day, 100);
		assert_int_equal(out.day_more, 30);
		assert_int_equal(out.month, 200);
		assert_int_equal(out.month_more, 40);
		/* Another day of another month: what is kept is over. */
		assert_true(redis_read_state(&reply, now + 70 * 86400 * SEC, &out));
		assert_int_equal(out.day + out.day_more + out.month + out.month_more, 0);
		assert_int_equal(out.places, 0);
	}
}

static void a_state_shows_the_rates_and_the_bursts_that_it_was_written_under(void **state)
{
	enum { FORMER = 112, NOW_S = 1 << 25 };
	struct redis_pack entries = { 0 };
	struct redis_state out;
	char bytes[256];

	(void)state;
	const size_t len = make_state((uint8_t *)bytes, 1, 1, NOW_S + 1);
	redisReply reply = { .type = REDIS_REPLY_STRING, .str = bytes, .len = len };
	assert_true(redis_read_state(&reply, NOW_S * SEC, &out)); /* of the version before */
	assert_int_equal(out.requests.written + out.tokens.written, 0);
	for (uint32_t i = 0; i < 2; i++) {
		redis_pack_units(&entries, i == 0 ? 60 : UINT64_C(60000000000));
		redis_pack_units(&entries, 10 + i);
		redis_pack_bytes(&entries, "\0\0", 2);
		redis_pack_no_place(&entries);
	}
	redis_pack_units(&entries, 0);
	redis_pack_units(&entries, 500);
	redis_pack_bytes(&entries, "\0\0", 2);
	redis_pack_no_place(&entries);
	/* now, a second ago, one that is to come, a minute ago: modulo 2^24 */
	redis_pack_bytes(&entries, "\0\0\0\377\377\377\5\0\0\304\377\377", 12);
	redis_pack_no_place(&entries);
	(void)memmove(bytes + FORMER + entries.len, bytes + FORMER, len - FORMER);
	(void)memcpy(bytes + FORMER, entries.at, entries.len);
	reply.len = len + entries.len;
	assert_true(redis_read_state(&reply, NOW_S * SEC, &out));
	assert_int_equal(out.requests.ns, 11);
	assert_int_equal(out.requests.written, 60);
	assert_int_equal(out.requests.bursts[0], 10);
	assert_int_equal(out.requests.ages[0], 0);
	assert_int_equal(out.requests.ages[1], 0);
	assert_true(out.tokens.written == UINT64_C(60000000000));
	assert_int_equal(out.tokens.bursts[0], 11);
	assert_int_equal(out.tokens.bursts[1], 500);
	assert_int_equal(out.tokens.ages[0], 1);
	assert_int_equal(out.tokens.ages[1], 60);
	assert_int_equal(out.places, 5);
}

static void what_is_no_state_is_refused_and_none_is_zero(void **state)
{
	struct redis_state out = { .day = 1 };
	redisReply reply = { .type = REDIS_REPLY_NIL };
	char bytes[256] = { 0 };

	(void)state;
	assert_true(redis_read_state(&reply, SEC, &out));
	assert_int_equal(out.day, 0);
	for (size_t len = 0; len < sizeof(bytes); len++) {
		reply = (redisReply){ .type = REDIS_REPLY_STRING, .str = bytes, .len = len };
		assert_int_equal(redis_read_state(&reply, SEC, &out),
				 len >= 112 && (len - 112) % 20 == 0);
	}
	reply = (redisReply){ .type = REDIS_REPLY_ERROR, .str = bytes, .len = 112 };
	assert_false(redis_read_state(&reply, SEC, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_a_count_and_its_arguments),
		cmocka_unit_test(an_amount_is_a_billions_worth_and_the_rest),
		cmocka_unit_test(what_is_packed_is_one_argument),
		cmocka_unit_test(a_buffer_grows_up_to_its_bound_and_no_further),
		cmocka_unit_test(a_verdict_is_read_however_it_is_split),
		cmocka_unit_test(a_verdict_on_money_says_what_is_left),
		cmocka_unit_test(what_is_no_verdict_is_refused),
		cmocka_unit_test(the_clock_is_seconds_and_microseconds),
		cmocka_unit_test(a_state_shows_the_periods_of_the_clock_and_leases_that_last),
		cmocka_unit_test(a_state_shows_the_rates_and_the_bursts_that_it_was_written_under),
		cmocka_unit_test(what_is_no_state_is_refused_and_none_is_zero),
	};

	return cmocka_run_group_tests_name("redis_wire", tests, NULL, NULL);
}
