/* flow_keys.c - the names that stores know a call, its tenant and its session by. */
#include "gateway/flow/flow_steps.h"

static struct state_key tenant_key_of(const struct flow *flow)
{
	struct state_key key;

	_Static_assert(sizeof(key.at) == sizeof(flow->ask->caller->limit_key), "the same digest");
	(void)memcpy(key.at, flow->ask->caller->limit_key, sizeof(key.at));
	return key;
}

struct flow_state *flow_state_of(struct flow *flow)
{
	if (flow->state == NULL) {
		flow->state = arena_zero(flow->arena, sizeof(*flow->state));
		if (flow->state == NULL)
			return NULL;
		flow->state->flow = flow;
		flow->state->tenant = tenant_key_of(flow);
		if (flow->ask->request != NULL)
			flow->state->own_rounds = flow->ask->request->tool_rounds;
	}
	return flow->state;
}

static struct state_key key_of(const struct caller *caller, enum state_kind kind,
			       struct slice session, struct slice name)
{
	return state_key_of(kind, caller->tenant, caller->server, session, name);
}

struct state_key flow_session_key(const struct caller *caller, struct slice id)
{
	return key_of(caller, STATE_SESSION, (struct slice){ NULL, 0 }, id);
}

struct state_key flow_idempotency_key(const struct caller *caller, struct slice name)
{
	return key_of(caller, STATE_IDEMPOTENCY, (struct slice){ NULL, 0 }, name);
}

struct state_key flow_cancel_key(const struct caller *caller, struct slice session,
				 struct slice cancel_id)
{
	return key_of(caller, STATE_IDEMPOTENCY, session, cancel_id);
}
