/* Every reason has an answer in each API's own shape, with the words that its clients look for. */
#include "codec/api/api_error.h"
#include "codec/api/api_headers.h"
#include "codec/api/api_redact.h"

#include "tests/unit/codec/api/api_rig.h"

struct writing {
	struct arena_pool pool;
	struct arena arena;
	struct json_work *work;
};

static void begin(struct writing *w)
{
	*w = (struct writing){ .pool = { .keep_max = 4 }, .work = json_work_new(codec_set_best()) };
	assert_non_null(w->work);
	arena_init(&w->arena, &w->pool, 1 << 20);
}

static void end(struct writing *w)
{
	json_work_free(w->work);
	arena_give(&w->arena);
	arena_pool_fini(&w->pool);
}

static struct slice write(struct writing *w, enum api api, const struct api_error *error,
			  bool event)
{
	struct gather g;

	gather_init(&g, &w->arena);
	(event ? api_error_event : api_error_write)(&g, api, error);
	assert_int_equal(gather_done(&g), ERR_OK);
	return gather_flat(&g, &w->arena);
}

static void every_reason_has_a_row(void **state)
{
	struct writing w;

	(void)state;
	begin(&w);
	for (int err = 1; err < ERR_COUNT; err++) {
		const struct api_error error = { .fault = { .err = (enum err)err } };
		for (int api = 0; api < API_ALL; api++) {
			const struct api_error_row row = api_error_row((enum api)api, &error);
			const struct slice text = write(&w, (enum api)api, &error, false);
			if (row.status < 400 || row.status > 599 || row.text[0] == '\0' ||
			    !json_valid(text, NULL, w.work, NULL))
				fail_msg("%s", err_info((enum err)err)->reason);
			/* no JSON-RPC, and no MCP */
			assert_null(strstr(row.text, "maxTokens"));
			assert_null(strstr(row.text, "JSON-RPC"));
			assert_null(strstr(row.text, "createMessage"));
			/* SDKs must not try again what stays so */
			if (row.status < 500 && row.status != 429)
				assert_int_equal(row.hint, API_HINT_NEVER);
		}
	}
	end(&w);
}

static const struct error_row {
	enum api api;
	struct api_error error;
	uint16_t status;
	bool never;
	const char *body;
} error_rows[] = {
	{ API_MESSAGES,
	  { .fault = { .err = ERR_MAX_TOKENS,
		       .path = SLICE_INIT("max_tokens"),
		       .detail = "Field required" },
	    .request_id = SLICE_INIT("r1") },
	  400,
	  true,
	  "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"max_"
	  "tokens: Field required\"},"
	  "\"request_id\":\"r1\"}" },
	{ API_CHAT,
	  { .fault = { .err = ERR_FIELD,
		       .path = SLICE_INIT("messages[0].content"),
		       .detail = "must be \"x\"" } },
	  400,
	  true,
	  "{\"error\":{\"message\":\"messages[0].content: must be "
	  "\\\"x\\\"\",\"type\":\"invalid_request_error\","
	  "\"param\":\"messages[0].content\",\"code\":null}}" },
	{ API_MESSAGES,
	  { .fault = { .err = ERR_MODEL_UNKNOWN }, .model = SLICE_INIT("a\\u002fb") },
	  404,
	  true,
	  "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"model: "
	  "a\\u002fb\"}}" },
	{ API_CHAT,
	  { .fault = { .err = ERR_MODEL_UNKNOWN }, .model = SLICE_INIT("x") },
	  404,
	  true,
	  "{\"error\":{\"message\":\"The model `x` does not exist or you do not have access to "
	  "it.\",\"type\":"
	  "\"invalid_request_error\",\"param\":null,\"code\":\"model_not_found\"}}" },
	{ API_MESSAGES,
	  { .fault = { .err = ERR_CONTEXT_WINDOW }, .tokens = 201000, .tokens_max = 200000 },
	  400,
	  true,
	  "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
	  "\"prompt is too long: 201000 tokens > 200000 maximum\"}}" },
	{ API_CHAT,
	  { .fault = { .err = ERR_CONTEXT_WINDOW, .detail = "it is 9 too many" } },
	  400,
	  true,
	  "{\"error\":{\"message\":\"prompt is too long: it is 9 too "
	  "many\",\"type\":\"invalid_request_error\",\"param\":"
	  "null,\"code\":\"context_length_exceeded\"}}" },
	{ API_MESSAGES,
	  { .fault = { .err = ERR_BUDGET } },
	  402,
	  true,
	  "{\"type\":\"error\",\"error\":{\"type\":\"billing_error\",\"message\":"
	  "\"The tenant's budget has no room for what the request may cost\"}}" },
	{ API_CHAT,
	  { .fault = { .err = ERR_BUDGET } },
	  429,
	  true,
	  "{\"error\":{\"message\":\"The tenant's budget has no room for what the request may "
	  "cost\",\"type\":"
	  "\"insufficient_quota\",\"param\":null,\"code\":\"insufficient_quota\"}}" },
	/* a 403 says that it is policy */
	{ API_MESSAGES,
	  { .fault = { .err = ERR_TOOL_ROUNDS } },
	  403,
	  true,
	  "{\"type\":\"error\",\"error\":{\"type\":\"permission_error\",\"message\":"
	  "\"Policy: The tool loop has reached the tenant's limit of rounds\"}}" },
	{ API_CHAT,
	  { .fault = { .err = ERR_POLICY, .path = SLICE_INIT("route") } },
	  403,
	  true,
	  "{\"error\":{\"message\":\"route: Policy does not permit this "
	  "request\",\"type\":\"invalid_request_error\","
	  "\"param\":null,\"code\":null}}" },
	{ API_CHAT,
	  { .fault = { .err = ERR_UNAUTHORIZED } },
	  401,
	  true,
	  "{\"error\":{\"message\":\"The key is missing, unknown or "
	  "disabled\",\"type\":\"invalid_request_error\","
	  "\"param\":null,\"code\":\"invalid_api_key\"}}" },
	{ API_MESSAGES,
	  { .fault = { .err = ERR_DRAINING } },
	  529,
	  false,
	  "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"The gateway "
	  "is shutting down\"}}" },
	{ API_CHAT,
	  { .fault = { .err = ERR_DEADLINE } },
	  504,
	  false,
	  "{\"error\":{\"message\":\"The deadline passed before the provider "
	  "answered\",\"type\":\"server_error\","
	  "\"param\":null,\"code\":null}}" },
	{ API_CHAT,
	  { .fault = { .err = ERR_PROVIDER_ANSWER } },
	  502,
	  false,
	  "{\"error\":{\"message\":\"The provider's answer is "
	  "malformed\",\"type\":\"server_error\",\"param\":null,"
	  "\"code\":null}}" },
	{ API_MESSAGES,
	  { .fault = { .err = ERR_PROVIDER_OPERATOR } },
	  500,
	  true,
	  "{\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":"
	  "\"The operator of this gateway has to look at the provider account\"}}" },
	/* the thread: its details make the tool runner go on */
	{ API_MESSAGES,
	  { .fault = { .err = ERR_NOT_AVAILABLE,
		       .path = SLICE_INIT("thread"),
		       .detail = "thread is not supported here (capability_rejected: "
				 "beta_header:message-threads-2026-08-12)" } },
	  400,
	  true,
	  "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"thread: "
	  "thread is not supported "
	  "here (capability_rejected: "
	  "beta_header:message-threads-2026-08-12)\",\"details\":{\"error_code\":"
	  "\"thread_unsupported_request\",\"unsupported\":[\"thread\"]}}}" },
};

static void errors_have_each_apis_shape(void **state)
{
	struct writing w;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(error_rows); i++) {
		const struct error_row *row = &error_rows[i];
		begin(&w);
		const struct api_error_row got = api_error_row(row->api, &row->error);
		assert_slice(write(&w, row->api, &row->error, false), row->body);
		assert_int_equal(got.status, row->status);
		assert_int_equal(got.hint, row->never ? API_HINT_NEVER : API_HINT_RETRY);
		end(&w);
	}
}

static void particulars_are_told(void **state)
{
	struct error_data data = error_data_none;
	struct api_error error = { .fault = { .err = ERR_RATE_LIMITED }, .data = &data };
	struct writing w;

	(void)state;
	begin(&w);
	data.limit = "requests_per_minute";
	data.scope = "tenant";
	assert_non_null(strstr(arena_copy(&w.arena, write(&w, API_CHAT, &error, false)).at,
			       "is reached (requests_per_minute of the tenant)"));
	data = error_data_none;
	error.fault.err = ERR_PROVIDER_DOWN;
	assert_int_equal(api_error_row(API_MESSAGES, &error).status, 500);
	assert_int_equal(api_error_row(API_CHAT, &error).status, 503);
	data.provider_status = 503;
	assert_int_equal(api_error_row(API_MESSAGES, &error).status, 529);
	assert_string_equal(api_error_row(API_MESSAGES, &error).type, "overloaded_error");
	data.provider_status = 413;
	error.fault.err = ERR_PROVIDER_REJECTED;
	assert_int_equal(api_error_row(API_MESSAGES, &error).status, 413);
	assert_string_equal(api_error_row(API_MESSAGES, &error).text,
			    "The provider rejected the request");
	data.provider_status = 422;
	assert_int_equal(api_error_row(API_MESSAGES, &error).status, 400);
	data.provider_status = 403; /* of its account, not of the caller's */
	assert_int_equal(api_error_row(API_CHAT, &error).status, 500);
	assert_int_equal(api_error_row(API_CHAT, &error).hint, API_HINT_NEVER);
	end(&w);
}

static void a_stream_ends_with_its_apis_event(void **state)
{
	const struct api_error error = { .fault = { .err = ERR_PROVIDER_RATE } };
	struct writing w;

	(void)state;
	begin(&w);
	assert_slice(write(&w, API_MESSAGES, &error, true),
		     "event: error\ndata: "
		     "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":"
		     "\"The provider's rate limit is reached\"}}\n\n");
	assert_slice(
		write(&w, API_CHAT, &error, true),
		"data: {\"error\":{\"message\":\"The provider's rate limit is reached\",\"type\":"
		"\"rate_limit_exceeded\",\"param\":null,\"code\":\"rate_limit_exceeded\"}}\n\n");
	end(&w);
}

/* ---- headers ---- */

static const struct retry_row {
	int64_t wait_ms;
	bool never;
	const char *headers;
} retry_rows[] = {
	{ -1, false, "" },
	{ -1, true, "x-should-retry: false\n" },
	{ 0, false, "retry-after: 0\nretry-after-ms: 0\n" },
	{ 1, false, "retry-after: 1\nretry-after-ms: 1\n" },
	{ 1500, false, "retry-after: 2\nretry-after-ms: 1500\n" },
	{ 60000, false, "retry-after: 60\nretry-after-ms: 60000\n" },
	{ 60001, false, "x-should-retry: false\nretry-after: 61\n" },
	{ 3600000, false, "x-should-retry: false\nretry-after: 3600\n" },
	{ 2000, true, "x-should-retry: false\nretry-after: 2\nretry-after-ms: 2000\n" },
	{ INT64_MAX, false, "x-should-retry: false\nretry-after: 9223372036854776\n" },
};

static void assert_headers(const struct api_header *headers, size_t count, const char *expected)
{
	char text[1024] = "";
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%.*s: %.*s\n",
					(int)headers[i].name.len, headers[i].name.at,
					(int)headers[i].value.len, headers[i].value.at);
	assert_string_equal(text, expected);
}

static void a_wait_is_told_so_that_sdks_keep_it(void **state)
{
	struct api_header headers[API_RETRY_HEADERS];
	struct writing w;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(retry_rows); i++) {
		const struct retry_row *row = &retry_rows[i];
		begin(&w);
		assert_headers(headers,
			       api_retry_headers(row->wait_ms, row->never, &w.arena, headers),
			       row->headers);
		end(&w);
	}
}

static void headers_of_anthropic_pass_but_for_accounts(void **state)
{
	(void)state;
	assert_true(api_header_passes(API_MESSAGES, SLICE("anthropic-version")));
	assert_true(api_header_passes(API_COUNT, SLICE("anthropic-beta")));
	assert_true(api_header_passes(API_MESSAGES, SLICE("anthropic-new-thing")));
	assert_false(api_header_passes(API_CHAT, SLICE("anthropic-beta")));
	assert_false(api_header_passes(API_MESSAGES, SLICE("anthropic-workspace-id")));
	assert_false(api_header_passes(API_MESSAGES, SLICE("anthropic-user-profile-id")));
	assert_false(api_header_passes(API_MESSAGES,
				       SLICE("anthropic-dangerous-direct-browser-access")));
	assert_false(api_header_passes(API_MESSAGES, SLICE("x-api-key")));
	assert_false(api_header_passes(API_MESSAGES, SLICE("authorization")));
}

static void what_is_left_is_told_in_both_families(void **state)
{
	const struct api_rate requests = { true, 60, 59, 1001 },
			      tokens = { true, 100000, 0, 3723000 }, none = { .known = false };
	struct api_header headers[API_RATE_HEADERS];
	struct writing w;

	(void)state;
	begin(&w);
	assert_headers(headers, api_rate_headers(&requests, &tokens, 1709164798, &w.arena, headers),
		       "anthropic-ratelimit-requests-limit: "
		       "60\nanthropic-ratelimit-requests-remaining: 59\n"
		       "anthropic-ratelimit-requests-reset: "
		       "2024-02-29T00:00:00Z\nx-ratelimit-limit-requests: 60\n"
		       "x-ratelimit-remaining-requests: 59\nx-ratelimit-reset-requests: 1s\n"
		       "anthropic-ratelimit-tokens-limit: "
		       "100000\nanthropic-ratelimit-tokens-remaining: 0\n"
		       "anthropic-ratelimit-tokens-reset: "
		       "2024-02-29T01:02:01Z\nx-ratelimit-limit-tokens: 100000\n"
		       "x-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 1h2m3s\n");
	assert_int_equal(api_rate_headers(&none, &none, 0, &w.arena, headers), 0);
	end(&w);
}

/* ---- a provider's own words ---- */

#define OWN(message)                                                                               \
	"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"" message \
	"\"},\"request_id\":\"req_011\"}"

static const struct redact_row {
	const char *body, *clean; /* NULL: our own words */
} redact_rows[] = {
	{ OWN("prompt is too long: 201000 tokens > 200000 maximum"),
	  OWN("prompt is too long: 201000 tokens > 200000 maximum") },
	{ OWN("org-Ab1 in proj_x-1, (wrkspc_01) and projects/my-app.x: no"),
	  OWN("[redacted] in [redacted], ([redacted]) and [redacted]: no") },
	{ OWN("ORG-9"), OWN("[redacted]") },
	{ OWN("borg-9 org- x_proj_1"), OWN("borg-9 org- x_proj_1") },
	{ OWN("arn:aws:bedrock:us-east-1:123456789012:inference-profile/eu.x is"),
	  OWN("[redacted] is") },
	{ OWN("account 123456789012, not 1234567890123 or a123456789012"),
	  OWN("account [redacted], not 1234567890123 or a123456789012") },
	{ OWN("key sk-secret at https://UP.example/v1"),
	  OWN("key [redacted] at https://[redacted]/v1") },
	{ OWN("\\u006frg-1 \\\"x\\\" \\n sk\\u002dsecret"),
	  OWN("[redacted] \\\"x\\\" \\n [redacted]") },
	{ OWN("a \\\"b\\\"\""), NULL },
	{ "{ \"error\" : { \"message\" : \"m\", \"type\":\"t\", "
	  "\"org-1\":[123456789012,-1.5e3,true] } , \"type\":\"error\"}",
	  "{ \"error\" : { \"message\" : \"m\", \"type\":\"t\", \"[redacted]\":[0,-1.5e3,true] } , "
	  "\"type\":\"error\"}" },
	{ "{\"error\":{\"message\":\"m\",\"type\":\"t\"}}", NULL },
	{ "{\"type\":\"error\",\"error\":{\"message\":\"m\"}}", NULL },
	{ "{\"type\":\"error\",\"error\":\"m\"}", NULL },
	{ "<html>", NULL },
	{ "", NULL },
};

static void what_a_provider_says_of_its_account_is_taken_out(void **state)
{
	static const struct slice secrets[] = { SLICE_INIT("sk-secret"), SLICE_INIT("up.example"),
						SLICE_INIT("") };
	struct writing w;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(redact_rows); i++) {
		const struct redact_row *row = &redact_rows[i];
		begin(&w);
		const struct slice clean = api_redact(API_MESSAGES, slice_str(row->body), secrets,
						      COUNT_OF(secrets), w.work, &w.arena);
		assert_slice(clean, row->clean);
		assert_int_equal(slice_absent(clean), row->clean == NULL);
		end(&w);
	}
}

static void each_api_has_its_own_shape(void **state)
{
	struct writing w;

	(void)state;
	begin(&w);
	const struct slice chat = SLICE("{\"error\":{\"message\":\"m\",\"code\":null}}");
	assert_true(slice_eq(api_redact(API_CHAT, chat, NULL, 0, w.work, &w.arena), chat));
	assert_true(slice_absent(api_redact(API_MESSAGES, chat, NULL, 0, w.work, &w.arena)));
	assert_true(slice_absent(
		api_redact(API_CHAT, SLICE("{\"message\":\"m\"}"), NULL, 0, w.work, &w.arena)));
	/* too large */
	char *large = malloc(API_REDACT_MAX + 64);
	assert_non_null(large);
	size_t len = (size_t)sprintf(large, "{\"error\":{\"message\":\"");
	(void)memset(large + len, 'x', API_REDACT_MAX);
	len += API_REDACT_MAX;
	(void)memcpy(large + len, "\"}}", 3);
	assert_true(slice_absent(
		api_redact(API_CHAT, slice_of(large, len + 3), NULL, 0, w.work, &w.arena)));
	free(large);
	end(&w);
}

static void an_event_of_an_error_passes_in_its_apis_form(void **state)
{
	static const struct slice secrets[] = { SLICE_INIT("up.example") };
	static const struct {
		enum api api;
		const char *event, *clean;
	} events[] = {
		{ API_MESSAGES, "event: error\r\ndata: " OWN("at up.example") "\r\n\r\n",
		  "event: error\ndata: " OWN("at [redacted]") "\n\n" },
		{ API_MESSAGES, "id: org-1\ndata: " OWN("\\u00e9") "\n\n",
		  "event: error\ndata: " OWN("\\u00e9") "\n\n" },
		{ API_CHAT, "data: {\"error\":\ndata: {\"message\":\"m\"}}\n\n",
		  "data: {\"error\":\ndata: {\"message\":\"m\"}}\n\n" },
		{ API_MESSAGES, "event: error\ndata: {\"message\":\"m\"}\n\n", NULL },
		{ API_CHAT, "event: error\n\n", NULL },
	};
	struct writing w;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(events); i++) {
		begin(&w);
		const struct slice clean = api_redact_event(
			events[i].api, slice_str(events[i].event), secrets, 1, w.work, &w.arena);
		assert_int_equal(slice_absent(clean), events[i].clean == NULL);
		if (events[i].clean != NULL)
			assert_slice(clean, events[i].clean);
		end(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reason_has_a_row),
		cmocka_unit_test(an_event_of_an_error_passes_in_its_apis_form),
		cmocka_unit_test(errors_have_each_apis_shape),
		cmocka_unit_test(particulars_are_told),
		cmocka_unit_test(a_stream_ends_with_its_apis_event),
		cmocka_unit_test(a_wait_is_told_so_that_sdks_keep_it),
		cmocka_unit_test(headers_of_anthropic_pass_but_for_accounts),
		cmocka_unit_test(what_is_left_is_told_in_both_families),
		cmocka_unit_test(what_a_provider_says_of_its_account_is_taken_out),
		cmocka_unit_test(each_api_has_its_own_shape),
	};

	return cmocka_run_group_tests_name("api_error", tests, NULL, NULL);
}
