#include "gateway/limits/limit_rate.h"

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_acquire);
}

static bool swap(_Atomic uint64_t *word, uint64_t *seen, uint64_t next)
{
	return *seen == next ||
	       atomic_compare_exchange_strong_explicit(word, seen, next, memory_order_acq_rel,
						       memory_order_acquire);
}

static uint64_t units_of(uint64_t under)
{
	return under & RATE_UNITS_MASK;
}

static uint64_t generation_of(uint64_t under)
{
	return under >> RATE_UNITS_BITS;
}

/* Of 28 bits; so is `by`, which may be -1. */
static uint64_t generation_beside(uint64_t generation, uint64_t by)
{
	return (generation + by) & (UINT64_MAX >> RATE_UNITS_BITS);
}

/* The word of `under` that belongs to *word, which is read again until it has one. */
static uint64_t under_of(const struct limit_rate *rate, uint64_t *word)
{
	uint64_t under;

	while (under = load(&rate->under[*word & 1]), !rate_is_under(under, *word))
		*word = load(&rate->word); /* it has gone on since */
	return under;
}

uint64_t rate_written(const struct limit_rate *rate, uint64_t *word)
{
	return units_of(under_of(rate, word));
}

struct quota_state rate_read(const struct limit_rate *rate)
{
	uint64_t word = load(&rate->word);
	struct quota_state state = { .written = rate_written(rate, &word) };

	state.tat = rate_tat(word);
	for (uint32_t i = 0; i < QUOTA_USES; i++)
		state.uses[i] = load(&rate->uses[i]);
	return state;
}

/* Where nothing was ever changed both words are 0. */
static bool is_before(uint64_t other, uint64_t under)
{
	return generation_of(other) == generation_beside(generation_of(under), UINT64_MAX) ||
	       (other == 0 && generation_of(under) == 0);
}

/* From the rate of `under`, which belongs to `word`, to limit's, or to the one that somebody else has proposed. May do
 * nothing when others are at it. */
static void change(struct limit_rate *rate, struct quota_limit limit, uint64_t most, nsec_t now,
		   uint64_t word, uint64_t under)
{
	_Atomic uint64_t *other = &rate->under[(word + 1) & 1];
	const uint64_t next = generation_beside(generation_of(under), 1);
	const uint64_t mine = next << RATE_UNITS_BITS | limit.per_minute;
	uint64_t proposal = load(other);

	if (is_before(proposal, under) && swap(other, &proposal, mine))
		proposal = mine;
	if (generation_of(proposal) != next)
		return;
	limit.per_minute = units_of(proposal);
	const nsec_t tat = quota_rescale(rate_tat(word), units_of(under), limit, most, now);
	(void)swap(&rate->word, &word, rate_word(tat, next));
}

static uint64_t under_limit(struct limit_rate *rate, struct quota_limit limit, uint64_t most,
			    nsec_t now, uint64_t word)
{
	uint64_t under;

	while (under = under_of(rate, &word), units_of(under) != limit.per_minute) {
		change(rate, limit, most, now, word, under);
		word = load(&rate->word);
	}
	return word;
}

/* No more debt than `most` units. */
static uint64_t cut(struct limit_rate *rate, struct quota_limit limit, uint64_t most, nsec_t now,
		    uint64_t word)
{
	uint64_t less;

	do {
		word = under_limit(rate, limit, most, now, word);
		less = rate_word(quota_rescale(rate_tat(word), limit.per_minute, limit, most, now),
				 word);
	} while (!swap(&rate->word, &word, less));
	return less;
}

uint64_t rate_align_slowly(struct limit_rate *rate, struct quota_limit limit, nsec_t now,
			   uint64_t word)
{
	uint64_t uses[QUOTA_USES] = { load(&rate->uses[0]), load(&rate->uses[1]) }, next;
	const uint64_t most = quota_uses_most(uses, limit.burst, now);
	uint32_t at;

	word = quota_uses_ended(uses, limit.burst, now) ? cut(rate, limit, most, now, word)
							: under_limit(rate, limit, most, now, word);
	while (at = quota_uses_note(uses, limit.burst, now, &next), uses[at] != next)
		if (swap(&rate->uses[at], &uses[at], next))
			uses[at] = next;
	return word;
}
