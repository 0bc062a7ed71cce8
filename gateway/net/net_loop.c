/* net_loop.c - what net.h's loop is for those that it runs: clock, timers, tasks and messages. Its turns are net_h2o.c's. */
#include "gateway/net/net_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define TOGETHER_TICK (NET_TOGETHER / TOGETHER_TICKS)
/* Of the time between two moments, for each connection that may wait. */
#define TOGETHER_EACH (125 * USEC)
enum { TIMERS_AT_START = 4096 };

/* ---- clock ---- */
/* Out of line: net_now is called some twenty times a request, and reads the clock once in a turn of the loop. */
__attribute__((noinline)) nsec_t net_loop_read(struct loop_clock *clock)
{
	clock->now = loop_clock_read(CLOCK_MONOTONIC);
	clock->now_read = true;
	return clock->now;
}

nsec_t net_now(const struct net_loop *loop)
{
	return loop_now(loop);
}

nsec_t net_now_exact(const struct net_loop *loop)
{
	must_obj(loop, LOOP_MAGIC);
	return loop_clock_read(CLOCK_MONOTONIC);
}

static __attribute__((noinline)) uint64_t read_wall(struct loop_clock *clock)
{
	clock->wall_ns = loop_clock_read(CLOCK_REALTIME);
	clock->wall_read = true;
	return clock->wall_ns;
}

uint64_t net_wall_ns(const struct net_loop *loop)
{
	struct loop_clock *clock = loop->clock;

	return clock->wall_read ? clock->wall_ns : read_wall(clock);
}

uint64_t net_wall_s(const struct net_loop *loop)
{
	return net_wall_ns(loop) / SEC;
}

/* ---- timers ---- */
void net_timer_set(struct net_loop *loop, struct net_timer *timer, nsec_t due)
{
	must(timer->fire != NULL);
	nsec_t now = net_now(loop);
	net_timer_heap_set(&loop->timers, timer, due > now ? due : now + 1);
}

void net_timer_stop(struct net_loop *loop, struct net_timer *timer)
{
	net_timer_heap_stop(&loop->timers, timer);
}

/* ---- tasks ---- */
static void queue_add(struct task_queue *queue, struct net_task *task)
{
	must(task->prev == NULL && task->run != NULL);
	struct net_task *end = &queue->end;
	task->next = end;
	task->prev = end->prev;
	*end->prev = task;
	end->prev = &task->next;
}

void net_soon(struct net_loop *loop, struct net_task *task)
{
	queue_add(&loop->soon, task);
}

void net_task_cancel(struct net_task *task)
{
	task_leave(task);
}

/* ---- what is done together ---- */

/* The first one that is not before `at`, and when it is. */
static uint64_t tick_of(const struct net_loop *loop, nsec_t at)
{
	return (at + loop->together.phase + TOGETHER_TICK - 1) / TOGETHER_TICK;
}

static nsec_t time_of(const struct net_loop *loop, uint64_t tick)
{
	return tick * TOGETHER_TICK - loop->together.phase;
}

/* Between two moments of a group, a power of two. */
static uint64_t ticks_apart(const struct net_loop *loop)
{
	const nsec_t least = loop->conns.coalesced.may_wait * TOGETHER_EACH;
	uint64_t ticks = TOGETHER_TICKS;

	while (ticks < TOGETHER_TICKS_MOST && ticks * TOGETHER_TICK < least)
		ticks *= 2;
	return ticks;
}

nsec_t net_together_at(const struct net_loop *loop, uint32_t group, nsec_t due)
{
	if (!net_conns_coalesce(&loop->conns))
		return due;

	const nsec_t now = net_now(loop);
	const uint64_t tick = tick_of(loop, due > now ? due : now + 1);

	return time_of(loop, tick + ((group - tick) & (ticks_apart(loop) - 1)));
}

static void next_together(struct net_loop *loop, uint64_t tick)
{
	loop->together.next = tick;
	net_timer_set(loop, &loop->together.timer, time_of(loop, tick));
}

bool net_together(struct net_loop *loop, struct net_task *task, nsec_t at)
{
	const nsec_t now = net_now(loop);
	const uint64_t tick = tick_of(loop, at);

	if (!net_conns_coalesce(&loop->conns) || tick - tick_of(loop, now + 1) >= TOGETHER_WHEEL)
		return false;
	must(at > now);
	queue_add(&loop->together.at[tick % TOGETHER_WHEEL], task);
	if (tick < loop->together.next)
		next_together(loop, tick);
	return true;
}

/* Those whose tick has come, which may be several where a turn took long; and finds who is next. */
static void on_together(struct net_timer *timer)
{
	struct net_loop *loop = CONTAINER_OF(timer, struct net_loop, together.timer);
	struct task_queue *at = loop->together.at;
	const uint64_t first = loop->together.next, over = tick_of(loop, net_now(loop) + 1);

	for (uint64_t tick = first; tick < over && tick - first < TOGETHER_WHEEL; tick++)
		task_queue_run(&at[tick % TOGETHER_WHEEL]);
	loop->together.next = UINT64_MAX;
	for (uint64_t tick = over; tick - over < TOGETHER_WHEEL; tick++) {
		if (!task_queue_empty(&at[tick % TOGETHER_WHEEL])) {
			next_together(loop, tick);
			return;
		}
	}
}

/* ---- messages ---- */
void net_post(struct net_loop *loop, struct net_message *message)
{
	must(message->run != NULL);
	struct net_message *newest = atomic_load_explicit(&loop->mail.newest, memory_order_relaxed);
	do {
		message->next = newest;
	} while (!atomic_compare_exchange_weak_explicit(
		&loop->mail.newest, &newest, message, memory_order_release, memory_order_relaxed));
	/* A stack that was not empty has woken the loop already. */
	if (newest == NULL) {
		const uint64_t one = 1;
		ssize_t wrote;
		do {
			wrote = write(loop->mail.eventfd, &one, sizeof(one));
		} while (wrote == -1 && errno == EINTR);
		must(wrote == sizeof(one) || errno == EAGAIN); /* full: the loop is awake */
	}
}

void net_loop_set_owner(struct net_loop *loop, void *owner)
{
	loop->mail.owner = owner;
}

/* ---- the loop ---- */
struct net_conns *net_loop_conns(struct net_loop *loop)
{
	return &loop->conns;
}

bool net_loop_init(struct net_loop *loop)
{
	task_queue_init(&loop->soon);
	for (size_t i = 0; i < TOGETHER_WHEEL; i++)
		task_queue_init(&loop->together.at[i]);
	loop->together.next = UINT64_MAX;
	loop->together.timer.fire = on_together;
	loop->together.phase = loop_clock_read(CLOCK_MONOTONIC) % TOGETHER_TICK;
	atomic_init(&loop->mail.newest, NULL);
	loop->clock = calloc(1, sizeof(*loop->clock));
	if (loop->clock == NULL)
		return false;
	if (net_timer_heap_init(&loop->timers, TIMERS_AT_START))
		return true;
	free(loop->clock);
	return false;
}

void net_loop_fini(struct net_loop *loop)
{
	net_timer_heap_fini(&loop->timers);
	free(loop->clock);
}
