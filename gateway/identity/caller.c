#include "gateway/identity/caller.h"

#include "gateway/tls/tls_names.h"
#include "tenants/auth.h"
#include "tenants/identity.h"

/* Whom credentials lead to. */
struct found {
	const struct tenant *tenant; /* NULL: nobody */
	struct slice server;         /* borrowed until the next question */
	const uint8_t *subject;      /* of a token, likewise; NULL: it was none */
};

/* The name that led to the tenant stands for one of its servers. */
static struct found by_certificate(const struct caller_sources *from, const struct tls_names *names)
{
	struct identity identity = { 0 };

	if (names == NULL || from->wall_s >= names->good_until_s)
		return (struct found){ .tenant = NULL };
	for (size_t i = 0; i < names->count; i++)
		if (names->at[i].kind == from->config->certificates_by)
			identity_add(&identity, &from->config->tenants, names->at[i].text);
	return (struct found){ identity_tenant(&identity), identity.server, NULL };
}

/* JWT_OK with nobody found: it is not meant to be a token, or none is taken. */
static enum jwt_fault by_token(const struct caller_sources *from, const struct credentials *shown,
			       struct found *found)
{
	struct jwt_caller caller;

	if (from->tokens == NULL || from->config->jwt_issuer_count == 0 ||
	    !jwt_plausible(shown->secret))
		return JWT_OK;
	const enum jwt_fault fault =
		jwt_checker_ask(from->tokens, shown->secret, shown->resource, from->wall_s,
				from->json, shown->wrongs, &caller);
	if (fault == JWT_OK)
		*found = (struct found){ caller.tenant, caller.server, caller.subject };
	return fault;
}

/* Only a tenant's key is remembered, so that strangers cannot drive others' out. */
static const struct tenant_key *by_key(const struct caller_sources *from, struct slice key)
{
	const uint8_t *remembered = from->keys == NULL ? NULL : key_cache_find(from->keys, key);
	uint8_t digest[SHA256_BYTES];

	if (remembered != NULL)
		return auth_find_digest(&from->config->tenants, remembered);
	sha256(key, digest);
	const struct tenant_key *found = auth_find_digest(&from->config->tenants, digest);
	if (found != NULL && from->keys != NULL)
		key_cache_add(from->keys, key, digest);
	return found;
}

/* A key is looked for before a token: it may look like anything. Nobody found with JWT_OK: nobody who is known. */
static enum jwt_fault look_up(const struct caller_sources *from, const struct credentials *shown,
			      struct found *found)
{
	*found = (struct found){ .tenant = NULL };
	if (!shown->shown) {
		*found = by_certificate(from, shown->names);
		return JWT_OK;
	}
	if (auth_may_be_key(shown->secret)) {
		const struct tenant_key *key = by_key(from, shown->secret);
		if (key != NULL) {
			*found = (struct found){ key->tenant, key->server, NULL };
			return JWT_OK;
		}
	}
	return by_token(from, shown, found);
}

static bool refuse(struct caller_refusal *why, enum err err, enum jwt_fault token)
{
	*why = (struct caller_refusal){ .err = err, .token = token };
	return false;
}

bool caller_find(const struct caller_sources *sources, const struct credentials *shown,
		 struct arena *into, struct caller *out, struct caller_refusal *why)
{
	struct found found;
	const enum jwt_fault fault = look_up(sources, shown, &found);
	struct slice server = { NULL, 0 };

	if (fault != JWT_OK)
		return refuse(why, fault == JWT_BUSY ? ERR_BUSY : ERR_UNAUTHORIZED, fault);
	if (found.tenant == NULL || found.tenant->disabled)
		return refuse(why, ERR_UNAUTHORIZED, JWT_OK);
	const struct slice tenant = arena_copy(into, found.tenant->id);
	if (!slice_absent(found.server))
		server = arena_copy(into, found.server);
	if (slice_absent(tenant) || slice_absent(server) != slice_absent(found.server))
		return refuse(why, ERR_BUSY, JWT_OK);
	out->tenant = tenant;
	out->server = server;
	_Static_assert(sizeof(out->limit_key) == sizeof(found.tenant->limit_key), "the same key");
	(void)memcpy(out->limit_key, found.tenant->limit_key, sizeof(out->limit_key));
	if (found.subject != NULL)
		(void)memcpy(out->subject, found.subject, sizeof(out->subject));
	else
		(void)memset(out->subject, 0, sizeof(out->subject));
	out->account = found.tenant;
	out->plan = plan_for(found.tenant->plan, server);
	return true;
}

/* Nothing that the configuration has withdrawn. */
static bool passes_with_time(enum jwt_fault fault)
{
	return fault == JWT_NO_KEYS || fault == JWT_KEY_UNKNOWN || fault == JWT_BUSY ||
	       fault == JWT_EXPIRED;
}

bool caller_find_again(const struct caller_sources *sources, const struct credentials *shown,
		       const struct caller *caller)
{
	struct found found;
	const enum jwt_fault fault = look_up(sources, shown, &found);

	if (fault != JWT_OK)
		return passes_with_time(fault);
	return found.tenant != NULL && slice_eq(found.tenant->id, caller->tenant) &&
	       slice_eq(found.server, caller->server);
}

bool caller_account(const struct caller *caller, const struct config *config,
		    const struct tenant **account, const struct plan **plan)
{
	const struct tenant *tenant = tenants_by_id(&config->tenants, caller->tenant);

	if (tenant == NULL || tenant->disabled)
		return false;
	*account = tenant;
	*plan = plan_for(tenant->plan, caller->server);
	return true;
}
