/* The walk of a request without sockets: the test is the driver. */
#include "tests/support/answer_field.h"
#include "tests/support/flow_bench.h"

#define KEY_ACME "acme-key-0123456789"
#define KEY_TINY "tiny-key-0123456789"
#define KEY_GONE "gone-key-0123456789"

static const char config_text[] =
	"listen: [{address: \"127.0.0.1:8080\"}]\n"
	"store: {kind: memory}\n"
	"retries: {attempts: 1}\n"
	"identity: {origins: [\"https://ok.example\"]}\n"
	"providers:\n"
	"  ant: {dialect: anthropic, endpoints: [{url: \"http://127.0.0.1:9001\"}], keys: "
	"[\"secret-a\"]}\n"
	"  oai: {dialect: openai, endpoints: [{url: \"http://127.0.0.1:9002/v1\"}], keys: "
	"[\"secret-o\"]}\n"
	"models:\n"
	"  - {id: claude, provider: ant, name: claude-real, context: 100000, price: {input: 3, "
	"output: 15},"
	" speed: 0.5, intelligence: 0.9, profile: {image: true}}\n"
	"  - {id: gpt, provider: oai, name: gpt-real, context: 100000, price: {input: 1, output: "
	"2},"
	" speed: 0.9, intelligence: 0.4}\n"
	"plans:\n"
	"  full: {capabilities: {tools: true, context: true, images: true, audio: true},"
	" models: {allow: [\"*\"], default: claude}}\n"
	"tenants:\n"
	"  - {id: acme, plan: full, keys: [{sha256: %s, server: billing}]}\n"
	"  - {id: tiny, plan: full, keys: [{sha256: %s}], capabilities: {tools: false},"
	" limits: {requests_per_minute: 60, requests_burst: 1}}\n"
	"  - {id: gone, plan: full, keys: [{sha256: %s}], disabled: true}\n";

static struct config *load_config(void)
{
	static const char *const keys[] = { KEY_ACME, KEY_TINY, KEY_GONE, NULL };

	return bench_config(config_text, keys);
}

static int set_up(void **state)
{
	*state = bench_new(load_config());
	return 0;
}

static int tear_down(void **state)
{
	bench_free(*state);
	return 0;
}

#define ASK                                                                                     \
	"{\"jsonrpc\":\"2.0\",\"id\":\"a-7\",\"method\":\"sampling/createMessage\",\"params\":" \
	"{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}}],"  \
	"\"maxTokens\":50}}"
#define CLAUDE_SAYS                                                                                \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-real\"," \
	"\"content\":[{\"type\":\"text\",\"text\":\"Hello\"}],\"stop_reason\":\"end_turn\","       \
	"\"usage\":{\"input_tokens\":10,\"output_tokens\":4}}"

static void a_request_walks_to_the_provider_and_back(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY_ACME, ASK);

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(b->flow.attempt.send_count, b->flow.made->encoded.body.count + 1);
	const char *head = arena_copy(&b->call.arena, b->flow.attempt.head).at;
	assert_has(head, "POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1:9001\r\n");
	assert_has(head, "\r\nx-api-key: secret-a\r\n");
	assert_has(head, "\r\nanthropic-version: 2026-10-21\r\n");
	assert_has(text_of(b, &b->flow.made->encoded.body), "\"model\":\"claude-real\"");

	assert_int_equal(provider_says(b, 200, CLAUDE_SAYS), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 200);
	const char *answer = answer_text(b);
	assert_has(answer, "{\"jsonrpc\":\"2.0\",\"id\":\"a-7\",\"result\":{");
	assert_has(answer, "\"text\":\"Hello\"");
	assert_has(answer, "\"stopReason\":\"endTurn\"");
	assert_has(answer, "\"inputTokens\":10");
	release(b);

	struct limit_state after = limits_of(b, "acme");
	assert_int_equal(after.concurrent, 0);
	assert_int_equal(after.usd_day, 10 * 3000 + 4 * 15000); /* nano-USD */
}

static void a_waiting_request_does_not_need_the_snapshot(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY_ACME, ASK);

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	settings_free(&b->config); /* a reload; the sanitizer watches */
	assert_int_equal(provider_says(b, 200, CLAUDE_SAYS), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	assert_has(answer_text(b), "\"model\":\"claude-real\"");
	struct log_request line;
	struct metrics_request sample;
	flow_report(&b->flow, b->now, &line, &sample);
	rpc_report(&b->call, &line);
	assert_int_equal(line.tenant.len, 4);
	release(b);
	b->config = load_config();
}

/* One refusal before the body is looked at. */
struct refusal_case {
	const char *name;
	const char *method, *path, *key, *body;
	enum http_header header;
	const char *value;
	int status;
	const char *reason;
};

static void each_refusal_has_its_status_and_reason(void **state)
{
	static const struct refusal_case cases[] = {
		{ "path", "POST", "/v2", KEY_ACME, ASK, 0, NULL, 404, "not_found" },
		{ "absolute, no path", "POST", "http://gw.example", KEY_ACME, ASK, 0, NULL, 404,
		  "not_found" },
		{ "absolute, more behind", "POST", "http://gw.example/v1/sampling/", KEY_ACME, ASK,
		  0, NULL, 404, "not_found" },
		{ "another scheme", "POST", "ftp://gw.example/v1/sampling", KEY_ACME, ASK, 0, NULL,
		  404, "not_found" },
		{ "method", "GET", "/v1/sampling", KEY_ACME, ASK, 0, NULL, 405, "http_method" },
		{ "delete", "DELETE", "/v1/sampling", KEY_ACME, "", 0, NULL, 404,
		  "session_unknown" },
		{ "origin", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_ORIGIN, "https://evil", 403,
		  "origin_forbidden" },
		{ "type", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_CONTENT_TYPE, "text/plain",
		  415, "media_type" },
		{ "coding", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_CONTENT_ENCODING, "gzip",
		  415, "media_type" },
		{ "accept", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_ACCEPT, "text/html", 406,
		  "not_acceptable" },
		{ "accept q=0", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_ACCEPT,
		  "*/*, application/json;q=0.0", 406, "not_acceptable" },
		{ "key", "POST", "/v1/sampling", "unknown-key-0123456", ASK, 0, NULL, 401,
		  "unauthorized" },
		{ "scheme", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_AUTHORIZATION,
		  "Basic YWNtZQ==", 401, "unauthorized" },
		{ "disabled", "POST", "/v1/sampling", KEY_GONE, ASK, 0, NULL, 401, "unauthorized" },
		{ "revision", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_PROTOCOL_VERSION,
		  "2031-01-01", 400, "revision_unsupported" },
		{ "session", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_SESSION_ID, "x", 404,
		  "session_unknown" },
		{ "idempotency", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_IDEMPOTENCY_KEY,
		  "two words", 400, "idempotency_key_invalid" },
		{ "idempotency, none", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_IDEMPOTENCY_KEY,
		  "", 400, "idempotency_key_invalid" },
		{ "timeout", "POST", "/v1/sampling", KEY_ACME, ASK, HTTP_TIMEOUT, "soon", 400,
		  "timeout_invalid" },
		{ "json", "POST", "/v1/sampling", KEY_ACME, "{\"jsonrpc\":", 0, NULL, 400,
		  "parse_error" },
		{ "batch", "POST", "/v1/sampling", KEY_ACME, "[" ASK "]", 0, NULL, 400, "batch" },
		{ "unknown method", "POST", "/v1/sampling", KEY_ACME,
		  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", 0, NULL, 404,
		  "method_not_found" },
		{ "no id", "POST", "/v1/sampling", KEY_ACME,
		  "{\"jsonrpc\":\"2.0\",\"method\":\"sampling/createMessage\",\"params\":{}}", 0,
		  NULL, 400, "id_missing" },
		{ "tools", "POST", "/v1/sampling", KEY_TINY,
		  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\",\"params\":"
		  "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":"
		  "\"Hi\"}"
		  "}],\"maxTokens\":50,\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":"
		  "\"object\"}}]}}",
		  0, NULL, 400, "tools_not_granted" },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct refusal_case *c = &cases[i];
		char reason[64];
		struct http_incoming in = incoming(c->key, c->body);
		in.method = slice_str(c->method);
		in.path = slice_str(c->path);
		if (c->value != NULL)
			in.headers[c->header] = slice_str(c->value);
		if (start(b, &in) != FLOW_ANSWER || b->call.answer.status != c->status)
			fail_msg("%s: status %d", c->name, b->call.answer.status);
		(void)snprintf(reason, sizeof(reason), "\"reason\":\"%s\"", c->reason);
		assert_has(answer_text(b), reason);
	}
}

/* RFC 9110, 12.5.3. */
static void only_a_refused_coding_is_told_which_one_is_taken(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY_ACME, ASK);

	in.headers[HTTP_CONTENT_ENCODING] = SLICE("br");
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 415);
	assert_true(slice_eq(answer_field(&b->call.answer, SLICE("accept-encoding")),
			     SLICE("identity")));

	in = incoming(KEY_ACME, ASK);
	in.headers[HTTP_CONTENT_TYPE] = SLICE("text/plain");
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 415);
	assert_true(slice_absent(answer_field(&b->call.answer, SLICE("accept-encoding"))));
}

static void a_refused_header_does_not_cost_the_id(void **state)
{
	static const struct {
		enum http_header header;
		const char *value, *body, *id;
	} cases[] = {
		{ HTTP_PROTOCOL_VERSION, "2031-01-01", ASK, "\"id\":\"a-7\"," },
		{ HTTP_SESSION_ID, "x", ASK, "\"id\":\"a-7\"," },
		{ HTTP_IDEMPOTENCY_KEY, "\x7f", ASK, "\"id\":\"a-7\"," },
		{ HTTP_TIMEOUT, "soon", ASK, "\"id\":\"a-7\"," },
		{ HTTP_TIMEOUT, "soon", "{\"jsonrpc\":", "\"id\":null," },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct http_incoming in = incoming(KEY_ACME, cases[i].body);
		in.headers[cases[i].header] = slice_str(cases[i].value);
		assert_int_equal(start(b, &in), FLOW_ANSWER);
		assert_has(answer_text(b), cases[i].id);
	}
}

static void allowed_origins_and_accepts_pass(void **state)
{
	static const char *const accepts[] = { "application/json",
					       "*/*",
					       "",
					       " , ",
					       "text/html, application/*",
					       "application/json;q=0.1, text/event-stream" };
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(accepts); i++) {
		struct http_incoming in = incoming(KEY_ACME, ASK);
		in.headers[HTTP_ORIGIN] = SLICE("https://ok.example");
		in.headers[HTTP_ACCEPT] = slice_str(accepts[i]);
		in.headers[HTTP_CONTENT_TYPE] = SLICE("application/json; charset=utf-8");
		in.headers[HTTP_CONTENT_ENCODING] = i == 0 ? SLICE(" ") : SLICE("Identity");
		assert_int_equal(start(b, &in), FLOW_RESERVE);
	}
}

static void a_target_in_absolute_form_is_its_path(void **state)
{
	static const char *const targets[] = { "http://gw.example/v1/sampling",
					       "HTTPS://gw.example:8443/v1/sampling" };
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(targets); i++) {
		struct http_incoming in = incoming(KEY_ACME, ASK);
		in.path = slice_str(targets[i]);
		assert_int_equal(start(b, &in), FLOW_RESERVE);
	}
}

static void small_methods_are_answered_at_once(void **state)
{
	struct bench *b = *state;
	struct http_incoming in =
		incoming(KEY_TINY, "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}");

	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_string_equal(answer_text(b), "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}");

	in.body = SLICE("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 202);
	assert_int_equal(b->call.answer.body.total, 0);
}

static void initialize_reports_what_policy_grants(void **state)
{
	static const char ask[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
				  "\"params\":{\"protocolVersion\":\"2025-06-18\"}}";
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY_ACME, ask);

	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_has(answer_text(b), "\"protocolVersion\":\"2025-06-18\"");
	assert_has(answer_text(b), "\"sampling\":{\"tools\":{},\"context\":{}}");

	in = incoming(KEY_TINY, ask);
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_has(answer_text(b), "\"sampling\":{\"context\":{}}");

	in = incoming(KEY_ACME, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
				"\"params\":{\"protocolVersion\":\"2026-07-28\"}}");
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_has(answer_text(b), "\"protocolVersion\":\"2025-11-25\"");

	in = incoming(KEY_ACME, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\","
				"\"params\":{\"protocolVersion\":\"2025\\u002d06-18\"}}");
	assert_int_equal(start(b, &in), FLOW_ANSWER);
	assert_has(answer_text(b), "\"protocolVersion\":\"2025-06-18\"");
}

static void a_rate_limit_says_when_to_come_back(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY_TINY, ASK);

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(provider_says(b, 200, CLAUDE_SAYS), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	release(b);

	b->now += 250 * MSEC;
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 429);
	assert_has(answer_text(b), "\"retryAfterMs\":750");
	assert_has(answer_text(b), "\"limit\":\"requests_per_minute\"");
	assert_true(slice_eq(answer_field(&b->call.answer, SLICE("retry-after")), SLICE("1")));

	b->now += 750 * MSEC;
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
}

struct settle_case {
	const char *name;
	enum err err;
	bool bytes_sent;
	uint16_t status;
	const char *body;
	int answer_status;
	bool refunded, without_usage;
};

static void settlement_follows_what_the_provider_did(void **state)
{
	static const struct settle_case cases[] = {
		{ "not sent", ERR_PROVIDER_NO_ATTEMPT, false, 0, NULL, 503, true, false },
		{ "cut short", ERR_PROVIDER_DOWN, true, 0, NULL, 502, false, true },
		{ "deadline", ERR_DEADLINE, true, 0, NULL, 504, false, true },
		{ "overloaded", ERR_OK, true, 529,
		  "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}"
		  "}",
		  502, true, false },
		{ "error in a 200", ERR_OK, true, 200,
		  "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}"
		  "}",
		  502, true, false },
		{ "not JSON", ERR_OK, true, 200, "<html>", 502, false, true },
		{ "a count that cannot be true", ERR_OK, true, 200,
		  "{\"id\":\"m\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"stop_reason\":"
		  "\"end_turn\",\"usage\":{\"input_tokens\":9007199254740992,\"output_tokens\":1}}",
		  200, false, true },
	};
	struct bench *b = *state;

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct settle_case *c = &cases[i];
		struct http_incoming in = incoming(KEY_ACME, ASK);
		uint64_t before = limits_of(b, "acme").usd_day;
		print_message("%s\n", c->name);
		b->now += SEC; /* one request more */
		assert_int_equal(start(b, &in), FLOW_RESERVE);
		assert_int_equal(reserve(b), FLOW_SEND);
		if (c->err == ERR_OK) {
			assert_int_equal(provider_says(b, c->status, c->body), FLOW_SETTLE);
		} else {
			b->flow.call.err = c->err;
			b->flow.call.bytes_sent = c->bytes_sent;
			assert_int_equal(run(b, FLOW_PROVIDER_DONE), FLOW_SETTLE);
		}
		assert_int_equal(settle(b), FLOW_ANSWER);
		release(b);
		assert_int_equal(b->call.answer.status, c->answer_status);
		assert_int_equal(b->flow.charge.without_usage, c->without_usage);
		uint64_t spent = limits_of(b, "acme").usd_day - before;
		assert_int_equal(spent, c->refunded ? 0 : b->flow.reservation.ask.usd);
	}
}

/* The provider says nothing of a time, but its key cools, and then its breaker is open. */
static void who_is_refused_for_the_provider_is_told_when_to_come_back(void **state)
{
	static const char limited[] =
		"{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\","
		"\"message\":\"no\"}}";
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY_ACME, ASK);
	enum flow_effect effect;

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	assert_int_equal(provider_says(b, 429, limited), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_ANSWER);
	release(b);
	assert_int_equal(b->call.answer.status, 503);
	assert_has(answer_text(b), "\"code\":-32010");
	assert_has(answer_text(b), "\"retryAfterMs\":1000");

	b->now += 20 * SEC;
	for (int failures = 0; (effect = start(b, &in)) == FLOW_RESERVE; failures++) {
		assert_in_range(failures, 0, 20);
		b->now += 750 * MSEC; /* one request more */
		assert_int_equal(reserve(b), FLOW_SEND);
		b->flow.call.err = ERR_PROVIDER_DOWN;
		b->flow.call.bytes_sent = false;
		assert_int_equal(run(b, FLOW_PROVIDER_DONE), FLOW_SETTLE);
		assert_int_equal(settle(b), FLOW_ANSWER);
		release(b);
	}
	assert_int_equal(effect, FLOW_ANSWER);
	assert_int_equal(b->call.answer.status, 503);
	assert_has(answer_text(b), "\"reason\":\"provider_not_reached\"");
	assert_has(answer_text(b), "\"retryAfterMs\":");
}

static void a_client_that_leaves_gives_everything_back(void **state)
{
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY_ACME, ASK);

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_END);

	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	b->flow.call.bytes_sent = false; /* still waiting for a connection */
	assert_int_equal(run(b, FLOW_CLIENT_GONE), FLOW_SETTLE);
	assert_int_equal(settle(b), FLOW_END);
	release(b);
	struct limit_state after = limits_of(b, "acme");
	assert_int_equal(after.concurrent, 0);
	assert_int_equal(after.usd_day, 0);
	struct log_request line;
	struct metrics_request sample;
	flow_report(&b->flow, b->now, &line, &sample);
	rpc_report(&b->call, &line);
	assert_int_equal(line.status, 499);
}

static void an_answer_without_memory_to_read_it_is_paid_for(void **state)
{
	enum { BLOCKS = 4000 };
	static const char head[] = "{\"id\":\"msg_1\",\"type\":\"message\",\"content\":[";
	static const char block[] =
		"{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"t\",\"input\":{}},";
	static char body[sizeof(head) + BLOCKS * sizeof(block) + 2];
	struct bench *b = *state;
	struct http_incoming in = incoming(KEY_ACME, ASK);
	char *at = stpcpy(body, head);

	for (int i = 0; i < BLOCKS; i++)
		at = stpcpy(at, block);
	(void)strcpy(at - 1, "]}");
	assert_int_equal(start(b, &in), FLOW_RESERVE);
	assert_int_equal(reserve(b), FLOW_SEND);
	b->pool.keep_max = 0;
	b->pool.fail_next = 1;
	assert_int_equal(provider_says(b, 200, body), FLOW_SETTLE);
	b->pool.fail_next = 0;
	assert_int_equal(settle(b), FLOW_ANSWER);
	release(b);
	assert_int_equal(b->call.answer.status, 503);
	assert_int_equal(limits_of(b, "acme").usd_day, b->flow.reservation.ask.usd);
}

static void memory_running_out_is_a_named_error_everywhere(void **state)
{
	struct bench *b = *state;
	size_t n = 1;

	for (bool done = false; !done; n++) {
		struct http_incoming in = incoming(KEY_ACME, ASK);
		b->pool.keep_max = 0;
		b->pool.fail_next = n;
		enum flow_effect effect = start(b, &in);
		bool placed = false;
		if (effect == FLOW_RESERVE) {
			effect = reserve(b);
			placed = true;
		}
		if (effect == FLOW_SEND)
			effect = provider_says(b, 200, CLAUDE_SAYS);
		if (effect == FLOW_SETTLE)
			effect = settle(b);
		assert_int_equal(effect, FLOW_ANSWER);
		done = b->call.answer.status == 200;
		if (!done)
			assert_int_equal(b->call.answer.status, 503);
		if (placed)
			release(b);
		assert_true(n < 100);
	}
	b->pool.fail_next = 0;
	assert_true(n > 2); /* something did fail */
	assert_int_equal(limits_of(b, "acme").concurrent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define WALK(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		WALK(a_request_walks_to_the_provider_and_back),
		WALK(a_waiting_request_does_not_need_the_snapshot),
		WALK(each_refusal_has_its_status_and_reason),
		WALK(only_a_refused_coding_is_told_which_one_is_taken),
		WALK(a_refused_header_does_not_cost_the_id),
		WALK(allowed_origins_and_accepts_pass),
		WALK(a_target_in_absolute_form_is_its_path),
		WALK(small_methods_are_answered_at_once),
		WALK(initialize_reports_what_policy_grants),
		WALK(a_rate_limit_says_when_to_come_back),
		WALK(settlement_follows_what_the_provider_did),
		WALK(who_is_refused_for_the_provider_is_told_when_to_come_back),
		WALK(a_client_that_leaves_gives_everything_back),
		WALK(an_answer_without_memory_to_read_it_is_paid_for),
		WALK(memory_running_out_is_a_named_error_everywhere),
	};
	return cmocka_run_group_tests_name("flow", tests, NULL, NULL);
}
