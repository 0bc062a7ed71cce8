/* limit_period.h - the money of a day or a month in a word of a slot: private to limit_take.c and limit_read.c. */
#ifndef GATEWAY_LIMITS_LIMIT_PERIOD_H
#define GATEWAY_LIMITS_LIMIT_PERIOD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { AMOUNT_BITS = 54 };
#define AMOUNT_MAX ((UINT64_C(1) << AMOUNT_BITS) - 1) /* 18 million USD in nano-USD */

#define TAG_MAX (UINT64_MAX >> AMOUNT_BITS)

/* A word of the two that a period may use: its tag repeats after 2,048 periods, so that the money of
 * one day could be taken for another's only where nothing was asked for 5.6 years in between. */
static inline _Atomic uint64_t *period_word(_Atomic uint64_t words[2], uint32_t period)
{
	return &words[period & 1];
}

static inline uint64_t period_tag(uint32_t period)
{
	return (period >> 1) & TAG_MAX;
}

static inline bool period_is(uint64_t word, uint32_t period)
{
	return word >> AMOUNT_BITS == period_tag(period);
}

static inline uint64_t period_amount(uint64_t word, uint32_t period)
{
	return period_is(word, period) ? word & AMOUNT_MAX : 0;
}

static inline uint64_t period_pack(uint32_t period, uint64_t amount)
{
	return period_tag(period) << AMOUNT_BITS | (amount < AMOUNT_MAX ? amount : AMOUNT_MAX);
}

/* Of two words, the amount of `period`. */
static inline uint64_t period_read(const _Atomic uint64_t words[2], uint32_t period)
{
	return period_amount(atomic_load_explicit(&words[period & 1], memory_order_relaxed),
			     period);
}

#endif
