#include "codec/dialect/stop_search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { STOPS_MAX = 6, TEXT_MAX = 24 };

struct memory {
	struct arena_pool pool;
	struct arena arena;
};

static void memory_init(struct memory *memory)
{
	(void)memset(memory, 0, sizeof(*memory));
	arena_init(&memory->arena, &memory->pool, 1 << 20);
}

static void memory_fini(struct memory *memory)
{
	arena_give(&memory->arena);
	arena_pool_fini(&memory->pool);
}

static size_t find(struct slice *stops, uint32_t count, struct slice text)
{
	struct memory memory;
	struct stop_search search;

	memory_init(&memory);
	assert_true(stop_search_init(&search, stops, count, &memory.arena));
	size_t found = stop_search_find(&search, text);
	memory_fini(&memory);
	return found;
}

/* The same, one stop after the other at every place. */
static size_t find_slowly(const struct slice *stops, uint32_t count, struct slice text)
{
	for (size_t at = 0; at < text.len; at++)
		for (uint32_t i = 0; i < count; i++)
			if (stops[i].len != 0 && stops[i].len <= text.len - at &&
			    memcmp(text.at + at, stops[i].at, stops[i].len) == 0)
				return at;
	return SIZE_MAX;
}

static void the_match_that_begins_first_is_found(void **state)
{
	static const struct {
		const char *text, *stops[3];
		size_t at;
	} rows[] = {
		{ "", { "a" }, SIZE_MAX },
		{ "text", { NULL }, SIZE_MAX },
		{ "text", { "" }, SIZE_MAX },
		{ "text", { "", "x" }, 2 },
		{ "text", { "text" }, 0 },
		{ "text", { "texts" }, SIZE_MAX },
		{ "a STOP, an END", { "END", "STOP" }, 2 },
		{ "abcd", { "bc", "abcd" }, 0 }, /* ends later, begins earlier */
		{ "abce", { "bc", "abcd" }, 1 }, /* did not come to its end */
		{ "aab", { "ab" }, 1 },          /* what failed may have begun the next */
		{ "abcabd", { "abd", "x" }, 3 },
		{ "xhers", { "he", "she", "hers" }, 1 },
		{ "\377\200", { "\200" }, 1 },
		{ "same", { "m", "m", "m" }, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct slice stops[3];
		uint32_t count = 0;
		while (count < 3 && rows[i].stops[count] != NULL) {
			stops[count] = slice_str(rows[i].stops[count]);
			count++;
		}
		size_t found = find(stops, count, slice_str(rows[i].text));
		if (found != rows[i].at)
			fail_msg("%s: %zu", rows[i].text, found);
	}
}

static uint32_t chance(uint32_t *seed, uint32_t below)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 16) % below;
}

/* Of two letters, so that nearly everything nearly matches. */
static struct slice any_text(uint32_t *seed, char *bytes, uint32_t most)
{
	uint32_t len = chance(seed, most + 1);

	for (uint32_t i = 0; i < len; i++)
		bytes[i] = "ab"[chance(seed, 2)];
	return slice_of(bytes, len);
}

static void any_stops_and_text_give_what_a_slow_search_gives(void **state)
{
	uint32_t seed = 1, matched = 0;

	(void)state;
	for (uint32_t round = 0; round < 20000; round++) {
		char bytes[STOPS_MAX][TEXT_MAX], text_bytes[TEXT_MAX];
		struct slice stops[STOPS_MAX], text = any_text(&seed, text_bytes, TEXT_MAX);
		uint32_t count = chance(&seed, STOPS_MAX + 1);
		for (uint32_t i = 0; i < count; i++)
			stops[i] = any_text(&seed, bytes[i], 2 + chance(&seed, 8));
		size_t wanted = find_slowly(stops, count, text), found = find(stops, count, text);
		if (found != wanted)
			fail_msg("round %u: %zu, not %zu", round, found, wanted);
		matched += wanted != SIZE_MAX;
	}
	assert_in_range(matched, 5000, 15000); /* neither is rare */
}

static void exhausted_memory_is_said(void **state)
{
	struct slice stops[] = { SLICE_INIT("stop") };
	struct memory memory;
	struct stop_search search;

	(void)state;
	for (size_t cap = 0; cap < 128; cap += 8) { /* the last is short of the second piece */
		memory_init(&memory);
		memory.arena.cap = cap;
		assert_false(stop_search_init(&search, stops, 1, &memory.arena));
		memory_fini(&memory);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_match_that_begins_first_is_found),
		cmocka_unit_test(any_stops_and_text_give_what_a_slow_search_gives),
		cmocka_unit_test(exhausted_memory_is_said),
	};
	return cmocka_run_group_tests_name("stop_search", tests, NULL, NULL);
}
