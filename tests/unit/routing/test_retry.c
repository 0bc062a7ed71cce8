#include "routing/retry.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const struct retry_settings settings = { .share = 0.15, .floor = 5, .window = 10 * SEC };

/* Everything fails: every request is retried as often as may be, at most thrice. */
static uint32_t outage(struct retry_budget *b, nsec_t *now, int requests, nsec_t apart)
{
	uint32_t retries = 0;

	for (int i = 0; i < requests; i++) {
		*now += apart;
		retry_note_request(b, &settings, *now);
		for (int r = 0; r < 3 && retry_has(b, &settings, *now); r++) {
			retry_take(b);
			retries++;
		}
	}
	return retries;
}

static void retries_stay_below_a_fifth_in_the_worst_outage(void **state)
{
	static const struct {
		const char *name;
		int requests, warm;
		nsec_t apart;
	} rows[] = {
		{ "from the start, 1,000 a second", 10000, 0, MSEC },
		{ "from the start, 100 a second", 1000, 0, 10 * MSEC },
		{ "from the start, 20 a second", 400, 0, 50 * MSEC },
		{ "after a good minute", 6000, 6000, 10 * MSEC },
		{ "for an hour", 36000, 1000, 100 * MSEC },
	};

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct retry_budget b = { 0 };
		nsec_t now = 1000 * SEC;

		for (int i = 0; i < rows[r].warm; i++)
			retry_note_request(&b, &settings, now += rows[r].apart);
		const uint32_t retries = outage(&b, &now, rows[r].requests, rows[r].apart);
		if (retries * 5 > (uint32_t)rows[r].requests)
			fail_msg("%s: %u retries", rows[r].name, retries);
		if (retries * 10 < (uint32_t)rows[r].requests)
			fail_msg("%s: only %u retries", rows[r].name, retries);
	}
}

static void who_asks_little_has_a_few_retries_all_the_same(void **state)
{
	struct retry_budget b = { 0 };
	nsec_t now = 1000 * SEC;

	(void)state;
	assert_int_equal(outage(&b, &now, 2, SEC), 5);      /* the floor, at once */
	assert_in_range(outage(&b, &now, 1, SEC), 0, 1);    /* a tenth of the floor, and parts */
	assert_int_equal(outage(&b, &now, 1, 60 * SEC), 3); /* as many as one request may have */
	assert_int_equal(outage(&b, &now, 1, SEC), 2);
}

static void what_is_not_used_is_not_kept_for_ever(void **state)
{
	struct retry_budget b = { 0 };
	nsec_t now = 1000 * SEC;
	uint32_t left = 0;

	(void)state;
	for (int i = 0; i < 100000; i++)
		retry_note_request(&b, &settings, now += MSEC);
	for (; retry_has(&b, &settings, now); left++)
		retry_take(&b);
	assert_in_range(left, 140, 151); /* of a second, not of all */
	for (int i = 0; i < 100000; i++)
		retry_note_request(&b, &settings, now += MSEC);
	now += 20 * SEC;
	for (left = 0; retry_has(&b, &settings, now); left++)
		retry_take(&b);
	assert_int_equal(left, 5);
}

static void no_share_and_no_floor_mean_no_retries(void **state)
{
	static const struct retry_settings never = { .share = 0, .floor = 0, .window = SEC };
	struct retry_budget b = { 0 };
	nsec_t now = 1000 * SEC;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		retry_note_request(&b, &never, now += MSEC);
		assert_false(retry_has(&b, &never, now));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retries_stay_below_a_fifth_in_the_worst_outage),
		cmocka_unit_test(who_asks_little_has_a_few_retries_all_the_same),
		cmocka_unit_test(what_is_not_used_is_not_kept_for_ever),
		cmocka_unit_test(no_share_and_no_floor_mean_no_retries),
	};

	return cmocka_run_group_tests_name("retry", tests, NULL, NULL);
}
