/* Copies of a request, by its key or by its id in a session: one of them is made, and all are answered. */
#include "tests/unit/gateway/flow/flow_state_rig.h"

static struct idempotency_call join_as(struct bench *b, const char *key, const char *body)
{
	struct http_incoming in = incoming(KEY, body);

	if (key != NULL)
		in.headers[HTTP_IDEMPOTENCY_KEY] = slice_str(key);
	else
		in.headers[HTTP_SESSION_ID] = SLICE(SESSION);
	enum flow_effect effect = start(b, &in);
	if (key == NULL) {
		assert_int_equal(effect, FLOW_LOAD);
		effect = known(b);
	}
	assert_int_equal(effect, FLOW_JOIN);
	return b->flow.state->copy;
}

static void a_request_is_the_same_by_its_key_and_what_it_asks(void **state)
{
	static const struct {
		const char *name, *key, *body, *other_key, *other_body;
		bool same_key, same_body;
	} cases[] = {
		{ "again", "k", ASK, "k", ASK, true, true },
		{ "under another id", "k", ASK, "k", MESSAGE("2", ""), true, true },
		{ "with a progress token", "k", ASK, "k",
		  MESSAGE("2", ",\"_meta\":{\"progressToken\":7}"), true, true },
		{ "with another progress token", "k",
		  MESSAGE("2", ",\"_meta\":{\"progressToken\":\"a\",\"x\":1}"), "k",
		  MESSAGE("2", ",\"_meta\":{\"progressToken\":7,\"x\":1}"), true, true },
		{ "with something else in _meta", "k", ASK, "k",
		  MESSAGE("2", ",\"_meta\":{\"sluice/exchange\":true}"), true, false },
		{ "another body", "k", ASK, "k", MESSAGE("2", ",\"temperature\":0.5"), true,
		  false },
		{ "another key", "k", ASK, "l", ASK, false, true },
		{ "in a session, again", NULL, ASK, NULL, ASK, true, true },
		{ "in a session, under another id", NULL, ASK, NULL, MESSAGE("2", ""), false,
		  true },
		{ "a key that looks like the id", NULL, MESSAGE("7", ""), "7", MESSAGE("7", ""),
		  false, true },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct idempotency_call one = join_as(b, cases[i].key, cases[i].body);
		const struct idempotency_call two =
			join_as(b, cases[i].other_key, cases[i].other_body);
		print_message("%s\n", cases[i].name);
		assert_int_equal(state_key_eq(&one.key, &two.key), cases[i].same_key);
		assert_int_equal(memcmp(one.body, two.body, sizeof(one.body)) == 0,
				 cases[i].same_body);
	}
}

/* Gateways of two versions share the records while an upgrade rolls. */
static void what_a_request_asks_has_the_digest_of_earlier_versions(void **state)
{
	const struct slice asked = SLICE("2025-11-25messages:[{\"role\":\"user\",\"content\":{"
					 "\"type\":\"text\",\"text\":\"Hi\"}}],"
					 "maxTokens:50,");
	uint8_t digest[SHA256_BYTES];

	const struct idempotency_call copy = join_as(*state, "k", ASK);
	sha256(asked, digest);
	assert_memory_equal(copy.body, digest, sizeof(digest));
}

static void what_became_of_the_first_decides(void **state)
{
	static const struct {
		enum idempotency_verdict verdict;
		int status;
		const char *reason;
	} cases[] = {
		{ IDEMPOTENCY_DONE, 409, "duplicate_done" },
		{ IDEMPOTENCY_CONFLICT, 409, "duplicate_conflict" },
		{ IDEMPOTENCY_ELSEWHERE, 409, "duplicate_in_flight" },
		{ IDEMPOTENCY_FULL, 503, "overloaded" },
		{ IDEMPOTENCY_CROWDED, 429, "concurrency" },
		{ IDEMPOTENCY_WAITS, 504, "deadline" },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		char reason[64];
		(void)join_as(b, "k", ASK);
		assert_int_equal(joined(b, cases[i].verdict), FLOW_ANSWER);
		assert_int_equal(b->call.answer.status, cases[i].status);
		(void)snprintf(reason, sizeof(reason), "\"reason\":\"%s\"", cases[i].reason);
		assert_has(answer_text(b), reason);
	}
}

/* What the first is answered with under its id, the others get under theirs. */
static void a_copy_is_answered_like_the_first_but_for_the_id(void **state)
{
	static char member[4096];
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE("1", ""));

	in.headers[HTTP_IDEMPOTENCY_KEY] = SLICE("k");
	assert_int_equal(start(b, &in), FLOW_JOIN);
	b->flow.state->copy.idempotency = (void *)b; /* as if it was in */
	b->flow.state->copy.leads = true;
	assert_int_equal(joined(b, IDEMPOTENCY_LEADS), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(provider_says(b, 200, CLAUDE_SAYS), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	release(b);
	b->call.answer.status = 0; /* as before it was written */
	struct idempotency_answer end = { .member = rpc_keep(&b->call, &b->flow.out),
					  .retry_after_s = -1 };
	assert_false(slice_absent(end.member));
	(void)memcpy(member, end.member.at, end.member.len);
	end.member.at = member;
	char *first = strdup(strstr(answer_text(b), ",\"result\":"));

	(void)join_as(b, "k", MESSAGE("\"two\"", ""));
	b->flow.state->copy.answer = end;
	assert_int_equal(joined(b, IDEMPOTENCY_ANSWERED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 200);
	assert_has(answer_text(b), "{\"jsonrpc\":\"2.0\",\"id\":\"two\",\"result\":{");
	assert_string_equal(strstr(answer_text(b), ",\"result\":"), first);
	free(first);
	assert_int_equal(b->flow.totals.usd, 0);
}

static void a_copy_gets_the_first_ones_error(void **state)
{
	struct bench *b = *state;
	const char *member =
		"\"error\":{\"code\":429,\"message\":\"m\",\"data\":{\"reason\":\"rate_limited\"}}";

	(void)join_as(b, "k", ASK);
	b->flow.state->copy.answer = (struct idempotency_answer){ .err = ERR_RATE_LIMITED,
								  .member = slice_str(member),
								  .retry_after_s = 3 };
	assert_int_equal(joined(b, IDEMPOTENCY_ANSWERED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 429);
	assert_string_equal(field(b, "retry-after"), "3");
	assert_int_equal(b->flow.end.err, ERR_RATE_LIMITED);
	assert_has(answer_text(b), "{\"jsonrpc\":\"2.0\",\"id\":\"a-7\",\"error\":{\"code\":429");

	(void)join_as(b, "k", ASK); /* there was no memory to hand it on */
	b->flow.state->copy.answer =
		(struct idempotency_answer){ .err = ERR_OK, .retry_after_s = -1 };
	assert_int_equal(joined(b, IDEMPOTENCY_ANSWERED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 503);
}

/* The one before it may have changed what is known. */
static void a_copy_that_leads_after_waiting_asks_once_more_what_is_known(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = in_session(ASK);

	assert_int_equal(start(b, &in), FLOW_LOAD);
	assert_int_equal(known(b), FLOW_JOIN);
	b->flow.state->copy.waited = true;
	assert_int_equal(joined(b, IDEMPOTENCY_LEADS), FLOW_LOAD);
	bench_use(b, load_config());
	assert_int_equal(known(b), FLOW_RESERVE); /* and not twice */
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);

	assert_int_equal(start(b, &in), FLOW_LOAD);
	assert_int_equal(known(b), FLOW_JOIN);
	b->flow.state->copy.waited = true;
	assert_int_equal(joined(b, IDEMPOTENCY_LEADS), FLOW_LOAD);
	assert_int_equal(loaded(b, STATE_SESSION_UNKNOWN, REVISION_2025_11_25), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 404);

	in = incoming(KEY, MESSAGE("1", "")); /* nothing is known of it: nothing to ask */
	in.headers[HTTP_IDEMPOTENCY_KEY] = SLICE("k");
	assert_int_equal(start(b, &in), FLOW_JOIN);
	b->flow.state->copy.waited = true;
	assert_int_equal(joined(b, IDEMPOTENCY_LEADS), FLOW_RESERVE);
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
}

/* Copies of one moment would each be made for the instant that is left. */
static void who_follows_one_whose_time_was_over_needs_a_second_of_its_own(void **state)
{
	static const struct {
		const char *timeout;
		bool late;
		enum flow_effect effect;
	} rows[] = {
		{ "999", true, FLOW_ANSWER },
		{ "1000", true, FLOW_RESERVE },
		{ "999", false, FLOW_RESERVE }, /* its caller has left */
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct http_incoming in = incoming(KEY, MESSAGE("1", ""));
		in.headers[HTTP_IDEMPOTENCY_KEY] = SLICE("k");
		in.headers[HTTP_TIMEOUT] = slice_str(rows[i].timeout);
		assert_int_equal(start(b, &in), FLOW_JOIN);
		b->flow.state->copy.waited = true;
		b->flow.state->copy.late = rows[i].late;
		assert_int_equal(joined(b, IDEMPOTENCY_LEADS), rows[i].effect);
		if (rows[i].effect == FLOW_ANSWER)
			assert_int_equal(b->call.answer.status, 504);
		else
			assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
	}
}

static void a_copy_that_wants_a_stream_gets_one_event(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE("1", ",\"_meta\":{\"progressToken\":1}"));

	in.headers[HTTP_ACCEPT] = SLICE("text/event-stream");
	in.headers[HTTP_IDEMPOTENCY_KEY] = SLICE("k");
	assert_int_equal(start(b, &in), FLOW_JOIN);
	b->flow.state->copy.answer = (struct idempotency_answer){ .member = SLICE("\"result\":{}"),
								  .retry_after_s = -1 };
	assert_int_equal(joined(b, IDEMPOTENCY_ANSWERED), FLOW_ANSWER);
	assert_string_equal(
		answer_text(b),
		"event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		WALK(a_request_is_the_same_by_its_key_and_what_it_asks),
		WALK(what_a_request_asks_has_the_digest_of_earlier_versions),
		WALK(what_became_of_the_first_decides),
		WALK(a_copy_is_answered_like_the_first_but_for_the_id),
		WALK(a_copy_gets_the_first_ones_error),
		WALK(a_copy_that_leads_after_waiting_asks_once_more_what_is_known),
		WALK(who_follows_one_whose_time_was_over_needs_a_second_of_its_own),
		WALK(a_copy_that_wants_a_stream_gets_one_event),
	};
	return cmocka_run_group_tests_name("flow_copies", tests, NULL, NULL);
}
