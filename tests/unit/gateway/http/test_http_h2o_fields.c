/* The headers of a request, from libh2o's list and from a head that libh2o has not read. */
#include "gateway/http/http_h2o_exchange.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void is(struct slice got, const char *want)
{
	assert_int_equal(got.len, strlen(want));
	assert_memory_equal(got.at, want, got.len);
}

/* "name=value" for each, in their order; NULL at the end. */
static void walk_gives(const struct http_incoming *in, const char *const *want)
{
	struct http_field field = { SLICE_INIT("untouched"), SLICE_INIT("") };
	char text[128];
	size_t at = 0;

	for (; *want != NULL; want++) {
		assert_true(http_next_header(in, &at, &field));
		(void)snprintf(text, sizeof(text), "%.*s=%.*s", (int)field.name.len, field.name.at,
			       (int)field.value.len, field.value.at);
		assert_string_equal(text, *want);
	}
	const struct slice last = field.name;
	assert_false(http_next_header(in, &at, &field));
	assert_ptr_equal(field.name.at, last.at);
	assert_false(http_next_header(in, &at, &field));
}

static const char *const walked[] = { "via=1.1 a", "x-two=one", "x-empty=", "x-two=other", NULL };

static void finds_them(const struct http_incoming *in)
{
	is(http_find_header(in, SLICE("x-two")), "one");
	is(http_find_header(in, SLICE("via")), "1.1 a");
	is(http_find_header(in, SLICE("x-empty")), "");
	assert_false(slice_absent(http_find_header(in, SLICE("x-empty"))));
	assert_true(slice_absent(http_find_header(in, SLICE("x-tw"))));
	assert_true(slice_absent(http_find_header(in, SLICE("accept"))));
}

static void a_head_gives_each_line_but_those_of_framing(void **state)
{
	(void)state;
	const struct slice head = SLICE("host: a\r\n"
					"via: \t1.1 a \t\r\n"
					"content-length: 5\r\n"
					"x-two:one\r\n"
					"expect: 100-continue\r\n"
					"x-empty: \r\n"
					"transfer-encoding: chunked\r\n"
					"upgrade: h2c\r\n"
					"x-two: other\r\n"
					"\r\n"
					"body: not a header\r\n");
	const struct http_incoming in = { .fields = &head, .early = true };

	walk_gives(&in, walked);
	finds_them(&in);
}

static void a_head_without_lines_has_no_headers(void **state)
{
	(void)state;
	static const char *const nothing[] = { NULL };
	const struct slice heads[] = { SLICE_INIT("\r\n"), SLICE_INIT("host: a\r\n\r\n") };

	for (size_t i = 0; i < COUNT_OF(heads); i++) {
		const struct http_incoming in = { .fields = &heads[i], .early = true };
		walk_gives(&in, nothing);
		assert_true(slice_absent(http_find_header(&in, SLICE("host"))));
	}
}

static void the_list_gives_tokens_and_other_names_alike(void **state)
{
	(void)state;
	h2o_mem_pool_t pool;
	h2o_headers_t list = { .entries = NULL };
	const struct http_incoming in = { .fields = &list };

	h2o_mem_init_pool(&pool);
	h2o_add_header(&pool, &list, H2O_TOKEN_VIA, NULL, H2O_STRLIT(" 1.1 a\t"));
	h2o_add_header_by_str(&pool, &list, H2O_STRLIT("x-two"), 0, NULL, H2O_STRLIT("one"));
	h2o_add_header(&pool, &list, H2O_TOKEN_EXPECT, NULL, H2O_STRLIT("100-continue"));
	h2o_add_header_by_str(&pool, &list, H2O_STRLIT("x-empty"), 0, NULL, H2O_STRLIT(""));
	h2o_add_header_by_str(&pool, &list, H2O_STRLIT("x-two"), 0, NULL, H2O_STRLIT("other"));
	walk_gives(&in, walked);
	finds_them(&in);
	h2o_mem_clear_pool(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_gives_each_line_but_those_of_framing),
		cmocka_unit_test(a_head_without_lines_has_no_headers),
		cmocka_unit_test(the_list_gives_tokens_and_other_names_alike),
	};
	return cmocka_run_group_tests_name("http_h2o_fields", tests, NULL, NULL);
}
