/* test_faults_copies.c - a request and its copies, by a real worker in a world of the test's own: the first of them leaves,
 * is late, guesses, is refused. One call is made, and nothing of any of them is left. */
#include "tests/fault/state_rig.h"

/* Of a request and its copies, on one exchange each. */
struct copies {
	struct http_incoming in[3];
	struct http_exchange exchanges[3];
	void *requests[3];
};

static void begin_copy(struct copies *c, size_t i)
{
	c->in[i] = walk.in;
	c->in[i].headers[HTTP_IDEMPOTENCY_KEY] = SLICE("k");
	c->requests[i] = world_begin(&c->exchanges[i], &c->in[i]);
	must(c->requests[i] != NULL);
}

static void end_copies(struct copies *c, size_t first)
{
	for (size_t i = first; i < COUNT_OF(c->requests); i++) {
		world.handler.sent(world.handler.owner, c->requests[i]);
		free(c->exchanges[i].body);
	}
	nobody_is_held("copies", 0);
}

static void begin_copies(struct copies *c)
{
	*c = (struct copies){ 0 };
	set_scene(0);
	for (size_t i = 0; i < COUNT_OF(c->requests); i++)
		begin_copy(c, i);
	assert_int_equal(world.granted, 1);
	assert_non_null(world.call);
}

static void copies_are_one_call(void **state)
{
	struct copies c;

	(void)state;
	begin_copies(&c);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	assert_int_equal(c.exchanges[0].status, 200);
	assert_int_equal(c.exchanges[1].status, 0);
	rig_deliver();
	for (size_t i = 1; i < COUNT_OF(c.requests); i++) {
		assert_int_equal(c.exchanges[i].status, 200);
		assert_string_equal(c.exchanges[i].body, c.exchanges[0].body);
	}
	assert_int_equal(world.granted, 1);
	end_copies(&c, 0);
}

static void the_next_copy_goes_on_when_the_first_leaves(void **state)
{
	struct copies c;

	(void)state;
	begin_copies(&c);
	world.handler.gone(world.handler.owner, c.requests[0]);
	assert_null(world.call);
	rig_deliver();
	assert_int_equal(world.granted, 2);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	rig_deliver();
	assert_int_equal(c.exchanges[1].status, 200);
	assert_int_equal(c.exchanges[2].status, 200);
	end_copies(&c, 1);
}

static void begin_copy_in_session(struct copies *c, size_t i)
{
	c->in[i] = in_session();
	c->in[i].headers[HTTP_IDEMPOTENCY_KEY] = SLICE("k");
	c->requests[i] = world_begin(&c->exchanges[i], &c->in[i]);
	must(c->requests[i] != NULL);
}

/* Other gateways answer its claim while its session, of which nothing is guessed, is asked about anew. */
static void the_next_copy_waits_for_its_session(void **state)
{
	struct copies c = { 0 };

	(void)state;
	set_scene(0);
	world.worker->core.elsewhere = &the_others;
	begin_copy_in_session(&c, 0);
	rig_others_answer(IDEMPOTENCY_LEADS);
	assert_non_null(world.call);
	begin_copy_in_session(&c, 1);
	fake.waits = true;
	world.handler.gone(world.handler.owner, c.requests[0]);
	rig_deliver();
	assert_non_null(fake.load);
	world.held = 0; /* the same claim, of the same gateway */
	rig_others_answer(IDEMPOTENCY_LEADS);
	assert_int_equal(c.exchanges[1].status, 0);
	assert_null(world.call);
	fake_answers();
	assert_non_null(world.call);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	assert_int_equal(c.exchanges[1].status, 200);
	world.worker->core.elsewhere = NULL;
	world.handler.sent(world.handler.owner, c.requests[1]);
	free(c.exchanges[1].body);
	nobody_is_held("copies", 0);
}

/* One that goes ahead on a guess of its session's revision meets one that knows it, for another gateway's session was
 * known to its worker a moment earlier: the same request, and one call. */
static void a_copy_waits_for_a_first_that_guesses(void **state)
{
	struct copies c = { 0 };

	(void)state;
	set_scene(0);
	world.worker->core.elsewhere = &the_others;
	fake.revision = REVISION_2025_06_18;
	fake.guesses = true;
	begin_copy_in_session(&c, 0);
	struct state_load *load = fake.load;
	assert_non_null(load);
	fake.load = NULL;
	fake.guesses = false;
	begin_copy_in_session(&c, 1);
	assert_int_equal(c.exchanges[1].status, 0);
	fake.load = load;
	rig_others_answer(IDEMPOTENCY_LEADS);
	fake_answers();
	assert_int_equal(c.exchanges[0].status, 0);
	rig_deliver();  /* it leads now, by what it knows */
	world.held = 0; /* the same gateway's */
	rig_others_answer(IDEMPOTENCY_LEADS);
	assert_non_null(world.call);
	assert_int_equal(world.granted, 1);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	rig_deliver();
	assert_int_equal(c.exchanges[0].status, 200);
	assert_int_equal(c.exchanges[1].status, 200);
	world.worker->core.elsewhere = NULL;
	for (size_t i = 0; i < 2; i++) {
		world.handler.sent(world.handler.owner, c.requests[i]);
		free(c.exchanges[i].body);
	}
	nobody_is_held("copies", 0);
}

/* The first has left to it what other gateways know of: it gives that back although it never asked for it. */
static void who_leaves_before_it_knows_that_it_leads_gives_the_claim_back(void **state)
{
	(void)state;
	world.worker->core.elsewhere = &the_others;
	for (int late = 0; late <= 1; late++) {
		struct copies c = { 0 };
		set_scene(0);
		begin_copy(&c, 0);
		rig_others_answer(IDEMPOTENCY_LEADS);
		begin_copy(&c, 1);
		world.handler.gone(world.handler.owner, c.requests[0]);
		assert_int_equal(world.held, 1);
		if (late)
			rig_time_comes(c.requests[1]);
		else
			world.handler.gone(world.handler.owner, c.requests[1]);
		assert_int_equal(world.held, 0);
		assert_int_equal(c.exchanges[1].status, late ? 504 : 0);
		if (late)
			world.handler.sent(world.handler.owner, c.requests[1]);
		free(c.exchanges[1].body);
		rig_deliver();
		nobody_is_held("a claim that was left", 0);
	}
	world.worker->core.elsewhere = NULL;
}

static void copies_may_leave_in_any_order(void **state)
{
	(void)state;
	for (int order = 0; order < 6; order++) {
		const size_t first = (size_t)order % 3,
			     second = (first + 1 + (size_t)order / 3) % 3;
		struct copies c;
		begin_copies(&c);
		world.handler.gone(world.handler.owner, c.requests[first]);
		world.handler.gone(world.handler.owner, c.requests[second]);
		world.handler.gone(world.handler.owner, c.requests[3 - first - second]);
		rig_deliver();
		end_copies(&c, COUNT_OF(c.requests));
	}
}

static void a_copy_whose_deadline_passes_does_not_wait_longer(void **state)
{
	struct copies c;

	(void)state;
	begin_copies(&c);
	rig_time_comes(c.requests[1]);
	assert_int_equal(c.exchanges[1].status, 504);
	rig_provider_ends(ERR_OK, true, &walk.answer);
	rig_deliver();
	assert_int_equal(c.exchanges[2].status, 200);
	end_copies(&c, 0);
}

static void a_process_that_leaves_refuses_all_copies(void **state)
{
	struct copies c;

	(void)state;
	begin_copies(&c);
	worker_refuse_waiting(world.worker);
	for (size_t i = 0; i < COUNT_OF(c.requests); i++)
		assert_int_equal(c.exchanges[i].status, 503);
	rig_deliver();
	end_copies(&c, 0);
}

static int group(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_are_one_call),
		cmocka_unit_test(the_next_copy_goes_on_when_the_first_leaves),
		cmocka_unit_test(the_next_copy_waits_for_its_session),
		cmocka_unit_test(a_copy_waits_for_a_first_that_guesses),
		cmocka_unit_test(who_leaves_before_it_knows_that_it_leads_gives_the_claim_back),
		cmocka_unit_test(copies_may_leave_in_any_order),
		cmocka_unit_test(a_copy_whose_deadline_passes_does_not_wait_longer),
		cmocka_unit_test(a_process_that_leaves_refuses_all_copies),
	};

	return cmocka_run_group_tests_name("faults_copies", tests, NULL, NULL);
}

int main(void)
{
	return state_rig_run(group);
}
