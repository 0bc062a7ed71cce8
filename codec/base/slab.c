#include "codec/base/slab.h"

#include "codec/base/must.h"
#include "codec/base/poison.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#ifdef POISON_IS_SEEN
#include <sanitizer/lsan_interface.h>
#endif

enum {
	LINE = 64,       /* of a cache */
	LARGE = 1 << 24, /* bytes, of which hardly any are ever touched */
};

/* Large ones are mapped: a leak checker looks through the whole heap, for seconds. It is told of the objects that are
 * out (note_root), so that what they own is not taken for lost when the process ends. */
static void *memory_take(size_t bytes)
{
	if (bytes < LARGE)
		return aligned_alloc(LINE, bytes);
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return at == MAP_FAILED ? NULL : at;
}

static void memory_give(void *at, size_t bytes)
{
	if (bytes < LARGE)
		free(at);
	else
		(void)munmap(at, bytes);
}

bool slab_init(struct slab *slab, size_t size, size_t count)
{
	size_t bytes;

	must(size >= sizeof(void *));
	*slab = (struct slab){ .size = (size + LINE - 1) & ~(size_t)(LINE - 1), .count = count };
	if (!__builtin_mul_overflow(slab->size, count, &bytes))
		slab->objects = memory_take(bytes);
	return slab->objects != NULL;
}

void slab_fini(struct slab *slab)
{
	must(slab->out == 0);
	if (slab->objects != NULL)
		memory_give(slab->objects, slab->size * slab->count);
	*slab = (struct slab){ 0 };
}

/* In builds with AddressSanitizer; nothing in others. */
static inline void note_root(const struct slab *slab, const void *object, bool out)
{
#ifdef POISON_IS_SEEN
	if (slab->size * slab->count < LARGE)
		return;
	if (out)
		__lsan_register_root_region(object, slab->size);
	else
		__lsan_unregister_root_region(object, slab->size);
#else
	(void)slab;
	(void)object;
	(void)out;
#endif
}

void *slab_take(struct slab *slab)
{
	void *object = slab->free;

	if (object != NULL)
		(void)memcpy(&slab->free, object, sizeof(void *));
	else if (slab->fresh < slab->count)
		object = slab->objects + slab->size * slab->fresh++;
	else
		return NULL;
	if (++slab->out > slab->out_high)
		slab->out_high = slab->out;
	note_root(slab, object, true);
	return object;
}

void slab_give(struct slab *slab, void *object)
{
	must(slab->out > 0);
	must((char *)object >= slab->objects &&
	     (char *)object < slab->objects + slab->size * slab->count);
	note_root(slab, object, false);
	(void)memcpy(object, &slab->free, sizeof(void *));
	slab->free = object;
	slab->out--;
}
