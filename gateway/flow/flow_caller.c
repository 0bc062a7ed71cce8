/* flow_caller.c - the caller, found again in the configuration in force. */
#include "gateway/flow/flow_steps.h"

bool flow_find_caller(struct flow *flow, const struct flow_env *env)
{
	if (!caller_account(flow->ask->caller, env->config, &flow->caller.account,
			    &flow->caller.plan))
		return false;
	if (flow->made != NULL && memcmp(flow->walk.config_digest, env->config->digest,
					 sizeof(flow->walk.config_digest)) != 0)
		flow->made->route.scored_count = 0; /* numbers of another catalogue */
	return true;
}

/* By the credentials that the call came with. */
static bool is_still_let_in(const struct flow *flow, const struct flow_env *env)
{
	const struct caller_sources sources = {
		.config = env->config,
		.tokens = env->tokens,
		.keys = env->keys,
		.json = env->json,
		.wall_s = env->wall_ns / SEC,
	};

	return flow->ask->credentials == NULL ||
	       caller_find_again(&sources, flow->ask->credentials, flow->ask->caller);
}

struct verdict flow_permit_again(struct flow *flow, const struct flow_env *env)
{
	/* Before the first attempt there is no configuration digest. */
	const bool same = memcmp(flow->walk.config_digest, env->config->digest,
				 sizeof(flow->walk.config_digest)) == 0;

	if ((!same && !is_still_let_in(flow, env)) || !flow_find_caller(flow, env))
		return (struct verdict){ .err = ERR_UNAUTHORIZED };
	return same ? (struct verdict){ .err = ERR_OK } : flow_policy_again(flow);
}
