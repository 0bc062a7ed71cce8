/* Events that wait for a client's GET: how many do, which go, and that a request reaches the client or comes back to the
 * home. */
#include "tests/unit/gateway/state/mcp_channel_rig.h"

/* ---- room ---- */

static void without_a_client_the_oldest_events_go(void **state)
{
	char text[16];

	(void)state;
	begin();
	for (int i = 0; i < MCP_EVENTS_MAX + 2; i++) {
		(void)snprintf(text, sizeof(text), "%03d.", i);
		push(text);
		assert_null(lost);
	}
	attach(0);
	const char *all = take(0);
	assert_int_equal(strlen(all), 4 * MCP_EVENTS_MAX);
	assert_memory_equal(all, "002.", 4);
	mcp_client_detach(&clients[0].client, NOW);
	assert_true(push_long(MCP_EVENTS_BYTES - 10, false));
	push("0123456789");
	push("x"); /* now the long one does not fit any more */
	attach(0);
	assert_string_equal(take(0), "0123456789x");
}

static void requests_go_last_and_are_said(void **state)
{
	(void)state;
	begin();
	push_request("ask 1.");
	push_request("ask 2.");
	for (int i = 2; i < MCP_EVENTS_MAX; i++)
		push("n");
	push("n");
	assert_null(lost);
	for (int i = 2; i < MCP_EVENTS_MAX; i++) {
		push_request("r");
		assert_null(lost); /* in place of what is no request */
	}
	assert_false(push_at("n", NULL, false, NOW)); /* nor does a request go for such */
	assert_null(lost);
	push_request("r");
	assert_string_equal(lost_texts(), "ask 1.");
	push_request("r");
	assert_string_equal(lost_texts(), "ask 2.");
}

static void a_long_event_needs_a_client(void **state)
{
	(void)state;
	begin();
	push_request("waits");
	assert_false(push_long(MCP_EVENTS_BYTES + 1, true));
	assert_null(lost); /* nothing makes room for what has none */
	attach(0);
	assert_true(push_long(MCP_EVENTS_BYTES + 1, true));
	assert_true(push_long(ROOM - 20, false));
	push("behind");
	assert_string_equal(take_some(0, 6), "waitsx");
	assert_int_equal(strlen(take(0)), MCP_EVENTS_BYTES + (ROOM - 1 - MCP_EVENTS_BYTES));
	mcp_client_detach(&clients[0].client, NOW);
	attach(1); /* at once: what is left is whole */
	assert_int_equal(strlen(take(1)), ROOM - 20 + 6);
}

static void what_a_client_leaves_is_cut_to_what_may_wait(void **state)
{
	(void)state;
	begin();
	attach(0);
	push_request("ask");
	for (int i = 0; i < 3; i++)
		assert_true(push_long(MCP_EVENTS_BYTES / 2, false));
	assert_true(push_long(MCP_EVENTS_BYTES / 2, true));
	mcp_client_detach(&clients[0].client, NOW);
	assert_int_equal(overdue(NOW), NOW + MCP_EVENT_WAITS);
	assert_null(lost);
	attach(1);
	assert_int_equal(strlen(take(1)), 3 + MCP_EVENTS_BYTES / 2);
}

static void a_client_that_does_not_read_loses_events_and_at_last_its_get(void **state)
{
	(void)state;
	begin();
	attach(0);
	for (int i = 0; i < MCP_EVENTS_LIVE_MAX; i++)
		push_request("r");
	assert_false(push_at("n", NULL, false, NOW));
	turn();
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_OPEN);
	assert_true(push_at("last", NULL, true, NOW));
	turn();
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_GAP);
	assert_int_equal(strlen(lost_texts()), MCP_EVENTS_LIVE_MAX + 1 - MCP_EVENTS_MAX);
	attach(1);
	assert_int_equal(strlen(take(1)), MCP_EVENTS_MAX - 1 + 4);
}

static void an_event_that_was_begun_does_not_go(void **state)
{
	(void)state;
	begin();
	attach(0);
	push("begun");
	assert_string_equal(take_some(0, 2), "be");
	for (int i = 0; i < MCP_EVENTS_LIVE_MAX + 5; i++)
		push("n");
	assert_memory_equal(take_some(0, 5), "gunnn", 5);
}

/* Half of the memory is left to others, whoever comes first. */
static void a_tenant_has_its_share_of_all_queues(void **state)
{
	static char megabytes[MCP_EVENT_MAX + 1];
	const struct mcp_event event = { slice_of(megabytes, MCP_EVENT_MAX), { NULL, 0 }, true };
	struct some_home homes[4];
	struct some_client readers[4];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(homes); i++) {
		const char *const tenants[] = { "a", "a", "a", "b" }, *const names[] = { "1", "2",
											 "3", "4" };
		const struct mcp_who who = who_of(tenants[i], "server", names[i]);
		homes[i] = (struct some_home){ .home = { .who = who, .told = note_told } };
		readers[i] = (struct some_client){ .client = { .who = who, .woken = note_woken } };
		assert_int_equal(open_home(&homes[i]), MCP_OPENED);
		assert_int_equal(mcp_client_attach(channels, &readers[i].client, &workers[1].inbox,
						   (struct slice){ NULL, 0 }, NOW),
				 MCP_ATTACHED);
		const bool pushed = mcp_home_push(&homes[i].home, &event, NOW, &lost);
		assert_int_equal(pushed, i != 2);
		assert_null(lost);
	}
	const struct mcp_event longer = { slice_of(megabytes, sizeof(megabytes)),
					  { NULL, 0 },
					  false };
	assert_false(mcp_home_push(&homes[3].home, &longer, NOW, &lost));
	for (size_t i = 0; i < COUNT_OF(homes); i++) {
		mcp_client_detach(&readers[i].client, NOW);
		lost = mcp_home_close(&homes[i].home);
		assert_int_equal(lost != NULL, i != 2);
		free_lost();
	}
}

static void refused_memory_is_said_to_the_home(void **state)
{
	(void)state;
	begin();
	channels->fail_next = 1;
	assert_false(push_at("a", NULL, true, NOW));
	assert_null(lost); /* the home knows it */
	push("b");
	channels->fail_next = 1;
	assert_true(push_at("c", "id", false, NOW)); /* its id is not remembered */
	assert_int_equal(attach_behind(0, "id"), MCP_ATTACH_OTHER);
	channels->fail_next = 2;
	assert_false(push_at("d", "id", false, NOW));
	attach(0);
	assert_string_equal(take(0), "bc");
}

/* ---- time ---- */

static void a_request_that_nobody_takes_comes_back(void **state)
{
	(void)state;
	begin();
	push_request("one");
	push("two");
	assert_true(push_at("three", NULL, true, NOW + SEC));
	assert_int_equal(overdue(NOW + MCP_EVENT_WAITS - 1), NOW + MCP_EVENT_WAITS);
	assert_null(lost);
	assert_int_equal(overdue(NOW + MCP_EVENT_WAITS), NOW + MCP_EVENT_WAITS + SEC);
	assert_string_equal(lost_texts(), "one");
	attach(0);
	assert_string_equal(take_some(0, 4), "twot"); /* begun: it is the client's */
	assert_int_equal(overdue(NOW + 2 * MCP_EVENT_WAITS), NOW + SEC + MCP_EVENT_KEPT);
	assert_null(lost);
	assert_string_equal(take(0), "hree");
	assert_int_equal(overdue(NOW + 2 * MCP_EVENT_WAITS), NSEC_NEVER);
}

static void the_home_gets_back_what_nobody_has_taken(void **state)
{
	(void)state;
	begin();
	push_request("one");
	push("two");
	push_request("three");
	lost = mcp_home_close(&home.home);
	assert_string_equal(lost_texts(), "onethree");
	assert_int_equal(attach_behind(0, NULL), MCP_ATTACH_NOBODY);
	begin(); /* again */
	attach(0);
	assert_string_equal(take(0), "");
}

static void a_client_takes_what_the_home_has_left(void **state)
{
	(void)state;
	begin();
	attach(0);
	push("one.");
	push("two.");
	push_request("three");
	push("four");
	assert_string_equal(take_some(0, 5), "one.t");
	free_lost();
	lost = mcp_home_close(&home.home);
	assert_string_equal(lost_texts(), "three");
	turn();
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_CLOSED);
	assert_string_equal(take(0), "wo.four");
	assert_int_equal(attach_behind(1, NULL), MCP_ATTACH_NOBODY);
	mcp_client_detach(&clients[0].client, NOW);
	assert_int_equal(mcp_counts_take_bytes(&channels->counts, &home.home.who.tenant,
					       MCP_EVENTS_BYTES_ALL),
			 1);
	mcp_counts_give_bytes(&channels->counts, 1, MCP_EVENTS_BYTES_ALL);
}

/* The rest of another event would be read as the rest of the request. */
static void a_request_that_was_begun_ends_its_client_with_the_home(void **state)
{
	(void)state;
	begin();
	attach(0);
	push_request("begun");
	push("more");
	assert_string_equal(take_some(0, 2), "be");
	free_lost();
	lost = mcp_home_close(&home.home);
	assert_string_equal(lost_texts(), "begun");
	assert_string_equal(take(0), "");
	turn();
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_CLOSED);
}

static void a_new_home_does_not_serve_the_client_of_the_one_before(void **state)
{
	struct some_home next = { .home = { .who = session("1"), .told = note_told } };

	(void)state;
	begin();
	attach(0);
	push("old");
	assert_null(mcp_home_close(&home.home));
	assert_int_equal(open_home(&next), MCP_OPENED);
	assert_string_equal(take(0), "");
	turn();
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_CLOSED);
	assert_null(mcp_home_close(&next.home));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		IN(without_a_client_the_oldest_events_go),
		IN(requests_go_last_and_are_said),
		IN(a_long_event_needs_a_client),
		IN(what_a_client_leaves_is_cut_to_what_may_wait),
		IN(a_client_that_does_not_read_loses_events_and_at_last_its_get),
		IN(an_event_that_was_begun_does_not_go),
		IN(a_tenant_has_its_share_of_all_queues),
		IN(refused_memory_is_said_to_the_home),
		IN(a_request_that_nobody_takes_comes_back),
		IN(the_home_gets_back_what_nobody_has_taken),
		IN(a_client_takes_what_the_home_has_left),
		IN(a_request_that_was_begun_ends_its_client_with_the_home),
		IN(a_new_home_does_not_serve_the_client_of_the_one_before),
	};

	return cmocka_run_group_tests_name("mcp_queue", tests, NULL, NULL);
}
