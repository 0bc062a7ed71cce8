#include "gateway/state/state_memory.h"

#include "codec/base/must.h"
#include "gateway/state/state_memory_parts.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
	BLOCKS_MIN = 64, /* of a shard, for small settings */
	BLOCKS_TENANTS = 16384,
};

static struct state_memory *memory_of(struct state *state)
{
	struct state_memory *memory = CONTAINER_OF(state, struct state_memory, state);

	must_obj(memory, MEMORY_MAGIC);
	return memory;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* ---- sessions ---- */

/* NULL when it is unknown, or known to have ended. */
static struct session_item *find_session(struct state_memory *memory, struct shard *shard,
					 const struct state_key *key, nsec_t now)
{
	struct session_item *item = shard_find(memory, shard, STATE_OF_SESSION, key, now);

	return item == NULL || item->here == STATE_HERE_ENDED ? NULL : item;
}

static void load_session(struct state_memory *memory, struct state_load *load)
{
	load->session_is = STATE_SESSION_UNKNOWN;
	load->revision = 0;
	load->used = (struct state_used){ 0 };
	if (state_key_none(&load->session))
		return;
	struct shard *shard = shard_lock(memory, &load->session, STATE_OF_SESSION, load->now);
	struct session_item *item = find_session(memory, shard, &load->session, load->now);
	if (item != NULL) {
		state_table_touch(&shard->tables[STATE_OF_SESSION], item,
				  load->now + STATE_SESSION_TTL);
		load->session_is = STATE_SESSION_KNOWN;
		load->revision = item->revision;
		load->used = item->used;
	}
	shard_unlock(shard);
}

static void count_session(struct session_item *item, const struct state_save *save)
{
	item->used.requests = plus(item->used.requests, save->requests);
	item->used.tokens = plus(item->used.tokens, save->tokens);
	item->used.usd = plus(item->used.usd, save->usd);
}

static struct session_item *begin_session(struct state_memory *memory, struct shard *shard,
					  const struct state_save *save)
{
	const struct record_new what = { &save->session, &save->tenant,
					 save->now + STATE_SESSION_TTL };
	struct session_item *item =
		shard_find_or_add(memory, shard, STATE_OF_SESSION, &what, save->now);

	item->revision = save->revision;
	item->here = STATE_HERE_NOTHING;
	return item;
}

static void save_session(struct state_memory *memory, struct state_save *save)
{
	save->ended = false;
	if (state_key_none(&save->session))
		return;
	struct shard *shard = shard_lock(memory, &save->session, STATE_OF_SESSION, save->now);
	struct session_item *item =
		save->change == STATE_BEGINS
			? begin_session(memory, shard, save)
			: find_session(memory, shard, &save->session, save->now);
	if (item != NULL)
		count_session(item, save);
	if (item != NULL && save->change == STATE_ENDS) {
		shard_drop(memory, shard, STATE_OF_SESSION, item);
		save->ended = true;
	}
	shard_unlock(shard);
}

enum state_here state_memory_here(struct state_memory *memory, const struct state_key *session,
				  nsec_t now)
{
	struct shard *shard = shard_lock(memory, session, STATE_OF_SESSION, now);
	const struct session_item *item = shard_find(memory, shard, STATE_OF_SESSION, session, now);
	const enum state_here here = item == NULL ? STATE_HERE_NOTHING : item->here;

	shard_unlock(shard);
	return here;
}

void state_memory_set_here(struct state_memory *memory, const struct state_key *tenant,
			   const struct state_key *session, enum state_here here, nsec_t now)
{
	const struct record_new what = { session, tenant, now + STATE_SESSION_TTL };
	struct shard *shard = shard_lock(memory, session, STATE_OF_SESSION, now);
	struct session_item *item =
		here == STATE_HERE_ENDED
			? shard_find_or_add(memory, shard, STATE_OF_SESSION, &what, now)
			: shard_find(memory, shard, STATE_OF_SESSION, session, now);

	if (item != NULL && here == STATE_HERE_NOTHING && item->here == STATE_HERE_ENDED)
		shard_drop(memory, shard, STATE_OF_SESSION, item);
	else if (item != NULL)
		item->here = here;
	shard_unlock(shard);
}

/* ---- loops ---- */

/* A loop that a call leads to takes the place of one with fewer tokens. */
static void prefer_loop(struct state_memory *memory, const struct state_key *id, nsec_t now,
			struct state_loop *best)
{
	struct state_loop loop = { .id = *id };

	if (state_key_eq(id, &best->id))
		return;
	struct shard *shard = shard_lock(memory, id, STATE_OF_LOOP, now);
	const struct loop_item *item = shard_find(memory, shard, STATE_OF_LOOP, id, now);
	if (item != NULL) {
		loop.tokens = item->tokens;
		loop.usd = item->usd;
		loop.target = item->target;
	}
	shard_unlock(shard);
	if (!state_key_none(&best->id) && loop.tokens <= best->tokens)
		return;
	best->id = loop.id;
	best->tokens = loop.tokens;
	best->usd = loop.usd;
	best->target = loop.target;
}

static void load_loop(struct state_memory *memory, struct state_load *load)
{
	struct state_loop *loop = &load->loop;
	const uint32_t count = state_least(load->call_count, STATE_CALLS_MAX);

	*loop = (struct state_loop){ .known = 0 };
	for (uint32_t i = 0; i < count; i++) {
		struct shard *shard = shard_lock(memory, &load->calls[i], STATE_OF_CALL, load->now);
		const struct call_item *item =
			shard_find(memory, shard, STATE_OF_CALL, &load->calls[i], load->now);
		const bool known = item != NULL;
		const struct call_item call = known ? *item : (struct call_item){ .rounds = 0 };
		shard_unlock(shard);
		if (!known)
			continue;
		loop->known++;
		loop->rounds = call.rounds > loop->rounds ? call.rounds : loop->rounds;
		prefer_loop(memory, &call.loop, load->now, loop);
	}
}

static void save_loop(struct state_memory *memory, const struct state_save *save)
{
	if (state_key_none(&save->loop))
		return;
	struct shard *shard = shard_lock(memory, &save->loop, STATE_OF_LOOP, save->now);
	const struct record_new what = { &save->loop, &save->tenant, save->now + STATE_LOOP_TTL };
	struct loop_item *item = shard_find_or_add(memory, shard, STATE_OF_LOOP, &what, save->now);
	item->tokens = plus(item->tokens, save->tokens);
	item->usd = plus(item->usd, save->usd);
	if (save->call_count != 0)
		item->target = save->target;
	shard_unlock(shard);
}

static void save_calls(struct state_memory *memory, const struct state_save *save)
{
	const uint32_t count = state_least(save->call_count, STATE_CALLS_MAX);

	for (uint32_t i = 0; i < count; i++) {
		struct shard *shard = shard_lock(memory, &save->calls[i], STATE_OF_CALL, save->now);
		const struct record_new what = { &save->calls[i], &save->tenant,
						 save->now + STATE_LOOP_TTL };
		struct call_item *item =
			shard_find_or_add(memory, shard, STATE_OF_CALL, &what, save->now);
		item->loop = save->loop;
		item->rounds = save->rounds;
		shard_unlock(shard);
	}
}

/* ---- the interface ---- */

static enum state_outcome memory_load(struct state *state, struct state_load *load)
{
	struct state_memory *memory = memory_of(state);

	load->away = false;
	load_session(memory, load);
	load_loop(memory, load);
	state_memory_load_blocks(memory, load);
	return STATE_DONE;
}

static enum state_outcome memory_save(struct state *state, struct state_save *save)
{
	struct state_memory *memory = memory_of(state);

	save->away = false;
	save_session(memory, save);
	save_loop(memory, save);
	save_calls(memory, save);
	save->blocks_kept = state_memory_save_blocks(memory, save);
	return STATE_DONE;
}

/* Nothing is ever pending. */
static void memory_forget_load(struct state *state, struct state_load *load)
{
	(void)state;
	(void)load;
}

static void memory_forget_save(struct state *state, struct state_save *save)
{
	(void)state;
	(void)save;
}

static void memory_drop_blocks(struct state *state, struct state_key tenant,
			       const struct state_key *blocks, uint32_t count)
{
	(void)tenant;
	state_memory_drop_blocks(memory_of(state), blocks, count);
}

struct state *state_memory_state(struct state_memory *memory)
{
	return memory == NULL ? NULL : &memory->state;
}

void state_memory_figures(struct state_memory *memory, struct state_figures *out)
{
	*out = (struct state_figures){ .blocks_bytes = state_chunks_used(memory->chunks),
				       .tables_bytes = memory->mapped_bytes };
	for (size_t i = 0; i < KEY_SHARDS; i++) {
		struct shard *shard = &memory->shards[i];
		must(pthread_mutex_lock(&shard->lock) == 0);
		for (size_t kind = 0; kind < STATE_RECORDS; kind++) {
			out->records[kind] += shard->tables[kind].count;
			out->evicted[kind] += shard->evicted[kind];
		}
		shard_unlock(shard);
	}
}

/* ---- making one ---- */

struct table_plan {
	uint32_t item_bytes, most;
};

static uint32_t share_of(uint64_t count)
{
	return (uint32_t)((count + KEY_SHARDS - 1) / KEY_SHARDS);
}

/* Of one shard. Blocks are not spread quite evenly: twice their share has room for them. */
static void plan_tables(const struct state_memory *memory, struct table_plan plans[STATE_RECORDS])
{
	const struct state_bounds *bounds = &memory->bounds;
	const uint64_t chunks = state_chunks_room(memory->chunks) / STATE_CHUNK_BYTES;

	plans[STATE_OF_SESSION] =
		(struct table_plan){ sizeof(struct session_item), share_of(bounds->sessions) };
	plans[STATE_OF_CALL] =
		(struct table_plan){ sizeof(struct call_item), share_of(bounds->calls) };
	plans[STATE_OF_LOOP] =
		(struct table_plan){ sizeof(struct loop_item), share_of(bounds->loops) };
	plans[STATE_OF_BLOCKS] = (struct table_plan){ sizeof(struct blocks_item),
						      BLOCKS_MIN + share_of(2 * chunks) };
}

static bool make_tables(struct state_memory *memory)
{
	struct table_plan plans[STATE_RECORDS];
	size_t bytes = 0;

	plan_tables(memory, plans);
	for (size_t kind = 0; kind < STATE_RECORDS; kind++)
		bytes += state_table_bytes(plans[kind].item_bytes, plans[kind].most);
	memory->mapped_bytes = bytes * KEY_SHARDS;
	memory->mapped = mmap(NULL, memory->mapped_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory->mapped == MAP_FAILED)
		return false;
	char *at = memory->mapped;
	for (size_t i = 0; i < KEY_SHARDS; i++) {
		struct shard *shard = &memory->shards[i];
		must(pthread_mutex_init(&shard->lock, NULL) == 0);
		atomic_init(&shard->first_due, NSEC_NEVER);
		for (size_t kind = 0; kind < STATE_RECORDS; kind++) {
			const struct table_plan *plan = &plans[kind];
			state_table_init(&shard->tables[kind], at, plan->item_bytes, plan->most);
			at += state_table_bytes(plan->item_bytes, plan->most);
		}
	}
	return true;
}

struct state_memory *state_memory_new(const struct state_bounds *bounds)
{
	struct state_memory *memory = aligned_alloc(_Alignof(struct state_memory), sizeof(*memory));

	must(bounds->sessions > 0 && bounds->calls > 0 && bounds->loops > 0);
	if (memory == NULL)
		return NULL;
	*memory = (struct state_memory){
		.state = { .load = memory_load,
			   .save = memory_save,
			   .forget_load = memory_forget_load,
			   .forget_save = memory_forget_save,
			   .drop_blocks = memory_drop_blocks },
		.magic = MEMORY_MAGIC,
		.bounds = *bounds,
		.chunks = state_chunks_new(bounds->blocks_bytes),
	};
	if (memory->chunks != NULL && fair_share_map(&memory->blocks, BLOCKS_TENANTS, true) &&
	    make_tables(memory)) {
		must(pthread_mutex_init(&memory->blocks_lock, NULL) == 0);
		return memory;
	}
	fair_share_unmap(&memory->blocks);
	state_chunks_free(memory->chunks);
	free(memory);
	return NULL;
}

void state_memory_free(struct state_memory *memory)
{
	if (memory == NULL)
		return;
	for (size_t i = 0; i < KEY_SHARDS; i++)
		must(pthread_mutex_destroy(&memory->shards[i].lock) == 0);
	must(pthread_mutex_destroy(&memory->blocks_lock) == 0);
	must(munmap(memory->mapped, memory->mapped_bytes) == 0);
	fair_share_unmap(&memory->blocks);
	state_chunks_free(memory->chunks);
	free(memory);
}
