/* cross.h - a provider's own API in front of a model whose provider speaks another format: a closed list.
 *
 * A request becomes the text of MCP's sampling/createMessage, which the core's reader takes (sampling_read, codec/set.h).
 * So the rules of content, tools and history are the same for every front. What MCP has no word for is left out, and an
 * adjustment says so, or is refused by its name. An answer, whole (cross_answer) or as it streams (cross_stream.h), is
 * written in the caller's API. Pure: no clock, no I/O; memory comes from an arena. */
#ifndef CODEC_CROSS_CROSS_H
#define CODEC_CROSS_CROSS_H

#include "codec/api/api_request.h"
#include "codec/mcp/sampling.h"

struct cross_request {
	struct slice body; /* for sampling_read, in the arena */
	adjust_set adjustments;
	bool schema; /* a JSON schema was asked for: the answer is one call of SCHEMA_TOOL_NAME, whose input is the text */
};

/* Messages and Chat alone. `tokens`: the bound where the caller has sent none, at least 1. `work` is for the arguments of
 * calls; `request` is from api_request_read. Errors, with *fault: ERR_FIELD: something that the other format has no word
 * for, path and detail say what; ERR_BUSY: memory is exhausted. *out is written on success only. */
MUST_USE enum err cross_request_make(const struct api_request *request, uint32_t tokens,
				     struct json_work *work, struct arena *into,
				     struct cross_request *out, struct fault *fault);

/* What names an answer. */
struct cross_names {
	struct slice id;       /* plain, without the API's prefix */
	struct slice model;    /* JSON text of a string: the caller's name for the model */
	uint64_t created_s;    /* since the epoch */
	uint64_t input_tokens; /* estimated, for a provider that counts none, or later */
};

/* The whole answer. `schema`: as cross_request.schema. */
void cross_answer(struct gather *g, enum api api, const struct cross_names *names, bool schema,
		  const struct sampling_result *result);

#endif
