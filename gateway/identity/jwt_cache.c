#include "gateway/identity/jwt_cache.h"

#include "codec/base/must.h"

#include <stdlib.h>

bool jwt_memory_init(struct jwt_memory *memory, size_t tokens)
{
	must(tokens >= JWT_MEMORY_WAYS && (tokens & (tokens - 1)) == 0);
	*memory = (struct jwt_memory){ .sets = tokens / JWT_MEMORY_WAYS, .generation = 1 };
	memory->places = calloc(tokens, sizeof(*memory->places));
	return memory->places != NULL;
}

void jwt_memory_fini(struct jwt_memory *memory)
{
	free(memory->places);
	*memory = (struct jwt_memory){ 0 };
}

void jwt_memory_renew(struct jwt_memory *memory)
{
	memory->generation++;
}

static struct jwt_known *set_of(const struct jwt_memory *memory, const uint8_t digest[SHA256_BYTES])
{
	size_t hash;

	/* Who makes tokens meet in a set can only make himself be forgotten. */
	(void)memcpy(&hash, digest, sizeof(hash));
	return memory->places + (hash & (memory->sets - 1)) * JWT_MEMORY_WAYS;
}

static bool holds(const struct jwt_memory *memory, const struct jwt_known *known, uint64_t now_s)
{
	return known->generation == memory->generation && now_s < known->good_until_s;
}

const struct jwt_known *jwt_memory_find(struct jwt_memory *memory,
					const uint8_t digest[SHA256_BYTES], uint64_t now_s)
{
	struct jwt_known *set = set_of(memory, digest);

	for (size_t i = 0; i < JWT_MEMORY_WAYS; i++)
		if (holds(memory, &set[i], now_s) &&
		    memcmp(set[i].digest, digest, SHA256_BYTES) == 0) {
			set[i].seen = ++memory->clock;
			return &set[i];
		}
	return NULL;
}

/* One that holds nothing any more, or who was not seen for longest. */
static struct jwt_known *victim(const struct jwt_memory *memory, struct jwt_known *set,
				uint64_t now_s)
{
	struct jwt_known *oldest = &set[0];

	for (size_t i = 0; i < JWT_MEMORY_WAYS; i++) {
		if (!holds(memory, &set[i], now_s))
			return &set[i];
		if (set[i].seen < oldest->seen)
			oldest = &set[i];
	}
	return oldest;
}

static struct jwt_known *take_place(struct jwt_memory *memory, const uint8_t digest[SHA256_BYTES],
				    uint64_t good_until_s, uint64_t now_s)
{
	struct jwt_known *place = victim(memory, set_of(memory, digest), now_s);

	(void)memcpy(place->digest, digest, SHA256_BYTES);
	place->generation = memory->generation;
	place->seen = ++memory->clock;
	place->good_until_s = good_until_s;
	place->tenant = NULL;
	place->fault = JWT_OK;
	place->server_len = 0;
	return place;
}

const struct jwt_known *jwt_memory_add(struct jwt_memory *memory,
				       const uint8_t digest[SHA256_BYTES],
				       const struct tenant *tenant, const struct jwt_token *token,
				       uint64_t now_s)
{
	struct jwt_known *place = take_place(memory, digest, token->good_until_s, now_s);
	const struct slice server = token->server;

	must(server.len <= JWT_SERVER_MAX);
	place->tenant = tenant;
	place->server_len = (uint8_t)server.len;
	if (server.len != 0)
		(void)memcpy(place->server, server.at, server.len);
	(void)memcpy(place->subject, token->subject, sizeof(place->subject));
	return place;
}

void jwt_memory_refuse(struct jwt_memory *memory, const uint8_t digest[SHA256_BYTES],
		       enum jwt_fault fault, uint64_t good_until_s, uint64_t now_s)
{
	must(fault != JWT_OK);
	take_place(memory, digest, good_until_s, now_s)->fault = fault;
}
