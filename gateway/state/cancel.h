/* cancel.h - the requests of sessions that are in flight in this process, to be called off by their
 * JSON-RPC ids (notifications/cancelled), whichever worker they are on.
 *
 * Whoever is in here can be told once; whoever has left is not told any more (inbox.h), so that a late
 * cancel never hits another request. Shared by all workers (key_shard.h). */
#ifndef GATEWAY_STATE_CANCEL_H
#define GATEWAY_STATE_CANCEL_H

#include "gateway/net/inbox.h"
#include "gateway/state/key_shard.h"

struct flights;

/* Lives in the request. */
struct flight {
	struct state_key key; /* of its id in its session */
	/* On the worker's own thread: it has been called off. The flight is still in. */
	void (*called_off)(struct flight *flight);
	/* private */
	struct flights *flights; /* NULL: not in */
	struct key_link link;
	struct inbox *inbox;
	struct inbox_item item;
};

/* NULL: memory. Lives until the process ends, but for tests. */
struct flights *flights_new(void);
void flights_free(struct flights *flights); /* nobody may be in */

/* `key` and `called_off` are set; several of one key may be in. `inbox` is that of the calling worker. */
void flights_enter(struct flights *flights, struct flight *flight, struct inbox *inbox);
/* By the same worker; harmless when it is not in. */
void flights_leave(struct flight *flight);

/* Calls off all that have that key; returns how many. From any thread. */
uint32_t flights_call_off(struct flights *flights, struct state_key key);

/* Whether any of that key is in. From any thread; it may have left when this returns. */
bool flights_has(struct flights *flights, struct state_key key);

/* How many of that key are in. From any thread. */
uint32_t flights_count(struct flights *flights, struct state_key key);
/* The same, and `look` (NULL: none) is called for each of them, which cannot leave meanwhile. It calls nothing of flights. */
uint32_t flights_each(struct flights *flights, struct state_key key,
		      void (*look)(const struct flight *flight, void *arg), void *arg);

#endif
