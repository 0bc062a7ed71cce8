/* settings_tenants.c - plans and tenants: merging, sharing, and 100,000 of them from files.
 *
 * A tenant that only names its plan shares the plan's record; entries of files are read one at a time,
 * so that memory is bounded by the result. */
#include "gateway/settings_loader.h"

#include "codec/base/must.h"

#include <stdlib.h>

struct plan_entry {
	struct slice name;
	const struct plan_form *form;
	const struct plan *plan;
};

/* Where a tenant or a key stands, for duplicates. */
struct place {
	const char *file;
	uint32_t line, entry, key;
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
};

/* ---- plans ---- */

static bool any_glob(const struct form_values *globs, struct slice id)
{
	for (uint32_t i = 0; i < globs->count; i++)
		if (slice_glob(globs->at[i], id))
			return true;
	return false;
}

/* Allow minus deny, and the default among them. `node`: whom to blame. */
static void build_models(struct loader *l, const struct plan_form *form, const struct node *node,
			 struct plan *out)
{
	const struct catalog *catalog = &l->config->catalog;
	struct slice wanted = form->default_model;

	(void)memset(&out->models, 0, sizeof(out->models));
	out->default_model = -1;
	for (uint32_t i = 0; i < catalog->count; i++) {
		struct slice id = catalog->models[i].id;
		if (slice_absent(id))
			continue; /* reported when it was read */
		if (any_glob(&form->allow, id) && !any_glob(&form->deny, id))
			bitset_add(&out->models, i);
		if (!slice_absent(wanted) && slice_eq(id, wanted))
			out->default_model = (int32_t)i;
	}
	if (slice_absent(wanted))
		return;
	if (out->default_model < 0)
		problem_below(&l->problems, node, "models.default",
			      "there is no model %.*s; write a model's id", (int)wanted.len,
			      wanted.at);
	else if (!bitset_has(&out->models, (size_t)out->default_model))
		problem_below(&l->problems, node, "models.default",
			      "%.*s is not permitted by allow and deny; permit it or write another",
			      (int)wanted.len, wanted.at);
}

static void build_limits(const struct plan_form *form, struct tenant_limits *out)
{
	const uint64_t *v = form->limits;
	uint64_t requests = v[LIMIT_requests_per_minute], tokens = v[LIMIT_tokens_per_minute];

	*out = (struct tenant_limits){
		.requests = { requests, v[LIMIT_requests_burst] },
		.tokens = { tokens, v[LIMIT_tokens_burst] },
		.concurrent = (uint32_t)v[LIMIT_concurrent],
		.max_tokens = (uint32_t)v[LIMIT_max_tokens],
		.max_tokens_refuse = form->max_tokens_mode == 1,
		.tool_rounds = (uint32_t)v[LIMIT_tool_rounds],
		.tool_rounds_refuse = form->tool_rounds_action == 1,
		.usd_per_day = v[LIMIT_usd_per_day],
		.usd_per_month = v[LIMIT_usd_per_month],
		.deadline = v[LIMIT_deadline],
	};
	if (v[LIMIT_requests_burst] == FORM_UNSET)
		out->requests.burst = limit_requests_burst(requests);
	if (v[LIMIT_tokens_burst] == FORM_UNSET)
		out->tokens.burst = limit_tokens_burst(tokens);
}

/* All but the models. */
static void build_grants(const struct plan_form *form, struct plan *out)
{
	out->magic = PLAN_MAGIC;
	out->capabilities = (struct capabilities){
		.tools = form->tools != 0,
		.context = form->context != 0,
		.images = form->images != 0,
		.audio = form->audio != 0,
	};
	build_limits(form, &out->limits);
}

static int by_name(const void *a, const void *b)
{
	const struct slice *x = &((const struct plan_entry *)a)->name;
	const struct slice *y = &((const struct plan_entry *)b)->name;
	int order = memcmp(x->at, y->at, x->len < y->len ? x->len : y->len);

	return order != 0 ? order : (x->len > y->len) - (x->len < y->len);
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
	plans[count].default_model = -1;
	build_grants(&b->none_form, &plans[count]);
	b->none = (struct plan_entry){ .form = &b->none_form, .plan = &plans[count] };
	for (uint32_t i = 0; i < count; i++) {
		build_grants(&forms[i], &plans[i]);
		build_models(l, &forms[i], forms[i].node, &plans[i]);
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
	*own = *base->plan;
	build_grants(form, own);
	if (node_find(node, "models") != NULL)
		build_models(b->l, form, node, own);
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
	row.place.key = form->node->index;
	b->keys[b->key_count++] = row;
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
	for (size_t i = 0; i < count && going_on(b); i++)
		read_file(b, named, paths[i]);
}

/* ---- duplicates: only looked for in detail when the registry found one ---- */

static void place_problem(struct loader *l, const struct place *at, bool key,
			  const struct place *first)
{
	char where[96];
	const char *list = strcmp(at->file, l->source->path) == 0 ? "tenants" : "";

	if (key) {
		(void)snprintf(where, sizeof(where), "%s[%u].keys[%u].sha256", list, at->entry,
			       at->key);
		problem_in(&l->problems, at->file, at->line, where,
			   "is also a key in %s:%u; make another with `sluice key`", first->file,
			   first->line);
	} else {
		(void)snprintf(where, sizeof(where), "%s[%u].id", list, at->entry);
		problem_in(&l->problems, at->file, at->line, where,
			   "is also the id of the tenant in %s:%u; write another", first->file,
			   first->line);
	}
}

/* Orders of rows by what must be unique, then as they were read. */
static int by_id(const void *a, const void *b)
{
	const struct tenant_row *x = *(const struct tenant_row *const *)a;
	const struct tenant_row *y = *(const struct tenant_row *const *)b;
	size_t len = x->tenant.id.len < y->tenant.id.len ? x->tenant.id.len : y->tenant.id.len;
	int order = memcmp(x->tenant.id.at, y->tenant.id.at, len);

	if (order == 0)
		order = (x->tenant.id.len > y->tenant.id.len) -
			(x->tenant.id.len < y->tenant.id.len);
	return order != 0 ? order : (x > y) - (x < y);
}

static int by_digest(const void *a, const void *b)
{
	const struct key_row *x = *(const struct key_row *const *)a;
	const struct key_row *y = *(const struct key_row *const *)b;
	int order = memcmp(x->key.digest, y->key.digest, SHA256_BYTES);

	return order != 0 ? order : (x > y) - (x < y);
}

static void report_same_ids(struct tenants_builder *b)
{
	const struct tenant_row **rows = calloc(b->count, sizeof(struct tenant_row *));

	if (rows == NULL) {
		loader_out_of_memory(b->l);
		return;
	}
	for (size_t i = 0; i < b->count; i++)
		rows[i] = &b->tenants[i];
	qsort(rows, b->count, sizeof(struct tenant_row *), by_id);
	for (size_t i = 1, first = 0; i < b->count; i++)
		if (slice_eq(rows[i]->tenant.id, rows[first]->tenant.id))
			place_problem(b->l, &rows[i]->place, false, &rows[first]->place);
		else
			first = i;
	free(rows);
}

static void report_same_keys(struct tenants_builder *b)
{
	const struct key_row **rows = calloc(b->key_count, sizeof(struct key_row *));

	if (rows == NULL) {
		loader_out_of_memory(b->l);
		return;
	}
	for (size_t i = 0; i < b->key_count; i++)
		rows[i] = &b->keys[i];
	qsort(rows, b->key_count, sizeof(struct key_row *), by_digest);
	for (size_t i = 1, first = 0; i < b->key_count; i++)
		if (memcmp(rows[i]->key.digest, rows[first]->key.digest, SHA256_BYTES) == 0)
			place_problem(b->l, &rows[i]->place, true, &rows[first]->place);
		else
			first = i;
	free(rows);
}

/* ---- the registry ---- */

static void register_all(struct tenants_builder *b)
{
	struct loader *l = b->l;
	struct tenant *tenants = loader_zero(l, &l->config->arena, b->count, sizeof(struct tenant));
	struct tenant_key *keys =
		loader_zero(l, &l->config->arena, b->key_count, sizeof(struct tenant_key));
	size_t same_tenant = SIZE_MAX, same_key = SIZE_MAX;

	if (tenants == NULL || keys == NULL)
		return;
	for (size_t i = 0; i < b->count; i++)
		tenants[i] = b->tenants[i].tenant;
	for (size_t i = 0; i < b->key_count; i++) {
		keys[i] = b->keys[i].key;
		keys[i].tenant = &tenants[b->keys[i].tenant];
	}
	l->config->tenants = (struct tenants){
		.tenants = tenants, .count = b->count, .keys = keys, .key_count = b->key_count
	};
	if (!tenants_init(&l->config->tenants, &l->config->arena, &same_tenant, &same_key)) {
		loader_out_of_memory(l);
		return;
	}
	if (same_tenant != SIZE_MAX)
		report_same_ids(b);
	if (same_key != SIZE_MAX)
		report_same_keys(b);
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
}
