/* caller.h - who asks: from a key, a token (JWT) or a certificate to a tenant (DESIGN 4.2, identity).
 *
 * Knows no protocol: whoever speaks one takes the credentials out of it. One thread; no memory of its own but what
 * is lent. */
#ifndef GATEWAY_IDENTITY_CALLER_H
#define GATEWAY_IDENTITY_CALLER_H

#include "codec/base/arena.h"
#include "gateway/identity/jwt_checker.h"
#include "gateway/identity/key_cache.h"

/* What callers are looked up in. */
struct caller_sources {
	const struct config *config;
	struct jwt_checker *tokens; /* NULL: no tokens are taken */
	struct key_cache *keys;     /* NULL: no key is remembered */
	struct json_work *json;     /* lent for the call */
	uint64_t wall_s;
};

/* What somebody has shown. Borrowed. */
struct credentials {
	bool shown;          /* a key or a token, good or bad: the certificate does not count */
	struct slice secret; /* it; absent: unusable */
	/* The URL of what is asked for: a token that names it as its audience is good there alone. Absent: it has none. */
	struct slice resource;
	const struct tls_names *names; /* of a verified certificate; NULL: none */
	struct tally
		*wrongs; /* of its connection (jwt_checker_ask); NULL: not bounded by connection */
};

enum { CALLER_LIMIT_KEY = 16 };

struct caller {
	struct slice tenant, server;         /* copies in the arena; server absent: not said */
	uint8_t limit_key[CALLER_LIMIT_KEY]; /* what limits know the tenant by */
	/* Whom its token stands for (jwt.h): another user or client of the tenant has another. All zero: it showed none. */
	uint8_t subject[JWT_SUBJECT_BYTES];
	/* Of the configuration in which it was found, and valid as long: */
	const struct tenant *account;
	const struct plan *plan; /* what its server is granted */
};

/* Why nobody was found. */
struct caller_refusal {
	enum err err;         /* ERR_UNAUTHORIZED, ERR_BUSY */
	enum jwt_fault token; /* what is wrong with the token; JWT_OK: it was none */
};

/* Finds the caller; its texts are copied to `into`. A key or token that is shown counts alone: a certificate does not
 * make good for a wrong one. False: *why says why not, and *out is unchanged. */
MUST_USE bool caller_find(const struct caller_sources *sources, const struct credentials *shown,
			  struct arena *into, struct caller *out, struct caller_refusal *why);

/* Whether the credentials that led to `caller` still would, by the configuration of `sources`. What a token's issuer
 * says by now is not asked: the token was good when it came. */
MUST_USE bool caller_find_again(const struct caller_sources *sources,
				const struct credentials *shown, const struct caller *caller);

/* Its tenant and plan in another configuration. False: the tenant is not there any more, or disabled; nothing is
 * written. */
MUST_USE bool caller_account(const struct caller *caller, const struct config *config,
			     const struct tenant **account, const struct plan **plan);

#endif
