/* sampling_limits.c - what calls ask of their tenants' limits, and what the limiter says. */
#include "gateway/sampling/sampling_core.h"

#include "tenants/limit.h"

#include <stdio.h>

/* ---- asking ---- */

/* The limiter has spoken. */
static void note_refusal(struct sampling_call *call)
{
	const struct reservation *reservation = &call->flow.reservation;

	if (!reservation->granted)
		refusals_note(call->core->refusals, reservation, net_now(call->core->loop));
}

static void on_reserved(struct reservation *reservation)
{
	struct flow *flow = CONTAINER_OF(reservation, struct flow, reservation);
	struct sampling_call *call = CONTAINER_OF(flow, struct sampling_call, flow);

	note_refusal(call);
	call_answered(call, FLOW_PENDING_LIMITS);
}

static void take_pool(struct sampling_call *call)
{
	struct upstream_pool *before = call->pool; /* of the attempt before */

	call->pool =
		call->core->providers.pools[call->flow.walk.provider][call->flow.walk.endpoint];
	if (call->pool != NULL)
		upstream_hold(call->pool); /* a reload may come before the limiter's answer */
	if (before != NULL)
		upstream_let_go(before);
}

bool call_reserve(struct sampling_call *call)
{
	struct limiter *limiter = call->core->limiter;

	take_pool(call);
	if (flow_has_reserved(
		    &call->flow)) /* by an earlier walk, which may have been to another place */
		return true;
	if (refusals_answer(call->core->refusals, &call->flow.reservation))
		return call->flow.awaited == 0;
	call->flow.reservation.done = on_reserved;
	if (limiter->reserve(limiter, &call->flow.reservation) == LIMITER_PENDING)
		call->flow.awaited |= FLOW_PENDING_LIMITS;
	else
		note_refusal(call);
	return call->flow.awaited == 0;
}

/* Sessions cost their tenant nothing, and a limiter that all share memory for an hour. This limit is the gateway's
 * own, so that nobody is asked. */
static bool take_session(struct sampling_call *call)
{
	const struct flow *flow = &call->flow;
	const uint64_t requests = flow->caller.plan->limits.requests.per_minute;
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
	tenant_part_key(flow->caller.account, part, scope.key);
	scope.slot = limit_table_slot(call->core->limits, scope.key);
	if (scope.slot == NULL)
		return true; /* nor would there be one for the session's requests */
	return limit_take(&scope, 1, &ask, net_now(call->core->loop),
			  net_wall_ns(call->core->loop) / SEC, &call->flow.reservation.refusal);
}

bool call_may_begin_session(struct sampling_call *call)
{
	if (call->flow.state->save.change != STATE_BEGINS || take_session(call))
		return true;
	call->flow.reservation.refusal.limit = NULL; /* it is none of the tenant's requests */
	metrics_limit(call->core->metrics, "sessions", METRICS_REFUSED);
	return false;
}

/* ---- verdicts, for metrics ---- */

/* `limit` NULL: refused for want of room in the table. */
static void count_limit(struct sampling *core, enum limit_holder holder, const char *limit,
			enum metrics_decision decision)
{
	char name[64];

	if (limit == NULL || holder == LIMIT_OF_TENANT || holder == LIMIT_OF_COUNTS)
		(void)snprintf(name, sizeof(name), "%s",
			       limit == NULL ? "all" : limit_shown_name(holder, limit));
	else
		(void)snprintf(name, sizeof(name), "%s.%s", limit_holder_name(holder), limit);
	metrics_limit(core->metrics, name, decision);
}

void call_note_verdict(struct sampling_call *call)
{
	const struct reservation *reservation = &call->flow.reservation;

	if (reservation->granted && reservation->ask.concurrent != 0) {
		if (call->placed)
			return; /* the same, once more: flow_admit */
		call->placed = true;
	}
	if (!reservation->granted) {
		count_limit(call->core, reservation->refusal.holder, reservation->refusal.limit,
			    METRICS_REFUSED);
		return;
	}
	metrics_limit(call->core->metrics, NULL, METRICS_GRANTED);
	for (uint32_t i = 0; i < reservation->scope_count; i++)
		if (reservation->scopes[i].would_refuse != NULL)
			count_limit(call->core, reservation->scopes[i].holder,
				    reservation->scopes[i].would_refuse, METRICS_WOULD_REFUSE);
}

/* ---- before there is a call ---- */

bool sampling_has_room(struct sampling *core, const struct caller *caller, size_t bytes,
		       struct fault *fault, struct error_data *data)
{
	struct fair_share *share = &core->bodies.share;
	uint32_t holder;
	const enum fair_verdict verdict =
		fair_share_take(share, &core->bodies.bound, caller->limit_key, bytes, &holder);

	if (verdict == FAIR_TAKEN) {
		fair_share_sub(share, holder, bytes);
		return true;
	}
	flow_body_refusal(verdict == FAIR_OWN, fault, data);
	if (verdict == FAIR_OWN)
		metrics_limit(core->metrics, "held_bytes", METRICS_REFUSED);
	return false;
}
