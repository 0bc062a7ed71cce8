/* A port that gave no answer is asked which protocol it speaks. */
#include "gateway/redis/redis_sniff.h"

#include "tests/unit/gateway/redis/redis_link_rig.h"

static struct {
	uint32_t count;
	enum store_fault fault;
} answer;

static void on_found(struct redis_sniff *sniff, enum store_fault fault)
{
	assert_null(sniff->conn);
	answer.count++;
	answer.fault = fault;
}

static const struct sockaddr_in address = { .sin_family = AF_INET };
static struct redis_sniff sniff;

static void begin(bool tls)
{
	(void)memset(&answer, 0, sizeof(answer));
	loop = (struct net_loop){ .now = SEC };
	conn = (struct net_conn){ .open = false };
	sniff = (struct redis_sniff){ .loop = &loop, .tls = tls, .found = on_found };
	redis_sniff_begin(&sniff, (const struct sockaddr *)&address, sizeof(address));
	redis_sniff_begin(&sniff, (const struct sockaddr *)&address,
			  sizeof(address)); /* one will do */
	opened();
	assert_int_equal(conn.writes, 1);
}

static void what_answers_in_the_other_protocol_is_named(void **state)
{
	(void)state;
	begin(true);
	assert_written("PING\r\n");
	says("-NOAUTH Authentication required.\r\n");
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.fault, STORE_FAULT_PLAIN_PORT);
	assert_false(conn.open);
	begin(false);
	says("\x15\x03\x03");
	assert_int_equal(answer.fault, STORE_FAULT_TLS_PORT);
}

static void what_says_nothing_or_goes_is_nothing(void **state)
{
	(void)state;
	begin(false);
	ended(NET_END_FAILED);
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.fault, STORE_FAULT_NONE);
	begin(false);
	pass(SEC - 1);
	assert_int_equal(answer.count, 0);
	pass(1);
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.fault, STORE_FAULT_NONE);
	assert_false(conn.open);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_answers_in_the_other_protocol_is_named),
		cmocka_unit_test(what_says_nothing_or_goes_is_nothing),
	};

	return cmocka_run_group_tests_name("redis_sniff", tests, NULL, NULL);
}
