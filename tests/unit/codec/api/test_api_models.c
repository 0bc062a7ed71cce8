/* Lists of models in the shape of either API. */
#include "codec/api/api_models.h"

#include "tests/unit/codec/api/api_rig.h"

static const struct api_model models[] = {
	{ .id = SLICE_INIT("anthropic/a"),
	  .created_s = 1709164799,
	  .input_max = 200000,
	  .output_max = 8192 },
	{ .id = SLICE_INIT("b"),
	  .name = SLICE_INIT("B \"1\""),
	  .owner = SLICE_INIT("openai"),
	  .created_s = 7 },
	{ .id = SLICE_INIT("c") },
	{ .id = SLICE_INIT("d") },
};

enum { COUNT = COUNT_OF(models) };

struct writing {
	struct arena_pool pool;
	struct arena arena;
	struct gather g;
};

static void begin(struct writing *w)
{
	*w = (struct writing){ .pool = { .keep_max = 4 } };
	arena_init(&w->arena, &w->pool, 1 << 20);
	gather_init(&w->g, &w->arena);
}

static void end(struct writing *w, const char *expected)
{
	assert_int_equal(gather_done(&w->g), ERR_OK);
	assert_slice(gather_flat(&w->g, &w->arena), expected);
	arena_give(&w->arena);
	arena_pool_fini(&w->pool);
}

static void a_list_has_all_that_clients_ask_for(void **state)
{
	const struct api_models_page two = { 0, 2, true }, none = { 0, 0, false };
	struct writing w;

	(void)state;
	begin(&w);
	api_models_write(&w.g, API_MODELS_OPENAI, models, &two);
	end(&w, "{\"object\":\"list\",\"data\":[{\"id\":\"anthropic/"
		"a\",\"object\":\"model\",\"created\":1709164799,"
		"\"owned_by\":\"sluice\"},{\"id\":\"b\",\"object\":\"model\",\"created\":7,\"owned_"
		"by\":\"openai\"}]}");
	begin(&w);
	api_models_write(&w.g, API_MODELS_ANTHROPIC, models, &two);
	end(&w, "{\"data\":[{\"type\":\"model\",\"id\":\"anthropic/"
		"a\",\"display_name\":\"anthropic/a\",\"created_at\":"
		"\"2024-02-28T23:59:59Z\",\"lifecycle\":\"active\",\"max_input_tokens\":200000,"
		"\"max_tokens\":8192},"
		"{\"type\":\"model\",\"id\":\"b\",\"display_name\":\"B \\\"1\\\"\",\"created_at\":"
		"\"1970-01-01T00:00:07Z\",\"lifecycle\":\"active\"}],\"has_more\":true,\"first_"
		"id\":\"anthropic/a\","
		"\"last_id\":\"b\"}");
	begin(&w);
	api_models_write(&w.g, API_MODELS_ANTHROPIC, models, &none);
	end(&w, "{\"data\":[],\"has_more\":false,\"first_id\":null,\"last_id\":null}");
	begin(&w);
	api_models_write(&w.g, API_MODELS_OPENAI, models, &none);
	end(&w, "{\"object\":\"list\",\"data\":[]}");
}

static const struct page_row {
	const char *query; /* NULL: none */
	size_t from, count;
	bool more;
	const char *wrong; /* NULL: nothing */
} page_rows[] = {
	{ NULL, 0, COUNT, false, NULL },
	{ "", 0, COUNT, false, NULL },
	{ "limit=1000", 0, COUNT, false, NULL },
	{ "beta=true&limit=2", 0, 2, true, NULL },
	{ "limit=4", 0, 4, false, NULL },
	{ "after_id=anthropic%2Fa&limit=2", 1, 2, true, NULL },
	{ "after_id=anthropic/a", 1, 3, false, NULL },
	{ "after_id=d", 4, 0, false, NULL },
	{ "before_id=d&limit=2", 1, 2, true, NULL },
	{ "before_id=b", 0, 1, false, NULL },
	{ "before_id=anthropic%2fa", 0, 0, false, NULL },
	{ "after_id=c&before_id=b", 1, 0, false, NULL },
	{ "limit=0", 0, 0, false, "limit" },
	{ "limit=1001", 0, 0, false, "limit" },
	{ "limit=x", 0, 0, false, "limit" },
	{ "after_id=z", 0, 0, false, "after_id" },
	{ "before_id=%zz", 0, 0, false, "before_id" },
};

static void anthropics_lists_have_pages(void **state)
{
	struct api_models_page page;
	const char *wrong = NULL;
	struct writing w;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(page_rows); i++) {
		const struct page_row *row = &page_rows[i];
		begin(&w);
		const bool found = api_models_find(API_MODELS_ANTHROPIC, slice_str(row->query),
						   models, COUNT, &w.arena, &page, &wrong);
		if (found != (row->wrong == NULL))
			fail_msg("%s", row->query);
		if (found) {
			assert_int_equal(page.from, row->from);
			assert_int_equal(page.count, row->count);
			assert_int_equal(page.more, row->more);
		} else {
			assert_string_equal(wrong, row->wrong);
		}
		assert_true(api_models_find(API_MODELS_OPENAI, slice_str(row->query), models, COUNT,
					    &w.arena, &page, &wrong));
		assert_int_equal(page.count, COUNT);
		end(&w, "");
	}
}

static void an_id_may_be_escaped(void **state)
{
	struct writing w;

	(void)state;
	begin(&w);
	assert_slice(api_model_id(SLICE("a%2Fb%2fc%"), &w.arena), "a/b/c%");
	assert_slice(api_model_id(SLICE("a/b%2"), &w.arena), "a/b%2");
	assert_slice(api_model_id(SLICE(""), &w.arena), "");
	end(&w, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_has_all_that_clients_ask_for),
		cmocka_unit_test(anthropics_lists_have_pages),
		cmocka_unit_test(an_id_may_be_escaped),
	};

	return cmocka_run_group_tests_name("api_models", tests, NULL, NULL);
}
