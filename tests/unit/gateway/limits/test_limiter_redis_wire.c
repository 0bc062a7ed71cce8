/* What limits.lua answers, byte by byte, and answers that are none. */
#include "codec/base/clock.h"
#include "gateway/limits/limiter_redis_wire.h"
#include "tests/unit/gateway/redis/redis_reply_rig.h"

#include <string.h>

static void a_verdict_is_read_however_it_is_split(void **state)
{
	static const char bytes[] = "$34\r\n\2\1"
				    "\41\0\0\0"
				    "\314\112\2\153"
				    "\3\0\0\0\200\262\346\16"
				    "epoch--1epoch--2\r\n";

	(void)state;
	for (size_t step = 1; step <= sizeof(bytes); step++) {
		struct limiter_verdict verdict;
		redisReply *reply = read_in_steps(bytes, sizeof(bytes) - 1, step);
		assert_non_null(reply);
		assert_true(limiter_read_verdict(reply, 2, false, &verdict));
		assert_int_equal(verdict.code, 2);
		assert_int_equal(verdict.server_s, 1795312332);
		assert_int_equal(verdict.wait_ns, 3250000000);
		assert_int_equal(verdict.scope, 1);
		assert_int_equal(verdict.over, 33);
		assert_memory_equal(verdict.epochs, "epoch--1epoch--2", 16);
		freeReplyObject(reply);
	}
}

/* A claim that is told what is left has it behind all else. */
static void what_is_left_is_read_where_it_was_asked_for(void **state)
{
	static const char bytes[] = "$46\r\n\0\0\0\0\0\0\314\112\2\153\0\0\0\0\0\0\0\0epoch--1"
				    "\5\0\0\0"
				    "\3\0\0\0\7\0\0\0\4\0\0\0\10\0\0\0\r\n";
	struct limiter_verdict verdict;
	struct limiter_told told;
	redisReply *reply = read_in_steps(bytes, sizeof(bytes) - 1, 4096);

	(void)state;
	assert_non_null(reply);
	assert_false(limiter_read_verdict(reply, 1, false, &verdict));
	assert_true(limiter_read_verdict(reply, 1, true, &verdict));
	limiter_read_left(reply, 1, verdict.server_s, &told);
	assert_true(told.now_ns == UINT64_C(1795312332000000005));
	assert_true(told.free_at[0].requests == 3000000007);
	assert_true(told.free_at[0].tokens == 4000000008);
	freeReplyObject(reply);
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
		ROW("$26\r\n" FRONT("\1") "\3\0\0\0\7\0\0\0epoch--1\r\n", 3000000007, 0, 0),
		ROW("$26\r\n" FRONT("\4") "\3\0\0\0\7\0\0\0epoch--1\r\n", 0, 3000000007, 0),
		ROW("$26\r\n" FRONT("\5") "\3\0\0\0\7\0\0\0epoch--1\r\n", 0, 3000000007, 0),
		ROW("$34\r\n" FRONT("\7") "\3\0\0\0\7\0\0\0\5\0\0\0\1\0\0\0epoch--1\r\n", 0,
		    3000000007, 5000000001),
		ROW("$34\r\n" FRONT("\10") "\0\0\0\0\7\0\0\0\5\0\0\0\1\0\0\0epoch--1\r\n", 0, 7,
		    5000000001),
#undef ROW
#undef FRONT
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct limiter_verdict verdict;
		redisReply *reply = read_in_steps(rows[i].bytes, rows[i].len, 4096);
		assert_non_null(reply);
		assert_true(limiter_read_verdict(reply, 1, false, &verdict));
		assert_true(verdict.wait_ns == rows[i].wait_ns);
		assert_true(verdict.left == rows[i].left);
		assert_true(verdict.budget == rows[i].budget);
		assert_memory_equal(verdict.epochs, "epoch--1", 8);
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
		struct limiter_verdict verdict;
		redisReply *reply = read_in_steps(rows[i].bytes, rows[i].len, 4096);
		assert_non_null(reply);
		if (limiter_read_verdict(reply, 1, false, &verdict))
			fail_msg("taken for a verdict: %s", rows[i].name);
		freeReplyObject(reply);
	}
}

/* A state as limits.lua writes it, for a wall clock in January 2026. */
static size_t make_state(uint8_t out[256], uint32_t day, uint32_t month, uint32_t lease_until_s)
{
	struct redis_pack state = { 0 };

	redis_pack_bytes(&state, "epochday", LIMITER_EPOCH_BYTES);
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
		redis_pack_bytes(&state, "workers8", LIMITER_WORKER_BYTES);
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
	struct limiter_state out;
	char bytes[256];

	(void)state;
	for (uint32_t day = JANUARY_1_2026; day < JANUARY_1_2026 + 2; day++) {
		const uint64_t now = noon + (day - JANUARY_1_2026) * 86400 * SEC;
		const uint32_t until_s = (uint32_t)(now / SEC + 1);
		const size_t len = make_state((uint8_t *)bytes, day, JANUARY, until_s);
		const redisReply reply = { .type = REDIS_REPLY_STRING,
					   .str = bytes,
					   .len = (size_t)len };
		assert_true(limiter_read_state(&reply, now, &out));
		assert_int_equal(out.requests.ns, 11);
		assert_int_equal(out.tokens.ns, 12);
		assert_int_equal(out.places, 5);
		assert_int_equal(out.day, 100);
		assert_int_equal(out.day_more, 30);
		assert_int_equal(out.month, 200);
		assert_int_equal(out.month_more, 40);
		/* Another day of another month: what is kept is over. */
		assert_true(limiter_read_state(&reply, now + 70 * 86400 * SEC, &out));
		assert_int_equal(out.day + out.day_more + out.month + out.month_more, 0);
		assert_int_equal(out.places, 0);
	}
}

static void a_state_shows_the_rates_and_the_bursts_that_it_was_written_under(void **state)
{
	enum { FORMER = 112, NOW_S = 1 << 25 };
	struct redis_pack entries = { 0 };
	struct limiter_state out;
	char bytes[256];

	(void)state;
	const size_t len = make_state((uint8_t *)bytes, 1, 1, NOW_S + 1);
	redisReply reply = { .type = REDIS_REPLY_STRING, .str = bytes, .len = len };
	assert_true(limiter_read_state(&reply, NOW_S * SEC, &out)); /* of the version before */
	assert_int_equal(out.requests.written + out.tokens.written, 0);
	for (uint32_t i = 0; i < 2; i++) {
		limiter_pack_units(&entries, i == 0 ? 60 : UINT64_C(60000000000));
		limiter_pack_units(&entries, 10 + i);
		redis_pack_bytes(&entries, "\0\0", 2);
		limiter_pack_no_place(&entries);
	}
	limiter_pack_units(&entries, 0);
	limiter_pack_units(&entries, 500);
	redis_pack_bytes(&entries, "\0\0", 2);
	limiter_pack_no_place(&entries);
	/* now, a second ago, one that is to come, a minute ago: modulo 2^24 */
	redis_pack_bytes(&entries, "\0\0\0\377\377\377\5\0\0\304\377\377", 12);
	limiter_pack_no_place(&entries);
	(void)memmove(bytes + FORMER + entries.len, bytes + FORMER, len - FORMER);
	(void)memcpy(bytes + FORMER, entries.at, entries.len);
	reply.len = len + entries.len;
	assert_true(limiter_read_state(&reply, NOW_S * SEC, &out));
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
	struct limiter_state out = { .day = 1 };
	redisReply reply = { .type = REDIS_REPLY_NIL };
	char bytes[256] = { 0 };

	(void)state;
	assert_true(limiter_read_state(&reply, SEC, &out));
	assert_int_equal(out.day, 0);
	for (size_t len = 0; len < sizeof(bytes); len++) {
		reply = (redisReply){ .type = REDIS_REPLY_STRING, .str = bytes, .len = len };
		assert_int_equal(limiter_read_state(&reply, SEC, &out),
				 len >= 112 && (len - 112) % 20 == 0);
	}
	reply = (redisReply){ .type = REDIS_REPLY_ERROR, .str = bytes, .len = 112 };
	assert_false(limiter_read_state(&reply, SEC, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_verdict_is_read_however_it_is_split),
		cmocka_unit_test(what_is_left_is_read_where_it_was_asked_for),
		cmocka_unit_test(a_verdict_on_money_says_what_is_left),
		cmocka_unit_test(what_is_no_verdict_is_refused),
		cmocka_unit_test(a_state_shows_the_periods_of_the_clock_and_leases_that_last),
		cmocka_unit_test(a_state_shows_the_rates_and_the_bursts_that_it_was_written_under),
		cmocka_unit_test(what_is_no_state_is_refused_and_none_is_zero),
	};

	return cmocka_run_group_tests_name("limiter_redis_wire", tests, NULL, NULL);
}
