/* json_tree.h - JSON as a tree, and whether two trees mean the same. For tests only: it mallocs. */
#ifndef TESTS_SUPPORT_JSON_TREE_H
#define TESTS_SUPPORT_JSON_TREE_H

#include "codec/json/json_read.h"

struct json_tree {
	enum json_kind kind;
	struct slice key;  /* raw; of a member of an object, else absent */
	struct slice text; /* string: raw, without quotes; container: absent; else all of it */
	struct json_tree *parent, *first, *last, *next;
};

/* NULL when `text` is not JSON; `text` must outlive the tree. */
struct json_tree *json_tree_parse(struct slice text);

/* NULL is fine. */
void json_tree_free(struct json_tree *tree);

/* The value behind member names separated by dots: "context.tools"; NULL when there is none. `tree`
 * may be NULL. */
const struct json_tree *json_tree_get(const struct json_tree *tree, const char *path);

/* The meaning of a string there, malloc'ed and with a NUL behind it; absent when it is not a string.
 * Free slice.at. */
struct slice json_tree_string(const struct json_tree *tree, const char *path);

/* Whether a boolean true is there. */
bool json_tree_true(const struct json_tree *tree, const char *path);

/* Whether both mean the same: members in any order, elements in order, strings by meaning, numbers by
 * their text, and the string function.arguments as the JSON in it. `subset`: `have` may hold members
 * more than `want`. On a difference `why` (`size` bytes) says where. */
bool json_tree_same(const struct json_tree *want, const struct json_tree *have, bool subset,
		    char *why, size_t size);

#endif
