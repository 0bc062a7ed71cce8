#include "codec/base/arena.h"

#include "codec/base/must.h"

#include <stdlib.h>

struct arena_chunk {
	struct arena_chunk *next;
	size_t size; /* of the whole allocation */
	char bytes[];
};

static inline size_t chunk_bytes(const struct arena_pool *pool)
{
	return pool->chunk_bytes == 0 ? ARENA_CHUNK_BYTES : pool->chunk_bytes;
}

void arena_pool_fini(struct arena_pool *pool)
{
	must(pool->out == 0);
	for (size_t i = 0; i < ARENA_SIZES; i++)
		while (pool->free[i] != NULL) {
			struct arena_chunk *chunk = pool->free[i];
			pool->free[i] = chunk->next;
			free(chunk);
		}
	pool->free_count = 0;
}

/* Which list holds allocations of at least `size` bytes; ARENA_SIZES: none does. */
static inline size_t size_index(const struct arena_pool *pool, size_t size)
{
	const size_t least = chunk_bytes(pool);
	size_t index = 0;

	while (index < ARENA_SIZES && least << index < size)
		index++;
	return index;
}

/* `index` is the list of that size. */
static struct arena_chunk *pool_take(struct arena_pool *pool, size_t index, size_t size)
{
	struct arena_chunk *chunk = index == ARENA_SIZES ? NULL : pool->free[index];

	if (pool->fail_next != 0 && --pool->fail_next == 0)
		return NULL;
	if (chunk != NULL) {
		pool->free[index] = chunk->next;
		pool->free_count -= (size_t)1 << index;
	} else {
		if (index < ARENA_SIZES)
			size = chunk_bytes(pool) << index;
		chunk = malloc(size);
		if (chunk == NULL)
			return NULL;
		pool->mallocs++;
		chunk->size = size;
	}
	poison(chunk->bytes, chunk->size - sizeof(*chunk));
	if (++pool->out > pool->out_high)
		pool->out_high = pool->out;
	return chunk;
}

static void pool_give(struct arena_pool *pool, struct arena_chunk *chunk)
{
	size_t index = size_index(pool, chunk->size), chunks = (size_t)1 << index;

	must(pool->out > 0);
	pool->out--;
	poison(chunk->bytes, chunk->size - sizeof(*chunk));
	if (index == ARENA_SIZES || pool->free_count + chunks > pool->keep_max) {
		free(chunk);
		return;
	}
	chunk->next = pool->free[index];
	pool->free[index] = chunk;
	pool->free_count += chunks;
}

void arena_init(struct arena *arena, struct arena_pool *pool, size_t cap)
{
	*arena = (struct arena){ .pool = pool, .cap = cap };
}

void arena_init_in(struct arena *arena, struct arena_pool *pool, size_t cap, void *room,
		   size_t room_bytes)
{
	must((uintptr_t)room % 8 == 0 && room_bytes % 8 == 0);
	*arena = (struct arena){ .pool = pool,
				 .cap = cap,
				 .at = room,
				 .end = room == NULL ? NULL : (char *)room + room_bytes };
}

void *arena_take_more(struct arena *arena, size_t size)
{
	must(arena->pool != NULL);
	if (size > arena->cap - arena->used)
		return NULL;
	const size_t whole = (size + 7) & ~(size_t)7, fenced = whole + POISON_FENCE;
	char *bytes = arena->at;
	if (fenced <= (size_t)(arena->end - arena->at)) {
		arena->at += fenced;
	} else {
		const size_t least = chunk_bytes(arena->pool),
			     room = least - sizeof(struct arena_chunk),
			     needed = fenced + sizeof(struct arena_chunk);
		const bool large = fenced > room;
		struct arena_chunk *chunk =
			large ? pool_take(arena->pool, size_index(arena->pool, needed), needed)
			      : pool_take(arena->pool, 0, least);
		if (chunk == NULL)
			return NULL;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		bytes = chunk->bytes;
		if (!large) { /* else the chunk in use keeps its free bytes */
			arena->at = bytes + fenced;
			arena->end = bytes + room;
		}
	}
	arena->used = arena->used + whole > arena->cap ? arena->cap : arena->used + whole;
	unpoison(bytes, size);
	return bytes;
}

/* The next multiple of 8, where an object ends for the arena. */
static char *whole(char *at)
{
	return at + (8 - (uintptr_t)at % 8) % 8;
}

void arena_give_end(struct arena *arena, char *from, char *end)
{
	char *kept = whole(from);

	if (whole(end) + POISON_FENCE != arena->at || arena->used == arena->cap)
		return;
	arena->used -= (size_t)(whole(end) - kept);
	arena->at = kept + POISON_FENCE;
}

void *arena_zero(struct arena *arena, size_t size)
{
	void *bytes = arena_take(arena, size);

	return bytes == NULL ? NULL : memset(bytes, 0, size);
}

struct slice arena_copy(struct arena *arena, struct slice s)
{
	char *bytes = arena_take(arena, s.len + 1);

	if (bytes == NULL)
		return (struct slice){ NULL, 0 };
	if (s.len <= SLICE_SHORT)
		slice_put_short(bytes, s);
	else
		(void)memcpy(bytes, s.at, s.len);
	bytes[s.len] = '\0';
	return slice_of(bytes, s.len);
}

void arena_give(struct arena *arena)
{
	while (arena->chunks != NULL) {
		struct arena_chunk *chunk = arena->chunks;
		arena->chunks = chunk->next;
		pool_give(arena->pool, chunk);
	}
	arena->at = arena->end = NULL;
	arena->used = 0;
}

void arena_wipe(struct arena *arena)
{
	for (struct arena_chunk *chunk = arena->chunks; chunk != NULL; chunk = chunk->next) {
		unpoison(chunk->bytes, chunk->size - sizeof(*chunk));
		explicit_bzero(chunk->bytes, chunk->size - sizeof(*chunk));
	}
	arena_give(arena);
}
