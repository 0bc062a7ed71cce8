/* net.h - loop, timers and outgoing sockets of one worker thread, for worker, upstream and stores.
 *
 * net_loop.c and, over h2o's own loop, net_h2o.c implement it, net_conn*.c the connections; nobody else sees h2o's types.
 * Everything here belongs to the loop's thread, except net_post. Time is CLOCK_MONOTONIC, read once per
 * turn. */
#ifndef GATEWAY_NET_NET_H
#define GATEWAY_NET_NET_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/prefetch.h"
#include "codec/base/slice.h"

#include <sys/socket.h>
#include <sys/uio.h>

struct net_loop;
struct net_conn;
struct net_buffer;
struct ssl_ctx_st; /* OpenSSL's SSL_CTX */

/* NULL when memory or descriptors are refused. Loops live until the process ends. The thread that
 * turns it must ignore or block SIGPIPE. */
struct net_loop *net_loop_new(void);

/* One turn: waits for sockets at most until the next timer is due (or max_wait), handles them, runs
 * due timers (see net_coalesce as well), posted messages, then what net_soon queued. Nothing is run recursively. */
void net_turn(struct net_loop *loop, nsec_t max_wait);

/* The time of this turn, and the wall clock's seconds. */
nsec_t net_now(const struct net_loop *loop);
/* The time as it is, by the same clock, however long this turn takes: each call reads it. */
nsec_t net_now_exact(const struct net_loop *loop);
uint64_t net_wall_s(const struct net_loop *loop);
/* Wall clock in nanoseconds, for log lines. */
uint64_t net_wall_ns(const struct net_loop *loop);

/* ---- timers: embedded in their owner, exact to the turn, O(log n), no allocation once warm ----
 */
struct net_timer {
	nsec_t due;
	uint32_t place; /* private; 0: not set */
	void (*fire)(struct net_timer *timer);
};
/* Sets or moves. Past times fire in the next turn. */
void net_timer_set(struct net_loop *loop, struct net_timer *timer, nsec_t due);
/* Harmless when not set. */
void net_timer_stop(struct net_loop *loop, struct net_timer *timer);

/* ---- work for the end of this turn (one tick later); embedded ---- */
struct net_task {
	struct net_task *next, **prev; /* private; prev NULL: not queued */
	void (*run)(struct net_task *task);
};
void net_soon(struct net_loop *loop, struct net_task *task);
void net_task_cancel(struct net_task *task);

/* ---- work that is in no hurry ----
 *
 * Where many connections may wait (net_coalesce), what concerns one client connection is done together, so that one
 * write tells of many. Its `group` (any number) has moments for that, apart by NET_TOGETHER (three of these are hardly
 * more than the 250 ms between two notifications) times a power of two, which is the higher the more connections may
 * wait, so that a loop does about 8,000 such works a second at most, up to NET_TOGETHER_MOST. Numbers of groups that
 * follow each other have moments apart, so that none takes long, and those of a longer time are some of those of a shorter one. */
#define NET_TOGETHER (84 * MSEC)
#define NET_TOGETHER_MOST (32 * NET_TOGETHER)
/* The group's next moment that is not before `due`; `due` itself where nobody waits for others. */
nsec_t net_together_at(const struct net_loop *loop, uint32_t group, nsec_t due);
/* Has `task` run at `at`, which is from net_together_at; earlier, if the loop was held up for seconds. False: nothing
 * was done, as nobody waits for others, or `at` is further off than twice NET_TOGETHER_MOST; it takes a timer. */
MUST_USE bool net_together(struct net_loop *loop, struct net_task *task, nsec_t at);

/* ---- messages from other threads ---- */
struct net_message {
	struct net_message *next; /* private */
	void (*run)(struct net_message *message,
		    void *owner); /* on the loop's thread; owns message now */
};
/* Thread-safe; wakes the loop. `owner` given to net_loop_set_owner is passed on. */
void net_post(struct net_loop *loop, struct net_message *message);
void net_loop_set_owner(struct net_loop *loop, void *owner);

/* ---- outgoing connections ---- */
enum net_end {
	NET_END_NONE,
	NET_END_CLOSED, /* the peer closed orderly (FIN or close_notify) */
	NET_END_FAILED, /* reset, write error, refused, unreachable */
	NET_END_TLS,    /* handshake or certificate refused; net_conn_error says why */
};

struct net_conn_events {
	/* Connected, TLS included. Not called when `ended` is. */
	void (*opened)(struct net_conn *conn, void *arg);
	/* New bytes in net_input. */
	void (*readable)(struct net_conn *conn, void *arg);
	/* All bytes of a net_write that returned false have left; its memory is the caller's again. */
	void (*written)(struct net_conn *conn, void *arg);
	/* The connection ended; bytes may still be in net_input. net_close must follow (now or
	 * later). */
	void (*ended)(struct net_conn *conn, enum net_end end, void *arg);
	/* `readable` is likely to come in this turn; all steps, some connections apart. May be NULL. */
	void (*prefetch)(const void *arg, enum prefetch step);
};

/* Starts connecting. `tls` NULL: clear text; else a client context that verifies the peer's name
 * itself (tls.h), with `server_name` for SNI (NUL-terminated, NULL for IP literals). `events` must
 * be static. NULL when no descriptor or memory is to be had. No callback comes before this returns.
 */
struct net_conn *net_connect(struct net_loop *loop, const struct sockaddr *address, socklen_t len,
			     struct ssl_ctx_st *tls, const char *server_name,
			     const struct net_conn_events *events, void *arg);

/* Sends all of it; one write at a time (must). True: it has left. False: `written` is to come; until then,
 * or net_close, the bytes must not change (the list may). No callback comes before this returns. Under TLS
 * they are flattened into records of at most 16 KiB. */
bool net_write(struct net_conn *conn, const struct iovec *v, size_t count);
bool net_writing(const struct net_conn *conn);

/* Bytes received and not consumed; writable, so that decoders may work in place. They stay where they are
 * until they are consumed or taken, or the callback returns. */
char *net_input(struct net_conn *conn, size_t *len);
void net_consume(struct net_conn *conn, size_t len);

/* Takes all input away from the connection, for longer than a callback. NULL when memory is refused.
 * net_buffer_free(NULL) is harmless. */
struct net_buffer *net_take_input(struct net_conn *conn);
char *net_buffer_bytes(struct net_buffer *buffer, size_t *len);
void net_buffer_free(struct net_buffer *buffer);

/* Back-pressure: while paused nothing is read (nor is the peer's end seen). */
void net_pause(struct net_conn *conn);
void net_resume(struct net_conn *conn);

/* For input that is used up as it comes: asks the kernel to keep at most about `bytes` of it unread, so
 * that one turn cannot bring more. From then on, as long as the connection lives. */
void net_limit_input(struct net_conn *conn, size_t bytes);

/* Has the kernel find a peer that is gone though nothing is sent: it asks after 30 s of silence and every 10 s, and gives
 * up after the third time. From then on, as long as the connection lives. */
void net_keep_alive(struct net_conn *conn);

/* Asks the kernel whether the peer has sent nothing, nor closed its side, that was not read yet: what the loop will tell of in
 * its next turn. False: it has, or the connection has ended. */
bool net_is_silent(const struct net_conn *conn);

/* Whether what the connection brings, its end too, may wait for NET_COALESCE and the rest of a millisecond, so
 * that one turn reads for many: it does where many connections of the loop are like that. A new one is not.
 * For long answers, whose every event costs a turn otherwise. On is said once, off as often as wanted. */
#define NET_COALESCE (2 * MSEC)
void net_coalesce(struct net_conn *conn, bool on);

/* Text for the log when the connection ended badly; static; never NULL. */
const char *net_conn_error(const struct net_conn *conn);

/* The peer has closed its side: what is not read yet, if anything, is the last. */
bool net_ending(const struct net_conn *conn);

/* Closes at once; no callback comes any more. */
void net_close(struct net_conn *conn);

/* The same for a peer that is still to take or to send something: a reset (RFC 9293 3.10.5) tells it that
 * nobody waits, and no TIME-WAIT (3.6) is left, so that whoever makes many calls and gives them up uses up no
 * ports. Under TLS close_notify is tried before it, without which the session could not be resumed. */
void net_abort(struct net_conn *conn);

#endif
