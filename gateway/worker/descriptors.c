#include "gateway/worker/descriptors.h"

#include "gateway/upstream/upstream.h"

#include <inttypes.h>
#include <sys/resource.h>

enum {
	BESIDE_ALL = 128, /* admin connections, DNS, files of a reload, the limit table, stdio */
	BESIDE_PER_WORKER = 4, /* libh2o's epoll, the two of net_conns.c, eventfd */
};

/* A call has a connection of its own, so that a bound of calls is one of connections. */
static uint64_t endpoints_most(const struct endpoint *endpoints, uint32_t count, uint32_t workers)
{
	const uint64_t pool = upstream_limits_default.connections_max;
	uint64_t sum = 0;

	for (uint32_t e = 0; e < count; e++) {
		const uint64_t share = config_share(endpoints[e].concurrent, workers);
		sum += (share < pool ? share : pool) * workers;
	}
	return sum;
}

static uint64_t calls_most(const struct config *config)
{
	uint64_t sum = 0;

	for (uint32_t p = 0; p < config->provider_count; p++)
		if (config->providers[p].enabled)
			sum += endpoints_most(config->providers[p].endpoints,
					      config->providers[p].endpoint_count, config->workers);
	for (uint32_t i = 0; i < config->mcp_server_count; i++)
		if (config->mcp_servers[i].enabled)
			sum += endpoints_most(config->mcp_servers[i].endpoints,
					      config->mcp_servers[i].endpoint_count,
					      config->workers);
	return sum;
}

static uint64_t sessions_most(const struct config *config)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < config->mcp_server_count; i++)
		if (config->mcp_servers[i].enabled)
			sum += config->mcp_servers[i].sessions;
	return sum;
}

/* Neither callers nor the others take more than half of what there is. */
struct descriptors descriptors_share(const struct config *config, uint64_t files)
{
	const uint64_t wanted = config->connections_max, most = calls_most(config);
	struct descriptors share = {
		.beside = BESIDE_ALL +
			  (uint64_t)config->workers * (BESIDE_PER_WORKER + config->listen_count),
		.providers = most < wanted ? most : wanted,
		.sessions = sessions_most(config),
	};
	const uint64_t others = share.providers + share.sessions;
	uint64_t rest = files > share.beside ? files - share.beside : 0;
	uint64_t half = rest / 2;
	uint64_t left = rest > others ? rest - others : 0;
	uint64_t room = left > half ? left : half;

	share.callers = (uint32_t)(wanted < room ? wanted : room == 0 ? 1 : room);
	return share;
}

static uint64_t files_max(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

uint32_t descriptors_callers(const struct config *config)
{
	return descriptors_share(config, files_max()).callers;
}

void descriptors_raise(const struct config *config, FILE *problems)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
			(void)fprintf(problems,
				      "sluice: warning: RLIMIT_NOFILE cannot be raised\n");
	}
	const uint64_t files = files_max();
	const struct descriptors share = descriptors_share(config, files);
	if (share.callers < config->connections_max)
		(void)fprintf(
			problems,
			"sluice: warning: limits.connections: %" PRIu32 " callers, %" PRIu64
			" connections to providers and MCP servers, %" PRIu64
			" of MCP sessions and %" PRIu64 " other files do not fit into %" PRIu64
			" open files (ulimit -n): at most %" PRIu32
			" callers are connected at once; raise the limit, or configure less\n",
			config->connections_max, share.providers, share.sessions, share.beside,
			files, share.callers);
}
