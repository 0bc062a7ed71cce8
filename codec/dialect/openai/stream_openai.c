/* stream_openai.c - events of a Chat Completions stream, in all its dialects (contract/providers.md 3,
 * 5, 10).
 *
 * Every event is a chunk: deltas of choices, mostly one, and around them, in any chunk, id, model, usage and
 * the reason to stop. [DONE] ends the stream, where it is not forgotten. */
#include "codec/dialect/openai/stream_openai.h"
#include "codec/dialect/dialect_text.h"
#include "codec/dialect/openai/dialect_openai.h"

/* ---- deltas ---- */

/* Adds to the one block of that kind, which begins with its first string. */
static void add_to(struct stream *s, uint64_t index, enum stream_kind kind, struct slice raw)
{
	uint32_t at = stream_block_at(s, index);

	if (at == STREAM_NO_BLOCK ||
	    (s->blocks[at].kind != kind && s->blocks[at].kind != STREAM_IGNORED)) {
		at = stream_block_new(s, index, kind);
		if (at == STREAM_NO_BLOCK)
			return;
	}
	stream_add(s, at, raw);
}

static void add_content(struct stream *s)
{
	struct answer *a = &s->answer;

	for (uint32_t i = 0; i < a->count; i++)
		add_to(s, INDEX_TEXT - s->now.choice, STREAM_TEXT, a->blocks[i].text);
	a->count = 0;
}

/* Text, null, or parts: what a whole answer may have as content, too. Parts one by one: there may be
 * thousands in an event. */
static void read_content(struct stream *s, struct json_reader *r)
{
	if (json_peek(r) != JSON_ARRAY) {
		openai_read_content(&s->answer, r);
		add_content(s);
	} else if (json_enter_array(r)) {
		for (; json_next_item(r); add_content(s))
			openai_read_part(&s->answer, r);
	}
}

static void read_refusal(struct stream *s, struct json_reader *r)
{
	struct slice raw = { NULL, 0 };

	answer_take_string(r, &raw);
	if (!slice_absent(raw))
		add_to(s, INDEX_REFUSAL, STREAM_REFUSAL, raw);
}

static void add_reasoning(struct stream *s, struct json_reader *r, uint64_t index)
{
	const bool kept = stream_keeps(s) && s->answer.context->replay_reasoning;
	struct slice raw = { NULL, 0 };

	answer_take_string(r, &raw);
	if (slice_absent(raw))
		return;
	if (kept)
		add_to(s, index, STREAM_PRIVATE, raw);
	else
		stream_add(s, STREAM_NO_BLOCK, raw);
	s->answer.private |= kept;
}

static void read_reasoning_content(struct stream *s, struct json_reader *r)
{
	add_reasoning(s, r, INDEX_REASONING_CONTENT);
}

static void read_reasoning(struct stream *s, struct json_reader *r)
{
	add_reasoning(s, r, INDEX_REASONING);
}

/* OpenRouter's form of it, which goes back to whatever model there is behind it. */
static void read_details(struct stream *s, struct json_reader *r)
{
	struct slice item;

	if (!stream_keeps(s) || json_peek(r) != JSON_ARRAY) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_array(r))
		return;
	while (json_next_item(r)) {
		if (!json_skip(r, &item))
			return;
		s->answer.private = true;
		s->now.fixed = true;
		stream_details_take(s, item);
	}
}

static void add_audio(struct stream *s, struct slice data)
{
	if (slice_absent(s->answer.context->audio_format)) { /* nobody asked for any */
		answer_adjust(&s->answer, ADJUST_UNKNOWN_BLOCK);
		stream_add(s, STREAM_NO_BLOCK, data);
		return;
	}
	add_to(s, INDEX_AUDIO, STREAM_AUDIO, data);
}

static void read_audio(struct stream *s, struct json_reader *r)
{
	struct slice key, data = { NULL, 0 };

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(&s->answer, r, &key))
		if (slice_eq(key, SLICE("data")))
			answer_take_string(r, &data);
		else
			(void)json_skip(r, NULL);
	if (!slice_absent(data))
		add_audio(s, data);
}

/* ---- calls ---- */

/* One entry of tool_calls, or a function_call. */
struct fragment {
	uint64_t index;
	struct slice id, type, name;
	struct slice string; /* arguments as a raw string */
	struct slice value;  /* arguments as a JSON value; absent for null */
	struct slice extra;  /* extra_content: goes back with the call */
};

static void read_function(struct stream *s, struct json_reader *r, struct fragment *f)
{
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(&s->answer, r, &key)) {
		if (slice_eq(key, SLICE("name")))
			answer_take_string(r, &f->name);
		else if (!slice_eq(key, SLICE("arguments")) || json_peek(r) == JSON_NULL)
			(void)json_skip(r, NULL);
		else if (json_peek(r) == JSON_STRING)
			(void)json_string(r, &f->string);
		else
			(void)json_skip(r, &f->value);
	}
}

/* Whether a fragment that would belong to the call, but for its name, may be the first one of the next. */
static bool may_be_next(const struct stream_block *call, const struct fragment *f)
{
	return f->id.len == 0 && f->name.len != 0 && call->name.len != 0 && !call->name_repeats &&
	       call->kind == STREAM_CALL && f->index != INDEX_OLD_CALL;
}

/* Whether it is: the call is whole, and more is said than its name once more. A name before that shows
 * that the host repeats it with fragments; so arguments are read here twice at most, and only once in
 * vain. Objects without a name are not told apart: the first may be one that only holds the place. */
static bool is_next(struct stream *s, struct stream_block *call, const struct fragment *f)
{
	if (!may_be_next(call, f) ||
	    (slice_absent(f->value) && text_blank(f->string) && json_str_same(f->name, call->name)))
		return false;
	if (!slice_absent(call->args))
		return true;
	if (!stream_has_arguments(call))
		return false;
	call->name_repeats = !stream_text_means_object(s, &call->text);
	return !call->name_repeats;
}

/* The call that a fragment belongs to: a known index has it, unless it brings another id or, where there
 * are none, the next call's name (hosts that say index 0 for every call). */
static uint32_t call_of(struct stream *s, const struct fragment *f)
{
	uint32_t at = stream_block_at(s, f->index);
	bool custom = json_str_eq(f->type, SLICE("custom"));

	if (at != STREAM_NO_BLOCK && s->blocks[at].kind != STREAM_TEXT &&
	    (f->id.len == 0 || s->blocks[at].id.len == 0 ||
	     json_str_same(f->id, s->blocks[at].id)) &&
	    !is_next(s, &s->blocks[at], f))
		return at;
	if (custom) /* its input is no object; none is ever offered */
		answer_adjust(&s->answer, ADJUST_UNKNOWN_BLOCK);
	return stream_block_new(s, f->index, custom ? STREAM_IGNORED : STREAM_CALL);
}

/* Arguments as an object, as some hosts send them: then that is all of them. */
static void keep_value(struct stream *s, struct stream_block *call, struct slice value)
{
	if (!slice_absent(call->args))
		answer_odd(&s->answer, "A tool call of the provider's stream has two arguments");
	stream_keep_args(s, value, &call->args);
	s->now.fixed = true;
}

/* The last one counts. */
static void keep_extra(struct stream *s, uint32_t at, struct slice json)
{
	struct stream_extra *extra = stream_extra_of(s, at);

	s->answer.private = true;
	s->now.fixed = true;
	if (extra != NULL)
		stream_private_copy(s, json, &extra->json);
}

/* Whether the call of that id is whole, and all of it comes once more: hosts that repeat their last chunk. */
static bool is_repeated(struct stream *s, struct stream_block *call, const struct fragment *f)
{
	if (f->id.len == 0 || call->id.len == 0 || !json_str_same(f->id, call->id))
		return false;
	if (!slice_absent(f->value))
		return !slice_absent(call->args) && slice_eq(f->value, call->args);
	return f->string.len + 1 == call->text.len && stream_text_means_object(s, &call->text) &&
	       stream_text_ends_with(&call->text, f->string);
}

static void take_fragment(struct stream *s, const struct fragment *f)
{
	uint32_t at = call_of(s, f);

	if (at == STREAM_NO_BLOCK || is_repeated(s, &s->blocks[at], f))
		return;
	s->choices_calling |= (uint8_t)(1u << s->now.choice);
	struct stream_block *call = &s->blocks[at];
	if (f->id.len != 0 && call->id.len == 0)
		stream_keep(s, f->id, &call->id);
	if (f->name.len != 0)
		stream_keep(s, f->name, &call->name);
	s->now.fixed |= may_be_next(call, f); /* one that looks the same may be another call */
	if (!slice_absent(f->value))
		keep_value(s, call, f->value);
	if (!slice_absent(f->extra) && stream_keeps(s))
		keep_extra(s, at, f->extra);
	if (!slice_absent(f->string))
		stream_add(s, at, f->string);
}

/* The place of a choice's call: each choice counts its own. Those of a first choice hardly ever come so far. */
static uint64_t call_index(uint32_t choice, uint64_t index)
{
	return choice != 0 && index < INDEX_CALLS ? index + (uint64_t)choice * CHOICE_CALLS : index;
}

static void read_call(struct stream *s, struct json_reader *r, uint64_t position)
{
	struct fragment f = { .index = position };
	struct slice key;

	if (!json_enter_object(r))
		return;
	while (answer_next_key(&s->answer, r, &key))
		if (slice_eq(key, SLICE("index")))
			(void)answer_take_count(r, &f.index);
		else if (slice_eq(key, SLICE("id")))
			answer_take_string(r, &f.id);
		else if (slice_eq(key, SLICE("type")))
			answer_take_string(r, &f.type);
		else if (slice_eq(key, SLICE("function")))
			read_function(s, r, &f);
		else
			(void)json_skip(r, slice_eq(key, SLICE("extra_content")) &&
							   json_peek(r) == JSON_OBJECT
						   ? &f.extra
						   : NULL);
	if (r->fault.err != ERR_OK)
		return;
	f.index = call_index(s->now.choice, f.index);
	if (f.index >= INDEX_CALLS)
		answer_fail(&s->answer, "The provider's stream has too many tool calls");
	else
		take_fragment(s, &f);
}

static void read_calls(struct stream *s, struct json_reader *r)
{
	uint64_t position = 0;

	if (json_peek(r) == JSON_NULL) {
		(void)json_null(r);
		return;
	}
	if (json_enter_array(r))
		while (json_next_item(r))
			read_call(s, r, position++);
}

static void read_old_call(struct stream *s, struct json_reader *r)
{
	struct fragment f = { .index = INDEX_OLD_CALL };

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	read_function(s, r, &f);
	if (r->fault.err == ERR_OK)
		take_fragment(s, &f);
}

/* ---- chunks ---- */

static void read_delta(struct stream *s, struct json_reader *r)
{
	static const struct {
		struct slice key;
		void (*read)(struct stream *s, struct json_reader *r);
	} rows[] = {
		{ SLICE_INIT("content"), read_content },
		{ SLICE_INIT("tool_calls"), read_calls },
		{ SLICE_INIT("function_call"), read_old_call },
		{ SLICE_INIT("refusal"), read_refusal },
		{ SLICE_INIT("audio"), read_audio },
		{ SLICE_INIT("reasoning_content"), read_reasoning_content },
		{ SLICE_INIT("reasoning"), read_reasoning },
		{ SLICE_INIT("reasoning_details"), read_details },
	};
	struct slice key;

	if (json_peek(r) != JSON_OBJECT) {
		(void)json_skip(r, NULL);
		return;
	}
	if (!json_enter_object(r))
		return;
	while (answer_next_key(&s->answer, r, &key)) {
		size_t i = 0;
		while (i < COUNT_OF(rows) && !slice_eq(key, rows[i].key))
			i++;
		if (i < COUNT_OF(rows))
			rows[i].read(s, r);
		else
			(void)json_skip(r, NULL); /* role, and what is not ours */
	}
}

/* What a choice says beside its delta. */
struct choice {
	uint64_t index;
	struct slice delta, reason, match; /* delta: its text; match: vLLM's stop_reason */
	struct slice usage;                /* its text: some hosts count in here */
	struct slice error;                /* its text, if it is an object */
	bool failed;
};

static void read_choice(struct stream *s, struct json_reader *r, struct choice *choice)
{
	struct slice key;

	if (!json_enter_object(r))
		return;
	while (answer_next_key(&s->answer, r, &key)) {
		if (slice_eq(key, SLICE("index"))) {
			(void)answer_take_count(r, &choice->index);
		} else if (slice_eq(key, SLICE("delta"))) {
			(void)json_skip(r, &choice->delta);
		} else if (slice_eq(key, SLICE("finish_reason"))) {
			answer_take_string(r, &choice->reason);
		} else if (slice_eq(key, SLICE("stop_reason"))) {
			answer_take_string(r, &choice->match);
		} else if (slice_eq(key, SLICE("usage"))) {
			(void)json_skip(r, &choice->usage);
		} else if (slice_eq(key, SLICE("error")) && json_peek(r) == JSON_OBJECT) {
			(void)json_skip(r, &choice->error);
		} else {
			(void)json_skip(r, NULL);
		}
	}
	choice->failed = !slice_absent(choice->error);
}

/* A chunk, until all of it was read: what is in it counts only if it is no error. */
struct chunk {
	struct slice id, model;
	struct choice choice; /* the first one, or one that is an error */
	struct slice list;    /* all of them, where there are more; else absent */
	bool error;
	bool choices, message; /* whether it has them; message: as a string */
};

static void read_choices(struct stream *s, struct json_reader *r, struct chunk *c)
{
	uint64_t position = 0;

	if (json_peek(r) != JSON_ARRAY) {
		(void)json_skip(r, NULL);
		return;
	}
	const char *from = r->at;
	if (!json_enter_array(r))
		return;
	while (json_next_item(r)) {
		struct choice choice = { .index = position++ };
		read_choice(s, r, &choice);
		if (position == 1 || choice.failed)
			c->choice = choice;
	}
	if (position > 1)
		c->list = slice_of(from, (size_t)(r->at - from));
}

static void read_usage(struct stream *s, struct json_reader *r)
{
	bool object = json_peek(r) == JSON_OBJECT;
	const uint32_t from = json_offset(r);

	openai_read_usage(&s->answer, r);
	s->usage_said |= object;
	if (object)
		s->now.usage = slice_of(s->now.data.at + from, json_offset(r) - from);
}

static void read_member(struct stream *s, struct json_reader *r, struct slice key, struct chunk *c)
{
	struct answer *a = &s->answer;

	if (slice_eq(key, SLICE("choices"))) {
		c->choices = json_peek(r) == JSON_ARRAY;
		read_choices(s, r, c);
	} else if (slice_eq(key, SLICE("id"))) {
		answer_take_string(r, &c->id);
	} else if (slice_eq(key, SLICE("model"))) {
		answer_take_string(r, &c->model);
	} else if (slice_eq(key, SLICE("usage"))) {
		read_usage(s, r);
	} else if (slice_eq(key, SLICE("x_groq"))) {
		openai_read_x_groq(a, r);
	} else {
		/* OpenAI's obfuscation, Mistral's p, or whatever comes last and is a string */
		c->error |= slice_eq(key, SLICE("error")) && json_peek(r) != JSON_NULL;
		c->message |= slice_eq(key, SLICE("message")) && json_peek(r) == JSON_STRING;
		answer_take_string(r, &s->now.padding);
	}
}

static void read_members(struct stream *s, struct json_reader *r, struct chunk *c)
{
	struct slice key;

	if (json_enter_object(r))
		while (answer_next_key(&s->answer, r, &key))
			read_member(s, r, key, c);
}

/* Google's errors are lists, of which the first item counts; no other event is one. */
static void read_error_list(struct stream *s, struct json_reader *r, struct chunk *c)
{
	if (!json_enter_array(r))
		return;
	if (json_next_item(r)) {
		read_members(s, r, c);
		while (json_next_item(r))
			(void)json_skip(r, NULL);
	}
	if (!c->error)
		(void)json_fail(r, ERR_JSON, "expected an error");
}

static void read_chunk(struct stream *s, struct slice data, struct chunk *c)
{
	struct json_reader r;

	json_open(&r, data, &answer_json, s->answer.work);
	if (json_peek(&r) == JSON_ARRAY)
		read_error_list(s, &r, c);
	else
		read_members(s, &r, c);
	(void)json_finish(&r);
	stream_check_event(s, &r);
	c->error |= c->message && !c->choices; /* one that is flat: vLLM's, SGLang's, DashScope's */
}

static void take_choice(struct stream *s, const struct choice *choice)
{
	struct json_reader r;

	s->now.choice = (uint32_t)(choice->index < CHOICE_LAST ? choice->index : CHOICE_LAST);
	if (!slice_absent(choice->delta)) {
		json_open(&r, choice->delta, NULL, NULL); /* validated with the chunk */
		read_delta(s, &r);
		stream_check(s, &r);
	}
	if (!slice_absent(choice->usage) && !s->usage_said) {
		json_open(&r, choice->usage, NULL, NULL);
		openai_read_usage(&s->answer, &r);
	}
	if (choice->reason.len == 0) /* some hosts say "" for null */
		return;
	const enum answer_stop stop = openai_stop(choice->reason, choice->match);
	if (s->now.choice == 0)
		stream_stop(s, stop);
	else
		s->choice_stops[s->now.choice] = (uint8_t)(1 + stop);
}

static SCAN_RARE void take_choices(struct stream *s, struct slice list)
{
	uint64_t position = 0;
	struct json_reader r;

	json_open(&r, list, NULL, NULL); /* validated with the chunk */
	if (!json_enter_array(&r))
		return;
	while (json_next_item(&r) && s->answer.err == ERR_OK) {
		struct choice choice = { .index = position++ };
		read_choice(s, &r, &choice);
		take_choice(s, &choice);
	}
}

static void take_chunk(struct stream *s, const struct chunk *c)
{
	struct answer *a = &s->answer;

	if (c->id.len != 0 && slice_absent(a->id))
		stream_keep(s, c->id, &a->id);
	if (c->model.len != 0 && slice_absent(a->model))
		stream_keep(s, c->model, &a->model);
	if (slice_absent(c->list))
		take_choice(s, &c->choice);
	else
		take_choices(s, c->list);
}

static void on_event(struct stream *s, struct slice name, struct slice data)
{
	struct chunk c = { 0 };

	if (slice_eq(name, SLICE("error"))) {
		stream_error(s, data);
		return;
	}
	if (slice_eq(text_trim_json(data), SLICE("[DONE]"))) {
		if (!s->complete)
			stream_stop(s, ANSWER_END);
		stream_done(s);
		return;
	}
	read_chunk(s, data, &c);
	if (s->answer.err != ERR_OK)
		return;
	if (c.error || c.choice.failed) /* one of the choice has the members of an error body */
		stream_error(s, c.error ? data : c.choice.error);
	else
		take_chunk(s, &c);
}

const struct stream_dialect stream_openai = {
	.event = on_event,
	.finish = stream_openai_finish,
	.replay = stream_openai_replay,
	.usage = openai_read_usage,
	.calls_last = true,
	.feed = stream_feed_here,
	.end = stream_end_here,
};
