/* What routing is told, keys, and what outlives a configuration. */
#include "tests/unit/gateway/providers/health_rig.h"

/* The same things at other places, and something new. */
static const char moved[] =
	"providers:\n"
	"  new: {dialect: openai, endpoints: [{url: \"https://c.example/v1\"}]}\n"
	"  one:\n"
	"    dialect: openai\n"
	"    endpoints: [{url: \"https://c.example/v1\"}, {url: \"https://b.example/v1\"}]\n"
	"    keys: [key-number-two]\n"
	"models:\n"
	"  - {id: l, provider: new, context: 8000, price: {input: 1, output: 2}}\n"
	"  - {id: m, provider: one, context: 8000, price: {input: 1, output: 2}}\n";

static const uint64_t wall = 1790000000 * SEC;

/* States and views come from calloc: so many more of them, then memory has run out. SIZE_MAX: no end. */
static size_t callocs_left = SIZE_MAX;

void *calloc(size_t count, size_t size)
{
	void *(*const volatile take)(size_t) = malloc; /* no compiler makes a calloc of this */
	size_t bytes;

	if (callocs_left == 0 || __builtin_mul_overflow(count, size, &bytes))
		return NULL;
	if (callocs_left != SIZE_MAX)
		callocs_left--;
	void *memory = take(bytes);
	return memory == NULL ? NULL : memset(memory, 0, bytes);
}

/* ---- routing ---- */

static void models_are_down_when_every_endpoint_or_every_key_is(void **state)
{
	struct bench *b = *state;

	assert_null(health_down(b->view, 0, b->now));
	break_endpoint(b, 0);
	assert_null(health_down(b->view, 0, b->now));
	break_endpoint(b, 1);
	const struct bitset *down = health_down(b->view, 0, b->now);
	assert_non_null(down);
	assert_true(bitset_has(down, M) && bitset_has(down, SAME));
	assert_false(bitset_has(down, N)); /* another provider's endpoint is another one's */
	b->now += 2 * SEC;
	assert_null(health_down(b->view, 0, b->now)); /* half open */
	assert_int_equal(attempt(b, M, &well), attempt(b, M, &well) ^ 1);
	const struct health_outcome slow_down = refused(ERR_PROVIDER_RATE, BLAME_KEY, 429);
	for (int i = 0; i < 4; i++) { /* two keys at two endpoints */
		assert_null(health_down(b->view, 0, b->now));
		(void)attempt(b, M, &slow_down);
	}
	down = health_down(b->view, 0, b->now);
	assert_true(down != NULL && bitset_has(down, M) && !bitset_has(down, N));
	b->now += SEC;
	assert_null(health_down(b->view, 0, b->now));
}

static void the_last_endpoints_are_tried_as_soon_as_the_first_time(void **state)
{
	struct bench *b = *state;

	break_endpoint(b, 0);
	break_endpoint(b, 1);
	for (int i = 0; i < 10; i++) { /* open is 2 s, open_max 8 s */
		struct health_choice none = { 0 };
		assert_int_equal(choose(b, M, &none), ERR_PROVIDER_NO_ATTEMPT);
		b->now += 2 * SEC;
		assert_null(health_down(b->view, 0, b->now));
		(void)attempt(b, M, &cut);
		(void)attempt(b, M, &cut);
	}
	b->now += 2 * SEC;
	const uint32_t well_again = attempt(b, M, &well);
	b->now += 2 * SEC;
	for (int i = 0; i < 10; i++) /* the other one has to wait now */
		assert_int_equal(attempt(b, M, &well), well_again);
}

static void speeds_are_those_of_the_models_name_after_twenty_answers(void **state)
{
	struct bench *b = *state;

	for (int i = 0; i < 19; i++)
		(void)attempt(b, M, &well);
	health_tick(b->view, b->now);
	assert_false(health_speeds(b->view)[M].measured);
	(void)attempt(b, SAME, &well);
	(void)attempt(b, M, &cut);
	health_tick(b->view, b->now);
	assert_true(health_speeds(b->view)[M].measured);
	assert_true(health_speeds(b->view)[SAME].measured);
	assert_false(health_speeds(b->view)[N].measured);
}

static void an_answer_that_was_not_read_all_the_time_tells_no_speed(void **state)
{
	struct bench *b = *state;
	struct health_outcome held_up = well;

	held_up.first = 100 * MSEC;
	held_up.took = 60 * SEC;
	held_up.held_up = true;
	for (int i = 0; i < 40; i++)
		(void)attempt(b, M, i % 2 == 0 ? &well : &held_up);
	health_tick(b->view, b->now);
	assert_true(health_speeds(b->view)[M].measured);
	assert_true(health_speeds(b->view)[M].token_ms < 20);
}

static const uint8_t acme[16] = { 1 }, globex[16] = { 3 }, initech[16] = { 5 };

static void learn(struct bench *b, uint32_t model, enum learn fact, const uint8_t tenant[16])
{
	const struct lesson_from from = { .tenant = health_tenant(tenant) };

	health_learn(b->view, model, LEARN_BIT(fact), &from, b->now);
}

static void lessons_are_of_the_model_and_of_its_tenant_until_another_confirms(void **state)
{
	struct bench *b = *state;

	assert_null(health_lessons(b->view, M, b->now));
	learn(b, M, LEARN_NO_FORCED_TOOL, acme);
	assert_non_null(health_lessons(b->view, SAME, b->now)); /* is the same model */
	assert_null(health_lessons(b->view, N, b->now));
	assert_int_equal(health_learned(b->view, M, acme, b->now), LEARN_BIT(LEARN_NO_FORCED_TOOL));
	assert_int_equal(health_learned(b->view, M, globex, b->now), 0);
	learn(b, SAME, LEARN_NO_FORCED_TOOL, globex);
	assert_int_equal(health_learned(b->view, M, initech, b->now),
			 LEARN_BIT(LEARN_NO_FORCED_TOOL));
	assert_int_equal(health_learned(b->view, N, acme, b->now), 0);
	b->now += LESSON_LASTS;
	assert_int_equal(health_learned(b->view, M, initech, b->now), 0);
	assert_null(health_lessons(b->view, M, b->now));
}

/* ---- keys ---- */

static void a_key_cools_where_it_was_refused(void **state)
{
	struct bench *b = *state;
	const struct health_outcome slow_down = refused(ERR_PROVIDER_RATE, BLAME_KEY, 429);
	uint32_t refused_count = 0;

	for (int i = 0; i < 20; i++) { /* the first endpoint is out of everything */
		struct health_choice c = { 0 };
		assert_int_equal(choose(b, M, &c), ERR_OK);
		refused_count += c.endpoint == 0;
		health_began(&c, b->now);
		health_ended(&c, c.endpoint == 0 ? &slow_down : &well, b->now);
	}
	assert_int_equal(refused_count, 2); /* once with each key */
	assert_int_equal(health_cools(b->view, 0, 0, b->now), SEC);
	assert_int_equal(health_cools(b->view, 0, 1, b->now), SEC);
	assert_null(health_down(b->view, 0, b->now));
}

static void a_key_without_head_room_is_spared(void **state)
{
	struct bench *b = *state;
	const struct rate_header rates[RATE_KINDS] = {
		[RATE_TOKENS] = { SLICE("1000000"), SLICE("12"), SLICE("6m0s") },
	};
	const struct provider_headers headers = { .rates = rates };
	struct health_choice choice = { 0 };

	assert_int_equal(choose(b, M, &choice), ERR_OK);
	const uint32_t poor = choice.key, there = choice.endpoint;
	health_began(&choice, b->now);
	health_note_rates(&choice, &headers, b->now, wall);
	health_ended(&choice, &well, b->now);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(choose(b, M, &choice), ERR_OK);
		assert_true(choice.endpoint != there || choice.key != poor);
		health_ended(&choice, NULL, b->now);
	}
}

static void a_models_rate_limit_leaves_the_keys_to_the_others(void **state)
{
	struct bench *b = *state;
	struct health_outcome limited = refused(ERR_PROVIDER_RATE, BLAME_KEY, 429);
	const struct health_outcome no_money = refused(ERR_PROVIDER_BILLING, BLAME_KEY, 402);
	struct health_choice choice = { 0 };

	limited.retry_after_ms = 30000;
	for (int i = 0; i < 4; i++) /* two keys at two endpoints */
		(void)attempt(b, M, &limited);
	assert_int_equal(choose(b, M, &choice), ERR_PROVIDER_RATE);
	assert_int_equal(choose(b, SAME, &choice), ERR_PROVIDER_RATE); /* is the same model */
	const struct bitset *down = health_down(b->view, 0, b->now);
	assert_true(bitset_has(down, M) && bitset_has(down, SAME) && !bitset_has(down, ELSE));
	(void)attempt(b, ELSE, &well);
	for (int i = 0; i < 4; i++)
		(void)attempt(b, ELSE, &no_money); /* that is the whole key's */
	assert_int_equal(choose(b, ELSE, &choice), ERR_PROVIDER_BILLING);
	b->now += 30 * SEC;
	assert_int_equal(choose(b, M, &choice), ERR_PROVIDER_BILLING);
	assert_true(health_cools(b->view, 0, 0, b->now) > 3000 * SEC);
	assert_true(bitset_has(health_down(b->view, 0, b->now), ELSE));
}

static void a_rate_limit_that_has_ended_is_no_trouble_any_more(void **state)
{
	struct bench *b = *state;
	const struct health_outcome limited = refused(ERR_PROVIDER_RATE, BLAME_KEY, 429);

	for (int i = 0; i < 4; i++)
		(void)attempt(b, M, &limited);
	assert_non_null(health_down(b->view, 0, b->now));
	assert_int_equal(health_cools(b->view, 0, 0, b->now), SEC);
	b->now += SEC;
	assert_null(health_down(b->view, 0, b->now));
	health_tick(b->view, b->now);
	assert_int_equal(health_cools(b->view, 0, 0, b->now), 0);
	(void)attempt(b, M, &well);
}

/* ---- configurations ---- */

static void states_go_with_what_they_belong_to_over_a_reload(void **state)
{
	struct bench *b = *state;
	const struct health_outcome no = refused(ERR_PROVIDER_OPERATOR, BLAME_KEY, 401);

	for (struct health_choice c = { 0 }; health_cools(b->view, 0, 1, b->now) == 0;) {
		assert_int_equal(choose(b, M, &c), ERR_OK);
		health_began(&c, b->now);
		health_ended(&c, c.endpoint == 1 && c.key == 1 ? &no : &well, b->now);
	}
	break_endpoint(b, 1);
	learn(b, M, LEARN_NO_STOP, acme);
	load(&b->next, moved);
	struct health_view *fresh = health_view_new(b->health, b->next.config, 1);
	assert_non_null(fresh);
	health_view_free(b->view);
	b->view = fresh;
	assert_int_equal(health_breaker(fresh, 1, 0, b->now), 0); /* c is new */
	assert_int_equal(health_breaker(fresh, 1, 1, b->now), 2); /* b */
	assert_true(health_cools(fresh, 1, 0, b->now) != 0);      /* the second key */
	assert_int_equal(health_learned(fresh, 0, acme, b->now), 0);
	assert_int_equal(health_learned(fresh, 1, acme, b->now), LEARN_BIT(LEARN_NO_STOP));
}

static void a_view_that_memory_does_not_suffice_for_changes_nothing(void **state)
{
	size_t failures = 0;

	(void)state;
	for (bool failed = true; failed; failures += failed) {
		struct bench *b;
		set_up((void **)&b);
		load(&b->next, moved);
		callocs_left = failures;
		struct health_view *fresh = health_view_new(b->health, b->next.config, 1);
		callocs_left = SIZE_MAX;
		failed = fresh == NULL;
		if (failed)
			break_endpoint(
				b, 0); /* by three failures; the next one's breakers take five */
		health_view_free(fresh);
		tear_down((void **)&b);
	}
	assert_true(failures > 4); /* the view, its lists, new states */
}

static void a_call_in_flight_outlives_the_configuration_that_made_it(void **state)
{
	struct bench *b = *state;
	struct health_choice first = { 0 }, second = { 0 };

	assert_int_equal(choose(b, M, &first), ERR_OK);
	assert_int_equal(choose(b, M, &second), ERR_OK);
	health_began(&first, b->now);
	health_began(&second, b->now);
	load(&b->next, moved);
	struct health_view *fresh = health_view_new(b->health, b->next.config, 1);
	assert_non_null(fresh);
	health_view_free(b->view);
	b->view = fresh;
	health_ended(&first, &cut, b->now); /* one of them was the gone endpoint's last */
	health_ended(&second, &cut, b->now);
	assert_int_equal(health_breaker(fresh, 1, 1, b->now), 0);
}

static void active_checks_keep_an_endpoint_out(void **state)
{
	struct bench *b = *state;
	const struct endpoint *e = &b->rig.config->providers[0].endpoints[0];

	health_checked(b->health, SLICE("one"), e->identity, e->path, false, b->now);
	health_checked(b->health, SLICE("nobody"), e->identity, e->path, false, b->now);
	for (int i = 0; i < 20; i++)
		assert_int_equal(attempt(b, M, &well), 1);
	assert_int_equal(health_breaker(b->view, 0, 0, b->now), 2);
	health_checked(b->health, SLICE("one"), e->identity, e->path, true, b->now);
	assert_int_equal(health_breaker(b->view, 0, 0, b->now), 0);
}

int main(void)
{
#define CASE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(models_are_down_when_every_endpoint_or_every_key_is),
		CASE(the_last_endpoints_are_tried_as_soon_as_the_first_time),
		CASE(speeds_are_those_of_the_models_name_after_twenty_answers),
		CASE(an_answer_that_was_not_read_all_the_time_tells_no_speed),
		CASE(lessons_are_of_the_model_and_of_its_tenant_until_another_confirms),
		CASE(a_key_cools_where_it_was_refused),
		CASE(a_key_without_head_room_is_spared),
		CASE(a_models_rate_limit_leaves_the_keys_to_the_others),
		CASE(a_rate_limit_that_has_ended_is_no_trouble_any_more),
		CASE(states_go_with_what_they_belong_to_over_a_reload),
		cmocka_unit_test(a_view_that_memory_does_not_suffice_for_changes_nothing),
		CASE(a_call_in_flight_outlives_the_configuration_that_made_it),
		CASE(active_checks_keep_an_endpoint_out),
	};

	return cmocka_run_group_tests_name("health", tests, NULL, NULL);
#undef CASE
}
