/* mcp_count.c - what is counted of the proxy's work. */
#include "gateway/front/mcp/mcp.h"
#include "gateway/telemetry/metrics.h"

static enum metrics_mcp_message kind_of(enum mcp_message_kind kind)
{
	switch (kind) {
	case MCP_REQUEST:
		return METRICS_MCP_REQUEST;
	case MCP_NOTIFICATION:
		return METRICS_MCP_NOTIFICATION;
	case MCP_RESPONSE:
		return METRICS_MCP_RESPONSE;
	default:
		return METRICS_MCP_OTHER;
	}
}

void mcp_count_message(const struct mcp_request *request, enum mcp_message_kind kind)
{
	metrics_mcp_message(request->mcp->metrics, request->link.series, false, kind_of(kind));
}

void mcp_count_passed(const struct mcp_host *mcp, const struct mcp_link *link,
		      const struct mcp_passed *passed)
{
	if (passed->message != NULL)
		metrics_mcp_message(mcp->metrics, link->series, true,
				    kind_of(passed->message->kind));
	else if (passed->last)
		metrics_mcp_message(mcp->metrics, link->series, true, METRICS_MCP_RESPONSE);
}

void mcp_count_whole(const struct mcp_request *request, struct slice body)
{
	if (body.len != 0 && request->verb == MCP_VERB_POST)
		metrics_mcp_message(request->mcp->metrics, request->link.series, true,
				    METRICS_MCP_RESPONSE);
}

void mcp_count_head(struct mcp_request *request, nsec_t at)
{
	if (request->timed || request->verb != MCP_VERB_POST)
		return;
	request->timed = true;
	if (at > request->ask.started)
		metrics_mcp_head(request->mcp->metrics, request->link.series,
				 at - request->ask.started);
}

void mcp_count_stream(struct mcp_request *request, bool open)
{
	if (request->counted == open)
		return;
	request->counted = open;
	metrics_mcp_stream(request->mcp->metrics, request->link.series,
			   request->verb == MCP_VERB_GET ? METRICS_MCP_GET : METRICS_MCP_POST,
			   open);
}

void mcp_count_failure(const struct mcp_request *request)
{
	enum metrics_mcp_failure why;

	switch (request->refused) {
	case ERR_SERVER_UNAVAILABLE:
		why = METRICS_MCP_AWAY;
		break;
	case ERR_SERVER_ANSWER:
		why = METRICS_MCP_ANSWER;
		break;
	case ERR_SERVER_CREDENTIALS:
		why = METRICS_MCP_CREDENTIALS;
		break;
	default:
		return;
	}
	metrics_mcp_failure(request->mcp->metrics, request->link.series, why);
}

/* ERR_OK: the server has taken it. */
static enum err post_error(const struct upstream_call *call)
{
	if (call->err != ERR_OK)
		return ERR_SERVER_UNAVAILABLE;
	switch (call->answer.status) {
	case 401:
	case 403:
		return ERR_SERVER_CREDENTIALS;
	case 404:
		return ERR_SESSION_UNKNOWN;
	default:
		return call->answer.status >= 300 ? ERR_SERVER_ANSWER : ERR_OK;
	}
}

void mcp_count_post(struct mcp_host *mcp, const struct mcp_link *link,
		    const struct upstream_call *call)
{
	const enum err err = post_error(call);

	if (err != ERR_OK)
		metrics_mcp_sampling(mcp->metrics, link->series, err);
}

void mcp_count_lost(struct mcp_host *mcp, const struct mcp_link *link)
{
	metrics_mcp_sampling(mcp->metrics, link->series, ERR_SERVER_UNAVAILABLE);
}
