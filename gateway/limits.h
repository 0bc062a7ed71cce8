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
	/* A client's connection over HTTP/1.1. */
	HTTP1_HEAD_MAX =
		32 << 10, /* request line and headers; over HTTP/2 one frame: 16 KiB packed */
	HTTP1_EARLY_MAX = 64 << 10, /* pipelined behind a request in flight; then reading stops */
	LINGER_BYTES_MAX =
		32 << 20, /* taken from a client whose request was refused while it sent */
};

_Static_assert(GATHER_IOVEC_MAX + 1 < 1024, "head and body must fit one writev (IOV_MAX)");
_Static_assert(REQUEST_ARENA_MAX > 64 * ARENA_CHUNK_BYTES, "an arena holds many chunks");

#endif
