/* test_flow_count.c - requests whose tokens are counted: where they go, what they take of limits, and what they leave
 * behind. */
#include "tests/support/flow_bench.h"

#define KEY "acme-key-0123456789"
#define NUMBER "{\"input_tokens\":12}"
#define ERROR(type) "{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"no\"}}"

#define FILE_WITH(endpoints, profile, limits)                                                     \
	"listen: [{address: \"127.0.0.1:8080\"}]\nproviders:\n"                                   \
	"  ant: {dialect: anthropic, endpoints: [" endpoints "], keys: [a], breaker: {failures: " \
	"2}}\nmodels:\n  - {id: claude, provider: ant, name: claude-real, context: 100000, "      \
	"price: "                                                                                 \
	"{input: 3, output: 15}" profile "}\ntenants:\n  - {id: acme, models: {allow: [\"*\"]}, " \
	"limits: {" limits "}, keys: [{sha256: %s, server: s}]}\n"
#define E1 "{url: \"http://127.0.0.1:9001\"}"
#define E2 "{url: \"http://127.0.0.1:9002\"}"

static struct config *load(const char *text)
{
	static const char *const keys[] = { KEY, NULL };

	return bench_config(text, keys);
}

static bool write_body(struct sampling_raw *raw, const struct sampling_target *target,
		       struct arena *into, struct gather *body)
{
	(void)raw;
	(void)into;
	assert_true(slice_eq(target->model, SLICE("claude-real")));
	gather_lit(body, "{}");
	return true;
}

static void on_digest(void *owner, struct sha256_sum *sum)
{
	(void)owner;
	(void)sum;
}

static void on_done(void *owner, const struct sampling_outcome *outcome)
{
	(void)owner;
	(void)outcome;
}

static const struct sampling_front front = { .name = "test", .digest = on_digest, .done = on_done };

/* Of a request. */
static size_t memory_most = REQUEST_ARENA_MAX;

struct count {
	struct arena arena; /* the caller's */
	struct sampling_ask ask;
	struct sampling_raw raw;
	struct sampling_request request;
	struct caller caller;
	struct message message;
	struct block block;
};

static enum flow_effect step(struct bench *b, enum flow_event event)
{
	const struct flow_env env = { .config = b->config,
				      .health = b->view,
				      .json = b->work,
				      .streams = &b->streams,
				      .now = b->now,
				      .wall_ns = (uint64_t)BENCH_WALL_S * SEC };

	return flow_run(&b->flow, &env, event);
}

/* Up to its limits, or its end. */
static enum flow_effect begin(struct bench *b, struct count *c)
{
	static const uint8_t random[SAMPLING_CHANCE_BYTES] = { 1, 2, 3 };
	const struct caller_sources sources = { .config = b->config, .json = b->work };
	const struct credentials shown = { .shown = true, .secret = SLICE(KEY) };
	struct caller_refusal why;

	arena_give(&b->call.arena);
	arena_init(&b->call.arena, &b->pool, memory_most);
	arena_init(&c->arena, &b->pool, REQUEST_ARENA_MAX);
	sampling_ids_make(&b->call.ids, random, (struct slice){ NULL, 0 });
	assert_true(caller_find(&sources, &shown, &c->arena, &c->caller, &why));
	c->block = (struct block){ .type = BLOCK_TEXT, .text = { .text = SLICE("hi") } };
	c->message = (struct message){ .count = 1 };
	c->request = (struct sampling_request){ .revision = REVISION_2025_11_25,
						.max_tokens = 1,
						.messages = &c->message,
						.message_count = 1,
						.blocks = &c->block,
						.block_count = 1,
						.prefer = { .cost = 0 } };
	c->raw = (struct sampling_raw){ .dialect = DIALECT_ANTHROPIC,
					.model = SLICE("claude"),
					.only = true,
					.counts = true,
					.write = write_body };
	c->ask = (struct sampling_ask){ .caller = &c->caller,
					.ids = &b->call.ids,
					.arena = &b->call.arena,
					.request = &c->request,
					.body = SLICE("{}"),
					.at = SLICE(""),
					.started = b->now,
					.deadline = b->now + 55 * SEC,
					.raw = &c->raw };
	flow_init(&b->flow, &c->ask, &front, NULL);
	return step(b, FLOW_START);
}

static enum flow_effect take(struct bench *b)
{
	struct limiter *limiter = &b->memory.limiter;
	enum flow_event event;

	assert_int_equal(limiter->reserve(limiter, &b->flow.reservation), LIMITER_DONE);
	b->flow.awaited |= FLOW_PENDING_LIMITS; /* a store whose answer comes later */
	assert_true(flow_answered(&b->flow, FLOW_PENDING_LIMITS, b->now, &event));
	assert_int_equal(event, FLOW_RESERVED);
	return step(b, event);
}

static enum flow_effect give(struct bench *b)
{
	struct limiter *limiter = &b->memory.limiter;

	assert_int_equal(b->flow.charge.tokens, 0);
	assert_int_equal(b->flow.charge.usd, 0);
	(void)limiter->settle(limiter, &b->flow.reservation, 0, 0, b->now);
	return step(b, FLOW_SETTLED);
}

static enum flow_effect say(struct bench *b, uint16_t status, const char *body)
{
	struct upstream_call *call = &b->flow.call;

	call->err = status == 0 ? ERR_PROVIDER_DOWN : ERR_OK;
	call->bytes_sent = true;
	call->sent_at = b->now;
	b->now += 10 * MSEC;
	call->done_at = b->now;
	call->answer = (struct provider_answer){ .status = status, .body = slice_str(body) };
	return step(b, FLOW_PROVIDER_DONE);
}

struct said {
	uint16_t status; /* 0: no answer */
	const char *body;
};

/* Plays one to its end with what the provider says; what was not said is not asked for. Whether a number has come. */
static bool play(struct bench *b, const struct said *said, uint32_t count)
{
	struct count c;
	uint32_t next = 0;
	bool placed = false;

	for (enum flow_effect effect = begin(b, &c); effect != FLOW_ANSWER;) {
		switch (effect) {
		case FLOW_RESERVE:
			assert_int_equal(b->flow.reservation.ask.usd, 0);
			assert_int_equal(b->flow.reservation.ask.tokens, 0);
			assert_int_equal(b->flow.reservation.ask.requests, !placed);
			assert_int_equal(b->flow.reservation.ask.concurrent, !placed);
			effect = take(b);
			placed = placed || effect != FLOW_ANSWER;
			break;
		case FLOW_SEND:
			assert_true(next < count);
			assert_true(b->flow.call.timeouts.first_byte <= 10 * SEC);
			effect = say(b, said[next].status, said[next].body);
			next++;
			break;
		case FLOW_SETTLE:
			effect = give(b);
			break;
		default:
			fail_msg("effect %d", (int)effect);
		}
	}
	assert_true(next == count || memory_most != REQUEST_ARENA_MAX);
	assert_null(b->flow.walk.choice.at);
	arena_give(&c.arena);
	if (placed)
		b->memory.limiter.release(&b->memory.limiter, flow_place(&b->flow));
	const struct limit_state limits = limits_of(b, "acme");
	assert_int_equal(limits.concurrent, 0);
	assert_int_equal(limits.usd_day, 0);
	assert_int_equal(limits.tokens.tat <= b->now, true);
	assert_int_equal(limits.requests.tat, 0);
	return b->flow.out.end == SAMPLING_RESULT && b->flow.out.answer != NULL;
}

static void a_number_is_the_result_and_a_failure_is_an_estimate(void **state)
{
	static const struct {
		const char *name;
		struct said said[2];
		uint32_t count;
		bool number;
		enum err err;
	} rows[] = {
		{ "a number", { { 200, NUMBER } }, 1, true, ERR_OK },
		{ "elsewhere", { { 500, "" }, { 200, NUMBER } }, 2, true, ERR_OK },
		{ "nowhere", { { 529, "" }, { 0, "" } }, 2, false, ERR_OK },
		{ "a stub", { { 200, "{}" }, { 200, "{\"input_tokens\":0}" } }, 2, false, ERR_OK },
		{ "no such path", { { 404, "" } }, 1, false, ERR_OK },
		{ "refused",
		  { { 400, ERROR("invalid_request_error") } },
		  1,
		  false,
		  ERR_PROVIDER_REJECTED },
		{ "failed, then refused",
		  { { 0, "" }, { 413, ERROR("request_too_large") } },
		  2,
		  false,
		  ERR_PROVIDER_REJECTED },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bench *b = bench_new(load(FILE_WITH(E1 ", " E2, "", "usd_per_day: 0")));
		print_message("%s\n", rows[i].name);
		assert_int_equal(play(b, rows[i].said, rows[i].count), rows[i].number);
		assert_int_equal(b->flow.out.fault.err, rows[i].err);
		if (rows[i].err == ERR_OK)
			assert_int_equal(b->flow.out.end, SAMPLING_RESULT);
		else /* its words may pass */
			assert_non_null(b->flow.out.answer);
		bench_free(b);
	}
}

static void a_host_without_the_path_is_not_asked_for_an_hour(void **state)
{
	static const struct said missing = { 405, "" }, number = { 200, NUMBER };
	struct bench *b = bench_new(load(FILE_WITH(E1, "", "")));

	(void)state;
	assert_false(play(b, &missing, 1));
	for (int i = 0; i < 3; i++)
		assert_false(play(b, NULL, 0));
	b->now += 3601 * SEC;
	assert_true(play(b, &number, 1));
	bench_use(b, load(FILE_WITH(E1, ", profile: {count_tokens: false}", "")));
	assert_false(play(b, NULL, 0));
	bench_free(b);
}

static void counts_open_no_circuit_and_cool_no_key(void **state)
{
	static const struct said broken = { 500, "" }, number = { 200, NUMBER };
	static const struct said limited = { 429, ERROR("rate_limit_error") };
	struct bench *b = bench_new(load(FILE_WITH(E1, "", "")));

	(void)state;
	for (int i = 0; i < 20; i++)
		assert_false(play(b, i % 2 == 0 ? &broken : &limited, 1));
	assert_int_equal(health_wait(b->view, 0, 0, b->now), 0);
	assert_int_equal(health_cools(b->view, 0, 0, b->now), 0);
	assert_true(play(b, &number, 1));
	bench_free(b);
}

/* Beside a host that cannot be asked: its limits count all the same. */
static void their_rate_is_their_own(void **state)
{
	static const struct said number = { 200, NUMBER };
	struct bench *b = bench_new(load(FILE_WITH(E1, "", "count_tokens_per_minute: 2")));

	(void)state;
	assert_true(play(b, &number, 1));
	assert_true(play(b, &number, 1));
	assert_false(play(b, NULL, 0));
	assert_int_equal(b->flow.out.fault.err, ERR_RATE_LIMITED);
	assert_string_equal(b->flow.out.data.limit, "count_tokens_per_minute");
	assert_string_equal(b->flow.out.data.scope, "tenant");
	assert_int_equal(b->flow.out.data.retry_after_ms, 30000 - 2 * 10);
	b->now += 30 * SEC;
	assert_true(play(b, &number, 1));
	bench_free(b);
}

static void who_cannot_be_asked_at_all_costs_a_place_and_no_call(void **state)
{
	struct bench *b = bench_new(load(FILE_WITH(E1, "", "count_tokens_per_minute: 2")));
	const struct health_outcome down = { .err = ERR_PROVIDER_DOWN,
					     .took = 1,
					     .retry_after_ms = -1 };
	struct health_choice choice = { 0 };
	nsec_t wait;

	(void)state;
	for (int i = 0; i < 4; i++) {
		if (health_choose(b->view, 0, NULL, b->now, UINT64_MAX, &choice, &wait) != ERR_OK)
			break;
		health_began(&choice, b->now);
		health_ended(&choice, &down, b->now);
	}
	assert_int_not_equal(health_wait(b->view, 0, 0, b->now), 0);
	assert_false(play(b, NULL, 0));
	assert_int_equal(b->flow.out.end, SAMPLING_RESULT);
	assert_false(play(b, NULL, 0));
	assert_false(play(b, NULL, 0));
	assert_int_equal(b->flow.out.fault.err, ERR_RATE_LIMITED);
	bench_free(b);
}

static void without_memory_nothing_is_left_behind(void **state)
{
	static const struct said said[] = { { 500, "" }, { 200, NUMBER } };
	size_t failed = 0;
	bool came = false;

	(void)state;
	for (memory_most = 64; !came; memory_most += 64) {
		struct bench *b = bench_new(load(FILE_WITH(E1 ", " E2, "", "")));
		came = play(b, said, COUNT_OF(said));
		if (!came && b->flow.out.end == SAMPLING_REFUSED)
			assert_int_equal(b->flow.out.fault.err, ERR_BUSY);
		failed += !came;
		bench_free(b);
	}
	memory_most = REQUEST_ARENA_MAX;
	assert_true(failed > 10);
}

static void who_leaves_gives_back_what_was_taken(void **state)
{
	struct bench *b = bench_new(load(FILE_WITH(E1, "", "")));
	struct count c;

	(void)state;
	assert_int_equal(begin(b, &c), FLOW_RESERVE);
	assert_int_equal(step(b, FLOW_CLIENT_GONE), FLOW_END);
	assert_null(b->flow.walk.choice.at);
	arena_give(&c.arena);
	for (int given_up = 0; given_up < 2; given_up++) {
		assert_int_equal(begin(b, &c), FLOW_RESERVE);
		assert_int_equal(take(b), FLOW_SEND);
		assert_int_equal(step(b, given_up != 0 ? FLOW_GIVEN_UP : FLOW_CLIENT_GONE),
				 FLOW_SETTLE);
		assert_int_equal(give(b), given_up != 0 ? FLOW_ANSWER : FLOW_END);
		b->memory.limiter.release(&b->memory.limiter, flow_place(&b->flow));
		assert_null(b->flow.walk.choice.at);
		assert_int_equal(limits_of(b, "acme").concurrent, 0);
		assert_int_equal(health_wait(b->view, 0, 0, b->now), 0);
		arena_give(&c.arena);
	}
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_is_the_result_and_a_failure_is_an_estimate),
		cmocka_unit_test(a_host_without_the_path_is_not_asked_for_an_hour),
		cmocka_unit_test(counts_open_no_circuit_and_cool_no_key),
		cmocka_unit_test(their_rate_is_their_own),
		cmocka_unit_test(who_cannot_be_asked_at_all_costs_a_place_and_no_call),
		cmocka_unit_test(without_memory_nothing_is_left_behind),
		cmocka_unit_test(who_leaves_gives_back_what_was_taken),
	};

	return cmocka_run_group_tests_name("flow_count", tests, NULL, NULL);
}
