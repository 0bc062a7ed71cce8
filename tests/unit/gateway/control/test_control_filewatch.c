/* test_control_files.c - when changed files are loaded, by a clock that the test owns. */
#include "gateway/control/control_filewatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const uint8_t one[SHA256_BYTES] = { 1 }, two[SHA256_BYTES] = { 2 };

static void they_are_looked_at_once_in_a_period(void **state)
{
	(void)state;
	struct files_watch watch = { .looked = 100 * SEC };

	assert_false(files_due(&watch, 129 * SEC, 30 * SEC));
	assert_true(files_due(&watch, 130 * SEC, 30 * SEC));
	assert_false(files_step(&watch, 130 * SEC, false, one));
	assert_false(files_due(&watch, 159 * SEC, 30 * SEC));
	assert_true(files_due(&watch, 159 * SEC, 10 * SEC)); /* a reload has changed it */
}

static void without_a_period_they_are_never_looked_at(void **state)
{
	(void)state;
	struct files_watch watch = { .looked = 0 };

	assert_false(files_due(&watch, 1000000 * SEC, 0));
}

static void a_change_is_loaded_once_it_has_stood_still_for_a_second(void **state)
{
	(void)state;
	struct files_watch watch = { .looked = 0 };

	assert_false(files_step(&watch, 30 * SEC, true, one));
	assert_false(files_due(&watch, 30 * SEC + FILES_SETTLE - 1, 30 * SEC));
	assert_true(files_due(&watch, 30 * SEC + FILES_SETTLE, 30 * SEC));
	assert_false(files_step(&watch, 31 * SEC, true, two)); /* still being written */
	assert_true(files_due(&watch, 32 * SEC, 30 * SEC));
	assert_true(files_step(&watch, 32 * SEC, true, two));
	files_loaded(&watch);
	assert_false(files_due(&watch, 61 * SEC, 30 * SEC));
}

static void a_change_that_is_taken_back_is_forgotten(void **state)
{
	(void)state;
	struct files_watch watch = { .looked = 0 };

	assert_false(files_step(&watch, 30 * SEC, true, one));
	assert_false(files_step(&watch, 31 * SEC, false, two));
	assert_false(files_due(&watch, 32 * SEC, 30 * SEC));
}

static void what_could_not_be_loaded_now_is_due_again_soon(void **state)
{
	(void)state;
	struct files_watch watch = { .looked = 0 };

	assert_false(files_step(&watch, 30 * SEC, true, one));
	assert_true(files_step(&watch, 31 * SEC, true, one)); /* but there was no room */
	assert_true(files_due(&watch, 32 * SEC, 30 * SEC));
	assert_true(files_step(&watch, 32 * SEC, true, one));
}

static void a_short_period_is_not_made_longer(void **state)
{
	(void)state;
	struct files_watch watch = { .looked = 0 };

	assert_false(files_step(&watch, 1 * SEC, true, one));
	assert_true(files_due(&watch, 1 * SEC + 100 * MSEC, 100 * MSEC));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_looked_at_once_in_a_period),
		cmocka_unit_test(without_a_period_they_are_never_looked_at),
		cmocka_unit_test(a_change_is_loaded_once_it_has_stood_still_for_a_second),
		cmocka_unit_test(a_change_that_is_taken_back_is_forgotten),
		cmocka_unit_test(what_could_not_be_loaded_now_is_due_again_soon),
		cmocka_unit_test(a_short_period_is_not_made_longer),
	};
	return cmocka_run_group_tests_name("control_filewatch", tests, NULL, NULL);
}
