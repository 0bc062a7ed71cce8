/* flow_deadline.c - whether what is left of a call's time is enough for a wait, and how long that is. */
#include "gateway/flow/flow_steps.h"

static const nsec_t retry_needs = 1 * SEC; /* of the deadline (DESIGN 4.3) */

bool flow_fits(const struct flow *flow, nsec_t now, nsec_t wait)
{
	return flow->ask->deadline > now && flow->ask->deadline - now >= retry_needs &&
	       flow->ask->deadline - now - retry_needs >= wait;
}

/* Whoever speaks a provider's own API waits by itself, and knows for how long it may. */
bool flow_hands_on(const struct flow *flow, nsec_t wait)
{
	static const nsec_t longest = 2 * SEC; /* that is not worth a caller's attempt */

	return flow->ask->raw != NULL && wait > longest;
}

nsec_t flow_spread(struct flow *flow, nsec_t wait)
{
	return wait + (nsec_t)((double)(wait / 4) * ((double)(flow_draw(flow) >> 11) * 0x1p-53));
}
