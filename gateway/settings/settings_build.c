/* settings_build.c - forms to configuration: the process itself. */
#include "gateway/settings/settings_loader.h"

#include "codec/base/must.h"
#include "gateway/base/cpu_quota.h"
#include "gateway/settings/settings_url.h"

#include <sched.h>

_Static_assert(TLS_NAME_URI == 0 && TLS_NAME_DNS == 1, "the order of choices in tbl/settings.h");

/* ---- the process ---- */

static uint32_t usable_cpus(void)
{
	cpu_set_t set;
	uint32_t allowed = 1, quota = cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup");

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

/* The same for a listener, which may also be "unix:PATH". */
static void build_listener(struct loader *l, const struct node *node, struct slice text,
			   struct listen_address *out)
{
	static const struct slice scheme = SLICE_INIT("unix:");

	if (!slice_starts(text, scheme)) {
		build_address(l, node, text, out);
		return;
	}
	const struct slice path =
		loader_path(l, node, slice_of(text.at + scheme.len, text.len - scheme.len));
	if (text.len == scheme.len) {
		problem_at(&l->problems, node, "has no path; write unix:/run/sluice/public.sock");
	} else if (path.len > SOCKET_PATH_MAX) {
		problem_at(&l->problems, node,
			   "is %zu bytes long with its directory; write a path of at most %d",
			   path.len, SOCKET_PATH_MAX);
	} else {
		out->text = loader_keep(l, text);
		out->host = path;
		out->local = true;
	}
}

static bool same_address(const struct listen_address *a, const struct listen_address *b)
{
	return !slice_absent(a->host) && slice_eq(a->host, b->host) && a->port == b->port;
}

static void build_listen(struct loader *l, const struct main_form *form)
{
	static const struct listen_address preset = { .text = SLICE_INIT("127.0.0.1:8080"),
						      .host = SLICE_INIT("127.0.0.1"),
						      .port = 8080,
						      .fronts = FRONTS_ALL };
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
		out[i].trusted_proxy = forms[i].trusted_proxy != 0;
		out[i].fronts = loader_fronts(l, &forms[i].fronts, forms[i].node);
		if (slice_absent(forms[i].address))
			continue;
		build_listener(l, node, forms[i].address, &out[i]);
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
		if (config->admin_socket.len > SOCKET_PATH_MAX)
			problem_at(&l->problems, node,
				   "is %zu bytes long with its directory; write a path of at most "
				   "%d",
				   config->admin_socket.len, SOCKET_PATH_MAX);
		for (uint32_t i = 0; i < config->listen_count; i++)
			if (config->listen[i].local &&
			    slice_eq(config->listen[i].host, config->admin_socket))
				problem_at(&l->problems, node,
					   "is also a public address; write another path");
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
	if (!slice_absent(path) && loader_file(l, ca, path, FILE_CA_MAX, &out->ca_pem))
		loader_try_ca(l, ca, path, out->ca_pem);
}

static void build_store(struct loader *l, const struct main_form *form)
{
	static const char *const keys[] = { "store.url", "store.ca", "store.deadline",
					    "store.patience" };
	struct config_store *out = &l->config->store;

	out->redis = form->store_kind == 1;
	out->blocks = (struct config_blocks){ .bytes = form->blocks_bytes,
					      .each = form->blocks_each,
					      .ttl = form->blocks_ttl };
	out->deadline = form->store_deadline == FORM_UNSET ? 20 * MSEC : form->store_deadline;
	out->patience = form->store_patience == FORM_UNSET ? 250 * MSEC : form->store_patience;
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

static void build_user(struct loader *l, const struct main_form *form)
{
	const struct node *node = node_find(form->node, "user");

	if (slice_absent(form->user))
		return;
	if (!user_find(form->user, &l->config->user))
		problem_at(
			&l->problems, node,
			"is no user of this system; make one (useradd --system), or name another");
	else if (l->config->user.uid == 0)
		problem_at(&l->problems, node,
			   "is the superuser; name another user, or remove the key");
}

void loader_build_process(struct loader *l, const struct main_form *form)
{
	struct config *config = l->config;

	build_listen(l, form);
	build_admin(l, form);
	build_workers(l, form);
	config->zone = loader_keep(l, form->zone);
	config->retries = (struct config_retries){ .attempts = (uint32_t)form->attempts,
						   .budget = form->retry_budget,
						   .floor = (uint32_t)form->retry_floor };
	config->listen_line = line_of(form, "listen");
	config->admin_line = line_of(form, "admin");
	config->workers_line = line_of(form, "workers");
	config->store_line = line_of(form, "store");
	config->user_line = line_of(form, "user");
	build_user(l, form);
	build_store(l, form);
	config->body_bytes_max = form->body_bytes;
	config->unfinished_bytes_max = form->unfinished_bytes;
	config->held_bytes_max = form->held_bytes;
	config->connections_max = (uint32_t)form->connections;
	config->drain = form->drain == FORM_UNSET ? drain_default(form) : form->drain;
	config->reload_watch = form->reload_watch == FORM_UNSET ? 0 : form->reload_watch;
	config->certificates_by = (enum tls_name_kind)form->certificates_san;
	loader_build_issuers(l, form);
	config->admin_names = loader_keep_list(l, &form->admin_names);
	config->admin_name_count = form->admin_names.count;
	config->origins = loader_keep_list(l, &form->origins);
	config->origin_count = form->origins.count;
	config->metrics_tenants = (uint32_t)form->metrics_tenants;
}
