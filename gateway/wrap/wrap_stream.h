/* wrap_stream.h - the two halves of a pipe, terminal or socket on a loop of libevent's.
 *
 * Standard input and output may be shared with other processes (2>&1, a terminal), and O_NONBLOCK would be theirs as
 * well. So it is not set here: nothing is read or written without poll(2) having said that it is possible, and no more
 * is written at once than a pipe takes without blocking. */
#ifndef GATEWAY_WRAP_WRAP_STREAM_H
#define GATEWAY_WRAP_WRAP_STREAM_H

#include "gateway/wrap/wrap_lines.h"

struct event;
struct event_base;
struct evbuffer;

/* ---- reading ---- */

struct wrap_reader {
	int fd; /* -1: its end was reached */
	struct event *event;
	struct wrap_lines lines;
	bool paused;
	wrap_line_fn *line;
	void (*end)(void *arg); /* after the last line; an error is an end, too */
	void *arg;
};

/* `fd` is closed at its end. The rest of *reader is set by the caller. */
void wrap_reader_start(struct wrap_reader *reader, struct event_base *base);
void wrap_reader_pause(struct wrap_reader *reader, bool pause);
/* Without a call of `end`. */
void wrap_reader_stop(struct wrap_reader *reader);

/* ---- writing ---- */

struct wrap_writer {
	int fd; /* -1: closed, what is written is dropped */
	struct event *event;
	struct evbuffer *queue;
	struct evbuffer *behind;  /* comes behind a line that is put in pieces */
	bool in_line;             /* such a line has no end so far */
	bool closing;             /* as soon as the queue is empty */
	void (*moved)(void *arg); /* some of the queue has gone out */
	void (*gone)(void *arg);  /* nobody reads at the other end */
	void *arg;
};

/* `fd` is closed at its end. The rest of *writer is set by the caller. */
void wrap_writer_start(struct wrap_writer *writer, struct event_base *base);
void wrap_writer_put(struct wrap_writer *writer, struct slice bytes);
/* A piece of a line, which ends with its line feed: until then what is put stays behind it. */
void wrap_writer_put_piece(struct wrap_writer *writer, struct slice bytes);
/* Bytes that have not gone out. */
size_t wrap_writer_waiting(const struct wrap_writer *writer);
/* Closes behind what waits. */
void wrap_writer_end(struct wrap_writer *writer);
/* Closes now. */
void wrap_writer_stop(struct wrap_writer *writer);

#endif
