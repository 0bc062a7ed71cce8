/* mcp_serve.c - which session a message belongs to, and what is done with it (mcp-proxy.md 1, 4). */
#include "codec/base/must.h"
#include "codec/mcp/mcp_edit.h"
#include "gateway/base/header_text.h"
#include "gateway/front/mcp/mcp_bridge.h"
#include "gateway/front/mcp/mcp_opened.h"
#include "gateway/front/mcp/mcp_round.h"

/* ---- the session of a request ---- */

static bool same_digest(const struct mcp_digest *digest, const uint8_t key[MCP_DIGEST_BYTES])
{
	return memcmp(digest->at, key, sizeof(digest->at)) == 0;
}

/* A server of one endpoint is there; of several one is drawn by weight. */
static uint32_t draw_endpoint(const struct mcp_request *request)
{
	const struct mcp_server *server = request->server;
	uint64_t sum = 0, left;

	for (uint32_t i = 0; i < server->endpoint_count; i++)
		sum += server->endpoints[i].weight;
	if (sum == 0)
		return 0;
	left = request->ids.seed % sum;
	for (uint32_t i = 0; i < server->endpoint_count; i++) {
		if (left < server->endpoints[i].weight)
			return i;
		left -= server->endpoints[i].weight;
	}
	return 0;
}

/* Without a session nobody knows what the client has declared: only what goes for all clients is done. */
static enum mcp_mode mode_of_all(const struct mcp_server *server)
{
	if (server->sampling == MCP_FORCE)
		return MCP_MODE_FORCE;
	return server->sampling == MCP_REFUSE ? MCP_MODE_REFUSE : MCP_MODE_RELAY;
}

/* The user's own credentials for the server, where it takes them. False: no memory. */
static bool take_authorization(struct mcp_request *request)
{
	struct mcp_link *link = &request->link;
	const struct slice value =
		http_find_header(request->in, SLICE("sluice-upstream-authorization"));

	if (!request->server->client_auth || slice_absent(value) || !header_text_is_value(value))
		return true;
	link->token.authorization = mcp_digest_of(value);
	link->authorization = arena_copy(&request->arena, value);
	return !slice_absent(link->authorization);
}

/* What there is without a session; with request->token all but the principal, which that is opened for. */
MUST_USE static bool link_init(struct mcp_request *request)
{
	struct mcp_token *token = &request->link.token;

	_Static_assert(sizeof(token->tenant) == sizeof(request->caller.limit_key), "one key");
	token->server = request->name;
	token->upstream_id = token->revision = SLICE("");
	(void)memcpy(token->tenant.at, request->caller.limit_key, sizeof(token->tenant.at));
	if (slice_absent(request->token))
		token->principal = mcp_principal_of(&request->caller);
	request->link.tenant = request->caller.tenant;
	request->link.client = request->caller.server;
	token->mode = mode_of_all(request->server);
	request->link.endpoint = draw_endpoint(request);
	token->endpoint = mcp_endpoint_digest(request->server, request->link.endpoint);
	return take_authorization(request) || mcp_refuse_err(request, ERR_BUSY);
}

static enum err open_token(struct mcp_request *request, const struct mcp_shown_token *shown)
{
	const struct mcp_digest principal = mcp_principal_of(&request->caller);
	struct mcp_token token;
	const enum err err = mcp_token_open(request->mcp->seal, shown->kind, shown->server,
					    shown->text, &request->arena, &token);

	if (err != ERR_OK)
		return err;
	if (!same_digest(&token.tenant, request->caller.limit_key) ||
	    !mcp_digest_eq(&token.principal, &principal))
		return ERR_SESSION_UNKNOWN;
	request->link.token = token;
	mcp_link_who(&request->link);
	mcp_opened_add(request->mcp->opened, shown, &request->link);
	return ERR_OK;
}

/* Of another tenant, principal or server, of an endpoint that is gone, forged, over: all are the same to the client. */
static bool open_session(struct mcp_request *request)
{
	struct mcp_link *link = &request->link;
	const struct mcp_digest authorization = link->token.authorization;
	const struct mcp_shown_token shown = {
		.kind = request->sse_message ? MCP_TOKEN_SSE : MCP_TOKEN_SESSION,
		.server = link->token.server,
		.text = slice_trim(request->token),
		.caller = &request->caller,
	};

	if (!mcp_opened_find(request->mcp->opened, &shown, &request->arena, link)) {
		const enum err err = open_token(request, &shown);
		if (err != ERR_OK)
			return mcp_refuse_err(request, err);
	}
	if (!mcp_digest_eq(&link->token.authorization, &authorization))
		return mcp_refuse_err(request, ERR_SESSION_UNKNOWN);
	link->sse = request->sse_message;
	if (!mcp_link_place(link, request->server) ||
	    mcp_session_ended(request->mcp->channels, &link->who, net_now(request->host->loop)))
		return mcp_refuse_err(request, ERR_SESSION_UNKNOWN);
	if (mcp_session_used(request->mcp->channels, &link->who, net_now(request->host->loop)) &&
	    request->mcp->shared != NULL)
		mcp_shared_used(request->mcp->shared, &link->who);
	return true;
}

static bool find_session(struct mcp_request *request)
{
	const struct slice token = request->in->headers[HTTP_SESSION_ID];

	if (!request->modern && token.len != 0)
		request->token = token;
	return link_init(request) && (slice_absent(request->token) || open_session(request));
}

/* ---- answers of the client to requests that are answered here ---- */

static bool is_held(const struct mcp_request *request, const struct mcp_message *message,
		    struct arena *into)
{
	if (message->kind != MCP_RESPONSE)
		return false;
	const struct slice id = json_loose_id_text(message->id, into);
	return !slice_absent(id) &&
	       mcp_session_claimed(request->mcp->channels, &request->link.who, id);
}

/* The client gives one of its requests up: so does what that has caused here. */
void mcp_cancel_call(struct mcp_request *request, const struct mcp_message *message)
{
	const struct slice given_up = mcp_message_cancels(message);
	struct mcp_host *mcp = request->mcp;

	if (slice_absent(given_up))
		return;
	const struct slice id = json_loose_id_text(given_up, &request->arena);
	if (slice_absent(id))
		return;
	const struct state_key key = mcp_call_key(&request->link.who.key, id);
	(void)cancel_all(mcp->cancels, key);
	if (mcp->cancels_elsewhere != NULL)
		cancel_redis_tell(mcp->cancels_elsewhere, key);
}

/* The client may not answer for the gateway: such members go. */
static bool cut_held(struct mcp_request *request, struct slice *body)
{
	struct mcp_message message;
	struct mcp_edits edits;
	struct mcp_cut rest;
	uint32_t cut = 0;

	mcp_edits_init(&edits, request->posted.value, &request->arena);
	mcp_cut_begin(&rest, &edits, request->posted.value);
	while (mcp_cut_next(&rest)) {
		if (json_loose_kind(rest.walk.value) != JSON_LOOSE_OBJECT)
			continue;
		mcp_message_read(rest.walk.value, &message);
		if (is_held(request, &message, &request->arena)) {
			mcp_cut_drop(&rest);
			cut++;
		}
		mcp_cancel_call(request, &message);
	}
	if (cut == 0)
		return true;
	if (rest.left == 0)
		return mcp_settle(request, 202);
	*body = mcp_edits_flat(&edits, &request->arena);
	return !slice_absent(*body) || mcp_refuse_err(request, ERR_BUSY);
}

/* ---- what is asked ---- */

static bool serve_session(struct mcp_request *request)
{
	struct slice body = request->in->body;

	if (!mcp_link_takes(&request->link))
		return mcp_forward(request, body);
	if (request->posted.batch) {
		if (!cut_held(request, &body))
			return false;
	} else if (is_held(request, &request->posted.first, &request->arena)) {
		return mcp_settle(request, 202);
	} else {
		mcp_cancel_call(request, &request->posted.first);
	}
	return mcp_forward(request, body);
}

static bool is_initialize(const struct mcp_request *request)
{
	const struct mcp_posted *posted = &request->posted;

	return !posted->batch && !request->modern && posted->first.kind == MCP_REQUEST &&
	       json_loose_is(posted->first.method, "initialize");
}

/* A message of HTTP+SSE. */
static bool serve_message(struct mcp_request *request)
{
	if (request->verb != MCP_VERB_POST)
		return mcp_refuse_err(request, ERR_HTTP_METHOD);
	request->modern = false;
	request->token = mcp_sse_token(request->in->query);
	if (slice_absent(request->token))
		return mcp_refuse_err(request, ERR_SESSION_UNKNOWN);
	if (!link_init(request) || !open_session(request))
		return false;
	if (is_initialize(request))
		return mcp_initialize_sse(request);
	mcp_sse_refresh(request);
	return serve_session(request);
}

static bool serve_post(struct mcp_request *request)
{
	if (request->server->transport == MCP_SSE)
		return mcp_refuse_err(request, ERR_HTTP_METHOD); /* so that clients try GET */
	request->watch = &mcp_bridge_hello_watch;
	if (is_initialize(request))
		return link_init(request) && mcp_initialize(request);
	if (!find_session(request))
		return false;
	if (request->link.token.bridged)
		return mcp_bridge_serve(request);
	return request->modern ? mcp_round_serve(request) : serve_session(request);
}

static bool pass_empty(struct mcp_request *request)
{
	return mcp_forward(request, slice_of("", 0));
}

bool mcp_serve(struct mcp_request *request)
{
	request->modern = request->verb == MCP_VERB_POST && !request->posted.batch &&
			  mcp_message_modern(&request->posted.first);
	if (request->sse_message)
		return serve_message(request);
	if (request->verb == MCP_VERB_POST)
		return serve_post(request);
	if (!find_session(request))
		return false;
	if (request->link.token.bridged)
		return mcp_bridge_serve(request);
	if (request->verb == MCP_VERB_GET && request->link.token.own_get)
		return mcp_get(request);
	if (request->verb == MCP_VERB_GET && !mcp_link_has_session(&request->link)) {
		request->may_sse = request->server->transport != MCP_HTTP;
		request->sse_only = request->server->transport == MCP_SSE;
	}
	return request->may_sse ? mcp_place_for(request, pass_empty) : pass_empty(request);
}
