/* test_schema_bounds.c - what a check may cost: how large an answer may be, and how long it takes whatever is asked. */
#include "tests/unit/codec/schema/schema_rig.h"

#include <time.h>

/* ---- answers as they come ---------------------------------------------------------------------- */

#define ROWS                                                                                       \
	"{\"type\":\"object\",\"properties\":{\"rows\":{\"type\":\"array\",\"items\":{\"type\":"   \
	"\"object\",\"properties\":{\"name\":{\"type\":\"string\"},\"city\":{\"type\":\"string\"}" \
	","                                                                                        \
	"\"age\":{\"type\":\"integer\",\"minimum\":0},\"mail\":{\"type\":\"string\"}},"            \
	"\"required\":["                                                                           \
	"\"name\",\"city\",\"age\",\"mail\"],\"additionalProperties\":false}}},\"required\":["     \
	"\"rows\"],\"additionalProperties\":false}"
#define ROW "{\"name\":\"Ada\",\"city\":\"London\",\"age\":36,\"mail\":\"a%u@b.example\"}"

/* A row of four members is five places: 10,000 steps are some 2,000 of them. */
static void a_step_is_a_subschema_at_a_place(void **state)
{
	struct rig *rig = *state;
	static const struct {
		uint32_t rows;
		enum schema_verdict verdict;
	} answers[] = { { 1, YES }, { 250, YES }, { 1999, YES }, { 2000, MUCH } };

	for (size_t i = 0; i < COUNT_OF(answers); i++) {
		const struct schema_finding found =
			check(rig, ROWS,
			      repeat(rig, "{\"rows\":[" ROW, "," ROW, answers[i].rows - 1, "]}"));
		print_message("%u rows: %u steps, %u looks\n", answers[i].rows, found.steps,
			      found.looks);
		assert_int_equal(found.verdict, answers[i].verdict);
		assert_true(found.looks <= SCHEMA_LOOKS_MAX / 2);
		if (found.verdict == YES)
			assert_int_equal(found.steps, 2 + 5 * answers[i].rows);
	}
}

/* What is wrong behind the end of the steps is not known; what was found before is. */
static void a_fault_counts_where_it_is_found(void **state)
{
	struct rig *rig = *state;
	const char *items = "{\"items\":{\"type\":\"integer\"}}";

	assert_int_equal(check(rig, items, repeat(rig, "[\"x\"", ",%u", 12000, "]")).verdict, NO);
	assert_int_equal(check(rig, items, repeat(rig, "[0", ",%u", 9990, ",\"x\"]")).verdict, NO);
	assert_int_equal(check(rig, items, repeat(rig, "[0", ",%u", 12000, ",\"x\"]")).verdict,
			 MUCH);
}

/* ---- hostile texts --------------------------------------------------------------------------- */

static double seconds(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Whatever they are, a check ends after so many steps and looks, and these are short. The bound on time is
 * wide, for sanitizers and valgrind, which take a hundred times as long; what is printed is the figure. */
static void check_hostile(struct rig *rig, const char *name, const char *schema, const char *value,
			  enum schema_verdict verdict)
{
	const double before = seconds();
	const struct schema_finding found = check(rig, schema, value);
	const double took = seconds() - before;

	print_message("%-40s %9s %5u steps %6u looks %8.3f ms for %zu bytes\n", name,
		      name_of(found.verdict), found.steps, found.looks, took * 1e3,
		      strlen(schema) + strlen(value));
	if (found.verdict != verdict)
		fail_msg("%s: %s", name, name_of(found.verdict));
	assert_true(took < 10);
}

/* One subschema, which all of the elements or the same value as often are held against. */
static const char *each(struct rig *rig, const char *front, const char *piece, size_t count,
			const char *rear)
{
	const char *items = repeat(rig, "", "{\"items\":", 1, front);

	return repeat(rig, items, piece, count, repeat(rig, rear, "}", 1, ""));
}

static const char *again(struct rig *rig, const char *subschema)
{
	const char *def = repeat(rig, "{\"$defs\":{\"a\":", subschema, 1, "},\"allOf\":[true");

	return repeat(rig, def, ",{\"$ref\":\"#/$defs/a\"}", 3999, "]}");
}

static void hostile_schemas_end_in_time(void **state)
{
	struct rig *rig = *state;

	check_hostile(rig, "branches double at each level",
		      "{\"anyOf\":[{\"allOf\":[{\"$ref\":\"#\"}]},{\"items\":{\"$ref\":\"#\"}}]}",
		      "[[[1]]]", MUCH);
	check_hostile(rig, "branches by the hundred, in each other",
		      repeat(rig, "{\"anyOf\":[false",
			     ",{\"items\":{\"$ref\":\"#\"},\"minItems\":9%u}", 100, "]}"),
		      "[[[[[[1,[2,[3,[4]]]]]]]]]", MUCH);
	check_hostile(rig, "branches by the thousand, for each item",
		      each(rig, "{\"not\":{\"anyOf\":[false", ",{\"const\":%u}", 8000, "]}}"),
		      repeat(rig, "[\"a\"", ",\"b%u\"", 10000, "]"), MUCH);
	check_hostile(rig, "more values than steps", "{\"items\":{\"type\":\"integer\"}}",
		      repeat(rig, "[0", ",%u", 10000, "]"), MUCH);
	check_hostile(rig, "many properties, in another order",
		      repeat(rig, "{\"additionalProperties\":false,\"properties\":{\"z\":{}",
			     ",\"a%u\":{}", 4000, "}}"),
		      repeat(rig, "{\"a3999\":1", ",\"b%u\":{}", 4000, "}"), NO);
	check_hostile(rig, "many properties, of empty objects",
		      each(rig, "{\"properties\":{\"z\":{}", ",\"a%u\":{}", 4000, "}}"),
		      repeat(rig, "[{}", ",{}", 9000, "]"), MUCH);
	check_hostile(
		rig, "many properties, all of them others",
		again(rig, repeat(rig, "{\"properties\":{\"z\":{}", ",\"a%u\":{}", 4000, "}}")),
		repeat(rig, "{\"a3999\":1", ",\"b%u\":0", 4000, "}"), MUCH);
	check_hostile(rig, "many names, again and again",
		      again(rig, repeat(rig, "{\"required\":[\"z\"", ",\"a%u\"", 4000, "]}")),
		      repeat(rig, "{\"z\":1", ",\"a%u\":0", 4000, "}"), MUCH);
	check_hostile(rig, "one name, often, behind many members",
		      again(rig, repeat(rig, "{\"required\":[\"z\"", ",\"z\",\"y\"", 2000, "]}")),
		      repeat(rig, "{\"z\":1", ",\"a%u\":0", 4000, ",\"y\":1}"), MUCH);
	check_hostile(rig, "an enum without end",
		      each(rig, "{\"enum\":[0", ",\"a%u\"", 10000, "]}"),
		      repeat(rig, "[0", ",\"b%u\"", 500, "]"), NO);
	check_hostile(rig, "a large enum for each item",
		      each(rig, "{\"not\":{\"enum\":[0", ",\"a%u\"", 16000, "]}}"),
		      repeat(rig, "[1", ",\"b%u\"", 9000, "]"), MUCH);
	check_hostile(rig, "countries of two thousand lines",
		      each(rig, "{\"enum\":[0", ",\"a%u\"", 250, "]}"),
		      repeat(rig, "[0", ",\"a249\"", 2000, "]"), YES);
	check_hostile(rig, "items that are all but the same", "{\"uniqueItems\":true}",
		      repeat(rig, "[[0]", ",[[%u]]", 5000, "]"), YES);
	check_hostile(rig, "items of which the first two are the same",
		      again(rig, "{\"not\":{\"uniqueItems\":true}}"),
		      repeat(rig, "[0,0", ",%u", 16000, "]"), MUCH);
	check_hostile(rig, "keywords that say nothing",
		      again(rig, repeat(rig, "{\"type\":\"array\"", ",\"a%u\":0", 4000, "}")), "[]",
		      MUCH);
	check_hostile(rig, "types that nobody knows",
		      again(rig, repeat(rig, "{\"type\":[0", ",\"a%u\"", 6000, ",\"array\"]}")),
		      "[]", MUCH);
	check_hostile(rig, "too many values", "{}", repeat(rig, "[0", ",%u", 20000, "]"), MUCH);
}

/* Texts are bounded by the bodies that they come in alone. */
static void hostile_texts_end_in_time(void **state)
{
	struct rig *rig = *state;
	const char *zeros = repeat(rig, "1", "0000000000", 30, ""), *number;

	check_hostile(rig, "a long text, again and again",
		      repeat(rig, "{\"allOf\":[true", ",{\"minLength\":%u}", 3000, "]}"),
		      repeat(rig, "\"", "xyz%u", 200000, "\""), MUCH);
	check_hostile(rig, "a long text, once",
		      repeat(rig, "{\"const\":\"", "xyz%u", 200000, "\"}"),
		      repeat(rig, "\"", "xyz%u", 200000, "\""), YES);
	check_hostile(rig, "a text of 2 MB that nobody looks at", "{\"type\":\"string\"}",
		      repeat(rig, "\"", "\\u00e9%u", 200000, "\""), YES);
	check_hostile(
		rig, "a long number, again and again",
		repeat(rig, "{\"allOf\":[true", ",{\"multipleOf\":7,\"minimum\":%u}", 3000, "]}"),
		repeat(rig, "7", "7777%u", 100000, ""), MUCH);
	check_hostile(rig, "a long number, which is whole",
		      again(rig, "{\"type\":[\"null\",\"string\",\"integer\"]}"),
		      repeat(rig, "7", "7777%u", 100000, ""), MUCH);
	number = repeat(rig, "7", "0123456789", 6, "");
	check_hostile(rig, "numbers just too short to be paid for",
		      again(rig, repeat(rig,
					"{\"minimum\":1,\"maximum\":9e99,\"exclusiveMinimum\":1,"
					"\"multipleOf\":7,\"exclusiveMaximum\":",
					number, 1, "8}")),
		      number, YES);
	check_hostile(rig, "exponents to be divided",
		      again(rig, "{\"multipleOf\":999999999999999989}"), "1e999999999", NO);
	check_hostile(rig, "exponents to be divided, and it may fail",
		      again(rig, "{\"not\":{\"multipleOf\":999999999999999989}}"), "1e999999999",
		      MUCH);
	number = repeat(rig, "[0", repeat(rig, ",", zeros, 1, ""), 60, "]");
	check_hostile(rig, "long numbers that are the same",
		      again(rig, repeat(rig, "{\"const\":", number, 1, "}")), number, MUCH);
	check_hostile(
		rig, "names of definitions that differ at the end",
		repeat(rig,
		       repeat(rig, "{\"$defs\":{\"x\":0",
			      ",\"a0123456789012345678901234567890123456789012345678%05u\":{}",
			      4000, "},\"allOf\":[true"),
		       ",{\"$ref\":\"#/$defs/"
		       "a012345678901234567890123456789012345678901234567803999\"}",
		       4000, "]}"),
		"1", MUCH);
}

static void a_schema_that_is_too_large_is_refused(void **state)
{
	struct rig *rig = *state;
	struct schema schema;

	assert_int_equal(schema_read(valid(rig, repeat(rig, "{\"enum\":[0", ",%u", 20000, "]}")),
				     rig->work, &rig->arena, &schema),
			 ERR_TOOL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_step_is_a_subschema_at_a_place, begin, end),
		cmocka_unit_test_setup_teardown(a_fault_counts_where_it_is_found, begin, end),
		cmocka_unit_test_setup_teardown(hostile_schemas_end_in_time, begin, end),
		cmocka_unit_test_setup_teardown(hostile_texts_end_in_time, begin, end),
		cmocka_unit_test_setup_teardown(a_schema_that_is_too_large_is_refused, begin, end),
	};
	return cmocka_run_group_tests_name("schema_bounds", tests, NULL, NULL);
}
