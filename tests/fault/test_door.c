/* test_door.c - the core's door: a front of the test's own (line_front.h) asks for samplings, without HTTP, in a world of
 * the test's own (state_rig.h). Nothing below gateway/front/ knows of it. */
#include "tests/fault/door_rig.h"

#define SESSION "0123456789abcdef0123456789abcdef"

/* ---- one call ------------------------------------------------------------------------------------ */

static void a_call_needs_no_exchange(void **state)
{
	struct line_call *call = *state;
	char line[LOG_LINE_MAX + 1] = "";

	asks(call, (struct line){ .text = "Hi" });
	assert_non_null(strstr(sent(), "\"text\":\"Hi\""));
	provider_says(SAYS_HELLO);
	assert_int_equal(world.released, 0); /* its place is its own until its answer has left */
	ends_with(call, "result Hello\n");
	assert_int_equal(world.released, 1);
	const struct slice logged = log_ring_peek(ring);
	memcpy(line, logged.at, logged.len);
	assert_non_null(strstr(line, "\"method\":\"line\""));
	assert_non_null(strstr(line, "\"tenant\":\"" WALK_TENANT "\""));
}

static void progress_is_told_of_what_streams(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi", .relay = SAMPLING_PROGRESS });
	is_told(call, "admitted\n");
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hel"));
	brings(WORDS("lo") ENDS);
	rig_stream_ends();
	ends_with(call, "admitted\nprogress 0\nprogress 3\nprogress 5\nresult Hello\n");
}

static void the_answer_itself_is_told_as_it_comes(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi", .relay = SAMPLING_DELTAS, .slow = true });
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hel"));
	assert_true(world.call->paused);
	sampling_resume(call->call);
	assert_false(world.call->paused);
	brings(WORDS("l\\u00f6") ENDS);
	rig_stream_ends();
	ends_with(call, "admitted\ntext 0 Hel\ntext 0 l\\u00f6\nresult Hell\\u00f6 relayed\n");
}

/* What it has of the answer cannot be taken back. */
static void what_was_told_is_not_tried_again(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi", .relay = SAMPLING_DELTAS });
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hel"));
	stream_breaks();
	ends_with(call, "admitted\ntext 0 Hel\nrefused provider_answer_invalid relayed\n");
}

static void what_was_not_told_is_tried_again(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi", .relay = SAMPLING_DELTAS });
	stream_begins();
	brings(START);
	stream_breaks();
	is_told(call, "admitted\n");
	assert_int_not_equal(call->call->wait.place, 0); /* another attempt */
	line_leave(call);
}

/* ---- the provider's own bytes --------------------------------------------------------------------- */

static void bytes_of_the_same_format_pass_both_ways(void **state)
{
	struct line_call *call = *state;

	asks(call,
	     (struct line){ .text = "Hi", .raw_body = RAW_REST, .raw_dialect = DIALECT_ANTHROPIC });
	assert_non_null(strstr(sent(), "\r\n\r\n{\"model\":\""));
	assert_non_null(strstr(sent(), "\"stream\":false" RAW_REST));
	provider_says(SAYS_HELLO);
	ends_with(call, "result Hello\nanswer 200 " SAYS_HELLO "\n");
}

static void bytes_of_a_stream_pass_as_they_come(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi",
				  .relay = SAMPLING_DELTAS,
				  .raw_body = RAW_REST,
				  .raw_dialect = DIALECT_ANTHROPIC });
	assert_non_null(strstr(sent(), "\"stream\":true" RAW_REST));
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hel") ": a comment\n\n");
	brings(WORDS("lo") ENDS);
	rig_stream_ends();
	assert_int_not_equal(world.settled_usd, 0); /* by the provider's own count */
	assert_true(world.settled_usd < world.reserved_usd);
	/* whose text is nobody's here */
	ends_with(call, "admitted\n" START TEXT_BEGINS WORDS("Hel") ": a comment\n\n" WORDS("lo")
				ENDS "result  relayed\n");
}

static void another_format_is_translated(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi",
				  .relay = SAMPLING_DELTAS,
				  .raw_body = RAW_REST,
				  .raw_dialect = DIALECT_OPENAI });
	assert_null(strstr(sent(), "novel"));
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hello") ENDS);
	rig_stream_ends();
	ends_with(call, "admitted\ntext 0 Hello\nresult Hello relayed\n");
}

static void nobody_of_another_format_is_asked(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi",
				  .raw_body = RAW_REST,
				  .raw_dialect = DIALECT_OPENAI,
				  .raw_only = true });
	assert_null(world.call);
	world_turn_ends();
	ends_with(call, "refused model_unknown\n");
}

/* Not one like it, and not another one. */
static void a_named_model_is_that_model(void **state)
{
	static const struct {
		const char *name;
		bool known;
	} rows[] = { { "m", true },        { "M", true },   { "anthropic\\u002fm", true },
		     { "m-latest", true }, { "mm", false }, { "claude", false },
		     { "", false } };
	struct line_call *call = *state;

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		asks(call, (struct line){ .text = "Hi",
					  .raw_body = RAW_REST,
					  .raw_dialect = DIALECT_ANTHROPIC,
					  .raw_model = rows[i].name,
					  .raw_only = true });
		if (rows[i].known)
			provider_says(SAYS_HELLO);
		else
			world_turn_ends();
		ends_with(call, rows[i].known ? "result Hello\nanswer 200 " SAYS_HELLO "\n"
					      : "refused model_unknown\n");
	}
}

static void headers_of_the_same_format_pass(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi",
				  .raw_body = RAW_REST,
				  .raw_dialect = DIALECT_ANTHROPIC,
				  .raw_version = "2099-01-01",
				  .raw_headers = "anthropic-beta: a,b\r\n" });
	assert_non_null(strstr(sent(), "\r\nanthropic-version: 2099-01-01\r\n"));
	assert_null(strstr(strstr(sent(), "anthropic-version") + 1, "anthropic-version"));
	assert_non_null(strstr(sent(), "\r\nanthropic-beta: a,b\r\n\r\n{\"model\":\""));
	provider_says(SAYS_HELLO);
	line_end(call);
}

/* The provider's own words for why not. */
static void a_refusal_of_the_same_format_is_there_too(void **state)
{
	const struct provider_answer answer = {
		.status = 400,
		.body = SLICE("{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
			      "\"message\":\"temperature: no\"}}"),
	};
	struct line_call *call = *state;

	asks(call,
	     (struct line){ .text = "Hi", .raw_body = RAW_REST, .raw_dialect = DIALECT_ANTHROPIC });
	rig_provider_ends(ERR_OK, true, &answer);
	assert_null(world.call); /* nothing is learned of it, nor sent once more */
	assert_int_equal(call->dones, 1);
	assert_int_equal(strncmp(call->out, "refused ", 8), 0);
	assert_int_equal(call->call->flow.out.answer->status, 400);
	line_end(call);
}

/* ---- refusals -------------------------------------------------------------------------------------- */

static void limits_refuse(void)
{
	world.limiter_mode = LIMITER_REFUSES;
	world.refusal = (struct limit_refusal){ .err = ERR_RATE_LIMITED,
						.limit = "requests_per_minute",
						.wait_ns = SEC };
}

/* A front may still be putting its own record together. */
static void nothing_ends_inside_of_begin(void **state)
{
	struct line_call *call = *state;

	limits_refuse();
	asks(call, (struct line){ .text = "Hi" });
	is_told(call, "");
	world_turn_ends();
	ends_with(call, "refused rate_limited requests_per_minute\n");
}

static void nobody_is_told_who_leaves_before_that(void **state)
{
	struct line_call *call = *state;

	limits_refuse();
	asks(call, (struct line){ .text = "Hi" });
	line_leave(call);
	world_turn_ends();
	is_told(call, "");
}

static void strangers_are_refused(void **state)
{
	struct line_call *call = *state;

	assert_false(begin(call, &(struct line){ .key = "nobody-0123456789", .text = "Hi" }));
	is_told(call, "refused unauthorized\n");
	assert_true(log_ring_peek(ring).len != 0);
}

static void a_process_that_leaves_refuses(void **state)
{
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi" });
	sampling_give_up(&world.worker->core);
	ends_with(call, "refused draining\n");
	asks(call, (struct line){ .text = "Hi" });
	world_turn_ends();
	ends_with(call, "refused draining\n");
}

/* ---- copies, sessions, cancelling ----------------------------------------------------------------- */

static void copies_are_one_call(void **state)
{
	struct line_call *first = *state, second, other;

	asks(first, (struct line){ .text = "Hi", .idempotency_key = "k" });
	asks(&second, (struct line){ .text = "Hi", .idempotency_key = "k" });
	assert_int_equal(world.granted, 1);
	provider_says(SAYS_HELLO);
	rig_deliver();
	ends_with(first, "result Hello\n");
	ends_with(&second, "copy Hello\n");
	asks(&other, (struct line){ .text = "Ho", .idempotency_key = "k" });
	world_turn_ends();
	ends_with(&other, "refused duplicate_conflict\n");
}

static void the_next_copy_goes_on_when_the_first_leaves(void **state)
{
	struct line_call *first = *state, second;

	asks(first, (struct line){ .text = "Hi", .idempotency_key = "k" });
	asks(&second, (struct line){ .text = "Hi", .idempotency_key = "k" });
	line_leave(first);
	rig_deliver();
	provider_says(SAYS_HELLO);
	is_told(first, "");
	ends_with(&second, "result Hello\n");
}

static void a_call_is_cancelled_by_its_id_in_its_session(void **state)
{
	struct sampling *core = &world.worker->core;
	struct line_call *call = *state;

	asks(call, (struct line){ .text = "Hi", .session = SESSION, .cancel_id = "7" });
	sampling_cancel(core, &call->caller, SLICE(SESSION), SLICE("8"));
	sampling_cancel(core, &call->caller, SLICE("00000000000000000000000000000000"), SLICE("7"));
	rig_deliver();
	assert_non_null(world.call);
	sampling_cancel(core, &call->caller, SLICE(SESSION), SLICE("7"));
	rig_deliver();
	assert_null(world.call);
	ends_with(call, "session there 4\ncancelled\n");
}

static void a_front_decides_what_a_session_that_is_gone_means(void **state)
{
	struct line_call *call = *state;

	fake.unknown = true;
	asks(call, (struct line){ .text = "Hi", .session = SESSION });
	provider_says(SAYS_HELLO);
	ends_with(call, "session gone 0\nresult Hello\n");
}

static void a_session_may_be_looked_up_alone(void **state)
{
	struct line_call *call = *state;

	fake.waits = true;
	asks(call, (struct line){ .session = SESSION });
	is_told(call, "");
	fake_answers();
	assert_int_equal(world.granted, 0);
	ends_with(call, "session there 4\nnothing\n");
}

/* ---- counting ------------------------------------------------------------------------------------- */

static void tokens_are_counted_without_a_call(void **state)
{
	struct block block = { .type = BLOCK_IMAGE };
	const struct sampling_request request = { .blocks = &block, .block_count = 1 };

	(void)state;
	block.media.data = slice_of("", 0);
	assert_int_equal(sampling_count(&request, 400), 1600 + 400 / 4);
}

static int group(void)
{
	const struct CMUnitTest tests[] = {
		DOOR(a_call_needs_no_exchange),
		DOOR(progress_is_told_of_what_streams),
		DOOR(the_answer_itself_is_told_as_it_comes),
		DOOR(what_was_told_is_not_tried_again),
		DOOR(what_was_not_told_is_tried_again),
		DOOR(bytes_of_the_same_format_pass_both_ways),
		DOOR(bytes_of_a_stream_pass_as_they_come),
		DOOR(another_format_is_translated),
		DOOR(nobody_of_another_format_is_asked),
		DOOR(a_named_model_is_that_model),
		DOOR(headers_of_the_same_format_pass),
		DOOR(a_refusal_of_the_same_format_is_there_too),
		DOOR(nothing_ends_inside_of_begin),
		DOOR(nobody_is_told_who_leaves_before_that),
		DOOR(strangers_are_refused),
		DOOR(a_process_that_leaves_refuses),
		DOOR(copies_are_one_call),
		DOOR(the_next_copy_goes_on_when_the_first_leaves),
		DOOR(a_call_is_cancelled_by_its_id_in_its_session),
		DOOR(a_front_decides_what_a_session_that_is_gone_means),
		DOOR(a_session_may_be_looked_up_alone),
		DOOR(tokens_are_counted_without_a_call),
	};
	const int failed = cmocka_run_group_tests_name("door", tests, NULL, NULL);

	arena_pool_fini(&pool);
	return failed;
}

int main(void)
{
	return state_rig_run(group);
}
