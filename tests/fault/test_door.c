/* test_door.c - the core's door: a front of the test's own (line_front.h) asks for samplings, without HTTP, in a world of
 * the test's own (state_rig.h). Nothing below gateway/front/ knows of it. */
#include "tests/fault/state_rig.h"
#include "tests/support/line_front.h"

#define SAYS_HELLO                                                                           \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\","     \
	"\"content\":[{\"type\":\"text\",\"text\":\"Hello\"}],\"stop_reason\":\"end_turn\"," \
	"\"usage\":{\"input_tokens\":10,\"output_tokens\":4},\"unknown\":7}"

/* An answer that streams. */
#define START                                                                                   \
	"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":"          \
	"\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[]," \
	"\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n"
#define TEXT_BEGINS                                                                        \
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0," \
	"\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
#define WORDS(text)                                                                        \
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0," \
	"\"delta\":{\"type\":\"text_delta\",\"text\":\"" text "\"}}\n\n"
#define ENDS                                                                                  \
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"  \
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":" \
	"\"end_turn\"},\"usage\":{\"output_tokens\":4}}\n\n"                                  \
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

#define SESSION "0123456789abcdef0123456789abcdef"

static struct arena_pool pool;

static bool begin(struct line_call *call, const struct line *line)
{
	struct sampling *core = &world.worker->core;
	const struct caller_sources sources = {
		.config = core->config,
		.json = core->json,
		.wall_s = world.wall_ns / SEC,
	};

	return line_begin(call, core, &sources, &pool, line, world.now, world.wall_ns);
}

static void is_told(const struct line_call *call, const char *text)
{
	assert_string_equal(call->out, text);
}

static void provider_says(const char *body)
{
	const struct provider_answer answer = { .status = 200, .body = slice_str(body) };

	rig_provider_ends(ERR_OK, true, &answer);
}

static void stream_begins(void)
{
	struct upstream_call *upstream = world.call;

	upstream->answer = (struct provider_answer){
		.status = 200, .headers = { .content_type = SLICE("text/event-stream") }
	};
	upstream->sent_at = upstream->first_byte_at = world.now;
	upstream->bytes_sent = true;
	upstream->wish = UPSTREAM_WANTED;
	upstream->in_pieces = upstream->head != NULL && upstream->head(upstream);
	assert_true(upstream->in_pieces);
}

static void brings(const char *bytes)
{
	world.call->piece(world.call, slice_str(bytes));
}

/* Its connection breaks. */
static void stream_breaks(void)
{
	struct upstream_call *upstream = world.call;

	world.call = NULL;
	upstream->err = ERR_PROVIDER_DOWN;
	upstream->detail = "for a test";
	upstream->done_at = world.now;
	upstream->done(upstream);
}

/* What was sent to the provider, its head included. */
static const char *sent(void)
{
	static char text[8192];
	size_t len = 0;

	for (uint32_t i = 0; i < world.call->request_count; i++) {
		const struct iovec *v = &world.call->request[i];
		assert_true(len + v->iov_len < sizeof(text));
		memcpy(text + len, v->iov_base, v->iov_len);
		len += v->iov_len;
	}
	text[len] = '\0';
	return text;
}

/* ---- one call ------------------------------------------------------------------------------------ */

static void a_call_needs_no_exchange(void **state)
{
	struct line_call call;
	char line[LOG_LINE_MAX + 1] = "";

	(void)state;
	set_scene(0);
	assert_true(begin(&call, &(struct line){ .key = WALK_KEY, .text = "Hi" }));
	assert_non_null(strstr(sent(), "\"text\":\"Hi\""));
	provider_says(SAYS_HELLO);
	is_told(&call, "result Hello\n");
	assert_int_equal(world.released, 0); /* its place is its own until its answer has left */
	line_end(&call);
	assert_int_equal(world.released, 1);
	const struct slice logged = log_ring_peek(ring);
	memcpy(line, logged.at, logged.len);
	assert_non_null(strstr(line, "\"method\":\"line\""));
	assert_non_null(strstr(line, "\"tenant\":\"" WALK_TENANT "\""));
	nobody_is_held("one call", 0);
}

static void progress_is_told_of_what_streams(void **state)
{
	struct line_call call;

	(void)state;
	set_scene(0);
	assert_true(
		begin(&call,
		      &(struct line){ .key = WALK_KEY, .text = "Hi", .relay = SAMPLING_PROGRESS }));
	is_told(&call, "admitted\n");
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hel"));
	brings(WORDS("lo") ENDS);
	rig_stream_ends();
	is_told(&call, "admitted\nprogress 0\nprogress 3\nprogress 5\nresult Hello\n");
	line_end(&call);
	nobody_is_held("progress", 0);
}

static void the_answer_itself_is_told_as_it_comes(void **state)
{
	struct line_call call;

	(void)state;
	set_scene(0);
	assert_true(begin(&call, &(struct line){ .key = WALK_KEY,
						 .text = "Hi",
						 .relay = SAMPLING_DELTAS,
						 .slow = true }));
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hel"));
	assert_true(world.call->paused);
	sampling_resume(call.call);
	assert_false(world.call->paused);
	brings(WORDS("l\\u00f6") ENDS);
	rig_stream_ends();
	is_told(&call, "admitted\ntext 0 Hel\ntext 0 l\\u00f6\nresult Hell\\u00f6 relayed\n");
	line_end(&call);
	nobody_is_held("deltas", 0);
}

/* What it has of the answer cannot be taken back. */
static void what_was_told_is_not_tried_again(void **state)
{
	struct line_call call;

	(void)state;
	for (int told = 0; told <= 1; told++) {
		set_scene(0);
		assert_true(begin(
			&call,
			&(struct line){ .key = WALK_KEY, .text = "Hi", .relay = SAMPLING_DELTAS }));
		stream_begins();
		brings(told ? START TEXT_BEGINS WORDS("Hel") : START);
		stream_breaks();
		if (told) {
			is_told(&call,
				"admitted\ntext 0 Hel\nrefused provider_answer_invalid relayed\n");
		} else {
			is_told(&call, "admitted\n");
			assert_int_not_equal(call.call->wait.place, 0); /* another attempt */
			line_leave(&call);
			nobody_is_held("untold", 0);
			continue;
		}
		line_end(&call);
		nobody_is_held("told", 0);
	}
}

/* ---- the provider's own bytes --------------------------------------------------------------------- */

#define RAW_REST ",\"max_tokens\":9,\"novel\":[1]}"

static void bytes_of_the_same_format_pass_both_ways(void **state)
{
	const struct line line = { .key = WALK_KEY,
				   .text = "Hi",
				   .raw_body = RAW_REST,
				   .raw_dialect = DIALECT_ANTHROPIC };
	struct line_call call;

	(void)state;
	set_scene(0);
	assert_true(begin(&call, &line));
	assert_non_null(strstr(sent(), "\r\n\r\n{\"model\":\""));
	assert_non_null(strstr(sent(), "\"stream\":false" RAW_REST));
	provider_says(SAYS_HELLO);
	is_told(&call, "result Hello\nanswer 200 " SAYS_HELLO "\n");
	line_end(&call);
	nobody_is_held("raw", 0);
}

static void bytes_of_a_stream_pass_as_they_come(void **state)
{
	const struct line line = { .key = WALK_KEY,
				   .text = "Hi",
				   .relay = SAMPLING_DELTAS,
				   .raw_body = RAW_REST,
				   .raw_dialect = DIALECT_ANTHROPIC };
	struct line_call call;

	(void)state;
	set_scene(0);
	assert_true(begin(&call, &line));
	assert_non_null(strstr(sent(), "\"stream\":true" RAW_REST));
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hel") ": a comment\n\n");
	brings(WORDS("lo") ENDS);
	rig_stream_ends();
	is_told(&call, "admitted\n" START TEXT_BEGINS WORDS("Hel") ": a comment\n\n" WORDS("lo")
			       ENDS "result Hello relayed\n");
	assert_int_not_equal(world.settled_usd, 0); /* by the provider's own count */
	assert_true(world.settled_usd < world.reserved_usd);
	line_end(&call);
	nobody_is_held("raw stream", 0);
}

static void another_format_is_translated(void **state)
{
	const struct line line = { .key = WALK_KEY,
				   .text = "Hi",
				   .relay = SAMPLING_DELTAS,
				   .raw_body = RAW_REST,
				   .raw_dialect = DIALECT_OPENAI };
	struct line_call call;

	(void)state;
	set_scene(0);
	assert_true(begin(&call, &line));
	assert_null(strstr(sent(), "novel"));
	stream_begins();
	brings(START TEXT_BEGINS WORDS("Hello") ENDS);
	rig_stream_ends();
	is_told(&call, "admitted\ntext 0 Hello\nresult Hello relayed\n");
	line_end(&call);
	nobody_is_held("another format", 0);
}

/* The provider's own words for why not. */
static void a_refusal_of_the_same_format_is_there_too(void **state)
{
	const struct line line = { .key = WALK_KEY,
				   .text = "Hi",
				   .raw_body = RAW_REST,
				   .raw_dialect = DIALECT_ANTHROPIC };
	const struct provider_answer answer = {
		.status = 400,
		.body = SLICE("{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\","
			      "\"message\":\"temperature: no\"}}"),
	};
	struct line_call call;

	(void)state;
	set_scene(0);
	assert_true(begin(&call, &line));
	rig_provider_ends(ERR_OK, true, &answer);
	assert_null(world.call); /* nothing is learned of it, nor sent once more */
	assert_int_equal(call.dones, 1);
	assert_int_equal(strncmp(call.out, "refused ", 8), 0);
	assert_int_equal(call.call->flow.out.answer->status, 400);
	line_end(&call);
	nobody_is_held("raw refusal", 0);
}

/* ---- refusals -------------------------------------------------------------------------------------- */

/* A front may still be putting its own record together. */
static void nothing_ends_inside_of_begin(void **state)
{
	struct line_call call;

	(void)state;
	for (int leaves = 0; leaves <= 1; leaves++) {
		set_scene(0);
		world.store_mode = STORE_REFUSES;
		world.refusal = (struct limit_refusal){ .err = ERR_RATE_LIMITED,
							.limit = "requests_per_minute",
							.wait_ns = SEC };
		assert_true(begin(&call, &(struct line){ .key = WALK_KEY, .text = "Hi" }));
		is_told(&call, "");
		if (leaves) {
			line_leave(&call);
			world_turn_ends();
			is_told(&call, "");
		} else {
			world_turn_ends();
			is_told(&call, "refused rate_limited requests_per_minute\n");
			line_end(&call);
		}
		nobody_is_held("a refusal", 0);
	}
}

static void strangers_and_a_process_that_leaves_are_refused(void **state)
{
	struct line_call call;

	(void)state;
	set_scene(0);
	assert_false(begin(&call, &(struct line){ .key = "nobody-0123456789", .text = "Hi" }));
	is_told(&call, "refused unauthorized\n");
	assert_true(log_ring_peek(ring).len != 0);

	assert_true(begin(&call, &(struct line){ .key = WALK_KEY, .text = "Hi" }));
	sampling_give_up(&world.worker->core);
	is_told(&call, "refused draining\n");
	line_end(&call);
	assert_true(begin(&call, &(struct line){ .key = WALK_KEY, .text = "Hi" }));
	world_turn_ends();
	is_told(&call, "refused draining\n");
	line_end(&call);
	nobody_is_held("strangers", 0);
}

/* ---- copies, sessions, cancelling ----------------------------------------------------------------- */

static void copies_are_one_call(void **state)
{
	static const struct line line = { .key = WALK_KEY, .text = "Hi", .once = "k" };
	struct line_call first, second, other;

	(void)state;
	set_scene(0);
	assert_true(begin(&first, &line));
	assert_true(begin(&second, &line));
	assert_int_equal(world.granted, 1);
	provider_says(SAYS_HELLO);
	rig_deliver();
	is_told(&first, "result Hello\n");
	is_told(&second, "copy Hello\n");
	line_end(&first);
	line_end(&second);
	assert_true(begin(&other, &(struct line){ .key = WALK_KEY, .text = "Ho", .once = "k" }));
	world_turn_ends();
	is_told(&other, "refused duplicate_conflict\n");
	line_end(&other);
	nobody_is_held("copies", 0);
}

static void the_next_copy_goes_on_when_the_first_leaves(void **state)
{
	static const struct line line = { .key = WALK_KEY, .text = "Hi", .once = "k" };
	struct line_call first, second;

	(void)state;
	set_scene(0);
	assert_true(begin(&first, &line));
	assert_true(begin(&second, &line));
	line_leave(&first);
	rig_deliver();
	provider_says(SAYS_HELLO);
	is_told(&first, "");
	is_told(&second, "result Hello\n");
	line_end(&second);
	nobody_is_held("the next copy", 0);
}

static void a_call_is_cancelled_by_its_id_in_its_session(void **state)
{
	static const struct line line = {
		.key = WALK_KEY, .text = "Hi", .session = SESSION, .cancel_id = "7"
	};
	struct sampling *core = &world.worker->core;
	struct line_call call;

	(void)state;
	set_scene(0);
	assert_true(begin(&call, &line));
	sampling_cancel(core, &call.caller, SLICE(SESSION), SLICE("8"));
	sampling_cancel(core, &call.caller, SLICE("00000000000000000000000000000000"), SLICE("7"));
	rig_deliver();
	assert_non_null(world.call);
	sampling_cancel(core, &call.caller, SLICE(SESSION), SLICE("7"));
	rig_deliver();
	assert_null(world.call);
	is_told(&call, "session there 4\ncancelled\n");
	line_end(&call);
	nobody_is_held("cancelled", 0);
}

static void a_front_decides_what_a_session_that_is_gone_means(void **state)
{
	struct line_call call;

	(void)state;
	set_scene(0);
	fake.unknown = true;
	assert_true(
		begin(&call, &(struct line){ .key = WALK_KEY, .text = "Hi", .session = SESSION }));
	provider_says(SAYS_HELLO);
	is_told(&call, "session gone 0\nresult Hello\n");
	line_end(&call);
	nobody_is_held("a session", 0);
}

static void a_session_may_be_looked_up_alone(void **state)
{
	struct line_call call;

	(void)state;
	set_scene(0);
	fake.waits = true;
	assert_true(begin(&call, &(struct line){ .key = WALK_KEY, .session = SESSION }));
	is_told(&call, "");
	fake_answers();
	is_told(&call, "session there 4\nnothing\n");
	assert_int_equal(world.granted, 0);
	line_end(&call);
	nobody_is_held("a session alone", 0);
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
		cmocka_unit_test(a_call_needs_no_exchange),
		cmocka_unit_test(progress_is_told_of_what_streams),
		cmocka_unit_test(the_answer_itself_is_told_as_it_comes),
		cmocka_unit_test(what_was_told_is_not_tried_again),
		cmocka_unit_test(bytes_of_the_same_format_pass_both_ways),
		cmocka_unit_test(bytes_of_a_stream_pass_as_they_come),
		cmocka_unit_test(another_format_is_translated),
		cmocka_unit_test(a_refusal_of_the_same_format_is_there_too),
		cmocka_unit_test(nothing_ends_inside_of_begin),
		cmocka_unit_test(strangers_and_a_process_that_leaves_are_refused),
		cmocka_unit_test(copies_are_one_call),
		cmocka_unit_test(the_next_copy_goes_on_when_the_first_leaves),
		cmocka_unit_test(a_call_is_cancelled_by_its_id_in_its_session),
		cmocka_unit_test(a_front_decides_what_a_session_that_is_gone_means),
		cmocka_unit_test(a_session_may_be_looked_up_alone),
		cmocka_unit_test(tokens_are_counted_without_a_call),
	};
	const int failed = cmocka_run_group_tests_name("door", tests, NULL, NULL);

	arena_pool_fini(&pool);
	return failed;
}

int main(void)
{
	return state_rig_run(group);
}
