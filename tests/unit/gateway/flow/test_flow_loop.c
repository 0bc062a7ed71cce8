/* A request and its tool loop: what is asked of the store, what follows from that, what it is told. The test is
 * the driver and the store. */
#include "tests/support/flow_bench.h"

#define KEY "acme-key-0123456789"
#define OTHER_KEY "acme-key-9876543210"

static const char config_text[] =
	"retries: {attempts: 2}\n"
	"providers:\n"
	"  ant: {dialect: anthropic, endpoints: [{url: \"http://127.0.0.1:9001\"}], keys: [sk]}\n"
	"models:\n"
	"  - {id: claude, provider: ant, context: 100000, price: {input: 3, output: 15}}\n"
	"tenants:\n"
	"  - {id: acme, models: {allow: [\"*\"]}, capabilities: {tools: true}, keys: [{sha256: "
	"%s}],\n"
	"     limits: {tool_rounds: 3, tool_rounds_action: refuse, loop_tokens: 100, loop_usd: "
	"0.25},\n"
	"     unknown_tool_calls: accept}\n"
	"  - {id: strict, models: {allow: [\"*\"]}, capabilities: {tools: true}, keys: [{sha256: "
	"%s}],\n"
	"     limits: {enforce: false, loop_tokens: 100, loop_usd: 0}, unknown_tool_calls: "
	"refuse}\n";

#define MESSAGE(messages)                                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"sampling/createMessage\",\"params\":"    \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}"  \
	"}" messages "],\"tools\":[{\"name\":\"f\",\"inputSchema\":{\"type\":\"object\"}}]," \
	"\"maxTokens\":50}}"
#define CALL(id) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"f\",\"input\":{}}"
#define RESULT(id) "{\"type\":\"tool_result\",\"toolUseId\":\"" id "\",\"content\":[]}"
#define ROUND(calls, results)                               \
	",{\"role\":\"assistant\",\"content\":[" calls "]}" \
	",{\"role\":\"user\",\"content\":[" results "]}"
#define ONE_ROUND ROUND(CALL("a"), RESULT("a"))
#define USAGE "\"usage\":{\"input_tokens\":10,\"output_tokens\":4}}"
#define SAYS(content) "{\"id\":\"msg_1\",\"content\":[" content "]," USAGE
#define THINKS "{\"type\":\"thinking\",\"thinking\":\"secret\",\"signature\":\"s\"},"

static int set_up(void **state)
{
	static const char *const keys[] = { KEY, OTHER_KEY, NULL };
	struct bench *b = bench_new(bench_config(config_text, keys));

	b->stateful = true;
	*state = b;
	return 0;
}

static int tear_down(void **state)
{
	bench_free(*state);
	return 0;
}

static struct state_load *load_of(struct bench *b)
{
	return &b->flow.state->load;
}

static struct state_save *save_of(struct bench *b)
{
	return &b->flow.state->save;
}

/* Up to the provider's answer and the settlement. */
static enum flow_effect answered(struct bench *b, const char *says)
{
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(provider_says(b, 200, says), FLOW_SETTLE);
	return settle(b);
}

static bool body_has(struct bench *b, const char *part)
{
	const struct slice body = gather_flat(&b->call.answer.body, &b->call.arena);

	return memmem(body.at, body.len, part, strlen(part)) != NULL;
}

static bool sent_has(struct bench *b, const char *part)
{
	const struct slice body = gather_flat(&b->flow.made->encoded.body, &b->call.arena);

	return memmem(body.at, body.len, part, strlen(part)) != NULL;
}

static void calls_begin_a_loop_that_their_results_find(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE(""));

	assert_int_equal(start(b, &in), FLOW_RESERVE); /* nothing to ask */
	assert_int_equal(answered(b, SAYS(CALL("a") "," CALL("b"))), FLOW_SAVE);
	const struct state_save save = *save_of(b);
	const struct state_key issued[] = { save.calls[0], save.calls[1] };
	assert_int_equal(b->flow.state->saving, FLOW_SAVES_FIRST);
	assert_false(state_key_none(&save.loop));
	assert_int_equal(save.call_count, 2);
	assert_int_equal(save.rounds, 0);
	assert_int_equal(save.tokens, 14);
	assert_true(slice_absent(save.blocks));
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	assert_false(body_has(b, "reasoning_not_saved"));
	release(b);

	in = incoming(KEY, MESSAGE(ROUND(CALL("a") "," CALL("b"), RESULT("a") "," RESULT("b"))));
	assert_int_equal(start(b, &in), FLOW_LOAD);
	assert_int_equal(load_of(b)->call_count, 2);
	for (int i = 0; i < 2; i++)
		assert_true(state_key_eq(&load_of(b)->calls[i], &issued[i]));
	assert_int_equal(load_of(b)->block_count, 1);
	assert_true(state_key_eq(&load_of(b)->blocks[0], &issued[0]));
	load_of(b)->loop = (struct state_loop){ .id = save.loop, .known = 2, .tokens = 14 };
	assert_int_equal(run(b, FLOW_LOADED), FLOW_RESERVE);
	assert_int_equal(answered(b, SAYS(CALL("c"))), FLOW_SAVE);
	assert_true(state_key_eq(&save_of(b)->loop, &save.loop));
	assert_int_equal(save_of(b)->rounds, 1);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	release(b);
}

/* Two models as good as each other, of a provider with four endpoints. */
static const char four_endpoints[] =
	"retries: {attempts: 3}\n"
	"providers:\n"
	"  ant: {dialect: anthropic, keys: [sk-first, sk-other], endpoints: [\n"
	"    {url: \"http://127.0.0.1:9001\"}, {url: \"http://127.0.0.1:9002\"},\n"
	"    {url: \"http://127.0.0.1:9003\"}, {url: \"http://127.0.0.1:9004\"}]}\n"
	"models:\n"
	"  - {id: claude, provider: ant, context: 100000, price: {input: 3, output: 15},\n"
	"     intelligence: 0.5}\n"
	"  - {id: other, provider: ant, context: 100000, price: {input: 3, output: 15},\n"
	"     intelligence: %s}\n"
	"tenants:\n"
	"  - {id: acme, models: {allow: [%s\"other\"]}, capabilities: {tools: true},\n"
	"     limits: {requests_per_minute: 6000, tokens_per_minute: 100000000},\n"
	"     keys: [{sha256: %%s}]}\n";

static struct config *four_endpoints_where(const char *intelligence, const char *allowed)
{
	static const char *const keys[] = { KEY, NULL };
	char text[sizeof(four_endpoints) + 64];

	(void)snprintf(text, sizeof(text), four_endpoints, intelligence, allowed);
	return bench_config(text, keys);
}

/* A round of a loop whose last one was answered at `place`: up to the provider. */
static void go_on(struct bench *b, struct state_target target)
{
	static struct http_incoming in;

	in = incoming(KEY, MESSAGE(ONE_ROUND));
	assert_int_equal(start(b, &in), FLOW_LOAD);
	load_of(b)->loop = (struct state_loop){ .id = { { 1 } }, .known = 1, .target = target };
	assert_int_equal(run(b, FLOW_LOADED), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
}

/* And its answer: the place that it tells. */
static struct state_target calls_again(struct bench *b)
{
	assert_int_equal(provider_says(b, 200, SAYS(CALL("c"))), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	const struct state_target target = save_of(b)->target;
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	release(b);
	return target;
}

static void assert_logged(struct bench *b, enum log_held held)
{
	struct log_request line;
	struct metrics_request metrics;

	flow_report(&b->flow, b->now, &line, &metrics);
	assert_int_equal(line.route.held, held);
}

static void a_loop_goes_on_where_it_was(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE(""));

	bench_use(b, four_endpoints_where("0.5", "\"claude\", "));
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(answered(b, SAYS(CALL("a"))), FLOW_SAVE);
	const struct state_target first = save_of(b)->target;
	const uint32_t endpoint = b->flow.walk.endpoint, key = b->flow.retries.tried[0].key;
	assert_false(state_target_none(&first));
	assert_logged(b, LOG_HELD_NOTHING);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	release(b);
	/* the other model is better by now, and has another number */
	bench_use(b, four_endpoints_where("0.6", "\"claude\", "));
	for (int i = 0; i < 10; i++) {
		go_on(b, first);
		assert_true(slice_eq(b->flow.walk.model_id, SLICE("claude")));
		assert_int_equal(b->flow.walk.endpoint, endpoint);
		assert_int_equal(b->flow.retries.tried[0].key, key);
		const struct state_target same = calls_again(b);
		assert_memory_equal(&same, &first, sizeof(first));
		assert_logged(b, LOG_HELD_ENDPOINT);
	}
}

/* In the first round that fails there, too, without the caller's noticing. */
static void a_loop_whose_endpoint_fails_goes_on_at_another_and_stays_there(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE(""));

	bench_use(b, four_endpoints_where("0.5", "\"claude\", "));
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(answered(b, SAYS(CALL("a"))), FLOW_SAVE);
	const struct state_target first = save_of(b)->target;
	const uint32_t endpoint = b->flow.walk.endpoint;
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	release(b);

	go_on(b, first);
	assert_int_equal(b->flow.walk.endpoint, endpoint);
	assert_int_equal(provider_says(b, 529, "{}"), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	const uint32_t next = b->flow.walk.endpoint;
	assert_int_not_equal(next, endpoint);
	const struct state_target second = calls_again(b);
	assert_memory_not_equal(&second, &first, sizeof(first));
	assert_logged(b, LOG_HELD_MODEL);
	for (int i = 0; i < 3; i++) {
		go_on(b, second);
		assert_int_equal(b->flow.walk.endpoint, next);
		(void)calls_again(b);
	}
}

static void a_loop_whose_model_is_withdrawn_goes_on_with_another(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE(""));

	bench_use(b, four_endpoints_where("0.5", "\"claude\", "));
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(answered(b, SAYS(CALL("a"))), FLOW_SAVE);
	const struct state_target first = save_of(b)->target;
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	release(b);
	bench_use(b, four_endpoints_where("0.5", ""));
	go_on(b, first);
	assert_true(slice_eq(b->flow.walk.model_id, SLICE("other")));
	(void)calls_again(b);
	assert_logged(b, LOG_HELD_NOTHING);
}

static void the_last_answer_of_a_loop_counts_and_nobody_waits_for_that(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE(ONE_ROUND));

	assert_int_equal(start(b, &in), FLOW_LOAD);
	load_of(b)->loop = (struct state_loop){ .id = { { 1 } }, .known = 1 };
	assert_int_equal(run(b, FLOW_LOADED), FLOW_RESERVE);
	assert_int_equal(answered(b, SAYS("{\"type\":\"text\",\"text\":\"x\"}")), FLOW_SAVE);
	assert_int_equal(b->flow.state->saving, FLOW_SAVES);
	assert_int_equal(save_of(b)->tokens, 14);
	assert_int_equal(save_of(b)->call_count, 0);
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	release(b);
}

static void rounds_are_those_of_the_history_or_of_the_loop(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE(ONE_ROUND));

	for (uint32_t rounds = 0; rounds < 4; rounds++) {
		assert_int_equal(start(b, &in), FLOW_LOAD);
		load_of(b)->loop =
			(struct state_loop){ .id = { { 1 } }, .known = 1, .rounds = rounds };
		assert_int_equal(run(b, FLOW_LOADED), rounds < 2 ? FLOW_RESERVE : FLOW_ANSWER);
		if (rounds < 2)
			assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
		else
			assert_int_equal(b->flow.end.err, ERR_TOOL_ROUNDS);
	}
}

static void a_loop_that_has_spent_what_it_may_is_refused(void **state)
{
	static const struct {
		const char *name;
		uint64_t tokens, usd;
		enum err refusal;
		const char *data;
	} rows[] = {
		{ "almost", 99, 249999999, ERR_OK, NULL },
		{ "tokens", 100, 0, ERR_LOOP_TOKENS,
		  "\"rule\":\"loop_tokens\",\"spent\":100,\"allowed\":100}" },
		{ "money", 99, 250000000, ERR_LOOP_USD,
		  "\"rule\":\"loop_usd\",\"spent\":0.250000000,\"allowed\":0.250000000}" },
		{ "much money", 0, 12000000345, ERR_LOOP_USD, "\"spent\":12.000000345," },
		{ "tokens before money", 101, 1000000000, ERR_LOOP_TOKENS, "\"spent\":101," },
	};
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE(ONE_ROUND));

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		print_message("%s\n", rows[i].name);
		assert_int_equal(start(b, &in), FLOW_LOAD);
		load_of(b)->loop = (struct state_loop){
			.id = { { 1 } }, .known = 1, .tokens = rows[i].tokens, .usd = rows[i].usd
		};
		if (rows[i].refusal == ERR_OK) {
			assert_int_equal(run(b, FLOW_LOADED), FLOW_RESERVE);
			assert_null(b->flow.state->loop.spent);
			assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
			continue;
		}
		assert_int_equal(run(b, FLOW_LOADED), FLOW_ANSWER);
		assert_int_equal(b->flow.end.err, rows[i].refusal);
		assert_int_equal(b->call.answer.status, 403);
		assert_string_equal(b->flow.state->loop.spent, err_info(rows[i].refusal)->reason);
		assert_true(body_has(b, rows[i].data));
		release(b);
	}
}

static void a_loop_that_is_not_enforced_goes_on_and_is_counted(void **state)
{
	static const struct {
		uint64_t tokens, usd;
		const char *spent;
	} rows[] = {
		{ 99, 0, NULL }, /* what has cost nothing may go on, where nothing may be spent */
		{ 99, 1, "loop_usd" },
		{ 100, 1, "loop_tokens" },
	};
	struct bench *b = *state;
	struct http_incoming in = incoming(OTHER_KEY, MESSAGE(ONE_ROUND));

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_int_equal(start(b, &in), FLOW_LOAD);
		load_of(b)->loop = (struct state_loop){
			.id = { { 1 } }, .known = 1, .tokens = rows[i].tokens, .usd = rows[i].usd
		};
		assert_int_equal(run(b, FLOW_LOADED), FLOW_RESERVE);
		if (rows[i].spent == NULL)
			assert_null(b->flow.state->loop.spent);
		else
			assert_string_equal(b->flow.state->loop.spent, rows[i].spent);
		assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
	}
}

static void calls_that_nobody_issued_are_counted_or_refused(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY, MESSAGE(ONE_ROUND));

	assert_int_equal(start(b, &in), FLOW_LOAD);
	assert_int_equal(run(b, FLOW_LOADED), FLOW_RESERVE);
	assert_int_equal(b->flow.state->loop.unknown, 1);
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);

	in = incoming(OTHER_KEY, MESSAGE(ONE_ROUND));
	assert_int_equal(start(b, &in), FLOW_LOAD);
	assert_int_equal(run(b, FLOW_LOADED), FLOW_ANSWER);
	assert_int_equal(b->flow.end.err, ERR_UNKNOWN_CALLS);

	/* who cannot be asked has not said no */
	assert_int_equal(start(b, &in), FLOW_LOAD);
	load_of(b)->away = true;
	assert_int_equal(run(b, FLOW_LOADED), FLOW_RESERVE);
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
}

/* The record that an answer with thinking leaves, NUL-terminated and malloc'ed. */
static char *thinking_record(struct bench *b, bool kept)
{
	struct http_incoming in = incoming(KEY, MESSAGE(""));

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(answered(b, SAYS(THINKS CALL("a"))), FLOW_SAVE);
	const struct slice blocks = save_of(b)->blocks;
	assert_false(slice_absent(blocks));
	char *record = calloc(1, blocks.len + 1);
	assert_non_null(record);
	(void)memcpy(record, blocks.at, blocks.len);
	save_of(b)->blocks_kept = kept;
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	assert_true(body_has(b, "reasoning_not_saved") == !kept);
	assert_false(body_has(b, "secret"));
	release(b);
	return record;
}

/* The next request of that loop, as far as the provider. */
static void next_round(struct bench *b, struct slice *record)
{
	struct http_incoming in = incoming(KEY, MESSAGE(ONE_ROUND));

	assert_int_equal(start(b, &in), FLOW_LOAD);
	load_of(b)->loop = (struct state_loop){ .id = { { 1 } }, .known = 1 };
	load_of(b)->found = record;
	assert_int_equal(run(b, FLOW_LOADED), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_true(sent_has(b, "secret"));
}

static void thinking_is_kept_and_goes_back(void **state)
{
	struct bench *b = *state;
	char *text = thinking_record(b, true);
	struct slice record = slice_str(text);

	next_round(b, &record);
	/* an answer without thinking says so, because the loop has some */
	assert_int_equal(provider_says(b, 200, SAYS(CALL("b"))), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_SAVE);
	assert_false(slice_absent(save_of(b)->blocks));
	save_of(b)->blocks_kept = true;
	assert_int_equal(run(b, FLOW_SAVED), FLOW_ANSWER);
	assert_false(body_has(b, "reasoning_not_saved"));
	release(b);
	free(text);
}

static void what_cannot_be_kept_is_said(void **state)
{
	free(thinking_record(*state, false));
}

static void blocks_that_the_provider_refuses_are_left_out_once(void **state)
{
	static const char bound[] =
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
		"\"messages.1: The block is bound to a different conversation\"}}";
	struct bench *b = *state;
	char *text = thinking_record(b, true);
	struct slice record = slice_str(text);

	next_round(b, &record);
	assert_int_equal(provider_says(b, 400, bound), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_false(sent_has(b, "secret"));
	assert_true(b->flow.state->loop.unbound);
	assert_int_equal(provider_says(b, 400, bound), FLOW_SETTLE);
	assert_int_not_equal(settle(b), FLOW_RESERVE);
	release(b);
	free(text);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(calls_begin_a_loop_that_their_results_find),
		TEST(a_loop_goes_on_where_it_was),
		TEST(a_loop_whose_endpoint_fails_goes_on_at_another_and_stays_there),
		TEST(a_loop_whose_model_is_withdrawn_goes_on_with_another),
		TEST(the_last_answer_of_a_loop_counts_and_nobody_waits_for_that),
		TEST(rounds_are_those_of_the_history_or_of_the_loop),
		TEST(a_loop_that_has_spent_what_it_may_is_refused),
		TEST(a_loop_that_is_not_enforced_goes_on_and_is_counted),
		TEST(calls_that_nobody_issued_are_counted_or_refused),
		TEST(thinking_is_kept_and_goes_back),
		TEST(what_cannot_be_kept_is_said),
		TEST(blocks_that_the_provider_refuses_are_left_out_once),
	};
	return cmocka_run_group_tests_name("flow_loop", tests, NULL, NULL);
}
