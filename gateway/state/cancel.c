#include "gateway/state/cancel.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"

#include <stdlib.h>

enum { BUCKETS = 256 /* of a shard */ };

struct shard {
	struct key_shard keys;
	struct key_link *buckets[BUCKETS];
};

struct flights {
	struct shard shards[KEY_SHARDS];
};

static struct key_shard *shard_of(struct flights *flights, const struct state_key *key)
{
	return &flights->shards[key_shard_number(key)].keys;
}

struct flights *flights_new(void)
{
	struct flights *flights = calloc(1, sizeof(*flights));

	for (size_t i = 0; flights != NULL && i < KEY_SHARDS; i++)
		key_shard_init(&flights->shards[i].keys, flights->shards[i].buckets, BUCKETS);
	return flights;
}

void flights_free(struct flights *flights)
{
	for (size_t i = 0; flights != NULL && i < KEY_SHARDS; i++)
		key_shard_fini(&flights->shards[i].keys);
	free(flights);
}

static void run_called_off(struct inbox_item *item)
{
	struct flight *flight = CONTAINER_OF(item, struct flight, item);

	flight->called_off(flight);
}

void flights_enter(struct flights *flights, struct flight *flight, struct inbox *inbox)
{
	struct key_shard *shard = shard_of(flights, &flight->key);

	must(flight->flights == NULL && flight->called_off != NULL);
	flight->flights = flights;
	flight->inbox = inbox;
	flight->item = (struct inbox_item){ .run = run_called_off };
	key_shard_lock(shard);
	key_shard_add(shard, &flight->link, &flight->key);
	key_shard_unlock(shard);
}

void flights_leave(struct flight *flight)
{
	if (flight->flights == NULL)
		return;
	struct key_shard *shard = shard_of(flight->flights, &flight->key);
	key_shard_lock(shard);
	key_shard_remove(&flight->link);
	key_shard_unlock(shard);
	flight->flights = NULL;
	inbox_take_back(flight->inbox, &flight->item); /* nobody puts it in from here on */
}

uint32_t flights_call_off(struct flights *flights, struct state_key key)
{
	struct key_shard *shard = shard_of(flights, &key);
	uint32_t count = 0;

	/* Under the lock: none of them can leave before it is in its inbox. */
	key_shard_lock(shard);
	for (struct key_link *at = key_shard_find(shard, &key); at != NULL;
	     at = key_link_next(at)) {
		struct flight *flight = CONTAINER_OF(at, struct flight, link);
		inbox_put(flight->inbox, &flight->item);
		count++;
	}
	key_shard_unlock(shard);
	return count;
}

bool flights_has(struct flights *flights, struct state_key key)
{
	struct key_shard *shard = shard_of(flights, &key);

	key_shard_lock(shard);
	const bool found = key_shard_find(shard, &key) != NULL;
	key_shard_unlock(shard);
	return found;
}

uint32_t flights_each(struct flights *flights, struct state_key key,
		      void (*look)(const struct flight *flight, void *arg), void *arg)
{
	struct key_shard *shard = shard_of(flights, &key);
	uint32_t count = 0;

	key_shard_lock(shard);
	for (struct key_link *at = key_shard_find(shard, &key); at != NULL;
	     at = key_link_next(at)) {
		if (look != NULL)
			look(CONTAINER_OF(at, struct flight, link), arg);
		count++;
	}
	key_shard_unlock(shard);
	return count;
}

uint32_t flights_count(struct flights *flights, struct state_key key)
{
	return flights_each(flights, key, NULL, NULL);
}
