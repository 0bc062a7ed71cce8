/* json_mask.h - what the bytes of a block of 64 are, as bit masks; private to codec/.
 *
 * Bit n of a mask is byte n of the block. Nothing here reads outside a block. */
#ifndef CODEC_JSON_MASK_H
#define CODEC_JSON_MASK_H

#include "codec/json_scan.h"

enum { MASK_BLOCK = 64 };

/* The high bit of every zero byte, exactly. */
static inline uint64_t mask_zero8(uint64_t word)
{
	const uint64_t low = SCAN_ONES * 0x7f;

	return ~(((word & low) + low) | word | low);
}

/* The high bits of the eight bytes as one bit each. */
static inline uint64_t mask_pack8(uint64_t high)
{
	return ((high >> 7) * 0x0102040810204080ull) >> 56;
}

struct mask_text {
	uint64_t quote, backslash;
	uint64_t space; /* up to 0x20: in JSON text outside of strings, the white space */
};

static inline struct mask_text mask_text(const char *block)
{
	struct mask_text m = { 0, 0, 0 };

	for (unsigned i = 0; i < MASK_BLOCK; i += 8) {
		uint64_t word = scan_load8(block + i);
		uint64_t above = ((word & SCAN_ONES * 0x7f) + SCAN_ONES * 0x5f) | word;
		m.quote |= mask_pack8(mask_zero8(word ^ SCAN_ONES * '"')) << i;
		m.backslash |= mask_pack8(mask_zero8(word ^ SCAN_ONES * '\\')) << i;
		m.space |= mask_pack8(~above & SCAN_ONES * 0x80) << i;
	}
	return m;
}

static inline uint64_t mask_backslash(const char *block)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < MASK_BLOCK; i += 8)
		mask |= mask_pack8(mask_zero8(scan_load8(block + i) ^ SCAN_ONES * '\\')) << i;
	return mask;
}

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
