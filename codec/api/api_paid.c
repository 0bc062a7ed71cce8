#include "codec/api/api_paid.h"

#include "codec/json/json_loose.h"

static void say(struct api_said *said, struct slice value)
{
	if (json_loose_kind(value) != JSON_LOOSE_STRING || value.len - 2 > sizeof(said->text))
		return;
	said->len = (uint8_t)(value.len - 2);
	(void)memcpy(said->text, value.at + 1, value.len - 2);
}

void api_paid_tier(struct api_paid *paid, struct slice value)
{
	say(&paid->tier, value);
}

enum { USES_MOST = 1 << 30 };

/* All numbers of the object together. */
static uint64_t sum_of(struct slice counts)
{
	struct json_loose_walk walk;
	uint64_t sum = 0;
	double count;

	if (json_loose_kind(counts) != JSON_LOOSE_OBJECT)
		return 0;
	json_loose_open(&walk, counts);
	while (json_loose_next(&walk))
		if (json_loose_number(walk.value, &count) && count > 0)
			sum += count < USES_MOST ? (uint64_t)count : USES_MOST;
	return sum;
}

void api_paid_usage(struct api_paid *paid, struct slice usage, bool last)
{
	struct json_loose_walk walk;

	if (json_loose_kind(usage) != JSON_LOOSE_OBJECT)
		return;
	if (last) {
		paid->uses_said = true;
		paid->uses = 0;
	}
	json_loose_open(&walk, usage);
	while (json_loose_next(&walk)) {
		if (json_loose_is(walk.name, "service_tier"))
			say(&paid->tier, walk.value);
		else if (json_loose_is(walk.name, "speed"))
			say(&paid->speed, walk.value);
		else if (last && json_loose_is(walk.name, "server_tool_use"))
			paid->uses = sum_of(walk.value);
	}
}

void api_paid_answer(struct api_paid *paid, enum api api, struct slice body)
{
	struct slice object;

	if (!json_loose_whole(body, &object) || json_loose_kind(object) != JSON_LOOSE_OBJECT)
		return;
	if (api_is_anthropic(api))
		api_paid_usage(paid, json_loose_member(object, "usage"), true);
	else
		api_paid_tier(paid, json_loose_member(object, "service_tier"));
}
