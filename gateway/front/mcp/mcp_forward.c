/* mcp_forward.c - one request at its server, and the answer on its way back. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_removed.h"

enum {
	RESUMES_MAX = 10, /* of a stream, in a row, that bring nothing */
};
#define RESUME_LEAST (100 * MSEC)
#define RESUME_MOST (30 * SEC) /* that a server may say to wait */

static struct mcp_request *of_call(struct upstream_call *call)
{
	return CONTAINER_OF(call, struct mcp_request, call);
}

/* ---- an answer in one piece ---- */

/* An answer that is not for the client: it is about the operator's credentials, or a redirection, which nobody follows
 * (mcp-proxy.md 3, 9.3). ERR_OK: it passes. */
enum err mcp_status_error(const struct mcp_request *request, const char **detail)
{
	const int status = request->call.answer.status;

	if ((status == 401 || status == 403) && !request->client_auth) {
		*detail = "the MCP server refuses the gateway's credentials";
		return ERR_SERVER_CREDENTIALS;
	}
	if (status >= 300 && status < 400) {
		*detail = "the MCP server answers with a redirection";
		return ERR_SERVER_ANSWER;
	}
	return ERR_OK;
}

/* DELETE, or the server does not know the session any more: whatever belongs to it ends. */
static void note_session(struct mcp_request *request)
{
	if (mcp_link_has_session(&request->link) &&
	    (request->call.answer.status == 404 || request->verb == MCP_VERB_DELETE))
		mcp_session_over(request->mcp, &request->link,
				 request->verb == MCP_VERB_DELETE ? MCP_END_DELETED
								  : MCP_END_UPSTREAM_404);
}

static void on_own_opened(struct mcp_request *request)
{
	must(request->phase == MCP_WAITS);
	net_timer_stop(request->host->loop, &request->patience);
	mcp_answer_whole(request, request->call.answer.body);
}

/* The client has told the server that it is ready. Before it hears so the session's own stream is open: what a server
 * asks for on a stream that nobody holds is lost (mcp-proxy.md 2.6). */
static bool waits_for_own(struct mcp_request *request)
{
	if (!request->link.token.own_get || request->call.answer.status / 100 != 2 ||
	    !json_loose_is(request->posted.first.method, "notifications/initialized"))
		return false;
	mcp_note_key(request);
	if (mcp_own_open(request->mcp, &request->link, &request->caller, request) == MCP_OWN_NOT)
		return false;
	request->phase = MCP_WAITS;
	request->own_opened = on_own_opened;
	net_timer_set(request->host->loop, &request->patience,
		      net_now(request->host->loop) + MCP_OWN_PATIENCE);
	return true;
}

static void on_impatient(struct net_timer *timer)
{
	struct mcp_request *request = CONTAINER_OF(timer, struct mcp_request, patience);

	mcp_own_forget(request);
	on_own_opened(request);
}

static bool pass_head(struct mcp_request *request, const struct mcp_answer_head *head)
{
	return mcp_head_pass(request, head) && mcp_session_pass(request, head->session_id);
}

/* The samplings of an answer, which may be an array. False: no memory. */
static bool take_from_body(struct mcp_request *request)
{
	struct slice *body = &request->call.answer.body;

	if (!mcp_link_takes(&request->link) || body->len == 0)
		return true;
	mcp_filter_init(&request->filter, &mcp_stream_events, &request->arena, true);
	return mcp_filter_json(&request->filter, body);
}

static void pass_whole(struct mcp_request *request)
{
	struct upstream_call *call = &request->call;
	struct mcp_answer_head head;
	const char *detail = NULL;
	enum err err = mcp_status_error(request, &detail);

	note_session(request);
	mcp_head_read(request->extra.fields, &head);
	if (err == ERR_OK && mcp_hello_whole(request, &head))
		return;
	if (err == ERR_OK && !pass_head(request, &head))
		err = ERR_BUSY;
	if (err == ERR_OK && !take_from_body(request))
		err = ERR_BUSY;
	if (err != ERR_OK) {
		mcp_fail(request, err, detail);
		return;
	}
	request->status = call->answer.status;
	mcp_count_whole(request, call->answer.body);
	if (!waits_for_own(request))
		mcp_answer_whole(request, call->answer.body);
}

/* The client is gone: only what is asked for counts. */
static void orphan_whole(struct mcp_request *request)
{
	if (request->call.err == ERR_OK) {
		note_session(request);
		if (!take_from_body(request))
			mcp_count_lost(request->mcp, &request->link);
	}
	mcp_request_free(request);
}

/* ---- an answer as an event stream ---- */

static struct mcp_request *of_filter(struct mcp_filter *filter)
{
	return CONTAINER_OF(filter, struct mcp_request, filter);
}

static bool on_pass(struct mcp_filter *filter, const struct mcp_passed *passed)
{
	struct mcp_request *request = of_filter(filter);

	mcp_count_passed(request->mcp, &request->link, passed);
	request->resumable |= !slice_absent(passed->id);
	/* Only responses pass in parts. */
	request->responded |= passed->answers || (passed->message == NULL && !passed->between);
	if (passed->message != NULL) {
		request->resumes = 0;
		request->heard = net_now(request->host->loop);
	}
	request->out.between = passed->between;
	return mcp_out_add(&request->out, passed->raw);
}

static void on_take(struct mcp_filter *filter, struct slice text, const struct mcp_message *message)
{
	struct mcp_request *request = of_filter(filter);

	mcp_sampling_begin(request->mcp, &request->link, &request->caller, text, message, request);
}

static bool on_cancel(struct mcp_filter *filter, struct slice id)
{
	struct mcp_request *request = of_filter(filter);

	return mcp_sampling_cancelled(request->mcp, &request->link, id);
}

static void on_too_large(struct mcp_filter *filter, struct slice id)
{
	struct mcp_request *request = of_filter(filter);

	mcp_post_too_large(request->mcp, &request->link, id);
}

const struct mcp_filter_events mcp_stream_events = {
	.pass = on_pass, .take = on_take, .cancel = on_cancel, .too_large = on_too_large
};

static size_t held_by(const struct mcp_request *request)
{
	return request->filter.rest.len + mcp_out_waits(&request->out);
}

static void on_drained(struct mcp_out *out)
{
	struct mcp_request *request = CONTAINER_OF(out, struct mcp_request, out);

	/* It holds less than before, unless it has failed. */
	if (mcp_hold_bytes(&request->mcp->shares, &request->share, &request->link.token.tenant,
			   held_by(request)))
		upstream_resume(&request->call);
}

/* A client that does not read holds its server up; but while samplings of the stream are under way the server is read
 * on, up to a window: what they wait for may come on it. */
static void slow_down(struct mcp_request *request)
{
	const size_t most = request->samplings == NULL ? MCP_OUT_MAX : MCP_HELD_MAX;

	if (mcp_out_waits(&request->out) > most)
		upstream_pause(&request->call);
}

/* False: the tenant's streams hold as much as they may; this one has failed. */
static bool hold(struct mcp_request *request)
{
	if (mcp_hold_bytes(&request->mcp->shares, &request->share, &request->link.token.tenant,
			   held_by(request)))
		return true;
	mcp_filter_fail(&request->filter);
	return false;
}

static void on_piece(struct upstream_call *call, struct slice bytes)
{
	struct mcp_request *request = of_call(call);

	if (request->sse_stream)
		mcp_sse_refresh(request);
	if (mcp_filter_feed(&request->filter, bytes) && hold(request)) {
		slow_down(request);
		upstream_holds(call, held_by(request));
	} else {
		upstream_enough(call, false); /* `done` finds that the filter has failed */
	}
}

/* What takes the place of a GET in 2026-07-28. */
static bool listens(const struct mcp_request *request)
{
	return request->modern &&
	       json_loose_is(request->posted.first.method, "subscriptions/listen");
}

/* For hours. */
static bool may_be_silent(const struct mcp_request *request)
{
	return request->verb == MCP_VERB_GET || listens(request);
}

void mcp_stream_begin(struct mcp_request *request, int status)
{
	request->phase = MCP_STREAMS;
	mcp_count_stream(request, true);
	request->status = status;
	mcp_out_init(&request->out, request->host->loop, request->host->arenas, request->exchange,
		     may_be_silent(request), on_drained);
	mcp_out_head(&request->out, request->status, request->fields, request->field_count);
	mcp_out_flush(&request->out);
	if (may_be_silent(request))
		mcp_rest(request);
}

static void begin_filter(struct mcp_request *request)
{
	mcp_filter_init(&request->filter, &mcp_stream_events, &request->arena,
			mcp_link_takes(&request->link));
	request->filter.whole = mcp_link_hides(&request->link);
}

/* The answer to a subscription has no end, and is passed as it comes even if it is no event stream: some servers write a
 * line of JSON for each message. */
static bool streams(const struct mcp_request *request, const struct mcp_answer_head *head)
{
	const int status = request->call.answer.status;

	/* 205 has no body that a client would see (RFC 9110, 15.3.6). */
	return head->events ? status != 205 : status == 200 && listens(request);
}

static bool on_head(struct upstream_call *call)
{
	struct mcp_request *request = of_call(call);
	struct mcp_answer_head head;
	const char *detail;

	mcp_head_read(request->extra.fields, &head);
	if (request->resuming) {
		request->resuming = !head.events || call->answer.status != 200;
		if (!request->resuming)
			mcp_filter_again(&request->filter);
		return !request->resuming;
	}
	if (!streams(request, &head) || mcp_status_error(request, &detail) != ERR_OK)
		return false;
	mcp_count_head(request, net_now(request->host->loop));
	/* The answers to a server's requests must not wait for a connection that a call has which waits for them. */
	request->extra.stream = true;
	if (may_be_silent(request))
		call->timeouts.idle = NSEC_NEVER;
	if (request->phase == MCP_ORPHAN) {
		begin_filter(request);
		return true;
	}
	if (request->hello != MCP_HELLO_NONE)
		return mcp_hello_begin(request, &head);
	if (request->legs != NULL)
		return request->legs->head(request, &head);
	if (!pass_head(request, &head))
		return false; /* without memory it fails as a whole */
	if (request->may_sse) {
		mcp_sse_begin(request);
		return true;
	}
	begin_filter(request);
	request->filter.raw = !head.events;
	mcp_stream_begin(request, call->answer.status);
	request->out.between = head.events;
	return true;
}

/* ---- a stream that ends before its response (mcp-proxy.md 5.3.5) ---- */

/* The server means to go on over a GET. The client would, too, had it seen the id of an event; but that event was a
 * sampling. */
static bool may_resume(const struct mcp_request *request)
{
	return request->call.err == ERR_OK && mcp_link_answers(&request->link) &&
	       mcp_link_has_session(&request->link) && !request->responded && !request->resumable &&
	       request->filter.last_id.len != 0 && request->resumes < RESUMES_MAX;
}

static bool resume(struct mcp_request *request)
{
	const struct mcp_server *server = mcp_link_way(request->mcp, &request->link);
	struct gather head;

	upstream_finish(&request->call);
	if (server == NULL)
		return false;
	gather_init(&head, &request->arena);
	if (!mcp_head_write(&head, server, &request->link, NULL, false, MCP_VERB_GET,
			    mcp_buffer_slice(&request->filter.last_id), 0))
		return false;
	const struct slice flat = gather_flat(&head, &request->arena);
	if (slice_absent(flat))
		return false;
	request->sent[0] = (struct iovec){ (void *)(uintptr_t)flat.at, flat.len };
	request->call.request_count = 1;
	request->resuming = true;
	return mcp_call_start(request->mcp, server, &request->link, &request->call, &request->extra,
			      &request->pin);
}

static void end_stream(struct mcp_request *request, bool good)
{
	mcp_samplings_detach(request);
	if (request->phase == MCP_ORPHAN)
		mcp_request_free(request);
	else
		mcp_out_end(&request->out, !good);
}

static void on_resume(struct net_timer *timer)
{
	struct mcp_request *request = CONTAINER_OF(timer, struct mcp_request, patience);

	if (!resume(request))
		end_stream(request, false);
}

static void resume_later(struct mcp_request *request)
{
	nsec_t wait = SEC;

	if (request->filter.retries)
		wait = request->filter.retry_ms < RESUME_MOST / MSEC
			       ? request->filter.retry_ms * MSEC
			       : RESUME_MOST;
	if (wait < RESUME_LEAST)
		wait = RESUME_LEAST;
	request->resumes++;
	request->patience.fire = on_resume;
	net_timer_set(request->host->loop, &request->patience, net_now(request->host->loop) + wait);
}

static void stream_done(struct mcp_request *request)
{
	if (may_resume(request)) {
		resume_later(request);
		return;
	}
	if (request->call.err == ERR_BUSY)
		mcp_filter_fail(&request->filter); /* it was given up here */
	const bool good = request->call.err == ERR_OK && !request->resuming &&
			  mcp_filter_end(&request->filter);
	if (!good)
		request->detail = request->call.detail;
	end_stream(request, good);
}

/* A DELETE ends the session whatever the server says, or does not say, to it (mcp-proxy.md 4.7). */
static void fail_call(struct mcp_request *request)
{
	if (request->verb == MCP_VERB_DELETE && mcp_link_has_session(&request->link))
		mcp_session_over(request->mcp, &request->link, MCP_END_DELETED);
	mcp_fail(request, mcp_call_error(&request->call), request->call.detail);
}

static void on_done(struct upstream_call *call)
{
	struct mcp_request *request = of_call(call);

	must_obj(request, MCP_REQUEST_MAGIC);
	if (call->err == ERR_OK)
		mcp_count_head(request, call->first_byte_at);
	if (request->legs != NULL)
		request->legs->done(request);
	else if (request->may_sse && request->phase == MCP_CALLED && request->filter.failed)
		mcp_fail(request, ERR_SERVER_ANSWER, request->sse_fault);
	else if (request->phase == MCP_ORPHAN && request->filter.events == NULL)
		orphan_whole(request);
	else if (request->phase == MCP_STREAMS || request->phase == MCP_ORPHAN)
		stream_done(request);
	else if (request->phase == MCP_HOLDS)
		mcp_hello_done(request);
	else if (call->err != ERR_OK)
		fail_call(request);
	else
		pass_whole(request);
}

/* ---- the request ---- */

static bool write_request(struct mcp_request *request, struct slice body)
{
	struct gather head;

	gather_init(&head, &request->arena);
	if (!mcp_head_write(&head, request->server, &request->link, request->in, request->modern,
			    request->verb, slice_of(NULL, 0), body.len))
		return false;
	const struct slice flat = gather_flat(&head, &request->arena);
	request->sent[0] = (struct iovec){ (void *)(uintptr_t)flat.at, flat.len };
	request->sent[1] = (struct iovec){ (void *)(uintptr_t)body.at, body.len };
	return !slice_absent(flat);
}

bool mcp_forward(struct mcp_request *request, struct slice body)
{
	struct upstream_call *call = &request->call;

	if (!write_request(request, body))
		return mcp_refuse_err(request, ERR_BUSY);
	request->client_auth = request->server->client_auth;
	request->patience.fire = on_impatient;
	call->request = request->sent;
	call->request_count = body.len != 0 ? 2 : 1;
	call->into = &request->arena;
	call->done = on_done;
	call->head = on_head;
	call->piece = on_piece;
	call->deadline = request->until == 0 ? NSEC_NEVER : request->until;
	call->timeouts = request->server->timeouts;
	if (!mcp_may_open(request) || (may_be_silent(request) && !mcp_may_rest(request)))
		return false;
	if (!mcp_call_start(request->mcp, request->server, &request->link, call, &request->extra,
			    &request->pin))
		return mcp_refuse_err(request, ERR_SERVER_UNAVAILABLE);
	request->phase = MCP_CALLED;
	mcp_follow(request);
	mcp_home_check(request);
	return true;
}

/* ---- the end ---- */

void mcp_forward_give_up(struct mcp_request *request)
{
	/* A call of 2026-07-28 that waits for samplings has just been told that there will be none. */
	if (request->legs != NULL && request->call.state == UPSTREAM_IDLE &&
	    request->patience.place == 0)
		return;
	net_timer_stop(request->host->loop, &request->patience);
	upstream_cancel(&request->call);
	switch (request->phase) {
	case MCP_ORPHAN:
		mcp_request_free(request);
		return;
	case MCP_STREAMS:
		mcp_samplings_detach(request);
		if (!request->out.ended)
			mcp_out_end(&request->out, true);
		return;
	case MCP_CALLED:
	case MCP_HOLDS:
	case MCP_WAITS:
		mcp_own_forget(request);
		mcp_place_give(request);
		mcp_fail(request, ERR_DRAINING, NULL);
		return;
	case MCP_READING:
	case MCP_ANSWERED:
		return;
	}
}
