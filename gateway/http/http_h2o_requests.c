/* http_h2o_requests.c - the edge's part that requests and their answers pass through, between http_h2o.c and libh2o. */
#include "gateway/http/http_h2o_parts.h"

void edge_watch(struct edge *edge, h2o_req_t *req, void *watched)
{
	if (edge->requests++ == 0)
		h2o_linklist_unlink(&edge->idle);
	if (edge->proto == EDGE_HTTP1)
		http1_watch(edge, req, watched);
	else if (edge->since == 0)
		edge->since = net_now(edge->host->loop);
}

enum guard_verdict edge_body_refused(const struct edge *edge, h2o_req_t *req)
{
	if (edge->proto != EDGE_HTTP2 || edge->guard.ends.count == 0)
		return GUARD_PASS;
	return h2_guard_refuses(&edge->guard, http2_stream_id(req));
}

static void reset_stream(struct edge *edge, uint32_t stream, uint32_t code)
{
	struct edge_call call;

	edge_call_begin(edge, &call);
	http2_reset(edge, stream, code);
	if (edge_call_end(edge, &call))
		edge_settle(edge);
}

void edge_reset(struct edge *edge, uint32_t stream, enum guard_verdict why)
{
	edge_count(&edge->host->counters->guard_kills[why]);
	h2_guard_reset(&edge->guard, &edge->host->budget, stream);
	reset_stream(edge, stream, why == GUARD_UNFINISHED_BYTES ? RST_REFUSED : RST_CANCEL);
}

void edge_cut(struct edge *edge, h2o_req_t *req)
{
	if (edge->proto == EDGE_HTTP2)
		reset_stream(edge, http2_stream_id(req), RST_INTERNAL);
	else
		http1_shut(edge, req);
}

void edge_forget(struct edge *edge)
{
	if (edge->proto == EDGE_HTTP1)
		http1_forget(edge);
}

/* Since its first request: there is one. */
static nsec_t age_of(const struct edge *edge)
{
	return net_now(edge->host->loop) - edge->since;
}

bool edge_may_begin(const struct edge *edge)
{
	return !edge->killed && (edge->proto != EDGE_HTTP2 ||
				 h2_guard_may_begin(&edge->guard, edge->begun, age_of(edge)));
}

bool edge_hold(struct edge *edge, size_t body)
{
	if (h2_guard_hold(&edge->guard, &edge->host->budget, body, net_now(edge->host->loop)) ==
	    GUARD_PASS)
		return true;
	h2_guard_let_go(&edge->guard, &edge->host->budget, body);
	return false;
}

void edge_let_go(struct edge *edge, size_t body)
{
	h2_guard_let_go(&edge->guard, &edge->host->budget, body);
}

void edge_await_room(struct edge *edge)
{
	nsec_t more_in = h2_guard_more_in(&edge->guard, age_of(edge));
	if (more_in != 0)
		net_timer_set(edge->host->loop, &edge->more, net_now(edge->host->loop) + more_in);
}

void edge_begun(struct edge *edge)
{
	edge->begun++;
}

void edge_rest(struct edge *edge, bool rests)
{
	if (rests) {
		edge->begun--;
		edge_probe(edge);
	} else {
		edge->begun++;
	}
	if (edge->proto == EDGE_HTTP1)
		http1_rest(edge, rests);
}

void edge_send(struct edge *edge, h2o_req_t *req, h2o_iovec_t *body, size_t body_count,
	       h2o_send_state_t state)
{
	struct edge_call call;
	if (edge->proto == EDGE_HTTP1 && state != H2O_SEND_STATE_IN_PROGRESS) {
		edge->h1.watched = NULL;
		edge->h1.last = true;
	}
	edge->unsent++;
	edge_call_begin(edge, &call);
	h2o_send(req, body, body_count, state);
	if (edge_call_end(edge, &call))
		edge_settle(edge);
}

void edge_send_head(struct edge *edge, h2o_req_t *req)
{
	struct edge_call call;

	edge->unsent++;
	edge_call_begin(edge, &call);
	if (edge->proto == EDGE_HTTP2)
		http2_send_head(req);
	else
		http1_send_head(req);
	if (edge_call_end(edge, &call))
		edge_settle(edge);
}

/* A reader that has caught up is not a slow one, however often something new waits for it just when it
 * is looked at. */
void edge_taken(struct edge *edge)
{
	if (--edge->unsent == 0)
		edge->reader.since = 0;
}

void edge_request_over(struct edge *edge, bool unsent, enum guard_ending ending)
{
	if (ending != GUARD_UNBEGUN)
		edge->begun--;
	if (--edge->requests == 0) {
		edge->idle_since = net_now(edge->host->loop);
		h2o_linklist_insert(&edge->host->idle, &edge->idle);
	}
	if (unsent)
		edge->unsent--;
	if (edge->proto == EDGE_HTTP1) {
		edge->h1.watched = NULL;
		return;
	}
	enum guard_verdict verdict = h2_guard_request_over(&edge->guard, ending);
	if (verdict != GUARD_PASS)
		edge_kill(edge, verdict);
}
