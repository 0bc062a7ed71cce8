/* arena.h - bump memory under a byte cap, given back at once.
 *
 * An arena belongs to one request and one thread. Its memory comes as chunks from an arena_pool,
 * one per worker, that keeps what was given back, so that a steady load allocates nothing from
 * libc. Single objects larger than a chunk are allocated on their own, in sizes that double; those of
 * up to ARENA_KEEP_BYTES are kept, larger ones are freed with the arena. With AddressSanitizer what was not
 * handed out of a chunk, and a fence behind every object in it, is poisoned (poison.h). */
#ifndef CODEC_BASE_ARENA_H
#define CODEC_BASE_ARENA_H

#include "codec/base/attr.h"
#include "codec/base/poison.h"
#include "codec/base/slice.h"

enum {
	ARENA_CHUNK_BYTES = 4096,
	ARENA_SIZES = 8, /* of what is kept: a chunk, twice that, and so on */
	ARENA_KEEP_BYTES = ARENA_CHUNK_BYTES
			   << (ARENA_SIZES - 1), /* with smaller chunks less, in proportion */
};

struct arena_chunk;

/* Free chunks of one thread. Zero-initialised is ready; what `keep_max` chunks take is kept, the rest
 * freed. */
struct arena_pool {
	size_t chunk_bytes; /* of a chunk, at least 256; 0: ARENA_CHUNK_BYTES */
	struct arena_chunk *free[ARENA_SIZES];
	size_t free_count; /* in chunks, by size */
	size_t keep_max;
	size_t out;       /* chunks and large objects in arenas now */
	size_t out_high;  /* its high mark */
	size_t mallocs;   /* calls into libc; the exact gate reads it */
	size_t fail_next; /* tests: the n-th take from now on fails; 0 never */
};

/* Frees what the pool keeps. Every arena must have been given back. */
void arena_pool_fini(struct arena_pool *pool);

struct arena {
	struct arena_pool *pool;
	struct arena_chunk *chunks; /* newest first */
	char *at, *end;             /* free bytes of the newest chunk */
	size_t used, cap;           /* bytes handed out, and the most that may be */
};

/* Takes no memory yet. `cap` in bytes. */
void arena_init(struct arena *arena, struct arena_pool *pool, size_t cap);

/* The same, but first come the `room_bytes` (a multiple of 8) at `room` (aligned to 8), up to the first
 * arena_give or arena_wipe, which leave them alone. They stay the caller's. NULL and 0: the same as arena_init. */
void arena_init_in(struct arena *arena, struct arena_pool *pool, size_t cap, void *room,
		   size_t room_bytes);

/* `size` bytes, aligned to 8, not zeroed; NULL when the cap or memory is exhausted (answer ERR_BUSY
 * or ERR_TOO_LARGE). Lives until arena_give. */
MUST_USE static inline void *arena_take(struct arena *arena, size_t size);

/* The same, zeroed. */
MUST_USE void *arena_zero(struct arena *arena, size_t size);

/* A copy of `s` with a NUL behind it (not counted); absent when memory is exhausted. */
MUST_USE struct slice arena_copy(struct arena *arena, struct slice s);

/* So many bytes, a multiple of 8, can be taken without asking for more memory. */
static inline size_t arena_at_hand(const struct arena *arena)
{
	return (size_t)(arena->end - arena->at);
}

/* Gives back the bytes from `from` on of what ends at `end`, if that was taken last; else nothing
 * happens. */
void arena_give_end(struct arena *arena, char *from, char *end);

/* Everything back to the pool. The arena may be used again. */
void arena_give(struct arena *arena);

/* The same, after every byte was overwritten: for arenas that held secrets. */
void arena_wipe(struct arena *arena);

/* private: arena_take where the newest chunk or the cap does not do, or with AddressSanitizer. */
MUST_USE void *arena_take_more(struct arena *arena, size_t size);

static inline void *arena_take(struct arena *arena, size_t size)
{
	char *at = arena->at;
	size_t whole = (size + 7) & ~(size_t)7;

	if (POISON_FENCE != 0 || size > (size_t)(arena->end - at) ||
	    whole > arena->cap - arena->used)
		return arena_take_more(arena, size);
	arena->at = at + whole; /* which is not beyond the end: that is aligned, too */
	arena->used += whole;
	return at;
}

#endif
