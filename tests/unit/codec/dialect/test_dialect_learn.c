/* The lessons of refusals in the words of many hosts. A caller's own words teach nothing. */
#include "codec/dialects.h"
#include "tests/support/dialect_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- refusals ---- */

/* What was sent, as facts that would change it. */
#define TEMPERATURE LEARN_BIT(LEARN_NO_TEMPERATURE)
#define STOP LEARN_BIT(LEARN_NO_STOP)
#define OLD_LIMIT LEARN_BIT(LEARN_COMPLETION_TOKENS)
#define NEW_LIMIT LEARN_BIT(LEARN_MAX_TOKENS)
#define EFFORT LEARN_BIT(LEARN_NO_EFFORT)
#define TOOLS LEARN_BIT(LEARN_EFFORT_NONE)
#define FORCED LEARN_BIT(LEARN_NO_FORCED_TOOL)
#define CHOICE LEARN_BIT(LEARN_NO_TOOL_CHOICE)
#define FORMAT LEARN_BIT(LEARN_NO_STRUCTURED)
#define PARALLEL LEARN_BIT(LEARN_NO_PARALLEL)
#define USER LEARN_BIT(LEARN_NO_USER_ID)
#define STREAM LEARN_BIT(LEARN_NO_STREAM_OPTIONS)

enum { SHORT, LASTING };

#define SAYS(param, message) "{\"error\":{\"param\":" param ",\"message\":\"" message "\"}}"
#define TELLS(message) \
	"{\"error\":{\"message\":\"" message "\",\"type\":\"invalid_request_error\"}}"

static const struct refusal {
	const char *name;
	uint16_t status;
	learn_set sent;
	const char *body;
	enum learn fact;
	int lasting;
} refusals[] = {
	/* OpenAI, Azure */
	{ "OpenAI, a value", 400, OLD_LIMIT | TEMPERATURE,
	  "{\"error\":{\"message\":\"Unsupported value: 'temperature' does not support 0.7 with "
	  "this "
	  "model. Only the default (1) value is supported.\",\"type\":\"invalid_request_error\","
	  "\"param\":\"temperature\",\"code\":\"unsupported_value\"}}",
	  LEARN_NO_TEMPERATURE, LASTING },
	{ "OpenAI, a parameter", 400, OLD_LIMIT | PARALLEL | CHOICE | TOOLS,
	  "{\"error\":{\"message\":\"Unsupported parameter: 'parallel_tool_calls' is not supported "
	  "with this "
	  "model.\",\"param\":\"parallel_tool_calls\",\"code\":\"unsupported_parameter\"}}",
	  LEARN_NO_PARALLEL, LASTING },
	{ "OpenAI, the new limit", 400, OLD_LIMIT,
	  SAYS("\"max_tokens\"", "Unsupported parameter: 'max_tokens' is not supported with this "
				 "model. Use 'max_completion_tokens' instead."),
	  LEARN_COMPLETION_TOKENS, LASTING },
	{ "OpenAI, tools beside an effort", 400, OLD_LIMIT | TOOLS,
	  SAYS("\"reasoning_effort\"", "Function tools with reasoning_effort are not supported"),
	  LEARN_EFFORT_NONE, LASTING },
	{ "OpenAI, an effort", 400, EFFORT,
	  SAYS("\"reasoning.effort\"", "Unsupported value: 'minimal' is not supported with the "
				       "'gpt-x' model. Supported values are: 'low' and 'high'."),
	  LEARN_NO_EFFORT, LASTING },
	{ "Responses, a format", 400, FORMAT,
	  SAYS("\"text.format\"", "Invalid parameter: 'text.format' of type 'json_schema' is not "
				  "supported with this model."),
	  LEARN_NO_STRUCTURED, LASTING },
	{ "a schema", 400, FORMAT,
	  SAYS("\"response_format\"", "Invalid schema for response_format '__schema__': In "
				      "context=(), 'oneOf' is not permitted."),
	  LEARN_NO_STRUCTURED, SHORT },
	{ "Azure, the new limit", 400, NEW_LIMIT,
	  TELLS("Unrecognized request argument supplied: max_completion_tokens"), LEARN_MAX_TOKENS,
	  LASTING },
	{ "Azure, an effort", 400, EFFORT,
	  TELLS("Unrecognized request argument supplied: reasoning_effort"), LEARN_NO_EFFORT,
	  LASTING },
	{ "Azure, a format", 400, FORMAT,
	  SAYS("\"response_format\"",
	       "Invalid parameter: 'response_format' of type 'json_schema' is not supported with "
	       "this model. Learn more about supported models at the page."),
	  LEARN_NO_STRUCTURED, LASTING },
	{ "Azure, no stream options", 400, STREAM,
	  TELLS("Unrecognized request argument supplied: stream_options"), LEARN_NO_STREAM_OPTIONS,
	  LASTING },
	{ "Azure, the user", 400, USER,
	  SAYS("\"safety_identifier\"", "Unknown parameter: 'safety_identifier'."),
	  LEARN_NO_USER_ID, LASTING },
	/* Anthropic */
	{ "Anthropic, a member", 400, TEMPERATURE,
	  "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":"
	  "\"temperature: Extra inputs are not permitted\"}}",
	  LEARN_NO_TEMPERATURE, LASTING },
	{ "Anthropic, deprecated", 400, TEMPERATURE,
	  TELLS("`temperature` is deprecated for this model."), LEARN_NO_TEMPERATURE, LASTING },
	{ "Anthropic, thinking and temperature", 400, TEMPERATURE,
	  TELLS("`temperature` may only be set to 1 when thinking is enabled."),
	  LEARN_NO_TEMPERATURE, LASTING },
	{ "Anthropic, thinking and a forced tool", 400, FORCED,
	  TELLS("Thinking may not be enabled when tool_choice forces tool use."),
	  LEARN_NO_FORCED_TOOL, LASTING },
	{ "Anthropic, a kind of choice", 400, FORCED,
	  TELLS("tool_choice: type \\\"any\\\" is not supported for this model"),
	  LEARN_NO_FORCED_TOOL, LASTING },
	{ "Anthropic, one at a time", 400, PARALLEL | CHOICE,
	  TELLS("tool_choice.disable_parallel_tool_use: Extra inputs are not permitted"),
	  LEARN_NO_PARALLEL, LASTING },
	{ "Anthropic, a format", 400, FORMAT,
	  TELLS("output_config.format: Extra inputs are not permitted"), LEARN_NO_STRUCTURED,
	  LASTING },
	{ "Anthropic, metadata", 400, USER,
	  TELLS("metadata.user_id: Extra inputs are not permitted"), LEARN_NO_USER_ID, LASTING },
	/* others */
	{ "Kimi, temperature", 400, OLD_LIMIT | TEMPERATURE,
	  TELLS("invalid temperature: only 1 is allowed for this model"), LEARN_NO_TEMPERATURE,
	  LASTING },
	{ "Kimi, another temperature", 400, OLD_LIMIT | TEMPERATURE,
	  TELLS("invalid temperature: only 0.6 is allowed for this model"), LEARN_NO_TEMPERATURE,
	  LASTING },
	{ "Gemini, a name", 400, PARALLEL,
	  "[{\"error\":{\"code\":400,\"message\":\"Invalid JSON payload received. Unknown name "
	  "\\\"parallel_tool_calls\\\": Cannot find field.\",\"status\":\"INVALID_ARGUMENT\"}}]",
	  LEARN_NO_PARALLEL, LASTING },
	{ "Perplexity, a list in a text", 400, STOP,
	  "{\"error\":{\"message\":\"[\\\"At body -> stop: Extra inputs are not permitted\\\"]\","
	  "\"type\":\"bad_request\",\"code\":400}}",
	  LEARN_NO_STOP, LASTING },
	{ "Bedrock, a tool's choice", 400, FORCED,
	  "{\"message\":\"This model doesn't support the toolConfig.toolChoice.any field.\"}",
	  LEARN_NO_FORCED_TOOL, LASTING },
	{ "LiteLLM, another host's text", 400, TEMPERATURE,
	  TELLS("litellm.BadRequestError: gpt-5 models don't support temperature=0.7. Only "
		"temperature=1 is supported."),
	  LEARN_NO_TEMPERATURE, LASTING },
	{ "LiteLLM, another host's error within", 400, TEMPERATURE,
	  TELLS("litellm.BadRequestError: OpenAIException - {\\\"error\\\": {\\\"message\\\": "
		"\\\"Unsupported parameter: 'temperature' is not supported\\\", \\\"param\\\": "
		"\\\"temperature\\\"}}"),
	  LEARN_NO_TEMPERATURE, SHORT },
	{ "Cerebras", 400, PARALLEL,
	  "{\"message\":\"body.parallel_tool_calls: property 'body.parallel_tool_calls' is "
	  "unsupported\",\"type\":\"invalid_request_error\",\"param\":\"validation_error\","
	  "\"code\":"
	  "\"wrong_api_format\"}",
	  LEARN_NO_PARALLEL, LASTING },
	{ "the user, as unknown", 400, USER, TELLS("Extra inputs are not permitted, field: 'user'"),
	  LEARN_NO_USER_ID, LASTING },
	{ "the user's role", 400, USER,
	  TELLS("Conversation roles must alternate 'user' and 'assistant'"), LEARN_NOTHING, SHORT },
	{ "a range", 422, TEMPERATURE,
	  TELLS("temperature 0.9 is not supported, it is outside of the model's range"),
	  LEARN_NO_TEMPERATURE, SHORT },
	{ "Kimi, a forced tool", 400, FORCED | TOOLS,
	  TELLS("tool_choice 'required' is incompatible with thinking enabled"),
	  LEARN_NO_FORCED_TOOL, LASTING },
	{ "DeepSeek, a forced tool", 400, FORCED | TOOLS,
	  TELLS("Thinking mode does not support this tool_choice"), LEARN_NO_FORCED_TOOL, LASTING },
	{ "DeepSeek, a format", 400, FORMAT, TELLS("This response_format type is unavailable now"),
	  LEARN_NO_STRUCTURED, SHORT },
	{ "DashScope, a forced tool", 400, FORCED,
	  "{\"code\":\"InvalidParameter\",\"message\":\"The tool_choice parameter does not support "
	  "being set to required or object in thinking mode\"}",
	  LEARN_NO_FORCED_TOOL, LASTING },
	{ "xAI, stop in old words", 400, OLD_LIMIT | STOP,
	  "{\"code\":\"Client specified an invalid argument\",\"error\":\"Argument not supported "
	  "on "
	  "this model: stop\"}",
	  LEARN_NO_STOP, LASTING },
	{ "xAI, an effort in the case of its own", 400, EFFORT,
	  "{\"code\":\"Client specified an invalid argument\",\"error\":\"Model grok-4 does not "
	  "support parameter reasoningEffort.\"}",
	  LEARN_NO_EFFORT, LASTING },
	{ "xAI, a plain text", 422, CHOICE,
	  "Failed to deserialize the JSON body into the target type: tool_choice: unknown variant",
	  LEARN_NO_TOOL_CHOICE, LASTING },
	{ "Groq, a format", 400, FORMAT,
	  TELLS("This model does not support response format `json_schema`. See supported models"),
	  LEARN_NO_STRUCTURED, LASTING },
	{ "Groq, the same in one word", 400, FORMAT,
	  TELLS("response_format `json_schema` is not supported"), LEARN_NO_STRUCTURED, LASTING },
	{ "Mistral, a list of faults", 422, TEMPERATURE | STOP,
	  "{\"object\":\"error\",\"message\":{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":"
	  "[\"body\",\"stop\"],\"msg\":\"Extra inputs are not "
	  "permitted\",\"input\":\"temperature\"}]"
	  "},\"type\":\"invalid_request_error\",\"param\":null,\"code\":null}",
	  LEARN_NO_STOP, LASTING },
	{ "FastAPI, a list of faults", 422, TEMPERATURE | STOP,
	  "{\"detail\":[{\"loc\":[\"body\",\"stop\"],\"msg\":\"extra fields not permitted\","
	  "\"type\":\"value_error.extra\"},{\"loc\":[\"body\",\"temperature\"],\"msg\":\"no\"}]}",
	  LEARN_NO_STOP, LASTING },
	{ "FastAPI, a text", 422, TEMPERATURE, "{\"detail\":\"temperature is not supported\"}",
	  LEARN_NO_TEMPERATURE, LASTING },
	{ "vLLM, one text for a fault", 400, TEMPERATURE,
	  "{\"object\":\"error\",\"message\":\"body.temperature: Extra inputs are not permitted\","
	  "\"type\":\"BadRequestError\",\"param\":null,\"code\":400}",
	  LEARN_NO_TEMPERATURE, LASTING },
	{ "Cohere, stop sequences", 400, STOP,
	  "{\"message\":\"invalid request: stop_sequences is not supported for this model\"}",
	  LEARN_NO_STOP, LASTING },
	{ "Cohere, two words", 400, STOP, "{\"message\":\"invalid request: stop sequences\"}",
	  LEARN_NO_STOP, SHORT },
	{ "Bedrock, Converse", 400, STOP,
	  "{\"message\":\"This model doesn't support the stopSequences field. Remove stopSequences "
	  "and "
	  "try again.\"}",
	  LEARN_NO_STOP, LASTING },
	{ "Bedrock, a wrapper", 400, TEMPERATURE,
	  "{\"message\":\"Malformed input request: inferenceConfig.temperature: extraneous key is "
	  "not "
	  "permitted\"}",
	  LEARN_NO_TEMPERATURE, LASTING },
	{ "Fireworks", 400, PARALLEL,
	  "{\"error\":{\"object\":\"error\",\"type\":\"invalid_request_error\",\"message\":\"Extra "
	  "inputs are not permitted, field: 'parallel_tool_calls', value: False\"}}",
	  LEARN_NO_PARALLEL, LASTING },
	{ "OpenRouter, nobody", 404, FORCED,
	  "{\"error\":{\"message\":\"No endpoints found that support the provided 'tool_choice' "
	  "value.\",\"code\":404}}",
	  LEARN_NO_FORCED_TOOL, SHORT },
	{ "OpenRouter, of the host behind it", 400, STOP,
	  "{\"error\":{\"message\":\"Provider returned error\",\"code\":400,\"metadata\":{\"raw\":"
	  "\"{\\\"code\\\":\\\"Client specified an invalid argument\\\",\\\"error\\\":\\\"Argument "
	  "not "
	  "supported on this model: stop\\\"}\",\"provider_name\":\"xAI\"}}}",
	  LEARN_NO_STOP, LASTING },
	{ "a proxy that passes an error on as its message", 400, TEMPERATURE,
	  TELLS("{\\\"error\\\":{\\\"message\\\":\\\"temperature is not supported\\\"}}"),
	  LEARN_NO_TEMPERATURE, LASTING },
	{ "LiteLLM", 400, PARALLEL,
	  "{\"error\":{\"message\":\"litellm.UnsupportedParamsError: groq does not support "
	  "parameters: "
	  "['parallel_tool_calls'], for model=x\",\"type\":null,\"param\":null,\"code\":\"400\"}}",
	  LEARN_NO_PARALLEL, LASTING },
	{ "quotation marks of a printer", 400, TEMPERATURE,
	  TELLS("The parameter \\u201ctemperature\\u201d is not supported"), LEARN_NO_TEMPERATURE,
	  LASTING },
	{ "the parameter alone", 400, TEMPERATURE, "{\"error\":{\"param\":\"temperature\"}}",
	  LEARN_NO_TEMPERATURE, SHORT },
	{ "by its value only", 400, TEMPERATURE, SAYS("\"temperature\"", "must be at most 2"),
	  LEARN_NO_TEMPERATURE, SHORT },
	{ "a bound that is not supported", 400, STOP,
	  SAYS("\"stop\"", "stop: more than 2 are not supported"), LEARN_NO_STOP, SHORT },
	/* private blocks */
	{ "a conversation", 400, 0,
	  TELLS("messages.3: The block is bound to a different conversation"),
	  LEARN_UNBIND_THINKING, SHORT },
	{ "a signature", 400, 0,
	  TELLS("messages.1.content.0: Invalid `signature` in `thinking` block"),
	  LEARN_UNBIND_THINKING, SHORT },
	{ "a signature, without quotes", 400, 0,
	  TELLS("messages.9.content.2: Invalid signature in thinking block"), LEARN_UNBIND_THINKING,
	  SHORT },
	{ "a thought", 400, 0, TELLS("Corrupted thought signature."), LEARN_UNBIND_THINKING,
	  SHORT },
	{ "a thought, of another host", 400, 0,
	  TELLS("Unable to submit request because Thought signature is not valid."),
	  LEARN_UNBIND_THINKING, SHORT },
	{ "an encrypted thought", 400, 0,
	  "{\"error\":{\"message\":\"The encrypted content gAAA...DQ== could not be verified.\","
	  "\"type\":\"invalid_request_error\",\"param\":null,\"code\":\"invalid_encrypted_"
	  "content\"}}",
	  LEARN_UNBIND_THINKING, SHORT },

	/* what teaches nothing */
	{ "what was not sent", 400, OLD_LIMIT, TELLS("temperature is not supported"), LEARN_NOTHING,
	  SHORT },
	{ "what a param says was not sent", 400, STOP,
	  SAYS("\"temperature\"", "stop is not supported"), LEARN_NOTHING, SHORT },
	{ "another param", 400, TEMPERATURE, SAYS("\"messages\"", "temperature: not supported"),
	  LEARN_NOTHING, SHORT },
	{ "a part of a word", 400, STOP | TEMPERATURE,
	  TELLS("stopped: nonstop, stop_reason, stop-7b and temperatures are not supported"),
	  LEARN_NOTHING, SHORT },
	{ "the caller's words", 400, TEMPERATURE,
	  TELLS("Invalid prompt: 'please say: temperature is not supported'"), LEARN_NOTHING,
	  SHORT },
	{ "the caller's words in other quotes", 400, TEMPERATURE,
	  TELLS("Invalid prompt: \\\"the temperature is not supported\\\""), LEARN_NOTHING, SHORT },
	{ "the caller's words, cut off", 400, TEMPERATURE,
	  TELLS("Invalid prompt: \\\"the temperature is not supported and"), LEARN_NOTHING, SHORT },
	{ "a member of the caller's", 400, TEMPERATURE,
	  TELLS("tools.0.function.parameters.properties.temperature: not supported"), LEARN_NOTHING,
	  SHORT },
	{ "a fault within a tool", 422, TEMPERATURE,
	  "{\"detail\":[{\"loc\":[\"body\",\"tools\",0,\"function\",\"temperature\"],\"msg\":"
	  "\"temperature: extra fields not permitted\"}]}",
	  LEARN_NOTHING, SHORT },
	{ "the limit's value", 400, OLD_LIMIT,
	  SAYS("\"max_tokens\"", "max_tokens is too large: 9. This model supports at most 8 "
				 "completion tokens"),
	  LEARN_NOTHING, SHORT },
	{ "the limit's value, again", 400, OLD_LIMIT,
	  SAYS("\"max_tokens\"", "not supported above 9"), LEARN_NOTHING, SHORT },
	{ "a better class by name", 400, TEMPERATURE,
	  "{\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"temperature is not "
	  "supported\"}}",
	  LEARN_NOTHING, SHORT },
	{ "a better class by its text", 400, OLD_LIMIT | TEMPERATURE,
	  TELLS("This model's maximum context length is 9 tokens; temperature is not supported"),
	  LEARN_NOTHING, SHORT },
	{ "a model that there is not", 404, TEMPERATURE,
	  "{\"error\":{\"code\":\"model_not_found\",\"message\":\"temperature is not supported\"}}",
	  LEARN_NOTHING, SHORT },
	{ "a status that says why", 401, TEMPERATURE, TELLS("temperature is not supported"),
	  LEARN_NOTHING, SHORT },
	{ "a failure", 500, TEMPERATURE, TELLS("The block is bound to a different conversation"),
	  LEARN_NOTHING, SHORT },
	{ "a block that is missing", 400, TEMPERATURE, TELLS("A thinking block is missing"),
	  LEARN_NOTHING, SHORT },
	{ "a page", 400, STOP, "<html>Please stop, this is not supported</html>", LEARN_NOTHING,
	  SHORT },
};

static void a_refusal_teaches_what_it_names_of_what_was_sent(void **state)
{
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(refusals); i++) {
		const struct refusal *row = &refusals[i];
		c->answer.status = row->status;
		c->context.teachable = row->sent;
		assert_int_not_equal(case_decode(c, row->body), ERR_OK);
		if (c->failure.learn != row->fact || c->failure.learn_lasting != row->lasting)
			fail_msg("%s: fact %d, lasting %d", row->name, c->failure.learn,
				 c->failure.learn_lasting);
		case_reset(c);
	}
}

/* A text that names the temperature in front and `stop` far behind; `shift` moves where it is cut. */
static char *long_refusal(const char *unit, size_t shift)
{
	enum { UNITS = 2500, ROOM = 64 };
	char *body = calloc(1, UNITS * strlen(unit) + ROOM + shift);
	char *pen = stpcpy(body, "{\"message\":\"temperature is not supported ");

	for (size_t i = 0; i < shift; i++)
		*pen++ = '-';
	for (size_t i = 0; i < UNITS; i++)
		pen = stpcpy(pen, unit);
	(void)stpcpy(pen, " stop\"}");
	return body;
}

/* What is cut is no half of a character. */
static void a_long_refusal_is_read_as_far_as_it_may_matter(void **state)
{
	static const char *const units[] = { "a", "\\n", "\\u00e9", "\\ud83d\\ude00", "\xc3\xa9" };
	struct dialect_case *c = *state;

	c->answer.status = 400;
	for (size_t u = 0; u < COUNT_OF(units); u++)
		for (size_t shift = 0; shift < 12; shift++) {
			char *body = long_refusal(units[u], shift);
			c->context.teachable = TEMPERATURE;
			assert_int_equal(case_decode(c, body), ERR_PROVIDER_REJECTED);
			assert_int_equal(c->failure.learn, LEARN_NO_TEMPERATURE);
			c->context.teachable = STOP;
			assert_int_equal(case_decode(c, body), ERR_PROVIDER_REJECTED);
			assert_int_equal(c->failure.learn, LEARN_NOTHING);
			case_reset(c);
			free(body);
		}
}

static enum err refuse(struct dialect_case *c)
{
	static const char body[] = SAYS("null", "temperature: \\\"any\\\" is not supported");

	c->answer.status = 400;
	c->context.teachable = TEMPERATURE;
	(void)case_decode(c, body);
	return c->failure.learn == LEARN_NOTHING ? ERR_BUSY : ERR_OK;
}

static void without_memory_nothing_is_learned(void **state)
{
	assert_true(case_starve(*state, refuse) > 0);
}

/* ---- facts ---- */

/* A request is sent again for what was learned, so that must make a difference. */
static void a_fact_is_learned_once(void **state)
{
	struct profile profile, all, none;
	learn_set facts = 0;

	(void)state;
	profile_defaults(&profile, DIALECT_OPENAI, (struct slice){ NULL, 0 });
	profile.structured_output = true;
	all = none = profile;
	for (int fact = 0; fact < LEARN_COUNT; fact++) {
		struct profile fresh = profile;
		const bool of_model = fact != LEARN_NOTHING && fact != LEARN_UNBIND_THINKING &&
				      fact != LEARN_MAX_TOKENS && fact != LEARN_NO_EFFORT;
		assert_int_equal(profile_learn(&fresh, (enum learn)fact), of_model);
		assert_false(profile_learn(&fresh, (enum learn)fact));
		assert_int_equal(learn_name((enum learn)fact) != NULL,
				 fact != LEARN_NOTHING && fact != LEARN_UNBIND_THINKING);
		facts |= of_model ? LEARN_BIT(fact) : 0;
	}
	profile_learn_all(&none, 0);
	assert_memory_equal(&none, &profile, sizeof(none));
	profile_learn_all(&all, facts);
	assert_true(all.temperature_never && all.max_stop == 0 && !all.forced_tool &&
		    all.max_tokens_field == MAX_TOKENS_FIELD_COMPLETION &&
		    all.tools_need_effort_none && all.tool_choice_never && all.structured_never &&
		    all.parallel_never && all.user_id_field == USER_ID_FIELD_NONE &&
		    !all.stream_usage);
	for (int fact = 0; fact < LEARN_COUNT; fact++)
		if (facts & LEARN_BIT(fact))
			assert_false(profile_learn(&all, (enum learn)fact));
	profile.reasoning = true; /* then a temperature is not sent either */
	assert_false(profile_learn(&profile, LEARN_NO_TEMPERATURE));
	assert_true(profile_learn(&all, LEARN_MAX_TOKENS));
	assert_true(profile_learn(&all, LEARN_NO_EFFORT)); /* none is one, too */
	assert_false(all.tools_need_effort_none);
}

/* ---- whose word counts ---- */

#define HI "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"hi\"}}]"

static void a_value_that_only_one_caller_would_send_proves_nothing(void **state)
{
	static const struct {
		const char *params;
		enum learn fact;
		bool fair;
	} rows[] = {
		{ ",\"temperature\":0", LEARN_NO_TEMPERATURE, true },
		{ ",\"temperature\":0.7", LEARN_NO_TEMPERATURE, true },
		{ ",\"temperature\":1", LEARN_NO_TEMPERATURE, true },
		{ ",\"temperature\":1.5", LEARN_NO_TEMPERATURE, false },
		{ ",\"temperature\":-1", LEARN_NO_TEMPERATURE, false },
		{ ",\"temperature\":0.70000000000000000000000001", LEARN_NO_TEMPERATURE, false },
		{ ",\"stopSequences\":[\"END\",\"a b\"]", LEARN_NO_STOP, true },
		{ ",\"stopSequences\":[\" \"]", LEARN_NO_STOP, false },
		{ ",\"stopSequences\":[\"\\u0000\"]", LEARN_NO_STOP, false },
		{ ",\"stopSequences\":[\"a\",\"b\",\"c\",\"d\",\"e\"]", LEARN_NO_STOP, false },
		{ ",\"metadata\":{\"user_id\":\"u-1\"}", LEARN_NO_USER_ID, true },
		{ ",\"metadata\":{\"user_id\":\"\xc3\xa9\"}", LEARN_NO_USER_ID, false },
		{ "", LEARN_COMPLETION_TOKENS, true },
	};
	struct dialect_case *c = *state;
	char params[512];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(params, sizeof(params), HI "%s", rows[i].params);
		assert_int_equal(case_encode(c, params), ERR_OK);
		if (learn_is_fair(&c->request, rows[i].fact) != rows[i].fair)
			fail_msg("%s", rows[i].params);
		case_reset(c);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_refusal_teaches_what_it_names_of_what_was_sent),
		TEST(a_long_refusal_is_read_as_far_as_it_may_matter),
		TEST(without_memory_nothing_is_learned),
		TEST(a_fact_is_learned_once),
		TEST(a_value_that_only_one_caller_would_send_proves_nothing),
	};
#undef TEST
	return cmocka_run_group_tests_name("dialect_learn", tests, NULL, NULL);
}
