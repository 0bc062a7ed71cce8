/* test_flow_wait.c - what may happen while a request waits for its next attempt, and in an outage. */
#include "tests/unit/gateway/flow/flow_retry_rig.h"

/* ---- while it waits ------------------------------------------------------------------------------ */

/* Up to the wait after a first attempt that failed. */
static struct bench *begin_waiting_for(const char *config, const char *ask)
{
	static const struct outcome cut[] = { CUT };
	struct bench *b = bench_new(load(config));
	struct http_incoming in = incoming(KEY, ask);
	struct play p = { .b = b, .next = cut, .end = cut + 1, .trace = fopen("/dev/null", "w") };

	assert_non_null(p.trace);
	enum flow_effect effect = start(b, &in);
	while (effect != FLOW_WAIT)
		effect = play_step(&p, effect);
	(void)fclose(p.trace);
	return b;
}

static struct bench *begin_waiting(const char *config)
{
	return begin_waiting_for(config, ASK);
}

static void a_caller_that_leaves_meanwhile_leaves_nothing(void **state)
{
	struct bench *b = begin_waiting(alone);

	(void)state;
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
	release(b);
	assert_int_equal(limits_of(b, "acme").concurrent, 0);
	assert_int_equal(b->flow.end.err, ERR_CANCELLED);
	bench_free(b);
}

static void a_process_that_leaves_meanwhile_says_so(void **state)
{
	struct bench *b = begin_waiting(alone);

	(void)state;
	assert_int_equal(run(b, FLOW_GIVEN_UP), FLOW_ANSWER);
	release(b);
	assert_has(answer_text(b), "\"reason\":\"draining\"");
	bench_free(b);
}

static void a_process_that_leaves_during_the_second_answer_gives_the_first(void **state)
{
	struct bench *b = bench_new(load(not_forced));
	struct http_incoming in = incoming(KEY, ASK_TOOL);

	(void)state;
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(provider_says(b, 200, CLAUDE_SAYS(TEXT("one"))), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	b->flow.call.bytes_sent = true;
	assert_int_equal(run(b, FLOW_GIVEN_UP), FLOW_SETTLE);
	assert_true(b->flow.charge.without_usage);
	assert_int_equal(settle(b), FLOW_ANSWER);
	release(b);
	assert_int_equal(b->call.answer.status, 200);
	assert_has(answer_text(b), "\"text\":\"one\"");
	assert_int_equal(b->flow.retries.tried[1].err, ERR_DRAINING);
	bench_free(b);
}

/* What no limit has counted yet waits for a key only while few others do. */
static void a_first_attempt_waits_for_a_key_unless_many_do(void **state)
{
	static const struct outcome limited[] = { LIMITED("3") };
	struct bench *b = bench_new(load(alone));
	struct http_incoming in = incoming(KEY, ASK);

	(void)state;
	free(play(b, ASK, 2000, limited, COUNT_OF(limited)));
	assert_int_equal(b->call.answer.status, 503);
	b->crowded = true;
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 503);
	assert_has(answer_text(b), "\"reason\":\"provider_rate_limited\"");
	assert_has(answer_text(b), "\"retryAfterMs\":3000");
	b->crowded = false;
	assert_int_equal(start(b, &in), FLOW_WAIT);
	assert_int_equal(b->flow.retries.attempts, 0);
	b->now = b->flow.retries.wait_until;
	b->crowded = true; /* the others' business by now: the key is there */
	assert_int_equal(run(b, FLOW_WAITED), FLOW_RESERVE);
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
	bench_free(b);
}

#define OTHER_DIGEST "abcdef6789012345678901234567890123456789012345678901234567890123"
/* May not use tools. */
#define WITH_KEY(digest, server)                                                            \
	"tenants:\n  - {id: acme, models: {allow: [\"*\"]}, limits: {" PLENTY "}, keys: [{" \
	"sha256: " digest ", server: " server "}]}\n"

static const struct reload_case {
	const char *name, *after;
	enum flow_effect effect;
	const char *model;
} reload_cases[] = {
	{ "the same", alone, FLOW_RESERVE, "claude" },
	{ "with other endpoints", two_endpoints, FLOW_RESERVE, "claude" },
	{ "without the model", BEGIN OAI MODELS GPT TENANT(PLENTY), FLOW_RESERVE, "gpt" },
	{ "without the tenant",
	  BEGIN ANT(E1, "a") MODELS CLAUDE("") "tenants:\n  - {id: other, keys: [{sha256: %s}]}\n",
	  FLOW_ANSWER, "claude" },
	{ "with no model for the tenant",
	  BEGIN ANT(E1, "a") MODELS CLAUDE("") "tenants:\n  - {id: acme, keys: [{sha256: %s}]}\n",
	  FLOW_ANSWER, "claude" },
	{ "with the tenant disabled",
	  BEGIN ANT(E1, "a") MODELS CLAUDE("") "tenants:\n  - {id: acme, models: {allow: [\"*\"]}, "
					       "disabled: true, keys: [{sha256: %s}]}\n",
	  FLOW_ANSWER, "claude" },
	{ "without the key", BEGIN ANT(E1, "a") MODELS CLAUDE("") WITH_KEY(OTHER_DIGEST, "s"),
	  FLOW_ANSWER, "claude" },
	{ "with the key for another server",
	  BEGIN ANT(E1, "a") MODELS CLAUDE("") WITH_KEY("%s", "t"), FLOW_ANSWER, "claude" },
	{ "without the capability", BEGIN ANT(E1, "a") MODELS CLAUDE("") WITH_KEY("%s", "s"),
	  FLOW_ANSWER, "claude" },
};

static void the_next_attempt_goes_by_the_configuration_in_force(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(reload_cases); i++) {
		const struct reload_case *c = &reload_cases[i];
		struct bench *b = begin_waiting_for(alone, ASK_TOOL);

		print_message("%s\n", c->name);
		bench_use(b,
			  load(c->after)); /* the sanitizer watches what is read of the old one */
		b->now = b->flow.retries.wait_until;
		assert_int_equal(run(b, FLOW_WAITED), c->effect);
		assert_true(slice_eq(b->flow.walk.model_id, slice_str(c->model)));
		if (c->effect == FLOW_ANSWER)
			assert_has(answer_text(b), "\"reason\":\"provider_unavailable\"");
		release(b);
		bench_free(b);
	}
}

/* As at once: a first attempt that waited for a key, by a rule that was made meanwhile. */
static void a_refusal_after_a_wait_names_its_rule(void **state)
{
	static const struct outcome limited[] = { LIMITED("3") };
	struct bench *b = bench_new(load(alone));
	struct http_incoming in = incoming(KEY, ASK);

	(void)state;
	free(play(b, ASK, 2000, limited, COUNT_OF(limited)));
	assert_int_equal(start(b, &in), FLOW_WAIT);
	bench_use(b, load(BEGIN ANT(E1, "a") MODELS CLAUDE(
			     "") "tenants:\n  - {id: acme, keys: [{sha256: %s, server: s}]}\n"));
	b->now = b->flow.retries.wait_until;
	assert_int_equal(run(b, FLOW_WAITED), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 403);
	assert_has(answer_text(b), "\"rule\":\"model_permitted\"");
	bench_free(b);
}

static void a_further_attempt_asks_for_no_more_than_is_permitted_by_now(void **state)
{
	static const char fewer[] =
		BEGIN ANT(E1, "a") MODELS CLAUDE("") TENANT(PLENTY ", max_tokens: 20");
	struct bench *b = begin_waiting(alone);

	(void)state;
	bench_use(b, load(fewer));
	b->now = b->flow.retries.wait_until;
	assert_int_equal(run(b, FLOW_WAITED), FLOW_RESERVE);
	assert_has(text_of(b, &b->flow.made->encoded.body), "\"max_tokens\":20");
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
	release(b);
	bench_free(b);
}

/* ---- what is told ---------------------------------------------------------------------------------- */

/* The next one was prepared, and there was no budget, no money or no caller left for it. */
static const struct told_case {
	const char *name, *config;
	enum flow_event leaves; /* FLOW_START: nobody does */
} told_cases[] = {
	{ "no money for another endpoint",
	  BEGIN ANT(E1 ", " E2, "a") MODELS CLAUDE("") TENANT("usd_per_day: 0.01"), FLOW_START },
	{ "no money for another model",
	  BEGIN ANT(E1, "a") OAI MODELS CLAUDE("") GPT TENANT("usd_per_day: 0.009"), FLOW_START },
	{ "no budget for retries",
	  LISTEN "retries: {budget: 0, floor: 0}\nproviders:\n" ANT(E1, "a") OAI MODELS CLAUDE("")
		  GPT TENANT(PLENTY),
	  FLOW_START },
	{ "the caller has left", two_providers, FLOW_CLIENT_GONE },
	{ "the process leaves", two_providers, FLOW_GIVEN_UP },
};

static void an_attempt_that_was_not_made_is_not_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(told_cases); i++) {
		const struct told_case *c = &told_cases[i];
		struct bench *b = bench_new(load(c->config));
		struct http_incoming in = incoming(KEY, ASK);
		struct log_request line;
		struct metrics_request sample;

		print_message("%s\n", c->name);
		assert_int_equal(start(b, &in), FLOW_RESERVE);
		assert_int_equal(reserve(b), FLOW_SEND);
		const struct slice model = b->flow.walk.model_id,
				   endpoint = b->flow.walk.endpoint_url;
		const uint32_t scored = b->flow.made->route.scored_count;
		b->flow.call.err = ERR_PROVIDER_DOWN;
		b->flow.call.bytes_sent = true; /* so it is paid for */
		assert_int_equal(run(b, FLOW_PROVIDER_DONE), FLOW_SETTLE);
		enum flow_effect effect = settle(b);
		if (c->leaves != FLOW_START)
			effect = run(b, c->leaves);
		else if (effect == FLOW_RESERVE)
			effect = reserve(b);
		assert_true(is_over(effect));
		release(b);
		flow_report(&b->flow, b->now, &line, &sample);
		assert_int_equal(line.attempts, 1);
		assert_true(slice_eq(line.model, model) && slice_eq(sample.model, model));
		assert_true(slice_eq(line.endpoint, endpoint));
		assert_int_equal(line.route.candidate_count, scored);
		bench_free(b);
	}
}

/* ---- an outage ----------------------------------------------------------------------------------- */

/* Whatever is sent beyond one attempt per request comes from the budgets, whether breakers open or not. */
static void an_outage_is_not_multiplied(void **state)
{
	enum { REQUESTS = 2000 };
	static const struct {
		const char *name;
		struct outcome outcome;
	} outages[] = { { "errors", BROKEN }, { "answers that are no JSON", UNREADABLE } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(outages); i++) {
		const struct outcome outcomes[] = { outages[i].outcome, outages[i].outcome,
						    outages[i].outcome, outages[i].outcome };
		struct bench *b = bench_new(load(budgeted));
		uint64_t attempts = 0;
		for (int n = 0; n < REQUESTS; n++) {
			free(play(b, ASK, 2000, outcomes, COUNT_OF(outcomes)));
			assert_true(b->call.answer.status >= 500);
			attempts += b->flow.retries.attempts;
			b->now += 10 * MSEC;
		}
		print_message("%s: %llu attempts for %d requests\n", outages[i].name,
			      (unsigned long long)attempts, REQUESTS);
		assert_true(attempts <= REQUESTS * 12 / 10);
		bench_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_first_attempt_waits_for_a_key_unless_many_do),
		cmocka_unit_test(a_caller_that_leaves_meanwhile_leaves_nothing),
		cmocka_unit_test(a_process_that_leaves_meanwhile_says_so),
		cmocka_unit_test(a_process_that_leaves_during_the_second_answer_gives_the_first),
		cmocka_unit_test(the_next_attempt_goes_by_the_configuration_in_force),
		cmocka_unit_test(a_refusal_after_a_wait_names_its_rule),
		cmocka_unit_test(a_further_attempt_asks_for_no_more_than_is_permitted_by_now),
		cmocka_unit_test(an_attempt_that_was_not_made_is_not_told),
		cmocka_unit_test(an_outage_is_not_multiplied),
	};
	return cmocka_run_group_tests_name("flow_wait", tests, NULL, NULL);
}
