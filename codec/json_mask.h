/* json_mask.h - arithmetic on the bit masks of a block (isa/isa.h); private to codec/. */
#ifndef CODEC_JSON_MASK_H
#define CODEC_JSON_MASK_H

#include <stdint.h>

/* Bit n: whether an odd number of bits up to n, itself included, is set. */
static inline uint64_t mask_parity(uint64_t bits)
{
	for (unsigned shift = 1; shift < 64; shift *= 2)
		bits ^= bits << shift;
	return bits;
}

/* The characters behind an odd number of backslashes; *carry: whether the first of the block is one,
 * and then the first of the next. */
static inline uint64_t mask_escaped(uint64_t backslash, uint64_t *carry)
{
	const uint64_t even = 0x5555555555555555ull;
	uint64_t runs;

	if (backslash == 0) {
		uint64_t first = *carry;
		*carry = 0;
		return first;
	}
	backslash &= ~*carry;
	uint64_t follows = backslash << 1 | *carry;
	uint64_t odd_starts = backslash & ~even & ~follows;
	*carry = __builtin_add_overflow(odd_starts, backslash, &runs);
	return (even ^ runs << 1) & follows;
}

#endif
