/* What sampling_read refuses: the rules of contract/mcp.md 4.2, each with code, path, place, words. */
#include "codec/set.h"
#include "tests/unit/codec/mcp/sampling_rig.h"

#define USER_HI "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}"
#define CALL(id) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":{}}"
#define RESULT(id) "{\"type\":\"tool_result\",\"toolUseId\":\"" id "\",\"content\":[]}"
#define TEXT "{\"type\":\"text\",\"text\":\"t\"}"
#define ASSISTANT(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define TOOL(name) "{\"name\":\"" name "\",\"inputSchema\":{\"type\":\"object\"}}"

struct rule {
	const char *name, *text; /* params or messages */
	enum err err;
	const char *path;
	const char *at; /* the offset is where this text begins; NULL: the body has no such place */
	const char *words; /* in the detail, or in the row's text */
};

static bool placed(uint32_t offset, struct slice body, const char *at)
{
	const char *found = strstr(body.at, at);

	return at[0] == '\0' ? offset < body.len : offset == (uint32_t)(found - body.at);
}

static void check(struct rig *rig, const struct rule *rule, struct slice body, enum err err)
{
	const char *words = rig->fault.detail;

	if (err != ERR_OK && words == NULL)
		words = err_info(err)->text;
	bool fine = err == rule->err && rig->fault.err == err && rig->fault.path.at != NULL &&
		    slice_eq(rig->fault.path, slice_str(rule->path)) &&
		    placed(rig->fault.offset, body, rule->at) &&
		    slice_has_nocase(slice_str(words), slice_str(rule->words));
	if (!fine)
		fail_msg("%s: %s at %u, %.*s: %s", rule->name, err_info(err)->reason,
			 rig->fault.offset, (int)rig->fault.path.len,
			 rig->fault.path.len == 0 ? "" : rig->fault.path.at,
			 words == NULL ? "" : words);
}

static void check_params(struct rig *rig, const struct rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct slice body =
			rig_body(rig,
				 "{\"jsonrpc\":\"2.0\",\"method\":\"sampling/createMessage\","
				 "\"id\":\"the id\",\"params\":",
				 rules[i].text, "}");
		check(rig, &rules[i], body, rig_read(rig, body, REVISION_2025_11_25));
		assert_slice(rig->rpc.id, "\"the id\"");
		/* the same when params come first, and are decoded late */
		body = rig_body(
			rig, "{\"params\":", rules[i].text,
			",\"jsonrpc\":\"2.0\",\"method\":\"sampling/createMessage\",\"id\":7}");
		check(rig, &rules[i], body, rig_read(rig, body, REVISION_2025_11_25));
		assert_slice(rig->rpc.id, "7");
	}
}

static void check_messages(struct rig *rig, const struct rule *rules, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rule rule = rules[i];
		char params[4096];
		assert_true((size_t)snprintf(params, sizeof(params),
					     "{\"maxTokens\":1,\"messages\":[%s]}",
					     rule.text) < sizeof(params));
		rule.text = params;
		check_params(rig, &rule, 1);
	}
}

static void params_have_their_rules(void **state)
{
#define MORE(text) "{\"maxTokens\":1,\"messages\":[" USER_HI "]," text "}"
	static const struct rule rules[] = {
		{ "V1 array", "[1]", ERR_PARAMS, "$.params", "[1]", "params" },
		{ "V1 null", "null", ERR_PARAMS, "$.params", "null", "object" },
		{ "V2 missing", "{\"maxTokens\":1}", ERR_MESSAGES, "$.params", "{\"maxTokens",
		  "messages" },
		{ "V2 null", "{\"maxTokens\":1,\"messages\":null}", ERR_MESSAGES, "$.params",
		  "{\"maxTokens", "messages" },
		{ "V2 object", "{\"maxTokens\":1,\"messages\":{}}", ERR_MESSAGES,
		  "$.params.messages", "{}", "array" },
		{ "V2 element", "{\"maxTokens\":1,\"messages\":[" USER_HI ",5]}", ERR_MESSAGES,
		  "$.params.messages[1]", "5]", "object" },
		{ "V3", "{\"maxTokens\":1,\"messages\":[]}", ERR_MESSAGES_EMPTY,
		  "$.params.messages", "[]", "empty" },
		{ "V4 missing", "{\"messages\":[" USER_HI "]}", ERR_MAX_TOKENS, "$.params",
		  "{\"messages", "maxTokens" },
		{ "V4 zero", "{\"maxTokens\":0}", ERR_MAX_TOKENS, "$.params.maxTokens", "0}",
		  "maxTokens" },
		{ "V4 negative", "{\"maxTokens\":-1}", ERR_MAX_TOKENS, "$.params.maxTokens", "-1",
		  "maxTokens" },
		{ "V4 fraction", "{\"maxTokens\":1.5}", ERR_MAX_TOKENS, "$.params.maxTokens", "1.5",
		  "integer" },
		{ "V4 huge below zero", "{\"maxTokens\":-1e99}", ERR_MAX_TOKENS,
		  "$.params.maxTokens", "-1e99", "integer" },
		{ "V4 string", "{\"maxTokens\":\"8\"}", ERR_MAX_TOKENS, "$.params.maxTokens",
		  "\"8\"", "integer" },
		{ "V8 temperature", MORE("\"temperature\":\"1\""), ERR_FIELD,
		  "$.params.temperature", "\"1\"", "number" },
		{ "V8 system", MORE("\"systemPrompt\":[9]"), ERR_FIELD, "$.params.systemPrompt",
		  "[9]", "string" },
		{ "V8 stop", MORE("\"stopSequences\":\"x\""), ERR_FIELD, "$.params.stopSequences",
		  "\"x\"", "array" },
		{ "V8 stop element", MORE("\"stopSequences\":[\"x\",77]"), ERR_FIELD,
		  "$.params.stopSequences[1]", "77", "strings" },
		{ "V8 context", MORE("\"includeContext\":\"all\""), ERR_FIELD,
		  "$.params.includeContext", "\"all\"", "thisServer" },
		{ "V8 context kind", MORE("\"includeContext\":true"), ERR_FIELD,
		  "$.params.includeContext", "true", "thisServer" },
		{ "metadata", MORE("\"metadata\":\"m\""), ERR_FIELD, "$.params.metadata", "\"m\"",
		  "object" },
		{ "_meta", MORE("\"_meta\":[]"), ERR_FIELD, "$.params._meta", "[]", "object" },
		{ "progressToken", MORE("\"_meta\":{\"progressToken\":{}}"), ERR_FIELD,
		  "$.params._meta.progressToken", "{}", "progressToken" },
		{ "progressToken fraction", MORE("\"_meta\":{\"progressToken\":1.5}"), ERR_FIELD,
		  "$.params._meta.progressToken", "1.5", "integer" },
		{ "V9 kind", MORE("\"modelPreferences\":[]"), ERR_PREFERENCES,
		  "$.params.modelPreferences", "[]", "object" },
		{ "V9 priority", MORE("\"modelPreferences\":{\"speedPriority\":\"1\"}"),
		  ERR_PREFERENCES, "$.params.modelPreferences.speedPriority", "\"1\"", "number" },
		{ "V9 hints", MORE("\"modelPreferences\":{\"hints\":{}}"), ERR_PREFERENCES,
		  "$.params.modelPreferences.hints", "{}", "array" },
		{ "V9 hint", MORE("\"modelPreferences\":{\"hints\":[{},\"gpt\"]}"), ERR_PREFERENCES,
		  "$.params.modelPreferences.hints[1]", "\"gpt\"", "object" },
		{ "V9 name", MORE("\"modelPreferences\":{\"hints\":[{\"name\":55}]}"),
		  ERR_PREFERENCES, "$.params.modelPreferences.hints[0].name", "55", "string" },
		{ "V11 kind", MORE("\"tools\":{}"), ERR_TOOL, "$.params.tools", "{}", "array" },
		{ "V11 element", MORE("\"tools\":[3]"), ERR_TOOL, "$.params.tools[0]", "3]",
		  "object" },
		{ "V11 no name", MORE("\"tools\":[{\"inputSchema\":{\"type\":\"object\"}}]"),
		  ERR_TOOL, "$.params.tools[0].name", "{\"inputS", "tool name" },
		{ "V11 empty name", MORE("\"tools\":[" TOOL("x") "," TOOL("") "]"), ERR_TOOL,
		  "$.params.tools[1].name", "\"\"", "tool name" },
		{ "V11 name kind", MORE("\"tools\":[{\"name\":66}]"), ERR_TOOL,
		  "$.params.tools[0].name", "66", "tool name" },
		{ "V11 description", MORE("\"tools\":[{\"description\":66}]"), ERR_TOOL,
		  "$.params.tools[0].description", "66", "description" },
		{ "V11 no schema", MORE("\"tools\":[{\"name\":\"n\"}]"), ERR_TOOL,
		  "$.params.tools[0].inputSchema", "{\"name\":\"n\"", "inputSchema" },
		{ "V11 schema kind", MORE("\"tools\":[{\"name\":\"n\",\"inputSchema\":true}]"),
		  ERR_TOOL, "$.params.tools[0].inputSchema", "true", "object" },
		{ "V11 schema type",
		  MORE("\"tools\":[{\"name\":\"n\",\"inputSchema\":{\"type\":\"string\"}}]"),
		  ERR_TOOL, "$.params.tools[0].inputSchema", "{\"type\":\"string\"", "object" },
		{ "V11 no schema type", MORE("\"tools\":[{\"name\":\"n\",\"inputSchema\":{}}]"),
		  ERR_TOOL, "$.params.tools[0].inputSchema", "{}", "object" },
		{ "V11 twice",
		  MORE("\"tools\":[" TOOL("a\\u0062") "," TOOL("x") "," TOOL("ab") "]"), ERR_TOOL,
		  "$.params.tools[2].name", "ab\"", "duplicate tool name \"ab\"" },
		{ "V12 mode", MORE("\"tools\":[" TOOL("n") "],\"toolChoice\":{\"mode\":\"n\"}"),
		  ERR_TOOL_CHOICE, "$.params.toolChoice.mode", "\"n\"}}", "toolChoice" },
		{ "V12 mode kind", MORE("\"tools\":[" TOOL("n") "],\"toolChoice\":{\"mode\":44}"),
		  ERR_TOOL_CHOICE, "$.params.toolChoice.mode", "44", "toolChoice" },
		{ "V12 kind", MORE("\"toolChoice\":44"), ERR_TOOL_CHOICE, "$.params.toolChoice",
		  "44", "toolChoice" },
		{ "V12 string", MORE("\"tool_choice\":\"f\""), ERR_TOOL_CHOICE,
		  "$.params.tool_choice", "\"f\"", "toolChoice" },
		{ "V13", MORE("\"toolChoice\":{\"mode\":\"required\"}"), ERR_TOOL_CHOICE_TOOLS,
		  "$.params.toolChoice", "{\"mode", "toolChoice" },
		{ "V13 no tools in tools", MORE("\"tools\":[],\"tool_choice\":{\"mode\":\"any\"}"),
		  ERR_TOOL_CHOICE_TOOLS, "$.params.tool_choice", "{\"mode", "needs tools" },
	};

	check_params(*state, rules, COUNT_OF(rules));
}

static void messages_and_blocks_have_their_rules(void **state)
{
#define IN_RESULT(block)                                                                          \
	ASSISTANT(CALL("c"))                                                                      \
	"," USER("{\"type\":\"tool_result\",\"toolUseId\":\"c\",\"content\":[" TEXT "," block "]" \
		 "}")
	static const struct rule rules[] = {
		{ "V5 unknown", "{\"role\":\"system\",\"content\":" TEXT "}", ERR_ROLE,
		  "$.params.messages[0].role", "\"system\"", "role" },
		{ "V5 kind", USER_HI ",{\"role\":88,\"content\":" TEXT "}", ERR_ROLE,
		  "$.params.messages[1].role", "88", "role" },
		{ "V5 missing", "{\"content\":" TEXT "}", ERR_ROLE, "$.params.messages[0].role",
		  "{\"content\"", "role" },
		{ "V6 missing", "{\"role\":\"user\"}", ERR_CONTENT, "$.params.messages[0].content",
		  "{\"role\"", "content" },
		{ "V6 string", "{\"role\":\"user\",\"content\":\"hi\"}", ERR_CONTENT,
		  "$.params.messages[0].content", "\"hi\"", "content" },
		{ "V6 null", "{\"role\":\"user\",\"content\":null}", ERR_CONTENT,
		  "$.params.messages[0].content", "null", "content" },
		{ "V6 element", USER(TEXT ",99"), ERR_CONTENT, "$.params.messages[0].content[1]",
		  "99", "object" },
		{ "V6 no type", USER("{\"text\":\"x\"}"), ERR_CONTENT,
		  "$.params.messages[0].content[0].type", "{\"text\"", "type" },
		{ "V6 unknown type", USER(TEXT ",{\"type\":\"video\"}"), ERR_CONTENT,
		  "$.params.messages[0].content[1].type", "\"video\"", "unknown type" },
		{ "V6 type kind", USER("{\"type\":4}"), ERR_CONTENT,
		  "$.params.messages[0].content[0].type", "4}", "type" },
		{ "V6 text missing", USER("{\"type\":\"text\"}"), ERR_CONTENT,
		  "$.params.messages[0].content[0].text", "{\"type\"", "text" },
		{ "V6 text kind", USER("{\"type\":\"text\",\"text\":31}"), ERR_CONTENT,
		  "$.params.messages[0].content[0].text", "31", "string" },
		{ "V6 resource outside",
		  USER("{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"text\":\"\"}}"),
		  ERR_CONTENT, "$.params.messages[0].content[0].type", "{\"type\"", "tool_result" },
		{ "V6 call inside", IN_RESULT(CALL("d")), ERR_CONTENT,
		  "$.params.messages[1].content[0].content[1].type",
		  "{\"type\":\"tool_use\",\"id\":\"d\"", "tool_result" },
		{ "V7 data missing", USER("{\"type\":\"image\",\"mimeType\":\"image/png\"}"),
		  ERR_MEDIA, "$.params.messages[0].content[0].data", "{\"type\"", "base64" },
		{ "V7 data kind",
		  USER("{\"type\":\"image\",\"data\":12,\"mimeType\":\"image/png\"}"), ERR_MEDIA,
		  "$.params.messages[0].content[0].data", "12", "base64" },
		{ "V7 alphabet",
		  USER("{\"type\":\"image\",\"data\":\"AA-A\",\"mimeType\":\"image/png\"}"),
		  ERR_MEDIA, "$.params.messages[0].content[0].data", "\"AA-A\"", "base64" },
		{ "V7 nothing",
		  USER("{\"type\":\"image\",\"data\":\"\",\"mimeType\":\"image/png\"}"), ERR_MEDIA,
		  "$.params.messages[0].content[0].data", "\"\"", "base64" },
		{ "V7 nothing in a data URI",
		  USER("{\"type\":\"audio\",\"data\":\"data:audio/wav;base64,\",\"mimeType\":"
		       "\"audio/wav\"}"),
		  ERR_MEDIA, "$.params.messages[0].content[0].data", "\"data:", "base64" },
		{ "V7 mime missing", USER("{\"type\":\"audio\",\"data\":\"AAAA\"}"), ERR_MEDIA,
		  "$.params.messages[0].content[0].mimeType", "{\"type\"", "mimeType" },
		{ "V7 mime", USER("{\"type\":\"audio\",\"data\":\"AAAA\",\"mimeType\":\"wav\"}"),
		  ERR_MEDIA, "$.params.messages[0].content[0].mimeType", "\"wav\"", "media type" },
		{ "V7 inside a result",
		  IN_RESULT("{\"type\":\"image\",\"data\":\"A\",\"mimeType\":\"image/png\"}"),
		  ERR_MEDIA, "$.params.messages[1].content[0].content[1].data", "\"A\"", "base64" },
		{ "resource without parts",
		  IN_RESULT("{\"type\":\"resource\",\"resource\":{\"uri\":\"u\"}}"), ERR_CONTENT,
		  "$.params.messages[1].content[0].content[1].resource.text", "{\"uri\"",
		  "text or blob" },
		{ "resource blob",
		  IN_RESULT("{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"blob\":\"?\"}}"),
		  ERR_MEDIA, "$.params.messages[1].content[0].content[1].resource.blob", "\"?\"",
		  "base64" },
		{ "resource mime kind",
		  IN_RESULT("{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"text\":\"\","
			    "\"mimeType\":77}}"),
		  ERR_CONTENT, "$.params.messages[1].content[0].content[1].resource.mimeType", "77",
		  "string" },
		{ "resource missing", IN_RESULT("{\"type\":\"resource\"}"), ERR_CONTENT,
		  "$.params.messages[1].content[0].content[1].resource", "{\"type\":\"resource\"",
		  "" },
		{ "link without name", IN_RESULT("{\"type\":\"resource_link\",\"uri\":\"u\"}"),
		  ERR_CONTENT, "$.params.messages[1].content[0].content[1].name",
		  "{\"type\":\"resource_link", "name" },
		{ "call without id",
		  ASSISTANT("{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{}}"), ERR_CONTENT,
		  "$.params.messages[0].content[0].id", "{\"type\"", "id" },
		{ "call name kind",
		  ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\",\"name\":{},\"input\":[]}"),
		  ERR_CONTENT, "$.params.messages[0].content[0].name", "{}", "name" },
		{ "V20 missing", ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\"}"),
		  ERR_TOOL_INPUT, "$.params.messages[0].content[0].input", "{\"type\"", "input" },
		{ "V20 array",
		  ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":[6]}"),
		  ERR_TOOL_INPUT, "$.params.messages[0].content[0].input", "[6]", "input" },
		{ "V20 string of an array",
		  ASSISTANT(
			  "{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":\"[6]\"}"),
		  ERR_TOOL_INPUT, "$.params.messages[0].content[0].input", "\"[6]\"", "input" },
		{ "V20 string of nothing",
		  ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":\"\"}"),
		  ERR_TOOL_INPUT, "$.params.messages[0].content[0].input", "\"\"", "input" },
		{ "V20 string of half an object",
		  ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":\"{"
			    "\\\"a\"}"),
		  ERR_TOOL_INPUT, "$.params.messages[0].content[0].input", "\"{\\\"a\"", "input" },
		{ "V20 string with a key twice",
		  ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"f\",\"input\":"
			    "\"{\\\"a\\\":1,\\\"\\\\u0061\\\":2}\"}"),
		  ERR_TOOL_INPUT, "$.params.messages[0].content[0].input", "\"{\\\"a\\\"",
		  "input" },
		{ "result without id", USER("{\"type\":\"tool_result\",\"content\":[]}"),
		  ERR_CONTENT, "$.params.messages[0].content[0].toolUseId", "{\"type\"",
		  "toolUseId" },
		{ "result id kind", USER("{\"type\":\"tool_result\",\"tool_call_id\":45}"),
		  ERR_CONTENT, "$.params.messages[0].content[0].tool_call_id", "45", "toolUseId" },
		{ "result content",
		  USER("{\"type\":\"tool_result\",\"toolUseId\":\"c\",\"content\":45}"),
		  ERR_CONTENT, "$.params.messages[0].content[0].content", "45", "array" },
		{ "result content before type",
		  USER("{\"content\":[45],\"type\":\"tool_result\",\"toolUseId\":\"c\"}"),
		  ERR_CONTENT, "$.params.messages[0].content[0].content[0]", "45", "object" },
		{ "isError",
		  USER("{\"type\":\"tool_result\",\"toolUseId\":\"c\",\"isError\":\"no\"}"),
		  ERR_CONTENT, "$.params.messages[0].content[0].isError", "\"no\"", "boolean" },
	};

	check_messages(*state, rules, COUNT_OF(rules));
}

static void calls_and_results_go_in_pairs(void **state)
{
	static const struct rule rules[] = {
		{ "V14", ASSISTANT(CALL("c")) "," USER(TEXT "," RESULT("c")),
		  ERR_TOOL_RESULTS_MIXED, "$.params.messages[1].content", "c\",\"content\"",
		  "mixed" },
		{ "V14 before V16", USER(RESULT("zzz") "," TEXT), ERR_TOOL_RESULTS_MIXED,
		  "$.params.messages[0].content", "zzz", "mixed" },
		{ "V15 text instead", ASSISTANT(CALL("c1")) "," USER_HI, ERR_TOOL_RESULT_MISSING,
		  "$.params.messages[0].content", "c1", "\"c1\"" },
		{ "V15 a call instead", ASSISTANT(CALL("c1")) "," ASSISTANT(CALL("c2")),
		  ERR_TOOL_RESULT_MISSING, "$.params.messages[0].content", "c1",
		  "Tool result missing" },
		{ "V15 one of two",
		  ASSISTANT(TEXT "," CALL("c1") "," CALL("c2")) "," USER(RESULT("c1")),
		  ERR_TOOL_RESULT_MISSING, "$.params.messages[0].content[2]", "c2", "\"c2\"" },
		{ "V15 in old history",
		  ASSISTANT(CALL("c1")) "," USER_HI
					"," ASSISTANT(CALL("c2")) "," USER(RESULT("c2")),
		  ERR_TOOL_RESULT_MISSING, "$.params.messages[0].content", "c1", "missing" },
		{ "V15 an empty message between",
		  ASSISTANT(CALL("c1")) "," USER("") "," USER(RESULT("c1")),
		  ERR_TOOL_RESULT_MISSING, "$.params.messages[0].content", "c1", "missing" },
		{ "V16 no call at all", USER_HI "," USER(RESULT("zzz")), ERR_TOOL_RESULT_ORPHAN,
		  "$.params.messages[1].content", "zzz", "zzz" },
		{ "V16 another id", ASSISTANT(CALL("c1")) "," USER(RESULT("c1") "," RESULT("zzz")),
		  ERR_TOOL_RESULT_ORPHAN, "$.params.messages[1].content[1]", "zzz", "zzz" },
		{ "V16 too late",
		  ASSISTANT(CALL("c")) "," USER(RESULT("c")) "," USER_HI "," USER(RESULT("c")),
		  ERR_TOOL_RESULT_ORPHAN, "$.params.messages[3].content", "", "c" },
		{ "V16 in the second of two",
		  ASSISTANT(CALL("c1")) "," USER(RESULT("c1")) "," USER(RESULT("zzz")),
		  ERR_TOOL_RESULT_ORPHAN, "$.params.messages[2].content", "zzz", "zzz" },
		{ "V17 results",
		  ASSISTANT(CALL("d1")) "," USER(RESULT("d1") "," RESULT("d\\u0031")),
		  ERR_TOOL_ID_DUPLICATE, "$.params.messages[1].content[1]", "d\\u0031",
		  "d\\u0031" },
		{ "V17 results of two messages",
		  ASSISTANT(CALL("d1")) "," USER(RESULT("d1")) "," USER(RESULT("d\\u0031")),
		  ERR_TOOL_ID_DUPLICATE, "$.params.messages[2].content", "d\\u0031", "duplicate" },
		{ "V17 calls", ASSISTANT(CALL("d1") "," CALL("d\\u0031")), ERR_TOOL_ID_DUPLICATE,
		  "$.params.messages[0].content[1]", "d\\u0031", "duplicate" },
		{ "V18", USER_HI "," ASSISTANT(TEXT "," CALL("c1")), ERR_TOOL_RESULT_MISSING,
		  "$.params.messages[1].content[1]", "c1", "Tool result missing" },
		{ "V19 call of the user", USER(CALL("c1")), ERR_TOOL_BLOCK_ROLE,
		  "$.params.messages[0].content", "c1", "tool_use" },
		{ "V19 result of the assistant",
		  ASSISTANT(CALL("c1")) "," ASSISTANT(TEXT "," RESULT("r1")), ERR_TOOL_BLOCK_ROLE,
		  "$.params.messages[1].content[1]", "r1", "tool_result" },
	};

	check_messages(*state, rules, COUNT_OF(rules));
}

static void legal_histories_pass(void **state)
{
	static const char *const histories[] = {
		USER_HI "," USER_HI,
		ASSISTANT(TEXT),
		USER(""),
		ASSISTANT(CALL("a") "," TEXT "," CALL("b")) "," USER(RESULT("b") "," RESULT("a")),
		ASSISTANT(CALL("a")) "," USER(RESULT("\\u0061")),
		/* ids need to differ within one turn only */
		ASSISTANT(CALL("a")) "," USER(RESULT("a")) "," ASSISTANT(CALL("a")) "," USER(
			RESULT("a")),
		ASSISTANT(CALL("")) "," USER(RESULT("")) "," USER_HI,
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(histories); i++)
		assert_ok(rig_messages(rig, histories[i], ""));
}

static void malformed_json_comes_before_any_rule(void **state)
{
	static const struct {
		const char *text;
		enum err err;
		const char *id;
	} rows[] = {
		{ "{\"id\":1,\"method\":\"sampling/createMessage\",\"params\":{\"maxTokens\":0},}",
		  ERR_JSON, "1" },
		{ "{\"method\":\"sampling/createMessage\",\"params\":{\"maxTokens\":0},\"id\":1",
		  ERR_JSON, "1" },
		{ "{\"method\":\"sampling/createMessage\",\"params\":{\"maxTokens\":0},\"id\":1}",
		  ERR_REQUEST, "1" },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"sampling/"
		  "createMessage\",\"params\":{\"maxTokens\":0}}",
		  ERR_ID_MISSING, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"sampling/"
		  "createMessage\",\"params\":{\"maxTokens\":1,"
		  "\"messages\":[" USER_HI "]}}",
		  ERR_ID_MISSING, NULL },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"sampling/createMessage\",\"id\":2}",
		  ERR_PARAMS, "2" },
		{ "[{\"jsonrpc\":\"2.0\"}]", ERR_BATCH, NULL },
	};
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		enum err err = rig_read(rig, slice_str(rows[i].text), REVISION_2025_11_25);
		if (err != rows[i].err || rig->fault.err != err)
			fail_msg("%s: %s", rows[i].text, err_info(err)->reason);
		assert_true(slice_eq(rig->rpc.id, slice_str(rows[i].id)));
	}
}

static void limits_are_refusals_with_a_path(void **state)
{
	static const struct {
		const char *name;
		struct sampling_limits limits;
		enum err err;
	} rows[] = {
		{ "as many as there are", { 2, 4, 2, 3, 6, { 64, 64 } }, ERR_OK },
		{ "messages", { 1, 4, 2, 3, 6, { 64, 64 } }, ERR_MESSAGES },
		{ "blocks", { 2, 3, 2, 3, 6, { 64, 64 } }, ERR_CONTENT },
		{ "tools", { 2, 4, 1, 3, 6, { 64, 64 } }, ERR_TOOL },
		{ "stop sequences", { 2, 4, 2, 2, 6, { 64, 64 } }, ERR_FIELD },
		{ "their bytes", { 2, 4, 2, 3, 5, { 64, 64 } }, ERR_FIELD },
		{ "depth", { 2, 4, 2, 3, 6, { 7, 64 } }, ERR_TOO_DEEP },
		{ "keys", { 2, 4, 2, 3, 6, { 64, 3 } }, ERR_TOO_MANY_KEYS },
	};
	static const char body[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/"
		"createMessage\",\"params\":{\"maxTokens\":1,\"stopSequences\":[\"\",\"ab\","
		"\"cdef\"],"
		"\"tools\":[" TOOL("a") "," TOOL("b") "],\"messages\":[" ASSISTANT(
			CALL("c")) "," USER("{\"type\":\"tool_result\",\"toolUseId\":\"c\","
					    "\"content\":[" TEXT "," TEXT "]}") "]}}";
	struct rig *rig = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		enum err err = sampling_read(slice_str(body), REVISION_2025_11_25, &rows[i].limits,
					     rig->work, &rig->arena, &rig->rpc, &rig->request,
					     &rig->fault);
		if (err != rows[i].err)
			fail_msg("%s: %s", rows[i].name, err_info(err)->reason);
		if (err == ERR_FIELD)
			assert_true(slice_eq(rig->fault.path, SLICE("$.params.stopSequences")));
	}
}

static void every_allocation_may_fail(void **state)
{
	static const char body[] =
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/"
		"createMessage\",\"params\":{\"maxTokens\":1,"
		"\"stopSequences\":[\"a\"],\"modelPreferences\":{\"hints\":[{\"name\":\"x\"}]},"
		"\"tools\":[" TOOL("a") "],\"messages\":[" USER(
			"{\"type\":\"image\",\"data\":"
			"\"AA\\nAA\",\"mimeType\":\"Image/"
			"png\"}") "," ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\",\"name\":"
						"\"f\",\"input\":\"{\\\"a\\\":"
						"1}\"}") "," USER("{\"type\":\"tool_result\","
								  "\"toolUseId\":\"c\","
								  "\"content\":{\"a\":1}}") "]}}";
	struct rig *rig = *state;
	size_t cap = 0;
	enum err err = ERR_BUSY;

	/* the cap grows byte by byte, so it is met at every place that takes memory */
	for (; err != ERR_OK; cap += 8) {
		arena_give(&rig->arena);
		arena_init(&rig->arena, &rig->pool, cap);
		err = rig_read(rig, slice_str(body), REVISION_2025_11_25);
		if (err != ERR_OK)
			assert_int_equal(err, ERR_BUSY);
		assert_slice(rig->rpc.id, "1");
	}
	assert_true(cap > 1000);
}

/* Ten thousand calls in one turn and as many results, in the opposite order. */
static void many_calls_in_one_turn_are_matched(void **state)
{
	enum { COUNT = 8000 };
	struct rig *rig = *state;
	size_t size = (size_t)COUNT * 160, len = 0;
	char *messages = malloc(size);

	assert_non_null(messages);
	len += (size_t)snprintf(messages + len, size - len,
				"{\"role\":\"assistant\",\"content\":[");
	for (int i = 0; i < COUNT; i++)
		len += (size_t)snprintf(
			messages + len, size - len,
			"%s{\"type\":\"tool_use\",\"id\":\"c%d\",\"name\":\"f\",\"input\":{}}",
			i == 0 ? "" : ",", i);
	len += (size_t)snprintf(messages + len, size - len, "]},{\"role\":\"user\",\"content\":[");
	for (int i = COUNT; i-- > 0;)
		len += (size_t)snprintf(messages + len, size - len,
					"%s{\"type\":\"tool_result\",\"toolUseId\":\"c%d\"}",
					i == COUNT - 1 ? "" : ",", i);
	(void)snprintf(messages + len, size - len, "]}");
	assert_ok(rig_messages(rig, messages, ""));
	assert_int_equal(rig->request.block_count, 2 * COUNT);
	char *last = strstr(messages, "\"toolUseId\":\"c5\"");
	last[strlen("\"toolUseId\":\"c")] = '6';
	assert_int_equal(rig_messages(rig, messages, ""), ERR_TOOL_ID_DUPLICATE);
	free(messages);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(params_have_their_rules),
		rig_test(messages_and_blocks_have_their_rules),
		rig_test(calls_and_results_go_in_pairs),
		rig_test(legal_histories_pass),
		rig_test(malformed_json_comes_before_any_rule),
		rig_test(limits_are_refusals_with_a_path),
		rig_test(every_allocation_may_fail),
		rig_test(many_calls_in_one_turn_are_matched),
	};
	return cmocka_run_group_tests_name("sampling_rules", tests, NULL, NULL);
}
