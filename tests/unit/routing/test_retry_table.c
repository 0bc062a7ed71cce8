#include "routing/retry_table.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct retry_settings settings = { .share = 0.15, .floor = 5, .window = 10 * SEC };
static const nsec_t begin = 1000 * SEC;

static int make(void **state)
{
	*state = calloc(1, sizeof(struct retry_table));
	return *state == NULL;
}

static int drop(void **state)
{
	free(*state);
	return 0;
}

/* Digests are chance (splitmix64). */
static struct retry_budget *of(struct retry_table *table, uint64_t number)
{
	uint8_t tenant[RETRY_TENANT_BYTES];

	for (size_t i = 0; i < sizeof(tenant); i += sizeof(uint64_t)) {
		uint64_t z = (number * 2 + i / sizeof(uint64_t) + 1) * UINT64_C(0x9e3779b97f4a7c15);
		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		z ^= z >> 31;
		(void)memcpy(tenant + i, &z, sizeof(z));
	}
	return retry_table_find(table, tenant);
}

static uint32_t spend(struct retry_budget *budget, nsec_t now)
{
	uint32_t spent = 0;

	for (; retry_has(budget, &settings, now); spent++)
		retry_take(budget);
	return spent;
}

static void nobody_spends_what_is_anothers(void **state)
{
	enum { TENANTS = 20000 }; /* one worker's, in a window */
	uint32_t robbed = 0, again = 0;

	for (uint64_t t = 0; t < TENANTS; t++) /* all of them have an outage */
		robbed += spend(of(*state, t), begin + t) != settings.floor;
	assert_int_equal(robbed, 0);
	for (uint64_t t = 0; t < TENANTS; t++)
		again += spend(of(*state, t), begin + SEC) != 0;
	assert_in_range(again, 0, TENANTS / 10); /* pushed out, and begun anew */
}

static void who_is_busy_stays(void **state)
{
	enum { TENANTS = 100000 };
	nsec_t now = begin;
	uint32_t spent = 0;

	for (uint64_t t = 1; t <= TENANTS; t++) {
		now += SEC / 1000;
		retry_note_request(of(*state, t), &settings, now);
		retry_note_request(of(*state, 0), &settings, now);
		spent += spend(of(*state, 0), now);
	}
	assert_in_range(spent, TENANTS * 14 / 100, TENANTS * 16 / 100);
}

static void a_digest_of_zeros_is_a_tenant_too(void **state)
{
	static const uint8_t zeros[RETRY_TENANT_BYTES];

	assert_int_equal(spend(retry_table_find(*state, zeros), begin), settings.floor);
	assert_int_equal(spend(retry_table_find(*state, zeros), begin), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(nobody_spends_what_is_anothers, make, drop),
		cmocka_unit_test_setup_teardown(who_is_busy_stays, make, drop),
		cmocka_unit_test_setup_teardown(a_digest_of_zeros_is_a_tenant_too, make, drop),
	};

	return cmocka_run_group_tests_name("retry_table", tests, NULL, NULL);
}
