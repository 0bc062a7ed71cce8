/* cross_answer.c - a whole answer of the core in the caller's API (contract/direct.md 2.2, 3.2). */
#include "codec/cross/cross_answer.h"

/* ---- why it ended ---- */

static bool has_calls(const struct sampling_result *result, bool schema)
{
	for (uint32_t i = 0; i < result->block_count && !schema; i++)
		if (result->blocks[i].is_tool_use)
			return true;
	return false;
}

/* Calls are told by the stop reason, whatever the provider said, unless it was cut off. */
static enum stop_reason stop_of(const struct sampling_result *result, bool schema)
{
	if (result->stop == STOP_MAX_TOKENS || result->stop == STOP_REFUSAL)
		return result->stop;
	if (has_calls(result, schema))
		return STOP_TOOL_USE;
	return result->stop == STOP_TOOL_USE ? STOP_END_TURN : result->stop;
}

const char *cross_stop(enum api api, const struct sampling_result *result, bool schema)
{
	static const char *const messages[] = {
		[STOP_END_TURN] = "end_turn",     [STOP_SEQUENCE] = "stop_sequence",
		[STOP_MAX_TOKENS] = "max_tokens", [STOP_TOOL_USE] = "tool_use",
		[STOP_REFUSAL] = "refusal",       [STOP_OTHER] = "end_turn",
	};
	static const char *const chat[] = {
		[STOP_END_TURN] = "stop",          [STOP_SEQUENCE] = "stop",
		[STOP_MAX_TOKENS] = "length",      [STOP_TOOL_USE] = "tool_calls",
		[STOP_REFUSAL] = "content_filter", [STOP_OTHER] = "stop",
	};
	const enum stop_reason stop = stop_of(result, schema);

	return api_is_anthropic(api) ? messages[stop] : chat[stop];
}

/* ---- what it used ---- */

static uint64_t without(uint64_t all, uint64_t part)
{
	return all > part ? all - part : 0;
}

/* Messages counts what came from the cache, and went there, apart. */
static void messages_usage(struct gather *g, const struct usage *u)
{
	gather_lit(g, "{\"input_tokens\":");
	gather_uint(g, without(without(u->input, u->cache_read), u->cache_write));
	gather_lit(g, ",\"cache_creation_input_tokens\":");
	gather_uint(g, u->cache_write);
	gather_lit(g, ",\"cache_read_input_tokens\":");
	gather_uint(g, u->cache_read);
	gather_lit(g, ",\"output_tokens\":");
	gather_uint(g, u->output);
	gather_lit(g, "}");
}

static void chat_usage(struct gather *g, const struct usage *u)
{
	gather_lit(g, "{\"prompt_tokens\":");
	gather_uint(g, u->input);
	gather_lit(g, ",\"completion_tokens\":");
	gather_uint(g, u->output);
	gather_lit(g, ",\"total_tokens\":");
	gather_uint(g, u->input + u->output);
	gather_lit(g, ",\"prompt_tokens_details\":{\"cached_tokens\":");
	gather_uint(g, u->cache_read);
	gather_lit(g, ",\"cache_write_tokens\":");
	gather_uint(g, u->cache_write);
	gather_lit(g, "},\"completion_tokens_details\":{\"reasoning_tokens\":");
	gather_uint(g, u->reasoning);
	gather_lit(g, "}}");
}

void cross_usage(struct gather *g, enum api api, const struct cross_names *names,
		 const struct usage *usage)
{
	struct usage u = *usage;

	if (!u.known && u.input == 0)
		u.input = names->input_tokens;
	if (api_is_anthropic(api))
		messages_usage(g, &u);
	else
		chat_usage(g, &u);
}

/* ---- lists ---- */

static void begin_item(struct gather *g, bool *first)
{
	if (!*first)
		gather_lit(g, ",");
	*first = false;
}

/* ---- Messages ---- */

static void put_text(struct gather *g, bool *first, struct slice raw)
{
	begin_item(g, first);
	gather_lit(g, "{\"type\":\"text\",\"text\":");
	gather_str(g, raw);
	gather_lit(g, "}");
}

/* The JSON of a schema's answer is a text. */
static void put_json_text(struct gather *g, bool *first, struct slice json)
{
	begin_item(g, first);
	gather_lit(g, "{\"type\":\"text\",\"text\":\"");
	gather_json_escaped(g, json);
	gather_lit(g, "\"}");
}

static void put_use(struct gather *g, bool *first, const struct result_block *block)
{
	begin_item(g, first);
	gather_lit(g, "{\"type\":\"tool_use\",\"id\":");
	gather_str(g, block->id);
	gather_lit(g, ",\"name\":");
	gather_str(g, block->name);
	gather_lit(g, ",\"input\":");
	gather_raw(g, block->input);
	gather_lit(g, "}");
}

static void messages_answer(struct gather *g, const struct cross_names *names, bool schema,
			    const struct sampling_result *result)
{
	bool first = true;

	gather_lit(g, "{\"id\":\"msg_");
	gather_raw(g, names->id);
	gather_lit(g, "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
	gather_raw(g, names->model);
	gather_lit(g, ",\"content\":[");
	for (uint32_t i = 0; i < result->block_count; i++) {
		const struct result_block *block = &result->blocks[i];
		if (block->is_tool_use && schema)
			put_json_text(g, &first, block->input);
		else if (block->is_tool_use)
			put_use(g, &first, block);
		else if (block->text.len != 0)
			put_text(g, &first, block->text);
	}
	gather_lit(g, "],\"stop_reason\":\"");
	gather_raw(g, slice_str(cross_stop(API_MESSAGES, result, schema)));
	gather_lit(g, "\",\"stop_sequence\":null,\"usage\":");
	cross_usage(g, API_MESSAGES, names, &result->usage);
	gather_lit(g, "}");
}

/* ---- Chat ---- */

static bool has_text(const struct sampling_result *result, bool schema)
{
	for (uint32_t i = 0; i < result->block_count; i++)
		if (result->blocks[i].is_tool_use ? schema : result->blocks[i].text.len != 0)
			return true;
	return false;
}

/* All texts as one string, or null. */
static void put_content(struct gather *g, const struct sampling_result *result, bool schema)
{
	if (!has_text(result, schema)) {
		if (has_calls(result, schema))
			gather_lit(g, "null");
		else
			gather_lit(g, "\"\"");
		return;
	}
	gather_lit(g, "\"");
	for (uint32_t i = 0; i < result->block_count; i++) {
		const struct result_block *block = &result->blocks[i];
		if (!block->is_tool_use)
			gather_raw(g, block->text);
		else if (schema)
			gather_json_escaped(g, block->input);
	}
	gather_lit(g, "\"");
}

static void put_calls(struct gather *g, const struct sampling_result *result)
{
	bool first = true;

	gather_lit(g, ",\"tool_calls\":[");
	for (uint32_t i = 0; i < result->block_count; i++) {
		const struct result_block *block = &result->blocks[i];
		if (!block->is_tool_use)
			continue;
		begin_item(g, &first);
		gather_lit(g, "{\"id\":");
		gather_str(g, block->id);
		gather_lit(g, ",\"type\":\"function\",\"function\":{\"name\":");
		gather_str(g, block->name);
		gather_lit(g, ",\"arguments\":\"");
		gather_json_escaped(g, block->input);
		gather_lit(g, "\"}}");
	}
	gather_lit(g, "]");
}

static void chat_answer(struct gather *g, const struct cross_names *names, bool schema,
			const struct sampling_result *result)
{
	const bool refusal = result->stop == STOP_REFUSAL;

	gather_lit(g, "{\"id\":\"chatcmpl-");
	gather_raw(g, names->id);
	gather_lit(g, "\",\"object\":\"chat.completion\",\"created\":");
	gather_uint(g, names->created_s);
	gather_lit(g, ",\"model\":");
	gather_raw(g, names->model);
	gather_lit(g,
		   ",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":");
	if (refusal)
		gather_lit(g, "null,\"refusal\":");
	put_content(g, result, schema);
	if (!refusal)
		gather_lit(g, ",\"refusal\":null");
	if (has_calls(result, schema))
		put_calls(g, result);
	gather_lit(g, "},\"logprobs\":null,\"finish_reason\":\"");
	gather_raw(g, slice_str(cross_stop(API_CHAT, result, schema)));
	gather_lit(g, "\"}],\"usage\":");
	cross_usage(g, API_CHAT, names, &result->usage);
	gather_lit(g, "}");
}

void cross_answer(struct gather *g, enum api api, const struct cross_names *names, bool schema,
		  const struct sampling_result *result)
{
	if (api_is_anthropic(api))
		messages_answer(g, names, schema, result);
	else
		chat_answer(g, names, schema, result);
}
