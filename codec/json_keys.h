/* json_keys.h - sets of raw JSON strings, compared by meaning; private to codec/.
 *
 * One work area holds a stack of sets: only the newest takes members, so keys and hash slots are two
 * stacks as well. Up to KEYS_FEW members are compared one by one, beyond that an open-addressing table
 * under a random seed keeps the cost linear whatever the keys are. */
#ifndef CODEC_JSON_KEYS_H
#define CODEC_JSON_KEYS_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"
#include "codec/json_read.h"
#include "codec/json_scan.h"

enum {
	KEYS_FEW = 16,
	KEYS_WORDS = 16,       /* bytes of a key that its hash takes in one step */
	KEYS_OPEN_MAX = 65536, /* members of all sets on the stack */
	KEYS_SLOTS_MAX = 4 * KEYS_OPEN_MAX,
};

struct json_key {
	const char *at;
	uint32_t len, hash;
};

struct json_work {
	uint64_t seed;
	const struct codec_set *set;
	const struct json_reader *reader; /* the one under way; compared, never followed */
	uint32_t key_top, slot_top;
	struct json_key keys[KEYS_OPEN_MAX];
	uint16_t slots[KEYS_SLOTS_MAX]; /* index into the set's keys + 1; 0 is empty */
};

enum json_keys_answer { KEYS_ADDED, KEYS_DUPLICATE, KEYS_FULL };

/* Begins a set on top of the stack. */
static inline struct json_level json_keys_begin(const struct json_work *work)
{
	return (struct json_level){ work->key_top, work->slot_top, 0 };
}

/* Drops the set, and any above it. */
static inline void json_keys_end(struct json_work *work, struct json_level set)
{
	work->key_top = set.keys;
	work->slot_top = set.slots;
}

/* Adds `raw` to the newest set. `escaped`: it may hold a backslash. `end`: bytes are readable up to
 * there. KEYS_FULL when the set has `max` members or the work area is full. */
MUST_USE enum json_keys_answer json_keys_add(struct json_work *work, struct json_level *set,
					     uint32_t max, struct slice raw, bool escaped,
					     const char *end);

/* Whether the set has `raw`; `top` is where its members end: json_keys_begin of the set above. */
bool json_keys_has(const struct json_work *work, struct json_level set, struct json_level top,
		   struct slice raw, const char *end);

/* ---- inline: the common key is short and new ---- */

static inline uint64_t json_keys_mix(uint64_t a, uint64_t b)
{
	__extension__ typedef unsigned __int128 wide;
	wide product = (wide)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* The hash of a key whose meaning is the first `len` bytes, KEYS_WORDS at most, of `low` and `high`.
 * The seed goes into both factors: without it nobody can make keys that collide. */
static inline uint32_t json_keys_hash2(uint64_t seed, uint64_t low, uint64_t high, size_t len)
{
	uint64_t hash = json_keys_mix(low ^ seed, (high + len * UINT64_C(0x9fb21c651e98df25)) ^
							  (seed >> 32 | seed << 32));

	return (uint32_t)(hash ^ hash >> 32);
}

/* The same for `len` bytes at `at`, of which 8 are readable however few they are. */
static inline uint32_t json_keys_hash_short(uint64_t seed, const char *at, size_t len)
{
	uint64_t low = scan_load8(at), high = 0;

	if (len < 8)
		low &= ((uint64_t)1 << (8 * len)) - 1;
	else if (len > 8)
		high = scan_load8(at + len - 8) >> (8 * (KEYS_WORDS - len));
	return json_keys_hash2(seed, low, high, len);
}

/* What `hash` leaves in the filter of a set. */
static inline uint64_t json_keys_bit(uint32_t hash)
{
	return (uint64_t)1 << (hash >> 26);
}

/* Adds the key if that is easily done: KEYS_WORDS bytes at most, without escapes, 8 bytes readable, few
 * members and none like it. False: nothing happened, json_keys_add knows more. */
static inline bool json_keys_add_new(struct json_work *work, struct json_level *set, uint32_t max,
				     struct slice raw)
{
	if (raw.len > KEYS_WORDS)
		return false;
	uint32_t hash = json_keys_hash_short(work->seed, raw.at, raw.len), top = work->key_top;
	uint64_t bit = json_keys_bit(hash);

	if ((set->filter & bit) != 0 || top - set->keys >= (max < KEYS_FEW ? max : KEYS_FEW) ||
	    top == KEYS_OPEN_MAX)
		return false;
	set->filter |= bit;
	work->keys[top] = (struct json_key){ raw.at, (uint32_t)raw.len, hash };
	work->key_top = top + 1;
	return true;
}

#endif
