#include "codec/dialect/openai/dialect_openai.h"

#include "codec/dialect/dialect_native.h"
#include "codec/dialect/dialect_replay.h"
#include "codec/dialect/dialect_request.h"

enum { USER_ID_MAX = 64 };

#define RULES(ids)                                                                      \
	{                                                                               \
		.odd = SCHEMA_ODD_ARRAYS | SCHEMA_ODD_NULLS, .id_rule = (ids),          \
		.user_id_max = USER_ID_MAX, .dialect = "openai", .replay_opens = '{',   \
		.not_replayed = ADJUST_REASONING_NOT_REPLAYED, .native = native_openai, \
	}
static const struct request_rules rules = RULES(CALL_ID_OPENAI);
static const struct request_rules mistral_rules = RULES(CALL_ID_MISTRAL);
#undef RULES

/* ---- encode: everything in front of the messages ---- */

static const struct tool_words tool_words = {
	.name = SLICE_INIT("{\"type\":\"function\",\"function\":{\"name\":"),
	.schema = SLICE_INIT(",\"parameters\":"),
	.end = SLICE_INIT("}}"),
	.properties = true
};

static void put_settings(struct encoder *e)
{
	const struct request_plan *plan = &e->plan;
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"model\":");
	gather_plain(g, e->in->model);
	encoder_put_max_tokens(e);
	if (e->in->stream)
		gather_lit(g, ",\"stream\":true");
	if (e->in->stream && e->profile->stream_usage) {
		gather_lit(g, ",\"stream_options\":{\"include_usage\":true}");
		encoder_may_learn(e, LEARN_NO_STREAM_OPTIONS);
	}
	encoder_put_temperature(e);
	encoder_put_body(e);
	encoder_put_stop(e, SLICE("stop"));
	encoder_put_user_id(e);
	if (!slice_absent(plan->native)) {
		gather_lit(g, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":"
			      "{\"name\":\"" SCHEMA_TOOL_NAME "\",\"strict\":true,\"schema\":");
		gather_raw(g, plan->native);
		gather_lit(g, "}}");
	}
	if (plan->tools) {
		encoder_put_tools(e, &tool_words);
		encoder_put_choice(e, SLICE(",\"reasoning_effort\":\"none\""));
	}
}

/* ---- encode: content ---- */

/* The message being written, and what may have to come between it and the one before. */
struct turns {
	bool any;        /* a message was written */
	bool after_tool; /* and the last one was of role tool */
	bool open;       /* or of a user, and what the user says next belongs to it */
};

static void put_text_part(struct gather *g, struct slice raw)
{
	gather_lit(g, "{\"type\":\"text\",\"text\":");
	gather_str(g, raw);
	gather_lit(g, "}");
}

static void put_image_part(struct encoder *e, const struct block *block)
{
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"type\":\"image_url\",\"image_url\":{\"url\":\"data:");
	gather_raw(g, block->media.mime);
	gather_lit(g, ";base64,");
	gather_image(g, block->media.data);
	gather_lit(g, "\"}}");
	e->out.images++;
}

/* "wav" or "mp3", or absent. */
static struct slice audio_format(struct slice mime)
{
	static const struct {
		struct slice mime, format;
	} formats[] = {
		{ SLICE_INIT("audio/wav"), SLICE_INIT("wav") },
		{ SLICE_INIT("audio/x-wav"), SLICE_INIT("wav") },
		{ SLICE_INIT("audio/wave"), SLICE_INIT("wav") },
		{ SLICE_INIT("audio/vnd.wave"), SLICE_INIT("wav") },
		{ SLICE_INIT("audio/mpeg"), SLICE_INIT("mp3") },
		{ SLICE_INIT("audio/mp3"), SLICE_INIT("mp3") },
	};

	for (size_t i = 0; i < COUNT_OF(formats); i++)
		if (slice_eq(mime, formats[i].mime))
			return formats[i].format;
	return (struct slice){ NULL, 0 };
}

/* Mistral, for one, has a string there, and finds out the format by itself (contract/providers.md 5). */
static enum err put_audio_part(struct encoder *e, const struct block *block, uint32_t message)
{
	struct slice format = audio_format(block->media.mime);
	struct gather *g = &e->out.body;

	if (!e->profile->audio || slice_absent(format))
		return encoder_refuse_media(e, block, message,
					    e->profile->audio ? SLICE("audio/wav and audio/mpeg")
							      : (struct slice){ NULL, 0 });
	if (e->profile->audio_as_string) {
		gather_lit(g, "{\"type\":\"input_audio\",\"input_audio\":\"");
		gather_raw(g, block->media.data); /* no image: its bytes count */
		gather_lit(g, "\"}");
		return ERR_OK;
	}
	gather_lit(g, "{\"type\":\"input_audio\",\"input_audio\":{\"data\":\"");
	gather_raw(g, block->media.data);
	gather_lit(g, "\",\"format\":\"");
	gather_raw(g, format);
	gather_lit(g, "\"}}");
	return ERR_OK;
}

static enum err put_part(struct encoder *e, const struct block *block, uint32_t message)
{
	struct gather *g = &e->out.body;

	if (block->type == BLOCK_TEXT) {
		put_text_part(g, block->text.text);
	} else if (e->request->messages[message].assistant) {
		gather_lit(g, "{\"type\":\"text\",\"text\":\"");
		encoder_put_placeholder(e, block);
		gather_lit(g, "\"}");
	} else if (encoder_takes_image(e, block)) {
		put_image_part(e, block);
	} else if (block->type == BLOCK_AUDIO) {
		return put_audio_part(e, block, message);
	} else {
		return encoder_refuse_media(e, block, message, (struct slice){ NULL, 0 });
	}
	return ERR_OK;
}

/* Whether the block is part of `content`: not a call, and no empty text. */
static bool is_content(const struct encoder *e, const struct block *block)
{
	return block->type != BLOCK_TOOL_USE && !encoder_drops_block(e, block);
}

/* What of a message becomes `content`. */
struct content {
	uint32_t count;
	bool text_only; /* or what becomes text */
	bool calls;
};

static struct content content_of(const struct encoder *e, const struct message *message)
{
	struct content content = { .text_only = true };

	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		content.calls |= block->type == BLOCK_TOOL_USE;
		if (!is_content(e, block))
			continue;
		content.count++;
		content.text_only &= block->type == BLOCK_TEXT || message->assistant;
	}
	return content;
}

/* All texts as one string, a line each. */
static void put_joined(struct encoder *e, const struct message *message)
{
	struct gather *g = &e->out.body;
	bool first = true;

	gather_lit(g, "\"");
	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		if (!is_content(e, block))
			continue;
		if (!first)
			gather_lit(g, "\\n");
		first = false;
		if (block->type == BLOCK_TEXT)
			gather_raw(g, block->text.text);
		else
			encoder_put_placeholder(e, block);
	}
	gather_lit(g, "\"");
}

/* The message's content, a part each, with `before` in front of the first. */
static enum err put_parts(struct encoder *e, uint32_t index, struct slice before)
{
	const struct message *message = &e->request->messages[index];

	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		if (!is_content(e, block))
			continue;
		gather_raw(&e->out.body, before);
		before = SLICE(",");
		enum err err = put_part(e, block, index);
		if (err != ERR_OK)
			return err;
	}
	return ERR_OK;
}

static enum err put_content(struct encoder *e, uint32_t index, const struct content *content)
{
	const struct message *message = &e->request->messages[index];
	struct gather *g = &e->out.body;

	if (content->count == 0 && content->calls) {
		gather_lit(g, "null");
		return ERR_OK;
	}
	if (content->text_only && (content->count <= 1 || e->profile->text_content_as_string)) {
		put_joined(e, message);
		return ERR_OK;
	}
	enum err err = put_parts(e, index, SLICE("["));
	if (err == ERR_OK)
		gather_lit(g, "]");
	return err;
}

/* ---- encode: what goes back of an earlier answer ---- */

/* The parts of a record's content, JSON each; absent where there are none. */
struct kept {
	bool known; /* the turn has a record */
	struct slice reasoning_content, reasoning, reasoning_details;
	struct slice extras; /* an array: extra_content of each call, or null */
};

static struct kept read_kept(struct slice content)
{
	enum { CONTENT, REASONING, DETAILS, EXTRAS };
	static const struct json_name names[] = {
		[CONTENT] = JSON_NAME("reasoning_content"),
		[REASONING] = JSON_NAME("reasoning"),
		[DETAILS] = JSON_NAME("reasoning_details"),
		[EXTRAS] = JSON_NAME("extra_content"),
	};
	struct json_fields fields = JSON_FIELDS(names);
	struct kept kept = { .known = true };
	struct slice *const parts[] = { &kept.reasoning_content, &kept.reasoning,
					&kept.reasoning_details, &kept.extras };
	static const char opens[] = { '"', '"', '[', '[' };
	struct json_reader r;
	struct slice raw;
	uint32_t member;

	json_open(&r, content, NULL, NULL); /* validated with its record */
	if (!json_enter_object(&r))
		return kept;
	while (answer_next(&r, &fields, &member))
		if (json_skip(&r, &raw) && member < COUNT_OF(parts) && raw.at[0] == opens[member])
			*parts[member] = raw;
	return kept;
}

static struct kept take_kept(struct encoder *e, const struct message *message)
{
	struct slice content;
	bool known;

	if (e->replay == NULL)
		return (struct kept){ .known = false };
	content = encoder_replay_take(e, message, &known);
	return slice_absent(content) ? (struct kept){ .known = known } : read_kept(content);
}

static void put_member(struct gather *g, struct slice key, struct slice json)
{
	if (slice_absent(json))
		return;
	gather_raw(g, key);
	gather_raw(g, json);
}

/* Reasoning that is not wanted back may be an error, and so is the lack of what is (section 5). */
static void put_reasoning(struct encoder *e, const struct kept *kept)
{
	struct gather *g = &e->out.body;

	put_member(g, SLICE(",\"reasoning_details\":"), kept->reasoning_details);
	if (!e->profile->replay_reasoning)
		return;
	put_member(g, SLICE(",\"reasoning_content\":"), kept->reasoning_content);
	put_member(g, SLICE(",\"reasoning\":"), kept->reasoning);
	if (slice_absent(kept->reasoning_content) && slice_absent(kept->reasoning))
		gather_lit(g, ",\"reasoning_content\":\"\"");
	if (!kept->known)
		encoder_adjust(e, ADJUST_REASONING_NOT_REPLAYED);
}

/* ---- encode: calls ---- */

static void put_calls(struct encoder *e, const struct message *message, struct slice extras)
{
	struct gather *g = &e->out.body;
	struct json_reader r;
	struct slice extra;
	bool first = true;

	if (!slice_absent(extras)) {
		json_open(&r, extras, NULL, NULL); /* validated with its record */
		if (!json_enter_array(&r))
			extras = (struct slice){ NULL, 0 };
	}

	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		if (block->type != BLOCK_TOOL_USE)
			continue;
		if (first)
			gather_lit(g, ",\"tool_calls\":[{\"id\":");
		else
			gather_lit(g, ",{\"id\":");
		first = false;
		encoder_put_call_id(e, block->use.id);
		gather_lit(g, ",\"type\":\"function\",\"function\":{\"name\":");
		encoder_put_name(e, block->use.name);
		gather_lit(g, ",\"arguments\":\"");
		gather_json_escaped(g, encoder_input(e, block));
		gather_lit(g, "\"}");
		if (!slice_absent(extras) && json_next_item(&r) && json_skip(&r, &extra) &&
		    extra.at[0] == '{')
			put_member(g, SLICE(",\"extra_content\":"), extra);
		gather_lit(g, "}");
	}
	gather_lit(g, "]");
}

/* ---- encode: tool results ---- */

/* "image 1 of tool call ID" */
static void put_image_label(struct encoder *e, const struct block *result, uint32_t number)
{
	struct gather *g = &e->out.body;
	struct slice id = e->failed ? result->result.id : call_id_last(&e->ids, result->result.id);

	e->failed = e->failed || slice_absent(id);
	gather_lit(g, "[image ");
	gather_uint(g, number);
	gather_lit(g, " of tool call ");
	gather_raw(g, id);
}

/* The texts of a result, a line each, as the inside of a string; a moved image leaves a pointer. */
static void put_result_texts(struct encoder *e, const struct block *result)
{
	const struct block *inner = encoder_inner(e, result);
	struct gather *g = &e->out.body;
	uint32_t images = 0;
	bool first = true;

	for (uint32_t i = 0; i < result->result.count; i++) {
		if (encoder_drops_inner(e, &inner[i]))
			continue;
		if (!first)
			gather_lit(g, "\\n");
		first = false;
		if (encoder_takes_image(e, &inner[i])) {
			put_image_label(e, result, ++images);
			gather_lit(g, " follows]");
		} else {
			encoder_put_result_text(e, &inner[i]);
		}
	}
}

static void put_result(struct encoder *e, const struct block *result)
{
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"role\":\"tool\",\"tool_call_id\":");
	encoder_put_result_id(e, result->result.id);
	if (result->is_error)
		gather_lit(g, ",\"content\":\"Error: ");
	else
		gather_lit(g, ",\"content\":\"");
	if (!encoder_result_empty(e, result))
		put_result_texts(e, result);
	else if (!slice_absent(result->result.structured))
		gather_json_escaped(g, result->result.structured);
	gather_lit(g, "\"}");
}

/* The comma, and what some dialects want between a tool's message and a user's. */
static void next_message(struct encoder *e, struct turns *turns, bool user)
{
	struct gather *g = &e->out.body;

	if (turns->any)
		gather_lit(g, ",");
	if (user && turns->after_tool && !e->profile->user_after_tool) {
		gather_lit(g, "{\"role\":\"assistant\",\"content\":\"OK.\"},");
		encoder_adjust(e, ADJUST_ASSISTANT_TURN_INSERTED);
	}
	turns->any = true;
	turns->after_tool = false;
}

/* Images are for user messages only: one message for all of the turn, behind its last result. */
static void put_moved_images(struct encoder *e, struct turns *turns, const struct message *message)
{
	struct gather *g = &e->out.body;
	bool any = false;

	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *result = &e->request->blocks[message->first + i];
		const struct block *inner = encoder_inner(e, result);
		uint32_t images = 0;
		for (uint32_t j = 0; j < result->result.count; j++) {
			if (!encoder_takes_image(e, &inner[j]))
				continue;
			if (!any) {
				next_message(e, turns, true);
				gather_lit(g, "{\"role\":\"user\",\"content\":[");
			} else {
				gather_lit(g, ",");
			}
			any = true;
			gather_lit(g, "{\"type\":\"text\",\"text\":\"");
			put_image_label(e, result, ++images);
			gather_lit(g, "]\"},");
			put_image_part(e, &inner[j]);
		}
	}
	if (!any)
		return;
	turns->open = e->profile->merge_same_role;
	if (!turns->open)
		gather_lit(g, "]}");
	encoder_adjust(e, ADJUST_RESULT_MEDIA_MOVED);
}

static void put_results(struct encoder *e, struct turns *turns, const struct message *message)
{
	for (uint32_t i = 0; i < message->count; i++) {
		next_message(e, turns, false);
		put_result(e, &e->request->blocks[message->first + i]);
	}
	turns->after_tool = true;
	put_moved_images(e, turns, message);
}

/* ---- encode: messages ---- */

/* The end of the message that moved images are in. */
static SCAN_RARE void close_turn(struct encoder *e, struct turns *turns)
{
	gather_lit(&e->out.body, "]}");
	turns->open = false;
}

/* A user's text behind images that were moved out of tool results: further parts of the same message. */
static SCAN_RARE enum err put_more_parts(struct encoder *e, struct turns *turns, uint32_t index)
{
	enum err err = put_parts(e, index, SLICE(","));

	close_turn(e, turns);
	return err;
}

static enum err put_message(struct encoder *e, struct turns *turns, uint32_t index)
{
	const struct message *message = &e->request->messages[index];
	struct gather *g = &e->out.body;

	if (turns->open) {
		if (!message->assistant && !encoder_holds_results(e, message))
			return put_more_parts(e, turns, index);
		close_turn(e, turns);
	}
	if (encoder_holds_results(e, message)) {
		put_results(e, turns, message);
		return ERR_OK;
	}
	struct content content = content_of(e, message);
	struct kept kept; /* of calls only */
	if (content.calls)
		kept = take_kept(e, message);
	next_message(e, turns, !message->assistant);
	if (message->assistant)
		gather_lit(g, "{\"role\":\"assistant\",\"content\":");
	else
		gather_lit(g, "{\"role\":\"user\",\"content\":");
	enum err err = put_content(e, index, &content);
	if (err != ERR_OK)
		return err;
	if (content.calls) {
		put_reasoning(e, &kept);
		put_calls(e, message, kept.extras);
	}
	/* Mistral wants to be told that its own turn is to go on */
	else if (message->assistant && index + 1 == e->request->message_count &&
		 e->profile->id_rule == ID_RULE_MISTRAL9)
		gather_lit(g, ",\"prefix\":true");
	gather_lit(g, "}");
	return ERR_OK;
}

/* The messages come last, so that a longer history's body begins with the shorter one's. */
static enum err encode(const struct encode_in *in, struct json_work *work, struct arena *into,
		       struct encode_out *out, struct fault *fault)
{
	const bool mistral = in->profile->id_rule == ID_RULE_MISTRAL9;
	struct sampling_request arranged;
	struct turns turns = { 0 };
	struct encoder e;

	encoder_begin(&e, mistral ? &mistral_rules : &rules, in, work, into, fault);
	if (mistral || in->profile->merge_same_role)
		openai_arrange(&e, &arranged);
	if (e.request->message_count == 0)
		return encoder_refuse(&e, ERR_MESSAGES_EMPTY, 0, NULL,
				      "messages have no content: only empty text");
	put_settings(&e);
	e.out.marks.said = (uint32_t)gather_offset(&e.out.body);
	gather_lit(&e.out.body, ",\"messages\":[");
	if (!slice_absent(in->request->system)) {
		next_message(&e, &turns, false);
		gather_lit(&e.out.body, "{\"role\":\"system\",\"content\":");
		gather_str(&e.out.body, in->request->system);
		gather_lit(&e.out.body, "}");
	}
	for (uint32_t i = 0; i < e.request->message_count; i++) {
		enum err err = put_message(&e, &turns, i);
		if (err != ERR_OK)
			return err;
	}
	if (turns.open)
		close_turn(&e, &turns);
	gather_lit(&e.out.body, "]}");
	return encoder_end(&e, out);
}

static void defaults(struct profile *profile, struct slice version)
{
	(void)version;
	profile->max_stop = 4;
	profile->temperature_max = 2;
}

const struct dialect dialect_openai = {
	.name = "openai",
	.path = "/chat/completions",
	.id = DIALECT_OPENAI,
	.stream = &stream_openai,
	.key_header = "authorization: Bearer ",
	.closing = 2,
	.defaults = defaults,
	.encode = encode,
	.decode = openai_decode,
};
