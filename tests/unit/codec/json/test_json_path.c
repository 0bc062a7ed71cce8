/* Where malformed JSON is, as a path. */
#include "codec/json/json_path.h"
#include "codec/set.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct rig {
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
};

static int begin(void **state)
{
	static struct rig rig;

	rig = (struct rig){ .work = json_work_new(codec_set_best()) };
	arena_init(&rig.arena, &rig.pool, 1024 * 1024);
	*state = &rig;
	return rig.work == NULL;
}

static int end(void **state)
{
	struct rig *rig = *state;

	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
	return 0;
}

/* The path of the first error of a text that has one. */
static struct slice path_of(struct rig *rig, struct slice text)
{
	struct fault fault;

	if (json_valid(text, NULL, rig->work, &fault))
		fail_msg("%.*s is valid", (int)text.len, text.at);
	return json_path(text, fault.offset, &rig->arena);
}

static void the_path_leads_to_the_value_that_is_wrong(void **state)
{
	static const struct {
		const char *text, *path;
	} rows[] = {
		{ "", "$" },
		{ "nul", "$" },
		{ "{\"a\":tru}", "$.a" },
		{ "{\"a\":1,\"b\":[1,{\"c\":\"\\x\"}]}", "$.b[1].c" },
		{ "[[],[0,01]]", "$[1][1]" },
		{ "[1,2,]", "$[2]" },
		{ "{\"a\":[1 2]}", "$.a" },
		{ "{\"a\":1 \"b\":2}", "$" },
		{ "{\"p\":{\"b\":1,\"b\":2}}", "$.p" },
		{ "{\"two words\":[}", "$[\"two words\"]" },
		{ "{\"\":{\"1\":{\"_x1\":-}}}", "$[\"\"][\"1\"]._x1" },
		{ "{\"a\":{},\"b\":[[[]],{}", "$.b" },
		{ "{\"a\":{\"b\":1}}}", "$" },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct slice path = path_of(*state, slice_str(rows[i].text));
		if (!slice_eq(path, slice_str(rows[i].path)))
			fail_msg("%s: %.*s", rows[i].text, (int)path.len, path.at);
	}
}

/* ---- the same by the reader's calls, member by member ---- */

/* Where the walk is in one open container: in front of its first member, or in one of them. */
struct place {
	bool inside;
	struct slice key; /* raw; absent in an array */
	uint32_t index;
};

/* Steps to the next value, out of all containers that end before it; false when there is none. */
static bool next_value(struct json_reader *r, struct place *places)
{
	while (r->depth > 0) {
		struct place *place = &places[r->depth - 1];
		uint32_t index = place->inside ? place->index + 1 : 0;
		*place = (struct place){ .index = index };
		place->inside =
			(r->objects & 1) != 0 ? json_next_key(r, &place->key) : json_next_item(r);
		if (place->inside)
			return true;
		if (r->fault.err != ERR_OK)
			return false;
	}
	return false;
}

/* Reads until the text ends. */
static void walk(struct json_reader *r, struct place *places)
{
	bool fine;

	do {
		enum json_kind kind = json_peek(r);
		if (kind == JSON_OBJECT || kind == JSON_ARRAY) {
			fine = kind == JSON_OBJECT ? json_enter_object(r) : json_enter_array(r);
			if (fine)
				places[r->depth - 1] = (struct place){ .inside = false };
		} else {
			fine = kind != JSON_BAD && json_skip(r, NULL);
		}
	} while (fine && next_value(r, places));
}

/* The path where `text` ends, whose keys are plain words; at `path`. */
static void path_by_calls(struct slice text, char *path)
{
	struct place places[JSON_DEPTH_MAX];
	struct json_reader r;

	json_open(&r, text, NULL, NULL);
	walk(&r, places);
	path += sprintf(path, "$");
	for (uint32_t i = 0; i < r.depth && places[i].inside; i++)
		path += slice_absent(places[i].key)
				? sprintf(path, "[%u]", places[i].index)
				: sprintf(path, ".%.*s", (int)places[i].key.len, places[i].key.at);
}

static void wherever_a_text_ends_its_path_is_the_readers(void **state)
{
	static const char *const texts[] = {
		"[]",
		" { \"a\" : [ 1 , { \"b\" : \"x,]}\\\"{[\" } , [ ] , -1.5e3 , true ] , \"c\" : "
		"null } ",
		"[[],[[]],{},{\"a\":{}},[{\"a\":1,\"b\":[2,3,[4,5]]},6],\"\\\\\",\"\\\\\\\"\"]",
		"{\"of_over_sixty_four_bytes_with_a_quote\":"
		"\"aaaaaaaaaaaaaaaaaaaaa\\\"bbbbbb\\\\\","
		"\"and\":[0,1,2,3,4,5,6,7,8,9,[10,11],{\"d\":[12,13,\"\\\\\\\\\\\"[,{\",14]},15,16]"
		","
		"\"l\":\"\\u00e9\xc3\xa9 , [ { \\\\ \\\" } ] ,                                     "
		"      \"}",
	};
	struct rig *rig = *state;
	char expected[256];

	for (size_t i = 0; i < COUNT_OF(texts); i++)
		for (uint32_t end = 0; end <= strlen(texts[i]); end++) {
			path_by_calls(slice_of(texts[i], end), expected);
			struct slice path = json_path(slice_str(texts[i]), end, &rig->arena);
			if (!slice_eq(path, slice_str(expected)))
				fail_msg("%.*s: %.*s, not %s", (int)end, texts[i], (int)path.len,
					 path.at, expected);
		}
}

static void a_long_path_is_cut_at_its_inner_end(void **state)
{
	enum { DEPTH = 60 };
	char text[DEPTH * 32], *at = text;

	for (int i = 0; i < DEPTH; i++)
		at += sprintf(at, "{\"member_number_%02d\":", i);
	struct slice path = path_of(*state, slice_of(text, (size_t)(at - text)));
	assert_in_range(path.len, JSON_PATH_MAX - 20, JSON_PATH_MAX);
	assert_memory_equal(path.at, "$.member_number_00.member_number_01.", 36);
	assert_int_equal(path.at[path.len - 17], '.');
}

static void exhausted_memory_leaves_no_path(void **state)
{
	struct arena_pool pool = { .fail_next = 1 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 4096);
	assert_true(slice_absent(json_path(SLICE("[x]"), 1, &arena)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_path_leads_to_the_value_that_is_wrong, begin,
						end),
		cmocka_unit_test_setup_teardown(wherever_a_text_ends_its_path_is_the_readers, begin,
						end),
		cmocka_unit_test_setup_teardown(a_long_path_is_cut_at_its_inner_end, begin, end),
		cmocka_unit_test(exhausted_memory_leaves_no_path),
	};
	return cmocka_run_group_tests_name("json_path", tests, NULL, NULL);
}
