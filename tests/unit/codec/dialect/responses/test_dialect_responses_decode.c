#include "codec/dialect/dialect.h"
#include "tests/support/dialect_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static int begin(void **state)
{
	static struct dialect_case c;

	case_init(&c, DIALECT_RESPONSES);
	*state = &c;
	return 0;
}

static int end(void **state)
{
	case_fini(*state);
	return 0;
}

#define RESPONSE(output, more)                                                                     \
	"{\"id\":\"resp_1\",\"object\":\"response\",\"model\":\"m1\",\"output\":[" output "]" more \
	"}"
#define COMPLETED ",\"status\":\"completed\""
#define INCOMPLETE(reason) \
	",\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"" reason "\"}"
#define MESSAGE(parts)                                                                        \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"status\":\"completed\",\"content\":[" parts \
	"],\"role\":\"assistant\"}"
#define PART(text) \
	"{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[],\"text\":\"" text "\"}"
#define REFUSAL(text) "{\"type\":\"refusal\",\"refusal\":\"" text "\"}"
#define REASONING \
	"{\"id\":\"rs_1\",\"type\":\"reasoning\",\"summary\":[],\"encrypted_content\":\"gAAA\"}"
#define CALL_WITH(id, args, more)                                                 \
	"{\"id\":\"fc_1\",\"type\":\"function_call\"" more ",\"arguments\":" args \
	",\"call_id\":\"" id "\",\"name\":\"get_weather\"}"
#define CALL(id, args) CALL_WITH(id, args, ",\"status\":\"completed\"")

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define USE(id, input) \
	"{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"get_weather\",\"input\":" input "}"
#define IS(content, reason)                            \
	"{\"role\":\"assistant\",\"content\":" content \
	",\"model\":\"m1\",\"stopReason\":\"" reason "\"}"

static void answer_becomes_exactly_this_result(void **state)
{
	static const struct {
		const char *name, *body, *result, *adjustments;
	} rows[] = {
		{ "text", RESPONSE(MESSAGE(PART("a")), COMPLETED), IS(TEXT("a"), "endTurn"), "" },
		{ "reasoning is not for callers",
		  RESPONSE(REASONING "," MESSAGE(PART("a")), COMPLETED), IS(TEXT("a"), "endTurn"),
		  "" },
		{ "parts and messages become one text",
		  RESPONSE(MESSAGE(PART("a") "," PART("b")) "," MESSAGE(PART("c")), COMPLETED),
		  IS(TEXT("abc"), "endTurn"), "" },
		{ "a key twice beside a call and in its arguments",
		  "\xef\xbb\xbf" RESPONSE(CALL_WITH("call_1", "\"{\\\"a\\\":1,\\\"a\\\":2}\"",
						    ",\"status\":\"x\",\"status\":\"completed\""),
					  COMPLETED),
		  IS("[" USE("call_1", "{\"a\":2}") "]", "toolUse"), "duplicate_key_removed" },
		{ "cut inside a character",
		  RESPONSE(MESSAGE(PART("a\\ud83d")), INCOMPLETE("max_output_tokens")),
		  IS(TEXT("a"), "maxTokens"), "" },
		{ "a message whose type follows its content",
		  RESPONSE("{\"content\":[" PART("a") "],\"type\":\"message\"}", COMPLETED),
		  IS(TEXT("a"), "endTurn"), "" },
		{ "content that is a string",
		  RESPONSE("{\"type\":\"message\",\"content\":\"a\"}", COMPLETED),
		  IS(TEXT("a"), "endTurn"), "" },
		{ "a call has its call_id, not its id",
		  RESPONSE(CALL("call_1", "\"{\\\"a\\\":1}\""), COMPLETED),
		  IS("[" USE("call_1", "{\"a\":1}") "]", "toolUse"), "" },
		{ "texts and calls keep their order",
		  RESPONSE(CALL("c1", "\"{}\"") "," MESSAGE(PART("a")) "," CALL("c2", "\"\""),
			   COMPLETED),
		  IS("[" USE("c1", "{}") "," TEXT("a") "," USE("c2", "{}") "]", "toolUse"), "" },
		{ "two calls of one id are told apart",
		  RESPONSE(CALL("c", "\"{}\"") "," CALL("c", "\"{}\""), COMPLETED),
		  IS("[" USE("c", "{}") "," USE("c__2", "{}") "]", "toolUse"), "" },
		{ "no call_id",
		  RESPONSE("{\"type\":\"function_call\",\"name\":\"get_weather\","
			   "\"arguments\":\"{}\"}",
			   COMPLETED),
		  IS("[" USE("call_resp_1_0", "{}") "]", "toolUse"), "" },
		{ "no status at all", RESPONSE(MESSAGE(PART("a")), ""), IS(TEXT("a"), "endTurn"),
		  "" },
		{ "out of tokens", RESPONSE(MESSAGE(PART("a")), INCOMPLETE("max_output_tokens")),
		  IS(TEXT("a"), "maxTokens"), "" },
		{ "out of tokens while thinking",
		  RESPONSE(REASONING, INCOMPLETE("max_output_tokens")), IS(TEXT(""), "maxTokens"),
		  "" },
		{ "out of tokens inside a call",
		  RESPONSE(CALL("c1", "\"{}\"") "," CALL_WITH("c2", "\"{\\\"a\\\":\"",
							      ",\"status\":\"incomplete\""),
			   INCOMPLETE("max_output_tokens")),
		  IS("[" USE("c1", "{}") "]", "maxTokens"), "incomplete_tool_use_dropped" },
		{ "out of tokens inside a call that happens to be an object",
		  RESPONSE(CALL_WITH("c", "\"{}\"", ",\"status\":\"incomplete\""),
			   INCOMPLETE("max_output_tokens")),
		  IS(TEXT(""), "maxTokens"), "incomplete_tool_use_dropped" },
		{ "filtered", RESPONSE(MESSAGE(PART("half")), INCOMPLETE("content_filter")),
		  IS(TEXT(""), "refusal"), "partial_output_discarded" },
		{ "incomplete for a new reason", RESPONSE(MESSAGE(PART("a")), INCOMPLETE("moon")),
		  IS(TEXT("a"), "other"), "" },
		{ "a refusal", RESPONSE(MESSAGE(REFUSAL("no")), COMPLETED),
		  IS(TEXT("no"), "refusal"), "" },
		{ "a refusal behind a text",
		  RESPONSE(MESSAGE(PART("well") "," REFUSAL("no")), COMPLETED),
		  IS(TEXT("no"), "refusal"), "partial_output_discarded" },
		{ "what the provider's own tools did",
		  RESPONSE("{\"type\":\"web_search_call\",\"status\":\"completed\"}," MESSAGE(
				   PART("a")),
			   COMPLETED),
		  IS(TEXT("a"), "endTurn"), "" },
		{ "a custom call cannot be",
		  RESPONSE("{\"type\":\"custom_tool_call\",\"call_id\":\"c\",\"name\":\"x\","
			   "\"input\":\"y\"}," MESSAGE(PART("a")),
			   COMPLETED),
		  IS(TEXT("a"), "endTurn"), "unknown_block_dropped" },
		{ "unknown items and parts",
		  RESPONSE("{\"type\":\"hologram\"}," MESSAGE("{\"type\":\"smell\"}," PART("a")),
			   COMPLETED),
		  IS(TEXT("a"), "endTurn"), "unknown_block_dropped" },
		{ "nothing at all", RESPONSE("", COMPLETED), IS(TEXT(""), "endTurn"), "" },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (case_decode(c, rows[i].body) != ERR_OK)
			fail_msg("%s: %s", rows[i].name, case_failure_text(c));
		if (strcmp(case_result(c), rows[i].result) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, case_result(c),
				 rows[i].result);
		if (strcmp(case_adjustments(c, c->result.adjustments), rows[i].adjustments) != 0)
			fail_msg("%s: %s", rows[i].name,
				 case_adjustments(c, c->result.adjustments));
		case_reset(c);
	}
}

static void an_answer_that_cannot_be_used_is_a_failure(void **state)
{
#define FAILED(code) \
	RESPONSE("", ",\"status\":\"failed\",\"error\":{\"code\":\"" code "\",\"message\":\"x\"}")
	static const struct {
		const char *name;
		uint16_t status;
		const char *body;
		enum err err;
		enum retry retry;
		const char *text;
	} rows[] = {
		{ "failed", 200, FAILED("server_error"), ERR_PROVIDER_DOWN, RETRY_AGAIN, NULL },
		{ "failed for its rate", 200, FAILED("rate_limit_exceeded"), ERR_PROVIDER_RATE,
		  RETRY_AGAIN, NULL },
		{ "failed for the prompt", 200, FAILED("invalid_prompt"), ERR_PROVIDER_REJECTED,
		  RETRY_NEVER, NULL },
		{ "failed for an image", 200, FAILED("image_too_large"), ERR_PROVIDER_REJECTED,
		  RETRY_NEVER, NULL },
		{ "failed without a word", 200, RESPONSE("", ",\"status\":\"failed\""),
		  ERR_PROVIDER_DOWN, RETRY_AGAIN, NULL },
		{ "not over", 200, RESPONSE("", ",\"status\":\"in_progress\""), ERR_PROVIDER_ANSWER,
		  RETRY_ONCE, "The provider's answer is neither complete nor failed" },
		{ "no output", 200, "{\"id\":\"r\",\"status\":\"completed\"}", ERR_PROVIDER_ANSWER,
		  RETRY_ONCE, "The provider's answer has no output: malformed" },
		{ "no name", 200,
		  RESPONSE("{\"type\":\"function_call\",\"call_id\":\"c\"}", COMPLETED),
		  ERR_PROVIDER_ANSWER, RETRY_ONCE,
		  "The provider's tool call has no name: malformed" },
		{ "no text", 200, RESPONSE(MESSAGE("{\"type\":\"output_text\"}"), COMPLETED),
		  ERR_PROVIDER_ANSWER, RETRY_ONCE,
		  "A text part of the provider's answer has no text: malformed" },
		{ "arguments that are no object", 200, RESPONSE(CALL("c", "\"[1]\""), COMPLETED),
		  ERR_PROVIDER_ANSWER, RETRY_ONCE,
		  "The arguments of the provider's tool call are not a JSON object" },
		{ "no JSON", 200, "{", ERR_PROVIDER_ANSWER, RETRY_ONCE, NULL },
		{ "another format", 200, "[]", ERR_PROVIDER_ANSWER, RETRY_ONCE, NULL },
		{ "a status", 429,
		  "{\"error\":{\"code\":\"rate_limit_exceeded\",\"message\":\"x\"}}",
		  ERR_PROVIDER_RATE, RETRY_AGAIN, NULL },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		c->answer.status = rows[i].status;
		enum err err = case_decode(c, rows[i].body);
		if (err != rows[i].err || c->failure.retry != rows[i].retry)
			fail_msg("%s: %s, retry %d", rows[i].name, err_info(err)->reason,
				 c->failure.retry);
		if (rows[i].text != NULL)
			assert_string_equal(case_failure_text(c), rows[i].text);
		case_reset(c);
	}
}

static void a_400_teaches(void **state)
{
	static const struct {
		const char *body;
		enum learn learn;
	} rows[] = {
		{ "{\"error\":{\"message\":\"Unsupported parameter: 'temperature' is not supported "
		  "with this model.\",\"param\":\"temperature\"}}",
		  LEARN_NO_TEMPERATURE },
		{ "{\"error\":{\"message\":\"Unsupported value: 'low'\",\"param\":"
		  "\"reasoning.effort\"}}",
		  LEARN_EFFORT_NONE },
	};
	struct dialect_case *c = *state;

	c->answer.status = 400;
	c->context.teachable = LEARN_BIT(LEARN_NO_TEMPERATURE) | LEARN_BIT(LEARN_EFFORT_NONE);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_int_equal(case_decode(c, rows[i].body), ERR_PROVIDER_REJECTED);
		assert_int_equal(c->failure.learn, rows[i].learn);
	}
}

static void usage_is_in_its_normal_form_already(void **state)
{
	static const struct {
		const char *usage;
		struct usage want;
	} rows[] = {
		{ "{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":4},"
		  "\"output_tokens\":7,\"output_tokens_details\":{\"reasoning_tokens\":5},"
		  "\"total_tokens\":17}",
		  { .known = true, .input = 10, .output = 7, .cache_read = 4, .reasoning = 5 } },
		{ "{\"input_tokens\":10,\"output_tokens\":7,\"input_tokens_details\":null}",
		  { .known = true, .input = 10, .output = 7 } },
		{ "{\"output_tokens\":7,\"output_tokens_details\":{\"x\":1,"
		  "\"reasoning_tokens\":9}}",
		  { .known = true, .output = 7, .reasoning = 7 } },
		{ "{\"input_tokens\":10,\"output_tokens\":7,\"output_tokens_details\":{\"reasoning_"
		  "tokens\":30},"
		  "\"total_tokens\":47}",
		  { .known = true, .input = 10, .output = 37, .reasoning = 30 } },
		{ "{\"input_tokens\":10,\"input_tokens_details\":{\"cached_tokens\":90},\"output_"
		  "tokens\":7,"
		  "\"total_tokens\":107}",
		  { .known = true, .input = 100, .output = 7, .cache_read = 90 } },
		{ "null", { 0 } },
		{ "{}", { 0 } },
		{ "[1]", { 0 } },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		char body[512] = "{\"status\":\"completed\",\"output\":[],\"usage\":";
		assert_true(strlen(body) + strlen(rows[i].usage) + 2 < sizeof(body));
		(void)strcat(strcat(body, rows[i].usage), "}");
		assert_int_equal(case_decode(c, body), ERR_OK);
		const struct usage *have = &c->result.usage, *want = &rows[i].want;
		assert_int_equal(have->known, want->known);
		assert_int_equal(have->input, want->input);
		assert_int_equal(have->output, want->output);
		assert_int_equal(have->cache_read, want->cache_read);
		assert_int_equal(have->reasoning, want->reasoning);
	}
}

static enum err decode_all(struct dialect_case *c)
{
	return case_decode(c, RESPONSE(REASONING "," MESSAGE(PART("a") "," PART("b")) "," CALL(
					       "c", "\"{\\\"a\\\":1}\"") "," CALL("c", "\"{}\""),
				       COMPLETED));
}

static void want_of_memory_is_an_answer(void **state)
{
	assert_true(case_starve(*state, decode_all) > 10);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answer_becomes_exactly_this_result),
		TEST(an_answer_that_cannot_be_used_is_a_failure),
		TEST(a_400_teaches),
		TEST(usage_is_in_its_normal_form_already),
		TEST(want_of_memory_is_an_answer),
	};
	return cmocka_run_group_tests_name("dialect_responses_decode", tests, NULL, NULL);
}
