/* net_conn_read.c - input, and how it comes. */
#include "gateway/net/net_conn_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of a buffer that is not empty, to read into. */
enum { ROOM_MIN = 16 << 10 };

/* ---- input ---- */

char *net_input(struct net_conn *conn, size_t *len)
{
	struct net_conns *conns = conn->conns;

	must_obj(conn, NET_CONN_MAGIC);
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

	must_obj(conn, NET_CONN_MAGIC);
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

	must_obj(conn, NET_CONN_MAGIC);
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
	must_obj(conn, NET_CONN_MAGIC);
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
		net_conn_end(conn, NET_END_FAILED, "no memory for what it sent");
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

bool net_conn_open(struct net_conn *conn)
{
	conn->opened = true;
	conn->events->opened(conn, conn->arg);
	return !conn->closed;
}

/* The peer has closed its side of the socket. */
static void conn_eof(struct net_conn *conn)
{
	if (conn->failed != NULL) /* a reset that the write was told of looks like this, too */
		net_conn_end(conn, NET_END_FAILED, conn->failed);
	else if (conn->tls == NULL)
		net_conn_end(conn, NET_END_CLOSED, "closed by the peer");
	else
		net_conn_end(conn, NET_END_FAILED,
			     conn->opened ? "closed without close_notify" : "closed by the peer");
}

/* What TLS has to say of the end, if anything. */
void net_conn_end_tls(struct net_conn *conn)
{
	if (tls_pipe_state(conn->tls) == TLS_PIPE_CLOSED)
		net_conn_end(conn, NET_END_CLOSED, "closed by the peer");
	else if (tls_pipe_state(conn->tls) == TLS_PIPE_BROKEN)
		net_conn_end(conn, conn->opened ? NET_END_FAILED : NET_END_TLS,
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
			net_conn_end(conn, NET_END_FAILED, "no memory for what it sent");
			return false;
		}
		got = tls_pipe_read(tls, to, room);
		if (got != 0)
			input_add(conn, got);
		all += got;
	} while (got != 0);
	if (!conn->opened && tls_pipe_state(tls) == TLS_PIPE_OPEN && !net_conn_open(conn))
		return false;
	if (all != 0 && !conn_tell(conn))
		return false;
	net_conn_end_tls(conn);
	return !conn->closed && conn->end == NET_END_NONE;
}

void net_conn_note_heard(struct net_conn *conn)
{
	struct net_conns *conns = conn->conns;

	if (conn->asked)
		conns->asked--;
	conn->asked = false;
	conn->heard = true;
	if (conns->last_asked == conn)
		conns->last_asked = NULL;
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
		net_conn_end(conn, NET_END_FAILED, "no memory for what it sends");
		return false;
	}
	const ssize_t got = recv(conn->fd, to, room, 0);
	*more = got == (ssize_t)room || (got == -1 && errno == EINTR);
	if (got == 0)
		conn_eof(conn);
	else if (got == -1 && errno != EAGAIN && errno != EINTR)
		net_conn_end(conn, NET_END_FAILED, strerrordesc_np(errno));
	if (got <= 0)
		return *more;
	net_conn_note_heard(conn);
	if (conn->tls != NULL)
		return conn_unseal(conn, (size_t)got);
	input_add(conn, (size_t)got);
	return conn_tell(conn);
}

void net_conn_read(struct net_conn *conn)
{
	bool more;

	if (conn->paused) {
		conn->unread = true;
		return;
	}
	conn->unread = false;
	if (conn_take(conn, &more) && (more || conn->last)) {
		conn->unread = true;
		net_conn_later(conn);
	}
}

void net_pause(struct net_conn *conn)
{
	must_obj(conn, NET_CONN_MAGIC);
	conn->paused = true;
}

void net_resume(struct net_conn *conn)
{
	must_obj(conn, NET_CONN_MAGIC);
	conn->paused = false;
	if (conn->unread && conn->end == NET_END_NONE)
		net_conn_later(conn);
}
