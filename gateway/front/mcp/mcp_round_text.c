#include "gateway/front/mcp/mcp_round_text.h"

#include "codec/base/must.h"
#include "codec/json/json_digest.h"
#include "codec/mcp/mcp_edit.h"

/* ---- what is done ---------------------------------------------------------------------------- */

static const struct mcp_round_rule nothing;

static struct mcp_round_rule answering(bool tools)
{
	return (struct mcp_round_rule){
		.follows = true,
		.answers = true,
		.declared = tools ? SLICE("{\"tools\":{}}") : SLICE("{}"),
	};
}

static struct mcp_round_rule refusing(bool declares)
{
	return (struct mcp_round_rule){ .follows = true, .cuts = declares };
}

/* A revision that is not known passes as it is. */
static bool may_have_rounds(const struct mcp_message *request)
{
	const struct mcp_meta *meta = &request->in_params.meta;

	return request->kind == MCP_REQUEST && mcp_message_may_ask(request) &&
	       json_loose_is(meta->protocol_version, "2026-07-28") &&
	       json_loose_kind(meta->client.capabilities) == JSON_LOOSE_OBJECT;
}

struct mcp_round_rule mcp_round_rule(enum mcp_sampling_mode mode, const struct mcp_message *request,
				     bool granted, bool tools)
{
	const bool declares = mcp_declares(&request->in_params.meta.client);

	if (!may_have_rounds(request))
		return nothing;
	switch (mode) {
	case MCP_BACKFILL:
		return declares || !granted ? nothing : answering(tools);
	case MCP_FORCE:
		return granted ? answering(tools) : refusing(declares);
	case MCP_RELAY:
		return nothing;
	case MCP_REFUSE:
		return refusing(declares);
	}
	must(false);
	return nothing;
}

/* ---- towards the server ---------------------------------------------------------------------- */

/* Between the brackets of an object. */
static struct slice members_of(struct slice object)
{
	must(json_loose_kind(object) == JSON_LOOSE_OBJECT);
	return slice_of(object.at + 1, object.len - 2);
}

struct slice mcp_leg_write(const struct mcp_leg *leg, struct arena *into)
{
	const struct mcp_declaration *client = &leg->message->in_params.meta.client;
	struct mcp_edits edits;

	mcp_edits_init(&edits, leg->text, into);
	if (!slice_absent(leg->id))
		mcp_edits_put(&edits, leg->message->id, leg->id);
	if (!slice_absent(leg->rule->declared))
		(void)mcp_edits_declare(&edits, client, leg->rule->declared);
	else if (leg->rule->cuts)
		mcp_edits_undeclare(&edits, client);
	if (leg->answers_round && slice_absent(leg->answers)) {
		mcp_edits_member(&edits, leg->message->params, "requestState",
				 leg->message->in_params.request_state, leg->state);
	} else if (leg->answers_round) {
		const struct slice answers = members_of(leg->answers);
		mcp_edits_round(&edits, leg->message->params, &answers, 1, leg->state);
	}
	return mcp_edits_flat(&edits, into);
}

static struct slice flat(struct gather *text, struct arena *into)
{
	return gather_done(text) == ERR_OK ? gather_flat(text, into) : slice_of(NULL, 0);
}

struct slice mcp_answers_join(const struct mcp_answered *answers, uint32_t count,
			      struct arena *into)
{
	struct gather text;

	gather_init(&text, into);
	gather_lit(&text, "{");
	for (uint32_t i = 0; i < count; i++) {
		if (i != 0)
			gather_lit(&text, ",");
		gather_raw(&text, answers[i].name);
		gather_lit(&text, ":");
		gather_raw(&text, answers[i].value);
	}
	gather_lit(&text, "}");
	return flat(&text, into);
}

/* The names of an object's members, as far as there is room; returns how many. */
static uint32_t names_of(struct slice object, struct slice names[MCP_ENTRIES_MAX])
{
	struct json_loose_walk walk;
	uint32_t count = 0;

	json_loose_open(&walk, object);
	while (count < MCP_ENTRIES_MAX && json_loose_next(&walk))
		names[count++] = walk.name;
	return count;
}

static bool has_name(const struct slice *names, uint32_t count, struct slice name)
{
	for (uint32_t i = 0; i < count; i++)
		if (json_loose_same_id(names[i], name))
			return true;
	return false;
}

struct slice mcp_answers_merge(struct slice ours, struct slice responses, struct arena *into)
{
	struct slice names[MCP_ENTRIES_MAX];
	const uint32_t count = slice_absent(ours) ? 0 : names_of(ours, names);
	struct json_loose_walk walk;
	struct gather text;
	bool first = true;

	gather_init(&text, into);
	gather_lit(&text, "{");
	if (!slice_absent(ours)) {
		gather_raw(&text, members_of(ours));
		first = members_of(ours).len == 0;
	}
	json_loose_open(&walk, responses);
	while (json_loose_next(&walk)) {
		if (has_name(names, count, walk.name))
			continue;
		if (!first)
			gather_lit(&text, ",");
		gather_raw(&text, walk.part);
		first = false;
	}
	gather_lit(&text, "}");
	return flat(&text, into);
}

bool mcp_has_responses(const struct mcp_message *request)
{
	const struct slice responses = request->in_params.input_responses;
	struct json_loose_walk walk;

	switch (json_loose_kind(responses)) {
	case JSON_LOOSE_NONE:
	case JSON_LOOSE_NULL:
		return false;
	case JSON_LOOSE_OBJECT:
		json_loose_open(&walk, responses);
		return json_loose_next(&walk) || walk.bad;
	default:
		return true;
	}
}

bool mcp_round_digest(const struct mcp_message *request, struct arena *into, struct mcp_digest *out)
{
	static const char *const without[] = { "_meta", "inputResponses", "requestState" };
	uint8_t whole[SHA256_BYTES];

	if (!json_digest(request->params, without, COUNT_OF(without), into, whole))
		return false;
	(void)memcpy(out->at, whole, sizeof(out->at));
	return true;
}

/* ---- towards the client ---------------------------------------------------------------------- */

bool mcp_round_asks(const struct mcp_message *response)
{
	return mcp_message_asks(response) &&
	       json_loose_kind(response->in_result.input_requests) == JSON_LOOSE_OBJECT;
}

struct slice mcp_round_show(struct slice text, const struct mcp_message *response,
			    const struct mcp_shown *shown, struct arena *into)
{
	const struct mcp_result *result = &response->in_result;
	struct mcp_edits edits;

	mcp_edits_init(&edits, text, into);
	if (!slice_absent(shown->id))
		mcp_edits_put(&edits, response->id, shown->id);
	if (shown->unsampled)
		(void)mcp_edits_unsample(&edits, result->input_requests);
	if (!slice_absent(shown->state))
		mcp_edits_member(&edits, response->result, "requestState", result->request_state,
				 shown->state);
	return edits.count == 0 && !edits.failed ? text : mcp_edits_flat(&edits, into);
}

struct slice mcp_event_of(struct slice message, struct arena *into)
{
	const char *at = message.at, *end = at + message.len;
	struct gather text;

	gather_init(&text, into);
	gather_lit(&text, "event: message\ndata: ");
	while (at < end) { /* line ends stand between tokens only */
		const char *stop = at;
		while (stop < end && *stop != '\n' && *stop != '\r')
			stop++;
		gather_raw(&text, slice_of(at, (size_t)(stop - at)));
		at = stop < end ? stop + 1 : stop;
	}
	gather_lit(&text, "\n\n");
	return flat(&text, into);
}
