/* world.h - what is around a worker that a test owns, and its loop.
 *
 * Stands in for net. */
#ifndef TESTS_FAULT_WORLD_H
#define TESTS_FAULT_WORLD_H

#include "codec/base/must.h"
#include "gateway/front/rpc/rpc.h"
#include "gateway/identity/jwt_checker.h"
#include "gateway/state/state_redis.h"
#include "gateway/worker/worker_parts.h"
#include "tests/fault/fake_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct http_exchange {
	int status; /* 0: not answered */
	char *body; /* malloc'ed, with a NUL behind it */
	size_t len;
	bool pieces, unsent, ended; /* an answer in pieces */
	bool cut, rests;
	bool refused; /* the worker is done with it */
};
struct net_loop {
	char unused;
};

static struct world {
	struct worker *worker;
	struct http_handler handler;
	struct http_exchange exchange;
	nsec_t now;
	uint64_t wall_ns;
	struct net_message *posted; /* in their order */
	struct net_task *soon;      /* likewise */
	/* the provider */
	struct upstream_call *call; /* started, neither done nor cancelled */
	uint8_t sent[SHA256_BYTES]; /* digest of the last request that was sent */
	uint32_t buffers;           /* answers that were not given back */
	/* the limiter: what it says next, and what it was told */
	struct limiter limiter;
	enum { LIMITER_ASKS, LIMITER_REFUSES, LIMITER_WAITS } limiter_mode;
	struct limit_refusal refusal;
	struct reservation *pending;
	uint32_t granted, settled, placed, released, forgotten;
	uint32_t undone; /* as if never granted */
	/* other gateways: what is asked of them, and how much of it is held */
	struct idempotency_claim *claim;
	uint32_t held;
	uint64_t reserved_usd, settled_usd; /* of all attempts */
} world;

static struct net_loop the_loop;

/* ---- net.h ---- */
struct net_loop *net_loop_new(void)
{
	return &the_loop;
}

void net_loop_set_owner(struct net_loop *loop, void *owner)
{
	(void)loop;
	(void)owner;
}

nsec_t net_now(const struct net_loop *loop)
{
	(void)loop;
	return world.now;
}

nsec_t net_now_exact(const struct net_loop *loop)
{
	return net_now(loop);
}

uint64_t net_wall_ns(const struct net_loop *loop)
{
	(void)loop;
	return world.wall_ns;
}

uint64_t net_wall_s(const struct net_loop *loop)
{
	(void)loop;
	return world.wall_ns / SEC;
}

void net_turn(struct net_loop *loop, nsec_t max_wait)
{
	(void)loop;
	(void)max_wait;
	abort(); /* this worker has no thread */
}

void net_timer_set(struct net_loop *loop, struct net_timer *timer, nsec_t due)
{
	(void)loop;
	timer->due = due;
	timer->place = 1;
}

void net_timer_stop(struct net_loop *loop, struct net_timer *timer)
{
	(void)loop;
	timer->place = 0;
}

/* Tasks are run when the test says so: world_turn_ends. */
void net_soon(struct net_loop *loop, struct net_task *task)
{
	struct net_task **last = &world.soon;

	(void)loop;
	must(task->prev == NULL);
	while (*last != NULL)
		last = &(*last)->next;
	task->next = NULL;
	task->prev = last;
	*last = task;
}

nsec_t net_together_at(const struct net_loop *loop, uint32_t group, nsec_t due)
{
	(void)loop;
	(void)group;
	return due;
}

bool net_together(struct net_loop *loop, struct net_task *task, nsec_t at)
{
	(void)loop;
	(void)task;
	(void)at;
	return false;
}

void net_task_cancel(struct net_task *task)
{
	if (task->prev == NULL)
		return;
	*task->prev = task->next;
	if (task->next != NULL)
		task->next->prev = task->prev;
	task->prev = NULL;
}

/* What was to be run at the end of the turn is, and what that queues. */
static void world_turn_ends(void)
{
	for (struct net_task *task; (task = world.soon) != NULL;) {
		net_task_cancel(task);
		task->run(task);
	}
}

/* Messages come when the test says so: rig_deliver. */
void net_post(struct net_loop *loop, struct net_message *message)
{
	struct net_message **last = &world.posted;

	(void)loop;
	while (*last != NULL)
		last = &(*last)->next;
	message->next = NULL;
	*last = message;
}

#endif
