#include "bench/sim/sim_loop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "bench/sim/sim_conn.h"
#include "codec/base/must.h"

#define EVENTS_MAX 256

/* ---- timers: a binary heap, the earliest first ---- */

static void put(struct sim_loop *loop, size_t at, struct sim_conn *conn)
{
	loop->timers[at] = conn;
	conn->timer_at = at;
}

static void sift_up(struct sim_loop *loop, size_t at, struct sim_conn *conn)
{
	while (at > 0 && conn->due < loop->timers[(at - 1) / 2]->due) {
		put(loop, at, loop->timers[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	put(loop, at, conn);
}

static void sift_down(struct sim_loop *loop, size_t at, struct sim_conn *conn)
{
	for (;;) {
		size_t child = 2 * at + 1;

		if (child + 1 < loop->timer_count &&
		    loop->timers[child + 1]->due < loop->timers[child]->due)
			child++;
		if (child >= loop->timer_count || conn->due <= loop->timers[child]->due)
			break;
		put(loop, at, loop->timers[child]);
		at = child;
	}
	put(loop, at, conn);
}

void sim_loop_forget(struct sim_loop *loop, struct sim_conn *conn)
{
	size_t at = conn->timer_at;

	if (at == SIZE_MAX)
		return;
	must(loop->timers[at] == conn);
	conn->timer_at = SIZE_MAX;
	struct sim_conn *last = loop->timers[--loop->timer_count];

	if (last == conn)
		return;
	if (last->due < conn->due)
		sift_up(loop, at, last);
	else
		sift_down(loop, at, last);
}

void sim_loop_at(struct sim_loop *loop, struct sim_conn *conn, nsec_t due)
{
	sim_loop_forget(loop, conn);
	if (loop->timer_count == loop->timer_cap) {
		loop->timer_cap = loop->timer_cap == 0 ? 64 : 2 * loop->timer_cap;
		loop->timers = realloc(loop->timers, loop->timer_cap * sizeof(*loop->timers));
		must(loop->timers != NULL);
	}
	conn->due = due;
	sift_up(loop, loop->timer_count++, conn);
}

static void run_timers(struct sim_loop *loop)
{
	while (loop->timer_count > 0 && loop->timers[0]->due <= loop->now) {
		struct sim_conn *conn = loop->timers[0];

		sim_loop_forget(loop, conn);
		sim_conn_due(conn);
	}
}

/* ---- epoll ---- */

static void watch(struct sim_loop *loop, int fd, uint32_t events, void *what)
{
	struct epoll_event event = { .events = events, .data.ptr = what };

	must(epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0);
}

void sim_loop_watch(struct sim_loop *loop, struct sim_conn *conn, uint32_t events, bool change)
{
	struct epoll_event event = { .events = events, .data.ptr = conn };

	must(epoll_ctl(loop->epoll_fd, change ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, conn->io.fd,
		       &event) == 0);
}

void sim_loop_init(struct sim_loop *loop, struct sim_shared *shared, int listen_fd)
{
	*loop = (struct sim_loop){ .shared = shared,
				   .listen_fd = listen_fd,
				   .epoll_fd = epoll_create1(EPOLL_CLOEXEC),
				   .stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				   .spec_version = UINT64_MAX };
	if (loop->epoll_fd < 0 || loop->stop_fd < 0) {
		perror("provider_sim: epoll");
		exit(1);
	}
	watch(loop, loop->stop_fd, EPOLLIN, &loop->stop_fd);
	watch(loop, listen_fd, EPOLLIN, &loop->listen_fd);
	loop->accepting = true;
}

void sim_loop_fini(struct sim_loop *loop)
{
	must(loop->conns == NULL);
	free(loop->timers);
	sim_buf_free(&loop->scratch);
	sim_buf_free(&loop->input);
	sim_buf_free(&loop->mcp.took);
	(void)close(loop->epoll_fd);
	(void)close(loop->stop_fd);
	(void)close(loop->listen_fd);
}

void sim_loop_stop(struct sim_loop *loop)
{
	must(eventfd_write(loop->stop_fd, 1) == 0);
}

void sim_loop_freed(struct sim_loop *loop)
{
	if (loop->accepting)
		return;
	loop->accepting = true;
	watch(loop, loop->listen_fd, EPOLLIN, &loop->listen_fd);
}

/* Without descriptors the listener would wake the loop for ever: it rests until one is free. */
static void accept_all(struct sim_loop *loop)
{
	for (;;) {
		int fd = accept4(loop->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			sim_conn_new(loop, fd);
		} else if (errno == EMFILE || errno == ENFILE) {
			must(epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, loop->listen_fd, NULL) == 0);
			loop->accepting = loop->conns == NULL;
			if (loop->accepting) /* nobody would wake it */
				watch(loop, loop->listen_fd, EPOLLIN, &loop->listen_fd);
			return;
		} else if (errno != ECONNABORTED && errno != EINTR) {
			return;
		}
	}
}

/* epoll_pwait2 has the resolution that latencies below a millisecond need. Kernels before 5.11 and
 * valgrind do not have it. */
static int wait(struct sim_loop *loop, struct epoll_event *events)
{
	struct timespec timeout = { 0 }, *until = NULL;
	int milliseconds = -1;

	if (loop->timer_count > 0) {
		nsec_t now = sim_clock(), due = loop->timers[0]->due;
		nsec_t left = due > now ? due - now : 0;

		timeout.tv_sec = (time_t)(left / SEC);
		timeout.tv_nsec = (long)(left % SEC);
		until = &timeout;
		milliseconds = (int)((left + MSEC - 1) / MSEC); /* of at most an hour */
	}
	int count = epoll_pwait2(loop->epoll_fd, events, EVENTS_MAX, until, NULL);

	if (count < 0 && errno == ENOSYS)
		count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, milliseconds);
	must(count >= 0 || errno == EINTR);
	loop->now = sim_clock();
	return count;
}

void sim_loop_run(struct sim_loop *loop)
{
	struct epoll_event events[EVENTS_MAX];
	bool stopped = false;

	while (!stopped) {
		int count = wait(loop, events);

		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr == &loop->stop_fd)
				stopped = true;
			else if (events[i].data.ptr == &loop->listen_fd)
				accept_all(loop);
			else
				sim_conn_event(events[i].data.ptr, events[i].events);
		}
		run_timers(loop);
	}
	while (loop->conns != NULL) {
		struct sim_conn *conn = loop->conns;

		sim_conn_free(&conn);
	}
}
