/* http_h2o_http2.c - what only HTTP/2 needs of libh2o's insides. */
#include "gateway/http/http_h2o_parts.h"

#include "codec/base/must.h"

#include <string.h>

static h2o_http2_stream_t *stream_of(h2o_req_t *req)
{
	return CONTAINER_OF(req, h2o_http2_stream_t, req);
}

uint32_t http2_stream_id(h2o_req_t *req)
{
	return stream_of(req)->stream_id;
}

/* h2o keeps a body in a buffer of 8 KiB or twice that, and so on, and frees what the stream has before it says that
 * the request is over. It looks at it no more: the stream has all that it will. */
h2o_buffer_t *http2_take_body(h2o_req_t *req)
{
	h2o_http2_stream_t *stream = stream_of(req);
	const size_t len = req->entity.len;
	h2o_buffer_t *taken = stream->_req_body;

	if (len == 0)
		return NULL;
	stream->_req_body = NULL;
	if (taken->capacity < 2 * len)
		return taken;
	char *body = h2o_mem_alloc_pool(&req->pool, len);
	(void)memcpy(body, req->entity.base, len);
	req->entity.base = body;
	h2o_buffer_dispose(&taken);
	return NULL;
}

/* h2o_send would also link the stream among those whose generators are told; what its client does to its windows
 * meanwhile could make libh2o abort. */
void http2_send_head(h2o_req_t *req)
{
	h2o_http2_conn_t *conn = (h2o_http2_conn_t *)req->conn;
	h2o_http2_stream_t *stream = stream_of(req);
	h2o_timestamp_t now;

	must(stream->state == H2O_HTTP2_STREAM_STATE_SEND_HEADERS);
	(void)h2o_get_timestamp(conn->super.ctx, &req->pool, &now);
	h2o_hpack_flatten_response(&conn->_write.buf, &conn->_output_header_table,
				   stream->stream_id, conn->peer_settings.max_frame_size, &req->res,
				   &now, &conn->super.ctx->globalconf->server_name,
				   req->res.content_length);
	h2o_http2_stream_set_state(conn, stream, H2O_HTTP2_STREAM_STATE_SEND_BODY);
	h2o_http2_conn_request_write(conn);
}

/* ---- requests that end early ---- */

/* h2o has not seen the whole request, so the answer is not its business: a head, and a body if the client has opened its
 * windows so far. No request of ours knows of it. The client may send on, and is asked to stop later (h2_guard_ended). */
static void answer_stream(struct edge *edge, h2o_http2_stream_t *stream, enum h1_fault fault)
{
	h2o_http2_conn_t *conn = edge->sock->data;
	h2o_req_t *req = &stream->req;
	const struct h1_answer *answer = &edge->host->refusals[fault];
	size_t len = answer->len - answer->body_at;
	h2o_timestamp_t now;

	if ((ssize_t)len > h2o_http2_window_get_window(&conn->_write.window) ||
	    (ssize_t)len > h2o_http2_window_get_window(&stream->output_window))
		len = 0;
	req->res.status = answer->status;
	h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_CONTENT_TYPE, NULL,
		       H2O_STRLIT("application/json"));
	if (answer->retry)
		h2o_add_header(&req->pool, &req->res.headers, H2O_TOKEN_RETRY_AFTER, NULL,
			       H2O_STRLIT("1"));
	(void)h2o_get_timestamp(conn->super.ctx, &req->pool, &now);
	h2o_hpack_flatten_response(&conn->_write.buf, &conn->_output_header_table,
				   stream->stream_id, conn->peer_settings.max_frame_size, &req->res,
				   &now, &conn->super.ctx->globalconf->server_name, len);
	uint8_t *to =
		(uint8_t *)h2o_buffer_reserve(&conn->_write.buf, H2O_HTTP2_FRAME_HEADER_SIZE + len)
			.base;
	to = h2o_http2_encode_frame_header(to, len, H2O_HTTP2_FRAME_TYPE_DATA,
					   H2O_HTTP2_FRAME_FLAG_END_STREAM,
					   (int32_t)stream->stream_id);
	(void)memcpy(to, answer->text + answer->body_at, len);
	conn->_write.buf->size += H2O_HTTP2_FRAME_HEADER_SIZE + len;
	h2o_http2_window_consume_window(&conn->_write.window, len);
}

/* False: h2o is still to be given the request's head. */
static bool end_stream(struct edge *edge, uint32_t id, enum h1_fault fault)
{
	h2o_http2_conn_t *conn = edge->sock->data;
	h2o_http2_stream_t *stream = h2o_http2_conn_get_stream(conn, id);

	if (stream == NULL || stream->state < H2O_HTTP2_STREAM_STATE_RECV_BODY)
		return edge->reading != EDGE_GATED && edge->guard.partial_since == 0;
	if (stream->state > H2O_HTTP2_STREAM_STATE_RECV_BODY)
		return true; /* h2o answers it itself */
	answer_stream(edge, stream, fault);
	h2o_http2_stream_reset(conn, stream);
	h2o_http2_conn_request_write(conn);
	return true;
}

void http2_pay(struct edge *edge)
{
	struct guard_budget *budget = &edge->host->budget;
	const nsec_t now = net_now(edge->host->loop);
	const struct guard_body *body;
	uint32_t at = 0;

	if (edge_h2o_is_gone(edge) ||
	    ((h2o_http2_conn_t *)edge->sock->data)->state >= H2O_HTTP2_CONN_STATE_IS_CLOSING) {
		edge_kill(edge, GUARD_UNFINISHED_BYTES);
		return;
	}
	while ((body = h2_guard_over(&edge->guard, &at)) != NULL) {
		const bool slow = body->over == GUARD_TOO_SLOW;
		if (!end_stream(edge, body->stream, slow ? H1_TOO_SLOW : H1_NO_ROOM)) {
			at++;
			continue;
		}
		edge_count(&edge->host->counters
				    ->guard_kills[slow ? GUARD_SLOW : GUARD_UNFINISHED_BYTES]);
		h2_guard_forget(&edge->guard, budget, at, now);
	}
	edge_settle(edge);
}

/* Of what libh2o knows still, or not yet, the answer has not left. */
void http2_ask_to_stop(struct edge *edge, nsec_t now)
{
	h2o_http2_conn_t *conn = edge->sock->data;
	const nsec_t patience = edge->host->budget.patience;
	struct guard_ended *ended;
	uint32_t at = 0;

	if (edge_h2o_is_gone(edge) || conn->state >= H2O_HTTP2_CONN_STATE_IS_CLOSING)
		return;
	for (; (ended = guard_ends_late(&edge->guard.ends, &at, patience, now)) != NULL; at++) {
		if (ended->stream > conn->pull_stream_ids.max_open ||
		    h2o_http2_conn_get_stream(conn, ended->stream) != NULL)
			continue;
		http2_put_reset(&conn->_write.buf, ended->stream, RST_NO_ERROR);
		h2o_http2_conn_request_write(conn);
		ended->asked = true;
		ended->since = now;
	}
	edge_settle(edge);
}

/* ---- one stream's end ---- */
void http2_reset(struct edge *edge, uint32_t id, uint32_t code)
{
	h2o_http2_conn_t *conn = edge->sock->data;
	h2o_http2_stream_t *stream;

	if (conn->state >= H2O_HTTP2_CONN_STATE_IS_CLOSING)
		return;
	http2_put_reset(&conn->_write.buf, id, code);
	h2o_http2_conn_request_write(conn);
	stream = h2o_http2_conn_get_stream(conn, id);
	if (stream != NULL)
		h2o_http2_stream_reset(conn, stream);
}

/* A socket that is not read may have lost its connection. */
void http2_open_window(struct edge *edge)
{
	h2o_http2_conn_t *conn = edge->sock->data;
	uint32_t by = edge->sock->_cb.read == NULL ? 0 : h2_guard_open_window(&edge->guard);

	if (by == 0 || conn->state >= H2O_HTTP2_CONN_STATE_IS_CLOSING)
		return;
	h2o_http2_encode_window_update_frame(&conn->_write.buf, 0, (int32_t)by);
	h2o_http2_conn_request_write(conn);
}

/* ---- the connection's end ---- */
static int code_of(const struct edge *edge, enum guard_verdict why)
{
	switch (why) {
	case GUARD_FORBIDDEN_FRAME:
		return edge->guard.oversize ? H2O_HTTP2_ERROR_FRAME_SIZE : H2O_HTTP2_ERROR_PROTOCOL;
	case GUARD_BODY_TOO_LARGE:
		return H2O_HTTP2_ERROR_FLOW_CONTROL;
	case GUARD_EVICTED:
		return H2O_HTTP2_ERROR_NONE;
	default:
		return H2O_HTTP2_ERROR_ENHANCE_YOUR_CALM;
	}
}

uint32_t http2_last_stream(const struct edge *edge)
{
	const h2o_http2_conn_t *conn = edge->sock->data;

	return conn != NULL ? conn->pull_stream_ids.max_processed : 0;
}

/* Streams beyond the last one that was processed may be tried again (RFC 9113 6.8): when the guard had judged, nothing was
 * begun any more, though libh2o may have got further in its input. Libh2o writes once more, without waiting, before it
 * closes, if there is something to write; but not if it has asked when it can. */
bool http2_say_why(struct edge *edge, enum guard_verdict why)
{
	h2o_http2_conn_t *conn = edge->sock->data;

	if (conn->state >= H2O_HTTP2_CONN_STATE_IS_CLOSING)
		return true;
	h2o_http2_encode_goaway_frame(&conn->_write.buf, edge->goodbye.last_stream,
				      code_of(edge, why), h2o_iovec_init(NULL, 0));
	h2o_http2_conn_request_write(conn);
	if (conn->_write.buf_in_flight != NULL || edge->sock->_cb.write == NULL)
		return true;
	h2o_socket_read_stop(edge->sock);
	conn->state = H2O_HTTP2_CONN_STATE_IS_CLOSING;
	return false;
}

static void on_last_write(h2o_socket_t *sock, const char *err)
{
	(void)sock;
	(void)err;
}

/* A preface of ours begins with settings (RFC 9113 3.4). What is not written at once is lost when it closes. */
void http2_say_why_at_once(struct edge *edge, enum guard_verdict why)
{
	enum { LAST_STREAM_LEN = 4 };
	uint8_t bytes[2 * H2O_HTTP2_FRAME_HEADER_SIZE + 2 * LAST_STREAM_LEN];
	uint8_t *at = h2o_http2_encode_frame_header(bytes, 0, H2O_HTTP2_FRAME_TYPE_SETTINGS, 0, 0);

	at = h2o_http2_encode_frame_header(at, 2 * LAST_STREAM_LEN, H2O_HTTP2_FRAME_TYPE_GOAWAY, 0,
					   0);
	at = h2o_http2_encode32u(at, 0);
	(void)h2o_http2_encode32u(at, (uint32_t)-code_of(edge, why));
	h2o_iovec_t all = h2o_iovec_init(bytes, sizeof(bytes));
	h2o_socket_write(edge->sock, &all, 1, on_last_write);
}
