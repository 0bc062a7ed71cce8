/* jwt_keys.h - an issuer's public keys as OpenSSL has them, and the check of signatures.
 *
 * A set is immutable and shared: the control thread makes it, every worker holds on to it until the next
 * one comes. A key has one algorithm, which follows from its kind; a token is checked under that one
 * only, so that no key can be used for another purpose than its own (RFC 8725 3.1). */
#ifndef GATEWAY_IDENTITY_JWT_KEYS_H
#define GATEWAY_IDENTITY_JWT_KEYS_H

#include "codec/base/sha256.h"
#include "tenants/jwt.h"

#include <stdio.h>

enum {
	JWT_KEYS_MAX = 64, /* of one issuer, those that can be used */
	JWT_RSA_BITS_MIN = 2048,
};

struct jwt_keys;

/* Makes a set of a JWKS. NULL with a message in `problem` (at most `room` bytes) when the text is none,
 * or has too many keys; it may have none that can be used. What is passed over is told to `skipped`,
 * one line each, which may be NULL. `work` is lent for the call. */
struct jwt_keys *jwt_keys_new(struct slice text, struct json_work *work, FILE *skipped,
			      char *problem, size_t room);

/* One more owner; accepts and returns NULL. */
struct jwt_keys *jwt_keys_share(struct jwt_keys *keys);

/* Lets go of it, on any thread. Accepts a pointer to NULL and leaves one. */
void jwt_keys_free(struct jwt_keys **keys);

uint32_t jwt_keys_count(const struct jwt_keys *keys);

/* Whether both were made of the same text. */
bool jwt_keys_same(const struct jwt_keys *a, const struct jwt_keys *b);

/* JWT_OK, JWT_KEY_UNKNOWN, JWT_KEY_MISFIT or JWT_SIGNATURE. A token without a kid is checked under the
 * only key that its algorithm has in the set; where there are several it is JWT_KEY_UNKNOWN. */
MUST_USE enum jwt_fault jwt_keys_check(const struct jwt_keys *keys, const struct jwt_token *token);

#endif
