/* What the tolerant scan finds, and which ids are one. */
#include "gateway/wrap/wrap_json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codec/base/attr.h"

static const struct member_row {
	const char *text, *name, *value; /* NULL: none */
} member_rows[] = {
	{ "{}", "a", NULL },
	{ "{\"a\":1}", "a", "1" },
	{ " {\"b\": 2 , \"a\" : {\"a\":3} }\r\n", "a", "{\"a\":3}" },
	{ "{\"a\":1,\"a\":2}", "a", "2" },
	{ "{\"b\":{\"a\":1}}", "a", NULL },
	{ "{\"b\":\"{\\\"a\\\":1}\",\"a\":0}", "a", "0" },
	{ "{\"\\u0061\":true}", "a", "true" },
	{ "{\"\\u00\":true}", "a", NULL },
	{ "{\"a\":NaN}", "a", "NaN" },
	{ "{\"a\":\"\\\\\"}", "a", "\"\\\\\"" },
	{ "{\"a\":\"\\\\\\\"x\"}", "a", "\"\\\\\\\"x\"" },
	{ "{\"a\":[[[{\"x\":[\"]}\"]}]]]}", "a", "[[[{\"x\":[\"]}\"]}]]]" },
	{ "{\"a\":1,}", "a", NULL },
	{ "{\"a\":1 \"b\":2}", "a", NULL },
	{ "{\"a\"}", "a", NULL },
	{ "{a:1}", "a", NULL },
	{ "[1,\"a\"]", "a", NULL },
};

static void a_member_is_the_last_of_its_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(member_rows); i++) {
		const struct member_row *row = &member_rows[i];
		struct slice object;
		assert_true(wrap_json_whole(slice_str(row->text), &object));
		const struct slice found = wrap_json_member(object, row->name);
		if (!slice_eq(found, slice_str(row->value)) ||
		    slice_absent(found) != (row->value == NULL))
			fail_msg("%s: %.*s", row->text, (int)found.len, found.at);
	}
}

static void what_is_not_one_value_is_none(void **state)
{
	static const char *const texts[] = { "",      " ",       "{",      "{\"a\":1",
					     "{} {}", "{}x",     "\"",     "\"\\\"",
					     "[",     "}",       "{\"}",   "1 2",
					     "[1,2",  "\"a\" ,", "[{\"a]", ":" };
	struct slice value;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		if (wrap_json_whole(slice_str(texts[i]), &value))
			fail_msg("%s", texts[i]);
}

static const struct id_row {
	const char *a, *b;
	bool same;
} id_rows[] = {
	{ "1", "1", true },          { "1", "\"1\"", false },
	{ "0", "-0", true },         { "0", "0.0", true },
	{ "0", "0e1", true },        { "1", "1.0", true },
	{ "10", "1e1", true },       { "1", "-1", false },
	{ "1", "2", false },         { "12", "1", false },
	{ "1.5", "15e-1", true },    { "\"a\"", "\"\\u0061\"", true },
	{ "\"a\"", "\"b\"", false }, { "\"\"", "\"\"", true },
	{ "null", "null", false },   { "123456789012345678901", "123456789012345678902", false },
	{ "01", "1", false },        { "\"\\x\"", "\"x\"", false },
};

static void ids_are_compared_by_what_they_mean(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(id_rows); i++) {
		const struct slice a = slice_str(id_rows[i].a), b = slice_str(id_rows[i].b);
		if (wrap_json_same_id(a, b) != id_rows[i].same ||
		    wrap_json_same_id(b, a) != id_rows[i].same)
			fail_msg("%s and %s", id_rows[i].a, id_rows[i].b);
	}
	assert_false(wrap_json_same_id(slice_of(NULL, 0), slice_of(NULL, 0)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_member_is_the_last_of_its_name),
		cmocka_unit_test(what_is_not_one_value_is_none),
		cmocka_unit_test(ids_are_compared_by_what_they_mean),
	};
	return cmocka_run_group_tests_name("wrap_json", tests, NULL, NULL);
}
