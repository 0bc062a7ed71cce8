#include "gateway/control/control_checks_plan.h"

#include "codec/base/must.h"

void checks_plan_init(struct checks_plan *plan, nsec_t now)
{
	*plan = (struct checks_plan){ .due = now, .up = true };
}

bool checks_plan_is_due(const struct checks_plan *plan, nsec_t now)
{
	return !plan->checking && now >= plan->due;
}

void checks_plan_begin(struct checks_plan *plan, nsec_t now)
{
	must(!plan->checking);
	plan->checking = true;
	plan->began = now;
}

bool checks_plan_end(struct checks_plan *plan, bool good, const struct provider_check *check,
		     nsec_t now)
{
	const uint32_t enough = plan->up ? check->unhealthy : check->healthy;

	must(plan->checking);
	plan->checking = false;
	plan->due = plan->began + check->interval;
	plan->due = plan->due > now ? plan->due : now;
	plan->against = good == plan->up ? 0 : plan->against + 1;
	if (plan->against < enough)
		return false;
	plan->up = good;
	plan->against = 0;
	return true;
}

void checks_plan_set_interval(struct checks_plan *plan, nsec_t interval, nsec_t now)
{
	if (!plan->checking && plan->due > now + interval)
		plan->due = now + interval;
}
