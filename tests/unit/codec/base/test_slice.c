#include "codec/base/slice.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void comparing_ignores_case_only_where_it_says_so(void **state)
{
	static const struct {
		const char *a, *b;
		bool eq, eq_nocase, has;
	} rows[] = {
		{ "", "", true, true, true },          { "abc", "abc", true, true, true },
		{ "abc", "ABC", false, true, true },   { "abc", "ab", false, false, true },
		{ "ab", "abc", false, false, false },  { "xxabc", "ABC", false, false, true },
		{ "a[c", "a{c", false, false, false }, /* 0x5b and 0x7b differ by the case bit */
		{ "a@", "a`", false, false, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct slice a = slice_str(rows[i].a), b = slice_str(rows[i].b);
		assert_int_equal(slice_eq(a, b), rows[i].eq);
		assert_int_equal(slice_eq_nocase(a, b), rows[i].eq_nocase);
		assert_int_equal(slice_has_nocase(a, b), rows[i].has);
	}
}

/* Long texts are compared eight bytes at a time: each pair of bytes, at each place in eight. */
static void case_is_ignored_of_ascii_letters_only(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++) {
			char one[8] = "\xff@A[`z\x7f", two[8] = "\xff@a[`Z\x7f";
			const bool same = a == b || ((a ^ b) == 0x20 && (a | 0x20) >= 'a' &&
						     (a | 0x20) <= 'z');
			one[(a + b) % 8] = (char)a;
			two[(a + b) % 8] = (char)b;
			assert_int_equal(slice_eq_nocase(slice_of(one, 8), slice_of(two, 8)), same);
		}
}

static void absent_is_not_empty_but_equal_in_bytes(void **state)
{
	(void)state;
	assert_true(slice_absent(slice_str(NULL)));
	assert_false(slice_absent(SLICE("")));
	assert_true(slice_eq(slice_str(NULL), SLICE("")));
}

static void cutting_walks_over_every_part_and_ends_absent(void **state)
{
	struct slice rest = SLICE("a,,bc,");

	(void)state;
	assert_true(slice_eq(slice_cut(&rest, ','), SLICE("a")));
	assert_true(slice_eq(slice_cut(&rest, ','), SLICE("")));
	assert_true(slice_eq(slice_cut(&rest, ','), SLICE("bc")));
	assert_false(slice_absent(rest)); /* the empty part behind the last comma */
	assert_true(slice_eq(slice_cut(&rest, ','), SLICE("")));
	assert_true(slice_absent(rest));
	assert_true(slice_absent(slice_cut(&rest, ',')));
}

static void trimming_takes_spaces_and_tabs_of_both_ends(void **state)
{
	(void)state;
	assert_true(slice_eq(slice_trim(SLICE(" \t a b\t ")), SLICE("a b")));
	assert_true(slice_eq(slice_trim(SLICE(" \t ")), SLICE("")));
	assert_true(slice_eq(slice_trim(SLICE("\na")), SLICE("\na")));
}

static void prefixes_are_compared_byte_by_byte(void **state)
{
	(void)state;
	assert_true(slice_starts(SLICE("Bearer x"), SLICE("Bearer ")));
	assert_false(slice_starts(SLICE("Bear"), SLICE("Bearer ")));
	assert_true(slice_starts(SLICE("x"), SLICE("")));
}

static void only_decimal_digits_that_fit_are_a_number(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t value;
	} rows[] = {
		{ "0", true, 0 },
		{ "007", true, 7 },
		{ "18446744073709551615", true, UINT64_MAX },
		{ "18446744073709551616", false, 0 },
		{ "99999999999999999999999", false, 0 },
		{ "", false, 0 },
		{ "-1", false, 0 },
		{ "+1", false, 0 },
		{ " 1", false, 0 },
		{ "1a", false, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		uint64_t value = 42;
		assert_int_equal(slice_to_u64(slice_str(rows[i].text), &value), rows[i].ok);
		assert_int_equal(value, rows[i].ok ? rows[i].value : 42);
	}
}

static void globs_match_whole_texts(void **state)
{
	static const struct {
		const char *pattern, *text;
		bool match;
	} rows[] = {
		{ "claude-*", "claude-sonnet", true },
		{ "claude-*", "claude-", true },
		{ "claude-*", "xclaude-1", false },
		{ "*", "", true },
		{ "", "", true },
		{ "", "a", false },
		{ "a?c", "abc", true },
		{ "a?c", "ac", false },
		{ "*-4-*", "gpt-4-turbo", true },
		{ "*ab", "aab", true },
		{ "a*b*c", "a-b-b-c", true },
		{ "a*b*c", "a-b-b", false },
		{ "[a]", "a", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		assert_int_equal(slice_glob(slice_str(rows[i].pattern), slice_str(rows[i].text)),
				 rows[i].match);
}

static void a_hostile_glob_ends_soon(void **state)
{
	char pattern[64], text[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(pattern); i++)
		pattern[i] = i % 2 == 0 ? '*' : 'a';
	(void)memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 'b'; /* exponential matchers need the age of the universe here */
	assert_false(slice_glob(slice_of(pattern, sizeof(pattern)), slice_of(text, sizeof(text))));
}

static void edits_are_counted(void **state)
{
	static const struct {
		const char *a, *b;
		size_t edits;
	} rows[] = {
		{ "", "", 0 },       { "", "abc", 3 },           { "abc", "", 3 },
		{ "abc", "abc", 0 }, { "abc", "abd", 1 },        { "abc", "ac", 1 },
		{ "ac", "abc", 1 },  { "kitten", "sitting", 3 }, { "ab", "ba", 2 },
	};
	char longer[SLICE_EDITS_MAX + 1];
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		assert_int_equal(slice_edits(slice_str(rows[i].a), slice_str(rows[i].b)),
				 rows[i].edits);
	(void)memset(longer, 'x', sizeof(longer));
	assert_int_equal(slice_edits(slice_of(longer, sizeof(longer) - 1), SLICE("x")),
			 SLICE_EDITS_MAX - 1);
	assert_true(slice_edits(slice_of(longer, sizeof(longer)), SLICE("x")) == SIZE_MAX);
	assert_true(slice_edits(SLICE("x"), slice_of(longer, sizeof(longer))) == SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comparing_ignores_case_only_where_it_says_so),
		cmocka_unit_test(case_is_ignored_of_ascii_letters_only),
		cmocka_unit_test(absent_is_not_empty_but_equal_in_bytes),
		cmocka_unit_test(cutting_walks_over_every_part_and_ends_absent),
		cmocka_unit_test(trimming_takes_spaces_and_tabs_of_both_ends),
		cmocka_unit_test(prefixes_are_compared_byte_by_byte),
		cmocka_unit_test(only_decimal_digits_that_fit_are_a_number),
		cmocka_unit_test(globs_match_whole_texts),
		cmocka_unit_test(a_hostile_glob_ends_soon),
		cmocka_unit_test(edits_are_counted),
	};
	return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
