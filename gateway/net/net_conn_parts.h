/* net_conn_parts.h - a connection, for net_conn.c (its life), net_conn_read.c, net_conn_write.c and net_conns.c
 * (which of them there is news of). Private to these. */
#ifndef GATEWAY_NET_NET_CONN_PARTS_H
#define GATEWAY_NET_NET_CONN_PARTS_H

#include "codec/base/must.h"
#include "gateway/net/net_bytes.h"
#include "gateway/net/net_conn.h"

enum { NET_CONN_MAGIC = 0x434f4e4e };

struct net_conn {
	/* What each event looks at, in one line. */
	uint32_t magic;
	int fd; /* -1: refused before there was a socket */
	bool connected, opened, paused, closed;
	bool unread;  /* there may be more to read, which nobody will tell of again */
	bool last;    /* the peer sends no more: behind what is there, there is its end */
	bool blocked; /* bytes wait for the socket to take more */
	bool asked;   /* something was sent, and nothing has come since */
	bool heard;   /* something has come, ever */
	bool out_watched;
	bool may_wait;  /* see net_coalesce */
	bool coalesced; /* it is in the epoll for that */
	uint8_t end;    /* enum net_end */
	struct net_conns *conns;
	const struct net_conn_events *events;
	void *arg;
	struct tls_pipe *tls;    /* NULL: clear text */
	struct net_buffer *kept; /* NULL: no input but what conns->input has */
	struct net_output out;
	const char *error;
	const char *failed;    /* why nothing can be sent any more; its end is told of later */
	struct net_task later; /* reads on, or tells of `failed` */
	struct net_conn *next_gone;
};

/* ---- net_conn.c ---- */

/* The last callback; no second one. */
void net_conn_end(struct net_conn *conn, enum net_end end, const char *error);
/* Reads on at the end of this turn, or of the next when this one's tasks run already. */
void net_conn_later(struct net_conn *conn);
/* Nothing can be sent any more: ends later, of those who may not call back now. What came before that is
 * read first: it may say why. */
void net_conn_fail(struct net_conn *conn, const char *why);
/* The socket is no longer connecting, by what the epoll says. */
void net_conn_connected(struct net_conn *conn, uint32_t what);
/* What its epoll, the one or the other, is asked for. False with errno: it refuses. */
bool net_conn_watch(struct net_conn *conn, int how);

/* ---- net_conn_read.c ---- */

/* Reads what one turn may bring, or notes that it is there. The connection may be closed afterwards. */
void net_conn_read(struct net_conn *conn);
/* Connected, TLS included. False: the owner closed it. */
bool net_conn_open(struct net_conn *conn);
/* Ends it if TLS says so. */
void net_conn_end_tls(struct net_conn *conn);
/* Its peer has answered, or will not. */
void net_conn_note_heard(struct net_conn *conn);

/* ---- net_conn_write.c ---- */

/* The socket takes bytes again. The connection may be closed afterwards. */
void net_conn_write_on(struct net_conn *conn);
/* A tls_pipe_send_fn. */
size_t net_conn_send(void *conn, const char *bytes, size_t len);

#endif
