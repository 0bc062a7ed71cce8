/* The request that is sent in place of a refused one, and its adjustment. */
#include "tests/support/dialect_case.h"

#include <setjmp.h>
#include <stdarg.h>
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

#define HI "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}]"
#define TOOL "\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]"
#define SCHEMA                                                                                     \
	"\"tools\":[{\"name\":\"__schema__\",\"inputSchema\":{\"type\":\"object\",\"properties\":" \
	"{"                                                                                        \
	"\"a\":{\"type\":\"string\"}},\"required\":[\"a\"],\"additionalProperties\":false}}],"     \
	"\"toolChoice\":{\"mode\":\"required\"}"
#define ONE_CALL "\"toolChoice\":{\"mode\":\"required\",\"disable_parallel_tool_use\":true}"

static const struct instead {
	const char *name;
	enum dialect_id dialect;
	const char *params;
	enum learn fact;
	const char *before, *after; /* what the body has; after NULL: only not `before` any more */
	const char *adjustments;
} insteads[] = {
	{ "temperature", DIALECT_OPENAI, HI ",\"temperature\":0.5", LEARN_NO_TEMPERATURE,
	  "\"temperature\":0.5", NULL, "temperature_dropped" },
	{ "temperature, Anthropic", DIALECT_ANTHROPIC, HI ",\"temperature\":0.5",
	  LEARN_NO_TEMPERATURE, "\"temperature\":0.5", NULL, "temperature_dropped" },
	{ "temperature, Responses", DIALECT_RESPONSES, HI ",\"temperature\":0.5",
	  LEARN_NO_TEMPERATURE, "\"temperature\":0.5", NULL, "temperature_dropped" },
	{ "stop", DIALECT_OPENAI, HI ",\"stopSequences\":[\"END\"]", LEARN_NO_STOP,
	  "\"stop\":[\"END\"]", NULL, "stop_sequences_emulated" },
	{ "stop, Anthropic", DIALECT_ANTHROPIC, HI ",\"stopSequences\":[\"END\"]", LEARN_NO_STOP,
	  "\"stop_sequences\":[\"END\"]", NULL, "stop_sequences_emulated" },
	{ "the limit", DIALECT_OPENAI, HI, LEARN_COMPLETION_TOKENS, "\"max_tokens\":100",
	  "\"max_completion_tokens\":100", "" },
	{ "a forced tool", DIALECT_OPENAI, HI "," TOOL ",\"toolChoice\":{\"mode\":\"required\"}",
	  LEARN_NO_FORCED_TOOL, "\"tool_choice\":\"required\"", "\"tool_choice\":\"auto\"",
	  "tool_choice_required_downgraded" },
	{ "a forced tool, Anthropic", DIALECT_ANTHROPIC,
	  HI "," TOOL ",\"toolChoice\":{\"mode\":\"required\"}", LEARN_NO_FORCED_TOOL,
	  "\"tool_choice\":{\"type\":\"any\"}", "\"tool_choice\":{\"type\":\"auto\"}",
	  "tool_choice_required_downgraded" },
	{ "a choice", DIALECT_OPENAI, HI "," TOOL ",\"toolChoice\":{\"mode\":\"auto\"}",
	  LEARN_NO_TOOL_CHOICE, ",\"tool_choice\":\"auto\"", NULL, "tool_choice_dropped" },
	{ "a choice, Anthropic", DIALECT_ANTHROPIC,
	  HI "," TOOL ",\"toolChoice\":{\"mode\":\"none\"}", LEARN_NO_TOOL_CHOICE,
	  ",\"tool_choice\":{\"type\":\"none\"}", NULL, "tool_choice_dropped" },
	{ "the choice of the calls in a history, Anthropic", DIALECT_ANTHROPIC,
	  "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}},"
	  "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"t\","
	  "\"input\":{}}]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"toolUseId\":"
	  "\"c\",\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}]}]",
	  LEARN_NO_TOOL_CHOICE, ",\"tool_choice\":{\"type\":\"none\"}", NULL,
	  "tools_synthesised tool_choice_dropped" },
	{ "native output", DIALECT_OPENAI, HI "," SCHEMA, LEARN_NO_STRUCTURED, "response_format",
	  "\"tool_choice\":\"required\"", "response_format_dropped" },
	{ "native output, Responses", DIALECT_RESPONSES, HI "," SCHEMA, LEARN_NO_STRUCTURED,
	  "\"text\":{\"format\"", "\"tool_choice\":\"required\"", "response_format_dropped" },
	{ "native output, Anthropic", DIALECT_ANTHROPIC, HI "," SCHEMA, LEARN_NO_STRUCTURED,
	  "output_config", "\"tool_choice\":{\"type\":\"tool\"", "response_format_dropped" },
	{ "one call at a time", DIALECT_OPENAI, HI "," TOOL "," ONE_CALL, LEARN_NO_PARALLEL,
	  "\"parallel_tool_calls\":false", "\"tool_choice\":\"required\"",
	  "parallel_tool_calls_dropped" },
	{ "one call at a time, Anthropic", DIALECT_ANTHROPIC, HI "," TOOL "," ONE_CALL,
	  LEARN_NO_PARALLEL, "disable_parallel_tool_use", "\"tool_choice\":{\"type\":\"any\"}",
	  "parallel_tool_calls_dropped" },
	{ "the user", DIALECT_OPENAI, HI ",\"metadata\":{\"user_id\":\"u\"}", LEARN_NO_USER_ID,
	  "\"safety_identifier\":\"u\"", NULL, "metadata_dropped" },
	{ "an effort beside tools", DIALECT_OPENAI, HI "," TOOL, LEARN_EFFORT_NONE, "\"tools\"",
	  "\"reasoning_effort\":\"none\"", "" },
	{ "an effort beside tools, Responses", DIALECT_RESPONSES, HI "," TOOL, LEARN_EFFORT_NONE,
	  "\"tools\"", "\"reasoning\":{\"effort\":\"none\"}", "" },
};

static void a_lesson_changes_what_is_sent_and_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(insteads); i++) {
		const struct instead *row = &insteads[i];
		const bool replaced = row->after == NULL || row->fact != LEARN_EFFORT_NONE;
		struct dialect_case c;

		case_init(&c, row->dialect);
		c.profile.structured_output = true;
		assert_int_equal(case_encode(&c, row->params), ERR_OK);
		if (strstr(case_body(&c), row->before) == NULL)
			fail_msg("%s: %s", row->name, case_body(&c));
		assert_true(c.context.teachable & LEARN_BIT(row->fact));
		assert_true(profile_learn(&c.profile, row->fact));
		assert_int_equal(case_encode_again(&c), ERR_OK);
		const char *body = case_body(&c);
		if ((strstr(body, row->before) != NULL) == replaced ||
		    (row->after != NULL && strstr(body, row->after) == NULL))
			fail_msg("%s: %s", row->name, body);
		if (strcmp(case_adjustments(&c, c.out.adjustments), row->adjustments) != 0)
			fail_msg("%s: %s", row->name, case_adjustments(&c, c.out.adjustments));
		assert_false(c.out.decode.teachable & LEARN_BIT(row->fact));
		case_fini(&c);
	}
}

static void an_effort_of_the_profile_is_left_out_of_its_members(void **state)
{
	struct dialect_case *c = *state;

	c->profile.body = SLICE("\"seed\": 1, \"reasoning_effort\": \"low\",\"x\":{\"y\":[2]}");
	c->profile.effort_said = true;
	assert_int_equal(case_encode(c, HI "," TOOL), ERR_OK);
	assert_non_null(strstr(case_body(c), ",\"seed\": 1, \"reasoning_effort\": \"low\""));
	assert_true(c->context.teachable & LEARN_BIT(LEARN_NO_EFFORT));
	assert_true(profile_learn(&c->profile, LEARN_NO_EFFORT));
	assert_int_equal(case_encode_again(c), ERR_OK);
	assert_non_null(strstr(case_body(c), ",\"seed\":1,\"x\":{\"y\":[2]}"));
	assert_null(strstr(case_body(c), "effort"));
	assert_string_equal(case_adjustments(c, c->out.adjustments), "reasoning_effort_dropped");
	assert_true(c->context.teachable & LEARN_BIT(LEARN_EFFORT_NONE)); /* the host's own one */
	assert_true(profile_learn(&c->profile, LEARN_EFFORT_NONE));
	assert_int_equal(case_encode_again(c), ERR_OK);
	assert_non_null(strstr(case_body(c), ",\"reasoning_effort\":\"none\""));
}

/* What says one call at a time is a part of the choice there. */
static void without_a_choice_anthropic_is_not_told_of_parallel_calls_either(void **state)
{
	struct dialect_case c;

	(void)state;
	case_init(&c, DIALECT_ANTHROPIC);
	assert_true(profile_learn(&c.profile, LEARN_NO_TOOL_CHOICE));
	assert_int_equal(case_encode(&c, HI "," TOOL "," ONE_CALL), ERR_OK);
	assert_null(strstr(case_body(&c), "tool_choice"));
	assert_string_equal(case_adjustments(&c, c.out.adjustments),
			    "tool_choice_dropped parallel_tool_calls_dropped");
	case_fini(&c);
}

static void a_request_with_nothing_in_it_can_be_taught_its_limit_alone(void **state)
{
	struct dialect_case *c = *state;

	assert_int_equal(case_encode(c, HI), ERR_OK);
	assert_int_equal(c->context.teachable, LEARN_BIT(LEARN_COMPLETION_TOKENS));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_lesson_changes_what_is_sent_and_is_told),
		TEST(an_effort_of_the_profile_is_left_out_of_its_members),
		TEST(without_a_choice_anthropic_is_not_told_of_parallel_calls_either),
		TEST(a_request_with_nothing_in_it_can_be_taught_its_limit_alone),
	};
#undef TEST
	return cmocka_run_group_tests_name("dialect_members", tests, NULL, NULL);
}
