#include "gateway/settings/settings_value.h"

#include "codec/base/attr.h"
#include "codec/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void decimals_are_exact_or_refused(void **state)
{
	static const struct {
		const char *text;
		uint32_t places;
		enum value_fault fault;
		uint64_t value;
	} rows[] = {
		{ "0", 9, VALUE_OK, 0 },
		{ "3.0", 6, VALUE_OK, 3000000 },
		{ "0.3", 6, VALUE_OK, 300000 },
		{ "3.75", 6, VALUE_OK, 3750000 },
		{ ".5", 6, VALUE_OK, 500000 },
		{ "5.", 6, VALUE_OK, 5000000 },
		{ "0.000001", 6, VALUE_OK, 1 },
		{ "0.0000010", 6, VALUE_OK, 1 },
		{ "0.0000001", 6, VALUE_TOO_PRECISE, 0 },
		{ "1e-6", 6, VALUE_OK, 1 },
		{ "1E+3", 0, VALUE_OK, 1000 },
		{ "1.5e1", 0, VALUE_OK, 15 },
		{ "1.5", 0, VALUE_TOO_PRECISE, 0 },
		{ "0e999", 9, VALUE_OK, 0 },
		{ "18446744073709551615", 0, VALUE_OK, UINT64_MAX },
		{ "18446744073709551616", 0, VALUE_TOO_LARGE, 0 },
		{ "18446744073.709551615", 9, VALUE_OK, UINT64_MAX },
		{ "18446744074", 9, VALUE_TOO_LARGE, 0 },
		{ "1e19", 0, VALUE_OK, UINT64_C(10000000000000000000) },
		{ "1e20", 0, VALUE_TOO_LARGE, 0 },
		{ "", 6, VALUE_UNREADABLE, 0 },
		{ ".", 6, VALUE_UNREADABLE, 0 },
		{ "-1", 6, VALUE_UNREADABLE, 0 },
		{ "+1", 6, VALUE_UNREADABLE, 0 },
		{ "1.2.3", 6, VALUE_UNREADABLE, 0 },
		{ "1e", 6, VALUE_UNREADABLE, 0 },
		{ "1e1.5", 6, VALUE_UNREADABLE, 0 },
		{ "1e9999999999", 6, VALUE_UNREADABLE, 0 },
		{ "1,5", 6, VALUE_UNREADABLE, 0 },
		{ " 1", 6, VALUE_UNREADABLE, 0 },
		{ "0x10", 6, VALUE_UNREADABLE, 0 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		uint64_t value = 42;
		enum value_fault fault =
			value_decimal(slice_str(rows[i].text), rows[i].places, &value);
		if (fault != rows[i].fault)
			print_error("\"%s\"\n", rows[i].text);
		assert_int_equal(fault, rows[i].fault);
		/* written on success only */
		assert_int_equal(value, fault == VALUE_OK ? rows[i].value : 42);
	}
}

struct number {
	enum setting_type type;
	const char *text;
	uint64_t value;
};

static void units_are_read_and_written(void **state)
{
	static const struct number rows[] = {
		{ TYPE_SIZE, "0", 0 },
		{ TYPE_SIZE, "1000", 1000 },
		{ TYPE_SIZE, "1KiB", 1024 },
		{ TYPE_SIZE, "16MiB", 16 << 20 },
		{ TYPE_SIZE, "3GiB", UINT64_C(3) << 30 },
		{ TYPE_DURATION, "0s", 0 },
		{ TYPE_DURATION, "7ns", 7 },
		{ TYPE_DURATION, "20us", 20 * USEC },
		{ TYPE_DURATION, "20ms", 20 * MSEC },
		{ TYPE_DURATION, "55s", 55 * SEC },
		{ TYPE_DURATION, "3m", 180 * SEC },
		{ TYPE_DURATION, "5h", 18000 * SEC },
		{ TYPE_DURATION, "1d", 86400 * SEC },
		{ TYPE_USD, "5", 5000000000 },
		{ TYPE_USD, "0.000000001", 1 },
		{ TYPE_USD, "1000.05", 1000050000000 },
		{ TYPE_PRICE, "3.75", 3750000 },
		{ TYPE_COUNT, "60", 60 },
		{ TYPE_BOOL, "true", 1 },
		{ TYPE_BOOL, "false", 0 },
	};
	char text[64];
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		uint64_t value = 42;
		assert_int_equal(value_number(rows[i].type, slice_str(rows[i].text), &value),
				 VALUE_OK);
		assert_int_equal(value, rows[i].value);
		value_format(rows[i].type, value, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
}

static void other_ways_to_write_a_number_are_read(void **state)
{
	static const struct number rows[] = {
		{ TYPE_SIZE, "1B", 1 },         { TYPE_DURATION, "600s", 600 * SEC },
		{ TYPE_BOOL, "True", 1 },       { TYPE_BOOL, "FALSE", 0 },
		{ TYPE_AUTO_COUNT, "auto", 0 }, { TYPE_AUTO_COUNT, "4", 4 },
		{ TYPE_COUNT, "1e3", 1000 },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		uint64_t value = 42;
		assert_int_equal(value_number(rows[i].type, slice_str(rows[i].text), &value),
				 VALUE_OK);
		assert_int_equal(value, rows[i].value);
	}
}

static void wrong_units_are_refused(void **state)
{
	static const struct {
		enum setting_type type;
		const char *text;
		enum value_fault fault;
	} rows[] = {
		{ TYPE_SIZE, "", VALUE_UNREADABLE },
		{ TYPE_SIZE, "MiB", VALUE_UNREADABLE },
		{ TYPE_SIZE, "16MB", VALUE_UNREADABLE },
		{ TYPE_SIZE, "16mib", VALUE_UNREADABLE },
		{ TYPE_SIZE, "16 MiB", VALUE_UNREADABLE },
		{ TYPE_SIZE, "1.5MiB", VALUE_UNREADABLE },
		{ TYPE_SIZE, "18446744073709551616", VALUE_TOO_LARGE },
		{ TYPE_SIZE, "17179869184GiB", VALUE_TOO_LARGE },
		{ TYPE_DURATION, "", VALUE_UNREADABLE },
		{ TYPE_DURATION, "30", VALUE_UNREADABLE },
		{ TYPE_DURATION, "30sec", VALUE_UNREADABLE },
		{ TYPE_DURATION, "1h30m", VALUE_UNREADABLE },
		{ TYPE_DURATION, "-1s", VALUE_UNREADABLE },
		{ TYPE_DURATION, "999999999d", VALUE_TOO_LARGE },
		{ TYPE_BOOL, "yes", VALUE_UNREADABLE },
		{ TYPE_BOOL, "1", VALUE_UNREADABLE },
		{ TYPE_AUTO_COUNT, "automatic", VALUE_UNREADABLE },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		uint64_t value = 42;
		assert_int_equal(value_number(rows[i].type, slice_str(rows[i].text), &value),
				 rows[i].fault);
		assert_int_equal(value, 42);
	}
}

static void texts_have_their_forms(void **state)
{
	static const struct {
		enum setting_type type;
		const char *text;
		bool fine;
	} rows[] = {
		{ TYPE_ID, "acme/prod:1", true },
		{ TYPE_ID, "two words", false },
		{ TYPE_ID, "quo\"te", false },
		{ TYPE_ID, "back\\slash", false },
		{ TYPE_ID, "\xc3\xa9", false },
		{ TYPE_GLOB, "claude-*", true },
		{ TYPE_TEXT, "\xc3\xa9t\xc3\xa9 2026", true },
		{ TYPE_TEXT, "a\nb", false },
		{ TYPE_TEXT, "a\x7f", false },
		{ TYPE_DATE, "2026-10-21", true },
		{ TYPE_DATE, "2026-10-2", false },
		{ TYPE_DATE, "2026/10/21", false },
		{ TYPE_DATE, "2026-10-21\n", false },
		{ TYPE_SHA256, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		  true },
		{ TYPE_SHA256, "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeF",
		  false },
		{ TYPE_SHA256, "0123", false },
		{ TYPE_ORIGIN, "https://app.example", true },
		{ TYPE_ORIGIN, "http://localhost:3000", true },
		{ TYPE_ORIGIN, "vscode-webview://abc", true },
		{ TYPE_ORIGIN, "null", true },
		{ TYPE_ORIGIN, "https://app.example/", false },
		{ TYPE_ORIGIN, "https://", false },
		{ TYPE_ORIGIN, "app.example", false },
		{ TYPE_ORIGIN, "https:app.example", false },
		{ TYPE_FRONT, "sampling", true },
		{ TYPE_FRONT, "Sampling", false },
		{ TYPE_HEADER_NAME, "X-Team", true },
		{ TYPE_HEADER_NAME, "x_%'!", true },
		{ TYPE_HEADER_NAME, "", false },
		{ TYPE_HEADER_NAME, "X Team", false },
		{ TYPE_HEADER_NAME, "X-Team:", false },
		{ TYPE_HEADER_NAME, "X-T\xc3\xa9", false },
		{ TYPE_HEADER_VALUE, "Bearer a\tb \xc3\xa9", true },
		{ TYPE_HEADER_VALUE, "a\r\nX-Header: 1", false },
		{ TYPE_HEADER_VALUE, "a\x7f", false },
		{ TYPE_HEADER_VALUE, " a", false },
		{ TYPE_HEADER_VALUE, "a\t", false },
		{ TYPE_SECRET, "sk-ant-\x7e", true },
		{ TYPE_SECRET, "two words", false },
		{ TYPE_SECRET, "line\r\nX-Header: 1", false },
	};
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const char *fault = value_text_fault(rows[i].type, slice_str(rows[i].text));
		if ((fault == NULL) != rows[i].fine)
			print_error("\"%s\"\n", rows[i].text);
		assert_int_equal(fault == NULL, rows[i].fine);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimals_are_exact_or_refused),
		cmocka_unit_test(units_are_read_and_written),
		cmocka_unit_test(other_ways_to_write_a_number_are_read),
		cmocka_unit_test(wrong_units_are_refused),
		cmocka_unit_test(texts_have_their_forms),
	};
	return cmocka_run_group_tests_name("settings_value", tests, NULL, NULL);
}
