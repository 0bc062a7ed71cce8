/* state_memory_blocks.c - private blocks: texts in chunks. For want of room those of the tenant go that has most
 * chunks, in whatever shard; of these first what was not used for longest. */
#include "gateway/state/state_memory_parts.h"

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
				struct state_load *load, size_t *room)
{
	struct slice text = { NULL, 0 };
	struct shard *shard = shard_lock(memory, key, STATE_OF_BLOCKS, load->now);
	struct blocks_item *item = shard_find(memory, shard, STATE_OF_BLOCKS, key, load->now);

	if (item != NULL) {
		load->cut |= load->early && item->len > *room;
		char *copy = item->len > *room ? NULL : arena_take(load->arena, item->len);
		if (copy != NULL) {
			state_chunks_copy(memory->chunks, item->text, copy, item->len);
			text = slice_of(copy, item->len);
			*room -= item->len;
		}
		state_table_touch(&shard->tables[STATE_OF_BLOCKS], item,
				  load->now + memory->bounds.blocks_ttl);
	}
	unlock_blocks(shard);
	return text;
}

void state_memory_load_blocks(struct state_memory *memory, struct state_load *load)
{
	const uint32_t count = state_least(load->block_count, STATE_BLOCKS_MAX);
	size_t room = state_found_max(load);

	load->found = NULL;
	load->cut = false;
	if (load->block_count == 0)
		return;
	load->found = arena_zero(load->arena, load->block_count * sizeof(load->found[0]));
	for (uint32_t i = 0; load->found != NULL && i < count && !load->cut; i++)
		load->found[i] = copy_blocks(memory, &load->blocks[i], load, &room);
	if (load->cut)
		load->found = NULL;
}

/* The shard whose blocks have not been used for longest; NULL: there are none. */
static struct shard *oldest_shard(struct state_memory *memory)
{
	struct shard *oldest = NULL;
	nsec_t first_due = NSEC_NEVER;

	for (size_t i = 0; i < KEY_SHARDS; i++) {
		const nsec_t due =
			atomic_load_explicit(&memory->shards[i].first_due, memory_order_relaxed);
		if (due < first_due) {
			first_due = due;
			oldest = &memory->shards[i];
		}
	}
	return oldest;
}

/* What has expired goes before anybody's, else the oldest of that tenant; of any, where it is NULL. */
static struct state_item *oldest_of(struct shard *shard, const struct state_key *tenant, nsec_t now)
{
	struct state_table *table = &shard->tables[STATE_OF_BLOCKS];
	struct state_item *oldest = state_table_oldest(table);

	if (tenant == NULL || (oldest != NULL && oldest->due <= now))
		return oldest;
	return state_table_oldest_of(table, tenant);
}

/* The shard with the oldest blocks of that tenant; NULL: they have gone meanwhile. */
static struct shard *shard_with_oldest_of(struct state_memory *memory,
					  const struct state_key *tenant, nsec_t now)
{
	struct shard *found = NULL;
	nsec_t first_due = NSEC_NEVER;

	for (size_t i = 0; i < KEY_SHARDS; i++) {
		struct shard *shard = &memory->shards[i];
		must(pthread_mutex_lock(&shard->lock) == 0);
		const struct state_item *item = oldest_of(shard, tenant, now);
		if (item != NULL && item->due < first_due) {
			first_due = item->due;
			found = shard;
		}
		shard_unlock(shard);
	}
	return found;
}

static void evict_blocks(struct state_memory *memory, struct shard *shard, struct state_item *item,
			 nsec_t now)
{
	shard->evicted[STATE_OF_BLOCKS] += item->due > now;
	shard_drop(memory, shard, STATE_OF_BLOCKS, item);
}

/* Those that are the oldest of all, if they are that tenant's or have expired. */
static bool evict_oldest(struct state_memory *memory, const struct state_key *tenant, nsec_t now)
{
	struct shard *shard = oldest_shard(memory);

	if (shard == NULL)
		return false;
	must(pthread_mutex_lock(&shard->lock) == 0);
	struct state_item *oldest = state_table_oldest(&shard->tables[STATE_OF_BLOCKS]);
	const bool goes = oldest != NULL && oldest == oldest_of(shard, tenant, now);
	if (goes)
		evict_blocks(memory, shard, oldest, now);
	unlock_blocks(shard);
	return goes;
}

static bool evict_oldest_of(struct state_memory *memory, const struct state_key *tenant, nsec_t now)
{
	struct shard *shard = shard_with_oldest_of(memory, tenant, now);

	if (shard == NULL)
		return false;
	must(pthread_mutex_lock(&shard->lock) == 0);
	struct state_item *item = oldest_of(shard, tenant, now);
	if (item != NULL) /* else another thread was here first */
		evict_blocks(memory, shard, item, now);
	unlock_blocks(shard);
	return true;
}

/* ---- whose chunks they are ---- */

static uint64_t chunks_of(size_t len)
{
	return len == 0 ? 1 : (len + STATE_CHUNK_BYTES - 1) / STATE_CHUNK_BYTES;
}

static uint32_t hold_chunks(struct state_memory *memory, const struct state_key *tenant, size_t len)
{
	must(pthread_mutex_lock(&memory->blocks_lock) == 0);
	const uint32_t holder = fair_share_add(&memory->blocks, tenant->at, chunks_of(len));
	must(pthread_mutex_unlock(&memory->blocks_lock) == 0);
	return holder;
}

void state_memory_free_blocks(struct state_memory *memory, const struct blocks_item *item)
{
	state_chunks_give(memory->chunks, item->text);
	must(pthread_mutex_lock(&memory->blocks_lock) == 0);
	fair_share_sub(&memory->blocks, item->holder, chunks_of(item->len));
	must(pthread_mutex_unlock(&memory->blocks_lock) == 0);
}

/* Whose blocks make room for `len` bytes of that tenant's. False: nobody has any. */
static bool find_victim(struct state_memory *memory, const struct state_key *tenant, size_t len,
			struct state_key *victim)
{
	must(pthread_mutex_lock(&memory->blocks_lock) == 0);
	const uint32_t holder = fair_share_victim(&memory->blocks, tenant->at, chunks_of(len));
	if (holder != 0)
		(void)memcpy(victim->at, fair_share_key(&memory->blocks, holder),
			     sizeof(victim->at));
	must(pthread_mutex_unlock(&memory->blocks_lock) == 0);
	return holder != 0;
}

/* A copy of the text in chunks, at the expense of the tenant that has most; 0: it cannot be. */
static uint32_t keep_text(struct state_memory *memory, const struct state_save *save)
{
	const struct slice text = save->blocks;
	struct state_key victim;
	uint32_t name = 0;

	if (text.len > memory->bounds.blocks_each || text.len > state_chunks_room(memory->chunks))
		return 0;
	while ((name = state_chunks_keep(memory->chunks, text)) == 0) {
		if (!find_victim(memory, &save->tenant, text.len, &victim))
			return 0;
		/* A victim without blocks has lent its account (fair_share.h). */
		if (!evict_oldest(memory, &victim, save->now) &&
		    !evict_oldest_of(memory, &victim, save->now) &&
		    !evict_oldest(memory, NULL, save->now))
			return 0;
	}
	return name;
}

bool state_memory_save_blocks(struct state_memory *memory, const struct state_save *save)
{
	if (slice_absent(save->blocks) || save->call_count == 0)
		return false;
	const uint32_t text = keep_text(memory, save);
	if (text == 0)
		return false;
	const uint32_t holder = hold_chunks(memory, &save->tenant, save->blocks.len);
	const struct state_key *key = &save->calls[0];
	struct shard *shard = shard_lock(memory, key, STATE_OF_BLOCKS, save->now);
	struct blocks_item *before = shard_find(memory, shard, STATE_OF_BLOCKS, key, save->now);
	if (before != NULL)
		shard_drop(memory, shard, STATE_OF_BLOCKS, before);
	const struct record_new what = { key, &save->tenant,
					 save->now + memory->bounds.blocks_ttl };
	struct blocks_item *item = shard_add(memory, shard, STATE_OF_BLOCKS, &what);
	item->holder = holder;
	item->text = text;
	item->len = (uint32_t)save->blocks.len;
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
