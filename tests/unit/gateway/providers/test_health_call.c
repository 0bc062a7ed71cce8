/* Where attempts go, and what their outcomes tell. */
#include "tests/unit/gateway/providers/health_rig.h"

/* ---- choosing ---- */

static void attempts_take_turns_among_endpoints_and_keys(void **state)
{
	struct bench *b = *state;
	uint32_t endpoints[2] = { 0 }, keys[2] = { 0 };

	for (int i = 0; i < 100; i++) {
		struct health_choice choice = { 0 };
		assert_int_equal(choose(b, M, &choice), ERR_OK);
		assert_int_equal(choice.provider, 0);
		assert_int_equal(choice.drawn_count, 2);
		endpoints[choice.endpoint]++;
		keys[choice.key]++;
		health_began(&choice, b->now);
		health_ended(&choice, &well, b->now);
	}
	assert_int_equal(endpoints[0], 50);
	assert_int_equal(keys[0], 50);
	struct health_choice choice = { 0 };
	assert_int_equal(choose(b, N, &choice), ERR_OK);
	assert_int_equal(choice.provider, 1);
	assert_int_equal(choice.key, UINT32_MAX);
	health_ended(&choice, NULL, b->now);
	health_ended(&choice, NULL, b->now); /* harmless */
}

static void what_was_tried_comes_last(void **state)
{
	struct bench *b = *state;
	const struct health_tried first = { .endpoints = 1, .keys = 1 };
	const struct health_tried both = { .endpoints = 3, .keys = 3 };

	for (int i = 0; i < 10; i++) {
		struct health_choice choice = { 0 };
		nsec_t wait;
		assert_int_equal(health_choose(b->view, M, &first, b->now, 0, &choice, &wait),
				 ERR_OK);
		assert_int_equal(choice.endpoint, 1);
		assert_int_equal(choice.key, 1);
		health_ended(&choice, NULL, b->now);
		assert_int_equal(health_choose(b->view, M, &both, b->now, 0, &choice, &wait),
				 ERR_OK);
		health_ended(&choice, NULL, b->now);
	}
}

/* Where an attempt at M went that was the only one so far. */
static struct health_target place_of_one(struct bench *b, uint32_t *endpoint, uint32_t *key)
{
	struct health_choice choice = { 0 };

	assert_int_equal(choose(b, M, &choice), ERR_OK);
	const struct health_target target = health_target_of(&choice);
	*endpoint = choice.endpoint;
	*key = choice.key;
	health_ended(&choice, NULL, b->now);
	return target;
}

static void who_belongs_somewhere_stays_there(void **state)
{
	struct bench *b = *state;
	uint32_t endpoint, key;
	struct bitset models;
	const struct health_tried tried = { .held = place_of_one(b, &endpoint, &key) };

	for (int i = 0; i < 10; i++) {
		struct health_choice choice = { 0 };
		nsec_t wait;
		(void)attempt(b, M, &well); /* turns go on beside it */
		assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait),
				 ERR_OK);
		assert_true(choice.held);
		assert_int_equal(choice.endpoint, endpoint);
		assert_int_equal(choice.key, key);
		assert_int_equal(choice.drawn_count, 0);
		health_ended(&choice, NULL, b->now);
	}
	assert_true(health_models_at(b->view, &tried.held, &models));
	assert_true(bitset_has(&models, M) && bitset_has(&models, SAME));
	assert_false(bitset_has(&models, N) || bitset_has(&models, ELSE));
}

/* Of several reasons to be elsewhere: what the held endpoint is tried for, how, and what is left of it. */
static void who_belongs_where_it_cannot_be_goes_elsewhere(void **state)
{
	struct bench *b = *state;
	uint32_t endpoint, key;
	struct health_choice choice = { 0 };
	nsec_t wait;
	struct health_tried tried = { .held = place_of_one(b, &endpoint, &key) };

	/* another model's prompts are not there */
	assert_int_equal(health_choose(b->view, ELSE, &tried, b->now, 0, &choice, &wait), ERR_OK);
	assert_false(choice.held);
	health_ended(&choice, NULL, b->now);
	/* it was there already, and failed */
	tried.endpoints = UINT64_C(1) << endpoint;
	assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait), ERR_OK);
	assert_false(choice.held);
	assert_int_not_equal(choice.endpoint, endpoint);
	health_ended(&choice, NULL, b->now);
	/* the key was refused there, the endpoint was not */
	tried.endpoints = 0;
	tried.keys = UINT32_C(1) << key;
	assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait), ERR_OK);
	assert_true(choice.held);
	assert_int_not_equal(choice.key, key);
	health_ended(&choice, NULL, b->now);
	/* its breaker is open */
	tried.keys = 0;
	break_endpoint(b, endpoint);
	assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait), ERR_OK);
	assert_false(choice.held);
	assert_int_not_equal(choice.endpoint, endpoint);
	health_ended(&choice, NULL, b->now);
}

static void a_place_that_is_no_more_holds_nobody(void **state)
{
	struct bench *b = *state;
	const struct health_tried tried = { .held = { 12345, 67890, 1 } };
	const struct health_target nowhere = { 0 };
	struct health_choice choice = { 0 };
	struct bitset models;
	nsec_t wait;

	assert_false(health_models_at(b->view, &tried.held, &models));
	assert_false(health_models_at(b->view, &nowhere, &models));
	assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait), ERR_OK);
	assert_false(choice.held);
	health_ended(&choice, NULL, b->now);
}

static void no_more_calls_than_the_bounds_allow(void **state)
{
	struct bench *b = *state;
	struct health_choice choices[13] = { 0 };
	nsec_t wait = 0;

	for (int i = 0; i < 12; i++) /* four and two, twice */
		assert_int_equal(choose(b, M, &choices[i]), ERR_OK);
	assert_int_equal(health_choose(b->view, M, NULL, b->now, 0, &choices[12], &wait), ERR_BUSY);
	assert_true(wait != 0);
	assert_null(health_down(b->view, 0, b->now)); /* busy is not down */
	health_ended(&choices[5], NULL, b->now);
	assert_int_equal(choose(b, M, &choices[12]), ERR_OK);
	for (int i = 0; i < 13; i++)
		health_ended(&choices[i], NULL, b->now);
}

/* ---- outcomes ---- */

static void outcomes_count_against_whom_they_blame(void **state)
{
	static const struct {
		const char *name;
		struct health_outcome outcome;
		uint32_t breaker, cools_s;
	} rows[] = {
		{ "answered", { .status = 200, .took = SEC, .answered = true }, 0, 0 },
		{ "cut off", { .err = ERR_PROVIDER_DOWN, .took = MSEC }, 2, 0 },
		{ "too late", { .err = ERR_PROVIDER_DOWN, .took = MSEC, .late = true }, 2, 0 },
		{ "no connection", { .err = ERR_PROVIDER_NO_ATTEMPT }, 2, 0 },
		{ "not HTTP", { .err = ERR_PROVIDER_ANSWER, .took = MSEC }, 2, 0 },
		{ "500",
		  { .err = ERR_PROVIDER_DOWN, .blame = BLAME_ENDPOINT, .status = 500 },
		  2,
		  0 },
		{ "529",
		  { .err = ERR_PROVIDER_DOWN, .blame = BLAME_ENDPOINT, .status = 529 },
		  2,
		  0 },
		{ "overloaded, told in a 200",
		  { .err = ERR_PROVIDER_DOWN, .blame = BLAME_ENDPOINT, .status = 200 },
		  2,
		  0 },
		{ "409",
		  { .err = ERR_PROVIDER_DOWN, .blame = BLAME_ENDPOINT, .status = 409 },
		  0,
		  0 },
		{ "400", { .err = ERR_PROVIDER_REJECTED, .status = 400 }, 0, 0 },
		{ "404",
		  { .err = ERR_PROVIDER_OPERATOR, .blame = BLAME_MODEL, .status = 404 },
		  0,
		  0 },
		{ "429",
		  { .err = ERR_PROVIDER_RATE,
		    .blame = BLAME_KEY,
		    .status = 429,
		    .retry_after_ms = 7000 },
		  0,
		  7 },
		{ "401",
		  { .err = ERR_PROVIDER_OPERATOR, .blame = BLAME_KEY, .status = 401 },
		  0,
		  60 },
		{ "402",
		  { .err = ERR_PROVIDER_BILLING, .blame = BLAME_KEY, .status = 402 },
		  0,
		  3600 },
		{ "a bad tool call",
		  { .err = ERR_PROVIDER_ANSWER, .blame = BLAME_ANSWER, .status = 200 },
		  0,
		  0 },
		{ "a deadline shorter than its patience",
		  { .err = ERR_DEADLINE, .took = 5 * SEC, .patience = 60 * SEC },
		  0,
		  0 },
		{ "a deadline longer than its patience",
		  { .err = ERR_DEADLINE, .took = 61 * SEC, .patience = 60 * SEC },
		  2,
		  0 },
		{ "a deadline within its answer",
		  { .err = ERR_DEADLINE, .took = 61 * SEC, .patience = 60 * SEC, .answered = true },
		  0,
		  0 },
		{ "a deadline within a stream",
		  { .err = ERR_DEADLINE,
		    .blame = BLAME_ENDPOINT,
		    .status = 200,
		    .took = 61 * SEC,
		    .patience = 60 * SEC,
		    .answered = true },
		  0,
		  0 },
		{ "our own want of memory",
		  { .err = ERR_BUSY, .blame = BLAME_ENDPOINT, .status = 200, .took = SEC },
		  0,
		  0 },
		{ "the caller went away", { .err = ERR_CANCELLED, .took = 90 * SEC }, 0, 0 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bench *b;
		set_up((void **)&b);
		uint32_t cools = 0;

		for (int n = 0; n < 6; n++) {
			struct health_choice choice = { 0 };
			struct health_outcome outcome = rows[i].outcome;
			nsec_t wait;
			if (outcome.retry_after_ms == 0)
				outcome.retry_after_ms = -1;
			if (health_choose(b->view, M, NULL, b->now, 0, &choice, &wait) != ERR_OK)
				break;
			health_began(&choice, b->now);
			health_ended(&choice, &outcome, b->now);
		}
		for (uint32_t k = 0; k < 2; k++) {
			const nsec_t one = health_cools(b->view, 0, k, b->now);
			cools = one / SEC > cools ? (uint32_t)(one / SEC) : cools;
		}
		if (health_breaker(b->view, 0, 0, b->now) != rows[i].breaker ||
		    cools != rows[i].cools_s)
			fail_msg("%s: breaker %u, cools %u s", rows[i].name,
				 health_breaker(b->view, 0, 0, b->now), cools);
		tear_down((void **)&b);
	}
	(void)state;
}

static void what_was_never_sent_tells_nothing(void **state)
{
	struct bench *b = *state;

	for (int i = 0; i < 20; i++) {
		struct health_choice choice = { 0 };
		assert_int_equal(choose(b, M, &choice), ERR_OK);
		health_ended(&choice, &cut, b->now);
	}
	assert_int_equal(health_breaker(b->view, 0, 0, b->now), 0);
}

static void an_open_breaker_sends_everybody_to_the_other_and_a_probe_closes_it(void **state)
{
	struct bench *b = *state;

	break_endpoint(b, 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(attempt(b, M, &well), 1);
	assert_null(health_down(b->view, 0, b->now));
	b->now += 2 * SEC;
	bool probed = false;
	for (int i = 0; i < 20 && !probed; i++)
		probed = attempt(b, M, &well) == 0;
	assert_true(probed);
	assert_int_equal(health_breaker(b->view, 0, 0, b->now), 0);
}

/* A whole attempt at N of that tenant, which may be had by it. */
static void attempt_of(struct bench *b, uint64_t tenant, const struct health_outcome *outcome)
{
	const struct health_tried tried = { .tenant = tenant };
	struct health_choice choice = { 0 };
	nsec_t wait;

	assert_int_equal(health_choose(b->view, N, &tried, b->now, 0, &choice, &wait), ERR_OK);
	health_began(&choice, b->now);
	health_ended(&choice, outcome, b->now);
}

static void a_breaker_that_one_tenants_calls_opened_is_open_for_that_one_alone(void **state)
{
	static const uint8_t keys[3][16] = { { [7] = 0x10 }, { [7] = 0x20 }, { [7] = 0x30 } };
	static const struct {
		const char *name;
		struct health_outcome outcome;
		bool alone;
	} rows[] = {
		{ "overloaded",
		  { .status = 500, .blame = BLAME_ENDPOINT, .answered = true },
		  true },
		{ "no first byte in time", { .took = 60 * SEC, .late = true }, true },
		{ "no further byte in time",
		  { .took = 60 * SEC, .late = true, .answered = true },
		  true },
		{ "a stream that stalls",
		  { .status = 200,
		    .blame = BLAME_ENDPOINT,
		    .took = 60 * SEC,
		    .late = true,
		    .answered = true },
		  true },
		{ "cut off once it was sent", { .took = MSEC }, true },
		{ "no connection", { .took = 0 }, false },
	};

	(void)state;
	for (size_t r = 0; r < COUNT_OF(rows); r++) {
		struct health_outcome outcome = rows[r].outcome;
		const uint64_t one = health_tenant(keys[0]), other = health_tenant(keys[1]),
			       third = health_tenant(keys[2]);
		struct bench *b;

		set_up((void **)&b);
		outcome.err = ERR_PROVIDER_DOWN;
		outcome.retry_after_ms = -1;
		for (int i = 0; i < 5; i++)
			attempt_of(b, one, &outcome);
		for (int i = 0; i < 2; i++) { /* by turns */
			assert_true(bitset_has(health_down(b->view, one, b->now), N));
			const bool alone = health_down(b->view, other, b->now) == NULL &&
					   health_down(b->view, third, b->now) == NULL;
			if (alone != rows[r].alone)
				fail_msg("%s", rows[r].name);
		}
		if (rows[r].alone) {
			assert_true(health_wait(b->view, N, one, b->now) > 0);
			assert_int_equal(health_wait(b->view, N, other, b->now), 0);
			attempt_of(b, other, &cut);
			assert_true(bitset_has(health_down(b->view, third, b->now), N));
		}
		tear_down((void **)&b);
	}
}

/* They are one attacker, whose calls take every probe. */
static void tenants_whose_calls_failed_do_not_lock_out_another(void **state)
{
	static const uint8_t keys[3][16] = { { [7] = 0x10 }, { [7] = 0x20 }, { [7] = 0x30 } };
	const uint64_t one = health_tenant(keys[0]), other = health_tenant(keys[1]),
		       third = health_tenant(keys[2]);
	const struct health_tried tried = { .tenant = one };
	struct health_choice hangs[2] = { 0 };
	struct bench *b = *state;
	nsec_t wait;

	for (int i = 0; i < 5; i++)
		attempt_of(b, i % 2 == 0 ? one : other, &cut);
	assert_true(bitset_has(health_down(b->view, third, b->now), N));
	b->now += SEC;
	assert_int_equal(health_choose(b->view, N, &tried, b->now, 0, &hangs[0], &wait), ERR_OK);
	b->now += 10 * MSEC;
	assert_int_equal(health_choose(b->view, N, &tried, b->now, 0, &hangs[1], &wait),
			 ERR_PROVIDER_NO_ATTEMPT);
	assert_true(bitset_has(health_down(b->view, one, b->now), N));
	assert_true(bitset_has(health_down(b->view, other, b->now), N));
	assert_null(health_down(b->view, third, b->now));
	assert_int_equal(health_wait(b->view, N, third, b->now), 0);
	attempt_of(b, third, &well);
	assert_null(health_down(b->view, other, b->now));
	health_ended(&hangs[0], NULL, b->now);
}

static uint64_t any(struct bench *b) /* splitmix64 */
{
	uint64_t z = (b->random += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* So many calls, a hundred a second, of which that share fails by chance; of them, how many were refused
 * here. */
static uint32_t refusals(struct bench *b, uint32_t model, uint32_t calls, uint32_t bad_percent)
{
	const struct health_outcome overloaded = refused(ERR_PROVIDER_DOWN, BLAME_ENDPOINT, 529);
	uint32_t count = 0;

	for (uint32_t i = 0; i < calls; i++) {
		struct health_choice choice = { 0 };
		nsec_t wait;
		b->now += 10 * MSEC;
		if (health_choose(b->view, model, NULL, b->now, any(b), &choice, &wait) != ERR_OK) {
			count++;
			continue;
		}
		health_began(&choice, b->now);
		health_ended(&choice, any(b) % 100 < bad_percent ? &overloaded : &well, b->now);
	}
	return count;
}

static void breakers_do_not_refuse_what_a_failing_provider_would_answer(void **state)
{
	static const struct {
		const char *name;
		uint32_t bad_percent, least, most; /* refused, in percent */
	} rows[] = {
		{ "half of all calls fail", 50, 0, 5 },
		{ "two of three", 67, 0, 20 },
		{ "nine of ten", 90, 50, 95 },
		{ "all", 100, 95, 100 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (uint32_t model = M; model <= N; model++) { /* of two endpoints, of one */
			struct bench *b;
			set_up((void **)&b);
			assert_int_equal(refusals(b, model, 1000, 0), 0);
			const uint32_t percent =
				refusals(b, model, 10000, rows[i].bad_percent) / 100;
			print_message("%s, model %u: %u %%\n", rows[i].name, model, percent);
			assert_in_range(percent, rows[i].least, rows[i].most);
			b->now += SEC * 2;
			assert_int_equal(refusals(b, model, 1000, 0), 0);
			tear_down((void **)&b);
		}
}

/* It may have said no more than its head. */
static void a_stream_that_we_cut_short_closes_no_breaker(void **state)
{
	static const enum err ours[] = { ERR_CANCELLED, ERR_DRAINING, ERR_DEADLINE };
	struct bench *b = *state;

	break_endpoint(b, 0);
	b->now += 2 * SEC;
	for (size_t i = 0; i < COUNT_OF(ours); i++) {
		const struct health_tried tried = { .endpoints = 2 };
		struct health_outcome cut_short = refused(ours[i], BLAME_REQUEST, 200);
		struct health_choice choice = { 0 };
		nsec_t wait;
		assert_int_equal(health_choose(b->view, M, &tried, b->now, 0, &choice, &wait),
				 ERR_OK);
		assert_int_equal(choice.endpoint, 0);
		health_began(&choice, b->now);
		health_ended(&choice, &cut_short, b->now);
		assert_int_equal(health_breaker(b->view, 0, 0, b->now), 1);
	}
}

static void a_probe_that_is_never_sent_gives_its_place_back(void **state)
{
	struct bench *b = *state;

	break_endpoint(b, 0);
	break_endpoint(b, 1);
	b->now += 2 * SEC;
	struct health_choice one = { 0 }, two = { 0 }, three = { 0 };
	nsec_t wait = 0;
	assert_int_equal(choose(b, M, &one), ERR_OK);
	assert_int_equal(choose(b, M, &two), ERR_OK);
	assert_int_equal(health_choose(b->view, M, NULL, b->now, 0, &three, &wait),
			 ERR_PROVIDER_NO_ATTEMPT);
	assert_int_equal(wait, 2 * SEC);
	health_ended(&one, NULL, b->now);
	assert_int_equal(choose(b, M, &three), ERR_OK);
	health_ended(&two, NULL, b->now);
	health_ended(&three, NULL, b->now);
}

static void who_leaves_a_long_answer_does_not_make_its_endpoint_look_slow(void **state)
{
	static const struct {
		const char *name;
		uint32_t unseen_max, least, most; /* of its further calls, in percent */
	} rows[] = {
		{ "a long answer, in one piece", 4096, 45, 55 },
		{ "an answer of one token", 1, 0, 20 },
		{ "a stream that did not begin", 0, 0, 20 },
	};

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		const struct health_outcome left = { .err = ERR_CANCELLED,
						     .retry_after_ms = -1,
						     .took = 20 * SEC,
						     .unseen_max = rows[i].unseen_max };
		struct bench *b;
		uint32_t there = 0;

		set_up((void **)&b);
		assert_int_equal(refusals(b, M, 100, 0), 0);
		const uint32_t endpoint = attempt(b, M, &left);
		for (int n = 0; n < 100; n++)
			there += attempt(b, M, &well) == endpoint;
		if (there < rows[i].least || there > rows[i].most)
			fail_msg("%s: %u %%", rows[i].name, there);
		tear_down((void **)&b);
	}
	(void)state;
}

/* ---- retries ---- */

static void a_retry_needs_the_budget_of_tenant_and_provider(void **state)
{
	static const uint8_t a[16] = { 1 }, c[16] = { 2 }, d[16] = { 3 };
	struct bench *b = *state;

	assert_true(health_may_retry(b->view, a, 0, b->now));
	assert_true(health_may_retry(b->view, a, 1, b->now));
	assert_false(health_may_retry(b->view, a, 0, b->now)); /* the tenant's two */
	assert_true(health_may_retry(b->view, c, 0, b->now));
	assert_false(health_may_retry(b->view, d, 0, b->now)); /* the provider's two */
	for (int i = 0; i < 1000; i++)
		health_note_request(b->view, d, 0, b->now += MSEC);
	uint32_t retries = 0;
	while (health_may_retry(b->view, d, 0, b->now))
		retries++;
	assert_in_range(retries, 9, 11);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(attempts_take_turns_among_endpoints_and_keys),
		CASE(what_was_tried_comes_last),
		CASE(who_belongs_somewhere_stays_there),
		CASE(who_belongs_where_it_cannot_be_goes_elsewhere),
		CASE(a_place_that_is_no_more_holds_nobody),
		CASE(no_more_calls_than_the_bounds_allow),
		CASE(outcomes_count_against_whom_they_blame),
		CASE(what_was_never_sent_tells_nothing),
		CASE(an_open_breaker_sends_everybody_to_the_other_and_a_probe_closes_it),
		CASE(a_breaker_that_one_tenants_calls_opened_is_open_for_that_one_alone),
		CASE(tenants_whose_calls_failed_do_not_lock_out_another),
		CASE(breakers_do_not_refuse_what_a_failing_provider_would_answer),
		CASE(a_stream_that_we_cut_short_closes_no_breaker),
		CASE(a_probe_that_is_never_sent_gives_its_place_back),
		CASE(who_leaves_a_long_answer_does_not_make_its_endpoint_look_slow),
		CASE(a_retry_needs_the_budget_of_tenant_and_provider),
	};

	return cmocka_run_group_tests_name("health_call", tests, NULL, NULL);
#undef CASE
}
