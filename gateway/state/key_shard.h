/* key_shard.h - records of all threads, found by their keys: a part of them with a mutex of its own.
 *
 * Keys are digests, so that any of their bytes choose as well as others: the first one the shard, the next two the
 * bucket. Records are their owner's, and hold the link by which they are found. */
#ifndef GATEWAY_STATE_KEY_SHARD_H
#define GATEWAY_STATE_KEY_SHARD_H

#include "codec/base/must.h"
#include "gateway/state/state.h"

#include <pthread.h>

enum { KEY_SHARDS = 64 };

/* Of a record, under the lock. */
struct key_link {
	const struct state_key *key; /* the record's */
	struct key_link *next, **before;
};

struct key_shard {
	pthread_mutex_t lock;
	struct key_link **buckets;
	uint32_t mask;
};

static inline size_t key_shard_number(const struct state_key *key)
{
	return key->at[0] % KEY_SHARDS;
}

/* `buckets` is `count` pointers of the owner's, all NULL: a power of two, at most 65,536. Chains stay short up to some
 * four records for each. */
void key_shard_init(struct key_shard *shard, struct key_link **buckets, uint32_t count);
/* There are no records any more. */
void key_shard_fini(struct key_shard *shard);

static inline void key_shard_lock(struct key_shard *shard)
{
	must(pthread_mutex_lock(&shard->lock) == 0);
}

static inline void key_shard_unlock(struct key_shard *shard)
{
	must(pthread_mutex_unlock(&shard->lock) == 0);
}

/* Under the lock. The first that has the key, NULL: none; and the next one behind it that has the same. */
struct key_link *key_shard_find(const struct key_shard *shard, const struct state_key *key);
struct key_link *key_link_next(const struct key_link *link);
/* `key` is the record's, and lives as long. */
void key_shard_add(struct key_shard *shard, struct key_link *link, const struct state_key *key);
void key_shard_remove(struct key_link *link);

#endif
