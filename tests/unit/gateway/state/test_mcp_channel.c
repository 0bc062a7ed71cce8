/* From a session's own GET to the client's: one home, the newest client, each event once and in order, also for a client
 * that resumes. */
#include "tests/unit/gateway/state/mcp_channel_rig.h"

/* ---- home and client ---- */

static void a_session_has_one_home(void **state)
{
	struct some_home other = { .home = { .who = session("1"), .told = note_told } };
	struct some_home elsewhere = { .home = { .who = session("2"), .told = note_told } };

	(void)state;
	assert_int_equal(open_home(&home), MCP_OPENED);
	assert_int_equal(open_home(&other), MCP_OPEN_TAKEN);
	assert_int_equal(open_home(&elsewhere), MCP_OPENED);
	assert_null(mcp_home_close(&home.home));
	assert_null(mcp_home_close(&home.home)); /* harmless */
	assert_int_equal(open_home(&other), MCP_OPENED);
	assert_null(mcp_home_close(&other.home));
	assert_null(mcp_home_close(&elsewhere.home));
	assert_int_equal(sessions_now("server"), 2); /* both sessions go on */
}

static void a_client_waits_for_the_answer_to_the_own_get(void **state)
{
	(void)state;
	assert_int_equal(attach_behind(0, NULL), MCP_ATTACH_NOBODY);
	assert_int_equal(open_home(&home), MCP_OPENED);
	attach(0);
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_OPENING);
	turn();
	assert_int_equal(clients[0].woken, 0);
	mcp_home_answered(&home.home, true);
	assert_int_equal(clients[0].client.state,
			 MCP_CHANNEL_OPENING); /* until its own worker's turn */
	turn();
	assert_int_equal(clients[0].woken, 1);
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_OPEN);
	attach(1);
	assert_int_equal(clients[1].client.state, MCP_CHANNEL_OPEN);
}

static void a_get_that_the_upstream_refuses_stays_refused(void **state)
{
	(void)state;
	assert_int_equal(open_home(&home), MCP_OPENED);
	attach(0);
	mcp_home_answered(&home.home, false);
	assert_int_equal(home.home.state, MCP_CHANNEL_REFUSED);
	turn();
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_REFUSED);
	assert_int_equal(attach_behind(1, NULL), MCP_ATTACH_REFUSED);
	assert_int_equal(attach_behind(1, "7"),
			 MCP_ATTACH_OTHER); /* another stream's may be resumed */
	assert_int_equal(open_home(&home), MCP_OPEN_REFUSED);
	assert_int_equal(home.told, 0); /* it has said so itself */
}

static void events_arrive_whole_and_in_order_once(void **state)
{
	static const size_t rooms[] = { 1, 3, 5, 9, 100 };

	(void)state;
	begin();
	attach(0);
	for (size_t i = 0; i < COUNT_OF(rooms); i++) {
		char all[32] = "";
		push("one..");
		push("two");
		push_request("three");
		for (const char *some; *(some = take_some(0, rooms[i])) != '\0';) {
			assert_true(strlen(some) <= rooms[i]);
			(void)strcat(all, some);
		}
		assert_string_equal(all, "one..twothree");
	}
}

static void a_client_is_woken_for_events(void **state)
{
	(void)state;
	begin();
	push("early");
	attach(0);
	turn();
	assert_int_equal(clients[0].woken, 0); /* it takes what is there by itself */
	assert_string_equal(take(0), "early");
	push("a");
	push("b");
	turn();
	assert_int_equal(clients[0].woken, 1); /* for both */
	assert_string_equal(take(0), "ab");
	push("c");
	mcp_client_detach(&clients[0].client, NOW);
	turn();
	assert_int_equal(clients[0].woken, 1); /* who has left is not told */
	attach(1);
	assert_string_equal(take(1), "c");
}

static void the_newest_client_gets_the_events(void **state)
{
	(void)state;
	begin();
	attach(0);
	push("first");
	push("second");
	assert_string_equal(take_some(0, 7), "firstse");
	attach(1);
	assert_string_equal(take(0), "");       /* even before it is told */
	assert_string_equal(take(1), "second"); /* from its beginning */
	turn();
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_REPLACED);
	assert_int_equal(clients[1].client.state, MCP_CHANNEL_OPEN);
	mcp_client_detach(&clients[0].client, NOW); /* harmless */
	push("third");
	assert_string_equal(take(1), "third");
}

static void who_has_left_is_not_told_of_the_end(void **state)
{
	(void)state;
	begin();
	attach(0);
	assert_true(mcp_session_end(channels, &home.home.who, NOW));
	mcp_client_detach(&clients[0].client, NOW);
	assert_null(mcp_home_close(&home.home));
	turn();
	assert_true(clients[0].woken == 0 && home.told == 0);
}

static void the_end_of_a_session_is_told_to_both(void **state)
{
	(void)state;
	begin();
	attach(0);
	push_request("never taken");
	assert_true(mcp_session_end(channels, &home.home.who, NOW));
	assert_false(push_at("late", NULL, false, NOW)); /* before it is told */
	assert_int_equal(overdue(NOW + MCP_EVENT_WAITS), NSEC_NEVER);
	mcp_home_saw(&home.home, SLICE("1"));
	mcp_home_answered(&home.home, true);
	assert_string_equal(take(0), "");
	turn();
	assert_true(home.told == 1 && home.home.state == MCP_CHANNEL_ENDED);
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_ENDED);
	assert_false(push_at("later", NULL, false, NOW));
	assert_int_equal(overdue(NOW), NSEC_NEVER);
	assert_int_equal(open_home(&home), MCP_OPEN_ENDED);
	assert_int_equal(attach_behind(1, NULL), MCP_ATTACH_ENDED);
	assert_int_equal(attach_behind(1, "1"), MCP_ATTACH_ENDED);
}

static void a_home_that_nobody_uses_is_told(void **state)
{
	(void)state;
	begin();
	attach(0);
	mcp_sessions_expire(channels, NOW + MCP_SESSION_IDLE); /* the client is there */
	turn();
	assert_int_equal(home.told, 0);
	mcp_client_detach(&clients[0].client, NOW + MCP_SESSION_IDLE);
	push("for nobody");
	mcp_sessions_expire(channels, NOW + 2 * MCP_SESSION_IDLE - 1);
	turn();
	assert_int_equal(home.told, 0);
	mcp_sessions_expire(channels, NOW + 2 * MCP_SESSION_IDLE);
	turn();
	assert_true(home.told == 1 && home.home.state == MCP_CHANNEL_IDLE);
	assert_int_equal(sessions_now("server"), 0);
	assert_int_equal(open_home(&home), MCP_OPENED); /* the session is not over */
}

/* ---- resuming ---- */

static void a_client_resumes_behind_an_id(void **state)
{
	(void)state;
	begin();
	attach(0);
	assert_true(push_at("one", "1", false, NOW));
	assert_true(push_at("two", "2", true, NOW));
	push("three");
	assert_string_equal(take(0), "onetwothree");
	assert_int_equal(attach_behind(1, "1"), MCP_ATTACHED);
	assert_string_equal(take(1), "twothree");
	assert_int_equal(attach_behind(0, "2"), MCP_ATTACHED);
	assert_string_equal(take(0), "three");
	attach(1);
	assert_string_equal(take(1), ""); /* without an id nothing is repeated */
}

static void an_id_of_another_stream_is_not_resumed_here(void **state)
{
	(void)state;
	begin();
	attach(0);
	assert_int_equal(attach_behind(1, "7"), MCP_ATTACH_OTHER);
	assert_true(push_at("one", "1", false, NOW));
	assert_int_equal(attach_behind(1, "7"), MCP_ATTACH_OTHER);
	assert_string_equal(take(0), "one"); /* it is the client still */
	turn();
	assert_int_equal(clients[0].client.state, MCP_CHANNEL_OPEN);
}

static void swallowed_events_have_ids_too(void **state)
{
	(void)state;
	begin();
	attach(0);
	assert_true(push_at("one", "1", false, NOW));
	mcp_home_saw(&home.home, SLICE("2"));
	assert_true(push_at("three", "3", false, NOW));
	assert_string_equal(take(0), "onethree");
	assert_int_equal(attach_behind(1, "2"), MCP_ATTACHED);
	assert_string_equal(take(1), "three");
}

static void events_are_kept_for_a_minute_and_only_so_many(void **state)
{
	char id[16];

	(void)state;
	begin();
	attach(0);
	for (int i = 0; i < MCP_IDS_SEEN + 6; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		assert_true(push_at("x", id, false, NOW));
		assert_string_equal(take(0), "x");
	}
	assert_int_equal(attach_behind(1, "5"), MCP_ATTACH_OTHER); /* its id is forgotten */
	assert_int_equal(attach_behind(1, "6"), MCP_ATTACHED);
	assert_int_equal(strlen(take(1)), MCP_EVENTS_MAX - 1);
	assert_int_equal(overdue(NOW + MCP_EVENT_KEPT - 1), NOW + MCP_EVENT_KEPT);
	assert_int_equal(overdue(NOW + MCP_EVENT_KEPT), NSEC_NEVER);
	assert_int_equal(attach_behind(0, "6"), MCP_ATTACHED);
	assert_string_equal(take(0), "");
}

static void a_request_that_is_taken_again_waits_anew(void **state)
{
	(void)state;
	begin();
	attach(0);
	assert_true(push_at("one", "1", false, NOW));
	assert_true(push_at("ask", "2", true, NOW));
	assert_string_equal(take(0), "oneask");
	mcp_client_detach(&clients[0].client, NOW);
	assert_int_equal(mcp_client_attach(channels, &clients[1].client, &workers[1].inbox,
					   SLICE("1"), NOW + MCP_EVENT_WAITS),
			 MCP_ATTACHED);
	assert_int_equal(overdue(NOW + MCP_EVENT_WAITS), NOW + MCP_EVENT_KEPT);
	assert_null(lost);
	assert_string_equal(take(1), "ask");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		IN(a_session_has_one_home),
		IN(a_client_waits_for_the_answer_to_the_own_get),
		IN(a_get_that_the_upstream_refuses_stays_refused),
		IN(events_arrive_whole_and_in_order_once),
		IN(a_client_is_woken_for_events),
		IN(the_newest_client_gets_the_events),
		IN(who_has_left_is_not_told_of_the_end),
		IN(the_end_of_a_session_is_told_to_both),
		IN(a_home_that_nobody_uses_is_told),
		IN(a_client_resumes_behind_an_id),
		IN(an_id_of_another_stream_is_not_resumed_here),
		IN(swallowed_events_have_ids_too),
		IN(events_are_kept_for_a_minute_and_only_so_many),
		IN(a_request_that_is_taken_again_waits_anew),
	};

	return cmocka_run_group_tests_name("mcp_channel", tests, NULL, NULL);
}
