/* control_jwks_plan.h - when an issuer's keys are fetched, and for how long they are good. Pure.
 *
 * They are fetched at the start and every `refresh`; after a failure sooner, less and less often. A
 * token with an unknown key may ask for it at once, which anybody can make it do: so once per 30 s. */
#ifndef GATEWAY_CONTROL_CONTROL_JWKS_PLAN_H
#define GATEWAY_CONTROL_CONTROL_JWKS_PLAN_H

#include "codec/base/clock.h"

#include <stdbool.h>

#define JWKS_RETRY_FIRST (2 * SEC) /* doubled with every failure after the first */
#define JWKS_RETRY_LAST (60 * SEC)
#define JWKS_REFETCH_PERIOD (30 * SEC)
#define JWKS_GOOD_FOR (24 * 3600 * SEC) /* after the last good answer */

struct jwks_plan {
	nsec_t due;        /* when to fetch next */
	nsec_t refetch_at; /* none that is asked for before then is made */
	nsec_t good_at;    /* the last good answer, if there is `good` */
	uint32_t failures;
	bool good;     /* there was an answer, and it is not a day old */
	bool fetching; /* one is under way */
};

/* The first is due at once. */
void jwks_plan_init(struct jwks_plan *plan, nsec_t now);

/* Somebody has a token with a key that is not known. */
void jwks_plan_refetch(struct jwks_plan *plan, nsec_t now);

/* What stood in the way is gone: at once, unless there was a good answer already. */
void jwks_plan_hurry(struct jwks_plan *plan);

/* Another configuration has another period: the next one is not later than that. */
void jwks_plan_set_refresh(struct jwks_plan *plan, nsec_t refresh, nsec_t now);

/* Whether to begin now; jwks_plan_begin says that it has been. */
bool jwks_plan_is_due(const struct jwks_plan *plan, nsec_t now);
void jwks_plan_begin(struct jwks_plan *plan);

/* It has ended, with keys or without. */
void jwks_plan_end(struct jwks_plan *plan, bool good, nsec_t refresh, nsec_t now);

/* True once, when the keys have become too old to be used any longer. */
bool jwks_plan_expires(struct jwks_plan *plan, nsec_t now);

#endif
