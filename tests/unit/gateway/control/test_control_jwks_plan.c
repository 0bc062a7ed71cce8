#include "gateway/control/control_jwks_plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define START (1000 * SEC)
#define REFRESH (300 * SEC)

static struct jwks_plan fresh(void)
{
	struct jwks_plan plan;

	jwks_plan_init(&plan, START);
	return plan;
}

/* Begins when it is due and not before, ends at once; when the next one is due. */
static nsec_t fetch(struct jwks_plan *plan, nsec_t now, bool good)
{
	assert_true(jwks_plan_is_due(plan, now));
	jwks_plan_begin(plan);
	assert_false(jwks_plan_is_due(plan, now));
	jwks_plan_end(plan, good, REFRESH, now);
	return plan->due;
}

static void the_first_is_due_at_once_and_then_one_each_period(void **state)
{
	struct jwks_plan plan = fresh();

	(void)state;
	assert_int_equal(fetch(&plan, START, true), START + REFRESH);
	assert_false(jwks_plan_is_due(&plan, START + REFRESH - 1));
	assert_int_equal(fetch(&plan, START + REFRESH, true), START + 2 * REFRESH);
}

static void failures_are_tried_again_less_and_less_often(void **state)
{
	static const nsec_t waits[] = { 2 * SEC,  4 * SEC,  8 * SEC,  16 * SEC,
					32 * SEC, 60 * SEC, 60 * SEC, 60 * SEC };
	struct jwks_plan plan = fresh();
	nsec_t now = START;

	(void)state;
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		assert_int_equal(fetch(&plan, now, false), now + waits[i]);
		now += waits[i];
	}
	assert_int_equal(fetch(&plan, now, true), now + REFRESH);
	now += REFRESH;
	assert_int_equal(fetch(&plan, now, false), now + 2 * SEC); /* from the front again */
}

static void a_failure_waits_no_longer_than_a_success(void **state)
{
	struct jwks_plan plan = fresh();

	(void)state;
	jwks_plan_begin(&plan);
	jwks_plan_end(&plan, false, 1 * SEC, START);
	assert_int_equal(plan.due, START + 1 * SEC);
}

static void a_refetch_is_made_at_once_and_then_once_in_30_s(void **state)
{
	struct jwks_plan plan = fresh();
	nsec_t now = START + SEC;

	(void)state;
	(void)fetch(&plan, START, true);
	jwks_plan_refetch(&plan, now);
	(void)fetch(&plan, now, true);
	for (nsec_t at = now; at < now + JWKS_REFETCH_PERIOD; at += SEC) {
		jwks_plan_refetch(&plan, at);
		assert_false(jwks_plan_is_due(&plan, at));
	}
	jwks_plan_refetch(&plan, now + JWKS_REFETCH_PERIOD);
	(void)fetch(&plan, now + JWKS_REFETCH_PERIOD, true);
}

static void a_refetch_during_a_fetch_is_another(void **state)
{
	struct jwks_plan plan = fresh();

	(void)state;
	jwks_plan_begin(&plan);
	jwks_plan_refetch(&plan, START + SEC);
	assert_false(jwks_plan_is_due(&plan, START + SEC));
	jwks_plan_end(&plan, true, REFRESH, START + 2 * SEC);
	assert_true(jwks_plan_is_due(&plan, START + 2 * SEC));
}

static void refetches_do_not_make_failures_come_sooner_than_allowed(void **state)
{
	struct jwks_plan plan = fresh();

	(void)state;
	(void)fetch(&plan, START, false);
	jwks_plan_refetch(&plan, START);
	(void)fetch(&plan, START, false);
	jwks_plan_refetch(&plan, START + SEC);
	assert_int_equal(plan.due, START + 4 * SEC);
}

static void keys_are_good_for_a_day_after_the_last_good_answer(void **state)
{
	struct jwks_plan plan = fresh();

	(void)state;
	assert_false(jwks_plan_expires(&plan, START + 2 * JWKS_GOOD_FOR)); /* there are none */
	(void)fetch(&plan, START, true);
	(void)fetch(&plan, START + REFRESH, true);
	const nsec_t end = START + REFRESH + JWKS_GOOD_FOR;
	(void)fetch(&plan, START + 2 * REFRESH, false);
	assert_false(jwks_plan_expires(&plan, end - 1));
	assert_true(jwks_plan_expires(&plan, end));
	assert_false(jwks_plan_expires(&plan, end + 1)); /* once */
	(void)fetch(&plan, end, true);
	assert_false(jwks_plan_expires(&plan, end + 1));
	assert_true(jwks_plan_expires(&plan, end + JWKS_GOOD_FOR));
}

static void what_could_not_be_asked_is_asked_at_once_when_it_can(void **state)
{
	struct jwks_plan plan = fresh();

	(void)state;
	(void)fetch(&plan, START, false);
	jwks_plan_hurry(&plan);
	assert_true(jwks_plan_is_due(&plan, START));
	(void)fetch(&plan, START, true);
	jwks_plan_hurry(&plan); /* there is no hurry */
	assert_false(jwks_plan_is_due(&plan, START));
}

static void another_period_holds_from_now_on(void **state)
{
	struct jwks_plan plan = fresh();

	(void)state;
	(void)fetch(&plan, START, true);
	jwks_plan_set_refresh(&plan, 10 * SEC, START + SEC);
	assert_int_equal(plan.due, START + 11 * SEC);
	jwks_plan_set_refresh(&plan, 10 * REFRESH, START + SEC); /* a longer one, later */
	assert_int_equal(plan.due, START + 11 * SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_is_due_at_once_and_then_one_each_period),
		cmocka_unit_test(failures_are_tried_again_less_and_less_often),
		cmocka_unit_test(a_failure_waits_no_longer_than_a_success),
		cmocka_unit_test(a_refetch_is_made_at_once_and_then_once_in_30_s),
		cmocka_unit_test(a_refetch_during_a_fetch_is_another),
		cmocka_unit_test(refetches_do_not_make_failures_come_sooner_than_allowed),
		cmocka_unit_test(keys_are_good_for_a_day_after_the_last_good_answer),
		cmocka_unit_test(what_could_not_be_asked_is_asked_at_once_when_it_can),
		cmocka_unit_test(another_period_holds_from_now_on),
	};

	return cmocka_run_group_tests_name("control_jwks_plan", tests, NULL, NULL);
}
