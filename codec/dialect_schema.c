#include "codec/dialect_schema.h"

#include "codec/base/must.h"
#include "codec/dialect_names.h"
#include "codec/dialect_text.h"

enum {
	DEFINITIONS_COMPARED = 16, /* of one property, when looking for an identical one */
	REF_HOPS_MAX = 16,
	PROPERTIES_FIRST = 16,
};

/* One definition of a property. */
struct definition {
	struct slice text;
	struct definition *next;
};

struct property {
	struct slice key; /* raw */
	struct definition *first, *last;
	uint32_t count;
	bool either; /* several definitions, and one of them came from anyOf or oneOf */
};

/* A branch may be no more than a reference into these two objects of the root. */
enum { DEFS, DEFINITIONS, DEFS_COUNT };
static const struct slice defs_keys[DEFS_COUNT] = { SLICE_INIT("$defs"),
						    SLICE_INIT("definitions") };

struct fold {
	struct arena *into;
	const struct json_work *work;
	struct slice root;
	struct name_table property_names; /* same indices as properties */
	struct property *properties;
	uint32_t property_cap;
	struct name_table required; /* of the result; value: raw */
	struct name_table
		defs[DEFS_COUNT]; /* value: the schema's text; uses: the combinator that read it */
	bool defs_read;
	uint32_t combinator; /* number of the one under way, from 1 */
	bool failed;
};

static bool is_combinator(struct slice key)
{
	return json_str_eq(key, SLICE("anyOf")) || json_str_eq(key, SLICE("oneOf")) ||
	       json_str_eq(key, SLICE("allOf"));
}

/* ---- collecting ---- */

static struct property *property_get(struct fold *f, struct slice key)
{
	struct slice plain = json_str_plain(key, f->into);
	uint32_t before = f->property_names.count;
	uint32_t at = slice_absent(plain) ? NAME_NONE : name_table_put(&f->property_names, plain);

	if (at == NAME_NONE)
		return NULL;
	if (at == f->property_cap) {
		uint32_t cap = at == 0 ? PROPERTIES_FIRST : 2 * at;
		struct property *grown = arena_take(f->into, cap * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		if (at != 0)
			(void)memcpy(grown, f->properties, at * sizeof(*grown));
		f->properties = grown;
		f->property_cap = cap;
	}
	if (at == before)
		f->properties[at] = (struct property){ .key = key };
	return &f->properties[at];
}

static bool has_definition(const struct property *property, struct slice text)
{
	const struct definition *d = property->first;

	for (uint32_t i = 0; d != NULL && i < DEFINITIONS_COMPARED; i++, d = d->next)
		if (text_json_same(d->text, text))
			return true;
	return false;
}

static void add_property(struct fold *f, struct slice key, struct slice text, bool either)
{
	struct property *property = property_get(f, key);

	if (property != NULL && has_definition(property, text))
		return;
	struct definition *d = property == NULL ? NULL : arena_take(f->into, sizeof(*d));
	if (d == NULL) {
		f->failed = true;
		return;
	}
	*d = (struct definition){ .text = text };
	if (property->last == NULL)
		property->first = d;
	else
		property->last->next = d;
	property->last = d;
	property->either |= property->count++ != 0 && either;
}

static void add_properties(struct fold *f, struct slice object, bool either)
{
	struct json_reader r;
	struct slice key, text;

	json_open(&r, object, NULL, NULL);
	if (json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return;
	while (!f->failed && json_next_key(&r, &key) && json_skip(&r, &text))
		add_property(f, key, text, either);
}

/* Adds the strings of the array to `set`; with `branch` only those that every branch before it had,
 * whose count of uses then is branch + 1. */
static void add_required(struct fold *f, struct name_table *set, struct slice array,
			 uint32_t branch)
{
	struct json_reader r;
	struct slice raw;

	json_open(&r, array, NULL, NULL);
	if (json_peek(&r) != JSON_ARRAY || !json_enter_array(&r))
		return;
	while (json_next_item(&r)) {
		if (json_peek(&r) != JSON_STRING) {
			if (!json_skip(&r, NULL))
				return;
			continue;
		}
		if (!json_string(&r, &raw))
			return;
		struct slice plain = json_str_plain(raw, f->into);
		uint32_t at = slice_absent(plain) ? NAME_NONE : name_table_put(set, plain);
		if (at == NAME_NONE) {
			f->failed = true;
			return;
		}
		struct name_entry *entry = &set->entries[at];
		if (slice_absent(entry->value))
			entry->value = raw;
		if (entry->uses == branch)
			entry->uses = branch + 1;
	}
}

/* ---- references ---- */

static void read_defs_of(struct fold *f, struct name_table *defs, struct slice object)
{
	struct json_reader r;
	struct slice key, text;

	json_open(&r, object, NULL, NULL);
	if (json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return;
	while (json_next_key(&r, &key) && json_skip(&r, &text)) {
		struct slice plain = json_str_plain(key, f->into);
		uint32_t at = slice_absent(plain) ? NAME_NONE : name_table_put(defs, plain);
		if (at == NAME_NONE) {
			f->failed = true;
			return;
		}
		defs->entries[at].value = text;
	}
}

static void read_defs(struct fold *f)
{
	struct json_reader r;
	struct slice key, text;

	f->defs_read = true;
	json_open(&r, f->root, NULL, NULL);
	if (!json_enter_object(&r))
		return;
	while (json_next_key(&r, &key) && json_skip(&r, &text))
		for (int i = 0; i < DEFS_COUNT; i++)
			if (json_str_eq(key, defs_keys[i]))
				read_defs_of(f, &f->defs[i], text);
}

/* The entry that "#/$defs/NAME" or "#/definitions/NAME" means; NULL for every other reference. */
static struct name_entry *resolve(struct fold *f, struct slice ref)
{
	struct slice rest = json_str_plain(ref, f->into);

	if (slice_absent(rest) || !slice_eq(slice_cut(&rest, '/'), SLICE("#")))
		return NULL;
	struct slice container = slice_cut(&rest, '/');
	if (slice_absent(rest) || memchr(rest.at, '/', rest.len) != NULL ||
	    memchr(rest.at, '~', rest.len) != NULL)
		return NULL;
	if (!f->defs_read)
		read_defs(f);
	for (int i = 0; i < DEFS_COUNT; i++) {
		uint32_t at = slice_eq(container, defs_keys[i]) ? name_table_find(&f->defs[i], rest)
								: NAME_NONE;
		if (at != NAME_NONE)
			return &f->defs[i].entries[at];
	}
	return NULL;
}

/* ---- branches ---- */

/* Reads one object of a branch; true when it had properties or required. */
static bool read_branch_object(struct fold *f, struct slice text, struct name_table *required,
			       uint32_t branch, bool either, struct slice *ref)
{
	struct json_reader r;
	struct slice key, value;
	bool own = false;

	*ref = (struct slice){ NULL, 0 };
	json_open(&r, text, NULL, NULL);
	if (json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return true;
	while (json_next_key(&r, &key)) {
		bool string = json_peek(&r) == JSON_STRING;
		if (!json_skip(&r, &value))
			break;
		if (json_str_eq(key, SLICE("properties"))) {
			own = true;
			add_properties(f, value, either);
		} else if (json_str_eq(key, SLICE("required"))) {
			own = true;
			add_required(f, required, value, branch);
		} else if (string && json_str_eq(key, SLICE("$ref"))) {
			*ref = slice_of(value.at + 1, value.len - 2);
		}
	}
	return own;
}

/* Reads a branch and what it refers to; false when it says nothing that was not read before. A
 * definition is read once per combinator: its properties are there already, and not counting its
 * `required` again can only make less required. */
static bool read_branch(struct fold *f, struct slice text, struct name_table *required,
			uint32_t branch, bool either)
{
	struct slice ref;
	bool counts = read_branch_object(f, text, required, branch, either, &ref);

	for (int hop = 0; hop < REF_HOPS_MAX && !slice_absent(ref); hop++) {
		struct name_entry *target = resolve(f, ref);
		if (target == NULL)
			return true; /* it may say anything */
		if (target->uses == f->combinator)
			return counts;
		target->uses = f->combinator;
		counts = true;
		(void)read_branch_object(f, target->value, required, branch, either, &ref);
	}
	return counts;
}

static void read_combinator(struct fold *f, struct slice array, bool either)
{
	struct json_reader r;
	struct slice text;
	struct name_table common; /* what the branches require */
	uint32_t branches = 0;

	f->combinator++;
	name_table_init(&common, f->work, f->into);
	json_open(&r, array, NULL, NULL);
	if (!json_enter_array(&r))
		return;
	while (!f->failed && json_next_item(&r) && json_skip(&r, &text))
		branches += read_branch(f, text, either ? &common : &f->required,
					either ? branches : 0, either);
	for (uint32_t i = 0; i < common.count && !f->failed; i++) {
		if (common.entries[i].uses != branches)
			continue;
		uint32_t at = name_table_put(&f->required, common.entries[i].key);
		if (at == NAME_NONE)
			f->failed = true;
		else
			f->required.entries[at].value = common.entries[i].value;
	}
}

static void read_root(struct fold *f)
{
	struct json_reader r;
	struct slice key, text;

	/* the root's own first, wherever they stand */
	json_open(&r, f->root, NULL, NULL);
	for (bool more = json_enter_object(&r);
	     more && json_next_key(&r, &key) && json_skip(&r, &text);)
		if (json_str_eq(key, SLICE("properties")))
			add_properties(f, text, false);
		else if (json_str_eq(key, SLICE("required")))
			add_required(f, &f->required, text, 0);
	json_open(&r, f->root, NULL, NULL);
	for (bool more = json_enter_object(&r);
	     more && json_next_key(&r, &key) && json_skip(&r, &text);)
		if (is_combinator(key) && text.at[0] == '[')
			read_combinator(f, text, !json_str_eq(key, SLICE("allOf")));
}

/* ---- writing ---- */

static void put_properties(struct gather *g, const struct fold *f)
{
	gather_lit(g, "{");
	for (uint32_t i = 0; i < f->property_names.count; i++) {
		const struct property *property = &f->properties[i];
		if (i != 0)
			gather_lit(g, ",");
		gather_str(g, property->key);
		gather_lit(g, ":");
		if (property->count > 1)
			gather_raw(g, property->either ? SLICE("{\"anyOf\":[")
						       : SLICE("{\"allOf\":["));
		for (const struct definition *d = property->first; d != NULL; d = d->next) {
			gather_raw(g, d->text);
			if (d->next != NULL)
				gather_lit(g, ",");
		}
		if (property->count > 1)
			gather_lit(g, "]}");
	}
	gather_lit(g, "}");
}

static void put_required(struct gather *g, const struct fold *f)
{
	gather_lit(g, "[");
	for (uint32_t i = 0; i < f->required.count; i++) {
		if (i != 0)
			gather_lit(g, ",");
		gather_str(g, f->required.entries[i].value);
	}
	gather_lit(g, "]");
}

/* The root in its own order, without its combinators. */
static void put_root(struct gather *g, const struct fold *f, uint8_t root, bool want_properties)
{
	struct json_reader r;
	struct slice key, text;
	bool first = true;

	json_open(&r, f->root, NULL, NULL);
	bool open = json_enter_object(&r);
	gather_lit(g, "{");
	while (open && json_next_key(&r, &key) && json_skip(&r, &text)) {
		if (is_combinator(key) && text.at[0] == '[')
			continue;
		if (!first)
			gather_lit(g, ",");
		first = false;
		gather_str(g, key);
		gather_lit(g, ":");
		if (json_str_eq(key, SLICE("properties")))
			put_properties(g, f);
		else if (json_str_eq(key, SLICE("required")))
			put_required(g, f);
		else
			gather_raw(g, text);
	}
	if ((root & SCHEMA_ROOT_PROPERTIES) == 0 &&
	    (want_properties || f->property_names.count != 0)) {
		gather_raw(g, first ? SLICE("\"properties\":") : SLICE(",\"properties\":"));
		first = false;
		put_properties(g, f);
	}
	if ((root & SCHEMA_ROOT_REQUIRED) == 0 && f->required.count != 0) {
		gather_raw(g, first ? SLICE("\"required\":") : SLICE(",\"required\":"));
		put_required(g, f);
	}
	gather_lit(g, "}");
}

static enum err put_folded(struct gather *g, struct slice schema, uint8_t root,
			   bool want_properties, const struct json_work *work, struct arena *into)
{
	struct fold f = { .into = into, .work = work, .root = schema };

	name_table_init(&f.property_names, work, into);
	name_table_init(&f.required, work, into);
	for (int i = 0; i < DEFS_COUNT; i++)
		name_table_init(&f.defs[i], work, into);
	read_root(&f);
	if (f.failed)
		return ERR_BUSY;
	put_root(g, &f, root, want_properties);
	return ERR_OK;
}

enum err schema_put_folded(struct gather *g, struct slice schema, uint8_t root,
			   bool want_properties, const struct json_work *work, struct arena *into,
			   size_t *budget, bool *folded)
{
	must(schema.len >= 2 && schema.at[0] == '{' && schema.at[schema.len - 1] == '}');
	*folded = (root & SCHEMA_ROOT_COMBINATORS) != 0;
	if (*folded) {
		if (schema.len > *budget)
			return ERR_TOOL;
		*budget -= schema.len;
		return put_folded(g, schema, root, want_properties, work, into);
	}
	if ((root & SCHEMA_ROOT_PROPERTIES) != 0 || !want_properties) {
		gather_raw(g, schema);
		return ERR_OK;
	}
	gather_raw(g, slice_of(schema.at, schema.len - 1)); /* its "type" is there, so a comma */
	gather_lit(g, ",\"properties\":{}}");
	return ERR_OK;
}
