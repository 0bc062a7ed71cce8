#include "gateway/telemetry/trace_context.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define ZEROS "00000000000000000000000000000000"

static void a_valid_header_is_kept_and_any_other_is_none(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct {
		const char *name, *header, *kept;
	} rows[] = {
		{ "sampled", "00-" TRACE "-" PARENT "-01", "00-" TRACE "-" PARENT "-01" },
		{ "not sampled", "00-" TRACE "-" PARENT "-00", "00-" TRACE "-" PARENT "-00" },
		{ "a later version", "cc-" TRACE "-" PARENT "-01", "00-" TRACE "-" PARENT "-01" },
		{ "a later version with more", "cc-" TRACE "-" PARENT "-01-what", "00-" TRACE "-" PARENT "-01" },
		{ "a later version that goes on badly", "cc-" TRACE "-" PARENT "-01.what", "" },
		{ "version 00 with more", "00-" TRACE "-" PARENT "-01-what", "" },
		{ "version ff", "ff-" TRACE "-" PARENT "-01", "" },
		{ "a version that is none", "0x-" TRACE "-" PARENT "-01", "" },
		{ "a trace of zeros", "00-" ZEROS "-" PARENT "-01", "" },
		{ "a parent of zeros", "00-" TRACE "-0000000000000000-01", "" },
		{ "upper case", "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01", "" },
		{ "flags that are none", "00-" TRACE "-" PARENT "-0g", "" },
		{ "dashes in wrong places", "00-" TRACE PARENT "--01", "" },
		{ "no dashes", "00_" TRACE "_" PARENT "_01", "" },
		{ "too short", "00-" TRACE "-" PARENT "-0", "" },
		{ "a header that would end", "00-" TRACE "-" PARENT "-\r\n", "" },
		{ "empty", "", "" },
	};
	/* clang-format on */

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char out[TRACEPARENT_LEN + 1] = "left over";
		trace_context_read(slice_str(rows[i].header), out);
		if (strcmp(out, rows[i].kept) != 0)
			fail_msg("%s: \"%s\"", rows[i].name, out);
	}
}

static void no_header_is_none(void **state)
{
	(void)state;
	char out[TRACEPARENT_LEN + 1] = "left over";

	trace_context_read(slice_of(NULL, 0), out);
	assert_string_equal(out, "");
}

static void the_provider_gets_the_callers_trace_under_a_parent_of_ours(void **state)
{
	(void)state;
	char out[TRACEPARENT_LEN + 1];

	trace_context_continue("00-" TRACE "-" PARENT "-01", "0123456789abcdef0011223344556677",
			       out);
	assert_string_equal(out, "00-" TRACE "-0123456789abcdef-01");
}

static void no_trace_is_begun(void **state)
{
	(void)state;
	char out[TRACEPARENT_LEN + 1] = "left over";
	const char none[TRACEPARENT_LEN + 1] = "";

	trace_context_continue(none, "0123456789abcdef0011223344556677", out);
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_valid_header_is_kept_and_any_other_is_none),
		cmocka_unit_test(no_header_is_none),
		cmocka_unit_test(the_provider_gets_the_callers_trace_under_a_parent_of_ours),
		cmocka_unit_test(no_trace_is_begun),
	};
	return cmocka_run_group_tests_name("trace_context", tests, NULL, NULL);
}
