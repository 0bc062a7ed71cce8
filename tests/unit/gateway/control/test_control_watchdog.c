/* test_control_watch.c - a worker that hangs is found, one that was stopped with us is not. */
#include "gateway/control/control_watchdog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void a_loop_that_turns_is_left_alone(void **state)
{
	(void)state;
	struct watch watch = { .turned = 0 };

	for (uint64_t i = 0; i < 1000; i++)
		assert_false(watch_step(&watch, i / 2, WATCH_PERIOD)); /* once a second */
}

static void a_loop_that_stands_still_is_found_after_five_seconds(void **state)
{
	(void)state;
	struct watch watch = { .turned = 0 };

	assert_false(watch_step(&watch, 42, WATCH_PERIOD));
	for (nsec_t still = WATCH_PERIOD; still < WATCH_PATIENCE; still += WATCH_PERIOD)
		assert_false(watch_step(&watch, 42, WATCH_PERIOD));
	assert_true(watch_step(&watch, 42, WATCH_PERIOD));
}

static void a_loop_that_never_turned_is_found_too(void **state)
{
	(void)state;
	struct watch watch = { .turned = 0 };

	for (nsec_t still = WATCH_PERIOD; still < WATCH_PATIENCE; still += WATCH_PERIOD)
		assert_false(watch_step(&watch, 0, WATCH_PERIOD));
	assert_true(watch_step(&watch, 0, WATCH_PERIOD));
}

static void time_in_which_the_whole_process_stood_still_does_not_count(void **state)
{
	(void)state;
	struct watch watch = { .turned = 0 };

	assert_false(watch_step(&watch, 42, WATCH_PERIOD));
	assert_false(watch_step(&watch, 42, 3600 * SEC)); /* SIGSTOP, a frozen container */
	assert_false(watch_step(&watch, 42, WATCH_PERIOD));
	assert_false(watch_step(&watch, 43, WATCH_PERIOD));
}

static void a_hang_is_told_once_until_the_loop_turns_again(void **state)
{
	(void)state;
	struct watch watch = { .turned = 42 };
	int told = 0;

	for (nsec_t still = 0; still < 4 * WATCH_PATIENCE; still += WATCH_PERIOD)
		told += watch_step(&watch, 42, WATCH_PERIOD);
	assert_int_equal(told, 1);
	assert_true(watch.hangs);
	assert_false(watch_step(&watch, 43, WATCH_PERIOD));
	assert_false(watch.hangs);
	for (nsec_t still = 0; still < WATCH_PATIENCE; still += WATCH_PERIOD)
		told += watch_step(&watch, 43, WATCH_PERIOD);
	assert_int_equal(told, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_that_turns_is_left_alone),
		cmocka_unit_test(a_loop_that_stands_still_is_found_after_five_seconds),
		cmocka_unit_test(a_loop_that_never_turned_is_found_too),
		cmocka_unit_test(time_in_which_the_whole_process_stood_still_does_not_count),
		cmocka_unit_test(a_hang_is_told_once_until_the_loop_turns_again),
	};
	return cmocka_run_group_tests_name("control_watchdog", tests, NULL, NULL);
}
