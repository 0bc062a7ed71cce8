/* sse.h - splits an event stream into its events (WHATWG HTML 9.2.5 and 9.2.6), however its bytes were
 * cut into reads.
 *
 * Lines end in LF, CR LF or CR; a byte order mark in front, comments and fields that are not `event`
 * or `data` are dropped; several data lines are joined by a line feed; an event that no blank line
 * closes never was one. Nothing is scanned twice. An event whose lines came in one read is not
 * copied; what a read leaves unfinished is, into the caller's buffer, which is all the memory there
 * is. An event that does not fit it, whether it has to be kept or not, is for the caller to decide: it
 * gives a larger buffer (twice as large each time, so that every byte is copied about once), or passes
 * over the event and gets its front. So the same bytes give the same events however they were cut.
 * Comments may have any length.
 *
 *   sse_feed(&sse, bytes);
 *   while (sse_next(&sse, &event) == SSE_EVENT) ...
 */
#ifndef CODEC_SSE_SSE_H
#define CODEC_SSE_SSE_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

enum { SSE_EVENT_ROOM = 64 * 1024 }; /* the buffer that every stream has */

struct sse_event {
	struct slice name; /* the last `event` field; absent when there was none */
	struct slice data; /* may be empty, never absent */
};

enum sse_got {
	SSE_NOTHING, /* everything that was fed is used up */
	SSE_EVENT,
	/* The event and its unfinished line exceed the buffer: sse_move or sse_pass, then sse_next again. */
	SSE_FULL,
};

/* What is touched when events come whole and are known (sse_ahead, sse_skip) stands first: one line of the
 * cache. */
struct sse {
	/* private: */
	const char *at, *end;          /* of the bytes fed: not used up yet */
	const char *fed;               /* where they began */
	const char *window;            /* 64 of them, or fewer, of which; NULL: none yet */
	uint64_t line_ends;            /* bits: a line feed or a carriage return */
	const char *begin;             /* of the event, NULL when it began in bytes fed before */
	size_t line_len;               /* of the unfinished line */
	bool data_stored, name_stored; /* in the buffer already, not in the bytes fed */
	bool comment;                  /* the unfinished line is one: its bytes are dropped */
	bool after_cr;                 /* a line feed now would belong to the line end before */
	bool begun;                    /* the first line is over, so no byte order mark can come */
	bool given;             /* an event was handed out or skipped, the next one begins afresh */
	bool passing;           /* over the rest of an event that is too large */
	struct sse_event event; /* so far; means nothing once it was given */
	char *buffer; /* data from the front, then the unfinished line; the name at the very end */
	size_t size;
};

/* `buffer` is the caller's and lives as long as `sse`, or until sse_move; its `size`, at least 64 bytes,
 * bounds an event: data, name, its longest line and one byte. */
void sse_init(struct sse *sse, char *buffer, size_t size);

/* Another buffer from here on: after SSE_FULL a larger one, into which what is kept is copied; after an event
 * of any size, whose slices are not valid any more. The old one is the caller's again. */
void sse_move(struct sse *sse, char *buffer, size_t size);

/* After SSE_FULL: the event is not read. Of its data *event has the front: of its only line so far the first
 * 64th of the buffer's size, 1 KiB at most; or nothing. The rest is passed over. */
void sse_pass(struct sse *sse, struct sse_event *event);

/* The next bytes of the stream, borrowed until sse_next has answered SSE_NOTHING. What was
 * fed before must be used up. */
void sse_feed(struct sse *sse, struct slice bytes);

/* The next event; its slices live until the next call of either function. */
MUST_USE enum sse_got sse_next(struct sse *sse, struct sse_event *event);

/* ---- for callers that know an event when they see it ----
 *
 * What was handed out lay somewhere in the bytes fed; the same bytes again are the same event, which
 * need not be split into lines to be known. */

/* The event handed out last as it was written, its data a slice of it; absent when its end is not to be
 * seen yet, or its data did not lie in one line of one read. */
struct slice sse_written(const struct sse *sse);

/* What was fed and not used up yet, when an event begins there; else absent. */
struct slice sse_ahead(const struct sse *sse);

/* The next `len` bytes are one whole event, which would have fitted the buffer. */
void sse_skip(struct sse *sse, size_t len);

/* The event handed out last, its data moved into the buffer, where they may be written to. */
char *sse_writable(struct sse *sse, struct sse_event *event);

#endif
