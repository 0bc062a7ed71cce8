#include "gateway/identity/key_cache.h"

#include "codec/base/must.h"

#include <stdlib.h>

struct key_place {
	size_t len; /* 0: free */
	uint8_t digest[SHA256_BYTES];
	char key[KEY_MEMORY_KEY_MAX];
};

struct key_memory {
	struct key_place places[KEY_MEMORY_PLACES];
};

struct key_memory *key_memory_new(void)
{
	return calloc(1, sizeof(struct key_memory)); /* untouched pages cost nothing */
}

void key_memory_free(struct key_memory *memory)
{
	if (memory == NULL)
		return;
	for (size_t i = 0; i < KEY_MEMORY_PLACES; i++)
		if (memory->places[i].len != 0)
			explicit_bzero(&memory->places[i], sizeof(memory->places[i]));
	free(memory);
}

static uint64_t eight_at(const char *at)
{
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
	return eight;
}

/* A key's last bytes are chance; its first ones are often those of all keys. */
static size_t place_of(struct slice key)
{
	const uint64_t hash = eight_at(key.at + key.len - 8) * UINT64_C(0x9e3779b97f4a7c15);

	_Static_assert(KEY_MEMORY_PLACES == 1 << 14, "the hash's upper 14 bits");
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

const uint8_t *key_memory_find(const struct key_memory *memory, struct slice key)
{
	must(key.len >= 8);
	const struct key_place *place = &memory->places[place_of(key)];

	if (place->len != key.len || !same(place->key, key.at, key.len))
		return NULL;
	return place->digest;
}

void key_memory_add(struct key_memory *memory, struct slice key, const uint8_t digest[SHA256_BYTES])
{
	must(key.len >= 8);
	struct key_place *place = &memory->places[place_of(key)];

	if (key.len > KEY_MEMORY_KEY_MAX)
		return;
	explicit_bzero(place, sizeof(*place));
	place->len = key.len;
	memcpy(place->key, key.at, key.len);
	memcpy(place->digest, digest, sizeof(place->digest));
}
