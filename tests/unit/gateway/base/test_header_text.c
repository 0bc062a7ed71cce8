#include "gateway/base/header_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { LONGEST = 50 };

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

static void the_end_of_a_value_is_found_at_every_place(void **state)
{
	char text[LONGEST];

	(void)state;
	for (size_t len = 0; len <= LONGEST; len++) {
		(void)memset(text, 'v', sizeof(text));
		assert_ptr_equal(header_text_end(text, text + len), text + len);
		for (size_t place = 0; place < len; place++)
			for (unsigned byte = 0; byte < 256; byte++) {
				(void)memset(text, 'v', sizeof(text));
				text[place] = (char)byte;
				text[len - 1] = place == len - 1 ? text[place] : '\n';
				const char *end = header_text_end(text, text + len);
				const size_t want = !may_be_in_value(byte) ? place
						    : place == len - 1     ? len
									   : len - 1;
				if (end != text + want)
					fail_msg("0x%02x at %zu of %zu: %td", byte, place, len,
						 end - text);
			}
	}
}

static bool may_be_in_name(unsigned byte)
{
	return byte != '\0' && strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
				      "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
				      (int)byte) != NULL;
}

static void a_name_is_a_token(void **state)
{
	char text[LONGEST];

	(void)state;
	for (size_t len = 1; len <= LONGEST; len++)
		for (size_t place = 0; place < len; place++)
			for (unsigned byte = 0; byte < 256; byte++) {
				(void)memset(text, 'n', sizeof(text));
				text[place] = (char)byte;
				if (header_text_is_name(slice_of(text, len)) !=
				    may_be_in_name(byte))
					fail_msg("0x%02x at %zu of %zu", byte, place, len);
			}
}

static void nothing_is_a_value_but_no_name(void **state)
{
	(void)state;
	assert_true(header_text_is_value(SLICE("")));
	assert_false(header_text_is_name(SLICE("")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_control_character_is_found_at_every_place_of_a_value),
		cmocka_unit_test(a_tab_hides_nothing_behind_it),
		cmocka_unit_test(the_end_of_a_value_is_found_at_every_place),
		cmocka_unit_test(a_name_is_a_token),
		cmocka_unit_test(nothing_is_a_value_but_no_name),
	};
	return cmocka_run_group_tests_name("header_text", tests, NULL, NULL);
}
