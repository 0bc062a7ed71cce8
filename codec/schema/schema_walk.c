#include "codec/schema/schema_walk.h"

enum { FIRST = 32 };

static const struct slice keyword_texts[KEY_OTHER] = {
#define KEYWORD(symbol, text) SLICE_INIT(text),
#include "codec/tbl/keywords.h"
#undef KEYWORD
};

static void *take(struct walk *w, size_t size)
{
	void *bytes = arena_take(w->into, size);

	w->failed = w->failed || bytes == NULL;
	return bytes;
}

bool walk_going(const struct walk *w)
{
	return !w->unfit && !w->failed;
}

/* ---- the stack ---- */

static void push_item(struct walk *w, struct item item)
{
	if (w->count == w->cap) {
		uint32_t cap = w->cap == 0 ? FIRST : 2 * w->cap;
		struct item *grown = take(w, cap * sizeof(*grown));
		if (grown == NULL)
			return;
		if (w->count != 0)
			(void)memcpy(grown, w->items, w->count * sizeof(*grown));
		w->items = grown;
		w->cap = cap;
	}
	w->items[w->count++] = item;
}

void walk_push(struct walk *w, struct slice text)
{
	push_item(w, (struct item){ .text = text });
}

void walk_push_schema(struct walk *w, const struct item *parent, struct slice text)
{
	push_item(w, (struct item){ .text = text,
				    .schema = true,
				    .level = (uint8_t)(parent->level + 1),
				    .owner = parent->owner });
}

/* Items are pushed in the order of the text and done from the top. */
void walk_turn_over(struct walk *w, uint32_t from)
{
	for (uint32_t low = from, high = w->count; low + 1 < high; low++) {
		struct item item = w->items[low];
		w->items[low] = w->items[--high];
		w->items[high] = item;
	}
}

/* ---- reading a node ---- */

enum keyword schema_keyword(struct slice key)
{
	bool escaped = memchr(key.at, '\\', key.len) != NULL;

	for (int i = 0; i < KEY_OTHER; i++)
		if (escaped ? json_str_eq(key, keyword_texts[i]) : slice_eq(key, keyword_texts[i]))
			return (enum keyword)i;
	return KEY_OTHER;
}

static bool members_grow(struct walk *w)
{
	uint32_t cap = w->member_cap == 0 ? FIRST : 2 * w->member_cap;
	struct member *grown = take(w, cap * sizeof(*grown));

	if (grown == NULL)
		return false;
	if (w->member_cap != 0)
		(void)memcpy(grown, w->members, w->member_cap * sizeof(*grown));
	w->members = grown;
	w->member_cap = cap;
	return true;
}

/* Valid until the next node is read. False when it is no object, which is unfit. */
bool node_read(struct walk *w, struct slice text, struct node *node)
{
	struct json_reader r;
	struct member m;

	*node = (struct node){ 0 };
	json_open(&r, text, NULL, NULL);
	if (++w->nodes > SCHEMA_NODES_MAX || json_peek(&r) != JSON_OBJECT ||
	    !json_enter_object(&r)) {
		w->unfit = true;
		return false;
	}
	while (json_next_key(&r, &m.key)) {
		m.kind = json_peek(&r);
		m.keyword = schema_keyword(m.key);
		if (!json_skip(&r, &m.value) || (node->count == w->member_cap && !members_grow(w)))
			return false;
		w->members[node->count++] = m;
	}
	node->members = w->members;
	for (uint32_t i = 0; i < node->count; i++)
		node->by[w->members[i].keyword] = &w->members[i];
	return true;
}

bool node_has(const struct node *node, enum keyword keyword)
{
	return node->by[keyword] != NULL;
}

bool node_is(const struct node *node, enum keyword keyword, enum json_kind kind)
{
	return node_has(node, keyword) && node->by[keyword]->kind == kind;
}

/* The inside of a member that is a string. */
struct slice node_string(const struct node *node, enum keyword keyword)
{
	struct slice value = node->by[keyword]->value;

	return slice_of(value.at + 1, value.len - 2);
}

bool node_type_is(const struct node *node, const char *type)
{
	return node_is(node, KEY_TYPE, JSON_STRING) &&
	       json_str_eq(node_string(node, KEY_TYPE), slice_str(type));
}

uint64_t node_keywords(const struct node *node)
{
	uint64_t set = 0;

	for (int i = 0; i < KEY_COUNT; i++)
		if (node->by[i] != NULL)
			set |= UINT64_C(1) << i;
	return set;
}

uint32_t schema_list_count(struct slice array)
{
	struct json_reader r;
	uint32_t count = 0;

	json_open(&r, array, NULL, NULL);
	if (!json_enter_array(&r))
		return 0;
	while (json_next_item(&r) && json_skip(&r, NULL))
		count++;
	return count;
}

uint32_t schema_map_count(struct slice object)
{
	struct json_reader r;
	struct slice key;
	uint32_t count = 0;

	json_open(&r, object, NULL, NULL);
	if (!json_enter_object(&r))
		return 0;
	while (json_next_key(&r, &key) && json_skip(&r, NULL))
		count++;
	return count;
}

/* ---- definitions ---- */

void walk_read_defs(struct walk *w, const struct node *root, enum keyword container)
{
	struct json_reader r;
	struct slice name;

	if (!node_has(root, container))
		return;
	json_open(&r, root->by[container]->value, NULL, NULL);
	if (json_peek(&r) != JSON_OBJECT || !json_enter_object(&r)) {
		w->unfit = true;
		return;
	}
	while (json_next_key(&r, &name) && json_skip(&r, NULL)) {
		if (w->defs_count == SCHEMA_DEFS_MAX) {
			w->unfit = true;
			return;
		}
		w->defs[w->defs_count] = name;
		w->defs_in[w->defs_count++] = container;
	}
}

static uint32_t def_find(const struct walk *w, enum keyword container, struct slice plain)
{
	for (uint32_t i = 0; i < w->defs_count; i++)
		if (w->defs_in[i] == container && json_str_eq(w->defs[i], plain))
			return i;
	return SCHEMA_DEFS_MAX;
}

/* Index of the definition that "#/$defs/NAME" or "#/definitions/NAME" means; SCHEMA_DEFS_MAX when it is
 * another reference. */
uint32_t walk_ref_target(struct walk *w, struct slice ref)
{
	struct slice rest = json_str_plain(ref, w->into);

	if (slice_absent(rest)) {
		w->failed = true;
		return SCHEMA_DEFS_MAX;
	}
	if (!slice_eq(slice_cut(&rest, '/'), SLICE("#")))
		return SCHEMA_DEFS_MAX;
	struct slice container = slice_cut(&rest, '/');
	if (slice_absent(rest))
		return SCHEMA_DEFS_MAX;
	if (slice_eq(container, SLICE("$defs")))
		return def_find(w, KEY_DEFS, rest);
	if (slice_eq(container, SLICE("definitions")))
		return def_find(w, KEY_DEFINITIONS, rest);
	return SCHEMA_DEFS_MAX;
}

/* Whether a definition reaches itself. */
bool walk_is_recursive(struct walk *w)
{
	uint64_t *refers = w->refers;

	for (uint32_t via = 0; via < w->defs_count; via++)
		for (uint32_t i = 0; i < w->defs_count; i++)
			if (refers[i] >> via & 1)
				refers[i] |= refers[via];
	for (uint32_t i = 0; i < w->defs_count; i++)
		if (refers[i] >> i & 1)
			return true;
	return false;
}

/* ---- pushing what a member holds ---- */

/* The key with its quotes, as it stands in the schema. */
struct slice schema_quoted(struct slice key)
{
	return slice_of(key.at - 1, key.len + 2);
}

void walk_push_map(struct walk *w, const struct item *item, const struct member *m)
{
	struct json_reader r;
	struct slice key, value;
	bool first = true;

	json_open(&r, m->value, NULL, NULL);
	if (json_peek(&r) != JSON_OBJECT || !json_enter_object(&r)) {
		w->unfit = true;
		return;
	}
	walk_push(w, SLICE("{"));
	while (json_next_key(&r, &key) && json_skip(&r, &value)) {
		struct item inner = *item;
		if (m->keyword != KEY_PROPERTIES) {
			struct slice plain = json_str_plain(key, w->into);
			w->failed = w->failed || slice_absent(plain);
			inner.owner = (uint8_t)def_find(w, m->keyword, plain);
		}
		walk_push(w, first ? SLICE("") : SLICE(","));
		walk_push(w, schema_quoted(key));
		walk_push(w, SLICE(":"));
		walk_push_schema(w, &inner, value);
		first = false;
	}
	walk_push(w, SLICE("}"));
}

void walk_push_list(struct walk *w, const struct item *item, const struct member *m)
{
	struct json_reader r;
	struct slice value;
	bool first = true;

	json_open(&r, m->value, NULL, NULL);
	if (!json_enter_array(&r))
		return;
	walk_push(w, SLICE("["));
	while (json_next_item(&r) && json_skip(&r, &value)) {
		walk_push(w, first ? SLICE("") : SLICE(","));
		walk_push_schema(w, item, value);
		first = false;
	}
	walk_push(w, SLICE("]"));
}

/* ---- questions that both dialects ask ---- */

/* "type" may be an array as long as no type in it has a shape of its own. */
bool walk_type_list_fits(struct walk *w, struct slice array)
{
	struct json_reader r;
	struct slice type;

	w->unions++;
	json_open(&r, array, NULL, NULL);
	if (!json_enter_array(&r))
		return false;
	while (json_next_item(&r))
		if (json_peek(&r) != JSON_STRING || !json_string(&r, &type) ||
		    json_str_eq(type, SLICE("object")) || json_str_eq(type, SLICE("array")))
			return false;
	return true;
}

bool schema_format_known(struct slice raw)
{
	static const struct slice known[] = {
		SLICE_INIT("date-time"), SLICE_INIT("time"),  SLICE_INIT("date"),
		SLICE_INIT("duration"),  SLICE_INIT("email"), SLICE_INIT("hostname"),
		SLICE_INIT("uri"),       SLICE_INIT("ipv4"),  SLICE_INIT("ipv6"),
		SLICE_INIT("uuid"),
	};

	for (size_t i = 0; i < COUNT_OF(known); i++)
		if (json_str_eq(raw, known[i]))
			return true;
	return false;
}

/* ---- begin ---- */

/* A walk over the whole schema is about to begin. */
void walk_begin(struct walk *w, struct slice schema, const struct json_work *work,
		struct arena *into)
{
	*w = (struct walk){ .into = into, .work = work, .unfit = schema.len > SCHEMA_BYTES_MAX };
	push_item(w, (struct item){ .text = schema, .schema = true, .owner = SCHEMA_DEFS_MAX });
}
