/* What goes back: from an answer to a record, and from records into a later request. */
#include "codec/dialect/replay.h"

#include "codec/base/must.h"
#include "tests/support/dialect_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define TOOLS "\"tools\":[{\"name\":\"f\",\"inputSchema\":{\"type\":\"object\"}}]"
#define ASK "{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"go\"}}"
#define CALL(id, input)                                                            \
	"{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"" id \
	"\",\"name\":\"f\",\"input\":" input "}]}"
#define RESULT(id)                                                                      \
	"{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"toolUseId\":\"" id \
	"\",\"content\":[{\"type\":\"text\",\"text\":\"r\"}]}]}"
#define LOOP(messages) "\"messages\":[" messages "]," TOOLS

/* An answer of each dialect with one call `id` of f({"n":1}), and something private with "secret" in it. */
static const char *const answers[DIALECT_COUNT] = {
	[DIALECT_ANTHROPIC] =
		"{\"content\":[{\"type\":\"thinking\",\"thinking\":\"secret %s\",\"signature\":"
		"\"s\"}, {\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"f\",\"input\":{\"n\":1}}],"
		"\"stop_reason\":\"tool_use\"}",
	[DIALECT_OPENAI] =
		"{\"choices\":[{\"message\":{\"reasoning_content\":\"secret %s\",\"tool_calls\":"
		"[{\"id\":\"%s\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"n\\\":1}\"},"
		"\"extra_content\":{\"google\":{\"thought_signature\":\"t\"}}}]},"
		"\"finish_reason\":\"tool_calls\"}]}",
	[DIALECT_RESPONSES] =
		"{\"status\":\"completed\",\"output\":[{\"type\":\"reasoning\",\"id\":\"rs\","
		"\"summary\":[],\"encrypted_content\":\"secret %s\"},{\"type\":\"function_call\","
		"\"call_id\":\"%s\",\"name\":\"f\",\"arguments\":\"{\\\"n\\\":1}\"}]}",
};

/* A case of a model that wants its reasoning back. */
static void begin(struct dialect_case *c, enum dialect_id id)
{
	case_init(c, id);
	c->profile.replay_reasoning = true;
}

/* The record of an answer with the call `id` to what was encoded last. */
static struct slice answer(struct dialect_case *c, const char *id)
{
	char *body = arena_take(&c->arena, 1024);

	must(body != NULL);
	(void)snprintf(body, 1024, answers[c->dialect->id], id, id);
	assert_int_equal(case_decode(c, body), ERR_OK);
	assert_false(slice_absent(c->result.replay));
	struct slice record = replay_write(c->dialect, SLICE("p"), &c->out, &c->result, &c->arena);
	assert_false(slice_absent(record));
	return record;
}

/* How often `part` is in what was encoded last. */
static int count_in_body(struct dialect_case *c, const char *part)
{
	int count = 0;

	for (const char *at = case_body(c); (at = strstr(at, part)) != NULL; at++)
		count++;
	return count;
}

static bool lost(const struct dialect_case *c)
{
	return (c->out.adjustments & (ADJUST_BIT(ADJUST_THINKING_NOT_REPLAYED) |
				      ADJUST_BIT(ADJUST_REASONING_NOT_REPLAYED))) != 0;
}

/* Two rounds, with their records. */
static void two_rounds(struct dialect_case *c, struct slice records[2])
{
	c->replay = NULL;
	assert_int_equal(case_encode(c, LOOP(ASK)), ERR_OK);
	records[0] = answer(c, "a");
	records[1] = (struct slice){ NULL, 0 };
	c->replay = records;
	c->replay_count = 2;
	assert_int_equal(case_encode(c, LOOP(ASK "," CALL("a", "{\"n\":1}") "," RESULT("a"))),
			 ERR_OK);
	assert_int_equal(count_in_body(c, "secret a"), 1);
	assert_false(lost(c));
	records[1] = answer(c, "b");
}

#define TWO_ROUNDS \
	ASK "," CALL("a", "{\"n\":1}") "," RESULT("a") "," CALL("b", "{\"n\":1}") "," RESULT("b")

static void every_dialect_has_its_own_back_in_every_round(void **state)
{
	struct dialect_case c;
	struct slice records[2];

	(void)state;
	for (int id = 0; id < DIALECT_COUNT; id++) {
		begin(&c, (enum dialect_id)id);
		two_rounds(&c, records);
		assert_int_equal(case_encode(&c, LOOP(TWO_ROUNDS)), ERR_OK);
		assert_int_equal(count_in_body(&c, "secret a"), 1);
		assert_int_equal(count_in_body(&c, "secret b"), 1);
		assert_int_equal(count_in_body(&c, "\"f\""), 3); /* no call is there twice */
		assert_true(c.out.replayed);
		assert_false(lost(&c));
		case_fini(&c);
	}
}

static void what_the_client_wrote_anew_is_the_same_call(void **state)
{
	struct dialect_case c;
	struct slice records[2];

	(void)state;
	begin(&c, DIALECT_ANTHROPIC);
	two_rounds(&c, records);
	assert_int_equal(
		case_encode(&c, LOOP(ASK "," CALL("\\u0061",
						  " { \"n\" : 1.0 } ") "," RESULT("\\u0061"))),
		ERR_OK);
	assert_int_equal(count_in_body(&c, "secret a"), 1);
	case_fini(&c);
}

struct change {
	const char *name, *params;
};

static void after_any_change_nothing_of_the_history_has_its_own_back(void **state)
{
	static const struct change changes[] = {
		{ "arguments of the first call",
		  LOOP(ASK "," CALL("a", "{\"n\":2}") "," RESULT("a") "," CALL(
			  "b", "{\"n\":1}") "," RESULT("b")) },
		{ "arguments of the last call",
		  LOOP(ASK "," CALL("a", "{\"n\":1}") "," RESULT("a") "," CALL(
			  "b", "{\"n\":2}") "," RESULT("b")) },
		{ "a message in front",
		  LOOP("{\"role\":\"user\",\"content\":{\"type\":\"text\",\"text\":\"come\"}}"
		       "," CALL("a", "{\"n\":1}") "," RESULT("a") "," CALL(
			       "b", "{\"n\":1}") "," RESULT("b")) },
		{ "a system prompt", "\"systemPrompt\":\"x\"," LOOP(TWO_ROUNDS) },
		{ "a tool more", "\"messages\":[" TWO_ROUNDS "],\"tools\":[{\"name\":\"f\","
				 "\"inputSchema\":{\"type\":\"object\"}},{\"name\":\"g\","
				 "\"inputSchema\":{\"type\":\"object\"}}]" },
		{ "no tools", "\"messages\":[" TWO_ROUNDS "]" },
		{ "rounds changed about",
		  LOOP(ASK "," CALL("b", "{\"n\":1}") "," RESULT("b") "," CALL(
			  "a", "{\"n\":1}") "," RESULT("a")) },
	};
	struct dialect_case c;
	struct slice records[2];

	(void)state;
	for (int id = 0; id < DIALECT_COUNT; id++)
		for (size_t i = 0; i < COUNT_OF(changes); i++) {
			begin(&c, (enum dialect_id)id);
			two_rounds(&c, records);
			assert_int_equal(case_encode(&c, changes[i].params), ERR_OK);
			if (count_in_body(&c, "secret") != 0 || !lost(&c) || c.out.replayed)
				fail_msg("%s: %s", c.dialect->name, changes[i].name);
			case_fini(&c);
		}
}

static void settings_that_no_answer_depends_on_may_change(void **state)
{
	struct dialect_case c;
	struct slice records[2];

	(void)state;
	for (int id = 0; id < DIALECT_COUNT; id++) {
		begin(&c, (enum dialect_id)id);
		two_rounds(&c, records);
		c.final_round = true;
		assert_int_equal(
			case_encode(&c, "\"temperature\":0.5,\"stopSequences\":[\"x\"],"
					"\"metadata\":{\"user_id\":\"u\"},"
					"\"toolChoice\":{\"mode\":\"auto\"}," LOOP(TWO_ROUNDS)),
			ERR_OK);
		assert_int_equal(count_in_body(&c, "secret"), 2);
		case_fini(&c);
	}
}

static void a_turn_that_is_lost_loses_the_others(void **state)
{
	struct dialect_case c;
	struct slice records[2], left[2];

	(void)state;
	for (int id = 0; id < DIALECT_COUNT; id++)
		for (int gone = 0; gone < 2; gone++) {
			begin(&c, (enum dialect_id)id);
			two_rounds(&c, records);
			left[gone] = (struct slice){ NULL, 0 };
			left[1 - gone] = records[1 - gone];
			c.replay = left;
			c.replay_count = 2;
			assert_int_equal(case_encode(&c, LOOP(TWO_ROUNDS)), ERR_OK);
			assert_int_equal(count_in_body(&c, "secret"), 0);
			assert_true(lost(&c));
			case_fini(&c);
		}
}

/* A loop whose first turn had nothing private left no record, which the second one's prefix proves. */
static void a_turn_that_had_nothing_is_not_missed(void **state)
{
	struct slice records[2] = { { NULL, 0 }, { NULL, 0 } };
	struct dialect_case c;

	(void)state;
	begin(&c, DIALECT_ANTHROPIC);
	assert_int_equal(case_encode(&c, LOOP(ASK "," CALL("a", "{\"n\":1}") "," RESULT("a"))),
			 ERR_OK);
	records[1] = answer(&c, "b");
	c.replay = records;
	c.replay_count = 2;
	assert_int_equal(case_encode(&c, LOOP(TWO_ROUNDS)), ERR_OK);
	assert_int_equal(count_in_body(&c, "secret b"), 1);
	assert_false(lost(&c));
	case_fini(&c);
}

/* One that comes later says so in its record. */
static void a_record_may_say_that_there_was_nothing(void **state)
{
	struct slice records[2];
	struct dialect_case c;

	(void)state;
	begin(&c, DIALECT_ANTHROPIC);
	two_rounds(&c, records);
	assert_int_equal(case_encode(&c, LOOP(ASK "," CALL("a", "{\"n\":1}") "," RESULT("a"))),
			 ERR_OK);
	assert_int_equal(case_decode(&c, "{\"content\":[{\"type\":\"tool_use\",\"id\":\"b\","
					 "\"name\":\"f\",\"input\":{\"n\":1}}]}"),
			 ERR_OK);
	assert_true(slice_absent(c.result.replay));
	assert_false(c.result.replay_lost);
	records[1] = replay_write(c.dialect, SLICE("p"), &c.out, &c.result, &c.arena);
	assert_int_equal(case_encode(&c, LOOP(TWO_ROUNDS)), ERR_OK);
	assert_int_equal(count_in_body(&c, "secret a"), 1);
	assert_false(lost(&c));
	case_fini(&c);
}

/* Anthropic answers 400 to them (contract/providers.md 2), and would to every repeat. */
static void a_blank_text_of_the_answer_does_not_go_back(void **state)
{
	static const char turn[] =
		"{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\","
		"\"signature\":\"s\"},{ \"text\":\"\\n "
		"x\",\"type\":\"text\"},{\"type\":\"tool_use\","
		"\"id\":\"a\",\"name\":\"f\",\"input\":{\"n\":1}}]}";
	struct dialect_case c;
	struct slice record;

	(void)state;
	begin(&c, DIALECT_ANTHROPIC);
	assert_int_equal(case_encode(&c, LOOP(ASK)), ERR_OK);
	assert_int_equal(
		case_decode(&c,
			    "{\"content\":[{\"type\":\"text\",\"text\":\"\"},{\"type\":"
			    "\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"} , {\"type\":"
			    "\"text\",\"text\":\"\\n\\n\",\"citations\":null},{ \"text\":\"\\n x\","
			    "\"type\":\"text\"},{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\","
			    "\"input\":{\"n\":1}},{\"type\":\"text\",\"text\":\" \\u2003\"}],"
			    "\"stop_reason\":\"tool_use\"}"),
		ERR_OK);
	record = replay_write(c.dialect, SLICE("p"), &c.out, &c.result, &c.arena);
	c.replay = &record;
	c.replay_count = 1;
	assert_int_equal(case_encode(&c, LOOP(ASK "," CALL("a", "{\"n\":1}") "," RESULT("a"))),
			 ERR_OK);
	assert_true(c.out.replayed);
	assert_non_null(strstr(case_body(&c), turn));
	case_fini(&c);
}

/* ---- records from a store that anybody may have written to ---- */

#define RECORD(rest) \
	"{\"v\":1,\"dialect\":\"anthropic\",\"provider\":\"p\",\"model\":\"m\"," rest "}"

static void what_is_no_record_of_the_turn_counts_as_lost(void **state)
{
	static const struct change hostile[] = {
		{ "nothing", "" },
		{ "no JSON", "{\"v\":1" },
		{ "something behind it", "{\"v\":1} x" },
		{ "no object", "[1]" },
		{ "another version", "{\"v\":2}" },
		{ "no version", "{}" },
		{ "a key twice", "{\"v\":1,\"v\":1}" },
		{ "texts of another type", "{\"v\":1,\"dialect\":[],\"provider\":1}" },
		{ "no calls", RECORD("\"prefix\":\"x\",\"content\":[1]") },
		{ "a short prefix", RECORD("\"calls\":\"0000000000000000\",\"prefix\":\"\"") },
		{ "not UTF-8", "{\"v\":1,\"model\":\"\xff\"}" },
	};
	struct dialect_case c;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(hostile); i++) {
		const struct slice record = slice_str(hostile[i].params);
		begin(&c, DIALECT_ANTHROPIC);
		c.replay = &record;
		c.replay_count = 1;
		assert_int_equal(
			case_encode(&c, LOOP(ASK "," CALL("a", "{\"n\":1}") "," RESULT("a"))),
			ERR_OK);
		if (!lost(&c) || c.out.replayed)
			fail_msg("%s", hostile[i].name);
		case_fini(&c);
	}
}

/* The record of a round, with what is behind `key` replaced. */
static struct slice with_content(struct dialect_case *c, struct slice record, const char *content)
{
	const char *at = memmem(record.at, record.len, "\"content\":", 10);
	char *text = arena_take(&c->arena, record.len + strlen(content) + 2);

	must(at != NULL && text != NULL);
	const int len = sprintf(text, "%.*s%s}", (int)(at + 10 - record.at), record.at, content);
	return slice_of(text, (size_t)len);
}

static void content_of_another_form_puts_nothing_into_a_body(void **state)
{
	static const struct {
		enum dialect_id id;
		const char *content;
	} rows[] = {
		{ DIALECT_ANTHROPIC, "{\"role\":\"evil\"}" },
		{ DIALECT_ANTHROPIC, "\"evil\"" },
		{ DIALECT_ANTHROPIC, "[]" },
		{ DIALECT_RESPONSES, "{\"evil\":1}" },
		{ DIALECT_OPENAI, "[\"evil\"]" },
		{ DIALECT_OPENAI,
		  "{\"content\":\"evil\",\"role\":\"evil\",\"tool_calls\":[\"evil\"]}" },
		{ DIALECT_OPENAI, "{\"reasoning_content\":{\"evil\":1},\"reasoning\":[\"evil\"]}" },
		{ DIALECT_OPENAI,
		  "{\"reasoning_details\":\"evil\",\"extra_content\":{\"evil\":1}}" },
		{ DIALECT_OPENAI, "{\"extra_content\":[\"evil\",{\"x\":\"evil\"}]}" },
		{ DIALECT_OPENAI, "{\"extra_content\":[]}" },
	};
	struct slice records[2];
	struct dialect_case c;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		begin(&c, rows[i].id);
		two_rounds(&c, records);
		records[0] = with_content(&c, records[0], rows[i].content);
		assert_int_equal(
			case_encode(&c, LOOP(ASK "," CALL("a", "{\"n\":1}") "," RESULT("a"))),
			ERR_OK);
		if (count_in_body(&c, "evil") != 0 || count_in_body(&c, "secret") != 0)
			fail_msg("%s: %s", c.dialect->name, rows[i].content);
		assert_true(json_valid(slice_str(case_body(&c)), NULL, c.work, NULL));
		case_fini(&c);
	}
}

/* ---- what is not kept ---- */

static void what_the_next_request_will_not_repeat_is_not_kept(void **state)
{
	struct dialect_case c;

	(void)state;
	begin(&c, DIALECT_ANTHROPIC);
	assert_int_equal(case_encode(&c, LOOP(ASK)), ERR_OK);
	assert_true(replay_may_keep(&c.out));
	assert_int_equal(case_encode(&c, LOOP(ASK ",{\"role\":\"assistant\",\"content\":{\"type\":"
						  "\"text\",\"text\":\"x\"}}")),
			 ERR_OK);
	assert_false(replay_may_keep(&c.out));
	assert_int_equal(
		case_encode(&c, "\"messages\":[" ASK "," CALL("a", "{}") "," RESULT("a") "]"),
		ERR_OK);
	assert_false(replay_may_keep(&c.out));
	case_fini(&c);
}

struct unkept {
	const char *name;
	enum dialect_id id;
	const char *answer;
};

static void an_answer_whose_calls_are_not_all_handed_over_is_not_kept(void **state)
{
	static const struct unkept rows[] = {
		{ "a call that was cut", DIALECT_ANTHROPIC,
		  "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"},"
		  "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}},"
		  "{\"type\":\"tool_use\",\"id\":\"b\",\"name\":\"f\",\"input\":{}}],"
		  "\"stop_reason\":\"max_tokens\"}" },
		{ "an id of ours", DIALECT_ANTHROPIC,
		  "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"},"
		  "{\"type\":\"tool_use\",\"name\":\"f\",\"input\":{}}]}" },
		{ "an id twice", DIALECT_ANTHROPIC,
		  "{\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"s\"},"
		  "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}},"
		  "{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"f\",\"input\":{}}]}" },
		{ "one of two reasoning items that cannot be read again", DIALECT_RESPONSES,
		  "{\"output\":[{\"type\":\"reasoning\",\"id\":\"1\",\"summary\":[],"
		  "\"encrypted_content\":\"e\"},{\"type\":\"reasoning\",\"id\":\"2\",\"summary\":"
		  "[]},{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"f\",\"arguments\":"
		  "\"{}\"}]}" },
	};
	struct dialect_case c;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		begin(&c, rows[i].id);
		assert_int_equal(case_encode(&c, LOOP(ASK)), ERR_OK);
		assert_int_equal(case_decode(&c, rows[i].answer), ERR_OK);
		if (!slice_absent(c.result.replay) || !c.result.replay_lost)
			fail_msg("%s", rows[i].name);
		case_fini(&c);
	}
}

/* Reasoning as a text is for readers with most hosts of the format: it is no secret of the loop. */
static void reasoning_that_nobody_wants_back_is_not_kept(void **state)
{
	struct dialect_case c;
	char body[1024];

	(void)state;
	case_init(&c, DIALECT_OPENAI);
	assert_int_equal(case_encode(&c, LOOP(ASK)), ERR_OK);
	(void)snprintf(body, sizeof(body), answers[DIALECT_OPENAI], "a", "a");
	assert_int_equal(case_decode(&c, body), ERR_OK);
	assert_false(slice_absent(c.result.replay)); /* the call's signature */
	assert_null(memmem(c.result.replay.at, c.result.replay.len, "secret", 6));
	case_fini(&c);
}

/* ---- memory ---- */

static void without_memory_the_request_is_refused(void **state)
{
	struct slice records[2];
	struct dialect_case c;

	(void)state;
	for (int id = 0; id < DIALECT_COUNT; id++) {
		begin(&c, (enum dialect_id)id);
		two_rounds(&c, records);
		assert_int_equal(case_encode(&c, LOOP(TWO_ROUNDS)), ERR_OK);
		assert_true(case_starve(&c, case_encode_again) > 10);
		case_fini(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_dialect_has_its_own_back_in_every_round),
		cmocka_unit_test(what_the_client_wrote_anew_is_the_same_call),
		cmocka_unit_test(after_any_change_nothing_of_the_history_has_its_own_back),
		cmocka_unit_test(settings_that_no_answer_depends_on_may_change),
		cmocka_unit_test(a_turn_that_is_lost_loses_the_others),
		cmocka_unit_test(a_turn_that_had_nothing_is_not_missed),
		cmocka_unit_test(a_record_may_say_that_there_was_nothing),
		cmocka_unit_test(a_blank_text_of_the_answer_does_not_go_back),
		cmocka_unit_test(what_is_no_record_of_the_turn_counts_as_lost),
		cmocka_unit_test(content_of_another_form_puts_nothing_into_a_body),
		cmocka_unit_test(what_the_next_request_will_not_repeat_is_not_kept),
		cmocka_unit_test(an_answer_whose_calls_are_not_all_handed_over_is_not_kept),
		cmocka_unit_test(reasoning_that_nobody_wants_back_is_not_kept),
		cmocka_unit_test(without_memory_the_request_is_refused),
	};
	return cmocka_run_group_tests_name("replay", tests, NULL, NULL);
}
