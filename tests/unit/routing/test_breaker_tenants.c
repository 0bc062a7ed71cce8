/* Whose failures open a breaker, and for whom. */
#include "tests/unit/routing/breaker_rig.h"

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
	assert_true(breaker_early(b, &settings, tenant, now) <= now);
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
	assert_int_equal(breaker_early(&b, &settings, THIRD, now), begin + SEC);
	for (int i = 0; i < 20; i++, now += 500 * MSEC) {
		while (breaker_early(&b, &settings, ONE, now) <= now)
			(void)breaker_began(&b, &settings, ONE, now);
		while (breaker_early(&b, &settings, OTHER, now) <= now)
			(void)breaker_began(&b, &settings, OTHER, now);
		if (breaker_early(&b, &settings, THIRD, now) > now)
			continue;
		const struct breaker_pass pass = breaker_began(&b, &settings, THIRD, now);
		assert_true(pass.fair);
		fair++;
		breaker_ended(&b, &settings, pass, BREAKER_MUTE, 0, now);
		assert_true(breaker_early(&b, &settings, THIRD, now) <= now); /* it told nothing */
		(void)breaker_began(&b, &settings, THIRD, now);
		assert_int_equal(breaker_early(&b, &settings, THIRD, now),
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
	const nsec_t next = breaker_early(&b, &settings, ONE, late);
	call_of_fair(&b, THIRD, BREAKER_BAD, late);
	assert_int_equal(breaker_early(&b, &settings, THIRD, late),
			 next); /* which it did not put off */
	assert_int_equal(breaker_early(&b, &settings, THIRD + 1, late), late + SEC);
	call_of(&b, ONE, BREAKER_BAD, next);
	for (uint64_t tenant = 100; tenant < 100 + 2 * BREAKER_BLAMED_MAX; tenant++) {
		/* as many as there are: the latest are remembered */
		breaker_ended(&b, &settings, (struct breaker_pass){ 0 }, BREAKER_BAD, tenant, next);
		assert_int_equal(breaker_blamed(&b) <= BREAKER_BLAMED_MAX, 1);
	}
	assert_true(breaker_early(&b, &settings, ONE, late) <= late + SEC);
	breaker_ended(&b, &settings, (struct breaker_pass){ 0 }, BREAKER_BAD, 0, next);
	assert_true(breaker_early(&b, &settings, ONE, late) >
		    late + SEC); /* there is nobody at all */
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

/* Two tenants fail at once, again and again, while two others are answered. */
static void who_was_answered_lately_is_not_kept_out_for_others_failures(void **state)
{
	const uint64_t well = UINT64_C(1) << 32, flaky = UINT64_C(2) << 32,
		       cold = UINT64_C(3) << 32;
	struct breaker b = { 0 };
	nsec_t now = begin;

	(void)state;
	call_of(&b, well, BREAKER_GOOD, now);
	call_of(&b, flaky, BREAKER_GOOD, now);
	now += 100 * MSEC;
	fail_until_open(&b, ONE, OTHER, now);
	assert_true(breaker_early(&b, &settings, cold, now) > now);
	assert_true(breaker_early(&b, &settings, 0, now) > now);
	call_of_fair(&b, flaky, BREAKER_BAD, now);
	assert_true(breaker_early(&b, &settings, flaky, now) > now); /* it has failed now */
	const struct breaker_pass first = breaker_began(&b, &settings, well, now);
	assert_true(first.fair);
	call_of_fair(&b, well, BREAKER_MUTE, now);                      /* as many as it likes */
	assert_int_equal(breaker_early(&b, &settings, cold, now), now); /* which told nothing */
	breaker_ended(&b, &settings, first, BREAKER_GOOD, well, now);
	assert_int_equal(breaker_state(&b, now), BREAKER_CLOSED);
	fail_until_open(&b, ONE, OTHER, now);
	now += settings.window;
	assert_true(breaker_began(&b, &settings, ONE, now).probe);
	assert_true(breaker_began(&b, &settings, cold, now).fair);
	assert_true(breaker_early(&b, &settings, well, now) > now); /* that was long ago */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
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
		cmocka_unit_test(who_was_answered_lately_is_not_kept_out_for_others_failures),
	};

	return cmocka_run_group_tests_name("breaker_tenants", tests, NULL, NULL);
}
