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

enum {
	KEYS_FEW = 8,
	KEYS_OPEN_MAX = 65536, /* members of all sets on the stack */
	KEYS_SLOTS_MAX = 4 * KEYS_OPEN_MAX,
};

struct json_key {
	const char *at;
	uint32_t len, hash;
};

struct json_work {
	uint64_t seed;
	const struct json_reader *reader; /* the one under way; compared, never followed */
	uint32_t key_top, slot_top;
	struct json_key keys[KEYS_OPEN_MAX];
	uint16_t slots[KEYS_SLOTS_MAX]; /* index into the set's keys + 1; 0 is empty */
};

enum json_keys_answer { KEYS_ADDED, KEYS_DUPLICATE, KEYS_FULL };

/* Begins a set on top of the stack. */
static inline struct json_level json_keys_begin(const struct json_work *work)
{
	return (struct json_level){ work->key_top, work->slot_top };
}

/* Drops the set, and any above it. */
static inline void json_keys_end(struct json_work *work, struct json_level set)
{
	work->key_top = set.keys;
	work->slot_top = set.slots;
}

/* Adds `raw` to the newest set. `escaped`: it may hold a backslash. `end`: bytes are readable up to
 * there. KEYS_FULL when the set has `max` members or the work area is full. */
MUST_USE enum json_keys_answer json_keys_add(struct json_work *work, struct json_level set,
					     uint32_t max, struct slice raw, bool escaped,
					     const char *end);

/* Whether the set has `raw`; `top` is where its members end: json_keys_begin of the set above. */
bool json_keys_has(const struct json_work *work, struct json_level set, struct json_level top,
		   struct slice raw, const char *end);

#endif
