/* test_control_drain.c - the phases of leaving, by a clock that the test owns. */
#include "gateway/control_drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const nsec_t look = 50 * MSEC;

/* Looks until the phase is left, at most a day; returns how long that took. */
static nsec_t stays(struct drain *drain, nsec_t *now, uint64_t in_flight, uint64_t connections)
{
	enum drain_phase phase = drain->phase;
	nsec_t began = *now;

	while (drain_step(drain, *now, in_flight, connections) == phase &&
	       *now < began + 86400 * SEC)
		*now += look;
	return *now - began;
}

static struct drain begun(nsec_t now, nsec_t total)
{
	struct drain drain = { .phase = DRAIN_NOT };

	drain_begin(&drain, now, total);
	return drain;
}

static void an_idle_gateway_leaves_at_once(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	assert_true(stays(&drain, &now, 0, 0) < SEC / 2);
	assert_int_equal(drain.phase, DRAIN_LEAVING);
	assert_true(stays(&drain, &now, 0, 0) < SEC / 2);
	assert_int_equal(drain.phase, DRAIN_OVER);
}

static void a_busy_gateway_serves_for_five_seconds_and_waits_for_its_requests(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	assert_int_equal(stays(&drain, &now, 1, 1), 5 * SEC);
	assert_int_equal(drain.phase, DRAIN_LEAVING);
	for (int i = 0; i < 1000; i++, now += look)
		assert_int_equal(drain_step(&drain, now, 1, 1), DRAIN_LEAVING);
	assert_true(stays(&drain, &now, 0, 0) < SEC / 2);
	assert_int_equal(drain.phase, DRAIN_OVER);
}

static void a_short_drain_has_a_quiet_tenth_and_ends_at_its_deadline(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 10 * SEC);

	assert_int_equal(stays(&drain, &now, 3, 3), 1 * SEC);
	assert_int_equal(stays(&drain, &now, 3, 3), 9 * SEC);
	assert_int_equal(drain.phase, DRAIN_OVER);
}

static void one_look_at_an_empty_gateway_is_not_enough(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	for (int i = 0; i < 50; i++, now += look)
		assert_int_equal(drain_step(&drain, now, i % 2 == 0 ? 0 : 1, 1), DRAIN_QUIET);
}

static void idle_connections_are_given_a_moment_to_close(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	(void)stays(&drain, &now, 0, 5);
	assert_int_equal(drain.phase, DRAIN_LEAVING);
	assert_int_equal(stays(&drain, &now, 0, 5), DRAIN_LINGER);
	assert_int_equal(drain.phase, DRAIN_OVER);
}

static void a_drain_of_no_length_is_over_at_once(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 0);

	assert_int_equal(stays(&drain, &now, 9, 9), 0);
	assert_int_equal(stays(&drain, &now, 9, 9), 0);
	assert_int_equal(drain.phase, DRAIN_OVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_gateway_leaves_at_once),
		cmocka_unit_test(a_busy_gateway_serves_for_five_seconds_and_waits_for_its_requests),
		cmocka_unit_test(a_short_drain_has_a_quiet_tenth_and_ends_at_its_deadline),
		cmocka_unit_test(one_look_at_an_empty_gateway_is_not_enough),
		cmocka_unit_test(idle_connections_are_given_a_moment_to_close),
		cmocka_unit_test(a_drain_of_no_length_is_over_at_once),
	};
	return cmocka_run_group_tests_name("control_drain", tests, NULL, NULL);
}
