/* idempotency_copies.h - copies that wait for the first of their key, by tenant: private to state_once*.c.
 *
 * They wait before any of their tenant's limits is asked. Any thread may call. */
#ifndef GATEWAY_STATE_IDEMPOTENCY_COPIES_H
#define GATEWAY_STATE_IDEMPOTENCY_COPIES_H

#include "gateway/base/fair_share.h"
#include "gateway/state/idempotency.h"

#include <pthread.h>

struct once_copies {
	pthread_mutex_t lock;
	struct fair_share all, large; /* all of them; those with large bodies */
};

/* False: no memory. */
MUST_USE bool once_copies_init(struct once_copies *copies);
void once_copies_fini(struct once_copies *copies); /* none waits */

/* ONCE_WAITS: its tenant may have another copy wait, until it is given back; else ONCE_FULL or ONCE_CROWDED. */
enum once_verdict once_copies_take(struct once_copies *copies, struct once_call *call);
void once_copies_give(struct once_copies *copies, const struct once_call *call);

#endif
