#include "gateway/settings/settings.h"

#include "codec/base/must.h"
#include "gateway/settings/settings_loader.h"
#include "gateway/tls/tls.h"

#include <stdlib.h>
#include <time.h>

enum { POOL_KEEP = 16 };

/* ---- the load ---- */

/* Over the digests of all texts, in the order in which they were read. */
static bool keep_files(struct loader *l)
{
	struct config *config = l->config;
	struct config_file *files = loader_zero(l, &config->arena, l->file_count, sizeof(*files));
	uint8_t *digests = loader_zero(l, &l->scratch, l->file_count, SHA256_BYTES);
	uint8_t digest[SHA256_BYTES];
	uint32_t n = 0;

	if (files == NULL || digests == NULL)
		return false;
	for (const struct loaded_file *at = l->files; at != NULL; at = at->next, n++) {
		files[n] = at->file;
		sha256(at->file.text, digests + (size_t)n * SHA256_BYTES);
	}
	must(n == l->file_count);
	config->files = files;
	config->file_count = n;
	sha256(slice_of((const char *)digests, (size_t)n * SHA256_BYTES), digest);
	sha256_hex(digest, sizeof(config->digest) - 1, config->digest);
	return true;
}

static void build(struct loader *l, const struct node *root)
{
	struct main_form *form = loader_zero(l, &l->scratch, 1, sizeof(*form));
	void (*const steps[])(struct loader *, const struct main_form *) = {
		/* models need providers, plans need models and MCP servers */
		loader_build_process, loader_build_providers, loader_build_models,
		loader_build_mcp,     loader_build_tenants,   loader_warn_of_mcp,
	};

	if (form == NULL)
		return;
	if (root->kind != NODE_MAP) {
		problem_at(&l->problems, root, "is not a map of settings; write \"key: value\"");
		return;
	}
	loader_read(l, SCOPE_MAIN, root, form, &l->scratch);
	/* Problems do not stop the steps, so that those of references are reported, too: a step skips
	 * what is absent because it was wrong. */
	for (size_t i = 0; i < COUNT_OF(steps) && !l->failed && !problems_full(&l->problems); i++)
		steps[i](l, form);
}

static void load(struct loader *l)
{
	struct slice text;
	struct tree *tree;
	const struct node *root;

	if (!loader_file(l, NULL, slice_str(l->source->path), FILE_TEXT_MAX, &text))
		return;
	tree = tree_new(&l->problems, l->source->path, text);
	if (tree == NULL) {
		loader_out_of_memory(l);
		return;
	}
	root = tree_document(tree, &l->scratch);
	if (root != NULL)
		build(l, root);
	tree_free(&tree);
	if (!l->failed && l->problems.count == 0)
		(void)keep_files(l);
}

struct config *settings_load_failing(const struct settings_source *source, FILE *problems,
				     size_t fail_next)
{
	struct loader l = { .source = source,
			    .problems = { .out = problems },
			    .warnings = { .out = source->warnings } };

	must(source->path != NULL);
	must(problems != NULL);
	l.files_end = &l.files;
	l.config = calloc(1, sizeof(*l.config));
	if (l.config == NULL) {
		loader_out_of_memory(&l);
		return NULL;
	}
	l.config->magic = CONFIG_MAGIC;
	l.config->pool = (struct arena_pool){ .keep_max = POOL_KEEP, .fail_next = fail_next };
	l.config->loaded_s = (uint64_t)time(NULL);
	arena_init(&l.config->arena, &l.config->pool, CONFIG_ARENA_MAX);
	arena_init(&l.scratch, &l.config->pool, CONFIG_ARENA_MAX);
	load(&l);
	arena_wipe(&l.scratch);
	if (l.failed || l.problems.count > 0)
		settings_free(&l.config);
	return l.config;
}

struct config *settings_load(const struct settings_source *source, FILE *problems)
{
	return settings_load_failing(source, problems, 0);
}

void settings_free(struct config **config)
{
	if (*config == NULL)
		return;
	must_obj(*config, CONFIG_MAGIC);
	for (uint32_t i = 0; i < (*config)->listen_count; i++)
		tls_server_free((*config)->listen[i].tls);
	arena_wipe(&(*config)->arena);
	arena_pool_fini(&(*config)->pool);
	(*config)->magic = 0;
	free(*config);
	*config = NULL;
}

/* ---- restart ---- */

static bool same_listen(const struct config *a, const struct config *b)
{
	if (a->listen_count != b->listen_count)
		return false;
	for (uint32_t i = 0; i < a->listen_count; i++)
		if (!slice_eq(a->listen[i].host, b->listen[i].host) ||
		    a->listen[i].port != b->listen[i].port ||
		    a->listen[i].trusted_proxy != b->listen[i].trusted_proxy ||
		    (a->listen[i].tls == NULL) != (b->listen[i].tls == NULL))
			return false;
	return true;
}

static bool same_admin(const struct config *a, const struct config *b)
{
	return slice_eq(a->admin.host, b->admin.host) && a->admin.port == b->admin.port &&
	       slice_eq(a->admin_socket, b->admin_socket);
}

static bool same_blocks(const struct config_blocks *a, const struct config_blocks *b)
{
	return a->bytes == b->bytes && a->each == b->each && a->ttl == b->ttl;
}

/* The key that differs; NULL: at most user and password, which may change (redis_client_use_login). */
static const char *store_change(const struct config_store *a, const struct config_store *b)
{
	if (a->redis != b->redis)
		return "store.kind";
	if (a->tls != b->tls || !slice_eq(a->name, b->name))
		return "store.url";
	if (!slice_eq(a->ca_pem, b->ca_pem))
		return "store.ca";
	if (a->deadline != b->deadline)
		return "store.deadline";
	if (a->patience != b->patience)
		return "store.patience";
	return same_blocks(&a->blocks, &b->blocks) ? NULL : "store.blocks";
}

const char *settings_needs_restart(const struct config *running, const struct config *fresh,
				   uint32_t *line)
{
	must_obj(running, CONFIG_MAGIC);
	must_obj(fresh, CONFIG_MAGIC);
	*line = fresh->listen_line;
	if (!same_listen(running, fresh))
		return "listen";
	*line = fresh->admin_line;
	if (!same_admin(running, fresh))
		return "admin";
	*line = fresh->store_line;
	const char *store = store_change(&running->store, &fresh->store);
	if (store != NULL)
		return store;
	*line = fresh->user_line;
	if (strcmp(running->user.name, fresh->user.name) != 0)
		return "user";
	*line = fresh->workers_line;
	return running->workers == fresh->workers ? NULL : "workers";
}
