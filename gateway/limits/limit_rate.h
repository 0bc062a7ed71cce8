/* limit_rate.h - a rate in a slot of the limit table: private to limit_take.c and limit_rate.c.
 *
 * A TAT means what it means under the rate that it was written under (quota.h), and two words cannot be
 * swapped at once. So a TAT's word ends in the last bits of a generation, and names by them which of the two
 * words of `under` is its own. A change of the rate is two steps: the other word becomes the proposal of the
 * next generation, then the TAT's word is replaced by the same debt under that rate. Whoever finds a proposal
 * takes the second step itself, so that a process that dies between them leaves nothing to be repaired, and
 * nobody ever waits. */
#ifndef GATEWAY_LIMITS_LIMIT_RATE_H
#define GATEWAY_LIMITS_LIMIT_RATE_H

#include "tenants/quota.h"

#include <stdatomic.h>

struct limit_rate {
	_Atomic uint64_t word;             /* TAT << 4 | generation's last bits */
	_Atomic uint64_t under[2];         /* generation << 36 | units a minute, 0: none yet */
	_Atomic uint64_t uses[QUOTA_USES]; /* of bursts: quota_use */
};

enum { RATE_GENERATION_BITS = 4, RATE_UNITS_BITS = 36 };
#define RATE_GENERATION_MASK ((UINT64_C(1) << RATE_GENERATION_BITS) - 1)
#define RATE_UNITS_MASK ((UINT64_C(1) << RATE_UNITS_BITS) - 1)
_Static_assert(QUOTA_TAT_MAX <= UINT64_MAX >> RATE_GENERATION_BITS, "a TAT fits its word");
_Static_assert(QUOTA_RATE_MAX <= RATE_UNITS_MASK, "a rate fits its word");

static inline nsec_t rate_tat(uint64_t word)
{
	return word >> RATE_GENERATION_BITS;
}

/* Another TAT of the same generation. */
static inline uint64_t rate_word(nsec_t tat, uint64_t word)
{
	return tat << RATE_GENERATION_BITS | (word & RATE_GENERATION_MASK);
}

/* Whether that word of `under` is the one that `word` was written under. */
static inline bool rate_is_under(uint64_t under, uint64_t word)
{
	return ((under >> RATE_UNITS_BITS ^ word) & RATE_GENERATION_MASK) == 0;
}

/* The cold part of rate_align. */
uint64_t rate_align_slowly(struct limit_rate *rate, struct quota_limit limit, nsec_t now,
			   uint64_t word);

/* `word` as it was seen, or as it is by now, of a TAT under limit's rate; that limit's burst is used. */
static inline uint64_t rate_align(struct limit_rate *rate, struct quota_limit limit, nsec_t now,
				  uint64_t word)
{
	const uint64_t under = atomic_load_explicit(&rate->under[word & 1], memory_order_relaxed);

	if ((under & RATE_UNITS_MASK) == limit.per_minute && rate_is_under(under, word) &&
	    atomic_load_explicit(&rate->uses[0], memory_order_relaxed) ==
		    quota_use(limit.burst, now))
		return word;
	return rate_align_slowly(rate, limit, now, word);
}

/* The rate that *word was written under; *word is as it is by now, if it has changed. */
uint64_t rate_written(const struct limit_rate *rate, uint64_t *word);

struct quota_state rate_read(const struct limit_rate *rate);

#endif
