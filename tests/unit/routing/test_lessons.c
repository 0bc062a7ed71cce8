#include "routing/lessons.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { A = 1, B = 3, C = 5 };

static const nsec_t start = 1000 * SEC;
static const learn_set no_stop = LEARN_BIT(LEARN_NO_STOP);
static const learn_set no_temperature = LEARN_BIT(LEARN_NO_TEMPERATURE);

static void note(struct lessons *lessons, learn_set facts, uint64_t tenant, uint64_t body,
		 nsec_t now)
{
	const struct lesson_from from = { .tenant = tenant, .body = body };

	lessons_note(lessons, facts, &from, now);
}

static void what_one_tenant_was_told_is_for_that_tenant_alone(void **state)
{
	struct lessons lessons = { 0 };

	(void)state;
	for (uint64_t body = 0; body < 100; body++)
		note(&lessons, no_stop, A, body, start + body);
	assert_int_equal(lessons_known(&lessons, A, start + 100), no_stop);
	assert_int_equal(lessons_known(&lessons, B, start + 100), 0);
}

static void what_two_tenants_were_told_is_for_all(void **state)
{
	struct lessons lessons = { 0 };

	(void)state;
	note(&lessons, no_stop | no_temperature, A, 1, start);
	note(&lessons, no_stop, B, 1, start + SEC);
	assert_int_equal(lessons_known(&lessons, A, start + SEC), no_stop | no_temperature);
	assert_int_equal(lessons_known(&lessons, B, start + SEC), no_stop);
	assert_int_equal(lessons_known(&lessons, C, start + SEC), no_stop);
}

/* Each of them is its tenant's own matter. */
static void different_facts_do_not_confirm_each_other(void **state)
{
	struct lessons lessons = { 0 };

	(void)state;
	note(&lessons, no_stop, A, 1, start);
	note(&lessons, no_temperature, B, 2, start);
	assert_int_equal(lessons_known(&lessons, A, start), no_stop);
	assert_int_equal(lessons_known(&lessons, C, start), 0);
}

static void the_only_tenant_confirms_by_another_body(void **state)
{
	const struct lesson_from first = { .tenant = A, .body = 1, .only_tenant = true };
	const struct lesson_from second = { .tenant = A, .body = 2, .only_tenant = true };
	struct lessons lessons = { 0 };

	(void)state;
	lessons_note(&lessons, no_stop, &first, start);
	lessons_note(&lessons, no_stop, &first, start);
	assert_int_equal(lessons_known(&lessons, C, start), 0);
	lessons_note(&lessons, no_stop, &second, start);
	assert_int_equal(lessons_known(&lessons, C, start), no_stop);
}

static void a_lesson_is_forgotten_after_an_hour(void **state)
{
	struct lessons lessons = { 0 };

	(void)state;
	assert_int_equal(lessons.until, 0);
	note(&lessons, no_stop, A, 1, start);
	assert_int_equal(lessons.until, start + LESSON_LASTS);
	assert_int_equal(lessons_known(&lessons, A, start + LESSON_LASTS - 1), no_stop);
	assert_int_equal(lessons_known(&lessons, A, start + LESSON_LASTS), 0);
	note(&lessons, no_stop, B, 1, start + LESSON_LASTS); /* the first is no witness any more */
	assert_int_equal(lessons_known(&lessons, C, start + LESSON_LASTS), 0);
	note(&lessons, no_stop, C, 1, start + LESSON_LASTS + SEC);
	assert_int_equal(lessons_known(&lessons, A, start + LESSON_LASTS + SEC), no_stop);
	assert_int_equal(lessons_known(&lessons, A, start + 2 * LESSON_LASTS + SEC), 0);
	assert_int_equal(lessons_known(&lessons, B, start + 2 * LESSON_LASTS + SEC), 0);
}

/* Whatever one caller writes, the place of the others remains. */
static void one_tenant_cannot_push_others_out(void **state)
{
	struct lessons lessons = { 0 };

	(void)state;
	note(&lessons, no_stop, A, 1, start);
	for (uint64_t body = 0; body < 1000; body++)
		note(&lessons, (learn_set) ~(no_stop | 1) & (LEARN_BIT(LEARN_COUNT) - 1), B, body,
		     start + body);
	assert_int_equal(lessons_known(&lessons, A, start + 1000), no_stop);
}

/* The oldest goes, and costs its tenant one more refusal. */
static void there_is_room_for_so_many_tenants(void **state)
{
	struct lessons lessons = { 0 };

	(void)state;
	for (uint64_t i = 0; i <= LESSONS_MAX; i++) /* no two tell the same */
		lessons.kept[i % LESSONS_MAX] =
			(struct lesson_kept){ start + i, 101 + 2 * i, 1, LEARN_NO_STOP };
	note(&lessons, no_temperature, A, 1, start);
	assert_int_equal(lessons_known(&lessons, A, start), no_temperature);
	assert_int_equal(lessons_known(&lessons, 103, start), 0);
	assert_int_equal(lessons_known(&lessons, 105, start), no_stop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_one_tenant_was_told_is_for_that_tenant_alone),
		cmocka_unit_test(what_two_tenants_were_told_is_for_all),
		cmocka_unit_test(different_facts_do_not_confirm_each_other),
		cmocka_unit_test(the_only_tenant_confirms_by_another_body),
		cmocka_unit_test(a_lesson_is_forgotten_after_an_hour),
		cmocka_unit_test(one_tenant_cannot_push_others_out),
		cmocka_unit_test(there_is_room_for_so_many_tenants),
	};
	return cmocka_run_group_tests_name("lessons", tests, NULL, NULL);
}
