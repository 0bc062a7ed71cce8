/* net_h2o.c - net.h's loop over h2o_evloop: its turns.
 *
 * h2o's loop keeps its own timers on the wall clock; they serve h2o alone. Ours wait in a heap on
 * CLOCK_MONOTONIC and only lend h2o the time it may sleep. */
#include "gateway/net/net_h2o.h"

#include "codec/base/must.h"
#include "gateway/net/net_loop.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/eventfd.h>

/* ---- what a turn runs ---- */

static void run_timers(struct net_loop *loop)
{
	nsec_t now = loop_now(loop);
	struct net_timer *timer;
	while ((timer = net_timer_heap_pop(&loop->timers, now)) != NULL)
		timer->fire(timer);
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

struct net_loop *net_loop_new(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, set_up_h2o);

	struct net_loop *loop = calloc(1, sizeof(*loop));
	if (loop == NULL)
		return NULL;
	loop->magic = LOOP_MAGIC;
	if (!net_loop_init(loop))
		goto no_parts;
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
	net_loop_fini(loop);
no_parts:
	free(loop);
	return NULL;
}

/* Milliseconds to the next timer, rounded up: waking early would only mean to wait once more. */
static int32_t wait_ms(const struct net_loop *loop, nsec_t max_wait)
{
	if (!task_queue_empty(&loop->soon))
		return 0;
	nsec_t due = net_timer_heap_due(&loop->timers), wait = max_wait;
	if (due != NSEC_NEVER) {
		nsec_t now = loop_clock_read(CLOCK_MONOTONIC); /* later than the last turn's time */
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
	task_queue_run(&loop->soon);
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
 * thread; of the chunks that requests live in, and of the buffers that they come in over HTTP/1.1, a worker turns over as
 * many as it has requests in flight. */
enum {
	CHUNK_BYTES = 4096,
	BUFFER_BYTES = offsetof(h2o_buffer_t, _buf) + 2 * H2O_SOCKET_INITIAL_INPUT_BUFFER_SIZE,
	WARM = 64
};

struct st_h2o_mem_recycle_chunk_t {
	struct st_h2o_mem_recycle_chunk_t *next;
};

void *h2o_mem_alloc_recycle(h2o_mem_recycle_t *kept, size_t size)
{
	struct st_h2o_mem_recycle_chunk_t *piece = kept->_link;

	if (size == CHUNK_BYTES || size == BUFFER_BYTES)
		kept->max = WARM; /* h2o_mem_free_recycle heeds it */
	if (kept->cnt == 0)
		return h2o_mem_alloc(size);
	kept->_link = piece->next;
	kept->cnt--;
	return piece;
}
