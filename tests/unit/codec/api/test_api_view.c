/* Policy, limits and routing get the figures of a request as those of any other. */
#include "codec/api/api_view.h"

#include "tests/unit/codec/api/api_rig.h"

#include <math.h>

static void see(struct api_reading *r, enum api api, const char *body, struct sampling_request *out)
{
	api_rig_read(r, api, body);
	assert_int_equal(api_view_make(&r->request, 4096, &r->arena, out), ERR_OK);
}

static uint64_t media_bytes(const struct sampling_request *view, enum block_type type)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < view->block_count; i++)
		if (view->blocks[i].type == type)
			bytes += view->blocks[i].media.data.len;
	return bytes;
}

static void figures_are_the_requests(void **state)
{
	struct sampling_request view;
	struct api_reading r;

	(void)state;
	see(&r, API_CHAT,
	    "{\"model\":\"a\\u002fb\",\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{"
	    "\"role\":\"user\",\"content\":["
	    "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:,AAAA\"}},{\"type\":\"image_"
	    "url\",\"image_url\":\"data:,B\"},"
	    "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"CCC\"}},{\"type\":\"text\","
	    "\"text\":\"x\"}]}],"
	    "\"user\":\"u\",\"safety_identifier\":\"i\"}",
	    &view);
	assert_int_equal(view.message_count, 2);
	assert_int_equal(view.block_count, 5);
	assert_int_equal(view.messages[0].count, 5);
	assert_int_equal(view.images, 2);
	assert_int_equal(view.audios, 1);
	assert_int_equal(media_bytes(&view, BLOCK_IMAGE), r.request.image_bytes);
	assert_int_equal(media_bytes(&view, BLOCK_AUDIO), 3);
	assert_slice(view.system, "s");
	assert_slice(view.user_id, "i");
	assert_int_equal(view.prefer.hint_count, 1);
	assert_slice(view.prefer.hints[0], "a\\u002fb");
	assert_true(isnan(view.prefer.cost));
	assert_int_equal(view.max_tokens, 4096);
	assert_false(view.tools_present);
	api_rig_end(&r);
}

static void bounds_are_the_callers(void **state)
{
	struct sampling_request view;
	struct api_reading r;

	(void)state;
	see(&r, API_MESSAGES, API_M(",\"system\":[{\"type\":\"text\"}]"), &view);
	assert_int_equal(view.max_tokens, 9);
	assert_slice(view.system, "[{\"type\":\"text\"}]");
	assert_true(slice_absent(view.user_id));
	api_rig_end(&r);
	see(&r, API_CHAT, API_C(",\"max_tokens\":99999999999999999999"), &view);
	assert_true(view.max_tokens == INT64_MAX);
	assert_true(slice_absent(view.system));
	api_rig_end(&r);
}

static void tools_of_every_kind_are_tools(void **state)
{
	struct sampling_request view;
	struct api_reading r;

	(void)state;
	see(&r, API_MESSAGES,
	    API_M(",\"tools\":[{\"name\":\"a\",\"input_schema\":{\"x\":1}},{\"type\":\"web_search_"
		  "1\"},{}]"),
	    &view);
	assert_true(view.tools_present);
	assert_int_equal(view.tool_count, 3);
	assert_slice(view.tools[0].name, "a");
	assert_slice(view.tools[0].schema, "{\"x\":1}");
	assert_slice(view.tools[1].name, "web_search_1");
	assert_slice(view.tools[1].schema, "{}");
	assert_slice(view.tools[2].name, "");
	api_rig_end(&r);
}

static const struct mode_row {
	enum api api;
	const char *choice;
	enum tool_mode mode;
} mode_rows[] = {
	{ API_MESSAGES, "null", TOOL_MODE_DEFAULT },
	{ API_MESSAGES, "{\"type\":\"auto\"}", TOOL_MODE_AUTO },
	{ API_MESSAGES, "{\"type\":\"any\"}", TOOL_MODE_REQUIRED },
	{ API_MESSAGES, "{\"type\":\"tool\",\"name\":\"a\"}", TOOL_MODE_REQUIRED },
	{ API_MESSAGES, "{\"type\":\"none\"}", TOOL_MODE_NONE },
	{ API_CHAT, "\"auto\"", TOOL_MODE_AUTO },
	{ API_CHAT, "\"required\"", TOOL_MODE_REQUIRED },
	{ API_CHAT, "\"n\\u006fne\"", TOOL_MODE_NONE },
	{ API_CHAT, "{\"type\":\"function\",\"function\":{\"name\":\"f\"}}", TOOL_MODE_REQUIRED },
	{ API_CHAT, "{\"type\":\"allowed_tools\",\"allowed_tools\":{\"mode\":\"required\"}}",
	  TOOL_MODE_REQUIRED },
	{ API_CHAT, "{\"type\":\"allowed_tools\",\"mode\":\"auto\"}", TOOL_MODE_AUTO },
	{ API_CHAT, "7", TOOL_MODE_DEFAULT },
};

static void a_choice_of_tools_is_one_in_both_apis(void **state)
{
	char body[512];
	struct sampling_request view;
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(mode_rows); i++) {
		(void)snprintf(body, sizeof(body),
			       mode_rows[i].api == API_CHAT ? API_C(",\"tool_choice\":%s")
							    : API_M(",\"tool_choice\":%s"),
			       mode_rows[i].choice);
		see(&r, mode_rows[i].api, body, &view);
		if (view.tool_mode != mode_rows[i].mode)
			fail_msg("%s: %d", mode_rows[i].choice, (int)view.tool_mode);
		api_rig_end(&r);
	}
}

static void calls_of_the_history_are_turns(void **state)
{
#define CALLED "{\"role\":\"user\",\"content\":\"x\"},"
	static const struct {
		enum api api;
		const char *messages;
		uint32_t turns;
		uint32_t message;   /* the last turn's */
		const char *ids[3]; /* of that turn; NULL: no more */
	} rows[] = {
		{ API_MESSAGES,
		  CALLED "{\"role\":\"assistant\",\"content\":\"x\"}",
		  0,
		  0,
		  { NULL } },
		{ API_MESSAGES,
		  CALLED "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"id\":\"no\"},{"
			 "\"type\":"
			 "\"tool_use\",\"id\":\"a\"},{\"id\":\"b\",\"type\":\"tool_use\"}]}",
		  1,
		  1,
		  { "a", "b" } },
		{ API_MESSAGES,
		  "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\"}]}"
		  "," CALLED
		  "{\"role\":\"user\",\"content\":[{\"type\":\"tool_use\",\"id\":\"a\"}]}",
		  0,
		  0,
		  { NULL } },
		{ API_CHAT,
		  CALLED "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":\"a\"}]}," CALLED
			 "{\"role\":\"assistant\",\"tool_calls\":[{\"id\":7},{\"id\":\"b\"}]}",
		  2,
		  3,
		  { "b" } },
		{ API_CHAT, CALLED "{\"role\":\"assistant\",\"tool_calls\":{}}", 0, 0, { NULL } },
	};
	char body[1024];
	struct api_reading r;
	struct sampling_request view;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(body, sizeof(body),
			       "{\"model\":\"m\",\"max_tokens\":9,\"messages\":[%s]}",
			       rows[i].messages);
		api_rig_read(&r, rows[i].api, body);
		assert_int_equal(api_view_make(&r.request, 9, &r.arena, &view), ERR_OK);
		const uint32_t blocks = view.block_count;
		assert_int_equal(api_view_calls(&r.request, &r.arena, &view), ERR_OK);
		assert_int_equal(view.block_count, blocks); /* policy counts what was sent */
		assert_int_equal(view.call_turns, rows[i].turns);
		const struct message *turn = &view.messages[rows[i].message];
		for (uint32_t j = 0; rows[i].ids[j] != NULL; j++) {
			assert_true(turn->assistant && j < turn->count);
			assert_slice(view.blocks[turn->first + j].use.id, rows[i].ids[j]);
		}
		api_rig_end(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_are_the_requests),
		cmocka_unit_test(bounds_are_the_callers),
		cmocka_unit_test(tools_of_every_kind_are_tools),
		cmocka_unit_test(a_choice_of_tools_is_one_in_both_apis),
		cmocka_unit_test(calls_of_the_history_are_turns),
	};

	return cmocka_run_group_tests_name("api_view", tests, NULL, NULL);
}
