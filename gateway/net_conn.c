#include "gateway/net_conn.h"

#include "codec/base/must.h"
#include "gateway/net_bytes.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	CONN_MAGIC = 0x434f4e4e,
	LINE = 64,
	BATCH = 256,         /* connections that are told of at once */
	ROOM_MIN = 16 << 10, /* of a buffer that is not empty, to read into */
};

struct net_conn {
	/* What each event looks at, in one line. */
	uint32_t magic;
	int fd; /* -1: refused before there was a socket */
	bool opened, paused, closed;
	bool unread;  /* there may be more to read, which nobody will tell of again */
	bool last;    /* the peer sends no more: behind what is there, there is its end */
	bool blocked; /* bytes wait for the socket to take more */
	bool asked;   /* something was sent, and nothing has come since */
	bool heard;   /* something has come, ever */
	bool out_watched;
	uint8_t end; /* enum net_end */
	struct net_conns *conns;
	const struct net_conn_events *events;
	void *arg;
	struct tls_pipe *tls;    /* NULL: clear text */
	struct net_buffer *kept; /* NULL: no input but what conns->input has */
	bool connected;
	struct net_output out;
	const char *error;
	const char *failed;    /* why nothing can be sent any more; its end is told of later */
	struct net_task later; /* reads on, or tells of `failed` */
	struct net_conn *next_gone;
};

/* ---- the end ---- */

static void conn_free(struct net_conn *conn)
{
	tls_pipe_free(conn->tls);
	free(conn->kept);
	free(conn->out.own);
	conn->magic = 0;
	free(conn);
}

/* The last callback. */
static void conn_end(struct net_conn *conn, enum net_end end, const char *error)
{
	if (conn->end != NET_END_NONE)
		return;
	conn->end = (uint8_t)end;
	conn->error = error;
	conn->events->ended(conn, end, conn->arg);
}

/* Of those who may not call back now. */
static void conn_later(struct net_conn *conn)
{
	if (conn->later.prev == NULL)
		net_soon(conn->conns->loop, &conn->later);
}

/* What came before is read first: it may say why. */
static void conn_fail(struct net_conn *conn, const char *why)
{
	if (conn->failed == NULL)
		conn->failed = why;
	conn_later(conn);
}

/* See net_conns_poll. */
static void note_asked(struct net_conn *conn)
{
	struct net_conns *conns = conn->conns;

	if (!conn->asked)
		conns->asked++;
	conn->asked = true;
	conns->last_asked = conn;
}

static void note_heard(struct net_conn *conn)
{
	struct net_conns *conns = conn->conns;

	if (conn->asked)
		conns->asked--;
	conn->asked = false;
	conn->heard = true;
	if (conns->last_asked == conn)
		conns->last_asked = NULL;
}

void net_close(struct net_conn *conn)
{
	struct net_conns *conns = conn->conns;

	must_obj(conn, CONN_MAGIC);
	must(!conn->closed);
	if (conn->tls != NULL && conn->fd != -1 && conn->failed == NULL && !conn->out.busy)
		tls_pipe_close(conn->tls);
	if (conn->fd != -1)
		(void)close(conn->fd);
	net_task_cancel(&conn->later);
	note_heard(conn);
	if (conns->input.of == conn)
		conns->input.of = NULL;
	conn->closed = true;
	conn->next_gone = conns->gone;
	conns->gone = conn;
}

void net_conns_sweep(struct net_conns *conns)
{
	while (conns->gone != NULL) {
		struct net_conn *conn = conns->gone;
		conns->gone = conn->next_gone;
		conn_free(conn);
	}
}

/* ---- input ---- */

char *net_input(struct net_conn *conn, size_t *len)
{
	struct net_conns *conns = conn->conns;

	must_obj(conn, CONN_MAGIC);
	if (conns->input.of == conn) {
		*len = conns->input.end - conns->input.begin;
		return conns->plain + conns->input.begin;
	}
	*len = conn->kept == NULL ? 0 : conn->kept->end - conn->kept->begin;
	return conn->kept == NULL ? NULL : conn->kept->bytes + conn->kept->begin;
}

void net_consume(struct net_conn *conn, size_t len)
{
	struct net_conns *conns = conn->conns;

	must_obj(conn, CONN_MAGIC);
	if (len == 0)
		return;
	if (conns->input.of == conn) {
		must(len <= conns->input.end - conns->input.begin);
		conns->input.begin += len;
		return;
	}
	must(conn->kept != NULL && len <= conn->kept->end - conn->kept->begin);
	conn->kept->begin += len;
	if (conn->kept->begin == conn->kept->end) {
		free(conn->kept);
		conn->kept = NULL;
	}
}

struct net_buffer *net_take_input(struct net_conn *conn)
{
	struct net_conns *conns = conn->conns;
	struct net_buffer *taken = conn->kept;

	must_obj(conn, CONN_MAGIC);
	if (taken == NULL) {
		size_t len;
		const char *bytes = net_input(conn, &len);
		taken = net_buffer_of(bytes, len);
	}
	if (taken == NULL)
		return NULL;
	conn->kept = NULL;
	if (conns->input.of == conn)
		conns->input.of = NULL;
	return taken;
}

void net_limit_input(struct net_conn *conn, size_t bytes)
{
	must_obj(conn, CONN_MAGIC);
	const int size = (int)bytes; /* the kernel takes twice that; a refusal changes nothing */
	if (conn->fd != -1)
		(void)setsockopt(conn->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

/* ---- reading ---- */

/* Where `at_once` more bytes can go, behind what was kept; NULL: no memory. */
static char *input_room(struct net_conn *conn, size_t at_once, size_t *room)
{
	struct net_conns *conns = conn->conns;

	if (conn->kept == NULL) {
		must(conns->input.of == NULL || conns->input.of == conn);
		const size_t end = conns->input.of == conn ? conns->input.end : 0;
		*room = sizeof(conns->plain) - end;
		return conns->plain + end;
	}
	if (!net_buffer_reserve(&conn->kept, at_once))
		return NULL;
	*room = conn->kept->room - conn->kept->end;
	return conn->kept->bytes + conn->kept->end;
}

static void input_add(struct net_conn *conn, size_t len)
{
	struct net_conns *conns = conn->conns;

	if (conn->kept != NULL) {
		conn->kept->end += len;
	} else if (conns->input.of == conn) {
		conns->input.end += len;
	} else {
		conns->input.of = conn;
		conns->input.begin = 0;
		conns->input.end = len;
	}
}

/* The callback has returned: what it left becomes the connection's own. */
static void input_keep(struct net_conn *conn)
{
	struct net_conns *conns = conn->conns;
	size_t len;

	if (conns->input.of != conn)
		return;
	const char *bytes = net_input(conn, &len);
	conns->input.of = NULL;
	if (len == 0)
		return;
	conn->kept = net_buffer_of(bytes, len);
	if (conn->kept == NULL)
		conn_end(conn, NET_END_FAILED, "no memory for what it sent");
}

/* Tells of new bytes. False: the connection is closed. */
static bool conn_tell(struct net_conn *conn)
{
	if (conn->opened && conn->end == NET_END_NONE)
		conn->events->readable(conn, conn->arg);
	if (!conn->closed)
		input_keep(conn);
	return !conn->closed;
}

static bool conn_open(struct net_conn *conn)
{
	conn->opened = true;
	conn->events->opened(conn, conn->arg);
	return !conn->closed;
}

/* The peer has closed its side of the socket. */
static void conn_eof(struct net_conn *conn)
{
	if (conn->tls == NULL)
		conn_end(conn, NET_END_CLOSED, "closed by the peer");
	else
		conn_end(conn, NET_END_FAILED,
			 conn->opened ? "closed without close_notify" : "closed by the peer");
}

/* What TLS has to say of the end, if anything. */
static void conn_end_tls(struct net_conn *conn)
{
	if (tls_pipe_state(conn->tls) == TLS_PIPE_CLOSED)
		conn_end(conn, NET_END_CLOSED, "closed by the peer");
	else if (tls_pipe_state(conn->tls) == TLS_PIPE_BROKEN)
		conn_end(conn, conn->opened ? NET_END_FAILED : NET_END_TLS,
			 tls_pipe_why(conn->tls));
}

/* Records of TLS, `len` bytes of them in conns->raw. False: closed, or ended. */
static bool conn_unseal(struct net_conn *conn, size_t len)
{
	struct tls_pipe *tls = conn->tls;
	size_t got, room, all = 0;

	tls_pipe_feed(tls, conn->conns->raw, len);
	do {
		char *to = input_room(conn, len + TLS_RECORD - all, &room);
		if (to == NULL) {
			conn_end(conn, NET_END_FAILED, "no memory for what it sent");
			return false;
		}
		got = tls_pipe_read(tls, to, room);
		if (got != 0)
			input_add(conn, got);
		all += got;
	} while (got != 0);
	if (!conn->opened && tls_pipe_state(tls) == TLS_PIPE_OPEN && !conn_open(conn))
		return false;
	if (all != 0 && !conn_tell(conn))
		return false;
	conn_end_tls(conn);
	return !conn->closed && conn->end == NET_END_NONE;
}

/* Takes one read's worth. `more`: it filled the room, so that there may be more at once. False: closed,
 * ended, or nothing is there. */
static bool conn_take(struct net_conn *conn, bool *more)
{
	struct net_conns *conns = conn->conns;
	char *to = conns->raw;
	size_t room = sizeof(conns->raw);

	if (conn->tls == NULL)
		to = input_room(conn, ROOM_MIN, &room);
	if (to == NULL) {
		conn_end(conn, NET_END_FAILED, "no memory for what it sends");
		return false;
	}
	const ssize_t got = recv(conn->fd, to, room, 0);
	*more = got == (ssize_t)room || (got == -1 && errno == EINTR);
	if (got == 0)
		conn_eof(conn);
	else if (got == -1 && errno != EAGAIN && errno != EINTR)
		conn_end(conn, NET_END_FAILED, strerrordesc_np(errno));
	if (got <= 0)
		return *more;
	note_heard(conn);
	if (conn->tls != NULL)
		return conn_unseal(conn, (size_t)got);
	input_add(conn, (size_t)got);
	return conn_tell(conn);
}

static void conn_read(struct net_conn *conn)
{
	bool more;

	if (conn->paused) {
		conn->unread = true;
		return;
	}
	conn->unread = false;
	if (conn_take(conn, &more) && (more || conn->last)) {
		conn->unread = true;
		conn_later(conn);
	}
}

void net_pause(struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	conn->paused = true;
}

void net_resume(struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	conn->paused = false;
	if (conn->unread && conn->end == NET_END_NONE)
		conn_later(conn);
}

/* ---- writing ---- */

static uint32_t interest(bool out)
{
	return EPOLLIN | EPOLLRDHUP | EPOLLET | (out ? EPOLLOUT : 0);
}

static void watch_out(struct net_conn *conn, bool out)
{
	struct epoll_event events = { .events = interest(out), .data.ptr = conn };

	if (conn->out_watched == out)
		return;
	conn->out_watched = out;
	if (epoll_ctl(conn->conns->epoll, EPOLL_CTL_MOD, conn->fd, &events) != 0)
		conn_fail(conn, strerrordesc_np(errno));
}

/* The socket is full. */
static void conn_block(struct net_conn *conn)
{
	conn->blocked = true;
	watch_out(conn, true);
}

/* What the socket takes of it, for TLS. */
static size_t conn_send(void *owner, const char *bytes, size_t len)
{
	struct net_conn *conn = owner;
	ssize_t sent;

	if (conn->failed != NULL)
		return len; /* nobody will see it */
	do {
		sent = send(conn->fd, bytes, len, MSG_NOSIGNAL);
	} while (sent == -1 && errno == EINTR);
	if (sent == -1 && errno != EAGAIN) {
		conn_fail(conn, strerrordesc_np(errno));
		return len;
	}
	if (sent < (ssize_t)len)
		conn_block(conn);
	return sent == -1 ? 0 : (size_t)sent;
}

/* As much of the list as the socket takes, in records. True: all of it. */
static bool push_sealed(struct net_conn *conn)
{
	while (tls_pipe_flush(conn->tls) && conn->out.count != 0 && conn->failed == NULL) {
		char *record = conn->conns->record;
		const size_t len = net_output_flatten(&conn->out, record, TLS_RECORD);
		if (len != 0 && !tls_pipe_write(conn->tls, record, len))
			conn_fail(conn, tls_pipe_why(conn->tls));
	}
	return conn->out.count == 0 && tls_pipe_flush(conn->tls) && conn->failed == NULL;
}

/* The same in clear text; the list is not its own before a first attempt has taken it as it is. */
static bool push_clear(struct net_conn *conn)
{
	struct net_output *out = &conn->out;

	while (out->count != 0) {
		const int count = out->count < IOV_MAX ? (int)out->count : IOV_MAX;
		const ssize_t sent = writev(conn->fd, out->v, count);
		if (sent == -1 && errno == EINTR)
			continue;
		if (sent == -1 && errno == EAGAIN)
			conn_block(conn);
		else if (sent == -1)
			conn_fail(conn, strerrordesc_np(errno));
		if (sent == -1)
			return false;
		net_output_advance(out, (size_t)sent);
		if (out->count == 0)
			return true;
		if (!net_output_own(out)) {
			conn_fail(conn, "no memory to send the rest");
			return false;
		}
	}
	return true;
}

static bool conn_push(struct net_conn *conn)
{
	return conn->tls != NULL ? push_sealed(conn) : push_clear(conn);
}

bool net_write(struct net_conn *conn, const struct iovec *v, size_t count)
{
	must_obj(conn, CONN_MAGIC);
	must(conn->opened && conn->end == NET_END_NONE && !conn->out.busy);
	conn->out = (struct net_output){ .v = (struct iovec *)(uintptr_t)v,
					 .count = count,
					 .busy = true };
	note_asked(conn);
	if (conn->failed == NULL && conn_push(conn)) {
		net_output_done(&conn->out);
		if (conn->heard)
			watch_out(conn, false);
		return true;
	}
	if (!net_output_own(&conn->out))
		conn_fail(conn, "no memory to send the rest");
	return false;
}

bool net_writing(const struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	return conn->out.busy;
}

/* The socket takes bytes again. */
static void conn_write_on(struct net_conn *conn)
{
	if (conn->failed != NULL || (conn->tls != NULL && !tls_pipe_flush(conn->tls)))
		return;
	if (conn->out.busy && !conn_push(conn))
		return;
	conn->blocked = false;
	if (!conn->out.busy)
		return;
	net_output_done(&conn->out);
	conn->events->written(conn, conn->arg);
}

/* ---- opening ---- */

static void start_tls(struct net_conn *conn)
{
	tls_pipe_start(conn->tls);
	conn_end_tls(conn);
}

static void on_connected(struct net_conn *conn, uint32_t what)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error != 0) {
		conn_end(conn, NET_END_FAILED, strerrordesc_np(error));
		return;
	}
	if ((what & EPOLLOUT) == 0)
		return;
	conn->connected = true;
	if (conn->tls == NULL)
		(void)conn_open(conn);
	else
		start_tls(conn);
}

static void on_later(struct net_task *task)
{
	struct net_conn *conn = CONTAINER_OF(task, struct net_conn, later);

	if (conn->end != NET_END_NONE)
		return;
	conn->last = conn->last || conn->failed != NULL;
	if (conn->connected)
		conn_read(conn);
	if (!conn->closed && conn->failed != NULL && conn->later.prev == NULL)
		conn_end(conn, NET_END_FAILED, conn->failed);
}

static bool out_of_resources(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM ||
	       error == ENOSPC;
}

/* A socket that is connecting and known to the epoll, or -1 with *error. */
static int start_connect(struct net_conn *conn, const struct sockaddr *address, socklen_t len,
			 int *error)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd == -1) {
		*error = errno;
		return -1;
	}
	const int on = 1; /* fails on local sockets, which do not wait anyhow */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	struct epoll_event all = { .events = interest(true), .data.ptr = conn };
	if ((connect(fd, address, len) != 0 && errno != EINPROGRESS) ||
	    epoll_ctl(conn->conns->epoll, EPOLL_CTL_ADD, fd, &all) != 0) {
		*error = errno;
		(void)close(fd);
		return -1;
	}
	return fd;
}

struct net_conn *net_connect(struct net_loop *loop, const struct sockaddr *address, socklen_t len,
			     struct ssl_ctx_st *tls, const char *server_name,
			     const struct net_conn_events *events, void *arg)
{
	const size_t size = (sizeof(struct net_conn) + LINE - 1) / LINE * LINE;
	struct net_conn *conn = aligned_alloc(LINE, size);
	int error = 0;

	if (conn == NULL)
		return NULL;
	*conn = (struct net_conn){ .magic = CONN_MAGIC,
				   .fd = -1,
				   .out_watched = true,
				   .conns = net_loop_conns(loop),
				   .events = events,
				   .arg = arg,
				   .later.run = on_later,
				   .error = "" };
	if (tls != NULL) {
		conn->tls = tls_pipe_new(tls, server_name, conn_send, conn);
		if (conn->tls == NULL)
			goto no_resources;
	}
	conn->fd = start_connect(conn, address, len, &error);
	if (conn->fd == -1 && out_of_resources(error))
		goto no_resources;
	if (conn->fd == -1)
		conn_fail(conn, strerrordesc_np(error));
	return conn;
no_resources:
	conn_free(conn);
	return NULL;
}

void net_conn_set_arg(struct net_conn *conn, void *arg)
{
	must_obj(conn, CONN_MAGIC);
	conn->arg = arg;
}

const char *net_conn_error(const struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	return conn->error;
}

bool net_conn_resumed(const struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	return conn->tls != NULL && conn->opened && tls_pipe_resumed(conn->tls);
}

/* ---- all of them ---- */

bool net_conns_init(struct net_conns *conns, struct net_loop *loop)
{
	conns->loop = loop;
	conns->epoll = epoll_create1(EPOLL_CLOEXEC);
	return conns->epoll != -1;
}

void net_conns_fini(struct net_conns *conns)
{
	(void)close(conns->epoll);
}

/* One that an earlier callback of this batch closed is still there, and says so. */
static bool is_over(const struct net_conn *conn)
{
	return conn->closed || conn->end != NET_END_NONE;
}

static void conn_event(struct net_conn *conn, uint32_t what)
{
	must_obj(conn, CONN_MAGIC);
	if (is_over(conn))
		return;
	conn->last = conn->last || (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	if (!conn->connected)
		on_connected(conn, what);
	else if (conn->blocked && (what & EPOLLOUT) != 0)
		conn_write_on(conn);
	if (!is_over(conn) && conn->connected && (what & ~(uint32_t)EPOLLOUT) != 0)
		conn_read(conn);
}

/* Where just one answer is waited for, it is what came: no need to ask the epoll. If it was not, that says
 * what was; if it was not all, the epoll is still readable. (Only without EPOLLOUT among what is watched
 * does the kernel take back by itself that there is news of a connection that has been read.) */
static bool guess_right(struct net_conns *conns)
{
	struct net_conn *conn = conns->asked == 1 ? conns->last_asked : NULL;

	if (conn == NULL || is_over(conn) || conn->paused || conn->out_watched)
		return false;
	conn_read(conn);
	return conns->last_asked != conn;
}

void net_conns_poll(struct net_conns *conns)
{
	struct epoll_event events[BATCH];

	if (guess_right(conns))
		return;
	const int count = epoll_wait(conns->epoll, events, BATCH, 0);
	must(count >= 0 || errno == EINTR);
	for (int i = 0; i < count; i++)
		conn_event(events[i].data.ptr, events[i].events);
}
