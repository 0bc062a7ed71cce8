#include "codec/json_last.h"

#include "codec/base/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct rig {
	struct json_work *work;
	struct arena_pool pool;
	struct arena arena;
};

static void rig_init(struct rig *rig, size_t cap)
{
	*rig = (struct rig){ .work = json_work_new() };
	must(rig->work != NULL);
	arena_init(&rig->arena, &rig->pool, cap);
}

static void rig_fini(struct rig *rig)
{
	arena_give(&rig->arena);
	arena_pool_fini(&rig->pool);
	json_work_free(rig->work);
}

static struct slice last(struct rig *rig, struct slice text)
{
	bool starved = true;
	struct slice out = json_last(text, &json_limits_default, rig->work, &rig->arena, &starved);

	assert_false(starved);
	return out;
}

static void the_last_of_members_with_one_key_stays(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: absent */
	} rows[] = {
		{ "{}", "{}" },
		{ "7", "7" },
		{ "{\"a\":1,\"b\":2}", "{\"a\":1,\"b\":2}" },
		{ "{\"a\":1,\"a\":2}", "{\"a\":2}" },
		{ "{\"a\":1,\"a\":2,\"a\":3}", "{\"a\":3}" },
		{ "{\"a\":1,\"b\":2,\"a\":3}", "{\"b\":2,\"a\":3}" },
		{ "{\"a\":1,\"b\":2,\"a\":3,\"b\":4}", "{\"a\":3,\"b\":4}" },
		{ "{\"c\":0,\"a\":1 , \"a\" : 2 ,\"d\":3}", "{\"c\":0,\"a\" : 2 ,\"d\":3}" },
		{ "{\"a\":1,\"\\u0061\":2}", "{\"\\u0061\":2}" },
		{ "{\"\":1,\"\":2}", "{\"\":2}" },
		{ "{\"a\":{\"b\":[1,{}]},\"a\":\"}\"}", "{\"a\":\"}\"}" },
		{ "[{\"a\":1,\"a\":2},{\"a\":3,\"a\":{\"a\":4,\"a\":5}}]",
		  "[{\"a\":2},{\"a\":{\"a\":5}}]" },
		{ "{\"a\":{\"b\":1,\"b\":2},\"c\":{\"b\":3},\"a\":{\"b\":4,\"b\":5}}",
		  "{\"c\":{\"b\":3},\"a\":{\"b\":5}}" },
		{ "{\"b\":{\"a\":1},\"a\":{\"b\":2}}", "{\"b\":{\"a\":1},\"a\":{\"b\":2}}" },
		{ " ", NULL },
		{ "{\"a\":1,\"a\":2", NULL },
		{ "{\"a\":1,\"a\":}", NULL },
		{ "{\"a\":1,\"a\":2}}", NULL },
		{ "{\"a\":1,\"a\":2,}", NULL },
		{ "{\"a\":1,\"a\":\"\x01\"}", NULL },
	};
	struct rig rig;

	(void)state;
	rig_init(&rig, 1 << 20);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct slice have = last(&rig, slice_str(rows[i].text));
		const struct slice want = slice_str(rows[i].want == NULL ? "" : rows[i].want);
		if (slice_absent(have) != (rows[i].want == NULL) ||
		    (rows[i].want != NULL && !slice_eq(have, want)))
			fail_msg("%s:\n have %.*s\n want %s", rows[i].text, (int)have.len,
				 have.at == NULL ? "" : have.at, want.at);
		if (rows[i].want != NULL)
			assert_true(json_valid(have, NULL, rig.work, NULL));
		arena_give(&rig.arena);
	}
	rig_fini(&rig);
}

/* `count` members, of `names` names in turn. */
static struct slice members(int count, int names)
{
	const size_t room = 16 * (size_t)count + 2;
	char *text = malloc(room);
	size_t len = 0;

	must(text != NULL);
	for (int i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, room - len, "%c\"%d\":%d", i == 0 ? '{' : ',',
					i % names, i / names);
	text[len++] = '}';
	return slice_of(text, len);
}

static void there_may_be_many_members(void **state)
{
	static const struct {
		int count, names;
		bool taken;
	} rows[] = {
		{ 4000, 2000, true },
		{ JSON_KEYS_MAX - 1, 1, true },
		{ JSON_KEYS_MAX, 1, false },
		{ 100000, 50000, false },
	};
	struct rig rig;

	(void)state;
	rig_init(&rig, 4 << 20);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct slice text = members(rows[i].count, rows[i].names);
		const struct slice have = last(&rig, text);
		assert_int_equal(!slice_absent(have), rows[i].taken);
		if (rows[i].taken)
			assert_true(json_valid(have, NULL, rig.work, NULL));
		free((void *)(uintptr_t)text.at);
		arena_give(&rig.arena);
	}
	rig_fini(&rig);
}

static void depth_is_bounded(void **state)
{
	char text[2 * JSON_DEPTH_MAX + 2];
	struct rig rig;

	(void)state;
	rig_init(&rig, 1 << 20);
	for (size_t depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
		(void)memset(text, '[', depth);
		(void)memset(text + depth, ']', depth);
		const struct slice have = last(&rig, slice_of(text, 2 * depth));
		assert_int_equal(slice_absent(have), depth > JSON_DEPTH_MAX);
	}
	rig_fini(&rig);
}

static void memory_that_is_refused_is_no_fault_of_the_text(void **state)
{
	const struct slice text = SLICE("{\"a\":1,\"a\":2}");
	struct rig rig;

	(void)state;
	for (size_t cap = 0; cap < 80; cap += 8) {
		bool starved = false;
		rig_init(&rig, cap);
		assert_true(slice_absent(
			json_last(text, &json_limits_default, rig.work, &rig.arena, &starved)));
		assert_true(starved);
		rig_fini(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_of_members_with_one_key_stays),
		cmocka_unit_test(there_may_be_many_members),
		cmocka_unit_test(depth_is_bounded),
		cmocka_unit_test(memory_that_is_refused_is_no_fault_of_the_text),
	};
	return cmocka_run_group_tests_name("json_last", tests, NULL, NULL);
}
