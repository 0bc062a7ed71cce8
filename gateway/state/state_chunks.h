/* state_chunks.h - texts of any length in a fixed piece of memory: rows of equal chunks.
 *
 * Any thread may call; a text belongs to whoever kept it. The bytes are copied without a lock. Memory that
 * was never used costs nothing; what was used stays the process's, and is used again first. */
#ifndef GATEWAY_STATE_STATE_CHUNKS_H
#define GATEWAY_STATE_STATE_CHUNKS_H

#include "codec/base/slice.h"

struct state_chunks;

enum { STATE_CHUNK_BYTES = 1024 };

/* Room for `bytes`, rounded down to chunks; 0: nothing is ever kept. NULL: memory. */
struct state_chunks *state_chunks_new(uint64_t bytes);
void state_chunks_free(struct state_chunks *chunks);

/* Takes a copy of the text (an empty one takes a chunk, too) and returns its name; 0: no room. */
uint32_t state_chunks_keep(struct state_chunks *chunks, struct slice text);

/* Of a text of `len` bytes. */
void state_chunks_copy(const struct state_chunks *chunks, uint32_t name, char *to, size_t len);

void state_chunks_give(struct state_chunks *chunks, uint32_t name);

/* Bytes of all chunks, and of those that hold something now. */
uint64_t state_chunks_room(const struct state_chunks *chunks);
uint64_t state_chunks_used(struct state_chunks *chunks);

#endif
