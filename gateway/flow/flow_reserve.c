/* flow_reserve.c - what an attempt reserves of its tenant's limits, and what they say. */
#include "gateway/flow/flow_steps.h"

bool flow_make_scopes(struct flow *flow)
{
	const struct plan *plan = flow->caller.plan;
	const uint32_t models = plan->model_limit_count < PLAN_MODEL_LIMITS_MAX
					? plan->model_limit_count
					: PLAN_MODEL_LIMITS_MAX;
	const uint32_t most = (plan->server_limited ? 2U : 1U) + models;

	_Static_assert(RESERVATION_SCOPES_MAX >= 2 + PLAN_MODEL_LIMITS_MAX, "every scope fits");
	flow->charge.scopes = arena_take(flow->arena, most * sizeof(*flow->charge.scopes));
	return flow->charge.scopes != NULL;
}

/* The tenant's own limits, those of its server, and those of the model. */
static void choose_scopes(struct flow *flow, struct reservation *reservation)
{
	const struct tenant *tenant = flow->caller.account;
	const struct plan *plan = flow->caller.plan;
	struct limit_scope *scope = reservation->scopes;

	scope->holder = LIMIT_OF_TENANT;
	scope->limits = plan->limits;
	(void)memcpy(scope->key, tenant->limit_key, sizeof(scope->key));
	scope++;
	if (plan->server_limited && !slice_absent(flow->ask->caller->server)) {
		uint8_t part[16];
		tenant_part(TENANT_PART_SERVER, flow->ask->caller->server, part);
		tenant_part_key(tenant, part, scope->key);
		scope->holder = LIMIT_OF_SERVER;
		scope->limits = plan->server_limits;
		scope++;
	}
	for (uint32_t i = 0; i < plan->model_limit_count; i++) {
		const struct model_limits *models = &plan->model_limits[i];
		if (!bitset_has(&models->models, flow->made->route.model))
			continue;
		tenant_part_key(tenant, models->part, scope->key);
		scope->holder = LIMIT_OF_MODEL;
		scope->limits = models->limits;
		scope++;
	}
	reservation->scope_count = (uint32_t)(scope - reservation->scopes);
}

/* A further attempt, or reservation, is no further request, and keeps the request's place. */
static void fill_reservation(struct flow *flow, const struct flow_env *env,
			     struct reservation *reservation)
{
	const struct encode_out *encoded = &flow->made->encoded;
	const bool first = flow->charge.first == NULL;
	uint64_t bytes = encoded->body.total - encoded->body.images;

	*reservation = (struct reservation){
		.scopes = flow->charge.scopes,
		.ask = {
			.requests = first ? 1 : 0,
			.tokens = quota_token_estimate(bytes, encoded->images, encoded->max_tokens),
			.usd = quota_usd_bound(bytes, encoded->images, encoded->max_tokens,
					       &flow->made->price),
			.concurrent = first ? 1 : 0,
		},
		.now = env->now,
		.wall_s = env->wall_ns / SEC,
		.deadline = flow->ask->deadline,
		.left = flow->ask->raw == NULL ? NULL : &flow->ask->raw->left,
	};
	if (flow->attempt.raw)
		flow_raw_bound(flow, env, &reservation->ask);
	choose_scopes(flow, reservation);
}

static void begin_attempt(struct flow *flow)
{
	flow->caller.account = NULL; /* the snapshot may go from here on */
	flow->caller.plan = NULL;
	flow->attempt.called = false;
	flow->attempt.failure = (struct flow_failure){ .why = { .err = ERR_OK } };
	flow->attempt.usage = (struct usage){ .known = false };
}

/* The first reservation holds the request's place to its end. False: no memory. */
static bool keep_place(struct flow *flow)
{
	const bool admitted = flow->state != NULL && flow->state->admission == FLOW_ADMITTED;

	if ((flow->retries.attempts == 0 && !admitted) || flow->charge.first != NULL)
		return true;
	flow->charge.first = arena_take(flow->arena, sizeof(*flow->charge.first));
	if (flow->charge.first != NULL)
		*flow->charge.first = flow->reservation;
	return flow->charge.first != NULL;
}

struct reservation *flow_place(struct flow *flow)
{
	return flow->charge.first != NULL ? flow->charge.first : &flow->reservation;
}

/* Once more, after the walk that went ahead: the answer is there already, or it was to another question. */
static enum flow_move use_answer(struct flow *flow, const struct flow_env *env)
{
	struct reservation wanted;

	fill_reservation(flow, env, &wanted);
	if (!flow_may_use(flow, &wanted))
		return FLOW_DO_GIVE_BACK;
	begin_attempt(flow);
	return FLOW_DO_RESERVE;
}

static enum flow_move ask_limits(struct flow *flow, const struct flow_env *env)
{
	if (flow_has_reserved(flow))
		return use_answer(flow, env);
	fill_reservation(flow, env, &flow->reservation);
	begin_attempt(flow);
	if (flow->state != NULL)
		flow_asks_limits(flow);
	return FLOW_DO_RESERVE;
}

enum flow_move flow_reserve(struct flow *flow, const struct flow_env *env)
{
	return keep_place(flow) ? ask_limits(flow, env) : flow_give_up(flow);
}

enum flow_move flow_reserved(struct flow *flow, const struct flow_env *env)
{
	if (flow->state != NULL)
		flow_uses(flow, FLOW_PENDING_CLAIM | FLOW_PENDING_LIMITS);
	if (flow->reservation.granted && flow->state != NULL &&
	    flow->state->admission == FLOW_HELD_BACK)
		return flow_admit(flow, env);
	if (flow->reservation.granted) {
		flow->charge.reserved = true;
		return FLOW_NEXT;
	}
	/* A limit that has no room for one more attempt does not hide why the last one failed. */
	return flow->retries.attempts != 0 ? flow_give_up(flow) : flow_refuse_limit(flow);
}
