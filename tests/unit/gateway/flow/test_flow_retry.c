/* test_flow_retry.c - what comes after an attempt that failed: where the next one goes, how often, and what
 * all of them cost. */
#include "tests/unit/gateway/flow/flow_retry_rig.h"

/* ---- the table ----------------------------------------------------------------------------------- */

static const struct retry_case {
	const char *name, *config;
	struct outcome outcomes[OUTCOMES_MAX];
	size_t count;
	const char *trace; /* model-endpoint+key of each attempt, and waits */
	int status;
	const char *reason; /* NULL: a result */
	uint64_t timeout_ms;
} retry_cases[] = {
#define OUTCOMES(...) \
	{ __VA_ARGS__ }, sizeof((struct outcome[]){ __VA_ARGS__ }) / sizeof(struct outcome)
	{ "no failure", alone, OUTCOMES(GOOD), "claude-Aa", 200, NULL, 0 },
	{ "the same again, after a wait", alone, OUTCOMES(CUT, GOOD), "claude-Aa <500 claude-Aa",
	  200, NULL, 0 },
	{ "waits double, attempts are counted", alone,
	  OUTCOMES(OVERLOADED, BROKEN, CUT, OVERLOADED),
	  "claude-Aa <500 claude-Aa <1000 claude-Aa <2000 claude-Aa", 502, "provider_unavailable",
	  0 },
	{ "what was never sent is no more than a failure", alone, OUTCOMES(REFUSED, GOOD),
	  "claude-Aa <500 claude-Aa", 200, NULL, 0 },
	{ "no address", alone, OUTCOMES(NO_ADDRESS, NO_ADDRESS, NO_ADDRESS, NO_ADDRESS),
	  "claude-Aa <500 claude-Aa <1000 claude-Aa <2000 claude-Aa", 503, "provider_not_reached",
	  0 },
	{ "Retry-After is honoured", alone, OUTCOMES(LIMITED("3"), GOOD),
	  "claude-Aa <4000 claude-Aa", 200, NULL, 0 }, /* 3 s, and less than a second more */
	{ "at once is no time", alone, OUTCOMES(OVERLOADED_AT_ONCE, GOOD),
	  "claude-Aa <500 claude-Aa", 200, NULL, 0 },
	{ "but not beyond the deadline", alone, OUTCOMES(LIMITED("100")), "claude-Aa", 503,
	  "provider_rate_limited", 0 },
	{ "a retry needs a second", alone, OUTCOMES(OVERLOADED), "claude-Aa", 502,
	  "provider_unavailable", 1300 },
	{ "and has it", alone, OUTCOMES(OVERLOADED, GOOD), "claude-Aa <500 claude-Aa", 200, NULL,
	  1600 },
	{ "the deadline ends it", alone, OUTCOMES(OVERLOADED, TOO_LATE), "claude-Aa <500 claude-Aa",
	  504, "deadline", 0 },
	{ "a bad request is bad everywhere", two_providers, OUTCOMES(BAD_REQUEST), "claude-Aa", 422,
	  "provider_rejected", 0 },
	{ "a bad key, and no other", alone, OUTCOMES(BAD_KEY), "claude-Aa", 502,
	  "provider_configuration", 0 },
	{ "a bad key, and another", two_keys, OUTCOMES(BAD_KEY, GOOD), "claude-Aa claude-Ab", 200,
	  NULL, 0 },
	{ "both keys are bad", two_keys, OUTCOMES(BAD_KEY, BAD_KEY), "claude-Aa claude-Ab", 502,
	  "provider_configuration", 0 },
	{ "a rate limit of one key", two_keys, OUTCOMES(LIMITED("20"), GOOD), "claude-Aa claude-Ab",
	  200, NULL, 0 },
	{ "another endpoint, at once", two_endpoints, OUTCOMES(BROKEN, GOOD), "claude-Aa claude-Ba",
	  200, NULL, 0 },
	{ "both endpoints, then a wait", two_endpoints, OUTCOMES(REFUSED, REFUSED, GOOD),
	  "claude-Aa claude-Ba <500 claude-Aa", 200, NULL, 0 },
	{ "another provider", two_providers, OUTCOMES(OVERLOADED, GOOD_GPT), "claude-Aa gpt-Ba",
	  200, NULL, 0 },
	{ "a rate limit, and another provider", two_providers, OUTCOMES(LIMITED("2"), GOOD_GPT),
	  "claude-Aa gpt-Ba", 200, NULL, 0 },
	{ "another provider before another model of the one that failed", three_models,
	  OUTCOMES(OVERLOADED, BROKEN, GOOD), "claude-Aa gpt-Ba haiku-Aa", 200, NULL, 0 },
	{ "who could not be reached is not asked for another model", three_models,
	  OUTCOMES(REFUSED, REFUSED, GOOD), "claude-Aa gpt-Ba <500 claude-Aa", 200, NULL, 0 },
	{ "a model that the provider does not know", three_models,
	  OUTCOMES(NO_SUCH_MODEL, GOOD_GPT), "claude-Aa gpt-Ba", 200, NULL, 0 },
	{ "the most telling failure is told", two_providers,
	  OUTCOMES(OVERLOADED, REFUSED, REFUSED, REFUSED), "claude-Aa gpt-Ba <500 claude-Aa gpt-Ba",
	  502, "provider_unavailable", 0 },
	{ "an answer that is no HTTP, once", two_providers, OUTCOMES(NOT_HTTP, NOT_HTTP),
	  "claude-Aa gpt-Ba", 502, "provider_answer_invalid", 0 },
	{ "an answer that is no JSON", alone, OUTCOMES(UNREADABLE, GOOD), "claude-Aa claude-Aa",
	  200, NULL, 0 },
	{ "an answer of the wrong shape, once", alone, OUTCOMES(UNUSABLE, UNUSABLE),
	  "claude-Aa claude-Aa", 502, "provider_answer_invalid", 0 },
	{ "a queue that is full, and nobody else", alone, OUTCOMES(QUEUE_FULL), "claude-Aa", 503,
	  "overloaded", 0 },
	{ "a queue that is full, and another", two_providers, OUTCOMES(QUEUE_FULL, GOOD_GPT),
	  "claude-Aa gpt-Ba", 200, NULL, 0 },
	{ "no money for a second attempt", poor, OUTCOMES(CUT), "claude-Aa <500", 502,
	  "provider_unavailable", 0 },
};

static void each_failure_is_tried_again_where_it_may_do_better(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(retry_cases); i++) {
		const struct retry_case *c = &retry_cases[i];
		struct bench *b = bench_new(load(c->config));
		char *trace = play(b, ASK, c->timeout_ms, c->outcomes, c->count);
		char part[64];

		print_message("%s: %s\n", c->name, trace);
		if (strcmp(trace, c->trace) != 0)
			fail_msg("wanted: %s", c->trace);
		if (b->call.answer.status != c->status)
			fail_msg("%s: status %d", c->name, b->call.answer.status);
		(void)snprintf(part, sizeof(part), "\"attempts\":%zu", c->count);
		assert_has(answer_text(b), part);
		if (c->reason != NULL) {
			(void)snprintf(part, sizeof(part), "\"reason\":\"%s\"", c->reason);
			assert_has(answer_text(b), part);
		}
		free(trace);
		bench_free(b);
	}
}

#define SAYS(content)                                       \
	{                                                   \
		.status = 200, .body = CLAUDE_SAYS(content) \
	}

/* ---- resends ------------------------------------------------------------------------------------- */

static void what_a_refusal_teaches_is_sent_once_more_and_remembered(void **state)
{
	static const char ask[] = ASK_WITH(",\"temperature\":0.5");
	const struct outcome taught[] = { NO_TEMPERATURE, GOOD };
	const struct outcome good[] = { GOOD };
	struct bench *b = bench_new(load(warm));

	(void)state;
	char *trace = play(b, ask, 0, taught, COUNT_OF(taught));
	assert_string_equal(trace, "claude-Aa claude-Aa");
	free(trace);
	assert_int_equal(b->call.answer.status, 200);
	assert_null(strstr(text_of(b, &b->flow.made->encoded.body), "temperature"));
	assert_has(answer_text(b), "temperature_dropped");
	trace = play(b, ask, 0, good, COUNT_OF(good));
	assert_null(strstr(text_of(b, &b->flow.made->encoded.body), "temperature"));
	free(trace);
	bench_free(b);
}

/* Each refusal names one. */
static void a_request_is_taught_by_one_refusal_after_another(void **state)
{
	static const char ask[] = ASK_WITH(",\"temperature\":0.5,\"toolChoice\":{\"mode\":"
					   "\"required\"},\"tools\":[{\"name\":\"t\","
					   "\"inputSchema\":{\"type\":\"object\"}}]");
	const struct outcome taught[] = { NO_TEMPERATURE, NOT_FORCED, SAYS(CALL) };
	const struct outcome again[] = { SAYS(CALL) };
	struct bench *b = bench_new(load(warm));

	(void)state;
	for (int i = 0; i < 2; i++) {
		char *trace = i == 0 ? play(b, ask, 0, taught, COUNT_OF(taught))
				     : play(b, ask, 0, again, COUNT_OF(again));
		assert_string_equal(trace, i == 0 ? "claude-Aa claude-Aa claude-Aa" : "claude-Aa");
		free(trace);
		assert_int_equal(b->call.answer.status, 200);
		assert_null(strstr(text_of(b, &b->flow.made->encoded.body), "temperature"));
		assert_has(answer_text(b), "tool_choice_required_downgraded");
	}
	bench_free(b);
}

static void what_was_learned_for_nothing_is_not_remembered(void **state)
{
	static const char ask[] = ASK_WITH(",\"temperature\":0.5");
	const struct outcome twice[] = { NO_TEMPERATURE, NO_TEMPERATURE };
	const struct outcome good[] = { GOOD };
	struct bench *b = bench_new(load(warm));

	(void)state;
	char *trace = play(b, ask, 0, twice, COUNT_OF(twice));
	assert_string_equal(trace, "claude-Aa claude-Aa");
	free(trace);
	assert_int_equal(b->call.answer.status, 422);
	trace = play(b, ask, 0, good, COUNT_OF(good));
	assert_has(text_of(b, &b->flow.made->encoded.body), "temperature");
	free(trace);
	bench_free(b);
}

static void what_is_known_already_is_not_learned_again(void **state)
{
	const struct outcome taught[] = { NO_TEMPERATURE, GOOD };
	const struct outcome once[] = { NO_TEMPERATURE };
	struct bench *b = bench_new(load(warm));

	(void)state;
	free(play(b, ASK_WITH(",\"temperature\":0.5"), 0, taught, COUNT_OF(taught)));
	char *trace = play(b, ASK, 0, once, COUNT_OF(once));
	assert_string_equal(trace, "claude-Aa");
	free(trace);
	bench_free(b);
}

/* ---- whose requests profit of a refusal ------------------------------------------------------------ */

#define REFUSES(status_, type, message)                                  \
	{                                                                \
		.status = (status_), .body = CLAUDE_ERROR(type, message) \
	}

/* The tenant asks, and the model refuses the temperature: whether it was sent the second time a tenant asks. */
static bool sends_temperature(struct bench *b, const char *tenant, const char *key)
{
	const struct outcome good[] = { GOOD };

	free(play_of(b, tenant, key, ASK_WITH(",\"temperature\":0.5"), 0, good, 1));
	assert_int_equal(b->call.answer.status, 200);
	return strstr(text_of(b, &b->flow.made->encoded.body), "temperature") != NULL;
}

static void learn_as(struct bench *b, const char *tenant, const char *key, const char *ask,
		     struct outcome refusal)
{
	const struct outcome outcomes[] = { refusal, GOOD };

	char *trace = play_of(b, tenant, key, ask, 0, outcomes, COUNT_OF(outcomes));
	assert_string_equal(trace, "claude-Aa claude-Aa");
	free(trace);
	assert_int_equal(b->call.answer.status, 200);
	assert_has(answer_text(b), "_dropped");
}

static void a_lesson_is_for_all_once_two_tenants_met_it(void **state)
{
	static const char ask[] = ASK_WITH(",\"temperature\":0.7");
	const struct outcome refusal = NO_TEMPERATURE;
	struct bench *b = bench_new(load(three_tenants));

	(void)state;
	learn_as(b, "acme", KEY, ask, refusal);
	assert_false(sends_temperature(b, "acme", KEY));
	assert_true(sends_temperature(b, "globex", KEY_2));
	assert_true(sends_temperature(b, "initech", KEY_3));
	learn_as(b, "globex", KEY_2, ask, refusal);
	assert_false(sends_temperature(b, "initech", KEY_3));
	b->now += LESSON_LASTS; /* the host may have learned, too */
	assert_true(sends_temperature(b, "initech", KEY_3));
	assert_true(sends_temperature(b, "acme", KEY));
	bench_free(b);
}

/* A host's words about a value, a value that few would send, words that a caller can have it say: the one request
 * is answered, and no other is sent otherwise. */
static void what_is_said_of_one_request_changes_no_other(void **state)
{
	static const struct {
		const char *name, *ask;
		struct outcome refusal;
	} rows[] = {
		{ "of the value", ASK_WITH(",\"temperature\":0.7"),
		  REFUSES(400, "invalid_request_error", "temperature must be above 0.9") },
		{ "of nothing", ASK_WITH(",\"temperature\":0.7"),
		  REFUSES(422, "invalid_request_error", "temperature") },
		{ "where others may do", ASK_WITH(",\"temperature\":0.7"),
		  REFUSES(404, "not_found", "No endpoints found for temperature") },
		{ "an unusual value", ASK_WITH(",\"temperature\":0.7000000000000000000001"),
		  REFUSES(400, "invalid_request_error", "temperature: not supported") },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bench *b = bench_new(load(three_tenants));
		print_message("%s\n", rows[i].name);
		learn_as(b, "acme", KEY, rows[i].ask, rows[i].refusal);
		learn_as(b, "globex", KEY_2, rows[i].ask, rows[i].refusal);
		assert_true(sends_temperature(b, "acme", KEY));
		assert_true(sends_temperature(b, "initech", KEY_3));
		bench_free(b);
	}
}

/* However often one tenant asks, and whatever its requests have the host say. */
static void one_tenant_takes_nothing_from_another(void **state)
{
	const struct outcome refusal = NO_TEMPERATURE;
	struct bench *b = bench_new(load(three_tenants));
	char ask[512];

	(void)state;
	for (int i = 0; i < 20; i++) {
		(void)snprintf(ask, sizeof(ask), ASK_WITH(",\"temperature\":0.%d"), i + 1);
		if (i % 2 == 0)
			b->now += LESSON_LASTS;
		if (sends_temperature(b, "acme", KEY))
			learn_as(b, "acme", KEY, ask, refusal);
		assert_true(sends_temperature(b, "globex", KEY_2));
	}
	bench_free(b);
}

/* Quoted words of a caller are not the host's: there is nothing to send otherwise. */
static void a_refusal_of_the_prompt_is_final(void **state)
{
	const struct outcome outcomes[] = { REFUSES(
		400, "invalid_request_error",
		"Invalid prompt: 'say that temperature is not supported'") };
	struct bench *b = bench_new(load(three_tenants));

	(void)state;
	char *trace = play(b, ASK_WITH(",\"temperature\":0.5"), 0, outcomes, 1);
	assert_string_equal(trace, "claude-Aa");
	free(trace);
	assert_int_equal(b->call.answer.status, 422);
	bench_free(b);
}

#define ASK_SCHEMA                                                                              \
	ASK_WITH(",\"toolChoice\":{\"mode\":\"required\"},\"tools\":[{\"name\":\"__schema__\"," \
		 "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"a\":{\"type\":"        \
		 "\"string\"}},"                                                                \
		 "\"required\":[\"a\"],\"additionalProperties\":false}}]")
#define SCHEMA_CALL(input) \
	"{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"__schema__\",\"input\":" input "}"

/* Neither native output nor a forced tool is to be had: the tool is asked for, and the answer is checked. */
static void a_dropped_format_is_checked_in_the_answer(void **state)
{
	const struct outcome outcomes[] = {
		REFUSES(400, "invalid_request_error",
			"output_config.format: Extra inputs are not permitted"),
		REFUSES(400, "invalid_request_error",
			"Thinking may not be enabled when tool_choice forces tool use."),
		SAYS(SCHEMA_CALL("{\"a\":7}")),
		SAYS(SCHEMA_CALL("{\"a\":\"b\"}")),
	};
	struct bench *b = bench_new(load(three_tenants));

	(void)state;
	char *trace = play(b, ASK_SCHEMA, 0, outcomes, COUNT_OF(outcomes));
	assert_string_equal(trace, "claude-Aa claude-Aa claude-Aa claude-Aa");
	free(trace);
	assert_int_equal(b->call.answer.status, 200);
	assert_has(answer_text(b), "\"input\":{\"a\":\"b\"}");
	assert_has(answer_text(b), "response_format_dropped");
	assert_has(answer_text(b), "tool_choice_required_downgraded");
	bench_free(b);
}

/* What one model refused is no lesson for the next, which has its own. */
static void another_model_is_taught_anew(void **state)
{
	static const char ask[] = ASK_WITH(",\"temperature\":0.5,\"stopSequences\":[\"END\"]");
	static const char no_stop[] = "{\"code\":\"invalid\",\"error\":\"Argument not supported on "
				      "this model: stop\"}";
	const struct outcome outcomes[] = {
		NO_TEMPERATURE, OVERLOADED, { .status = 400, .body = no_stop }, GOOD_GPT
	};
	struct bench *b = bench_new(load(three_tenants_two_models));

	(void)state;
	char *trace = play(b, ask, 0, outcomes, COUNT_OF(outcomes));
	assert_string_equal(trace, "claude-Aa claude-Aa gpt-Ba gpt-Ba");
	free(trace);
	assert_has(answer_text(b), "stop_sequences_emulated");
	assert_null(strstr(answer_text(b), "temperature_dropped"));
	assert_null(health_lessons(b->view, 0, b->now)); /* nobody knows that it was of use */
	assert_non_null(health_lessons(b->view, 1, b->now));
	bench_free(b);
}

/* A tool call that could not be forced: the first answer is kept until there is a better one. */
static const struct call_case {
	const char *name;
	struct outcome outcomes[2];
	size_t count;
	uint64_t timeout_ms;
	const char *answer;
} call_cases[] = {
	{ "it calls", OUTCOMES(SAYS(CALL)), 0, "tool_use" },
	{ "it calls the second time", OUTCOMES(SAYS(TEXT("one")), SAYS(CALL)), 0, "tool_use" },
	{ "it does not", OUTCOMES(SAYS(TEXT("one")), SAYS(TEXT("two"))), 0, "two" },
	{ "there is no second answer", OUTCOMES(SAYS(TEXT("one")), OVERLOADED), 0, "one" },
	{ "there is no time for one", OUTCOMES(SAYS(TEXT("one"))), 900, "one" },
};

static void a_call_that_cannot_be_forced_is_asked_for_twice(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(call_cases); i++) {
		const struct call_case *c = &call_cases[i];
		struct bench *b = bench_new(load(not_forced));
		char *trace = play(b, ASK_TOOL, c->timeout_ms, c->outcomes, c->count);

		print_message("%s: %s\n", c->name, trace);
		free(trace);
		assert_int_equal(b->call.answer.status, 200);
		assert_int_equal(b->flow.retries.attempts, c->count);
		assert_has(answer_text(b), c->answer);
		assert_has(answer_text(b), "tool_choice_required_downgraded");
		bench_free(b);
	}
}

static void usage_and_money_are_those_of_all_attempts(void **state)
{
	const struct outcome outcomes[] = { SAYS(BAD_CALL), SAYS(CALL) };
	struct bench *b = bench_new(load(alone));
	struct log_request line;
	struct metrics_request sample;

	(void)state;
	free(play(b, ASK_TOOL, 0, outcomes, COUNT_OF(outcomes)));
	assert_has(answer_text(b), "\"inputTokens\":20");
	flow_report(&b->flow, b->now, &line, &sample);
	assert_int_equal(line.usage.input, 20);
	assert_int_equal(sample.tokens_out, 8);
	assert_int_equal(sample.usd_nano, 2 * (10 * 3000 + 4 * 15000));
	assert_int_equal(line.attempts, 2);
	assert_int_equal(line.attempt_classes[0], ERR_PROVIDER_ANSWER);
	assert_int_equal(line.attempt_classes[1], ERR_OK);
	bench_free(b);
}

/* The first attempt's limits hold it, whatever limits the others had to pass. */
static void a_request_gives_back_the_place_of_its_first_attempt(void **state)
{
	const struct outcome outcomes[] = { OVERLOADED, GOOD_GPT };
	struct bench *b = bench_new(load(one_at_a_time));

	(void)state;
	for (int i = 0; i < 3; i++) {
		char *trace = play(b, ASK, 0, outcomes, COUNT_OF(outcomes));
		assert_string_equal(trace, "claude-Aa gpt-Ba");
		free(trace);
		assert_int_equal(b->call.answer.status, 200);
		b->now += 60 * SEC; /* the breaker has forgotten */
	}
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_failure_is_tried_again_where_it_may_do_better),
		cmocka_unit_test(what_a_refusal_teaches_is_sent_once_more_and_remembered),
		cmocka_unit_test(a_request_is_taught_by_one_refusal_after_another),
		cmocka_unit_test(what_was_learned_for_nothing_is_not_remembered),
		cmocka_unit_test(what_is_known_already_is_not_learned_again),
		cmocka_unit_test(a_lesson_is_for_all_once_two_tenants_met_it),
		cmocka_unit_test(what_is_said_of_one_request_changes_no_other),
		cmocka_unit_test(one_tenant_takes_nothing_from_another),
		cmocka_unit_test(a_refusal_of_the_prompt_is_final),
		cmocka_unit_test(a_dropped_format_is_checked_in_the_answer),
		cmocka_unit_test(another_model_is_taught_anew),
		cmocka_unit_test(a_call_that_cannot_be_forced_is_asked_for_twice),
		cmocka_unit_test(usage_and_money_are_those_of_all_attempts),
		cmocka_unit_test(a_request_gives_back_the_place_of_its_first_attempt),
	};
	return cmocka_run_group_tests_name("flow_retry", tests, NULL, NULL);
}
