/* net_h2o.c - net.h's loop over h2o_evloop: turns, clock, timers, tasks and messages.
 *
 * h2o's loop keeps its own timers on the wall clock; they serve h2o alone. Ours wait in a heap on
 * CLOCK_MONOTONIC and only lend h2o the time it may sleep. */
#include "gateway/net/net_h2o.h"

#include "codec/base/must.h"
#include "gateway/net/net_conn.h"
#include "gateway/net/net_timer.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <time.h>

enum { LOOP_MAGIC = 0x4c4f4f50, TIMERS_AT_START = 4096 };

/* Moments are ticks of a clock. A group's are so many of them apart; the wheel holds those of twice the longest time. */
enum { TOGETHER_TICKS = 2, TOGETHER_TICKS_MOST = 64, TOGETHER_WHEEL = 2 * TOGETHER_TICKS_MOST };
#define TOGETHER_TICK (NET_TOGETHER / TOGETHER_TICKS)
#define TOGETHER_EACH \
	(125 * USEC) /* of the time between two moments, for each connection that may wait */

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
	h2o_loop_t *h2o;
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
		h2o_socket_t *sock; /* watches the eventfd */
		void *owner;
	} mail;
	struct {
		void (*run)(void *owner);
		void *owner;
	} before_wait;
	struct net_conns conns;
	h2o_socket_t *conns_sock; /* watches their epoll */
};

/* ---- clock ---- */
static uint64_t clock_read(clockid_t id)
{
	struct timespec t;
	must(clock_gettime(id, &t) == 0);
	return (uint64_t)t.tv_sec * SEC + (uint64_t)t.tv_nsec;
}

/* Read when first asked in a turn, that is, after the wait. */
/* Out of line: net_now is called some twenty times a request, and reads the clock once in a turn of the loop. */
static __attribute__((noinline)) nsec_t read_now(struct loop_clock *clock)
{
	clock->now = clock_read(CLOCK_MONOTONIC);
	clock->now_read = true;
	return clock->now;
}

nsec_t net_now(const struct net_loop *loop)
{
	struct loop_clock *clock = loop->clock;

	return clock->now_read ? clock->now : read_now(clock);
}

nsec_t net_now_exact(const struct net_loop *loop)
{
	must_obj(loop, LOOP_MAGIC);
	return clock_read(CLOCK_MONOTONIC);
}

static __attribute__((noinline)) uint64_t read_wall(struct loop_clock *clock)
{
	clock->wall_ns = clock_read(CLOCK_REALTIME);
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

static void run_timers(struct net_loop *loop)
{
	nsec_t now = net_now(loop);
	struct net_timer *timer;
	while ((timer = net_timer_heap_pop(&loop->timers, now)) != NULL)
		timer->fire(timer);
}

/* ---- tasks ---- */
static void queue_init(struct task_queue *queue)
{
	queue->first = &queue->end;
	queue->end.next = NULL;
	queue->end.prev = &queue->first;
}

static bool queue_empty(const struct task_queue *queue)
{
	return queue->first == &queue->end;
}

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
	if (task->prev == NULL)
		return;
	*task->prev = task->next;
	task->next->prev = task->prev;
	task->prev = NULL;
}

/* Takes what is queued by now out of `queue`, into `into`. */
static void queue_take(struct task_queue *queue, struct task_queue *into)
{
	queue_init(into);
	if (queue_empty(queue))
		return;
	into->first = queue->first;
	into->first->prev = &into->first;
	into->end.prev = queue->end.prev;
	*into->end.prev = &into->end;
	queue_init(queue);
}

/* Those queued by now; what they queue waits for another time. */
static void queue_run(struct task_queue *queue)
{
	struct task_queue now;

	queue_take(queue, &now);
	while (!queue_empty(&now)) {
		struct net_task *task = now.first;
		net_task_cancel(task);
		task->run(task);
	}
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
		queue_run(&at[tick % TOGETHER_WHEEL]);
	loop->together.next = UINT64_MAX;
	for (uint64_t tick = over; tick - over < TOGETHER_WHEEL; tick++) {
		if (!queue_empty(&at[tick % TOGETHER_WHEEL])) {
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

static void on_eventfd(h2o_socket_t *sock, const char *err)
{
	uint64_t count;
	must(err == NULL);
	/* Emptied before run_messages looks: a message posted in between wakes the loop again. */
	ssize_t got = read(h2o_socket_get_fd(sock), &count, sizeof(count));
	must(got == sizeof(count) || errno == EAGAIN || errno == EINTR);
}

static void run_messages(struct net_loop *loop)
{
	if (atomic_load_explicit(&loop->mail.newest, memory_order_relaxed) == NULL)
		return;
	struct net_message *newest =
		atomic_exchange_explicit(&loop->mail.newest, NULL, memory_order_acquire);
	struct net_message *oldest = NULL;
	while (newest != NULL) {
		struct net_message *next = newest->next;
		newest->next = oldest;
		oldest = newest;
		newest = next;
	}
	while (oldest != NULL) {
		struct net_message *message = oldest;
		oldest = message->next;
		message->run(message, loop->mail.owner);
	}
}

/* ---- the loop ---- */
static void set_up_h2o(void)
{
	/* Else input over 32 MiB is kept in a file under /tmp. */
	h2o_socket_buffer_mmap_settings.threshold = SIZE_MAX;
}

static bool mail_init(struct net_loop *loop)
{
	loop->mail.eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (loop->mail.eventfd == -1)
		return false;
	loop->mail.sock =
		h2o_evloop_socket_create(loop->h2o, loop->mail.eventfd, H2O_SOCKET_FLAG_DONT_READ);
	h2o_socket_read_start(loop->mail.sock, on_eventfd);
	return true;
}

static void on_conns(h2o_socket_t *sock, const char *err)
{
	must(err == NULL);
	net_conns_poll(sock->data);
}

static void watch_conns(struct net_loop *loop)
{
	loop->conns_sock =
		h2o_evloop_socket_create(loop->h2o, loop->conns.epoll, H2O_SOCKET_FLAG_DONT_READ);
	loop->conns_sock->data = &loop->conns;
	h2o_socket_read_start(loop->conns_sock, on_conns);
}

struct net_conns *net_loop_conns(struct net_loop *loop)
{
	return &loop->conns;
}

struct net_loop *net_loop_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, set_up_h2o);

	struct net_loop *loop = calloc(1, sizeof(*loop));
	if (loop == NULL)
		return NULL;
	loop->magic = LOOP_MAGIC;
	queue_init(&loop->soon);
	for (size_t i = 0; i < TOGETHER_WHEEL; i++)
		queue_init(&loop->together.at[i]);
	loop->together.next = UINT64_MAX;
	loop->together.timer.fire = on_together;
	loop->together.phase = clock_read(CLOCK_MONOTONIC) % TOGETHER_TICK;
	atomic_init(&loop->mail.newest, NULL);
	loop->clock = calloc(1, sizeof(*loop->clock));
	if (loop->clock == NULL)
		goto no_clock;
	if (!net_timer_heap_init(&loop->timers, TIMERS_AT_START))
		goto no_timers;
	loop->h2o = h2o_evloop_create(); /* ends the process where it fails */
	if (!net_conns_init(&loop->conns, loop))
		goto no_conns;
	if (!mail_init(loop))
		goto no_mail;
	watch_conns(loop);
	return loop;
no_mail:
	net_conns_fini(&loop->conns);
no_conns:
	h2o_evloop_destroy(loop->h2o);
	net_timer_heap_fini(&loop->timers);
no_timers:
	free(loop->clock);
no_clock:
	free(loop);
	return NULL;
}

/* Milliseconds to the next timer, rounded up: waking early would only mean to wait once more. */
static int32_t wait_ms(const struct net_loop *loop, nsec_t max_wait)
{
	if (!queue_empty(&loop->soon))
		return 0;
	nsec_t due = net_timer_heap_due(&loop->timers), wait = max_wait;
	if (due != NSEC_NEVER) {
		nsec_t now = clock_read(CLOCK_MONOTONIC); /* later than the last turn's time */
		nsec_t left = due > now ? due - now : 0;
		wait = left < wait ? left : wait;
	}
	return wait >= (nsec_t)INT32_MAX * MSEC ? INT32_MAX : (int32_t)((wait + MSEC - 1) / MSEC);
}

void net_turn(struct net_loop *loop, nsec_t max_wait)
{
	must_obj(loop, LOOP_MAGIC);
	if (loop->before_wait.run != NULL)
		loop->before_wait.run(loop->before_wait.owner);
	int32_t wait = wait_ms(loop, max_wait);
	loop->clock->now_read = loop->clock->wall_read = false;
	/* Interrupted, h2o has done nothing. Where epoll refuses a socket, h2o has lost track of its
	 * sockets: nothing but a new process helps. */
	must(h2o_evloop_run(loop->h2o, wait) == 0 || errno == EINTR);
	run_timers(loop);
	run_messages(loop);
	queue_run(&loop->soon);
	net_conns_sweep(&loop->conns);
	/* What these wrote is told of now: h2o's next run would first wait for sockets. */
	h2o_timeout__do_post_callback(loop->h2o);
}

/* ---- for the other files over h2o ---- */
h2o_loop_t *net_h2o_loop(const struct net_loop *loop)
{
	must_obj(loop, LOOP_MAGIC);
	return loop->h2o;
}

void net_h2o_before_wait(struct net_loop *loop, void (*run)(void *owner), void *owner)
{
	must(loop->before_wait.run == NULL);
	loop->before_wait.run = run;
	loop->before_wait.owner = owner;
}

size_t net_h2o_trim(const struct iovec *v, size_t count)
{
	while (count != 0 && v[count - 1].iov_len == 0)
		count--;
	return count;
}

/* ---- libh2o's memory ----
 *
 * Called by libh2o in place of its own (override_hpack_parse.c says how). It keeps 16 pieces of each kind warm for a
 * thread; of the chunks that requests live in, a worker turns over as many as it has requests in flight. */
enum { CHUNK_BYTES = 4096, WARM_CHUNKS = 64 };

struct st_h2o_mem_recycle_chunk_t {
	struct st_h2o_mem_recycle_chunk_t *next;
};

void *h2o_mem_alloc_recycle(h2o_mem_recycle_t *kept, size_t size)
{
	struct st_h2o_mem_recycle_chunk_t *piece = kept->_link;

	if (size == CHUNK_BYTES)
		kept->max = WARM_CHUNKS; /* h2o_mem_free_recycle heeds it */
	if (kept->cnt == 0)
		return h2o_mem_alloc(size);
	kept->_link = piece->next;
	kept->cnt--;
	return piece;
}
