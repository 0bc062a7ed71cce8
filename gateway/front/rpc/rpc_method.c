/* rpc_method.c - the methods that no provider is needed for, and the end of a session (DESIGN 4.3). */
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"
#include "gateway/base/version.h"

/* The revision that an initialize is answered with: the one asked for, or the newest with sessions. */
static enum revision negotiate(struct slice params, struct json_work *work)
{
	struct json_reader r;
	struct slice key, asked;
	enum revision revision = REVISION_2025_11_25;

	json_open(&r, params, NULL, work);
	if (slice_absent(params) || json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return revision;
	while (json_next_key(&r, &key)) {
		if (!json_str_eq(key, SLICE("protocolVersion")) || json_peek(&r) != JSON_STRING) {
			(void)json_skip(&r, NULL);
			continue;
		}
		enum revision found;
		char room[32]; /* longer than every name */
		if (json_string(&r, &asked) &&
		    revision_find(json_str_fit(asked, room, sizeof(room)), &found) &&
		    found != REVISION_2026_07_28)
			revision = found;
	}
	return revision;
}

/* A session of that revision begins; it is there before the caller has its id. False: no memory. */
static bool begin_session(struct flow *flow, enum revision revision)
{
	struct flow_state *state = flow_state_of(flow);

	if (state == NULL)
		return false;
	for (size_t i = 0; i < SESSION_ID_HEX; i++)
		state->begun[i] = "0123456789abcdef"[flow->chance[i / 2] >> (i % 2 * 4) & 15];
	const struct slice id = slice_of(state->begun, SESSION_ID_HEX);
	state->session_key = flow_key_of_session(flow, id);
	state->note.begin_session = true;
	state->note.revision = (uint32_t)revision;
	flow_answer_field(flow, SLICE("mcp-session-id"), id);
	return true;
}

static enum flow_move answer_initialize(struct flow *flow, const struct flow_env *env)
{
	const struct capabilities *may = &flow->plan->capabilities;
	const enum revision revision = negotiate(flow->rpc.params, env->json);
	struct gather *body = &flow->answer.body;

	flow_answer_json(flow);
	if (env->stateful && flow->revision != REVISION_2026_07_28 &&
	    !begin_session(flow, revision))
		return flow_refuse_err(flow, ERR_BUSY);
	gather_lit(body, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(body, flow->rpc.id);
	gather_lit(body, ",\"result\":{\"protocolVersion\":\"");
	gather_raw(body, slice_str(revision_name(revision)));
	gather_lit(body, "\",\"capabilities\":{\"sampling\":{");
	if (may->tools)
		gather_lit(body, "\"tools\":{}");
	if (may->context)
		gather_raw(body, may->tools ? SLICE(",\"context\":{}") : SLICE("\"context\":{}"));
	gather_lit(body,
		   "}},\"serverInfo\":{\"name\":\"sluice\",\"version\":\"" SLUICE_VERSION "\"}}}");
	return gather_done(body) == ERR_OK ? FLOW_ANSWERED : flow_refuse_err(flow, ERR_BUSY);
}

static enum flow_move answer_ping(struct flow *flow)
{
	struct gather *body = &flow->answer.body;

	flow_answer_json(flow);
	gather_lit(body, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(body, flow->rpc.id);
	gather_lit(body, ",\"result\":{}}");
	return gather_done(body) == ERR_OK ? FLOW_ANSWERED : flow_refuse_err(flow, ERR_BUSY);
}

/* The request that a notifications/cancelled names; absent: none. */
static struct slice cancelled_id(struct slice params, struct json_work *work)
{
	struct json_reader r;
	struct slice key, id = { NULL, 0 };

	json_open(&r, params, NULL, work);
	if (slice_absent(params) || json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return id;
	while (json_next_key(&r, &key)) {
		struct slice value;
		if (json_skip(&r, &value) && json_str_eq(key, SLICE("requestId")))
			id = value;
	}
	return id;
}

/* Of its own session; without one closing the connection works. */
static void call_off(struct flow *flow, const struct flow_env *env)
{
	const struct slice id = cancelled_id(flow->rpc.params, env->json);

	if (!flow_in_session(flow) || slice_absent(id))
		return;
	flow->state->calls_off = true;
	flow->state->called_off = flow_key_of_id(flow, id);
}

/* Whether there was one shows when it is over. */
enum flow_move flow_end_session(struct flow *flow, const struct flow_env *env)
{
	const bool sessions = env->stateful && flow->revision != REVISION_2026_07_28;

	if (sessions && flow_state_of(flow) == NULL)
		return flow_refuse_err(flow, ERR_BUSY);
	if (!sessions || !flow_use_session(flow))
		return flow_refuse_err(flow, ERR_SESSION_UNKNOWN);
	flow->state->note.end_session = true;
	return flow_answer_empty(flow, 204);
}

enum flow_move flow_method(struct flow *flow, const struct flow_env *env)
{
	switch (flow->rpc.method) {
	case RPC_CREATE_MESSAGE:
		return FLOW_NEXT;
	case RPC_INITIALIZE:
		return answer_initialize(flow, env);
	case RPC_PING:
		return answer_ping(flow);
	case RPC_CANCELLED:
		call_off(flow, env);
		return flow_answer_empty(flow, 202);
	case RPC_INITIALIZED:
	case RPC_OTHER_NOTIFICATION:
	case RPC_RESPONSE:
		return flow_answer_empty(flow, 202);
	case RPC_UNKNOWN:
		break;
	}
	return flow_refuse_err(flow, ERR_UNKNOWN_METHOD);
}
