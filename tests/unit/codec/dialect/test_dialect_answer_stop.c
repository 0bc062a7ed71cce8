/* The reasons to stop of all hosts, in answers and streams of every dialect. */
#include "tests/support/dialect_case.h"
#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* How an answer "par" that ends for a reason is handed on: what both readers say of it begins so. */
#define REFUSED "refusal"
#define LENGTH "maxTokens"
#define BROKEN "-32011"
#define BAD_CALL "-32015 The model wrote a tool call"

static const struct row {
	const char *reason, *expect;
} rows[] = {
	{ "content_filter", REFUSED },
	{ "CONTENT_FILTER", REFUSED },
	{ "content-filter", REFUSED },
	{ "contentFilter", REFUSED },
	{ "sensitive", REFUSED },
	{ "SAFETY", REFUSED },
	{ "safety", REFUSED },
	{ "RECITATION", REFUSED },
	{ "PROHIBITED_CONTENT", REFUSED },
	{ "prohibited_content", REFUSED },
	{ "BLOCKLIST", REFUSED },
	{ "SPII", REFUSED },
	{ "IMAGE_SAFETY", REFUSED },
	{ "FinishReason.SAFETY", REFUSED },
	{ "content_filter: RECITATION", REFUSED },
	{ "content_filter: OTHER", REFUSED },
	{ "guardrail_intervened", REFUSED },
	{ "content_filtered", REFUSED },
	{ "refusal", REFUSED },
	{ "ERROR_TOXIC", REFUSED },
	{ "model_context_window_exceeded", LENGTH },
	{ "MODEL_CONTEXT_WINDOW_EXCEEDED", LENGTH },
	{ "length", LENGTH },
	{ "LENGTH", LENGTH },
	{ "MAX_TOKENS", LENGTH },
	{ "max_tokens", LENGTH },
	{ "FinishReason.MAX_TOKENS", LENGTH },
	{ "model_length", LENGTH },
	{ "max_output_tokens", LENGTH },
	{ "network_error", BROKEN },
	{ "NETWORK_ERROR", BROKEN },
	{ "abort", BROKEN },
	{ "aborted", BROKEN },
	{ "error", BROKEN },
	{ "ERROR", BROKEN },
	{ "error: upstream", BROKEN },
	{ "function_call_filter: MALFORMED_FUNCTION_CALL", BAD_CALL },
	{ "function_call_filter: UNEXPECTED_TOOL_CALL", BAD_CALL },
	{ "function_call_filter", BAD_CALL },
	{ "MALFORMED_FUNCTION_CALL", BAD_CALL },
	{ "malformed_function_call", BAD_CALL },
	{ "UNEXPECTED_TOOL_CALL", BAD_CALL },
	{ "malformed_tool_use", BAD_CALL },
	{ "malformed_model_output", BAD_CALL },
	{ "tired", "other" },
	{ ":", "other" },
	{ "a:", "other" },
	{ "stop it", "other" },
};

#define OPENAI(message) "{\"choices\":[{" message "\"finish_reason\":\"%s\"}]}"
#define ANTHROPIC(content) "{\"type\":\"message\"," content "\"stop_reason\":\"%s\"}"
#define RESPONSES(output) \
	"{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"%s\"}," output "}"
#define EVENT(type, more) "event: " type "\ndata: {\"type\":\"" type "\"" more "}\n\n"

/* Where a dialect says the reason, with some text before it and with none. */
static const struct form {
	const char *name, *body, *bare;
	enum dialect_id dialect;
	bool stream;
} forms[] = {
	{ "openai", OPENAI("\"message\":{\"content\":\"par\"},"), OPENAI(""), DIALECT_OPENAI,
	  false },
	{ "anthropic", ANTHROPIC("\"content\":[{\"type\":\"text\",\"text\":\"par\"}],"),
	  ANTHROPIC(""), DIALECT_ANTHROPIC, false },
	{ "responses",
	  RESPONSES("\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\","
		    "\"text\":\"par\"}]}]"),
	  RESPONSES("\"output\":[]"), DIALECT_RESPONSES, false },
	{ "openai's stream",
	  "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"par\"}}]}\n\n"
	  "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"%s\"}]}\n\n"
	  "data: [DONE]\n\n",
	  "data: {\"choices\":[{\"index\":0,\"finish_reason\":\"%s\"}]}\n\n", DIALECT_OPENAI,
	  true },
	{ "anthropic's stream",
	  EVENT("message_start", ",\"message\":{\"id\":\"m\"}")
		  EVENT("content_block_start",
			",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"par\"}")
			  EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"%s\"}")
				  EVENT("message_stop", ""),
	  EVENT("message_start", ",\"message\":{\"id\":\"m\"}")
		  EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"%s\"}"),
	  DIALECT_ANTHROPIC, true },
	{ "responses' stream",
	  EVENT("response.output_text.delta",
		",\"item_id\":\"i\",\"output_index\":0,\"content_index\":0,\"delta\":\"par\"")
		  EVENT("response.incomplete", ",\"response\":{\"status\":\"incomplete\","
					       "\"incomplete_details\":{\"reason\":\"%s\"}}"),
	  EVENT("response.incomplete", ",\"response\":{\"status\":\"incomplete\","
				       "\"incomplete_details\":{\"reason\":\"%s\"}}"),
	  DIALECT_RESPONSES, true },
};

/* The stop reason, or the code and text of the failure. */
static const char *come_to(const struct form *form, const char *body)
{
	static char text[512];

	if (form->stream) {
		struct stream_case c;
		stream_case_init(&c, form->dialect);
		(void)snprintf(text, sizeof(text), "%s",
			       stream_case_run(&c, body, (struct stream_cut){ 0 }));
		stream_case_fini(&c);
		return text;
	}
	struct dialect_case c;
	case_init(&c, form->dialect);
	c.answer.status = 200;
	const enum err err = case_decode(&c, body);
	if (err == ERR_OK)
		(void)snprintf(text, sizeof(text), "%s", stop_reason_name(c.result.stop));
	else
		(void)snprintf(text, sizeof(text), "%d %s", err_info(err)->code,
			       case_failure_text(&c));
	case_fini(&c);
	return text;
}

static void check(const struct form *form, const char *format, const struct row *row)
{
	char body[1024];

	(void)snprintf(body, sizeof(body), format, row->reason);
	const char *have = come_to(form, body);
	if (strncmp(have, row->expect, strlen(row->expect)) != 0)
		fail_msg("%s, %s: %s", form->name, row->reason, have);
	if (strcmp(row->expect, REFUSED) == 0 || strcmp(row->expect, BROKEN) == 0)
		assert_null(strstr(have, "\"par\"")); /* nothing partial is an answer */
}

static void each_dialect_knows_the_reasons_of_all_hosts(void **state)
{
	(void)state;
	for (size_t f = 0; f < COUNT_OF(forms); f++)
		for (size_t i = 0; i < COUNT_OF(rows); i++)
			check(&forms[f], forms[f].body, &rows[i]);
}

static void an_answer_that_was_refused_or_failed_needs_no_content(void **state)
{
	(void)state;
	for (size_t f = 0; f < COUNT_OF(forms); f++)
		for (size_t i = 0; i < COUNT_OF(rows); i++)
			if (strcmp(rows[i].expect, "other") != 0 &&
			    strcmp(rows[i].expect, LENGTH) != 0)
				check(&forms[f], forms[f].bare, &rows[i]);
}

static void a_message_that_is_null_is_none(void **state)
{
	static const struct form null = { "null", NULL, NULL, DIALECT_OPENAI, false };
	static const char body[] = "{\"choices\":[{\"message\":null,\"finish_reason\":\"%s\"}]}";
	static const struct row known[] = {
		{ "content_filter", REFUSED },
		{ "network_error", BROKEN },
		{ "MALFORMED_FUNCTION_CALL", BAD_CALL },
		{ "stop", "-32015 The provider's answer has no message" },
		{ "length", "-32015 The provider's answer has no message" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(known); i++)
		check(&null, body, &known[i]);
}

/* Output that came before the cut is paid for. */
static void a_host_that_fails_within_its_answer_says_what_it_cost(void **state)
{
	struct dialect_case c;

	(void)state;
	case_init(&c, DIALECT_OPENAI);
	c.answer.status = 200;
	assert_int_equal(case_decode(&c, "{\"choices\":[{\"message\":{\"content\":\"par\"},"
					 "\"finish_reason\":\"network_error\"}],\"usage\":{"
					 "\"prompt_tokens\":10,\"completion_tokens\":5}}"),
			 ERR_PROVIDER_DOWN);
	assert_int_equal(c.failure.retry, RETRY_AGAIN);
	assert_int_equal(c.failure.blame, BLAME_ENDPOINT);
	assert_true(c.failure.usage_known && c.failure.usage.input == 10 &&
		    c.failure.usage.output == 5);
	assert_int_equal(case_decode(&c, "{\"choices\":[{\"message\":{\"content\":null},"
					 "\"finish_reason\":\"malformed_tool_use\"}],\"usage\":{"
					 "\"prompt_tokens\":10,\"completion_tokens\":5}}"),
			 ERR_PROVIDER_ANSWER);
	assert_int_equal(c.failure.retry, RETRY_ONCE);
	assert_true(c.failure.usage_known && c.failure.usage.output == 5);
	case_fini(&c);
}

static void the_usage_behind_a_failure_in_a_stream_counts(void **state)
{
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	const char *why = stream_case_differs(
		&c,
		"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"par\"}}]}\n\n"
		"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"abort\"}]}\n\n"
		"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n"
		"data: [DONE]\n\n",
		"-32011 The provider is overloaded or unavailable | retryable | usage 1/2/0/0/0");
	if (why != NULL)
		fail_msg("%s", why);
	stream_case_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_dialect_knows_the_reasons_of_all_hosts),
		cmocka_unit_test(an_answer_that_was_refused_or_failed_needs_no_content),
		cmocka_unit_test(a_message_that_is_null_is_none),
		cmocka_unit_test(a_host_that_fails_within_its_answer_says_what_it_cost),
		cmocka_unit_test(the_usage_behind_a_failure_in_a_stream_counts),
	};
	return cmocka_run_group_tests_name("dialect_answer_stop", tests, NULL, NULL);
}
