/* test_flow_blame.c - the blame for a failure decides the next candidate, and the cooldown for all tenants. */
#include "tests/unit/gateway/flow/flow_retry_rig.h"

#define REFUSES(code, text)                      \
	{                                        \
		.status = (code), .body = (text) \
	}
#define FLAGGED                                                                            \
	REFUSES(403, "{\"code\":\"permission-denied\",\"error\":\"Content violates usage " \
		     "guidelines. \"}")
#define FORBIDDEN REFUSES(403, "<html><title>403 Forbidden</title></html>")
#define NO_PERMISSION \
	REFUSES(403, "{\"error\":{\"message\":\"Your API key does not have permission\"}}")
#define NO_ENDPOINT                                                                           \
	REFUSES(404, "{\"error\":{\"message\":\"No endpoints found that support tool use.\"," \
		     "\"code\":404}}")
#define ENDS(reason)                                                                            \
	{                                                                                       \
		.status = 200, .body = "{\"id\":\"m\",\"type\":\"message\",\"content\":[" TEXT( \
				       "par") "],\"stop_reason\":\"" reason                     \
					      "\",\"usage\":{\"input_tokens\":10,"              \
					      "\"output_tokens\":4}}"                           \
	}
#define LIMITED_BY(headers)                                                                     \
	{                                                                                       \
		.status = 429, .body = CLAUDE_ERROR("rate_limit_error", "no"), .rates = headers \
	}

static const struct rate_header six_minutes[RATE_KINDS] = {
	[RATE_REQUESTS] = { .remaining = SLICE_INIT("0"), .reset = SLICE_INIT("6m0s") },
	[RATE_TOKENS] = { .remaining = SLICE_INIT("9999"), .reset = SLICE_INIT("1s") },
};
static const struct rate_header three_seconds[RATE_KINDS] = {
	[RATE_REQUESTS] = { .remaining = SLICE_INIT("8"), .reset = SLICE_INIT("6m0s") },
	[RATE_TOKENS] = { .remaining = SLICE_INIT("2"), .reset = SLICE_INIT("3s") },
};

static const char two_keys_and_another[] =
	BEGIN ANT(E1, "a, b") OAI MODELS CLAUDE("") GPT TENANT(PLENTY);

#define OUTCOMES(...) \
	{ __VA_ARGS__ }, sizeof((struct outcome[]){ __VA_ARGS__ }) / sizeof(struct outcome)

static const struct blame_case {
	const char *name, *config;
	struct outcome outcomes[OUTCOMES_MAX];
	size_t count;
	const char *trace;
	int status;
	const char *says;
	bool cools; /* one of the keys, afterwards */
} cases[] = {
	{ "content that is refused is the answer", two_keys_and_another, OUTCOMES(FLAGGED),
	  "claude-Aa", 200, "\"stopReason\":\"refusal\"", false },
	{ "what is forbidden is asked of another model, with no other key", two_keys_and_another,
	  OUTCOMES(FORBIDDEN, GOOD_GPT), "claude-Aa gpt-Ba", 200, "Hello", false },
	{ "and is told where there is none", two_keys, OUTCOMES(FORBIDDEN), "claude-Aa", 422,
	  "\"reason\":\"provider_rejected\"", false },
	{ "a key without permission is left for another", two_keys_and_another,
	  OUTCOMES(NO_PERMISSION, GOOD), "claude-Aa claude-Ab", 200, "Hello", true },
	{ "a model that cannot take the request is left for another", two_keys_and_another,
	  OUTCOMES(NO_ENDPOINT, GOOD_GPT), "claude-Aa gpt-Ba", 200, "Hello", false },
	{ "the same where there is none", two_keys, OUTCOMES(NO_ENDPOINT), "claude-Aa", 422,
	  "this model cannot do what it asks for", false },
	{ "a call that nobody can read is asked for once more", alone,
	  OUTCOMES(ENDS("malformed_tool_use"), GOOD), "claude-Aa claude-Aa", 200, "Hello", false },
	{ "and no more", alone,
	  OUTCOMES(ENDS("function_call_filter: MALFORMED_FUNCTION_CALL"),
		   ENDS("MALFORMED_FUNCTION_CALL")),
	  "claude-Aa claude-Aa", 502, "\"code\":-32015", false },
	{ "a host that breaks off is asked again", alone, OUTCOMES(ENDS("network_error"), GOOD),
	  "claude-Aa <500 claude-Aa", 200, "Hello", false },
	{ "or another one is", two_providers, OUTCOMES(ENDS("abort"), GOOD_GPT), "claude-Aa gpt-Ba",
	  200, "Hello", false },
	{ "a finish that refuses is the answer", two_providers, OUTCOMES(ENDS("sensitive")),
	  "claude-Aa", 200, "\"stopReason\":\"refusal\"", false },
	{ "the headers alone tell when a limit is over", alone, OUTCOMES(LIMITED_BY(six_minutes)),
	  "claude-Aa", 503, "\"retryAfterMs\":360000", true },
	{ "and what is soon over is waited for", alone, OUTCOMES(LIMITED_BY(three_seconds), GOOD),
	  "claude-Aa <4000 claude-Aa", 200, "Hello", false },
};

static bool any_key_cools(struct bench *b)
{
	for (uint32_t k = 0; k < b->config->providers[0].key_count; k++)
		if (health_cools(b->view, 0, k, b->now) != 0)
			return true;
	return false;
}

static void who_is_to_blame_decides_what_comes_next(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct blame_case *c = &cases[i];
		struct bench *b = bench_new(load(c->config));
		char *trace = play(b, ASK, 0, c->outcomes, c->count);

		print_message("%s: %s\n", c->name, trace);
		if (strcmp(trace, c->trace) != 0)
			fail_msg("wanted: %s", c->trace);
		if (b->call.answer.status != c->status)
			fail_msg("%s: status %d", c->name, b->call.answer.status);
		assert_has(answer_text(b), c->says);
		if (any_key_cools(b) != c->cools)
			fail_msg("%s: a key %s", c->name, c->cools ? "should cool" : "cools");
		free(trace);
		bench_free(b);
	}
}

/* What a provider refuses in an error object costs nothing, whatever its status is. */
static void a_refusal_in_place_of_an_answer_is_free(void **state)
{
	static const char moderated[] = "{\"error\":{\"code\":\"data_inspection_failed\"}}";
	const struct outcome rows[] = { REFUSES(200, moderated), REFUSES(400, moderated), FLAGGED };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bench *b = bench_new(load(alone));
		free(play(b, ASK, 0, &rows[i], 1));
		assert_has(answer_text(b), "\"stopReason\":\"refusal\"");
		assert_int_equal(b->flow.totals.usd, 0);
		bench_free(b);
	}
	const struct outcome answered[] = { ENDS("sensitive") };
	struct bench *b = bench_new(load(alone));
	free(play(b, ASK, 0, answered, 1));
	assert_int_equal(b->flow.totals.usd, 10 * 3000 + 4 * 15000);
	bench_free(b);
}

/* The limit is counted by key and model: another model of the same key is as free as before. */
static void the_wait_of_the_headers_is_that_models(void **state)
{
	static const char same_key[] = BEGIN ANT(E1, "a") MODELS CLAUDE("") HAIKU TENANT(PLENTY);
	const struct outcome limited[] = { LIMITED_BY(six_minutes), GOOD };
	const struct outcome good[] = { GOOD };
	struct bench *b = bench_new(load(same_key));

	(void)state;
	char *trace = play(b, ASK, 0, limited, COUNT_OF(limited));
	assert_string_equal(trace, "claude-Aa haiku-Aa");
	free(trace);
	b->now += 300 * SEC;
	trace = play(b, ASK, 0, good, COUNT_OF(good));
	assert_string_equal(trace, "haiku-Aa");
	free(trace);
	b->now += 61 * SEC;
	trace = play(b, ASK, 0, good, COUNT_OF(good));
	assert_string_equal(trace, "claude-Aa");
	free(trace);
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_to_blame_decides_what_comes_next),
		cmocka_unit_test(a_refusal_in_place_of_an_answer_is_free),
		cmocka_unit_test(the_wait_of_the_headers_is_that_models),
	};
	return cmocka_run_group_tests_name("flow_blame", tests, NULL, NULL);
}
