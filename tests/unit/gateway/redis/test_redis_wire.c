/* Requests to Redis byte by byte, and answers that are none. */
#include "codec/base/clock.h"
#include "gateway/redis/redis_wire.h"
#include "tests/unit/gateway/redis/redis_reply_rig.h"

#include <stdlib.h>
#include <string.h>

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
	redis_pack_low(&pack, UINT32_MAX, 8);
	redis_pack_bytes(&pack, "\r\n", 2);
	redis_put_pack(&buffer, &pack);
	assert_int_equal(buffer.len, sizeof(wanted) - 1);
	assert_memory_equal(buffer.at, wanted, buffer.len);
	redis_buffer_fini(&buffer);
}

static void an_argument_may_be_written_in_place(void **state)
{
	static const char wanted[] = "$3\r\nabc\r\n$0\r\n\r\n";
	struct redis_buffer buffer = { .most = 64 };

	(void)state;
	char *at = redis_put_room(&buffer, 3);
	assert_non_null(at);
	(void)memcpy(at, "abc", 3);
	assert_non_null(redis_put_room(&buffer, 0));
	assert_int_equal(buffer.len, sizeof(wanted) - 1);
	assert_memory_equal(buffer.at, wanted, buffer.len);
	assert_null(redis_put_room(&buffer, 64));
	assert_true(buffer.failed);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_a_count_and_its_arguments),
		cmocka_unit_test(an_amount_is_a_billions_worth_and_the_rest),
		cmocka_unit_test(what_is_packed_is_one_argument),
		cmocka_unit_test(an_argument_may_be_written_in_place),
		cmocka_unit_test(a_buffer_grows_up_to_its_bound_and_no_further),
		cmocka_unit_test(the_clock_is_seconds_and_microseconds),
	};

	return cmocka_run_group_tests_name("redis_wire", tests, NULL, NULL);
}
