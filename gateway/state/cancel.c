#include "gateway/state/cancel.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"

#include <stdlib.h>

enum { SHARDS = 64, BUCKETS = 256 /* of each: chains stay short up to some 16,384 requests */ };

struct shard {
	pthread_mutex_t lock;
	struct flight *buckets[BUCKETS];
};

struct flights {
	struct shard shards[SHARDS];
};

/* Keys are digests: any of their bytes will do. */
static struct shard *shard_of(struct flights *flights, const struct state_key *key)
{
	return &flights->shards[key->at[0] % SHARDS];
}

static struct flight **bucket_of(struct shard *shard, const struct state_key *key)
{
	_Static_assert(BUCKETS == UINT8_MAX + 1, "a byte chooses one");
	return &shard->buckets[key->at[1]];
}

static void lock(struct shard *shard)
{
	must(pthread_mutex_lock(&shard->lock) == 0);
}

static void unlock(struct shard *shard)
{
	must(pthread_mutex_unlock(&shard->lock) == 0);
}

struct flights *flights_new(void)
{
	struct flights *flights = calloc(1, sizeof(*flights));

	for (size_t i = 0; flights != NULL && i < SHARDS; i++)
		must(pthread_mutex_init(&flights->shards[i].lock, NULL) == 0);
	return flights;
}

void flights_free(struct flights *flights)
{
	if (flights == NULL)
		return;
	for (size_t i = 0; i < SHARDS; i++) {
		for (size_t b = 0; b < BUCKETS; b++)
			must(flights->shards[i].buckets[b] == NULL);
		must(pthread_mutex_destroy(&flights->shards[i].lock) == 0);
	}
	free(flights);
}

static void run_called_off(struct inbox_item *item)
{
	struct flight *flight = CONTAINER_OF(item, struct flight, item);

	flight->called_off(flight);
}

void flights_enter(struct flights *flights, struct flight *flight, struct inbox *inbox)
{
	struct shard *shard = shard_of(flights, &flight->key);
	struct flight **bucket = bucket_of(shard, &flight->key);

	must(flight->flights == NULL && flight->called_off != NULL);
	flight->flights = flights;
	flight->inbox = inbox;
	flight->item = (struct inbox_item){ .run = run_called_off };
	lock(shard);
	flight->next = *bucket;
	flight->place = bucket;
	if (flight->next != NULL)
		flight->next->place = &flight->next;
	*bucket = flight;
	unlock(shard);
}

void flights_leave(struct flight *flight)
{
	if (flight->flights == NULL)
		return;
	struct shard *shard = shard_of(flight->flights, &flight->key);
	lock(shard);
	*flight->place = flight->next;
	if (flight->next != NULL)
		flight->next->place = flight->place;
	unlock(shard);
	flight->flights = NULL;
	inbox_take_back(flight->inbox, &flight->item); /* nobody puts it in from here on */
}

uint32_t flights_call_off(struct flights *flights, struct state_key key)
{
	struct shard *shard = shard_of(flights, &key);
	uint32_t count = 0;

	/* Under the lock: none of them can leave before it is in its inbox. */
	lock(shard);
	for (struct flight *at = *bucket_of(shard, &key); at != NULL; at = at->next) {
		if (memcmp(&at->key, &key, sizeof(key)) != 0)
			continue;
		inbox_put(at->inbox, &at->item);
		count++;
	}
	unlock(shard);
	return count;
}
