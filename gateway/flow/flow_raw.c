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
	for (size_t w = 0; w < COUNT_OF(models->words); w++) {
		for (uint64_t left = models->words[w]; left != 0; left &= left - 1) {
			const size_t i = w * 64 + (size_t)__builtin_ctzll(left);
			const struct model *model = &config->catalog.models[i];
			if (config->providers[model->provider].dialect != dialect)
				models->words[w] &= ~(left & -left);
		}
	}
}

/* Whether the model takes what the request has. False: raw->unsuited says what it does not. `last`: the model that was
 * asked for before; NULL: none. */
static bool suits(struct sampling_raw *raw, const struct config *config, const struct model *model,
		  const struct model *last)
{
	const struct provider *provider = &config->providers[model->provider];
	const struct sampling_offer offer = { .refused = provider->refused,
					      .refused_count = provider->refused_count,
					      .again = last != NULL &&
						       last->provider == model->provider,
					      .output_most = model->profile.max_output,
					      .use_price = model->price_server_tool };
	struct fault why;

	_Static_assert(CATALOG_NO_PRICE == SAMPLING_NO_PRICE, "one mark for both");
	if (raw->suits(raw, &offer, &why))
		return true;
	raw->unsuited = why;
	return false;
}

static void keep_suited(struct sampling_raw *raw, const struct config *config,
			struct bitset *models)
{
	const struct model *last = NULL;

	raw->unsuited.err = ERR_OK;
	for (size_t i = 0; raw->suits != NULL && i < COUNT_OF(models->words); i++)
		for (uint64_t left = models->words[i]; left != 0; left &= left - 1) {
			const size_t number = i * 64 + (size_t)__builtin_ctzll(left);
			const struct model *model = &config->catalog.models[number];
			if (!suits(raw, config, model, last))
				bitset_remove(models, number);
			last = model;
		}
}

static bool any_enabled(const struct catalog *catalog, const struct bitset *models)
{
	for (uint32_t i = 0; i < catalog->count; i++)
		if (catalog->models[i].enabled && bitset_has(models, i))
			return true;
	return false;
}

/* The same, unless none of them can be had. */
static void prefer_format(const struct config *config, enum dialect_id dialect,
			  struct bitset *models)
{
	struct bitset same = *models;

	keep_format(config, dialect, &same);
	if (any_enabled(&config->catalog, &same))
		*models = same;
}

bool flow_raw_models(const struct flow *flow, const struct config *config, struct bitset *out)
{
	struct sampling_raw *raw = flow->ask->raw;

	if (raw == NULL)
		return false;
	if (slice_absent(raw->model))
		*out = flow->caller.plan->models;
	else
		find_named(flow, config, out);
	if (raw->only)
		keep_format(config, raw->dialect, out);
	keep_suited(raw, config, out);
	if (!slice_absent(raw->model))
		prefer_format(config, raw->dialect, out);
	return true;
}

enum err flow_raw_nobody(const struct flow *flow)
{
	const enum err err = flow->ask->raw->unsuited.err;

	return err != ERR_OK ? err : ERR_MODEL_UNKNOWN;
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
			    .passed = true,
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
		.final_round = flow->walk.verdict.final_round,
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
	encoded->body.images = raw->image_bytes < encoded->body.total ? raw->image_bytes : 0;
	flow->made->use_price = model->price_server_tool;
	if (raw->counts)
		flow_count_encoded(flow);
	if (raw->output_most != 0)
		encoded->max_tokens =
			raw->output_most < UINT32_MAX ? (uint32_t)raw->output_most : UINT32_MAX;
	return ERR_OK;
}

/* ---- how much ---- */

uint64_t flow_raw_input(const struct flow *flow)
{
	const size_t bytes = flow->ask->body.len, media = (size_t)flow->ask->raw->media_bytes;

	if (flow->ask->raw->counts)
		return 0; /* more than fits can be counted, too */
	return flow_estimate_input(flow->ask->request, bytes > media ? bytes - media : 0);
}

/* ---- its head ---- */

enum err flow_raw_cross(struct flow *flow, struct fault *fault)
{
	struct sampling_raw *raw = flow->ask->raw;

	if (raw->crossed || raw->cross == NULL)
		return ERR_OK;
	enum err err = raw->cross(raw, flow->arena, fault);
	if (err != ERR_OK)
		return err;
	raw->crossed = true;
	flow->walk.asked_system = flow->ask->request->system;
	flow->totals.asked_adjustments |= flow->ask->request->adjustments;
	return policy_apply(flow->caller.plan, flow->arena, flow->ask->request);
}

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
