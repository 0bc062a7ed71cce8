/* front.h - how requests over HTTP come to the front that speaks their protocol.
 *
 * The fronts and their paths are the rows of tbl/fronts.h; a worker makes a table of them. A front decodes its own
 * format, asks the core (gateway/sampling/sampling.h), and writes what that says. Fronts do not know each other. */
#ifndef GATEWAY_FRONT_FRONT_H
#define GATEWAY_FRONT_FRONT_H

#include "codec/base/slab.h"
#include "gateway/http/http.h"
#include "gateway/sampling/sampling.h"

struct front_host;
struct mcp_host;
struct upstream;
struct upstream_pool;

/* One const row for each front. */
struct front {
	size_t record_bytes; /* of what it keeps of a request: host->records has room for it */
	/* As http_handler.begin; `found`: the path is one of the front's, else of nobody's, and it refuses the request. What it
	 * returns begins with a struct front_request. */
	void *(*begin)(struct front_host *host, struct http_exchange *exchange,
		       const struct http_incoming *in, bool found);
	/* As http_handler.expects. */
	bool (*expects)(struct front_host *host, struct http_early *early,
			const struct http_incoming *in, bool found);
	/* As http_handler has them. */
	void (*gone)(void *request);
	void (*sent)(void *request);
	void (*ready)(void *request); /* NULL: its answers never come in pieces */
};

/* What a front's record of a request begins with. */
struct front_request {
	const struct front *front;
};

struct front_path {
	struct slice
		path; /* one that ends in '/' stands for all that begin so, but for "/" itself */
	const struct front *front;
};

/* What a worker lends its fronts; its fields change between requests only. */
struct front_host {
	const struct front_path
		*paths; /* the first one's front also refuses paths that nobody has */
	size_t path_count;
	struct sampling *core;
	struct net_loop *loop;
	struct arena_pool *arenas;
	struct json_work *json;
	const struct config *config; /* in use */
	struct jwt_checker *tokens;
	struct key_cache *keys;
	struct upstream *upstream; /* for calls that are not the core's */
	/* For calls to MCP servers, by the place of the server in `config` and of its endpoint. NULL inside: the server is
	 * not enabled, or its CA cannot be used. Changes with `config`. */
	struct upstream_pool *(*mcp_pools)[CONFIG_ENDPOINTS_MAX];
	struct mcp_host *mcp; /* what front/mcp has beside; the others do not look at it */
	bool leaving;         /* whatever comes is refused */
	/* What fronts keep of requests. The room that HTTP lends with a request is left to its arena. */
	struct slab records;
};

/* Once, when all but `leaving` is set. False: no memory. */
MUST_USE bool front_host_init(struct front_host *host);

/* The handler that gives each request to its front; `host` must outlive it. */
struct http_handler front_handler(struct front_host *host);

/* The path of a request's target (in->path), which may be in absolute form (RFC 9112, 3.2.2). */
struct slice front_path_of(struct slice target);

/* The row that a request's target belongs to, in absolute form too; NULL: nobody's. */
const struct front_path *front_find(const struct front_host *host, struct slice target);

#endif
