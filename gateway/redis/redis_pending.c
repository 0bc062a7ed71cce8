#include "gateway/redis/redis_pending.h"

#include <stdlib.h>

#define SILENCE_MAX \
	(1 * SEC) /* of a server that owes answers; or the patience, if that is longer */

/* Without an answer in time. Since nobody is kept waiting beyond that, a server that is dead costs all its callers
 * together as much as if the first late answer counted. */
static nsec_t patience(const struct redis_pending *pending)
{
	return pending->deadline + pending->deadline / 2;
}

bool redis_pending_init(struct redis_pending *pending, nsec_t deadline)
{
	*pending = (struct redis_pending){
		/* Pages that are never used cost no memory. */
		.ring = calloc(REDIS_IN_FLIGHT_MAX, sizeof(*pending->ring)),
		.deadline = deadline,
	};
	return pending->ring != NULL;
}

void redis_pending_fini(struct redis_pending *pending)
{
	free(pending->ring);
}

struct redis_request *redis_pending_begin(struct redis_pending *pending, nsec_t now)
{
	if (pending->next - pending->first >= REDIS_IN_FLIGHT_MAX)
		return NULL;
	/* Back to the ring's begin: it is used no further than needed. */
	if (redis_pending_is_empty(pending))
		pending->first = pending->undue = pending->next =
			(pending->next / REDIS_IN_FLIGHT_MAX + 1) * REDIS_IN_FLIGHT_MAX;
	struct redis_request *request = redis_pending_place(pending, pending->next);
	*request = (struct redis_request){ .sent = now };
	return request;
}

void redis_pending_left(struct redis_pending *pending, nsec_t now)
{
	for (uint64_t i = pending->kept > pending->first ? pending->kept : pending->first;
	     i < pending->next; i++)
		redis_pending_place(pending, i)->sent = now;
	pending->kept = pending->next;
}

void redis_pending_moved(struct redis_pending *pending, size_t bytes, nsec_t now)
{
	pending->arrived += bytes;
	if (pending->arrived < REDIS_PENDING_PROGRESS)
		return;
	pending->arrived = 0;
	pending->moved = now;
}

/* Since when something is waited for that left then: since an answer that arrives last got on. */
static nsec_t waits_since(const struct redis_pending *pending, nsec_t left)
{
	const nsec_t most = left + SILENCE_MAX;

	if (pending->moved <= left)
		return left;
	return pending->moved < most ? pending->moved : most;
}

/* When a request is late. The loop wakes up to a millisecond after it was asked to. */
static nsec_t late_at(const struct redis_pending *pending, const struct redis_request *request)
{
	const nsec_t early = pending->deadline > 2 * MSEC ? MSEC : 0;

	return waits_since(pending, request->sent) + pending->deadline - early;
}

nsec_t redis_pending_away_at(const struct redis_pending *pending)
{
	if (pending->undue == pending->first) /* what is late is the oldest */
		return NSEC_NEVER;
	return waits_since(pending, pending->doubted) + patience(pending);
}

/* Since when the oldest answer is awaited and nothing was heard. */
static nsec_t quiet_since(const struct redis_pending *pending)
{
	const nsec_t sent = redis_pending_place(pending, pending->first)->sent;

	return sent > pending->heard ? sent : pending->heard;
}

static nsec_t silent_at(const struct redis_pending *pending)
{
	const nsec_t most = patience(pending);

	return quiet_since(pending) + (most > SILENCE_MAX ? most : SILENCE_MAX);
}

nsec_t redis_pending_due(const struct redis_pending *pending)
{
	if (redis_pending_is_empty(pending))
		return NSEC_NEVER;
	const nsec_t silent = silent_at(pending);
	if (pending->undue == pending->next)
		return silent;
	const nsec_t late = late_at(pending, redis_pending_place(pending, pending->undue));
	return late < silent ? late : silent;
}

/* It is late from now on. */
static struct redis_request *next_undue(struct redis_pending *pending)
{
	struct redis_request *request = redis_pending_place(pending, pending->undue++);

	request->late = true;
	if (pending->doubted == 0)
		pending->doubted = request->sent;
	return request;
}

struct redis_request *redis_pending_late(struct redis_pending *pending, nsec_t now)
{
	if (pending->undue == pending->next ||
	    now < late_at(pending, redis_pending_place(pending, pending->undue)))
		return NULL;
	return next_undue(pending);
}

struct redis_request *redis_pending_give_up(struct redis_pending *pending)
{
	return pending->undue == pending->next ? NULL : next_undue(pending);
}

bool redis_pending_is_quiet(const struct redis_pending *pending, nsec_t now, nsec_t most)
{
	return !redis_pending_is_empty(pending) && now >= quiet_since(pending) + most;
}

bool redis_pending_is_silent(const struct redis_pending *pending, nsec_t now)
{
	return !redis_pending_is_empty(pending) && now >= silent_at(pending);
}
