#include "codec/json/json_meaning.h"

#include "codec/base/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static uint64_t meaning(const char *json)
{
	struct arena_pool pool = { .keep_max = 0 };
	struct arena arena;
	uint64_t out;

	arena_init(&arena, &pool, 1 << 20);
	must(json_meaning(slice_str(json), &arena, &out));
	arena_give(&arena);
	arena_pool_fini(&pool);
	return out;
}

struct row {
	const char *name, *a, *b;
};

static void what_means_the_same_has_the_same_digest(void **state)
{
	static const struct row rows[] = {
		{ "white space", "{\"a\":[1,2]}", " { \"a\" : [ 1 , 2 ] } " },
		{ "order of members", "{\"a\":1,\"b\":{\"c\":2,\"d\":3}}",
		  "{\"b\":{\"d\":3,\"c\":2},\"a\":1}" },
		{ "escapes in values", "\"\xc3\xa9/\\n\"", "\"\\u00e9\\/\\u000a\"" },
		{ "escapes in keys", "{\"\xc3\xa9\":1}", "{\"\\u00e9\":1}" },
		{ "numbers", "[100,1e2,100.0,0.5]", "[1e2,100.0,100,5e-1]" },
		{ "numbers that no double can tell apart", "123456789012345678901",
		  "123456789012345680000" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (meaning(rows[i].a) != meaning(rows[i].b))
			fail_msg("%s", rows[i].name);
}

static void what_means_something_else_has_another(void **state)
{
	static const struct row rows[] = {
		{ "a string is no number", "\"1\"", "1" },
		{ "a word is no string", "\"true\"", "true" },
		{ "words", "true", "false" },
		{ "null", "null", "{}" },
		{ "empty containers", "[]", "{}" },
		{ "order of items", "[1,2]", "[2,1]" },
		{ "depth", "[[1],2]", "[1,[2]]" },
		{ "nothing inside", "[[]]", "[]" },
		{ "empty twice", "[[],[]]", "[[[]]]" },
		{ "which member has which value", "{\"a\":1,\"b\":2}", "{\"a\":2,\"b\":1}" },
		{ "keys", "{\"a\":1}", "{\"b\":1}" },
		{ "a member more", "{\"a\":1}", "{\"a\":1,\"b\":null}" },
		{ "the last byte of a long string", "\"0123456789abcdef0\"",
		  "\"0123456789abcdef1\"" },
		{ "integers beyond doubles", "9007199254740993", "9007199254740992" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (meaning(rows[i].a) == meaning(rows[i].b))
			fail_msg("%s", rows[i].name);
}

static void the_deepest_value_there_may_be_is_read(void **state)
{
	char deep[2 * 64 + 2];

	(void)state;
	(void)memset(deep, '[', 64);
	(void)memset(deep + 64, ']', 64);
	deep[128] = '\0';
	assert_true(meaning(deep) != meaning("[]"));
}

static void without_memory_there_is_no_digest(void **state)
{
	struct arena_pool pool = { .keep_max = 0 };
	struct arena arena;
	uint64_t out;

	(void)state;
	arena_init(&arena, &pool, 0);
	assert_true(json_meaning(SLICE("[\"plain\"]"), &arena, &out));
	assert_false(json_meaning(SLICE("[\"\\n\"]"), &arena, &out));
	assert_false(json_meaning(SLICE("{\"\\n\":1}"), &arena, &out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_means_the_same_has_the_same_digest),
		cmocka_unit_test(what_means_something_else_has_another),
		cmocka_unit_test(the_deepest_value_there_may_be_is_read),
		cmocka_unit_test(without_memory_there_is_no_digest),
	};
	return cmocka_run_group_tests_name("json_meaning", tests, NULL, NULL);
}
