/* The answer: its shape under every revision (contract/mcp.md 3.2), its _meta and usage. */
#include "tests/unit/codec/mcp/sampling_rig.h"

#define TEXT_BLOCK(value)                 \
	{                                 \
		.text = SLICE_INIT(value) \
	}
#define CALL_BLOCK(value)                                                              \
	{                                                                              \
		.is_tool_use = true, .id = SLICE_INIT(value), .name = SLICE_INIT("f"), \
		.input = SLICE_INIT("{\"a\":1}"),                                      \
	}
#define TEXT_OF(value) "{\"type\":\"text\",\"text\":\"" value "\"}"
#define CALL_OF(value) \
	"{\"type\":\"tool_use\",\"id\":\"" value "\",\"name\":\"f\",\"input\":{\"a\":1}}"

#define OLD REVISION_2025_06_18
#define DRAFT REVISION_SEP_1577_DRAFT
#define NOW REVISION_2025_11_25

static const char *written(struct rig *rig, const struct sampling_result *result,
			   enum revision revision, bool tools, const struct result_meta *meta)
{
	struct gather g;

	gather_init(&g, &rig->arena);
	sampling_write_bare(&g, result, revision, tools, meta);
	assert_int_equal(gather_done(&g), ERR_OK);
	struct slice text = gather_flat(&g, &rig->arena);
	assert_true(json_valid(text, NULL, rig->work, NULL));
	return arena_copy(&rig->arena, text).at;
}

static void the_shape_fits_who_asked(void **state)
{
	static const struct {
		const char *name;
		struct result_block blocks[3];
		uint32_t count;
		enum revision revision;
		bool tools;
		const char *content;
	} rows[] = {
		{ "no tools, one text", { TEXT_BLOCK("a") }, 1, NOW, false, TEXT_OF("a") },
		{ "no tools, texts are joined",
		  { TEXT_BLOCK("a\\n"), TEXT_BLOCK("\\u00e9"), TEXT_BLOCK("c") },
		  3,
		  NOW,
		  false,
		  TEXT_OF("a\\n\\u00e9c") },
		{ "no tools, nothing", { TEXT_BLOCK("") }, 1, NOW, false, TEXT_OF("") },
		{ "no tools, a call has no place",
		  { TEXT_BLOCK("a"), CALL_BLOCK("c") },
		  2,
		  NOW,
		  false,
		  TEXT_OF("a") },
		{ "no tools, only a call", { CALL_BLOCK("c") }, 1, NOW, false, TEXT_OF("") },
		{ "no tools, newest revision",
		  { TEXT_BLOCK("a") },
		  1,
		  REVISION_2026_07_28,
		  false,
		  TEXT_OF("a") },
		{ "tools, one text", { TEXT_BLOCK("a") }, 1, NOW, true, TEXT_OF("a") },
		{ "tools, one call", { CALL_BLOCK("c") }, 1, NOW, true, "[" CALL_OF("c") "]" },
		{ "tools, text and calls",
		  { TEXT_BLOCK("a"), CALL_BLOCK("c"), CALL_BLOCK("d") },
		  3,
		  NOW,
		  true,
		  "[" TEXT_OF("a") "," CALL_OF("c") "," CALL_OF("d") "]" },
		{ "tools, two texts",
		  { TEXT_BLOCK("a"), TEXT_BLOCK("b") },
		  2,
		  NOW,
		  true,
		  "[" TEXT_OF("a") "," TEXT_OF("b") "]" },
		{ "tools, newest revision",
		  { CALL_BLOCK("c") },
		  1,
		  REVISION_2026_07_28,
		  true,
		  "[" CALL_OF("c") "]" },
		{ "older, two texts",
		  { TEXT_BLOCK("a"), TEXT_BLOCK("b") },
		  2,
		  OLD,
		  true,
		  TEXT_OF("ab") },
		{ "older, one call", { CALL_BLOCK("c") }, 1, OLD, true, CALL_OF("c") },
		{ "older, text and call",
		  { TEXT_BLOCK("a"), CALL_BLOCK("c") },
		  2,
		  OLD,
		  true,
		  "[" TEXT_OF("a") "," CALL_OF("c") "]" },
		{ "draft, the call counts",
		  { TEXT_BLOCK("a"), CALL_BLOCK("c"), CALL_BLOCK("d") },
		  3,
		  DRAFT,
		  true,
		  CALL_OF("c") },
		{ "draft, texts",
		  { TEXT_BLOCK("a"), TEXT_BLOCK("b") },
		  2,
		  DRAFT,
		  true,
		  TEXT_OF("ab") },
		{ "draft without tools",
		  { TEXT_BLOCK("a"), CALL_BLOCK("c") },
		  2,
		  DRAFT,
		  false,
		  TEXT_OF("a") },
		{ "audio",
		  { { .data = SLICE_INIT("AAAA"), .mime = SLICE_INIT("audio/wav") } },
		  1,
		  NOW,
		  false,
		  "{\"type\":\"audio\",\"data\":\"AAAA\",\"mimeType\":\"audio/wav\"}" },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct result_block blocks[3];
		(void)memcpy(blocks, rows[i].blocks, sizeof(blocks));
		const struct sampling_result result = { .model = SLICE("m-\\u0031"),
							.stop = STOP_END_TURN,
							.blocks = blocks,
							.block_count = rows[i].count };
		char expected[512];
		(void)snprintf(expected, sizeof(expected),
			       "{\"role\":\"assistant\",\"content\":%s,\"model\":\"m-\\u0031\","
			       "\"stopReason\":\"endTurn\"}",
			       rows[i].content);
		const char *text = written(rig, &result, rows[i].revision, rows[i].tools, NULL);
		if (strcmp(text, expected) != 0)
			fail_msg("%s: %s", rows[i].name, text);
	}
}

static struct sampling_result one_text(struct result_block *block)
{
	*block = (struct result_block)TEXT_BLOCK("a");
	return (struct sampling_result){
		.model = SLICE("m"), .stop = STOP_MAX_TOKENS, .blocks = block, .block_count = 1
	};
}

static void meta_tells_usage_route_and_adjustments(void **state)
{
	struct rig *rig = *state;
	struct result_block block;
	struct sampling_result result = one_text(&block);
	const struct result_meta meta = { .usd_nano = 1002500000,
					  .model_id = SLICE("claude\"x"),
					  .provider = SLICE("anthropic"),
					  .attempts = 2 };

	result.usage = (struct usage){ true, 11, 22, 3, 4, 5, 0 };
	result.adjustments =
		ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED) | ADJUST_BIT(ADJUST_PARTIAL_DISCARDED);
	assert_string_equal(
		written(rig, &result, REVISION_2025_11_25, false, &meta),
		"{\"role\":\"assistant\",\"content\":" TEXT_OF(
			"a") ",\"model\":\"m\",\"stopReason\":\"maxTokens\","
			     "\"_meta\":{\"sluice/"
			     "usage\":{\"input_tokens\":11,\"output_tokens\":22,\"cache_read_"
			     "tokens\":3,"
			     "\"cache_write_tokens\":4,\"reasoning_tokens\":5,\"usd\":1.0025},"
			     "\"sluice/"
			     "route\":{\"model\":\"claude\\\"x\",\"provider\":\"anthropic\","
			     "\"attempts\":2},"
			     "\"sluice/"
			     "adjustments\":[\"max_tokens_clamped\",\"partial_output_discarded\"]},"
			     "\"usage\":{\"inputTokens\":11,\"outputTokens\":22}}");
}

static void without_counters_there_is_no_usage(void **state)
{
	struct rig *rig = *state;
	struct result_block block;
	const struct sampling_result result = one_text(&block);
	const struct result_meta meta = { .model_id = SLICE("m"),
					  .provider = SLICE("p"),
					  .attempts = 1 };

	assert_string_equal(
		written(rig, &result, REVISION_2025_11_25, false, &meta),
		"{\"role\":\"assistant\",\"content\":" TEXT_OF(
			"a") ",\"model\":\"m\","
			     "\"stopReason\":\"maxTokens\",\"_meta\":{\"sluice/"
			     "route\":{\"model\":\"m\","
			     "\"provider\":\"p\",\"attempts\":1},\"sluice/adjustments\":[]}}");
}

static void dollars_are_exact_decimals(void **state)
{
	static const struct {
		uint64_t nano;
		const char *text;
	} rows[] = {
		{ 0, "\"usd\":0}" },
		{ 1, "\"usd\":0.000000001}" },
		{ 1000000000, "\"usd\":1}" },
		{ 10100000000, "\"usd\":10.1}" },
		{ UINT64_MAX, "\"usd\":18446744073.709551615}" },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct result_block block;
		struct sampling_result result = one_text(&block);
		const struct result_meta meta = { .usd_nano = rows[i].nano,
						  .model_id = SLICE("m"),
						  .provider = SLICE("p") };
		result.usage.known = true;
		const char *text = written(rig, &result, REVISION_2025_11_25, false, &meta);
		if (strstr(text, rows[i].text) == NULL)
			fail_msg("%s: %s", rows[i].text, text);
	}
}

static void the_response_echoes_the_id_byte_for_byte(void **state)
{
	static const char *const ids[] = { "0", "\"\"", "\"a\\u0062\"", "1.50", "null" };
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(ids); i++) {
		struct result_block block;
		const struct sampling_result result = one_text(&block);
		struct gather g;
		char head[64];
		gather_init(&g, &rig->arena);
		sampling_write_result(&g, slice_str(ids[i]), &result, REVISION_2025_11_25, false,
				      NULL);
		struct slice text = gather_flat(&g, &rig->arena);
		(void)snprintf(head, sizeof(head),
			       "{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"role\":", ids[i]);
		assert_true(slice_starts(text, slice_str(head)));
		assert_true(json_valid(text, NULL, rig->work, NULL));
	}
}

static void names_are_those_of_the_protocol(void **state)
{
	(void)state;
	assert_string_equal(stop_reason_name(STOP_END_TURN), "endTurn");
	assert_string_equal(stop_reason_name(STOP_SEQUENCE), "stopSequence");
	assert_string_equal(stop_reason_name(STOP_MAX_TOKENS), "maxTokens");
	assert_string_equal(stop_reason_name(STOP_TOOL_USE), "toolUse");
	assert_string_equal(stop_reason_name(STOP_REFUSAL), "refusal");
	assert_string_equal(stop_reason_name(STOP_OTHER), "other");
	for (int i = 0; i < ADJUST_COUNT; i++)
		for (int j = 0; j < i; j++)
			assert_string_not_equal(adjustment_code((enum adjustment)i),
						adjustment_code((enum adjustment)j));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(the_shape_fits_who_asked),
		rig_test(meta_tells_usage_route_and_adjustments),
		rig_test(without_counters_there_is_no_usage),
		rig_test(dollars_are_exact_decimals),
		rig_test(the_response_echoes_the_id_byte_for_byte),
		rig_test(names_are_those_of_the_protocol),
	};
	return cmocka_run_group_tests_name("sampling_write", tests, NULL, NULL);
}
