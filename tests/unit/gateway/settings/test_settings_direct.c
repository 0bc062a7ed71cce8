/* What plans, models and providers say of the direct APIs. */
#include "tests/unit/gateway/settings/settings_rig.h"

static const struct plan_direct *direct_of(const struct rig *rig, const char *tenant)
{
	const struct tenant *found = tenants_by_id(&rig->config->tenants, slice_str(tenant));

	assert_non_null(found);
	assert_non_null(found->plan->direct);
	return found->plan->direct;
}

#define PLANS                                                                          \
	"plans:\n"                                                                     \
	"  some:\n"                                                                    \
	"    direct:\n"                                                                \
	"      server_tools: [web_search, \"code_*\"]\n"                               \
	"      service_tiers: {flex: 0.5, priority: 2, \"fast\": 6.25, default: 1}\n"  \
	"      remote_files: true\n"                                                   \
	"      n: 4\n"                                                                 \
	"      tool_rounds: 100\n"                                                     \
	"    servers: {own: {capabilities: {tools: true}}}\n"                          \
	"tenants:\n"                                                                   \
	"  - {id: bare}\n"                                                             \
	"  - {id: some, plan: some}\n"                                                 \
	"  - {id: other, plan: some, direct: {service_tiers: {priority: 3, slow: 0}, " \
	"server_tools: []}}\n"                                                         \
	"  - {id: rounds, plan: some, direct: {tool_rounds: 1}}\n"

static void plans_grant_what_costs_extra(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, RIG_PROVIDERS RIG_MODELS PLANS);
	const struct plan_direct *d = direct_of(&rig, "bare");
	assert_int_equal(d->grants.server_tool_count, 0);
	assert_int_equal(d->grants.tier_count, 0);
	assert_false(d->grants.remote_files);
	assert_int_equal(d->grants.n_max, 1);
	assert_int_equal(d->tool_rounds, PLAN_ROUNDS_ANY);
	d = direct_of(&rig, "some");
	assert_int_equal(d->grants.server_tool_count, 2);
	assert_slice(d->grants.server_tools[1], "code_*");
	assert_int_equal(d->grants.tier_count, 4);
	assert_slice(d->grants.tiers[0], "flex");
	assert_int_equal(d->tier_factors[0], 500000);
	assert_int_equal(d->tier_factors[1], 2000000);
	assert_int_equal(d->tier_factors[2], 6250000);
	assert_true(d->grants.remote_files);
	assert_int_equal(d->grants.n_max, 4);
	assert_int_equal(d->tool_rounds, 100);
	/* a server's own plan has the tenant's */
	const struct plan *plan = tenants_by_id(&rig.config->tenants, SLICE("some"))->plan;
	assert_ptr_equal(plan_for(plan, SLICE("own"))->direct, plan->direct);
	rig_fini(&rig);
}

/* Maps merge key by key, lists replace. */
static void a_tenants_own_stand_over_its_plans(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig, RIG_PROVIDERS RIG_MODELS PLANS);
	const struct plan_direct *d = direct_of(&rig, "other");
	assert_int_equal(d->grants.server_tool_count, 0);
	assert_int_equal(d->grants.tier_count, 5);
	assert_slice(d->grants.tiers[0], "flex");
	assert_int_equal(d->tier_factors[0], 500000);
	assert_slice(d->grants.tiers[3], "priority");
	assert_int_equal(d->tier_factors[3], 3000000);
	assert_slice(d->grants.tiers[4], "slow");
	assert_int_equal(d->tier_factors[4], 0);
	assert_true(d->grants.remote_files);
	d = direct_of(&rig, "rounds");
	assert_int_equal(d->tool_rounds, 1);
	assert_int_equal(d->grants.tier_count, 4);
	rig_fini(&rig);
}

static void models_and_providers_say_what_they_take(void **state)
{
	struct rig rig;
	(void)state;
	rig_load_good(&rig,
		      "providers:\n"
		      "  main:\n"
		      "    dialect: anthropic\n"
		      "    endpoints: [{url: \"https://llm.example\"}]\n"
		      "    direct: {refuse: [logit_bias, X]}\n"
		      "models:\n"
		      "  - {id: a, provider: main, context: 8000, price: {input: 1, output: 2, "
		      "server_tool: 0.01}}\n"
		      "  - {id: b, provider: main, context: 8000, price: {input: 1, output: 2}}\n"
		      "  - {id: claude-haiku-5-5, provider: main, price: {server_tool: 0}}\n");
	const struct provider *provider = &rig.config->providers[0];
	assert_int_equal(provider->refused_count, 2);
	assert_slice(provider->refused[0], "logit_bias");
	const struct model *m = rig.config->catalog.models;
	assert_int_equal(m[0].price_server_tool, 10000000);
	assert_true(m[1].price_server_tool == CATALOG_NO_PRICE);
	/* the prices of tokens are the catalogue's */
	assert_int_equal(m[2].price_server_tool, 0);
	assert_true(m[2].price_input != 0);
	rig_fini(&rig);
}

static void tools_that_nobody_has_a_price_for_are_told(void **state)
{
	static const struct {
		const char *price, *said;
	} rows[] = {
		{ "input: 1, output: 2", "conf/sluice.yaml:7: plans.a.direct.server_tools: no "
					 "model that is permitted here has "
					 "price.server_tool, so that no such tool is let through; "
					 "write what a use costs\n" },
		{ "input: 1, output: 2, server_tool: 0", "" },
	};
	char text[1024];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(text, sizeof(text),
			       RIG_PROVIDERS
			       "models:\n"
			       "  - {id: m, provider: main, context: 8000, price: {%s}}\n"
			       "plans: {a: {models: {allow: [m]}, direct: {server_tools: [x]}}}\n",
			       rows[i].price);
		const struct config_file file = { SLICE("conf/sluice.yaml"), slice_str(text) };
		struct settings_source source = { .path = file.path.at,
						  .files = &file,
						  .file_count = 1 };
		char *said = NULL;
		size_t len = 0;
		source.warnings = open_memstream(&said, &len);
		assert_non_null(source.warnings);
		struct config *config = settings_load(&source, stderr);
		assert_int_equal(fclose(source.warnings), 0);
		assert_non_null(config);
		assert_string_equal(said, rows[i].said);
		settings_free(&config);
		free(said);
	}
}

static void memory_that_is_exhausted_is_said(void **state)
{
	(void)state;
	rig_load_without_memory(RIG_PROVIDERS RIG_MODELS PLANS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plans_grant_what_costs_extra),
		cmocka_unit_test(a_tenants_own_stand_over_its_plans),
		cmocka_unit_test(models_and_providers_say_what_they_take),
		cmocka_unit_test(tools_that_nobody_has_a_price_for_are_told),
		cmocka_unit_test(memory_that_is_exhausted_is_said),
	};

	return cmocka_run_group_tests_name("settings_direct", tests, NULL, NULL);
}
