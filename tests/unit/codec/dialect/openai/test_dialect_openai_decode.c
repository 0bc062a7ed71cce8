#include "codec/dialect/dialect.h"
#include "tests/support/dialect_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define USE(id, name) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}"

#define CHOICE(message, reason)                                             \
	"{\"id\":\"r\",\"model\":\"m1\",\"choices\":[{\"message\":" message \
	",\"finish_reason\":" reason "}]}"
#define WITH_ARGS(args)                                                                 \
	CHOICE("{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"get_weather\"," \
	       "\"arguments\":" args "}}]}",                                            \
	       "\"stop\"")
#define IS(content, reason)                            \
	"{\"role\":\"assistant\",\"content\":" content \
	",\"model\":\"m1\",\"stopReason\":\"" reason "\"}"
#define IS_CALL(input)                                                                            \
	IS("[{\"type\":\"tool_use\",\"id\":\"i\",\"name\":\"get_weather\",\"input\":" input "}]", \
	   "toolUse")

struct answer_row {
	const char *name, *body, *result, *adjustments;
};

static void check_answers(struct dialect_case *c, const struct answer_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
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

static void answer_becomes_exactly_this_result(void **state)
{
	static const struct answer_row rows[] = {
		{ "blank arguments", WITH_ARGS("\" \\n\""), IS_CALL("{}"), "" },
		{ "null arguments", WITH_ARGS("null"), IS_CALL("{}"), "" },
		{ "arguments in a string in a string",
		  WITH_ARGS("\"\\\"{\\\\\\\"a\\\\\\\":1}\\\"\""), IS_CALL("{\"a\":1}"), "" },
		{ "arguments with white space around them", WITH_ARGS("\"\\n{\\\"a\\\": 1}\\n\""),
		  IS_CALL("{\"a\": 1}"), "" },
		{ "no arguments",
		  CHOICE("{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"get_weather\"}}]"
			 "}",
			 "\"tool_calls\""),
		  IS_CALL("{}"), "" },
		{ "out of tokens before the arguments",
		  CHOICE("{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"get_weather\","
			 "\"arguments\":\"\"}}]}",
			 "\"length\""),
		  IS(TEXT(""), "maxTokens"), "incomplete_tool_use_dropped" },
		{ "calls announced but not made",
		  CHOICE("{\"content\":\"x\",\"tool_calls\":[]}", "\"tool_calls\""),
		  IS(TEXT("x"), "endTurn"), "" },
		{ "text stands before calls wherever they were",
		  CHOICE("{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"get_weather\","
			 "\"arguments\":{}}}],\"content\":\"x\"}",
			 "null"),
		  IS("[" TEXT("x") "," USE("i", "get_weather") "]", "toolUse"), "" },
		{ "a custom call cannot be",
		  CHOICE("{\"content\":\"x\",\"tool_calls\":[{\"id\":\"i\","
			 "\"type\":\"custom\",\"custom\":{}}]}",
			 "\"stop\""),
		  IS(TEXT("x"), "endTurn"), "unknown_block_dropped" },
		{ "audio nobody asked for",
		  CHOICE("{\"content\":\"x\",\"audio\":{\"data\":\"aGk=\"}}", "\"stop\""),
		  IS(TEXT("x"), "endTurn"), "unknown_block_dropped" },
		{ "a filter discards what was said",
		  CHOICE("{\"content\":\"half\"}", "\"content_filter\""), IS(TEXT(""), "refusal"),
		  "partial_output_discarded" },
		{ "a refusal beside content",
		  CHOICE("{\"content\":\"a\",\"refusal\":\"no\"}", "\"stop\""),
		  IS(TEXT("no"), "refusal"), "partial_output_discarded" },
		{ "parts",
		  CHOICE("{\"content\":[" TEXT("a") ",{\"type\":\"image\"},"
						    "{\"type\":\"output_text\",\"text\":\"b\"}]}",
			 "\"stop\""),
		  IS(TEXT("ab"), "endTurn"), "unknown_block_dropped" },
	};

	check_answers(*state, rows, COUNT_OF(rows));
}

static void what_was_paid_for_is_read_though_it_is_not_strict(void **state)
{
	static const struct answer_row rows[] = {
		{ "a member of the message twice",
		  CHOICE("{\"role\":\"assistant\",\"content\":\"ok\",\"reasoning_content\":\"one\","
			 "\"reasoning_content\":\"one\"}",
			 "\"stop\""),
		  IS(TEXT("ok"), "endTurn"), "" },
		{ "the last one counts",
		  CHOICE("{\"content\":\"no\",\"c\\u006fntent\":\"ok\"}",
			 "\"length\",\"finish_reason\":"
			 "\"stop\""),
		  IS(TEXT("ok"), "endTurn"), "" },
		{ "arguments with a key twice",
		  WITH_ARGS("\"{\\\"a\\\":1,\\\"b\\\":{\\\"c\\\":1,\\\"\\\\u0063\\\":2},\\\"a\\\":"
			    "3}\""),
		  IS_CALL("{\"b\":{\"\\u0063\":2},\"a\":3}"), "duplicate_key_removed" },
		{ "arguments as an object, with a key twice",
		  WITH_ARGS("{\"a\": {\"b\": 1, \"b\": 2}, \"c\": [{\"d\":1,\"d\":\"x y\"}]}"),
		  IS_CALL("{\"a\":{\"b\":2},\"c\":[{\"d\":\"x y\"}]}"), "duplicate_key_removed" },
		{ "a key twice, but not in the arguments",
		  CHOICE("{\"role\":\"x\",\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"i\","
			 "\"function\":{"
			 "\"name\":\"get_weather\",\"arguments\":{\"a\": 1}}}]}",
			 "\"stop\""),
		  IS_CALL("{\"a\": 1}"), "" },
		{ "a byte order mark", "\xef\xbb\xbf" CHOICE("{\"content\":\"ok\"}", "\"stop\""),
		  IS(TEXT("ok"), "endTurn"), "" },
		{ "cut inside a pair", CHOICE("{\"content\":\"ok\\ud83d\"}", "\"length\""),
		  IS(TEXT("ok"), "maxTokens"), "" },
		{ "cut inside the second half",
		  CHOICE("{\"content\":\"ok\\ud83d\\ude\"}", "\"length\""),
		  IS(TEXT("ok"), "maxTokens"), "" },
		{ "cut inside an escape", CHOICE("{\"content\":\"ok\\u00\"}", "\"length\""),
		  IS(TEXT("ok"), "maxTokens"), "" },
		{ "cut inside a character",
		  CHOICE("{\"content\":\"ok\xf0\x9f\x98\"}", "\"length\""),
		  IS(TEXT("ok"), "maxTokens"), "" },
		{ "lone halves inside",
		  CHOICE("{\"content\":\"a\\udc00b\\ud83dc\\ud83d\\ude00\"}", "\"stop\""),
		  IS(TEXT("a\\ufffdb\\ufffdc\\ud83d\\ude00"), "endTurn"), "" },
		{ "a lone half in arguments", WITH_ARGS("\"{\\\"a\\\":\\\"x\\\\ud83dy\\\"}\""),
		  IS_CALL("{\"a\":\"x\\ufffdy\"}"), "" },
		{ "arguments that end in half a pair at the limit",
		  CHOICE("{\"content\":\"ok\",\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":"
			 "\"get_weather\",\"arguments\":\"{\\\"a\\\":\\\"\\ud83d\"}}]}",
			 "\"length\""),
		  IS(TEXT("ok"), "maxTokens"), "incomplete_tool_use_dropped" },
		{ "text in one choice, calls in others",
		  "{\"id\":\"r\",\"model\":\"m1\",\"choices\":[{\"message\":{\"content\":\"ok\"},"
		  "\"finish_reason\":\"stop\"},{\"message\":{\"tool_calls\":[{\"id\":\"i\","
		  "\"function\":{"
		  "\"name\":\"get_weather\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_"
		  "calls\"},"
		  "{\"message\":{\"content\":\"ok\",\"tool_calls\":[{\"id\":\"j\",\"function\":{"
		  "\"name\":\"get_weather\",\"arguments\":\"{}\"}}]}},null]}",
		  IS("[" TEXT("ok") "," USE("i", "get_weather") "," USE("j", "get_weather") "]",
		     "toolUse"),
		  "" },
		{ "another answer in the second choice",
		  "{\"id\":\"r\",\"model\":\"m1\",\"choices\":[{\"message\":{\"content\":\"ok\"},"
		  "\"finish_reason\":\"stop\"},{\"message\":{\"content\":\"no\",\"refusal\":\"no\"}"
		  ","
		  "\"finish_reason\":\"length\"}]}",
		  IS(TEXT("ok"), "endTurn"), "" },
		{ "calls in the first choice, text in the second, cut",
		  "{\"id\":\"r\",\"model\":\"m1\",\"choices\":[{\"message\":{\"tool_calls\":[{"
		  "\"id\":\"i\","
		  "\"function\":{\"name\":\"get_weather\",\"arguments\":\"{}\"}}]},\"finish_"
		  "reason\":"
		  "\"tool_calls\"},{\"message\":{\"content\":\"ok\"},\"finish_reason\":\"length\"}]"
		  "}",
		  IS("[" TEXT("ok") "," USE("i", "get_weather") "]", "maxTokens"), "" },
	};

	check_answers(*state, rows, COUNT_OF(rows));
}

static void emulated_stops_cut_by_meaning(void **state)
{
	static struct slice stops[] = { SLICE_INIT("\\n\\n"), SLICE_INIT("E\\u004eD") };
	static const struct {
		const char *name, *content, *left, *reason;
	} rows[] = {
		{ "the earliest wins", "a END\\n\\nb", "a ", "stopSequence" },
		{ "an escaped match", "a\\u000a\\nb END", "a", "stopSequence" },
		{ "behind other escapes", "\\ud83d\\ude00 \\\"x\\\" \\u0045ND",
		  "\\ud83d\\ude00 \\\"x\\\" ", "stopSequence" },
		{ "at the very beginning", "ENDx", "", "stopSequence" },
		{ "no match", "a\\nE ND", "a\\nE ND", "endTurn" },
	};
	struct dialect_case *c = *state;
	char body[400], want[400];

	c->context.emulate_stop = stops;
	c->context.emulate_stop_count = 2;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(body, sizeof(body), CHOICE("{\"content\":\"%s\"}", "\"stop\""),
			       rows[i].content);
		(void)snprintf(want, sizeof(want), IS(TEXT("%s"), "%s"), rows[i].left,
			       rows[i].reason);
		assert_int_equal(case_decode(c, body), ERR_OK);
		if (strcmp(case_result(c), want) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, case_result(c), want);
		case_reset(c);
	}
	/* what follows a match would never have been said: calls too */
	assert_int_equal(
		case_decode(c, CHOICE("{\"content\":\"a END\",\"tool_calls\":[{\"id\":\"i\","
				      "\"function\":{\"name\":\"get_weather\"}}]}",
				      "\"tool_calls\"")),
		ERR_OK);
	assert_string_equal(case_result(c), IS(TEXT("a "), "stopSequence"));
}

static void think_tags_are_stripped_at_the_front_only(void **state)
{
	static const struct {
		const char *name, *content, *left;
	} rows[] = {
		{ "escaped as Go escapes", "\\u003cthink\\u003ehm\\u003c/think\\u003e \\n x", "x" },
		{ "white space before it", "\\n<think>hm</think>x", "x" },
		{ "never closed", "<think>hm", "" },
		{ "opened in the prompt", "hm</think>\\t\\\"x\\\"", "\\\"x\\\"" },
		{ "talked about", "use <think> and </think>", "use <think> and </think>" },
		{ "only the first", "<think>a</think>x <think>b</think>", "x <think>b</think>" },
	};
	struct dialect_case *c = *state;
	char body[400], want[400];

	c->context.think_tags = true;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(body, sizeof(body), CHOICE("{\"content\":\"%s\"}", "\"stop\""),
			       rows[i].content);
		(void)snprintf(want, sizeof(want), IS(TEXT("%s"), "endTurn"), rows[i].left);
		assert_int_equal(case_decode(c, body), ERR_OK);
		if (strcmp(case_result(c), want) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, case_result(c), want);
		case_reset(c);
	}
}

static void structured_output_is_read_out_of_the_text(void **state)
{
	static const struct {
		const char *name, *content, *reason, *result; /* NULL: an error */
	} rows[] = {
		{ "as it is", " {\\\"a\\\":1.0} ", "stop",
		  IS("[{\"type\":\"tool_use\",\"id\":\"schema_r\",\"name\":\"__schema__\","
		     "\"input\":"
		     "{\"a\":1.0}}]",
		     "toolUse") },
		{ "in a fence", "```json\\n{\\\"a\\\":1}\\n```", "stop",
		  IS("[{\"type\":\"tool_use\",\"id\":\"schema_r\",\"name\":\"__schema__\","
		     "\"input\":"
		     "{\"a\":1}}]",
		     "toolUse") },
		{ "in two fences", "```\\n```\\n{}\\n```\\n```", "stop", NULL },
		{ "a list", "[1]", "stop", NULL },
		{ "nothing", "", "stop", NULL },
		{ "twice the same key", "{\\\"a\\\":1,\\\"a\\\":2}", "stop",
		  IS("[{\"type\":\"tool_use\",\"id\":\"schema_r\",\"name\":\"__schema__\","
		     "\"input\":{\"a\":2}}]",
		     "toolUse") },
		{ "cut, for a reason", "{\\\"a\\\":", "length",
		  IS(TEXT("{\\\"a\\\":"), "maxTokens") },
		{ "cut, for an unknown reason", "{\\\"a\\\":", "eos",
		  IS(TEXT("{\\\"a\\\":"), "other") },
	};
	struct dialect_case *c = *state;
	char body[400];

	c->context.native_schema = true;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(body, sizeof(body), CHOICE("{\"content\":\"%s\"}", "\"%s\""),
			       rows[i].content, rows[i].reason);
		enum err err = case_decode(c, body);
		assert_int_equal(err, rows[i].result == NULL ? ERR_PROVIDER_ANSWER : ERR_OK);
		if (rows[i].result == NULL)
			assert_non_null(strstr(case_failure_text(c), "structured output"));
		else if (strcmp(case_result(c), rows[i].result) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, case_result(c),
				 rows[i].result);
		case_reset(c);
	}
}

static void malformed_answer_is_an_error_that_says_so(void **state)
{
	static const struct {
		const char *name, *body, *says;
	} rows[] = {
		{ "nothing", "", "malformed" },
		{ "a page", "<html>", "malformed" },
		{ "no choices", "{}", "no choices" },
		{ "choices of a wrong type", "{\"choices\":{}}", "no choices" },
		{ "a choice of a wrong type", "{\"choices\":[null]}", "malformed" },
		{ "no message", "{\"choices\":[{}]}", "no message" },
		{ "message of a wrong type", CHOICE("[]", "null"), "malformed" },
		{ "content of a wrong type", CHOICE("{\"content\":5}", "null"), "neither" },
		{ "a part of a wrong type", CHOICE("{\"content\":[5]}", "null"), "malformed" },
		{ "a part without text", CHOICE("{\"content\":[{\"type\":\"text\"}]}", "null"),
		  "no text" },
		{ "calls of a wrong type", CHOICE("{\"tool_calls\":{}}", "null"), "malformed" },
		{ "a call of a wrong type", CHOICE("{\"tool_calls\":[7]}", "null"), "malformed" },
		{ "a call without function", CHOICE("{\"tool_calls\":[{}]}", "null"),
		  "no function name" },
		{ "a function of a wrong type",
		  CHOICE("{\"tool_calls\":[{\"function\":7}]}", "null"), "no function name" },
		{ "arguments of a wrong type", WITH_ARGS("[1]"), "arguments" },
		{ "arguments that are a number", WITH_ARGS("\"7\""), "arguments" },
		{ "arguments three strings deep", WITH_ARGS("\"\\\"\\\\\\\"{}\\\\\\\"\\\"\""),
		  "arguments" },
		{ "cut", "{\"choices\":[{\"message\":{\"content\":\"x", "malformed" },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (case_decode(c, rows[i].body) != ERR_PROVIDER_ANSWER)
			fail_msg("%s was taken", rows[i].name);
		assert_int_equal(c->failure.err, ERR_PROVIDER_ANSWER);
		assert_true(c->failure.retryable);
		if (strstr(case_failure_text(c), rows[i].says) == NULL)
			fail_msg("%s: \"%s\" lacks \"%s\"", rows[i].name, case_failure_text(c),
				 rows[i].says);
		case_reset(c);
	}
}

static void an_error_at_the_choice_is_told_by_its_code_or_an_unavailable_provider(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_decode(c, CHOICE("{\"content\":\"half\"}", "\"error\"")),
			 ERR_PROVIDER_DOWN);
	assert_true(c->failure.retryable);
	assert_int_equal(case_decode(c, "{\"choices\":[{\"message\":{\"content\":\"half\"},"
					"\"error\":{\"code\":502}}]}"),
			 ERR_PROVIDER_DOWN);
	assert_int_equal(case_decode(c, "{\"choices\":[{\"message\":{\"content\":\"\"},"
					"\"finish_reason\":\"error\",\"error\":{\"code\":429,"
					"\"message\":\"x\"}}]}"),
			 ERR_PROVIDER_RATE);
	assert_int_equal(c->failure.status, 429);
	assert_int_equal(case_decode(c, "{\"choices\":[{\"message\":{\"content\":\"\"},"
					"\"error\":{\"code\":502}}],\"error\":{\"code\":402}}"),
			 ERR_PROVIDER_BILLING);
}

static void nesting_is_bounded(void **state)
{
	enum { LEVELS = 5000 };
	static char body[2 * LEVELS + 100];
	struct dialect_case *c = *state;

	size_t at = strlen(strcpy(body, "{\"choices\":"));
	memset(body + at, '[', LEVELS);
	memset(body + at + LEVELS, ']', LEVELS);
	(void)strcpy(body + at + 2 * LEVELS, "}");
	assert_int_equal(case_decode(c, body), ERR_PROVIDER_ANSWER);
}

/* In, out, read from the cache, written into it, reasoning. */
static const struct usage_row {
	const char *name, *usage;
	uint64_t want[5];
} usage_rows[] = {
	{ "OpenAI",
	  "{\"prompt_tokens\":32,\"completion_tokens\":9,\"total_tokens\":41,\"prompt_tokens_"
	  "details\":{"
	  "\"cached_tokens\":6,\"audio_tokens\":0},\"completion_tokens_details\":{\"reasoning_"
	  "tokens\":4,"
	  "\"audio_tokens\":0,\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}",
	  { 32, 9, 6, 0, 4 } },
	{ "xAI: reasoning outside, written as OpenAI does",
	  "{\"prompt_tokens\":32,\"completion_tokens\":9,\"total_tokens\":273,\"prompt_tokens_"
	  "details\":{"
	  "\"cached_tokens\":6,\"audio_tokens\":0},\"completion_tokens_details\":{\"reasoning_"
	  "tokens\":232,"
	  "\"audio_tokens\":0,\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}",
	  { 32, 241, 6, 0, 232 } },
	{ "xAI",
	  "{\"prompt_tokens\":32,\"completion_tokens\":9,\"total_tokens\":273,\"prompt_tokens_"
	  "details\":{"
	  "\"text_tokens\":32,\"audio_tokens\":0,\"image_tokens\":0,\"cached_tokens\":6},"
	  "\"completion_tokens_details\":{\"reasoning_tokens\":232,\"audio_tokens\":0,"
	  "\"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0},\"num_sources_used\":"
	  "0}",
	  { 32, 241, 6, 0, 232 } },
	{ "Gemini: thoughts in the total alone",
	  "{\"completion_tokens\":5,\"prompt_tokens\":10,\"total_tokens\":115}",
	  { 10, 105, 0, 0, 100 } },
	{ "reasoning inside, and none beside it",
	  "{\"prompt_tokens\":10,\"completion_tokens\":50,\"total_tokens\":60,\"completion_tokens_"
	  "details\":{"
	  "\"reasoning_tokens\":40}}",
	  { 10, 50, 0, 0, 40 } },
	{ "DeepSeek",
	  "{\"prompt_tokens\":9,\"completion_tokens\":4,\"total_tokens\":13,\"prompt_cache_hit_"
	  "tokens\":5,"
	  "\"prompt_cache_miss_tokens\":4}",
	  { 9, 4, 5, 0, 0 } },
	{ "Kimi",
	  "{\"prompt_tokens\":2989,\"completion_tokens\":5,\"total_tokens\":2994,\"cached_tokens\":"
	  "2048}",
	  { 2989, 5, 2048, 0, 0 } },
	{ "details that say nothing beside a counter that does",
	  "{\"prompt_tokens\":9,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_"
	  "tokens\":0},"
	  "\"cached_tokens\":5,\"prompt_cache_hit_tokens\":0}",
	  { 9, 4, 5, 0, 0 } },
	{ "Bedrock: input without what came from the cache",
	  "{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":2015,\"prompt_tokens_"
	  "details\":{"
	  "\"cached_tokens\":2000}}",
	  { 2010, 5, 2000, 0, 0 } },
	{ "input without what went into the cache",
	  "{\"prompt_tokens\":500,\"completion_tokens\":5,\"total_tokens\":805,\"cache_creation_"
	  "input_tokens\":300}",
	  { 800, 5, 0, 300, 0 } },
	{ "input without either",
	  "{\"prompt_tokens\":900,\"completion_tokens\":5,\"total_tokens\":1305,\"cache_read_input_"
	  "tokens\":100,"
	  "\"cache_creation_input_tokens\":300}",
	  { 1300, 5, 100, 300, 0 } },
	{ "input with what was read, without what was written",
	  "{\"prompt_tokens\":900,\"completion_tokens\":5,\"total_tokens\":1205,\"prompt_tokens_"
	  "details\":{"
	  "\"cached_tokens\":100,\"cache_creation_tokens\":300}}",
	  { 1200, 5, 100, 300, 0 } },
	{ "input less than the cache's, and a rest of another size",
	  "{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":2115,\"cached_tokens\":"
	  "2000}",
	  { 2110, 5, 2000, 0, 0 } },
	{ "no total", "{\"prompt_tokens\":10,\"completion_tokens\":5}", { 10, 5, 0, 0, 0 } },
	{ "no total, and more from the cache than there can be",
	  "{\"prompt_tokens\":2,\"completion_tokens\":5,\"cached_tokens\":7}",
	  { 2, 5, 2, 0, 0 } },
	{ "a total of 0",
	  "{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":0}",
	  { 10, 5, 0, 0, 0 } },
	{ "a total that is less",
	  "{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":12}",
	  { 10, 5, 0, 0, 0 } },
	{ "a total that is null",
	  "{\"prompt_tokens\":10,\"completion_tokens\":5,\"total_tokens\":null}",
	  { 10, 5, 0, 0, 0 } },
	{ "a total and no output",
	  "{\"prompt_tokens\":10,\"total_tokens\":15}",
	  { 10, 0, 0, 0, 0 } },
	{ "numbers of other forms",
	  "{\"prompt_tokens\":1e2,\"completion_tokens\":12.0,\"total_tokens\":112,\"cached_"
	  "tokens\":1.5e1}",
	  { 100, 12, 15, 0, 0 } },
	{ "fractions",
	  "{\"prompt_tokens\":9.1,\"completion_tokens\":0.2,\"cached_tokens\":2.000001}",
	  { 10, 1, 3, 0, 0 } },
	{ "negative ones",
	  "{\"prompt_tokens\":9,\"completion_tokens\":-0.5,\"cached_tokens\":-3}",
	  { 9, 0, 0, 0, 0 } },
};

static void check_usage(const struct dialect_case *c, const struct usage_row *row)
{
	const struct usage *have = &c->result.usage;

	if (!have->known || have->input != row->want[0] || have->output != row->want[1] ||
	    have->cache_read != row->want[2] || have->cache_write != row->want[3] ||
	    have->reasoning != row->want[4])
		fail_msg("%s: %llu in, %llu out, %llu read, %llu written, %llu reasoning",
			 row->name, (unsigned long long)have->input,
			 (unsigned long long)have->output, (unsigned long long)have->cache_read,
			 (unsigned long long)have->cache_write,
			 (unsigned long long)have->reasoning);
}

static void usage_is_counted_as_the_hosts_count(void **state)
{
	static const char *const forms[] = {
		"{\"choices\":[{\"message\":{}}],\"usage\":%s}",
		"{\"choices\":[{\"message\":{}}],\"usage\":null,\"x_groq\":{\"usage\":%s}}",
		"{\"choices\":[{\"message\":{},\"usage\":%s}]}",
		"{\"choices\":[{\"message\":{},\"usage\":{\"prompt_tokens\":1}}],\"usage\":%s}",
		"{\"usage\":%s,\"choices\":[{\"usage\":{\"prompt_tokens\":1},\"message\":{}}]}",
	};
	struct dialect_case *c = *state;
	char body[800];

	for (size_t i = 0; i < COUNT_OF(usage_rows); i++)
		for (size_t k = 0; k < COUNT_OF(forms); k++) {
			(void)snprintf(body, sizeof(body), forms[k], usage_rows[i].usage);
			assert_int_equal(case_decode(c, body), ERR_OK);
			check_usage(c, &usage_rows[i]);
			case_reset(c);
		}
}

static enum err decode_starved(struct dialect_case *c)
{
	static struct slice stops[] = { SLICE_INIT("\\n") };

	c->context.emulate_stop = stops;
	c->context.emulate_stop_count = 1;
	c->context.think_tags = true;
	enum err err = case_decode(
		c, CHOICE("{\"content\":[" TEXT("<think>\\t</think>a") "," TEXT(
				  "b") "],\"tool_calls\":["
				       "{\"function\":{\"name\":\"x\",\"arguments\":\"{\\\"a\\\":1}"
				       "\"}},"
				       "{\"id\":\"\\u0069\",\"function\":{\"name\":\"x\"}},"
				       "{\"id\":\"\\u0069\",\"function\":{\"name\":\"x\"}}]}",
			  "null"));
	if (err != ERR_OK)
		assert_int_equal(c->failure.err, err);
	return err;
}

/* Arguments of which a copy is kept: without memory there are none, which must not be taken for `{}`. */
static enum err decode_long_args_starved(struct dialect_case *c)
{
	enum { LINES = 1500 };
	static char body[2 * LINES + 400];
	char lines[2 * LINES + 1];

	for (size_t i = 0; i < LINES; i++)
		memcpy(lines + 2 * i, "\\n", 2);
	lines[2 * LINES] = '\0';
	(void)snprintf(body, sizeof(body), WITH_ARGS("\"{\\\"a\\\":%s1}\""), lines);
	enum err err = case_decode(c, body);
	if (err == ERR_OK)
		assert_true(c->result.blocks[0].input.len > LINES);
	return err;
}

static void every_refused_memory_of_an_answer_is_a_named_error(void **state)
{
	assert_true(case_starve(*state, decode_starved) > 50);
	assert_true(case_starve(*state, decode_long_args_starved) > 50);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answer_becomes_exactly_this_result),
		TEST(what_was_paid_for_is_read_though_it_is_not_strict),
		TEST(emulated_stops_cut_by_meaning),
		TEST(think_tags_are_stripped_at_the_front_only),
		TEST(structured_output_is_read_out_of_the_text),
		TEST(malformed_answer_is_an_error_that_says_so),
		TEST(an_error_at_the_choice_is_told_by_its_code_or_an_unavailable_provider),
		TEST(nesting_is_bounded),
		TEST(usage_is_counted_as_the_hosts_count),
		TEST(every_refused_memory_of_an_answer_is_a_named_error),
	};
	return cmocka_run_group_tests_name("dialect_openai_decode", tests, NULL, NULL);
}
