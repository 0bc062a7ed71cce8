#include "codec/dialect.h"

#include "codec/base/must.h"
#include "codec/dialect_anthropic.h"
#include "codec/dialect_openai.h"

static const struct dialect *const dialects[DIALECT_COUNT] = {
	[DIALECT_ANTHROPIC] = &dialect_anthropic,
	[DIALECT_OPENAI] = &dialect_openai,
};

const struct dialect *dialect_get(enum dialect_id id)
{
	must((unsigned)id < DIALECT_COUNT);
	return dialects[id];
}

const struct dialect *dialect_find(struct slice name)
{
	for (size_t i = 0; i < DIALECT_COUNT; i++)
		if (slice_eq(name, slice_str(dialects[i]->name)))
			return dialects[i];
	return NULL;
}

void profile_defaults(struct profile *profile, enum dialect_id dialect, struct slice version)
{
	must((unsigned)dialect < DIALECT_COUNT);

	*profile = (struct profile){ .max_output = 4096,
				     .forced_tool = true,
				     .user_after_tool = true,
				     .max_tokens_field = MAX_TOKENS_FIELD_MAX_TOKENS,
				     .id_rule = ID_RULE_NONE };
	if (dialect == DIALECT_ANTHROPIC) {
		profile->max_stop = 16;
		profile->temperature_max = 1;
		profile->temperature_never = !slice_eq(version, SLICE("2023-06-01"));
	} else {
		profile->max_stop = 4;
		profile->temperature_max = 2;
	}
}
