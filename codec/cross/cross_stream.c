#include "codec/cross/cross_stream.h"

#include "codec/base/must.h"
#include "codec/cross/cross_answer.h"
#include "codec/json/json_scan.h"

struct cross_held {
	struct cross_held *next;
	struct stream_delta delta; /* with texts of its own */
};

void cross_stream_init(struct cross_stream *s, enum api api, const struct cross_names *names,
		       bool schema, bool usage_asked, struct arena *into)
{
	must(api == API_MESSAGES || api == API_CHAT);
	*s = (struct cross_stream){ .api = api,
				    .names = *names,
				    .schema = schema,
				    .usage_asked = usage_asked,
				    .open = CROSS_NONE,
				    .into = into };
}

/* ---- whether arguments are whole ---- */

static void step(struct cross_whole *w, char c)
{
	if (w->string) {
		if (w->escape)
			w->escape = false;
		else if (c == '\\')
			w->escape = true;
		else if (c == '"')
			w->string = false;
	} else if (c == '"') {
		w->string = true;
	} else if (c == '{' || c == '[') {
		w->depth++;
	} else if ((c == '}' || c == ']') && w->depth != 0) {
		w->whole |= --w->depth == 0;
	}
}

/* `raw`: the inside of a string, whole characters. */
static void feed_whole(struct cross_whole *w, struct slice raw)
{
	const char *at = raw.at, *end = raw.at + raw.len;
	char meaning[4];

	while (at < end && !w->whole) {
		if (*at != '\\') {
			step(w, *at++);
			continue;
		}
		const size_t len = scan_unescape(&at, meaning);
		if (len == 1)
			step(w, meaning[0]);
	}
}

/* ---- the pieces as Chat has them ---- */

static void begin_chunk(struct cross_stream *s, struct gather *g)
{
	gather_lit(g, "data: {\"id\":\"chatcmpl-");
	gather_raw(g, s->names.id);
	gather_lit(g, "\",\"object\":\"chat.completion.chunk\",\"created\":");
	gather_uint(g, s->names.created_s);
	gather_lit(g, ",\"model\":");
	gather_raw(g, s->names.model);
	gather_lit(g, ",\"choices\":[");
}

static void begin_delta(struct cross_stream *s, struct gather *g)
{
	begin_chunk(s, g);
	gather_lit(g, "{\"index\":0,\"delta\":");
}

/* Behind the array of choices. */
static void end_chunk(const struct cross_stream *s, struct gather *g)
{
	if (s->usage_asked)
		gather_lit(g, "],\"usage\":null}\n\n");
	else
		gather_lit(g, "]}\n\n");
}

static void end_delta(const struct cross_stream *s, struct gather *g)
{
	gather_lit(g, ",\"logprobs\":null,\"finish_reason\":null}");
	end_chunk(s, g);
}

static void chat_begin(struct cross_stream *s, struct gather *g)
{
	begin_delta(s, g);
	gather_lit(g, "{\"role\":\"assistant\",\"content\":\"\"}");
	end_delta(s, g);
}

static void chat_text(struct cross_stream *s, struct slice raw, struct gather *g)
{
	begin_delta(s, g);
	gather_lit(g, "{\"content\":");
	gather_str(g, raw);
	gather_lit(g, "}");
	end_delta(s, g);
}

/* As the provider has sent it, or one of our own. */
static void put_id(const struct cross_stream *s, const struct cross_block *block,
		   const struct stream_delta *delta, struct gather *g)
{
	if (!slice_absent(delta->id) && delta->id.len != 0) {
		gather_str(g, delta->id);
		return;
	}
	gather_lit(g, "\"call_");
	gather_raw(g, s->names.id);
	gather_lit(g, "_");
	gather_uint(g, block->index);
	gather_lit(g, "\"");
}

static void chat_call(struct cross_stream *s, const struct cross_block *block,
		      const struct stream_delta *delta, struct gather *g)
{
	begin_delta(s, g);
	gather_lit(g, "{\"tool_calls\":[{\"index\":");
	gather_uint(g, block->index);
	gather_lit(g, ",\"id\":");
	put_id(s, block, delta, g);
	gather_lit(g, ",\"type\":\"function\",\"function\":{\"name\":");
	gather_str(g, delta->name);
	gather_lit(g, ",\"arguments\":\"\"}}]}");
	end_delta(s, g);
}

static void chat_arguments(struct cross_stream *s, const struct cross_block *block,
			   const struct stream_delta *delta, struct gather *g)
{
	begin_delta(s, g);
	gather_lit(g, "{\"tool_calls\":[{\"index\":");
	gather_uint(g, block->index);
	gather_lit(g, ",\"function\":{\"arguments\":\"");
	if (delta->kind == STREAM_DELTA_VALUE)
		gather_json_escaped(g, delta->text);
	else
		gather_raw(g, delta->text);
	gather_lit(g, "\"}}]}");
	end_delta(s, g);
}

/* ---- as Messages has them ---- */

static void messages_begin(struct cross_stream *s, struct gather *g)
{
	gather_lit(g, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":"
		      "\"msg_");
	gather_raw(g, s->names.id);
	gather_lit(g, "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
	gather_raw(g, s->names.model);
	gather_lit(g, ",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{"
		      "\"input_tokens\":");
	gather_uint(g, s->names.input_tokens);
	gather_lit(g, ",\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,"
		      "\"output_tokens\":1}}}\n\n");
}

static void begin_block(const struct cross_block *block, struct gather *g)
{
	gather_lit(g, "event: content_block_start\ndata: {\"type\":\"content_block_start\","
		      "\"index\":");
	gather_uint(g, block->index);
	gather_lit(g, ",\"content_block\":{\"type\":");
}

static void messages_text_begin(const struct cross_block *block, struct gather *g)
{
	begin_block(block, g);
	gather_lit(g, "\"text\",\"text\":\"\"}}\n\n");
}

static void messages_call_begin(const struct cross_stream *s, const struct cross_block *block,
				const struct stream_delta *delta, struct gather *g)
{
	begin_block(block, g);
	gather_lit(g, "\"tool_use\",\"id\":");
	put_id(s, block, delta, g);
	gather_lit(g, ",\"name\":");
	gather_str(g, delta->name);
	gather_lit(g, ",\"input\":{}}}\n\n");
}

/* `member`: of the delta, with its type in front. */
static void begin_block_delta(const struct cross_block *block, struct gather *g)
{
	gather_lit(g, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\","
		      "\"index\":");
	gather_uint(g, block->index);
	gather_lit(g, ",\"delta\":{\"type\":");
}

static void messages_text(const struct cross_block *block, const struct stream_delta *delta,
			  struct gather *g)
{
	begin_block_delta(block, g);
	gather_lit(g, "\"text_delta\",\"text\":\"");
	if (delta->kind == STREAM_DELTA_VALUE)
		gather_json_escaped(g, delta->text);
	else
		gather_raw(g, delta->text);
	gather_lit(g, "\"}}\n\n");
}

static void messages_arguments(const struct cross_block *block, const struct stream_delta *delta,
			       struct gather *g)
{
	begin_block_delta(block, g);
	gather_lit(g, "\"input_json_delta\",\"partial_json\":\"");
	if (delta->kind == STREAM_DELTA_VALUE)
		gather_json_escaped(g, delta->text);
	else
		gather_raw(g, delta->text);
	gather_lit(g, "\"}}\n\n");
}

static void close_block(struct cross_stream *s, struct gather *g)
{
	if (s->open == CROSS_NONE)
		return;
	struct cross_block *block = &s->blocks[s->open];
	gather_lit(g,
		   "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":");
	gather_uint(g, block->index);
	gather_lit(g, "}\n\n");
	block->closed = true;
	s->open = CROSS_NONE;
}

/* ---- blocks ---- */

/* NULL: no memory. */
static struct cross_block *block_of(struct cross_stream *s, uint32_t number)
{
	enum { FIRST = 8 };
	uint32_t cap = s->cap == 0 ? FIRST : s->cap;

	while (cap <= number)
		cap *= 2;
	if (cap != s->cap) {
		struct cross_block *blocks = arena_zero(s->into, cap * sizeof(*blocks));
		if (blocks == NULL)
			return NULL;
		if (s->count != 0)
			(void)memcpy(blocks, s->blocks, s->count * sizeof(*blocks));
		s->blocks = blocks;
		s->cap = cap;
	}
	if (s->count <= number)
		s->count = number + 1;
	return &s->blocks[number];
}

static bool copy_text(struct cross_stream *s, struct slice *text)
{
	if (slice_absent(*text) || text->len == 0)
		return true;
	*text = arena_copy(s->into, *text);
	return !slice_absent(*text);
}

/* The piece waits for its block's turn. */
static bool hold(struct cross_stream *s, struct cross_block *block,
		 const struct stream_delta *delta)
{
	struct cross_held *held = arena_take(s->into, sizeof(*held));

	if (held == NULL)
		return false;
	*held = (struct cross_held){ .delta = *delta };
	if (!copy_text(s, &held->delta.text) || !copy_text(s, &held->delta.id) ||
	    !copy_text(s, &held->delta.name))
		return false;
	if (block->held == NULL)
		block->held = held;
	else
		block->held_last->next = held;
	block->held_last = held;
	return true;
}

/* ---- Messages: one block at a time ---- */

/* A piece of the block that is open, or is to be opened by it. */
static void messages_put(struct cross_stream *s, const struct stream_delta *delta, struct gather *g)
{
	struct cross_block *block = &s->blocks[delta->block];
	const bool call = block->is_call && !s->schema;

	if (s->open == CROSS_NONE) {
		s->open = delta->block;
		block->index = s->written++;
		if (!call)
			messages_text_begin(block, g);
		else
			messages_call_begin(s, block, delta, g);
	}
	if (delta->kind == STREAM_DELTA_CALL)
		return;
	if (call)
		messages_arguments(block, delta, g);
	else
		messages_text(block, delta, g);
}

/* Whether nothing more can come of the block that is open: a text ends when another block begins. */
static bool open_is_over(const struct cross_stream *s)
{
	const struct cross_block *block = &s->blocks[s->open];

	return !block->is_call || block->whole.whole;
}

static void write_held(struct cross_stream *s, struct cross_block *block, struct gather *g)
{
	const struct cross_held *held = block->held;

	block->held = NULL;
	for (; held != NULL; held = held->next)
		messages_put(s, &held->delta, g);
}

/* Blocks that wait have their turn as long as the one in front of them is over. `all`: the answer is. */
static void advance(struct cross_stream *s, bool all, struct gather *g)
{
	for (uint32_t i = 0; i < s->count; i++) {
		struct cross_block *block = &s->blocks[i];
		if (block->held == NULL)
			continue;
		if (s->open != CROSS_NONE) {
			if (!all && !open_is_over(s))
				return;
			close_block(s, g);
		}
		write_held(s, block, g);
	}
}

static bool messages_delta(struct cross_stream *s, struct cross_block *block,
			   const struct stream_delta *delta, struct gather *g)
{
	if (block->closed && block->is_call) /* it is whole; the core judges what comes behind it */
		return true;
	if (block->closed) /* a text that goes on behind another block is a block of its own */
		*block = (struct cross_block){ .is_call = block->is_call };
	if (s->open == delta->block || (s->open == CROSS_NONE && block->held == NULL))
		messages_put(s, delta, g);
	else if (!hold(s, block, delta))
		return false;
	advance(s, false, g);
	return true;
}

/* ---- both ---- */

static void begin(struct cross_stream *s, struct gather *g)
{
	if (s->begun)
		return;
	s->begun = true;
	if (api_is_anthropic(s->api))
		messages_begin(s, g);
	else
		chat_begin(s, g);
}

static void chat_delta(struct cross_stream *s, struct cross_block *block,
		       const struct stream_delta *delta, struct gather *g)
{
	if (delta->kind == STREAM_DELTA_CALL) {
		block->index = s->written++;
		chat_call(s, block, delta, g);
	} else if (block->is_call) {
		chat_arguments(s, block, delta, g);
	} else {
		chat_text(s, delta->text, g);
	}
}

/* The JSON of a schema's answer as the text that it is for Chat. */
static void chat_schema(struct cross_stream *s, const struct stream_delta *delta, struct gather *g)
{
	if (delta->kind == STREAM_DELTA_CALL)
		return;
	begin_delta(s, g);
	gather_lit(g, "{\"content\":\"");
	if (delta->kind == STREAM_DELTA_VALUE)
		gather_json_escaped(g, delta->text);
	else
		gather_raw(g, delta->text);
	gather_lit(g, "\"}");
	end_delta(s, g);
}

bool cross_stream_delta(struct cross_stream *s, const struct stream_delta *delta, struct gather *g)
{
	struct cross_block *block = s->failed ? NULL : block_of(s, delta->block);

	if (block == NULL) {
		s->failed = true;
		return false;
	}
	begin(s, g);
	block->begun = true;
	block->is_call |= delta->kind == STREAM_DELTA_CALL;
	if (delta->kind == STREAM_DELTA_ARGS)
		feed_whole(&block->whole, delta->text);
	block->whole.whole |= delta->kind == STREAM_DELTA_VALUE;
	if (api_is_anthropic(s->api))
		s->failed = !messages_delta(s, block, delta, g);
	else if (s->schema && block->is_call)
		chat_schema(s, delta, g);
	else
		chat_delta(s, block, delta, g);
	return !s->failed;
}

/* ---- the end ---- */

/* An answer that was not told as it came. */
static bool tell_all(struct cross_stream *s, const struct sampling_result *result, struct gather *g)
{
	for (uint32_t i = 0; i < result->block_count; i++) {
		const struct result_block *block = &result->blocks[i];
		struct stream_delta delta = { .kind = STREAM_DELTA_TEXT,
					      .block = i,
					      .text = block->text };
		if (!block->is_tool_use) {
			if (block->text.len != 0 && !cross_stream_delta(s, &delta, g))
				return false;
			continue;
		}
		delta.kind = STREAM_DELTA_CALL;
		delta.id = block->id;
		delta.name = block->name;
		if (!cross_stream_delta(s, &delta, g))
			return false;
		delta = (struct stream_delta){ .kind = STREAM_DELTA_VALUE,
					       .block = i,
					       .text = block->input };
		if (!cross_stream_delta(s, &delta, g))
			return false;
	}
	return true;
}

static void messages_end(struct cross_stream *s, const struct sampling_result *result,
			 struct gather *g)
{
	advance(s, true, g);
	close_block(s, g);
	gather_lit(g, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"
		      "\"stop_reason\":\"");
	gather_raw(g, slice_str(cross_stop(s->api, result, s->schema)));
	gather_lit(g, "\",\"stop_sequence\":null},\"usage\":");
	cross_usage(g, s->api, &s->names, &result->usage);
	gather_lit(g, "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
}

static void chat_end(struct cross_stream *s, const struct sampling_result *result, struct gather *g)
{
	begin_delta(s, g);
	gather_lit(g, "{},\"logprobs\":null,\"finish_reason\":\"");
	gather_raw(g, slice_str(cross_stop(s->api, result, s->schema)));
	gather_lit(g, "\"}");
	end_chunk(s, g);
	if (s->usage_asked) {
		begin_chunk(s, g);
		gather_lit(g, "],\"usage\":");
		cross_usage(g, s->api, &s->names, &result->usage);
		gather_lit(g, "}\n\n");
	}
	gather_lit(g, "data: [DONE]\n\n");
}

bool cross_stream_end(struct cross_stream *s, const struct sampling_result *result, bool relayed,
		      struct gather *g)
{
	if (s->failed)
		return false;
	begin(s, g);
	if (!relayed && !tell_all(s, result, g))
		return false;
	if (api_is_anthropic(s->api))
		messages_end(s, result, g);
	else
		chat_end(s, result, g);
	return true;
}
