/* Sessions, loops and blocks while Redis is away, full, or has forgotten, and afterwards: two gateways, real
 * scripts.
 *
 * ctest: timeout=60 */
#include "tests/exact/state_redis_rig.h"

static const struct slice no_blocks;

static void away(struct gateway *gateway)
{
	exchange(gateway);
	rig_unready(gateway->redis);
}

static void back(struct gateway *gateway)
{
	rig_ready(gateway->redis);
	exchange(gateway);
}

static void what_this_process_wrote_is_known_here_while_redis_is_away(void **state)
{
	(void)state;
	session_begins(a, "s");
	call_issued(a, "l", "c1", 2, 100, SLICE("blocks"));
	away(a);
	away(b);
	const struct state_load found = session_at(a, "s");
	assert_true(found.away);
	assert_int_equal(found.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(found.revision, REVISION_2025_06_18);
	assert_int_equal(loop_of_one(a, "c1").tokens, 100);
	assert_int_equal(loop_of_one(a, "c1").rounds, 2);
	assert_true(slice_eq(blocks_at(a, "c1"), SLICE("blocks")));
	assert_int_equal(session_at(b, "s").session_is, STATE_SESSION_UNSURE);
	assert_int_equal(loop_of_one(b, "c1").known, 0);
	assert_true(slice_absent(blocks_at(b, "c1")));
}

static void a_session_used_here_before_is_known_here_while_redis_is_away(void **state)
{
	(void)state;
	session_begins(a, "s");
	(void)session_at(b, "s");
	away(b);
	const struct state_load found = session_at(b, "s");
	assert_int_equal(found.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(found.revision, REVISION_2025_06_18);
}

static void a_session_that_begins_meanwhile_moves_to_redis_when_it_is_back(void **state)
{
	(void)state;
	away(a);
	session_begins(a, "s");
	back(a);
	struct gateway *const both[] = { b, a };
	for (size_t i = 0; i < COUNT_OF(both); i++) { /* the other is asked first */
		const struct state_load found = session_at(both[i], "s");
		assert_false(found.away);
		assert_int_equal(found.session_is, STATE_SESSION_KNOWN);
		assert_int_equal(found.revision, REVISION_2025_06_18);
	}
	assert_true(session_ends(b, "s").ended); /* which counts from now on */
	assert_int_equal(session_at(a, "s").session_is, STATE_SESSION_UNKNOWN);
}

static void a_session_that_ends_meanwhile_does_not_come_back(void **state)
{
	(void)state;
	session_begins(a, "s");
	away(a);
	const struct state_save save = session_ends(a, "s");
	assert_true(save.away);
	assert_true(save.ended);
	assert_int_equal(session_at(a, "s").session_is, STATE_SESSION_UNKNOWN);
	back(a);
	assert_int_equal(session_at(a, "s").session_is, STATE_SESSION_UNKNOWN);
	exchange(a);
	assert_int_equal(session_at(b, "s").session_is, STATE_SESSION_UNKNOWN);
}

static void what_is_told_meanwhile_is_told_to_be_here_only(void **state)
{
	(void)state;
	away(a);
	const struct state_save save = call_issued(a, "l", "c1", 1, 7, SLICE("blocks"));
	assert_true(save.away);
	assert_false(save.blocks_kept);
	back(a);
	assert_int_equal(loop_of_one(a, "c1").tokens, 7);
	assert_true(slice_eq(blocks_at(a, "c1"), SLICE("blocks")));
	assert_int_equal(loop_of_one(b, "c1").known, 0);
}

static void a_redis_that_lost_everything_loses_sessions_but_not_what_is_known_here(void **state)
{
	(void)state;
	session_begins(a, "s");
	call_issued(a, "l", "c1", 2, 100, SLICE("blocks"));
	command("FLUSHALL", NULL);
	assert_int_equal(session_at(a, "s").session_is, STATE_SESSION_UNKNOWN);
	assert_int_equal(session_at(b, "s").session_is, STATE_SESSION_UNKNOWN);
	assert_int_equal(loop_of_one(a, "c1").tokens, 100);
	assert_int_equal(loop_of_one(a, "c1").rounds, 2);
	assert_true(slice_eq(blocks_at(a, "c1"), SLICE("blocks")));
	assert_int_equal(loop_of_one(b, "c1").known, 0);
	call_issued(a, "l", "c2", 3, 1, no_blocks);
	assert_int_equal(loop_of_one(a, "c2").tokens, 101);
	away(a);
	assert_int_equal(session_at(a, "s").session_is, STATE_SESSION_UNSURE);
}

static void records_that_are_none_are_as_if_they_were_not_there(void **state)
{
	(void)state;
	session_begins(a, "s");
	call_issued(a, "l", "c1", 2, 100, no_blocks);
	redisReply *keys = ask("KEYS sluice:state:*");
	for (size_t i = 0; i < keys->elements; i++) {
		const char *key = keys->element[i]->str;
		if (strstr(key, "}s:") != NULL)
			command("HSET %s revision 2099-01-01", key);
		if (strstr(key, "}c:") != NULL)
			command("SET %s nonsense", key);
	}
	freeReplyObject(keys);
	assert_int_equal(session_at(b, "s").session_is, STATE_SESSION_UNKNOWN);
	assert_int_equal(loop_of_one(b, "c1").known, 0);
}

static void a_full_redis_is_away(void **state)
{
	(void)state;
	session_begins(a, "before");
	(void)session_at(a, "before");
	command("CONFIG SET maxmemory 1", NULL);
	struct state_save save = { .tenant = tenant,
				   .session = key_of(STATE_SESSION, "s"),
				   .change = STATE_BEGINS,
				   .now = loop.now,
				   .done = on_saved };
	assert_int_equal(a->state->save(a->state, &save), STATE_PENDING);
	assert_int_equal(redisAppendFormattedCommand(connection, a->redis->link->out.at,
						     a->redis->link->out.len),
			 REDIS_OK);
	redis_buffer_clear(&a->redis->link->out);
	void *reply = NULL;
	assert_int_equal(redisGetReply(connection, &reply), REDIS_OK);
	assert_int_equal(((redisReply *)reply)->type, REDIS_REPLY_ERROR);
	rig_answer(a->redis, REDIS_REFUSED, reply);
	freeReplyObject(reply);
	command("CONFIG SET maxmemory 0", NULL);
	assert_true(save.away);
	away(a);
	assert_int_equal(session_at(a, "s").session_is, STATE_SESSION_KNOWN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(what_this_process_wrote_is_known_here_while_redis_is_away),
		TEST(a_session_used_here_before_is_known_here_while_redis_is_away),
		TEST(a_session_that_begins_meanwhile_moves_to_redis_when_it_is_back),
		TEST(a_session_that_ends_meanwhile_does_not_come_back),
		TEST(what_is_told_meanwhile_is_told_to_be_here_only),
		TEST(a_redis_that_lost_everything_loses_sessions_but_not_what_is_known_here),
		TEST(records_that_are_none_are_as_if_they_were_not_there),
		TEST(a_full_redis_is_away),
#undef TEST
	};
	return cmocka_run_group_tests_name("state_redis_away", tests, start_server, stop_server);
}
