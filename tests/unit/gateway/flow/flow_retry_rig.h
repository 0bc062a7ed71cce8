/* flow_retry_rig.h - requests whose providers' outcomes are scripted: what was sent where, when, and what
 * it cost, as a line of text. The clock is the test's. */
#ifndef TESTS_UNIT_GATEWAY_FLOW_RETRY_RIG_H
#define TESTS_UNIT_GATEWAY_FLOW_RETRY_RIG_H

#include "tests/support/flow_bench.h"

#define KEY "acme-key-0123456789"
#define KEY_2 "globex-key-0123456789"
#define KEY_3 "initech-key-0123456789"

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
/* Their models are the same; their lessons need not be. */
#define TENANT_OF(id)                                                                              \
	"  - {id: " id ", models: {allow: [\"*\"]}, capabilities: {tools: true}, limits: {" PLENTY \
	"}, keys: [{sha256: %s, server: s}]}\n"
#define ABLE ", profile: {temperature: [0, 1], structured_output: true}"
#define TENANTS_THREE "tenants:\n" TENANT_OF("acme") TENANT_OF("globex") TENANT_OF("initech")
static const char three_tenants[] = BEGIN ANT(E1, "a") MODELS CLAUDE(ABLE) TENANTS_THREE;
static const char three_tenants_two_models[] = BEGIN ANT(E1, "a") OAI MODELS CLAUDE(ABLE)
GPT TENANTS_THREE;

/* One attempt at 50 tokens costs some 0.01 USD at most: the second has no room. */
static const char poor[] = BEGIN ANT(E1, "a") MODELS CLAUDE("") TENANT("usd_per_day: 0.01");

static const char budgeted[] =
	LISTEN "providers:\n" ANT(E1 ", " E2, "a") MODELS CLAUDE("") TENANT(PLENTY);

/* One request at a time may go to claude. */
static const char one_at_a_time[] = BEGIN ANT(E1, "a") OAI MODELS CLAUDE("")
	GPT TENANT(PLENTY ", per_model: {claude: {concurrent: 1}, gpt: {concurrent: 1}}");

static inline struct config *load(const char *text)
{
	static const char *const keys[] = { KEY, KEY_2, KEY_3, NULL };

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
	const struct rate_header *rates;
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
#define NOT_FORCED                                                                          \
	{                                                                                   \
		.status = 400,                                                              \
		.body = CLAUDE_ERROR("invalid_request_error", "tool_choice: not supported") \
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
	const char *tenant;
	const struct outcome *next, *end;
	FILE *trace;
	struct slice endpoints[4];
	uint32_t keys[4];
	uint64_t reserved, settled_usd;
	uint32_t reservations, settlements, requests, places;
};

static inline char endpoint_letter(struct play *p)
{
	size_t i = 0;

	while (i < COUNT_OF(p->endpoints) && !slice_absent(p->endpoints[i]) &&
	       !slice_eq(p->endpoints[i], p->b->flow.walk.endpoint_url))
		i++;
	assert_true(i < COUNT_OF(p->endpoints));
	p->endpoints[i] = p->b->flow.walk.endpoint_url;
	return (char)('A' + i);
}

static inline char key_letter(struct play *p)
{
	size_t i = 0;

	while (i < COUNT_OF(p->keys) && p->keys[i] != 0 &&
	       p->keys[i] != p->b->flow.walk.choice.key + 1)
		i++;
	assert_true(i < COUNT_OF(p->keys));
	p->keys[i] = p->b->flow.walk.choice.key + 1;
	return (char)('a' + i);
}

/* A wait by chance is told by what it is at most. */
static inline void trace_wait(struct play *p, nsec_t wait)
{
	for (nsec_t most = 500 * MSEC; most <= 8 * SEC; most *= 2)
		if (wait > most - most / 4 && wait < most) {
			(void)fprintf(p->trace, "<%llu ", (unsigned long long)(most / MSEC));
			return;
		}
	(void)fprintf(p->trace, "%llums ", (unsigned long long)(wait / MSEC));
}

static inline enum flow_effect play_provider(struct play *p)
{
	struct upstream_call *call = &p->b->flow.call;

	assert_true(call->request_count > 1);
	(void)fprintf(p->trace, "%.*s-%c%c ", (int)p->b->flow.walk.model_id.len,
		      p->b->flow.walk.model_id.at, endpoint_letter(p), key_letter(p));
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
					  .headers = { .retry_after = slice_str(o->retry_after),
						       .rates = o->rates },
					  .body = slice_str(o->body) };
	return run(p->b, FLOW_PROVIDER_DONE);
}

static inline enum flow_effect play_store(struct play *p)
{
	const struct limit_ask *ask = &p->b->flow.reservation.ask;
	enum flow_effect effect;

	p->requests += (uint32_t)ask->requests;
	p->places += ask->concurrent;
	effect = reserve(p->b);
	p->reservations += p->b->flow.reservation.granted;
	return effect;
}

static inline enum flow_effect play_settle(struct play *p)
{
	p->settlements++;
	p->settled_usd += p->b->flow.charge.usd;
	return settle(p->b);
}

static inline enum flow_effect play_wait(struct play *p)
{
	assert_true(p->b->flow.retries.wait_until >= p->b->now);
	trace_wait(p, p->b->flow.retries.wait_until - p->b->now);
	p->b->now = p->b->flow.retries.wait_until;
	return run(p->b, FLOW_WAITED);
}

static inline enum flow_effect play_step(struct play *p, enum flow_effect effect)
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
	case FLOW_LOAD:
	case FLOW_JOIN:
	case FLOW_SAVE:
	case FLOW_AWAIT:
	case FLOW_GIVE_BACK:
		fail_msg("there is nothing to be recalled or remembered");
	case FLOW_ANSWER:
	case FLOW_END:
		break;
	}
	return effect;
}

static inline bool is_over(enum flow_effect effect)
{
	return effect == FLOW_ANSWER || effect == FLOW_END;
}

/* Every reservation is settled, and the money spent is what all attempts together cost. */
static inline void check_balance(struct play *p, uint64_t usd_before)
{
	const struct limit_state limits = limits_of(p->b, p->tenant);

	assert_int_equal(p->reservations, p->settlements);
	assert_int_equal(p->reservations, p->b->flow.retries.attempts);
	assert_int_equal(p->requests, p->reservations != 0);
	assert_int_equal(p->places, p->requests);
	assert_int_equal(limits.usd_day - usd_before, p->settled_usd);
	assert_int_equal(p->b->flow.totals.usd, p->settled_usd);
	assert_int_equal(limits.concurrent, 0);
	assert_null(p->b->flow.walk.choice.at);
}

/* Plays a tenant's request to its end; returns its trace, malloc'ed. */
static inline char *play_of(struct bench *b, const char *tenant, const char *key, const char *ask,
			    uint64_t timeout_ms, const struct outcome *outcomes, size_t count)
{
	struct http_incoming in = incoming(key, ask);
	struct play p = { .b = b, .tenant = tenant, .next = outcomes, .end = outcomes + count };
	uint64_t before = limits_of(b, tenant).usd_day;
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

static inline char *play(struct bench *b, const char *ask, uint64_t timeout_ms,
			 const struct outcome *outcomes, size_t count)
{
	return play_of(b, "acme", KEY, ask, timeout_ms, outcomes, count);
}

#endif
