/* http_h2o_parts.h - what the files of the edge share: private to http_h2o_*.c. */
#ifndef GATEWAY_HTTP_HTTP_H2O_PARTS_H
#define GATEWAY_HTTP_HTTP_H2O_PARTS_H

#include "gateway/http/http_h2o_edge.h"

static inline struct slice to_slice(h2o_iovec_t v)
{
	return slice_of(v.base, v.len);
}

/* ---- calls into h2o, which may free the connection before they return ----
 *
 * Each is between the two. */
struct edge_call {
	bool gone;
	bool *outer;
};

static inline void edge_call_begin(struct edge *edge, struct edge_call *call)
{
	call->gone = false;
	call->outer = edge->gone;
	edge->gone = &call->gone;
}

/* True when the edge is still there. */
static inline bool edge_call_end(struct edge *edge, struct edge_call *call)
{
	if (!call->gone)
		edge->gone = call->outer;
	else if (call->outer != NULL)
		*call->outer = true;
	return !call->gone;
}

/* ---- http_h2o_edge.c: one connection's callbacks ---- */

/* What h2o is told about a connection that it must close. */
extern const char edge_killed_text[];

/* The read callback of every connection that h2o has. */
void edge_on_read(h2o_socket_t *sock, const char *err);

/* What has been read, or an error, goes to h2o, unless it is a head that is refused. The edge may be
 * gone afterwards. */
void edge_pass(struct edge *edge, const char *err);

/* Puts our callbacks in the place of those that h2o has installed since. */
void edge_settle(struct edge *edge);

/* Counts why, and shuts the socket; its callbacks close it next. */
void edge_kill(struct edge *edge, enum guard_verdict why);

/* It owes an answer to a body that has ended early, and gives it before the loop waits. */
void edge_owe(struct edge *edge);

/* Whether h2o's connection has ended while the socket, under TLS, waits for its own end. */
bool edge_h2o_is_gone(const struct edge *edge);

/* ---- http_h2o_http1.c: what only HTTP/1.1 needs ---- */

/* Judges the head that h2o is about to read. False: it was refused, and h2o gets nothing any more. */
bool http1_admit(struct edge *edge);

/* A request is in flight: puts its input aside and reads on. */
void http1_watch(struct edge *edge, h2o_req_t *req, void *watched);
void http1_read_in_flight(struct edge *edge, const char *err);

/* h2o is about to end the request in flight: it gets its own input back, if it may see the rest. */
void http1_release(struct edge *edge);

/* What came while the last request was in flight joins h2o's input. */
void http1_add_early(struct edge *edge);

/* The request in flight rests, or does not any more. While it does its connection is read whatever comes behind it. */
void http1_rest(struct edge *edge, bool rests);

/* Nobody looks at the request in flight any more: its input is given back. */
void http1_forget(struct edge *edge);

/* The connection ends behind what is in the socket: no client is to take that for the end of the answer. */
void http1_shut(struct edge *edge, h2o_req_t *req);

/* Writes status and fields of an answer that goes on, which has begun (h2o_start_response). */
void http1_send_head(h2o_req_t *req);

/* Brings the budget up to date with what is buffered. */
void http1_count(struct edge *edge);

/* Answers a request that has ended early, and ends its connection. */
void http1_pay(struct edge *edge);

/* h2o has seen the input: likewise, and refuses a chunked body that has become too large. */
void http1_ate(struct edge *edge);

/* The connection is gone. */
void http1_fini(struct edge *edge);

/* ---- http_h2o_http2.c: what only HTTP/2 needs ---- */

/* Of the stream that a request came by. */
uint32_t http2_stream_id(h2o_req_t *req);

/* Writes status and fields of an answer that goes on, which has begun (h2o_start_response). Nothing tells when they have
 * left. */
void http2_send_head(h2o_req_t *req);

/* Answers requests whose bodies have ended early, and ends their streams; the connection goes on. */
void http2_pay(struct edge *edge);

/* Resets streams that were answered before their bodies had ended, and whose clients have sent no end of them since. Not
 * from inside of libh2o. */
void http2_ask_to_stop(struct edge *edge, nsec_t now);

/* A request is complete: where its body is, for the caller to dispose of when nobody reads it any more. NULL: it has
 * none, or a short one, which goes into memory of its size (req->entity moves). */
h2o_buffer_t *http2_take_body(h2o_req_t *req);

/* Ends one stream: libh2o forgets it, and its client is told so. Not from inside of libh2o. */
void http2_reset(struct edge *edge, uint32_t stream, uint32_t code);

/* The last stream that libh2o has begun to process; 0: none. */
uint32_t http2_last_stream(const struct edge *edge);

/* The guard closes the connection: GOAWAY is the last that libh2o writes. True: it does when it is told of the error next;
 * false: it must not be told, and does when the socket can be written to. */
MUST_USE bool http2_say_why(struct edge *edge, enum guard_verdict why);

/* Likewise of a connection that libh2o does not know yet. */
void http2_say_why_at_once(struct edge *edge, enum guard_verdict why);

/* The connection's window is opened for DATA that libh2o did not see. */
void http2_open_window(struct edge *edge);

/* Whose input libh2o is about to parse; NULL: it has. */
void http2_eats(struct edge *edge);

/* The fields of a stream that is gone: enters into the table what its sender did. 0, or libh2o's error. */
int http2_skip_fields(h2o_hpack_header_table_t *table, const uint8_t *src, size_t len);

/* Appends a RST_STREAM to what libh2o writes next. */
void http2_put_reset(h2o_buffer_t **to, uint32_t stream, uint32_t code);

/* RFC 9113 7. */
enum { RST_NO_ERROR = 0, RST_INTERNAL = 2, RST_REFUSED = 7, RST_CANCEL = 8 };

/* ---- http_h2o_timeouts.c: what is looked at once a second ---- */

void edge_host_tick(struct net_timer *timer);

/* A stream on it may be silent for hours: the kernel finds out whether the peer lives. */
void edge_probe(struct edge *edge);

#endif
