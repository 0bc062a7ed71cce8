/* tls_pipe.h - TLS of one outgoing connection, apart from its socket: bytes of the peer go in, plain
 * text comes out, and the other way round. For net_conn.c, which owns the socket.
 *
 * The context verifies the peer (tls.h). Nothing is buffered here but a record that is not complete, and
 * what the socket did not take of those that leave. */
#ifndef GATEWAY_TLS_TLS_PIPE_H
#define GATEWAY_TLS_TLS_PIPE_H

#include "codec/base/attr.h"

#include <stdbool.h>

struct ssl_ctx_st;
struct tls_pipe;

enum {
	TLS_RECORD = 16384, /* plain text of the longest record (RFC 8446 5.1) */
};

enum tls_pipe_state {
	TLS_PIPE_OPENING, /* shaking hands */
	TLS_PIPE_OPEN,
	TLS_PIPE_CLOSED, /* the peer sent close_notify: no more plain text comes */
	TLS_PIPE_BROKEN, /* handshake, certificate or record refused; tls_pipe_why */
};

/* Sends bytes to the peer; how many it took. They live for the call. */
typedef size_t tls_pipe_send_fn(void *owner, const char *bytes, size_t len);

/* `server_name` for SNI, NULL for IP literals (RFC 6066 3: no addresses). NULL when memory is refused.
 * The context must outlive it. */
struct tls_pipe *tls_pipe_new(struct ssl_ctx_st *ctx, const char *server_name,
			      tls_pipe_send_fn *send, void *owner);
/* Accepts NULL. Sends nothing. */
void tls_pipe_free(struct tls_pipe *pipe);

/* Sends the ClientHello, and offers the context's last session. */
void tls_pipe_start(struct tls_pipe *pipe);

/* Bytes of the peer; they must stay where they are until tls_pipe_read says 0. */
void tls_pipe_feed(struct tls_pipe *pipe, const char *bytes, size_t len);
/* Shakes hands, then moves plain text to `to`. 0: all that was fed is used up, or the state says why
 * there is no more. Of `fed` bytes at most fed + TLS_RECORD come out. */
size_t tls_pipe_read(struct tls_pipe *pipe, char *to, size_t room);

/* Sends `len` bytes, at most TLS_RECORD, as one record of an open pipe, behind what waits. False: it is
 * broken now. */
MUST_USE bool tls_pipe_write(struct tls_pipe *pipe, const char *bytes, size_t len);

/* Sends what waits to be sent. True: nothing does any more. */
bool tls_pipe_flush(struct tls_pipe *pipe);

/* Sends close_notify, if the pipe is open. */
void tls_pipe_close(struct tls_pipe *pipe);

enum tls_pipe_state tls_pipe_state(const struct tls_pipe *pipe);
/* Why it is broken; static; never NULL. */
const char *tls_pipe_why(const struct tls_pipe *pipe);
/* The session was resumed (RFC 8446 2.2, RFC 5246 7.3). */
bool tls_pipe_resumed(const struct tls_pipe *pipe);

#endif
