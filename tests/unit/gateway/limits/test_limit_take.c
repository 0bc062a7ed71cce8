#include "gateway/limits/limit_table.h"

#include "tenants/limit.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t monday = UINT64_C(1767571200); /* 2026-01-05 00:00 UTC */
static const nsec_t now = 1000 * SEC;

enum { TENANT, SERVER, MODEL, SCOPES };

struct fixture {
	int fd;
	struct limit_table *table;
	struct limit_scope scopes[SCOPES];
};

/* A tenant with wide limits, a server and a model with none: tests narrow what they are about. */
static struct fixture *fixture_init(struct fixture *f)
{
	*f = (struct fixture){ .fd = limit_table_create(8) };
	assert_true(f->fd >= 0);
	f->table = limit_table_map(f->fd);
	assert_non_null(f->table);
	for (uint8_t i = 0; i < SCOPES; i++) {
		const uint8_t key[16] = { 7, i, 9 };
		f->scopes[i] = (struct limit_scope){ .holder = (enum limit_holder)i,
						     .limits = limit_none(),
						     .slot = limit_table_slot(f->table, key) };
		assert_non_null(f->scopes[i].slot);
	}
	f->scopes[TENANT].limits.requests = (struct quota_limit){ 600, 100 };
	f->scopes[TENANT].limits.tokens = (struct quota_limit){ 60000, 60000 };
	f->scopes[TENANT].limits.concurrent = 50;
	f->scopes[TENANT].limits.usd_per_day = 1000;
	return f;
}

static void fixture_fini(struct fixture *f)
{
	limit_table_unmap(f->table);
	assert_int_equal(close(f->fd), 0);
}

static const struct limit_ask ask = { .requests = 1, .tokens = 100, .usd = 10, .concurrent = 1 };

static struct limit_state state_of(const struct fixture *f, int scope)
{
	return limit_read(f->scopes[scope].slot, monday);
}

static void every_scope_has_its_share_taken_settled_and_released(void **state)
{
	struct fixture f;
	struct limit_refusal refusal;

	(void)state;
	fixture_init(&f)->scopes[MODEL].limits.tokens = (struct quota_limit){ 6000, 6000 };
	assert_true(limit_take(f.scopes, SCOPES, &ask, now, monday, &refusal));
	for (int i = 0; i < SCOPES; i++) {
		assert_int_equal(state_of(&f, i).concurrent, 1);
		assert_int_equal(state_of(&f, i).usd_day, 10);
		assert_null(f.scopes[i].would_refuse);
	}
	assert_int_equal(state_of(&f, TENANT).tokens.tat, now + 100 * MSEC);
	assert_int_equal(state_of(&f, SERVER).tokens.tat, 0); /* no such limit */
	assert_int_equal(state_of(&f, MODEL).tokens.tat, now + SEC);
	assert_int_equal(limit_settle(f.scopes, SCOPES, &ask, monday, 50, 13, now), 3);
	assert_int_equal(state_of(&f, TENANT).tokens.tat, now + 50 * MSEC);
	assert_int_equal(state_of(&f, MODEL).tokens.tat, now + 500 * MSEC);
	limit_release(f.scopes, SCOPES);
	for (int i = 0; i < SCOPES; i++) {
		assert_int_equal(state_of(&f, i).concurrent, 0);
		assert_int_equal(state_of(&f, i).usd_day, 13);
	}
	fixture_fini(&f);
}

static void a_refusal_in_any_scope_leaves_all_as_they_were_and_names_it(void **state)
{
	static const struct {
		const char *name;
		int scope;
		struct tenant_limits limits;
		enum err err;
		const char *limit;
	} rows[] = {
		{ "burst of the server",
		  SERVER,
		  { .tokens = { 600, 99 },
		    .concurrent = 9,
		    .usd_per_day = LIMIT_NONE,
		    .usd_per_month = LIMIT_NONE },
		  ERR_OVER_BURST,
		  "tokens_per_minute" },
		{ "places of the model",
		  MODEL,
		  { .usd_per_day = LIMIT_NONE, .usd_per_month = LIMIT_NONE },
		  ERR_CONCURRENCY,
		  "concurrent" },
		{ "day of the model",
		  MODEL,
		  { .concurrent = 9, .usd_per_day = 9, .usd_per_month = LIMIT_NONE },
		  ERR_OVER_BUDGET,
		  "usd_per_day" },
		{ "no money at all",
		  SERVER,
		  { .concurrent = 9, .usd_per_day = LIMIT_NONE, .usd_per_month = 0 },
		  ERR_BUDGET,
		  "usd_per_month" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct fixture f;
		struct limit_refusal refusal = { 0 };

		fixture_init(&f)->scopes[rows[i].scope].limits = rows[i].limits;
		if (limit_take(f.scopes, SCOPES, &ask, now, monday, &refusal))
			fail_msg("%s: granted", rows[i].name);
		assert_int_equal(refusal.err, rows[i].err);
		assert_string_equal(refusal.limit, rows[i].limit);
		assert_int_equal(refusal.holder, rows[i].scope);
		for (int s = 0; s < SCOPES; s++) {
			const struct limit_state is = state_of(&f, s);
			if (is.concurrent != 0 || is.usd_day != 0 || is.usd_month != 0 ||
			    is.requests.tat != 0 || is.tokens.tat != 0)
				fail_msg("%s: scope %d kept something", rows[i].name, s);
		}
		fixture_fini(&f);
	}
}

static void the_wait_of_a_part_is_exact(void **state)
{
	struct fixture f;
	struct limit_refusal refusal;

	(void)state;
	fixture_init(&f)->scopes[SERVER].limits.requests = (struct quota_limit){ 6, 1 };
	assert_true(limit_take(f.scopes, SCOPES, &ask, now, monday, &refusal));
	assert_false(limit_take(f.scopes, SCOPES, &ask, now + SEC, monday, &refusal));
	assert_int_equal(refusal.err, ERR_RATE_LIMITED);
	assert_int_equal(refusal.wait_ns, 9 * SEC);
	assert_false(limit_take(f.scopes, SCOPES, &ask, now + 10 * SEC - 1, monday, &refusal));
	assert_true(limit_take(f.scopes, SCOPES, &ask, now + 10 * SEC, monday, &refusal));
	fixture_fini(&f);
}

static void what_only_counts_refuses_nothing_and_says_what_would_have(void **state)
{
	struct fixture f;
	struct limit_refusal refusal;

	(void)state;
	fixture_init(&f);
	f.scopes[SERVER].limits = (struct tenant_limits){ .count_only = true,
							  .requests = { 6, 1 },
							  .tokens = { 60, 100 },
							  .concurrent = 1,
							  .usd_per_day = 15,
							  .usd_per_month = LIMIT_NONE };
	struct limit_scope first[SCOPES];
	(void)memcpy(first, f.scopes, sizeof(first));
	assert_true(limit_take(first, SCOPES, &ask, now, monday, &refusal));
	assert_null(first[SERVER].would_refuse);
	const struct limit_state before = state_of(&f, SERVER);

	assert_true(limit_take(f.scopes, SCOPES, &ask, now, monday, &refusal));
	assert_string_equal(f.scopes[SERVER].would_refuse, "requests_per_minute");
	assert_null(f.scopes[TENANT].would_refuse);
	struct limit_state is = state_of(&f, SERVER);
	assert_int_equal(is.requests.tat, before.requests.tat); /* rates stay as they are */
	assert_int_equal(is.tokens.tat, before.tokens.tat);
	assert_int_equal(is.concurrent, 2); /* places and money count */
	assert_int_equal(is.usd_day, 20);

	/* what was passed over is not given back */
	assert_int_equal(limit_settle(f.scopes, SCOPES, &ask, monday, 0, 4, now), 0);
	is = state_of(&f, SERVER);
	assert_int_equal(is.tokens.tat, before.tokens.tat);
	assert_int_equal(is.usd_day, 14);
	assert_int_equal(limit_settle(first, SCOPES, &ask, monday, 0, 4, now), 0);
	assert_int_equal(state_of(&f, SERVER).tokens.tat, now);
	limit_release(f.scopes, SCOPES);
	limit_release(first, SCOPES);
	assert_int_equal(state_of(&f, SERVER).concurrent, 0);
	fixture_fini(&f);
}

/* As when somebody else takes between a look and its take: the second look saw what the first take spends. */
static void what_was_spent_since_the_look_is_not_taken_again(void **state)
{
	struct fixture f;
	struct limit_refusal refusal;

	(void)state;
	fixture_init(&f);
	struct limit_scope twice[2] = { f.scopes[TENANT], f.scopes[TENANT] };
	twice[0].limits.concurrent = twice[1].limits.concurrent = 1;
	assert_false(limit_take(twice, 2, &ask, now, monday, &refusal));
	assert_int_equal(refusal.err, ERR_CONCURRENCY);
	assert_string_equal(refusal.limit, "concurrent");
	assert_int_equal(state_of(&f, TENANT).concurrent, 0);
	assert_int_equal(state_of(&f, TENANT).usd_day, 0);
	assert_int_equal(state_of(&f, TENANT).tokens.tat, now);

	twice[0].limits.concurrent = twice[1].limits.concurrent = 2;
	assert_true(limit_take(twice, 2, &ask, now, monday, &refusal));
	assert_int_equal(state_of(&f, TENANT).concurrent, 2);
	assert_int_equal(state_of(&f, TENANT).usd_day, 20);
	assert_int_equal(state_of(&f, TENANT).requests.tat, now + 200 * MSEC);
	assert_int_equal(state_of(&f, TENANT).tokens.tat, now + 200 * MSEC);
	fixture_fini(&f);
}

static void what_counts_is_undone_when_another_scope_refuses(void **state)
{
	struct fixture f;
	struct limit_refusal refusal;

	(void)state;
	fixture_init(&f);
	f.scopes[TENANT].limits.count_only = true;
	f.scopes[TENANT].limits.usd_per_day = 0;
	f.scopes[MODEL].limits.usd_per_day = 0;
	assert_false(limit_take(f.scopes, SCOPES, &ask, now, monday, &refusal));
	assert_int_equal(refusal.holder, LIMIT_OF_MODEL);
	assert_int_equal(state_of(&f, TENANT).usd_day, 0);
	assert_int_equal(state_of(&f, TENANT).concurrent, 0);
	assert_int_equal(state_of(&f, TENANT).requests.tat, 0);
	fixture_fini(&f);
}

static void a_budget_that_is_topped_up_ends_with_its_period(void **state)
{
	enum { DAY_S = 86400 };
	const struct limit_ask dear = { .usd = 1500 };
	struct limit_refusal refusal;
	struct fixture f;

	(void)state;
	fixture_init(&f)->scopes[TENANT].limits.usd_per_month = 2600;
	assert_false(limit_take(f.scopes, 1, &dear, now, monday, &refusal));
	limit_top_up(f.scopes[TENANT].slot, 499, monday);
	assert_false(limit_take(f.scopes, 1, &dear, now, monday, &refusal));
	limit_top_up(f.scopes[TENANT].slot, 1, monday);
	assert_int_equal(state_of(&f, TENANT).usd_day_more, 500);
	assert_true(limit_take(f.scopes, 1, &dear, now, monday, &refusal));
	assert_false(limit_take(f.scopes, 1, &dear, now, monday + DAY_S, &refusal));
	assert_string_equal(refusal.limit, "usd_per_day");
	limit_top_up(f.scopes[TENANT].slot, UINT64_MAX, monday + DAY_S); /* saturates */
	assert_true(limit_take(f.scopes, 1, &dear, now, monday + DAY_S, &refusal));
	assert_int_equal(limit_read(f.scopes[0].slot, monday + 40 * DAY_S).usd_month_more, 0);
	fixture_fini(&f);
}

static void the_latest_refusals_are_remembered(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f);
	assert_int_equal(state_of(&f, TENANT).refused[0].wall_s, 0);
	for (uint64_t i = 0; i < 5; i++) {
		const struct limit_note note = { .wall_s = monday + i,
						 .err = ERR_BUDGET,
						 .limit = "usd_per_day",
						 .holder = LIMIT_OF_MODEL };
		limit_note(f.scopes[TENANT].slot, &note);
	}
	const struct limit_note policy = { .wall_s = monday + 9, .err = ERR_POLICY };
	const struct limit_note same_second = { .wall_s = monday + 9, .err = ERR_BUDGET };
	limit_note(f.scopes[TENANT].slot, &policy);
	limit_note(f.scopes[TENANT].slot, &same_second);
	const struct limit_state is = state_of(&f, TENANT);
	assert_int_equal(is.refused[0].wall_s, monday + 9);
	assert_int_equal(is.refused[0].err, ERR_POLICY);
	assert_null(is.refused[0].limit);
	assert_int_equal(is.refused[1].wall_s, monday + 4);
	assert_int_equal(is.refused[1].err, ERR_BUDGET);
	assert_string_equal(is.refused[1].limit, "usd_per_day");
	assert_int_equal(is.refused[1].holder, LIMIT_OF_MODEL);
	fixture_fini(&f);
}

/* ---- threads: the narrowest scope decides, and nothing is left behind ---- */

enum { THREADS = 4, ROUNDS = 3000, SERVER_REQUESTS = 500, MODEL_USD = 4000 };

struct caller {
	struct fixture *f;
	atomic_uint *granted;
};

static void *call_often(void *arg)
{
	const struct caller *caller = arg;
	struct limit_scope scopes[SCOPES];
	struct limit_refusal refusal;

	for (int i = 0; i < ROUNDS; i++) {
		(void)memcpy(scopes, caller->f->scopes, sizeof(scopes));
		if (!limit_take(scopes, SCOPES, &ask, now, monday, &refusal))
			continue;
		(void)atomic_fetch_add(caller->granted, 1);
		(void)limit_settle(scopes, SCOPES, &ask, monday, ask.tokens, ask.usd, now);
		limit_release(scopes, SCOPES);
	}
	return NULL;
}

static void threads_take_exactly_what_the_narrowest_scope_has(void **state)
{
	atomic_uint granted = 0;
	struct fixture f;
	pthread_t threads[THREADS];
	struct caller caller = { &f, &granted };

	(void)state;
	fixture_init(&f);
	f.scopes[TENANT].limits = limit_none();
	f.scopes[SERVER].limits.requests = (struct quota_limit){ 1, SERVER_REQUESTS };
	f.scopes[MODEL].limits.usd_per_day = MODEL_USD; /* room for 400 of 10 */
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, call_often, &caller), 0);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(granted, MODEL_USD / (int)ask.usd);
	for (int i = 0; i < SCOPES; i++) {
		assert_int_equal(state_of(&f, i).concurrent, 0);
		assert_int_equal(state_of(&f, i).usd_day, MODEL_USD);
	}
	assert_int_equal(state_of(&f, SERVER).requests.tat,
			 now + quota_cost(f.scopes[SERVER].limits.requests, 400));
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_scope_has_its_share_taken_settled_and_released),
		cmocka_unit_test(a_refusal_in_any_scope_leaves_all_as_they_were_and_names_it),
		cmocka_unit_test(the_wait_of_a_part_is_exact),
		cmocka_unit_test(what_only_counts_refuses_nothing_and_says_what_would_have),
		cmocka_unit_test(what_was_spent_since_the_look_is_not_taken_again),
		cmocka_unit_test(what_counts_is_undone_when_another_scope_refuses),
		cmocka_unit_test(a_budget_that_is_topped_up_ends_with_its_period),
		cmocka_unit_test(the_latest_refusals_are_remembered),
		cmocka_unit_test(threads_take_exactly_what_the_narrowest_scope_has),
	};

	return cmocka_run_group_tests_name("limit_take", tests, NULL, NULL);
}
