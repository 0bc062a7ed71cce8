/* mcp_bridge_list.c - a tool whose arguments its server wants in headers, too: which ones stands in tools/list. It is asked for
 * once the server has refused a call without them (-32020), which did nothing then. */
#include "gateway/front/mcp/mcp_bridge.h"
#include "gateway/front/mcp/mcp_bridge_param.h"
#include "gateway/front/mcp/mcp_bridge_text.h"
#include "gateway/front/mcp/mcp_removed.h"
#include "gateway/front/mcp/mcp_round.h"

enum { PAGES_MAX = 100 };

bool mcp_bridge_lacks(const struct mcp_request *request, const struct mcp_message *response)
{
	return request->round->listed == 0 && request->round->number == 0 &&
	       json_loose_same_id(response->error_code, SLICE("-32020")) &&
	       json_loose_is(request->posted.first.method, "tools/call") &&
	       json_loose_kind(request->posted.first.in_params.name) == JSON_LOOSE_STRING;
}

/* The rounds go on. */
static void give_back(struct mcp_request *request)
{
	request->legs = request->round->legs;
	request->until = 0;
	request->link.modern_head = request->round->call_head;
}

/* What the schema wants joins the call's lines. False: no memory. */
static bool learn(struct mcp_request *request, struct slice schema)
{
	struct mcp_round *round = request->round;
	struct gather head;

	gather_init(&head, &request->arena);
	gather_raw(&head, round->call_head);
	mcp_param_lines(schema, json_loose_member(request->posted.first.params, "arguments"),
			&request->arena, &head);
	if (gather_done(&head) != ERR_OK)
		return false;
	round->call_head = gather_flat(&head, &request->arena);
	return !slice_absent(round->call_head);
}

static void call_again(struct mcp_request *request, struct slice schema)
{
	struct mcp_leg leg = { .answers_round = false };
	const bool learned = learn(request, schema);

	give_back(request);
	upstream_finish(&request->call);
	if (learned)
		mcp_round_again(request, &leg);
	else
		mcp_round_fail_leg(request, ERR_BUSY, NULL);
}

static void ask(struct mcp_request *request, struct slice cursor);

static void on_done(struct mcp_request *request)
{
	struct mcp_message message = { .kind = MCP_ODD };
	struct slice schema = { NULL, 0 }, cursor = { NULL, 0 };

	if (mcp_bridge_answer(request, &message))
		schema = mcp_param_schema(&message, request->posted.first.in_params.name, &cursor);
	if (!slice_absent(cursor))
		cursor = arena_copy(&request->arena, cursor);
	if (slice_absent(schema) && !slice_absent(cursor) && request->round->listed < PAGES_MAX)
		ask(request, cursor);
	else
		call_again(request, schema);
}

static bool on_head(struct mcp_request *request, const struct mcp_answer_head *head)
{
	(void)request;
	(void)head;
	return false;
}

static void on_drop(struct mcp_request *request)
{
	give_back(request);
	request->legs->drop(request);
}

static const struct mcp_legs legs = { .head = on_head, .done = on_done, .drop = on_drop };

static void ask(struct mcp_request *request, struct slice cursor)
{
	struct mcp_link *link = &request->link;
	const struct slice body =
		mcp_bridge_own("tools/list", "cursor", cursor, link->token.declared,
			       &request->arena, &link->modern_head);

	upstream_finish(&request->call);
	request->round->listed++;
	request->legs = &legs;
	request->until = net_now(request->host->loop) + MCP_DISCOVER_TIME;
	request->server = mcp_link_way(request->mcp, link);
	if (slice_absent(body) || request->server == NULL) {
		give_back(request);
		mcp_round_fail_leg(request, slice_absent(body) ? ERR_BUSY : ERR_SERVER_UNKNOWN,
				   NULL);
	} else if (!mcp_forward(request, body)) {
		const enum err err = request->refused;
		request->refused = ERR_OK;
		give_back(request);
		mcp_round_fail_leg(request, err, request->detail);
	} else {
		request->server = NULL;
	}
}

void mcp_bridge_list(struct mcp_request *request)
{
	request->round->legs = request->legs;
	request->round->call_head = request->link.modern_head;
	ask(request, slice_of(NULL, 0));
}
