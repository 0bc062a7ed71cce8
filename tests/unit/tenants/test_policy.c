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
		.plan = { .magic = PLAN_MAGIC,
			  .default_model = -1,
			  .policy = policy_defaults(),
			  .limits = limit_defaults() },
		.tenant = { .magic = TENANT_MAGIC, .id = SLICE_INIT("acme"), .plan = &f->plan },
		.request = { .revision = REVISION_2025_11_25, .max_tokens = 100 },
	};
	bitset_add(&f->plan.models, 700);
	return f;
}

static void assert_refused(const struct fixture *f, enum err err, const char *rule)
{
	const struct verdict verdict = policy_check(&f->tenant, &f->plan, &f->request);

	assert_int_equal(verdict.err, err);
	assert_string_equal(verdict.rule, rule);
}

static struct verdict passed(const struct fixture *f)
{
	const struct verdict verdict = policy_check(&f->tenant, &f->plan, &f->request);

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
	assert_refused(&f, ERR_TOOLS_NOT_GRANTED, "tools_granted");
	f.request.tools_present = false;
	(void)passed(&f);
	for (enum tool_mode mode = TOOL_MODE_AUTO; mode <= TOOL_MODE_NONE; mode++) {
		f.request.tool_mode = mode;
		assert_refused(&f, ERR_TOOLS_NOT_GRANTED, "tools_granted");
	}
	f.request.tool_mode = TOOL_MODE_DEFAULT;
	f.request.tools_present = true;
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
		f.plan.limits.count_only = true; /* refuses nothing */
		assert_int_equal(passed(&f).max_tokens, rows[i].granted);
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
		f.plan.limits.count_only = true; /* refuses nothing */
		assert_false(passed(&f).final_round);
		f.plan.limits.count_only = false;
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

/* ---- bounds: each row breaks one rule by one ---- */

enum { MANY = 8 };

static const struct block some_blocks[MANY] = {
	[0] = { .type = BLOCK_TEXT },
	[1] = { .type = BLOCK_IMAGE, .media = { .data = SLICE_INIT("AAAAAAAA") } }, /* 6 bytes */
	[2] = { .type = BLOCK_IMAGE, .media = { .data = SLICE_INIT("AAAAAA==") } }, /* 4 bytes */
};
static const struct block some_inner[MANY] = {
	[0] = { .type = BLOCK_IMAGE, .media = { .data = SLICE_INIT("AAA=") } }, /* 2 bytes */
};
static const struct tool some_tools[] = {
	{ .name = SLICE_INIT("search_web"), .schema = SLICE_INIT("{\"type\":\"object\"}") },
	{ .name = SLICE_INIT("\\u0065xec"), .schema = SLICE_INIT("{\"type\":\"object\"}") },
};

/* Everything granted, and something of everything asked. */
static struct fixture *busy_init(struct fixture *f)
{
	fixture_init(f);
	f->plan.capabilities =
		(struct capabilities){ .tools = true, .images = true, .audio = true };
	f->request.message_count = 4;
	f->request.blocks = (struct block *)(uintptr_t)some_blocks;
	f->request.block_count = 3;
	f->request.images = 2;
	f->request.inner = (struct block *)(uintptr_t)some_inner;
	f->request.inner_count = 1;
	f->request.tools = (struct tool *)(uintptr_t)some_tools;
	f->request.tool_count = 2;
	f->request.tools_present = true;
	f->request.system = SLICE("be brief");
	f->request.user_id = SLICE("u-1");
	return f;
}

static void each_bound_holds_at_its_figure_and_not_one_below(void **state)
{
	static const struct {
		const char *rule;
		size_t bound; /* offset in struct policy */
		uint64_t has;
	} rows[] = {
		{ "max_messages", offsetof(struct policy, messages_max), 4 },
		{ "max_blocks", offsetof(struct policy, blocks_max), 4 },
		{ "max_tools", offsetof(struct policy, tools_max), 2 },
		{ "schema_bytes", offsetof(struct policy, schema_bytes_max), 34 },
		{ "image_bytes", offsetof(struct policy, image_bytes_max), 12 },
		{ "system_bytes", offsetof(struct policy, system_bytes_max), 8 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;
		uint64_t bound = rows[i].has;

		busy_init(&f);
		(void)memcpy((char *)&f.plan.policy + rows[i].bound, &bound, sizeof(bound));
		(void)passed(&f);
		bound--;
		(void)memcpy((char *)&f.plan.policy + rows[i].bound, &bound, sizeof(bound));
		assert_refused(&f, ERR_POLICY, rows[i].rule);
		assert_non_null(policy_check(&f.tenant, &f.plan, &f.request).detail);
	}
}

static void a_system_prompt_is_measured_by_what_its_escapes_mean(void **state)
{
	static const struct {
		const char *name;
		struct slice raw;
		uint64_t bytes;
	} rows[] = {
		{ "none", { NULL, 0 }, 0 },
		{ "plain", SLICE_INIT("abc"), 3 },
		{ "short escapes", SLICE_INIT("a\\n\\\"\\\\"), 4 },
		{ "one byte", SLICE_INIT("\\u0041\\u007f"), 2 },
		{ "two bytes", SLICE_INIT("\\u0080\\u07FF"), 4 },
		{ "three bytes", SLICE_INIT("\\u0800\\uffff"), 6 },
		{ "a surrogate pair", SLICE_INIT("\\uD83D\\uDe00"), 4 },
		{ "UTF-8 as it is", SLICE_INIT("\xc3\xa9"), 2 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;

		fixture_init(&f)->request.system = rows[i].raw;
		f.plan.policy.system_bytes_max = rows[i].bytes;
		if (policy_check(&f.tenant, &f.plan, &f.request).err != ERR_OK)
			fail_msg("%s: longer than %u", rows[i].name, (unsigned)rows[i].bytes);
		if (rows[i].bytes == 0)
			continue;
		f.plan.policy.system_bytes_max--;
		assert_refused(&f, ERR_POLICY, "system_bytes");
	}
}

static void tool_names_are_matched_by_what_they_mean(void **state)
{
	static const struct {
		const char *name;
		struct slice allow, deny;
		bool permitted;
	} rows[] = {
		{ "nothing said", { NULL, 0 }, { NULL, 0 }, true },
		{ "all allowed", SLICE_INIT("*"), { NULL, 0 }, true },
		{ "one of two allowed", SLICE_INIT("search_*"), { NULL, 0 }, false },
		{ "denied behind an escape", SLICE_INIT("*"), SLICE_INIT("exec"), false },
		{ "denied alone", { NULL, 0 }, SLICE_INIT("search_?eb"), false },
		{ "another denied", { NULL, 0 }, SLICE_INIT("delete_*"), true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;

		busy_init(&f);
		f.plan.policy.tools_allow = &rows[i].allow;
		f.plan.policy.tools_allow_count = slice_absent(rows[i].allow) ? 0 : 1;
		f.plan.policy.tools_deny = &rows[i].deny;
		f.plan.policy.tools_deny_count = slice_absent(rows[i].deny) ? 0 : 1;
		const struct verdict verdict = policy_check(&f.tenant, &f.plan, &f.request);
		if ((verdict.err == ERR_OK) != rows[i].permitted)
			fail_msg("%s", rows[i].name);
		if (!rows[i].permitted)
			assert_string_equal(verdict.rule, "tools");
	}
}

static void tool_choice_modes_can_be_kept_out(void **state)
{
	static const struct {
		enum tool_mode mode;
		struct policy policy;
	} rows[] = {
		{ TOOL_MODE_DEFAULT, { .no_auto = true } },
		{ TOOL_MODE_AUTO, { .no_auto = true } },
		{ TOOL_MODE_REQUIRED, { .no_required = true } },
		{ TOOL_MODE_NONE, { .no_none = true } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t mode = 0; mode < COUNT_OF(rows); mode++) {
			struct fixture f;
			const bool automatic = i < 2 && mode < 2;

			busy_init(&f)->request.tool_mode = rows[mode].mode;
			f.plan.policy.no_auto = rows[i].policy.no_auto;
			f.plan.policy.no_required = rows[i].policy.no_required;
			f.plan.policy.no_none = rows[i].policy.no_none;
			if (i == mode || automatic)
				assert_refused(&f, ERR_POLICY, "tool_choice");
			else
				(void)passed(&f);
			f.request.tool_count = 0; /* nothing to choose from */
			if (rows[mode].mode != TOOL_MODE_REQUIRED)
				(void)passed(&f);
		}
}

static void a_user_id_is_passed_dropped_or_refused(void **state)
{
	struct arena_pool pool = { .keep_max = 4 };
	struct arena arena;
	struct fixture f;

	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	busy_init(&f);
	assert_int_equal(passed(&f).adjustments, 0);
	assert_int_equal(policy_apply(&f.plan, &arena, &f.request), ERR_OK);
	assert_int_equal(f.request.user_id.len, 3);
	f.plan.policy.user_id = METADATA_REFUSE;
	assert_refused(&f, ERR_POLICY, "metadata");
	f.plan.policy.user_id = METADATA_DROP;
	assert_int_equal(passed(&f).adjustments, ADJUST_BIT(ADJUST_USER_ID_DROPPED));
	assert_int_equal(policy_apply(&f.plan, &arena, &f.request), ERR_OK);
	assert_true(slice_absent(f.request.user_id));
	assert_int_equal(passed(&f).adjustments, 0); /* nothing was there to be dropped */
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void a_system_prompt_is_prefixed_or_fixed(void **state)
{
	static const struct {
		const char *name;
		enum system_rule rule;
		struct slice sent, expected;
		adjust_set adjusted;
	} rows[] = {
		{ "as sent", SYSTEM_AS_SENT, SLICE_INIT("mine"), SLICE_INIT("mine"), 0 },
		{ "prefix", SYSTEM_PREFIXED, SLICE_INIT("mine"), SLICE_INIT("rule\\n\\nmine"),
		  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED) },
		{ "prefix alone",
		  SYSTEM_PREFIXED,
		  { NULL, 0 },
		  SLICE_INIT("rule"),
		  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED) },
		{ "fixed", SYSTEM_FIXED, SLICE_INIT("mine"), SLICE_INIT("rule"),
		  ADJUST_BIT(ADJUST_SYSTEM_FIXED) },
		{ "fixed alone",
		  SYSTEM_FIXED,
		  { NULL, 0 },
		  SLICE_INIT("rule"),
		  ADJUST_BIT(ADJUST_SYSTEM_FIXED) },
	};
	struct arena_pool pool = { .keep_max = 4 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct arena arena;
		struct fixture f;

		arena_init(&arena, &pool, 1 << 20);
		fixture_init(&f)->request.system = rows[i].sent;
		f.plan.policy.system_rule = rows[i].rule;
		f.plan.policy.system = SLICE("rule");
		assert_int_equal(passed(&f).adjustments, rows[i].adjusted);
		assert_int_equal(policy_apply(&f.plan, &arena, &f.request), ERR_OK);
		if (!slice_eq(f.request.system, rows[i].expected))
			fail_msg("%s: %.*s", rows[i].name, (int)f.request.system.len,
				 f.request.system.at);
		arena_give(&arena);
	}
	arena_pool_fini(&pool);
}

/* ---- the order ---- */

/* Grants what the rule at `n` refused. */
static void cure(struct fixture *f, size_t n)
{
	struct policy *policy = &f->plan.policy;
	uint64_t *const bounds[] = {
		[1] = &policy->messages_max,    [2] = &policy->blocks_max,
		[4] = &policy->tools_max,       [6] = &policy->schema_bytes_max,
		[9] = &policy->image_bytes_max, [11] = &policy->system_bytes_max
	};

	if (n < COUNT_OF(bounds) && bounds[n] != NULL)
		*bounds[n] = POLICY_ANY;
	f->tenant.disabled = false;
	f->plan.capabilities.tools |= n == 3;
	f->plan.capabilities.images |= n == 8;
	f->plan.capabilities.audio |= n == 10;
	if (n == 5)
		policy->tools_deny_count = 0;
	if (n == 7)
		policy->no_auto = false;
	if (n == 13)
		policy->user_id = METADATA_DROP;
	if (n == 14)
		bitset_add(&f->plan.models, 1);
	if (n == 15)
		f->plan.limits.max_tokens_refuse = false;
	if (n == 16)
		f->plan.limits.tool_rounds_refuse = false;
}

static void of_several_rules_broken_the_first_in_order_is_named(void **state)
{
	static const struct {
		const char *rule;
		enum err err; /* ERR_OK: it never refuses */
	} order[] = {
		{ "tenant_disabled", ERR_UNAUTHORIZED },
		{ "max_messages", ERR_POLICY },
		{ "max_blocks", ERR_POLICY },
		{ "tools_granted", ERR_TOOLS_NOT_GRANTED },
		{ "max_tools", ERR_POLICY },
		{ "tools", ERR_POLICY },
		{ "schema_bytes", ERR_POLICY },
		{ "tool_choice", ERR_POLICY },
		{ "images_granted", ERR_IMAGES_FORBIDDEN },
		{ "image_bytes", ERR_POLICY },
		{ "audio_granted", ERR_AUDIO_FORBIDDEN },
		{ "system_bytes", ERR_POLICY },
		{ "system", ERR_OK },
		{ "metadata", ERR_POLICY },
		{ "model_permitted", ERR_MODEL_FORBIDDEN },
		{ "max_tokens", ERR_MAX_TOKENS_FORBIDDEN },
		{ "tool_rounds", ERR_TOOL_ROUNDS },
	};
	const struct slice every = SLICE_INIT("*");
	struct fixture f;

	(void)state;
	busy_init(&f)->tenant.disabled = true;
	f.plan.policy = (struct policy){ .tools_deny = &every,
					 .tools_deny_count = 1,
					 .no_auto = true,
					 .user_id = METADATA_REFUSE };
	f.plan.capabilities = (struct capabilities){ 0 };
	f.plan.models = (struct bitset){ 0 };
	f.request.audios = 1;
	f.request.max_tokens = 5000;
	f.request.tool_rounds = 10;
	f.plan.limits.max_tokens_refuse = f.plan.limits.tool_rounds_refuse = true;
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		assert_string_equal(policy_rule_name(i), order[i].rule);
		assert_int_equal(policy_rule_check(i, &f.tenant, &f.plan, &f.request).err,
				 order[i].err);
		if (order[i].err != ERR_OK)
			assert_refused(&f, order[i].err, order[i].rule);
		cure(&f, i);
		assert_int_equal(policy_rule_check(i, &f.tenant, &f.plan, &f.request).err, ERR_OK);
	}
	assert_null(policy_rule_name(COUNT_OF(order)));
	assert_null(policy_rule_name(SIZE_MAX));
	assert_int_equal(passed(&f).adjustments, ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED) |
							 ADJUST_BIT(ADJUST_TOOL_ROUNDS_FINAL) |
							 ADJUST_BIT(ADJUST_USER_ID_DROPPED));
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
		cmocka_unit_test(each_bound_holds_at_its_figure_and_not_one_below),
		cmocka_unit_test(a_system_prompt_is_measured_by_what_its_escapes_mean),
		cmocka_unit_test(tool_names_are_matched_by_what_they_mean),
		cmocka_unit_test(tool_choice_modes_can_be_kept_out),
		cmocka_unit_test(a_user_id_is_passed_dropped_or_refused),
		cmocka_unit_test(a_system_prompt_is_prefixed_or_fixed),
		cmocka_unit_test(of_several_rules_broken_the_first_in_order_is_named),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
