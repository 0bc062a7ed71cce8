/* mcp_bridge.c - what a client of an older revision sends in a bridged session: requests become calls of 2026-07-28, and what
 * that revision has no more is answered here. */
#include "gateway/front/mcp/mcp_bridge.h"
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp_bridge_text.h"
#include "gateway/front/mcp/mcp_round.h"

enum { CALLS_MAX = 256 };            /* of a session, open at once */
#define STATE_ONLY_WAIT (250 * MSEC) /* as SDK clients do */

/* ---- a call that is given up ---- */

static bool is_over(const struct mcp_request *request)
{
	return request->phase == MCP_ANSWERED || request->out.ended || request->exchange == NULL;
}

/* A client that has cancelled wants no response: its stream ends without one. */
static void end_silently(struct mcp_request *request)
{
	const struct mcp_answer_head head = { .content_type = SLICE("text/event-stream"),
					      .events = true };

	if (!mcp_round_begun(request)) {
		if (!slice_has_nocase(request->in->headers[HTTP_ACCEPT],
				      SLICE("text/event-stream"))) {
			mcp_fail(request, ERR_SAMPLING_CANCELLED, NULL);
			return;
		}
		if (!mcp_head_pass(request, &head)) {
			mcp_fail(request, ERR_BUSY, NULL);
			return;
		}
		mcp_stream_begin(request, 200);
	}
	mcp_out_end(&request->out, false);
}

/* The client has cancelled the call, or the session is over. To the server the end of its connection says so. */
static void give_up(struct mcp_request *request)
{
	if (is_over(request))
		return;
	net_timer_stop(request->host->loop, &request->patience);
	upstream_cancel(&request->call);
	upstream_finish(&request->call);
	if (request->legs != NULL)
		request->legs->drop(request);
	end_silently(request);
}

static void on_given_up(struct cancel_entry *entry)
{
	give_up(CONTAINER_OF(entry, struct mcp_request, by_id));
}

static void on_session_over(struct cancel_entry *entry)
{
	give_up(CONTAINER_OF(entry, struct mcp_request, by_session));
}

/* It is of the session, which the server knows nothing of. False: refused. */
static bool enter(struct mcp_request *request)
{
	struct mcp_host *mcp = request->mcp;

	request->by_session.key = request->link.who.key;
	request->by_session.cancelled = on_session_over;
	if (cancel_count(mcp->cancels, request->by_session.key) >= CALLS_MAX)
		return mcp_refuse_err(request, ERR_CONCURRENCY);
	cancel_enter(mcp->cancels, &request->by_session, mcp->inbox);
	request->link.token.upstream_id = SLICE("");
	request->modern = true;
	return true;
}

/* False: no memory. */
static bool enter_call(struct mcp_request *request)
{
	const struct slice id = json_loose_id_text(request->posted.first.id, &request->arena);

	if (slice_absent(id))
		return false;
	request->by_id.key = mcp_call_key(&request->link.who.key, id);
	request->by_id.cancelled = on_given_up;
	cancel_enter(request->mcp->cancels, &request->by_id, request->mcp->inbox);
	return true;
}

/* ---- a request ---- */

/* The client's message becomes what the server gets of it. */
static enum err make_modern(struct mcp_request *request)
{
	struct mcp_posted *posted = &request->posted;
	struct mcp_link *link = &request->link;
	const uint32_t log_level = mcp_session_noted(request->mcp->channels, &link->who);
	enum err err = mcp_bridge_body(posted->value, &posted->first, link->token.declared,
				       log_level, &request->arena, &request->text);

	if (err == ERR_OK)
		err = mcp_bridge_head(&posted->first, &request->arena, &link->modern_head);
	if (err != ERR_OK)
		return err;
	posted->value = request->text;
	mcp_message_read(request->text, &posted->first);
	return ERR_OK;
}

static bool serve_call(struct mcp_request *request)
{
	const enum err err = make_modern(request);

	if (err != ERR_OK)
		return mcp_refuse_err(request, err);
	if (!enter(request))
		return false;
	return enter_call(request) ? mcp_round_serve(request) : mcp_refuse_err(request, ERR_BUSY);
}

struct mcp_round_rule mcp_bridge_rule(const struct mcp_request *request)
{
	const struct plan *plan = mcp_grant(request);
	const enum mcp_sampling_mode mode = request->server->sampling;
	const bool granted = plan != NULL && (mode == MCP_BACKFILL || mode == MCP_FORCE);
	struct mcp_round_rule rule = { .follows = true };

	rule.answers = granted && mcp_message_may_ask(&request->posted.first);
	if (granted) /* also where it cannot be asked for: what a server lists may depend on it */
		rule.declared = plan->capabilities.tools ? SLICE("{\"tools\":{}}") : SLICE("{}");
	return rule;
}

/* ---- what is answered here ---- */

static bool answer_empty(struct mcp_request *request)
{
	struct gather *answer = &request->answer;

	(void)mcp_settle(request, 200);
	mcp_add_field(request, SLICE("content-type"), SLICE("application/json"));
	gather_lit(answer, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(answer, request->posted.first.id);
	gather_lit(answer, ",\"result\":{}}");
	return gather_done(answer) != ERR_OK && mcp_refuse_err(request, ERR_BUSY);
}

/* The level goes with each call from now on. */
static bool set_level(struct mcp_request *request)
{
	const uint32_t level =
		mcp_bridge_log_level(json_loose_member(request->posted.first.params, "level"));
	const struct fault fault = { .err = ERR_FIELD,
				     .offset = FAULT_NO_OFFSET,
				     .path = SLICE("$.params.level"),
				     .detail = "level must be one of syslog's eight" };

	if (level == 0)
		return mcp_refuse(request, &fault, NULL);
	mcp_session_note(request->mcp->channels, &request->link.who, level,
			 net_now(request->host->loop));
	if (request->mcp->shared != NULL)
		mcp_shared_note(request->mcp->shared, &request->link.who, level);
	return answer_empty(request);
}

static bool serve_request(struct mcp_request *request)
{
	const struct slice method = request->posted.first.method;

	if (json_loose_is(method, "ping"))
		return answer_empty(request);
	if (json_loose_is(method, "logging/setLevel"))
		return set_level(request);
	return serve_call(request);
}

static bool serve_post(struct mcp_request *request)
{
	if (request->posted.batch)
		return mcp_refuse_err(request, ERR_BATCH);
	switch (request->posted.first.kind) {
	case MCP_REQUEST:
		return serve_request(request);
	case MCP_NOTIFICATION:
		mcp_cancel_call(request, &request->posted.first);
		return mcp_settle(request, 202);
	case MCP_RESPONSE:
		return mcp_settle(request, 202); /* nothing was asked */
	case MCP_ODD:
		break;
	}
	return mcp_refuse_err(request, ERR_REQUEST);
}

bool mcp_bridge_serve(struct mcp_request *request)
{
	switch (request->verb) {
	case MCP_VERB_POST:
		return serve_post(request);
	case MCP_VERB_DELETE:
		mcp_session_over(request->mcp, &request->link, MCP_END_DELETED);
		return mcp_settle(request, 204);
	case MCP_VERB_GET:
		return enter(request) && mcp_bridge_listen(request);
	default:
		return mcp_refuse_err(request, ERR_HTTP_METHOD);
	}
}

/* ---- what the client gets ---- */

bool mcp_bridge_show(struct mcp_request *request, const struct mcp_message *response)
{
	/* 404 would be a session that is lost, and older clients do not read the body of a 400 */
	if (response->kind == MCP_RESPONSE &&
	    json_loose_same_id(response->id, mcp_round_leg_id(request))) {
		request->status = 200;
		return true;
	}
	return request->status >= 400 && request->status != 404;
}

static void on_waited(struct net_timer *timer)
{
	struct mcp_request *request = CONTAINER_OF(timer, struct mcp_request, patience);
	struct mcp_leg leg = { .answers_round = true,
			       .state = request->round->message.in_result.request_state };

	mcp_round_again(request, &leg);
}

bool mcp_bridge_round(struct mcp_request *request, const struct mcp_entries *entries)
{
	struct mcp_round *round = request->round;
	const nsec_t now = net_now(request->host->loop);

	if (entries->others != 0) {
		mcp_round_fail(request, ERR_SERVER_ANSWER,
			       "the MCP server asks the client for something that it was not "
			       "told the client can do");
		return false;
	}
	if (entries->samplings != 0)
		return true;
	if (slice_absent(round->message.in_result.request_state)) {
		mcp_round_fail(request, ERR_SERVER_ANSWER, "the MCP server asks for no input");
		return false;
	}
	if (round->number >= MCP_ROUNDS_MAX) {
		mcp_round_fail(request, ERR_ROUNDS, NULL);
		return false;
	}
	if (round->number++ == 0)
		round->until = request->until = now + MCP_ROUNDS_TIME;
	request->patience.fire = on_waited;
	net_timer_set(request->host->loop, &request->patience, now + STATE_ONLY_WAIT);
	return false;
}
