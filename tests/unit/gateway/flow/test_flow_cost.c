/* What an attempt is charged whose usage never came: by what was seen of its answer. */
#include "tests/support/flow_bench.h"

#include "codec/base/attr.h"

#define KEY "acme-key-0123456789"

enum { MOST = 1000 }; /* maxTokens of every request */

static const char text[] =
	"listen: [{address: \"127.0.0.1:8080\"}]\n"
	"retries: {attempts: 1}\n"
	"providers:\n"
	"  ant: {dialect: anthropic, endpoints: [{url: \"http://127.0.0.1:9001\"}], keys: [a]}\n"
	"  oai: {dialect: openai, endpoints: [{url: \"http://127.0.0.1:9002/v1\"}], keys: [b]}\n"
	"  res: {dialect: openai-responses, endpoints: [{url: \"http://127.0.0.1:9003/v1\"}], "
	"keys: [c]}\n"
	"models:\n"
	"  - {id: claude, provider: ant, name: claude-real, context: 100000, price: {input: 3, "
	"output: 15, "
	"cache_read: 0.3}, profile: {image: true}}\n"
	"  - {id: deep, provider: ant, name: claude-deep, context: 100000, price: {input: 3, "
	"output: 15}, "
	"profile: {body: '{\"thinking\": {\"type\": \"adaptive\"}}'}}\n"
	"  - {id: gpt, provider: oai, name: gpt-real, context: 100000, price: {input: 1, output: "
	"2}}\n"
	"  - {id: oh, provider: oai, name: oh-real, context: 100000, price: {input: 1, output: 2}, "
	"profile: "
	"{reasoning: true}}\n"
	"  - {id: rsp, provider: res, name: rsp-real, context: 100000, price: {input: 1, output: "
	"2}}\n"
	"tenants:\n"
	"  - {id: acme, models: {allow: [\"*\"]}, capabilities: {images: true}, limits: "
	"{requests_per_minute: "
	"60000, requests_burst: 60000, tokens_per_minute: 100000000, usd_per_day: 50}, keys: "
	"[{sha256: %s}]}\n";

#define TEXT_PART "{\"type\":\"text\",\"text\":\"hello, what is the weather like?\"}"
#define IMAGE_PART                                  \
	"{\"type\":\"image\",\"mimeType\":\"image/" \
	"png\",\"data\":\"iVBORw0KGgoAAAANSUhEUgAAAAE=\"}"
#define ASK(model, content)                                      \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/"   \
	"createMessage\",\"params\":{\"messages\":[{"            \
	"\"role\":\"user\",\"content\":" content                 \
	"}],\"maxTokens\":1000,\"modelPreferences\":{\"hints\":" \
	"[{\"name\":\"" model "\"}]},\"_meta\":{\"progressToken\":7}}}"

#define START(usage)                                                                             \
	"event: message_start\ndata: "                                                           \
	"{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[]" usage             \
	"}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":" \
	"\"text\",\"text\":\"\"}}\n\n"
#define COUNTED ",\"usage\":{\"input_tokens\":10,\"cache_read_input_tokens\":4,\"output_tokens\":1}"
#define UNCOUNTED ",\"usage\":{\"input_tokens\":0,\"output_tokens\":0}"
#define WILD ",\"usage\":{\"input_tokens\":9007199254740992,\"output_tokens\":1}"
#define DELTA(delta) \
	"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{" delta "}}\n\n"
#define WORDS(words) DELTA("\"type\":\"text_delta\",\"text\":\"" words "\"")
#define THINKS(words)                                                                             \
	"data: "                                                                                  \
	"{\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"thinking\"," \
	"\"thinking\":\"\"}}\n\ndata: "                                                           \
	"{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":"                      \
	"\"thinking_delta\",\"thinking\":\"" words "\"}}\n\n"
#define CALLS(args)                                                                               \
	"data: "                                                                                  \
	"{\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"tool_use\"," \
	"\"id\":"                                                                                 \
	"\"t\",\"name\":\"a\",\"input\":{}}}\n\ndata: "                                           \
	"{\"type\":\"content_block_delta\",\"index\":2,\"delta\":"                                \
	"{\"type\":\"input_json_delta\",\"partial_json\":\"" args "\"}}\n\n"
#define PING "event: ping\ndata: {\"type\":\"ping\"}\n\n"
#define STOPPED                                                                                  \
	"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{" \
	"\"output_tokens\":20}}\n\n"
#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN
#define THOUSAND HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED HUNDRED

#define CHAT(delta) "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{" delta "}}]}\n\n"
#define ROLE CHAT("\"role\":\"assistant\"")
#define SAY(words) CHAT("\"content\":\"" words "\"")
#define COUNT(input, output)                                                                  \
	"data: "                                                                              \
	"{\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}],\"usage\":{" \
	"\"prompt_tokens\":" input ",\"completion_tokens\":" output "}}\n\n"
#define CREATED                                                                                  \
	"data: "                                                                                 \
	"{\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}" \
	"\n\n"

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

static void send_it(struct bench *b, const char *body)
{
	struct http_incoming in = incoming(KEY, body);

	in.headers[HTTP_ACCEPT] = SLICE("application/json, text/event-stream");
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	b->flow.call.bytes_sent = true;
	b->flow.call.sent_at = b->now;
}

static void streams(struct bench *b, const char *bytes)
{
	b->flow.call.answer = (struct provider_answer){
		.status = 200, .headers = { .content_type = SLICE("text/event-stream") }
	};
	assert_true(flow_stream_head(&b->flow, b->work, b->now, BENCH_WALL_S * SEC));
	assert_int_equal(flow_stream_take(&b->flow, slice_str(bytes), b->now), STREAM_OPEN);
}

/* ---- ends ---- */

static enum flow_effect call_ends(struct bench *b, enum err err, bool timed_out)
{
	b->flow.call.err = err;
	b->flow.call.timed_out = timed_out;
	b->flow.call.done_at = b->now;
	return run(b, FLOW_PROVIDER_DONE);
}

static enum flow_effect caller_leaves(struct bench *b)
{
	return run(b, FLOW_CLIENT_GONE);
}

static enum flow_effect is_cancelled(struct bench *b)
{
	return run(b, FLOW_CANCELLED);
}

static enum flow_effect process_leaves(struct bench *b)
{
	return run(b, FLOW_GIVEN_UP);
}

static enum flow_effect is_cut(struct bench *b)
{
	return call_ends(b, ERR_PROVIDER_DOWN, false);
}

static enum flow_effect ends_early(struct bench *b)
{
	return call_ends(b, ERR_OK, false);
}

static enum flow_effect falls_silent(struct bench *b)
{
	return call_ends(b, ERR_PROVIDER_DOWN, true);
}

static enum flow_effect deadline_passes(struct bench *b)
{
	return call_ends(b, ERR_DEADLINE, false);
}

static enum flow_effect memory_is_short(struct bench *b)
{
	return call_ends(b, ERR_BUSY, false);
}

static const struct end {
	const char *name;
	enum flow_effect (*happens)(struct bench *b);
} ends[] = {
	{ "the caller leaves", caller_leaves },     { "it is cancelled", is_cancelled },
	{ "the process leaves", process_leaves },   { "the connection is cut", is_cut },
	{ "the body ends early", ends_early },      { "the provider falls silent", falls_silent },
	{ "the deadline passes", deadline_passes }, { "memory is short", memory_is_short },
};

/* ---- streams ---- */

enum { ESTIMATED = -1 };

static const struct row {
	const char *name, *ask, *bytes;
	nsec_t after;    /* between the request and the end */
	int input, read; /* as the provider said; or ESTIMATED */
	uint64_t output; /* UINT64_MAX: nothing was seen, all that was reserved */
} rows[] = {
	{ "nothing", ASK("claude", TEXT_PART), "", SEC, 0, 0, UINT64_MAX },
	{ "a comment", ASK("claude", TEXT_PART), ": wait\n\n", SEC, 0, 0, UINT64_MAX },
	{ "a beginning that was counted", ASK("claude", TEXT_PART), START(COUNTED), SEC, 14, 4, 1 },
	{ "a third of the bytes, rounded up", ASK("claude", TEXT_PART),
	  START(COUNTED) WORDS(TEN TEN), SEC, 14, 4, 7 },
	{ "their own bytes, not the events'", ASK("claude", TEXT_PART),
	  START(COUNTED) PING WORDS("a") PING PING WORDS("b") PING, SEC, 14, 4, 2 },
	{ "as many as there were deltas", ASK("claude", TEXT_PART),
	  START(COUNTED) WORDS("a") WORDS("b") WORDS("c") WORDS("d") WORDS("e"), SEC, 14, 4, 5 },
	{ "thinking and arguments, too", ASK("claude", TEXT_PART),
	  START(COUNTED) WORDS(TEN) THINKS(HUNDRED) CALLS(TEN), SEC, 14, 4, 40 },
	{ "no input was said", ASK("claude", TEXT_PART), START("") WORDS(TEN TEN TEN), SEC,
	  ESTIMATED, 0, 10 },
	{ "an input of 0 is none", ASK("claude", TEXT_PART), START(UNCOUNTED) WORDS(TEN TEN TEN),
	  SEC, ESTIMATED, 0, 10 },
	{ "a count that cannot be true is none", ASK("claude", TEXT_PART),
	  START(WILD) WORDS(TEN TEN TEN), SEC, ESTIMATED, 0, 10 },
	{ "images count", ASK("claude", "[" TEXT_PART "," IMAGE_PART "," IMAGE_PART "]"),
	  START("") WORDS(TEN), SEC, ESTIMATED, 0, 4 },
	{ "no more than was reserved", ASK("claude", TEXT_PART),
	  START(COUNTED) WORDS(THOUSAND THOUSAND THOUSAND HUNDRED), SEC, 14, 4, MOST },
	{ "a model that thinks: time, at a usual pace", ASK("deep", TEXT_PART),
	  START(COUNTED) WORDS(TEN), 3 * SEC, 14, 4, 200 },
	{ "and no more than was reserved", ASK("deep", TEXT_PART), START(COUNTED) WORDS(TEN),
	  600 * SEC, 14, 4, MOST },
	{ "it is what was seen where that is more", ASK("deep", TEXT_PART),
	  START(COUNTED) WORDS(THOUSAND), 3 * SEC, 14, 4, 334 },
	{ "chat: text", ASK("gpt", TEXT_PART), ROLE SAY(TEN TEN TEN) SAY("a"), SEC, ESTIMATED, 0,
	  11 },
	{ "chat: a running count", ASK("gpt", TEXT_PART), ROLE SAY(TEN) COUNT("9", "77"), SEC, 9, 0,
	  77 },
	{ "chat: the last count is the one", ASK("gpt", TEXT_PART),
	  COUNT("9", "70") COUNT("9", "71"), SEC, 9, 0, 71 },
	{ "chat: it has begun, and says nothing", ASK("gpt", TEXT_PART), ROLE, 3 * SEC, ESTIMATED,
	  0, 200 },
	{ "chat: a reasoning model", ASK("oh", TEXT_PART), ROLE SAY("a"), 3 * SEC, ESTIMATED, 0,
	  200 },
	{ "responses: it has begun, and says nothing", ASK("rsp", TEXT_PART), CREATED, 3 * SEC,
	  ESTIMATED, 0, 200 },
};

static uint64_t bytes_of(const struct bench *b)
{
	return b->flow.made->encoded.body.total - b->flow.made->encoded.body.images;
}

static void assert_row(struct bench *b, const struct row *row, const char *end)
{
	const struct limit_ask *ask = &b->flow.reservation.ask;
	const struct encode_out *encoded = &b->flow.made->encoded;
	const bool said = row->input != ESTIMATED;
	const uint64_t input =
		said ? (uint64_t)row->input : quota_token_estimate(bytes_of(b), encoded->images, 0);
	const struct usage usage = { .known = true,
				     .input = input,
				     .output = row->output,
				     .cache_read = (uint64_t)row->read };
	uint64_t tokens = input + row->output;
	uint64_t usd = quota_usd_used(&usage, &b->flow.made->price);

	if (row->output == UINT64_MAX || tokens > ask->tokens)
		tokens = ask->tokens;
	if (row->output == UINT64_MAX || usd > ask->usd)
		usd = ask->usd;
	if (!b->flow.charge.without_usage || b->flow.charge.tokens != tokens ||
	    b->flow.charge.usd != usd)
		fail_msg("%s, %s: %lu tokens, not %lu; %lu nano-USD, not %lu", row->name, end,
			 b->flow.charge.tokens, tokens, b->flow.charge.usd, usd);
}

static void an_incomplete_stream_is_charged_by_what_was_seen(void **state)
{
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t end = 0; end < COUNT_OF(ends); end++) {
			const uint64_t before = limits_of(b, "acme").usd_day;
			send_it(b, rows[i].ask);
			streams(b, rows[i].bytes);
			b->now += rows[i].after;
			assert_int_equal(ends[end].happens(b), FLOW_SETTLE);
			assert_row(b, &rows[i], ends[end].name);
			assert_true(flow_attempt_report(&b->flow).settled_without_usage);
			(void)settle(b);
			release(b);
			assert_int_equal(b->flow.charge.overrun, 0);
			assert_int_equal(limits_of(b, "acme").usd_day - before, b->flow.charge.usd);
			b->now += 600 * SEC; /* whoever was at fault has a new chance */
		}
}

static void the_line_of_the_log_tells_estimates_from_counts(void **state)
{
	struct metrics_request metrics;
	struct log_request line;
	struct bench *b = *state;

	send_it(b, ASK("claude", TEXT_PART));
	streams(b, START(COUNTED) WORDS(TEN TEN TEN));
	assert_int_equal(caller_leaves(b), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_END);
	flow_report(&b->flow, b->now, &line, &metrics);
	assert_false(line.usage.known);
	assert_int_equal(line.estimated_tokens, 24);
	assert_int_equal(line.usd_nano, b->flow.charge.usd);
	assert_int_equal(metrics.usd_nano, b->flow.charge.usd);
}

static void a_count_of_the_whole_answer_is_exact_however_its_stream_ends(void **state)
{
	struct bench *b = *state;

	for (size_t end = 0; end < COUNT_OF(ends); end++) {
		print_message("%s\n", ends[end].name);
		send_it(b, ASK("claude", TEXT_PART));
		streams(b, START(COUNTED) WORDS(THOUSAND) STOPPED);
		b->now += SEC;
		assert_int_equal(ends[end].happens(b), FLOW_SETTLE);
		assert_false(b->flow.charge.without_usage);
		assert_int_equal(b->flow.charge.tokens, 34);
		(void)settle(b);
		release(b);
		b->now += 600 * SEC;
	}
}

static void measured_speed_is_what_time_is_worth(void **state)
{
	struct bench *b = *state;

	for (int i = 0; i < SPEED_ANSWERS_MIN; i++) { /* 100 tokens in 1 s behind the first */
		struct health_choice choice = { 0 };
		nsec_t wait;
		assert_int_equal(health_choose(b->view, 1, NULL, b->now, 0, &choice, &wait),
				 ERR_OK);
		health_began(&choice, b->now);
		const struct health_outcome fine = { .first = SEC,
						     .took = 2 * SEC,
						     .status = 200,
						     .output_tokens = 100,
						     .retry_after_ms = -1,
						     .answered = true };
		health_ended(&choice, &fine, b->now);
	}
	health_tick(b->view, b->now);
	send_it(b, ASK("deep", TEXT_PART));
	streams(b, START(COUNTED) WORDS(TEN));
	b->now += 5 * SEC;
	assert_int_equal(caller_leaves(b), FLOW_SETTLE);
	assert_int_equal(b->flow.charge.tokens, 14 + 500);
	assert_int_equal(settle(b), FLOW_END);
}

/* As 1,000 real answers cost before they were cancelled. */
static void cancelled_answers_leave_the_budget_what_they_did_not_cost(void **state)
{
	struct bench *b = *state;

	for (int i = 0; i < 51; i++) {
		send_it(b, ASK("claude", TEXT_PART));
		streams(b, START(COUNTED) WORDS("hello"));
		b->now += SEC;
		assert_int_equal(caller_leaves(b), FLOW_SETTLE);
		assert_int_equal(settle(b), FLOW_END);
		release(b);
	}
	const struct usage seen = { .known = true, .input = 14, .output = 2, .cache_read = 4 };
	const struct price price = { .input = 3000000, .output = 15000000, .cache_read = 300000 };
	assert_int_equal(limits_of(b, "acme").usd_day, 51 * quota_usd_used(&seen, &price));
}

/* ---- answers in one piece ---- */

static void an_answer_in_one_piece_that_was_cut_is_charged_by_its_bytes(void **state)
{
	static const struct {
		const char *name, *ask;
		size_t seen;
		uint64_t output;
	} cuts[] = {
		{ "nothing", ASK("gpt", TEXT_PART), 0, UINT64_MAX },
		{ "a beginning", ASK("gpt", TEXT_PART), 300, 100 },
		{ "more than was reserved", ASK("gpt", TEXT_PART), 1 << 20, MOST },
		{ "of a model that thinks", ASK("oh", TEXT_PART), 300, 200 },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cuts); i++)
		for (size_t end = 0; end < COUNT_OF(ends); end++) {
			if (ends[end].happens == ends_early) /* which is an answer */
				continue;
			const struct row row = { cuts[i].name,  cuts[i].ask, "", 0, ESTIMATED, 0,
						 cuts[i].output };
			send_it(b, cuts[i].ask);
			b->flow.call.seen = cuts[i].seen;
			b->now += 3 * SEC;
			assert_int_equal(ends[end].happens(b), FLOW_SETTLE);
			assert_row(b, &row, ends[end].name);
			(void)settle(b);
			release(b);
			b->now += 600 * SEC;
		}
}

static void a_stream_that_came_in_one_piece_is_charged_as_any_other(void **state)
{
	struct bench *b = *state;

	send_it(b, ASK("claude", TEXT_PART));
	assert_int_equal(provider_says(b, 200, START(COUNTED) WORDS(TEN)), FLOW_SETTLE);
	assert_true(b->flow.charge.without_usage);
	assert_int_equal(b->flow.charge.tokens, 14 + 4);
	assert_int_equal(settle(b), FLOW_ANSWER);
}

static void a_whole_answer_without_usage_is_charged_what_was_reserved(void **state)
{
	struct bench *b = *state;

	send_it(b, ASK("gpt", TEXT_PART));
	assert_int_equal(
		provider_says(b, 200,
			      "{\"choices\":[{\"message\":{\"content\":\"x\"},\"finish_reason\":"
			      "\"stop\"}]}"),
		FLOW_SETTLE);
	assert_true(b->flow.charge.without_usage);
	assert_int_equal(b->flow.charge.tokens, b->flow.reservation.ask.tokens);
	assert_int_equal(settle(b), FLOW_ANSWER);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, take_apart)
	const struct CMUnitTest tests[] = {
		TEST(an_incomplete_stream_is_charged_by_what_was_seen),
		TEST(the_line_of_the_log_tells_estimates_from_counts),
		TEST(a_count_of_the_whole_answer_is_exact_however_its_stream_ends),
		TEST(measured_speed_is_what_time_is_worth),
		TEST(cancelled_answers_leave_the_budget_what_they_did_not_cost),
		TEST(an_answer_in_one_piece_that_was_cut_is_charged_by_its_bytes),
		TEST(a_stream_that_came_in_one_piece_is_charged_as_any_other),
		TEST(a_whole_answer_without_usage_is_charged_what_was_reserved),
	};
	return cmocka_run_group_tests_name("flow_cost", tests, NULL, NULL);
}
