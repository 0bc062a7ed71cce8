/* bounds.h - every compiled-in bound of the gateway, with the relations that must hold. */
#ifndef GATEWAY_BASE_BOUNDS_H
#define GATEWAY_BASE_BOUNDS_H

#include "codec/base/arena.h"
#include "codec/json/json_write.h"

enum {
	REQUESTS_MAX = 32768, /* in flight per worker; beyond: 503 */
	/* Of these, requests that wait for a key that cools, before their tenants' limits were asked;
	 * beyond: the provider's 503. */
	WAITING_EARLY_MAX = 1024,
	STREAMS_MAX = 12288, /* answers at once that come as streams, likewise */
	STREAM_ANSWER_MAX =
		12 << 20, /* bytes of an answer that comes as one: is kept up to twice */
	STREAM_EVENT_MAX =
		16 << 20, /* bytes of one of its events: as many as of an answer in one piece */
	REQUEST_ARENA_MAX = 64 << 20, /* bytes a request's typed slices and small texts may take */
	ARENA_CHUNKS_KEPT = 4096,     /* free chunks a worker keeps */
	WORKER_TURN_MAX_MS = 1000,    /* the loop turns at least that often: healthz and watchdog */
	/* Reading a body takes up to 15 ns a byte, so that fifteen large ones that end at once would hold
	 * everybody for seconds. So much is begun in a turn of the loop: of requests, before anybody's limits
	 * are asked, and of answers. What is too much for a turn begins in the next ones; those that are
	 * short do not wait for it. */
	TURN_BODIES = 2 << 20,
	TURN_SHORT = 64 << 10,
	/* Up to so much a request's body may have the last sixteenth of limits.held_bytes. */
	BODY_SMALL = 64 << 10,
	REQUEST_ID_HEX = 32,
	TRACEPARENT_LEN = 55, /* version 00 of W3C Trace Context */
	/* A client's connection over HTTP/1.1. */
	HTTP1_HEAD_MAX = 32 << 10,  /* request line and headers; over HTTP/2 as many, packed */
	HTTP1_EARLY_MAX = 64 << 10, /* pipelined behind a request in flight; then reading stops */
	/* A reader's pace, once it has used up its patience (10 s): a modem's. One that is slower holds
	 * an answer for as long as it likes by taking a byte now and then. */
	ANSWER_BYTES_PER_S_MIN = 4096,
	/* Bytes of others that may pass an answer over HTTP/2: h2o takes turns, 16 KiB each, and there are
	 * 100 streams. */
	ANSWER_PASSED_MAX = 2 << 20,
	/* So many times the patience (10 min) an answer may be on its way, however much else its
	 * connection takes meanwhile: beside fast ones a single answer could be held for ever. */
	ANSWER_PATIENCES_MAX = 60,
	/* Where connections are at their cap, one that has been idle for a fifth of the patience (2 s)
	 * makes room for another. */
	IDLE_PATIENCE_PART = 5,
	LINGER_BYTES_MAX =
		32 << 20, /* taken from a client whose request was refused while it sent */
	/* Kept for whoever comes back, in this process (state_memory.h); beyond, those not used for
	 * longest go. */
	KEPT_SESSIONS_MAX = 1 << 18,
	KEPT_LOOPS_MAX = 1 << 18,
	KEPT_CALLS_MAX = 1 << 20, /* issued to callers, who are to come back with their results */
	/* A tenant begins as many a minute at one gateway as it may make requests, within these bounds, and
	 * so many at once. */
	SESSIONS_PER_MINUTE_MIN = 600,
	SESSIONS_PER_MINUTE_MAX = 6000,
	SESSIONS_BURST = 1000,
};

_Static_assert(GATHER_IOVEC_MAX + 1 < 1024, "head and body must fit one writev (IOV_MAX)");
_Static_assert(WAITING_EARLY_MAX <= REQUESTS_MAX / 16, "who waits leaves room for the others");
_Static_assert(REQUEST_ARENA_MAX > 64 * ARENA_CHUNK_BYTES, "an arena holds many chunks");

#endif
