/* schema_odd.h - what some providers refuse in a tool's schema; private to codec/.
 *
 * Reading a request notes which of these a schema may have: none is missed, and one that is noted may turn out not
 * to be there. Only a schema with one that its provider refuses is looked at again (dialect_mend.h). */
#ifndef CODEC_JSON_SCHEMA_ODD_H
#define CODEC_JSON_SCHEMA_ODD_H

#include "codec/json/json_keys.h"

#include <stdbool.h>

enum schema_odd {
	SCHEMA_ODD_KEYS = 1,   /* the name of a property is not [a-zA-Z0-9_.-]{1,64} */
	SCHEMA_ODD_ARRAYS = 2, /* an array without "items" */
	SCHEMA_ODD_NULLS = 4,  /* a keyword whose value is null */
	SCHEMA_ODD_ALL = 7,
};

enum { SCHEMA_KEY_MAX = 64 };

/* Whether one of the keys [key, end) is empty, too long, or has something else than letters, digits and underscores:
 * a dash or a dot, too, which may be there but seldom are. Sixteen bytes are readable at each. */
bool schema_keys_odd(const struct json_key *key, const struct json_key *end);

/* The same, for keys of which only their own bytes are readable. */
bool schema_keys_odd_slowly(const struct json_key *key, const struct json_key *end);

/* Whether the string of five letters from the quote `at` on, with 17 bytes behind it, is "array", and "items" is neither
 * next nor one of the keys [key, end), which are those of the object so far. */
bool schema_array_odd(const char *at, const struct json_key *key, const struct json_key *end);

/* Whether null under that key is something else than a value of the schema's author. */
bool schema_null_odd(const struct json_key *key);

#endif
