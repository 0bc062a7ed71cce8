/* mcp_free.c - the one place where all that a client's exchange holds is given back. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/front/mcp/mcp_remote.h"

void mcp_rest(struct mcp_request *request)
{
	if (request->link_place != NULL)
		return;
	mcp_note_key(request);
	request->goes_on = request->in != NULL &&
			   !slice_absent(http_find_header(request->in, SLICE("last-event-id")));
	request->next = request->mcp->all_gets;
	request->link_place = &request->mcp->all_gets;
	if (request->next != NULL)
		request->next->link_place = &request->next;
	request->mcp->all_gets = request;
}

void mcp_get_gone(struct mcp_request *request)
{
	mcp_client_detach(&request->client, net_now(request->host->loop));
	if (request->remote != NULL)
		mcp_remote_detach(request->remote);
	if (request->link_place == NULL)
		return;
	*request->link_place = request->next;
	if (request->next != NULL)
		request->next->link_place = request->link_place;
	request->link_place = NULL;
}

void mcp_request_free(struct mcp_request *request)
{
	must_obj(request, MCP_REQUEST_MAGIC);
	mcp_samplings_detach(request);
	if (request->sse_stream)
		mcp_sse_over(request); /* the stream is the session */
	mcp_count_stream(request, false);
	mcp_own_forget(request);
	mcp_get_gone(request);
	mcp_unfollow(request);
	cancel_leave(&request->by_id);
	mcp_hold_nothing(&request->mcp->shares, &request->share);
	mcp_place_give(request);
	net_timer_stop(request->host->loop, &request->patience);
	net_timer_stop(request->host->loop, &request->alone);
	mcp_out_drop(&request->out);
	upstream_cancel(&request->call);
	upstream_finish(&request->call);
	if (request->legs != NULL)
		request->legs->drop(request);
	if (request->newer != NULL) {
		*request->newer = request->older;
		if (request->older != NULL)
			request->older->newer = request->newer;
	}
	mcp_filter_free(&request->filter);
	request->magic = 0;
	arena_give(&request->arena);
	slab_give(&request->host->records, request);
}
