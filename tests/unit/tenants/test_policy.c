#include "tenants/policy.h"

#include "tenants/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A tenant that may do nothing but send text to one model. */
struct fixture {
	struct plan plan;
	struct tenant tenant;
	struct sampling_request request;
};

static struct fixture *fixture_init(struct fixture *f)
{
	*f = (struct fixture){
		.plan = { .magic = PLAN_MAGIC, .default_model = -1, .limits = limit_defaults() },
		.tenant = { .magic = TENANT_MAGIC, .id = SLICE_INIT("acme"), .plan = &f->plan },
		.request = { .revision = REVISION_2025_11_25, .max_tokens = 100 },
	};
	bitset_add(&f->plan.models, 700);
	return f;
}

static void assert_refused(const struct fixture *f, enum err err, const char *rule)
{
	const struct verdict verdict = policy_check(&f->tenant, &f->request);

	assert_int_equal(verdict.err, err);
	assert_string_equal(verdict.rule, rule);
}

static struct verdict passed(const struct fixture *f)
{
	const struct verdict verdict = policy_check(&f->tenant, &f->request);

	assert_int_equal(verdict.err, ERR_OK);
	assert_null(verdict.rule);
	return verdict;
}

static void plain_text_passes_unchanged(void **state)
{
	struct fixture f;

	(void)state;
	const struct verdict verdict = passed(fixture_init(&f));
	assert_int_equal(verdict.max_tokens, 100);
	assert_int_equal(verdict.adjustments, 0);
	assert_false(verdict.final_round);
}

static void a_disabled_tenant_is_refused_whatever_it_asks(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f)->tenant.disabled = true;
	assert_refused(&f, ERR_UNAUTHORIZED, "tenant_disabled");
}

static void tools_need_their_capability(void **state)
{
	struct tool tool = { .name = SLICE_INIT("look") };
	struct fixture f;

	(void)state;
	fixture_init(&f)->request.tools_present = true; /* [] */
	f.request.tool_mode = TOOL_MODE_NONE;
	(void)passed(&f);
	f.request.tool_mode = TOOL_MODE_AUTO;
	(void)passed(&f);
	f.request.tool_mode = TOOL_MODE_REQUIRED;
	assert_refused(&f, ERR_TOOLS_NOT_GRANTED, "tools_granted");
	f.request.tool_mode = TOOL_MODE_NONE;
	f.request.tools = &tool;
	f.request.tool_count = 1;
	assert_refused(&f, ERR_TOOLS_NOT_GRANTED, "tools_granted");
	f.plan.capabilities.tools = true;
	(void)passed(&f);
}

static void images_need_their_capability_in_tool_results_too(void **state)
{
	struct block inner[] = { { .type = BLOCK_TEXT }, { .type = BLOCK_IMAGE } };
	struct fixture f;

	(void)state;
	fixture_init(&f)->request.images = 1;
	assert_refused(&f, ERR_IMAGES_FORBIDDEN, "images_granted");
	f.plan.capabilities.images = true;
	(void)passed(&f);

	fixture_init(&f)->request.inner = inner;
	f.request.inner_count = 1;
	(void)passed(&f);
	f.request.inner_count = 2;
	assert_refused(&f, ERR_IMAGES_FORBIDDEN, "images_granted");
	f.plan.capabilities.images = true;
	(void)passed(&f);
}

static void audio_needs_its_capability_where_a_model_would_hear_it(void **state)
{
	struct block inner[] = { { .type = BLOCK_AUDIO } };
	struct fixture f;

	(void)state;
	fixture_init(&f)->request.audios = 2;
	assert_refused(&f, ERR_AUDIO_FORBIDDEN, "audio_granted");
	f.plan.capabilities.audio = true;
	(void)passed(&f);

	fixture_init(&f)->request.inner = inner; /* becomes a placeholder */
	f.request.inner_count = 1;
	(void)passed(&f);
}

static void a_tenant_without_models_is_refused(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f)->plan.models = (struct bitset){ 0 };
	assert_refused(&f, ERR_MODEL_FORBIDDEN, "model_permitted");
	bitset_add(&f.plan.models, 0);
	(void)passed(&f);
	f.plan.models = (struct bitset){ 0 };
	bitset_add(&f.plan.models, BITSET_MAX - 1);
	(void)passed(&f);
}

static void max_tokens_are_clamped_or_refused(void **state)
{
	static const struct {
		const char *name;
		int64_t asked;
		uint32_t granted;
		bool clamped;
	} rows[] = {
		{ "below", 4095, 4095, false },
		{ "at the limit", 4096, 4096, false },
		{ "above", 4097, 4096, true },
		{ "beyond 32 bits", INT64_C(1) << 32 | 7, 4096, true },
		{ "the largest", INT64_MAX, 4096, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;

		fixture_init(&f)->request.max_tokens = rows[i].asked;
		const struct verdict verdict = passed(&f);
		if (verdict.max_tokens != rows[i].granted ||
		    verdict.adjustments !=
			    (rows[i].clamped ? ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED) : 0))
			fail_msg("%s: %u", rows[i].name, verdict.max_tokens);
		f.plan.limits.max_tokens_refuse = true;
		if (rows[i].clamped)
			assert_refused(&f, ERR_MAX_TOKENS_FORBIDDEN, "max_tokens");
		else
			assert_int_equal(passed(&f).max_tokens, rows[i].asked);
	}
}

static void the_last_round_is_final_or_refused(void **state)
{
	struct tool tool = { .name = SLICE_INIT("look") };
	struct fixture f;

	(void)state;
	fixture_init(&f)->plan.capabilities.tools = true;
	f.plan.limits.tool_rounds = 3;
	f.request.tools = &tool;
	f.request.tool_count = 1;
	f.request.tools_present = true;
	for (uint32_t rounds = 0; rounds < 6; rounds++) {
		f.request.tool_rounds = rounds;
		f.plan.limits.tool_rounds_refuse = false;
		const struct verdict verdict = passed(&f);
		assert_int_equal(verdict.final_round, rounds >= 3);
		assert_int_equal(verdict.adjustments,
				 rounds >= 3 ? ADJUST_BIT(ADJUST_TOOL_ROUNDS_FINAL) : 0);
		f.plan.limits.tool_rounds_refuse = true;
		if (rounds >= 3)
			assert_refused(&f, ERR_TOOL_ROUNDS, "tool_rounds");
		else
			assert_false(passed(&f).final_round);
	}
}

static void a_last_round_without_calls_to_forbid_is_not_adjusted(void **state)
{
	struct tool tool = { .name = SLICE_INIT("look") };
	struct fixture f;

	(void)state;
	fixture_init(&f)->plan.capabilities.tools = true;
	f.request.tool_rounds = 1000;
	assert_false(passed(&f).final_round);
	assert_int_equal(passed(&f).adjustments, 0);
	f.request.tools = &tool;
	f.request.tool_count = 1;
	f.request.tool_mode = TOOL_MODE_NONE;
	assert_false(passed(&f).final_round);
	assert_int_equal(passed(&f).adjustments, 0);
	f.request.tool_mode = TOOL_MODE_REQUIRED;
	assert_true(passed(&f).final_round);
}

static void of_several_rules_broken_the_first_in_order_is_named(void **state)
{
	static const struct {
		const char *rule;
		enum err err;
	} order[] = {
		{ "tenant_disabled", ERR_UNAUTHORIZED },
		{ "tools_granted", ERR_TOOLS_NOT_GRANTED },
		{ "images_granted", ERR_IMAGES_FORBIDDEN },
		{ "audio_granted", ERR_AUDIO_FORBIDDEN },
		{ "model_permitted", ERR_MODEL_FORBIDDEN },
		{ "max_tokens", ERR_MAX_TOKENS_FORBIDDEN },
		{ "tool_rounds", ERR_TOOL_ROUNDS },
	};
	struct tool tool = { .name = SLICE_INIT("look") };
	struct fixture f;

	(void)state;
	fixture_init(&f)->tenant.disabled = true;
	f.request.tools = &tool;
	f.request.tool_count = 1;
	f.request.images = f.request.audios = 1;
	f.request.max_tokens = 5000;
	f.request.tool_rounds = 10;
	f.plan.models = (struct bitset){ 0 };
	f.plan.limits.max_tokens_refuse = f.plan.limits.tool_rounds_refuse = true;
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		assert_refused(&f, order[i].err, order[i].rule);
		assert_string_equal(policy_rule_name(i), order[i].rule);
		f.tenant.disabled = false; /* each step removes what the last one named */
		f.plan.capabilities.tools = i >= 1;
		f.plan.capabilities.images = i >= 2;
		f.plan.capabilities.audio = i >= 3;
		if (i >= 4)
			bitset_add(&f.plan.models, 1);
		f.plan.limits.max_tokens_refuse = i < 5;
		f.plan.limits.tool_rounds_refuse = i < 6;
	}
	assert_null(policy_rule_name(COUNT_OF(order)));
	assert_null(policy_rule_name(SIZE_MAX));
	assert_int_equal(passed(&f).adjustments, ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED) |
							 ADJUST_BIT(ADJUST_TOOL_ROUNDS_FINAL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_passes_unchanged),
		cmocka_unit_test(a_disabled_tenant_is_refused_whatever_it_asks),
		cmocka_unit_test(tools_need_their_capability),
		cmocka_unit_test(images_need_their_capability_in_tool_results_too),
		cmocka_unit_test(audio_needs_its_capability_where_a_model_would_hear_it),
		cmocka_unit_test(a_tenant_without_models_is_refused),
		cmocka_unit_test(max_tokens_are_clamped_or_refused),
		cmocka_unit_test(the_last_round_is_final_or_refused),
		cmocka_unit_test(a_last_round_without_calls_to_forbid_is_not_adjusted),
		cmocka_unit_test(of_several_rules_broken_the_first_in_order_is_named),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
