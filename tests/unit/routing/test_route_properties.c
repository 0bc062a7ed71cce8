/* What holds of every pick, over thousands of made-up catalogues and requests. */
#include "routing/route.h"

#include "codec/base/arena.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MODELS = 21, WORLDS = 4000 }; /* two blocks of scores and a part of one */

struct world {
	uint64_t chance;
	char names[MODELS][16];
	struct model models[MODELS];
	struct model_speed speeds[MODELS];
	struct bitset permitted, down;
	struct slice hint;
	struct model_preferences prefer;
	struct catalog catalog;
	struct route_query query;
};

static uint32_t below(struct world *w, uint32_t bound)
{
	uint64_t z = w->chance += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) % bound);
}

static double priority(struct world *w)
{
	return below(w, 3) == 0 ? (double)NAN : 0.1 * below(w, 11);
}

static void make_model(struct world *w, uint32_t i)
{
	static const char *const families[] = { "claude", "gpt", "gemini" };

	(void)snprintf(w->names[i], sizeof(w->names[i]), "%s-%u", families[below(w, 3)], i);
	w->models[i] = (struct model){
		.id = slice_str(w->names[i]),
		.name = slice_str(w->names[i]),
		.enabled = below(w, 8) != 0,
		.context = below(w, 6) == 0 ? 500 : 100000,
		.price_input = 100000 * (uint64_t)below(w, 100),
		.price_output = 300000 * (uint64_t)below(w, 100),
		.speed = 0.1 * below(w, 11),
		.intelligence = 0.1 * below(w, 11),
		.profile = { .max_output = 1 + below(w, 8000), .image = below(w, 3) != 0 },
	};
	w->speeds[i] = (struct model_speed){ below(w, 2) != 0, (float)below(w, 5000),
					     (float)below(w, 50) };
	if (below(w, 6) != 0)
		bitset_add(&w->permitted, i);
	if (below(w, 8) == 0)
		bitset_add(&w->down, i);
}

static void make_world(struct world *w, uint64_t seed)
{
	static const char *const hints[] = { "claude", "gpt", "gemini-3", "nobody" };

	*w = (struct world){ .chance = seed };
	for (uint32_t i = 0; i < MODELS; i++)
		make_model(w, i);
	w->hint = slice_str(hints[below(w, 4)]);
	w->prefer = (struct model_preferences){ .cost = priority(w),
						.speed = priority(w),
						.intelligence = priority(w),
						.hints = &w->hint,
						.hint_count = below(w, 2) };
	w->catalog = (struct catalog){ .models = w->models, .count = MODELS };
	w->query = (struct route_query){ .prefer = &w->prefer,
					 .permitted = &w->permitted,
					 .default_model = (int32_t)below(w, MODELS + 1) - 1,
					 .image = below(w, 3) == 0,
					 .input_tokens = 1000,
					 .max_tokens = 1 + below(w, 4000),
					 .down = &w->down,
					 .speeds = w->speeds };
}

static struct route pick(const struct world *w)
{
	return route_pick(&w->catalog, &w->query, NULL);
}

static void forbid(struct world *w, uint32_t model)
{
	w->permitted.words[0] &= ~(UINT64_C(1) << model);
}

static void removing_a_loser_never_changes_the_winner(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct world w;

		make_world(&w, seed);
		const struct route before = pick(&w);
		for (uint32_t m = 0; m < MODELS; m++) {
			struct world without;

			make_world(&without, seed);
			if (before.err != ERR_OK || m == before.model)
				continue;
			forbid(&without, m);
			const struct route after = pick(&without);
			if (after.err != ERR_OK || after.model != before.model ||
			    (after.score != before.score && !isnan(before.score)))
				fail_msg("world %llu without %u: %u, not %u",
					 (unsigned long long)seed, m, after.model, before.model);
		}
	}
}

static void a_cheaper_model_never_loses_on_cost_alone(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct route_candidate trace[MODELS];
		struct world w;

		make_world(&w, seed);
		w.prefer = (struct model_preferences){ .cost = 0.7,
						       .speed = NAN,
						       .intelligence = NAN };
		const struct route route = route_pick(&w.catalog, &w.query, trace);
		for (uint32_t m = 0; m < MODELS && route.err == ERR_OK; m++)
			if (trace[m].reason == ROUTE_CANDIDATE &&
			    trace[m].usd < trace[route.model].usd)
				fail_msg("world %llu: %u costs less than %u",
					 (unsigned long long)seed, m, route.model);
	}
}

/* With the index, whose figures others are than the catalogue's. */
static void the_winner_is_the_first_of_the_best(void **state)
{
	uint32_t scored = 0;

	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct route_candidate trace[MODELS];
		struct arena_pool pool = { 0 };
		struct arena arena;
		struct world w;
		uint32_t best = MODELS;

		make_world(&w, seed);
		w.models[MODELS - 1] = w.models[seed % MODELS]; /* as good as an earlier one */
		arena_init(&arena, &pool, 1 << 16);
		assert_true(catalog_index(&w.catalog, &arena));
		const struct route route = route_pick(&w.catalog, &w.query, trace);
		for (uint32_t m = 0; m < MODELS; m++)
			if (trace[m].reason == ROUTE_CANDIDATE && !isnan(trace[m].score) &&
			    (route.hint < 0 || trace[m].hinted) &&
			    (best == MODELS || trace[m].score > trace[best].score))
				best = m;
		if (route.err == ERR_OK && best != MODELS) {
			assert_int_equal(route.model, best);
			assert_true(route.score == trace[best].score);
			scored++;
		}
		arena_give(&arena);
		arena_pool_fini(&pool);
	}
	assert_true(scored > WORLDS / 2);
}

/* Whatever a model's figures are, one that is filtered out does not win, and changes no score. */
static void filters_come_before_scores(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct route_candidate trace[MODELS];
		struct world w;

		make_world(&w, seed);
		const struct route before = route_pick(&w.catalog, &w.query, trace);
		for (uint32_t m = 0; m < MODELS; m++)
			if (trace[m].reason != ROUTE_CANDIDATE) {
				w.models[m].price_input = w.models[m].price_output = 0;
				w.models[m].speed = w.models[m].intelligence = 1;
				w.speeds[m] = (struct model_speed){ true, 1, 0 };
			}
		const struct route after = pick(&w);
		assert_int_equal(before.err, after.err);
		if (before.err == ERR_OK) {
			assert_int_equal(trace[before.model].reason, ROUTE_CANDIDATE);
			assert_int_equal(before.model, after.model);
		}
	}
}

static void index_and_memory_change_nothing(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		static struct hint_memory memory;
		struct arena_pool pool = { 0 };
		struct arena arena;
		struct world w;

		make_world(&w, seed);
		memory = (struct hint_memory){ 0 };
		const struct route plain = pick(&w);
		arena_init(&arena, &pool, 1 << 16);
		assert_true(catalog_index(&w.catalog, &arena));
		w.query.memory = &memory;
		for (int i = 0; i < 2; i++) {
			const struct route route = pick(&w);
			assert_int_equal(route.err, plain.err);
			if (plain.err != ERR_OK)
				continue;
			assert_int_equal(route.model, plain.model);
			assert_int_equal(route.hint, plain.hint);
			assert_true(route.score == plain.score || isnan(plain.score));
		}
		arena_give(&arena);
		arena_pool_fini(&pool);
	}
}

static void only_health_as_the_reason_is_a_matter_of_time(void **state)
{
	uint32_t seen = 0;

	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct world w;

		make_world(&w, seed);
		for (uint32_t m = 0; m < MODELS; m++)
			bitset_add(&w.down, m);
		const struct route route = pick(&w);
		w.query.down = NULL;
		const bool else_fine = pick(&w).err == ERR_OK;
		assert_true(else_fine == (route.err == ERR_PROVIDER_NO_ATTEMPT));
		seen += else_fine;
	}
	assert_true(seen > WORLDS / 2);
}

static void a_slow_model_is_slow_by_what_was_measured(void **state)
{
	struct world w;

	(void)state;
	make_world(&w, 1);
	for (uint32_t m = 0; m < MODELS; m++) {
		w.models[m] = w.models[0];
		w.models[m].enabled = true;
		w.models[m].context = 100000;
		w.models[m].profile.image = true;
		w.models[m].profile.max_output = 100;
		w.speeds[m] = (struct model_speed){ .measured = false };
		bitset_add(&w.permitted, m);
	}
	w.query.down = NULL;
	w.prefer = (struct model_preferences){ .cost = NAN, .speed = 1, .intelligence = NAN };
	w.query.max_tokens = 1000;
	w.models[3].speed = 0.6; /* declared: slower than five seconds for 100 tokens are not */
	for (uint32_t m = 0; m < MODELS; m++)
		if (m != 3)
			w.models[m].speed = 0.5;
	assert_int_equal(pick(&w).model, 3);
	w.speeds[3] = (struct model_speed){ true, 1000, 90 }; /* ten seconds in all */
	w.speeds[5] = (struct model_speed){ true, 1000, 15 }; /* two and a half */
	const struct route route = pick(&w);
	assert_int_equal(route.model, 5);
	assert_true(fabs(route.score - 5000.0 / 7500.0) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(removing_a_loser_never_changes_the_winner),
		cmocka_unit_test(a_cheaper_model_never_loses_on_cost_alone),
		cmocka_unit_test(the_winner_is_the_first_of_the_best),
		cmocka_unit_test(filters_come_before_scores),
		cmocka_unit_test(index_and_memory_change_nothing),
		cmocka_unit_test(only_health_as_the_reason_is_a_matter_of_time),
		cmocka_unit_test(a_slow_model_is_slow_by_what_was_measured),
	};

	return cmocka_run_group_tests_name("route_properties", tests, NULL, NULL);
}
