/* settings_loader.h - one load of a configuration: what its parts share.
 *
 * settings.c drives; settings_file finds texts, settings_read fills forms from trees, settings_build,
 * settings_providers, settings_models, settings_mcp, settings_plans and settings_tenants turn forms into the
 * configuration. Private to settings*.c and their tests. */
#ifndef GATEWAY_SETTINGS_SETTINGS_LOADER_H
#define GATEWAY_SETTINGS_SETTINGS_LOADER_H

#include "gateway/settings/settings.h"
#include "gateway/settings/settings_form.h"
#include "gateway/settings/settings_table.h"

#define CONFIG_ARENA_MAX ((size_t)4 << 30)

enum {
	FILE_TEXT_MAX = 256 << 20,  /* bytes of the main file and of a tenant file */
	FILE_SECRET_MAX = 64 << 10, /* of what file:PATH names */
	FILE_CA_MAX = 1 << 20
};

struct loaded_file {
	struct config_file file;
	struct loaded_file *next;
	struct loaded_file *below[4]; /* by the next two bits of the path's hash */
};

struct loader {
	const struct settings_source *source;
	struct problems problems;
	struct problems warnings; /* out NULL: nobody wants them */
	bool failed;              /* memory: reported once */
	struct config *config;    /* in the making; its arena holds what stays */
	struct arena scratch;     /* gone when the load ends: trees and forms */
	struct loaded_file *files, **files_end;
	struct loaded_file *by_path; /* the same files: the root of a tree */
	uint32_t file_count;
	uint32_t kept_next; /* of source->files: most likely the next that is asked for */
	bool *mcp_allowed; /* by MCP server: whether a plan allows it; NULL: nobody wants warnings */
};

/* ---- settings_loader.c, memory: NULL or absent after one problem line ---- */
void *loader_zero(struct loader *l, struct arena *into, size_t count, size_t size);
/* A copy that lives as long as the configuration; absent stays absent. */
struct slice loader_keep(struct loader *l, struct slice s);
/* The same with ASCII letters in lower case; NUL-terminated. */
struct slice loader_keep_lower(struct loader *l, struct slice s);
/* The same of each of a list. */
const struct slice *loader_keep_list(struct loader *l, const struct form_values *list);
/* Reports it, once. */
void loader_out_of_memory(struct loader *l);

/* ---- settings_file.c ---- */
/* The text of `path`, read once and recorded in the configuration. `node` names it; NULL for the main
 * file. False after a problem. */
MUST_USE bool loader_file(struct loader *l, const struct node *node, struct slice path,
			  size_t bytes_max, struct slice *text);

/* `path` as seen from the directory of the file that `node` stands in; in the configuration's arena.
 */
struct slice loader_path(struct loader *l, const struct node *node, struct slice path);

/* ${NAME} and file:PATH resolved, in the configuration's arena. False after a problem. */
MUST_USE bool loader_expand(struct loader *l, const struct node *node, struct slice raw,
			    struct slice *out);

/* Paths that the glob matches, sorted, in scratch; there may be none. False after a problem. */
MUST_USE bool loader_glob(struct loader *l, const struct node *node, struct slice pattern,
			  struct slice **paths, size_t *count);

/* ---- settings_read.c ---- */
/* Fills the zeroed `form` of `scope` from `node`: defaults, then every key. Lists are in `into`. Keys
 * that are wrong are problems and leave the default. */
void loader_read(struct loader *l, enum settings_scope scope, const struct node *node, void *form,
		 struct arena *into);

/* The defaults alone, and the keys alone (a scope's keys over another's values: merging). */
void loader_presets(enum settings_scope scope, void *form);
void loader_merge(struct loader *l, enum settings_scope scope, const struct node *node, void *form,
		  struct arena *into);

/* ---- settings_build.c and what is named like a part of the file: forms to configuration ---- */
/* Providers first, then models, then plans and tenants. Problems are counted in the loader. */
/* The TLS context of a listener; none without tls, or after a problem. */
void loader_build_tls(struct loader *l, const struct listen_form *form, struct listen_address *out);
/* identity.jwt. */
void loader_build_issuers(struct loader *l, const struct main_form *form);
void loader_build_process(struct loader *l, const struct main_form *form);
void loader_build_providers(struct loader *l, const struct main_form *form);
/* mcp_servers, public_url and seal_keys; before the plans that allow servers. */
void loader_build_mcp(struct loader *l, const struct main_form *form);
void loader_build_models(struct loader *l, const struct main_form *form);
void loader_build_tenants(struct loader *l, const struct main_form *form);

struct url_parts;

/* The private CA that key `ca` of `parent` names: its path and PEM text. Both stay absent without one,
 * and after a problem. */
void loader_ca(struct loader *l, const struct node *parent, struct slice ca, struct slice *path,
	       struct slice *pem);
/* A problem unless the PEM text of that file, which key `node` names, can be used as a CA. */
void loader_try_ca(struct loader *l, const struct node *node, struct slice path, struct slice pem);
/* Fills in everything of *out that follows from the URL's parts and from ca_pem, which is set. */
void loader_name_endpoint(struct loader *l, const struct url_parts *parts, struct endpoint *out);

/* ---- settings_mcp.c ---- */
/* The bits that key `fronts` of `parent` (NULL: nobody is to be blamed) names; without it all. */
uint8_t loader_fronts(struct loader *l, const struct form_values *names, const struct node *parent);
/* Takes note of the servers that a plan, or a tenant's own, allows. `node` has its list of them, if it was said there and
 * not in a plan below (NULL): warns of names that are none. */
void loader_note_mcp(struct loader *l, const struct plan *plan, const struct node *node);
/* Warns of servers that nobody can reach, and of gateways that do not know each other's sessions; when all plans were
 * noted. */
void loader_warn_of_mcp(struct loader *l, const struct main_form *form);

/* ---- settings_direct.c ---- */
/* What the form grants beside to callers of the direct APIs. */
void loader_build_direct(struct loader *l, const struct plan_form *form, struct plan *out);
/* Warns of tools that no permitted model has a price for. `node`: what was read; NULL: nothing. */
void loader_warn_of_direct(struct loader *l, const struct node *node, const struct plan *plan);
/* Whether two forms grant the same. */
bool loader_same_direct(const struct plan_form *a, const struct plan_form *b);

/* ---- settings_plans.c ---- */
/* A plan that a tenant's keys were merged over. */
struct plan_base {
	const struct plan_form *form;
	const struct plan *plan;
};

/* The record of a plan, or of a tenant's own where `base` is its plan. `form` is merged already, but for
 * the two maps; `node` is what was read, for messages and to see what it says (NULL: nothing). */
void loader_build_plan(struct loader *l, const struct plan_form *form, const struct node *node,
		       const struct plan_base *base, struct plan *out);

/* settings_load with the n-th memory request failing (0: none), for tests. */
struct config *settings_load_failing(const struct settings_source *source, FILE *problems,
				     size_t fail_next);

#endif
