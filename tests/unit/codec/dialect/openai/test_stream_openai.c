#include "tests/support/stream_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define DATA(json) "data: " json "\n\n"
#define CHUNK(choices, more) \
	DATA("{\"id\":\"c1\",\"model\":\"gpt\",\"choices\":[" choices "]" more "}")
#define CHOICE(delta, more) "{\"index\":0,\"delta\":{" delta "}" more "}"
#define DELTA(delta) CHUNK(CHOICE(delta, ",\"finish_reason\":null"), "")
#define SAY(text) DELTA("\"content\":\"" text "\"")
#define FINISH(reason) CHUNK(CHOICE("", ",\"finish_reason\":\"" reason "\""), "")
#define FUNCTION(name, args) "\"function\":{\"name\":\"" name "\",\"arguments\":\"" args "\"}"
#define CALL(index, id, name, args) \
	DELTA("\"tool_calls\":[{\"index\":" index ",\"id\":\"" id "\"," FUNCTION(name, args) "}]")
#define ARGS(index, args) \
	DELTA("\"tool_calls\":[{\"index\":" index ",\"function\":{\"arguments\":\"" args "\"}}]")
#define NAMED(name, args) CALLS("{\"index\":0,\"type\":\"function\"," FUNCTION(name, args) "}")
#define CALLS(calls) DELTA("\"tool_calls\":[" calls "]")
#define USAGE(in, out) "\"usage\":{\"prompt_tokens\":" in ",\"completion_tokens\":" out "}"
#define DONE DATA("[DONE]")
#define GOOGLE_RATE                                                                 \
	"{\"error\":{\"code\":429,\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{" \
	"\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"20s\"}]}}"
#define MALFORMED "-32015 An event of the provider's stream is malformed | retryable"
#define ENDED "-32015 The provider's stream ended before the answer did | retryable"
#define TWO_ARGUMENTS "-32015 A tool call of the provider's stream has two arguments | retryable"
#define NO_OBJECT \
	"-32015 The arguments of the provider's tool call are not a JSON object | retryable"

struct row {
	const char *name, *body, *expect;
};

static void run_rows_in(struct stream_case *c, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *why = stream_case_differs(c, rows[i].body, rows[i].expect);
		if (why != NULL)
			fail_msg("%s: %s", rows[i].name, why);
	}
}

static void run_rows(const struct row *rows, size_t count)
{
	struct stream_case c;

	stream_case_init(&c, DIALECT_OPENAI);
	run_rows_in(&c, rows, count);
	stream_case_fini(&c);
}

static void texts_are_assembled(void **state)
{
	static const struct row rows[] = {
		{ "text",
		  DELTA("\"role\":\"assistant\",\"content\":\"\"") SAY("a") SAY("b") SAY("")
			  SAY("c") FINISH("stop") DONE,
		  "endTurn | \"abc\"" },
		{ "padding of any length",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), ",\"obfuscation\":\"x\"") CHUNK(
			  CHOICE("\"content\":\"b\"", ""), ",\"obfuscation\":\"yyyyyy\"")
			  CHUNK(CHOICE("\"content\":\"c\"", ""), ",\"obfuscation\":\"\"")
				  CHUNK(CHOICE("\"content\":\"d\"", ""), "") FINISH("stop") DONE,
		  "endTurn | \"abcd\"" },
		{ "padding of another name, and more behind it",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), ",\"x\":\"u\",\"p\":\"v\",\"n\":1") CHUNK(
			  CHOICE("\"content\":\"b\"", ""), ",\"x\":\"u\",\"p\":\"\",\"n\":1")
			  CHUNK(CHOICE("\"content\":\"c\"", ""),
				",\"x\":\"v\",\"p\":\"ww\",\"n\":1")
				  CHUNK(CHOICE("\"content\":\"d\"", ""),
					",\"x\":\"v\",\"p\":\"ww\",\"error\":{}") FINISH("stop"),
		  "-32011 The provider is overloaded or unavailable | retryable" },
		{ "padding in front of the choices",
		  DATA("{\"obfuscation\":\"x\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}")
			  DATA("{\"obfuscation\":\"yy\",\"choices\":[{\"delta\":{\"content\":\"b\"}"
			       "}]}") FINISH("stop"),
		  "endTurn | \"ab\"" },
		{ "padding that is no string",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), ",\"obfuscation\":1")
			  CHUNK(CHOICE("\"content\":\"b\"", ""), ",\"obfuscation\":[\"x\"]")
				  FINISH("stop"),
		  "endTurn | \"ab\"" },
		{ "text and finish in one",
		  CHUNK(CHOICE("\"content\":\"a\"", ",\"finish_reason\":\"stop\""), ""),
		  "endTurn | \"a\"" },
		{ "text behind the finish", FINISH("stop") SAY("a"), "endTurn | \"a\"" },
		{ "null content",
		  DELTA("\"content\":null") SAY("a") DELTA("\"content\":null") FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "a delta that is null", CHUNK("{\"delta\":null}", "") SAY("a") FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "content as parts",
		  DELTA("\"content\":[{\"type\":\"thinking\",\"thinking\":[]},"
			"{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"text\",\"text\":\"b\"}]")
			  DELTA("\"content\":[{\"type\":\"text\",\"text\":\"c\"}]")
				  DELTA("\"content\":[{\"type\":\"text\",\"text\":\"d\"}]")
					  FINISH("stop"),
		  "endTurn | \"abcd\"" },
		{ "two parts, of which one stays the same",
		  DELTA("\"content\":[{\"type\":\"text\",\"text\":\"x\"},"
			"{\"type\":\"text\",\"text\":\"a\"}]")
			  DELTA("\"content\":[{\"type\":\"text\",\"text\":\"x\"},"
				"{\"type\":\"text\",\"text\":\"b\"}]") FINISH("stop"),
		  "endTurn | \"xaxb\"" },
		{ "a part that nobody knows",
		  DELTA("\"content\":[{\"type\":\"hologram\"}]") SAY("a") FINISH("stop"),
		  "endTurn | \"a\" | unknown_block_dropped" },
		{ "reasoning is left out",
		  DELTA("\"reasoning_content\":\"x\"") DELTA("\"reasoning_content\":\"y\"")
			  DELTA("\"reasoning\":\"z\",\"content\":\"a\"")
				  DELTA("\"reasoning\":null,\"content\":\"b\"") FINISH("stop"),
		  "endTurn | \"ab\"" },
		{ "another choice",
		  CHUNK("{\"index\":1,\"delta\":{\"content\":\"no\"},"
			"\"finish_reason\":\"length\"}," CHOICE("\"content\":\"a\"", ""),
			"") CHUNK("{\"delta\":{\"content\":\"no\"},\"index\":1}", "")
			  FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "choices without index",
		  CHUNK("{\"delta\":{\"content\":\"a\"}},"
			"{\"delta\":{\"content\":\"no\"}}",
			"") FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "members in another order",
		  DATA("{\"choices\":[{\"finish_reason\":null,\"delta\":{\"content\":\"a\"},"
		       "\"index\":0}],\"model\":\"m\"}") FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "[DONE] and no finish", SAY("a") DONE, "endTurn | \"a\"" },
		{ "[DONE] with blanks", SAY("a") DATA(" [DONE] "), "endTurn | \"a\"" },
		{ "what follows [DONE] is not read", SAY("a") DONE SAY("b") "data: {\n\n",
		  "endTurn | \"a\"" },
		{ "blank data", SAY("a") "data:\n\ndata: \n\n: x\n\n" SAY("b") FINISH("stop"),
		  "endTurn | \"ab\"" },
		{ "a pair in two deltas", SAY("\\ud83d") SAY("\\ude00") FINISH("stop"),
		  "endTurn | \"\\ud83d\\ude00\"" },
		{ "a pair of two parts",
		  DELTA("\"content\":[{\"type\":\"text\",\"text\":\"\\ud83d\"},"
			"{\"type\":\"text\",\"text\":\"\\ude00\"}]") FINISH("stop"),
		  "endTurn | \"\\ud83d\\ude00\"" },
		{ "halves in what is left out",
		  DELTA("\"reasoning\":\"\\ud83d\"") DELTA("\"reasoning\":\"\\ude00\"") SAY("a")
			  FINISH("stop"),
		  "endTurn | \"a\"" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void calls_are_assembled(void **state)
{
	static const struct row rows[] = {
		{ "one",
		  CALL("0", "c", "a", "") ARGS("0", "{\\\"x\\\"") ARGS("0", ":1") ARGS("0", "}")
			  FINISH("tool_calls") DONE,
		  "toolUse | c a {\"x\":1}" },
		{ "two that overlap",
		  CALL("0", "c", "a", "") CALL("1", "d", "b", "{") ARGS("0", "{") ARGS("1", "}")
			  ARGS("0", "}") FINISH("tool_calls"),
		  "toolUse | c a {} | d b {}" },
		{ "behind the text, wherever they stood",
		  SAY("x") CALL("0", "c", "a", "{}") SAY("y") FINISH("stop"),
		  "toolUse | \"xy\" | c a {}" },
		{ "before any text", CALL("0", "c", "a", "{}") SAY("x") FINISH("stop"),
		  "toolUse | \"x\" | c a {}" },
		{ "all in one chunk",
		  CHUNK(CHOICE("\"content\":\"x\",\"tool_calls\":[{\"index\":0,\"id\":"
			       "\"c\"," FUNCTION("a", "{}") "},{\"index\":1,\"id\":\"d\"," FUNCTION(
				       "b", "") "}]",
			       ",\"finish_reason\":\"stop\""),
			""),
		  "toolUse | \"x\" | c a {} | d b {}" },
		{ "id and name in every fragment",
		  CALL("0", "c", "a", "{") CALL("0", "c", "a", "\\\"x\\\":")
			  CALL("0", "c", "a", "1}") FINISH("tool_calls"),
		  "toolUse | c a {\"x\":1}" },
		{ "empty id and name in later fragments",
		  CALL("0", "c", "a", "{") CALL("0", "", "", "}") FINISH("tool_calls"),
		  "toolUse | c a {}" },
		{ "the id later than the arguments",
		  ARGS("0", "{") CALL("0", "c", "a", "}") FINISH("tool_calls"),
		  "toolUse | c a {}" },
		{ "every call at index 0",
		  CALL("0", "c", "a", "{\\\"x\\\"") ARGS("0", ":1}") CALL("0", "d", "b", "{")
			  ARGS("0", "}") CALL("0", "d", "b", "") FINISH("tool_calls"),
		  "toolUse | c a {\"x\":1} | d b {}" },
		{ "an id that is escaped is the same",
		  CALL("0", "c", "a", "{") CALL("0", "\\u0063", "a", "}") FINISH("tool_calls"),
		  "toolUse | c a {}" },
		{ "no index",
		  CALLS("{\"id\":\"c\"," FUNCTION("a", "{}") "},{\"id\":\"d\"," FUNCTION(
			  "b", "{}") "}") FINISH("stop"),
		  "toolUse | c a {} | d b {}" },
		{ "no index, one after the other",
		  CALLS("{\"id\":\"c\"," FUNCTION("a", "{}") "}")
			  CALLS("{\"id\":\"d\"," FUNCTION("b", "{}") "}") FINISH("stop"),
		  "toolUse | c a {} | d b {}" },
		{ "an index that is null",
		  CALLS("{\"index\":null,\"id\":\"c\"," FUNCTION("a", "{}") "}") FINISH("stop"),
		  "toolUse | c a {}" },
		{ "no id", CALLS("{\"index\":0," FUNCTION("a", "{}") "}") FINISH("stop"),
		  "toolUse | call_c1_0 a {}" },
		{ "the last index there may be", CALL("1017", "c", "a", "{}") FINISH("stop"),
		  "toolUse | c a {}" },
		{ "arguments as an object",
		  CALLS("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"a\",\"arguments\":"
			"{\"x\": [1]}}}") ARGS("0", "") FINISH("tool_calls"),
		  "toolUse | c a {\"x\": [1]}" },
		{ "arguments in a string in a string",
		  CALL("0", "c", "a", "\\\"{\\\\\\\"x\\\\\\\"") ARGS("0", ":1}\\\"")
			  FINISH("tool_calls"),
		  "toolUse | c a {\"x\":1}" },
		{ "arguments that are null",
		  CALLS("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"a\",\"arguments\":null}"
			"}") FINISH("tool_calls"),
		  "toolUse | c a {}" },
		{ "the old way",
		  DELTA("\"function_call\":{\"name\":\"a\",\"arguments\":\"{\"}")
			  DELTA("\"function_call\":{\"arguments\":\"}\"}")
				  DELTA("\"function_call\":null") FINISH("function_call"),
		  "toolUse | call_c1_0 a {}" },
		{ "a custom one is left out",
		  CALLS("{\"index\":0,\"id\":\"c\",\"type\":\"custom\",\"custom\":{\"name\":\"a\","
			"\"input\":\"x\"}}") CALLS("{\"index\":0,\"custom\":{\"input\":\"y\"}}")
			  CALL("1", "d", "b", "{}") FINISH("tool_calls"),
		  "toolUse | d b {} | unknown_block_dropped" },
		{ "cut by the token limit",
		  CALL("0", "c", "a", "{}") CALL("1", "d", "b", "{\\\"x") FINISH("length"),
		  "maxTokens | c a {} | incomplete_tool_use_dropped" },
		{ "halves in arguments",
		  CALL("0", "c", "a", "{\\\"x\\\":\\\"\\ud83d") ARGS("0", "\\ude00\\\"}")
			  FINISH("tool_calls"),
		  "toolUse | c a {\"x\":\"\xf0\x9f\x98\x80\"}" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

/* As Google's compatible API does, and hosts in front of it. */
static void calls_without_ids_at_one_index_begin_with_their_names(void **state)
{
	static const struct row rows[] = {
		{ "whole ones of one tool",
		  NAMED("a", "{\\\"x\\\":1}") NAMED("a", "{\\\"x\\\":2}")
			  NAMED("a", "{\\\"x\\\":3}") FINISH("tool_calls") DONE,
		  "toolUse | call_c1_0 a {\"x\":1} | call_c1_1 a {\"x\":2} | call_c1_2 a "
		  "{\"x\":3}" },
		{ "twice the same", NAMED("a", "{}") NAMED("a", "{}") FINISH("stop"),
		  "toolUse | call_c1_0 a {} | call_c1_1 a {}" },
		{ "no index either",
		  CALLS("{" FUNCTION("a", "{}") "}") CALLS("{" FUNCTION("b", "{}") "}")
			  FINISH("tool_calls"),
		  "toolUse | call_c1_0 a {} | call_c1_1 b {}" },
		{ "in one event",
		  CALLS("{\"index\":0," FUNCTION("a", "{}") "},{\"index\":0," FUNCTION(
			  "b", "{}") "}") FINISH("stop"),
		  "toolUse | call_c1_0 a {} | call_c1_1 b {}" },
		{ "ids that are empty",
		  CALL("0", "", "a", "{\\\"x\\\":1}") CALL("0", "", "a", "{\\\"x\\\":2}")
			  FINISH("stop"),
		  "toolUse | call_c1_0 a {\"x\":1} | call_c1_1 a {\"x\":2}" },
		{ "behind one with an id",
		  CALL("0", "c", "a", "{}") NAMED("b", "{}") FINISH("stop"),
		  "toolUse | c a {} | call_c1_1 b {}" },
		{ "in fragments",
		  NAMED("a", "") ARGS("0", "{\\\"x\\\":") ARGS("0", "\\\"}{\\\"} ") NAMED("a", "{")
			  ARGS("0", "\\\"y\\\":1}") NAMED("b", "") ARGS("0", "{}")
				  FINISH("tool_calls"),
		  "toolUse | call_c1_0 a {\"x\":\"}{\"} | call_c1_1 a {\"y\":1} | call_c1_2 b {}" },
		{ "quotes escaped as .NET does",
		  NAMED("a", "{\\u0022x\\u0022:1}") NAMED("a", "{\\u0022x\\u0022:2}")
			  FINISH("stop"),
		  "toolUse | call_c1_0 a {\"x\":1} | call_c1_1 a {\"x\":2}" },
		{ "arguments as objects",
		  CALLS("{\"index\":0,\"function\":{\"name\":\"a\",\"arguments\":{\"x\":1}}}")
			  CALLS("{\"index\":0,\"function\":{\"name\":\"a\",\"arguments\":{\"x\":2}}"
				"}") FINISH("stop"),
		  "toolUse | call_c1_0 a {\"x\":1} | call_c1_1 a {\"x\":2}" },
		{ "another tool without arguments",
		  NAMED("a", "{\\\"x\\\":1}") NAMED("b", "") FINISH("stop"),
		  "toolUse | call_c1_0 a {\"x\":1} | call_c1_1 b {}" },
		{ "a name again with nothing",
		  NAMED("a", "{}") NAMED("a", "") NAMED("a", "\\n") FINISH("stop"),
		  "toolUse | call_c1_0 a {}" },
		{ "a name again with every fragment",
		  NAMED("a", "{\\\"x\\\"") NAMED("a", ":{}") NAMED("a", "}") FINISH("stop"),
		  "toolUse | call_c1_0 a {\"x\":{}}" },
		{ "a name again before the arguments",
		  NAMED("a", "") NAMED("a", "{") ARGS("0", "}") FINISH("stop"),
		  "toolUse | call_c1_0 a {}" },
		{ "a name behind the arguments", ARGS("0", "{}") NAMED("a", "") FINISH("stop"),
		  "toolUse | call_c1_0 a {}" },
		{ "the last one cut by the token limit",
		  NAMED("a", "{}") NAMED("a", "{\\\"x") FINISH("length"),
		  "maxTokens | call_c1_0 a {} | incomplete_tool_use_dropped" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void usage_is_the_last_that_was_said(void **state)
{
	static const struct row rows[] = {
		{ "behind the finish", SAY("a") FINISH("stop") CHUNK("", "," USAGE("1", "2")) DONE,
		  "endTurn | \"a\" | usage 1/2/0/0/0" },
		{ "null, then a value",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), ",\"usage\":null")
			  CHUNK(CHOICE("\"content\":\"b\"", ""), ",\"usage\":null") FINISH("stop")
				  CHUNK("", "," USAGE("1", "2")),
		  "endTurn | \"ab\" | usage 1/2/0/0/0" },
		{ "a value, then null",
		  CHUNK("", "," USAGE("1", "2")) CHUNK("", ",\"usage\":null") FINISH("stop"),
		  "endTurn | \"\" | usage 1/2/0/0/0" },
		{ "running totals",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), "," USAGE("1", "1"))
			  CHUNK(CHOICE("\"content\":\"b\"", ""), "," USAGE("1", "2"))
				  CHUNK(CHOICE("\"content\":\"c\"", ""), "," USAGE("1", "3"))
					  FINISH("stop"),
		  "endTurn | \"abc\" | usage 1/3/0/0/0" },
		{ "running totals of other shapes",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), "," USAGE("1", "1"))
			  CHUNK(CHOICE("\"content\":\"b\"", ""),
				",\"usage\": {\"completion_tokens\":2,\"prompt_tokens_details\":"
				"{\"cached_tokens\":1},\"prompt_tokens\":10}")
				  CHUNK(CHOICE("\"content\":\"c\"", ""), ",\"usage\": {} ")
					  CHUNK(CHOICE("\"content\":\"d\"", ""), ",\"usage\": null")
						  FINISH("stop"),
		  "endTurn | \"abcd\" | usage 10/2/1/0/0" },
		{ "running totals in front of the choices",
		  DATA("{" USAGE("1", "1") ",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}") DATA(
			  "{" USAGE("1", "2") ",\"choices\":[{\"delta\":{\"content\":\"b\"}}]}")
			  FINISH("stop"),
		  "endTurn | \"ab\" | usage 1/2/0/0/0" },
		{ "Groq's own",
		  SAY("a") CHUNK(CHOICE("", ",\"finish_reason\":\"stop\""),
				 ",\"x_groq\":{\"id\":\"r\"," USAGE("3", "4") "}"),
		  "endTurn | \"a\" | usage 3/4/0/0/0" },
		{ "in a choice, with Kimi's word for what came from the cache",
		  SAY("a") CHUNK(
			  CHOICE("",
				 ",\"finish_reason\":\"stop\",\"usage\":{\"prompt_tokens\":2989,"
				 "\"completion_tokens\":5,\"total_tokens\":2994,\"cached_tokens\":"
				 "2048}"),
			  "") DONE,
		  "endTurn | \"a\" | usage 2989/5/2048/0/0" },
		{ "running totals in every choice",
		  CHUNK(CHOICE("\"content\":\"a\"", "," USAGE("1", "1")), "")
			  CHUNK(CHOICE("\"content\":\"b\"", "," USAGE("1", "2")), "")
				  CHUNK(CHOICE("\"content\":\"c\"", "," USAGE("1", "2")), "")
					  FINISH("stop"),
		  "endTurn | \"abc\" | usage 1/2/0/0/0" },
		{ "in a choice and at the top, which counts",
		  CHUNK(CHOICE("\"content\":\"a\"", "," USAGE("7", "7")), "," USAGE("1", "2"))
			  CHUNK(CHOICE("\"content\":\"b\"", "," USAGE("8", "8")), "")
				  FINISH("stop"),
		  "endTurn | \"ab\" | usage 1/2/0/0/0" },
		{ "reasoning in the total alone, in running totals",
		  CHUNK(CHOICE("\"content\":\"a\"", ""),
			",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1,\"total_tokens\":"
			"14}") CHUNK(CHOICE("\"content\":\"b\"", ""),
				     ",\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,"
				     "\"total_tokens\":18}") FINISH("stop"),
		  "endTurn | \"ab\" | usage 9/9/0/0/7" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void the_reason_decides_how_it_stopped(void **state)
{
	static const struct row rows[] = {
		{ "length", SAY("a") FINISH("length"), "maxTokens | \"a\"" },
		{ "content_filter", SAY("a") FINISH("content_filter"),
		  "refusal | \"\" | partial_output_discarded" },
		{ "a refusal",
		  SAY("x") DELTA("\"refusal\":\"n\"") DELTA("\"refusal\":\"o\"") FINISH("stop"),
		  "refusal | \"no\" | partial_output_discarded" },
		{ "a refusal that says nothing",
		  DELTA("\"refusal\":\"\"") SAY("a") DELTA("\"refusal\":null") FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "a stop sequence that vLLM tells",
		  SAY("a") CHUNK(CHOICE("", ",\"finish_reason\":\"stop\",\"stop_reason\":\"E\""),
				 ""),
		  "stopSequence | \"a\"" },
		{ "the number of a stop token",
		  SAY("a") CHUNK(CHOICE("", ",\"stop_reason\":7,\"finish_reason\":\"stop\""), ""),
		  "endTurn | \"a\"" },
		{ "one that nobody knows", SAY("a") FINISH("tired"), "other | \"a\"" },
		{ "an empty one is none yet",
		  CHUNK(CHOICE("\"content\":\"a\"", ",\"finish_reason\":\"\""), "") FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "[DONE] does not overrule it", SAY("a") FINISH("length") DONE,
		  "maxTokens | \"a\"" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void what_was_paid_for_is_read_though_it_is_not_strict(void **state)
{
	static const struct row rows[] = {
		{ "a key twice in a delta",
		  DELTA("\"content\":\"a\"") DELTA("\"content\":\"a\",\"content\":\"b\"")
			  FINISH("stop"),
		  "endTurn | \"ab\"" },
		{ "running totals with a key twice",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), "," USAGE("1", "1"))
			  CHUNK(CHOICE("\"content\":\"b\"", ""),
				",\"usage\":{\"a\":1,\"prompt_tokens\":2,\"a\":1}") DONE,
		  "endTurn | \"ab\" | usage 2/0/0/0/0" },
		{ "a key twice in arguments that come in deltas",
		  CALL("0", "c", "a", "{\\\"x\\\":1,") ARGS("0", "\\\"x\\\":2}")
			  FINISH("tool_calls"),
		  "toolUse | c a {\"x\":2} | duplicate_key_removed" },
		{ "a key twice in arguments as an object",
		  CALLS("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"a\",\"arguments\":"
			"{\"x\":{\"y\":1,\"y\":2}}}}") FINISH("tool_calls"),
		  "toolUse | c a {\"x\":{\"y\":2}} | duplicate_key_removed" },
		{ "the reason twice", SAY("a") FINISH("length") FINISH("stop") DONE,
		  "maxTokens | \"a\"" },
		{ "the reason twice, with the whole call",
		  CALL("0", "c", "a", "{\\\"x\\\":1}")
			  CHUNK(CHOICE("\"tool_calls\":[{\"index\":0,\"id\":\"c\"," FUNCTION(
					       "a", "{\\\"x\\\":1}") "}]",
				       ",\"finish_reason\":\"tool_calls\""),
				"") FINISH("tool_calls") DONE,
		  "toolUse | c a {\"x\":1}" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void an_answer_may_be_spread_over_choices(void **state)
{
#define OTHER(index, delta, reason) \
	"{\"index\":" index ",\"delta\":{" delta "},\"finish_reason\":" reason "}"
#define TOOL(id, args) "\"tool_calls\":[{\"index\":0,\"id\":\"" id "\"," FUNCTION("a", args) "}]"
#define MORE(args) "\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"" args "\"}}]"
	static const struct row rows[] = {
		{ "text and a call in one chunk, under one index",
		  CHUNK(CHOICE("\"content\":\"a\"", "") "," CHOICE(TOOL("c", "{}"), ""), "")
			  FINISH("tool_calls"),
		  "toolUse | \"a\" | c a {}" },
		{ "text and a call in one chunk",
		  CHUNK(CHOICE("\"content\":\"a\"", "") "," OTHER("1", TOOL("c", "{}"),
								  "\"tool_calls\""),
			"") FINISH("stop"),
		  "toolUse | \"a\" | c a {}" },
		{ "text and calls in chunks of their own",
		  SAY("a") FINISH("stop") CHUNK(OTHER("1", TOOL("c", "{\\\"x\\\":"), "null"), "")
			  CHUNK(OTHER("2", TOOL("d", "{"), "null"), "")
				  CHUNK(OTHER("1", MORE("1}"), "null"), "")
					  CHUNK(OTHER("2", MORE("}"), "\"tool_calls\""), "") DONE,
		  "toolUse | \"a\" | c a {\"x\":1} | d a {}" },
		{ "calls in both",
		  CALL("0", "c", "a", "{}") CHUNK(OTHER("1", TOOL("d", "{}"), "null"), "") DONE,
		  "toolUse | c a {} | d a {}" },
		{ "a call and text behind it",
		  CALL("0", "c", "a", "{}") CHUNK(OTHER("1", "\"content\":\"a\"", "\"stop\""), "")
			  DONE,
		  "toolUse | \"a\" | c a {}" },
		{ "both have text, the second one a call",
		  SAY("a") CHUNK(OTHER("1", "\"content\":\"b\"," TOOL("c", "{}"), "null"), "") DONE,
		  "toolUse | \"ab\" | c a {}" },
		{ "both have the same text, the second one a call",
		  SAY("a") CHUNK(OTHER("1", "\"content\":\"a\"," TOOL("c", "{}"), "null"), "") DONE,
		  "toolUse | \"a\" | c a {}" },
		{ "the calls are cut",
		  SAY("a") FINISH("stop") CHUNK(OTHER("1", TOOL("c", "{\\\"x"), "\"length\""), "")
			  DONE,
		  "maxTokens | \"a\" | incomplete_tool_use_dropped" },
		{ "more choices than are told apart",
		  SAY("a") CHUNK(OTHER("99", TOOL("c", "{}"), "null"), "") DONE,
		  "toolUse | \"a\" | c a {}" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
#undef OTHER
#undef TOOL
#undef MORE
}

static void broken_streams_are_refused(void **state)
{
	static const struct row rows[] = {
		{ "nothing", "", ENDED },
		{ "no finish", SAY("a"), ENDED },
		{ "a finish that is empty",
		  CHUNK(CHOICE("\"content\":\"a\"", ",\"finish_reason\":\"\""), ""), ENDED },
		{ "half an event", SAY("a") "data: {\"id\"", ENDED },
		{ "an event that is not JSON", SAY("a") "data: {\n\n", MALFORMED },
		{ "two values", SAY("a") "data: {} {}\n\n", MALFORMED },
		{ "text behind an event like those before",
		  SAY("a") SAY("b") "data: {\"id\":\"c1\",\"model\":\"gpt\",\"choices\":[" CHOICE(
			  "\"content\":\"c\"", ",\"finish_reason\":null") "]}x\n\n",
		  MALFORMED },
		{ "no object", SAY("a") "data: []\n\n", MALFORMED },
		{ "a list that is no error", SAY("a") "data: [{\"choices\":[]}]\n\n", MALFORMED },
		{ "a list of errors that does not end", SAY("a") "data: [{\"error\":{}}\n\n",
		  MALFORMED },
		{ "a list of errors in a list", SAY("a") "data: [[{\"error\":{}}]]\n\n",
		  MALFORMED },
		{ "[DONE] and more", SAY("a") "data: [DONE] x\n\n", MALFORMED },
		{ "an unfinished string", SAY("a") SAY("b\\"), MALFORMED },
		{ "an unknown escape", SAY("a") SAY("\\q"), MALFORMED },
		{ "padding with an unknown escape",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), ",\"obfuscation\":\"x\"")
			  CHUNK(CHOICE("\"content\":\"a\"", ""), ",\"obfuscation\":\"\\q\""),
		  MALFORMED },
		{ "running totals and no end of the event",
		  CHUNK(CHOICE("\"content\":\"a\"", ""),
			"," USAGE("1", "1")) "data: "
					     "{\"id\":\"c1\",\"model\":\"gpt\",\"choices\":"
					     "[" CHOICE("\"content\":\"b\"",
							"") "]," USAGE("1", "2") "\n\n",
		  MALFORMED " | usage 1/2/0/0/0" },
		{ "content that is a number", DELTA("\"content\":1"),
		  "-32015 The content of the provider's answer is neither text nor parts: "
		  "malformed "
		  "| retryable" },
		{ "tool_calls that are no list", DELTA("\"tool_calls\":{}"), MALFORMED },
		{ "a call without a name", CALLS("{\"index\":0,\"id\":\"c\"}") FINISH("tool_calls"),
		  "-32015 The provider's tool call has no name: malformed | retryable" },
		{ "an index that is too large", CALL("1018", "c", "a", "{}") FINISH("tool_calls"),
		  "-32015 The provider's stream has too many tool calls | retryable" },
		{ "arguments that are no object", CALL("0", "c", "a", "[1]") FINISH("tool_calls"),
		  NO_OBJECT },
		{ "arguments that are not JSON", CALL("0", "c", "a", "{\\\"x") FINISH("tool_calls"),
		  NO_OBJECT },
		{ "two objects, of which the second has no name: a provisional one before, or "
		  "another call",
		  NAMED("a", "{}") ARGS("0", "{\\\"x\\\":1}") FINISH("tool_calls"), NO_OBJECT },
		{ "a name with every fragment says nothing of where a call begins",
		  NAMED("a", "{\\\"x\\\":\\\"{") NAMED("a", "}\\\"}") NAMED("a", "{}")
			  FINISH("tool_calls"),
		  NO_OBJECT },
		{ "two of the old way, of which there is one",
		  DELTA("\"function_call\":{\"name\":\"a\",\"arguments\":\"{}\"}")
			  DELTA("\"function_call\":{\"name\":\"b\",\"arguments\":\"{}\"}")
				  FINISH("function_call"),
		  NO_OBJECT },
		{ "an object, then another",
		  CALLS("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"a\",\"arguments\":{}}}")
			  CALLS("{\"index\":0,\"function\":{\"arguments\":{}}}")
				  FINISH("tool_calls"),
		  TWO_ARGUMENTS },
		{ "an object, then a string",
		  CALLS("{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"a\",\"arguments\":{}}}")
			  ARGS("0", "") ARGS("0", "{}") FINISH("tool_calls"),
		  TWO_ARGUMENTS },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void errors_of_the_provider_are_what_the_stream_came_to(void **state)
{
	static const struct row rows[] = {
		{ "an error and nothing else",
		  SAY("a") DATA("{\"error\":{\"message\":\"x\","
				"\"type\":\"server_error\"}}"),
		  "-32011 The provider is overloaded or unavailable | retryable" },
		{ "beside a delta, which does not count",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), "," USAGE("1", "2"))
			  CHUNK(CHOICE("\"content\":\"b\"", ""), ",\"error\":{\"code\":502}"),
		  "-32011 The provider is overloaded or unavailable | retryable | usage "
		  "1/2/0/0/0" },
		{ "in the choice", CHUNK(CHOICE("", ",\"error\":{\"code\":502}"), ""),
		  "-32011 The provider is overloaded or unavailable | retryable" },
		{ "in the choice, with a code that says more",
		  CHUNK(CHOICE("", ",\"error\":{\"code\":429,\"message\":\"x\"}"), ""),
		  "-32010 The provider's rate limit is reached | retryable" },
		{ "in the choice and around it, where it says more",
		  CHUNK(CHOICE("", ",\"error\":{\"code\":502}"), ",\"error\":{\"code\":429}"),
		  "-32010 The provider's rate limit is reached | retryable" },
		{ "as a reason", SAY("a") FINISH("error"),
		  "-32011 The provider is overloaded or unavailable | retryable" },
		{ "by its name", SAY("a") SAY("b") "event: error\n" SAY("c"),
		  "-32011 The provider is overloaded or unavailable | retryable" },
		{ "a list, as Google says it", SAY("a") DATA("[" GOOGLE_RATE "]"),
		  "-32010 The provider's rate limit is reached | retryable" },
		{ "the first of a list, over several lines",
		  SAY("a") "data: [ " GOOGLE_RATE
			   ",\ndata: {\"error\":{\"code\":503}}\ndata: ]\n\n",
		  "-32010 The provider's rate limit is reached | retryable" },
		{ "null is none",
		  CHUNK(CHOICE("\"content\":\"a\"", ""), ",\"error\":null") FINISH("stop"),
		  "endTurn | \"a\"" },
	};

	(void)state;
	run_rows(rows, COUNT_OF(rows));
}

static void an_error_says_when_to_come_back(void **state)
{
	static const char *const bodies[] = { SAY("a") DATA(GOOGLE_RATE),
					      SAY("a") DATA("[" GOOGLE_RATE "]"),
					      "event: error\n" DATA("[" GOOGLE_RATE "]") };
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	for (size_t i = 0; i < COUNT_OF(bodies); i++) {
		(void)stream_case_run(&c, bodies[i], (struct stream_cut){ 0 });
		assert_int_equal(c.err, ERR_PROVIDER_RATE);
		assert_int_equal(c.failure.retry_after_ms, 20000);
	}
	stream_case_fini(&c);
}

/* Tags and sequences may lie across deltas: they are looked for in the whole text. */
static void thinking_and_stop_sequences_are_found_across_deltas(void **state)
{
	static struct slice stops[] = { SLICE_INIT("END"), SLICE_INIT("\\n\\n") };
	static const struct row rows[] = {
		{ "a tag in pieces",
		  SAY("<th") SAY("ink>x</thi") SAY("nk>\\n") SAY("a") FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "a tag in pieces, escaped",
		  SAY("\\u003cthin") SAY("k>x<\\/th") SAY("ink>a") FINISH("stop"),
		  "endTurn | \"a\"" },
		{ "thinking that does not end", SAY("<thi") SAY("nk>x") FINISH("length"),
		  "maxTokens | \"\"" },
		{ "a sequence in pieces", SAY("a E") SAY("N") SAY("D b") FINISH("stop"),
		  "stopSequence | \"a \"" },
		{ "half a sequence", SAY("a E") SAY("N") FINISH("stop"), "endTurn | \"a EN\"" },
		{ "an escaped sequence in pieces", SAY("a\\n") SAY("\\u000ab") FINISH("length"),
		  "stopSequence | \"a\"" },
		{ "a call behind it",
		  SAY("aE") SAY("ND") CALL("0", "c", "a", "{}") FINISH("tool_calls"),
		  "stopSequence | \"a\"" },
	};
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	c.context.think_tags = true;
	c.context.emulate_stop = stops;
	c.context.emulate_stop_count = COUNT_OF(stops);
	run_rows_in(&c, rows, COUNT_OF(rows));
	stream_case_fini(&c);
}

static void audio_is_kept_where_it_was_asked_for(void **state)
{
	static const char body[] = DELTA("\"audio\":{\"id\":\"x\",\"data\":\"QUJD\"}")
		DELTA("\"audio\":{\"data\":\"REVG\",\"transcript\":\"t\"}") DELTA("\"audio\":null")
			FINISH("stop");
	static const struct row without = { "not asked for", body,
					    "endTurn | \"\" | unknown_block_dropped" };
	static const struct row with = { "asked for", body, "endTurn | \"QUJDREVG\"" };
	struct stream_case c;

	(void)state;
	stream_case_init(&c, DIALECT_OPENAI);
	run_rows_in(&c, &without, 1);
	c.context.audio_format = SLICE("wav");
	run_rows_in(&c, &with, 1);
	stream_case_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_assembled),
		cmocka_unit_test(calls_are_assembled),
		cmocka_unit_test(calls_without_ids_at_one_index_begin_with_their_names),
		cmocka_unit_test(usage_is_the_last_that_was_said),
		cmocka_unit_test(the_reason_decides_how_it_stopped),
		cmocka_unit_test(what_was_paid_for_is_read_though_it_is_not_strict),
		cmocka_unit_test(an_answer_may_be_spread_over_choices),
		cmocka_unit_test(broken_streams_are_refused),
		cmocka_unit_test(errors_of_the_provider_are_what_the_stream_came_to),
		cmocka_unit_test(an_error_says_when_to_come_back),
		cmocka_unit_test(thinking_and_stop_sequences_are_found_across_deltas),
		cmocka_unit_test(audio_is_kept_where_it_was_asked_for),
	};
	return cmocka_run_group_tests_name("stream_openai", tests, NULL, NULL);
}
