/* net_conn.h - the outgoing connections of one loop, for net_h2o.c, which turns it.
 *
 * They have an epoll of their own, which the loop watches like a socket. Each is edge-triggered, and for
 * output only until it has answered or while it is full, so that neither reading, pausing nor most writing
 * takes a call to epoll, and the kernel does not look again at what it told of. All read into the same memory, which is warm: a
 * connection has input of its own only while somebody leaves bytes unconsumed.
 *
 * Those of long answers (net_coalesce) are in a second epoll, where there are many. The first one watches it
 * like one more connection until there is news in it; from then on a timer asks it, so that one turn reads
 * what came for many, until it has nothing: what a network card's interrupt moderation does. */
#ifndef GATEWAY_NET_NET_CONN_H
#define GATEWAY_NET_NET_CONN_H

#include "gateway/net/net.h"
#include "gateway/tls/tls_pipe.h"

enum {
	NET_RAW = 48 << 10,               /* read at once */
	NET_PLAIN = NET_RAW + TLS_RECORD, /* what may come out of that under TLS */
};

struct net_conns {
	struct net_loop *loop;
	int epoll;
	/* What was read last and not consumed yet, of `of`; NULL: nobody's. */
	struct {
		struct net_conn *of;
		size_t begin, end;
	} input;
	uint32_t asked; /* connections whose peer has not said anything since it was asked */
	uint32_t guesses;
	struct net_conn *last_asked; /* the one that was asked last; NULL: it has answered */
	struct net_conn *gone;       /* closed in this turn; freed at its end */
	/* Connections whose input may wait, see net_coalesce. */
	struct {
		int epoll;
		uint32_t may_wait; /* so many; the first of them are in the other epoll */
		struct net_timer timer;
	} coalesced;
	char plain[NET_PLAIN];
	char raw[NET_RAW];       /* TLS records */
	char record[TLS_RECORD]; /* plain text on its way into one */
};

/* False when descriptors are refused. */
MUST_USE bool net_conns_init(struct net_conns *conns, struct net_loop *loop);
/* Without connections only. */
void net_conns_fini(struct net_conns *conns);

/* The epoll is readable: tells the connections what became of them. */
void net_conns_poll(struct net_conns *conns);

/* Whether so many may wait (net_coalesce) that they do. */
static inline bool net_conns_coalesce(const struct net_conns *conns)
{
	enum { FROM = 32 }; /* so few connections are not worth that anyone waits */

	return conns->coalesced.may_wait > FROM;
}

/* The end of a turn. */
void net_conns_sweep(struct net_conns *conns);

/* The loop's; net_loop.c. */
struct net_conns *net_loop_conns(struct net_loop *loop);

#endif
