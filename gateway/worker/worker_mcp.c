/* worker_mcp.c - what a worker has for the proxy in front of MCP servers. */
#include "gateway/worker/worker_parts.h"

#include "codec/base/must.h"
#include "gateway/front/mcp/mcp_opened.h"
#include "gateway/front/mcp/mcp_remote.h"
#include "gateway/telemetry/metrics.h"

/* The configured secrets, and the process's own: the first seals, and all open, so that sessions outlive a reload that
 * brings the first secret. */
bool worker_use_seals(struct worker *worker, const struct config *config)
{
	struct seal_secret secrets[CONFIG_SEAL_SECRETS_MAX + 1];
	struct seal *fresh;

	if (config->mcp_server_count == 0)
		return true; /* nobody seals: what OpenSSL takes for it is not taken */
	must(config->seal_secret_count <= CONFIG_SEAL_SECRETS_MAX);
	for (uint32_t i = 0; i < config->seal_secret_count; i++)
		secrets[i] = config->seal_secrets[i];
	secrets[config->seal_secret_count] = *worker->args.seal_secret;
	fresh = seal_new(secrets, config->seal_secret_count + 1);
	explicit_bzero(secrets, sizeof(secrets));
	if (fresh == NULL)
		return false;
	if (worker->mcp.opened == NULL)
		worker->mcp.opened = mcp_opened_new();
	if (worker->mcp.opened == NULL) {
		seal_free(fresh);
		return false;
	}
	mcp_opened_forget(worker->mcp.opened);
	seal_free(worker->mcp.seal);
	worker->mcp.seal = fresh;
	return true;
}

bool worker_join_peers(struct worker *worker, const struct config *config)
{
	const struct worker_args *args = &worker->args;
	struct mcp_host *mcp = &worker->mcp;

	if (worker->redis == NULL || config->mcp_server_count == 0 || mcp->shared != NULL)
		return true;
	struct peer_bus *bus =
		peer_bus_new(worker->redis, &config->store, args->alive, args->index);
	if (bus == NULL)
		return false;
	struct mcp_shared *shared =
		mcp_shared_new(worker->loop, worker->redis, bus, args->alive, args->channels,
			       &worker->core.inbox, args->index, &mcp_peer_events, mcp);
	struct mcp_remotes *remotes =
		shared == NULL ? NULL : mcp_remotes_new(worker->loop, mcp, bus, shared);
	if (remotes == NULL)
		return false;
	mcp->remotes = remotes;
	mcp->shared = shared;
	return true;
}

void worker_use_mcp_servers(struct worker *worker, const struct config *config)
{
	for (uint32_t i = 0; i < config->mcp_server_count; i++)
		worker->mcp.series[i] =
			metrics_mcp_series(worker->args.metrics, config->mcp_servers[i].name);
}

bool worker_build_mcp(struct worker *worker)
{
	struct mcp_host *mcp = &worker->mcp;

	worker->fronts.mcp = mcp;
	mcp->front = &worker->fronts;
	mcp->limits = worker->args.limits;
	mcp->metrics = worker->args.metrics;
	mcp->log = worker->args.log;
	mcp->cancels = worker->args.cancels;
	mcp->cancels_elsewhere = worker->core.cancels_elsewhere;
	mcp->inbox = &worker->core.inbox;
	mcp->channels = worker->args.channels;
	return mcp_host_init(mcp);
}
