#include "gateway/front/mcp/mcp_removed.h"

#include "gateway/front/mcp/mcp.h"

enum { ARENA_MAX = 1 << 20 };

/* A server with one endpoint. */
struct mcp_removed {
	struct mcp_server server;
	struct endpoint endpoint;
	struct slice query;
	struct mcp_digest digest; /* of the endpoint */
	struct upstream_pool *pool;
	nsec_t used;
	struct mcp_removed *next; /* older */
	struct arena arena;       /* holds it */
};

/* ---- what is kept ---- */

static bool copy(struct slice *text, struct arena *into)
{
	if (slice_absent(*text))
		return true;
	*text = arena_copy(into, *text);
	return !slice_absent(*text);
}

static bool copy_names(struct mcp_server *server, struct arena *into)
{
	struct slice *names = arena_take(into, server->pass_header_count * sizeof(*names));
	bool good = names != NULL;

	for (uint32_t i = 0; good && i < server->pass_header_count; i++) {
		names[i] = server->pass_headers[i];
		good = copy(&names[i], into);
	}
	server->pass_headers = names;
	return good;
}

/* Only what a request to it needs. */
static bool fill(struct mcp_removed *removed, const struct mcp_server *server, uint32_t endpoint,
		 struct arena *arena)
{
	const struct endpoint *from = &server->endpoints[endpoint];

	removed->server = *server;
	removed->endpoint = (struct endpoint){ .tls = from->tls,
					       .port = from->port,
					       .path = from->path,
					       .authority = from->authority };
	removed->query = server->queries[endpoint];
	removed->digest = mcp_endpoint_digest(server, endpoint);
	removed->server.endpoints = &removed->endpoint;
	removed->server.queries = &removed->query;
	removed->server.endpoint_count = 1;
	return copy(&removed->server.name, arena) && copy(&removed->server.head, arena) &&
	       copy(&removed->endpoint.path, arena) && copy(&removed->endpoint.authority, arena) &&
	       copy(&removed->query, arena) && copy_names(&removed->server, arena);
}

static void drop(struct mcp_removed *removed)
{
	struct arena arena = removed->arena;

	upstream_let_go(removed->pool);
	arena_wipe(&arena);
}

/* Its headers may have changed since. */
static void forget(struct mcp_host *mcp, const struct mcp_removed *known)
{
	struct mcp_removed **at = &mcp->removed;

	while (*at != NULL && *at != known)
		at = &(*at)->next;
	if (*at == NULL)
		return;
	struct mcp_removed *removed = *at;
	*at = removed->next;
	drop(removed);
}

static struct mcp_removed *find(const struct mcp_host *mcp, struct slice name,
				const struct mcp_digest *digest)
{
	struct mcp_removed *removed = mcp->removed;

	while (removed != NULL &&
	       !(slice_eq(removed->server.name, name) && mcp_digest_eq(&removed->digest, digest)))
		removed = removed->next;
	return removed;
}

static void add(struct mcp_host *mcp, const struct mcp_server *server, uint32_t endpoint,
		struct upstream_pool *pool)
{
	struct arena arena;

	arena_init(&arena, mcp->front->arenas, ARENA_MAX);
	struct mcp_removed *removed = arena_zero(&arena, sizeof(*removed));
	if (removed == NULL || !fill(removed, server, endpoint, &arena)) {
		arena_wipe(&arena); /* what its servers ask for is counted as lost */
		return;
	}
	removed->pool = pool;
	removed->used = net_now(mcp->front->loop);
	removed->next = mcp->removed;
	removed->arena = arena;
	upstream_hold(pool);
	mcp->removed = removed;
}

/* ---- a reload ---- */

static bool has_endpoint(const struct config *config, struct slice name,
			 const struct mcp_digest *wanted)
{
	const struct mcp_server *server = config_mcp_server(config, name);

	for (uint32_t i = 0; server != NULL && i < server->endpoint_count; i++) {
		const struct mcp_digest digest = mcp_endpoint_digest(server, i);
		if (mcp_digest_eq(&digest, wanted))
			return true;
	}
	return false;
}

static void note_server(struct mcp_host *mcp, const struct mcp_server *server,
			struct upstream_pool *const pools[CONFIG_ENDPOINTS_MAX],
			const struct config *config)
{
	for (uint32_t i = 0; i < server->endpoint_count; i++) {
		const struct mcp_digest digest = mcp_endpoint_digest(server, i);
		if (pools[i] == NULL || has_endpoint(config, server->name, &digest))
			continue;
		forget(mcp, find(mcp, server->name, &digest));
		add(mcp, server, i, pools[i]);
	}
}

void mcp_removed_note(struct mcp_host *mcp, const struct config *config)
{
	const struct config *before = mcp->front->config;

	for (uint32_t i = 0; before != NULL && i < before->mcp_server_count; i++)
		note_server(mcp, &before->mcp_servers[i], mcp->front->mcp_pools[i], config);
	mcp_removed_review(mcp);
}

/* ---- its use ---- */

const struct mcp_server *mcp_link_way(struct mcp_host *mcp, struct mcp_link *link)
{
	const struct mcp_server *server = mcp_link_server(mcp, link);

	if (server != NULL && mcp_link_place(link, server))
		return server;
	struct mcp_removed *removed = find(mcp, link->token.server, &link->token.endpoint);
	if (removed == NULL)
		return NULL;
	removed->used = net_now(mcp->front->loop);
	link->endpoint = 0;
	return &removed->server;
}

struct upstream_pool *mcp_removed_pool(const struct mcp_host *mcp, const struct mcp_server *server)
{
	const struct mcp_removed *removed = mcp->removed;

	while (removed != NULL && &removed->server != server)
		removed = removed->next;
	return removed == NULL ? NULL : removed->pool;
}

/* A call that runs there may ask for something yet. */
static void mark_calls(struct mcp_host *mcp)
{
	for (struct mcp_request *at = mcp->all_requests; at != NULL; at = at->older)
		if (at->phase != MCP_READING)
			(void)mcp_link_way(mcp, &at->link);
}

void mcp_removed_review(struct mcp_host *mcp)
{
	const nsec_t now = net_now(mcp->front->loop);
	struct mcp_removed **at = &mcp->removed;

	if (mcp->removed == NULL)
		return;
	mark_calls(mcp);
	for (size_t count = 0; *at != NULL;) {
		struct mcp_removed *removed = *at;
		if (now < removed->used + MCP_REMOVED_KEPT && count++ < MCP_REMOVED_MAX) {
			at = &removed->next;
			continue;
		}
		*at = removed->next;
		drop(removed);
	}
}
