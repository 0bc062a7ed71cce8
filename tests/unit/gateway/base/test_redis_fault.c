#include "gateway/base/redis_fault.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

static void a_cluster_is_known_by_its_errors(void **state)
{
	static const struct {
		const char *error;
		enum store_fault fault;
	} rows[] = {
		{ "MOVED 3999 10.0.0.2:6381", STORE_FAULT_CLUSTER },
		{ "ASK 3999 10.0.0.2:6381", STORE_FAULT_CLUSTER },
		{ "CLUSTERDOWN Hash slot not served", STORE_FAULT_CLUSTER },
		{ "CROSSSLOT Keys in request don't hash to the same slot", STORE_FAULT_CLUSTER },
		{ "TRYAGAIN Multiple keys request during rehashing of slot", STORE_FAULT_CLUSTER },
		{ "READONLY You can't write against a read only replica.", STORE_FAULT_ERROR },
		{ "NOAUTH Authentication required.", STORE_FAULT_ERROR },
		{ "LOADING Redis is loading the dataset in memory", STORE_FAULT_ERROR },
		{ "ERR MOVED is no command", STORE_FAULT_ERROR },
		{ "MOVED", STORE_FAULT_ERROR },
		{ "", STORE_FAULT_ERROR },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (store_fault_of_error(rows[i].error) != rows[i].fault)
			fail_msg("%s", rows[i].error);
}

static void the_other_protocol_is_known_by_its_first_bytes(void **state)
{
	static const struct {
		bool tls;
		struct slice answer;
		enum store_fault fault;
	} rows[] = {
		{ false, SLICE_INIT("\x15\x03\x01\x00\x02\x02\x46"), STORE_FAULT_TLS_PORT },
		{ false, SLICE_INIT("\x16\x03\x03\x00\x31"), STORE_FAULT_TLS_PORT },
		{ false, SLICE_INIT("-ERR Protocol error"), STORE_FAULT_NONE },
		{ false, SLICE_INIT("HTTP/1.1 400 Bad Request"), STORE_FAULT_NONE },
		{ false, SLICE_INIT("\x15"), STORE_FAULT_NONE },
		{ false, SLICE_INIT(""), STORE_FAULT_NONE },
		{ true, SLICE_INIT("+PONG\r\n"), STORE_FAULT_PLAIN_PORT },
		{ true, SLICE_INIT("-NOAUTH Authentication required.\r\n"),
		  STORE_FAULT_PLAIN_PORT },
		{ true, SLICE_INIT("\x15\x03\x01\x00\x02\x02\x46"), STORE_FAULT_NONE },
		{ true, SLICE_INIT("HTTP/1.1 400 Bad Request"), STORE_FAULT_NONE },
		{ true, SLICE_INIT(""), STORE_FAULT_NONE },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		assert_int_equal(store_fault_of_answer(rows[i].tls, rows[i].answer), rows[i].fault);
}

static void every_fault_has_a_label_and_words(void **state)
{
	(void)state;
	for (enum store_fault fault = STORE_FAULT_NONE + 1; fault < STORE_FAULTS; fault++) {
		assert_true(slice_str(store_fault_label(fault)).len != 0);
		assert_true(slice_str(store_fault_words(fault)).len != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cluster_is_known_by_its_errors),
		cmocka_unit_test(the_other_protocol_is_known_by_its_first_bytes),
		cmocka_unit_test(every_fault_has_a_label_and_words),
	};

	return cmocka_run_group_tests_name("redis_fault", tests, NULL, NULL);
}
