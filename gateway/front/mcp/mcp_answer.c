/* mcp_answer.c - answers that leave as a whole. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp.h"

void mcp_answer_whole(struct mcp_request *request, struct slice body)
{
	must(request->exchange != NULL);
	request->phase = MCP_ANSWERED;
	request->sent[0] = (struct iovec){ (void *)(uintptr_t)body.at, body.len };
	http_answer(request->exchange, request->status, request->fields, request->field_count,
		    request->sent, body.len != 0, body.len);
}

void mcp_fail(struct mcp_request *request, enum err err, const char *detail)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET, .detail = detail };

	(void)mcp_refuse(request, &fault, NULL);
	mcp_answer_whole(request, gather_flat(&request->answer, &request->arena));
}

bool mcp_session_pass(struct mcp_request *request, struct slice upstream_id)
{
	struct slice text;

	if (slice_absent(upstream_id) || upstream_id.len == 0 ||
	    !slice_eq(upstream_id, request->link.token.upstream_id))
		return true;
	if (mcp_token_seal(request->mcp->seal, MCP_TOKEN_SESSION, &request->link.token,
			   &request->arena, &text) != ERR_OK)
		return false;
	mcp_add_field(request, SLICE("mcp-session-id"), text);
	return true;
}
