/* poison.h - memory that nobody may touch, in builds with AddressSanitizer; nothing in others.
 *
 * The arena says by it which bytes of a chunk were not handed out, so that a read or a write beyond an object
 * is found although the chunk is one allocation. */
#ifndef CODEC_BASE_POISON_H
#define CODEC_BASE_POISON_H

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define POISON_IS_SEEN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POISON_IS_SEEN
#endif
#endif

#ifdef POISON_IS_SEEN
#include <sanitizer/asan_interface.h>
enum { POISON_FENCE = 8 }; /* bytes behind an object */
#else
enum { POISON_FENCE = 0 };
#endif

/* Nobody may touch the `len` bytes at `at`, until unpoison or their memory is freed. */
static inline void poison(void *at, size_t len)
{
#ifdef POISON_IS_SEEN
	__asan_poison_memory_region(at, len);
#else
	(void)at;
	(void)len;
#endif
}

static inline void unpoison(void *at, size_t len)
{
#ifdef POISON_IS_SEEN
	__asan_unpoison_memory_region(at, len);
#else
	(void)at;
	(void)len;
#endif
}

#endif
