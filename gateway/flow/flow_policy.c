/* flow_policy.c - whether a request may pass, by the configuration in force. */
#include "gateway/flow/flow_steps.h"

enum flow_move flow_policy(struct flow *flow, const struct flow_env *env)
{
	struct verdict verdict =
		policy_check(flow->caller.account, flow->caller.plan, flow->ask->request);

	(void)env;
	flow->walk.judged = true;
	flow->walk.asked_system = flow->ask->request->system;
	if (verdict.err != ERR_OK)
		return flow_refuse_verdict(flow, &verdict);
	const enum flow_move loop = flow_loop_check(flow);
	if (loop != FLOW_NEXT)
		return loop;
	flow->walk.verdict = (struct verdict_copy){ verdict.max_tokens, verdict.final_round };
	flow->totals.asked_adjustments = flow->ask->request->adjustments | verdict.adjustments;
	enum err err = policy_apply(flow->caller.plan, flow->arena, flow->ask->request);
	return err == ERR_OK ? FLOW_NEXT : flow_refuse_err(flow, err);
}

struct verdict flow_policy_again(struct flow *flow)
{
	flow->ask->request->system = flow->walk.asked_system;
	struct verdict verdict =
		policy_check(flow->caller.account, flow->caller.plan, flow->ask->request);

	if (verdict.err != ERR_OK)
		return verdict;
	flow->walk.verdict.max_tokens = verdict.max_tokens;
	flow->totals.asked_adjustments |= verdict.adjustments;
	verdict.err = policy_apply(flow->caller.plan, flow->arena, flow->ask->request);
	return verdict;
}
