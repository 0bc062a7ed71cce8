/* What the tolerant scan finds, and which ids are one. */
#include "codec/json/json_loose.h"

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
		assert_true(json_loose_whole(slice_str(row->text), &object));
		const struct slice found = json_loose_member(object, row->name);
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
		if (json_loose_whole(slice_str(texts[i]), &value))
			fail_msg("%s", texts[i]);
}

static const struct id_row {
	const char *a, *b;
	bool same;
} id_rows[] = {
	{ "1", "1", true },
	{ "1", "\"1\"", false },
	{ "0", "-0", true },
	{ "0", "0.0", true },
	{ "0", "0e1", true },
	{ "1", "1.0", true },
	{ "10", "1e1", true },
	{ "1", "-1", false },
	{ "1", "2", false },
	{ "12", "1", false },
	{ "1.5", "15e-1", true },
	{ "\"a\"", "\"\\u0061\"", true },
	{ "\"a\"", "\"b\"", false },
	{ "\"\"", "\"\"", true },
	{ "null", "null", false },
	{ "123456789012345678901", "123456789012345678902", false },
	{ "01", "1", false },
	{ "\"\\x\"", "\"x\"", false },
	{ "\"\\x\"", "\"\\\\x\"", false },
	{ "\"1\"", "\"\\u0031\"", true },
	{ "-0.0e5", "0", true },
	{ "9007199254740993", "9007199254740992", false },
	{ "-5", "-5.0", true },
	{ "1e400", "1e401", false },
	{ "0.1", "0.10", true },
	{ "100", "1", false },
	{ "\"\"", "0", false },
	{ "\"a\\\"b\"", "\"a\\u0022b\"", true },
};

static void ids_are_compared_by_what_they_mean(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(id_rows); i++) {
		const struct slice a = slice_str(id_rows[i].a), b = slice_str(id_rows[i].b);
		if (json_loose_same_id(a, b) != id_rows[i].same ||
		    json_loose_same_id(b, a) != id_rows[i].same)
			fail_msg("%s and %s", id_rows[i].a, id_rows[i].b);
	}
	/* Six bytes a character: a longer one is another, without a look at what it says. */
	assert_true(json_loose_same_id(SLICE("\"\\u0061\\u0061\""), SLICE("\"aa\"")));
	assert_false(json_loose_same_id(SLICE("\"\\u0061\\u0061\\u0061\""), SLICE("\"aa\"")));
	assert_true(json_loose_same_id(SLICE("\"\\u0061\""), SLICE("\"a\"")));
	assert_true(json_loose_same_id(SLICE("\"\""), SLICE("\"\"")));
	assert_false(json_loose_same_id(slice_of(NULL, 0), slice_of(NULL, 0)));
}

static void ids_that_are_one_have_one_text(void **state)
{
	struct arena_pool pool = { .keep_max = 4 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	for (size_t i = 0; i < COUNT_OF(id_rows); i++) {
		const struct slice a = json_loose_id_text(slice_str(id_rows[i].a), &arena);
		const struct slice b = json_loose_id_text(slice_str(id_rows[i].b), &arena);
		if ((!slice_absent(a) && slice_eq(a, b)) != id_rows[i].same)
			fail_msg("%s and %s", id_rows[i].a, id_rows[i].b);
	}
	pool.fail_next = 1;
	arena_give(&arena);
	assert_true(slice_absent(json_loose_id_text(SLICE("\"\\u0061\""), &arena)));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static const struct twice_row {
	const char *object;
	bool twice;
} twice_rows[] = {
	{ "{}", false },
	{ "{\"id\":1,\"method\":\"id\"}", false },
	{ "{\"id\":1,\"x\":2,\"x\":3}", false },
	{ "{\"id\":1,\"id\":1}", true },
	{ "{\"method\":1,\"a\":{\"method\":2}}", false },
	{ "{\"method\":1,\"a\":[\"]}\"],\"m\\u0065thod\":2}", true },
	{ "[\"id\",\"id\"]", false },
	{ "{\"id\":1,\"ID\":1}", false },
};

static void a_name_that_is_there_twice_is_found(void **state)
{
	static const char *const names[] = { "id", "method" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(twice_rows); i++)
		if (json_loose_twice(slice_str(twice_rows[i].object), names, COUNT_OF(names)) !=
		    twice_rows[i].twice)
			fail_msg("%s", twice_rows[i].object);
}

/* The text's containers are walked in one pass: their members by enter and leave are those by next. */
static void a_container_may_be_walked_on_the_way(void **state)
{
	const struct slice text = SLICE("{ \"a\" : { } , \"b\":[1, [ ],{\"c\":2 }] ,\"d\":3}");
	struct json_loose_walk outer, inner;
	size_t count = 0;

	(void)state;
	json_loose_open(&outer, text);
	while (json_loose_name(&outer)) {
		count++;
		if (!json_loose_enter(&inner, &outer)) {
			assert_true(json_loose_value(&outer));
			continue;
		}
		while (json_loose_next(&inner))
			count++;
		assert_true(json_loose_leave(&outer, &inner));
		assert_true(slice_eq(outer.value,
				     json_loose_member(text, outer.name.at[1] == 'a' ? "a" : "b")));
	}
	assert_false(outer.bad);
	assert_int_equal(count, 6);
	assert_true(json_loose_sound(text));
	assert_false(json_loose_sound(SLICE("{\"a\":1,}")));
	assert_false(json_loose_sound(SLICE("[1 2]")));
}

static const struct utf8_row {
	const char *text;
	bool good;
} utf8_rows[] = {
	{ "", true },
	{ "plain text that is longer than a word", true },
	{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", true },
	{ "12345678\xc3\xa9", true },
	{ "1234567\xc3\xa9 and more", true },
	{ "\xf4\x8f\xbf\xbf", true },
	{ "\x80", false },
	{ "\xc3", false },
	{ "1234567\xe2\x82", false },
	{ "\xc0\xaf", false },
	{ "\xe0\x80\xaf", false },
	{ "\xed\xa0\x80", false },
	{ "\xf4\x90\x80\x80", false },
	{ "\xf5\x80\x80\x80", false },
	{ "12345678\xff", false },
};

static void text_is_utf8_or_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(utf8_rows); i++)
		if (json_loose_utf8(slice_str(utf8_rows[i].text)) != utf8_rows[i].good)
			fail_msg("row %zu", i);
}

static void a_number_is_a_double_or_none(void **state)
{
	double value = 0;

	(void)state;
	assert_true(json_loose_number(SLICE("2.5e1"), &value) && value == 25);
	assert_false(json_loose_number(SLICE("01"), &value));
	assert_false(json_loose_number(SLICE("\"1\""), &value));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_member_is_the_last_of_its_name),
		cmocka_unit_test(what_is_not_one_value_is_none),
		cmocka_unit_test(ids_are_compared_by_what_they_mean),
		cmocka_unit_test(ids_that_are_one_have_one_text),
		cmocka_unit_test(a_name_that_is_there_twice_is_found),
		cmocka_unit_test(a_container_may_be_walked_on_the_way),
		cmocka_unit_test(text_is_utf8_or_not),
		cmocka_unit_test(a_number_is_a_double_or_none),
	};
	return cmocka_run_group_tests_name("json_loose", tests, NULL, NULL);
}
