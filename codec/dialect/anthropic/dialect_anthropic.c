#include "codec/dialect/anthropic/dialect_anthropic.h"

#include "codec/dialect/dialect_native.h"
#include "codec/dialect/dialect_replay.h"
#include "codec/dialect/dialect_request.h"
#include "codec/dialect/dialect_text.h"
#include "codec/json/json_scan.h"

enum { USER_ID_MAX = 256 };

static const struct request_rules rules = { .blank_refused = true,
					    .odd = SCHEMA_ODD_KEYS | SCHEMA_ODD_NULLS,
					    .parallel_inside = true,
					    .id_rule = CALL_ID_ANTHROPIC,
					    .user_id_max = USER_ID_MAX,
					    .dialect = "anthropic",
					    .replay_opens = '[',
					    .not_replayed = ADJUST_THINKING_NOT_REPLAYED,
					    .native = native_anthropic };

/* ---- encode: everything in front of the messages ---- */

static const struct tool_words tool_words = { .name = SLICE_INIT("{\"name\":"),
					      .schema = SLICE_INIT(",\"input_schema\":"),
					      .end = SLICE_INIT("}"),
					      .properties = false };

static void put_choice(struct encoder *e)
{
	static const struct slice types[] = {
		[TOOL_MODE_DEFAULT] = SLICE_INIT("auto"),
		[TOOL_MODE_AUTO] = SLICE_INIT("auto"),
		[TOOL_MODE_REQUIRED] = SLICE_INIT("any"),
		[TOOL_MODE_NONE] = SLICE_INIT("none"),
	};
	const struct request_plan *plan = &e->plan;
	struct gather *g = &e->out.body;
	const bool said = encoder_says_choice(e);
	const bool one_at_a_time = encoder_says_one_at_a_time(e);

	if (!said && !one_at_a_time)
		return;
	if (!said)
		encoder_may_learn(e, LEARN_NO_TOOL_CHOICE);
	gather_lit(g, ",\"tool_choice\":{\"type\":\"");
	gather_raw(g, plan->forced_schema ? SLICE("tool") : types[plan->mode]);
	gather_lit(g, "\"");
	if (plan->forced_schema)
		gather_lit(g, ",\"name\":\"" SCHEMA_TOOL_NAME "\"");
	if (one_at_a_time)
		gather_lit(g, ",\"disable_parallel_tool_use\":true");
	gather_lit(g, "}");
}

/* Calls in the history need definitions: minimal ones, in order of first use, that are not to be
 * used. */
static void put_synthesised(struct encoder *e)
{
	const struct sampling_request *request = e->request;
	struct gather *g = &e->out.body;
	struct name_table seen;

	if (request->call_turns == 0)
		return;
	name_table_init(&seen, e->work, e->into);
	for (uint32_t i = 0; i < request->block_count && !e->failed; i++) {
		if (request->blocks[i].type != BLOCK_TOOL_USE)
			continue;
		struct slice name = tool_name_sent(&e->tools, request->blocks[i].use.name);
		uint32_t before = seen.count;
		if (slice_absent(name) || name_table_put(&seen, name) == NAME_NONE)
			e->failed = true;
		if (e->failed || seen.count == before)
			continue;
		gather_raw(g, before == 0 ? SLICE(",\"tools\":[{\"name\":") : SLICE(",{\"name\":"));
		gather_str(g, name);
		gather_lit(g, ",\"input_schema\":{\"type\":\"object\"}}");
	}
	if (seen.count == 0)
		return;
	gather_lit(g, "]");
	e->plan.mode = TOOL_MODE_NONE;
	e->plan.forced_schema = false;
	put_choice(e);
	encoder_adjust(e, ADJUST_TOOLS_SYNTHESISED);
}

/* What nearly every body has. A temperature is digits of the caller's, so it may be long. */
static inline void put_scalars(struct encoder *e)
{
	enum { ROOM = 64, NUMBER_MAX = 32 };
	const struct slice temperature = e->plan.temperature;
	const bool brief = temperature.len <= NUMBER_MAX;
	struct gather *g = &e->out.body;
	char *pen = gather_pen(g, ROOM + PEN_UINT_MAX + NUMBER_MAX);

	if (pen == NULL)
		return;
	pen = pen_uint(pen_lit(pen, ",\"max_tokens\":"), e->out.max_tokens);
	if (e->in->stream)
		pen = pen_lit(pen, ",\"stream\":true");
	if (!slice_absent(temperature)) {
		pen = pen_lit(pen, ",\"temperature\":");
		pen = brief ? pen_slice(pen, temperature) : pen;
	}
	gather_pen_end(g, pen);
	if (!brief)
		gather_raw(g, temperature);
}

static void put_settings(struct encoder *e)
{
	const struct request_plan *plan = &e->plan;
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"model\":");
	gather_plain(g, e->in->model);
	put_scalars(e);
	encoder_put_body(e);
	if (plan->stop_count != 0)
		encoder_put_stop(e, SLICE("stop_sequences"));
	if (!slice_absent(plan->user_id)) {
		gather_lit(g, ",\"metadata\":{\"user_id\":");
		gather_str(g, plan->user_id);
		gather_lit(g, "}");
	}
	if (!slice_absent(plan->native)) {
		gather_lit(g,
			   ",\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":");
		gather_raw(g, plan->native);
		gather_lit(g, "}}");
	}
	if (plan->tools) {
		encoder_put_tools(e, &tool_words);
		put_choice(e);
	} else {
		put_synthesised(e);
	}
	e->out.marks.said = (uint32_t)gather_offset(g);
	if (!slice_absent(e->request->system) && !encoder_drops(e, e->request->system)) {
		gather_lit(g, ",\"system\":");
		gather_str(g, e->request->system);
	}
}

/* ---- encode: blocks ---- */

/* What begins and ends a text block. */
#define TEXT "{\"type\":\"text\",\"text\":\""
#define TEXT_END "\"}"

static void put_image(struct encoder *e, const struct block *block)
{
	struct gather *g = &e->out.body;

	gather_lit(g, "{\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":");
	gather_str(g, block->media.mime);
	gather_lit(g, ",\"data\":\"");
	gather_image(g, block->media.data);
	gather_lit(g, "\"}}");
	e->out.images++;
}

/* A text block around what encoder_put_result_text or a placeholder writes. */
static void put_replacement(struct encoder *e, const struct block *block)
{
	gather_lit(&e->out.body, TEXT);
	encoder_put_result_text(e, block);
	gather_lit(&e->out.body, TEXT_END);
}

/* One that has bytes: a document without is refused. */
static bool is_pdf(const struct block *block)
{
	return block->type == BLOCK_RESOURCE && block->resource.blob.len != 0 &&
	       slice_eq(block->resource.mime, SLICE("application/pdf"));
}

static void put_result_block(struct encoder *e, const struct block *block, bool is_error)
{
	struct gather *g = &e->out.body;

	if (!is_error && encoder_takes_image(e, block)) {
		put_image(e, block);
	} else if (!is_error && e->profile->image && is_pdf(block)) {
		gather_lit(g, "{\"type\":\"document\",\"source\":{\"type\":\"base64\","
			      "\"media_type\":\"application/pdf\",\"data\":\"");
		gather_raw(g, block->resource.blob); /* no image: its bytes count */
		gather_lit(g, "\"}}");
	} else {
		put_replacement(e, block);
	}
}

/* An error may hold text only, and must hold some. */
static void put_result_content(struct encoder *e, const struct block *block)
{
	const struct block *inner = encoder_inner(e, block);
	struct gather *g = &e->out.body;
	bool first = true;

	if (encoder_result_empty(e, block)) {
		if (!slice_absent(block->result.structured)) {
			gather_lit(g, TEXT);
			gather_json_escaped(g, block->result.structured);
			gather_lit(g, TEXT_END);
		} else if (block->is_error) {
			gather_lit(g, TEXT "Error" TEXT_END);
		}
		return;
	}
	for (uint32_t i = 0; i < block->result.count; i++) {
		if (encoder_drops_inner(e, &inner[i]))
			continue;
		if (!first)
			gather_lit(g, ",");
		first = false;
		put_result_block(e, &inner[i], block->is_error);
	}
}

static SCAN_RARE enum err put_block(struct encoder *e, const struct block *block, uint32_t message)
{
	struct gather *g = &e->out.body;
	bool assistant = e->request->messages[message].assistant;

	switch ((enum block_type)block->type) {
	case BLOCK_TOOL_USE:
		gather_lit(g, "{\"type\":\"tool_use\",\"id\":");
		encoder_put_call_id(e, block->use.id);
		gather_lit(g, ",\"name\":");
		encoder_put_name(e, block->use.name);
		gather_lit(g, ",\"input\":");
		gather_raw(g, encoder_input(e, block));
		gather_lit(g, "}");
		break;
	case BLOCK_TOOL_RESULT:
		gather_lit(g, "{\"type\":\"tool_result\",\"tool_use_id\":");
		encoder_put_result_id(e, block->result.id);
		gather_lit(g, ",\"content\":[");
		put_result_content(e, block);
		if (block->is_error)
			gather_lit(g, "],\"is_error\":true}");
		else
			gather_lit(g, "]}");
		break;
	default: /* media: put_message has the texts, and sampling_read lets nothing else in */
		if (assistant)
			put_replacement(e, block);
		else if (encoder_takes_image(e, block))
			put_image(e, block);
		else
			return encoder_refuse_media(e, block, message, (struct slice){ NULL, 0 });
	}
	return ERR_OK;
}

/* ---- encode: messages ---- */

enum turn { TURN_USER, TURN_ASSISTANT, TURNS };

/* What is not closed yet: a message, maybe with a text block in it; in the order of turns. */
enum open { OPEN_NOTHING, OPEN_USER, OPEN_ASSISTANT, OPEN_USER_TEXT, OPEN_ASSISTANT_TEXT, OPENS };

/* The message being written, and the one text whose end is trimmed (a prefill's last). */
struct turns {
	enum open open;
	const struct block *trimmed;
};

/* What comes between what is open and the text of a block, so that neighbours of one role are one message; for other
 * blocks the same without TEXT, in which all end. It is all that most texts have between them, so an entry is
 * copied whole, and its length says how much of it counts. No conversation begins with the assistant: see
 * begin_conversation. */
#define USER "{\"role\":\"user\",\"content\":["
#define ASSISTANT "{\"role\":\"assistant\",\"content\":["
#define BETWEEN(literal)                                    \
	{                                                   \
		.text = literal, .len = sizeof(literal) - 1 \
	}
static const struct between {
	char text[63];
	unsigned char len;
} betweens[OPENS][TURNS] = {
	[OPEN_NOTHING] = { BETWEEN(USER TEXT), BETWEEN(ASSISTANT TEXT) },
	[OPEN_USER] = { BETWEEN("," TEXT), BETWEEN("]}," ASSISTANT TEXT) },
	[OPEN_ASSISTANT] = { BETWEEN("]}," USER TEXT), BETWEEN("," TEXT) },
	[OPEN_USER_TEXT] = { BETWEEN(TEXT_END "," TEXT), BETWEEN(TEXT_END "]}," ASSISTANT TEXT) },
	[OPEN_ASSISTANT_TEXT] = { BETWEEN(TEXT_END "]}," USER TEXT), BETWEEN(TEXT_END "," TEXT) },
};

/* A text block of `turn`, which stays open. */
static inline void put_turn_text(struct encoder *e, struct turns *turns, enum turn turn,
				 struct slice raw)
{
	const struct between *between = &betweens[turns->open][turn];
	struct gather *g = &e->out.body;
	char *pen = gather_pen(g, sizeof(*between) + gather_room(raw));

	turns->open = (enum open)(OPEN_USER_TEXT + turn);
	if (pen == NULL)
		return;
	(void)memcpy(pen, between, sizeof(*between));
	gather_pen_end_raw(g, pen + between->len, raw);
}

/* Brackets for another block of `turn`, which the caller writes whole. */
static void turn_to(struct encoder *e, struct turns *turns, enum turn turn)
{
	const struct between *between = &betweens[turns->open][turn];

	gather_raw(&e->out.body, slice_of(between->text, between->len - (sizeof(TEXT) - 1)));
	turns->open = (enum open)(OPEN_USER + turn);
}

/* A conversation that the assistant begins gets a user's turn in front. */
static SCAN_RARE void put_first_turn(struct encoder *e, struct turns *turns)
{
	put_turn_text(e, turns, TURN_USER, SLICE("(conversation continues)"));
	encoder_adjust(e, ADJUST_USER_TURN_PREPENDED);
}

/* To be called before each block; only the first of the conversation may need something in front. */
static inline void begin_conversation(struct encoder *e, struct turns *turns, enum turn turn)
{
	if (turns->open == OPEN_NOTHING && turn == TURN_ASSISTANT)
		put_first_turn(e, turns);
}

/* The last block of the conversation if it is an assistant's text, which then is a prefill. */
static const struct block *find_prefill(const struct encoder *e)
{
	const struct sampling_request *request = e->request;

	for (uint32_t m = request->message_count; m > 0; m--) {
		const struct message *message = &request->messages[m - 1];
		for (uint32_t i = message->count; i > 0; i--) {
			const struct block *block = &request->blocks[message->first + i - 1];
			if (encoder_drops_block(e, block))
				continue;
			return message->assistant && block->type == BLOCK_TEXT ? block : NULL;
		}
	}
	return NULL;
}

/* Its text, without the white space behind it. */
static SCAN_RARE struct slice prefill_of(struct encoder *e, const struct block *block)
{
	struct slice trimmed = text_trim_end(block->text.text);

	if (trimmed.len != block->text.text.len)
		encoder_adjust(e, ADJUST_WHITESPACE_TRIMMED);
	return trimmed;
}

/* The end of a text that is open. */
static void close_text(struct encoder *e, struct turns *turns)
{
	if (turns->open < OPEN_USER_TEXT)
		return;
	gather_lit(&e->out.body, TEXT_END);
	turns->open = (enum open)(turns->open - OPEN_USER_TEXT + OPEN_USER);
}

/* A turn as it was answered, thinking and all, in place of what would be made of its blocks. */
static SCAN_RARE bool put_again(struct encoder *e, struct turns *turns,
				const struct message *message)
{
	bool known;

	close_text(e, turns); /* for the digest of what is there so far */
	const struct slice content = encoder_replay_take(e, message, &known);

	if (slice_absent(content))
		return false;
	begin_conversation(e, turns, TURN_ASSISTANT);
	turn_to(e, turns, TURN_ASSISTANT);
	encoder_replay_use_ids(e, message);
	gather_raw(&e->out.body, encoder_replay_items(content));
	return true;
}

static enum err put_message(struct encoder *e, struct turns *turns, uint32_t index)
{
	const struct message *message = &e->request->messages[index];
	const enum turn turn = message->assistant ? TURN_ASSISTANT : TURN_USER;
	bool empty = true;

	if (e->replay != NULL && message->assistant && put_again(e, turns, message))
		return ERR_OK;
	for (uint32_t i = 0; i < message->count; i++) {
		const struct block *block = &e->request->blocks[message->first + i];
		if (encoder_drops_block(e, block))
			continue;
		empty = false;
		begin_conversation(e, turns, turn);
		if (block->type == BLOCK_TEXT) {
			const bool trims = block == turns->trimmed;
			put_turn_text(e, turns, turn,
				      trims ? prefill_of(e, block) : block->text.text);
			continue;
		}
		turn_to(e, turns, turn);
		enum err err = put_block(e, block, index);
		if (err != ERR_OK)
			return err;
	}
	if (empty)
		encoder_adjust(e, ADJUST_EMPTY_TURN_REMOVED);
	return ERR_OK;
}

static enum err put_messages(struct encoder *e)
{
	struct gather *g = &e->out.body;
	/* a prefill would be the beginning of the JSON */
	bool prefill = e->profile->prefill && slice_absent(e->plan.native);
	struct turns turns = { .trimmed = prefill ? find_prefill(e) : NULL };

	gather_lit(g, ",\"messages\":[");
	for (uint32_t i = 0; i < e->request->message_count; i++) {
		enum err err = put_message(e, &turns, i);
		if (err != ERR_OK)
			return err;
	}
	close_text(e, &turns);
	if (turns.open == OPEN_NOTHING)
		return encoder_refuse(e, ERR_MESSAGES_EMPTY, 0, NULL,
				      "messages have no content: only empty or white-space text");
	if (turns.open == OPEN_ASSISTANT && !prefill) {
		put_turn_text(e, &turns, TURN_USER, SLICE("Continue."));
		close_text(e, &turns);
		encoder_adjust(e, ADJUST_USER_TURN_APPENDED);
	}
	gather_lit(g, "]}]}");
	return ERR_OK;
}

/* The messages come last, so that a longer history's body begins with the shorter one's. */
static enum err encode(const struct encode_in *in, struct json_work *work, struct arena *into,
		       struct encode_out *out, struct fault *fault)
{
	struct encoder e;

	encoder_begin(&e, &rules, in, work, into, fault);
	put_settings(&e);
	enum err err = put_messages(&e);
	return err == ERR_OK ? encoder_end(&e, out) : err;
}

/* The first version takes a temperature, the ones after it answer 400 to any. */
static void defaults(struct profile *profile, struct slice version)
{
	profile->max_stop = 16;
	profile->temperature_max = 1;
	profile->temperature_never = !slice_eq(version, SLICE("2023-06-01"));
}

const struct dialect dialect_anthropic = {
	.name = "anthropic",
	.path = "/v1/messages",
	.count_path = "/count_tokens",
	.id = DIALECT_ANTHROPIC,
	.stream = &stream_anthropic,
	.key_header = "x-api-key: ",
	.version_header = SLICE_INIT("anthropic-version: "),
	.version = "2026-10-21",
	.closing = 4,
	.defaults = defaults,
	.encode = encode,
	.decode = anthropic_decode,
};
