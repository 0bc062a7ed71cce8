#include "gateway/http/http_h2o_tls.h"

#include "codec/base/must.h"
#include "gateway/tls/tls.h"
#include "gateway/tls/tls_names.h"

#include <sys/socket.h>

/* ---- the alert that says why a handshake failed ----
 *
 * h2o drops it: what OpenSSL wrote during the step that failed is never sent. The client would see its
 * connection closed and nothing else, so the last small record is kept and sent by ourselves; all
 * before it has left, since h2o reads on only then. */
enum { RECORD_ALERT = 21, RECORD_SEALED = 23, SEALED_ALERT_LEN = 5 + 2 + 1 + 16 };

static bool is_alert(const char *record, size_t len)
{
	/* Under TLS 1.3 the type is sealed too, but nothing else is as short. */
	return len > 0 && (record[0] == RECORD_ALERT ||
			   (record[0] == RECORD_SEALED && len == SEALED_ALERT_LEN));
}

static long on_bio(BIO *bio, int operation, const char *bytes, size_t len, int argi, long argl,
		   int result, size_t *processed)
{
	(void)argi;
	(void)argl;
	(void)processed;
	if (operation == BIO_CB_WRITE) { /* before it is done */
		h2o_socket_t *sock = BIO_get_data(bio);
		struct edge *edge = sock->on_close.data;
		edge->alert_len = 0;
		if (len <= sizeof(edge->alert) && is_alert(bytes, len)) {
			(void)memcpy(edge->alert, bytes, len);
			edge->alert_len = (uint8_t)len;
		}
	}
	return result;
}

static void send_alert(const struct edge *edge)
{
	if (edge->alert_len != 0)
		(void)send(h2o_socket_get_fd(edge->sock), edge->alert, edge->alert_len,
			   MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* ---- the handshake ---- */
enum { SMALL_RECORDS_UNTIL = 200 << 10 };

/* h2o keeps the SSL to itself, but its BIO knows the socket. */
static int on_hello(SSL *ssl, int *alert, void *arg)
{
	BIO *bio = SSL_get_rbio(ssl);
	h2o_socket_t *sock = BIO_get_data(bio);
	struct edge *edge = sock->on_close.data;

	(void)alert;
	(void)arg;
	edge->ssl = ssl;
	BIO_set_callback_ex(bio, on_bio);
	return SSL_CLIENT_HELLO_SUCCESS;
}

void http_prepare_tls(SSL_CTX *tls)
{
	SSL_CTX_set_client_hello_cb(tls, on_hello, NULL);
}

/* Without ALPN it is HTTP/1.1. */
static enum edge_proto chosen_proto(h2o_socket_t *sock)
{
	h2o_iovec_t chosen = h2o_socket_ssl_get_selected_protocol(sock);
	return h2o_memis(chosen.base, chosen.len, H2O_STRLIT("h2")) ? EDGE_HTTP2 : EDGE_HTTP1;
}

/* h2o is not begun before there is something for it: until then the connection is as good as not
 * open, and its deadline that of the handshake. */
static void on_first_bytes(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	if (err != NULL || edge_tls_closed(edge))
		h2o_socket_close(sock);
	else if (sock->input->size != 0) /* else a part of a record, or a record of TLS itself */
		edge_begin(edge, chosen_proto(sock));
}

static void on_handshake(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	struct http_counters *counters = edge->host->counters;
	if (err != NULL) {
		edge_count(&counters->tls_failed);
		send_alert(edge);
		h2o_socket_close(sock);
		return;
	}
	must(edge->ssl != NULL);
	BIO_set_callback_ex(SSL_get_rbio(edge->ssl), NULL);
	edge_count(SSL_session_reused(edge->ssl) ? &counters->tls_resumed : &counters->tls_full);
	edge->names = tls_names_of(edge->ssl);
	/* h2o keeps to records of 1,400 bytes until so much has been written; answers are read whole. */
	sock->bytes_written = SMALL_RECORDS_UNTIL;
	/* What came along with the client's Finished has been decrypted and waits in the input. */
	h2o_socket_read_start(sock, on_first_bytes);
	if (sock->input->size != 0 || edge_tls_closed(edge))
		on_first_bytes(sock, NULL);
}

void edge_open_tls(struct edge *edge, SSL_CTX *tls)
{
	edge->tls = tls_server_share(tls);
	h2o_socket_ssl_handshake(edge->sock, edge->tls, NULL, on_handshake);
}
