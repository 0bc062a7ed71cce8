/* api_view.h - a request of the direct APIs as the core's policy, limits and routing see one (codec/mcp/sampling.h).
 *
 * It has the figures of the request, and names and schemas of its tools, but not its messages: nothing can be encoded from
 * it. What is sent is the caller's own text (api_edit.h). */
#ifndef CODEC_API_API_VIEW_H
#define CODEC_API_API_VIEW_H

#include "codec/api/api_request.h"
#include "codec/mcp/sampling.h"

/* `tokens`: the bound of output where the request has none, at least 1. Tools that the provider runs are tools, too: by
 * their name, or else their type, the plan's lists of tools permit or deny them. The model's name is its only hint.
 * ERR_OK: *out, whose slices are of the body and `into`; ERR_BUSY: memory is exhausted. */
MUST_USE enum err api_view_make(const struct api_request *request, uint32_t tokens,
				struct arena *into, struct sampling_request *out);

/* Adds the calls of tools that the history has, by their ids: bounds of tool loops go by these. A pass over the messages.
 * ERR_OK; ERR_BUSY: no memory. */
MUST_USE enum err api_view_calls(const struct api_request *request, struct arena *into,
				 struct sampling_request *view);

#endif
