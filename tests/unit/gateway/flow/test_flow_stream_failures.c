/* Streams of providers that fail, or that there is no room for. */
#include "tests/unit/gateway/flow/flow_stream_rig.h"

static const struct {
	const char *name, *bytes;
	enum err end;
	bool timed_out;
	const char *code, *detail;
} failures[] = {
	{ "an end before its end", "", ERR_OK, false, "\"code\":-32015", NULL },
	{ "a connection that broke", "", ERR_PROVIDER_DOWN, false, "\"code\":-32015", NULL },
	{ "silence", "", ERR_PROVIDER_DOWN, true, "\"code\":-32011", "what happened" },
	{ "the deadline", "", ERR_DEADLINE, false, "\"code\":-32001", "what happened" },
	{ "an error",
	  "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":"
	  "\"overloaded_error\",\"message\":\"x\"}}\n\n",
	  ERR_OK, false, "\"code\":-32011", NULL },
	{ "no JSON", "data: {]\n\n", ERR_OK, false, "\"code\":-32015", NULL },
};

/* Up to an attempt that can be heard, whatever has to be waited for. */
static void sent_again(struct bench *b, enum flow_effect effect)
{
	if (effect == FLOW_WAIT) {
		b->now = b->flow.retries.wait_until;
		effect = run(b, FLOW_WAITED);
	}
	assert_int_equal(effect, FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	stream_begins(b);
}

/* The number of the notification that is due. */
static uint64_t told(struct bench *b)
{
	const struct slice event = bench_notify(b);
	const char *number = strstr(arena_copy(&b->call.arena, event).at, "\"progress\":");

	assert_non_null(number);
	return strtoull(number + strlen("\"progress\":"), NULL, 10);
}

/* Text leaves only when the answer is complete, so numbers are no reason to give up; they keep rising, also where
 * the next attempt says less. Both are paid. */
static void once_numbers_were_told_a_stream_that_fails_is_still_tried_again(void **state)
{
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(failures); i++) {
		print_message("%s\n", failures[i].name);
		send_it(b, BOTH, ASK("100", TOKEN));
		stream_begins(b);
		(void)says(b, START WORDS("hello, hello"));
		assert_int_equal(told(b), 12);
		const nsec_t last = b->now;
		(void)says(b, failures[i].bytes);
		assert_int_equal(provider_ends(b, failures[i].end, failures[i].timed_out),
				 FLOW_SETTLE);
		const uint64_t usd = b->flow.charge.usd, tokens = b->flow.charge.tokens;
		assert_true(usd != 0 && b->flow.charge.without_usage);
		const enum flow_effect effect = settle(b);
		if (failures[i].end == ERR_DEADLINE) { /* for which there is no time */
			assert_int_equal(effect, FLOW_ANSWER);
			assert_has(answer_text(b), failures[i].code);
			assert_string_equal(b->flow.end.detail, failures[i].detail);
			continue;
		}
		assert_true(bench_due(b) == last + PROGRESS_SILENCE_MAX);
		sent_again(b, effect);
		assert_int_equal(b->flow.retries.attempts, 2);
		(void)says(b, START WORDS("hi"));
		/* less than was told: nothing, but for the sign of life */
		assert_true(bench_due(b) == last + PROGRESS_SILENCE_MAX);
		assert_int_equal(told(b), 13);
		(void)says(b, WORDS(" and hello again"));
		assert_int_equal(told(b), 18);
		assert_int_equal(says(b, STOP), STREAM_DONE);
		assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
		assert_int_equal(b->flow.charge.tokens, 30);
		assert_int_equal(settle(b), FLOW_ANSWER);
		assert_int_equal(b->flow.totals.tokens, tokens + 30);
		assert_int_equal(b->flow.totals.usd, usd + b->flow.charge.usd);
		const char *event = answer_text(b);
		assert_has(event, "\"text\":\"hi and hello again\"");
		assert_has(event, "\"attempts\":2");
		b->now += 60 * SEC; /* keys and endpoints have a new chance */
	}
}

/* As often as any failure, no more: then it is the last event. */
static void a_stream_that_fails_every_time_ends_in_an_error(void **state)
{
	struct bench *b = *state;
	enum flow_effect effect = FLOW_SEND;
	uint64_t last = 0;

	send_it(b, BOTH, ASK("100", TOKEN));
	stream_begins(b);
	while (effect != FLOW_ANSWER) {
		(void)says(b, START WORDS("hello"));
		const uint64_t number = told(b);
		assert_true(number > last);
		last = number;
		assert_int_equal(provider_ends(b, ERR_PROVIDER_DOWN, true), FLOW_SETTLE);
		effect = settle(b);
		if (effect != FLOW_ANSWER)
			sent_again(b, effect);
	}
	assert_true(b->flow.retries.attempts > 1 &&
		    b->flow.retries.attempts <= b->config->retries.attempts);
	assert_int_equal(b->call.answer.status, 200);
	const char *event = answer_text(b);
	assert_int_equal(strncmp(event, "event: message\ndata: {", 22), 0);
	assert_has(event, "\"code\":-32011");
	assert_has(event, "\"id\":\"i\"");
	assert_null(strstr(event, "hello"));
}

static void before_that_it_is_tried_again_and_the_numbers_still_rise(void **state)
{
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	stream_begins(b);
	(void)says(b, START);
	(void)bench_notify(b); /* that it goes on, no more */
	assert_int_equal(provider_ends(b, ERR_PROVIDER_DOWN, true), FLOW_SETTLE);
	sent_again(b, settle(b));
	assert_int_equal(b->flow.retries.attempts, 2);
	(void)says(b, START WORDS("hello"));
	assert_tells(b, "\"progress\":5}}");
	assert_int_equal(says(b, STOP), STREAM_DONE);
	assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_has(answer_text(b), "\"attempts\":2");
}

/* Numbers that rose are no answer: another one may follow. */
static void a_call_that_cannot_be_forced_is_asked_for_again_though_numbers_were_told(void **state)
{
	static const char tool[] = ASK(
		"100", TOKEN ",\"toolChoice\":{\"mode\":\"required\"},\"tools\":[{\"name\":\"t\","
			     "\"inputSchema\":{\"type\":\"object\"}}]");
	static const char *const answers[] = { WORDS("first"), WORDS("second") };
	struct bench *b = *state;

	assert_int_equal(ask(b, BOTH, tool), FLOW_RESERVE);
	for (size_t i = 0; i < COUNT_OF(answers); i++) {
		assert_int_equal(reserve(b), FLOW_SEND);
		stream_begins(b);
		b->now += 300 * MSEC;
		(void)says(b, START);
		(void)says(b, answers[i]);
		(void)bench_notify(b);
		assert_int_equal(says(b, STOP), STREAM_DONE);
		assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
		assert_int_equal(settle(b), i == 0 ? FLOW_RESERVE : FLOW_ANSWER);
	}
	assert_has(answer_text(b), "second");
	assert_has(answer_text(b), "\"attempts\":2");
	assert_has(answer_text(b), "tool_choice_required_downgraded");
}

static void an_event_of_a_megabyte_is_one_attempt(void **state)
{
	enum { PIECE = 1024, PIECES = 1024 };
	static char piece[PIECE + 1];
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	stream_begins(b);
	(void)memset(piece, 'x', PIECE);
	(void)says(b,
		   START "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":"
			 "\"text_delta\",\"text\":\"");
	assert_true(flow_stream_held(&b->flow) < PIECE); /* its own room is enough so far */
	for (int i = 0; i < PIECES; i++)
		assert_int_equal(says(b, piece), STREAM_OPEN);
	assert_true(flow_stream_held(&b->flow) > PIECE * PIECES);
	assert_int_equal(says(b, "\"}}\n\n" STOP), STREAM_DONE);
	assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_int_equal(b->flow.retries.attempts, 1);
	assert_int_equal(b->flow.end.result->blocks[0].text.len, PIECE * PIECES);
}

static void a_stream_that_memory_did_not_suffice_for_is_refused_and_nobody_is_to_blame(void **state)
{
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	stream_begins(b);
	(void)says(b, START WORDS("hello"));
	assert_int_equal(provider_ends(b, ERR_BUSY, false), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_int_equal(b->flow.retries.attempts, 1);
	assert_int_equal(b->call.answer.status, 503);
	assert_has(answer_text(b), "\"reason\":\"overloaded\"");
	assert_string_equal(b->flow.end.detail, "what happened");
}

#define ERROR_EVENT                                                                         \
	"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"," \
	"\"message\":\"x\"}}\n\n"
/* Its own, complete counters are in front of it. */
#define STOPPED                                                                               \
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" \
	"\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\n"

/* Nobody says what the provider bills of what it had written: by what was seen of it. */
static void an_error_in_the_midst_of_an_answer_is_settled_by_what_was_there(void **state)
{
	static const struct {
		const char *name, *bytes;
		uint64_t tokens;
		bool estimated;
	} rows[] = {
		{ "at once", ERROR_EVENT, 0, false },
		{ "before any output", START ERROR_EVENT, 11, false },
		{ "behind some", START WORDS("hello") ERROR_EVENT, 12, true },
		{ "behind all of it", START WORDS("hello") STOPPED ERROR_EVENT, 30, false },
		{ "not an error, but malformed", START WORDS("hello") "data: {]\n\n", 12, true },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		print_message("%s\n", rows[i].name);
		send_it(b, BOTH, ASK("100", TOKEN));
		stream_begins(b);
		(void)says(b, rows[i].bytes);
		assert_int_equal(provider_ends(b, ERR_OK, false), FLOW_SETTLE);
		assert_int_equal(b->flow.charge.without_usage, rows[i].estimated);
		assert_int_equal(b->flow.charge.tokens, rows[i].tokens);
		(void)settle(b);
		(void)run(b, FLOW_CLIENT_GONE);
		b->now += 60 * SEC;
	}
}

static void what_a_broken_stream_brought_is_not_told_while_the_next_attempt_is_due(void **state)
{
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	stream_begins(b);
	(void)says(b, START);
	(void)bench_notify(b);
	const nsec_t told = b->now;
	b->now += 100 * MSEC;
	(void)says(b, WORDS("hello"));
	assert_true(bench_due(b) == told + PROGRESS_EVERY);
	assert_int_equal(provider_ends(b, ERR_PROVIDER_DOWN, true), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_WAIT);
	assert_true(bench_due(b) == told + PROGRESS_SILENCE_MAX);
	(void)bench_notify(b);
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
}

static void refusals_before_anything_was_told_keep_their_status(void **state)
{
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	assert_int_equal(provider_says(b, 400,
				       "{\"type\":\"error\",\"error\":{\"type\":"
				       "\"invalid_request_error\",\"message\":\"x\"}}"),
			 FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 422);
	assert_int_equal(answer_text(b)[0], '{');
}

static void a_process_that_leaves_says_so_in_the_stream(void **state)
{
	struct bench *b = *state;

	send_it(b, BOTH, ASK("100", TOKEN));
	stream_begins(b);
	(void)bench_notify(b);
	assert_int_equal(run(b, FLOW_GIVEN_UP), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_has(answer_text(b), "\"reason\":\"draining\"");
	assert_int_equal(strncmp(answer_text(b), "event: message", 14), 0);
}

static void more_streams_than_there_is_room_for_are_refused_and_cost_nothing(void **state)
{
	struct bench *b = *state;
	struct stream *only = stream_take(&b->streams);

	assert_int_equal(ask(b, BOTH, ASK("100", TOKEN)), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SETTLE);
	assert_int_equal(b->flow.charge.tokens, 0);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 503);
	stream_give(&b->streams, only);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(once_numbers_were_told_a_stream_that_fails_is_still_tried_again),
		TEST(a_stream_that_fails_every_time_ends_in_an_error),
		TEST(before_that_it_is_tried_again_and_the_numbers_still_rise),
		TEST(a_call_that_cannot_be_forced_is_asked_for_again_though_numbers_were_told),
		TEST(an_event_of_a_megabyte_is_one_attempt),
		TEST(a_stream_that_memory_did_not_suffice_for_is_refused_and_nobody_is_to_blame),
		TEST(an_error_in_the_midst_of_an_answer_is_settled_by_what_was_there),
		TEST(what_a_broken_stream_brought_is_not_told_while_the_next_attempt_is_due),
		TEST(refusals_before_anything_was_told_keep_their_status),
		TEST(a_process_that_leaves_says_so_in_the_stream),
		TEST(more_streams_than_there_is_room_for_are_refused_and_cost_nothing),
	};
	return cmocka_run_group_tests_name("flow_stream_failures", tests, NULL, NULL);
}
