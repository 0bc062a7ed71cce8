/* stream_responses.c - events of a Responses stream (contract/providers.md 4, 10).
 *
 * Output items are told apart by output_index; texts, refusals and arguments come in deltas, and once more
 * as a whole in a .done event, in the item's end, and in the last event, which count only where no delta was
 * before them. The last event has the whole response: how it ended, and the usage, are taken from there, and
 * it must have no call that was in none before. Everything else is passed over. */
#include "codec/dialect/dialect_text.h"
#include "codec/dialect/responses/dialect_responses.h"
#include "codec/dialect/stream_parts.h"

/* Places in at_index: output items have the indexes of the wire, the refusal is behind them. */
enum { INDEX_REFUSAL = STREAM_BLOCKS_MAX - 1, INDEX_ITEMS = INDEX_REFUSAL };

/* What an event's top level says; objects as text, to be read when the type is known. */
struct event {
	struct slice type, delta, text, refusal, arguments; /* raw */
	struct slice item, response;
	uint64_t index;
	bool indexed;
};

enum event_member {
	EVENT_TYPE,
	EVENT_SEQUENCE,
	EVENT_ITEM_ID,
	EVENT_INDEX,
	EVENT_CONTENT_INDEX,
	EVENT_DELTA,
	EVENT_ITEM,
	EVENT_RESPONSE,
	EVENT_TEXT,
	EVENT_REFUSAL,
	EVENT_ARGUMENTS,
};

static const struct json_name event_names[] = {
	[EVENT_TYPE] = JSON_NAME("type"),
	[EVENT_SEQUENCE] = JSON_NAME("sequence_number"),
	[EVENT_ITEM_ID] = JSON_NAME("item_id"),
	[EVENT_INDEX] = JSON_NAME("output_index"),
	[EVENT_CONTENT_INDEX] = JSON_NAME("content_index"),
	[EVENT_DELTA] = JSON_NAME("delta"),
	[EVENT_ITEM] = JSON_NAME("item"),
	[EVENT_RESPONSE] = JSON_NAME("response"),
	[EVENT_TEXT] = JSON_NAME("text"),
	[EVENT_REFUSAL] = JSON_NAME("refusal"),
	[EVENT_ARGUMENTS] = JSON_NAME("arguments"),
};

static void read_event_member(struct json_reader *r, uint32_t member, struct event *e)
{
	switch (member) {
	case EVENT_TYPE:
		answer_take_string(r, &e->type);
		break;
	case EVENT_INDEX:
		e->indexed = answer_take_count(r, &e->index);
		break;
	case EVENT_DELTA:
		answer_take_string(r, &e->delta);
		break;
	case EVENT_ITEM:
		(void)json_skip(r, &e->item);
		break;
	case EVENT_RESPONSE:
		(void)json_skip(r, &e->response);
		break;
	case EVENT_TEXT:
		answer_take_string(r, &e->text);
		break;
	case EVENT_REFUSAL:
		answer_take_string(r, &e->refusal);
		break;
	case EVENT_ARGUMENTS:
		answer_take_string(r, &e->arguments);
		break;
	default:
		answer_skip(r);
	}
}

static void read_event(struct stream *s, struct slice data, struct event *e)
{
	struct json_fields fields = JSON_FIELDS(event_names);
	struct json_reader r;
	uint32_t member;

	json_open(&r, data, &answer_json, s->answer.work);
	if (json_enter_object(&r)) {
		while (answer_next(&r, &fields, &member))
			read_event_member(&r, member, e);
		(void)json_finish(&r);
	}
	stream_check_event(s, &r);
}

/* ---- items ---- */

/* The block of the output item that the event belongs to, made when there is none. */
static uint32_t block_of(struct stream *s, const struct event *e, enum stream_kind kind)
{
	if (!e->indexed || e->index >= INDEX_ITEMS) {
		answer_fail(&s->answer, e->indexed
						? "The provider's stream has too many items"
						: "An item of the provider's stream has no index");
		return STREAM_NO_BLOCK;
	}
	uint32_t at = stream_block_at(s, e->index);
	if (at == STREAM_NO_BLOCK)
		return stream_block_new(s, e->index, kind);
	if (s->blocks[at].kind != kind)
		answer_fail(&s->answer, "A delta of the provider's stream does not fit its item");
	return at;
}

/* Adds to the block, if there is one and a string. */
static void add(struct stream *s, uint32_t at, struct slice raw)
{
	if (at != STREAM_NO_BLOCK && !slice_absent(raw))
		stream_add(s, at, raw);
}

static void on_text_delta(struct stream *s, const struct event *e)
{
	add(s, block_of(s, e, STREAM_TEXT), e->delta);
}

/* Adds the whole of a text whose deltas have not come. */
static void add_whole(struct stream *s, uint32_t at, struct slice raw)
{
	if (stream_skim_may_have_cut(&s->skim, raw))
		stream_too_large(s,
				 "A text of the provider's stream came at once and is too large");
	add(s, at, raw);
	s->now.fixed = true;
}

static void on_text_done(struct stream *s, const struct event *e)
{
	uint32_t at = block_of(s, e, STREAM_TEXT);

	if (at != STREAM_NO_BLOCK && s->blocks[at].text.len == 0)
		add_whole(s, at, e->text);
}

static uint32_t refusal_block(struct stream *s)
{
	uint32_t at = stream_block_at(s, INDEX_REFUSAL);

	return at == STREAM_NO_BLOCK ? stream_block_new(s, INDEX_REFUSAL, STREAM_REFUSAL) : at;
}

static void on_refusal_delta(struct stream *s, const struct event *e)
{
	add(s, refusal_block(s), e->delta);
}

static void on_refusal_done(struct stream *s, const struct event *e)
{
	uint32_t at = refusal_block(s);

	if (at != STREAM_NO_BLOCK && s->blocks[at].text.len == 0)
		add_whole(s, at, e->refusal);
}

static void on_arguments_delta(struct stream *s, const struct event *e)
{
	add(s, block_of(s, e, STREAM_CALL), e->delta);
}

static void add_whole_arguments(struct stream *s, uint32_t at, struct slice arguments)
{
	if (at != STREAM_NO_BLOCK && !stream_has_arguments(&s->blocks[at]))
		add_whole(s, at, arguments);
}

static void on_arguments_done(struct stream *s, const struct event *e)
{
	add_whole_arguments(s, block_of(s, e, STREAM_CALL), e->arguments);
}

static void on_reasoning_delta(struct stream *s, const struct event *e)
{
	if (!slice_absent(e->delta))
		stream_add(s, STREAM_NO_BLOCK, e->delta); /* shows that the model is at work */
}

struct item {
	struct slice type, status, id, name, arguments;
	struct slice own_id;             /* of the item, not of the call */
	struct slice content;            /* of a message; JSON */
	struct slice summary, encrypted; /* of reasoning; JSON */
};

static void read_item(struct stream *s, struct slice text, struct item *item)
{
	static const struct stream_member members[] = {
		STREAM_STRING(item, type, "type"),
		STREAM_STRING(item, status, "status"),
		STREAM_STRING(item, id, "call_id"),
		STREAM_STRING(item, name, "name"),
		STREAM_STRING(item, arguments, "arguments"),
		STREAM_STRING(item, own_id, "id"),
		STREAM_WHOLE(item, content, "content"),
		STREAM_WHOLE(item, summary, "summary"),
		STREAM_WHOLE(item, encrypted, "encrypted_content"),
	};

	stream_read_members(s, text, members, COUNT_OF(members), item);
}

/* Id and name of a call; in front of its arguments, and again behind them. */
static uint32_t take_call(struct stream *s, const struct event *e, const struct item *item)
{
	uint32_t at = block_of(s, e, STREAM_CALL);

	if (at == STREAM_NO_BLOCK)
		return at;
	if (item->id.len != 0)
		stream_keep(s, item->id, &s->blocks[at].id);
	if (item->name.len != 0)
		stream_keep(s, item->name, &s->blocks[at].name);
	return at;
}

/* ---- what goes back ---- */

static bool wants_reasoning(const struct stream *s)
{
	return stream_keeps(s) && s->answer.context->replay_reasoning;
}

/* A reasoning item is over: it goes back if it is all there. Encrypted content it has to have, because
 * nothing is stored (contract/providers.md 4). */
static void keep_reasoning(struct stream *s, const struct event *e, const struct item *item)
{
	const uint32_t at = e->indexed ? block_of(s, e, STREAM_PRIVATE) : STREAM_NO_BLOCK;
	struct stream_extra *extra;
	struct gather g;

	if (at == STREAM_NO_BLOCK || item->encrypted.len <= 2 || item->encrypted.at[0] != '"' ||
	    item->own_id.len == 0) {
		s->answer.unkeepable = true;
		return;
	}
	s->answer.private = true;
	gather_init(&g, s->answer.into);
	gather_lit(&g, "{\"type\":\"reasoning\",\"id\":");
	gather_str(&g, item->own_id);
	gather_lit(&g, ",\"summary\":");
	gather_raw(&g, item->summary.len != 0 && item->summary.at[0] == '[' ? item->summary
									    : SLICE("[]"));
	gather_lit(&g, ",\"encrypted_content\":");
	gather_raw(&g, item->encrypted);
	gather_lit(&g, "}");
	extra = stream_extra_of(s, at);
	if (extra != NULL && gather_done(&g) == ERR_OK)
		stream_private_copy(s, gather_flat(&g, s->answer.into), &extra->json);
	else
		s->private_lost = true;
}

/* The item's own id, by which the reasoning in front of it knows it. */
static void keep_id(struct stream *s, const struct event *e, const struct item *item)
{
	const uint32_t at = e->indexed ? stream_block_at(s, e->index) : STREAM_NO_BLOCK;

	if (at == STREAM_NO_BLOCK || !wants_reasoning(s) || item->own_id.len == 0)
		return;
	struct stream_extra *extra = stream_extra_of(s, at);
	if (extra != NULL)
		stream_private_copy(s, item->own_id, &extra->id);
}

static void put_id(struct gather *g, const struct stream_block *block)
{
	if (block->extra == NULL || slice_absent(block->extra->id))
		return;
	gather_lit(g, ",\"id\":");
	gather_str(g, block->extra->id);
}

static void put_text_item(struct gather *g, const struct stream_block *block)
{
	gather_lit(g, "{\"type\":\"message\"");
	put_id(g, block);
	gather_lit(g, ",\"role\":\"assistant\",\"status\":\"completed\",\"content\":[{\"type\":"
		      "\"output_text\",\"annotations\":[],\"text\":\"");
	stream_text_write(g, &block->text);
	gather_lit(g, "\"}]}");
}

/* Its arguments have both their quotes by now. */
static void put_call_item(struct gather *g, const struct stream_block *block)
{
	gather_lit(g, "{\"type\":\"function_call\"");
	put_id(g, block);
	gather_lit(g, ",\"call_id\":");
	gather_str(g, block->id);
	gather_lit(g, ",\"name\":");
	gather_str(g, block->name);
	gather_lit(g, ",\"arguments\":");
	stream_text_write(g, &block->text);
	gather_lit(g, "}");
}

static void on_replay(struct stream *s, const struct sampling_result *result)
{
	struct gather g;
	bool first = true;

	(void)result; /* its calls are those of the stream, as they came */
	if (s->answer.renamed || s->skim.lost)
		return;
	gather_init(&g, s->answer.into);
	for (uint32_t i = 0; i < s->block_count; i++) {
		const struct stream_block *block = &s->blocks[i];
		if (block->kind == STREAM_TEXT && block->text.len == 0)
			continue;
		gather_raw(&g, first ? SLICE("[") : SLICE(","));
		first = false;
		if (block->kind == STREAM_CALL)
			put_call_item(&g, block);
		else if (block->kind == STREAM_TEXT)
			put_text_item(&g, block);
		else if (block->extra != NULL && block->extra->json.len != 0)
			gather_raw(&g, block->extra->json);
		else
			return; /* reasoning that was never ended */
	}
	gather_lit(&g, "]");
	stream_private_done(s, &g);
}

/* ---- items, from their beginning to their end ---- */

static void on_item_added(struct stream *s, const struct event *e)
{
	struct item item = { 0 };

	read_item(s, e->item, &item);
	if (json_str_eq(item.type, SLICE("function_call")))
		(void)take_call(s, e, &item);
	else if (json_str_eq(item.type, SLICE("reasoning")) && wants_reasoning(s) && e->indexed)
		(void)block_of(s, e, STREAM_PRIVATE); /* its place among the others */
	else if (json_str_eq(item.type, SLICE("message")) && e->indexed)
		(void)block_of(s, e, STREAM_TEXT); /* likewise */
	else if (!json_str_eq(item.type, SLICE("message")) && !responses_is_private(item.type))
		answer_adjust(&s->answer, ADJUST_UNKNOWN_BLOCK);
}

static void take_part(struct stream *s, const struct event *e, struct json_reader *r)
{
	struct answer *a = &s->answer;

	responses_read_part(a, r);
	for (uint32_t i = 0; i < a->count && a->err == ERR_OK; i++)
		add_whole(s, block_of(s, e, STREAM_TEXT), a->blocks[i].text);
	a->count = 0;
	const struct slice refusal = a->explanation;
	a->explanation = (struct slice){ NULL, 0 };
	if (refusal.len != 0 && a->err == ERR_OK)
		add_whole(s, refusal_block(s), refusal);
}

/* A message that has come to its end without a delta: what it says is in its content alone. */
static void take_content(struct stream *s, const struct event *e, struct slice content)
{
	const uint32_t at = e->indexed ? stream_block_at(s, e->index) : STREAM_NO_BLOCK;
	const bool said = at != STREAM_NO_BLOCK && s->blocks[at].text.len != 0;
	struct json_reader r;

	if (content.len == 0 || !e->indexed || said ||
	    stream_block_at(s, INDEX_REFUSAL) != STREAM_NO_BLOCK)
		return;
	if (content.at[0] == '"') /* as some hosts of the format write it */
		add_whole(s, block_of(s, e, STREAM_TEXT),
			  slice_of(content.at + 1, content.len - 2));
	if (content.at[0] != '[')
		return;
	json_open(&r, content, NULL, NULL); /* validated with the event */
	if (json_enter_array(&r))
		while (json_next_item(&r))
			take_part(s, e, &r);
}

static void on_item_done(struct stream *s, const struct event *e)
{
	struct item item = { 0 };

	read_item(s, e->item, &item);
	s->answer.last_call_cut = false;
	if (json_str_eq(item.type, SLICE("reasoning")) && wants_reasoning(s))
		keep_reasoning(s, e, &item);
	if (json_str_eq(item.type, SLICE("function_call"))) {
		add_whole_arguments(s, take_call(s, e, &item), item.arguments);
		s->answer.last_call_cut = json_str_eq(item.status, SLICE("incomplete"));
	}
	if (json_str_eq(item.type, SLICE("message")))
		take_content(s, e, item.content);
	keep_id(s, e, &item);
}

static bool anything_was_said(const struct stream *s)
{
	for (uint32_t i = 0; i < s->block_count; i++)
		if (s->blocks[i].kind == STREAM_CALL || s->blocks[i].text.len != 0)
			return true;
	return false;
}

/* The whole response: its items count where none was spoken of before. The number of its calls. */
static uint32_t take_output(struct stream *s, struct slice output)
{
	const bool said = anything_was_said(s);
	uint32_t calls = s->skim.calls; /* of one that was left out */
	struct event e = { .indexed = true };
	struct json_reader r;

	if (output.len == 0 || output.at[0] != '[')
		return calls;
	json_open(&r, output, NULL, NULL); /* validated with the event */
	if (!json_enter_array(&r))
		return calls;
	for (; json_next_item(&r) && json_skip(&r, &e.item); e.index++) {
		struct item item = { 0 };
		read_item(s, e.item, &item);
		calls += json_str_eq(item.type, SLICE("function_call"));
		if (!said)
			on_item_done(s, &e);
	}
	return calls;
}

/* The response has so many calls: one that the stream had not, and that may have been left out of what is
 * here, is to be had in one piece. */
static void check_calls(struct stream *s, uint32_t calls)
{
	for (uint32_t i = 0; i < s->block_count && calls != 0; i++)
		calls -= s->blocks[i].kind == STREAM_CALL;
	if (calls != 0 && stream_keeps(s))
		stream_too_large(
			s, "A call of the provider's answer was in none of its stream's events");
}

/* ---- the response ---- */

/* What the response says of itself, into the answer if it is to be kept. */
static void read_response(struct stream *s, struct slice text, struct responses_end *end)
{
	struct json_fields fields = JSON_FIELDS(responses_names);
	struct answer *a = &s->answer;
	struct slice id = a->id, model = a->model;
	struct json_reader r;
	uint32_t member;

	if (text.len == 0 || text.at[0] != '{')
		return;
	json_open(&r, text, NULL, NULL); /* validated with the event */
	if (!json_enter_object(&r))
		return;
	while (answer_next(&r, &fields, &member))
		if (member == RESPONSES_OUTPUT)
			(void)json_skip(&r, &end->output);
		else
			responses_read_member(a, &r, member, end);
	const struct slice said_id = a->id, said_model = a->model; /* of the event */
	a->id = id;
	a->model = model;
	if (said_id.len != 0)
		stream_keep(s, said_id, &a->id);
	if (said_model.len != 0)
		stream_keep(s, said_model, &a->model);
}

static void on_response(struct stream *s, const struct event *e)
{
	struct responses_end end = { 0 };

	read_response(s, e->response, &end);
}

static void on_failed(struct stream *s, const struct event *e)
{
	struct responses_end end = { 0 };

	read_response(s, e->response, &end);
	stream_error(s, end.error ? e->response : s->now.data);
}

static void on_end(struct stream *s, const struct event *e)
{
	struct responses_end end = { 0 };

	read_response(s, e->response, &end);
	if (end.error || json_str_eq(end.status, SLICE("failed"))) {
		stream_error(s, e->response);
		return;
	}
	check_calls(s, take_output(s, end.output));
	if (slice_absent(end.status)) /* then the event's own name says it */
		end.status = json_str_eq(e->type, SLICE("response.incomplete"))
				     ? SLICE("incomplete")
				     : SLICE("completed");
	stream_stop(s, responses_stop(&s->answer, &end));
	stream_done(s);
}

/* ---- events ---- */

static const struct {
	struct slice type;
	void (*on)(struct stream *s, const struct event *e);
} rows[] = {
	{ SLICE_INIT("response.output_text.delta"), on_text_delta },
	{ SLICE_INIT("response.function_call_arguments.delta"), on_arguments_delta },
	{ SLICE_INIT("response.reasoning_summary_text.delta"), on_reasoning_delta },
	{ SLICE_INIT("response.reasoning_text.delta"), on_reasoning_delta },
	{ SLICE_INIT("response.refusal.delta"), on_refusal_delta },
	{ SLICE_INIT("response.output_text.done"), on_text_done },
	{ SLICE_INIT("response.function_call_arguments.done"), on_arguments_done },
	{ SLICE_INIT("response.refusal.done"), on_refusal_done },
	{ SLICE_INIT("response.output_item.added"), on_item_added },
	{ SLICE_INIT("response.output_item.done"), on_item_done },
	{ SLICE_INIT("response.created"), on_response },
	{ SLICE_INIT("response.in_progress"), on_response },
	{ SLICE_INIT("response.completed"), on_end },
	{ SLICE_INIT("response.incomplete"), on_end },
	{ SLICE_INIT("response.failed"), on_failed },
};

static void on_event(struct stream *s, struct slice name, struct slice data)
{
	struct event e = { 0 };

	if (slice_eq(name, SLICE("error"))) {
		stream_error(s, data);
		return;
	}
	if (slice_eq(text_trim_json(data), SLICE("[DONE]")))
		return; /* some hosts say so behind the end */
	read_event(s, data, &e);
	if (s->answer.err != ERR_OK)
		return;
	if (slice_absent(e.type) && name.len != 0 && memchr(name.at, '\\', name.len) == NULL) {
		e.type = name; /* plain, but now as good as raw */
		s->now.fixed = true;
	}
	if (json_str_eq(e.type, SLICE("error"))) {
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
	uint32_t refusal = stream_block_at(s, INDEX_REFUSAL);

	if (refusal != STREAM_NO_BLOCK && s->blocks[refusal].text.len != 0)
		s->answer.stop = ANSWER_REFUSED;
}

const struct stream_dialect stream_responses = {
	.event = on_event,
	.finish = on_finish,
	.replay = on_replay,
	.feed = stream_feed_skimmed_here,
	.end = stream_end_here,
};
