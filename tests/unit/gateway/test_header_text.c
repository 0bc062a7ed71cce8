#include "gateway/header_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LONGEST = 26 };

static bool may_be_in_value(unsigned byte)
{
	return byte == '\t' || (byte >= 0x20 && byte != 0x7f);
}

static void a_control_character_is_found_at_every_place_of_a_value(void **state)
{
	char text[LONGEST];

	(void)state;
	for (size_t len = 1; len <= LONGEST; len++)
		for (size_t place = 0; place < len; place++)
			for (unsigned byte = 0; byte < 256; byte++) {
				(void)memset(text, 'v', sizeof(text));
				text[place] = (char)byte;
				if (header_text_is_value(slice_of(text, len)) !=
				    may_be_in_value(byte))
					fail_msg("0x%02x at %zu of %zu", byte, place, len);
			}
}

static void a_tab_hides_nothing_behind_it(void **state)
{
	char text[LONGEST];

	(void)state;
	for (size_t place = 1; place < LONGEST; place++) {
		(void)memset(text, 'v', sizeof(text));
		text[0] = '\t';
		assert_true(header_text_is_value(slice_of(text, LONGEST)));
		text[place] = '\0';
		assert_false(header_text_is_value(slice_of(text, LONGEST)));
	}
}

static void a_name_is_a_token(void **state)
{
	static const char others[] = "\"(),/:;<=>?@[\\]{} \t\x7f\x80\xff"; /* and its NUL */
	char text[] = "content-type";

	(void)state;
	assert_true(header_text_is_name(SLICE("!#$%&'*+-.^_`|~09AZaz")));
	assert_false(header_text_is_name(SLICE("")));
	for (size_t i = 0; i < sizeof(others); i++)
		for (size_t place = 0; place < sizeof(text) - 1; place++) {
			const char before = text[place];
			text[place] = others[i];
			assert_false(header_text_is_name(slice_of(text, sizeof(text) - 1)));
			text[place] = before;
		}
	assert_true(header_text_is_value(SLICE("")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_control_character_is_found_at_every_place_of_a_value),
		cmocka_unit_test(a_tab_hides_nothing_behind_it),
		cmocka_unit_test(a_name_is_a_token),
	};
	return cmocka_run_group_tests_name("header_text", tests, NULL, NULL);
}
