/* What comes after an attempt that failed: where the next one goes, when, how often, and what all of
 * them cost. The provider's outcomes are scripted, the clock is the test's. */
#include "tests/support/flow_bench.h"

#define KEY "acme-key-0123456789"

/* ---- configurations ---------------------------------------------------------------------------- */

/* The budgets of retries are another test's. */
#define LISTEN "listen: [{address: \"127.0.0.1:8080\"}]\n"
#define BEGIN LISTEN "retries: {floor: 1000}\nproviders:\n"
#define ANT(endpoints, keys) \
	"  ant: {dialect: anthropic, endpoints: [" endpoints "], keys: [" keys "]}\n"
#define E1 "{url: \"http://127.0.0.1:9001\"}"
#define E2 "{url: \"http://127.0.0.1:9002\"}"
#define OAI \
	"  oai: {dialect: openai, endpoints: [{url: \"http://127.0.0.1:9003/v1\"}], keys: [o]}\n"
#define MODELS "models:\n"
#define CLAUDE(more)                                                                             \
	"  - {id: claude, provider: ant, name: claude-real, context: 100000, price: {input: 3, " \
	"output: 15}, intelligence: 0.9" more "}\n"
#define HAIKU                                                                                  \
	"  - {id: haiku, provider: ant, name: haiku-real, context: 100000, price: {input: 1, " \
	"output: 5}, intelligence: 0.6}\n"
#define GPT                                                                                        \
	"  - {id: gpt, provider: oai, name: gpt-real, context: 100000, price: {input: 1, output: " \
	"2}, intelligence: 0.4}\n"
#define TENANT(limits)                                                                             \
	"tenants:\n  - {id: acme, models: {allow: [\"*\"]}, capabilities: {tools: true}, limits: " \
	"{" limits "}, keys: [{sha256: %s, server: s}]}\n"
#define PLENTY                                                                              \
	"requests_per_minute: 60000, requests_burst: 60000, tokens_per_minute: 100000000, " \
	"usd_per_day: 1000"

static const char alone[] = BEGIN ANT(E1, "a") MODELS CLAUDE("") TENANT(PLENTY);
static const char two_keys[] = BEGIN ANT(E1, "a, b") MODELS CLAUDE("") TENANT(PLENTY);
static const char two_endpoints[] = BEGIN ANT(E1 ", " E2, "a") MODELS CLAUDE("") TENANT(PLENTY);
static const char two_providers[] = BEGIN ANT(E1, "a") OAI MODELS CLAUDE("") GPT TENANT(PLENTY);
static const char three_models[] =
	BEGIN ANT(E1, "a") OAI MODELS CLAUDE("") HAIKU GPT TENANT(PLENTY);
static const char not_forced[] =
	BEGIN ANT(E1, "a") MODELS CLAUDE(", profile: {forced_tool: false}") TENANT(PLENTY);
static const char warm[] =
	BEGIN ANT(E1, "a") MODELS CLAUDE(", profile: {temperature: [0, 1]}") TENANT(PLENTY);
/* One attempt at 50 tokens costs some 0.01 USD at most: the second has no room. */
static const char poor[] = BEGIN ANT(E1, "a") MODELS CLAUDE("") TENANT("usd_per_day: 0.01");

static const char budgeted[] =
	LISTEN "providers:\n" ANT(E1 ", " E2, "a") MODELS CLAUDE("") TENANT(PLENTY);

/* One request at a time may go to claude. */
static const char one_at_a_time[] = BEGIN ANT(E1, "a") OAI MODELS CLAUDE("")
	GPT TENANT(PLENTY ", per_model: {claude: {concurrent: 1}, gpt: {concurrent: 1}}");

static struct config *load(const char *text)
{
	static const char *const keys[] = { KEY, NULL };

	return bench_config(text, keys);
}

/* ---- what the caller asks, what providers say --------------------------------------------------- */

#define ASK_WITH(more)                                                                          \
	"{\"jsonrpc\":\"2.0\",\"id\":\"a-7\",\"method\":\"sampling/createMessage\",\"params\":" \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}}],"  \
	"\"maxTokens\":50" more "}}"
#define ASK ASK_WITH("")
#define ASK_TOOL                                                                       \
	ASK_WITH(",\"toolChoice\":{\"mode\":\"required\"},\"tools\":[{\"name\":\"t\"," \
		 "\"inputSchema\":{\"type\":\"object\"}}]")

#define CLAUDE_SAYS(content)                                                                       \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-real\"," \
	"\"content\":[" content "],\"stop_reason\":\"end_turn\","                                  \
	"\"usage\":{\"input_tokens\":10,\"output_tokens\":4}}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define BAD_CALL "{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"t\",\"input\":7}"
#define CALL "{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"t\",\"input\":{}}"
#define GPT_SAYS                                                                                  \
	"{\"id\":\"c-1\",\"object\":\"chat.completion\",\"model\":\"gpt-real\",\"choices\":[{"    \
	"\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\",\"content\":" \
	"\"Hello\"}}],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\"total_tokens\":"  \
	"14}}"
#define CLAUDE_ERROR(type, message) \
	"{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" message "\"}}"

struct outcome {
	enum err err; /* of a call that brought no answer */
	bool unsent;
	uint16_t status;
	const char *body, *retry_after;
};

#define GOOD                                                      \
	{                                                         \
		.status = 200, .body = CLAUDE_SAYS(TEXT("Hello")) \
	}
#define GOOD_GPT                                \
	{                                       \
		.status = 200, .body = GPT_SAYS \
	}
#define OVERLOADED                                                            \
	{                                                                     \
		.status = 529, .body = CLAUDE_ERROR("overloaded_error", "no") \
	}
#define OVERLOADED_AT_ONCE                                                                        \
	{                                                                                         \
		.status = 529, .body = CLAUDE_ERROR("overloaded_error", "no"), .retry_after = "0" \
	}
#define BROKEN                                                         \
	{                                                              \
		.status = 500, .body = CLAUDE_ERROR("api_error", "no") \
	}
#define LIMITED(wait)                                                          \
	{                                                                      \
		.status = 429, .body = CLAUDE_ERROR("rate_limit_error", "no"), \
		.retry_after = (wait)                                          \
	}
#define BAD_KEY                                                                   \
	{                                                                         \
		.status = 401, .body = CLAUDE_ERROR("authentication_error", "no") \
	}
#define NO_SUCH_MODEL                                                        \
	{                                                                    \
		.status = 404, .body = CLAUDE_ERROR("not_found_error", "no") \
	}
#define BAD_REQUEST                                                                \
	{                                                                          \
		.status = 400, .body = CLAUDE_ERROR("invalid_request_error", "no") \
	}
#define NO_TEMPERATURE                                                                      \
	{                                                                                   \
		.status = 400,                                                              \
		.body = CLAUDE_ERROR("invalid_request_error", "temperature: not supported") \
	}
#define UNREADABLE                              \
	{                                       \
		.status = 200, .body = "<html>" \
	}
#define UNUSABLE                                        \
	{                                               \
		.status = 200, .body = CLAUDE_SAYS("7") \
	}
#define REFUSED                                          \
	{                                                \
		.err = ERR_PROVIDER_DOWN, .unsent = true \
	}
#define CUT                              \
	{                                \
		.err = ERR_PROVIDER_DOWN \
	}
#define NO_ADDRESS                                             \
	{                                                      \
		.err = ERR_PROVIDER_NO_ATTEMPT, .unsent = true \
	}
#define QUEUE_FULL                              \
	{                                       \
		.err = ERR_BUSY, .unsent = true \
	}
#define NOT_HTTP                           \
	{                                  \
		.err = ERR_PROVIDER_ANSWER \
	}
#define TOO_LATE                    \
	{                           \
		.err = ERR_DEADLINE \
	}

/* ---- a request from its beginning to its end ----------------------------------------------------- */

enum { OUTCOMES_MAX = 8 };

/* Endpoints and keys by their first use: A, B; a, b. */
struct play {
	struct bench *b;
	const struct outcome *next, *end;
	FILE *trace;
	struct slice endpoints[4];
	uint32_t keys[4];
	uint64_t reserved, settled_usd;
	uint32_t reservations, settlements, requests, places;
};

static char endpoint_letter(struct play *p)
{
	size_t i = 0;

	while (i < COUNT_OF(p->endpoints) && !slice_absent(p->endpoints[i]) &&
	       !slice_eq(p->endpoints[i], p->b->flow.endpoint_url))
		i++;
	assert_true(i < COUNT_OF(p->endpoints));
	p->endpoints[i] = p->b->flow.endpoint_url;
	return (char)('A' + i);
}

static char key_letter(struct play *p)
{
	size_t i = 0;

	while (i < COUNT_OF(p->keys) && p->keys[i] != 0 && p->keys[i] != p->b->flow.choice.key + 1)
		i++;
	assert_true(i < COUNT_OF(p->keys));
	p->keys[i] = p->b->flow.choice.key + 1;
	return (char)('a' + i);
}

/* A wait by chance is told by what it is at most. */
static void trace_wait(struct play *p, nsec_t wait)
{
	for (nsec_t most = 500 * MSEC; most <= 8 * SEC; most *= 2)
		if (wait > most - most / 4 && wait < most) {
			(void)fprintf(p->trace, "<%llu ", (unsigned long long)(most / MSEC));
			return;
		}
	(void)fprintf(p->trace, "%llums ", (unsigned long long)(wait / MSEC));
}

static enum flow_effect play_provider(struct play *p)
{
	struct upstream_call *call = &p->b->flow.call;

	assert_true(call->request_count > 1);
	(void)fprintf(p->trace, "%.*s-%c%c ", (int)p->b->flow.model_id.len, p->b->flow.model_id.at,
		      endpoint_letter(p), key_letter(p));
	if (p->next == p->end)
		fail_msg("an attempt too many");
	const struct outcome *o = p->next++;
	call->err = o->err;
	call->detail = o->err == ERR_OK ? NULL : "for a test";
	call->bytes_sent = !o->unsent;
	call->sent_at = o->unsent ? 0 : p->b->now;
	call->first_byte_at = o->status == 0 ? 0 : p->b->now + 5 * MSEC;
	p->b->now += 10 * MSEC;
	call->done_at = p->b->now;
	call->answer =
		(struct provider_answer){ .status = o->status,
					  .headers = { .retry_after = slice_str(o->retry_after) },
					  .body = slice_str(o->body) };
	return run(p->b, FLOW_PROVIDER_DONE);
}

static enum flow_effect play_store(struct play *p)
{
	const struct limit_ask *ask = &p->b->flow.reservation.ask;
	enum flow_effect effect;

	p->requests += (uint32_t)ask->requests;
	p->places += ask->concurrent;
	effect = reserve(p->b);
	p->reservations += p->b->flow.reservation.granted;
	return effect;
}

static enum flow_effect play_settle(struct play *p)
{
	p->settlements++;
	p->settled_usd += p->b->flow.settle_usd;
	return settle(p->b);
}

static enum flow_effect play_wait(struct play *p)
{
	assert_true(p->b->flow.wait_until >= p->b->now);
	trace_wait(p, p->b->flow.wait_until - p->b->now);
	p->b->now = p->b->flow.wait_until;
	return run(p->b, FLOW_WAITED);
}

static enum flow_effect play_step(struct play *p, enum flow_effect effect)
{
	switch (effect) {
	case FLOW_RESERVE:
		return play_store(p);
	case FLOW_SEND:
		return play_provider(p);
	case FLOW_SETTLE:
		return play_settle(p);
	case FLOW_WAIT:
		return play_wait(p);
	case FLOW_ANSWER:
	case FLOW_END:
		break;
	}
	return effect;
}

static bool is_over(enum flow_effect effect)
{
	return effect == FLOW_ANSWER || effect == FLOW_END;
}

/* Every reservation is settled, and the money spent is what all attempts together cost. */
static void check_balance(struct play *p, uint64_t usd_before)
{
	const struct limit_state limits = limits_of(p->b, "acme");

	assert_int_equal(p->reservations, p->settlements);
	assert_int_equal(p->reservations, p->b->flow.attempts);
	assert_int_equal(p->requests, p->reservations != 0);
	assert_int_equal(p->places, p->requests);
	assert_int_equal(limits.usd_day - usd_before, p->settled_usd);
	assert_int_equal(p->b->flow.usd, p->settled_usd);
	assert_int_equal(limits.concurrent, 0);
	assert_null(p->b->flow.choice.at);
}

/* Plays a request to its end; returns its trace, malloc'ed. */
static char *play(struct bench *b, const char *ask, uint64_t timeout_ms,
		  const struct outcome *outcomes, size_t count)
{
	struct http_incoming in = incoming(KEY, ask);
	struct play p = { .b = b, .next = outcomes, .end = outcomes + count };
	uint64_t before = limits_of(b, "acme").usd_day;
	char *text = NULL, timeout[24];
	size_t len = 0;

	if (timeout_ms != 0) {
		(void)snprintf(timeout, sizeof(timeout), "%llu", (unsigned long long)timeout_ms);
		in.headers[HTTP_TIMEOUT] = slice_str(timeout);
	}
	p.trace = open_memstream(&text, &len);
	assert_non_null(p.trace);
	enum flow_effect effect = start(b, &in);
	while (!is_over(effect))
		effect = play_step(&p, effect);
	assert_int_equal(effect, FLOW_ANSWER);
	if (p.reservations != 0)
		release(b);
	check_balance(&p, before);
	assert_int_equal(fclose(p.trace), 0);
	if (len > 0)
		text[len - 1] = '\0'; /* the last space */
	return text;
}

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
		if (b->flow.answer.status != c->status)
			fail_msg("%s: status %d", c->name, b->flow.answer.status);
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
	assert_int_equal(b->flow.answer.status, 200);
	assert_null(strstr(text_of(b, &b->flow.encoded.body), "temperature"));
	assert_has(answer_text(b), "temperature_dropped");
	trace = play(b, ask, 0, good, COUNT_OF(good));
	assert_null(strstr(text_of(b, &b->flow.encoded.body), "temperature"));
	free(trace);
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
	assert_int_equal(b->flow.answer.status, 422);
	trace = play(b, ask, 0, good, COUNT_OF(good));
	assert_has(text_of(b, &b->flow.encoded.body), "temperature");
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

/* A tool call that could not be forced: the first answer is kept until there is a better one. */
static const struct call_case {
	const char *name;
	struct outcome outcomes[2];
	size_t count;
	uint64_t timeout_ms;
	const char *answer;
} call_cases[] = {
#define SAYS(content)                                       \
	{                                                   \
		.status = 200, .body = CLAUDE_SAYS(content) \
	}
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
		assert_int_equal(b->flow.answer.status, 200);
		assert_int_equal(b->flow.attempts, c->count);
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
		assert_int_equal(b->flow.answer.status, 200);
		b->now += 60 * SEC; /* the breaker has forgotten */
	}
	bench_free(b);
}

/* ---- while it waits ------------------------------------------------------------------------------ */

/* Up to the wait after a first attempt that failed. */
static struct bench *begin_waiting(const char *config)
{
	static const struct outcome cut[] = { CUT };
	struct bench *b = bench_new(load(config));
	struct http_incoming in = incoming(KEY, ASK);
	struct play p = { .b = b, .next = cut, .end = cut + 1, .trace = fopen("/dev/null", "w") };

	assert_non_null(p.trace);
	enum flow_effect effect = start(b, &in);
	while (effect != FLOW_WAIT)
		effect = play_step(&p, effect);
	(void)fclose(p.trace);
	return b;
}

static void a_caller_that_leaves_meanwhile_leaves_nothing(void **state)
{
	struct bench *b = begin_waiting(alone);

	(void)state;
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
	release(b);
	assert_int_equal(limits_of(b, "acme").concurrent, 0);
	assert_int_equal(b->flow.outcome, ERR_CANCELLED);
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
	assert_true(b->flow.settled_without_usage);
	assert_int_equal(settle(b), FLOW_ANSWER);
	release(b);
	assert_int_equal(b->flow.answer.status, 200);
	assert_has(answer_text(b), "\"text\":\"one\"");
	assert_int_equal(b->flow.tried[1].err, ERR_DRAINING);
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
	assert_int_equal(b->flow.answer.status, 503);
	b->crowded = true;
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_int_equal(b->flow.answer.status, 503);
	assert_has(answer_text(b), "\"reason\":\"provider_rate_limited\"");
	assert_has(answer_text(b), "\"retryAfterMs\":3000");
	b->crowded = false;
	assert_int_equal(start(b, &in), FLOW_WAIT);
	assert_int_equal(b->flow.attempts, 0);
	b->now = b->flow.wait_until;
	b->crowded = true; /* the others' business by now: the key is there */
	assert_int_equal(run(b, FLOW_WAITED), FLOW_RESERVE);
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);
	bench_free(b);
}

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
};

static void the_next_attempt_goes_by_the_configuration_in_force(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(reload_cases); i++) {
		const struct reload_case *c = &reload_cases[i];
		struct bench *b = begin_waiting(alone);

		print_message("%s\n", c->name);
		bench_use(b,
			  load(c->after)); /* the sanitizer watches what is read of the old one */
		b->now = b->flow.wait_until;
		assert_int_equal(run(b, FLOW_WAITED), c->effect);
		assert_true(slice_eq(b->flow.model_id, slice_str(c->model)));
		if (c->effect == FLOW_ANSWER)
			assert_has(answer_text(b), "\"reason\":\"provider_unavailable\"");
		release(b);
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
			assert_true(b->flow.answer.status >= 500);
			attempts += b->flow.attempts;
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
		cmocka_unit_test(each_failure_is_tried_again_where_it_may_do_better),
		cmocka_unit_test(what_a_refusal_teaches_is_sent_once_more_and_remembered),
		cmocka_unit_test(what_was_learned_for_nothing_is_not_remembered),
		cmocka_unit_test(what_is_known_already_is_not_learned_again),
		cmocka_unit_test(a_call_that_cannot_be_forced_is_asked_for_twice),
		cmocka_unit_test(usage_and_money_are_those_of_all_attempts),
		cmocka_unit_test(a_request_gives_back_the_place_of_its_first_attempt),
		cmocka_unit_test(a_first_attempt_waits_for_a_key_unless_many_do),
		cmocka_unit_test(a_caller_that_leaves_meanwhile_leaves_nothing),
		cmocka_unit_test(a_process_that_leaves_meanwhile_says_so),
		cmocka_unit_test(a_process_that_leaves_during_the_second_answer_gives_the_first),
		cmocka_unit_test(the_next_attempt_goes_by_the_configuration_in_force),
		cmocka_unit_test(an_outage_is_not_multiplied),
	};
	return cmocka_run_group_tests_name("flow_retry", tests, NULL, NULL);
}
