/* Of what gateways say of a client's GET, anything may be lost, and anything may come: the GET ends then, or nothing happens;
 * nobody waits for what does not come, and nothing is left behind. */
#include "tests/unit/gateway/front/mcp/mcp_remote_rig.h"

/* ---- what is lost ---- */

static void lose_an_event(void)
{
	wire.lose = 1 << PEER_MCP_EVENTS;
	push("lost");
	settle();
	wire.lose = 0;
}

static void a_missing_piece_is_a_gap(void **state)
{
	(void)state;
	begin();
	join(0);
	lose_an_event();
	push("later");
	assert_is_out(0, MCP_CHANNEL_GAP, 2);
	assert_int_equal(remotes[0].len, 0);
}

static void a_missing_last_piece_is_found_soon(void **state)
{
	(void)state;
	begin();
	join(0);
	pass(600 * SEC);
	lose_an_event();
	pass(2 * SEC - 1);
	assert_true(is_in(0));
	pass(1);
	assert_is_out(0, MCP_CHANNEL_GAP, 2);
}

static void an_end_behind_a_missing_piece_is_a_gap(void **state)
{
	(void)state;
	begin();
	join(0);
	lose_an_event();
	assert_null(mcp_home_close(&home.home));
	assert_is_out(0, MCP_CHANNEL_GAP, 2);
}

static void what_redis_does_not_take_ends_the_get(void **state)
{
	(void)state;
	begin();
	join(0);
	buses[0].away = true;
	push("lost");
	settle();
	push("for the next");
	pass(10 * SEC);
	assert_true(is_in(0));
	buses[0].away = false;
	pass(60 * SEC);
	assert_is_out(0, MCP_CHANNEL_GAP, 2);
	join(1);
	assert_string_equal(read_events(1), "for the next");
}

static void that_it_is_open_may_be_lost(void **state)
{
	(void)state;
	assert_int_equal(open_home(&home), MCP_OPENED);
	ask(0, "1", NULL);
	settle();
	wire.lose = 1 << PEER_MCP_END;
	mcp_home_answered(&home.home, true);
	settle();
	assert_int_equal(remotes[0].remote.state, MCP_CHANNEL_OPENING);
	push("says so");
	assert_string_equal(read_events(0), "says so");
	assert_int_equal(remotes[0].changed, 1);
}

static void whoever_leaves_when_it_opens_gets_nothing(void **state)
{
	(void)state;
	assert_int_equal(open_home(&home), MCP_OPENED);
	ask(0, "1", NULL);
	settle();
	remotes[0].detach = &remotes[0].remote;
	wire.lose = 1 << PEER_MCP_END;
	mcp_home_answered(&home.home, true);
	settle();
	push("for nobody");
	settle();
	assert_int_equal(remotes[0].changed, 1);
	assert_int_equal(remotes[0].len, 0);
	assert_int_equal(at_home->proxy_slab.out, 0);
}

static void an_end_is_said_until_it_is_heard(void **state)
{
	(void)state;
	begin();
	join(0);
	wire.lose = 1 << PEER_MCP_END;
	assert_null(mcp_home_close(&home.home));
	pass(20 * SEC);
	assert_true(is_in(0));
	wire.lose = 0;
	pass(20 * SEC);
	assert_is_out(0, MCP_CHANNEL_CLOSED, 2);
}

static void an_end_that_nobody_hears_is_given_up(void **state)
{
	(void)state;
	begin();
	join(0);
	wire.lose = 1 << PEER_MCP_END | 1 << PEER_MCP_DETACH;
	assert_null(mcp_home_close(&home.home));
	mcp_remote_detach(&remotes[0].remote);
	pass(60 * SEC);
	assert_int_equal(at_home->proxy_slab.out, 1);
	pass(66 * SEC); /* 2 + 4 + 8 + 16 + 32 + 64 */
	assert_int_equal(at_home->proxy_slab.out, 0);
	const uint32_t told = wire.told[PEER_MCP_END];
	pass(3600 * SEC);
	assert_int_equal(wire.told[PEER_MCP_END], told);
}

static void a_home_that_was_not_told_hears_it_later(void **state)
{
	(void)state;
	begin();
	join(0);
	wire.lose = 1 << PEER_MCP_DETACH;
	mcp_remote_detach(&remotes[0].remote);
	settle();
	assert_int_equal(at_home->proxy_slab.out, 1);
	wire.lose = 0;
	pass(MCP_REMOTE_SAYS);
	assert_int_equal(at_home->proxy_slab.out, 0);
}

static void a_home_that_has_forgotten_says_so(void **state)
{
	(void)state;
	begin();
	join(0);
	assert_true(push_long(MCP_REMOTE_WINDOW, false));
	settle();
	is_dead[1] = true; /* so it thinks */
	wire.lose = 1 << PEER_MCP_END;
	mcp_remotes_died(at_home);
	is_dead[1] = false;
	wire.lose = 0;
	(void)read_events(0);
	assert_is_out(0, MCP_CHANNEL_GAP, 2);
}

/* ---- what nobody should say ---- */

static struct slice packed(enum peer_kind kind, const struct mcp_remote_message *message)
{
	static char whole[2 * MCP_REMOTE_WINDOW];
	const size_t head = mcp_remote_pack(kind, message, whole);

	if (message->text.len != 0)
		(void)memcpy(whole + head, message->text.at, message->text.len);
	return slice_of(whole, head + message->text.len);
}

static void what_is_no_message_is_dropped(void **state)
{
	static const enum peer_kind kinds[] = { PEER_MCP_ATTACH, PEER_MCP_CREDIT, PEER_MCP_DETACH,
						PEER_MCP_EVENTS, PEER_MCP_END };

	(void)state;
	begin();
	join(0);
	for (size_t k = 0; k < COUNT_OF(kinds); k++) {
		const struct mcp_remote_message message = {
			.name = remotes[0].remote.name,
			.who = session("1"),
			.is = MCP_REMOTE_CLOSED,
			.text = kinds[k] == PEER_MCP_EVENTS ? SLICE("x") : SLICE(""),
		};
		struct slice whole = packed(kinds[k], &message);
		for (size_t i = 0; i < COUNT_OF(buses); i++) {
			for (size_t len = 0; len < whole.len; len++)
				hear(&buses[i], &buses[1 - i].own, kinds[k],
				     slice_of(whole.at, len));
			hear(&buses[i], &buses[1 - i].own, kinds[k],
			     slice_of(long_text, PEER_MESSAGE_MAX));
		}
	}
	assert_null(wire.first);
	push("still there");
	assert_string_equal(read_events(0), "still there");
}

static void what_another_says_is_not_for_this_one(void **state)
{
	const struct peer_address another = { .gateway = "home.", .worker = 2 };
	struct mcp_remote_message message = { .is = MCP_REMOTE_CLOSED };

	(void)state;
	begin();
	join(0);
	message.name = remotes[0].remote.name;
	hear(&buses[1], &another, PEER_MCP_END, packed(PEER_MCP_END, &message));
	hear(&buses[0], &another, PEER_MCP_DETACH, packed(PEER_MCP_DETACH, &message));
	settle();
	push("still there");
	assert_string_equal(read_events(0), "still there");
}

static void credit_for_what_was_not_sent_is_none(void **state)
{
	struct mcp_remote_message message = { .taken = MCP_REMOTE_WINDOW + 1 };

	(void)state;
	begin();
	join(0);
	assert_true(push_long(2 * MCP_REMOTE_WINDOW, false));
	settle();
	message.name = remotes[0].remote.name;
	hear(&buses[0], &buses[1].own, PEER_MCP_CREDIT, packed(PEER_MCP_CREDIT, &message));
	settle();
	assert_int_equal(remotes[0].len, MCP_REMOTE_WINDOW);
	(void)read_events(0);
	message.taken = 1; /* it was more before */
	hear(&buses[0], &buses[1].own, PEER_MCP_CREDIT, packed(PEER_MCP_CREDIT, &message));
	push("next");
	settle();
	assert_int_equal(remotes[0].len, MCP_REMOTE_WINDOW);
	assert_int_equal(strlen(read_events(0)), MCP_REMOTE_WINDOW);
	assert_string_equal(read_events(0), "next");
}

static void a_home_that_sends_more_than_it_may_is_left(void **state)
{
	struct mcp_remote_message message = { .text = slice_of(long_text, MCP_REMOTE_WINDOW) };

	(void)state;
	begin();
	join(0);
	message.name = remotes[0].remote.name;
	hear(&buses[1], &buses[0].own, PEER_MCP_EVENTS, packed(PEER_MCP_EVENTS, &message));
	assert_int_equal(remotes[0].len, MCP_REMOTE_WINDOW);
	message.text.len = 1;
	message.number = 1;
	hear(&buses[1], &buses[0].own, PEER_MCP_EVENTS, packed(PEER_MCP_EVENTS, &message));
	assert_is_out(0, MCP_CHANNEL_GAP, 2);
}

static void credit_does_not_put_an_end_off(void **state)
{
	(void)state;
	begin();
	join(0);
	wire.lose = 1 << PEER_MCP_END;
	assert_null(mcp_home_close(&home.home));
	settle();
	const uint32_t told = wire.told[PEER_MCP_END];
	const struct mcp_remote_message message = { .name = remotes[0].remote.name };
	hear(&buses[0], &buses[1].own, PEER_MCP_CREDIT, packed(PEER_MCP_CREDIT, &message));
	assert_int_equal(wire.told[PEER_MCP_END], told);
}

static void a_name_that_is_taken_is_not_given_twice(void **state)
{
	(void)state;
	begin();
	join(0);
	const struct mcp_remote_message message = { .name = remotes[0].remote.name,
						    .who = session("1") };
	hear(&buses[0], &buses[1].own, PEER_MCP_ATTACH, packed(PEER_MCP_ATTACH, &message));
	settle();
	assert_int_equal(at_home->proxy_slab.out, 1);
	push("still there");
	assert_string_equal(read_events(0), "still there");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up_both, tear_down_both)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_missing_piece_is_a_gap),
		CASE(a_missing_last_piece_is_found_soon),
		CASE(an_end_behind_a_missing_piece_is_a_gap),
		CASE(what_redis_does_not_take_ends_the_get),
		CASE(that_it_is_open_may_be_lost),
		CASE(whoever_leaves_when_it_opens_gets_nothing),
		CASE(an_end_is_said_until_it_is_heard),
		CASE(an_end_that_nobody_hears_is_given_up),
		CASE(a_home_that_was_not_told_hears_it_later),
		CASE(a_home_that_has_forgotten_says_so),
		CASE(what_is_no_message_is_dropped),
		CASE(what_another_says_is_not_for_this_one),
		CASE(credit_for_what_was_not_sent_is_none),
		CASE(credit_does_not_put_an_end_off),
		CASE(a_home_that_sends_more_than_it_may_is_left),
		CASE(a_name_that_is_taken_is_not_given_twice),
	};

	return cmocka_run_group_tests_name("mcp_remote_lost", tests, NULL, NULL);
}
