#include "codec/dialect/dialect_native.h"

#include "codec/json/json_write.h"
#include "codec/schema/schema_walk.h"

enum {
	LEVELS_MAX = 16,
	OPTIONALS_MAX = 24, /* Anthropic compiles no more optional properties than these */
	UNIONS_MAX = 16,    /* and no more unions */
};

struct transform {
	struct walk walk;
	uint32_t optionals; /* properties that are not required */
	struct gather out;
	bool moved; /* something went into a description */
};

/* The JSON kind that all values of an enum have; JSON_BAD: several, none, or not scalars. */
static enum json_kind enum_kind(struct slice array)
{
	struct json_reader r;
	enum json_kind all = JSON_BAD;

	json_open(&r, array, NULL, NULL);
	if (json_peek(&r) != JSON_ARRAY || !json_enter_array(&r))
		return JSON_BAD;
	while (json_next_item(&r)) {
		enum json_kind kind = json_peek(&r);
		if (kind == JSON_TRUE)
			kind = JSON_FALSE;
		if (kind == JSON_OBJECT || kind == JSON_ARRAY || (all != JSON_BAD && kind != all))
			return JSON_BAD;
		all = kind;
		if (!json_skip(&r, NULL))
			return JSON_BAD;
	}
	return all;
}

static bool enum_is_scalar(struct slice array)
{
	struct json_reader r;

	json_open(&r, array, NULL, NULL);
	if (json_peek(&r) != JSON_ARRAY || !json_enter_array(&r))
		return false;
	while (json_next_item(&r)) {
		enum json_kind kind = json_peek(&r);
		if (kind == JSON_OBJECT || kind == JSON_ARRAY || !json_skip(&r, NULL))
			return false;
	}
	return true;
}

/* The type that a schema without one means by its values; absent when that is not one type. */
static struct slice implied_type(const struct node *node)
{
	enum json_kind kind = JSON_BAD;

	if (node_has(node, KEY_ENUM))
		kind = enum_kind(node->by[KEY_ENUM]->value);
	else if (node_has(node, KEY_CONST))
		kind = node->by[KEY_CONST]->kind;
	switch (kind) {
	case JSON_STRING:
		return SLICE("string");
	case JSON_NUMBER:
		return SLICE("number");
	case JSON_TRUE:
	case JSON_FALSE:
		return SLICE("boolean");
	case JSON_NULL:
		return SLICE("null");
	default:
		return (struct slice){ NULL, 0 };
	}
}

static bool object_fits(struct transform *t, const struct node *node)
{
	if (node_has(node, KEY_PATTERN_PROPERTIES) ||
	    (node_has(node, KEY_ADDITIONAL) && !node_is(node, KEY_ADDITIONAL, JSON_FALSE)))
		return false;
	if (!node_is(node, KEY_PROPERTIES, JSON_OBJECT)) /* a free map, unless it is closed */
		return !node_has(node, KEY_PROPERTIES) && node_has(node, KEY_ADDITIONAL);
	uint32_t properties = schema_map_count(node->by[KEY_PROPERTIES]->value), required = 0;
	if (node_is(node, KEY_REQUIRED, JSON_ARRAY))
		required = schema_list_count(node->by[KEY_REQUIRED]->value);
	else if (node_has(node, KEY_REQUIRED))
		return false;
	if (properties == 0 && !node_has(node, KEY_ADDITIONAL))
		return false;
	if (required < properties)
		t->optionals += properties - required;
	return t->optionals <= OPTIONALS_MAX;
}

/* A lone anyOf or oneOf: nothing beside it that says what the value is. */
static bool union_fits(struct walk *w, const struct node *node)
{
	const uint64_t shapes = KEY_BIT(TYPE) | KEY_BIT(PROPERTIES) | KEY_BIT(ITEMS) |
				KEY_BIT(ENUM) | KEY_BIT(CONST) | KEY_BIT(ALL_OF);
	enum keyword keyword = node_has(node, KEY_ANY_OF) ? KEY_ANY_OF : KEY_ONE_OF;

	w->unions++;
	return node_is(node, keyword, JSON_ARRAY) &&
	       schema_list_count(node->by[keyword]->value) != 0 &&
	       (node_keywords(node) & shapes) == 0 &&
	       !(node_has(node, KEY_ANY_OF) && node_has(node, KEY_ONE_OF));
}

static bool node_fits(struct transform *t, const struct node *node, const struct item *item)
{
	struct walk *w = &t->walk;

	if (item->level > LEVELS_MAX || node_has(node, KEY_PREFIX_ITEMS) ||
	    node_has(node, KEY_DYNAMIC_REF) ||
	    (item->level > 0 && (node_has(node, KEY_DEFS) || node_has(node, KEY_DEFINITIONS))) ||
	    (node_has(node, KEY_DESCRIPTION) && !node_is(node, KEY_DESCRIPTION, JSON_STRING)) ||
	    (node_has(node, KEY_ENUM) && !enum_is_scalar(node->by[KEY_ENUM]->value)))
		return false;
	if (node_has(node, KEY_ANY_OF) || node_has(node, KEY_ONE_OF))
		return union_fits(w, node) && w->unions <= UNIONS_MAX;
	if (node_has(node, KEY_ALL_OF)) /* closed objects exclude each other */
		return false;
	if (!node_has(node, KEY_TYPE))
		return !slice_absent(implied_type(node));
	if (node_is(node, KEY_TYPE, JSON_ARRAY))
		return walk_type_list_fits(w, node->by[KEY_TYPE]->value) && w->unions <= UNIONS_MAX;
	if (node_type_is(node, "object"))
		return object_fits(t, node);
	if (node_type_is(node, "array"))
		return node_is(node, KEY_ITEMS, JSON_OBJECT);
	return node_is(node, KEY_TYPE, JSON_STRING);
}

enum fate {
	FATE_KEEP,
	FATE_DROP,
	FATE_MOVE,
	FATE_SCHEMA,
	FATE_MAP,
	FATE_LIST,
	FATE_DESCRIPTION,
	FATE_CLOSED
};

/* What becomes of a member; everything unknown moves into the description. */
static enum fate fate_of(const struct node *node, const struct member *m)
{
	bool object = node_type_is(node, "object"), array = node_type_is(node, "array");

	switch (m->keyword) {
	case KEY_TYPE:
	case KEY_TITLE:
	case KEY_ENUM:
	case KEY_CONST:
		return FATE_KEEP;
	case KEY_DESCRIPTION:
		return FATE_DESCRIPTION;
	case KEY_SCHEMA:
	case KEY_ID:
	case KEY_COMMENT:
		return FATE_DROP;
	case KEY_ANY_OF:
	case KEY_ONE_OF:
		return FATE_LIST;
	case KEY_DEFS:
	case KEY_DEFINITIONS:
		return FATE_MAP;
	case KEY_PROPERTIES:
		return object ? FATE_MAP : FATE_MOVE;
	case KEY_REQUIRED:
		return object ? FATE_KEEP : FATE_MOVE;
	case KEY_ADDITIONAL:
		return object ? FATE_CLOSED : FATE_MOVE;
	case KEY_ITEMS:
		return array ? FATE_SCHEMA : FATE_MOVE;
	case KEY_MIN_ITEMS:
		return array && (slice_eq(m->value, SLICE("0")) || slice_eq(m->value, SLICE("1")))
			       ? FATE_KEEP
			       : FATE_MOVE;
	case KEY_FORMAT:
		return node_type_is(node, "string") && m->kind == JSON_STRING &&
				       schema_format_known(node_string(node, KEY_FORMAT))
			       ? FATE_KEEP
			       : FATE_MOVE;
	default:
		return FATE_MOVE;
	}
}

/* The description with what has to move into it; absent when there is neither. */
static struct slice description_of(struct transform *t, const struct node *node)
{
	struct gather g;
	uint32_t moved = 0;

	gather_init(&g, t->walk.into);
	gather_lit(&g, "\"");
	struct slice own = { NULL, 0 };
	if (node_has(node, KEY_DESCRIPTION))
		own = node_string(node, KEY_DESCRIPTION);
	gather_raw(&g, own);
	for (uint32_t i = 0; i < node->count; i++) {
		const struct member *m = &node->members[i];
		if (fate_of(node, m) != FATE_MOVE)
			continue;
		if (moved++ == 0)
			gather_raw(&g, own.len != 0 ? SLICE("\\n\\n{") : SLICE("{"));
		else
			gather_lit(&g, ", ");
		gather_raw(&g, m->key);
		gather_lit(&g, ": ");
		gather_json_escaped(&g, m->value);
	}
	gather_raw(&g, moved != 0 ? SLICE("}\"") : SLICE("\""));
	t->moved |= moved != 0;
	if (moved == 0 && !node_has(node, KEY_DESCRIPTION))
		return (struct slice){ NULL, 0 };
	struct slice text = gather_flat(&g, t->walk.into);
	t->walk.failed = t->walk.failed || slice_absent(text);
	return text;
}

static void push_key(struct walk *w, bool *first, struct slice quoted_key)
{
	walk_push(w, *first ? SLICE("{") : SLICE(","));
	walk_push(w, quoted_key);
	walk_push(w, SLICE(":"));
	*first = false;
}

static void push_member(struct walk *w, const struct item *item, const struct node *node,
			const struct member *m, struct slice description, bool *first)
{
	enum fate fate = fate_of(node, m);

	if (fate == FATE_DROP || fate == FATE_MOVE)
		return;
	push_key(w, first, m->keyword == KEY_ONE_OF ? SLICE("\"anyOf\"") : schema_quoted(m->key));
	switch (fate) {
	case FATE_SCHEMA:
		walk_push_schema(w, item, m->value);
		break;
	case FATE_MAP:
		walk_push_map(w, item, m);
		break;
	case FATE_LIST:
		walk_push_list(w, item, m);
		break;
	case FATE_DESCRIPTION:
		walk_push(w, description);
		break;
	case FATE_CLOSED:
		walk_push(w, SLICE("false"));
		break;
	default:
		walk_push(w, m->value);
	}
}

/* Only the reference remains, as in the SDK: the definition says the rest. */
static void push_ref(struct walk *w, const struct item *item, const struct node *node)
{
	uint32_t target = node_is(node, KEY_REF, JSON_STRING)
				  ? walk_ref_target(w, node_string(node, KEY_REF))
				  : SCHEMA_DEFS_MAX;

	if (target == SCHEMA_DEFS_MAX || item->level == 0) {
		w->unfit = true;
		return;
	}
	if (item->owner < SCHEMA_DEFS_MAX)
		w->refers[item->owner] |= UINT64_C(1) << target;
	walk_push(w, SLICE("{\"$ref\":"));
	walk_push(w, node->by[KEY_REF]->value);
	walk_push(w, SLICE("}"));
}

static void push_node(struct transform *t, const struct item *item, const struct node *node)
{
	struct slice description = description_of(t, node);
	struct walk *w = &t->walk;
	bool first = true;

	for (uint32_t i = 0; i < node->count; i++)
		push_member(w, item, node, &node->members[i], description, &first);
	if (!node_has(node, KEY_TYPE) && !node_has(node, KEY_ANY_OF) &&
	    !node_has(node, KEY_ONE_OF)) {
		push_key(w, &first, SLICE("\"type\""));
		walk_push(w, SLICE("\""));
		walk_push(w, implied_type(node));
		walk_push(w, SLICE("\""));
	}
	if (node_type_is(node, "object") && !node_has(node, KEY_ADDITIONAL)) {
		push_key(w, &first, SLICE("\"additionalProperties\""));
		walk_push(w, SLICE("false"));
	}
	if (!slice_absent(description) && !node_has(node, KEY_DESCRIPTION)) {
		push_key(w, &first, SLICE("\"description\""));
		walk_push(w, description);
	}
	walk_push(w, SLICE("}"));
}

static void transform_node(struct transform *t, struct item item)
{
	struct walk *w = &t->walk;
	uint32_t from = w->count;
	struct node node;

	if (!node_read(w, item.text, &node))
		return;
	if (item.level == 0) {
		w->unfit |= !node_type_is(&node, "object");
		walk_read_defs(w, &node, KEY_DEFS);
		walk_read_defs(w, &node, KEY_DEFINITIONS);
	}
	if (node_has(&node, KEY_REF))
		push_ref(w, &item, &node);
	else if (walk_going(w) && node_fits(t, &node, &item))
		push_node(t, &item, &node);
	else
		w->unfit = true;
	walk_turn_over(w, from);
}

bool native_anthropic(struct slice schema, const struct json_work *work, struct arena *into,
		      struct slice *out, bool *moved)
{
	struct transform t = { .moved = false };
	struct walk *w = &t.walk;

	*out = (struct slice){ NULL, 0 };
	walk_begin(w, schema, work, into);
	gather_init(&t.out, into);
	while (walk_going(w) && w->count != 0) {
		struct item item = w->items[--w->count];
		if (item.schema)
			transform_node(&t, item);
		else
			gather_raw(&t.out, item.text);
	}
	if (w->failed || w->unfit || walk_is_recursive(w))
		return !w->failed;
	*out = gather_flat(&t.out, into);
	*moved = t.moved;
	return !slice_absent(*out);
}
