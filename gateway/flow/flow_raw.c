/* flow_raw.c - requests that the front has in a provider's own format (sampling_raw): whom they may go to, and what is
 * sent. */
#include "gateway/flow/flow_steps.h"

#include "routing/name.h"

/* ---- whom ---- */

static void find_named(const struct flow *flow, const struct config *config, struct bitset *out)
{
	const struct plan *plan = flow->caller.plan;
	char buffer[NAME_BYTES_MAX];
	const struct slice name = json_str_fit(flow->ask->raw->model, buffer, sizeof(buffer));

	name_match(&config->catalog, plan->aliases, plan->alias_count, name, out);
	bitset_and(out, &plan->models);
}

static void keep_format(const struct config *config, enum dialect_id dialect, struct bitset *models)
{
	struct bitset speak = { 0 };

	for (uint32_t i = 0; i < config->catalog.count; i++)
		if (config->providers[config->catalog.models[i].provider].dialect == dialect)
			bitset_add(&speak, i);
	bitset_and(models, &speak);
}

bool flow_raw_models(const struct flow *flow, const struct config *config, struct bitset *out)
{
	const struct sampling_raw *raw = flow->ask->raw;

	if (raw == NULL || (slice_absent(raw->model) && !raw->only))
		return false;
	if (slice_absent(raw->model))
		*out = flow->caller.plan->models;
	else
		find_named(flow, config, out);
	if (raw->only)
		keep_format(config, raw->dialect, out);
	return true;
}

/* ---- what ---- */

/* What the answer is read with. */
static bool begin_decode(struct flow *flow, const struct model *model)
{
	const struct sampling_request *request = flow->ask->request;
	const struct profile *profile = &flow->made->profile;
	struct slice *names = arena_take(flow->arena, (request->tool_count + 1) * sizeof(*names));
	const struct slice name = arena_copy(flow->arena, model->name);

	if (names == NULL || slice_absent(name))
		return false;
	for (uint32_t i = 0; i < request->tool_count; i++)
		names[i] = request->tools[i].name;
	flow->made->encoded = (struct encode_out){
		.max_tokens = flow->walk.verdict.max_tokens < profile->max_output
				      ? flow->walk.verdict.max_tokens
				      : profile->max_output,
		.images = request->images,
		.decode = { .revision = request->revision,
			    .tools_present = request->tools_present,
			    .think_tags = profile->think_tags,
			    .requested_model = name,
			    .tool_names = names,
			    .tool_count = request->tool_count },
	};
	return true;
}

enum err flow_raw_encode(struct flow *flow, const struct provider *provider,
			 const struct model *model)
{
	struct sampling_raw *raw = flow->ask->raw;
	struct encode_out *encoded = &flow->made->encoded;

	if (!begin_decode(flow, model))
		return ERR_BUSY;
	const struct sampling_target target = {
		.model = model->name,
		.max_tokens = encoded->max_tokens,
		.stream = flow->attempt.wants_stream,
		.profile = &flow->made->profile,
		.host = provider->endpoints[flow->walk.endpoint].host,
		.key = flow->walk.choice.key == UINT32_MAX ? slice_of(NULL, 0)
							   : provider->keys[flow->walk.choice.key],
	};
	gather_init(&encoded->body, flow->arena);
	raw->output_most = 0;
	if (!raw->write(raw, &target, flow->arena, &encoded->body) ||
	    gather_done(&encoded->body) != ERR_OK)
		return ERR_BUSY;
	encoded->body.images = raw->image_bytes;
	if (raw->output_most != 0)
		encoded->max_tokens =
			raw->output_most < UINT32_MAX ? (uint32_t)raw->output_most : UINT32_MAX;
	return ERR_OK;
}

/* ---- what it may cost ---- */

uint64_t flow_raw_input(const struct flow *flow)
{
	const size_t bytes = flow->ask->body.len, media = (size_t)flow->ask->raw->media_bytes;

	return flow_estimate_input(flow->ask->request, bytes > media ? bytes - media : 0);
}

/* A model takes no more input than its window, whatever bytes that is made of. 0: the window is not known. */
static uint64_t window_of(const struct flow *flow, const struct flow_env *env)
{
	const int32_t model = catalog_find(&env->config->catalog, flow->walk.model_id);

	return model < 0 ? 0 : env->config->catalog.models[model].context;
}

void flow_raw_bound(const struct flow *flow, const struct flow_env *env, struct limit_ask *ask)
{
	const struct sampling_raw *raw = flow->ask->raw;
	const struct encode_out *encoded = &flow->made->encoded;
	const uint64_t window = raw->media_bytes == 0 ? 0 : window_of(flow, env);
	uint64_t bytes = encoded->body.total - encoded->body.images;
	struct price price = flow->made->price;

	if (window != 0 && ask->tokens > window + encoded->max_tokens)
		ask->tokens = window + encoded->max_tokens;
	if (window != 0 && bytes > window)
		bytes = window;
	if (raw->cached_1h && price.cache_write_1h > price.cache_write)
		price.cache_write = price.cache_write_1h; /* no input costs more */
	ask->usd = quota_usd_bound(bytes, encoded->images, encoded->max_tokens, &price);
}

/* ---- its head ---- */

struct slice flow_raw_head(const struct flow *flow, struct slice head)
{
	const struct slice lines = flow->ask->raw->headers;
	const struct slice last = SLICE("\r\n");

	if (slice_absent(head) || lines.len == 0)
		return head;
	char *text = arena_take(flow->arena, head.len + lines.len);
	if (text == NULL)
		return slice_of(NULL, 0);
	char *at = pen_slice(text, slice_of(head.at, head.len - last.len));
	(void)pen_slice(pen_slice(at, lines), last);
	return slice_of(text, head.len + lines.len);
}
