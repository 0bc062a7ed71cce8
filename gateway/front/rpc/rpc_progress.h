/* rpc_progress.h - what a caller is told while its request is under way (DESIGN 4.3).
 *
 * A caller that lists text/event-stream and sends a progress token is answered with an event stream:
 * `notifications/progress` events, and at last the answer itself. This is only about when one of them
 * is due and what it says: no I/O, time is an argument. Nothing is told before the request is admitted
 * and its provider has begun to stream, or PROGRESS_BEGIN_AFTER later: until then a refusal keeps its
 * HTTP status. */
#ifndef GATEWAY_FRONT_RPC_RPC_PROGRESS_H
#define GATEWAY_FRONT_RPC_RPC_PROGRESS_H

#include "codec/base/arena.h"
#include "codec/base/clock.h"

/* Between two notifications: at least, and at most (the contract says 15 s); and from admission to the
 * first, when the provider says nothing. */
#define PROGRESS_EVERY (250 * MSEC)
#define PROGRESS_SILENCE_MAX (12 * SEC)
#define PROGRESS_BEGIN_AFTER (5 * SEC)

enum { PROGRESS_TOKEN_MAX = 1024 }; /* bytes of a token that is echoed with every notification */

enum rpc_progress_phase {
	RPC_PROGRESS_UNWANTED,
	RPC_PROGRESS_WANTED,   /* the caller gets an event stream */
	RPC_PROGRESS_ADMITTED, /* likewise, and limits were taken */
	RPC_PROGRESS_BEGUN, /* likewise, and the first event was written: status and headers are away */
};

struct rpc_progress {
	enum rpc_progress_phase phase : 8;
	bool streams;   /* a provider has begun to stream */
	uint32_t front; /* bytes of `text` before the number */
	nsec_t notified_at;
	uint64_t output;    /* bytes that the attempt under way has brought */
	uint64_t notified;  /* the last notification's number */
	char *text;         /* the notification, in the arena */
	nsec_t admitted_at; /* the first time */
};

/* The caller is to be told. `token` is raw JSON, echoed as it is. False: no memory. */
MUST_USE bool rpc_progress_want(struct rpc_progress *progress, struct slice token,
				struct arena *into);

/* Limits were taken for an attempt; the first one counts. */
void rpc_progress_admit(struct rpc_progress *progress, nsec_t now);

static inline bool rpc_progress_wanted(const struct rpc_progress *progress)
{
	return progress->phase != RPC_PROGRESS_UNWANTED;
}

static inline bool rpc_progress_begun(const struct rpc_progress *progress)
{
	return progress->phase == RPC_PROGRESS_BEGUN;
}

/* The caller has been told of less than there is. */
bool rpc_progress_rose(const struct rpc_progress *progress);

/* When the next notification is to be written; NSEC_NEVER: not until something changes, in the past:
 * now. */
nsec_t rpc_progress_due(const struct rpc_progress *progress);

/* The notification as an event, and notes that it is being written: unchanged until the next call. Its
 * number is the bytes of output so far, more than the one before whatever happens: another attempt
 * begins anew. */
struct slice rpc_progress_notify(struct rpc_progress *progress, nsec_t now);

#endif
