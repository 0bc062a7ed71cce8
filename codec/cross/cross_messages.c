/* cross_messages.c - content of the Messages API as MCP's (contract/direct.md 2.1). */
#include "codec/cross/cross_parts.h"

enum { TYPE, TEXT, SOURCE, ID, NAME, INPUT, TOOL_USE_ID, CONTENT, IS_ERROR, MEMBERS };
static const char *const names[MEMBERS] = { "type",  "text",        "source",  "id",      "name",
					    "input", "tool_use_id", "content", "is_error" };

/* ---- the system prompt ---- */

/* What Claude Code puts in front is for Anthropic's own accounts. */
static bool is_billing(struct slice string)
{
	return slice_starts(cross_inside(string), SLICE("x-anthropic-billing-header:"));
}

bool cross_messages_system(struct cross *c, void (*put)(struct cross *c, struct slice inside))
{
	const struct slice system = c->q->at[API_SYSTEM].text;
	struct json_loose_walk walk;
	struct cross_at at = { "system", 0, NULL, 0 };

	if (cross_is(system, JSON_LOOSE_STRING)) {
		put(c, cross_inside(system));
		return true;
	}
	json_loose_open(&walk, system);
	for (; json_loose_next(&walk); at.item++) {
		const struct slice text = json_loose_member(walk.value, "text");
		if (!json_loose_is(json_loose_member(walk.value, "type"), "text") ||
		    !cross_is(text, JSON_LOOSE_STRING))
			return cross_refuse(c, &at, "only text can go to this model's provider");
		if (!is_billing(text))
			put(c, cross_inside(text));
	}
	return true;
}

/* ---- blocks ---- */

static bool put_image(struct cross *c, bool *first, struct slice source, const struct cross_at *at)
{
	const struct slice data = json_loose_member(source, "data"),
			   mime = json_loose_member(source, "media_type");

	if (!json_loose_is(json_loose_member(source, "type"), "base64"))
		return cross_refuse(c, at, "this model's provider takes images as base64 alone");
	if (!cross_is(data, JSON_LOOSE_STRING) || !cross_is(mime, JSON_LOOSE_STRING))
		return cross_refuse(c, at, "an image needs source.data and source.media_type");
	cross_put_media(c, first, "image", data, cross_inside(mime));
	return true;
}

/* A document of plain text is a text. */
static bool put_document(struct cross *c, bool *first, struct slice source,
			 const struct cross_at *at)
{
	const struct slice data = json_loose_member(source, "data");

	if (!json_loose_is(json_loose_member(source, "type"), "text") ||
	    !cross_is(data, JSON_LOOSE_STRING))
		return cross_refuse(c, at,
				    "only documents of plain text can go to this model's provider");
	cross_put_text(c, first, data);
	return true;
}

static bool put_text(struct cross *c, bool *first, struct slice text, const struct cross_at *at)
{
	if (!cross_is(text, JSON_LOOSE_STRING))
		return cross_refuse(c, at, "a text block needs a string text");
	cross_put_text(c, first, text);
	return true;
}

/* What both a message and a tool's result may have. */
static bool put_content(struct cross *c, bool *first, const struct slice *m,
			const struct cross_at *at)
{
	if (json_loose_is(m[TYPE], "text"))
		return put_text(c, first, m[TEXT], at);
	if (json_loose_is(m[TYPE], "image"))
		return put_image(c, first, m[SOURCE], at);
	if (json_loose_is(m[TYPE], "document"))
		return put_document(c, first, m[SOURCE], at);
	return cross_refuse(c, at, "content of this type cannot go to this model's provider");
}

static bool put_result(struct cross *c, bool *first, const struct slice *m,
		       const struct cross_at *at)
{
	struct json_loose_walk walk;
	struct slice inner[MEMBERS];
	bool none = true;

	if (!cross_is(m[TOOL_USE_ID], JSON_LOOSE_STRING))
		return cross_refuse(c, at, "a tool_result needs a string tool_use_id");
	cross_open_result(c, first, m[TOOL_USE_ID]);
	const bool text = cross_is(m[CONTENT], JSON_LOOSE_STRING);
	if (text)
		cross_put_text(c, &none, m[CONTENT]);
	if (!cross_open(c, &walk, text ? slice_of(NULL, 0) : m[CONTENT], at))
		return false;
	while (json_loose_next(&walk)) {
		cross_members(walk.value, names, MEMBERS, inner);
		if (!put_content(c, &none, inner, at))
			return false;
	}
	cross_close_result(c, slice_eq(m[IS_ERROR], SLICE("true")));
	return true;
}

static bool put_use(struct cross *c, bool *first, const struct slice *m, const struct cross_at *at)
{
	if (!cross_is(m[ID], JSON_LOOSE_STRING) || !cross_is(m[NAME], JSON_LOOSE_STRING))
		return cross_refuse(c, at, "a tool_use needs a string id and a string name");
	cross_put_use(c, first, m[ID], m[NAME],
		      cross_is(m[INPUT], JSON_LOOSE_OBJECT) ? m[INPUT] : SLICE("{}"));
	return true;
}

/* ---- messages ---- */

enum part { ALL, RESULTS, OTHERS };

static bool put_block(struct cross *c, bool *first, struct slice block, enum part part,
		      const struct cross_at *at)
{
	struct slice m[MEMBERS];

	cross_members(block, names, MEMBERS, m);
	const bool result = json_loose_is(m[TYPE], "tool_result");
	if (part != ALL && result != (part == RESULTS))
		return true;
	if (result)
		return put_result(c, first, m, at);
	if (json_loose_is(m[TYPE], "tool_use"))
		return put_use(c, first, m, at);
	if (json_loose_is(m[TYPE], "thinking") || json_loose_is(m[TYPE], "redacted_thinking")) {
		c->adjustments |= ADJUST_BIT(ADJUST_THINKING_NOT_REPLAYED);
		return true;
	}
	return put_content(c, first, m, at);
}

static bool put_part(struct cross *c, bool assistant, struct slice content, enum part part,
		     struct cross_at *at)
{
	struct json_loose_walk walk;
	bool first = true;

	cross_open_message(c, assistant);
	json_loose_open(&walk, content);
	for (at->inner_item = 0; json_loose_next(&walk); at->inner_item++)
		if (!put_block(c, &first, walk.value, part, at))
			return false;
	cross_close_message(c);
	return true;
}

/* How many blocks are results, and how many are not. */
static void count_parts(struct slice content, uint32_t counts[2])
{
	struct json_loose_walk walk;

	counts[0] = counts[1] = 0;
	json_loose_open(&walk, content);
	while (json_loose_next(&walk))
		counts[json_loose_is(json_loose_member(walk.value, "type"), "tool_result")]++;
}

/* MCP has results in messages of their own. */
static bool put_message(struct cross *c, struct slice message, struct cross_at *at)
{
	const struct slice role = json_loose_member(message, "role"),
			   content = json_loose_member(message, "content");
	const bool assistant = json_loose_is(role, "assistant");
	uint32_t counts[2];
	bool first = true;

	at->inner = NULL;
	if (!assistant && !json_loose_is(role, "user") && !json_loose_is(role, "system"))
		return cross_refuse(c, at, "role must be user, assistant or system");
	if (cross_is(content, JSON_LOOSE_STRING)) {
		cross_open_message(c, assistant);
		cross_put_text(c, &first, content);
		cross_close_message(c);
		return true;
	}
	if (!cross_is(content, JSON_LOOSE_ARRAY))
		return cross_refuse(c, at, "content must be a string or an array of blocks");
	at->inner = "content";
	count_parts(content, counts);
	if (assistant || counts[0] == 0 || counts[1] == 0)
		return put_part(c, assistant, content, ALL, at);
	return put_part(c, false, content, RESULTS, at) && put_part(c, false, content, OTHERS, at);
}

bool cross_messages_history(struct cross *c)
{
	struct json_loose_walk walk;
	struct cross_at at = { "messages", 0, NULL, 0 };

	json_loose_open(&walk, c->q->at[API_MESSAGE_LIST].text);
	for (; json_loose_next(&walk); at.item++)
		if (!put_message(c, walk.value, &at))
			return false;
	return true;
}
