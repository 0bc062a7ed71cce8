#include "tests/unit/gateway/settings/settings_rig.h"

/* ---- merging and sharing ---- */

static const struct tenant *tenant(const struct rig *rig, const char *id)
{
	const struct tenant *found = tenants_by_id(&rig->config->tenants, slice_str(id));

	assert_non_null(found);
	return found;
}

static const char merging[] = RIG_PROVIDERS RIG_MODELS
	"plans:\n"
	"  basic:\n"
	"    capabilities: {tools: true, images: true}\n"
	"    models: {allow: [small, large], default: small}\n"
	"    limits: {requests_per_minute: 600, concurrent: 3, usd_per_day: 7}\n"
	"tenants:\n"
	"  - {id: plain, plan: basic}\n"
	"  - {id: same, plan: basic, limits: {concurrent: 3}}\n"
	"  - {id: own, plan: basic, capabilities: {images: false, audio: true},"
	" limits: {requests_per_minute: 20}}\n"
	"  - {id: lists, plan: basic, models: {allow: [gpt, small]}}\n"
	"  - {id: denies, plan: basic, models: {deny: [large]}}\n"
	"  - {id: none, limits: {max_tokens: 9}, models: {allow: [\"*\"]}}\n"
	"  - {limits: {tool_rounds: 2}, id: last, plan: basic}\n";

static void maps_merge_key_by_key(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig, merging);
	const struct plan *p = tenant(&rig, "own")->plan;
	assert_true(p->capabilities.tools && p->capabilities.audio);
	assert_false(p->capabilities.images);
	assert_int_equal(p->limits.requests.per_minute, 20);
	assert_int_equal(p->limits.requests.burst, 2); /* derived after merging */
	assert_int_equal(p->limits.concurrent, 3);
	assert_int_equal(p->limits.usd_per_day, 7000000000);
	assert_true(bitset_has(&p->models, 0) && bitset_has(&p->models, 1));
	assert_int_equal(p->default_model, 0);
	/* whatever the order of keys in the entry */
	p = tenant(&rig, "last")->plan;
	assert_int_equal(p->limits.tool_rounds, 2);
	assert_int_equal(p->limits.concurrent, 3);
	rig_fini(&rig);
}

static const char parts[] = RIG_PROVIDERS RIG_MODELS
	"plans:\n"
	"  basic:\n"
	"    capabilities: {tools: true, images: true}\n"
	"    models: {allow: [small, large], default: small}\n"
	"    policy: {max_messages: 9, max_tools: 5, tools: {allow: [\"a*\", \"b*\"]},"
	" metadata: {user_id: drop}, system: {prefix: \"be \\\"brief\\\"\\n\"}}\n"
	"    limits: {max_tokens: 100, usd_per_day: 7,"
	" per_server: {requests_per_minute: 200, concurrent: 2},"
	" per_model: {\"*\": {usd_per_day: 3}, small: {tokens_per_minute: 50}}}\n"
	"    servers:\n"
	"      zeta: {limits: {concurrent: 4, max_tokens: 50, enforce: false}}\n"
	"      alpha: {capabilities: {tools: false}, models: {allow: [small]},"
	" policy: {max_tools: 1}}\n"
	"tenants:\n"
	"  - {id: plain, plan: basic}\n"
	"  - {id: own, plan: basic, policy: {max_messages: 2},"
	" limits: {per_model: {small: {usd_per_day: 1}}},"
	" servers: {alpha: {policy: {max_tools: 3}}, beta: {capabilities: {audio: true}}}}\n"
	"  - {id: counting, plan: basic, limits: {enforce: false}}\n";

static void servers_are_read_over_the_tenant_and_the_plan(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig, parts);
	const struct plan *plain = tenant(&rig, "plain")->plan;
	assert_ptr_equal(plan_for(plain, SLICE("unknown")), plain);
	assert_ptr_equal(plan_for(plain, (struct slice){ NULL, 0 }), plain);
	assert_true(plain->capabilities.tools && plain->server_limited);
	assert_int_equal(plain->policy.tools_max, 5);
	assert_int_equal(plain->policy.tools_allow_count, 2);
	assert_int_equal(plain->policy.user_id, METADATA_DROP);
	assert_int_equal(plain->policy.system_rule, SYSTEM_PREFIXED);
	assert_true(slice_eq(plain->policy.system, SLICE("be \\\"brief\\\"\\n")));

	const struct plan *alpha = plan_for(plain, SLICE("alpha"));
	assert_false(alpha->capabilities.tools);
	assert_true(alpha->capabilities.images && bitset_has(&alpha->models, 0));
	assert_false(bitset_has(&alpha->models, 1));
	assert_int_equal(alpha->policy.tools_max, 1);
	assert_int_equal(alpha->policy.messages_max, 9);
	assert_int_equal(alpha->server_limits.concurrent, 2);

	const struct plan *zeta = plan_for(plain, SLICE("zeta"));
	assert_int_equal(zeta->server_limits.concurrent, 4);
	assert_int_equal(zeta->server_limits.requests.per_minute, 200);
	assert_int_equal(zeta->server_limits.requests.burst, 20);
	assert_true(zeta->server_limits.count_only);
	assert_false(zeta->limits.count_only || plain->server_limits.count_only);
	assert_int_equal(zeta->limits.max_tokens, 50);
	assert_int_equal(zeta->limits.usd_per_day, 7000000000);

	const struct plan *own = tenant(&rig, "own")->plan;
	assert_int_equal(own->server_count, 3);
	assert_int_equal(own->policy.messages_max, 2);
	alpha = plan_for(own, SLICE("alpha"));
	assert_false(alpha->capabilities.tools);
	assert_int_equal(alpha->policy.tools_max, 3);
	assert_int_equal(alpha->policy.messages_max, 2);
	assert_true(plan_for(own, SLICE("beta"))->capabilities.audio);
	assert_int_equal(plan_for(own, SLICE("zeta"))->limits.max_tokens, 50);
	rig_fini(&rig);
}

static void limits_of_models_merge_by_glob(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig, parts);
	const struct plan *plain = tenant(&rig, "plain")->plan;
	assert_int_equal(plain->model_limit_count, 2);
	assert_true(bitset_has(&plain->model_limits[0].models, 1));
	assert_int_equal(plain->model_limits[0].limits.usd_per_day, 3000000000);
	assert_int_equal(plain->model_limits[0].limits.tokens.per_minute, 0);
	assert_int_equal(plain->model_limits[0].limits.concurrent, UINT32_MAX);
	assert_false(bitset_has(&plain->model_limits[1].models, 1));
	assert_int_equal(plain->model_limits[1].limits.tokens.burst, 50);

	const struct plan *own = tenant(&rig, "own")->plan;
	assert_int_equal(own->model_limit_count, 2);
	assert_int_equal(own->model_limits[0].limits.usd_per_day, 3000000000);
	assert_int_equal(own->model_limits[1].limits.usd_per_day, 1000000000);
	assert_int_equal(own->model_limits[1].limits.tokens.per_minute, 50);

	const struct plan *counting = tenant(&rig, "counting")->plan;
	assert_true(counting->limits.count_only && counting->server_limits.count_only);
	assert_true(counting->model_limits[0].limits.count_only);
	assert_true(plan_for(counting, SLICE("alpha"))->limits.count_only);
	rig_fini(&rig);
}

static void lists_replace(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig, merging);
	const struct plan *p = tenant(&rig, "lists")->plan;
	assert_true(bitset_has(&p->models, 0) && bitset_has(&p->models, 2));
	assert_false(bitset_has(&p->models, 1));
	assert_int_equal(p->default_model, 0);
	p = tenant(&rig, "denies")->plan;
	assert_true(bitset_has(&p->models, 0));
	assert_false(bitset_has(&p->models, 1) || bitset_has(&p->models, 2));
	rig_fini(&rig);
}

static void tenants_that_add_nothing_share_the_record_of_their_plan(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig, merging);
	assert_ptr_equal(tenant(&rig, "plain")->plan, tenant(&rig, "same")->plan);
	assert_ptr_not_equal(tenant(&rig, "plain")->plan, tenant(&rig, "own")->plan);
	rig_fini(&rig);
}

static void a_tenant_without_a_plan_has_the_defaults_and_its_own_keys(void **state)
{
	(void)state;
	struct rig rig;
	rig_load_good(&rig, merging);
	const struct plan *p = tenant(&rig, "none")->plan;
	assert_int_equal(p->limits.max_tokens, 9);
	assert_int_equal(p->limits.concurrent, 8);
	assert_false(p->capabilities.tools);
	assert_true(bitset_has(&p->models, 2));
	assert_int_equal(p->default_model, -1);
	rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_merge_key_by_key),
		cmocka_unit_test(servers_are_read_over_the_tenant_and_the_plan),
		cmocka_unit_test(limits_of_models_merge_by_glob),
		cmocka_unit_test(lists_replace),
		cmocka_unit_test(tenants_that_add_nothing_share_the_record_of_their_plan),
		cmocka_unit_test(a_tenant_without_a_plan_has_the_defaults_and_its_own_keys),
	};
	return cmocka_run_group_tests_name("settings_tenants", tests, NULL, NULL);
}
