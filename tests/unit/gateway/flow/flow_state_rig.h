/* flow_state_rig.h - requests that have to do with others: the test is the driver, and the stores are its own. */
#ifndef TESTS_UNIT_GATEWAY_FLOW_STATE_RIG_H
#define TESTS_UNIT_GATEWAY_FLOW_STATE_RIG_H

#include "tests/support/answer_field.h"
#include "tests/support/flow_bench.h"

#define KEY "acme-key-0123456789"
#define SESSION "0123456789abcdef0123456789abcdef"

static const char config_text[] =
	"retries: {attempts: 1}\n"
	"providers:\n"
	"  ant: {dialect: anthropic, endpoints: [{url: \"http://127.0.0.1:9001\"}], keys: [sk]}\n"
	"models:\n"
	"  - {id: claude, provider: ant, context: 100000, price: {input: 3, output: 15}}\n"
	"tenants:\n"
	"  - {id: acme, models: {allow: [\"*\"]}, capabilities: {tools: true}, keys: [{sha256: "
	"%s}]}\n";

#define MESSAGE(id, extra)                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"sampling/createMessage\",\"params\":" \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}}]," \
	"\"maxTokens\":50" extra "}}"
#define ASK MESSAGE("\"a-7\"", "")
#define SMALL(method, params) \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"
#define NOTIFICATION(method, params) \
	"{\"jsonrpc\":\"2.0\",\"method\":\"" method "\",\"params\":" params "}"
#define CLAUDE_SAYS                                                                                \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-real\"," \
	"\"content\":[{\"type\":\"text\",\"text\":\"Hello\"}],\"stop_reason\":\"end_turn\","       \
	"\"usage\":{\"input_tokens\":10,\"output_tokens\":4}}"

static inline struct config *load_config(void)
{
	static const char *const keys[] = { KEY, NULL };

	return bench_config(config_text, keys);
}

static inline int set_up(void **state)
{
	struct bench *b = bench_new(load_config());

	b->stateful = true;
	*state = b;
	return 0;
}

static inline int tear_down(void **state)
{
	bench_free(*state);
	return 0;
}

static inline struct http_incoming in_session(const char *body)
{
	struct http_incoming in = incoming(KEY, body);

	in.headers[HTTP_SESSION_ID] = SLICE(SESSION);
	return in;
}

/* The store's answer to FLOW_LOAD. */
static inline enum flow_effect loaded(struct bench *b, enum state_session is,
				      enum revision revision)
{
	struct state_load *load = &b->flow.state->load;

	assert_false(state_key_none(&load->session));
	load->session_is = is;
	load->revision = (uint32_t)revision;
	return run(b, FLOW_LOADED);
}

static inline enum flow_effect known(struct bench *b)
{
	return loaded(b, STATE_SESSION_KNOWN, REVISION_2025_11_25);
}

static inline enum flow_effect joined(struct bench *b, enum idempotency_verdict verdict)
{
	b->flow.state->copy.verdict = verdict;
	return run(b, FLOW_JOINED);
}

/* With a NUL behind it; NULL when the answer has none. */
static inline const char *field(struct bench *b, const char *name)
{
	const struct slice value = answer_field(&b->call.answer, slice_str(name));

	return slice_absent(value) ? NULL : arena_copy(&b->call.arena, value).at;
}

/* Its session and calls are known, it is the first of its copies, and within its limits. */
static inline void goes_to_its_provider(struct bench *b, struct http_incoming *in)
{
	assert_int_equal(start(b, in), FLOW_LOAD);
	assert_int_equal(known(b), FLOW_JOIN);
	assert_int_equal(joined(b, IDEMPOTENCY_LEADS), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
}

#define WALK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
