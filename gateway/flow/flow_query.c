/* flow_query.c - what routing is asked of a request. */
#include "gateway/flow/flow_steps.h"

enum { IMAGE_TOKENS = 1600, BYTES_PER_TOKEN = 4 };

const struct block *flow_shown(const struct sampling_request *request, enum block_type type,
			       uint32_t *message)
{
	for (*message = 0; *message < request->message_count; ++*message) {
		const struct message *m = &request->messages[*message];
		for (uint32_t i = 0; !m->assistant && i < m->count; i++)
			if (request->blocks[m->first + i].type == type)
				return &request->blocks[m->first + i];
	}
	return NULL;
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
