/* What an answer says of its price beside its tokens, whole or in events. */
#include "tests/unit/codec/api/api_rig.h"

#include "codec/api/api_stream.h"

static const struct paid_row {
	enum api api;
	const char *body;
	const char *tier, *speed; /* NULL: not said */
	bool uses_said;
	uint64_t uses;
} paid_rows[] = {
	{ API_MESSAGES, "{\"usage\":{\"input_tokens\":1,\"service_tier\":\"priority\"}}",
	  "priority", NULL, true, 0 },
	{ API_MESSAGES,
	  "{\"service_tier\":\"flex\",\"usage\":{\"speed\":\"fast\",\"server_tool_use\":"
	  "{\"web_search_requests\":2,\"web_fetch_requests\":3}}}",
	  NULL, "fast", true, 5 },
	{ API_MESSAGES, "{\"usage\":{\"server_tool_use\":null}}", NULL, NULL, true, 0 },
	{ API_MESSAGES, "{\"usage\":{\"server_tool_use\":{\"x\":-1,\"y\":\"4\",\"z\":[1]}}}", NULL,
	  NULL, true, 0 },
	{ API_MESSAGES, "{\"usage\":{\"server_tool_use\":{\"x\":1e99}}}", NULL, NULL, true,
	  1 << 30 },
	{ API_MESSAGES, "{\"usage\":7}", NULL, NULL, false, 0 },
	{ API_MESSAGES,
	  "{\"usage\":{\"service_tier\":\"a-tier-of-more-bytes-than-32-in-its-name\"}}", NULL, NULL,
	  true, 0 },
	{ API_MESSAGES, "[]", NULL, NULL, false, 0 },
	{ API_MESSAGES, "no JSON", NULL, NULL, false, 0 },
	{ API_MESSAGES, "", NULL, NULL, false, 0 },
	{ API_CHAT, "{\"service_tier\":\"flex\",\"usage\":{\"service_tier\":\"x\"}}", "flex", NULL,
	  false, 0 },
	{ API_CHAT, "{\"service_tier\":null}", NULL, NULL, false, 0 },
};

static void assert_paid(const struct api_paid *paid, const struct paid_row *row)
{
	assert_slice(api_said_text(&paid->tier), row->tier);
	assert_slice(api_said_text(&paid->speed), row->speed);
	assert_int_equal(paid->uses_said, row->uses_said);
	assert_int_equal(paid->uses, row->uses);
}

static void an_answer_says_its_tier_and_uses(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(paid_rows); i++) {
		struct api_paid paid = { .uses_said = false };
		api_paid_answer(&paid, paid_rows[i].api, slice_str(paid_rows[i].body));
		assert_paid(&paid, &paid_rows[i]);
	}
}

#define EVENT(name, data) "event: " name "\ndata: {\"type\":\"" name "\"," data "}\n\n"

static const struct paid_row stream_rows[] = {
	{ API_MESSAGES,
	  EVENT("message_start", "\"message\":{\"model\":\"m\",\"usage\":{\"service_tier\":"
				 "\"standard\",\"server_tool_use\":"
				 "{\"web_search_requests\":9}}}"),
	  "standard", NULL, false, 0 },
	{ API_MESSAGES,
	  EVENT("message_start", "\"message\":{\"usage\":{\"service_tier\":\"priority\"}}") EVENT(
		  "message_delta",
		  "\"delta\":{},\"usage\":{\"server_tool_use\":{\"web_search_requests\":1}}")
		  EVENT("message_delta",
			"\"delta\":{},\"usage\":{\"server_tool_use\":{\"web_search_requests\":2}}"),
	  "priority", NULL, true, 2 },
	{ API_CHAT,
	  "data: {\"choices\":[{\"delta\":{}}]}\n\ndata: "
	  "{\"service_tier\":\"priority\",\"choices\":[]}\n\n",
	  "priority", NULL, false, 0 },
	{ API_CHAT, "data: {\"choices\":[],\"usage\":{}}\n\n", NULL, NULL, false, 0 },
};

static void a_stream_says_them_in_its_events(void **state)
{
	struct arena_pool pool = { .keep_max = 4 };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(stream_rows); i++) {
		struct api_paid paid = { .uses_said = false };
		struct api_stream s;
		struct arena arena;
		struct slice piece;
		arena_init(&arena, &pool, 1 << 20);
		api_stream_init(&s, stream_rows[i].api, SLICE("\"mine\""), false, 1 << 16, &arena);
		s.paid = &paid;
		api_stream_feed(&s, slice_str(stream_rows[i].body));
		while (api_stream_next(&s, &piece) == API_STREAM_PIECE)
			continue;
		assert_paid(&paid, &stream_rows[i]);
		arena_give(&arena);
	}
	arena_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_says_its_tier_and_uses),
		cmocka_unit_test(a_stream_says_them_in_its_events),
	};

	return cmocka_run_group_tests_name("api_paid", tests, NULL, NULL);
}
