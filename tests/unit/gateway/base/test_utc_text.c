#include "gateway/base/utc_text.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_second_is_written_as_its_date_and_time(void **state)
{
	static const struct {
		uint64_t second;
		const char *text;
	} rows[] = {
		{ 0, "1970-01-01T00:00:00" },
		{ 951782400, "2000-02-29T00:00:00" },
		{ 1735689599, "2024-12-31T23:59:59" },
		{ 1772323200, "2026-03-01T00:00:00" },
		{ 4107542400, "2100-03-01T00:00:00" }, /* no leap year */
		{ 253402300799, "9999-12-31T23:59:59" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char text[UTC_TEXT + 1] = { 0 };
		utc_text(rows[i].second, text);
		assert_string_equal(text, rows[i].text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_second_is_written_as_its_date_and_time),
	};

	return cmocka_run_group_tests_name("utc_text", tests, NULL, NULL);
}
