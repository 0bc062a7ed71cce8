/* auth.h - bearer key to tenant, by SHA-256 and in constant time (DESIGN 4.2, keys).
 *
 * The digest picks the bucket, the whole digest is compared without an early exit, and a miss costs
 * what a hit costs. Look-up cost does not grow with the number of tenants. */
#ifndef TENANTS_AUTH_H
#define TENANTS_AUTH_H

#include "tenants/tenant.h"

enum { AUTH_KEY_MIN = 16, AUTH_KEY_MAX = 256 };

/* The value of an Authorization header to the bytes after "Bearer " (the scheme's case is ignored);
 * absent when it is another scheme, or not visible ASCII: a key or a token, of any length. */
struct slice auth_credentials(struct slice header);

/* Whether such credentials can be a key: 16-256 bytes. */
static inline bool auth_may_be_key(struct slice credentials)
{
	return credentials.len >= AUTH_KEY_MIN && credentials.len <= AUTH_KEY_MAX;
}

/* NULL when unknown; a disabled tenant's key is returned, policy refuses it. */
const struct tenant_key *auth_find(const struct tenants *registry, struct slice key);

/* The same for whoever has the key's SHA-256 already. */
const struct tenant_key *auth_find_digest(const struct tenants *registry,
					  const uint8_t digest[SHA256_BYTES]);

#endif
