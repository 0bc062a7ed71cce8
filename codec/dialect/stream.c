#include "codec/dialect/stream.h"

#include "codec/base/must.h"
#include "codec/dialect/dialect_text.h"
#include "codec/dialect/stream_parts.h"

#include <stddef.h>

static const struct slice nothing = { NULL, 0 };

void stream_init(struct stream *s, const struct dialect *dialect,
		 const struct decode_context *context, const struct provider_answer *head,
		 const struct stream_limits *limits, struct json_work *work, struct arena *into)
{
	struct stream_room *room = s->room;

	_Static_assert(offsetof(struct stream, sse) == PREFETCH_LINE, "the reader begins a line");
	_Static_assert(offsetof(struct stream, first_blocks) == 3 * PREFETCH_LINE,
		       "so do the blocks");
	must(head->status / 100 == 2 && room != NULL);
	(void)memset(s, 0, offsetof(struct stream, shape_bytes));
	s->magic = STREAM_MAGIC;
	s->room = room;
	s->blocks = s->first_blocks;
	s->block_cap = STREAM_BLOCKS_FIRST;
	s->dialect = dialect;
	s->head = *head;
	s->head.body = nothing;
	s->event_bytes_max = limits->event_bytes_max;
	s->left = limits->answer_bytes_max;
	arena_give(&room->large); /* of the answer before, if that was given up */
	sse_init(&s->sse, room->buffer, sizeof(room->buffer));
	answer_begin(&s->answer, context, &s->head, work, into);
}

/* ---- memory ---- */

bool stream_slab_init(struct stream_slab *slab, size_t count)
{
	must(count != 0);
	if (!slab_init(&slab->streams, sizeof(struct stream), count))
		return false;
	if (slab_init(&slab->rooms, sizeof(struct stream_room), count))
		return true;
	slab_fini(&slab->streams);
	return false;
}

void stream_slab_fini(struct stream_slab *slab)
{
	slab_fini(&slab->streams);
	slab_fini(&slab->rooms);
}

struct stream *stream_take(struct stream_slab *slab)
{
	struct stream *s = slab_take(&slab->streams);

	if (s == NULL)
		return NULL;
	s->room = slab_take(&slab->rooms);
	must(s->room != NULL); /* there are as many */
	s->room->large = (struct arena){ .pool = NULL };
	return s;
}

void stream_give(struct stream_slab *slab, struct stream *s)
{
	arena_give(&s->room->large);
	slab_give(&slab->rooms, s->room);
	slab_give(&slab->streams, s);
}

/* ---- what an event may say ---- */

void stream_check(struct stream *s, const struct json_reader *r)
{
	if (r->fault.err != ERR_OK)
		answer_fail(&s->answer, "An event of the provider's stream is malformed");
}

void stream_check_event(struct stream *s, const struct json_reader *r)
{
	s->now.unreadable = s->answer.err != ERR_BUSY && json_mend_may_help(r->fault.err);
	stream_check(s, r);
}

void stream_error(struct stream *s, struct slice data)
{
	if (s->answer.err != ERR_OK || s->state != STREAM_OPEN)
		return;
	s->state = STREAM_FAILED;
	s->error_body = arena_copy(s->answer.into, data);
	if (slice_absent(s->error_body))
		answer_no_memory(&s->answer);
}

void stream_stop(struct stream *s, enum answer_stop stop)
{
	if (!s->complete || answer_stop_says_more(s->stop, stop))
		s->stop = stop;
	s->complete = true;
}

void stream_done(struct stream *s)
{
	s->state = STREAM_DONE;
}

void stream_read_members(struct stream *s, struct slice object, const struct stream_member *members,
			 size_t count, void *into)
{
	struct json_reader r;
	struct slice key;

	if (object.len == 0 || object.at[0] != '{')
		return;
	json_open(&r, object, NULL, NULL);
	if (!json_enter_object(&r))
		return;
	while (answer_next_key(&s->answer, &r, &key)) {
		size_t i = 0;
		while (i < count && !slice_eq(key, members[i].name))
			i++;
		struct slice *value = i < count ? (void *)((char *)into + members[i].offset) : NULL;
		if (value == NULL || members[i].whole)
			(void)json_skip(&r, value);
		else
			answer_take_string(&r, value);
	}
}

/* Whether `len` more bytes may be kept. */
static bool spend(struct stream *s, size_t len)
{
	if (len > s->left) {
		answer_fail(&s->answer,
			    "The provider's answer is larger than this gateway accepts");
		return false;
	}
	s->left -= len;
	return true;
}

void stream_keep(struct stream *s, struct slice raw, struct slice *out)
{
	if (!slice_absent(*out) && slice_eq(raw, *out))
		return;
	if (s->half_count != 0)
		stream_halves_replace(s, raw);
	if (s->answer.err != ERR_OK || !spend(s, raw.len))
		return;
	struct slice copy = arena_copy(s->answer.into, raw);
	if (slice_absent(copy))
		answer_no_memory(&s->answer);
	else
		*out = copy;
}

void stream_keep_args(struct stream *s, struct slice value, struct slice *out)
{
	value = answer_mended_args(&s->answer, s->now.mended, s->now.data.at, value);
	if (!slice_absent(value))
		stream_keep(s, value, out);
}

/* ---- blocks ---- */

static bool blocks_grow(struct stream *s)
{
	uint32_t cap = 2 * s->block_cap;
	struct stream_block *grown = arena_take(s->answer.into, cap * sizeof(*grown));

	if (grown == NULL) {
		answer_no_memory(&s->answer);
		return false;
	}
	(void)memcpy(grown, s->blocks, s->block_count * sizeof(*grown));
	s->blocks = grown;
	s->block_cap = cap;
	return true;
}

/* Indexes up to `index` are known from now on, as nobody's. */
static void index_reach(struct stream *s, uint32_t index)
{
	if (index < s->index_count)
		return;
	(void)memset(s->room->at_index + s->index_count, 0,
		     (index + 1 - s->index_count) * sizeof(s->room->at_index[0]));
	s->index_count = index + 1;
}

uint32_t stream_block_new(struct stream *s, uint64_t index, enum stream_kind kind)
{
	if (index >= STREAM_BLOCKS_MAX || s->block_count == STREAM_BLOCKS_MAX)
		answer_fail(&s->answer, "The provider's stream has too many blocks");
	if (s->answer.err != ERR_OK || (s->block_count == s->block_cap && !blocks_grow(s)))
		return STREAM_NO_BLOCK;
	if (s->answer.context->passed && kind != STREAM_CALL) /* nobody here reads it */
		kind = STREAM_IGNORED;
	struct stream_block *block = &s->blocks[s->block_count];
	*block = (struct stream_block){ .kind = kind };
	if (kind == STREAM_CALL)
		(void)stream_text_put(s, &block->text, SLICE("\""));
	index_reach(s, (uint32_t)index);
	s->room->at_index[index] = (uint16_t)++s->block_count;
	return s->block_count - 1;
}

uint32_t stream_block_at(const struct stream *s, uint64_t index)
{
	if (index >= s->index_count || s->room->at_index[index] == 0)
		return STREAM_NO_BLOCK;
	return s->room->at_index[index] - 1u;
}

static void count_output(struct stream *s, size_t len)
{
	s->progress.output_bytes += len;
	s->progress.begun |= len != 0;
}

/* Bytes at the end of a text, unless there is too much of it all. */
static bool put_text(struct stream *s, struct stream_text *text, struct slice raw)
{
	return spend(s, raw.len) && stream_text_put(s, text, raw);
}

/* The same where halves of characters are at the edges: of those without the other one only what is whole stays. */
static SCAN_RARE bool put_halved(struct stream *s, struct stream_text *text, struct slice raw)
{
	bool front = false, back = false;

	stream_halves_take(s, raw, &front, &back);
	if (front && !text->half)
		raw = slice_of(raw.at + STREAM_HALF, raw.len - STREAM_HALF);
	else if (!front && text->half)
		stream_text_drop_half(text);
	text->half = back;
	return put_text(s, text, raw);
}

/* False: the answer has failed, or had before. */
static bool add_text(struct stream *s, struct stream_text *text, struct slice raw)
{
	if (raw.len == 0)
		return true;
	if (s->half_count != 0 || text->half)
		return put_halved(s, text, raw);
	return put_text(s, text, raw);
}

/* To the block at that place, if it keeps any; false likewise. */
static bool add_to(struct stream *s, uint32_t at, struct slice raw)
{
	if (at == STREAM_NO_BLOCK)
		return true;
	struct stream_block *block = &s->blocks[at];
	if (block->kind == STREAM_PRIVATE)
		return stream_private_add(s, &block->text, raw);
	return block->kind == STREAM_IGNORED || add_text(s, &block->text, raw);
}

void stream_add(struct stream *s, uint32_t block, struct slice raw)
{
	s->now.fragments++;
	s->now.fragment = raw;
	s->now.block = block;
	count_output(s, raw.len);
	if (s->answer.err == ERR_OK)
		(void)add_to(s, block, raw);
}

/* ---- events ---- */

/* An event of the remembered shape: all that it does is to add its string. Whether the answer has failed is
 * known without looking at it: that would be one more line of the cache. */
static void take_fragment(struct stream *s, struct slice fragment)
{
	s->progress.deltas += fragment.len != 0;
	count_output(s, fragment.len);
	if (!add_to(s, s->shape.block, fragment))
		s->state = STREAM_FAILED;
}

/* The event is no strict JSON: reads it mended, if it can be. What became of its halves of surrogate pairs stays. */
static SCAN_RARE void read_mended(struct stream *s, struct sse_event *event)
{
	struct json_mend *mend = &s->room->mend;
	char *data = sse_writable(&s->sse, event);

	if (!json_mend(data, event->data.len, &answer_json, s->answer.work, mend))
		return;
	s->answer.err = ERR_OK;
	s->answer.detail = NULL;
	s->now = (struct stream_now){ .data = event->data, .mended = mend };
	s->dialect->stream->event(s, event->name, event->data);
}

static void read_event(struct stream *s, struct sse_event *event)
{
	s->shape.set = false;
	if (text_trim_json(event->data).len == 0)
		return;
	s->progress.event_seen = true;
	const uint64_t before = s->progress.output_bytes;
	s->now = (struct stream_now){ .data = stream_halves_mask(s, event) };
	s->dialect->stream->event(s, event->name, s->now.data);
	if (s->now.unreadable)
		read_mended(s, event);
	s->progress.deltas += s->progress.output_bytes != before;
	if (s->half_count == 0 && s->state == STREAM_OPEN)
		stream_shape_learn(s, sse_written(&s->sse));
}

static void take_event(struct stream *s, struct sse_event *event)
{
	struct slice fragment;

	if (!slice_eq(event->name, SLICE("error")) && stream_shape_match(s, event->data, &fragment))
		take_fragment(s, fragment);
	else
		read_event(s, event);
}

/* Events that need not even be split: as long as they come. */
static void take_ahead(struct stream *s)
{
	struct slice ahead, fragment;
	size_t len;

	while (s->state == STREAM_OPEN) {
		ahead = sse_ahead(&s->sse);
		if (ahead.len == 0)
			return;
		len = stream_shape_ahead(s, ahead, &fragment);
		if (len == 0)
			return;
		sse_skip(&s->sse, len);
		take_fragment(s, fragment);
	}
}

void stream_too_large(struct stream *s, const char *detail)
{
	s->too_large = true;
	answer_fail(&s->answer, detail);
}

/* ---- events that outgrow the stream's own buffer ---- */

/* Twice the room, up to the limit; without memory the answer fails. */
static void grow(struct stream *s)
{
	const struct arena *into = s->answer.into;
	const size_t twice = 2 * s->sse.size, most = s->event_bytes_max;
	const size_t size = twice < most ? twice : most;
	struct arena larger;

	arena_init(&larger, into->pool, size + ARENA_CHUNK_BYTES);
	char *buffer = arena_take(&larger, size);
	if (buffer == NULL) {
		answer_no_memory(&s->answer);
		return;
	}
	sse_move(&s->sse, buffer, size);
	arena_give(&s->room->large);
	s->room->large = larger;
}

/* The event is over. */
static void shrink(struct stream *s)
{
	sse_move(&s->sse, s->room->buffer, sizeof(s->room->buffer));
	arena_give(&s->room->large);
}

/* Of an event that is too large to be read. */
static void take_front(struct stream *s)
{
	const struct stream_dialect *dialect = s->dialect->stream;
	struct sse_event event;

	sse_pass(&s->sse, &event);
	s->progress.event_seen = true;
	s->shape.set = false;
	if (dialect->front == NULL || !dialect->front(s, event.data))
		answer_fail(&s->answer, "An event of the provider's stream is too large");
}

static void take_full(struct stream *s)
{
	if (s->sse.size >= s->event_bytes_max)
		take_front(s);
	else
		grow(s);
}

/* The next event or events. False when there is nothing to go on with. */
static bool take_next(struct stream *s)
{
	struct sse_event event;

	switch (sse_next(&s->sse, &event)) {
	case SSE_NOTHING:
		return false;
	case SSE_FULL:
		take_full(s);
		break;
	case SSE_EVENT:
		take_event(s, &event);
		if (s->sse.size > STREAM_EVENT_ROOM)
			shrink(s);
		break;
	}
	if (s->answer.err != ERR_OK)
		s->state = STREAM_FAILED;
	take_ahead(s);
	return s->state == STREAM_OPEN;
}

enum stream_state stream_feed_here(struct stream *s, struct slice bytes)
{
	if (s->state != STREAM_OPEN)
		return s->state;
	sse_feed(&s->sse, bytes);
	take_ahead(s);
	while (s->state == STREAM_OPEN && take_next(s))
		;
	return s->state;
}

enum stream_state stream_feed_skimmed_here(struct stream *s, struct slice bytes)
{
	struct slice part;

	while (s->state == STREAM_OPEN && stream_skim_next(&s->skim, &bytes, &part))
		(void)stream_feed_here(s, part);
	return s->state;
}

/* ---- the end ---- */

static void end_call(struct stream *s, struct stream_block *block)
{
	struct answer_block call = {
		.kind = ANSWER_CALL,
		.id = block->id,
		.name = block->name,
		.args = block->args,
	};

	if (call.name.len == 0)
		answer_odd(&s->answer, "The provider's tool call has no name: malformed");
	if (slice_absent(call.args) || stream_has_arguments(block)) {
		stream_text_drop_half(&block->text);
		(void)stream_text_put(s, &block->text, SLICE("\""));
		call.args = stream_text_whole(s, &block->text);
	}
	answer_add(&s->answer, call);
}

static void end_block(struct stream *s, struct stream_block *block)
{
	struct answer_block audio = { .kind = ANSWER_AUDIO };

	switch (block->kind) {
	case STREAM_TEXT:
		stream_text_drop_half(&block->text);
		stream_text_blocks(s, &block->text);
		break;
	case STREAM_CALL:
		end_call(s, block);
		break;
	case STREAM_AUDIO:
		audio.text = stream_text_whole(s, &block->text);
		answer_add(&s->answer, audio);
		break;
	case STREAM_REFUSAL:
		stream_text_drop_half(&block->text);
		s->answer.explanation = stream_text_whole(s, &block->text);
		break;
	case STREAM_PRIVATE:
	case STREAM_IGNORED:
		break;
	}
}

static void end_blocks(struct stream *s)
{
	bool calls_last = s->dialect->stream->calls_last;

	for (uint32_t i = 0; i < s->block_count; i++)
		if (!calls_last || s->blocks[i].kind != STREAM_CALL)
			end_block(s, &s->blocks[i]);
	for (uint32_t i = 0; calls_last && i < s->block_count; i++)
		if (s->blocks[i].kind == STREAM_CALL)
			end_block(s, &s->blocks[i]);
}

/* The provider said what went wrong; what it had counted until then may be billed. */
static enum err end_error(struct stream *s, struct sampling_result *result,
			  struct provider_failure *failure)
{
	struct usage usage = s->answer.usage;

	s->head.body = s->error_body;
	enum err err = answer_from_failure(&s->answer, result, failure);
	if (err == ERR_OK) {
		result->usage = usage;
	} else {
		failure->usage_known = usage.known;
		failure->usage = usage;
	}
	return err;
}

enum err stream_end_here(struct stream *s, enum stream_ending ending,
			 struct sampling_result *result, struct provider_failure *failure)
{
	const bool cut = s->answer.err == ERR_OK && !s->complete;

	if (s->answer.err == ERR_OK && !slice_absent(s->error_body))
		return end_error(s, result, failure);
	if (cut)
		answer_fail(&s->answer,
			    ending == STREAM_ENDED
				    ? "The provider's stream ended before the answer did"
				    : "The connection to the provider broke before its "
				      "stream ended");
	s->answer.stop = s->stop;
	if (s->answer.err == ERR_OK && s->stop != ANSWER_BROKEN) {
		s->dialect->stream->finish(s);
		end_blocks(s);
	}
	enum err err = answer_finish(&s->answer, result, failure);
	if (err == ERR_OK && s->answer.private)
		stream_private_end(s, result);
	if (cut) /* the model has not slipped: it was not heard to its end */
		failure->blame = BLAME_ENDPOINT;
	return err;
}

/* ---- before an event ---- */

void stream_prefetch(const struct stream *s, enum prefetch step)
{
	if (step == PREFETCH_STREAM) {
		prefetch_lines(s, 2);
		prefetch_lines(s->first_blocks, 1);
		prefetch_lines(&s->shape, 3);
	} else if (s->block_count != 0 && s->block_count <= STREAM_BLOCKS_FIRST) {
		prefetch_lines(s->first_blocks[s->block_count - 1].text.end, 1);
	}
}

/* ---- the way to the instruction set of the work area ---- */

enum stream_state stream_feed(struct stream *s, struct slice bytes)
{
	must_obj(s, STREAM_MAGIC);
	return s->dialect->stream->feed(s, bytes);
}

enum err stream_end(struct stream *s, enum stream_ending ending, struct sampling_result *result,
		    struct provider_failure *failure)
{
	must_obj(s, STREAM_MAGIC);
	s->magic = 0;
	arena_give(&s->room->large); /* of an event that did not come to its end */
	return s->dialect->stream->end(s, ending, result, failure);
}
