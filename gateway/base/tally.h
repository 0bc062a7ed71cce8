/* tally.h - how often something has happened in the second that runs. */
#ifndef GATEWAY_BASE_TALLY_H
#define GATEWAY_BASE_TALLY_H

#include <stdbool.h>
#include <stdint.h>

/* Zero-initialised: never. */
struct tally {
	uint64_t second;
	uint32_t count; /* in that second */
};

/* Whether it has happened less than `max` times in the second `now_s`. */
static inline bool tally_below(const struct tally *tally, uint64_t now_s, uint32_t max)
{
	return tally->second != now_s || tally->count < max;
}

/* It happens. */
static inline void tally_add(struct tally *tally, uint64_t now_s)
{
	if (tally->second != now_s)
		*tally = (struct tally){ .second = now_s };
	tally->count++;
}

#endif
