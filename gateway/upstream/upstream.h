/* upstream.h - provider connections of one worker: our own HTTP/1.1 client over net.h.
 *
 * A pool per endpoint identity (scheme, host, port, CA), kept across snapshots: bounded idle list
 * (LIFO), bounded number of connections, bounded queue of calls that wait for one. Of a burst that finds none
 * idle, each turn of the loop opens some connections, and what is answered meanwhile serves the rest. Addresses come
 * from the control thread; all of a name's addresses are used, failed ones last. A call is one
 * attempt; a kept connection that turns out to be closed before any answer byte is retried once on
 * a new one. Hostile answers become errors, never crashes (attacks/badup.py).
 *
 * An answer is collected whole, up to limits.body_max, or handed over in pieces as it comes, of any
 * length and without being kept: then no total timeout runs, only the idle one, anew with every byte,
 * and the deadline. Reading can be paused, so that memory stays bounded whoever is slow.
 *
 * A call that is not a provider's has a struct upstream_extra: its request is not sent a second time, its answer's
 * header lines can be read, it may be bound to one address, and its answer may be a stream that stays open and
 * silent for hours. */
#ifndef GATEWAY_UPSTREAM_UPSTREAM_H
#define GATEWAY_UPSTREAM_UPSTREAM_H

#include "codec/base/arena.h"
#include "codec/base/err.h"
#include "codec/base/must.h"
#include "codec/base/prefetch.h"
#include "codec/dialect/dialect.h"
#include "gateway/base/config.h"
#include "gateway/net/net.h"

struct upstream;      /* all pools of a worker */
struct upstream_pool; /* one endpoint identity */

struct upstream_limits {
	uint32_t connections_max; /* per pool; an endpoint's own bounds may be lower */
	uint32_t idle_max;        /* kept per pool */
	uint32_t queue_max;       /* calls waiting per pool; likewise */
	uint32_t workers;         /* an endpoint's own bounds are of so many together; 0: one */
	nsec_t idle_for;          /* a kept connection is closed after that */
	/* A call with an `extra` uses a kept connection that has been idle for less than that. */
	nsec_t fresh_for;
	size_t head_max; /* bytes of status line and headers */
	size_t body_max; /* bytes of an answer's body */
};
extern const struct upstream_limits upstream_limits_default;

/* NULL: memory. `limits` is copied. */
struct upstream *upstream_new(struct net_loop *loop, const struct upstream_limits *limits);

/* The pool of that identity, made on first use; the endpoint's slices are copied. Its bounds (concurrent,
 * queue, queue_deadline) are those of the endpoint, or the widest of all that share it. NULL with a line
 * in `problem` when its CA cannot be used. Lives until upstream_sweep finds it unmarked. */
struct upstream_pool *upstream_pool_for(struct upstream *up, const struct endpoint *endpoint,
					char *problem, size_t room);

/* Answers that are collected whole, and what upstream_holds tells of others, take about so many bytes at most
 * until `done`, all pools together, one of body_max at least. Beyond that a call whose answer grows ends with
 * ERR_BUSY, unless that is short. Before it is called there is no bound. */
void upstream_bound_answers(struct upstream *up, size_t bytes);

/* A new snapshot: mark, call upstream_pool_for for all its endpoints, sweep: pools not asked for
 * since the mark are closed once their last call has ended. */
void upstream_mark(struct upstream *up);
/* Whether the pool of that identity was asked for since. */
bool upstream_is_marked(const struct upstream *up, struct slice identity);
void upstream_sweep(struct upstream *up);

/* Addresses of a pool's host, replacing the old ones; count 0: resolution failed (`why`), calls
 * fail while no address was ever known. Literal IP hosts are set by upstream_pool_for itself. The
 * port of an address is replaced by the endpoint's; at most 32 are used. */
struct upstream_address {
	struct sockaddr_storage address;
	socklen_t len;
};
void upstream_set_addresses(struct upstream_pool *pool, const struct upstream_address *addresses,
			    uint32_t count);
/* How many of them there are now: whether a pin matters. */
uint32_t upstream_address_count(const struct upstream_pool *pool);
/* By identity; ignored when there is no such pool. */
void upstream_resolved(struct upstream *up, struct slice identity,
		       const struct upstream_address *addresses, uint32_t count);

enum upstream_state {
	UPSTREAM_IDLE,   /* not started, or over */
	UPSTREAM_QUEUED, /* waits for a connection or an address */
	UPSTREAM_CONNECT,
	UPSTREAM_SENT, /* request being written, or answer awaited */
	UPSTREAM_BODY, /* head is there */
};

/* What a call has that is not a provider's. Its owner keeps it as long as the call. Such a call has `head` and
 * `piece`.
 *
 * - The request may be of any method; it is sent once: when a kept connection turns out to be closed, the call ends
 *   with ERR_PROVIDER_DOWN and bytes_sent. So that this is rare, only connections that were idle for less than
 *   limits.fresh_for are used, and only after a look at whether the peer has closed them.
 * - An answer of any status is one, with or without a body; redirects are not followed. A body with a
 *   content coding is refused where the status is 2xx; of another status it is as good as empty when it is collected whole,
 *   and `call->coded` says so from `head` on.
 * - `deadline`, timeouts.idle and timeouts.total may be NSEC_NEVER. timeouts.first_byte bounds the wait for the whole
 *   head. `head` may change deadline and timeouts; they count from then on.
 * - Pieces come at once, never together with other connections' (net_coalesce). */
struct upstream_extra {
	/* Set by the caller before upstream_start. */
	/* The only address to use, its port included: that of a kept connection, or a new one's. Borrowed until the call is
	 * over. When it is not among the pool's addresses any more, the call ends with ERR_PROVIDER_NO_ATTEMPT
	 * and `gone`.
	 * NULL: any of the pool's. */
	const struct upstream_address *pin;
	/* An answer in pieces is a stream: once `head` has returned true its connection counts neither with the
	 * pool's connections_max nor with the endpoint's `concurrent`; the caller bounds the number of streams. TCP
	 * keepalive finds a dead peer within about a minute. It may be set as late as in `head`. */
	bool stream;
	bool no_body; /* the request is a HEAD: its answer ends with its head, and `head` is not asked */

	/* The outcome. */
	bool gone; /* nothing was sent: `pin` is not the host's any more */
	/* The header lines of the final answer as they came, without status line, for upstream_next_field. Valid in `head`,
	 * and, of an answer that was collected whole, from `done` until upstream_finish. */
	struct slice fields;
	int64_t content_length; /* as the head says, from `head` on; -1: it does not */
	/* The address that was used, from `head` on; `len` 0: there was no answer. */
	struct upstream_address peer;
};

/* Takes the first line off `fields`: its name as it was sent, and its value without blanks around. Names occur as often as
 * they were sent. False: there is none any more. */
bool upstream_next_field(struct slice *fields, struct slice *name, struct slice *value);

/* One attempt; embedded in the request that makes it. What every piece of an answer touches stands first. */
struct upstream_call {
	/* Set by the caller before upstream_start, as `head` is: the next bytes of the body, never none,
	 * borrowed during the call. In here neither upstream_cancel nor upstream_finish may be called,
	 * but upstream_pause and upstream_enough. */
	void (*piece)(struct upstream_call *call, struct slice bytes);
	/* private */
	nsec_t last_progress;
	/* of the outcome, see below */
	nsec_t first_byte_at, done_at;
	/* private */
	enum upstream_state state;
	enum upstream_wish { UPSTREAM_WANTED, UPSTREAM_ENOUGH, UPSTREAM_BAD } wish;
	bool in_pieces, paused;
	bool retried;
	/* of the outcome */
	bool bytes_sent; /* at least one request byte was handed to the kernel */
	bool timed_out;  /* ERR_PROVIDER_DOWN: its timeouts passed, before or within an answer */
	bool held_up;    /* it was paused for a while */
	/* ERR_PROVIDER_ANSWER, because of its content-encoding: any other would be so, too; with an `extra`
	 * also of an answer that stands */
	bool coded;

	/* set by the caller before upstream_start */
	const struct iovec *request; /* head and body, ready to send; unchanged until `done` */
	uint32_t request_count;
	/* A short answer is copied to it and lives as long, so that its connection's buffer serves the
	 * next one; NULL: every answer keeps its buffer. */
	struct arena *into;
	void (*done)(struct upstream_call *call);
	/* It and `piece`: both or neither NULL. `head` is asked once the head of an answer that has a body
	 * is there: true, and the body comes in pieces; false, and it is collected whole, as with NULL. In
	 * it answer.status and .headers are valid, the headers until it returns: for pieces it leaves
	 * copies of its own there, or nothing. */
	bool (*head)(struct upstream_call *call);
	nsec_t deadline; /* of the whole request */
	struct provider_timeouts timeouts;
	struct upstream_extra *extra; /* NULL: a provider's call */
	/* private */
	struct upstream_pool *pool;
	struct upstream_conn *conn;
	struct net_timer timer;
	nsec_t attempt_started;
	struct net_buffer *buffer;
	size_t kept; /* bytes of its answer, until it is told of */
	struct upstream_call *next, **prev;
	/* the outcome, valid in `done` and after it; and first_byte_at, done_at */
	nsec_t sent_at,
		queued_ns; /* sent_at: over the connection that it had last; 0: it was not */
	/* ERR_OK: an answer is there, whatever its status. ERR_PROVIDER_DOWN: connect, reset, cut
	 * short, timeout of the attempt. ERR_PROVIDER_NO_ATTEMPT: nothing was sent (no address, no
	 * connection). ERR_BUSY: queue full, or no memory for the answer. ERR_PROVIDER_ANSWER: not
	 * HTTP, hostile. ERR_DEADLINE. */
	enum err err;
	const char *detail; /* for the log; static; NULL when ERR_OK */
	/* Of a good answer that was being collected whole when the call ended or was cancelled: bytes of its body
	 * that were there or announced, without blanks in front, which some hosts send while they have
	 * nothing to say. */
	size_t seen;
	/* slices point into `buffer` or `into` and live until upstream_finish; of an answer in pieces
	 * there are the status and what `head` left of the headers */
	struct provider_answer answer;
};

/* Keeps a pool through reloads that do not name it any more, until it is let go of as often. */
void upstream_hold(struct upstream_pool *pool);
void upstream_let_go(struct upstream_pool *pool);

/* What a call has come to, and nothing else of the attempt before: for one that cannot be started, as there is no pool.
 * After upstream_finish; `detail` is static. `done` does not come. */
static inline void upstream_outcome(struct upstream_call *call, enum err err, const char *detail)
{
	must(call->answer.status == 0); /* upstream_finish came before */
	call->err = err;
	call->detail = detail;
	call->bytes_sent = call->timed_out = call->retried = call->in_pieces = false;
	call->held_up = call->coded = false;
	call->seen = 0;
	call->sent_at = call->first_byte_at = call->done_at = call->queued_ns = 0;
	if (call->extra != NULL) {
		call->extra->fields = slice_of(NULL, 0);
		call->extra->content_length = -1;
		call->extra->peer.len = 0;
		call->extra->gone = false;
	}
}

/* Starts; `done` comes at the end of a turn (of many long answers that end together, in one of the next
 * ones), exactly once, never from inside this call, unless cancelled. Waiting for a connection is bounded
 * by `deadline` alone, waiting for the host's first address by timeouts.connect too; the attempt's other
 * timeouts begin with its connection. */
void upstream_start(struct upstream_pool *pool, struct upstream_call *call);

/* Ends a call in any state without `done`: the connection is closed if the call was using it.
 * Harmless when idle. */
void upstream_cancel(struct upstream_call *call);

/* Gives the answer's memory back; after `done` (or instead of it, after upstream_cancel).
 * Idempotent. */
void upstream_finish(struct upstream_call *call);

/* Whether the kernel has all of a call's request: what that points to is not read any more. Only before `done`. */
bool upstream_is_sent(const struct upstream_call *call);

/* Stops and goes on reading an answer in pieces; while paused only the deadline runs, and the peer's end
 * is not seen. Harmless in other states, and when it is so already. */
void upstream_pause(struct upstream_call *call);
void upstream_resume(struct upstream_call *call);

/* Only from inside `piece`: what the caller holds of the pieces so far, in bytes. They count with the answers
 * that are collected whole (upstream_bound_answers): where there are too many, the call ends in ERR_BUSY. */
void upstream_holds(struct upstream_call *call, size_t bytes);

/* Only from inside `piece`: what there is will do. No piece comes any more; `done` does, with ERR_OK.
 * `good`: the rest of the answer is read and dropped, if it ends soon, and the connection kept; else it
 * is closed. */
void upstream_enough(struct upstream_call *call, bool good);

/* What a call's owner does before a piece of its answer: PREFETCH_REQUEST and what follows (base/prefetch.h).
 * The call's memory may be named, but not read as PREFETCH_REQUEST. Not for calls with an
 * `extra`. */
typedef void upstream_prefetch_fn(struct upstream_call *call, enum prefetch step);
void upstream_set_prefetch(struct upstream *up, upstream_prefetch_fn *prefetch);

/* For metrics: connections by state of all pools of this worker. */
struct upstream_counts {
	uint64_t idle, busy, connecting, queued;
	uint64_t streams; /* not among the others: see struct upstream_extra */
};
struct upstream_counts upstream_count(const struct upstream *up, struct slice identity);

#endif
