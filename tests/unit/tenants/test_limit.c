#include "tenants/limit.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* DESIGN 4.2, last paragraph. */
static void the_defaults_are_those_of_the_design(void **state)
{
	const struct tenant_limits limits = limit_defaults();

	(void)state;
	assert_int_equal(limits.requests.per_minute, 60);
	assert_int_equal(limits.requests.burst, 6);
	assert_int_equal(limits.tokens.per_minute, 100000);
	assert_int_equal(limits.tokens.burst, 100000);
	assert_int_equal(limits.concurrent, 8);
	assert_int_equal(limits.max_tokens, 4096);
	assert_false(limits.max_tokens_refuse);
	assert_int_equal(limits.tool_rounds, 10);
	assert_false(limits.tool_rounds_refuse);
	assert_int_equal(limits.usd_per_day, UINT64_C(5000000000));
	assert_true(limits.usd_per_month == LIMIT_NONE);
	assert_int_equal(limits.deadline, 55 * SEC);
	assert_int_equal(limits.deadline_progress, 600 * SEC);
}

static void a_burst_that_is_not_said_follows_its_rate(void **state)
{
	(void)state;
	assert_int_equal(limit_requests_burst(1), 1);
	assert_int_equal(limit_requests_burst(10), 1);
	assert_int_equal(limit_requests_burst(19), 1);
	assert_int_equal(limit_requests_burst(600), 60);
	assert_int_equal(limit_requests_burst(QUOTA_RATE_MAX), QUOTA_RATE_MAX / 10);
	assert_int_equal(limit_tokens_burst(1), 1);
	assert_int_equal(limit_tokens_burst(QUOTA_RATE_MAX), QUOTA_RATE_MAX);
}

static void counts_follow_the_requests_unless_they_are_said(void **state)
{
	static const struct {
		uint64_t said, requests, per_minute, burst;
	} rows[] = {
		{ 0, 60, 600, 60 },
		{ 0, 1, 10, 10 },
		{ 0, 60000, 600000, 60000 },
		{ 2, 60, 2, 2 },
		{ 61, 60, 61, 60 },
		{ 6000, 60, 6000, 600 },
		{ 0, QUOTA_RATE_MAX, QUOTA_RATE_MAX, QUOTA_RATE_MAX / 10 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct quota_limit got = limit_counts(rows[i].said, rows[i].requests);
		assert_int_equal(got.per_minute, rows[i].per_minute);
		assert_int_equal(got.burst, rows[i].burst);
	}
}

static void every_row_is_complete_and_its_preset_within_bounds(void **state)
{
	(void)state;
	for (enum limit i = 0; i < LIMIT_COUNT; i++) {
		const struct limit_info *info = limit_info(i);
		assert_true(info->name[0] != '\0' && info->unit[0] != '\0' &&
			    info->meaning[0] != '\0');
		assert_true(info->minimum < info->maximum && info->maximum != LIMIT_NONE);
		if (info->preset != LIMIT_NONE && info->preset != LIMIT_DERIVED)
			assert_in_range(info->preset, info->minimum, info->maximum);
	}
	assert_string_equal(limit_info(LIMIT_usd_per_month)->name, "usd_per_month");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_defaults_are_those_of_the_design),
		cmocka_unit_test(a_burst_that_is_not_said_follows_its_rate),
		cmocka_unit_test(counts_follow_the_requests_unless_they_are_said),
		cmocka_unit_test(every_row_is_complete_and_its_preset_within_bounds),
	};

	return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
