/* control_checks_plan.h - when an endpoint is checked, and what a row of checks means. Pure. */
#ifndef GATEWAY_CONTROL_CONTROL_CHECKS_PLAN_H
#define GATEWAY_CONTROL_CONTROL_CHECKS_PLAN_H

#include "codec/base/clock.h"
#include "gateway/base/config.h"

struct checks_plan {
	nsec_t due, began;
	uint32_t against; /* results in a row that contradict `up` */
	bool up;          /* the verdict in force; good until proven otherwise */
	bool checking;    /* one is under way */
};

/* The first is due at once. */
void checks_plan_init(struct checks_plan *plan, nsec_t now);

/* Whether to begin now; checks_plan_begin says that it has been. */
bool checks_plan_is_due(const struct checks_plan *plan, nsec_t now);
void checks_plan_begin(struct checks_plan *plan, nsec_t now);

/* It has ended; the next one is due `interval` after its beginning, or now if it took that long. True:
 * plan->up has changed. */
bool checks_plan_end(struct checks_plan *plan, bool good, const struct provider_check *check,
		     nsec_t now);

/* Another configuration has another interval: the next one is not later than that. */
void checks_plan_set_interval(struct checks_plan *plan, nsec_t interval, nsec_t now);

#endif
