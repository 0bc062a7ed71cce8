/* test_flow_schema.c - structured output through the flow: what an answer has to be, what is said to a model
 * whose answer is not that, what both attempts cost, and the messages of the exchange. */
#include "gateway/flow/flow_schema.h"
#include "tests/unit/gateway/flow/flow_retry_rig.h"

/* ---- who is asked ------------------------------------------------------------------------------ */

#define MODEL(dialect, path, profile)                                                         \
	LISTEN "retries: {floor: 1000}\nproviders:\n  p: {dialect: " dialect                  \
	       ", endpoints: [{url: \"http://127.0.0.1:9001" path "\"}], keys: [a]}\n" MODELS \
	       "  - {id: m, provider: p, name: m-real, context: 100000, price: {input: 3, "   \
	       "output: "                                                                     \
	       "15}, profile: {" profile "}}\n" TENANT(PLENTY)

static const char forced[] = MODEL("anthropic", "", "");
static const char native[] = MODEL("anthropic", "", "structured_output: true");
static const char automatic[] = MODEL("anthropic", "", "forced_tool: false");
static const char gpt[] = MODEL("openai", "/v1", "");
static const char gpt_native[] = MODEL("openai", "/v1", "structured_output: true");
static const char responses[] = MODEL("openai-responses", "/v1", "");
static const char once[] =
	LISTEN "retries: {attempts: 1}\nproviders:\n" ANT(E1, "a") MODELS CLAUDE("") TENANT(PLENTY);

/* ---- what is asked ----------------------------------------------------------------------------- */

#define AGE                                                                                  \
	"{\"type\":\"object\",\"properties\":{\"age\":{\"type\":\"integer\",\"minimum\":0}," \
	"\"day\":{\"type\":\"string\",\"pattern\":\"^[a-z]+$\"}},\"required\":[\"age\"],"    \
	"\"additionalProperties\":false}"
#define CLOSED                                                                                \
	"{\"type\":\"object\",\"properties\":{\"age\":{\"type\":\"integer\",\"minimum\":0}}," \
	"\"required\":[\"age\"],\"additionalProperties\":false}"
#define SCHEMA_OF(schema)                                                              \
	",\"toolChoice\":{\"mode\":\"required\"},\"tools\":[{\"name\":\"__schema__\"," \
	"\"inputSchema\":" schema "}]"
#define EXCHANGE ",\"_meta\":{\"sluice/exchange\":true}"

static const char ask_age[] = ASK_WITH(SCHEMA_OF(AGE) EXCHANGE);
static const char ask_closed[] = ASK_WITH(SCHEMA_OF(CLOSED) EXCHANGE);
#define CHAIN                                                                                \
	"{\"type\":\"object\",\"properties\":{\"n\":{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":" \
	"\"null\"}]}},\"required\":[\"n\"],\"additionalProperties\":false}"
#define LIST                                                                                  \
	"{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"array\",\"items\":{\"type\":" \
	"\"integer\"}}},\"required\":[\"a\"],\"additionalProperties\":false}"

static const char ask_chain[] = ASK_WITH(SCHEMA_OF(CHAIN));
static const char ask_list[] = ASK_WITH(SCHEMA_OF(LIST));
static const char ask_round[] = ASK_WITH(SCHEMA_OF("{\"type\":\"object\",\"$ref\":\"#\"}"));

/* ---- what providers say ------------------------------------------------------------------------ */

#define GIVES(input) \
	"{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"__schema__\",\"input\":" input "}"
#define GPT_OF(message)                                                                       \
	"{\"id\":\"c-1\",\"object\":\"chat.completion\",\"model\":\"m-real\",\"choices\":[{"  \
	"\"index\":0,\"finish_reason\":\"stop\",\"message\":{\"role\":\"assistant\"," message \
	"}}],"                                                                                \
	"\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\"total_tokens\":14}}"
#define GPT_GIVES(args)                                                                 \
	GPT_OF("\"content\":null,\"tool_calls\":[{\"id\":\"c1\",\"type\":\"function\"," \
	       "\"function\":{\"name\":\"__schema__\",\"arguments\":\"" args "\"}}]")
#define RESPONSES_GIVES(args)                                                                  \
	"{\"id\":\"resp_1\",\"object\":\"response\",\"status\":\"completed\",\"model\":\"m-"   \
	"real\","                                                                              \
	"\"output\":[{\"type\":\"function_call\",\"id\":\"fc_1\",\"call_id\":\"c1\",\"name\":" \
	"\"__schema__\",\"arguments\":\"" args "\",\"status\":\"completed\"}],\"usage\":{"     \
	"\"input_tokens\":10,\"output_tokens\":4,\"total_tokens\":14}}"
#define THREE "{\\\"n\\\":{\\\"n\\\":{\\\"n\\\":"
#define NINE THREE THREE THREE
#define SAYS(text)                          \
	{                                   \
		.status = 200, .body = text \
	}
#define CUT_SHORT                                                                                  \
	"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-real\"," \
	"\"content\":[" TEXT("I") "],\"stop_reason\":\"max_tokens\",\"usage\":{\"input_tokens\":"  \
				  "10,\"output_tokens\":4}}"

/* ---- the table --------------------------------------------------------------------------------- */

static const struct {
	const char *name, *config, *ask;
	struct outcome outcomes[OUTCOMES_MAX];
	size_t count;
	int status;
	const char *has[4]; /* in the answer */
	const char *sent;   /* in what was sent last; NULL: nothing in particular */
} rows[] = {
#define OUTCOMES(...) \
	{ __VA_ARGS__ }, sizeof((struct outcome[]){ __VA_ARGS__ }) / sizeof(struct outcome)
	{ "a good answer",
	  forced,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(GIVES("{\"age\":7}")))),
	  200,
	  { "\"stopReason\":\"toolUse\"", "\"input\":{\"age\":7}", "\"sluice/adjustments\":[]" },
	  "\"tool_choice\":{\"type\":\"tool\",\"name\":\"__schema__\"}" },
	{ "what cannot be checked is said",
	  forced,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(GIVES("{\"age\":7,\"day\":\"x\"}")))),
	  200,
	  { "\"sluice/adjustments\":[\"schema_keyword_unchecked\"]" },
	  NULL },
	{ "wrong, then right",
	  forced,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(GIVES("{\"age\":-1}"))),
		   SAYS(CLAUDE_SAYS(GIVES("{\"age\":7}")))),
	  200,
	  { "\"input\":{\"age\":7}", "\"input_tokens\":20", "\"attempts\":2" },
	  "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":"
	  "\"__schema__\",\"input\":{\"age\":-1}}]},{\"role\":\"user\",\"content\":[{\"type\":"
	  "\"tool_result\",\"tool_use_id\":\"c1\",\"content\":[{\"type\":\"text\",\"text\":\"The "
	  "input "
	  "does not match the schema of __schema__. At $.age the keyword \\\"minimum\\\": 0 is not "
	  "kept (schema: #/properties/age/minimum). Call __schema__ with the whole corrected "
	  "input.\"}"
	  "],\"is_error\":true}]}" },
	{ "wrong twice",
	  forced,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(GIVES("{\"age\":-1}"))), SAYS(CLAUDE_SAYS(GIVES("{}")))),
	  502,
	  { "\"code\":-32015", "\"reason\":\"schema_mismatch\"",
	    "\"retryable\":true,\"attempts\":2,\"keyword\":\"required\",\"path\":\"$\","
	    "\"schemaPath\":\"#/required\"",
	    "The answer does not match the schema of __schema__" },
	  NULL },
	{ "a member that nobody asked for is the model's own text",
	  forced,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(GIVES("{\"age\":1,\"sec\\\"ret\":1}"))),
		   SAYS(CLAUDE_SAYS(GIVES("{\"age\":1,\"secret\":1}")))),
	  502,
	  { "\"keyword\":\"additionalProperties\",\"path\":\"$\"" },
	  "At $ is the member \\\"sec\\\"ret\\\", which is not allowed" },
	{ "one attempt is all there may be",
	  once,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(GIVES("{\"age\":-1}")))),
	  502,
	  { "\"reason\":\"schema_mismatch\"", "\"attempts\":1" },
	  NULL },
	{ "an answer beyond the bounds is not believed, and not bought again",
	  forced,
	  ask_round,
	  OUTCOMES(SAYS(CLAUDE_SAYS(GIVES("{}")))),
	  502,
	  { "\"reason\":\"schema_mismatch\"", "\"retryable\":false", "too large or too deep" },
	  NULL },
	{ "out of tokens: the answer as it is",
	  forced,
	  ask_age,
	  OUTCOMES(SAYS(CUT_SHORT)),
	  200,
	  { "\"stopReason\":\"maxTokens\"", "\"text\":\"I\"" },
	  NULL },
	{ "in the schema's stead a failure, then a good answer",
	  forced,
	  ask_age,
	  OUTCOMES(OVERLOADED, SAYS(CLAUDE_SAYS(GIVES("{\"age\":7}")))),
	  200,
	  { "\"input\":{\"age\":7}" },
	  NULL },
	{ "native, wrong, then right",
	  native,
	  ask_closed,
	  OUTCOMES(SAYS(CLAUDE_SAYS(TEXT("{\\\"age\\\": \\\"x\\\"}"))),
		   SAYS(CLAUDE_SAYS(TEXT("{\\\"age\\\": 7}")))),
	  200,
	  { "\"id\":\"schema_msg_1\"", "\"input\":{\"age\": 7}", "\"stopReason\":\"toolUse\"" },
	  "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"{\\\"age\\\":"
	  "\\\"x\\\"}\"}]},"
	  "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"The input does not match "
	  "the "
	  "schema of __schema__. At $.age the keyword \\\"type\\\": integer is not kept (schema: "
	  "#/properties/age/type). Answer again with the whole corrected JSON object and nothing "
	  "else.\"}]}" },
	{ "native, and deeper than can be checked: the provider has kept it",
	  gpt_native,
	  ask_chain,
	  OUTCOMES(SAYS(GPT_OF("\"content\":\"" NINE NINE "null}}}}}}}}}}}}}}}}}}\""))),
	  200,
	  { "\"stopReason\":\"toolUse\"", "\"sluice/adjustments\":[\"schema_keyword_unchecked\"]" },
	  NULL },
	{ "not native, and deeper than can be checked",
	  gpt,
	  ask_chain,
	  OUTCOMES(SAYS(GPT_GIVES(NINE NINE "null}}}}}}}}}}}}}}}}}}"))),
	  502,
	  { "\"reason\":\"schema_mismatch\"", "\"retryable\":false", "too large or too deep" },
	  NULL },
	{ "native, no JSON, is asked for once more as any such answer",
	  native,
	  ask_closed,
	  OUTCOMES(SAYS(CLAUDE_SAYS(TEXT("seven"))), SAYS(CLAUDE_SAYS(TEXT("{\\\"age\\\":7}")))),
	  200,
	  { "\"input\":{\"age\":7}" },
	  NULL },
	{ "not forced: words, then a call",
	  automatic,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(TEXT("seven"))), SAYS(CLAUDE_SAYS(GIVES("{\"age\":7}")))),
	  200,
	  { "\"input\":{\"age\":7}", "tool_choice_required_downgraded" },
	  "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"seven\"}]},{\"role\":"
	  "\"user\",\"content\":[{\"type\":\"text\",\"text\":\"The answer is not a call of "
	  "__schema__. "
	  "Call __schema__ with the whole corrected input.\"}]}" },
	{ "not forced: words twice are not let through",
	  automatic,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(TEXT("seven"))), SAYS(CLAUDE_SAYS(TEXT("")))),
	  502,
	  { "\"reason\":\"schema_mismatch\"", "did not answer with a call" },
	  NULL },
	{ "not forced: nothing at all, then a call",
	  automatic,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS("")), SAYS(CLAUDE_SAYS(GIVES("{\"age\":7}")))),
	  200,
	  { "\"input\":{\"age\":7}" },
	  NULL },
	{ "a call of something else is none",
	  forced,
	  ask_age,
	  OUTCOMES(SAYS(CLAUDE_SAYS(CALL)), SAYS(CLAUDE_SAYS(CALL))),
	  502,
	  { "\"reason\":\"schema_mismatch\"" },
	  NULL },
	{ "chat completions, wrong, then right",
	  gpt,
	  ask_age,
	  OUTCOMES(SAYS(GPT_GIVES("{\\\"age\\\":-1}")), SAYS(GPT_GIVES("{\\\"age\\\":7}"))),
	  200,
	  { "\"input\":{\"age\":7}" },
	  "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"Error: The input does not "
	  "match" },
	{ "chat completions, native, wrong, then right",
	  gpt_native,
	  ask_closed,
	  OUTCOMES(SAYS(GPT_OF("\"content\":\"{\\\"age\\\":-1}\"")),
		   SAYS(GPT_OF("\"content\":\"{\\\"age\\\":7}\""))),
	  200,
	  { "\"input\":{\"age\":7}", "\"id\":\"schema_c-1\"" },
	  "{\"role\":\"assistant\",\"content\":\"{\\\"age\\\":-1}\"},{\"role\":\"user\","
	  "\"content\":\"The "
	  "input does not match" },
	{ "responses, wrong, then right",
	  responses,
	  ask_age,
	  OUTCOMES(SAYS(RESPONSES_GIVES("{\\\"age\\\":-1}")),
		   SAYS(RESPONSES_GIVES("{\\\"age\\\":7}"))),
	  200,
	  { "\"input\":{\"age\":7}" },
	  "\"type\":\"function_call_output\",\"call_id\":\"c1\"" },
};

static void answers_are_what_the_schema_says_or_no_answers(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct bench *b = bench_new(load(rows[i].config));
		char *trace = play(b, rows[i].ask, 0, rows[i].outcomes, rows[i].count);

		print_message("%s: %s\n", rows[i].name, trace);
		if (b->call.answer.status != rows[i].status ||
		    b->flow.retries.attempts != rows[i].count)
			fail_msg("%s: %d after %u attempts: %s", rows[i].name,
				 b->call.answer.status, b->flow.retries.attempts, answer_text(b));
		for (size_t h = 0; h < COUNT_OF(rows[i].has) && rows[i].has[h] != NULL; h++)
			assert_has(answer_text(b), rows[i].has[h]);
		assert_null(strstr(answer_text(b), "secret"));
		if (rows[i].sent != NULL)
			assert_has(text_of(b, &b->flow.made->encoded.body), rows[i].sent);
		free(trace);
		bench_free(b);
	}
}

/* ---- large answers ------------------------------------------------------------------------------- */

/* An answer whose text, a piece of a JSON string, is between these. */
static char *large_answer(const char *front, const char *piece, size_t count, const char *rear)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	(void)fprintf(out, "%s", front);
	for (size_t i = 0; i < count; i++)
		(void)fprintf(out, "%s%s", i == 0 ? "" : ",", piece);
	(void)fprintf(out, "%s", rear);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void a_large_answer_is_checked_as_far_as_the_steps_go(void **state)
{
	static const char claude[] =
		"{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\","
		"\"model\":\"claude-real\",\"content\":[{\"type\":";
	static const char call[] =
		"\"tool_use\",\"id\":\"c1\",\"name\":\"__schema__\",\"input\":{\"a\":[";
	static const char words[] = "\"text\",\"text\":\"{\\\"a\\\":[";
	static const char end[] = "],\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":10,"
				  "\"output_tokens\":4}}";
	static const struct {
		bool native;
		size_t count;
		const char *last;
		int status;
		bool unchecked;
	} answers[] = {
		{ false, 9997, "", 200, false }, { false, 9998, "", 200, false },
		{ false, 9999, "", 502, false }, { true, 9998, "", 200, false },
		{ true, 9999, "", 200, true },   { true, 9000, ",null", 502, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(answers); i++) {
		const bool is_native = answers[i].native;
		char front[512], rear[256];
		(void)snprintf(front, sizeof(front), "%s%s", claude, is_native ? words : call);
		(void)snprintf(rear, sizeof(rear), "%s]}%s%s", answers[i].last,
			       is_native ? "\"}" : "}", end);
		char *text = large_answer(front, "0", answers[i].count, rear);
		const struct outcome says[] = { SAYS(text), SAYS(text) };
		struct bench *b = bench_new(load(is_native ? native : forced));
		char *trace = play(b, ask_list, 0, says, answers[i].last[0] == '\0' ? 1 : 2);
		if (b->call.answer.status != answers[i].status)
			fail_msg("%zu: %d: %.300s", i, b->call.answer.status, answer_text(b));
		assert_int_equal(strstr(answer_text(b), "schema_keyword_unchecked") != NULL,
				 answers[i].unchecked);
		free(trace);
		free(text);
		bench_free(b);
	}
}

/* Each is within the bounds; together they would take as long as there are many. */
static void calls_of_an_answer_share_the_time_of_two(void **state)
{
	static const struct {
		size_t calls;
		int status;
	} answers[] = { { 5, 200 }, { 15, 502 } };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(answers); i++) {
		char *call = large_answer("{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":"
					  "\"__schema__\",\"input\":{\"a\":[",
					  "0", 9998, "]}}");
		char *text =
			large_answer("{\"id\":\"msg_1\",\"type\":\"message\",\"role\":"
				     "\"assistant\",\"model\":\"claude-real\",\"content\":[",
				     call, answers[i].calls,
				     "],\"stop_reason\":\"tool_use\",\"usage\":{\"input_tokens\":"
				     "10,\"output_tokens\":4}}");
		const struct outcome says[] = { SAYS(text) };
		struct bench *b = bench_new(load(forced));
		free(play(b, ask_list, 0, says, 1));
		if (b->call.answer.status != answers[i].status)
			fail_msg("%zu calls: %d: %.300s", answers[i].calls, b->call.answer.status,
				 answer_text(b));
		free(text);
		free(call);
		bench_free(b);
	}
}

/* ---- before anything is paid for ------------------------------------------------------------------ */

static void a_schema_that_no_answer_could_be_checked_by_is_refused(void **state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct bench *b = bench_new(load(forced));

	(void)state;
	assert_non_null(out);
	(void)fprintf(out,
		      "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\","
		      "\"params\":{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
		      "\"text\":\"Hi\"}}],\"maxTokens\":50,\"toolChoice\":{\"mode\":\"required\"},"
		      "\"tools\":[{\"name\":\"__schema__\",\"inputSchema\":{\"type\":\"object\","
		      "\"properties\":{\"a\":{\"enum\":[0");
	for (int i = 0; i < 20000; i++)
		(void)fprintf(out, ",%d", i);
	(void)fprintf(out, "]}}}}]}}");
	assert_int_equal(fclose(out), 0);
	const struct outcome none[] = { GOOD };
	char *trace = play(b, text, 0, none, 0);
	assert_int_equal(b->call.answer.status, 400);
	assert_has(answer_text(b), "too large for answers to be checked");
	free(trace);
	free(text);
	bench_free(b);
}

/* ---- nothing of it is kept ----------------------------------------------------------------------- */

static void only_first_answers_of_a_called_tool_may_be_kept_for_replay(void **state)
{
	static const struct outcome good[] = { SAYS(CLAUDE_SAYS(GIVES("{\"age\":7}"))) };
	static const struct outcome mended[] = { SAYS(CLAUDE_SAYS(GIVES("{\"age\":-1}"))),
						 SAYS(CLAUDE_SAYS(GIVES("{\"age\":7}"))) };
	static const struct outcome words[] = { SAYS(CLAUDE_SAYS(TEXT("{\\\"age\\\":7}"))) };
	static const struct {
		const char *config, *ask;
		const struct outcome *outcomes;
		size_t count;
		bool private;
	} kept[] = {
		{ forced, ask_age, good, 1, false },
		{ forced, ask_age, mended, 2, true },
		{ native, ask_closed, words, 1, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(kept); i++) {
		struct bench *b = bench_new(load(kept[i].config));
		free(play(b, kept[i].ask, 0, kept[i].outcomes, kept[i].count));
		assert_int_equal(b->call.answer.status, 200);
		assert_int_equal(flow_schema_is_private(&b->flow), kept[i].private);
		bench_free(b);
	}
}

/* ---- the exchange -------------------------------------------------------------------------------- */

#define LOOP(more)                                                                                \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\",\"params\":{"        \
	"\"maxTokens\":50,\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","       \
	"\"text\":"                                                                               \
	"\"Hi\"}},{\"role\":\"assistant\",\"content\":{\"type\":\"tool_use\",\"id\":\"c0\","      \
	"\"name\":"                                                                               \
	"\"t\",\"input\":{}}},{\"content\":{\"type\":\"tool_result\",\"toolUseId\":\"c0\","       \
	"\"content\":[]},\"role\":\"user\"} , {\"role\":\"user\",\"content\":{\"type\":\"text\"," \
	"\"text\":\"and?\"}}]" more EXCHANGE "}}"
#define HI "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"Hi\"}}"

static const struct {
	const char *name, *ask, *revision, *says, *exchange;
} exchanges[] = {
	{ "words", ASK_WITH(EXCHANGE), NULL, CLAUDE_SAYS(TEXT("Hello")),
	  "\"sluice/exchange\":[" HI
	  ",{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Hello\"}}]}" },
	{ "a call is the caller's to answer",
	  ASK_WITH(",\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]" EXCHANGE),
	  NULL, CLAUDE_SAYS(CALL),
	  "\"sluice/exchange\":[" HI
	  ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":"
	  "\"c1\",\"name\":\"t\",\"input\":{}}]}]}" },
	{ "structured output is closed", ask_age, NULL, CLAUDE_SAYS(GIVES("{\"age\":7}")),
	  "\"sluice/exchange\":[" HI
	  ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":"
	  "\"c1\",\"name\":\"__schema__\",\"input\":{\"age\":7}}]},{\"role\":\"user\",\"content\":["
	  "{"
	  "\"type\":\"tool_result\",\"toolUseId\":\"c1\",\"content\":[{\"type\":\"text\",\"text\":"
	  "\"ok\"}]}]}]}" },
	{ "structured output in the draft", ask_age, "sep-1577-draft",
	  CLAUDE_SAYS(TEXT("Well: ") "," GIVES("{\"age\":7}")),
	  "\"sluice/exchange\":[" HI
	  ",{\"role\":\"assistant\",\"content\":{\"type\":\"tool_use\",\"id\":"
	  "\"c1\",\"name\":\"__schema__\",\"input\":{\"age\":7}}},{\"role\":\"user\",\"content\":{"
	  "\"type\":\"tool_result\",\"toolUseId\":\"c1\",\"content\":[{\"type\":\"text\",\"text\":"
	  "\"ok\"}]}}]}" },
	{ "structured output before arrays", ask_age, "2025-06-18",
	  CLAUDE_SAYS(TEXT("Well: ") "," GIVES("{\"age\":7}")),
	  "\"sluice/exchange\":[" HI
	  ",{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
	  "\"Well: "
	  "\"},{\"type\":\"tool_use\",\"id\":\"c1\",\"name\":\"__schema__\",\"input\":{\"age\":"
	  "7}}]},{\"role\":\"user\",\"content\":{\"type\":\"tool_result\",\"toolUseId\":\"c1\","
	  "\"content\":[{\"type\":\"text\",\"text\":\"ok\"}]}}]}" },
	{ "structured output that was cut short", ask_age, NULL, CUT_SHORT,
	  "\"sluice/exchange\":[" HI
	  ",{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"I\"}}]}" },
	{ "what closed an exchange is in the history already",
	  "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"sampling/createMessage\",\"params\":{"
	  "\"maxTokens\":50,\"messages\":[" HI ",{\"role\":\"assistant\",\"content\":[" GIVES(
		  "{\"age\":7}") "]},{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
				 "\"toolUseId\":\"c1\",\"content\":[]}]}," HI "]" EXCHANGE "}}",
	  NULL, CLAUDE_SAYS(TEXT("Hello")),
	  "\"sluice/exchange\":[" HI
	  ",{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Hello\"}}]}" },
	{ "only what is new, as it was sent",
	  LOOP(",\"tools\":[{\"name\":\"t\",\"inputSchema\":{\"type\":\"object\"}}]"), NULL,
	  CLAUDE_SAYS(TEXT("Hello")),
	  "\"sluice/"
	  "exchange\":[{\"content\":{\"type\":\"tool_result\",\"toolUseId\":\"c0\",\"content\":"
	  "[]},\"role\":\"user\"} , "
	  "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"and?\"}}"
	  ",{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":\"Hello\"}}]}" },
};

static void the_exchange_can_be_appended_to_a_history(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(exchanges); i++) {
		struct bench *b = bench_new(load(forced));
		struct http_incoming in = incoming(KEY, exchanges[i].ask);

		if (exchanges[i].revision != NULL)
			in.headers[HTTP_PROTOCOL_VERSION] = slice_str(exchanges[i].revision);
		if (start(b, &in) != FLOW_RESERVE)
			fail_msg("%s: %s", exchanges[i].name, answer_text(b));
		assert_int_equal(reserve(b), FLOW_SEND);
		assert_int_equal(provider_says(b, 200, exchanges[i].says), FLOW_SETTLE);
		assert_int_equal(settle(b), FLOW_ANSWER);
		release(b);
		print_message("%s\n", exchanges[i].name);
		assert_int_equal(b->call.answer.status, 200);
		assert_has(answer_text(b), exchanges[i].exchange);
		bench_free(b);
	}
}

static void nobody_gets_an_exchange_who_has_not_asked(void **state)
{
	static const struct outcome good[] = { GOOD };
	struct bench *b = bench_new(load(alone));

	(void)state;
	free(play(b, ASK, 0, good, 1));
	assert_null(strstr(answer_text(b), "sluice/exchange"));
	bench_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_are_what_the_schema_says_or_no_answers),
		cmocka_unit_test(a_large_answer_is_checked_as_far_as_the_steps_go),
		cmocka_unit_test(calls_of_an_answer_share_the_time_of_two),
		cmocka_unit_test(a_schema_that_no_answer_could_be_checked_by_is_refused),
		cmocka_unit_test(only_first_answers_of_a_called_tool_may_be_kept_for_replay),
		cmocka_unit_test(the_exchange_can_be_appended_to_a_history),
		cmocka_unit_test(nobody_gets_an_exchange_who_has_not_asked),
	};
	return cmocka_run_group_tests_name("flow_schema", tests, NULL, NULL);
}
