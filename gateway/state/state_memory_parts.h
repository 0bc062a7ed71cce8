/* state_memory_parts.h - what the files of the memory store share: private to state_memory*.c. */
#ifndef GATEWAY_STATE_STATE_MEMORY_PARTS_H
#define GATEWAY_STATE_STATE_MEMORY_PARTS_H

#include "gateway/state/key_shard.h"
#include "gateway/state/state_chunks.h"
#include "gateway/state/state_memory.h"
#include "gateway/state/state_table.h"

#include <pthread.h>
#include <stdatomic.h>

enum { MEMORY_MAGIC = 0x53544d45 };

struct session_item {
	struct state_item head;
	struct state_used used;
	uint32_t revision;
	enum state_here here;
};

struct call_item {
	struct state_item head;
	struct state_key loop;
	uint32_t rounds;
};

struct loop_item {
	struct state_item head;
	uint64_t tokens, usd;
	struct state_target target;
};

struct blocks_item {
	struct state_item head;
	uint32_t text; /* of the chunks */
	uint32_t len;
	uint32_t holder; /* of these, as state_memory.blocks knows the tenant */
};

struct shard {
	_Alignas(64) pthread_mutex_t lock;
	struct state_table tables[STATE_RECORDS];
	uint64_t evicted[STATE_RECORDS];
	_Atomic nsec_t first_due; /* of its oldest blocks; NSEC_NEVER: there are none */
};

struct state_memory {
	struct state state;
	uint32_t magic;
	struct state_bounds bounds;
	struct state_chunks *chunks;
	/* Chunks that hold blocks, by tenant; the lock is taken last. */
	pthread_mutex_t blocks_lock;
	struct fair_share blocks;
	void *mapped; /* of all tables */
	size_t mapped_bytes;
	struct shard shards[KEY_SHARDS];
};

static inline uint32_t state_least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* ---- state_memory_shard.c: records of a shard, whose lock is held ---- */

/* The shard of that key, locked; what has expired of that kind is thrown away, a few at a time. No more than
 * one may be locked at a time. */
struct shard *shard_lock(struct state_memory *memory, const struct state_key *key,
			 enum state_record kind, nsec_t now);
void shard_unlock(struct shard *shard);

/* NULL when it is not there, or not any more. */
void *shard_find(struct state_memory *memory, struct shard *shard, enum state_record kind,
		 const struct state_key *key, nsec_t now);

/* Whose a record is, if it is made, and when it is due. */
struct record_new {
	const struct state_key *key, *tenant;
	nsec_t due;
};

/* A new one, all zero; where there is no room the oldest goes of the tenant that has most. Its key must not be
 * there. */
void *shard_add(struct state_memory *memory, struct shard *shard, enum state_record kind,
		const struct record_new *what);

/* The record, the newest from now on; made when it is not there. */
void *shard_find_or_add(struct state_memory *memory, struct shard *shard, enum state_record kind,
			const struct record_new *what, nsec_t now);

void shard_drop(struct state_memory *memory, struct shard *shard, enum state_record kind,
		void *item);

/* ---- state_memory_blocks.c: the parts of load, save and drop_blocks that are about blocks ---- */
void state_memory_load_blocks(struct state_memory *memory, struct state_load *load);
/* False: not kept. */
bool state_memory_save_blocks(struct state_memory *memory, const struct state_save *save);
void state_memory_drop_blocks(struct state_memory *memory, const struct state_key *blocks,
			      uint32_t count);
/* A record of blocks is about to go: its chunks are free. */
void state_memory_free_blocks(struct state_memory *memory, const struct blocks_item *item);

#endif
