/* dialect_thinking.c - whether a model thinks before it answers, as far as its profile tells. */
#include "codec/base/attr.h"
#include "codec/dialect/dialect.h"
#include "codec/dialect/dialect_text.h"
#include "codec/json/json_read.h"

/* The value behind the name that `at` lies in; absent where it is no name. */
static struct slice value_behind(struct slice text, const char *at)
{
	const char *end = text.at + text.len, *quote = memchr(at, '"', (size_t)(end - at));
	struct slice value = { NULL, 0 };
	struct json_reader r;

	if (quote == NULL)
		return value;
	const struct slice rest = text_trim_json(slice_of(quote + 1, (size_t)(end - quote - 1)));
	if (rest.len == 0 || rest.at[0] != ':')
		return value;
	json_open(&r, slice_of(rest.at + 1, rest.len - 1), NULL, NULL);
	(void)json_skip(&r, &value);
	return value;
}

static bool turns_off(struct slice value)
{
	static const struct slice words[] = { SLICE_INIT("\"none\""), SLICE_INIT("\"disabled\""),
					      SLICE_INIT("\"off\""), SLICE_INIT("false") };

	for (size_t i = 0; i < COUNT_OF(words); i++)
		if (memmem(value.at, value.len, words[i].at, words[i].len) != NULL)
			return true;
	return slice_eq(value, SLICE("0")) || slice_eq(value, SLICE("null"));
}

/* What the profile's body says of thinking, in the words of all hosts: reasoning_effort, reasoning, thinking,
 * enable_thinking, thinking_budget, ... */
static bool body_says(struct slice body, bool *thinks)
{
	static const struct slice words[] = { SLICE_INIT("reason"), SLICE_INIT("think") };
	bool said = false;

	for (size_t i = 0; i < COUNT_OF(words); i++) {
		const char *at =
			body.len == 0 ? NULL : memmem(body.at, body.len, words[i].at, words[i].len);
		const struct slice value =
			at == NULL ? (struct slice){ NULL, 0 } : value_behind(body, at);
		if (slice_absent(value))
			continue;
		*thinks = (!said || *thinks) && !turns_off(value);
		said = true;
	}
	return said;
}

bool profile_thinks(const struct profile *profile, bool tools)
{
	bool thinks = false;

	if (!profile->effort_never && body_says(profile->body, &thinks))
		return thinks;
	if (tools && profile->tools_need_effort_none)
		return false;
	return profile->reasoning || profile->replay_reasoning || profile->think_tags;
}
