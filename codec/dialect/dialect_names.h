/* dialect_names.h - what tools and tool calls are called on the provider's side (providers.md 9);
 * private to codec/.
 *
 * Both are tables over plain strings under a seed that a caller cannot know, so that no list of names
 * makes them slow. They live in the request's arena, take no memory before the first entry, and
 * report exhausted memory as an absent slice or false. */
#ifndef CODEC_DIALECT_DIALECT_NAMES_H
#define CODEC_DIALECT_DIALECT_NAMES_H

#include "codec/dialect/dialect.h"
#include "codec/json/json_keys.h"

/* ---- a table of plain strings ---- */

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

/* ---- tools ---- */

enum { ALIAS_KEPT = 55 }; /* of a name, so that its alias has 64 bytes */

/* The first `kept` UTF-16 units of the name, with "_" for what is none of [a-zA-Z0-9_-] and not `also`, then "_" and
 * eight digits of a digest. Absent when memory is exhausted. */
MUST_USE struct slice name_alias(struct slice plain, char also, size_t kept, struct arena *into);

/* Names as the provider sees them, and the way back. */
struct tool_names {
	struct name_table known; /* names that need an alias -> alias */
	struct tool_alias *aliases;
	uint32_t alias_count, alias_cap;
};

static inline void tool_names_init(struct tool_names *tools, const struct json_work *work,
				   struct arena *into)
{
	*tools = (struct tool_names){ .known = { .into = into, .seed = work->seed } };
}

/* The name to send, a raw string: `raw` itself where the provider takes it, else its alias, which is
 * added to tools->aliases once. Absent when memory is exhausted. */
MUST_USE struct slice tool_name_sent(struct tool_names *tools, struct slice raw);

/* ---- calls ---- */

enum call_id_rule {
	CALL_ID_ANY,       /* in answers: only kept apart */
	CALL_ID_ANTHROPIC, /* [a-zA-Z0-9_-]+ */
	CALL_ID_OPENAI,    /* at most 40 bytes */
	CALL_ID_MISTRAL,   /* nine letters or digits */
};

struct call_ids {
	struct name_table known;
	enum call_id_rule rule;
};

static inline void call_ids_init(struct call_ids *ids, enum call_id_rule rule,
				 const struct json_work *work, struct arena *into)
{
	*ids = (struct call_ids){ .known = { .into = into, .seed = work->seed }, .rule = rule };
}

/* The id for a call that `raw` names, unlike every id given before, a raw string: the k-th use of an
 * id is id__k. Absent when memory is exhausted. */
MUST_USE struct slice call_id_use(struct call_ids *ids, struct slice raw);

/* The id that the latest use of `raw` was given, for its result; absent when memory is exhausted.
 * A use must have been. */
MUST_USE struct slice call_id_last(struct call_ids *ids, struct slice raw);

#endif
