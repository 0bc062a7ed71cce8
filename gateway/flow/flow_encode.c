/* flow_encode.c - the provider's request. */
#include "codec/set.h"
#include "gateway/flow/flow_schema.h"
#include "gateway/flow/flow_steps.h"

#include "gateway/providers/provider_head.h"
#include "gateway/telemetry/trace_context.h"

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

static struct slice raw_head_of(const struct flow *flow, const struct provider *provider,
				struct provider_call call)
{
	const struct endpoint *endpoint = &provider->endpoints[flow->walk.endpoint];

	if (!slice_absent(flow->ask->raw->version))
		call.version = flow->ask->raw->version;
	return flow_raw_head(flow,
			     flow->ask->raw->counts && flow->made->profile.count_tokens
				     ? provider_count_head(provider, endpoint, &call, flow->arena)
				     : provider_head(provider, endpoint, &call, flow->arena));
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
	if (flow->attempt.raw)
		return raw_head_of(flow, provider, call);
	return provider_head(provider, &provider->endpoints[flow->walk.endpoint], &call,
			     flow->arena);
}

/* In the core's own words. */
static inline __attribute__((always_inline)) enum err encode(struct flow *flow,
							     const struct flow_env *env,
							     const struct provider *provider,
							     const struct model *model,
							     struct fault *fault)
{
	struct encode_in in = {
		.request = flow_schema_request(flow),
		.profile = &flow->made->profile,
		.model = model->name,
		.max_tokens = flow->walk.verdict.max_tokens,
		.final_round = flow->walk.verdict.final_round,
		.stream = flow->attempt.wants_stream,
		.provider = provider->name,
	};

	flow_loop_replay(flow, &in);
	const enum err err = dialect_encode(flow->walk.dialect, &in, env->json, flow->arena,
					    &flow->made->encoded, fault);
	return err == ERR_OK && flow->made->encoded.decode.schema_wanted
		       ? flow_schema_begin(flow, env->json, fault)
		       : err;
}

/* Nothing of ours is applied to what the front has written: neither what was learned, nor another form than was asked
 * for. */
static void begin_raw(struct flow *flow, const struct model *model)
{
	flow->made->profile = model->profile;
	flow->attempt.wants_stream = flow->ask->relay == SAMPLING_DELTAS;
	if (!flow->attempt.wants_stream) /* nothing of an answer comes before it is whole */
		flow->call.timeouts.first_byte = flow->call.timeouts.total;
}

/* In the caller's own words where the provider speaks its format, else in the core's. */
static __attribute__((noinline)) enum err encode_raw(struct flow *flow, const struct flow_env *env,
						     const struct provider *provider,
						     const struct model *model, struct fault *fault)
{
	/* A count is never made into a sampling: where the format has none, it is not sent (flow_count.c). */
	flow->attempt.raw = flow->ask->raw->dialect == provider->dialect || flow->ask->raw->counts;
	if (flow->attempt.raw) {
		begin_raw(flow, model);
		return flow_raw_encode(flow, provider, model);
	}
	const enum err err = flow_raw_cross(flow, fault);
	return err == ERR_OK ? encode(flow, env, provider, model, fault) : err;
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
	struct fault fault = { .err = ERR_OK, .offset = FAULT_NO_OFFSET };
	enum err err = flow->ask->raw == NULL ? encode(flow, env, provider, model, &fault)
					      : encode_raw(flow, env, provider, model, &fault);
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
