/* rpc_request.c - from HTTP to a decoded request (DESIGN 4.3). */
#include "codec/set.h"
#include "gateway/flow/flow_steps.h"

#include "codec/base/must.h"
#include "tenants/auth.h"

#include <string.h>

static struct slice header(const struct flow *flow, enum http_header name)
{
	return flow->in->headers[name];
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
static void read_accept(struct flow *flow, struct slice accept)
{
	struct acceptable take = { .best = -1 };
	bool listed = false;

	while (!slice_absent(accept)) {
		struct slice params = slice_cut(&accept, ',');
		struct slice range = slice_trim(slice_cut(&params, ';'));
		listed = listed || range.len != 0;
		take_range(&take, range, is_zero(params));
	}
	flow->takes_json = take.json || !listed;
	flow->takes_stream = take.stream;
}

static bool is_json(struct slice content_type)
{
	if (slice_absent(content_type))
		return false;
	struct slice type = slice_trim(slice_cut(&content_type, ';'));
	return slice_eq_nocase(type, SLICE("application/json"));
}

/* RFC 9110, 8.4: nothing is decoded here. */
static bool is_coded(struct slice content_encoding)
{
	const struct slice coding = slice_trim(content_encoding);

	return coding.len > 0 && !slice_eq_nocase(coding, SLICE("identity"));
}

/* RFC 9110, 12.5.3: says so only where it was the coding. */
static enum flow_move refuse_coding(struct flow *flow)
{
	const enum flow_move refused = flow_refuse_err(flow, ERR_MEDIA_TYPE);

	flow_answer_field(flow, SLICE("accept-encoding"), SLICE("identity"));
	return refused;
}

static bool origin_allowed(const struct config *config, struct slice origin)
{
	for (uint32_t i = 0; i < config->origin_count; i++)
		if (slice_eq_nocase(config->origins[i], origin))
			return true;
	return slice_absent(origin);
}

/* The path of a target in absolute form, which every server takes (RFC 9112, 3.2.2): what stands behind the
 * scheme and the host. Any other target as it is. */
static struct slice target_path(struct slice target)
{
	static const struct slice schemes[] = { SLICE_INIT("http://"), SLICE_INIT("https://") };

	for (size_t i = 0; i < COUNT_OF(schemes); i++) {
		const size_t len = schemes[i].len;
		if (target.len <= len || !slice_eq_nocase(slice_of(target.at, len), schemes[i]))
			continue;
		const char *path = memchr(target.at + len, '/', target.len - len);
		if (path != NULL)
			return slice_of(path, target.len - (size_t)(path - target.at));
	}
	return target;
}

static bool is_sampling(struct slice target)
{
	const struct slice path = SLICE("/v1/sampling");

	return slice_eq(target, path) || slice_eq(target_path(target), path);
}

enum flow_move flow_http(struct flow *flow, const struct flow_env *env)
{
	const struct http_incoming *in = flow->in;
	bool post = slice_eq(in->method, SLICE("POST"));

	if (env->draining)
		return flow_refuse_err(flow, ERR_DRAINING);
	if (!is_sampling(in->path))
		return flow_refuse_err(flow, ERR_NOT_FOUND);
	if (!post && !slice_eq(in->method, SLICE("DELETE")))
		return flow_refuse_err(flow, ERR_HTTP_METHOD);
	if (!origin_allowed(env->config, header(flow, HTTP_ORIGIN)))
		return flow_refuse_err(flow, ERR_ORIGIN);
	if (in->no_room)
		return flow_refuse_err(flow, ERR_BUSY);
	if (in->body_too_large)
		return flow_refuse_err(flow, ERR_BODY_TOO_LARGE);
	if (post && !is_json(header(flow, HTTP_CONTENT_TYPE)))
		return flow_refuse_err(flow, ERR_MEDIA_TYPE);
	if (post && is_coded(header(flow, HTTP_CONTENT_ENCODING)))
		return refuse_coding(flow);
	read_accept(flow, header(flow, HTTP_ACCEPT));
	if (post && !flow->takes_json && !flow->takes_stream)
		return flow_refuse_err(flow, ERR_NOT_ACCEPTABLE);
	return FLOW_NEXT;
}

/* ---- who asks ---- */

static struct caller_sources sources_of(const struct flow_env *env)
{
	return (struct caller_sources){ .config = env->config,
					.tokens = env->tokens,
					.keys = env->keys,
					.json = env->json,
					.wall_s = env->wall_ns / SEC };
}

static struct credentials credentials_of(const struct flow *flow)
{
	const struct slice authorization = header(flow, HTTP_AUTHORIZATION);
	const bool shown = !slice_absent(authorization);

	return (struct credentials){ .shown = shown,
				     .secret = shown ? auth_credentials(authorization)
						     : authorization,
				     .names = flow->in->names,
				     .wrongs = flow->in->wrongs };
}

/* Says what is wrong with a token: whoever sent it can read it, too. */
static enum flow_move refuse_caller(struct flow *flow, const struct caller_refusal *why)
{
	struct fault fault = { .err = why->err, .offset = FAULT_NO_OFFSET };
	struct rpc_error_data data = rpc_error_data_none;
	struct gather list;

	if (why->token == JWT_OK)
		return flow_refuse_err(flow, why->err);
	flow->bad_token = true;
	fault.detail = jwt_fault_text(why->token);
	if (why->token == JWT_BUSY)
		data.retry_after_ms = 1000;
	gather_init(&list, flow->arena);
	gather_lit(&list, "\"token\":\"");
	gather_raw(&list, slice_str(jwt_fault_reason(why->token)));
	gather_lit(&list, "\"");
	if (gather_done(&list) == ERR_OK)
		data.extra = gather_flat(&list, flow->arena);
	return flow_refuse(flow, &fault, &data);
}

enum flow_move flow_auth(struct flow *flow, const struct flow_env *env)
{
	const struct caller_sources sources = sources_of(env);
	const struct credentials shown = credentials_of(flow);
	struct caller_refusal why;

	if (!caller_find(&sources, &shown, flow->arena, &flow->found, &why))
		return refuse_caller(flow, &why);
	flow->caller = &flow->found;
	flow->account = flow->found.account;
	flow->plan = flow->found.plan;
	return flow_hold_body(flow, env);
}

bool flow_auth_again(struct flow *flow, const struct flow_env *env)
{
	const struct caller_sources sources = sources_of(env);
	const struct credentials shown = credentials_of(flow);

	return caller_find_again(&sources, &shown, flow->caller);
}

/* ---- headers ---- */

/* Refused for a header, but the caller is known: it finds its request by the id (DESIGN 4.4). Calling off goes
 * on without the header: it is always taken (DESIGN 4.3). */
static enum flow_move refuse_header(struct flow *flow, const struct flow_env *env,
				    const struct fault *fault, const struct rpc_error_data *data)
{
	struct fault unread = { .err = ERR_OK, .offset = FAULT_NO_OFFSET };

	/* What may be wrong with the body does not matter any more. */
	enum err err = jsonrpc_read(flow->in->body, env->json, flow->arena, &flow->rpc, &unread);
	if (err == ERR_OK && flow->rpc.method == RPC_CANCELLED &&
	    slice_eq(flow->in->method, SLICE("POST"))) {
		flow->deadline = flow->started + flow->plan->limits.deadline;
		return FLOW_NEXT;
	}
	flow->rpc_known = true;
	return flow_refuse(flow, fault, data);
}

static enum flow_move refuse_header_err(struct flow *flow, const struct flow_env *env, enum err err)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };

	return refuse_header(flow, env, &fault, NULL);
}

/* {"supported": [...]} beside an unknown revision (contract/mcp.md 8.3). */
static enum flow_move refuse_revision(struct flow *flow, const struct flow_env *env)
{
	struct rpc_error_data data = rpc_error_data_none;
	const struct fault fault = { .err = ERR_REVISION, .offset = FAULT_NO_OFFSET };
	struct gather list;

	gather_init(&list, flow->arena);
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
		data.extra = gather_flat(&list, flow->arena);
	return refuse_header(flow, env, &fault, &data);
}

/* Sluice-Timeout only lowers the tenant's deadline. */
static bool take_timeout(struct flow *flow)
{
	struct slice text = header(flow, HTTP_TIMEOUT);
	uint64_t ms;

	if (slice_absent(text))
		return true;
	if (!slice_to_u64(slice_trim(text), &ms) || ms == 0)
		return false;
	if (ms < (flow->deadline - flow->started) / MSEC)
		flow->deadline = flow->started + ms * MSEC;
	return true;
}

/* Visible ASCII, and not too much of it; none is as good. */
static bool good_key(struct slice key)
{
	enum { KEY_MAX = 128 };

	if (slice_absent(key))
		return true;
	for (size_t i = 0; i < key.len; i++)
		if (key.at[i] < '!' || key.at[i] > '~')
			return false;
	return key.len != 0 && key.len <= KEY_MAX;
}

enum flow_move flow_headers(struct flow *flow, const struct flow_env *env)
{
	struct slice name = header(flow, HTTP_PROTOCOL_VERSION);

	flow->revision = REVISION_2025_11_25;
	if (!slice_absent(name) && !revision_find(slice_trim(name), &flow->revision))
		return refuse_revision(flow, env);
	if (slice_eq(flow->in->method, SLICE("DELETE")))
		return flow_end_session(flow, env);
	if (!good_key(header(flow, HTTP_IDEMPOTENCY_KEY)))
		return refuse_header_err(flow, env, ERR_IDEMPOTENCY_KEY);
	flow->deadline = flow->started + flow->plan->limits.deadline;
	if (!take_timeout(flow))
		return refuse_header_err(flow, env, ERR_TIMEOUT_HEADER);
	return FLOW_NEXT;
}

/* The caller is told meanwhile, and may therefore wait for longer. */
static enum flow_move begin_progress(struct flow *flow)
{
	const struct slice token = flow->made->request.progress_token;
	const struct fault too_long = {
		.err = ERR_FIELD,
		.offset = FAULT_NO_OFFSET,
		.detail = "params._meta.progressToken is longer than 1,024 bytes",
	};

	_Static_assert(PROGRESS_TOKEN_MAX == 1024, "what the detail says");
	if (token.len > PROGRESS_TOKEN_MAX)
		return flow_refuse(flow, &too_long, NULL);
	if (!flow_progress_want(&flow->progress, token, flow->arena))
		return flow_refuse_err(flow, ERR_BUSY);
	flow->deadline = flow->started + flow->plan->limits.deadline_progress;
	must(take_timeout(flow)); /* it was good before */
	return FLOW_NEXT;
}

static bool has_answer(enum rpc_method method)
{
	return method == RPC_CREATE_MESSAGE || method == RPC_INITIALIZE || method == RPC_PING ||
	       method == RPC_UNKNOWN;
}

/* DESIGN 4.3: an event stream for whom there is something to tell, else JSON. */
static enum flow_move choose_form(struct flow *flow)
{
	static const struct fault stream_only = {
		.err = ERR_NOT_ACCEPTABLE,
		.offset = FAULT_NO_OFFSET,
		.detail = "Accept allows text/event-stream alone, which answers a "
			  "sampling/createMessage with "
			  "params._meta.progressToken; add application/json",
	};

	if (flow->takes_stream && flow->rpc.method == RPC_CREATE_MESSAGE &&
	    !slice_absent(flow->made->request.progress_token))
		return begin_progress(flow);
	if (!flow->takes_json && has_answer(flow->rpc.method))
		return flow_refuse(flow, &stream_only, NULL);
	return FLOW_NEXT;
}

enum flow_move flow_decode(struct flow *flow, const struct flow_env *env)
{
	struct fault fault = { .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	flow->made = arena_take(flow->arena, sizeof(*flow->made));
	if (flow->made == NULL)
		return flow_refuse_err(flow, ERR_BUSY);
	flow->made->request = (struct sampling_request){ .max_tokens = 0 }; /* of other methods */
	enum err err =
		sampling_read(flow->in->body, flow->revision, &sampling_limits_default, env->json,
			      flow->arena, &flow->rpc, &flow->made->request, &fault);

	flow->rpc_known = true;
	if (err == ERR_OK)
		return choose_form(flow);
	fault.err = err;
	return flow_refuse(flow, &fault, NULL);
}
