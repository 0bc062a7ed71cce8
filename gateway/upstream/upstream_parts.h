/* upstream_parts.h - what upstream.c, upstream_end.c, upstream_extra.c and upstream_read.c share: a call's timer, its end,
 * and what its connection brings. Private to upstream*.c. */
#ifndef GATEWAY_UPSTREAM_UPSTREAM_PARTS_H
#define GATEWAY_UPSTREAM_UPSTREAM_PARTS_H

#include "gateway/upstream/upstream_pool.h"

/* ---- upstream.c ---- */

static inline nsec_t upstream_now(const struct upstream_call *call)
{
	return net_now(call->pool->up->loop);
}

/* Sets the call's timer to what is due next, unless it fires before that; takes it back. */
void upstream_call_arm(struct upstream_call *call);
void upstream_call_disarm(struct upstream_call *call);

/* The task of a pool's queue: begins its first calls, as many as there are connections for. */
void upstream_serve(struct net_task *task);

/* So many bytes of its answer are kept now; none when `done` is called. */
static inline void upstream_keeps(struct upstream_call *call, size_t bytes)
{
	if (call->kept == bytes)
		return;
	struct upstream *up = call->pool->up;
	up->kept += bytes;
	up->kept -= call->kept;
	call->kept = bytes;
}

/* ---- upstream_end.c ---- */

/* The outcome is there; `done` comes at the end of this turn, so that no caller runs in the midst of
 * a pool's work. A connection that the call still has is aborted. */
void upstream_call_end(struct upstream_call *call, enum err err, const char *detail);

/* ---- upstream_extra.c: calls that have an `extra` ---- */

/* Whether the address that the call is bound to, if any, is one of the host's, as far as these are known. */
bool upstream_extra_has_address(const struct upstream_call *call);

/* As upstream_pool_next_address: the address that the call is bound to once, or any. */
uint32_t upstream_extra_next_address(const struct upstream_conn *conn);

/* A kept connection that will do, off the idle list. NULL: there is none; then there is a place for a new one
 * where there was an idle one that would not do. */
struct upstream_conn *upstream_extra_take(const struct upstream_call *call);

/* Its answer's head is in `bytes`: that part of the outcome. */
void upstream_extra_note(struct upstream_conn *conn, const char *bytes);

/* The reader waits behind the head: the same. False: there is no body, and the reader does not wait any more. */
bool upstream_extra_head(struct upstream_conn *conn, const char *bytes);

/* The call's owner has said how the body is to come. */
void upstream_extra_go_on(struct upstream_conn *conn);

/* ---- upstream_read.c ---- */

/* Reads what is there. True when the call is over, and conn perhaps gone. */
bool upstream_read(struct upstream_conn *conn);

/* Its connection is about to bring something: `arg` is what net_connect was given. */
void upstream_prefetch(const void *arg, enum prefetch step);

/* The answer is complete. */
void upstream_answered(struct upstream_conn *conn);

/* The rest of an answer whose call is over; at its end, or when it takes too long, the connection is
 * kept or closed. */
void upstream_drain_read(struct upstream_conn *conn);
void upstream_drain_end(struct upstream_conn *conn, bool clean);

#endif
