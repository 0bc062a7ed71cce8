/* schema_tree.h - a JSON text as a tree of values, for what looks at the same one many times; private to
 * codec/.
 *
 * Strings are unescaped and everything is hashed on the way, so that members are found by their keys and
 * values told apart without reading them again. The tree points into the text and the arena, and does not
 * change. No recursion over input. */
#ifndef CODEC_SCHEMA_SCHEMA_TREE_H
#define CODEC_SCHEMA_SCHEMA_TREE_H

#include "codec/base/arena.h"
#include "codec/json/json_read.h"

enum { TREE_VALUES_MAX = 16384 };

struct tree_value {
	uint8_t kind;       /* enum json_kind */
	uint8_t keyword;    /* enum keyword of `key`, where the tree is a schema's */
	uint32_t count;     /* of members: an array's or an object's */
	uint32_t key_hash;  /* 0 where there is no key */
	uint32_t text_hash; /* of a string: what its key_hash would be */
	uint64_t hash;      /* values that mean the same have the same one */
	struct slice key;   /* plain; of an object's member */
	struct slice text;  /* a string's meaning; of everything else its JSON text */
	const struct tree_value *members;
};

/* The tree of `text`, which is valid JSON. `work` gives the seed of the hashes only: values of two trees
 * can be compared when both had the same one. `schema`: keywords are wanted. *out is NULL when the text
 * has more than TREE_VALUES_MAX values or is nested more deeply than json_limits_default allows. ERR_BUSY
 * when memory is exhausted. */
MUST_USE enum err tree_read(struct slice text, const struct json_work *work, struct arena *into,
			    bool schema, const struct tree_value **out);

/* What comparing and finding may cost: a look is a value or a search, and every 64 keys, 2,048 bytes of
 * texts or 32 of numbers that were read for it. When nothing is left the answer is no, whatever it would be, and *looks is 0. */

/* Whether both mean the same: numbers by value, members in any order. */
bool tree_same(const struct tree_value *a, const struct tree_value *b, uint32_t *looks);

/* The member of an object under that plain key, whose hash is a value's key_hash or text_hash; NULL: there
 * is none. *near is where to look first, 0 at the beginning: members mostly come in the same order. */
const struct tree_value *tree_find(const struct tree_value *object, struct slice key, uint32_t hash,
				   uint32_t *near, uint32_t *looks);

/* Takes `count` of what is left; false, and nothing is, when that is less. */
bool tree_charge(uint32_t *left, size_t count);

#endif
