#include "routing/route.h"

#include "codec/base/arena.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { OPUS, SONNET, HAIKU, GPT, GPT_MINI, LOCAL, OFF, MODELS };

#define MODEL(model_id, model_name, in, out, fast, clever)                              \
	.id = SLICE_INIT(model_id), .name = SLICE_INIT(model_name), .enabled = true,    \
	.context = 200000, .price_input = (in), .price_output = (out), .speed = (fast), \
	.intelligence = (clever), .profile = { .max_output = 64000, .image = true }

static const struct slice sonnet_aliases[] = { SLICE_INIT("sonnet"), SLICE_INIT("Best-Balance") };

/* Prices in pico-USD per token: 15 USD per million is 15,000,000. */
static const struct model models[MODELS] = {
	[OPUS] = { MODEL("claude-opus", "claude-opus-4-1", 15000000, 75000000, 0.3, 0.95) },
	[SONNET] = { MODEL("claude-sonnet", "claude-sonnet-4-6", 3000000, 15000000, 0.6, 0.85),
		     .aliases = sonnet_aliases, .alias_count = 2 },
	[HAIKU] = { MODEL("claude-haiku", "claude-haiku-4-5", 1000000, 5000000, 0.9, 0.6) },
	[GPT] = { MODEL("gpt-4o", "gpt-4o-2024-08-06", 2500000, 10000000, 0.6, 0.8) },
	[GPT_MINI] = { MODEL("gpt-4o-mini", "gpt-4o-mini", 150000, 600000, 0.8, 0.5) },
	[LOCAL] = { .id = SLICE_INIT("local/\xc3\xa4pfel\"x"),
		    .name = SLICE_INIT("llama"),
		    .enabled = true,
		    .context = 8192,
		    .speed = 0.2,
		    .intelligence = 0.2,
		    .profile = { .max_output = 2048, .audio = true } },
	[OFF] = { .id = SLICE_INIT("claude-off"), .intelligence = 1, .context = 200000 },
};

struct fixture {
	struct arena_pool pool;
	struct arena arena;
	struct catalog catalog;
	struct slice hints[100];
	struct model_preferences prefer;
	struct bitset permitted;
	struct route_query query;
};

/* Everything permitted, nothing preferred. */
static struct fixture *fixture_init(struct fixture *f)
{
	*f = (struct fixture){
		.catalog = { .models = models, .count = MODELS },
		.prefer = { .cost = NAN, .speed = NAN, .intelligence = NAN },
	};
	arena_init(&f->arena, &f->pool, 1 << 20);
	assert_true(catalog_index(&f->catalog, &f->arena));
	for (size_t i = 0; i < MODELS; i++)
		bitset_add(&f->permitted, i);
	f->prefer.hints = f->hints;
	f->query = (struct route_query){ .prefer = &f->prefer,
					 .permitted = &f->permitted,
					 .default_model = -1,
					 .input_tokens = 1000,
					 .max_tokens = 1000 };
	return f;
}

static void fixture_fini(struct fixture *f)
{
	arena_give(&f->arena);
	arena_pool_fini(&f->pool);
}

static void hint(struct fixture *f, struct slice raw)
{
	f->hints[f->prefer.hint_count++] = raw;
}

static void forbid(struct fixture *f, uint32_t model)
{
	f->permitted.words[0] &= ~(UINT64_C(1) << model);
}

/* The pick, which must not depend on the trace or on the index. */
static struct route pick(struct fixture *f)
{
	struct route_candidate trace[MODELS];
	const struct route route = route_pick(&f->catalog, &f->query, NULL);
	const struct catalog plain = { .models = models, .count = MODELS };
	const struct route others[] = { route_pick(&f->catalog, &f->query, trace),
					route_pick(&plain, &f->query, NULL) };

	for (size_t i = 0; i < COUNT_OF(others); i++) {
		assert_int_equal(others[i].err, route.err);
		assert_int_equal(others[i].model, route.model);
		assert_int_equal(others[i].hint, route.hint);
		assert_int_equal(others[i].alias, route.alias);
		assert_int_equal(others[i].held, route.held);
		assert_true(others[i].score == route.score ||
			    (isnan(others[i].score) && isnan(route.score)));
	}
	return route;
}

/* ---- without hints ---- */

static void no_preference_means_the_default_else_the_cleverest(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	assert_int_equal(pick(&f).model, OPUS);
	assert_int_equal(pick(&f).hint, -1);
	assert_true(isnan(pick(&f).score));
	f.query.default_model = HAIKU;
	assert_int_equal(pick(&f).model, HAIKU);
	f.prefer.cost = f.prefer.speed = f.prefer.intelligence = 0; /* is no preference either */
	assert_int_equal(pick(&f).model, HAIKU);
	assert_true(isnan(pick(&f).score));
	forbid(&f, HAIKU);
	assert_int_equal(pick(&f).model, OPUS);
	f.query.default_model = OFF; /* not enabled */
	assert_int_equal(pick(&f).model, OPUS);
	fixture_fini(&f);
}

static void priorities_weigh_price_speed_and_intelligence(void **state)
{
	static const struct {
		const char *name;
		double cost, speed, intelligence;
		uint32_t winner;
		double score;
	} rows[] = {
		{ "cost alone: the free one", 1, NAN, NAN, LOCAL, 1.0 },
		{ "speed alone", NAN, 0.3, NAN, HAIKU, 0.9 },
		{ "intelligence alone", NAN, 0, 0.01, OPUS, 0.95 },
		{ "speed and intelligence", NAN, 0.5, 0.5, HAIKU, 0.75 },
		{ "all three", 0.2, 0.3, 1.0, SONNET,
		  (0.2 * (0.01 / (0.01 + 0.018)) + 0.3 * 0.6 + 0.85) / 1.5 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		f.prefer.cost = rows[i].cost;
		f.prefer.speed = rows[i].speed;
		f.prefer.intelligence = rows[i].intelligence;
		const struct route route = pick(&f);
		if (route.model != rows[i].winner || fabs(route.score - rows[i].score) > 1e-12)
			fail_msg("%s: model %u, score %.15f", rows[i].name, route.model,
				 route.score);
		fixture_fini(&f);
	}
}

static void the_price_counts_what_a_model_can_write(void **state)
{
	struct route_candidate trace[MODELS];
	struct fixture f;

	(void)state;
	fixture_init(&f);
	f.query.max_tokens = 100000;
	(void)route_pick(&f.catalog, &f.query, trace);
	assert_true(fabs(trace[SONNET].usd - (0.003 + 64000 * 15e-6)) < 1e-12);
	f.query.max_tokens = 1000;
	(void)route_pick(&f.catalog, &f.query, trace);
	assert_true(fabs(trace[SONNET].usd - 0.018) < 1e-12);
	assert_true(fabs(trace[SONNET].cheapness - 0.01 / 0.028) < 1e-12);
	assert_true(trace[LOCAL].usd == 0 && trace[LOCAL].cheapness == 1);
	fixture_fini(&f);
}

static void ties_go_to_the_first_of_the_catalogue(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	f.prefer.speed = 1; /* SONNET and GPT are equally fast */
	forbid(&f, HAIKU);
	forbid(&f, GPT_MINI);
	assert_int_equal(pick(&f).model, SONNET);
	forbid(&f, SONNET);
	assert_int_equal(pick(&f).model, GPT);
	fixture_fini(&f);
}

static void a_score_does_not_depend_on_the_other_candidates(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	f.prefer.cost = 0.7;
	f.prefer.intelligence = 0.9;
	hint(&f, SLICE("gpt-4o"));
	const double score = pick(&f).score;
	for (uint32_t i = 0; i < MODELS; i++)
		if (i != GPT)
			forbid(&f, i);
	assert_true(pick(&f).score == score);
	fixture_fini(&f);
}

/* ---- hints ---- */

static void hints_are_evaluated_in_order_and_exact_before_part(void **state)
{
	static const struct {
		const char *name;
		struct slice hints[3];
		int32_t hint;
		uint32_t winner; /* by intelligence among those left */
	} rows[] = {
		{ "an id", { SLICE_INIT("claude-haiku") }, 0, HAIKU },
		{ "an id that is part of another", { SLICE_INIT("gpt-4o") }, 0, GPT },
		{ "the provider's name", { SLICE_INIT("claude-haiku-4-5") }, 0, HAIKU },
		{ "an alias", { SLICE_INIT("sonnet") }, 0, SONNET },
		{ "case is ignored", { SLICE_INIT("BEST-balance") }, 0, SONNET },
		{ "a part", { SLICE_INIT("mini") }, 0, GPT_MINI },
		{ "a part of an alias", { SLICE_INIT("-BAL") }, 0, SONNET },
		{ "a part of several", { SLICE_INIT("claude") }, 0, OPUS },
		{ "a part of a name only", { SLICE_INIT("2024-08") }, 0, GPT },
		{ "one character", { SLICE_INIT("u") }, 0, OPUS },
		{ "the first that matches",
		  { SLICE_INIT("gemini"), SLICE_INIT("haiku"), SLICE_INIT("opus") },
		  1,
		  HAIKU },
		{ "a part before a later exact one",
		  { SLICE_INIT("haik"), SLICE_INIT("gpt-4o") },
		  0,
		  HAIKU },
		{ "none", { SLICE_INIT("gemini"), SLICE_INIT("claude-2") }, -1, OPUS },
		{ "longer than any name", { SLICE_INIT("claude-sonnet-4-6-20260101") }, -1, OPUS },
		{ "empty", { SLICE_INIT("") }, -1, OPUS },
		{ "a model that is off", { SLICE_INIT("claude-off"), SLICE_INIT("gpt") }, 1, GPT },
		{ "an escape", { SLICE_INIT("\\u0063laude\\u002dhaiku") }, 0, HAIKU },
		{ "an escape in a part", { SLICE_INIT("\\u004dINI") }, 0, GPT_MINI },
		{ "a solidus", { SLICE_INIT("local\\/") }, 0, LOCAL },
		{ "quotes and UTF-8", { SLICE_INIT("\\u00E4pfel\\\"X") }, 0, LOCAL },
		{ "raw UTF-8", { SLICE_INIT("\xc3\xa4pfel") }, 0, LOCAL },
		{ "another case beyond ASCII", { SLICE_INIT("\xc3\x84pfel") }, -1, OPUS },
		{ "backslash u is not the letter", { SLICE_INIT("\\\\u0063laude") }, -1, OPUS },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		for (size_t h = 0; h < 3 && !slice_absent(rows[i].hints[h]); h++)
			hint(&f, rows[i].hints[h]);
		const struct route route = pick(&f);
		if (route.err != ERR_OK || route.hint != rows[i].hint ||
		    route.model != rows[i].winner)
			fail_msg("%s: hint %d, model %u", rows[i].name, route.hint, route.model);
		fixture_fini(&f);
	}
}

static void a_hint_goes_before_priorities_and_the_default(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	hint(&f, SLICE("claude"));
	f.prefer.speed = 1;
	assert_int_equal(pick(&f).model, HAIKU);
	f.prefer.speed = NAN;
	f.query.default_model = GPT; /* not what the hint left */
	assert_int_equal(pick(&f).model, OPUS);
	f.query.default_model = SONNET; /* is */
	assert_int_equal(pick(&f).model, SONNET);
	fixture_fini(&f);
}

static void hints_match_only_what_the_tenant_may_use(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	hint(&f, SLICE("gpt-4o")); /* exact for one that is not permitted */
	forbid(&f, GPT);
	assert_int_equal(pick(&f).model, GPT_MINI);
	forbid(&f, GPT_MINI);
	assert_int_equal(pick(&f).model, OPUS);
	assert_int_equal(pick(&f).hint, -1);
	fixture_fini(&f);
}

/* What a caller asks of one vendor, others have as well. */
static void a_hint_that_no_candidate_answers_to_goes_through_the_aliases(void **state)
{
	struct hint_alias aliases[] = {
		{ .hint = SLICE_INIT("gemini-*-flash") },
		{ .hint = SLICE_INIT("gemini-*") },
		{ .hint = SLICE_INIT("claude-o*") },
	};
	static const struct {
		const char *name;
		const char *hints[2];
		int32_t hint, alias;
		uint32_t model;
	} rows[] = {
		{ "the first that fits", { "gemini-3-flash" }, 0, 0, HAIKU },
		{ "case does not matter", { "GEMINI-3-PRO" }, 0, 1, OPUS },
		{ "the whole hint counts", { "a gemini-3-pro" }, -1, -1, OPUS },
		{ "escapes are no other letters", { "gemini\\u002d3-pro" }, 0, 1, OPUS },
		{ "a model's own name goes first", { "claude-opus" }, 0, -1, OPUS },
		{ "a hint's alias goes before the next hint",
		  { "gemini-x", "gpt-4o" },
		  0,
		  1,
		  OPUS },
		{ "a hint without one leaves it the turn", { "llava", "gpt-4o" }, 1, -1, GPT },
	};
	(void)state;
	bitset_add(&aliases[0].models, HAIKU);
	bitset_add(&aliases[0].models, GPT_MINI);
	bitset_add(&aliases[1].models, OPUS);
	bitset_add(&aliases[1].models, SONNET);
	bitset_add(&aliases[2].models, GPT);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;
		fixture_init(&f);
		f.query.aliases = aliases;
		f.query.alias_count = COUNT_OF(aliases);
		for (size_t h = 0; h < 2 && rows[i].hints[h] != NULL; h++)
			hint(&f, slice_str(rows[i].hints[h]));
		const struct route route = pick(&f);
		if (route.err != ERR_OK || route.hint != rows[i].hint ||
		    route.alias != rows[i].alias || route.model != rows[i].model)
			fail_msg("%s: hint %d, alias %d, model %u", rows[i].name, route.hint,
				 route.alias, route.model);
		fixture_fini(&f);
	}
}

static void an_alias_means_only_what_the_tenant_may_use(void **state)
{
	struct hint_alias aliases[] = { { .hint = SLICE_INIT("claude-opus*") },
					{ .hint = SLICE_INIT("claude-*") } };
	struct fixture f;
	(void)state;
	fixture_init(&f);
	bitset_add(&aliases[0].models, SONNET);
	bitset_add(&aliases[1].models, GPT);
	bitset_add(&aliases[1].models, SONNET);
	f.query.aliases = aliases;
	f.query.alias_count = 2;
	forbid(&f, OPUS);
	hint(&f, SLICE("claude-opus"));
	assert_int_equal(pick(&f).alias, 0);
	assert_int_equal(pick(&f).model, SONNET);
	forbid(&f, SONNET);
	assert_int_equal(pick(&f).alias, 1);
	assert_int_equal(pick(&f).model, GPT);
	forbid(&f, GPT);
	assert_int_equal(pick(&f).hint, -1);
	assert_int_equal(pick(&f).alias, -1);
	fixture_fini(&f);
}

static void overlong_hints_and_too_many_of_them_match_nothing(void **state)
{
	char escaped[6 * (ROUTE_HINT_BYTES + 1)];
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(escaped); i += 6)
		(void)memcpy(escaped + i, "\\u0061", 6);
	fixture_init(&f);
	hint(&f, slice_of(escaped, sizeof(escaped)));
	hint(&f, slice_of(escaped, sizeof(escaped) - 6));
	assert_int_equal(pick(&f).hint, -1);
	f.prefer.hint_count = 0;
	for (size_t i = 0; i < ROUTE_HINTS_MAX; i++)
		hint(&f, SLICE("nobody"));
	hint(&f, SLICE("gpt-4o"));
	assert_int_equal(pick(&f).hint, -1);
	f.hints[ROUTE_HINTS_MAX - 1] = SLICE("gpt-4o");
	assert_int_equal(pick(&f).hint, ROUTE_HINTS_MAX - 1);
	fixture_fini(&f);
}

/* ---- further attempts ---- */

/* Asks until nobody is left; each pick is tried then. */
static size_t pick_all(struct fixture *f, uint32_t order[MODELS])
{
	struct bitset tried = { 0 };
	size_t count = 0;

	f->query.tried = &tried;
	for (struct route route; (route = pick(f)).err == ERR_OK; count++) {
		assert_true(count < MODELS && !bitset_has(&tried, route.model));
		order[count] = route.model;
		bitset_add(&tried, route.model);
	}
	return count;
}

static void further_attempts_get_the_candidates_in_their_order(void **state)
{
	static const struct {
		const char *name;
		struct slice hints[2];
		double speed;
		int32_t default_model;
		uint64_t late;
		uint32_t order[MODELS];
		size_t count;
	} rows[] = {
		{ "by intelligence",
		  { { NULL, 0 } },
		  NAN,
		  -1,
		  0,
		  { OPUS, SONNET, GPT, HAIKU, GPT_MINI, LOCAL },
		  6 },
		{ "the default first",
		  { { NULL, 0 } },
		  NAN,
		  HAIKU,
		  0,
		  { HAIKU, OPUS, SONNET, GPT, GPT_MINI, LOCAL },
		  6 },
		{ "by score",
		  { { NULL, 0 } },
		  1,
		  -1,
		  0,
		  { HAIKU, GPT_MINI, SONNET, GPT, OPUS, LOCAL },
		  6 },
		{ "the hint's set stays the set as long as it has candidates",
		  { SLICE_INIT("claude") },
		  1,
		  -1,
		  0,
		  { HAIKU, SONNET, OPUS, GPT_MINI, GPT, LOCAL },
		  6 },
		{ "what a hint names, then what it is a part of, then the next hint",
		  { SLICE_INIT("gpt-4o"), SLICE_INIT("haiku") },
		  NAN,
		  -1,
		  0,
		  { GPT, GPT_MINI, HAIKU, OPUS, SONNET, LOCAL },
		  6 },
		{ "a provider that failed comes last",
		  { { NULL, 0 } },
		  NAN,
		  -1,
		  1 << OPUS | 1 << SONNET | 1 << HAIKU,
		  { GPT, GPT_MINI, LOCAL, OPUS, SONNET, HAIKU },
		  6 },
		{ "but within the hint's set",
		  { SLICE_INIT("claude") },
		  NAN,
		  -1,
		  1 << OPUS | 1 << SONNET,
		  { HAIKU, OPUS, SONNET, GPT, GPT_MINI, LOCAL },
		  6 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct bitset late = { { rows[i].late } };
		uint32_t order[MODELS];
		struct fixture f;

		fixture_init(&f);
		for (size_t h = 0; h < 2 && !slice_absent(rows[i].hints[h]); h++)
			hint(&f, rows[i].hints[h]);
		f.prefer.speed = rows[i].speed;
		f.query.default_model = rows[i].default_model;
		f.query.late = &late;
		const size_t count = pick_all(&f, order);
		for (size_t n = 0; n < rows[i].count; n++)
			if (n >= count || order[n] != rows[i].order[n])
				fail_msg("%s: pick %zu is model %u", rows[i].name, n, order[n]);
		assert_int_equal(count, rows[i].count);
		fixture_fini(&f);
	}
}

static void a_tried_model_has_its_reason(void **state)
{
	const struct bitset tried = { { 1 << OPUS | 1 << GPT } };
	struct route_candidate trace[MODELS];
	struct fixture f;

	(void)state;
	fixture_init(&f);
	f.query.tried = &tried;
	(void)route_pick(&f.catalog, &f.query, trace);
	assert_int_equal(trace[OPUS].reason, ROUTE_TRIED);
	assert_int_equal(trace[SONNET].reason, ROUTE_CANDIDATE);
	forbid(&f, GPT);
	(void)route_pick(&f.catalog, &f.query, trace);
	assert_int_equal(trace[GPT].reason, ROUTE_NOT_PERMITTED);
	fixture_fini(&f);
}

/* ---- refusals ---- */

static void every_model_is_refused_for_its_own_reason(void **state)
{
	struct route_candidate trace[MODELS];
	struct fixture f;

	(void)state;
	fixture_init(&f);
	forbid(&f, OPUS);
	f.query.image = true;
	f.query.input_tokens = 9000;
	f.prefer.intelligence = 1;
	hint(&f, SLICE("haiku"));
	const struct route route = route_pick(&f.catalog, &f.query, trace);
	assert_int_equal(route.model, HAIKU);
	static const enum route_reason reasons[MODELS] = {
		[OPUS] = ROUTE_NOT_PERMITTED,
		[LOCAL] = ROUTE_NO_IMAGE,
		[OFF] = ROUTE_DISABLED,
	};
	for (uint32_t i = 0; i < MODELS; i++) {
		assert_int_equal(trace[i].model, i);
		assert_int_equal(trace[i].reason, reasons[i]);
		assert_int_equal(trace[i].hinted, i == HAIKU);
		assert_true(isnan(trace[i].score) == (reasons[i] != ROUTE_CANDIDATE));
		assert_true(trace[i].intelligence == models[i].intelligence);
		assert_true(trace[i].speed == models[i].speed);
	}
	f.query.image = false;
	(void)route_pick(&f.catalog, &f.query, trace);
	assert_int_equal(trace[LOCAL].reason, ROUTE_CONTEXT_TOO_SMALL);
	f.query.audio = true;
	(void)route_pick(&f.catalog, &f.query, trace);
	assert_int_equal(trace[HAIKU].reason, ROUTE_NO_AUDIO);
	assert_int_equal(trace[LOCAL].reason, ROUTE_CONTEXT_TOO_SMALL);
	assert_false(trace[HAIKU].hinted);
	forbid(&f, OFF); /* what a tenant may not use is not its business, enabled or not */
	(void)route_pick(&f.catalog, &f.query, trace);
	assert_int_equal(trace[OFF].reason, ROUTE_NOT_PERMITTED);
	fixture_fini(&f);
}

static void the_error_says_what_would_have_to_change(void **state)
{
	static const struct {
		const char *name;
		uint64_t permitted;
		bool image, audio;
		uint64_t input_tokens;
		enum err err;
	} rows[] = {
		{ "nothing permitted", 0, false, false, 10, ERR_MODEL_FORBIDDEN },
		{ "permitted beyond the catalogue", ~UINT64_C(0) << MODELS, false, false, 10,
		  ERR_MODEL_FORBIDDEN },
		{ "permitted, but off", 1 << OFF, false, false, 10, ERR_NO_MODEL },
		{ "off, and an image", 1 << OFF, true, false, 10, ERR_NO_MODEL },
		{ "no image", 1 << LOCAL, true, false, 10, ERR_CONTENT_UNSUPPORTED },
		{ "no audio", 1 << GPT | 1 << OPUS, false, true, 10, ERR_CONTENT_UNSUPPORTED },
		{ "one takes images, the other audio", 1 << GPT | 1 << LOCAL, true, true, 10,
		  ERR_CONTENT_UNSUPPORTED },
		{ "too long", 1 << GPT | 1 << LOCAL, false, false, 200001, ERR_NO_MODEL },
		{ "too long, and no image", 1 << LOCAL, true, false, 8193, ERR_NO_MODEL },
		{ "one too small, one without audio", 1 << GPT | 1 << LOCAL, false, true, 8193,
		  ERR_CONTENT_UNSUPPORTED },
		{ "just fits", 1 << LOCAL, false, false, 8192, ERR_OK },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;

		fixture_init(&f);
		f.permitted.words[0] = rows[i].permitted;
		f.query.image = rows[i].image;
		f.query.audio = rows[i].audio;
		f.query.input_tokens = rows[i].input_tokens;
		const struct route route = pick(&f);
		if (route.err != rows[i].err)
			fail_msg("%s: %s", rows[i].name, err_info(route.err)->reason);
		fixture_fini(&f);
	}
}

static void a_model_that_takes_fewer_tools_is_passed_over(void **state)
{
	static const struct {
		const char *name;
		uint64_t permitted;
		uint32_t tools;
		bool image;
		uint64_t input_tokens;
		enum err err;
		uint32_t winner;
	} rows[] = {
		{ "as many as it takes", 1 << OPUS | 1 << HAIKU, 128, false, 10, ERR_OK, OPUS },
		{ "one more", 1 << OPUS | 1 << HAIKU, 129, false, 10, ERR_OK, HAIKU },
		{ "one more, and there is no other", 1 << OPUS, 129, false, 10, ERR_TOOLS_TOO_MANY,
		  OPUS },
		{ "the other takes no image", 1 << OPUS | 1 << LOCAL, 129, true, 10,
		  ERR_CONTENT_UNSUPPORTED, OPUS },
		{ "and it would be too long", 1 << OPUS, 129, false, 200001, ERR_NO_MODEL, OPUS },
	};
	struct route_candidate trace[MODELS];
	struct model few[MODELS];
	struct fixture f;

	(void)state;
	(void)memcpy(few, models, sizeof(few));
	few[OPUS].profile.max_tools = 128;
	for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
		const size_t row = i / 2;
		fixture_init(&f);
		f.catalog.models = few;
		assert_true(catalog_index(&f.catalog, &f.arena));
		if (i % 2 == 1)
			f.catalog.index = NULL;
		f.permitted.words[0] = rows[row].permitted;
		f.query.tools = rows[row].tools;
		f.query.image = rows[row].image;
		f.query.input_tokens = rows[row].input_tokens;
		f.prefer.intelligence = 1;
		const struct route route = route_pick(&f.catalog, &f.query, trace);
		if (route.err != rows[row].err ||
		    (route.err == ERR_OK && route.model != rows[row].winner))
			fail_msg("%s: %s, model %u", rows[row].name, err_info(route.err)->reason,
				 route.model);
		if (rows[row].tools > 128)
			assert_int_equal(trace[OPUS].reason, ROUTE_TOO_MANY_TOOLS);
		fixture_fini(&f);
	}
	assert_string_equal(route_reason_name(ROUTE_TOO_MANY_TOOLS), "too_many_tools");
}

/* ---- what goes on where it was ---- */

static void what_goes_on_stays_where_it_was_unless_something_speaks_against_it(void **state)
{
	static const struct row {
		const char *name, *hint;
		uint32_t held, forbidden, winner;
		bool image, stays;
	} rows[] = {
		{ "no hint: scores do not count", NULL, HAIKU, MODELS, HAIKU, false, true },
		{ "a hint for several", "claude", HAIKU, MODELS, HAIKU, false, true },
		{ "a hint for another", "gpt-4o", HAIKU, MODELS, GPT, false, false },
		{ "it is not permitted any more", NULL, HAIKU, HAIKU, OPUS, false, false },
		{ "it does not take images", NULL, LOCAL, MODELS, OPUS, true, false },
		{ "it is disabled", NULL, OFF, MODELS, OPUS, false, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct bitset held = { { UINT64_C(1) << rows[i].held } };
		struct fixture f;
		fixture_init(&f);
		f.prefer.intelligence = 1;
		f.query.held = &held;
		f.query.image = rows[i].image;
		if (rows[i].hint != NULL)
			hint(&f, slice_str(rows[i].hint));
		if (rows[i].forbidden != MODELS)
			forbid(&f, rows[i].forbidden);
		const struct route route = pick(&f);
		if (route.err != ERR_OK || route.model != rows[i].winner ||
		    route.held != rows[i].stays)
			fail_msg("%s: model %u", rows[i].name, route.model);
		fixture_fini(&f);
	}
}

static void an_empty_catalogue_permits_nothing(void **state)
{
	const struct catalog empty = { 0 };
	struct fixture f;

	(void)state;
	fixture_init(&f);
	assert_int_equal(route_pick(&empty, &f.query, NULL).err, ERR_MODEL_FORBIDDEN);
	fixture_fini(&f);
}

static void reasons_have_stable_names(void **state)
{
	(void)state;
	assert_string_equal(route_reason_name(ROUTE_CANDIDATE), "candidate");
	assert_string_equal(route_reason_name(ROUTE_DISABLED), "disabled");
	assert_string_equal(route_reason_name(ROUTE_NOT_PERMITTED), "not_permitted");
	assert_string_equal(route_reason_name(ROUTE_NO_IMAGE), "no_image");
	assert_string_equal(route_reason_name(ROUTE_NO_AUDIO), "no_audio");
	assert_string_equal(route_reason_name(ROUTE_CONTEXT_TOO_SMALL), "context_too_small");
	assert_string_equal(route_reason_name(ROUTE_TRIED), "tried");
}

/* ---- the largest catalogue ---- */

static void a_thousand_models_are_all_reachable(void **state)
{
	static struct model many[CATALOG_MODELS_MAX];
	static char ids[CATALOG_MODELS_MAX][16];
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (uint32_t i = 0; i < CATALOG_MODELS_MAX; i++) {
		(void)snprintf(ids[i], sizeof(ids[i]), "m-%u", i);
		many[i] = (struct model){ .id = slice_str(ids[i]),
					  .name = SLICE_INIT("same"),
					  .enabled = true,
					  .context = 10000,
					  .intelligence = 0.5 };
		bitset_add(&f.permitted, i);
	}
	struct catalog catalog = { .models = many, .count = CATALOG_MODELS_MAX };
	assert_true(catalog_index(&catalog, &f.arena));
	hint(&f, SLICE(""));
	for (uint32_t i = 0; i < CATALOG_MODELS_MAX; i++) {
		f.hints[0] = many[i].id;
		const struct route route = route_pick(&catalog, &f.query, NULL);
		assert_int_equal(route.err, ERR_OK);
		assert_int_equal(route.model, i);
	}
	f.hints[0] = SLICE("m-");
	many[CATALOG_MODELS_MAX - 1].intelligence = 0.6;
	assert_true(catalog_index(&catalog, &f.arena));
	assert_int_equal(route_pick(&catalog, &f.query, NULL).model, CATALOG_MODELS_MAX - 1);
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_preference_means_the_default_else_the_cleverest),
		cmocka_unit_test(priorities_weigh_price_speed_and_intelligence),
		cmocka_unit_test(the_price_counts_what_a_model_can_write),
		cmocka_unit_test(ties_go_to_the_first_of_the_catalogue),
		cmocka_unit_test(a_score_does_not_depend_on_the_other_candidates),
		cmocka_unit_test(hints_are_evaluated_in_order_and_exact_before_part),
		cmocka_unit_test(a_hint_goes_before_priorities_and_the_default),
		cmocka_unit_test(hints_match_only_what_the_tenant_may_use),
		cmocka_unit_test(a_hint_that_no_candidate_answers_to_goes_through_the_aliases),
		cmocka_unit_test(an_alias_means_only_what_the_tenant_may_use),
		cmocka_unit_test(overlong_hints_and_too_many_of_them_match_nothing),
		cmocka_unit_test(further_attempts_get_the_candidates_in_their_order),
		cmocka_unit_test(a_tried_model_has_its_reason),
		cmocka_unit_test(every_model_is_refused_for_its_own_reason),
		cmocka_unit_test(a_model_that_takes_fewer_tools_is_passed_over),
		cmocka_unit_test(the_error_says_what_would_have_to_change),
		cmocka_unit_test(
			what_goes_on_stays_where_it_was_unless_something_speaks_against_it),
		cmocka_unit_test(an_empty_catalogue_permits_nothing),
		cmocka_unit_test(reasons_have_stable_names),
		cmocka_unit_test(a_thousand_models_are_all_reachable),
	};

	return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
