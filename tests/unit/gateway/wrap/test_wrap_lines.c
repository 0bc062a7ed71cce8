/* Lines, however they are cut, and those that are too long. */
#include "gateway/wrap/wrap_lines.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 8 };

static const struct row {
	const char *name, *text, *lines; /* of whole lines in brackets, the rest as it is */
} rows[] = {
	{ "lines", "a\nbc\n", "[a\n][bc\n]" },
	{ "an empty line", "\n\n", "[\n][\n]" },
	{ "no end", "a\nbc", "[a\n][bc]" },
	{ "nothing", "", "" },
	{ "CR LF stays", "a\r\nb\r\n", "[a\r\n][b\r\n]" },
	{ "as long as it may be", "1234567\n12345678", "[1234567\n][12345678]" },
	{ "too long", "12345678\na\n", "12345678\n[a\n]" },
	{ "too long, and no end", "a\n1234567890", "[a\n]1234567890" },
	{ "long ones", "123456789abcdef\n123456789abcdef\nb",
	  "123456789abcdef\n123456789abcdef\n[b]" },
};

static void got(void *arg, struct slice bytes, bool whole)
{
	wrap_text_put(arg, whole ? "[" : "");
	wrap_text_add(arg, bytes);
	wrap_text_put(arg, whole ? "]" : "");
}

static void lines_do_not_depend_on_reads(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t step = 1; step < 20; step++) {
			const struct slice text = slice_str(rows[i].text);
			struct wrap_lines lines = { 0 };
			struct wrap_text out = { 0 };
			for (size_t at = 0; at < text.len; at += step) {
				const size_t left = text.len - at;
				wrap_lines_feed(&lines,
						slice_of(text.at + at, left < step ? left : step),
						MAX, got, &out);
			}
			wrap_lines_end(&lines, got, &out);
			if (!slice_eq(wrap_text_slice(&out), slice_str(rows[i].lines)))
				fail_msg("%s, by %zu: %.*s", rows[i].name, step, (int)out.len,
					 out.at);
			wrap_text_free(&out);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_do_not_depend_on_reads),
	};
	return cmocka_run_group_tests_name("wrap_lines", tests, NULL, NULL);
}
