/* http_h2o_answer.c - http.h's answers over libh2o: whole ones, those in pieces, and those that their
 * reader does not take or does not wait for. */
#include "gateway/http/http_h2o_exchange.h"

#include "codec/base/must.h"
#include "gateway/base/bounds.h"
#include "gateway/http/http_h2o_parts.h"

/* ---- what all have in common ---- */
const char *http_reason(int status)
{
	static const struct {
		int status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 202, "Accepted" },
		{ 204, "No Content" },
		{ 201, "Created" },
		{ 205, "Reset Content" },
		{ 206, "Partial Content" },
		{ 301, "Moved Permanently" },
		{ 302, "Found" },
		{ 303, "See Other" },
		{ 304, "Not Modified" },
		{ 307, "Temporary Redirect" },
		{ 308, "Permanent Redirect" },
		{ 400, "Bad Request" },
		{ 401, "Unauthorized" },
		{ 402, "Payment Required" },
		{ 403, "Forbidden" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
		{ 406, "Not Acceptable" },
		{ 409, "Conflict" },
		{ 410, "Gone" },
		{ 412, "Precondition Failed" },
		{ 413, "Content Too Large" },
		{ 415, "Unsupported Media Type" },
		{ 422, "Unprocessable Content" },
		{ 429, "Too Many Requests" },
		{ 499, "Client Closed Request" },
		{ 500, "Internal Server Error" },
		{ 501, "Not Implemented" },
		{ 502, "Bad Gateway" },
		{ 503, "Service Unavailable" },
		{ 504, "Gateway Timeout" },
	};
	must(status >= 200 && status <= 599);
	for (size_t i = 0; i < COUNT_OF(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unknown"; /* RFC 9110 15: the phrase means nothing */
}

static void set_status(struct http_exchange *exchange, int status)
{
	h2o_req_t *req = exchange->req;
	req->res.status = status;
	req->res.reason = http_reason(status);
	if (exchange->server->quiet)
		req->http1_is_persistent = 0;
}

bool exchange_writes_one_of_its_length(struct slice name)
{
	switch (name.at[0]) {
	case 'd':
		return slice_eq(name, SLICE("date"));
	case 's':
		return slice_eq(name, SLICE("server"));
	case 't':
		return slice_eq(name, SLICE("transfer-encoding"));
	default:
		return slice_eq(name, SLICE("connection")) ||
		       slice_eq(name, SLICE("content-length"));
	}
}

void http_lend(struct http_exchange *exchange, void *room, size_t bytes)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_BEGUN && (uintptr_t)room % _Alignof(h2o_header_t) == 0);
	exchange->in.room = room;
	exchange->in.room_bytes = bytes;
	exchange->lent = true;
}

/* libh2o's list has its name, or a place for one. */
_Static_assert(HTTP_FIELD_BYTES == sizeof(h2o_header_t) + sizeof(h2o_iovec_t), "of a field");

static void *room_for_fields(struct http_exchange *exchange, size_t count)
{
	if (exchange->lent && exchange->in.room_bytes >= count * HTTP_FIELD_BYTES)
		return exchange->in.room;
	return h2o_mem_alloc_pool(&exchange->req->pool, count * HTTP_FIELD_BYTES);
}

/* As libh2o's function for one field, but all in one piece of memory. */
static void add_fields(struct http_exchange *exchange, const struct http_field *fields,
		       size_t count)
{
	h2o_headers_t *list = &exchange->req->res.headers;

	must(list->size == 0);
	if (count == 0)
		return;
	list->entries = room_for_fields(exchange, count);
	list->capacity = list->size = count;
	h2o_iovec_t *names = (h2o_iovec_t *)(list->entries + count);
	for (size_t i = 0; i < count; i++) {
		const struct slice name = fields[i].name, value = fields[i].value;
		const h2o_token_t *token = h2o_lookup_token(name.at, name.len);
		must(!exchange_writes(name));
		names[i] = h2o_iovec_init(name.at, name.len);
		list->entries[i] = (h2o_header_t){
			.name = token == NULL ? &names[i] : (h2o_iovec_t *)(uintptr_t)&token->buf,
			.value = h2o_iovec_init(value.at, value.len),
		};
	}
}

/* Under TLS h2o seals every slice by itself, which costs more than to copy what fits into one record;
 * over HTTP/2 it has put them together before. A piece stays as it is: its answer may have any number of them, and
 * keeps what is copied here until its end. */
static struct iovec join_slices(struct http_exchange *exchange, const struct iovec *body,
				size_t count, size_t total)
{
	struct iovec joined = { h2o_mem_alloc_pool(&exchange->req->pool, total), 0 };

	for (size_t i = 0; i < count; i++) {
		if (body[i].iov_len == 0)
			continue;
		(void)memcpy((char *)joined.iov_base + joined.iov_len, body[i].iov_base,
			     body[i].iov_len);
		joined.iov_len += body[i].iov_len;
	}
	must(joined.iov_len == total);
	return joined;
}

/* Gives h2o the next bytes, or the last; it copies the list and does not write to it. None, of an answer that goes on: its head
 * alone. */
static void give(struct http_exchange *exchange, const struct iovec *body, size_t count,
		 size_t total, h2o_send_state_t state)
{
	struct iovec joined;

	if (state == H2O_SEND_STATE_FINAL && edge_seals_slices(exchange->edge) && count > 1 &&
	    total <= NET_TLS_RECORD) {
		joined = join_slices(exchange, body, count, total);
		body = &joined;
		count = 1;
	}
	exchange->body_total += total;
	exchange->answered_at = exchange->progress.moved_at = net_now(exchange->server->edges.loop);
	exchange->progress.written = exchange->edge->sock->bytes_written;
	exchange->unsent = true;
	h2o_linklist_insert(&exchange->server->answered, &exchange->listed);
	if (total == 0 && state == H2O_SEND_STATE_IN_PROGRESS)
		edge_send_head(exchange->edge, exchange->req);
	else
		edge_send(exchange->edge, exchange->req, (h2o_iovec_t *)(uintptr_t)body, count,
			  state);
}

/* ---- whole answers ---- */
/* h2o calls neither of these after the one, final send. */
static h2o_generator_t no_more = { NULL, NULL };

void http_answer(struct http_exchange *exchange, int status, const struct http_field *fields,
		 size_t field_count, const struct iovec *body, size_t body_count, size_t body_total)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_BEGUN);
	h2o_req_t *req = exchange->req;
	exchange->state = EXCHANGE_ANSWERED;
	set_status(exchange, status);
	req->res.content_length = exchange_length(status, body_total);
	add_fields(exchange, fields, field_count);
	body_count = net_h2o_trim(body, body_count);
	if (slice_eq(exchange->in.method, SLICE("HEAD")) || !exchange_has_body(status))
		body_count = 0;
	h2o_start_response(req, &no_more);
	/* Header and body at once: a header alone would leave an HTTP/2 stream in the state in which
	 * h2o can be made to abort (h2o.md 1.4). */
	give(exchange, body, body_count, body_count == 0 ? 0 : body_total, H2O_SEND_STATE_FINAL);
}

static struct slice keep(h2o_req_t *req, struct slice s)
{
	return slice_of(h2o_strdup(&req->pool, s.at, s.len).base, s.len);
}

void http_refuse(struct http_exchange *exchange, int status, const struct http_field *fields,
		 size_t field_count, struct slice body)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	h2o_req_t *req = exchange->req;
	struct http_field *kept = h2o_mem_alloc_pool(&req->pool, (field_count + 1) * sizeof(*kept));
	for (size_t i = 0; i < field_count; i++)
		kept[i] = (struct http_field){ keep(req, fields[i].name),
					       keep(req, fields[i].value) };
	const struct slice text = keep(req, body);
	const struct iovec v = { (void *)(uintptr_t)text.at, text.len };
	http_answer(exchange, status, kept, field_count, &v, 1, text.len);
	exchange->refused = true;
	exchange->request = NULL;
}

void http_drop_body(struct http_exchange *exchange)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->refused);
	exchange->in.body = (struct slice){ NULL, 0 };
	exchange_free_body(exchange);
}

/* ---- answers in pieces ---- */
/* HTTP/1.1 has no way to give up a request but to answer it, to a socket that is shut. */
static void abandon(struct http_exchange *exchange)
{
	exchange->unsent = true;
	exchange->req->http1_is_persistent = 0;
	edge_send(exchange->edge, exchange->req, NULL, 0, H2O_SEND_STATE_ERROR);
}

/* What was given has left. An answer over HTTP/2 that is cut is about to be reset. */
static void on_proceed(h2o_generator_t *generator, h2o_req_t *req)
{
	struct http_exchange *exchange = CONTAINER_OF(generator, struct http_exchange, generator);
	const struct http_handler *handler = &exchange->server->handler;

	(void)req;
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->unsent);
	exchange->unsent = false;
	h2o_linklist_unlink(&exchange->listed);
	edge_taken(exchange->edge);
	if (exchange->state == EXCHANGE_STREAMING)
		handler->ready(handler->owner, exchange->request);
	else if (exchange->state == EXCHANGE_LEFT || !exchange->in.http2)
		abandon(exchange);
}

/* What would call the handler from inside of its own call comes a tick later: the head of an answer over HTTP/2 has been
 * written, an answer is cut, or one ends with nothing but its connection. */
static void on_later(h2o_timeout_entry_t *entry)
{
	struct http_exchange *exchange = CONTAINER_OF(entry, struct http_exchange, tick);

	must_obj(exchange, EXCHANGE_MAGIC);
	if (exchange->cut && exchange->in.http2)
		edge_cut(exchange->edge, exchange->req);
	else if (exchange->cut)
		abandon(exchange);
	else if (exchange->state == EXCHANGE_ANSWERED)
		give(exchange, NULL, 0, 0, H2O_SEND_STATE_FINAL);
	else
		on_proceed(&exchange->generator, exchange->req);
}

/* Libh2o makes chunks of an answer over HTTP/1.1 only if its status is 200. */
static void start_pieces(struct http_exchange *exchange, int status)
{
	h2o_req_t *req = exchange->req;

	exchange->generator.proceed = on_proceed;
	exchange->tick.cb = on_later;
	req->res.status = 200;
	h2o_start_response(req, &exchange->generator);
	set_status(exchange, status);
	if (req->version < 0x101) /* knows no chunks: the end is where the connection ends */
		req->http1_is_persistent = 0;
}

void http_begin_pieces(struct http_exchange *exchange, int status, const struct http_field *fields,
		       size_t field_count, struct slice first)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_BEGUN && exchange_has_body(status));
	must(!slice_eq(exchange->in.method, SLICE("HEAD")));
	const struct iovec piece = { (void *)(uintptr_t)first.at, first.len };

	exchange->state = EXCHANGE_STREAMING;
	add_fields(exchange, fields, field_count);
	start_pieces(exchange, status);
	give(exchange, &piece, 1, first.len, H2O_SEND_STATE_IN_PROGRESS);
	if (first.len == 0 && exchange->in.http2)
		exchange_tick_soon(exchange);
}

void http_more_of(struct http_exchange *exchange, const struct iovec *piece, size_t count,
		  size_t total)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_STREAMING && !exchange->unsent && total != 0);
	give(exchange, piece, net_h2o_trim(piece, count), total, H2O_SEND_STATE_IN_PROGRESS);
}

void http_more(struct http_exchange *exchange, struct slice piece)
{
	const struct iovec v = { (void *)(uintptr_t)piece.at, piece.len };

	http_more_of(exchange, &v, 1, piece.len);
}

void http_end(struct http_exchange *exchange, const struct iovec *body, size_t body_count,
	      size_t body_total)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_STREAMING && !exchange->unsent);
	exchange_end_rest(exchange);
	exchange->state = EXCHANGE_ANSWERED;
	if (exchange->server->quiet)
		exchange->req->http1_is_persistent = 0;
	if (body_total != 0 || exchange->req->version >= 0x101) {
		give(exchange, body, net_h2o_trim(body, body_count), body_total,
		     H2O_SEND_STATE_FINAL);
		return;
	}
	edge_unwatch(exchange->edge);
	exchange_tick_soon(exchange);
}

void http_cut(struct http_exchange *exchange)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_STREAMING);
	exchange_end_rest(exchange);
	exchange->state = EXCHANGE_ANSWERED;
	exchange->cut = true;
	if (!exchange->in.http2)
		edge_cut(exchange->edge, exchange->req);
	/* What libh2o is writing over HTTP/1.1 fails, or leaves: then it says so. */
	if ((exchange->in.http2 || !exchange->unsent) && !h2o_timeout_is_linked(&exchange->tick))
		exchange_tick_soon(exchange);
}

/* ---- answers that last ---- */
void http_forget_request(struct http_exchange *exchange)
{
	static const h2o_headers_t no_headers;
	const struct http_incoming in = exchange->in;

	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_STREAMING);
	exchange_free_body(exchange);
	edge_forget(exchange->edge);
	exchange->in = (struct http_incoming){ .room = in.room,
					       .room_bytes = in.room_bytes,
					       .fields = &no_headers,
					       .names = in.names,
					       .wrongs = in.wrongs,
					       .connection = in.connection,
					       .listener = in.listener,
					       .came_at = in.came_at,
					       .http2 = in.http2,
					       .loopback = in.loopback };
}

void exchange_end_rest(struct http_exchange *exchange)
{
	if (!exchange->rests)
		return;
	exchange->rests = false;
	exchange->server->in_flight++;
	edge_rest(exchange->edge, false);
}

void http_rest(struct http_exchange *exchange, bool rests)
{
	must_obj(exchange, EXCHANGE_MAGIC);
	must(exchange->state == EXCHANGE_STREAMING);
	if (!rests)
		exchange_end_rest(exchange);
	if (exchange->rests == rests)
		return;
	exchange->rests = true;
	exchange->server->in_flight--;
	edge_rest(exchange->edge, true);
	exchange_begin_held(exchange->edge);
}

/* ---- clients that left ---- */
void exchange_left(void *owner, void *watched)
{
	struct http_exchange *exchange = watched;
	bool streaming = exchange->state == EXCHANGE_STREAMING;

	(void)owner;
	must_obj(exchange, EXCHANGE_MAGIC);
	exchange_drop(exchange);
	exchange->state = EXCHANGE_LEFT;
	if (streaming && exchange->unsent)
		return; /* h2o is told when that has failed, or has left after all */
	if (!streaming) {
		set_status(exchange, 499);
		h2o_start_response(exchange->req, &no_more);
	}
	abandon(exchange);
}

/* ---- answers that are not taken ----
 *
 * The connection as a whole is the edge's (http_h2o_pace). Over HTTP/2 a single answer can also wait for
 * a window of its own, while others flow. */
bool exchange_stalled(struct http_exchange *exchange, nsec_t now)
{
	const nsec_t patience = exchange->server->edges.budget.patience;
	const size_t written = exchange->edge->sock->bytes_written;
	if (now - exchange->answered_at > ANSWER_PATIENCES_MAX * patience)
		return true;
	if (!exchange->in.http2)
		return false;
	if (exchange->progress.sent != exchange->req->bytes_sent) {
		exchange->progress.sent = exchange->req->bytes_sent;
		exchange->progress.moved_at = now;
		exchange->progress.written = written;
	}
	return now - exchange->progress.moved_at > patience &&
	       written - exchange->progress.written > ANSWER_PASSED_MAX;
}
