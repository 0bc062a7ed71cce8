/* A request and its session: what is known of it, what it costs, and what cancels it. */
#include "tests/unit/gateway/flow/flow_state_rig.h"

/* ---- sessions --------------------------------------------------------------------------------- */

static void without_session_tools_and_key_nobody_is_asked(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, ASK);

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(provider_says(b, 200, CLAUDE_SAYS), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_null(b->flow.state);
	release(b);
}

static void initialize_begins_a_session_before_it_is_answered(void **state)
{
	struct bench *b = *state;
	struct http_incoming in =
		incoming(KEY, SMALL("initialize", "{\"protocolVersion\":\"2025-06-18\"}"));

	assert_int_equal(start(b, &in), FLOW_SAVE);
	const struct state_save save = b->flow.state->save;
	assert_true(save.change == STATE_BEGINS && b->flow.state->saving == FLOW_SAVES_FIRST);
	assert_int_equal(save.revision, REVISION_2025_06_18);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	const char *id = field(b, "mcp-session-id");
	assert_non_null(id);
	assert_int_equal(strlen(id), SESSION_ID_HEX);
	assert_int_equal(strspn(id, "0123456789abcdef"), SESSION_ID_HEX);
	assert_null(strstr(id, b->call.ids.request_id));

	/* It is known by what its caller computes of the id. */
	char named[SESSION_ID_HEX + 1];
	(void)strcpy(named, id);
	in = incoming(KEY, ASK);
	in.headers[HTTP_SESSION_ID] = slice_str(named);
	assert_int_equal(start(b, &in), FLOW_LOAD);
	assert_true(state_key_eq(&b->flow.state->load.session, &save.session));
}

static void who_has_begun_too_many_sessions_begins_none(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, SMALL("initialize", "{}"));

	assert_int_equal(start(b, &in), FLOW_SAVE);
	b->flow.reservation.refusal =
		(struct limit_refusal){ .err = ERR_RATE_LIMITED, .wait_ns = 1500 * MSEC + 1 };
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 429);
	assert_string_equal(field(b, "retry-after"), "2");
	assert_null(field(b, "mcp-session-id"));
	assert_true(state_key_none(&b->flow.state->session_key));
}

static void whoever_begins_anew_may_still_name_the_old_session(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(SMALL("initialize", "{}"));

	assert_int_equal(start(b, &in), FLOW_SAVE);
}

static void a_session_that_is_not_known_is_404(void **state)
{
	static const struct {
		const char *name, *id;
		enum state_session is;
	} cases[] = {
		{ "unknown", SESSION, STATE_SESSION_UNKNOWN },
		{ "the store is away", SESSION, STATE_SESSION_UNSURE },
		{ "too short", "0123", STATE_SESSION_KNOWN },
		{ "no hex", "0123456789abcdef0123456789abcdeX", STATE_SESSION_KNOWN },
		{ "empty", "", STATE_SESSION_KNOWN },
	};
	static const char *const bodies[] = { ASK, SMALL("ping", "{}"),
					      NOTIFICATION("notifications/initialized", "{}") };
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cases) * COUNT_OF(bodies); i++) {
		struct http_incoming in = in_session(bodies[i % COUNT_OF(bodies)]);
		const size_t c = i / COUNT_OF(bodies);
		print_message("%s\n", cases[c].name);
		in.headers[HTTP_SESSION_ID] = slice_str(cases[c].id);
		enum flow_effect effect = start(b, &in);
		if (effect == FLOW_LOAD)
			effect = loaded(b, cases[c].is, REVISION_2025_11_25);
		assert_int_equal(effect, FLOW_ANSWER);
		assert_int_equal(b->call.answer.status, 404);
		assert_has(answer_text(b), "\"reason\":\"session_unknown\"");
	}
}

static void a_session_fixes_the_revision(void **state)
{
	static const struct {
		const char *header;
		enum revision session, becomes;
		enum flow_effect effect;
	} cases[] = {
		{ NULL, REVISION_2025_06_18, REVISION_2025_06_18, FLOW_JOIN },
		{ "2025-06-18", REVISION_2025_06_18, REVISION_2025_06_18, FLOW_JOIN },
		{ "2025-11-25", REVISION_2025_06_18, REVISION_2025_11_25, FLOW_ANSWER },
		{ NULL, REVISION_SEP_1577_DRAFT, REVISION_SEP_1577_DRAFT, FLOW_JOIN },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct http_incoming in = in_session(MESSAGE(
			"1",
			",\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]"));
		if (cases[i].header != NULL)
			in.headers[HTTP_PROTOCOL_VERSION] = slice_str(cases[i].header);
		assert_int_equal(start(b, &in), FLOW_LOAD);
		assert_int_equal(loaded(b, STATE_SESSION_KNOWN, cases[i].session), cases[i].effect);
		assert_int_equal(b->call.revision, cases[i].becomes);
		assert_int_equal(b->flow.ask->request->no_parallel,
				 cases[i].becomes == REVISION_SEP_1577_DRAFT);
		if (cases[i].effect != FLOW_ANSWER)
			continue;
		assert_int_equal(b->call.answer.status, 400);
		assert_has(answer_text(b), "\"reason\":\"revision_unsupported\"");
	}
}

static void the_revision_without_sessions_ignores_them(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(ASK);

	in.headers[HTTP_PROTOCOL_VERSION] = SLICE("2026-07-28");
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	in.method = SLICE("DELETE");
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 404);
	in = incoming(KEY, SMALL("initialize", "{}"));
	in.headers[HTTP_PROTOCOL_VERSION] = SLICE("2026-07-28");
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_null(field(b, "mcp-session-id"));
}

static void delete_ends_a_session_that_there_is(void **state)
{
	static const struct {
		const char *name;
		bool ended, away;
		int status;
	} cases[] = {
		{ "there was one", true, false, 204 },
		{ "there was none", false, false, 404 },
		{ "the store is away", false, true, 503 },
		{ "the store is away, and it was this process's", true, true, 204 },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct http_incoming in = in_session("");
		in.method = SLICE("DELETE");
		print_message("%s\n", cases[i].name);
		assert_int_equal(start(b, &in), FLOW_SAVE);
		assert_true(b->flow.state->save.change == STATE_ENDS &&
			    b->flow.state->saving == FLOW_SAVES_FIRST);
		b->flow.state->save.ended = cases[i].ended;
		b->flow.state->save.away = cases[i].away;
		assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
		assert_int_equal(b->call.answer.status, cases[i].status);
	}
}

static void a_session_counts_what_its_requests_cost(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(ASK);

	goes_to_its_provider(b, &in);
	assert_int_equal(provider_says(b, 200, CLAUDE_SAYS), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	const struct flow_state *mine = b->flow.state;
	assert_int_equal(mine->saving, FLOW_SAVES);
	assert_true(state_key_eq(&mine->save.session, &mine->load.session));
	assert_int_equal(mine->save.requests, 1);
	assert_int_equal(mine->save.tokens, 14);
	assert_int_equal(mine->save.usd, 10 * 3000 + 4 * 15000);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 200);
	release(b);
}

static void a_caller_that_leaves_is_counted_too(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(ASK);

	goes_to_its_provider(b, &in);
	b->flow.call.bytes_sent = true;
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	assert_int_equal(b->flow.state->saving, FLOW_SAVES);
	assert_int_equal(b->flow.state->save.usd, b->flow.reservation.ask.usd);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_END);
	release(b);
}

static void nobody_needs_the_snapshot_while_others_are_asked(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(ASK);

	assert_int_equal(start(b, &in), FLOW_LOAD);
	bench_use(b, load_config()); /* the sanitizer watches what is read of the old one */
	assert_int_equal(known(b), FLOW_JOIN);
	bench_use(b, load_config());
	assert_int_equal(joined(b, IDEMPOTENCY_LEADS), FLOW_RESERVE);
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
}

/* ---- cancelled -------------------------------------------------------------------------------- */

static void cancelled_names_a_request_of_its_session(void **state)
{
	static const struct {
		const char *body;
		bool cancels;
	} cases[] = {
		{ NOTIFICATION("notifications/cancelled",
			       "{\"requestId\":\"a-7\",\"reason\":\"x\"}"),
		  true },
		{ NOTIFICATION("notifications/cancelled", "{}"), false },
		{ NOTIFICATION("notifications/cancelled", "[]"), false },
		{ "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}", false },
	};
	struct bench *b = *state;
	struct http_incoming in = in_session(ASK);

	assert_int_equal(start(b, &in), FLOW_LOAD);
	assert_int_equal(known(b), FLOW_JOIN);
	const struct state_key key = b->flow.state->cancel.key;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		in = in_session(cases[i].body);
		assert_int_equal(start(b, &in), FLOW_LOAD);
		assert_int_equal(known(b), FLOW_ANSWER);
		assert_int_equal(b->call.answer.status, 202);
		const struct slice id = rpc_cancelled_id(&b->call, b->work);
		assert_true(b->call.in_session);
		assert_int_equal(!slice_absent(id), cases[i].cancels);
		if (!cases[i].cancels)
			continue;
		const struct state_key named =
			flow_cancel_key(&b->call.caller, b->call.ask.session, id);
		assert_true(state_key_eq(&named, &key));
	}
	in = incoming(KEY, cases[0].body); /* of no session */
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 202);
	assert_null(b->flow.state);
}

/* Headers that any other request is refused for. */
static void cancelled_is_taken_whatever_its_headers_say(void **state)
{
	static const struct {
		enum http_header name;
		const char *value;
	} headers[] = {
		{ HTTP_PROTOCOL_VERSION, "2025-06-18" }, /* not the session's */
		{ HTTP_PROTOCOL_VERSION, "2030-01-01" },
		{ HTTP_PROTOCOL_VERSION, "" },
		{ HTTP_TIMEOUT, "soon" },
		{ HTTP_IDEMPOTENCY_KEY, "two words" },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(headers); i++) {
		struct http_incoming in = in_session(
			NOTIFICATION("notifications/cancelled", "{\"requestId\":\"a-7\"}"));
		in.headers[headers[i].name] = slice_str(headers[i].value);
		if (start(b, &in) != FLOW_LOAD || known(b) != FLOW_ANSWER)
			fail_msg("%s: %s", headers[i].value, answer_text(b));
		assert_int_equal(b->call.answer.status, 202);
		assert_true(b->call.in_session);
		in.body = SLICE(NOTIFICATION("notifications/initialized", "{}"));
		if (start(b, &in) == FLOW_LOAD)
			assert_int_equal(known(b), FLOW_ANSWER);
		assert_int_equal(b->call.answer.status, 400);
	}
}

static void what_is_cancelled_ends_with_202(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(ASK);
	struct log_request line;
	struct metrics_request sample;

	goes_to_its_provider(b, &in);
	b->flow.call.bytes_sent = true;
	assert_int_equal(run(b, FLOW_CANCELLED), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 202);
	assert_int_equal(b->call.answer.body.total, 0);
	flow_report(&b->flow, b->now, &line, &sample);
	rpc_report(&b->call, &line);
	assert_int_equal(line.status, 499);
	assert_int_equal(sample.outcome, ERR_CANCELLED);
	release(b);
}

static void what_is_cancelled_once_it_is_answered_is_answered(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(ASK);
	struct log_request line;
	struct metrics_request sample;

	goes_to_its_provider(b, &in);
	assert_int_equal(provider_says(b, 200, CLAUDE_SAYS), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	assert_int_equal(run(b, FLOW_CANCELLED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 200);
	flow_report(&b->flow, b->now, &line, &sample);
	rpc_report(&b->call, &line);
	assert_int_equal(line.status, 200);
	assert_int_equal(sample.outcome, ERR_OK);
	release(b);
}

static void a_stream_that_is_cancelled_ends_without_an_answer(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(MESSAGE("1", ",\"_meta\":{\"progressToken\":1}"));

	in.headers[HTTP_ACCEPT] = SLICE("text/event-stream");
	goes_to_its_provider(b, &in);
	(void)bench_notify(b);
	assert_int_equal(run(b, FLOW_CANCELLED), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	assert_string_equal(answer_text(b), ": cancelled\n\n");
	release(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WALK(without_session_tools_and_key_nobody_is_asked),
		WALK(initialize_begins_a_session_before_it_is_answered),
		WALK(who_has_begun_too_many_sessions_begins_none),
		WALK(whoever_begins_anew_may_still_name_the_old_session),
		WALK(a_session_that_is_not_known_is_404),
		WALK(a_session_fixes_the_revision),
		WALK(the_revision_without_sessions_ignores_them),
		WALK(delete_ends_a_session_that_there_is),
		WALK(a_session_counts_what_its_requests_cost),
		WALK(a_caller_that_leaves_is_counted_too),
		WALK(nobody_needs_the_snapshot_while_others_are_asked),
		WALK(cancelled_names_a_request_of_its_session),
		WALK(cancelled_is_taken_whatever_its_headers_say),
		WALK(what_is_cancelled_ends_with_202),
		WALK(what_is_cancelled_once_it_is_answered_is_answered),
		WALK(a_stream_that_is_cancelled_ends_without_an_answer),
	};
	return cmocka_run_group_tests_name("flow_state", tests, NULL, NULL);
}
