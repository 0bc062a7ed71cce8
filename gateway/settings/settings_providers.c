/* settings_providers.c - forms to configuration: providers, their endpoints and how these are judged. */
#include "codec/dialects.h"
#include "gateway/settings/settings_loader.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"
#include "gateway/providers/provider_head.h"
#include "gateway/settings/settings_url.h"

#include <stdarg.h>

static struct slice keep_format(struct loader *l, const char *format, ...) PRINTF_LIKE(2, 3);

static struct slice keep_format(struct loader *l, const char *format, ...)
{
	char text[1024];
	va_list args;

	va_start(args, format);
	int len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	must(len >= 0 && (size_t)len < sizeof(text)); /* hosts are bounded */
	return loader_keep(l, slice_of(text, (size_t)len));
}

static bool ends_with(struct slice s, struct slice end)
{
	return s.len >= end.len && slice_eq(slice_of(s.at + s.len - end.len, end.len), end);
}

void loader_name_endpoint(struct loader *l, const struct url_parts *parts, struct endpoint *out)
{
	char ca[65] = "";
	uint8_t digest[SHA256_BYTES];
	const char *open = parts->ipv6 ? "[" : "", *close = parts->ipv6 ? "]" : "";

	out->tls = parts->tls;
	out->port = parts->port;
	out->host = loader_keep_lower(l, parts->host);
	if (slice_absent(out->host))
		return;
	if (parts->port == (parts->tls ? 443 : 80))
		out->authority = keep_format(l, "%s%s%s", open, out->host.at, close);
	else
		out->authority =
			keep_format(l, "%s%s%s:%u", open, out->host.at, close, parts->port);
	if (!slice_absent(out->ca_pem)) {
		sha256(out->ca_pem, digest);
		sha256_hex(digest, 64, ca);
	}
	out->identity = keep_format(l, "%s|%s|%u|%s", parts->tls ? "https" : "http", out->host.at,
				    parts->port, ca);
}

static void build_endpoint(struct loader *l, const struct endpoint_form *form,
			   const struct provider *provider, struct endpoint *out)
{
	const struct node *node = node_find(form->node, "url");
	struct slice end = slice_str(dialect_get(provider->dialect)->path);
	struct url_parts parts;

	out->weight = (uint32_t)form->weight;
	out->zone = loader_keep(l, form->zone);
	out->concurrent = form->concurrent == FORM_UNSET ? UINT32_MAX : (uint32_t)form->concurrent;
	out->queue = (uint32_t)form->queue;
	out->queue_deadline = form->queue_deadline == FORM_UNSET ? 0 : form->queue_deadline;
	if (slice_absent(form->url))
		return;
	const char *wrong = url_parse(form->url, &parts);
	if (wrong != NULL) {
		problem_at(&l->problems, node, "%s", wrong);
		return;
	}
	if (ends_with(parts.path, end)) {
		problem_at(&l->problems, node,
			   "ends in %.*s, which is appended for every call; leave that out",
			   (int)end.len, end.at);
		return;
	}
	if (!parts.tls && !slice_absent(out->ca_path))
		problem_at(&l->problems, node,
			   "is not https, and its provider has a ca; write https:// or remove ca");
	out->url = loader_keep(l, form->url);
	out->path = loader_keep(l, parts.path);
	loader_name_endpoint(l, &parts, out);
	out->head = provider_head_begin(provider, out, &l->config->arena);
	if (slice_absent(out->head))
		loader_out_of_memory(l);
}

void loader_ca(struct loader *l, const struct node *parent, struct slice ca, struct slice *path,
	       struct slice *pem)
{
	static const char mark[] = "-----BEGIN CERTIFICATE-----";

	if (slice_absent(ca))
		return;
	const struct node *node = node_find(parent, "ca");
	*path = loader_path(l, node, ca);
	if (slice_absent(*path) || !loader_file(l, node, *path, FILE_CA_MAX, pem))
		return;
	if (memmem(pem->at, pem->len, mark, sizeof(mark) - 1) == NULL)
		problem_at(&l->problems, node,
			   "%.*s holds no certificate; name a PEM file with \"%s\"", (int)path->len,
			   path->at, mark);
	else
		loader_try_ca(l, node, *path, *pem);
}

static void build_dialect(struct loader *l, const struct provider_form *form, struct provider *out)
{
	if (form->dialect == FORM_UNSET)
		return; /* reported when it was read */
	const struct dialect *dialect = dialect_get((enum dialect_id)form->dialect);
	out->dialect = dialect->id;
	if (slice_absent(form->version))
		out->version = slice_str(dialect->version);
	else if (!slice_absent(dialect->version_header))
		out->version = loader_keep(l, form->version);
	else
		problem_below(&l->problems, form->node, "version",
			      "has no meaning for this dialect; remove it");
}

/* Names by which keys are sent, in the order of the setting's choices. */
static const char *const key_headers[] = { "authorization: Bearer ", "x-api-key: ", "api-key: " };

static const char *key_header(const struct provider_form *form, const struct provider *provider)
{
	if (form->key_header == FORM_UNSET)
		return dialect_get(provider->dialect)->key_header;
	must(form->key_header < COUNT_OF(key_headers));
	return key_headers[form->key_header];
}

/* What may stand in a request line behind a '?'. */
static bool is_query(struct slice text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.at[i] <= ' ' || (unsigned char)text.at[i] >= 0x7f ||
		    text.at[i] == '#' || text.at[i] == '"')
			return false;
	return text.len > 0 && text.at[0] != '?';
}

static struct slice build_query(struct loader *l, const struct provider_form *form)
{
	if (slice_absent(form->query))
		return SLICE("");
	if (!is_query(form->query))
		problem_below(&l->problems, form->node, "query",
			      "is not the query of a URL; write one without its ?, such as "
			      "api-version=2024-10-21");
	char *bytes = loader_zero(l, &l->config->arena, (uint32_t)form->query.len + 1, 1);
	if (bytes == NULL)
		return SLICE("");
	bytes[0] = '?';
	(void)memcpy(bytes + 1, form->query.at, form->query.len);
	return slice_of(bytes, form->query.len + 1);
}

static void build_refused(struct loader *l, const struct provider_form *form, struct provider *out)
{
	static const struct slice needed[] = { SLICE_INIT("model"), SLICE_INIT("messages") };

	for (uint32_t i = 0; i < form->refused.count; i++) {
		const struct slice name = form->refused.at[i];
		if (name.len > API_NAME_MAX)
			problem_below(&l->problems, form->node, "direct.refuse",
				      "has a name of %zu bytes; write at most %d", name.len,
				      API_NAME_MAX);
		for (size_t j = 0; j < COUNT_OF(needed); j++)
			if (slice_eq(name, needed[j]))
				problem_below(&l->problems, form->node, "direct.refuse",
					      "has %.*s, which every request needs; remove it",
					      (int)name.len, name.at);
	}
	out->refused = loader_keep_list(l, &form->refused);
	out->refused_count = form->refused.count;
}

static void build_breaker(struct loader *l, const struct provider_form *form,
			  struct provider_breaker *out)
{
	*out = (struct provider_breaker){
		.failures = (uint32_t)form->breaker_failures,
		.ratio = form->breaker_ratio,
		.calls = (uint32_t)form->breaker_calls,
		.window = form->breaker_window,
		.open = form->breaker_open,
		.open_max = form->breaker_open_max,
		.slow_start = form->breaker_slow_start,
	};
	if (out->open > out->open_max)
		problem_below(&l->problems, form->node, "breaker.open_max",
			      "is shorter than breaker.open; write one that is not");
}

/* What may stand in a request line. */
static bool is_target(struct slice path)
{
	for (size_t i = 0; i < path.len; i++)
		if ((unsigned char)path.at[i] <= ' ' || (unsigned char)path.at[i] >= 0x7f ||
		    path.at[i] == '#')
			return false;
	return path.len > 0 && path.at[0] == '/';
}

static uint64_t set_or(uint64_t value, uint64_t preset)
{
	return value == FORM_UNSET ? preset : value;
}

static void build_check(struct loader *l, const struct provider_form *form,
			struct provider_check *out)
{
	*out = (struct provider_check){
		.path = loader_keep(l, form->check_path),
		.interval = set_or(form->check_interval, 5 * SEC),
		.timeout = set_or(form->check_timeout, 2 * SEC),
		.unhealthy = (uint32_t)set_or(form->check_unhealthy, 3),
		.healthy = (uint32_t)set_or(form->check_healthy, 2),
	};
	if (!slice_absent(form->check_path) && !is_target(form->check_path))
		problem_below(&l->problems, form->node, "check.path",
			      "is not the path of a URL; write one such as /health");
	else if (slice_absent(form->check_path) && node_find(form->node, "check") != NULL &&
		 node_find(form->node, "check.path") == NULL)
		problem_below(&l->problems, form->node, "check",
			      "has no path: nothing would be checked; write path: /health, or "
			      "remove it");
}

static void build_provider(struct loader *l, const struct provider_form *form, struct provider *out)
{
	struct slice ca_path = { NULL, 0 }, ca_pem = { NULL, 0 };
	const struct endpoint_form *endpoints = form->endpoints.at;
	struct endpoint *made =
		loader_zero(l, &l->config->arena, form->endpoints.count, sizeof(*made));

	out->name = loader_keep(l, form->node->key);
	out->enabled = form->enabled != 0;
	build_dialect(l, form, out);
	out->timeouts = (struct provider_timeouts){
		.connect = form->connect,
		.first_byte = form->first_byte,
		.idle = form->idle,
		.total = form->total,
	};
	build_breaker(l, form, &out->breaker);
	build_check(l, form, &out->check);
	out->keys = loader_keep_list(l, &form->keys);
	out->key_count = form->keys.count;
	out->key_header = key_header(form, out);
	out->query = build_query(l, form);
	build_refused(l, form, out);
	loader_ca(l, form->node, form->ca, &ca_path, &ca_pem);
	if (made == NULL)
		return;
	for (uint32_t i = 0; i < form->endpoints.count; i++) {
		made[i].ca_path = ca_path;
		made[i].ca_pem = ca_pem;
		build_endpoint(l, &endpoints[i], out, &made[i]);
	}
	out->endpoints = made;
	out->endpoint_count = form->endpoints.count;
}

void loader_build_providers(struct loader *l, const struct main_form *form)
{
	const struct provider_form *forms = form->providers.at;
	struct provider *out =
		loader_zero(l, &l->config->arena, form->providers.count, sizeof(*out));

	if (out == NULL)
		return;
	for (uint32_t i = 0; i < form->providers.count && !l->failed; i++)
		build_provider(l, &forms[i], &out[i]);
	l->config->providers = out;
	l->config->provider_count = form->providers.count;
}
