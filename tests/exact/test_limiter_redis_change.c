/* limits/limits.lua where limits change, or where gateways have different ones, in a real Redis.
 *
 * ctest: timeout=60 */
#include <stdint.h>

enum { WORKERS = 3, HISTORIES = 300, RIG_SLOTS = 4 * HISTORIES };

#include "tests/exact/limiter_script_rig.h"

__extension__ typedef unsigned __int128 wide;

static uint64_t tenants; /* so far */

struct claim {
	struct limiter_redis *at;
	struct limit_scope scope;
	struct reservation reservation;
};

static struct limit_scope new_tenant(void)
{
	const uint64_t number = ++tenants;
	const uint64_t name[2] = { number * UINT64_C(0x9e3779b97f4a7c15), number << 32 };
	struct limit_scope scope = { .limits = limit_none() };

	(void)memcpy(scope.key, name, sizeof(scope.key));
	return scope;
}

static void on_done(struct reservation *reservation)
{
	(void)reservation;
}

/* At a gateway, or, `at` NULL, at the table. */
static bool take(struct claim *claim, struct limiter *limiter, const struct limit_scope *scope,
		 struct limit_ask ask)
{
	claim->scope = *scope;
	claim->reservation = (struct reservation){ .scopes = &claim->scope,
						   .scope_count = 1,
						   .ask = ask,
						   .now = loop.now,
						   .wall_s = loop.wall_s,
						   .done = on_done };
	if (limiter->reserve(limiter, &claim->reservation) == LIMITER_PENDING)
		settle_down(claim->at);
	return claim->reservation.granted;
}

static bool take_at(struct claim *claim, struct limiter_redis *at, const struct limit_scope *scope,
		    struct limit_ask ask)
{
	claim->at = at;
	return take(claim, limiter_redis_limiter(at), scope, ask);
}

static void settle_at(struct claim *claim, uint64_t tokens)
{
	struct limiter *limiter = limiter_redis_limiter(claim->at);

	(void)limiter->settle(limiter, &claim->reservation, tokens, 0, loop.now);
	settle_down(claim->at);
}

static void time_passes(uint64_t us)
{
	clock_us += us;
	tell_time();
}

static struct quota_limit any_limit(uint64_t *seed)
{
	return (struct quota_limit){ any_size(seed, 8), 1 + chance(seed, 300) };
}

/* ---- as the table ---- */

static void same_rate(const struct limiter_rate *ours, const struct quota_state *model)
{
	assert_true((ours->ns > loop.now ? ours->ns : loop.now) ==
		    (model->tat > loop.now ? model->tat : loop.now));
	assert_true(ours->written == model->written);
}

/* Two plans for one tenant, and gateways that have now the one, now the other. */
static void figures_change_as_in_the_table(void **state)
{
	const int fd = limit_table_create(RIG_SLOTS);
	struct limit_table *table = limit_table_map(fd);
	struct limiter_memory model;
	uint64_t seed = 77, refused = 0;

	(void)state;
	assert_non_null(table);
	limiter_memory_init(&model, table);
	for (int history = 0; history < HISTORIES; history++) {
		struct limit_scope tenant = new_tenant();
		struct quota_limit figures[2] = { any_limit(&seed), any_limit(&seed) };
		if (chance(&seed, 4) == 0) /* the burst alone is another */
			figures[1].per_minute = figures[0].per_minute;
		const bool tokens = chance(&seed, 2) == 0;
		for (int step = 0; step < 30; step++) {
			const struct quota_limit limit = figures[chance(&seed, 2)];
			const struct limit_ask ask = {
				.requests = !tokens,
				.tokens = tokens ? 1 + chance(&seed, limit.burst) : 0
			};
			struct claim ours, there;
			time_passes(1 + chance(&seed,
					       chance(&seed, 12) == 0 ? 100 * MICROS : 3 * MICROS));
			*(tokens ? &tenant.limits.tokens : &tenant.limits.requests) = limit;
			tenant.limits.count_only = chance(&seed, 8) == 0;
			const bool granted =
				take_at(&ours, workers[chance(&seed, WORKERS)], &tenant, ask);
			assert_int_equal(take(&there, &model.limiter, &tenant, ask), granted);
			refused += !granted;
			if (!granted)
				assert_true(ours.reservation.refusal.wait_ns ==
					    there.reservation.refusal.wait_ns);
			const struct limiter_state is = state_in_redis(&tenant, 0);
			const struct limit_state in_table =
				limit_read(limit_table_slot(table, tenant.key), loop.wall_s);
			same_rate(tokens ? &is.tokens : &is.requests,
				  tokens ? &in_table.tokens : &in_table.requests);
		}
	}
	assert_true(refused > HISTORIES);
	limit_table_unmap(table);
	(void)close(fd);
}

/* ---- never too much ---- */

enum { GRANTS = 60 };

struct granted {
	uint64_t n[GRANTS], at_us[GRANTS];
	size_t count;
};

/* No window has more than the largest burst and what the largest rate refills. */
static void assert_bounded(const struct granted *granted, struct quota_limit most)
{
	for (size_t first = 0; first < granted->count; first++) {
		uint64_t sum = 0;
		for (size_t last = first; last < granted->count; last++) {
			const uint64_t ns =
				(granted->at_us[last] - granted->at_us[first]) * USEC + 1;
			sum += granted->n[last];
			assert_true(sum <= most.burst || (wide)(sum - most.burst) * 60 * SEC <=
								 (wide)ns * most.per_minute);
		}
	}
}

/* Every gateway has figures of its own, and speaks once a minute at least. */
static void a_mixed_fleet_never_gets_more_than_its_largest_figures(void **state)
{
	uint64_t seed = 3;

	(void)state;
	for (int history = 0; history < HISTORIES / 3; history++) {
		struct limit_scope tenant = new_tenant();
		struct quota_limit figures[WORKERS], most = { 0, 0 };
		uint64_t spoke_us[WORKERS];
		struct granted granted = { .count = 0 };

		for (uint32_t i = 0; i < WORKERS; i++) {
			figures[i] =
				(struct quota_limit){ any_size(&seed, 5), 1 + chance(&seed, 100) };
			if (figures[i].per_minute > most.per_minute)
				most.per_minute = figures[i].per_minute;
			if (figures[i].burst > most.burst)
				most.burst = figures[i].burst;
			spoke_us[i] = clock_us;
		}
		for (int step = 0; step < 200 && granted.count < GRANTS; step++) {
			uint64_t by = chance(&seed, WORKERS);
			struct claim claim;
			for (uint32_t i = 0; i < WORKERS; i++)
				if (clock_us - spoke_us[i] > 40 * MICROS)
					by = i;
			spoke_us[by] = clock_us;
			tenant.limits.tokens = figures[by];
			const struct limit_ask ask = {
				.tokens = 1 + chance(&seed,
						     chance(&seed, 2) == 0 ? figures[by].burst : 3)
			};
			if (take_at(&claim, workers[by], &tenant, ask)) {
				granted.n[granted.count] = ask.tokens;
				granted.at_us[granted.count++] = clock_us;
			}
			time_passes(1 + chance(&seed, 1 + any_size(&seed, 7)));
		}
		assert_bounded(&granted, most);
	}
}

/* ---- what was taken before a change ---- */

static const struct quota_limit few = { 1, 10 }, many = { 60000, 6000 };

static uint64_t owed_ms(const struct limit_scope *tenant)
{
	return (state_in_redis(tenant, 0).tokens.ns - loop.now) / MSEC;
}

/* It ends at a gateway that has, or has not yet, claimed under the new figures; what was asked for and is not
 * wanted any more likewise. */
static void what_was_taken_before_a_change_is_told_behind_it(void **state)
{
	(void)state;
	for (uint32_t other = 0; other < 2; other++) {
		struct limit_scope before = new_tenant(), after = before;
		struct claim first, second, third;

		before.limits.tokens = few;
		after.limits.tokens = many;
		time_passes(MICROS);
		assert_true(
			take_at(&first, workers[0], &before, (struct limit_ask){ .tokens = 4 }));
		assert_true(
			take_at(&second, workers[0], &before, (struct limit_ask){ .tokens = 4 }));
		assert_int_equal(owed_ms(&before), 8 * 60000);
		assert_true(
			take_at(&third, workers[other], &after, (struct limit_ask){ .tokens = 1 }));
		assert_int_equal(owed_ms(&before), 9);
		settle_at(&first, 6);
		assert_int_equal(owed_ms(&before), 11);
		settle_at(&second, 1);
		assert_int_equal(owed_ms(&before), 8);
	}
}

static void a_claim_that_nobody_waits_for_is_given_back_under_the_new_rate(void **state)
{
	struct limit_scope before = new_tenant(), after = before;
	struct limiter *limiter = limiter_redis_limiter(workers[0]);
	struct claim old = { .at = workers[0] }, fresh;

	(void)state;
	before.limits.requests = before.limits.tokens = few;
	after.limits.requests = after.limits.tokens = many;
	old.scope = before;
	old.reservation = (struct reservation){ .scopes = &old.scope,
						.scope_count = 1,
						.ask = { .requests = 1, .tokens = 4 },
						.now = loop.now,
						.wall_s = loop.wall_s,
						.done = on_done };
	assert_int_equal(limiter->reserve(limiter, &old.reservation), LIMITER_PENDING);
	limiter->forget(limiter, &old.reservation);
	assert_true(take_at(&fresh, workers[0], &after,
			    (struct limit_ask){ .requests = 1, .tokens = 1 }));
	settle_down(workers[0]);
	assert_int_equal(owed_ms(&before), 1);
	assert_int_equal((state_in_redis(&before, 0).requests.ns - loop.now) / MSEC, 1);
}

static void what_is_shown_is_what_may_be_taken(void **state)
{
	struct limit_scope tenant = new_tenant();
	struct claim claim;

	(void)state;
	tenant.limits.tokens = many;
	assert_true(take_at(&claim, workers[0], &tenant, (struct limit_ask){ .tokens = 6000 }));
	const struct {
		uint64_t passed_us;
		struct quota_limit limit;
		uint64_t left;
	} rows[] = { { 0, few, 0 },
		     { 0, { 60000, 7000 }, 1000 },
		     { 0, { 1, 6010 }, 10 },
		     { 10000, many, 10 } };
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct limiter_query *question = limiter_query_new(tenant.key, &tenant.key, 1, 0);
		time_passes(rows[i].passed_us);
		limiter_redis_ask(workers[1], question);
		settle_down(workers[1]);
		assert_int_equal(limiter_query_wait(question, 0), LIMITER_SAID_DONE);
		const struct quota_state is = limiter_query_state(question, 0)->tokens;
		assert_int_equal(quota_remaining(quota_read(&is, rows[i].limit, loop.now),
						 rows[i].limit, loop.now),
				 rows[i].left);
		limiter_query_free(question);
	}
}

/* ---- versions ---- */

/* As a gateway of the version before has left it: no rates, and an entry of a worker that holds places. */
static void put_former_state(const struct limit_scope *tenant, uint64_t tokens_ns, uint32_t places)
{
	struct redis_buffer out = { .most = 1024 };
	struct redis_pack packed = { 0 };
	const uint32_t now_s = (uint32_t)(clock_us / MICROS), day = quota_day(now_s),
		       month = quota_month(now_s);
	void *reply = NULL;

	redis_pack_bytes(&packed, "former--", LIMITER_EPOCH_BYTES);
	redis_pack_amount(&packed, clock_us * USEC);
	redis_pack_amount(&packed, clock_us * USEC + tokens_ns);
	redis_pack_number(&packed, places);
	redis_pack_number(&packed, now_s + 30);
	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t now_is = i < 2 ? day : month;
		redis_pack_number(&packed, (now_is & 1) == (i & 1) ? now_is : 0);
		redis_pack_amount(&packed, (now_is & 1) == (i & 1) ? 700 : 0);
	}
	for (uint32_t i = 0; i < 4; i++)
		redis_pack_amount(&packed, 0);
	redis_pack_bytes(&packed, "worker--", LIMITER_WORKER_BYTES);
	redis_pack_number(&packed, 1);
	redis_pack_number(&packed, places);
	redis_pack_number(&packed, now_s + 30);
	assert_int_equal(packed.len, 132);
	redis_put_count(&out, 3);
	redis_put(&out, SLICE("SET"));
	limiter_redis_put_key(&out, tenant->key, tenant->key);
	redis_put_pack(&out, &packed);
	assert_int_equal(redisAppendFormattedCommand(connection, out.at, out.len), REDIS_OK);
	assert_int_equal(redisGetReply(connection, &reply), REDIS_OK);
	freeReplyObject(reply);
	redis_buffer_fini(&out);
}

/* Whose rate is not known: it counts under one's own, and no more of it than one's own burst. */
static void a_state_of_the_version_before_is_read(void **state)
{
	static const struct {
		const char *name;
		uint64_t owed_ms;
		struct quota_limit limit;
		uint64_t wait_ms; /* for all that may be had at once */
	} rows[] = {
		{ "the same figures", 420000, { 1, 10 }, 420000 },
		{ "raised since", 600000, { 60000, 6000 }, 6000 },
		{ "lowered since", 6000, { 1, 10 }, 6000 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct limit_scope tenant = new_tenant();
		struct claim claim;

		tenant.limits.tokens = rows[i].limit;
		tenant.limits.concurrent = 4;
		tenant.limits.usd_per_day = 1000;
		time_passes(MICROS);
		put_former_state(&tenant, rows[i].owed_ms * MSEC, 3);
		struct limit_ask ask = { .tokens = rows[i].limit.burst };
		assert_false(take_at(&claim, workers[0], &tenant, ask));
		if (claim.reservation.refusal.wait_ns != rows[i].wait_ms * MSEC)
			fail_msg("%s: %llu", rows[i].name,
				 (unsigned long long)claim.reservation.refusal.wait_ns);
		ask = (struct limit_ask){ .concurrent = 1, .usd = 300 };
		assert_true(take_at(&claim, workers[0], &tenant, ask));
		ask = (struct limit_ask){ .concurrent = 1 };
		assert_false(take_at(&claim, workers[0], &tenant, ask));
		assert_int_equal(claim.reservation.refusal.err, ERR_CONCURRENCY);
		ask = (struct limit_ask){ .usd = 1 };
		assert_false(take_at(&claim, workers[0], &tenant, ask));
		assert_int_equal(claim.reservation.refusal.err, ERR_BUDGET);
		const struct limiter_state is = state_in_redis(&tenant, 0);
		assert_true(is.tokens.written == rows[i].limit.per_minute);
		assert_int_equal(is.places, 4);
		assert_int_equal(is.day, 1000);
	}
}

/* It takes the length of a state for a sign that it is one, adds up the places of entries that last, and
 * forgets those that do not. */
static void a_gateway_of_the_version_before_sees_entries_without_places(void **state)
{
	enum { ENTRIES_AT = 112, ENTRY = 20, RATES = 4 };
	struct limit_scope tenant = new_tenant();
	struct redis_buffer out = { .most = 1024 };
	struct claim claim;
	void *taken = NULL;

	(void)state;
	tenant.limits.requests = few;
	assert_true(take_at(&claim, workers[0], &tenant, (struct limit_ask){ .requests = 1 }));
	time_passes(1000 * (uint64_t)MICROS); /* and through a sweep */
	assert_true(take_at(&claim, workers[1], &tenant, (struct limit_ask){ .requests = 1 }));
	redis_put_count(&out, 2);
	redis_put(&out, SLICE("GET"));
	limiter_redis_put_key(&out, tenant.key, tenant.key);
	assert_int_equal(redisAppendFormattedCommand(connection, out.at, out.len), REDIS_OK);
	assert_int_equal(redisGetReply(connection, &taken), REDIS_OK);
	const redisReply *reply = taken;
	assert_int_equal(reply->len, ENTRIES_AT + (RATES + 1) * ENTRY);
	for (size_t i = 0; i < RATES; i++)
		assert_memory_equal(reply->str + ENTRIES_AT + i * ENTRY + 12,
				    "\0\0\0\0\377\377\377\377", 8);
	freeReplyObject(taken);
	redis_buffer_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(figures_change_as_in_the_table, begin_workers),
		cmocka_unit_test(a_mixed_fleet_never_gets_more_than_its_largest_figures),
		cmocka_unit_test(what_was_taken_before_a_change_is_told_behind_it),
		cmocka_unit_test(a_claim_that_nobody_waits_for_is_given_back_under_the_new_rate),
		cmocka_unit_test(what_is_shown_is_what_may_be_taken),
		cmocka_unit_test(a_state_of_the_version_before_is_read),
		cmocka_unit_test(a_gateway_of_the_version_before_sees_entries_without_places),
	};

	return cmocka_run_group_tests_name("limiter_redis_change", tests, begin_server, end_server);
}
