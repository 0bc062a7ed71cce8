#include "codec/mcp/sampling.h"

#include "codec/base/must.h"

const struct sampling_limits sampling_limits_default = {
	.messages_max = 4096,
	.blocks_max = 16384,
	.tools_max = 1024,
	.stop_max = 256,
	.stop_bytes_max = 8192,
	.json = { JSON_DEPTH_MAX, JSON_KEYS_MAX },
};

static const char *const revision_names[REVISION_COUNT] = {
	[REVISION_2024_11_05] = "2024-11-05", [REVISION_2025_03_26] = "2025-03-26",
	[REVISION_2025_06_18] = "2025-06-18", [REVISION_SEP_1577_DRAFT] = "sep-1577-draft",
	[REVISION_2025_11_25] = "2025-11-25", [REVISION_2026_07_28] = "2026-07-28",
};

const char *revision_name(enum revision revision)
{
	must((unsigned)revision < REVISION_COUNT);
	return revision_names[revision];
}

bool revision_find(struct slice name, enum revision *out)
{
	for (size_t i = 0; i < REVISION_COUNT; i++)
		if (slice_eq(name, slice_str(revision_names[i]))) {
			*out = (enum revision)i;
			return true;
		}
	return false;
}

const char *adjustment_code(enum adjustment adjustment)
{
	static const char *const codes[ADJUST_COUNT] = {
#define ADJUSTMENT(symbol, code, meaning) [ADJUST_##symbol] = code,
#include "codec/tbl/adjustments.h"
#undef ADJUSTMENT
	};

	must((unsigned)adjustment < ADJUST_COUNT);
	return codes[adjustment];
}

const char *stop_reason_name(enum stop_reason reason)
{
	static const char *const names[] = {
		[STOP_END_TURN] = "endTurn",     [STOP_SEQUENCE] = "stopSequence",
		[STOP_MAX_TOKENS] = "maxTokens", [STOP_TOOL_USE] = "toolUse",
		[STOP_REFUSAL] = "refusal",      [STOP_OTHER] = "other",
	};

	must((unsigned)reason < COUNT_OF(names));
	return names[reason];
}
