/* state_memory_blocks.c - private blocks: texts in chunks, of which those not used for longest go first. */
#include "gateway/state_memory_parts.h"

#include "codec/base/must.h"

/* After blocks of it came, went or were used. */
static void unlock_blocks(struct shard *shard)
{
	const struct state_item *oldest = state_table_oldest(&shard->tables[STATE_OF_BLOCKS]);

	atomic_store_explicit(&shard->first_due, oldest == NULL ? NSEC_NEVER : oldest->due,
			      memory_order_relaxed);
	shard_unlock(shard);
}

/* Absent when they are not there, or are more than *room, or there is no memory. */
static struct slice copy_blocks(struct state_memory *memory, const struct state_key *key,
				struct state_recall *recall, size_t *room)
{
	struct slice text = { NULL, 0 };
	struct shard *shard = shard_lock(memory, key, STATE_OF_BLOCKS, recall->now);
	struct blocks_item *item = shard_find(memory, shard, STATE_OF_BLOCKS, key, recall->now);

	if (item != NULL) {
		char *copy = item->len > *room ? NULL : arena_take(recall->arena, item->len);
		if (copy != NULL) {
			state_chunks_copy(memory->chunks, item->text, copy, item->len);
			text = slice_of(copy, item->len);
			*room -= item->len;
		}
		state_table_touch(&shard->tables[STATE_OF_BLOCKS], item,
				  recall->now + memory->bounds.blocks_ttl);
	}
	unlock_blocks(shard);
	return text;
}

void state_memory_recall_blocks(struct state_memory *memory, struct state_recall *recall)
{
	const uint32_t count = state_least(recall->block_count, STATE_BLOCKS_MAX);
	size_t room = STATE_FOUND_MAX;

	recall->found = NULL;
	if (recall->block_count == 0)
		return;
	recall->found = arena_zero(recall->arena, recall->block_count * sizeof(recall->found[0]));
	for (uint32_t i = 0; recall->found != NULL && i < count; i++)
		recall->found[i] = copy_blocks(memory, &recall->blocks[i], recall, &room);
}

/* The shard whose blocks have not been used for longest; NULL: there are none. */
static struct shard *oldest_shard(struct state_memory *memory)
{
	struct shard *oldest = NULL;
	nsec_t first_due = NSEC_NEVER;

	for (size_t i = 0; i < SHARDS; i++) {
		const nsec_t due =
			atomic_load_explicit(&memory->shards[i].first_due, memory_order_relaxed);
		if (due < first_due) {
			first_due = due;
			oldest = &memory->shards[i];
		}
	}
	return oldest;
}

static void evict_blocks(struct state_memory *memory, struct shard *shard, nsec_t now)
{
	must(pthread_mutex_lock(&shard->lock) == 0);
	struct state_item *item = state_table_oldest(&shard->tables[STATE_OF_BLOCKS]);
	if (item != NULL) { /* else another thread was here first */
		shard->evicted[STATE_OF_BLOCKS] += item->due > now;
		shard_drop(memory, shard, STATE_OF_BLOCKS, item);
	}
	unlock_blocks(shard);
}

/* A copy of the text in chunks, at the expense of the oldest blocks; 0: it cannot be. */
static uint32_t keep_text(struct state_memory *memory, struct slice text, nsec_t now)
{
	uint32_t name = 0;

	if (text.len > memory->bounds.blocks_each || text.len > state_chunks_room(memory->chunks))
		return 0;
	while ((name = state_chunks_keep(memory->chunks, text)) == 0) {
		struct shard *oldest = oldest_shard(memory);
		if (oldest == NULL)
			return 0;
		evict_blocks(memory, oldest, now);
	}
	return name;
}

bool state_memory_note_blocks(struct state_memory *memory, const struct state_note *note)
{
	if (slice_absent(note->blocks) || note->call_count == 0)
		return false;
	const uint32_t text = keep_text(memory, note->blocks, note->now);
	if (text == 0)
		return false;
	const struct state_key *key = &note->calls[0];
	struct shard *shard = shard_lock(memory, key, STATE_OF_BLOCKS, note->now);
	struct blocks_item *before = shard_find(memory, shard, STATE_OF_BLOCKS, key, note->now);
	if (before != NULL)
		shard_drop(memory, shard, STATE_OF_BLOCKS, before);
	struct blocks_item *item = shard_add(memory, shard, STATE_OF_BLOCKS, key,
					     note->now + memory->bounds.blocks_ttl);
	item->text = text;
	item->len = (uint32_t)note->blocks.len;
	unlock_blocks(shard);
	return true;
}

/* They have no time of their own here: expired or not, they go. */
void state_memory_drop_blocks(struct state_memory *memory, const struct state_key *blocks,
			      uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct shard *shard = shard_lock(memory, &blocks[i], STATE_OF_BLOCKS, 0);
		void *item = state_table_find(&shard->tables[STATE_OF_BLOCKS], &blocks[i]);
		if (item != NULL)
			shard_drop(memory, shard, STATE_OF_BLOCKS, item);
		unlock_blocks(shard);
	}
}
