/* test_control_drain.c - the phases of leaving, by a clock that the test owns. */
#include "gateway/control/control_drain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const nsec_t look = 50 * MSEC;
static const struct drain_load nobody = { 0 };
static const struct drain_load a_request = { .in_flight = 1, .connections = 1 };
static const struct drain_load a_connection = { .connections = 1 };

/* Looks until the phase is left, at most a day; returns how long that took. */
static nsec_t stays(struct drain *drain, nsec_t *now, const struct drain_load *load)
{
	enum drain_phase phase = drain->phase;
	nsec_t began = *now;

	while (drain_step(drain, *now, load) == phase && *now < began + 86400 * SEC)
		*now += look;
	return *now - began;
}

static struct drain begun(nsec_t now, nsec_t total)
{
	struct drain drain = { .phase = DRAIN_NOT };

	drain_begin(&drain, now, total);
	return drain;
}

static void an_idle_gateway_is_gone_within_two_seconds(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	while (drain_step(&drain, now, &nobody) != DRAIN_OVER)
		now += look;
	assert_in_range(now, 8 * SEC, 9 * SEC);
}

static void a_busy_gateway_serves_for_five_seconds_and_waits_for_its_requests(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	assert_int_equal(stays(&drain, &now, &a_request), 5 * SEC);
	assert_int_equal(drain.phase, DRAIN_CLOSING);
	assert_int_equal(stays(&drain, &now, &a_request), DRAIN_HANDSHAKES);
	assert_int_equal(drain.phase, DRAIN_LEAVING);
	for (int i = 0; i < 1000; i++, now += look)
		assert_int_equal(drain_step(&drain, now, &a_request), DRAIN_LEAVING);
	assert_true(stays(&drain, &now, &nobody) < SEC / 2);
	assert_int_equal(drain.phase, DRAIN_OVER);
}

/* It may be an upload, or an answer that is being read. */
static void an_open_connection_is_waited_for(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	assert_int_equal(stays(&drain, &now, &a_connection), 5 * SEC);
	(void)stays(&drain, &now, &a_connection);
	for (int i = 0; i < 1000; i++, now += look)
		assert_int_equal(drain_step(&drain, now, &a_connection), DRAIN_LEAVING);
	assert_true(stays(&drain, &now, &nobody) < SEC / 2);
	assert_int_equal(drain.phase, DRAIN_OVER);
}

static void who_comes_and_goes_between_two_looks_keeps_it_serving(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);
	struct drain_load load = { .accepted = 5 };

	for (; now < 12 * SEC; now += look) {
		if ((now / look) % 10 == 0)
			load.accepted++;
		assert_int_equal(drain_step(&drain, now, &load), DRAIN_QUIET);
	}
	assert_int_equal(drain_step(&drain, now, &load), DRAIN_CLOSING);
}

static void a_short_drain_has_a_quiet_tenth_and_last_words_in_its_last(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 4 * SEC);

	assert_int_equal(stays(&drain, &now, &a_request), 400 * MSEC);
	(void)stays(&drain, &now, &a_request);
	assert_int_equal(drain.phase, DRAIN_LEAVING);
	(void)stays(&drain, &now, &a_request);
	assert_int_equal(drain.phase, DRAIN_GIVING_UP);
	assert_int_equal(now, 10600 * MSEC);
	(void)stays(&drain, &now, &a_request);
	assert_int_equal(drain.phase, DRAIN_OVER);
	assert_int_equal(now, 11 * SEC);
}

static void a_long_drain_gives_up_a_second_before_its_deadline(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	while (drain_step(&drain, now, &a_request) != DRAIN_GIVING_UP)
		now += look;
	assert_int_equal(now, 636 * SEC);
	assert_true(stays(&drain, &now, &nobody) < SEC / 2);
	assert_int_equal(drain.phase, DRAIN_OVER);
}

static void one_look_at_an_empty_gateway_is_not_enough(void **state)
{
	(void)state;
	nsec_t now = 7 * SEC;
	struct drain drain = begun(now, 630 * SEC);

	while (drain_step(&drain, now, &a_request) != DRAIN_LEAVING)
		now += look;
	for (int i = 0; i < 50; i++, now += look)
		assert_int_equal(drain_step(&drain, now, i % 2 == 0 ? &nobody : &a_request),
				 DRAIN_LEAVING);
}

static void a_drain_of_no_length_is_over_at_once(void **state)
{
	(void)state;
	struct drain drain = begun(7 * SEC, 0);

	assert_int_equal(drain_step(&drain, 7 * SEC, &a_request), DRAIN_OVER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_idle_gateway_is_gone_within_two_seconds),
		cmocka_unit_test(a_busy_gateway_serves_for_five_seconds_and_waits_for_its_requests),
		cmocka_unit_test(an_open_connection_is_waited_for),
		cmocka_unit_test(who_comes_and_goes_between_two_looks_keeps_it_serving),
		cmocka_unit_test(a_short_drain_has_a_quiet_tenth_and_last_words_in_its_last),
		cmocka_unit_test(a_long_drain_gives_up_a_second_before_its_deadline),
		cmocka_unit_test(one_look_at_an_empty_gateway_is_not_enough),
		cmocka_unit_test(a_drain_of_no_length_is_over_at_once),
	};
	return cmocka_run_group_tests_name("control_drain", tests, NULL, NULL);
}
