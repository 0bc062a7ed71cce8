#include "gateway/http/http_h2o_edge.h"

#include "codec/base/must.h"
#include "gateway/http/http_h2o_parts.h"
#include "gateway/tls/tls.h"
#include "gateway/tls/tls_names.h"

const char edge_killed_text[] = "closed by the guard";

/* Several bodies come at once: h2o's own buffers begin with 8 KiB and double by a copy. One that is read to its
 * end serves the next connection. */
enum { HTTP2_INPUT = 64 << 10, HTTP2_INPUTS_KEPT = 2 };

static void on_wrote(h2o_socket_t *sock, const char *err);

/* Whether there is a point in saying why: nothing waits for a peer that does not read, and h2o reads. */
static bool may_say_why(const struct edge *edge, enum guard_verdict why)
{
	return edge->proto == EDGE_HTTP2 && why != GUARD_STALLED && edge->reading == EDGE_READS &&
	       edge->sock->_cb.read != NULL && !edge_h2o_is_gone(edge);
}

/* Shutting down also frees a response, or a close_notify, that waits for a peer that does not read;
 * h2o has no timer for either. Its callbacks get the error next; for reading, that of HTTP/2 has h2o say why first. */
void edge_kill(struct edge *edge, enum guard_verdict why)
{
	if (edge->goodbye.since != 0 && why != GUARD_STALLED)
		return; /* it is about to */
	if (!edge->killed) {
		edge_count(&edge->host->counters->guard_kills[why]);
		edge->why = why;
	}
	edge->goodbye.since = 0;
	if (!edge->killed && may_say_why(edge, why)) {
		edge->goodbye.since = net_now(edge->host->loop);
		edge->goodbye.last_stream = http2_last_stream(edge);
	}
	edge->killed = true;
	(void)shutdown(h2o_socket_get_fd(edge->sock),
		       edge->goodbye.since != 0 ? SHUT_RD : SHUT_RDWR);
}

void edge_stalled(struct edge *edge)
{
	edge_kill(edge, GUARD_STALLED);
}

/* ---- reading ---- */
/* h2o frees a buffer when it has eaten all of it, which what the guard took out never is, and what is left of a
 * frame not yet: a connection at rest would keep what its largest burst took, megabytes. */
static void h2_shrink(struct edge *edge)
{
	h2o_buffer_t *input = edge->sock->input, *smaller;

	if (input->bytes == NULL || (input->size > 0 && input->capacity <= HTTP2_INPUT) ||
	    input->size > HTTP2_INPUT / 2)
		return;
	h2o_buffer_init(&smaller, &edge->host->http2_input);
	if (input->size > 0) {
		h2o_iovec_t room = h2o_buffer_reserve(&smaller, input->size);
		memcpy(room.base, input->bytes, input->size);
		smaller->size = input->size;
	}
	h2o_buffer_dispose(&edge->sock->input);
	edge->sock->input = smaller;
}

/* For a while nothing more is read. Edge_settle does it, and undoes it when h2o begins to read, which it may whenever
 * something is written. */
static void h2_pause(struct edge *edge)
{
	const nsec_t now = net_now(edge->host->loop);
	const nsec_t wait = h2_guard_wait(&edge->guard, &edge->host->budget, now);

	if (wait == 0 || edge->killed || edge->sock->_cb.read == NULL)
		return;
	edge->reading = EDGE_PAUSED;
	net_timer_set(edge->host->loop, &edge->again, now + wait);
}

static void h2_unpause(struct edge *edge)
{
	edge->reading = EDGE_READS;
	net_timer_stop(edge->host->loop, &edge->again);
}

/* h2o has returned, and edge_settle is next; `before` is what its input held. */
static void http2_ate(struct edge *edge, size_t before)
{
	h2_guard_ate(&edge->guard, before - edge->sock->input->size);
	if (edge->guard.holder.over != 0) /* h2o may have begun the stream only now */
		edge_owe(edge);
	if (edge->guard.unopened != 0)
		http2_open_window(edge);
	h2_shrink(edge);
	h2_pause(edge);
}

void edge_pass(struct edge *edge, const char *err)
{
	struct edge_call call;
	size_t before = edge->sock->input->size;
	h2o_socket_cb read = edge->h2o_read;

	if (err == NULL && edge->proto == EDGE_HTTP1 && !http1_admit(edge))
		return;
	edge_call_begin(edge, &call);
	http2_eats(edge->proto == EDGE_HTTP2 ? edge : NULL);
	read(edge->sock, err);
	http2_eats(NULL);
	if (!edge_call_end(edge, &call))
		return;
	if (edge->proto == EDGE_HTTP2)
		http2_ate(edge, before);
	else
		http1_ate(edge);
	edge_settle(edge);
}

/* h2o's worst assertion is about a stream that waits for a write in progress (h2o.md 1.4): nothing
 * is parsed meanwhile. Not reading also keeps the input small. */
static void h2_gate(struct edge *edge)
{
	edge->reading = EDGE_GATED;
	h2o_socket_read_stop(edge->sock);
	edge_settle(edge);
}

/* Where something is being written, that may be the end of a TLS session whose connection h2o has freed. */
static void on_again(struct net_timer *timer)
{
	struct edge *edge = CONTAINER_OF(timer, struct edge, again);

	h2_unpause(edge);
	if (edge->sock->_cb.write != NULL)
		h2_gate(edge);
	else
		h2o_socket_read_start(edge->sock, edge_on_read);
}

static void h2_read(struct edge *edge, const char *err)
{
	if (err == NULL) {
		h2o_buffer_t *input = edge->sock->input;
		enum guard_verdict verdict =
			h2_guard_scan(&edge->guard, &edge->host->budget, input->bytes, &input->size,
				      net_now(edge->host->loop));
		if (verdict != GUARD_PASS) {
			edge_kill(edge, verdict);
			err = edge_killed_text;
		}
	}
	if (edge->goodbye.since != 0 && !http2_say_why(edge, edge->why)) {
		edge_settle(edge);
		return;
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

void edge_on_read(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	if (edge->killed)
		err = edge_killed_text;
	else if (err == NULL && edge_tls_closed(edge))
		err = h2o_socket_error_closed;
	if (edge->proto == EDGE_HTTP2)
		h2_read(edge, err);
	else if (edge->h1.held != NULL)
		http1_read_in_flight(edge, err);
	else
		edge_pass(edge, err);
}

/* ---- writing: the events on which h2o arms reading again, or goes on to the next request ---- */
static void on_wrote(h2o_socket_t *sock, const char *err)
{
	struct edge *edge = sock->on_close.data;
	struct edge_call call;
	size_t before = sock->bytes_written;
	h2o_socket_cb write = edge->h2o_write;

	if (edge->proto == EDGE_HTTP1 && edge->h1.held != NULL && edge->h1.last)
		http1_release(edge);
	/* H2o is to see a socket that reads; NULL afterwards means it stopped it. */
	if (edge->reading != EDGE_READS)
		h2o_socket_read_start(sock, edge_on_read);
	edge_call_begin(edge, &call);
	write(sock, err);
	if (!edge_call_end(edge, &call))
		return;
	if (edge->proto == EDGE_HTTP1)
		http1_count(edge);
	if (edge->reading == EDGE_PAUSED && sock->_cb.read == NULL)
		h2_unpause(edge);
	bool open_gate = edge->reading == EDGE_GATED && sock->_cb.read != NULL;
	if (open_gate && sock->_cb.write != NULL && sock->bytes_written != before) {
		h2o_socket_read_stop(sock); /* the next write is in flight already */
		open_gate = false;
	} /* bytes_written as before: h2o only asks when the socket is writable, nothing is in flight */
	if (open_gate)
		edge->reading = EDGE_READS;
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

void edge_settle(struct edge *edge)
{
	h2o_socket_t *sock = edge->sock;
	if (edge->refused)
		return;
	if (sock->_cb.read != NULL && sock->_cb.read != edge_on_read) { /* h2o has armed reading */
		edge->h2o_read = sock->_cb.read;
		sock->_cb.read = edge_on_read;
		if (edge->proto == EDGE_HTTP1 && edge->h1.early != NULL) {
			http1_add_early(edge);
			edge_pass(edge, NULL); /* settles again: h2o eats or keeps what it got */
			return;
		}
	}
	if (edge->reading == EDGE_PAUSED && sock->_cb.read != NULL)
		h2o_socket_read_stop(sock);
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

static void settle_all(struct edge_host *host)
{
	h2o_linklist_t now;
	h2o_linklist_init_anchor(&now); /* edge_settle may put a connection back */
	h2o_linklist_insert_list(&now, &host->unsettled);
	while (!h2o_linklist_is_empty(&now)) {
		struct edge *edge = CONTAINER_OF(now.next, struct edge, unsettled);
		h2o_linklist_unlink(&edge->unsettled);
		edge_settle(edge);
	}
}

/* ---- answers to bodies that have ended early ----
 *
 * Any connection's input may end another's body, so nothing is done to that one before all have had their turn. */
void edge_owe(struct edge *edge)
{
	if (!h2o_linklist_is_linked(&edge->owing))
		h2o_linklist_insert(&edge->host->owing, &edge->owing);
}

static void on_over(struct guard_holder *holder)
{
	edge_owe(CONTAINER_OF(holder, struct edge, guard.holder));
}

static void pay_all(struct edge_host *host)
{
	h2o_linklist_t now;
	h2o_linklist_init_anchor(&now); /* one that cannot yet may be put back */
	h2o_linklist_insert_list(&now, &host->owing);
	while (!h2o_linklist_is_empty(&now)) {
		struct edge *edge = CONTAINER_OF(now.next, struct edge, owing);
		h2o_linklist_unlink(&edge->owing);
		if (edge->proto == EDGE_HTTP2)
			http2_pay(edge);
		else
			http1_pay(edge);
	}
}

bool edge_h2o_is_gone(const struct edge *edge)
{
	return edge->ssl != NULL && (SSL_get_shutdown(edge->ssl) & SSL_SENT_SHUTDOWN) != 0;
}

/* What the turn has answered over HTTP/2 h2o would write after its next look for events. */
static void before_wait(void *owner)
{
	struct edge_host *host = owner;
	pay_all(host);
	h2o_timeout_run(host->ctx->loop, &host->ctx->zero_timeout, h2o_now(host->ctx->loop));
	settle_all(host);
}

void edge_host_init(struct edge_host *host)
{
	h2o_linklist_init_anchor(&host->all);
	h2o_linklist_init_anchor(&host->unsettled);
	h2o_linklist_init_anchor(&host->owing);
	host->budget.over = on_over;
	h2o_linklist_init_anchor(&host->idle);
	for (size_t fault = H1_FINE + 1; fault < H1_FAULTS; fault++)
		h1_guard_answer((enum h1_fault)fault, &host->refusals[fault]);
	host->http2_input = (h2o_buffer_prototype_t){
		.allocator = { .max = HTTP2_INPUTS_KEPT },
		._initial_buf = { .capacity = HTTP2_INPUT },
	};
	host->tick = (struct net_timer){ .fire = edge_host_tick };
}

void edge_host_start(struct edge_host *host)
{
	net_h2o_before_wait(host->loop, before_wait, host);
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
	if (h2o_linklist_is_linked(&edge->idle))
		h2o_linklist_unlink(&edge->idle);
	net_timer_stop(host->loop, &edge->again);
	net_timer_stop(host->loop, &edge->more);
	host->leaving -= edge->evicted;
	if (h2o_linklist_is_linked(&edge->unsettled))
		h2o_linklist_unlink(&edge->unsettled);
	if (h2o_linklist_is_linked(&edge->owing))
		h2o_linklist_unlink(&edge->owing);
	if (edge->proto == EDGE_HTTP2)
		h2_guard_fini(&edge->guard, &host->budget);
	if (edge->proto == EDGE_HTTP1)
		http1_fini(edge);
	tls_names_free(edge->names);
	tls_server_free(edge->tls);
	free(edge);
	host->count--;
	atomic_store_explicit(&host->counters->connections_open, host->count, memory_order_relaxed);
	host->closed(host->owner);
}

static void on_more(struct net_timer *timer)
{
	struct edge *edge = CONTAINER_OF(timer, struct edge, more);
	edge->host->room(edge->host->owner, edge);
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
	edge->number = host->numbered++;
	edge->since = net_now(host->loop);
	edge->connected_at = *h2o_get_timestamp(host->ctx, NULL, NULL);
	/* The only field of a socket that h2o leaves to its user. */
	sock->on_close.cb = on_closed;
	sock->on_close.data = edge;
	h2o_linklist_insert(&host->all, &edge->all);
	h2o_linklist_init_anchor(&edge->held);
	edge->again = (struct net_timer){ .fire = on_again };
	edge->more = (struct net_timer){ .fire = on_more };
	edge->idle_since = edge->since;
	h2o_linklist_insert(&host->idle, &edge->idle);
	host->count++;
	edge_count(&host->counters->connections);
	atomic_store_explicit(&host->counters->connections_open, host->count, memory_order_relaxed);
	return edge;
}

static void refuse_at_once(struct edge *edge, enum guard_verdict why)
{
	http2_say_why_at_once(edge, why);
	edge_kill(edge, why);
	h2o_socket_close(edge->sock);
}

void edge_refuse_preface(struct edge *edge)
{
	refuse_at_once(edge, GUARD_FORBIDDEN_FRAME);
}

void edge_begin(struct edge *edge, enum edge_proto proto)
{
	struct edge_host *host = edge->host;
	h2o_socket_t *sock = edge->sock;
	h2o_accept_ctx_t accept_ctx = { .ctx = host->ctx, .hosts = host->hosts };
	struct edge_call call;

	must(edge->proto == EDGE_OPENING);
	edge->proto = proto;
	if (proto == EDGE_HTTP2) { /* the first flight, before h2o sees it */
		h2o_buffer_set_prototype(&sock->input, &host->http2_input);
		nsec_t now = net_now(host->loop);
		edge->since = 0;
		h2_guard_init(&edge->guard,
			      edge->many_callers ? &guard_many_callers : &guard_one_caller, now);
		enum guard_verdict verdict = h2_guard_scan(
			&edge->guard, &host->budget, sock->input->bytes, &sock->input->size, now);
		if (verdict != GUARD_PASS) {
			refuse_at_once(edge, verdict);
			return;
		}
	}
	if (proto == EDGE_HTTP1 && !http1_admit(edge))
		return;
	size_t before = sock->input->size;
	edge_call_begin(edge, &call);
	if (proto == EDGE_HTTP2) {
		http2_eats(edge);
		h2o_http2_accept(&accept_ctx, sock, edge->connected_at);
		http2_eats(NULL);
	} else {
		h2o_http1_accept(&accept_ctx, sock, edge->connected_at);
	}
	if (!edge_call_end(edge, &call))
		return;
	if (proto == EDGE_HTTP2)
		http2_ate(edge, before);
	edge_settle(edge);
	if (proto == EDGE_HTTP1) /* may need h2o's callback, which is known now */
		http1_ate(edge);
}
