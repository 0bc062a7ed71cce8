/* api_stream.h - a provider's event stream in the caller's own format, passed on event by event.
 *
 * Bytes go in as they come off the connection, cut anywhere; pieces of the caller's stream come out as soon as an event is
 * whole, each event as its author wrote it but for what is said here:
 *
 *   Messages   `model` of message_start is the caller's name for it
 *   Chat       `model` of every chunk likewise. A chunk without choices goes no further, unless it has the usage that the
 *              caller has asked for; a choice without a delta gets an empty one (Azure has both)
 *   both       the event of an error is not passed as it is: it is the provider's text (api_redact_event). Nor is what
 *              ends a stream that has no stop reason: such a stream is broken
 *
 *   api_stream_init(&s, ...);
 *   for each read:
 *     api_stream_feed(&s, bytes);
 *     while ((got = api_stream_next(&s, &piece)) == API_STREAM_PIECE)
 *             send(piece);
 *
 * What the answer costs is read from the same bytes by the core. A stream that ends before api_stream_is_over has to be
 * ended with an error, or cut (api_error.h): a clean end looks like a whole answer. */
#ifndef CODEC_API_API_STREAM_H
#define CODEC_API_API_STREAM_H

#include "codec/api/api_paid.h"
#include "codec/mcp/mcp_edit.h"
#include "codec/sse/sse_cut.h"

enum api_stream_got {
	API_STREAM_NOTHING, /* all that was fed is used up */
	API_STREAM_PIECE, /* the next bytes for the caller; they live until the next call of either function */
	/* The stream is whole: the piece is its last event (without a line feed that a read has cut off behind its last
	 * carriage return). It may be kept back until the core has said so, too. */
	API_STREAM_END,
	API_STREAM_ERROR, /* the provider has said that it failed: the piece is its event, which is its text */
	API_STREAM_BROKEN, /* it has ended without a stop reason; no piece */
	API_STREAM_FULL,   /* no memory, or an event is larger than event_bytes_max */
};

/* Bytes of an event that is not whole yet, or of one whose data stand in several lines. */
struct api_buffer {
	char *at;
	size_t len, size;
};

struct api_stream {
	struct api_paid *paid; /* what events say of the price is added here; NULL: nobody asks */
	/* private: */
	enum api api;
	struct slice model;
	bool usage_asked;
	bool stopped; /* the provider has said why it ends */
	bool over;    /* nothing is given out any more */
	/* not private: an event was given out, and not only comments and blank lines */
	bool begun;
	bool dropped; /* the last event: a line feed that belongs to it is dropped, too */
	bool editing; /* its pieces are given out */
	size_t event_bytes_max;
	struct slice fed; /* not used up yet */
	struct sse_cut cut;
	struct api_buffer kept;   /* the front of an event */
	size_t given;             /* bytes of `kept` that were given out and are not dropped yet */
	struct api_buffer joined; /* lines of data */
	struct arena *into;
	struct mcp_edits edits; /* of the event under way */
	size_t edit_at;
	uint64_t choices; /* not private: the answers that a Chat request asks for; 0, 1: one */
	uint64_t ended;   /* of these, a bit for each that has its reason */
};

/* `model`: JSON text of a string, what the caller gets as `model`. `usage_asked`: by the caller (api_request). Memory for
 * events that reads cut in two is taken from `into`: eight times `event_bytes_max` at most. Both are borrowed. */
void api_stream_init(struct api_stream *s, enum api api, struct slice model, bool usage_asked,
		     size_t event_bytes_max, struct arena *into);

/* The next bytes of the body, borrowed until api_stream_next has given NOTHING. What was fed before must be used up. */
void api_stream_feed(struct api_stream *s, struct slice bytes);

/* After anything but NOTHING and PIECE the stream is over: from then on NOTHING is given, whatever is fed. */
MUST_USE enum api_stream_got api_stream_next(struct api_stream *s, struct slice *piece);

/* Whether it has said why it ends, all of it: else what has come is no whole answer, whoever says so. */
static inline bool api_stream_has_reason(const struct api_stream *s)
{
	return s->stopped;
}

static inline bool api_stream_is_over(const struct api_stream *s)
{
	return s->over;
}

/* What says no more than that there is somebody: an event or a comment, static. */
struct slice api_stream_ping(enum api api);

/* The event that ends a stream, for one that the core has found whole although its host left that out; static. */
struct slice api_stream_last(enum api api);

#endif
