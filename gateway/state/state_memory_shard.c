/* state_memory_shard.c - records of a shard: found, made, and thrown away. */
#include "gateway/state/state_memory_parts.h"

#include "codec/base/must.h"

enum { THROWN_AT_ONCE = 4 }; /* that have expired: each use of a shard adds one at most */

void shard_drop(struct state_memory *memory, struct shard *shard, enum state_record kind,
		void *item)
{
	if (kind == STATE_OF_BLOCKS)
		state_memory_free_blocks(memory, item);
	state_table_remove(&shard->tables[kind], item);
}

static void throw_away_expired(struct state_memory *memory, struct shard *shard,
			       enum state_record kind, nsec_t now)
{
	for (uint32_t left = THROWN_AT_ONCE; left > 0; left--) {
		struct state_item *item = state_table_oldest(&shard->tables[kind]);
		if (item == NULL || item->due > now)
			return;
		shard_drop(memory, shard, kind, item);
	}
}

void *shard_find(struct state_memory *memory, struct shard *shard, enum state_record kind,
		 const struct state_key *key, nsec_t now)
{
	struct state_item *item = state_table_find(&shard->tables[kind], key);

	if (item == NULL || item->due > now)
		return item;
	shard_drop(memory, shard, kind, item);
	return NULL;
}

void *shard_add(struct state_memory *memory, struct shard *shard, enum state_record kind,
		const struct record_new *what)
{
	struct state_table *table = &shard->tables[kind];

	if (state_table_full(table)) {
		shard_drop(memory, shard, kind, state_table_victim(table, what->tenant));
		shard->evicted[kind]++;
	}
	return state_table_add(table, what->key, what->tenant, what->due);
}

void *shard_find_or_add(struct state_memory *memory, struct shard *shard, enum state_record kind,
			const struct record_new *what, nsec_t now)
{
	struct state_item *item = shard_find(memory, shard, kind, what->key, now);

	if (item == NULL)
		return shard_add(memory, shard, kind, what);
	state_table_touch(&shard->tables[kind], item, what->due);
	return item;
}

struct shard *shard_lock(struct state_memory *memory, const struct state_key *key,
			 enum state_record kind, nsec_t now)
{
	struct shard *shard = &memory->shards[key_shard_number(key)];

	must(pthread_mutex_lock(&shard->lock) == 0);
	throw_away_expired(memory, shard, kind, now);
	return shard;
}

void shard_unlock(struct shard *shard)
{
	must(pthread_mutex_unlock(&shard->lock) == 0);
}
