#include "codec/api/api_answer.h"

static void read_choices(struct slice choices, struct api_answer *out)
{
	struct json_loose_walk walk;

	if (json_loose_kind(choices) != JSON_LOOSE_ARRAY)
		return;
	json_loose_open(&walk, choices);
	while (json_loose_next(&walk)) {
		out->choices++;
		out->stop = json_loose_member(walk.value, "finish_reason");
	}
}

bool api_answer_read(enum api api, struct slice body, struct api_answer *out)
{
	const bool chat = !api_is_anthropic(api);
	struct api_answer a = { .choices = 0 };
	struct json_loose_walk walk;

	*out = a;
	if (!json_loose_whole(body, &a.object) || json_loose_kind(a.object) != JSON_LOOSE_OBJECT)
		return false;
	json_loose_open(&walk, a.object);
	while (json_loose_next(&walk)) {
		if (json_loose_is(walk.name, "model"))
			a.model = walk.value;
		else if (json_loose_is(walk.name, "id"))
			a.id = walk.value;
		else if (json_loose_is(walk.name, "usage"))
			a.usage = walk.value;
		else if (json_loose_is(walk.name, "error"))
			a.error = walk.value;
		else if (chat && json_loose_is(walk.name, "choices"))
			read_choices(walk.value, &a);
		else if (!chat && json_loose_is(walk.name, "stop_reason"))
			a.stop = walk.value;
		else if (!chat && json_loose_is(walk.name, "input_tokens"))
			a.input_tokens = walk.value;
	}
	if (walk.bad)
		return false;
	*out = a;
	return true;
}

/* Whether a string with that inside stands in `body`. */
static bool is_within(struct slice inside, struct slice body)
{
	const uintptr_t from = (uintptr_t)inside.at, begin = (uintptr_t)body.at;

	return !slice_absent(inside) && from > begin && from + inside.len < begin + body.len;
}

struct slice api_answer_model(enum api api, struct slice body, struct slice told)
{
	struct api_answer read;

	if (is_within(told, body))
		return slice_of(told.at - 1, told.len + 2);
	return api_answer_read(api, body, &read) ? read.model : slice_of(NULL, 0);
}

void api_answer_edit(struct slice there, struct slice model, struct mcp_edits *edits)
{
	if (!slice_absent(there) && !slice_eq(there, model))
		mcp_edits_put(edits, there, model);
}

void api_count_write(struct gather *g, uint64_t tokens)
{
	gather_lit(g, "{\"input_tokens\":");
	gather_uint(g, tokens == 0 ? 1 : tokens);
	gather_lit(g, "}");
}
