/* state/state_load.lua and state/state_save.lua in a real Redis, behind the real store: two gateways are as one.
 *
 * ctest: timeout=60 */
#include "tests/exact/state_redis_rig.h"

static const struct slice no_blocks;

static void a_session_that_begins_at_one_gateway_is_known_at_the_other(void **state)
{
	(void)state;
	assert_int_equal(session_at(b, "s").session_is, STATE_SESSION_UNKNOWN);
	session_begins(a, "s");
	const struct state_load found = session_at(b, "s");
	assert_false(found.away);
	assert_int_equal(found.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(found.revision, REVISION_2025_06_18);
	assert_int_equal(session_at(b, "t").session_is, STATE_SESSION_UNKNOWN);
	assert_true(session_ends(b, "s").ended);
	assert_int_equal(session_at(a, "s").session_is, STATE_SESSION_UNKNOWN);
	assert_false(session_ends(a, "s").ended);
}

static void what_a_session_uses_is_counted_in_redis(void **state)
{
	struct state_save save = { .session = key_of(STATE_SESSION, "s"),
				   .requests = 1,
				   .tokens = 20,
				   .usd = UINT64_MAX };

	(void)state;
	save_now(a, &save); /* nobody's: it is not made */
	redisReply *keys = ask("KEYS *s:*");
	assert_int_equal(keys->elements, 0);
	freeReplyObject(keys);
	session_begins(a, "s");
	save_now(a, &save);
	save_now(b, &save);
	keys = ask("KEYS *s:*");
	assert_int_equal(keys->elements, 1);
	redisReply *values = ask("HMGET %s requests tokens usd", keys->element[0]->str);
	assert_string_equal(values->element[0]->str, "2");
	assert_string_equal(values->element[1]->str, "40");
	assert_string_equal(values->element[2]->str, "18014398509481982"); /* 2 x (2^53 - 1) */
	freeReplyObject(values);
	freeReplyObject(keys);
	const struct state_used used = session_at(b, "s").used;
	assert_int_equal(used.requests, 2);
	assert_int_equal(used.tokens, 40);
	assert_true(used.usd == (UINT64_C(1) << 54) - 2);
}

static void nobody_waits_for_a_note_without_done(void **state)
{
	struct state_save save = { .tenant = tenant,
				   .session = key_of(STATE_SESSION, "s"),
				   .change = STATE_BEGINS,
				   .now = loop.now };

	(void)state;
	assert_int_equal(a->state->save(a->state, &save), STATE_DONE);
	(void)memset(&save, 0xff, sizeof(save)); /* it may be gone by then */
	exchange(a);
	assert_int_equal(session_at(b, "s").session_is, STATE_SESSION_KNOWN);
}

static void a_loop_goes_on_at_the_other_gateway(void **state)
{
	const struct state_key id = key_of(STATE_LOOP, "l");

	(void)state;
	call_issued(a, "l", "c1", 0, 100, no_blocks);
	const struct state_loop first = loop_of_one(b, "c1");
	assert_true(state_key_eq(&first.id, &id));
	call_issued(b, "l", "c2", 1, 50, no_blocks);
	const struct state_loop loop_there = loop_of_one(a, "c2");
	assert_int_equal(loop_there.rounds, 1);
	assert_int_equal(loop_there.known, 1);
	assert_int_equal(loop_there.tokens, 150);
	assert_int_equal(loop_there.usd, 300);
	assert_int_equal(loop_there.target.at[0], 1);
	assert_int_equal(loop_there.target.at[STATE_TARGET_BYTES - 1], 0xff);
	assert_int_equal(loop_of_one(b, "c1").target.at[0], 1);
	assert_int_equal(loop_of_one(a, "forged").known, 0);
}

static void of_several_loops_the_one_with_most_tokens_counts(void **state)
{
	static const char *const calls[] = { "small", "forged", "large", "middle" };
	const struct state_key large = key_of(STATE_LOOP, "L");

	(void)state;
	call_issued(a, "S", "small", 7, 10, no_blocks);
	call_issued(a, "L", "large", 2, 30, no_blocks);
	call_issued(a, "M", "middle", 3, 20, no_blocks);
	const struct state_loop found = loop_at(b, calls, COUNT_OF(calls));
	assert_true(state_key_eq(&found.id, &large));
	assert_int_equal(found.tokens, 30);
	assert_int_equal(found.usd, 60);
	assert_int_equal(found.known, 3);
	assert_int_equal(found.rounds, 7);
	assert_int_equal(found.target.at[0], 2);
}

static void blocks_are_found_as_they_were_at_the_other_gateway(void **state)
{
	static char text[EACH + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)i; /* NUL and line ends among them */
	assert_true(call_issued(a, "l", "c1", 0, 1, slice_of(text, EACH)).blocks_kept);
	assert_true(slice_eq(blocks_at(b, "c1"), slice_of(text, EACH)));
	assert_false(call_issued(a, "l", "c2", 0, 1, slice_of(text, EACH + 1)).blocks_kept);
	assert_true(slice_absent(blocks_at(b, "c2")));
	const struct state_key keys[] = { key_of(STATE_CALL, "c1") };
	b->state->drop_blocks(b->state, tenant, keys, 1);
	exchange(b);
	assert_true(slice_absent(blocks_at(a, "c1"))); /* though it wrote them itself */
	assert_true(slice_absent(blocks_at(b, "c1")));
	assert_int_equal(loop_of_one(a, "c1").known, 1);
}

/* The calls c0, c1, ..., as many as a history may have. */
static void name_calls(struct state_key keys[STATE_BLOCKS_MAX])
{
	char name[16];

	for (uint32_t i = 0; i < STATE_BLOCKS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "c%u", i);
		keys[i] = key_of(STATE_CALL, name);
	}
}

/* Forged ids cost next to nothing, and who has lost a few blocks still finds those in front. */
static void blocks_are_looked_for_from_the_latest_turn_back(void **state)
{
	enum { TURNS = STATE_BLOCKS_MAX, MISSES = 8 };
	struct state_key keys[TURNS];
	struct state_load question = { .blocks = keys, .block_count = TURNS };

	(void)state;
	name_calls(keys);
	command("CONFIG RESETSTAT", NULL);
	load_now(b, &question);
	for (uint32_t i = 0; i < TURNS; i++)
		assert_true(slice_absent(question.found[i]));
	redisReply *stats = ask("INFO commandstats");
	assert_non_null(strstr(stats->str, "cmdstat_getex:calls=8,"));
	freeReplyObject(stats);

	call_issued(a, "l", "c255", 2, 1, SLICE("last"));
	call_issued(a, "l", "c247", 1, 1, SLICE("in front of seven"));
	call_issued(a, "l", "c245", 0, 1, SLICE("in front of eight"));
	load_now(b, &question);
	assert_true(slice_eq(question.found[TURNS - 1], SLICE("last")));
	assert_true(slice_eq(question.found[TURNS - 1 - MISSES], SLICE("in front of seven")));
	assert_true(slice_absent(question.found[TURNS - 3 - MISSES]));

	for (uint32_t i = 0; i < TURNS; i++)
		keys[i] = keys[TURNS - 1]; /* one that is there, again and again */
	command("CONFIG RESETSTAT", NULL);
	load_now(b, &question);
	assert_true(slice_eq(question.found[TURNS - 1], SLICE("last")));
	assert_true(slice_absent(question.found[0]));
	stats = ask("INFO commandstats");
	assert_non_null(strstr(stats->str, "cmdstat_getex:calls=1,"));
	freeReplyObject(stats);
}

static void all_blocks_of_a_long_loop_are_found(void **state)
{
	enum { TURNS = STATE_BLOCKS_MAX };
	struct state_key keys[TURNS];
	struct state_load question = { .blocks = keys, .block_count = TURNS };
	char name[16];

	(void)state;
	name_calls(keys);
	for (uint32_t i = 0; i < TURNS; i++) {
		(void)snprintf(name, sizeof(name), "c%u", i);
		call_issued(a, "l", name, i, 1, slice_str(name));
	}
	load_now(b, &question);
	for (uint32_t i = 0; i < TURNS; i++) {
		(void)snprintf(name, sizeof(name), "c%u", i);
		assert_true(slice_eq(question.found[i], slice_str(name)));
	}
}

static void everything_at_once_is_one_call(void **state)
{
	const struct state_key call = key_of(STATE_CALL, "c1");
	struct state_save save = { .session = key_of(STATE_SESSION, "s"),
				   .change = STATE_BEGINS,
				   .revision = REVISION_2025_11_25,
				   .requests = 1,
				   .tokens = 5,
				   .loop = key_of(STATE_LOOP, "l"),
				   .rounds = 3,
				   .calls = &call,
				   .call_count = 1,
				   .blocks = SLICE("[]") };
	struct state_load question = { .session = save.session,
				       .calls = &call,
				       .call_count = 1,
				       .blocks = &call,
				       .block_count = 1 };

	(void)state;
	call_issued(a, "other", "c0", 0, 1, no_blocks); /* Redis knows both scripts */
	(void)loop_of_one(a, "c0");
	(void)loop_of_one(b, "c0");
	command("CONFIG RESETSTAT", NULL);
	save_now(a, &save);
	load_now(b, &question);
	assert_int_equal(question.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(question.revision, REVISION_2025_11_25);
	assert_int_equal(question.loop.rounds, 3);
	assert_int_equal(question.loop.tokens, 5);
	assert_true(slice_eq(question.found[0], SLICE("[]")));
	redisReply *stats = ask("INFO commandstats");
	assert_non_null(strstr(stats->str, "cmdstat_evalsha:calls=2,"));
	assert_null(strstr(stats->str, "cmdstat_eval:"));
	freeReplyObject(stats);
}

static void everything_expires(void **state)
{
	(void)state;
	session_begins(a, "s");
	call_issued(a, "l", "c1", 0, 1, SLICE("blocks"));
	redisReply *keys = ask("KEYS sluice:state:*");
	assert_int_equal(keys->elements, 4);
	for (size_t i = 0; i < keys->elements; i++) {
		const bool blocks = strstr(keys->element[i]->str, "}b:") != NULL;
		redisReply *left = ask("PTTL %s", keys->element[i]->str);
		assert_true(left->integer > (blocks ? 590000 : 3590000));
		assert_true(left->integer <= (blocks ? 600000 : 3600000));
		freeReplyObject(left);
	}
	freeReplyObject(keys);
}

static void a_time_begins_anew_with_each_use(void **state)
{
	(void)state;
	session_begins(a, "s");
	call_issued(a, "l", "c1", 0, 1, SLICE("blocks"));
	redisReply *keys = ask("KEYS sluice:state:*");
	for (size_t i = 0; i < keys->elements; i++)
		command("PEXPIRE %s 5000", keys->element[i]->str);
	(void)session_at(b, "s");
	(void)blocks_at(b, "c1");
	call_issued(b, "l", "c2", 1, 1, no_blocks);
	for (size_t i = 0; i < keys->elements; i++) {
		const bool call = strstr(keys->element[i]->str, "}c:") != NULL;
		redisReply *left = ask("PTTL %s", keys->element[i]->str);
		assert_true(call ? left->integer <= 5000 : left->integer > 500000);
		freeReplyObject(left);
	}
	freeReplyObject(keys);
}

static void a_redis_that_forgot_the_scripts_is_told_them_again(void **state)
{
	(void)state;
	session_begins(a, "s");
	assert_int_equal(session_at(a, "s").session_is, STATE_SESSION_KNOWN);
	command("SCRIPT FLUSH", NULL);
	const struct state_load found = session_at(a, "s");
	assert_false(found.away);
	assert_int_equal(found.session_is, STATE_SESSION_KNOWN);
	command("SCRIPT FLUSH", NULL);
	assert_true(session_ends(a, "s").ended);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(a_session_that_begins_at_one_gateway_is_known_at_the_other),
		TEST(what_a_session_uses_is_counted_in_redis),
		TEST(nobody_waits_for_a_note_without_done),
		TEST(a_loop_goes_on_at_the_other_gateway),
		TEST(of_several_loops_the_one_with_most_tokens_counts),
		TEST(blocks_are_found_as_they_were_at_the_other_gateway),
		TEST(blocks_are_looked_for_from_the_latest_turn_back),
		TEST(all_blocks_of_a_long_loop_are_found),
		TEST(everything_at_once_is_one_call),
		TEST(everything_expires),
		TEST(a_time_begins_anew_with_each_use),
		TEST(a_redis_that_forgot_the_scripts_is_told_them_again),
#undef TEST
	};
	return cmocka_run_group_tests_name("state_redis_script", tests, start_server, stop_server);
}
