/* test_supervisor_restart.c - when a dead server process is started again. */
#include "gateway/process/supervisor_restart.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A life of the server: it begins `delay` after the death before, lasts `lived`, and ends; the next one
 * is expected to wait `delay_ms`. */
struct life {
	nsec_t lived;
	bool ready;
	uint64_t delay_ms;
};

/* Returns whether the supervisor goes on after the last one. */
static bool live(const struct life *lives, size_t count)
{
	struct supervisor_restart r = { .unready = 0 };
	nsec_t now = 1000 * SEC, delay = 0;
	bool goes_on = true;

	for (size_t i = 0; i < count; i++) {
		nsec_t started = now + delay;
		now = started + lives[i].lived;
		goes_on = supervisor_restart(&r, started, now, lives[i].ready, &delay);
		if (!goes_on)
			return false;
		if (delay != lives[i].delay_ms * MSEC)
			fail_msg("death %zu: waits %llu ms instead of %llu", i,
				 (unsigned long long)(delay / MSEC),
				 (unsigned long long)lives[i].delay_ms);
	}
	return goes_on;
}

static void three_deaths_in_ten_seconds_are_answered_at_once(void **state)
{
	(void)state;
	static const struct life lives[] = { { SEC, true, 0 }, { SEC, true, 0 }, { SEC, true, 0 } };

	assert_true(live(lives, COUNT_OF(lives)));
}

static void more_deaths_wait_longer_and_longer_up_to_five_seconds(void **state)
{
	(void)state;
	static const struct life lives[] = {
		{ MSEC, true, 0 },    { MSEC, true, 0 },    { MSEC, true, 0 },
		{ MSEC, true, 100 },  { MSEC, true, 200 },  { MSEC, true, 400 },
		{ MSEC, true, 800 },  { MSEC, true, 1600 }, { MSEC, true, 3200 },
		{ MSEC, true, 5000 }, { MSEC, true, 5000 }, { 9 * SEC, true, 5000 },
	};

	assert_true(live(lives, COUNT_OF(lives)));
}

static void a_server_that_lived_for_ten_seconds_ends_the_waiting(void **state)
{
	(void)state;
	static const struct life lives[] = {
		{ MSEC, true, 0 },   { MSEC, true, 0 },   { MSEC, true, 0 },
		{ MSEC, true, 100 }, { MSEC, true, 200 }, { 10 * SEC, true, 0 },
		{ MSEC, true, 0 },   { MSEC, true, 0 },   { MSEC, true, 100 },
	};

	assert_true(live(lives, COUNT_OF(lives)));
}

static void deaths_that_are_far_apart_are_always_answered_at_once(void **state)
{
	(void)state;
	static const struct life lives[] = { { 4 * SEC, true, 0 }, { 4 * SEC, true, 0 },
					     { 4 * SEC, true, 0 }, { 4 * SEC, true, 0 },
					     { 4 * SEC, true, 0 }, { 4 * SEC, true, 0 } };

	assert_true(live(lives, COUNT_OF(lives)));
}

static void five_deaths_in_a_row_before_ready_are_the_end(void **state)
{
	(void)state;
	static const struct life lives[] = { { MSEC, false, 0 },
					     { MSEC, false, 0 },
					     { MSEC, false, 0 },
					     { MSEC, false, 100 },
					     { MSEC, false, 0 } };

	assert_true(live(lives, 4));
	assert_false(live(lives, 5));
}

static void a_ready_server_in_between_begins_the_count_again(void **state)
{
	(void)state;
	static const struct life lives[] = {
		{ 4 * SEC, false, 0 }, { 4 * SEC, false, 0 }, { 4 * SEC, false, 0 },
		{ 4 * SEC, false, 0 }, { 4 * SEC, true, 0 },  { 4 * SEC, false, 0 },
		{ 4 * SEC, false, 0 }, { 4 * SEC, false, 0 }, { 4 * SEC, false, 0 },
	};

	assert_true(live(lives, COUNT_OF(lives)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_deaths_in_ten_seconds_are_answered_at_once),
		cmocka_unit_test(more_deaths_wait_longer_and_longer_up_to_five_seconds),
		cmocka_unit_test(a_server_that_lived_for_ten_seconds_ends_the_waiting),
		cmocka_unit_test(deaths_that_are_far_apart_are_always_answered_at_once),
		cmocka_unit_test(five_deaths_in_a_row_before_ready_are_the_end),
		cmocka_unit_test(a_ready_server_in_between_begins_the_count_again),
	};
	return cmocka_run_group_tests_name("supervisor_restart", tests, NULL, NULL);
}
