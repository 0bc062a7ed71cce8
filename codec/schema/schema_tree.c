#include "codec/schema/schema_tree.h"

#include "codec/base/must.h"
#include "codec/json/name_table.h"
#include "codec/schema/schema_number.h"
#include "codec/schema/schema_walk.h"

enum { FIRST = 32, KEYS_A_LOOK = 64, BYTES_A_LOOK = 2048, DIGITS_A_LOOK = 32 };

/* ---- hashes ---- */

static uint64_t mix(uint64_t hash, uint64_t with)
{
	hash = (hash ^ with) * UINT64_C(0x9fb21c651e98df25);
	return hash ^ hash >> 29;
}

static uint64_t scalar_hash(uint64_t seed, const struct tree_value *value)
{
	if (value->kind == JSON_STRING)
		return mix(value->text_hash, JSON_STRING);
	if (value->kind == JSON_NUMBER)
		return mix(number_hash(value->text), JSON_NUMBER);
	return mix(seed, value->kind);
}

/* The order of an object's members does not matter. */
static uint64_t container_hash(const struct tree_value *value)
{
	uint64_t hash = value->kind;

	for (uint32_t i = 0; i < value->count; i++) {
		const struct tree_value *m = &value->members[i];
		if (value->kind == JSON_ARRAY)
			hash = mix(hash, m->hash);
		else
			hash += mix(m->key_hash, m->hash);
	}
	return mix(hash, value->count);
}

/* ---- building ---- */

/* Values whose container is still open wait on a stack; when it is closed they become its members. */
struct builder {
	struct json_reader r;
	struct arena *into;
	uint64_t seed;
	bool schema;
	bool failed; /* memory */
	bool too_large;
	struct tree_value *waiting;
	uint32_t count, cap, total;
	uint32_t open[JSON_DEPTH_MAX]; /* places of open containers on that stack */
	uint32_t depth;
};

static bool grow(struct builder *b)
{
	uint32_t cap = b->cap == 0 ? FIRST : 2 * b->cap;
	struct tree_value *grown = arena_take(b->into, cap * sizeof(*grown));

	b->failed = grown == NULL;
	if (grown == NULL)
		return false;
	if (b->count != 0)
		(void)memcpy(grown, b->waiting, b->count * sizeof(*grown));
	b->waiting = grown;
	b->cap = cap;
	return true;
}

static bool plain(struct builder *b, struct slice raw, struct slice *out)
{
	*out = json_str_plain(raw, b->into);
	b->failed = b->failed || slice_absent(*out);
	return !b->failed;
}

static bool read_scalar(struct builder *b, struct tree_value *value)
{
	struct slice raw;

	if (!json_skip(&b->r, &raw))
		return false;
	value->text = raw;
	if (value->kind == JSON_STRING) {
		if (!plain(b, slice_of(raw.at + 1, raw.len - 2), &value->text))
			return false;
		value->text_hash = name_hash(b->seed, value->text);
	}
	value->hash = scalar_hash(b->seed, value);
	return true;
}

static bool read_key(struct builder *b, struct slice raw, struct tree_value *value)
{
	if (!plain(b, raw, &value->key))
		return false;
	value->key_hash = name_hash(b->seed, value->key);
	if (b->schema)
		value->keyword = (uint8_t)schema_keyword(raw); /* it looks for escapes */
	return true;
}

/* The value that is next, which is complete unless it is a container. */
static bool read_value(struct builder *b, struct tree_value value)
{
	value.kind = (uint8_t)json_peek(&b->r);
	b->too_large = ++b->total > TREE_VALUES_MAX;
	if (value.kind == JSON_BAD || b->too_large || (b->count == b->cap && !grow(b)))
		return false;
	if (value.kind != JSON_OBJECT && value.kind != JSON_ARRAY) {
		if (!read_scalar(b, &value))
			return false;
	} else {
		value.text = slice_of(b->r.at, 0);
		if (!(value.kind == JSON_OBJECT ? json_enter_object(&b->r)
						: json_enter_array(&b->r)))
			return false;
		b->open[b->depth++] = b->count;
	}
	b->waiting[b->count++] = value;
	return true;
}

/* The innermost container is over: its members leave the stack. */
static bool close_container(struct builder *b)
{
	uint32_t place = b->open[--b->depth];
	struct tree_value *value = &b->waiting[place];
	const size_t bytes = (b->count - place - 1) * sizeof(*value);
	struct tree_value *members = bytes == 0 ? NULL : arena_take(b->into, bytes);

	if (b->r.fault.err != ERR_OK)
		return false;
	b->failed = bytes != 0 && members == NULL;
	if (b->failed)
		return false;
	if (bytes != 0)
		(void)memcpy(members, value + 1, bytes);
	value->members = members;
	value->count = b->count - place - 1;
	value->text.len = (size_t)(b->r.at - value->text.at);
	value->hash = container_hash(value);
	b->count = place + 1;
	return true;
}

/* The next member of the innermost container, or its end. */
static bool go_on(struct builder *b)
{
	const bool object = b->waiting[b->open[b->depth - 1]].kind == JSON_OBJECT;
	struct tree_value value = { .keyword = KEY_OTHER };
	struct slice raw;

	if (!object)
		return json_next_item(&b->r) ? read_value(b, value) : close_container(b);
	if (!json_next_key(&b->r, &raw))
		return close_container(b);
	return read_key(b, raw, &value) && read_value(b, value);
}

enum err tree_read(struct slice text, const struct json_work *work, struct arena *into, bool schema,
		   const struct tree_value **out)
{
	struct builder b = { .into = into, .seed = work->seed, .schema = schema };

	*out = NULL;
	json_open(&b.r, text, NULL, NULL);
	bool good = read_value(&b, (struct tree_value){ .keyword = KEY_OTHER });
	while (good && b.depth != 0)
		good = go_on(&b);
	if (b.failed)
		return ERR_BUSY;
	if (good)
		*out = b.waiting;
	return ERR_OK;
}

/* ---- looking ---- */

bool tree_charge(uint32_t *left, size_t count)
{
	const bool enough = *left > count;

	*left = enough ? *left - (uint32_t)count : 0;
	return enough;
}

const struct tree_value *tree_find(const struct tree_value *object, struct slice key, uint32_t hash,
				   uint32_t *near, uint32_t *looks)
{
	const uint32_t from = *near < object->count ? *near : 0;

	if (!tree_charge(looks, 1)) /* in an empty one too */
		return NULL;
	for (uint32_t i = 0; i < object->count; i++) {
		const uint32_t at = from + i < object->count ? from + i : from + i - object->count;
		const struct tree_value *m = &object->members[at];
		if (i % KEYS_A_LOOK == KEYS_A_LOOK - 1 && !tree_charge(looks, 1))
			return NULL;
		if (m->key_hash == hash && slice_eq(m->key, key)) {
			*near = at + 1;
			return tree_charge(looks, key.len / BYTES_A_LOOK) ? m : NULL;
		}
	}
	return NULL;
}

/* ---- comparing ---- */

/* As far as that shows without looking at members. */
static bool alike(const struct tree_value *a, const struct tree_value *b, uint32_t *looks)
{
	if (!tree_charge(looks, 1) || a->kind != b->kind || a->hash != b->hash ||
	    a->count != b->count)
		return false;
	if (a->kind != JSON_STRING && a->kind != JSON_NUMBER)
		return true;
	const size_t a_look = a->kind == JSON_STRING ? BYTES_A_LOOK : DIGITS_A_LOOK;
	if (!tree_charge(looks, (a->text.len + b->text.len) / a_look))
		return false;
	return a->kind == JSON_STRING ? slice_eq(a->text, b->text)
				      : number_order(a->text, b->text) == 0;
}

bool tree_same(const struct tree_value *a, const struct tree_value *b, uint32_t *looks)
{
	struct {
		const struct tree_value *a, *b;
		uint32_t next, near;
	} open[JSON_DEPTH_MAX];
	uint32_t depth = 0;

	for (;;) {
		if (b == NULL || !alike(a, b, looks))
			return false;
		if (a->count != 0) {
			must(depth < JSON_DEPTH_MAX);
			open[depth].a = a;
			open[depth].b = b;
			open[depth].next = open[depth].near = 0;
			depth++;
		}
		while (depth != 0 && open[depth - 1].next == open[depth - 1].a->count)
			depth--;
		if (depth == 0)
			return true;
		const uint32_t i = open[depth - 1].next++;
		a = &open[depth - 1].a->members[i];
		b = open[depth - 1].b;
		b = b->kind == JSON_ARRAY
			    ? &b->members[i]
			    : tree_find(b, a->key, a->key_hash, &open[depth - 1].near, looks);
	}
}
