#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENT(type, more) \
	"event: response." type "\ndata: {\"type\":\"response." type "\"" more "}\n\n"
#define RESPONSE(status, more)                                                          \
	",\"response\":{\"id\":\"r1\",\"status\":\"" status "\",\"model\":\"gpt\"" more \
	",\"output\":[]}"
#define CREATED EVENT("created", RESPONSE("in_progress", ",\"error\":null,\"usage\":null"))
#define COMPLETED EVENT("completed", RESPONSE("completed", ",\"error\":null"))
#define INCOMPLETE(reason)  \
	EVENT("incomplete", \
	      RESPONSE("incomplete", ",\"incomplete_details\":{\"reason\":\"" reason "\"}"))
#define AT(index) ",\"item_id\":\"i\",\"output_index\":" index ",\"content_index\":0"
#define SAY_AT(index, text) EVENT("output_text.delta", AT(index) ",\"delta\":\"" text "\"")
#define SAY(text) SAY_AT("0", text)
#define SAID_AT(index, text) EVENT("output_text.done", AT(index) ",\"text\":\"" text "\"")
#define ADDED(index, item) EVENT("output_item.added", ",\"output_index\":" index ",\"item\":" item)
#define ENDED(index, item) EVENT("output_item.done", ",\"output_index\":" index ",\"item\":" item)
#define MESSAGE "{\"type\":\"message\",\"id\":\"m\",\"content\":[]}"
#define PART(text) "{\"type\":\"output_text\",\"text\":\"" text "\"}"
#define MESSAGE_OF(parts) "{\"type\":\"message\",\"id\":\"m\",\"content\":[" parts "]}"
#define COMPLETED_WITH(items) \
	EVENT("completed", ",\"response\":{\"status\":\"completed\",\"output\":[" items "]}")
#define REASONING "{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[]}"
#define CALL_ITEM(id, name, args, more)                                                     \
	"{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"" id "\",\"name\":\"" name \
	"\",\"arguments\":\"" args "\"" more "}"
#define CALL(index, id, name) ADDED(index, CALL_ITEM(id, name, "", ""))
#define ARGS(index, args) \
	EVENT("function_call_arguments.delta", AT(index) ",\"delta\":\"" args "\"")
#define ARGS_DONE(index, args) \
	EVENT("function_call_arguments.done", AT(index) ",\"arguments\":\"" args "\"")
#define USAGE                                                                            \
	",\"usage\":{\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":2}," \
	"\"output_tokens\":7,\"output_tokens_details\":{\"reasoning_tokens\":3}}"
#define MALFORMED "-32015 An event of the provider's stream is malformed | retryable"
#define CUT "-32015 The provider's stream ended before the answer did | retryable"

struct row {
	const char *name, *body, *expect;
};

static void run_rows(const struct row *rows, size_t count)
{
	struct stream_case c;

	stream_case_init(&c, DIALECT_RESPONSES);
	for (size_t i = 0; i < count; i++) {
		const char *why = stream_case_differs(&c, rows[i].body, rows[i].expect);
		if (why != NULL)
			fail_msg("%s: %s", rows[i].name, why);
	}
	stream_case_fini(&c);
}

static void texts_are_assembled(void **state)
{
	static const struct row rows[] = {
		{ "text", CREATED ADDED("0", MESSAGE) SAY("a") SAY("b") SAY("") SAY("c") COMPLETED,
		  "endTurn | \"abc\"" },
		{ "the whole of a text is not added to its deltas",
		  SAY("a") SAY("b") SAID_AT("0", "ab") COMPLETED, "endTurn | \"ab\"" },
		{ "but taken where there were none", SAID_AT("0", "ab") COMPLETED,
		  "endTurn | \"ab\"" },
		{ "a message that comes as a whole only",
		  CREATED ADDED("0", MESSAGE) ENDED("0", MESSAGE_OF(PART("ab") "," PART("c")))
			  COMPLETED,
		  "endTurn | \"abc\"" },
		{ "although there was thought before it",
		  CREATED ADDED("0", REASONING)
			  EVENT("reasoning_summary_text.delta", AT("0") ",\"delta\":\"hm\"")
				  EVENT("reasoning_text.delta", AT("0") ",\"delta\":\"hm\"")
					  ENDED("0", REASONING) ADDED("1", MESSAGE)
						  ENDED("1", MESSAGE_OF(PART("ab"))) COMPLETED,
		  "endTurn | \"ab\"" },
		{ "or a call",
		  CALL("0", "c1", "a") ARGS("0", "{}") ARGS_DONE("0", "{}")
			  ENDED("1", MESSAGE_OF(PART("ab"))) COMPLETED,
		  "toolUse | c1 a {} | \"ab\"" },
		{ "and whose content is a string",
		  ENDED("0", "{\"type\":\"message\",\"content\":\"ab\"}") COMPLETED,
		  "endTurn | \"ab\"" },
		{ "the end of a message is not added to what was said of it",
		  SAID_AT("0", "ab") ENDED("0", MESSAGE_OF(PART("ab"))) COMPLETED,
		  "endTurn | \"ab\"" },
		{ "nor what the response says", SAY("ab") COMPLETED_WITH(MESSAGE_OF(PART("ab"))),
		  "endTurn | \"ab\"" },
		{ "a response that comes as a whole only",
		  CREATED COMPLETED_WITH(REASONING
					 "," MESSAGE_OF(PART("a")) "," MESSAGE_OF(PART("b"))),
		  "endTurn | \"ab\"" },
		{ "a refusal that comes as a whole only",
		  CREATED COMPLETED_WITH(MESSAGE_OF("{\"type\":\"refusal\",\"refusal\":\"no\"}")),
		  "refusal | \"no\"" },
		{ "messages keep the order in which they began",
		  ADDED("0", MESSAGE) ADDED("1", MESSAGE) SAY_AT("1", "b") SAY_AT("0", "a")
			  COMPLETED,
		  "endTurn | \"ab\"" },
		{ "a message that began, and then all of the response",
		  ADDED("0", MESSAGE) COMPLETED_WITH(MESSAGE_OF(PART("a"))), "endTurn | \"a\"" },
		{ "two messages", SAY_AT("0", "a") SAY_AT("1", "b") SAY_AT("0", "c") COMPLETED,
		  "endTurn | \"acb\"" },
		{ "numbers that count up and padding",
		  EVENT("output_text.delta",
			",\"sequence_number\":4" AT(
				"0") ",\"delta\":\"a\",\"logprobs\":[],\"obfuscation\":\"xyz\"")
			  EVENT("output_text.delta",
				",\"sequence_number\":5" AT("0") ",\"delta\":\"b\",\"logprobs\":[],"
								 "\"obfuscation\":\"q\"") COMPLETED,
		  "endTurn | \"ab\"" },
		{ "members in another order",
		  "data: {\"delta\":\"a\",\"output_index\":0,"
		  "\"type\":\"response.output_text.delta\"}\n\n" COMPLETED,
		  "endTurn | \"a\"" },
		{ "types in the event's name only",
		  "event: response.output_text.delta\ndata: "
		  "{\"delta\":\"a\",\"output_index\":0}\n\n"
		  "event: response.output_text.delta\ndata: "
		  "{\"delta\":\"b\",\"output_index\":0}\n\n" COMPLETED,
		  "endTurn | \"ab\"" },
		{ "no event names",
		  "data: "
		  "{\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"a\"}"
		  "\n\n"
		  "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}}"
		  "\n\n",
		  "endTurn | \"a\"" },
		{ "reasoning is left out",
		  ADDED("0", REASONING)
			  EVENT("reasoning_summary_text.delta", AT("0") ",\"delta\":\"hm\"")
				  EVENT("reasoning_text.delta", AT("0") ",\"delta\":\"hm\"")
					  ENDED("0", REASONING) SAY_AT("1", "a") COMPLETED,
		  "endTurn | \"a\"" },
		{ "events that nobody knows",
		  EVENT("queued", ",\"x\":1") SAY("a") EVENT("hologram.delta", AT("0")) EVENT(
			  "output_text.annotation.added", AT("0") ",\"annotation\":{}") COMPLETED,
		  "endTurn | \"a\"" },
		{ "what the provider's own tools do",
		  ADDED("0", "{\"type\":\"web_search_call\"}") SAY_AT("1", "a") COMPLETED,
		  "endTurn | \"a\"" },
		{ "items that nobody knows",
		  ADDED("0", "{\"type\":\"hologram\"}") ENDED("0", "{\"type\":\"hologram\"}")
			  SAY_AT("1", "a") COMPLETED,
		  "endTurn | \"a\" | unknown_block_dropped" },
		{ "a delta without a string",
		  EVENT("output_text.delta", AT("0") ",\"delta\":null") SAY("a")
			  EVENT("output_text.delta", AT("0")) COMPLETED,
		  "endTurn | \"a\"" },
		{ "a pair in two deltas", SAY("\\ud83d") SAY("\\ude00") COMPLETED,
		  "endTurn | \"\\ud83d\\ude00\"" },
		{ "what follows the end is not read", SAY("a") COMPLETED SAY("b") "data: {\n\n",
		  "endTurn | \"a\"" },
		{ "nothing", CREATED COMPLETED, "endTurn | \"\"" },
		{ "usage", CREATED SAY("a") EVENT("completed", RESPONSE("completed", USAGE)),
		  "endTurn | \"a\" | usage 9/7/2/0/3" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void calls_are_assembled(void **state)
{
	static const struct row rows[] = {
		{ "a call",
		  CALL("0", "c1", "a") ARGS("0", "{\\\"x\\\":") ARGS("0", "1}")
			  ARGS_DONE("0", "{\\\"x\\\":1}") COMPLETED,
		  "toolUse | c1 a {\"x\":1}" },
		{ "the response has it again, whatever it is called",
		  SAY_AT("0", "a") CALL("1", "c1", "function_call") ARGS("1", "{}") COMPLETED_WITH(
			  MESSAGE "," CALL_ITEM("c1", "function_call", "{}",
						",\"x\":{\"type\":\"function_call\"}")),
		  "toolUse | \"a\" | c1 function_call {} | unknown_tool_name" },
		{ "arguments that come as a whole only",
		  CALL("0", "c1", "a") ARGS_DONE("0", "{\\\"x\\\":1}") COMPLETED,
		  "toolUse | c1 a {\"x\":1}" },
		{ "a response of calls that comes as a whole only",
		  COMPLETED_WITH(CALL_ITEM("c1", "a", "{\\\"x\\\":1}", "") "," CALL_ITEM("c2", "b",
											 "", "")),
		  "toolUse | c1 a {\"x\":1} | c2 b {}" },
		{ "a call that comes as a whole only",
		  ENDED("0", CALL_ITEM("c1", "a", "{\\\"x\\\":1}", "")) COMPLETED,
		  "toolUse | c1 a {\"x\":1}" },
		{ "no arguments", CALL("0", "c1", "a") ARGS_DONE("0", "") COMPLETED,
		  "toolUse | c1 a {}" },
		{ "two calls at once",
		  CALL("0", "c1", "a") CALL("1", "c2", "b") ARGS("1", "{\\\"y\\\":2}")
			  ARGS("0", "{\\\"x\\\":1}") COMPLETED,
		  "toolUse | c1 a {\"x\":1} | c2 b {\"y\":2}" },
		{ "texts and calls keep their order",
		  CALL("0", "c1", "a") ARGS("0", "{}") SAY_AT("1", "t") CALL("2", "c2", "b")
			  COMPLETED,
		  "toolUse | c1 a {} | \"t\" | c2 b {}" },
		{ "reasoning, then a call",
		  ADDED("0", REASONING) ENDED("0", REASONING) CALL("1", "c1", "a") ARGS("1", "{}")
			  ENDED("1", CALL_ITEM("c1", "a", "{}", ",\"status\":\"completed\""))
				  COMPLETED,
		  "toolUse | c1 a {}" },
		{ "out of tokens inside the second",
		  CALL("0", "c1", "a") ARGS("0", "{}")
			  ENDED("0", CALL_ITEM("c1", "a", "{}", ",\"status\":\"completed\""))
				  CALL("1", "c2", "b") ARGS("1", "{\\\"y\\\":")
					  INCOMPLETE("max_output_tokens"),
		  "maxTokens | c1 a {} | incomplete_tool_use_dropped" },
		{ "out of tokens inside a call that happens to be an object",
		  CALL("0", "c1", "a") ARGS("0", "{}")
			  ENDED("0", CALL_ITEM("c1", "a", "{}", ",\"status\":\"incomplete\""))
				  INCOMPLETE("max_output_tokens"),
		  "maxTokens | \"\" | incomplete_tool_use_dropped" },
		{ "a call without a name", ARGS("0", "{}") COMPLETED,
		  "-32015 The provider's tool call has no name: malformed | retryable" },
		{ "arguments that are no object", CALL("0", "c1", "a") ARGS("0", "[1]") COMPLETED,
		  "-32015 The arguments of the provider's tool call are not a JSON object | "
		  "retryable" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void it_ends_as_the_response_says(void **state)
{
	static const struct row rows[] = {
		{ "out of tokens", SAY("a") INCOMPLETE("max_output_tokens"), "maxTokens | \"a\"" },
		{ "filtered", SAY("a") INCOMPLETE("content_filter"),
		  "refusal | \"\" | partial_output_discarded" },
		{ "incomplete for a new reason", SAY("a") INCOMPLETE("moon"), "other | \"a\"" },
		{ "incomplete, said by the event alone", SAY("a") EVENT("incomplete", ""),
		  "other | \"a\"" },
		{ "complete, said by the event alone", SAY("a") EVENT("completed", ""),
		  "endTurn | \"a\"" },
		{ "a refusal",
		  EVENT("refusal.delta", AT("0") ",\"delta\":\"n\"")
			  EVENT("refusal.delta", AT("0") ",\"delta\":\"o\"")
				  EVENT("refusal.done", AT("0") ",\"refusal\":\"no\"") COMPLETED,
		  "refusal | \"no\"" },
		{ "a refusal that comes as a whole only",
		  SAY("well") EVENT("refusal.done", AT("0") ",\"refusal\":\"no\"") COMPLETED,
		  "refusal | \"no\" | partial_output_discarded" },
		{ "no end", CREATED SAY("a"), CUT },
		{ "[DONE] is no end", CREATED SAY("a") "data: [DONE]\n\n", CUT },
		{ "[DONE] behind the end", SAY("a") COMPLETED "data: [DONE]\n\n",
		  "endTurn | \"a\"" },
		{ "completed and not", SAY("a") EVENT("completed", RESPONSE("in_progress", "")),
		  "-32015 The provider's answer is neither complete nor failed | retryable" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void failures_are_classified(void **state)
{
#define DOWN "-32011 The provider is overloaded or unavailable | retryable"
#define ERROR(code) ",\"error\":{\"code\":\"" code "\",\"message\":\"x\"}"
	static const struct row rows[] = {
		{ "failed", SAY("a") EVENT("failed", RESPONSE("failed", ERROR("server_error"))),
		  DOWN },
		{ "failed for its rate, with what it has cost",
		  EVENT("failed", RESPONSE("failed", ERROR("rate_limit_exceeded") USAGE)),
		  "-32010 The provider's rate limit is reached | retryable | usage 9/7/2/0/3" },
		{ "failed for the prompt",
		  EVENT("failed", RESPONSE("failed", ERROR("invalid_prompt"))),
		  "-32013 The provider rejected the request" },
		{ "failed without a response", EVENT("failed", ""), DOWN },
		{ "completed and failed", EVENT("completed", RESPONSE("failed", "")), DOWN },
		{ "an error event",
		  SAY("a") "event: error\ndata: "
			   "{\"type\":\"error\",\"code\":\"rate_limit_exceeded\","
			   "\"message\":\"x\",\"param\":null,\"sequence_number\":1}\n\n",
		  "-32010 The provider's rate limit is reached | retryable" },
		{ "an error event by its type",
		  "data: {\"type\":\"error\",\"error\":{\"type\":\"server_error\"}}\n\n", DOWN },
		{ "no JSON", SAY("a") "data: {\n\n", MALFORMED },
		{ "JSON of another kind", "data: [1]\n\n", MALFORMED },
		{ "an item without index", EVENT("output_text.delta", ",\"delta\":\"a\"") COMPLETED,
		  "-32015 An item of the provider's stream has no index | retryable" },
		{ "too many items", SAY_AT("1023", "a") COMPLETED,
		  "-32015 The provider's stream has too many items | retryable" },
		{ "a text inside a call", CALL("0", "c", "a") SAY("a") COMPLETED,
		  "-32015 A delta of the provider's stream does not fit its item | retryable" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

/* ---- what is said several times ---- */

enum { PIECE = 1000, PIECES = 150, WHOLE = PIECE * PIECES, CALL_BYTES = 12000, CALLS = 6 };

static void put(struct gather *g, const char *text)
{
	gather_raw(g, slice_str(text));
}

static void put_letters(struct gather *g, size_t count)
{
	for (; count > 0; count--)
		gather_lit(g, "x");
}

/* An answer of WHOLE bytes whose request had as many; `deltas`: whether the text came in pieces, too. */
static struct slice long_stream(struct arena *into, bool deltas)
{
	struct gather g;

	gather_init(&g, into);
	put(&g, "data: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\","
		"\"instructions\":\"");
	put_letters(&g, WHOLE);
	put(&g, "\",\"model\":\"gpt\",\"tools\":[{\"name\":\"");
	put_letters(&g, WHOLE);
	put(&g, "\"}],\"status\":\"in_progress\"}}\n\n");
	for (int i = 0; deltas && i < PIECES; i++) {
		put(&g, "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,"
			"\"delta\":\"");
		put_letters(&g, PIECE);
		put(&g, "\"}\n\n");
	}
	put(&g, "data: {\"type\":\"response.output_text.done\",\"output_index\":0,\"text\":\"");
	put_letters(&g, WHOLE);
	put(&g, "\"}\n\ndata: {\"type\":\"response.output_item.done\",\"output_index\":0,"
		"\"item\":{\"type\":\"message\",\"content\":[{\"text\":\"");
	put_letters(&g, WHOLE);
	put(&g, "\"}]}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":"
		"\"completed\",\"output\":[{\"content\":[{\"text\":\"");
	put_letters(&g, WHOLE);
	put(&g, "\"}]}]" USAGE "}}\n\n");
	struct slice text = gather_flat(&g, into);
	assert_false(slice_absent(text));
	return text;
}

static void an_answer_may_be_larger_than_any_event(void **state)
{
	static const size_t steps[] = { 0, 1, 1448, 65536 };
	struct arena_pool pool = { 0 };
	struct stream_case c;
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 16 << 20);
	stream_case_init(&c, DIALECT_RESPONSES);
	struct slice body = long_stream(&arena, true);
	for (size_t i = 0; i < COUNT_OF(steps); i++) {
		struct slice text =
			stream_case_read(&c, body, (struct stream_cut){ .step = steps[i] });
		if (c.err != ERR_OK)
			fail_msg("by %zu: %.*s", steps[i], (int)text.len, text.at);
		assert_int_equal(c.result.block_count, 1);
		assert_int_equal(c.result.blocks[0].text.len, WHOLE);
		assert_int_equal(c.result.usage.output, 7);
		assert_true(slice_eq(c.result.model, SLICE("gpt")));
	}
	c.limits.event_bytes_max = 2 * WHOLE;
	(void)stream_case_read(&c, long_stream(&arena, false), (struct stream_cut){ 0 });
	assert_int_equal(c.err, ERR_OK); /* of a text without deltas the whole passes */
	assert_int_equal(c.result.blocks[0].text.len, WHOLE);
	stream_case_fini(&c);
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void put_whole_call(struct gather *g, const char *index)
{
	put(g, "{\"type\":\"function_call\",\"name\":\"a\",\"call_id\":\"");
	put(g, index);
	put(g, "\",\"arguments\":\"{\\\"k\\\":\\\"");
	put_letters(g, CALL_BYTES);
	put(g, "\\\"}\"}");
}

/* All that its items said is said once more in the last event, which is then larger than any may be. */
static void calls_that_end_one_by_one_are_not_wanted_of_the_response(void **state)
{
	static const char *const indexes[CALLS] = { "0", "1", "2", "3", "4", "5" };
	struct arena_pool pool = { 0 };
	struct stream_case c;
	struct arena arena;
	struct gather g;

	(void)state;
	arena_init(&arena, &pool, 16 << 20);
	stream_case_init(&c, DIALECT_RESPONSES);
	gather_init(&g, &arena);
	for (uint32_t i = 0; i < CALLS; i++) {
		put(&g, "data: {\"type\":\"response.output_item.done\",\"output_index\":");
		put(&g, indexes[i]);
		put(&g, ",\"item\":");
		put_whole_call(&g, indexes[i]);
		put(&g, "}\n\n");
	}
	put(&g, "data: {\"type\":\"response.completed\",\"response\":{\"output\":[");
	for (uint32_t i = 0; i < CALLS; i++) {
		put(&g, i == 0 ? "" : ",");
		put_whole_call(&g, indexes[i]);
	}
	put(&g, "]}}\n\n");
	struct slice body = gather_flat(&g, &arena);
	assert_false(slice_absent(body));
	(void)stream_case_read(&c, body, (struct stream_cut){ .step = 0 });
	assert_int_equal(c.err, ERR_OK);
	assert_int_equal(c.result.block_count, CALLS);
	stream_case_fini(&c);
	arena_give(&arena);
	arena_pool_fini(&pool);
}

/* Which is worth the price of another answer: the server would take it for the end of the loop. */
static void a_call_that_only_the_response_has_is_asked_for_in_one_piece(void **state)
{
	static const char *const bodies[] = {
		SAY("a") SAID_AT("0", "a")
			COMPLETED_WITH(MESSAGE "," CALL_ITEM("c1", "a", "{}", "")),
		CALL("1", "c1", "a") ARGS("1", "{}") COMPLETED_WITH(MESSAGE "," CALL_ITEM(
			"c1", "a", "{}", "") "," CALL_ITEM("c2", "a", "{}", "")),
	};
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_RESPONSES);
	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		const char *why =
			stream_case_differs(&c, bodies[i],
					    "-32015 A call of the provider's answer was in none "
					    "of its stream's events | retryable");
		if (why != NULL)
			fail_msg("%s", why);
		assert_true(c.stream->too_large);
	}
	stream_case_fini(&c);
}

/* Echoes of the request, and what was not over yet. */
static void a_call_elsewhere_in_an_event_is_none_of_the_answer(void **state)
{
	static const char *const ends[] = {
		EVENT("completed", ",\"response\":{\"status\":\"completed\",\"output\":[]},"
				   "\"more\":[{\"type\":\"function_call\"}]"),
		EVENT("completed", ",\"response\":{\"output\":[],\"status\":\"completed\","
				   "\"input\":[{\"type\":\"function_call\"}]}"),
		EVENT("in_progress", ",\"response\":{\"output\":[{\"type\":\"function_call\"}]}")
			EVENT("completed",
			      ",\"response\":{\"status\":\"completed\",\"output\":[]}"),
	};
	struct stream_case c;
	char body[1024];

	(void)state;
	stream_case_init(&c, DIALECT_RESPONSES);
	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		(void)snprintf(body, sizeof(body), "%s%s", SAY("a") SAID_AT("0", "a"), ends[i]);
		(void)stream_case_read(&c, slice_str(body), (struct stream_cut){ .step = 0 });
		if (c.err != ERR_OK)
			fail_msg("%s: %s", ends[i], err_info(c.err)->reason);
		assert_int_equal(c.result.block_count, 1);
	}
	stream_case_fini(&c);
}

static void thinking_is_progress(void **state)
{
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_RESPONSES);
	(void)stream_case_run(&c, CREATED ADDED("0", REASONING), (struct stream_cut){ 0 });
	assert_false(c.progress.begun);
	(void)stream_case_run(
		&c, CREATED EVENT("reasoning_summary_text.delta", AT("0") ",\"delta\":\"hm\""),
		(struct stream_cut){ 0 });
	assert_true(c.progress.begun);
	assert_int_equal(c.progress.output_bytes, 2);
	assert_int_equal(c.progress.deltas, 1);
	stream_case_fini(&c);
}

static void want_of_memory_is_an_answer(void **state)
{
	static const char body[] = CREATED SAY_AT("0", "text") CALL("1", "c1", "a") ARGS("1", "{}")
		SAY_AT("2", "more") SAY_AT("3", "more") SAY_AT("4", "more") COMPLETED;
	struct stream_case c;
	size_t failures = 0;

	(void)state;
	stream_case_init(&c, DIALECT_RESPONSES);
	for (c.memory = 0;; c.memory += 64) {
		struct slice text = stream_case_read(&c, slice_str(body), (struct stream_cut){ 0 });
		assert_false(slice_absent(text));
		if (c.err == ERR_OK)
			break;
		assert_int_equal(c.err, ERR_BUSY);
		failures++;
	}
	assert_true(failures > 10);
	stream_case_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_assembled),
		cmocka_unit_test(calls_are_assembled),
		cmocka_unit_test(it_ends_as_the_response_says),
		cmocka_unit_test(failures_are_classified),
		cmocka_unit_test(an_answer_may_be_larger_than_any_event),
		cmocka_unit_test(calls_that_end_one_by_one_are_not_wanted_of_the_response),
		cmocka_unit_test(a_call_that_only_the_response_has_is_asked_for_in_one_piece),
		cmocka_unit_test(a_call_elsewhere_in_an_event_is_none_of_the_answer),
		cmocka_unit_test(thinking_is_progress),
		cmocka_unit_test(want_of_memory_is_an_answer),
	};
	return cmocka_run_group_tests_name("stream_responses", tests, NULL, NULL);
}
