/* mcp_claim.c - a server's request is answered by one gateway (mcp-proxy.md 6.2): the one that has claimed it, or, where that
 * dies before it has answered, the one that takes its claims over. */
#include "codec/base/must.h"
#include "codec/base/pack.h"
#include "gateway/front/mcp/mcp_sampling_parts.h"

enum {
	FORM = 1, /* of what is kept */
	WITH_CLIENT = 1,
	IS_SSE = 2,
	ID_MAX = 1024,   /* a longer one is kept in the request alone */
	HEAD_MAX = 5120, /* of what is kept, without the request: names, id and token are short */
};

/* ---- what is kept ---- */

/* All that another gateway needs to answer it: the session's token, whom it is for, its id as the server writes it, and the
 * request where it is not too large. Absent: nothing can be kept. */
static struct slice kept_of(struct mcp_sampling *sampling)
{
	const struct mcp_link *link = &sampling->link;
	const struct caller *caller = &sampling->caller;
	const struct slice text = sampling->ask.body;
	const size_t most = text.len + HEAD_MAX < MCP_KEPT_MAX ? text.len + HEAD_MAX : MCP_KEPT_MAX;
	char *room = arena_take(&sampling->arena, most);
	struct slice token;

	if (room == NULL || !slice_absent(link->authorization) ||
	    mcp_token_seal(sampling->mcp->seal, link->sse ? MCP_TOKEN_SSE : MCP_TOKEN_SESSION,
			   &link->token, &sampling->arena, &token) != ERR_OK)
		return slice_of(NULL, 0);
	struct packer to = { room, room + most, false };
	pack_number(&to, FORM, 1);
	pack_number(&to,
		    (slice_absent(sampling->client) ? 0 : WITH_CLIENT) | (link->sse ? IS_SSE : 0),
		    1);
	pack_number(&to, sampling->ask.started_wall_ns / SEC, 8);
	pack_bytes(&to, caller->limit_key, sizeof(caller->limit_key));
	pack_bytes(&to, caller->subject, sizeof(caller->subject));
	pack_text(&to, caller->tenant, 2, UINT16_MAX);
	pack_text(&to, slice_absent(sampling->client) ? SLICE("") : sampling->client, 2,
		  UINT16_MAX);
	pack_text(&to, link->token.server, 1, MCP_SERVER_NAME_MAX);
	pack_text(&to, token, 2, UINT16_MAX);
	pack_text(&to, sampling->id.len <= ID_MAX ? sampling->id : SLICE(""), 2, ID_MAX);
	if (text.len <= (size_t)(to.end - to.at))
		pack_bytes(&to, text.at, text.len);
	return to.full ? slice_of(NULL, 0) : slice_of(room, (size_t)(to.at - room));
}

struct kept {
	struct caller caller;
	struct slice client, server, token, id, text;
	uint64_t started_s;
	bool sse;
};

static bool read_kept(struct slice from, struct kept *out)
{
	struct unpacker at = { from.at, from.at + from.len, false };
	const uint64_t form = unpack_number(&at, 1), flags = unpack_number(&at, 1);

	*out = (struct kept){ .sse = (flags & IS_SSE) != 0 };
	out->started_s = unpack_number(&at, 8);
	const struct slice limit_key = unpack_bytes(&at, sizeof(out->caller.limit_key));
	const struct slice subject = unpack_bytes(&at, sizeof(out->caller.subject));
	out->caller.tenant = unpack_text(&at, 2, UINT16_MAX);
	const struct slice client = unpack_text(&at, 2, UINT16_MAX);
	out->server = unpack_text(&at, 1, MCP_SERVER_NAME_MAX);
	out->token = unpack_text(&at, 2, UINT16_MAX);
	out->id = unpack_text(&at, 2, ID_MAX);
	out->text = unpack_rest(&at);
	if (at.bad || form != FORM)
		return false;
	(void)memcpy(out->caller.limit_key, limit_key.at, limit_key.len);
	(void)memcpy(out->caller.subject, subject.at, subject.len);
	out->caller.server = (flags & WITH_CLIENT) != 0 ? client : slice_of(NULL, 0);
	return true;
}

/* ---- claiming ---- */

static void on_claimed(struct mcp_ask *ask)
{
	struct mcp_sampling *sampling = CONTAINER_OF(ask, struct mcp_sampling, claim);

	must_obj(sampling, MCP_SAMPLING_MAGIC);
	if (ask->answer == MCP_SHARED_BEFORE) {
		mcp_sampling_leave(sampling);
		return;
	}
	sampling->claimed = true; /* also if the answer was late: Redis may have it */
	mcp_sampling_admit(sampling);
}

void mcp_sampling_claim(struct mcp_sampling *sampling)
{
	struct mcp_shared *shared = sampling->mcp->shared;

	sampling->claim.who = sampling->link.who;
	sampling->claim.done = on_claimed;
	if (shared == NULL || !mcp_link_has_session(&sampling->link) ||
	    !mcp_ask_claim(shared, &sampling->claim, sampling->id_text, kept_of(sampling)))
		mcp_sampling_admit(sampling);
}

/* ---- a dead gateway's ---- */

static bool find_link(struct mcp_host *mcp, const struct kept *kept, struct arena *arena,
		      struct mcp_link *link)
{
	const struct mcp_server *server = config_mcp_server(mcp->front->config, kept->server);

	*link = (struct mcp_link){ .sse = kept->sse };
	if (server == NULL ||
	    mcp_token_open(mcp->seal, kept->sse ? MCP_TOKEN_SSE : MCP_TOKEN_SESSION, kept->server,
			   kept->token, arena, &link->token) != ERR_OK)
		return false;
	link->series = mcp->series[server - mcp->front->config->mcp_servers];
	mcp_link_who(link);
	return mcp_link_place(link, server);
}

static bool is_in_time(const struct mcp_host *mcp, const struct kept *kept)
{
	const uint64_t now_s = net_wall_s(mcp->front->loop);

	return kept->text.len != 0 && now_s < kept->started_s + MCP_SAMPLING_DEADLINE / SEC;
}

/* The server hears that there will be no answer, under the id as it has written it. */
static void lose(struct mcp_host *mcp, const struct mcp_link *link, const struct kept *kept,
		 struct slice id, struct arena *arena)
{
	const struct fault fault = { .err = ERR_GATEWAY_LOST, .offset = FAULT_NO_OFFSET };
	const struct slice text = json_loose_id_text(kept->id, arena);
	const bool is_its = !slice_absent(text) && slice_eq(text, id);

	mcp_post_error(mcp, link, is_its ? kept->id : id, &fault, NULL);
	mcp_shared_settled(mcp->shared, &link->who, id);
}

static void inherit(struct mcp_host *mcp, const struct mcp_who *who, struct slice id,
		    const struct kept *kept, struct arena *arena)
{
	struct mcp_message message;
	struct mcp_link link;
	struct slice value;

	if (!find_link(mcp, kept, arena, &link)) {
		mcp_shared_settled(mcp->shared, who, id); /* there is no way to the server */
		return;
	}
	if (!is_in_time(mcp, kept) || !json_loose_whole(kept->text, &value) ||
	    json_loose_kind(value) != JSON_LOOSE_OBJECT) {
		lose(mcp, &link, kept, id, arena);
		return;
	}
	mcp_message_read(value, &message);
	if (message.kind == MCP_REQUEST)
		mcp_sampling_inherit(mcp, &link, &kept->caller, value, &message, kept->started_s);
	else
		lose(mcp, &link, kept, id, arena);
}

void mcp_claim_inherit(struct mcp_host *mcp, const struct mcp_who *who, struct slice id,
		       struct slice text)
{
	struct arena arena;
	struct kept kept;

	arena_init(&arena, mcp->front->arenas, MCP_ARENA_MAX);
	if (slice_absent(text) || !read_kept(text, &kept))
		mcp_shared_settled(mcp->shared, who, id);
	else
		inherit(mcp, who, id, &kept, &arena);
	arena_give(&arena);
}
