/* What goes back to the provider, of answers that stream in: however they are cut. */
#include "codec/base/must.h"
#include "codec/dialect/replay.h"
#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define EVENT(json) "data: {" json "}\n\n"

/* ---- Messages ---- */

#define BEGIN EVENT("\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"content\":[]}")
#define START(index, block) \
	EVENT("\"type\":\"content_block_start\",\"index\":" index ",\"content_block\":{" block "}")
#define DELTA(index, delta) \
	EVENT("\"type\":\"content_block_delta\",\"index\":" index ",\"delta\":{" delta "}")
#define END(reason)                                                                    \
	EVENT("\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason "\"}") \
	EVENT("\"type\":\"message_stop\"")
#define THINKING(index)                                                            \
	START(index, "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"") \
	DELTA(index, "\"type\":\"thinking_delta\",\"thinking\":\"one \\\"\"")      \
	DELTA(index, "\"type\":\"thinking_delta\",\"thinking\":\"two\\u00e9\"")    \
	DELTA(index, "\"type\":\"signature_delta\",\"signature\":\"si\"")          \
	DELTA(index, "\"type\":\"signature_delta\",\"signature\":\"gn\"")
#define THOUGHT "{\"type\":\"thinking\",\"thinking\":\"one \\\"two\\u00e9\",\"signature\":\"sign\"}"
#define USE(index)                                                                     \
	START(index, "\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"a\",\"input\":{}," \
		     "\"caller\":{\"type\":\"direct\"}")                               \
	DELTA(index, "\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"x\\\":\"") \
	DELTA(index, "\"type\":\"input_json_delta\",\"partial_json\":\" 1}\"")
#define USED                                                                       \
	"{\"type\":\"tool_use\",\"id\":\"c\",\"name\":\"a\",\"input\":{\"x\": 1}," \
	"\"caller\":{\"type\":\"direct\"}}"

/* ---- Chat Completions ---- */

#define CHUNK(delta) EVENT("\"choices\":[{\"index\":0,\"delta\":{" delta "}}]")
#define CALLED(more)                                                                    \
	CHUNK("\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"a\"," \
	      "\"arguments\":\"{}\"}" more "}]")
#define WITHOUT_ID(signature)                                              \
	"{\"index\":0,\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}," \
	"\"extra_content\":{\"s\":\"" signature "\"}}"
#define DETAILS(list) CHUNK("\"reasoning_details\":[" list "]")
#define TEXT_DETAIL(text)                                                                       \
	"{\"type\":\"reasoning.text\",\"text\":" text ",\"signature\":null,\"more\":{\"x\":1}," \
	"\"format\":\"f\",\"index\":0}"
#define SIGNED(text)                                                                               \
	"{\"type\":\"reasoning.text\",\"text\":\"" text "\",\"signature\":\"" text "\",\"index\":" \
	"0}"
#define SUMMARY(text) "{\"type\":\"reasoning.summary\",\"summary\":" text "}"
#define ENCRYPTED(data) \
	"{ \"type\":\"reasoning.encrypted\", \"data\":\"" data "\",\"id\":null,\"index\":0}"
#define NUMBERED(type, index, id) \
	"{\"type\":\"reasoning." type "\",\"text\":\"t\",\"index\":" index ",\"id\":" id "}"
#define FINISH                                                                             \
	EVENT("\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]") \
	"data: [DONE]\n\n"

/* ---- Responses ---- */

#define ADDED(index, item)                                                                         \
	EVENT("\"type\":\"response.output_item.added\",\"output_index\":" index ",\"item\":{" item \
	      "}")
#define DONE(index, item)                                                                         \
	EVENT("\"type\":\"response.output_item.done\",\"output_index\":" index ",\"item\":{" item \
	      "}")
#define CALL_ITEM(arguments)                                                         \
	"\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"c\",\"name\":\"a\"," \
	"\"arguments\":\"" arguments "\""
#define FUNCTION(index)                                                                     \
	ADDED(index, CALL_ITEM(""))                                                         \
	EVENT("\"type\":\"response.function_call_arguments.delta\",\"output_index\":" index \
	      ",\"delta\":\"{}\"")                                                          \
	DONE(index, CALL_ITEM("{}"))
#define COMPLETED EVENT("\"type\":\"response.completed\",\"response\":{\"status\":\"completed\"}")
#define REASONING(encrypted) \
	"\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[{\"text\":\"s\"}]" encrypted

struct row {
	const char *name;
	enum dialect_id id;
	const char *stream, *replay; /* NULL: nothing */
	bool lost;
};

static const struct row rows[] = {
	{ "thinking and a call", DIALECT_ANTHROPIC, BEGIN THINKING("0") USE("1") END("tool_use"),
	  "[" THOUGHT "," USED "]", false },
	{ "text in between, and redacted thinking", DIALECT_ANTHROPIC,
	  BEGIN THINKING("0") START("1", "\"type\":\"text\",\"text\":\"He\"")
		  DELTA("1", "\"type\":\"text_delta\",\"text\":\"y\"")
			  START("2", "\"type\":\"redacted_thinking\",\"data\":\"xyz\"") USE("3")
				  END("tool_use"),
	  "[" THOUGHT ",{\"type\":\"text\",\"text\":\"Hey\"},"
	  "{\"type\":\"redacted_thinking\",\"data\":\"xyz\"}," USED "]",
	  false },
	{ "an empty text is left out", DIALECT_ANTHROPIC,
	  BEGIN START("0", "\"type\":\"text\",\"text\":\"\"") THINKING("1") USE("2")
		  END("tool_use"),
	  "[" THOUGHT "," USED "]", false },
	{ "so is one that is blank, wherever it is", DIALECT_ANTHROPIC,
	  BEGIN THINKING("0") START("1", "\"type\":\"text\",\"text\":\"\"")
		  DELTA("1", "\"type\":\"text_delta\",\"text\":\"\\n\"")
			  DELTA("1", "\"type\":\"text_delta\",\"text\":\" \\u00a0\"") USE("2")
				  START("3", "\"type\":\"text\",\"text\":\"\\n\"") END("tool_use"),
	  "[" THOUGHT "," USED "]", false },
	{ "one that only begins so stays as it is", DIALECT_ANTHROPIC,
	  BEGIN THINKING("0") START("1", "\"type\":\"text\",\"text\":\"\\n\"")
		  DELTA("1", "\"type\":\"text_delta\",\"text\":\" x\"") USE("2") END("tool_use"),
	  "[" THOUGHT ",{\"type\":\"text\",\"text\":\"\\n x\"}," USED "]", false },
	{ "a signature that was not announced", DIALECT_ANTHROPIC,
	  BEGIN START("0", "\"type\":\"thinking\",\"thinking\":\"\"") DELTA(
		  "0", "\"type\":\"signature_delta\",\"signature\":\"s\"") USE("1") END("tool_use"),
	  "[{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"s\"}," USED "]", false },
	{ "a call alone", DIALECT_ANTHROPIC, BEGIN USE("0") END("tool_use"), NULL, false },
	{ "thinking without a call", DIALECT_ANTHROPIC,
	  BEGIN THINKING("0") START("1", "\"type\":\"text\",\"text\":\"x\"") END("end_turn"), NULL,
	  true },
	{ "a call that was cut", DIALECT_ANTHROPIC, BEGIN THINKING("0") USE("1") END("max_tokens"),
	  NULL, true },
	{ "thinking that was cut behind a call", DIALECT_ANTHROPIC,
	  BEGIN USE("0") THINKING("1") END("max_tokens"), NULL, true },
	{ "a block of a kind that nobody knows", DIALECT_ANTHROPIC,
	  BEGIN THINKING("0") START("1", "\"type\":\"hologram\"") USE("2") END("tool_use"), NULL,
	  true },
	{ "reasoning_content", DIALECT_OPENAI,
	  CHUNK("\"reasoning_content\":\"one \"") CHUNK("\"reasoning_content\":\"\\u00e9\"")
		  CALLED("") FINISH,
	  "{\"reasoning_content\":\"one \\u00e9\"}", false },
	{ "the other spelling", DIALECT_OPENAI, CHUNK("\"reasoning\":\"r\"") CALLED("") FINISH,
	  "{\"reasoning\":\"r\"}", false },
	{ "the signature of a call", DIALECT_OPENAI,
	  CALLED(",\"extra_content\":{\"google\":{\"thought_signature\":\"t\"}}") FINISH,
	  "{\"extra_content\":[{\"google\":{\"thought_signature\":\"t\"}}]}", false },
	{ "the signatures of calls at one index without ids", DIALECT_OPENAI,
	  CHUNK("\"tool_calls\":[" WITHOUT_ID("t") "]")
		  CHUNK("\"tool_calls\":[" WITHOUT_ID("u") "]") FINISH,
	  "{\"extra_content\":[{\"s\":\"t\"},{\"s\":\"u\"}]}", false },
	{ "a text in fragments, and its signature behind them", DIALECT_OPENAI,
	  DETAILS(TEXT_DETAIL("\"Let \\\"\"")) DETAILS(TEXT_DETAIL("\"me\\u00e9\""))
		  DETAILS("{\"type\":\"reasoning.text\",\"signature\":\"s+/\",\"index\":0}")
			  CALLED("") FINISH,
	  "{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"Let \\\"me\\u00e9\","
	  "\"signature\":\"s+/\",\"format\":\"f\",\"index\":0,\"more\":{\"x\":1}}]}",
	  false },
	{ "what comes behind a signature is another detail", DIALECT_OPENAI,
	  DETAILS(SIGNED("a")) DETAILS(SIGNED("b")) CALLED("") FINISH,
	  "{\"reasoning_details\":[" SIGNED("a") "," SIGNED("b") "]}", false },
	{ "several in one delta, with an encrypted one as it came", DIALECT_OPENAI,
	  DETAILS(SUMMARY("\"a\"") "," SUMMARY("\"b\"") "," ENCRYPTED("x")) DETAILS(ENCRYPTED("y"))
		  CALLED("") FINISH,
	  "{\"reasoning_details\":[{\"type\":\"reasoning.summary\",\"summary\":\"ab\"}," ENCRYPTED(
		  "x") "," ENCRYPTED("y") "]}",
	  false },
	{ "another type, index or id is another detail", DIALECT_OPENAI,
	  DETAILS(NUMBERED("text", "0", "null")) DETAILS(NUMBERED("text", "1", "null"))
		  DETAILS(NUMBERED("text", "1", "\"i\"")) DETAILS(NUMBERED("text", "1", "\"j\""))
			  DETAILS(SUMMARY("\"t\"")) CALLED("") FINISH,
	  "{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"t\",\"index\":0},"
	  "{\"type\":\"reasoning.text\",\"text\":\"tt\",\"id\":\"i\",\"index\":1},"
	  "{\"type\":\"reasoning.text\",\"text\":\"t\",\"id\":\"j\",\"index\":1},"
	  "{\"type\":\"reasoning.summary\",\"summary\":\"t\"}]}",
	  false },
	{ "a character that was cut in two", DIALECT_OPENAI,
	  DETAILS(TEXT_DETAIL("\"\\ud83d\"")) DETAILS(TEXT_DETAIL("\"\\ude00\"")) CALLED("") FINISH,
	  "{\"reasoning_details\":[{\"type\":\"reasoning.text\",\"text\":\"\\ud83d\\ude00\","
	  "\"format\":\"f\",\"index\":0,\"more\":{\"x\":1}}]}",
	  false },
	{ "half a character", DIALECT_OPENAI, DETAILS(TEXT_DETAIL("\"\\ud83d\"")) CALLED("") FINISH,
	  NULL, true },
	{ "details of a type that nobody knows", DIALECT_OPENAI,
	  DETAILS("{\"type\":\"reasoning.dance\",\"text\":\"a\"},{\"text\":\"b\"}") CALLED("")
		  FINISH,
	  "{\"reasoning_details\":[{\"type\":\"reasoning.dance\",\"text\":\"a\"},"
	  "{\"text\":\"b\"}]}",
	  false },
	{ "details that are none", DIALECT_OPENAI, DETAILS("\"x\"") CALLED("") FINISH, NULL, true },
	{ "an empty list", DIALECT_OPENAI, DETAILS("") CALLED("") FINISH, NULL, false },
	{ "details without a call", DIALECT_OPENAI,
	  DETAILS(SUMMARY("\"s\"")) CHUNK("\"content\":\"x\"")
		  EVENT("\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]"),
	  NULL, true },
	{ "neither", DIALECT_OPENAI, CALLED("") FINISH, NULL, false },
	{ "encrypted reasoning", DIALECT_RESPONSES,
	  ADDED("0", REASONING(",\"encrypted_content\":\"\""))
		  DONE("0", REASONING(",\"encrypted_content\":\"e\",\"status\":null")) FUNCTION("1")
			  COMPLETED,
	  "[{\"type\":\"reasoning\",\"id\":\"rs\",\"summary\":[{\"text\":\"s\"}],"
	  "\"encrypted_content\":\"e\"},{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":"
	  "\"c\","
	  "\"name\":\"a\",\"arguments\":\"{}\"}]",
	  false },
	{ "reasoning that nobody could read again", DIALECT_RESPONSES,
	  ADDED("0", REASONING("")) DONE("0", REASONING("")) FUNCTION("1") COMPLETED, NULL, false },
	{ "reasoning that did not end", DIALECT_RESPONSES,
	  ADDED("0", REASONING("")) ADDED("1", REASONING(""))
		  DONE("1", REASONING(",\"encrypted_content\":\"e\"")) FUNCTION("2") COMPLETED,
	  NULL, true },
};

static void assert_row(struct stream_case *c, const struct row *row, struct stream_cut cut)
{
	(void)stream_case_run(c, row->stream, cut);
	if (c->err != ERR_OK)
		fail_msg("%s: %s", row->name, c->why);
	const struct slice have = c->result.replay;
	if (row->replay == NULL ? !slice_absent(have) : !slice_eq(have, slice_str(row->replay)))
		fail_msg("%s:\n  have %.*s\n  want %s", row->name, (int)have.len,
			 have.at == NULL ? "" : have.at, row->replay == NULL ? "" : row->replay);
	if (c->result.replay_lost != row->lost)
		fail_msg("%s: lost or not", row->name);
}

static void what_goes_back_does_not_depend_on_how_the_stream_is_cut(void **state)
{
	struct stream_case c;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		stream_case_init(&c, rows[i].id);
		c.context.replay_reasoning = true;
		assert_row(&c, &rows[i], (struct stream_cut){ .step = 0 });
		assert_row(&c, &rows[i], (struct stream_cut){ .step = 1 });
		for (size_t at = 1; at < strlen(rows[i].stream); at += 7)
			assert_row(&c, &rows[i], (struct stream_cut){ .once = at });
		stream_case_fini(&c);
	}
}

static void nothing_is_kept_where_there_are_no_calls_to_come(void **state)
{
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_ANTHROPIC);
	c.context.calls_forbidden = true;
	(void)stream_case_run(&c, rows[0].stream, (struct stream_cut){ .step = 0 });
	assert_int_equal(c.err, ERR_OK);
	assert_false(c.result.replay_lost);
	assert_int_equal(c.stream->private_kept, 0);
	stream_case_fini(&c);
}

/* Thinking that is larger than what is kept costs the answer nothing. */
static void too_much_of_it_is_lost_and_the_answer_is_not(void **state)
{
	static const char front[] = BEGIN START("0", "\"type\":\"thinking\",\"thinking\":\"\"");
	static const char back[] = USE("1") END("tool_use");
	enum { DELTA_BYTES = 32 * 1024, DELTAS = REPLAY_CONTENT_MAX / DELTA_BYTES + 1 };
	char *body = malloc((size_t)DELTAS * (DELTA_BYTES + 200) + sizeof(front) + sizeof(back));
	struct stream_case c;
	char *at = body;

	(void)state;
	must(body != NULL);
	at = stpcpy(at, front);
	for (int i = 0; i < DELTAS; i++) {
		at = stpcpy(at, "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{"
				"\"type\":\"thinking_delta\",\"thinking\":\"");
		(void)memset(at, 'x', DELTA_BYTES);
		at = stpcpy(at + DELTA_BYTES, "\"}}\n\n");
	}
	(void)stpcpy(at, back);
	stream_case_init(&c, DIALECT_ANTHROPIC);
	(void)stream_case_run(&c, body, (struct stream_cut){ .step = 0 });
	assert_int_equal(c.err, ERR_OK);
	assert_true(c.result.blocks[0].is_tool_use);
	assert_true(slice_absent(c.result.replay) && c.result.replay_lost);
	assert_true(c.used < REPLAY_CONTENT_MAX + 64 * 1024);
	stream_case_fini(&c);
	free(body);
}

/* Text of which there is much is kept in pieces, which may end inside an escape. */
static void a_long_text_is_left_out_if_all_of_it_is_blank(void **state)
{
	static const char *const ends[] = { "", "x" };
	enum { UNITS = 4000 };
	char *body = malloc(UNITS * 6 + 4096);
	struct stream_case c;

	(void)state;
	must(body != NULL);
	for (size_t i = 0; i < COUNT_OF(ends); i++) {
		char *at = stpcpy(body, BEGIN THINKING("0") START("1", "\"type\":\"text\",\"text\":"
								       "\"\""));
		at = stpcpy(at, "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{"
				"\"type\":\"text_delta\",\"text\":\" ");
		for (int unit = 0; unit < UNITS; unit++)
			at = stpcpy(at, "\\u2003");
		at = stpcpy(stpcpy(at, ends[i]), "\"}}\n\n");
		(void)stpcpy(at, USE("2") END("tool_use"));
		stream_case_init(&c, DIALECT_ANTHROPIC);
		(void)stream_case_run(&c, body, (struct stream_cut){ .step = 0 });
		assert_int_equal(c.err, ERR_OK);
		const struct slice have = c.result.replay;
		assert_false(slice_absent(have));
		assert_int_equal(memmem(have.at, have.len, "\"text\"", 6) != NULL,
				 ends[i][0] != '\0');
		stream_case_fini(&c);
	}
	free(body);
}

enum { UNIT = 1000 }; /* bytes of what is written n times below */

static char *put_units(char *at, int units)
{
	(void)memset(at, 'A', (size_t)units * UNIT);
	return at + units * UNIT;
}

/* A reasoning item with so many units of encrypted content, and a part of its summary for each of the other. */
static char *put_reasoning(char *at, int encrypted, int summary)
{
	at = stpcpy(at, "{\"type\":\"reasoning\",\"id\":\"rs\",\"encrypted_content\":\"");
	at = stpcpy(put_units(at, encrypted), "\",\"summary\":[");
	for (int i = 0; i < summary; i++) {
		at = stpcpy(at, i == 0 ? "" : ",");
		at = stpcpy(at, "{\"type\":\"summary_text\",\"text\":\"");
		at = stpcpy(put_units(at, 1), "\"}");
	}
	return stpcpy(at, "]}");
}

/* Whether it came as the end of an item, or where all is said in the last event. */
static void reasoning_larger_than_is_kept_is_lost_and_the_answer_is_not(void **state)
{
	static const struct {
		int encrypted, summary;
		bool lost;
	} items[] = {
		{ 61, 0, false },  { 1040, 0, false }, { 500, 500, false }, { 1050, 0, true },
		{ 1500, 0, true }, { 1, 1050, true },  { 700, 700, true },
	};
	char *body = malloc(2 * REPLAY_CONTENT_MAX);
	struct stream_case c;

	(void)state;
	must(body != NULL);
	for (size_t i = 0; i < 2 * COUNT_OF(items); i++) {
		const bool at_once = i >= COUNT_OF(items);
		const int encrypted = items[i % COUNT_OF(items)].encrypted;
		const int summary = items[i % COUNT_OF(items)].summary;
		if (at_once && summary != 0)
			continue;
		char *at = stpcpy(body,
				  at_once ? "data: {\"type\":\"response.completed\",\"response\":"
					    "{\"status\":\"completed\",\"output\":["
					  : "data: {\"type\":\"response.output_item.done\","
					    "\"output_index\":0,\"item\":");
		at = put_reasoning(at, encrypted, summary);
		at = stpcpy(at, at_once ? ",{" CALL_ITEM("{}") "}]}}\n\n"
					: "}\n\n" FUNCTION("1") COMPLETED);
		stream_case_init(&c, DIALECT_RESPONSES);
		c.context.replay_reasoning = true;
		c.limits.event_bytes_max = 2 * REPLAY_CONTENT_MAX;
		for (size_t step = 0; step < 3000; step = 4 * step + 1) {
			(void)stream_case_run(&c, body, (struct stream_cut){ .step = step });
			if (c.err != ERR_OK || !c.result.blocks[0].is_tool_use)
				fail_msg("%d, %d: %s", encrypted, summary, c.why);
			if (c.result.replay_lost != items[i % COUNT_OF(items)].lost ||
			    slice_absent(c.result.replay) != c.result.replay_lost)
				fail_msg("%d, %d: lost or not", encrypted, summary);
		}
		stream_case_fini(&c);
	}
	free(body);
}

/* Of such an event there is only the front: a block's beginning, or a delta of one. */
static void thinking_larger_than_an_event_is_lost_and_the_answer_is_not(void **state)
{
	static const struct {
		const char *name, *front, *back;
		bool forbidden, fails;
	} events[] = {
		{ "redacted thinking",
		  "content_block_start\",\"index\":0,\"content_block\":{\"type\":"
		  "\"redacted_thinking\",\"data\":\"",
		  "\"}}\n\n" USE("1"), false, false },
		{ "a signature",
		  "content_block_delta\",\"index\":7,\"delta\":{\"type\":"
		  "\"signature_delta\",\"signature\":\"",
		  "\"}}\n\n" USE("1"), false, false },
		{ "a signature where nothing is kept",
		  "content_block_delta\",\"index\":7,\"delta\":{"
		  "\"type\":\"signature_delta\",\"signature\":\"",
		  "\"}}\n\n", true, false },
		{ "what the provider has found",
		  "content_block_start\",\"index\":0,\"content_block\":{"
		  "\"type\":\"web_search_tool_result\",\"content\":[{\"encrypted_content\":\"",
		  "\"}]}}\n\n" USE("1"), false, false },
		{ "a text",
		  "content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
		  "\"text\":\"",
		  "\"}}\n\n", false, true },
		{ "a block whose index was used before",
		  "content_block_start\",\"index\":7,\"content_block\":{"
		  "\"type\":\"redacted_thinking\",\"data\":\"",
		  "\"}}\n\n" USE("1"), false, false },
		{ "a delta of no block",
		  "content_block_delta\",\"index\":0,\"delta\":{\"thinking\":\"", "\"}}\n\n", false,
		  true },
		{ "a delta of a call",
		  "content_block_delta\",\"index\":8,\"delta\":{\"thinking\":\"", "\"}}\n\n", false,
		  true },
		{ "the message", "message_delta\",\"delta\":{\"x\":\"", "\"}}\n\n", false, true },
	};
	char *body = malloc(256 * 1024);
	struct stream_case c;

	(void)state;
	must(body != NULL);
	for (size_t i = 0; i < COUNT_OF(events); i++) {
		char *at = stpcpy(body, BEGIN THINKING("7"));
		at = stpcpy(at, events[i].fails ? USE("8") : "");
		at = stpcpy(stpcpy(at, "data: {\"type\":\""), events[i].front);
		at = stpcpy(put_units(at, 100), events[i].back);
		(void)stpcpy(at, START("2", "\"type\":\"text\",\"text\":\"x\"") END("tool_use"));
		stream_case_init(&c, DIALECT_ANTHROPIC);
		c.context.calls_forbidden = events[i].forbidden;
		for (size_t step = 0; step < 300000; step = 3 * step + 1) {
			(void)stream_case_run(&c, body, (struct stream_cut){ .step = step });
			if ((c.err != ERR_OK) != events[i].fails || c.stream->too_large)
				fail_msg("%s, by %zu: %s", events[i].name, step, c.why);
			if (c.err == ERR_OK && (!slice_absent(c.result.replay) ||
						c.result.replay_lost == events[i].forbidden))
				fail_msg("%s: lost or not", events[i].name);
		}
		stream_case_fini(&c);
	}
	free(body);
}

/* Each of which is another one: they take more memory than they have bytes. */
static void too_many_details_are_lost_and_the_answer_is_not(void **state)
{
	enum { ROW_MAX = 200, ROWS = REPLAY_CONTENT_MAX / 512 };
	static const char back[] = CALLED("") FINISH;
	char *body = malloc((size_t)ROWS * ROW_MAX + sizeof(back));
	struct stream_case c;
	char *at = body;

	(void)state;
	must(body != NULL);
	for (int i = 0; i < ROWS; i++)
		at += snprintf(
			at, ROW_MAX,
			"data: {\"choices\":[{\"index\":0,\"delta\":{\"reasoning_details\":"
			"[{\"type\":\"reasoning.text\",\"text\":\"x\",\"index\":%d}]}}]}\n\n",
			i);
	(void)stpcpy(at, back);
	stream_case_init(&c, DIALECT_OPENAI);
	(void)stream_case_run(&c, body, (struct stream_cut){ .step = 0 });
	assert_int_equal(c.err, ERR_OK);
	assert_true(c.result.blocks[0].is_tool_use);
	assert_true(slice_absent(c.result.replay) && c.result.replay_lost);
	assert_true(c.used < REPLAY_CONTENT_MAX + 64 * 1024);
	stream_case_fini(&c);
	free(body);
}

/* The next of `count` words, by a generator that is the same every time. */
static const char *one_of(uint64_t *seed, const char *const *words, size_t count)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return words[(*seed >> 33) % count];
}

#define DETAILS_BEGIN "data: {\"choices\":[{\"delta\":{\"reasoning_details\":["
#define NEXT_DELTA "]}}]}\n\n" DETAILS_BEGIN

/* Deltas of details with any members in any order, some of them no details, in *body. */
static void put_any_details(uint64_t *seed, char *body, size_t room)
{
	static const char *const types[] = { "\"type\":\"reasoning.text\"",
					     "\"type\":\"reasoning\\u002etext\"",
					     "\"type\":\"reasoning.summary\"",
					     "\"type\":\"reasoning.encrypted\"",
					     "\"type\":null",
					     "\"kind\":1" };
	static const char *const members[] = { "",
					       ",\"text\":\"\"",
					       ",\"text\":\"a\\\"\\\\\"",
					       ",\"text\":\"\\ud83d\"",
					       ",\"text\":\"\\ude00\"",
					       ",\"te\\u0078t\":\"esc\"",
					       ",\"text\":{}",
					       ",\"summary\":\"s\"",
					       ",\"summary\":null" };
	static const char *const others[] = { "",
					      ",\"signature\":\"\"",
					      ",\"signature\":\"s/+\"",
					      ",\"signature\":null",
					      ",\"id\":null",
					      ",\"id\":\"i\"",
					      ",\"format\":\"f\"",
					      ",\"data\":\"d\"",
					      ",\"\":[1,{\"text\":2}]",
					      ",\"x\\ud83d\":\"y\\ud83d\"" };
	static const char *const ends[] = { "", ",\"index\":0", ",\"index\":1", ",\"index\":null" };
	static const char *const between[] = { NEXT_DELTA, ",", "," };
	char *at = stpcpy(body, DETAILS_BEGIN);

	for (int i = 0; i < 4; i++) {
		if (i != 0)
			at = stpcpy(at, one_of(seed, between, 3));
		at = stpcpy(stpcpy(at, "{"), one_of(seed, types, 6));
		at = stpcpy(at, one_of(seed, members, 9));
		at = stpcpy(at, one_of(seed, others, 10));
		at = stpcpy(stpcpy(at, one_of(seed, ends, 4)), "}");
	}
	at = stpcpy(at, "]}}]}\n\n" CALLED("") FINISH);
	must((size_t)(at - body) < room);
}

/* It gets into the bodies of later requests. */
static void whatever_details_come_what_goes_back_is_json(void **state)
{
	char body[4096];
	uint64_t seed = 1;
	uint32_t kept = 0;
	struct stream_case c;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		put_any_details(&seed, body, sizeof(body));
		stream_case_init(&c, DIALECT_OPENAI);
		(void)stream_case_run(&c, body, (struct stream_cut){ .step = (size_t)(i % 5) });
		if (c.err != ERR_OK)
			fail_msg("%s: %s", c.why, body);
		const struct slice back = c.result.replay;
		if (!slice_absent(back) && !json_valid(back, NULL, c.work, NULL))
			fail_msg("%.*s\n of %s", (int)back.len, back.at, body);
		if (slice_absent(back) != c.result.replay_lost)
			fail_msg("lost without a word: %s", body);
		kept += !slice_absent(back);
		stream_case_fini(&c);
	}
	assert_true(kept > 300 && kept < 3000); /* else it shows nothing */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_goes_back_does_not_depend_on_how_the_stream_is_cut),
		cmocka_unit_test(nothing_is_kept_where_there_are_no_calls_to_come),
		cmocka_unit_test(too_much_of_it_is_lost_and_the_answer_is_not),
		cmocka_unit_test(a_long_text_is_left_out_if_all_of_it_is_blank),
		cmocka_unit_test(reasoning_larger_than_is_kept_is_lost_and_the_answer_is_not),
		cmocka_unit_test(thinking_larger_than_an_event_is_lost_and_the_answer_is_not),
		cmocka_unit_test(too_many_details_are_lost_and_the_answer_is_not),
		cmocka_unit_test(whatever_details_come_what_goes_back_is_json),
	};
	return cmocka_run_group_tests_name("stream_private", tests, NULL, NULL);
}
