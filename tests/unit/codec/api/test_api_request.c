/* What is read of a request in a provider's own API: values, figures, tools, content. */
#include "tests/unit/codec/api/api_rig.h"

static void values_are_slices_of_the_body(void **state)
{
	struct api_reading r;

	(void)state;
	api_rig_read(&r, API_MESSAGES,
		     " {\"model\" : \"a\\u002fb\", \"max_tokens\":12e1,\"stream\":true,"
		     "\"messages\":[{\"role\":\"user\",\"content\":\"x\"}],\"system\":\"s\","
		     "\"metadata\":{\"user_id\":\"u\"},\"service_tier\":\"auto\",\"speed\":null,"
		     "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":1024},"
		     "\"tool_choice\":{\"type\":\"auto\"},\"x\":[{\"model\":\"y\"}]} ");
	assert_slice(r.request.at[API_MODEL].text, "\"a\\u002fb\"");
	assert_slice(api_string(&r.request, API_MODEL), "a\\u002fb");
	assert_slice(r.request.at[API_MAX_TOKENS].text, "12e1");
	assert_int_equal(r.request.tokens, 120);
	assert_true(r.request.stream);
	assert_slice(r.request.system.text, "\"s\"");
	assert_int_equal(r.request.system_bytes, 3);
	assert_slice(api_string(&r.request, API_USER_ID), "u");
	assert_slice(api_string(&r.request, API_SERVICE_TIER), "auto");
	assert_false(api_has(&r.request, API_SPEED));
	assert_int_equal(r.request.thinking, 1024);
	assert_slice(r.request.at[API_TOOL_CHOICE].text, "{\"type\":\"auto\"}");
	assert_slice(r.request.at[API_METADATA].text, "{\"user_id\":\"u\"}");
	assert_int_equal(r.request.object.at[0], '{');
	assert_int_equal(r.request.object.len, r.request.body.len - 2);
	api_rig_end(&r);
	api_rig_read(
		&r, API_CHAT,
		API_C(",\"n\":3,\"store\":true,\"stream\":true,\"user\":\"u\","
		      "\"safety_identifier\":\"s\",\"max_tokens\":5,\"max_completion_tokens\":7,"
		      "\"stream_options\":{\"include_usage\":true},\"prediction\":{\"type\":"
		      "\"content\"}"));
	assert_int_equal(r.request.n, 3);
	assert_int_equal(r.request.at[API_STORE].kind, JSON_TRUE);
	assert_int_equal(r.request.tokens, 7);
	assert_true(r.request.usage_asked);
	assert_slice(api_string(&r.request, API_USER), "u");
	assert_slice(api_string(&r.request, API_SAFETY_IDENTIFIER), "s");
	assert_slice(r.request.at[API_PREDICTION].text, "{\"type\":\"content\"}");
	api_rig_end(&r);
}

static void only_true_streams(void **state)
{
	static const char *const bodies[] = { API_M(""), API_M(",\"stream\":false"),
					      API_M(",\"stream\":null") };
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		api_rig_read(&r, API_MESSAGES, bodies[i]);
		assert_false(r.request.stream);
		assert_int_equal(r.request.n, 1);
		api_rig_end(&r);
	}
}

static const struct figure_row {
	enum api api;
	const char *body;
	uint32_t messages, blocks, images, documents, sounds, urls;
	uint64_t image_bytes, document_bytes, sound_bytes;
} figure_rows[] = {
	{ API_MESSAGES, API_M(""), 1, 1, 0, 0, 0, 0, 0, 0, 0 },
	{ API_MESSAGES,
	  API_MB("{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\",\"source\":{\"type\":"
		 "\"base64\","
		 "\"media_type\":\"image/"
		 "png\",\"data\":\"AAAA\"}},{\"type\":\"unheard_of\",\"z\":{}}"),
	  1, 3, 1, 0, 0, 0, 4, 0, 0 },
	{ API_MESSAGES,
	  API_MB("{\"type\":\"document\",\"source\":{\"type\":\"text\",\"media_type\":\"text/"
		 "plain\","
		 "\"data\":\"abcde\"}}"),
	  1, 1, 0, 1, 0, 0, 0, 5, 0 },
	{ API_MESSAGES,
	  API_MB("{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://h/x.png\"}}"),
	  1, 1, 1, 0, 0, 1, 0, 0, 0 },
	{ API_MESSAGES,
	  API_MB("{\"type\":\"tool_result\",\"tool_use_id\":\"t\",\"content\":[{\"type\":\"image\","
		 "\"source\":{\"type\":\"base64\",\"media_type\":\"image/"
		 "png\",\"data\":\"AAAAAAAA\"}},"
		 "{\"type\":\"text\",\"text\":\"x\"}]}"),
	  1, 3, 1, 0, 0, 0, 8, 0, 0 },
	/* a tool's input is the caller's own: nothing in it is content */
	{ API_MESSAGES,
	  API_MB("{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{\"source\":{"
		 "\"url\":"
		 "\"http://h\",\"file_id\":\"f\"},\"Type\":1}}"),
	  1, 1, 0, 0, 0, 0, 0, 0, 0 },
	{ API_CHAT,
	  API_CB("{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,AA\"}}"),
	  1, 1, 1, 0, 0, 0, 24, 0, 0 },
	{ API_CHAT, API_CB("{\"type\":\"image_url\",\"image_url\":{\"url\":\"https://h/x\"}}"), 1,
	  1, 1, 0, 0, 1, 0, 0, 0 },
	{ API_CHAT, API_CB("{\"type\":\"image_url\",\"image_url\":\"\\u0068ttps://h/x\"}"), 1, 1, 1,
	  0, 0, 1, 0, 0, 0 },
	{ API_CHAT,
	  API_CB("{\"type\":\"image_url\",\"image_url\":{\"url\":\"DATA:image/png;base64,AA\"}}"),
	  1, 1, 1, 0, 0, 0, 24, 0, 0 },
	{ API_CHAT,
	  API_CB("{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"AAAA\",\"format\":\"wav\"}"
		 "}"),
	  1, 1, 0, 0, 1, 0, 0, 0, 4 },
	/* vLLM fetches what has a scheme there */
	{ API_CHAT,
	  API_CB("{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"http://h/"
		 "a\",\"format\":\"wav\"}}"),
	  1, 1, 0, 0, 1, 1, 0, 0, 0 },
	{ API_CHAT,
	  API_CB("{\"type\":\"file\",\"file\":{\"filename\":\"x.pdf\",\"file_data\":\"data:"
		 "application/pdf;"
		 "base64,AAAA\"}}"),
	  1, 1, 0, 1, 0, 0, 0, 32, 0 },
	{ API_CHAT, API_CB("{\"type\":\"video_url\",\"video_url\":{\"url\":\"http://h/v\"}}"), 1, 1,
	  0, 1, 0, 1, 0, 0, 0 },
	{ API_CHAT,
	  "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"content\":null},{\"role\":"
	  "\"user\","
	  "\"content\":[\"odd\",{\"type\":\"text\",\"text\":\"a\"}]},{\"role\":\"tool\","
	  "\"content\":\"r\"}]}",
	  3, 2, 0, 0, 0, 0, 0, 0, 0 },
};

static void policy_gets_its_figures(void **state)
{
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(figure_rows); i++) {
		const struct figure_row *row = &figure_rows[i];
		api_rig_read(&r, row->api, row->body);
		assert_int_equal(r.request.messages, row->messages);
		assert_int_equal(r.request.blocks, row->blocks);
		assert_int_equal(r.request.images, row->images);
		assert_int_equal(r.request.documents, row->documents);
		assert_int_equal(r.request.sounds, row->sounds);
		assert_int_equal(r.request.urls, row->urls);
		assert_int_equal(r.request.image_bytes, row->image_bytes);
		assert_int_equal(r.request.document_bytes, row->document_bytes);
		assert_int_equal(r.request.sound_bytes, row->sound_bytes);
		assert_int_equal(api_request_bytes(&r.request),
				 strlen(row->body) - row->image_bytes);
		api_rig_end(&r);
	}
}

static const struct tool_row {
	enum api api;
	const char *tool;
	enum api_tool_kind kind;
	const char *name, *type; /* NULL: absent */
} tool_rows[] = {
	{ API_MESSAGES, "{\"name\":\"a\",\"input_schema\":{}}", API_TOOL_FUNCTION, "a", NULL },
	{ API_MESSAGES, "{\"name\":\"a\",\"type\":null}", API_TOOL_FUNCTION, "a", NULL },
	{ API_MESSAGES, "{\"type\":\"custom\",\"name\":\"a\"}", API_TOOL_FUNCTION, "a", "custom" },
	{ API_MESSAGES, "{\"type\":\"bash_20250124\",\"name\":\"bash\"}", API_TOOL_CLIENT, "bash",
	  "bash_20250124" },
	{ API_MESSAGES, "{\"type\":\"text_editor_20250728\",\"name\":\"e\"}", API_TOOL_CLIENT, "e",
	  "text_editor_20250728" },
	{ API_MESSAGES, "{\"type\":\"computer_20251124\",\"name\":\"c\"}", API_TOOL_CLIENT, "c",
	  "computer_20251124" },
	{ API_MESSAGES, "{\"type\":\"memory_20250818\",\"name\":\"m\"}", API_TOOL_CLIENT, "m",
	  "memory_20250818" },
	{ API_MESSAGES, "{\"type\":\"web_search_20250305\",\"name\":\"web_search\",\"max_uses\":5}",
	  API_TOOL_SERVER, "web_search", "web_search_20250305" },
	{ API_MESSAGES, "{\"type\":\"bash_20250124_remote\",\"name\":\"b\"}", API_TOOL_SERVER, "b",
	  "bash_20250124_remote" },
	{ API_MESSAGES, "{\"type\":\"unheard_of\",\"name\":\"b\"}", API_TOOL_SERVER, "b",
	  "unheard_of" },
	{ API_MESSAGES, "{\"type\":\"mcp_toolset\",\"mcp_server_name\":\"s\"}", API_TOOL_SERVER,
	  NULL, "mcp_toolset" },
	{ API_MESSAGES, "{\"t\\u0079pe\":\"c\\u006fde_execution_20250825\",\"name\":\"x\"}",
	  API_TOOL_SERVER, "x", "c\\u006fde_execution_20250825" },
	{ API_CHAT, "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}",
	  API_TOOL_FUNCTION, "f", "function" },
	{ API_CHAT, "{\"type\":\"custom\",\"custom\":{\"name\":\"f\"}}", API_TOOL_FUNCTION, "f",
	  "custom" },
	{ API_CHAT, "{\"type\":\"web_search\"}", API_TOOL_SERVER, NULL, "web_search" },
	{ API_CHAT, "{\"type\":\"code_interpreter\",\"container\":null}", API_TOOL_SERVER, NULL,
	  "code_interpreter" },
};

static void tools_are_told_apart(void **state)
{
	char body[512];
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(tool_rows); i++) {
		const struct tool_row *row = &tool_rows[i];
		(void)snprintf(body, sizeof(body),
			       row->api == API_CHAT ? API_C(",\"tools\":[7,%s]")
						    : API_M(",\"tools\":[7,%s]"),
			       row->tool);
		api_rig_read(&r, row->api, body);
		assert_int_equal(r.request.tool_count, 1);
		const struct api_tool *tool = &r.request.tools[0];
		assert_int_equal(tool->kind, row->kind);
		assert_int_equal(r.request.server_tools, row->kind == API_TOOL_SERVER);
		assert_slice(tool->name, row->name);
		assert_slice(tool->type, row->type);
		if (row->kind == API_TOOL_SERVER)
			assert_slice(tool->path, row->api == API_CHAT ? "tools[1]" : "tools.1");
		api_rig_end(&r);
	}
}

static void tools_stand_in_other_places_too(void **state)
{
	struct api_reading r;

	(void)state;
	api_rig_read(&r, API_CHAT,
		     API_C(",\"functions\":[{\"name\":\"f\",\"parameters\":{\"a\":1}}]"));
	assert_int_equal(r.request.tool_count, 1);
	assert_slice(r.request.tools[0].schema, "{\"a\":1}");
	api_rig_end(&r);
	api_rig_read(&r, API_CHAT, API_C(",\"web_search_options\":{}"));
	assert_int_equal(r.request.server_tools, 1);
	assert_slice(r.request.tools[0].type, "web_search_options");
	assert_slice(r.request.tools[0].path, "web_search_options");
	api_rig_end(&r);
	api_rig_read(&r, API_MESSAGES, API_M(",\"mcp_servers\":[ ]"));
	assert_int_equal(r.request.server_tools, 0);
	api_rig_end(&r);
	api_rig_read(&r, API_MESSAGES,
		     API_MB("{\"type\":\"tool_addition\",\"tool\":{\"type\":\"tool_definition\","
			    "\"definition\":"
			    "{\"type\":\"web_fetch_20250910\",\"name\":\"web_fetch\"}}}"));
	assert_int_equal(r.request.server_tools, 1);
	assert_slice(r.request.tools[0].path, "messages.0.content.0.tool.definition");
	api_rig_end(&r);
}

static void names_of_the_settings_stand_for_dated_types(void **state)
{
	struct api_tool tool = { .type = SLICE_INIT("web_search_20250305") };

	(void)state;
	assert_true(api_tool_is(&tool, SLICE("web_search")));
	assert_true(api_tool_is(&tool, SLICE("web_search_20250305")));
	assert_false(api_tool_is(&tool, SLICE("web_sear")));
	assert_false(api_tool_is(&tool, SLICE("web_search_20250305_x")));
	tool.type = SLICE("web_search");
	assert_true(api_tool_is(&tool, SLICE("web_search")));
}

static const struct system_row {
	enum api api;
	const char *body;
	const char *system; /* NULL: none */
	uint32_t leading;
	bool later;
} system_rows[] = {
	{ API_MESSAGES, API_M(""), NULL, 0, false },
	{ API_MESSAGES, API_M(",\"system\":[{\"type\":\"text\",\"text\":\"a\"}]"),
	  "[{\"type\":\"text\",\"text\":\"a\"}]", 0, false },
	{ API_MESSAGES,
	  "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{\"role\":\"user\",\"content\":\"a\"},"
	  "{\"role\":\"system\",\"content\":\"b\"}]}",
	  NULL, 0, true },
	{ API_CHAT, API_C(""), NULL, 0, false },
	{ API_CHAT,
	  "{\"model\":\"m\",\"messages\":[{\"content\":\"a\",\"role\":\"system\"},{\"role\":"
	  "\"developer\","
	  "\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}]}",
	  "\"a\"", 2, false },
	{ API_CHAT,
	  "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"role\":"
	  "\"syst\\u0065m\","
	  "\"content\":\"b\"}]}",
	  NULL, 0, true },
	{ API_CHAT,
	  "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"a\"},{\"content\":\"b\"}"
	  "]}",
	  NULL, 0, true },
};

static void the_system_prompt_is_found(void **state)
{
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(system_rows); i++) {
		const struct system_row *row = &system_rows[i];
		api_rig_read(&r, row->api, row->body);
		assert_slice(r.request.system.text, row->system);
		assert_int_equal(r.request.system.kind != JSON_BAD, row->system != NULL);
		assert_int_equal(r.request.system_messages, row->leading);
		assert_int_equal(r.request.system_later, row->later);
		api_rig_end(&r);
	}
}

static void sealed_history_and_caches_are_seen(void **state)
{
	struct api_reading r;

	(void)state;
	api_rig_read(&r, API_MESSAGES,
		     API_MB("{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s\"}"));
	assert_true(r.request.sealed);
	api_rig_end(&r);
	api_rig_read(&r, API_MESSAGES, API_MB("{\"type\":\"redacted_thinking\",\"data\":\"d\"}"));
	assert_true(r.request.sealed);
	api_rig_end(&r);
	api_rig_read(&r, API_MESSAGES,
		     API_MB("{\"type\":\"thinking\",\"thinking\":\"x\",\"signature\":\"\"}"));
	assert_false(r.request.sealed);
	assert_false(r.request.cached);
	api_rig_end(&r);
	api_rig_read(&r, API_MESSAGES,
		     API_MB("{\"type\":\"text\",\"text\":\"x\",\"cache_control\":{\"type\":"
			    "\"ephemeral\"}}"));
	assert_true(r.request.cached);
	assert_false(r.request.cached_1h);
	api_rig_end(&r);
	api_rig_read(&r, API_MESSAGES,
		     API_M(",\"tools\":[{\"name\":\"a\",\"cache_control\":{\"ttl\":\"1h\"}}]"));
	assert_true(r.request.cached_1h);
	api_rig_end(&r);
}

static void names_of_a_list_are_looked_for_in_any_case(void **state)
{
	static const struct slice names[] = { SLICE_INIT("seed"), SLICE_INIT("guided_json"),
					      SLICE_INIT("logit_bias") };
	struct api_reading r;

	(void)state;
	api_rig_read(&r, API_CHAT,
		     API_C(",\"LOGIT_bia\xc5\xbf\":{},\"x\":{\"guided_json\":1},\"se\\u0065d\":1"));
	assert_int_equal(api_request_names(&r.request, names, COUNT_OF(names)), 5);
	api_rig_end(&r);
}

/* What trails: a user's own message begins anew, what the system says belongs to none. */
static void rounds_of_tools_are_counted(void **state)
{
#define USER "{\"role\":\"user\",\"content\":\"x\"}"
#define CALLS "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\"}]}"
#define RESULT "{\"role\":\"user\",\"content\":[{\"type\":\"text\"},{\"type\":\"tool_result\"}]}"
#define TOOL "{\"role\":\"tool\",\"content\":\"x\"}"
#define SYSTEM "{\"role\":\"system\",\"content\":\"x\"}"
	static const struct {
		enum api api;
		const char *messages;
		uint32_t rounds;
	} rows[] = {
		{ API_MESSAGES, USER, 0 },
		{ API_MESSAGES, USER "," CALLS, 0 },
		{ API_MESSAGES, USER "," CALLS "," RESULT, 1 },
		{ API_MESSAGES, USER "," CALLS "," RESULT "," RESULT, 1 },
		{ API_MESSAGES, USER "," CALLS "," RESULT "," SYSTEM "," CALLS "," RESULT, 2 },
		{ API_MESSAGES, USER "," CALLS "," RESULT "," CALLS "," RESULT "," USER, 0 },
		{ API_MESSAGES, USER "," CALLS "," RESULT "," USER "," CALLS "," RESULT, 1 },
		{ API_MESSAGES, "{\"role\":\"user\",\"content\":{\"type\":\"tool_result\"}}", 1 },
		{ API_CHAT, USER "," CALLS "," TOOL "," TOOL "," CALLS "," TOOL, 2 },
		{ API_CHAT, USER "," CALLS "," TOOL "," USER, 0 },
		{ API_CHAT, USER "," CALLS ",{\"role\":\"function\",\"content\":\"\"}", 1 },
	};
	char body[1024];
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(body, sizeof(body),
			       "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[%s]}",
			       rows[i].messages);
		api_rig_read(&r, rows[i].api, body);
		if (r.request.tool_rounds != rows[i].rounds)
			fail_msg("%s: %u rounds", body, r.request.tool_rounds);
		api_rig_end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_slices_of_the_body),
		cmocka_unit_test(only_true_streams),
		cmocka_unit_test(policy_gets_its_figures),
		cmocka_unit_test(tools_are_told_apart),
		cmocka_unit_test(tools_stand_in_other_places_too),
		cmocka_unit_test(names_of_the_settings_stand_for_dated_types),
		cmocka_unit_test(the_system_prompt_is_found),
		cmocka_unit_test(sealed_history_and_caches_are_seen),
		cmocka_unit_test(names_of_a_list_are_looked_for_in_any_case),
		cmocka_unit_test(rounds_of_tools_are_counted),
	};

	return cmocka_run_group_tests_name("api_request", tests, NULL, NULL);
}
