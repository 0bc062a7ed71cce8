/* rate_reset.h - the forms in which providers say when a limit is renewed (contract/providers.md 2, 3). */
#ifndef ROUTING_RATE_RESET_H
#define ROUTING_RATE_RESET_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"
#include "codec/base/slice.h"
#include "codec/dialect/dialect.h"

/* Nanoseconds from now: of RFC 3339 ("2026-11-22T06:00:00Z"), a Go duration ("6m0s", "20ms"), seconds
 * ("1.5"), or seconds or milliseconds since the epoch; 0 when the time is over. `wall_ns`: now, since
 * the epoch. False: none of these. */
MUST_USE bool rate_reset(struct slice text, uint64_t wall_ns, nsec_t *in);

/* How long to wait after a rate limit of which only these headers tell, `rates` may be NULL: until everything is
 * renewed of which nothing remains; where something remains of all of them, or nobody says, until the first is. 0: they
 * tell nothing. */
nsec_t rate_reset_wait(const struct rate_header rates[RATE_KINDS], uint64_t wall_ns);

#endif
