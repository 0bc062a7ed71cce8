/* direct_stream.c - a provider's event stream on its way to the caller.
 *
 * Events leave as they come. While a piece has not left, the next ones wait in a buffer; where that is large the caller
 * does not keep up, and nothing more is read for it. */
#include "gateway/front/api/direct.h"

#include "codec/base/must.h"

/* Clients give up on a stream that says nothing for long; the contract has something every 15 s. */
#define PING_AFTER (12 * SEC)

/* A piece grows by doubling; the first one fits into a chunk of the arena's. */
enum { WAITING_MAX = 32 << 10, PIECE_FIRST = ARENA_CHUNK_BYTES - 128 };

static void piece_begin(struct direct_piece *piece, struct arena_pool *arenas)
{
	arena_init(&piece->room, arenas, REQUEST_ARENA_MAX);
	piece->at = NULL;
	piece->len = piece->size = 0;
}

static void piece_free(struct direct_piece *piece)
{
	arena_give(&piece->room);
	piece->at = NULL;
	piece->len = piece->size = 0;
}

/* Room for `needed` bytes. False: no memory, and it is as before. */
static bool piece_grow(struct direct_piece *piece, size_t needed)
{
	struct arena room;
	size_t size = piece->size == 0 ? PIECE_FIRST : piece->size * 2;

	while (size < needed)
		size *= 2;
	arena_init(&room, piece->room.pool, REQUEST_ARENA_MAX);
	char *at = arena_take(&room, size);
	if (at == NULL)
		return false;
	if (piece->len != 0)
		(void)memcpy(at, piece->at, piece->len);
	arena_give(&piece->room);
	*piece = (struct direct_piece){ .room = room, .at = at, .len = piece->len, .size = size };
	return true;
}

static void begin(struct direct_call *call)
{
	const struct api_request *request = &call->asked->request;
	struct direct_stream *s = call->stream;

	s->call = call;
	piece_begin(&s->filling, call->host->arenas);
	piece_begin(&s->sending, call->host->arenas);
	api_stream_init(&s->events, call->api, request->at[API_MODEL].text, request->usage_asked,
			STREAM_EVENT_MAX, &call->arena);
	s->events.choices = request->n;
	if (call->asked->paid != NULL)
		s->events.paid = &call->asked->paid->seen;
}

bool direct_stream_init(struct direct_call *call)
{
	call->stream = arena_zero(&call->arena, sizeof(*call->stream));
	if (call->stream == NULL)
		return false;
	begin(call);
	return true;
}

void direct_stream_restart(struct direct_call *call)
{
	must(!call->stream->begun && !call->stream->unsent);
	direct_stream_free(call);
	*call->stream = (struct direct_stream){ .call = NULL };
	begin(call);
}

/* False: no memory. */
static bool add(struct direct_call *call, struct slice bytes)
{
	struct direct_piece *to = &call->stream->filling;

	if (to->len + bytes.len > to->size && !piece_grow(to, to->len + bytes.len))
		return false;
	(void)memcpy(to->at + to->len, bytes.at, bytes.len);
	to->len += bytes.len;
	return true;
}

static void on_silence(struct net_timer *timer);

static void ping_at(struct direct_stream *s, nsec_t due)
{
	s->ping.fire = on_silence;
	net_timer_set(s->call->host->loop, &s->ping, due);
}

static void begin_pings(struct direct_stream *s)
{
	ping_at(s, s->sent_at + PING_AFTER);
}

/* An answer begins with an event: comments and the like in front of it wait, so that another attempt may still follow. */
static bool may_begin(const struct direct_stream *s)
{
	return s->begun || s->events.begun || s->cross != NULL || s->filling.len > WAITING_MAX;
}

/* What waits is sent, unless something is on its way. */
static void flush(struct direct_call *call)
{
	struct direct_stream *s = call->stream;
	const struct direct_answer *answer = &call->answer;

	if (s->unsent || s->filling.len == 0 || !may_begin(s))
		return;
	const struct direct_piece next = s->sending; /* empty */
	s->sending = s->filling;
	s->filling = next;
	s->unsent = true;
	s->sent_at = net_now(call->host->loop);
	const struct slice piece = slice_of(s->sending.at, s->sending.len);
	if (s->begun) {
		http_more(call->exchange, piece);
		return;
	}
	s->begun = true;
	begin_pings(s);
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

/* Between two events: what is not whole yet has not left. A caller that has not taken what was said is not told more. */
static void on_silence(struct net_timer *timer)
{
	struct direct_stream *s = CONTAINER_OF(timer, struct direct_stream, ping);
	const nsec_t now = net_now(s->call->host->loop);

	must_obj(s->call, DIRECT_MAGIC);
	if (!s->unsent && !s->broken && now - s->sent_at >= PING_AFTER &&
	    add(s->call, api_stream_ping(s->call->api)))
		flush(s->call);
	ping_at(s, (now - s->sent_at >= PING_AFTER ? now : s->sent_at) + PING_AFTER);
}

void direct_stream_over(struct direct_call *call)
{
	if (call->stream != NULL && call->stream->ping.place != 0)
		net_timer_stop(call->host->loop, &call->stream->ping);
}

/* A copy of the event that ends the stream. It is known as such by its last carriage return: where lines end in both, the line
 * feed may be missing that comes with the next read. Absent: no memory. */
static struct slice keep_last(struct direct_call *call, struct slice event)
{
	const bool both = memmem(event.at, event.len, "\r\n", 2) != NULL;
	char *at = arena_take(&call->arena, event.len + 1);

	if (at == NULL)
		return slice_of(NULL, 0);
	(void)memcpy(at, event.at, event.len);
	at[event.len] = '\n';
	return slice_of(at, event.len + (both && event.at[event.len - 1] == '\r'));
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
		s->last = keep_last(call, piece);
		s->broken = slice_absent(s->last);
		return false;
	case API_STREAM_NOTHING:
		return false;
	case API_STREAM_ERROR:
		s->error = arena_copy(&call->arena,
				      piece); /* without memory it is told in our words */
		break;
	case API_STREAM_BROKEN:
	case API_STREAM_FULL:
		break;
	}
	s->broken = true;
	return false;
}

bool direct_stream_take(void *owner, struct slice bytes, nsec_t now)
{
	struct direct_call *call = owner;
	struct direct_stream *s = call->stream;
	struct slice piece = { NULL, 0 };

	(void)now;
	must(s != NULL);
	if (s->broken)
		return s->begun;
	api_stream_feed(&s->events, bytes);
	while (take_piece(call, api_stream_next(&s->events, &piece), piece))
		continue;
	send_on(call);
	return s->begun;
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

	if (outcome->end != SAMPLING_RESULT) {
		const struct slice own = direct_own_event(call, outcome->fault.err);
		return slice_absent(own) ? direct_error_event(call, &outcome->fault, &outcome->data)
					 : own;
	}
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
	direct_stream_over(call);
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
	piece_free(&s->sending);
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

void direct_stream_free(struct direct_call *call)
{
	if (call->stream == NULL)
		return;
	piece_free(&call->stream->filling);
	piece_free(&call->stream->sending);
}
