/* sse_cut.h - cuts an event stream (WHATWG HTML 9.2.5 and 9.2.6) into its events without changing a byte.
 *
 * sse.h gives the meaning of events to one that consumes them. A proxy passes most of them on as they came, so it needs
 * the bytes of each: all bytes that are given out, in order, are the stream.
 *
 * The bytes stay with the caller, in one piece: what belongs to the unfinished event, and what was read behind it. The
 * cutter keeps offsets only, so that buffer may move and grow between calls. Nothing is scanned twice, however the bytes
 * arrive. There is no bound here: a caller ends a stream whose unfinished event is too large.
 *
 *   sse_cut_init(&cut);
 *   for each read: put it behind the `kept` bytes
 *     while ((got = sse_cut_next(&cut, kept, arena, &piece)) is a piece)
 *       pass on or swallow piece.raw, which is the front of `kept`; drop it from `kept`
 *   at the end of the stream: `kept` is an event that no blank line closes. It is not one for its reader.
 */
#ifndef CODEC_SSE_SSE_CUT_H
#define CODEC_SSE_SSE_CUT_H

#include "codec/base/arena.h"
#include "codec/base/attr.h"
#include "codec/base/slice.h"

enum sse_cut_got {
	SSE_CUT_NOTHING, /* more bytes are needed behind these */
	/* A whole event with its blank line. Also: fields without data (`id`, `retry`), a comment line in front of an
	 * event, a blank line for itself, the stream's byte order mark. These have no data, and a reader dispatches nothing. */
	SSE_CUT_EVENT,
	/* A line feed that belongs to the carriage return that ended the event before: it goes where that went. */
	SSE_CUT_TAIL,
	SSE_CUT_PART, /* of an event that passes (sse_cut_pass), not its end */
	SSE_CUT_LAST, /* its end */
	SSE_CUT_FULL, /* no memory to join its lines of data; the same call with more gives the event */
};

struct sse_cut_piece {
	struct slice raw; /* never empty */
	/* Of SSE_CUT_EVENT: the lines of data joined by line feeds; one line is a part of raw, several are in the arena.
	 * Absent: there is none. */
	struct slice data;
	struct slice name; /* `event`, the last one; absent: none */
	struct slice id;   /* the last one without NUL; may be empty; absent: none in these bytes */
	bool retries;
	uint64_t retry_ms; /* if `retries`: the last one that is a number */
};

struct sse_cut {
	/* private: offsets are from the first byte kept */
	size_t seen; /* scanned for line ends */
	size_t line; /* where the unfinished line begins */
	struct sse_cut_range {
		size_t at, len;
	} data, name, id; /* of data: the first line */
	size_t data_lines, data_bytes;
	bool has_name, has_id, retries;
	uint64_t retry_ms;
	bool begun;    /* the first line of the stream is over: no byte order mark can come */
	bool after_cr; /* a line feed at `seen` belongs to the line before */
	bool passing;  /* sse_cut_pass */
	bool in_data; /* passing, and the unfinished line is one of data whose front was given out */
	/* of sse_cut_peek */
	size_t peeked;
	size_t peek_lines;
	bool peeking; /* within a line of data */
};

/* Of a new stream. */
void sse_cut_init(struct sse_cut *cut);

/* `kept`: what was fed and is not given out, beginning with the first byte of the unfinished event. After a piece the
 * caller drops piece->raw.len bytes from its front and calls again, until SSE_CUT_NOTHING. The piece's slices are parts
 * of `kept`, its data perhaps of `into`. */
MUST_USE enum sse_cut_got sse_cut_next(struct sse_cut *cut, struct slice kept, struct arena *into,
				       struct sse_cut_piece *piece);

/* After SSE_CUT_NOTHING: the next bytes of the unfinished event's data, each given once, lines joined by line feeds:
 * what an mcp_sniff is fed with. False: there are no more so far, or the event passes. `kept` as in the last call of
 * sse_cut_next. */
MUST_USE bool sse_cut_peek(struct sse_cut *cut, struct slice kept, struct slice *piece);

/* After SSE_CUT_NOTHING: the unfinished event passes. sse_cut_next, called with the same bytes, gives it out in parts
 * from now on. Unfinished lines that are not of data are kept until they end, so that their id is seen. */
void sse_cut_pass(struct sse_cut *cut);

#endif
