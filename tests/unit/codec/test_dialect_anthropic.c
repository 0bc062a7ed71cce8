#include "codec/base/must.h"
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

	case_init(&c, DIALECT_ANTHROPIC);
	*state = &c;
	return 0;
}

static int end(void **state)
{
	case_fini(*state);
	return 0;
}

#define HI "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}]"
#define HI_OUT \
	"\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}]}"
#define HEAD "{\"model\":\"m\",\"max_tokens\":100,"
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define ASSISTANT(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define USE(id, name) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}"
#define RESULT(id, content) \
	"{\"type\":\"tool_result\",\"toolUseId\":\"" id "\",\"content\":" content "}"
#define ERROR_RESULT(id, content)                                                                  \
	"{\"type\":\"tool_result\",\"toolUseId\":\"" id "\",\"isError\":true,\"content\":" content \
	"}"
#define RESULT_OUT(id, rest) \
	"{\"type\":\"tool_result\",\"tool_use_id\":\"" id "\",\"content\":" rest "}"
#define PING "{\"name\":\"ping\",\"inputSchema\":{\"type\":\"object\"}}"
#define PING_OUT "{\"name\":\"ping\",\"input_schema\":{\"type\":\"object\"}}"
#define PNG "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"aGk=\"}"
#define SYNTHESISED(name)                                                             \
	"\"tools\":[{\"name\":\"" name "\",\"input_schema\":{\"type\":\"object\"}}]," \
	"\"tool_choice\":{\"type\":\"none\"},"

static void request_becomes_exactly_this_body(void **state)
{
	static const struct {
		const char *name, *params, *body, *adjustments;
	} rows[] = {
		{ "nothing but text", HI, HEAD HI_OUT, "" },
		{ "temperature below the range", HI ",\"temperature\":-1",
		  HEAD "\"temperature\":0," HI_OUT, "temperature_clamped" },
		{ "temperature above the range", HI ",\"temperature\":1.5",
		  HEAD "\"temperature\":1," HI_OUT, "temperature_clamped" },
		{ "temperature keeps its text", HI ",\"temperature\":0.50",
		  HEAD "\"temperature\":0.50," HI_OUT, "" },
		{ "white-space stop is searched, an empty one dropped",
		  HI ",\"stopSequences\":[\"\",\"\\n\",\"x\"]",
		  HEAD "\"stop_sequences\":[\"x\"]," HI_OUT,
		  "stop_sequences_emulated stop_sequence_empty_dropped" },
		{ "a blank system prompt is left out", HI ",\"systemPrompt\":\" \\u00a0\\n\"",
		  HEAD HI_OUT, "" },
		{ "conversation begins and ends with the assistant",
		  "\"messages\":[" ASSISTANT(TEXT("a")) "]",
		  HEAD "\"messages\":[" USER(TEXT("(conversation continues)")) "," ASSISTANT(
			  TEXT("a")) "," USER(TEXT("Continue.")) "]}",
		  "user_turn_prepended user_turn_appended" },
		{ "blank text in a call's turn",
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(TEXT("\\t") "," USE(
			  "c", "ping")) "," USER(RESULT("c", "[]")) "],"
								    "\"tools\":[" PING "]",
		  HEAD "\"tools\":[" PING_OUT "],\"messages\":[" USER(TEXT("q")) "," ASSISTANT(
			  USE("c", "ping")) "," USER(RESULT_OUT("c", "[]")) "]}",
		  "" },
		{ "an error result without content",
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
			  ERROR_RESULT("c", "[]")) "],\"tools\":[" PING "]",
		  HEAD "\"tools\":[" PING_OUT
		       "],\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
			       RESULT_OUT("c", "[" TEXT("Error") "],\"is_error\":true")) "]}",
		  "" },
		{ "an error result holds text only",
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
			  ERROR_RESULT("c", "[" PNG "]")) "],\"tools\":[" PING "]",
		  HEAD
		  "\"tools\":[" PING_OUT
		  "],\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
			  RESULT_OUT(
				  "c",
				  "[" TEXT("[image omitted: image/png]") "],"
									 "\"is_error\":true")) "]}",
		  "media_replaced_by_text" },
		{ "an image of a type that only a user would be refused for",
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
			  RESULT("c", "[{\"type\":\"image\",\"mimeType\":\"image/"
				      "bmp\",\"data\":\"aGk=\"}]")) "],"
								    "\"tools\":[" PING "]",
		  HEAD "\"tools\":[" PING_OUT
		       "],\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
			       RESULT_OUT("c", "[" TEXT("[image omitted: image/bmp]") "]")) "]}",
		  "media_replaced_by_text" },
		{ "required, one call at a time",
		  HI ",\"tools\":[" PING "],\"toolChoice\":{\"mode\":\"required\","
		     "\"disable_parallel_tool_use\":true}",
		  HEAD "\"tools\":[" PING_OUT "],\"tool_choice\":{\"type\":\"any\","
		       "\"disable_parallel_tool_use\":true}," HI_OUT,
		  "" },
		{ "none takes no parallel switch",
		  HI ",\"tools\":[" PING "],\"toolChoice\":{\"mode\":\"none\","
		     "\"disable_parallel_tool_use\":true}",
		  HEAD "\"tools\":[" PING_OUT "],\"tool_choice\":{\"type\":\"none\"}," HI_OUT, "" },
		{ "synthesised tools: once each, under the alias",
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("a", "x.y") "," USE(
			  "b", "x.y")) "," USER(RESULT("a", "[]") "," RESULT("b", "[]")) "]",
		  HEAD SYNTHESISED("x_y_b24ca9b7") "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(
			  USE("a", "x_y_b24ca9b7") "," USE(
				  "b",
				  "x_y_b24ca9b7")) "," USER(RESULT_OUT("a",
								       "[]") "," RESULT_OUT("b",
											    "[]")) "]}",
		  "tools_synthesised" },
		{ "an id that another use was given already",
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("a", "ping")) "," USER(RESULT("a", "[]")) "," ASSISTANT(
			  USE("a__2",
			      "ping")) "," USER(RESULT("a__2",
						       "[]")) "," ASSISTANT(USE("a",
										"ping")) "," USER(RESULT("a",
													 "[]")) "],\"tools\":[" PING
														"]",
		  HEAD
		  "\"tools\":[" PING_OUT
		  "],\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("a", "ping")) "," USER(RESULT_OUT("a", "[]")) "," ASSISTANT(
			  USE("a__2",
			      "ping")) "," USER(RESULT_OUT("a__2",
							   "[]")) "," ASSISTANT(USE("a__3",
										    "ping")) "," USER(RESULT_OUT("a__3",
														 "[]")) "]}",
		  "" },
		{ "escapes in a name mean what they mean",
		  HI ",\"tools\":[{\"name\":\"p\\u0069ng\",\"inputSchema\":{\"type\":\"object\"}}]",
		  HEAD "\"tools\":[" PING_OUT "]," HI_OUT, "" },
		{ "a name outside ASCII: one underscore per UTF-16 unit",
		  HI ",\"tools\":[{\"name\":\"\xc3\xa9\xf0\x9f\x98\x80\",\"inputSchema\":"
		     "{\"type\":\"object\"}}]",
		  HEAD "\"tools\":[{\"name\":\"____1184d1f6\",\"input_schema\":{\"type\":"
		       "\"object\"}}]," HI_OUT,
		  "" },
		{ "results and the text behind them are one turn",
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
			  RESULT("c", "\"r\"")) "," USER(TEXT("and?")) "],\"tools\":[" PING "]",
		  HEAD "\"tools\":[" PING_OUT
		       "],\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
			       RESULT_OUT("c", "[" TEXT("r") "]") "," TEXT("and?")) "]}",
		  "" },
		{ "a user id no provider would take",
		  HI ",\"metadata\":{\"user_id\":\""
		     "0123456789012345678901234567890123456789012345678901234567890123456789"
		     "0123456789012345678901234567890123456789012345678901234567890123456789"
		     "0123456789012345678901234567890123456789012345678901234567890123456789"
		     "0123456789012345678901234567890123456789012345678901234567890123456789\"}",
		  HEAD HI_OUT, "metadata_dropped" },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (case_encode(c, rows[i].params) != ERR_OK)
			fail_msg("%s: %s", rows[i].name, case_fault_text(c));
		if (strcmp(case_body(c), rows[i].body) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, case_body(c),
				 rows[i].body);
		assert_string_equal(case_adjustments(c, c->out.adjustments), rows[i].adjustments);
		case_reset(c);
	}
}

static void request_is_refused_and_says_why(void **state)
{
	static const struct {
		const char *name, *params, *says, *path;
		enum err err;
	} rows[] = {
		{ "image type",
		  "\"messages\":[" USER(TEXT("q")) "," USER(
			  "{\"type\":\"image\",\"mimeType\":\"image/bmp\",\"data\":\"aGk=\"}") "]",
		  "image/bmp", "$.params.messages[1]", ERR_CONTENT_UNSUPPORTED },
		{ "audio",
		  "\"messages\":[" USER(
			  "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"aGk=\"}") "]",
		  "takes no audio", "$.params.messages[0]", ERR_CONTENT_UNSUPPORTED },
		{ "nothing left", "\"messages\":[" USER(TEXT(" ")) "," ASSISTANT("") "]",
		  "no content", "$.params.messages[0]", ERR_MESSAGES_EMPTY },
		{ "two names become one",
		  HI ",\"tools\":[{\"name\":\"x.y\",\"inputSchema\":{\"type\":\"object\"}},"
		     "{\"name\":\"x_y_b24ca9b7\",\"inputSchema\":{\"type\":\"object\"}}]",
		  "the same", "$.params.tools", ERR_TOOL },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_int_equal(case_encode(c, rows[i].params), rows[i].err);
		assert_int_equal(c->fault.err, rows[i].err);
		if (strstr(case_fault_text(c), rows[i].says) == NULL)
			fail_msg("%s: \"%s\" lacks \"%s\"", rows[i].name, case_fault_text(c),
				 rows[i].says);
		assert_true(slice_eq(c->fault.path, slice_str(rows[i].path)));
		case_reset(c);
	}
}

static void images_need_a_model_that_takes_them(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, "\"messages\":[" USER(PNG) "]"), ERR_OK);
	assert_int_equal(c->out.images, 1);
	assert_int_equal(c->out.body.media, 4);
	c->profile.image = false;
	assert_int_equal(case_encode_again(c), ERR_CONTENT_UNSUPPORTED);
	assert_non_null(strstr(case_fault_text(c), "takes no image"));
}

static void prefill_is_trimmed_and_given_up_for_structured_output(void **state)
{
	struct dialect_case *c = *state;
	const char *params = "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(TEXT("a ") "," TEXT(
		"b\\u2003\\n")) "," USER(TEXT(" ")) "],"
						    "\"tools\":[{\"name\":\"__schema__\","
						    "\"inputSchema\":{\"type\":\"object\","
						    "\"properties\":"
						    "{\"a\":{\"type\":\"string\"}},"
						    "\"additionalProperties\":false}}]";

	c->profile.prefill = true;
	assert_int_equal(case_encode(c, params), ERR_OK);
	assert_non_null(strstr(case_body(c), TEXT("a ") "," TEXT("b") "]}]}"));
	assert_string_equal(case_adjustments(c, c->out.adjustments),
			    "empty_turn_removed trailing_whitespace_trimmed");

	c->profile.structured_output = true;
	c->request.tool_mode = TOOL_MODE_REQUIRED;
	assert_int_equal(case_encode_again(c), ERR_OK);
	assert_non_null(strstr(case_body(c), USER(TEXT("Continue.")) "]}"));
	assert_non_null(strstr(case_body(c), "\"output_config\":"));
	assert_null(strstr(case_body(c), "\"tools\":"));
	assert_true(c->out.decode.native_schema && c->out.decode.calls_forbidden);
}

static void structured_output_after_a_tool_loop_defines_the_tools_of_the_history(void **state)
{
	struct dialect_case *c = *state;

	c->profile.structured_output = true;
	assert_int_equal(
		case_encode(
			c,
			"\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(
				RESULT("c", "[]")) "],"
						   "\"tools\":[{\"name\":\"__schema__\","
						   "\"inputSchema\":{\"type\":\"object\","
						   "\"properties\":{\"a\":{\"type\":\"string\"}},"
						   "\"required\":[\"a\"]}}],"
						   "\"toolChoice\":{\"mode\":\"required\"}"),
		ERR_OK);
	assert_non_null(strstr(case_body(c), SYNTHESISED("ping")));
	assert_non_null(strstr(case_body(c), "\"additionalProperties\":false"));
	assert_string_equal(case_adjustments(c, c->out.adjustments), "tools_synthesised");
}

static void the_last_round_forbids_calls_and_strips_them(void **state)
{
	struct dialect_case *c = *state;

	c->final_round = true;
	assert_int_equal(case_encode(c, HI ",\"tools\":[" PING "]"), ERR_OK);
	assert_non_null(strstr(case_body(c), "\"tool_choice\":{\"type\":\"none\"}"));
	assert_string_equal(case_adjustments(c, c->out.adjustments), "tool_rounds_final");
	assert_int_equal(
		case_decode(c,
			    "{\"content\":[" TEXT("x") "," USE(
				    "i", "ping") "],"
						 "\"stop_reason\":\"tool_use\",\"model\":\"m1\"}"),
		ERR_OK);
	assert_string_equal(case_result(c),
			    "{\"role\":\"assistant\",\"content\":" TEXT(
				    "x") ",\"model\":\"m1\",\"stopReason\":\"endTurn\"}");
	assert_string_equal(case_adjustments(c, c->result.adjustments), "unknown_block_dropped");

	assert_int_equal(case_encode(c, HI), ERR_OK); /* no tools, nothing to forbid */
	assert_string_equal(case_adjustments(c, c->out.adjustments), "");
}

static void aliases_are_reversed_on_the_answer(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, HI ",\"tools\":[{\"name\":\"x.y\",\"inputSchema\":"
					   "{\"type\":\"object\"}}," PING "]"),
			 ERR_OK);
	assert_int_equal(
		case_decode(
			c,
			"{\"content\":[" USE("i", "x_y_b24ca9b7") "," USE(
				"j",
				"p\\u0069ng") "],\"stop_reason\":\"tool_use\",\"model\":\"m1\"}"),
		ERR_OK);
	assert_string_equal(case_result(c),
			    "{\"role\":\"assistant\",\"content\":[" USE("i", "x.y") "," USE(
				    "j", "ping") "],\"model\":\"m1\",\"stopReason\":\"toolUse\"}");
	assert_string_equal(case_adjustments(c, c->result.adjustments), "");
}

/* ---- determinism, memory ---- */

#define LOOP_1 USER(TEXT("q \\u00e9")) "," ASSISTANT(USE("a", "x.y")) "," USER(RESULT("a", "\"r\""))
#define LOOP_2 LOOP_1 "," ASSISTANT(TEXT("hm") "," USE("a", "x.y")) "," USER(RESULT("a", "\"r\""))
#define LOOP_TOOLS                                                                                \
	",\"tools\":[{\"name\":\"x.y\",\"description\":\"d\",\"inputSchema\":{\"type\":"          \
	"\"object\","                                                                             \
	"\"anyOf\":[{\"properties\":{\"a\":{}},\"required\":[\"a\"]},{\"properties\":{\"a\":{"    \
	"\"type\":"                                                                               \
	"\"null\"}},\"required\":[\"a\"]}]}}],\"stopSequences\":[\"S\",\" \"],\"temperature\":7," \
	"\"systemPrompt\":\"s\",\"metadata\":{\"user_id\":\"u\"}"

static void longer_history_begins_with_the_shorter_ones_bytes(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, "\"messages\":[" LOOP_1 "]" LOOP_TOOLS), ERR_OK);
	const char *shorter = case_body(c);
	assert_int_equal(case_encode(c, "\"messages\":[" LOOP_2 "]" LOOP_TOOLS), ERR_OK);
	size_t common = strlen(shorter) - strlen("]}");
	assert_memory_equal(case_body(c), shorter, common);
}

static void long_content_is_borrowed_not_copied(void **state)
{
	enum { LEN = 5000 };
	static char params[LEN + 200];
	struct dialect_case *c = *state;
	bool found = false;

	size_t at = strlen(strcpy(params, "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":"
					  "\"text\",\"text\":\""));
	memset(params + at, 'x', LEN);
	(void)strcpy(params + at + LEN, "\"}}]");
	assert_int_equal(case_encode(c, params), ERR_OK);
	assert_int_equal(c->out.body.copied, 0);
	for (uint32_t i = 0; i < c->out.body.count; i++)
		found |= c->out.body.v[i].iov_base == c->request.blocks[0].text.text.at;
	assert_true(found);
}

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

	assert_int_equal(case_encode(c, "\"messages\":[" LOOP_2 "]" LOOP_TOOLS), ERR_OK);
	size_t failures = case_starve(c, encode_starved);
	assert_true(failures > 100); /* one for every 8 bytes that it wants */
}

/* ---- answers ---- */

static void answer_becomes_exactly_this_result(void **state)
{
	static const struct {
		const char *name, *body, *result, *adjustments;
	} rows[] = {
		{ "no model: what was asked", "{\"content\":[" TEXT("x") "]}",
		  "{\"role\":\"assistant\",\"content\":" TEXT(
			  "x") ",\"model\":\"asked\",\"stopReason\":\"endTurn\"}",
		  "" },
		{ "texts around thinking are adjacent",
		  "{\"content\":[" TEXT(
			  "a\\ud83d\\ude00") ",{\"type\":\"thinking\",\"thinking\":\"t\"},"
					     "{\"type\":\"web_search_tool_result\",\"content\":[]}"
					     "," TEXT("") "," TEXT("b") "]}",
		  "{\"role\":\"assistant\",\"content\":" TEXT(
			  "a\\ud83d\\ude00"
			  "b") ",\"model\":\"asked\",\"stopReason\":\"endTurn\"}",
		  "" },
		{ "text on both sides of a call",
		  "{\"content\":[" TEXT("a") "," USE("i", "get_weather") "," TEXT("b") "]}",
		  "{\"role\":\"assistant\",\"content\":[" TEXT("a") "," USE(
			  "i", "get_weather") "," TEXT("b") "],\"model\":\"asked\",\"stopReason\":"
							    "\"toolUse\"}",
		  "" },
		{ "input as a string, missing, and null; ids missing, blank and repeated",
		  "{\"id\":\"msg\",\"content\":[{\"type\":\"tool_use\",\"name\":\"get_weather\","
		  "\"input\":"
		  "\"{\\\"a\\\": "
		  "1}\"},{\"type\":\"tool_use\",\"id\":\"\",\"name\":\"get_weather\"},"
		  "{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"get_weather\",\"input\":null},"
		  "{\"type\":\"tool_use\",\"id\":\"x\",\"name\":\"get_weather\",\"input\":{}}]}",
		  "{\"role\":\"assistant\",\"content\":["
		  "{\"type\":\"tool_use\",\"id\":\"call_msg_0\",\"name\":\"get_weather\",\"input\":"
		  "{\"a\": 1}}," USE("call_msg_1", "get_weather") "," USE(
			  "x", "get_weather") "," USE("x__2",
						      "get_weather") "],\"model\":\"asked\","
								     "\"stopReason\":\"toolUse\"}",
		  "" },
		{ "neither answer nor call has an id: the random bits",
		  "{\"content\":[{\"type\":\"tool_use\",\"name\":\"get_weather\",\"input\":{}}]}",
		  "{\"role\":\"assistant\",\"content\":[" USE(
			  "call_000102030405060708090a0b_0",
			  "get_weather") "],\"model\":\"asked\",\"stopReason\":\"toolUse\"}",
		  "" },
		{ "a refusal discards what was said before it",
		  "{\"content\":[" TEXT("sure") "," USE(
			  "i", "get_weather") "],\"stop_reason\":\"refusal\","
					      "\"stop_details\":{\"type\":\"refusal\","
					      "\"explanation\":\"no\"}}",
		  "{\"role\":\"assistant\",\"content\":" TEXT(
			  "no") ",\"model\":\"asked\",\"stopReason\":\"refusal\"}",
		  "partial_output_discarded" },
		{ "out of tokens: calls before the last stay",
		  "{\"content\":[" USE("i", "get_weather") "," USE(
			  "j", "get_weather") "],"
					      "\"stop_reason\":\"model_context_window_exceeded\"}",
		  "{\"role\":\"assistant\",\"content\":[" USE(
			  "i", "get_weather") "],\"model\":\"asked\",\"stopReason\":\"maxTokens\"}",
		  "incomplete_tool_use_dropped" },
	};
	struct dialect_case *c = *state;

	for (uint8_t i = 0; i < sizeof(c->answer.chance); i++)
		c->answer.chance[i] = i;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (case_decode(c, rows[i].body) != ERR_OK)
			fail_msg("%s: %s", rows[i].name, case_failure_text(c));
		if (strcmp(case_result(c), rows[i].result) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, case_result(c),
				 rows[i].result);
		assert_string_equal(case_adjustments(c, c->result.adjustments),
				    rows[i].adjustments);
		case_reset(c);
	}
}

static void malformed_answer_is_an_error_that_says_so(void **state)
{
	static const struct {
		const char *name, *body, *says;
	} rows[] = {
		{ "nothing", "", "malformed" },
		{ "no object", "[]", "malformed" },
		{ "cut", "{\"content\":[{\"type\":\"text\",\"text\":\"x\"", "malformed" },
		{ "something behind it", "{\"content\":[]}x", "malformed" },
		{ "no content", "{}", "no content" },
		{ "content of a wrong type", "{\"content\":\"x\"}", "no content" },
		{ "a block of a wrong type", "{\"content\":[1]}", "malformed" },
		{ "text without text", "{\"content\":[{\"type\":\"text\",\"text\":1}]}",
		  "malformed" },
		{ "a call without a name", "{\"content\":[{\"type\":\"tool_use\",\"input\":{}}]}",
		  "no name" },
		{ "input of a wrong type",
		  "{\"content\":[{\"type\":\"tool_use\",\"name\":\"n\",\"input\":[1]}]}",
		  "arguments" },
		{ "input that is no JSON",
		  "{\"content\":[{\"type\":\"tool_use\",\"name\":\"n\",\"input\":\"{\"}]}",
		  "arguments" },
		{ "twice the same key", "{\"content\":[],\"content\":[]}", "malformed" },
		{ "bad UTF-8", "{\"content\":[],\"x\":\"\xff\"}", "malformed" },
		{ "an error that is cut", "{\"type\":\"error\",\"error\":{", "malformed" },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_int_equal(case_decode(c, rows[i].body), ERR_PROVIDER_ANSWER);
		assert_int_equal(c->failure.err, ERR_PROVIDER_ANSWER);
		assert_true(c->failure.retryable);
		if (strstr(case_failure_text(c), rows[i].says) == NULL)
			fail_msg("%s: \"%s\" lacks \"%s\"", rows[i].name, case_failure_text(c),
				 rows[i].says);
		case_reset(c);
	}
}

static void wrong_types_where_nothing_depends_on_them_are_passed_over(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(
		case_decode(c, "{\"id\":1,\"model\":[],\"type\":{},\"stop_reason\":7,"
			       "\"stop_details\":\"x\",\"usage\":[],\"content\":[{\"type\":1},"
			       "{\"type\":\"text\",\"text\":\"x\",\"id\":{},\"citations\":7}]}"),
		ERR_OK);
	assert_string_equal(case_result(c),
			    "{\"role\":\"assistant\",\"content\":" TEXT(
				    "x") ",\"model\":\"asked\",\"stopReason\":\"endTurn\"}");
	assert_false(c->result.usage.known);
	assert_string_equal(case_adjustments(c, c->result.adjustments), "unknown_block_dropped");
}

static void usage_of_an_unusable_answer_is_told(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_decode(c, "{\"usage\":{\"input_tokens\":7,\"output_tokens\":8},"
					"\"content\":[{\"type\":\"tool_use\",\"input\":{}}]}"),
			 ERR_PROVIDER_ANSWER);
	assert_true(c->failure.usage_known);
	assert_int_equal(c->failure.usage.input, 7);
	assert_int_equal(c->failure.usage.output, 8);
}

static void absurd_counters_stay_in_normal_form(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_decode(c, "{\"content\":[],\"usage\":{\"input_tokens\":-4,"
					"\"cache_read_input_tokens\":9223372036854775807,"
					"\"cache_creation_input_tokens\":9223372036854775807,"
					"\"output_tokens\":5,\"output_tokens_details\":"
					"{\"thinking_tokens\":9}}}"),
			 ERR_OK);
	const struct usage *usage = &c->result.usage;
	assert_true(usage->known);
	assert_true(usage->cache_read + usage->cache_write <= usage->input);
	assert_int_equal(usage->reasoning, 5);
}

static enum err decode_starved(struct dialect_case *c)
{
	static struct slice stops[] = { SLICE_INIT("\\n") };

	c->context.emulate_stop = stops;
	c->context.emulate_stop_count = 1;
	enum err err = case_decode(
		c, "{\"id\":\"m\",\"content\":[" TEXT("a\\t") "," TEXT(
			   "b") ",{\"type\":\"tool_use\",\"name\":\"get_weather\",\"input\":"
				"\"{\\\"a\\\":1}\"}," USE("i", "x") "," USE("i", "x") "]}");
	if (err != ERR_OK) {
		assert_int_equal(c->failure.err, err);
		assert_false(c->failure.retryable);
	}
	return err;
}

static void every_refused_memory_of_an_answer_is_a_named_error(void **state)
{
	struct dialect_case *c = *state;

	assert_true(case_starve(c, decode_starved) > 50);
}

static void a_thousand_repeated_ids_and_blocks_stay_apart(void **state)
{
	enum { CALLS = 2000 };
	static char body[CALLS * 80];
	struct dialect_case *c = *state;
	size_t at = (size_t)sprintf(body, "{\"content\":[");

	for (int i = 0; i < CALLS; i++)
		at += (size_t)sprintf(body + at, "%s" USE("%s", "get_weather"), i == 0 ? "" : ",",
				      i % 2 == 0 ? "a" : "a__2");
	(void)strcpy(body + at, "]}");
	assert_int_equal(case_decode(c, body), ERR_OK);
	assert_int_equal(c->result.block_count, CALLS);
	for (int i = 1; i < CALLS;
	     i++) /* a list in which each differs from the last and the first */
		assert_false(slice_eq(c->result.blocks[i].id, c->result.blocks[i - 1].id) ||
			     slice_eq(c->result.blocks[i].id, c->result.blocks[0].id));
	assert_true(slice_eq(c->result.blocks[1].id, SLICE("a__2")));
	assert_true(slice_eq(c->result.blocks[2].id, SLICE("a__3")));
	assert_true(slice_eq(c->result.blocks[3].id, SLICE("a__2__2")));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_becomes_exactly_this_body),
		TEST(request_is_refused_and_says_why),
		TEST(images_need_a_model_that_takes_them),
		TEST(prefill_is_trimmed_and_given_up_for_structured_output),
		TEST(structured_output_after_a_tool_loop_defines_the_tools_of_the_history),
		TEST(the_last_round_forbids_calls_and_strips_them),
		TEST(aliases_are_reversed_on_the_answer),
		TEST(longer_history_begins_with_the_shorter_ones_bytes),
		TEST(long_content_is_borrowed_not_copied),
		TEST(every_refused_memory_is_a_named_error),
		TEST(answer_becomes_exactly_this_result),
		TEST(malformed_answer_is_an_error_that_says_so),
		TEST(wrong_types_where_nothing_depends_on_them_are_passed_over),
		TEST(usage_of_an_unusable_answer_is_told),
		TEST(absurd_counters_stay_in_normal_form),
		TEST(every_refused_memory_of_an_answer_is_a_named_error),
		TEST(a_thousand_repeated_ids_and_blocks_stay_apart),
	};
	return cmocka_run_group_tests_name("dialect_anthropic", tests, NULL, NULL);
}
