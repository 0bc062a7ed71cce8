/* stream_private.c - what goes back to the provider (replay.h), kept while a stream comes in.
 *
 * It is worth less than the answer: what cannot be kept costs no more than itself. */
#include "codec/base/must.h"
#include "codec/dialect/replay.h"
#include "codec/dialect/stream_parts.h"

static void lose(struct stream *s)
{
	s->private_lost = true;
}

/* Whether `len` more bytes may be kept. */
static bool spend(struct stream *s, size_t len)
{
	if (s->private_lost || len > REPLAY_CONTENT_MAX - s->private_kept) {
		lose(s);
		return false;
	}
	s->private_kept += len;
	return true;
}

struct stream_extra *stream_extra_of(struct stream *s, uint32_t at)
{
	struct stream_block *block = &s->blocks[at];

	if (block->extra == NULL && spend(s, sizeof(*block->extra)))
		block->extra = arena_zero(s->answer.into, sizeof(*block->extra));
	if (block->extra == NULL)
		lose(s);
	return block->extra;
}

void *stream_private_take(struct stream *s, size_t len, size_t later)
{
	void *room = spend(s, len + later) ? arena_take(s->answer.into, len) : NULL;

	if (room == NULL)
		lose(s);
	return room;
}

void stream_private_copy(struct stream *s, struct slice raw, struct slice *out)
{
	if (stream_halves_inside(s, raw))
		lose(s);
	if (!spend(s, raw.len))
		return;
	*out = arena_copy(s->answer.into, raw);
	if (slice_absent(*out))
		lose(s);
}

bool stream_private_add(struct stream *s, struct stream_text *text, struct slice raw)
{
	bool front = false, back = false;

	if (raw.len == 0 || !spend(s, raw.len))
		return true;
	if (s->half_count != 0)
		stream_halves_take(s, raw, &front, &back);
	if (front != text->half)
		lose(s);
	text->half = back;
	return stream_text_put(s, text, raw);
}

/* ---- the end ---- */

static bool has_half(const struct stream *s)
{
	for (uint32_t i = 0; i < s->block_count; i++)
		if (s->blocks[i].kind == STREAM_PRIVATE && s->blocks[i].text.half)
			return true;
	return stream_details_have_half(s);
}

/* Whether the server is told of all calls, with at least one. */
static bool all_calls(const struct stream *s, const struct sampling_result *result)
{
	uint32_t calls = 0, told = 0;

	for (uint32_t i = 0; i < s->block_count; i++)
		calls += s->blocks[i].kind == STREAM_CALL;
	for (uint32_t i = 0; i < result->block_count; i++)
		told += result->blocks[i].is_tool_use;
	return calls == told && told != 0;
}

void stream_private_end(struct stream *s, struct sampling_result *result)
{
	must(s->answer.private);
	if (!s->private_lost && !has_half(s) && !s->answer.unkeepable && all_calls(s, result))
		s->dialect->stream->replay(s, result);
	result->replay = s->answer.replay;
	result->replay_lost = slice_absent(result->replay);
}

void stream_private_done(struct stream *s, struct gather *g)
{
	if (gather_done(g) == ERR_OK)
		s->answer.replay = gather_flat(g, s->answer.into);
}
