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

void api_answer_edit(const struct api_answer *answer, struct slice model, struct mcp_edits *edits)
{
	if (!slice_absent(answer->model) && !slice_eq(answer->model, model))
		mcp_edits_put(edits, answer->model, model);
}

void api_count_write(struct gather *g, uint64_t tokens)
{
	gather_lit(g, "{\"input_tokens\":");
	gather_uint(g, tokens == 0 ? 1 : tokens);
	gather_lit(g, "}");
}
