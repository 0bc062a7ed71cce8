/* flow_retry.c - after an attempt that failed: whether, when and where the next one is made.
 *
 * Whoever failed is asked again only after a wait: what he wants (Retry-After) and up to a quarter more
 * by chance, or 0.5 s doubling to 8 s and up to a quarter less. Elsewhere (another key, endpoint, model) there is nothing to wait
 * for. Always within the deadline and config's number of attempts. Numbers of progress that were told of a stream
 * before it broke are no part of an answer, which leaves whole or not at all (DESIGN 4.3): the next attempt's count
 * from there on as soon as they are larger. */
#include "gateway/flow/flow_schema.h"
#include "gateway/flow/flow_steps.h"

static const nsec_t retry_first = 500 * MSEC, retry_longest = 8 * SEC;

/* ---- what failed ---- */

/* An answer that cannot be used is paid for: one is enough. */
static enum retry retry_of(const struct flow *flow)
{
	uint32_t slips = 0;

	if (flow->attempt.failure.why.retry != RETRY_ONCE)
		return flow->attempt.failure.why.retry;
	for (uint32_t i = 0; i < flow->retries.attempts; i++)
		slips += flow->retries.tried[i].err == ERR_PROVIDER_ANSWER;
	return slips > 1 ? RETRY_NEVER : RETRY_ONCE;
}

/* The more a failure says about the provider. */
static int evidence_of(const struct flow_failure *failure)
{
	if (failure->why.status != 0)
		return 2;
	return failure->sent ? 1 : 0;
}

/* The deadline's passing is how a request ends, whatever came before it. False: no memory for the first
 * failure. */
static bool keep_reported(struct flow *flow)
{
	if (flow->attempt.failure.why.err == ERR_OK)
		return true;
	if (flow->retries.reported != NULL && flow->attempt.failure.why.err != ERR_DEADLINE &&
	    evidence_of(&flow->attempt.failure) < evidence_of(flow->retries.reported))
		return true;
	if (flow->retries.reported == NULL)
		flow->retries.reported = arena_take(flow->arena, sizeof(*flow->retries.reported));
	if (flow->retries.reported != NULL)
		*flow->retries.reported = flow->attempt.failure;
	return flow->retries.reported != NULL;
}

/* ---- when ---- */

static nsec_t back_off(struct flow *flow)
{
	nsec_t wait = retry_first;

	for (uint32_t i = 0; i < flow->retries.round && wait < retry_longest; i++)
		wait *= 2;
	if (wait > retry_longest)
		wait = retry_longest;
	return wait - (nsec_t)((double)(wait / 4) * ((double)(flow_draw(flow) >> 11) * 0x1p-53));
}

static nsec_t wait_for(struct flow *flow)
{
	const int64_t wanted_ms = flow->attempt.failure.why.retry_after_ms;

	/* At once, or at a time that has passed, is no wait: whoever has just failed is spared. */
	return wanted_ms > 0 ? flow_spread(flow, (nsec_t)wanted_ms * MSEC) : back_off(flow);
}

/* ---- where ---- */

/* A further attempt adds to a provider's load, unless it never saw the last one. */
static bool may_ask(const struct flow *flow, const struct flow_env *env, uint32_t provider)
{
	if (flow_counts(flow)) /* two attempts at most, by a rate of its own: nobody's budget */
		return true;
	return !flow->attempt.failure.sent ||
	       health_may_retry(env->health, flow->ask->caller->limit_key, provider, env->now);
}

static enum flow_move again_at_once(struct flow *flow)
{
	flow->step = FLOW_STEP_ENCODE;
	return FLOW_GO;
}

/* The same request once more at the same model: better translated, with what was wrong, or in the hope of
 * another answer. */
static enum flow_move resend(struct flow *flow, const struct flow_env *env)
{
	if (flow->retries.repeat == FLOW_REPEATING)
		flow->retries.repeat = FLOW_REPEATED;
	if (flow_schema_mends(flow))
		flow_schema_mend(flow);
	return flow_stay(flow, env, false) == ERR_OK ? again_at_once(flow) : flow_give_up(flow);
}

/* Learns what a refusal says of the model. True: the request can be sent better now. Refusals name one parameter each.
 * Other requests profit once that was of use, if it is said of more than this request. */
static bool learn(struct flow *flow)
{
	const struct provider_failure *why = &flow->attempt.failure.why;
	const learn_set bit = LEARN_BIT(why->learn);

	if (why->learn == LEARN_NOTHING || flow->attempt.raw)
		return false;
	if (why->learn == LEARN_UNBIND_THINKING) /* of this conversation, not of the model */
		return flow_loop_unbind(flow);
	if (!slice_eq(flow->retries.lessons_of, flow->walk.model_id)) {
		flow->retries.lessons_of = flow->walk.model_id;
		flow->retries.lessons = flow->retries.lessons_lasting = 0;
	}
	if ((flow->retries.lessons & bit) != 0 || !profile_learn(&flow->made->profile, why->learn))
		return false; /* it was sent so */
	flow->retries.lessons |= bit;
	if (why->learn_lasting && learn_is_fair(flow->ask->request, why->learn))
		flow->retries.lessons_lasting |= bit;
	return true;
}

/* Whether the provider wants more time than is waited for here. */
static bool is_handed_on(const struct flow *flow)
{
	const int64_t wanted_ms = flow->attempt.failure.why.retry_after_ms;

	return wanted_ms > 0 && flow_hands_on(flow, (nsec_t)wanted_ms * MSEC);
}

static enum flow_move again_later(struct flow *flow, const struct flow_env *env)
{
	const nsec_t wait = wait_for(flow);
	const int32_t model = catalog_find(&env->config->catalog, flow->walk.model_id);

	if (is_handed_on(flow) || !flow_fits(flow, env->now, wait) || model < 0 ||
	    !may_ask(flow, env, env->config->catalog.models[model].provider))
		return flow_give_up(flow);
	flow->retries.round++;
	flow->retries.wait_until = env->now + wait;
	return FLOW_DO_WAIT;
}

static enum flow_move retry(struct flow *flow, const struct flow_env *env)
{
	const enum retry retry = retry_of(flow);

	if (retry == RETRY_NEVER)
		return flow_give_up(flow);
	if (flow_stay(flow, env, true) == ERR_OK || flow_move_on(flow, env) == ERR_OK)
		return may_ask(flow, env, flow->walk.provider) ? again_at_once(flow)
							       : flow_give_up(flow);
	return retry == RETRY_ELSEWHERE ? flow_give_up(flow) : again_later(flow, env);
}

/* Sets Retry-After: an earlier retry would be refused or routed elsewhere. */
static void note_back(struct flow *flow, const struct flow_env *env)
{
	const int32_t model = catalog_find(&env->config->catalog,
					   flow->retries.tried[flow->retries.attempts - 1].model);
	const nsec_t wait =
		model < 0 ? 0
			  : health_wait(env->health, (uint32_t)model,
					health_tenant(flow->ask->caller->limit_key), env->now);

	if (flow->retries.reported != NULL)
		flow->retries.reported->back_ms =
			wait == NSEC_NEVER ? 0 : (int64_t)((wait + MSEC - 1) / MSEC);
}

enum flow_move flow_retry(struct flow *flow, const struct flow_env *env)
{
	enum { COUNT_ATTEMPTS = 2 }; /* an estimate comes at once */
	const uint32_t set = env->config->retries.attempts;
	const uint32_t most = flow_counts(flow) && set > COUNT_ATTEMPTS ? COUNT_ATTEMPTS : set;

	const bool repeats = flow->retries.repeat == FLOW_REPEATING;
	const bool kept = flow->end.result != NULL && !repeats; /* the second answer failed */
	const bool mends = flow_schema_mends(flow);

	const bool reported = keep_reported(flow);
	note_back(flow, env);
	flow_keep_asked(flow);
	if (!reported)
		return flow_give_up_busy(flow);
	if (kept || flow->attempt.relayed || flow->retries.attempts >= most ||
	    flow->retries.attempts >= FLOW_ATTEMPTS_MAX || !flow_fits(flow, env->now, 0) ||
	    flow_permit_again(flow, env).err != ERR_OK)
		return flow_give_up(flow);
	return repeats || mends || learn(flow) ? resend(flow, env) : retry(flow, env);
}
