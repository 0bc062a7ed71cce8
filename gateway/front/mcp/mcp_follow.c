/* mcp_follow.c - what a session has open: its client's calls, which the client can give up (mcp-proxy.md 6.6) and to which
 * its server's requests are put down, and GETs that pass. How many there may be: mcp-proxy.md 11. */
#include "gateway/front/mcp/mcp.h"

enum {
	POSTS_MAX = 256,    /* of a session, with calls that are open */
	GETS_MAX = 4,       /* of a session, that pass */
	FOLLOWED_MAX = 256, /* calls of one batch that can be given up by themselves */
};

/* One call. */
struct mcp_followed {
	struct cancel_entry entry;
	struct mcp_request *request;
	bool given_up;
};

/* ---- given up ---- */

/* The client has given its call up. What it has caused here ends, if that is known: if no other call of the session is
 * open. */
static void on_given_up(struct cancel_entry *entry)
{
	struct mcp_followed *followed = CONTAINER_OF(entry, struct mcp_followed, entry);
	struct mcp_request *request = followed->request;

	if (followed->given_up)
		return;
	followed->given_up = true;
	request->calls_open--;
	if (request->calls_open == 0 &&
	    cancel_count(request->mcp->cancels, request->by_session.key) == 1)
		mcp_samplings_stop(request);
}

/* Never cancelled: it is counted. */
static void on_counted(struct cancel_entry *entry)
{
	(void)entry;
}

/* ---- what is open ---- */

/* No id is written so. */
static struct state_key gets_of(const struct mcp_request *request)
{
	return mcp_call_key(&request->link.who.key, SLICE("GET"));
}

static bool is_get(const struct mcp_request *request)
{
	return request->verb == MCP_VERB_GET && mcp_link_has_session(&request->link);
}

/* Calls of sessions in which nothing is taken need not be known. */
static bool may_have_calls(const struct mcp_request *request)
{
	const struct mcp_posted *posted = &request->posted;

	return request->verb == MCP_VERB_POST && mcp_link_has_session(&request->link) &&
	       mcp_link_takes(&request->link) &&
	       (posted->batch || posted->first.kind == MCP_REQUEST);
}

bool mcp_may_open(struct mcp_request *request)
{
	const struct mcp_host *mcp = request->mcp;

	if ((may_have_calls(request) &&
	     cancel_count(mcp->cancels, request->link.calls) >= POSTS_MAX) ||
	    (is_get(request) && cancel_count(mcp->cancels, gets_of(request)) >= GETS_MAX))
		return mcp_refuse_err(request, ERR_CONCURRENCY);
	return true;
}

struct slice mcp_tool_of(const struct mcp_message *call)
{
	const struct slice name = mcp_plain(call->in_params.name);

	return slice_absent(name) ? mcp_plain(call->in_params.uri) : name;
}

static void count_in(struct mcp_request *request, struct state_key key)
{
	request->by_session.key = key;
	request->by_session.cancelled = on_counted;
	cancel_enter(request->mcp->cancels, &request->by_session, request->mcp->inbox);
}

/* Without memory the client cannot give that call up. */
static void follow_call(struct mcp_request *request, const struct mcp_message *call)
{
	const struct slice id = json_loose_id_text(call->id, &request->arena);

	request->calls_open++;
	if (slice_absent(id) || request->calls == NULL || request->call_count == FOLLOWED_MAX)
		return;
	struct mcp_followed *followed = &request->calls[request->call_count++];
	*followed = (struct mcp_followed){ .request = request };
	followed->entry.key = mcp_call_key(&request->link.who.key, id);
	followed->entry.cancelled = on_given_up;
	cancel_enter(request->mcp->cancels, &followed->entry, request->mcp->inbox);
}

/* What a sampling is for is known if there is one call. */
static void note_tool(struct mcp_request *request, const struct mcp_message *call)
{
	const struct slice tool = request->calls_open == 1 ? mcp_tool_of(call) : slice_of(NULL, 0);

	request->tool = slice_absent(tool) ? tool : arena_copy(&request->arena, tool);
}

static void follow_batch(struct mcp_request *request)
{
	struct mcp_message message;
	struct json_loose_walk walk;

	json_loose_open(&walk, request->posted.value);
	while (json_loose_next(&walk)) {
		if (json_loose_kind(walk.value) != JSON_LOOSE_OBJECT)
			continue;
		mcp_message_read(walk.value, &message);
		if (message.kind != MCP_REQUEST)
			continue;
		follow_call(request, &message);
		note_tool(request, &message);
	}
}

void mcp_follow(struct mcp_request *request)
{
	const uint32_t most =
		request->posted.messages < FOLLOWED_MAX ? request->posted.messages : FOLLOWED_MAX;

	if (is_get(request))
		count_in(request, gets_of(request));
	if (!may_have_calls(request))
		return;
	request->calls = arena_take(&request->arena, most * sizeof(*request->calls));
	if (request->posted.batch) {
		follow_batch(request);
	} else {
		follow_call(request, &request->posted.first);
		note_tool(request, &request->posted.first);
	}
	if (request->calls_open == 0)
		return;
	count_in(request, request->link.calls);
	/* Whether a sampling may come then, and whether it is for this call, is asked at whichever gateway it comes to. */
	request->shared_call = request->mcp->shared != NULL;
	if (request->shared_call)
		mcp_shared_call(request->mcp->shared, &request->link.who, true);
}

void mcp_unfollow(struct mcp_request *request)
{
	for (uint32_t i = 0; i < request->call_count; i++)
		cancel_leave(&request->calls[i].entry);
	request->call_count = 0;
	cancel_leave(&request->by_session);
	if (request->shared_call)
		mcp_shared_call(request->mcp->shared, &request->link.who, false);
	request->shared_call = false;
}
