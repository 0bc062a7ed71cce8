/* Names are compared as the strictest and the loosest JSON reader behind the gateway would. */
#include "tests/unit/codec/api/api_rig.h"

static const struct name_row {
	const char *raw, *plain;
	enum api_name_match match;
} name_rows[] = {
	{ "model", "model", API_NAME_SAME },
	{ "mod\\u0065l", "model", API_NAME_SAME },
	{ "\\u006d\\u006f\\u0064\\u0065\\u006c", "model", API_NAME_SAME },
	{ "Model", "model", API_NAME_CASE },
	{ "MODEL", "model", API_NAME_CASE },
	{ "\\u004dodel", "model", API_NAME_CASE },
	{ "me\xc5\xbf"
	  "sages",
	  "messages", API_NAME_CASE },
	{ "me\\u017f\\u017fages", "messages", API_NAME_CASE },
	{ "ME\xc5\xbfSAGES", "messages", API_NAME_CASE },
	{ "max_to\xe2\x84\xaa"
	  "ens",
	  "max_tokens", API_NAME_CASE },
	{ "max_to\\u212aens", "max_tokens", API_NAME_CASE },
	{ "", "model", API_NAME_OTHER },
	{ "mode", "model", API_NAME_OTHER },
	{ "models", "model", API_NAME_OTHER },
	{ "model ", "model", API_NAME_OTHER },
	{ "m\xc3\xb6"
	  "del",
	  "model", API_NAME_OTHER },
	{ "model\\u0000", "model", API_NAME_OTHER },
	{ "max-tokens", "max_tokens", API_NAME_OTHER },
	{ "maxTokens", "max_tokens", API_NAME_OTHER },
	/* dotless i, full width, combining: no reader folds these into ASCII */
	{ "provi\xc4\xb1"
	  "der",
	  "provider", API_NAME_OTHER },
	{ "\xef\xbd\x8d"
	  "odel",
	  "model", API_NAME_OTHER },
	{ "m\xcc\x88odel", "model", API_NAME_OTHER },
	{ "\\ud83d\\ude00odel", "model", API_NAME_OTHER },
};

static void a_name_is_the_same_another_case_or_another(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(name_rows); i++) {
		const struct name_row *row = &name_rows[i];
		const enum api_name_match match =
			api_name_match(slice_str(row->raw), slice_str(row->plain));
		if (match != row->match)
			fail_msg("%s and %s: %d", row->raw, row->plain, (int)match);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_the_same_another_case_or_another),
	};

	return cmocka_run_group_tests_name("api_name", tests, NULL, NULL);
}
