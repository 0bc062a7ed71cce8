/* http_h2o_http1.c - the edge's part that only HTTP/1.1 needs: heads and chunks are judged before h2o reads them,
 * and a client that leaves while its request is in flight is noticed. */
#include "gateway/http/http_h2o_parts.h"

#include "codec/base/must.h"
#include "gateway/base/bounds.h"

/* ---- heads, and chunks ----
 *
 * h2o goes on to the next request by itself when it has answered one, hence there are two places: what
 * is about to be read, and what lies behind a request that is about to end. */
static enum h1_fault scan_head(struct edge *edge, size_t from)
{
	const h2o_buffer_t *input = edge->sock->input;
	const enum h1_fault fault =
		h1_guard_scan(&edge->h1.head, input->bytes + from, input->size - from,
			      edge->host->budget.body_bytes_max);

	if (edge->h1.head.whole != 0)
		edge->h1.judged = from + edge->h1.head.whole;
	return fault;
}

/* The chunks of a body as they came, before h2o unpacks them where they are: it takes bare LFs, sizes that are none,
 * and text behind a size. */
static enum h1_fault scan_chunks(struct edge *edge)
{
	const h2o_buffer_t *input = edge->sock->input;
	const size_t from = edge->h1.judged;

	if (edge->h1.head.whole == 0 || edge->h1.head.encodings == 0)
		return H1_FINE;
	must(from <= input->size);
	edge->h1.judged = input->size;
	return http_chunks_scan(&edge->h1.chunks, input->bytes + from, input->size - from,
				HTTP1_HEAD_MAX) == NULL
		       ? H1_FINE
		       : H1_CHUNKS;
}

/* Libh2o would send 100 Continue, and keep the body, whoever asks: the handler is asked first. */
static enum h1_fault ask_handler(struct edge *edge, size_t from)
{
	const struct h1_guard *head = &edge->h1.head;
	const struct slice text = slice_of(edge->sock->input->bytes + from, head->whole);

	if (head->lengths == 0 && head->encodings == 0) /* there is nothing to wait for */
		return H1_FINE;
	return edge->host->expects(edge->host->owner, edge, text) ? H1_FINE : H1_REFUSED;
}

/* Judges the bytes of the request that begins at `from` that were not judged yet. */
static enum h1_fault scan(struct edge *edge, size_t from)
{
	enum h1_fault fault = edge->h1.head.whole == 0 ? scan_head(edge, from) : H1_FINE;

	if (edge->h1.head.expects && edge->h1.head.whole != 0 && fault == H1_FINE) {
		edge->h1.head.expects = false;
		fault = ask_handler(edge, from);
	}
	return fault == H1_FINE ? scan_chunks(edge) : fault;
}

static enum guard_verdict verdict_of(enum h1_fault fault)
{
	switch (fault) {
	case H1_BODY_TOO_LARGE:
		return GUARD_BODY_TOO_LARGE;
	case H1_NO_ROOM:
		return GUARD_UNFINISHED_BYTES;
	case H1_TOO_SLOW:
		return GUARD_SLOW;
	default:
		return GUARD_BAD_HEAD;
	}
}

static void close_refused(struct edge *edge)
{
	if (edge->h2o_read != NULL)
		edge->h2o_read(edge->sock, edge_killed_text); /* its connection ends */
	else
		h2o_socket_close(edge->sock); /* h2o never had it */
}

static void on_discard(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	edge->h1.discarded += sock->input->size;
	h2o_buffer_consume(&sock->input, sock->input->size);
	if (err != NULL || edge_tls_closed(edge) || edge->h1.discarded > LINGER_BYTES_MAX)
		close_refused(edge);
}

/* RFC 9112 9.6: closing at once, with input unread, could take the answer back from a client that is
 * still sending. */
static void on_refusal_wrote(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	if (err != NULL || !edge->h1.lingers) {
		close_refused(edge);
		return;
	}
	(void)shutdown(h2o_socket_get_fd(sock), SHUT_WR);
	h2o_socket_read_start(sock, on_discard);
}

static h2o_iovec_t answer_to(struct edge *edge, enum h1_fault fault)
{
	if (fault == H1_REFUSED)
		return h2o_iovec_init(edge->h1.answer->bytes, edge->h1.answer->size);
	return h2o_iovec_init(edge->host->refusals[fault].text, edge->host->refusals[fault].len);
}

static void refuse(struct edge *edge, enum h1_fault fault)
{
	h2o_socket_t *sock = edge->sock;
	h2o_iovec_t answer = answer_to(edge, fault);

	must(sock->_cb.write == NULL);
	if (fault != H1_REFUSED) /* that was not the guard */
		edge_count(&edge->host->counters->guard_kills[verdict_of(fault)]);
	edge->killed = edge->refused = true;
	edge->h1.lingers = fault != H1_TOO_SLOW; /* who is slow has little on its way */
	h2o_socket_read_stop(sock);
	h2o_buffer_consume(&sock->input, sock->input->size);
	http1_count(edge);
	edge->since = net_now(edge->host->loop); /* for its patience it may go on sending */
	h2o_socket_write(sock, &answer, 1, on_refusal_wrote);
}

/* It would not know what to do with an answer of ours. */
static void leave_alone(struct edge *edge)
{
	edge_count(&edge->host->counters->guard_kills[verdict_of(H1_FOREIGN)]);
	edge->killed = true;
	close_refused(edge);
}

bool http1_admit(struct edge *edge)
{
	const enum h1_fault fault = scan(edge, 0);

	if (fault == H1_FINE)
		return true;
	if (fault == H1_FOREIGN && !edge->h1.served)
		leave_alone(edge);
	else if (edge->sock->_cb.write != NULL) /* a 100 Continue that has not left */
		edge_kill(edge, verdict_of(fault));
	else
		refuse(edge, fault);
	return false;
}

static void body_end(struct edge *edge)
{
	if (edge->h1.body.holder != NULL)
		guard_body_end(&edge->host->budget, &edge->h1.body);
	edge->h1.body.holder = NULL;
}

/* ---- the client of a request in flight ----
 *
 * h2o does not read while a request is in flight, so it cannot see the client leave. The request
 * points into h2o's input, which therefore must not move: it is put aside, and what is read
 * meanwhile goes to a buffer of its own. Peeking at the socket would not do under TLS. */
void http1_watch(struct edge *edge, h2o_req_t *req, void *watched)
{
	h2o_socket_t *sock = edge->sock;
	must(edge->h1.held == NULL && edge->h1.head.whole != 0);
	body_end(edge); /* it has come to its end */
	edge->h1.watched = watched;
	edge->h1.last = false;
	edge->h1.served = true;
	edge->h1.req = req;
	edge->h1.held = sock->input;
	/* h2o has taken the chunks off a body: its end is where the next request begins. */
	edge->h1.req_len = edge->h1.head.whole;
	if (req->entity.base != NULL)
		edge->h1.req_len =
			(size_t)(req->entity.base + req->entity.len - sock->input->bytes);
	must(edge->h1.req_len <= sock->input->size);
	sock->input = edge->h1.early; /* bytes of the next request but one are there already */
	if (sock->input == NULL)
		h2o_buffer_init(&sock->input, &h2o_socket_buffer_prototype);
	edge->h1.early = NULL;
	h2o_socket_read_start(sock, edge_on_read);
}

/* Its client could leave unheard, for hours, where reading has stopped. */
void http1_rest(struct edge *edge, bool rests)
{
	edge->h1.rests = rests;
	if (rests && !edge->killed && edge->sock->_cb.read == NULL)
		h2o_socket_read_start(edge->sock, edge_on_read);
}

/* Libh2o looks at it no more, but counts on its length. */
void http1_forget(struct edge *edge)
{
	must(edge->h1.held != NULL);
	if (edge->h1.held->size > edge->h1.req_len) /* another request is behind it */
		return;
	h2o_buffer_dispose(&edge->h1.held);
	h2o_buffer_init(&edge->h1.held, &h2o_socket_buffer_prototype);
}

static void restore_length(struct edge *edge)
{
	if (edge->h1.held->size >= edge->h1.req_len)
		return;
	must(h2o_buffer_reserve(&edge->h1.held, edge->h1.req_len).base != NULL);
	edge->h1.held->size = edge->h1.req_len;
}

void http1_release(struct edge *edge)
{
	restore_length(edge);
	edge->h1.watched = NULL;
	edge->h1.early = edge->sock->input;
	edge->sock->input = edge->h1.held;
	edge->h1.held = NULL;
	if (edge->h1.early->size == 0)
		h2o_buffer_dispose(&edge->h1.early);
	edge->h1.head = (struct h1_guard){ 0 };
	edge->h1.chunks = (struct http_chunks){ 0 };
	enum h1_fault fault = scan(edge, edge->h1.req_len);
	if (fault != H1_FINE) { /* no answer to who pipelines that; h2o is made to end it here */
		edge_kill(edge, verdict_of(fault));
		edge->h1.req->http1_is_persistent = 0;
	}
}

void http1_add_early(struct edge *edge)
{
	h2o_buffer_t *early = edge->h1.early;
	h2o_iovec_t room = h2o_buffer_reserve(&edge->sock->input, early->size);
	must(room.base != NULL); /* h2o ends the process where memory is refused */
	(void)memcpy(room.base, early->bytes, early->size);
	edge->sock->input->size += early->size;
	h2o_buffer_dispose(&edge->h1.early);
}

void http1_read_in_flight(struct edge *edge, const char *err)
{
	if (err == NULL)
		http1_count(edge);
	const bool full = edge->sock->input->size > HTTP1_EARLY_MAX;
	if (edge->h1.body.over != GUARD_GOES_ON || (full && edge->h1.rests))
		edge_kill(edge,
			  GUARD_UNFINISHED_BYTES); /* there is no room for what it pipelines */
	const bool over = err != NULL || edge->killed;
	if (!over && !full)
		return;
	h2o_socket_read_stop(edge->sock); /* nobody sees an end of it from now on */
	if (!over)
		return;
	void *watched = edge->h1.watched;
	edge->h1.watched = NULL;
	(void)shutdown(h2o_socket_get_fd(edge->sock), SHUT_RDWR); /* writing fails now */
	if (watched != NULL)
		edge->host->left(edge->host->owner, watched);
}

/* Under TLS the end without close_notify says so, and so does one between chunks. Without either it takes a reset, which
 * may throw away what the peer has not read. */
void http1_shut(struct edge *edge, h2o_req_t *req)
{
	static const struct linger resets = { .l_onoff = 1 };
	const int fd = h2o_socket_get_fd(edge->sock);

	edge->h1.watched = NULL;
	if (req->version < 0x101 && edge->ssl == NULL)
		(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &resets, sizeof(resets));
	else
		(void)shutdown(fd, SHUT_RDWR);
}

/* By the last of libh2o's filters: the one before it, which makes chunks, passes nothing on while it has no bytes. */
void http1_send_head(h2o_req_t *req)
{
	h2o_ostream_t *last = req->_ostr_top;

	while (last->next != NULL)
		last = last->next;
	last->do_send(last, req, NULL, 0, H2O_SEND_STATE_IN_PROGRESS);
}

/* ---- the budget: what is kept of requests that are not whole, and of those behind one in flight ---- */
static size_t bytes_kept(const struct edge *edge)
{
	size_t bytes = edge->sock->input->size;
	if (edge->h1.held != NULL && edge->h1.held->size > edge->h1.req_len)
		bytes += edge->h1.held->size - edge->h1.req_len;
	return bytes;
}

void http1_count(struct edge *edge)
{
	struct guard_budget *budget = &edge->host->budget;
	struct guard_body *body = &edge->h1.body;
	const size_t bytes = bytes_kept(edge);
	if (edge->h1.held == NULL)
		edge->h1.judged = edge->sock->input->size; /* h2o may have taken something off */
	if (bytes == 0)
		body_end(edge);
	else if (body->holder == NULL)
		guard_body_begin(budget, body, &edge->h1.holder, 0, bytes,
				 net_now(edge->host->loop));
	else
		guard_body_keep(budget, body, bytes, net_now(edge->host->loop));
}

void http1_pay(struct edge *edge)
{
	const enum h1_fault fault = edge->h1.body.over == GUARD_TOO_SLOW ? H1_TOO_SLOW : H1_NO_ROOM;

	body_end(edge);
	if (edge->h1.held == NULL && !edge->killed && edge->sock->_cb.read != NULL &&
	    edge->sock->_cb.write == NULL && !edge_h2o_is_gone(edge)) {
		refuse(edge, fault);
		return;
	}
	edge_kill(edge, verdict_of(fault));
	if (edge->h1.held != NULL) /* it reads no more, perhaps, and would not see its end */
		http1_read_in_flight(edge, edge_killed_text);
}

/* Whether h2o is in the middle of a body. A length that is too large was refused with the head, so it is
 * chunked, and what is in the input has been unpacked, but for the beginning of a chunk. */
static bool is_taking_body(const struct edge *edge)
{
	return edge->h1.held == NULL && edge->h1.head.whole != 0 && !edge->killed &&
	       edge->sock->_cb.read != NULL && edge->sock->_cb.write == NULL;
}

void http1_ate(struct edge *edge)
{
	const size_t most = edge->h1.head.whole + edge->host->budget.body_bytes_max;
	http1_count(edge);
	if (is_taking_body(edge) && edge->sock->input->size > most)
		refuse(edge, H1_BODY_TOO_LARGE);
}

void http1_fini(struct edge *edge)
{
	body_end(edge);
	if (edge->h1.held != NULL)
		h2o_buffer_dispose(&edge->h1.held);
	if (edge->h1.early != NULL)
		h2o_buffer_dispose(&edge->h1.early);
	if (edge->h1.answer != NULL)
		h2o_buffer_dispose(&edge->h1.answer);
}
