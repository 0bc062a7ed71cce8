/* When the store of state answers, and what it makes of answers that are none; the test is Redis. That the
 * scripts agree is for tests/exact/test_state_redis_script.c. */
#include "tests/unit/gateway/store_redis_rig.h"

#include "codec/sampling.h"
#include "gateway/state_redis.h"
#include "gateway/store_redis_script.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct config_store settings = {
	.redis = true,
	.deadline = 20 * MSEC,
	.blocks = { .bytes = 1 << 16, .each = 4096, .ttl = SEC }
};
static const struct state_key tenant = { { 7 } }, session = { { 8 } }, call = { { 9 } };

static struct net_loop loop;
static struct store_redis *redis;
static struct state_memory *memory;
static struct state *store;
static struct arena_pool pool;
static struct arena arena;
static uint32_t recalled, noted;

static void on_recalled(struct state_recall *recall)
{
	(void)recall;
	recalled++;
}

static void on_noted(struct state_note *note)
{
	(void)note;
	noted++;
}

/* Before its first connection. */
static int begin(void **state)
{
	const struct state_bounds bounds = { .sessions = 100,
					     .calls = 100,
					     .loops = 100,
					     .blocks_bytes = settings.blocks.bytes,
					     .blocks_each = settings.blocks.each,
					     .blocks_ttl = settings.blocks.ttl };

	(void)state;
	loop = (struct net_loop){ .now = 100 * SEC, .wall_s = 1767571200 };
	recalled = noted = 0;
	redis = rig_new(&loop, 8); /* lives until the process ends */
	memory = state_memory_new(&bounds);
	must(memory != NULL);
	struct state_redis *made = state_redis_new(&loop, redis, memory, &settings, redis->metrics);
	must(made != NULL);
	store = state_redis_state(made);
	arena_init(&arena, &pool, 1 << 20);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_give(&arena);
	arena_pool_fini(&pool);
	state_memory_free(memory);
	return 0;
}

static struct state_recall question(void)
{
	return (struct state_recall){ .tenant = tenant,
				      .session = session,
				      .calls = &call,
				      .call_count = 1,
				      .blocks = &call,
				      .block_count = 1,
				      .arena = &arena,
				      .now = loop.now,
				      .done = on_recalled };
}

static struct state_note session_begins(void)
{
	return (struct state_note){ .tenant = tenant,
				    .session = session,
				    .begin_session = true,
				    .revision = REVISION_2025_06_18,
				    .now = loop.now,
				    .done = on_noted };
}

/* ---- Redis's side ---- */

/* The limits ask for something of their own when the connection is ready. */
static void connected(void)
{
	const redisReply name = { .type = REDIS_REPLY_STRING, .str = (char *)"first", .len = 5 };

	rig_ready(redis);
	for (uint64_t left = rig_waiting(redis); left > 0; left--) {
		const struct redis_link *link = redis->link;
		if (link->ring[link->first % RIG_REQUESTS].kind == REDIS_GUEST)
			return;
		rig_answer(redis, REDIS_ANSWERED, &name);
	}
}

static bool sent(struct slice text)
{
	return memmem(redis->link->out.at, redis->link->out.len, text.at, text.len) != NULL;
}

static void refuses(const char *error)
{
	const redisReply reply = { .type = REDIS_REPLY_ERROR,
				   .str = (char *)(uintptr_t)error,
				   .len = strlen(error) };

	redis_buffer_clear(&redis->link->out);
	rig_answer(redis, REDIS_REFUSED, &reply);
}

static void is_late(void)
{
	struct redis_link *link = redis->link;

	link->events->late(link->owner, &link->ring[link->first % RIG_REQUESTS]);
}

/* An answer to question() that can be spoiled. */
struct answer {
	redisReply parts[11], *elements[11], reply;
};

static redisReply text_of(const char *text)
{
	return (redisReply){ .type = REDIS_REPLY_STRING,
			     .str = (char *)(uintptr_t)text,
			     .len = strlen(text) };
}

static redisReply number_of(long long number)
{
	return (redisReply){ .type = REDIS_REPLY_INTEGER, .integer = number };
}

static void answer_init(struct answer *answer)
{
	*answer = (struct answer){
		.parts = { text_of("2025-03-26"), number_of(1), number_of(3),
			   text_of("000102030405060708090a0b0c0d0e0f"), text_of("40"),
			   text_of("50"), text_of("the model, the endpoint."), text_of("6"),
			   text_of("70"), text_of("800"), text_of("[blocks]") },
		.reply = { .type = REDIS_REPLY_ARRAY, .elements = COUNT_OF(answer->parts) },
	};
	for (size_t i = 0; i < COUNT_OF(answer->parts); i++)
		answer->elements[i] = &answer->parts[i];
	answer->reply.element = answer->elements;
}

static void answers(const struct answer *answer)
{
	rig_answer(redis, REDIS_ANSWERED, &answer->reply);
}

/* ---- answers ---- */

static void an_answer_is_what_redis_says(void **state)
{
	static const struct state_key id = { { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
					       15 } };
	struct state_recall recall = question();
	struct answer answer;

	(void)state;
	connected();
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	answer_init(&answer);
	answers(&answer);
	assert_int_equal(recalled, 1);
	assert_false(recall.away);
	assert_int_equal(recall.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(recall.revision, REVISION_2025_03_26);
	assert_true(state_key_eq(&recall.loop.id, &id));
	assert_int_equal(recall.loop.known, 1);
	assert_int_equal(recall.loop.rounds, 3);
	assert_int_equal(recall.loop.tokens, 40);
	assert_int_equal(recall.loop.usd, 50);
	assert_int_equal(recall.used.requests, 6);
	assert_int_equal(recall.used.tokens, 70);
	assert_int_equal(recall.used.usd, 800);
	assert_memory_equal(recall.loop.place.at, "the model, the endpoint.", STATE_PLACE_BYTES);
	assert_true(slice_eq(recall.found[0], SLICE("[blocks]")));
}

/* ---- guesses ---- */

static struct state_recall guessing_question(void)
{
	struct state_recall recall = question();

	recall.may_guess = true;
	return recall;
}

static void what_nobody_here_knows_is_guessed_as_the_request_says(void **state)
{
	struct state_recall recall = guessing_question();
	struct answer answer;

	(void)state;
	connected();
	assert_int_equal(store->recall(store, &recall), STATE_GUESSED);
	assert_int_equal(recalled, 0);
	assert_int_equal(recall.session_is, STATE_SESSION_UNSURE);
	assert_true(state_key_none(&recall.loop.id));
	assert_int_equal(recall.loop.known, 1); /* its call is no forgery */
	assert_true(slice_absent(recall.found[0]));
	answer_init(&answer);
	answers(&answer);
	assert_int_equal(recalled, 1);
	assert_int_equal(recall.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(recall.loop.tokens, 40);
	assert_true(slice_eq(recall.found[0], SLICE("[blocks]")));
}

static void what_this_process_knows_is_the_guess(void **state)
{
	struct state_note note = session_begins();
	struct state_recall recall = guessing_question();

	(void)state;
	connected();
	note.loop = (struct state_key){ { 9 } };
	note.tokens = 40;
	note.calls = &call;
	note.call_count = 1;
	note.rounds = 3;
	note.blocks = SLICE("[blocks]");
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	assert_int_equal(store->recall(store, &recall), STATE_GUESSED);
	assert_int_equal(recall.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(recall.revision, REVISION_2025_06_18);
	assert_true(state_key_eq(&recall.loop.id, &note.loop));
	assert_int_equal(recall.loop.rounds, 3);
	assert_int_equal(recall.loop.tokens, 40);
	assert_true(slice_eq(recall.found[0], SLICE("[blocks]")));

	/* What Redis has of it, too, is in memory once. */
	const char *guessed = recall.found[0].at;
	const redisReply told = number_of(0);
	struct answer answer;
	answer_init(&answer);
	rig_answer(redis, REDIS_ANSWERED, &told);
	answers(&answer);
	assert_int_equal(recalled, 1);
	assert_ptr_equal(recall.found[0].at, guessed);
}

static void who_goes_ahead_before_the_first_connection_waits_for_it_once(void **state)
{
	struct state_recall recall = guessing_question(), gone = guessing_question();

	(void)state;
	assert_int_equal(store->recall(store, &recall), STATE_GUESSED);
	assert_int_equal(store->recall(store, &gone), STATE_GUESSED);
	store->forget_recall(store, &gone);
	loop.now += settings.deadline;
	assert_true(rig_fire(loop.timer));
	assert_int_equal(recalled, 1);
	assert_true(recall.away);
	assert_int_equal(recall.session_is, STATE_SESSION_UNSURE);
}

static void a_session_that_ended_here_is_not_guessed_to_be_there(void **state)
{
	struct state_note note = session_begins();
	struct state_recall recall = guessing_question();

	(void)state;
	connected();
	rig_unready(redis);
	note.begin_session = false;
	note.end_session = true;
	assert_int_equal(store->remember(store, &note), STATE_DONE);
	rig_ready(redis);
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
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
		struct state_note mine = { .tenant = tenant,
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
		struct state_recall recall = question();
		connected();
		(void)state_memory_state(memory)->remember(state_memory_state(memory), &mine);
		assert_int_equal(store->recall(store, &recall), STATE_PENDING);
		answer_init(&answer);
		answers(&answer);
		assert_int_equal(recall.loop.tokens, rows[i].tokens_then);
		assert_int_equal(recall.loop.usd, rows[i].usd_then);
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
		struct state_recall recall = question();
		struct answer answer;
		assert_int_equal(store->recall(store, &recall), STATE_PENDING);
		answer_init(&answer);
		answer.parts[rows[i].part] = rows[i].with;
		answers(&answer);
		if (!recall.away || recall.session_is != STATE_SESSION_UNSURE ||
		    recall.loop.known != 0 || !slice_absent(recall.found[0]))
			fail_msg("%s", rows[i].name);
	}
}

static void an_answer_with_more_or_fewer_parts_is_none(void **state)
{
	(void)state;
	connected();
	for (size_t parts = 0; parts < COUNT_OF(((struct answer *)NULL)->parts); parts++) {
		struct state_recall recall = question();
		struct answer answer;
		assert_int_equal(store->recall(store, &recall), STATE_PENDING);
		answer_init(&answer);
		answer.reply.elements = parts;
		answers(&answer);
		assert_true(recall.away);
	}
}

static void blocks_of_another_form_are_absent(void **state)
{
	const redisReply rows[] = { { .type = REDIS_REPLY_NIL }, number_of(1) };

	(void)state;
	connected();
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct state_recall recall = question();
		struct answer answer;
		assert_int_equal(store->recall(store, &recall), STATE_PENDING);
		answer_init(&answer);
		answer.parts[10] = rows[i];
		answers(&answer);
		assert_false(recall.away);
		assert_true(slice_absent(recall.found[0]));
	}
}

/* Another gateway's provider did not take them: what this process has of them is forgotten, too. */
static void blocks_that_are_of_no_use_are_forgotten_here(void **state)
{
	struct state_note note = { .tenant = tenant,
				   .calls = &call,
				   .call_count = 1,
				   .blocks = SLICE("[mine]"),
				   .now = loop.now };
	struct state_recall recall = question(), away = question();
	struct answer answer;

	(void)state;
	(void)state_memory_state(memory)->remember(state_memory_state(memory), &note);
	(void)state_memory_state(memory)->recall(state_memory_state(memory), &away);
	assert_true(slice_eq(away.found[0], SLICE("[mine]")));
	connected();
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	answer_init(&answer);
	answer.parts[10] = text_of("");
	answers(&answer);
	assert_true(slice_absent(recall.found[0]));
	rig_unready(redis);
	assert_int_equal(store->recall(store, &away), STATE_DONE);
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

/* ---- no answer ---- */

static void who_gets_no_answer_in_time_goes_on_without(void **state)
{
	struct state_recall recall = question();
	struct state_note note = session_begins();
	const redisReply ok = number_of(0);
	struct answer answer;

	(void)state;
	connected();
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	is_late();
	assert_int_equal(noted, 1);
	assert_true(note.away);
	rig_answer(redis, REDIS_ANSWERED, &ok); /* nobody waits any more */
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	is_late();
	assert_int_equal(recalled, 1);
	assert_true(recall.away);
	assert_int_equal(recall.session_is, STATE_SESSION_KNOWN); /* begun here */
	answer_init(&answer);
	answers(&answer);
	assert_int_equal(recalled, 1);
	assert_int_equal(noted, 1);
}

static void a_connection_that_breaks_leaves_nobody_waiting(void **state)
{
	struct state_recall recall = question();
	struct state_note note = session_begins();

	(void)state;
	connected();
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	rig_unready(redis);
	rig_answer(redis, REDIS_LOST, NULL);
	rig_answer(redis, REDIS_LOST, NULL);
	assert_true(recall.away && note.away);
	assert_int_equal(recalled + noted, 2);
	struct state_recall later = question();
	assert_int_equal(store->recall(store, &later), STATE_DONE);
	assert_true(later.away);
}

static void who_goes_away_is_not_called(void **state)
{
	struct state_recall recall = question();
	struct state_note note = session_begins();
	const redisReply ok = number_of(0);
	struct answer answer;

	(void)state;
	connected();
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	store->forget_recall(store, &recall);
	store->forget_note(store, &note);
	answer_init(&answer);
	answers(&answer);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	assert_int_equal(recalled + noted, 0);
}

/* ---- when it is back ---- */

static struct state_note note_of(struct state_key about, bool ends)
{
	struct state_note note = session_begins();

	note.session = about;
	note.begin_session = !ends;
	note.end_session = ends;
	return note;
}

static void what_began_or_ended_meanwhile_is_told_when_it_is_back(void **state)
{
	static const struct state_key begun = { { 11 } }, ended = { { 12 } }, both = { { 13 } };
	const struct {
		struct state_key about;
		bool ends;
	} notes[] = { { begun, false }, { ended, false }, { both, false }, { both, true } };
	const redisReply ok = number_of(0);

	(void)state;
	connected();
	struct state_note before = note_of(ended, false);
	assert_int_equal(store->remember(store, &before), STATE_PENDING);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	rig_unready(redis);
	for (size_t i = 0; i < COUNT_OF(notes); i++) {
		struct state_note note = note_of(notes[i].about, i == 1 || notes[i].ends);
		assert_int_equal(store->remember(store, &note), STATE_DONE);
		assert_true(note.away);
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
	struct state_note note = session_begins();
	struct state_recall recall = question();
	struct answer answer;

	(void)state;
	connected();
	rig_unready(redis);
	assert_int_equal(store->remember(store, &note), STATE_DONE);
	connected();
	rig_unready(redis);
	rig_answer(redis, REDIS_LOST, NULL);
	assert_int_equal(state_memory_here(memory, &session, loop.now), STATE_HERE_BEGUN);
	connected();
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	answer_init(&answer);
	answer.parts[0] = (redisReply){ .type = REDIS_REPLY_NIL };
	answers(&answer);
	assert_int_equal(recall.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(rig_waiting(redis), 1);
}

static void of_very_many_the_latest_are_told(void **state)
{
	enum { MOST = 1024 };

	(void)state;
	connected();
	rig_unready(redis);
	for (uint32_t i = 0; i < MOST + 50; i++) {
		struct state_note note = note_of((struct state_key){ { 9 } }, false);
		(void)memcpy(note.session.at + 4, &i, sizeof(i));
		assert_int_equal(store->remember(store, &note), STATE_DONE);
	}
	connected();
	const uint64_t told = rig_waiting(redis);
	assert_true(told > 0 && told <= MOST);
}

/* ---- scripts ---- */

static void a_script_is_sent_as_text_once_and_again_when_it_is_unknown(void **state)
{
	struct state_recall recall = question();
	struct answer answer;

	(void)state;
	connected();
	redis_buffer_clear(&redis->link->out);
	answer_init(&answer);
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	assert_true(sent(slice_of(recall_lua, recall_lua_len)));
	answers(&answer);
	redis_buffer_clear(&redis->link->out);
	recall = question();
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	assert_false(sent(slice_of(recall_lua, recall_lua_len)));
	assert_true(sent(slice_str(recall_lua_sha1)));
	refuses("NOSCRIPT No matching script");
	assert_int_equal(recalled, 1);
	assert_true(sent(slice_of(recall_lua, recall_lua_len)));
	answers(&answer);
	assert_int_equal(recalled, 2);
	assert_false(recall.away);
}

static void who_does_not_know_what_it_was_told_is_not_told_for_ever(void **state)
{
	struct state_recall recall = question();
	struct state_note note = session_begins();
	const uint32_t recalled_before = recalled, noted_before = noted;

	(void)state;
	connected();
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	refuses("NOSCRIPT No matching script");
	assert_int_equal(rig_waiting(redis), 0);
	assert_int_equal(recalled, recalled_before + 1);
	assert_true(recall.away);
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	refuses("NOSCRIPT No matching script");
	assert_int_equal(rig_waiting(redis), 0);
	assert_int_equal(noted, noted_before + 1);
	assert_true(note.away);
}

static void after_a_new_connection_scripts_are_sent_as_text_again(void **state)
{
	struct state_note note = session_begins();
	const redisReply ok = number_of(0);

	(void)state;
	connected();
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	rig_unready(redis);
	connected();
	redis_buffer_clear(&redis->link->out);
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	assert_true(sent(slice_of(remember_lua, remember_lua_len)));
}

static void an_error_is_as_good_as_no_answer(void **state)
{
	struct state_recall recall = question();

	(void)state;
	connected();
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	refuses("WRONGTYPE Operation against a key holding the wrong kind of value");
	assert_int_equal(recalled, 1);
	assert_true(recall.away);
}

/* ---- at the beginning ---- */

static void the_first_requests_wait_for_the_first_connection(void **state)
{
	struct state_recall recall = question(), gone = question();
	struct state_note note = session_begins(), gone_note = session_begins();
	const redisReply ok = number_of(0);
	struct answer answer;

	(void)state;
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	assert_int_equal(store->recall(store, &gone), STATE_PENDING);
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	assert_int_equal(store->remember(store, &gone_note), STATE_PENDING);
	store->forget_recall(store, &gone);
	store->forget_note(store, &gone_note);
	assert_int_equal(rig_waiting(redis), 0);
	connected();
	assert_int_equal(rig_waiting(redis), 2);
	answer_init(&answer);
	answers(&answer);
	rig_answer(redis, REDIS_ANSWERED, &ok);
	assert_int_equal(recalled, 1);
	assert_int_equal(noted, 1);
	assert_false(recall.away || note.away);
}

static void they_wait_no_longer_than_the_deadline(void **state)
{
	struct state_recall recall = question(), later = question();
	struct state_note note = session_begins();

	(void)state;
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	assert_int_equal(store->remember(store, &note), STATE_PENDING);
	struct net_timer *patience = loop.timer;
	assert_true(patience->due == loop.now + settings.deadline);
	assert_true(rig_fire(patience));
	assert_int_equal(recalled, 1);
	assert_int_equal(noted, 1);
	assert_true(recall.away && note.away);
	assert_int_equal(store->recall(store, &later), STATE_DONE); /* that was the only time */
}

static void a_first_attempt_that_fails_ends_the_wait(void **state)
{
	struct state_recall recall = question();

	(void)state;
	assert_int_equal(store->recall(store, &recall), STATE_PENDING);
	redis->link->events->failed(redis->link->owner);
	assert_int_equal(recalled, 1);
	assert_true(recall.away);
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
		TEST(who_gets_no_answer_in_time_goes_on_without),
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
