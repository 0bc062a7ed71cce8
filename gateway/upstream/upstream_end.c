/* upstream_end.c - how a call ends, and how its owner is told of it. */
#include "gateway/upstream/upstream_parts.h"

#include "codec/base/must.h"
#include "gateway/base/bounds.h"

#include <stdlib.h>

/* The part that has come of an answer that will not be heard to its end. */
static void note_seen(struct upstream_call *call)
{
	const struct upstream_http *http = &call->conn->http;
	size_t len, blank = 0;

	if (call->state != UPSTREAM_BODY || call->in_pieces || http->status / 100 != 2)
		return;
	const char *body = net_input(call->conn->net, &len) + http->body;
	must(http->body + http->size <= len);
	while (blank < http->size && memchr(" \t\r\n", body[blank], 4) != NULL)
		blank++;
	if (blank < http->size)
		call->seen = http->size - blank + http->left;
}

/* Off the queue, the connection and the timer. A connection that it still has is in the midst of something:
 * a whole answer has left it before. */
static void call_detach(struct upstream_call *call)
{
	struct upstream_conn *conn = call->conn;

	upstream_call_disarm(call);
	if (call->state == UPSTREAM_QUEUED)
		upstream_calls_remove(&call->pool->queue, call);
	if (conn != NULL)
		note_seen(call);
	call->state = UPSTREAM_IDLE;
	call->conn = NULL;
	if (conn != NULL) {
		upstream_keeps(call, 0);
		upstream_conn_abort(conn);
	}
}

/* On which list it is once it is over. */
static struct upstream_calls *over_of(const struct upstream_call *call)
{
	struct upstream *up = call->pool->up;

	return call->answer.body.len <= TURN_SHORT ? &up->over : &up->over_long;
}

static void deliver_soon(struct upstream *up)
{
	if (!up->delivering)
		net_soon(up->loop, &up->deliver);
	up->delivering = true;
}

/* The outcome is there; `done` comes at the end of this turn, so that no caller runs in the midst of
 * a pool's work. */
void upstream_call_end(struct upstream_call *call, enum err err, const char *detail)
{
	struct upstream_pool *pool = call->pool;

	call->err = err;
	call->detail = detail;
	call->done_at = upstream_now(call);
	call_detach(call);
	upstream_calls_add(over_of(call), call);
	deliver_soon(pool->up);
	upstream_serve_soon(pool);
}

/* Those that are there, at least one and no more than are enough for a turn. */
static void deliver(struct upstream_calls *over)
{
	size_t bodies = 0;

	for (uint32_t left = over->count; left != 0 && over->first != NULL; left--) {
		struct upstream_call *call = over->first;
		struct upstream_pool *pool = call->pool;
		bodies += call->answer.body.len;
		upstream_keeps(call, 0);
		upstream_calls_remove(over, call);
		pool->calls--;
		upstream_pool_let_go(pool);
		call->done(call);
		if (bodies >= TURN_BODIES)
			return;
	}
}

static void on_deliver(struct net_task *task)
{
	struct upstream *up = CONTAINER_OF(task, struct upstream, deliver);

	up->delivering = false; /* those that end meanwhile come with the next turn */
	deliver(&up->over);
	deliver(&up->over_long);
	if (up->over.first != NULL || up->over_long.first != NULL)
		deliver_soon(up);
}

void upstream_cancel(struct upstream_call *call)
{
	struct upstream_pool *pool = call->pool;

	if (call->state == UPSTREAM_IDLE && call->prev == NULL)
		return;
	upstream_keeps(call, 0);
	if (call->state == UPSTREAM_IDLE)
		upstream_calls_remove(over_of(call), call);
	else
		call_detach(call);
	pool->calls--;
	upstream_serve_soon(pool);
	upstream_pool_let_go(pool);
}

void upstream_finish(struct upstream_call *call)
{
	must(call->state == UPSTREAM_IDLE && call->prev == NULL);
	net_buffer_free(call->buffer);
	call->buffer = NULL;
	if (call->answer.status != 0)
		call->answer = (struct provider_answer){ 0 };
	if (call->extra != NULL)
		call->extra->fields = slice_of(NULL, 0);
}

/* ---- all calls of a worker -------------------------------------------------------------------- */

struct upstream *upstream_new(struct net_loop *loop, const struct upstream_limits *limits)
{
	struct upstream *up = calloc(1, sizeof(*up));

	if (up == NULL)
		return NULL;
	up->loop = loop;
	up->limits = *limits;
	up->kept_max = SIZE_MAX;
	up->deliver.run = on_deliver;
	up->serve = upstream_serve;
	upstream_calls_init(&up->over);
	upstream_calls_init(&up->over_long);
	return up;
}
