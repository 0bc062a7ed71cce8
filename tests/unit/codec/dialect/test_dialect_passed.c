/* Answers that whoever asked gets as they are: what MCP could not take is no failure, and what they cost is read. */
#include "tests/support/dialect_case.h"
#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MESSAGE(content, reason)                                                            \
	"{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"model\":\"m\"" content \
	",\"stop_reason\":" reason ",\"usage\":{\"input_tokens\":7,\"output_tokens\":3}}"
#define CHAT(choices)                                                                       \
	"{\"id\":\"r\",\"object\":\"chat.completion\",\"model\":\"m\",\"choices\":" choices \
	",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"total_tokens\":10}}"
#define CALL(call) \
	"[{\"index\":0,\"message\":{\"tool_calls\":[" call "]},\"finish_reason\":\"tool_calls\"}]"

/* All of these are answers by the API's grammar. */
static const struct {
	enum dialect_id dialect;
	const char *body;
	bool odd; /* not for MCP */
} answers[] = {
	{ DIALECT_ANTHROPIC, MESSAGE(",\"content\":[{\"type\":\"novel\"}]", "\"end_turn\""),
	  false },
	{ DIALECT_ANTHROPIC, MESSAGE(",\"content\":[]", "\"pause_turn\""), false },
	{ DIALECT_ANTHROPIC, MESSAGE("", "\"end_turn\""), true },
	{ DIALECT_ANTHROPIC, MESSAGE(",\"content\":null", "\"novel\""), true },
	{ DIALECT_ANTHROPIC, MESSAGE(",\"content\":[{\"type\":\"text\"}]", "\"end_turn\""), true },
	{ DIALECT_ANTHROPIC,
	  MESSAGE(",\"content\":[{\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"n\",\"input\":\"{"
		  "\"}]",
		  "\"tool_use\""),
	  true },
	{ DIALECT_ANTHROPIC,
	  MESSAGE(",\"content\":[{\"type\":\"tool_use\",\"id\":\"i\",\"input\":{}}]",
		  "\"tool_use\""),
	  true },
	{ DIALECT_ANTHROPIC, MESSAGE(",\"content\":[]", "\"error\""), true },
	{ DIALECT_ANTHROPIC, MESSAGE(",\"content\":[]", "\"malformed_tool_use\""), true },
	{ DIALECT_OPENAI, CHAT("[]"), true },
	{ DIALECT_OPENAI, CHAT("[{\"index\":0,\"finish_reason\":\"novel\"}]"), true },
	{ DIALECT_OPENAI,
	  CHAT(CALL(
		  "{\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":\"n\",\"arguments\":"
		  "\"{\\\"a\\\":\"}}")),
	  true },
	{ DIALECT_OPENAI, CHAT(CALL("{\"id\":\"i\",\"type\":\"novel\",\"novel\":{}}")), true },
	{ DIALECT_OPENAI,
	  CHAT("[{\"index\":0,\"message\":{\"content\":7},\"finish_reason\":\"stop\"}]"), true },
	{ DIALECT_OPENAI,
	  CHAT("[{\"index\":0,\"message\":{\"content\":\"\"},\"finish_reason\":\"error\"}]"),
	  true },
};

static void an_answer_that_is_odd_to_mcp_is_one_all_the_same(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(answers); i++) {
		struct dialect_case c;
		case_init(&c, answers[i].dialect);
		if ((case_decode(&c, answers[i].body) != ERR_OK) != answers[i].odd)
			fail_msg("for MCP: %s", answers[i].body);
		c.context.passed = true;
		if (case_decode(&c, answers[i].body) != ERR_OK)
			fail_msg("%s: %s", answers[i].body, case_failure_text(&c));
		assert_true(c.result.usage.known);
		assert_int_equal(c.result.usage.input, 7);
		assert_int_equal(c.result.usage.output, 3);
		case_fini(&c);
	}
}

static const struct {
	enum dialect_id dialect;
	const char *body;
} failures[] = {
	{ DIALECT_ANTHROPIC, "<html>" },
	{ DIALECT_ANTHROPIC, "{\"usage\":{\"input_tokens\":7}}" },
	{ DIALECT_ANTHROPIC, "{\"type\":\"message\",\"content\":[]" },
	{ DIALECT_ANTHROPIC, "[]" },
	{ DIALECT_ANTHROPIC,
	  "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"m\"}}" },
	{ DIALECT_OPENAI, "{\"id\":\"r\",\"usage\":{\"prompt_tokens\":7}}" },
	{ DIALECT_OPENAI, "{\"choices\":{}}" },
	{ DIALECT_OPENAI, "{\"choices\":[],}" },
	{ DIALECT_OPENAI, "{\"error\":{\"message\":\"m\",\"type\":\"server_error\"}}" },
};

static void what_is_no_answer_of_the_api_is_none(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(failures); i++) {
		struct dialect_case c;
		case_init(&c, failures[i].dialect);
		c.context.passed = true;
		if (case_decode(&c, failures[i].body) == ERR_OK)
			fail_msg("%s", failures[i].body);
		case_fini(&c);
	}
}

/* MCP has it as an answer, a refusal; whoever speaks the API has to see the error. */
static void a_filter_that_refuses_the_prompt_stays_an_error(void **state)
{
	static const char filtered[] =
		"{\"error\":{\"message\":\"The prompt was filtered\",\"type\":null,"
		"\"code\":\"content_filter\",\"status\":400}}";
	struct dialect_case c;

	(void)state;
	case_init(&c, DIALECT_OPENAI);
	c.answer.status = 400;
	assert_int_equal(case_decode(&c, filtered), ERR_OK);
	c.context.passed = true;
	assert_int_equal(case_decode(&c, filtered), ERR_PROVIDER_REJECTED);
	assert_int_equal(c.failure.err, ERR_PROVIDER_REJECTED);
	assert_int_equal(c.failure.status, 400);
	case_fini(&c);
}

#define DATA(json) "data: " json "\n\n"
#define OPENED                                                                        \
	DATA("{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\"," \
	     "\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}}")
#define CLOSED(reason)                                                                 \
	DATA("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\"}," \
	     "\"usage\":{\"output_tokens\":3}}")                                       \
	DATA("{\"type\":\"message_stop\"}")
#define BLOCK(block) \
	DATA("{\"type\":\"content_block_start\",\"index\":0,\"content_block\":" block "}")
#define DELTA(delta) DATA("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":" delta "}")
#define CHUNK(choices) DATA("{\"id\":\"r\",\"model\":\"m\",\"choices\":" choices "}")
#define COUNTED                                                                             \
	DATA("{\"id\":\"r\",\"model\":\"m\",\"choices\":[],\"usage\":{\"prompt_tokens\":7," \
	     "\"completion_tokens\":3,\"total_tokens\":10}}")                               \
	DATA("[DONE]")

static const struct {
	enum dialect_id dialect;
	const char *body;
	enum stop_reason stop;
	uint64_t output_bytes;
} streams[] = {
	{ DIALECT_ANTHROPIC,
	  OPENED BLOCK("{\"type\":\"text\",\"text\":\"\"}")
		  DELTA("{\"type\":\"text_delta\",\"text\":\"Hello\"}")
			  DELTA("{\"type\":\"text_delta\",\"text\":\", you\"}") CLOSED("end_turn"),
	  STOP_END_TURN, 10 },
	{ DIALECT_ANTHROPIC,
	  OPENED BLOCK("{\"type\":\"novel\"}") DELTA("{\"type\":\"novel_delta\"}") CLOSED("novel"),
	  STOP_OTHER, 0 },
	{ DIALECT_ANTHROPIC, OPENED CLOSED("error"), STOP_OTHER, 0 },
	{ DIALECT_ANTHROPIC,
	  OPENED BLOCK("{\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"n\",\"input\":{}}")
		  DELTA("{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\"}")
			  CLOSED("tool_use"),
	  STOP_TOOL_USE, 7 },
	{ DIALECT_OPENAI, COUNTED, STOP_END_TURN, 0 },
	{ DIALECT_OPENAI,
	  CHUNK("[{\"index\":0,\"delta\":{\"content\":\"Hello\"}}]")
		  CHUNK("[{\"index\":0,\"delta\":{\"content\":\", you\"}}]")
			  CHUNK("[{\"index\":0,\"delta\":{},\"finish_reason\":\"novel\"}]") COUNTED,
	  STOP_OTHER, 10 },
	{ DIALECT_OPENAI,
	  CHUNK("[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"i\",\"function\":{"
		"\"name\":\"n\",\"arguments\":\"[1\"}}]}}]")
		  CHUNK("[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]") COUNTED,
	  STOP_TOOL_USE, 2 },
};

static void a_stream_that_is_passed_on_is_counted_and_not_kept(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(streams); i++) {
		struct stream_case c;
		stream_case_init(&c, streams[i].dialect);
		c.context.passed = true;
		for (size_t step = 0; step < 8; step++) {
			const char *why = stream_case_run(&c, streams[i].body,
							  (struct stream_cut){ .step = step });
			if (c.err != ERR_OK)
				fail_msg("%s: %s", streams[i].body, why);
			assert_int_equal(c.result.stop, streams[i].stop);
			assert_int_equal(c.result.usage.input, 7);
			assert_int_equal(c.result.usage.output, 3);
			assert_int_equal(c.progress.output_bytes, streams[i].output_bytes);
		}
		stream_case_fini(&c);
	}
}

/* The bound of a kept answer is none of one that is passed on. */
static void the_text_of_a_passed_stream_takes_no_memory(void **state)
{
	enum { DELTAS = 4096 };
	static const char delta[] =
		DELTA("{\"type\":\"text_delta\",\"text\":\"0123456789012345678901\"}");
	static const char front[] = OPENED BLOCK("{\"type\":\"text\",\"text\":\"\"}");
	static char body[sizeof(front) + DELTAS * sizeof(delta) + 512];
	struct stream_case c;
	char *at = body;

	(void)state;
	at += sprintf(at, "%s", front);
	for (size_t i = 0; i < DELTAS; i++)
		at += sprintf(at, "%s", delta);
	(void)sprintf(at, "%s", CLOSED("end_turn"));
	stream_case_init(&c, DIALECT_ANTHROPIC);
	c.limits.answer_bytes_max = 4096;
	c.context.passed = true;
	(void)stream_case_run(&c, body, (struct stream_cut){ .step = 0 });
	assert_int_equal(c.err, ERR_OK);
	assert_true(c.used < 8192);
	c.context.passed = false;
	(void)stream_case_run(&c, body, (struct stream_cut){ .step = 0 });
	assert_int_equal(c.err, ERR_PROVIDER_ANSWER);
	stream_case_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_that_is_odd_to_mcp_is_one_all_the_same),
		cmocka_unit_test(what_is_no_answer_of_the_api_is_none),
		cmocka_unit_test(a_filter_that_refuses_the_prompt_stays_an_error),
		cmocka_unit_test(a_stream_that_is_passed_on_is_counted_and_not_kept),
		cmocka_unit_test(the_text_of_a_passed_stream_takes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
