/* jwt_cache.h - tokens whose signature was checked, so that the next request costs a digest only.
 *
 * A bounded table of one thread. What was known about a token holds in the generation in which it was
 * learnt: another configuration or another set of keys begins a new one, and everything is checked
 * again. Full sets of slots give up who was not seen for longest. Time is an argument. */
#ifndef GATEWAY_IDENTITY_JWT_CACHE_H
#define GATEWAY_IDENTITY_JWT_CACHE_H

#include "codec/base/attr.h"
#include "codec/base/sha256.h"
#include "tenants/jwt.h"
#include "tenants/tenant.h"

struct jwt_known {
	uint8_t digest[SHA256_BYTES]; /* of the token */
	uint64_t generation;          /* 0: a free slot */
	uint64_t seen;
	uint64_t good_until_s;
	const struct tenant *tenant; /* of the configuration of that generation; NULL: refused */
	enum jwt_fault fault;        /* why; JWT_OK: it was let in */
	uint8_t subject[JWT_SUBJECT_BYTES];
	uint8_t server_len; /* 0: not said */
	char server[JWT_SERVER_MAX];
};

struct jwt_cache {
	struct jwt_known *slots; /* calloc'ed: untouched pages cost nothing */
	size_t sets;             /* of JWT_CACHE_WAYS slots; a power of two */
	uint64_t generation, clock;
};

/* Of 10,000 callers who come in turn hardly any meets four others in his set, and is always forgotten. */
enum { JWT_CACHE_WAYS = 4, JWT_CACHE_TOKENS = 32768, JWT_CACHE_REFUSED = 4096 };

/* Room for `tokens`, a power of two and at least JWT_CACHE_WAYS. False when memory is refused. */
MUST_USE bool jwt_cache_init(struct jwt_cache *cache, size_t tokens);
void jwt_cache_fini(struct jwt_cache *cache);

/* Forgets everything, at once. */
void jwt_cache_renew(struct jwt_cache *cache);

/* What is known of the token with that digest; NULL when nothing is, or when it is not good any more.
 * Valid until the next call that changes the cache. */
const struct jwt_known *jwt_cache_find(struct jwt_cache *cache, const uint8_t digest[SHA256_BYTES],
				       uint64_t now_s);

/* Remembers a token that is not known, for that tenant: `token` has been found right. Server and subject are copied. */
const struct jwt_known *jwt_cache_add(struct jwt_cache *cache, const uint8_t digest[SHA256_BYTES],
				      const struct tenant *tenant, const struct jwt_token *token,
				      uint64_t now_s);

/* Likewise one that is refused, and why. */
void jwt_cache_refuse(struct jwt_cache *cache, const uint8_t digest[SHA256_BYTES],
		      enum jwt_fault fault, uint64_t good_until_s, uint64_t now_s);

#endif
