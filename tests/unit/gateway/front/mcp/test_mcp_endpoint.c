#include "gateway/front/mcp/mcp_endpoint.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct endpoint clear_text = { .authority = SLICE_INIT("127.0.0.1:3001"),
					    .path = SLICE_INIT("/a/sse") };
static const struct endpoint tls = { .tls = true,
				     .authority = SLICE_INIT("mcp.example"),
				     .path = SLICE_INIT("/") };

struct row {
	const struct endpoint *base;
	const char *said, *path; /* path NULL: refused */
};

static const struct row rows[] = {
	{ &clear_text, "/message?sessionId=1", "/message?sessionId=1" },
	{ &clear_text, " /message ", "/message" },
	{ &clear_text, "message?x=/y:z", "/a/message?x=/y:z" },
	{ &clear_text, "?s=1", "/a/sse?s=1" },
	{ &clear_text, "http://127.0.0.1:3001/m?s=1", "/m?s=1" },
	{ &clear_text, "HTTP://127.0.0.1:3001", "/" },
	{ &clear_text, "http://127.0.0.1:3001?s=1", "/?s=1" },
	{ &tls, "https://MCP.example:443/m", "/m" },
	{ &tls, "https://mcp.example/m", "/m" },
	{ &tls, "m", "/m" },
	/* another origin */
	{ &clear_text, "http://127.0.0.1:3002/m", NULL },
	{ &clear_text, "http://127.0.0.1:30011/m", NULL },
	{ &clear_text, "http://127.0.0.1/m", NULL },
	{ &clear_text, "https://127.0.0.1:3001/m", NULL },
	{ &clear_text, "//127.0.0.1:3001/m", NULL },
	{ &clear_text, "http://127.0.0.1:3001@evil.example/m", NULL },
	{ &clear_text, "http://user@127.0.0.1:3001/m", NULL },
	{ &tls, "http://mcp.example/m", NULL },
	{ &tls, "https://mcp.example.evil.example/m", NULL },
	{ &tls, "https://mcp.example:8443/m", NULL },
	/* no URL, or one that would end a request line */
	{ &clear_text, "", NULL },
	{ &clear_text, "file:///etc/passwd", NULL },
	{ &clear_text, "javascript:1", NULL },
	{ &clear_text, "/m HTTP/1.1\r\nX: 1", NULL },
	{ &clear_text, "/m\tx", NULL },
	{ &clear_text, "/m#x", NULL },
	{ &clear_text, "\\\\evil.example\\m", NULL },
	{ &clear_text, "/\xc3\xbc", NULL },
};

static void only_the_servers_own_origin_is_taken(void **state)
{
	struct arena_pool pool = { 0 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1 << 16);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct row *row = &rows[i];
		struct slice path = SLICE("");
		const bool good =
			mcp_endpoint_resolve(row->base, slice_str(row->said), &arena, &path);
		if (good != (row->path != NULL))
			fail_msg("\"%s\"", row->said);
		if (good && !slice_eq(path, slice_str(row->path)))
			fail_msg("\"%s\": %.*s", row->said, (int)path.len, path.at);
	}
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void refused_memory_is_a_refusal(void **state)
{
	struct arena_pool pool = { 0 };
	struct arena arena;
	struct slice path;

	(void)state;
	arena_init(&arena, &pool, 1 << 16);
	pool.fail_next = 1;
	assert_false(mcp_endpoint_resolve(&clear_text, SLICE("m"), &arena, &path));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_servers_own_origin_is_taken),
		cmocka_unit_test(refused_memory_is_a_refusal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
