#include "codec/json/json_read.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void strings_are_compared_by_meaning(void **state)
{
	static const struct {
		const char *raw, *plain;
		bool eq;
	} rows[] = {
		{ "role", "role", true },
		{ "r\\u006fle", "role", true },
		{ "\\u0072\\u006f\\u006c\\u0065", "role", true },
		{ "r\\u006fles", "role", false },
		{ "r\\u006f", "role", false },
		{ "\\ud83d\\ude00", "\xf0\x9f\x98\x80", true },
		{ "\\b\\f\\n\\r\\t\\/\\\\\\\"", "\b\f\n\r\t/\\\"", true },
		{ "\\\\n", "\\n", true },
		{ "\\n", "\\n", false },
		{ "", "", true },
		{ "a", "", false },
		{ "\\u20ac", "\xe2\x82\xac", true },
		{ "\\u00E9", "\xc3\xa9", true },
	};
	struct arena_pool pool = { 0 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 4096);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct slice raw = slice_str(rows[i].raw), plain = slice_str(rows[i].plain);
		assert_int_equal(json_str_eq(raw, plain), rows[i].eq);
		assert_int_equal(slice_eq(json_str_plain(raw, &arena), plain), rows[i].eq);
	}
	assert_true(json_str_same(SLICE("a\\u0062c"), SLICE("\\u0061bc")));
	assert_true(json_str_same(SLICE("abc"), SLICE("ab\\u0063")));
	assert_false(json_str_same(SLICE("abc"), SLICE("ab\\u0064")));
	assert_false(json_str_same(SLICE("a\\u0062"), SLICE("a\\u0062c")));
	struct slice clean = SLICE("clean");
	assert_ptr_equal(json_str_plain(clean, &arena).at, clean.at); /* no copy without need */
	arena_give(&arena);
	arena_init(&arena, &pool, 1);
	assert_true(slice_absent(json_str_plain(SLICE("a\\nb"), &arena)));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void numbers_are_integers_by_value_not_by_spelling(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		int64_t value;
	} rows[] = {
		{ "0", true, 0 },
		{ "-0", true, 0 },
		{ "-0.0e5", true, 0 },
		{ "0e999999999999999999999", true, 0 },
		{ "100.0", true, 100 },
		{ "1e2", true, 100 },
		{ "1E+2", true, 100 },
		{ "1.5e1", true, 15 },
		{ "1000e-1", true, 100 },
		{ "0.0001e6", true, 100 },
		{ "-12.50e1", true, -125 },
		{ "9223372036854775807", true, INT64_MAX },
		{ "-9223372036854775808", true, INT64_MIN },
		{ "9223372036854775807.000", true, INT64_MAX },
		{ "9223372036854775808", false, 0 },
		{ "-9223372036854775809", false, 0 },
		{ "18446744073709551616", false, 0 },
		{ "1e19", false, 0 },
		{ "1e999999999999999999999", false, 0 },
		{ "1e-999999999999999999999", false, 0 },
		{ "1.5", false, 0 },
		{ "0.1", false, 0 },
		{ "1e-1", false, 0 },
		{ "10e-2", false, 0 },
		{ "123456789012345678901234567890", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		int64_t value = 42;
		bool ok = json_to_int64(slice_str(rows[i].text), &value);
		if (ok != rows[i].ok || value != (ok ? rows[i].value : 42))
			fail_msg("%s: %d %lld", rows[i].text, ok, (long long)value);
	}
}

static void integers_of_any_size_are_told_from_fractions(void **state)
{
	static const struct {
		const char *text;
		bool integer;
	} rows[] = {
		{ "0", true },
		{ "-0.0", true },
		{ "0e-5", true },
		{ "100.0", true },
		{ "1e99", true },
		{ "-123456789012345678901234567890", true },
		{ "1.5e1", true },
		{ "1.5", false },
		{ "1e-1", false },
		{ "10e-2", false },
		{ "15e-1", false },
		{ "1e-999999999999999999999", false },
		{ "1e999999999999999999999", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (json_is_integer(slice_str(rows[i].text)) != rows[i].integer)
			fail_msg("%s", rows[i].text);
}

static void numbers_are_the_doubles_strtod_gives(void **state)
{
	static const char *const texts[] = {
		"0",
		"1",
		"-1",
		"0.3",
		"0.1",
		"1.7976931348623157e308",
		"5e-324",
		"2.5e-5",
		"123456.789e3",
		"0.1000000000000000055511151231257827021181583404541015625",
		"1e22",
		"1e23",
		"9007199254740993",
		"3.14159265358979323846264338327950288419716939937510582097494",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		assert_true(json_to_double(slice_str(texts[i])) == strtod(texts[i], NULL));
	assert_true(isinf(json_to_double(SLICE("1e400"))));
	assert_true(isinf(json_to_double(SLICE("-1e99999999999"))));
	assert_true(json_to_double(SLICE("1e-99999999999")) == 0);
	assert_true(json_to_double(SLICE("0e99999999999")) == 0);
}

/* Every length of digits and every small exponent, so that both sides of what is exact are met. */
static void any_number_of_digits_is_rounded_right(void **state)
{
	uint64_t digits = 1;
	char text[48];

	(void)state;
	for (uint32_t i = 0; i < 20000; i++) {
		digits = digits * 6364136223846793005ull + 1442695040888963407ull;
		uint64_t shown = digits >> (i % 60);
		int exponent = (int)(digits >> 20 & 63) - 32, point = (int)(digits >> 30 & 3);
		if (point == 0)
			(void)sprintf(text, "-%llue%d", (unsigned long long)shown, exponent);
		else
			(void)sprintf(text, "%llu.%0*llue%d", (unsigned long long)(shown >> 20),
				      point, (unsigned long long)(shown & 7), exponent);
		if (json_to_double(slice_str(text)) != strtod(text, NULL))
			fail_msg("%s: %.17g", text, json_to_double(slice_str(text)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strings_are_compared_by_meaning),
		cmocka_unit_test(numbers_are_integers_by_value_not_by_spelling),
		cmocka_unit_test(integers_of_any_size_are_told_from_fractions),
		cmocka_unit_test(numbers_are_the_doubles_strtod_gives),
		cmocka_unit_test(any_number_of_digits_is_rounded_right),
	};
	return cmocka_run_group_tests_name("json_value", tests, NULL, NULL);
}
