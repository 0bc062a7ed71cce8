#include "routing/score.h"

#include "codec/base/slice.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { MODELS = 3 * SCORE_MODELS - 3, WORLDS = 1000 };

struct world {
	uint64_t chance;
	struct model models[MODELS];
	struct catalog catalog;
	struct model_speed speeds[SCORE_MODELS];
	struct score_query query;
};

static uint32_t below(struct world *w, uint32_t bound)
{
	uint64_t z = w->chance += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (uint32_t)((z ^ z >> 31) % bound);
}

static double share(struct world *w)
{
	return below(w, 1000) / 999.0;
}

static void make_world(struct world *w, uint64_t seed)
{
	*w = (struct world){ .chance = seed };
	for (uint32_t i = 0; i < MODELS; i++)
		w->models[i] = (struct model){ .price_input = below(w, 20000000),
					       .price_output = below(w, 90000000),
					       .speed = share(w),
					       .intelligence = share(w),
					       .profile = { .max_output = below(w, 9000) } };
	for (uint32_t i = 0; i < SCORE_MODELS; i++)
		w->speeds[i] = (struct model_speed){ below(w, 2) != 0, (float)below(w, 9000),
						     (float)share(w) };
	w->catalog = (struct catalog){ .models = w->models, .count = MODELS };
	w->query = (struct score_query){ .input_tokens = below(w, 500000),
					 .max_tokens = below(w, 9000),
					 .weights = { share(w), share(w), share(w), false } };
}

/* DESIGN 5, of one model and written down once more. */
static double score_alone(const struct world *w, const struct model *m, const struct model_speed *s)
{
	const struct score_query *q = &w->query;
	const double most = m->profile.max_output;
	const double output = q->max_tokens < most ? q->max_tokens : most;
	const double usd =
		(q->input_tokens * (double)m->price_input + output * (double)m->price_output) *
		1e-12;
	const double speed =
		s == NULL || !s->measured
			? m->speed
			: 5000 / (5000 + (double)s->ttft_ms + output * (double)s->token_ms);

	return q->weights.cost * (0.01 / (0.01 + usd)) + q->weights.speed * speed +
	       q->weights.intelligence * m->intelligence;
}

static void a_score_is_to_the_last_bit_what_it_is_alone(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		const uint32_t block = seed % 2;
		const struct model_speed *speeds;
		struct model_figures figures;
		double totals[SCORE_MODELS], most = 0;
		struct scores parts;
		struct world w;

		make_world(&w, seed);
		speeds = seed % 3 == 0 ? NULL : w.speeds;
		model_figures(&w.catalog, block, &figures);
		const double greatest = score_totals(&figures, speeds, &w.query, totals);
		score_parts(&figures, speeds, &w.query, &parts);
		for (uint32_t i = 0; i < SCORE_MODELS; i++) {
			const double alone = score_alone(&w, &w.models[block * SCORE_MODELS + i],
							 speeds == NULL ? NULL : &speeds[i]);
			assert_true(totals[i] == alone);
			assert_true(parts.total[i] == alone);
			most = alone > most ? alone : most;
		}
		assert_true(greatest == most);
	}
}

static void the_parts_are_what_explain_says(void **state)
{
	const struct model model = { .price_input = 3000000,
				     .price_output = 15000000,
				     .speed = 0.6,
				     .intelligence = 0.85,
				     .profile = { .max_output = 1000 } };
	const struct catalog catalog = { .models = &model, .count = 1 };
	const struct model_speed speeds[SCORE_MODELS] = { { true, 1000, 4 } };
	const struct score_query query = { 5000, 4000, { 0.5, 0.25, 0.25, false } };
	struct model_figures figures;
	struct scores parts;

	(void)state;
	model_figures(&catalog, 0, &figures);
	score_parts(&figures, speeds, &query, &parts);
	assert_true(fabs(parts.usd[0] - 0.03) < 1e-12); /* 0.015 in, 0.015 for 1,000 out */
	assert_true(fabs(parts.cheapness[0] - 0.25) < 1e-12);
	assert_true(fabs(parts.speed[0] - 0.5) < 1e-12); /* a second, and four for 1,000 */
	assert_true(fabs(parts.total[0] - (0.125 + 0.125 + 0.2125)) < 1e-12);
	score_parts(&figures, NULL, &query, &parts);
	assert_true(parts.speed[0] == 0.6);
}

static void figures_end_with_the_catalogue(void **state)
{
	struct model_figures figures;
	struct world w;

	(void)state;
	make_world(&w, 1);
	model_figures(&w.catalog, 2, &figures);
	for (uint32_t i = 0; i < CATALOG_BLOCK; i++) {
		const uint32_t at = 2 * CATALOG_BLOCK + i;
		const double want = at < MODELS ? (double)w.models[at].price_output : 0;
		assert_true(figures.price_output[i] == want);
	}
}

static void weights_are_shares_and_absent_ones_are_none(void **state)
{
	static const struct row {
		const char *name;
		struct model_preferences prefer;
		struct score_weights want;
	} rows[] = {
		{ "all",
		  { .cost = 1, .speed = 0.5, .intelligence = 0.5 },
		  { 0.5, 0.25, 0.25, false } },
		{ "one", { .cost = NAN, .speed = 0.2, .intelligence = NAN }, { 0, 1, 0, false } },
		{ "absent", { .cost = NAN, .speed = NAN, .intelligence = NAN }, { .none = true } },
		{ "zero", { .cost = 0, .speed = NAN, .intelligence = 0 }, { .none = true } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct score_weights is = score_weights_of(&rows[i].prefer);
		const struct score_weights want = rows[i].want;
		if (is.cost != want.cost || is.speed != want.speed ||
		    is.intelligence != want.intelligence || is.none != want.none)
			fail_msg("%s: %g %g %g", rows[i].name, is.cost, is.speed, is.intelligence);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_score_is_to_the_last_bit_what_it_is_alone),
		cmocka_unit_test(the_parts_are_what_explain_says),
		cmocka_unit_test(figures_end_with_the_catalogue),
		cmocka_unit_test(weights_are_shares_and_absent_ones_are_none),
	};

	return cmocka_run_group_tests_name("score", tests, NULL, NULL);
}
