#include "codec/dialect/stream_skim.h"

#include "codec/base/attr.h"
#include "codec/base/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROOM = 256 * 1024 };

/* What passes of `text`, fed in reads of `step` bytes, with a NUL; the caller's to free. */
static char *skim(const char *text, size_t len, size_t step)
{
	struct stream_skim state = { 0 };
	char *all = malloc(ROOM);
	size_t at = 0;

	must(all != NULL);
	for (size_t from = 0; from < len; from += step) {
		struct slice part;
		struct slice bytes = slice_of(text + from, step < len - from ? step : len - from);
		while (stream_skim_next(&state, &bytes, &part)) {
			assert_true(part.len != 0 && at + part.len < ROOM);
			(void)memcpy(all + at, part.at, part.len);
			at += part.len;
		}
	}
	all[at] = '\0';
	return all;
}

#define DELTA                                                                                     \
	"data: {\"type\":\"response.output_text.delta\",\"sequence_number\":7,\"delta\":\"hello " \
	"there\"}\n\n"

#define THOUGHT                                                                                    \
	"data: "                                                                                   \
	"{\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"delta\":\"hm\"}" \
	"\n\n"

#define ARGUED "data: {\"delta\":\"hm\",\"type\":\"response.function_call_arguments.delta\"}\n\n"

#define DONE "data: {\"type\":\"response.output_item.done\"}\n\n"

static void what_nobody_reads_becomes_null(void **state)
{
	static const struct {
		const char *name, *text, *passes;
	} rows[] = {
		{ "members of the event",
		  "data: {\"type\":\"x\",\"part\":{\"a\":[1,{}]},\"text\":\"t\"}\n\n",
		  "data: {\"type\":\"x\",\"part\":null,\"text\":\"t\"}\n\n" },
		{ "the last one", "data: {\"text\":\"t\",\"part\":\"a,]}b\"}\n\n",
		  "data: {\"text\":\"t\",\"part\":null}\n\n" },
		{ "members of the response",
		  DELTA "data: {\"response\":{\"tools\":[{\"id\":1}],\"id\":\"r\",\"output\":[],"
			"\"usage\":{\"tools\":1}},\"x\":1}\n\n",
		  DELTA "data: {\"response\":{\"tools\":null,\"id\":\"r\",\"output\":null,"
			"\"usage\":{\"tools\":1}},\"x\":null}\n\n" },
		{ "what a response says again of items that ended",
		  DONE "data: {\"response\":{\"output\":[1],\"id\":1}}\n\n"
		       "data: {\"item\":{\"content\":[1]}}\n\n",
		  DONE "data: {\"response\":{\"output\":null,\"id\":1}}\n\n"
		       "data: {\"item\":{\"content\":[1]}}\n\n" },
		{ "members of an item",
		  DELTA "data: {\"item\":{\"content\":[{\"text\":\"a\"}],\"name\":\"n\"}}\n\n",
		  DELTA "data: {\"item\":{\"content\":null,\"name\":\"n\"}}\n\n" },
		{ "a delta that is known by its type only",
		  "data: {\"x\":1,\"type\":\"response.output_text.delta\"}\n\n"
		  "data: {\"item\":{\"content\":[1]}}\n\n",
		  "data: {\"x\":null,\"type\":\"response.output_text.delta\"}\n\n"
		  "data: {\"item\":{\"content\":null}}\n\n" },
		{ "what a refusal's deltas said",
		  "data: {\"x\":1,\"type\":\"response.refusal.delta\"}\n\n"
		  "data: {\"item\":{\"content\":[1]}}\n\n",
		  "data: {\"x\":null,\"type\":\"response.refusal.delta\"}\n\n"
		  "data: {\"item\":{\"content\":null}}\n\n" },
		{ "members of a member that is left out are not looked at",
		  "data: "
		  "{\"item\":{\"id\":\"i\"},\"part\":{\"content\":[1,2],\"a\":2},\"code\":\"c\"}"
		  "\n\n",
		  "data: {\"item\":{\"id\":\"i\"},\"part\":null,\"code\":\"c\"}\n\n" },
		{ "an error is whole", "data: {\"error\":{\"tools\":1,\"message\":\"m\"}}\n\n",
		  "data: {\"error\":{\"tools\":1,\"message\":\"m\"}}\n\n" },
		{ "quotes and brackets in strings mean nothing",
		  "data: {\"x\":\"\\\"}],\\\\\",\"type\":\"a\\\"b\"}\n\n",
		  "data: {\"x\":null,\"type\":\"a\\\"b\"}\n\n" },
		{ "white space", "data:\t{ \"x\" : { } , \"type\" : \"a\" }\r\n\r\n",
		  "data:\t{ \"x\" :null, \"type\" : \"a\" }\r\n\r\n" },
		{ "a value over several lines",
		  "data: {\"x\":[1,\ndata: 2],\"type\":\ndata: \"a\"}\n\n",
		  "data: {\"x\":null\ndata:,\"type\":\ndata: \"a\"}\n\n" },
		{ "the next event begins afresh", "data: {\"x\":[1,\n\ndata: {\"x\":1}\n\n",
		  "data: {\"x\":null\n\ndata: {\"x\":null}\n\n" },
		{ "lines that end in CR LF do not end the event",
		  "data: {\"x\":[1,\r\ndata: 2]}\r\n\r\n", "data: {\"x\":null\r\ndata:}\r\n\r\n" },
		{ "a key with an escape is another one", "data: {\"typ\\u0065\":1}\n\n",
		  "data: {\"typ\\u0065\":null}\n\n" },
		{ "a long key is none of ours",
		  "data: {\"type_type_type_type_type_type_type\":1}\n\n",
		  "data: {\"type_type_type_type_type_type_type\":null}\n\n" },
		{ "brackets that close too often", "data: {}}]],\"x\":1}\n\n",
		  "data: {}}]],\"x\":1}\n\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t step = 1; step <= strlen(rows[i].text); step++) {
			char *passes = skim(rows[i].text, strlen(rows[i].text), step);
			if (strcmp(passes, rows[i].passes) != 0)
				fail_msg("%s, by %zu:\n have %s\n want %s", rows[i].name, step,
					 passes, rows[i].passes);
			free(passes);
		}
}

static void everything_else_passes_unchanged(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		": a comment {\"x\":1}\n",
		"event: {\"x\":1}\ndata: [DONE]\n\n",
		"data: \"x\"\n\n",
		"data:\n\n",
		"datax: {\"x\":1}\n",
		DELTA DELTA,
		"data: {\"type\":\"x.delta\",\"x\":{\"y\":[1]},\ndata: \"z\":{\"x\":1}}\n\n",
		"dat\ndata: 1\r\r",
		/* what was not said in deltas before */
		"data: {\"item\":{\"content\":[{\"text\":\"a\"}]}}\n\n"
		"data: {\"response\":{\"output\":[{\"tools\":{\"x\":1}}],\"id\":1}}\n\n" DELTA,
		/* nor in deltas of something else */
		THOUGHT "data: {\"item\":{\"content\":[{\"text\":\"a\"}]}}\n\n",
		ARGUED "data: {\"item\":{\"content\":[{\"text\":\"a\"}]}}\n\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		for (size_t step = 1; step <= strlen(texts[i]); step++) {
			char *passes = skim(texts[i], strlen(texts[i]), step);
			assert_string_equal(passes, texts[i]);
			free(passes);
		}
}

/* Behind `before`, an event with a string of `len` bytes as that member; the caller's to free. */
static char *long_string(const char *before, const char *member, const char *unit, size_t len)
{
	char *text = calloc(1, strlen(before) + len + 64);

	must(text != NULL);
	size_t at = (size_t)sprintf(text, "%sdata: {\"%s\":\"", before, member);
	for (size_t i = 0; i < len; i++)
		text[at + i] = unit[i % strlen(unit)];
	(void)strcpy(text + at + len, "\",\"code\":\"c\"}\n\n");
	return text;
}

static void long_strings_that_were_said_before_end_early(void **state)
{
	static const struct {
		const char *name, *before, *member, *unit;
		size_t len, passes;
	} rows[] = {
		{ "short", DELTA, "text", "abc", 300, 300 },
		{ "as long as may be", DELTA, "text", "abc", SKIM_STRING_MAX, SKIM_STRING_MAX },
		{ "longer", DELTA, "text", "abc", SKIM_STRING_MAX + 1, SKIM_STRING_MAX },
		{ "much longer", ARGUED, "arguments", "abc", 5 * SKIM_STRING_MAX, SKIM_STRING_MAX },
		{ "not inside an escape", DELTA, "text", "\\u00e4\\n", 2 * SKIM_STRING_MAX,
		  SKIM_STRING_MAX },
		{ "nor inside a character", DELTA, "text", "\xe2\x82\xac", 3 * SKIM_STRING_MAX,
		  SKIM_STRING_MAX + 2 },
		{ "a delta is what everything is about", DELTA, "delta", "abc", 3 * SKIM_STRING_MAX,
		  3 * SKIM_STRING_MAX },
		{ "without a delta it is the first time", "", "text", "abc", 5 * SKIM_STRING_MAX,
		  5 * SKIM_STRING_MAX },
		{ "nor is a delta of another kind one", ARGUED, "text", "abc", 5 * SKIM_STRING_MAX,
		  5 * SKIM_STRING_MAX },
		{ "arguments likewise", DELTA, "arguments", "abc", 5 * SKIM_STRING_MAX,
		  5 * SKIM_STRING_MAX },
		{ "a delta of an item that is over", DELTA DONE, "text", "abc", 5 * SKIM_STRING_MAX,
		  5 * SKIM_STRING_MAX },
		{ "what nobody needs whole", "", "code", "abc", 5 * SKIM_STRING_MAX,
		  SKIM_STRING_MAX },
	};
	static const size_t steps[] = { 1, 7, 1000, SIZE_MAX };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		for (size_t j = 0; j < COUNT_OF(steps); j++) {
			char *text = long_string(rows[i].before, rows[i].member, rows[i].unit,
						 rows[i].len);
			char *want = long_string(rows[i].before, rows[i].member, rows[i].unit,
						 rows[i].passes);
			char *passes = skim(text, strlen(text), steps[j]);
			if (strcmp(passes, want) != 0)
				fail_msg("%s, by %zu: %zu bytes, not %zu", rows[i].name, steps[j],
					 strlen(passes), strlen(want));
			free(text);
			free(want);
			free(passes);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_nobody_reads_becomes_null),
		cmocka_unit_test(everything_else_passes_unchanged),
		cmocka_unit_test(long_strings_that_were_said_before_end_early),
	};
	return cmocka_run_group_tests_name("stream_skim", tests, NULL, NULL);
}
