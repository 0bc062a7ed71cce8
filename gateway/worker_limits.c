/* worker_limits.c - what a worker's requests ask of their tenants' limits, and what is said to that. */
#include "gateway/worker_parts.h"

#include <stdio.h>

/* ---- asking, and giving back what was asked ahead ---- */

static void on_reserved(struct reservation *reservation)
{
	struct flow *flow = CONTAINER_OF(reservation, struct flow, reservation);

	struct request *r = CONTAINER_OF(flow, struct request, flow);

	r->asking = false;
	if (flow_reserved_ahead(flow))
		worker_known(r);
	else
		worker_run(r, FLOW_RESERVED);
}

static void take_pool(struct request *r)
{
	struct upstream_pool *before = r->pool; /* of the attempt before */

	r->pool = r->worker->providers.pools[r->flow.provider][r->flow.endpoint];
	if (r->pool != NULL)
		upstream_hold(r->pool); /* a reload may come before the store's answer */
	if (before != NULL)
		upstream_let_go(before);
}

bool worker_reserve(struct request *r)
{
	struct store *store = r->worker->store;
	const bool ahead = flow_reserved_ahead(&r->flow), unsure = flow_unsure(&r->flow);

	if (ahead &&
	    !unsure) { /* it was asked before; of what is there now the flow may say another place */
		if (r->flow.state->ahead.again)
			take_pool(r);
		return true;
	}
	take_pool(r);
	r->flow.reservation.done = on_reserved;
	r->asking = store->reserve(store, &r->flow.reservation) == STORE_PENDING;
	return !r->asking && !unsure;
}

void worker_give_back(struct request *r)
{
	struct store *store = r->worker->store;
	struct flow_ahead *ahead = &r->flow.state->ahead;

	if (ahead->reserved && r->flow.reservation.granted)
		store->undo(store, &r->flow.reservation, net_now(r->worker->loop));
	ahead->reserved = false;
	worker_join_back(r);
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
