/* flow_encode.c - whether a request may pass, what routing is asked, and the provider's request. */
#include "codec/set.h"
#include "gateway/flow/flow_schema.h"
#include "gateway/flow/flow_steps.h"

#include "gateway/providers/provider_head.h"
#include "gateway/telemetry/trace_context.h"

enum { IMAGE_TOKENS = 1600, BYTES_PER_TOKEN = 4 };

enum flow_move flow_refuse_verdict(struct flow *flow, const struct verdict *verdict)
{
	struct error_data data = error_data_none;
	const struct fault fault = { .err = verdict->err,
				     .offset = FAULT_NO_OFFSET,
				     .detail = verdict->detail };

	data.rule = verdict->rule;
	return flow_refuse(flow, &fault, &data);
}

enum flow_move flow_policy(struct flow *flow, const struct flow_env *env)
{
	struct verdict verdict =
		policy_check(flow->caller.account, flow->caller.plan, flow->ask->request);

	(void)env;
	flow->walk.judged = true;
	flow->walk.asked_system = flow->ask->request->system;
	if (verdict.err != ERR_OK)
		return flow_refuse_verdict(flow, &verdict);
	const enum flow_move loop = flow_loop_check(flow);
	if (loop != FLOW_NEXT)
		return loop;
	flow->walk.verdict = (struct verdict_copy){ verdict.max_tokens, verdict.final_round };
	flow->totals.asked_adjustments = flow->ask->request->adjustments | verdict.adjustments;
	enum err err = policy_apply(flow->caller.plan, flow->arena, flow->ask->request);
	return err == ERR_OK ? FLOW_NEXT : flow_refuse_err(flow, err);
}

struct verdict flow_policy_again(struct flow *flow)
{
	flow->ask->request->system = flow->walk.asked_system;
	struct verdict verdict =
		policy_check(flow->caller.account, flow->caller.plan, flow->ask->request);

	if (verdict.err != ERR_OK)
		return verdict;
	flow->walk.verdict.max_tokens = verdict.max_tokens;
	flow->totals.asked_adjustments |= verdict.adjustments;
	verdict.err = policy_apply(flow->caller.plan, flow->arena, flow->ask->request);
	return verdict;
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

/* Before anything is translated the caller's body stands for the provider's. Audio has far fewer tokens than bytes: a model
 * is not ruled out by them. */
uint64_t flow_estimate_input(const struct sampling_request *request, size_t body_bytes)
{
	uint32_t images = 0;
	size_t media = media_bytes(request->blocks, request->block_count, &images) +
		       media_bytes(request->inner, request->inner_count, &images);
	size_t body = body_bytes > media ? body_bytes - media : 0;

	return body / BYTES_PER_TOKEN + (uint64_t)images * IMAGE_TOKENS;
}

struct route_query flow_route_query(const struct flow *flow, const struct plan *plan)
{
	uint32_t message;

	return (struct route_query){
		.prefer = &flow->ask->request->prefer,
		.permitted = &plan->models,
		.default_model = plan->default_model,
		.aliases = plan->aliases,
		.alias_count = plan->alias_count,
		.image = flow->ask->request->images != 0 &&
			 flow_shown(flow->ask->request, BLOCK_IMAGE, &message) != NULL,
		.audio = flow->ask->request->audios != 0 &&
			 flow_shown(flow->ask->request, BLOCK_AUDIO, &message) != NULL,
		.tools = flow->ask->request->tool_count,
		.input_tokens = flow_estimate_input(flow->ask->request, flow->ask->body.len),
		.max_tokens = flow->walk.verdict.max_tokens,
	};
}

/* Head and body as one list for one write. */
static bool join(struct flow *flow)
{
	const struct gather *body = &flow->made->encoded.body;

	flow->attempt.send_count = body->count + 1;
	flow->attempt.send =
		arena_take(flow->arena, flow->attempt.send_count * sizeof(struct iovec));
	if (flow->attempt.send == NULL)
		return false;
	flow->attempt.send[0] =
		(struct iovec){ (void *)(uintptr_t)flow->attempt.head.at, flow->attempt.head.len };
	(void)memcpy(flow->attempt.send + 1, body->v, body->count * sizeof(struct iovec));
	return true;
}

static struct slice chosen_key(const struct provider *provider, uint32_t key)
{
	return key == UINT32_MAX ? slice_of(NULL, 0) : provider->keys[key];
}

static struct slice head_of(const struct flow *flow, const struct config *config,
			    const struct provider *provider)
{
	char traceparent[TRACEPARENT_LEN + 1];
	const struct provider_call call = {
		.key = chosen_key(provider, flow->walk.choice.key),
		.version = config->model_versions[flow->made->route.model],
		.traceparent = slice_of(
			traceparent, flow->ask->ids->traceparent[0] == '\0' ? 0 : TRACEPARENT_LEN),
		.body_bytes = flow->made->encoded.body.total,
	};

	trace_context_continue(flow->ask->ids->traceparent, flow->ask->ids->request_id,
			       traceparent);
	return provider_head(provider, &provider->endpoints[flow->walk.endpoint], &call,
			     flow->arena);
}

/* The front has the request in the provider's own format: that is sent. False: no memory. */
static bool write_raw(struct flow *flow, const struct model *model)
{
	struct sampling_raw *raw = flow->ask->raw;
	struct gather *body = &flow->made->encoded.body;
	const struct sampling_target target = {
		.model = model->name,
		.max_tokens = flow->made->encoded.max_tokens,
		.stream = flow->attempt.wants_stream,
	};

	gather_init(body, flow->arena);
	return raw->write(raw, &target, flow->arena, body) && gather_done(body) == ERR_OK;
}

enum flow_move flow_encode(struct flow *flow, const struct flow_env *env)
{
	const struct config *config = env->config;
	const struct provider *provider = &config->providers[flow->walk.provider];
	const struct model *model = &config->catalog.models[flow->made->route.model];

	flow->made->profile = model->profile;
	learn_set lessons = health_learned(env->health, flow->made->route.model,
					   flow->ask->caller->limit_key, env->now);
	if (slice_eq(flow->retries.lessons_of, model->id))
		lessons |= flow->retries.lessons;
	profile_learn_all(&flow->made->profile, lessons);
	flow->attempt.wants_stream = flow_stream_wanted(flow);
	if (flow->ask->raw != NULL) {
		flow->attempt.raw = flow->ask->raw->dialect == provider->dialect;
		if (flow->attempt.raw)
			flow->attempt.wants_stream =
				flow->ask->relay == SAMPLING_DELTAS && !flow->attempt.in_one_piece;
	}
	struct encode_in in = {
		.request = flow_schema_request(flow),
		.profile = &flow->made->profile,
		.model = model->name,
		.max_tokens = flow->walk.verdict.max_tokens,
		.final_round = flow->walk.verdict.final_round,
		.stream = flow->attempt.wants_stream,
		.provider = provider->name,
	};
	struct fault fault = { .err = ERR_OK, .offset = FAULT_NO_OFFSET };

	flow_loop_replay(flow, &in);
	enum err err = dialect_encode(flow->walk.dialect, &in, env->json, flow->arena,
				      &flow->made->encoded, &fault);
	if (err == ERR_OK && flow->made->encoded.decode.schema_wanted && !flow->attempt.raw)
		err = flow_schema_begin(flow, env->json, &fault);
	if (err == ERR_OK && flow->attempt.raw && !write_raw(flow, model))
		err = ERR_BUSY;
	if (err == ERR_OK) {
		gather_trim(&flow->made->encoded.body);
		flow->totals.adjustments =
			flow->totals.asked_adjustments | flow->made->encoded.adjustments;
		flow->attempt.head = head_of(flow, config, provider);
		if (!slice_absent(flow->attempt.head) && join(flow) && flow_make_scopes(flow))
			return FLOW_NEXT;
		err = ERR_BUSY;
	}
	if (flow->retries.attempts != 0)
		return flow_give_up(flow);
	fault.err = err;
	return flow_refuse(flow, &fault, NULL);
}
