#include "tests/unit/routing/breaker_rig.h"

/* A whole call; the breaker must admit it. */
static void call(struct breaker *b, enum breaker_result result, nsec_t now)
{
	assert_true(breaker_admits(b, now));
	const struct breaker_pass pass = breaker_began(b, &settings, 0, now);
	breaker_ended(b, &settings, pass, result, 0, now);
}

static void calls(struct breaker *b, int count, enum breaker_result result, nsec_t now)
{
	for (int i = 0; i < count; i++)
		call(b, result, now);
}

static void a_row_of_failures_opens_it(void **state)
{
	struct breaker b = { 0 };

	(void)state;
	calls(&b, 2, BREAKER_BAD, begin);
	call(&b, BREAKER_GOOD, begin); /* breaks the row */
	calls(&b, 2, BREAKER_BAD, begin);
	call(&b, BREAKER_MUTE, begin); /* does not */
	assert_int_equal(breaker_state(&b, begin), BREAKER_CLOSED);
	call(&b, BREAKER_BAD, begin);
	assert_int_equal(breaker_state(&b, begin), BREAKER_OPEN);
	assert_false(breaker_admits(&b, begin + SEC - 1));
}

static void a_share_of_a_windows_calls_opens_it(void **state)
{
	static const struct {
		const char *name;
		int good, bad; /* by turns, `good` for each `bad` */
		nsec_t apart;
		bool opens;
	} rows[] = {
		{ "half of them, side by side", 1, 1, 0, true },
		{ "a third of them", 2, 1, 0, false },
		{ "half of them, too few in the window", 1, 1, 2 * SEC, false },
	};

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct breaker b = { 0 };
		nsec_t now = begin;
		bool opened = false;

		for (int i = 0; i < 20 && !opened; i++) {
			calls(&b, rows[r].good, BREAKER_GOOD, now);
			now += rows[r].apart;
			calls(&b, rows[r].bad, BREAKER_BAD, now);
			now += rows[r].apart;
			opened = breaker_state(&b, now) == BREAKER_OPEN;
		}
		if (opened != rows[r].opens)
			fail_msg("%s: %d", rows[r].name, opened);
	}
}

static void failures_of_long_ago_are_forgotten(void **state)
{
	struct breaker b = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++) {
		calls(&b, 1, BREAKER_GOOD, begin);
		calls(&b, 1, BREAKER_BAD, begin);
	}
	calls(&b, 1, BREAKER_GOOD, begin + 11 * SEC);
	calls(&b, 1, BREAKER_BAD, begin + 11 * SEC);
	assert_int_equal(breaker_state(&b, begin + 11 * SEC), BREAKER_CLOSED);
}

static void half_open_it_admits_one_at_a_time(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	calls(&b, 3, BREAKER_BAD, now);
	now += SEC;
	assert_int_equal(breaker_state(&b, now), BREAKER_HALF_OPEN);
	const struct breaker_pass probe = breaker_began(&b, &settings, 0, now);
	assert_true(probe.probe);
	assert_false(breaker_admits(&b, now));
	assert_true(breaker_admits(&b, now + SEC)); /* the first one takes its time */
	breaker_ended(&b, &settings, probe, BREAKER_MUTE, 0, now);
	assert_true(breaker_admits(&b, now)); /* it told nothing: another one may */
	call(&b, BREAKER_GOOD, now);
	assert_int_equal(breaker_state(&b, now), BREAKER_CLOSED);
}

static void failed_probes_double_its_time_up_to_a_bound(void **state)
{
	static const nsec_t waits[] = { 1 * SEC, 2 * SEC, 4 * SEC, 8 * SEC, 8 * SEC, 8 * SEC };
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	calls(&b, 3, BREAKER_BAD, now);
	for (size_t i = 0; i < COUNT_OF(waits); i++) {
		assert_false(breaker_admits(&b, now + waits[i] - 1));
		now += waits[i];
		call(&b, BREAKER_BAD, now);
	}
	for (int i = 0; i < 100; i++) { /* no shift is too far */
		now += 8 * SEC;
		call(&b, BREAKER_BAD, now);
	}
	assert_true(breaker_admits(&b, now + 8 * SEC));
}

static void where_there_is_nobody_else_it_may_be_tried_as_soon_as_the_first_time(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	calls(&b, 3, BREAKER_BAD, now);
	assert_int_equal(breaker_early(&b, &settings, 0, now), now + SEC);
	for (int i = 0; i < 10; i++) {
		now = breaker_early(&b, &settings, 0, now);
		const struct breaker_pass pass = breaker_began(&b, &settings, 0, now);
		assert_true(pass.probe);
		assert_int_equal(breaker_early(&b, &settings, 0, now),
				 now + SEC); /* should it be slow */
		breaker_ended(&b, &settings, pass, BREAKER_BAD, 0, now);
		assert_int_equal(breaker_early(&b, &settings, 0, now), now + SEC);
	}
	assert_false(breaker_admits(&b, now + 8 * SEC - 1)); /* as ever, where there are others */
	breaker_checked(&b, false, now);
	assert_true(breaker_early(&b, &settings, 0, now) == NSEC_NEVER);
}

static void who_opens_again_soon_is_away_longer_and_who_stayed_well_is_not(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	calls(&b, 3, BREAKER_BAD, now);
	now += SEC;
	call(&b, BREAKER_GOOD, now);
	calls(&b, 3, BREAKER_BAD, now);
	assert_false(breaker_admits(&b, now + 2 * SEC - 1));
	now += 2 * SEC;
	call(&b, BREAKER_GOOD, now);
	now += 8 * SEC;
	call(&b, BREAKER_GOOD, now);
	calls(&b, 3, BREAKER_BAD, now);
	assert_true(breaker_admits(&b, now + SEC));
}

static void what_began_before_it_opened_has_no_say(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	const struct breaker_pass before = breaker_began(&b, &settings, 0, now);
	calls(&b, 3, BREAKER_BAD, now);
	breaker_ended(&b, &settings, before, BREAKER_GOOD, 0, now);
	assert_int_equal(breaker_state(&b, now), BREAKER_OPEN);
	breaker_ended(&b, &settings, before, BREAKER_BAD, 0, now);
	assert_true(breaker_admits(&b, now + SEC)); /* not doubled */
}

/* Two of them fail, one after the other: the second one's wait is not doubled for the first. */
static void a_probe_of_an_earlier_opening_decides_nothing(void **state)
{
	static const enum breaker_result results[] = { BREAKER_BAD, BREAKER_GOOD, BREAKER_MUTE };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(results); i++) {
		struct breaker b = { 0 };
		nsec_t now = begin;

		calls(&b, 3, BREAKER_BAD, now);
		now += SEC;
		const struct breaker_pass slow = breaker_began(&b, &settings, 0, now);
		now += SEC;
		call(&b, BREAKER_BAD, now);
		breaker_ended(&b, &settings, slow, results[i], 0, now + SEC);
		assert_false(breaker_admits(&b, now + 2 * SEC - 1));
		assert_int_equal(breaker_state(&b, now + 2 * SEC), BREAKER_HALF_OPEN);
	}
}

/* Its last calls as characters: + good, - bad; until it opens, which has to be with the last one. */
static void open_by(struct breaker *b, const char *results, nsec_t now)
{
	for (const char *at = results; *at != '\0'; at++) {
		assert_int_equal(breaker_state(b, now), BREAKER_CLOSED);
		call(b, *at == '+' ? BREAKER_GOOD : BREAKER_BAD, now);
	}
	assert_int_equal(breaker_state(b, now), BREAKER_OPEN);
}

static void who_fails_now_and_then_has_a_chance_and_who_died_has_none(void **state)
{
	static const struct {
		const char *name, *results;
		uint32_t least, most;
	} rows[] = {
		/* of BREAKER_CHANCE_FULL, in percent */
		{ "a new one", "---", 0, 0 },
		{ "one that was well", "++++++++++++++++++++---", 0, 0 },
		{ "one that had failed once in a while", "+++++++-++++---", 0, 0 },
		{ "half of its calls fail", "+-+-+-+-+-", 100, 100 },
		{ "and some in a row", "-+-++-+---", 100, 100 },
		{ "most of them fail", "--+--+--+-", 80, 90 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct breaker b = { 0 };

		open_by(&b, rows[i].results, begin);
		const uint32_t percent = breaker_chance(&b) * 100 / BREAKER_CHANCE_FULL;
		if (percent < rows[i].least || percent > rows[i].most)
			fail_msg("%s: %u", rows[i].name, percent);
		breaker_checked(&b, false, begin);
		assert_int_equal(breaker_chance(&b), 0);
	}
}

static void the_chance_goes_by_what_came_of_it(void **state)
{
	struct breaker b = { 0 };
	uint32_t went = 0, last = BREAKER_CHANCE_FULL;

	(void)state;
	open_by(&b, "+-+-+-+-+-", begin);
	for (; went < 1000 && breaker_chance(&b) > BREAKER_CHANCE_FULL / 16; went++) {
		const struct breaker_pass pass = breaker_began(&b, &settings, 0, begin);
		assert_true(pass.opening != 0 && !pass.probe);
		breaker_ended(&b, &settings, pass, BREAKER_BAD, 0, begin);
		assert_true(breaker_chance(&b) <= last);
		last = breaker_chance(&b);
	}
	assert_in_range(went, 16, 80);
	assert_true(breaker_admits(&b, begin + SEC)); /* none of them was a probe */
	for (int i = 0; i < 4; i++) {
		const struct breaker_pass pass = breaker_began(&b, &settings, 0, begin);
		breaker_ended(&b, &settings, pass, BREAKER_MUTE, 0, begin);
		assert_int_equal(breaker_chance(&b), last);
		breaker_ended(&b, &settings, pass, BREAKER_GOOD, 0, begin);
		assert_true(breaker_chance(&b) > last);
		last = breaker_chance(&b);
	}
	assert_int_equal(breaker_state(&b, begin), BREAKER_OPEN); /* a probe has to say so */
}

/* The window has hardly begun: a row at its beginning does not make a dead one of it. */
static void soon_after_an_opening_what_was_seen_in_it_counts(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	open_by(&b, "+-+-+-+-+-", now);
	now += SEC;
	call(&b, BREAKER_GOOD, now); /* the probe */
	open_by(&b, "---", now);
	assert_int_equal(breaker_chance(&b), BREAKER_CHANCE_FULL);
	now += 2 * SEC;
	call(&b, BREAKER_GOOD, now);
	now += settings.open_max;
	call(&b, BREAKER_GOOD, now); /* has stayed well */
	open_by(&b, "---", now);
	assert_int_equal(breaker_chance(&b), 0);
}

static void its_share_rises_after_closing(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;
	uint32_t last = 0;

	(void)state;
	assert_int_equal(breaker_share(&b, &settings, now), BREAKER_SHARE_FULL);
	calls(&b, 3, BREAKER_BAD, now);
	now += SEC;
	call(&b, BREAKER_GOOD, now);
	for (int i = 0; i <= 16; i++) {
		const uint32_t share = breaker_share(&b, &settings, now + (nsec_t)i * SEC);
		assert_true(share > last || (i <= 1 && share > 0));
		last = share;
	}
	assert_int_equal(last, BREAKER_SHARE_FULL);
	assert_int_equal(breaker_share(&b, &settings, now + 8 * SEC), BREAKER_SHARE_FULL / 2);
	const struct breaker_settings at_once = { .row = 1, .open_first = 1, .open_max = 1 };
	assert_int_equal(breaker_share(&b, &at_once, now), BREAKER_SHARE_FULL);
}

static void failing_checks_keep_it_out_and_passing_ones_let_it_in(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	breaker_checked(&b, true, now);
	assert_int_equal(breaker_share(&b, &settings, now), BREAKER_SHARE_FULL);
	breaker_checked(&b, false, now);
	assert_int_equal(breaker_state(&b, now + 3600 * SEC), BREAKER_OPEN);
	breaker_checked(&b, true, now);
	assert_int_equal(breaker_state(&b, now), BREAKER_CLOSED);
	assert_true(breaker_share(&b, &settings, now) < BREAKER_SHARE_FULL);
	calls(&b, 3, BREAKER_BAD, now);
	breaker_checked(&b, true, now); /* calls failed all the same: it has to prove itself */
	assert_int_equal(breaker_state(&b, now), BREAKER_HALF_OPEN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_of_failures_opens_it),
		cmocka_unit_test(a_share_of_a_windows_calls_opens_it),
		cmocka_unit_test(failures_of_long_ago_are_forgotten),
		cmocka_unit_test(half_open_it_admits_one_at_a_time),
		cmocka_unit_test(failed_probes_double_its_time_up_to_a_bound),
		cmocka_unit_test(
			where_there_is_nobody_else_it_may_be_tried_as_soon_as_the_first_time),
		cmocka_unit_test(who_opens_again_soon_is_away_longer_and_who_stayed_well_is_not),
		cmocka_unit_test(what_began_before_it_opened_has_no_say),
		cmocka_unit_test(a_probe_of_an_earlier_opening_decides_nothing),
		cmocka_unit_test(who_fails_now_and_then_has_a_chance_and_who_died_has_none),
		cmocka_unit_test(the_chance_goes_by_what_came_of_it),
		cmocka_unit_test(soon_after_an_opening_what_was_seen_in_it_counts),
		cmocka_unit_test(its_share_rises_after_closing),
		cmocka_unit_test(failing_checks_keep_it_out_and_passing_ones_let_it_in),
	};

	return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
