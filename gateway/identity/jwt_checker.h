/* jwt_checker.h - a worker's answer to "whose token is this?" (DESIGN 4.2, identity.jwt).
 *
 * Holds the issuers of the configuration in use, their keys as the control thread has last told, and
 * the tokens that were checked (jwt_cache). One per worker; control reads the counters and takes the
 * refetches of keys. Tokens are judged cheapest check first; the signature comes last and costs the
 * worker 30 to 190 us, once per token. Those of wrong tokens are bounded: beyond 500 a second, rightly signed
 * ones of nobody's tenant among them, or 16 wrong signatures a second of one connection, tokens that are not
 * remembered are JWT_BUSY. */
#ifndef GATEWAY_IDENTITY_JWT_CHECKER_H
#define GATEWAY_IDENTITY_JWT_CHECKER_H

#include "gateway/base/config.h"
#include "gateway/base/tally.h"
#include "gateway/identity/jwt_keys.h"

struct jwt_checker;

/* Without issuers. NULL: memory. */
struct jwt_checker *jwt_checker_new(void);
void jwt_checker_free(struct jwt_checker *checker);

/* From now on that configuration's issuers and tenants; keys of places that it names, too, stay. It must
 * live until the next one is in use. */
void jwt_checker_use_config(struct jwt_checker *checker, const struct config *config);

/* The keys that lie at the place of that name (struct jwks_place); takes *keys over, NULL inside: there
 * are none any more. Places that no issuer has are ignored. */
void jwt_checker_set_keys(struct jwt_checker *checker, struct slice place, struct jwt_keys **keys);

/* Who it is. `server` absent: the token does not say. */
struct jwt_caller {
	const struct tenant *tenant;
	struct slice server;    /* valid until the next call */
	const uint8_t *subject; /* JWT_SUBJECT_BYTES, likewise */
};

/* *out is written on JWT_OK only, and its tenant is enabled. `resource`: as for jwt_read; a token that is good for it
 * alone is refused (JWT_AUDIENCE) with any other, and with none. `now_s`: seconds since 1970. `work` is lent for the call.
 * `wrongs`: the caller's connection's wrong signatures, which are counted there; NULL: not bounded by connection. */
MUST_USE enum jwt_fault jwt_checker_ask(struct jwt_checker *checker, struct slice token,
					struct slice resource, uint64_t now_s,
					struct json_work *work, struct tally *wrongs,
					struct jwt_caller *out);

/* ---- from the control thread ---- */

/* Bit i: since the last call a token came for which issuer i of the configuration in use has no key. */
uint32_t jwt_checker_take_refetches(struct jwt_checker *checker);

/* Answers by result: JWT_OK counts checked signatures, JWT_FAULTS remembered tokens. */
enum { JWT_RESULTS = JWT_FAULTS + 1, JWT_REMEMBERED = JWT_FAULTS };
uint64_t jwt_checker_count(const struct jwt_checker *checker, uint32_t result);
/* Label of a result. */
const char *jwt_result_name(uint32_t result);

#endif
