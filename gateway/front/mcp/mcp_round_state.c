/* mcp_round_state.c - what a client keeps of a round: sealed, so that it can neither read nor change it, and bound to the
 * call (contract/mcp-proxy.md 7.4). A client that repeats its part gets the same answers. */
#include "codec/base/must.h"
#include "gateway/front/mcp/mcp_round.h"

static bool digest_of(struct mcp_request *request, struct mcp_digest *out)
{
	struct arena scratch;

	arena_init(&scratch, request->host->arenas, MCP_ROUND_ARENA);
	const bool made = mcp_round_digest(&request->posted.first, &scratch, out);
	arena_give(&scratch);
	return made;
}

/* The method of a call that may have rounds, without escapes. */
static struct slice method_of(const struct mcp_request *request)
{
	static const char *const methods[] = { "tools/call", "prompts/get", "resources/read" };

	for (size_t i = 0; i < COUNT_OF(methods); i++)
		if (json_loose_is(request->posted.first.method, methods[i]))
			return slice_str(methods[i]);
	must(false);
	return slice_of(NULL, 0);
}

/* Of the same caller, for the same call, and not too old. */
static bool is_of(const struct mcp_state *state, const struct mcp_request *request,
		  const struct mcp_digest *params)
{
	const struct mcp_token *token = &request->link.token;

	return mcp_digest_eq(&state->tenant, &token->tenant) &&
	       mcp_digest_eq(&state->principal, &token->principal) &&
	       slice_eq(state->method, method_of(request)) &&
	       mcp_digest_eq(&state->params, params) &&
	       net_wall_s(request->host->loop) < state->expires_s;
}

static bool merge(struct mcp_request *request, const struct mcp_state *state, struct mcp_leg *leg)
{
	const struct slice responses = request->posted.first.in_params.input_responses;
	const bool object = json_loose_kind(responses) == JSON_LOOSE_OBJECT;

	if (!object && mcp_has_responses(&request->posted.first))
		return mcp_refuse_err(request, ERR_ROUND_STATE);
	leg->answers = mcp_answers_merge(state->answers, object ? responses : slice_of(NULL, 0),
					 &request->round->heard);
	leg->state = state->upstream;
	leg->answers_round = true;
	return !slice_absent(leg->answers) || mcp_refuse_err(request, ERR_BUSY);
}

bool mcp_round_restore(struct mcp_request *request, struct mcp_leg *leg)
{
	const struct slice text = mcp_plain(request->posted.first.in_params.request_state);
	struct mcp_digest params;
	struct mcp_state state;
	enum err err = ERR_SESSION_UNKNOWN;

	if (!request->round->rule.answers)
		return true;
	if (!slice_absent(text))
		err = mcp_state_open(request->mcp->seal, request->link.token.server, text,
				     &request->round->heard, &state);
	if (err == ERR_OK && !digest_of(request, &params))
		err = ERR_BUSY;
	if (err == ERR_BUSY)
		return mcp_refuse_err(request, ERR_BUSY);
	if (err !=
	    ERR_OK) /* the server's own state passes, but no answer to what the gateway would have asked */
		return !mcp_has_responses(&request->posted.first) ||
		       mcp_refuse_err(request, ERR_ROUND_STATE);
	if (!is_of(&state, request, &params))
		return mcp_refuse_err(request, ERR_ROUND_STATE);
	request->round->restored = arena_copy(&request->arena, text);
	if (slice_absent(request->round->restored))
		return mcp_refuse_err(request, ERR_BUSY);
	return merge(request, &state, leg);
}

static struct slice quoted(struct slice text, struct arena *into)
{
	char *out = arena_take(into, text.len + 2);

	if (out == NULL)
		return slice_of(NULL, 0);
	out[0] = out[text.len + 1] = '"';
	(void)memcpy(out + 1, text.at, text.len);
	return slice_of(out, text.len + 2);
}

enum err mcp_round_seal(struct mcp_request *request, struct slice answers, struct slice *state)
{
	const struct mcp_token *token = &request->link.token;
	struct mcp_state kept = {
		.server = token->server,
		.tenant = token->tenant,
		.principal = token->principal,
		.method = method_of(request),
		.expires_s = net_wall_s(request->host->loop) + MCP_ROUND_STATE_S,
		.upstream = request->round->message.in_result.request_state,
		.answers = answers,
	};
	struct slice text;

	if (!digest_of(request, &kept.params))
		return ERR_BUSY;
	const enum err err =
		mcp_state_seal(request->mcp->seal, &kept, &request->round->heard, &text);
	if (err != ERR_OK)
		return err;
	*state = quoted(text, &request->arena);
	return slice_absent(*state) ? ERR_BUSY : ERR_OK;
}
