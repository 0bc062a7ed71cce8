#include "routing/name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { SONNET, SONNET_BEDROCK, OLD, GPT, HAIKU, MODELS };

static const struct slice aliases[] = { SLICE_INIT("best"), SLICE_INIT("Vendor/Best") };
static const struct model models[MODELS] = {
	[SONNET] = { .id = SLICE_INIT("sonnet"),
		     .name = SLICE_INIT("claude-sonnet-4-5-20250929"),
		     .aliases = aliases,
		     .alias_count = 2 },
	[SONNET_BEDROCK] = { .id = SLICE_INIT("sonnet-aws"),
			     .name = SLICE_INIT("us.anthropic.claude-sonnet-4-5-20250929-v1:0") },
	[OLD] = { .id = SLICE_INIT("claude-3-5-sonnet-20240620"), .name = SLICE_INIT("x") },
	[GPT] = { .id = SLICE_INIT("gpt-4o"), .name = SLICE_INIT("gpt-4o") },
	[HAIKU] = { .id = SLICE_INIT("claude-haiku-4-5"), .name = SLICE_INIT("claude-haiku-4-5") },
};
static const struct catalog catalog = { .models = models, .count = MODELS };

static const struct hint_alias table[] = {
	{ SLICE_INIT("claude-opus-*"), { .words = { 1 << SONNET } } },
	{ SLICE_INIT("fast"), { .words = { 1 << GPT | 1 << HAIKU } } },
};

static const struct name_row {
	const char *name;
	uint64_t models;
} name_rows[] = {
	{ "sonnet", 1 << SONNET },
	{ "best", 1 << SONNET },
	{ "gpt-4o", 1 << GPT },
	{ "GPT-4O", 1 << GPT },
	{ "openai/gpt-4o", 1 << GPT },
	{ "models/gpt-4o", 1 << GPT },
	{ "gpt-4o-latest", 1 << GPT },
	{ "gpt-4o-20240806", 1 << GPT },
	{ "claude-haiku-4-5[1m]", 1 << HAIKU },
	{ "claude-haiku-4-5@20251001", 1 << HAIKU },
	{ "vendor/best", 1 << SONNET },
	/* exactly one's own name: no other that is like it */
	{ "claude-sonnet-4-5-20250929", 1 << SONNET },
	{ "Claude-Sonnet-4-5-20250929", 1 << SONNET | 1 << SONNET_BEDROCK },
	{ "claude-sonnet-4-5", 1 << SONNET | 1 << SONNET_BEDROCK },
	{ "anthropic/claude-sonnet-4-5@20250929", 1 << SONNET | 1 << SONNET_BEDROCK },
	{ "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 1 << SONNET | 1 << SONNET_BEDROCK },
	/* two dates are two models */
	{ "claude-sonnet-4-5-20260101", 0 },
	{ "claude-3-5-sonnet-20241022", 0 },
	{ "claude-3-5-sonnet", 1 << OLD },
	/* the tenant's table */
	{ "claude-opus-4-1", 1 << SONNET },
	{ "Claude-Opus-4-1-20250805", 1 << SONNET },
	{ "anthropic/claude-opus-4-1", 1 << SONNET },
	{ "fast", 1 << GPT | 1 << HAIKU },
	/* nobody */
	{ "", 0 },
	{ "son", 0 },
	{ "sonnet-4", 0 },
	{ "claude", 0 },
	{ "gpt-4", 0 },
	{ "gpt-4o-mini", 0 },
	{ "openai/", 0 },
	{ "-20240806", 0 },
	{ "gpt-4o-v1", 0 },
};

static void a_name_means_whoever_has_it(void **state)
{
	struct bitset found;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(name_rows); i++) {
		name_match(&catalog, table, COUNT_OF(table), slice_str(name_rows[i].name), &found);
		if (found.words[0] != name_rows[i].models)
			fail_msg("%s: %llx", name_rows[i].name, (unsigned long long)found.words[0]);
	}
}

/* ---- ids before other names, other names before globs ---- */

enum { OWN, OTHER, HAIKUS, HAIKUS_TOO, CLAUDES, WILD };

static const struct slice others[] = { SLICE_INIT("own"), SLICE_INIT("both"),
				       SLICE_INIT("claude-haiku-3") };
static const struct slice haikus[] = { SLICE_INIT("both"), SLICE_INIT("Claude-Haiku-*") };
static const struct slice claudes[] = { SLICE_INIT("claude-*"), SLICE_INIT("claude-*-x") };
static const struct slice wilds[] = { SLICE_INIT("*haiku-4*"), SLICE_INIT("claude-haiku-?-mini*"),
				      SLICE_INIT("auto*") };
static const struct model named[] = {
	[OWN] = { .id = SLICE_INIT("own"), .name = SLICE_INIT("p-own") },
	[OTHER] = { .id = SLICE_INIT("other"),
		    .name = SLICE_INIT("p-own"),
		    .aliases = others,
		    .alias_count = 3 },
	[HAIKUS] = { .id = SLICE_INIT("haiku"),
		     .name = SLICE_INIT("p-haiku"),
		     .aliases = haikus,
		     .alias_count = 2 },
	[HAIKUS_TOO] = { .id = SLICE_INIT("haiku-too"),
			 .name = SLICE_INIT("p-haiku"),
			 .aliases = haikus,
			 .alias_count = 2 },
	[CLAUDES] = { .id = SLICE_INIT("auto"),
		      .name = SLICE_INIT("p-claude"),
		      .aliases = claudes,
		      .alias_count = 2 },
	[WILD] = { .id = SLICE_INIT("wild"),
		   .name = SLICE_INIT("p-wild"),
		   .aliases = wilds,
		   .alias_count = 3 },
};
static const struct catalog named_catalog = { .models = named, .count = COUNT_OF(named) };
static const struct hint_alias named_table[] = {
	{ SLICE_INIT("claude-haiku-9*"), { .words = { 1 << OWN } } },
};

static const struct name_row glob_rows[] = {
	{ "own", 1 << OWN }, /* its id, whoever has it as an alias */
	{ "p-own", 1 << OWN | 1 << OTHER },
	{ "both", 1 << OTHER | 1 << HAIKUS | 1 << HAIKUS_TOO },
	{ "claude-haiku-3", 1 << OTHER },          /* not the glob's */
	{ "claude-haiku-3-20240307", 1 << OTHER }, /* nor when it is dressed */
	{ "claude-haiku-9-1", 1 << OWN },          /* nor when the tenant says otherwise */
	{ "claude-haiku-4-5", 1 << HAIKUS | 1 << HAIKUS_TOO },
	{ "CLAUDE-HAIKU-4-5-20251001", 1 << HAIKUS | 1 << HAIKUS_TOO },
	{ "us.anthropic.claude-haiku-4-5-20251001-v1:0", 1 << HAIKUS | 1 << HAIKUS_TOO },
	{ "claude-haiku-", 1 << HAIKUS | 1 << HAIKUS_TOO },
	{ "claude-haiku-7-mini", 1 << WILD }, /* as much in front, and more behind it */
	{ "claude-sonnet-5", 1 << CLAUDES },
	{ "my-haiku-4", 1 << WILD },
	{ "my-claude-sonnet", 0 },
	{ "claude", 0 },
	{ "claude-haiku", 1 << CLAUDES },
	{ "auto", 0 }, /* the caller leaves it to routing */
	{ "Auto", 0 },
	{ "automatic", 1 << WILD },
};

static void ids_win_over_names_and_names_over_globs(void **state)
{
	struct bitset found;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(glob_rows); i++) {
		name_match(&named_catalog, named_table, COUNT_OF(named_table),
			   slice_str(glob_rows[i].name), &found);
		if (found.words[0] != glob_rows[i].models)
			fail_msg("%s: %llx", glob_rows[i].name, (unsigned long long)found.words[0]);
	}
}

static void a_name_that_is_too_long_is_nobodys(void **state)
{
	char long_name[NAME_BYTES_MAX + 1];
	const struct hint_alias all = { SLICE_INIT("*"), { .words = { 1 } } };
	struct bitset found;

	(void)state;
	(void)memset(long_name, 'x', sizeof(long_name));
	name_match(&catalog, &all, 1, slice_of(long_name, sizeof(long_name)), &found);
	assert_false(bitset_any(&found));
	name_match(&catalog, &all, 1, slice_of(long_name, sizeof(long_name) - 1), &found);
	assert_true(bitset_any(&found));
}

static const struct core_row {
	const char *name, *core, *date;
} core_rows[] = {
	{ "claude-3", "claude-3", NULL },
	{ "us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "20250929" },
	{ "anthropic.claude-v2:1", "claude-v2:1", NULL },
	{ "us.meta.llama-v1:0", "us.meta.llama", NULL },
	{ "-v1:0", "-v1:0", NULL },
	{ "a-latest", "a", NULL },
	{ "latest", "latest", NULL },
	{ "a@20250101", "a", "20250101" },
	{ "a-2025010", "a-2025010", NULL },
};

static void names_lose_what_is_put_around_them(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(core_rows); i++) {
		struct slice date;
		const struct slice core = name_core(slice_str(core_rows[i].name), &date);
		if (!slice_eq(core, slice_str(core_rows[i].core)) ||
		    !slice_eq(date, slice_str(core_rows[i].date)))
			fail_msg("%s: %.*s", core_rows[i].name, (int)core.len, core.at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_means_whoever_has_it),
		cmocka_unit_test(ids_win_over_names_and_names_over_globs),
		cmocka_unit_test(a_name_that_is_too_long_is_nobodys),
		cmocka_unit_test(names_lose_what_is_put_around_them),
	};

	return cmocka_run_group_tests_name("name", tests, NULL, NULL);
}
