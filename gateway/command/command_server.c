#include "gateway/command/command_server.h"

#include "codec/base/err.h"
#include "gateway/command/command_walk_parts.h"
#include "gateway/settings/settings_value.h"
#include "tenants/limit.h"

#include <inttypes.h>

enum { LABEL = 14, NUMBER_TEXT = 48 };

static const char *const mode_names[] = {
	[MCP_BACKFILL] = "backfill",
	[MCP_FORCE] = "force",
	[MCP_RELAY] = "relay",
	[MCP_REFUSE] = "refuse",
};

static const char *const mode_texts[] = {
	[MCP_BACKFILL] = "answered by the client if it declares the capability, else here",
	[MCP_FORCE] = "answered here, whatever the client declares",
	[MCP_RELAY] = "answered by the client; nothing is changed or answered here",
	[MCP_REFUSE] = "refused; the server sees no client that can sample",
};

static const char *const transport_names[] = {
	[MCP_AUTO] = "auto",
	[MCP_HTTP] = "http",
	[MCP_SSE] = "sse",
};

static const char *const transport_texts[] = {
	[MCP_AUTO] = "Streamable HTTP, or HTTP+SSE of 2024-11-05 if the server answers so",
	[MCP_HTTP] = "Streamable HTTP",
	[MCP_SSE] = "HTTP+SSE of 2024-11-05",
};

/* ---- what follows from the configuration ---- */

static bool answers_here(const struct mcp_server *server)
{
	return server->sampling == MCP_BACKFILL || server->sampling == MCP_FORCE;
}

static const char *credentials(const struct mcp_server *server)
{
	if (server->client_auth)
		return "client";
	return server->head.len != 0 ? "gateway" : "none";
}

/* In the order in which the front looks. ERR_OK: the tenant may use it. */
static enum err why_not(const struct mcp_server *server, const struct tenant *tenant)
{
	if (tenant->disabled)
		return ERR_UNAUTHORIZED;
	if ((tenant->plan->fronts & FRONT_MCP) == 0)
		return ERR_FRONT_FORBIDDEN;
	if (!server->enabled)
		return ERR_SERVER_UNKNOWN;
	return plan_may_use_mcp(tenant->plan, server->name) ? ERR_OK : ERR_SERVER_FORBIDDEN;
}

/* The capability that the gateway declares for a tenant's clients, from 2025-11-25 on; before, it is without tools.
 * NULL: none. */
static const char *declared(const struct mcp_server *server, const struct tenant *tenant)
{
	const struct plan *plan = plan_for(tenant->plan, server->name);

	if (!answers_here(server) || !bitset_any(&plan->models))
		return NULL;
	return plan->capabilities.tools ? "{\"tools\":{}}" : "{}";
}

/* How many models the tenant's plan permits for the server. */
static uint32_t models_of(const struct config *config, const struct mcp_server *server,
			  const struct tenant *tenant)
{
	const struct plan *plan = plan_for(tenant->plan, server->name);
	uint32_t count = 0;

	for (uint32_t i = 0; i < config->catalog.count; i++)
		count += bitset_has(&plan->models, i);
	return count;
}

/* What becomes of a sampling for a client that declares nothing. */
static const char *outcome(const struct mcp_server *server, const struct tenant *tenant)
{
	if (declared(server, tenant) != NULL)
		return "answered here";
	if (server->sampling == MCP_RELAY)
		return "the client's";
	return server->sampling == MCP_BACKFILL ? "the client's: no model is permitted"
	       : server->sampling == MCP_FORCE  ? "refused: no model is permitted"
						: "refused";
}

/* The next tenant that may use the server, from *at on, which advances. NULL: there is none. */
static const struct tenant *next_user(const struct config *config, const struct mcp_server *server,
				      size_t *at)
{
	while (*at < config->tenants.count) {
		const struct tenant *tenant = &config->tenants.tenants[(*at)++];
		if (why_not(server, tenant) == ERR_OK)
			return tenant;
	}
	return NULL;
}

/* ---- in words ---- */

static void label(const char *text)
{
	(void)printf("  %-*s ", LABEL, text);
}

static void print_place(const struct mcp_server *server, uint32_t number)
{
	const struct endpoint *endpoint = &server->endpoints[number];

	label(number == 0 ? "at" : "");
	walk_print_slice(endpoint->url);
	if (server->queries[number].len != 0)
		(void)fputs("?...", stdout); /* it may hold a key */
	(void)printf(server->endpoint_count > 1 ? ", weight %u\n" : "\n", endpoint->weight);
}

static void print_listeners(const struct config *config)
{
	const char *before = " (";

	for (uint32_t i = 0; i < config->listen_count; i++) {
		if ((config->listen[i].fronts & FRONT_MCP) == 0)
			continue;
		(void)fputs(before, stdout);
		walk_print_slice(config->listen[i].text);
		before = ", ";
	}
	(void)fputs(before[0] == ',' ? ")\n" : ": no listener has the front mcp\n", stdout);
}

static void print_samplings(const struct mcp_server *server)
{
	label("samplings");
	(void)printf("%s: %s\n", mode_names[server->sampling], mode_texts[server->sampling]);
	if (server->sampling == MCP_REFUSE || server->sampling == MCP_RELAY)
		return;
	label("");
	(void)fputs(server->unsolicited ? "taken also while the client has no call open\n"
					: "refused while the client has no call open\n",
		    stdout);
	label("fall-back");
	(void)fputs("if the server refuses what is declared: {} instead, and at last what the "
		    "client declares\n",
		    stdout);
}

static void print_head(const struct mcp_server *server)
{
	label("credentials");
	(void)fputs(server->client_auth ? "each user's own, from Sluice-Upstream-Authorization"
		    : server->head.len != 0
			    ? "the same for all callers, from authorization or headers"
			    : "none",
		    stdout);
	(void)fputs("\n", stdout);
	for (uint32_t i = 0; i < server->pass_header_count; i++) {
		label(i == 0 ? "pass_headers" : "");
		walk_print_slice(server->pass_headers[i]);
		(void)fputs("\n", stdout);
	}
}

static void print_timeouts(const struct mcp_server *server)
{
	char connect[NUMBER_TEXT], first[NUMBER_TEXT], idle[NUMBER_TEXT];

	value_format(TYPE_DURATION, server->timeouts.connect, connect, sizeof(connect));
	value_format(TYPE_DURATION, server->timeouts.first_byte, first, sizeof(first));
	value_format(TYPE_DURATION, server->timeouts.idle, idle, sizeof(idle));
	label("timeouts");
	(void)printf("connect %s, first_byte %s, idle %s\n", connect, first, idle);
	label("sessions");
	(void)printf("%" PRIu32 " at once\n", server->sessions);
}

static void print_user_count(const struct config *config, const struct mcp_server *server)
{
	size_t at = 0, count = 0;

	while (next_user(config, server, &at) != NULL)
		count++;
	label("used by");
	(void)printf("%zu of %zu tenants\n", count, config->tenants.count);
}

void server_print(const struct config *config, const struct mcp_server *server)
{
	(void)printf("mcp_servers.%.*s%s\n", (int)server->name.len, server->name.at,
		     server->enabled ? "" : ": is not enabled");
	label("callers ask");
	if (!slice_absent(config->public_url))
		walk_print_slice(config->public_url);
	(void)printf("/mcp/%.*s", (int)server->name.len, server->name.at);
	print_listeners(config);
	for (uint32_t i = 0; i < server->endpoint_count; i++)
		print_place(server, i);
	label("transport");
	(void)printf("%s: %s\n", transport_names[server->transport],
		     transport_texts[server->transport]);
	print_samplings(server);
	print_head(server);
	print_timeouts(server);
	print_user_count(config, server);
}

static void print_user(const struct config *config, const struct mcp_server *server,
		       const struct tenant *tenant)
{
	const enum err why = why_not(server, tenant);
	const char *tells = declared(server, tenant);

	(void)printf("%-32.*s ", (int)tenant->id.len, tenant->id.at);
	if (why != ERR_OK) {
		(void)printf("%-3s %s\n", "no", err_info(why)->reason);
		return;
	}
	(void)printf("%-3s %7" PRIu32 " %9" PRIu64 " %8" PRIu32 " %-12s %s\n", "yes",
		     models_of(config, server, tenant), tenant->plan->mcp_messages_per_minute,
		     tenant->plan->mcp_sessions, tells != NULL ? tells : "-",
		     outcome(server, tenant));
}

static void put_limit(const char *name, enum setting_type type, uint64_t value, uint64_t none)
{
	char text[NUMBER_TEXT];

	if (value == none)
		return;
	value_format(type, value, text, sizeof(text));
	(void)printf("\n  %s %s", name, text);
}

/* What bounds the samplings of the server beside the tenant's own limits. */
static void print_limits(const struct mcp_server *server, const struct tenant *tenant)
{
	const struct plan *plan = plan_for(tenant->plan, server->name);
	const struct tenant_limits *limits = &plan->server_limits;

	if (!plan->server_limited)
		return;
	(void)fputs("\nlimits of its samplings, beside the tenant's own:", stdout);
	put_limit("requests_per_minute", TYPE_COUNT, limits->requests.per_minute, 0);
	put_limit("tokens_per_minute", TYPE_COUNT, limits->tokens.per_minute, 0);
	put_limit("concurrent", TYPE_COUNT, limits->concurrent, UINT32_MAX);
	put_limit("usd_per_day", TYPE_USD, limits->usd_per_day, LIMIT_NONE);
	put_limit("usd_per_month", TYPE_USD, limits->usd_per_month, LIMIT_NONE);
	(void)fputs(limits->count_only ? "\n  which are counted, and refuse nothing\n" : "\n",
		    stdout);
}

void server_print_users(const struct config *config, const struct mcp_server *server,
			const struct tenant *only)
{
	size_t at = 0;

	(void)printf("\n%-32s %-3s %7s %9s %8s %-12s %s\n", "tenant", "may", "models", "messages/m",
		     "sessions", "declared", "samplings of clients that declare nothing");
	if (only != NULL) {
		print_user(config, server, only);
		print_limits(server, only);
		return;
	}
	for (const struct tenant *tenant = next_user(config, server, &at); tenant != NULL;
	     tenant = next_user(config, server, &at))
		print_user(config, server, tenant);
}

/* ---- in JSON ---- */

static void json_models(struct walk *walk, const struct plan *plan)
{
	const char *before = "";

	(void)fputs(",\"models\":[", stdout);
	for (uint32_t i = 0; i < walk->config->catalog.count; i++) {
		if (!bitset_has(&plan->models, i))
			continue;
		(void)fputs(before, stdout);
		walk_print_string(walk, walk->config->catalog.models[i].id);
		before = ",";
	}
	(void)fputs("]", stdout);
}

static void json_user(struct walk *walk, const struct mcp_server *server,
		      const struct tenant *tenant)
{
	const enum err why = why_not(server, tenant);
	const char *tells = declared(server, tenant);

	(void)fputs("{\"tenant\":", stdout);
	walk_print_string(walk, tenant->id);
	(void)printf(",\"verdict\":\"%s\"", why == ERR_OK ? "permits" : "refuses");
	if (why != ERR_OK)
		(void)printf(",\"reason\":\"%s\"", err_info(why)->reason);
	json_models(walk, plan_for(tenant->plan, server->name));
	(void)printf(",\"mcp_messages_per_minute\":%" PRIu64 ",\"mcp_sessions\":%" PRIu32
		     ",\"declared\":%s}",
		     tenant->plan->mcp_messages_per_minute, tenant->plan->mcp_sessions,
		     tells != NULL ? tells : "null");
}

static void json_users(struct walk *walk, const struct mcp_server *server,
		       const struct tenant *only)
{
	size_t at = 0;

	(void)fputs(",\"tenants\":[", stdout);
	if (only != NULL) {
		json_user(walk, server, only);
	} else {
		const char *before = "";
		for (const struct tenant *tenant = next_user(walk->config, server, &at);
		     tenant != NULL; tenant = next_user(walk->config, server, &at)) {
			(void)fputs(before, stdout);
			json_user(walk, server, tenant);
			before = ",";
		}
	}
	(void)fputs("]", stdout);
}

static void json_endpoints(struct walk *walk, const struct mcp_server *server)
{
	(void)fputs(",\"endpoints\":[", stdout);
	for (uint32_t i = 0; i < server->endpoint_count; i++) {
		(void)fputs(i == 0 ? "{\"url\":" : ",{\"url\":", stdout);
		walk_print_string(walk, server->endpoints[i].url);
		(void)printf(",\"weight\":%u}", server->endpoints[i].weight);
	}
	(void)fputs("]", stdout);
}

void server_print_json(struct walk *walk, const struct mcp_server *server,
		       const struct tenant *only)
{
	(void)fputs("{\"name\":", stdout);
	walk_print_string(walk, server->name);
	(void)printf(",\"enabled\":%s,\"public_url\":", server->enabled ? "true" : "false");
	walk_print_string(walk, walk->config->public_url);
	json_endpoints(walk, server);
	(void)printf(",\"transport\":\"%s\",\"sampling\":\"%s\",\"unsolicited\":\"%s\","
		     "\"credentials\":\"%s\",\"sessions\":%" PRIu32,
		     transport_names[server->transport], mode_names[server->sampling],
		     server->unsolicited ? "allow" : "refuse", credentials(server),
		     server->sessions);
	json_users(walk, server, only);
	(void)fputs("}", stdout);
}
