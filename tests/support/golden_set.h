/* golden_set.h - the golden vectors in tests/golden: those of the reference that hold, those that are
 * pending, and our own, for formats that the reference has none of. */
#ifndef TESTS_SUPPORT_GOLDEN_SET_H
#define TESTS_SUPPORT_GOLDEN_SET_H

#include "codec/dialect/dialect.h"
#include "tests/support/json_tree.h"

enum {
	GOLDEN_COUNT = 337,   /* of the reference, passing and pending */
	GOLDEN_OWN_MAX = 100, /* of our own */
	GOLDEN_NAME_MAX = 512,
};

struct vector {
	char name[GOLDEN_NAME_MAX]; /* direction/file */
	struct slice text;
	struct json_tree *tree;
	bool own;
	bool request, streamed; /* streamed: `in` is the text of an event stream */
	enum dialect_id dialect;
};

struct golden_set {
	struct vector *vectors;
	size_t count, own_count; /* own_count: of count */
	struct slice pending;    /* pending.txt: a path and a reason a line */
	size_t pending_count;
};

/* Reads everything below $SLUICE_SOURCE (the working directory without one); exits when it cannot. */
void golden_load(struct golden_set *set);
void golden_free(struct golden_set *set);

/* Whether pending.txt names it, with a reason. */
bool golden_is_pending(const struct golden_set *set, const char *name);

/* The whole value of a member, as it stands in the vector's file. */
struct slice golden_value(const struct vector *vector, const struct json_tree *member);

/* The folder of the reference vectors ($SLUICE_SHARED/vectors, or ../shared/vectors), static; NULL
 * when it is not at hand. */
const char *golden_shared(void);

/* The whole file, malloc'ed; absent when it cannot be read. */
struct slice golden_read(const char *path);

struct dirent;
/* For scandir: names that end in .json. */
int golden_is_json(const struct dirent *entry);

#endif
