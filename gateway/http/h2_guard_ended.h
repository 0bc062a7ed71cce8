/* h2_guard_ended.h - streams that we ended before their client did, and what still comes of them.
 *
 * The client may not know it yet: frames of such a stream are not an error (RFC 9113 5.1, "closed"). Of each
 * h2o must not see the DATA. The list has a bound; the stream that was ended first makes room. Pure. */
#ifndef GATEWAY_HTTP_H2_GUARD_ENDED_H
#define GATEWAY_HTTP_H2_GUARD_ENDED_H

#include "codec/base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* More than h2o has streams on a connection. */
enum { GUARD_ENDED_MAX = 128 };

/* A stream's window (16 MiB) is never opened again once it has ended: a client that sends more breaks flow
 * control. */
enum { GUARD_DROPPED_MAX = 16 << 20 };

struct guard_ended {
	uint32_t stream;
	uint32_t dropped; /* bytes of its DATA that came since */
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

/* H2o has eaten what was judged: forgets those that are over. */
void guard_ends_ate(struct guard_ends *ends);

#endif
