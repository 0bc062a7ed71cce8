#include "codec/base/must.h"
#include "codec/dialect/stream.h"
#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define CHUNK(delta) "data: {\"choices\":[{\"index\":0,\"delta\":{" delta "}}]}\n\n"
#define SAY(text) CHUNK("\"content\":\"" text "\"")
#define CALL(id, args)                                                        \
	CHUNK("\"tool_calls\":[{\"index\":0,\"id\":\"" id "\",\"function\":{" \
	      "\"name\":\"a\",\"arguments\":\"" args "\"}}]")
#define ARGS(args) CHUNK("\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"" args "\"}}]")
#define FINISH "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
#define DONE "data: [DONE]\n\n"

/* A text that grows. */
struct text {
	char *at;
	size_t len, cap;
};

static void put(struct text *t, const char *bytes, size_t len)
{
	if (t->len + len + 1 > t->cap) {
		t->cap = 2 * (t->len + len + 1);
		t->at = realloc(t->at, t->cap);
		must(t->at != NULL);
	}
	(void)memcpy(t->at + t->len, bytes, len);
	t->len += len;
	t->at[t->len] = '\0';
}

static void put_str(struct text *t, const char *text)
{
	put(t, text, strlen(text));
}

/* `count` times `unit`. */
static void put_times(struct text *t, const char *unit, size_t count)
{
	for (size_t i = 0; i < count; i++)
		put_str(t, unit);
}

static void expect(struct stream_case *c, const char *body, const char *expect_text)
{
	const char *why = stream_case_differs(c, body, expect_text);

	if (why != NULL)
		fail_msg("%s", why);
}

/* ---- how it ends ---- */

static void a_connection_that_breaks_is_a_failure_only_before_the_reason(void **state)
{
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	c.ending = STREAM_BROKE;
	expect(&c, SAY("a"),
	       "-32015 The connection to the provider broke before its stream ended | retryable");
	expect(&c, SAY("a") FINISH, "endTurn | \"a\"");
	expect(&c, SAY("a") FINISH "data: {\"id\"", "endTurn | \"a\"");
	stream_case_fini(&c);
}

static void a_stream_cut_short_is_its_endpoints_fault(void **state)
{
	static const struct {
		const char *body;
		enum blame blame;
	} rows[] = {
		{ SAY("a"), BLAME_ENDPOINT },
		{ "", BLAME_ENDPOINT },
		{ "data: {\"error\":{}}\n\n", BLAME_ENDPOINT },
		{ "data: {\n\n", BLAME_ANSWER },
		{ "data: {\"error\":{\"code\":\"rate_limit_exceeded\"}}\n\n", BLAME_KEY },
	};
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)stream_case_run(&c, rows[i].body, (struct stream_cut){ 0 });
		assert_int_not_equal(c.err, ERR_OK);
		if (c.failure.blame != rows[i].blame)
			fail_msg("%s: %d", rows[i].body, c.failure.blame);
		assert_true(c.failure.retryable);
	}
	stream_case_fini(&c);
}

static void the_state_tells_when_nothing_more_is_read(void **state)
{
	static const struct {
		const char *body;
		enum stream_state want;
	} rows[] = {
		{ "", STREAM_OPEN },
		{ SAY("a") FINISH, STREAM_OPEN },
		{ SAY("a") FINISH DONE, STREAM_DONE },
		{ SAY("a") DONE "data: {\n\n", STREAM_DONE },
		{ SAY("a") "data: {\n\n" FINISH DONE, STREAM_FAILED },
		{ "data: {\"error\":{}}\n\n" SAY("a") DONE, STREAM_FAILED },
	};
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		(void)stream_case_run(&c, rows[i].body, (struct stream_cut){ 0 });
		assert_int_equal(c.state, rows[i].want);
		(void)stream_case_run(&c, rows[i].body, (struct stream_cut){ .step = 3 });
		assert_int_equal(c.state, rows[i].want);
	}
	stream_case_fini(&c);
}

/* ---- progress ---- */

static void progress_counts_what_the_model_says(void **state)
{
	static const struct {
		const char *name, *body;
		uint64_t bytes, deltas;
	} rows[] = {
		{ "nothing", "", 0, 0 },
		{ "comments and blank data", ": x\n\ndata:\n\n", 0, 0 },
		{ "a role", CHUNK("\"role\":\"assistant\",\"content\":\"\""), 0, 0 },
		{ "text", SAY("ab") SAY("c") SAY("d"), 4, 3 },
		{ "arguments, without ids and names", CALL("c", "{") ARGS("}") ARGS(""), 2, 2 },
		{ "reasoning", CHUNK("\"reasoning\":\"abc\"") CHUNK("\"reasoning\":\"de\""), 5, 2 },
		{ "refusals", CHUNK("\"refusal\":\"no\""), 2, 1 },
		{ "what another choice says",
		  "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"a\"}}]}\n\n", 1, 1 },
		{ "not what follows the end", SAY("a") DONE SAY("b"), 1, 1 },
		{ "nor events that say nothing", SAY("a") FINISH DONE, 1, 1 },
	};
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t step = 0; step < 3; step++) {
			(void)stream_case_run(&c, rows[i].body,
					      (struct stream_cut){ .step = step });
			if (c.progress.output_bytes != rows[i].bytes ||
			    c.progress.deltas != rows[i].deltas ||
			    c.progress.begun != (rows[i].bytes != 0))
				fail_msg("%s, in reads of %zu", rows[i].name, step);
		}
	stream_case_fini(&c);
}

/* ---- sizes ---- */

static void long_texts_and_arguments_are_whole(void **state)
{
	struct text body = { 0 }, want = { 0 };
	struct stream_case c;

	(void)state;
	put_times(&body, SAY("abcdefghij\\n") SAY("\xe2\x82\xac\\ud83d") SAY("\\ude00."), 700);
	put_str(&body, CALL("c", "{\\\"x\\\":\\\""));
	put_times(&body, ARGS("0123456789"), 900);
	put_str(&body, ARGS("\\\"}") FINISH);
	put_str(&want, "toolUse | \"");
	put_times(&want, "abcdefghij\\n\xe2\x82\xac\\ud83d\\ude00.", 700);
	put_str(&want, "\" | c a {\"x\":\"");
	put_times(&want, "0123456789", 900);
	put_str(&want, "\"}");
	stream_case_init(&c, DIALECT_OPENAI);
	assert_string_equal(stream_case_run(&c, body.at, (struct stream_cut){ 0 }), want.at);
	assert_string_equal(stream_case_run(&c, body.at, (struct stream_cut){ .step = 1 }),
			    want.at);
	assert_string_equal(stream_case_run(&c, body.at, (struct stream_cut){ .step = 1447 }),
			    want.at);
	c.without_shapes = true;
	assert_string_equal(stream_case_run(&c, body.at, (struct stream_cut){ 0 }), want.at);
	stream_case_fini(&c);
	free(body.at);
	free(want.at);
}

/* A half at the end is left out at the token limit: wherever the pieces of the text end. */
static void a_half_is_left_out_across_pieces(void **state)
{
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (size_t len = 990; len <= 1010; len++) {
		struct text body = { 0 }, want = { 0 };
		put_times(&body, SAY("x"), len);
		put_str(&body, SAY("\\ud83d") "data: {\"choices\":[{\"index\":0,\"delta\":{},"
					      "\"finish_reason\":\"length\"}]}\n\n");
		put_str(&want, "maxTokens | \"");
		put_times(&want, "x", len);
		put_str(&want, "\"");
		assert_string_equal(stream_case_run(&c, body.at, (struct stream_cut){ 0 }),
				    want.at);
		free(body.at);
		free(want.at);
	}
	stream_case_fini(&c);
}

static void an_event_may_be_as_large_as_the_buffer(void **state)
{
	static const char front[] = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"";
	static const char back[] = "\"}}]}";
	const size_t room = STREAM_EVENT_ROOM - 1 - strlen(front) - strlen(back);
	static const size_t cuts[] = {
		0, 1, 1000, STREAM_EVENT_ROOM / 2, STREAM_EVENT_ROOM - 1, STREAM_EVENT_ROOM
	};
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (size_t more = 0; more < 2; more++) {
		struct text body = { 0 };
		put_str(&body, SAY("x") SAY("x")); /* events like it come before */
		put_str(&body, front);
		put_times(&body, "x", room + more);
		put_str(&body, back);
		put_str(&body, "\n\n" FINISH);
		for (size_t i = 0; i < COUNT_OF(cuts); i++) {
			const char *have = stream_case_run(&c, body.at,
							   (struct stream_cut){ .once = cuts[i] });
			if (more == 0)
				assert_int_equal(strlen(have), strlen("endTurn | \"xx\"") + room);
			else
				assert_string_equal(have, "-32015 An event of the provider's "
							  "stream is too large | retryable");
		}
		free(body.at);
	}
	stream_case_fini(&c);
}

static void an_answer_is_bounded_by_its_limit(void **state)
{
	static const char too_large[] =
		"-32015 The provider's answer is larger than this gateway accepts | retryable";
	static const struct {
		const char *name, *body;
		size_t bytes; /* that it needs */
		const char *expect;
	} rows[] = {
		{ "text", SAY("abc") SAY("def") SAY("ghi") FINISH, 9, "endTurn | \"abcdefghi\"" },
		{ "id, name and arguments", CALL("cd", "{") ARGS("}") FINISH, 5,
		  "toolUse | cd a {}" },
		{ "what is repeated counts once", CALL("cd", "{") CALL("cd", "}") FINISH, 5,
		  "toolUse | cd a {}" },
		{ "reasoning is not kept", CHUNK("\"reasoning\":\"abcdef\"") SAY("a") FINISH, 1,
		  "endTurn | \"a\"" },
	};
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		c.limits.answer_bytes_max = rows[i].bytes;
		expect(&c, rows[i].body, rows[i].expect);
		for (size_t less = 0; less < rows[i].bytes; less++) {
			c.limits.answer_bytes_max = less;
			expect(&c, rows[i].body, too_large);
		}
	}
	stream_case_fini(&c);
}

static void a_stream_of_blocks_without_end_is_refused(void **state)
{
	struct text body = { 0 };
	struct stream_case c;
	char event[200];

	(void)state;
	for (int i = 0; i < STREAM_BLOCKS_MAX + 1; i++) {
		(void)snprintf(event, sizeof(event),
			       "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,"
			       "\"id\":\"c%d\",\"function\":{\"name\":\"a\"}}]}}]}\n\n",
			       i);
		put_str(&body, event);
	}
	put_str(&body, FINISH);
	stream_case_init(&c, DIALECT_OPENAI);
	assert_string_equal(stream_case_run(&c, body.at, (struct stream_cut){ 0 }),
			    "-32015 The provider's stream has too many blocks | retryable");
	stream_case_fini(&c);
	free(body.at);
}

/* ---- memory ---- */

#define EVERYTHING                                                                               \
	"data: {\"id\":\"i\",\"model\":\"m\",\"choices\":[]}\n\n" SAY("a\\ud83d") SAY("\\ude00") \
		CALL("c", "{\\\"x\\\":") ARGS("1}") CALL("", "{}") FINISH                        \
		"data: {\"choices\":[],\"usage\":{"                                              \
		"\"prompt_tokens\":1}}\n\n" DONE

static void memory_that_is_refused_ends_in_a_named_error(void **state)
{
	const char *want =
		"toolUse | \"a\\ud83d\\ude00\" | c a {\"x\":1} | call_i_1 a {} | usage 1/0/0/0/0";
	struct stream_case c;
	size_t failures = 0;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (c.memory = 0;; c.memory += 8) {
		const char *have = stream_case_run(&c, EVERYTHING, (struct stream_cut){ 0 });
		if (c.err == ERR_OK) {
			assert_string_equal(have, want);
			break;
		}
		assert_int_equal(c.err, ERR_BUSY);
		assert_int_equal(c.failure.err, ERR_BUSY);
		assert_true(++failures < 1000);
	}
	assert_true(failures > 100);
	stream_case_fini(&c);
}

static void a_long_answer_takes_no_memory_event_by_event(void **state)
{
	struct text body = { 0 };
	struct stream_case c;

	(void)state;
	put_times(&body, SAY("x"), 900);
	stream_case_init(&c, DIALECT_OPENAI);
	(void)stream_case_run(&c, SAY("x"), (struct stream_cut){ 0 });
	(void)stream_case_run(&c, SAY("x"), (struct stream_cut){ 0 });
	size_t before = c.pool.mallocs, high = c.pool.out_high;
	(void)stream_case_run(&c, body.at, (struct stream_cut){ .step = 100 });
	assert_int_equal(c.pool.mallocs, before);
	assert_int_equal(c.pool.out_high, high);
	stream_case_fini(&c);
	free(body.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_connection_that_breaks_is_a_failure_only_before_the_reason),
		cmocka_unit_test(a_stream_cut_short_is_its_endpoints_fault),
		cmocka_unit_test(the_state_tells_when_nothing_more_is_read),
		cmocka_unit_test(progress_counts_what_the_model_says),
		cmocka_unit_test(long_texts_and_arguments_are_whole),
		cmocka_unit_test(a_half_is_left_out_across_pieces),
		cmocka_unit_test(an_event_may_be_as_large_as_the_buffer),
		cmocka_unit_test(an_answer_is_bounded_by_its_limit),
		cmocka_unit_test(a_stream_of_blocks_without_end_is_refused),
		cmocka_unit_test(memory_that_is_refused_ends_in_a_named_error),
		cmocka_unit_test(a_long_answer_takes_no_memory_event_by_event),
	};
	return cmocka_run_group_tests_name("stream", tests, NULL, NULL);
}
