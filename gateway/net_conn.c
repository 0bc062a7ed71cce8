#include "gateway/net_conn.h"

#include "gateway/net_conn_parts.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum {
	LINE = 64,
	BATCH = 256, /* connections that are told of at once */
	/* Of a batch, what the connections touch is asked for in steps, so many connections apart; the
	 * first is the connection itself. Fewer than FEW are not worth it. */
	APART = 2,
	AHEAD = (EXPECT_STEPS + 1) * APART,
	FEW = 4,
	GUESSES_MAX = 64, /* so many turns at most pass by what the epoll has to say */
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
void net_conn_end(struct net_conn *conn, enum net_end end, const char *error)
{
	if (conn->end != NET_END_NONE)
		return;
	conn->end = (uint8_t)end;
	conn->error = error;
	conn->events->ended(conn, end, conn->arg);
}

/* Of those who may not call back now. */
void net_conn_later(struct net_conn *conn)
{
	if (conn->later.prev == NULL)
		net_soon(conn->conns->loop, &conn->later);
}

/* What came before is read first: it may say why. */
void net_conn_fail(struct net_conn *conn, const char *why)
{
	if (conn->failed == NULL)
		conn->failed = why;
	net_conn_later(conn);
}

void net_close(struct net_conn *conn)
{
	struct net_conns *conns = conn->conns;

	must_obj(conn, NET_CONN_MAGIC);
	must(!conn->closed);
	if (conn->tls != NULL && conn->fd != -1 && conn->failed == NULL && !conn->out.busy)
		tls_pipe_close(conn->tls);
	if (conn->fd != -1)
		(void)close(conn->fd);
	net_task_cancel(&conn->later);
	net_conn_note_heard(conn);
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

/* ---- opening ---- */

uint32_t net_conn_interest(bool out)
{
	return EPOLLIN | EPOLLRDHUP | EPOLLET | (out ? EPOLLOUT : 0);
}

static void start_tls(struct net_conn *conn)
{
	tls_pipe_start(conn->tls);
	net_conn_end_tls(conn);
}

static void on_connected(struct net_conn *conn, uint32_t what)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error != 0) {
		net_conn_end(conn, NET_END_FAILED, strerrordesc_np(error));
		return;
	}
	if ((what & EPOLLOUT) == 0)
		return;
	conn->connected = true;
	if (conn->tls == NULL)
		(void)net_conn_open(conn);
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
		net_conn_read(conn);
	if (!conn->closed && conn->failed != NULL && !conn->paused && conn->later.prev == NULL)
		net_conn_end(conn, NET_END_FAILED, conn->failed);
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
	struct epoll_event all = { .events = net_conn_interest(true), .data.ptr = conn };
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
	*conn = (struct net_conn){ .magic = NET_CONN_MAGIC,
				   .fd = -1,
				   .out_watched = true,
				   .conns = net_loop_conns(loop),
				   .events = events,
				   .arg = arg,
				   .later.run = on_later,
				   .error = "" };
	if (tls != NULL) {
		conn->tls = tls_pipe_new(tls, server_name, net_conn_send, conn);
		if (conn->tls == NULL)
			goto no_resources;
	}
	conn->fd = start_connect(conn, address, len, &error);
	if (conn->fd == -1 && out_of_resources(error))
		goto no_resources;
	if (conn->fd == -1)
		net_conn_fail(conn, strerrordesc_np(error));
	return conn;
no_resources:
	conn_free(conn);
	return NULL;
}

const char *net_conn_error(const struct net_conn *conn)
{
	must_obj(conn, NET_CONN_MAGIC);
	return conn->error;
}

bool net_ending(const struct net_conn *conn)
{
	must_obj(conn, NET_CONN_MAGIC);
	return conn->last || conn->end != NET_END_NONE;
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
	must_obj(conn, NET_CONN_MAGIC);
	if (is_over(conn))
		return;
	conn->last = conn->last || (what & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0;
	if (!conn->connected)
		on_connected(conn, what);
	else if (conn->blocked && (what & EPOLLOUT) != 0)
		net_conn_write_on(conn);
	if (!is_over(conn) && conn->connected && (what & ~(uint32_t)EPOLLOUT) != 0)
		net_conn_read(conn);
}

/* Where just one answer is waited for, it is what came: no need to ask the epoll. If it was not, that says
 * what was; if it was not all, the epoll is still readable. (Only without EPOLLOUT among what is watched
 * does the kernel take back by itself that there is news of a connection that has been read.) */
static bool guess_right(struct net_conns *conns)
{
	struct net_conn *conn = conns->asked == 1 ? conns->last_asked : NULL;

	if (conn == NULL || is_over(conn) || conn->paused || conn->out_watched)
		return false;
	if (++conns->guesses % GUESSES_MAX == 0)
		return false;
	net_conn_read(conn);
	return conns->last_asked != conn;
}

/* Those behind connection `now` of the batch, which may still be before its first. */
static void look_ahead(const struct epoll_event *events, int count, int now)
{
	if (now + AHEAD < count)
		expect_lines(events[now + AHEAD].data.ptr, 1);
	for (int step = 0; step < EXPECT_STEPS; step++) {
		const int at = now + AHEAD - (step + 1) * APART;
		if (at < 0 || at >= count)
			continue;
		const struct net_conn *conn = events[at].data.ptr;
		if (!conn->closed && conn->events->expect != NULL)
			conn->events->expect(conn->arg, (enum expect)step);
	}
}

void net_conns_poll(struct net_conns *conns)
{
	struct epoll_event events[BATCH];

	if (guess_right(conns))
		return;
	const int count = epoll_wait(conns->epoll, events, BATCH, 0);
	must(count >= 0 || errno == EINTR);
	for (int i = count < FEW ? 0 : -AHEAD; i < count; i++) {
		if (count >= FEW)
			look_ahead(events, count, i);
		if (i >= 0)
			conn_event(events[i].data.ptr, events[i].events);
	}
}
