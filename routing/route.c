#include "routing/route.h"

#include "codec/base/must.h"
#include "routing/score.h"

#include <math.h>

const char *route_reason_name(enum route_reason reason)
{
	static const char *const names[] = {
		[ROUTE_CANDIDATE] = "candidate",
		[ROUTE_DISABLED] = "disabled",
		[ROUTE_NOT_PERMITTED] = "not_permitted",
		[ROUTE_NO_IMAGE] = "no_image",
		[ROUTE_NO_AUDIO] = "no_audio",
		[ROUTE_TOO_MANY_TOOLS] = "too_many_tools",
		[ROUTE_CONTEXT_TOO_SMALL] = "context_too_small",
		[ROUTE_TRIED] = "tried",
		[ROUTE_UNHEALTHY] = "unhealthy",
	};

	_Static_assert(COUNT_OF(names) == ROUTE_REASON_COUNT, "every reason has a name");
	must(reason < ROUTE_REASON_COUNT);
	return names[reason];
}

/* ---- sets of models ----
 *
 * Sets have room for the largest catalogue, and most catalogues are small: only as many words are looked
 * at, and written, as its models take. */

static uint32_t words_of(const struct catalog *catalog)
{
	return (catalog->count + 63) / 64;
}

/* The first model of the set from `n` on; catalog->count when there is none. */
static uint32_t next_of(const struct catalog *catalog, const struct bitset *set, uint32_t n)
{
	while (n < catalog->count) {
		const uint64_t rest = set->words[n / 64] >> n % 64;
		if (rest != 0)
			return n + (uint32_t)__builtin_ctzll(rest);
		n = (n / 64 + 1) * 64;
	}
	return catalog->count;
}

static bool is_empty(const struct bitset *set, uint32_t words)
{
	uint64_t any = 0;

	for (uint32_t i = 0; i < words; i++)
		any |= set->words[i];
	return any == 0;
}

/* `of` NULL: none of them. */
static void remove_all(struct bitset *set, const struct bitset *of, uint32_t words)
{
	for (uint32_t i = 0; of != NULL && i < words; i++)
		set->words[i] &= ~of->words[i];
}

/* Narrows `left` to `matched`. False: nothing would be left, and `left` stays. */
static bool narrow(struct bitset *left, const struct bitset *matched, uint32_t words)
{
	uint64_t any = 0;

	for (uint32_t i = 0; i < words; i++)
		any |= left->words[i] & matched->words[i];
	for (uint32_t i = 0; any != 0 && i < words; i++)
		left->words[i] &= matched->words[i];
	return any != 0;
}

/* ---- who is a candidate ---- */

static enum route_reason reason_of(const struct model *model, uint32_t index,
				   const struct route_query *query)
{
	/* First, so that a refusal names no model that is not the tenant's business. */
	if (!bitset_has(query->permitted, index))
		return ROUTE_NOT_PERMITTED;
	if (!model->enabled)
		return ROUTE_DISABLED;
	if (query->image && !model->profile.image)
		return ROUTE_NO_IMAGE;
	if (query->audio && !model->profile.audio)
		return ROUTE_NO_AUDIO;
	if (model->profile.max_tools != 0 && query->tools > model->profile.max_tools)
		return ROUTE_TOO_MANY_TOOLS;
	if (query->input_tokens > model->context)
		return ROUTE_CONTEXT_TOO_SMALL;
	if (query->tried != NULL && bitset_has(query->tried, index))
		return ROUTE_TRIED;
	/* Last: what health alone keeps out is worth waiting for. */
	if (query->down != NULL && bitset_has(query->down, index))
		return ROUTE_UNHEALTHY;
	return ROUTE_CANDIDATE;
}

/* Why there is no candidate. */
static enum err refusal_of(const struct catalog *catalog, const struct route_query *query)
{
	bool permitted = false, content = false, tools = false, down = false;

	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct model *model = &catalog->models[i];
		const enum route_reason reason = reason_of(model, i, query);

		permitted = permitted || bitset_has(query->permitted, i);
		down = down || reason == ROUTE_UNHEALTHY;
		if (reason == ROUTE_NO_IMAGE || reason == ROUTE_NO_AUDIO)
			content = content || query->input_tokens <= model->context;
		if (reason == ROUTE_TOO_MANY_TOOLS)
			tools = tools || query->input_tokens <= model->context;
	}
	if (!permitted)
		return ERR_MODEL_FORBIDDEN;
	if (down)
		return ERR_PROVIDER_NO_ATTEMPT;
	if (content)
		return ERR_CONTENT_UNSUPPORTED;
	return tools ? ERR_TOOLS_TOO_MANY : ERR_NO_MODEL;
}

/* As reason_of says of each. With the index whole words of models are judged at once, and none is looked
 * at alone unless the request is larger than the smallest context, or has more tools than some model takes. */
static void candidates_find(const struct catalog *catalog, const struct route_query *query,
			    struct bitset *out)
{
	const struct catalog_index *index = catalog->index;
	const struct bitset *permitted = query->permitted;
	const uint32_t words = words_of(catalog);

	if (index == NULL || query->input_tokens > index->context_least ||
	    query->tools > index->tools_least) {
		for (uint32_t i = 0; i < words; i++)
			out->words[i] = 0;
		for (uint32_t i = next_of(catalog, permitted, 0); i < catalog->count;
		     i = next_of(catalog, permitted, i + 1))
			if (reason_of(&catalog->models[i], i, query) == ROUTE_CANDIDATE)
				bitset_add(out, i);
		return;
	}
	for (uint32_t i = 0; i < words; i++)
		out->words[i] = permitted->words[i] & index->enabled.words[i] &
				(query->image ? index->image.words[i] : UINT64_MAX) &
				(query->audio ? index->audio.words[i] : UINT64_MAX);
	remove_all(out, query->tried, words);
	remove_all(out, query->down, words);
}

/* ---- hints ---- */

/* Narrows `left` to the models that `hint` means: those it names exactly, else those it is a part
 * of. False: none, and `left` stays. */
static bool hint_apply(const struct catalog *catalog, const struct route_query *query,
		       struct slice hint, struct bitset *left)
{
	struct hint_models scratch;
	const struct hint_models *meant = hint_recall(query->memory, catalog, hint, &scratch);

	return narrow(left, &meant->exact, words_of(catalog)) ||
	       narrow(left, &meant->part, words_of(catalog));
}

static void lower_case(struct slice s, char *out)
{
	for (size_t i = 0; i < s.len; i++)
		out[i] = (char)(s.at[i] >= 'A' && s.at[i] <= 'Z' ? s.at[i] + 32 : s.at[i]);
}

/* Narrows `left` to what the first alias has that stands for `hint` and for one of them. Its index; -1:
 * none, and `left` stays. */
static int32_t alias_apply(const struct catalog *catalog, const struct route_query *query,
			   struct slice hint, struct bitset *left)
{
	char text[ROUTE_HINT_BYTES];

	if (query->alias_count == 0)
		return -1;
	lower_case(hint, text);
	for (uint32_t i = 0; i < query->alias_count; i++) {
		if (slice_glob(query->aliases[i].hint, slice_of(text, hint.len)) &&
		    narrow(left, &query->aliases[i].models, words_of(catalog)))
			return (int32_t)i;
	}
	return -1;
}

/* Finds the first hint that means a candidate, in route->hint and ->alias, and narrows *left by it; -1
 * when none does. */
static void hints_apply(const struct catalog *catalog, const struct route_query *query,
			struct bitset *left, struct route *route)
{
	const struct model_preferences *prefer = query->prefer;
	char buffer[ROUTE_HINT_BYTES];

	for (uint32_t i = 0; i < prefer->hint_count && i < ROUTE_HINTS_MAX; i++) {
		const struct slice hint = json_str_fit(prefer->hints[i], buffer, sizeof(buffer));
		/* Empty would be a part of every name. */
		if (hint.len == 0 || hint.len > ROUTE_HINT_BYTES)
			continue;
		if (!hint_apply(catalog, query, hint, left)) {
			route->alias = alias_apply(catalog, query, hint, left);
			if (route->alias < 0)
				continue;
		}
		route->hint = (int32_t)i;
		return;
	}
}

/* Without the models of `late`, unless none is left then. */
static void spare_late(const struct bitset *late, struct bitset *left, uint32_t words)
{
	struct bitset rest;

	(void)memcpy(rest.words, left->words, words * sizeof(rest.words[0]));
	remove_all(&rest, late, words);
	if (!is_empty(&rest, words))
		(void)memcpy(left->words, rest.words, words * sizeof(rest.words[0]));
}

/* ---- scores ---- */

static struct score_query score_query_of(const struct route_query *query)
{
	return (struct score_query){ .input_tokens = (double)query->input_tokens,
				     .max_tokens = query->max_tokens,
				     .weights = score_weights_of(query->prefer) };
}

static const struct model_figures *figures_of(const struct catalog *catalog, uint32_t block,
					      struct model_figures *scratch)
{
	if (catalog->index != NULL)
		return &catalog->index->figures[block];
	model_figures(catalog, block, scratch);
	return scratch;
}

/* As many as a block has models, where the catalogue has no more for the last one. */
static const struct model_speed *speeds_of(const struct catalog *catalog,
					   const struct route_query *query, uint32_t block,
					   struct model_speed *scratch)
{
	const uint32_t first = block * SCORE_MODELS, rest = catalog->count - first;

	if (query->speeds == NULL || rest >= SCORE_MODELS)
		return query->speeds == NULL ? NULL : &query->speeds[first];
	for (uint32_t i = 0; i < SCORE_MODELS; i++)
		scratch[i] = i < rest ? query->speeds[first + i] : (struct model_speed){ 0 };
	return scratch;
}

static void note_score(struct route *route, uint32_t model, double score)
{
	if (route->scored_count < ROUTE_SCORED_MAX)
		route->scored[route->scored_count++] = (struct route_scored){ model, score };
}

/* Those of `left` in the block at `first`, into what is noted and best so far. */
static void pick_of_block(const double *totals, uint32_t first, const struct bitset *left,
			  struct route *route)
{
	uint32_t set = left->words[first / 64] >> first % 64 & ((1u << SCORE_MODELS) - 1);

	for (; set != 0; set &= set - 1) {
		const uint32_t i = (uint32_t)__builtin_ctz(set);
		note_score(route, first + i, totals[i]);
		if (totals[i] > route->score) {
			route->model = first + i;
			route->score = totals[i];
		}
	}
}

/* The best of `left` by score. Few blocks hold one better than all before: only these are looked through. */
static void pick_by_score(const struct catalog *catalog, const struct route_query *query,
			  const struct score_query *wanted, const struct bitset *left,
			  struct route *route)
{
	struct model_figures figures;
	struct model_speed speeds[SCORE_MODELS];
	double totals[SCORE_MODELS];

	route->score = -INFINITY;
	for (uint32_t i = next_of(catalog, left, 0); i < catalog->count;) {
		const uint32_t block = i / SCORE_MODELS;
		const double most =
			score_totals(figures_of(catalog, block, &figures),
				     speeds_of(catalog, query, block, speeds), wanted, totals);
		if (most > route->score || route->scored_count < ROUTE_SCORED_MAX)
			pick_of_block(totals, block * SCORE_MODELS, left, route);
		i = next_of(catalog, left, (block + 1) * SCORE_MODELS);
	}
}

/* Without a preference: the tenant's default, else the most intelligent. */
static void pick_by_default(const struct catalog *catalog, const struct route_query *query,
			    const struct bitset *left, struct route *route)
{
	double best = -INFINITY;

	if (query->default_model >= 0 && bitset_has(left, (size_t)query->default_model)) {
		route->model = (uint32_t)query->default_model;
		return;
	}
	for (uint32_t i = next_of(catalog, left, 0); i < catalog->count;
	     i = next_of(catalog, left, i + 1)) {
		const double value = catalog->models[i].intelligence;
		if (value > best) {
			route->model = i;
			best = value;
		}
	}
}

/* The best of `left`. */
static void pick_winner(const struct catalog *catalog, const struct route_query *query,
			const struct bitset *left, struct route *route)
{
	const struct score_query wanted = score_query_of(query);

	route->model = UINT32_MAX;
	if (wanted.weights.none)
		pick_by_default(catalog, query, left, route);
	else
		pick_by_score(catalog, query, &wanted, left, route);
	must(route->model != UINT32_MAX);
}

/* ---- the door ---- */

static void trace_fill(const struct catalog *catalog, const struct route_query *query,
		       const struct bitset *hinted, struct route_candidate *trace)
{
	const struct score_query wanted = score_query_of(query);
	struct model_figures figures;
	struct model_speed speeds[SCORE_MODELS];
	struct scores scores;

	for (uint32_t i = 0; i < catalog->count; i++) {
		const uint32_t at = i % SCORE_MODELS;
		if (at == 0)
			score_parts(figures_of(catalog, i / SCORE_MODELS, &figures),
				    speeds_of(catalog, query, i / SCORE_MODELS, speeds), &wanted,
				    &scores);
		const struct model *model = &catalog->models[i];
		const enum route_reason reason = reason_of(model, i, query);
		const bool scored = reason == ROUTE_CANDIDATE && !wanted.weights.none;

		trace[i] = (struct route_candidate){
			.model = i,
			.reason = reason,
			.hinted = hinted != NULL && bitset_has(hinted, i),
			.score = scored ? scores.total[at] : NAN,
			.usd = scores.usd[at],
			.cheapness = scores.cheapness[at],
			.speed = scores.speed[at],
			.intelligence = model->intelligence,
		};
	}
}

struct route route_pick(const struct catalog *catalog, const struct route_query *query,
			struct route_candidate *trace)
{
	must(catalog->count <= CATALOG_MODELS_MAX);
	struct route route = { .hint = -1,
			       .alias = -1,
			       .score = NAN,
			       .input_tokens = query->input_tokens,
			       .max_tokens = query->max_tokens,
			       .image = query->image,
			       .audio = query->audio };
	const uint32_t words = words_of(catalog);
	struct bitset left;

	candidates_find(catalog, query, &left);
	route.err = is_empty(&left, words) ? refusal_of(catalog, query) : ERR_OK;
	if (route.err == ERR_OK)
		hints_apply(catalog, query, &left, &route);
	if (trace != NULL)
		trace_fill(catalog, query, route.hint >= 0 ? &left : NULL, trace);
	if (route.err != ERR_OK)
		return route;
	if (query->held != NULL)
		route.held = narrow(&left, query->held, words);
	if (query->late != NULL)
		spare_late(query->late, &left, words);
	pick_winner(catalog, query, &left, &route);
	return route;
}
