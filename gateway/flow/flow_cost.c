/* flow_cost.c - what an attempt is charged: by the provider's count, or, where that never came, by what was seen of the
 * answer (DESIGN 5, Limits). */
#include "gateway/flow/flow_steps.h"

#include "routing/speed.h"

/* ---- the provider's count ---- */

static uint64_t reserved_tokens(const struct flow *flow)
{
	return flow->reservation.ask.tokens +
	       (flow->state == NULL ? 0 : flow->state->ahead.tokens_short);
}

static uint64_t reserved_usd(const struct flow *flow)
{
	return flow->reservation.ask.usd + (flow->state == NULL ? 0 : flow->state->ahead.usd_short);
}

static bool is_credible(const struct flow *flow, const struct flow_env *env,
			const struct usage *usage)
{
	const uint64_t most = usage->input > usage->output ? usage->input : usage->output;
	const uint64_t estimate = reserved_tokens(flow);

	if (quota_is_credible(most, estimate, 0))
		return true; /* all there is, as a rule: the snapshot is not needed for it */
	const struct catalog *catalog = &env->config->catalog;
	const int32_t model = catalog_find(catalog, flow->walk.model_id);
	return quota_is_credible(most, estimate, model < 0 ? 0 : catalog->models[model].context);
}

/* A count that cannot be true is as good as none: it would bar a tenant from its limits for months, and teach
 * a speed that there is not. The line of the log says so. */
void flow_judge_usage(struct flow *flow, const struct flow_env *env)
{
	struct usage *usage = &flow->attempt.usage;

	/* whole answers whose stream was given up before it was over */
	if (!usage->known && flow->reading.form != FLOW_WHOLE && flow->reading.stream->complete)
		*usage = flow->reading.stream->answer.usage;
	if (!usage->known || is_credible(flow, env, usage))
		return;
	*usage = (struct usage){ .known = false };
	flow->end.detail =
		"the provider's count of tokens cannot be true: charged as if it had sent none";
}

/* ---- what was seen ---- */

/* Tokens that the model writes in the time since the request was sent. */
static uint64_t written_since(const struct flow *flow, const struct flow_env *env)
{
	const struct upstream_call *call = &flow->call;
	const nsec_t until = call->done_at != 0 ? call->done_at : env->now;
	const int32_t model = catalog_find(&env->config->catalog, flow->walk.model_id);

	if (call->sent_at == 0 || until <= call->sent_at)
		return 0;
	const double ms = (double)(until - call->sent_at) / (double)MSEC;
	return (uint64_t)(ms /
			  speed_token_ms(model < 0 ? NULL : &health_speeds(env->health)[model]));
}

/* False: nothing. `usage` is what the provider had counted so far, known or not. */
static bool look(const struct flow *flow, const struct flow_env *env, struct quota_seen *seen,
		 struct usage *usage)
{
	const bool tools = flow->ask->request->tool_count != 0;
	bool hidden = profile_thinks(&flow->made->profile, tools);

	*seen = (struct quota_seen){ .bytes = flow->call.seen };
	*usage = (struct usage){ .known = false };
	if (flow->reading.form != FLOW_WHOLE) {
		const struct stream *s = flow->reading.stream;
		seen->bytes = s->progress.output_bytes;
		seen->deltas = s->progress.deltas;
		if (s->answer.usage.known && is_credible(flow, env, &s->answer.usage))
			*usage = s->answer.usage;
		seen->counted = usage->output;
		/* it has begun, and shows nothing of what it does */
		hidden |= s->progress.event_seen && seen->deltas == 0 && !usage->known;
		/* asked for by the caller, whatever the profile says */
		hidden |= flow->attempt.raw && s->progress.thinks;
	}
	if (hidden)
		seen->timed = written_since(flow, env);
	return seen->bytes != 0 || seen->deltas != 0 || usage->known ||
	       (flow->reading.form != FLOW_WHOLE && flow->reading.stream->progress.event_seen);
}

static uint64_t usd_used(const struct flow *flow, const struct usage *usage)
{
	return flow->attempt.raw ? flow_raw_cost(flow, usage)
				 : quota_usd_used(usage, &flow->made->price);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The reservation is the most, and all where nothing was seen: nobody knows what the provider bills. */
static void estimate(struct flow *flow, const struct flow_env *env)
{
	const struct encode_out *encoded = &flow->made->encoded;
	struct quota_seen seen;
	struct usage usage;

	flow->charge.without_usage = true;
	flow->charge.tokens = reserved_tokens(flow);
	flow->charge.usd = reserved_usd(flow);
	if (!look(flow, env, &seen, &usage))
		return;
	if (usage.input == 0) /* not said, as good as */
		usage = (struct usage){ .input = quota_token_estimate(encoded->body.total -
									      encoded->body.images,
								      encoded->images, 0) };
	usage.output = quota_output_seen(&seen, encoded->max_tokens);
	flow->charge.tokens = least(flow->charge.tokens, usage.input + usage.output);
	flow->charge.usd = least(flow->charge.usd, usd_used(flow, &usage));
}

/* ---- the charge ---- */

/* The provider answered with an error: by its status (even where MCP calls it a result, a refusal), or
 * as an error object in a 200 body. A stream that broke off has a status, too; one that ends in an error
 * after some output has answered. */
static bool provider_refused(const struct flow *flow)
{
	uint16_t status = flow->call.answer.status; /* 0: nothing came */

	if (flow->call.err != ERR_OK || flow->reading.first_output_at != 0)
		return false;
	switch (flow->attempt.failure.why.err) {
	case ERR_OK:
		return status >= 400 || (flow->end.result != NULL && flow->end.result->unanswered);
	case ERR_PROVIDER_RATE:
	case ERR_PROVIDER_DOWN:
	case ERR_PROVIDER_OPERATOR:
	case ERR_PROVIDER_BILLING:
	case ERR_PROVIDER_REJECTED:
	case ERR_CONTEXT_WINDOW:
		return status != 0;
	default:
		return status >= 400;
	}
}

/* Nothing is charged where no request byte was written, or the provider answered an error without usage. */
void flow_price(struct flow *flow, const struct flow_env *env)
{
	const struct usage *usage = &flow->attempt.usage;

	flow->charge.without_usage = false;
	flow->charge.tokens = flow->charge.usd = 0;
	if (usage->known) {
		flow->charge.tokens = usage->input + usage->output;
		flow->charge.usd = usd_used(flow, usage);
	} else if (flow->attempt.called && flow->call.bytes_sent && !provider_refused(flow)) {
		estimate(flow, env);
	}
}
