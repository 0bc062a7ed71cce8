/* dialect_members.c - members of a body that a model may refuse: with each it is noted what such a refusal would
 * teach. */
#include "codec/dialect/dialect_request.h"

void encoder_put_max_tokens(struct encoder *e)
{
	const bool older = e->profile->max_tokens_field == MAX_TOKENS_FIELD_MAX_TOKENS;
	struct gather *g = &e->out.body;

	gather_raw(g, older ? SLICE(",\"max_tokens\":") : SLICE(",\"max_completion_tokens\":"));
	gather_uint(g, e->out.max_tokens);
	encoder_may_learn(e, older ? LEARN_COMPLETION_TOKENS : LEARN_MAX_TOKENS);
}

bool encoder_says_choice(struct encoder *e)
{
	const enum tool_mode mode = e->plan.mode;

	if (mode == TOOL_MODE_DEFAULT)
		return false;
	if (e->profile->tool_choice_never) {
		encoder_adjust(e, ADJUST_TOOL_CHOICE_DROPPED);
		return false;
	}
	encoder_may_learn(e,
			  mode == TOOL_MODE_REQUIRED ? LEARN_NO_FORCED_TOOL : LEARN_NO_TOOL_CHOICE);
	return true;
}

bool encoder_says_one_at_a_time(struct encoder *e)
{
	const bool inside = e->rules->parallel_inside && e->profile->tool_choice_never;

	if (!e->plan.no_parallel || e->plan.mode == TOOL_MODE_NONE)
		return false;
	if (e->profile->parallel_never || inside) {
		encoder_adjust(e, ADJUST_PARALLEL_DROPPED);
		return false;
	}
	encoder_may_learn(e, LEARN_NO_PARALLEL);
	return true;
}

/* An effort that the profile's own members say stands, unless it was refused. */
static void put_effort(struct encoder *e, struct slice effort)
{
	const struct profile *profile = e->profile;

	if (profile->effort_said && !profile->effort_never)
		return;
	if (profile->effort_never)
		encoder_adjust(e, ADJUST_EFFORT_DROPPED);
	if (profile->tools_need_effort_none)
		gather_raw(&e->out.body, effort);
	encoder_may_learn(e, profile->tools_need_effort_none ? LEARN_NO_EFFORT : LEARN_EFFORT_NONE);
}

/* __schema__ alone is forced by "required" too: llama.cpp turns a named choice into auto. */
void encoder_put_choice(struct encoder *e, struct slice effort)
{
	static const struct slice modes[] = {
		[TOOL_MODE_AUTO] = SLICE_INIT(",\"tool_choice\":\"auto\""),
		[TOOL_MODE_REQUIRED] = SLICE_INIT(",\"tool_choice\":\"required\""),
		[TOOL_MODE_NONE] = SLICE_INIT(",\"tool_choice\":\"none\""),
	};
	struct gather *g = &e->out.body;

	if (encoder_says_choice(e))
		gather_raw(g, modes[e->plan.mode]);
	if (encoder_says_one_at_a_time(e))
		gather_lit(g, ",\"parallel_tool_calls\":false");
	put_effort(e, effort);
}

void encoder_put_user_id(struct encoder *e)
{
	if (slice_absent(e->plan.user_id))
		return;
	gather_raw(&e->out.body, e->profile->user_id_field == USER_ID_FIELD_USER
					 ? SLICE(",\"user\":")
					 : SLICE(",\"safety_identifier\":"));
	gather_str(&e->out.body, e->plan.user_id);
}

/* The profile's own members but for those about reasoning, each behind a comma. */
static void put_body_without_effort(struct encoder *e, struct slice object)
{
	struct gather *g = &e->out.body;
	struct slice key, value;
	struct json_reader r;

	json_open(&r, object, NULL, NULL);
	for (bool open = json_enter_object(&r); open && json_next_key(&r, &key);) {
		if (!json_skip(&r, &value) || profile_is_effort(key))
			continue;
		gather_lit(g, ",");
		gather_str(g, key);
		gather_lit(g, ":");
		gather_raw(g, value);
	}
	encoder_adjust(e, ADJUST_EFFORT_DROPPED);
}

static SCAN_RARE void put_members(struct encoder *e, struct slice body)
{
	char *object = arena_take(e->into, body.len + 2); /* outlives the snapshot */
	e->failed = e->failed || object == NULL;
	if (object == NULL)
		return;
	object[0] = '{';
	(void)memcpy(object + 1, body.at, body.len);
	object[body.len + 1] = '}';
	if (e->profile->effort_said && e->profile->effort_never) {
		put_body_without_effort(e, slice_of(object, body.len + 2));
		return;
	}
	if (e->profile->effort_said)
		encoder_may_learn(e, LEARN_NO_EFFORT);
	gather_lit(&e->out.body, ",");
	gather_raw(&e->out.body, slice_of(object + 1, body.len));
}

void encoder_put_body(struct encoder *e)
{
	if (e->profile->body.len != 0)
		put_members(e, e->profile->body);
}

void encoder_put_stop(struct encoder *e, struct slice key)
{
	struct gather *g = &e->out.body;

	if (e->plan.stop_count == 0)
		return;
	gather_lit(g, ",\"");
	gather_raw(g, key);
	gather_lit(g, "\":[");
	for (uint32_t i = 0; i < e->plan.stop_count; i++) {
		if (i != 0)
			gather_lit(g, ",");
		gather_str(g, e->plan.stop[i]);
	}
	gather_lit(g, "]");
}
