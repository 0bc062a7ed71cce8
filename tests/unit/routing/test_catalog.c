#include "routing/catalog.h"

#include "codec/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct slice aliases[] = { SLICE_INIT("Sonnet"), SLICE_INIT("best") };
static const struct model models[] = {
	{ .id = SLICE_INIT("claude-sonnet"),
	  .name = SLICE_INIT("claude-sonnet-4-6"),
	  .aliases = aliases,
	  .alias_count = 2 },
	{ .id = SLICE_INIT("gpt"), .name = SLICE_INIT("GPT-4o-mini") },
	{ .id = SLICE_INIT("claude-sonnet-2"), .name = SLICE_INIT("x") },
};

static void a_model_is_found_by_its_exact_id_only(void **state)
{
	const struct catalog catalog = { .models = models, .count = COUNT_OF(models) };
	const struct catalog empty = { 0 };

	(void)state;
	assert_int_equal(catalog_find(&catalog, SLICE("claude-sonnet")), 0);
	assert_int_equal(catalog_find(&catalog, SLICE("gpt")), 1);
	assert_int_equal(catalog_find(&catalog, SLICE("claude-sonnet-2")), 2);
	assert_int_equal(catalog_find(&catalog, SLICE("GPT")), -1);
	assert_int_equal(catalog_find(&catalog, SLICE("claude-sonnet-4-6")), -1);
	assert_int_equal(catalog_find(&catalog, SLICE("Sonnet")), -1);
	assert_int_equal(catalog_find(&catalog, SLICE("")), -1);
	assert_int_equal(catalog_find(&empty, SLICE("gpt")), -1);
}

static bool may_occur(const struct catalog *catalog, uint32_t model, struct slice text)
{
	struct bitset may;

	catalog_may_name(catalog, text, &may);
	return bitset_has(&may, model);
}

static void the_index_never_hides_a_part_of_a_name(void **state)
{
	struct catalog catalog = { .models = models, .count = COUNT_OF(models) };
	struct arena_pool pool = { 0 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	assert_true(catalog_index(&catalog, &arena));
	for (uint32_t m = 0; m < COUNT_OF(models); m++) {
		const struct slice names[] = { models[m].id, models[m].name,
					       models[m].alias_count > 0 ? aliases[0]
									 : models[m].id };
		for (size_t n = 0; n < COUNT_OF(names); n++)
			for (size_t from = 0; from < names[n].len; from++)
				for (size_t len = 0; len <= names[n].len - from; len++)
					assert_true(may_occur(&catalog, m,
							      slice_of(names[n].at + from, len)));
	}
	assert_true(may_occur(&catalog, 0, SLICE("SONNET"))); /* case is folded */
	assert_true(may_occur(&catalog, 1, SLICE("gpt-4O")));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void the_index_rules_out_what_is_foreign(void **state)
{
	struct catalog catalog = { .models = models, .count = COUNT_OF(models) };
	struct arena_pool pool = { 0 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	assert_true(catalog_index(&catalog, &arena));
	assert_false(may_occur(&catalog, 1, SLICE("claude")));
	assert_false(may_occur(&catalog, 0, SLICE("gemini-pro")));
	assert_false(may_occur(&catalog, 2, SLICE("gpt-4o")));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void memory_that_runs_out_is_said(void **state)
{
	struct catalog catalog = { .models = models, .count = COUNT_OF(models) };
	struct arena_pool pool = { .fail_next = 1 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	assert_false(catalog_index(&catalog, &arena));
	assert_null(catalog.index);
	arena_give(&arena);
	arena_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_model_is_found_by_its_exact_id_only),
		cmocka_unit_test(the_index_never_hides_a_part_of_a_name),
		cmocka_unit_test(the_index_rules_out_what_is_foreign),
		cmocka_unit_test(memory_that_runs_out_is_said),
	};

	return cmocka_run_group_tests_name("catalog", tests, NULL, NULL);
}
