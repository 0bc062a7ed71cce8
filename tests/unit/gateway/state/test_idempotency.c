/* Requests that are not made twice: who leads, who waits, and what they get. ctest: worker */
#include "tests/unit/gateway/state/idempotency_rig.h"

/* ---- one after the other ---------------------------------------------------------------------- */

static void the_first_leads_and_copies_on_all_workers_get_its_answer(void **state)
{
	struct caller first, second, third;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&second, "k", "body", 0), IDEMPOTENCY_WAITS);
	assert_int_equal(join(&third, "k", "body", 1), IDEMPOTENCY_WAITS);
	assert_true(second.call.waited && !first.call.waited);
	end(&first, ERR_OK, RESULT);
	assert_int_equal(second.decided + third.decided,
			 0); /* it is not this thread's to tell them */
	turn();
	assert_true(second.decided == 1 && third.decided == 1 && first.decided == 0);
	assert_answered(&second, ERR_OK, RESULT);
	assert_answered(&third, ERR_OK, RESULT);
	assert_false(idempotency_leads(&first.call) || idempotency_leads(&second.call));
	(void)idempotency_leave(&second.call); /* harmless */
}

/* They wait before any limit of their tenant's is asked. */
static void only_so_many_copies_wait(void **state)
{
	static struct caller copies[IDEMPOTENCY_WAITING_MAX];
	struct caller first, other, more;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&other, "l", "body", 1), IDEMPOTENCY_LEADS);
	for (size_t i = 0; i < IDEMPOTENCY_WAITING_MAX; i++) {
		(void)memcpy(tenant.at, &i, sizeof(i)); /* each of another tenant */
		assert_int_equal(join(&copies[i], "k", "body", i % 2), IDEMPOTENCY_WAITS);
	}
	tenant.at[8] = 1;
	assert_int_equal(join(&more, "l", "body", 0), IDEMPOTENCY_FULL);
	assert_false(idempotency_leave(&more.call)); /* harmless */
	(void)idempotency_leave(&copies[1].call);
	assert_int_equal(join(&more, "l", "body", 0), IDEMPOTENCY_WAITS);
	(void)idempotency_leave(&first.call); /* the next one leads, and waits no more */
	turn();
	assert_true(idempotency_leads(&copies[0].call));
	assert_int_equal(join(&copies[1], "k", "body", 1), IDEMPOTENCY_WAITS);
	end(&copies[0], ERR_OK, RESULT);
	end(&other, ERR_OK, RESULT);
	turn();
	assert_answered(&more, ERR_OK, RESULT);
	assert_answered(&copies[1], ERR_OK, RESULT);
	assert_answered(&copies[IDEMPOTENCY_WAITING_MAX - 1], ERR_OK, RESULT);
}

/* Of two tenants, one of which would have all. */
static void a_tenant_has_its_share_of_copies_that_wait(void **state)
{
	enum { SHARE = IDEMPOTENCY_WAITING_MAX / 2 + 1 };
	static struct caller copies[SHARE], others[100];
	struct caller first, more;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	for (size_t i = 0; i < SHARE; i++)
		assert_int_equal(join(&copies[i], "k", "body", 0), IDEMPOTENCY_WAITS);
	assert_int_equal(join(&more, "k", "body", 0), IDEMPOTENCY_CROWDED);
	tenant.at[0] = 1;
	for (size_t i = 0; i < COUNT_OF(others); i++)
		assert_int_equal(join(&others[i], "k", "body", 1), IDEMPOTENCY_WAITS);
	tenant.at[0] = 0;
	assert_int_equal(join(&more, "k", "body", 0), IDEMPOTENCY_CROWDED);
	end(&first, ERR_OK, RESULT);
	turn();
	assert_answered(&copies[SHARE - 1], ERR_OK, RESULT);
	assert_answered(&others[0], ERR_OK, RESULT);
}

static void no_more_large_copies_of_a_tenant_wait_than_it_may_have_requests(void **state)
{
	struct caller first, second, small, large, other;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&second, "l", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&small, "k", "body", 0), IDEMPOTENCY_WAITS);
	assert_int_equal(join_large(&large, "k", 1), IDEMPOTENCY_WAITS);
	assert_int_equal(join_large(&other, "l", 1), IDEMPOTENCY_CROWDED);
	tenant.at[0] = 1; /* another's do not count */
	assert_int_equal(join_large(&other, "l", 1), IDEMPOTENCY_WAITS);
	(void)idempotency_leave(&other.call);
	tenant.at[0] = 0;
	(void)idempotency_leave(&large.call);
	assert_int_equal(join_large(&other, "l", 1), IDEMPOTENCY_WAITS);
	end(&first, ERR_OK, RESULT);
	end(&second, ERR_OK, RESULT);
	turn();
	assert_answered(&small, ERR_OK, RESULT);
	assert_answered(&other, ERR_OK, RESULT);
	assert_int_equal(join(&first, "m", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join_large(&large, "m", 1), IDEMPOTENCY_WAITS);
	(void)idempotency_leave(&first.call);
	turn();
	assert_true(idempotency_leads(&large.call)); /* it waits no more */
	assert_int_equal(join_large(&other, "m", 1), IDEMPOTENCY_WAITS);
	end(&large, ERR_OK, RESULT);
	turn();
}

static void an_error_is_everybodys_and_not_remembered(void **state)
{
	struct caller first, second, later;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&second, "k", "body", 1), IDEMPOTENCY_WAITS);
	end(&first, ERR_PROVIDER_DOWN, ERROR);
	assert_int_equal(join(&later, "k", "another body", 0), IDEMPOTENCY_LEADS);
	turn();
	assert_answered(&second, ERR_PROVIDER_DOWN, ERROR);
	(void)idempotency_leave(&later.call);
}

static void another_body_is_a_conflict_as_long_as_the_key_is_known(void **state)
{
	struct caller first, other;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&other, "k", "another", 0), IDEMPOTENCY_CONFLICT);
	(void)idempotency_leave(&other.call); /* harmless */
	end(&first, ERR_OK, RESULT);
	assert_int_equal(join(&other, "k", "another", 0), IDEMPOTENCY_CONFLICT);
	now += IDEMPOTENCY_REMEMBERED - 1;
	assert_int_equal(join(&other, "k", "another", 0), IDEMPOTENCY_CONFLICT);
	now += 1;
	assert_int_equal(join(&other, "k", "another", 0), IDEMPOTENCY_LEADS);
	(void)idempotency_leave(&other.call);
}

static void a_result_is_there_for_a_minute_and_known_of_for_ten(void **state)
{
	static const struct {
		nsec_t after;
		enum idempotency_verdict verdict;
	} cases[] = {
		{ 0, IDEMPOTENCY_ANSWERED },
		{ IDEMPOTENCY_KEPT - 1, IDEMPOTENCY_ANSWERED },
		{ IDEMPOTENCY_KEPT, IDEMPOTENCY_DONE },
		{ IDEMPOTENCY_REMEMBERED - 1, IDEMPOTENCY_DONE },
		{ IDEMPOTENCY_REMEMBERED, IDEMPOTENCY_LEADS },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		struct caller first, later;
		assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
		end(&first, ERR_OK, RESULT);
		now += cases[i].after;
		assert_int_equal(join(&later, "k", "body", 1), cases[i].verdict);
		if (cases[i].verdict == IDEMPOTENCY_ANSWERED)
			assert_answered(&later, ERR_OK, RESULT);
		(void)idempotency_leave(&later.call);
		now += IDEMPOTENCY_REMEMBERED;
	}
}

static void what_is_too_long_to_keep_is_for_those_who_wait(void **state)
{
	static char text[IDEMPOTENCY_ANSWER_MAX + 1];
	struct caller first, second, later;

	(void)state;
	(void)memset(text, 'x', sizeof(text));
	for (size_t over = 0; over <= 1; over++) {
		const char *key = over == 0 ? "fits" : "does not";
		const struct slice member = slice_of(text, IDEMPOTENCY_ANSWER_MAX + over);
		assert_int_equal(join(&first, key, "body", 0), IDEMPOTENCY_LEADS);
		assert_int_equal(join(&second, key, "body", 1), IDEMPOTENCY_WAITS);
		end(&first, ERR_OK, member);
		turn();
		assert_answered(&second, ERR_OK, member);
		assert_int_equal(join(&later, key, "body", 0),
				 over == 0 ? IDEMPOTENCY_ANSWERED : IDEMPOTENCY_DONE);
	}
}

/* ---- those who leave --------------------------------------------------------------------------- */

static void when_the_leader_leaves_the_next_one_leads(void **state)
{
	struct caller c[4];

	(void)state;
	assert_int_equal(join(&c[0], "k", "body", 0), IDEMPOTENCY_LEADS);
	for (int i = 1; i < 4; i++)
		assert_int_equal(join(&c[i], "k", "body", i % 2), IDEMPOTENCY_WAITS);
	assert_false(idempotency_leave(&c[1].call)); /* does not wait any more */
	assert_false(idempotency_leave(&c[0].call));
	/* Whose thread may be looking at it right now. */
	assert_true(c[2].call.verdict == IDEMPOTENCY_WAITS && !idempotency_leads(&c[2].call));
	turn();
	assert_int_equal(c[2].call.verdict, IDEMPOTENCY_LEADS);
	assert_true(c[1].decided == 0 && c[2].decided == 1 && c[3].decided == 0);
	for (int i = 1; i < 4; i++) /* other gateways know them by one claim */
		assert_int_equal(c[i].call.number, c[0].call.number);
	end(&c[2], ERR_OK, RESULT);
	turn();
	assert_answered(&c[3], ERR_OK, RESULT);
}

static void each_time_that_a_key_is_in_flight_has_a_number(void **state)
{
	struct caller first, next;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_true(idempotency_leave(&first.call));
	assert_int_equal(join(&next, "k", "body", 1), IDEMPOTENCY_LEADS);
	assert_int_not_equal(next.call.number, first.call.number);
	assert_true(idempotency_leave(&next.call));
}

static void who_follows_one_whose_time_is_over_knows_it(void **state)
{
	struct caller c[4];
	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(join(&c[i], "k", "body", i % 2),
				 i == 0 ? IDEMPOTENCY_LEADS : IDEMPOTENCY_WAITS);
	c[0].call.late = true;
	assert_false(idempotency_leave(&c[0].call));
	turn();
	assert_int_equal(c[1].call.verdict, IDEMPOTENCY_LEADS);
	assert_true(c[1].call.late);
	assert_false(c[2].call.late || c[3].call.late);
	c[1].call.late = false; /* it has time, but its caller leaves */
	assert_false(idempotency_leave(&c[1].call));
	turn();
	assert_int_equal(c[2].call.verdict, IDEMPOTENCY_LEADS);
	assert_false(c[2].call.late);
	end(&c[2], ERR_OK, RESULT);
	turn();
	assert_answered(&c[3], ERR_OK, RESULT);
}

static void who_leaves_before_it_hears_that_it_leads_passes_it_on(void **state)
{
	struct caller c[3];

	(void)state;
	assert_int_equal(join(&c[0], "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&c[1], "k", "body", 1), IDEMPOTENCY_WAITS);
	assert_int_equal(join(&c[2], "k", "body", 0), IDEMPOTENCY_WAITS);
	assert_false(idempotency_leave(&c[0].call));
	assert_false(idempotency_leave(&c[1].call));
	turn();
	assert_true(c[1].decided == 0 && c[2].decided == 1);
	assert_int_equal(c[2].call.verdict, IDEMPOTENCY_LEADS);
	assert_true(idempotency_leave(&c[2].call));
	assert_int_equal(join(&c[0], "k", "another body", 0),
			 IDEMPOTENCY_LEADS); /* nothing is left */
	(void)idempotency_leave(&c[0].call);
}

static void who_leaves_before_it_reads_the_answer_reads_nothing(void **state)
{
	struct caller first, second;

	(void)state;
	for (int good = 0; good <= 1; good++) {
		assert_int_equal(join(&first, good ? "k" : "l", "body", 0), IDEMPOTENCY_LEADS);
		assert_int_equal(join(&second, good ? "k" : "l", "body", 1), IDEMPOTENCY_WAITS);
		end(&first, good ? ERR_OK : ERR_BUSY, good ? RESULT : ERROR);
		(void)idempotency_leave(&second.call);
		turn();
		assert_int_equal(second.decided, 0);
	}
}

/* ---- those who are not sure what they ask ------------------------------------------------------- */

static void lead_unsure(struct caller *c, const char *body)
{
	*c = caller_of("k", body);
	c->call.unsure = true;
	idempotency_join(idempotency, &c->call, &workers[0].inbox, now);
	assert_int_equal(c->call.verdict, IDEMPOTENCY_LEADS);
}

static void another_body_waits_for_who_may_be_wrong_and_leads_when_it_was(void **state)
{
	struct caller first, second, third;

	(void)state;
	lead_unsure(&first, "guess");
	assert_int_equal(join(&second, "k", "body", 1), IDEMPOTENCY_WAITS);
	assert_int_equal(join(&third, "k", "guess", 0), IDEMPOTENCY_WAITS);
	assert_false(idempotency_leave(&first.call));
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_WAITS);
	turn();
	assert_int_equal(second.call.verdict, IDEMPOTENCY_LEADS);
	end(&second, ERR_OK, RESULT);
	turn();
	assert_answered(&first, ERR_OK, RESULT);
	assert_int_equal(third.call.verdict, IDEMPOTENCY_CONFLICT);
	assert_true(first.decided == 1 && second.decided == 1 && third.decided == 1);
	assert_int_equal(join(&third, "k", "body", 0), IDEMPOTENCY_ANSWERED);
}

static void another_body_is_a_conflict_when_the_guess_was_right(void **state)
{
	(void)state;
	for (int good = 0; good <= 1; good++) {
		struct caller first, second, third, gone;
		lead_unsure(&first, "guess");
		assert_int_equal(join(&second, "k", "body", 1), IDEMPOTENCY_WAITS);
		assert_int_equal(join(&gone, "k", "body", 1), IDEMPOTENCY_WAITS);
		first.call.unsure = false;
		assert_int_equal(join(&third, "k", "body", 1), IDEMPOTENCY_CONFLICT);
		end(&first, good ? ERR_OK : ERR_BUSY, good ? RESULT : ERROR);
		assert_int_equal(second.call.verdict, IDEMPOTENCY_WAITS);
		assert_false(idempotency_leave(&gone.call)); /* before it hears of it */
		turn();
		assert_true(second.decided == 1 && gone.decided == 0);
		assert_int_equal(second.call.verdict, IDEMPOTENCY_CONFLICT);
		assert_false(idempotency_leave(&second.call)); /* harmless */
	}
}

/* ---- bounds ------------------------------------------------------------------------------------ */

static void an_answer_that_nobody_has_memory_for_says_so(void **state)
{
	struct caller first, second, later;
	struct arena_pool poor = { .keep_max = 0 };
	struct arena small;

	(void)state;
	assert_int_equal(join(&first, "k", "body", 0), IDEMPOTENCY_LEADS);
	assert_int_equal(join(&second, "k", "body", 1), IDEMPOTENCY_WAITS);
	arena_init(&small, &poor, SIZE_MAX);
	second.call.arena = &small;
	poor.fail_next = 1;
	end(&first, ERR_OK, RESULT);
	turn();
	assert_int_equal(second.call.verdict, IDEMPOTENCY_ANSWERED);
	assert_true(slice_absent(second.call.answer.member));
	assert_int_equal(join(&later, "k", "body", 0),
			 IDEMPOTENCY_ANSWERED); /* there is for others */
	assert_answered(&later, ERR_OK, RESULT);
	arena_give(&small);
	arena_pool_fini(&poor);
}

static void the_oldest_keys_make_room_and_those_in_flight_do_not(void **state)
{
	enum { MANY = IDEMPOTENCY_ENTRIES_MAX + IDEMPOTENCY_ENTRIES_MAX / 4 };
	static struct caller flying[3];
	struct caller c;
	char key[32];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(flying); i++) {
		(void)snprintf(key, sizeof(key), "flying %zu", i);
		assert_int_equal(join(&flying[i], key, "body", 0), IDEMPOTENCY_LEADS);
	}
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(join(&c, key, "body", 0), IDEMPOTENCY_LEADS);
		end(&c, ERR_OK, RESULT);
		now += 1; /* ns: nothing expires */
	}
	assert_int_equal(join(&c, "0", "body", 0), IDEMPOTENCY_LEADS); /* forgotten */
	(void)idempotency_leave(&c.call);
	(void)snprintf(key, sizeof(key), "%d", MANY - 1);
	assert_int_equal(join(&c, key, "body", 0), IDEMPOTENCY_ANSWERED);
	for (size_t i = 0; i < COUNT_OF(flying); i++) {
		(void)snprintf(key, sizeof(key), "flying %zu", i);
		assert_int_equal(join(&c, key, "another", 0), IDEMPOTENCY_CONFLICT);
		(void)idempotency_leave(&flying[i].call);
	}
}

static void answers_take_no_more_memory_than_they_may(void **state)
{
	enum { EACH = 60000, MANY = 2 * IDEMPOTENCY_ANSWERS_MAX / 65536 };
	static char text[EACH];
	struct caller c;
	char key[32];
	int kept = 0;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(join(&c, key, "body", 0), IDEMPOTENCY_LEADS);
		end(&c, ERR_OK, slice_of(text, EACH));
	}
	for (int i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof(key), "%d", i);
		const enum idempotency_verdict verdict = join(&c, key, "body", 0);
		assert_true(verdict == IDEMPOTENCY_ANSWERED || verdict == IDEMPOTENCY_DONE);
		kept += verdict == IDEMPOTENCY_ANSWERED;
		arena_give(&arena);
	}
	assert_in_range(kept, 1, IDEMPOTENCY_ANSWERS_MAX / 65536);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN(the_first_leads_and_copies_on_all_workers_get_its_answer),
		IN(only_so_many_copies_wait),
		IN(a_tenant_has_its_share_of_copies_that_wait),
		IN(no_more_large_copies_of_a_tenant_wait_than_it_may_have_requests),
		IN(an_error_is_everybodys_and_not_remembered),
		IN(another_body_is_a_conflict_as_long_as_the_key_is_known),
		IN(a_result_is_there_for_a_minute_and_known_of_for_ten),
		IN(what_is_too_long_to_keep_is_for_those_who_wait),
		IN(when_the_leader_leaves_the_next_one_leads),
		IN(each_time_that_a_key_is_in_flight_has_a_number),
		IN(who_leaves_before_it_hears_that_it_leads_passes_it_on),
		IN(who_follows_one_whose_time_is_over_knows_it),
		IN(who_leaves_before_it_reads_the_answer_reads_nothing),
		IN(another_body_waits_for_who_may_be_wrong_and_leads_when_it_was),
		IN(another_body_is_a_conflict_when_the_guess_was_right),
		IN(an_answer_that_nobody_has_memory_for_says_so),
		IN(the_oldest_keys_make_room_and_those_in_flight_do_not),
		IN(answers_take_no_more_memory_than_they_may),
	};
	return cmocka_run_group_tests_name("idempotency", tests, NULL, NULL);
}
