#include "gateway/limits/limit_table.h"

#include "tenants/limit.h"
#include "tests/support/one_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const uint64_t monday = UINT64_C(1767571200); /* 2026-01-05 00:00 UTC */
enum { DAY_S = 86400 };

/* A key as a digest would give it. */
static void key_of(uint64_t n, uint8_t key[16])
{
	uint8_t digest[SHA256_BYTES];

	sha256(slice_of((const char *)&n, sizeof(n)), digest);
	(void)memcpy(key, digest, 16);
}

struct fixture {
	int fd;
	struct limit_table *table;
	struct limit_slot *slot;
};

static struct fixture fixture_new(size_t slots)
{
	struct fixture f = { .fd = limit_table_create(slots) };
	uint8_t key[16];

	assert_true(f.fd >= 0);
	f.table = limit_table_map(f.fd);
	assert_non_null(f.table);
	key_of(0, key);
	f.slot = limit_table_slot(f.table, key);
	assert_non_null(f.slot);
	return f;
}

static void fixture_free(struct fixture *f)
{
	limit_table_unmap(f->table);
	assert_int_equal(close(f->fd), 0);
}

/* Limits that refuse nothing a test asks for, unless it says so. */
static struct tenant_limits roomy(void)
{
	struct tenant_limits limits = limit_defaults();

	limits.requests = (struct quota_limit){ 1000000, 1000000 };
	limits.tokens = (struct quota_limit){ 1000000000, 1000000000 };
	limits.concurrent = 1000;
	limits.usd_per_day = LIMIT_NONE;
	limits.usd_per_month = LIMIT_NONE;
	return limits;
}

static void assert_same(struct limit_state a, struct limit_state b)
{
	assert_int_equal(a.requests.tat, b.requests.tat);
	assert_int_equal(a.tokens.tat, b.tokens.tat);
	assert_int_equal(a.concurrent, b.concurrent);
	assert_int_equal(a.usd_day, b.usd_day);
	assert_int_equal(a.usd_month, b.usd_month);
}

/* ---- the file ---- */

static void the_file_can_neither_shrink_nor_grow_and_is_inherited(void **state)
{
	const int fd = limit_table_create(1000);
	struct stat about;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &about), 0);
	assert_true(about.st_blocks <= 16); /* sparse */
	assert_int_equal(ftruncate(fd, 4096), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, about.st_size * 2), -1);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
	assert_int_equal(close(fd), 0);
}

static void a_size_that_cannot_be_is_refused(void **state)
{
	(void)state;
	assert_int_equal(limit_table_create(0), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(limit_table_create(SIZE_MAX), -1);
	assert_int_equal(errno, EINVAL);
}

static void a_file_that_is_no_table_is_not_mapped(void **state)
{
	static const struct {
		const char *name;
		size_t bytes;
	} rows[] = { { "empty", 0 }, { "short", 100 }, { "zeros", 65536 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const int fd = memfd_create("other", 0);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, (off_t)rows[i].bytes), 0);
		errno = 0;
		if (limit_table_map(fd) != NULL || errno != EINVAL)
			fail_msg("%s: mapped", rows[i].name);
		assert_int_equal(close(fd), 0);
	}
	assert_null(limit_table_map(-1));
	assert_int_equal(errno, EBADF);
	limit_table_unmap(NULL);
}

/* ---- slots ---- */

static void a_name_keeps_its_slot_and_numbers_are_dense(void **state)
{
	enum { NAMES = 5000 };
	struct fixture f = fixture_new(NAMES);
	static struct limit_slot *slots[NAMES];
	uint8_t key[16];

	(void)state;
	for (uint64_t i = 0; i < NAMES; i++) {
		key_of(i, key);
		slots[i] = limit_table_slot(f.table, key);
		assert_non_null(slots[i]);
		assert_int_equal(limit_slot_index(f.table, slots[i]), i);
	}
	for (uint64_t i = 0; i < NAMES; i++) {
		key_of(i, key);
		assert_ptr_equal(limit_table_slot(f.table, key), slots[i]);
	}
	fixture_free(&f);
}

static void names_that_collide_have_slots_of_their_own(void **state)
{
	struct fixture f = fixture_new(64);
	struct limit_slot *slots[64];
	uint8_t key[16] = {
		0
	}; /* all begin alike, so all want the same place; zero is a name too */

	(void)state;
	for (uint8_t i = 0; i < COUNT_OF(slots); i++) {
		key[8 + i % 8] = i; /* in the tag for some, behind it for others */
		slots[i] = limit_table_slot(f.table, key);
		assert_non_null(slots[i]);
		for (uint8_t j = 0; j < i; j++)
			assert_ptr_not_equal(slots[i], slots[j]);
		assert_ptr_equal(limit_table_slot(f.table, key), slots[i]);
	}
	fixture_free(&f);
}

static void a_full_table_says_so_and_keeps_serving_its_names(void **state)
{
	struct fixture f = fixture_new(8);
	uint64_t held = 0;
	uint8_t key[16];

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		key_of(i, key);
		if (limit_table_slot(f.table, key) != NULL)
			assert_int_equal(held++, i);
	}
	assert_int_equal(held, 16); /* twice what was asked for */
	key_of(0, key);
	assert_ptr_equal(limit_table_slot(f.table, key), f.slot);
	fixture_free(&f);
}

static void parts_leave_the_last_slots_to_tenants(void **state)
{
	static const struct {
		enum limit_holder holder;
		uint64_t claimed; /* when nobody of that kind gets another slot */
	} rows[] = { { LIMIT_OF_SERVER, 8 }, { LIMIT_OF_MODEL, 12 }, { LIMIT_OF_TENANT, 16 } };
	struct fixture f = fixture_new(8);
	uint64_t next = 1;
	uint8_t key[16];

	(void)state;
	assert_int_equal(limit_table_claimed(f.table), 1);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		for (int n = 0; n < 100; n++) {
			key_of(next++, key);
			(void)limit_table_slot_for(f.table, rows[i].holder, key);
		}
		assert_int_equal(limit_table_claimed(f.table), rows[i].claimed);
		key_of(1, key); /* what has its slot keeps it */
		assert_non_null(limit_table_slot_for(f.table, LIMIT_OF_SERVER, key));
	}
	assert_int_equal(limit_table_slots(f.table), 16);
	fixture_free(&f);
}

/* ---- taking ---- */

static void every_limit_refuses_by_its_name_and_takes_nothing(void **state)
{
	static const struct {
		const char *limit;
		struct limit_ask ask;
		enum err err;
		nsec_t wait_ns;
		uint64_t left, budget;
	} rows[] = {
		{ "requests_per_minute", { 2, 1, 1, 1 }, ERR_RATE_LIMITED, 1 * SEC, 0, 0 },
		{ "requests_per_minute", { 11, 1, 1, 1 }, ERR_OVER_BURST, 0, 0, 0 },
		{ "tokens_per_minute", { 1, 200, 1, 1 }, ERR_RATE_LIMITED, 10 * SEC, 0, 0 },
		{ "tokens_per_minute", { 1, 1001, 1, 1 }, ERR_OVER_BURST, 0, 0, 0 },
		{ "concurrent", { 1, 1, 1, 2 }, ERR_CONCURRENCY, 1 * SEC, 0, 0 },
		{ "usd_per_day", { 1, 1, 101, 1 }, ERR_BUDGET, 0, 100, 0 },
		{ "usd_per_day", { 1, 1, 1000, 1 }, ERR_BUDGET, 0, 100, 0 },
		{ "usd_per_day", { 1, 1, 1001, 1 }, ERR_OVER_BUDGET, 0, 100, 1000 },
		{ "usd_per_day", { 1, 1, UINT64_MAX, 1 }, ERR_OVER_BUDGET, 0, 100, 1000 },
	};
	struct fixture f = fixture_new(8);
	struct tenant_limits limits = roomy();
	const nsec_t now = 1000 * SEC;
	/* Leaves one request, 100 tokens, one place and 100 nano-USD. */
	const struct limit_ask most = { 9, 900, 900, 4 };
	struct limit_refusal refusal = { .err = ERR_OK };

	(void)state;
	limits.requests = (struct quota_limit){ 60, 10 };
	limits.tokens = (struct quota_limit){ 600, 1000 };
	limits.concurrent = 5;
	limits.usd_per_day = 1000;
	limits.usd_per_month = 1100;
	assert_true(one_take(f.slot, &limits, &most, now, monday, &refusal));
	assert_int_equal(refusal.err, ERR_OK);
	const struct limit_state before = limit_read(f.slot, monday);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		assert_false(one_take(f.slot, &limits, &rows[i].ask, now, monday, &refusal));
		assert_string_equal(refusal.limit, rows[i].limit);
		assert_int_equal(refusal.err, rows[i].err);
		assert_int_equal(refusal.wait_ns, rows[i].wait_ns);
		assert_int_equal(refusal.left, rows[i].left);
		assert_int_equal(refusal.budget, rows[i].budget);
		const struct limit_state after = limit_read(f.slot, monday);
		assert_same(after, before);
	}
	/* The next day has a budget of its own, the month is the same. */
	const struct limit_ask dear = { 1, 1, 201, 1 }, fits = { 1, 100, 200, 1 };
	assert_false(one_take(f.slot, &limits, &dear, now, monday + DAY_S, &refusal));
	assert_string_equal(refusal.limit, "usd_per_month");
	assert_int_equal(refusal.err, ERR_BUDGET);
	assert_int_equal(refusal.left, 200);
	assert_true(one_take(f.slot, &limits, &fits, now, monday + DAY_S, &refusal));
	fixture_free(&f);
}

static void of_several_limits_in_the_way_the_first_is_named(void **state)
{
	struct fixture f = fixture_new(8);
	struct tenant_limits limits = roomy();
	const struct limit_ask ask = { 2, 20, 200, 2 };
	struct limit_refusal refusal;

	(void)state;
	limits.requests = (struct quota_limit){ 60, 1 };
	limits.tokens = (struct quota_limit){ 60, 1 };
	limits.concurrent = 1;
	limits.usd_per_day = 100;
	limits.usd_per_month = 100;
	static const char *const order[] = { "requests_per_minute", "tokens_per_minute",
					     "concurrent", "usd_per_day", "usd_per_month" };
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		assert_false(one_take(f.slot, &limits, &ask, SEC, monday, &refusal));
		assert_string_equal(refusal.limit, order[i]);
		if (i == 0)
			limits.requests.burst = 100;
		else if (i == 1)
			limits.tokens.burst = 100;
		else if (i == 2)
			limits.concurrent = 100;
		else if (i == 3)
			limits.usd_per_day = LIMIT_NONE;
	}
	limits.usd_per_month = 200;
	assert_true(one_take(f.slot, &limits, &ask, SEC, monday, &refusal));
	fixture_free(&f);
}

static void what_is_not_asked_for_is_not_refused(void **state)
{
	struct fixture f = fixture_new(8);
	struct tenant_limits limits = roomy();
	const struct limit_ask ask = { 1, 10, 10, 1 }, nothing = { 0, 0, 0, 0 };
	struct limit_refusal refusal;

	(void)state;
	limits.requests = (struct quota_limit){ 60, 1 };
	limits.tokens = (struct quota_limit){ 60, 10 };
	limits.concurrent = 1;
	limits.usd_per_day = 10;
	limits.usd_per_month = 10;
	assert_true(one_take(f.slot, &limits, &ask, SEC, monday, &refusal));
	assert_int_equal(one_settle(f.slot, &limits, &ask, monday, 500, 30, SEC), 20);
	assert_true(one_take(f.slot, &limits, &nothing, SEC, monday, &refusal));
	assert_int_equal(limit_read(f.slot, monday).usd_day, 30);
	limits.concurrent = 0; /* a reload took places away; the request keeps its own */
	assert_true(one_take(f.slot, &limits, &nothing, SEC, monday, &refusal));
	fixture_free(&f);
}

/* ---- settling ---- */

static void settling_gives_back_or_makes_debt(void **state)
{
	struct fixture f = fixture_new(8);
	struct tenant_limits limits = roomy();
	const struct limit_ask ask = { 1, 600, 600, 1 }, small = { 1, 1, 1, 0 };
	struct limit_refusal refusal;
	const nsec_t now = 500 * SEC;

	(void)state;
	limits.tokens = (struct quota_limit){ 60, 1000 };
	limits.usd_per_day = 1000;
	assert_true(one_take(f.slot, &limits, &ask, now, monday, &refusal));
	assert_false(one_take(f.slot, &limits, &ask, now, monday, &refusal));
	assert_int_equal(one_settle(f.slot, &limits, &ask, monday, 100, 50, now), 0);
	assert_int_equal(limit_read(f.slot, monday).usd_day, 50);
	assert_int_equal(limit_read(f.slot, monday).usd_month, 50);
	assert_int_equal(limit_read(f.slot, monday).tokens.tat, now + 100 * SEC);
	assert_true(one_take(f.slot, &limits, &ask, now, monday, &refusal));
	assert_int_equal(one_settle(f.slot, &limits, &ask, monday, 1100, 1700, now), 1100);
	assert_int_equal(limit_read(f.slot, monday).usd_day, 1750); /* over the limit: debt */
	assert_false(one_take(f.slot, &limits, &small, now, monday, &refusal));
	assert_string_equal(refusal.limit, "tokens_per_minute");
	assert_int_equal(refusal.wait_ns,
			 201 * SEC); /* 1,200 of 1,000 used, and one more asked for */
	assert_false(one_take(f.slot, &limits, &small, now + refusal.wait_ns, monday, &refusal));
	assert_string_equal(refusal.limit, "usd_per_day");
	assert_int_equal(limit_read(f.slot, monday).concurrent, 2); /* not settle's business */
	fixture_free(&f);
}

static void money_goes_to_the_day_and_month_it_came_from(void **state)
{
	struct fixture f = fixture_new(8);
	const struct tenant_limits limits = roomy();
	const struct limit_ask ask = { 1, 10, 1000, 0 };
	const uint64_t last_s = UINT64_C(1769903999),
		       first_s = last_s + 1; /* 31 January, 1 February */
	struct limit_refusal refusal;

	(void)state;
	assert_true(one_take(f.slot, &limits, &ask, SEC, last_s, &refusal));
	assert_true(one_take(f.slot, &limits, &ask, SEC, first_s, &refusal));
	assert_int_equal(one_settle(f.slot, &limits, &ask, last_s, 10, 1, 2 * SEC), 0);
	assert_int_equal(limit_read(f.slot, last_s).usd_day, 1);
	assert_int_equal(limit_read(f.slot, last_s).usd_month, 1);
	assert_int_equal(limit_read(f.slot, first_s).usd_day, 1000);
	assert_int_equal(limit_read(f.slot, first_s).usd_month, 1000);
	/* Two days on, its word is another day's: settling it late changes nothing. */
	assert_true(one_take(f.slot, &limits, &ask, SEC, first_s + DAY_S, &refusal));
	assert_int_equal(one_settle(f.slot, &limits, &ask, last_s, 10, 5000, 2 * SEC), 4000);
	assert_int_equal(limit_read(f.slot, first_s + DAY_S).usd_day, 1000);
	assert_int_equal(limit_read(f.slot, first_s + DAY_S).usd_month, 2000);
	assert_int_equal(limit_read(f.slot, first_s).usd_day, 1000);
	fixture_free(&f);
}

static void a_free_attempt_that_turns_out_to_cost_is_charged(void **state)
{
	struct fixture f = fixture_new(8);
	const struct tenant_limits limits = roomy();
	const struct limit_ask ask = { 1, 10, 0, 0 };
	struct limit_refusal refusal;

	(void)state;
	assert_true(one_take(f.slot, &limits, &ask, SEC, monday, &refusal));
	assert_int_equal(one_settle(f.slot, &limits, &ask, monday, 10, 7, SEC), 7);
	assert_int_equal(limit_read(f.slot, monday).usd_day, 7);
	fixture_free(&f);
}

static void the_largest_budget_can_be_spent_to_the_last_unit(void **state)
{
	struct fixture f = fixture_new(8);
	struct tenant_limits limits = roomy();
	struct limit_refusal refusal;

	(void)state;
	limits.usd_per_day = limit_info(LIMIT_usd_per_day)->maximum;
	limits.usd_per_month = limit_info(LIMIT_usd_per_month)->maximum;
	const struct limit_ask most = { 1, 1, limits.usd_per_day - 1, 0 }, one = { 1, 1, 1, 0 };
	assert_true(one_take(f.slot, &limits, &most, SEC, monday, &refusal));
	assert_true(one_take(f.slot, &limits, &one, SEC, monday, &refusal));
	assert_false(one_take(f.slot, &limits, &one, SEC, monday, &refusal));
	assert_int_equal(limit_read(f.slot, monday).usd_month, limits.usd_per_month);
	/* Debt beyond what a word can count stays at its end and still refuses. */
	assert_int_equal(one_settle(f.slot, &limits, &one, monday, 1, UINT64_MAX, SEC),
			 UINT64_MAX - 1);
	assert_true(limit_read(f.slot, monday).usd_day > limits.usd_per_day);
	assert_false(one_take(f.slot, &limits, &one, SEC, monday, &refusal));
	assert_true(one_take(f.slot, &limits, &one, SEC, monday + DAY_S * 40, &refusal));
	fixture_free(&f);
}

/* ---- other processes ---- */

static void another_process_shares_the_state_and_recovery_frees_its_places(void **state)
{
	struct fixture f = fixture_new(8);
	struct tenant_limits limits = roomy();
	const struct limit_ask ask = { 1, 100, 1000, 1 };
	struct limit_refusal refusal;
	int status = -1;

	(void)state;
	limits.concurrent = 3;
	const pid_t child = fork();
	assert_true(child >= 0);
	if (child == 0) { /* a server: maps for itself, takes all there is and dies */
		struct limit_table *own = limit_table_map(f.fd);
		uint8_t key[16];
		key_of(0, key);
		struct limit_slot *slot = own == NULL ? NULL : limit_table_slot(own, key);
		for (int i = 0; slot != NULL && i < 3; i++)
			if (!one_take(slot, &limits, &ask, SEC, monday, &refusal))
				_exit(2);
		_exit(slot == NULL ? 3 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);

	const struct limit_state before = limit_read(f.slot, monday);
	assert_int_equal(before.concurrent, 3);
	assert_int_equal(before.usd_day, 3000);
	assert_false(one_take(f.slot, &limits, &ask, SEC, monday, &refusal));
	assert_int_equal(refusal.err, ERR_CONCURRENCY);

	limit_table_recover(f.table);
	struct limit_state after = limit_read(f.slot, monday);
	assert_int_equal(after.concurrent, 0);
	after.concurrent = before.concurrent;
	assert_same(after, before); /* its reservations stay spent */
	assert_true(one_take(f.slot, &limits, &ask, SEC, monday, &refusal));
	fixture_free(&f);
}

/* Claims, takes and settles, until it is killed. */
static _Noreturn void work_forever(struct limit_table *table, const struct tenant_limits *limits,
				   const struct limit_ask *ask)
{
	struct limit_refusal refusal;
	uint8_t key[16];

	for (uint64_t i = 0;; i++) {
		const uint64_t wall_s = monday + i * 997;
		key_of(i % 128, key);
		struct limit_slot *slot = limit_table_slot(table, key);
		if (slot == NULL || !one_take(slot, limits, ask, i, wall_s, &refusal))
			continue;
		(void)one_settle(slot, limits, ask, wall_s, 5, 999, i);
		if (i % 3 != 0)
			one_release(slot);
	}
}

static void a_process_killed_at_work_leaves_a_table_that_works(void **state)
{
	const struct limit_ask ask = { 1, 10, 1000, 1 };
	const struct tenant_limits limits = roomy();
	struct limit_refusal refusal;
	uint8_t key[16];

	(void)state;
	for (uint64_t round = 0; round < 10; round++) {
		struct fixture f = fixture_new(64);
		const pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0)
			work_forever(f.table, &limits, &ask);
		while (limit_read(f.slot, monday).concurrent < round * 3)
			; /* it has come that far */
		assert_int_equal(kill(child, SIGKILL), 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		limit_table_recover(f.table);
		for (uint64_t i = 0; i < 64; i++) {
			key_of(i, key);
			struct limit_slot *slot = limit_table_slot(f.table, key);
			assert_non_null(slot);
			assert_ptr_equal(limit_table_slot(f.table, key), slot);
			assert_int_equal(limit_read(slot, monday).concurrent, 0);
			/* One number may be lost with the claim that was under way. */
			assert_in_range(limit_slot_index(f.table, slot), i, i + 1);
			assert_true(one_take(slot, &limits, &ask, 10000 * SEC, monday, &refusal));
		}
		fixture_free(&f);
	}
}

static void what_another_store_granted_is_counted_beyond_the_limits(void **state)
{
	struct fixture f = fixture_new(8);
	struct limit_scope scope = { .limits = limit_defaults(), .slot = f.slot };
	const struct limit_ask ask = { .requests = 1, .tokens = 10, .usd = 700, .concurrent = 1 };

	(void)state;
	scope.limits.concurrent = 1;
	scope.limits.usd_per_day = 1000;
	limit_count(&scope, 1, &ask, SEC, (uint64_t)monday);
	limit_count(&scope, 1, &ask, SEC, (uint64_t)monday);
	assert_int_equal(limit_read(f.slot, monday).concurrent, 2);
	assert_int_equal(limit_read(f.slot, monday).usd_day, 1400);
	assert_true(limit_read(f.slot, monday).requests.tat > SEC);
	assert_int_equal(limit_settle(&scope, 1, &ask, monday, 5, 100, SEC), 0);
	limit_release(&scope, 1);
	assert_int_equal(limit_read(f.slot, monday).concurrent, 1);
	assert_int_equal(limit_read(f.slot, monday).usd_day, 800);
	fixture_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_file_can_neither_shrink_nor_grow_and_is_inherited),
		cmocka_unit_test(a_size_that_cannot_be_is_refused),
		cmocka_unit_test(a_file_that_is_no_table_is_not_mapped),
		cmocka_unit_test(a_name_keeps_its_slot_and_numbers_are_dense),
		cmocka_unit_test(names_that_collide_have_slots_of_their_own),
		cmocka_unit_test(a_full_table_says_so_and_keeps_serving_its_names),
		cmocka_unit_test(parts_leave_the_last_slots_to_tenants),
		cmocka_unit_test(every_limit_refuses_by_its_name_and_takes_nothing),
		cmocka_unit_test(of_several_limits_in_the_way_the_first_is_named),
		cmocka_unit_test(what_is_not_asked_for_is_not_refused),
		cmocka_unit_test(settling_gives_back_or_makes_debt),
		cmocka_unit_test(money_goes_to_the_day_and_month_it_came_from),
		cmocka_unit_test(a_free_attempt_that_turns_out_to_cost_is_charged),
		cmocka_unit_test(the_largest_budget_can_be_spent_to_the_last_unit),
		cmocka_unit_test(another_process_shares_the_state_and_recovery_frees_its_places),
		cmocka_unit_test(what_another_store_granted_is_counted_beyond_the_limits),
		cmocka_unit_test(a_process_killed_at_work_leaves_a_table_that_works),
	};

	return cmocka_run_group_tests_name("limit_table", tests, NULL, NULL);
}
