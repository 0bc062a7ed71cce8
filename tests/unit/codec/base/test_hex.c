#include "codec/base/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void expect_digits(uint32_t value)
{
	char digits[9] = "", wanted[9];

	hex_put(digits, value);
	(void)snprintf(wanted, sizeof(wanted), "%08x", value);
	assert_string_equal(digits, wanted);
}

static void a_number_becomes_what_printf_makes_of_it(void **state)
{
	(void)state;
	for (uint32_t digit = 0; digit < 16; digit++)
		for (int place = 0; place < 32; place += 4) {
			expect_digits(digit << place);
			expect_digits(~(digit << place));
		}
	for (uint32_t i = 0, value = 1; i < 10000; i++, value = value * 1664525 + 1013904223)
		expect_digits(value);
}

static void bytes_become_two_digits_each_and_no_more(void **state)
{
	static const uint8_t bytes[] = { 0x00, 0x1f, 0xa0, 0xff };
	char text[10] = "---------";

	(void)state;
	assert_ptr_equal(hex_put_bytes(text, bytes, sizeof(bytes)), text + 8);
	assert_string_equal(text, "001fa0ff-");
	assert_ptr_equal(hex_put_bytes(text, bytes, 0), text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_becomes_what_printf_makes_of_it),
		cmocka_unit_test(bytes_become_two_digits_each_and_no_more),
	};
	return cmocka_run_group_tests_name("hex", tests, NULL, NULL);
}
