#include "codec/api/api_stream.h"

#include "codec/api/api_event.h"
#include "codec/base/must.h"

enum {
	KEEP_STEP = 1024, /* bytes of a read that are looked at for the rest of an event */
	BUFFER_FIRST = 4096,
};

void api_stream_init(struct api_stream *s, enum api api, struct slice model, bool usage_asked,
		     size_t event_bytes_max, struct arena *into)
{
	*s = (struct api_stream){ .api = api,
				  .model = model,
				  .usage_asked = usage_asked,
				  .event_bytes_max = event_bytes_max,
				  .into = into };
	sse_cut_init(&s->cut);
}

struct slice api_stream_last(enum api api)
{
	return api_is_anthropic(api)
		       ? SLICE("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
		       : SLICE("data: [DONE]\n\n");
}

struct slice api_stream_ping(enum api api)
{
	return api_is_anthropic(api) ? SLICE("event: ping\ndata: {\"type\": \"ping\"}\n\n")
				     : SLICE(": ping\n\n");
}

void api_stream_feed(struct api_stream *s, struct slice bytes)
{
	must(s->over || s->fed.len == 0);
	s->fed = bytes;
}

/* ---- buffers ---- */

static bool make_room(struct api_stream *s, struct api_buffer *buffer, size_t size)
{
	size_t fresh = buffer->size == 0 ? BUFFER_FIRST : buffer->size;

	if (size <= buffer->size)
		return true;
	while (fresh < size)
		fresh *= 2;
	char *at = arena_take(s->into, fresh);
	if (at == NULL)
		return false;
	if (buffer->len != 0)
		(void)memcpy(at, buffer->at, buffer->len);
	buffer->at = at;
	buffer->size = fresh;
	return true;
}

/* The first `len` bytes fed go to the front of an event. */
static bool keep(struct api_stream *s, size_t len)
{
	struct api_buffer *kept = &s->kept;

	if (kept->len + len > s->event_bytes_max || !make_room(s, kept, kept->len + len))
		return false;
	(void)memcpy(kept->at + kept->len, s->fed.at, len);
	kept->len += len;
	s->fed = slice_of(s->fed.at + len, s->fed.len - len);
	return true;
}

/* ---- events ---- */

/* Of `text`: one look, again with more memory where lines of data have to be joined. */
static enum sse_cut_got cut(struct api_stream *s, struct slice text, struct sse_cut_piece *event)
{
	for (;;) {
		struct api_buffer *joined = &s->joined;
		struct arena lines;
		arena_init_in(&lines, s->into->pool,
			      joined->size == 0 ? 0 : joined->size - POISON_FENCE, joined->at,
			      joined->size);
		const enum sse_cut_got got = sse_cut_next(&s->cut, text, &lines, event);
		if (got != SSE_CUT_FULL || joined->size > s->event_bytes_max ||
		    !make_room(s, joined, joined->size + 1))
			return got;
	}
}

/* What stands behind the event in the buffer is in the bytes fed, too: it came with the last step. */
static void give_back(struct api_stream *s, size_t used)
{
	const size_t rest = s->kept.len - used;

	s->fed = slice_of(s->fed.at - rest, s->fed.len + rest);
	s->kept.len = s->given = used;
}

/* The next event; NOTHING: all that was fed is used up; FULL: no memory, or it is too large. */
static enum sse_cut_got next_event(struct api_stream *s, struct sse_cut_piece *event)
{
	if (s->kept.len == 0) {
		const enum sse_cut_got got = cut(s, s->fed, event);
		if (got == SSE_CUT_NOTHING)
			return keep(s, s->fed.len) ? got : SSE_CUT_FULL;
		if (got != SSE_CUT_FULL)
			s->fed = slice_of(s->fed.at + event->raw.len, s->fed.len - event->raw.len);
		return got;
	}
	while (s->fed.len != 0) {
		if (!keep(s, s->fed.len < KEEP_STEP ? s->fed.len : KEEP_STEP))
			return SSE_CUT_FULL;
		const enum sse_cut_got got = cut(s, slice_of(s->kept.at, s->kept.len), event);
		if (got == SSE_CUT_NOTHING)
			continue;
		if (got != SSE_CUT_FULL)
			give_back(s, event->raw.len);
		return got;
	}
	return SSE_CUT_NOTHING;
}

static enum api_stream_got end(struct api_stream *s, enum api_stream_got got)
{
	s->over = true;
	return got;
}

/* NOTHING: the event is dropped. */
static enum api_stream_got take_event(struct api_stream *s, const struct sse_cut_piece *event,
				      struct slice *piece)
{
	mcp_edits_init(&s->edits, event->raw, s->into);
	const enum api_event what = api_event_read(s, event);
	s->dropped = what == API_EVENT_DROP;
	*piece = event->raw;
	switch (what) {
	case API_EVENT_PASS:
		break;
	case API_EVENT_DROP:
		return API_STREAM_NOTHING;
	case API_EVENT_LAST:
		return end(s, API_STREAM_END);
	case API_EVENT_ERROR:
		return end(s, API_STREAM_ERROR);
	case API_EVENT_BROKEN:
		return end(s, API_STREAM_BROKEN);
	}
	s->begun |= !slice_absent(event->data);
	s->editing = s->edits.count != 0;
	s->edit_at = 0;
	return !s->editing || mcp_edits_next(&s->edits, &s->edit_at, piece) ? API_STREAM_PIECE
									    : API_STREAM_NOTHING;
}

enum api_stream_got api_stream_next(struct api_stream *s, struct slice *piece)
{
	struct sse_cut_piece event;

	if (s->editing && mcp_edits_next(&s->edits, &s->edit_at, piece))
		return API_STREAM_PIECE;
	s->editing = false;
	for (;;) {
		s->kept.len -= s->given;
		s->given = 0;
		if (s->over || s->fed.len == 0)
			return API_STREAM_NOTHING;
		const enum sse_cut_got got = next_event(s, &event);
		if (got == SSE_CUT_NOTHING)
			return API_STREAM_NOTHING;
		if (got == SSE_CUT_FULL)
			return end(s, API_STREAM_FULL);
		if (got == SSE_CUT_TAIL) {
			*piece = event.raw;
			if (s->dropped)
				continue;
			return API_STREAM_PIECE;
		}
		const enum api_stream_got taken = take_event(s, &event, piece);
		if (taken != API_STREAM_NOTHING)
			return taken;
	}
}
