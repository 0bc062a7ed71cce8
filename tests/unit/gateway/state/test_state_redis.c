/* When the store of state answers, and what it tells Redis; the test is Redis. That the scripts agree is for
 * tests/exact/test_state_redis_script.c. */
#include "tests/unit/gateway/state/state_redis_answers_rig.h"

REDIS_SCRIPT_DECLARE(state_load);
REDIS_SCRIPT_DECLARE(state_save);

/* ---- no answer ---- */

static void who_gets_no_answer_in_time_goes_on_without(void **state)
{
	struct state_load load = question();
	struct state_save save = session_begins();
	const redisReply ok = number_of(0);
	struct answer answer;

	(void)state;
	connected();
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	is_late();
	assert_int_equal(saved, 1);
	assert_true(save.away);
	rig_answer(redis, REDIS_ANSWERED, &ok); /* nobody waits any more */
	rig_answer(redis, REDIS_ANSWERED, &ok); /* and that the session began was told again */
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	is_late();
	assert_int_equal(loaded, 1);
	assert_true(load.away);
	assert_int_equal(load.session_is, STATE_SESSION_KNOWN); /* begun here */
	answer_init(&answer);
	answers(&answer);
	assert_int_equal(loaded, 1);
	assert_int_equal(saved, 1);
}

/* The connection goes on, and there may be no other one for days. */
static void a_session_whose_note_was_late_is_told_again_at_once(void **state)
{
	struct state_save save = session_begins();
	const redisReply ok = number_of(0);

	(void)state;
	connected();
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	is_late();
	assert_int_equal(rig_waiting(redis), 2);
	assert_int_equal(state_memory_here(memory, &session, loop.now), STATE_HERE_BEGUN);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	assert_int_equal(state_memory_here(memory, &session, loop.now), STATE_HERE_BEGUN);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	assert_int_equal(state_memory_here(memory, &session, loop.now), STATE_HERE_NOTHING);
	assert_int_equal(rig_waiting(redis), 0);
}

static void a_session_whose_note_was_late_is_told_when_redis_is_back(void **state)
{
	struct state_save save = session_begins();

	(void)state;
	connected();
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	rig_unready(redis);
	is_late();
	assert_int_equal(rig_waiting(redis), 1);
	rig_answer(redis, REDIS_LOST, NULL);
	connected();
	assert_int_equal(rig_waiting(redis), 1);
	assert_true(sent(SLICE("2025-06-18")));
}

static void a_connection_that_breaks_leaves_nobody_waiting(void **state)
{
	struct state_load load = question();
	struct state_save save = session_begins();

	(void)state;
	connected();
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	rig_unready(redis);
	rig_answer(redis, REDIS_LOST, NULL);
	rig_answer(redis, REDIS_LOST, NULL);
	assert_true(load.away && save.away);
	assert_int_equal(loaded + saved, 2);
	struct state_load later = question();
	assert_int_equal(store->load(store, &later), STATE_DONE);
	assert_true(later.away);
}

static void who_goes_away_is_not_called(void **state)
{
	struct state_load load = question();
	struct state_save save = session_begins();
	const redisReply ok = number_of(0);
	struct answer answer;

	(void)state;
	connected();
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	store->forget_load(store, &load);
	store->forget_save(store, &save);
	answer_init(&answer);
	answers(&answer);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	assert_int_equal(loaded + saved, 0);
}

/* ---- when it is back ---- */

static struct state_save save_of(struct state_key about, bool ends)
{
	struct state_save save = session_begins();

	save.session = about;
	save.change = ends ? STATE_ENDS : STATE_BEGINS;
	return save;
}

static void what_began_or_ended_meanwhile_is_told_when_it_is_back(void **state)
{
	static const struct state_key begun = { { 11 } }, ended = { { 12 } }, both = { { 13 } };
	const struct {
		struct state_key about;
		bool ends;
	} saves[] = { { begun, false }, { ended, false }, { both, false }, { both, true } };
	const redisReply ok = number_of(0);

	(void)state;
	connected();
	struct state_save before = save_of(ended, false);
	assert_int_equal(store->save(store, &before), STATE_PENDING);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	rig_unready(redis);
	for (size_t i = 0; i < COUNT_OF(saves); i++) {
		struct state_save save = save_of(saves[i].about, i == 1 || saves[i].ends);
		assert_int_equal(store->save(store, &save), STATE_DONE);
		assert_true(save.away);
	}
	redis_buffer_clear(&redis->link->out);
	connected();
	assert_int_equal(rig_waiting(redis), 4);
	assert_true(sent(SLICE("0b000000000000000000000000000000")));
	assert_true(sent(SLICE("0c000000000000000000000000000000")));
	assert_true(sent(SLICE("0d000000000000000000000000000000")));
	for (int i = 0; i < 4; i++)
		rig_answer(redis, REDIS_ANSWERED, &ok);
	assert_int_equal(state_memory_here(memory, &begun, loop.now), STATE_HERE_NOTHING);
	assert_int_equal(state_memory_here(memory, &ended, loop.now), STATE_HERE_NOTHING);
	rig_unready(redis);
	connected();
	assert_int_equal(rig_waiting(redis), 0); /* it knows */
}

/* An answer that is lost leaves it to the session's next request, as before. */
static void what_is_told_in_vain_is_told_again_when_it_is_asked_about(void **state)
{
	struct state_save save = session_begins();
	struct state_load load = question();
	struct answer answer;

	(void)state;
	connected();
	rig_unready(redis);
	assert_int_equal(store->save(store, &save), STATE_DONE);
	connected();
	rig_unready(redis);
	rig_answer(redis, REDIS_LOST, NULL);
	assert_int_equal(state_memory_here(memory, &session, loop.now), STATE_HERE_BEGUN);
	connected();
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	answer_init(&answer);
	answer.parts[0] = (redisReply){ .type = REDIS_REPLY_NIL };
	answers(&answer);
	assert_int_equal(load.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(rig_waiting(redis), 1);
}

static void of_very_many_the_latest_are_told(void **state)
{
	enum { MOST = 1024 };

	(void)state;
	connected();
	rig_unready(redis);
	for (uint32_t i = 0; i < MOST + 50; i++) {
		struct state_save save = save_of((struct state_key){ { 9 } }, false);
		(void)memcpy(save.session.at + 4, &i, sizeof(i));
		assert_int_equal(store->save(store, &save), STATE_DONE);
	}
	connected();
	const uint64_t told = rig_waiting(redis);
	assert_true(told > 0 && told <= MOST);
}

/* ---- scripts ---- */

static void a_script_is_sent_as_text_once_and_again_when_it_is_unknown(void **state)
{
	struct state_load load = question();
	struct answer answer;

	(void)state;
	connected();
	redis_buffer_clear(&redis->link->out);
	answer_init(&answer);
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	assert_true(sent(slice_of(state_load_lua, state_load_lua_len)));
	answers(&answer);
	redis_buffer_clear(&redis->link->out);
	load = question();
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	assert_false(sent(slice_of(state_load_lua, state_load_lua_len)));
	assert_true(sent(slice_str(state_load_lua_sha1)));
	refuses("NOSCRIPT No matching script");
	assert_int_equal(loaded, 1);
	assert_true(sent(slice_of(state_load_lua, state_load_lua_len)));
	answers(&answer);
	assert_int_equal(loaded, 2);
	assert_false(load.away);
}

static void who_does_not_know_what_it_was_told_is_not_told_for_ever(void **state)
{
	struct state_load load = question();
	struct state_save save = session_begins();
	const uint32_t loaded_before = loaded, saved_before = saved;

	(void)state;
	connected();
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	refuses("NOSCRIPT No matching script");
	assert_int_equal(rig_waiting(redis), 0);
	assert_int_equal(loaded, loaded_before + 1);
	assert_true(load.away);
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	refuses("NOSCRIPT No matching script");
	assert_int_equal(rig_waiting(redis), 0);
	assert_int_equal(saved, saved_before + 1);
	assert_true(save.away);
}

static void after_a_new_connection_scripts_are_sent_as_text_again(void **state)
{
	struct state_save save = session_begins();
	const redisReply ok = number_of(0);

	(void)state;
	connected();
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	rig_unready(redis);
	connected();
	redis_buffer_clear(&redis->link->out);
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	assert_true(sent(slice_of(state_save_lua, state_save_lua_len)));
}

static void an_error_is_as_good_as_no_answer(void **state)
{
	struct state_load load = question();

	(void)state;
	connected();
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	refuses("WRONGTYPE Operation against a key holding the wrong kind of value");
	assert_int_equal(loaded, 1);
	assert_true(load.away);
}

/* ---- at the beginning ---- */

static void the_first_requests_wait_for_the_first_connection(void **state)
{
	struct state_load load = question(), gone = question();
	struct state_save save = session_begins(), gone_save = session_begins();
	const redisReply ok = number_of(0);
	struct answer answer;

	(void)state;
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	assert_int_equal(store->load(store, &gone), STATE_PENDING);
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	assert_int_equal(store->save(store, &gone_save), STATE_PENDING);
	store->forget_load(store, &gone);
	store->forget_save(store, &gone_save);
	assert_int_equal(rig_waiting(redis), 0);
	connected();
	assert_int_equal(rig_waiting(redis), 2);
	answer_init(&answer);
	answers(&answer);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	assert_int_equal(loaded, 1);
	assert_int_equal(saved, 1);
	assert_false(load.away || save.away);
}

static void they_wait_no_longer_than_the_deadline(void **state)
{
	struct state_load load = question(), later = question();
	struct state_save save = session_begins();

	(void)state;
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	struct net_timer *patience = loop.timer;
	assert_true(patience->due == loop.now + settings.deadline);
	assert_true(rig_fire(patience));
	assert_int_equal(loaded, 1);
	assert_int_equal(saved, 1);
	assert_true(load.away && save.away);
	assert_int_equal(store->load(store, &later), STATE_DONE); /* that was the only time */
}

static void a_first_attempt_that_fails_ends_the_wait(void **state)
{
	struct state_load load = question();

	(void)state;
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	fake_failed(redis->link);
	assert_int_equal(loaded, 1);
	assert_true(load.away);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(who_gets_no_answer_in_time_goes_on_without),
		TEST(a_session_whose_note_was_late_is_told_again_at_once),
		TEST(a_session_whose_note_was_late_is_told_when_redis_is_back),
		TEST(a_connection_that_breaks_leaves_nobody_waiting),
		TEST(who_goes_away_is_not_called),
		TEST(what_began_or_ended_meanwhile_is_told_when_it_is_back),
		TEST(what_is_told_in_vain_is_told_again_when_it_is_asked_about),
		TEST(of_very_many_the_latest_are_told),
		TEST(a_script_is_sent_as_text_once_and_again_when_it_is_unknown),
		TEST(who_does_not_know_what_it_was_told_is_not_told_for_ever),
		TEST(after_a_new_connection_scripts_are_sent_as_text_again),
		TEST(an_error_is_as_good_as_no_answer),
		TEST(the_first_requests_wait_for_the_first_connection),
		TEST(they_wait_no_longer_than_the_deadline),
		TEST(a_first_attempt_that_fails_ends_the_wait),
#undef TEST
	};
	return cmocka_run_group_tests_name("state_redis", tests, NULL, NULL);
}
