#include "tests/unit/gateway/settings_rig.h"

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
		cmocka_unit_test(lists_replace),
		cmocka_unit_test(tenants_that_add_nothing_share_the_record_of_their_plan),
		cmocka_unit_test(a_tenant_without_a_plan_has_the_defaults_and_its_own_keys),
	};
	return cmocka_run_group_tests_name("settings_tenants", tests, NULL, NULL);
}
