#include "codec/dialect/dialect.h"

#include "codec/base/must.h"

static const char *const fact_names[LEARN_COUNT] = {
#define LESSON(symbol, name, meaning) [LEARN_##symbol] = name,
#include "codec/tbl/lessons.h"
#undef LESSON
};

const char *learn_name(enum learn fact)
{
	must((unsigned)fact < LEARN_COUNT);
	return fact_names[fact];
}

bool profile_is_effort(struct slice key)
{
	return json_str_eq(key, SLICE("reasoning_effort")) || json_str_eq(key, SLICE("reasoning"));
}

/* Sets a flag; true when it was not set. */
static bool raise_flag(bool *flag)
{
	const bool before = *flag;

	*flag = true;
	return !before;
}

static bool name_tokens(struct profile *profile, enum max_tokens_field field)
{
	const bool other = profile->max_tokens_field != field;

	profile->max_tokens_field = field;
	return other;
}

/* An effort that tools need is no effort any more, either. */
static bool drop_effort(struct profile *profile)
{
	const bool sent =
		(profile->effort_said && !profile->effort_never) || profile->tools_need_effort_none;

	profile->effort_never = true;
	profile->tools_need_effort_none = false;
	return sent;
}

bool profile_learn(struct profile *profile, enum learn fact)
{
	must((unsigned)fact < LEARN_COUNT);

	const struct profile before = *profile;

	switch (fact) {
	case LEARN_NO_TEMPERATURE:
		return raise_flag(&profile->temperature_never) && !before.reasoning;
	case LEARN_NO_STOP:
		profile->max_stop = 0;
		return before.max_stop != 0;
	case LEARN_COMPLETION_TOKENS:
		return name_tokens(profile, MAX_TOKENS_FIELD_COMPLETION);
	case LEARN_MAX_TOKENS:
		return name_tokens(profile, MAX_TOKENS_FIELD_MAX_TOKENS);
	case LEARN_NO_EFFORT:
		return drop_effort(profile);
	case LEARN_EFFORT_NONE:
		return raise_flag(&profile->tools_need_effort_none) &&
		       (!before.effort_said || before.effort_never);
	case LEARN_NO_FORCED_TOOL:
		profile->forced_tool = false;
		return before.forced_tool;
	case LEARN_NO_TOOL_CHOICE:
		return raise_flag(&profile->tool_choice_never);
	case LEARN_NO_STRUCTURED:
		return raise_flag(&profile->structured_never) && before.structured_output;
	case LEARN_NO_PARALLEL:
		return raise_flag(&profile->parallel_never);
	case LEARN_NO_USER_ID:
		profile->user_id_field = USER_ID_FIELD_NONE;
		return before.user_id_field != USER_ID_FIELD_NONE;
	case LEARN_NO_STREAM_OPTIONS:
		profile->stream_usage = false;
		return before.stream_usage;
	case LEARN_UNBIND_THINKING:
	case LEARN_NOTHING:
	case LEARN_COUNT:
		break;
	}
	return false;
}

void profile_learn_all(struct profile *profile, learn_set facts)
{
	for (int fact = 0; facts != 0; fact++, facts >>= 1)
		if (facts & 1)
			(void)profile_learn(profile, (enum learn)fact);
}

/* Raw text that no provider has a reason to mind: short, visible ASCII without escapes. */
static bool is_tame(struct slice raw)
{
	enum { TAME_MAX = 64 };
	bool visible = false;

	for (size_t i = 0; i < raw.len; i++) {
		if (raw.at[i] < ' ' || raw.at[i] > '~' || raw.at[i] == '\\')
			return false;
		visible |= raw.at[i] != ' ';
	}
	return visible && raw.len <= TAME_MAX;
}

static bool is_fair_temperature(struct slice number)
{
	enum { DIGITS_MAX = 16 };
	const double value = slice_absent(number) ? -1 : json_to_double(number);

	return value >= 0 && value <= 1 && number.len <= DIGITS_MAX;
}

bool learn_is_fair(const struct sampling_request *request, enum learn fact)
{
	enum { STOPS_MAX = 4 };

	switch (fact) {
	case LEARN_NO_TEMPERATURE:
		return is_fair_temperature(request->temperature);
	case LEARN_NO_STOP:
		for (uint32_t i = 0; i < request->stop_count; i++)
			if (!is_tame(request->stop[i]))
				return false;
		return request->stop_count <= STOPS_MAX;
	case LEARN_NO_USER_ID:
		return is_tame(request->user_id);
	default:
		return true; /* their values are the gateway's or the operator's */
	}
}
