#include "gateway/state/state_chunks.h"

#include "codec/base/must.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

struct state_chunks {
	pthread_mutex_t lock; /* of the list of chunks that are free */
	char *bytes;
	uint32_t *
		next; /* of each chunk, of the same text or of the list; a chunk is named by its number
			 * + 1, 0: none */
	uint32_t count, fresh, used;
	uint32_t unused; /* the list; chunks from `fresh` on are not on it */
	size_t mapped;
};

struct state_chunks *state_chunks_new(uint64_t bytes)
{
	struct state_chunks *chunks = calloc(1, sizeof(*chunks));
	const uint64_t count = bytes / STATE_CHUNK_BYTES;

	must(count < UINT32_MAX);
	if (chunks == NULL)
		return NULL;
	chunks->count = (uint32_t)count;
	chunks->mapped = (size_t)(count + 1) * (STATE_CHUNK_BYTES + sizeof(*chunks->next));
	void *memory = mmap(NULL, chunks->mapped, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		free(chunks);
		return NULL;
	}
	chunks->bytes = memory;
	chunks->next =
		(uint32_t *)(void *)(chunks->bytes + (size_t)(count + 1) * STATE_CHUNK_BYTES);
	must(pthread_mutex_init(&chunks->lock, NULL) == 0);
	return chunks;
}

void state_chunks_free(struct state_chunks *chunks)
{
	if (chunks == NULL)
		return;
	must(pthread_mutex_destroy(&chunks->lock) == 0);
	must(munmap(chunks->bytes, chunks->mapped) == 0);
	free(chunks);
}

static char *chunk_at(const struct state_chunks *chunks, uint32_t name)
{
	return chunks->bytes + (size_t)name * STATE_CHUNK_BYTES;
}

static uint32_t take_one(struct state_chunks *chunks)
{
	const uint32_t name = chunks->unused;

	if (name == 0)
		return ++chunks->fresh;
	chunks->unused = chunks->next[name];
	return name;
}

/* The first of a row of `count`, or 0. */
static uint32_t take_row(struct state_chunks *chunks, uint32_t count)
{
	uint32_t first = 0;

	must(pthread_mutex_lock(&chunks->lock) == 0);
	if (chunks->count - chunks->used >= count) {
		chunks->used += count;
		for (; count > 0; count--) {
			const uint32_t name = take_one(chunks);
			chunks->next[name] = first;
			first = name;
		}
	}
	must(pthread_mutex_unlock(&chunks->lock) == 0);
	return first;
}

uint32_t state_chunks_keep(struct state_chunks *chunks, struct slice text)
{
	const uint64_t wanted = text.len == 0 ? 1 : (text.len - 1) / STATE_CHUNK_BYTES + 1;
	const uint32_t first = wanted > chunks->count ? 0 : take_row(chunks, (uint32_t)wanted);

	for (uint32_t name = first; name != 0 && text.len != 0; name = chunks->next[name]) {
		const size_t part = text.len < STATE_CHUNK_BYTES ? text.len : STATE_CHUNK_BYTES;
		(void)memcpy(chunk_at(chunks, name), text.at, part);
		text.at += part;
		text.len -= part;
	}
	return first;
}

void state_chunks_copy(const struct state_chunks *chunks, uint32_t name, char *to, size_t len)
{
	while (len != 0) {
		must(name != 0);
		const size_t part = len < STATE_CHUNK_BYTES ? len : STATE_CHUNK_BYTES;
		(void)memcpy(to, chunk_at(chunks, name), part);
		to += part;
		len -= part;
		name = chunks->next[name];
	}
}

void state_chunks_give(struct state_chunks *chunks, uint32_t name)
{
	uint32_t last = name, count = 1;

	must(name != 0);
	for (; chunks->next[last] != 0; last = chunks->next[last]) /* it is still the caller's */
		count++;
	must(pthread_mutex_lock(&chunks->lock) == 0);
	must(chunks->used >= count);
	chunks->used -= count;
	chunks->next[last] = chunks->unused;
	chunks->unused = name;
	must(pthread_mutex_unlock(&chunks->lock) == 0);
}

uint64_t state_chunks_room(const struct state_chunks *chunks)
{
	return (uint64_t)chunks->count * STATE_CHUNK_BYTES;
}

uint64_t state_chunks_used(struct state_chunks *chunks)
{
	must(pthread_mutex_lock(&chunks->lock) == 0);
	const uint64_t used = (uint64_t)chunks->used * STATE_CHUNK_BYTES;
	must(pthread_mutex_unlock(&chunks->lock) == 0);
	return used;
}
