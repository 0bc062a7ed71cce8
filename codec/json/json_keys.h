/* json_keys.h - sets of raw JSON strings, compared by meaning; private to codec/.
 *
 * One work area holds a stack of sets: only the newest takes members, so keys and hash slots are two
 * stacks as well. Up to KEYS_FEW members are compared one by one, where a filter of 64 bits does not show
 * that there is no need; beyond that an open-addressing table under a random seed keeps the cost linear
 * whatever the keys are. */
#ifndef CODEC_JSON_JSON_KEYS_H
#define CODEC_JSON_JSON_KEYS_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"
#include "codec/json/json_read.h"
#include "codec/json/json_scan.h"

enum {
	KEYS_FEW = 16,
	KEYS_SET_MAX = UINT16_MAX - 1, /* members of one: a slot holds the number of one */
	KEYS_OPEN_MAX = 65536,         /* of all sets on the stack, more or less */
	KEYS_NEW_MAX =
		64, /* members of a set that each left a bit of their own: its filter has so many */
	KEYS_SLOTS_EACH = 4, /* at least, for a member: whether one is taken cannot be foretold */
	KEYS_SLOTS_FIRST =
		8 *
		KEYS_NEW_MAX, /* of a set's table: KEYS_FEW members are in it, or all that have left a bit */
	KEYS_SLOTS_GROWTH = 4, /* one too full grows to so many times its size */
	/* each set's first table, and for every member what it has at most beyond that: no set with a table has less
	 * than KEYS_FEW, so there is room for 132 of them */
	KEYS_SLOTS_MAX = KEYS_SLOTS_FIRST * (JSON_DEPTH_MAX + 2) +
			 KEYS_SLOTS_EACH * KEYS_SLOTS_GROWTH * KEYS_OPEN_MAX,
};

_Static_assert((int)JSON_KEYS_MAX <= (int)KEYS_SET_MAX, "members are numbered in 16 bits");

/* A set's filter that shows nothing as new: a key has an escape, so how one is written says nothing; or
 * there is a table. */
#define KEYS_FILTER_FULL UINT64_MAX

struct json_key {
	const char *at;
	uint32_t len, hash; /* 0: the hash was not needed so far */
};

struct json_work {
	uint64_t seed;
	const struct codec_set *set;      /* carried, never followed here */
	const struct json_reader *reader; /* the one under way; compared, never followed */
	struct json_key *key_top;         /* behind those of all sets */
	uint16_t *slot_top;               /* likewise */
	struct json_key keys[KEYS_OPEN_MAX + KEYS_NEW_MAX * (JSON_DEPTH_MAX + 2)];
	uint16_t slots[KEYS_SLOTS_MAX]; /* index into the set's keys + 1; 0 is empty */
};

enum json_keys_answer { KEYS_ADDED, KEYS_DUPLICATE, KEYS_FULL };

/* What the filter of a new set is, of at most `max` keys: json_keys_add_new does not count them. */
static inline uint64_t json_keys_filter(uint32_t max)
{
	return max >= KEYS_NEW_MAX ? 0 : KEYS_FILTER_FULL;
}

/* Begins a set on top of the stack. `filter`: json_keys_filter. */
static inline void json_keys_begin(const struct json_work *work, struct json_level *set,
				   uint64_t filter)
{
	set->keys = work->key_top;
	set->filter = filter;
	set->stop = NULL;
}

/* Drops all sets. */
static inline void json_keys_clear(struct json_work *work)
{
	work->key_top = work->keys;
	work->slot_top = work->slots;
}

/* Drops the newest set. */
static inline void json_keys_end(struct json_work *work, const struct json_level *set)
{
	work->key_top = set->keys;
	if (set->stop != NULL)
		work->slot_top = set->slots;
}

/* Adds `raw`, behind which its quote stands (raw.at[raw.len]), to the newest set. `escaped`: it may hold
 * a backslash. `end`: bytes are readable up to there. KEYS_FULL when the set has `max` members (at most
 * KEYS_SET_MAX) or the work area is full. */
MUST_USE enum json_keys_answer json_keys_add(struct json_work *work, struct json_level *set,
					     uint32_t max, struct slice raw, bool escaped,
					     const char *end);

/* The same for the common key of a large set: without a backslash, 8 bytes are readable behind it, and
 * work->key_top < set->stop, which holds the `max` that the set's table was made with. */
MUST_USE enum json_keys_answer json_keys_add_large(struct json_work *work, struct json_level *set,
						   const char *at, size_t len);

/* Whether the set has `raw`; its members end at `end`. */
bool json_keys_has(struct json_work *work, const struct json_level *set, const struct json_key *end,
		   struct slice raw);

/* ---- inline: the common key is short and new ---- */

/* Which bit a key leaves in the filter of a set. It is no more than a guess, known to whoever sends
 * the text: a bit that is there already means KEYS_FEW comparisons at most. The quote that ends the key is
 * at[len] and counts as a part of it. 8 bytes at `at` are readable however few `len` is. */
static inline unsigned json_keys_bit(const char *at, size_t len)
{
	/* no branch: whether a key has 8 bytes is what cannot be foretold of a schema's names, and a
	 * minimum is taken without one by all compilers */
	const size_t whole = len + 1, ends = whole < 8 ? whole : 8;
	const uint64_t mask = UINT64_MAX >> (64 - 8 * ends);
	const uint64_t rear = scan_load8(at + (whole - ends)) & mask;
	const uint64_t word = (scan_load8(at) & mask) + (rear << 5 | rear >> 59);

	return (unsigned)((word * UINT64_C(0x9fb21c651e98df25)) >> 58);
}

/* Adds the key if its bit shows that it is new: it is without escapes, 8 bytes are readable, and the set
 * may have KEYS_NEW_MAX members. False: nothing happened, json_keys_add knows more. */
static inline bool json_keys_add_new(struct json_work *work, struct json_level *set, const char *at,
				     size_t len)
{
	uint64_t filter = set->filter;
	unsigned bit = json_keys_bit(at, len);

	if ((filter >> bit & 1) != 0)
		return false;
	set->filter = filter | (uint64_t)1 << bit;
	*work->key_top++ = (struct json_key){ at, (uint32_t)len, 0 };
	return true;
}

#endif
