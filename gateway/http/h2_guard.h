/* h2_guard.h - judges what a client does to libh2o 2.2.5 before the library sees it.
 *
 * One struct h2_guard per HTTP/2 connection. h2_guard_scan looks at every frame header once, h2o
 * eats the frames afterwards, h2_guard_ate is told how much. A verdict other than GUARD_PASS means:
 * close the connection, and let h2o see none of the input. What RFC 9113 calls a
 * stream error, or is the fault of one request alone, ends its stream: a request whose body is too large is made to
 * end early, so that it can be answered, others are reset, and frames that still come of them are dropped. Pure: no socket, no clock; http_h2o_edge
 * owns both. What it holds off, and why, is in h2_guard.c beside each rule. */
#ifndef GATEWAY_HTTP_H2_GUARD_H
#define GATEWAY_HTTP_H2_GUARD_H

#include "gateway/http/guard_room.h"
#include "gateway/http/h2_guard_ended.h"

enum guard_verdict {
	GUARD_FORBIDDEN_FRAME,  /* no client of ours needs it, and h2o cannot take it */
	GUARD_FLOOD,            /* too many frames that cost us more than the client */
	GUARD_UPLOADS,          /* too many bodies at once */
	GUARD_UNFINISHED_BYTES, /* too many bytes of bodies that do not end */
	GUARD_BODY_TOO_LARGE,   /* a body over the limit that goes on after it was refused */
	GUARD_SLOW,             /* a frame, body or request that comes too slowly */
	GUARD_STALLED,          /* the peer takes what we write too slowly, or not at all */
	GUARD_ABORTED,          /* too many requests that ended before their answer */
	GUARD_BAD_HEAD,         /* HTTP/1.1 that says badly where it ends: h1_guard.h */
	GUARD_EVICTED,          /* idle, and another needed the place */
	GUARD_CAUSES,
	GUARD_PASS = GUARD_CAUSES
};

/* Metric label; NULL for GUARD_PASS and beyond. */
const char *guard_verdict_name(enum guard_verdict verdict);

enum { GUARD_UPLOADS_MAX = 100, GUARD_UPLOADS_INLINE = 8 };

/* What h2o keeps of a request from its HEADERS on, besides what these carry: stream and pool. */
enum { GUARD_UPLOAD_COST = 6 << 10 };

enum { GUARD_FRAME_MAX = 16384 };    /* RFC 9113 4.2: we ask for no more */
enum { GUARD_BLOCK_MAX = 32 << 10 }; /* bytes of a header block, in however many frames */

/* A request whose body has not ended. */
struct guard_upload {
	struct guard_body body; /* counts what h2o keeps of it */
	uint32_t cost;          /* of that: before the first byte of the body */
	bool too_large;         /* its headers say so */
};

/* What one connection may use up; the requests' part of h2_guard has the figures, and why. */
struct guard_bounds {
	nsec_t token_every; /* gives back one */
	int32_t tokens_max;
	int32_t aborted_max, aborted_per_s; /* costs of requests that ended before their answer */
	uint32_t begun_first, begun_max; /* worked on at once: by a new connection, and at most */
	uint32_t bytes_times; /* of budget->conn_bytes_max; no more than the worker has */
};

/* The client is one caller, or a proxy that the operator trusts and that carries the requests of many. */
extern const struct guard_bounds guard_one_caller, guard_many_callers;

struct h2_guard {
	struct guard_holder holder; /* of its uploads, and of bodies that are held */
	const struct guard_bounds *bounds;
	size_t next;        /* offset of the next header to judge; may lie beyond the input */
	size_t block;       /* where a header block begins that has not come to its end */
	uint32_t block_len; /* 0: there is none */
	uint32_t block_stream;
	uint32_t split_len;   /* of a block that comes in several frames, so far */
	bool split;           /* the last of them has not come; then block_len is 0 */
	nsec_t partial_since; /* the frame at the end of the input is not complete; 0: it is */
	nsec_t began;
	nsec_t tokens_at;
	int32_t tokens;
	uint32_t small; /* frames that cost no tokens, in the second that began at small_at */
	nsec_t small_at;
	int32_t aborted; /* what requests cost that ended before their answer; below 0: more were answered */
	bool preface;      /* seen */
	bool oversize;     /* the frame judged last is longer than any may be */
	uint32_t dropping; /* of a frame that h2o does not see, so much is still to come */
	size_t dropped;    /* of all of them */
	uint32_t
		unopened; /* bytes of DATA for which the connection's window was not opened again */
	struct guard_ends ends;
	uint32_t upload_count;
	struct guard_upload *many; /* room for GUARD_UPLOADS_MAX; NULL: they are in `few` */
	struct guard_upload few[GUARD_UPLOADS_INLINE];
};

/* `bounds` outlive the guard. */
void h2_guard_init(struct h2_guard *guard, const struct guard_bounds *bounds, nsec_t now);
/* Gives back memory and the connection's share of the budget. */
void h2_guard_fini(struct h2_guard *guard, struct guard_budget *budget);

/* Judges the frame headers in `input` that were not judged before; `input` begins where h2o has
 * stopped eating, at the preface or a frame. A frame is judged as soon as its header is there, a header
 * block when it is there as a whole. What h2o must not see is taken out of the input, and *len becomes
 * less. */
MUST_USE enum guard_verdict h2_guard_scan(struct h2_guard *guard, struct guard_budget *budget,
					  char *input, size_t *len, nsec_t now);

/* Whether, and why, the request on this stream was made to end before its body had: what h2o has of it is not
 * what was sent. GUARD_BODY_TOO_LARGE, GUARD_UPLOADS, or GUARD_PASS: it was not. Ask before h2o has eaten
 * the rest of the input. */
enum guard_verdict h2_guard_refuses(const struct h2_guard *guard, uint32_t stream);

/* The stream is being reset by us: what its body took is free, and h2o sees no more of it. All that was judged
 * must have been eaten, but for the frame that h2o eats now. */
void h2_guard_reset(struct h2_guard *guard, struct guard_budget *budget, uint32_t stream);

/* Bytes by which the connection's window is to be opened, because h2o does not know that they came. */
uint32_t h2_guard_open_window(struct h2_guard *guard);

/* h2o has eaten the first `len` bytes, whole frames. */
void h2_guard_ate(struct h2_guard *guard, size_t len);

/* Once a second, while input is being read: has a frame become too slow? Bodies that have end early. Gives back
 * memory that is not needed, and forgives a few requests that were given up. */
MUST_USE enum guard_verdict h2_guard_check_pace(struct h2_guard *guard, struct guard_budget *budget,
						nsec_t now);

/* The first upload from *at on that has ended early, and its place; NULL: there is none. */
const struct guard_body *h2_guard_over(struct h2_guard *guard, uint32_t *at);

/* The upload in that place was answered at `now`; another one takes its place. What still comes of it is dropped. */
void h2_guard_forget(struct h2_guard *guard, struct guard_budget *budget, uint32_t at, nsec_t now);

/* How a request ended. */
enum guard_ending {
	GUARD_ANSWERED, /* with its whole answer */
	GUARD_UNBEGUN,  /* before anything was done for it */
	GUARD_GIVEN_UP, /* what was done for it was for nothing */
};

/* Once a second: a few that were given up cost no more. */
void h2_guard_forgive(struct h2_guard *guard);

MUST_USE enum guard_verdict h2_guard_request_over(struct h2_guard *guard, enum guard_ending ending);

/* Whether something may be done for another request, while `begun` are being worked on: a client must
 * not be able to have more work begun and then give it up than the guard bears. `age`: since its first
 * request; a new one may have less begun. */
bool h2_guard_may_begin(const struct h2_guard *guard, uint32_t begun, nsec_t age);

/* A request that may not begin yet keeps its body: it counts as one that is not complete, until it may, or is over. */
MUST_USE enum guard_verdict h2_guard_hold(struct h2_guard *guard, struct guard_budget *budget,
					  size_t body, nsec_t now);
void h2_guard_let_go(struct h2_guard *guard, struct guard_budget *budget, size_t body);

/* Of requests that have not come to their end, and of those held. */
static inline size_t h2_guard_bytes_max(const struct h2_guard *guard,
					const struct guard_budget *budget)
{
	const size_t most = budget->conn_bytes_max * guard->bounds->bytes_times;
	return most < budget->worker_bytes_max ? most : budget->worker_bytes_max;
}

/* For how long nothing more is to be read; 0: read on. Of what h2_guard_bytes_max allows, a new connection may have only
 * a part at once: bodies that have not ended, and what was dropped of those too large. */
nsec_t h2_guard_wait(const struct h2_guard *guard, const struct guard_budget *budget, nsec_t now);

/* In how long a connection of this age may have one more begun for its age; 0: it has all that its age gives. */
nsec_t h2_guard_more_in(const struct h2_guard *guard, nsec_t age);

#endif
