#include "routing/speed.h"

#include "codec/base/attr.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void near_to(const char *name, double value, double expected, double off)
{
	if (fabs(value - expected) > off)
		fail_msg("%s: %g, not %g", name, value, expected);
}

static void twenty_answers_are_needed(void **state)
{
	struct speed speed = { 0 };

	(void)state;
	assert_false(speed_estimate(&speed).measured);
	for (int i = 0; i < SPEED_ANSWERS_MIN; i++) {
		assert_false(speed_estimate(&speed).measured);
		speed_note(&speed, 100 * MSEC, SEC, 90);
		speed_note(&speed, 0, SEC, 0); /* empty: says nothing */
	}
	assert_true(speed_estimate(&speed).measured);
}

static void streamed_answers_tell_both_figures(void **state)
{
	struct speed speed = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		speed_note(&speed, 300 * MSEC, 300 * MSEC + (50 + i) * 20 * MSEC, 50 + i);
	const struct model_speed is = speed_estimate(&speed);
	near_to("first token", (double)is.ttft_ms, 300, 1);
	near_to("per token", (double)is.token_ms, 20, 0.2);
}

static void whole_answers_of_many_lengths_tell_them_too(void **state)
{
	struct speed speed = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 400; i++) {
		const uint64_t tokens = 20 + i * 7919 % 900;
		speed_note(&speed, 0, 500 * MSEC + tokens * 8 * MSEC, tokens);
	}
	const struct model_speed is = speed_estimate(&speed);
	near_to("first token", (double)is.ttft_ms, 500, 80);
	near_to("per token", (double)is.token_ms, 8, 0.2);
}

static void answers_of_one_length_are_not_extrapolated_wildly(void **state)
{
	struct speed speed = { 0 };

	(void)state;
	for (int i = 0; i < 100; i++)
		speed_note(&speed, 0, 800 * MSEC, 20);
	const struct model_speed is = speed_estimate(&speed);
	near_to("together", (double)is.ttft_ms + 20 * (double)is.token_ms, 800, 0.1);
	near_to("per token", (double)is.token_ms, 15, 0.1);
	speed = (struct speed){ 0 };
	for (int i = 0; i < 100; i++) /* faster than usual: not below nothing */
		speed_note(&speed, 0, 200 * MSEC, 1000);
	assert_true(speed_estimate(&speed).ttft_ms >= 0);
	near_to("a fast one per token", (double)speed_estimate(&speed).token_ms, 0.2, 0.01);
}

static void it_follows_a_model_that_becomes_slower(void **state)
{
	struct speed speed = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++)
		speed_note(&speed, 100 * MSEC, 1100 * MSEC, 100);
	for (int i = 0; i < 100; i++)
		speed_note(&speed, 1000 * MSEC, 4000 * MSEC, 100);
	near_to("first token", (double)speed_estimate(&speed).ttft_ms, 1000, 20);
	near_to("per token", (double)speed_estimate(&speed).token_ms, 30, 0.5);
}

static void a_token_takes_what_was_measured_or_a_usual_time(void **state)
{
	static const struct model_speed is = { .measured = true, .token_ms = 4 },
					few = { .measured = false, .token_ms = 4 },
					none = { .measured = true, .token_ms = 0 };

	(void)state;
	near_to("measured", speed_token_ms(&is), 4, 0.001);
	near_to("of too few answers", speed_token_ms(&few), 15, 0.001);
	near_to("no time", speed_token_ms(&none), 15, 0.001);
	near_to("of no model", speed_token_ms(NULL), 15, 0.001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(twenty_answers_are_needed),
		cmocka_unit_test(streamed_answers_tell_both_figures),
		cmocka_unit_test(whole_answers_of_many_lengths_tell_them_too),
		cmocka_unit_test(answers_of_one_length_are_not_extrapolated_wildly),
		cmocka_unit_test(it_follows_a_model_that_becomes_slower),
		cmocka_unit_test(a_token_takes_what_was_measured_or_a_usual_time),
	};

	return cmocka_run_group_tests_name("speed", tests, NULL, NULL);
}
