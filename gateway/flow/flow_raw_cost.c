/* flow_raw_cost.c - what a request costs that the front has in a provider's own format: callers may ask there for what the
 * gateway never asks for by itself. */
#include "gateway/flow/flow_steps.h"

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Uses that nobody has a price for are none: such a model was not taken (sampling_raw.suits). */
static uint64_t with_uses(const struct flow *flow, uint64_t usd, uint64_t uses)
{
	const uint64_t each = flow->made->use_price;

	return each == CATALOG_NO_PRICE ? usd : quota_add_each(usd, uses, each);
}

/* A model takes no more input than its window, whatever that is made of. 0: the window is not known. */
static uint64_t window_of(const struct flow *flow, const struct flow_env *env)
{
	const int32_t model = catalog_find(&env->config->catalog, flow->walk.model_id);

	return model < 0 ? 0 : env->config->catalog.models[model].context;
}

/* The most tokens of its prompt. `window`: 0 where it does not matter. */
static uint64_t prompt_most(const struct flow *flow, uint64_t window)
{
	const struct sampling_raw *raw = flow->ask->raw;
	const struct encode_out *encoded = &flow->made->encoded;
	const uint64_t bytes = encoded->body.total - encoded->body.images;
	const uint64_t prompt = quota_prompt_bound(
		window != 0 && raw->media_bytes != 0 ? least(bytes, window) : bytes,
		encoded->images);

	return raw->fetches ? most(prompt, window) : prompt;
}

void flow_raw_bound(const struct flow *flow, const struct flow_env *env, struct limit_ask *ask)
{
	const struct sampling_raw *raw = flow->ask->raw;
	const uint64_t tokens = flow->made->encoded.max_tokens;
	const uint64_t window = raw->media_bytes != 0 || raw->fetches ? window_of(flow, env) : 0;
	struct price price = flow->made->price;

	if (window != 0 && raw->media_bytes != 0)
		ask->tokens = least(ask->tokens, window + tokens);
	if (raw->cached_1h) /* no input costs more */
		price.cache_write = most(price.cache_write, price.cache_write_1h);
	if (raw->cost != NULL)
		quota_price_times(&price, raw->most.factor);
	ask->usd = quota_usd_bound_of(prompt_most(flow, window), (uint32_t)tokens, &price);
	if (raw->cost != NULL)
		ask->usd = with_uses(flow, ask->usd, raw->most.uses);
}

/* The provider's whole answer; NULL: it came as a stream, or there is none. */
static const struct provider_answer *whole_answer(const struct flow *flow)
{
	return flow->reading.form == FLOW_WHOLE && flow->call.answer.status / 100 == 2
		       ? &flow->call.answer
		       : NULL;
}

uint64_t flow_raw_cost(const struct flow *flow, const struct usage *usage)
{
	struct sampling_raw *raw = flow->ask->raw;
	struct price price = flow->made->price;

	if (raw->cost == NULL)
		return quota_usd_used(usage, &price);
	const struct sampling_extra cost = raw->cost(raw, whole_answer(flow));
	quota_price_times(&price, least(cost.factor, raw->most.factor));
	return with_uses(flow, quota_usd_used(usage, &price), least(cost.uses, raw->most.uses));
}
