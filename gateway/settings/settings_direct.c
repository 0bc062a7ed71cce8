/* settings_direct.c - what a plan grants to callers of the direct APIs beside what it grants to all. */
#include "gateway/settings/settings_loader.h"

/* Tiers that pass in any case, at the usual price. */
static const struct slice usual_tiers[] = { SLICE_INIT("auto"), SLICE_INIT("default"),
					    SLICE_INIT("standard"), SLICE_INIT("standard_only") };

static void check_tier(struct loader *l, const struct form_pair *tier)
{
	for (size_t i = 0; i < COUNT_OF(usual_tiers); i++)
		if (slice_eq(tier->node->key, usual_tiers[i]) && tier->number != QUOTA_FACTOR_ONE)
			problem_at(&l->problems, tier->node,
				   "is the usual tier, whose price is the model's; remove it");
}

static void build_tiers(struct loader *l, const struct form_pairs *tiers, struct plan_direct *out)
{
	struct arena *into = &l->config->arena;
	struct slice *names = loader_zero(l, into, tiers->count, sizeof(*names));
	uint64_t *factors = loader_zero(l, into, tiers->count, sizeof(*factors));

	if (names == NULL || factors == NULL)
		return;
	for (uint32_t i = 0; i < tiers->count; i++) {
		check_tier(l, &tiers->at[i]);
		names[i] = loader_keep(l, tiers->at[i].node->key);
		factors[i] = tiers->at[i].number;
	}
	out->grants.tiers = names;
	out->grants.tier_count = tiers->count;
	out->tier_factors = factors;
}

void loader_build_direct(struct loader *l, const struct plan_form *form, struct plan *out)
{
	struct plan_direct *made = loader_zero(l, &l->config->arena, 1, sizeof(*made));

	if (made == NULL)
		return;
	made->grants.server_tools = loader_keep_list(l, &form->server_tools);
	made->grants.server_tool_count = form->server_tools.count;
	made->grants.remote_files = form->remote_files == 1;
	made->grants.n_max = (uint32_t)form->answers;
	made->tool_rounds =
		form->direct_rounds == FORM_UNSET ? PLAN_ROUNDS_ANY : (uint32_t)form->direct_rounds;
	build_tiers(l, &form->service_tiers, made);
	out->direct = made;
}

void loader_warn_of_direct(struct loader *l, const struct node *node, const struct plan *plan)
{
	const struct catalog *catalog = &l->config->catalog;

	if (l->warnings.out == NULL || l->problems.count != 0 || node == NULL ||
	    node_find(node, "direct.server_tools") == NULL || plan->direct == NULL ||
	    plan->direct->grants.server_tool_count == 0)
		return;
	for (uint32_t i = 0; i < catalog->count; i++)
		if (bitset_has(&plan->models, i) &&
		    catalog->models[i].price_server_tool != CATALOG_NO_PRICE)
			return;
	problem_below(&l->warnings, node, "direct.server_tools",
		      "no model that is permitted here has price.server_tool, so that no such tool "
		      "is let through; write what a use costs");
}

bool loader_same_direct(const struct plan_form *a, const struct plan_form *b)
{
	return a->server_tools.at == b->server_tools.at &&
	       a->service_tiers.at == b->service_tiers.at && a->remote_files == b->remote_files &&
	       a->answers == b->answers && a->direct_rounds == b->direct_rounds;
}
