/* An answer of another format as a stream of the caller's API: one block at a time in Messages, calls by their number in Chat,
 * and the same content whether or not it was told as it came. */
#include "codec/cross/cross_stream.h"

#include "tests/unit/codec/api/api_rig.h"

/* A piece in a line of a test: T0hello, C1id/name, A1{\"a\":1}, V1{"a":1}. */
static struct stream_delta delta_of(const char *text)
{
	struct stream_delta delta = { .block = (uint32_t)(text[1] - '0') };
	struct slice rest = slice_str(text + 2);

	switch (text[0]) {
	case 'T':
		delta.kind = STREAM_DELTA_TEXT;
		break;
	case 'A':
		delta.kind = STREAM_DELTA_ARGS;
		break;
	case 'V':
		delta.kind = STREAM_DELTA_VALUE;
		break;
	default:
		delta.kind = STREAM_DELTA_CALL;
		delta.id = slice_cut(&rest, '/');
		delta.name = rest;
		return delta;
	}
	delta.text = rest;
	return delta;
}

static const struct cross_names names = { SLICE_INIT("0a"), SLICE_INIT("\"m\""), 5, 11 };

struct told {
	struct arena_pool pool;
	struct arena arena;
	struct gather g;
	struct cross_stream s;
};

static void told_begin(struct told *t, enum api api, bool schema)
{
	t->pool = (struct arena_pool){ .keep_max = 4 };
	arena_init(&t->arena, &t->pool, 1 << 20);
	gather_init(&t->g, &t->arena);
	cross_stream_init(&t->s, api, &names, schema, true, &t->arena);
}

static void told_end(struct told *t)
{
	arena_give(&t->arena);
	arena_pool_fini(&t->pool);
}

/* The stream without what does not differ: of each event its index and what is in its delta. */
static void tell(struct told *t, const char *const *deltas)
{
	for (; *deltas != NULL; deltas++) {
		const struct stream_delta delta = delta_of(*deltas);
		assert_true(cross_stream_delta(&t->s, &delta, &t->g));
	}
}

static struct slice told_text(struct told *t)
{
	assert_int_equal(gather_done(&t->g), ERR_OK);
	return gather_flat(&t->g, &t->arena);
}

static struct sampling_result result_of(struct result_block *blocks, uint32_t count)
{
	return (struct sampling_result){ .stop = STOP_TOOL_USE,
					 .blocks = blocks,
					 .block_count = count,
					 .usage = { .known = true, .input = 20, .output = 5 } };
}

#define EVENT(type, rest) "event: " type "\ndata: {\"type\":\"" type "\"" rest "}\n\n"
#define START(index, block) \
	EVENT("content_block_start", ",\"index\":" #index ",\"content_block\":" block)
#define DELTA(index, delta) EVENT("content_block_delta", ",\"index\":" #index ",\"delta\":" delta)
#define STOP(index) EVENT("content_block_stop", ",\"index\":" #index)
#define TEXT(index, text) DELTA(index, "{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define ARGS(index, json) \
	DELTA(index, "{\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"}")
#define CALL(index, id, name)                                                                      \
	START(index, "{\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}" \
		     "}")
#define BEGIN                                                                                \
	EVENT("message_start",                                                               \
	      ",\"message\":{\"id\":\"msg_0a\",\"type\":\"message\",\"role\":\"assistant\"," \
	      "\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"  \
	      "\"usage\":{\"input_tokens\":11,\"cache_creation_input_tokens\":0,"            \
	      "\"cache_read_input_tokens\":0,\"output_tokens\":1}}")
#define END(reason)                                                                            \
	EVENT("message_delta",                                                                 \
	      ",\"delta\":{\"stop_reason\":\"" reason "\",\"stop_sequence\":null},\"usage\":{" \
	      "\"input_tokens\":20,\"cache_creation_input_tokens\":0,"                         \
	      "\"cache_read_input_tokens\":0,\"output_tokens\":5}")                            \
	EVENT("message_stop", "")

static void messages_has_one_block_at_a_time(void **state)
{
	static const struct {
		const char *what;
		const char *deltas[12];
		const char *want; /* before the end */
		const char *rest;
	} rows[] = {
		{ "a text, then a call",
		  { "T0a", "T0b", "C1i/f", "A1{}" },
		  BEGIN START(0, "{\"type\":\"text\",\"text\":\"\"}") TEXT(0, "a") TEXT(0, "b")
			  STOP(0) CALL(1, "i", "f") ARGS(1, "{}"),
		  STOP(1) },
		{ "calls that alternate: the second one waits until the first one is whole",
		  { "C0i/f", "A0{\\\"a\\\":", "C1j/g", "A1{", "A0\\\"}\\\"}", "A1}" },
		  BEGIN CALL(0, "i", "f") ARGS(0, "{\\\"a\\\":") ARGS(0, "\\\"}\\\"}") STOP(0)
			  CALL(1, "j", "g") ARGS(1, "{") ARGS(1, "}"),
		  STOP(1) },
		{ "a call without arguments: the next one waits for the end",
		  { "C0i/f", "C1j/g", "A1{}", "T2x" },
		  BEGIN CALL(0, "i", "f"),
		  STOP(0) CALL(1, "j", "g") ARGS(1, "{}") STOP(1)
			  START(2, "{\"type\":\"text\",\"text\":\"\"}") TEXT(2, "x") STOP(2) },
		{ "blocks of the provider's that are left out leave no gap",
		  { "T3a", "C7i/f", "V7{\"a\":\"\\\"\"}" },
		  BEGIN START(0, "{\"type\":\"text\",\"text\":\"\"}") TEXT(0, "a") STOP(0)
			  CALL(1, "i", "f") ARGS(1, "{\\\"a\\\":\\\"\\\\\\\"\\\"}"),
		  STOP(1) },
		{ "calls without ids have some of ours, and what follows a whole one is nothing",
		  { "C0/f", "A0{}", "C1/g", "A0 ", "A1{}" },
		  BEGIN CALL(0, "call_0a_0", "f") ARGS(0, "{}") STOP(0) CALL(1, "call_0a_1", "g")
			  ARGS(1, "{}"),
		  STOP(1) },
		{ "brackets in strings, escaped quotes and \\u007d close nothing",
		  { "C0i/f", "A0{\\\"a\\\":\\\"\\u007d]\\\\\\\"}", "C1j/g", "A0\\\"}", "A1{}" },
		  BEGIN CALL(0, "i", "f") ARGS(0, "{\\\"a\\\":\\\"\\u007d]\\\\\\\"}")
			  ARGS(0, "\\\"}") STOP(0) CALL(1, "j", "g") ARGS(1, "{}"),
		  STOP(1) },
	};
	struct result_block block = { .is_tool_use = true };
	const struct sampling_result result = result_of(&block, 1);
	struct told t;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		told_begin(&t, API_MESSAGES, false);
		tell(&t, rows[i].deltas);
		const struct slice first = told_text(&t);
		if (!slice_eq(first, slice_str(rows[i].want)))
			fail_msg("%s: %.*s", rows[i].what, (int)first.len, first.at);
		gather_init(&t.g, &t.arena);
		assert_true(cross_stream_end(&t.s, &result, true, &t.g));
		const struct slice text = told_text(&t);
		assert_true(slice_starts(text, slice_str(rows[i].rest)));
		assert_slice(
			slice_of(text.at + strlen(rows[i].rest), text.len - strlen(rows[i].rest)),
			END("tool_use"));
		told_end(&t);
	}
}

static void what_was_not_told_is_told_in_the_end(void **state)
{
	struct result_block blocks[] = {
		{ .text = SLICE("a") },
		{ .is_tool_use = true, .id = SLICE("i"), .name = SLICE("f"), .input = SLICE("{}") },
	};
	const struct sampling_result result = result_of(blocks, 2);
	struct told t;

	(void)state;
	told_begin(&t, API_MESSAGES, false);
	assert_true(cross_stream_end(&t.s, &result, false, &t.g));
	assert_slice(told_text(&t),
		     BEGIN START(0, "{\"type\":\"text\",\"text\":\"\"}") TEXT(0, "a") STOP(0)
			     CALL(1, "i", "f") ARGS(1, "{}") STOP(1) END("tool_use"));
	told_end(&t);
}

static void the_json_of_a_schema_is_a_text(void **state)
{
	static const char *const deltas[] = { "C0i/" SCHEMA_TOOL_NAME, "A0{\\\"a\\\":1}", NULL };
	struct result_block block = { .is_tool_use = true };
	const struct sampling_result result = result_of(&block, 1);
	struct told t;

	(void)state;
	told_begin(&t, API_MESSAGES, true);
	tell(&t, deltas);
	assert_true(cross_stream_end(&t.s, &result, true, &t.g));
	assert_slice(told_text(&t), BEGIN START(0, "{\"type\":\"text\",\"text\":\"\"}")
					    TEXT(0, "{\\\"a\\\":1}") STOP(0) END("end_turn"));
	told_end(&t);
}

#define CHUNK(choices, usage)                                                               \
	"data: {\"id\":\"chatcmpl-0a\",\"object\":\"chat.completion.chunk\",\"created\":5," \
	"\"model\":\"m\",\"choices\":[" choices "],\"usage\":" usage "}\n\n"
#define CHOICE(delta)                                                                             \
	CHUNK("{\"index\":0,\"delta\":" delta ",\"logprobs\":null,\"finish_reason\":null}", "nul" \
											    "l")
#define CHAT_CALL(index, id, name)                                                               \
	CHOICE("{\"tool_calls\":[{\"index\":" #index ",\"id\":\"" id "\",\"type\":\"function\"," \
	       "\"function\":{\"name\":\"" name "\",\"arguments\":\"\"}}]}")
#define CHAT_ARGS(index, text)                                                              \
	CHOICE("{\"tool_calls\":[{\"index\":" #index ",\"function\":{\"arguments\":\"" text \
	       "\"}}]}")

static void chat_counts_its_calls(void **state)
{
	static const char *const deltas[] = { "T1a",         "C4i/f", "A4{", "C5j/g",
					      "V5{\"b\":2}", "A4}",   NULL };
	struct result_block block = { .is_tool_use = true };
	const struct sampling_result result = result_of(&block, 1);
	struct told t;

	(void)state;
	told_begin(&t, API_CHAT, false);
	tell(&t, deltas);
	assert_true(cross_stream_end(&t.s, &result, true, &t.g));
	assert_slice(told_text(&t),
		     CHOICE("{\"role\":\"assistant\",\"content\":\"\"}") CHOICE(
			     "{\"content\":\"a\"}") CHAT_CALL(0, "i", "f") CHAT_ARGS(0, "{")
			     CHAT_CALL(1, "j", "g") CHAT_ARGS(1, "{\\\"b\\\":2}") CHAT_ARGS(0, "}")
				     CHUNK("{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_"
					   "reason\":\"tool_calls\"}",
					   "null")
					     CHUNK("", "{\"prompt_tokens\":20,\"completion_"
						       "tokens\":5,\"total_tokens\":25,\"prompt_"
						       "tokens_details\":{\"cached_tokens\":0,"
						       "\"cache_write_tokens\":0},\"completion_"
						       "tokens_details\":{\"reasoning_tokens\":0}"
						       "}") "data: [DONE]\n\n");
	told_end(&t);
}

static void memory_that_is_exhausted_ends_it(void **state)
{
	static const char *const deltas[] = { "C0i/f", "C1j/g", "A1xxxxxxxxxxxxxxxx" };
	struct told t;

	(void)state;
	t.pool = (struct arena_pool){ .keep_max = 4 };
	arena_init(&t.arena, &t.pool, 64);
	gather_init(&t.g, &t.arena);
	cross_stream_init(&t.s, API_MESSAGES, &names, false, true, &t.arena);
	bool fine = true;
	for (size_t i = 0; i < 3; i++) {
		const struct stream_delta delta = delta_of(deltas[i]);
		fine = cross_stream_delta(&t.s, &delta, &t.g) && !t.g.failed && fine;
	}
	assert_false(fine);
	told_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_has_one_block_at_a_time),
		cmocka_unit_test(what_was_not_told_is_told_in_the_end),
		cmocka_unit_test(the_json_of_a_schema_is_a_text),
		cmocka_unit_test(chat_counts_its_calls),
		cmocka_unit_test(memory_that_is_exhausted_ends_it),
	};

	return cmocka_run_group_tests_name("cross_stream", tests, NULL, NULL);
}
