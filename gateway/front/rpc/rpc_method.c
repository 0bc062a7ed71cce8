/* rpc_method.c - the methods that no provider is needed for, and the end of a session (DESIGN 4.3). */
#include "gateway/front/rpc/rpc.h"

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

/* A session of that revision begins; it is there before the caller has its id. */
static void begin_session(struct rpc_call *call, enum revision revision)
{
	for (size_t i = 0; i < SESSION_ID_HEX; i++)
		call->begun[i] = "0123456789abcdef"[call->ids.chance[i / 2] >> (i % 2 * 4) & 15];
	call->ask.begins = slice_of(call->begun, SESSION_ID_HEX);
	call->ask.begins_revision = revision;
}

/* Begins a JSON-RPC response. */
static struct gather *begin_response(struct rpc_call *call)
{
	struct gather *body = &call->answer.body;

	rpc_write_json(call);
	gather_lit(body, "{\"jsonrpc\":\"2.0\",\"id\":");
	gather_raw(body, call->rpc.id);
	return body;
}

static void write_initialize(struct rpc_call *call)
{
	struct gather *body = begin_response(call);

	gather_lit(body, ",\"result\":{\"protocolVersion\":\"");
	gather_raw(body, slice_str(revision_name(call->ask.begins_revision)));
	gather_lit(body, "\",\"capabilities\":{\"sampling\":{");
	if (call->may_tools)
		gather_lit(body, "\"tools\":{}");
	if (call->may_context)
		gather_raw(body,
			   call->may_tools ? SLICE(",\"context\":{}") : SLICE("\"context\":{}"));
	gather_lit(body,
		   "}},\"serverInfo\":{\"name\":\"sluice\",\"version\":\"" SLUICE_VERSION "\"}}}");
	if (!slice_absent(call->ask.begins))
		rpc_add_field(call, SLICE("mcp-session-id"), call->ask.begins);
	if (gather_done(body) != ERR_OK)
		(void)rpc_refuse_err(call, ERR_BUSY);
}

static void write_ping(struct rpc_call *call)
{
	struct gather *body = begin_response(call);

	gather_lit(body, ",\"result\":{}}");
	if (gather_done(body) != ERR_OK)
		(void)rpc_refuse_err(call, ERR_BUSY);
}

/* The request that a notifications/cancelled names; absent: none. */
struct slice rpc_cancelled_id(const struct rpc_call *call, struct json_work *json)
{
	const struct slice params = call->rpc.params;
	struct json_reader r;
	struct slice key, id = { NULL, 0 };

	json_open(&r, params, NULL, json);
	if (slice_absent(params) || json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return id;
	while (json_next_key(&r, &key)) {
		struct slice value;
		if (json_skip(&r, &value) && json_str_eq(key, SLICE("requestId")))
			id = value;
	}
	return id;
}

void rpc_read_method(struct rpc_call *call, struct json_work *json)
{
	if (call->rpc.method != RPC_INITIALIZE)
		return;
	const struct capabilities *may = &call->caller.plan->capabilities;
	const enum revision revision = negotiate(call->rpc.params, json);
	call->may_tools = may->tools;
	call->may_context = may->context;
	call->ask.begins_revision = revision;
	if (call->revision != REVISION_2026_07_28)
		begin_session(call, revision);
}

void rpc_write_method(struct rpc_call *call)
{
	if (call->ask.ends) {
		rpc_write_empty(call, 204);
		return;
	}
	switch (call->rpc.method) {
	case RPC_INITIALIZE:
		write_initialize(call);
		return;
	case RPC_PING:
		write_ping(call);
		return;
	case RPC_CANCELLED:
	case RPC_INITIALIZED:
	case RPC_OTHER_NOTIFICATION:
	case RPC_RESPONSE:
		rpc_write_empty(call, 202);
		return;
	case RPC_CREATE_MESSAGE:
	case RPC_UNKNOWN:
		break;
	}
	(void)rpc_refuse_err(call, ERR_UNKNOWN_METHOD);
}
