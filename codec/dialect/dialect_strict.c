/* dialect_strict.c - the second half of dialect_native.h: OpenAI's strict schemas. */
#include "codec/dialect/dialect_native.h"

#include "codec/dialect/dialect_names.h"
#include "codec/schema/schema_walk.h"

enum { LEVELS_MAX = 10 };

static const uint64_t strict_keywords =
	KEY_BIT(TYPE) | KEY_BIT(PROPERTIES) | KEY_BIT(REQUIRED) | KEY_BIT(ADDITIONAL) |
	KEY_BIT(ITEMS) | KEY_BIT(ANY_OF) | KEY_BIT(REF) | KEY_BIT(DEFS) | KEY_BIT(DEFINITIONS) |
	KEY_BIT(ENUM) | KEY_BIT(CONST) | KEY_BIT(DESCRIPTION) | KEY_BIT(TITLE) | KEY_BIT(FORMAT) |
	KEY_BIT(MIN_ITEMS) | KEY_BIT(MAX_ITEMS) | KEY_BIT(PATTERN) | KEY_BIT(MULTIPLE_OF) |
	KEY_BIT(MAXIMUM) | KEY_BIT(MINIMUM) | KEY_BIT(EXCLUSIVE_MAXIMUM) |
	KEY_BIT(EXCLUSIVE_MINIMUM) | KEY_BIT(SCHEMA);

/* The walk, and what a reference may mean: the names in "$defs" and in "definitions" of the root. */
struct strict {
	struct walk walk;
	struct name_table defs, definitions;
};

/* The keys of an object. */
static void take_names(struct walk *w, struct slice object, struct name_table *names)
{
	struct json_reader r;
	struct slice raw;

	name_table_init(names, w->work, w->into);
	json_open(&r, object, NULL, NULL);
	for (bool open = json_enter_object(&r); open && json_next_key(&r, &raw);) {
		struct slice plain = json_str_plain(raw, w->into);
		if (slice_absent(plain) || name_table_put(names, plain) == NAME_NONE)
			w->failed = true;
		if (w->failed || !json_skip(&r, NULL))
			return;
	}
}

static void take_definitions(struct strict *s, const struct node *root)
{
	/* what is no object is unfit as soon as it is walked */
	if (node_is(root, KEY_DEFS, JSON_OBJECT))
		take_names(&s->walk, root->by[KEY_DEFS]->value, &s->defs);
	if (node_is(root, KEY_DEFINITIONS, JSON_OBJECT))
		take_names(&s->walk, root->by[KEY_DEFINITIONS]->value, &s->definitions);
}

/* Whether every property is required and nothing else is. */
static bool all_required(struct walk *w, const struct node *node)
{
	struct json_reader r;
	struct name_table properties;
	struct slice raw, plain;

	take_names(w, node->by[KEY_PROPERTIES]->value, &properties);
	if (w->failed)
		return false;
	uint32_t required = 0;
	json_open(&r, node->by[KEY_REQUIRED]->value, NULL, NULL);
	for (bool open = json_enter_array(&r); open && json_next_item(&r); required++) {
		if (json_peek(&r) != JSON_STRING || !json_string(&r, &raw))
			return false;
		plain = json_str_plain(raw, w->into);
		w->failed = w->failed || slice_absent(plain);
		uint32_t at = w->failed ? NAME_NONE : name_table_find(&properties, plain);
		if (at == NAME_NONE || properties.entries[at].uses++ != 0)
			return false;
	}
	return required == properties.count;
}

static bool strict_object(struct walk *w, const struct node *node)
{
	return node_is(node, KEY_ADDITIONAL, JSON_FALSE) &&
	       node_is(node, KEY_PROPERTIES, JSON_OBJECT) &&
	       node_is(node, KEY_REQUIRED, JSON_ARRAY) && all_required(w, node);
}

/* A reference stands alone, and means the root or a definition there. Names that have to be escaped in
 * it are passed by: the tool is forced then. */
static bool strict_ref(struct strict *s, const struct node *node)
{
	static const struct slice defs = SLICE_INIT("#/$defs/"),
				  definitions = SLICE_INIT("#/definitions/");
	struct slice to;

	if (node->count != 1 || !node_is(node, KEY_REF, JSON_STRING))
		return false;
	to = json_str_plain(node_string(node, KEY_REF), s->walk.into);
	s->walk.failed = s->walk.failed || slice_absent(to);
	if (s->walk.failed || slice_eq(to, SLICE("#")))
		return !s->walk.failed;
	const bool newer = slice_starts(to, defs);
	if (!newer && !slice_starts(to, definitions))
		return false;
	const size_t front = newer ? defs.len : definitions.len;
	const struct slice name = slice_of(to.at + front, to.len - front);
	return memchr(name.at, '/', name.len) == NULL && memchr(name.at, '~', name.len) == NULL &&
	       memchr(name.at, '%', name.len) == NULL &&
	       name_table_find(newer ? &s->defs : &s->definitions, name) != NAME_NONE;
}

/* Whether the array is one, and has something in it. */
static bool has_items(const struct node *node, enum keyword keyword)
{
	struct json_reader r;

	json_open(&r, node->by[keyword]->value, NULL, NULL);
	return node_is(node, keyword, JSON_ARRAY) && json_enter_array(&r) && json_next_item(&r);
}

static bool strict_node(struct strict *s, const struct node *node, const struct item *item)
{
	struct walk *w = &s->walk;
	const uint64_t defs = KEY_BIT(DEFS) | KEY_BIT(DEFINITIONS) | KEY_BIT(SCHEMA);
	const uint64_t shapes =
		KEY_BIT(TYPE) | KEY_BIT(ANY_OF) | KEY_BIT(REF) | KEY_BIT(ENUM) | KEY_BIT(CONST);
	uint64_t keywords = node_keywords(node);

	if ((keywords & ~strict_keywords) != 0 || item->level > LEVELS_MAX)
		return false;
	if (item->level == 0 ? node_has(node, KEY_ANY_OF) || !node_type_is(node, "object")
			     : (keywords & defs) != 0)
		return false;
	if ((keywords & shapes) == 0 || (node_has(node, KEY_REF) && !strict_ref(s, node)))
		return false;
	if (node_has(node, KEY_FORMAT) && (!node_is(node, KEY_FORMAT, JSON_STRING) ||
					   !schema_format_known(node_string(node, KEY_FORMAT))))
		return false;
	if (node_has(node, KEY_ANY_OF) && !has_items(node, KEY_ANY_OF))
		return false;
	if (node_is(node, KEY_TYPE, JSON_ARRAY) &&
	    !walk_type_list_fits(w, node->by[KEY_TYPE]->value))
		return false;
	if (node_type_is(node, "array") && !node_is(node, KEY_ITEMS, JSON_OBJECT))
		return false;
	return !node_type_is(node, "object") || strict_object(w, node);
}

static void strict_members(struct walk *w, const struct item *item, const struct node *node)
{
	for (uint32_t i = 0; i < node->count && walk_going(w); i++) {
		const struct member *m = &node->members[i];
		if (m->keyword == KEY_ITEMS)
			walk_push_schema(w, item, m->value);
		else if (m->keyword == KEY_ANY_OF)
			walk_push_list(w, item, m);
		else if (m->keyword == KEY_PROPERTIES || m->keyword == KEY_DEFS ||
			 m->keyword == KEY_DEFINITIONS)
			walk_push_map(w, item, m);
	}
}

bool native_openai(struct slice schema, const struct json_work *work, struct arena *into,
		   struct slice *out, bool *moved)
{
	struct strict s;
	struct walk *w = &s.walk;
	struct node node;

	*out = (struct slice){ NULL, 0 };
	*moved = false;
	walk_begin(w, schema, work, into);
	name_table_init(&s.defs, work, into);
	name_table_init(&s.definitions, work, into);
	while (walk_going(w) && w->count != 0) {
		struct item item = w->items[--w->count];
		if (!item.schema || !node_read(w, item.text, &node))
			continue;
		if (item.level == 0)
			take_definitions(&s, &node);
		if (strict_node(&s, &node, &item))
			strict_members(w, &item, &node);
		else
			w->unfit = true;
	}
	if (!w->failed && !w->unfit)
		*out = schema;
	return !w->failed;
}
