#include "gateway/base/config.h"

#include <stdlib.h>

const struct endpoint *config_next_endpoint(const struct config *config, struct config_walk *walk)
{
	const uint32_t providers = config->provider_count;

	for (; walk->owner < providers + config->mcp_server_count; walk->owner++) {
		const struct endpoint *endpoints;
		uint32_t count;
		if (walk->owner < providers) {
			endpoints = config->providers[walk->owner].endpoints;
			count = config->providers[walk->owner].endpoint_count;
		} else {
			const struct mcp_server *server =
				&config->mcp_servers[walk->owner - providers];
			endpoints = server->endpoints;
			count = server->enabled ? server->endpoint_count : 0;
		}
		if (walk->endpoint < count)
			return &endpoints[walk->endpoint++];
		walk->endpoint = 0;
	}
	return NULL;
}

static int by_name(const void *name, const void *server)
{
	return slice_order(*(const struct slice *)name, ((const struct mcp_server *)server)->name);
}

const struct mcp_server *config_mcp_named(const struct config *config, struct slice name)
{
	if (config->mcp_server_count == 0)
		return NULL;
	return bsearch(&name, config->mcp_servers, config->mcp_server_count,
		       sizeof(*config->mcp_servers), by_name);
}

const struct mcp_server *config_mcp_server(const struct config *config, struct slice name)
{
	const struct mcp_server *found = config_mcp_named(config, name);

	return found != NULL && found->enabled ? found : NULL;
}
