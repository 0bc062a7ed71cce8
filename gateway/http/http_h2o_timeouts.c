/* http_h2o_timeouts.c - the edge's part that time drives: who is too slow, and who leaves at a shutdown. */
#include "gateway/http/http_h2o_parts.h"

#include "gateway/base/bounds.h"
#include "gateway/tls/tls_memory.h"

#include <linux/tcp.h>
#include <sys/ioctl.h>

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
static struct tcp_info tcp_info_of(h2o_socket_t *sock)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	(void)getsockopt(h2o_socket_get_fd(sock), IPPROTO_TCP, TCP_INFO, &info, &len);
	return info;
}

/* In records of a byte each a message is six times as long on its way. Honest ClientHellos have some hundred
 * bytes, and a few thousand with the keys of tomorrow and a ticket. */
static enum guard_verdict check_opening(const struct edge *edge, nsec_t now)
{
	if (edge->tls != NULL && edge->ssl == NULL &&
	    tcp_info_of(edge->sock).tcpi_bytes_received > TLS_MESSAGE_MAX)
		return GUARD_FLOOD;
	return guard_too_slow(&edge->host->budget, edge->since, now) ? GUARD_SLOW : GUARD_PASS;
}

static enum guard_verdict check_reading(struct edge *edge, nsec_t now)
{
	struct guard_budget *budget = &edge->host->budget;
	switch (edge->proto) {
	case EDGE_OPENING:
		return check_opening(edge, now);
	case EDGE_HTTP2:
		if (edge->reading != EDGE_READS) /* it is us who do not */
			return GUARD_PASS;
		if (edge->guard.ends.count != 0)
			http2_ask_to_stop(edge, now);
		return h2_guard_check_pace(&edge->guard, budget, now);
	case EDGE_HTTP1:
		break;
	}
	if (edge->refused) /* what it still sends is thrown away */
		return guard_too_slow(budget, edge->since, now) ? GUARD_SLOW : GUARD_PASS;
	if (edge->h1.body.holder != NULL && edge->h1.held == NULL)
		guard_body_check(budget, &edge->h1.body, now);
	return GUARD_PASS;
}

/* What its kernel has acknowledged is the only thing about a reader that h2o and ours do not hide: how
 * much waits here says nothing, as h2o hands over a whole answer at once. */
static uint64_t bytes_taken(h2o_socket_t *sock)
{
	return tcp_info_of(sock).tcpi_bytes_acked;
}

/* Within two minutes; a socket of another kind than TCP knows no peer that dies unseen. */
void edge_probe(struct edge *edge)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, 60 },
		{ IPPROTO_TCP, TCP_KEEPINTVL, 15 },
		{ IPPROTO_TCP, TCP_KEEPCNT, 4 },
	};
	if (edge->probed)
		return;
	edge->probed = true;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		(void)setsockopt(h2o_socket_get_fd(edge->sock), options[i].level, options[i].name,
				 &options[i].value, sizeof(options[i].value));
}

/* An answer may wait in the socket, or in h2o for a window that never opens. */
static enum guard_verdict check_reader(struct edge *edge, nsec_t now)
{
	const nsec_t patience = edge->host->budget.patience;
	if (edge->sock->_cb.write == NULL && edge->unsent == 0) {
		edge->reader.since = 0;
		return GUARD_PASS;
	}
	uint64_t taken = bytes_taken(edge->sock);
	if (edge->reader.since == 0) {
		edge->reader.since = edge->reader.moved = now;
		edge->reader.first = edge->reader.taken = taken;
	}
	if (taken != edge->reader.taken) {
		edge->reader.moved = now;
		edge->reader.taken = taken;
	}
	nsec_t allowed = patience + (taken - edge->reader.first) * (SEC / ANSWER_BYTES_PER_S_MIN);
	bool stalled = now - edge->reader.moved > patience || now - edge->reader.since > allowed;
	return stalled ? GUARD_STALLED : GUARD_PASS;
}

static void edge_check(struct edge *edge, nsec_t now)
{
	const h2o_socket_t *sock = edge->sock;
	if (edge->proto != EDGE_OPENING && !edge->refused && edge->reading != EDGE_PAUSED &&
	    sock->_cb.read != NULL && sock->_cb.read != edge_on_read)
		edge_count(&edge->host->counters->foreign_reads); /* a hole in the guard: stays 0 */
	enum guard_verdict verdict = check_reading(edge, now);
	if (edge->goodbye.since != 0 && now - edge->goodbye.since > SEC)
		verdict = GUARD_STALLED; /* it does not take what we have to say */
	if (verdict == GUARD_PASS)
		verdict = check_reader(edge, now);
	if (verdict != GUARD_PASS)
		edge_kill(edge, verdict); /* its callbacks close it */
	else if (!h2o_linklist_is_empty(&edge->held))
		edge->host->room(edge->host->owner, edge);
	shut_if_idle(edge, now);
}

void edge_host_tick(struct net_timer *timer)
{
	struct edge_host *host = CONTAINER_OF(timer, struct edge_host, tick);
	nsec_t now = net_now(host->loop);
	send_last_goaway(host, now);
	for (h2o_linklist_t *at = host->all.next; at != &host->all; at = at->next)
		edge_check(CONTAINER_OF(at, struct edge, all), now);
	host->second(host->owner, now);
	net_timer_set(host->loop, timer, now + SEC);
}

/* ---- room for another connection ---- */
enum { EVICT_TRIES = 16 };

static bool long_idle(const struct edge *edge, nsec_t now)
{
	return now - edge->idle_since > edge->host->budget.patience / IDLE_PATIENCE_PART;
}

/* One that is in the middle of asking is no idle one; it has bounds of its own. */
static bool may_go(const struct edge *edge)
{
	if (edge->killed || edge->sock->_cb.write != NULL || has_unread(edge))
		return false;
	switch (edge->proto) {
	case EDGE_OPENING:
		break;
	case EDGE_HTTP1:
		return edge->sock->input->size == 0;
	case EDGE_HTTP2:
		return edge->guard.upload_count == 0 && edge->guard.partial_since == 0;
	}
	return true;
}

static struct edge *first_idle(const struct edge_host *host)
{
	return h2o_linklist_is_empty((h2o_linklist_t *)(uintptr_t)&host->idle)
		       ? NULL
		       : CONTAINER_OF(host->idle.next, struct edge, idle);
}

bool edge_host_has_idle(const struct edge_host *host)
{
	const struct edge *first = first_idle(host);
	return first != NULL && long_idle(first, net_now(host->loop));
}

bool edge_host_evict(struct edge_host *host)
{
	nsec_t now = net_now(host->loop);
	for (int i = 0; i < EVICT_TRIES && edge_host_has_idle(host); i++) {
		struct edge *edge = first_idle(host);
		edge->idle_since = now; /* passed over: asked again when it is its turn */
		h2o_linklist_unlink(&edge->idle);
		h2o_linklist_insert(&host->idle, &edge->idle);
		if (!may_go(edge))
			continue;
		edge->evicted = true;
		host->leaving++;
		edge_kill(edge, GUARD_EVICTED);
		return true;
	}
	return false;
}
