/* Tokens that were opened before are found again by whom, and for what, they were opened, and by nobody else. */
#include "gateway/front/mcp/mcp_opened.h"

#include "codec/base/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static struct arena_pool pool = { .keep_max = 64 };
static struct arena arena;
static struct mcp_opened *opened;

static int set_up(void **state)
{
	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	opened = mcp_opened_new();
	return opened == NULL;
}

static int tear_down(void **state)
{
	(void)state;
	mcp_opened_free(opened);
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}

static const struct caller caller = { .tenant = SLICE_INIT("acme"),
				      .server = SLICE_INIT("laptop"),
				      .limit_key = { "the tenant's key" },
				      .subject = { "whoever" } };

static struct mcp_shown_token shown_as(const char *text)
{
	return (struct mcp_shown_token){ .kind = MCP_TOKEN_SESSION,
					 .server = SLICE("files"),
					 .text = slice_str(text),
					 .caller = &caller };
}

static struct mcp_link link_of(const char *upstream_id)
{
	struct mcp_link link = { .token = { .server = SLICE("files"),
					    .upstream_id = slice_str(upstream_id),
					    .tenant = { "the tenant's key" },
					    .principal = { "whose session it" },
					    .authorization = { "a user's own" },
					    .pin = { .family = 4, .port = 8080, .at = { 127, 1 } },
					    .revision = SLICE("2025-11-25"),
					    .mode = MCP_MODE_FORCE,
					    .own_get = true,
					    .issued_s = UINT64_C(1790000000) } };

	mcp_link_who(&link);
	return link;
}

static const char text[] = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";

static bool found(const struct mcp_shown_token *shown)
{
	struct mcp_link link = { .series = 7 };
	const bool is_there = mcp_opened_find(opened, shown, &arena, &link);

	assert_int_equal(link.series, 7);
	assert_int_equal(is_there, link.token.upstream_id.len != 0);
	return is_there;
}

static void what_was_opened_is_found(void **state)
{
	const struct mcp_shown_token shown = shown_as(text);
	char id[] = "upstream's own id";
	const struct mcp_link in = link_of(id);
	struct mcp_link link = { .series = 7, .endpoint = 3 };

	(void)state;
	assert_false(mcp_opened_find(opened, &shown, &arena, &link));
	mcp_opened_add(opened, &shown, &in);
	id[0] = 'x';
	assert_true(mcp_opened_find(opened, &shown, &arena, &link));
	assert_true(slice_eq(link.token.upstream_id, SLICE("upstream's own id")));
	assert_true(slice_eq(link.token.revision, in.token.revision));
	assert_ptr_equal(link.token.server.at, shown.server.at);
	assert_true(mcp_digest_eq(&link.token.tenant, &in.token.tenant) &&
		    mcp_digest_eq(&link.token.principal, &in.token.principal) &&
		    mcp_digest_eq(&link.token.authorization, &in.token.authorization));
	assert_memory_equal(&link.token.pin, &in.token.pin, sizeof(link.token.pin));
	assert_true(link.token.mode == MCP_MODE_FORCE && link.token.own_get && !link.token.tools);
	assert_int_equal(link.token.issued_s, in.token.issued_s);
	assert_memory_equal(&link.who, &in.who, sizeof(link.who));
	assert_memory_equal(&link.calls, &in.calls, sizeof(link.calls));
	assert_int_equal(link.series, 7); /* and nothing else changes */
	assert_int_equal(link.endpoint, 3);
	mcp_opened_forget(opened);
	assert_false(found(&shown));
	mcp_opened_add(opened, &shown, &in);
	assert_true(found(&shown));
}

static void another_finds_nothing(void **state)
{
	const struct mcp_shown_token mine = shown_as(text);
	const struct mcp_link link = link_of("id");
	struct mcp_shown_token shown = mine;
	struct caller other = caller;

	(void)state;
	mcp_opened_add(opened, &mine, &link);
	shown.kind = MCP_TOKEN_SSE;
	assert_false(found(&shown));
	shown = mine;
	shown.server = SLICE("file");
	assert_false(found(&shown));
	shown = shown_as("BQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA"); /* the same tail */
	assert_false(found(&shown));
	shown = mine;
	shown.text.len--;
	assert_false(found(&shown));
	shown = mine;
	shown.caller = &other;
	assert_true(found(&shown));
	other.tenant = SLICE("acme2");
	assert_false(found(&shown));
	other = caller;
	other.server = SLICE("phone");
	assert_false(found(&shown));
	other.server = slice_of(NULL, 0);
	assert_false(found(&shown));
	other = caller;
	other.limit_key[15]++;
	assert_false(found(&shown));
	other = caller;
	other.subject[JWT_SUBJECT_BYTES - 1]++;
	assert_false(found(&shown));
	assert_true(found(&mine));
}

static void a_name_that_is_not_there_is_not_an_empty_one(void **state)
{
	struct caller without = caller, with = caller;
	struct mcp_shown_token shown = shown_as(text);
	const struct mcp_link link = link_of("id");

	(void)state;
	without.server = slice_of(NULL, 0);
	with.server = SLICE("");
	shown.caller = &without;
	mcp_opened_add(opened, &shown, &link);
	assert_true(found(&shown));
	shown.caller = &with;
	assert_false(found(&shown));
}

static void a_new_one_may_take_the_place(void **state)
{
	const struct mcp_shown_token first = shown_as("first-and-the-tail"),
				     second = shown_as("second-and-the-tail");
	const struct mcp_link link = link_of("id");

	(void)state;
	mcp_opened_add(opened, &first, &link);
	mcp_opened_add(opened, &second, &link);
	assert_true(found(&second));
	assert_false(found(&first));
}

static void what_is_too_long_is_not_remembered(void **state)
{
	static char long_text[1001];
	struct mcp_shown_token shown = shown_as("short");
	const struct mcp_link link = link_of("id");

	(void)state;
	mcp_opened_add(opened, &shown, &link);
	assert_false(found(&shown));
	(void)memset(long_text, 'x', sizeof(long_text) - 1);
	shown = shown_as(long_text);
	mcp_opened_add(opened, &shown, &link);
	assert_false(found(&shown));
	shown.text.len = 600;
	mcp_opened_add(opened, &shown, &link);
	assert_true(found(&shown));
}

static void without_memory_it_is_not_there(void **state)
{
	const struct mcp_shown_token shown = shown_as(text);
	const struct mcp_link link = link_of("id");

	(void)state;
	mcp_opened_add(opened, &shown, &link);
	pool.fail_next = 1;
	assert_false(found(&shown));
	assert_int_equal(pool.fail_next, 0);
	assert_true(found(&shown));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_opened_is_found),
		TEST(another_finds_nothing),
		TEST(a_name_that_is_not_there_is_not_an_empty_one),
		TEST(a_new_one_may_take_the_place),
		TEST(what_is_too_long_is_not_remembered),
		TEST(without_memory_it_is_not_there),
	};

	return cmocka_run_group_tests_name("mcp_opened", tests, NULL, NULL);
}
