/* How deeply a call's arguments may be nested: so that the next request, which repeats them, can be read. */
#include "tests/support/dialect_case.h"
#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MALFORMED "The provider's answer is malformed"
#define DEEP_ARGS "The arguments of the provider's tool call are nested too deeply"

enum { TEXT_SIZE = 2048, IN_REQUEST = 6 };

/* Objects in objects, so many of them; `string`: as JSON in a string has it. */
static void nested(char *out, int levels, bool string)
{
	for (int i = 1; i < levels; i++)
		out += sprintf(out, string ? "{\\\"a\\\":" : "{\"a\":");
	out += sprintf(out, "{}");
	for (int i = 1; i < levels; i++)
		*out++ = '}';
	*out = '\0';
}

/* The body with the arguments at its "@". */
static const char *body_of(char *out, const char *body, int levels, bool string)
{
	char args[TEXT_SIZE];
	const char *at = strchr(body, '@');

	nested(args, levels, string);
	(void)snprintf(out, 2 * TEXT_SIZE, "%.*s%s%s", (int)(at - body), body, args, at + 1);
	return out;
}

/* A request in which an assistant has made that call. */
static void is_readable_in_the_next_request(struct dialect_case *c, int levels)
{
	char params[2 * TEXT_SIZE];

	assert_int_equal(
		case_encode(
			c,
			body_of(params,
				"\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
				"\"text\":\"x\"}},{\"role\":\"assistant\",\"content\":[{\"type\":"
				"\"tool_use\",\"id\":\"i\",\"name\":\"get_weather\",\"input\":@}]},"
				"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
				"\"toolUseId\":\"i\",\"content\":[]}]}],\"tools\":[{\"name\":"
				"\"get_weather\",\"inputSchema\":{\"type\":\"object\"}}]",
				levels, false)),
		ERR_OK);
}

static const struct row {
	const char *name;
	enum dialect_id dialect;
	const char *body;
	bool string;
	int most;         /* levels of arguments that are handed over */
	const char *deep; /* what is said of one more */
} rows[] = {
	{ "Anthropic", DIALECT_ANTHROPIC,
	  "{\"type\":\"message\",\"id\":\"m\",\"model\":\"m\",\"content\":[{\"type\":\"tool_use\","
	  "\"id\":\"i\","
	  "\"name\":\"get_weather\",\"input\":@}],\"stop_reason\":\"tool_use\"}",
	  false, 57, MALFORMED },
	{ "OpenAI, a string", DIALECT_OPENAI,
	  "{\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"i\","
	  "\"function\":"
	  "{\"name\":\"get_weather\",\"arguments\":\"@\"}}]},\"finish_reason\":\"tool_calls\"}]}",
	  true, 58, DEEP_ARGS },
	{ "OpenAI, an object", DIALECT_OPENAI,
	  "{\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"i\","
	  "\"function\":"
	  "{\"name\":\"get_weather\",\"arguments\":@}}]},\"finish_reason\":\"tool_calls\"}]}",
	  false, 53, MALFORMED },
	{ "Responses", DIALECT_RESPONSES,
	  "{\"id\":\"r\",\"model\":\"m\",\"status\":\"completed\",\"output\":[{\"type\":\"function_"
	  "call\","
	  "\"call_id\":\"i\",\"name\":\"get_weather\",\"arguments\":\"@\"}]}",
	  true, 58, DEEP_ARGS },
};

static void what_is_handed_over_can_come_back(void **state)
{
	char body[2 * TEXT_SIZE];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		struct dialect_case c;
		case_init(&c, row->dialect);
		if (case_decode(&c, body_of(body, row->body, row->most, row->string)) != ERR_OK)
			fail_msg("%s: %s", row->name, case_failure_text(&c));
		is_readable_in_the_next_request(&c, row->most);
		(void)body_of(body, row->body, row->most + 1, row->string);
		if (case_decode(&c, body) != ERR_PROVIDER_ANSWER)
			fail_msg("%s: one level more was taken", row->name);
		assert_string_equal(case_failure_text(&c), row->deep);
		case_fini(&c);
	}
}

/* A schema's answer as text becomes a call, too. */
static void structured_output_is_nested_no_more_deeply(void **state)
{
	static const char answer[] =
		"{\"id\":\"r\",\"model\":\"m\",\"choices\":[{\"message\":{\"content\":"
		"\"@\"},\"finish_reason\":\"stop\"}]}";
	char body[2 * TEXT_SIZE];
	struct dialect_case c;

	(void)state;
	case_init(&c, DIALECT_OPENAI);
	c.context.native_schema = true;
	assert_int_equal(case_decode(&c, body_of(body, answer, 58, true)), ERR_OK);
	assert_int_equal(case_decode(&c, body_of(body, answer, 59, true)), ERR_PROVIDER_ANSWER);
	assert_string_equal(case_failure_text(&c),
			    "The provider's structured output is nested too deeply");
	case_fini(&c);
}

#define DATA(json) "data: " json "\n\n"

static const struct {
	const char *name;
	enum dialect_id dialect;
	const char *body;
	bool string;
	const char *deep;
} streams[] = {
	{ "Anthropic, in pieces", DIALECT_ANTHROPIC,
	  DATA("{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\"}}") DATA(
		  "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
		  "\"tool_use\",\"id\":"
		  "\"i\",\"name\":\"get_weather\",\"input\":{}}}")
		  DATA("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_"
		       "json_delta\","
		       "\"partial_json\":\"@\"}}")
			  DATA("{\"type\":\"content_block_stop\",\"index\":0}")
				  DATA("{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":"
				       "\"tool_use\"}}") DATA("{\"type\":\"message_stop\"}"),
	  true, DEEP_ARGS },
	{ "Anthropic, whole", DIALECT_ANTHROPIC,
	  DATA("{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"m\"}}") DATA(
		  "{\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":"
		  "\"tool_use\",\"id\":"
		  "\"i\",\"name\":\"get_weather\",\"input\":@}}")
		  DATA("{\"type\":\"content_block_stop\",\"index\":0}") DATA(
			  "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}")
			  DATA("{\"type\":\"message_stop\"}"),
	  false, "An event of the provider's stream is malformed" },
	{ "OpenAI", DIALECT_OPENAI,
	  DATA("{\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":["
	       "{\"index\":0,"
	       "\"id\":\"i\",\"function\":{\"name\":\"get_weather\",\"arguments\":\"@\"}}]}}]}")
		  DATA("{\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]"
		       "}") DATA("[DONE]"),
	  true, DEEP_ARGS },
};

static void a_stream_hands_over_no_more(void **state)
{
	enum { MOST = JSON_DEPTH_MAX - IN_REQUEST };
	char body[2 * TEXT_SIZE], args[TEXT_SIZE], expect[2 * TEXT_SIZE];

	(void)state;
	nested(args, MOST, false);
	for (size_t i = 0; i < COUNT_OF(streams); i++) {
		struct stream_case c;
		stream_case_init(&c, streams[i].dialect);
		(void)body_of(body, streams[i].body, MOST, streams[i].string);
		(void)snprintf(expect, sizeof(expect), "toolUse | i get_weather %s", args);
		const char *why = stream_case_differs(&c, body, expect);
		if (why == NULL) {
			(void)body_of(body, streams[i].body, MOST + 1, streams[i].string);
			(void)snprintf(expect, sizeof(expect), "-32015 %s | retryable",
				       streams[i].deep);
			why = stream_case_differs(&c, body, expect);
		}
		if (why != NULL)
			fail_msg("%s: %s", streams[i].name, why);
		stream_case_fini(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_handed_over_can_come_back),
		cmocka_unit_test(structured_output_is_nested_no_more_deeply),
		cmocka_unit_test(a_stream_hands_over_no_more),
	};
	return cmocka_run_group_tests_name("dialect_depth", tests, NULL, NULL);
}
