/* net_h2o_conn.c - net.h's outgoing connections over h2o_socket_t.
 *
 * The socket's on_close frees the connection: after net_close a TLS socket may live on until its
 * close_notify has left, for at most LINGER. */
#include "gateway/net_h2o.h"

#include "codec/base/must.h"
#include "gateway/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>

enum { CONN_MAGIC = 0x434f4e4e };

/* An empty input buffer of at most so many bytes stays with its connection. */
enum { INPUT_KEPT_MAX = 16 << 10 };

#define LINGER (2 * SEC)

struct net_conn {
	uint32_t magic;
	struct net_loop *loop;
	h2o_socket_t *sock; /* NULL: refused before there was one */
	const struct net_conn_events *events;
	void *arg;
	SSL_CTX *tls;
	SSL *ssl;                /* the socket's, once the handshake has begun */
	const char *server_name; /* until the handshake begins; owned */
	struct {
		const struct iovec *v; /* what is left of net_write; only TLS sends it in pieces */
		size_t count, offset;  /* offset in v[0] */
		bool busy;
	} out;
	enum net_end end;
	const char *error;
	bool opened;
	bool *disposed;          /* set when the socket is gone under net_close */
	struct net_task refused; /* tells of a connection that was refused at once */
	struct net_timer linger;
};

/* h2o's iovec differs in its name only. */
_Static_assert(sizeof(h2o_iovec_t) == sizeof(struct iovec), "h2o_iovec_t is an iovec");
_Static_assert(offsetof(h2o_iovec_t, base) == offsetof(struct iovec, iov_base), "base");
_Static_assert(offsetof(h2o_iovec_t, len) == offsetof(struct iovec, iov_len), "len");

/* ---- the end ---- */
static void conn_free(struct net_conn *conn)
{
	net_timer_stop(conn->loop, &conn->linger);
	net_task_cancel(&conn->refused);
	free((void *)conn->server_name);
	conn->magic = 0;
	free(conn);
}

static void on_socket_closed(void *data)
{
	struct net_conn *conn = data;
	must_obj(conn, CONN_MAGIC);
	if (conn->disposed != NULL)
		*conn->disposed = true;
	conn_free(conn);
}

/* The last callback. */
static void conn_end(struct net_conn *conn, enum net_end end, const char *error)
{
	if (conn->end != NET_END_NONE)
		return;
	conn->end = end;
	conn->error = error;
	if (conn->sock != NULL)
		h2o_socket_read_stop(conn->sock);
	conn->events->ended(conn, end, conn->arg);
}

/* ---- reading ---- */
static bool tls_closed(const struct net_conn *conn)
{
	return conn->ssl != NULL && (SSL_get_shutdown(conn->ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
}

static void on_read(h2o_socket_t *sock, const char *err)
{
	struct net_conn *conn = sock->data;
	must_obj(conn, CONN_MAGIC);
	if (tls_closed(conn))
		conn_end(conn, NET_END_CLOSED, "closed by the peer");
	else if (err == h2o_socket_error_closed && conn->ssl == NULL)
		conn_end(conn, NET_END_CLOSED, "closed by the peer");
	else if (err == h2o_socket_error_closed)
		conn_end(conn, NET_END_FAILED, "closed without close_notify");
	else if (err != NULL)
		conn_end(conn, NET_END_FAILED, err);
	else if (sock->bytes_read != 0) /* 0: a part of a TLS record */
		conn->events->readable(conn, conn->arg);
}

char *net_input(struct net_conn *conn, size_t *len)
{
	must_obj(conn, CONN_MAGIC);
	if (conn->sock == NULL) {
		*len = 0;
		return NULL;
	}
	*len = conn->sock->input->size;
	return conn->sock->input->bytes;
}

void net_consume(struct net_conn *conn, size_t len)
{
	must_obj(conn, CONN_MAGIC);
	if (len == 0)
		return;
	must(conn->sock != NULL && len <= conn->sock->input->size);
	h2o_buffer_consume(&conn->sock->input, len);
	if (conn->sock->input->size != 0 || conn->sock->input->capacity <= INPUT_KEPT_MAX)
		return;
	h2o_buffer_dispose(&conn->sock->input); /* it stays as large as its largest read */
	h2o_buffer_init(&conn->sock->input, &h2o_socket_buffer_prototype);
}

void net_limit_input(struct net_conn *conn, size_t bytes)
{
	must_obj(conn, CONN_MAGIC);
	const int size = (int)bytes; /* the kernel takes twice that; a refusal changes nothing */
	if (conn->sock != NULL)
		(void)setsockopt(h2o_socket_get_fd(conn->sock), SOL_SOCKET, SO_RCVBUF, &size,
				 sizeof(size));
}

/* A struct net_buffer is an h2o_buffer_t under another name. */
struct net_buffer *net_take_input(struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	must(conn->sock != NULL);
	h2o_buffer_t *taken = conn->sock->input;
	h2o_buffer_init(&conn->sock->input, &h2o_socket_buffer_prototype);
	return (struct net_buffer *)taken;
}

char *net_buffer_bytes(struct net_buffer *buffer, size_t *len)
{
	h2o_buffer_t *h2o = (h2o_buffer_t *)buffer;
	*len = h2o->size;
	return h2o->bytes;
}

void net_buffer_free(struct net_buffer *buffer)
{
	h2o_buffer_t *h2o = (h2o_buffer_t *)buffer;
	if (h2o != NULL)
		h2o_buffer_dispose(&h2o);
}

void net_pause(struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	if (conn->opened && conn->end == NET_END_NONE)
		h2o_socket_read_stop(conn->sock);
}

void net_resume(struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	if (conn->opened && conn->end == NET_END_NONE)
		h2o_socket_read_start(conn->sock, on_read);
}

/* ---- writing ---- */
static void write_piece(struct net_conn *conn);

static void on_written(h2o_socket_t *sock, const char *err)
{
	struct net_conn *conn = sock->data;
	must_obj(conn, CONN_MAGIC);
	if (conn->end != NET_END_NONE)
		return;
	if (err != NULL) {
		conn_end(conn, NET_END_FAILED, err);
		return;
	}
	if (conn->out.count != 0) {
		write_piece(conn);
		return;
	}
	conn->out.busy = false;
	conn->events->written(conn, conn->arg);
}

/* Moves up to a record's worth of what is left into `to`. */
static size_t flatten(struct net_conn *conn, char *to)
{
	size_t len = 0;
	while (conn->out.count != 0 && len < NET_TLS_RECORD) {
		size_t left = conn->out.v->iov_len - conn->out.offset;
		size_t take = left < NET_TLS_RECORD - len ? left : NET_TLS_RECORD - len;
		if (take != 0)
			memcpy(to + len, (char *)conn->out.v->iov_base + conn->out.offset, take);
		len += take;
		conn->out.offset += take;
		if (take == left) {
			conn->out.v++;
			conn->out.count--;
			conn->out.offset = 0;
		}
	}
	return len;
}

/* h2o encrypts each slice into records of its own, hence one slice of a record's size. */
static void write_piece(struct net_conn *conn)
{
	char *staging = net_h2o_staging(conn->loop);
	h2o_iovec_t piece = { staging, flatten(conn, staging) };
	h2o_socket_write(conn->sock, &piece, piece.len == 0 ? 0 : 1, on_written);
}

void net_write(struct net_conn *conn, const struct iovec *v, size_t count)
{
	must_obj(conn, CONN_MAGIC);
	must(conn->opened && conn->end == NET_END_NONE && !conn->out.busy);
	conn->out.busy = true;
	count = net_h2o_trim(v, count);
	if (conn->ssl != NULL) {
		conn->out.v = v;
		conn->out.count = count;
		conn->out.offset = 0;
		write_piece(conn);
		return;
	}
	/* h2o copies the list and does not write to it. */
	h2o_socket_write(conn->sock, (h2o_iovec_t *)(uintptr_t)v, count, on_written);
}

bool net_writing(const struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	return conn->out.busy;
}

/* ---- opening ---- */
static void conn_opened(struct net_conn *conn)
{
	conn->opened = true;
	h2o_socket_read_start(conn->sock, on_read);
	conn->events->opened(conn, conn->arg);
}

/* h2o makes the SSL itself and keeps it to itself; this is the moment between SSL_new and the
 * ClientHello, and h2o's BIO knows the socket. */
static void on_ssl_info(const SSL *ssl, int where, int ret)
{
	(void)ret;
	if ((where & SSL_CB_HANDSHAKE_START) == 0)
		return;
	h2o_socket_t *sock = BIO_get_data(SSL_get_wbio(ssl));
	struct net_conn *conn = sock->data;
	must_obj(conn, CONN_MAGIC);
	conn->ssl = (SSL *)(uintptr_t)ssl;
	tls_client_resume(conn->tls, conn->ssl);
}

/* Without a name h2o's comparison can only fail; the address was verified by OpenSSL. With one it is
 * a second opinion. */
static bool is_refusal(const struct net_conn *conn, const char *err)
{
	if (err == NULL)
		return false;
	bool about_name = err == h2o_socket_error_ssl_cert_name_mismatch ||
			  err == h2o_socket_error_ssl_cert_invalid;
	return !(about_name && conn->server_name == NULL &&
		 SSL_get_verify_result(conn->ssl) == X509_V_OK &&
		 (SSL_get_verify_mode(conn->ssl) & SSL_VERIFY_PEER) != 0);
}

static void on_tls_done(h2o_socket_t *sock, const char *err)
{
	struct net_conn *conn = sock->data;
	must_obj(conn, CONN_MAGIC);
	if (is_refusal(conn, err)) {
		bool broken = err == h2o_socket_error_closed || err == h2o_socket_error_io;
		conn_end(conn, broken ? NET_END_FAILED : NET_END_TLS, err);
		return;
	}
	/* h2o starts every connection with records of 1,400 bytes; requests are sent whole. */
	sock->_latency_optimization.state = H2O_SOCKET_LATENCY_OPTIMIZATION_STATE_NEEDS_UPDATE;
	sock->_latency_optimization.suggested_tls_payload_size = NET_TLS_RECORD;
	sock->_latency_optimization.suggested_write_size = SIZE_MAX;
	conn_opened(conn);
}

/* The first flight is made before h2o_socket_ssl_handshake returns, so the context's own callback is
 * away for that long only. A name of no length is not sent (RFC 6066 3: no addresses). */
static void start_tls(struct net_conn *conn)
{
	void (*before)(const SSL *, int, int) = SSL_CTX_get_info_callback(conn->tls);
	SSL_CTX *tls = conn->tls; /* conn may be gone afterwards */
	SSL_CTX_set_info_callback(tls, on_ssl_info);
	h2o_socket_ssl_handshake(conn->sock, tls,
				 conn->server_name == NULL ? "" : conn->server_name, on_tls_done);
	SSL_CTX_set_info_callback(tls, before);
}

static void on_connected(h2o_socket_t *sock, const char *err)
{
	struct net_conn *conn = sock->data;
	must_obj(conn, CONN_MAGIC);
	int error = 0;
	socklen_t len = sizeof(error);
	if (getsockopt(h2o_socket_get_fd(sock), SOL_SOCKET, SO_ERROR, &error, &len) != 0)
		error = errno;
	if (error != 0)
		conn_end(conn, NET_END_FAILED, strerrordesc_np(error));
	else if (err != NULL)
		conn_end(conn, NET_END_FAILED, err);
	else if (conn->tls != NULL)
		start_tls(conn);
	else
		conn_opened(conn);
}

static void on_refused(struct net_task *task)
{
	struct net_conn *conn = CONTAINER_OF(task, struct net_conn, refused);
	conn_end(conn, NET_END_FAILED, conn->error);
}

static void on_linger(struct net_timer *timer)
{
	struct net_conn *conn = CONTAINER_OF(timer, struct net_conn, linger);
	(void)shutdown(h2o_socket_get_fd(conn->sock), SHUT_RDWR); /* the write fails, h2o closes */
}

static bool out_of_resources(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

/* A socket that is connecting, or -1 with *error. */
static int start_connect(const struct sockaddr *address, socklen_t len, int *error)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1) {
		*error = errno;
		return -1;
	}
	const int on = 1; /* fails on local sockets, which do not wait anyhow */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (connect(fd, address, len) != 0 && errno != EINPROGRESS) {
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
	struct net_conn *conn = calloc(1, sizeof(*conn));
	if (conn == NULL)
		return NULL;
	*conn = (struct net_conn){ .magic = CONN_MAGIC,
				   .loop = loop,
				   .events = events,
				   .arg = arg,
				   .tls = tls,
				   .refused.run = on_refused,
				   .linger.fire = on_linger,
				   .error = "" };
	if (tls != NULL && server_name != NULL) {
		conn->server_name = strdup(server_name);
		if (conn->server_name == NULL)
			goto no_resources;
	}
	int error = 0;
	int fd = start_connect(address, len, &error);
	if (fd == -1 && out_of_resources(error))
		goto no_resources;
	if (fd == -1) {
		conn->error = strerrordesc_np(error);
		net_soon(loop, &conn->refused);
		return conn;
	}
	conn->sock = h2o_evloop_socket_create(net_h2o_loop(loop), fd, 0);
	conn->sock->data = conn;
	conn->sock->on_close.cb = on_socket_closed;
	conn->sock->on_close.data = conn;
	h2o_socket_notify_write(conn->sock, on_connected);
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

void net_close(struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	if (conn->end == NET_END_NONE)
		conn->end = NET_END_CLOSED; /* nothing is told any more */
	if (conn->sock == NULL) {
		conn_free(conn);
		return;
	}
	bool disposed = false;
	conn->disposed = &disposed;
	h2o_socket_close(conn->sock);
	if (disposed)
		return;
	conn->disposed = NULL;
	net_timer_set(conn->loop, &conn->linger, net_now(conn->loop) + LINGER);
}

bool net_conn_resumed(const struct net_conn *conn)
{
	must_obj(conn, CONN_MAGIC);
	return conn->ssl != NULL && conn->opened &&
	       h2o_socket_get_ssl_session_reused(conn->sock) == 1;
}
