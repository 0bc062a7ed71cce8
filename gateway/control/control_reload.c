#include "gateway/control/control_parts.h"

#include "codec/base/must.h"
#include "gateway/http/http.h"
#include "gateway/ipc/config_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- snapshots -------------------------------------------------------------------------------- */

/* The oldest configuration that any worker may still read. */
static uint64_t oldest_in_use(const struct control *control)
{
	uint64_t oldest = control->seq;

	for (uint32_t i = 0; i < control->args.worker_count; i++) {
		const struct worker_shared *shared = worker_shared(control->args.workers[i]);
		uint64_t seq =
			atomic_load_explicit(&shared->config_oldest_seq, memory_order_acquire);
		oldest = seq < oldest ? seq : oldest;
	}
	return oldest;
}

uint32_t control_sweep(struct control *control)
{
	uint64_t oldest = oldest_in_use(control);
	uint32_t alive = 0;

	for (size_t i = 0; i < COUNT_OF(control->snapshots); i++) {
		struct snapshot *snapshot = &control->snapshots[i];
		if (snapshot->config != NULL && snapshot->seq < oldest)
			settings_free(&snapshot->config);
		alive += snapshot->config != NULL;
	}
	return alive;
}

/* Workers swap at the top of their loops; addresses come after the configuration that names them. */
static void publish(struct control *control, struct config *fresh)
{
	size_t place = 0;

	while (control->snapshots[place].config != NULL)
		place++;
	must(place < COUNT_OF(control->snapshots));
	control->seq++;
	control->snapshots[place] = (struct snapshot){ fresh, control->seq };
	control->config = fresh;
	for (uint32_t i = 0; i < fresh->listen_count; i++)
		if (fresh->listen[i].tls != NULL)
			http_prepare_tls(fresh->listen[i].tls);
	for (uint32_t i = 0; i < control->args.worker_count; i++)
		worker_set_config(control->args.workers[i], fresh, control->seq);
	control_jwks_want(control->jwks, fresh, control_now());
	control_checks_want(control->checks, fresh, control_now());
	control_dns_want(control->dns, fresh);
}

/* ---- a reload --------------------------------------------------------------------------------- */

/* Settings whose change a running process cannot follow, though it takes the rest over. */
static void warn_of_late_ones(const struct config *running, const struct config *fresh)
{
	if (fresh->metrics_tenants != running->metrics_tenants)
		(void)fprintf(stderr, "sluice: metrics.tenants: the new value is used after the "
				      "next restart\n");
}

static int take_over(struct control *control, struct config *fresh, FILE *out)
{
	warn_of_late_ones(control->config, fresh);
	publish(control, fresh);
	control->reloads_ok++;
	(void)fprintf(out, "%s\n", fresh->digest);
	(void)fprintf(stderr, "sluice: configuration %s is in force\n", fresh->digest);
	if (!report_config(control->args.report_fd, fresh))
		(void)fprintf(stderr,
			      "sluice: the supervisor could not be told (%s): after a crash the "
			      "configuration before this one would be used\n",
			      strerror(errno));
	return 200;
}

static int refuse(struct control *control, int status)
{
	control->reloads_refused++;
	return status;
}

/* The CPUs may have become others since: no reason to refuse what else has changed. */
static uint32_t auto_workers(const struct control *control)
{
	return control->config->workers_auto ? control->args.worker_count : 0;
}

/* What is on disk; what was looked at for it is remembered in any case. An HTTP status, as below. */
static int load_files(struct control *control, struct config **fresh, FILE *problems)
{
	struct settings_seen *seen = settings_seen_new();
	const struct settings_source source = { .path = control->args.config_path,
						.tickets = control->args.tickets,
						.auto_workers = auto_workers(control),
						.warnings = stderr,
						.seen = seen };

	*fresh = settings_load(&source, problems);
	if (seen != NULL) {
		settings_seen_free(&control->seen);
		control->seen = seen;
	}
	return *fresh != NULL ? 200 : 422;
}

/* The same, by the reader. Its texts are parsed here again, as a restarted server's are. */
static int load_read(struct control *control, struct config **fresh, FILE *problems)
{
	struct settings_source source = { .path = control->args.config_path,
					  .tickets = control->args.tickets,
					  .auto_workers = auto_workers(control),
					  .warnings = stderr };
	struct report_texts texts;
	bool whole;

	if (!reader_load(control->args.reader_fd, &texts, &whole)) {
		(void)fprintf(problems,
			      "the configuration could not be read for this process: %s\n",
			      strerror(errno));
		return 503;
	}
	control->reader_loaded = true;
	source.files = texts.files;
	source.file_count = texts.count;
	if (whole)
		*fresh = settings_load(&source, problems);
	else if (texts.count > 0)
		(void)fwrite(texts.files[0].text.at, 1, texts.files[0].text.len, problems);
	report_texts_free(&texts);
	return *fresh != NULL ? 200 : 422;
}

/* Reads and judges: 200 and *fresh, or another HTTP status and the reasons in `problems`. */
static int load(struct control *control, struct config **fresh, FILE *problems)
{
	bool reads = control->args.reader_fd < 0;
	int status =
		reads ? load_files(control, fresh, problems) : load_read(control, fresh, problems);
	const char *key;
	uint32_t line;

	files_loaded(&control->files);
	if (status != 200)
		return status;
	key = settings_needs_restart(control->config, *fresh, &line);
	if (key == NULL)
		return 200;
	(void)fprintf(problems,
		      "%s:%u: %s: cannot change while the gateway runs; restart it, or put "
		      "the old value back\n",
		      control->args.config_path, line, key);
	settings_free(fresh);
	return 422;
}

enum reload_cause { RELOAD_ASKED, RELOAD_FILES_CHANGED };

static int reload(struct control *control, enum reload_cause cause, FILE *out)
{
	if (control->drain.phase != DRAIN_NOT) {
		(void)fprintf(out, "draining: no configuration is taken over any more\n");
		return refuse(control, 503);
	}
	if (control_sweep(control) == WORKER_SNAPSHOTS_MAX) {
		(void)fprintf(out, "reload_busy: %d configurations are still in use; try again\n",
			      WORKER_SNAPSHOTS_MAX);
		return refuse(control, 503);
	}
	struct config *fresh = NULL;
	int status = load(control, &fresh, out);
	if (status != 503)
		control->config_refused = status != 200; /* else nobody has seen it */
	if (status != 200)
		return refuse(control, status);
	if (cause == RELOAD_FILES_CHANGED && strcmp(fresh->digest, control->config->digest) == 0) {
		settings_free(&fresh); /* they are as they were: changed and put back */
		return 200;
	}
	return take_over(control, fresh, out);
}

static int reload_for(struct control *control, enum reload_cause cause, FILE *out)
{
	char *text = NULL;
	size_t len = 0;
	FILE *both = open_memstream(&text, &len);

	if (both == NULL)
		return refuse(control, 503);
	int status = reload(control, cause, both);
	if (fclose(both) != 0)
		text = NULL;
	if (text != NULL && out != NULL)
		(void)fwrite(text, 1, len, out);
	if (status != 200)
		(void)fprintf(stderr,
			      "%ssluice: reload refused, the configuration stays as it was\n",
			      text == NULL ? "" : text);
	free(text);
	return status;
}

int control_reload(struct control *control, FILE *out)
{
	return reload_for(control, RELOAD_ASKED, out);
}

/* ---- nobody waits for the answer ---------------------------------------------------------------- */

/* Whether the files are not as the last load has seen them. A server that was given its configuration has
 * not looked at the disk at all. */
static bool look(struct control *control, uint64_t wall_ns, uint8_t state[SHA256_BYTES])
{
	bool changed;

	if (control->args.reader_fd < 0)
		return control->seen == NULL || settings_seen_look(control->seen, wall_ns, state);
	if (!control->reader_loaded)
		return true;
	if (reader_look(control->args.reader_fd, wall_ns, &changed, state))
		return changed;
	(void)fprintf(stderr, "sluice: reload_watch: the files could not be looked at: %s\n",
		      strerror(errno));
	return false;
}

static bool files_have_changed(struct control *control)
{
	uint8_t state[SHA256_BYTES] = { 0 };
	nsec_t now = control_now();
	struct timespec wall;

	if (!files_due(&control->files, now, control->config->reload_watch))
		return false;
	must(clock_gettime(CLOCK_REALTIME, &wall) == 0);
	uint64_t wall_ns = (uint64_t)wall.tv_sec * SEC + (uint64_t)wall.tv_nsec;
	bool changed = look(control, wall_ns, state);
	return files_step(&control->files, now, changed, state);
}

/* Both wait while there is no room for another configuration. */
void control_reload_tick(struct control *control)
{
	bool leaving = control->drain.phase != DRAIN_NOT;

	if (!leaving && control_sweep(control) == WORKER_SNAPSHOTS_MAX)
		return;
	if (control->reload_due) {
		control->reload_due = false;
		(void)reload_for(control, RELOAD_ASKED, NULL);
	} else if (!leaving && files_have_changed(control)) {
		(void)reload_for(control, RELOAD_FILES_CHANGED, NULL);
	}
}
