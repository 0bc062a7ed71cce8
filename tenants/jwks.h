/* jwks.h - an issuer's set of keys, read one by one (RFC 7517, 7518 6, 8037).
 *
 * Pure: what is a number here becomes a key in gateway/jwt_keys. Keys that no algorithm of ours uses are
 * passed over, because issuers have others for other purposes. */
#ifndef TENANTS_JWKS_H
#define TENANTS_JWKS_H

#include "tenants/jwt.h"

enum {
	JWK_NUMBER_MAX = 512, /* bytes: RSA with 4096 bits */
	JWK_EXPONENT_MAX = 8,
};

struct jwk {
	enum jwt_alg alg;
	size_t kid_len; /* 0: none, or an empty one */
	char kid[JWT_KID_MAX];
	/* n and e of RSA, x and y of EC, x of OKP; as sent, most significant byte first (OKP: as is) */
	size_t a_len, b_len;
	uint8_t a[JWK_NUMBER_MAX], b[JWK_NUMBER_MAX];
};

struct jwks_reader {
	struct json_reader json;
	const char *skipped; /* why the last key was passed over: static */
};

enum jwks_next {
	JWKS_KEY,     /* *key is filled in */
	JWKS_SKIPPED, /* one that is of no use; `skipped` says why */
	JWKS_END,     /* the text has come to its end, and was right */
	JWKS_BAD,     /* it is no set of keys; json.fault says where */
};

/* `text` and `work` must outlive the reader. */
void jwks_open(struct jwks_reader *reader, struct slice text, struct json_work *work);

/* The next key; nothing after JWKS_END and JWKS_BAD. What came before JWKS_BAD is worth nothing. */
MUST_USE enum jwks_next jwks_next(struct jwks_reader *reader, struct jwk *key);

#endif
