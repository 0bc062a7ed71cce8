/* What a request finds left of its rates: of several scopes the one that has least. */
#include "gateway/limits/limit_left.h"
#include "tenants/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW (1000 * SEC)

static void the_smaller_room_counts(void **state)
{
	const struct quota_limit wide = { 60, 10 }, narrow = { 6, 20 }, none = { 0, 1 };
	struct limit_room room = { .known = false };

	(void)state;
	limit_room_add(&room, none, NOW + SEC, NOW);
	assert_false(room.known);
	limit_room_add(&room, narrow, 0, NOW);
	assert_true(room.known);
	assert_int_equal(room.limit, 20); /* more may be had at once than in a minute */
	assert_int_equal(room.remaining, 20);
	assert_int_equal(room.full_in, 0);
	limit_room_add(&room, wide, NOW + 3 * SEC, NOW);
	assert_int_equal(room.limit, 60);
	assert_int_equal(room.remaining, 7);
	assert_int_equal(room.full_in, 3 * SEC);
	limit_room_add(&room, narrow, NOW + 10 * SEC, NOW);
	assert_int_equal(room.remaining, 7);
}

/* What has to wait so long has as much left as that says. */
static void a_wait_says_what_is_left(void **state)
{
	const struct quota_limit limit = { 60, 10 };

	(void)state;
	for (uint64_t used = 1; used <= 10; used++) {
		const nsec_t tat = NOW + used * SEC;
		nsec_t next, wait;
		for (uint64_t asked = 1; asked <= 10; asked++) {
			if (quota_take(tat, limit, asked, NOW, &next, &wait) == ERR_OK)
				continue;
			assert_true(limit_tat_of_wait(limit, asked, wait, NOW) == tat);
		}
	}
}

static void slots_are_read_as_a_claim_finds_them(void **state)
{
	const int fd = limit_table_create(8);
	struct limit_table *table = limit_table_map(fd);
	struct limit_scope scopes[2] = {
		{ .key = { 1 }, .holder = LIMIT_OF_TENANT, .limits = limit_none() },
		{ .key = { 2 }, .holder = LIMIT_OF_SERVER, .limits = limit_none() }
	};
	const struct limit_ask ask = { .requests = 1, .tokens = 30 };
	struct limit_refusal refusal;
	struct limit_left left;

	(void)state;
	assert_non_null(table);
	scopes[0].limits.requests = (struct quota_limit){ 60, 5 };
	scopes[1].limits.tokens = (struct quota_limit){ 100, 100 };
	assert_true(limit_table_find(table, scopes, 2));
	assert_true(limit_take(scopes, 2, &ask, NOW, 1, &refusal));
	limit_left_read(&left, scopes, 2, NOW);
	assert_true(left.at == NOW);
	assert_int_equal(left.requests.remaining, 4);
	assert_int_equal(left.requests.limit, 60);
	assert_int_equal(left.tokens.remaining, 70);
	assert_int_equal(left.tokens.full_in, 18 * SEC);
	scopes[1].limits.count_only = true; /* it refuses nothing */
	limit_left_read(&left, scopes, 2, NOW);
	assert_false(left.tokens.known);
	limit_table_unmap(table);
	(void)close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_smaller_room_counts),
		cmocka_unit_test(a_wait_says_what_is_left),
		cmocka_unit_test(slots_are_read_as_a_claim_finds_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
