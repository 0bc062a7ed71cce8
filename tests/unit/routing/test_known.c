#include "routing/known.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void every_model_is_found_by_its_name_alone(void **state)
{
	size_t n = 0;
	(void)state;
	for (const struct known_model *model; (model = known_at(n)) != NULL; n++) {
		assert_ptr_equal(known_find(slice_str(model->name)),
				 model); /* so none is there twice */
		assert_ptr_equal(known_nearest(slice_str(model->name)), model);
	}
	assert_true(n >= 29);
	assert_null(known_find(SLICE("")));
	assert_null(known_find(SLICE("gpt-4")));
	assert_null(known_find(SLICE("GPT-4.1"))); /* providers tell case apart */
	assert_null(known_find(SLICE("gpt-4.1-mini-2025-04-14")));
}

static void every_model_has_facts_that_can_be_true(void **state)
{
	(void)state;
	for (size_t n = 0; known_at(n) != NULL; n++) {
		const struct known_model *m = known_at(n);
		assert_true(m->context >= m->max_output && m->max_output >= 4096);
		assert_true(m->price_input > 0 && m->price_output > m->price_input);
		assert_true(m->price_output < 1000 * UINT64_C(1000000));
		assert_true(m->price_cache_read == KNOWN_UNSAID ||
			    m->price_cache_read < m->price_input);
		assert_true(m->price_cache_write == KNOWN_UNSAID ||
			    m->price_cache_write > m->price_input);
		assert_true(m->speed > 0 && m->speed < 1);
		assert_true(m->intelligence > 0 && m->intelligence < 1);
		assert_true(slice_str(m->source).len > 0);
	}
}

static void prices_are_exact(void **state)
{
	const struct known_model *pro = known_find(SLICE("deepseek-v4-pro"));
	const struct known_model *opus = known_find(SLICE("claude-opus-4-8"));
	const struct known_model *mistral = known_find(SLICE("mistral-small-latest"));
	(void)state;
	assert_int_equal(pro->price_input, 435000);
	assert_int_equal(pro->price_cache_read, 3625);
	assert_int_equal(opus->price_cache_write, 6250000);
	assert_true(mistral->price_cache_read == KNOWN_UNSAID);
	assert_true(mistral->price_cache_write == KNOWN_UNSAID);
}

static void a_name_that_is_not_known_has_a_neighbour_or_none(void **state)
{
	static const struct {
		const char *name, *near;
	} rows[] = {
		{ "claude-sonnet-4.6", "claude-sonnet-4-6" },
		{ "gpt4.1", "gpt-4.1" },
		{ "claude-haiku-4-5-20251001", "claude-haiku-4-5" },
		{ "gemini-2.5-flash-001", "gemini-2.5-flash" },
		{ "mixtral", NULL },
		{ "x", NULL },
		{ "", NULL },
		{ "a name that is longer than what anybody would give to a model, and then some "
		  "more",
		  NULL },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct known_model *near = known_nearest(slice_str(rows[i].name));
		if (rows[i].near == NULL)
			assert_null(near);
		else
			assert_string_equal(near->name, rows[i].near);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_model_is_found_by_its_name_alone),
		cmocka_unit_test(every_model_has_facts_that_can_be_true),
		cmocka_unit_test(prices_are_exact),
		cmocka_unit_test(a_name_that_is_not_known_has_a_neighbour_or_none),
	};
	return cmocka_run_group_tests_name("known", tests, NULL, NULL);
}
