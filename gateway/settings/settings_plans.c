/* settings_plans.c - what a plan grants, from its form: models, policy, limits, and its servers.
 *
 * Maps merge key by key: a server is read over the plan that the tenant's own keys were merged into, from
 * the plan's entry of that name and then from the tenant's. */
#include "gateway/settings/settings_loader.h"

#include "codec/base/must.h"
#include "codec/json/json_write.h"
#include "tenants/globs.h"

#include <stdlib.h>

/* ---- models ---- */

/* Adds what `wanted` names; an id that there is not is a mistake, a glob may be ahead of its time. */
static void add_models(struct loader *l, const struct alias_form *form, struct slice wanted,
		       struct bitset *out)
{
	const struct catalog *catalog = &l->config->catalog;
	bool any = false;

	for (uint32_t i = 0; i < catalog->count; i++) {
		const struct slice id = catalog->models[i].id;
		if (slice_absent(id) || !slice_glob(wanted, id))
			continue;
		bitset_add(out, i);
		any = true;
	}
	if (!any && !globs_is_one(wanted))
		problem_below(&l->problems, form->node, "models",
			      "there is no model %.*s; write a model's id, or a glob over ids",
			      (int)wanted.len, wanted.at);
}

static void build_aliases(struct loader *l, const struct plan_form *form, struct plan *out)
{
	const struct alias_form *forms = form->aliases.at;
	struct hint_alias *made = NULL;

	out->aliases = NULL;
	out->alias_count = 0;
	if (form->aliases.count != 0)
		made = loader_zero(l, &l->config->arena, form->aliases.count, sizeof(*made));
	if (made == NULL)
		return;
	for (uint32_t i = 0; i < form->aliases.count; i++) {
		if (slice_absent(forms[i].hint))
			continue; /* reported when it was read */
		made[i].hint = loader_keep_lower(l, forms[i].hint);
		if (forms[i].models.count == 0 && node_find(forms[i].node, "models") == NULL)
			problem_below(&l->problems, forms[i].node, "models",
				      "is missing; write the ids of models that do as well");
		for (uint32_t j = 0; j < forms[i].models.count; j++)
			add_models(l, &forms[i], forms[i].models.at[j], &made[i].models);
	}
	out->aliases = made;
	out->alias_count = form->aliases.count;
}

/* Allow minus deny, the default among them, and what hints may mean besides. `node`: whom to blame. */
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
		if (globs_match(form->allow.at, form->allow.count, id) &&
		    !globs_match(form->deny.at, form->deny.count, id))
			bitset_add(&out->models, i);
		if (!slice_absent(wanted) && slice_eq(id, wanted))
			out->default_model = (int32_t)i;
	}
	build_aliases(l, form, out);
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

/* ---- limits ---- */

static struct quota_limit quota(uint64_t per_minute, uint64_t burst, uint64_t derived)
{
	return (struct quota_limit){ per_minute, burst == FORM_UNSET ? derived : burst };
}

static void build_limits(const struct plan_form *form, struct tenant_limits *out)
{
	const uint64_t *v = form->limits;
	uint64_t requests = v[LIMIT_requests_per_minute], tokens = v[LIMIT_tokens_per_minute];

	*out = (struct tenant_limits){
		.count_only = form->enforce == 0,
		.requests =
			quota(requests, v[LIMIT_requests_burst], limit_requests_burst(requests)),
		.tokens = quota(tokens, v[LIMIT_tokens_burst], limit_tokens_burst(tokens)),
		.concurrent = (uint32_t)v[LIMIT_concurrent],
		.max_tokens = (uint32_t)v[LIMIT_max_tokens],
		.max_tokens_refuse = form->max_tokens_mode == 1,
		.tool_rounds = (uint32_t)v[LIMIT_tool_rounds],
		.tool_rounds_refuse = form->tool_rounds_action == 1,
		.unknown_calls_refuse = form->unknown_tool_calls == 1,
		.loop_tokens = v[LIMIT_loop_tokens],
		.loop_usd = v[LIMIT_loop_usd],
		.usd_per_day = v[LIMIT_usd_per_day],
		.usd_per_month = v[LIMIT_usd_per_month],
		.deadline = v[LIMIT_deadline],
		.deadline_progress = v[LIMIT_deadline_progress],
		.away_rates_closed = form->away_rates == 1,
		.away_usd = form->away_usd,
	};
}

/* Limits of a part: what is not set is no limit. Returns whether there is any. `node` has `key` in it,
 * the path of the limits with its dot. */
static bool build_part(struct loader *l, const struct limits_form *form, bool enforce,
		       const struct node *node, const char *key, struct tenant_limits *out)
{
	static const enum limit bursts[][2] = {
		{ LIMIT_requests_burst, LIMIT_requests_per_minute },
		{ LIMIT_tokens_burst, LIMIT_tokens_per_minute },
	};
	const uint64_t *v = form->limits;
	char path[64];

	for (size_t i = 0; i < COUNT_OF(bursts); i++) {
		if (v[bursts[i][0]] == FORM_UNSET || v[bursts[i][1]] != FORM_UNSET)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s", key, limit_info(bursts[i][0])->name);
		if (node_find(node, path) == NULL)
			continue; /* reported where it stands */
		problem_below(&l->problems, node, path, "has no rate beside it; write %s as well",
			      limit_info(bursts[i][1])->name);
	}
	*out = limit_none();
	out->count_only = !enforce || form->enforce == 0;
	if (v[LIMIT_requests_per_minute] != FORM_UNSET)
		out->requests = quota(v[LIMIT_requests_per_minute], v[LIMIT_requests_burst],
				      limit_requests_burst(v[LIMIT_requests_per_minute]));
	if (v[LIMIT_tokens_per_minute] != FORM_UNSET)
		out->tokens = quota(v[LIMIT_tokens_per_minute], v[LIMIT_tokens_burst],
				    limit_tokens_burst(v[LIMIT_tokens_per_minute]));
	if (v[LIMIT_concurrent] != FORM_UNSET)
		out->concurrent = (uint32_t)v[LIMIT_concurrent];
	out->usd_per_day = v[LIMIT_usd_per_day];
	out->usd_per_month = v[LIMIT_usd_per_month];
	return out->requests.per_minute != 0 || out->tokens.per_minute != 0 ||
	       out->concurrent != UINT32_MAX || out->usd_per_day != LIMIT_NONE ||
	       out->usd_per_month != LIMIT_NONE;
}

/* ---- policy ---- */

/* Copies that live as long as the configuration. */
static const struct slice *keep_globs(struct loader *l, const struct form_values *globs)
{
	struct slice *out = loader_zero(l, &l->config->arena, globs->count, sizeof(*out));

	for (uint32_t i = 0; out != NULL && i < globs->count; i++)
		out[i] = loader_keep(l, globs->at[i]);
	return out;
}

/* The inside of a JSON string that means `text`. */
static struct slice keep_escaped(struct loader *l, struct slice text)
{
	struct gather g;
	struct slice flat = { NULL, 0 };

	gather_init(&g, &l->scratch);
	gather_escaped(&g, text);
	if (gather_done(&g) == ERR_OK)
		flat = gather_flat(&g, &l->scratch);
	if (slice_absent(flat)) {
		loader_out_of_memory(l);
		return flat;
	}
	return loader_keep(l, flat);
}

static void build_system(struct loader *l, const struct plan_form *form, const struct node *node,
			 struct policy *out)
{
	const bool prefixed = !slice_absent(form->system_prefix);
	const bool fixed = !slice_absent(form->system_fixed);

	out->system_rule = fixed ? SYSTEM_FIXED : prefixed ? SYSTEM_PREFIXED : SYSTEM_AS_SENT;
	if (prefixed && fixed && node_find(node, "policy.system") != NULL)
		problem_below(&l->problems, node, "policy.system",
			      "has a prefix and a fixed text; keep one of them");
	else if (prefixed || fixed)
		out->system = keep_escaped(l, fixed ? form->system_fixed : form->system_prefix);
}

static void build_policy(struct loader *l, const struct plan_form *form, const struct node *node,
			 struct policy *out)
{
	_Static_assert(METADATA_PASS == 0 && METADATA_DROP == 1 && METADATA_REFUSE == 2,
		       "the order of choices in tbl/grants.h");
	_Static_assert(FORM_UNSET == POLICY_ANY, "an absent bound is none");
	*out = (struct policy){
		.messages_max = form->max_messages,
		.blocks_max = form->max_blocks,
		.tools_max = form->max_tools,
		.schema_bytes_max = form->schema_bytes,
		.image_bytes_max = form->image_bytes,
		.system_bytes_max = form->system_bytes,
		.tools_allow = keep_globs(l, &form->tools_allow),
		.tools_deny = keep_globs(l, &form->tools_deny),
		.tools_allow_count = form->tools_allow.count,
		.tools_deny_count = form->tools_deny.count,
		.no_auto = form->choice_auto == 0,
		.no_required = form->choice_required == 0,
		.no_none = form->choice_none == 0,
		.user_id = (enum metadata_rule)form->user_id,
	};
	build_system(l, form, node, out);
}

static void build_grants(struct loader *l, const struct plan_form *form, const struct node *node,
			 struct plan *out)
{
	out->magic = PLAN_MAGIC;
	out->capabilities = (struct capabilities){
		.tools = form->tools != 0,
		.context = form->context != 0,
		.images = form->images != 0,
		.audio = form->audio != 0,
	};
	build_policy(l, form, node, &out->policy);
	build_limits(form, &out->limits);
	out->counts = limit_counts(form->limits[LIMIT_count_tokens_per_minute] == FORM_UNSET
					   ? 0
					   : form->limits[LIMIT_count_tokens_per_minute],
				   out->limits.requests.per_minute);
}

/* ---- fronts and MCP servers ---- */

/* `under`: the form of the plan that *out was copied from. */
static void build_ways(struct loader *l, const struct plan_form *form,
		       const struct plan_form *under, const struct node *node, struct plan *out)
{
	const bool allows = form->mcp_allow.at != under->mcp_allow.at;

	out->fronts = loader_fronts(l, &form->fronts, node);
	out->mcp_messages_per_minute = form->mcp_messages_per_minute;
	out->mcp_sessions = (uint32_t)form->mcp_sessions;
	if (!allows && form->mcp_deny.at == under->mcp_deny.at)
		return;
	out->mcp_allow = loader_keep_list(l, &form->mcp_allow);
	out->mcp_deny = loader_keep_list(l, &form->mcp_deny);
	if (l->failed)
		return;
	out->mcp_allow_count = form->mcp_allow.count;
	out->mcp_deny_count = form->mcp_deny.count;
	loader_note_mcp(l, out, allows ? node : NULL);
}

/* ---- maps that merge key by key: the plan's and the tenant's ---- */

struct two_maps {
	const struct node *first, *second; /* NULL: there is none */
	const struct node *read;           /* the one whose problems were reported before */
};

static struct two_maps maps_of(const struct node *mine, const struct node *base)
{
	return base == NULL || base == mine ? (struct two_maps){ mine, NULL, base }
					    : (struct two_maps){ base, mine, base };
}

static const struct node *entry_of(const struct node *map, struct slice name)
{
	const struct node *entry = map == NULL ? NULL : map->first;

	while (entry != NULL && !slice_eq(entry->key, name))
		entry = entry->next;
	return entry;
}

/* The entry after `last` (NULL: the first): all of the first map, then what only the second has. */
static const struct node *next_entry(struct two_maps maps, const struct node *last)
{
	const struct node *next =
		last == NULL ? (maps.first == NULL ? NULL : maps.first->first) : last->next;
	const bool in_first = last == NULL || last->parent == maps.first;

	if (next == NULL && in_first && maps.second != NULL)
		next = maps.second->first;
	while (next != NULL && next->parent == maps.second && entry_of(maps.first, next->key))
		next = next->next;
	return next;
}

static uint32_t entry_count(struct two_maps maps)
{
	uint32_t count = 0;

	for (const struct node *e = next_entry(maps, NULL); e != NULL; e = next_entry(maps, e))
		count++;
	return count;
}

/* Both maps' entries of that name over `form`. Returns the later one, to be blamed. */
static const struct node *merge_entries(struct loader *l, enum settings_scope scope,
					struct two_maps maps, const struct node *entry, void *form)
{
	const struct node *second = entry_of(maps.second, entry->key);

	if (maps.read == NULL || entry->parent != maps.read || l->problems.count == 0)
		loader_merge(l, scope, entry, form, &l->scratch);
	if (second == NULL || second == entry)
		return entry;
	loader_merge(l, scope, second, form, &l->scratch);
	return second;
}

static void build_model_limits(struct loader *l, const struct plan_form *form, struct two_maps maps,
			       struct plan *out)
{
	const struct catalog *catalog = &l->config->catalog;
	const uint32_t count = entry_count(maps);
	struct model_limits *made = loader_zero(l, &l->config->arena, count, sizeof(*made));
	uint8_t globs_of[CATALOG_MODELS_MAX] = { 0 };
	uint32_t n = 0;

	if (made == NULL)
		return;
	for (const struct node *e = next_entry(maps, NULL); e != NULL; e = next_entry(maps, e)) {
		struct limits_form limits = { .node = e };
		struct model_limits *one = &made[n++];
		loader_presets(SCOPE_MODEL_LIMITS, &limits);
		const struct node *node = merge_entries(l, SCOPE_MODEL_LIMITS, maps, e, &limits);
		one->glob = loader_keep(l, e->key);
		tenant_part(TENANT_PART_MODELS, e->key, one->part);
		if (!build_part(l, &limits, form->enforce != 0, node, "", &one->limits))
			problem_at(&l->problems, node, "has no limit; write one, or remove it");
		for (uint32_t m = 0; m < catalog->count; m++) {
			if (!slice_glob(e->key, catalog->models[m].id))
				continue;
			bitset_add(&one->models, m);
			if (++globs_of[m] == PLAN_MODEL_LIMITS_MAX + 1)
				problem_at(&l->problems, node,
					   "is the third that matches %.*s; at most two may",
					   (int)catalog->models[m].id.len,
					   catalog->models[m].id.at);
		}
	}
	out->model_limits = made;
	out->model_limit_count = count;
}

static int by_server(const void *a, const void *b)
{
	return slice_order(((const struct plan_server *)a)->name,
			   ((const struct plan_server *)b)->name);
}

/* Each is the tenant's own plan, with what the entries say over it. */
static void build_servers(struct loader *l, const struct plan_form *form, struct two_maps maps,
			  struct plan *out)
{
	const uint32_t count = entry_count(maps);
	struct plan_server *made = loader_zero(l, &l->config->arena, count, sizeof(*made));
	uint32_t n = 0;

	if (made == NULL)
		return;
	for (const struct node *e = next_entry(maps, NULL); e != NULL; e = next_entry(maps, e)) {
		struct plan_form own = *form;
		struct plan_server *server = &made[n++];
		const struct node *node = merge_entries(l, SCOPE_SERVER, maps, e, &own);
		server->name = loader_keep(l, e->key);
		server->plan = *out;
		build_grants(l, &own, node, &server->plan);
		if (maps.read == NULL || l->problems.count == 0)
			build_models(l, &own, node, &server->plan);
		server->plan.server_limited =
			build_part(l, &own.per_server, form->enforce != 0, node, "limits.",
				   &server->plan.server_limits);
	}
	qsort(made, count, sizeof(*made), by_server);
	out->servers = made;
	out->server_count = count;
}

void loader_build_plan(struct loader *l, const struct plan_form *form, const struct node *node,
		       const struct plan_base *base, struct plan *out)
{
	const struct plan_form none = { 0 };
	const struct plan_form *under = base == NULL ? &none : base->form;

	*out = base == NULL ? (struct plan){ .default_model = -1 } : *base->plan;
	build_grants(l, form, node, out);
	build_ways(l, form, under, node, out);
	if (base == NULL || !loader_same_direct(form, under))
		loader_build_direct(l, form, out);
	if (node != NULL && (base == NULL || node_find(node, "models") != NULL))
		build_models(l, form, node, out);
	loader_warn_of_direct(l, node, out);
	out->server_limited = build_part(l, &form->per_server, form->enforce != 0, node,
					 "limits.per_server.", &out->server_limits);
	if (base == NULL || form->per_model != under->per_model || form->enforce != under->enforce)
		build_model_limits(l, form, maps_of(form->per_model, under->per_model), out);
	out->servers = NULL; /* of the plan without this tenant's keys */
	out->server_count = 0;
	build_servers(l, form, maps_of(form->servers, under->servers), out);
}
