/* key_cache.h - SHA-256 of tenants' keys that were shown lately, so that a caller's next request does
 * not pay for it again.
 *
 * Of one thread. It knows what a key's digest is, and nothing of whose key it is: the registry is asked
 * each time, so a reload or a withdrawn key needs nothing done here. Keys lie here as they were sent;
 * what is put in another one's slot, or freed, is wiped. */
#ifndef GATEWAY_IDENTITY_KEY_CACHE_H
#define GATEWAY_IDENTITY_KEY_CACHE_H

#include "codec/base/sha256.h"

/* Room for most keys of 10,000 tenants that ask in turn; a slot takes memory once it is used. Longer
 * keys are not remembered. */
enum { KEY_CACHE_SLOTS = 16384, KEY_CACHE_KEY_MAX = 88 };

struct key_cache;
struct key_cache *key_cache_new(void);        /* NULL: memory */
void key_cache_free(struct key_cache *cache); /* NULL: nothing to do */

/* The digest of `key`, of at least 8 bytes; NULL when it is not remembered. Valid until the next
 * key_cache_add. Takes the same time whatever the remembered key of that length is. */
const uint8_t *key_cache_find(const struct key_cache *cache, struct slice key);

/* Remembers that `digest` is the one of `key`, of at least 8 bytes, in the slot of an older key. */
void key_cache_add(struct key_cache *cache, struct slice key, const uint8_t digest[SHA256_BYTES]);

#endif
