/* mcp_round_answer.c - what the client gets of a call with rounds: the events of all legs as one stream, and one answer
 * under its own id. */
#include "codec/base/must.h"
#include "codec/mcp/mcp_edit.h"
#include "gateway/front/mcp/mcp_round.h"

/* ---- the answer ---- */

static void end_stream(struct mcp_request *request, struct slice message)
{
	struct slice event = slice_of(NULL, 0);

	if (!slice_absent(message) && request->out.between)
		event = mcp_event_of(message, &request->arena);
	const bool good = !slice_absent(event) && mcp_out_add(&request->out, event);
	mcp_out_end(&request->out, !good);
}

void mcp_round_answer(struct mcp_request *request, struct slice message)
{
	net_timer_stop(request->host->loop, &request->round->patience);
	if (mcp_round_begun(request))
		end_stream(request, message);
	else if (slice_absent(message))
		mcp_fail(request, ERR_BUSY, NULL);
	else
		mcp_answer_whole(request, message);
}

void mcp_round_answer_error(struct mcp_request *request, struct slice error)
{
	if (!mcp_round_begun(request)) {
		request->status = 200;
		mcp_begin_fields(request);
		mcp_add_field(request, SLICE("content-type"), SLICE("application/json"));
	}
	mcp_round_answer(request, error);
}

struct slice mcp_round_error(struct mcp_request *request, const struct fault *fault,
			     const struct error_data *data)
{
	struct gather text;

	gather_init(&text, &request->arena);
	jsonrpc_write_error(&text, request->posted.first.id, fault, data);
	return gather_done(&text) == ERR_OK ? gather_flat(&text, &request->arena)
					    : slice_of(NULL, 0);
}

void mcp_round_fail(struct mcp_request *request, enum err err, const char *detail)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET, .detail = detail };
	const struct slice error = mcp_round_error(request, &fault, &error_data_none);

	if (!slice_absent(error)) {
		request->refused = err;
		request->detail = detail;
	}
	mcp_round_answer_error(request, error);
}

void mcp_round_fail_leg(struct mcp_request *request, enum err err, const char *detail)
{
	if (mcp_round_begun(request)) {
		mcp_round_fail(request, err, detail);
		return;
	}
	net_timer_stop(request->host->loop, &request->round->patience);
	mcp_fail(request, err, detail);
}

/* ---- a client that waits ---- */

/* Nothing has come for long: comments keep the connection alive from now on. */
static void on_impatient(struct net_timer *timer)
{
	struct mcp_round *round = CONTAINER_OF(timer, struct mcp_round, patience);
	struct mcp_request *request = round->request;
	const struct mcp_answer_head head = { .content_type = SLICE("text/event-stream"),
					      .events = true };

	if (mcp_head_pass(request, &head))
		mcp_stream_begin(request, 200);
}

void mcp_round_wait(struct mcp_request *request)
{
	struct net_timer *timer = &request->round->patience;

	if (mcp_round_begun(request) ||
	    !slice_has_nocase(request->in->headers[HTTP_ACCEPT], SLICE("text/event-stream")))
		return;
	timer->fire = on_impatient;
	net_timer_set(request->host->loop, timer,
		      net_now(request->host->loop) + MCP_ROUND_PATIENCE);
}

/* ---- a leg's response ---- */

struct slice mcp_round_leg_id(const struct mcp_request *request)
{
	const struct slice id = request->round->id;

	return slice_absent(id) ? request->posted.first.id : id;
}

bool mcp_round_takes(struct mcp_request *request, struct slice text,
		     const struct mcp_message *message)
{
	struct mcp_round *round = request->round;
	const bool bridged = request->link.token.bridged; /* such a client knows of no rounds */

	if (bridged ? !mcp_message_asks(message) : !mcp_round_asks(message))
		return false;
	if (!bridged && !round->rule.answers &&
	    mcp_entries_count(message->in_result.input_requests).samplings == 0)
		return false;
	round->asked = arena_copy(&round->heard, text);
	round->failed = slice_absent(round->asked);
	return !round->failed;
}

/* ---- a leg's stream ---- */

/* Progress begins anew with each leg, and the client's must rise. */
static bool is_stale(struct mcp_request *request, const struct mcp_message *message)
{
	struct mcp_round *round = request->round;
	double progress;

	if (message->kind != MCP_NOTIFICATION ||
	    !json_loose_is(message->method, "notifications/progress") ||
	    !json_loose_same_id(message->in_params.progress_token,
				mcp_message_token(&request->posted.first)) ||
	    !json_loose_number(message->in_params.progress, &progress))
		return false;
	if (round->number != 0 && round->progressed && progress <= round->progress)
		return true;
	round->progressed = true;
	round->progress = progress;
	return false;
}

/* The event with its response under the client's id. Absent: no memory. */
static struct slice renamed(struct mcp_request *request, const struct mcp_passed *passed)
{
	const struct mcp_shown shown = { .id = slice_absent(request->round->id)
						       ? slice_of(NULL, 0)
						       : request->posted.first.id };
	const char *at = passed->message->id.at;
	const bool one_line = at >= passed->raw.at && at < passed->raw.at + passed->raw.len;
	const struct slice text = mcp_round_show(one_line ? passed->raw : passed->data,
						 passed->message, &shown, &request->arena);

	if (slice_absent(shown.id))
		return passed->raw;
	return one_line || slice_absent(text)
		       ? text
		       : mcp_filter_with_data(passed->raw, text, &request->arena);
}

static bool on_pass(struct mcp_filter *filter, const struct mcp_passed *passed)
{
	struct mcp_request *request = CONTAINER_OF(filter, struct mcp_request, filter);
	struct mcp_round *round = request->round;
	const struct mcp_message *message = passed->message;
	struct slice raw = passed->raw;

	if (!slice_absent(round->asked))
		return true; /* nothing follows a response */
	if (message != NULL && is_stale(request, message))
		return true;
	if (message != NULL && message->kind == MCP_RESPONSE &&
	    json_loose_same_id(message->id, mcp_round_leg_id(request))) {
		if (round->answered)
			return true; /* the client has its answer */
		if (mcp_round_takes(request, passed->data, message)) {
			upstream_enough(&request->call, true);
			return true;
		}
		round->answered = true;
		raw = renamed(request, passed);
		if (round->failed || slice_absent(raw))
			return false;
	}
	mcp_count_passed(request->mcp, &request->link, passed);
	request->out.between = passed->between;
	return mcp_out_add(&request->out, raw);
}

/* The filter does not take: there are no requests of servers in this revision. */
const struct mcp_filter_events mcp_round_events = { .pass = on_pass };
