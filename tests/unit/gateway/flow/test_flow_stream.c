/* Requests whose caller is told meanwhile, and whose provider answers in a stream: the test is the driver,
 * the clock is its own. */
#include "tests/support/flow_bench.h"

#define KEY "acme-key-0123456789"

static const char text[] =
	"listen: [{address: \"127.0.0.1:8080\"}]\n"
	"providers:\n"
	"  ant: {dialect: anthropic, endpoints: [{url: \"http://127.0.0.1:9001\"}], keys: [a, b]}\n"
	"models:\n"
	"  - {id: claude, provider: ant, name: claude-real, context: 100000, price: {input: 3, "
	"output: 15}, profile: {max_output: 30000, forced_tool: false}}\n"
	"tenants:\n"
	"  - {id: acme, models: {allow: [\"*\"]}, capabilities: {tools: true}, limits: "
	"{requests_per_minute: 60000, "
	"requests_burst: "
	"60000, tokens_per_minute: 100000000, usd_per_day: 1000, max_tokens: 30000}, keys: "
	"[{sha256: %s}]}\n";

#define ASK(tokens, meta)                                                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"sampling/createMessage\",\"params\":{" \
	"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}],"  \
	"\"maxTokens\":" tokens meta "}}"
#define TOKEN ",\"_meta\":{\"progressToken\":7}"
#define BOTH "application/json, text/event-stream"

#define START                                                                                    \
	"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\"," \
	"\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],"            \
	"\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"                              \
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,"       \
	"\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
#define WORDS(words)                                               \
	"event: content_block_delta\ndata: "                       \
	"{\"type\":\"content_block_delta\",\"index\":0,\"delta\":" \
	"{\"type\":\"text_delta\",\"text\":\"" words "\"}}\n\n"
#define STOP                                                                                  \
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"  \
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" \
	"\"end_turn\"},\"usage\":{\"output_tokens\":20}}\n\n"                                 \
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

static int make(void **state)
{
	static const char *const keys[] = { KEY, NULL };

	*state = bench_new(bench_config(text, keys));
	return 0;
}

static int take_apart(void **state)
{
	bench_free(*state);
	return 0;
}

static enum flow_effect ask(struct bench *b, const char *accept, const char *body)
{
	struct http_incoming in = incoming(KEY, body);

	if (accept != NULL)
		in.headers[HTTP_ACCEPT] = slice_str(accept);
	return start(b, &in);
}

/* Up to the provider. */
static void send_it(struct bench *b, const char *accept, const char *body)
{
	assert_int_equal(ask(b, accept, body), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
}

static const char *sent_body(struct bench *b)
{
	return text_of(b, &b->flow.made->encoded.body);
}

static bool is_stream(struct bench *b)
{
	return flow_stream_head(&b->flow, b->work, b->now, BENCH_WALL_S * SEC);
}

/* The head of an event stream is there. */
static void stream_begins(struct bench *b)
{
	b->flow.call.bytes_sent = true;
	b->flow.call.sent_at = b->now;
	b->flow.call.answer = (struct provider_answer){
		.status = 200,
		.headers = { .content_type = SLICE("Text/Event-Stream; charset=utf-8"),
			     .request_id = SLICE("req_9") },
	};
	assert_true(is_stream(b));
}

static enum stream_state says(struct bench *b, const char *bytes)
{
	return flow_stream_take(&b->flow, slice_str(bytes), b->now);
}

static enum flow_effect provider_ends(struct bench *b, enum err err, bool timed_out)
{
	b->flow.call.err = err;
	b->flow.call.timed_out = timed_out;
	b->flow.call.detail = err == ERR_OK ? NULL : "what happened";
	return run(b, FLOW_PROVIDER_DONE);
}

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
		assert_int_equal(b->call.progress.wanted, forms[i].told);
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

static void assert_tells(struct bench *b, const char *part)
{
	const struct slice told = bench_tell(b);

	assert_false(slice_absent(told));
	assert_has(arena_copy(&b->call.arena, told).at, part);
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
	assert_false(b->call.progress.begun);
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

/* ---- and those that do not ---------------------------------------------------------------------- */

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
	const struct slice event = bench_tell(b);
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
	(void)bench_tell(b); /* that it goes on, no more */
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
		(void)bench_tell(b);
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
	(void)bench_tell(b);
	const nsec_t told = b->now;
	b->now += 100 * MSEC;
	(void)says(b, WORDS("hello"));
	assert_true(bench_due(b) == told + PROGRESS_EVERY);
	assert_int_equal(provider_ends(b, ERR_PROVIDER_DOWN, true), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_WAIT);
	assert_true(bench_due(b) == told + PROGRESS_SILENCE_MAX);
	(void)bench_tell(b);
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
	(void)bench_tell(b);
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
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, take_apart)
	const struct CMUnitTest tests[] = {
		TEST(accept_and_token_decide_the_form_and_length_what_the_provider_is_asked),
		TEST(a_token_that_is_too_long_is_refused),
		TEST(a_stream_becomes_the_last_event_and_is_paid_by_its_counters),
		TEST(what_a_head_says_of_limits_counts_from_then_on),
		TEST(an_answer_that_is_there_at_once_is_one_event),
		TEST(who_gets_json_gets_it_from_a_stream_too),
		TEST(other_answers_are_read_whole),
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
	return cmocka_run_group_tests_name("flow_stream", tests, NULL, NULL);
}
