/* settings_build.c - forms to configuration: the process itself, providers, models. */
#include "gateway/settings_loader.h"

#include "codec/base/must.h"
#include "codec/base/sha256.h"
#include "gateway/settings_url.h"

#include <sched.h>
#include <stdarg.h>

_Static_assert(MAX_TOKENS_FIELD_MAX_TOKENS == 0 && MAX_TOKENS_FIELD_COMPLETION == 1,
	       "the order of choices in tbl/settings.h");
_Static_assert(ID_RULE_NONE == 0 && ID_RULE_MISTRAL9 == 1,
	       "the order of choices in tbl/settings.h");
_Static_assert(TLS_NAME_URI == 0 && TLS_NAME_DNS == 1, "the order of choices in tbl/settings.h");
_Static_assert((int)CATALOG_MODELS_MAX <= (int)BITSET_MAX, "plans name models by bit");

/* ---- the process ---- */

/* What the cgroup's quota leaves, rounded up; SIZE_MAX without one. */
static uint32_t quota_cpus(void)
{
	unsigned long long quota = 0, period = 0;
	FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");

	if (file == NULL)
		return UINT32_MAX;
	int fields = fscanf(file, "%llu %llu", &quota, &period); /* "max 100000" without a quota */
	(void)fclose(file);
	if (fields != 2 || period == 0 || quota / period >= UINT32_MAX)
		return UINT32_MAX;
	uint32_t cpus = (uint32_t)((quota + period - 1) / period);
	return cpus == 0 ? 1 : cpus;
}

static uint32_t usable_cpus(void)
{
	cpu_set_t set;
	uint32_t allowed = 1, quota = quota_cpus();

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
		allowed = (uint32_t)CPU_COUNT(&set);
	return allowed < quota ? allowed : quota;
}

static void build_address(struct loader *l, const struct node *node, struct slice text,
			  struct listen_address *out)
{
	struct slice host;
	const char *wrong = address_parse(text, &host, &out->port);

	if (wrong != NULL) {
		problem_at(&l->problems, node, "%s", wrong);
		return;
	}
	out->text = loader_keep(l, text);
	out->host = loader_keep(l, host);
}

static bool same_address(const struct listen_address *a, const struct listen_address *b)
{
	return !slice_absent(a->host) && slice_eq(a->host, b->host) && a->port == b->port;
}

static void build_listen(struct loader *l, const struct main_form *form)
{
	static const struct listen_address preset = { .text = SLICE_INIT("127.0.0.1:8080"),
						      .host = SLICE_INIT("127.0.0.1"),
						      .port = 8080 };
	const struct listen_form *forms = form->listen.at;
	uint32_t count = form->listen.count;
	struct listen_address *out =
		loader_zero(l, &l->config->arena, count == 0 ? 1 : count, sizeof(*out));

	if (out == NULL)
		return;
	l->config->listen = out;
	l->config->listen_count = count == 0 ? 1 : count;
	if (count == 0)
		out[0] = preset;
	for (uint32_t i = 0; i < count; i++) {
		const struct node *node = node_find(forms[i].node, "address");
		loader_build_tls(l, &forms[i], &out[i]);
		if (slice_absent(forms[i].address))
			continue;
		build_address(l, node, forms[i].address, &out[i]);
		for (uint32_t j = 0; j < i; j++)
			if (same_address(&out[i], &out[j]))
				problem_at(&l->problems, node,
					   "is the same as that of line %u; remove one",
					   node_find(forms[j].node, "address")->line);
	}
}

static void build_admin(struct loader *l, const struct main_form *form)
{
	struct config *config = l->config;
	const struct node *node;

	if (!slice_absent(form->admin_socket)) {
		node = node_find(form->node, "admin.socket");
		config->admin_socket = loader_path(l, node, form->admin_socket);
		if (config->admin_socket.len > 107)
			problem_at(&l->problems, node,
				   "is %zu bytes long with its directory; write a path of at most "
				   "107",
				   config->admin_socket.len);
	}
	if (slice_absent(form->admin_address))
		return;
	node = node_find(form->node, "admin.address");
	build_address(l, node, form->admin_address, &config->admin);
	for (uint32_t i = 0; i < config->listen_count; i++)
		if (same_address(&config->admin, &config->listen[i])) {
			problem_at(&l->problems, node,
				   "is also a public address; write another port");
			return;
		}
}

static const struct slice *keep_list(struct loader *l, const struct form_values *list)
{
	struct slice *out = loader_zero(l, &l->config->arena, list->count, sizeof(*out));

	for (uint32_t i = 0; out != NULL && i < list->count; i++)
		out[i] = loader_keep(l, list->at[i]);
	return out;
}

/* Every attempt that begins before the drain can end within it. */
static nsec_t drain_default(const struct main_form *form)
{
	const struct provider_form *providers = form->providers.at;
	nsec_t longest = 0;

	for (uint32_t i = 0; i < form->providers.count; i++)
		if (providers[i].total > longest)
			longest = providers[i].total;
	return longest + 30 * SEC;
}

static uint32_t line_of(const struct main_form *form, const char *key)
{
	const struct node *node = node_find(form->node, key);

	return node == NULL ? 1 : node->line;
}

/* ---- the store ---- */

static struct slice keep_unescaped(struct loader *l, const struct node *node, struct slice text)
{
	char *out = slice_absent(text) ? NULL : loader_zero(l, &l->config->arena, text.len + 1, 1);

	if (out == NULL)
		return (struct slice){ NULL, 0 };
	const size_t len = url_unescape(text, out);
	if (len != SIZE_MAX)
		return slice_of(out, len);
	problem_at(&l->problems, node,
		   "has a %% in its user or password that is not %%XX; write %%25");
	return (struct slice){ NULL, 0 };
}

static void name_store(struct loader *l, const struct redis_url_parts *parts,
		       struct config_store *out)
{
	char text[512];
	const bool ipv6 = parts->host.len != 0 && memchr(parts->host.at, ':', parts->host.len);

	if (slice_absent(parts->host))
		(void)snprintf(text, sizeof(text), "unix://%.*s", (int)parts->path.len,
			       parts->path.at);
	else
		(void)snprintf(text, sizeof(text), "%s://%s%.*s%s:%u/%u",
			       parts->tls ? "rediss" : "redis", ipv6 ? "[" : "",
			       (int)parts->host.len, parts->host.at, ipv6 ? "]" : "", parts->port,
			       parts->database);
	out->name = loader_keep(l, slice_str(text));
}

static void build_redis(struct loader *l, const struct main_form *form, struct config_store *out)
{
	const struct node *node = node_find(form->node, "store.url");
	const struct node *ca = node_find(form->node, "store.ca");
	struct redis_url_parts parts;

	if (slice_absent(form->store_url)) {
		if (node == NULL)
			problem_below(&l->problems, form->node, "store.url",
				      "is needed for kind redis; write redis://HOST:6379");
		return;
	}
	const char *wrong = redis_url_parse(form->store_url, &parts);
	if (wrong != NULL) {
		problem_at(&l->problems, node, "%s", wrong);
		return;
	}
	out->tls = parts.tls;
	out->host = loader_keep(l, parts.host);
	out->path = loader_keep(l, parts.path);
	out->port = parts.port;
	out->database = parts.database;
	out->user = keep_unescaped(l, node, parts.user);
	out->password = keep_unescaped(l, node, parts.password);
	name_store(l, &parts, out);
	if (slice_absent(form->store_ca))
		return;
	if (!parts.tls)
		problem_at(&l->problems, ca,
			   "is for rediss:// stores; write store.url so, or remove ca");
	const struct slice path = loader_path(l, ca, form->store_ca);
	if (!slice_absent(path) && !loader_file(l, ca, path, FILE_CA_MAX, &out->ca_pem))
		return; /* it said why */
}

static void build_store(struct loader *l, const struct main_form *form)
{
	static const char *const keys[] = { "store.url", "store.ca", "store.deadline" };
	struct config_store *out = &l->config->store;

	out->redis = form->store_kind == 1;
	out->deadline = form->store_deadline == FORM_UNSET ? 20 * MSEC : form->store_deadline;
	if (out->redis) {
		build_redis(l, form, out);
		return;
	}
	for (size_t i = 0; i < COUNT_OF(keys); i++)
		if (node_find(form->node, keys[i]) != NULL)
			problem_at(
				&l->problems, node_find(form->node, keys[i]),
				"has no meaning for kind memory; write kind: redis, or remove it");
}

static void build_workers(struct loader *l, const struct main_form *form)
{
	const uint32_t running = l->source->auto_workers;
	struct config *config = l->config;

	config->workers_auto = form->workers == 0;
	config->workers = (uint32_t)form->workers;
	if (config->workers_auto)
		config->workers = running != 0 ? running : usable_cpus();
	if (config->workers > 256)
		config->workers = 256;
}

void loader_build_process(struct loader *l, const struct main_form *form)
{
	struct config *config = l->config;

	build_listen(l, form);
	build_admin(l, form);
	build_workers(l, form);
	config->listen_line = line_of(form, "listen");
	config->admin_line = line_of(form, "admin");
	config->workers_line = line_of(form, "workers");
	config->store_line = line_of(form, "store");
	build_store(l, form);
	config->body_bytes_max = form->body_bytes;
	config->unfinished_bytes_max = form->unfinished_bytes;
	config->connections_max = (uint32_t)form->connections;
	config->drain = form->drain == FORM_UNSET ? drain_default(form) : form->drain;
	config->reload_watch = form->reload_watch == FORM_UNSET ? 0 : form->reload_watch;
	config->certificates_by = (enum tls_name_kind)form->certificates_san;
	loader_build_issuers(l, form);
	config->origins = keep_list(l, &form->origins);
	config->origin_count = form->origins.count;
	config->metrics_tenants = (uint32_t)form->metrics_tenants;
}

/* ---- providers ---- */

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

static struct slice keep_lower(struct loader *l, struct slice host)
{
	char *text = loader_zero(l, &l->config->arena, host.len + 1, 1);

	for (size_t i = 0; text != NULL && i < host.len; i++)
		text[i] = (char)(host.at[i] >= 'A' && host.at[i] <= 'Z' ? host.at[i] + 32
									: host.at[i]);
	return text == NULL ? (struct slice){ NULL, 0 } : slice_of(text, host.len);
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
	out->host = keep_lower(l, parts->host);
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
			   enum dialect_id dialect, struct endpoint *out)
{
	const struct node *node = node_find(form->node, "url");
	struct slice end = slice_str(dialect_get(dialect)->path);
	struct url_parts parts;

	out->weight = (uint32_t)form->weight;
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
}

static void build_dialect(struct loader *l, const struct provider_form *form, struct provider *out)
{
	if (form->dialect == FORM_UNSET)
		return; /* reported when it was read */
	const struct dialect *dialect = dialect_get((enum dialect_id)form->dialect);
	out->dialect = dialect->id;
	if (slice_absent(form->version))
		out->version = slice_str(dialect->version);
	else if (dialect->version_header != NULL)
		out->version = loader_keep(l, form->version);
	else
		problem_below(&l->problems, form->node, "version",
			      "has no meaning for this dialect; remove it");
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
	out->keys = keep_list(l, &form->keys);
	out->key_count = form->keys.count;
	loader_ca(l, form->node, form->ca, &ca_path, &ca_pem);
	if (made == NULL)
		return;
	for (uint32_t i = 0; i < form->endpoints.count; i++) {
		made[i].ca_path = ca_path;
		made[i].ca_pem = ca_pem;
		build_endpoint(l, &endpoints[i], out->dialect, &made[i]);
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

/* ---- models ---- */

static bool is_openai(const struct provider *provider)
{
	for (uint32_t i = 0; i < provider->endpoint_count; i++)
		if (slice_eq(provider->endpoints[i].host, SLICE("api.openai.com")))
			return true;
	return false;
}

/* What the file says over what the dialect has. */
static void build_profile(const struct model_form *form, const struct provider *provider,
			  struct slice version, struct profile *out)
{
	profile_defaults(out, provider->dialect, version);
	out->max_output = (uint32_t)form->max_output;
	if (form->max_stop != FORM_UNSET)
		out->max_stop = (uint32_t)form->max_stop;
	out->image = form->image != 0;
	out->audio = form->audio != 0;
	out->forced_tool = form->forced_tool != 0;
	out->structured_output = form->structured_output != 0;
	out->prefill = form->prefill != 0;
	if (form->temperature.set) {
		out->temperature_never = form->temperature.never;
		out->temperature_min = form->temperature.min;
		out->temperature_max = form->temperature.max;
	}
	if (form->max_tokens_field != FORM_UNSET)
		out->max_tokens_field = (enum max_tokens_field)form->max_tokens_field;
	else if (is_openai(provider))
		out->max_tokens_field = MAX_TOKENS_FIELD_COMPLETION;
	out->reasoning = form->reasoning != 0;
	out->tools_need_effort_none = form->tools_need_effort_none != 0;
	out->replay_reasoning = form->replay_reasoning != 0;
	out->text_content_as_string = form->text_content_as_string != 0;
	out->user_after_tool = form->user_after_tool != 0;
	out->think_tags = form->think_tags != 0;
	out->id_rule = (enum id_rule)form->id_rule;
}

/* Index of the provider, or -1 after a problem. */
static int64_t find_provider(struct loader *l, const struct model_form *form)
{
	if (slice_absent(form->provider))
		return -1; /* reported when it was read */
	for (uint32_t i = 0; i < l->config->provider_count; i++)
		if (slice_eq(l->config->providers[i].name, form->provider))
			return i;
	problem_below(&l->problems, form->node, "provider",
		      "there is no provider %.*s; write a name under providers",
		      (int)form->provider.len, form->provider.at);
	return -1;
}

/* The anthropic-version in force; absent for other dialects. */
static struct slice model_version(struct loader *l, const struct model_form *form,
				  const struct provider *provider)
{
	if (slice_absent(form->version))
		return provider->version;
	if (dialect_get(provider->dialect)->version_header == NULL) {
		problem_below(&l->problems, form->node, "profile.version",
			      "has no meaning for this provider's dialect; remove it");
		return provider->version;
	}
	return loader_keep(l, form->version);
}

static void build_model(struct loader *l, const struct model_form *form, struct model *out,
			struct slice *version)
{
	int64_t provider = find_provider(l, form);
	const struct provider *owner;

	if (provider < 0)
		return;
	owner = &l->config->providers[provider];
	*version = model_version(l, form, owner);
	out->id = loader_keep(l, form->id);
	out->name = slice_absent(form->name) ? out->id : loader_keep(l, form->name);
	out->aliases = keep_list(l, &form->aliases);
	out->alias_count = form->aliases.count;
	out->provider = (uint32_t)provider;
	out->enabled = form->enabled != 0 && owner->enabled;
	out->context = form->context;
	out->price_input = form->price_input;
	out->price_output = form->price_output;
	out->price_cache_read =
		form->price_cache_read == FORM_UNSET ? form->price_input : form->price_cache_read;
	out->price_cache_write =
		form->price_cache_write == FORM_UNSET ? form->price_input : form->price_cache_write;
	out->speed = form->speed;
	out->intelligence = form->intelligence;
	build_profile(form, owner, *version, &out->profile);
}

void loader_build_models(struct loader *l, const struct main_form *form)
{
	const struct model_form *forms = form->models.at;
	uint32_t count = form->models.count;
	struct model *out = loader_zero(l, &l->config->arena, count, sizeof(*out));
	struct slice *versions = loader_zero(l, &l->config->arena, count, sizeof(*versions));

	if (out == NULL || versions == NULL)
		return;
	for (uint32_t i = 0; i < count && !l->failed; i++) {
		build_model(l, &forms[i], &out[i], &versions[i]);
		for (uint32_t j = 0; j < i; j++)
			if (!slice_absent(forms[i].id) && slice_eq(forms[i].id, forms[j].id))
				problem_below(&l->problems, forms[i].node, "id",
					      "is also that of the model in line %u; write another",
					      forms[j].node->line);
	}
	l->config->model_versions = versions;
	l->config->catalog = (struct catalog){ .models = out, .count = count };
	if (!catalog_index(&l->config->catalog, &l->config->arena))
		loader_out_of_memory(l);
}
