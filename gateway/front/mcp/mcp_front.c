/* mcp_front.c - takes a client's exchange from HTTP to its server and back. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"

/* ---- begin and end of a request ---- */

static void init(struct mcp_request *request, struct front_host *host,
		 struct http_exchange *exchange, const struct http_incoming *in)
{
	*request = (struct mcp_request){ .front.front = &mcp_front,
					 .magic = MCP_REQUEST_MAGIC,
					 .mcp = host->mcp,
					 .host = host,
					 .exchange = exchange,
					 .in = in,
					 .text = in->body };
	arena_init(&request->arena,
		   slice_eq(in->method, SLICE("GET")) ? &host->mcp->resting : host->arenas,
		   MCP_ARENA_MAX);
	if (exchange != NULL)
		http_return_room(exchange);
	sampling_new_ids(host->core, in->headers[HTTP_TRACEPARENT], &request->ids);
	request->ask = (struct sampling_ask){
		.ids = &request->ids,
		.arena = &request->arena,
		.body = in->body,
		.started = in->came_at,
		.deadline = NSEC_NEVER,
		.started_wall_ns = net_wall_ns(host->loop) - (net_now(host->loop) - in->came_at),
	};
}

static void link_in(struct mcp_request *request)
{
	struct mcp_host *mcp = request->mcp;

	request->older = mcp->all_requests;
	request->newer = &mcp->all_requests;
	if (request->older != NULL)
		request->older->newer = &request->older;
	mcp->all_requests = request;
}

/* Refused before the server was asked: the answer leaves as a copy, so that its reader holds nothing else. */
static void refuse_and_free(struct mcp_request *request)
{
	struct http_exchange *exchange = request->exchange;

	http_refuse(exchange, request->status, request->fields, request->field_count,
		    gather_flat(&request->answer, &request->arena));
	if (request->refused != ERR_OK)
		mcp_log_refusal(request);
	mcp_request_free(request);
	http_drop_body(exchange);
}

/* There is no place for the request. */
__attribute__((noinline)) static void refuse_busy(struct front_host *host,
						  struct http_exchange *exchange,
						  const struct http_incoming *in)
{
	struct mcp_request request;

	init(&request, host, exchange, in);
	(void)mcp_refuse_err(&request, ERR_BUSY);
	http_refuse(exchange, request.status, request.fields, request.field_count,
		    gather_flat(&request.answer, &request.arena));
	mcp_log_refusal(&request);
	arena_give(&request.arena);
	http_drop_body(exchange);
}

static void *on_begin(struct front_host *host, struct http_exchange *exchange,
		      const struct http_incoming *in, bool found)
{
	struct mcp_request *request = slab_take(&host->records);

	if (request == NULL) {
		refuse_busy(host, exchange, in);
		return NULL;
	}
	init(request, host, exchange, in);
	link_in(request);
	if (mcp_read_head(request, found) && mcp_read_body(request) && mcp_serve(request)) {
		request->server = NULL; /* a reload may come */
		return request;
	}
	refuse_and_free(request);
	return NULL;
}

static bool on_expects(struct front_host *host, struct http_early *early,
		       const struct http_incoming *in, bool found)
{
	struct mcp_request request;

	init(&request, host, NULL, in);
	const bool good = mcp_read_head(&request, found);
	if (!good) {
		http_refuse_early(early, request.status, request.fields, request.field_count,
				  gather_flat(&request.answer, &request.arena));
		if (request.refused != ERR_OK)
			mcp_log_refusal(&request);
	}
	arena_give(&request.arena);
	return good;
}

/* ---- from HTTP, later ---- */

static void on_gone(void *owner)
{
	struct mcp_request *request = owner;

	must_obj(request, MCP_REQUEST_MAGIC);
	mcp_out_drop(&request->out);
	request->exchange = NULL;
	request->in = NULL;
	mcp_gone(request);
}

static void on_sent(void *owner)
{
	struct mcp_request *request = owner;

	must_obj(request, MCP_REQUEST_MAGIC);
	mcp_out_drop(&request->out);
	request->exchange = NULL;
	if (request->refused != ERR_OK)
		mcp_log_refusal(request);
	mcp_request_free(request);
}

static void on_ready(void *owner)
{
	struct mcp_request *request = owner;

	if (request->verb == MCP_VERB_GET && request->in != NULL) { /* it may be open for hours */
		http_forget_request(request->exchange);
		request->in = NULL;
	}
	mcp_out_ready(&request->out);
}

const struct front mcp_front = {
	.record_bytes = sizeof(struct mcp_request),
	.begin = on_begin,
	.expects = on_expects,
	.gone = on_gone,
	.sent = on_sent,
	.ready = on_ready,
};
