/* http_h2o_listen.h - accepts connections and finds out what they speak.
 *
 * h2o_accept is not used: it would hand the first bytes to h2o before the guard has seen them. The
 * ways in differ by listener (clear text reads the first bytes, TLS shakes hands: http_h2o_tls) and
 * meet in edge_begin. */
#ifndef GATEWAY_HTTP_HTTP_H2O_LISTEN_H
#define GATEWAY_HTTP_HTTP_H2O_LISTEN_H

#include "gateway/http/http_h2o_edge.h"

enum { LISTENERS_MAX = 64 };

struct listener {
	struct listeners *all;
	h2o_socket_t *sock;
	SSL_CTX *tls; /* NULL: clear text */
	bool trusted_proxy, loopback;
};

struct listeners {
	struct edge_host *host;
	uint32_t connections_max;
	struct listener at[LISTENERS_MAX];
	size_t count;
	bool open;              /* reading, that is, accepting */
	bool stopped;           /* for good */
	struct net_timer retry; /* after the kernel had nothing left to give */
};

/* Listens on `from`, whose descriptors stay the caller's; connections_max is set already. `listeners`
 * must not move. */
void listeners_init(struct listeners *listeners, struct edge_host *host,
		    const struct http_listener *from, size_t count);

/* The context of connections that come from now on. */
void listeners_set_tls(struct listeners *listeners, size_t n, SSL_CTX *tls);

/* A connection has gone, or the cap has changed: accepts again if there is room. */
void listeners_refresh(struct listeners *listeners);

void listeners_stop(struct listeners *listeners);

#endif
