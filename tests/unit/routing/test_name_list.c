/* Lists of names: each of them leads to a model that may be had, and none is there twice. */
#include "routing/name_list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { BIG, SMALL, SECRET, OFF, MODELS };

#define NAMED(model_id, context_max, output)                                                     \
	.id = SLICE_INIT(model_id), .name = SLICE_INIT("p-" model_id), .context = (context_max), \
	.profile = { .max_output = (output) }

static const struct slice big[] = { SLICE_INIT("best"), SLICE_INIT("shared"),
				    SLICE_INIT("claude-*"), SLICE_INIT("secret") };
static const struct slice small[] = { SLICE_INIT("shared"), SLICE_INIT("auto"), SLICE_INIT("big") };
static const struct slice secret[] = { SLICE_INIT("hidden"), SLICE_INIT("shared") };
static const struct model models[MODELS] = {
	[BIG] = { NAMED("big", 200000, 64000), .enabled = true, .aliases = big, .alias_count = 4 },
	[SMALL] = { NAMED("small", 8000, 70000), .enabled = true, .aliases = small,
		    .alias_count = 3 },
	[SECRET] = { NAMED("secret", 1, 1), .enabled = true, .aliases = secret, .alias_count = 2 },
	[OFF] = { NAMED("off", 1, 1), .enabled = false },
};
static const struct catalog catalog = { .models = models, .count = MODELS };
static const struct bitset permitted = { .words = { 1 << BIG | 1 << SMALL | 1 << OFF } };

static const struct hint_alias table[] = {
	{ SLICE_INIT("gpt-*"), { .words = { 1 << BIG } } },
	{ SLICE_INIT("gpt-5"), { .words = { 1 << SMALL } } }, /* the row before it is asked first */
	{ SLICE_INIT("fast"), { .words = { 1 << SMALL | 1 << SECRET } } },
	{ SLICE_INIT("hidden"), { .words = { 1 << BIG } } }, /* another model's, which is not had */
	{ SLICE_INIT("p-small"), { .words = { 1 << BIG } } },
	{ SLICE_INIT("gone"), { .words = { 1 << SECRET | 1 << OFF } } },
	{ SLICE_INIT("auto"), { .words = { 1 << BIG } } },
};

struct listing {
	struct arena_pool pool;
	struct arena arena;
	struct bitset available;
	struct name_entry *names;
	size_t count;
};

static void begin(struct listing *l)
{
	*l = (struct listing){ .pool = { .keep_max = 4 } };
	arena_init(&l->arena, &l->pool, 1 << 20);
	name_available(&catalog, &permitted, &l->available);
	assert_true(name_list(&catalog, table, COUNT_OF(table), &l->available, &l->arena, &l->names,
			      &l->count));
}

static void end(struct listing *l)
{
	arena_give(&l->arena);
	arena_pool_fini(&l->pool);
}

static void all_that_may_be_asked_for_is_there_once(void **state)
{
	static const struct {
		const char *name;
		uint64_t context, output;
	} expected[] = {
		{ "big", 200000, 64000 },  { "small", 8000, 70000 }, { "best", 200000, 64000 },
		{ "shared", 8000, 64000 }, { "fast", 8000, 70000 },
	};
	struct listing l;

	(void)state;
	begin(&l);
	for (size_t i = 0; i < l.count; i++)
		if (i >= COUNT_OF(expected) ||
		    !slice_eq(l.names[i].name, slice_str(expected[i].name)))
			fail_msg("%zu: %.*s", i, (int)l.names[i].name.len, l.names[i].name.at);
	assert_int_equal(l.count, COUNT_OF(expected));
	for (size_t i = 0; i < l.count; i++) {
		assert_int_equal(l.names[i].context_max, expected[i].context);
		assert_int_equal(l.names[i].output_max, expected[i].output);
	}
	end(&l);
}

static void what_is_listed_is_found(void **state)
{
	struct name_entry found;
	struct listing l;

	(void)state;
	begin(&l);
	for (size_t i = 0; i < l.count; i++) {
		assert_true(name_find(&catalog, table, COUNT_OF(table), &l.available,
				      l.names[i].name, &found));
		assert_int_equal(found.context_max, l.names[i].context_max);
		assert_int_equal(found.output_max, l.names[i].output_max);
	}
	end(&l);
}

static void other_names_are_found_if_they_lead_to_a_model(void **state)
{
	static const struct {
		const char *name;
		bool found;
	} rows[] = {
		{ "p-big", true },   { "claude-x", true }, { "openai/small", true },
		{ "gpt-5", true },   { "secret", false },  { "hidden", false },
		{ "p-small", true }, { "off", false },     { "auto", false },
		{ "gone", false },   { "bi", false },      { "", false },
	};
	struct name_entry found;
	struct listing l;

	(void)state;
	begin(&l);
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (name_find(&catalog, table, COUNT_OF(table), &l.available,
			      slice_str(rows[i].name), &found) != rows[i].found)
			fail_msg("%s", rows[i].name);
	end(&l);
}

static void without_memory_there_is_no_list(void **state)
{
	struct listing l = { .pool = { .keep_max = 1 } };

	(void)state;
	arena_init(&l.arena, &l.pool, 8);
	assert_false(name_list(&catalog, NULL, 0, &l.available, &l.arena, &l.names, &l.count));
	end(&l);
}

static void a_catalogue_of_nothing_has_no_names(void **state)
{
	const struct catalog nothing = { .models = NULL, .count = 0 };
	struct listing l = { .pool = { .keep_max = 1 } };

	(void)state;
	arena_init(&l.arena, &l.pool, 1 << 20);
	assert_true(name_list(&nothing, NULL, 0, &l.available, &l.arena, &l.names, &l.count));
	assert_int_equal(l.count, 0);
	end(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_may_be_asked_for_is_there_once),
		cmocka_unit_test(what_is_listed_is_found),
		cmocka_unit_test(other_names_are_found_if_they_lead_to_a_model),
		cmocka_unit_test(without_memory_there_is_no_list),
		cmocka_unit_test(a_catalogue_of_nothing_has_no_names),
	};

	return cmocka_run_group_tests_name("name_list", tests, NULL, NULL);
}
