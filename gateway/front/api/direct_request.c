/* direct_request.c - from HTTP to what is asked of the core, and the provider's request. */
#include "gateway/front/api/direct.h"

#include "codec/api/api_edit.h"
#include "codec/api/api_view.h"
#include "codec/set.h"
#include "gateway/front/front_caller.h"
#include "tenants/auth.h"

static const struct slice absent = { NULL, 0 };

void direct_init(struct direct_call *call, const struct http_incoming *in, uint64_t came_wall_ns)
{
	call->kind = NULL;
	call->front.front = NULL;
	call->call = NULL;
	call->magic = DIRECT_MAGIC;
	call->kept = false;
	call->wrote = ERR_OK;
	call->detail = NULL;
	call->allow = SLICE("POST");
	call->named = absent;
	call->in = in;
	call->asked = NULL;
	call->stream = NULL;
	call->answer.status = 0;
	call->agent = (struct log_agent){ .retry = absent };
	call->ask = (struct sampling_ask){ .ids = &call->ids,
					   .arena = &call->arena,
					   .body = in->body,
					   .at = SLICE(""),
					   .started = in->came_at,
					   .deadline = NSEC_NEVER,
					   .started_wall_ns = came_wall_ns };
}

/* ---- the head ---- */

static bool read_http(struct direct_call *call, const struct front_host *host)
{
	const struct http_incoming *in = call->in;

	if (host->leaving)
		return direct_refuse_err(call, ERR_DRAINING);
	if (!slice_eq(in->method, SLICE("POST")))
		return direct_refuse_err(call, ERR_HTTP_METHOD);
	if (!front_origin_allowed(host->config, in->headers[HTTP_ORIGIN]))
		return direct_refuse_err(call, ERR_ORIGIN);
	if (in->no_room)
		return direct_refuse_err(call, ERR_BUSY);
	if (in->body_too_large)
		return direct_refuse_err(call, ERR_BODY_TOO_LARGE);
	if (!front_is_json(in->headers[HTTP_CONTENT_TYPE]) ||
	    front_is_coded(in->headers[HTTP_CONTENT_ENCODING]))
		return direct_refuse_err(call, ERR_MEDIA_TYPE);
	return true;
}

/* Bearer or x-api-key: SDKs send either, and two that differ are a mistake. False: they do. */
static bool read_key(struct direct_call *call)
{
	const struct slice authorization = call->in->headers[HTTP_AUTHORIZATION];
	const struct slice key = http_find_header(call->in, SLICE("x-api-key"));
	const struct slice bearer =
		slice_absent(authorization) ? absent : auth_credentials(authorization);

	call->shown = (struct credentials){
		.shown = !slice_absent(authorization) || !slice_absent(key),
		.secret = slice_absent(authorization) ? key : bearer,
		.names = call->in->names,
		.wrongs = call->in->wrongs,
	};
	return slice_absent(authorization) || slice_absent(key) || slice_eq(bearer, key);
}

static bool find_caller(struct direct_call *call, const struct front_host *host)
{
	static const struct fault differ = { .err = ERR_UNAUTHORIZED,
					     .offset = FAULT_NO_OFFSET,
					     .detail = "Authorization and x-api-key differ" };
	const struct caller_sources sources = {
		.config = host->config,
		.tokens = host->tokens,
		.keys = host->keys,
		.json = host->json,
		.wall_s = call->ask.started_wall_ns / SEC,
	};
	struct caller_refusal why;

	if (!read_key(call))
		return direct_refuse(call, &differ, NULL);
	if (!caller_find(&sources, &call->shown, &call->arena, &call->caller, &why)) {
		const struct fault fault = { .err = why.err,
					     .offset = FAULT_NO_OFFSET,
					     .detail = why.token == JWT_OK
							       ? NULL
							       : jwt_fault_text(why.token) };
		return direct_refuse(call, &fault, NULL);
	}
	call->ask.credentials = &call->shown;
	call->ask.caller = &call->caller;
	return true;
}

bool direct_find_caller(struct direct_call *call, const struct front_host *host)
{
	return find_caller(call, host) &&
	       (front_is_open(host, call->in, call->caller.plan, FRONT_DIRECT) ||
		direct_refuse_err(call, ERR_FRONT_FORBIDDEN));
}

bool direct_read_head(struct direct_call *call, const struct front_host *host)
{
	if (!read_http(call, host) || !direct_find_caller(call, host))
		return false;
	return direct_set_deadline(call);
}

/* ---- the provider's request ---- */

static bool is_openai(struct slice host)
{
	return slice_eq_nocase(host, SLICE("api.openai.com"));
}

/* For what a provider says of its own: what it must not tell. False: no memory. */
static bool keep_secrets(struct direct_asked *asked, const struct sampling_target *target,
			 struct arena *into)
{
	asked->secrets[0] = arena_copy(into, target->host);
	asked->secrets[1] = slice_absent(target->key) ? absent : arena_copy(into, target->key);
	return !slice_absent(asked->secrets[0]) &&
	       (slice_absent(target->key) || !slice_absent(asked->secrets[1]));
}

static bool write_raw(struct sampling_raw *raw, const struct sampling_target *target,
		      struct arena *into, struct gather *body)
{
	struct direct_asked *asked = direct_of_raw(raw);
	const struct profile *profile = target->profile;
	const bool counts = asked->raw.counts; /* which knows no bound, and no other member */
	const struct api_changes changes = {
		.model = target->model,
		.tokens_max = counts ? 0 : target->max_tokens,
		.completion_tokens = profile->max_tokens_field == MAX_TOKENS_FIELD_COMPLETION,
		.usage = profile->stream_usage,
		.store_never = is_openai(target->host),
		.calls_never = target->final_round,
		.user_dropped = asked->user_dropped,
		.system_rule = asked->system_rule == SYSTEM_PREFIXED ? API_SYSTEM_PREFIXED
			       : asked->system_rule == SYSTEM_FIXED  ? API_SYSTEM_FIXED
								     : API_SYSTEM_AS_SENT,
		.system = asked->system,
		.body = counts ? SLICE("") : profile->body,
	};
	struct api_changed changed;
	struct mcp_edits edits;

	if (asked->call->stream != NULL)
		direct_stream_restart(asked->call);
	mcp_edits_init(&edits, asked->request.body, into);
	if (api_edit_make(&edits, &asked->request, &changes, &changed) != ERR_OK ||
	    mcp_edits_write(&edits, body) != ERR_OK || !keep_secrets(asked, target, into))
		return false;
	asked->adjustments = changed.adjustments;
	asked->store_disabled = changed.store_disabled;
	direct_forget_paid(asked);
	raw->output_most = api_output_most(&asked->request, changed.tokens);
	return true;
}

/* ---- the body ---- */

/* Headers that pass, as lines. False: no memory. */
static bool read_headers(struct direct_call *call)
{
	struct sampling_raw *raw = &call->asked->raw;
	struct http_field field;
	struct gather lines;
	size_t at = 0;

	raw->version = absent;
	gather_init(&lines, &call->arena);
	while (http_next_header(call->in, &at, &field)) {
		direct_note_header(call, &field);
		if (!api_header_passes(call->api, field.name))
			continue;
		if (slice_eq(field.name, SLICE("anthropic-version"))) {
			raw->version = field.value;
			continue;
		}
		gather_raw(&lines, field.name);
		gather_lit(&lines, ": ");
		gather_raw(&lines, field.value);
		gather_lit(&lines, "\r\n");
	}
	if (gather_done(&lines) != ERR_OK)
		return false;
	raw->begun_deadline = call->begun_deadline;
	raw->headers = lines.total == 0 ? absent : gather_flat(&lines, &call->arena);
	return lines.total == 0 || !slice_absent(raw->headers);
}

/* What the plan says that goes into the request; a copy, because the plan may go. False: no memory. */
static bool read_plan(struct direct_call *call)
{
	const struct policy *policy = &call->caller.plan->policy;
	struct direct_asked *asked = call->asked;

	asked->user_dropped = policy->user_id == METADATA_DROP;
	asked->system_rule = policy->system_rule;
	asked->system = absent;
	if (policy->system_rule == SYSTEM_AS_SENT)
		return true;
	asked->system = arena_copy(&call->arena, policy->system);
	return !slice_absent(asked->system);
}

static enum err judge(struct direct_call *call, struct arena *into, struct fault *fault)
{
	const struct api_request *request = &call->asked->request;
	enum err err = direct_grant(call, fault);

	if (err != ERR_OK)
		return err;
	if (call->asked->system_rule == SYSTEM_FIXED && request->system_later) {
		*fault =
			(struct fault){ .err = ERR_POLICY,
					.offset = FAULT_NO_OFFSET,
					.path = SLICE("messages"),
					.detail =
						"Policy permits no system message beside its own" };
		return ERR_POLICY;
	}
	return api_thinking_check(request, call->caller.plan->limits.max_tokens, "plan", into,
				  fault);
}

static enum err read_asked(struct direct_call *call, struct json_work *json, struct fault *fault)
{
	struct direct_asked *asked = call->asked = arena_take(&call->arena, sizeof(*asked));
	enum err err = ERR_BUSY;

	*fault = (struct fault){ .err = ERR_BUSY, .offset = FAULT_NO_OFFSET };
	if (asked == NULL)
		return err;
	*asked = (struct direct_asked){
		.call = call,
		.raw = { .dialect =
				 api_is_anthropic(call->api) ? DIALECT_ANTHROPIC : DIALECT_OPENAI,
			 .write = write_raw,
			 .cross = direct_cross_request },
	};
	err = api_request_read(call->api, call->in->body, json, &call->arena, &asked->request,
			       fault);
	if (err == ERR_OK && (!read_plan(call) || !read_headers(call)))
		err = ERR_BUSY;
	if (err == ERR_OK)
		err = judge(call, &call->arena, fault);
	if (err == ERR_OK)
		err = api_view_make(&asked->request, call->caller.plan->limits.max_tokens,
				    &call->arena, &asked->view);
	if (err == ERR_OK)
		err = direct_count_loops(call);
	asked->raw.image_bytes = asked->request.image_bytes;
	asked->raw.media_bytes = asked->request.document_bytes + asked->request.sound_bytes;
	asked->raw.cached_1h = asked->request.cached_1h;
	if (err == ERR_OK)
		err = direct_read_model(call, fault);
	asked->raw.only = asked->request.sealed; /* nobody else can read it */
	asked->tokens_max = call->caller.plan->limits.max_tokens;
	fault->err = err;
	return err;
}

bool direct_read_body(struct direct_call *call, const struct front_host *host)
{
	struct fault fault;

	if (read_asked(call, host->json, &fault) != ERR_OK)
		return direct_refuse(call, &fault, NULL);
	call->ask.request = &call->asked->view;
	call->ask.raw = &call->asked->raw;
	if (call->api == API_COUNT) { /* free, and nobody waits for a number as for an answer */
		call->asked->raw.counts = true;
		call->asked->raw.cost = NULL;
		call->ask.deadline = call->ask.started + call->caller.plan->limits.deadline;
		return true;
	}
	if (!call->asked->request.stream)
		return direct_read_once(call);
	call->ask.relay = SAMPLING_DELTAS;
	return direct_stream_init(call) || direct_refuse_err(call, ERR_BUSY);
}
