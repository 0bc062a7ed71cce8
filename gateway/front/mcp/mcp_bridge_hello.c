/* mcp_bridge_hello.c - initialize at a server that gives no session: whether it speaks 2026-07-28, and the session that begins
 * then. */
#include "codec/base/must.h"
#include "gateway/base/header_text.h"
#include "gateway/front/mcp/mcp_bridge.h"
#include "gateway/front/mcp/mcp_bridge_text.h"

struct mcp_bridge {
	enum mcp_mode mode; /* as decided for the first try of initialize, as are: */
	enum mcp_hello hello;
	bool tools;
	enum mcp_era era;
	/* the server's answer to initialize, once it is kept; its fields are those of the request */
	bool kept;
	enum mcp_hello tried;
	int status;
	struct slice body;
	struct slice revision; /* of its result; absent: it is an error */
};

/* ---- what is known of the server ---- */

static struct mcp_digest era_key(const struct mcp_request *request)
{
	const struct mcp_token *token = &request->link.token;
	uint8_t both[2 * MCP_DIGEST_BYTES];

	(void)memcpy(both, token->endpoint.at, MCP_DIGEST_BYTES);
	(void)memcpy(both + MCP_DIGEST_BYTES, token->authorization.at, MCP_DIGEST_BYTES);
	return mcp_digest_of(slice_of((const char *)both, sizeof(both)));
}

static void note_era(struct mcp_request *request, enum mcp_era era)
{
	const struct mcp_digest key = era_key(request);

	mcp_era_note(&request->mcp->eras, &key, era, net_now(request->host->loop));
}

/* False: no memory. */
static bool prepare(struct mcp_request *request)
{
	const struct mcp_digest key = era_key(request);

	if (!mcp_link_answers(&request->link))
		return true;
	request->bridge = arena_zero(&request->arena, sizeof(*request->bridge));
	if (request->bridge == NULL)
		return false;
	request->bridge->mode = request->link.token.mode;
	request->bridge->hello = request->hello;
	request->bridge->tools = request->link.token.tools;
	request->bridge->era = mcp_era_of(&request->mcp->eras, &key, net_now(request->host->loop));
	return true;
}

/* ---- the server's answer to initialize ---- */

static bool wants(const struct mcp_request *request, const struct mcp_message *response,
		  struct slice session_id)
{
	const struct mcp_bridge *bridge = request->bridge;

	if (bridge == NULL || bridge->kept || bridge->era == MCP_ERA_LEGACY || response == NULL ||
	    response->kind != MCP_RESPONSE)
		return false;
	if (!slice_absent(response->result))
		return session_id.len == 0 && mcp_link_answers(&request->link);
	return mcp_bridge_is_modern_error(response) || request->hello == MCP_HELLO_OWN;
}

static bool keep(struct mcp_request *request, struct slice body, const struct mcp_message *response)
{
	struct mcp_bridge *bridge = request->bridge;
	const struct slice revision = mcp_plain(response->in_result.protocol_version);

	bridge->status = request->call.answer.status;
	bridge->tried = request->hello;
	bridge->body = arena_copy(&request->arena, body);
	if (!slice_absent(response->result)) {
		const bool good = !slice_absent(revision) && revision.len <= MCP_REVISION_MAX &&
				  header_text_is_value(revision);
		bridge->revision = good ? arena_copy(&request->arena, revision) : SLICE("");
		if (slice_absent(bridge->revision))
			return false;
	}
	bridge->kept = !slice_absent(bridge->body);
	return bridge->kept;
}

static bool has(const struct mcp_request *request)
{
	return request->bridge != NULL && request->bridge->kept;
}

/* The session is none of the gateway's: the client gets what the server said. */
static void pass_kept(struct mcp_request *request)
{
	if (request->link.token.upstream_id.len == 0)
		mcp_place_give(request); /* before the client can try again */
	request->status = request->bridge->status;
	mcp_answer_whole(request, request->bridge->body);
}

/* ---- the session ---- */

/* Absent: no memory. */
static struct slice own_id(struct mcp_request *request)
{
	struct gather text;

	gather_init(&text, &request->arena);
	gather_lit(&text, "sluice-");
	gather_raw(&text, slice_of(request->ids.request_id, REQUEST_ID_HEX));
	return gather_done(&text) == ERR_OK ? gather_flat(&text, &request->arena)
					    : slice_of(NULL, 0);
}

static bool begin_session(struct mcp_request *request, struct slice revision)
{
	struct mcp_link *link = &request->link;
	struct mcp_token *token = &link->token;

	token->bridged = true;
	token->mode = request->bridge->mode;
	token->tools = request->bridge->tools;
	token->own_get = false;
	token->revision = revision;
	token->upstream_id = own_id(request);
	token->declared = mcp_bridge_declared(&request->posted.first, &request->arena);
	token->issued_s = net_wall_s(request->host->loop);
	if (slice_absent(token->upstream_id) || slice_absent(token->declared))
		return false;
	mcp_link_who(link);
	mcp_place_begun(request);
	mcp_session_log_begin(request);
	return mcp_session_pass(request, token->upstream_id);
}

/* The server has answered initialize, too: its words are the client's answer. */
static void begin_kept(struct mcp_request *request)
{
	if (begin_session(request, request->bridge->revision))
		pass_kept(request);
	else
		mcp_fail(request, ERR_BUSY, NULL);
}

static void begin_made(struct mcp_request *request, const struct mcp_message *discovered)
{
	const struct mcp_message *initialize = &request->posted.first;
	const enum revision revision = mcp_bridge_revision(initialize);
	const struct slice body = mcp_bridge_hello(initialize, discovered,
						   request->link.token.server, &request->arena);

	request->status = 200;
	mcp_begin_fields(request);
	mcp_add_field(request, SLICE("content-type"), SLICE("application/json"));
	if (!slice_absent(body) && begin_session(request, slice_str(revision_name(revision))))
		mcp_answer_whole(request, body);
	else
		mcp_fail(request, ERR_BUSY, NULL);
}

/* ---- server/discover ---- */

static void on_drop(struct mcp_request *request)
{
	request->legs = NULL;
}

static bool on_head(struct mcp_request *request, const struct mcp_answer_head *head)
{
	(void)request;
	(void)head;
	return false; /* it is collected whole, also as a stream */
}

/* The server may have refused what was declared, and not the message. */
static bool may_try_less(const struct mcp_bridge *bridge)
{
	return bridge->kept && slice_absent(bridge->revision) && bridge->status == 400 &&
	       bridge->tried != MCP_HELLO_OWN;
}

static void try_less(struct mcp_request *request)
{
	request->bridge->kept = false;
	request->bridge->era = MCP_ERA_LEGACY;
	request->hello = request->bridge->tried;
	mcp_hello_less(request);
}

/* It speaks 2026-07-28 no more, and has not been asked anything else. */
static void initialize_instead(struct mcp_request *request)
{
	note_era(request, MCP_ERA_UNKNOWN);
	request->bridge->era = MCP_ERA_UNKNOWN;
	request->hello = request->bridge->hello;
	mcp_hello_again(request);
}

/* A server that gave an answer, or none in time, has said what it speaks; one that is away or busy has not. */
static void note_answer(struct mcp_request *request, bool speaks)
{
	const enum err err = request->call.err;
	const int status = request->call.answer.status;

	if (err == ERR_OK ? status >= 500 || status == 429 : err != ERR_DEADLINE)
		return;
	note_era(request, !speaks                                   ? MCP_ERA_LEGACY
			  : slice_absent(request->bridge->revision) ? MCP_ERA_MODERN
								    : MCP_ERA_BOTH);
}

static void on_done(struct mcp_request *request)
{
	struct mcp_message message = { .kind = MCP_ODD };
	const bool speaks = mcp_bridge_answer(request, &message) && mcp_bridge_speaks(&message);

	on_drop(request);
	request->until = 0;
	request->link.modern_head = slice_of(NULL, 0);
	note_answer(request, speaks);
	if (speaks && !slice_absent(request->bridge->revision))
		begin_kept(request);
	else if (speaks)
		begin_made(request, &message);
	else if (may_try_less(request->bridge))
		try_less(request);
	else if (request->bridge->kept)
		pass_kept(request);
	else if (request->call.err != ERR_OK)
		mcp_fail(request, mcp_call_error(&request->call), request->call.detail);
	else
		initialize_instead(request);
}

static const struct mcp_legs legs = { .head = on_head, .done = on_done, .drop = on_drop };

static bool discover(struct mcp_request *request)
{
	const struct slice declared = mcp_bridge_declared(&request->posted.first, &request->arena);
	struct slice body = slice_of(NULL, 0);

	if (!slice_absent(declared))
		body = mcp_bridge_own("server/discover", "", slice_of(NULL, 0), declared,
				      &request->arena, &request->link.modern_head);
	if (slice_absent(body))
		return mcp_refuse_err(request, ERR_BUSY);
	request->hello = MCP_HELLO_NONE;
	request->legs = &legs;
	request->until = net_now(request->host->loop) + MCP_DISCOVER_TIME;
	return mcp_forward(request, body);
}

/* The configuration may have changed since. */
static void discover_later(struct mcp_request *request)
{
	upstream_finish(&request->call);
	request->server = mcp_link_server(request->mcp, &request->link);
	const bool there =
		request->server != NULL && mcp_link_place(&request->link, request->server);
	if (!there || !discover(request)) {
		if (request->refused == ERR_OK)
			(void)mcp_refuse_err(request, ERR_SERVER_UNKNOWN);
		mcp_answer_whole(request, gather_flat(&request->answer, &request->arena));
	}
	request->server = NULL;
}

static void go(struct mcp_request *request)
{
	must(request->bridge->kept);
	if (request->bridge->era == MCP_ERA_BOTH && !slice_absent(request->bridge->revision))
		begin_kept(request);
	else
		discover_later(request);
}

/* A server that is known to answer no initialize is asked what it speaks at once. */
static bool begins(struct mcp_request *request, bool *instead)
{
	if (!prepare(request))
		return mcp_refuse_err(request, ERR_BUSY);
	*instead = request->bridge != NULL && request->bridge->era == MCP_ERA_MODERN;
	return !*instead || discover(request);
}

const struct mcp_hello_watch mcp_bridge_hello_watch = {
	.begins = begins, .wants = wants, .keep = keep, .has = has, .go = go
};
