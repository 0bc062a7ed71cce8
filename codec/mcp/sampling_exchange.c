#include "codec/mcp/sampling_exchange.h"

#include "codec/base/must.h"

/* ---- the request's part ---- */

/* What matters of a message. */
struct turn {
	bool assistant;
	bool calls_schema; /* a call of `__schema__` is in it */
	bool results_only; /* nothing but results of calls */
};

/* The string that is next is `wanted`; whatever it is, it is consumed. */
static bool take_is(struct json_reader *r, struct slice wanted)
{
	struct slice raw;

	if (json_peek(r) == JSON_STRING)
		return json_string(r, &raw) && json_str_eq(raw, wanted);
	(void)json_skip(r, NULL);
	return false;
}

static void read_block(struct json_reader *r, struct turn *turn)
{
	struct slice key;
	bool result = false;

	if (json_peek(r) != JSON_OBJECT || !json_enter_object(r)) {
		(void)json_skip(r, NULL);
		return;
	}
	while (json_next_key(r, &key))
		if (json_str_eq(key, SLICE("type")))
			result = take_is(r, SLICE("tool_result"));
		else if (json_str_eq(key, SLICE("name")))
			turn->calls_schema |= take_is(r, SLICE(SCHEMA_TOOL_NAME));
		else
			(void)json_skip(r, NULL);
	turn->results_only &= result;
}

static void read_content(struct json_reader *r, struct turn *turn)
{
	turn->results_only = true;
	if (json_peek(r) != JSON_ARRAY)
		read_block(r, turn);
	else if (json_enter_array(r))
		while (json_next_item(r))
			read_block(r, turn);
}

static struct turn read_turn(struct slice message)
{
	struct turn turn = { .assistant = false };
	struct json_reader r;
	struct slice key;

	json_open(&r, message, NULL, NULL);
	for (bool open = json_enter_object(&r); open && json_next_key(&r, &key);)
		if (json_str_eq(key, SLICE("role")))
			turn.assistant = take_is(&r, SLICE("assistant"));
		else if (json_str_eq(key, SLICE("content")))
			read_content(&r, &turn);
		else
			(void)json_skip(&r, NULL);
	return turn;
}

/* What is not in the history yet, in one piece: from the first message behind the last assistant turn to the
 * end of the last one. The result of a call of `__schema__` came with the exchange that has the call. */
static struct slice new_messages(struct json_reader *r)
{
	struct slice message, found = SLICE("");
	bool closing = false;

	if (json_peek(r) != JSON_ARRAY || !json_enter_array(r))
		return found;
	while (json_next_item(r) && json_skip(r, &message)) {
		const struct turn turn = read_turn(message);
		if (turn.assistant) {
			found = SLICE("");
			closing = turn.calls_schema;
		} else if (found.len != 0) {
			found.len = (size_t)(message.at + message.len - found.at);
		} else if (!closing || !turn.results_only) {
			found = message;
		}
	}
	return found;
}

struct exchange exchange_of(struct slice params, bool structured)
{
	struct exchange exchange = { .request = SLICE(""), .structured = structured };
	struct json_reader r;
	struct slice key;

	must(!slice_absent(params));
	json_open(&r, params, NULL, NULL);
	for (bool open = json_enter_object(&r); open && json_next_key(&r, &key);)
		if (json_str_eq(key, SLICE("messages")))
			exchange.request = new_messages(&r);
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
