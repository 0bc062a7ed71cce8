/* test_provider_head.c - request line and headers of a call, whole, for each kind of provider. */
#include "gateway/providers/provider_head.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What provider_head makes of an endpoint that is ready, as NUL-terminated text. */
static const char *head_of(const struct provider *provider, struct endpoint *endpoint,
			   const struct provider_call *call, struct arena *arena)
{
	endpoint->head = provider_head_begin(provider, endpoint, arena);
	assert_false(slice_absent(endpoint->head));
	const struct slice head = provider_head(provider, endpoint, call, arena);
	assert_false(slice_absent(head));
	return arena_copy(arena, head).at;
}

static void every_provider_gets_what_its_dialect_and_settings_say(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct provider provider;
		struct endpoint endpoint;
		struct provider_call call;
		const char *head;
	} rows[] = {
		{ "Anthropic",
		  { .dialect = DIALECT_ANTHROPIC, .key_header = "x-api-key: " },
		  { .path = SLICE_INIT(""), .authority = SLICE_INIT("api.anthropic.com") },
		  { .key = SLICE_INIT("secret"),
		    .version = SLICE_INIT("2023-06-01"),
		    .body_bytes = 1234567890 },
		  "POST /v1/messages HTTP/1.1\r\nhost: api.anthropic.com\r\n"
		  "content-type: application/json\r\naccept: application/json\r\n"
		  "accept-encoding: identity\r\n"
		  "anthropic-version: 2023-06-01\r\nx-api-key: secret\r\n"
		  "content-length: 1234567890\r\n\r\n" },
		{ "without a key, with a trace",
		  { .dialect = DIALECT_OPENAI, .key_header = "authorization: Bearer " },
		  { .path = SLICE_INIT("/base"), .authority = SLICE_INIT("[::1]:8000") },
		  { .traceparent =
			    SLICE_INIT("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"),
		    .body_bytes = 2 },
		  "POST /base/chat/completions HTTP/1.1\r\nhost: [::1]:8000\r\n"
		  "content-type: application/json\r\naccept: application/json\r\n"
		  "accept-encoding: identity\r\n"
		  "traceparent: 00-0123456789abcdef0123456789abcdef-0123456789abcdef-01\r\n"
		  "content-length: 2\r\n\r\n" },
		{ "with a query",
		  { .dialect = DIALECT_RESPONSES,
		    .key_header = "api-key: ",
		    .query = SLICE_INIT("?api-version=2024-10-21") },
		  { .path = SLICE_INIT(""), .authority = SLICE_INIT("a.example") },
		  { .key = SLICE_INIT("k"), .body_bytes = 0 },
		  "POST /responses?api-version=2024-10-21 HTTP/1.1\r\nhost: a.example\r\n"
		  "content-type: application/json\r\naccept: application/json\r\n"
		  "accept-encoding: identity\r\n"
		  "api-key: k\r\ncontent-length: 0\r\n\r\n" },
	};
	struct arena_pool pool = { .keep_max = 1 };
	struct arena arena;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct endpoint endpoint = rows[i].endpoint;
		arena_init(&arena, &pool, 1 << 16);
		const char *head = head_of(&rows[i].provider, &endpoint, &rows[i].call, &arena);
		if (strcmp(head, rows[i].head) != 0)
			fail_msg("%s: %s", rows[i].name, head);
		arena_give(&arena);
	}
	arena_pool_fini(&pool);
}

static void a_count_has_a_path_of_its_own(void **state)
{
	(void)state;
	const struct provider provider = {
		.dialect = DIALECT_ANTHROPIC, .key_header = "x-api-key: ", .query = SLICE("?v=1")
	};
	struct endpoint endpoint = { .path = SLICE("/base"), .authority = SLICE("a.example") };
	const struct provider_call call = { .key = SLICE("k"),
					    .version = SLICE("2023-06-01"),
					    .body_bytes = 2 };
	struct arena_pool pool = { .keep_max = 1 };
	struct arena arena;

	arena_init(&arena, &pool, 1 << 16);
	const char *head = head_of(&provider, &endpoint, &call, &arena);
	assert_non_null(strstr(head, "POST /base/v1/messages?v=1 HTTP/1.1\r\n"));
	const struct slice counts = provider_count_head(&provider, &endpoint, &call, &arena);
	assert_true(slice_eq(
		counts,
		SLICE("POST /base/v1/messages/count_tokens?v=1 HTTP/1.1\r\nhost: a.example\r\n"
		      "content-type: application/json\r\naccept: application/json\r\n"
		      "accept-encoding: identity\r\n"
		      "anthropic-version: 2023-06-01\r\nx-api-key: k\r\n"
		      "content-length: 2\r\n\r\n")));
	assert_string_equal(head_of(&provider, &endpoint, &call, &arena), head);
	arena_give(&arena);
	arena_init(&arena, &pool, 16);
	assert_true(slice_absent(provider_count_head(&provider, &endpoint, &call, &arena)));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void without_memory_there_is_none(void **state)
{
	(void)state;
	const struct provider provider = { .dialect = DIALECT_OPENAI };
	const struct endpoint endpoint = { .head = SLICE("POST / HTTP/1.1\r\n") };
	const struct provider_call call = { .body_bytes = 1 };
	struct arena_pool pool = { .keep_max = 1 };
	struct arena arena;

	arena_init(&arena, &pool, 16);
	assert_true(slice_absent(provider_head_begin(&provider, &endpoint, &arena)));
	assert_true(slice_absent(provider_head(&provider, &endpoint, &call, &arena)));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_provider_gets_what_its_dialect_and_settings_say),
		cmocka_unit_test(a_count_has_a_path_of_its_own),
		cmocka_unit_test(without_memory_there_is_none),
	};

	return cmocka_run_group_tests_name("provider_head", tests, NULL, NULL);
}
