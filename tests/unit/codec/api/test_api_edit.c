/* The provider's request is the caller's but for what the gateway changes. */
#include "codec/api/api_edit.h"

#include "tests/unit/codec/api/api_rig.h"

/* `changes` with the model "up/m" and nothing else. */
#define UP .model = SLICE_INIT("up/m")
#define U(more) "{\"role\":\"user\",\"content\":\"hi\"}" more

static const struct edit_row {
	enum api api;
	const char *body, *expected;
	struct api_changes changes;
	adjust_set adjustments;
	bool store_disabled;
	uint64_t tokens;
} edit_rows[] = {
	/* the model, and nothing beside it */
	{ API_MESSAGES,
	  "\n{ \"x\" : 1.50 ,\"model\" : \"m\",\r\n\"max_tokens\":9,\"messages\":[" U("") "]} ",
	  "\n{ \"x\" : 1.50 ,\"model\" : \"up/m\",\r\n\"max_tokens\":9,\"messages\":[" U("") "]} ",
	  { UP },
	  0,
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(""),
	  "{\"model\":\"q\\\"\\u0001\",\"max_tokens\":9,\"messages\":[" U("") "]}",
	  { .model = SLICE_INIT("q\"\x01") },
	  0,
	  false,
	  9 },
	/* the bound */
	{ API_MESSAGES,
	  API_M(""),
	  "{\"model\":\"up/m\",\"max_tokens\":8,\"messages\":[" U("") "]}",
	  { UP, .tokens_max = 8 },
	  ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED),
	  false,
	  8 },
	{ API_MESSAGES,
	  API_M(""),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U("") "]}",
	  { UP, .tokens_max = 9 },
	  0,
	  false,
	  9 },
	{ API_CHAT,
	  API_C(""),
	  "{\"max_tokens\":8,\"model\":\"up/m\",\"messages\":[" U("") "]}",
	  { UP, .tokens_max = 8 },
	  0,
	  false,
	  8 },
	{ API_CHAT,
	  API_C(""),
	  "{\"max_completion_tokens\":8,\"model\":\"up/m\",\"messages\":[" U("") "]}",
	  { UP, .tokens_max = 8, .completion_tokens = true },
	  0,
	  false,
	  8 },
	{ API_CHAT,
	  API_C(",\"max_completion_tokens\":null"),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "],\"max_completion_tokens\":8}",
	  { UP, .tokens_max = 8, .completion_tokens = true },
	  0,
	  false,
	  8 },
	{ API_CHAT,
	  API_C(",\"max_tokens\":100,\"max_completion_tokens\":7"),
	  "{\"model\":\"up/m\",\"messages\":[" U(
		  "") "],\"max_tokens\":8,\"max_completion_tokens\":7}",
	  { UP, .tokens_max = 8 },
	  ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED),
	  false,
	  8 },
	{ API_CHAT,
	  API_C(",\"max_tokens\":99999999999999999999"),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "],\"max_tokens\":8}",
	  { UP, .tokens_max = 8 },
	  ADJUST_BIT(ADJUST_MAX_TOKENS_CLAMPED),
	  false,
	  8 },
	{ API_COUNT,
	  "{\"model\":\"m\",\"messages\":[" U("") "]}",
	  "{\"model\":\"up/m\",\"messages\":[" U("") "]}",
	  { UP, .tokens_max = 8 },
	  0,
	  false,
	  0 },
	/* no calls: what the caller chose is replaced */
	{ API_MESSAGES,
	  API_M(",\"tools\":[{}]"),
	  "{\"tool_choice\":{\"type\":\"none\"},\"model\":\"up/"
	  "m\",\"max_tokens\":9,\"messages\":[" U("") "],\"tools\":[{}]}",
	  { UP, .calls_never = true },
	  ADJUST_BIT(ADJUST_TOOL_ROUNDS_FINAL),
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(",\"tools\":[{}],\"tool_choice\":{\"type\":\"any\"}"),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U(
		  "") "],\"tools\":[{}],\"tool_choice\":{\"type\":\"none\"}}",
	  { UP, .calls_never = true },
	  ADJUST_BIT(ADJUST_TOOL_ROUNDS_FINAL),
	  false,
	  9 },
	{ API_CHAT,
	  API_C(",\"tools\":[{}],\"tool_choice\":\"required\",\"functions\":[{}],\"function_call\":"
		"null"),
	  "{\"model\":\"up/m\",\"messages\":[" U(
		  "") "],\"tools\":[{}],\"tool_choice\":\"none\",\"functions\":[{}],\"function_"
		      "call\":\"none\"}",
	  { UP, .calls_never = true },
	  ADJUST_BIT(ADJUST_TOOL_ROUNDS_FINAL),
	  false,
	  0 },
	/* usage of a stream */
	{ API_CHAT,
	  API_C(",\"stream\":true"),
	  "{\"stream_options\":{\"include_usage\":true},\"model\":\"up/m\",\"messages\":[" U(
		  "") "],\"stream\":true}",
	  { UP, .usage = true },
	  0,
	  false,
	  0 },
	{ API_CHAT,
	  API_C(",\"stream\":true,\"stream_options\":null"),
	  "{\"model\":\"up/m\",\"messages\":[" U(
		  "") "],\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
	  { UP, .usage = true },
	  0,
	  false,
	  0 },
	{ API_CHAT,
	  API_C(",\"stream\":true,\"stream_options\":{\"include_obfuscation\":false}"),
	  "{\"model\":\"up/m\",\"messages\":[" U(
		  "") "],\"stream\":true,\"stream_options\":{\"include_usage\":true,\"include_"
		      "obfuscation\":false}}",
	  { UP, .usage = true },
	  0,
	  false,
	  0 },
	{ API_CHAT,
	  API_C(",\"stream\":true,\"stream_options\":{\"include_usage\":false}"),
	  "{\"model\":\"up/m\",\"messages\":[" U(
		  "") "],\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
	  { UP, .usage = true },
	  0,
	  false,
	  0 },
	{ API_CHAT,
	  API_C(",\"stream\":true,\"stream_options\":{ }"),
	  "{\"model\":\"up/m\",\"messages\":[" U(
		  "") "],\"stream\":true,\"stream_options\":{\"include_usage\":true }}",
	  { UP, .usage = true },
	  0,
	  false,
	  0 },
	{ API_CHAT,
	  API_C(""),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "]}",
	  { UP, .usage = true },
	  0,
	  false,
	  0 },
	/* what the provider would keep */
	{ API_CHAT,
	  API_C(""),
	  "{\"store\":false,\"model\":\"up/m\",\"messages\":[" U("") "]}",
	  { UP, .store_never = true },
	  0,
	  false,
	  0 },
	{ API_CHAT,
	  API_C(",\"store\":true"),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "],\"store\":false}",
	  { UP, .store_never = true },
	  0,
	  true,
	  0 },
	{ API_CHAT,
	  API_C(",\"store\":false"),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "],\"store\":false}",
	  { UP, .store_never = true },
	  0,
	  false,
	  0 },
	{ API_CHAT,
	  API_C(",\"store\":true"),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "],\"store\":true}",
	  { UP },
	  0,
	  false,
	  0 },
	/* the system prompt of Messages */
	{ API_MESSAGES,
	  API_M(",\"system\":\"mine\""),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U(
		  "") "],\"system\":\"P\\n\\nmine\"}",
	  { UP, .system_rule = API_SYSTEM_PREFIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED),
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(",\"system\":\"\""),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U("") "],\"system\":\"P\"}",
	  { UP, .system_rule = API_SYSTEM_PREFIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED),
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(",\"system\":[ ]"),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U(
		  "") "],\"system\":[{\"type\":\"text\",\"text\":\"P\"} ]}",
	  { UP, .system_rule = API_SYSTEM_PREFIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED),
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(",\"system\":[{\"type\":\"text\",\"text\":\"a\"}]"),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U(
		  "") "],\"system\":[{\"type\":\"text\",\"text\":\"P\"},{\"type\":\"text\","
		      "\"text\":\"a\"}]}",
	  { UP, .system_rule = API_SYSTEM_PREFIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED),
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(""),
	  "{\"system\":\"P\",\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U("") "]}",
	  { UP, .system_rule = API_SYSTEM_PREFIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED),
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(",\"system\":[{\"type\":\"text\",\"text\":\"a\"}]"),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U("") "],\"system\":\"P\"}",
	  { UP, .system_rule = API_SYSTEM_FIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_FIXED),
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(",\"system\":null"),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U("") "],\"system\":\"P\"}",
	  { UP, .system_rule = API_SYSTEM_FIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_FIXED),
	  false,
	  9 },
	/* and of Chat */
	{ API_CHAT,
	  API_C(""),
	  "{\"model\":\"up/m\",\"messages\":[{\"role\":\"system\",\"content\":\"P\"}," U("") "]}",
	  { UP, .system_rule = API_SYSTEM_PREFIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED),
	  false,
	  0 },
	{ API_CHAT,
	  "{\"model\":\"m\",\"messages\":[{\"role\":\"developer\",\"content\":\"d\"}," U("") "]}",
	  "{\"model\":\"up/m\",\"messages\":[{\"role\":\"developer\",\"content\":\"P\\n\\nd\"}," U(
		  "") "]}",
	  { UP, .system_rule = API_SYSTEM_PREFIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_PREFIXED),
	  false,
	  0 },
	{ API_CHAT,
	  "{\"model\":\"m\",\"messages\":[ "
	  "{\"role\":\"system\",\"content\":\"d\"},{\"role\":\"developer\","
	  "\"content\":\"d\"}," U("") "]}",
	  "{\"model\":\"up/m\",\"messages\":[{\"role\":\"system\",\"content\":\"P\"}," U("") "]}",
	  { UP, .system_rule = API_SYSTEM_FIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_FIXED),
	  false,
	  0 },
	{ API_CHAT,
	  "{\"model\":\"m\",\"messages\":[{\"role\":\"system\",\"content\":\"d\"}]}",
	  "{\"model\":\"up/m\",\"messages\":[{\"role\":\"system\",\"content\":\"P\"}]}",
	  { UP, .system_rule = API_SYSTEM_FIXED, .system = SLICE_INIT("P") },
	  ADJUST_BIT(ADJUST_SYSTEM_FIXED),
	  false,
	  0 },
	/* who asks */
	{ API_MESSAGES,
	  API_M(",\"metadata\":{\"user_id\":\"u\"}"),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U("") "],\"metadata\":{}}",
	  { UP, .user_dropped = true },
	  ADJUST_BIT(ADJUST_USER_ID_DROPPED),
	  false,
	  9 },
	{ API_MESSAGES,
	  API_M(",\"metadata\":{\"a\":1,\"user_id\":\"u\",\"b\":2}"),
	  "{\"model\":\"up/m\",\"max_tokens\":9,\"messages\":[" U(
		  "") "],\"metadata\":{\"a\":1,\"b\":2}}",
	  { UP, .user_dropped = true },
	  ADJUST_BIT(ADJUST_USER_ID_DROPPED),
	  false,
	  9 },
	{ API_CHAT,
	  "{\"user\":\"u\",\"safety_identifier\":\"s\",\"model\":\"m\",\"messages\":[" U("") "]}",
	  "{\"store\":false,\"max_tokens\":4,\"model\":\"up/m\",\"messages\":[" U("") "]}",
	  { UP, .user_dropped = true, .store_never = true, .tokens_max = 4 },
	  ADJUST_BIT(ADJUST_USER_ID_DROPPED),
	  false,
	  4 },
	{ API_CHAT,
	  API_C(",\"user\":\"u\""),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "]}",
	  { UP, .user_dropped = true },
	  ADJUST_BIT(ADJUST_USER_ID_DROPPED),
	  false,
	  0 },
	{ API_CHAT,
	  API_C(",\"user\":null"),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "],\"user\":null}",
	  { UP, .user_dropped = true },
	  0,
	  false,
	  0 },
	/* members of a profile */
	{ API_CHAT,
	  API_C(",\"reasoning_effort\":\"low\""),
	  "{ \"a\":[1, 2],\"model\":\"up/m\",\"messages\":[" U(
		  "") "],\"reasoning_effort\":\"low\"}",
	  { UP, .body = SLICE_INIT("\"reasoning_effort\":\"high\", \"a\":[1, 2]") },
	  0,
	  false,
	  0 },
	{ API_CHAT,
	  API_C(",\"A\":1"),
	  "{\"model\":\"up/m\",\"messages\":[" U("") "],\"A\":1}",
	  { UP, .body = SLICE_INIT("\"a\":2") },
	  0,
	  false,
	  0 },
};

static void only_what_is_changed_differs(void **state)
{
	struct mcp_edits edits;
	struct api_changed changed;
	struct api_reading r, again;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(edit_rows); i++) {
		const struct edit_row *row = &edit_rows[i];
		api_rig_read(&r, row->api, row->body);
		mcp_edits_init(&edits, r.request.body, &r.arena);
		assert_int_equal(api_edit_make(&edits, &r.request, &row->changes, &changed),
				 ERR_OK);
		const struct slice text = mcp_edits_flat(&edits, &r.arena);
		assert_slice(text, row->expected);
		if (changed.adjustments != row->adjustments)
			fail_msg("%s: adjustments %llx", row->body,
				 (unsigned long long)changed.adjustments);
		assert_int_equal(changed.store_disabled, row->store_disabled);
		assert_int_equal(changed.tokens, row->tokens);
		api_rig_begin(&again, row->api, text);
		assert_int_equal(again.err, ERR_OK);
		api_rig_end(&again);
		api_rig_end(&r);
	}
}

static void a_profile_may_have_many_members(void **state)
{
	char body[4096];
	size_t len = 0;
	struct mcp_edits edits;
	struct api_changed changed;
	struct api_reading r, again;

	(void)state;
	for (int i = 0; i < 2 * API_NAMES_MAX + 1; i++)
		len += (size_t)snprintf(body + len, sizeof(body) - len, "%s\"p%d\":%d",
					i == 0 ? "" : ",", i, i);
	const struct api_changes changes = { UP, .body = slice_of(body, len) };
	api_rig_read(&r, API_CHAT, API_C(",\"p0\":7,\"p128\":8"));
	mcp_edits_init(&edits, r.request.body, &r.arena);
	assert_int_equal(api_edit_make(&edits, &r.request, &changes, &changed), ERR_OK);
	const struct slice text = mcp_edits_flat(&edits, &r.arena);
	api_rig_begin(&again, API_CHAT, text);
	assert_int_equal(again.err, ERR_OK);
	assert_slice(json_loose_member(text, "p0"), "7");
	assert_slice(json_loose_member(text, "p64"), "64");
	assert_slice(json_loose_member(text, "p127"), "127");
	assert_slice(json_loose_member(text, "p128"), "8");
	api_rig_end(&again);
	api_rig_end(&r);
}

static void memory_that_is_exhausted_is_said(void **state)
{
	const struct api_changes changes = { UP, .tokens_max = 3, .body = SLICE_INIT("\"a\":1") };
	struct mcp_edits edits;
	struct api_changed changed;
	struct api_reading r;
	size_t fails = 0;

	(void)state;
	for (size_t cap = 0; cap <= 4096; cap += 8) {
		struct arena small;
		api_rig_read(&r, API_CHAT, API_C(""));
		arena_init(&small, &r.pool, cap);
		mcp_edits_init(&edits, r.request.body, &small);
		const enum err err = api_edit_make(&edits, &r.request, &changes, &changed);
		fails += err != ERR_OK;
		assert_true(err == ERR_OK || err == ERR_BUSY);
		assert_true(err == ERR_OK || cap < 4096);
		arena_give(&small);
		api_rig_end(&r);
	}
	assert_int_not_equal(fails, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_changed_differs),
		cmocka_unit_test(a_profile_may_have_many_members),
		cmocka_unit_test(memory_that_is_exhausted_is_said),
	};

	return cmocka_run_group_tests_name("api_edit", tests, NULL, NULL);
}
