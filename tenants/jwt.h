/* jwt.h - JSON Web Tokens taken apart and judged: everything but the signature (RFC 7515, 7519, 8725;
 * DESIGN 4.2, identity.jwt).
 *
 * Pure: the time is an argument, and keys are somebody else's (gateway/jwt_keys). What jwt_read accepts
 * is what its sender claims, and worth nothing until the signature was found right. */
#ifndef TENANTS_JWT_H
#define TENANTS_JWT_H

#include "codec/base/attr.h"
#include "codec/json/json_read.h"

enum {
	JWT_BYTES_MAX = 8 << 10, /* of a token as it is sent */
	JWT_KID_MAX = 256,
	JWT_TENANT_MAX = 512,
	JWT_SERVER_MAX = 128, /* what the configuration takes as a server's name */
	JWT_ISSUERS_MAX = 16,
	JWT_SUBJECT_BYTES = 16
};

/* Asymmetric ones alone: there is no name for "none" or a MAC here. */
enum jwt_alg { JWT_RS256, JWT_ES256, JWT_EDDSA, JWT_ALGS };

/* How RFC 7518 3.1 and 8037 3.1 name it, and what its keys are (RFC 7517 4.1). */
struct jwt_alg_info {
	struct slice name, kty, crv; /* crv absent: its keys have none */
};
const struct jwt_alg_info *jwt_alg_info(enum jwt_alg alg);
/* False when it is none of them. */
bool jwt_alg_find(struct slice name, enum jwt_alg *out);

enum jwt_fault {
	JWT_OK = 0,
#define JWT_FAULT(symbol, reason, text) JWT_##symbol,
#include "tenants/tbl/jwt_faults.h"
#undef JWT_FAULT
	JWT_FAULTS
};
/* Static. `fault` is neither JWT_OK nor JWT_FAULTS. */
const char *jwt_fault_reason(enum jwt_fault fault);
const char *jwt_fault_text(enum jwt_fault fault);

/* Whose tokens are accepted, and what they must say. */
struct jwt_issuer {
	struct slice issuer;   /* equals iss */
	struct slice audience; /* is aud or one of them */
	struct slice
		tenant_claim; /* name of a claim; where there is none, a path with dots into objects */
	struct slice server_claim; /* likewise; absent: tokens do not say */
	uint32_t algorithms;       /* bits by enum jwt_alg */
	uint64_t skew_s;           /* by which clocks may differ */
};

/* What a token says. Slices point into the token or the space that it was read into. */
struct jwt_token {
	uint32_t issuer; /* index */
	enum jwt_alg alg;
	struct slice kid;       /* plain; absent: none */
	struct slice input;     /* what was signed */
	struct slice signature; /* bytes */
	uint64_t good_until_s;  /* wall clock: not accepted from then on */
	bool for_resource; /* aud does not have the issuer's audience: it is good for the resource alone */
	struct slice tenant; /* plain */
	struct slice server; /* plain; absent: not said */
	/* Whom it stands for: a digest of iss, sub and the client (azp, client_id). */
	uint8_t subject[JWT_SUBJECT_BYTES];
};

/* What is decoded goes here; one per thread. */
struct jwt_space {
	char parts[JWT_BYTES_MAX];
	char kid[JWT_KID_MAX], tenant[JWT_TENANT_MAX], server[JWT_SERVER_MAX];
};

/* Whether it is meant to be one: three parts or more, the first of which may be an object. */
bool jwt_plausible(struct slice text);

/* Judges `token` against the `count` issuers at `now_s` (seconds since 1970). `resource`: the URL of what is asked for,
 * which aud may name instead of the issuer's audience; absent: it has none. *out is written on JWT_OK only. `work` is
 * lent for the call. */
MUST_USE enum jwt_fault jwt_read(struct slice token, const struct jwt_issuer *issuers,
				 uint32_t count, struct slice resource, uint64_t now_s,
				 struct json_work *work, struct jwt_space *space,
				 struct jwt_token *out);

#endif
