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

static void recall_session(struct state_memory *memory, struct state_recall *recall)
{
	recall->session_is = STATE_SESSION_UNKNOWN;
	recall->revision = 0;
	recall->used = (struct state_used){ 0 };
	if (state_key_none(&recall->session))
		return;
	struct shard *shard = shard_lock(memory, &recall->session, STATE_OF_SESSION, recall->now);
	struct session_item *item = find_session(memory, shard, &recall->session, recall->now);
	if (item != NULL) {
		state_table_touch(&shard->tables[STATE_OF_SESSION], item,
				  recall->now + STATE_SESSION_TTL);
		recall->session_is = STATE_SESSION_KNOWN;
		recall->revision = item->revision;
		recall->used = item->used;
	}
	shard_unlock(shard);
}

static void count_session(struct session_item *item, const struct state_note *note)
{
	item->used.requests = plus(item->used.requests, note->requests);
	item->used.tokens = plus(item->used.tokens, note->tokens);
	item->used.usd = plus(item->used.usd, note->usd);
}

static struct session_item *begin_session(struct state_memory *memory, struct shard *shard,
					  const struct state_note *note)
{
	const struct record_new what = { &note->session, &note->tenant,
					 note->now + STATE_SESSION_TTL };
	struct session_item *item =
		shard_find_or_add(memory, shard, STATE_OF_SESSION, &what, note->now);

	item->revision = note->revision;
	item->here = STATE_HERE_NOTHING;
	return item;
}

static void note_session(struct state_memory *memory, struct state_note *note)
{
	note->ended = false;
	if (state_key_none(&note->session))
		return;
	struct shard *shard = shard_lock(memory, &note->session, STATE_OF_SESSION, note->now);
	struct session_item *item =
		note->begin_session ? begin_session(memory, shard, note)
				    : find_session(memory, shard, &note->session, note->now);
	if (item != NULL)
		count_session(item, note);
	if (item != NULL && note->end_session) {
		shard_drop(memory, shard, STATE_OF_SESSION, item);
		note->ended = true;
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
		loop.place = item->place;
	}
	shard_unlock(shard);
	if (!state_key_none(&best->id) && loop.tokens <= best->tokens)
		return;
	best->id = loop.id;
	best->tokens = loop.tokens;
	best->usd = loop.usd;
	best->place = loop.place;
}

static void recall_loop(struct state_memory *memory, struct state_recall *recall)
{
	struct state_loop *loop = &recall->loop;
	const uint32_t count = state_least(recall->call_count, STATE_CALLS_MAX);

	*loop = (struct state_loop){ .known = 0 };
	for (uint32_t i = 0; i < count; i++) {
		struct shard *shard =
			shard_lock(memory, &recall->calls[i], STATE_OF_CALL, recall->now);
		const struct call_item *item =
			shard_find(memory, shard, STATE_OF_CALL, &recall->calls[i], recall->now);
		const bool known = item != NULL;
		const struct call_item call = known ? *item : (struct call_item){ .rounds = 0 };
		shard_unlock(shard);
		if (!known)
			continue;
		loop->known++;
		loop->rounds = call.rounds > loop->rounds ? call.rounds : loop->rounds;
		prefer_loop(memory, &call.loop, recall->now, loop);
	}
}

static void note_loop(struct state_memory *memory, const struct state_note *note)
{
	if (state_key_none(&note->loop))
		return;
	struct shard *shard = shard_lock(memory, &note->loop, STATE_OF_LOOP, note->now);
	const struct record_new what = { &note->loop, &note->tenant, note->now + STATE_LOOP_TTL };
	struct loop_item *item = shard_find_or_add(memory, shard, STATE_OF_LOOP, &what, note->now);
	item->tokens = plus(item->tokens, note->tokens);
	item->usd = plus(item->usd, note->usd);
	if (note->call_count != 0)
		item->place = note->place;
	shard_unlock(shard);
}

static void note_calls(struct state_memory *memory, const struct state_note *note)
{
	const uint32_t count = state_least(note->call_count, STATE_CALLS_MAX);

	for (uint32_t i = 0; i < count; i++) {
		struct shard *shard = shard_lock(memory, &note->calls[i], STATE_OF_CALL, note->now);
		const struct record_new what = { &note->calls[i], &note->tenant,
						 note->now + STATE_LOOP_TTL };
		struct call_item *item =
			shard_find_or_add(memory, shard, STATE_OF_CALL, &what, note->now);
		item->loop = note->loop;
		item->rounds = note->rounds;
		shard_unlock(shard);
	}
}

/* ---- the interface ---- */

static enum state_outcome memory_recall(struct state *state, struct state_recall *recall)
{
	struct state_memory *memory = memory_of(state);

	recall->away = false;
	recall_session(memory, recall);
	recall_loop(memory, recall);
	state_memory_recall_blocks(memory, recall);
	return STATE_DONE;
}

static enum state_outcome memory_remember(struct state *state, struct state_note *note)
{
	struct state_memory *memory = memory_of(state);

	note->away = false;
	note_session(memory, note);
	note_loop(memory, note);
	note_calls(memory, note);
	note->blocks_kept = state_memory_note_blocks(memory, note);
	return STATE_DONE;
}

/* Nothing is ever pending. */
static void memory_forget_recall(struct state *state, struct state_recall *recall)
{
	(void)state;
	(void)recall;
}

static void memory_forget_note(struct state *state, struct state_note *note)
{
	(void)state;
	(void)note;
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
		.state = { .recall = memory_recall,
			   .remember = memory_remember,
			   .forget_recall = memory_forget_recall,
			   .forget_note = memory_forget_note,
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
