#include "gateway/control/control_jwks_plan.h"

#include "codec/base/must.h"

void jwks_plan_init(struct jwks_plan *plan, nsec_t now)
{
	*plan = (struct jwks_plan){ .due = now, .refetch_at = now };
}

/* While one is under way, its answer may be from before the key was there: another follows. */
void jwks_plan_refetch(struct jwks_plan *plan, nsec_t now)
{
	if (now < plan->refetch_at)
		return;
	plan->refetch_at = now + JWKS_REFETCH_PERIOD;
	plan->due = now;
}

void jwks_plan_hurry(struct jwks_plan *plan)
{
	if (!plan->good && !plan->fetching)
		plan->due = 0;
}

void jwks_plan_set_refresh(struct jwks_plan *plan, nsec_t refresh, nsec_t now)
{
	if (!plan->fetching && plan->due > now + refresh)
		plan->due = now + refresh;
}

bool jwks_plan_is_due(const struct jwks_plan *plan, nsec_t now)
{
	return !plan->fetching && now >= plan->due;
}

void jwks_plan_begin(struct jwks_plan *plan)
{
	must(!plan->fetching);
	plan->fetching = true;
	plan->due = NSEC_NEVER; /* a refetch may be asked for meanwhile */
}

static nsec_t retry_wait(uint32_t failures, nsec_t refresh)
{
	nsec_t wait = JWKS_RETRY_FIRST;

	for (uint32_t i = 1; i < failures && wait < JWKS_RETRY_LAST; i++)
		wait *= 2;
	wait = wait < JWKS_RETRY_LAST ? wait : JWKS_RETRY_LAST;
	return wait < refresh ? wait : refresh;
}

void jwks_plan_end(struct jwks_plan *plan, bool good, nsec_t refresh, nsec_t now)
{
	must(plan->fetching);
	plan->fetching = false;
	plan->failures = good ? 0 : plan->failures + 1;
	const nsec_t next = now + (good ? refresh : retry_wait(plan->failures, refresh));
	plan->due = next < plan->due ? next : plan->due;
	if (good) {
		plan->good = true;
		plan->good_at = now;
	}
}

bool jwks_plan_expires(struct jwks_plan *plan, nsec_t now)
{
	if (!plan->good || now - plan->good_at < JWKS_GOOD_FOR)
		return false;
	plan->good = false;
	return true;
}
