/* redis_link_rig.h - sockets and a clock that the test is, around one connection to Redis.
 *
 * To be included once; it defines functions of net.h, so that net_h2o.c is not linked. */
#ifndef TESTS_STORE_REDIS_LINK_RIG_H
#define TESTS_STORE_REDIS_LINK_RIG_H

#include "gateway/redis/redis_link.h"

#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the loop and its one connection ---- */

enum { INPUT_ROOM = 4096, TIMERS_MAX = 8 };

struct net_loop {
	nsec_t now, stall; /* this turn's time, and how long it has taken */
	struct net_timer *timers[TIMERS_MAX];
	struct net_task *soon;
};

struct net_conn {
	const struct net_conn_events *events;
	void *arg;
	uint16_t port;
	bool open, writing;
	char input[INPUT_ROOM], written[INPUT_ROOM];
	size_t input_len, written_len, writes;
};

static struct net_loop loop;
static struct net_conn conn;
static uint32_t connects;

nsec_t net_now(const struct net_loop *of)
{
	return of->now;
}

nsec_t net_now_exact(const struct net_loop *of)
{
	return of->now + of->stall;
}

void net_timer_set(struct net_loop *of, struct net_timer *timer, nsec_t due)
{
	timer->due = due;
	for (size_t i = 0; timer->place == 0; i++) {
		assert_true(i < TIMERS_MAX);
		if (of->timers[i] != NULL)
			continue;
		of->timers[i] = timer;
		timer->place = 1;
	}
}

void net_timer_stop(struct net_loop *of, struct net_timer *timer)
{
	for (size_t i = 0; i < TIMERS_MAX; i++)
		if (of->timers[i] == timer)
			of->timers[i] = NULL;
	timer->place = 0;
}

void net_soon(struct net_loop *of, struct net_task *task)
{
	assert_null(of->soon);
	of->soon = task;
}

void net_task_cancel(struct net_task *task)
{
	if (loop.soon == task)
		loop.soon = NULL;
}

struct net_conn *net_connect(struct net_loop *of, const struct sockaddr *address, socklen_t len,
			     struct ssl_ctx_st *tls, const char *server_name,
			     const struct net_conn_events *events, void *arg)
{
	(void)of;
	(void)len;
	(void)tls;
	(void)server_name;
	assert_false(conn.open);
	connects++;
	conn = (struct net_conn){ .events = events,
				  .arg = arg,
				  .open = true,
				  .port = ntohs(((const struct sockaddr_in *)address)->sin_port) };
	return &conn;
}

bool net_write(struct net_conn *to, const struct iovec *v, size_t count)
{
	assert_int_equal(count, 1);
	assert_false(to->writing);
	assert_true(v->iov_len < sizeof(to->written) - to->written_len);
	(void)memcpy(to->written + to->written_len, v->iov_base, v->iov_len);
	to->written_len += v->iov_len;
	to->writes++;
	to->writing = true;
	return false;
}

bool net_writing(const struct net_conn *of)
{
	return of->writing;
}

char *net_input(struct net_conn *of, size_t *len)
{
	*len = of->input_len;
	return of->input;
}

void net_consume(struct net_conn *of, size_t len)
{
	assert_int_equal(len, of->input_len);
	of->input_len = 0;
}

const char *net_conn_error(const struct net_conn *of)
{
	(void)of;
	return "refused";
}

void net_close(struct net_conn *of)
{
	assert_true(of->open);
	of->open = false;
}

/* ---- what the test does to it ---- */

/* The end of a tick: what was put off is written, and the socket takes it. */
static inline void turn(void)
{
	struct net_task *task = loop.soon;

	loop.soon = NULL;
	if (task != NULL)
		task->run(task);
	while (conn.open && conn.writing) {
		conn.writing = false;
		conn.events->written(&conn, conn.arg);
	}
}

/* Time passes, timer by timer. */
static inline void pass(nsec_t span)
{
	const nsec_t until = loop.now + span;

	for (;;) {
		struct net_timer *next = NULL;
		for (size_t i = 0; i < TIMERS_MAX; i++)
			if (loop.timers[i] != NULL && loop.timers[i]->due <= until &&
			    (next == NULL || loop.timers[i]->due < next->due))
				next = loop.timers[i];
		if (next == NULL)
			break;
		loop.now = next->due > loop.now ? next->due : loop.now;
		net_timer_stop(&loop, next);
		next->fire(next);
		turn();
	}
	loop.now = until;
}

static inline void opened(void)
{
	assert_true(conn.open);
	conn.events->opened(&conn, conn.arg);
	turn();
}

static inline void ended(enum net_end end)
{
	assert_true(conn.open);
	conn.events->ended(&conn, end, conn.arg);
	turn();
}

static inline void says(const char *bytes)
{
	assert_true(conn.open);
	conn.input_len = strlen(bytes);
	(void)memcpy(conn.input, bytes, conn.input_len);
	conn.events->readable(&conn, conn.arg);
	turn();
}

/* What was written since the last look. */
static inline void assert_written(const char *bytes)
{
	conn.written[conn.written_len] = '\0';
	assert_string_equal(conn.written, bytes);
	conn.written_len = 0;
}

#define PROBE "*5\r\n$3\r\nSET\r\n$14\r\nsluice:2:probe\r\n$1\r\n1\r\n$2\r\nPX\r\n$5\r\n60000\r\n"

/* ---- what the link tells ---- */

static struct {
	uint32_t ready, unready, failed, late, answered, refused, lost, turned, faults, gone;
	enum store_fault fault;
} told;

static inline void on_done(struct redis_call *call, enum redis_outcome outcome,
			   const struct redisReply *reply)
{
	assert_false(redis_call_pending(call));
	assert_int_equal(reply == NULL, outcome == REDIS_LOST);
	told.answered += outcome == REDIS_ANSWERED;
	told.refused += outcome == REDIS_REFUSED;
	told.lost += outcome == REDIS_LOST;
}

static inline void on_late(struct redis_call *call)
{
	assert_true(redis_call_pending(call));
	told.late++;
}

static inline void on_ready(struct redis_user *user)
{
	(void)user;
	told.ready++;
}

static inline void on_unready(struct redis_user *user)
{
	(void)user;
	told.unready++;
}

static inline void on_failed(struct redis_user *user)
{
	(void)user;
	told.failed++;
}

static inline void on_turned(struct redis_user *user)
{
	(void)user;
	told.turned++;
}

static inline void on_gone(struct redis_user *user)
{
	(void)user;
	told.gone++;
}

static inline void on_fault(struct redis_user *user, enum store_fault fault)
{
	(void)user;
	told.faults++;
	told.fault = fault;
}

static inline void on_measured(struct redis_user *user, enum redis_outcome outcome, bool late,
			       nsec_t took)
{
	(void)user;
	(void)outcome;
	(void)late;
	(void)took;
}

static char heard[64];

static inline void on_heard(void *owner, struct slice message)
{
	(void)owner;
	(void)snprintf(heard, sizeof(heard), "%.*s", (int)message.len, message.at);
}

static const struct redis_user_events events = { .ready = on_ready,
						 .unready = on_unready,
						 .failed = on_failed,
						 .turned = on_turned,
						 .fault = on_fault,
						 .lost = on_gone,
						 .measured = on_measured };

static inline struct redis_link_args arguments(uint32_t targets)
{
	struct redis_link_args args = { .loop = &loop,
					.heard = on_heard,
					.target_count = targets,
					.deadline = 20 * MSEC,
					.name = "redis://test",
					.quiet = true,
					.seed = 7 };

	for (uint32_t i = 0; i < targets; i++) {
		struct sockaddr_in *address = (struct sockaddr_in *)&args.targets[i].address;
		address->sin_family = AF_INET;
		address->sin_port = htons((uint16_t)(1000 + i));
		args.targets[i].len = sizeof(*address);
	}
	return args;
}

/* Links live until the process ends, and so does what they hold. */
static inline struct redis_link *link_of(struct redis_link_args args)
{
	static struct redis_link *all[64];
	static struct redis_user users[64];
	static size_t count;

	(void)memset(&told, 0, sizeof(told));
	loop = (struct net_loop){ .now = SEC };
	conn = (struct net_conn){ .open = false };
	connects = 0;
	assert_true(count < COUNT_OF(all));
	all[count] = redis_link_new(&args);
	assert_non_null(all[count]);
	users[count].events = &events;
	redis_link_join(all[count], &users[count]);
	return all[count++];
}

static inline struct redis_link *ready_link(void)
{
	struct redis_link *link = link_of(arguments(2));

	pass(0);
	opened();
	says("+OK\r\n");
	assert_int_equal(told.ready, 1);
	conn.written_len = 0;
	return link;
}

/* A call that no other test has; as with links. */
static inline struct redis_call *new_call(void)
{
	static const struct redis_call_type type = { .done = on_done, .late = on_late };
	static struct redis_call calls[REDIS_IN_FLIGHT_MAX];
	static size_t next;
	struct redis_call *call = &calls[next++ % REDIS_IN_FLIGHT_MAX];

	*call = (struct redis_call){ .type = &type };
	return call;
}

/* `to`: where a command may go; NULL: nowhere. */
static inline bool ask_at(struct redis_link *link, struct redis_buffer *to)
{
	if (to == NULL)
		return false;
	redis_put_count(to, 1);
	redis_put(to, SLICE("PING"));
	return redis_link_send(link, &(struct redis_command){ .call = new_call() });
}

static inline bool ask(struct redis_link *link)
{
	return ask_at(link, redis_link_begin(link));
}

#define PING "*1\r\n$4\r\nPING\r\n"

#endif
