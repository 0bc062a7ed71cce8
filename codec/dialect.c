#include "codec/dialect.h"

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
				     .max_tokens_field = MAX_TOKENS_FIELD_MAX_TOKENS,
				     .id_rule = ID_RULE_NONE };
	dialects[dialect]->defaults(profile, version);
}

bool profile_learn(struct profile *profile, enum learn fact)
{
	const struct profile before = *profile;

	switch (fact) {
	case LEARN_NO_TEMPERATURE:
		profile->temperature_never = true;
		return !before.temperature_never && !before.reasoning;
	case LEARN_NO_STOP:
		profile->max_stop = 0;
		return before.max_stop != 0;
	case LEARN_COMPLETION_TOKENS:
		profile->max_tokens_field = MAX_TOKENS_FIELD_COMPLETION;
		return before.max_tokens_field != MAX_TOKENS_FIELD_COMPLETION;
	case LEARN_EFFORT_NONE:
		profile->tools_need_effort_none = true;
		return !before.tools_need_effort_none && !before.effort_said;
	case LEARN_NO_FORCED_TOOL:
		profile->forced_tool = false;
		return before.forced_tool;
	case LEARN_UNBIND_THINKING: /* of a conversation, not of the model */
	case LEARN_NOTHING:
	case LEARN_COUNT:
		break;
	}
	return false;
}

void profile_learn_all(struct profile *profile, learn_set facts)
{
	for (int fact = 0; fact < LEARN_COUNT; fact++)
		if (facts & LEARN_BIT(fact))
			(void)profile_learn(profile, (enum learn)fact);
}
