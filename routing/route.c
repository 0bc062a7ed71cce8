#include "routing/route.h"

#include "codec/base/must.h"

#include <math.h>

static const double cheap_usd = 0.01; /* DESIGN 5: K, the cost of middling cheapness */
static const double fast_ms = 5000;   /* T, the duration of middling speed */
static const double pico = 1e-12;

const char *route_reason_name(enum route_reason reason)
{
	static const char *const names[] = {
		[ROUTE_CANDIDATE] = "candidate",
		[ROUTE_DISABLED] = "disabled",
		[ROUTE_NOT_PERMITTED] = "not_permitted",
		[ROUTE_NO_IMAGE] = "no_image",
		[ROUTE_NO_AUDIO] = "no_audio",
		[ROUTE_CONTEXT_TOO_SMALL] = "context_too_small",
		[ROUTE_TRIED] = "tried",
		[ROUTE_UNHEALTHY] = "unhealthy",
	};

	_Static_assert(COUNT_OF(names) == ROUTE_REASON_COUNT, "every reason has a name");
	must(reason < ROUTE_REASON_COUNT);
	return names[reason];
}

/* The first number of the set from `n` on; BITSET_MAX when there is none. */
static uint32_t next_of(const struct bitset *set, uint32_t n)
{
	while (n < BITSET_MAX) {
		const uint64_t rest = set->words[n / 64] >> n % 64;
		if (rest != 0)
			return n + (uint32_t)__builtin_ctzll(rest);
		n = (n / 64 + 1) * 64;
	}
	return BITSET_MAX;
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
	if (query->input_tokens > model->context)
		return ROUTE_CONTEXT_TOO_SMALL;
	if (query->tried != NULL && bitset_has(query->tried, index))
		return ROUTE_TRIED;
	/* Last: what health alone keeps out is worth waiting for. */
	if (query->down != NULL && bitset_has(query->down, index))
		return ROUTE_UNHEALTHY;
	return ROUTE_CANDIDATE;
}

/* Fills `out`; ERR_OK when it is not empty. */
static enum err candidates_find(const struct catalog *catalog, const struct route_query *query,
				struct bitset *out)
{
	bool permitted = false, content = false, down = false, any = false;

	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct model *model = &catalog->models[i];
		const enum route_reason reason = reason_of(model, i, query);

		if (reason == ROUTE_CANDIDATE) {
			bitset_add(out, i);
			any = true;
			continue;
		}
		permitted = permitted || bitset_has(query->permitted, i);
		down = down || reason == ROUTE_UNHEALTHY;
		if (reason == ROUTE_NO_IMAGE || reason == ROUTE_NO_AUDIO)
			content = content || query->input_tokens <= model->context;
	}
	if (any)
		return ERR_OK;
	if (!permitted)
		return ERR_MODEL_FORBIDDEN;
	if (down)
		return ERR_PROVIDER_NO_ATTEMPT;
	return content ? ERR_CONTENT_UNSUPPORTED : ERR_NO_MODEL;
}

/* ---- hints ---- */

enum match { MATCH_NONE, MATCH_PART, MATCH_EXACT };

static enum match name_match(struct slice name, struct slice hint, enum match before)
{
	if (slice_eq_nocase(name, hint))
		return MATCH_EXACT;
	return before == MATCH_NONE && slice_has_nocase(name, hint) ? MATCH_PART : before;
}

static enum match model_match(const struct model *model, struct slice hint)
{
	enum match best = name_match(model->id, hint, MATCH_NONE);

	if (best != MATCH_EXACT)
		best = name_match(model->name, hint, best);
	for (uint32_t i = 0; i < model->alias_count && best != MATCH_EXACT; i++)
		best = name_match(model->aliases[i], hint, best);
	return best;
}

/* Narrows `left` to the models that `hint` means: those it names exactly, else those it is a part
 * of. False: none, and `left` stays. */
static bool hint_apply(const struct catalog *catalog, struct slice hint, struct bitset *left)
{
	struct bitset matched[MATCH_EXACT + 1] = { 0 };
	bool any[MATCH_EXACT + 1] = { false };
	struct name_grams grams = { 0 };

	if (catalog->grams != NULL)
		name_grams_add(&grams, hint);
	for (uint32_t i = next_of(left, 0); i < catalog->count; i = next_of(left, i + 1)) {
		if (catalog->grams != NULL && !name_grams_within(&grams, &catalog->grams[i]))
			continue;
		const enum match match = model_match(&catalog->models[i], hint);
		bitset_add(&matched[match], i);
		any[match] = true;
	}
	const enum match best = any[MATCH_EXACT] ? MATCH_EXACT : MATCH_PART;
	if (any[best])
		*left = matched[best];
	return any[best];
}

static void lower_case(struct slice s, char *out)
{
	for (size_t i = 0; i < s.len; i++)
		out[i] = (char)(s.at[i] >= 'A' && s.at[i] <= 'Z' ? s.at[i] + 32 : s.at[i]);
}

/* Narrows `left` to what the first alias has that stands for `hint` and for one of them. Its index; -1:
 * none, and `left` stays. */
static int32_t alias_apply(const struct route_query *query, struct slice hint, struct bitset *left)
{
	char text[ROUTE_HINT_BYTES];

	if (query->alias_count == 0)
		return -1;
	lower_case(hint, text);
	for (uint32_t i = 0; i < query->alias_count; i++) {
		struct bitset both = *left;
		bitset_and(&both, &query->aliases[i].models);
		if (next_of(&both, 0) == BITSET_MAX ||
		    !slice_glob(query->aliases[i].hint, slice_of(text, hint.len)))
			continue;
		*left = both;
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
		if (!hint_apply(catalog, hint, left)) {
			route->alias = alias_apply(query, hint, left);
			if (route->alias < 0)
				continue;
		}
		route->hint = (int32_t)i;
		return;
	}
}

/* Without the models of `late`, unless none is left then. */
static void spare_late(const struct bitset *late, struct bitset *left)
{
	struct bitset rest;
	uint64_t any = 0;

	for (size_t i = 0; i < COUNT_OF(rest.words); i++) {
		rest.words[i] = left->words[i] & ~late->words[i];
		any |= rest.words[i];
	}
	if (any != 0)
		*left = rest;
}

/* ---- scores ---- */

/* Priorities as shares of their sum; none: the request has no preference, all are 0. */
struct weights {
	double cost, speed, intelligence;
	bool none;
};

static double weight(double priority)
{
	return isnan(priority) ? 0 : priority;
}

static struct weights weights_of(const struct model_preferences *prefer)
{
	const double cost = weight(prefer->cost), speed = weight(prefer->speed);
	const double intelligence = weight(prefer->intelligence);
	const double sum = cost + speed + intelligence;

	if (sum == 0)
		return (struct weights){ .none = true };
	return (struct weights){ cost / sum, speed / sum, intelligence / sum, false };
}

/* What it will write at most: never more than it can. */
static uint32_t model_output(const struct model *model, const struct route_query *query)
{
	const uint32_t most = model->profile.max_output;

	return query->max_tokens < most ? query->max_tokens : most;
}

/* What the request costs if the model writes as much as it may. */
static double model_usd(const struct model *model, const struct route_query *query)
{
	return ((double)query->input_tokens * (double)model->price_input +
		(double)model_output(model, query) * (double)model->price_output) *
	       pico;
}

static double model_speed(const struct model *model, uint32_t index,
			  const struct route_query *query)
{
	const struct model_speed *speed = query->speeds == NULL ? NULL : &query->speeds[index];

	if (speed == NULL || !speed->measured)
		return model->speed;
	return fast_ms / (fast_ms + (double)speed->ttft_ms +
			  (double)model_output(model, query) * (double)speed->token_ms);
}

static double cheapness(double usd)
{
	return cheap_usd / (cheap_usd + usd);
}

static double model_score(const struct model *model, uint32_t index,
			  const struct route_query *query, const struct weights *w)
{
	return w->cost * cheapness(model_usd(model, query)) +
	       w->speed * model_speed(model, index, query) + w->intelligence * model->intelligence;
}

static void note_score(struct route *route, uint32_t model, double score)
{
	if (route->scored_count < ROUTE_SCORED_MAX)
		route->scored[route->scored_count++] = (struct route_scored){ model, score };
}

/* The best of `left` by score, or without a preference by the tenant's default and intelligence. */
static void pick_winner(const struct catalog *catalog, const struct route_query *query,
			const struct bitset *left, const struct weights *w, struct route *route)
{
	double best = 0;

	if (w->none && query->default_model >= 0 &&
	    bitset_has(left, (size_t)query->default_model)) {
		route->model = (uint32_t)query->default_model;
		return;
	}
	route->model = UINT32_MAX;
	for (uint32_t i = next_of(left, 0); i < catalog->count; i = next_of(left, i + 1)) {
		const struct model *model = &catalog->models[i];
		const double value =
			w->none ? model->intelligence : model_score(model, i, query, w);

		if (!w->none)
			note_score(route, i, value);
		if (route->model == UINT32_MAX || value > best) {
			route->model = i;
			best = value;
		}
	}
	must(route->model != UINT32_MAX);
	if (!w->none)
		route->score = best;
}

/* ---- the door ---- */

static void trace_fill(const struct catalog *catalog, const struct route_query *query,
		       const struct bitset *hinted, struct route_candidate *trace)
{
	const struct weights w = weights_of(query->prefer);

	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct model *model = &catalog->models[i];
		const enum route_reason reason = reason_of(model, i, query);
		const double usd = model_usd(model, query);
		const bool scored = reason == ROUTE_CANDIDATE && !w.none;

		trace[i] = (struct route_candidate){
			.model = i,
			.reason = reason,
			.hinted = hinted != NULL && bitset_has(hinted, i),
			.score = scored ? model_score(model, i, query, &w) : NAN,
			.usd = usd,
			.cheapness = cheapness(usd),
			.speed = model_speed(model, i, query),
			.intelligence = model->intelligence,
		};
	}
}

struct route route_pick(const struct catalog *catalog, const struct route_query *query,
			struct route_candidate *trace)
{
	must(catalog->count <= CATALOG_MODELS_MAX);
	const struct weights w = weights_of(query->prefer);
	struct route route = { .hint = -1, .alias = -1, .score = NAN };
	struct bitset left = { 0 };

	route.err = candidates_find(catalog, query, &left);
	if (route.err == ERR_OK)
		hints_apply(catalog, query, &left, &route);
	if (trace != NULL)
		trace_fill(catalog, query, route.hint >= 0 ? &left : NULL, trace);
	if (route.err != ERR_OK)
		return route;
	if (query->late != NULL)
		spare_late(query->late, &left);
	pick_winner(catalog, query, &left, &w, &route);
	return route;
}
