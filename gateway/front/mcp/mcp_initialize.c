/* mcp_initialize.c - what a client declares, what its server is told, and the session that begins (mcp-proxy.md 2). */
#include "codec/base/bitset.h"
#include "codec/base/must.h"
#include "codec/mcp/mcp_edit.h"
#include "gateway/base/header_text.h"
#include "gateway/front/mcp/mcp.h"
#include "gateway/state/mcp_strict.h"

/* ---- what is declared ---- */

/* The value of the `sampling` capability that a try puts in; absent: nothing is changed. */
static struct slice declared(enum mcp_hello hello)
{
	switch (hello) {
	case MCP_HELLO_TOOLS:
		return SLICE("{\"tools\":{}}");
	case MCP_HELLO_PLAIN:
		return SLICE("{}");
	default:
		return slice_of(NULL, 0);
	}
}

const struct plan *mcp_grant(const struct mcp_request *request)
{
	const struct plan *plan =
		plan_for(request->caller.account->plan, request->link.token.server);

	return bitset_any(&plan->models) ? plan : NULL;
}

/* The first try, and who answers samplings. A revision that is not known passes as it is. */
static void decide(struct mcp_request *request)
{
	const struct mcp_params *params = &request->posted.first.in_params;
	struct mcp_token *token = &request->link.token;
	const struct plan *plan = mcp_grant(request);
	enum revision revision;

	token->mode = MCP_MODE_RELAY;
	request->hello = MCP_HELLO_OWN;
	if (!revision_find(mcp_plain(params->protocol_version), &revision))
		return;
	switch (request->server->sampling) {
	case MCP_RELAY:
		return;
	case MCP_REFUSE:
		token->mode = MCP_MODE_REFUSE;
		return;
	case MCP_BACKFILL:
		if (mcp_declares(&params->client) || plan == NULL)
			return;
		token->mode = MCP_MODE_BACKFILL;
		break;
	case MCP_FORCE:
		token->mode = plan != NULL ? MCP_MODE_FORCE : MCP_MODE_REFUSE;
		break;
	}
	if (plan == NULL)
		return;
	token->tools = plan->capabilities.tools && revision >= REVISION_2025_11_25;
	request->hello = token->tools ? MCP_HELLO_TOOLS : MCP_HELLO_PLAIN;
}

/* What the server has refused lately is not declared (mcp_strict.h). */
static struct state_key strict_server(const struct mcp_request *request)
{
	struct state_key key;

	_Static_assert(sizeof(key) == sizeof(request->link.token.endpoint), "one key");
	(void)memcpy(key.at, request->link.token.endpoint.at, sizeof(key.at));
	return key;
}

static struct state_key tenant_of(const struct mcp_request *request)
{
	struct state_key key;

	(void)memcpy(key.at, request->link.token.tenant.at, sizeof(key.at));
	return key;
}

static void declare_less(struct mcp_request *request)
{
	struct mcp_token *token = &request->link.token;

	request->hello = request->hello == MCP_HELLO_TOOLS ? MCP_HELLO_PLAIN : MCP_HELLO_OWN;
	token->tools = false;
	if (request->hello == MCP_HELLO_OWN)
		token->mode = token->mode == MCP_MODE_FORCE ? MCP_MODE_REFUSE : MCP_MODE_RELAY;
}

static void declare_what_it_takes(struct mcp_request *request)
{
	const struct state_key server = strict_server(request), tenant = tenant_of(request);
	const enum mcp_strictness known = mcp_strict_find(request->mcp->channels, &server, &tenant,
							  net_now(request->host->loop));

	if (request->hello == MCP_HELLO_TOOLS && known >= MCP_STRICT_TOOLS)
		declare_less(request);
	if (request->hello == MCP_HELLO_PLAIN && known >= MCP_STRICT_SAMPLING)
		declare_less(request);
}

/* The server takes what is declared now, after it has refused more: its answer is a result. */
static void note_strict(const struct mcp_request *request, const struct mcp_message *response)
{
	const struct state_key server = strict_server(request), tenant = tenant_of(request);

	if (request->refused_more && response != NULL && !slice_absent(response->result))
		mcp_strict_note(request->mcp->channels, &server, &tenant,
				request->hello == MCP_HELLO_PLAIN ? MCP_STRICT_TOOLS
								  : MCP_STRICT_SAMPLING,
				net_now(request->host->loop));
}

/* ---- sending it ---- */

/* The client's message with what this try declares. Absent: no memory. */
static struct slice edited(struct mcp_request *request)
{
	const struct mcp_declaration *client = &request->posted.first.in_params.client;
	const struct slice value = declared(request->hello);
	struct mcp_edits edits;

	mcp_edits_init(&edits, request->in->body, &request->arena);
	if (!slice_absent(value)) {
		if (!mcp_edits_declare(&edits, client, value)) {
			/* The server says what is wrong with the capabilities. */
			request->link.token.mode = MCP_MODE_RELAY;
			request->hello = MCP_HELLO_OWN;
		}
	} else if (request->link.token.mode == MCP_MODE_REFUSE) {
		mcp_edits_undeclare(&edits, client);
	}
	if (edits.count == 0)
		return request->in->body;
	return mcp_edits_flat(&edits, &request->arena);
}

static bool say_hello(struct mcp_request *request)
{
	bool instead = false;

	if (!request->watch->begins(request, &instead))
		return false;
	if (instead)
		return true;
	const struct slice body = edited(request);
	if (slice_absent(body))
		return mcp_refuse_err(request, ERR_BUSY);
	return mcp_forward(request, body);
}

bool mcp_initialize(struct mcp_request *request)
{
	if (request->mcp->leaving)
		return mcp_refuse_err(request, ERR_DRAINING);
	decide(request);
	declare_what_it_takes(request);
	return mcp_place_for(request, say_hello);
}

static bool send_hello_sse(struct mcp_request *request)
{
	const struct slice body = edited(request);

	request->hello = MCP_HELLO_NONE; /* its answer is on the stream, and tried once */
	return slice_absent(body) ? mcp_refuse_err(request, ERR_BUSY) : mcp_forward(request, body);
}

static void on_told(struct mcp_ask *ask)
{
	struct mcp_request *request = ask->owner;

	request->asked = NULL;
	request->server = mcp_link_server(request->mcp, &request->link);
	const bool there =
		request->server != NULL && mcp_link_place(&request->link, request->server);
	if (!(there ? send_hello_sse(request) : mcp_refuse_err(request, ERR_SERVER_UNKNOWN)))
		mcp_answer_whole(request, gather_flat(&request->answer, &request->arena));
	request->server = NULL; /* a reload may come */
}

/* The stream may be at another gateway, which must have heard of the note before the server can ask for a sampling. Redis
 * answers this question after it has passed the note on. False: there is nobody to wait for. */
static bool wait_until_told(struct mcp_request *request)
{
	struct mcp_ask *ask;

	if (request->mcp->shared == NULL)
		return false;
	ask = arena_zero(&request->arena, sizeof(*ask));
	if (ask == NULL)
		return false;
	ask->who = request->link.who;
	ask->owner = request;
	ask->done = on_told;
	if (!mcp_ask_home(request->mcp->shared, ask, false))
		return false;
	request->asked = ask;
	request->phase = MCP_CALLED;
	return true;
}

bool mcp_initialize_sse(struct mcp_request *request)
{
	enum revision revision;

	decide(request);
	if (slice_absent(edited(request))) /* it may find that nothing can be declared */
		return mcp_refuse_err(request, ERR_BUSY);
	if (!revision_find(mcp_plain(request->posted.first.in_params.protocol_version), &revision))
		revision = REVISION_2024_11_05;
	mcp_sse_note(request, revision);
	return wait_until_told(request) || send_hello_sse(request);
}

/* ---- the answer ---- */

/* A server that knows no sampling.tools, or no sampling at all, says so in many ways. */
static bool is_refusal(const struct mcp_request *request, const struct mcp_message *response)
{
	static const struct slice codes[] = { SLICE_INIT("-32600"), SLICE_INIT("-32602"),
					      SLICE_INIT("-32603") };
	const int status = request->call.answer.status;

	if (status == 400 || status == 500)
		return true;
	for (size_t i = 0; response != NULL && i < COUNT_OF(codes); i++)
		if (json_loose_same_id(response->error_code, codes[i]))
			return true;
	return false;
}

static bool may_try_again(const struct mcp_request *request)
{
	return request->exchange != NULL &&
	       (request->hello == MCP_HELLO_TOOLS || request->hello == MCP_HELLO_PLAIN);
}

void mcp_hello_again(struct mcp_request *request)
{
	upstream_finish(&request->call);
	request->held.len = 0;
	request->server = mcp_link_server(request->mcp, &request->link);
	const struct slice body = edited(request);
	if (request->server == NULL || !mcp_link_place(&request->link, request->server) ||
	    slice_absent(body) || !mcp_forward(request, body)) {
		if (request->refused == ERR_OK)
			(void)mcp_refuse_err(request, ERR_BUSY);
		mcp_answer_whole(request, gather_flat(&request->answer, &request->arena));
	}
	request->server = NULL;
}

void mcp_hello_less(struct mcp_request *request)
{
	declare_less(request);
	request->refused_more = true;
	mcp_hello_again(request);
}

/* What the session is, from the server's answer. False: its id is none that can be sealed, or there is no memory. */
static bool begin_session(struct mcp_request *request, const struct mcp_message *response,
			  struct slice upstream_id)
{
	struct mcp_link *link = &request->link;
	struct mcp_token *token = &link->token;

	if (slice_absent(upstream_id) || upstream_id.len == 0) {
		return true; /* the server has no sessions: each message is looked at for itself */
	}
	if (upstream_id.len > MCP_UPSTREAM_ID_MAX)
		return false;
	const struct slice revision = mcp_plain(response->in_result.protocol_version);
	const bool good = !slice_absent(revision) && revision.len <= MCP_REVISION_MAX &&
			  header_text_is_value(revision); /* it becomes a header's value */
	token->upstream_id = arena_copy(&request->arena, upstream_id);
	token->revision = good ? arena_copy(&request->arena, revision) : SLICE("");
	if (slice_absent(token->upstream_id) || slice_absent(token->revision))
		return false;
	token->issued_s = net_wall_s(request->host->loop);
	token->own_get = mcp_link_answers(link);
	token->pin = mcp_call_pin(request->mcp, link, &request->extra.peer);
	mcp_link_who(link);
	mcp_place_begun(request);
	mcp_session_log_begin(request);
	return true;
}

/* The answer's fields for the client. False: answered with an error, and the request may be gone. */
static bool pass_head(struct mcp_request *request, const struct mcp_answer_head *head,
		      const struct mcp_message *response)
{
	if (response == NULL || slice_absent(response->result))
		return true;
	if (begin_session(request, response, head->session_id))
		return true;
	mcp_fail(request, ERR_SERVER_ANSWER, "the MCP server's session id is too long");
	return false;
}

/* The answer is kept until it is known whether the session is bridged. */
static void keep_whole(struct mcp_request *request, const struct mcp_answer_head *head,
		       const struct mcp_message *response)
{
	if (mcp_head_pass(request, head) &&
	    request->watch->keep(request, request->call.answer.body, response))
		request->watch->go(request);
	else
		mcp_fail(request, ERR_BUSY, NULL);
}

bool mcp_hello_whole(struct mcp_request *request, const struct mcp_answer_head *head)
{
	struct mcp_message message, *response = NULL;
	struct slice value;

	if (request->hello == MCP_HELLO_NONE)
		return false;
	if (json_loose_whole(request->call.answer.body, &value) &&
	    json_loose_kind(value) == JSON_LOOSE_OBJECT) {
		mcp_message_read(value, &message);
		response = &message;
	}
	note_strict(request, response);
	if (request->watch->wants(request, response, head->session_id)) {
		keep_whole(request, head, response);
		return true;
	}
	if ((response == NULL || slice_absent(response->result)) && is_refusal(request, response) &&
	    may_try_again(request)) {
		mcp_hello_less(request);
		return true;
	}
	if (response == NULL || slice_absent(response->result))
		mcp_place_give(request); /* before the client can try again */
	return !pass_head(request, head, response);
}

/* ---- an answer as a stream: it is held until the result is there ---- */

static struct mcp_request *of_filter(struct mcp_filter *filter)
{
	return CONTAINER_OF(filter, struct mcp_request, filter);
}

/* The client's result has come: from here on the stream is like any other. */
static bool let_go(struct mcp_request *request)
{
	const struct slice held = mcp_buffer_slice(&request->held);

	if (!mcp_session_pass(request, request->session_id))
		return false;
	request->responded = true;
	request->filter.events = &mcp_stream_events;
	request->filter.whole = mcp_link_hides(&request->link);
	request->filter.takes = mcp_link_takes(&request->link);
	mcp_stream_begin(request, request->call.answer.status);
	return mcp_out_add(&request->out, held);
}

static bool on_held(struct mcp_filter *filter, const struct mcp_passed *passed)
{
	struct mcp_request *request = of_filter(filter);
	const struct mcp_message *message = passed->message;

	mcp_count_passed(request->mcp, &request->link, passed);
	if (!mcp_buffer_add(&request->held, &request->arena, passed->raw))
		return false;
	if (message == NULL || message->kind != MCP_RESPONSE ||
	    !json_loose_same_id(message->id, request->posted.first.id))
		return true;
	note_strict(request, message);
	if (request->watch->wants(request, message, request->session_id)) {
		upstream_enough(&request->call, false);
		return request->watch->keep(request, mcp_buffer_slice(&request->held), message);
	}
	if (slice_absent(message->result) && is_refusal(request, message) &&
	    may_try_again(request)) {
		request->again = true;
		upstream_enough(&request->call, false);
		return true;
	}
	if (!slice_absent(message->result) && !begin_session(request, message, request->session_id))
		return false;
	return let_go(request);
}

static void take_nothing(struct mcp_filter *filter, struct slice text,
			 const struct mcp_message *message)
{
	(void)filter;
	(void)text;
	(void)message;
	must(false); /* the filter does not take yet */
}

static bool cancel_nothing(struct mcp_filter *filter, struct slice id)
{
	(void)filter;
	(void)id;
	return false;
}

static void lose_nothing(struct mcp_filter *filter, struct slice id)
{
	(void)filter;
	(void)id;
}

static const struct mcp_filter_events held_events = {
	.pass = on_held, .take = take_nothing, .cancel = cancel_nothing, .too_large = lose_nothing
};

bool mcp_hello_begin(struct mcp_request *request, const struct mcp_answer_head *head)
{
	request->phase = MCP_HOLDS;
	request->again = false;
	request->session_id = arena_copy(
		&request->arena, slice_absent(head->session_id) ? SLICE("") : head->session_id);
	mcp_filter_init(&request->filter, &held_events, &request->arena, false);
	request->filter.whole = true;
	return !slice_absent(request->session_id) && mcp_head_pass(request, head);
}

void mcp_hello_done(struct mcp_request *request)
{
	if (request->watch->has(request))
		request->watch->go(request);
	else if (request->again)
		mcp_hello_less(request);
	else if (request->call.err == ERR_OK)
		mcp_fail(request, ERR_SERVER_ANSWER,
			 request->filter.failed
				 ? "the MCP server's answer to initialize cannot be held"
				 : "the MCP server's answer to initialize has no result");
	else
		mcp_fail(request, mcp_call_error(&request->call), request->call.detail);
}
