#include "codec/api/api_grants.h"

#include "codec/base/must.h"

#include <stdio.h>

static enum err refuse(struct fault *fault, enum err err, struct slice path, const char *detail)
{
	*fault = (struct fault){
		.err = err, .offset = FAULT_NO_OFFSET, .path = path, .detail = detail
	};
	return err;
}

/* ---- server tools ---- */

static bool is_granted(const struct api_tool *tool, const struct api_grants *grants)
{
	for (uint32_t i = 0; i < grants->server_tool_count; i++)
		if (api_tool_is(tool, grants->server_tools[i]))
			return true;
	return false;
}

static void count_uses(const struct api_tool *tool, struct api_granted *got)
{
	if (slice_absent(got->server_tool))
		got->server_tool = tool->path;
	if (tool->uses_max == 0 && slice_absent(got->unbounded))
		got->unbounded = tool->path;
	if (__builtin_add_overflow(got->uses, tool->uses_max, &got->uses))
		got->uses = UINT64_MAX;
}

static enum err check_tools(const struct api_request *request, const struct api_grants *grants,
			    struct api_granted *got, struct fault *fault)
{
	for (uint32_t i = 0; request->server_tools != 0 && i < request->tool_count; i++) {
		const struct api_tool *tool = &request->tools[i];
		if (tool->kind != API_TOOL_SERVER)
			continue;
		if (!is_granted(tool, grants))
			return refuse(fault, ERR_POLICY, tool->path,
				      "Policy does not permit this server tool: a provider runs "
				      "and bills it");
		count_uses(tool, got);
	}
	return ERR_OK;
}

/* ---- tiers ---- */

static const struct slice usual[] = { SLICE_INIT("auto"), SLICE_INIT("default"),
				      SLICE_INIT("standard_only"), SLICE_INIT("standard") };

uint32_t api_tier_find(struct slice raw, const struct api_grants *grants)
{
	if (slice_absent(raw))
		return API_TIER_USUAL;
	for (size_t i = 0; i < COUNT_OF(usual); i++)
		if (json_str_eq(raw, usual[i]))
			return API_TIER_USUAL;
	for (uint32_t i = 0; i < grants->tier_count; i++)
		if (json_str_eq(raw, grants->tiers[i]))
			return i;
	return grants->tier_count;
}

enum err api_grants_check(const struct api_request *request, const struct api_grants *grants,
			  struct api_granted *granted, struct fault *fault)
{
	struct api_granted got = {
		.tier = api_tier_find(api_string(request, API_SERVICE_TIER), grants),
		.speed = api_tier_find(api_string(request, API_SPEED), grants),
	};
	enum err err = check_tools(request, grants, &got, fault);

	must(grants->n_max != 0);
	if (err != ERR_OK)
		return err;
	if (request->urls != 0 && !grants->remote_files)
		return refuse(fault, ERR_POLICY, request->url_path,
			      "Policy does not permit content by URL: send it as base64");
	if (got.tier == grants->tier_count)
		return refuse(fault, ERR_POLICY, SLICE("service_tier"),
			      "Policy does not permit this service tier");
	if (got.speed == grants->tier_count)
		return refuse(fault, ERR_POLICY, SLICE("speed"),
			      "Policy does not permit this speed");
	if (request->n > grants->n_max)
		return refuse(fault, ERR_POLICY, SLICE("n"),
			      "Policy does not permit so many answers to one request");
	*granted = got;
	return ERR_OK;
}

/* ---- bounds ---- */

enum err api_thinking_check(const struct api_request *request, uint64_t tokens_max,
			    const char *whose, struct arena *into, struct fault *fault)
{
	enum { ROOM = 128 };
	char *text;

	if (request->thinking == 0 || request->tokens <= tokens_max ||
	    tokens_max > request->thinking)
		return ERR_OK;
	text = arena_take(into, ROOM);
	if (text == NULL)
		return refuse(fault, ERR_BUSY, slice_of(NULL, 0), NULL);
	const int len =
		snprintf(text, ROOM, "the %s's maximum of %llu is not above thinking.budget_tokens",
			 whose, (unsigned long long)tokens_max);
	must(len > 0 && len < ROOM);
	return refuse(fault, ERR_MAX_TOKENS,
		      api_has(request, API_MAX_COMPLETION_TOKENS) ? SLICE("max_completion_tokens")
								  : SLICE("max_tokens"),
		      text);
}

uint64_t api_output_most(const struct api_request *request, uint64_t tokens)
{
	const uint64_t prediction =
		api_has(request, API_PREDICTION) ? request->at[API_PREDICTION].text.len / 4 : 0;
	uint64_t most;

	if (__builtin_mul_overflow(tokens, request->n, &most) ||
	    __builtin_add_overflow(most, prediction, &most))
		return UINT64_MAX;
	return most;
}
