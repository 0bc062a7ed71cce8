/* dialect_strict.c - the second half of dialect_native.h: OpenAI's strict schemas. */
#include "codec/dialect_native.h"

#include "codec/dialect_names.h"
#include "codec/schema_walk.h"

enum { LEVELS_MAX = 10 };

static const uint64_t strict_keywords =
	KEY_BIT(TYPE) | KEY_BIT(PROPERTIES) | KEY_BIT(REQUIRED) | KEY_BIT(ADDITIONAL) |
	KEY_BIT(ITEMS) | KEY_BIT(ANY_OF) | KEY_BIT(REF) | KEY_BIT(DEFS) | KEY_BIT(DEFINITIONS) |
	KEY_BIT(ENUM) | KEY_BIT(CONST) | KEY_BIT(DESCRIPTION) | KEY_BIT(TITLE) | KEY_BIT(FORMAT) |
	KEY_BIT(MIN_ITEMS) | KEY_BIT(MAX_ITEMS) | KEY_BIT(PATTERN) | KEY_BIT(MULTIPLE_OF) |
	KEY_BIT(MAXIMUM) | KEY_BIT(MINIMUM) | KEY_BIT(EXCLUSIVE_MAXIMUM) |
	KEY_BIT(EXCLUSIVE_MINIMUM) | KEY_BIT(SCHEMA);

/* Whether every property is required and nothing else is. */
static bool all_required(struct walk *w, const struct node *node)
{
	struct json_reader r;
	struct name_table properties;
	struct slice raw, plain;

	name_table_init(&properties, w->work, w->into);
	json_open(&r, node->by[KEY_PROPERTIES]->value, NULL, NULL);
	for (bool open = json_enter_object(&r); open && json_next_key(&r, &raw);) {
		plain = json_str_plain(raw, w->into);
		if (slice_absent(plain) || name_table_put(&properties, plain) == NAME_NONE)
			w->failed = true;
		if (w->failed || !json_skip(&r, NULL))
			return false;
	}
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

static bool strict_node(struct walk *w, const struct node *node, const struct item *item)
{
	const uint64_t defs = KEY_BIT(DEFS) | KEY_BIT(DEFINITIONS) | KEY_BIT(SCHEMA);
	const uint64_t shapes =
		KEY_BIT(TYPE) | KEY_BIT(ANY_OF) | KEY_BIT(REF) | KEY_BIT(ENUM) | KEY_BIT(CONST);
	uint64_t keywords = node_keywords(node);

	if ((keywords & ~strict_keywords) != 0 || item->level > LEVELS_MAX)
		return false;
	if (item->level == 0 ? node_has(node, KEY_ANY_OF) || !node_type_is(node, "object")
			     : (keywords & defs) != 0)
		return false;
	if ((keywords & shapes) == 0 ||
	    (node_has(node, KEY_REF) && !node_is(node, KEY_REF, JSON_STRING)))
		return false;
	if (node_has(node, KEY_FORMAT) && (!node_is(node, KEY_FORMAT, JSON_STRING) ||
					   !schema_format_known(node_string(node, KEY_FORMAT))))
		return false;
	if (node_has(node, KEY_ANY_OF) && !node_is(node, KEY_ANY_OF, JSON_ARRAY))
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
	struct walk w;
	struct node node;

	*out = (struct slice){ NULL, 0 };
	*moved = false;
	walk_begin(&w, schema, work, into);
	while (walk_going(&w) && w.count != 0) {
		struct item item = w.items[--w.count];
		if (!item.schema || !node_read(&w, item.text, &node))
			continue;
		if (strict_node(&w, &node, &item))
			strict_members(&w, &item, &node);
		else
			w.unfit = true;
	}
	if (!w.failed && !w.unfit)
		*out = schema;
	return !w.failed;
}
