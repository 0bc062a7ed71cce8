#include "codec/dialect/dialect_failure.h"

#include "tests/support/dialect_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int begin(void **state)
{
	static struct dialect_case c;

	case_init(&c, DIALECT_OPENAI);
	*state = &c;
	return 0;
}

static int end(void **state)
{
	case_fini(*state);
	return 0;
}

static enum err classify(struct dialect_case *c, uint16_t status, const char *body)
{
	c->answer.status = status;
	c->answer.body = slice_str(body);
	return failure_classify(&c->answer, c->context.teachable, c->work, &c->arena, &c->failure);
}

static void status_and_names_decide_the_class(void **state)
{
	static const struct {
		const char *name;
		uint16_t status;
		const char *body;
		enum err err;
		enum retry retry;
		enum blame blame;
	} rows[] = {
		{ "bad request", 400, "", ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST },
		{ "key", 401, "", ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_KEY },
		{ "payment", 402, "", ERR_PROVIDER_BILLING, RETRY_ELSEWHERE, BLAME_KEY },
		{ "more output than the credit is good for", 402,
		  "{\"error\":{\"message\":\"This request requires more credits, or fewer "
		  "max_tokens. "
		  "You requested up to 65536 tokens, but can only afford 30104.\",\"code\":402}}",
		  ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL },
		{ "a prompt that is", 402,
		  "{\"error\":{\"message\":\"Prompt tokens limit exceeded: 5038 > "
		  "2662.\",\"code\":402}}",
		  ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL },
		{ "the same in a 200", 200,
		  "{\"error\":{\"message\":\"This request requires more credits, or fewer "
		  "max_tokens.\","
		  "\"code\":402}}",
		  ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL },
		{ "no credit at all", 402,
		  "{\"error\":{\"message\":\"Insufficient credits. This account never purchased "
		  "any.\","
		  "\"code\":402}}",
		  ERR_PROVIDER_BILLING, RETRY_ELSEWHERE, BLAME_KEY },
		{ "no credit, with a quotation", 402,
		  "{\"error\":{\"message\":\"Payment required: 'This request requires more "
		  "credits, or "
		  "fewer max_tokens'\"}}",
		  ERR_PROVIDER_BILLING, RETRY_ELSEWHERE, BLAME_KEY },
		{ "forbidden", 403, "", ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL },
		{ "model", 404, "", ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_MODEL },
		{ "method", 405, "", ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST },
		{ "timeout", 408, "", ERR_PROVIDER_DOWN, RETRY_AGAIN, BLAME_ENDPOINT },
		{ "conflict", 409, "", ERR_PROVIDER_DOWN, RETRY_AGAIN, BLAME_ENDPOINT },
		{ "size", 413, "<html>", ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST },
		{ "rate", 429, "", ERR_PROVIDER_RATE, RETRY_AGAIN, BLAME_KEY },
		{ "flex capacity", 498, "", ERR_PROVIDER_DOWN, RETRY_AGAIN, BLAME_ENDPOINT },
		{ "internal", 500, "{\"error\":null}", ERR_PROVIDER_DOWN, RETRY_AGAIN,
		  BLAME_ENDPOINT },
		{ "overloaded", 529, "", ERR_PROVIDER_DOWN, RETRY_AGAIN, BLAME_ENDPOINT },
		{ "redirect", 302, "", ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_ENDPOINT },
		{ "rate by the owner's limit", 429,
		  "{\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"details\":{"
		  "\"error_code\":"
		  "\"contract_spend_limit_reached\"}}}",
		  ERR_PROVIDER_BILLING, RETRY_ELSEWHERE, BLAME_KEY },
		{ "quota by type", 429, "{\"error\":{\"type\":\"insufficient_quota\"}}",
		  ERR_PROVIDER_BILLING, RETRY_ELSEWHERE, BLAME_KEY },
		{ "no credit, by its text", 400,
		  "{\"error\":{\"message\":\"Your credit balance is too low\"}}",
		  ERR_PROVIDER_BILLING, RETRY_ELSEWHERE, BLAME_KEY },
		{ "a bad key as 400", 400, "{\"error\":{\"message\":\"API key not valid.\"}}",
		  ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_KEY },
		{ "a schema that speaks of credit, quoted", 400,
		  "{\"error\":{\"message\":\"Invalid schema for function 'f': In context="
		  "('properties', 'Your credit balance'), schema must have a type\"}}",
		  ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST },
		{ "one that speaks of keys, quoted", 400,
		  "{\"error\":{\"message\":\"'API key not valid' is not of type 'object'\"}}",
		  ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST },
		{ "the window, by its text, flat", 400,
		  "{\"object\":\"error\",\"message\":\"This model's maximum context length is 9\","
		  "\"type\":\"BadRequestError\",\"code\":400}",
		  ERR_CONTEXT_WINDOW, RETRY_NEVER, BLAME_REQUEST },
		{ "the window, in a list", 400,
		  "[{\"error\":{\"code\":400,\"message\":\"exceeds the context window\"}},7]",
		  ERR_CONTEXT_WINDOW, RETRY_NEVER, BLAME_REQUEST },
		{ "the window, as Gemini says it", 400,
		  "[{\"error\":{\"code\":400,\"message\":\"The input token count (2845475) "
		  "exceeds the maximum number of tokens allowed "
		  "(1048576).\",\"status\":\"INVALID_ARGUMENT\"}}]",
		  ERR_CONTEXT_WINDOW, RETRY_NEVER, BLAME_REQUEST },
		{ "as vLLM says it", 400,
		  "{\"error\":{\"message\":\"The decoder prompt (length 12345) is longer "
		  "than the maximum model length of "
		  "8192.\",\"type\":\"BadRequestError\",\"code\":400}}",
		  ERR_CONTEXT_WINDOW, RETRY_NEVER, BLAME_REQUEST },
		{ "as it said it before", 400,
		  "{\"object\":\"error\",\"message\":\"Prompt length of 5016 is longer "
		  "than the maximum model length of 4096.\",\"code\":400}",
		  ERR_CONTEXT_WINDOW, RETRY_NEVER, BLAME_REQUEST },
		{ "as xAI says it", 400,
		  "{\"code\":\"Client specified an invalid argument\",\"error\":\"This "
		  "model's maximum prompt length is 131072 but the request contains 136973 "
		  "tokens.\"}",
		  ERR_CONTEXT_WINDOW, RETRY_NEVER, BLAME_REQUEST },
		{ "as Together says it", 400,
		  "{\"error\":{\"message\":\"The input (516368 tokens) is longer than the "
		  "model's context length (262144 "
		  "tokens).\",\"type\":\"invalid_request_error\"}}",
		  ERR_CONTEXT_WINDOW, RETRY_NEVER, BLAME_REQUEST },
		{ "that text under another status means nothing", 500,
		  "{\"error\":{\"message\":\"context window\"}}", ERR_PROVIDER_DOWN, RETRY_AGAIN,
		  BLAME_ENDPOINT },
		{ "an error in a 200, by its type", 200,
		  "{\"error\":{\"type\":\"invalid_request_error\"}}", ERR_PROVIDER_REJECTED,
		  RETRY_NEVER, BLAME_REQUEST },
		{ "by its code", 200, "{\"error\":{\"code\":\"rate_limit_exceeded\"}}",
		  ERR_PROVIDER_RATE, RETRY_AGAIN, BLAME_KEY },
		{ "by a numeric code that is a string", 200, "{\"error\":{\"code\":\"429\"}}",
		  ERR_PROVIDER_RATE, RETRY_AGAIN, BLAME_KEY },
		{ "by a numeric code", 200, "{\"error\":{\"code\":404}}", ERR_PROVIDER_OPERATOR,
		  RETRY_ELSEWHERE, BLAME_MODEL },
		{ "by nothing", 200, "{\"error\":\"boom\"}", ERR_PROVIDER_DOWN, RETRY_AGAIN,
		  BLAME_ENDPOINT },
		{ "a code that is no status", 200, "{\"error\":{\"code\":7}}", ERR_PROVIDER_DOWN,
		  RETRY_AGAIN, BLAME_ENDPOINT },
		{ "a prompt filter is a refusal", 400, "{\"error\":{\"code\":\"content_filter\"}}",
		  ERR_OK, RETRY_NEVER, BLAME_REQUEST },
		{ "under every status that is not about the key", 500,
		  "{\"error\":{\"code\":\"content_filter\"}}", ERR_OK, RETRY_NEVER, BLAME_REQUEST },
		{ "one that is about the key", 401, "{\"error\":{\"code\":\"content_filter\"}}",
		  ERR_PROVIDER_OPERATOR, RETRY_ELSEWHERE, BLAME_KEY },
		{ "JSON that breaks off says nothing", 429,
		  "{\"error\":{\"type\":\"insufficient_quota\"}", ERR_PROVIDER_RATE, RETRY_AGAIN,
		  BLAME_KEY },
		{ "a day's quota", 429,
		  "[{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{"
		  "\"violations\":[{\"quotaId\":\"GenerateRequestsPerDayPerProject\"}]},{"
		  "\"retryDelay\":\"36s\"}]}}]",
		  ERR_PROVIDER_RATE, RETRY_ELSEWHERE, BLAME_KEY },
		{ "a minute's quota", 429,
		  "[{\"error\":{\"code\":429,\"details\":[{\"violations\":[{\"quotaId\":"
		  "\"GenerateRequestsPerMinute\"}]}]}}]",
		  ERR_PROVIDER_RATE, RETRY_AGAIN, BLAME_KEY },
		{ "a call that the host could not read", 400,
		  "{\"error\":{\"code\":\"tool_use_failed\"}}", ERR_PROVIDER_ANSWER, RETRY_ONCE,
		  BLAME_ANSWER },
		{ "more than a minute's tokens", 429,
		  "{\"error\":{\"message\":\"Request too large for gpt-4o in organization org-x on "
		  "tokens "
		  "per min (TPM): Limit 30000, Requested 30601.\",\"type\":\"tokens\",\"code\":"
		  "\"rate_limit_exceeded\"}}",
		  ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL },
		{ "as Groq says it", 413,
		  "{\"error\":{\"message\":\"Request too large for model `m` in organization "
		  "`o`\",\"type\":"
		  "\"tokens\",\"code\":\"rate_limit_exceeded\"}}",
		  ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL },
		{ "in a stream", 200,
		  "{\"error\":{\"message\":\"Request too large for gpt-5.1\",\"code\":"
		  "\"rate_limit_exceeded\"}}",
		  ERR_PROVIDER_REJECTED, RETRY_ELSEWHERE, BLAME_MODEL },
		{ "what only this minute has no more of", 429,
		  "{\"error\":{\"message\":\"Rate limit reached for 'Request too large "
		  "for'\",\"code\":"
		  "\"rate_limit_exceeded\"}}",
		  ERR_PROVIDER_RATE, RETRY_AGAIN, BLAME_KEY },
		{ "wrong types everywhere", 400,
		  "{\"error\":{\"type\":1,\"code\":[],\"message\":{},\"param\":true,\"details\":7},"
		  "\"request_id\":{}}",
		  ERR_PROVIDER_REJECTED, RETRY_NEVER, BLAME_REQUEST },
		{ "details of wrong types", 400,
		  "{\"error\":{\"details\":[1,[],{\"retryDelay\":7}]}}", ERR_PROVIDER_REJECTED,
		  RETRY_NEVER, BLAME_REQUEST },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		enum err err = classify(c, rows[i].status, rows[i].body);
		if (err != rows[i].err || c->failure.err != err)
			fail_msg("%s: %s", rows[i].name, err_info(err)->reason);
		if (c->failure.retry != rows[i].retry || c->failure.blame != rows[i].blame)
			fail_msg("%s: retry %d, blame %d", rows[i].name, c->failure.retry,
				 c->failure.blame);
		assert_int_equal(c->failure.retryable, rows[i].retry >= RETRY_ONCE);
		assert_int_equal(c->failure.learn, LEARN_NOTHING);
		assert_false(c->failure.usage_known);
		case_reset(c);
	}
}

static void a_prompt_filter_is_a_result(void **state)
{
	struct dialect_case *c = *state;

	c->answer.status = 400;
	assert_int_equal(
		case_decode(c, "{\"error\":{\"message\":\"x\",\"code\":\"content_filter\","
			       "\"innererror\":{\"code\":\"ResponsibleAIPolicyViolation\"}}}"),
		ERR_OK);
	assert_string_equal(case_result(c),
			    "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"\"},"
			    "\"model\":\"asked\",\"stopReason\":\"refusal\"}");
	assert_false(c->result.usage.known);
}

static void nothing_of_the_providers_text_gets_out(void **state)
{
	struct dialect_case *c = *state;

	for (uint16_t status = 300; status < 600; status++) {
		(void)classify(c, status,
			       "{\"error\":{\"message\":\"sk-secret\",\"type\":\"sk-secret\"}}");
		assert_null(strstr(case_failure_text(c), "secret"));
	}
}

static void the_header_decides_about_retries(void **state)
{
	static const struct {
		const char *header;
		uint16_t status;
		enum retry retry;
		enum blame blame;
	} rows[] = {
		/* who is not to blame would be asked again at once */
		{ "true", 400, RETRY_AGAIN, BLAME_ENDPOINT },
		{ "True", 429, RETRY_AGAIN, BLAME_KEY },
		{ " FALSE", 529, RETRY_ELSEWHERE, BLAME_ENDPOINT },
		{ "false", 401, RETRY_ELSEWHERE, BLAME_KEY },
		{ "false", 400, RETRY_NEVER, BLAME_REQUEST },
		{ "perhaps", 529, RETRY_AGAIN, BLAME_ENDPOINT },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		c->answer.headers.should_retry = slice_str(rows[i].header);
		(void)classify(c, rows[i].status, "");
		if (c->failure.retry != rows[i].retry || c->failure.blame != rows[i].blame)
			fail_msg("%s: retry %d, blame %d", rows[i].header, c->failure.retry,
				 c->failure.blame);
		assert_int_equal(c->failure.retryable, rows[i].retry >= RETRY_ONCE);
	}
}

static void waits_are_read_in_every_form(void **state)
{
	static const struct {
		const char *name, *after_ms, *after, *date;
		int64_t ms;
	} rows[] = {
		{ "nothing", NULL, NULL, NULL, -1 },
		{ "seconds", NULL, "17", NULL, 17000 },
		{ "a fraction", NULL, " 1.25 ", NULL, 1250 },
		{ "more digits than count", NULL, "0.0019", NULL, 1 },
		{ "zero", NULL, "0", NULL, 0 },
		{ "milliseconds win", "250.5", "9", NULL, 250 },
		{ "unless they are none", "soon", "9", NULL, 9000 },
		{ "negative", NULL, "-3", NULL, -1 },
		{ "words", NULL, "later", NULL, -1 },
		{ "two points", NULL, "1.2.3", NULL, -1 },
		{ "for ever is a month", NULL, "99999999", NULL, INT64_C(2592000000) },
		{ "more than a number", NULL, "99999999999999999999999", NULL, -1 },
		{ "a date against the sender's", NULL, "Sat, 21 Nov 2026 20:00:30 GMT",
		  "Sat, 21 Nov 2026 20:00:00 GMT", 30000 },
		{ "a date against our clock", NULL, "Fri, 15 Jan 2027 08:00:07 GMT", NULL, 7000 },
		{ "a sender's date that is none", NULL, "Fri, 15 Jan 2027 08:00:07 GMT", "now",
		  7000 },
		{ "a date that has passed", NULL, "Sat, 21 Nov 2020 20:00:30 GMT", NULL, 0 },
		{ "a date far away", NULL, "Sat, 21 Nov 9999 20:00:30 GMT", NULL,
		  INT64_C(2592000000) },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct provider_headers headers = { .retry_after_ms = slice_str(rows[i].after_ms),
						    .retry_after = slice_str(rows[i].after),
						    .date = slice_str(rows[i].date) };
		int64_t ms = failure_retry_after(&headers, 1800000000); /* 2027-01-15 08:00:00 */
		if (ms != rows[i].ms)
			fail_msg("%s: %lld ms", rows[i].name, (long long)ms);
	}
}

static void a_wait_in_the_body_counts_where_no_header_says_one(void **state)
{
	static const char body[] =
		"[{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\",\"details\":["
		"{\"@type\":\"QuotaFailure\"},{\"@type\":\"RetryInfo\",\"retryDelay\":"
		"\"36.5s\"}]}}]";
	struct dialect_case *c = *state;

	assert_int_equal(classify(c, 429, body), ERR_PROVIDER_RATE);
	assert_int_equal(c->failure.retry_after_ms, 36500);
	c->answer.headers.retry_after = SLICE("2");
	(void)classify(c, 429, body);
	assert_int_equal(c->failure.retry_after_ms, 2000);
}

static void what_will_not_pass_later_has_no_wait(void **state)
{
	struct dialect_case *c = *state;

	c->answer.headers.retry_after = SLICE("2");
	(void)classify(c, 429, "{\"error\":{\"message\":\"Request too large for gpt-4o\"}}");
	assert_int_equal(c->failure.retry_after_ms, -1);
	(void)classify(c, 429, "");
	assert_int_equal(c->failure.retry_after_ms, 2000);
	c->answer.headers.should_retry = SLICE("true"); /* who says so means a wait */
	(void)classify(c, 400, "");
	assert_int_equal(c->failure.retry_after_ms, 2000);
}

static void http_dates_are_read_in_their_three_forms(void **state)
{
	static const struct {
		const char *text;
		int64_t epoch_s; /* < 0: no date */
	} rows[] = {
		{ "Thu, 01 Jan 1970 00:00:00 GMT", 0 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 784111777 },
		{ "Sunday, 06-Nov-94 08:49:37 GMT", 784111777 },
		{ "Sun Nov  6 08:49:37 1994", 784111777 },
		{ "Thu, 29 Feb 2024 23:59:60 GMT", 1709251200 },
		{ "Wed Feb 28 00:00:00 2029", 1866931200 },
		{ "Tuesday, 01-Mar-50 00:00:00 GMT", 2529705600 },
		{ " Sat, 21 Nov 2026 20:00:30 GMT ", 1795291230 },
		{ "", -1 },
		{ "Sat,", -1 },
		{ "Sat, 21 Nov 2026", -1 },
		{ "Sat, 21 Nov 2026 20:00:30", -1 },
		{ "Sat, 21 Nov 2026 20:00:30 UTC", -1 },
		{ "Sat, 21 Nov 2026 24:00:30 GMT", -1 },
		{ "Sat, 32 Nov 2026 20:00:30 GMT", -1 },
		{ "Sat, 00 Nov 2026 20:00:30 GMT", -1 },
		{ "Sat, 21 Nox 2026 20:00:30 GMT", -1 },
		{ "Sat, 21 Nov 1969 20:00:30 GMT", -1 },
		{ "Sat, 21 Nov 2026 20:00:30 GMT x", -1 },
		{ "Sat, 2x Nov 2026 20:00:30 GMT", -1 },
		{ "Sun Nov 6 08:49:37 1994", -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		uint64_t epoch_s = 0;
		bool read = http_date(slice_str(rows[i].text), &epoch_s);
		if (read != (rows[i].epoch_s >= 0) ||
		    (read && epoch_s != (uint64_t)rows[i].epoch_s))
			fail_msg("\"%s\": %d %llu", rows[i].text, read,
				 (unsigned long long)epoch_s);
	}
}

static void request_ids_are_taken_when_they_look_like_one(void **state)
{
	static const struct {
		const char *header, *body, *id;
	} rows[] = {
		{ "req_1", "{\"request_id\":\"req_2\"}", "req_1" },
		{ NULL, "{\"request_id\":\"req_2\"}", "req_2" },
		{ "", "{\"request_id\":\"req_2\"}", "req_2" },
		{ "a b", "", NULL },
		{ "a\"b", "", NULL },
		{ "\xc3\xa9", "", NULL },
		{ NULL, "{\"request_id\":\"a\\u0062\"}", NULL },
		{ NULL, "{\"request_id\":7}", NULL },
		{ NULL,
		  "{\"request_id\":"
		  "\"0123456789012345678901234567890123456789012345678901234567890123456789"
		  "01234567890123456789012345678901234567890123456789012345678\"}",
		  NULL },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		c->answer.headers.request_id = slice_str(rows[i].header);
		(void)classify(c, 500, rows[i].body);
		assert_true(slice_eq(c->failure.request_id, slice_str(rows[i].id)));
		assert_int_equal(slice_absent(c->failure.request_id), rows[i].id == NULL);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(status_and_names_decide_the_class),
		TEST(a_prompt_filter_is_a_result),
		TEST(nothing_of_the_providers_text_gets_out),
		TEST(the_header_decides_about_retries),
		TEST(waits_are_read_in_every_form),
		TEST(a_wait_in_the_body_counts_where_no_header_says_one),
		TEST(what_will_not_pass_later_has_no_wait),
		TEST(http_dates_are_read_in_their_three_forms),
		TEST(request_ids_are_taken_when_they_look_like_one),
	};
	return cmocka_run_group_tests_name("dialect_failure", tests, NULL, NULL);
}
