/* limit_slot.h - what a slot of the limit table looks like: private to limit_table.c, limit_take.c and limit_read.c. */
#ifndef GATEWAY_LIMITS_LIMIT_SLOT_H
#define GATEWAY_LIMITS_LIMIT_SLOT_H

#include "gateway/limits/limit_rate.h"
#include "gateway/limits/limit_table.h"

#include <stdatomic.h>

enum { LINE_BYTES = 64, SLOT_BYTES = 3 * LINE_BYTES };

/* Money of a period: the two latest days (months) have a word each, chosen by parity, so that a
 * request from before midnight is settled where it was taken. The word names its period: whoever
 * writes for a newer one replaces name and amount at once, and nobody can add to the wrong one. */
struct limit_slot {
	_Alignas(LINE_BYTES) uint8_t name[16]; /* written before the index shows the slot */
	struct limit_rate requests;
	_Atomic uint64_t concurrent;
	struct limit_rate tokens;
	_Atomic uint64_t refused[LIMIT_REFUSALS]; /* limit_note's */
	_Atomic uint64_t day[2], month[2];
	_Atomic uint64_t day_more[2], month_more[2]; /* what limit_top_up added, likewise */
};

_Static_assert(sizeof(struct limit_slot) == SLOT_BYTES, "a slot fills its lines");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "atomics in shared memory must not use a lock");

#endif
