/* settings_read.c - from a tree to forms, by the rows of the table.
 *
 * Recursion here follows the table (scopes inside scopes, three deep), never the input. */
#include "gateway/settings/settings_loader.h"

#include "codec/base/must.h"
#include "gateway/settings/settings_value.h"

enum { EXPECTS_MAX = 256 };

static void wrong(struct loader *l, const struct setting *row, const struct node *node,
		  const char *what)
{
	char expects[EXPECTS_MAX];

	setting_expects(row, expects, sizeof(expects));
	problem_at(&l->problems, node, "%s; write %s", what, expects);
}

/* ---- numbers ---- */

static const char *const fault_words[] = {
	[VALUE_OK] = "",
	[VALUE_UNREADABLE] = "cannot be read",
	[VALUE_TOO_PRECISE] = "has more decimal places than can be kept",
	[VALUE_TOO_LARGE] = "is too large",
};

static void read_number(struct loader *l, const struct setting *row, const struct node *node,
			uint64_t *field)
{
	uint64_t value = 0;
	bool any_style = row->type == TYPE_SIZE || row->type == TYPE_DURATION ||
			 row->type == TYPE_AUTO_COUNT;
	bool automatic = row->type == TYPE_AUTO_COUNT && slice_eq(node->text, SLICE("auto"));

	if (!node->plain && !any_style) {
		wrong(l, row, node, "is a text: leave the quotes out");
		return;
	}
	enum value_fault fault = value_number(row->type, node->text, &value);
	if (fault != VALUE_OK)
		wrong(l, row, node, fault_words[fault]);
	else if (value < row->minimum && !automatic)
		wrong(l, row, node, "is too small");
	else if (value > row->maximum)
		wrong(l, row, node, "is too large");
	else
		*field = value;
}

static bool fraction(struct loader *l, const struct setting *row, const struct node *node,
		     double *out)
{
	double value = 0;
	enum value_fault fault = node->kind == NODE_SCALAR && node->plain
					 ? value_fraction(node->text, &value)
					 : VALUE_UNREADABLE;

	if (fault != VALUE_OK) {
		wrong(l, row, node, fault_words[fault]);
		return false;
	}
	if (value < (double)row->minimum || value > (double)row->maximum) {
		wrong(l, row, node, "is too large");
		return false;
	}
	*out = value;
	return true;
}

static void read_range(struct loader *l, const struct setting *row, const struct node *node,
		       struct form_range *field)
{
	struct form_range range = { .set = true };

	if (node_is_null(node)) {
		range.never = true;
		*field = range;
		return;
	}
	if (node->kind != NODE_LIST || node->count != 2) {
		wrong(l, row, node, "is not a range");
		return;
	}
	if (!fraction(l, row, node->first, &range.min) || !fraction(l, row, node->last, &range.max))
		return;
	if (range.min > range.max)
		wrong(l, row, node, "ends below its beginning");
	else
		*field = range;
}

/* closed, or {local: USD}. */
static void read_away_usd(struct loader *l, const struct setting *row, const struct node *node,
			  uint64_t *field)
{
	const struct node *local = node->kind == NODE_MAP ? node_find(node, "local") : NULL;

	if (node->kind == NODE_SCALAR && slice_eq(node->text, SLICE("closed"))) {
		*field = 0;
		return;
	}
	if (local == NULL || node->count != 1 || local->kind != NODE_SCALAR) {
		wrong(l, row, node, "is neither closed nor a local budget");
		return;
	}
	uint64_t value;
	const enum value_fault fault = value_number(TYPE_USD, local->text, &value);
	if (fault != VALUE_OK)
		wrong(l, row, local, fault_words[fault]);
	else if (value < row->minimum || value > row->maximum)
		wrong(l, row, local, value < row->minimum ? "is too small" : "is too large");
	else
		*field = value;
}

/* In millionths. */
static void read_factor(struct loader *l, const struct setting *row, const struct node *node,
			uint64_t *field)
{
	enum { PLACES = 6, MOST = 1000 * 1000000 };
	uint64_t value = 0;
	const enum value_fault fault = node->kind == NODE_SCALAR && node->plain
					       ? value_decimal(node->text, PLACES, &value)
					       : VALUE_UNREADABLE;

	if (fault != VALUE_OK)
		wrong(l, row, node, fault_words[fault]);
	else if (value > MOST)
		wrong(l, row, node, "is too large");
	else
		*field = value;
}

/* ---- texts ---- */

static void read_choice(struct loader *l, const struct setting *row, const struct node *node,
			uint64_t *field)
{
	bool later;

	for (size_t i = 0;; i++) {
		struct slice word = setting_choice(row, i, &later);
		if (slice_absent(word)) {
			wrong(l, row, node, "is not one of the choices");
			return;
		}
		if (!slice_eq(word, node->text))
			continue;
		if (later)
			wrong(l, row, node, "is not available in this version");
		else
			*field = i;
		return;
	}
}

static bool resolves(const struct setting *row)
{
	return row->type >= TYPE_ADDRESS;
}

/* What may stand in the file for this type of text, before anything is resolved. */
static bool check_raw(struct loader *l, const struct setting *row, const struct node *node)
{
	if (node_is_untext(node)) {
		wrong(l, row, node, "is a number or a YAML word, not a text: put it in quotes");
		return false;
	}
	if (resolves(row) || row->type == TYPE_PROMPT)
		return true;
	bool path = row->type == TYPE_PATH || row->type == TYPE_FILES;
	if (memmem(node->text.at, node->text.len, "${", 2) != NULL ||
	    (path && slice_starts(node->text, SLICE("file:")))) {
		wrong(l, row, node,
		      "has ${NAME} or file:PATH, which are resolved only where a secret or an "
		      "address is expected");
		return false;
	}
	return true;
}

static void read_text(struct loader *l, const struct setting *row, const struct node *node,
		      struct slice *field)
{
	struct slice text = node->text;
	size_t max = row->form == FORM_VALUE ? row->maximum : 4096;
	const char *fault;

	if (!check_raw(l, row, node))
		return;
	if (resolves(row) && !loader_expand(l, node, node->text, &text))
		return;
	if (text.len == 0) {
		wrong(l, row, node, "is empty");
		return;
	}
	fault = value_text_fault(row->type, text);
	if (fault != NULL)
		wrong(l, row, node, fault);
	else if (text.len > max)
		problem_at(&l->problems, node, "has %zu bytes; write at most %zu", text.len, max);
	else
		*field = text;
}

/* ---- values, lists, entries ---- */

static const char *const kind_words[] = {
	[NODE_SCALAR] = "is a single value", [NODE_LIST] = "is a list", [NODE_MAP] = "is a map"
};

static void read_value(struct loader *l, const struct setting *row, const struct node *node,
		       void *field)
{
	if (row->type == TYPE_RANGE)
		read_range(l, row, node, field);
	else if (row->type == TYPE_AWAY_USD)
		read_away_usd(l, row, node, field);
	else if (row->type == TYPE_FACTOR)
		read_factor(l, row, node, field);
	else if (node->kind != NODE_SCALAR)
		wrong(l, row, node, kind_words[node->kind]);
	else if (node_is_null(node))
		wrong(l, row, node, "has no value");
	else if (row->type == TYPE_FRACTION)
		(void)fraction(l, row, node, field);
	else if (row->type == TYPE_CHOICE)
		read_choice(l, row, node, field);
	else if (row->type < TYPE_CHOICE)
		read_number(l, row, node, field);
	else
		read_text(l, row, node, field);
}

/* Whether a list or map is there at all, and not too long. */
static bool check_count(struct loader *l, const struct setting *row, const struct node *node,
			enum node_kind kind)
{
	const char *noun = kind == NODE_LIST ? "a list" : "a map of names";

	if (node->kind != kind) {
		problem_at(&l->problems, node, "%s; write %s",
			   node_is_null(node) ? "has no value" : kind_words[node->kind], noun);
		return false;
	}
	if (node->count < row->minimum || node->count > row->maximum) {
		problem_at(&l->problems, node, "has %u entries; write %s of %llu to %llu",
			   node->count, noun, (unsigned long long)row->minimum,
			   (unsigned long long)row->maximum);
		return false;
	}
	return true;
}

static void read_list(struct loader *l, const struct setting *row, const struct node *node,
		      struct form_values *field, struct arena *into)
{
	struct form_values list = { NULL, 0 };

	*field = list; /* lists replace */
	if (!check_count(l, row, node, NODE_LIST))
		return;
	list.at = loader_zero(l, into, node->count, sizeof(*list.at));
	if (list.at == NULL)
		return;
	for (const struct node *item = node->first; item != NULL; item = item->next) {
		struct slice text = { NULL, 0 };
		read_value(l, row, item, &text);
		if (!slice_absent(text))
			list.at[list.count++] = text;
	}
	*field = list;
}

static bool check_name(struct loader *l, const struct node *entry)
{
	const char *fault = value_text_fault(TYPE_ID, entry->key);

	if (fault == NULL && entry->key.len >= 1 && entry->key.len <= 128)
		return true;
	problem_at(&l->problems, entry,
		   "%s; write a name of 1 to 128 visible ASCII characters without quotes",
		   fault != NULL ? fault : "is too long or empty");
	return false;
}

static bool has_entry(const struct node *map, struct slice name)
{
	for (const struct node *entry = map->first; entry != NULL; entry = entry->next)
		if (slice_eq(entry->key, name))
			return true;
	return false;
}

/* A name in a map of values, and what it has. False: one of them is wrong. */
static bool read_pair(struct loader *l, const struct setting *row, const struct node *item,
		      struct form_pair *out)
{
	const bool factor = row->type == TYPE_FACTOR;
	const char *fault = factor ? NULL : value_text_fault(TYPE_HEADER_NAME, item->key);
	const uint32_t before = l->problems.count;

	*out = (struct form_pair){ .node = item };
	if (factor && !check_name(l, item))
		return false;
	if (fault != NULL) {
		problem_at(&l->problems, item, "%s; write the name of a header", fault);
		return false;
	}
	if (!factor) {
		read_value(l, row, item, &out->value);
		return !slice_absent(out->value);
	}
	read_value(l, row, item, &out->number);
	return l->problems.count == before;
}

/* Over the entries that are there already: maps merge. */
static void read_value_map(struct loader *l, const struct setting *row, const struct node *node,
			   struct form_pairs *field, struct arena *into)
{
	struct form_pairs map = { NULL, 0 };

	if (!check_count(l, row, node, NODE_MAP))
		return;
	map.at = loader_zero(l, into, field->count + node->count, sizeof(*map.at));
	if (map.at == NULL)
		return;
	for (uint32_t i = 0; i < field->count; i++)
		if (!has_entry(node, field->at[i].node->key))
			map.at[map.count++] = field->at[i];
	for (const struct node *item = node->first; item != NULL; item = item->next)
		map.count += read_pair(l, row, item, &map.at[map.count]);
	*field = map;
}

static void read_entries(struct loader *l, const struct setting *row, const struct node *node,
			 struct form_entries *field, struct arena *into)
{
	const struct settings_scope_info *info = settings_scope_info(row->entry);
	enum node_kind kind = row->form == FORM_SCOPE_MAP ? NODE_MAP : NODE_LIST;

	if (!check_count(l, row, node, kind))
		return;
	char *items = loader_zero(l, into, node->count, info->size);
	if (items == NULL)
		return;
	*field = (struct form_entries){ .at = items };
	for (const struct node *entry = node->first; entry != NULL && !problems_full(&l->problems);
	     entry = entry->next) {
		if (kind == NODE_MAP && !check_name(l, entry))
			continue;
		if (entry->kind != NODE_MAP) {
			problem_at(&l->problems, entry, "is not %s; write a map of its settings",
				   info->what);
			continue;
		}
		loader_read(l, row->entry, entry, items + info->size * field->count++, into);
	}
}

/* Whether every entry of a map has a name and is a map itself. */
static bool check_late_map(struct loader *l, const struct setting *row, const struct node *node)
{
	bool fit = check_count(l, row, node, NODE_MAP);

	for (const struct node *entry = node->first; fit && entry != NULL; entry = entry->next) {
		fit = check_name(l, entry);
		if (!fit || entry->kind == NODE_MAP)
			continue;
		problem_at(&l->problems, entry, "is not %s; write a map of its settings",
			   settings_scope_info(row->entry)->what);
		fit = false;
	}
	return fit;
}

static void read_row(struct loader *l, const struct setting *row, const struct node *node,
		     void *form, struct arena *into)
{
	void *field = (char *)form + row->offset;

	switch (row->form) {
	case FORM_VALUE:
		read_value(l, row, node, field);
		break;
	case FORM_LIST:
		read_list(l, row, node, field, into);
		break;
	case FORM_VALUE_MAP:
		read_value_map(l, row, node, field, into);
		break;
	case FORM_SCOPES:
	case FORM_SCOPE_MAP:
		read_entries(l, row, node, field, into);
		break;
	case FORM_LATE_LIST:
		if (check_count(l, row, node, NODE_LIST))
			(void)memcpy(field, &node, sizeof(node));
		break;
	case FORM_LATE_MAP:
		if (check_late_map(l, row, node))
			(void)memcpy(field, &node, sizeof(node));
		break;
	case FORM_LATER:
		problem_at(&l->problems, node, "is not available in this version; remove it");
		break;
	}
}

/* ---- maps ---- */

struct reading {
	struct loader *l;
	struct arena *into;
	enum settings_scope scope;
	void *form;
	struct slice prefix; /* "timeouts." */
};

static void read_group(struct reading *r, const struct node *node);

/* Rows are named by their path, which is not how the file writes them. */
static bool has_dot(struct slice key)
{
	return key.len != 0 && memchr(key.at, '.', key.len) != NULL;
}

/* False: no such key in the scope. */
static bool read_key(struct reading *r, const struct node *child)
{
	bool group;
	char prefix[64];

	if (has_dot(child->key))
		return false;
	const struct setting *row = settings_row(r->scope, r->prefix, child->key, &group);
	if (row != NULL) {
		read_row(r->l, row, child, r->form, r->into);
		return true;
	}
	if (!group)
		return false;
	if (child->kind != NODE_MAP) {
		problem_at(&r->l->problems, child, "%s; write a map of settings",
			   node_is_null(child) ? "has no value" : kind_words[child->kind]);
		return true;
	}
	int len = snprintf(prefix, sizeof(prefix), "%.*s%.*s.", (int)r->prefix.len, r->prefix.at,
			   (int)child->key.len, child->key.at);
	must(len > 0 && (size_t)len < sizeof(prefix)); /* it begins a row's key */
	struct reading inner = *r;
	inner.prefix = slice_of(prefix, (size_t)len);
	read_group(&inner, child);
	return true;
}

static void unknown_key(struct reading *r, const struct node *child)
{
	const struct settings_scope_info *info = settings_scope_info(r->scope);
	struct slice near = settings_nearest(r->scope, r->prefix, child->key);

	if (slice_absent(near) && info->extends != SCOPE_MAIN)
		near = settings_nearest(info->extends, r->prefix, child->key);
	if (has_dot(child->key))
		problem_at(&r->l->problems, child,
			   "is no setting; write a map for each dot, as in store: {kind: memory}");
	else if (slice_absent(near))
		problem_at(&r->l->problems, child,
			   "is no setting; remove it (`sluice settings` lists all)");
	else
		problem_at(&r->l->problems, child,
			   "is no setting; write %.*s, or remove it (`sluice settings` lists all)",
			   (int)near.len, near.at);
}

static void read_group(struct reading *r, const struct node *node)
{
	const struct settings_scope_info *info = settings_scope_info(r->scope);
	struct reading extended = *r;

	extended.scope = info->extends;
	extended.form = (char *)r->form + info->extends_at;
	for (const struct node *child = node->first;
	     child != NULL && !problems_full(&r->l->problems); child = child->next) {
		if (read_key(r, child))
			continue;
		if (info->extends == SCOPE_MAIN || !read_key(&extended, child))
			unknown_key(r, child);
	}
}

void loader_merge(struct loader *l, enum settings_scope scope, const struct node *node, void *form,
		  struct arena *into)
{
	struct reading reading = {
		.l = l, .into = into, .scope = scope, .form = form, .prefix = SLICE("")
	};

	must(node->kind == NODE_MAP);
	read_group(&reading, node);
}

static void preset(const struct setting *row, void *field)
{
	bool value = setting_has_value(row), later;
	uint64_t number = FORM_UNSET;

	if (row->type == TYPE_FRACTION) {
		must(value && value_fraction(slice_str(row->preset), field) == VALUE_OK);
		return;
	}
	if (row->type >= TYPE_ID && value) {
		const struct slice text = slice_str(row->preset);
		(void)memcpy(field, &text, sizeof(text));
		return;
	}
	if (row->type > TYPE_CHOICE)
		return; /* absent, as zeroed */
	if (value && strcmp(row->preset, PRESET_RAW) == 0)
		number = row->preset_raw;
	else if (value && row->type == TYPE_CHOICE)
		for (number = 0;
		     !slice_eq(setting_choice(row, number, &later), slice_str(row->preset));
		     number++)
			must(!slice_absent(setting_choice(row, number, &later)));
	else if (value)
		must(value_number(row->type, slice_str(row->preset), &number) == VALUE_OK);
	(void)memcpy(field, &number, sizeof(number));
}

void loader_presets(enum settings_scope scope, void *form)
{
	size_t count;
	const struct setting *rows = settings_rows(scope, &count);

	for (size_t i = 0; i < count; i++)
		if (rows[i].form == FORM_VALUE)
			preset(&rows[i], (char *)form + rows[i].offset);
}

static bool is_needed(const struct setting *row, const struct node *node)
{
	char group[64];

	if (row->form == FORM_LATER)
		return false;
	if (!setting_needed_with(row, group, sizeof(group)))
		return row->preset == NULL;
	node = node_find(node, group);
	return node != NULL && node->kind == NODE_MAP;
}

static void check_needed(struct loader *l, enum settings_scope scope, const struct node *node)
{
	size_t count;
	char expects[EXPECTS_MAX];
	const struct setting *rows = settings_rows(scope, &count);

	for (size_t i = 0; i < count; i++) {
		if (!is_needed(&rows[i], node) || node_find(node, rows[i].key) != NULL)
			continue;
		if (rows[i].form == FORM_VALUE)
			setting_expects(&rows[i], expects, sizeof(expects));
		else
			(void)snprintf(expects, sizeof(expects), "%s of at least one entry",
				       rows[i].form == FORM_SCOPE_MAP ? "a map" : "a list");
		problem_below(&l->problems, node, rows[i].key, "is missing; write %s", expects);
	}
}

void loader_read(struct loader *l, enum settings_scope scope, const struct node *node, void *form,
		 struct arena *into)
{
	(void)memcpy(form, &node, sizeof(node));
	loader_presets(scope, form);
	loader_merge(l, scope, node, form, into);
	check_needed(l, scope, node);
}
