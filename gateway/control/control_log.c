#include "gateway/control/control_log.h"

#include "codec/base/must.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* O_NONBLOCK belongs to the open file, which stdout shares with whoever started us; so it is never
 * set on stdout itself. */
enum way {
	WAY_OWN,    /* opened again for ourselves, non-blocking: pipes, terminals */
	WAY_SOCKET, /* MSG_DONTWAIT */
	WAY_POLL,   /* as it is: asks before each small piece */
	WAY_FILE,   /* as it is: files take everything */
};

enum { PIECE_MAX = 65536 };

struct log_writer {
	int fd;
	enum way way;
	size_t piece_max;
	bool whole_lines; /* stderr is the same pipe: a piece must not be cut inside a line */
	bool broken;      /* said already that stdout refuses */
	bool mid_line;    /* the ring at `turn` must go on */
	uint32_t turn;
	uint32_t count;
	struct log_ring *const *rings;
	uint64_t lost;
	struct event *writable; /* NULL: never needed */
};

static void choose_way(struct log_writer *writer, int fd)
{
	struct stat out, err;
	char path[32];

	writer->fd = fd;
	writer->piece_max = PIECE_MAX;
	writer->way = WAY_POLL;
	if (fstat(fd, &out) != 0)
		return;
	if (S_ISREG(out.st_mode)) {
		writer->way = WAY_FILE;
	} else if (S_ISSOCK(out.st_mode)) {
		writer->way = WAY_SOCKET;
	} else {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		int own = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_APPEND);
		if (own >= 0) {
			writer->fd = own;
			writer->way = WAY_OWN;
		}
	}
	writer->whole_lines = fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
			      out.st_ino == err.st_ino;
	if (writer->way == WAY_POLL || writer->whole_lines)
		writer->piece_max = PIPE_BUF; /* written as a whole or not at all */
}

static ssize_t push(struct log_writer *writer, struct slice piece)
{
	struct pollfd ready = { .fd = writer->fd, .events = POLLOUT };

	if (writer->way == WAY_SOCKET)
		return send(writer->fd, piece.at, piece.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (writer->way == WAY_POLL && poll(&ready, 1, 0) == 0) {
		errno = EAGAIN;
		return -1;
	}
	return write(writer->fd, piece.at, piece.len);
}

/* What to write next of the ring at `turn`. */
static struct slice next_piece(struct log_writer *writer)
{
	struct slice text = log_ring_peek(writer->rings[writer->turn]);
	const char *newline;

	if (text.len <= writer->piece_max)
		return text;
	text.len = writer->piece_max;
	newline = writer->whole_lines ? memrchr(text.at, '\n', text.len) : NULL;
	if (newline != NULL)
		text.len = (size_t)(newline + 1 - text.at);
	return text;
}

static void wrote(struct log_writer *writer, struct slice piece, size_t len)
{
	writer->mid_line = piece.at[len - 1] != '\n';
	log_ring_read(writer->rings[writer->turn], len);
}

/* Stdout refuses for good (closed, disk full): what waits is lost, what comes is tried again. */
static void lose(struct log_writer *writer, int error)
{
	if (!writer->broken)
		(void)fprintf(stderr, "sluice: stdout: %s: log lines are lost\n", strerror(error));
	writer->broken = true;
	for (uint32_t i = 0; i < writer->count; i++) {
		struct slice text;
		while ((text = log_ring_peek(writer->rings[i])).len > 0) {
			for (size_t n = 0; n < text.len; n++)
				writer->lost += text.at[n] == '\n';
			log_ring_read(writer->rings[i], text.len);
		}
	}
	writer->mid_line = false;
}

/* False: the reader has to catch up first. */
static bool write_ring(struct log_writer *writer)
{
	struct slice piece;

	while ((piece = next_piece(writer)).len > 0) {
		ssize_t len = push(writer, piece);
		if (len > 0) {
			writer->broken = false;
			wrote(writer, piece, (size_t)len);
		} else if (len == 0 || errno == EAGAIN || errno == EWOULDBLOCK) {
			return false;
		} else if (errno != EINTR) {
			lose(writer, errno);
		}
	}
	return true;
}

static bool write_rings(struct log_writer *writer)
{
	for (uint32_t i = 0; i < writer->count; i++) {
		if (!write_ring(writer))
			return false;
		must(!writer->mid_line); /* rings hold whole lines */
		writer->turn = (writer->turn + 1) % writer->count;
	}
	return true;
}

void log_writer_run(struct log_writer *writer)
{
	if (!write_rings(writer) && writer->writable != NULL)
		(void)event_add(writer->writable, NULL);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	log_writer_run(arg);
}

struct log_writer *log_writer_new(struct event_base *base, int fd, struct log_ring *const *rings,
				  uint32_t count)
{
	struct log_writer *writer = calloc(1, sizeof(*writer));

	if (writer == NULL)
		return NULL;
	writer->rings = rings;
	writer->count = count;
	choose_way(writer, fd);
	if (writer->way != WAY_FILE) /* epoll takes no files, nor are they ever full */
		writer->writable = event_new(base, writer->fd, EV_WRITE, on_writable, writer);
	return writer;
}

static nsec_t now_ns(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (nsec_t)now.tv_sec * SEC + (nsec_t)now.tv_nsec;
}

void log_writer_finish(struct log_writer *writer, nsec_t patience)
{
	const nsec_t end = now_ns() + patience;
	struct pollfd ready = { .fd = writer->fd, .events = POLLOUT };

	while (!write_rings(writer)) {
		nsec_t now = now_ns();
		if (now >= end || poll(&ready, 1, (int)((end - now) / MSEC + 1)) <= 0)
			return;
	}
}

uint64_t log_writer_dropped(const struct log_writer *writer)
{
	uint64_t dropped = writer->lost;

	for (uint32_t i = 0; i < writer->count; i++)
		dropped += log_ring_dropped(writer->rings[i]);
	return dropped;
}
