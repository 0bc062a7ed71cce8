/* Who is told meanwhile, and streams of providers that go well. */
#include "tests/unit/gateway/flow/flow_stream_rig.h"

/* ---- who gets a stream, and who asks for one ---------------------------------------------------- */

static const struct {
	const char *name, *accept, *body;
	enum flow_effect effect;
	bool told, streamed;
	int status; /* of a refusal */
} forms[] = {
	{ "both, and a token", BOTH, ASK("100", TOKEN), FLOW_RESERVE, true, true, 0 },
	{ "no token", BOTH, ASK("100", ""), FLOW_RESERVE, false, false, 0 },
	{ "no Accept", NULL, ASK("100", TOKEN), FLOW_RESERVE, false, false, 0 },
	{ "any is not a stream", "*/*", ASK("100", TOKEN), FLOW_RESERVE, false, false, 0 },
	{ "a stream alone", "text/event-stream", ASK("100", TOKEN), FLOW_RESERVE, true, true, 0 },
	{ "a stream alone, no token", "text/event-stream", ASK("100", ""), FLOW_ANSWER, false,
	  false, 406 },
	{ "refused with q", "text/event-stream;q=0.0, application/json", ASK("100", TOKEN),
	  FLOW_RESERVE, false, false, 0 },
	{ "neither", "text/html", ASK("100", TOKEN), FLOW_ANSWER, false, false, 406 },
	{ "ten minutes", NULL, ASK("21333", ""), FLOW_RESERVE, false, false, 0 },
	{ "more than ten minutes", NULL, ASK("21334", ""), FLOW_RESERVE, false, true, 0 },
};

static void accept_and_token_decide_the_form_and_length_what_the_provider_is_asked(void **state)
{
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(forms); i++) {
		print_message("%s\n", forms[i].name);
		assert_int_equal(ask(b, forms[i].accept, forms[i].body), forms[i].effect);
		assert_int_equal(rpc_progress_wanted(&b->call.progress), forms[i].told);
		if (forms[i].effect == FLOW_ANSWER) {
			assert_int_equal(b->call.answer.status, forms[i].status);
			continue;
		}
		assert_int_equal(strstr(sent_body(b), "\"stream\":true") != NULL,
				 forms[i].streamed);
		assert_int_equal(b->flow.ask->deadline - b->now,
				 forms[i].told ? 600 * SEC : 55 * SEC);
		assert_int_equal(reserve(b), FLOW_SEND);
		assert_int_equal(b->flow.reading.stream != NULL, forms[i].streamed);
		assert_int_equal(provider_ends(b, ERR_DEADLINE, false), FLOW_SETTLE);
	}
}

static void a_token_that_is_too_long_is_refused(void **state)
{
	char body[3000], token[1100];

	(void)memset(token, 't', sizeof(token));
	(void)snprintf(body, sizeof(body), ASK("100", ",\"_meta\":{\"progressToken\":\"%.*s\"}"),
		       (int)sizeof(token), token);
	assert_int_equal(ask(*state, BOTH, body), FLOW_ANSWER);
	assert_has(answer_text(*state), "longer than 1,024 bytes");
}

/* ---- streams that go well ----------------------------------------------------------------------- */

static void a_stream_becomes_the_last_event_and_is_paid_by_its_counters(void **state)
{
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	const nsec_t admitted = b->now;
	assert_true(bench_due(b) == admitted + PROGRESS_BEGIN_AFTER);
	stream_begins(b);
	assert_true(bench_due(b) <= b->now);
	b->now += 300 * MSEC;
	assert_int_equal(says(b, START), STREAM_OPEN);
	assert_tells(b, "\"progressToken\":7,\"progress\":0}}");
	assert_int_equal(b->call.answer.status, 200);
	b->now += 300 * MSEC;
	assert_int_equal(says(b, WORDS("hello")), STREAM_OPEN);
	assert_tells(b, "\"progress\":5}}");
	assert_int_equal(says(b, STOP), STREAM_DONE);
	assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
	assert_int_equal(b->flow.charge.tokens, 30);
	assert_int_equal(flow_attempt_report(&b->flow).ttft, 600 * MSEC); /* the first token */
	assert_int_equal(settle(b), FLOW_ANSWER);
	const char *event = answer_text(b);
	assert_ptr_equal(strstr(event, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":\"i\""),
			 event);
	assert_has(event, "\"text\":\"hello\"");
	assert_string_equal(event + strlen(event) - 3, "}\n\n");
}

static uint32_t next_key(struct bench *b)
{
	struct health_choice choice = { 0 };
	nsec_t wait;

	assert_int_equal(health_choose(b->view, 0, NULL, b->now, 0, &choice, &wait), ERR_OK);
	health_ended(&choice, NULL, b->now);
	return choice.key;
}

static void what_a_head_says_of_limits_counts_from_then_on(void **state)
{
	static const struct rate_header rates[RATE_KINDS] = {
		[RATE_REQUESTS] = { SLICE_INIT("100"), SLICE_INIT("0"), SLICE_INIT("60s") },
	};
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	const uint32_t key = b->flow.walk.choice.key;
	b->flow.call.answer = (struct provider_answer){
		.status = 200,
		.headers = { .content_type = SLICE("text/event-stream"), .rates = rates },
	};
	assert_true(is_stream(b));
	assert_true(next_key(b) != key && next_key(b) != key); /* spared at once */
	(void)says(b, START WORDS("hello") STOP);
	b->now += 61 * SEC;
	assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
	assert_true(next_key(b) == key || next_key(b) == key); /* has its turn again */
}

static void an_answer_that_is_there_at_once_is_one_event(void **state)
{
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	stream_begins(b);
	assert_int_equal(says(b, START WORDS("hello") STOP), STREAM_DONE);
	assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_false(rpc_progress_begun(&b->call.progress));
	assert_int_equal(b->call.answer.status, 200);
	assert_true(slice_eq(b->call.answer.fields[1].value, SLICE("text/event-stream")));
	assert_has(answer_text(b), "event: message\ndata: {");
}

static void who_gets_json_gets_it_from_a_stream_too(void **state)
{
	struct bench *b = *state;

	send_it(b, NULL, ASK("25000", ""));
	stream_begins(b);
	assert_true(bench_due(b) == NSEC_NEVER);
	assert_int_equal(says(b, START WORDS("hello") STOP), STREAM_DONE);
	assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_true(slice_eq(b->call.answer.fields[1].value, SLICE("application/json")));
	assert_int_equal(answer_text(b)[0], '{');
}

static void other_answers_are_read_whole(void **state)
{
	struct bench *b = *state;
	const struct provider_answer others[] = {
		{ .status = 200, .headers = { .content_type = SLICE("application/json") } },
		{ .status = 200 },
		{ .status = 529, .headers = { .content_type = SLICE("text/event-stream") } },
	};

	send_it(b, BOTH, ASK("100", TOKEN));
	for (size_t i = 0; i < COUNT_OF(others); i++) {
		b->flow.call.answer = others[i];
		assert_false(is_stream(b));
	}
	assert_int_equal(provider_says(b, 200,
				       "{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\","
				       "\"model\":\"m\",\"stop_reason\":\"end_turn\",\"content\":["
				       "{\"type\":\"text\",\n\"text\":\"whole\"}]}"),
			 FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_has(answer_text(b), "\"text\":\"whole\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(accept_and_token_decide_the_form_and_length_what_the_provider_is_asked),
		TEST(a_token_that_is_too_long_is_refused),
		TEST(a_stream_becomes_the_last_event_and_is_paid_by_its_counters),
		TEST(what_a_head_says_of_limits_counts_from_then_on),
		TEST(an_answer_that_is_there_at_once_is_one_event),
		TEST(who_gets_json_gets_it_from_a_stream_too),
		TEST(other_answers_are_read_whole),
	};
	return cmocka_run_group_tests_name("flow_stream", tests, NULL, NULL);
}
