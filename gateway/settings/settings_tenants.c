/* settings_tenants.c - tenants: merging with plans, sharing, and 100,000 of them from files.
 *
 * A tenant that only names its plan shares the plan's record; entries of files are read one at a time,
 * so that memory is bounded by the result. */
#include "gateway/settings/settings_loader.h"

#include "codec/base/must.h"

#include <stdlib.h>

struct plan_entry {
	struct slice name;
	const struct plan_form *form;
	const struct plan *plan;
};

/* Where a tenant, or the `item`-th of its keys or names, stands, for duplicates. */
struct place {
	const char *file;
	uint32_t line, entry, item;
};

struct tenant_row {
	struct tenant tenant;
	struct place place;
};

struct key_row {
	struct tenant_key key;
	size_t tenant;
	struct place place;
};

struct alias_row {
	struct slice name;
	size_t tenant;
	struct place place;
};

struct tenants_builder {
	struct loader *l;
	struct arena entry; /* the tree and form of one entry of a file */
	struct plan_entry *plans;
	uint32_t plan_count;
	struct plan_entry none; /* of tenants without a plan */
	struct plan_form none_form;
	struct tenant_row *tenants;
	size_t count, room;
	struct key_row *keys;
	size_t key_count, key_room;
	struct alias_row *aliases;
	size_t alias_count, alias_room;
};

/* ---- plans ---- */

static int by_name(const void *a, const void *b)
{
	return slice_order(((const struct plan_entry *)a)->name,
			   ((const struct plan_entry *)b)->name);
}

static void build_plans(struct tenants_builder *b, const struct main_form *form)
{
	struct loader *l = b->l;
	const struct plan_form *forms = form->plans.at;
	uint32_t count = form->plans.count;
	struct plan *plans = loader_zero(l, &l->config->arena, count + (size_t)1, sizeof(*plans));

	b->plans = loader_zero(l, &l->scratch, count, sizeof(*b->plans));
	if (plans == NULL || b->plans == NULL)
		return;
	loader_presets(SCOPE_PLAN, &b->none_form);
	loader_build_plan(l, &b->none_form, NULL, NULL, &plans[count]);
	b->none = (struct plan_entry){ .form = &b->none_form, .plan = &plans[count] };
	for (uint32_t i = 0; i < count; i++) {
		loader_build_plan(l, &forms[i], forms[i].node, NULL, &plans[i]);
		b->plans[i] = (struct plan_entry){ .name = forms[i].node->key,
						   .form = &forms[i],
						   .plan = &plans[i] };
	}
	qsort(b->plans, count, sizeof(*b->plans), by_name);
	b->plan_count = count;
}

/* The entry of a tenant's plan; that of tenants without one after a problem. */
static const struct plan_entry *find_plan(struct tenants_builder *b, const struct node *node)
{
	const struct node *named = node_find(node, "plan");
	struct plan_entry wanted = { 0 };
	const struct plan_entry *found;

	if (named == NULL || named->kind != NODE_SCALAR)
		return &b->none; /* a list or map is reported when it is read */
	wanted.name = named->text;
	found = bsearch(&wanted, b->plans, b->plan_count, sizeof(*b->plans), by_name);
	if (found != NULL)
		return found;
	problem_at(&b->l->problems, named, "there is no such plan; write a name under plans");
	return &b->none;
}

/* The record of `form`, a tenant's keys over those of `base`: the plan's own when nothing differs. */
static const struct plan *merged_plan(struct tenants_builder *b, const struct plan_form *form,
				      const struct plan_entry *base, const struct node *node)
{
	struct plan *own;

	if (memcmp(form, base->form, sizeof(*form)) == 0)
		return base->plan;
	own = loader_zero(b->l, &b->l->config->arena, 1, sizeof(*own));
	if (own == NULL)
		return NULL;
	const struct plan_base over = { base->form, base->plan };
	loader_build_plan(b->l, form, node, &over, own);
	return own;
}

/* ---- rows ---- */

/* Room for one more element of `size` in *array. */
static bool make_room(struct loader *l, void **array, size_t *room, size_t count, size_t size)
{
	if (count < *room)
		return true;
	size_t more = *room == 0 ? 64 : *room * 2;
	void *grown = reallocarray(*array, more, size);
	if (grown == NULL) {
		loader_out_of_memory(l);
		return false;
	}
	*array = grown;
	*room = more;
	return true;
}

static uint8_t nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

static void add_key(struct tenants_builder *b, const struct tenant_key_form *form,
		    struct place place)
{
	void *rows = b->keys;
	struct key_row row = { .tenant = b->count, .place = place };
	const struct node *named = node_find(form->node, "sha256");

	if (slice_absent(form->sha256) ||
	    !make_room(b->l, &rows, &b->key_room, b->key_count, sizeof(row)))
		return;
	b->keys = rows;
	for (size_t i = 0; i < SHA256_BYTES; i++)
		row.key.digest[i] = (uint8_t)(nibble(form->sha256.at[2 * i]) << 4 |
					      nibble(form->sha256.at[2 * i + 1]));
	row.key.server = loader_keep(b->l, form->server);
	row.place.line = named->line;
	row.place.item = form->node->index;
	b->keys[b->key_count++] = row;
}

/* The same name twice for one tenant is reported like one for two. */
static void add_aliases(struct tenants_builder *b, const struct tenant_form *form,
			struct place place)
{
	for (uint32_t i = 0; i < form->names.count; i++) {
		void *rows = b->aliases;
		struct alias_row row = { .tenant = b->count, .place = place };
		if (!make_room(b->l, &rows, &b->alias_room, b->alias_count, sizeof(row)))
			return;
		b->aliases = rows;
		row.name = loader_keep(b->l, form->names.at[i]);
		row.place.line = node_find(form->node, "names")->line;
		row.place.item = i;
		if (slice_absent(row.name))
			return;
		b->aliases[b->alias_count++] = row;
	}
}

static void add_tenant(struct tenants_builder *b, const struct tenant_form *form,
		       const struct plan *plan)
{
	void *rows = b->tenants;
	const struct tenant_key_form *keys = form->keys.at;
	struct tenant_row row = { .tenant = { .magic = TENANT_MAGIC } };

	if (slice_absent(form->id) || plan == NULL ||
	    !make_room(b->l, &rows, &b->room, b->count, sizeof(row)))
		return;
	b->tenants = rows;
	row.place = (struct place){ .file = form->node->file,
				    .line = node_find(form->node, "id")->line,
				    .entry = form->node->index };
	row.tenant.disabled = form->disabled != 0;
	row.tenant.plan = plan;
	struct slice id = loader_keep(b->l, form->id);
	if (slice_absent(id))
		return;
	tenant_name(&row.tenant, id);
	row.tenant.id = id;
	for (uint32_t i = 0; i < form->keys.count; i++)
		add_key(b, &keys[i], row.place);
	add_aliases(b, form, row.place);
	row.tenant.named = form->names.count > 0;
	b->tenants[b->count++] = row;
}

static void build_tenant(struct tenants_builder *b, const struct node *node, struct arena *into)
{
	struct tenant_form form;

	if (node->kind != NODE_MAP) {
		problem_at(&b->l->problems, node,
			   "is not a tenant; write {id: ..., plan: ..., keys: [...]}");
		return;
	}
	const struct plan_entry *base = find_plan(b, node);
	(void)memset(&form, 0, sizeof(form));
	(void)memcpy(&form.plan, base->form, sizeof(form.plan));
	loader_read(b->l, SCOPE_TENANT, node, &form, into);
	if (b->l->failed)
		return;
	add_tenant(b, &form, merged_plan(b, &form.plan, base, node));
}

/* ---- files ---- */

static bool going_on(const struct tenants_builder *b)
{
	return !b->l->failed && !problems_full(&b->l->problems);
}

static void read_file(struct tenants_builder *b, const struct node *named, struct slice path)
{
	struct slice text;
	struct tree *tree;
	const struct node *node;

	if (!loader_file(b->l, named, path, FILE_TEXT_MAX, &text))
		return;
	tree = tree_new(&b->l->problems, path.at, text);
	if (tree == NULL) {
		loader_out_of_memory(b->l);
		return;
	}
	bool more = tree_list(tree);
	while (more && going_on(b)) {
		node = tree_next(tree, &b->entry);
		more = node != NULL;
		if (more && node_find(node, "files") != NULL)
			problem_at(&b->l->problems, node_find(node, "files"),
				   "stands in a tenant file; write it into the main file");
		else if (more)
			build_tenant(b, node, &b->entry);
		arena_give(&b->entry);
	}
	tree_free(&tree);
}

static void read_files(struct tenants_builder *b, const struct node *entry)
{
	struct tenant_form form;
	struct slice *paths = NULL;
	size_t count = 0;
	const struct node *named = node_find(entry, "files");

	for (const struct node *other = entry->first; other != NULL; other = other->next)
		if (other != named)
			problem_at(&b->l->problems, other,
				   "stands beside files; make it an entry of its own");
	(void)memset(&form, 0, sizeof(form));
	loader_merge(b->l, SCOPE_TENANT, entry, &form, &b->l->scratch);
	if (slice_absent(form.files) || !loader_glob(b->l, named, form.files, &paths, &count))
		return;
	/* A folder that is still empty is no mistake: tenants come and go while the gateway runs. */
	if (count == 0 && b->l->warnings.out != NULL)
		problem_at(&b->l->warnings, named, "matches no file: no tenants come from it");
	for (size_t i = 0; i < count && going_on(b); i++)
		read_file(b, named, paths[i]);
}

/* ---- duplicates: only looked for in detail when the registry found one ---- */

enum unique_kind { UNIQUE_ID, UNIQUE_KEY, UNIQUE_NAME };

/* What must be there once: an id, a digest, or a name, which may be an id. */
struct unique {
	struct slice bytes;
	const struct place *place;
	bool alias;   /* place->item is its place in the tenant's names */
	size_t order; /* as they were read */
};

static int by_bytes_then_order(const void *a, const void *b)
{
	const struct unique *x = a, *y = b;
	size_t len = x->bytes.len < y->bytes.len ? x->bytes.len : y->bytes.len;
	int order = memcmp(x->bytes.at, y->bytes.at, len);

	if (order == 0)
		order = (x->bytes.len > y->bytes.len) - (x->bytes.len < y->bytes.len);
	return order != 0 ? order : (x->order > y->order) - (x->order < y->order);
}

static void report_twice(struct loader *l, const struct unique *at, const struct unique *first,
			 enum unique_kind kind)
{
	static const char *const words[][2] = {
		[UNIQUE_ID] = { "the id of the tenant", "write another" },
		[UNIQUE_KEY] = { "a key", "make another with `sluice key`" },
		[UNIQUE_NAME] = { "a name of the tenant", "write another" },
	};
	char where[96];
	const struct place *place = at->place;
	const char *list = strcmp(place->file, l->source->path) == 0 ? "tenants" : "";
	int len = snprintf(where, sizeof(where), "%s[%u].", list, place->entry);

	must(len > 0 && (size_t)len < sizeof(where));
	if (kind == UNIQUE_KEY)
		(void)snprintf(where + len, sizeof(where) - (size_t)len, "keys[%u].sha256",
			       place->item);
	else if (at->alias)
		(void)snprintf(where + len, sizeof(where) - (size_t)len, "names[%u]", place->item);
	else
		(void)snprintf(where + len, sizeof(where) - (size_t)len, "id");
	problem_in(&l->problems, place->file, place->line, where, "is also %s in %s:%u; %s",
		   words[kind][0], first->place->file, first->place->line, words[kind][1]);
}

static void report_duplicates(struct tenants_builder *b, enum unique_kind kind)
{
	size_t count = 0;
	struct unique *rows =
		calloc(b->count + b->key_count + b->alias_count, sizeof(struct unique));

	if (rows == NULL) {
		loader_out_of_memory(b->l);
		return;
	}
	for (size_t i = 0; kind == UNIQUE_KEY && i < b->key_count; i++)
		rows[count++] = (struct unique){
			.bytes = slice_of((const char *)b->keys[i].key.digest, SHA256_BYTES),
			.place = &b->keys[i].place,
		};
	for (size_t i = 0; kind != UNIQUE_KEY && i < b->count; i++)
		if (kind == UNIQUE_ID || !b->tenants[i].tenant.named)
			rows[count++] = (struct unique){ .bytes = b->tenants[i].tenant.id,
							 .place = &b->tenants[i].place };
	for (size_t i = 0; kind == UNIQUE_NAME && i < b->alias_count; i++)
		rows[count++] = (struct unique){ .bytes = b->aliases[i].name,
						 .place = &b->aliases[i].place,
						 .alias = true };
	for (size_t i = 0; i < count; i++)
		rows[i].order = i;
	qsort(rows, count, sizeof(struct unique), by_bytes_then_order);
	for (size_t i = 1, first = 0; i < count; i++)
		if (slice_eq(rows[i].bytes, rows[first].bytes))
			report_twice(b->l, &rows[i], &rows[first], kind);
		else
			first = i;
	free(rows);
}

/* ---- the registry ---- */

/* The builder's rows as they stay. False: memory. */
static bool keep_rows(struct tenants_builder *b, struct tenants *out)
{
	struct arena *arena = &b->l->config->arena;
	struct tenant *tenants = loader_zero(b->l, arena, b->count, sizeof(*tenants));
	struct tenant_key *keys = loader_zero(b->l, arena, b->key_count, sizeof(*keys));
	struct tenant_alias *aliases = loader_zero(b->l, arena, b->alias_count, sizeof(*aliases));

	if (tenants == NULL || keys == NULL || aliases == NULL)
		return false;
	for (size_t i = 0; i < b->count; i++)
		tenants[i] = b->tenants[i].tenant;
	for (size_t i = 0; i < b->key_count; i++) {
		keys[i] = b->keys[i].key;
		keys[i].tenant = &tenants[b->keys[i].tenant];
	}
	for (size_t i = 0; i < b->alias_count; i++)
		aliases[i] =
			(struct tenant_alias){ b->aliases[i].name, &tenants[b->aliases[i].tenant] };
	*out = (struct tenants){ .tenants = tenants,
				 .count = b->count,
				 .keys = keys,
				 .key_count = b->key_count,
				 .aliases = aliases,
				 .alias_count = b->alias_count };
	return true;
}

static void register_all(struct tenants_builder *b)
{
	struct config *config = b->l->config;
	struct tenants_duplicates twice;

	if (!keep_rows(b, &config->tenants))
		return;
	if (!tenants_init(&config->tenants, &config->arena, &twice)) {
		loader_out_of_memory(b->l);
		return;
	}
	if (twice.tenant != SIZE_MAX)
		report_duplicates(b, UNIQUE_ID);
	if (twice.key != SIZE_MAX)
		report_duplicates(b, UNIQUE_KEY);
	if (twice.alias != SIZE_MAX)
		report_duplicates(b, UNIQUE_NAME);
}

void loader_build_tenants(struct loader *l, const struct main_form *form)
{
	struct tenants_builder b = { .l = l };

	arena_init(&b.entry, &l->config->pool, CONFIG_ARENA_MAX);
	build_plans(&b, form);
	const struct node *node = form->tenants == NULL ? NULL : form->tenants->first;
	for (; node != NULL && going_on(&b); node = node->next)
		if (node_find(node, "files") != NULL)
			read_files(&b, node);
		else
			build_tenant(&b, node, &l->scratch);
	if (going_on(&b))
		register_all(&b);
	free(b.tenants);
	free(b.keys);
	free(b.aliases);
}
