/* pack.h - small binary records: numbers with the highest byte first, and texts behind their lengths.
 *
 * Neither side fails on its own: a packer that is full, or an unpacker that has come to what is not there, goes on and says
 * so in the end. */
#ifndef CODEC_BASE_PACK_H
#define CODEC_BASE_PACK_H

#include "codec/base/slice.h"

#include <stdint.h>
#include <string.h>

struct packer {
	char *at, *end;
	bool full; /* something did not fit */
};

static inline void pack_bytes(struct packer *to, const void *bytes, size_t len)
{
	to->full |= len > (size_t)(to->end - to->at);
	if (to->full || len == 0)
		return;
	(void)memcpy(to->at, bytes, len);
	to->at += len;
}

/* The lowest `count` bytes of it, the highest first; 8 at most. */
static inline void pack_number(struct packer *to, uint64_t number, size_t count)
{
	uint8_t bytes[sizeof(number)];

	for (size_t i = 0; i < count; i++)
		bytes[i] = (uint8_t)(number >> (8 * (count - 1 - i)));
	pack_bytes(to, bytes, count);
}

/* Its length in `count` bytes, and then it. One longer than `max` does not fit. */
static inline void pack_text(struct packer *to, struct slice text, size_t count, size_t max)
{
	to->full |= text.len > max;
	pack_number(to, text.len, count);
	pack_bytes(to, text.at, text.len);
}

struct unpacker {
	const char *at, *end;
	bool bad; /* what was asked for is not there, or not in its only form */
};

/* So many bytes; absent when there are fewer. */
static inline struct slice unpack_bytes(struct unpacker *from, size_t len)
{
	from->bad |= len > (size_t)(from->end - from->at);
	if (from->bad)
		return (struct slice){ NULL, 0 };
	from->at += len;
	return slice_of(from->at - len, len);
}

static inline uint64_t unpack_number(struct unpacker *from, size_t count)
{
	const struct slice bytes = unpack_bytes(from, count);
	uint64_t number = 0;

	for (size_t i = 0; i < bytes.len; i++)
		number = number << 8 | (uint8_t)bytes.at[i];
	return number;
}

static inline struct slice unpack_text(struct unpacker *from, size_t count, size_t max)
{
	const uint64_t len = unpack_number(from, count);

	from->bad |= len > max;
	return unpack_bytes(from, len);
}

/* The rest of it. */
static inline struct slice unpack_rest(struct unpacker *from)
{
	return unpack_bytes(from, (size_t)(from->end - from->at));
}

#endif
