/* dialect_names.h - what tools and tool calls are called on the provider's side (providers.md 9);
 * private to codec/.
 *
 * Both are tables of names (json/name_table.h); exhausted memory is an absent slice or false. */
#ifndef CODEC_DIALECT_DIALECT_NAMES_H
#define CODEC_DIALECT_DIALECT_NAMES_H

#include "codec/dialect/dialect.h"
#include "codec/json/name_table.h"

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
