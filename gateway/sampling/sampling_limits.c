/* sampling_limits.c - what a worker's requests ask of their tenants' limits, and what is said to that. */
#include "gateway/worker/worker_parts.h"

#include "tenants/limit.h"

#include <stdio.h>

/* ---- asking ---- */

/* The store has spoken. */
static void note_refusal(struct request *r)
{
	const struct reservation *reservation = &r->flow.reservation;

	if (!reservation->granted)
		refusals_note(r->worker->refusals, reservation, net_now(r->worker->loop));
}

static void on_reserved(struct reservation *reservation)
{
	struct flow *flow = CONTAINER_OF(reservation, struct flow, reservation);
	struct request *r = CONTAINER_OF(flow, struct request, flow);

	note_refusal(r);
	worker_answered(r, FLOW_ASK_LIMITS);
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
	if (refusals_answer(r->worker->refusals, &r->flow.reservation))
		return r->flow.awaited == 0;
	r->flow.reservation.done = on_reserved;
	if (store->reserve(store, &r->flow.reservation) == STORE_PENDING)
		r->flow.awaited |= FLOW_ASK_LIMITS;
	else
		note_refusal(r);
	return r->flow.awaited == 0;
}

/* Sessions cost their tenant nothing, and a store that all share memory for an hour. This limit is the gateway's
 * own, so that nobody is asked. */
static bool take_session(struct request *r)
{
	const struct flow *flow = &r->flow;
	const uint64_t requests = flow->plan->limits.requests.per_minute;
	const struct limit_ask ask = { .requests = 1 };
	struct limit_scope scope = { .holder = LIMIT_OF_TENANT, .limits = limit_none() };
	uint8_t part[16];

	scope.limits.requests = (struct quota_limit){
		.per_minute = requests < SESSIONS_PER_MINUTE_MIN   ? SESSIONS_PER_MINUTE_MIN
			      : requests > SESSIONS_PER_MINUTE_MAX ? SESSIONS_PER_MINUTE_MAX
								   : requests,
		.burst = SESSIONS_BURST,
	};
	tenant_part(TENANT_PART_SESSIONS, SLICE(""), part);
	tenant_part_key(flow->account, part, scope.key);
	scope.slot = limit_table_slot(r->worker->args.limits, scope.key);
	if (scope.slot == NULL)
		return true; /* nor would there be one for the session's requests */
	return limit_take(&scope, 1, &ask, net_now(r->worker->loop),
			  net_wall_ns(r->worker->loop) / SEC, &r->flow.reservation.refusal);
}

bool worker_may_begin(struct request *r)
{
	if (!r->flow.state->note.begin_session || take_session(r))
		return true;
	r->flow.reservation.refusal.limit = NULL; /* it is none of the tenant's requests */
	metrics_limit(r->worker->args.metrics, "sessions", METRICS_REFUSED);
	return false;
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

	if (reservation->granted && reservation->ask.concurrent != 0) {
		if (r->placed)
			return; /* the same, once more: flow_admit */
		r->placed = true;
	}
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
