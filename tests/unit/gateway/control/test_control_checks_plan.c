#include "gateway/control/control_checks_plan.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define START (1000 * SEC)

static const struct provider_check rule = {
	.interval = 5 * SEC, .timeout = 2 * SEC, .unhealthy = 3, .healthy = 2
};

/* One check of 10 ms that begins at once; whether the verdict changed. */
static bool check(struct checks_plan *plan, bool good)
{
	const nsec_t now = plan->due;

	assert_true(checks_plan_is_due(plan, now));
	checks_plan_begin(plan, now);
	assert_false(checks_plan_is_due(plan, now + 3600 * SEC)); /* one at a time */
	return checks_plan_end(plan, good, &rule, now + 10 * MSEC);
}

static void an_endpoint_is_good_until_as_many_checks_in_a_row_have_failed(void **state)
{
	static const struct {
		const char *name;
		const char *results; /* g, b; the verdict is to change with a capital letter */
	} rows[] = {
		{ "good ones change nothing", "gggg" },
		{ "three in a row", "bbB" },
		{ "two and a good one begin anew", "bbgbbgbbB" },
		{ "bad ones change nothing any more", "bbBbbb" },
		{ "two good ones bring it back", "bbBgG" },
		{ "one good one does not", "bbBgbgG" },
		{ "there and back again", "bbBgGbbBgG" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct checks_plan plan;
		checks_plan_init(&plan, START);
		assert_true(plan.up);
		for (const char *r = rows[i].results; *r != '\0'; r++) {
			const bool good = *r == 'g' || *r == 'G', changes = *r < 'a';
			if (check(&plan, good) != changes)
				fail_msg("%s: at %s", rows[i].name, r);
			if (changes)
				assert_int_equal(plan.up, good);
		}
	}
}

static void checks_keep_their_interval_however_long_each_takes(void **state)
{
	struct checks_plan plan;
	(void)state;
	checks_plan_init(&plan, START);
	assert_true(checks_plan_is_due(&plan, START));
	checks_plan_begin(&plan, START);
	assert_false(checks_plan_end(&plan, true, &rule, START + 2 * SEC));
	assert_false(checks_plan_is_due(&plan, START + 5 * SEC - 1));
	assert_true(checks_plan_is_due(&plan, START + 5 * SEC));
	checks_plan_begin(&plan, START + 5 * SEC);
	assert_false(checks_plan_end(&plan, true, &rule, START + 60 * SEC));
	assert_true(checks_plan_is_due(&plan, START + 60 * SEC)); /* and no burst to catch up */
	assert_int_equal(plan.due, START + 60 * SEC);
}

static void a_shorter_interval_holds_at_once(void **state)
{
	struct checks_plan plan;
	(void)state;
	checks_plan_init(&plan, START);
	(void)check(&plan, true);
	checks_plan_set_interval(&plan, 1 * SEC, START + 1 * SEC);
	assert_int_equal(plan.due, START + 2 * SEC);
	checks_plan_set_interval(&plan, 60 * SEC, START + 1 * SEC);
	assert_int_equal(plan.due, START + 2 * SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_endpoint_is_good_until_as_many_checks_in_a_row_have_failed),
		cmocka_unit_test(checks_keep_their_interval_however_long_each_takes),
		cmocka_unit_test(a_shorter_interval_holds_at_once),
	};
	return cmocka_run_group_tests_name("control_checks_plan", tests, NULL, NULL);
}
