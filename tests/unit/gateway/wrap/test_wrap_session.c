/* What goes on, what is answered, and what is changed of it, in both eras. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/wrap_rig.h"

#define META                                    \
	"\"_meta\":{\"io.modelcontextprotocol/" \
	"protocolVersion\":\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":"
#define ASK(key) \
	"\"" key "\":{\"method\":\"sampling/createMessage\",\"params\":{\"p\":\"" key "\"}}"
#define ASKS(id, requests, state)                                                               \
	"{\"id\":" id                                                                           \
	",\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{" requests "}" state \
	"}}\n"

#define CALL(id, capabilities, more)                                               \
	"{\"id\":" id ",\"method\":\"tools/call\",\"params\":{\"name\":\"t\"" more \
	"," META capabilities "}}}\n"

static void client(struct wrap_rig *rig, const char *line)
{
	wrap_session_from_client(rig->session, slice_str(line), 1 * SEC);
}

static void server(struct wrap_rig *rig, const char *line)
{
	wrap_session_from_server(rig->session, slice_str(line), 1 * SEC);
}

/* What has come since the last look. */
static void assert_seen(struct wrap_text *text, const char *expected)
{
	if (!slice_eq(wrap_text_slice(text), slice_str(expected)))
		fail_msg("seen: %.*s\nexpected: %s", (int)text->len, text->at, expected);
	text->len = 0;
}

static void assert_said(const struct wrap_text *text, const char *part)
{
	if (text->len == 0 || memmem(text->at, text->len, part, strlen(part)) == NULL)
		fail_msg("seen: %.*s\nwithout: %s", (int)text->len, text->at, part);
}

static void assert_quiet(struct wrap_rig *rig)
{
	assert_seen(&rig->client, "");
	assert_seen(&rig->server, "");
	assert_seen(&rig->asks, "");
	assert_seen(&rig->cancels, "");
}

static const struct {
	const char *name;
	enum wrap_mode mode;
	const char *version, *before, *after;
} declarations[] = {
	{ "none", WRAP_BACKFILL, "2025-11-25", "{}", "{\"sampling\":{\"tools\":{}}}" },
	{ "an older revision", WRAP_BACKFILL, "2025-06-18", "{}", "{\"sampling\":{}}" },
	{ "a newer one", WRAP_BACKFILL, "2026-07-28", "{}", "{\"sampling\":{\"tools\":{}}}" },
	{ "others", WRAP_BACKFILL, "2025-03-26", "{ \"roots\":{}}",
	  "{\"sampling\":{}, \"roots\":{}}" },
	{ "null", WRAP_BACKFILL, "2025-11-25", "{\"sampling\":null}",
	  "{\"sampling\":{\"tools\":{}}}" },
	{ "its own", WRAP_BACKFILL, "2025-11-25", "{\"sampling\":{}}", "{\"sampling\":{}}" },
	{ "forced", WRAP_FORCE, "2025-11-25", "{\"sampling\":{\"context\":{}}}",
	  "{\"sampling\":{\"tools\":{}}}" },
	{ "refused", WRAP_REFUSE, "2025-11-25", "{\"a\":1, \"sampling\":{} ,\"b\":2}",
	  "{\"a\":1,\"b\":2}" },
	{ "refused twice", WRAP_REFUSE, "2025-11-25", "{\"sampling\":{},\"sampling\":{}}", "{}" },
	{ "refused, and none", WRAP_REFUSE, "2025-11-25", "{ }", "{ }" },
	{ "relayed", WRAP_RELAY, "2025-11-25", "{}", "{}" },
	{ "no object", WRAP_BACKFILL, "2025-11-25", "7", "7" },
};

static void print_hello(struct wrap_text *out, const char *version, const char *capabilities)
{
	wrap_text_print(
		out,
		"{\"id\":1, \"method\":\"initialize\",\"params\":{\"protocolVersion\":\"%s\","
		"\"capabilities\":%s,\"x\":1e400}}\r\n",
		version, capabilities);
	*wrap_text_room(out, 1) = '\0';
}

static void initialize_declares_what_the_mode_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(declarations); i++) {
		struct wrap_rig rig = { .mode = declarations[i].mode };
		struct wrap_text before = { 0 }, after = { 0 };
		print_hello(&before, declarations[i].version, declarations[i].before);
		print_hello(&after, declarations[i].version, declarations[i].after);
		wrap_rig_init(&rig);
		client(&rig, before.at);
		print_message("%s\n", declarations[i].name);
		assert_seen(&rig.server, after.at);
		wrap_rig_fini(&rig);
		wrap_text_free(&before);
		wrap_text_free(&after);
	}
}

static void each_sampling_has_one_answer(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	server(&rig,
	       "{\"method\":\"sampling/createMessage\",\"id\":\"a\\/\",\"params\":{\"x\":1}}\n");
	server(&rig, "{\"method\":\"sampling/"
		     "createMessage\",\"id\":0,\"params\":{\"_meta\":{\"progressToken\":0}}}\n");
	assert_seen(&rig.asks,
		    "1 2025-11-25 0 {\"x\":1}\n2 2025-11-25 1 {\"_meta\":{\"progressToken\":0}}\n");
	wrap_session_progress(rig.session, 2, SLICE("{\"p\":\n1}"));
	assert_seen(&rig.server, "{\"p\": 1}\n");
	wrap_rig_answer(&rig, 2, false, "{\"code\":402}", 0);
	wrap_rig_answer(&rig, 1, true, "{\n}", 0);
	wrap_rig_answer(&rig, 1, true, "{}", 0);
	assert_seen(&rig.server, "{\"jsonrpc\":\"2.0\",\"id\":0,\"error\":{\"code\":402}}\n"
				 "{\"jsonrpc\":\"2.0\",\"id\":\"a\\/\",\"result\":{ }}\n");
	assert_quiet(&rig);
	wrap_rig_fini(&rig);
}

static void the_revision_is_that_of_the_result(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, "{\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-"
		     "11-25\",\"capabilities\":{}}}\n");
	server(&rig, "{\"id\":1.0,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n");
	assert_seen(&rig.client, "{\"id\":1.0,\"result\":{\"protocolVersion\":\"2025-03-26\"}}\n");
	server(&rig, "{\"method\":\"sampling/createMessage\",\"id\":1,\"params\":{}}\n");
	assert_seen(&rig.asks, "1 2025-03-26 0 {}\n");
	wrap_rig_fini(&rig);
}

static void a_cancelled_sampling_has_no_answer(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	server(&rig, "{\"method\":\"sampling/createMessage\",\"id\":5,\"params\":{}}\n");
	rig.asks.len = 0;
	server(&rig, "[{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":5}}]\n");
	assert_seen(&rig.cancels, "1\n");
	wrap_rig_answer(&rig, 1, true, "{}", 0);
	assert_quiet(&rig);
	wrap_rig_fini(&rig);
}

static void nothing_is_asked_behind_the_end(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	server(&rig, "{\"method\":\"sampling/createMessage\",\"id\":5,\"params\":{}}\n");
	rig.asks.len = 0;
	wrap_session_end(rig.session);
	assert_seen(&rig.cancels, "1\n");
	server(&rig, "{\"method\":\"sampling/createMessage\",\"id\":6,\"params\":{}}\n");
	assert_quiet(&rig);
	wrap_rig_fini(&rig);
}

static void requests_without_an_answer_are_forgotten_in_time(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };
	char line[64];

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("\"m\"", "{}", ""));
	for (int i = 0; i < 2 * WRAP_CALLS_MAX; i++) {
		(void)snprintf(line, sizeof(line), "{\"id\":%d,\"method\":\"ping\"}\n", i);
		client(&rig, line);
	}
	server(&rig, ASKS("\"m\"", ASK("a"), ""));
	assert_seen(&rig.asks, "1 2026-07-28 0 {\"p\":\"a\"}\n");
	wrap_rig_fini(&rig);
}

static void calls_of_the_new_era_without_an_answer_are_forgotten_as_well(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };
	char line[512];

	(void)state;
	wrap_rig_init(&rig);
	for (int i = 0; i <= 2 * WRAP_CALLS_MAX; i++) {
		rig.server.len = 0;
		(void)snprintf(line, sizeof(line), CALL("%d", "{}", ""), i);
		client(&rig, line);
		assert_int_not_equal(rig.server.len, 0);
	}
	assert_seen(&rig.client, "");
	(void)snprintf(line, sizeof(line), ASKS("%d", ASK("a"), ""), 2 * WRAP_CALLS_MAX);
	server(&rig, line);
	assert_seen(&rig.asks, "1 2026-07-28 0 {\"p\":\"a\"}\n");
	wrap_rig_fini(&rig);
}

static void a_client_that_gives_up_one_of_two_calls_ends_no_sampling(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig,
	       "[{\"id\":1,\"method\":\"tools/call\"},{\"id\":2,\"method\":\"tools/call\"}]\n");
	server(&rig, "{\"method\":\"sampling/createMessage\",\"id\":5,\"params\":{}}\n");
	rig.server.len = rig.asks.len = 0;
	client(&rig, "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
	assert_seen(&rig.server,
		    "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
	assert_quiet(&rig);
	client(&rig, "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}\n");
	assert_seen(&rig.cancels, "1\n");
	wrap_rig_fini(&rig);
}

/* ---- 2026-07-28 ---- */

static void a_round_is_answered_inside(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("7", "{}", ""));
	assert_seen(&rig.server, CALL("7", "{\"sampling\":{\"tools\":{}}}", ""));
	server(&rig, ASKS("7", ASK("a") "," ASK("b"), ",\"requestState\":\"s\\u0031\""));
	assert_seen(&rig.asks, "1 2026-07-28 0 {\"p\":\"a\"}\n2 2026-07-28 0 {\"p\":\"b\"}\n");
	wrap_rig_answer(&rig, 2, true, "{\"r\":2}", 0);
	assert_quiet(&rig);
	wrap_rig_answer(&rig, 1, true, "{\"r\":1}", 0);
	assert_seen(&rig.server, "{\"id\":\"sluice-wrap-n-1\",\"method\":\"tools/"
				 "call\",\"params\":{\"name\":\"t\"," META
				 "{\"sampling\":{\"tools\":{}}}},\"inputResponses\":{\"a\":{\"r\":"
				 "1},\"b\":{\"r\":2}},"
				 "\"requestState\":\"s\\u0031\"}}\n");
	server(&rig, ASKS("\"sluice-wrap-n-1\"", ASK("a"), ""));
	rig.asks.len = 0;
	wrap_rig_answer(&rig, 3, true, "{}", 0);
	assert_seen(&rig.server,
		    "{\"id\":\"sluice-wrap-n-2\",\"method\":\"tools/"
		    "call\",\"params\":{\"name\":\"t\"," META
		    "{\"sampling\":{\"tools\":{}}}},\"inputResponses\":{\"a\":{}}}}\n");
	server(&rig, "{\"id\":\"sluice-wrap-n-2\",\"result\":{\"resultType\":\"complete\"} }\n");
	assert_seen(&rig.client, "{\"id\":7,\"result\":{\"resultType\":\"complete\"} }\n");
	server(&rig, "{\"id\":\"sluice-wrap-n-2\",\"result\":{}}\n");
	assert_quiet(&rig);
	wrap_rig_fini(&rig);
}

static void a_sampling_that_fails_ends_the_call(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("\"x\"", "{}", ""));
	server(&rig, ASKS("\"x\"", ASK("a") "," ASK("b"), ""));
	rig.server.len = rig.asks.len = 0;
	wrap_rig_answer(&rig, 1, false, "{\"code\":402}", 0);
	assert_seen(&rig.client, "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":402}}\n");
	assert_seen(&rig.cancels, "2\n");
	wrap_rig_answer(&rig, 2, true, "{}", 0);
	assert_quiet(&rig);
	wrap_rig_fini(&rig);
}

static void there_are_ten_rounds_at_most(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };
	char line[256];

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("1", "{}", ""));
	server(&rig, ASKS("1", ASK("a"), ""));
	for (int i = 1; i <= 10; i++) {
		assert_int_equal(rig.key_count, 1);
		wrap_rig_answer(&rig, rig.keys[0], true, "{}", 0);
		(void)snprintf(line, sizeof(line), ASKS("\"sluice-wrap-n-%d\"", ASK("a"), ""), i);
		server(&rig, line);
	}
	assert_int_equal(rig.key_count, 0);
	assert_said(&rig.client, "\"id\":1,\"error\":{\"code\":-32603");
	wrap_rig_fini(&rig);
}

static void rounds_have_one_deadline(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("1", "{}", ""));
	server(&rig, ASKS("1", ASK("a"), ""));
	wrap_rig_answer(&rig, 1, true, "{}", 2 * SEC);
	wrap_session_from_server(rig.session, slice_str(ASKS("\"sluice-wrap-n-1\"", ASK("a"), "")),
				 WRAP_ROUNDS_TIME + 2 * SEC);
	assert_int_equal(rig.key_count, 0);
	assert_said(&rig.client, "\"id\":1,\"error\":{\"code\":-32001");
	wrap_rig_fini(&rig);
}

#define ELICIT "\"e\": {\"method\":\"elicitation/create\",\"params\":{}}"

static void a_mixed_round_leaves_the_client_its_part(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("1", "{\"elicitation\":{}}", ""));
	server(&rig, ASKS("1", ASK("a") "," ELICIT, ",\"requestState\":\"s\""));
	rig.server.len = rig.asks.len = 0;
	wrap_rig_answer(&rig, 1, true, "{\"r\":1}", 0);
	assert_seen(&rig.client, ASKS("1", ELICIT, ",\"requestState\":\"sluice-wrap-n-1\""));
	for (int i = 0; i < 2; i++) { /* the second is a copy */
		client(&rig, CALL("2", "{}",
				  ",\"inputResponses\":{\"e\":{\"r\":2} "
				  "},\"requestState\":\"sluice-wrap-n-1\""));
		assert_seen(&rig.server,
			    "{\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"," META
			    "{\"sampling\":{\"tools\":{}}}},\"inputResponses\":{\"a\":{\"r\":1},"
			    "\"e\":{\"r\":2} },"
			    "\"requestState\":\"s\"}}\n");
	}
	assert_quiet(&rig);
	client(&rig,
	       "{\"id\":3,\"method\":\"tools/"
	       "call\",\"params\":{\"name\":\"other\",\"requestState\":\"sluice-wrap-n-1\"," META
	       "{}}}}\n");
	assert_said(&rig.client, "\"id\":3,\"error\":{\"code\":-32602");
	assert_seen(&rig.server, "");
	wrap_rig_fini(&rig);
}

static void a_mixed_round_without_a_state_gets_one(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_FORCE };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("1", "{}", ""));
	server(&rig, ASKS("1", ELICIT "," ASK("a"), ""));
	rig.server.len = rig.asks.len = 0;
	wrap_rig_answer(&rig, 1, true, "{}", 0);
	assert_seen(&rig.client, "{\"id\":1,\"result\":{\"requestState\":\"sluice-wrap-n-1\","
				 "\"resultType\":\"input_required\","
				 "\"inputRequests\":{" ELICIT "}}}\n");
	client(&rig, CALL("2", "{}", ",\"requestState\":\"sluice-wrap-n-1\""));
	assert_seen(&rig.server,
		    "{\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"," META
		    "{\"sampling\":{\"tools\":{}}}},\"inputResponses\":{\"a\":{}}}}\n");
	wrap_rig_fini(&rig);
}

static void a_call_that_is_given_up_is_given_up_by_the_id_that_the_server_knows(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("1", "{}", ""));
	server(&rig, ASKS("1", ASK("a"), ""));
	wrap_rig_answer(&rig, 1, true, "{}", 0);
	rig.server.len = rig.asks.len = 0;
	client(&rig, "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
	assert_seen(&rig.server, "{\"method\":\"notifications/"
				 "cancelled\",\"params\":{\"requestId\":\"sluice-wrap-n-1\"}}\n");
	client(&rig, CALL("2", "{}", ""));
	server(&rig, ASKS("2", ASK("a"), ""));
	rig.server.len = rig.asks.len = 0;
	client(&rig, "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":2}}\n");
	assert_seen(&rig.cancels, "2\n");
	assert_quiet(&rig); /* the server waits for nothing */
	wrap_rig_fini(&rig);
}

static void a_refused_round_is_an_error_and_others_pass(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_REFUSE };

	(void)state;
	wrap_rig_init(&rig);
	client(&rig, CALL("1", "{\"sampling\":{}}", ""));
	assert_seen(&rig.server, CALL("1", "{}", ""));
	server(&rig, ASKS("1", ASK("a"), ""));
	assert_said(&rig.client, "\"id\":1,\"error\":{\"code\":-1");
	rig.client.len = 0;
	client(&rig, CALL("2", "{}", ""));
	server(&rig, ASKS("2", ELICIT, ""));
	assert_seen(&rig.client, ASKS("2", ELICIT, ""));
	wrap_rig_fini(&rig);
}

static void what_is_not_asked_for_input_is_not_changed(void **state)
{
	static const char *const lines[] = {
		CALL("1", "{\"sampling\":{}}", ""),
		CALL("1", "null", ""),
		"{\"id\":1,\"method\":\"tools/list\",\"params\":{" META "{}}}}\n",
		"{\"id\":1,\"method\":\"tools/"
		"call\",\"params\":{\"_meta\":{\"io.modelcontextprotocol/"
		"protocolVersion\":\"2027-01-01\","
		"\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n",
		"{\"id\":1,\"method\":\"tools/call\",\"params\":[]}\n",
	};
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
	for (size_t i = 0; i < COUNT_OF(lines); i++) {
		client(&rig, lines[i]);
		assert_seen(&rig.server, lines[i]);
		server(&rig, ASKS("1", ASK("a"), ""));
		assert_seen(&rig.client, ASKS("1", ASK("a"), ""));
	}
	assert_quiet(&rig);
	wrap_rig_fini(&rig);
}

static void progress_of_a_later_round_never_falls(void **state)
{
	struct wrap_rig rig = { .mode = WRAP_BACKFILL };

	(void)state;
	wrap_rig_init(&rig);
#define PROGRESS(n)                    \
	"{\"method\":\"notifications/" \
	"progress\",\"params\":{\"progressToken\":\"t\",\"progress\":" n "}}\n"
	client(&rig,
	       "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{\"progressToken\":\"t\","
	       "\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","
	       "\"io.modelcontextprotocol/clientCapabilities\":{}}}}\n");
	server(&rig, PROGRESS("2"));
	server(&rig, ASKS("1", ASK("a"), ""));
	wrap_rig_answer(&rig, 1, true, "{}", 0);
	server(&rig, PROGRESS("1"));
	server(&rig, PROGRESS("2"));
	server(&rig, PROGRESS("3"));
	assert_seen(&rig.client, PROGRESS("2") PROGRESS("3"));
	wrap_rig_fini(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(initialize_declares_what_the_mode_says),
		cmocka_unit_test(each_sampling_has_one_answer),
		cmocka_unit_test(the_revision_is_that_of_the_result),
		cmocka_unit_test(a_cancelled_sampling_has_no_answer),
		cmocka_unit_test(nothing_is_asked_behind_the_end),
		cmocka_unit_test(requests_without_an_answer_are_forgotten_in_time),
		cmocka_unit_test(calls_of_the_new_era_without_an_answer_are_forgotten_as_well),
		cmocka_unit_test(a_client_that_gives_up_one_of_two_calls_ends_no_sampling),
		cmocka_unit_test(a_round_is_answered_inside),
		cmocka_unit_test(a_sampling_that_fails_ends_the_call),
		cmocka_unit_test(there_are_ten_rounds_at_most),
		cmocka_unit_test(rounds_have_one_deadline),
		cmocka_unit_test(a_mixed_round_leaves_the_client_its_part),
		cmocka_unit_test(a_mixed_round_without_a_state_gets_one),
		cmocka_unit_test(
			a_call_that_is_given_up_is_given_up_by_the_id_that_the_server_knows),
		cmocka_unit_test(a_refused_round_is_an_error_and_others_pass),
		cmocka_unit_test(what_is_not_asked_for_input_is_not_changed),
		cmocka_unit_test(progress_of_a_later_round_never_falls),
	};
	return cmocka_run_group_tests_name("wrap_session", tests, NULL, NULL);
}
