/* flow_speculate.c - one round trip before the provider (DESIGN 5 "State"): what is known of a request's session
 * and loop, copies of it elsewhere, and its limits are asked for in one tick, each before the answer to the
 * one before is there.
 *
 * flow->awaited are the answers that are still to come. While there are some the flow goes ahead on a guess,
 * up to its reservation: its session is there, its loop is what this process knows of it, nobody else has a
 * copy. Nothing is answered and nothing sent on a guess. What it takes so is in ahead.taken, until it is used
 * or given back as if it had never been asked for.
 *
 * With the last answer, and not before, it is decided what follows (flow_answered): are they what was guessed,
 * the verdict of its limits counts; else it walks once more from LOAD with what is known now, in the order in
 * which it would have without a guess.
 *
 * A reservation is used although the answers make the request larger than was guessed (another gateway's
 * private blocks), as long as it is for the same model: the difference becomes debt when it is settled, as
 * with any bound that was too small.
 *
 * What is costly to read is held back until limits have granted the request: more than STATE_EARLY_MAX of private
 * blocks, and blocks and loops of tenants that were refused a moment ago. Then it walks once more from LOAD, with its
 * reservation in ahead.taken. Does that turn out too small, it is settled as if nothing had been used of it, and a
 * larger one is asked for, as by a further attempt: the request has its place and is counted. So whatever is read was
 * paid for by one of the tenant's requests, and no limit is passed. */
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"

static bool has_taken(const struct flow *flow, enum flow_pending what)
{
	return flow->state != NULL && (flow->state->ahead.taken & what) != 0;
}

/* ---- the answers ---- */

static bool session_as_guessed(const struct state_load *load, enum revision guess)
{
	return state_key_none(&load->session) ||
	       (load->session_is == STATE_SESSION_KNOWN && load->revision == (uint32_t)guess);
}

/* Also of who has guessed nothing. */
static bool is_as_guessed(const struct flow *flow)
{
	const struct flow_state *state = flow->state;

	if (!has_taken(flow, FLOW_PENDING_LIMITS))
		return true;
	if (state->joined && state->copy.verdict != IDEMPOTENCY_LEADS)
		return false;
	return !state->asked || (session_as_guessed(&state->load, flow->ask->request->revision) &&
				 state_load_same(&state->ahead.guess, &state->load));
}

/* Back to where it asked first, as if it had not gone ahead. */
static void walk_again(struct flow *flow, nsec_t now)
{
	if (flow->walk.judged)
		flow->ask->request->system = flow->walk.asked_system;
	health_ended(&flow->walk.choice, NULL, now);
	flow->walk = (struct flow_walk){ .judged = false };
	flow_take_back(flow);
	flow->step = flow->state != NULL && flow->state->asked ? FLOW_STEP_LOADED : FLOW_STEP_LOAD;
}

enum flow_move flow_admit(struct flow *flow, const struct flow_env *env)
{
	struct flow_state *state = flow->state;

	must(flow->reservation.granted && flow->awaited == 0 && flow->retries.attempts == 0);
	state->admission = FLOW_ADMITTED;
	state->asked = false;
	state->ahead.taken |= FLOW_PENDING_LIMITS;
	walk_again(flow, env->now);
	return FLOW_GO;
}

/* There was more to it than a right guess. Apart, so that the usual answer is not longer for it. */
static __attribute__((noinline)) enum flow_event answered_otherwise(struct flow *flow, nsec_t now)
{
	if (flow->step == FLOW_STEP_COUNT_RESERVED) /* nothing was guessed for it */
		return FLOW_RESERVED;
	walk_again(flow, now);
	return FLOW_LOADED;
}

bool flow_answered(struct flow *flow, enum flow_pending what, nsec_t now, enum flow_event *event)
{
	must((flow->awaited & what) != 0);
	flow->awaited &= ~(unsigned)what;
	if (flow->awaited != 0)
		return false;
	*event = FLOW_RESERVED;
	if (flow->step == FLOW_STEP_RESERVED && is_as_guessed(flow))
		return true;
	*event = answered_otherwise(flow, now);
	return true;
}

/* ---- what is taken meanwhile ---- */

void flow_asks_limits(struct flow *flow)
{
	struct flow_ahead *ahead = &flow->state->ahead;

	if (flow->awaited != 0)
		ahead->taken |= FLOW_PENDING_LIMITS;
	ahead->model = flow->walk.model_id;
	ahead->tokens_short = ahead->usd_short = 0;
}

bool flow_has_reserved(const struct flow *flow)
{
	return flow->awaited == 0 && has_taken(flow, FLOW_PENDING_LIMITS);
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
	if (!slice_eq(ahead->model, flow->walk.model_id) || !same_scopes(had, wanted))
		return false;
	ahead->tokens_short = beyond(wanted->ask.tokens, had->ask.tokens);
	ahead->usd_short = beyond(wanted->ask.usd, had->ask.usd);
	return flow->state->admission != FLOW_ADMITTED ||
	       (ahead->tokens_short == 0 && ahead->usd_short == 0);
}

void flow_uses(struct flow *flow, unsigned asks)
{
	struct flow_state *state = flow->state;

	state->ahead.taken &= ~asks;
	if ((asks & FLOW_PENDING_CLAIM) != 0)
		atomic_store_explicit(&state->copy.unsure, false, memory_order_relaxed);
}

void flow_given_back(struct flow *flow)
{
	struct flow_state *state = flow->state;

	if ((state->ahead.taken & FLOW_PENDING_CLAIM) != 0)
		state->joined = false;
	if ((state->ahead.taken & FLOW_PENDING_LIMITS) != 0)
		flow->reservation.refusal = (struct limit_refusal){ .err = ERR_OK };
	state->ahead.taken = 0;
}
