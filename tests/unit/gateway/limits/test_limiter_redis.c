/* What the store sends, sums and decides by itself; the test is Redis. That the script agrees is for
 * tests/exact/test_limiter_redis_script.c. */
#include "tests/unit/gateway/limits/limiter_redis_rig.h"

#include "tenants/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const uint64_t monday = UINT64_C(1767571200); /* 2026-01-05 00:00 UTC */

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
	static struct limiter_redis *all[64];
	static size_t count;

	(void)state;
	loop = (struct net_loop){ .now = 100 * SEC, .wall_s = monday };
	done_count = 0;
	assert_true(count < COUNT_OF(all));
	redis = all[count++] = rig_new(&loop, 8);
	limiter = limiter_redis_limiter(redis);
	return 0;
}

static struct reservation reservation_of(uint64_t away_usd)
{
	static struct limit_scope scopes[8][RESERVATION_SCOPES_MAX]; /* of a few at a time */
	static size_t taken;
	struct reservation r = { .scopes = scopes[taken++ % COUNT_OF(scopes)],
				 .scope_count = 1,
				 .ask = { .requests = 1, .usd = 100, .concurrent = 1 },
				 .now = loop.now,
				 .wall_s = loop.wall_s,
				 .done = on_done };

	r.scopes[0] = (struct limit_scope){ .limits = limit_none() };
	r.scopes[0].limits.away_usd = away_usd;
	(void)memset(r.scopes[0].key, 7, sizeof(r.scopes[0].key));
	return r;
}

/* ---- Redis's side ---- */

/* The script grants, in states of those epochs. */
static void grants_all(const char *epochs)
{
	rig_grants(redis, &loop, epochs);
}

static void grants(const char epoch[9])
{
	grants_all(epoch);
}

/* The whole store is called so. */
static void is_called(const char *name)
{
	const redisReply reply = { .type = REDIS_REPLY_STRING,
				   .str = (char *)(uintptr_t)name,
				   .len = strlen(name) };

	assert_true(rig_asks_epoch(redis));
	rig_answer(redis, REDIS_ANSWERED, &reply);
}

static void connected(void)
{
	rig_ready(redis);
	is_called("first");
}

static const struct limiter_call *sent(uint64_t which)
{
	return rig_call(redis, which);
}

static void refused(const char *error)
{
	const redisReply reply = { .type = REDIS_REPLY_ERROR,
				   .str = (char *)(uintptr_t)error,
				   .len = strlen(error) };

	rig_answer(redis, REDIS_REFUSED, &reply);
}

/* ---- at the beginning ---- */

static void the_first_requests_wait_for_the_first_connection(void **state)
{
	struct reservation r[2] = { reservation_of(0), reservation_of(0) };

	(void)state;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(limiter->reserve(limiter, &r[i]), LIMITER_PENDING);
	assert_int_equal(rig_waiting(redis), 0);
	rig_ready(redis);
	is_called("first");
	assert_int_equal(rig_waiting(redis), 2);
	grants("epoch--1");
	grants("epoch--1");
	assert_int_equal(done_count, 2);
	assert_true(r[0].granted && r[1].granted && !r[0].fallback);
}

static void they_wait_no_longer_than_the_deadline(void **state)
{
	struct reservation r[3] = { reservation_of(1000), reservation_of(0), reservation_of(1000) };

	(void)state;
	assert_int_equal(limiter->reserve(limiter, &r[0]), LIMITER_PENDING);
	assert_true(redis->patience.due == loop.now + 20 * MSEC);
	loop.now += 10 * MSEC;
	assert_int_equal(limiter->reserve(limiter, &r[1]), LIMITER_PENDING);
	assert_true(redis->patience.due == loop.now + 10 * MSEC);
	loop.now += 10 * MSEC;
	assert_true(rig_fire(&redis->patience));
	assert_int_equal(done_count, 2);
	assert_true(r[0].granted && r[0].fallback);
	assert_int_equal(r[1].refusal.err, ERR_STORE);
	assert_int_equal(limiter->reserve(limiter, &r[2]),
			 LIMITER_DONE); /* that was the only time */
	assert_true(r[2].fallback);
}

static void a_first_attempt_that_fails_ends_the_wait(void **state)
{
	struct reservation r = reservation_of(1000);

	(void)state;
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	fake_failed(redis->link);
	assert_int_equal(done_count, 1);
	assert_true(r.granted && r.fallback);
}

static void who_goes_away_meanwhile_is_not_claimed_for(void **state)
{
	struct reservation r[3] = { reservation_of(0), reservation_of(0), reservation_of(0) };

	(void)state;
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(limiter->reserve(limiter, &r[i]), LIMITER_PENDING);
	limiter->forget(limiter, &r[1]);
	rig_ready(redis);
	is_called("first");
	assert_int_equal(rig_waiting(redis), 2);
	grants("epoch--1");
	grants("epoch--1");
	assert_false(r[1].granted);
}

/* ---- write-behind ---- */

/* A reservation that Redis granted. */
static struct reservation granted(void)
{
	struct reservation r = reservation_of(1000);

	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	/* It moves: the store looks at it again only while it is pending. */
	r.call->reservation = &r;
	grants("epoch--1");
	assert_true(r.granted && !r.fallback);
	return r;
}

static void what_is_used_within_a_tick_is_told_at_once_and_summed(void **state)
{
	struct reservation r[3];

	(void)state;
	connected();
	for (size_t i = 0; i < 3; i++)
		r[i] = granted();
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(limiter->settle(limiter, &r[i], 0, 40 + i, loop.now), 0);
		limiter->release(limiter, &r[i]);
	}
	assert_int_equal(rig_waiting(redis), 0);
	assert_true(redis->flush.due == loop.now + 2 * MSEC);
	assert_true(rig_fire(&redis->flush));
	assert_int_equal(rig_waiting(redis), 1);
	const struct limiter_call *tell = sent(0);
	assert_int_equal(tell->asks, LIMITER_REPORT);
	assert_int_equal(tell->parts[0].given_back, 3);
	assert_int_equal(tell->parts[0].change_count, 2); /* a day and a month */
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(tell->parts[0].changes[i].less, 300 - (40 + 41 + 42));
		assert_int_equal(tell->parts[0].changes[i].more, 0);
	}
	grants("epoch--1");
	assert_false(rig_fire(&redis->flush));
}

static void a_tenant_and_its_parts_are_told_of_in_one_request(void **state)
{
	static const uint8_t other_tenant[16] = { 9 };
	struct reservation r = reservation_of(0), other = reservation_of(0);

	(void)state;
	r.scope_count = 3;
	for (uint8_t i = 1; i < 3; i++) {
		r.scopes[i] = r.scopes[0];
		r.scopes[i].key[0] = i;
	}
	(void)memcpy(other.scopes[0].key, other_tenant, sizeof(other_tenant));
	connected();
	assert_int_equal(limiter->reserve(limiter, &other), LIMITER_PENDING);
	grants("epoch--1");
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	grants_all("epoch--1epoch--2epoch--3");
	assert_true(r.granted && other.granted);
	(void)limiter->settle(limiter, &other, 0, 5, loop.now);
	(void)limiter->settle(limiter, &r, 0, 5, loop.now);
	assert_true(rig_fire(&redis->flush));
	assert_int_equal(rig_waiting(redis), 2);
	assert_int_equal(sent(0)->part_count, 3);
	assert_int_equal(sent(1)->part_count, 1);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(sent(0)->parts[i].changes[0].less, 95);
	grants_all("epoch--1epoch--2epoch--3");
	grants("epoch--1");
	assert_false(rig_fire(&redis->flush));
}

static void the_next_claim_takes_along_what_is_to_be_told(void **state)
{
	struct reservation r, next = reservation_of(0);

	(void)state;
	connected();
	r = granted();
	(void)limiter->settle(limiter, &r, 0, 150, loop.now);
	assert_int_equal(limiter->reserve(limiter, &next), LIMITER_PENDING);
	assert_int_equal(rig_waiting(redis), 1);
	assert_int_equal(sent(0)->asks, LIMITER_CLAIM);
	assert_int_equal(sent(0)->parts[0].changes[0].more, 50);
	assert_true(rig_fire(&redis->flush)); /* nothing is left for it */
	assert_int_equal(rig_waiting(redis), 1);
	grants("epoch--1");
	assert_true(next.granted);
}

static void what_was_refused_is_told_again_and_what_was_lost_only_if_it_is_owed(void **state)
{
	static const struct {
		const char *name;
		uint64_t used;
		bool lost, again;
	} rows[] = {
		{ "more, refused", 150, false, true },
		{ "less, refused", 50, false, true },
		{ "more, lost", 150, true, true },
		{ "less, lost", 50, true, false }, /* not to be given back twice */
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)begin(state);
		connected();
		struct reservation r = granted();
		(void)limiter->settle(limiter, &r, 0, rows[i].used, loop.now);
		assert_true(rig_fire(&redis->flush));
		if (rows[i].lost)
			rig_answer(redis, REDIS_LOST, NULL);
		else
			refused("READONLY You can't write against a read only replica.");
		assert_true(rig_fire(&redis->flush));
		const bool again = rig_waiting(redis) == 1 && sent(0)->parts[0].change_count == 2;
		if (again != rows[i].again)
			fail_msg("%s", rows[i].name);
	}
}

static void a_claim_that_nobody_waits_for_any_more_is_undone(void **state)
{
	struct reservation r = reservation_of(0);

	(void)state;
	connected();
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	limiter->forget(limiter, &r);
	grants("epoch--1");
	assert_int_equal(done_count, 0);
	assert_true(rig_fire(&redis->flush));
	assert_int_equal(sent(0)->parts[0].changes[0].less, 100);
	assert_int_equal(sent(0)->parts[0].given_back, 1);
}

static void what_is_undone_is_told_as_if_it_had_never_been_claimed(void **state)
{
	struct reservation r = reservation_of(0);

	(void)state;
	connected();
	r.ask.tokens = 50;
	r.scopes[0].limits.requests = (struct quota_limit){ .per_minute = 60, .burst = 10 };
	r.scopes[0].limits.tokens = (struct quota_limit){ .per_minute = 6000, .burst = 6000 };
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	const struct limiter_part claimed = sent(0)->parts[0];
	assert_true(claimed.requests_cost != 0 && claimed.tokens_cost != 0);
	grants("epoch--1");
	limiter->undo(limiter, &r, loop.now);
	assert_false(r.granted);
	assert_int_equal(limit_read(r.scopes[0].slot, monday).concurrent, 0);
	assert_int_equal(limit_read(r.scopes[0].slot, monday).usd_day, 0);
	assert_true(rig_fire(&redis->flush));
	const struct limiter_part *told = &sent(0)->parts[0];
	assert_int_equal(told->owed.requests_less, claimed.requests_cost);
	assert_int_equal(told->owed.tokens_less, claimed.tokens_cost);
	assert_int_equal(told->owed.tokens_more, 0);
	assert_int_equal(told->given_back, 1);
	assert_int_equal(told->changes[0].less, 100);
	assert_int_equal(told->changes[0].more, 0);
}

static void what_is_undone_of_what_redis_did_not_grant_is_its_place_alone(void **state)
{
	struct reservation r = reservation_of(150), again = reservation_of(150);

	(void)state;
	connected();
	rig_unready(redis);
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_DONE);
	assert_true(r.granted && r.fallback);
	limiter->undo(limiter, &r, loop.now);
	assert_int_equal(limiter->reserve(limiter, &again), LIMITER_DONE);
	assert_true(again.granted); /* both would be more than 150 */
	limiter->undo(limiter, &again, loop.now);
	assert_int_equal(limit_read(r.scopes[0].slot, monday).concurrent, 0);
	rig_ready(redis);
	is_called("first");
	assert_int_equal(rig_waiting(redis), 0); /* Redis never had any of it */
}

/* ---- what Redis has lost ---- */

/* The money of today that the request says was told before. */
static uint64_t told_today(uint64_t which)
{
	const struct redis_tenant *tenant = &redis->tenants[sent(which)->parts[0].tenant];

	return tenant->money[quota_day(monday) & 1].reported;
}

static void a_new_epoch_is_asked_about_and_all_is_told_again_once(void **state)
{
	struct reservation r, next = reservation_of(0);

	(void)state;
	connected();
	r = granted();
	assert_int_equal(limiter->reserve(limiter, &next), LIMITER_PENDING);
	grants("epoch--2"); /* the script added what the claim's TOLD said */
	assert_int_equal(rig_waiting(redis), 1);
	is_called("second");
	assert_true(rig_fire(&redis->flush));
	assert_int_equal(rig_waiting(redis), 1);
	assert_int_equal(sent(0)->asks, LIMITER_REPORT);
	assert_int_equal(told_today(0), 200);
	grants("epoch--2");
	assert_false(rig_fire(&redis->flush));
	(void)limiter->settle(limiter, &r, 0, 100, loop.now);
}

static void a_worker_without_traffic_notices_with_its_leases(void **state)
{
	(void)state;
	connected();
	(void)granted();
	assert_true(redis->renew.due == 110 * SEC);
	assert_true(rig_fire(&redis->renew));
	is_called("first");
	assert_true(rig_fire(&redis->flush)); /* the lease */
	grants("epoch--1");
	assert_true(rig_fire(&redis->renew));
	is_called("second");
	assert_true(rig_fire(&redis->flush));
	assert_int_equal(rig_waiting(redis), 2); /* the lease, and what was told */
}

static void a_connection_to_the_same_store_tells_nothing_again(void **state)
{
	(void)state;
	connected();
	struct reservation r = granted();
	limiter->release(limiter, &r);
	assert_true(rig_fire(&redis->flush));
	grants("epoch--1");
	rig_unready(redis);
	rig_ready(redis);
	is_called("first");
	assert_int_equal(rig_waiting(redis), 0);
	assert_false(rig_fire(&redis->flush));
}

/* ---- away ---- */

static void while_redis_is_away_the_tenant_decides_and_it_is_told_afterwards(void **state)
{
	struct reservation local = reservation_of(150), closed = reservation_of(0);
	struct reservation second = reservation_of(150);

	(void)state;
	connected();
	rig_unready(redis);
	assert_int_equal(limiter->reserve(limiter, &local), LIMITER_DONE);
	assert_true(local.granted && local.fallback);
	assert_int_equal(limiter->reserve(limiter, &closed), LIMITER_DONE);
	assert_int_equal(closed.refusal.err, ERR_STORE);
	assert_int_equal(limiter->reserve(limiter, &second),
			 LIMITER_DONE); /* 200 would be more than 150 */
	assert_int_equal(second.refusal.err, ERR_STORE);
	(void)limiter->settle(limiter, &local, 0, 30, loop.now);
	assert_int_equal(limiter->reserve(limiter, &second), LIMITER_DONE);
	assert_true(second.granted);
	assert_int_equal(rig_waiting(redis), 0);
	rig_ready(redis);
	is_called("first");
	assert_int_equal(rig_waiting(redis), 1);
	assert_int_equal(sent(0)->parts[0].changes[0].more, 30);
}

static void a_late_answer_is_decided_away_by_the_clock_of_that_moment(void **state)
{
	struct reservation r = reservation_of(1000);

	(void)state;
	r.scopes[0].limits.requests = (struct quota_limit){ 60, 1 };
	connected();
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	loop.now += 20 * MSEC;
	rig_late(redis, 0);
	assert_int_equal(done_count, 1);
	assert_true(r.granted && r.fallback && r.now == loop.now);
	grants("epoch--1"); /* too late: undone */
	assert_int_equal(done_count, 1);
	assert_true(rig_fire(&redis->flush));
	assert_int_equal(sent(0)->parts[0].given_back, 1);
}

static void a_script_that_redis_forgot_is_sent_with_its_text_once(void **state)
{
	struct reservation r = reservation_of(0);

	(void)state;
	connected();
	(void)granted();
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	assert_false(fake_command(redis->link, 0)->by_text);
	refused("NOSCRIPT No matching script.");
	assert_int_equal(done_count, 1); /* of the one before */
	assert_true(fake_command(redis->link, 0)->by_text);
	grants("epoch--1");
	assert_true(r.granted);
}

/* It did nothing: what the call reported is reported again, and once. */
static void what_a_forgotten_script_was_told_is_told_with_its_text(void **state)
{
	struct reservation r = reservation_of(0), before;

	(void)state;
	connected();
	before = granted();
	limiter->release(limiter, &before);
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	assert_int_equal(sent(0)->parts[0].given_back, 1);
	refused("NOSCRIPT No matching script.");
	assert_int_equal(rig_waiting(redis), 1);
	assert_int_equal(sent(0)->parts[0].given_back, 1);
	grants("epoch--1");
	assert_true(r.granted);
	(void)rig_fire(&redis->flush);
	assert_int_equal(rig_waiting(redis), 0);
}

static void a_forgotten_script_claims_nothing_for_who_has_left(void **state)
{
	struct reservation r = reservation_of(0), before;

	(void)state;
	connected();
	before = granted();
	limiter->release(limiter, &before);
	assert_int_equal(limiter->reserve(limiter, &r), LIMITER_PENDING);
	limiter->forget(limiter, &r);
	refused("NOSCRIPT No matching script.");
	assert_int_equal(rig_waiting(redis), 1);
	assert_int_equal(sent(0)->asks, LIMITER_REPORT);
	assert_int_equal(sent(0)->parts[0].given_back, 1);
	grants("epoch--1");
	(void)rig_fire(&redis->flush);
	assert_int_equal(rig_waiting(redis), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, begin)
	const struct CMUnitTest tests[] = {
		TEST(the_first_requests_wait_for_the_first_connection),
		TEST(they_wait_no_longer_than_the_deadline),
		TEST(a_first_attempt_that_fails_ends_the_wait),
		TEST(who_goes_away_meanwhile_is_not_claimed_for),
		TEST(what_is_used_within_a_tick_is_told_at_once_and_summed),
		TEST(a_tenant_and_its_parts_are_told_of_in_one_request),
		TEST(the_next_claim_takes_along_what_is_to_be_told),
		TEST(what_was_refused_is_told_again_and_what_was_lost_only_if_it_is_owed),
		TEST(a_claim_that_nobody_waits_for_any_more_is_undone),
		TEST(what_is_undone_is_told_as_if_it_had_never_been_claimed),
		TEST(what_is_undone_of_what_redis_did_not_grant_is_its_place_alone),
		TEST(a_new_epoch_is_asked_about_and_all_is_told_again_once),
		TEST(a_worker_without_traffic_notices_with_its_leases),
		TEST(a_connection_to_the_same_store_tells_nothing_again),
		TEST(while_redis_is_away_the_tenant_decides_and_it_is_told_afterwards),
		TEST(a_late_answer_is_decided_away_by_the_clock_of_that_moment),
		TEST(a_script_that_redis_forgot_is_sent_with_its_text_once),
		TEST(what_a_forgotten_script_was_told_is_told_with_its_text),
		TEST(a_forgotten_script_claims_nothing_for_who_has_left),
	};

	return cmocka_run_group_tests_name("limiter_redis", tests, NULL, NULL);
}
