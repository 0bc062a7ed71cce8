/* json_mask.h - arithmetic on the bit masks of a block (isa/isa.h); private to codec/. */
#ifndef CODEC_JSON_JSON_MASK_H
#define CODEC_JSON_JSON_MASK_H

#include <stdint.h>

/* Bit n: whether an odd number of bits up to n, itself included, is set. */
static inline uint64_t mask_parity(uint64_t bits)
{
	bits ^= bits << 1; /* gcc leaves a loop a loop */
	bits ^= bits << 2;
	bits ^= bits << 4;
	bits ^= bits << 8;
	bits ^= bits << 16;
	return bits ^ bits << 32;
}

/* The characters behind an odd number of backslashes, by simdjson's arithmetic on runs of them; *carry: 1
 * when the first of the block is one, and then the first of the next. */
static inline uint64_t mask_escaped(uint64_t backslash, uint64_t *carry)
{
	const uint64_t odd = UINT64_C(0xaaaaaaaaaaaaaaaa);
	uint64_t begin = backslash & ~*carry;
	uint64_t turned = (((begin << 1) | odd) - begin) ^ odd;
	uint64_t escaped = turned ^ (backslash | *carry);

	*carry = (turned & backslash) >> 63;
	return escaped;
}

#endif
