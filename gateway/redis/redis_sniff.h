/* redis_sniff.h - a port that gives no answer is asked, on a connection of its own, whether it speaks TLS
 * where store.url says redis://, or does not where that says rediss://. No user and no password is sent. */
#ifndef GATEWAY_REDIS_REDIS_SNIFF_H
#define GATEWAY_REDIS_REDIS_SNIFF_H

#include "gateway/base/redis_fault.h"
#include "gateway/net/net.h"

/* Embedded in its owner; private but for the first three. */
struct redis_sniff {
	struct net_loop *loop;
	bool tls;                                                         /* as store.url says */
	void (*found)(struct redis_sniff *sniff, enum store_fault fault); /* NONE: nothing */
	struct net_conn *conn;
	struct net_timer limit;
};

/* One at a time: nothing while it is under way. `found` is called once, later, within a second. */
void redis_sniff_begin(struct redis_sniff *sniff, const struct sockaddr *address, socklen_t len);

#endif
