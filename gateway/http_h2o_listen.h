/* http_h2o_listen.h - accepts connections and finds out what they speak.
 *
 * h2o_accept is not used: it would hand the first bytes to h2o before the guard has seen them. The
 * ways in differ by listener (clear text reads the first bytes) and meet in edge_begin. */
#ifndef GATEWAY_HTTP_H2O_LISTEN_H
#define GATEWAY_HTTP_H2O_LISTEN_H

#include "gateway/http_h2o_edge.h"

enum { LISTENERS_MAX = 64 };

struct listeners {
	struct edge_host *host;
	uint32_t connections_max;
	h2o_socket_t *socks[LISTENERS_MAX];
	size_t count;
	bool open;              /* reading, that is, accepting */
	bool stopped;           /* for good */
	struct net_timer retry; /* after the kernel had nothing left to give */
};

/* Listens on `fds` (non-blocking), which stay the caller's; connections_max is set already.
 * `listeners` must not move. */
void listeners_init(struct listeners *listeners, struct edge_host *host, const int *fds,
		    size_t count);

/* A connection has gone, or the cap has changed: accepts again if there is room. */
void listeners_refresh(struct listeners *listeners);

void listeners_stop(struct listeners *listeners);

#endif
