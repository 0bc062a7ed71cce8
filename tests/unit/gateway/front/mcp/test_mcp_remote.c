/* A client's GET at one gateway, served by the session's home at another: each event once and in order, to the newest GET. */
#include "tests/unit/gateway/front/mcp/mcp_remote_rig.h"

/* ---- attaching ---- */

static void a_get_opens_when_the_home_is_open(void **state)
{
	(void)state;
	assert_int_equal(open_home(&home), MCP_OPENED);
	ask(0, "1", NULL);
	assert_int_equal(remotes[0].remote.state, MCP_CHANNEL_OPENING);
	pass(60 * SEC); /* the home has said that it waits itself */
	assert_true(is_in(0) && remotes[0].changed == 0);
	mcp_home_answered(&home.home, true);
	settle();
	assert_int_equal(remotes[0].remote.state, MCP_CHANNEL_OPEN);
	assert_int_equal(remotes[0].changed, 1);
	join(1);
	assert_int_equal(remotes[1].changed, 1);
}

static void a_get_that_is_not_served_is_told_why(void **state)
{
	(void)state;
	ask(0, "1", NULL);
	assert_is_out(0, MCP_CHANNEL_CLOSED, 1); /* there is no home */
	assert_false(remotes[0].remote.other);
	begin();
	ask(0, "1", "of another stream");
	assert_is_out(0, MCP_CHANNEL_CLOSED, 1);
	assert_true(remotes[0].remote.other);
	assert_true(mcp_remote_attach(at_client, &remotes[0].remote, SLICE("")));
	assert_false(remotes[0].remote.other);
	mcp_remote_detach(&remotes[0].remote);
	join(0);
	assert_true(mcp_session_end(channels, &home.home.who, NOW));
	assert_is_out(0, MCP_CHANNEL_ENDED, 2);
	ask(0, "1", NULL);
	assert_is_out(0, MCP_CHANNEL_ENDED, 1);
}

static void a_server_without_a_stream_is_told_of(void **state)
{
	(void)state;
	assert_int_equal(open_home(&home), MCP_OPENED);
	ask(0, "1", NULL);
	settle();
	mcp_home_answered(&home.home, false);
	assert_is_out(0, MCP_CHANNEL_REFUSED, 1);
	ask(0, "1", NULL);
	assert_is_out(0, MCP_CHANNEL_REFUSED, 1);
}

static void a_home_that_does_not_answer_is_not_waited_for(void **state)
{
	(void)state;
	begin();
	wire.lose = 1 << PEER_MCP_END;
	ask(0, "1", NULL);
	pass(MCP_REMOTE_PATIENCE - 1);
	assert_true(is_in(0));
	assert_int_equal(at_home->proxy_slab.out, 1);
	pass(1);
	assert_is_out(0, MCP_CHANNEL_CLOSED, 1);
}

static void without_redis_nothing_is_attached(void **state)
{
	struct mcp_remote remote = { .who = session("1"),
				     .home = buses[0].own,
				     .changed = note_changed,
				     .events = note_events };

	(void)state;
	begin();
	buses[1].away = true;
	assert_false(mcp_remote_attach(at_client, &remote, SLICE("")));
	assert_null(remote.remotes);
	mcp_remote_took(&remote, 1); /* harmless, both */
	mcp_remote_detach(&remote);
	buses[1].away = false;
	assert_true(mcp_remote_attach(at_client, &remote, SLICE("")));
	mcp_remote_detach(&remote);
	settle();
	assert_int_equal(at_home->proxy_slab.out, 0);
}

static void a_home_has_so_many_proxies_and_no_more(void **state)
{
	(void)state;
	begin();
	join(0);
	at_home->proxy_slab.fresh = at_home->proxy_slab.count; /* all others are out */
	ask(1, "1", NULL);
	settle();
	assert_false(is_in(1));
	assert_int_equal(remotes[1].remote.state, MCP_CHANNEL_CLOSED);
	assert_true(is_in(0));
}

/* ---- events ---- */

static void events_arrive_in_order(void **state)
{
	(void)state;
	begin();
	push("before");
	join(0);
	assert_string_equal(read_events(0), "before");
	push("one");
	push_request("two");
	assert_string_equal(read_events(0), "onetwo");
	pass(3600 * SEC); /* silence is no fault */
	push("three");
	assert_string_equal(read_events(0), "three");
	assert_int_equal(remotes[0].changed, 1);
}

static void a_long_event_comes_as_the_client_takes_it(void **state)
{
	size_t came = 0;

	(void)state;
	begin();
	join(0);
	assert_true(push_long(5 * MCP_REMOTE_WINDOW + 7, true));
	settle();
	assert_int_equal(remotes[0].len, MCP_REMOTE_WINDOW);
	pass(600 * SEC);
	assert_int_equal(remotes[0].len,
			 MCP_REMOTE_WINDOW); /* whoever does not read gets no more */
	for (size_t len; (len = strlen(read_events(0))) != 0;)
		came += len;
	assert_int_equal(came, 5 * MCP_REMOTE_WINDOW + 7);
	push("next");
	assert_string_equal(read_events(0), "next");
}

static void credit_is_told_in_large_parts(void **state)
{
	(void)state;
	begin();
	join(0);
	for (int i = 0; i < 64; i++) {
		assert_true(push_long(1024, false));
		assert_int_equal(strlen(read_events(0)), 1024);
	}
	assert_int_equal(wire.told[PEER_MCP_EVENTS], 64);
	assert_int_equal(wire.told[PEER_MCP_CREDIT], 64 * 1024 / (MCP_REMOTE_WINDOW / 4));
	mcp_remote_took(&remotes[0].remote, SIZE_MAX); /* more than have come */
	assert_true(push_long(2 * MCP_REMOTE_WINDOW, false));
	settle();
	assert_int_equal(remotes[0].len, MCP_REMOTE_WINDOW);
}

static void credit_that_was_lost_is_asked_for(void **state)
{
	(void)state;
	begin();
	join(0);
	assert_true(push_long(MCP_REMOTE_WINDOW, false));
	settle();
	wire.lose = 1 << PEER_MCP_CREDIT;
	assert_int_equal(strlen(read_events(0)), MCP_REMOTE_WINDOW);
	wire.lose = 0;
	push("later");
	assert_string_equal(read_events(0), "");
	pass(2 * SEC);
	assert_string_equal(read_events(0), "later");
}

static void what_was_not_sent_is_for_the_next_client(void **state)
{
	(void)state;
	begin();
	join(0);
	assert_true(push_long(MCP_REMOTE_WINDOW, false));
	push_request("untaken");
	settle();
	mcp_remote_detach(&remotes[0].remote);
	mcp_remote_detach(&remotes[0].remote); /* harmless */
	settle();
	assert_int_equal(at_home->proxy_slab.out, 0);
	attach(0);
	assert_string_equal(take(0), "untaken");
	assert_int_equal(remotes[0].changed, 1);
}

static void a_get_resumes_behind_an_id(void **state)
{
	(void)state;
	begin();
	join(0);
	assert_true(push_at("one", "1", false, NOW));
	assert_true(push_at("two", "2", false, NOW));
	assert_string_equal(read_events(0), "onetwo");
	ask(1, "1", "1");
	assert_string_equal(read_events(1), "two");
}

static void the_newest_get_gets_the_events(void **state)
{
	(void)state;
	begin();
	join(0);
	join(1);
	assert_false(is_in(0));
	assert_int_equal(remotes[0].remote.state, MCP_CHANNEL_REPLACED);
	push("for the second");
	assert_string_equal(read_events(1), "for the second");
	attach(0); /* at the home's own gateway */
	push("for the third");
	assert_string_equal(take(0), "for the third");
	assert_is_out(1, MCP_CHANNEL_REPLACED, 2);
}

static void a_get_that_does_not_read_ends_for_the_sake_of_a_request(void **state)
{
	(void)state;
	begin();
	join(0);
	assert_true(push_long(MCP_REMOTE_WINDOW, true));
	settle();
	for (int i = 0; i <= MCP_EVENTS_LIVE_MAX; i++)
		push_request("request");
	assert_is_out(0, MCP_CHANNEL_GAP, 2);
}

/* ---- the home goes ---- */

static void what_the_home_has_left_is_taken_before_the_end(void **state)
{
	(void)state;
	begin();
	join(0);
	assert_true(push_long(MCP_REMOTE_WINDOW, false));
	push("left");
	settle();
	assert_null(mcp_home_close(&home.home));
	settle();
	assert_true(is_in(0));
	assert_int_equal(strlen(read_events(0)), MCP_REMOTE_WINDOW);
	assert_string_equal(read_events(0), "left");
	assert_is_out(0, MCP_CHANNEL_CLOSED, 2);
}

static void a_dead_home_is_closed(void **state)
{
	(void)state;
	begin();
	join(0);
	join(1);
	is_dead[0] = true;
	wire.lose = UINT32_MAX;
	mcp_remotes_died(at_client);
	assert_true(!is_in(1) && remotes[1].remote.state == MCP_CHANNEL_CLOSED);
	assert_int_equal(remotes[1].changed, 2);
	mcp_remotes_died(at_client);
	assert_int_equal(remotes[1].changed, 2);
}

static void clients_of_a_dead_gateway_are_detached(void **state)
{
	(void)state;
	begin();
	join(0);
	mcp_remotes_died(at_home); /* another one */
	assert_int_equal(at_home->proxy_slab.out, 1);
	is_dead[1] = true;
	mcp_remotes_died(at_home);
	assert_int_equal(at_home->proxy_slab.out, 0);
	assert_is_out(0, MCP_CHANNEL_CLOSED, 2); /* it lives all the same, and hears of it */
	push("kept");
	attach(0);
	assert_string_equal(take(0), "kept");
}

static void one_that_hears_of_a_death_may_take_others_out_and_come_again(void **state)
{
	(void)state;
	begin();
	ask(0, "1", NULL);
	ask(1, "2", NULL);
	remotes[0].detach = &remotes[1].remote;
	remotes[0].again = true;
	is_dead[0] = true;
	mcp_remotes_died(at_client);
	assert_int_equal(remotes[0].changed, 1);
	assert_int_equal(remotes[1].changed, 0);
	assert_true(is_in(0) && !is_in(1));
	is_dead[0] = remotes[0].again = false;
	settle();
	assert_int_equal(remotes[0].remote.state, MCP_CHANNEL_OPEN);
}

static void a_home_that_is_silent_for_long_has_gone(void **state)
{
	(void)state;
	begin();
	join(0);
	wire.lose = 1 << PEER_MCP_END;
	pass(MCP_REMOTE_SILENCE - 1);
	assert_true(is_in(0));
	pass(1);
	assert_is_out(0, MCP_CHANNEL_CLOSED, 2);
}

/* ---- names ---- */

static void names_are_spread_over_the_table(void **state)
{
	static uint8_t chains[MCP_REMOTE_BUCKETS];
	uint8_t longest = 0;

	(void)state;
	for (uint8_t worker = 0; worker < 64; worker++) {
		const struct peer_address peer = { .gateway = "peer", .worker = worker };
		for (uint64_t name = 1; name <= MCP_REMOTES_MAX / 64; name++) {
			const struct state_key key = mcp_remote_key(&peer, name);
			const size_t bucket =
				(size_t)(key.at[1] << 8 | key.at[2]) % MCP_REMOTE_BUCKETS;
			if (++chains[bucket] > longest)
				longest = chains[bucket];
		}
	}
	assert_in_range(longest, 4, 20); /* four on average */
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up_both, tear_down_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_get_opens_when_the_home_is_open),
		CASE(a_get_that_is_not_served_is_told_why),
		CASE(a_server_without_a_stream_is_told_of),
		CASE(a_home_that_does_not_answer_is_not_waited_for),
		CASE(without_redis_nothing_is_attached),
		CASE(a_home_has_so_many_proxies_and_no_more),
		CASE(events_arrive_in_order),
		CASE(a_long_event_comes_as_the_client_takes_it),
		CASE(credit_is_told_in_large_parts),
		CASE(credit_that_was_lost_is_asked_for),
		CASE(what_was_not_sent_is_for_the_next_client),
		CASE(a_get_resumes_behind_an_id),
		CASE(the_newest_get_gets_the_events),
		CASE(a_get_that_does_not_read_ends_for_the_sake_of_a_request),
		CASE(what_the_home_has_left_is_taken_before_the_end),
		CASE(a_dead_home_is_closed),
		CASE(clients_of_a_dead_gateway_are_detached),
		CASE(one_that_hears_of_a_death_may_take_others_out_and_come_again),
		CASE(a_home_that_is_silent_for_long_has_gone),
		cmocka_unit_test(names_are_spread_over_the_table),
	};

	return cmocka_run_group_tests_name("mcp_remote", tests, NULL, NULL);
}
