/* flow_ahead.c - one round trip before the provider (DESIGN 5 "State"): what is known of a request's session
 * and loop, copies of it elsewhere, and its limits are asked for in one tick, each before the answer to the
 * one before is there.
 *
 * So the flow goes ahead on a guess, up to its reservation: its session is there, its loop is what this
 * process knows of it, nobody else has a copy. Nothing is answered and nothing sent on a guess. When all
 * answers are there, and they are what was guessed, it goes on; else it walks once more from RECALL with
 * what is known now, in the order in which it would have without a guess. What it had taken and does not
 * use is given back as if it had never been asked for.
 *
 * A reservation is used although the answers make the request larger than was guessed (another gateway's
 * private blocks), as long as it is for the same model: the difference becomes debt when it is settled, as
 * with any bound that was too small. */
#include "gateway/flow_steps.h"

#include "codec/base/must.h"

bool flow_unsure(const struct flow *flow)
{
	return flow->state != NULL && (flow->state->ahead.recall || flow->state->ahead.claim);
}

bool flow_reserved_ahead(const struct flow *flow)
{
	return flow->state != NULL && flow->state->ahead.reserved;
}

/* ---- asking ---- */

void flow_asks_limits(struct flow *flow)
{
	struct flow_ahead *ahead = &flow->state->ahead;

	ahead->reserved = flow_unsure(flow);
	ahead->again = false;
	ahead->model = flow->model_id;
	ahead->tokens_short = ahead->usd_short = 0;
}

/* ---- the answers ---- */

static bool session_as_guessed(const struct flow *flow)
{
	const struct state_recall *recall = &flow->state->recall;

	return state_key_none(&recall->session) || (recall->session_is == STATE_SESSION_KNOWN &&
						    recall->revision == (uint32_t)flow->revision);
}

bool flow_joined_rightly(const struct flow *flow)
{
	return flow->state->joining && (!flow->state->ahead.joined || session_as_guessed(flow));
}

static bool all_as_guessed(const struct flow *flow)
{
	const struct flow_state *state = flow->state;

	if (state->joining && state->once.verdict != ONCE_LEADS)
		return false;
	return !state->asked ||
	       (session_as_guessed(flow) && state_recall_same(&state->ahead.guess, &state->recall));
}

/* It has not been anywhere: log and metrics tell of no place that was none in the end. */
static void leave_place(struct flow *flow, nsec_t now)
{
	const struct slice none = { NULL, 0 };

	health_ended(&flow->choice, NULL, now);
	flow->choice.drawn_count = 0;
	flow->choice.held = false;
	flow->route = (struct route){ .err = ERR_OK };
	flow->hint = flow->model_id = flow->provider_name = flow->endpoint_url = none;
	flow->config_digest[0] = '\0';
	flow->draws = 0; /* the log's seed gives the walk that counts */
}

/* Back to where it asked first, as if it had not gone ahead. */
static void walk_again(struct flow *flow, const struct flow_env *env)
{
	leave_place(flow, env->now);
	if (flow->judged)
		flow->request.system = flow->asked_system;
	flow->judged = false;
	flow->outcome = ERR_OK;
	flow->detail = NULL;
	flow->answer = (struct flow_answer){ .status = 0 };
	flow->state->loop.unknown = 0;
	flow->state->loop.spent = NULL;
	flow->state->ahead.again = true;
	flow->step = FLOW_STEP_RECALL;
}

bool flow_known(struct flow *flow, const struct flow_env *env)
{
	must(!flow_unsure(flow));
	if (flow->step == FLOW_STEP_RESERVE && all_as_guessed(flow)) {
		flow->state->ahead.joined = false;
		return true;
	}
	walk_again(flow, env);
	return false;
}

/* ---- what was taken ---- */

bool flow_owes(const struct flow *flow)
{
	const struct flow_state *state = flow->state;

	if (state == NULL)
		return false;
	return state->ahead.joined || (state->ahead.reserved && flow->reservation.granted);
}

static bool same_scopes(const struct reservation *a, const struct reservation *b)
{
	if (a->scope_count != b->scope_count)
		return false;
	for (uint32_t i = 0; i < a->scope_count; i++)
		if (memcmp(a->scopes[i].key, b->scopes[i].key, sizeof(a->scopes[i].key)) != 0)
			return false;
	return true;
}

static uint64_t beyond(uint64_t wanted, uint64_t had)
{
	return wanted > had ? wanted - had : 0;
}

bool flow_may_use(struct flow *flow, const struct reservation *wanted)
{
	const struct reservation *had = &flow->reservation;
	struct flow_ahead *ahead = &flow->state->ahead;

	/* A refusal counts for what was asked. */
	if (!had->granted &&
	    (wanted->ask.tokens != had->ask.tokens || wanted->ask.usd != had->ask.usd))
		return false;
	if (!slice_eq(ahead->model, flow->model_id) || !same_scopes(had, wanted))
		return false;
	ahead->tokens_short = beyond(wanted->ask.tokens, had->ask.tokens);
	ahead->usd_short = beyond(wanted->ask.usd, had->ask.usd);
	return true;
}
