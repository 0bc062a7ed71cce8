/* Events that are larger than a stream's own buffer, in all formats: an event may grow to its limit, and costs
 * no second call. */
#include "codec/base/must.h"
#include "codec/dialect/stream.h"
#include "codec/set.h"
#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { EVENT_MAX = 1 << 20 };

#define CHAT(delta) "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{" delta "}}]}\n\n"
#define CHAT_CALL(args)                                                           \
	"\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"a\"," \
	"\"arguments\":" args "}}]"
#define CHAT_END                                                                                \
	"data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: " \
	"[DONE]\n\n"

#define MESSAGE "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[]}}\n\n"
#define BLOCK(n, block)                                                                          \
	"data: {\"type\":\"content_block_start\",\"index\":" n ",\"content_block\":{" block "}}" \
	"\n\n"
#define DELTA(n, delta) \
	"data: {\"type\":\"content_block_delta\",\"index\":" n ",\"delta\":{" delta "}}\n\n"
#define MESSAGE_END                                                                             \
	"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: " \
	"{\"type\":\"message_stop\"}\n\n"

#define ITEM(n, item)                                                                          \
	"data: {\"type\":\"response.output_item.done\",\"output_index\":" n ",\"item\":{" item \
	"}}\n\n"
#define OUTPUT(output)                                                                        \
	"data: "                                                                              \
	"{\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":" \
	"[" output "]}}\n\n"
#define SAID \
	"data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"x\"}\n\n"
#define ARGUED                                                                                     \
	"data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":0,\"delta\":" \
	"\"{}\"}\n\n" ITEM("0", "\"type\":\"function_call\",\"call_id\":\"z\",\"name\":\"a\","     \
				"\"arguments\":\"{}\"")

/* `@` stands for the string that is large. */
static const struct row {
	const char *name;
	enum dialect_id dialect;
	const char *body;
	bool call; /* the large string is a call's, inside of an object */
	bool lost; /* it is not part of the answer: `x` is */
} rows[] = {
	{ "chat: text", DIALECT_OPENAI, CHAT("\"content\":\"@\"") CHAT_END, false, false },
	{ "chat: text behind others of its shape", DIALECT_OPENAI,
	  CHAT("\"content\":\"x\"") CHAT("\"content\":\"x\"") CHAT("\"content\":\"@\"") CHAT_END,
	  false, false },
	{ "chat: arguments", DIALECT_OPENAI, CHAT(CHAT_CALL("\"{\\\"k\\\":\\\"@\\\"}\"")) CHAT_END,
	  true, false },
	{ "chat: arguments that are an object", DIALECT_OPENAI,
	  CHAT(CHAT_CALL("{\"k\":\"@\"}")) CHAT_END, true, false },
	{ "chat: an old call", DIALECT_OPENAI,
	  CHAT("\"function_call\":{\"name\":\"a\",\"arguments\":\"{\\\"k\\\":\\\"@\\\"}\"}")
		  CHAT_END,
	  true, false },
	{ "chat: reasoning", DIALECT_OPENAI,
	  CHAT("\"reasoning_content\":\"@\"") CHAT("\"content\":\"x\"") CHAT_END, false, true },
	{ "chat: an image that nobody asked for", DIALECT_OPENAI,
	  CHAT("\"content\":\"x\",\"images\":[{\"image_url\":{\"url\":\"data:image/"
	       "png;base64,@\"}}]") CHAT_END,
	  false, true },
	{ "messages: text", DIALECT_ANTHROPIC,
	  MESSAGE BLOCK("0", "\"type\":\"text\",\"text\":\"\"")
		  DELTA("0", "\"type\":\"text_delta\",\"text\":\"@\"") MESSAGE_END,
	  false, false },
	{ "messages: a text's beginning", DIALECT_ANTHROPIC,
	  MESSAGE BLOCK("0", "\"type\":\"text\",\"text\":\"@\"") MESSAGE_END, false, false },
	{ "messages: arguments", DIALECT_ANTHROPIC,
	  MESSAGE BLOCK("0", "\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"a\",\"input\":{}")
		  DELTA("0",
			"\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"k\\\":\\\"@\\\"}\"")
			  MESSAGE_END,
	  true, false },
	{ "messages: a call's beginning", DIALECT_ANTHROPIC,
	  MESSAGE BLOCK("0",
			"\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"a\",\"input\":{\"k\":\"@\"}")
		  MESSAGE_END,
	  true, false },
	{ "messages: a signature", DIALECT_ANTHROPIC,
	  MESSAGE BLOCK("0", "\"type\":\"thinking\",\"thinking\":\"\"")
		  DELTA("0", "\"type\":\"signature_delta\",\"signature\":\"@\"")
			  BLOCK("1", "\"type\":\"text\",\"text\":\"x\"") MESSAGE_END,
	  false, true },
	{ "responses: a text's delta", DIALECT_RESPONSES,
	  "data: "
	  "{\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"@\"}\n\n" OUTPUT(
		  ""),
	  false, false },
	{ "responses: a text's end", DIALECT_RESPONSES,
	  "data: "
	  "{\"type\":\"response.output_text.done\",\"output_index\":0,\"text\":\"@\"}\n\n" OUTPUT(
		  ""),
	  false, false },
	{ "responses: arguments' delta", DIALECT_RESPONSES,
	  ITEM("1",
	       "\"type\":\"message\",\"content\":[]") "data: "
						      "{\"type\":\"response.output_item.added\","
						      "\"output_index\":0,\"item\":{\"type\":"
						      "\"function_call\",\"call_id\":\"c\","
						      "\"name\":\"a\",\"arguments\":\"\"}}\n\n"
						      "data: "
						      "{\"type\":\"response.function_call_"
						      "arguments.delta\",\"output_index\":0,"
						      "\"delta\":"
						      "\"{\\\"k\\\":\\\"@\\\"}\"}\n\n" OUTPUT(""),
	  true, false },
	{ "responses: a call's end", DIALECT_RESPONSES,
	  ITEM("0", "\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"a\",\"arguments\":"
		    "\"{\\\"k\\\":\\\"@\\\"}\"") OUTPUT(""),
	  true, false },
	{ "responses: a call's end behind another call's deltas", DIALECT_RESPONSES,
	  ARGUED ITEM("1",
		      "\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"a\",\"arguments\":"
		      "\"{\\\"k\\\":\\\"@\\\"}\"") OUTPUT(""),
	  true, false },
	{ "responses: a message's end", DIALECT_RESPONSES,
	  ITEM("0", "\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"@\"}]")
		  OUTPUT(""),
	  false, false },
	{ "responses: the response's end alone", DIALECT_RESPONSES,
	  OUTPUT("{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"@\"}]}"),
	  false, false },
	{ "responses: encrypted reasoning", DIALECT_RESPONSES,
	  ITEM("0", "\"type\":\"reasoning\",\"id\":\"r\",\"encrypted_content\":\"@\"") ITEM(
		  "1",
		  "\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"x\"}]")
		  OUTPUT(""),
	  false, true },
	{ "responses: what is repeated", DIALECT_RESPONSES,
	  SAID
	  "data: "
	  "{\"type\":\"response.output_text.done\",\"output_index\":0,\"text\":\"@\"}\n\n" OUTPUT(
		  ""),
	  false, true },
};

/* The row's body with `len` bytes in the place of its `@`; the caller's to free. */
static char *with_large(const char *body, size_t len)
{
	const char *at = strchr(body, '@');
	char *text = malloc(strlen(body) + len);

	must(text != NULL && at != NULL);
	char *pen = mempcpy(text, body, (size_t)(at - body));
	(void)memset(pen, 'L', len);
	(void)strcpy(pen + len, at + 1);
	return text;
}

/* Bytes of the large string that the answer has. */
static size_t large_bytes(const struct stream_case *c)
{
	size_t count = 0;

	for (uint32_t i = 0; i < c->result.block_count; i++) {
		const struct result_block *block = &c->result.blocks[i];
		const struct slice said = block->is_tool_use ? block->input : block->text;
		for (size_t at = 0; at < said.len; at++)
			count += said.at[at] == 'L';
	}
	return count;
}

static void begin(struct stream_case *c, const struct row *row)
{
	stream_case_init(c, row->dialect);
	c->limits.event_bytes_max = EVENT_MAX;
	c->context.replay_reasoning = true;
}

static void an_event_of_any_size_up_to_the_limit_is_read(void **state)
{
	static const size_t sizes[] = { 16384, 16389, STREAM_EVENT_ROOM - 1, STREAM_EVENT_ROOM,
					66000, 300000 };
	static const size_t steps[] = { 0, 1447, 16384, STREAM_EVENT_ROOM };
	struct stream_case c;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		begin(&c, &rows[i]);
		for (size_t size = 0; size < COUNT_OF(sizes); size++) {
			char *body = with_large(rows[i].body, sizes[size]);
			for (size_t step = 0; step < COUNT_OF(steps); step++) {
				(void)stream_case_run(&c, body,
						      (struct stream_cut){ .step = steps[step] });
				const size_t want = rows[i].lost ? 0 : sizes[size];
				if (c.err != ERR_OK || c.stream->too_large ||
				    large_bytes(&c) != want)
					fail_msg("%s, %zu by %zu: %zu bytes, %.200s", rows[i].name,
						 sizes[size], steps[step],
						 c.err == ERR_OK ? large_bytes(&c) : 0,
						 c.err == ERR_OK ? "" : c.failure.detail);
			}
			free(body);
		}
		stream_case_fini(&c);
	}
}

static void reasoning_that_came_in_a_large_event_goes_back(void **state)
{
	static const struct row kept[] = {
		{ "a signature", DIALECT_ANTHROPIC,
		  MESSAGE BLOCK("0", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
			  DELTA("0", "\"type\":\"signature_delta\",\"signature\":\"@\"") BLOCK(
				  "1",
				  "\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"a\",\"input\":{}")
				  MESSAGE_END,
		  false, false },
		{ "redacted thinking", DIALECT_ANTHROPIC,
		  MESSAGE BLOCK("0", "\"type\":\"redacted_thinking\",\"data\":\"@\"") BLOCK(
			  "1", "\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"a\",\"input\":{}")
			  MESSAGE_END,
		  false, false },
		{ "encrypted reasoning", DIALECT_RESPONSES,
		  ITEM("0", "\"type\":\"reasoning\",\"id\":\"r\",\"encrypted_content\":\"@\"")
			  ITEM("1", "\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"a\","
				    "\"arguments\":\"{}\"") OUTPUT(""),
		  false, false },
	};
	struct stream_case c;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(kept); i++) {
		begin(&c, &kept[i]);
		char *body = with_large(kept[i].body, 200000);
		(void)stream_case_run(&c, body, (struct stream_cut){ .step = 1447 });
		if (c.err != ERR_OK || c.result.replay_lost || c.result.replay.len < 200000)
			fail_msg("%s: %zu", kept[i].name, c.result.replay.len);
		stream_case_fini(&c);
		free(body);
	}
}

/* Doubling: every byte is copied about once, and a buffer that was outgrown goes back at once. */
static void a_growing_event_takes_no_more_memory_than_twice_its_size(void **state)
{
	char *body = with_large(rows[0].body, EVENT_MAX / 2);
	struct stream_case c;
	size_t most = 0;

	(void)state;
	begin(&c, &rows[0]);
	const struct provider_answer head = { .status = 200, .chance = "chance" };
	stream_open(c.stream, c.dialect, &c.context, &head, &c.limits, c.work, &c.arena);
	assert_int_equal(stream_held(c.stream, &c.limits), 0);
	for (size_t at = 0, len; at < strlen(body); at += len) {
		len = strlen(body + at) < 1447 ? strlen(body + at) : 1447;
		(void)stream_feed(c.stream, slice_of(body + at, len));
		const size_t held = stream_held(c.stream, &c.limits);
		most = held > most ? held : most;
		assert_true(held <= 2 * (at + len + STREAM_EVENT_ROOM));
	}
	assert_true(most >= EVENT_MAX / 2 && c.pool.mallocs < 20 + EVENT_MAX / ARENA_CHUNK_BYTES);
	/* only the answer is held once its event is over */
	assert_int_equal(stream_held(c.stream, &c.limits), EVENT_MAX / 2 + 1);
	assert_int_equal(stream_end(c.stream, STREAM_ENDED, &c.result, &c.failure), ERR_OK);
	stream_case_fini(&c);
	free(body);
}

static void an_event_over_the_limit_is_a_clear_error_and_not_asked_for_again(void **state)
{
	struct stream_case c;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		if (rows[i].lost) /* what repeats or goes back may be left out */
			continue;
		begin(&c, &rows[i]);
		char *body = with_large(rows[i].body, EVENT_MAX);
		const char *have = stream_case_run(&c, body, (struct stream_cut){ .step = 16384 });
		if (c.err != ERR_PROVIDER_ANSWER || c.stream->too_large ||
		    strstr(have, "too large") == NULL)
			fail_msg("%s: %.200s", rows[i].name, have);
		free(body);
		stream_case_fini(&c);
	}
}

static void memory_that_is_refused_while_an_event_grows_is_a_named_error(void **state)
{
	char *body = with_large(rows[0].body, 300000);
	struct stream_case c;
	size_t failures = 0;

	(void)state;
	for (size_t nth = 1;; nth++) {
		begin(&c, &rows[0]);
		c.pool.fail_next = nth;
		(void)stream_case_read(&c, slice_str(body), (struct stream_cut){ .step = 16384 });
		const enum err err = c.err;
		c.pool.fail_next = 0;
		stream_case_fini(&c);
		if (err == ERR_OK)
			break;
		assert_int_equal(err, ERR_BUSY);
		failures++;
	}
	assert_true(failures > 3);
	free(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_of_any_size_up_to_the_limit_is_read),
		cmocka_unit_test(reasoning_that_came_in_a_large_event_goes_back),
		cmocka_unit_test(a_growing_event_takes_no_more_memory_than_twice_its_size),
		cmocka_unit_test(an_event_over_the_limit_is_a_clear_error_and_not_asked_for_again),
		cmocka_unit_test(memory_that_is_refused_while_an_event_grows_is_a_named_error),
	};
	return cmocka_run_group_tests_name("stream_large", tests, NULL, NULL);
}
