/* direct_stream.c - a provider's event stream on its way to the caller.
 *
 * Events leave as they come. While a piece has not left, the next ones wait in a buffer; where that is large the caller
 * does not keep up, and nothing more is read for it. */
#include "gateway/front/api/direct.h"

#include "codec/base/must.h"

enum { WAITING_MAX = 64 << 10, BUFFER_FIRST = 4096 };

bool direct_stream_init(struct direct_call *call)
{
	const struct api_request *request = &call->asked->request;
	struct direct_stream *s = arena_zero(&call->arena, sizeof(*s));

	if (s == NULL)
		return false;
	api_stream_init(&s->events, call->api, request->at[API_MODEL].text, request->usage_asked,
			STREAM_EVENT_MAX, &call->arena);
	s->events.choices = request->n;
	if (call->asked->paid != NULL)
		s->events.paid = &call->asked->paid->seen;
	call->stream = s;
	return true;
}

/* False: no memory. */
static bool add(struct direct_call *call, struct slice bytes)
{
	struct api_buffer *to = &call->stream->filling;

	if (to->len + bytes.len > to->size) {
		size_t size = to->size == 0 ? BUFFER_FIRST : to->size;
		while (size < to->len + bytes.len)
			size *= 2;
		char *at = arena_take(&call->arena, size);
		if (at == NULL)
			return false;
		if (to->len != 0)
			(void)memcpy(at, to->at, to->len);
		to->at = at;
		to->size = size;
	}
	(void)memcpy(to->at + to->len, bytes.at, bytes.len);
	to->len += bytes.len;
	return true;
}

/* What waits is sent, unless something is on its way. */
static void flush(struct direct_call *call)
{
	struct direct_stream *s = call->stream;
	const struct direct_answer *answer = &call->answer;

	if (s->unsent || s->filling.len == 0)
		return;
	const struct api_buffer next = s->sending;
	s->sending = s->filling;
	s->filling = next;
	s->filling.len = 0;
	s->unsent = true;
	const struct slice piece = slice_of(s->sending.at, s->sending.len);
	if (s->begun) {
		http_more(call->exchange, piece);
		return;
	}
	s->begun = true;
	direct_write_stream_head(call);
	http_begin_pieces(call->exchange, answer->status, answer->fields, answer->field_count,
			  piece);
}

/* A caller that does not keep up lets the provider wait. */
static void send_on(struct direct_call *call)
{
	struct direct_stream *s = call->stream;

	flush(call);
	if (s->filling.len > WAITING_MAX && !s->paused) {
		s->paused = true;
		sampling_pause(call->call);
	}
}

/* The piece of api_stream_next; false: nothing more of this read is passed on. */
static bool take_piece(struct direct_call *call, enum api_stream_got got, struct slice piece)
{
	struct direct_stream *s = call->stream;

	switch (got) {
	case API_STREAM_PIECE:
		s->broken = !add(call, piece);
		return !s->broken;
	case API_STREAM_END:
		s->last = arena_copy(&call->arena, piece);
		s->broken = slice_absent(s->last);
		return false;
	case API_STREAM_NOTHING:
		return false;
	case API_STREAM_ERROR:
	case API_STREAM_BROKEN:
	case API_STREAM_FULL:
		break;
	}
	s->broken = true;
	return false;
}

void direct_stream_take(void *owner, struct slice bytes, nsec_t now)
{
	struct direct_call *call = owner;
	struct direct_stream *s = call->stream;
	struct slice piece = { NULL, 0 };

	(void)now;
	must(s != NULL);
	if (s->broken)
		return;
	api_stream_feed(&s->events, bytes);
	while (take_piece(call, api_stream_next(&s->events, &piece), piece))
		continue;
	send_on(call);
}

void direct_stream_add(struct direct_call *call, const struct gather *events)
{
	for (uint32_t i = 0; i < events->count && !call->stream->broken; i++)
		call->stream->broken =
			!add(call, slice_of(events->v[i].iov_base, events->v[i].iov_len));
	send_on(call);
}

static void end(struct direct_call *call)
{
	const struct slice rest = slice_of(call->stream->filling.at, call->stream->filling.len);
	const struct iovec v = { (void *)(uintptr_t)rest.at, rest.len };

	http_end(call->exchange, &v, rest.len == 0 ? 0 : 1, rest.len);
}

/* The event that the stream ends with; absent: it has to be cut. */
static struct slice last_of(struct direct_call *call, const struct sampling_outcome *outcome)
{
	const struct direct_stream *s = call->stream;
	const struct fault broken = { .err = ERR_PROVIDER_ANSWER, .offset = FAULT_NO_OFFSET };

	if (outcome->end != SAMPLING_RESULT)
		return direct_error_event(call, &outcome->fault, &outcome->data);
	if (s->cross != NULL && !s->broken)
		return direct_cross_end(call, outcome);
	if (s->broken || !api_stream_has_reason(&s->events))
		return direct_error_event(call, &broken, NULL);
	return slice_absent(s->last) ? api_stream_last(call->api) : s->last;
}

void direct_stream_end(struct direct_call *call, const struct sampling_outcome *outcome)
{
	struct direct_stream *s = call->stream;
	const struct slice last = last_of(call, outcome);

	s->ended = true;
	if (slice_absent(last) || !add(call, last)) {
		http_cut(call->exchange); /* no memory for as much as an end */
		return;
	}
	if (!s->unsent)
		end(call);
}

void direct_stream_ready(struct direct_call *call)
{
	struct direct_stream *s = call->stream;

	s->unsent = false;
	if (s->ended) {
		end(call);
		return;
	}
	flush(call);
	if (s->paused) {
		s->paused = false;
		sampling_resume(call->call);
	}
}
