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

static void what_is_used_up_sets_the_wait(void **state)
{
	enum { FAMILIES = 3 };
	static const struct {
		const char *name;
		struct {
			const char *remaining, *reset;
		} rates[FAMILIES]; /* requests, tokens, input tokens */
		nsec_t wait;
	} rows[] = {
		{ "nothing was sent", { { NULL, NULL } }, 0 },
		{ "the one that is used up", { { "0", "6m0s" }, { "9999", "1s" } }, 360 * SEC },
		{ "wherever it stands", { { "7", "1s" }, { " 0 ", "90s" } }, 90 * SEC },
		{ "both are: both have to be renewed",
		  { { "0", "1s" }, { "0", "6m0s" } },
		  360 * SEC },
		{ "neither is: the shorter", { { "1", "6m0s" }, { "20", "1.5s" } }, 1500 * MSEC },
		{ "nobody says what remains", { { NULL, "20" }, { NULL, "10" } }, 10 * SEC },
		{ "one family alone", { { NULL, NULL }, { "3", "12ms" } }, 12 * MSEC },
		{ "three", { { "1", "1s" }, { "1", "2s" }, { "0", "3s" } }, 3 * SEC },
		{ "used up, and no word of when", { { "0", NULL }, { "5", "4s" } }, 4 * SEC },
		{ "used up, and already renewed", { { "0", "0s" }, { "5", "4s" } }, 4 * SEC },
		{ "a remainder that is no number", { { "none", "6m0s" }, { "5", "4s" } }, 4 * SEC },
		{ "as a date", { { "0", "2026-09-21T14:14:20Z" } }, 60 * SEC },
		{ "in milliseconds since the epoch", { { "0", "1790000060000" } }, 60 * SEC },
		{ "words", { { "0", "soon" } }, 0 },
		{ "never", { { "0", "9999-12-31T23:59:59Z" } }, 30 * 86400 * SEC },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct rate_header rates[RATE_KINDS] = { 0 };
		for (size_t f = 0; f < FAMILIES; f++) {
			rates[f].remaining = slice_str(rows[i].rates[f].remaining);
			rates[f].reset = slice_str(rows[i].rates[f].reset);
		}
		const nsec_t wait = rate_reset_wait(rates, wall);
		if (wait != rows[i].wait)
			fail_msg("%s: %llu", rows[i].name, (unsigned long long)wait);
	}
	assert_int_equal(rate_reset_wait(NULL, wall), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_is_read),
		cmocka_unit_test(what_is_none_of_them_is_refused),
		cmocka_unit_test(what_is_used_up_sets_the_wait),
	};

	return cmocka_run_group_tests_name("rate_reset", tests, NULL, NULL);
}
