/* What a call of 2026-07-28 becomes on its way to the server, and what comes back of it. */
#include "gateway/front/mcp/mcp_round_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#define CALL_OF(method, revision, capabilities)                   \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method      \
	"\",\"params\":{\"name\":\"t\",\"_meta\":{"               \
	"\"io.modelcontextprotocol/protocolVersion\":\"" revision \
	"\",\"io.modelcontextprotocol/clientCapabilities\":" capabilities ",\"x\":1}}}"
#define CALL(capabilities) CALL_OF("tools/call", "2026-07-28", capabilities)

/* ---- what is done ---- */

enum grant { NO_MODEL, MODELS, TOOLS };

static const struct rule_row {
	const char *request;
	enum mcp_sampling_mode mode;
	enum grant grant;
	const char *sent; /* NULL: nothing is followed, and nothing changed */
	bool answers;
} rule_rows[] = {
	{ CALL("{}"), MCP_BACKFILL, TOOLS, CALL("{\"sampling\":{\"tools\":{}}}"), true },
	{ CALL("{}"), MCP_BACKFILL, MODELS, CALL("{\"sampling\":{}}"), true },
	{ CALL("{}"), MCP_BACKFILL, NO_MODEL, NULL, false },
	{ CALL("{\"sampling\":null}"), MCP_BACKFILL, MODELS, CALL("{\"sampling\":{}}"), true },
	{ CALL("{\"elicitation\":{}}"), MCP_BACKFILL, MODELS,
	  CALL("{\"sampling\":{},\"elicitation\":{}}"), true },
	{ CALL("{\"sampling\":{}}"), MCP_BACKFILL, TOOLS, NULL, false },
	{ CALL("{\"sampling\":{\"tools\":{}}}"), MCP_FORCE, MODELS, CALL("{\"sampling\":{}}"),
	  true },
	{ CALL("{}"), MCP_FORCE, TOOLS, CALL("{\"sampling\":{\"tools\":{}}}"), true },
	{ CALL("{\"sampling\":{},\"roots\":{}}"), MCP_FORCE, NO_MODEL, CALL("{\"roots\":{}}"),
	  false },
	{ CALL("{}"), MCP_RELAY, TOOLS, NULL, false },
	{ CALL("{\"sampling\":{}}"), MCP_RELAY, TOOLS, NULL, false },
	{ CALL("{\"sampling\":{}}"), MCP_REFUSE, TOOLS, CALL("{}"), false },
	{ CALL("{}"), MCP_REFUSE, TOOLS, CALL("{}"), false },
	/* capabilities that are none are the server's to refuse */
	{ CALL("[]"), MCP_BACKFILL, TOOLS, NULL, false },
	{ CALL("null"), MCP_FORCE, TOOLS, NULL, false },
	/* methods and revisions */
	{ CALL_OF("prompts/get", "2026-07-28", "{}"), MCP_BACKFILL, MODELS,
	  CALL_OF("prompts/get", "2026-07-28", "{\"sampling\":{}}"), true },
	{ CALL_OF("resources/read", "2026-07-28", "{}"), MCP_BACKFILL, MODELS,
	  CALL_OF("resources/read", "2026-07-28", "{\"sampling\":{}}"), true },
	{ CALL_OF("tools\\/call", "2026-07-2\\u0038", "{}"), MCP_BACKFILL, MODELS,
	  CALL_OF("tools\\/call", "2026-07-2\\u0038", "{\"sampling\":{}}"), true },
	{ CALL_OF("tools/list", "2026-07-28", "{}"), MCP_BACKFILL, TOOLS, NULL, false },
	{ CALL_OF("completion/complete", "2026-07-28", "{}"), MCP_FORCE, TOOLS, NULL, false },
	{ CALL_OF("subscriptions/listen", "2026-07-28", "{}"), MCP_REFUSE, TOOLS, NULL, false },
	{ CALL_OF("tools/call", "2027-01-01", "{}"), MCP_BACKFILL, TOOLS, NULL, false },
	{ CALL_OF("tools/call", "2025-11-25", "{}"), MCP_BACKFILL, TOOLS, NULL, false },
	{ "{\"id\":1,\"method\":\"tools/call\",\"params\":{}}", MCP_BACKFILL, TOOLS, NULL, false },
};

static void a_call_declares_what_the_gateway_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rule_rows); i++) {
		const struct rule_row *row = &rule_rows[i];
		const struct mcp_message message = message_of(row->request);
		const struct mcp_round_rule rule = mcp_round_rule(
			row->mode, &message, row->grant != NO_MODEL, row->grant == TOOLS);
		const struct mcp_leg leg = { .text = slice_str(row->request),
					     .message = &message,
					     .rule = &rule };

		if (rule.follows != (row->sent != NULL) || rule.answers != row->answers)
			fail_msg("row %zu: %d %d", i, rule.follows, rule.answers);
		assert_text(mcp_leg_write(&leg, &arena),
			    row->sent == NULL ? row->request : row->sent);
	}
}

/* ---- legs ---- */

static void a_further_leg_has_the_rounds_answers_and_state(void **state)
{
	static const struct mcp_round_rule rule = { .follows = true,
						    .answers = true,
						    .declared = SLICE_INIT("{}") };
	static const char text[] =
		" {\"id\":7, "
		"\"method\":\"tools/call\",\"params\":{\"name\":\"t\",\"inputResponses\":{\"o\":1},"
		"\"requestState\":\"old\",\"_meta\":{\"progressToken\":1,"
		"\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n";
	const struct mcp_message message = message_of(text);
	struct mcp_leg leg = { .text = slice_str(text),
			       .message = &message,
			       .rule = &rule,
			       .id = SLICE("\"sluice-1\""),
			       .answers_round = true,
			       .answers = SLICE("{\"k\":{\"a\":1}}"),
			       .state = SLICE("\"s\\u0041\"") };

	(void)state;
	assert_text(mcp_leg_write(&leg, &arena),
		    " {\"id\":\"sluice-1\", \"method\":\"tools/call\",\"params\":{\"name\":\"t\","
		    "\"_meta\":{\"progressToken\":1,"
		    "\"io.modelcontextprotocol/clientCapabilities\":{\"sampling\":{}}},"
		    "\"inputResponses\":{\"k\":{\"a\":1}},\"requestState\":\"s\\u0041\"}}\n");
	leg.id = leg.state = slice_of(NULL, 0);
	assert_text(mcp_leg_write(&leg, &arena),
		    " {\"id\":7, \"method\":\"tools/call\",\"params\":{\"name\":\"t\","
		    "\"_meta\":{\"progressToken\":1,"
		    "\"io.modelcontextprotocol/clientCapabilities\":{\"sampling\":{}}},"
		    "\"inputResponses\":{\"k\":{\"a\":1}}}}\n");
}

static void answers_are_one_object(void **state)
{
	const struct mcp_answered answers[] = { { SLICE("\"a\""),
						  SLICE("{\"role\":\"assistant\"}") },
						{ SLICE("\"\\u0062\""), SLICE("{}") } };

	(void)state;
	assert_text(mcp_answers_join(answers, 0, &arena), "{}");
	assert_text(mcp_answers_join(answers, 1, &arena), "{\"a\":{\"role\":\"assistant\"}}");
	assert_text(mcp_answers_join(answers, 2, &arena),
		    "{\"a\":{\"role\":\"assistant\"},\"\\u0062\":{}}");
}

static const struct merge_row {
	const char *ours, *responses, *merged; /* NULL: absent */
} merge_rows[] = {
	{ NULL, NULL, "{}" },
	{ NULL, "{\"e\":{\"action\":\"accept\"}}", "{\"e\":{\"action\":\"accept\"}}" },
	{ "{}", "{\"e\":1}", "{\"e\":1}" },
	{ "{\"s\":1}", NULL, "{\"s\":1}" },
	{ "{\"s\":1}", "{}", "{\"s\":1}" },
	{ "{\"s\":1}", "{\"e\":2, \"f\" : 3}", "{\"s\":1,\"e\":2, \"f\" : 3}" },
	/* a client does not answer for the gateway */
	{ "{\"s\":1}", "{\"s\":2,\"e\":3}", "{\"s\":1,\"e\":3}" },
	{ "{\"s\":1}", "{\"e\":3,\"\\u0073\":2}", "{\"s\":1,\"e\":3}" },
	{ "{\"s\":1,\"t\":1}", "{\"t\":2}", "{\"s\":1,\"t\":1}" },
};

static void the_gateways_answers_come_before_the_clients(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(merge_rows); i++) {
		const struct merge_row *row = &merge_rows[i];
		assert_text(
			mcp_answers_merge(slice_str(row->ours), slice_str(row->responses), &arena),
			row->merged);
	}
}

static const struct has_row {
	const char *params;
	bool has;
} has_rows[] = {
	{ "{}", false },
	{ "{\"inputResponses\":null}", false },
	{ "{\"inputResponses\":{}}", false },
	{ "{\"inputResponses\":{ }}", false },
	{ "{\"inputResponses\":{\"a\":null}}", true },
	{ "{\"inputResponses\":[]}", true },
	{ "{\"inputResponses\":\"\"}", true },
	{ "{\"inputResponses\":{x}}", true },
	{ "{\"input\\u0052esponses\":{\"a\":1}}", true },
};

static void responses_of_the_client_are_seen(void **state)
{
	char text[256];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(has_rows); i++) {
		(void)snprintf(text, sizeof(text), "{\"id\":1,\"method\":\"m\",\"params\":%s}",
			       has_rows[i].params);
		const struct mcp_message message = message_of(text);
		if (mcp_has_responses(&message) != has_rows[i].has)
			fail_msg("%s", has_rows[i].params);
	}
}

static void a_call_is_known_by_what_it_asks_for(void **state)
{
	static const char *const same[] = {
		"{\"params\":{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2}}}",
		"{\"id\":9,\"params\":{ \"arguments\":{\"b\":2,\"a\":1.0},\"name\":\"t\"}}",
		"{\"params\":{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2},\"_meta\":{},"
		"\"inputResponses\":{}}}",
		"{\"requestState\":1,\"params\":{\"arguments\":{\"a\":1,\"b\":2},\"requestState\":"
		"\"s\",\"name\":\"t\"}}",
	};
	static const char *const others[] = {
		"{\"params\":{\"name\":\"u\",\"arguments\":{\"a\":1,\"b\":2}}}",
		"{\"params\":{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":3}}}",
		"{\"params\":{\"name\":\"t\",\"arguments\":{\"a\":1,\"b\":2},\"task\":{}}}",
		"{\"params\":{\"name\":\"t\"}}",
		"{\"params\":{}}",
	};
	struct mcp_digest first, next;

	(void)state;
	const struct mcp_message message = message_of(same[0]);
	assert_true(mcp_round_digest(&message, &arena, &first));
	for (size_t i = 0; i < COUNT_OF(same); i++) {
		const struct mcp_message other = message_of(same[i]);
		assert_true(mcp_round_digest(&other, &arena, &next));
		assert_true(mcp_digest_eq(&first, &next));
	}
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		const struct mcp_message other = message_of(others[i]);
		assert_true(mcp_round_digest(&other, &arena, &next));
		assert_false(mcp_digest_eq(&first, &next));
	}
}

/* ---- towards the client ---- */

static const struct asks_row {
	const char *result;
	bool asks;
} asks_rows[] = {
	{ "{\"resultType\":\"input_required\",\"inputRequests\":{\"a\":{}}}", true },
	{ "{\"resultType\":\"input_required\",\"inputRequests\":{}}", true },
	{ "{\"inputRequests\":{},\"resultType\":\"input\\u005frequired\"}", true },
	{ "{\"resultType\":\"input_required\",\"requestState\":\"s\"}", false },
	{ "{\"resultType\":\"input_required\",\"inputRequests\":null}", false },
	{ "{\"resultType\":\"complete\",\"inputRequests\":{\"a\":{}}}", false },
	{ "{\"resultType\":\"task\",\"inputRequests\":{\"a\":{}}}", false },
	{ "{\"inputRequests\":{\"a\":{}}}", false },
	{ "null", false },
};

static void a_response_that_asks_is_told_from_others(void **state)
{
	char text[256];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(asks_rows); i++) {
		(void)snprintf(text, sizeof(text), "{\"id\":1,\"result\":%s}", asks_rows[i].result);
		const struct mcp_message message = message_of(text);
		if (mcp_round_asks(&message) != asks_rows[i].asks)
			fail_msg("%s", text);
	}
}

#define SAMPLING "{\"method\":\"sampling/createMessage\",\"params\":{}}"
#define ELICITATION "{\"method\":\"elicitation/create\"}"

static const struct show_row {
	const char *text, *id, *state; /* NULL: absent */
	bool unsampled;
	const char *shown;
} show_rows[] = {
	{ "{ \"id\":1,\"result\":{\"a\":1e400}} ", NULL, NULL, false,
	  "{ \"id\":1,\"result\":{\"a\":1e400}} " },
	{ "{ \"result\":{\"id\":1},\"id\" : 1 }", "\"c\"", NULL, false,
	  "{ \"result\":{\"id\":1},\"id\" : \"c\" }" },
	{ "{\"id\":\"x\",\"error\":{\"code\":-32021}}", "0", NULL, false,
	  "{\"id\":0,\"error\":{\"code\":-32021}}" },
	{ "{\"id\":1,\"result\":{\"inputRequests\":{\"s\":" SAMPLING ",\"e\":" ELICITATION
	  "},\"requestState\":\"up\",\"x\":1}}",
	  NULL, "\"sealed\"", true,
	  "{\"id\":1,\"result\":{\"inputRequests\":{\"e\":" ELICITATION
	  "},\"requestState\":\"sealed\",\"x\":1}}" },
	{ "{\"id\":1,\"result\":{\"inputRequests\":{\"e\":" ELICITATION ",\"s\":" SAMPLING "}}}",
	  "5", "\"sealed\"", true,
	  "{\"id\":5,\"result\":{\"requestState\":\"sealed\",\"inputRequests\":{\"e\":" ELICITATION
	  "}}}" },
	{ "{\"id\":1,\"result\":{\"inputRequests\":{\"e\":" ELICITATION "}}}", NULL, "\"sealed\"",
	  true,
	  "{\"id\":1,\"result\":{\"requestState\":\"sealed\",\"inputRequests\":{\"e\":" ELICITATION
	  "}}}" },
};

static void a_client_sees_its_own_part(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(show_rows); i++) {
		const struct show_row *row = &show_rows[i];
		const struct mcp_message message = message_of(row->text);
		const struct mcp_shown shown = { .id = slice_str(row->id),
						 .unsampled = row->unsampled,
						 .state = slice_str(row->state) };
		assert_text(mcp_round_show(slice_str(row->text), &message, &shown, &arena),
			    row->shown);
	}
}

static void a_message_is_one_event(void **state)
{
	(void)state;
	assert_text(mcp_event_of(SLICE("{\"id\":1}"), &arena),
		    "event: message\ndata: {\"id\":1}\n\n");
	assert_text(mcp_event_of(SLICE("{\r\n \"id\":\n1}\n"), &arena),
		    "event: message\ndata: { \"id\":1}\n\n");
}

/* ---- memory ---- */

static bool makes_all(struct arena *into)
{
	static const struct mcp_round_rule rule = { .declared = SLICE_INIT("{}") };
	static const char text[] = CALL("{}");
	const struct mcp_message message = message_of(text);
	const struct mcp_answered answer = { SLICE("\"a\""), SLICE("{}") };
	const struct mcp_shown shown = { .id = SLICE("1") };
	const struct mcp_leg leg = { .text = slice_str(text), .message = &message, .rule = &rule };
	struct mcp_digest digest;

	return !slice_absent(mcp_leg_write(&leg, into)) &&
	       !slice_absent(mcp_answers_join(&answer, 1, into)) &&
	       !slice_absent(mcp_answers_merge(SLICE("{}"), SLICE("{\"a\":1}"), into)) &&
	       mcp_round_digest(&message, into, &digest) &&
	       !slice_absent(mcp_round_show(slice_str(text), &message, &shown, into)) &&
	       !slice_absent(mcp_event_of(slice_str(text), into));
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
		cmocka_unit_test(a_call_declares_what_the_gateway_answers),
		cmocka_unit_test(a_further_leg_has_the_rounds_answers_and_state),
		cmocka_unit_test(answers_are_one_object),
		cmocka_unit_test(the_gateways_answers_come_before_the_clients),
		cmocka_unit_test(responses_of_the_client_are_seen),
		cmocka_unit_test(a_call_is_known_by_what_it_asks_for),
		cmocka_unit_test(a_response_that_asks_is_told_from_others),
		cmocka_unit_test(a_client_sees_its_own_part),
		cmocka_unit_test(a_message_is_one_event),
		cmocka_unit_test(refused_memory_is_said),
	};
	return cmocka_run_group_tests_name("mcp_round_text", tests, set_up, tear_down);
}
