#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

/* Events; a block's number is written as it is. */
#define EVENT(type, members) "event: " type "\ndata: {\"type\":\"" type "\"" members "}\n\n"
#define START                                                        \
	EVENT("message_start",                                       \
	      ",\"message\":{\"id\":\"msg_1\",\"model\":\"claude\"," \
	      "\"content\":[],\"usage\":{\"input_tokens\":12,\"output_tokens\":1}}")
#define BLOCK(index, block) \
	EVENT("content_block_start", ",\"index\":" index ",\"content_block\":{" block "}")
#define TEXT(index) BLOCK(index, "\"type\":\"text\",\"text\":\"\"")
#define CALL(index, id, name) \
	BLOCK(index, "\"type\":\"tool_use\",\"id\":\"" id "\",\"name\":\"" name "\",\"input\":{}")
#define DELTA(index, delta) \
	EVENT("content_block_delta", ",\"index\":" index ",\"delta\":{" delta "}")
#define SAY(index, text) DELTA(index, "\"type\":\"text_delta\",\"text\":\"" text "\"")
#define ARGS(index, json) \
	DELTA(index, "\"type\":\"input_json_delta\",\"partial_json\":\"" json "\"")
#define THINK(index, text) DELTA(index, "\"type\":\"thinking_delta\",\"thinking\":\"" text "\"")
#define END(index) EVENT("content_block_stop", ",\"index\":" index)
#define REASON(reason)                                                        \
	EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"" reason "\"}," \
			       "\"usage\":{\"output_tokens\":8}")
#define STOP EVENT("message_stop", "")
#define USAGE " | usage 12/8/0/0/0"
#define USAGE_START " | usage 12/1/0/0/0"
#define MALFORMED "-32015 An event of the provider's stream is malformed | retryable"
#define ENDED "-32015 The provider's stream ended before the answer did | retryable"

struct row {
	const char *name, *body, *expect;
};

static void run_rows(const struct row *rows, size_t count)
{
	struct stream_case c;

	stream_case_init(&c, DIALECT_ANTHROPIC);
	for (size_t i = 0; i < count; i++) {
		const char *why = stream_case_differs(&c, rows[i].body, rows[i].expect);
		if (why != NULL)
			fail_msg("%s: %s", rows[i].name, why);
	}
	stream_case_fini(&c);
}

static void answers_are_assembled(void **state)
{
	static const struct row rows[] = {
		{ "text",
		  START TEXT("0") SAY("0", "a") SAY("0", "b") SAY("0", "c") END("0")
			  REASON("end_turn") STOP,
		  "endTurn | \"abc\"" USAGE },
		{ "a block begins with text",
		  START BLOCK("0", "\"type\":\"text\",\"text\":\"a\"") SAY("0", "b") END("0")
			  REASON("end_turn") STOP,
		  "endTurn | \"ab\"" USAGE },
		{ "a text block without text member",
		  START BLOCK("0", "\"type\":\"text\"") SAY("0", "b") REASON("end_turn") STOP,
		  "endTurn | \"b\"" USAGE },
		{ "two texts",
		  START TEXT("0") SAY("0", "a") END("0") TEXT("1") SAY("1", "b") END("1")
			  REASON("end_turn") STOP,
		  "endTurn | \"ab\"" USAGE },
		{ "texts that overlap",
		  START TEXT("0") TEXT("1") SAY("1", "b") SAY("0", "a") SAY("1", "b") SAY("0", "a")
			  END("1") END("0") REASON("end_turn") STOP,
		  "endTurn | \"aabb\"" USAGE },
		{ "indexes with gaps, in another order",
		  START TEXT("7") SAY("7", "a") TEXT("3") SAY("3", "b") REASON("end_turn") STOP,
		  "endTurn | \"ab\"" USAGE },
		{ "the last index there may be",
		  START TEXT("1023") SAY("1023", "a") REASON("end_turn") STOP,
		  "endTurn | \"a\"" USAGE },
		{ "a call",
		  START CALL("0", "t1", "a") ARGS("0", "") ARGS("0", "{\\\"x\\\"") ARGS("0", ": 1")
			  ARGS("0", "}") END("0") REASON("tool_use") STOP,
		  "toolUse | t1 a {\"x\": 1}" USAGE },
		{ "calls that overlap",
		  START CALL("0", "t1", "a") CALL("1", "t2", "b") ARGS("1", "{\\\"y\\\":")
			  ARGS("0", "{\\\"x\\\":1}") ARGS("1", "2}") END("1") END("0")
				  REASON("tool_use") STOP,
		  "toolUse | t1 a {\"x\":1} | t2 b {\"y\":2}" USAGE },
		{ "a call without arguments",
		  START CALL("0", "t1", "a") END("0") REASON("tool_use") STOP,
		  "toolUse | t1 a {}" USAGE },
		{ "a call that is whole from the beginning",
		  START BLOCK("0", "\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"a\","
				   "\"input\":{\"x\":1}") END("0") REASON("tool_use") STOP,
		  "toolUse | t1 a {\"x\":1}" USAGE },
		{ "deltas replace what a call began with",
		  START BLOCK("0", "\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"a\","
				   "\"input\":{\"x\":1}") ARGS("0", "") ARGS("0", "{\\\"y\\\":2}")
			  REASON("tool_use") STOP,
		  "toolUse | t1 a {\"y\":2}" USAGE },
		{ "arguments with escapes in their strings",
		  START CALL("0", "t1", "a") ARGS("0", "{\\\"x\\\":\\\"\\\\") ARGS("0", "n\\\\\\\"")
			  ARGS("0", "\\\\ud83d\\\\ud") ARGS("0", "e00\\\"}") REASON("tool_use")
				  STOP,
		  "toolUse | t1 a {\"x\":\"\\n\\\"\\ud83d\\ude00\"}" USAGE },
		{ "an id that is missing",
		  START BLOCK("0", "\"type\":\"tool_use\",\"name\":\"a\",\"input\":{}")
			  REASON("tool_use") STOP,
		  "toolUse | call_msg_1_0 a {}" USAGE },
		{ "thinking is left out",
		  START BLOCK("0", "\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"")
			  THINK("0", "hm") THINK("0", "m")
				  DELTA("0", "\"type\":\"signature_delta\",\"signature\":\"x\"")
					  END("0") TEXT("1") SAY("1", "a") REASON("end_turn") STOP,
		  "endTurn | \"a\"" USAGE },
		{ "a block that nobody knows",
		  START BLOCK("0", "\"type\":\"hologram\"") SAY("0", "x") END("0") TEXT("1")
			  SAY("1", "a") REASON("end_turn") STOP,
		  "endTurn | \"a\"" USAGE " | unknown_block_dropped" },
		{ "events and deltas that nobody knows",
		  START EVENT("hologram", ",\"index\":0,\"delta\":{\"text\":\"x\"},\"usage\":{"
					  "\"input_tokens\":99}") TEXT("0")
			  DELTA("0", "\"type\":\"sparkle_delta\",\"text\":\"x\"")
				  DELTA("0", "\"type\":\"citations_delta\",\"citation\":{}")
					  SAY("0", "a") EVENT("ping", "") REASON("end_turn") STOP,
		  "endTurn | \"a\"" USAGE },
		{ "members in another order",
		  "data: {\"message\":{\"usage\":{\"input_tokens\":1},\"id\":\"i\"},"
		  "\"type\":\"message_start\"}\n\n"
		  "data: {\"content_block\":{\"text\":\"\",\"type\":\"text\"},\"index\":0,"
		  "\"type\":\"content_block_start\"}\n\n"
		  "data: {\"delta\":{\"text\":\"a\",\"type\":\"text_delta\"},\"index\":0,"
		  "\"type\":\"content_block_delta\"}\n\n"
		  "data: {\"usage\":{\"output_tokens\":2},\"delta\":{\"stop_reason\":\"end_turn\"},"
		  "\"type\":\"message_delta\"}\n\n",
		  "endTurn | \"a\" | usage 1/2/0/0/0" },
		{ "types only in the names of events",
		  "event: content_block_start\ndata: {\"index\":0,\"content_block\":{\"type\":"
		  "\"text\"}}\n\n"
		  "event: content_block_delta\ndata: {\"index\":0,\"delta\":{\"type\":"
		  "\"text_delta\",\"text\":\"a\"}}\n\n"
		  "event: ping\ndata: {\"index\":0,\"delta\":{\"type\":"
		  "\"text_delta\",\"text\":\"no\"}}\n\n"
		  "event: message_delta\ndata: {\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n",
		  "endTurn | \"a\"" },
		{ "escaped keys and types",
		  "data: {\"t\\u0079pe\":\"content_block_st\\u0061rt\",\"index\":0,"
		  "\"content_block\":{\"type\":\"te\\u0078t\",\"text\":\"a\"}}\n\n"
		  "data: {\"type\":\"message_delt\\u0061\",\"delta\":{\"stop\\u005freason\":"
		  "\"end_turn\"}}\n\n",
		  "endTurn | \"a\"" },
		{ "no message_start", TEXT("0") SAY("0", "a") REASON("end_turn"),
		  "endTurn | \"a\" | usage 0/8/0/0/0" },
		{ "nothing at all but a reason", START REASON("end_turn") STOP,
		  "endTurn | \"\"" USAGE },
		{ "counters that are null keep their value",
		  EVENT("message_start", ",\"message\":{\"usage\":{\"input_tokens\":5,"
					 "\"cache_read_input_tokens\":3,\"output_tokens\":1}}")
			  EVENT("message_delta",
				",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{"
				"\"input_tokens\":null,\"cache_read_input_tokens\":null,"
				"\"output_tokens\":9,\"output_tokens_details\":{"
				"\"thinking_tokens\":4}}"),
		  "endTurn | \"\" | usage 8/9/3/0/4" },
		{ "what follows message_stop is not read",
		  START TEXT("0") SAY("0", "a") REASON("end_turn") STOP SAY("0", "b") "data: {\n\n",
		  "endTurn | \"a\"" USAGE },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void the_reason_decides_how_it_stopped(void **state)
{
	static const struct row rows[] = {
		{ "stop sequence", START TEXT("0") SAY("0", "a") REASON("stop_sequence") STOP,
		  "stopSequence | \"a\"" USAGE },
		{ "max_tokens", START TEXT("0") SAY("0", "a") REASON("max_tokens") STOP,
		  "maxTokens | \"a\"" USAGE },
		{ "a call that the limit cut",
		  START CALL("0", "t1", "a") ARGS("0", "{}") END("0") CALL("1", "t2", "a")
			  ARGS("1", "{\\\"x\\\":") REASON("max_tokens") STOP,
		  "maxTokens | t1 a {}" USAGE " | incomplete_tool_use_dropped" },
		{ "thinking that the limit cut, behind a call",
		  START CALL("0", "t1", "a") ARGS("0", "{}") END("0")
			  BLOCK("1", "\"type\":\"thinking\",\"thinking\":\"\"") THINK("1", "x")
				  REASON("max_tokens") STOP,
		  "maxTokens | t1 a {}" USAGE },
		{ "refusal",
		  START TEXT("0") SAY("0", "a")
			  EVENT("message_delta", ",\"delta\":{\"stop_reason\":\"refusal\","
						 "\"stop_details\":{\"type\":\"refusal\","
						 "\"explanation\":\"no\"}}"),
		  "refusal | \"no\"" USAGE_START " | partial_output_discarded" },
		{ "a refusal that explains nothing", START REASON("refusal"),
		  "refusal | \"\"" USAGE },
		{ "one that nobody knows", START TEXT("0") SAY("0", "a") REASON("pause_turn"),
		  "other | \"a\"" USAGE },
		{ "an empty one is none",
		  START TEXT("0") SAY("0", "a") REASON("max_tokens") REASON(""),
		  "maxTokens | \"a\"" USAGE },
		{ "a weaker one behind it",
		  START TEXT("0") SAY("0", "a") REASON("max_tokens") REASON("end_turn"),
		  "maxTokens | \"a\"" USAGE },
		{ "one that says more behind it",
		  START TEXT("0") SAY("0", "a") REASON("end_turn") REASON("max_tokens")
			  REASON("max_tokens") STOP,
		  "maxTokens | \"a\"" USAGE },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void halves_of_characters_are_joined_or_left_out(void **state)
{
	static const struct row rows[] = {
		{ "a pair in two deltas",
		  START TEXT("0") SAY("0", "a\\ud83d") SAY("0", "\\ude00b") REASON("end_turn"),
		  "endTurn | \"a\\ud83d\\ude00b\"" USAGE },
		{ "only halves",
		  START TEXT("0") SAY("0", "\\uD83D") SAY("0", "\\uDE00") SAY("0", "\\ud83d")
			  SAY("0", "\\ude00") REASON("end_turn"),
		  "endTurn | \"\\uD83D\\uDE00\\ud83d\\ude00\"" USAGE },
		{ "a half at either end of one delta",
		  START TEXT("0") SAY("0", "\\ud83d") SAY("0", "\\ude00x\\ud83d")
			  SAY("0", "\\ude01") REASON("end_turn"),
		  "endTurn | \"\\ud83d\\ude00x\\ud83d\\ude01\"" USAGE },
		{ "an empty delta between",
		  START TEXT("0") SAY("0", "\\ud83d") SAY("0", "") SAY("0", "\\ude00")
			  REASON("end_turn"),
		  "endTurn | \"\\ud83d\\ude00\"" USAGE },
		{ "another block between",
		  START TEXT("0") TEXT("1") SAY("0", "\\ud83d") SAY("1", "b") SAY("1", "c")
			  SAY("0", "\\ude00") REASON("end_turn"),
		  "endTurn | \"\\ud83d\\ude00bc\"" USAGE },
		{ "in arguments",
		  START CALL("0", "t1", "a") ARGS("0", "{\\\"x\\\":\\\"\\ud83d")
			  ARGS("0", "\\ude00\\\"}") REASON("tool_use"),
		  "toolUse | t1 a {\"x\":\"\xf0\x9f\x98\x80\"}" USAGE },
		{ "in thinking, which is left out",
		  START BLOCK("0", "\"type\":\"thinking\"") THINK("0", "\\ud83d")
			  THINK("0", "\\ude00") TEXT("1") SAY("1", "a") REASON("end_turn"),
		  "endTurn | \"a\"" USAGE },
		{ "a first half that nothing follows",
		  START TEXT("0") SAY("0", "a\\ud83d") REASON("end_turn"),
		  "endTurn | \"a\"" USAGE },
		{ "a first half at the token limit",
		  START TEXT("0") SAY("0", "a\\ud83d") REASON("max_tokens"),
		  "maxTokens | \"a\"" USAGE },
		{ "a first half and something else",
		  START TEXT("0") SAY("0", "a\\ud83d") SAY("0", "b") REASON("end_turn"),
		  "endTurn | \"ab\"" USAGE },
		{ "two first halves",
		  START TEXT("0") SAY("0", "\\ud83d") SAY("0", "\\ud83d") SAY("0", "\\ude00")
			  REASON("end_turn"),
		  "endTurn | \"\\ud83d\\ude00\"" USAGE },
		{ "a second half without a first",
		  START TEXT("0") SAY("0", "a") SAY("0", "\\ude00b") REASON("end_turn"),
		  "endTurn | \"ab\"" USAGE },
		{ "inside a delta", START TEXT("0") SAY("0", "a\\ud83db") REASON("end_turn"),
		  "endTurn | \"a\\ufffdb\"" USAGE },
		{ "a second half at the end of a delta",
		  START TEXT("0") SAY("0", "a\\ude00") SAY("0", "b") REASON("end_turn"),
		  "endTurn | \"ab\"" USAGE },
		{ "two first halves in one delta",
		  START TEXT("0") SAY("0", "\\ud83d\\ud83d") SAY("0", "\\ude00") REASON("end_turn"),
		  "endTurn | \"\\ufffd\\ud83d\\ude00\"" USAGE },
		{ "an escape that the limit cut",
		  START TEXT("0") SAY("0", "a\\ud83d\\u") REASON("max_tokens"),
		  "maxTokens | \"a\"" USAGE },
		{ "in arguments, whose end does not come",
		  START CALL("0", "t1", "a") ARGS("0", "{\\\"x\\\":\\\"\\ud83d") ARGS("0", "y\\\"}")
			  REASON("tool_use"),
		  "toolUse | t1 a {\"x\":\"y\"}" USAGE },
		{ "as an escape in arguments",
		  START CALL("0", "t1", "a") ARGS("0", "{\\\"x\\\":\\\"\\\\ud83dy\\\"}")
			  REASON("tool_use"),
		  "toolUse | t1 a {\"x\":\"\\ufffdy\"}" USAGE },
		{ "in an id", START CALL("0", "t\\ud83d", "a") REASON("tool_use"),
		  "toolUse | t\\ufffd a {}" USAGE },
		{ "an escaped backslash is none",
		  START TEXT("0") SAY("0", "\\\\ud83d") SAY("0", "x") REASON("end_turn"),
		  "endTurn | \"\\\\ud83dx\"" USAGE },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void what_was_paid_for_is_read_though_it_is_not_strict(void **state)
{
	static const struct row rows[] = {
		{ "a key twice: the last one counts",
		  START TEXT("0") DELTA("0", "\"type\":\"text_delta\",\"text\":\"a\","
					     "\"text\":\"b\"") REASON("end_turn"),
		  "endTurn | \"b\"" USAGE },
		{ "a key twice in every delta",
		  START TEXT("0") DELTA("0",
					"\"type\":\"x\",\"type\":\"text_delta\",\"text\":\"a\"")
			  DELTA("0", "\"type\":\"x\",\"type\":\"text_delta\",\"text\":\"b\"")
				  SAY("0", "c") REASON("end_turn"),
		  "endTurn | \"abc\"" USAGE },
		{ "a key twice in arguments that come in deltas",
		  START CALL("0", "t1", "a") ARGS("0", "{\\\"x\\\":1,\\\"y\\\":[{\\\"z\\\"")
			  ARGS("0", ":{},\\\"\\\\u007a\\\": 2}],\\\"x\\\":3}") REASON("tool_use"),
		  "toolUse | t1 a {\"y\":[{\"\\u007a\":2}],\"x\":3}" USAGE
		  " | duplicate_key_removed" },
		{ "a key twice in arguments that are whole from the beginning",
		  START BLOCK("0", "\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"a\","
				   "\"input\":{\"x\":1, \"x\":2}") REASON("tool_use"),
		  "toolUse | t1 a {\"x\":2}" USAGE " | duplicate_key_removed" },
		{ "a key twice beside arguments",
		  START BLOCK("0",
			      "\"type\":\"tool_use\",\"id\":\"t0\",\"id\":\"t1\",\"name\":\"a\","
			      "\"input\":{\"x\": 1}") REASON("tool_use"),
		  "toolUse | t1 a {\"x\": 1}" USAGE },
		{ "bytes that are no UTF-8",
		  START TEXT("0") SAY("0", "a") SAY("0", "\xc3") SAY("0", "b\xf0\x9f"
									  "c\xe2\x82")
			  REASON("max_tokens"),
		  "maxTokens | \"ab??c\"" USAGE },
		{ "an index used again after its stop",
		  START BLOCK(
			  "0",
			  "\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"n\",\"input\":{}")
			  END("0") BLOCK("1", "\"type\":\"web_search_tool_result\",\"content\":[]")
				  END("1") TEXT("1") SAY("1", "68 million") END("1")
					  REASON("end_turn") STOP,
		  "endTurn | \"68 million\"" USAGE },
		{ "an index used again without a stop",
		  START TEXT("0") SAY("0", "a") CALL("0", "t1", "a") ARGS("0", "{}") TEXT("0")
			  SAY("0", "b") REASON("tool_use"),
		  "toolUse | \"a\" | t1 a {} | \"b\"" USAGE },
		{ "byte order marks",
		  "\xef\xbb\xbf" START TEXT(
			  "0") "data: \xef\xbb\xbf{\"type\":\"content_block_delta\","
			       "\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}"
			       "\n\n" REASON("end_turn"),
		  "endTurn | \"a\"" USAGE },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void broken_streams_are_refused(void **state)
{
	static const struct row rows[] = {
		{ "nothing", "", ENDED },
		{ "only comments", ": a\n\n: b\n\n", ENDED },
		{ "no stop reason", START TEXT("0") SAY("0", "a") END("0"), ENDED USAGE_START },
		{ "a stop reason that is null",
		  START TEXT("0") SAY("0", "a")
			  EVENT("message_delta", ",\"delta\":{\"stop_reason\":null}") STOP,
		  ENDED USAGE_START },
		{ "a message_stop and no reason", START TEXT("0") STOP, ENDED USAGE_START },
		{ "a last event without its blank line",
		  START TEXT("0") SAY(
			  "0",
			  "a") "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":"
			       "{\"stop_reason\":\"end_turn\"}}\n",
		  ENDED USAGE_START },
		{ "an event that is not JSON", START TEXT("0") "data: {\"type\":\"ping\"\n\n",
		  MALFORMED USAGE_START },
		{ "text behind the JSON", START "data: {\"type\":\"ping\"} x\n\n",
		  MALFORMED USAGE_START },
		{ "an unknown event that is not JSON", START "event: hologram\ndata: x\n\n",
		  MALFORMED USAGE_START },
		{ "a line break in a string", START TEXT("0") SAY("0", "a\ndata: b"),
		  MALFORMED USAGE_START },
		{ "an unknown escape", START TEXT("0") SAY("0", "a") SAY("0", "\\x"),
		  MALFORMED USAGE_START },
		{ "a second message_start", START START,
		  "-32015 The provider's stream begins twice | retryable" USAGE_START },
		{ "a block without index",
		  START EVENT("content_block_start", ",\"content_block\":{\"type\":\"text\"}"),
		  "-32015 A block of the provider's stream has no index | retryable" USAGE_START },
		{ "an index that is too large", START TEXT("1024"),
		  "-32015 The provider's stream has too many blocks | retryable" USAGE_START },
		{ "a delta for no block", START SAY("0", "a"),
		  "-32015 A delta of the provider's stream belongs to no block that has begun | "
		  "retryable" USAGE_START },
		{ "a delta without index",
		  START TEXT("0")
			  EVENT("content_block_delta", ",\"delta\":{\"type\":\"text_delta\","
						       "\"text\":\"a\"}"),
		  "-32015 A delta of the provider's stream belongs to no block that has begun | "
		  "retryable" USAGE_START },
		{ "text for a call", START CALL("0", "t1", "a") SAY("0", "a"),
		  "-32015 A delta of the provider's stream does not fit its block | "
		  "retryable" USAGE_START },
		{ "arguments for a text", START TEXT("0") ARGS("0", "{}"),
		  "-32015 A delta of the provider's stream does not fit its block | "
		  "retryable" USAGE_START },
		{ "a call without a name",
		  START BLOCK("0", "\"type\":\"tool_use\",\"id\":\"t1\"") REASON("tool_use"),
		  "-32015 The provider's tool call has no name: malformed | retryable" USAGE },
		{ "arguments that are not JSON",
		  START CALL("0", "t1", "a") ARGS("0", "{\\\"x\\\"") ARGS("0", "}") END("0")
			  REASON("tool_use"),
		  "-32015 The arguments of the provider's tool call are not a JSON object | "
		  "retryable" USAGE },
		{ "arguments that are no object",
		  START CALL("0", "t1", "a") ARGS("0", "[") ARGS("0", "]") REASON("tool_use"),
		  "-32015 The arguments of the provider's tool call are not a JSON object | "
		  "retryable" USAGE },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void errors_of_the_provider_are_what_the_stream_came_to(void **state)
{
	static const struct row rows[] = {
		{ "first of all",
		  EVENT("error", ",\"error\":{\"type\":\"overloaded_error\","
				 "\"message\":\"x\"}"),
		  "-32011 The provider is overloaded or unavailable | retryable" },
		{ "in the middle, with what was counted",
		  START TEXT("0") SAY("0", "a") SAY("0", "b")
			  EVENT("error", ",\"error\":{\"type\":\"rate_limit_error\","
					 "\"message\":\"x\"}") SAY("0", "c"),
		  "-32010 The provider's rate limit is reached | retryable" USAGE_START },
		{ "after the reason",
		  START TEXT("0") REASON("end_turn")
			  EVENT("error", ",\"error\":{\"type\":\"api_error\"}"),
		  "-32011 The provider is overloaded or unavailable | retryable" USAGE },
		{ "only its name tells", START "event: error\ndata: overloaded_error\n\n",
		  "-32011 The provider is overloaded or unavailable | retryable" USAGE_START },
		{ "not a word of the type", START "data: {\"error\":{\"type\":\"api_error\"}}\n\n",
		  "-32011 The provider is overloaded or unavailable | retryable" USAGE_START },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_assembled),
		cmocka_unit_test(the_reason_decides_how_it_stopped),
		cmocka_unit_test(halves_of_characters_are_joined_or_left_out),
		cmocka_unit_test(what_was_paid_for_is_read_though_it_is_not_strict),
		cmocka_unit_test(broken_streams_are_refused),
		cmocka_unit_test(errors_of_the_provider_are_what_the_stream_came_to),
	};
	return cmocka_run_group_tests_name("stream_anthropic", tests, NULL, NULL);
}
