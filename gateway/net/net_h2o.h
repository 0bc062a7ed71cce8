/* net_h2o.h - what the files over h2o share of the loop: net_h2o.c, http_h2o*.c. */
#ifndef GATEWAY_NET_NET_H2O_H
#define GATEWAY_NET_NET_H2O_H

#include "gateway/net/h2o_include.h"
#include "gateway/net/net.h"

enum { NET_TLS_RECORD = 16384 };

h2o_loop_t *net_h2o_loop(const struct net_loop *loop);

/* Runs before each wait for sockets, when nothing of h2o is on the stack. One per loop. */
void net_h2o_before_wait(struct net_loop *loop, void (*run)(void *owner), void *owner);

/* The count without empty slices at the end: h2o waits for the socket again to "write" those. */
size_t net_h2o_trim(const struct iovec *v, size_t count);

#endif
