/* test_api_count.c - which answers of a provider are a number of tokens. */
#include "codec/api/api_count.h"
#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct count_row {
	uint16_t status;
	const char *body;
	enum api_counted counted;
} count_rows[] = {
	{ 200, "{\"input_tokens\":1}", API_COUNTED },
	{ 200, " {\"novel\":[1],\"input_tokens\" : 12345678901234567890 } \n", API_COUNTED },
	{ 200, "{\"input_tokens\":0}", API_COUNT_FAILED },
	{ 200, "{\"input_tokens\":00}", API_COUNT_FAILED },
	{ 200, "{\"input_tokens\":-3}", API_COUNT_FAILED },
	{ 200, "{\"input_tokens\":1.5}", API_COUNT_FAILED },
	{ 200, "{\"input_tokens\":\"7\"}", API_COUNT_FAILED },
	{ 200, "{\"input_tokens\":null}", API_COUNT_FAILED },
	{ 200, "{}", API_COUNT_FAILED },
	{ 200, "", API_COUNT_FAILED },
	{ 200, "{\"input_tokens\":7", API_COUNT_FAILED },
	{ 200, "{\"input_tokens\":7}{", API_COUNT_FAILED },
	{ 200, "<html>", API_COUNT_FAILED },
	{ 404, "", API_COUNT_MISSING },
	{ 404, "{\"detail\":\"Not Found\"}", API_COUNT_MISSING },
	{ 405, "{\"detail\":\"Method Not Allowed\"}", API_COUNT_MISSING },
	{ 501, "<html>", API_COUNT_MISSING },
	{ 404, "{\"error\":{\"message\":\"model: claude-X\"}}", API_COUNT_FAILED },
	{ 404, "no such model: CLAUDE-x", API_COUNT_FAILED },
	{ 400, "{\"input_tokens\":7}", API_COUNT_FAILED },
	{ 403, "", API_COUNT_FAILED },
	{ 429, "", API_COUNT_FAILED },
	{ 500, "", API_COUNT_FAILED },
	{ 503, "", API_COUNT_FAILED },
};

static void only_a_number_above_nothing_is_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(count_rows); i++) {
		const struct count_row *row = &count_rows[i];
		if (api_count_judge(row->status, slice_str(row->body), SLICE("claude-x")) !=
		    row->counted)
			fail_msg("%d %s", row->status, row->body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_a_number_above_nothing_is_one),
	};

	return cmocka_run_group_tests_name("api_count", tests, NULL, NULL);
}
