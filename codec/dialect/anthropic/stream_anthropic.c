/* stream_anthropic.c - events of a Messages stream (contract/providers.md 2, 10).
 *
 * message_start, then blocks (start, deltas, stop) that are told apart by their index and may overlap,
 * message_delta with the stop reason, message_stop. Events and deltas of other types are passed over. */
#include "codec/dialect/anthropic/dialect_anthropic.h"
#include "codec/dialect/stream_parts.h"

/* What an event's top level says; objects as text, to be read when the type is known. */
struct event {
	struct slice type, message, block, delta, usage;
	uint64_t index;
	bool indexed, error;
};

/* The parts of a delta, of content blocks and of the message alike. */
struct delta {
	struct slice type, text, json, thinking, signature, reason, details;
};

static void read_top(struct stream *s, struct slice data, struct event *e)
{
	struct answer *a = &s->answer;
	struct json_reader r;
	struct slice key;

	json_open(&r, data, &answer_json, a->work);
	if (json_enter_object(&r)) {
		while (answer_next_key(a, &r, &key)) {
			if (slice_eq(key, SLICE("type")))
				answer_take_string(&r, &e->type);
			else if (slice_eq(key, SLICE("index")))
				e->indexed = answer_take_count(&r, &e->index);
			else if (slice_eq(key, SLICE("delta")))
				(void)json_skip(&r, &e->delta);
			else if (slice_eq(key, SLICE("content_block")))
				(void)json_skip(&r, &e->block);
			else if (slice_eq(key, SLICE("message")))
				(void)json_skip(&r, &e->message);
			else if (slice_eq(key, SLICE("usage")))
				(void)json_skip(&r, &e->usage);
			else {
				e->error |=
					slice_eq(key, SLICE("error")) && json_peek(&r) != JSON_NULL;
				(void)json_skip(&r, NULL);
			}
		}
		(void)json_finish(&r);
	}
	stream_check_event(s, &r);
}

static void read_counters(struct stream *s, struct slice usage)
{
	struct json_reader r;

	if (slice_absent(usage))
		return;
	json_open(&r, usage, NULL, NULL);
	anthropic_read_usage(&s->answer, &r, &s->counters);
}

/* ---- the message ---- */

struct opening {
	struct slice id, model, usage;
};

static void on_message_start(struct stream *s, const struct event *e)
{
	static const struct stream_member members[] = {
		STREAM_STRING(opening, id, "id"),
		STREAM_STRING(opening, model, "model"),
		STREAM_WHOLE(opening, usage, "usage"),
	};
	struct answer *a = &s->answer;
	struct opening m = { 0 };

	if (s->started)
		answer_fail(a, "The provider's stream begins twice");
	s->started = true;
	stream_read_members(s, e->message, members, COUNT_OF(members), &m);
	if (m.id.len != 0)
		stream_keep(s, m.id, &a->id);
	if (m.model.len != 0)
		stream_keep(s, m.model, &a->model);
	read_counters(s, m.usage);
}

static void read_delta(struct stream *s, struct slice part, struct delta *d)
{
	static const struct stream_member members[] = {
		STREAM_STRING(delta, type, "type"),
		STREAM_STRING(delta, text, "text"),
		STREAM_STRING(delta, json, "partial_json"),
		STREAM_STRING(delta, thinking, "thinking"),
		STREAM_STRING(delta, signature, "signature"),
		STREAM_STRING(delta, reason, "stop_reason"),
		STREAM_WHOLE(delta, details, "stop_details"),
	};

	stream_read_members(s, part, members, COUNT_OF(members), d);
}

static void read_details(struct stream *s, struct slice details)
{
	struct answer *a = &s->answer;
	struct slice kept = a->explanation;
	struct json_reader r;

	if (slice_absent(details))
		return;
	json_open(&r, details, NULL, NULL);
	a->explanation = (struct slice){ NULL, 0 };
	anthropic_read_explanation(a, &r);
	struct slice said = a->explanation; /* of the event */
	a->explanation = kept;
	if (said.len != 0)
		stream_keep(s, said, &a->explanation);
}

static void on_message_delta(struct stream *s, const struct event *e)
{
	struct delta d = { 0 };

	read_delta(s, e->delta, &d);
	read_counters(s, e->usage);
	read_details(s, d.details);
	if (d.reason.len != 0)
		stream_stop(s, anthropic_stop(d.reason));
}

static void on_message_stop(struct stream *s, const struct event *e)
{
	(void)e;
	stream_done(s);
}

/* ---- blocks ---- */

/* What a block has from its beginning. */
struct start {
	struct slice type, id, name, text, input;
};

static void read_start(struct stream *s, struct slice part, struct start *b)
{
	static const struct stream_member members[] = {
		STREAM_STRING(start, type, "type"),  STREAM_STRING(start, id, "id"),
		STREAM_STRING(start, name, "name"),  STREAM_STRING(start, text, "text"),
		STREAM_WHOLE(start, input, "input"),
	};

	stream_read_members(s, part, members, COUNT_OF(members), b);
}

static void begin_call(struct stream *s, uint64_t index, const struct start *b)
{
	uint32_t at = stream_block_new(s, index, STREAM_CALL);

	if (at == STREAM_NO_BLOCK)
		return;
	stream_keep(s, b->id, &s->blocks[at].id);
	stream_keep(s, b->name, &s->blocks[at].name);
	/* mostly a placeholder, {}; some hosts have all of it here and send no delta. Deltas replace it */
	if (b->input.len != 0 && b->input.at[0] == '{')
		stream_keep_args(s, b->input, &s->blocks[at].args);
}

/* What a block began with goes back with it. */
static void keep_start(struct stream *s, uint64_t index, struct slice object)
{
	const uint32_t at = stream_block_at(s, index);
	struct stream_extra *extra;

	if (at == STREAM_NO_BLOCK || !stream_keeps(s))
		return;
	extra = stream_extra_of(s, at);
	if (extra != NULL)
		stream_private_copy(s, object, &extra->json);
}

/* Thinking goes back. What the provider's own tools do would have to, too, but in a form of its own; and
 * so may what nobody knows. */
static void begin_private(struct stream *s, uint64_t index, struct slice type)
{
	if (json_str_eq(type, SLICE("thinking")) || json_str_eq(type, SLICE("redacted_thinking"))) {
		s->progress.thinks = true;
		(void)stream_block_new(s, index, stream_private_kind(s));
		s->answer.private |= stream_keeps(s);
		return;
	}
	(void)stream_block_new(s, index, STREAM_IGNORED);
	s->answer.unkeepable = true;
	if (!anthropic_is_private(type))
		answer_adjust(&s->answer, ADJUST_UNKNOWN_BLOCK);
}

/* An index that is used again is that of a new block. */
static void on_block_start(struct stream *s, const struct event *e)
{
	struct start b = { 0 };

	if (!e->indexed)
		answer_fail(&s->answer, "A block of the provider's stream has no index");
	read_start(s, e->block, &b);
	if (json_str_eq(b.type, SLICE("tool_use"))) {
		begin_call(s, e->index, &b);
	} else if (json_str_eq(b.type, SLICE("text"))) {
		uint32_t at = stream_block_new(s, e->index, STREAM_TEXT);
		if (at != STREAM_NO_BLOCK)
			stream_add(s, at, b.text);
	} else {
		begin_private(s, e->index, b.type);
	}
	if (s->answer.err == ERR_OK)
		keep_start(s, e->index, e->block);
	s->now.fixed = true;
}

/* The string of a delta that adds to blocks of kind `*fits`; absent when it adds nothing we know. */
static struct slice delta_string(const struct delta *d, enum stream_kind *fits)
{
	*fits = STREAM_IGNORED;
	if (json_str_eq(d->type, SLICE("text_delta"))) {
		*fits = STREAM_TEXT;
		return d->text;
	}
	if (json_str_eq(d->type, SLICE("input_json_delta"))) {
		*fits = STREAM_CALL;
		return d->json;
	}
	if (json_str_eq(d->type, SLICE("thinking_delta")))
		return d->thinking;
	return (struct slice){ NULL, 0 };
}

static void on_block_delta(struct stream *s, const struct event *e)
{
	struct delta d = { 0 };
	enum stream_kind fits;

	uint32_t at = e->indexed ? stream_block_at(s, e->index) : STREAM_NO_BLOCK;
	if (at == STREAM_NO_BLOCK) {
		answer_fail(&s->answer,
			    "A delta of the provider's stream belongs to no block that has begun");
		return;
	}
	read_delta(s, e->delta, &d);
	struct stream_block *block = &s->blocks[at];
	if (!slice_absent(d.signature) && block->kind == STREAM_PRIVATE && block->extra != NULL)
		(void)stream_private_add(s, &block->extra->signature, d.signature);
	struct slice string = delta_string(&d, &fits);
	if (slice_absent(string))
		return;
	if (block->kind < STREAM_PRIVATE && block->kind != fits)
		answer_fail(&s->answer, "A delta of the provider's stream does not fit its block");
	stream_add(s, at, string);
}

/* ---- events ---- */

/* Reads what the front of an event says of itself: type and index, and the type of a block, in front of what
 * is large. */
static void read_front(struct stream *s, struct slice data, struct event *e, struct slice *kind)
{
	static const struct json_name type = JSON_NAME("type");
	struct answer *a = &s->answer;
	struct json_reader r;
	struct slice key;

	json_open(&r, data, &answer_json, a->work);
	if (!json_enter_object(&r))
		return;
	while (answer_next_key(a, &r, &key))
		if (slice_eq(key, SLICE("type")))
			answer_take_string(&r, &e->type);
		else if (slice_eq(key, SLICE("index")))
			e->indexed = answer_take_count(&r, &e->index);
		else if (slice_eq(key, SLICE("content_block")))
			answer_take_string_of(&r, &type, kind);
		else
			(void)json_skip(&r, NULL);
}

/* A signature, all that was thought in it, comes in one delta; redacted thinking with its block's beginning. */
static bool on_front(struct stream *s, struct slice data)
{
	struct slice kind = { NULL, 0 };
	struct event e = { 0 };

	read_front(s, data, &e, &kind);
	const uint32_t at = e.indexed ? stream_block_at(s, e.index) : STREAM_NO_BLOCK;
	if (json_str_eq(e.type, SLICE("content_block_start")) && anthropic_is_private(kind) &&
	    e.indexed)
		begin_private(s, e.index, kind);
	else if (!json_str_eq(e.type, SLICE("content_block_delta")) || at == STREAM_NO_BLOCK ||
		 s->blocks[at].kind < STREAM_PRIVATE)
		return false;
	s->private_lost = true;
	return true;
}

static void on_event(struct stream *s, struct slice name, struct slice data)
{
	static const struct {
		struct slice type;
		void (*on)(struct stream *s, const struct event *e);
	} rows[] = {
		{ SLICE_INIT("content_block_delta"), on_block_delta },
		{ SLICE_INIT("content_block_start"), on_block_start },
		{ SLICE_INIT("message_start"), on_message_start },
		{ SLICE_INIT("message_delta"), on_message_delta },
		{ SLICE_INIT("message_stop"), on_message_stop },
	};
	struct event e = { 0 };

	if (slice_eq(name, SLICE("error"))) {
		stream_error(s, data);
		return;
	}
	read_top(s, data, &e);
	if (s->answer.err != ERR_OK)
		return;
	if (slice_absent(e.type) && name.len != 0 && memchr(name.at, '\\', name.len) == NULL) {
		e.type = name; /* plain, but now as good as raw */
		s->now.fixed = true;
	}
	if (e.error || json_str_eq(e.type, SLICE("error"))) {
		stream_error(s, data);
		return;
	}
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (json_str_eq(e.type, rows[i].type)) {
			rows[i].on(s, &e);
			return;
		}
}

static void on_finish(struct stream *s)
{
	const struct stream_block *last =
		s->block_count == 0 ? NULL : &s->blocks[s->block_count - 1];

	s->answer.last_call_cut = last != NULL && last->kind == STREAM_CALL;
	s->answer.unkeepable |=
		last != NULL && last->kind == STREAM_PRIVATE && s->stop == ANSWER_LENGTH;
}

/* ---- what goes back ---- */

/* A string member in place of the one that a block began with. */
static void put_text(struct gather *g, const struct stream_text *text)
{
	gather_lit(g, "\"");
	stream_text_write(g, text);
	gather_lit(g, "\"");
}

/* The member of that name as it was in the end; false: as it was in the beginning. */
static bool put_grown(struct gather *g, const struct stream_block *block, struct slice key,
		      struct slice input)
{
	const bool private = block->kind == STREAM_PRIVATE;

	if (block->kind == STREAM_CALL && slice_eq(key, SLICE("input")))
		gather_raw(g, input);
	else if ((block->kind == STREAM_TEXT && slice_eq(key, SLICE("text"))) ||
		 (private && slice_eq(key, SLICE("thinking"))))
		put_text(g, &block->text);
	else if (private && slice_eq(key, SLICE("signature")) && block->extra->signature.len != 0)
		put_text(g, &block->extra->signature);
	else
		return false;
	return true;
}

/* A block as a whole answer has it: what it began with, and what the deltas made of that. */
static void put_block(struct gather *g, const struct stream_block *block, struct slice input)
{
	bool first = true, signed_already = block->extra->signature.len == 0;
	struct slice key, value;
	struct json_reader r;

	json_open(&r, block->extra->json, NULL, NULL); /* validated with its event */
	if (!json_enter_object(&r))
		return;
	gather_lit(g, "{");
	while (json_next_key(&r, &key) && json_skip(&r, &value)) {
		if (!first)
			gather_lit(g, ",");
		first = false;
		gather_str(g, key);
		gather_lit(g, ":");
		signed_already |= slice_eq(key, SLICE("signature"));
		if (!put_grown(g, block, key, input))
			gather_raw(g, value);
	}
	if (!signed_already) {
		gather_lit(g, ",\"signature\":");
		put_text(g, &block->extra->signature);
	}
	gather_lit(g, "}");
}

/* The call of the result from *at on. */
static struct slice next_input(const struct sampling_result *result, uint32_t *at)
{
	while (!result->blocks[*at].is_tool_use)
		++*at;
	return result->blocks[(*at)++].input;
}

static void on_replay(struct stream *s, const struct sampling_result *result)
{
	struct gather g;
	uint32_t call = 0;
	bool first = true;

	if (s->answer.renamed)
		return;
	gather_init(&g, s->answer.into);
	for (uint32_t i = 0; i < s->block_count; i++) {
		struct stream_block *block = &s->blocks[i];
		if (block->kind == STREAM_TEXT && stream_text_blank(s, &block->text))
			continue; /* which the provider would refuse */
		gather_raw(&g, first ? SLICE("[") : SLICE(","));
		first = false;
		put_block(&g, block,
			  block->kind == STREAM_CALL ? next_input(result, &call)
						     : (struct slice){ NULL, 0 });
	}
	gather_lit(&g, "]");
	if (s->answer.err == ERR_OK)
		stream_private_done(s, &g);
}

const struct stream_dialect stream_anthropic = {
	.event = on_event,
	.front = on_front,
	.finish = on_finish,
	.replay = on_replay,
	.feed = stream_feed_here,
	.end = stream_end_here,
};
