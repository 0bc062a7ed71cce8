/* config.h - one loaded configuration: an immutable snapshot (DESIGN 2 and 4.2).
 *
 * Built by settings_load on the control thread (or by a command), published to the workers by
 * pointer, freed by control when the last worker has let go of it. Every slice and array in it
 * lives in its own arena. Secrets in it are never printed. */
#ifndef GATEWAY_BASE_CONFIG_H
#define GATEWAY_BASE_CONFIG_H

#include "codec/base/arena.h"
#include "codec/base/clock.h"
#include "gateway/base/seal_secret.h"
#include "gateway/base/tls_name_kind.h"
#include "gateway/base/user.h"
#include "routing/catalog.h"
#include "tenants/jwt.h"
#include "tenants/tenant.h"

#include <stdio.h>

enum {
	CONFIG_MAGIC = 0x434f4e46,
	CONFIG_ENDPOINTS_MAX = 64,
	CONFIG_KEYS_MAX = 16,
	CONFIG_PROVIDERS_MAX = 256,
	CONFIG_LISTEN_MAX = 16,
	CONFIG_MCP_SERVERS_MAX = 1024,
	CONFIG_SEAL_SECRETS_MAX = 8,
	SOCKET_PATH_MAX = 107, /* bytes of a UNIX socket's path */
};

/* Where a provider can be reached. Everything a connection pool is keyed by. */
struct endpoint {
	struct slice url;  /* as configured, for messages */
	bool tls;          /* https */
	struct slice host; /* without brackets; a name or an IP literal; NUL-terminated */
	uint16_t port;
	struct slice
		path; /* everything of the URL's path before the dialect's path; no trailing '/' */
	struct slice authority; /* value of the Host header */
	struct slice head; /* what every call begins with (provider_head.h); a provider's only */
	uint32_t weight;
	struct slice zone;     /* absent: none */
	uint32_t concurrent;   /* calls in flight, all workers together; UINT32_MAX: no bound */
	uint32_t queue;        /* calls that may wait for a place, all workers together */
	nsec_t queue_deadline; /* how long a call waits for one; 0: no bound of its own */
	struct slice ca_path;  /* private CA, or absent */
	struct slice ca_pem;   /* its content */
	struct slice
		identity; /* "https|host|port|sha256 of the CA": pools outlive snapshots by it */
};

/* One worker's share of a bound of all; none and nothing stay so. */
static inline uint32_t config_share(uint32_t bound, uint32_t workers)
{
	if (bound == UINT32_MAX || bound == 0)
		return bound;
	return bound < workers ? 1 : bound / workers;
}

struct provider_timeouts {
	nsec_t connect, first_byte, idle, total; /* per attempt */
};

/* When an endpoint that fails is left alone, and for how long. */
struct provider_breaker {
	uint32_t failures;     /* in a row */
	double ratio;          /* of failed calls in `window`; 0: not looked at */
	uint32_t calls;        /* in `window`: from that many on `ratio` counts */
	nsec_t window;         /* > 0 */
	nsec_t open, open_max; /* the first time alone, and the longest; open <= open_max */
	nsec_t slow_start;     /* from closing to its whole share; 0: at once */
};

/* Active checks of a provider's endpoints. */
struct provider_check {
	struct slice path; /* begins with '/'; absent: there are none */
	nsec_t interval, timeout;
	uint32_t unhealthy, healthy; /* checks in a row that change the verdict */
};

struct provider {
	struct slice name;
	bool enabled;
	enum dialect_id dialect;
	struct slice version; /* anthropic-version */
	const struct endpoint *endpoints;
	uint32_t endpoint_count;
	const struct slice *keys; /* secrets; never printed */
	uint32_t key_count;
	const char *key_header;      /* what stands before a key: "api-key: "; static */
	struct slice query;          /* with its '?'; empty when there is none */
	const struct slice *refused; /* members of requests in its own format that it is not sent */
	uint32_t refused_count;      /* API_NAMES_MAX at most */
	struct provider_timeouts timeouts;
	struct provider_breaker breaker;
	struct provider_check check;
};

/* What the gateway does about `sampling` between a client and an MCP server. */
enum mcp_sampling_mode {
	MCP_BACKFILL, /* a client that declares it is relayed, for others the gateway answers */
	MCP_FORCE,    /* the gateway answers, whatever the client declares */
	MCP_RELAY,    /* nothing is changed and nothing is answered here */
	MCP_REFUSE    /* the client's declaration is cut out, and requests are refused */
};

enum mcp_transport {
	MCP_AUTO, /* Streamable HTTP, or HTTP+SSE of 2024-11-05 where the server answers so */
	MCP_HTTP,
	MCP_SSE
};

enum { CONFIG_ENDPOINT_DIGEST = 16 };

/* An MCP server that callers reach at /mcp/{name}. */
struct mcp_server {
	struct slice name; /* [A-Za-z0-9_.-]{1,64} */
	bool enabled;
	/* As of a provider, but for `path`, which is that of the URL to the letter, "/" at least, and `url`, which is
	 * without its query. No `head`. */
	const struct endpoint *endpoints;
	uint32_t endpoint_count;     /* at least 1 */
	const struct slice *queries; /* of each endpoint, with its '?'; empty: none. A secret */
	const uint8_t (*digests)[CONFIG_ENDPOINT_DIGEST]; /* of each endpoint's URL, query and CA */
	enum mcp_transport transport;
	enum mcp_sampling_mode sampling;
	/* Header lines that every request to the server has, each with its CR LF; may be empty. A secret. */
	struct slice head;
	bool client_auth; /* auth: client; then `head` has no Authorization */
	bool unsolicited; /* samplings are taken without an open request of the client */
	const struct slice *pass_headers; /* of requests, which go on to the server; lower case */
	uint32_t pass_header_count;
	struct provider_timeouts timeouts; /* of a POST; `total` is NSEC_NEVER */
	uint32_t sessions;                 /* at once */
};

struct ssl_ctx_st;

struct listen_address {
	struct slice text; /* as configured */
	struct slice host; /* NUL-terminated */
	uint16_t port;
	bool local;             /* `host` is the path of a UNIX socket, and there is no port */
	bool trusted_proxy;     /* its HTTP/2 connections carry many callers' requests */
	uint8_t fronts;         /* bits FRONT_* (tenant.h): what may be asked for here; never 0 */
	struct ssl_ctx_st *tls; /* of tls_server_new, this configuration's own; NULL: clear text */
};

/* A file that the configuration was read from: the supervisor keeps the texts, so that a restarted
 * server takes the last configuration that loaded. */
struct config_file {
	struct slice path, text;
};

/* Where the keys of an issuer's tokens are fetched from. */
struct jwks_place {
	struct endpoint endpoint; /* its path is not used: that of a JWKS is taken as it stands */
	struct slice path;        /* begins with '/' */
	nsec_t refresh;
	struct slice
		name; /* "URL|sha256 of the CA": what is known of it outlives snapshots by it */
};

/* Private blocks of tool loops (state.h). */
struct config_blocks {
	uint64_t bytes; /* of all, in this process; 0: none are kept */
	uint64_t each;  /* of one answer */
	nsec_t ttl;     /* after their last use */
};

/* Where limits, sessions and tool loops are kept. */
struct config_store {
	struct config_blocks blocks;
	bool redis;        /* else this machine alone, and nothing below */
	bool tls;          /* rediss */
	struct slice name; /* the URL without user and password, for messages; NUL-terminated */
	struct slice host; /* a name or an IP literal; NUL-terminated; absent with a path */
	struct slice path; /* UNIX socket */
	uint16_t port;
	struct slice user, password; /* secrets; absent: not sent */
	uint32_t database;
	struct slice ca_pem;
	nsec_t deadline;
	nsec_t patience; /* of requests that would be refused without an answer */
};

/* What a request may try again (DESIGN 5). */
struct config_retries {
	uint32_t attempts; /* of one request, the first included; at least 1 */
	double budget;     /* retries per request, of each tenant and of each provider */
	uint32_t floor;    /* retries in ten seconds that both have in any case, on each worker */
};

struct config {
	uint32_t magic;
	struct arena_pool pool;
	struct arena arena; /* owns everything below, and this struct's slices */

	const struct listen_address *listen;
	uint32_t listen_count;
	struct listen_address admin;     /* host absent: no admin address */
	struct slice admin_socket;       /* UNIX socket path, or absent */
	const struct slice *admin_names; /* that the admin address may be asked by */
	uint32_t admin_name_count;
	uint32_t workers;  /* resolved: "auto" is the number of CPUs this process may use */
	bool workers_auto; /* the file says auto, or nothing */
	struct slice zone; /* where this gateway runs; absent: not said */
	struct config_retries retries;
	struct config_store store;
	struct user user; /* whom the server becomes; name "": nobody else */
	uint32_t listen_line, admin_line, workers_line, store_line,
		user_line; /* in the file; 1 where it says nothing */
	size_t body_bytes_max;
	size_t unfinished_bytes_max; /* of the whole process, as are the next two */
	size_t held_bytes_max;       /* bodies of requests that wait for their answers */
	uint32_t connections_max;
	nsec_t drain;
	nsec_t reload_watch;                  /* 0: never */
	enum tls_name_kind certificates_by;   /* the names that lead to a tenant */
	const struct jwt_issuer *jwt_issuers; /* whose tokens are taken */
	const struct jwks_place *jwks;        /* of each */
	uint32_t jwt_issuer_count;
	struct slice
		public_url; /* how callers see the gateway, without a '/' at the end; absent: not said */
	/* What sessions of MCP servers are sealed with: the first seals, all open. Count 0: none was configured. */
	const struct seal_secret *seal_secrets;
	uint32_t seal_secret_count;
	const struct mcp_server *mcp_servers; /* by name, in the order of slice_order */
	uint32_t mcp_server_count;
	const struct slice *origins; /* allowed Origin values */
	uint32_t origin_count;
	uint32_t metrics_tenants;

	const struct provider *providers;
	uint32_t provider_count;
	const struct slice *model_versions; /* per model: anthropic-version in force */
	struct catalog catalog;
	struct tenants tenants;

	const struct config_file *files;
	uint32_t file_count;
	char digest[17];   /* hex, of all files' texts: names this configuration in logs and explain
			    */
	uint64_t loaded_s; /* wall clock */
};

/* How far a walk over endpoints has come; zeroed at first. */
struct config_walk {
	uint32_t owner, endpoint;
};

/* The next endpoint that calls may go to: of all providers, then of the MCP servers that are enabled. NULL: that
 * was the last one. */
const struct endpoint *config_next_endpoint(const struct config *config, struct config_walk *walk);

/* The MCP server of that name, enabled or not; of the snapshot's memory. NULL: there is none. */
const struct mcp_server *config_mcp_named(const struct config *config, struct slice name);

/* The same, where callers may reach it. NULL: there is none, or it is not enabled. */
const struct mcp_server *config_mcp_server(const struct config *config, struct slice name);

#endif
