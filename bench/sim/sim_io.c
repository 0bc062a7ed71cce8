#include "bench/sim/sim_io.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>

static int choose_http11(SSL *ssl, const unsigned char **out, unsigned char *out_len,
			 const unsigned char *in, unsigned in_len, void *arg)
{
	static const unsigned char ours[] = "\x08http/1.1";
	unsigned char *chosen;

	(void)ssl;
	(void)arg;
	if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = chosen;
	return SSL_TLSEXT_ERR_OK;
}

static int version(int number)
{
	return number == 12 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

SSL_CTX *sim_io_context(const struct sim_io_tls *tls)
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());

	if (context == NULL || SSL_CTX_use_certificate_chain_file(context, tls->cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(context, tls->key, SSL_FILETYPE_PEM) != 1 ||
	    SSL_CTX_set_min_proto_version(context, version(tls->version_min)) != 1 ||
	    SSL_CTX_set_max_proto_version(context, version(tls->version_max)) != 1) {
		(void)fprintf(stderr, "provider_sim: %s, %s: %s\n", tls->cert, tls->key,
			      ERR_reason_error_string(ERR_peek_error()));
		SSL_CTX_free(context);
		return NULL;
	}
	(void)SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
						SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
						SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_alpn_select_cb(context, choose_http11, NULL);
	return context;
}

bool sim_io_init(struct sim_io *io, int fd, SSL_CTX *context)
{
	*io = (struct sim_io){ .fd = fd };
	if (context == NULL)
		return true;
	io->ssl = SSL_new(context);
	if (io->ssl == NULL)
		return false;
	if (SSL_set_fd(io->ssl, fd) != 1) {
		SSL_free(io->ssl);
		return false;
	}
	SSL_set_accept_state(io->ssl);
	return true;
}

static ssize_t outcome(struct sim_io *io, int result)
{
	int error = SSL_get_error(io->ssl, result);

	io->wants_write = error == SSL_ERROR_WANT_WRITE;
	if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
		return SIM_IO_AGAIN;
	return error == SSL_ERROR_ZERO_RETURN ? SIM_IO_END : SIM_IO_FAILED;
}

static int clip(size_t len)
{
	return len > INT_MAX ? INT_MAX : (int)len;
}

ssize_t sim_io_read(struct sim_io *io, void *at, size_t room)
{
	if (io->ssl != NULL) {
		ERR_clear_error();
		int got = SSL_read(io->ssl, at, clip(room));

		io->wants_write = false;
		return got > 0 ? got : outcome(io, got);
	}
	ssize_t got = recv(io->fd, at, room, 0);

	if (got >= 0)
		return got;
	return errno == EAGAIN || errno == EINTR ? SIM_IO_AGAIN : SIM_IO_FAILED;
}

ssize_t sim_io_write(struct sim_io *io, const void *at, size_t len)
{
	if (io->ssl != NULL) {
		ERR_clear_error();
		int put = SSL_write(io->ssl, at, clip(len));

		return put > 0 ? put : outcome(io, put);
	}
	ssize_t put = send(io->fd, at, len, MSG_NOSIGNAL);

	if (put >= 0)
		return put;
	return errno == EAGAIN || errno == EINTR ? SIM_IO_AGAIN : SIM_IO_FAILED;
}

bool sim_io_pending(const struct sim_io *io)
{
	return io->ssl != NULL && SSL_pending(io->ssl) > 0;
}

void sim_io_fini(struct sim_io *io, enum sim_io_end how)
{
	if (io->ssl != NULL) {
		ERR_clear_error();
		if (how == SIM_IO_ORDERLY && SSL_is_init_finished(io->ssl))
			(void)SSL_shutdown(io->ssl);
		SSL_free(io->ssl);
	}
	if (how == SIM_IO_RESET)
		(void)setsockopt(io->fd, SOL_SOCKET, SO_LINGER,
				 &(struct linger){ .l_onoff = 1, .l_linger = 0 },
				 sizeof(struct linger));
	(void)close(io->fd);
}
