/* fuzz_api_preferences.c - Sluice-Preferences: what passes is within its bounds, and its hints are parts of the text that
 * mean the same raw and plain; written out again it is read as the same. */
#include "codec/api/api_preferences.h"
#include "codec/base/must.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct arena_pool pool = { .keep_max = 4 };

enum { MEMORY = 1 << 16, WRITTEN_MAX = 4096 };

static void check_priority(double priority)
{
	must(isnan(priority) || (priority >= 0 && priority <= 1));
}

static void check_hints(const struct model_preferences *prefer, struct slice text)
{
	must(prefer->hint_count <= API_HINTS_MAX);
	for (uint32_t i = 0; i < prefer->hint_count; i++) {
		const struct slice hint = prefer->hints[i];
		must(hint.at >= text.at && hint.at + hint.len <= text.at + text.len);
		must(hint.len != 0 && hint.len <= API_HINT_BYTES_MAX);
		for (size_t at = 0; at < hint.len; at++)
			must(hint.at[at] >= ' ' && hint.at[at] <= '~' && hint.at[at] != '"' &&
			     hint.at[at] != '\\');
	}
}

static size_t put_priority(char *out, size_t len, const char *name, double priority)
{
	if (isnan(priority))
		return len;
	return len + (size_t)snprintf(out + len, WRITTEN_MAX - len, "%s%s=%.6f",
				      len == 0 ? "" : ", ", name, priority);
}

static size_t write_again(char *out, const struct model_preferences *prefer)
{
	size_t len = put_priority(out, 0, "cost", prefer->cost);

	len = put_priority(out, len, "speed", prefer->speed);
	len = put_priority(out, len, "intelligence", prefer->intelligence);
	for (uint32_t i = 0; i < prefer->hint_count; i++)
		len += (size_t)snprintf(out + len, WRITTEN_MAX - len, "%s%.*s",
					i != 0     ? ","
					: len == 0 ? "hints=\""
						   : "; hints=\"",
					(int)prefer->hints[i].len, prefer->hints[i].at);
	if (prefer->hint_count != 0)
		len += (size_t)snprintf(out + len, WRITTEN_MAX - len, "\"");
	must(len < WRITTEN_MAX);
	return len;
}

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || fabs(a - b) < 1e-9;
}

static void must_agree(const struct model_preferences *a, const struct model_preferences *b)
{
	must(same(a->cost, b->cost) && same(a->speed, b->speed) &&
	     same(a->intelligence, b->intelligence));
	must(a->hint_count == b->hint_count);
	for (uint32_t i = 0; i < a->hint_count; i++)
		must(slice_eq(a->hints[i], b->hints[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct slice text = slice_of((const char *)data, size);
	struct model_preferences prefer, again;
	char written[WRITTEN_MAX];
	struct arena arena;
	bool busy;

	arena_init(&arena, &pool, MEMORY);
	const char *wrong = api_preferences_read(text, &arena, &prefer, &busy);
	must(!busy);
	if (wrong == NULL) {
		check_priority(prefer.cost);
		check_priority(prefer.speed);
		check_priority(prefer.intelligence);
		check_hints(&prefer, text);
		const size_t len = write_again(written, &prefer);
		must(api_preferences_read(slice_of(written, len), &arena, &again, &busy) == NULL);
		must_agree(&prefer, &again);
	}
	arena_give(&arena);
	return 0;
}
