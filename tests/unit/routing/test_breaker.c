#include "routing/breaker.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct breaker_settings settings = {
	.row = 3,
	.ratio = 0.5,
	.calls = 10,
	.window = 10 * SEC,
	.open_first = 1 * SEC,
	.open_max = 8 * SEC,
	.ramp = 16 * SEC,
};

static const nsec_t begin = 1000 * SEC;

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
	assert_int_equal(breaker_early(&b, &settings, 0), now + SEC);
	for (int i = 0; i < 10; i++) {
		now = breaker_early(&b, &settings, 0);
		const struct breaker_pass pass = breaker_began(&b, &settings, 0, now);
		assert_true(pass.probe);
		assert_int_equal(breaker_early(&b, &settings, 0),
				 now + SEC); /* should it be slow */
		breaker_ended(&b, &settings, pass, BREAKER_BAD, 0, now);
		assert_int_equal(breaker_early(&b, &settings, 0), now + SEC);
	}
	assert_false(breaker_admits(&b, now + 8 * SEC - 1)); /* as ever, where there are others */
	breaker_checked(&b, false, now);
	assert_true(breaker_early(&b, &settings, 0) == NSEC_NEVER);
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

/* ---- whose failures they are ---- */

enum { ONE = 1, OTHER, THIRD };

/* A call of that tenant; a failure of 0 is nobody's. The breaker must admit it. */
static void call_of(struct breaker *b, uint64_t tenant, enum breaker_result result, nsec_t now)
{
	assert_true(breaker_admits(b, now) || breaker_spares(b, tenant));
	const struct breaker_pass pass = breaker_began(b, &settings, tenant, now);
	breaker_ended(b, &settings, pass, result, tenant, now);
}

/* By turns of the two. */
static void fail_until_open(struct breaker *b, uint64_t one, uint64_t other, nsec_t now)
{
	for (int i = 0; breaker_state(b, now) != BREAKER_OPEN; i++)
		call_of(b, i % 2 == 0 ? one : other, BREAKER_BAD, now);
}

static void one_tenants_failures_open_it_for_that_one_alone(void **state)
{
	static const struct {
		const char *name;
		uint64_t one, other; /* whose failures they are, by turns */
		bool spares;
	} rows[] = {
		{ "one tenant's", ONE, ONE, true },
		{ "two tenants'", ONE, OTHER, false },
		{ "one tenant's, and some were nobody's", ONE, 0, false },
		{ "nobody's", 0, 0, false },
	};

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct breaker b = { 0 };

		fail_until_open(&b, rows[r].one, rows[r].other, begin);
		if (breaker_spares(&b, THIRD) != rows[r].spares)
			fail_msg("%s", rows[r].name);
		assert_false(breaker_spares(&b, ONE));
	}
}

static void failures_before_a_success_do_not_make_a_row_of_others(void **state)
{
	struct breaker b = { 0 };

	(void)state;
	call_of(&b, OTHER, BREAKER_BAD, begin);
	call_of(&b, OTHER, BREAKER_GOOD, begin);
	fail_until_open(&b, ONE, ONE, begin);
	assert_true(breaker_spares(&b, OTHER));
}

static void one_tenants_share_of_a_windows_calls_opens_it_for_that_one_alone(void **state)
{
	(void)state;
	for (uint64_t second = ONE; second <= OTHER; second++) {
		struct breaker b = { 0 };

		for (int i = 0; breaker_state(&b, begin) != BREAKER_OPEN; i++) {
			assert_in_range(i, 0, 20);
			call_of(&b, THIRD, BREAKER_GOOD, begin);
			call_of(&b, i % 2 == 0 ? ONE : second, BREAKER_BAD, begin);
		}
		assert_int_equal(breaker_spares(&b, THIRD), second == ONE);
	}
}

static void anothers_success_closes_it_as_if_it_had_never_been_open(void **state)
{
	struct breaker b = { 0 };

	(void)state;
	for (int times = 0; times < 10; times++) {
		fail_until_open(&b, ONE, ONE, begin);
		call_of(&b, OTHER, BREAKER_MUTE, begin); /* tells nothing */
		assert_true(breaker_spares(&b, OTHER));
		call_of(&b, OTHER, BREAKER_GOOD, begin);
		assert_int_equal(breaker_state(&b, begin), BREAKER_CLOSED);
		assert_int_equal(breaker_share(&b, &settings, begin), BREAKER_SHARE_FULL);
	}
	fail_until_open(&b, ONE, OTHER, begin);
	assert_int_equal(breaker_state(&b, begin + SEC), BREAKER_HALF_OPEN); /* a first time */
}

static void anothers_failure_opens_it_for_all(void **state)
{
	(void)state;
	for (uint64_t tenant = 0; tenant <= OTHER; tenant += OTHER) { /* nobody's, and another's */
		struct breaker b = { 0 };

		fail_until_open(&b, ONE, ONE, begin);
		call_of(&b, tenant, BREAKER_BAD, begin);
		assert_false(breaker_spares(&b, THIRD));
		assert_false(breaker_admits(&b, begin + SEC - 1));
		call_of(&b, ONE, BREAKER_BAD, begin + SEC); /* nor is it that one's alone again */
		assert_false(breaker_spares(&b, THIRD));
		assert_false(breaker_admits(&b, begin + 3 * SEC - 1));
		call_of(&b, ONE, BREAKER_GOOD, begin + 3 * SEC);
		assert_int_equal(breaker_state(&b, begin + 3 * SEC), BREAKER_CLOSED);
	}
}

static void anothers_failure_of_before_ends_that_it_is_one_tenants_affair(void **state)
{
	(void)state;
	for (uint64_t tenant = 0; tenant <= OTHER; tenant++) { /* nobody's; ONE's own; another's */
		struct breaker b = { 0 };
		const struct breaker_pass before = breaker_began(&b, &settings, tenant, begin);

		fail_until_open(&b, ONE, ONE, begin);
		breaker_ended(&b, &settings, before, BREAKER_BAD, tenant, begin);
		assert_int_equal(breaker_spares(&b, THIRD), tenant == ONE);
		assert_int_equal(breaker_state(&b, begin + SEC - 1), BREAKER_OPEN);
		assert_int_equal(breaker_state(&b, begin + SEC),
				 BREAKER_HALF_OPEN); /* not doubled */
	}
}

static void a_probe_of_the_one_it_is_open_for_slows_nobody_else(void **state)
{
	(void)state;
	for (uint64_t tenant = ONE; tenant <= OTHER;
	     tenant++) { /* there is nobody else; there is */
		struct breaker b = { 0 };

		call_of(&b, tenant, BREAKER_GOOD, begin);
		fail_until_open(&b, ONE, ONE, begin);
		call_of(&b, ONE, BREAKER_GOOD, begin + SEC);
		assert_int_equal(breaker_state(&b, begin + SEC), BREAKER_CLOSED);
		assert_int_equal(breaker_share(&b, &settings, begin + SEC) == BREAKER_SHARE_FULL,
				 tenant == OTHER);
	}
}

/* ---- several tenants that are one attacker ---- */

/* A call that begins at `began` and is too late at `now`. */
static void late_of(struct breaker *b, uint64_t tenant, nsec_t began, nsec_t now)
{
	const struct breaker_pass pass = breaker_began(b, &settings, tenant, began);

	breaker_ended(b, &settings, pass, BREAKER_LATE, tenant, now);
}

static void late_calls_of_two_open_it_for_all_unless_a_third_was_answered_meanwhile(void **state)
{
	static const struct {
		const char *name;
		uint64_t answered; /* who, if anybody */
		nsec_t at;
		bool opens;
	} rows[] = {
		{ "nobody was", 0, 0, true },
		{ "a third, before they began", THIRD, begin, true },
		{ "a third, meanwhile", THIRD, begin + 2 * SEC, false },
		{ "one of them, meanwhile: the other's are late for another reason", ONE,
		  begin + 2 * SEC, false },
	};

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct breaker b = { 0 };
		const nsec_t began = begin + SEC, now = begin + 3 * SEC;
		struct breaker_pass passes[20];

		if (rows[r].answered != 0 && rows[r].at < began)
			call_of(&b, rows[r].answered, BREAKER_GOOD, rows[r].at);
		for (size_t i = 0; i < COUNT_OF(passes); i++)
			passes[i] = breaker_began(&b, &settings, ONE + i % 2, began);
		if (rows[r].answered != 0 && rows[r].at > began)
			call_of(&b, rows[r].answered, BREAKER_GOOD, rows[r].at);
		for (size_t i = 0; i < COUNT_OF(passes); i++)
			breaker_ended(&b, &settings, passes[i], BREAKER_LATE, ONE + i % 2, now);
		const bool opened = !breaker_admits(&b, now) && !breaker_spares(&b, THIRD);
		if (opened != rows[r].opens)
			fail_msg("%s", rows[r].name);
	}
}

static void late_calls_while_others_are_answered_are_their_tenants_affair(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	for (int i = 0; i < 3; i++, now += SEC) {
		call_of(&b, THIRD, BREAKER_GOOD, now);
		assert_true(breaker_admits(&b, now));
		late_of(&b, ONE, now - 1, now);
	}
	assert_false(breaker_admits(&b, now - SEC) || breaker_spares(&b, ONE));
	assert_true(breaker_spares(&b, OTHER));
	late_of(&b, OTHER, now - 4 * SEC, now); /* began before; and shows nothing either */
	assert_true(breaker_spares(&b, THIRD));
	call_of(&b, THIRD, BREAKER_GOOD, now);
	for (int i = 0; i < 10; i++) { /* a success between them: it is no row */
		late_of(&b, ONE, now - SEC, now);
		call_of(&b, ONE, BREAKER_GOOD, now);
		call_of(&b, THIRD, BREAKER_GOOD, now);
	}
	assert_int_equal(breaker_state(&b, now), BREAKER_CLOSED);
	call_of(&b, OTHER, BREAKER_BAD, now); /* nor do they count with others' failures */
	assert_int_equal(breaker_state(&b, now), BREAKER_CLOSED);
}

static void late_calls_of_the_only_tenant_open_it(void **state)
{
	struct breaker b = { 0 };

	(void)state;
	call_of(&b, ONE, BREAKER_GOOD, begin);
	for (int i = 0; i < 3; i++) {
		assert_true(breaker_admits(&b, begin));
		late_of(&b, ONE, begin - SEC, begin);
	}
	assert_false(breaker_admits(&b, begin) || breaker_spares(&b, ONE));
	late_of(&b, ONE, begin + SEC, begin + 5 * SEC); /* the probe */
	assert_false(breaker_admits(&b, begin + 7 * SEC - 1));
	call_of(&b, ONE, BREAKER_GOOD, begin + 7 * SEC);
	assert_int_equal(breaker_state(&b, begin + 7 * SEC), BREAKER_CLOSED);
}

/* A call that goes as such a probe. */
static void call_of_fair(struct breaker *b, uint64_t tenant, enum breaker_result result, nsec_t now)
{
	assert_true(breaker_early(b, &settings, tenant) <= now);
	const struct breaker_pass pass = breaker_began(b, &settings, tenant, now);
	assert_true(pass.fair);
	breaker_ended(b, &settings, pass, result, tenant, now);
}

/* They take every probe that there is, and leave it without an answer. */
static void who_failed_does_not_keep_others_from_a_probe(void **state)
{
	struct breaker b = { 0 };
	nsec_t now = begin;
	uint32_t fair = 0;

	(void)state;
	fail_until_open(&b, ONE, OTHER, now);
	assert_int_equal(breaker_early(&b, &settings, THIRD), begin + SEC);
	for (int i = 0; i < 20; i++, now += 500 * MSEC) {
		while (breaker_early(&b, &settings, ONE) <= now)
			(void)breaker_began(&b, &settings, ONE, now);
		while (breaker_early(&b, &settings, OTHER) <= now)
			(void)breaker_began(&b, &settings, OTHER, now);
		if (breaker_early(&b, &settings, THIRD) > now)
			continue;
		const struct breaker_pass pass = breaker_began(&b, &settings, THIRD, now);
		assert_true(pass.fair);
		fair++;
		breaker_ended(&b, &settings, pass, BREAKER_MUTE, 0, now);
		assert_true(breaker_early(&b, &settings, THIRD) <= now); /* it told nothing */
		(void)breaker_began(&b, &settings, THIRD, now);
		assert_int_equal(breaker_early(&b, &settings, THIRD),
				 now + SEC); /* one at a time */
	}
	assert_in_range(fair, 9, 10);
	now += SEC;
	assert_true(breaker_began(&b, &settings, ONE, now).probe);
	call_of_fair(&b, THIRD, BREAKER_GOOD, now);
	assert_int_equal(breaker_state(&b, now), BREAKER_CLOSED);
}

static void a_fair_probe_that_fails_makes_its_tenant_like_the_others(void **state)
{
	struct breaker b = { 0 };
	const nsec_t late = begin + 3 * SEC;

	(void)state;
	fail_until_open(&b, ONE, OTHER, begin);
	(void)breaker_began(&b, &settings, ONE, late);
	const nsec_t next = breaker_early(&b, &settings, ONE);
	call_of_fair(&b, THIRD, BREAKER_BAD, late);
	assert_int_equal(breaker_early(&b, &settings, THIRD), next); /* which it did not put off */
	assert_int_equal(breaker_early(&b, &settings, THIRD + 1), late + SEC);
	call_of(&b, ONE, BREAKER_BAD, next);
	for (uint64_t tenant = 100; tenant < 100 + 2 * BREAKER_BLAMED_MAX; tenant++) {
		/* as many as there are: the latest are remembered */
		breaker_ended(&b, &settings, (struct breaker_pass){ 0 }, BREAKER_BAD, tenant, next);
		assert_int_equal(breaker_blamed(&b) <= BREAKER_BLAMED_MAX, 1);
	}
	assert_true(breaker_early(&b, &settings, ONE) <= late + SEC);
	breaker_ended(&b, &settings, (struct breaker_pass){ 0 }, BREAKER_BAD, 0, next);
	assert_true(breaker_early(&b, &settings, ONE) > late + SEC); /* there is nobody at all */
}

static void for_the_one_it_is_open_for_it_is_like_any_other(void **state)
{
	struct breaker b = { 0 };

	(void)state;
	fail_until_open(&b, ONE, ONE, begin);
	assert_false(breaker_admits(&b, begin + SEC - 1));
	call_of(&b, ONE, BREAKER_BAD, begin + SEC);
	assert_false(breaker_admits(&b, begin + 3 * SEC - 1));
	assert_true(breaker_spares(&b, OTHER));
	breaker_checked(&b, false, begin + 2 * SEC);
	assert_false(breaker_spares(&b, OTHER)); /* active checks are for all */
	breaker_checked(&b, true, begin + 2 * SEC);
	call_of(&b, ONE, BREAKER_GOOD, begin + 3 * SEC);
	assert_int_equal(breaker_state(&b, begin + 3 * SEC), BREAKER_CLOSED);
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
		cmocka_unit_test(one_tenants_failures_open_it_for_that_one_alone),
		cmocka_unit_test(failures_before_a_success_do_not_make_a_row_of_others),
		cmocka_unit_test(one_tenants_share_of_a_windows_calls_opens_it_for_that_one_alone),
		cmocka_unit_test(anothers_success_closes_it_as_if_it_had_never_been_open),
		cmocka_unit_test(anothers_failure_opens_it_for_all),
		cmocka_unit_test(anothers_failure_of_before_ends_that_it_is_one_tenants_affair),
		cmocka_unit_test(a_probe_of_the_one_it_is_open_for_slows_nobody_else),
		cmocka_unit_test(for_the_one_it_is_open_for_it_is_like_any_other),
		cmocka_unit_test(
			late_calls_of_two_open_it_for_all_unless_a_third_was_answered_meanwhile),
		cmocka_unit_test(late_calls_while_others_are_answered_are_their_tenants_affair),
		cmocka_unit_test(late_calls_of_the_only_tenant_open_it),
		cmocka_unit_test(who_failed_does_not_keep_others_from_a_probe),
		cmocka_unit_test(a_fair_probe_that_fails_makes_its_tenant_like_the_others),
	};

	return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
