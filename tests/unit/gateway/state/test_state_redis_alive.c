/* A gateway's key, and what the process makes of the answers to its renewals; the test is Redis. */
#include "tests/unit/gateway/limits/limiter_redis_rig.h"

#include "gateway/state/state_redis_alive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { WORKERS = 2 };

static struct net_loop loop;
static struct alive *alive;
static struct worker {
	struct limiter_redis *redis;
	struct net_timer *timer; /* of its renewals */
} workers[WORKERS], *const one = &workers[0], *const two = &workers[1];

static bool sent(const struct worker *worker, struct slice text)
{
	const struct redis_buffer *out = &worker->redis->link->out;

	return out->len != 0 && memmem(out->at, out->len, text.at, text.len) != NULL;
}

static bool renews(const struct worker *worker)
{
	return sent(worker, SLICE("sluice:gateway:1:"));
}

/* Everything that was asked is answered so: the key was `found`. */
static void answers_of(struct worker *worker, enum redis_outcome outcome, bool found)
{
	const redisReply reply = { .type = found ? REDIS_REPLY_STRING : REDIS_REPLY_NIL,
				   .str = (char *)"1",
				   .len = 1 };

	redis_buffer_clear(&worker->redis->link->out);
	while (rig_waiting(worker->redis) > 0)
		rig_answer(worker->redis, outcome, &reply);
}

static void answers(struct worker *worker, enum redis_outcome outcome)
{
	answers_of(worker, outcome, true);
}

static void comes(struct worker *worker)
{
	rig_ready(worker->redis);
	assert_true(renews(worker));
	answers_of(worker, REDIS_ANSWERED, false);
}

static int begin(void **state)
{
	(void)state;
	loop = (struct net_loop){ .now = 100 * SEC, .wall_s = 1767571200 };
	alive = alive_new();
	must(alive != NULL);
	for (size_t i = 0; i < WORKERS; i++) {
		workers[i].redis = rig_new(&loop, 8); /* lives until the process ends */
		must(alive_redis_new(&loop, workers[i].redis->link, alive) != NULL);
		workers[i].timer = loop.timer;
	}
	return 0;
}

static int end(void **state)
{
	(void)state;
	alive_free(alive);
	return 0;
}

/* So long of renewals in time, all of them answered. */
static void lives(nsec_t duration)
{
	for (const nsec_t until = loop.now + duration; loop.now < until;) {
		loop.now += SEC;
		assert_true(rig_fire(one->timer));
		answers(one, REDIS_ANSWERED);
	}
}

static void the_key_is_set_at_once_and_renewed_each_second_for_a_few(void **state)
{
	char key[64] = "sluice:gateway:1:";
	const struct slice name = alive_name(alive);

	(void)state;
	assert_int_equal(name.len, ALIVE_NAME_BYTES);
	for (size_t i = 0; i < name.len; i++)
		(void)snprintf(key + strlen(key), 3, "%02x", (unsigned char)name.at[i]);
	assert_false(alive_is_known(alive, loop.now));
	rig_ready(one->redis);
	assert_true(sent(one, slice_str(key)) &&
		    sent(one, SLICE("$2\r\nPX\r\n$4\r\n" ALIVE_LASTS_MS "\r\n")));
	assert_false(alive_is_known(alive, loop.now)); /* before Redis says so */
	answers(one, REDIS_ANSWERED);
	assert_true(alive_is_known(alive, loop.now));
	for (int i = 0; i < 10; i++) {
		loop.now += SEC;
		assert_true(rig_fire(one->timer));
		assert_true(renews(one));
		assert_int_equal(one->timer->due, loop.now + SEC);
		answers(one, REDIS_ANSWERED);
	}
}

static void of_several_workers_one_renews_it_and_another_where_that_one_cannot(void **state)
{
	(void)state;
	comes(one);
	comes(two);
	loop.now += SEC;
	assert_true(rig_fire(one->timer) && rig_fire(two->timer));
	assert_true(renews(one));
	assert_false(renews(two));
	answers(one, REDIS_ANSWERED);
	rig_unready(one->redis);
	loop.now += SEC;
	assert_true(rig_fire(one->timer) && rig_fire(two->timer));
	assert_false(renews(one));
	assert_true(renews(two));
	answers(two, REDIS_LOST);
	assert_true(rig_fire(two->timer)); /* it may not have come there: not a second later */
	assert_true(renews(two));
	answers(two, REDIS_REFUSED);
	assert_true(rig_fire(two->timer) && renews(two));
	answers(two, REDIS_ANSWERED);
	assert_true(alive_is_known(alive, loop.now));
}

static void a_gateway_judges_others_once_it_has_lived_for_as_long_as_a_key(void **state)
{
	(void)state;
	comes(one);
	lives(ALIVE_STEADY - SEC);
	assert_false(alive_is_steady(alive, loop.now));
	lives(SEC);
	assert_true(alive_is_steady(alive, loop.now));
}

static void after_a_gap_it_has_to_live_that_long_again(void **state)
{
	static const struct {
		const char *name;
		nsec_t late;  /* an answer */
		bool away;    /* the connection, for a while */
		nsec_t stops; /* the process */
		bool lost;    /* the key */
		bool steady;  /* in the end */
	} rows[] = {
		{ "nothing happens", 0, false, 0, false, true },
		{ "an answer takes a second", SEC, false, 0, false, true },
		{ "Redis stands still for six", 6 * SEC, false, 0, true, false },
		{ "the process is stopped for six", 0, false, 6 * SEC, true, false },
		{ "the connection is made again at once", 0, true, 0, false, true },
		{ "and Redis has lost the key", 0, true, 0, true, false },
		{ "Redis is emptied", 0, false, 0, true, false },
		{ "the connection is made again after six", 0, true, 6 * SEC, true, false },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		begin(state);
		comes(one);
		lives(ALIVE_STEADY);
		assert_int_equal(alive_doubts(alive), 0);
		if (rows[i].away)
			rig_unready(one->redis);
		loop.now += rows[i].stops + SEC;
		if (rows[i].stops != 0)
			assert_false(alive_is_known(alive, loop.now) ||
				     alive_is_steady(alive, loop.now));
		if (rows[i].away)
			rig_ready(one->redis);
		else
			assert_true(rig_fire(one->timer));
		assert_true(renews(one));
		loop.now += rows[i].late;
		answers_of(one, REDIS_ANSWERED, !rows[i].lost);
		lives(SEC);
		assert_true(alive_is_known(alive, loop.now));
		if (alive_is_steady(alive, loop.now) != rows[i].steady)
			fail_msg("%s", rows[i].name);
		assert_int_equal(alive_doubts(alive) == 0, rows[i].steady);
		lives(ALIVE_STEADY);
		assert_true(alive_is_steady(alive, loop.now));
		end(state);
	}
}

static void without_redis_nothing_is_known_and_nothing_asked(void **state)
{
	(void)state;
	loop.now += SEC;
	assert_true(rig_fire(one->timer));
	assert_false(renews(one));
	comes(one);
	rig_unready(one->redis);
	for (int i = 0; i < 3; i++) {
		loop.now += SEC;
		assert_true(rig_fire(one->timer));
		assert_false(renews(one));
	}
	assert_false(alive_is_known(alive, loop.now));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(the_key_is_set_at_once_and_renewed_each_second_for_a_few),
		TEST(of_several_workers_one_renews_it_and_another_where_that_one_cannot),
		TEST(a_gateway_judges_others_once_it_has_lived_for_as_long_as_a_key),
		cmocka_unit_test(after_a_gap_it_has_to_live_that_long_again),
		TEST(without_redis_nothing_is_known_and_nothing_asked),
	};
	return cmocka_run_group_tests_name("state_redis_alive", tests, NULL, NULL);
}
