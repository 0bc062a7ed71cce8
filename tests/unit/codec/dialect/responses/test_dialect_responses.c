#include "codec/dialect/dialect.h"
#include "codec/dialects.h"
#include "codec/set.h"
#include "tests/support/dialect_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define ASSISTANT(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define MESSAGES(list) "\"messages\":[" list "]"
#define HI MESSAGES(USER(TEXT("hi")))
#define USE(id, name) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}"
#define RESULT(id, content, more) \
	"{\"type\":\"tool_result\",\"toolUseId\":\"" id "\",\"content\":" content more "}"
#define PNG "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"aGk=\"}"
#define WAV "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"aGk=\"}"
#define PING ",\"tools\":[{\"name\":\"ping\",\"inputSchema\":{\"type\":\"object\"}}]"
#define CLOSED \
	"{\"type\":\"object\",\"properties\":{},\"required\":[],\"additionalProperties\":false}"

#define HEAD "{\"model\":\"m\",\"max_output_tokens\":100,\"store\":false,"
#define SAYS(role, text) "{\"role\":\"" role "\",\"content\":\"" text "\"}"
#define INPUT(list) "\"input\":[" list "]}"
#define HI_OUT INPUT(SAYS("user", "hi"))
#define TEXT_OUT(text) "{\"type\":\"input_text\",\"text\":\"" text "\"}"
#define PNG_OUT                                                                     \
	"{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":\"data:image/" \
	"png;base64,aGk=\"}"
#define CALL(id, name)                                                              \
	"{\"type\":\"function_call\",\"call_id\":\"" id "\",\"name\":\"" name "\"," \
	"\"arguments\":\"{}\"}"
#define OUTPUT(id, output) \
	"{\"type\":\"function_call_output\",\"call_id\":\"" id "\",\"output\":" output "}"
#define PING_OUT                                                                        \
	"\"tools\":[{\"type\":\"function\",\"name\":\"ping\",\"parameters\":{\"type\":" \
	"\"object\",\"properties\":{}},\"strict\":false}],"

/* A loop of one call whose result has that content. */
#define LOOP(content, more)                                                \
	MESSAGES(USER(TEXT("q")) "," ASSISTANT(USE("c", "ping")) "," USER( \
		RESULT("c", content, more)))                               \
	PING
#define LOOP_OUT(output) \
	HEAD PING_OUT INPUT(SAYS("user", "q") "," CALL("c", "ping") "," OUTPUT("c", output))

static void unforced(struct profile *profile)
{
	profile->forced_tool = false;
	profile->reasoning = true;
	profile->tools_need_effort_none = true;
}

static void replayed(struct profile *profile)
{
	profile->replay_reasoning = true;
}

static void structured(struct profile *profile)
{
	profile->structured_output = true;
}

static void many_stops(struct profile *profile)
{
	profile->max_stop = 4;
}

static void request_becomes_exactly_this_body(void **state)
{
	static const struct {
		const char *name;
		void (*profile)(struct profile *profile);
		const char *params, *body, *adjustments;
	} rows[] = {
		{ "nothing but text", NULL, HI, HEAD HI_OUT, "" },
		{ "the system prompt", NULL, HI ",\"systemPrompt\":\"be \\\"good\\\"\"",
		  HEAD "\"instructions\":\"be \\\"good\\\"\"," HI_OUT, "" },
		{ "temperature and user", NULL,
		  HI ",\"temperature\":0.5,\"metadata\":{\"user_id\":\"u\"}",
		  HEAD "\"temperature\":0.5,\"safety_identifier\":\"u\"," HI_OUT, "" },
		{ "stop sequences are for the gateway, whatever the profile says", many_stops,
		  HI ",\"stopSequences\":[\"END\"]", HEAD HI_OUT, "stop_sequences_emulated" },
		{ "several blocks are parts, empty ones are left out", NULL,
		  MESSAGES(USER(TEXT("a") "," TEXT("") "," PNG)),
		  HEAD INPUT(USER(TEXT_OUT("a") "," PNG_OUT)), "" },
		{ "a lone image is a part, too", NULL, MESSAGES(USER(PNG)),
		  HEAD INPUT(USER(PNG_OUT)), "" },
		{ "texts and calls of the assistant keep their order", NULL,
		  MESSAGES(USER(TEXT("q")) "," ASSISTANT(TEXT("a") "," USE("c", "ping") "," TEXT(
			  "b")) "," USER(RESULT("c", "[" TEXT("pong") "]", ""))) PING,
		  HEAD PING_OUT INPUT(SAYS("user", "q") "," SAYS("assistant", "a") "," CALL(
			  "c", "ping") "," SAYS("assistant", "b") "," OUTPUT("c", "\"pong\"")),
		  "" },
		{ "an assistant's image is a placeholder", NULL,
		  MESSAGES(USER(TEXT("q")) "," ASSISTANT(PNG)),
		  HEAD INPUT(SAYS("user", "q") "," SAYS("assistant", "[image omitted: image/png]")),
		  "media_replaced_by_text" },
		{ "an empty turn is left out", NULL,
		  MESSAGES(USER(TEXT("q")) "," ASSISTANT(TEXT("")) "," USER(TEXT(""))),
		  HEAD INPUT(SAYS("user", "q")), "empty_turn_removed" },
		{ "texts of a result, a line each", NULL,
		  LOOP("[" TEXT("a") "," TEXT("") "," TEXT("b") "]", ""), LOOP_OUT("\"a\\nb\""),
		  "" },
		{ "an error result", NULL, LOOP("\"bad\"", ",\"isError\":true"),
		  LOOP_OUT("\"Error: bad\""), "" },
		{ "an empty result", NULL, LOOP("[]", ""), LOOP_OUT("\"\""), "" },
		{ "a structured result counts where there is no other", NULL,
		  LOOP("[]", ",\"structuredContent\":{\"a\": 1}"), LOOP_OUT("\"{\\\"a\\\":1}\""),
		  "" },
		{ "images of a result stay in it", NULL,
		  LOOP("[" TEXT("a") "," PNG "," TEXT("") "]", ""),
		  LOOP_OUT("[" TEXT_OUT("a") "," PNG_OUT "]"), "" },
		{ "an error with an image", NULL, LOOP("[" PNG "]", ",\"isError\":true"),
		  LOOP_OUT("[" TEXT_OUT("Error:") "," PNG_OUT "]"), "" },
		{ "audio of a result becomes a placeholder", NULL, LOOP("[" WAV "]", ""),
		  LOOP_OUT("\"[audio omitted: audio/wav]\""), "media_replaced_by_text" },
		{ "a tool that must be called", NULL,
		  HI PING ",\"toolChoice\":{\"mode\":\"required\"}",
		  HEAD PING_OUT "\"tool_choice\":\"required\"," HI_OUT, "" },
		{ "tools stay when none may be called", NULL,
		  HI PING ",\"toolChoice\":{\"mode\":\"none\"}",
		  HEAD PING_OUT "\"tool_choice\":\"none\"," HI_OUT, "" },
		{ "a model that cannot be forced, and works without effort only", unforced,
		  HI PING ",\"temperature\":1,\"toolChoice\":{\"mode\":\"required\"}",
		  HEAD PING_OUT
		  "\"tool_choice\":\"auto\",\"reasoning\":{\"effort\":\"none\"}," HI_OUT,
		  "temperature_dropped tool_choice_required_downgraded" },
		{ "reasoning that is to be carried", replayed, HI PING,
		  HEAD "\"include\":[\"reasoning.encrypted_content\"]," PING_OUT HI_OUT, "" },
		{ "reasoning is kept of calls only: where there are no tools, none is asked for",
		  replayed, HI, HEAD HI_OUT, "" },
		{ "nor where none may be called", replayed,
		  HI PING ",\"toolChoice\":{\"mode\":\"none\"}",
		  HEAD PING_OUT "\"tool_choice\":\"none\"," HI_OUT, "" },
		{ "structured output", structured,
		  HI ",\"tools\":[{\"name\":\"__schema__\",\"inputSchema\":" CLOSED
		     "}],\"toolChoice\":{\"mode\":\"required\"}",
		  HEAD "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"__schema__\","
		       "\"strict\":true,\"schema\":" CLOSED "}}," HI_OUT,
		  "" },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		profile_defaults(&c->profile, DIALECT_RESPONSES, (struct slice){ NULL, 0 });
		c->profile.image = true;
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

static void what_cannot_be_expressed_is_refused(void **state)
{
	static const struct {
		const char *params;
		bool image, audio;
		enum err err;
		const char *text, *path;
	} rows[] = {
		{ MESSAGES(USER(WAV)), true, true, ERR_CONTENT_UNSUPPORTED,
		  "the model takes no audio, and this is audio/wav",
		  "$.params.messages[0].content" },
		{ MESSAGES(USER(TEXT("a")) "," USER(PNG)), false, false, ERR_CONTENT_UNSUPPORTED,
		  "the model takes no image, and this is image/png",
		  "$.params.messages[1].content" },
		{ MESSAGES(USER(
			  "{\"type\":\"image\",\"mimeType\":\"image/bmp\",\"data\":\"aGk=\"}")),
		  true, false, ERR_CONTENT_UNSUPPORTED,
		  "the model does not take image of type image/bmp, only image/jpeg, image/png, "
		  "image/gif and image/webp",
		  "$.params.messages[0].content" },
		{ MESSAGES(USER(TEXT(""))), true, false, ERR_MESSAGES_EMPTY,
		  "messages have no content: only empty text", "$.params.messages[0]" },
	};
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		c->profile.image = rows[i].image;
		c->profile.audio = rows[i].audio;
		assert_int_equal(case_encode(c, rows[i].params), rows[i].err);
		assert_int_equal(c->fault.err, rows[i].err);
		assert_string_equal(case_fault_text(c), rows[i].text);
		assert_true(slice_eq(c->fault.path, slice_str(rows[i].path)));
		case_reset(c);
	}
}

static void a_longer_historys_body_begins_with_the_shorter_ones(void **state)
{
	struct dialect_case *c = *state;
	char before[1024];

	assert_int_equal(case_encode(c, HI PING), ERR_OK);
	const char *body = case_body(c);
	size_t len = strlen(body) - strlen("]}");
	assert_true(len < sizeof(before));
	(void)memcpy(before, body, len);
	assert_int_equal(case_encode(c, MESSAGES(USER(TEXT("hi")) "," ASSISTANT(
						TEXT("ho")) "," USER(TEXT("on"))) PING),
			 ERR_OK);
	assert_memory_equal(case_body(c), before, len);
}

static void a_stream_is_asked_for_where_it_is_wanted(void **state)
{
	struct dialect_case *c = *state;
	struct encode_in in = { .request = &c->request,
				.profile = &c->profile,
				.model = SLICE("m"),
				.max_tokens = 100,
				.stream = true };

	assert_int_equal(case_encode(c, HI), ERR_OK);
	assert_null(strstr(case_body(c), "\"stream\""));
	assert_int_equal(dialect_encode(c->dialect, &in, c->work, &c->arena, &c->out, &c->fault),
			 ERR_OK);
	assert_non_null(strstr(case_body(c), "\"stream\":true"));
}

static void the_least_that_openai_takes_is_sent_and_counted(void **state)
{
	static const struct {
		uint32_t asked, sent;
	} rows[] = { { 1, 16 }, { 15, 16 }, { 16, 16 }, { 17, 17 } };
	struct dialect_case *c = *state;
	char field[64];

	assert_int_equal(case_encode(c, HI), ERR_OK);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct encode_in in = { .request = &c->request,
					.profile = &c->profile,
					.model = SLICE("m"),
					.max_tokens = rows[i].asked };
		c->request.max_tokens = rows[i].asked;
		assert_int_equal(
			dialect_encode(c->dialect, &in, c->work, &c->arena, &c->out, &c->fault),
			ERR_OK);
		(void)snprintf(field, sizeof(field), "\"max_output_tokens\":%u,", rows[i].sent);
		assert_non_null(strstr(case_body(c), field));
		assert_int_equal(c->out.max_tokens, rows[i].sent); /* what is reserved */
		assert_string_equal(case_adjustments(c, c->out.adjustments),
				    rows[i].asked < rows[i].sent ? "max_tokens_clamped" : "");
	}
}

static enum err encode_all(struct dialect_case *c)
{
	return case_encode_again(c);
}

static void want_of_memory_is_an_answer(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, MESSAGES(USER(TEXT("q")) "," ASSISTANT(USE(
						"an id that is much too long for this provider",
						"a.b")) "," USER(RESULT("an id that is much too "
									"long for this provider",
									"[" PNG "]", ""))) PING
				     ",\"systemPrompt\":\"s\",\"stopSequences\":[\"x\"]"),
			 ERR_OK);
	assert_true(case_starve(c, encode_all) > 10);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_becomes_exactly_this_body),
		TEST(what_cannot_be_expressed_is_refused),
		TEST(a_longer_historys_body_begins_with_the_shorter_ones),
		TEST(a_stream_is_asked_for_where_it_is_wanted),
		TEST(the_least_that_openai_takes_is_sent_and_counted),
		TEST(want_of_memory_is_an_answer),
	};
	return cmocka_run_group_tests_name("dialect_responses", tests, NULL, NULL);
}
