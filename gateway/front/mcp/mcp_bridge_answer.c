/* mcp_bridge_answer.c - what a server says to a request of the gateway's own. */
#include "codec/sse/sse_cut.h"
#include "gateway/front/mcp/mcp_bridge.h"

/* The first message of an event stream. */
static bool first_event(struct slice stream, struct arena *into, struct mcp_message *out)
{
	struct sse_cut_piece piece;
	struct sse_cut cut;
	struct slice value;

	sse_cut_init(&cut);
	while (stream.len != 0) {
		const enum sse_cut_got got = sse_cut_next(&cut, stream, into, &piece);
		if (got == SSE_CUT_NOTHING || got == SSE_CUT_FULL)
			return false;
		if (got == SSE_CUT_EVENT && !slice_absent(piece.data) &&
		    mcp_message_read_text(piece.data, out, &value) && out->kind == MCP_RESPONSE)
			return true;
		stream = slice_of(stream.at + piece.raw.len, stream.len - piece.raw.len);
	}
	return false;
}

bool mcp_bridge_answer(struct mcp_request *request, struct mcp_message *out)
{
	const struct slice body = request->call.answer.body;
	struct mcp_answer_head head;
	struct slice value;

	if (request->call.err != ERR_OK)
		return false;
	mcp_head_read(request->extra.fields, &head);
	return head.events ? first_event(body, &request->arena, out)
			   : mcp_message_read_text(body, out, &value);
}
