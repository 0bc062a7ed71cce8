/* What messages are, and what of them a proxy sees. */
#include "codec/mcp/mcp_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define META "io.modelcontextprotocol/"

static struct mcp_message read_text(const char *text)
{
	struct mcp_message message;
	struct slice object;

	if (!json_loose_whole(slice_str(text), &object))
		fail_msg("%s", text);
	mcp_message_read(object, &message);
	return message;
}

static const struct kind_row {
	const char *text;
	enum mcp_message_kind kind;
	const char *id; /* NULL: absent */
	bool samples;
} kind_rows[] = {
	{ "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", MCP_REQUEST, "1", false },
	{ "{\"id\":0,\"method\":\"sampling/createMessage\"}", MCP_REQUEST, "0", true },
	{ "{\"id\":\"\",\"m\\u0065thod\":\"sampling\\/createMessage\"}", MCP_REQUEST, "\"\"",
	  true },
	{ " { \"\\u0069d\" : -5 , \"method\" : \"sampling/createMess\\u0061ge\" } ", MCP_REQUEST,
	  "-5", true },
	{ "{\"id\":9007199254740993,\"method\":\"Sampling/createMessage\"}", MCP_REQUEST,
	  "9007199254740993", false },
	{ "{\"method\":\"sampling/createMessage\",\"id\":1,\"method\":\"x\"}", MCP_REQUEST, "1",
	  false },
	{ "{\"method\":\"x\",\"id\":1,\"id\":2,\"method\":\"sampling/createMessage\"}", MCP_REQUEST,
	  "2", true },
	{ "{\"method\":\"sampling/createMessage\"}", MCP_NOTIFICATION, NULL, false },
	{ "{\"method\":\"sampling/createMessage\",\"id\":null}", MCP_ODD, NULL, false },
	{ "{\"method\":\"sampling/createMessage\",\"id\":[1]}", MCP_ODD, NULL, false },
	{ "{\"method\":[\"sampling/createMessage\"],\"id\":1}", MCP_ODD, "1", false },
	{ "{\"params\":{\"method\":\"sampling/createMessage\",\"id\":1}}", MCP_ODD, NULL, false },
	{ "{\"id\":1,\"result\":{\"text\":\"\\\"method\\\":\\\"sampling/createMessage\\\"\"}}",
	  MCP_RESPONSE, "1", false },
	{ "{\"id\":\"a\",\"result\":null}", MCP_RESPONSE, "\"a\"", false },
	{ "{\"id\":1,\"error\":{\"code\":-1}}", MCP_RESPONSE, "1", false },
	{ "{\"id\":null,\"error\":{}}", MCP_ODD, NULL, false },
	{ "{\"result\":{}}", MCP_ODD, NULL, false },
	/* a result or error decides, unless it is null */
	{ "{\"id\":1,\"method\":\"sampling/createMessage\",\"result\":{}}", MCP_RESPONSE, "1",
	  false },
	{ "{\"id\":1,\"error\":0,\"method\":\"sampling/createMessage\"}", MCP_RESPONSE, "1",
	  false },
	{ "{\"error\":0,\"id\":1,\"error\":null,\"method\":\"sampling/createMessage\"}",
	  MCP_RESPONSE, "1", false },
	{ "{\"id\":1,\"error\":null,\"result\":null,\"method\":\"sampling/createMessage\"}",
	  MCP_REQUEST, "1", true },
	{ "{}", MCP_ODD, NULL, false },
	{ "{\"id\":1}", MCP_ODD, "1", false },
	{ "{\"id\":1,\"method\":\"sampling/createMessage\",}", MCP_ODD, NULL, false },
	{ "{\"id\":1,\"method\":\"sampling/createMessage\" \"x\":1}", MCP_ODD, NULL, false },
	{ "[{\"id\":1,\"method\":\"ping\"}]", MCP_ODD, NULL, false },
	{ "\"method\"", MCP_ODD, NULL, false },
	{ "1", MCP_ODD, NULL, false },
};

static void a_message_has_a_kind(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(kind_rows); i++) {
		const struct kind_row *row = &kind_rows[i];
		const struct mcp_message message = read_text(row->text);
		if (message.kind != row->kind || slice_absent(message.id) != (row->id == NULL) ||
		    !slice_eq(message.id, slice_str(row->id)) ||
		    mcp_message_samples(&message) != row->samples)
			fail_msg("%s", row->text);
	}
}

/* Of each member that is read: a text, and where it ends up. */
static const struct member_row {
	const char *text;
	size_t at;
	const char *value; /* NULL: absent */
} member_rows[] = {
#define ROW(text, member, value)                                  \
	{                                                         \
		text, offsetof(struct mcp_message, member), value \
	}
	ROW("{\"jsonrpc\":\"2.0\"}", jsonrpc, "\"2.0\""),
	ROW("{\"params\":[1]}", params, "[1]"),
	ROW("{\"result\":{ }}", result, "{ }"),
	ROW("{\"error\":{\"code\":-32600}}", error_code, "-32600"),
	ROW("{\"error\":[{\"code\":-32600}]}", error_code, NULL),
	ROW("{\"params\":{\"protocolVersion\":\"2025-06-18\"}}", in_params.protocol_version,
	    "\"2025-06-18\""),
	ROW("{\"params\":{\"capabilities\":{ }}}", in_params.client.capabilities, "{ }"),
	ROW("{\"params\":{\"capabilities\":{\"sampling\":{\"tools\":{}}}}}", in_params.client.tools,
	    "{}"),
	ROW("{\"params\":{\"capabilities\":{\"sampling\":null}}}", in_params.client.sampling,
	    "null"),
	ROW("{\"params\":{\"capabilities\":{\"x\":{\"sampling\":{}}}}}", in_params.client.sampling,
	    NULL),
	ROW("{\"params\":{\"c\\u0061pabilities\":{\"s\\u0061mpling\":1}}}",
	    in_params.client.sampling, "1"),
	ROW("{\"params\":{\"requestId\":\"7\"}}", in_params.request_id, "\"7\""),
	ROW("{\"params\":{\"progressToken\":7,\"progress\":0.5}}", in_params.progress_token, "7"),
	ROW("{\"params\":{\"progressToken\":7,\"progress\":0.5}}", in_params.progress, "0.5"),
	ROW("{\"params\":{\"name\":\"t\",\"arguments\":{\"name\":\"x\"}}}", in_params.name,
	    "\"t\""),
	ROW("{\"params\":{\"uri\":\"a:b\"}}", in_params.uri, "\"a:b\""),
	ROW("{\"params\":{\"inputResponses\":{}}}", in_params.input_responses, "{}"),
	ROW("{\"params\":{\"requestState\":\"s\"}}", in_params.request_state, "\"s\""),
	ROW("{\"params\":{\"_meta\":{\"a\":[]}}}", in_params.meta_text, "{\"a\":[]}"),
	ROW("{\"params\":{\"_meta\":{\"progressToken\":1}}}", in_params.meta.progress_token, "1"),
	ROW("{\"params\":{\"_meta\":{\"" META "protocolVersion\":\"v\"}}}",
	    in_params.meta.protocol_version, "\"v\""),
	ROW("{\"params\":{\"_meta\":{\"io.modelcontextprotocol\\/protocolVersion\":\"v\"}}}",
	    in_params.meta.protocol_version, "\"v\""),
	ROW("{\"params\":{\"_meta\":{\"" META "logLevel\":\"info\"}}}", in_params.meta.log_level,
	    "\"info\""),
	ROW("{\"params\":{\"_meta\":{\"" META
	    "clientCapabilities\":{\"sampling\":{\"tools\":2}}}}}",
	    in_params.meta.client.tools, "2"),
	ROW("{\"params\":{\"_meta\":{\"" META
	    "clientCapabilities\":{\"sampling\":{\"tools\":2}}}}}",
	    in_params.client.sampling, NULL),
	ROW("{\"result\":{\"protocolVersion\":\"v\"}}", in_result.protocol_version, "\"v\""),
	ROW("{\"result\":{\"resultType\":\"complete\"}}", in_result.result_type, "\"complete\""),
	ROW("{\"result\":{\"inputRequests\":{\"a\":{}}}}", in_result.input_requests, "{\"a\":{}}"),
	ROW("{\"result\":{\"requestState\":\"\"}}", in_result.request_state, "\"\""),
	/* the last one counts, with all that is in it */
	ROW("{\"params\":{\"name\":1},\"params\":{\"uri\":2}}", in_params.name, NULL),
	ROW("{\"params\":{\"name\":1},\"params\":[]}", in_params.name, NULL),
	ROW("{\"params\":{\"capabilities\":{\"sampling\":1},\"capabilities\":{}}}",
	    in_params.client.sampling, NULL),
	ROW("{\"params\":{\"capabilities\":{\"sampling\":{\"tools\":1},\"sampling\":{}}}}",
	    in_params.client.tools, NULL),
	ROW("{\"params\":{\"_meta\":{\"progressToken\":1},\"_meta\":0}}",
	    in_params.meta.progress_token, NULL),
	ROW("{\"result\":{\"resultType\":1,\"resultType\":2}}", in_result.result_type, "2"),
	/* what is not JSON is passed over by its brackets */
	ROW("{\"params\":{\"name\":1,\"uri\" 2},\"id\":3}", in_params.name, NULL),
	ROW("{\"params\":{\"name\":1,\"uri\" 2},\"id\":3}", params, "{\"name\":1,\"uri\" 2}"),
	ROW("{\"params\":{\"name\":1,\"uri\" 2},\"id\":3}", id, "3"),
	ROW("{\"params\":{\"_meta\":{\"a\":{],\"b\":1}},\"id\":3}", id, "3"),
	ROW("{\"params\":{\"_meta\":{\"progressToken\":1,},\"name\":2}}",
	    in_params.meta.progress_token, NULL),
	ROW("{\"params\":{\"_meta\":{\"progressToken\":1,},\"name\":2}}", in_params.name, "2"),
	ROW("{\"params\":{\"capabilities\":{\"sampling\":{\"tools\":1 1}}}}",
	    in_params.client.sampling, "{\"tools\":1 1}"),
	ROW("{\"params\":{\"capabilities\":{\"sampling\":{\"tools\":1 1}}}}",
	    in_params.client.tools, NULL),
#undef ROW
};

static void members_are_found_in_one_pass(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(member_rows); i++) {
		const struct member_row *row = &member_rows[i];
		const struct mcp_message message = read_text(row->text);
		struct slice found;
		(void)memcpy(&found, (const char *)&message + row->at, sizeof(found));
		if (slice_absent(found) != (row->value == NULL) ||
		    !slice_eq(found, slice_str(row->value)))
			fail_msg("%s: %.*s", row->text, (int)found.len, found.at);
	}
}

static const struct twice_row {
	const char *text;
	bool twice;
} twice_rows[] = {
	{ "{\"id\":1,\"method\":\"a\",\"params\":{\"id\":2}}", false },
	{ "{\"id\":1,\"x\":0,\"x\":0}", false },
	{ "{\"id\":1,\"id\":1}", true },
	{ "{\"jsonrpc\":\"2.0\",\"jsonrpc\":\"2.0\"}", true },
	{ "{\"method\":1,\"m\\u0065thod\":1}", true },
	{ "{\"params\":{},\"params\":{}}", true },
	{ "{\"params\":{\"name\":1,\"name\":2}}", true },
	{ "{\"params\":{\"arguments\":{\"name\":1,\"name\":2}}}", false },
	{ "{\"params\":{\"_meta\":{\"progressToken\":1,\"progressToken\":1}}}", true },
	{ "{\"params\":{\"progressToken\":1,\"_meta\":{\"progressToken\":1}}}", false },
	{ "{\"params\":{\"capabilities\":{\"sampling\":null,\"sampling\":{}}}}", true },
};

static void a_name_that_is_there_twice_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(twice_rows); i++)
		if (read_text(twice_rows[i].text).twice != twice_rows[i].twice)
			fail_msg("%s", twice_rows[i].text);
}

static const struct asks_row {
	const char *text;
	bool asks;
} asks_rows[] = {
	{ "{\"id\":1,\"result\":{\"resultType\":\"input_required\"}}", true },
	{ "{\"id\":1,\"result\":{\"result\\u0054ype\":\"input\\u005frequired\"}}", true },
	{ "{\"id\":1,\"result\":{\"resultType\":\"complete\"}}", false },
	{ "{\"id\":1,\"result\":{}}", false },
	{ "{\"id\":1,\"result\":{\"resultType\":null,\"resultType\":\"input_required\"}}", true },
	{ "{\"id\":1,\"result\":{\"resultType\":\"a\",\"resultType\":\"input_required\"}}", true },
	{ "{\"id\":1,\"result\":{\"resultType\":\"input_required\",\"resultType\":\"a\"}}", false },
	{ "{\"id\":1,\"result\":{\"resultType\":\"input_required\"},\"result\":{}}", false },
	{ "{\"id\":1,\"error\":{},\"result\":{\"resultType\":\"input_required\"}}", false },
	{ "{\"result\":{\"resultType\":\"input_required\"}}", false },
};

static void a_response_asks_for_input_or_does_not(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(asks_rows); i++) {
		const struct mcp_message message = read_text(asks_rows[i].text);
		if (mcp_message_asks(&message) != asks_rows[i].asks)
			fail_msg("%s", asks_rows[i].text);
	}
}

static void a_cancellation_names_an_id(void **state)
{
	static const struct {
		const char *text, *id;
	} rows[] = {
		{ "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"a\"}}",
		  "\"a\"" },
		{ "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":0}}", "0" },
		{ "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":null}}",
		  NULL },
		{ "{\"method\":\"notifications/cancelled\",\"id\":1,\"params\":{\"requestId\":0}}",
		  NULL },
		{ "{\"method\":\"notifications/x\",\"params\":{\"requestId\":0}}", NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct mcp_message message = read_text(rows[i].text);
		const struct slice id = mcp_message_cancels(&message);
		if (slice_absent(id) != (rows[i].id == NULL) ||
		    !slice_eq(id, slice_str(rows[i].id)))
			fail_msg("%s", rows[i].text);
	}
}

static void a_text_is_one_message_or_none(void **state)
{
	struct mcp_message message;
	struct slice object = { NULL, 0 };

	(void)state;
	assert_true(
		mcp_message_read_text(SLICE(" {\"id\":1,\"result\":{}} \r\n"), &message, &object));
	assert_int_equal(message.kind, MCP_RESPONSE);
	assert_true(slice_eq(object, SLICE("{\"id\":1,\"result\":{}}")));
	assert_false(mcp_message_read_text(SLICE("{\"id\":1,\"result\":{}} x"), &message, &object));
	assert_int_equal(message.kind, MCP_ODD);
	assert_true(slice_absent(message.id));
	assert_false(mcp_message_read_text(SLICE("[{\"id\":1,\"result\":{}}]"), &message, &object));
	assert_false(mcp_message_read_text(SLICE("{\"id\":1,"), &message, &object));
	assert_false(mcp_message_read_text(SLICE(""), &message, &object));
}

static void a_sampling_may_hide_in_a_response(void **state)
{
	struct mcp_message message;

	(void)state;
	message = read_text("{\"id\":1,\"method\":\"sampling/createMessage\",\"result\":{}}");
	assert_true(mcp_message_may_sample(&message));
	message = read_text("{\"id\":null,\"method\":\"sampling/createMessage\",\"result\":{}}");
	assert_false(mcp_message_may_sample(&message));
	message = read_text("{\"id\":1,\"method\":\"ping\",\"result\":{}}");
	assert_false(mcp_message_may_sample(&message));
}

static void requests_tell_their_revision_and_token(void **state)
{
	struct mcp_message message =
		read_text("{\"id\":1,\"method\":\"tools/"
			  "call\",\"params\":{\"_meta\":{\"progressToken\":\"t\",\"" META
			  "protocolVersion\":\"2026-07-28\"}}}");

	(void)state;
	assert_true(mcp_message_modern(&message));
	assert_true(mcp_message_may_ask(&message));
	assert_true(slice_eq(mcp_message_token(&message), SLICE("\"t\"")));
	message = read_text(
		"{\"id\":1,\"method\":\"tools/list\",\"params\":{\"_meta\":{\"progressToken\":"
		"null,\"" META "protocolVersion\":20260728}}}");
	assert_false(mcp_message_modern(&message));
	assert_false(mcp_message_may_ask(&message));
	assert_true(slice_absent(mcp_message_token(&message)));
	message = read_text("{\"method\":\"prompts/get\"}");
	assert_false(mcp_message_may_ask(&message));
	assert_true(mcp_knows_tools(SLICE("\"2025-11-25\"")));
	assert_true(mcp_knows_tools(SLICE("\"2026-07-28\"")));
	assert_false(mcp_knows_tools(SLICE("\"2025-06-18\"")));
	assert_false(mcp_knows_tools(SLICE("3")));
	assert_false(mcp_knows_tools(slice_of(NULL, 0)));
}

static void a_refusal_is_told_by_its_code(void **state)
{
	struct mcp_message message;

	(void)state;
	message = read_text("{\"id\":1,\"error\":{\"code\":-32602}}");
	assert_true(mcp_message_refuses(&message));
	message = read_text("{\"id\":1,\"error\":{\"code\":-3.26e4}}");
	assert_true(mcp_message_refuses(&message));
	message = read_text("{\"id\":1,\"error\":{\"code\":-32601}}");
	assert_false(mcp_message_refuses(&message));
	message = read_text("{\"id\":1,\"result\":{\"code\":-32600}}");
	assert_false(mcp_message_refuses(&message));
}

static void a_declaration_is_there_or_null(void **state)
{
	struct mcp_declaration declaration = { .sampling = slice_of(NULL, 0) };

	(void)state;
	assert_false(mcp_declares(&declaration));
	declaration.sampling = SLICE("null");
	assert_false(mcp_declares(&declaration));
	declaration.sampling = SLICE("{}");
	assert_true(mcp_declares(&declaration));
}

static void entries_are_samplings_or_others(void **state)
{
	const struct mcp_entries entries = mcp_entries_count(
		SLICE("{\"a\":{\"method\":\"sampling/"
		      "createMessage\"},\"b\":{\"method\":\"elicitation/create\"},"
		      "\"c\":{\"m\\u0065thod\":\"sampling/createMessage\"},\"d\":1}"));

	(void)state;
	assert_int_equal(entries.samplings, 2);
	assert_int_equal(entries.others, 2);
	assert_int_equal(
		mcp_entries_count(SLICE("[{\"method\":\"sampling/createMessage\"}]")).samplings, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_has_a_kind),
		cmocka_unit_test(members_are_found_in_one_pass),
		cmocka_unit_test(a_name_that_is_there_twice_is_told),
		cmocka_unit_test(a_response_asks_for_input_or_does_not),
		cmocka_unit_test(a_cancellation_names_an_id),
		cmocka_unit_test(a_text_is_one_message_or_none),
		cmocka_unit_test(a_sampling_may_hide_in_a_response),
		cmocka_unit_test(requests_tell_their_revision_and_token),
		cmocka_unit_test(a_refusal_is_told_by_its_code),
		cmocka_unit_test(a_declaration_is_there_or_null),
		cmocka_unit_test(entries_are_samplings_or_others),
	};
	return cmocka_run_group_tests_name("mcp_message", tests, NULL, NULL);
}
