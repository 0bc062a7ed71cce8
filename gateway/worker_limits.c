/* worker_limits.c - what a worker's requests ask of their tenants' limits, and what is said to that. */
#include "gateway/worker_parts.h"

#include <stdio.h>

/* ---- asking ---- */

static void on_reserved(struct reservation *reservation)
{
	struct flow *flow = CONTAINER_OF(reservation, struct flow, reservation);

	worker_answered(CONTAINER_OF(flow, struct request, flow), FLOW_ASK_LIMITS);
}

static void take_pool(struct request *r)
{
	struct upstream_pool *before = r->pool; /* of the attempt before */

	r->pool = r->worker->providers.pools[r->flow.walk.provider][r->flow.walk.endpoint];
	if (r->pool != NULL)
		upstream_hold(r->pool); /* a reload may come before the store's answer */
	if (before != NULL)
		upstream_let_go(before);
}

bool worker_reserve(struct request *r)
{
	struct store *store = r->worker->store;

	take_pool(r);
	if (flow_has_reserved(
		    &r->flow)) /* by an earlier walk, which may have been to another place */
		return true;
	r->flow.reservation.done = on_reserved;
	if (store->reserve(store, &r->flow.reservation) == STORE_PENDING)
		r->flow.awaited |= FLOW_ASK_LIMITS;
	return r->flow.awaited == 0;
}

/* ---- verdicts, for metrics ---- */

/* `limit` NULL: refused for want of room in the table. */
static void count_limit(struct worker *worker, enum limit_holder holder, const char *limit,
			enum metrics_decision decision)
{
	char name[64];

	if (limit == NULL || holder == LIMIT_OF_TENANT)
		(void)snprintf(name, sizeof(name), "%s", limit == NULL ? "all" : limit);
	else
		(void)snprintf(name, sizeof(name), "%s.%s", limit_holder_name(holder), limit);
	metrics_limit(worker->args.metrics, name, decision);
}

void worker_note_verdict(struct request *r)
{
	const struct reservation *reservation = &r->flow.reservation;

	if (reservation->granted && reservation->ask.concurrent != 0)
		r->placed = true;
	if (!reservation->granted) {
		count_limit(r->worker, reservation->refusal.holder, reservation->refusal.limit,
			    METRICS_REFUSED);
		return;
	}
	metrics_limit(r->worker->args.metrics, NULL, METRICS_GRANTED);
	for (uint32_t i = 0; i < reservation->scope_count; i++)
		if (reservation->scopes[i].would_refuse != NULL)
			count_limit(r->worker, reservation->scopes[i].holder,
				    reservation->scopes[i].would_refuse, METRICS_WOULD_REFUSE);
}
