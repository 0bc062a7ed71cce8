#include "codec/base/must.h"
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

#define TURN(id, name, result) "," ASSISTANT(USE(id, name)) "," USER(result(id, "[]"))
#define TWO_TURNS(result) \
	"\"messages\":[" USER(TEXT("q")) TURN("a", "ping", result) TURN("b", "pong", result) "]"

static const struct {
	const char *name, *params, *body, *adjustments;
} bodies[] = {
	{ "nothing but text", HI, HEAD HI_OUT, "" },
	{ "temperature below the range", HI ",\"temperature\":-1", HEAD "\"temperature\":0," HI_OUT,
	  "temperature_clamped" },
	{ "temperature above the range", HI ",\"temperature\":1.5",
	  HEAD "\"temperature\":1," HI_OUT, "temperature_clamped" },
	{ "temperature keeps its text", HI ",\"temperature\":0.50",
	  HEAD "\"temperature\":0.50," HI_OUT, "" },
	{ "many digits are a temperature, too", HI ",\"temperature\":0.71342567812345678",
	  HEAD "\"temperature\":0.71342567812345678," HI_OUT, "" },
	{ "the range's end with a point", HI ",\"temperature\":1.0",
	  HEAD "\"temperature\":1.0," HI_OUT, "" },
	{ "an exponent behind few digits", HI ",\"temperature\":0.5e1",
	  HEAD "\"temperature\":1," HI_OUT, "temperature_clamped" },
	{ "an exponent amid eight", HI ",\"temperature\":0.5123e+01",
	  HEAD "\"temperature\":1," HI_OUT, "temperature_clamped" },
	{ "an exponent at the end of many", HI ",\"temperature\":0.512345678901E3",
	  HEAD "\"temperature\":1," HI_OUT, "temperature_clamped" },
	{ "white-space stop is searched, an empty one dropped",
	  HI ",\"stopSequences\":[\"\",\"\\n\",\"x\"]", HEAD "\"stop_sequences\":[\"x\"]," HI_OUT,
	  "stop_sequences_emulated stop_sequence_empty_dropped" },
	{ "a blank system prompt is left out", HI ",\"systemPrompt\":\" \\u00a0\\n\"", HEAD HI_OUT,
	  "" },
	{ "conversation begins and ends with the assistant",
	  "\"messages\":[" ASSISTANT(TEXT("a")) "]",
	  HEAD "\"messages\":[" USER(TEXT("(conversation continues)")) "," ASSISTANT(
		  TEXT("a")) "," USER(TEXT("Continue.")) "]}",
	  "user_turn_prepended user_turn_appended" },
	{ "blank text in a call's turn",
	  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(TEXT("\\t") "," USE("c", "ping")) "," USER(
		  RESULT("c", "[]")) "],"
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
		  RESULT_OUT("c", "[" TEXT("[image omitted: image/png]") "],"
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
	{ "a PDF of no bytes is no document, and what is no media type is not repeated",
	  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(RESULT(
		  "c",
		  "[{\"type\":\"resource\",\"resource\":{\"uri\":\"u\",\"mimeType\":"
		  "\"application/pdf\",\"blob\":\"\"}},{\"type\":\"resource\",\"resource\":"
		  "{\"uri\":\"v\",\"mimeType\":\"a \\\"b\",\"blob\":\"AAAA\"}},{\"type\":"
		  "\"resource_link\",\"uri\":\"w\",\"name\":\"n\",\"mimeType\":\"\"}]")) "],"
											 "\"tools\""
											 ":[" PING
											 "]",
	  HEAD
	  "\"tools\":[" PING_OUT
	  "],\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER(RESULT_OUT(
		  "c",
		  "[" TEXT("[resource omitted: u application/pdf]") "," TEXT(
			  "[resource omitted: v]") "," TEXT("[resource link: n <w>]") "]")) "]}",
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
	{ "synthesised tools of two turns", TWO_TURNS(RESULT),
	  HEAD SYNTHESISED("ping\",\"input_schema\":{\"type\":\"object\"}},{\"name\":\"pong")
		  TWO_TURNS(RESULT_OUT) "}",
	  "tools_synthesised" },
	{ "an id that another use was given already",
	  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("a", "ping")) "," USER(RESULT(
		  "a",
		  "["
		  "]")) "," ASSISTANT(USE("a__2",
					  "ping")) "," USER(RESULT("a__2",
								   "[]")) "," ASSISTANT(USE("a",
											    "ping")) "," USER(RESULT("a",
														     "["
														     "]")) "],\"tools\":[" PING
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
	  HEAD "\"tools\":[" PING_OUT "],\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE(
		  "c", "ping")) "," USER(RESULT_OUT("c", "[" TEXT("r") "]") "," TEXT("and?")) "]}",
	  "" },
	{ "a user id no provider would take",
	  HI ",\"metadata\":{\"user_id\":\""
	     "0123456789012345678901234567890123456789012345678901234567890123456789"
	     "0123456789012345678901234567890123456789012345678901234567890123456789"
	     "0123456789012345678901234567890123456789012345678901234567890123456789"
	     "0123456789012345678901234567890123456789012345678901234567890123456789\"}",
	  HEAD HI_OUT, "metadata_dropped" },
};

static void request_becomes_exactly_this_body(void **state)
{
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		if (case_encode(c, bodies[i].params) != ERR_OK)
			fail_msg("%s: %s", bodies[i].name, case_fault_text(c));
		if (strcmp(case_body(c), bodies[i].body) != 0)
			fail_msg("%s:\n have %s\n want %s", bodies[i].name, case_body(c),
				 bodies[i].body);
		assert_string_equal(case_adjustments(c, c->out.adjustments), bodies[i].adjustments);
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
		  "image/bmp", "$.params.messages[1].content", ERR_CONTENT_UNSUPPORTED },
		{ "audio",
		  "\"messages\":[" USER(
			  "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"aGk=\"}") "]",
		  "takes no audio", "$.params.messages[0].content", ERR_CONTENT_UNSUPPORTED },
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

static void schemas_too_large_to_fold_are_refused(void **state)
{
	enum { LEN = 600 * 1024 };
	static char params[LEN + 300];
	struct dialect_case *c = *state;

	size_t at =
		strlen(strcpy(params, HI ",\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":"
					 "\"object\",\"description\":\""));
	memset(params + at, 'x', LEN);
	(void)strcpy(params + at + LEN, "\",\"oneOf\":[]}}]");
	assert_int_equal(case_encode(c, params), ERR_TOOL);
	assert_int_equal(c->fault.err, ERR_TOOL);
	assert_non_null(strstr(case_fault_text(c), "512 KiB"));
}

static void images_need_a_model_that_takes_them(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, "\"messages\":[" USER(PNG) "]"), ERR_OK);
	assert_int_equal(c->out.images, 1);
	assert_int_equal(c->out.body.images, 4);
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

#define SIXTY_FOUR "0123456789012345678901234567890123456789012345678901234567890123"
#define LONGEST_COPIED SIXTY_FOUR SIXTY_FOUR SIXTY_FOUR SIXTY_FOUR /* GATHER_COPY_MAX */

static void every_refused_memory_is_a_named_error(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, "\"messages\":[" LOOP_2 "]" LOOP_TOOLS), ERR_OK);
	size_t failures = case_starve(c, encode_starved);
	assert_true(failures > 100); /* one for every 8 bytes that it wants */
	assert_int_equal(case_encode(c, "\"messages\":[" USER(TEXT(LONGEST_COPIED)) "]"), ERR_OK);
	assert_true(case_starve(c, encode_starved) > 10);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_becomes_exactly_this_body),
		TEST(request_is_refused_and_says_why),
		TEST(schemas_too_large_to_fold_are_refused),
		TEST(images_need_a_model_that_takes_them),
		TEST(prefill_is_trimmed_and_given_up_for_structured_output),
		TEST(structured_output_after_a_tool_loop_defines_the_tools_of_the_history),
		TEST(the_last_round_forbids_calls_and_strips_them),
		TEST(aliases_are_reversed_on_the_answer),
		TEST(longer_history_begins_with_the_shorter_ones_bytes),
		TEST(long_content_is_borrowed_not_copied),
		TEST(every_refused_memory_is_a_named_error),
	};
	return cmocka_run_group_tests_name("dialect_anthropic", tests, NULL, NULL);
}
