#include "routing/hint.h"

#include "codec/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { SONNET, SONNET_2, GPT, MODELS };

static const struct slice aliases[] = { SLICE_INIT("Best") };
static const struct model models[MODELS] = {
	[SONNET] = { .id = SLICE_INIT("claude-sonnet"),
		     .name = SLICE_INIT("claude-sonnet-4-6"),
		     .aliases = aliases,
		     .alias_count = 1 },
	[SONNET_2] = { .id = SLICE_INIT("claude-sonnet-2"), .name = SLICE_INIT("x") },
	[GPT] = { .id = SLICE_INIT("gpt"), .name = SLICE_INIT("GPT-4o-mini") },
};
static const struct catalog catalog = { .models = models, .count = MODELS };

static void names_are_matched_exactly_or_in_part(void **state)
{
	static const struct {
		const char *hint;
		uint64_t exact, part;
	} rows[] = {
		{ "claude-sonnet", 1 << SONNET, 1 << SONNET_2 },
		{ "CLAUDE-SONNET-4-6", 1 << SONNET, 0 },
		{ "sonnet", 0, 1 << SONNET | 1 << SONNET_2 },
		{ "best", 1 << SONNET, 0 },
		{ "es", 0, 1 << SONNET },
		{ "gpt", 1 << GPT, 0 },
		{ "o-mini", 0, 1 << GPT },
		{ "gemini", 0, 0 },
		{ "claude-sonnet-4-6-and-more-than-any-name-has-to-say-about-itself-in-here", 0,
		  0 },
	};
	static struct hint_memory memory;
	struct hint_models found, scratch;

	(void)state;
	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < COUNT_OF(rows); i++) {
			const struct slice hint = slice_str(rows[i].hint);
			hint_match(&catalog, hint, &found);
			const struct hint_models *known =
				hint_recall(&memory, &catalog, hint, &scratch);
			if (found.exact.words[0] != rows[i].exact ||
			    found.part.words[0] != rows[i].part ||
			    memcmp(known, &found, sizeof(found)) != 0)
				fail_msg("%s, round %d", rows[i].hint, round);
		}
	assert_ptr_equal(hint_recall(NULL, &catalog, SLICE("gpt"), &scratch), &scratch);
}

static void hints_seen_again_are_not_matched_again(void **state)
{
	static struct hint_memory memory;
	const struct catalog empty = { 0 };
	struct hint_models scratch;

	(void)state;
	(void)hint_recall(&memory, &catalog, SLICE("gpt"), &scratch);
	/* An empty catalogue would find nothing: what is found is remembered. */
	assert_int_equal(hint_recall(&memory, &empty, SLICE("gpt"), &scratch)->exact.words[0],
			 1 << GPT);
}

static void however_many_hints_there_are_the_memory_tells_the_truth(void **state)
{
	static struct hint_memory memory;
	uint32_t places = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct hint_models found, scratch;
		char text[HINT_MEMORY_BYTES + 8];
		const int len = snprintf(
			text, sizeof(text), "%s%d%.*s", i % 3 == 0 ? "g" : "", i * 7919 % 3001,
			i % 64, "claude-sonnet-claude-sonnet-claude-sonnet-claude-sonnet-claude");
		const struct slice hint = slice_of(text, (size_t)len);
		hint_match(&catalog, hint, &found);
		assert_memory_equal(hint_recall(&memory, &catalog, hint, &scratch), &found,
				    sizeof(found));
	}
	for (size_t i = 0; i < HINT_MEMORY; i++)
		places += memory.known[i].len != 0;
	assert_int_equal(places, HINT_MEMORY); /* they are spread over all of it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_matched_exactly_or_in_part),
		cmocka_unit_test(hints_seen_again_are_not_matched_again),
		cmocka_unit_test(however_many_hints_there_are_the_memory_tells_the_truth),
	};

	return cmocka_run_group_tests_name("hint", tests, NULL, NULL);
}
