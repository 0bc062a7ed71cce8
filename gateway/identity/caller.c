/* caller.c - who asks: by a key, a token (JWT) or a certificate (DESIGN 4.2, identity). */
#include "gateway/flow/flow_steps.h"

#include "tenants/auth.h"
#include "tenants/identity.h"

/* The name that led to the tenant stands for one of its servers. */
static const struct tenant_key *by_certificate(struct flow *flow, const struct flow_env *env)
{
	const struct config *config = env->config;
	const struct tls_names *names = flow->in->names;
	struct identity identity = { 0 };

	if (names == NULL || env->wall_ns / SEC >= names->good_until_s)
		return NULL;
	for (size_t i = 0; i < names->count; i++)
		if (names->at[i].kind == config->certificates_by)
			identity_add(&identity, &config->tenants, names->at[i].text);
	flow->named = (struct tenant_key){ .tenant = identity_tenant(&identity),
					   .server = identity.server };
	return flow->named.tenant == NULL ? NULL : &flow->named;
}

/* JWT_OK with *found NULL: it is not meant to be a token, or none is taken. */
static enum jwt_fault by_token(struct flow *flow, const struct flow_env *env, struct slice token,
			       const struct tenant_key **found)
{
	struct jwt_caller caller;

	if (env->tokens == NULL || env->config->jwt_issuer_count == 0 || !jwt_plausible(token))
		return JWT_OK;
	const enum jwt_fault fault = jwt_checker_ask(env->tokens, token, env->wall_ns / SEC,
						     env->json, flow->in->wrongs, &caller);
	if (fault != JWT_OK)
		return fault;
	flow->named = (struct tenant_key){ .tenant = caller.tenant, .server = caller.server };
	*found = &flow->named;
	return JWT_OK;
}

/* Only a tenant's key is remembered, so that strangers cannot drive others' out. */
static const struct tenant_key *by_key(const struct flow_env *env, struct slice key)
{
	const uint8_t *remembered = env->keys == NULL ? NULL : key_memory_find(env->keys, key);
	uint8_t digest[SHA256_BYTES];

	if (remembered != NULL)
		return auth_find_digest(&env->config->tenants, remembered);
	sha256(key, digest);
	const struct tenant_key *found = auth_find_digest(&env->config->tenants, digest);
	if (found != NULL && env->keys != NULL)
		key_memory_add(env->keys, key, digest);
	return found;
}

/* A key is looked for first: it may look like anything. */
static enum jwt_fault by_credentials(struct flow *flow, const struct flow_env *env,
				     struct slice authorization, const struct tenant_key **found)
{
	const struct slice credentials = auth_credentials(authorization);

	if (auth_may_be_key(credentials))
		*found = by_key(env, credentials);
	return *found == NULL ? by_token(flow, env, credentials, found) : JWT_OK;
}

/* Who shows a key or a token is judged by it alone: a wrong one is not made good by a certificate. *found
 * NULL with JWT_OK: nobody who is known. */
static enum jwt_fault who_asks(struct flow *flow, const struct flow_env *env,
			       const struct tenant_key **found)
{
	const struct slice authorization = flow->in->headers[HTTP_AUTHORIZATION];

	*found = NULL;
	if (!slice_absent(authorization))
		return by_credentials(flow, env, authorization, found);
	*found = by_certificate(flow, env);
	return JWT_OK;
}

/* Says what is wrong with it: whoever sent the token can read it, too. */
static enum flow_move refuse_token(struct flow *flow, enum jwt_fault why)
{
	const struct fault fault = { .err = why == JWT_BUSY ? ERR_BUSY : ERR_UNAUTHORIZED,
				     .offset = FAULT_NO_OFFSET,
				     .detail = jwt_fault_text(why) };
	struct rpc_error_data data = rpc_error_data_none;
	struct gather list;

	flow->bad_token = true;
	if (why == JWT_BUSY)
		data.retry_after_ms = 1000;
	gather_init(&list, flow->arena);
	gather_lit(&list, "\"token\":\"");
	gather_raw(&list, slice_str(jwt_fault_reason(why)));
	gather_lit(&list, "\"");
	if (gather_done(&list) == ERR_OK)
		data.extra = gather_flat(&list, flow->arena);
	return flow_refuse(flow, &fault, &data);
}

enum flow_move flow_auth(struct flow *flow, const struct flow_env *env)
{
	const struct tenant_key *found;
	const enum jwt_fault fault = who_asks(flow, env, &found);

	if (fault != JWT_OK)
		return refuse_token(flow, fault);
	if (found == NULL || found->tenant->disabled)
		return flow_refuse_err(flow, ERR_UNAUTHORIZED);
	flow->principal = found;
	flow->plan = plan_for(found->tenant->plan, found->server);
	(void)memcpy(flow->limit_key, found->tenant->limit_key, sizeof(flow->limit_key));
	flow->tenant = arena_copy(flow->arena, found->tenant->id);
	if (!slice_absent(found->server))
		flow->server = arena_copy(flow->arena, found->server);
	if (slice_absent(flow->tenant) || slice_absent(flow->server) != slice_absent(found->server))
		return flow_refuse_err(flow, ERR_BUSY);
	/* A token's server is remembered elsewhere, and not for ever. */
	flow->named.server = flow->server;
	flow->authenticated = true;
	return flow_hold_body(flow, env);
}

/* Nothing that the configuration has withdrawn. */
static bool passes_with_time(enum jwt_fault fault)
{
	return fault == JWT_NO_KEYS || fault == JWT_KEY_UNKNOWN || fault == JWT_BUSY ||
	       fault == JWT_EXPIRED;
}

bool flow_auth_again(struct flow *flow, const struct flow_env *env)
{
	const struct tenant_key *found;
	const enum jwt_fault fault = who_asks(flow, env, &found);

	if (fault != JWT_OK)
		return passes_with_time(fault);
	return found != NULL && slice_eq(found->tenant->id, flow->tenant) &&
	       slice_eq(found->server, flow->server);
}
