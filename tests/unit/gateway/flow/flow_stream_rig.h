/* flow_stream_rig.h - requests whose caller is told meanwhile, and whose provider answers in a stream: the test is the
 * driver, the clock is its own. */
#ifndef TESTS_UNIT_GATEWAY_FLOW_STREAM_RIG_H
#define TESTS_UNIT_GATEWAY_FLOW_STREAM_RIG_H

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

static inline int make(void **state)
{
	static const char *const keys[] = { KEY, NULL };

	*state = bench_new(bench_config(text, keys));
	return 0;
}

static inline int take_apart(void **state)
{
	bench_free(*state);
	return 0;
}

static inline enum flow_effect ask(struct bench *b, const char *accept, const char *body)
{
	struct http_incoming in = incoming(KEY, body);

	if (accept != NULL)
		in.headers[HTTP_ACCEPT] = slice_str(accept);
	return start(b, &in);
}

/* Up to the provider. */
static inline void send_it(struct bench *b, const char *accept, const char *body)
{
	assert_int_equal(ask(b, accept, body), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
}

static inline const char *sent_body(struct bench *b)
{
	return text_of(b, &b->flow.made->encoded.body);
}

static inline bool is_stream(struct bench *b)
{
	return flow_stream_head(&b->flow, b->work, b->now, BENCH_WALL_S * SEC);
}

/* The head of an event stream is there. */
static inline void stream_begins(struct bench *b)
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

static inline enum stream_state says(struct bench *b, const char *bytes)
{
	return flow_stream_take(&b->flow, slice_str(bytes), b->now);
}

static inline enum flow_effect provider_ends(struct bench *b, enum err err, bool timed_out)
{
	b->flow.call.err = err;
	b->flow.call.timed_out = timed_out;
	b->flow.call.detail = err == ERR_OK ? NULL : "what happened";
	return run(b, FLOW_PROVIDER_DONE);
}

static inline void assert_tells(struct bench *b, const char *part)
{
	const struct slice told = bench_notify(b);

	assert_false(slice_absent(told));
	assert_has(arena_copy(&b->call.arena, told).at, part);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, take_apart)

#endif
