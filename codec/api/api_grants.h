/* api_grants.h - what a plan permits of a request in a provider's own API beside models and limits: what costs extra, or
 * makes the provider fetch something (plans.*.direct). */
#ifndef CODEC_API_API_GRANTS_H
#define CODEC_API_API_GRANTS_H

#include "codec/api/api_request.h"

/* All slices are plain text. Zero-initialised but for n_max, which is 1 at least: nothing is permitted. */
struct api_grants {
	const struct slice *server_tools; /* names, or globs: api_tool_is */
	uint32_t server_tool_count;
	const struct slice *tiers; /* of service_tier, and of Anthropic's speed */
	uint32_t tier_count;
	bool remote_files; /* content by URL */
	uint32_t n_max;    /* answers to one request */
};

enum { API_TIER_USUAL = UINT32_MAX };

/* What was granted: the caller pays for it. Paths are the request's. */
struct api_granted {
	uint32_t tier, speed; /* places in grants.tiers; API_TIER_USUAL: at the usual price */
	uint64_t
		uses; /* of server tools that say how often they may be used, together; saturated */
	struct slice server_tool; /* where the first one stands; absent: there is none */
	struct slice unbounded;   /* where the first one stands that does not say that; likewise */
};

/* The place of a tier (raw, or absent) in the grants, API_TIER_USUAL, or tier_count where it is not permitted. */
uint32_t api_tier_find(struct slice raw, const struct api_grants *grants);

/* ERR_OK; ERR_POLICY with *fault, which names the member. */
MUST_USE enum err api_grants_check(const struct api_request *request,
				   const struct api_grants *grants, struct api_granted *granted,
				   struct fault *fault);

/* Whether thinking fits into a bound of output below the one that was sent: the provider wants room behind it. `whose`: what
 * has that bound, "plan" or "model". ERR_OK; ERR_MAX_TOKENS with *fault, which names the bound; ERR_BUSY. */
MUST_USE enum err api_thinking_check(const struct api_request *request, uint64_t tokens_max,
				     const char *whose, struct arena *into, struct fault *fault);

/* The most output tokens that the request can be billed for, where each answer has `tokens` at most: that times n, and a
 * quarter of the bytes of a prediction, each part of which may be rejected. Saturated. */
uint64_t api_output_most(const struct api_request *request, uint64_t tokens);

#endif
