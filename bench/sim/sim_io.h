/* sim_io.h - bytes over a socket, with or without TLS. */
#ifndef BENCH_SIM_SIM_IO_H
#define BENCH_SIM_SIM_IO_H

#include <stdbool.h>
#include <sys/types.h>

#include <openssl/ssl.h>

#include "codec/base/attr.h"

enum { SIM_IO_END = 0, SIM_IO_AGAIN = -1, SIM_IO_FAILED = -2 };

/* One accepted, non-blocking socket; owns both. */
struct sim_io {
	int fd;
	SSL *ssl;         /* NULL: clear text */
	bool wants_write; /* TLS cannot go on reading before it has written */
};

struct sim_io_tls {
	const char *cert, *key;       /* PEM files */
	int version_min, version_max; /* 12 or 13 */
};

/* The server context for these files, offering HTTP/1.1 by ALPN; NULL with a line on stderr. */
SSL_CTX *sim_io_context(const struct sim_io_tls *tls);

/* `context` NULL: clear text. False without memory; then `fd` is still the caller's. */
MUST_USE bool sim_io_init(struct sim_io *io, int fd, SSL_CTX *context);

/* Above 0: that many bytes; else one of the three above. */
ssize_t sim_io_read(struct sim_io *io, void *at, size_t room);

/* The same, without SIM_IO_END. */
ssize_t sim_io_write(struct sim_io *io, const void *at, size_t len);

/* Whether there are bytes that epoll does not know of. */
bool sim_io_pending(const struct sim_io *io);

enum sim_io_end {
	SIM_IO_ORDERLY, /* with TLS's own goodbye */
	SIM_IO_CUT,     /* FIN only */
	SIM_IO_RESET,   /* RST */
};
void sim_io_fini(struct sim_io *io, enum sim_io_end how);

#endif
