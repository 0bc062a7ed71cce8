#include "routing/score.h"

#include <math.h>
#include <string.h>

static const double cheap_usd = 0.01; /* DESIGN 5: K, the cost of middling cheapness */
static const double fast_ms = 5000;   /* T, the duration of middling speed */
static const double pico = 1e-12;

static double weight(double priority)
{
	return isnan(priority) ? 0 : priority;
}

struct score_weights score_weights_of(const struct model_preferences *prefer)
{
	const double cost = weight(prefer->cost), speed = weight(prefer->speed);
	const double intelligence = weight(prefer->intelligence);
	const double sum = cost + speed + intelligence;

	if (sum == 0)
		return (struct score_weights){ .none = true };
	return (struct score_weights){ cost / sum, speed / sum, intelligence / sum, false };
}

/* Two models at once: what every processor we build for has. */
typedef double pair __attribute__((vector_size(16)));
typedef int64_t pair_mask __attribute__((vector_size(16)));

struct pair_scores {
	pair usd, cheapness, speed, total;
};

static inline pair both(double value)
{
	return (pair){ value, value };
}

static inline pair pair_at(const double *at)
{
	pair out;

	(void)memcpy(&out, at, sizeof(out));
	return out;
}

static inline pair choose(pair_mask mask, pair yes, pair no)
{
	return (pair)((mask & (pair_mask)yes) | (~mask & (pair_mask)no));
}

/* Where nothing was measured, what was declared. By a mask: which models were measured is no pattern that a
 * processor could foresee. */
static inline pair speed_of(pair declared, pair output, const struct model_speed *of)
{
	const pair first = { (double)of[0].ttft_ms, (double)of[1].ttft_ms };
	const pair each = { (double)of[0].token_ms, (double)of[1].token_ms };
	const pair_mask measured = { -(int64_t)of[0].measured, -(int64_t)of[1].measured };

	return choose(measured, fast_ms / (fast_ms + first + output * each), declared);
}

/* Of models `i` and i + 1 of the block; what both scores and their parts are made of, whoever asks. */
static inline struct pair_scores score_pair(const struct model_figures *m,
					    const struct model_speed *speeds, int i,
					    struct score_query query)
{
	const struct score_weights *w = &query.weights;
	const pair most = pair_at(&m->max_output[i]), asked = both(query.max_tokens);
	const pair output = choose(asked < most, asked, most); /* never more than it can write */
	const pair usd = (query.input_tokens * pair_at(&m->price_input[i]) +
			  output * pair_at(&m->price_output[i])) *
			 pico;
	const pair cheapness = cheap_usd / (cheap_usd + usd);
	const pair declared = pair_at(&m->speed[i]);
	const pair speed = speeds == NULL ? declared : speed_of(declared, output, &speeds[i]);

	return (struct pair_scores){ usd, cheapness, speed,
				     w->cost * cheapness + w->speed * speed +
					     w->intelligence * pair_at(&m->intelligence[i]) };
}

double score_totals(const struct model_figures *models, const struct model_speed *speeds,
		    const struct score_query *query, double *out)
{
	const struct score_query asked = *query; /* a copy, which nothing written can change */
	pair most = both(-INFINITY);

	for (int i = 0; i < SCORE_MODELS; i += 2) {
		const pair total = score_pair(models, speeds, i, asked).total;
		(void)memcpy(&out[i], &total, sizeof(total));
		most = choose(most < total, total, most);
	}
	return most[0] < most[1] ? most[1] : most[0];
}

void score_parts(const struct model_figures *models, const struct model_speed *speeds,
		 const struct score_query *query, struct scores *out)
{
	for (int i = 0; i < SCORE_MODELS; i += 2) {
		const struct pair_scores is = score_pair(models, speeds, i, *query);
		(void)memcpy(&out->usd[i], &is.usd, sizeof(is.usd));
		(void)memcpy(&out->cheapness[i], &is.cheapness, sizeof(is.cheapness));
		(void)memcpy(&out->speed[i], &is.speed, sizeof(is.speed));
		(void)memcpy(&out->total[i], &is.total, sizeof(is.total));
	}
}
