/* What a model's `profile` changes, key by key, and what the hosts of contract/providers.md 5 need. */
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

	case_init(&c, DIALECT_OPENAI);
	*state = &c;
	return 0;
}

static int end(void **state)
{
	case_fini(*state);
	return 0;
}

/* A new conversation with a model of the dialect that has nothing but its defaults. */
static void start(struct dialect_case *c, enum dialect_id dialect)
{
	case_fini(c);
	case_init(c, dialect);
	c->profile.image = false;
}

#define TEXT(text) "{\"type\":\"text\",\"text\":\"" text "\"}"
#define USER(blocks) "{\"role\":\"user\",\"content\":[" blocks "]}"
#define ASSISTANT(blocks) "{\"role\":\"assistant\",\"content\":[" blocks "]}"
#define HI "\"messages\":[" USER(TEXT("hi")) "]"
#define USER_ID ",\"metadata\":{\"user_id\":\"u-1\"}"
#define PING "\"tools\":[{\"name\":\"ping\",\"inputSchema\":{\"type\":\"object\"}}]"
#define FORCED ",\"toolChoice\":{\"mode\":\"required\"}"
#define CLOSED \
	"{\"type\":\"object\",\"properties\":{},\"required\":[],\"additionalProperties\":false}"
#define LOOP                                                                   \
	"\"messages\":[" USER(TEXT("q")) "," ASSISTANT(                        \
		"{\"type\":\"tool_use\",\"id\":\"call_1\",\"name\":\"ping\","  \
		"\"input\":{}}") "," USER("{\"type\":\"tool_result\","         \
					  "\"toolUseId\":\"call_1\","          \
					  "\"content\":[]}") "," USER(TEXT("g" \
									   "o" \
									   " " \
									   "o" \
									   "n")) "]," PING

/* ---- keys ---- */

static void max_output(struct profile *p)
{
	p->max_output = 50;
}

static void max_stop(struct profile *p)
{
	p->max_stop = 1;
}

static void image(struct profile *p)
{
	p->image = true;
}

static void audio(struct profile *p)
{
	p->audio = true;
}

static void forced_tool(struct profile *p)
{
	p->forced_tool = false;
}

static void structured_output(struct profile *p)
{
	p->structured_output = true;
}

static void prefill(struct profile *p)
{
	p->prefill = true;
}

static void temperature(struct profile *p)
{
	p->temperature_max = 0.5;
}

static void no_temperature(struct profile *p)
{
	p->temperature_never = true;
}

static void max_tokens_field(struct profile *p)
{
	p->max_tokens_field = MAX_TOKENS_FIELD_COMPLETION;
}

static void reasoning(struct profile *p)
{
	p->reasoning = true;
}

static void tools_need_effort_none(struct profile *p)
{
	p->tools_need_effort_none = true;
}

static void replay_reasoning(struct profile *p)
{
	p->replay_reasoning = true;
}

static void text_content_as_string(struct profile *p)
{
	p->text_content_as_string = true;
}

static void user_after_tool(struct profile *p)
{
	p->user_after_tool = false;
}

static void think_tags(struct profile *p)
{
	p->think_tags = true;
}

static void id_rule(struct profile *p)
{
	p->id_rule = ID_RULE_MISTRAL9;
}

static void audio_as_string(struct profile *p)
{
	p->audio = p->audio_as_string = true;
}

static void stream_usage(struct profile *p)
{
	p->stream_usage = false;
}

static void merge_same_role(struct profile *p)
{
	p->merge_same_role = true;
}

static void user_id_field(struct profile *p)
{
	p->user_id_field = USER_ID_FIELD_USER;
}

static void user_id_nowhere(struct profile *p)
{
	p->user_id_field = USER_ID_FIELD_NONE;
}

static void body(struct profile *p)
{
	p->body = SLICE("\"thinking\":{\"type\":\"disabled\"}");
}

static void body_of_anthropic(struct profile *p)
{
	p->body = SLICE("\"service_tier\": \"standard_only\"");
}

static void body_of_responses(struct profile *p)
{
	p->tools_need_effort_none = true;
	p->body = SLICE("\"reasoning\":{\"effort\":\"high\"}");
	p->effort_said = true;
}

/* What is in the body (or in the refusal's text) without the key and not with it, and the other way
 * round; NULL: nothing is looked for. */
static const struct key_row {
	const char *key;
	enum dialect_id dialect;
	void (*set)(struct profile *profile);
	const char *params, *without, *with;
	const char *adjustments; /* with it */
} key_rows[] = {
	{ "max_output", DIALECT_OPENAI, max_output, HI, "\"max_tokens\":100,", "\"max_tokens\":50,",
	  "max_tokens_clamped" },
	{ "max_stop", DIALECT_ANTHROPIC, max_stop, HI ",\"stopSequences\":[\"a\",\"b\"]",
	  "[\"a\",\"b\"]", "\"stop_sequences\":[\"a\"]", "stop_sequences_emulated" },
	{ "image", DIALECT_OPENAI, image,
	  "\"messages\":[" USER(
		  "{\"type\":\"image\",\"mimeType\":\"image/png\",\"data\":\"aGk=\"}") "]",
	  "the model takes no image", "data:image/png;base64,aGk=", "" },
	{ "audio", DIALECT_OPENAI, audio,
	  "\"messages\":[" USER(
		  "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"aGk=\"}") "]",
	  "the model takes no audio", "\"input_audio\":{\"data\":\"aGk=\"", "" },
	{ "audio_as_string", DIALECT_OPENAI, audio_as_string,
	  "\"messages\":[" USER(
		  "{\"type\":\"audio\",\"mimeType\":\"audio/wav\",\"data\":\"aGk=\"}") "]",
	  "the model takes no audio", "\"input_audio\":\"aGk=\"", "" },
	{ "user_id_field", DIALECT_OPENAI, user_id_field, HI USER_ID,
	  ",\"safety_identifier\":\"u-1\",", ",\"user\":\"u-1\",", "" },
	{ "user_id_field", DIALECT_RESPONSES, user_id_field, HI USER_ID,
	  ",\"safety_identifier\":\"u-1\",", ",\"user\":\"u-1\",", "" },
	{ "user_id_field", DIALECT_OPENAI, user_id_nowhere, HI USER_ID, "u-1", NULL,
	  "metadata_dropped" },
	{ "user_id_field", DIALECT_RESPONSES, user_id_nowhere, HI USER_ID, "u-1", NULL,
	  "metadata_dropped" },
	{ "user_id_field", DIALECT_ANTHROPIC, user_id_nowhere, HI USER_ID,
	  "\"metadata\":{\"user_id\":\"u-1\"}", "\"max_tokens\":100,\"messages\"",
	  "metadata_dropped" },
	{ "forced_tool", DIALECT_ANTHROPIC, forced_tool, HI "," PING FORCED,
	  "\"tool_choice\":{\"type\":\"any\"}", "\"tool_choice\":{\"type\":\"auto\"}",
	  "tool_choice_required_downgraded" },
	{ "structured_output", DIALECT_OPENAI, structured_output,
	  HI ",\"tools\":[{\"name\":\"__schema__\",\"inputSchema\":" CLOSED "}]" FORCED,
	  "\"tools\"", "\"response_format\":{\"type\":\"json_schema\"", "" },
	{ "prefill", DIALECT_ANTHROPIC, prefill,
	  "\"messages\":[" USER(TEXT("q")) "," ASSISTANT(TEXT("so")) "]", "Continue.", NULL, "" },
	{ "temperature", DIALECT_OPENAI, temperature, HI ",\"temperature\":1.5",
	  "\"temperature\":1.5", "\"temperature\":0.5", "temperature_clamped" },
	{ "temperature", DIALECT_OPENAI, no_temperature, HI ",\"temperature\":1.5",
	  "\"temperature\"", NULL, "temperature_dropped" },
	{ "max_tokens_field", DIALECT_OPENAI, max_tokens_field, HI, "\"max_tokens\"",
	  "\"max_completion_tokens\":100", "" },
	{ "reasoning", DIALECT_OPENAI, reasoning, HI ",\"temperature\":1.5", "\"temperature\"",
	  NULL, "temperature_dropped" },
	{ "tools_need_effort_none", DIALECT_OPENAI, tools_need_effort_none, HI "," PING, NULL,
	  "\"reasoning_effort\":\"none\"", "" },
	{ "text_content_as_string", DIALECT_OPENAI, text_content_as_string,
	  "\"messages\":[" USER(TEXT("a") "," TEXT("b")) "]", TEXT("a"), "\"content\":\"a\\nb\"",
	  "" },
	{ "user_after_tool", DIALECT_OPENAI, user_after_tool, LOOP, NULL,
	  "{\"role\":\"assistant\",\"content\":\"OK.\"}", "assistant_turn_inserted" },
	{ "merge_same_role", DIALECT_OPENAI, merge_same_role,
	  "\"messages\":[" USER(TEXT("a")) "," USER(TEXT("b")) "]",
	  "{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"user\",\"content\":\"b\"}",
	  "[{\"role\":\"user\",\"content\":[" TEXT("a") "," TEXT("b") "]}]", "" },
	{ "body", DIALECT_OPENAI, body, HI, NULL,
	  "\"max_tokens\":100,\"thinking\":{\"type\":\"disabled\"},\"messages\"", "" },
	{ "body", DIALECT_ANTHROPIC, body_of_anthropic, HI, NULL,
	  ",\"service_tier\": \"standard_only\",", "" },
	{ "body", DIALECT_RESPONSES, body_of_responses, HI "," PING, "\"store\":false,\"tools\"",
	  "\"store\":false,\"reasoning\":{\"effort\":\"high\"},", "" },
	{ "id_rule", DIALECT_OPENAI, id_rule, LOOP, "\"tool_call_id\":\"call_1\"",
	  "\"tool_call_id\":\"sPnjkEYJU\"", "" },
};

/* Keys that no row above can show, and the test that does. */
static const char *const keys_elsewhere[] = {
	"version",          /* versions_decide_the_temperature */
	"max_tools",        /* test_route.c: routing passes over the model */
	"think_tags",       /* think_tags_are_for_answers */
	"replay_reasoning", /* reasoning_that_is_wanted_back_and_not_at_hand_is_empty */
	"count_tokens",     /* test_flow_count.c: no body is written otherwise */
	"stream_usage",     /* usage_of_a_stream_is_asked_for_where_that_is_taken */
};

/* The body, or why there is none. */
static const char *body_or_fault(struct dialect_case *c, const char *params)
{
	enum err err = case_encode(c, params);

	if (err == ERR_OK)
		return case_body(c);
	assert_int_equal(err, ERR_CONTENT_UNSUPPORTED);
	return case_fault_text(c);
}

static void check_has(const char *name, const char *text, const char *has, const char *lacks)
{
	if (has != NULL && strstr(text, has) == NULL)
		fail_msg("%s: no %s in %s", name, has, text);
	if (lacks != NULL && strstr(text, lacks) != NULL)
		fail_msg("%s: %s in %s", name, lacks, text);
}

static void each_key_changes_what_it_is_for(void **state)
{
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(key_rows); i++) {
		const struct key_row *row = &key_rows[i];
		start(c, row->dialect);
		check_has(row->key, body_or_fault(c, row->params), row->without, row->with);
		row->set(&c->profile);
		check_has(row->key, body_or_fault(c, row->params), row->with, row->without);
		const char *adjustments = case_adjustments(c, c->out.adjustments);
		if (strcmp(adjustments, row->adjustments) != 0)
			fail_msg("%s: %s", row->key, adjustments);
	}
}

/* The keys of the settings, so that none is added without a row here. */
static const struct {
	const char *scope, *path;
} settings[] = {
#define SETTING(scope, path, ...) { #scope, path },
#define CHOICE(scope, path, ...) { #scope, path },
#define LIST(scope, path, ...) { #scope, path },
#define VALUES(scope, path, ...) { #scope, path },
#define MANY(scope, path, ...) { #scope, path },
#define ENTRIES(scope, path, ...) { #scope, path },
#define LATER(scope, path) { #scope, path },
#define LIMIT_SETTING(...) { "TENANT", "limits" },
#define PART_LIMIT(...) { "TENANT", "limits" },
#include "gateway/settings/tbl/settings.h"
};

static bool key_is_tested(const char *key)
{
	for (size_t i = 0; i < COUNT_OF(key_rows); i++)
		if (strcmp(key_rows[i].key, key) == 0)
			return true;
	for (size_t i = 0; i < COUNT_OF(keys_elsewhere); i++)
		if (strcmp(keys_elsewhere[i], key) == 0)
			return true;
	return false;
}

static void every_key_of_the_settings_has_a_test(void **state)
{
	static const char prefix[] = "profile.";
	size_t found = 0;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(settings); i++) {
		const char *path = settings[i].path;
		if (strcmp(settings[i].scope, "MODEL") != 0 ||
		    strncmp(path, prefix, sizeof(prefix) - 1) != 0)
			continue;
		if (!key_is_tested(path + sizeof(prefix) - 1))
			fail_msg("%s has no row", path);
		found++;
	}
	assert_int_equal(found, 24);
}

static void versions_decide_the_temperature(void **state)
{
	struct profile profile;

	(void)state;
	profile_defaults(&profile, DIALECT_ANTHROPIC, SLICE("2023-06-01"));
	assert_false(profile.temperature_never);
	profile_defaults(&profile, DIALECT_ANTHROPIC, SLICE("2026-10-21"));
	assert_true(profile.temperature_never);
	profile_defaults(&profile, DIALECT_OPENAI, (struct slice){ NULL, 0 });
	assert_false(profile.temperature_never);
	assert_true(profile.temperature_max == 2);
}

#define SAYS(content)                                                                    \
	"{\"id\":\"r\",\"model\":\"m1\",\"choices\":[{\"message\":{\"content\":" content \
	"},\"finish_reason\":\"stop\"}]}"

static void think_tags_are_for_answers(void **state)
{
	static const char answer[] = SAYS("\"<think>hm</think>so\"");
	struct dialect_case *c = *state;

	start(c, DIALECT_OPENAI);
	assert_int_equal(case_encode(c, HI), ERR_OK);
	assert_int_equal(case_decode(c, answer), ERR_OK);
	check_has("without", case_result(c), "<think>", NULL);
	think_tags(&c->profile);
	assert_int_equal(case_encode(c, HI), ERR_OK);
	assert_int_equal(case_decode(c, answer), ERR_OK);
	check_has("with", case_result(c), "\"text\":\"so\"", "<think>");
}

static void reasoning_that_is_wanted_back_and_not_at_hand_is_empty(void **state)
{
	static const char empty[] = "\"content\":null,\"reasoning_content\":\"\",";
	struct dialect_case *c = *state;

	start(c, DIALECT_OPENAI);
	assert_int_equal(case_encode(c, LOOP), ERR_OK);
	check_has("without", case_body(c), "\"tool_calls\"", "reasoning_content");
	replay_reasoning(&c->profile);
	assert_int_equal(case_encode(c, LOOP), ERR_OK);
	check_has("with", case_body(c), empty, NULL);
	assert_string_equal(case_adjustments(c, c->out.adjustments), "reasoning_not_replayed");
}

static void usage_of_a_stream_is_asked_for_where_that_is_taken(void **state)
{
	static const char plain[] = "{\"model\":\"m\",\"max_tokens\":100,\"messages\":[";
	static const char asked[] =
		"\"stream\":true,\"stream_options\":{\"include_usage\":true},\"messages\":[";
	static const char streamed[] = "\"max_tokens\":100,\"stream\":true,\"messages\":[";
	struct dialect_case *c = *state;
	struct encode_in in = { .request = &c->request,
				.profile = &c->profile,
				.model = SLICE("m"),
				.max_tokens = 100,
				.stream = true };

	start(c, DIALECT_OPENAI);
	assert_int_equal(case_encode(c, HI), ERR_OK);
	check_has("no stream", case_body(c), plain, NULL);
	assert_int_equal(dialect_encode(c->dialect, &in, c->work, &c->arena, &c->out, &c->fault),
			 ERR_OK);
	check_has("asked for", case_body(c), asked, NULL);
	stream_usage(&c->profile);
	assert_int_equal(dialect_encode(c->dialect, &in, c->work, &c->arena, &c->out, &c->fault),
			 ERR_OK);
	check_has("sent unasked", case_body(c), streamed, "stream_options");
}

/* Roles alternate, whatever stands between the neighbours on the way. */
static void neighbours_of_one_role_become_one_message(void **state)
{
#define USE(id) "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"ping\",\"input\":{}}"
#define SEES                                                                              \
	"{\"type\":\"tool_result\",\"toolUseId\":\"c\",\"content\":[{\"type\":\"image\"," \
	"\"mimeType\":"                                                                   \
	"\"image/png\",\"data\":\"aGk=\"}]}"
#define SAID(who, what) "{\"role\":\"" who "\",\"content\":" what "}"
#define CALLS                                                                                  \
	"\"tool_calls\":[{\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"ping\"," \
	"\"arguments\":\"{}\"}}]}"
#define SEEN                                                                               \
	"{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"[image 1 of tool call c " \
	"follows]\"},"                                                                     \
	"{\"role\":\"user\",\"content\":[" TEXT(                                           \
		"[image 1 of tool call c]") ",{\"type\":\"image_url\","                    \
					    "\"image_url\":{\"url\":\"data:image/"         \
					    "png;base64,aGk=\"}}"
	static const struct {
		const char *name, *messages, *sent;
	} rows[] = {
		{ "nothing to merge", USER(TEXT("a")) "," ASSISTANT(TEXT("b")) "," USER(TEXT("c")),
		  SAID("user", "\"a\"") "," SAID("assistant", "\"b\"") "," SAID("user", "\"c\"") },
		{ "three users, a text that is empty",
		  USER(TEXT("a")) "," USER(TEXT("")) "," USER(TEXT("b") "," TEXT("c")),
		  SAID("user", "[" TEXT("a") "," TEXT("b") "," TEXT("c") "]") },
		{ "a call behind words",
		  USER(TEXT("q")) "," ASSISTANT(TEXT("so")) "," ASSISTANT(USE("c")) "," USER(
			  "{\"type\":\"tool_result\",\"toolUseId\":\"c\",\"content\":[]}"),
		  SAID("user",
		       "\"q\"") ",{\"role\":\"assistant\",\"content\":\"so\"," CALLS
				",{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"\"}" },
		{ "what a user says behind images of results",
		  USER(TEXT("q")) "," ASSISTANT(USE("c")) "," USER(SEES) "," USER(
			  TEXT("a")) "," USER(TEXT("b")),
		  SAID("user", "\"q\"") ",{\"role\":\"assistant\",\"content\":null," CALLS "," SEEN
					"," TEXT("a") "," TEXT("b") "]}" },
		{ "images of results, and the assistant",
		  USER(TEXT("q")) "," ASSISTANT(USE("c")) "," USER(SEES) "," ASSISTANT(TEXT("b")),
		  SAID("user", "\"q\"") ",{\"role\":\"assistant\",\"content\":null," CALLS "," SEEN
					"]}," SAID("assistant", "\"b\"") },
		{ "images of results at the end",
		  USER(TEXT("q")) "," ASSISTANT(USE("c")) "," USER(SEES),
		  SAID("user", "\"q\"") ",{\"role\":\"assistant\",\"content\":null," CALLS "," SEEN
					"]}" },
	};
	struct dialect_case *c = *state;
	char params[2048], want[2048];

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		start(c, DIALECT_OPENAI);
		c->profile.image = c->profile.merge_same_role = true;
		(void)snprintf(params, sizeof(params), "\"messages\":[%s]", rows[i].messages);
		(void)snprintf(want, sizeof(want), ",\"messages\":[%s]}", rows[i].sent);
		assert_int_equal(case_encode(c, params), ERR_OK);
		const char *sent = strstr(case_body(c), ",\"messages\":");
		if (strcmp(sent, want) != 0)
			fail_msg("%s:\n have %s\n want %s", rows[i].name, sent, want);
	}
	/* of a message that is another one than the caller's no place is said */
	c->profile.image = false;
	assert_int_equal(case_encode(c, "\"messages\":[" USER(TEXT("a")) "," USER(
						"{\"type\":\"image\",\"mimeType\":\"image/"
						"png\",\"data\":\"aGk=\"}") "]"),
			 ERR_CONTENT_UNSUPPORTED);
	assert_true(slice_absent(c->fault.path));
#undef USE
#undef SEES
#undef SAID
#undef CALLS
#undef SEEN
}

/* ---- hosts ---- */

static void mistral(struct profile *p)
{
	p->stream_usage = false;
	p->id_rule = ID_RULE_MISTRAL9;
	p->user_after_tool = false;
	p->max_stop = 1000;
}

static void deepseek(struct profile *p)
{
	p->max_stop = 16;
	p->replay_reasoning = true;
}

static void azure(struct profile *p)
{
	p->max_tokens_field = MAX_TOKENS_FIELD_COMPLETION;
	p->reasoning = true;
	p->tools_need_effort_none = true;
	p->max_stop = 0;
}

/* One request that meets what the hosts differ in, and what each is sent. */
static const struct host {
	const char *name;
	void (*set)(struct profile *profile);
	const char *has[4], *lacks;
} hosts[] = {
	{ "OpenRouter",
	  max_tokens_field,
	  { "\"max_completion_tokens\":100", "\"stop\":[\"a\",\"b\",\"c\",\"d\"]" },
	  "\"max_tokens\"" },
	{ "vLLM", NULL, { "\"max_tokens\":100", "\"tool_choice\":\"required\"" }, "completion" },
	{ "llama.cpp: a named choice would become auto",
	  NULL,
	  { "\"tool_choice\":\"required\"" },
	  "\"tool_choice\":{" },
	{ "Ollama", forced_tool, { "\"tool_choice\":\"auto\"" }, "required" },
	{ "Mistral: nine letters, nobody speaks right behind a tool, any number of stops",
	  mistral,
	  { "\"tool_call_id\":\"sPnjkEYJU\"", "{\"role\":\"assistant\",\"content\":\"OK.\"}",
	    "\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]" },
	  "call_1" },
	{ "Groq", max_tokens_field, { "\"max_completion_tokens\":100" }, "metadata" },
	{ "DeepSeek", deepseek, { "\"max_tokens\":100", "\"e\"]" }, NULL },
	{ "Azure: a reasoning deployment takes tools without effort only",
	  azure,
	  { "\"max_completion_tokens\":100", "\"reasoning_effort\":\"none\"" },
	  "\"stop\"" },
	{ "Gemini's compatible format",
	  NULL,
	  { "\"max_tokens\":100", "\"temperature\":1.5" },
	  NULL },
};

static void each_host_gets_what_it_takes(void **state)
{
	static const char params[] = LOOP FORCED
		",\"temperature\":1.5,\"stopSequences\":[\"a\",\"b\",\"c\",\"d\",\"e\"]";
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(hosts); i++) {
		const struct host *host = &hosts[i];
		start(c, DIALECT_OPENAI);
		if (host->set != NULL)
			host->set(&c->profile);
		assert_int_equal(case_encode(c, params), ERR_OK);
		const char *body = case_body(c);
		for (size_t j = 0; j < COUNT_OF(host->has); j++)
			check_has(host->name, body, host->has[j], host->lacks);
	}
}

#define CALL(args)                                                                                 \
	"{\"id\":\"r\",\"choices\":[{\"message\":{\"content\":null,\"tool_calls\":[{\"id\":\"i\"," \
	"\"function\":{\"name\":\"get_weather\",\"arguments\":" args                               \
	"}}]},\"finish_reason\":\"stop\"}]}"
#define ENDS(rest) "{\"id\":\"r\",\"choices\":[{\"message\":{\"content\":\"x\"}," rest "}]}"

/* How the hosts answer: a fragment of the result, or the failure. */
static const struct answer_row {
	const char *name;
	uint16_t status;
	const char *body, *has;
	enum err err;
	int64_t retry_ms;
} answer_rows[] = {
	{ "OpenRouter: an error in a 200", 200,
	  "{\"error\":{\"code\":502,\"message\":\"upstream\"}}", NULL, ERR_PROVIDER_DOWN, -1 },
	{ "OpenRouter: an error as a reason", 200, ENDS("\"finish_reason\":\"error\""), NULL,
	  ERR_PROVIDER_DOWN, -1 },
	{ "vLLM: the stop that matched", 200,
	  ENDS("\"finish_reason\":\"stop\",\"stop_reason\":\"END\""),
	  "\"stopReason\":\"stopSequence\"", ERR_OK, -1 },
	{ "vLLM: a call in front of the stop that matched", 200,
	  "{\"id\":\"r\",\"choices\":[{\"message\":{\"content\":\"x\",\"tool_calls\":[{\"id\":"
	  "\"i\","
	  "\"function\":{\"name\":\"get_weather\",\"arguments\":\"{}\"}}]},"
	  "\"finish_reason\":\"stop\",\"stop_reason\":\"</x>\"}]}",
	  "\"stopReason\":\"toolUse\"", ERR_OK, -1 },
	{ "vLLM: arguments in a string in a string", 200, CALL("\"\\\"{\\\\\\\"a\\\\\\\":1}\\\"\""),
	  "\"input\":{\"a\":1}", ERR_OK, -1 },
	{ "vLLM: a flat error", 400,
	  "{\"object\":\"error\",\"message\":\"no\",\"type\":\"BadRequestError\",\"code\":400}",
	  NULL, ERR_PROVIDER_REJECTED, -1 },
	{ "llama.cpp: still loading", 503,
	  "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}",
	  NULL, ERR_PROVIDER_DOWN, -1 },
	{ "llama.cpp: the context", 400,
	  "{\"error\":{\"code\":400,\"message\":\"x\",\"type\":\"exceed_context_size_error\"}}",
	  NULL, ERR_CONTEXT_WINDOW, -1 },
	{ "Ollama: an error that is a string", 404, "{\"error\":\"model not found\"}", NULL,
	  ERR_PROVIDER_OPERATOR, -1 },
	{ "Ollama: a call under stop", 200, CALL("\"{}\""), "\"stopReason\":\"toolUse\"", ERR_OK,
	  -1 },
	{ "Mistral: chunks, and thoughts among them", 200,
	  SAYS("[{\"type\":\"thinking\",\"thinking\":[]},{\"type\":\"text\",\"text\":\"x\"}]"),
	  "\"text\":\"x\"", ERR_OK, -1 },
	{ "Mistral: arguments that are an object", 200, CALL("{\"a\":1}"), "\"input\":{\"a\":1}",
	  ERR_OK, -1 },
	{ "Mistral: the model's own length", 200, ENDS("\"finish_reason\":\"model_length\""),
	  "\"stopReason\":\"maxTokens\"", ERR_OK, -1 },
	{ "Mistral: details of a 422", 422, "{\"detail\":[{\"loc\":[\"body\"],\"msg\":\"no\"}]}",
	  NULL, ERR_PROVIDER_REJECTED, -1 },
	{ "Groq: a call that it could not read", 400,
	  "{\"error\":{\"code\":\"tool_use_failed\",\"message\":\"x\",\"failed_generation\":\"y\"}"
	  "}",
	  NULL, ERR_PROVIDER_ANSWER, -1 },
	{ "Groq: no capacity", 498, "{\"error\":{\"message\":\"x\"}}", NULL, ERR_PROVIDER_DOWN,
	  -1 },
	{ "DeepSeek: out of resources", 200,
	  ENDS("\"finish_reason\":\"insufficient_system_resource\""), "\"stopReason\":\"other\"",
	  ERR_OK, -1 },
	{ "DeepSeek: no balance", 402, "{\"error\":{\"message\":\"Insufficient Balance\"}}", NULL,
	  ERR_PROVIDER_BILLING, -1 },
	{ "Azure: the prompt's filter", 400,
	  "{\"error\":{\"code\":\"content_filter\",\"message\":\"x\",\"innererror\":{}}}",
	  "\"stopReason\":\"refusal\"", ERR_OK, -1 },
	{ "Gemini: a list, and when to come back", 429,
	  "[{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"@type\":"
	  "\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"36s\"}]}}]",
	  NULL, ERR_PROVIDER_RATE, 36000 },
};

static void each_host_is_understood(void **state)
{
	struct dialect_case *c = *state;

	for (size_t i = 0; i < COUNT_OF(answer_rows); i++) {
		const struct answer_row *row = &answer_rows[i];
		start(c, DIALECT_OPENAI);
		c->answer.status = row->status;
		enum err err = case_decode(c, row->body);
		if (err != row->err)
			fail_msg("%s: %s", row->name, err_info(err)->reason);
		if (err == ERR_OK)
			check_has(row->name, case_result(c), row->has, NULL);
		else if (c->failure.retry_after_ms != row->retry_ms)
			fail_msg("%s: retry after %lld", row->name,
				 (long long)c->failure.retry_after_ms);
	}
}

/* ---- rows ---- */

static void each_dialect_stands_at_its_place(void **state)
{
	(void)state;
	for (int i = 0; i < DIALECT_COUNT; i++) {
		const struct dialect *dialect = dialect_get((enum dialect_id)i);
		assert_int_equal(dialect->id, i);
		assert_ptr_equal(dialect_find(slice_str(dialect->name)), dialect);
		assert_non_null(dialect->key_header);
		assert_int_equal(dialect->version == NULL, slice_absent(dialect->version_header));
		assert_non_null(strstr("|" DIALECT_CHOICES, dialect->name));
	}
	assert_null(dialect_find(SLICE("gemini")));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_key_changes_what_it_is_for),
		TEST(every_key_of_the_settings_has_a_test),
		TEST(versions_decide_the_temperature),
		TEST(think_tags_are_for_answers),
		TEST(reasoning_that_is_wanted_back_and_not_at_hand_is_empty),
		TEST(usage_of_a_stream_is_asked_for_where_that_is_taken),
		TEST(neighbours_of_one_role_become_one_message),
		TEST(each_host_gets_what_it_takes),
		TEST(each_host_is_understood),
		TEST(each_dialect_stands_at_its_place),
	};
	return cmocka_run_group_tests_name("dialect_profile", tests, NULL, NULL);
}
