#include "gateway/upstream/upstream.h"

#include "codec/base/must.h"
#include "gateway/upstream/upstream_parts.h"

const struct upstream_limits upstream_limits_default = {
	.connections_max = 4096,
	.idle_max = 1024,
	.queue_max = 4096,
	.idle_for = 60 * SEC,
	.fresh_for = 4 * SEC, /* Node's and Python's servers close after 5 s */
	.head_max = (size_t)64 << 10,
	.body_max = (size_t)16 << 20,
};

static const struct net_conn_events conn_events;

static void conn_dial(struct upstream_conn *conn, const char *failure);

/* ---- timeouts --------------------------------------------------------------------------------
 * One timer per call. It is set again only when it would fire too late; when it fires too early, it
 * is set to what is due then. */

static nsec_t after(nsec_t since, nsec_t wait)
{
	nsec_t due;

	return __builtin_add_overflow(since, wait, &due) ? NSEC_NEVER : due;
}

/* When the present state has lasted too long. */
static nsec_t state_due(const struct upstream_call *call)
{
	const struct provider_timeouts *timeouts = &call->timeouts;

	must(call->state != UPSTREAM_IDLE);
	switch (call->state) {
	case UPSTREAM_QUEUED: /* for an address no longer than for a connection to it */
		return after(call->last_progress, call->pool->target_count != 0
							  ? call->pool->queue_deadline
							  : timeouts->connect);
	case UPSTREAM_CONNECT:
		return call->conn->give_up;
	case UPSTREAM_SENT:
		if (call->first_byte_at == 0)
			return after(call->last_progress, timeouts->first_byte);
		return call->extra == NULL ? after(call->last_progress, timeouts->idle)
					   : after(call->sent_at, timeouts->first_byte);
	case UPSTREAM_BODY:
		return call->paused ? NSEC_NEVER : after(call->last_progress, timeouts->idle);
	case UPSTREAM_IDLE:
		break;
	}
	return NSEC_NEVER;
}

static nsec_t attempt_due(const struct upstream_call *call)
{
	return call->state == UPSTREAM_QUEUED || call->in_pieces
		       ? NSEC_NEVER
		       : after(call->attempt_started, call->timeouts.total);
}

static nsec_t min_of(nsec_t a, nsec_t b)
{
	return a < b ? a : b;
}

void upstream_call_arm(struct upstream_call *call)
{
	nsec_t due = min_of(call->deadline, min_of(attempt_due(call), state_due(call)));

	if (due < call->timer.due)
		net_timer_set(call->pool->up->loop, &call->timer, due);
}

void upstream_call_disarm(struct upstream_call *call)
{
	net_timer_stop(call->pool->up->loop, &call->timer);
	call->timer.due = NSEC_NEVER;
}

static void on_deadline(struct upstream_call *call)
{
	static const char *const details[] = {
		[UPSTREAM_IDLE] = "the deadline had passed when the call began",
		[UPSTREAM_QUEUED] = "the deadline passed while the call waited for a connection",
		[UPSTREAM_CONNECT] = "the deadline passed while connecting",
		[UPSTREAM_SENT] = "the deadline passed before the provider answered",
		[UPSTREAM_BODY] = "the deadline passed within the provider's answer",
	};

	upstream_call_end(call, ERR_DEADLINE, details[call->state]);
}

static void on_connect_late(struct upstream_call *call)
{
	static const char failure[] = "no connection within the connect timeout";
	struct upstream_conn *conn = call->conn;

	upstream_pool_note_failed(conn);
	net_abort(conn->net);
	conn->net = NULL;
	if (upstream_now(call) >= after(call->last_progress, call->timeouts.connect))
		upstream_call_end(call, ERR_PROVIDER_DOWN, failure);
	else /* this address has had its share of the time */
		conn_dial(conn, failure);
}

/* The wait begins anew. */
static void call_rest(struct upstream_call *call)
{
	call->last_progress = upstream_now(call);
	upstream_call_arm(call);
}

static void on_queue_late(struct upstream_call *call)
{
	if (call->pool->target_count == 0)
		upstream_call_end(call, ERR_PROVIDER_NO_ATTEMPT,
				  "no address of the host within the connect timeout");
	else if (upstream_pool_places(call->pool) == 0 && call->pool->idle == 0)
		upstream_call_end(call, ERR_BUSY,
				  "no connection was free within the queue's deadline");
	else /* it waits for the end of a turn, not for a place */
		call_rest(call);
}

static const char *stall_detail(const struct upstream_call *call)
{
	if (call->first_byte_at == 0)
		return "no answer byte within the first_byte timeout";
	return call->state == UPSTREAM_SENT && call->extra != NULL
		       ? "the answer's head was not whole within the first_byte timeout"
		       : "the answer stalled for longer than the idle timeout";
}

static void on_state_late(struct upstream_call *call)
{
	switch (call->state) {
	case UPSTREAM_QUEUED:
		on_queue_late(call);
		break;
	case UPSTREAM_CONNECT:
		on_connect_late(call);
		break;
	case UPSTREAM_SENT:
	case UPSTREAM_BODY:
		call->timed_out = true;
		upstream_call_end(call, ERR_PROVIDER_DOWN, stall_detail(call));
		break;
	case UPSTREAM_IDLE:
		break;
	}
}

static void on_attempt_late(struct upstream_call *call)
{
	call->timed_out = true;
	upstream_call_end(call, ERR_PROVIDER_DOWN,
			  "the attempt took longer than its total timeout");
}

static void on_timer(struct net_timer *timer)
{
	struct upstream_call *call = CONTAINER_OF(timer, struct upstream_call, timer);
	nsec_t now = upstream_now(call);

	must(call->state != UPSTREAM_IDLE);
	timer->due = NSEC_NEVER;
	if (now >= call->deadline)
		on_deadline(call);
	else if (now >= attempt_due(call))
		on_attempt_late(call);
	else if (now >= state_due(call))
		on_state_late(call);
	else
		upstream_call_arm(call);
}

/* ---- beginning ------------------------------------------------------------------------------- */

/* The connection is open and clean. */
static void conn_send(struct upstream_conn *conn, struct upstream_call *call)
{
	const struct upstream_limits *limits = &conn->pool->up->limits;

	conn->call = call;
	conn->foreign = call->extra != NULL;
	conn->heard = false;
	call->conn = conn;
	call->state = UPSTREAM_SENT;
	call->bytes_sent = true;
	call->sent_at = call->last_progress = upstream_now(call);
	upstream_http_init(&conn->http,
			   &(struct upstream_http_limits){ .head_max = limits->head_max,
							   .body_max = limits->body_max });
	if (call->head != NULL)
		upstream_http_ask(&conn->http);
	(void)net_write(conn->net, call->request, call->request_count);
	upstream_call_arm(call);
}

/* Each address gets its share of what is left of the connect timeout, so that one that is silent
 * does not cost the call. */
static nsec_t share_of_connect(const struct upstream_conn *conn)
{
	const struct upstream_call *call = conn->call;
	nsec_t now = upstream_now(call), due = after(call->last_progress, call->timeouts.connect);
	uint32_t untried = upstream_pool_untried(conn->pool, conn);

	if (call->extra != NULL && call->extra->pin != NULL)
		untried = 1;
	return due == NSEC_NEVER || due <= now || untried < 2 ? due : now + (due - now) / untried;
}

/* Dials the next address, or ends the call with `failure`, what became of the last one. */
static void conn_dial(struct upstream_conn *conn, const char *failure)
{
	struct upstream_pool *pool = conn->pool;
	uint32_t n = conn->call->extra == NULL ? upstream_pool_next_address(pool, conn)
					       : upstream_extra_next_address(conn);

	if (n == UPSTREAM_NO_ADDRESS) {
		upstream_call_end(conn->call, ERR_PROVIDER_DOWN, failure);
		return;
	}
	conn->give_up = share_of_connect(conn);
	upstream_pool_note_dialled(conn, n);
	const struct upstream_address *to = &pool->targets[n].address;
	conn->net = net_connect(pool->up->loop, (const struct sockaddr *)&to->address, to->len,
				pool->tls, pool->server_name, &conn_events, conn);
	if (conn->net == NULL)
		upstream_call_end(conn->call, ERR_PROVIDER_NO_ATTEMPT,
				  "no memory or descriptor for a connection");
	else
		upstream_call_arm(conn->call);
}

static void call_connect(struct upstream_call *call)
{
	struct upstream_conn *conn = upstream_conn_new(call->pool);

	if (conn == NULL) {
		upstream_call_end(call, ERR_PROVIDER_NO_ATTEMPT, "no memory for a connection");
		return;
	}
	conn->call = call;
	conn->foreign = call->extra != NULL;
	call->conn = conn;
	call->state = UPSTREAM_CONNECT; /* a retry comes from elsewhere */
	call->last_progress = upstream_now(call);
	conn_dial(conn, NULL);
}

/* Gives the call a connection, kept or new. False: it has to wait for one. */
static bool call_begin(struct upstream_call *call)
{
	struct upstream_pool *pool = call->pool;
	nsec_t now = upstream_now(call);

	if (now >= call->deadline) { /* nothing may be sent, though the timer has not fired yet */
		on_deadline(call);
		return true;
	}
	if (call->extra != NULL && !upstream_extra_has_address(call)) {
		call->extra->gone = true;
		upstream_call_end(call, ERR_PROVIDER_NO_ATTEMPT,
				  "the address is not the host's any more");
		return true;
	}
	struct upstream_conn *conn =
		call->extra == NULL ? upstream_pool_take(pool) : upstream_extra_take(call);
	if (conn == NULL && (upstream_pool_places(pool) == 0 || !upstream_pool_may_dial(pool)))
		return false;
	if (call->state == UPSTREAM_QUEUED)
		upstream_calls_remove(&pool->queue, call);
	call->state = UPSTREAM_CONNECT; /* on no list from here on */
	call->queued_ns = now - call->attempt_started;
	call->attempt_started = now;
	if (conn != NULL)
		conn_send(conn, call);
	else
		call_connect(call);
	return true;
}

void upstream_serve(struct net_task *task)
{
	struct upstream_pool *pool = CONTAINER_OF(task, struct upstream_pool, serve);

	while (pool->queue.first != NULL && call_begin(pool->queue.first))
		;
	if (upstream_pool_places(pool) != 0) /* for the next turn's */
		upstream_serve_soon(pool);
}

static void call_reset(struct upstream_call *call, struct upstream_pool *pool)
{
	nsec_t now = net_now(pool->up->loop);

	upstream_outcome(call, ERR_OK, NULL);
	call->paused = false;
	call->wish = UPSTREAM_WANTED;
	call->pool = pool;
	call->conn = NULL;
	call->timer.fire = on_timer;
	call->timer.due = NSEC_NEVER;
	call->attempt_started = call->last_progress = now;
}

/* Those that only wait for the end of a turn do not count: for an idle connection, or to be dialled for. */
static uint64_t queue_room(const struct upstream_pool *pool)
{
	return (uint64_t)pool->queue_max + upstream_pool_places(pool) + pool->idle;
}

void upstream_start(struct upstream_pool *pool, struct upstream_call *call)
{
	must(call->state == UPSTREAM_IDLE && call->prev == NULL && call->buffer == NULL);
	must(call->done != NULL && call->request_count != 0);
	must((call->head == NULL) == (call->piece == NULL));
	must(call->extra == NULL || call->head != NULL);
	call_reset(call, pool);
	pool->calls++;
	if (pool->queue.first == NULL && call_begin(call))
		return;
	if (pool->unresolved) {
		upstream_call_end(call, ERR_PROVIDER_NO_ATTEMPT,
				  "the host's name could not be resolved");
	} else if (pool->queue.count >= queue_room(pool)) {
		upstream_call_end(call, ERR_BUSY, "too many calls wait for a connection");
	} else {
		call->state = UPSTREAM_QUEUED;
		upstream_calls_add(&pool->queue, call);
		upstream_call_arm(call);
		if (upstream_pool_places(pool) != 0)
			upstream_serve_soon(pool);
	}
}

/* ---- what the connection tells --------------------------------------------------------------- */

static void on_opened(struct net_conn *net, void *arg)
{
	struct upstream_conn *conn = arg;
	size_t len;

	upstream_pool_note_opened(conn);
	(void)net_input(net, &len);
	if (len != 0)
		upstream_call_end(conn->call, ERR_PROVIDER_ANSWER,
				  "the peer spoke before the request");
	else
		conn_send(conn, conn->call);
}

static void on_readable(struct net_conn *net, void *arg)
{
	struct upstream_conn *conn = arg;

	(void)net;
	if (conn->draining)
		upstream_drain_read(conn);
	else if (conn->call == NULL)
		upstream_pool_lose(conn); /* nobody asked */
	else
		(void)upstream_read(conn);
}

/* Who answers before all has left is not asked again: see upstream_answered. */
static void on_written(struct net_conn *net, void *arg)
{
	(void)net;
	(void)arg;
}

/* A connection that could not be opened. A refused certificate is final: the other addresses are of
 * the same host. */
static void conn_refused(struct upstream_conn *conn, enum net_end end)
{
	const char *failure = net_conn_error(conn->net);

	upstream_pool_note_failed(conn);
	net_close(conn->net);
	conn->net = NULL;
	if (end == NET_END_TLS)
		upstream_call_end(conn->call, ERR_PROVIDER_DOWN, failure);
	else
		conn_dial(conn, failure);
}

/* A kept connection may have been closed by the peer before it could see this request; once, that
 * is not the provider's failure (RFC 9112 9.3.1). */
static void call_retry(struct upstream_call *call)
{
	struct upstream_conn *conn = call->conn;

	must(!call->retried); /* the new connection is not a kept one */
	call->retried = true;
	call->sent_at = 0; /* to whoever answers next */
	call->conn = NULL;
	upstream_conn_drop(conn);
	call_connect(call);
}

/* Closed under a call that was sent. */
static void conn_cut(struct upstream_conn *conn, enum net_end end)
{
	struct upstream_call *call = conn->call;

	if (upstream_read(conn))
		return;
	if (end == NET_END_CLOSED && upstream_http_end(&conn->http) == UPSTREAM_HTTP_DONE)
		upstream_answered(conn);
	else if (conn->used && !conn->heard && call->extra == NULL)
		call_retry(call);
	else
		upstream_call_end(call, ERR_PROVIDER_DOWN,
				  !conn->heard ? "the connection was closed before any answer byte"
					       : "the answer was cut short");
}

static void on_ended(struct net_conn *net, enum net_end end, void *arg)
{
	struct upstream_conn *conn = arg;

	(void)net;
	if (conn->draining)
		upstream_drain_end(conn, false);
	else if (conn->call == NULL)
		upstream_pool_lose(conn);
	else if (conn->open)
		conn_cut(conn, end);
	else
		conn_refused(conn, end);
}

static const struct net_conn_events conn_events = {
	.opened = on_opened,
	.readable = on_readable,
	.written = on_written,
	.ended = on_ended,
	.prefetch = upstream_prefetch,
};

/* ---- addresses ------------------------------------------------------------------------------- */

void upstream_set_addresses(struct upstream_pool *pool, const struct upstream_address *addresses,
			    uint32_t count)
{
	upstream_pool_set_targets(pool, addresses, count);
	while (pool->unresolved && pool->queue.first != NULL)
		upstream_call_end(pool->queue.first, ERR_PROVIDER_NO_ATTEMPT,
				  "the host's name could not be resolved");
	upstream_serve_soon(pool);
}

void upstream_resolved(struct upstream *up, struct slice identity,
		       const struct upstream_address *addresses, uint32_t count)
{
	struct upstream_pool *pool = upstream_pool_find(up, identity);

	if (pool != NULL)
		upstream_set_addresses(pool, addresses, count);
}
