#include "gateway/wrap/wrap_stream.h"

#include "codec/base/must.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <limits.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_SIZE = 64 << 10 };

static bool is_passing(int error)
{
	return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void finish_reading(struct wrap_reader *reader)
{
	wrap_reader_stop(reader);
	wrap_lines_end(&reader->lines, reader->line, reader->arg);
	reader->end(reader->arg);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	static char bytes[READ_SIZE];
	struct wrap_reader *reader = arg;

	(void)what;
	ssize_t got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (got < 0 && errno == ENOTSOCK)
		got = read(fd, bytes, sizeof(bytes));
	if (got > 0)
		wrap_lines_feed(&reader->lines, slice_of(bytes, (size_t)got), WRAP_LINE_MAX,
				reader->line, reader->arg);
	else if (got == 0 || !is_passing(errno))
		finish_reading(reader);
}

void wrap_reader_start(struct wrap_reader *reader, struct event_base *base)
{
	reader->event = event_new(base, reader->fd, EV_READ | EV_PERSIST, on_readable, reader);
	must(reader->event != NULL && event_add(reader->event, NULL) == 0);
}

void wrap_reader_pause(struct wrap_reader *reader, bool pause)
{
	if (reader->fd < 0 || reader->paused == pause)
		return;
	reader->paused = pause;
	if (pause)
		(void)event_del(reader->event);
	else
		must(event_add(reader->event, NULL) == 0);
}

void wrap_reader_stop(struct wrap_reader *reader)
{
	if (reader->fd < 0)
		return;
	event_free(reader->event);
	(void)close(reader->fd);
	reader->fd = -1;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void fail_writing(struct wrap_writer *writer)
{
	wrap_writer_stop(writer);
	writer->gone(writer->arg);
}

static void after_writing(struct wrap_writer *writer)
{
	if (evbuffer_get_length(writer->queue) == 0) {
		(void)event_del(writer->event);
		if (writer->closing)
			wrap_writer_stop(writer);
	}
	writer->moved(writer->arg);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct wrap_writer *writer = arg;
	struct evbuffer_iovec first;

	(void)what;
	if (evbuffer_peek(writer->queue, -1, NULL, &first, 1) < 1)
		return;
	ssize_t put = send(fd, first.iov_base, first.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (put < 0 && errno == ENOTSOCK)
		put = write(fd, first.iov_base,
			    first.iov_len < PIPE_BUF ? first.iov_len : PIPE_BUF);
	if (put < 0 && is_passing(errno))
		return;
	if (put < 0) {
		fail_writing(writer);
		return;
	}
	(void)evbuffer_drain(writer->queue, (size_t)put);
	after_writing(writer);
}

void wrap_writer_start(struct wrap_writer *writer, struct event_base *base)
{
	writer->queue = evbuffer_new();
	writer->behind = evbuffer_new();
	writer->event = event_new(base, writer->fd, EV_WRITE | EV_PERSIST, on_writable, writer);
	must(writer->queue != NULL && writer->behind != NULL && writer->event != NULL);
}

void wrap_writer_put(struct wrap_writer *writer, struct slice bytes)
{
	if (writer->fd < 0 || writer->closing || bytes.len == 0)
		return;
	must(evbuffer_add(writer->in_line ? writer->behind : writer->queue, bytes.at, bytes.len) ==
	     0);
	if (!writer->in_line)
		must(event_add(writer->event, NULL) == 0);
}

void wrap_writer_put_piece(struct wrap_writer *writer, struct slice bytes)
{
	if (bytes.len == 0)
		return;
	writer->in_line = false;
	wrap_writer_put(writer, bytes);
	writer->in_line = bytes.at[bytes.len - 1] != '\n';
	if (writer->fd >= 0 && !writer->in_line)
		must(evbuffer_add_buffer(writer->queue, writer->behind) == 0);
}

size_t wrap_writer_waiting(const struct wrap_writer *writer)
{
	return writer->fd < 0
		       ? 0
		       : evbuffer_get_length(writer->queue) + evbuffer_get_length(writer->behind);
}

void wrap_writer_end(struct wrap_writer *writer)
{
	if (writer->fd < 0)
		return;
	writer->closing = true;
	if (evbuffer_get_length(writer->queue) == 0)
		wrap_writer_stop(writer);
}

void wrap_writer_stop(struct wrap_writer *writer)
{
	if (writer->fd < 0)
		return;
	event_free(writer->event);
	evbuffer_free(writer->queue);
	evbuffer_free(writer->behind);
	(void)close(writer->fd);
	writer->fd = -1;
}
