/* inbox_rig.h - loops of the test's own that take messages, for what goes through a worker's inbox. Stands
 * in for net.h's. Included once, by a test's only source. */
#ifndef TESTS_UNIT_GATEWAY_INBOX_RIG_H
#define TESTS_UNIT_GATEWAY_INBOX_RIG_H

#include "codec/base/must.h"
#include "gateway/net/inbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct net_loop {
	pthread_mutex_t lock;
	pthread_cond_t came;
	struct net_message *first, **last;
};

static void loop_init(struct net_loop *loop)
{
	*loop = (struct net_loop){ .last = &loop->first };
	must(pthread_mutex_init(&loop->lock, NULL) == 0);
	must(pthread_cond_init(&loop->came, NULL) == 0);
}

void net_post(struct net_loop *loop, struct net_message *message)
{
	must(pthread_mutex_lock(&loop->lock) == 0);
	message->next = NULL;
	*loop->last = message;
	loop->last = &message->next;
	must(pthread_cond_signal(&loop->came) == 0);
	must(pthread_mutex_unlock(&loop->lock) == 0);
}

/* Runs what has come; returns how many messages that was. `wait`: for the first. */
static inline size_t loop_turn(struct net_loop *loop, bool wait)
{
	size_t count = 0;

	must(pthread_mutex_lock(&loop->lock) == 0);
	while (wait && loop->first == NULL)
		must(pthread_cond_wait(&loop->came, &loop->lock) == 0);
	struct net_message *at = loop->first;
	loop->first = NULL;
	loop->last = &loop->first;
	must(pthread_mutex_unlock(&loop->lock) == 0);
	for (struct net_message *next; at != NULL; at = next, count++) {
		next = at->next;
		at->run(at, NULL);
	}
	return count;
}

/* A worker, as far as these modules know it. */
struct some_worker {
	struct net_loop loop;
	struct inbox inbox;
};

static inline void some_worker_init(struct some_worker *worker)
{
	loop_init(&worker->loop);
	inbox_init(&worker->inbox, &worker->loop);
}

#endif
