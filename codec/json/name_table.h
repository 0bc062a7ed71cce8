/* name_table.h - tables over plain strings; private to codec/.
 *
 * The hash has a seed that a caller cannot know, so that no list of names makes a table slow. A table lives in the
 * request's arena and takes no memory before its first entry. */
#ifndef CODEC_JSON_NAME_TABLE_H
#define CODEC_JSON_NAME_TABLE_H

#include "codec/base/arena.h"
#include "codec/json/json_keys.h"

enum { NAME_NONE = UINT32_MAX };

struct name_entry {
	struct slice key;   /* plain */
	struct slice value; /* the owner's: raw */
	uint32_t hash;
	uint32_t uses; /* the owner's: 0 in a new entry */
	bool taken;    /* the owner's: false in a new entry */
};

struct name_table {
	struct arena *into;
	uint64_t seed;
	struct name_entry *entries; /* in the order of arrival */
	uint32_t *slots;            /* index + 1; 0 is empty */
	uint32_t count, cap;
};

/* The hash that tables use. */
uint32_t name_hash(uint64_t seed, struct slice s);

/* `work` gives the seed only. */
static inline void name_table_init(struct name_table *names, const struct json_work *work,
				   struct arena *into)
{
	*names = (struct name_table){ .into = into, .seed = work->seed };
}

/* Index of the entry, or NAME_NONE. */
uint32_t name_table_find(const struct name_table *names, struct slice plain);

/* Index of the entry, made when there is none; NAME_NONE when memory is exhausted. */
MUST_USE uint32_t name_table_put(struct name_table *names, struct slice plain);

#endif
