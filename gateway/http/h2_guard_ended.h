/* h2_guard_ended.h - streams that we ended before their client did, and what still comes of them.
 *
 * The client may not know it yet: frames of such a stream are not an error (RFC 9113 5.1, "closed"). Of each
 * h2o must not see the DATA. A stream that is answered before its body has ended is not reset at once, since curl 7.88 would
 * not show the answer. A client that has not ended it after half of the patience is asked to by a reset (RFC 9113 8.1), and
 * closed if it sends more of it after as long again. The list has a bound; the stream that was ended first makes room.
 * Pure. */
#ifndef GATEWAY_HTTP_H2_GUARD_ENDED_H
#define GATEWAY_HTTP_H2_GUARD_ENDED_H

#include "codec/base/attr.h"
#include "codec/base/clock.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than h2o has streams on a connection. */
enum { GUARD_ENDED_MAX = 128 };

/* A stream's window (16 MiB) is never opened again once it has ended: a client that sends more breaks flow
 * control. */
enum { GUARD_DROPPED_MAX = 16 << 20 };

struct guard_ended {
	nsec_t since; /* it was answered, or `asked`; 0: it was reset instead of an answer */
	uint32_t stream;
	uint32_t dropped; /* bytes of its DATA that came since */
	bool asked;       /* by a reset, to send no more */
	bool refused;     /* h2o is told that its body ends, and answers it */
	bool no_room;     /* of a refused one: there was none for its body; else it is too large */
	bool eaten;       /* h2o has seen all of it that it will */
	bool over;        /* nothing more will come */
};

struct guard_ends {
	struct guard_ended *list; /* room for GUARD_ENDED_MAX; NULL until there is one */
	uint32_t count;
	uint32_t oldest; /* makes room once the list is full */
};

void guard_ends_fini(struct guard_ends *ends);

struct guard_ended *guard_ends_find(const struct guard_ends *ends, uint32_t stream);

/* NULL: no memory, or all that are there are still to be seen by h2o. One that is there already is returned as it
 * is. */
MUST_USE struct guard_ended *guard_ends_add(struct guard_ends *ends, uint32_t stream);

/* Whether the client has had half of `patience` to stop since the stream was answered, or since it was asked to. */
static inline bool guard_ended_late(const struct guard_ended *ended, nsec_t patience, nsec_t now)
{
	return ended->since != 0 && now - ended->since > patience / 2;
}

/* The first stream from *at on that is late and whose client was not asked to stop yet, and its place; NULL: there is
 * none. */
struct guard_ended *guard_ends_late(const struct guard_ends *ends, uint32_t *at, nsec_t patience,
				    nsec_t now);

/* H2o has eaten what was judged, but for a header block of the stream `waiting` (0: there is none) that has not come to its
 * end: forgets those that are over. */
void guard_ends_ate(struct guard_ends *ends, uint32_t waiting);

#endif
