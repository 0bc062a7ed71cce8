/* score.h - what models are worth to a request (DESIGN 5): sum of priority x value over sum of priorities,
 * by constants that do not depend on the other candidates.
 *
 * Eight neighbours of the catalogue are scored at once, each by the same operations in the same order as
 * if it were alone, so that a score does not depend on its neighbours either: divisions are what a
 * score costs, and of independent ones a processor does several in the time of one. Pure. */
#ifndef ROUTING_SCORE_H
#define ROUTING_SCORE_H

#include "codec/mcp/sampling.h"
#include "routing/catalog.h"
#include "routing/speed.h"

enum { SCORE_MODELS = CATALOG_BLOCK };

/* Priorities as shares of their sum; none: the request has no preference, all are 0. */
struct score_weights {
	double cost, speed, intelligence;
	bool none;
};

/* An absent priority (NAN) weighs 0. */
struct score_weights score_weights_of(const struct model_preferences *prefer);

/* What scores need to know of a request. */
struct score_query {
	double input_tokens, max_tokens;
	struct score_weights weights;
};

/* One entry a model; those behind the last model of the catalogue mean nothing. */
struct scores {
	double usd[SCORE_MODELS];       /* if the model writes as much as it may */
	double cheapness[SCORE_MODELS]; /* K/(K + usd), K = 0.01 */
	double speed[SCORE_MODELS];     /* T/(T + ms), T = 5,000; or as declared */
	double total[SCORE_MODELS];     /* the weighted sum; means nothing without a preference */
};

/* SCORE_MODELS totals, and the greatest of these. `speeds`: of the same models, SCORE_MODELS of them; NULL: nothing
 * was measured. */
double score_totals(const struct model_figures *models, const struct model_speed *speeds,
		    const struct score_query *query, double *out);

/* The same with what they are made of. */
void score_parts(const struct model_figures *models, const struct model_speed *speeds,
		 const struct score_query *query, struct scores *out);

#endif
