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

static void an_answer_that_is_late_or_none_is_unknown(void **state)
{
	static const struct {
		const char *name;
		enum redis_outcome outcome;
		bool late;
		redisReply reply;
	} rows[] = {
		{ "late", REDIS_ANSWERED, true, { .type = REDIS_REPLY_NIL } },
		{ "lost", REDIS_LOST, false, { .type = REDIS_REPLY_NIL } },
		{ "refused",
		  REDIS_REFUSED,
		  false,
		  { .type = REDIS_REPLY_ERROR, .str = (char *)"NOPERM" } },
		{ "no string", REDIS_ANSWERED, false, { .type = REDIS_REPLY_INTEGER } },
		{ "empty",
		  REDIS_ANSWERED,
		  false,
		  { .type = REDIS_REPLY_STRING, .str = (char *)"" } },
		{ "short",
		  REDIS_ANSWERED,
		  false,
		  { .type = REDIS_REPLY_STRING, .str = (char *)"M123", .len = 4 } },
		{ "unknown",
		  REDIS_ANSWERED,
		  false,
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
		if (rows[row].late)
			fake_late(link, 0);
		while (fake_waiting(link) != 0)
			fake_answer(link, rows[row].outcome,
				    rows[row].outcome == REDIS_LOST ? NULL : &rows[row].reply);
		redis_buffer_clear(&link->out);
		if (done_count != before + 1 || ask.answer != MCP_SHARED_UNKNOWN)
			fail_msg("%s: %d", rows[row].name, ask.answer);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(while_redis_is_away_nothing_is_asked_and_what_must_not_be_lost_is_told_later),
		TEST(a_home_that_was_to_be_free_and_is_in_use_again_is_kept),
		TEST(an_answer_that_is_late_or_none_is_unknown),
	};
	return cmocka_run_group_tests_name("mcp_shared_away", tests, start_server, stop_server);
}
