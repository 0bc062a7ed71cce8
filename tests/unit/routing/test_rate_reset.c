#include "routing/rate_reset.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint64_t wall = 1790000000 * SEC; /* 2026-09-21T14:13:20Z */

static void every_form_is_read(void **state)
{
	static const struct {
		const char *text;
		nsec_t in;
	} rows[] = {
		{ "2026-09-21T14:13:21Z", 1 * SEC },
		{ "2026-09-21T14:14:20Z", 60 * SEC },
		{ "2026-09-21t14:14:20z", 60 * SEC },
		{ "2026-09-21T14:14:20.999Z", 60 * SEC },
		{ "2026-09-21T16:14:20+02:00", 60 * SEC },
		{ "2026-09-21T08:44:20-05:30", 60 * SEC },
		{ "2026-09-21T14:13:20Z", 0 },
		{ "2024-02-29T00:00:00Z", 0 }, /* long over */
		{ "2026-10-01T00:00:00Z", 812800 * SEC },
		{ "9999-12-31T23:59:59Z", 1000000000 * SEC }, /* as far as it goes */
		{ "6m0s", 360 * SEC },
		{ "20ms", 20 * MSEC },
		{ "1h2m3.5s", 3723 * SEC + 500 * MSEC },
		{ "1.5s", 1500 * MSEC },
		{ "12us", 12 * USEC },
		{ "12\xc2\xb5s", 12 * USEC },
		{ "12\xce\xbcs", 12 * USEC },
		{ "7ns", 7 },
		{ "1d", 86400 * SEC },
		{ "0s", 0 },
		{ "30", 30 * SEC },
		{ "1.25", 1250 * MSEC },
		{ "0", 0 },
		{ "1790000060", 60 * SEC },
		{ "1790000060000", 60 * SEC },
		{ "1789999999", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		nsec_t in = 1;
		if (!rate_reset(slice_str(rows[i].text), wall, &in) || in != rows[i].in)
			fail_msg("%s: %llu", rows[i].text, (unsigned long long)in);
	}
}

static void what_is_none_of_them_is_refused(void **state)
{
	static const char *const texts[] = {
		"",
		" ",
		"s",
		"1x",
		"-1s",
		"1m-1s",
		"1 s",
		"soon",
		"1.2.3",
		"1e3",
		"2026-13-01T00:00:00Z",
		"2026-09-32T00:00:00Z",
		"2026-09-21T25:00:00Z",
		"2026-09-21T14:13:20",
		"2026-09-21T14:13:20+2:00",
		"2026-09-21T14:13:20Zx",
		"2026-09-21",
		"99999999999999999999999s",
		"99999999999999999999999",
		"9999999h9999999h9999999h9999999h",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		nsec_t in = 1;
		if (rate_reset(slice_str(texts[i]), wall, &in))
			fail_msg("\"%s\": %llu", texts[i], (unsigned long long)in);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_read),
		cmocka_unit_test(what_is_none_of_them_is_refused),
	};

	return cmocka_run_group_tests_name("rate_reset", tests, NULL, NULL);
}
