/* Requests that nothing but a refusal awaits, while Redis is slow; the test is Redis. */
#include "tests/unit/gateway/limits/limiter_redis_rig.h"

#include "tenants/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define PATIENCE (250 * MSEC)

static struct net_loop loop;
static struct limiter_redis *redis;
static struct limiter *limiter;
static uint32_t done_count;

static void on_done(struct reservation *reservation)
{
	(void)reservation;
	done_count++;
}

/* Before its first connection. They live until the process ends. */
static int begin(void **state)
{
	static struct limiter_redis *all[32];
	static size_t count;

	(void)state;
	loop = (struct net_loop){ .now = 100 * SEC, .wall_s = UINT64_C(1767571200) };
	done_count = 0;
	assert_true(count < COUNT_OF(all));
	redis = all[count++] = rig_new_patient(&loop, 8, PATIENCE);
	limiter = limiter_redis_limiter(redis);
	return 0;
}

enum choice { CLOSED, RATES_CLOSED, LOCAL, FREE };

static struct reservation reservation_of(enum choice choice)
{
	static struct limit_scope scopes[16];
	static size_t taken;
	struct reservation r = {
		.scopes = &scopes[taken++ % COUNT_OF(scopes)],
		.scope_count = 1,
		.ask = { .requests = 1, .usd = choice == FREE ? 0 : 100, .concurrent = 1 },
		.now = loop.now,
		.wall_s = loop.wall_s,
		.done = on_done
	};

	r.scopes[0] = (struct limit_scope){ .limits = limit_none() };
	r.scopes[0].limits.away_rates_closed = choice == RATES_CLOSED;
	r.scopes[0].limits.away_usd = choice == LOCAL || choice == RATES_CLOSED ? 1000 : 0;
	(void)memset(r.scopes[0].key, 7, sizeof(r.scopes[0].key));
	return r;
}

/* ---- Redis's side ---- */

static void grants(void)
{
	rig_grants(redis, &loop, "epoch--1");
}

static void is_called(void)
{
	static char name[] = "first";
	const redisReply reply = { .type = REDIS_REPLY_STRING, .str = name, .len = strlen(name) };

	rig_answer(redis, REDIS_ANSWERED, &reply);
}

static void connected(void)
{
	rig_ready(redis);
	is_called();
}

/* Late answers, and nothing else is wrong. */
static void slow(void)
{
	rig_unready(redis);
	rig_turn(redis, true, false);
}

static void passes(nsec_t span)
{
	loop.now += span;
}

static const struct limiter_call *sent(uint64_t which)
{
	return rig_call(redis, which);
}

/* ---- late ---- */

static void a_late_answer_is_awaited_where_it_would_be_a_refusal(void **state)
{
	static const struct {
		enum choice choice;
		bool waits;
	} rows[] = { { CLOSED, true }, { RATES_CLOSED, true }, { LOCAL, false }, { FREE, false } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)begin(state);
		struct reservation r = reservation_of(rows[i].choice);
		connected();
		assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
		passes(20 * MSEC);
		rig_late(redis, 0);
		slow();
		assert_int_equal(done_count, rows[i].waits ? 0 : 1);
		if (!rows[i].waits) {
			assert_true(r.granted && r.fallback);
			continue;
		}
		assert_true(r.patience.due == r.now + PATIENCE);
		passes(200 * MSEC);
		grants();
		assert_int_equal(done_count, 1);
		assert_true(r.granted && !r.fallback);
		assert_int_equal(r.patience.place, 0);
	}
}

static void nobody_waits_longer_than_the_patience_and_what_comes_then_is_undone(void **state)
{
	struct reservation r = reservation_of(CLOSED);

	(void)state;
	connected();
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	passes(20 * MSEC);
	rig_late(redis, 0);
	passes(PATIENCE - 20 * MSEC);
	assert_true(rig_fire(&r.patience));
	assert_int_equal(done_count, 1);
	assert_false(r.granted);
	assert_int_equal(r.refusal.err, ERR_STORE);
	grants();
	assert_int_equal(done_count, 1);
	assert_true(rig_fire(&redis->flush));
	assert_int_equal(sent(0)->parts[0].given_back, 1);
	assert_int_equal(sent(0)->parts[0].changes[0].less, 100);
}

static void the_requests_own_deadline_ends_the_wait_before(void **state)
{
	struct reservation r = reservation_of(CLOSED), over = reservation_of(CLOSED);

	(void)state;
	connected();
	r.deadline = loop.now + 60 * MSEC;
	over.deadline = loop.now + 10 * MSEC;
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	assert_int_equal(limiter->reserve(limiter, &over), LIMITER_PENDING);
	passes(20 * MSEC);
	rig_late(redis, 0);
	assert_true(r.patience.due == r.deadline);
	rig_late(redis, 1);
	assert_int_equal(done_count, 1);
	assert_false(over.granted);
	passes(40 * MSEC);
	assert_true(rig_fire(&r.patience));
	assert_int_equal(done_count, 2);
	assert_int_equal(r.refusal.err, ERR_DEADLINE);
}

static void a_connection_that_is_lost_refuses_at_once(void **state)
{
	struct reservation sent_one = reservation_of(CLOSED), queued = reservation_of(CLOSED);

	(void)state;
	connected();
	assert_int_equal(limiter->reserve(limiter, &sent_one), LIMITER_PENDING);
	passes(20 * MSEC);
	rig_late(redis, 0);
	slow();
	rig_turn(redis, true, true);
	assert_int_equal(limiter->reserve(limiter, &queued), LIMITER_PENDING);
	assert_int_equal(rig_waiting(redis), 1);
	redis->link->slow = false;
	rig_answer(redis, REDIS_LOST, NULL);
	rig_turn(redis, false, false);
	assert_int_equal(done_count, 2);
	assert_int_equal(sent_one.refusal.err, ERR_STORE);
	assert_int_equal(queued.refusal.err, ERR_STORE);
	struct reservation next = reservation_of(CLOSED);
	assert_int_equal(limiter->reserve(limiter, &next), LIMITER_DONE);
	assert_int_equal(next.refusal.err, ERR_STORE);
}

/* ---- while it is slow ---- */

static void a_slow_redis_is_asked_for_who_would_be_refused(void **state)
{
	struct reservation closed = reservation_of(CLOSED), local = reservation_of(LOCAL);

	(void)state;
	connected();
	slow();
	assert_int_equal(limiter->reserve(limiter, &local), LIMITER_DONE);
	assert_true(local.granted && local.fallback);
	assert_int_equal(limiter->reserve(limiter, &closed), LIMITER_PENDING);
	assert_int_equal(rig_waiting(redis), 1);
	passes(100 * MSEC);
	grants();
	assert_true(closed.granted && !closed.fallback);
	assert_int_equal(done_count, 1);
}

static void what_cannot_be_sent_yet_leaves_in_its_order_when_it_can(void **state)
{
	struct reservation r[4];

	(void)state;
	connected();
	slow();
	rig_turn(redis, true, true);
	for (size_t i = 0; i < COUNT_OF(r); i++) {
		r[i] = reservation_of(CLOSED);
		assert_int_equal(limiter->reserve(limiter, &r[i]), LIMITER_PENDING);
	}
	assert_int_equal(rig_waiting(redis), 0);
	limiter->forget(limiter, &r[1]); /* its caller has gone */
	passes(PATIENCE);
	assert_true(rig_fire(&r[3].patience));
	assert_int_equal(done_count, 1);
	rig_turn(redis, true, false);
	assert_int_equal(rig_waiting(redis), 2);
	assert_ptr_equal(sent(0)->reservation, &r[0]);
	assert_ptr_equal(sent(1)->reservation, &r[2]);
	grants();
	assert_true(r[0].granted);
	limiter->forget(limiter, &r[2]);
	assert_int_equal(r[2].patience.place, 0);
	grants(); /* nobody waits for it: undone */
	assert_int_equal(done_count, 2);
}

static void with_redis_well_again_all_of_them_are_claimed_for(void **state)
{
	struct reservation r[2] = { reservation_of(CLOSED), reservation_of(CLOSED) };

	(void)state;
	connected();
	slow();
	rig_turn(redis, true, true);
	for (size_t i = 0; i < COUNT_OF(r); i++)
		assert_int_equal(limiter->reserve(limiter, &r[i]), LIMITER_PENDING);
	connected();
	assert_int_equal(rig_waiting(redis), 2);
	grants();
	grants();
	assert_int_equal(done_count, 2);
	assert_true(r[0].granted && r[1].granted);
}

static void the_first_connection_is_awaited_as_long(void **state)
{
	struct reservation r = reservation_of(CLOSED), other = reservation_of(CLOSED);

	(void)state;
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	assert_true(r.patience.due == loop.now + PATIENCE);
	passes(100 * MSEC);
	rig_turn(redis, true, false); /* it stands, and is slow */
	assert_int_equal(rig_waiting(redis), 1);
	grants();
	assert_true(r.granted);
	(void)begin(state);
	assert_int_equal(limiter->reserve(limiter, &other), LIMITER_PENDING);
	fake_failed(redis->link);
	assert_int_equal(done_count, 1);
	assert_int_equal(other.refusal.err, ERR_STORE);
}

/* ---- places ---- */

/* A tenant whose free requests this gateway grants itself, while Redis is asked for those that cost. */
static void places_that_redis_was_not_told_of_are_not_given_back_to_it(void **state)
{
	struct reservation free_one = reservation_of(FREE), lasting = reservation_of(FREE);
	struct reservation closed = reservation_of(CLOSED);

	(void)state;
	connected();
	slow();
	assert_int_equal(limiter->reserve(limiter, &free_one), LIMITER_DONE);
	assert_int_equal(limiter->reserve(limiter, &lasting), LIMITER_DONE);
	assert_true(free_one.fallback && lasting.fallback);
	(void)limiter->settle(limiter, &free_one, 0, 0, loop.now);
	limiter->release(limiter, &free_one);
	assert_int_equal(limiter->reserve(limiter, &closed), LIMITER_PENDING);
	assert_int_equal(sent(0)->parts[0].given_back, 0);
	grants();
	(void)limiter->settle(limiter, &closed, 0, 0, loop.now);
	limiter->release(limiter, &closed);
	assert_int_equal(
		redis->tenants[limit_slot_index(redis->table, lasting.scopes[0].slot)].held, 1);
	connected(); /* now it is told of all that are held */
	while (rig_waiting(redis) != 0)
		grants();
	(void)limiter->settle(limiter, &lasting, 0, 0, loop.now);
	limiter->release(limiter, &lasting);
	assert_true(rig_fire(&redis->flush));
	assert_int_equal(sent(0)->parts[0].given_back, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_late_answer_is_awaited_where_it_would_be_a_refusal),
		TEST(nobody_waits_longer_than_the_patience_and_what_comes_then_is_undone),
		TEST(the_requests_own_deadline_ends_the_wait_before),
		TEST(a_connection_that_is_lost_refuses_at_once),
		TEST(a_slow_redis_is_asked_for_who_would_be_refused),
		TEST(what_cannot_be_sent_yet_leaves_in_its_order_when_it_can),
		TEST(with_redis_well_again_all_of_them_are_claimed_for),
		TEST(the_first_connection_is_awaited_as_long),
		TEST(places_that_redis_was_not_told_of_are_not_given_back_to_it),
	};
#undef TEST

	return cmocka_run_group_tests_name("limiter_redis_patience", tests, NULL, NULL);
}
