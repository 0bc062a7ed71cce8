#include "gateway/http_h2o_edge.h"

#include "codec/base/must.h"
#include "gateway/tls.h"
#include "gateway/tls_names.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>

/* Pipelined bytes kept while a request is in flight; then reading stops. */
enum { EARLY_MAX = 64 << 10 };

static const char killed_text[] = "closed by the guard";

static void on_read(h2o_socket_t *sock, const char *err);
static void on_wrote(h2o_socket_t *sock, const char *err);
static void edge_settle(struct edge *edge);

/* ---- calls into h2o, which may free the connection before they return ---- */
struct h2o_call {
	bool gone;
	bool *outer;
};

static void call_begin(struct edge *edge, struct h2o_call *call)
{
	call->gone = false;
	call->outer = edge->gone;
	edge->gone = &call->gone;
}

/* True when the edge is still there. */
static bool call_end(struct edge *edge, struct h2o_call *call)
{
	if (!call->gone)
		edge->gone = call->outer;
	else if (call->outer != NULL)
		*call->outer = true;
	return !call->gone;
}

/* Shutting down also frees a response, or a close_notify, that waits for a peer that does not read;
 * h2o has no timer for either. Its callbacks get the error next. */
static void edge_kill(struct edge *edge, enum guard_verdict why)
{
	if (!edge->killed)
		edge_count(&edge->host->counters->guard_kills[why]);
	edge->killed = true;
	(void)shutdown(h2o_socket_get_fd(edge->sock), SHUT_RDWR);
}

/* ---- HTTP/1.1: the client of a request in flight ----
 *
 * h2o does not read while a request is in flight, so it cannot see the client leave. The request
 * points into h2o's input, which therefore must not move: it is put aside, and what is read
 * meanwhile goes to a buffer of its own. Peeking at the socket would not do under TLS. */
void edge_watch(struct edge *edge, void *watched)
{
	edge->requests++;
	if (edge->proto != EDGE_HTTP1)
		return;
	h2o_socket_t *sock = edge->sock;
	must(edge->h1.held == NULL);
	edge->h1.watched = watched;
	edge->h1.held = sock->input;
	sock->input = edge->h1.early; /* bytes of the next request but one are there already */
	if (sock->input == NULL)
		h2o_buffer_init(&sock->input, &h2o_socket_buffer_prototype);
	edge->h1.early = NULL;
	h2o_socket_read_start(sock, on_read);
}

/* h2o is about to go on: it gets its own input back. */
static void h1_release(struct edge *edge)
{
	edge->h1.watched = NULL;
	edge->h1.early = edge->sock->input;
	edge->sock->input = edge->h1.held;
	edge->h1.held = NULL;
	if (edge->h1.early->size == 0)
		h2o_buffer_dispose(&edge->h1.early);
}

static void h1_add_early(struct edge *edge)
{
	h2o_buffer_t *early = edge->h1.early;
	h2o_iovec_t room = h2o_buffer_reserve(&edge->sock->input, early->size);
	must(room.base != NULL); /* h2o ends the process where memory is refused */
	(void)memcpy(room.base, early->bytes, early->size);
	edge->sock->input->size += early->size;
	h2o_buffer_dispose(&edge->h1.early);
}

static void h1_read_in_flight(struct edge *edge, const char *err)
{
	if (err == NULL && edge->sock->input->size <= EARLY_MAX)
		return;
	h2o_socket_read_stop(edge->sock);
	if (err == NULL)
		return;
	void *watched = edge->h1.watched;
	edge->h1.watched = NULL;
	(void)shutdown(h2o_socket_get_fd(edge->sock), SHUT_RDWR); /* writing fails now */
	if (watched != NULL)
		edge->host->left(edge->host->owner, watched);
}

/* The input that h2o collects for a request, as its header or body. */
static void h1_count(struct edge *edge)
{
	struct guard_budget *budget = &edge->host->budget;
	size_t bytes = edge->h1.held == NULL ? edge->sock->input->size : 0;
	budget->unfinished_bytes += bytes;
	budget->unfinished_bytes -= edge->h1.bytes_counted;
	edge->h1.bytes_counted = bytes;
	if (bytes == 0)
		edge->since = 0;
	else if (edge->since == 0)
		edge->since = net_now(edge->host->loop);
	if (bytes != 0 && budget->unfinished_bytes > budget->worker_bytes_max)
		edge_kill(edge, GUARD_UNFINISHED_BYTES);
}

/* ---- reading ---- */
static void edge_pass(struct edge *edge, const char *err)
{
	struct h2o_call call;
	size_t before = edge->sock->input->size;
	h2o_socket_cb read = edge->h2o_read;

	call_begin(edge, &call);
	read(edge->sock, err);
	if (!call_end(edge, &call))
		return;
	if (edge->proto == EDGE_HTTP2)
		h2_guard_ate(&edge->guard, before - edge->sock->input->size);
	else
		h1_count(edge);
	edge_settle(edge);
}

/* h2o's worst assertion is about a stream that waits for a write in progress (h2o.md 1.4): nothing
 * is parsed meanwhile. Not reading also keeps the input small. */
static void h2_gate(struct edge *edge)
{
	edge->gated = true;
	h2o_socket_read_stop(edge->sock);
	edge_settle(edge);
}

static void h2_read(struct edge *edge, const char *err)
{
	if (err == NULL) {
		const h2o_buffer_t *input = edge->sock->input;
		enum guard_verdict verdict =
			h2_guard_scan(&edge->guard, &edge->host->budget, input->bytes, input->size,
				      net_now(edge->host->loop));
		if (verdict != GUARD_PASS) {
			edge_kill(edge, verdict);
			err = killed_text;
		}
	}
	if (err == NULL && edge->sock->_cb.write != NULL)
		h2_gate(edge);
	else
		edge_pass(edge, err);
}

bool edge_tls_closed(const struct edge *edge)
{
	return edge->ssl != NULL && (SSL_get_shutdown(edge->ssl) & SSL_RECEIVED_SHUTDOWN) != 0;
}

static void on_read(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	if (edge->killed)
		err = killed_text;
	else if (err == NULL && edge_tls_closed(edge))
		err = h2o_socket_error_closed;
	if (edge->proto == EDGE_HTTP2)
		h2_read(edge, err);
	else if (edge->h1.held != NULL)
		h1_read_in_flight(edge, err);
	else
		edge_pass(edge, err);
}

/* ---- writing: the events on which h2o arms reading again, or goes on to the next request ---- */
static void on_wrote(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	struct h2o_call call;
	size_t before = sock->bytes_written;
	h2o_socket_cb write = edge->h2o_write;

	if (edge->proto == EDGE_HTTP1 && edge->h1.held != NULL)
		h1_release(edge);
	if (edge->gated) /* h2o is to see a socket that reads; NULL afterwards means it stopped it */
		h2o_socket_read_start(sock, on_read);
	call_begin(edge, &call);
	write(sock, err);
	if (!call_end(edge, &call))
		return;
	if (edge->proto == EDGE_HTTP1)
		h1_count(edge);
	bool open_gate = edge->gated && sock->_cb.read != NULL;
	if (open_gate && sock->_cb.write != NULL && sock->bytes_written != before) {
		h2o_socket_read_stop(sock); /* the next write is in flight already */
		open_gate = false;
	} /* bytes_written as before: h2o only asks when the socket is writable, nothing is in flight */
	if (open_gate)
		edge->gated = false;
	edge_settle(edge);
	if (open_gate)
		edge_pass(edge, NULL);
}

/* ---- ownership ---- */
/* The write callback is borrowed while it is the next thing to happen: when nothing is read, or when
 * an answer over HTTP/1.1 ends the request in flight. */
static bool needs_write_callback(const struct edge *edge)
{
	return edge->sock->_cb.read == NULL || (edge->proto == EDGE_HTTP1 && edge->h1.held != NULL);
}

static void edge_settle(struct edge *edge)
{
	h2o_socket_t *sock = edge->sock;
	if (sock->_cb.read != NULL && sock->_cb.read != on_read) { /* h2o has armed reading */
		edge->h2o_read = sock->_cb.read;
		sock->_cb.read = on_read;
		if (edge->proto == EDGE_HTTP1 && edge->h1.early != NULL) {
			h1_add_early(edge);
			edge_pass(edge, NULL); /* settles again: h2o eats or keeps what it got */
			return;
		}
	}
	if (!needs_write_callback(edge))
		return;
	if (sock->_cb.write != NULL && sock->_cb.write != on_wrote) {
		edge->h2o_write = sock->_cb.write;
		sock->_cb.write = on_wrote;
	} else if (sock->_cb.write == NULL && sock->_cb.read == NULL &&
		   !h2o_linklist_is_linked(&edge->unsettled)) {
		/* Its write is queued for this turn. */
		h2o_linklist_insert(&edge->host->unsettled, &edge->unsettled);
	}
}

static void settle_all(void *owner)
{
	struct edge_host *host = owner;
	h2o_linklist_t now;
	h2o_linklist_init_anchor(&now); /* edge_settle may put a connection back */
	h2o_linklist_insert_list(&now, &host->unsettled);
	while (!h2o_linklist_is_empty(&now)) {
		struct edge *edge = CONTAINER_OF(now.next, struct edge, unsettled);
		h2o_linklist_unlink(&edge->unsettled);
		edge_settle(edge);
	}
}

/* ---- shutdown ----
 *
 * h2o sends a first GOAWAY at once, which ends nothing, and a second one a second later, which makes
 * it ignore the rest of bodies that are still being uploaded: that one has to wait for them. */
static h2o_timeout_entry_t *last_goaway(const struct edge_host *host)
{
	return &host->ctx->http2._graceful_shutdown_timeout;
}

static bool is_uploading(const struct edge *edge)
{
	return edge->proto == EDGE_HTTP2 && edge->guard.upload_count != 0;
}

static void send_last_goaway(struct edge_host *host, nsec_t now)
{
	if (host->shutdown_at == 0 || host->last_goaway_at != 0 || now - host->shutdown_at < SEC)
		return;
	for (h2o_linklist_t *at = host->all.next; at != &host->all; at = at->next)
		if (is_uploading(CONTAINER_OF(at, struct edge, all)))
			return;
	host->last_goaway_at = now;
	h2o_timeout_link(host->ctx->loop, &host->ctx->zero_timeout, last_goaway(host));
}

/* A request may lie in the kernel already. */
static bool has_unread(const struct edge *edge)
{
	int unread = 0;
	return ioctl(h2o_socket_get_fd(edge->sock), FIONREAD, &unread) == 0 && unread > 0;
}

static bool is_idle(const struct edge *edge, nsec_t now)
{
	nsec_t goaway = edge->host->last_goaway_at;
	if (edge->requests != 0 || edge->sock->_cb.write != NULL || has_unread(edge))
		return false;
	switch (edge->proto) {
	case EDGE_OPENING: /* who has just come is about to say something */
		return now - edge->since > SEC;
	case EDGE_HTTP1:
		return edge->sock->input->size == 0;
	case EDGE_HTTP2: /* requests that are on their way may come for a while */
		return goaway != 0 && now - goaway >= SEC && !is_uploading(edge);
	}
	return false;
}

/* h2o leaves idle HTTP/1.1 connections to their timeout, and HTTP/2 ones too whose last request is
 * reset after the second GOAWAY. */
static void shut_if_idle(struct edge *edge, nsec_t now)
{
	if (edge->host->shutdown_at != 0 && is_idle(edge, now))
		(void)shutdown(h2o_socket_get_fd(edge->sock), SHUT_RDWR);
}

void edge_host_shutdown(struct edge_host *host)
{
	nsec_t now = net_now(host->loop);
	host->shutdown_at = now;
	h2o_context_request_shutdown(host->ctx);
	if (h2o_timeout_is_linked(last_goaway(host)))
		h2o_timeout_unlink(last_goaway(host));
	for (h2o_linklist_t *at = host->all.next, *next; at != &host->all; at = next) {
		struct edge *edge = CONTAINER_OF(at, struct edge, all);
		next = at->next;
		shut_if_idle(edge, now);
		if (edge->proto != EDGE_OPENING) /* h2o may have changed callbacks */
			edge_settle(edge);
	}
}

/* ---- once a second ---- */
static enum guard_verdict check_reading(struct edge *edge, nsec_t now)
{
	const struct guard_budget *budget = &edge->host->budget;
	switch (edge->proto) {
	case EDGE_OPENING:
		return guard_too_slow(budget, edge->since, 0, now) ? GUARD_SLOW : GUARD_PASS;
	case EDGE_HTTP2: /* while gated it is us who do not read */
		return edge->gated ? GUARD_PASS : h2_guard_check_pace(&edge->guard, budget, now);
	case EDGE_HTTP1:
		break;
	}
	if (edge->since == 0 || edge->h1.held != NULL)
		return GUARD_PASS;
	return guard_too_slow(budget, edge->since, edge->h1.bytes_counted, now) ? GUARD_SLOW
										: GUARD_PASS;
}

/* An answer may wait in the socket, or in h2o for a window that never opens. */
static enum guard_verdict check_writing(struct edge *edge, nsec_t now)
{
	h2o_socket_t *sock = edge->sock;
	int queued = 0;
	if (sock->_cb.write == NULL && edge->unsent == 0) {
		edge->stall.since = 0;
		return GUARD_PASS;
	}
	(void)ioctl(h2o_socket_get_fd(sock), SIOCOUTQ, &queued);
	if (edge->stall.since == 0 || sock->bytes_written != edge->stall.written ||
	    queued != edge->stall.queued) {
		edge->stall.since = now;
		edge->stall.written = sock->bytes_written;
		edge->stall.queued = queued;
		return GUARD_PASS;
	}
	return now - edge->stall.since > edge->host->budget.patience ? GUARD_STALLED : GUARD_PASS;
}

static void edge_check(struct edge *edge, nsec_t now)
{
	const h2o_socket_t *sock = edge->sock;
	if (edge->proto != EDGE_OPENING && sock->_cb.read != NULL && sock->_cb.read != on_read)
		edge_count(&edge->host->counters->foreign_reads); /* a hole in the guard: stays 0 */
	enum guard_verdict verdict = check_reading(edge, now);
	if (verdict == GUARD_PASS)
		verdict = check_writing(edge, now);
	if (verdict != GUARD_PASS)
		edge_kill(edge, verdict); /* its callbacks close it */
	shut_if_idle(edge, now);
}

static void on_tick(struct net_timer *timer)
{
	struct edge_host *host = CONTAINER_OF(timer, struct edge_host, tick);
	nsec_t now = net_now(host->loop);
	send_last_goaway(host, now);
	for (h2o_linklist_t *at = host->all.next; at != &host->all; at = at->next)
		edge_check(CONTAINER_OF(at, struct edge, all), now);
	net_timer_set(host->loop, timer, now + SEC);
}

void edge_host_init(struct edge_host *host)
{
	h2o_linklist_init_anchor(&host->all);
	h2o_linklist_init_anchor(&host->unsettled);
	host->tick = (struct net_timer){ .fire = on_tick };
}

void edge_host_start(struct edge_host *host)
{
	net_h2o_before_wait(host->loop, settle_all, host);
	net_timer_set(host->loop, &host->tick, net_now(host->loop) + SEC);
}

/* ---- beginning and end ---- */
static void on_closed(void *data)
{
	struct edge *edge = data;
	struct edge_host *host = edge->host;
	if (edge->gone != NULL)
		*edge->gone = true;
	h2o_linklist_unlink(&edge->all);
	if (h2o_linklist_is_linked(&edge->unsettled))
		h2o_linklist_unlink(&edge->unsettled);
	if (edge->proto == EDGE_HTTP2)
		h2_guard_fini(&edge->guard, &host->budget);
	if (edge->proto == EDGE_HTTP1) {
		host->budget.unfinished_bytes -= edge->h1.bytes_counted;
		if (edge->h1.held != NULL)
			h2o_buffer_dispose(&edge->h1.held);
		if (edge->h1.early != NULL)
			h2o_buffer_dispose(&edge->h1.early);
	}
	tls_names_free(edge->names);
	tls_server_free(edge->tls);
	free(edge);
	host->count--;
	atomic_store_explicit(&host->counters->connections_open, host->count, memory_order_relaxed);
	host->closed(host->owner);
}

struct edge *edge_new(struct edge_host *host, h2o_socket_t *sock)
{
	struct edge *edge = calloc(1, sizeof(*edge));
	if (edge == NULL) {
		h2o_socket_close(sock);
		return NULL;
	}
	edge->host = host;
	edge->sock = sock;
	edge->since = net_now(host->loop);
	edge->connected_at = *h2o_get_timestamp(host->ctx, NULL, NULL);
	/* The only field of a socket that h2o leaves to its user. */
	sock->on_close.cb = on_closed;
	sock->on_close.data = edge;
	h2o_linklist_insert(&host->all, &edge->all);
	host->count++;
	edge_count(&host->counters->connections);
	atomic_store_explicit(&host->counters->connections_open, host->count, memory_order_relaxed);
	return edge;
}

void edge_begin(struct edge *edge, enum edge_proto proto)
{
	struct edge_host *host = edge->host;
	h2o_socket_t *sock = edge->sock;
	h2o_accept_ctx_t accept_ctx = { .ctx = host->ctx, .hosts = host->hosts };
	struct h2o_call call;
	size_t before = sock->input->size;

	must(edge->proto == EDGE_OPENING);
	edge->proto = proto;
	if (proto == EDGE_HTTP2) { /* the first flight, before h2o sees it */
		nsec_t now = net_now(host->loop);
		h2_guard_init(&edge->guard, now);
		enum guard_verdict verdict =
			h2_guard_scan(&edge->guard, &host->budget, sock->input->bytes, before, now);
		if (verdict != GUARD_PASS) {
			edge_kill(edge, verdict);
			h2o_socket_close(sock);
			return;
		}
	}
	call_begin(edge, &call);
	if (proto == EDGE_HTTP2)
		h2o_http2_accept(&accept_ctx, sock, edge->connected_at);
	else
		h2o_http1_accept(&accept_ctx, sock, edge->connected_at);
	if (!call_end(edge, &call))
		return;
	if (proto == EDGE_HTTP2)
		h2_guard_ate(&edge->guard, before - sock->input->size);
	else
		h1_count(edge);
	edge_settle(edge);
}

struct edge *edge_of(const h2o_req_t *req)
{
	return req->conn->callbacks->get_socket(req->conn)->on_close.data;
}

void edge_send(struct edge *edge, h2o_req_t *req, h2o_iovec_t *body, size_t body_count,
	       h2o_send_state_t state)
{
	struct h2o_call call;
	if (edge->proto == EDGE_HTTP1)
		edge->h1.watched = NULL;
	edge->unsent++;
	call_begin(edge, &call);
	h2o_send(req, body, body_count, state);
	if (call_end(edge, &call))
		edge_settle(edge);
}

void edge_request_over(struct edge *edge, bool sent, bool answered)
{
	edge->requests--;
	if (sent)
		edge->unsent--;
	if (edge->proto == EDGE_HTTP1) {
		edge->h1.watched = NULL;
		return;
	}
	enum guard_verdict verdict = h2_guard_request_over(&edge->guard, answered);
	if (verdict != GUARD_PASS)
		edge_kill(edge, verdict);
}
