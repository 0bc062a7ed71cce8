/* What clients with sessions say, as a server of 2026-07-28 gets it, and what such a server says of itself. */
#include "gateway/front/mcp/mcp_bridge_era.h"
#include "gateway/front/mcp/mcp_bridge_param.h"
#include "gateway/front/mcp/mcp_bridge_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct arena_pool pool = { .keep_max = 4 };
static struct arena arena;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}

static struct mcp_message message_of(const char *text)
{
	struct mcp_message message;
	struct slice value;

	assert_true(json_loose_whole(slice_str(text), &value));
	mcp_message_read(value, &message);
	return message;
}

static void assert_text(struct slice text, const char *expected)
{
	if (!slice_eq(text, slice_str(expected)))
		fail_msg("%.*s instead of %s", (int)text.len, text.at, expected);
}

/* ---- what a client has said of itself ---- */

#define INITIALIZE(params) "{\"id\":\"i\",\"method\":\"initialize\",\"params\":" params "}"
#define NOTHING ",\"clientCapabilities\":{}}"
#define DECLARED "{\"clientInfo\":{\"name\":\"c\"}" NOTHING

static const struct declared_row {
	const char *params, *declared;
} declared_rows[] = {
	{ "{\"clientInfo\":{\"name\":\"c\"}}", DECLARED },
	{ "{\"clientInfo\":{ "
	  "\"name\":\"c\",\"title\":\"\\u00e4\"},\"capabilities\":{\"roots\":{}}}",
	  "{\"clientInfo\":{ \"name\":\"c\",\"title\":\"\\u00e4\"}" NOTHING },
	{ "{\"clientInfo\":null}", "{\"clientCapabilities\":{}}" },
	{ "{\"clientInfo\":\"c\"}", "{\"clientCapabilities\":{}}" },
	{ "null", "{\"clientCapabilities\":{}}" },
};

static void a_session_keeps_who_the_client_is(void **state)
{
	char text[512];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(declared_rows); i++) {
		(void)snprintf(text, sizeof(text), INITIALIZE("%s"), declared_rows[i].params);
		const struct mcp_message message = message_of(text);
		assert_text(mcp_bridge_declared(&message, &arena), declared_rows[i].declared);
	}
}

static void a_long_one_is_cut(void **state)
{
	static char text[4 * MCP_DECLARED_MAX];
	const int much = MCP_DECLARED_MAX;
	struct mcp_message message;

	(void)state;
	(void)snprintf(text, sizeof(text),
		       INITIALIZE("{\"clientInfo\":{\"description\":\"%0*d\",\"version\":\"1\","
				  "\"name\":\"c\"}}"),
		       much, 0);
	message = message_of(text);
	assert_text(mcp_bridge_declared(&message, &arena),
		    "{\"clientInfo\":{\"name\":\"c\",\"version\":\"1\"}" NOTHING);
	(void)snprintf(text, sizeof(text), INITIALIZE("{\"clientInfo\":{\"name\":\"%0*d\"}}"), much,
		       0);
	message = message_of(text);
	assert_text(mcp_bridge_declared(&message, &arena), "{\"clientCapabilities\":{}}");
}

static void levels_of_logging_have_numbers(void **state)
{
	(void)state;
	assert_int_equal(mcp_bridge_log_level(SLICE("\"debug\"")), 1);
	assert_int_equal(mcp_bridge_log_level(SLICE("\"inf\\u006f\"")), 2);
	assert_int_equal(mcp_bridge_log_level(SLICE("\"emergency\"")), MCP_LOG_LEVELS);
	assert_int_equal(mcp_bridge_log_level(SLICE("\"DEBUG\"")), 0);
	assert_int_equal(mcp_bridge_log_level(SLICE("1")), 0);
	assert_int_equal(mcp_bridge_log_level(slice_of(NULL, 0)), 0);
}

/* ---- towards the server ---- */

#define VERSION "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\""
#define OURS                                                                \
	VERSION ",\"io.modelcontextprotocol/clientInfo\":{\"name\":\"c\"}," \
		"\"io.modelcontextprotocol/clientCapabilities\":{}"
#define LEVEL ",\"io.modelcontextprotocol/logLevel\":\"info\""
#define BODY(params) "{\"id\":1.0, \"method\":\"m\"" params "}"
#define PARAMS(params) BODY(",\"params\":" params)

static const struct body_row {
	const char *text;
	uint32_t level;
	const char *sent; /* NULL: refused */
} body_rows[] = {
	{ BODY(""), 0, BODY(",\"params\":{\"_meta\":{" OURS "}}") },
	{ PARAMS("null"), 0, PARAMS("{\"_meta\":{" OURS "}}") },
	{ PARAMS("{}"), 2, PARAMS("{\"_meta\":{" OURS LEVEL "}}") },
	{ PARAMS("{ \"a\":1e400 }"), 0, PARAMS("{ \"a\":1e400 ,\"_meta\":{" OURS "}}") },
	{ PARAMS("{\"_meta\":null,\"a\":1}"), 0, PARAMS("{\"_meta\":{" OURS "},\"a\":1}") },
	{ PARAMS("{\"_meta\":[1],\"a\":1}"), 0, PARAMS("{\"_meta\":{" OURS "},\"a\":1}") },
	{ PARAMS("{\"_meta\":{}}"), 0, PARAMS("{\"_meta\":{" OURS "}}") },
	{ PARAMS("{\"\\u005fmeta\":{\"x\":[1]}}"), 0,
	  PARAMS("{\"\\u005fmeta\":{\"x\":[1]," OURS "}}") },
	{ PARAMS("{\"_meta\":{\"io.modelcontextprotocol/logLevel\":\"debug\",\"progressToken\":7,"
		 "\"io.modelcontextprotocol\\/clientInfo\":{}}}"),
	  0, PARAMS("{\"_meta\":{\"progressToken\":7," OURS "}}") },
	{ PARAMS("{\"_meta\":{\"io.modelcontextprotocol/logLevel\":\"debug\"}}"), 2,
	  PARAMS("{\"_meta\":{" OURS LEVEL "}}") },
	{ PARAMS("[]"), 0, NULL },
	{ PARAMS("1"), 0, NULL },
	{ PARAMS("\"x\""), 0, NULL },
};

static void a_message_says_what_each_of_2026_07_28_does(void **state)
{
	struct slice sent;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(body_rows); i++) {
		const struct body_row *row = &body_rows[i];
		const struct mcp_message message = message_of(row->text);
		const enum err err = mcp_bridge_body(slice_str(row->text), &message,
						     SLICE(DECLARED), row->level, &arena, &sent);

		assert_int_equal(err, row->sent == NULL ? ERR_PARAMS : ERR_OK);
		if (row->sent != NULL)
			assert_text(sent, row->sent);
	}
}

#define HEAD(method) "mcp-protocol-version: 2026-07-28\r\nmcp-method: " method "\r\n"
#define MESSAGE(method, params) "{\"id\":1,\"method\":\"" method "\",\"params\":" params "}"

static const struct head_row {
	const char *text, *head; /* NULL: refused */
} head_rows[] = {
	{ MESSAGE("tools/list", "{\"name\":\"n\"}"), HEAD("tools/list") },
	{ MESSAGE("tools\\/call", "{\"name\":\"n m\"}"), HEAD("tools/call") "mcp-name: n m\r\n" },
	{ MESSAGE("prompts/get", "{\"name\":\"\\u006e\"}"), HEAD("prompts/get") "mcp-name: n\r\n" },
	{ MESSAGE("resources/read", "{\"uri\":\"file:///a\",\"name\":\"n\"}"),
	  HEAD("resources/read") "mcp-name: file:///a\r\n" },
	{ MESSAGE("tasks/get", "{\"taskId\":\"t\"}"), HEAD("tasks/get") "mcp-name: t\r\n" },
	{ MESSAGE("tools/call", "{}"), HEAD("tools/call") },
	{ MESSAGE("tools/call", "{\"name\":1}"), HEAD("tools/call") },
	/* what a header cannot say, or would say differently */
	{ MESSAGE("tools/call", "{\"name\":\"a\\r\\nx: y\"}"),
	  HEAD("tools/call") "mcp-name: =?base64?YQ0KeDogeQ==?=\r\n" },
	{ MESSAGE("tools/call", "{\"name\":\"\\u00e4\"}"),
	  HEAD("tools/call") "mcp-name: =?base64?w6Q=?=\r\n" },
	{ MESSAGE("tools/call", "{\"name\":\" a\"}"),
	  HEAD("tools/call") "mcp-name: =?base64?IGE=?=\r\n" },
	{ MESSAGE("tools/call", "{\"name\":\"\"}"),
	  HEAD("tools/call") "mcp-name: =?base64?\?=\r\n" },
	{ MESSAGE("tools/call", "{\"name\":\"=?base64?YQ==?=\"}"),
	  HEAD("tools/call") "mcp-name: =?base64?PT9iYXNlNjQ/WVE9PT89?=\r\n" },
	{ MESSAGE("tools/call", "{\"name\":\"\\ud800\"}"), NULL },
	{ MESSAGE("a\\nb", "{}"), NULL },
	{ MESSAGE("", "{}"), NULL },
};

static void headers_mirror_the_message(void **state)
{
	struct slice head;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(head_rows); i++) {
		const struct mcp_message message = message_of(head_rows[i].text);
		const enum err err = mcp_bridge_head(&message, &arena, &head);

		if ((err == ERR_OK) != (head_rows[i].head != NULL))
			fail_msg("%s", head_rows[i].text);
		if (err == ERR_OK)
			assert_text(head, head_rows[i].head);
	}
}

static void the_gateway_asks_by_itself(void **state)
{
	struct slice head;

	(void)state;
	assert_text(mcp_bridge_own("server/discover", "", slice_of(NULL, 0), SLICE(DECLARED),
				   &arena, &head),
		    "{\"jsonrpc\":\"2.0\",\"id\":\"sluice\",\"method\":\"server/discover\","
		    "\"params\":{\"_meta\":{" OURS "}}}");
	assert_text(head, "accept: application/json, text/event-stream\r\n"
			  "content-type: application/json\r\n" HEAD("server/discover"));
	assert_text(mcp_bridge_own("tools/list", "cursor", SLICE("\"c\\u0031\""), SLICE(DECLARED),
				   &arena, &head),
		    "{\"jsonrpc\":\"2.0\",\"id\":\"sluice\",\"method\":\"tools/list\","
		    "\"params\":{\"cursor\":\"c\\u0031\",\"_meta\":{" OURS "}}}");
}

/* ---- headers of a tool's arguments ---- */

#define SCHEMA(properties) "{\"type\":\"object\",\"properties\":{" properties "}}"
#define A "\"a\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"}"

static const struct param_row {
	const char *schema, *arguments, *lines;
} param_rows[] = {
	{ SCHEMA(A), "{\"a\":\"eu\"}", "mcp-param-Region: eu\r\n" },
	{ SCHEMA(A), "{\"\\u0061\":\"e\\u0075\"}", "mcp-param-Region: eu\r\n" },
	{ SCHEMA(A), "{\"a\":\"\\n\"}", "mcp-param-Region: =?base64?Cg==?=\r\n" },
	{ SCHEMA(A), "{\"a\":true}", "mcp-param-Region: true\r\n" },
	{ SCHEMA(A), "{\"a\":-1.50}", "mcp-param-Region: -1.50\r\n" },
	{ SCHEMA(A), "{\"a\":1e3}", "mcp-param-Region: 1000\r\n" },
	{ SCHEMA(A), "{\"a\":1e-3}", "" },
	{ SCHEMA(A), "{\"a\":1e400}", "" },
	{ SCHEMA(A), "{\"a\":null}", "" },
	{ SCHEMA(A), "{\"a\":{}}", "" },
	{ SCHEMA(A), "{\"b\":\"eu\"}", "" },
	{ SCHEMA(A), "[]", "" },
	{ SCHEMA("\"o\":" SCHEMA(A) ",\"b\":{\"x-mcp-header\":\"B\"}"),
	  "{\"b\":1,\"o\":{\"a\":\"eu\"},\"a\":\"us\"}",
	  "mcp-param-Region: eu\r\nmcp-param-B: 1\r\n" },
	{ SCHEMA("\"a\":{\"x-mcp-header\":\"x: y\\r\\nz\"}"), "{\"a\":1}", "" },
	{ SCHEMA("\"a\":{\"x-mcp-header\":\"\"}"), "{\"a\":1}", "" },
	{ SCHEMA("\"a\":{\"x-mcp-header\":1}"), "{\"a\":1}", "" },
	{ "{\"properties\":[]}", "{\"a\":1}", "" },
	{ "null", "{\"a\":1}", "" },
};

static void arguments_that_a_schema_names_get_headers(void **state)
{
	struct gather head;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(param_rows); i++) {
		const struct param_row *row = &param_rows[i];
		gather_init(&head, &arena);
		mcp_param_lines(slice_str(row->schema), slice_str(row->arguments), &arena, &head);
		assert_int_equal(gather_done(&head), ERR_OK);
		const struct slice lines = head.total == 0 ? SLICE("") : gather_flat(&head, &arena);
		assert_text(lines, row->lines);
	}
}

static void a_value_that_no_header_holds_gets_none(void **state)
{
	static char text[(8 << 10) + 64];
	struct gather head;

	(void)state;
	(void)snprintf(text, sizeof(text), "{\"a\":\"%0*d\"}", (8 << 10) + 1, 0);
	gather_init(&head, &arena);
	mcp_param_lines(SLICE(SCHEMA(A)), slice_str(text), &arena, &head);
	assert_int_equal(head.total, 0);
}

static void schemas_may_be_as_deep_as_they_like(void **state)
{
	static char schema[1 << 16], arguments[1 << 14];
	size_t at = 0, to = 0;
	struct gather head;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		at += (size_t)snprintf(schema + at, sizeof(schema) - at, "{\"properties\":{\"a\":");
		to += (size_t)snprintf(arguments + to, sizeof(arguments) - to, "{\"a\":");
	}
	at += (size_t)snprintf(schema + at, sizeof(schema) - at, "{\"x-mcp-header\":\"A\"}");
	to += (size_t)snprintf(arguments + to, sizeof(arguments) - to, "1");
	for (int i = 0; i < 1000; i++) {
		at += (size_t)snprintf(schema + at, sizeof(schema) - at, "}}");
		to += (size_t)snprintf(arguments + to, sizeof(arguments) - to, "}");
	}
	gather_init(&head, &arena);
	mcp_param_lines(slice_of(schema, at), slice_of(arguments, to), &arena, &head);
	assert_int_equal(head.total, 0);
}

static void a_tool_is_found_in_a_list(void **state)
{
	const struct mcp_message message = message_of(
		"{\"id\":1,\"result\":{\"nextCursor\":\"n\",\"tools\":[1,{\"name\":\"a\"},"
		"{\"name\":\"\\u0062\",\"inputSchema\":{\"x\":1}}]}}");
	const struct mcp_message last = message_of("{\"id\":1,\"result\":{\"tools\":{}}}");
	const struct mcp_message error = message_of("{\"id\":1,\"error\":{}}");
	struct slice cursor;

	(void)state;
	assert_text(mcp_param_schema(&message, SLICE("\"b\""), &cursor), "{\"x\":1}");
	assert_true(slice_absent(mcp_param_schema(&message, SLICE("\"c\""), &cursor)));
	assert_text(cursor, "\"n\"");
	assert_true(slice_absent(mcp_param_schema(&last, SLICE("\"c\""), &cursor)));
	assert_true(slice_absent(cursor));
	assert_true(slice_absent(mcp_param_schema(&error, SLICE("\"c\""), &cursor)));
	assert_true(slice_absent(cursor));
}

/* ---- towards the client ---- */

#define DISCOVERED(result) "{\"id\":\"sluice\",\"result\":" result "}"
#define HELLO(version, rest)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"result\":{\"protocolVersion\":\"" version "\"," rest \
	"}}"

static const struct hello_row {
	const char *asked, *result, *hello;
} hello_rows[] = {
	{ "2025-06-18",
	  "{\"capabilities\":{\"tools\":{}},\"instructions\":\"\\u0061\",\"ttlMs\":1,"
	  "\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"m\"}}}",
	  HELLO("2025-06-18", "\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"m\"},"
			      "\"instructions\":\"\\u0061\"") },
	{ "2024-11-05", "{\"serverInfo\":{\"name\":\"m\"}}",
	  HELLO("2024-11-05", "\"capabilities\":{},\"serverInfo\":{\"name\":\"m\"}") },
	{ "2027-01-01",
	  "{\"capabilities\":{\"tools\":{\"listChanged\":true},\"resources\":{\"subscribe\":true, "
	  "\"x\":1,\"listChanged\":true},\"experimental\":{\"subscribe\":{}},\"logging\":{}}}",
	  HELLO("2025-11-25", "\"capabilities\":{\"tools\":{\"listChanged\":true},\"resources\":{ "
			      "\"x\":1,\"listChanged\":true},"
			      "\"experimental\":{\"subscribe\":{}},\"logging\":{}},"
			      "\"serverInfo\":{\"name\":\"files\",\"version\":\"\"}") },
	{ "2026-07-28", "{\"capabilities\":[],\"instructions\":1}",
	  HELLO("2025-11-25", "\"capabilities\":{},"
			      "\"serverInfo\":{\"name\":\"files\",\"version\":\"\"}") },
};

static void a_server_is_shown_as_it_speaks_of_itself(void **state)
{
	char text[512], said[512];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(hello_rows); i++) {
		const struct hello_row *row = &hello_rows[i];
		(void)snprintf(text, sizeof(text), INITIALIZE("{\"protocolVersion\":\"%s\"}"),
			       row->asked);
		(void)snprintf(said, sizeof(said), DISCOVERED("%s"), row->result);
		const struct mcp_message initialize = message_of(text),
					 discovered = message_of(said);
		assert_text(mcp_bridge_hello(&initialize, &discovered, SLICE("files"), &arena),
			    row->hello);
	}
}

static const struct speaks_row {
	const char *text;
	bool speaks;
} speaks_rows[] = {
	{ DISCOVERED("{\"supportedVersions\":[\"2025-11-25\",\"2026-07-2\\u0038\"]}"), true },
	{ DISCOVERED("{\"supportedVersions\":[\"2027-01-01\"]}"), false },
	{ DISCOVERED("{\"supportedVersions\":{\"a\":\"2026-07-28\"}}"), false },
	{ DISCOVERED("{\"supportedVersions\":\"2026-07-28\"}"), false },
	{ DISCOVERED("{}"), false },
	{ "{\"id\":1,\"error\":{\"data\":{\"supportedVersions\":[\"2026-07-28\"]}}}", false },
};

static void whether_a_server_speaks_2026_07_28(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(speaks_rows); i++) {
		const struct mcp_message message = message_of(speaks_rows[i].text);
		if (mcp_bridge_speaks(&message) != speaks_rows[i].speaks)
			fail_msg("%s", speaks_rows[i].text);
	}
}

static void errors_of_servers_without_initialize(void **state)
{
	static const char *const modern[] = { "-32020", "-32021", "-32022", "-32601" };
	static const char *const others[] = { "-32600", "-32602", "-32603", "\"-32022\"", "null" };
	char text[64];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(modern) + COUNT_OF(others); i++) {
		const bool is_modern = i < COUNT_OF(modern);
		(void)snprintf(text, sizeof(text), "{\"id\":1,\"error\":{\"code\":%s}}",
			       is_modern ? modern[i] : others[i - COUNT_OF(modern)]);
		const struct mcp_message message = message_of(text);
		assert_int_equal(mcp_bridge_is_modern_error(&message), is_modern);
	}
}

/* ---- what is known of servers ---- */

static void what_a_server_speaks_is_known_for_a_while(void **state)
{
	static struct mcp_eras eras;
	struct mcp_digest a = { "an endpoint" }, b = a;

	(void)state;
	b.at[MCP_DIGEST_BYTES - 1] ^= 1;
	assert_int_equal(mcp_era_of(&eras, &a, 0), MCP_ERA_UNKNOWN);
	mcp_era_note(&eras, &a, MCP_ERA_MODERN, SEC);
	assert_int_equal(mcp_era_of(&eras, &a, SEC + MCP_ERA_KEPT - 1), MCP_ERA_MODERN);
	assert_int_equal(mcp_era_of(&eras, &b, SEC), MCP_ERA_UNKNOWN);
	assert_int_equal(mcp_era_of(&eras, &a, SEC + MCP_ERA_KEPT), MCP_ERA_UNKNOWN);
	mcp_era_note(&eras, &b, MCP_ERA_BOTH, SEC); /* in a's place */
	assert_int_equal(mcp_era_of(&eras, &b, SEC), MCP_ERA_BOTH);
	assert_int_equal(mcp_era_of(&eras, &a, SEC), MCP_ERA_UNKNOWN);
}

/* ---- memory ---- */

static bool makes_all(struct arena *into)
{
	static const char text[] = MESSAGE("tools/call", "{\"name\":\"\\u00e4\"}");
	const struct mcp_message message = message_of(text);
	const struct mcp_message hello = message_of(INITIALIZE("{\"clientInfo\":{}}"));
	const struct mcp_message discovered =
		message_of(DISCOVERED("{\"capabilities\":{\"resources\":{\"subscribe\":true}}}"));
	struct slice out;

	return !slice_absent(mcp_bridge_declared(&hello, into)) &&
	       mcp_bridge_body(slice_str(text), &message, SLICE(DECLARED), 1, into, &out) ==
		       ERR_OK &&
	       mcp_bridge_head(&message, into, &out) == ERR_OK &&
	       !slice_absent(mcp_bridge_own("m", "n", SLICE("1"), SLICE(DECLARED), into, &out)) &&
	       !slice_absent(mcp_bridge_hello(&hello, &discovered, SLICE("s"), into));
}

static void refused_memory_is_said(void **state)
{
	size_t cap = 0;

	(void)state;
	for (;; cap += 8) {
		struct arena small;
		arena_init(&small, &pool, cap);
		const bool made = makes_all(&small);
		arena_give(&small);
		if (made)
			break;
	}
	assert_true(cap > 256);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_session_keeps_who_the_client_is),
		cmocka_unit_test(a_long_one_is_cut),
		cmocka_unit_test(levels_of_logging_have_numbers),
		cmocka_unit_test(a_message_says_what_each_of_2026_07_28_does),
		cmocka_unit_test(headers_mirror_the_message),
		cmocka_unit_test(the_gateway_asks_by_itself),
		cmocka_unit_test(arguments_that_a_schema_names_get_headers),
		cmocka_unit_test(a_value_that_no_header_holds_gets_none),
		cmocka_unit_test(schemas_may_be_as_deep_as_they_like),
		cmocka_unit_test(a_tool_is_found_in_a_list),
		cmocka_unit_test(a_server_is_shown_as_it_speaks_of_itself),
		cmocka_unit_test(whether_a_server_speaks_2026_07_28),
		cmocka_unit_test(errors_of_servers_without_initialize),
		cmocka_unit_test(what_a_server_speaks_is_known_for_a_while),
		cmocka_unit_test(refused_memory_is_said),
	};
	return cmocka_run_group_tests_name("mcp_bridge_text", tests, set_up, tear_down);
}
