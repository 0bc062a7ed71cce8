#include "codec/dialect/responses/dialect_responses.h"

#include "codec/dialect/dialect_native.h"
#include "codec/dialect/dialect_replay.h"
#include "codec/dialect/dialect_request.h"

enum { USER_ID_MAX = 64, MAX_TOKENS_LEAST = 16 };

static const struct request_rules rules = { .stop_unknown = true,
					    .odd = SCHEMA_ODD_ARRAYS | SCHEMA_ODD_NULLS,
					    .id_rule = CALL_ID_OPENAI,
					    .user_id_max = USER_ID_MAX,
					    .dialect = "openai-responses",
					    .replay_opens = '[',
					    .not_replayed = ADJUST_REASONING_NOT_REPLAYED,
					    .native = native_openai };

/* ---- encode: everything in front of the input ---- */

/* Fewer are refused there. What is sent is what is reserved, and what an answer may then have. */
static void raise_max_tokens(struct encoder *e)
{
	if (e->out.max_tokens >= MAX_TOKENS_LEAST)
		return;
	e->out.max_tokens = MAX_TOKENS_LEAST;
	encoder_adjust(e, ADJUST_MAX_TOKENS_CLAMPED);
}

/* Tools are flat here; `strict` has to be said, and true would refuse most schemas. */
static const struct tool_words tool_words = { .name = SLICE_INIT(
						      "{\"type\":\"function\",\"name\":"),
					      .schema = SLICE_INIT(",\"parameters\":"),
					      .end = SLICE_INIT(",\"strict\":false}"),
					      .properties = true };

static void put_settings(struct encoder *e)
{
	const struct request_plan *plan = &e->plan;
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"model\":");
	gather_plain(g, e->in->model);
	gather_lit(g, ",\"max_output_tokens\":");
	gather_uint(g, e->out.max_tokens);
	gather_lit(g, ",\"store\":false");
	if (e->in->stream)
		gather_lit(g, ",\"stream\":true");
	encoder_put_body(e);
	/* what is not stored there has to be carried, but only with calls is it kept */
	if (e->profile->replay_reasoning && !e->out.decode.calls_forbidden)
		gather_lit(g, ",\"include\":[\"reasoning.encrypted_content\"]");
	encoder_put_temperature(e);
	encoder_put_user_id(e);
	if (!slice_absent(plan->native)) {
		gather_lit(g, ",\"text\":{\"format\":{\"type\":\"json_schema\","
			      "\"name\":\"" SCHEMA_TOOL_NAME "\",\"strict\":true,\"schema\":");
		gather_raw(g, plan->native);
		gather_lit(g, "}}");
	}
	if (plan->tools) {
		encoder_put_tools(e, &tool_words);
		encoder_put_choice(e, SLICE(",\"reasoning\":{\"effort\":\"none\"}"));
	}
	e->out.marks.said = (uint32_t)gather_offset(g);
	if (!slice_absent(e->request->system)) {
		gather_lit(g, ",\"instructions\":");
		gather_str(g, e->request->system);
	}
}

/* ---- encode: parts ---- */

/* The commas of the input. */
struct items {
	bool any; /* an item was written */
};

static void next_item(struct encoder *e, struct items *items)
{
	if (items->any)
		gather_lit(&e->out.body, ",");
	items->any = true;
}

static void put_text_part(struct gather *g, struct slice raw)
{
	gather_lit(g, "{\"type\":\"input_text\",\"text\":");
	gather_str(g, raw);
	gather_lit(g, "}");
}

static void put_image_part(struct encoder *e, const struct block *block)
{
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"type\":\"input_image\",\"detail\":\"auto\",\"image_url\":\"data:");
	gather_raw(g, block->media.mime);
	gather_lit(g, ";base64,");
	gather_image(g, block->media.data);
	gather_lit(g, "\"}");
	e->out.images++;
}

/* ---- encode: what the user says ---- */

static enum err put_user_part(struct encoder *e, const struct block *block, uint32_t message)
{
	if (block->type == BLOCK_TEXT)
		put_text_part(&e->out.body, block->text.text);
	else if (encoder_takes_image(e, block))
		put_image_part(e, block);
	else
		return encoder_refuse_media(e, block, message, (struct slice){ NULL, 0 });
	return ERR_OK;
}

/* The blocks of the message that are not empty; *only is the last of them. */
static uint32_t count_blocks(const struct encoder *e, const struct message *message,
			     const struct block **only)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		if (encoder_drops_block(e, block))
			continue;
		*only = block;
		count++;
	}
	return count;
}

static enum err put_user_parts(struct encoder *e, const struct message *message, uint32_t index)
{
	struct gather *g = &e->out.body;
	bool first = true;

	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		if (encoder_drops_block(e, block))
			continue;
		gather_raw(g, first ? SLICE("[") : SLICE(","));
		first = false;
		enum err err = put_user_part(e, block, index);
		if (err != ERR_OK)
			return err;
	}
	gather_lit(g, "]");
	return ERR_OK;
}

/* One item; a lone text is a string. */
static enum err put_user(struct encoder *e, struct items *items, uint32_t index)
{
	const struct message *message = &e->request->messages[index];
	const struct block *only = NULL;
	struct gather *g = &e->out.body;
	uint32_t count = count_blocks(e, message, &only);
	enum err err = ERR_OK;

	if (count == 0) {
		encoder_adjust(e, ADJUST_EMPTY_TURN_REMOVED);
		return ERR_OK;
	}
	next_item(e, items);
	gather_lit(g, "{\"role\":\"user\",\"content\":");
	if (count == 1 && only->type == BLOCK_TEXT)
		gather_str(g, only->text.text);
	else
		err = put_user_parts(e, message, index);
	gather_lit(g, "}");
	return err;
}

/* ---- encode: what the assistant said ---- */

static void put_call(struct encoder *e, const struct block *block)
{
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"type\":\"function_call\",\"call_id\":");
	encoder_put_call_id(e, block->use.id);
	gather_lit(g, ",\"name\":");
	encoder_put_name(e, block->use.name);
	gather_lit(g, ",\"arguments\":\"");
	gather_json_escaped(g, encoder_input(e, block));
	gather_lit(g, "\"}");
}

static void put_said(struct encoder *e, const struct block *block)
{
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"role\":\"assistant\",\"content\":");
	if (block->type == BLOCK_TEXT) {
		gather_str(g, block->text.text);
	} else {
		gather_lit(g, "\"");
		encoder_put_placeholder(e, block);
		gather_lit(g, "\"");
	}
	gather_lit(g, "}");
}

/* A turn as it was answered, reasoning and all, in place of what would be made of its blocks. */
static bool put_again(struct encoder *e, struct items *items, const struct message *message,
		      bool *known)
{
	const struct slice content = encoder_replay_take(e, message, known);

	if (slice_absent(content))
		return false;
	next_item(e, items);
	encoder_replay_use_ids(e, message);
	gather_raw(&e->out.body, encoder_replay_items(content));
	return true;
}

/* Every block is an item of its own, so that texts and calls stay in their order. */
static void put_assistant(struct encoder *e, struct items *items, const struct message *message)
{
	bool empty = true, known = false, calls = false;

	if (e->replay != NULL && put_again(e, items, message, &known))
		return;
	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		if (encoder_drops_block(e, block))
			continue;
		empty = false;
		next_item(e, items);
		calls |= block->type == BLOCK_TOOL_USE;
		if (block->type == BLOCK_TOOL_USE)
			put_call(e, block);
		else
			put_said(e, block);
	}
	if (calls && !known && e->profile->replay_reasoning)
		encoder_adjust(e, ADJUST_REASONING_NOT_REPLAYED);
	if (empty)
		encoder_adjust(e, ADJUST_EMPTY_TURN_REMOVED);
}

/* ---- encode: tool results ---- */

static bool has_image(const struct encoder *e, const struct block *result)
{
	const struct block *inner = encoder_inner(e, result);

	for (uint32_t i = 0; i < result->result.count; i++)
		if (encoder_takes_image(e, &inner[i]))
			return true;
	return false;
}

/* A list: there is an image in it, which a string cannot hold. */
static void put_output_parts(struct encoder *e, const struct block *result)
{
	const struct block *inner = encoder_inner(e, result);
	struct gather *g = &e->out.body;
	bool first = !result->is_error;

	gather_lit(g, "[");
	if (result->is_error) /* there is no flag for it */
		put_text_part(g, SLICE("Error:"));
	for (uint32_t i = 0; i < result->result.count; i++) {
		if (encoder_drops_inner(e, &inner[i]))
			continue;
		if (!first)
			gather_lit(g, ",");
		first = false;
		if (encoder_takes_image(e, &inner[i])) {
			put_image_part(e, &inner[i]);
			continue;
		}
		gather_lit(g, "{\"type\":\"input_text\",\"text\":\"");
		encoder_put_result_text(e, &inner[i]);
		gather_lit(g, "\"}");
	}
	gather_lit(g, "]");
}

/* A string: the texts, a line each. */
static void put_output_text(struct encoder *e, const struct block *result)
{
	const struct block *inner = encoder_inner(e, result);
	struct gather *g = &e->out.body;
	bool first = true;

	gather_raw(g, result->is_error ? SLICE("\"Error: ") : SLICE("\""));
	if (encoder_result_empty(e, result)) {
		if (!slice_absent(result->result.structured))
			gather_json_escaped(g, result->result.structured);
		gather_lit(g, "\"");
		return;
	}
	for (uint32_t i = 0; i < result->result.count; i++) {
		if (encoder_drops_inner(e, &inner[i]))
			continue;
		if (!first)
			gather_lit(g, "\\n");
		first = false;
		encoder_put_result_text(e, &inner[i]);
	}
	gather_lit(g, "\"");
}

static void put_results(struct encoder *e, struct items *items, const struct message *message)
{
	struct gather *g = &e->out.body;

	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *result = &e->request->blocks[message->first + i];
		next_item(e, items);
		gather_lit(g, "{\"type\":\"function_call_output\",\"call_id\":");
		encoder_put_result_id(e, result->result.id);
		gather_lit(g, ",\"output\":");
		if (has_image(e, result))
			put_output_parts(e, result);
		else
			put_output_text(e, result);
		gather_lit(g, "}");
	}
}

/* ---- encode: the whole ---- */

static enum err put_message(struct encoder *e, struct items *items, uint32_t index)
{
	const struct message *message = &e->request->messages[index];

	if (message->assistant) {
		put_assistant(e, items, message);
		return ERR_OK;
	}
	if (encoder_holds_results(e, message)) {
		put_results(e, items, message);
		return ERR_OK;
	}
	return put_user(e, items, index);
}

/* The input comes last, so that a longer history's body begins with the shorter one's. */
static enum err encode(const struct encode_in *in, struct json_work *work, struct arena *into,
		       struct encode_out *out, struct fault *fault)
{
	struct items items = { 0 };
	struct encoder e;

	encoder_begin(&e, &rules, in, work, into, fault);
	raise_max_tokens(&e);
	put_settings(&e);
	gather_lit(&e.out.body, ",\"input\":[");
	for (uint32_t i = 0; i < in->request->message_count; i++) {
		enum err err = put_message(&e, &items, i);
		if (err != ERR_OK)
			return err;
	}
	if (!items.any)
		return encoder_refuse(&e, ERR_MESSAGES_EMPTY, 0, NULL,
				      "messages have no content: only empty text");
	gather_lit(&e.out.body, "]}");
	return encoder_end(&e, out);
}

static void defaults(struct profile *profile, struct slice version)
{
	(void)version;
	profile->max_stop = 0;
	profile->temperature_max = 2;
}

const struct dialect dialect_responses = {
	.name = "openai-responses",
	.path = "/responses",
	.id = DIALECT_RESPONSES,
	.stream = &stream_responses,
	.key_header = "authorization: Bearer ",
	.closing = 2,
	.defaults = defaults,
	.encode = encode,
	.decode = responses_decode,
};
