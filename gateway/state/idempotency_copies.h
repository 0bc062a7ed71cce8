/* idempotency_copies.h - copies that wait for the first of their key, by tenant: private to idempotency*.c.
 *
 * They wait before any of their tenant's limits is asked. Any thread may call. */
#ifndef GATEWAY_STATE_IDEMPOTENCY_COPIES_H
#define GATEWAY_STATE_IDEMPOTENCY_COPIES_H

#include "gateway/base/fair_share.h"
#include "gateway/state/idempotency.h"

#include <pthread.h>

struct idempotency_copies {
	pthread_mutex_t lock;
	struct fair_share all, large; /* all of them; those with large bodies */
};

/* False: no memory. */
MUST_USE bool idempotency_copies_init(struct idempotency_copies *copies);
void idempotency_copies_fini(struct idempotency_copies *copies); /* none waits */

/* IDEMPOTENCY_WAITS: its tenant may have another copy wait, until it is given back; else IDEMPOTENCY_FULL or IDEMPOTENCY_CROWDED. */
enum idempotency_verdict idempotency_copies_take(struct idempotency_copies *copies,
						 struct idempotency_call *call);
void idempotency_copies_give(struct idempotency_copies *copies,
			     const struct idempotency_call *call);

#endif
