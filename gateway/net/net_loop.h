/* net_loop.h - what the loop is made of, for net_loop.c (clock, timers, tasks) and net_h2o.c (its turns). Private to
 * these. */
#ifndef GATEWAY_NET_NET_LOOP_H
#define GATEWAY_NET_NET_LOOP_H

#include "codec/base/must.h"
#include "gateway/net/net_conn.h"
#include "gateway/net/net_timer.h"

#include <stdatomic.h>
#include <time.h>

enum { LOOP_MAGIC = 0x4c4f4f50 };

/* Moments are ticks of a clock. A group's are so many of them apart; the wheel holds those of twice the longest time. */
enum { TOGETHER_TICKS = 2, TOGETHER_TICKS_MOST = 64, TOGETHER_WHEEL = 2 * TOGETHER_TICKS_MOST };

/* Apart from the loop, so that looking at the time does not need a writable loop. */
struct loop_clock {
	nsec_t now;
	uint64_t wall_ns;
	bool now_read, wall_read; /* in this turn */
};

/* A queue whose `end` stands behind the last task, so that a task can leave it by itself. */
struct task_queue {
	struct net_task *first;
	struct net_task end;
};

struct net_loop {
	uint32_t magic;
	struct st_h2o_evloop_t *h2o;
	struct loop_clock *clock;
	struct net_timer_heap timers;
	struct task_queue soon;
	struct {
		struct task_queue at[TOGETHER_WHEEL]; /* by tick */
		uint64_t next; /* the first tick that may have somebody; UINT64_MAX: none has */
		struct net_timer timer; /* for that one */
		nsec_t phase;           /* loops do not all do it at once */
	} together;
	struct {
		_Atomic(struct net_message *) newest; /* a stack: newest first */
		int eventfd;
		struct st_h2o_socket_t *sock; /* watches the eventfd */
		void *owner;
	} mail;
	struct {
		void (*run)(void *owner);
		void *owner;
	} before_wait;
	struct net_conns conns;
	struct st_h2o_socket_t *conns_sock; /* watches their epoll */
};

/* ---- clock ---- */

static inline uint64_t loop_clock_read(clockid_t id)
{
	struct timespec t;
	must(clock_gettime(id, &t) == 0);
	return (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
}

nsec_t net_loop_read(struct loop_clock *clock);

/* Read when first asked in a turn, that is, after the wait. */
static inline nsec_t loop_now(const struct net_loop *loop)
{
	struct loop_clock *clock = loop->clock;

	return clock->now_read ? clock->now : net_loop_read(clock);
}

/* ---- tasks: the same code for net.h and for a turn ---- */

static inline void task_queue_init(struct task_queue *queue)
{
	queue->first = &queue->end;
	queue->end.next = NULL;
	queue->end.prev = &queue->first;
}

static inline bool task_queue_empty(const struct task_queue *queue)
{
	return queue->first == &queue->end;
}

/* Nothing where it is in no queue. */
static inline void task_leave(struct net_task *task)
{
	if (task->prev == NULL)
		return;
	*task->prev = task->next;
	task->next->prev = task->prev;
	task->prev = NULL;
}

/* Takes what is queued by now out of `queue`, into `into`. */
static inline void task_queue_take(struct task_queue *queue, struct task_queue *into)
{
	task_queue_init(into);
	if (task_queue_empty(queue))
		return;
	into->first = queue->first;
	into->first->prev = &into->first;
	into->end.prev = queue->end.prev;
	*into->end.prev = &into->end;
	task_queue_init(queue);
}

/* Those queued by now; what they queue waits for another time. */
static inline void task_queue_run(struct task_queue *queue)
{
	struct task_queue now;

	task_queue_take(queue, &now);
	while (!task_queue_empty(&now)) {
		struct net_task *task = now.first;
		task_leave(task);
		task->run(task);
	}
}

/* Clock, tasks and messages of a loop that is all zero but for its magic. False: memory is refused. */
MUST_USE bool net_loop_init(struct net_loop *loop);
/* Gives back what net_loop_init took. */
void net_loop_fini(struct net_loop *loop);

#endif
