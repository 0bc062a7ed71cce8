/* rpc_request.c - from HTTP to what is asked of the core (DESIGN 4.3). */
#include "gateway/front/rpc/rpc.h"

#include "codec/base/must.h"
#include "codec/set.h"
#include "gateway/front/front_caller.h"
#include "gateway/front/front_once.h"

#include <string.h>

static struct slice header(const struct rpc_call *call, enum http_header name)
{
	return call->in->headers[name];
}

struct acceptable {
	int best; /* of the ranges that were seen, the most specific; -1: none */
	bool json, stream;
};

/* Zero is a no (RFC 9110, 12.4.2). */
static bool is_zero(struct slice params)
{
	bool zero = false;

	while (!slice_absent(params)) {
		struct slice value = slice_cut(&params, ';');
		struct slice name = slice_trim(slice_cut(&value, '='));
		value = slice_trim(value);
		if (slice_eq_nocase(name, SLICE("q")) && value.len > 0)
			zero = strspn(value.at, "0.") >= value.len;
	}
	return zero;
}

static void take_range(struct acceptable *take, struct slice range, bool zero)
{
	static const struct slice json[] = { SLICE_INIT("*/*"), SLICE_INIT("application/*"),
					     SLICE_INIT("application/json") };

	for (int i = take->best + 1; i < (int)COUNT_OF(json); i++)
		if (slice_eq_nocase(range, json[i])) {
			take->best = i;
			take->json = !zero;
		}
	if (slice_eq_nocase(range, SLICE("text/event-stream")))
		take->stream = !zero;
}

/* What an Accept header admits: none, or one that lists nothing, counts as any, and the most specific range
 * decides (RFC 9110, 12.5.1); but a stream has to be asked for by its name (DESIGN 4.3). */
static void read_accept(struct rpc_call *call, struct slice accept)
{
	struct acceptable take = { .best = -1 };
	bool listed = false;

	while (!slice_absent(accept)) {
		struct slice params = slice_cut(&accept, ',');
		struct slice range = slice_trim(slice_cut(&params, ';'));
		listed = listed || range.len != 0;
		take_range(&take, range, is_zero(params));
	}
	call->takes_json = take.json || !listed;
	call->takes_stream = take.stream;
}

/* RFC 9110, 12.5.3: says so only where it was the coding. */
static bool refuse_coding(struct rpc_call *call)
{
	const bool refused = rpc_refuse_err(call, ERR_MEDIA_TYPE);

	rpc_add_field(call, SLICE("accept-encoding"), SLICE("identity"));
	return refused;
}

void rpc_init(struct rpc_call *call, const struct http_incoming *in, uint64_t came_wall_ns)
{
	call->front.front = &rpc_front;
	call->call = NULL;
	call->connection = (uint16_t)in->connection;
	call->phase = RPC_ASKED;
	call->progress.phase = RPC_PROGRESS_UNWANTED;
	call->magic = RPC_MAGIC;
	call->in = in;
	call->post = slice_eq(in->method, SLICE("POST"));
	call->takes_json = call->takes_stream = call->bad_token = false;
	call->envelope_read = call->in_session = false;
	call->may_tools = call->may_context = false;
	call->detail = NULL;
	call->wrote = ERR_OK;
	call->rpc = (struct jsonrpc){ .method = RPC_CREATE_MESSAGE };
	call->revision = REVISION_2025_11_25;
	call->answer.status = 0;
	call->ask = (struct sampling_ask){ .ids = &call->ids,
					   .arena = &call->arena,
					   .body = in->body,
					   .at = SLICE("$.params"),
					   .started = in->came_at,
					   .deadline = NSEC_NEVER,
					   .started_wall_ns = came_wall_ns };
}

static bool read_http(struct rpc_call *call, const struct front_host *host, bool found)
{
	const struct http_incoming *in = call->in;
	const bool post = call->post;

	if (host->leaving)
		return rpc_refuse_err(call, ERR_DRAINING);
	if (!found)
		return rpc_refuse_err(call, ERR_NOT_FOUND);
	if (!post && !slice_eq(in->method, SLICE("DELETE")))
		return rpc_refuse_err(call, ERR_HTTP_METHOD);
	if (!front_origin_allowed(host->config, header(call, HTTP_ORIGIN)))
		return rpc_refuse_err(call, ERR_ORIGIN);
	if (in->no_room)
		return rpc_refuse_err(call, ERR_BUSY);
	if (in->body_too_large)
		return rpc_refuse_err(call, ERR_BODY_TOO_LARGE);
	if (post && !front_is_json(header(call, HTTP_CONTENT_TYPE)))
		return rpc_refuse_err(call, ERR_MEDIA_TYPE);
	if (post && front_is_coded(header(call, HTTP_CONTENT_ENCODING)))
		return refuse_coding(call);
	read_accept(call, header(call, HTTP_ACCEPT));
	if (post && !call->takes_json && !call->takes_stream)
		return rpc_refuse_err(call, ERR_NOT_ACCEPTABLE);
	return true;
}

/* ---- the caller ---- */

/* Says what is wrong with a token: whoever sent it can read it, too. */
static bool refuse_caller(struct rpc_call *call, const struct caller_refusal *why)
{
	struct fault fault = { .err = why->err, .offset = FAULT_NO_OFFSET };
	struct error_data data = error_data_none;
	struct gather list;

	if (why->token == JWT_OK)
		return rpc_refuse_err(call, why->err);
	call->bad_token = true;
	fault.detail = jwt_fault_text(why->token);
	if (why->token == JWT_BUSY)
		data.retry_after_ms = 1000;
	gather_init(&list, &call->arena);
	gather_lit(&list, "\"token\":\"");
	gather_raw(&list, slice_str(jwt_fault_reason(why->token)));
	gather_lit(&list, "\"");
	if (gather_done(&list) == ERR_OK)
		data.extra = gather_flat(&list, &call->arena);
	return rpc_refuse(call, &fault, &data);
}

static bool find_caller(struct rpc_call *call, const struct front_host *host)
{
	struct caller_refusal why;

	if (!front_find_caller(host, call->in, slice_of(NULL, 0), call->ask.started_wall_ns / SEC,
			       &call->arena, &call->shown, &call->caller, &why))
		return refuse_caller(call, &why);
	call->ask.credentials = &call->shown;
	call->ask.caller = &call->caller;
	return true;
}

/* ---- headers ---- */

/* Sluice-Timeout only lowers the plan's deadline. False: it is wrong, and left out. */
static bool set_deadline(struct rpc_call *call, nsec_t allowed)
{
	const struct slice text = header(call, HTTP_TIMEOUT);
	uint64_t ms = 0;
	const bool good = slice_absent(text) || (slice_to_u64(slice_trim(text), &ms) && ms != 0);

	if (good && !slice_absent(text) && ms < allowed / MSEC)
		allowed = ms * MSEC;
	call->ask.deadline = call->ask.started + allowed;
	return good;
}

/* Refused for a header, or for where it came, but the caller is known: it finds its request by the id (DESIGN 4.4). A
 * cancellation goes on all the same: it is always taken (DESIGN 4.3). */
static bool refuse_header(struct rpc_call *call, struct json_work *json, const struct fault *fault,
			  const struct error_data *data)
{
	struct fault unread = { .err = ERR_OK, .offset = FAULT_NO_OFFSET };

	/* What may be wrong with the body does not matter any more. */
	enum err err = jsonrpc_read(call->in->body, json, &call->arena, &call->rpc, &unread);
	if (err == ERR_OK && call->rpc.method == RPC_CANCELLED && call->post)
		return true;
	call->envelope_read = true;
	return rpc_refuse(call, fault, data);
}

static bool refuse_header_err(struct rpc_call *call, struct json_work *json, enum err err)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };

	return refuse_header(call, json, &fault, NULL);
}

/* {"supported": [...]} beside an unknown revision (contract/mcp.md 8.3). */
static bool refuse_revision(struct rpc_call *call, struct json_work *json)
{
	struct error_data data = error_data_none;
	const struct fault fault = { .err = ERR_REVISION, .offset = FAULT_NO_OFFSET };
	struct gather list;

	gather_init(&list, &call->arena);
	gather_lit(&list, "\"supported\":[");
	for (int i = 0; i < REVISION_COUNT; i++) {
		if (i == REVISION_SEP_1577_DRAFT) /* accepted, but not a revision to offer */
			continue;
		gather_raw(&list, i == 0 ? SLICE("\"") : SLICE(",\""));
		gather_raw(&list, slice_str(revision_name((enum revision)i)));
		gather_lit(&list, "\"");
	}
	gather_lit(&list, "]");
	if (gather_done(&list) == ERR_OK)
		data.extra = gather_flat(&list, &call->arena);
	return refuse_header(call, json, &fault, &data);
}

static bool read_headers(struct rpc_call *call, const struct front_host *host)
{
	const struct slice name = header(call, HTTP_PROTOCOL_VERSION);
	const bool timely = set_deadline(call, call->caller.plan->limits.deadline);
	struct json_work *json = host->json;

	if (!front_is_open(host, call->in, call->caller.plan, FRONT_SAMPLING))
		return refuse_header_err(call, json, ERR_FRONT_FORBIDDEN);
	if (!slice_absent(name) && !revision_find(slice_trim(name), &call->revision))
		return refuse_revision(call, json);
	call->ask.session_may_change = slice_absent(name);
	if (!call->post)
		return true;
	if (!front_key_is_good(header(call, HTTP_IDEMPOTENCY_KEY)))
		return refuse_header_err(call, json, ERR_IDEMPOTENCY_KEY);
	return timely || refuse_header_err(call, json, ERR_TIMEOUT_HEADER);
}

bool rpc_read_early(struct rpc_call *call, const struct front_host *host, bool found)
{
	return read_http(call, host, found) && find_caller(call, host);
}

bool rpc_read_head(struct rpc_call *call, const struct front_host *host, bool found)
{
	return rpc_read_early(call, host, found) && read_headers(call, host);
}

/* ---- the session ---- */

static bool is_session_id(struct slice id)
{
	for (size_t i = 0; i < id.len; i++)
		if (!(id.at[i] >= '0' && id.at[i] <= '9') && !(id.at[i] >= 'a' && id.at[i] <= 'f'))
			return false;
	return id.len == SESSION_ID_HEX;
}

/* A revision without sessions has none; an initialize may still carry the id of an older one. */
static bool read_session(struct rpc_call *call)
{
	const struct slice id = header(call, HTTP_SESSION_ID);

	if (slice_absent(id) || call->revision == REVISION_2026_07_28 ||
	    call->rpc.method == RPC_INITIALIZE)
		return true;
	if (is_session_id(slice_trim(id))) {
		call->ask.session = slice_trim(id);
		return true;
	}
	return call->rpc.method == RPC_CANCELLED || rpc_refuse_err(call, ERR_SESSION_UNKNOWN);
}

/* DELETE: the session that the request names ends. */
static bool read_end(struct rpc_call *call)
{
	const struct slice id = header(call, HTTP_SESSION_ID);

	if (slice_absent(id) || call->revision == REVISION_2026_07_28 ||
	    !is_session_id(slice_trim(id)))
		return rpc_refuse_err(call, ERR_SESSION_UNKNOWN);
	call->ask.session = slice_trim(id);
	call->ask.ends = true;
	return true;
}

/* The session fixes the revision. The request was read by the default: what the draft's answers, of a single
 * block, mean for it is made good. */
enum err rpc_know(void *owner, bool there, uint32_t revision, struct fault *fault)
{
	struct rpc_call *call = owner;
	struct sampling_request *request = call->ask.request;

	call->in_session = there;
	if (call->rpc.method == RPC_CANCELLED)
		return ERR_OK; /* best effort, always taken (DESIGN 4.3), and the same in all revisions */
	*fault = (struct fault){ .err = ERR_SESSION_UNKNOWN, .offset = FAULT_NO_OFFSET };
	if (!there)
		return fault->err;
	must(revision < REVISION_COUNT);
	if (call->revision == (enum revision)revision)
		return ERR_OK;
	fault->err = ERR_REVISION;
	fault->detail = "MCP-Protocol-Version is not the one that the session was begun with";
	if (!slice_absent(header(call, HTTP_PROTOCOL_VERSION)))
		return fault->err;
	call->revision = (enum revision)revision;
	if (request == NULL)
		return ERR_OK;
	request->revision = call->revision;
	if (call->revision == REVISION_SEP_1577_DRAFT && request->tool_count != 0)
		request->no_parallel = true;
	return ERR_OK;
}

/* ---- the body ---- */

/* The caller is told meanwhile, and may therefore wait for longer. */
static bool begin_progress(struct rpc_call *call)
{
	const struct slice token = call->ask.request->progress_token;
	const struct fault too_long = {
		.err = ERR_FIELD,
		.offset = FAULT_NO_OFFSET,
		.detail = "params._meta.progressToken is longer than 1,024 bytes",
	};

	_Static_assert(PROGRESS_TOKEN_MAX == 1024, "what the detail says");
	if (token.len > PROGRESS_TOKEN_MAX)
		return rpc_refuse(call, &too_long, NULL);
	if (!rpc_progress_want(&call->progress, token, &call->arena))
		return rpc_refuse_err(call, ERR_BUSY);
	rpc_stream_init(call);
	call->ask.relay = SAMPLING_PROGRESS;
	must(set_deadline(call,
			  call->caller.plan->limits.deadline_progress)); /* it was good before */
	return true;
}

static bool has_answer(enum rpc_method method)
{
	return method == RPC_CREATE_MESSAGE || method == RPC_INITIALIZE || method == RPC_PING ||
	       method == RPC_UNKNOWN;
}

/* DESIGN 4.3: an event stream for whom there is something to tell, else JSON. */
static bool choose_form(struct rpc_call *call)
{
	static const struct fault stream_only = {
		.err = ERR_NOT_ACCEPTABLE,
		.offset = FAULT_NO_OFFSET,
		.detail = "Accept allows text/event-stream alone, which answers a "
			  "sampling/createMessage with "
			  "params._meta.progressToken; add application/json",
	};

	if (call->takes_stream && call->ask.request != NULL &&
	    !slice_absent(call->ask.request->progress_token))
		return begin_progress(call);
	if (!call->takes_json && has_answer(call->rpc.method))
		return rpc_refuse(call, &stream_only, NULL);
	return true;
}

static bool read_message(struct rpc_call *call, struct json_work *json)
{
	struct fault fault = { .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	struct sampling_request *request = arena_take(&call->arena, sizeof(*request));

	if (request == NULL)
		return rpc_refuse_err(call, ERR_BUSY);
	enum err err = sampling_read(call->in->body, call->revision, &sampling_limits_default, json,
				     &call->arena, &call->rpc, request, &fault);
	call->envelope_read = true;
	if (err == ERR_OK) {
		if (call->rpc.method == RPC_CREATE_MESSAGE)
			call->ask.request = request;
		return choose_form(call);
	}
	fault.err = err;
	return rpc_refuse(call, &fault, NULL);
}

bool rpc_read_body(struct rpc_call *call, struct json_work *json)
{
	if (!call->post)
		return read_end(call);
	if (!read_message(call, json) || !read_session(call))
		return false;
	if (call->ask.request == NULL) {
		rpc_read_method(call, json);
		return true;
	}
	call->ask.cancel_id = call->rpc.id;
	call->ask.idempotency_key = header(call, HTTP_IDEMPOTENCY_KEY);
	return true;
}

/* ---- copies ---- */

static void add_member(struct sha256_sum *sum, struct slice key, struct slice value)
{
	sha256_add(sum, key);
	sha256_add(sum, SLICE(":"));
	sha256_add(sum, value);
	sha256_add(sum, SLICE(","));
}

/* All of it but the progress token; an empty one is none. */
static void add_meta(struct sha256_sum *sum, struct slice meta)
{
	struct json_reader r;
	struct slice key, value;

	json_open(&r, meta, NULL, NULL);
	if (json_peek(&r) != JSON_OBJECT || !json_enter_object(&r))
		return;
	while (json_next_key(&r, &key))
		if (json_skip(&r, &value) && !json_str_eq(key, SLICE("progressToken")))
			add_member(sum, key, value);
}

/* What the caller asks for: its params, whichever way progress is to be told, and the revision, which
 * shapes the answer. */
void rpc_digest(void *owner, struct sha256_sum *sum)
{
	const struct rpc_call *call = owner;
	struct json_reader r;
	struct slice key, value;

	sha256_add(sum, slice_str(revision_name(call->revision)));
	json_open(&r, call->rpc.params, NULL, NULL);
	if (!json_enter_object(&r))
		return;
	while (json_next_key(&r, &key)) {
		if (!json_skip(&r, &value))
			break;
		if (json_str_eq(key, SLICE("_meta")))
			add_meta(sum, value);
		else
			add_member(sum, key, value);
	}
}
