/* settings.h - the YAML file over tbl/settings.h; prints its own manual and schema
 * (DESIGN 4.1, 4.2).
 *
 * libyaml is used here only (settings*.c). Every problem is reported with file, line, key and
 * remedy; a key that this version does not implement is a problem too. Builds a whole configuration
 * or none. */
#ifndef GATEWAY_SETTINGS_SETTINGS_H
#define GATEWAY_SETTINGS_SETTINGS_H

#include "gateway/base/config.h"
#include "gateway/settings/settings_seen.h"

struct tls_tickets;

/* Problems are written to `problems` as lines "FILE:LINE: KEY: what is wrong, and what would be
 * right"; secrets are never part of them. Where the texts come from: */
struct settings_source {
	const char *path; /* the main file */
	/* When not NULL, files are taken from here by path (and nothing is read from disk): the
	 * configuration a crashed server had. */
	const struct config_file *files;
	uint32_t file_count;
	/* When not NULL: told of everything that was looked at on disk, whatever comes of the load. */
	struct settings_seen *seen;
	/* Keys of session tickets, for listeners with TLS; they outlive the configuration. NULL where
	 * nothing will be served. */
	const struct tls_tickets *tickets;
	/* What is right, but hardly meant is written here in the same form; NULL: it is not. */
	FILE *warnings;
	/* What is in force of each model, and whether file, catalogue or default says so; NULL: nowhere. */
	FILE *models;
	/* What `workers: auto` means where workers run already, whatever CPUs there are by now: their
	 * number. 0: as many as this process may use CPUs. */
	uint32_t auto_workers;
};

/* The configuration (the caller's; free with settings_free), or NULL after at least one problem
 * line. */
struct config *settings_load(const struct settings_source *source, FILE *problems);

/* Frees *config and sets it to NULL; accepts a pointer to NULL. Secrets are cleansed. */
void settings_free(struct config **config);

/* The first key that differs and needs a restart (listen, admin, user, workers, store.* but for user and password of
 * store.url), and in *line
 * where the fresh file says it; NULL if none. */
const char *settings_needs_restart(const struct config *running, const struct config *fresh,
				   uint32_t *line);

/* `sluice settings`: every setting with unit, default, meaning. `sluice schema`: its JSON Schema.
 */
void settings_print_manual(FILE *out);
void settings_print_schema(FILE *out);

#endif
