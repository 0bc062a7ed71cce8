/* What encoding copies and what it borrows, and JSON in a string, by every instruction set. */
#include "codec/dialect/dialect.h"
#include "codec/set.h"
#include "tests/support/dialect_case.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXTS_MAX = 4000, TEXT_MAX = 300, PARAMS_MAX = TEXTS_MAX * (TEXT_MAX + 64) + 256 };

static int begin(void **state)
{
	static struct dialect_case c;

	case_init(&c, DIALECT_ANTHROPIC);
	*state = &c;
	return 0;
}

static int end(void **state)
{
	case_fini(*state);
	return 0;
}

typedef void set_test(struct dialect_case *c, const char *name);

/* Runs the test with each dialect on each instruction set that this machine has. */
static void with_every_set(struct dialect_case *c, set_test *test)
{
	const struct codec_set *set;
	char name[64];

	for (size_t i = 0; (set = codec_set_at(i)) != NULL; i++)
		for (int dialect = 0; dialect < DIALECT_COUNT; dialect++) {
			case_fini(c);
			case_init(c, (enum dialect_id)dialect);
			json_work_use(c->work, set);
			(void)snprintf(name, sizeof(name), "%s, %s", c->dialect->name, set->name);
			test(c, name);
		}
}

/* One user message with so many texts of `len` bytes. */
static char *texts(size_t count, size_t len)
{
	char *params = malloc(PARAMS_MAX), *at = params;

	assert_non_null(params);
	at += sprintf(at, "\"messages\":[{\"role\":\"user\",\"content\":[");
	for (size_t i = 0; i < count; i++)
		at += sprintf(at, "%s{\"type\":\"text\",\"text\":\"%0*zu\"}", i == 0 ? "" : ",",
			      (int)len, i);
	(void)sprintf(at, "]}]");
	return params;
}

static void encode_texts(struct dialect_case *c, size_t count, size_t len)
{
	char *params = texts(count, len);

	assert_int_equal(case_encode(c, params), ERR_OK);
	free(params);
}

/* How many of the request's texts are entries of the list as they are. */
static size_t borrowed(const struct dialect_case *c)
{
	const struct gather *g = &c->out.body;
	size_t count = 0;

	for (uint32_t i = 0; i < g->count; i++)
		for (uint32_t j = 0; j < c->request.block_count; j++)
			count += g->v[i].iov_base == c->request.blocks[j].text.text.at;
	return count;
}

static size_t sum(const struct gather *g)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < g->count; i++)
		bytes += g->v[i].iov_len;
	return bytes;
}

static void two_hundred(struct dialect_case *c, const char *name)
{
	static const struct {
		size_t count, len, borrowed;
	} rows[] = { { 200, 257, 200 }, { 200, TEXT_MAX, 200 }, { 200, 256, 0 }, { 1, 257, 1 } };

	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		encode_texts(c, rows[i].count, rows[i].len);
		const struct gather *g = &c->out.body;
		if (borrowed(c) != rows[i].borrowed || g->copied != 0 ||
		    g->count > 2 * rows[i].borrowed + 40)
			fail_msg("%s: %zu of %zu: %zu borrowed, %zu bytes copied, %u entries", name,
				 rows[i].count, rows[i].len, borrowed(c), g->copied, g->count);
		assert_int_equal(sum(g), g->total);
		case_reset(c);
	}
}

static void long_texts_are_borrowed_and_short_ones_copied(void **state)
{
	with_every_set(*state, two_hundred);
}

static void very_many(struct dialect_case *c, const char *name)
{
	encode_texts(c, TEXTS_MAX, TEXT_MAX);
	const struct gather *g = &c->out.body;
	if (g->count > GATHER_IOVEC_MAX)
		fail_msg("%s: %u entries", name, g->count);
	assert_int_equal(sum(g), g->total);
	const char *body = case_body(c);
	assert_int_equal(strlen(body), g->total);
	assert_true(json_valid(slice_str(body), NULL, c->work, NULL));
	for (size_t i = 0; i < TEXTS_MAX; i += 399) {
		char text[TEXT_MAX + 3];
		(void)snprintf(text, sizeof(text), "\"%0*zu\"", TEXT_MAX, i);
		assert_non_null(strstr(body, text));
	}
	assert_int_equal(case_encode_again(c), ERR_OK);
	assert_string_equal(case_body(c), body);
}

static void the_list_is_bounded_and_always_the_same(void **state)
{
	with_every_set(*state, very_many);
}

/* ---- JSON in a string ---- */

/* One object, compact, with strings of every kind at every place of a block. */
static size_t make_object(uint32_t seed, char *out)
{
	static const char *const pieces[] = {
		"\\\"",     "\\\\",          "\\n", "a", "b c", "\\\\\\\"", "xxxxxxxxxxxxxxxxx",
		"\xc3\xa9", "\\ud83d\\ude00"
	};
	size_t count = (size_t)sprintf(out, "{");

	for (uint32_t i = 0; i < seed % 7; i++) {
		count += (size_t)sprintf(out + count, "%s\"k%u\":\"", i == 0 ? "" : ",", i);
		for (uint32_t j = 0; j < (seed >> 9) % 16; j++) {
			seed = seed * 1664525 + 1013904223;
			count += (size_t)sprintf(out + count, "%s",
						 pieces[(seed >> 16) % COUNT_OF(pieces)]);
		}
		count += (size_t)sprintf(out + count, "\"");
	}
	return count + (size_t)sprintf(out + count, "}");
}

/* As the inside of a string, one byte after the other. */
static void escape(const char *json, char *out)
{
	for (; *json != '\0'; json++) {
		if (*json == '"' || *json == '\\')
			*out++ = '\\';
		*out++ = *json;
	}
	*out = '\0';
}

static void round_trip(struct dialect_case *c, const char *name)
{
	enum { ROOM = 4096 };
	static char object[ROOM], inside[2 * ROOM], text[4 * ROOM];
	/* What calls a tool, as each dialect answers. */
	static const struct {
		bool quoted; /* the arguments are JSON in a string */
		const char *form;
	} answers[] = {
		[DIALECT_ANTHROPIC] = { false, "{\"content\":[{\"type\":\"tool_use\",\"id\":\"c\","
					       "\"name\":\"get_weather\",\"input\":%s}]}" },
		[DIALECT_OPENAI] = { true,
				     "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"c\","
				     "\"function\":{\"name\":\"get_weather\","
				     "\"arguments\":\"%s\"}}]}}]}" },
		[DIALECT_RESPONSES] = { true, "{\"status\":\"completed\",\"output\":[{\"type\":"
					      "\"function_call\",\"call_id\":\"c\","
					      "\"name\":\"get_weather\",\"arguments\":\"%s\"}]}" },
	};
	_Static_assert(COUNT_OF(answers) == DIALECT_COUNT, "every dialect answers");
	const bool quoted = answers[c->dialect->id].quoted;

	for (uint32_t seed = 0; seed < 600; seed++) {
		(void)make_object(seed * 2654435761u, object);
		escape(object, inside);
		(void)snprintf(text, sizeof(text),
			       "\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
			       "\"text\":\"q\"}},{\"role\":\"assistant\",\"content\":{\"type\":"
			       "\"tool_use\",\"id\":\"c\",\"name\":\"get_weather\",\"input\":%s}},{"
			       "\"role\":\"user\",\"content\":{\"type\":\"tool_result\","
			       "\"toolUseId\":\"c\",\"content\":[]}}],\"tools\":[{\"name\":"
			       "\"get_weather\",\"inputSchema\":{\"type\":\"object\"}}]",
			       object);
		assert_int_equal(case_encode(c, text), ERR_OK);
		if (strstr(case_body(c), quoted ? inside : object) == NULL)
			fail_msg("%s: %s is not in %s", name, object, case_body(c));
		(void)snprintf(text, sizeof(text), answers[c->dialect->id].form,
			       quoted ? inside : object);
		assert_int_equal(case_decode(c, text), ERR_OK);
		if (strstr(case_result(c), object) == NULL)
			fail_msg("%s: %s is not in %s", name, object, case_result(c));
		case_reset(c);
	}
}

static void arguments_come_back_as_they_went(void **state)
{
	with_every_set(*state, round_trip);
}

/* What a provider wrote is read before it is believed. */
static void bad_arguments(struct dialect_case *c, const char *name)
{
	static const char *const arguments[] = {
		"{\\\"a\\\":}", "{\\\"a\\\":1,\\\"a\\\":}", "{\\\"a\\\":\\\"\\\\x\\\"}",
		"[1]",          "{\\\"a\\\":01}",           "{\\\"a\\\":1}}",
	};
	char text[512];

	if (c->dialect->id != DIALECT_OPENAI)
		return;
	for (size_t i = 0; i < COUNT_OF(arguments); i++) {
		(void)snprintf(text, sizeof(text),
			       "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"c\","
			       "\"function\":{\"name\":\"get_weather\",\"arguments\":\"%s\"}}]}}]}",
			       arguments[i]);
		if (case_decode(c, text) != ERR_PROVIDER_ANSWER)
			fail_msg("%s: %s", name, arguments[i]);
	}
}

static void arguments_are_validated(void **state)
{
	with_every_set(*state, bad_arguments);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(long_texts_are_borrowed_and_short_ones_copied),
		TEST(the_list_is_bounded_and_always_the_same),
		TEST(arguments_come_back_as_they_went),
		TEST(arguments_are_validated),
	};
	return cmocka_run_group_tests_name("dialect_gather", tests, NULL, NULL);
}
