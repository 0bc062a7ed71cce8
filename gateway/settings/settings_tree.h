/* settings_tree.h - a YAML text as a tree with line numbers, and the one way to report a problem.
 *
 * Private to settings*.c. A tree is built from libyaml's events without recursion and bounded in
 * depth. Anchors, aliases, tags, several documents and keys given twice are problems. */
#ifndef GATEWAY_SETTINGS_SETTINGS_TREE_H
#define GATEWAY_SETTINGS_SETTINGS_TREE_H

#include "codec/base/arena.h"
#include "codec/base/attr.h"
#include "codec/base/slice.h"

#include <stdint.h>
#include <stdio.h>

enum { TREE_DEPTH_MAX = 16, PROBLEMS_MAX = 50, PROBLEM_PATH_MAX = 512 };

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
	enum node_kind kind;
	bool plain;        /* a scalar without quotes: may be a number, true, null */
	uint32_t line;     /* of the key where there is one; from 1 */
	uint32_t index;    /* in the parent */
	uint32_t count;    /* children */
	const char *file;  /* for messages */
	struct slice key;  /* absent unless the parent is a map */
	struct slice text; /* of a scalar */
	struct node *parent, *first, *last, *next; /* a scalar as parent: not part of paths */
};

struct problems {
	FILE *out;
	uint32_t count;
};

/* "file:line: where: message". Nothing is printed beyond PROBLEMS_MAX but one line that says so. */
void problem_in(struct problems *problems, const char *file, uint32_t line, const char *where,
		const char *format, ...) PRINTF_LIKE(5, 6);
/* At a node, named by its path. */
void problem_at(struct problems *problems, const struct node *node, const char *format, ...)
	PRINTF_LIKE(3, 4);
/* At the node, or deepest group, that `key` ("models.default") leads to below `node`; the message
 * names the whole path. */
void problem_below(struct problems *problems, const struct node *node, const char *key,
		   const char *format, ...) PRINTF_LIKE(4, 5);
static inline bool problems_full(const struct problems *problems)
{
	return problems->count >= PROBLEMS_MAX;
}

/* "providers.main.endpoints[0]"; control characters replaced, cut at `room`. */
void node_path(const struct node *node, char *out, size_t room);

/* The child of a map, NULL when there is none or `node` is no map. `key` may be a path with dots. */
const struct node *node_find(const struct node *node, const char *key);

/* A plain scalar that YAML reads as null (an absent value, ~, null). */
bool node_is_null(const struct node *node);
/* A plain scalar that YAML reads as a number, true, false or null: not a text. */
bool node_is_untext(const struct node *node);

/* ---- reading ---- */
struct tree;

/* Starts on `text`, which must outlive the tree, as do `file` and `problems`. NULL: memory. */
struct tree *tree_new(struct problems *problems, const char *file, struct slice text);
/* Also overwrites what libyaml still holds. Accepts a pointer to NULL. */
void tree_free(struct tree **tree);

/* The whole document. NULL after a problem. */
const struct node *tree_document(struct tree *tree, struct arena *into);

/* For long lists, one entry at a time: after tree_list has found that the document is a list (else
 * false, after a problem), each tree_next gives one entry, in `into`, NULL at the end or after a
 * problem. */
MUST_USE bool tree_list(struct tree *tree);
const struct node *tree_next(struct tree *tree, struct arena *into);

#endif
