#include "codec/dialect.h"
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
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define ASSISTANT(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define SAYS(role, text) "{\"role\":\"" role "\",\"content\":\"" text "\"}"
#define HI "\"messages\":[" USER(TEXT("hi")) "]"
#define HI_OUT "\"messages\":[" SAYS("user", "hi") "]}"
#define HEAD "{\"model\":\"m\",\"max_tokens\":100,"
#define USE(id, name) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}"
#define RESULT(id, content) \
	"{\"type\":\"tool_result\",\"toolUseId\":\"" id "\",\"content\":" content "}"
#define ERROR_RESULT(id, content)                                                                  \
	"{\"type\":\"tool_result\",\"toolUseId\":\"" id "\",\"isError\":true,\"content\":" content \
	"}"
#define CALL(id, name)                                                           \
	"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id \
	"\",\"type\":\"function\",\"function\":{\"name\":\"" name "\",\"arguments\":\"{}\"}}]}"
#define TOOL(id, text) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"" text "\"}"
#define PNG "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"aGk=\"}"
#define PNG_OUT "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/png;base64,aGk=\"}}"
#define PING "{\"name\":\"ping\",\"inputSchema\":{\"type\":\"object\"}}"
#define PING_OUT                                                                           \
	"{\"type\":\"function\",\"function\":{\"name\":\"ping\",\"parameters\":{\"type\":" \
	"\"object\","                                                                      \
	"\"properties\":{}}}}"

static void loose(struct profile *profile)
{
	profile->text_content_as_string = true;
}

static void mistral(struct profile *profile)
{
	profile->id_rule = ID_RULE_MISTRAL9;
	profile->user_after_tool = false;
}

static void unforced(struct profile *profile)
{
	profile->forced_tool = false;
	profile->reasoning = true;
	profile->tools_need_effort_none = true;
}

static void request_becomes_exactly_this_body(void **state)
{
	static const struct {
		const char *name;
		void (*profile)(struct profile *profile);
		const char *params, *body, *adjustments;
	} rows
		[] = {
			{ "nothing but text", NULL, HI, HEAD HI_OUT, "" },
			{ "the system prompt is the first message, blank or not", NULL,
			  HI ",\"systemPrompt\":\" \"",
			  HEAD "\"messages\":[" SAYS("system", " ") "," SAYS("user", "hi") "]}",
			  "" },
			{ "white space is a stop sequence here", NULL,
			  HI ",\"stopSequences\":[\"\",\"\\n\"]", HEAD "\"stop\":[\"\\n\"]," HI_OUT,
			  "stop_sequence_empty_dropped" },
			{ "no content at all", NULL, "\"messages\":[" USER("") "]",
			  HEAD "\"messages\":[" SAYS("user", "") "]}", "" },
			{ "texts beside media stay parts", loose,
			  "\"messages\":[" USER(TEXT("a") "," PNG "," TEXT("b")) "]",
			  HEAD "\"messages\":[" USER(TEXT("a") "," PNG_OUT "," TEXT("b")) "]}",
			  "" },
			{ "an assistant's image joins its texts", loose,
			  "\"messages\":[" USER(TEXT("a")) "," ASSISTANT(TEXT("b") "," PNG) "]",
			  HEAD "\"messages\":[" SAYS("user", "a") "," SAYS(
				  "assistant", "b\\n[image omitted: image/png]") "]}",
			  "media_replaced_by_text" },
			{ "a lone assistant image is a string", NULL,
			  "\"messages\":[" USER(TEXT("a")) "," ASSISTANT(PNG) "]",
			  HEAD "\"messages\":[" SAYS("user", "a") "," SAYS(
				  "assistant", "[image omitted: image/png]") "]}",
			  "media_replaced_by_text" },
			{ "an error result", NULL,
			  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
				  ERROR_RESULT("c", "\"bad\"")) "],\"tools\":[" PING "]",
			  HEAD "\"tools\":[" PING_OUT "],\"messages\":[" SAYS("user", "q") "," CALL(
				  "c", "ping") "," TOOL("c", "Error: bad") "]}",
			  "" },
			{ "an empty result", NULL,
			  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
				  RESULT("c", "[]")) "],\"tools\":[" PING "]",
			  HEAD "\"tools\":[" PING_OUT "],\"messages\":[" SAYS("user", "q") "," CALL(
				  "c", "ping") "," TOOL("c", "") "]}",
			  "" },
			{ "Mistral: ids, no user behind a tool, its own turn goes on", mistral,
			  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE(
				  "call_1",
				  "ping")) "," USER(RESULT("call_1",
							   "[" PNG
							   "]")) "," ASSISTANT(TEXT("so")) "],"
											   "\"tools"
											   "\":"
											   "[" PING
											   "]",
			  HEAD
			  "\"tools\":[" PING_OUT
			  "],\"messages\":[" SAYS("user", "q") "," CALL("sPnjkEYJU", "ping") "," TOOL("sPnjkEYJU", "[image 1 of tool call sPnjkEYJU follows]") "," SAYS(
				  "assistant", "OK.") "," USER(TEXT("[image 1 of tool call "
								    "sPnjkEYJU]") "," PNG_OUT) ",{"
											       "\"r"
											       "ole"
											       "\":"
											       "\"a"
											       "ssi"
											       "sta"
											       "nt"
											       "\","
											       "\"c"
											       "ont"
											       "ent"
											       "\":"
											       "\"s"
											       "o\""
											       ",\""
											       "pre"
											       "fix"
											       "\":"
											       "tru"
											       "e}]"
											       "}",
			  "assistant_turn_inserted tool_result_media_moved" },
			{ "a model that cannot be forced, and reasons", unforced,
			  HI ",\"temperature\":1,\"tools\":[" PING
			     "],\"toolChoice\":{\"mode\":\"required\"}",
			  HEAD "\"tools\":[" PING_OUT
			       "],\"tool_choice\":\"auto\",\"reasoning_effort\":\"none\"," HI_OUT,
			  "temperature_dropped tool_choice_required_downgraded" },
			{ "arguments are compact and escaped", NULL,
			  "\"messages\":[" USER(TEXT(
				  "q")) "," ASSISTANT("{\"type\":\"tool_use\",\"id\":\"c\","
						      "\"name\":\"ping\",\"input\":{ \"a\" : [ "
						      "1.0, \"x\\n\\\"y\" ] }}") "," USER(RESULT("c",
												 "["
												 "]")) "]",
			  HEAD "\"messages\":[" SAYS(
				  "user", "q") ",{\"role\":\"assistant\",\"content\":null,"
					       "\"tool_calls\":[{\"id\":\"c\",\"type\":"
					       "\"function\",\"function\":{\"name\":\"ping\","
					       "\"arguments\":\"{\\\"a\\\":[1.0,"
					       "\\\"x\\\\n\\\\\\\"y\\\"]}\"}}]}," TOOL("c",
										       "") "]}",
			  "" },
		};
	struct dialect_case *c = *state;
	struct profile usual = c->profile;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		c->profile = usual;
		if (rows[i].profile != NULL)
			rows[i].profile(&c->profile);
		if (case_encode(c, rows[i].params) != ERR_OK)
			fail_msg("%s: %s", rows[i].name, case_fault_text(c));
		if (strcmp(case_body(c), rows[i].body) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, case_body(c),
				 rows[i].body);
		if (strcmp(case_adjustments(c, c->out.adjustments), rows[i].adjustments) != 0)
			fail_msg("%s: %s", rows[i].name, case_adjustments(c, c->out.adjustments));
		case_reset(c);
	}
}

static void a_downgraded_choice_is_remembered_for_the_answer(void **state)
{
	struct dialect_case *c = *state;

	c->profile.forced_tool = false;
	assert_int_equal(case_encode(c, HI ",\"tools\":[" PING "],\"toolChoice\":"
					   "{\"mode\":\"required\"}"),
			 ERR_OK);
	assert_true(c->out.decode.tool_required);
	assert_false(c->out.decode.calls_forbidden);
	c->profile.forced_tool = true;
	assert_int_equal(case_encode_again(c), ERR_OK);
	assert_false(c->out.decode.tool_required);
}

static void images_of_results_count_and_need_a_model_that_takes_them(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(
		case_encode(c, "\"messages\":[" USER(TEXT("q") "," PNG) "," ASSISTANT(
				       USE("c", "ping")) "," USER(RESULT("c", "[" PNG "]")) "]"),
		ERR_OK);
	assert_int_equal(c->out.images, 2);
	assert_int_equal(c->out.body.media, 8);
	c->profile.image = false;
	assert_int_equal(
		case_encode(c, "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(
				       USE("c", "ping")) "," USER(RESULT("c", "[" PNG "]")) "]"),
		ERR_OK);
	assert_non_null(strstr(case_body(c), TOOL("c", "[image omitted: image/png]")));
	assert_int_equal(c->out.images, 0);
}

#define LOOP                                                                                                                      \
	"\"messages\":[" USER(TEXT("q \\u00e9")) "," ASSISTANT(USE("a", "x.y")) "," USER(RESULT("a", "[" PNG "]")) "," ASSISTANT( \
		TEXT("hm") "," USE(                                                                                               \
			"a",                                                                                                      \
			"x.y")) "," USER(ERROR_RESULT("a",                                                                        \
						      "\"r\"")) "],\"tools\":[{\"name\":\"x.y\","                                 \
								"\"description\":\"d\","                                          \
								"\"inputSchema\":{\"type\":"                                      \
								"\"object\",\"oneOf\":[{\"$ref\":"                                \
								"\"#/$defs/"                                                      \
								"a\"}],\"$defs\":{\"a\":{"                                        \
								"\"properties\":{\"k\":{}},"                                      \
								"\"required\":[\"k\"]}}}}],"                                      \
								"\"stopSequences\":[\"1\",\"2\","                                 \
								"\"3\",\"4\","                                                    \
								"\"5\"],\"temperature\":7,"                                       \
								"\"systemPrompt\":\"s\","                                         \
								"\"metadata\":{\"user_id\":\"u\"}"

static enum err encode_starved(struct dialect_case *c)
{
	enum err err = case_encode_again(c);

	if (err != ERR_OK)
		assert_int_equal(c->fault.err, err);
	return err;
}

static void every_refused_memory_is_a_named_error(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, LOOP), ERR_OK);
	assert_true(case_starve(c, encode_starved) > 100);
	/* structured output builds no list of its own here, but sets of names */
	c->profile.structured_output = true;
	assert_int_equal(case_encode(c, HI
				     ",\"tools\":[{\"name\":\"__schema__\",\"inputSchema\":{"
				     "\"type\":\"object\",\"properties\":{\"a\":{\"type\":"
				     "\"string\"}},\"required\":[\"a\"],\"additionalProperties\":"
				     "false}}],\"toolChoice\":{\"mode\":\"required\"}"),
			 ERR_OK);
	assert_true(case_starve(c, encode_starved) > 50);
	assert_true(c->out.decode.native_schema);
}

/* ---- answers ---- */

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

static void answer_becomes_exactly_this_result(void **state)
{
	static const struct {
		const char *name, *body, *result, *adjustments;
	} rows[] = {
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
		{ "twice the same key", "{\\\"a\\\":1,\\\"a\\\":2}", "stop", NULL },
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
		{ "arguments with a key twice", WITH_ARGS("\"{\\\"a\\\":1,\\\"a\\\":1}\""),
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

static void an_error_at_the_choice_is_an_unavailable_provider(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_decode(c, CHOICE("{\"content\":\"half\"}", "\"error\"")),
			 ERR_PROVIDER_DOWN);
	assert_true(c->failure.retryable);
	assert_int_equal(case_decode(c, "{\"choices\":[{\"message\":{\"content\":\"half\"},"
					"\"error\":{\"code\":502}}]}"),
			 ERR_PROVIDER_DOWN);
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

static void usage_is_found_where_the_hosts_put_it(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(
		case_decode(c, "{\"choices\":[{\"message\":{}}],\"x_groq\":{\"usage\":{"
			       "\"prompt_tokens\":3,\"completion_tokens\":4}},\"usage\":null}"),
		ERR_OK);
	assert_true(c->result.usage.known);
	assert_int_equal(c->result.usage.input, 3);
	assert_int_equal(
		case_decode(c, "{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens\":9,"
			       "\"completion_tokens\":4,\"prompt_cache_hit_tokens\":5}}"),
		ERR_OK);
	assert_int_equal(c->result.usage.cache_read, 5);
	assert_int_equal(
		case_decode(c, "{\"choices\":[{\"message\":{}}],\"usage\":{\"prompt_tokens\":2,"
			       "\"completion_tokens\":1.5,\"prompt_tokens_details\":"
			       "{\"cached_tokens\":5}}}"),
		ERR_OK);
	assert_int_equal(c->result.usage.cache_read, 2);
	assert_int_equal(c->result.usage.output, 0);
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

static void every_refused_memory_of_an_answer_is_a_named_error(void **state)
{
	assert_true(case_starve(*state, decode_starved) > 50);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_becomes_exactly_this_body),
		TEST(a_downgraded_choice_is_remembered_for_the_answer),
		TEST(images_of_results_count_and_need_a_model_that_takes_them),
		TEST(every_refused_memory_is_a_named_error),
		TEST(answer_becomes_exactly_this_result),
		TEST(emulated_stops_cut_by_meaning),
		TEST(think_tags_are_stripped_at_the_front_only),
		TEST(structured_output_is_read_out_of_the_text),
		TEST(malformed_answer_is_an_error_that_says_so),
		TEST(an_error_at_the_choice_is_an_unavailable_provider),
		TEST(nesting_is_bounded),
		TEST(usage_is_found_where_the_hosts_put_it),
		TEST(every_refused_memory_of_an_answer_is_a_named_error),
	};
	return cmocka_run_group_tests_name("dialect_openai", tests, NULL, NULL);
}
