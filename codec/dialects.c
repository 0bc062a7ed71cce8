#include "codec/dialects.h"

#include "codec/base/must.h"

#define DIALECT_OBJECT(symbol, file, name) extern const struct dialect dialect_##file;
DIALECTS(DIALECT_OBJECT)
#undef DIALECT_OBJECT

static const struct dialect *const dialects[DIALECT_COUNT] = {
#define DIALECT_ROW(symbol, file, name) [DIALECT_##symbol] = &dialect_##file,
	DIALECTS(DIALECT_ROW)
#undef DIALECT_ROW
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
				     .stream_usage = true,
				     .count_tokens = dialects[dialect]->count_path != NULL,
				     .max_tokens_field = MAX_TOKENS_FIELD_MAX_TOKENS,
				     .id_rule = ID_RULE_NONE };
	dialects[dialect]->defaults(profile, version);
}
