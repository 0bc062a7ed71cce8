/* net_conn_write.c - output: as much as the socket takes at once, and the rest when it takes more. */
#include "gateway/net/net_conn_parts.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/epoll.h>

static void watch_out(struct net_conn *conn, bool out)
{
	if (conn->out_watched == out)
		return;
	conn->out_watched = out;
	if (!net_conn_watch(conn, EPOLL_CTL_MOD))
		net_conn_fail(conn, strerrordesc_np(errno));
}

/* The socket is full. */
static void conn_block(struct net_conn *conn)
{
	conn->blocked = true;
	watch_out(conn, true);
}

/* What the socket takes of it, for TLS. */
size_t net_conn_send(void *owner, const char *bytes, size_t len)
{
	struct net_conn *conn = owner;
	ssize_t sent;

	if (conn->failed != NULL)
		return len; /* nobody will see it */
	do {
		sent = send(conn->fd, bytes, len, MSG_NOSIGNAL);
	} while (sent == -1 && errno == EINTR);
	if (sent == -1 && errno != EAGAIN) {
		net_conn_fail(conn, strerrordesc_np(errno));
		return len;
	}
	if (sent < (ssize_t)len)
		conn_block(conn);
	return sent == -1 ? 0 : (size_t)sent;
}

/* As much of the list as the socket takes, in records. True: all of it. */
static bool push_sealed(struct net_conn *conn)
{
	if (tls_pipe_state(conn->tls) != TLS_PIPE_OPEN)
		net_conn_fail(conn, "closed by the peer");
	while (tls_pipe_flush(conn->tls) && conn->out.count != 0 && conn->failed == NULL) {
		char *record = conn->conns->record;
		const size_t len = net_output_flatten(&conn->out, record, TLS_RECORD);
		if (len != 0 && !tls_pipe_write(conn->tls, record, len))
			net_conn_fail(conn, tls_pipe_why(conn->tls));
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
			net_conn_fail(conn, strerrordesc_np(errno));
		if (sent == -1)
			return false;
		net_output_advance(out, (size_t)sent);
		if (out->count == 0)
			return true;
		if (!net_output_own(out)) {
			net_conn_fail(conn, "no memory to send the rest");
			return false;
		}
	}
	return true;
}

static bool conn_push(struct net_conn *conn)
{
	return conn->tls != NULL ? push_sealed(conn) : push_clear(conn);
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

bool net_write(struct net_conn *conn, const struct iovec *v, size_t count)
{
	must_obj(conn, NET_CONN_MAGIC);
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
		net_conn_fail(conn, "no memory to send the rest");
	return false;
}

bool net_writing(const struct net_conn *conn)
{
	must_obj(conn, NET_CONN_MAGIC);
	return conn->out.busy;
}

/* The socket takes bytes again. */
void net_conn_write_on(struct net_conn *conn)
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
