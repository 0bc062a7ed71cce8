/* cross_chat.c - content of the Chat Completions API as MCP's (contract/direct.md 3.1). */
#include "codec/cross/cross_parts.h"

#include "codec/json/json_read.h"

/* ---- parts ---- */

static bool is_data_uri(struct slice inside)
{
	static const struct slice scheme = SLICE_INIT("data:");

	return inside.len > scheme.len && slice_eq_nocase(slice_of(inside.at, scheme.len), scheme);
}

/* The media type of a data URI, as it is written there. */
static struct slice mime_of(struct slice inside)
{
	struct slice rest = slice_of(inside.at + 5, inside.len - 5);
	struct slice head = slice_cut(&rest, ',');

	return slice_cut(&head, ';');
}

static bool put_image(struct cross *c, bool *first, struct slice image, const struct cross_at *at)
{
	const struct slice url =
		cross_is(image, JSON_LOOSE_STRING) ? image : json_loose_member(image, "url");

	if (!cross_is(url, JSON_LOOSE_STRING))
		return cross_refuse(c, at, "image_url needs a string url");
	if (!is_data_uri(cross_inside(url)))
		return cross_refuse(c, at, "this model's provider takes images as data URIs alone");
	cross_put_media(c, first, "image", url, mime_of(cross_inside(url)));
	return true;
}

static bool put_sound(struct cross *c, bool *first, struct slice sound, const struct cross_at *at)
{
	const struct slice data = json_loose_member(sound, "data"),
			   format = json_loose_member(sound, "format");

	if (!cross_is(data, JSON_LOOSE_STRING))
		return cross_refuse(c, at, "input_audio needs string data");
	if (json_loose_is(format, "wav"))
		cross_put_media(c, first, "audio", data, SLICE("audio/wav"));
	else if (json_loose_is(format, "mp3"))
		cross_put_media(c, first, "audio", data, SLICE("audio/mpeg"));
	else
		return cross_refuse(c, at, "input_audio.format must be wav or mp3");
	return true;
}

static bool put_part(struct cross *c, bool *first, struct slice part, const struct cross_at *at)
{
	enum { TYPE, TEXT, REFUSAL, IMAGE, SOUND, MEMBERS };
	static const char *const names[] = { "type", "text", "refusal", "image_url",
					     "input_audio" };
	struct slice m[MEMBERS];

	cross_members(part, names, MEMBERS, m);
	if (json_loose_is(m[TYPE], "image_url"))
		return put_image(c, first, m[IMAGE], at);
	if (json_loose_is(m[TYPE], "input_audio"))
		return put_sound(c, first, m[SOUND], at);
	const bool refusal = json_loose_is(m[TYPE], "refusal");
	const struct slice text = refusal ? m[REFUSAL] : m[TEXT];
	if (!refusal && !json_loose_is(m[TYPE], "text"))
		return cross_refuse(c, at,
				    "content of this type cannot go to this model's provider");
	if (!cross_is(text, JSON_LOOSE_STRING))
		return cross_refuse(c, at, "a text part needs a string text");
	cross_put_text(c, first, text);
	return true;
}

/* A string, parts, or null. */
static bool put_content(struct cross *c, bool *first, struct slice content, struct cross_at *at)
{
	struct json_loose_walk walk;

	at->inner = "content";
	at->inner_item = CROSS_NO_ITEM;
	switch (json_loose_kind(content)) {
	case JSON_LOOSE_NONE:
	case JSON_LOOSE_NULL:
		return true;
	case JSON_LOOSE_STRING:
		cross_put_text(c, first, content);
		return true;
	case JSON_LOOSE_ARRAY:
		break;
	default:
		return cross_refuse(c, at, "content must be a string or an array of parts");
	}
	json_loose_open(&walk, content);
	for (at->inner_item = 0; json_loose_next(&walk); at->inner_item++)
		if (!put_part(c, first, walk.value, at))
			return false;
	return true;
}

/* ---- calls ---- */

/* Arguments as the object that they are; what is none becomes an empty one. Absent: no memory. */
static struct slice input_of(struct cross *c, struct slice arguments)
{
	struct slice value = { NULL, 0 };

	if (cross_is(arguments, JSON_LOOSE_STRING)) {
		const struct slice text = json_str_plain(cross_inside(arguments), c->into);
		if (slice_absent(text))
			return text;
		if (json_valid(text, NULL, c->work, NULL) && json_loose_whole(text, &value) &&
		    cross_is(value, JSON_LOOSE_OBJECT))
			return value;
		if (text.len == 0) /* how some clients write none */
			return SLICE("{}");
	}
	c->adjustments |= ADJUST_BIT(ADJUST_ARGUMENTS_REPLACED);
	return SLICE("{}");
}

static bool put_call(struct cross *c, bool *first, struct slice call, const struct cross_at *at)
{
	enum { ID, TYPE, FUNCTION, MEMBERS };
	static const char *const names[] = { "id", "type", "function" };
	struct slice m[MEMBERS];

	cross_members(call, names, MEMBERS, m);
	const struct slice name = json_loose_member(m[FUNCTION], "name");
	if (!slice_absent(m[TYPE]) && !json_loose_is(m[TYPE], "function"))
		return cross_refuse(c, at,
				    "only calls of functions can go to this model's provider");
	if (!cross_is(m[ID], JSON_LOOSE_STRING) || !cross_is(name, JSON_LOOSE_STRING))
		return cross_refuse(c, at, "a call needs a string id and a string function.name");
	const struct slice input = input_of(c, json_loose_member(m[FUNCTION], "arguments"));
	if (slice_absent(input))
		return cross_busy(c);
	cross_put_use(c, first, m[ID], name, input);
	return true;
}

static bool put_calls(struct cross *c, bool *first, struct slice calls, struct cross_at *at)
{
	struct json_loose_walk walk;

	at->inner = "tool_calls";
	at->inner_item = CROSS_NO_ITEM;
	if (!cross_open(c, &walk, calls, at))
		return false;
	for (at->inner_item = 0; json_loose_next(&walk); at->inner_item++)
		if (!put_call(c, first, walk.value, at))
			return false;
	return true;
}

/* ---- messages ---- */

enum { ROLE, CONTENT, REFUSAL, CALLS, CALL, CALL_ID, MEMBERS };

static bool put_assistant(struct cross *c, const struct slice *m, struct cross_at *at)
{
	bool first = true;

	if (!slice_absent(m[CALL])) {
		at->inner = "function_call";
		at->inner_item = CROSS_NO_ITEM;
		return cross_refuse(c, at, "use tool_calls with this model");
	}
	cross_open_message(c, true);
	if (!put_content(c, &first, m[CONTENT], at))
		return false;
	if (cross_is(m[REFUSAL], JSON_LOOSE_STRING))
		cross_put_text(c, &first, m[REFUSAL]);
	if (!put_calls(c, &first, m[CALLS], at))
		return false;
	cross_close_message(c);
	return true;
}

static bool put_result(struct cross *c, const struct slice *m, struct cross_at *at)
{
	bool first = true, inner_first = true;

	if (!cross_is(m[CALL_ID], JSON_LOOSE_STRING))
		return cross_refuse(c, at, "a message of a tool needs a string tool_call_id");
	cross_open_message(c, false);
	cross_open_result(c, &first, m[CALL_ID]);
	if (!put_content(c, &inner_first, m[CONTENT], at))
		return false;
	cross_close_result(c, false);
	cross_close_message(c);
	return true;
}

static bool put_message(struct cross *c, struct slice message, struct cross_at *at)
{
	static const char *const names[] = { "role",       "content",       "refusal",
					     "tool_calls", "function_call", "tool_call_id" };
	struct slice m[MEMBERS];
	bool first = true;

	at->inner = NULL;
	cross_members(message, names, MEMBERS, m);
	if (json_loose_is(m[ROLE], "assistant"))
		return put_assistant(c, m, at);
	if (json_loose_is(m[ROLE], "tool"))
		return put_result(c, m, at);
	/* MCP has no system message inside of a conversation: it becomes one of the user's. */
	if (!json_loose_is(m[ROLE], "user") && !json_loose_is(m[ROLE], "system") &&
	    !json_loose_is(m[ROLE], "developer"))
		return cross_refuse(c, at,
				    "role must be user, assistant, tool, system or developer");
	cross_open_message(c, false);
	if (!put_content(c, &first, m[CONTENT], at))
		return false;
	cross_close_message(c);
	return true;
}

bool cross_chat_history(struct cross *c)
{
	struct json_loose_walk walk;
	struct cross_at at = { "messages", 0, NULL, 0 };

	json_loose_open(&walk, c->q->at[API_MESSAGE_LIST].text);
	for (; json_loose_next(&walk); at.item++)
		if (at.item >= c->q->system_messages && !put_message(c, walk.value, &at))
			return false;
	return true;
}

/* ---- the system prompt: the messages that lead ---- */

static bool put_system(struct cross *c, struct slice content, struct cross_at *at,
		       void (*put)(struct cross *c, struct slice inside))
{
	struct json_loose_walk walk;

	if (cross_is(content, JSON_LOOSE_STRING)) {
		put(c, cross_inside(content));
		return true;
	}
	at->inner = "content";
	at->inner_item = CROSS_NO_ITEM;
	if (!cross_open(c, &walk, content, at))
		return false;
	for (at->inner_item = 0; json_loose_next(&walk); at->inner_item++) {
		const struct slice text = json_loose_member(walk.value, "text");
		if (!cross_is(text, JSON_LOOSE_STRING))
			return cross_refuse(c, at, "only text can go to this model's provider");
		put(c, cross_inside(text));
	}
	return true;
}

bool cross_chat_system(struct cross *c, void (*put)(struct cross *c, struct slice inside))
{
	struct json_loose_walk walk;
	struct cross_at at = { "messages", 0, NULL, 0 };

	json_loose_open(&walk, c->q->at[API_MESSAGE_LIST].text);
	for (; at.item < c->q->system_messages && json_loose_next(&walk); at.item++)
		if (!put_system(c, json_loose_member(walk.value, "content"), &at, put))
			return false;
	return true;
}
