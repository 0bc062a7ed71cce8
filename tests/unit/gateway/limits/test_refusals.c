/* What a worker remembers of refusals: for how long, for whom, and for how much. */
#include "gateway/limits/refusals.h"

#include "tenants/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define NOW (1000 * SEC)

enum { ACME = 1, OTHER = 65 /* of the same row */, SERVER = 7, MODEL = 28 };

static const struct quota_limit ten_a_second = { .per_minute = 600, .burst = 10 };
static const struct quota_limit thousand_a_second = { .per_minute = 60000, .burst = 60000 };

struct ask {
	struct limit_scope scopes[RESERVATION_SCOPES_MAX];
	struct reservation reservation;
};

static void add_scope(struct ask *ask, enum limit_holder holder, uint8_t key)
{
	struct limit_scope *scope = &ask->scopes[ask->reservation.scope_count++];

	*scope = (struct limit_scope){ .holder = holder, .limits = limit_none() };
	scope->key[0] = key;
	scope->limits.requests = ten_a_second;
	scope->limits.tokens = thousand_a_second;
}

static struct ask *asks(struct ask *ask, uint8_t tenant, uint64_t tokens, nsec_t now)
{
	*ask = (struct ask){
		.reservation = { .now = now,
				 .ask = { .requests = 1, .tokens = tokens, .concurrent = 1 } }
	};
	ask->reservation.scopes = ask->scopes;
	add_scope(ask, LIMIT_OF_TENANT, tenant);
	return ask;
}

static void refuse(struct refusals *refusals, struct ask *ask, enum limit limit,
		   enum limit_holder holder, nsec_t wait)
{
	ask->reservation.refusal =
		(struct limit_refusal){ .err = limit == LIMIT_concurrent    ? ERR_CONCURRENCY
					       : limit == LIMIT_usd_per_day ? ERR_BUDGET
									    : ERR_RATE_LIMITED,
					.limit = limit_info(limit)->name,
					.holder = holder,
					.wait_ns = wait };
	refusals_note(refusals, &ask->reservation, ask->reservation.now);
}

static void refuse_requests(struct refusals *refusals, nsec_t wait)
{
	struct ask first;

	refuse(refusals, asks(&first, ACME, 100, NOW), LIMIT_requests_per_minute, LIMIT_OF_TENANT,
	       wait);
}

static bool is_answered(const struct refusals *refusals, struct ask *ask)
{
	return refusals_answer(refusals, &ask->reservation);
}

static void a_rate_refuses_by_itself_with_what_is_left_of_the_wait(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	assert_false(is_answered(&refusals, asks(&next, ACME, 100, NOW)));
	refuse_requests(&refusals, 2 * SEC);
	assert_true(is_answered(&refusals, asks(&next, ACME, 5, NOW + 30 * MSEC)));
	assert_false(next.reservation.granted);
	assert_int_equal(next.reservation.refusal.err, ERR_RATE_LIMITED);
	assert_int_equal(next.reservation.refusal.holder, LIMIT_OF_TENANT);
	assert_string_equal(next.reservation.refusal.limit, "requests_per_minute");
	assert_int_equal(next.reservation.refusal.wait_ns, 1970 * MSEC);
}

static void it_lasts_a_tenth_of_a_second_and_no_longer_than_the_wait(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	refuse_requests(&refusals, 2 * SEC);
	assert_true(is_answered(&refusals, asks(&next, ACME, 5, NOW + REFUSALS_LAST - 1)));
	assert_true(refusals_has(&refusals, next.scopes[0].key, NOW + REFUSALS_LAST - 1));
	assert_false(is_answered(&refusals, asks(&next, ACME, 5, NOW + REFUSALS_LAST)));
	assert_false(refusals_has(&refusals, next.scopes[0].key, NOW + REFUSALS_LAST));
	refuse_requests(&refusals, 20 * MSEC);
	assert_true(is_answered(&refusals, asks(&next, ACME, 5, NOW + 20 * MSEC - 1)));
	assert_false(is_answered(&refusals, asks(&next, ACME, 5, NOW + 20 * MSEC)));
}

static void nobody_else_is_refused(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	refuse_requests(&refusals, 2 * SEC);
	assert_false(is_answered(&refusals, asks(&next, OTHER, 5, NOW)));
	assert_false(refusals_has(&refusals, next.scopes[0].key, NOW));
}

static void of_tokens_a_smaller_request_that_has_enough_is_let_pass(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	/* 5,000 tokens are there in 2 s: 3,000 are there now, and 3,020 in 20 ms */
	refuse(&refusals, asks(&next, ACME, 5000, NOW), LIMIT_tokens_per_minute, LIMIT_OF_TENANT,
	       2 * SEC);
	assert_true(is_answered(&refusals, asks(&next, ACME, 5000, NOW)));
	assert_int_equal(next.reservation.refusal.wait_ns, 2 * SEC);
	assert_true(is_answered(&refusals, asks(&next, ACME, 6000, NOW)));
	assert_int_equal(next.reservation.refusal.wait_ns, 3 * SEC);
	assert_true(is_answered(&refusals, asks(&next, ACME, 3001, NOW)));
	assert_int_equal(next.reservation.refusal.wait_ns, 1 * MSEC);
	assert_false(is_answered(&refusals, asks(&next, ACME, 3000, NOW)));
	assert_false(is_answered(&refusals, asks(&next, ACME, 3020, NOW + 20 * MSEC)));
	assert_true(is_answered(&refusals, asks(&next, ACME, 3021, NOW + 20 * MSEC)));
	/* never passes: the store says so */
	assert_false(is_answered(&refusals, asks(&next, ACME, 60001, NOW)));
}

static void a_rate_that_a_reload_has_changed_refuses_nothing(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	refuse_requests(&refusals, 2 * SEC);
	asks(&next, ACME, 5, NOW)->scopes[0].limits.requests.per_minute = 601;
	assert_false(is_answered(&refusals, &next));
	asks(&next, ACME, 5, NOW)->scopes[0].limits.requests.burst = 11;
	assert_false(is_answered(&refusals, &next));
	asks(&next, ACME, 5, NOW)->scopes[0].limits.count_only = true;
	assert_false(is_answered(&refusals, &next));
}

static void a_further_attempt_is_no_request(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	refuse_requests(&refusals, 2 * SEC);
	asks(&next, ACME, 5, NOW)->reservation.ask.requests = 0;
	assert_false(is_answered(&refusals, &next));
}

static void a_server_or_a_model_refuses_where_it_is_asked(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	add_scope(asks(&next, ACME, 5, NOW), LIMIT_OF_SERVER, SERVER);
	refuse(&refusals, &next, LIMIT_requests_per_minute, LIMIT_OF_SERVER, SEC);
	add_scope(asks(&next, ACME, 5, NOW), LIMIT_OF_MODEL, MODEL);
	refuse(&refusals, &next, LIMIT_tokens_per_minute, LIMIT_OF_MODEL, SEC);
	assert_false(is_answered(&refusals, asks(&next, ACME, 5, NOW)));
	assert_true(refusals_has(&refusals, next.scopes[0].key, NOW));
	add_scope(asks(&next, ACME, 5, NOW), LIMIT_OF_SERVER, SERVER + 1);
	assert_false(is_answered(&refusals, &next));
	add_scope(asks(&next, ACME, 5, NOW), LIMIT_OF_SERVER, SERVER);
	assert_true(is_answered(&refusals, &next));
	assert_int_equal(next.reservation.refusal.holder, LIMIT_OF_SERVER);
	add_scope(asks(&next, ACME, 5, NOW), LIMIT_OF_MODEL, MODEL);
	assert_true(is_answered(&refusals, &next));
	assert_int_equal(next.reservation.refusal.holder, LIMIT_OF_MODEL);
}

/* Which of the two it was nobody says. */
static void of_two_globs_of_models_none_refuses(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	asks(&next, ACME, 5, NOW);
	add_scope(&next, LIMIT_OF_MODEL, MODEL);
	add_scope(&next, LIMIT_OF_MODEL, MODEL + 1);
	refuse(&refusals, &next, LIMIT_requests_per_minute, LIMIT_OF_MODEL, SEC);
	assert_false(is_answered(&refusals, &next));
	assert_true(refusals_has(&refusals, next.scopes[0].key, NOW));
}

static void places_and_money_are_asked_for_each_time(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	refuse(&refusals, asks(&next, ACME, 5, NOW), LIMIT_concurrent, LIMIT_OF_TENANT, SEC);
	refuse(&refusals, asks(&next, OTHER, 5, NOW), LIMIT_usd_per_day, LIMIT_OF_TENANT, 0);
	assert_false(is_answered(&refusals, asks(&next, ACME, 5, NOW)));
	assert_true(refusals_has(&refusals, next.scopes[0].key, NOW));
	assert_false(is_answered(&refusals, asks(&next, OTHER, 5, NOW)));
	assert_true(refusals_has(&refusals, next.scopes[0].key, NOW));
}

static void tokens_that_are_given_back_end_a_refusal_for_want_of_them(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	refuse(&refusals, asks(&next, ACME, 5000, NOW), LIMIT_tokens_per_minute, LIMIT_OF_TENANT,
	       2 * SEC);
	refuse(&refusals, asks(&next, OTHER, 5000, NOW), LIMIT_requests_per_minute, LIMIT_OF_TENANT,
	       2 * SEC);
	asks(&next, ACME, 5000, NOW);
	refusals_settled(&refusals, next.scopes[0].key, NOW);
	assert_false(is_answered(&refusals, &next));
	asks(&next, OTHER, 5000, NOW);
	refusals_settled(&refusals, next.scopes[0].key, NOW);
	assert_true(is_answered(&refusals, &next));
}

static void without_a_limit_nothing_is_remembered(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	asks(&next, ACME, 5, NOW)->reservation.refusal = (struct limit_refusal){ .err = ERR_STORE };
	refusals_note(&refusals, &next.reservation, NOW);
	assert_false(refusals_has(&refusals, next.scopes[0].key, NOW));
}

static void a_row_keeps_the_latest(void **state)
{
	struct refusals refusals = { 0 };
	struct ask next;

	(void)state;
	for (uint8_t i = 0; i <= REFUSALS_OF_ROW; i++) {
		asks(&next, ACME, 5, NOW + i)->scopes[0].key[1] = i;
		refuse(&refusals, &next, LIMIT_requests_per_minute, LIMIT_OF_TENANT, SEC);
	}
	for (uint8_t i = 0; i <= REFUSALS_OF_ROW; i++) {
		asks(&next, ACME, 5, NOW + MSEC)->scopes[0].key[1] = i;
		assert_int_equal(is_answered(&refusals, &next), i != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_refuses_by_itself_with_what_is_left_of_the_wait),
		cmocka_unit_test(it_lasts_a_tenth_of_a_second_and_no_longer_than_the_wait),
		cmocka_unit_test(nobody_else_is_refused),
		cmocka_unit_test(of_tokens_a_smaller_request_that_has_enough_is_let_pass),
		cmocka_unit_test(a_rate_that_a_reload_has_changed_refuses_nothing),
		cmocka_unit_test(a_further_attempt_is_no_request),
		cmocka_unit_test(a_server_or_a_model_refuses_where_it_is_asked),
		cmocka_unit_test(of_two_globs_of_models_none_refuses),
		cmocka_unit_test(places_and_money_are_asked_for_each_time),
		cmocka_unit_test(tokens_that_are_given_back_end_a_refusal_for_want_of_them),
		cmocka_unit_test(without_a_limit_nothing_is_remembered),
		cmocka_unit_test(a_row_keeps_the_latest),
	};
	return cmocka_run_group_tests_name("refusals", tests, NULL, NULL);
}
