#include "tenants/policy.h"

#include "codec/base/must.h"
#include "tenants/globs.h"

/* What a rule looks at. */
struct subject {
	const struct tenant *tenant;
	const struct plan *plan;
	const struct sampling_request *request;
};

/* True: the rule holds, perhaps with an adjustment noted in the verdict. */
typedef bool policy_test(const struct subject *subject, struct verdict *verdict);

static bool is_enabled(const struct subject *s, struct verdict *verdict)
{
	(void)verdict;
	return !s->tenant->disabled;
}

/* ---- how much ---- */

static bool few_messages(const struct subject *s, struct verdict *verdict)
{
	(void)verdict;
	return s->request->message_count <= s->plan->policy.messages_max;
}

static bool few_blocks(const struct subject *s, struct verdict *verdict)
{
	(void)verdict;
	return (uint64_t)s->request->block_count + s->request->inner_count <=
	       s->plan->policy.blocks_max;
}

/* The bytes that a raw JSON string means: escapes are longer than what they stand for. */
static uint64_t plain_bytes(struct slice raw)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < raw.len; bytes++) {
		if (raw.at[i] != '\\') {
			i++;
		} else if (raw.at[i + 1] != 'u') { /* the reader has seen to it that it is there */
			i += 2;
		} else {
			unsigned high = 0;
			for (size_t h = 2; h < 6; h++) {
				const unsigned c = (unsigned char)raw.at[i + h];
				high = high << 4 | (c <= '9' ? c & 15 : (c & 15) + 9);
			}
			/* half of a surrogate pair is two of four bytes */
			if (high >= 0x80)
				bytes += high < 0x800 || (high & 0xf800) == 0xd800 ? 1 : 2;
			i += 6;
		}
	}
	return bytes;
}

static bool short_system(const struct subject *s, struct verdict *verdict)
{
	const uint64_t most = s->plan->policy.system_bytes_max;

	(void)verdict;
	return s->request->system.len <= most || plain_bytes(s->request->system) <= most;
}

static uint64_t image_bytes(const struct block *blocks, uint32_t count)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct slice data;
		if (blocks[i].type != BLOCK_IMAGE)
			continue;
		data = blocks[i].media.data;
		while (data.len > 0 && data.at[data.len - 1] == '=')
			data.len--;
		bytes += data.len / 4 * 3 + data.len % 4 * 3 / 4;
	}
	return bytes;
}

static bool small_images(const struct subject *s, struct verdict *verdict)
{
	const struct sampling_request *request = s->request;

	(void)verdict;
	return image_bytes(request->blocks, request->block_count) +
		       image_bytes(request->inner, request->inner_count) <=
	       s->plan->policy.image_bytes_max;
}

/* ---- tools ---- */

/* contract/mcp.md 4.2 V10: whoever sends either field, an empty `tools` too, has not read what is granted. */
static bool tools_granted(const struct subject *s, struct verdict *verdict)
{
	(void)verdict;
	return s->plan->capabilities.tools ||
	       (!s->request->tools_present && s->request->tool_mode == TOOL_MODE_DEFAULT);
}

static bool few_tools(const struct subject *s, struct verdict *verdict)
{
	(void)verdict;
	return s->request->tool_count <= s->plan->policy.tools_max;
}

static bool small_schemas(const struct subject *s, struct verdict *verdict)
{
	uint64_t bytes = 0;

	(void)verdict;
	for (uint32_t i = 0; i < s->request->tool_count; i++)
		bytes += s->request->tools[i].schema.len;
	return bytes <= s->plan->policy.schema_bytes_max;
}

/* By what the name means, however it is escaped; one that is too long for any tool is refused. */
static bool tool_permitted(const struct policy *policy, struct slice raw)
{
	char room[512];
	const struct slice name = json_str_fit(raw, room, sizeof(room));

	if (slice_absent(name) || globs_match(policy->tools_deny, policy->tools_deny_count, name))
		return false;
	return policy->tools_allow_count == 0 ||
	       globs_match(policy->tools_allow, policy->tools_allow_count, name);
}

static bool tools_permitted(const struct subject *s, struct verdict *verdict)
{
	const struct policy *policy = &s->plan->policy;

	(void)verdict;
	if (policy->tools_allow_count == 0 && policy->tools_deny_count == 0)
		return true;
	for (uint32_t i = 0; i < s->request->tool_count; i++)
		if (!tool_permitted(policy, s->request->tools[i].name))
			return false;
	return true;
}

/* Without tools there is nothing to choose. */
static bool mode_permitted(const struct subject *s, struct verdict *verdict)
{
	(void)verdict;
	if (s->request->tool_count == 0)
		return true;
	switch (s->request->tool_mode) {
	case TOOL_MODE_REQUIRED:
		return !s->plan->policy.no_required;
	case TOOL_MODE_NONE:
		return !s->plan->policy.no_none;
	case TOOL_MODE_DEFAULT:
	case TOOL_MODE_AUTO:
		break;
	}
	return !s->plan->policy.no_auto;
}

/* ---- media ---- */

/* Images inside tool results reach the model as well. */
static bool images_granted(const struct subject *s, struct verdict *verdict)
{
	(void)verdict;
	if (s->plan->capabilities.images)
		return true;
	for (uint32_t i = 0; i < s->request->inner_count; i++)
		if (s->request->inner[i].type == BLOCK_IMAGE)
			return false;
	return s->request->images == 0;
}

/* Audio inside tool results never reaches a model: a placeholder does (contract/providers.md 8.1). */
static bool audio_granted(const struct subject *s, struct verdict *verdict)
{
	(void)verdict;
	return s->plan->capabilities.audio || s->request->audios == 0;
}

/* ---- what becomes of the rest ---- */

static bool metadata_permitted(const struct subject *s, struct verdict *verdict)
{
	if (slice_absent(s->request->user_id) || s->plan->policy.user_id == METADATA_PASS)
		return true;
	verdict->adjustments |= ADJUST_BIT(ADJUST_USER_ID_DROPPED);
	return s->plan->policy.user_id == METADATA_DROP;
}

static bool system_settled(const struct subject *s, struct verdict *verdict)
{
	if (s->plan->policy.system_rule == SYSTEM_PREFIXED)
		verdict->adjustments |= ADJUST_BIT(ADJUST_SYSTEM_PREFIXED);
	else if (s->plan->policy.system_rule == SYSTEM_FIXED)
		verdict->adjustments |= ADJUST_BIT(ADJUST_SYSTEM_FIXED);
	return true;
}

static bool model_permitted(const struct subject *s, struct verdict *verdict)
{
	const struct bitset *models = &s->plan->models;

	(void)verdict;
	for (size_t i = 0; i < COUNT_OF(models->words); i++)
		if (models->words[i] != 0)
			return true;
	return false;
}

static bool asks_few_tokens(const struct subject *s, struct verdict *verdict)
{
	const struct tenant_limits *limits = &s->plan->limits;

	must(s->request->max_tokens >= 1); /* the reader has seen to it */
	if (s->request->max_tokens <= limits->max_tokens) {
		verdict->max_tokens = (uint32_t)s->request->max_tokens;
		return true;
	}
	verdict->max_tokens = limits->max_tokens;
	verdict->adjustments |= ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED);
	return !limits->max_tokens_refuse || limits->count_only;
}

/* The last round answers without calls; where none could come, nothing changes. */
static bool rounds_left(const struct subject *s, struct verdict *verdict)
{
	const struct tenant_limits *limits = &s->plan->limits;
	const uint32_t own = s->request->rounds_most;

	if (s->request->tool_rounds < (own != 0 ? own : limits->tool_rounds))
		return true;
	if (limits->tool_rounds_refuse)
		return limits->count_only;
	if (s->request->tool_count > 0 && s->request->tool_mode != TOOL_MODE_NONE) {
		verdict->final_round = true;
		verdict->adjustments |= ADJUST_BIT(ADJUST_TOOL_ROUNDS_FINAL);
	}
	return true;
}

/* The order is part of the contract: a request that breaks two rules is always refused for the same
 * one. The name is the log field and data.rule; where a setting made the rule it is that setting's
 * key. */
static const struct policy_rule {
	const char *name;
	policy_test *holds;
	enum err refusal;
	const char *detail; /* NULL: the refusal's own text */
} policy_rules[] = {
	{ "tenant_disabled", is_enabled, ERR_UNAUTHORIZED, NULL },
	{ "max_messages", few_messages, ERR_POLICY, "Policy does not permit that many messages" },
	{ "max_blocks", few_blocks, ERR_POLICY, "Policy does not permit that many content blocks" },
	{ "tools_granted", tools_granted, ERR_TOOLS_NOT_GRANTED, NULL },
	{ "max_tools", few_tools, ERR_POLICY, "Policy does not permit that many tools" },
	{ "tools", tools_permitted, ERR_POLICY, "Policy does not permit a tool of that name" },
	{ "schema_bytes", small_schemas, ERR_POLICY,
	  "Policy does not permit tool schemas that large" },
	{ "tool_choice", mode_permitted, ERR_POLICY,
	  "Policy does not permit that toolChoice.mode" },
	{ "images_granted", images_granted, ERR_IMAGES_FORBIDDEN, NULL },
	{ "image_bytes", small_images, ERR_POLICY, "Policy does not permit images that large" },
	{ "audio_granted", audio_granted, ERR_AUDIO_FORBIDDEN, NULL },
	{ "system_bytes", short_system, ERR_POLICY,
	  "Policy does not permit a system prompt that long" },
	{ "system", system_settled, ERR_POLICY, NULL },
	{ "metadata", metadata_permitted, ERR_POLICY, "Policy does not permit metadata.user_id" },
	{ "model_permitted", model_permitted, ERR_MODEL_FORBIDDEN, NULL },
	{ "max_tokens", asks_few_tokens, ERR_MAX_TOKENS_FORBIDDEN, NULL },
	{ "tool_rounds", rounds_left, ERR_TOOL_ROUNDS, NULL },
};

struct policy policy_defaults(void)
{
	return (struct policy){
		.messages_max = POLICY_ANY,
		.blocks_max = POLICY_ANY,
		.tools_max = POLICY_ANY,
		.schema_bytes_max = POLICY_ANY,
		.image_bytes_max = POLICY_ANY,
		.system_bytes_max = POLICY_ANY,
	};
}

struct verdict policy_check(const struct tenant *tenant, const struct plan *plan,
			    const struct sampling_request *request)
{
	const struct subject subject = { tenant, plan, request };
	struct verdict verdict = { .err = ERR_OK };

	must_obj(tenant, TENANT_MAGIC);
	must_obj(plan, PLAN_MAGIC);
	for (size_t i = 0; i < COUNT_OF(policy_rules); i++) {
		const struct policy_rule *rule = &policy_rules[i];
		if (!rule->holds(&subject, &verdict))
			return (struct verdict){ .err = rule->refusal,
						 .rule = rule->name,
						 .detail = rule->detail };
	}
	return verdict;
}

/* The policy's text, an empty line, the caller's. */
static enum err put_prefix(struct slice prefix, struct arena *into, struct slice *system)
{
	static const char between[] = "\\n\\n";
	const size_t rest = slice_absent(*system) ? 0 : sizeof(between) - 1 + system->len;
	char *text = arena_take(into, prefix.len + rest);

	if (text == NULL)
		return ERR_BUSY;
	(void)memcpy(text, prefix.at, prefix.len);
	if (rest != 0) {
		(void)memcpy(text + prefix.len, between, sizeof(between) - 1);
		(void)memcpy(text + prefix.len + sizeof(between) - 1, system->at, system->len);
	}
	*system = slice_of(text, prefix.len + rest);
	return ERR_OK;
}

enum err policy_apply(const struct plan *plan, struct arena *into, struct sampling_request *request)
{
	const struct policy *policy = &plan->policy;

	if (policy->user_id != METADATA_PASS)
		request->user_id = (struct slice){ NULL, 0 };
	if (policy->system_rule == SYSTEM_AS_SENT)
		return ERR_OK;
	if (policy->system_rule == SYSTEM_FIXED)
		request->system = (struct slice){ NULL, 0 };
	return put_prefix(policy->system, into, &request->system);
}

const char *policy_rule_name(size_t n)
{
	return n < COUNT_OF(policy_rules) ? policy_rules[n].name : NULL;
}

struct verdict policy_rule_check(size_t n, const struct tenant *tenant, const struct plan *plan,
				 const struct sampling_request *request)
{
	const struct subject subject = { tenant, plan, request };
	struct verdict verdict = { .err = ERR_OK };

	must(n < COUNT_OF(policy_rules));
	if (!policy_rules[n].holds(&subject, &verdict))
		return (struct verdict){ .err = policy_rules[n].refusal,
					 .rule = policy_rules[n].name,
					 .detail = policy_rules[n].detail };
	return verdict;
}
