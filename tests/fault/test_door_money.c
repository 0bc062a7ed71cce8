/* test_door_money.c - what a request in a provider's own format reserves and costs (door_rig.h). */
#include "tests/fault/door_rig.h"

/* Several answers, or a bound that is lower than the plan's. */
static void what_may_be_billed_is_reserved(void **state)
{
	static const uint64_t most[] = { 0, 10, 1000 };
	struct line_call *call = *state;
	uint64_t reserved[COUNT_OF(most)];

	for (size_t i = 0; i < COUNT_OF(most); i++) {
		const uint64_t before = world.reserved_usd;
		asks(call, (struct line){ .text = "Hi",
					  .raw_body = RAW_REST,
					  .raw_dialect = DIALECT_ANTHROPIC,
					  .raw_output_most = most[i] });
		reserved[i] = world.reserved_usd - before;
		provider_says(SAYS_HELLO);
		line_end(call);
	}
	assert_true(reserved[1] < reserved[0]); /* it asks for 100 */
	assert_true(reserved[0] < reserved[2]);
	assert_true((reserved[2] - reserved[0]) / 900 == (reserved[0] - reserved[1]) / 90);
}

/* Of a request that has that; what was settled is in *settled. */
static uint64_t reserved_for(struct line_call *call, const struct line_money *money,
			     uint64_t *settled)
{
	const uint64_t before = world.reserved_usd, settled_before = world.settled_usd;

	asks(call, (struct line){ .text = "Hi",
				  .raw_body = RAW_REST,
				  .raw_dialect = DIALECT_ANTHROPIC,
				  .raw_model = "m",
				  .raw_money = money });
	const uint64_t reserved = world.reserved_usd - before;
	provider_says(SAYS_HELLO);
	line_end(call);
	*settled = world.settled_usd - settled_before;
	return reserved;
}

static void all_that_costs_extra_is_reserved_and_settled(void **state)
{
	static const struct line_money money[] = {
		{ .cached_1h = false },
		{ .cached_1h = true },
		{ .fetches = true },
		{ .image_bytes = 8 },
		{ .dear = true, .most = { 1000000, 0 }, .cost = { 1000000, 0 } },
		{ .dear = true, .most = { 2000000, 0 }, .cost = { 2000000, 0 } },
		{ .dear = true, .most = { 2000000, 0 }, .cost = { 1000000, 0 } },
		{ .dear = true, .most = { 2000000, 0 }, .cost = { 9000000, 0 } },
		{ .dear = true, .most = { 1000000, 3 }, .cost = { 1000000, 2 } },
		{ .dear = true, .most = { 1000000, 3 }, .cost = { 1000000, 9 } },
	};
	enum { PLAIN, HOUR, FETCHES, IMAGE, USUAL, TWICE, LESS, MORE, USES, USES_MORE };
	uint64_t reserved[COUNT_OF(money)], settled[COUNT_OF(money)];

	for (size_t i = 0; i < COUNT_OF(money); i++)
		reserved[i] = reserved_for(*state, &money[i], &settled[i]);
	assert_int_not_equal(settled[PLAIN], 0);
	for (size_t i = HOUR; i <= USUAL; i++)
		assert_int_equal(settled[i], settled[PLAIN]);
	assert_true(reserved[HOUR] > reserved[PLAIN]);
	assert_true(reserved[FETCHES] > reserved[PLAIN]);
	assert_true(reserved[IMAGE] < reserved[PLAIN]);
	assert_int_equal(reserved[USUAL], reserved[PLAIN]);
	for (size_t i = TWICE; i <= MORE; i++) /* never above what was reserved for */
		assert_int_equal(reserved[i], 2 * reserved[PLAIN]);
	assert_int_equal(settled[TWICE], 2 * settled[PLAIN]);
	assert_int_equal(settled[LESS], settled[PLAIN]);
	assert_int_equal(settled[MORE], 2 * settled[PLAIN]);
	assert_int_equal(reserved[USES] - reserved[PLAIN], 3 * WALK_USE_PRICE);
	assert_int_equal(settled[USES] - settled[PLAIN], 2 * WALK_USE_PRICE);
	assert_int_equal(settled[USES_MORE] - settled[PLAIN], 3 * WALK_USE_PRICE);
}

/* Of a stream that was cut, what was reserved for its uses is all that is known. */
static void a_stream_is_asked_what_it_cost_too(void **state)
{
	static const struct line_money money = { .dear = true,
						 .most = { 2000000, 0 },
						 .cost = { 2000000, 0 } };
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi",
				  .relay = SAMPLING_DELTAS,
				  .raw_body = RAW_REST,
				  .raw_dialect = DIALECT_ANTHROPIC,
				  .raw_model = "m",
				  .raw_money = &money });
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hello") ENDS);
	rig_stream_ends();
	assert_non_null(strstr(call->out, "cost of a stream\n"));
	line_end(call);
}

static void a_model_that_does_not_take_it_is_not_asked(void **state)
{
	static const struct line_money money = { .refused = "a.b" };
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi",
				  .raw_body = RAW_REST,
				  .raw_dialect = DIALECT_ANTHROPIC,
				  .raw_model = "m",
				  .raw_money = &money });
	assert_null(world.call);
	world_turn_ends();
	ends_with(call, "refused policy_denied\n");
}

static int group(void)
{
	const struct CMUnitTest tests[] = {
		DOOR(what_may_be_billed_is_reserved),
		DOOR(all_that_costs_extra_is_reserved_and_settled),
		DOOR(a_stream_is_asked_what_it_cost_too),
		DOOR(a_model_that_does_not_take_it_is_not_asked),
	};
	const int failed = cmocka_run_group_tests_name("door_money", tests, NULL, NULL);

	arena_pool_fini(&pool);
	return failed;
}

int main(void)
{
	return state_rig_run(group);
}
