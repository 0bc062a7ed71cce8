/* prefetch.h - asking for memory before it is needed.
 *
 * What thousands of streams touch is larger than the caches, and an event waits for each line in turn. Who
 * knows some events ahead which one comes next asks for its lines in steps, as the next ones are found
 * by what the ones before hold. Hints: nothing is read but what earlier steps asked for, and an address
 * that is none any more does no harm. */
#ifndef CODEC_BASE_PREFETCH_H
#define CODEC_BASE_PREFETCH_H

#include <stddef.h>
#include <stdint.h>

enum { PREFETCH_LINE = 64 }; /* bytes; of a cache */

/* From the furthest ahead on: one event apart at least. */
enum prefetch {
	PREFETCH_CONNECTION, /* reads nothing */
	PREFETCH_REQUEST,    /* reads the connection */
	PREFETCH_STREAM,     /* reads the request */
	PREFETCH_TEXT,       /* reads the stream */
	PREFETCH_STEPS
};

/* The first `lines` of an object that begins one; `at` may be NULL. */
static inline void prefetch_lines(const void *at, size_t lines)
{
	const uintptr_t from = (uintptr_t)at;

	for (size_t i = 0; i < lines; i++)
		__builtin_prefetch((const void *)(from + i * PREFETCH_LINE), 1);
}

#endif
