/* mcp_oauth.c - where a client learns who issues tokens for a server (RFC 9728; mcp-proxy.md 9.1).
 *
 * All of it comes from the configuration, nothing from the request's Host: else a request could be made to name a
 * stranger's issuer. */
#include "gateway/front/mcp/mcp.h"

static const struct slice well_known = SLICE_INIT("/.well-known/oauth-protected-resource");

bool mcp_oauth_on(const struct config *config)
{
	return !slice_absent(config->public_url) && config->jwt_issuer_count != 0;
}

struct slice mcp_resource(const struct config *config, struct slice name, struct arena *into)
{
	struct gather text;

	gather_init(&text, into);
	gather_raw(&text, config->public_url);
	gather_lit(&text, "/mcp/");
	gather_raw(&text, name);
	return gather_done(&text) == ERR_OK ? gather_flat(&text, into) : slice_of(NULL, 0);
}

struct slice mcp_challenge(struct mcp_request *request)
{
	const struct config *config = request->host->config;
	const struct slice plain =
		request->bad_token ? SLICE("Bearer error=\"invalid_token\"") : SLICE("Bearer");
	struct gather text;

	if (!mcp_oauth_on(config) || config_mcp_server(config, request->name) == NULL)
		return plain;
	gather_init(&text, &request->arena);
	gather_raw(&text, plain);
	gather_raw(&text, request->bad_token ? SLICE(", ") : SLICE(" "));
	gather_lit(&text, "resource_metadata=\"");
	gather_raw(&text, config->public_url);
	gather_raw(&text, well_known);
	gather_lit(&text, "/mcp/");
	gather_raw(&text, request->name);
	gather_lit(&text, "\"");
	const struct slice whole = gather_done(&text) == ERR_OK
					   ? gather_flat(&text, &request->arena)
					   : slice_of(NULL, 0);
	return slice_absent(whole) ? plain : whole;
}

static void write_metadata(struct gather *body, const struct config *config,
			   const struct mcp_server *server)
{
	gather_lit(body, "{\"resource\":\"");
	gather_escaped(body, config->public_url);
	gather_lit(body, "/mcp/");
	gather_escaped(body, server->name);
	gather_lit(body, "\",\"authorization_servers\":[");
	for (uint32_t i = 0; i < config->jwt_issuer_count; i++) {
		if (i != 0)
			gather_lit(body, ",");
		gather_plain(body, config->jwt_issuers[i].issuer);
	}
	gather_lit(body, "],\"bearer_methods_supported\":[\"header\"]}");
}

/* The server that a path asks about; NULL: none. */
static const struct mcp_server *asked_for(const struct front_host *host,
					  const struct http_incoming *in)
{
	static const struct slice prefix = SLICE_INIT("/.well-known/oauth-protected-resource/mcp/");

	if (!mcp_oauth_on(host->config) || !slice_starts(in->path, prefix))
		return NULL;
	return config_mcp_server(host->config,
				 slice_of(in->path.at + prefix.len, in->path.len - prefix.len));
}

static void answer(struct http_exchange *exchange, int status, struct slice body)
{
	const struct http_field fields[] = {
		{ SLICE("access-control-allow-origin"), SLICE("*") },
		{ SLICE("content-type"), SLICE("application/json") },
		{ SLICE("cache-control"), SLICE("max-age=300") },
	};

	http_refuse(exchange, status, fields, body.len != 0 ? COUNT_OF(fields) : 1, body);
}

/* A page of any origin may read it, and send whatever header. */
static void answer_browser(struct http_exchange *exchange)
{
	static const struct http_field fields[] = {
		{ SLICE_INIT("access-control-allow-origin"), SLICE_INIT("*") },
		{ SLICE_INIT("access-control-allow-methods"), SLICE_INIT("GET") },
		{ SLICE_INIT("access-control-allow-headers"), SLICE_INIT("*, Authorization") },
		{ SLICE_INIT("access-control-max-age"), SLICE_INIT("600") },
	};

	http_refuse(exchange, 204, fields, COUNT_OF(fields), SLICE(""));
}

/* Whoever asks: the document is public. */
static void *on_begin(struct front_host *host, struct http_exchange *exchange,
		      const struct http_incoming *in, bool found)
{
	const struct mcp_server *server = found ? asked_for(host, in) : NULL;
	struct arena arena;
	struct gather body;

	if (slice_eq(in->method, SLICE("OPTIONS"))) {
		answer_browser(exchange);
		return NULL;
	}
	if (!slice_eq(in->method, SLICE("GET"))) {
		answer(exchange, 405, SLICE(""));
		return NULL;
	}
	if (server == NULL) {
		answer(exchange, 404, SLICE(""));
		return NULL;
	}
	arena_init(&arena, host->arenas, REQUEST_ARENA_MAX);
	gather_init(&body, &arena);
	write_metadata(&body, host->config, server);
	const struct slice text =
		gather_done(&body) == ERR_OK ? gather_flat(&body, &arena) : slice_of(NULL, 0);
	answer(exchange, slice_absent(text) ? 503 : 200, slice_absent(text) ? SLICE("") : text);
	arena_give(&arena);
	return NULL;
}

/* A GET has no body worth waiting for. */
static bool on_expects(struct front_host *host, struct http_early *early,
		       const struct http_incoming *in, bool found)
{
	(void)host;
	(void)in;
	(void)found;
	http_refuse_early(early, 417, NULL, 0, SLICE(""));
	return false;
}

static void never(void *request)
{
	(void)request; /* each answer leaves as a copy: nothing is kept of the request */
}

const struct front mcp_oauth_front = {
	.record_bytes = sizeof(struct front_request),
	.begin = on_begin,
	.expects = on_expects,
	.gone = never,
	.sent = never,
};
