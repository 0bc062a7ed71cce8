#include "gateway/identity/jwt_keys.h"

#include "codec/base/must.h"
#include "tenants/jwks.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { KEYS_MAGIC = 0x4a574b53, COORDINATE = 32, ED25519_SIGNATURE = 64 };

/* A public exponent beyond 32 bits makes every check slow, and nobody has one. */
enum { EXPONENT_BYTES_MAX = 4 };

enum { KID_PRINTED_MAX = 64 };

struct jwt_key {
	enum jwt_alg alg;
	uint16_t kid_len;
	char kid[JWT_KID_MAX];
	EVP_PKEY *key;
};

struct jwt_keys {
	uint32_t magic;
	_Atomic uint32_t owners;
	uint8_t digest[SHA256_BYTES]; /* of the text */
	uint32_t count;
	struct jwt_key at[JWT_KEYS_MAX];
};

/* ---- keys ------------------------------------------------------------------------------------ */

/* Of `type` with `params`, which are freed. NULL when OpenSSL does not take them. */
static EVP_PKEY *key_from(const char *type, OSSL_PARAM *params)
{
	EVP_PKEY *key = NULL;
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);

	if (ctx == NULL || params == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(ctx);
	OSSL_PARAM_free(params);
	return key;
}

static bool exponent_fits(const struct jwk *jwk)
{
	size_t zeros = 0;

	while (zeros < jwk->b_len && jwk->b[zeros] == 0)
		zeros++;
	return jwk->b_len - zeros <= EXPONENT_BYTES_MAX && (jwk->b[jwk->b_len - 1] & 1) == 1 &&
	       !(jwk->b_len - zeros == 1 && jwk->b[zeros] == 1);
}

static EVP_PKEY *rsa_key(const struct jwk *jwk, const char **wrong)
{
	BIGNUM *n = BN_bin2bn(jwk->a, (int)jwk->a_len, NULL);
	BIGNUM *e = BN_bin2bn(jwk->b, (int)jwk->b_len, NULL);
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY *key = NULL;

	*wrong = NULL;
	if (n == NULL || e == NULL || build == NULL)
		*wrong = "there is no memory for it";
	else if (BN_num_bits(n) < JWT_RSA_BITS_MIN)
		*wrong = "RSA needs 2048 bits at least";
	else if (!BN_is_odd(n) || !exponent_fits(jwk))
		*wrong = "its numbers are no RSA key";
	else if (OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, n) == 1 &&
		 OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, e) == 1)
		key = key_from("RSA", OSSL_PARAM_BLD_to_param(build));
	OSSL_PARAM_BLD_free(build);
	BN_free(n);
	BN_free(e);
	return key;
}

/* OpenSSL sees to it that the point is one of the curve. */
static EVP_PKEY *ec_key(const struct jwk *jwk)
{
	uint8_t point[1 + 2 * COORDINATE] = { 0x04 /* uncompressed */ };
	OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
	EVP_PKEY *key = NULL;

	(void)memcpy(point + 1, jwk->a, COORDINATE);
	(void)memcpy(point + 1 + COORDINATE, jwk->b, COORDINATE);
	if (build != NULL &&
	    OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
	    OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point,
					     sizeof(point)) == 1)
		key = key_from("EC", OSSL_PARAM_BLD_to_param(build));
	OSSL_PARAM_BLD_free(build);
	return key;
}

/* NULL when *out is a key. */
static const char *make_key(const struct jwk *jwk, struct jwt_key *out)
{
	const char *wrong = NULL;

	*out = (struct jwt_key){ .alg = jwk->alg, .kid_len = (uint16_t)jwk->kid_len };
	(void)memcpy(out->kid, jwk->kid, jwk->kid_len);
	switch (jwk->alg) {
	case JWT_RS256:
		out->key = rsa_key(jwk, &wrong);
		break;
	case JWT_ES256:
		out->key = ec_key(jwk);
		break;
	case JWT_EDDSA:
		out->key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, jwk->a, jwk->a_len);
		break;
	case JWT_ALGS:
		break;
	}
	ERR_clear_error();
	if (out->key != NULL)
		return NULL;
	return wrong == NULL ? "its numbers are no key of its kind" : wrong;
}

/* ---- sets ------------------------------------------------------------------------------------ */

static void tell_skipped(FILE *out, const struct jwk *jwk, const char *why)
{
	if (out == NULL)
		return;
	(void)fputs(jwk != NULL && jwk->kid_len != 0 ? "key " : "a key", out);
	for (size_t i = 0; jwk != NULL && i < jwk->kid_len && i < KID_PRINTED_MAX; i++)
		(void)fputc(jwk->kid[i] > ' ' && jwk->kid[i] <= '~' ? jwk->kid[i] : '?', out);
	(void)fprintf(out, " is not used: %s\n", why);
}

/* False when there are too many. */
static bool add_key(struct jwt_keys *keys, const struct jwk *jwk, FILE *skipped)
{
	struct jwt_key key;
	const char *wrong = make_key(jwk, &key);

	if (wrong != NULL) {
		tell_skipped(skipped, jwk, wrong);
		return true;
	}
	if (keys->count == JWT_KEYS_MAX) {
		EVP_PKEY_free(key.key);
		return false;
	}
	keys->at[keys->count++] = key;
	return true;
}

static bool read_set(struct jwt_keys *keys, struct slice text, struct json_work *work,
		     FILE *skipped, char *problem, size_t room)
{
	struct jwks_reader reader;
	struct jwk jwk;

	for (jwks_open(&reader, text, work);;) {
		switch (jwks_next(&reader, &jwk)) {
		case JWKS_KEY:
			if (add_key(keys, &jwk, skipped))
				break;
			(void)snprintf(problem, room, "it has more than %d keys", JWT_KEYS_MAX);
			return false;
		case JWKS_SKIPPED:
			tell_skipped(skipped, NULL, reader.skipped);
			break;
		case JWKS_END:
			return true;
		case JWKS_BAD:
			(void)snprintf(problem, room, "it is no set of keys (%s at byte %u)",
				       reader.json.fault.detail == NULL
					       ? err_info(reader.json.fault.err)->reason
					       : reader.json.fault.detail,
				       reader.json.fault.offset);
			return false;
		}
	}
}

struct jwt_keys *jwt_keys_new(struct slice text, struct json_work *work, FILE *skipped,
			      char *problem, size_t room)
{
	struct jwt_keys *keys = calloc(1, sizeof(*keys));

	if (keys == NULL) {
		(void)snprintf(problem, room, "there is no memory for its keys");
		return NULL;
	}
	keys->magic = KEYS_MAGIC;
	atomic_init(&keys->owners, 1);
	sha256(text, keys->digest);
	if (!read_set(keys, text, work, skipped, problem, room))
		jwt_keys_free(&keys);
	return keys;
}

struct jwt_keys *jwt_keys_share(struct jwt_keys *keys)
{
	if (keys != NULL)
		(void)atomic_fetch_add_explicit(&keys->owners, 1, memory_order_relaxed);
	return keys;
}

void jwt_keys_free(struct jwt_keys **at)
{
	struct jwt_keys *keys = *at;

	*at = NULL;
	if (keys == NULL)
		return;
	must_obj(keys, KEYS_MAGIC);
	if (atomic_fetch_sub_explicit(&keys->owners, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < keys->count; i++)
		EVP_PKEY_free(keys->at[i].key);
	keys->magic = 0;
	free(keys);
}

uint32_t jwt_keys_count(const struct jwt_keys *keys)
{
	must_obj(keys, KEYS_MAGIC);
	return keys->count;
}

bool jwt_keys_same(const struct jwt_keys *a, const struct jwt_keys *b)
{
	return memcmp(a->digest, b->digest, sizeof(a->digest)) == 0;
}

/* ---- signatures ------------------------------------------------------------------------------ */

static bool has_kid(const struct jwt_key *key, struct slice kid)
{
	return key->kid_len != 0 && slice_eq(slice_of(key->kid, key->kid_len), kid);
}

/* Two keys may share a kid if they are of different kinds (RFC 7517 4.5). */
static enum jwt_fault choose(const struct jwt_keys *keys, const struct jwt_token *token,
			     const struct jwt_key **out)
{
	const struct jwt_key *fits = NULL;
	uint32_t named = 0, fitting = 0;

	for (uint32_t i = 0; i < keys->count; i++) {
		const struct jwt_key *key = &keys->at[i];
		if (!slice_absent(token->kid) && !has_kid(key, token->kid))
			continue;
		named++;
		if (key->alg != token->alg)
			continue;
		if (fitting++ == 0)
			fits = key;
	}
	if (fitting == 0 && named != 0 && !slice_absent(token->kid))
		return JWT_KEY_MISFIT;
	if (fitting == 0 || (fitting > 1 && slice_absent(token->kid)))
		return JWT_KEY_UNKNOWN;
	*out = fits;
	return JWT_OK;
}

/* One of the two numbers of a signature as an ASN.1 INTEGER; its length. */
static size_t der_integer(const uint8_t number[COORDINATE], uint8_t *out)
{
	size_t zeros = 0, len = 2;

	while (zeros < COORDINATE - 1 && number[zeros] == 0)
		zeros++;
	if ((number[zeros] & 0x80) != 0)
		out[len++] = 0;
	(void)memcpy(out + len, number + zeros, COORDINATE - zeros);
	len += COORDINATE - zeros;
	out[0] = 0x02;
	out[1] = (uint8_t)(len - 2);
	return len;
}

/* JWTs have r and s one behind the other (RFC 7518 3.4), OpenSSL wants a SEQUENCE of them. */
static size_t der_signature(const uint8_t raw[2 * COORDINATE], uint8_t out[2 * COORDINATE + 8])
{
	size_t len = der_integer(raw, out + 2);

	len += der_integer(raw + COORDINATE, out + 2 + len);
	out[0] = 0x30;
	out[1] = (uint8_t)len;
	return len + 2;
}

static bool verify(EVP_PKEY *key, const EVP_MD *md, struct slice input, const uint8_t *signature,
		   size_t len)
{
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	const bool right =
		ctx != NULL && EVP_DigestVerifyInit(ctx, NULL, md, NULL, key) == 1 &&
		EVP_DigestVerify(ctx, signature, len, (const uint8_t *)input.at, input.len) == 1;

	EVP_MD_CTX_free(ctx);
	ERR_clear_error();
	return right;
}

static bool signature_is_right(const struct jwt_key *key, const struct jwt_token *token)
{
	const uint8_t *raw = (const uint8_t *)token->signature.at;
	uint8_t der[2 * COORDINATE + 8];

	switch (key->alg) {
	case JWT_RS256: /* PKCS #1 v1.5, which is the default for keys of type RSA */
		return token->signature.len == (size_t)EVP_PKEY_get_size(key->key) &&
		       verify(key->key, EVP_sha256(), token->input, raw, token->signature.len);
	case JWT_ES256:
		return token->signature.len == 2 * COORDINATE &&
		       verify(key->key, EVP_sha256(), token->input, der, der_signature(raw, der));
	case JWT_EDDSA:
		return token->signature.len == ED25519_SIGNATURE &&
		       verify(key->key, NULL, token->input, raw, token->signature.len);
	case JWT_ALGS:
		break;
	}
	return false;
}

enum jwt_fault jwt_keys_check(const struct jwt_keys *keys, const struct jwt_token *token)
{
	const struct jwt_key *key;

	must_obj(keys, KEYS_MAGIC);
	const enum jwt_fault fault = choose(keys, token, &key);
	if (fault != JWT_OK)
		return fault;
	return signature_is_right(key, token) ? JWT_OK : JWT_SIGNATURE;
}
