#include "gateway/identity/jwt_cache.h"

#include "codec/base/must.h"

#include <stdlib.h>

bool jwt_cache_init(struct jwt_cache *cache, size_t tokens)
{
	must(tokens >= JWT_CACHE_WAYS && (tokens & (tokens - 1)) == 0);
	*cache = (struct jwt_cache){ .sets = tokens / JWT_CACHE_WAYS, .generation = 1 };
	cache->slots = calloc(tokens, sizeof(*cache->slots));
	return cache->slots != NULL;
}

void jwt_cache_fini(struct jwt_cache *cache)
{
	free(cache->slots);
	*cache = (struct jwt_cache){ 0 };
}

void jwt_cache_renew(struct jwt_cache *cache)
{
	cache->generation++;
}

static struct jwt_known *set_of(const struct jwt_cache *cache, const uint8_t digest[SHA256_BYTES])
{
	size_t hash;

	/* Who makes tokens meet in a set can only make himself be forgotten. */
	(void)memcpy(&hash, digest, sizeof(hash));
	return cache->slots + (hash & (cache->sets - 1)) * JWT_CACHE_WAYS;
}

static bool holds(const struct jwt_cache *cache, const struct jwt_known *known, uint64_t now_s)
{
	return known->generation == cache->generation && now_s < known->good_until_s;
}

const struct jwt_known *jwt_cache_find(struct jwt_cache *cache, const uint8_t digest[SHA256_BYTES],
				       uint64_t now_s)
{
	struct jwt_known *set = set_of(cache, digest);

	for (size_t i = 0; i < JWT_CACHE_WAYS; i++)
		if (holds(cache, &set[i], now_s) &&
		    memcmp(set[i].digest, digest, SHA256_BYTES) == 0) {
			set[i].seen = ++cache->clock;
			return &set[i];
		}
	return NULL;
}

/* One that holds nothing any more, or who was not seen for longest. */
static struct jwt_known *victim(const struct jwt_cache *cache, struct jwt_known *set,
				uint64_t now_s)
{
	struct jwt_known *oldest = &set[0];

	for (size_t i = 0; i < JWT_CACHE_WAYS; i++) {
		if (!holds(cache, &set[i], now_s))
			return &set[i];
		if (set[i].seen < oldest->seen)
			oldest = &set[i];
	}
	return oldest;
}

static struct jwt_known *take_slot(struct jwt_cache *cache, const uint8_t digest[SHA256_BYTES],
				   uint64_t good_until_s, uint64_t now_s)
{
	struct jwt_known *slot = victim(cache, set_of(cache, digest), now_s);

	(void)memcpy(slot->digest, digest, SHA256_BYTES);
	slot->generation = cache->generation;
	slot->seen = ++cache->clock;
	slot->good_until_s = good_until_s;
	slot->tenant = NULL;
	slot->fault = JWT_OK;
	slot->server_len = 0;
	return slot;
}

const struct jwt_known *jwt_cache_add(struct jwt_cache *cache, const uint8_t digest[SHA256_BYTES],
				      const struct tenant *tenant, const struct jwt_token *token,
				      uint64_t now_s)
{
	struct jwt_known *slot = take_slot(cache, digest, token->good_until_s, now_s);
	const struct slice server = token->server;

	must(server.len <= JWT_SERVER_MAX);
	slot->tenant = tenant;
	slot->server_len = (uint8_t)server.len;
	if (server.len != 0)
		(void)memcpy(slot->server, server.at, server.len);
	(void)memcpy(slot->subject, token->subject, sizeof(slot->subject));
	return slot;
}

void jwt_cache_refuse(struct jwt_cache *cache, const uint8_t digest[SHA256_BYTES],
		      enum jwt_fault fault, uint64_t good_until_s, uint64_t now_s)
{
	must(fault != JWT_OK);
	take_slot(cache, digest, good_until_s, now_s)->fault = fault;
}
