#include "codec/api/api_view.h"

#include "codec/base/must.h"
#include "codec/json/json_loose.h"

#include <math.h>

/* ---- content ---- */

/* `count` blocks of that type, of so many bytes together: the first has them all. */
static struct block *add_media(struct block *at, enum block_type type, uint32_t count,
			       uint64_t bytes, struct slice body)
{
	for (uint32_t i = 0; i < count; i++) {
		*at = (struct block){ .type = (uint8_t)type };
		at->media.data = slice_of(body.at, i == 0 ? (size_t)bytes : 0);
		at->media.mime = SLICE("");
		at++;
	}
	return at;
}

/* All blocks are the first message's, and the user's. */
static bool view_content(const struct api_request *q, struct arena *into,
			 struct sampling_request *out)
{
	const uint32_t media = q->images + q->sounds;
	const uint32_t count = q->blocks > media ? q->blocks : media;
	struct message *messages = arena_zero(into, q->messages * sizeof(*messages));
	struct block *blocks = arena_take(into, count == 0 ? 1 : count * sizeof(*blocks));

	if (messages == NULL || blocks == NULL)
		return false;
	struct block *at = add_media(blocks, BLOCK_IMAGE, q->images, q->image_bytes, q->body);
	at = add_media(at, BLOCK_AUDIO, q->sounds, q->sound_bytes, q->body);
	for (; at < blocks + count; at++) {
		*at = (struct block){ .type = BLOCK_TEXT };
		at->text.text = SLICE("");
	}
	messages[0].count = count;
	out->messages = messages;
	out->message_count = q->messages;
	out->blocks = blocks;
	out->block_count = count;
	out->images = q->images;
	out->audios = q->sounds;
	return true;
}

/* ---- tools ---- */

static bool view_tools(const struct api_request *q, struct arena *into,
		       struct sampling_request *out)
{
	if (q->tool_count == 0)
		return true;
	struct tool *tools = arena_take(into, q->tool_count * sizeof(*tools));
	if (tools == NULL)
		return false;
	for (uint32_t i = 0; i < q->tool_count; i++) {
		const struct api_tool *tool = &q->tools[i];
		const struct slice name = slice_absent(tool->name) ? tool->type : tool->name;
		tools[i] = (struct tool){
			.name = slice_absent(name) ? SLICE("") : name,
			.schema = slice_absent(tool->schema) ? SLICE("{}") : tool->schema,
		};
	}
	out->tools = tools;
	out->tool_count = q->tool_count;
	return true;
}

/* "none" and "required" in both APIs' words; whatever forces a call is required. */
static enum tool_mode mode_of(const struct api_value *choice)
{
	static const char *const forcing[] = { "required", "any", "tool", "function", "custom" };
	struct slice word = choice->text;

	if (choice->kind <= JSON_NULL)
		return TOOL_MODE_DEFAULT;
	if (choice->kind == JSON_OBJECT)
		word = json_loose_member(choice->text, "type");
	if (json_loose_is(word, "allowed_tools")) {
		const struct slice allowed = json_loose_member(choice->text, "allowed_tools");
		word = json_loose_member(slice_absent(allowed) ? choice->text : allowed, "mode");
	}
	if (json_loose_is(word, "none"))
		return TOOL_MODE_NONE;
	if (json_loose_is(word, "auto"))
		return TOOL_MODE_AUTO;
	for (size_t i = 0; i < COUNT_OF(forcing); i++)
		if (json_loose_is(word, forcing[i]))
			return TOOL_MODE_REQUIRED;
	return TOOL_MODE_DEFAULT;
}

/* ---- the request ---- */

static struct slice user_of(const struct api_request *q)
{
	static const enum api_field fields[] = { API_USER_ID, API_SAFETY_IDENTIFIER, API_USER };

	for (size_t i = 0; i < COUNT_OF(fields); i++)
		if (api_has(q, fields[i]))
			return api_string(q, fields[i]);
	return slice_of(NULL, 0);
}

/* Of several only the length counts here, which is what they have together. */
static struct slice system_of(const struct api_request *q)
{
	const struct api_value *system = &q->system;

	if (q->system_messages > 1)
		return slice_of(q->body.at, (size_t)q->system_bytes);
	if (system->kind == JSON_STRING)
		return system->text.len == 2 ? slice_of(NULL, 0) : api_inside(system);
	return system->kind == JSON_ARRAY ? system->text : slice_of(NULL, 0);
}

enum err api_view_make(const struct api_request *request, uint32_t tokens, struct arena *into,
		       struct sampling_request *out)
{
	const uint64_t bound = request->tokens == 0 ? tokens : request->tokens;
	struct slice *hint = arena_take(into, sizeof(*hint));
	struct sampling_request view = {
		.revision = REVISION_2025_11_25,
		.max_tokens = bound > INT64_MAX ? INT64_MAX : (int64_t)bound,
		.system = system_of(request),
		.user_id = user_of(request),
		.prefer = { NAN, NAN, NAN, hint, 1 },
		.tools_present = request->tool_count != 0,
		.tool_mode = mode_of(&request->at[API_TOOL_CHOICE]),
	};

	must(tokens != 0);
	if (hint == NULL || !view_content(request, into, &view) ||
	    !view_tools(request, into, &view))
		return ERR_BUSY;
	*hint = api_string(request, API_MODEL);
	*out = view;
	return ERR_OK;
}

/* ---- calls ---- */

struct calls {
	struct block *at;
	uint32_t count, cap;
};

/* False: no memory. */
static bool add_call(struct calls *calls, struct slice id, struct arena *into)
{
	enum { FIRST = 16 };

	if (json_loose_kind(id) != JSON_LOOSE_STRING)
		return true;
	if (calls->count == calls->cap) {
		const uint32_t cap = calls->cap == 0 ? FIRST : calls->cap * 2;
		struct block *at = arena_take(into, cap * sizeof(*at));
		if (at == NULL)
			return false;
		if (calls->count != 0)
			(void)memcpy(at, calls->at, calls->count * sizeof(*at));
		*calls = (struct calls){ at, calls->count, cap };
	}
	struct block *block = &calls->at[calls->count++];
	*block = (struct block){ .type = BLOCK_TOOL_USE };
	block->use.id = slice_of(id.at + 1, id.len - 2);
	return true;
}

/* Those of a message of the assistant. False: no memory. */
static bool add_calls_of(struct calls *calls, bool chat, struct slice message, struct arena *into)
{
	const struct slice list = json_loose_member(message, chat ? "tool_calls" : "content");
	struct json_loose_walk walk;

	if (json_loose_kind(list) != JSON_LOOSE_ARRAY)
		return true;
	json_loose_open(&walk, list);
	while (json_loose_next(&walk))
		if ((chat || json_loose_is(json_loose_member(walk.value, "type"), "tool_use")) &&
		    !add_call(calls, json_loose_member(walk.value, "id"), into))
			return false;
	return true;
}

/* Behind the view's blocks, which are the first message's. False: no memory. */
static bool append(const struct calls *calls, struct arena *into, struct sampling_request *view)
{
	const uint32_t before = view->block_count;
	struct block *blocks = arena_take(into, (before + calls->count) * sizeof(*blocks));

	if (blocks == NULL)
		return false;
	(void)memcpy(blocks, view->blocks, before * sizeof(*blocks));
	(void)memcpy(blocks + before, calls->at, calls->count * sizeof(*blocks));
	view->blocks = blocks;
	return true;
}

enum err api_view_calls(const struct api_request *request, struct arena *into,
			struct sampling_request *view)
{
	const bool chat = !api_is_anthropic(request->api);
	struct calls calls = { .count = 0 };
	struct json_loose_walk walk;

	json_loose_open(&walk, request->at[API_MESSAGE_LIST].text);
	for (uint32_t i = 0; json_loose_next(&walk); i++) {
		const uint32_t first = calls.count;
		if (i == 0 || !json_loose_is(json_loose_member(walk.value, "role"), "assistant"))
			continue;
		if (!add_calls_of(&calls, chat, walk.value, into))
			return ERR_BUSY;
		if (calls.count == first)
			continue;
		view->messages[i] = (struct message){ .assistant = true,
						      .first = view->block_count + first,
						      .count = calls.count - first };
		view->call_turns++;
	}
	return calls.count == 0 || append(&calls, into, view) ? ERR_OK : ERR_BUSY;
}
