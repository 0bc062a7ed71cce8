#include "codec/dialect/dialect_words.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void a_word_is_the_same_in_every_spelling(void **state)
{
	static const struct {
		const char *raw, *word;
		bool same;
	} rows[] = {
		{ "content_filter", "contentfilter", true },
		{ "ContentFilter", "contentfilter", true },
		{ "CONTENT-FILTER", "contentfilter", true },
		{ " content filter ", "contentfilter", true },
		{ "content_filters", "contentfilter", false },
		{ "content_filte", "contentfilter", false },
		{ "1301", "1301", true },
		{ "13010", "1301", false },
		{ "", "contentfilter", false },
		{ "_", "", false },
		{ NULL, "contentfilter", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (words_same(slice_str(rows[i].raw), slice_str(rows[i].word)) != rows[i].same)
			fail_msg("%s, %s", rows[i].raw, rows[i].word);
}

static void what_is_quoted_is_not_said(void **state)
{
	static const struct {
		const char *raw;
		bool said;
	} rows[] = {
		{ "the context length is 9", true },
		{ "The Context Length is 9", true },
		{ "the model's context length is 9", true },
		{ "the models' context length is 9", true },
		{ "'context length'", false },
		{ "the `context length` is", false },
		{ "the \\\"context length\\\" is", false },
		{ "'a' context length 'b'", true },
		{ "'it's a context length'", false },
		{ "'an open context length", false },
		{ "context 'and' length", false },
		{ "''context length''", false },
		{ "", false },
		{ "'", false },
		{ NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (words_say(slice_str(rows[i].raw), SLICE("context length")) != rows[i].said)
			fail_msg("%s", rows[i].raw == NULL ? "NULL" : rows[i].raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_word_is_the_same_in_every_spelling),
		cmocka_unit_test(what_is_quoted_is_not_said),
	};
	return cmocka_run_group_tests_name("dialect_words", tests, NULL, NULL);
}
