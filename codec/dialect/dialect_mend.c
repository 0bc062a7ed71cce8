/* dialect_mend.c - the second half of dialect_mend.h: schemas.
 *
 * A schema is walked twice, from its beginning to its end: first only looked at, then written anew, if there is
 * something to change. */
#include "codec/dialect/dialect_mend.h"

#include "codec/base/must.h"
#include "codec/dialect/dialect_text.h"
#include "codec/schema/schema_walk.h"

#include <stdio.h>

/* What a value is. */
enum place {
	PLACE_VALUE, /* nothing that is looked into */
	PLACE_SCHEMA,
	PLACE_PROPERTIES, /* an object of schemas by the names of properties */
	PLACE_DEPENDENTS, /* the same, of schemas or lists of names */
	PLACE_SCHEMAS,    /* an object of schemas by other names */
	PLACE_LIST,       /* an array of schemas */
	PLACE_NAMES,      /* an array of names of properties */
};

/* An open container. */
struct level {
	enum place place;
	bool any;          /* a member was written */
	bool array, items; /* of a schema: its type may be array; "items" is there */
};

struct mender {
	uint8_t odd; /* what is changed */
	struct arena *into;
	struct json_reader r;
	struct level levels[JSON_DEPTH_MAX];
	uint32_t depth;
	struct name_table properties; /* plain; `taken`: it is refused */
	struct name_table *aliases;   /* plain -> alias; NULL: not known yet */
	struct gather *g;             /* NULL: nothing is written */
	uint32_t changes;
	bool failed;
};

static void put(struct mender *m, struct slice text)
{
	if (m->g != NULL)
		gather_raw(m->g, text);
}

static void put_quoted(struct mender *m, struct slice raw)
{
	if (m->g != NULL)
		gather_str(m->g, raw);
}

/* ---- names ---- */

static bool is_taken_anywhere(struct slice plain)
{
	for (size_t i = 0; i < plain.len; i++) {
		const char c = plain.at[i], lower = (char)(c | 0x20);
		if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') && c != '_' &&
		    c != '.' && c != '-')
			return false;
	}
	return plain.len != 0 && plain.len <= SCHEMA_KEY_MAX;
}

static struct slice plain_of(struct mender *m, struct slice raw)
{
	struct slice plain = json_str_plain(raw, m->into);

	m->failed = m->failed || slice_absent(plain);
	return plain;
}

/* Notes the name of a property. */
static void note_property(struct mender *m, struct slice key)
{
	struct slice plain = plain_of(m, key);
	uint32_t at = m->failed ? NAME_NONE : name_table_put(&m->properties, plain);

	if (at == NAME_NONE) {
		m->failed = true;
		return;
	}
	struct name_entry *entry = &m->properties.entries[at];
	if (entry->uses++ != 0)
		return;
	entry->value = key;
	entry->taken = !is_taken_anywhere(plain);
	m->changes += entry->taken;
}

/* The name as it is sent. */
static struct slice name_sent(struct mender *m, struct slice raw)
{
	if (m->aliases == NULL || m->aliases->count == 0)
		return raw;
	struct slice plain = plain_of(m, raw);
	uint32_t at = m->failed ? NAME_NONE : name_table_find(m->aliases, plain);
	return at == NAME_NONE ? raw : m->aliases->entries[at].value;
}

/* ---- keywords ---- */

/* The kind of a keyword's value. */
static enum place place_under(struct slice key, enum keyword keyword, enum json_kind kind)
{
	const bool object = kind == JSON_OBJECT, array = kind == JSON_ARRAY;

	switch (keyword) {
	case KEY_PROPERTIES:
		return object ? PLACE_PROPERTIES : PLACE_VALUE;
	case KEY_DEPENDENT_REQUIRED:
	case KEY_DEPENDENT_SCHEMAS:
	case KEY_DEPENDENCIES:
		return object ? PLACE_DEPENDENTS : PLACE_VALUE;
	case KEY_PATTERN_PROPERTIES:
	case KEY_DEFS:
	case KEY_DEFINITIONS:
		return object ? PLACE_SCHEMAS : PLACE_VALUE;
	case KEY_ITEMS:
	case KEY_PREFIX_ITEMS:
	case KEY_ANY_OF:
	case KEY_ONE_OF:
	case KEY_ALL_OF:
		return array ? PLACE_LIST : object ? PLACE_SCHEMA : PLACE_VALUE;
	case KEY_REQUIRED:
		return array ? PLACE_NAMES : PLACE_VALUE;
	case KEY_ADDITIONAL:
	case KEY_ADDITIONAL_ITEMS:
	case KEY_NOT:
	case KEY_IF:
	case KEY_CONTAINS:
	case KEY_PROPERTY_NAMES:
	case KEY_UNEVALUATED_PROPERTIES:
	case KEY_UNEVALUATED_ITEMS:
		return object ? PLACE_SCHEMA : PLACE_VALUE;
	case KEY_OTHER:
		return object && (json_str_eq(key, SLICE("then")) ||
				  json_str_eq(key, SLICE("else")))
			       ? PLACE_SCHEMA
			       : PLACE_VALUE;
	default:
		return PLACE_VALUE;
	}
}

/* Whether "type" says that a value may be an array. */
static bool says_array(struct slice type)
{
	static const struct slice array = SLICE_INIT("array");
	struct json_reader r;
	struct slice raw;

	json_open(&r, type, NULL, NULL);
	if (json_peek(&r) == JSON_STRING)
		return json_string(&r, &raw) && json_str_eq(raw, array);
	if (json_peek(&r) != JSON_ARRAY || !json_enter_array(&r))
		return false;
	while (json_next_item(&r)) {
		if (json_peek(&r) != JSON_STRING)
			(void)json_skip(&r, NULL);
		else if (json_string(&r, &raw) && json_str_eq(raw, array))
			return true;
	}
	return false;
}

/* ---- references ---- */

/* The value of a hexadecimal digit, -1 when it is none. */
static int digit_of(char c)
{
	const char lower = (char)(c | 0x20);

	if (c >= '0' && c <= '9')
		return c - '0';
	return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* The step of a JSON pointer, without its escapes (RFC 6901, 6); absent when memory is exhausted. */
static struct slice step_meaning(struct slice step, struct arena *into)
{
	char *out = arena_take(into, step.len + 1);
	size_t len = 0;

	if (out == NULL)
		return (struct slice){ NULL, 0 };
	for (size_t i = 0; i < step.len; i++) {
		char c = step.at[i];
		if (c == '%' && step.len - i > 2 && digit_of(step.at[i + 1]) >= 0 &&
		    digit_of(step.at[i + 2]) >= 0) {
			c = (char)(digit_of(step.at[i + 1]) << 4 | digit_of(step.at[i + 2]));
			i += 2;
		}
		out[len++] = c;
	}
	struct slice encoded = slice_of(out, len);
	len = 0;
	for (size_t i = 0; i < encoded.len; i++) {
		const bool escape = encoded.at[i] == '~' && i + 1 < encoded.len &&
				    (encoded.at[i + 1] == '0' || encoded.at[i + 1] == '1');
		out[len++] = !escape ? encoded.at[i] : encoded.at[++i] == '0' ? '~' : '/';
	}
	return slice_of(out, len);
}

/* Where a step leads from `place`. */
static enum place place_behind(enum place place, struct slice step)
{
	enum place next;

	switch (place) {
	case PLACE_SCHEMA:
		next = place_under(step, schema_keyword(step), JSON_OBJECT);
		return next == PLACE_VALUE ? place_under(step, schema_keyword(step), JSON_ARRAY)
					   : next;
	case PLACE_PROPERTIES:
	case PLACE_DEPENDENTS:
	case PLACE_SCHEMAS:
	case PLACE_LIST:
		return PLACE_SCHEMA;
	default:
		return PLACE_VALUE;
	}
}

static bool is_index(struct slice step)
{
	for (size_t i = 0; i < step.len; i++)
		if (step.at[i] < '0' || step.at[i] > '9')
			return false;
	return step.len != 0;
}

/* A reference into the schema itself, with names of properties as they are sent; raw. */
static struct slice ref_sent(struct mender *m, struct slice raw)
{
	struct slice rest = plain_of(m, raw);
	enum place place = PLACE_SCHEMA;
	struct gather g;
	bool changed = false;

	if (m->failed || m->aliases == NULL || m->aliases->count == 0 ||
	    !slice_eq(slice_cut(&rest, '/'), SLICE("#")))
		return raw;
	gather_init(&g, m->into);
	gather_lit(&g, "#");
	while (!slice_absent(rest) && !m->failed) {
		struct slice step = slice_cut(&rest, '/'), meaning = step_meaning(step, m->into);
		uint32_t at = NAME_NONE;
		m->failed = m->failed || slice_absent(meaning);
		if (!m->failed && (place == PLACE_PROPERTIES || place == PLACE_DEPENDENTS))
			at = name_table_find(m->aliases, meaning);
		gather_lit(&g, "/");
		gather_escaped(&g, at == NAME_NONE ? step : m->aliases->entries[at].value);
		changed |= at != NAME_NONE;
		/* "anyOf" and "items" are lists where a number follows */
		if (!m->failed && !(place == PLACE_SCHEMA && is_index(meaning)))
			place = place_behind(place, meaning);
	}
	struct slice sent =
		gather_done(&g) == ERR_OK ? gather_flat(&g, m->into) : (struct slice){ NULL, 0 };
	m->failed = m->failed || slice_absent(sent);
	return changed && !m->failed ? sent : raw;
}

/* ---- the walk ---- */

static void enter(struct mender *m, enum place place)
{
	const bool array = place == PLACE_LIST || place == PLACE_NAMES;

	must(m->depth < JSON_DEPTH_MAX);
	if (!(array ? json_enter_array(&m->r) : json_enter_object(&m->r))) {
		m->failed = true;
		return;
	}
	put(m, array ? SLICE("[") : SLICE("{"));
	m->levels[m->depth++] = (struct level){ .place = place };
}

/* The value that is next, to be looked into or as it stands. */
static void pass_value(struct mender *m, enum place place)
{
	struct slice text;

	if (place != PLACE_VALUE)
		enter(m, place);
	else if (json_skip(&m->r, &text))
		put(m, text);
}

static void pass_comma(struct mender *m)
{
	struct level *level = &m->levels[m->depth - 1];

	if (level->any)
		put(m, SLICE(","));
	level->any = true;
}

/* A string that is next, and names a property or a place. */
static void pass_string(struct mender *m, struct slice (*sent)(struct mender *m, struct slice raw))
{
	struct slice raw;

	if (json_string(&m->r, &raw))
		put_quoted(m, sent(m, raw));
}

static void pass_keyword(struct mender *m, struct slice key)
{
	struct level *level = &m->levels[m->depth - 1];
	const enum keyword keyword = schema_keyword(key);
	const enum json_kind kind = json_peek(&m->r);
	struct slice text;

	if (kind == JSON_NULL && keyword != KEY_OTHER && keyword != KEY_CONST &&
	    (m->odd & SCHEMA_ODD_NULLS) != 0) {
		(void)json_null(&m->r);
		m->changes++;
		return;
	}
	pass_comma(m);
	put_quoted(m, key);
	put(m, SLICE(":"));
	level->items |= keyword == KEY_ITEMS;
	if (keyword == KEY_REF && kind == JSON_STRING) {
		pass_string(m, ref_sent);
	} else if (keyword == KEY_TYPE) {
		if (!json_skip(&m->r, &text))
			return;
		level->array = says_array(text);
		put(m, text);
	} else {
		pass_value(m, place_under(key, keyword, kind));
	}
}

/* A member of an object of schemas, lists or both. */
static void pass_named(struct mender *m, enum place place, struct slice key)
{
	const enum json_kind kind = json_peek(&m->r);
	const bool property = place != PLACE_SCHEMAS;

	if (place == PLACE_PROPERTIES && m->g == NULL && (m->odd & SCHEMA_ODD_KEYS) != 0)
		note_property(m, key);
	pass_comma(m);
	put_quoted(m, property ? name_sent(m, key) : key);
	put(m, SLICE(":"));
	pass_value(m, kind == JSON_OBJECT                               ? PLACE_SCHEMA
		      : kind == JSON_ARRAY && place == PLACE_DEPENDENTS ? PLACE_NAMES
									: PLACE_VALUE);
}

static void pass_item(struct mender *m, enum place place)
{
	const enum json_kind kind = json_peek(&m->r);

	pass_comma(m);
	if (place == PLACE_NAMES && kind == JSON_STRING)
		pass_string(m, name_sent);
	else
		pass_value(m,
			   place == PLACE_LIST && kind == JSON_OBJECT ? PLACE_SCHEMA : PLACE_VALUE);
}

static void leave_schema(struct mender *m)
{
	const struct level *level = &m->levels[m->depth - 1];

	if (level->place == PLACE_SCHEMA && level->array && !level->items &&
	    (m->odd & SCHEMA_ODD_ARRAYS) != 0) {
		m->changes++;
		pass_comma(m);
		put(m, SLICE("\"items\":{}"));
	}
	put(m, SLICE("}"));
	m->depth--;
}

static void step(struct mender *m)
{
	const enum place place = m->levels[m->depth - 1].place;
	struct slice key;

	if (place == PLACE_LIST || place == PLACE_NAMES) {
		if (json_next_item(&m->r)) {
			pass_item(m, place);
			return;
		}
		put(m, SLICE("]"));
		m->depth--;
	} else if (!json_next_key(&m->r, &key)) {
		leave_schema(m);
	} else if (place == PLACE_SCHEMA) {
		pass_keyword(m, key);
	} else {
		pass_named(m, place, key);
	}
}

static void walk(struct mender *m, struct slice schema)
{
	m->depth = 0;
	json_open(&m->r, schema, NULL, NULL); /* validated with the request */
	enter(m, PLACE_SCHEMA);
	while (m->depth != 0 && !m->failed)
		step(m);
}

/* ---- aliases ---- */

/* An alias that is no other property's name, whatever names the schema has: those that collide are numbered, in the
 * order of the schema. Absent when memory is exhausted. */
static struct slice alias_of(struct mender *m, struct slice plain)
{
	enum { NUMBER_MAX = 11 }; /* a uint32_t and its underscore */
	struct slice alias = name_alias(plain, '.', ALIAS_KEPT, m->into);

	for (uint32_t number = 2; !slice_absent(alias); number++) {
		if (name_table_find(&m->properties, alias) == NAME_NONE)
			break;
		char text[NUMBER_MAX + 1];
		const int len = snprintf(text, sizeof(text), "_%u", number);
		alias = name_alias(plain, '.', ALIAS_KEPT - NUMBER_MAX, m->into);
		if (!slice_absent(alias))
			alias = text_join(m->into, alias, slice_of(text, (size_t)len));
	}
	if (slice_absent(alias) || name_table_put(&m->properties, alias) == NAME_NONE)
		return (struct slice){ NULL, 0 };
	return alias;
}

static struct key_group *new_group(struct key_names *keys, struct slice tool)
{
	struct arena *into = keys->tools.into;
	struct slice plain = json_str_plain(tool, into);
	uint32_t at = slice_absent(plain) ? NAME_NONE : name_table_put(&keys->tools, plain);

	if (at == NAME_NONE)
		return NULL;
	if (keys->group_count == keys->group_cap) {
		const uint32_t cap = keys->group_cap == 0 ? 4 : 2 * keys->group_cap;
		struct key_group *grown = arena_take(into, cap * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		if (keys->group_count != 0)
			(void)memcpy(grown, keys->groups, keys->group_count * sizeof(*grown));
		keys->groups = grown;
		keys->group_cap = cap;
	}
	struct key_group *group = &keys->groups[keys->group_count++];
	group->aliases = (struct name_table){ .into = into, .seed = keys->tools.seed };
	keys->tools.entries[at].uses = keys->group_count;
	return group;
}

static bool add_alias(struct key_names *keys, const struct key_alias *alias)
{
	struct key_list *list = &keys->list;

	if (list->count == list->cap) {
		const uint32_t cap = list->cap == 0 ? 8 : 2 * list->cap;
		struct key_alias *grown = arena_take(keys->tools.into, cap * sizeof(*grown));
		if (grown == NULL)
			return false;
		if (list->count != 0)
			(void)memcpy(grown, list->at, list->count * sizeof(*grown));
		list->at = grown;
		list->cap = cap;
	}
	list->at[list->count++] = *alias;
	return true;
}

/* Names for all properties that are refused, in the order of the schema. */
static void name_properties(struct mender *m, struct slice tool, struct key_names *keys)
{
	const uint32_t count = m->properties.count;
	struct key_group *group = NULL;

	for (uint32_t i = 0; i < count && !m->failed; i++) {
		const struct name_entry entry = m->properties.entries[i];
		if (!entry.taken)
			continue;
		if (group == NULL && (group = new_group(keys, tool)) == NULL) {
			m->failed = true;
			return;
		}
		struct slice alias = alias_of(m, entry.key);
		uint32_t at = slice_absent(alias) ? NAME_NONE
						  : name_table_put(&group->aliases, entry.key);
		if (at == NAME_NONE ||
		    !add_alias(keys, &(struct key_alias){ tool, alias, entry.value })) {
			m->failed = true;
			return;
		}
		group->aliases.entries[at].value = alias;
	}
	m->aliases = group == NULL ? NULL : &group->aliases;
}

/* ---- the two doors ---- */

static void look(struct mender *m, struct slice schema, uint8_t odd, const struct json_work *work,
		 struct arena *into)
{
	*m = (struct mender){ .odd = odd, .into = into };
	name_table_init(&m->properties, work, into);
	walk(m, schema);
}

bool schema_refuses_key(struct slice schema, const struct json_work *work, struct arena *into,
			bool *refuses)
{
	struct mender m;

	look(&m, schema, SCHEMA_ODD_KEYS, work, into);
	*refuses = m.changes != 0;
	return !m.failed;
}

bool schema_mend(struct slice schema, uint8_t odd, struct slice tool, struct key_names *keys,
		 const struct json_work *work, struct arena *into, struct slice *out)
{
	struct mender m;
	struct gather g;

	*out = schema;
	look(&m, schema, odd, work, into);
	if (m.failed || m.changes == 0)
		return !m.failed;
	name_properties(&m, tool, keys);
	if (m.failed)
		return false;
	gather_init(&g, into);
	m.g = &g;
	walk(&m, schema);
	if (m.failed || gather_done(&g) != ERR_OK)
		return false;
	*out = gather_flat(&g, into);
	return !slice_absent(*out);
}
