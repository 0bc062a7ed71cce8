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

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define USE(id, name) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}}"

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
		{ "a call in front of a stop sequence is to be answered",
		  "{\"content\":[" USE("i", "get_weather") "," TEXT(
			  "a") "],\"stop_reason\":\"stop_sequence\",\"stop_sequence\":\"END\"}",
		  "{\"role\":\"assistant\",\"content\":[" USE("i", "get_weather") "," TEXT(
			  "a") "],\"model\":\"asked\",\"stopReason\":\"toolUse\"}",
		  "" },
		{ "out of tokens: calls before the last stay",
		  "{\"content\":[" USE("i", "get_weather") "," USE(
			  "j", "get_weather") "],"
					      "\"stop_reason\":\"model_context_window_exceeded\"}",
		  "{\"role\":\"assistant\",\"content\":[" USE(
			  "i", "get_weather") "],\"model\":\"asked\",\"stopReason\":\"maxTokens\"}",
		  "incomplete_tool_use_dropped" },
		{ "twice the same key, beside a call and in it: the last one counts",
		  "{\"content\":[" TEXT(
			  "no") "],\"content\":[{\"type\":\"tool_use\",\"id\":\"i\",\"name\":"
				"\"get_weather\",\"input\":{\"a\": 1, \"b\":[1, 2], "
				"\"\\u0061\":3}}],\"x\":\"\xff\"}",
		  "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"i\","
		  "\"name\":"
		  "\"get_weather\",\"input\":{\"b\":[1,2],\"\\u0061\":3}}],\"model\":\"asked\","
		  "\"stopReason\":\"toolUse\"}",
		  "duplicate_key_removed" },
		{ "cut inside a character, behind a byte order mark",
		  "\xef\xbb\xbf{\"content\":[" TEXT("a\\ud83d") "],\"stop_reason\":\"max_tokens\"}",
		  "{\"role\":\"assistant\",\"content\":" TEXT(
			  "a") ",\"model\":\"asked\",\"stopReason\":\"maxTokens\"}",
		  "" },
		{ "out of tokens behind a call: it was finished",
		  "{\"content\":[" USE("i", "get_weather") ",{\"type\":\"thinking\",\"thinking\":"
							   "\"t\"}],\"stop_reason\":"
							   "\"max_tokens\"}",
		  "{\"role\":\"assistant\",\"content\":[" USE(
			  "i", "get_weather") "],\"model\":\"asked\",\"stopReason\":\"maxTokens\"}",
		  "" },
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
		{ "a control character in a string", "{\"content\":[],\"x\":\"\x01\"}",
		  "malformed" },
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

static void what_the_cache_holds_for_an_hour_is_counted_apart(void **state)
{
	static const struct {
		const char *usage;
		uint64_t input, written, hour;
	} rows[] = {
		{ "{\"input_tokens\":10,\"cache_creation_input_tokens\":70,\"cache_read_input_"
		  "tokens\":0,"
		  "\"cache_creation\":{\"ephemeral_5m_input_tokens\":50,\"ephemeral_1h_input_"
		  "tokens\":20},"
		  "\"output_tokens\":5}",
		  80, 70, 20 },
		{ "{\"output_tokens\":5, \"cache_creation\":{\"ephemeral_1h_input_tokens\":20,"
		  "\"ephemeral_5m_input_tokens\":50},\"input_tokens\":10,\"cache_creation_input_"
		  "tokens\":70}",
		  80, 70, 20 },
		{ "{\"input_tokens\":10,\"cache_creation\":{\"ephemeral_1h_input_tokens\":20,"
		  "\"ephemeral_5m_input_tokens\":50},\"output_tokens\":5}",
		  80, 70, 20 },
		{ "{\"input_tokens\":10,\"cache_creation_input_tokens\":7,\"cache_creation\":{"
		  "\"ephemeral_1h_input_tokens\":20},\"output_tokens\":5}",
		  17, 7, 7 },
		{ "{\"input_tokens\":10,\"cache_creation\":null,\"output_tokens\":5}", 10, 0, 0 },
	};
	struct dialect_case *c = *state;
	char body[400];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(body, sizeof(body), "{\"content\":[],\"usage\":%s}", rows[i].usage);
		assert_int_equal(case_decode(c, body), ERR_OK);
		assert_int_equal(c->result.usage.input, rows[i].input);
		assert_int_equal(c->result.usage.cache_write, rows[i].written);
		assert_int_equal(c->result.usage.cache_write_1h, rows[i].hour);
		case_reset(c);
	}
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
		TEST(answer_becomes_exactly_this_result),
		TEST(malformed_answer_is_an_error_that_says_so),
		TEST(wrong_types_where_nothing_depends_on_them_are_passed_over),
		TEST(usage_of_an_unusable_answer_is_told),
		TEST(what_the_cache_holds_for_an_hour_is_counted_apart),
		TEST(absurd_counters_stay_in_normal_form),
		TEST(every_refused_memory_of_an_answer_is_a_named_error),
		TEST(a_thousand_repeated_ids_and_blocks_stay_apart),
	};
	return cmocka_run_group_tests_name("dialect_anthropic_decode", tests, NULL, NULL);
}
