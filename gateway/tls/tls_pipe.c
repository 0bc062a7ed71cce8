#include "gateway/tls/tls_pipe.h"

#include "codec/base/must.h"
#include "gateway/tls/tls.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TLS_PIPE_MAGIC = 0x544c5350, HELD_MAX = 64 << 10 };

struct tls_pipe {
	uint32_t magic;
	enum tls_pipe_state state;
	SSL *ssl;
	SSL_CTX *ctx;
	struct {
		const char *at;
		size_t len;
	} fed; /* what of it OpenSSL has not taken yet */
	struct {
		char *at;
		size_t begin, end, room;
	} held; /* what the socket has not taken yet */
	tls_pipe_send_fn *send;
	void *owner;
	const char *why;
};

/* ---- OpenSSL's side: a BIO that reads what was fed and sends at once --------------------------- */

static int bio_read(BIO *bio, char *to, int room)
{
	struct tls_pipe *pipe = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	if (pipe->fed.len == 0) {
		BIO_set_retry_read(bio);
		return -1;
	}
	const size_t take = pipe->fed.len < (size_t)room ? pipe->fed.len : (size_t)room;
	(void)memcpy(to, pipe->fed.at, take);
	pipe->fed.at += take;
	pipe->fed.len -= take;
	return (int)take;
}

/* Behind what is held. False: no memory, or more than we ever say unasked: a peer that makes OpenSSL answer
 * (KeyUpdate, renegotiation) and does not read. */
static bool hold(struct tls_pipe *pipe, const char *bytes, size_t len)
{
	if (pipe->held.begin != 0) {
		pipe->held.end -= pipe->held.begin;
		(void)memmove(pipe->held.at, pipe->held.at + pipe->held.begin, pipe->held.end);
		pipe->held.begin = 0;
	}
	if (pipe->held.end + len > HELD_MAX)
		return false;
	if (pipe->held.room - pipe->held.end < len) {
		char *grown = realloc(pipe->held.at, pipe->held.end + len);
		if (grown == NULL)
			return false;
		pipe->held.at = grown;
		pipe->held.room = pipe->held.end + len;
	}
	(void)memcpy(pipe->held.at + pipe->held.end, bytes, len);
	pipe->held.end += len;
	return true;
}

/* Takes all, so that OpenSSL never has to be asked again. */
static int bio_write(BIO *bio, const char *bytes, int len)
{
	struct tls_pipe *pipe = BIO_get_data(bio);
	size_t sent = 0;

	BIO_clear_retry_flags(bio);
	if (pipe->held.begin == pipe->held.end) {
		pipe->held.begin = pipe->held.end = 0;
		sent = pipe->send(pipe->owner, bytes, (size_t)len);
	}
	if (sent != (size_t)len && !hold(pipe, bytes + sent, (size_t)len - sent))
		return -1;
	return len;
}

static long bio_ctrl(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *bio_method;

/* NULL stays where memory was refused. */
static void make_bio_method(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "pipe");

	if (method == NULL)
		return;
	(void)BIO_meth_set_read(method, bio_read);
	(void)BIO_meth_set_write(method, bio_write);
	(void)BIO_meth_set_ctrl(method, bio_ctrl);
	bio_method = method;
}

static BIO *bio_new(struct tls_pipe *pipe)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, make_bio_method);
	BIO *bio = bio_method == NULL ? NULL : BIO_new(bio_method);
	if (bio != NULL) {
		BIO_set_data(bio, pipe);
		BIO_set_init(bio, 1);
	}
	return bio;
}

/* ---- beginning and end -------------------------------------------------------------------------- */

static bool set_up(struct tls_pipe *pipe, const char *server_name)
{
	pipe->ssl = SSL_new(pipe->ctx);
	if (pipe->ssl == NULL)
		return false;
	if (server_name != NULL && SSL_set_tlsext_host_name(pipe->ssl, server_name) != 1)
		return false;
	BIO *bio = bio_new(pipe);
	if (bio == NULL)
		return false;
	SSL_set_bio(pipe->ssl, bio, bio);
	SSL_set_connect_state(pipe->ssl);
	return true;
}

struct tls_pipe *tls_pipe_new(SSL_CTX *ctx, const char *server_name, tls_pipe_send_fn *send,
			      void *owner)
{
	struct tls_pipe *pipe = calloc(1, sizeof(*pipe));

	if (pipe == NULL)
		return NULL;
	*pipe = (struct tls_pipe){
		.magic = TLS_PIPE_MAGIC, .ctx = ctx, .send = send, .owner = owner, .why = ""
	};
	if (set_up(pipe, server_name))
		return pipe;
	ERR_clear_error();
	tls_pipe_free(pipe);
	return NULL;
}

void tls_pipe_free(struct tls_pipe *pipe)
{
	if (pipe == NULL)
		return;
	must_obj(pipe, TLS_PIPE_MAGIC);
	SSL_free(pipe->ssl); /* and the BIO */
	free(pipe->held.at);
	pipe->magic = 0;
	free(pipe);
}

/* ---- what OpenSSL says ---------------------------------------------------------------------------- */

/* The texts of OpenSSL are static. */
static void break_off(struct tls_pipe *pipe)
{
	const long verdict = SSL_get_verify_result(pipe->ssl);
	const unsigned long code = ERR_peek_error();
	const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);

	pipe->state = TLS_PIPE_BROKEN;
	if (verdict != X509_V_OK)
		pipe->why = X509_verify_cert_error_string(verdict);
	else
		pipe->why = reason == NULL ? "TLS failed" : reason;
	ERR_clear_error();
}

/* After a call of OpenSSL's that returned `ret`, no success. */
static void take_error(struct tls_pipe *pipe, int ret)
{
	switch (SSL_get_error(pipe->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		return;
	case SSL_ERROR_ZERO_RETURN:
		pipe->state = TLS_PIPE_CLOSED;
		return;
	default:
		break_off(pipe);
	}
}

void tls_pipe_start(struct tls_pipe *pipe)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	tls_client_resume(pipe->ctx, pipe->ssl);
	ERR_clear_error();
	const int ret = SSL_do_handshake(pipe->ssl);
	if (ret != 1)
		take_error(pipe, ret);
}

void tls_pipe_feed(struct tls_pipe *pipe, const char *bytes, size_t len)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	must(pipe->fed.len == 0 || pipe->state >= TLS_PIPE_CLOSED);
	pipe->fed.at = bytes;
	pipe->fed.len = len;
}

size_t tls_pipe_read(struct tls_pipe *pipe, char *to, size_t room)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	if (pipe->state >= TLS_PIPE_CLOSED)
		return 0;
	ERR_clear_error();
	const int got = SSL_read(pipe->ssl, to, room < INT_MAX ? (int)room : INT_MAX);
	if (pipe->state == TLS_PIPE_OPENING && SSL_is_init_finished(pipe->ssl))
		pipe->state = TLS_PIPE_OPEN;
	if (got > 0)
		return (size_t)got;
	take_error(pipe, got);
	return 0;
}

bool tls_pipe_write(struct tls_pipe *pipe, const char *bytes, size_t len)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	must(pipe->state == TLS_PIPE_OPEN && len != 0 && len <= TLS_RECORD);
	ERR_clear_error();
	if (SSL_write(pipe->ssl, bytes, (int)len) == (int)len)
		return true;
	break_off(pipe);
	return false;
}

bool tls_pipe_flush(struct tls_pipe *pipe)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	while (pipe->held.begin != pipe->held.end) {
		const size_t sent = pipe->send(pipe->owner, pipe->held.at + pipe->held.begin,
					       pipe->held.end - pipe->held.begin);
		if (sent == 0)
			return false;
		pipe->held.begin += sent;
	}
	return true;
}

void tls_pipe_close(struct tls_pipe *pipe)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	if (pipe->state != TLS_PIPE_OPEN && pipe->state != TLS_PIPE_CLOSED)
		return;
	(void)SSL_shutdown(pipe->ssl);
	ERR_clear_error();
}

enum tls_pipe_state tls_pipe_state(const struct tls_pipe *pipe)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	return pipe->state;
}

const char *tls_pipe_why(const struct tls_pipe *pipe)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	return pipe->why;
}

bool tls_pipe_resumed(const struct tls_pipe *pipe)
{
	must_obj(pipe, TLS_PIPE_MAGIC);
	return SSL_session_reused(pipe->ssl) == 1;
}
