#include "gateway/front/front_caller.h"

#include "tenants/auth.h"

bool front_origin_allowed(const struct config *config, struct slice origin)
{
	for (uint32_t i = 0; i < config->origin_count; i++)
		if (slice_eq_nocase(config->origins[i], origin))
			return true;
	return slice_absent(origin);
}

bool front_is_json(struct slice content_type)
{
	if (slice_absent(content_type))
		return false;
	struct slice type = slice_trim(slice_cut(&content_type, ';'));
	return slice_eq_nocase(type, SLICE("application/json"));
}

bool front_is_coded(struct slice content_encoding)
{
	const struct slice coding = slice_trim(content_encoding);

	return coding.len > 0 && !slice_eq_nocase(coding, SLICE("identity"));
}

bool front_find_caller(const struct front_host *host, const struct http_incoming *in,
		       struct slice resource, uint64_t wall_s, struct arena *into,
		       struct credentials *shown, struct caller *caller, struct caller_refusal *why)
{
	const struct slice authorization = in->headers[HTTP_AUTHORIZATION];
	const bool has = !slice_absent(authorization);
	const struct caller_sources sources = {
		.config = host->config,
		.tokens = host->tokens,
		.keys = host->keys,
		.json = host->json,
		.wall_s = wall_s,
	};

	*shown = (struct credentials){
		.shown = has,
		.secret = has ? auth_credentials(authorization) : authorization,
		.resource = resource,
		.names = in->names,
		.wrongs = in->wrongs,
	};
	return caller_find(&sources, shown, into, caller, why);
}
