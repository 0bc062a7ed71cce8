#include "gateway/identity/jwt_checker.h"

#include "codec/base/must.h"
#include "gateway/identity/jwt_cache.h"
#include "tenants/identity.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { CHECKER_MAGIC = 0x4a575443 };

/* Wrong tokens whose signature is looked at in a second: a tenth of a core at most, if all are EdDSA.
 * Those of nobody's tenant are among them, however well they are signed. Beyond that, tokens that are
 * not remembered are told to come again, and share what there is with whoever sends so many wrong ones. */
enum { WRONG_PER_S_MAX = 500 };

/* And of one connection: few enough that who opens ten a second leaves most of it to others. */
enum { WRONG_PER_CONNECTION_MAX = 16 };

struct jwt_checker {
	uint32_t magic;
	const struct config *config;            /* NULL: none yet, and no issuers */
	struct jwt_keys *keys[JWT_ISSUERS_MAX]; /* by its issuers; NULL: not known */
	struct jwt_cache right, wrong;          /* tokens whose signature was looked at */
	struct tally wrongs;                    /* of these the wrong ones */
	struct jwt_space space;
	_Atomic uint32_t refetches;
	_Atomic uint64_t counts[JWT_RESULTS];
};

struct jwt_checker *jwt_checker_new(void)
{
	struct jwt_checker *checker = calloc(1, sizeof(*checker));

	if (checker == NULL)
		return NULL;
	checker->magic = CHECKER_MAGIC;
	if (!jwt_cache_init(&checker->right, JWT_CACHE_TOKENS) ||
	    !jwt_cache_init(&checker->wrong, JWT_CACHE_REFUSED)) {
		jwt_checker_free(checker);
		return NULL;
	}
	return checker;
}

void jwt_checker_free(struct jwt_checker *checker)
{
	if (checker == NULL)
		return;
	must_obj(checker, CHECKER_MAGIC);
	for (size_t i = 0; i < COUNT_OF(checker->keys); i++)
		jwt_keys_free(&checker->keys[i]);
	jwt_cache_fini(&checker->right);
	jwt_cache_fini(&checker->wrong);
	checker->magic = 0;
	free(checker);
}

/* ---- issuers and keys ------------------------------------------------------------------------ */

/* Nothing of what was let in or refused holds any longer. */
static void forget(struct jwt_checker *checker)
{
	jwt_cache_renew(&checker->right);
	jwt_cache_renew(&checker->wrong);
}

/* Another owner of what lies at the place, for the issuer of another configuration. */
static struct jwt_keys *known_at(const struct jwt_checker *checker, struct slice place)
{
	for (uint32_t i = 0; checker->config != NULL && i < checker->config->jwt_issuer_count; i++)
		if (slice_eq(checker->config->jwks[i].name, place) && checker->keys[i] != NULL)
			return jwt_keys_share(checker->keys[i]);
	return NULL;
}

void jwt_checker_use_config(struct jwt_checker *checker, const struct config *config)
{
	struct jwt_keys *fresh[JWT_ISSUERS_MAX] = { NULL };

	must_obj(checker, CHECKER_MAGIC);
	must(config->jwt_issuer_count <= JWT_ISSUERS_MAX);
	for (uint32_t i = 0; i < config->jwt_issuer_count; i++)
		fresh[i] = known_at(checker, config->jwks[i].name);
	for (size_t i = 0; i < COUNT_OF(fresh); i++) {
		jwt_keys_free(&checker->keys[i]);
		checker->keys[i] = fresh[i];
	}
	checker->config = config;
	forget(checker); /* tenants are the old configuration's */
}

void jwt_checker_set_keys(struct jwt_checker *checker, struct slice place, struct jwt_keys **keys)
{
	must_obj(checker, CHECKER_MAGIC);
	for (uint32_t i = 0; checker->config != NULL && i < checker->config->jwt_issuer_count;
	     i++) {
		if (!slice_eq(checker->config->jwks[i].name, place))
			continue;
		jwt_keys_free(&checker->keys[i]);
		checker->keys[i] = jwt_keys_share(*keys);
		forget(checker); /* a key may be gone, or new */
	}
	jwt_keys_free(keys);
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void count(struct jwt_checker *checker, uint32_t result)
{
	const uint64_t value = atomic_load_explicit(&checker->counts[result], memory_order_relaxed);

	atomic_store_explicit(&checker->counts[result], value + 1, memory_order_relaxed);
}

static void ask_refetch(struct jwt_checker *checker, uint32_t issuer)
{
	(void)atomic_fetch_or_explicit(&checker->refetches, UINT32_C(1) << issuer,
				       memory_order_relaxed);
}

/* A signature costs as much as ten or forty requests: nobody may have as many looked at as he likes. */
static bool patient(const struct jwt_checker *checker, const struct tally *wrongs, uint64_t now_s)
{
	return tally_below(&checker->wrongs, now_s, WRONG_PER_S_MAX) &&
	       (wrongs == NULL || tally_below(wrongs, now_s, WRONG_PER_CONNECTION_MAX));
}

/* A signature was looked at for a token that is not good. */
static void refuse(struct jwt_checker *checker, const uint8_t digest[SHA256_BYTES],
		   enum jwt_fault fault, uint64_t good_until_s, uint64_t now_s,
		   struct tally *wrongs)
{
	tally_add(&checker->wrongs, now_s);
	if (wrongs != NULL &&
	    fault == JWT_SIGNATURE) /* else nobody guesses: a connection may be a proxy's */
		tally_add(wrongs, now_s);
	jwt_cache_refuse(&checker->wrong, digest, fault, good_until_s, now_s);
}

static enum jwt_fault check_signature(struct jwt_checker *checker, const struct jwt_token *token,
				      uint64_t now_s, const struct tally *wrongs)
{
	const struct jwt_keys *keys = checker->keys[token->issuer];

	if (keys == NULL)
		return JWT_NO_KEYS; /* control asks again and again by itself */
	if (!patient(checker, wrongs, now_s))
		return JWT_BUSY;
	const enum jwt_fault fault = jwt_keys_check(keys, token);
	if (fault == JWT_KEY_UNKNOWN)
		ask_refetch(checker, token->issuer);
	return fault;
}

/* NULL: there is none, or it is disabled. */
static const struct tenant *tenant_of(const struct config *config, const struct jwt_token *token)
{
	struct identity identity = { 0 };

	identity_add(&identity, &config->tenants, token->tenant);
	const struct tenant *tenant = identity_tenant(&identity);
	return tenant == NULL || tenant->disabled ? NULL : tenant;
}

/* By which a token is remembered that is good for one resource alone: so nobody finds it who asks for another. No token is
 * this text: it begins with a length. */
static void digest_for(const uint8_t digest[SHA256_BYTES], struct slice resource,
		       uint8_t out[SHA256_BYTES])
{
	struct sha256_sum sum;

	sha256_begin(&sum);
	sha256_add_text(&sum, slice_of((const char *)digest, SHA256_BYTES));
	sha256_add_text(&sum, resource);
	sha256_end(&sum, out);
}

static const struct jwt_known *find_right(struct jwt_checker *checker,
					  const uint8_t digest[SHA256_BYTES], struct slice resource,
					  uint64_t now_s)
{
	const struct jwt_known *known = jwt_cache_find(&checker->right, digest, now_s);
	uint8_t narrow[SHA256_BYTES];

	if (known != NULL || slice_absent(resource))
		return known;
	digest_for(digest, resource, narrow);
	return jwt_cache_find(&checker->right, narrow, now_s);
}

static const struct jwt_known *add_right(struct jwt_checker *checker,
					 const uint8_t digest[SHA256_BYTES], struct slice resource,
					 const struct tenant *tenant, const struct jwt_token *token,
					 uint64_t now_s)
{
	uint8_t narrow[SHA256_BYTES];

	if (!token->for_resource)
		return jwt_cache_add(&checker->right, digest, tenant, token, now_s);
	digest_for(digest, resource, narrow);
	return jwt_cache_add(&checker->right, narrow, tenant, token, now_s);
}

/* All of it, for a token that is not remembered. */
static enum jwt_fault judge(struct jwt_checker *checker, struct slice text,
			    const uint8_t digest[SHA256_BYTES], struct slice resource,
			    uint64_t now_s, struct json_work *work, struct tally *wrongs,
			    const struct jwt_known **out)
{
	const struct config *config = checker->config;
	const struct tenant *tenant = NULL;
	struct jwt_token token;

	const struct jwt_known *wrong = jwt_cache_find(&checker->wrong, digest, now_s);
	if (wrong != NULL)
		return wrong->fault; /* who errs again and again costs no more than who does not */
	enum jwt_fault fault = jwt_read(text, config->jwt_issuers, config->jwt_issuer_count,
					resource, now_s, work, &checker->space, &token);

	if (fault == JWT_OK)
		fault = check_signature(checker, &token, now_s, wrongs);
	if (fault == JWT_OK && (tenant = tenant_of(config, &token)) == NULL)
		fault = JWT_TENANT_UNKNOWN;
	if (fault == JWT_SIGNATURE || fault == JWT_TENANT_UNKNOWN)
		refuse(checker, digest, fault, token.good_until_s, now_s, wrongs);
	if (fault != JWT_OK)
		return fault;
	*out = add_right(checker, digest, resource, tenant, &token, now_s);
	return JWT_OK;
}

enum jwt_fault jwt_checker_ask(struct jwt_checker *checker, struct slice token,
			       struct slice resource, uint64_t now_s, struct json_work *work,
			       struct tally *wrongs, struct jwt_caller *out)
{
	uint8_t digest[SHA256_BYTES];

	must_obj(checker, CHECKER_MAGIC);
	must(checker->config != NULL);
	sha256(token, digest);
	const struct jwt_known *known = find_right(checker, digest, resource, now_s);
	enum jwt_fault fault = JWT_OK;
	if (known != NULL) {
		count(checker, JWT_REMEMBERED);
	} else {
		fault = judge(checker, token, digest, resource, now_s, work, wrongs, &known);
		count(checker, fault);
	}
	if (fault != JWT_OK)
		return fault;
	*out = (struct jwt_caller){ .tenant = known->tenant, .subject = known->subject };
	if (known->server_len != 0)
		out->server = slice_of(known->server, known->server_len);
	return JWT_OK;
}

/* ---- from the control thread ----------------------------------------------------------------- */

uint32_t jwt_checker_take_refetches(struct jwt_checker *checker)
{
	return atomic_exchange_explicit(&checker->refetches, 0, memory_order_relaxed);
}

uint64_t jwt_checker_count(const struct jwt_checker *checker, uint32_t result)
{
	must(result < JWT_RESULTS);
	return atomic_load_explicit(&checker->counts[result], memory_order_relaxed);
}

const char *jwt_result_name(uint32_t result)
{
	must(result < JWT_RESULTS);
	if (result == JWT_OK)
		return "verified";
	return result == JWT_REMEMBERED ? "remembered" : jwt_fault_reason((enum jwt_fault)result);
}
