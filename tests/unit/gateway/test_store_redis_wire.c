/* Requests to Redis byte by byte, and answers that are none. */
#include "gateway/store_redis_wire.h"

#include <hiredis/hiredis.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 1 << 20 };

static void a_request_is_a_count_and_its_arguments(void **state)
{
	static const char wanted[] = "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$2\r\n-7\r\n";
	struct redis_buffer buffer = { .most = MOST };

	(void)state;
	redis_put_count(&buffer, 3);
	redis_put(&buffer, SLICE("SET"));
	redis_put(&buffer, SLICE(""));
	redis_put_number(&buffer, -7);
	assert_false(buffer.failed);
	assert_int_equal(buffer.len, sizeof(wanted) - 1);
	assert_memory_equal(buffer.at, wanted, buffer.len);
	redis_buffer_fini(&buffer);
}

static void a_pair_holds_every_64_bit_number(void **state)
{
	static const struct {
		uint64_t value;
		const char *text;
	} rows[] = {
		{ 0, "$1\r\n0\r\n$1\r\n0\r\n" },
		{ 999999999, "$1\r\n0\r\n$9\r\n999999999\r\n" },
		{ 1000000000, "$1\r\n1\r\n$1\r\n0\r\n" },
		{ (UINT64_C(1) << 53) + 1, "$7\r\n9007199\r\n$9\r\n254740993\r\n" },
		{ UINT64_MAX, "$11\r\n18446744073\r\n$9\r\n709551615\r\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct redis_buffer buffer = { .most = MOST };
		redis_put_pair(&buffer, rows[i].value);
		assert_int_equal(buffer.len, strlen(rows[i].text));
		assert_memory_equal(buffer.at, rows[i].text, buffer.len);
		redis_buffer_fini(&buffer);
	}
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
static redisReply *read_in_steps(const char *bytes, size_t step)
{
	redisReader *reader = redisReaderCreate();
	const size_t len = strlen(bytes);
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

static void a_verdict_is_read_however_it_is_split(void **state)
{
	static const char bytes[] = "*6\r\n:2\r\n:1795307724\r\n:3\r\n:250000000\r\n:1\r\n:33\r\n";

	(void)state;
	for (size_t step = 1; step <= sizeof(bytes); step++) {
		struct redis_verdict verdict;
		redisReply *reply = read_in_steps(bytes, step);
		assert_non_null(reply);
		assert_true(redis_read_verdict(reply, &verdict));
		assert_int_equal(verdict.code, 2);
		assert_int_equal(verdict.server_s, 1795307724);
		assert_int_equal(verdict.wait_ns, 3250000000);
		assert_int_equal(verdict.scope, 1);
		assert_int_equal(verdict.over, 33);
		freeReplyObject(reply);
	}
}

static void what_is_no_verdict_is_refused(void **state)
{
	static const char *const rows[] = {
		"+OK\r\n",
		"$-1\r\n",
		"*-1\r\n",
		"*0\r\n",
		":0\r\n",
		"-ERR no\r\n",
		"*5\r\n:0\r\n:1\r\n:0\r\n:0\r\n:0\r\n",
		"*7\r\n:0\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
		"*6\r\n:7\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
		"*6\r\n:-1\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
		"*6\r\n:0\r\n:-1\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
		"*6\r\n:0\r\n:1\r\n:0\r\n:1000000000\r\n:0\r\n:0\r\n",
		"*6\r\n:0\r\n:1\r\n:0\r\n:0\r\n:4\r\n:0\r\n",
		"*6\r\n$1\r\n0\r\n:1\r\n:0\r\n:0\r\n:0\r\n:0\r\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct redis_verdict verdict;
		redisReply *reply = read_in_steps(rows[i], 4096);
		assert_non_null(reply);
		if (redis_read_verdict(reply, &verdict))
			fail_msg("taken for a verdict: %s", rows[i]);
		freeReplyObject(reply);
	}
}

static void a_wait_beyond_64_bits_saturates(void **state)
{
	struct redis_verdict verdict;
	redisReply *reply = read_in_steps(
		"*6\r\n:1\r\n:1\r\n:9007199254740991\r\n:999999999\r\n:0\r\n:0\r\n", 4096);

	(void)state;
	assert_non_null(reply);
	assert_true(redis_read_verdict(reply, &verdict));
	assert_true(verdict.wait_ns == UINT64_MAX);
	freeReplyObject(reply);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_a_count_and_its_arguments),
		cmocka_unit_test(a_pair_holds_every_64_bit_number),
		cmocka_unit_test(a_buffer_grows_up_to_its_bound_and_no_further),
		cmocka_unit_test(a_verdict_is_read_however_it_is_split),
		cmocka_unit_test(what_is_no_verdict_is_refused),
		cmocka_unit_test(a_wait_beyond_64_bits_saturates),
	};

	return cmocka_run_group_tests_name("store_redis_wire", tests, NULL, NULL);
}
