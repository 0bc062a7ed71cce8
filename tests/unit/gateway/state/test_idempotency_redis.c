/* What a claim makes of what Redis says, and of what no script of ours would say; the test is Redis. That the
 * script agrees is for tests/exact and tests/integration/test_idempotency.py. */
#include "codec/set.h"
#include "tests/unit/gateway/limits/limiter_redis_rig.h"

#include "gateway/state/idempotency_redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

REDIS_SCRIPT_DECLARE(idempotency);

static struct net_loop loop;
static struct limiter_redis *redis;
static struct idempotency_redis *idempotency;
static struct alive *alive;
static struct json_work *work;
static struct arena_pool pool;
static struct arena arena;
static struct idempotency_call call;
static struct idempotency_claim claim;
static uint32_t done;

static void on_done(struct idempotency_claim *told)
{
	assert_ptr_equal(told, &claim);
	done++;
}

/* The limits ask for something of their own when the connection is ready. */
static void connected(void)
{
	const redisReply name = { .type = REDIS_REPLY_STRING, .str = (char *)"first", .len = 5 };

	rig_ready(redis);
	while (rig_waiting(redis) > 0)
		rig_answer(redis, REDIS_ANSWERED, &name);
}

static int begin(void **state)
{
	(void)state;
	loop = (struct net_loop){ .now = 100 * SEC, .wall_s = 1767571200 };
	redis = rig_new(&loop, 8); /* lives until the process ends */
	work = json_work_new(codec_set_best());
	must(work != NULL);
	alive = alive_new();
	must(alive != NULL);
	idempotency = idempotency_redis_new(redis->loop, redis->link, alive, work, redis->metrics);
	must(idempotency != NULL);
	arena_init(&arena, &pool, 1 << 20);
	connected();
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_give(&arena);
	arena_pool_fini(&pool);
	json_work_free(work);
	alive_free(alive);
	return 0;
}

/* Sends a claim. */
static bool claims(void)
{
	done = 0;
	call = (struct idempotency_call){ .key = { { 3 } },
					  .arena = &arena,
					  .verdict = IDEMPOTENCY_LEADS };
	claim = (struct idempotency_claim){
		.tenant = { { 7 } }, .call = &call, .lasts = SEC, .done = on_done
	};
	redis_buffer_clear(&redis->link->out);
	return idempotency_redis_claim(idempotency, &claim);
}

static bool sent(struct slice text)
{
	return memmem(redis->link->out.at, redis->link->out.len, text.at, text.len) != NULL;
}

static redisReply text_of(const char *text)
{
	return (redisReply){ .type = REDIS_REPLY_STRING,
			     .str = (char *)(uintptr_t)text,
			     .len = strlen(text) };
}

static void refuses(const char *error)
{
	redisReply reply = text_of(error);

	reply.type = REDIS_REPLY_ERROR;
	rig_answer(redis, REDIS_REFUSED, &reply);
}

struct row {
	const char *name;
	redisReply reply;
	enum idempotency_verdict verdict;
	bool held;
	const char *member; /* of IDEMPOTENCY_ANSWERED */
};

static void assert_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		assert_true(claims());
		rig_answer(redis, REDIS_ANSWERED, &row->reply);
		if (done != 1 || redis_call_pending(&claim.sent) || call.verdict != row->verdict ||
		    claim.held != row->held)
			fail_msg("%s: verdict %d, held %d", row->name, call.verdict, claim.held);
		if (row->member != NULL && !slice_eq(call.answer.member, slice_str(row->member)))
			fail_msg("%s: %.*s", row->name, (int)call.answer.member.len,
				 call.answer.member.at);
	}
}

static void what_the_script_says_decides(void **state)
{
	const struct row rows[] = {
		{ "it is ours to make", text_of("L"), IDEMPOTENCY_LEADS, true, NULL },
		{ "another gateway makes it", text_of("E"), IDEMPOTENCY_ELSEWHERE, false, NULL },
		{ "another body", text_of("C"), IDEMPOTENCY_CONFLICT, false, NULL },
		{ "it was answered", text_of("D"), IDEMPOTENCY_DONE, false, NULL },
		{ "with this", text_of("A\"result\":{\"a\":1}"), IDEMPOTENCY_ANSWERED, false,
		  "\"result\":{\"a\":1}" },
	};

	(void)state;
	assert_rows(rows, COUNT_OF(rows));
}

/* Then the process knows of its own alone. */
static void what_no_script_of_ours_says_is_as_if_redis_was_away(void **state)
{
	redisReply leads = text_of("L"), huge = { .type = REDIS_REPLY_INTEGER };
	redisReply *inner[] = { &leads };
	redisReply nested = { .type = REDIS_REPLY_ARRAY, .elements = 1, .element = inner };
	redisReply *outer[] = { &nested };
	redisReply status = text_of("L");

	status.type = REDIS_REPLY_STATUS;
	huge.integer = INT64_MAX;
	const struct row rows[] = {
		{ "nil", { .type = REDIS_REPLY_NIL }, IDEMPOTENCY_LEADS, false, NULL },
		{ "a number",
		  { .type = REDIS_REPLY_INTEGER, .integer = 'L' },
		  IDEMPOTENCY_LEADS,
		  false,
		  NULL },
		{ "a number beyond all bounds", huge, IDEMPOTENCY_LEADS, false, NULL },
		{ "a status", status, IDEMPOTENCY_LEADS, false, NULL },
		{ "an empty list", { .type = REDIS_REPLY_ARRAY }, IDEMPOTENCY_LEADS, false, NULL },
		{ "a list of an answer", nested, IDEMPOTENCY_LEADS, false, NULL },
		{ "a list in a list",
		  { .type = REDIS_REPLY_ARRAY, .elements = 1, .element = outer },
		  IDEMPOTENCY_LEADS,
		  false,
		  NULL },
		{ "no text", text_of(""), IDEMPOTENCY_LEADS, false, NULL },
		{ "a letter that means nothing", text_of("X"), IDEMPOTENCY_LEADS, false, NULL },
		{ "the letters of a later version", text_of("l"), IDEMPOTENCY_LEADS, false, NULL },
	};

	(void)state;
	assert_rows(rows, COUNT_OF(rows));
}

static void what_is_told_says_which_claim_it_means(void **state)
{
	const redisReply leads = text_of("L");

	(void)state;
	assert_true(claims());
	rig_answer(redis, REDIS_ANSWERED, &leads);
	redis_buffer_clear(&redis->link->out);
	call.number = 0x01020304;
	idempotency_redis_drop(idempotency, &claim);
	char owner[] = "$8\r\n.....\4\3\2\r\n";
	(void)memcpy(owner + 4, alive_name(alive).at, ALIVE_NAME_BYTES);
	assert_true(sent(slice_of(owner, sizeof(owner) - 1)));
	rig_answer(redis, REDIS_ANSWERED, &leads);
}

/* What a claim says last: for how long others have to wait to take over another's, and how this one may be judged. */
static bool ends_claim(const char *older, const char *mark)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(older), older,
		       strlen(mark), mark);
	return sent(slice_str(text));
}

/* One more second, in which the key is renewed. */
static void lives_on(struct net_timer *timer)
{
	const redisReply found = text_of("1");

	loop.now += SEC;
	must(rig_fire(timer));
	while (rig_waiting(redis) > 0)
		rig_answer(redis, REDIS_ANSWERED, &found);
}

static void a_claim_says_by_which_key_it_may_be_judged_and_whether_others_may(void **state)
{
	const redisReply leads = text_of("L");

	(void)state;
	must(alive_redis_new(&loop, redis->link, alive) != NULL);
	struct net_timer *timer = loop.timer;
	for (int i = 0; i < 3; i++) {
		static const char *const older[] = { "", "", ALIVE_LASTS_MS };
		static const char *const marks[][2] = { { "", "?" },
							{ "-6000", "?6000" },
							{ "-6000", "?6000" } };
		for (int guess = 0; guess < 2; guess++) {
			assert_true(claims());
			rig_answer(redis, REDIS_ANSWERED, &leads);
			call.guess = guess != 0;
			redis_buffer_clear(&redis->link->out);
			assert_true(idempotency_redis_claim(idempotency, &claim));
			if (!ends_claim(older[i], marks[i][guess]))
				fail_msg("%d, guess %d", i, guess);
			rig_answer(redis, REDIS_ANSWERED, &leads);
		}
		for (int s = 0; s < (i == 0 ? 1 : 4); s++)
			lives_on(timer);
	}
}

static void an_answer_that_could_not_be_ours_is_not_passed_on(void **state)
{
	const struct row rows[] = {
		{ "none", text_of("A"), IDEMPOTENCY_DONE, false, NULL },
		{ "no member", text_of("A{\"result\":1}"), IDEMPOTENCY_DONE, false, NULL },
		{ "an error", text_of("A\"error\":{}"), IDEMPOTENCY_DONE, false, NULL },
		{ "a member without a value", text_of("A\"result\":"), IDEMPOTENCY_DONE, false,
		  NULL },
		{ "a value that is cut", text_of("A\"result\":{\"a\":"), IDEMPOTENCY_DONE, false,
		  NULL },
		{ "more than a value", text_of("A\"result\":1,\"id\":2"), IDEMPOTENCY_DONE, false,
		  NULL },
		{ "what ends the envelope", text_of("A\"result\":1}{"), IDEMPOTENCY_DONE, false,
		  NULL },
		{ "a key twice", text_of("A\"result\":{\"a\":1,\"a\":2}"), IDEMPOTENCY_DONE, false,
		  NULL },
		{ "no UTF-8", text_of("A\"result\":\"\xff\""), IDEMPOTENCY_DONE, false, NULL },
	};

	(void)state;
	assert_rows(rows, COUNT_OF(rows));
}

static void a_script_that_is_unknown_is_sent_as_text_and_nobody_notices(void **state)
{
	const redisReply leads = text_of("L");

	(void)state;
	assert_true(claims());
	assert_true(sent(slice_of(idempotency_lua, idempotency_lua_len)));
	rig_answer(redis, REDIS_ANSWERED, &leads);
	assert_true(claims());
	assert_true(sent(slice_str(idempotency_lua_sha1)));
	assert_false(sent(slice_of(idempotency_lua, idempotency_lua_len)));
	refuses("NOSCRIPT No matching script");
	assert_int_equal(done, 0);
	assert_true(sent(slice_of(idempotency_lua, idempotency_lua_len)));
	rig_answer(redis, REDIS_ANSWERED, &leads);
	assert_int_equal(done, 1);
	assert_true(claim.held);
}

static void who_does_not_know_what_it_was_told_is_not_told_for_ever(void **state)
{
	(void)state;
	assert_true(claims());
	assert_true(sent(slice_of(idempotency_lua, idempotency_lua_len)));
	refuses("NOSCRIPT No matching script");
	assert_int_equal(rig_waiting(redis), 0);
	assert_int_equal(done, 1);
	assert_int_equal(call.verdict, IDEMPOTENCY_LEADS);
	assert_false(claim.held || redis_call_pending(&claim.sent));
}

static void an_error_is_as_good_as_no_answer(void **state)
{
	static const char *const errors[] = { "OOM command not allowed", "READONLY", "WRONGTYPE",
					      "" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(errors); i++) {
		assert_true(claims());
		refuses(errors[i]);
		assert_int_equal(done, 1);
		assert_int_equal(call.verdict, IDEMPOTENCY_LEADS);
		assert_false(claim.held || redis_call_pending(&claim.sent));
	}
}

/* The claim may have been heard: its end is told all the same. */
static void who_loses_the_answer_goes_on_and_holds_it(void **state)
{
	(void)state;
	assert_true(claims());
	rig_answer(redis, REDIS_LOST, NULL);
	assert_int_equal(done, 1);
	assert_true(claim.held && !redis_call_pending(&claim.sent));
	assert_int_equal(call.verdict, IDEMPOTENCY_LEADS);
}

static void answers_that_redis_could_not_be_told_are_told_when_it_is_back(void **state)
{
	static const struct slice done_said = SLICE_INIT("$4\r\ndone\r\n");
	enum { MORE_THAN_KEPT = 70 };

	(void)state;
	assert_true(claims());
	rig_unready(redis);
	redis_buffer_clear(&redis->link->out);
	idempotency_redis_end(idempotency, &claim, SLICE("\"result\":1"));
	idempotency_redis_drop(idempotency, &claim); /* which might be another's by then */
	assert_false(sent(done_said));
	rig_ready(redis);
	assert_true(sent(done_said) && sent(SLICE("$6\r\n600000\r\n")));
	assert_false(sent(SLICE("\"result\":1")) || sent(SLICE("$4\r\ndrop\r\n")));
	redis_buffer_clear(&redis->link->out);
	rig_unready(redis);
	for (int i = 0; i < MORE_THAN_KEPT; i++)
		idempotency_redis_end(idempotency, &claim, SLICE(""));
	redis->loop->now += 100 * SEC;
	rig_ready(redis);
	assert_true(sent(done_said) && sent(SLICE("$6\r\n500000\r\n")));
	redis_buffer_clear(&redis->link->out);
	rig_unready(redis);
	rig_ready(redis);
	assert_false(sent(done_said)); /* once */
	rig_unready(redis);
	idempotency_redis_end(idempotency, &claim, SLICE(""));
	redis->loop->now += IDEMPOTENCY_REMEMBERED - 1;
	rig_ready(redis);
	assert_false(sent(done_said)); /* its time is over */
}

/* It may have been heard: its end is told all the same. */
static void who_is_not_answered_in_time_goes_on_and_holds_it(void **state)
{
	const redisReply elsewhere = text_of("E");

	(void)state;
	assert_true(claims());
	rig_late(redis, 0);
	assert_int_equal(done, 1);
	assert_true(claim.held && !redis_call_pending(&claim.sent));
	assert_int_equal(call.verdict, IDEMPOTENCY_LEADS);
	rig_answer(redis, REDIS_ANSWERED, &elsewhere); /* too late to change anything */
	assert_int_equal(done, 1);
	assert_int_equal(call.verdict, IDEMPOTENCY_LEADS);
}

static void who_goes_away_is_not_called(void **state)
{
	const redisReply leads = text_of("L");

	(void)state;
	assert_true(claims());
	idempotency_redis_forget(idempotency, &claim);
	idempotency_redis_forget(idempotency, &claim); /* harmless */
	assert_true(claim.held);                       /* what is told comes behind the claim */
	rig_answer(redis, REDIS_ANSWERED, &leads);
	assert_int_equal(done, 0);
	assert_true(claims());
	idempotency_redis_forget(idempotency, &claim);
	refuses("NOSCRIPT No matching script"); /* and is not claimed once more */
	assert_int_equal(rig_waiting(redis), 0);
}

static void without_redis_there_is_no_claim(void **state)
{
	(void)state;
	rig_unready(redis);
	assert_false(claims());
	assert_false(redis_call_pending(&claim.sent) || claim.held);
	idempotency_redis_end(idempotency, &claim, SLICE("\"result\":1")); /* nobody is told */
	idempotency_redis_drop(idempotency, &claim);
	assert_int_equal(rig_waiting(redis), 0);
}

static void the_end_is_told_with_an_answer_that_is_not_too_long(void **state)
{
	static char text[IDEMPOTENCY_ANSWER_MAX + 2];
	const redisReply nonsense = { .type = REDIS_REPLY_NIL };

	(void)state;
	(void)memset(text, 'x', sizeof(text) - 1);
	assert_true(claims());
	redis_buffer_clear(&redis->link->out);
	idempotency_redis_end(idempotency, &claim, slice_of(text, IDEMPOTENCY_ANSWER_MAX));
	assert_true(sent(slice_of(text, IDEMPOTENCY_ANSWER_MAX)));
	redis_buffer_clear(&redis->link->out);
	idempotency_redis_end(idempotency, &claim, slice_of(text, IDEMPOTENCY_ANSWER_MAX + 1));
	assert_true(sent(SLICE("done")));
	assert_false(sent(SLICE("xx")));
	idempotency_redis_forget(idempotency, &claim);
	while (rig_waiting(redis) > 0) /* what comes back is nobody's */
		rig_answer(redis, REDIS_ANSWERED, &nonsense);
	assert_int_equal(done, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_the_script_says_decides),
		TEST(what_is_told_says_which_claim_it_means),
		TEST(a_claim_says_by_which_key_it_may_be_judged_and_whether_others_may),
		TEST(what_no_script_of_ours_says_is_as_if_redis_was_away),
		TEST(an_answer_that_could_not_be_ours_is_not_passed_on),
		TEST(a_script_that_is_unknown_is_sent_as_text_and_nobody_notices),
		TEST(who_does_not_know_what_it_was_told_is_not_told_for_ever),
		TEST(an_error_is_as_good_as_no_answer),
		TEST(who_loses_the_answer_goes_on_and_holds_it),
		TEST(answers_that_redis_could_not_be_told_are_told_when_it_is_back),
		TEST(who_is_not_answered_in_time_goes_on_and_holds_it),
		TEST(who_goes_away_is_not_called),
		TEST(without_redis_there_is_no_claim),
		TEST(the_end_is_told_with_an_answer_that_is_not_too_long),
	};
	return cmocka_run_group_tests_name("idempotency_redis", tests, NULL, NULL);
}
