#include "tenants/policy.h"

#include "codec/base/must.h"

/* True: the rule holds, perhaps with an adjustment noted in the verdict. */
typedef bool policy_test(const struct tenant *tenant, const struct sampling_request *request,
			 struct verdict *verdict);

static bool is_enabled(const struct tenant *tenant, const struct sampling_request *request,
		       struct verdict *verdict)
{
	(void)request;
	(void)verdict;
	return !tenant->disabled;
}

/* contract/mcp.md 4.2 V10. An empty `tools` only asks for the shape of the answer. */
static bool tools_granted(const struct tenant *tenant, const struct sampling_request *request,
			  struct verdict *verdict)
{
	(void)verdict;
	return tenant->plan->capabilities.tools ||
	       (request->tool_count == 0 && request->tool_mode != TOOL_MODE_REQUIRED);
}

/* Images inside tool results reach the model as well. */
static bool images_granted(const struct tenant *tenant, const struct sampling_request *request,
			   struct verdict *verdict)
{
	(void)verdict;
	if (tenant->plan->capabilities.images)
		return true;
	for (uint32_t i = 0; i < request->inner_count; i++)
		if (request->inner[i].type == BLOCK_IMAGE)
			return false;
	return request->images == 0;
}

/* Audio inside tool results never reaches a model: a placeholder does (contract/providers.md 8.1). */
static bool audio_granted(const struct tenant *tenant, const struct sampling_request *request,
			  struct verdict *verdict)
{
	(void)verdict;
	return tenant->plan->capabilities.audio || request->audios == 0;
}

static bool model_permitted(const struct tenant *tenant, const struct sampling_request *request,
			    struct verdict *verdict)
{
	(void)request;
	(void)verdict;
	for (size_t i = 0; i < COUNT_OF(tenant->plan->models.words); i++)
		if (tenant->plan->models.words[i] != 0)
			return true;
	return false;
}

static bool asks_few_tokens(const struct tenant *tenant, const struct sampling_request *request,
			    struct verdict *verdict)
{
	const struct tenant_limits *limits = &tenant->plan->limits;

	must(request->max_tokens >= 1); /* the reader has seen to it */
	if (request->max_tokens <= limits->max_tokens) {
		verdict->max_tokens = (uint32_t)request->max_tokens;
		return true;
	}
	verdict->max_tokens = limits->max_tokens;
	verdict->adjustments |= ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED);
	return !limits->max_tokens_refuse;
}

/* The last round answers without calls; where none could come, nothing changes. */
static bool rounds_left(const struct tenant *tenant, const struct sampling_request *request,
			struct verdict *verdict)
{
	const struct tenant_limits *limits = &tenant->plan->limits;

	if (request->tool_rounds < limits->tool_rounds)
		return true;
	if (limits->tool_rounds_refuse)
		return false;
	if (request->tool_count > 0 && request->tool_mode != TOOL_MODE_NONE) {
		verdict->final_round = true;
		verdict->adjustments |= ADJUST_BIT(ADJUST_TOOL_ROUNDS_FINAL);
	}
	return true;
}

/* The order is part of the contract: a request that breaks two rules is always refused for the same
 * one. The name is the metric label, the log field and data.rule. */
static const struct policy_rule {
	const char *name;
	policy_test *holds;
	enum err refusal;
} policy_rules[] = {
	{ "tenant_disabled", is_enabled, ERR_UNAUTHORIZED },
	{ "tools_granted", tools_granted, ERR_TOOLS_NOT_GRANTED },
	{ "images_granted", images_granted, ERR_IMAGES_FORBIDDEN },
	{ "audio_granted", audio_granted, ERR_AUDIO_FORBIDDEN },
	{ "model_permitted", model_permitted, ERR_MODEL_FORBIDDEN },
	{ "max_tokens", asks_few_tokens, ERR_MAX_TOKENS_FORBIDDEN },
	{ "tool_rounds", rounds_left, ERR_TOOL_ROUNDS },
};

struct verdict policy_check(const struct tenant *tenant, const struct sampling_request *request)
{
	struct verdict verdict = { .err = ERR_OK };

	must_obj(tenant, TENANT_MAGIC);
	must_obj(tenant->plan, PLAN_MAGIC);
	for (size_t i = 0; i < COUNT_OF(policy_rules); i++) {
		const struct policy_rule *rule = &policy_rules[i];
		if (!rule->holds(tenant, request, &verdict))
			return (struct verdict){ .err = rule->refusal, .rule = rule->name };
	}
	return verdict;
}

const char *policy_rule_name(size_t n)
{
	return n < COUNT_OF(policy_rules) ? policy_rules[n].name : NULL;
}
