#include "gateway/identity/key_cache.h"

#include "codec/base/must.h"

#include <stdlib.h>

struct key_slot {
	size_t len; /* 0: free */
	uint8_t digest[SHA256_BYTES];
	char key[KEY_CACHE_KEY_MAX];
};

struct key_cache {
	struct key_slot slots[KEY_CACHE_SLOTS];
};

struct key_cache *key_cache_new(void)
{
	return calloc(1, sizeof(struct key_cache)); /* untouched pages cost nothing */
}

void key_cache_free(struct key_cache *cache)
{
	if (cache == NULL)
		return;
	for (size_t i = 0; i < KEY_CACHE_SLOTS; i++)
		if (cache->slots[i].len != 0)
			explicit_bzero(&cache->slots[i], sizeof(cache->slots[i]));
	free(cache);
}

static uint64_t eight_at(const char *at)
{
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
	return eight;
}

/* A key's last bytes are chance; its first ones are often those of all keys. */
static size_t slot_of(struct slice key)
{
	const uint64_t hash = eight_at(key.at + key.len - 8) * UINT64_C(0x9e3779b97f4a7c15);

	_Static_assert(KEY_CACHE_SLOTS == 1 << 14, "the hash's upper 14 bits");
	return (size_t)(hash >> (64 - 14));
}

/* No branch depends on the bytes. The last eight may be looked at twice in part. */
static bool same(const char *a, const char *b, size_t len)
{
	uint64_t difference = eight_at(a + len - 8) ^ eight_at(b + len - 8);

	for (size_t i = 0; i + 8 < len; i += 8)
		difference |= eight_at(a + i) ^ eight_at(b + i);
	return difference == 0;
}

const uint8_t *key_cache_find(const struct key_cache *cache, struct slice key)
{
	must(key.len >= 8);
	const struct key_slot *slot = &cache->slots[slot_of(key)];

	if (slot->len != key.len || !same(slot->key, key.at, key.len))
		return NULL;
	return slot->digest;
}

void key_cache_add(struct key_cache *cache, struct slice key, const uint8_t digest[SHA256_BYTES])
{
	must(key.len >= 8);
	struct key_slot *slot = &cache->slots[slot_of(key)];

	if (key.len > KEY_CACHE_KEY_MAX)
		return;
	explicit_bzero(slot, sizeof(*slot));
	slot->len = key.len;
	memcpy(slot->key, key.at, key.len);
	memcpy(slot->digest, digest, sizeof(slot->digest));
}
