#include "gateway/net/net_conn.h"

#include "gateway/net/net_conn_parts.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { LINE = 64 };

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
	if (conn->may_wait)
		conns->coalesced.may_wait--;
	if (conns->input.of == conn)
		conns->input.of = NULL;
	conn->closed = true;
	conn->next_gone = conns->gone;
	conns->gone = conn;
}

void net_abort(struct net_conn *conn)
{
	const struct linger none = { .l_onoff = 1, .l_linger = 0 };

	must_obj(conn, NET_CONN_MAGIC);
	if (conn->fd != -1)
		(void)setsockopt(conn->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	net_close(conn);
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

bool net_conn_watch(struct net_conn *conn, int how)
{
	const struct net_conns *conns = conn->conns;
	const uint32_t out = conn->out_watched ? EPOLLOUT : 0;
	struct epoll_event all = { .events = EPOLLIN | EPOLLRDHUP | EPOLLET | out,
				   .data.ptr = conn };

	return epoll_ctl(conn->coalesced ? conns->coalesced.epoll : conns->epoll, how, conn->fd,
			 &all) == 0;
}

static void start_tls(struct net_conn *conn)
{
	tls_pipe_start(conn->tls);
	net_conn_end_tls(conn);
}

void net_conn_connected(struct net_conn *conn, uint32_t what)
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

/* A socket that is connecting and known to the epoll; 0, or why there is none. */
static int start_connect(struct net_conn *conn, const struct sockaddr *address, socklen_t len)
{
	conn->fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (conn->fd == -1)
		return errno;
	const int on = 1; /* fails on local sockets, which do not wait anyhow */
	(void)setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if ((connect(conn->fd, address, len) == 0 || errno == EINPROGRESS) &&
	    net_conn_watch(conn, EPOLL_CTL_ADD))
		return 0;
	const int error = errno;
	(void)close(conn->fd);
	conn->fd = -1;
	return error;
}

struct net_conn *net_connect(struct net_loop *loop, const struct sockaddr *address, socklen_t len,
			     struct ssl_ctx_st *tls, const char *server_name,
			     const struct net_conn_events *events, void *arg)
{
	const size_t size = (sizeof(struct net_conn) + LINE - 1) / LINE * LINE;
	struct net_conn *conn = aligned_alloc(LINE, size);

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
	const int error = start_connect(conn, address, len);
	if (out_of_resources(error))
		goto no_resources;
	if (error != 0)
		net_conn_fail(conn, strerrordesc_np(error));
	return conn;
no_resources:
	conn_free(conn);
	return NULL;
}

void net_keep_alive(struct net_conn *conn)
{
	static const int on = 1, idle_s = 30, interval_s = 10, probes = 3;

	must_obj(conn, NET_CONN_MAGIC);
	if (conn->fd == -1) /* the others fail on local sockets, whose peers do not go unseen */
		return;
	(void)setsockopt(conn->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	(void)setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
	(void)setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
	(void)setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

bool net_is_silent(const struct net_conn *conn)
{
	char byte;

	must_obj(conn, NET_CONN_MAGIC);
	return !net_ending(conn) && conn->failed == NULL &&
	       recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == -1 && errno == EAGAIN;
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
