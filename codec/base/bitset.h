/* bitset.h - a fixed-size set of small numbers; how policy hands the permitted models to routing.
 */
#ifndef CODEC_BASE_BITSET_H
#define CODEC_BASE_BITSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BITSET_MAX = 1024 };

struct bitset {
	uint64_t words[BITSET_MAX / 64];
};

static inline bool bitset_has(const struct bitset *set, size_t n)
{
	return n < BITSET_MAX && (set->words[n / 64] >> (n % 64) & 1) != 0;
}

/* `n` of these two below BITSET_MAX. */
static inline void bitset_add(struct bitset *set, size_t n)
{
	set->words[n / 64] |= (uint64_t)1 << (n % 64);
}

static inline void bitset_remove(struct bitset *set, size_t n)
{
	set->words[n / 64] &= ~((uint64_t)1 << (n % 64));
}

/* Whether there is any. */
static inline bool bitset_any(const struct bitset *set)
{
	uint64_t all = 0;

	for (size_t i = 0; i < BITSET_MAX / 64; i++)
		all |= set->words[i];
	return all != 0;
}

/* What is in both. */
static inline void bitset_and(struct bitset *set, const struct bitset *other)
{
	for (size_t i = 0; i < BITSET_MAX / 64; i++)
		set->words[i] &= other->words[i];
}

#endif
