/* limits.h - every compiled-in bound of the gateway, with the relations that must hold. */
#ifndef GATEWAY_LIMITS_H
#define GATEWAY_LIMITS_H

#include "codec/base/arena.h"
#include "codec/json_write.h"

enum {
	REQUESTS_MAX = 32768,         /* in flight per worker; beyond: 503 */
	REQUEST_ARENA_MAX = 64 << 20, /* bytes a request's typed slices and small texts may take */
	ARENA_CHUNKS_KEPT = 4096,     /* free chunks a worker keeps */
	WORKER_TURN_MAX_MS = 1000,    /* the loop turns at least that often: healthz and watchdog */
	REQUEST_ID_HEX = 32,
	TRACEPARENT_LEN = 55, /* version 00 of W3C Trace Context */
};

_Static_assert(GATHER_IOVEC_MAX + 1 < 1024, "head and body must fit one writev (IOV_MAX)");
_Static_assert(REQUEST_ARENA_MAX > 64 * ARENA_CHUNK_BYTES, "an arena holds many chunks");

#endif
