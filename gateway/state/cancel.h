/* cancel.h - what can be cancelled in this process, found by a key, whichever worker it is on: the requests of sessions by
 * their JSON-RPC ids (notifications/cancelled), and what belongs to a session of an MCP server.
 *
 * An entry is told once. One that has left is not told any more (inbox.h), so that a late cancellation never hits another
 * request. Shared by all workers (key_shard.h). */
#ifndef GATEWAY_STATE_CANCEL_H
#define GATEWAY_STATE_CANCEL_H

#include "gateway/net/inbox.h"
#include "gateway/state/key_shard.h"

struct cancel_table;

/* Lives in the request. */
struct cancel_entry {
	struct state_key key; /* of its id in its session */
	/* On the worker's own thread: it was cancelled. The entry is still in. */
	void (*cancelled)(struct cancel_entry *entry);
	/* private */
	struct cancel_table *cancels; /* NULL: not in */
	struct key_link link;
	struct inbox *inbox;
	struct inbox_item item;
};

/* NULL: memory. Lives until the process ends, but for tests. */
struct cancel_table *cancel_table_new(void);
void cancel_table_free(struct cancel_table *cancels); /* it has no entries */

/* `key` and `cancelled` are set; several of one key may be in. `inbox` is that of the calling worker. */
void cancel_enter(struct cancel_table *cancels, struct cancel_entry *entry, struct inbox *inbox);
/* By the same worker; harmless when it is not in. */
void cancel_leave(struct cancel_entry *entry);

/* Cancels all entries of that key; returns how many. From any thread. */
uint32_t cancel_all(struct cancel_table *cancels, struct state_key key);

/* Whether any of that key is in. From any thread; it may have left when this returns. */
bool cancel_has(struct cancel_table *cancels, struct state_key key);

/* How many of that key are in. From any thread. */
uint32_t cancel_count(struct cancel_table *cancels, struct state_key key);
/* The same, and `look` (NULL: none) is called for each of them, which cannot leave meanwhile. It calls nothing of
 * this header. */
uint32_t cancel_each(struct cancel_table *cancels, struct state_key key,
		     void (*look)(const struct cancel_entry *entry, void *arg), void *arg);

#endif
