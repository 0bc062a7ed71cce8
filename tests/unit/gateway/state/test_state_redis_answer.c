/* What the store of state makes of Redis's answers, of those that are none, and of none yet; the test is Redis. */
#include "tests/unit/gateway/state/state_redis_answers_rig.h"

/* ---- answers ---- */

static void an_answer_is_what_redis_says(void **state)
{
	static const struct state_key id = { { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
					       15 } };
	struct state_load load = question();
	struct answer answer;

	(void)state;
	connected();
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	answer_init(&answer);
	answers(&answer);
	assert_int_equal(loaded, 1);
	assert_false(load.away);
	assert_int_equal(load.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(load.revision, REVISION_2025_03_26);
	assert_true(state_key_eq(&load.loop.id, &id));
	assert_int_equal(load.loop.known, 1);
	assert_int_equal(load.loop.rounds, 3);
	assert_int_equal(load.loop.tokens, 40);
	assert_int_equal(load.loop.usd, 50);
	assert_int_equal(load.used.requests, 6);
	assert_int_equal(load.used.tokens, 70);
	assert_int_equal(load.used.usd, 800);
	assert_memory_equal(load.loop.target.at, "the model, the endpoint.", STATE_TARGET_BYTES);
	assert_true(slice_eq(load.found[0], SLICE("[blocks]")));
}

/* ---- guesses ---- */

static struct state_load guessing_question(void)
{
	struct state_load load = question();

	load.may_guess = true;
	return load;
}

static void what_nobody_here_knows_is_guessed_as_the_request_says(void **state)
{
	struct state_load load = guessing_question();
	struct answer answer;

	(void)state;
	connected();
	assert_int_equal(store->load(store, &load), STATE_GUESSED);
	assert_int_equal(loaded, 0);
	assert_int_equal(load.session_is, STATE_SESSION_UNSURE);
	assert_true(state_key_none(&load.loop.id));
	assert_int_equal(load.loop.known, 1); /* its call is no forgery */
	assert_true(slice_absent(load.found[0]));
	answer_init(&answer);
	answers(&answer);
	assert_int_equal(loaded, 1);
	assert_int_equal(load.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(load.loop.tokens, 40);
	assert_true(slice_eq(load.found[0], SLICE("[blocks]")));
}

static void what_this_process_knows_is_the_guess(void **state)
{
	struct state_save save = session_begins();
	struct state_load load = guessing_question();

	(void)state;
	connected();
	save.loop = (struct state_key){ { 9 } };
	save.tokens = 40;
	save.calls = &call;
	save.call_count = 1;
	save.rounds = 3;
	save.blocks = SLICE("[blocks]");
	assert_int_equal(store->save(store, &save), STATE_PENDING);
	assert_int_equal(store->load(store, &load), STATE_GUESSED);
	assert_int_equal(load.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(load.revision, REVISION_2025_06_18);
	assert_true(state_key_eq(&load.loop.id, &save.loop));
	assert_int_equal(load.loop.rounds, 3);
	assert_int_equal(load.loop.tokens, 40);
	assert_true(slice_eq(load.found[0], SLICE("[blocks]")));

	/* What Redis has of it, too, is in memory once. */
	const char *guessed = load.found[0].at;
	const redisReply told = number_of(0);
	struct answer answer;
	answer_init(&answer);
	rig_answer(redis, REDIS_ANSWERED, &told);
	answers(&answer);
	assert_int_equal(loaded, 1);
	assert_ptr_equal(load.found[0].at, guessed);
}

static void who_goes_ahead_before_the_first_connection_waits_for_it_once(void **state)
{
	struct state_load load = guessing_question(), gone = guessing_question();

	(void)state;
	assert_int_equal(store->load(store, &load), STATE_GUESSED);
	assert_int_equal(store->load(store, &gone), STATE_GUESSED);
	store->forget_load(store, &gone);
	loop.now += settings.deadline;
	assert_true(rig_fire(loop.timer));
	assert_int_equal(loaded, 1);
	assert_true(load.away);
	assert_int_equal(load.session_is, STATE_SESSION_UNSURE);
}

static void a_session_that_ended_here_is_not_guessed_to_be_there(void **state)
{
	struct state_save save = session_begins();
	struct state_load load = guessing_question();

	(void)state;
	connected();
	rig_unready(redis);
	save.change = STATE_ENDS;
	assert_int_equal(store->save(store, &save), STATE_DONE);
	rig_ready(redis);
	assert_int_equal(store->load(store, &load), STATE_PENDING);
}

/* ---- answers that are none ---- */

struct spoilt {
	const char *name;
	size_t part;
	redisReply with;
};

/* Of a sum that was lost, or lacks what was spent while Redis was away. */
static void a_loop_has_spent_the_larger_of_two_sums(void **state)
{
	static const struct {
		const char *name;
		uint64_t tokens, usd, tokens_then, usd_then;
	} rows[] = {
		{ "less of both", 10, 20, 40, 50 },
		{ "more tokens", 60, 20, 60, 50 },
		{ "more money", 10, 90, 40, 90 },
		{ "more of both", 60, 90, 60, 90 },
	};
	static const struct state_key id = { { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
					       15 } };
	struct answer answer;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct state_save mine = { .tenant = tenant,
					   .loop = id,
					   .calls = &call,
					   .call_count = 1,
					   .tokens = rows[i].tokens,
					   .usd = rows[i].usd,
					   .now = loop.now };
		print_message("%s\n", rows[i].name);
		if (i > 0) {
			(void)end(state);
			(void)begin(state);
		}
		struct state_load load = question();
		connected();
		(void)state_memory_state(memory)->save(state_memory_state(memory), &mine);
		assert_int_equal(store->load(store, &load), STATE_PENDING);
		answer_init(&answer);
		answers(&answer);
		assert_int_equal(load.loop.tokens, rows[i].tokens_then);
		assert_int_equal(load.loop.usd, rows[i].usd_then);
	}
}

static void an_answer_of_another_form_is_none(void **state)
{
	const struct spoilt rows[] = {
		{ "a revision that is a number", 0, number_of(3) },
		{ "calls known that are a text", 1, text_of("1") },
		{ "fewer than no calls known", 1, number_of(-1) },
		{ "rounds beyond all bounds", 2, number_of(1LL << 40) },
		{ "a loop's id that is too short", 3, text_of("00") },
		{ "a loop's id that is not hex", 3, text_of("000102030405060708090A0b0c0d0e0f") },
		{ "tokens that are a number", 4, number_of(1) },
		{ "tokens that are none", 4, text_of("-1") },
		{ "money that is none", 5, text_of("") },
		{ "requests of a session that are a number", 7, number_of(6) },
		{ "tokens of a session that are none", 8, text_of("many") },
		{ "no word of its money", 9, { .type = REDIS_REPLY_NIL } },
		{ "a place that is a number", 6, number_of(1) },
		{ "a place that is too short", 6, text_of("somewhere") },
		{ "no word of a place", 6, { .type = REDIS_REPLY_NIL } },
	};

	(void)state;
	connected();
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct state_load load = question();
		struct answer answer;
		assert_int_equal(store->load(store, &load), STATE_PENDING);
		answer_init(&answer);
		answer.parts[rows[i].part] = rows[i].with;
		answers(&answer);
		if (!load.away || load.session_is != STATE_SESSION_UNSURE || load.loop.known != 0 ||
		    !slice_absent(load.found[0]))
			fail_msg("%s", rows[i].name);
	}
}

static void an_answer_with_more_or_fewer_parts_is_none(void **state)
{
	(void)state;
	connected();
	for (size_t parts = 0; parts < COUNT_OF(((struct answer *)NULL)->parts); parts++) {
		struct state_load load = question();
		struct answer answer;
		assert_int_equal(store->load(store, &load), STATE_PENDING);
		answer_init(&answer);
		answer.reply.elements = parts;
		answers(&answer);
		assert_true(load.away);
	}
}

static void blocks_of_another_form_are_absent(void **state)
{
	const redisReply rows[] = { { .type = REDIS_REPLY_NIL }, number_of(1) };

	(void)state;
	connected();
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct state_load load = question();
		struct answer answer;
		assert_int_equal(store->load(store, &load), STATE_PENDING);
		answer_init(&answer);
		answer.parts[10] = rows[i];
		answers(&answer);
		assert_false(load.away);
		assert_true(slice_absent(load.found[0]));
	}
}

/* Another gateway's provider did not take them: what this process has of them is forgotten, too. */
static void blocks_that_are_of_no_use_are_forgotten_here(void **state)
{
	struct state_save save = { .tenant = tenant,
				   .calls = &call,
				   .call_count = 1,
				   .blocks = SLICE("[mine]"),
				   .now = loop.now };
	struct state_load load = question(), away = question();
	struct answer answer;

	(void)state;
	(void)state_memory_state(memory)->save(state_memory_state(memory), &save);
	(void)state_memory_state(memory)->load(state_memory_state(memory), &away);
	assert_true(slice_eq(away.found[0], SLICE("[mine]")));
	connected();
	assert_int_equal(store->load(store, &load), STATE_PENDING);
	answer_init(&answer);
	answer.parts[10] = text_of("");
	answers(&answer);
	assert_true(slice_absent(load.found[0]));
	rig_unready(redis);
	assert_int_equal(store->load(store, &away), STATE_DONE);
	assert_true(slice_absent(away.found[0]));
}

static void blocks_are_dropped_one_by_one(void **state)
{
	const struct state_key turns[] = { { { 1 } }, { { 2 } }, { { 3 } } };
	const redisReply ok = { .type = REDIS_REPLY_STATUS, .str = (char *)"OK", .len = 2 };

	(void)state;
	connected();
	redis_buffer_clear(&redis->link->out);
	store->drop_blocks(store, tenant, turns, COUNT_OF(turns));
	assert_int_equal(rig_waiting(redis), COUNT_OF(turns));
	assert_true(sent(SLICE(
		"b:03000000000000000000000000000000\r\n$0\r\n\r\n$2\r\nPX\r\n$4\r\n1000\r\n")));
	for (size_t i = 0; i < COUNT_OF(turns); i++)
		rig_answer(redis, REDIS_ANSWERED, &ok);
	rig_unready(redis);
	store->drop_blocks(store, tenant, turns, COUNT_OF(turns)); /* nobody to tell */
	assert_int_equal(rig_waiting(redis), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(an_answer_is_what_redis_says),
		TEST(a_loop_has_spent_the_larger_of_two_sums),
		TEST(what_nobody_here_knows_is_guessed_as_the_request_says),
		TEST(what_this_process_knows_is_the_guess),
		TEST(who_goes_ahead_before_the_first_connection_waits_for_it_once),
		TEST(a_session_that_ended_here_is_not_guessed_to_be_there),
		TEST(an_answer_of_another_form_is_none),
		TEST(an_answer_with_more_or_fewer_parts_is_none),
		TEST(blocks_of_another_form_are_absent),
		TEST(blocks_that_are_of_no_use_are_forgotten_here),
		TEST(blocks_are_dropped_one_by_one),
#undef TEST
	};
	return cmocka_run_group_tests_name("state_redis_answer", tests, NULL, NULL);
}
