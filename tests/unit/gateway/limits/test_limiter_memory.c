#include "gateway/limits/limiter.h"

#include "tenants/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t monday = UINT64_C(1767571200); /* 2026-01-05 00:00 UTC */

struct fixture {
	int fd;
	struct limit_table *table;
	struct limiter_memory memory;
	struct limiter *limiter;
};

static void fixture_init(struct fixture *f, size_t slots)
{
	f->fd = limit_table_create(slots);
	assert_true(f->fd >= 0);
	f->table = limit_table_map(f->fd);
	assert_non_null(f->table);
	limiter_memory_init(&f->memory, f->table);
	f->limiter = &f->memory.limiter;
}

static void fixture_fini(struct fixture *f)
{
	limit_table_unmap(f->table);
	assert_int_equal(close(f->fd), 0);
}

static void never_called(struct reservation *reservation)
{
	(void)reservation;
	fail_msg("an answer that came at once was delivered again");
}

/* Of a few at a time. */
static struct limit_scope *scope_of(uint8_t tenant)
{
	static struct limit_scope scopes[8];
	static size_t taken;
	struct limit_scope *scope = &scopes[taken++ % COUNT_OF(scopes)];

	*scope = (struct limit_scope){ .key = { tenant, 1, 2, 3 }, .limits = limit_defaults() };
	return scope;
}

static struct reservation reservation_of(uint8_t tenant)
{
	struct reservation r = {
		.scopes = scope_of(tenant),
		.scope_count = 1,
		.ask = { .requests = 1, .tokens = 1000, .usd = 100, .concurrent = 1 },
		.now = 100 * SEC,
		.wall_s = monday,
		.done = never_called,
	};

	r.scopes[0].limits.concurrent = 2;
	return r;
}

static void a_reservation_is_answered_at_once_settled_and_released(void **state)
{
	struct reservation r = reservation_of(1);
	struct fixture f;

	(void)state;
	fixture_init(&f, 4);
	assert_int_equal(f.limiter->reserve(f.limiter, &r), LIMITER_DONE);
	assert_true(r.granted);
	assert_ptr_equal(r.scopes[0].slot, limit_table_slot(f.table, r.scopes[0].key));
	struct limit_state is = limit_read(r.scopes[0].slot, monday);
	assert_int_equal(is.concurrent, 1);
	assert_int_equal(is.usd_day, 100);

	assert_int_equal(f.limiter->settle(f.limiter, &r, 10, 40, 101 * SEC), 0);
	is = limit_read(r.scopes[0].slot, monday);
	assert_int_equal(is.usd_day, 40);
	assert_int_equal(is.concurrent, 1);
	f.limiter->release(f.limiter, &r);
	assert_int_equal(limit_read(r.scopes[0].slot, monday).concurrent, 0);
	fixture_fini(&f);
}

static void what_is_undone_was_never_taken(void **state)
{
	struct reservation r = reservation_of(1), again = reservation_of(1);
	struct fixture f;

	(void)state;
	r.scopes[0].limits.requests = (struct quota_limit){ .per_minute = 60, .burst = 1 };
	r.scopes[0].limits.tokens = (struct quota_limit){ .per_minute = 1000, .burst = 1000 };
	*again.scopes = *r.scopes;
	fixture_init(&f, 4);
	assert_int_equal(f.limiter->reserve(f.limiter, &r), LIMITER_DONE);
	assert_true(r.granted);
	f.limiter->undo(f.limiter, &r, 100 * SEC);
	assert_false(r.granted);
	const struct limit_state is = limit_read(r.scopes[0].slot, monday);
	assert_int_equal(is.concurrent, 0);
	assert_int_equal(is.usd_day, 0);
	assert_int_equal(is.usd_month, 0);
	(void)f.limiter->reserve(f.limiter, &again); /* there is room for one only */
	assert_true(again.granted);
	fixture_fini(&f);
}

static void a_refusal_carries_its_particulars(void **state)
{
	struct reservation r[3] = { reservation_of(1), reservation_of(1), reservation_of(1) };
	struct fixture f;

	(void)state;
	fixture_init(&f, 4);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(f.limiter->reserve(f.limiter, &r[i]), LIMITER_DONE);
	assert_true(r[0].granted && r[1].granted && !r[2].granted);
	assert_int_equal(r[2].refusal.err, ERR_CONCURRENCY);
	assert_string_equal(r[2].refusal.limit, "concurrent");
	assert_int_equal(r[2].refusal.wait_ns, 1 * SEC);
	f.limiter->release(f.limiter, &r[0]);
	(void)f.limiter->reserve(f.limiter, &r[2]);
	assert_true(r[2].granted);
	fixture_fini(&f);
}

static void a_further_attempt_keeps_the_place_of_the_first(void **state)
{
	struct reservation r = reservation_of(1);
	struct fixture f;

	(void)state;
	fixture_init(&f, 4);
	r.scopes[0].limits.usd_per_day = 150;
	(void)f.limiter->reserve(f.limiter, &r);
	assert_true(r.granted);
	assert_int_equal(f.limiter->settle(f.limiter, &r, 1000, 130, 101 * SEC), 30);
	r.ask.requests = 0;
	r.ask.concurrent = 0;
	(void)f.limiter->reserve(f.limiter, &r);
	assert_false(r.granted);
	assert_int_equal(r.refusal.err, ERR_BUDGET);
	f.limiter->release(f.limiter, &r);
	assert_int_equal(limit_read(r.scopes[0].slot, monday).concurrent, 0);
	fixture_fini(&f);
}

static void more_tenants_than_slots_are_refused_as_overload(void **state)
{
	struct fixture f;
	unsigned granted = 0, refused = 0;

	(void)state;
	fixture_init(&f, 1);
	for (uint8_t tenant = 1; tenant <= 5; tenant++) {
		struct reservation r = reservation_of(tenant);
		assert_int_equal(f.limiter->reserve(f.limiter, &r), LIMITER_DONE);
		const uint32_t series = f.limiter->series(f.limiter, r.scopes[0].key);
		if (r.granted) {
			assert_int_equal(series, granted++);
			continue;
		}
		refused++;
		assert_null(r.scopes[0].slot);
		assert_int_equal(r.refusal.err, ERR_BUSY);
		assert_null(r.refusal.limit);
		assert_int_equal(series, UINT32_MAX);
	}
	assert_int_equal(granted, 2);
	assert_int_equal(refused, 3);
	fixture_fini(&f);
}

/* Granted, with nothing limited. */
static void reserve_for_server(struct fixture *f, struct limit_scope scopes[2], uint8_t tenant,
			       uint8_t server)
{
	struct reservation r = reservation_of(tenant);

	r.scopes[0].limits = limit_none();
	scopes[0] = scopes[1] = r.scopes[0];
	scopes[1].holder = LIMIT_OF_SERVER;
	scopes[1].key[15] = server;
	r.scopes = scopes;
	r.scope_count = 2;
	(void)f->limiter->reserve(f->limiter, &r);
	assert_true(r.granted);
}

static void servers_without_end_take_no_slot_from_other_tenants(void **state)
{
	const struct limit_slot *shared = NULL;
	struct fixture f;

	(void)state;
	fixture_init(&f, 8);
	for (uint8_t server = 1; server <= 100; server++) {
		struct limit_scope scopes[2];
		reserve_for_server(&f, scopes, 1, server);
		shared = scopes[1].slot;
	}
	for (uint8_t tenant = 1; tenant <= 4;
	     tenant++) { /* those that come late share a slot, each tenant's its own */
		struct limit_scope first[2], second[2];
		reserve_for_server(&f, first, tenant, 101);
		reserve_for_server(&f, second, tenant, 102);
		assert_ptr_equal(first[1].slot, second[1].slot);
		assert_ptr_not_equal(first[1].slot, first[0].slot);
		assert_true((first[1].slot == shared) == (tenant == 1));
	}
	fixture_fini(&f);
}

static void two_workers_share_one_table(void **state)
{
	struct reservation r[3] = { reservation_of(1), reservation_of(1), reservation_of(1) };
	struct limiter_memory other;
	struct fixture f;

	(void)state;
	fixture_init(&f, 4);
	limiter_memory_init(&other, f.table);
	(void)f.limiter->reserve(f.limiter, &r[0]);
	(void)other.limiter.reserve(&other.limiter, &r[1]);
	(void)f.limiter->reserve(f.limiter, &r[2]);
	assert_true(r[0].granted && r[1].granted && !r[2].granted);
	assert_int_equal(other.limiter.series(&other.limiter, r[0].scopes[0].key),
			 f.limiter->series(f.limiter, r[0].scopes[0].key));
	fixture_fini(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reservation_is_answered_at_once_settled_and_released),
		cmocka_unit_test(what_is_undone_was_never_taken),
		cmocka_unit_test(a_refusal_carries_its_particulars),
		cmocka_unit_test(a_further_attempt_keeps_the_place_of_the_first),
		cmocka_unit_test(more_tenants_than_slots_are_refused_as_overload),
		cmocka_unit_test(servers_without_end_take_no_slot_from_other_tenants),
		cmocka_unit_test(two_workers_share_one_table),
	};

	return cmocka_run_group_tests_name("limiter_memory", tests, NULL, NULL);
}
