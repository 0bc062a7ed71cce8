/* mcp_unheard.c - requests of a server that no client will hear of: they are answered here, for a server may wait for ever
 * (mcp-proxy.md 5.1 (b)). */
#include "codec/sse/sse_cut.h"
#include "gateway/front/mcp/mcp.h"

static void answer(struct mcp_host *mcp, const struct mcp_link *link, struct slice value)
{
	const struct fault nobody = { .err = ERR_NOBODY_LISTENS, .offset = FAULT_NO_OFFSET };
	struct mcp_message message;
	struct arena arena;
	struct gather body;

	if (json_loose_kind(value) != JSON_LOOSE_OBJECT)
		return;
	mcp_message_read(value, &message);
	if (message.kind != MCP_REQUEST)
		return;
	if (!json_loose_is(message.method, "ping")) {
		mcp_post_error(mcp, link, message.id, &nobody, NULL);
		return;
	}
	arena_init(&arena, mcp->front->arenas, MCP_ARENA_MAX);
	gather_init(&body, &arena);
	gather_lit(&body, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(&body, message.id);
	gather_lit(&body, ",\"result\":{}}");
	if (gather_done(&body) != ERR_OK || !mcp_post(mcp, link, &body))
		mcp_count_lost(mcp, link);
	arena_give(&arena);
}

static void answer_all(struct mcp_host *mcp, const struct mcp_link *link, struct slice data)
{
	struct json_loose_walk walk;
	struct slice value;

	if (!json_loose_whole(data, &value))
		return;
	answer(mcp, link, value);
	if (json_loose_kind(value) != JSON_LOOSE_ARRAY)
		return;
	json_loose_open(&walk, value);
	while (json_loose_next(&walk))
		answer(mcp, link, walk.value);
}

void mcp_answer_unheard(struct mcp_host *mcp, const struct mcp_link *link, struct slice event)
{
	struct sse_cut_piece piece;
	struct arena arena;
	struct sse_cut cut;

	arena_init(&arena, mcp->front->arenas, MCP_ARENA_MAX);
	sse_cut_init(&cut);
	while (event.len != 0) {
		const enum sse_cut_got got = sse_cut_next(&cut, event, &arena, &piece);
		if (got == SSE_CUT_NOTHING || got == SSE_CUT_FULL)
			break;
		if (got == SSE_CUT_EVENT && !slice_absent(piece.data))
			answer_all(mcp, link, piece.data);
		event = slice_of(event.at + piece.raw.len, event.len - piece.raw.len);
	}
	arena_give(&arena);
}
