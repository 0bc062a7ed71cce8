/* guard_room.h - room for bodies that have not come to their end, and which of them ends early when there is none.
 *
 * libh2o keeps such a body in memory and tells nobody until its last byte has come. All connections of a worker share one
 * budget. When it is full, the body ends early that has kept the most bytes for the longest time without growing; only
 * when all others grow, it is the one that asks. The connection owes a body that ends early an answer (http_h2o_edge).
 * Pure: no socket, no clock. */
#ifndef GATEWAY_HTTP_GUARD_ROOM_H
#define GATEWAY_HTTP_GUARD_ROOM_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Those who fill the budget must not have others refused for a few bytes: the last part of it is for bodies of so many
 * bytes at most. */
enum { GUARD_LITTLE = 64 << 10 };

/* Why a body ends early. */
enum guard_why {
	GUARD_GOES_ON,  /* it does not */
	GUARD_NO_ROOM,  /* others need its bytes, or it has found no room itself */
	GUARD_TOO_SLOW, /* it has not brought what it must in its patience */
};

/* The part of a connection that counts. */
struct guard_holder {
	size_t bytes;  /* of its bodies, and of requests that are held */
	uint32_t over; /* bodies that have ended early, and whose answer it owes */
};

/* A body; all zero: none. */
struct guard_body {
	struct guard_body *prev, *next; /* of its line */
	struct guard_holder *holder;
	nsec_t grown_at;      /* when it last had grown by a sixteenth */
	nsec_t paced_at;      /* when it last had brought what it must in its patience */
	uint32_t bytes;       /* that the budget counts for it */
	uint32_t grown_bytes; /* at grown_at */
	uint32_t paced_bytes; /* at paced_at */
	uint32_t stream;      /* 0: over HTTP/1.1 */
	uint8_t line;
	bool listed;
	uint8_t over; /* enum guard_why */
};

enum { GUARD_LINES = 20 };

/* What the connections of one worker share. */
struct guard_budget {
	size_t body_bytes_max; /* of one request, as h2o is told */
	size_t conn_bytes_max; /* of one connection's unfinished requests, where it is one caller's */
	size_t worker_bytes_max; /* of all connections' */
	size_t large_bytes_max; /* the same, for a body of more than GUARD_LITTLE; no more than that */
	nsec_t patience;        /* for a frame, and for each part of a body */
	size_t unfinished_bytes; /* now, all connections */
	size_t held_bytes;       /* of those: of requests that are held */
	/* Bodies by size, each line twice the one before; the one that has not grown for longest comes first. */
	struct guard_line {
		struct guard_body *first, *last;
	} lines[GUARD_LINES];
	/* A body of this connection has ended early: its bytes count no more, its answer is owed. NULL: nobody asks. */
	void (*over)(struct guard_holder *holder);
};

/* Whether a body of so many bytes, which the budget counts already, is too much beside all others. */
static inline bool guard_too_many_bytes(const struct guard_budget *budget, size_t own)
{
	return budget->unfinished_bytes >
	       (own > GUARD_LITTLE ? budget->large_bytes_max : budget->worker_bytes_max);
}

/* Whether something that began at `since` is slower than a client may be. */
static inline bool guard_too_slow(const struct guard_budget *budget, nsec_t since, nsec_t now)
{
	return now - since > budget->patience;
}

/* A request has begun whose body is still to come; `cost`: what is kept of it already. The body ends early at once where
 * there is no room: look at `over`. */
void guard_body_begin(struct guard_budget *budget, struct guard_body *body,
		      struct guard_holder *holder, uint32_t stream, size_t cost, nsec_t now);

/* So many bytes are kept of it now. Bodies end early where that is too much: this one, or others. What comes of one that
 * has ended early is not counted. */
void guard_body_keep(struct guard_budget *budget, struct guard_body *body, size_t bytes,
		     nsec_t now);

/* The body has come to its end, was reset, or is forgotten. */
void guard_body_end(struct guard_budget *budget, struct guard_body *body);

/* Ends the body early, unless it has ended early before. */
void guard_body_end_early(struct guard_budget *budget, struct guard_body *body, enum guard_why why);

/* Once a second: one that is too slow ends early. */
void guard_body_check(struct guard_budget *budget, struct guard_body *body, nsec_t now);

/* How much it costs to keep it: its bytes times the square of the time since they grew, so that a short pause of a large body
 * weighs less than a small one that is at rest. 0: it grows. */
uint64_t guard_body_weight(const struct guard_budget *budget, const struct guard_body *body,
			   nsec_t now);

/* The body has moved in memory: `to` takes its place in its line. */
void guard_body_move(struct guard_budget *budget, struct guard_body *to,
		     const struct guard_body *from);

/* A request that is whole but may not begin yet is held with so many bytes. Bodies end early for them, but it does not itself:
 * so those who let theirs wait have no more than a part of the room. False: that is too much, or the connection has more than
 * `most`. */
MUST_USE bool guard_hold(struct guard_budget *budget, struct guard_holder *holder, size_t bytes,
			 size_t most, nsec_t now);
void guard_let_go(struct guard_budget *budget, struct guard_holder *holder, size_t bytes);

#endif
