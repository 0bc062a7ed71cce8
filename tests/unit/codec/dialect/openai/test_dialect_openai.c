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
#define WAV "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"UklG\"}"
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
	profile->audio = profile->audio_as_string = true;
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
	} rows[] = {
		{ "nothing but text", NULL, HI, HEAD HI_OUT, "" },
		{ "the system prompt is the first message, blank or not", NULL,
		  HI ",\"systemPrompt\":\" \"",
		  HEAD "\"messages\":[" SAYS("system", " ") "," SAYS("user", "hi") "]}", "" },
		{ "white space is a stop sequence here", NULL,
		  HI ",\"stopSequences\":[\"\",\"\\n\"]", HEAD "\"stop\":[\"\\n\"]," HI_OUT,
		  "stop_sequence_empty_dropped" },
		{ "no content at all", NULL, "\"messages\":[" USER("") "]",
		  HEAD "\"messages\":[" SAYS("user", "") "]}", "" },
		{ "texts beside media stay parts", loose,
		  "\"messages\":[" USER(TEXT("a") "," PNG "," TEXT("b")) "]",
		  HEAD "\"messages\":[" USER(TEXT("a") "," PNG_OUT "," TEXT("b")) "]}", "" },
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
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("call_1", "ping")) "," USER(
			  RESULT("call_1", "[" PNG "]")) "," ASSISTANT(TEXT("so")) "],"
										   "\"tools"
										   "\":"
										   "[" PING "]",
		  HEAD "\"tools\":[" PING_OUT
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
		{ "Mistral: a turn of its own without content is left out", mistral,
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(TEXT("")) "," USER(TEXT("r")) "]",
		  HEAD "\"messages\":[" SAYS("user", "q") "," SAYS("user", "r") "]}",
		  "empty_turn_removed" },
		{ "Mistral: and is none that could go on", mistral,
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(TEXT("")) "]",
		  HEAD "\"messages\":[" SAYS("user", "q") "]}", "empty_turn_removed" },
		{ "Mistral: the one before it is", mistral,
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(TEXT("so")) "," ASSISTANT("") "]",
		  HEAD "\"messages\":[" SAYS(
			  "user",
			  "q") ",{\"role\":\"assistant\",\"content\":\"so\",\"prefix\":true}]}",
		  "empty_turn_removed" },
		{ "Mistral: nor one between a tool and a user", mistral,
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(USE("call_1", "ping")) "," USER(
			  RESULT("call_1", "[]")) "," ASSISTANT("") "," USER(TEXT("r")) "]",
		  HEAD "\"messages\":[" SAYS("user", "q") "," CALL("sPnjkEYJU", "ping") "," TOOL(
			  "sPnjkEYJU", "") "," SAYS("assistant", "OK.") "," SAYS("user", "r") "]}",
		  "empty_turn_removed assistant_turn_inserted" },
		{ "others take a turn without content", NULL,
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(TEXT("")) "]",
		  HEAD "\"messages\":[" SAYS("user", "q") "," SAYS("assistant", "") "]}", "" },
		{ "Mistral: audio is a string", mistral,
		  "\"messages\":[" USER(TEXT("q") "," WAV) "]",
		  HEAD "\"messages\":[" USER(TEXT("q") ",{\"type\":\"input_audio\","
						       "\"input_audio\":\"UklG\"}") "]}",
		  "" },
		{ "a model that cannot be forced, and reasons", unforced,
		  HI ",\"temperature\":1,\"tools\":[" PING
		     "],\"toolChoice\":{\"mode\":\"required\"}",
		  HEAD "\"tools\":[" PING_OUT
		       "],\"tool_choice\":\"auto\",\"reasoning_effort\":\"none\"," HI_OUT,
		  "temperature_dropped tool_choice_required_downgraded" },
		{ "arguments are compact and escaped", NULL,
		  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(
			  "{\"type\":\"tool_use\",\"id\":\"c\","
			  "\"name\":\"ping\",\"input\":{ \"a\" : [ "
			  "1.0, \"x\\n\\\"y\" ] }}") "," USER(RESULT("c", "["
									  "]")) "]",
		  HEAD "\"messages\":[" SAYS(
			  "user", "q") ",{\"role\":\"assistant\",\"content\":null,"
				       "\"tool_calls\":[{\"id\":\"c\",\"type\":"
				       "\"function\",\"function\":{\"name\":\"ping\","
				       "\"arguments\":\"{\\\"a\\\":[1.0,"
				       "\\\"x\\\\n\\\\\\\"y\\\"]}\"}}]}," TOOL("c", "") "]}",
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

static void where_no_turn_is_left_the_request_is_refused(void **state)
{
	static const char params[] =
		"\"messages\":[" ASSISTANT(TEXT("")) "],\"systemPrompt\":\"s\"";
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, params), ERR_OK);
	mistral(&c->profile);
	assert_int_equal(case_encode(c, params), ERR_MESSAGES_EMPTY);
	assert_string_equal(case_fault_text(c), "messages have no content: only empty text");
	/* where turns were left out, a place is not said rather than a wrong one */
	c->profile.image = false;
	assert_int_equal(case_encode(c, "\"messages\":[" ASSISTANT("") "," USER(PNG) "]"),
			 ERR_CONTENT_UNSUPPORTED);
	assert_true(slice_absent(c->fault.path));
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

/* Only images are counted by their number: audio and what else there is by its bytes (DESIGN 5 Limits). */
static void audio_is_counted_by_its_bytes(void **state)
{
	struct dialect_case *c = *state;

	c->profile.audio = true;
	for (int as_string = 0; as_string < 2; as_string++) {
		c->profile.audio_as_string = as_string;
		assert_int_equal(case_encode(c, "\"messages\":[" USER(PNG "," WAV) "]"), ERR_OK);
		assert_int_equal(c->out.images, 1);
		assert_int_equal(c->out.body.images, 4);
	}
}

static void images_of_results_count_and_need_a_model_that_takes_them(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(
		case_encode(c, "\"messages\":[" USER(TEXT("q") "," PNG) "," ASSISTANT(
				       USE("c", "ping")) "," USER(RESULT("c", "[" PNG "]")) "]"),
		ERR_OK);
	assert_int_equal(c->out.images, 2);
	assert_int_equal(c->out.body.images, 8);
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
	mistral(&c->profile); /* and a list of the turns that are left */
	assert_int_equal(case_encode(c, "\"messages\":[" USER(TEXT("q")) "," ASSISTANT("") "]"),
			 ERR_OK);
	assert_true(case_starve(c, encode_starved) > 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_becomes_exactly_this_body),
		TEST(where_no_turn_is_left_the_request_is_refused),
		TEST(a_downgraded_choice_is_remembered_for_the_answer),
		TEST(audio_is_counted_by_its_bytes),
		TEST(images_of_results_count_and_need_a_model_that_takes_them),
		TEST(every_refused_memory_is_a_named_error),
	};
	return cmocka_run_group_tests_name("dialect_openai", tests, NULL, NULL);
}
