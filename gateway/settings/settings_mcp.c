/* settings_mcp.c - MCP servers, what is said of the gateway for their sessions, and which fronts there are. */
#include "gateway/settings/settings_loader.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"
#include "gateway/settings/settings_url.h"
#include "tenants/base64url.h"
#include "tenants/globs.h"

#include <stdlib.h>

/* Calls to a server that may wait for a connection, as of a provider's endpoint that says nothing. */
enum { QUEUE = 4096 };

/* The node of an item for messages; that of the list where items were left out, which was reported. */
static const struct node *item_node(const struct node *list, const struct form_values *values,
				    uint32_t i)
{
	const struct node *item = list->first;

	if (list->count != values->count)
		return list;
	while (i-- > 0)
		item = item->next;
	return item;
}

/* ---- fronts ---- */

uint8_t loader_fronts(struct loader *l, const struct form_values *names, const struct node *parent)
{
	const struct node *node = parent == NULL ? NULL : node_find(parent, "fronts");
	uint8_t bits = 0;

	if (node != NULL && node->kind == NODE_LIST && node->count == 0)
		problem_at(&l->problems, node,
			   "names none; write a list of sampling, mcp or direct, or remove it");
	for (uint32_t i = 0; i < names->count; i++)
		bits |= front_bit(names->at[i]);
	return bits == 0 ? FRONTS_ALL : bits;
}

/* ---- how callers see the gateway ---- */

static void build_public_url(struct loader *l, const struct main_form *form)
{
	struct url_parts parts;

	if (slice_absent(form->public_url))
		return;
	const char *wrong = url_parse(form->public_url, &parts);
	if (wrong != NULL) {
		problem_at(&l->problems, node_find(form->node, "public_url"), "%s", wrong);
		return;
	}
	const size_t len = (size_t)(parts.path.at + parts.path.len - form->public_url.at);
	l->config->public_url = loader_keep(l, slice_of(form->public_url.at, len));
}

/* ---- seal keys ---- */

/* Base64 as most programs print it, or base64url; with or without padding. NULL, or what is wrong. */
static const char *read_secret(struct slice text, struct seal_secret *out)
{
	static const char other_length[] = "is not of 32 bytes";
	uint8_t room[2 * SEAL_SECRET_BYTES];
	char digits[2 * sizeof(room)];
	size_t len = text.len;

	while (text.len % 4 == 0 && text.len - len < 2 && text.at[len - 1] == '=')
		len--;
	if (len > sizeof(digits))
		return other_length;
	for (size_t i = 0; i < len; i++)
		digits[i] = (char)(text.at[i] == '+' ? '-' : text.at[i] == '/' ? '_' : text.at[i]);
	const size_t bytes = base64url_decode(slice_of(digits, len), room, sizeof(room));
	if (bytes == SEAL_SECRET_BYTES)
		(void)memcpy(out->at, room, sizeof(out->at));
	explicit_bzero(digits, sizeof(digits));
	explicit_bzero(room, sizeof(room));
	if (bytes == SIZE_MAX)
		return "is not base64";
	return bytes == SEAL_SECRET_BYTES ? NULL : other_length;
}

static void build_seal_keys(struct loader *l, const struct main_form *form)
{
	const struct form_values *keys = &form->seal_keys;
	const struct node *list = node_find(form->node, "seal_keys");
	struct seal_secret *made =
		loader_zero(l, &l->config->arena, keys->count, sizeof(struct seal_secret));

	for (uint32_t i = 0; made != NULL && i < keys->count; i++) {
		const struct node *node = item_node(list, keys, i);
		const char *wrong = read_secret(keys->at[i], &made[i]);
		if (wrong != NULL)
			problem_at(&l->problems, node,
				   "%s; write 32 random bytes in base64, as `openssl rand -base64 "
				   "32` prints them",
				   wrong);
		for (uint32_t j = 0; wrong == NULL && j < i; j++)
			if (memcmp(made[i].at, made[j].at, sizeof(made[i].at)) == 0)
				problem_at(&l->problems, node,
					   "is the same as the one at place %u; remove one", j);
	}
	l->config->seal_secrets = made;
	l->config->seal_secret_count = made == NULL ? 0 : keys->count;
}

/* ---- headers ---- */

/* Whose business a header of a request to a server is. */
enum header_kind {
	HEADER_FREE,
	HEADER_WRITTEN,
	HEADER_HOP,
	HEADER_PASSED,
	HEADER_SET_MAX = HEADER_PASSED, /* up to here, none that the configuration may set */
	HEADER_CREDENTIAL,
	HEADER_ORIGIN
};

static const char *const header_words[] = {
	[HEADER_WRITTEN] = "is written by the gateway itself",
	[HEADER_HOP] = "is about a single connection",
	[HEADER_PASSED] = "goes on from callers' requests by itself",
	[HEADER_CREDENTIAL] = "is what callers authenticate with, which never goes on",
	[HEADER_ORIGIN] = "is judged here and never goes on",
};

/* `name` is in lower case. */
static enum header_kind header_kind(struct slice name)
{
	static const struct {
		struct slice glob;
		enum header_kind kind;
	} kinds[] = {
		{ SLICE_INIT("host"), HEADER_WRITTEN },
		{ SLICE_INIT("content-*"), HEADER_WRITTEN },
		{ SLICE_INIT("accept"), HEADER_WRITTEN },
		{ SLICE_INIT("accept-encoding"), HEADER_WRITTEN },
		{ SLICE_INIT("mcp-session-id"), HEADER_WRITTEN },
		{ SLICE_INIT("connection"), HEADER_HOP },
		{ SLICE_INIT("keep-alive"), HEADER_HOP },
		{ SLICE_INIT("proxy-*"), HEADER_HOP },
		{ SLICE_INIT("te"), HEADER_HOP },
		{ SLICE_INIT("trailer"), HEADER_HOP },
		{ SLICE_INIT("transfer-encoding"), HEADER_HOP },
		{ SLICE_INIT("upgrade"), HEADER_HOP },
		{ SLICE_INIT("http2-settings"), HEADER_HOP },
		{ SLICE_INIT("expect"), HEADER_HOP },
		{ SLICE_INIT("mcp-*"), HEADER_PASSED },
		{ SLICE_INIT("last-event-id"), HEADER_PASSED },
		{ SLICE_INIT("traceparent"), HEADER_PASSED },
		{ SLICE_INIT("tracestate"), HEADER_PASSED },
		{ SLICE_INIT("baggage"), HEADER_PASSED },
		{ SLICE_INIT("user-agent"), HEADER_PASSED },
		{ SLICE_INIT("authorization"), HEADER_CREDENTIAL },
		{ SLICE_INIT("cookie"), HEADER_CREDENTIAL },
		{ SLICE_INIT("x-api-key"), HEADER_CREDENTIAL },
		{ SLICE_INIT("sluice-*"), HEADER_CREDENTIAL },
		{ SLICE_INIT("origin"), HEADER_ORIGIN },
	};

	for (size_t i = 0; i < COUNT_OF(kinds); i++)
		if (slice_glob(kinds[i].glob, name))
			return kinds[i].kind;
	return HEADER_FREE;
}

static bool is_among(const struct slice *names, uint32_t count, struct slice name)
{
	for (uint32_t i = 0; i < count; i++)
		if (slice_eq(names[i], name))
			return true;
	return false;
}

static void build_pass_headers(struct loader *l, const struct mcp_server_form *form,
			       struct mcp_server *out)
{
	const struct form_values *names = &form->pass_headers;
	const struct node *list = node_find(form->node, "pass_headers");
	struct slice *made = loader_zero(l, &l->config->arena, names->count, sizeof(*made));

	for (uint32_t i = 0; made != NULL && i < names->count; i++) {
		made[i] = loader_keep_lower(l, names->at[i]);
		if (slice_absent(made[i]))
			return;
		const enum header_kind kind = header_kind(made[i]);
		if (kind != HEADER_FREE)
			problem_at(&l->problems, item_node(list, names, i), "%.*s %s; remove it",
				   (int)names->at[i].len, names->at[i].at, header_words[kind]);
		else if (is_among(made, i, made[i]))
			problem_at(&l->problems, item_node(list, names, i),
				   "%.*s is there already; remove one", (int)names->at[i].len,
				   names->at[i].at);
	}
	out->pass_headers = made;
	out->pass_header_count = made == NULL ? 0 : names->count;
}

static char *put_line(char *at, struct slice name, struct slice value)
{
	at = mempcpy(mempcpy(at, name.at, name.len), ": ", 2);
	return mempcpy(mempcpy(at, value.at, value.len), "\r\n", 2);
}

/* NULL, or why the configuration may not set that header. */
static const char *header_fault(const struct mcp_server_form *form, const struct mcp_server *server,
				const struct slice *before, uint32_t count, struct slice name)
{
	const enum header_kind kind = header_kind(name);

	if (kind != HEADER_FREE && kind <= HEADER_SET_MAX)
		return header_words[kind];
	if (is_among(before, count, name))
		return "is there already";
	if (is_among(server->pass_headers, server->pass_header_count, name))
		return "is among pass_headers, too";
	if (!slice_eq(name, SLICE("authorization")))
		return NULL;
	if (server->client_auth)
		return "has no meaning with auth: client";
	return slice_absent(form->authorization) ? NULL : "is said by authorization, too";
}

/* What is configured as lines of a head. */
static void build_head(struct loader *l, const struct mcp_server_form *form, struct mcp_server *out)
{
	static const struct slice authorization = SLICE_INIT("authorization");
	const struct form_pairs *pairs = &form->headers;
	struct slice *names = loader_zero(l, &l->scratch, pairs->count, sizeof(*names));
	size_t len = authorization.len + form->authorization.len + 4;

	for (uint32_t i = 0; names != NULL && i < pairs->count; i++) {
		names[i] = loader_keep_lower(l, pairs->at[i].node->key);
		if (slice_absent(names[i]))
			return;
		const char *fault = header_fault(form, out, names, i, names[i]);
		if (fault != NULL)
			problem_at(&l->problems, pairs->at[i].node, "%s; remove it", fault);
		len += names[i].len + pairs->at[i].value.len + 4;
	}
	if (out->client_auth && !slice_absent(form->authorization))
		problem_below(&l->problems, form->node, "authorization",
			      "has no meaning with auth: client; remove it");
	char *text = names == NULL ? NULL : loader_zero(l, &l->config->arena, len, 1), *at = text;
	if (text == NULL)
		return;
	if (!slice_absent(form->authorization))
		at = put_line(at, authorization, form->authorization);
	for (uint32_t i = 0; i < pairs->count; i++)
		at = put_line(at, names[i], pairs->at[i].value);
	must((size_t)(at - text) <= len);
	out->head = slice_of(text, (size_t)(at - text));
}

/* ---- servers ---- */

/* ca_path and ca_pem of *out are set. */
static void build_place(struct loader *l, const struct node *parent, struct slice url,
			struct endpoint *out, struct slice *query)
{
	const struct node *node = node_find(parent, "url");
	struct url_parts parts;

	out->concurrent = UINT32_MAX;
	out->queue = QUEUE;
	if (slice_absent(url))
		return; /* reported when it was read */
	const char *wrong = url_parse_exact(url, &parts);
	if (wrong != NULL) {
		problem_at(&l->problems, node, "%s", wrong);
		return;
	}
	if (!parts.tls && !slice_absent(out->ca_path))
		problem_at(&l->problems, node,
			   "is not https, and its server has a ca; write https:// or remove ca");
	out->url = loader_keep(l, slice_of(url.at, url.len - parts.query.len));
	out->path = parts.path.len == 0 ? SLICE("/") : loader_keep(l, parts.path);
	*query = loader_keep(l, parts.query);
	loader_name_endpoint(l, &parts, out);
}

/* One of the two ways to say where a server is. */
static bool check_where(struct loader *l, const struct mcp_server_form *form)
{
	const bool url = node_find(form->node, "url") != NULL;
	const bool endpoints = node_find(form->node, "endpoints") != NULL;

	if (url && endpoints)
		problem_below(&l->problems, form->node, "url",
			      "stands beside endpoints; keep one of them");
	else if (!url && !endpoints)
		problem_below(&l->problems, form->node, "url",
			      "is missing; write where the server is, or endpoints");
	return url != endpoints;
}

/* What names the endpoint in tokens. */
static void digest_place(const struct endpoint *endpoint, struct slice query,
			 uint8_t out[CONFIG_ENDPOINT_DIGEST])
{
	uint8_t whole[SHA256_BYTES];
	struct sha256_sum sum;

	sha256_begin(&sum);
	sha256_add(&sum, endpoint->identity);
	sha256_add(&sum, endpoint->path);
	sha256_add(&sum, query);
	sha256_end(&sum, whole);
	(void)memcpy(out, whole, CONFIG_ENDPOINT_DIGEST);
}

static void build_places(struct loader *l, const struct mcp_server_form *form,
			 struct mcp_server *out)
{
	const struct endpoint_form *forms = form->endpoints.at;
	struct slice ca_path = { NULL, 0 }, ca_pem = { NULL, 0 };

	loader_ca(l, form->node, form->ca, &ca_path, &ca_pem);
	if (!check_where(l, form))
		return;
	const bool alone = form->endpoints.count == 0;
	const uint32_t count = alone ? 1 : form->endpoints.count;
	struct endpoint *made = loader_zero(l, &l->config->arena, count, sizeof(*made));
	struct slice *queries = loader_zero(l, &l->config->arena, count, sizeof(*queries));
	uint8_t(*digests)[CONFIG_ENDPOINT_DIGEST] =
		loader_zero(l, &l->config->arena, count, sizeof(*digests));
	if (made == NULL || queries == NULL || digests == NULL)
		return;
	for (uint32_t i = 0; i < count; i++) {
		made[i].ca_path = ca_path;
		made[i].ca_pem = ca_pem;
		made[i].weight = 1;
		queries[i] = SLICE("");
		if (!alone && forms[i].weight != FORM_UNSET)
			made[i].weight = (uint32_t)forms[i].weight;
		if (!alone)
			made[i].zone = loader_keep(l, forms[i].zone);
		build_place(l, alone ? form->node : forms[i].node, alone ? form->url : forms[i].url,
			    &made[i], &queries[i]);
		digest_place(&made[i], queries[i], digests[i]);
	}
	out->endpoints = made;
	out->queries = queries;
	out->digests = digests;
	out->endpoint_count = count;
}

static void check_server_name(struct loader *l, const struct node *node)
{
	enum { NAME_MAX_BYTES = 64 };
	const struct slice name = node->key;
	bool fit = name.len <= NAME_MAX_BYTES && !slice_eq(name, SLICE(".")) &&
		   !slice_eq(name, SLICE("..")); /* clients take those two out of a path */

	for (size_t i = 0; fit && i < name.len; i++) {
		const char c = name.at[i], low = (char)(c | 0x20);
		fit = (low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
		      c == '.' || c == '-';
	}
	if (!fit)
		problem_at(&l->problems, node,
			   "is no name for a path; write 1 to 64 letters, digits, _, . or -");
}

static void build_server(struct loader *l, const struct mcp_server_form *form,
			 struct mcp_server *out)
{
	_Static_assert(MCP_AUTO == 0 && MCP_HTTP == 1 && MCP_SSE == 2 && MCP_BACKFILL == 0 &&
			       MCP_FORCE == 1 && MCP_RELAY == 2 && MCP_REFUSE == 3,
		       "the order of choices in tbl/settings.h");
	check_server_name(l, form->node);
	*out = (struct mcp_server){
		.name = loader_keep(l, form->node->key),
		.enabled = form->enabled != 0,
		.transport = (enum mcp_transport)form->transport,
		.sampling = (enum mcp_sampling_mode)form->sampling,
		.client_auth = form->auth == 1,
		.unsolicited = form->unsolicited == 0,
		.timeouts = { .connect = form->connect,
			      .first_byte = form->first_byte,
			      .idle = form->idle,
			      .total = NSEC_NEVER },
		.sessions = (uint32_t)form->sessions,
	};
	build_places(l, form, out);
	build_pass_headers(l, form, out);
	build_head(l, form, out);
}

static int by_name(const void *a, const void *b)
{
	return slice_order(((const struct mcp_server *)a)->name,
			   ((const struct mcp_server *)b)->name);
}

void loader_build_mcp(struct loader *l, const struct main_form *form)
{
	const struct mcp_server_form *forms = form->mcp_servers.at;
	const uint32_t count = form->mcp_servers.count;
	struct mcp_server *made = loader_zero(l, &l->config->arena, count, sizeof(*made));

	build_public_url(l, form);
	build_seal_keys(l, form);
	if (made == NULL)
		return;
	for (uint32_t i = 0; i < count && !l->failed; i++)
		build_server(l, &forms[i], &made[i]);
	if (l->failed)
		return;
	qsort(made, count, sizeof(*made), by_name);
	l->config->mcp_servers = made;
	l->config->mcp_server_count = count;
	if (l->warnings.out != NULL)
		l->mcp_allowed = loader_zero(l, &l->scratch, count, sizeof(*l->mcp_allowed));
}

/* ---- what is right, but hardly meant ---- */

void loader_note_mcp(struct loader *l, const struct plan *plan, const struct node *node)
{
	const struct config *config = l->config;

	if (l->mcp_allowed == NULL)
		return;
	if (node != NULL && plan->mcp_allow_count != 0 && (plan->fronts & FRONT_MCP) == 0)
		problem_below(&l->warnings, node, "fronts",
			      "lacks mcp, so that nobody reaches what mcp_servers.allow names; "
			      "add it");
	for (uint32_t i = 0; node != NULL && i < plan->mcp_allow_count; i++) {
		const struct slice name = plan->mcp_allow[i];
		if (!globs_is_one(name) && config_mcp_named(config, name) == NULL)
			problem_below(&l->warnings, node, "mcp_servers.allow",
				      "there is no MCP server %.*s; write a name under "
				      "mcp_servers, or a glob over names",
				      (int)name.len, name.at);
	}
	for (uint32_t i = 0; i < config->mcp_server_count; i++)
		l->mcp_allowed[i] =
			l->mcp_allowed[i] || plan_may_use_mcp(plan, config->mcp_servers[i].name);
}

static bool has_listener(const struct config *config)
{
	for (uint32_t i = 0; i < config->listen_count; i++)
		if ((config->listen[i].fronts & FRONT_MCP) != 0)
			return true;
	return false;
}

void loader_warn_of_mcp(struct loader *l, const struct main_form *form)
{
	const struct mcp_server_form *forms = form->mcp_servers.at;
	const struct config *config = l->config;

	if (l->mcp_allowed == NULL || l->problems.count != 0 || config->mcp_server_count == 0)
		return;
	if (config->store.redis && config->seal_secret_count == 0)
		problem_below(
			&l->warnings, form->node, "seal_keys",
			"is missing: no other gateway at this Redis, and none after a restart, "
			"knows the sessions of MCP servers; write the same keys for all");
	if (!has_listener(config))
		problem_below(&l->warnings, form->node, "mcp_servers",
			      "no listener has the front mcp, so that nobody reaches them; add it "
			      "to listen[].fronts");
	for (uint32_t i = 0; i < form->mcp_servers.count; i++) {
		const struct mcp_server *server = config_mcp_named(config, forms[i].node->key);
		must(server != NULL);
		if (server->enabled && !l->mcp_allowed[server - config->mcp_servers])
			problem_at(&l->warnings, forms[i].node,
				   "no plan allows it, so that nobody can reach it; name it in "
				   "mcp_servers.allow of a plan");
	}
}
