#include "codec/sampling_exchange.h"

/* ---- the request's part ---- */

static bool is_assistant(struct slice message)
{
	struct json_reader r;
	struct slice key, role = { NULL, 0 };

	json_open(&r, message, NULL, NULL);
	for (bool open = json_enter_object(&r); open && json_next_key(&r, &key);)
		if (!json_str_eq(key, SLICE("role")) || json_peek(&r) != JSON_STRING)
			(void)json_skip(&r, NULL);
		else
			(void)json_string(&r, &role);
	return json_str_eq(role, SLICE("assistant"));
}

/* From the first message behind the last assistant turn to the end of the last one. */
static struct slice behind_assistant(struct json_reader *r)
{
	struct slice message, found = SLICE("");

	if (json_peek(r) != JSON_ARRAY || !json_enter_array(r))
		return found;
	while (json_next_item(r) && json_skip(r, &message))
		if (is_assistant(message))
			found = SLICE("");
		else if (found.len == 0)
			found = message;
		else
			found.len = (size_t)(message.at + message.len - found.at);
	return found;
}

struct exchange exchange_of(struct slice params, bool structured)
{
	struct exchange exchange = { .request = SLICE(""), .structured = structured };
	struct json_reader r;
	struct slice key;

	json_open(&r, params, NULL, NULL);
	for (bool open = json_enter_object(&r); open && json_next_key(&r, &key);)
		if (json_str_eq(key, SLICE("messages")))
			exchange.request = behind_assistant(&r);
		else
			(void)json_skip(&r, NULL);
	return exchange;
}

/* ---- the list ---- */

static void write_ok(struct gather *g, const struct result_block *call)
{
	gather_lit(g, "{\"type\":\"tool_result\",\"toolUseId\":");
	gather_str(g, call->id);
	gather_lit(g, ",\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}");
}

/* One message for the results of `count` calls: of `one`, or of all in the result. Before 2025-11-25 an
 * array is the last resort (contract/mcp.md 3.2). */
static void write_results(struct gather *g, const struct sampling_result *result,
			  enum revision revision, const struct result_block *one, uint32_t count)
{
	const bool array = count > 1 || revision >= REVISION_2025_11_25;
	bool first = true;

	gather_raw(g, array ? SLICE(",{\"role\":\"user\",\"content\":[")
			    : SLICE(",{\"role\":\"user\",\"content\":"));
	for (uint32_t i = 0; i < result->block_count; i++) {
		const struct result_block *block = &result->blocks[i];
		if (!block->is_tool_use || (one != NULL && one != block))
			continue;
		if (!first)
			gather_lit(g, ",");
		first = false;
		write_ok(g, block);
	}
	gather_raw(g, array ? SLICE("]}") : SLICE("}"));
}

void exchange_write(struct gather *g, const struct exchange *exchange,
		    const struct sampling_result *result, enum revision revision,
		    bool tools_present)
{
	const struct result_block *one = NULL;
	uint32_t calls = 0;

	gather_lit(g, "[");
	gather_raw(g, exchange->request);
	gather_raw(g, exchange->request.len == 0 ? SLICE("{\"role\":\"assistant\",\"content\":")
						 : SLICE(",{\"role\":\"assistant\",\"content\":"));
	sampling_write_content(g, result, revision, tools_present, &one);
	gather_lit(g, "}");
	for (uint32_t i = 0; i < result->block_count; i++)
		calls +=
			result->blocks[i].is_tool_use && (one == NULL || one == &result->blocks[i]);
	if (exchange->structured && tools_present && calls != 0)
		write_results(g, result, revision, one, calls);
	gather_lit(g, "]");
}
