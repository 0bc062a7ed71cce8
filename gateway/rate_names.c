#include "gateway/rate_names.h"

#include "codec/base/attr.h"
#include "codec/dialect.h"

enum { SHORTEST = sizeof("x-ratelimit-limit-tokens") - 1 };

#define ANTHROPIC(kind, name)                                                                   \
	{ SLICE_INIT("anthropic-ratelimit-" name "-limit"), kind, RATE_LIMIT },                 \
		{ SLICE_INIT("anthropic-ratelimit-" name "-remaining"), kind, RATE_REMAINING }, \
	{                                                                                       \
		SLICE_INIT("anthropic-ratelimit-" name "-reset"), kind, RATE_RESET              \
	}
#define OPENAI(kind, name)                                                           \
	{ SLICE_INIT("x-ratelimit-limit-" name), kind, RATE_LIMIT },                 \
		{ SLICE_INIT("x-ratelimit-remaining-" name), kind, RATE_REMAINING }, \
	{                                                                            \
		SLICE_INIT("x-ratelimit-reset-" name), kind, RATE_RESET              \
	}

static const struct rate_name {
	struct slice name;
	enum rate_kind kind;
	enum rate_field field;
} rate_names[] = {
	ANTHROPIC(RATE_REQUESTS, "requests"),
	ANTHROPIC(RATE_TOKENS, "tokens"),
	ANTHROPIC(RATE_INPUT_TOKENS, "input-tokens"),
	ANTHROPIC(RATE_OUTPUT_TOKENS, "output-tokens"),
	OPENAI(RATE_REQUESTS, "requests"),
	OPENAI(RATE_TOKENS, "tokens"),
};

bool rate_name_find(struct slice name, uint32_t *kind, enum rate_field *field)
{
	if (name.len < SHORTEST) /* most headers */
		return false;
	for (size_t i = 0; i < COUNT_OF(rate_names); i++)
		if (slice_eq_nocase(name, rate_names[i].name)) {
			*kind = rate_names[i].kind;
			*field = rate_names[i].field;
			return true;
		}
	return false;
}
