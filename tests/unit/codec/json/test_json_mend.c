#include "codec/json/json_mend.h"

#include "tests/unit/codec/json/json_rig.h"

#include <string.h>

/* What became of `text`, with a NUL behind it; NULL: it could not be mended. */
static const char *mended(const char *text, size_t len, struct json_mend *mend)
{
	static char bytes[1024];

	assert_true(len < sizeof(bytes));
	(void)memcpy(bytes, text, len);
	bytes[len] = '\0';
	return json_mend(bytes, len, NULL, work, mend) ? bytes : NULL;
}

static void what_breaks_a_rule_becomes_strict_json_of_the_same_length(void **state)
{
	static const struct {
		const char *name, *text, *result; /* NULL: it stays as it is */
		uint32_t removed;
	} rows[] = {
		{ "strict", "{\"a\":[1,{\"a\":\"\\ud83d\\ude00\xc3\xa4\"}],\"b\":{}}", NULL, 0 },
		{ "a scalar", " 7 ", NULL, 0 },
		{ "a name twice", "{\"a\":1,\"a\":2}", "{      \"a\":2}", 1 },
		{ "three times", "{\"a\":1,\"b\":0,\"a\":2,\"a\":3}",
		  "{      \"b\":0,      \"a\":3}", 2 },
		{ "spelt with an escape", "{\"a\":1 , \"\\u0061\":2}", "{        \"\\u0061\":2}",
		  1 },
		{ "in a list in an object", "[{\"x\":[{\"a\":{},\"a\":[]}]}]",
		  "[{\"x\":[{       \"a\":[]}]}]", 1 },
		{ "inside what is removed itself", "{\"a\":{\"b\":1,\"b\":2},\"a\":{}}",
		  "{                  \"a\":{}}", 2 },
		{ "the same name in two objects", "[{\"a\":1},{\"a\":2}]", NULL, 0 },
		{ "a mark in front", "\xef\xbb\xbf{}", "   {}", 0 },
		{ "a lone first half", "[\"a\\ud83db\"]", "[\"a\\ufffdb\"]", 0 },
		{ "a lone second half", "[\"\\ude00b\"]", "[\"\\ufffdb\"]", 0 },
		{ "a lone half at the end", "[\"a\\ud83d\",1]", "[\"a\"      ,1]", 0 },
		{ "nothing but halves", "[\"\\ud83d\\ud83d\"]", "[\"\"            ]", 0 },
		{ "a pair that was cut", "[\"a\\ud83d\\ud\"]", "[\"a\"         ]", 0 },
		{ "an escape that was cut", "[\"a\\u00\"]", "[\"a\"    ]", 0 },
		{ "a character that was cut", "[\"a\xf0\x9f\x98\"]", "[\"a\"   ]", 0 },
		{ "bytes that are no character", "[\"\xff\xc3(\xed\xa0\x80|\"]",
		  "[\"?"
		  "?(?"
		  "?"
		  "?|\"]",
		  0 },
		{ "an escaped backslash in front of a letter", "[\"\\\\ud83d\"]", NULL, 0 },
		{ "a name that becomes another one's", "{\"a\\ud83d\":1,\"a\":2}",
		  "{            \"a\":2}", 1 },
	};
	struct json_mend mend;
	struct fault fault;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const size_t len = strlen(rows[i].text);
		const char *result = mended(rows[i].text, len, &mend);
		const char *want = rows[i].result == NULL ? rows[i].text : rows[i].result;
		if (result == NULL || strcmp(result, want) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name,
				 result == NULL ? "nothing" : result, want);
		assert_int_equal(mend.removed, rows[i].removed);
		assert_int_equal(judge(slice_str(result), &fault), ERR_OK);
	}
}

static void what_is_no_json_beyond_that_stays_an_error(void **state)
{
	static const char *const texts[] = {
		"",          "{",    "{\"a\":1,\"a\":2", "[\"a\\",       "[\"a\\u", "[\"\\u00x\"]",
		"[\"\\q\"]", "{} x", "[\"a\x01\"]",      "\xef\xbb\xbf", "\xff",    "{\"a\"}",
		"[1,]",
	};
	struct json_mend mend;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (mended(texts[i], strlen(texts[i]), &mend) != NULL)
			fail_msg("%s was mended", texts[i]);
}

static void it_says_where_members_were_removed(void **state)
{
	char many[16 + 8 * (JSON_MEND_PLACES + 2)] = "{\"b\":[],\"c\":{";
	struct json_mend mend;

	(void)state;
	assert_non_null(mended("{\"b\":[0],\"c\":{\"a\":1,\"a\":2},\"d\":0}", 33, &mend));
	assert_true(json_mend_within(&mend, 13, 26));
	assert_false(json_mend_within(&mend, 5, 8));
	assert_false(json_mend_within(&mend, 31, 32));
	for (int i = 0; i < JSON_MEND_PLACES + 2; i++)
		(void)strcat(many, "\"a\":1,");
	(void)strcat(many, "\"e\":0}}");
	assert_non_null(mended(many, strlen(many), &mend));
	assert_int_equal(mend.removed, JSON_MEND_PLACES + 1);
	assert_true(json_mend_within(&mend, 5, 6)); /* nobody knows */
}

static void too_many_names_or_levels_are_refused(void **state)
{
	enum { NAMES = 4097 };
	static char text[NAMES * 16 + 8];
	char *pen = text + sprintf(text, "{");
	struct json_mend mend;

	(void)state;
	for (int i = 0; i < NAMES; i++)
		pen += sprintf(pen, "%s\"k%d\":1", i == 0 ? "" : ",", i);
	pen += sprintf(pen, "}");
	assert_false(json_mend(text, (size_t)(pen - text), NULL, work, &mend));
	(void)memset(text, '[', 65);
	(void)memset(text + 65, ']', 65);
	assert_false(json_mend(text, 130, NULL, work, &mend));
}

static void white_space_between_tokens_is_left_out(void **state)
{
	struct arena_pool pool = { .keep_max = 1 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 4096);
	const struct slice tight =
		json_tight(SLICE(" { \"a b\\\" c\" :\t[ 1 ,\n\"\\\\\" ] } "), &arena);
	assert_true(slice_eq(tight, SLICE("{\"a b\\\" c\":[1,\"\\\\\"]}")));
	arena_give(&arena);
	arena_init(&arena, &pool, 8);
	assert_true(slice_absent(json_tight(SLICE("[1,2,3,4,5]"), &arena)));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_breaks_a_rule_becomes_strict_json_of_the_same_length),
		cmocka_unit_test(what_is_no_json_beyond_that_stays_an_error),
		cmocka_unit_test(it_says_where_members_were_removed),
		cmocka_unit_test(too_many_names_or_levels_are_refused),
		cmocka_unit_test(white_space_between_tokens_is_left_out),
	};
	return cmocka_run_group_tests_name("json_mend", tests, open_work, close_work);
}
