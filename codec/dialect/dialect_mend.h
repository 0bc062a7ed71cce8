/* dialect_mend.h - what one host refuses inside a tool's schema, for the whole request; private to codec/.
 *
 * Names of properties that the provider does not take get an alias, in "properties", in what names them ("required",
 * "dependentRequired" and their like, "$ref") and in the calls of the history, and have their own names again in the
 * arguments of answers. An array gets "items" that allow everything, and a keyword that is null is left out: both mean
 * what they meant. Only places of schemas are looked at, never values under "enum", "const" or "default". The work is
 * linear in the schema, and an alias depends on the schema alone. */
#ifndef CODEC_DIALECT_DIALECT_MEND_H
#define CODEC_DIALECT_DIALECT_MEND_H

#include "codec/dialect/dialect_names.h"
#include "codec/json/schema_odd.h"

/* ---- names of properties ---- */

/* The names that one tool's schema has an alias for. */
struct key_group {
	struct name_table aliases; /* name -> alias */
};

/* Those of all tools, and the way back. */
struct key_names {
	struct name_table tools; /* the server's name -> `uses`: index + 1 of its group */
	struct key_group *groups;
	uint32_t group_count, group_cap;
	struct key_list list;
};

static inline void key_names_init(struct key_names *keys, const struct json_work *work,
				  struct arena *into)
{
	*keys = (struct key_names){ .tools = { .into = into, .seed = work->seed } };
}

/* The group of the tool with that raw name; *out is NULL when it has none. False when memory is exhausted. */
MUST_USE bool key_names_find(const struct key_names *keys, struct slice tool,
			     const struct key_group **out);

/* The JSON text with the keys that are in `names` (plain -> raw) called as they say there, at any depth; the same text
 * where there is none. One object may have a name twice then. Absent when memory is exhausted. */
MUST_USE struct slice keys_renamed(struct slice json, const struct name_table *names,
				   struct arena *into);

/* Leaves of such members the last one, where there are any: *twice. False when memory is exhausted. */
MUST_USE bool keys_once(struct slice *json, struct json_work *work, struct arena *into,
			bool *twice);

/* ---- schemas ---- */

/* Whether the schema, the validated text of an object, has a property whose name is refused. False when memory is
 * exhausted. */
MUST_USE bool schema_refuses_key(struct slice schema, const struct json_work *work,
				 struct arena *into, bool *refuses);

/* *out: the schema without what `odd` (a set of enum schema_odd) names; itself where there is none of it. Aliases are
 * added to `keys` under the tool's raw name. False when memory is exhausted. */
MUST_USE bool schema_mend(struct slice schema, uint8_t odd, struct slice tool,
			  struct key_names *keys, const struct json_work *work, struct arena *into,
			  struct slice *out);

#endif
