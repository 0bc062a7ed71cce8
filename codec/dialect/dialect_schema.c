#include "codec/dialect/dialect_schema.h"

#include "codec/base/must.h"
#include "codec/dialect/dialect_names.h"
#include "codec/dialect/dialect_text.h"

enum {
	DEFINITIONS_COMPARED = 16, /* of one property, when looking for an identical one */
	REF_HOPS_MAX = 16,
	NESTED_MAX = 16,
	PROPERTIES_FIRST = 16,
	MEMBERS_FIRST = 8,
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

/* One member of the root. */
struct root_member {
	struct slice key, text;
};

struct fold {
	struct arena *into;
	const struct json_work *work;
	struct root_member *root; /* in their order; read once, for all that looks at them */
	uint32_t root_count, root_cap;
	struct name_table property_names; /* same indices as properties */
	struct property *properties;
	uint32_t property_cap;
	struct name_table required; /* of the result; value: raw */
	struct name_table
		defs[DEFS_COUNT]; /* value: the schema's text; uses: the combinator that read it */
	bool defs_read;
	uint32_t combinator; /* number of the one under way, from 1 */
	struct nested {      /* combinators in the branch under way, which are still to be read */
		struct slice array;
		bool all; /* of allOf: what is required there is required */
	} nested[NESTED_MAX];
	uint32_t nested_count;
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

/* Adds the members of the object that is next; anything else is skipped. */
static void add_properties(struct fold *f, struct json_reader *r, bool either)
{
	struct slice key, text;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (!f->failed && json_next_key(r, &key) && json_skip(r, &text))
		add_property(f, key, text, either);
}

static void add_required_name(struct fold *f, struct name_table *set, struct slice raw,
			      uint32_t branch)
{
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

/* Adds the strings of the array that is next to `set`, anything else is skipped; with `branch` only
 * those that every branch before it had, whose count of uses then is branch + 1. */
static void add_required(struct fold *f, struct name_table *set, struct json_reader *r,
			 uint32_t branch)
{
	struct slice raw;

	if (json_peek(r) != JSON_ARRAY) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_array(r))
		return;
	while (!f->failed && json_next_item(r))
		if (json_peek(r) != JSON_STRING)
			(void)json_skip(r, NULL);
		else if (json_string(r, &raw))
			add_required_name(f, set, raw, branch);
}

/* ---- the root ---- */

static void root_add(struct fold *f, struct slice key, struct slice text)
{
	if (f->root_count == f->root_cap) {
		uint32_t cap = f->root_cap == 0 ? MEMBERS_FIRST : 2 * f->root_cap;
		struct root_member *grown = arena_take(f->into, cap * sizeof(*grown));
		if (grown == NULL) {
			f->failed = true;
			return;
		}
		if (f->root_count != 0)
			(void)memcpy(grown, f->root, f->root_count * sizeof(*grown));
		f->root = grown;
		f->root_cap = cap;
	}
	f->root[f->root_count++] = (struct root_member){ key, text };
}

static void root_read(struct fold *f, struct slice schema)
{
	struct json_reader r;
	struct slice key, text;

	json_open(&r, schema, NULL, NULL);
	for (bool open = json_enter_object(&r);
	     open && !f->failed && json_next_key(&r, &key) && json_skip(&r, &text);)
		root_add(f, key, text);
}

static bool is_combinator_list(const struct root_member *m)
{
	return m->text.at[0] == '[' && is_combinator(m->key);
}

/* Whether a member of the root is left out. */
static bool is_folded(const struct root_member *m)
{
	return is_combinator_list(m) || json_str_eq(m->key, SLICE("not")) ||
	       json_str_eq(m->key, SLICE("enum"));
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
	f->defs_read = true;
	for (uint32_t m = 0; m < f->root_count; m++)
		for (int i = 0; i < DEFS_COUNT; i++)
			if (json_str_eq(f->root[m].key, defs_keys[i]))
				read_defs_of(f, &f->defs[i], f->root[m].text);
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

/* The string that is next, or absent. */
static struct slice string_or_nothing(struct json_reader *r)
{
	struct slice raw = { NULL, 0 };

	if (json_peek(r) == JSON_STRING)
		(void)json_string(r, &raw);
	else
		(void)json_skip(r, NULL);
	return raw;
}

/* A branch under way, or a part of it. */
struct branch {
	struct name_table *required; /* what it requires is added there; NULL: nowhere */
	uint32_t number;
	bool either; /* it is one of several of which one holds */
};

/* Notes the combinator whose value is next. False when it is not going to be read: it may say anything. */
static bool note_nested(struct fold *f, struct json_reader *r, bool all)
{
	const bool list = json_peek(r) == JSON_ARRAY;
	struct slice text;

	if (!json_skip(r, &text) || !list)
		return true;
	if (f->nested_count == NESTED_MAX)
		return false;
	f->nested[f->nested_count++] = (struct nested){ text, all };
	return true;
}

/* Reads the object of a branch that is next; true when it had properties or required, or is no object:
 * then it may say anything. */
static bool read_branch_object(struct fold *f, struct json_reader *r, const struct branch *branch,
			       struct slice *ref)
{
	struct slice key;
	bool own = false;

	*ref = (struct slice){ NULL, 0 };
	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return true;
	}
	if (!json_enter_object(r))
		return true;
	while (!f->failed && json_next_key(r, &key)) {
		if (json_str_eq(key, SLICE("properties"))) {
			own = true;
			add_properties(f, r, branch->either);
		} else if (json_str_eq(key, SLICE("required")) && branch->required != NULL) {
			own = true;
			add_required(f, branch->required, r, branch->number);
		} else if (json_str_eq(key, SLICE("$ref"))) {
			*ref = string_or_nothing(r);
		} else if (is_combinator(key)) {
			own |= !note_nested(f, r, json_str_eq(key, SLICE("allOf")));
		} else {
			(void)json_skip(r, NULL);
		}
	}
	return own;
}

/* Reads the branch that is next, and what it refers to; false when it says nothing that was not read
 * before. A definition is read once per combinator: its properties are there already, and not counting
 * its `required` again can only make less required. */
static bool read_branch(struct fold *f, struct json_reader *r, const struct branch *branch)
{
	struct slice ref;
	bool counts = read_branch_object(f, r, branch, &ref);

	for (int hop = 0; hop < REF_HOPS_MAX && !slice_absent(ref); hop++) {
		struct name_entry *target = resolve(f, ref);
		struct json_reader at_target;
		if (target == NULL)
			return true; /* it may say anything */
		if (target->uses == f->combinator)
			return counts;
		target->uses = f->combinator;
		counts = true;
		json_open(&at_target, target->value, NULL, NULL);
		(void)read_branch_object(f, &at_target, branch, &ref);
	}
	return counts;
}

/* Reads a branch with the combinators in it, and those in these. What one of several parts requires is not
 * required. */
static bool read_whole_branch(struct fold *f, struct json_reader *r, const struct branch *branch)
{
	bool counts = read_branch(f, r, branch);

	for (uint32_t i = 0; i < f->nested_count && !f->failed; i++) {
		const struct nested nested = f->nested[i];
		const struct branch part = { .required = nested.all ? branch->required : NULL,
					     .number = branch->number,
					     .either = branch->either || !nested.all };
		struct json_reader parts;
		json_open(&parts, nested.array, NULL, NULL);
		for (bool open = json_enter_array(&parts);
		     open && !f->failed && json_next_item(&parts);)
			counts |= read_branch(f, &parts, &part);
	}
	f->nested_count = 0;
	return counts;
}

static void read_combinator(struct fold *f, struct slice array, bool either)
{
	struct json_reader r;
	struct name_table common; /* what the branches require */
	uint32_t branches = 0;

	f->combinator++;
	name_table_init(&common, f->work, f->into);
	json_open(&r, array, NULL, NULL);
	if (!json_enter_array(&r))
		return;
	while (!f->failed && json_next_item(&r))
		branches += read_whole_branch(
			f, &r,
			&(struct branch){ .required = either ? &common : &f->required,
					  .number = either ? branches : 0,
					  .either = either });
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

/* The root's own first, wherever they stand. */
static void read_all(struct fold *f)
{
	for (uint32_t i = 0; i < f->root_count; i++) {
		struct json_reader r;
		json_open(&r, f->root[i].text, NULL, NULL);
		if (json_str_eq(f->root[i].key, SLICE("properties")))
			add_properties(f, &r, false);
		else if (json_str_eq(f->root[i].key, SLICE("required")))
			add_required(f, &f->required, &r, 0);
	}
	for (uint32_t i = 0; i < f->root_count; i++)
		if (is_combinator_list(&f->root[i]))
			read_combinator(f, f->root[i].text,
					!json_str_eq(f->root[i].key, SLICE("allOf")));
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
	bool first = true;

	gather_lit(g, "{");
	for (uint32_t i = 0; i < f->root_count; i++) {
		const struct root_member *m = &f->root[i];
		if (is_folded(m))
			continue;
		if (!first)
			gather_lit(g, ",");
		first = false;
		gather_str(g, m->key);
		gather_lit(g, ":");
		if (json_str_eq(m->key, SLICE("properties")))
			put_properties(g, f);
		else if (json_str_eq(m->key, SLICE("required")))
			put_required(g, f);
		else
			gather_raw(g, m->text);
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
	struct fold f = { .into = into, .work = work };

	name_table_init(&f.property_names, work, into);
	name_table_init(&f.required, work, into);
	for (int i = 0; i < DEFS_COUNT; i++)
		name_table_init(&f.defs[i], work, into);
	root_read(&f, schema);
	if (!f.failed)
		read_all(&f);
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

uint8_t schema_root_of(struct slice schema)
{
	struct json_reader r;
	struct slice key;
	uint8_t root = 0;

	json_open(&r, schema, NULL, NULL);
	for (bool open = json_enter_object(&r); open && json_next_key(&r, &key);) {
		const bool list = json_peek(&r) == JSON_ARRAY;
		if ((list && is_combinator(key)) || json_str_eq(key, SLICE("not")) ||
		    json_str_eq(key, SLICE("enum")))
			root |= SCHEMA_ROOT_COMBINATORS;
		else if (json_str_eq(key, SLICE("properties")))
			root |= SCHEMA_ROOT_PROPERTIES;
		else if (json_str_eq(key, SLICE("required")))
			root |= SCHEMA_ROOT_REQUIRED;
		if (!json_skip(&r, NULL))
			break;
	}
	return root;
}
