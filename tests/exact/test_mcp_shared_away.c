/* What gateways know together of sessions of /mcp/{server} while Redis, or one of them, is not there.
 *
 * ctest: timeout=60 */
#include "tests/unit/gateway/state/mcp_shared_rig.h"

/* ---- without Redis ---- */

static void while_redis_is_away_nothing_is_asked_and_what_must_not_be_lost_is_told_later(
	void **state)
{
	struct mcp_ask ask = question_of(&session);
	struct worker *worker = &a->workers[0];

	(void)state;
	assert_int_equal(claims(worker, "7", SLICE("request")), MCP_SHARED_CLAIMED);
	assert_int_equal(takes(worker), MCP_SHARED_MINE);
	mcp_shared_call(worker->shared, &session, true);
	(void)settle();
	fake_unready(worker->client.link);
	assert_false(mcp_ask_home(worker->shared, &ask, true));
	assert_false(mcp_ask_claim(worker->shared, &ask, SLICE("8"), nothing));
	assert_false(mcp_ask_place(worker->shared, &ask, 1, 1));
	mcp_ask_forget(&ask);
	mcp_shared_used(worker->shared, &session);
	mcp_shared_saw(worker->shared, &session, SLICE("1"));
	mcp_shared_settled(worker->shared, &session, SLICE("7"));
	mcp_shared_freed(worker->shared, &session);
	mcp_shared_call(worker->shared, &session, false);
	(void)settle();
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_OTHERS);
	fake_ready(worker->client.link);
	(void)settle();
	assert_int_equal(b->workers[1].freed_count, 1);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_MINE);
	is_answered(mcp_ask_claim(b->workers[0].shared, &ask, SLICE("9"), nothing));
	assert_int_equal(ask.calls, 0);
	dies(a);
	key_expires(a);
	pass(SEC);
	assert_int_equal(b->orphans + c->orphans, 0);
}

static void a_home_that_was_to_be_free_and_is_in_use_again_is_kept(void **state)
{
	struct worker *worker = &a->workers[0];

	(void)state;
	assert_int_equal(takes(worker), MCP_SHARED_MINE);
	fake_unready(worker->client.link);
	mcp_shared_freed(worker->shared, &session);
	struct mcp_home *home = home_in(a, 0);
	fake_ready(worker->client.link);
	(void)settle();
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_OTHERS);
	assert_null(mcp_home_close(home));
}

static void an_answer_that_is_none_is_unknown(void **state)
{
	static const struct {
		const char *name;
		enum redis_outcome outcome;
		redisReply reply;
	} rows[] = {
		{ "lost", REDIS_LOST, { .type = REDIS_REPLY_NIL } },
		{ "refused",
		  REDIS_REFUSED,
		  { .type = REDIS_REPLY_ERROR, .str = (char *)"NOPERM" } },
		{ "no string", REDIS_ANSWERED, { .type = REDIS_REPLY_INTEGER } },
		{ "empty", REDIS_ANSWERED, { .type = REDIS_REPLY_STRING, .str = (char *)"" } },
		{ "short",
		  REDIS_ANSWERED,
		  { .type = REDIS_REPLY_STRING, .str = (char *)"M123", .len = 4 } },
		{ "unknown",
		  REDIS_ANSWERED,
		  { .type = REDIS_REPLY_STRING, .str = (char *)"?1234567890", .len = 11 } },
	};
	struct redis_link *link = a->workers[0].client.link;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows) * 3; i++) {
		struct mcp_ask ask = question_of(&session);
		const uint32_t before = done_count;
		const size_t row = i / 3;
		if (i % 3 == 0)
			assert_true(mcp_ask_home(a->workers[0].shared, &ask, true));
		else if (i % 3 == 1)
			assert_true(mcp_ask_claim(a->workers[0].shared, &ask, SLICE("1"), nothing));
		else
			assert_true(mcp_ask_place(a->workers[0].shared, &ask, 1, 1));
		assert_true(fake_command(link, 0)
				    ->aside); /* what a user may not do says nothing of Redis */
		while (fake_waiting(link) != 0)
			fake_answer(link, rows[row].outcome,
				    rows[row].outcome == REDIS_LOST ? NULL : &rows[row].reply);
		redis_buffer_clear(&link->out);
		if (done_count != before + 1 || ask.answer != MCP_SHARED_UNKNOWN)
			fail_msg("%s: %d", rows[row].name, ask.answer);
	}
}

static void who_asks_waits_for_an_answer_that_is_late(void **state)
{
	struct mcp_ask ask = question_of(&session);
	struct redis_link *link = a->workers[0].client.link;

	(void)state;
	assert_true(mcp_ask_home(a->workers[0].shared, &ask, true));
	assert_null(fake_command(link, 0)->call->type->late);
	(void)settle();
	assert_int_equal(ask.answer, MCP_SHARED_MINE);
	fake_unready(link);
	link->slow = true; /* and asks while all answers are */
	assert_true(mcp_ask_home(a->workers[0].shared, &ask, false));
	assert_int_equal(fake_waiting(link), 1);
	fake_ready(link);
	(void)settle();
	assert_int_equal(ask.answer, MCP_SHARED_MINE);
}

/* ---- what must not be lost ---- */

static void of_a_call_that_begins_and_ends_without_redis_nothing_is_told(void **state)
{
	struct worker *worker = &a->workers[0];
	struct mcp_who other = session;
	struct mcp_ask ask = question_of(&session);

	(void)state;
	other.key.at[0]++;
	mcp_shared_call(worker->shared, &session, true);
	(void)settle();
	fake_unready(worker->client.link);
	mcp_shared_call(worker->shared, &other, true);
	for (uint32_t i = 0; i < 5000; i++) { /* more than are kept */
		mcp_shared_call(worker->shared, &session, true);
		mcp_shared_call(worker->shared, &session, false);
	}
	fake_ready(worker->client.link);
	assert_true(fake_waiting(worker->client.link) < 8);
	(void)settle();
	is_answered(mcp_ask_claim(b->workers[0].shared, &ask, SLICE("1"), nothing));
	assert_int_equal(ask.calls, 1);
	ask.who = other;
	is_answered(mcp_ask_claim(b->workers[0].shared, &ask, SLICE("1"), nothing));
	assert_int_equal(ask.calls, 1);
}

/* What was sent never comes to Redis. */
static void connection_is_lost(struct worker *worker)
{
	struct redis_link *link = worker->client.link;

	link->ready = false;
	redis_buffer_clear(&link->out);
	while (fake_waiting(link) != 0)
		fake_answer(link, REDIS_LOST, NULL);
	fake_lost(link);
}

static void what_a_connection_may_have_lost_is_told_again(void **state)
{
	struct worker *worker = &a->workers[0];

	(void)state;
	assert_int_equal(claims(worker, "7", SLICE("request")), MCP_SHARED_CLAIMED);
	assert_int_equal(takes(worker), MCP_SHARED_MINE);
	mcp_shared_freed(worker->shared, &session);
	mcp_shared_settled(worker->shared, &session, SLICE("7"));
	connection_is_lost(worker);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_OTHERS);
	fake_ready(worker->client.link);
	(void)settle();
	assert_int_equal(b->workers[1].freed_count, 1);
	assert_int_equal(takes(&b->workers[0]), MCP_SHARED_MINE);
	dies(a);
	key_expires(a);
	pass(SEC);
	assert_int_equal(b->orphans + c->orphans, 0);
}

/* ---- homes that Redis, or others, may take for gone ---- */

static uint32_t replaced;

static void on_replaced(struct mcp_home *home)
{
	assert_int_equal(home->state, MCP_CHANNEL_REPLACED);
	assert_null(mcp_home_close(home));
	mcp_shared_freed(a->workers[1].shared, &home->who);
	replaced++;
}

/* Of the second worker of a, each with a session of its own. */
static void homes_open(struct mcp_home *homes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		homes[i] = (struct mcp_home){ .who = session, .told = on_replaced };
		(void)memcpy(homes[i].who.key.at, &i, sizeof(i));
		assert_int_equal(mcp_home_open(a->channels, &homes[i], &a->workers[1].inbox, now),
				 MCP_OPENED);
	}
}

static void a_redis_that_has_lost_all_is_told_of_all_homes(void **state)
{
	enum { HOMES = 300 };
	static struct mcp_home homes[HOMES];
	struct mcp_ask ask;

	(void)state;
	homes_open(homes, HOMES);
	fake_unready(a->workers[1].client.link);
	command("FLUSHALL", NULL);
	fake_ready(a->workers[1].client.link);
	pass(4 * SEC); /* that its key is gone is noticed, too */
	for (size_t i = 0; i < HOMES; i++) {
		ask = question_of(&homes[i].who);
		is_answered(mcp_ask_home(b->workers[0].shared, &ask, true));
		assert_int_equal(ask.answer, MCP_SHARED_OTHERS);
		assert_true(is_home(&ask, &a->workers[1]));
		assert_null(mcp_home_close(&homes[i]));
	}
}

static void of_two_homes_the_one_of_before_stays(void **state)
{
	static struct mcp_home home, second;

	(void)state;
	replaced = 0;
	home = (struct mcp_home){ .who = session, .told = on_replaced };
	assert_int_equal(takes(&b->workers[1]), MCP_SHARED_MINE);
	assert_int_equal(mcp_home_open(b->channels, &home, &b->workers[1].inbox, now), MCP_OPENED);
	fake_unready(a->workers[1].client.link);
	fake_unready(b->workers[1].client.link);
	second = (struct mcp_home){ .who = session, .told = on_replaced };
	assert_int_equal(mcp_home_open(a->channels, &second, &a->workers[1].inbox, now),
			 MCP_OPENED);
	command("FLUSHALL", NULL);
	fake_ready(a->workers[1].client.link);
	pass(SEC);
	fake_ready(b->workers[1].client.link);
	pass(3 * SEC);
	assert_int_equal(replaced, 1);
	assert_null(second.channels);
	struct mcp_ask ask = home_at(&c->workers[0], true);
	assert_true(ask.answer == MCP_SHARED_OTHERS && is_home(&ask, &b->workers[1]));
	assert_null(mcp_home_close(&home));
}

static void who_was_stopped_learns_that_others_are_the_home_by_now(void **state)
{
	static struct mcp_home homes[2];
	struct mcp_ask ask;

	(void)state;
	replaced = 0;
	homes_open(homes, 2);
	for (size_t i = 0; i < 2; i++) {
		ask = question_of(&homes[i].who);
		is_answered(mcp_ask_home(a->workers[1].shared, &ask, true));
	}
	dies(a);
	key_expires(a);
	pass(SEC);
	ask = question_of(&homes[1].who);
	is_answered(mcp_ask_home(b->workers[0].shared, &ask, true));
	assert_int_equal(ask.answer, MCP_SHARED_MINE);
	a->dead = false;
	pass(2 * SEC);
	assert_int_equal(replaced, 1);
	assert_null(homes[1].channels);
	assert_non_null(homes[0].channels);
	assert_true(lives(b, a));
	ask = question_of(&homes[1].who);
	is_answered(mcp_ask_home(a->workers[0].shared, &ask, true));
	assert_true(ask.answer == MCP_SHARED_OTHERS && is_home(&ask, &b->workers[0]));
	ask = question_of(&homes[0].who);
	is_answered(mcp_ask_home(b->workers[0].shared, &ask, true));
	assert_true(ask.answer == MCP_SHARED_OTHERS && is_home(&ask, &a->workers[1]));
	assert_null(mcp_home_close(&homes[0]));
}

static void who_was_stopped_learns_that_others_answer_what_it_had_claimed(void **state)
{
	(void)state;
	assert_int_equal(claims(&a->workers[1], "\"seven\"", SLICE("request")), MCP_SHARED_CLAIMED);
	dies(a);
	key_expires(a);
	pass(SEC);
	struct gateway *heir = b->orphans != 0 ? b : c;
	assert_int_equal(heir->orphans, 1);
	assert_int_equal(a->taken + heir->taken, 0);
	a->dead = false;
	pass(SEC);
	assert_int_equal(a->taken, 1);
	assert_string_equal(a->id, "\"seven\"");
	assert_memory_equal(&a->orphan, &session, sizeof(session));
	/* what it says of it now does not count */
	mcp_shared_settled(a->workers[1].shared, &session, SLICE("\"seven\""));
	(void)settle();
	dies(heir);
	key_expires(heir);
	pass(SEC);
	assert_int_equal(a->orphans + (heir == b ? c : b)->orphans, 1);
}

static void claims_of_a_gateway_with_many_are_taken_over_within_seconds(void **state)
{
	enum { CLAIMS = 1000 };
	char id[16];

	(void)state;
	for (uint32_t i = 0; i < CLAIMS; i++) {
		struct mcp_ask ask = question_of(&session);
		(void)snprintf(id, sizeof(id), "%u", i);
		is_answered(
			mcp_ask_claim(a->workers[0].shared, &ask, slice_str(id), SLICE("kept")));
	}
	dies(a);
	dies(c);
	key_expires(a);
	pass_by(3 * SEC, 50 * MSEC);
	assert_int_equal(b->orphans, CLAIMS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(while_redis_is_away_nothing_is_asked_and_what_must_not_be_lost_is_told_later),
		TEST(a_home_that_was_to_be_free_and_is_in_use_again_is_kept),
		TEST(an_answer_that_is_none_is_unknown),
		TEST(who_asks_waits_for_an_answer_that_is_late),
		TEST(of_a_call_that_begins_and_ends_without_redis_nothing_is_told),
		TEST(what_a_connection_may_have_lost_is_told_again),
		TEST(a_redis_that_has_lost_all_is_told_of_all_homes),
		TEST(of_two_homes_the_one_of_before_stays),
		TEST(who_was_stopped_learns_that_others_are_the_home_by_now),
		TEST(who_was_stopped_learns_that_others_answer_what_it_had_claimed),
		TEST(claims_of_a_gateway_with_many_are_taken_over_within_seconds),
	};
	return cmocka_run_group_tests_name("mcp_shared_away", tests, start_server, stop_server);
}
