#include "codec/json/json_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Each text lies in memory of its own size, so that ASan sees a look behind its end. */
static void numbers_are_guessed_up_to_the_text_s_last_bytes(void **state)
{
	static const struct {
		const char *name, *text;
		bool ok;
		uint64_t value;
		size_t left;
	} rows[] = {
		{ "in the midst", "16,\"cache_read_input_tokens\":0", true, 16, 28 },
		{ "before the last brackets", "16}}", true, 16, 2 },
		{ "before the last byte", "7]", true, 7, 1 },
		{ "zero", "0}", true, 0, 1 },
		{ "18 digits", "123456789012345678}", true, 123456789012345678, 1 },
		{ "18 digits and more text", "123456789012345678,1234", true, 123456789012345678,
		  5 },
		{ "19 digits", "1234567890123456789}", false, 0, 0 },
		{ "the text ends with it", "16", false, 0, 0 },
		{ "18 digits, and the text ends", "123456789012345678", false, 0, 0 },
		{ "a zero in front", "016}", false, 0, 0 },
		{ "a fraction", "16.5}", false, 0, 0 },
		{ "an exponent", "16e2}", false, 0, 0 },
		{ "a large exponent", "16E2}", false, 0, 0 },
		{ "a sign", "-16}", false, 0, 0 },
		{ "another value", "null}", false, 0, 0 },
		{ "nothing", "", false, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const size_t len = strlen(rows[i].text);
		char *text = malloc(len + (len == 0));
		uint64_t value = 0;

		assert_non_null(text);
		(void)memcpy(text, rows[i].text, len);
		struct json_reader r = { .at = text, .end = text + len };
		if (json_guess_uint(&r, &value) != rows[i].ok)
			fail_msg("%s: %s", rows[i].name, rows[i].ok ? "refused" : "taken");
		assert_int_equal(value, rows[i].value);
		assert_int_equal(r.end - r.at, rows[i].ok ? rows[i].left : len);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_guessed_up_to_the_text_s_last_bytes),
	};
	return cmocka_run_group_tests_name("json_fields", tests, NULL, NULL);
}
