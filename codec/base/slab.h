/* slab.h - a fixed number of equal objects of one thread; full is an answer.
 *
 * Sized once at start. take() is LIFO, so that a warm object is used again. */
#ifndef CODEC_BASE_SLAB_H
#define CODEC_BASE_SLAB_H

#include "codec/base/attr.h"

#include <stdbool.h>

struct slab {
	char *objects; /* each begins a line of the cache; untouched pages cost nothing */
	void *free;    /* list through the objects' first words */
	size_t size, count;
	size_t fresh;    /* objects never handed out yet start here */
	size_t out;      /* handed out now */
	size_t out_high; /* its high mark */
};

/* `count` objects of `size` bytes (at least a pointer's). False when memory is refused. */
MUST_USE bool slab_init(struct slab *slab, size_t size, size_t count);

/* Every object must have been given back. */
void slab_fini(struct slab *slab);

/* An object with undefined content, or NULL when all are out. */
MUST_USE void *slab_take(struct slab *slab);

void slab_give(struct slab *slab, void *object);

#endif
