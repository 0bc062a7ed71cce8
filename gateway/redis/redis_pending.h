/* redis_pending.h - the requests of one connection to Redis that are on their way, oldest first. Pure.
 *
 * Requests are numbered as they are sent, and answered in that order. A request without an answer by the
 * deadline is late, once; it stays pending until its answer comes or never will. An answer that is arriving is not
 * late, and holds up those behind it by no fault of theirs: the deadline begins anew with each REDIS_PENDING_PROGRESS bytes
 * of it, for a second at most.
 *
 * One late answer says nothing of the others: it may be its own command that takes long. The server is away when no
 * answer was in time for one and a half times the deadline, be it that none came, or that several commands were late. */
#ifndef GATEWAY_REDIS_REDIS_PENDING_H
#define GATEWAY_REDIS_REDIS_PENDING_H

#include "codec/base/clock.h"
#include "codec/base/must.h"
#include "gateway/redis/redis_link.h"

enum { REDIS_PENDING_PROGRESS = 1024 };

/* A command on its way. */
struct redis_request {
	nsec_t sent; /* begun; from when its bytes have left: then */
	bool late;   /* told so */
	bool own;    /* the link's: greeting, probe, login */
	struct redis_command command;
};

struct redis_pending {
	struct redis_request *ring;
	uint64_t first, undue, next; /* oldest, first that is not late, number of the next */
	uint64_t kept;               /* from here on they have not left */
	nsec_t heard;                /* the latest answer; whoever takes one says so */
	nsec_t doubted; /* when the first left that is or was late, since an answer was in time; 0: none */
	nsec_t moved;   /* a large answer got on last, */
	size_t arrived; /* but for so many bytes since */
	nsec_t deadline;
};

/* False: memory. `pending` is to be given back by redis_pending_fini either way. */
MUST_USE bool redis_pending_init(struct redis_pending *pending, nsec_t deadline);
void redis_pending_fini(struct redis_pending *pending);

static inline bool redis_pending_is_empty(const struct redis_pending *pending)
{
	return pending->first == pending->next;
}

/* The place of a number, which need not be pending. */
static inline struct redis_request *redis_pending_place(const struct redis_pending *pending,
							uint64_t number)
{
	return &pending->ring[number % REDIS_IN_FLIGHT_MAX];
}

/* A request that is not over. */
static inline struct redis_request *redis_pending_at(const struct redis_pending *pending,
						     uint64_t number)
{
	must(number >= pending->first && number < pending->next);
	return redis_pending_place(pending, number);
}

/* What will be the last one when redis_pending_push is called, cleared. NULL: too many are on their way. */
struct redis_request *redis_pending_begin(struct redis_pending *pending, nsec_t now);

static inline void redis_pending_push(struct redis_pending *pending)
{
	pending->next++;
}

/* Whether any has been sent that redis_pending_left was not told of. */
static inline bool redis_pending_keeps(const struct redis_pending *pending)
{
	return pending->kept < pending->next;
}

/* All have left, at `now`: those that had not are late from then on, not from when they were begun. */
void redis_pending_left(struct redis_pending *pending, nsec_t now);

/* Bytes have come of an answer that began before them or is not whole yet. */
void redis_pending_moved(struct redis_pending *pending, size_t bytes, nsec_t now);

/* Takes the oldest out; there must be one. */
static inline struct redis_request redis_pending_pop(struct redis_pending *pending)
{
	must(!redis_pending_is_empty(pending));
	if (pending->undue == pending->first)
		pending->undue++;
	struct redis_request *request = redis_pending_place(pending, pending->first++);
	if (!request->late)
		pending->doubted = 0;
	return *request;
}

/* When to ask the two below; NSEC_NEVER when nothing is pending. */
nsec_t redis_pending_due(const struct redis_pending *pending);
/* The next one that has become late, and is marked so; NULL: no more of them. */
struct redis_request *redis_pending_late(struct redis_pending *pending, nsec_t now);
/* When the server is away, if nothing is answered until then, or was before; NSEC_NEVER while no request is late. */
nsec_t redis_pending_away_at(const struct redis_pending *pending);
/* The next one that is not late yet, but is from now on: the server is away. NULL: there is none. */
struct redis_request *redis_pending_give_up(struct redis_pending *pending);
/* Whether nothing was heard for `most` while an answer is owed. */
bool redis_pending_is_quiet(const struct redis_pending *pending, nsec_t now, nsec_t most);
/* Whether answers that are owed will not come any more. Who is slow but answers is not silent. */
bool redis_pending_is_silent(const struct redis_pending *pending, nsec_t now);

#endif
