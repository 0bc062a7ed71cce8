/* What must never pass unread is refused at every place, with the place's name. */
#include "tests/unit/codec/api/api_rig.h"

#include "codec/api/api_grants.h"

static const struct refuse_row {
	enum api api;
	const char *body;
	enum err err;
	const char *path;
} refuse_rows[] = {
	/* no JSON, or read in two ways */
	{ API_MESSAGES, "", ERR_JSON, "" },
	{ API_MESSAGES, "{", ERR_JSON, NULL },
	{ API_MESSAGES, "[]", ERR_FIELD, "" },
	{ API_MESSAGES, API_M("") "x", ERR_JSON, NULL },
	{ API_MESSAGES, API_M(",\"model\":\"other\""), ERR_DUPLICATE_KEY, NULL },
	{ API_MESSAGES, API_M(",\"mod\\u0065l\":\"other\""), ERR_DUPLICATE_KEY, NULL },
	{ API_MESSAGES, API_M(",\"x\":{\"a\":1,\"\\u0061\":2}"), ERR_DUPLICATE_KEY, NULL },
	{ API_MESSAGES, API_M(",\"x\":\"\\ud800\""), ERR_JSON, NULL },
	{ API_MESSAGES, API_M(",\"x\":\"\xff\""), ERR_JSON, NULL },
	/* names in another case */
	{ API_MESSAGES, API_M(",\"Model\":\"other\""), ERR_FIELD, "model" },
	{ API_MESSAGES, API_M(",\"MAX_TOKENS\":1"), ERR_FIELD, "max_tokens" },
	{ API_MESSAGES,
	  API_M(",\"me\xc5\xbf\xc5\xbf"
		"ages\":[]"),
	  ERR_FIELD, "messages" },
	{ API_MESSAGES, API_M(",\"too\\u006cS\":[]"), ERR_FIELD, "tools" },
	{ API_CHAT, API_C(",\"\xc5\xbftore\":true"), ERR_FIELD, "store" },
	{ API_CHAT, API_C(",\"\\u017ftore\":true"), ERR_FIELD, "store" },
	{ API_CHAT,
	  API_C(",\"max_to\xe2\x84\xaa"
		"ens\":1"),
	  ERR_FIELD, "max_tokens" },
	{ API_CHAT, API_C(",\"max_to\\u212aens\":1"), ERR_FIELD, "max_tokens" },
	{ API_CHAT, API_C(",\"Route\":1"), ERR_FIELD, "route" },
	{ API_CHAT, API_C(",\"stream_options\":{\"Include_Usage\":true}"), ERR_FIELD,
	  "stream_options.include_usage" },
	{ API_CHAT, API_C(",\"tools\":[{\"Type\":\"web_search\"}]"), ERR_FIELD, "tools[0].type" },
	{ API_MESSAGES, API_MB("{\"type\":\"image\",\"Source\":{}}"), ERR_FIELD,
	  "messages.0.content.0.source" },
	/* types */
	{ API_MESSAGES, API_M(",\"stream\":\"true\""), ERR_FIELD, "stream" },
	{ API_MESSAGES, API_M(",\"stream\":1"), ERR_FIELD, "stream" },
	{ API_CHAT, API_C(",\"n\":0"), ERR_FIELD, "n" },
	{ API_CHAT, API_C(",\"n\":\"2\""), ERR_FIELD, "n" },
	{ API_CHAT, API_C(",\"store\":\"false\""), ERR_FIELD, "store" },
	{ API_CHAT, API_C(",\"max_tokens\":1.5"), ERR_MAX_TOKENS, "max_tokens" },
	{ API_CHAT, API_C(",\"max_completion_tokens\":-1"), ERR_MAX_TOKENS,
	  "max_completion_tokens" },
	{ API_CHAT, API_C(",\"service_tier\":[]"), ERR_FIELD, "service_tier" },
	{ API_MESSAGES, "{\"model\":\"m\",\"max_tokens\":0,\"messages\":[{\"role\":\"user\"}]}",
	  ERR_MAX_TOKENS, "max_tokens" },
	{ API_MESSAGES, "{\"model\":7,\"max_tokens\":1,\"messages\":[]}", ERR_FIELD, "model" },
	{ API_MESSAGES, "{\"model\":\"m\",\"max_tokens\":1,\"messages\":{}}", ERR_MESSAGES,
	  "messages" },
	{ API_MESSAGES, "{\"model\":\"m\",\"max_tokens\":1,\"messages\":[3]}", ERR_MESSAGES,
	  "messages.0" },
	{ API_CHAT, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"},3]}", ERR_MESSAGES,
	  "messages[1]" },
	/* what has to be there */
	{ API_MESSAGES, "{}", ERR_FIELD, "model" },
	{ API_MESSAGES, "{\"model\":null}", ERR_FIELD, "model" },
	{ API_MESSAGES, "{\"model\":\"\"}", ERR_FIELD, "model" },
	{ API_MESSAGES, "{\"model\":\"m\"}", ERR_MESSAGES, "messages" },
	{ API_MESSAGES, "{\"model\":\"m\",\"messages\":[]}", ERR_MESSAGES_EMPTY, "messages" },
	{ API_MESSAGES, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}",
	  ERR_MAX_TOKENS, "max_tokens" },
/* routes */
#define ROUTE(name)                                                   \
	{ API_MESSAGES, API_M(",\"" name "\":1"), ERR_POLICY, name }, \
	{                                                             \
		API_CHAT, API_C(",\"" name "\":[]"), ERR_POLICY, name \
	}
	ROUTE("models"),
	ROUTE("route"),
	ROUTE("provider"),
	ROUTE("plugins"),
	ROUTE("transforms"),
	ROUTE("fallbacks"),
	ROUTE("api_base"),
	ROUTE("base_url"),
	ROUTE("api_key"),
	ROUTE("user_config"),
	ROUTE("model_list"),
	ROUTE("extra_headers"),
	ROUTE("extra_body"),
	ROUTE("mock_response"),
	ROUTE("best_of"),
	ROUTE("use_beam_search"),
	ROUTE("prompt_logprobs"),
	ROUTE("chat_template"),
	{ API_CHAT, API_C(",\"rout\\u0065\":1"), ERR_POLICY, "route" },
	{ API_MESSAGES,
	  API_M(",\"tools\":[{\"type\":\"advisor_20260301\",\"name\":\"a\",\"model\":\"big\"}]"),
	  ERR_POLICY, "tools.0.model" },
	/* objects of the account */
	{ API_MESSAGES, API_M(",\"container\":\"c\""), ERR_POLICY, "container" },
	{ API_CHAT, API_C(",\"previous_response_id\":\"r\""), ERR_POLICY, "previous_response_id" },
	{ API_CHAT, API_C(",\"conversation\":\"r\""), ERR_POLICY, "conversation" },
	{ API_CHAT, API_C(",\"prompt\":{\"id\":\"p\"}"), ERR_POLICY, "prompt" },
	{ API_MESSAGES,
	  API_MB("{\"type\":\"document\",\"source\":{\"type\":\"file\",\"file_id\":\"f\"}}"),
	  ERR_POLICY, "messages.0.content.0.source.file_id" },
	{ API_MESSAGES, API_MB("{\"type\":\"container_upload\",\"file_id\":\"f\"}"), ERR_POLICY,
	  "messages.0.content.0.file_id" },
	{ API_MESSAGES,
	  API_MB("{\"type\":\"tool_result\",\"content\":[{\"type\":\"image\",\"source\":{\"file_"
		 "id\":\"f\"}}]}"),
	  ERR_POLICY, "messages.0.content.0.content.0.source.file_id" },
	{ API_MESSAGES,
	  API_M(",\"system\":[{\"type\":\"document\",\"source\":{\"file_id\":\"f\"}}]"), ERR_POLICY,
	  "system.0.source.file_id" },
	{ API_CHAT, API_CB("{\"type\":\"file\",\"file\":{\"file_id\":\"f\"}}"), ERR_POLICY,
	  "messages[0].content[0].file.file_id" },
	{ API_CHAT,
	  "{\"model\":\"m\",\"messages\":[{\"role\":\"assistant\",\"audio\":{\"id\":\"a\"}}]}",
	  ERR_POLICY, "messages[0].audio" },
	{ API_CHAT, API_C(",\"tools\":[{\"type\":\"file_search\",\"vector_store_ids\":[\"v\"]}]"),
	  ERR_POLICY, "tools[0].vector_store_ids" },
	/* threads */
	{ API_MESSAGES, API_M(",\"thread\":{\"type\":\"create\"}"), ERR_NOT_AVAILABLE, "thread" },
};

static void what_must_not_pass_is_refused_with_its_place(void **state)
{
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(refuse_rows); i++) {
		const struct refuse_row *row = &refuse_rows[i];
		api_rig_begin(&r, row->api, slice_str(row->body));
		if (r.err != row->err || r.fault.err != row->err)
			fail_msg("%s: %s instead of %s", row->body, err_info(r.err)->reason,
				 err_info(row->err)->reason);
		if (row->path != NULL && !slice_eq(r.fault.path, slice_str(row->path)))
			fail_msg("%s: at %.*s instead of %s", row->body, (int)r.fault.path.len,
				 r.fault.path.at, row->path);
		api_rig_end(&r);
	}
}

/* What other readers would not take for a member that is acted on is no business of the gateway. */
static void unknown_members_pass(void **state)
{
	static const char *const more[] = {
		",\"modelx\":1",
		",\"mode\":1",
		",\"rout\":1",
		",\"x\":{\"model\":\"y\",\"route\":1,\"file_id\":2}",
		",\"m\xc3\xb6xel\":1",
		",\"tool_choice\":{\"Type\":1}",
		",\"models\":null,\"route\":null",
		",\"metadata\":{\"x\":1}",
		",\"\":1",
	};
	char body[512];
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < 2 * COUNT_OF(more); i++) {
		(void)snprintf(body, sizeof(body), i % 2 == 0 ? API_M("%s") : API_C("%s"),
			       more[i / 2]);
		api_rig_read(&r, i % 2 == 0 ? API_MESSAGES : API_CHAT, body);
		assert_int_equal(r.request.tool_count, 0);
		api_rig_end(&r);
	}
}

/* `front`, and `item` so many times: refused with that error. */
static void assert_too_many(const char *front, const char *item, size_t count, enum err err)
{
	const size_t len = strlen(front), each = strlen(item);
	char *many = malloc(len + count * each);
	struct api_reading r;

	assert_non_null(many);
	(void)memcpy(many, front, len);
	for (size_t i = 0; i < count; i++)
		(void)memcpy(many + len + i * each, item, each);
	api_rig_begin(&r, API_CHAT, slice_of(many, len + count * each));
	assert_int_equal(r.err, err);
	api_rig_end(&r);
	free(many);
}

static void depth_and_counts_are_bounded(void **state)
{
	enum { DEEP = JSON_DEPTH_MAX + 1 };
	char body[DEEP * 2 + 128];
	struct api_reading r;

	(void)state;
	size_t len = (size_t)snprintf(body, sizeof(body), "{\"x\":");
	for (size_t i = 0; i < DEEP; i++)
		body[len++] = '[';
	api_rig_begin(&r, API_CHAT, slice_of(body, len));
	assert_int_equal(r.err, ERR_TOO_DEEP);
	api_rig_end(&r);
	/* content in content, as deep as it goes */
	len = (size_t)snprintf(body, sizeof(body), "{\"messages\":");
	for (size_t i = 0; i < DEEP / 2; i++)
		len += (size_t)snprintf(body + len, sizeof(body) - len, "[");
	api_rig_begin(&r, API_CHAT, slice_of(body, len));
	assert_int_not_equal(r.err, ERR_OK);
	api_rig_end(&r);

	assert_too_many("{\"tools\":[", "{},", API_TOOLS_MAX + 1, ERR_TOOLS_TOO_MANY);
	assert_too_many("{\"messages\":[", "{},", API_MESSAGES_MAX + 1, ERR_MESSAGES);
	assert_too_many("{\"messages\":[{\"content\":[", "{},", API_BLOCKS_MAX + 1, ERR_CONTENT);
}

static void memory_that_is_exhausted_is_said(void **state)
{
	struct api_reading r;
	size_t fails = 0;

	(void)state;
	for (size_t n = 1;; n++) {
		r = (struct api_reading){ .work = json_work_new(codec_set_best()) };
		r.pool.fail_next = n;
		arena_init(&r.arena, &r.pool, 1 << 22);
		r.err = api_request_read(API_CHAT,
					 slice_str(API_C(",\"tools\":[{\"type\":\"x\"}]")), r.work,
					 &r.arena, &r.request, &r.fault);
		const bool done = r.err == ERR_OK;
		api_rig_end(&r);
		if (done)
			break;
		assert_int_equal(r.err, ERR_BUSY);
		fails++;
	}
	assert_int_not_equal(fails, 0);
}

/* ---- what a plan permits ---- */

static const struct grant_row {
	enum api api;
	const char *body;
	const char *path; /* of what is refused; NULL: nothing is */
	uint32_t tier, speed;
} grant_rows[] = {
	{ API_MESSAGES, API_M(""), NULL, API_TIER_USUAL, API_TIER_USUAL },
	{ API_MESSAGES,
	  API_M(",\"tools\":[{\"name\":\"a\"},{\"type\":\"web_search_20250305\",\"name\":\"w\"}]"),
	  NULL, API_TIER_USUAL, API_TIER_USUAL },
	{ API_MESSAGES,
	  API_M(",\"tools\":[{\"name\":\"a\"},{\"type\":\"web_fetch_20250910\",\"name\":\"w\"}]"),
	  "tools.1", 0, 0 },
	{ API_CHAT, API_C(",\"audio\":{\"voice\":\"x\"}"), "audio", 0, 0 },
	{ API_CHAT, API_C(",\"service_tier\":\"flex\""), NULL, 0, API_TIER_USUAL },
	{ API_CHAT, API_C(",\"service_tier\":\"pr\\u0069ority\""), NULL, 1, API_TIER_USUAL },
	{ API_CHAT, API_C(",\"service_tier\":\"auto\""), NULL, API_TIER_USUAL, API_TIER_USUAL },
	{ API_CHAT, API_C(",\"service_tier\":\"scale\""), "service_tier", 0, 0 },
	{ API_MESSAGES, API_M(",\"service_tier\":\"standard_only\",\"speed\":\"fast\""), NULL,
	  API_TIER_USUAL, 2 },
	{ API_MESSAGES, API_M(",\"speed\":\"warp\""), "speed", 0, 0 },
	{ API_CHAT, API_C(",\"n\":2"), NULL, API_TIER_USUAL, API_TIER_USUAL },
	{ API_CHAT, API_C(",\"n\":3"), "n", 0, 0 },
	{ API_CHAT,
	  API_CB("{\"type\":\"image_url\",\"image_url\":{\"url\":\"http://169.254.169.254/\"}}"),
	  "messages[0].content[0].image_url.url", 0, 0 },
};

static void what_costs_extra_is_the_plans_to_permit(void **state)
{
	static const struct slice tools[] = { SLICE_INIT("web_search") };
	static const struct slice tiers[] = { SLICE_INIT("flex"), SLICE_INIT("priority"),
					      SLICE_INIT("fast") };
	const struct api_grants grants = { tools, 1, tiers, 3, false, 2 };
	struct api_granted granted;
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(grant_rows); i++) {
		const struct grant_row *row = &grant_rows[i];
		api_rig_read(&r, row->api, row->body);
		const enum err err = api_grants_check(&r.request, &grants, &granted, &r.fault);
		if ((err == ERR_OK) != (row->path == NULL))
			fail_msg("%s: %s", row->body, err_info(err)->reason);
		if (err != ERR_OK) {
			assert_int_equal(err, ERR_POLICY);
			assert_slice(r.fault.path, row->path);
			assert_non_null(r.fault.detail);
		} else {
			assert_int_equal(granted.tier, row->tier);
			assert_int_equal(granted.speed, row->speed);
		}
		api_rig_end(&r);
	}
}

/* Names as the settings may write them. */
static void server_tools_are_granted_by_type_date_or_glob(void **state)
{
	static const struct {
		const char *type, *name;
		bool granted;
	} rows[] = {
		{ "web_search_20250305", "web_search_20250305", true },
		{ "web_search_20250305", "web_search", true },
		{ "web_search_2025_08_26", "web_search", true },
		{ "web_search_20250305", "web_search_*", true },
		{ "web_search_20250305", "*", true },
		{ "web_\\u0073earch_20250305", "web_search", true },
		{ "web_search", "web_search", true },
		{ "web_search_20250305", "web", false },
		{ "web_search_20250305", "web_search_2025", false },
		{ "web_search_preview", "web_search", false },
		{ "web_search_preview_2025_03_11", "web_search", false },
		{ "web_search_2025030", "web_search", false },
		{ "Web_search_20250305", "web_search", false },
		{ "_20250305", "", false },
		{ "", "web_search", false },
	};
	struct api_granted granted;
	char body[256];
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct slice name = slice_str(rows[i].name);
		const struct api_grants grants = { .server_tools = &name,
						   .server_tool_count = 1,
						   .n_max = 1 };
		(void)snprintf(body, sizeof(body), API_C(",\"tools\":[{\"type\":\"%s\"}]"),
			       rows[i].type);
		api_rig_read(&r, API_CHAT, body);
		const enum err err = api_grants_check(&r.request, &grants, &granted, &r.fault);
		if ((err == ERR_OK) != rows[i].granted)
			fail_msg("%s, %s: %s", rows[i].type, rows[i].name, err_info(err)->reason);
		api_rig_end(&r);
	}
}

static void uses_of_server_tools_are_counted(void **state)
{
	static const struct slice all[] = { SLICE_INIT("*") };
	static const struct {
		const char *tools;
		uint64_t uses;
		const char *first, *unbounded; /* NULL: none */
	} rows[] = {
		{ "{\"name\":\"a\",\"max_uses\":7}", 0, NULL, NULL },
		{ "{\"type\":\"x\",\"max_uses\":3},{\"name\":\"a\"},{\"type\":\"y\",\"max_uses\":"
		  "4}",
		  7, "tools.0", NULL },
		{ "{\"type\":\"x\",\"max_uses\":3},{\"type\":\"y\"},{\"type\":\"z\"}", 3, "tools.0",
		  "tools.1" },
		{ "{\"type\":\"x\",\"max_uses\":null}", 0, "tools.0", "tools.0" },
		{ "{\"type\":\"x\",\"max_uses\":99999999999999999999},{\"type\":\"x\",\"max_uses\":"
		  "99999999999999999999},{\"type\":\"x\",\"max_uses\":9}",
		  UINT64_MAX, "tools.0", NULL },
	};
	const struct api_grants grants = { .server_tools = all,
					   .server_tool_count = 1,
					   .n_max = 1 };
	struct api_granted granted;
	char body[512];
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)snprintf(body, sizeof(body), API_M(",\"tools\":[%s]"), rows[i].tools);
		api_rig_read(&r, API_MESSAGES, body);
		assert_int_equal(api_grants_check(&r.request, &grants, &granted, &r.fault), ERR_OK);
		assert_true(granted.uses == rows[i].uses);
		assert_slice(granted.server_tool, rows[i].first);
		assert_slice(granted.unbounded, rows[i].unbounded);
		api_rig_end(&r);
	}
}

/* An image by URL counts as one; how long a document is nobody knows. */
static void documents_by_url_are_told_from_images(void **state)
{
	static const struct {
		enum api api;
		const char *body;
		uint32_t urls, documents;
	} rows[] = {
		{ API_MESSAGES,
		  API_MB("{\"type\":\"image\",\"source\":{\"type\":\"url\",\"url\":\"https://x/"
			 "a\"}}"),
		  1, 0 },
		{ API_MESSAGES,
		  API_MB("{\"type\":\"document\",\"source\":{\"type\":\"url\",\"url\":\"https://x/"
			 "a\"}}"),
		  1, 1 },
		{ API_MESSAGES,
		  API_MB("{\"type\":\"novel\",\"source\":{\"type\":\"url\",\"url\":\"https://x/"
			 "a\"}}"),
		  1, 1 },
		{ API_MESSAGES,
		  API_MB("{\"type\":\"tool_result\",\"content\":[{\"type\":\"document\",\"source\":"
			 "{\"url\":"
			 "\"https://x/a\"}},{\"type\":\"image\",\"source\":{\"url\":\"https://x/"
			 "a\"}}]}"),
		  2, 1 },
		{ API_CHAT, API_CB("{\"type\":\"image_url\",\"image_url\":\"https://x/a\"}"), 1,
		  0 },
		{ API_CHAT,
		  API_CB("{\"type\":\"file\",\"file\":{\"file_data\":\"https://x/a\"}},"
			 "{\"type\":\"video_url\",\"video_url\":{\"url\":\"https://x/a\"}}"),
		  2, 2 },
		{ API_CHAT,
		  API_CB("{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:image/"
			 "png;base64,QQ==\"}}"),
		  0, 0 },
	};
	struct api_reading r;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		api_rig_read(&r, rows[i].api, rows[i].body);
		assert_int_equal(r.request.urls, rows[i].urls);
		assert_int_equal(r.request.documents_by_url, rows[i].documents);
		api_rig_end(&r);
	}
}

static void nothing_is_granted_by_default(void **state)
{
	const struct api_grants none = { .n_max = 1 };
	struct api_granted granted;
	struct api_reading r;

	(void)state;
	api_rig_read(&r, API_CHAT, API_C(",\"service_tier\":\"flex\""));
	assert_int_equal(api_grants_check(&r.request, &none, &granted, &r.fault), ERR_POLICY);
	api_rig_end(&r);
	api_rig_read(&r, API_CHAT, API_C(",\"service_tier\":\"default\""));
	assert_int_equal(api_grants_check(&r.request, &none, &granted, &r.fault), ERR_OK);
	api_rig_end(&r);
}

static void thinking_keeps_its_room(void **state)
{
	struct api_reading r;

	(void)state;
	api_rig_read(
		&r, API_MESSAGES,
		"{\"model\":\"m\",\"max_tokens\":4096,\"thinking\":{\"type\":\"enabled\","
		"\"budget_tokens\":2048},\"messages\":[{\"role\":\"user\",\"content\":\"x\"}]}");
	assert_int_equal(api_thinking_check(&r.request, 4096, "plan", &r.arena, &r.fault), ERR_OK);
	assert_int_equal(api_thinking_check(&r.request, 2049, "plan", &r.arena, &r.fault), ERR_OK);
	assert_int_equal(api_thinking_check(&r.request, 2048, "plan", &r.arena, &r.fault),
			 ERR_MAX_TOKENS);
	assert_slice(r.fault.path, "max_tokens");
	assert_string_equal(r.fault.detail,
			    "the plan's maximum of 2048 is not above thinking.budget_tokens");
	api_rig_end(&r);
}

static void output_is_bounded_by_all_that_multiplies_it(void **state)
{
	struct api_reading r;

	(void)state;
	api_rig_read(&r, API_CHAT, API_C(",\"n\":3,\"prediction\":{\"content\":\"0123456789\"}"));
	assert_int_equal(api_output_most(&r.request, 100), 300 + 24 / 4);
	assert_true(api_output_most(&r.request, UINT64_MAX / 2) == UINT64_MAX);
	api_rig_end(&r);
	api_rig_read(&r, API_CHAT, API_C(",\"n\":99999999999999999999"));
	assert_true(api_output_most(&r.request, 1000) == UINT64_MAX);
	api_rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_must_not_pass_is_refused_with_its_place),
		cmocka_unit_test(unknown_members_pass),
		cmocka_unit_test(depth_and_counts_are_bounded),
		cmocka_unit_test(memory_that_is_exhausted_is_said),
		cmocka_unit_test(what_costs_extra_is_the_plans_to_permit),
		cmocka_unit_test(server_tools_are_granted_by_type_date_or_glob),
		cmocka_unit_test(uses_of_server_tools_are_counted),
		cmocka_unit_test(documents_by_url_are_told_from_images),
		cmocka_unit_test(nothing_is_granted_by_default),
		cmocka_unit_test(thinking_keeps_its_room),
		cmocka_unit_test(output_is_bounded_by_all_that_multiplies_it),
	};

	return cmocka_run_group_tests_name("api_refuse", tests, NULL, NULL);
}
