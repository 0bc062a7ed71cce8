/* inbox.h - what other threads have for a worker's requests.
 *
 * An item lies in the request that it is for. Any thread puts it in; the worker runs it with its loop's
 * next turn, or takes it back: whoever has taken it back is not told any more. So nothing that comes late
 * reaches a request that has ended, or another one in the same place. */
#ifndef GATEWAY_NET_INBOX_H
#define GATEWAY_NET_INBOX_H

#include "gateway/net/net.h"

#include <pthread.h>
#include <stdbool.h>

struct inbox_item {
	struct inbox_item *next, **before; /* private; before NULL: not in the inbox */
	void (*run)(struct inbox_item *item);
};

/* One per worker. */
struct inbox {
	pthread_mutex_t lock;
	struct inbox_item *first, **last;
	bool posted; /* the message is on its way */
	struct net_message message;
	struct net_loop *loop;
};

void inbox_init(struct inbox *inbox, struct net_loop *loop);

/* From any thread; harmless while it is in already. Who calls this makes sure that the item is there: its
 * owner must not be able to end meanwhile. */
void inbox_put(struct inbox *inbox, struct inbox_item *item);

/* From the worker's own thread; harmless when it is not in. */
void inbox_take_back(struct inbox *inbox, struct inbox_item *item);

#endif
