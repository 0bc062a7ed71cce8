/* Sluice-Preferences: what it says, and what is wrong with it. */
#include "codec/api/api_preferences.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

struct reading {
	struct arena_pool pool;
	struct arena arena;
	struct model_preferences prefer;
	const char *wrong;
	bool busy;
};

static void begin(struct reading *r, struct slice text, size_t memory)
{
	*r = (struct reading){ .pool = { .keep_max = 2 } };
	arena_init(&r->arena, &r->pool, memory);
	r->wrong = api_preferences_read(text, &r->arena, &r->prefer, &r->busy);
}

static void end(struct reading *r)
{
	arena_give(&r->arena);
	arena_pool_fini(&r->pool);
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || a == b;
}

static const struct good_row {
	const char *text;
	double cost, speed, intelligence;
	const char *hints; /* with a bar behind each */
} good_rows[] = {
	{ "cost=0.7, speed=0.2, intelligence=0.1; hints=\"sonnet, gpt\"", 0.7, 0.2, 0.1,
	  "sonnet|gpt|" },
	{ "cost=1", 1, NAN, NAN, "" },
	{ "speed=0", NAN, 0, NAN, "" },
	{ "intelligence=1.000000,cost=0.000001", 0.000001, NAN, 1, "" },
	{ "hints=\"claude-haiku-4-5\"", NAN, NAN, NAN, "claude-haiku-4-5|" },
	{ " \thints=\" a b ,c;d=e\" ,\tspeed=0.5 ", NAN, 0.5, NAN, "a b|c;d=e|" },
	{ "cost=0.25;speed=0.75;hints=\"x\"", 0.25, 0.75, NAN, "x|" },
};

static void what_it_says_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(good_rows); i++) {
		const struct good_row *row = &good_rows[i];
		char hints[256] = "";
		size_t len = 0;
		struct reading r;
		begin(&r, slice_str(row->text), 1 << 16);
		if (r.wrong != NULL)
			fail_msg("%s: %s", row->text, r.wrong);
		for (uint32_t h = 0; h < r.prefer.hint_count; h++)
			len += (size_t)snprintf(hints + len, sizeof(hints) - len, "%.*s|",
						(int)r.prefer.hints[h].len, r.prefer.hints[h].at);
		if (!same(r.prefer.cost, row->cost) || !same(r.prefer.speed, row->speed) ||
		    !same(r.prefer.intelligence, row->intelligence))
			fail_msg("%s: %g %g %g", row->text, r.prefer.cost, r.prefer.speed,
				 r.prefer.intelligence);
		assert_string_equal(hints, row->hints);
		end(&r);
	}
}

static const struct bad_row {
	const char *text, *words;
} bad_rows[] = {
	{ "", "must be like" },
	{ "cheap", "must be like" },
	{ "cost", "must be like" },
	{ "cost =1", "must be like" },
	{ "cost=1,", "must be like" },
	{ ";cost=1", "must be like" },
	{ "Cost=1", "must be like" },
	{ "price=1", "none of cost, speed, intelligence and hints" },
	{ "cost=", "cost must be a number" },
	{ "cost= 1", "cost must be a number" },
	{ "cost=-1", "cost must be a number" },
	{ "cost=.5", "cost must be a number" },
	{ "cost=0.", "cost must be a number" },
	{ "speed=1.5", "speed must be a number" },
	{ "speed=1.000001", "speed must be a number" },
	{ "speed=2", "speed must be a number" },
	{ "intelligence=0.1234567", "intelligence must be a number" },
	{ "intelligence=nan", "intelligence must be a number" },
	{ "cost=\"1\"", "cost must be a number" },
	{ "cost=1e0", "something behind a member" },
	{ "cost=10", "something behind a member" },
	{ "cost=1 speed=1", "something behind a member" },
	{ "hints=\"a\" b", "something behind a member" },
	{ "cost=1,cost=1", "cost is there twice" },
	{ "hints=\"a\";hints=\"b\"", "hints is there twice" },
	{ "hints=a", "hints must be a list in quotes" },
	{ "hints=\"a", "hints must be a list in quotes" },
	{ "hints=", "hints must be a list in quotes" },
	{ "hints=\"\"", "each of hints" },
	{ "hints=\"a,,b\"", "each of hints" },
	{ "hints=\"a\\\\\"", "each of hints" },
	{ "hints=\"\xc3\xa4\"", "each of hints" },
	{ "hints=\"a\tb\"", "each of hints" },
	{ "hints=\"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\"", "more than 16" },
};

static void what_is_wrong_is_named(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad_rows); i++) {
		struct reading r;
		begin(&r, slice_str(bad_rows[i].text), 1 << 16);
		if (r.wrong == NULL || strstr(r.wrong, bad_rows[i].words) == NULL || r.busy)
			fail_msg("%s: %s", bad_rows[i].text, r.wrong == NULL ? "passes" : r.wrong);
		end(&r);
	}
}

static void hints_have_a_bound_each(void **state)
{
	char text[256] = "hints=\"";
	const size_t before = strlen(text);
	struct reading r;

	(void)state;
	(void)memset(text + before, 'x', API_HINT_BYTES_MAX + 1);
	text[before + API_HINT_BYTES_MAX] = '"';
	begin(&r, slice_of(text, before + API_HINT_BYTES_MAX + 1), 1 << 16);
	assert_null(r.wrong);
	end(&r);
	text[before + API_HINT_BYTES_MAX] = 'x';
	text[before + API_HINT_BYTES_MAX + 1] = '"';
	begin(&r, slice_of(text, before + API_HINT_BYTES_MAX + 2), 1 << 16);
	assert_non_null(r.wrong);
	end(&r);
}

static void memory_that_is_not_there_is_no_fault_of_the_callers(void **state)
{
	struct reading r;

	(void)state;
	begin(&r, SLICE("hints=\"a\""), 8);
	assert_non_null(r.wrong);
	assert_true(r.busy);
	end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_it_says_is_read),
		cmocka_unit_test(what_is_wrong_is_named),
		cmocka_unit_test(hints_have_a_bound_each),
		cmocka_unit_test(memory_that_is_not_there_is_no_fault_of_the_callers),
	};

	return cmocka_run_group_tests_name("api_preferences", tests, NULL, NULL);
}
