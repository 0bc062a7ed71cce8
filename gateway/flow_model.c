/* flow_model.c - from a decoded request to the provider and back (DESIGN 5). */
#include "gateway/flow_steps.h"

#include "codec/base/must.h"
#include "gateway/provider_head.h"
#include "tenants/policy.h"

enum { IMAGE_TOKENS = 1600, BYTES_PER_TOKEN = 4 };

enum flow_move flow_policy(struct flow *flow, const struct flow_env *env)
{
	struct verdict verdict = policy_check(flow->principal->tenant, flow->plan, &flow->request);
	struct rpc_error_data data = rpc_error_data_none;
	const struct fault fault = { .err = verdict.err,
				     .offset = FAULT_NO_OFFSET,
				     .detail = verdict.detail };

	(void)env;
	flow->judged = true;
	if (verdict.err != ERR_OK) {
		data.rule = verdict.rule;
		return flow_refuse(flow, &fault, &data);
	}
	flow->verdict = (struct verdict_copy){ verdict.max_tokens, verdict.final_round };
	flow->adjustments = flow->request.adjustments | verdict.adjustments;
	enum err err = policy_apply(flow->plan, flow->arena, &flow->request);
	return err == ERR_OK ? FLOW_NEXT : flow_refuse_err(flow, err);
}

static size_t media_bytes(const struct block *blocks, uint32_t count, uint32_t *images)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (blocks[i].type == BLOCK_IMAGE || blocks[i].type == BLOCK_AUDIO)
			bytes += blocks[i].media.data.len;
		*images += blocks[i].type == BLOCK_IMAGE;
	}
	return bytes;
}

/* Before anything is translated the caller's body stands for the provider's. */
static uint64_t estimate_input(const struct flow *flow)
{
	uint32_t images = 0;
	size_t media = media_bytes(flow->request.blocks, flow->request.block_count, &images) +
		       media_bytes(flow->request.inner, flow->request.inner_count, &images);
	size_t body = flow->in.body.len > media ? flow->in.body.len - media : 0;

	return body / BYTES_PER_TOKEN + (uint64_t)images * IMAGE_TOKENS;
}

/* Every permitted candidate and why it was refused; others' models are not the tenant's business. */
static enum flow_move refuse_route(struct flow *flow, const struct flow_env *env,
				   const struct route_query *query, enum err err)
{
	const struct catalog *catalog = &env->config->catalog;
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };
	struct rpc_error_data data = rpc_error_data_none;
	struct route_candidate *trace = arena_take(flow->arena, catalog->count * sizeof(*trace));
	struct gather list;
	bool first = true;

	if (trace == NULL)
		return flow_refuse_err(flow, ERR_BUSY);
	(void)route_pick(catalog, query, trace);
	gather_init(&list, flow->arena);
	gather_lit(&list, "\"candidates\":[");
	for (uint32_t i = 0; i < catalog->count; i++) {
		if (trace[i].reason == ROUTE_NOT_PERMITTED)
			continue;
		gather_raw(&list, first ? SLICE("{\"model\":") : SLICE(",{\"model\":"));
		gather_plain(&list, catalog->models[i].id);
		gather_lit(&list, ",\"reason\":\"");
		gather_raw(&list, slice_str(route_reason_name(trace[i].reason)));
		gather_lit(&list, "\"}");
		first = false;
	}
	gather_lit(&list, "]");
	if (gather_done(&list) == ERR_OK)
		data.extra = gather_flat(&list, flow->arena);
	return flow_refuse(flow, &fault, &data);
}

/* What later steps need of the snapshot, which is not theirs any more once the request waits. */
static bool copy_choice(struct flow *flow, const struct config *config, const struct model *model)
{
	const struct provider *provider = &config->providers[model->provider];

	flow->model_id = arena_copy(flow->arena, model->id);
	flow->provider_name = arena_copy(flow->arena, provider->name);
	flow->endpoint_url = arena_copy(flow->arena, provider->endpoints[flow->endpoint].url);
	flow->price = (struct price){ model->price_input, model->price_output,
				      model->price_cache_read, model->price_cache_write };
	flow->dialect = dialect_get(provider->dialect);
	flow->call.timeouts = provider->timeouts;
	(void)memcpy(flow->config_digest, config->digest, sizeof(flow->config_digest));
	return !slice_absent(flow->model_id) && !slice_absent(flow->provider_name) &&
	       !slice_absent(flow->endpoint_url);
}

/* Media of the assistant's turns, and in tool results, becomes a line of text where a model does not
 * take it (providers.md 8.1): only what the user shows decides who can answer. */
static bool user_shows(const struct sampling_request *request, enum block_type type)
{
	for (uint32_t m = 0; m < request->message_count; m++) {
		const struct message *message = &request->messages[m];
		for (uint32_t i = 0; !message->assistant && i < message->count; i++)
			if (request->blocks[message->first + i].type == type)
				return true;
	}
	return false;
}

struct route_query flow_route_query(const struct flow *flow, const struct plan *plan)
{
	return (struct route_query){
		.prefer = &flow->request.prefer,
		.permitted = &plan->models,
		.default_model = plan->default_model,
		.aliases = plan->aliases,
		.alias_count = plan->alias_count,
		.image = flow->request.images != 0 && user_shows(&flow->request, BLOCK_IMAGE),
		.audio = flow->request.audios != 0 && user_shows(&flow->request, BLOCK_AUDIO),
		.input_tokens = estimate_input(flow),
		.max_tokens = flow->verdict.max_tokens,
	};
}

/* The next 64 bits of chance (splitmix64): the seed in the log line gives all of them again. */
static uint64_t flow_draw(struct flow *flow)
{
	uint64_t z = flow->seed + ++flow->draws * UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

/* Everybody is busy, cools or is down. */
static enum flow_move refuse_choice(struct flow *flow, enum err err, nsec_t wait)
{
	const struct fault fault = { .err = err, .offset = FAULT_NO_OFFSET };
	struct rpc_error_data data = rpc_error_data_none;

	data.retryable = err != ERR_PROVIDER_BILLING;
	if (data.retryable)
		data.retry_after_ms = (int64_t)((wait + MSEC - 1) / MSEC);
	return flow_refuse(flow, &fault, &data);
}

enum flow_move flow_route(struct flow *flow, const struct flow_env *env)
{
	struct route_query query = flow_route_query(flow, flow->plan);
	nsec_t wait;

	query.down = health_down(env->health, env->now);
	query.speeds = health_speeds(env->health);
	query.memory = health_hints(env->health);
	flow->route = route_pick(&env->config->catalog, &query, NULL);
	if (flow->route.err != ERR_OK)
		return refuse_route(flow, env, &query, flow->route.err);
	if (flow->route.hint >= 0) /* a copy: the log line may outlive the body */
		flow->hint = arena_copy(flow->arena, query.prefer->hints[flow->route.hint]);

	const struct model *model = &env->config->catalog.models[flow->route.model];
	enum err err = health_choose(env->health, flow->route.model, NULL, env->now,
				     flow_draw(flow), &flow->choice, &wait);
	if (err != ERR_OK)
		return refuse_choice(flow, err, wait);
	flow->provider = flow->choice.provider;
	flow->endpoint = flow->choice.endpoint;
	return copy_choice(flow, env->config, model) ? FLOW_NEXT : flow_refuse_err(flow, ERR_BUSY);
}

static struct slice chosen_key(const struct provider *provider, uint32_t key)
{
	return key == UINT32_MAX ? slice_of(NULL, 0) : provider->keys[key];
}

/* Head and body as one list for one write. */
static bool join(struct flow *flow)
{
	const struct gather *body = &flow->encoded.body;

	flow->send_count = body->count + 1;
	flow->send = arena_take(flow->arena, flow->send_count * sizeof(struct iovec));
	if (flow->send == NULL)
		return false;
	flow->send[0] = (struct iovec){ (void *)(uintptr_t)flow->head.at, flow->head.len };
	(void)memcpy(flow->send + 1, body->v, body->count * sizeof(struct iovec));
	return true;
}

enum flow_move flow_encode(struct flow *flow, const struct flow_env *env)
{
	const struct config *config = env->config;
	const struct provider *provider = &config->providers[flow->provider];
	const struct model *model = &config->catalog.models[flow->route.model];
	const struct encode_in in = {
		.request = &flow->request,
		.profile = &model->profile,
		.model = model->name,
		.max_tokens = flow->verdict.max_tokens,
		.final_round = flow->verdict.final_round,
	};
	struct fault fault = { .err = ERR_OK, .offset = FAULT_NO_OFFSET };

	enum err err =
		dialect_encode(flow->dialect, &in, env->json, flow->arena, &flow->encoded, &fault);
	if (err != ERR_OK) {
		fault.err = err;
		return flow_refuse(flow, &fault, NULL);
	}
	flow->adjustments |= flow->encoded.adjustments;
	flow->head = provider_head(provider, &provider->endpoints[flow->endpoint],
				   chosen_key(provider, flow->choice.key),
				   config->model_versions[flow->route.model],
				   flow->encoded.body.total, flow->arena);
	if (slice_absent(flow->head) || !join(flow))
		return flow_refuse_err(flow, ERR_BUSY);
	return FLOW_NEXT;
}

/* The tenant's own limits, those of its server, and those of the model. */
static void choose_scopes(struct flow *flow, struct reservation *reservation)
{
	const struct tenant *tenant = flow->principal->tenant;
	const struct plan *plan = flow->plan;
	struct limit_scope *scope = reservation->scopes;

	_Static_assert(RESERVATION_SCOPES_MAX >= 2 + PLAN_MODEL_LIMITS_MAX, "every scope fits");
	scope->holder = LIMIT_OF_TENANT;
	scope->limits = plan->limits;
	(void)memcpy(scope->key, tenant->limit_key, sizeof(scope->key));
	scope++;
	if (plan->server_limited && !slice_absent(flow->principal->server)) {
		uint8_t part[16];
		tenant_part(TENANT_PART_SERVER, flow->principal->server, part);
		tenant_part_key(tenant, part, scope->key);
		scope->holder = LIMIT_OF_SERVER;
		scope->limits = plan->server_limits;
		scope++;
	}
	for (uint32_t i = 0; i < plan->model_limit_count; i++) {
		const struct model_limits *models = &plan->model_limits[i];
		if (!bitset_has(&models->models, flow->route.model))
			continue;
		tenant_part_key(tenant, models->part, scope->key);
		scope->holder = LIMIT_OF_MODEL;
		scope->limits = models->limits;
		scope++;
	}
	reservation->scope_count = (uint32_t)(scope - reservation->scopes);
}

static void ask_limits(struct flow *flow, const struct flow_env *env)
{
	const struct encode_out *encoded = &flow->encoded;
	uint64_t bytes = encoded->body.total - encoded->body.media;
	struct reservation *reservation = &flow->reservation;

	*reservation = (struct reservation){
		.ask = {
			.requests = 1,
			.tokens = quota_token_estimate(bytes, encoded->images, encoded->max_tokens),
			.usd = quota_usd_bound(bytes, encoded->images, encoded->max_tokens,
					       &flow->price),
			.concurrent = 1,
		},
		.now = env->now,
		.wall_s = env->wall_ns / SEC,
	};
	choose_scopes(flow, reservation);
	flow->principal = NULL; /* the snapshot may go from here on */
	flow->plan = NULL;
}

/* Entered twice: to ask, and with the store's verdict. */
enum flow_move flow_reserve(struct flow *flow, const struct flow_env *env)
{
	const struct limit_refusal *refusal = &flow->reservation.refusal;

	if (flow->principal != NULL) {
		ask_limits(flow, env);
		return FLOW_DO_RESERVE;
	}
	if (flow->reservation.granted) {
		flow->reserved = true;
		return FLOW_NEXT;
	}
	struct rpc_error_data data = rpc_error_data_none;
	const struct fault fault = { .err = refusal->err, .offset = FAULT_NO_OFFSET };
	data.limit = refusal->limit;
	if (refusal->limit != NULL)
		data.scope = limit_holder_name(refusal->holder);
	if (refusal->err == ERR_RATE_LIMITED || refusal->err == ERR_CONCURRENCY)
		data.retry_after_ms = (int64_t)((refusal->wait_ns + MSEC - 1) / MSEC);
	return flow_refuse(flow, &fault, &data);
}

/* Entered twice: to start the attempt, and when it is over. */
enum flow_move flow_send(struct flow *flow, const struct flow_env *env)
{
	if (flow->called)
		return FLOW_NEXT;
	flow->called = true;
	health_began(&flow->choice, env->now);
	flow->call.request = flow->send;
	flow->call.request_count = flow->send_count;
	flow->call.deadline = flow->deadline;
	return FLOW_DO_SEND;
}

void flow_end_choice(struct flow *flow, const struct flow_env *env,
		     const struct provider_failure *failure)
{
	const struct upstream_call *call = &flow->call;

	if (flow->choice.at == NULL)
		return;
	struct health_outcome outcome = {
		.err = failure != NULL ? failure->err : flow->outcome,
		.blame = failure != NULL ? failure->blame : BLAME_REQUEST,
		.retry_after_ms = failure != NULL ? failure->retry_after_ms : -1,
		.status = call->answer.status,
		.patience = call->timeouts.first_byte,
		.answered = call->first_byte_at != 0,
		.output_tokens = flow->usage.output,
		.headers = &call->answer.headers,
		.wall_ns = env->wall_ns,
	};
	if (call->sent_at != 0)
		outcome.took = (call->done_at != 0 ? call->done_at : env->now) - call->sent_at;
	health_ended(&flow->choice, &outcome, env->now);
}

static enum flow_move refuse_failure(struct flow *flow, const struct provider_failure *failure)
{
	const struct fault fault = { .err = failure->err,
				     .offset = FAULT_NO_OFFSET,
				     .detail = failure->detail };
	struct rpc_error_data data = rpc_error_data_none;

	flow->usage = failure->usage;
	flow->usage.known = failure->usage_known;
	data.provider_status = failure->status;
	data.retryable = failure->retryable;
	data.retry_after_ms = failure->retry_after_ms;
	data.provider_request_id = failure->request_id;
	return flow_refuse(flow, &fault, &data);
}

/* The attempt brought no answer at all. */
static enum flow_move refuse_call(struct flow *flow)
{
	const struct fault fault = { .err = flow->call.err, .offset = FAULT_NO_OFFSET };
	struct rpc_error_data data = rpc_error_data_none;

	flow->detail = flow->call.detail;
	data.retryable = flow->call.err != ERR_DEADLINE;
	return flow_refuse(flow, &fault, &data);
}

enum flow_move flow_read(struct flow *flow, const struct flow_env *env)
{
	struct provider_failure failure = { .err = ERR_OK, .retry_after_ms = -1 };

	if (flow->call.err != ERR_OK)
		return refuse_call(flow);
	flow->call.answer.wall_s = env->wall_ns / SEC;
	(void)memcpy(flow->call.answer.chance, flow->chance, sizeof(flow->call.answer.chance));
	enum err err = dialect_decode(flow->dialect, &flow->encoded.decode, &flow->call.answer,
				      env->json, flow->arena, &flow->result, &failure);
	if (err != ERR_OK) {
		failure.err = err;
		flow_end_choice(flow, env, &failure);
		return refuse_failure(flow, &failure);
	}
	flow->usage = flow->result.usage;
	flow->adjustments |= flow->result.adjustments;
	flow->result.adjustments = flow->adjustments;
	return FLOW_NEXT;
}
