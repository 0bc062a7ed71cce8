/* schema_walk.h - a bounded walk over a JSON Schema without recursion; private to codec/.
 *
 * The schema is the validated text of an object. What is still to be done lies on a stack: subschemas
 * to look into and, when a new schema is written, the texts between them. Whoever drives the walk
 * pops an item, reads it as a node, judges it, and pushes what is in it. `unfit` and `failed` (memory)
 * are sticky and end the walk. */
#ifndef CODEC_SCHEMA_SCHEMA_WALK_H
#define CODEC_SCHEMA_SCHEMA_WALK_H

#include "codec/base/arena.h"
#include "codec/json/json_read.h"

enum {
	SCHEMA_BYTES_MAX = 64 * 1024,
	SCHEMA_NODES_MAX = 4096,
	SCHEMA_DEFS_MAX = 64, /* bits of a mask */
};

enum keyword {
#define KEYWORD(symbol, text) KEY_##symbol,
#include "codec/tbl/keywords.h"
#undef KEYWORD
	KEY_OTHER,
	KEY_COUNT
};

/* Sets of keywords: one bit each. */
#define KEY_BIT(symbol) (UINT64_C(1) << KEY_##symbol)

struct member {
	struct slice key, value; /* key raw, value JSON text */
	enum keyword keyword;
	enum json_kind kind;
};

/* One subschema, its members in order and by keyword (NULL: not there). */
struct node {
	struct member *members;
	uint32_t count;
	const struct member *by[KEY_COUNT];
};

/* A text to write, or a subschema to look into. */
struct item {
	struct slice text;
	bool schema;
	uint8_t level; /* of nesting; the root is 0 */
	uint8_t owner; /* index of the definition it is in; SCHEMA_DEFS_MAX: none */
};

struct walk {
	struct arena *into;
	const struct json_work *work;
	struct item *items; /* last in, first out */
	uint32_t count, cap;
	struct member *members; /* of the node at hand */
	uint32_t member_cap;
	uint32_t nodes;
	uint32_t unions;                    /* types and subschemas of which one holds */
	struct slice defs[SCHEMA_DEFS_MAX]; /* raw names */
	enum keyword defs_in[SCHEMA_DEFS_MAX];
	uint32_t defs_count;
	uint64_t refers[SCHEMA_DEFS_MAX]; /* definition -> definitions */
	bool unfit, failed;
};

/* The root is on the stack; a schema over SCHEMA_BYTES_MAX is unfit. `work` gives a seed only. */
void walk_begin(struct walk *w, struct slice schema, const struct json_work *work,
		struct arena *into);

/* Neither unfit nor failed. */
bool walk_going(const struct walk *w);

/* ---- the stack ---- */

void walk_push(struct walk *w, struct slice text);

/* A subschema inside `parent`, one level deeper. */
void walk_push_schema(struct walk *w, const struct item *parent, struct slice text);

/* An object of subschemas ("properties", "$defs") or an array of them ("anyOf"), with the texts
 * between them. */
void walk_push_map(struct walk *w, const struct item *item, const struct member *m);
void walk_push_list(struct walk *w, const struct item *item, const struct member *m);

/* Turns over what was pushed since the stack had `from` items, so that it is popped in the order of
 * pushing. */
void walk_turn_over(struct walk *w, uint32_t from);

/* ---- nodes ---- */

/* `node` is valid until the next one is read. False, and the walk unfit, when `text` is no object. */
bool node_read(struct walk *w, struct slice text, struct node *node);

bool node_has(const struct node *node, enum keyword keyword);

/* Whether it is there and of that kind. */
bool node_is(const struct node *node, enum keyword keyword, enum json_kind kind);

/* The raw string of a member that is one. */
struct slice node_string(const struct node *node, enum keyword keyword);

/* Whether "type" is that one string. */
bool node_type_is(const struct node *node, const char *type);

/* All keywords of the node as bits. */
uint64_t node_keywords(const struct node *node);

/* ---- definitions ---- */

/* Takes the names in "$defs" or "definitions" of the root. */
void walk_read_defs(struct walk *w, const struct node *root, enum keyword container);

/* Index of the definition that "#/$defs/NAME" or "#/definitions/NAME" means; SCHEMA_DEFS_MAX for
 * every other reference. */
uint32_t walk_ref_target(struct walk *w, struct slice ref);

/* Whether a definition reaches itself by w->refers, which becomes its transitive closure. */
bool walk_is_recursive(struct walk *w);

/* ---- pieces ---- */

uint32_t schema_list_count(struct slice array);
uint32_t schema_map_count(struct slice object);

/* Counts a union. False when one of the types in the array has a shape of its own. */
bool walk_type_list_fits(struct walk *w, struct slice array);

/* A "format" that both providers know. */
bool schema_format_known(struct slice raw);

/* Of a raw key. */
enum keyword schema_keyword(struct slice key);

/* A raw key with the quotes that stand around it in the schema. */
struct slice schema_quoted(struct slice key);

#endif
