/* upstream_read.c - what a connection brings: an answer as a whole, one in pieces, or the rest of one
 * that nobody waits for any more. */
#include "gateway/upstream/upstream_parts.h"

#include "codec/base/must.h"
#include "gateway/base/bounds.h"

enum {
	/* Answers of so many bytes, head included, are copied into the memory of their request. */
	COPIED_MAX = 3 << 10,
	/* Of an answer in pieces the kernel keeps about so much, and so much comes in one turn. */
	UNREAD_MAX = 64 << 10,
	/* So much of a rest is dropped for the sake of the connection. */
	DRAIN_BYTES_MAX = 64 << 10,
};

/* And for so long. */
#define DRAIN_FOR SEC

/* ---- whole answers --------------------------------------------------------------------------- */

/* The bytes of a short answer, copied; NULL: it is none, or there is no room for it. */
static const char *copy_short(const struct upstream_conn *conn)
{
	const size_t size = conn->http.at;
	size_t len;

	if (conn->call->into == NULL || size > COPIED_MAX)
		return NULL;
	return arena_copy(conn->call->into, slice_of(net_input(conn->net, &len), size)).at;
}

/* Takes the input as the answer. *left: bytes behind it. False: no memory. */
static bool take_whole(struct upstream_conn *conn, size_t *left)
{
	struct upstream_call *call = conn->call;
	const char *bytes = copy_short(conn);
	size_t len;

	(void)net_input(conn->net, &len);
	*left = len - conn->http.at;
	if (bytes != NULL) {
		net_consume(conn->net, len);
		upstream_keeps(call, 0);
	} else {
		call->buffer = net_take_input(conn->net);
		if (call->buffer == NULL)
			return false;
		bytes = net_buffer_bytes(call->buffer, &len);
		upstream_keeps(call, len);
	}
	upstream_http_answer(&conn->http, bytes, &call->answer);
	call->answer.headers.rates = upstream_http_rates(&conn->http, bytes, call->into);
	call->answer.wall_s = net_wall_s(conn->pool->up->loop);
	if (call->extra != NULL)
		upstream_extra_note(conn, bytes);
	return true;
}

/* The call and its connection part. */
static void leave(struct upstream_conn *conn)
{
	conn->call->conn = NULL;
	conn->call = NULL;
}

/* The connection is kept only if nothing of this exchange can reach the next one: all sent, nothing
 * behind the answer, and both sides want to go on. */
void upstream_answered(struct upstream_conn *conn)
{
	struct upstream_call *call = conn->call;
	bool clean = conn->http.keep && !net_ending(conn->net) && !net_writing(conn->net);
	size_t left;

	upstream_resume(call); /* the connection's next answer is to be heard */
	if (call->in_pieces) {
		(void)net_input(conn->net, &left); /* the answer itself was consumed */
	} else if (!take_whole(conn, &left)) {
		upstream_call_end(call, ERR_BUSY, "no memory for the answer");
		return;
	}
	leave(conn);
	if (clean && left == 0)
		upstream_pool_keep(conn);
	else
		upstream_conn_drop(conn);
	upstream_call_end(call, ERR_OK, NULL);
}

/* ---- the rest of an answer ------------------------------------------------------------------- */

void upstream_drain_end(struct upstream_conn *conn, bool clean)
{
	struct upstream_pool *pool = conn->pool;

	must(conn->draining);
	conn->draining = false;
	net_timer_stop(pool->up->loop, &conn->drain_timer);
	if (clean)
		upstream_pool_keep(conn);
	else
		upstream_conn_abort(conn);
	upstream_serve_soon(pool);
	upstream_let_go(pool);
}

void upstream_drain_read(struct upstream_conn *conn)
{
	struct slice dropped;
	size_t len, left;
	char *bytes = net_input(conn->net, &len);

	enum upstream_http_verdict verdict = upstream_http_read(&conn->http, bytes, len);
	size_t used = upstream_http_take(&conn->http, bytes, &dropped);
	net_consume(conn->net, used);
	(void)net_input(conn->net, &left);
	conn->drained += used;
	if (verdict != UPSTREAM_HTTP_MORE)
		upstream_drain_end(conn, verdict == UPSTREAM_HTTP_DONE && left == 0);
	else if (conn->drained > DRAIN_BYTES_MAX)
		upstream_drain_end(conn, false);
}

static void on_drain_late(struct net_timer *timer)
{
	upstream_drain_end(CONTAINER_OF(timer, struct upstream_conn, drain_timer), false);
}

/* The call goes, the connection stays to read on; the pool must not go before it. */
static void drain_begin(struct upstream_conn *conn)
{
	leave(conn);
	conn->draining = true;
	conn->drained = 0;
	conn->drain_timer.fire = on_drain_late;
	upstream_hold(conn->pool);
	net_timer_set(conn->pool->up->loop, &conn->drain_timer,
		      net_now(conn->pool->up->loop) + DRAIN_FOR);
}

/* ---- answers in pieces ----------------------------------------------------------------------- */

static void begin_pieces(struct upstream_conn *conn)
{
	upstream_keeps(conn->call, 0);
	if (!conn->narrow) {
		net_limit_input(conn->net, UNREAD_MAX);
		conn->narrow = true;
	}
	if (conn->call->extra == NULL)
		net_coalesce(conn->net, true);
}

/* The call's owner says how the body is to come. */
static void ask_how(struct upstream_conn *conn, const char *bytes)
{
	struct upstream_call *call = conn->call;

	upstream_http_answer(&conn->http, bytes, &call->answer);
	call->answer.headers.rates = upstream_http_rates(&conn->http, bytes, call->into);
	call->answer.wall_s = net_wall_s(conn->pool->up->loop);
	if (call->extra == NULL || upstream_extra_head(conn, bytes)) {
		call->in_pieces = call->head(call);
		upstream_http_go_on(&conn->http, call->in_pieces);
	}
	call->answer.body = slice_of(NULL, 0);
	if (call->in_pieces)
		begin_pieces(conn);
	else
		call->answer = (struct provider_answer){ 0 };
	if (call->extra != NULL) {
		upstream_extra_go_on(conn);
		upstream_call_arm(call); /* the time for the head is over */
	}
}

static void hand_over(struct upstream_conn *conn, const char *bytes)
{
	struct upstream_call *call = conn->call;
	struct slice piece;
	size_t used = upstream_http_take(&conn->http, bytes, &piece);

	if (piece.len != 0)
		call->piece(call, piece);
	must(conn->call == call);
	net_consume(conn->net, used);
}

/* No more pieces are wanted. A rest that can be told from what follows it may save the connection. */
static void had_enough(struct upstream_conn *conn, bool complete)
{
	struct upstream_call *call = conn->call;
	bool good = call->wish == UPSTREAM_ENOUGH;

	if (complete && good) {
		upstream_answered(conn);
		return;
	}
	if (good && conn->http.keep && !net_ending(conn->net) &&
	    conn->http.verdict == UPSTREAM_HTTP_MORE && !net_writing(conn->net)) {
		upstream_resume(call);
		drain_begin(conn);
	}
	upstream_call_end(call, ERR_OK, NULL);
}

bool upstream_is_sent(const struct upstream_call *call)
{
	return call->conn != NULL && call->conn->net != NULL && call->conn->open &&
	       !net_writing(call->conn->net);
}

void upstream_pause(struct upstream_call *call)
{
	if (call->state != UPSTREAM_BODY || !call->in_pieces || call->paused)
		return;
	call->paused = call->held_up = true;
	net_pause(call->conn->net);
}

/* The peer did not have to say anything while nobody listened. */
void upstream_resume(struct upstream_call *call)
{
	if (call->state != UPSTREAM_BODY || !call->paused)
		return;
	call->paused = false;
	call->last_progress = upstream_now(call);
	net_resume(call->conn->net);
	upstream_call_arm(call);
}

void upstream_enough(struct upstream_call *call, bool good)
{
	must(call->in_pieces && call->state == UPSTREAM_BODY);
	call->wish = good ? UPSTREAM_ENOUGH : UPSTREAM_BAD;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A 1xx answer is no progress: the time for the first byte of the real one goes on. */
static void note_progress(struct upstream_conn *conn, size_t len)
{
	const struct upstream_http *http = &conn->http;
	struct upstream_call *call = conn->call;

	if (len == http->start)
		return;
	call->last_progress = net_now(conn->pool->up->loop);
	if (call->first_byte_at == 0)
		call->first_byte_at = call->last_progress;
	call->state = http->head ? UPSTREAM_BODY : UPSTREAM_SENT;
}

static enum upstream_http_verdict read_on(struct upstream_conn *conn, char *bytes, size_t len)
{
	enum upstream_http_verdict verdict = upstream_http_read(&conn->http, bytes, len);

	note_progress(conn, len);
	if (!conn->http.waits)
		return verdict;
	ask_how(conn, bytes);
	return upstream_http_read(&conn->http, bytes, len);
}

void upstream_bound_answers(struct upstream *up, size_t bytes)
{
	const size_t one = up->limits.head_max + up->limits.body_max;

	up->kept_max = bytes > one ? bytes : one;
}

void upstream_holds(struct upstream_call *call, size_t bytes)
{
	must(call->in_pieces && call->state == UPSTREAM_BODY);
	/* few answers are long, and the others need not be counted with every piece */
	if (bytes > TURN_SHORT || call->kept != 0)
		upstream_keeps(call, bytes);
}

/* More of the answer is to come. False: there is no memory for it, while others' take so much. */
static bool keep_on(struct upstream_call *call, size_t len)
{
	if (!call->in_pieces) /* what is left of a piece is used up with the next */
		upstream_keeps(call, len);
	return call->kept <= TURN_SHORT || call->pool->up->kept <= call->pool->up->kept_max;
}

bool upstream_read(struct upstream_conn *conn)
{
	struct upstream_call *call = conn->call;
	size_t len;
	char *bytes = net_input(conn->net, &len);

	if (len == 0)
		return false;
	conn->heard = true;
	const bool first = call->first_byte_at == 0;
	enum upstream_http_verdict verdict = read_on(conn, bytes, len);
	if (call->in_pieces)
		hand_over(conn, bytes);
	if (call->wish != UPSTREAM_WANTED) {
		had_enough(conn, verdict == UPSTREAM_HTTP_DONE);
		return true;
	}
	switch (verdict) {
	case UPSTREAM_HTTP_MORE:
		if (first) /* what is due changes from first_byte to idle; later it only moves away */
			upstream_call_arm(call);
		if (keep_on(call, len))
			return false;
		upstream_call_end(call, ERR_BUSY,
				  "answers that have not ended take too much memory");
		return true;
	case UPSTREAM_HTTP_DONE:
		upstream_answered(conn);
		return true;
	case UPSTREAM_HTTP_REFUSED:
		break;
	}
	call->coded = conn->http.coded;
	if (conn->http.error_stands && !call->in_pieces)
		upstream_answered(conn);
	else
		upstream_call_end(call, ERR_PROVIDER_ANSWER, conn->http.problem);
	return true;
}

/* ---- before reading -------------------------------------------------------------------------- */

void upstream_set_prefetch(struct upstream *up, upstream_prefetch_fn *prefetch)
{
	up->prefetch = prefetch;
}

void upstream_prefetch(const void *arg, enum prefetch step)
{
	const struct upstream_conn *conn = arg;

	if (step == PREFETCH_CONNECTION)
		prefetch_lines(conn, 2);
	else if (conn->call != NULL && !conn->foreign && conn->pool->up->prefetch != NULL)
		conn->pool->up->prefetch(conn->call, step);
}
