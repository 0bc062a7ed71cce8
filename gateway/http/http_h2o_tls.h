/* http_h2o_tls.h - the way into a TLS connection: handshake, protocol, the client's certificate. */
#ifndef GATEWAY_HTTP_HTTP_H2O_TLS_H
#define GATEWAY_HTTP_HTTP_H2O_TLS_H

#include "gateway/http/http_h2o_edge.h"

/* Begins the handshake of a connection just accepted. It goes on to edge_begin when the first bytes of
 * HTTP are there, or ends with the socket; the host's patience is the deadline of all that. `tls` has
 * been prepared (http.h). */
void edge_open_tls(struct edge *edge, SSL_CTX *tls);

#endif
