/* metrics_labels.h - numbers for label values, given out at first use and never taken back.
 *
 * One table per kind of series in the process; all workers agree on its numbers. Looking up takes no
 * lock; adding takes one, once per value. A table has a fixed size: what no longer fits is number 0,
 * "_other". */
#ifndef GATEWAY_TELEMETRY_METRICS_LABELS_H
#define GATEWAY_TELEMETRY_METRICS_LABELS_H

#include "codec/base/attr.h"
#include "codec/base/slice.h"

#include <pthread.h>
#include <stdatomic.h>

enum { METRICS_LABEL_OTHER = 0 };

/* The value, or the pair of values, behind a number. */
struct metrics_label {
	uint64_t hash;
	struct slice a, b;
};

struct metrics_labels {
	struct metrics_label *rows; /* [0] is _other */
	_Atomic uint32_t count;     /* rows in use, from the front */
	uint32_t cap;
	_Atomic uint32_t *places; /* open addressing by hash; a row's number, 0: free */
	uint32_t mask;
	pthread_mutex_t adding;
};

/* Room for `max` values beside _other. False: memory. */
MUST_USE bool metrics_labels_init(struct metrics_labels *labels, uint32_t max);
void metrics_labels_fini(struct metrics_labels *labels);

/* The number of that value, made and copied on first use; METRICS_LABEL_OTHER when the table is full.
 * `hash` must depend on nothing but the value. "_other" itself is METRICS_LABEL_OTHER. */
uint32_t metrics_labels_number(struct metrics_labels *labels, uint64_t hash, struct slice a,
			       struct slice b);

/* A hash for values that have no number of their own. */
uint64_t metrics_labels_hash(struct slice a, struct slice b);

static inline uint32_t metrics_labels_count(const struct metrics_labels *labels)
{
	return atomic_load_explicit(&labels->count, memory_order_acquire);
}

#endif
