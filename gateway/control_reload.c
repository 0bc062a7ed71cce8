#include "gateway/control_parts.h"

#include "codec/base/must.h"
#include "gateway/report.h"
#include "gateway/settings.h"

#include <errno.h>
#include <stdlib.h>

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
	for (uint32_t i = 0; i < control->args.worker_count; i++)
		worker_set_config(control->args.workers[i], fresh, control->seq);
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

/* Reads and judges; NULL with the reasons in `problems`. */
static struct config *load(const struct control *control, FILE *problems)
{
	const struct settings_source source = { .path = control->args.config_path };
	struct config *fresh = settings_load(&source, problems);
	const char *key;
	uint32_t line;

	if (fresh == NULL)
		return NULL;
	key = settings_needs_restart(control->config, fresh, &line);
	if (key == NULL)
		return fresh;
	(void)fprintf(problems,
		      "%s:%u: %s: cannot change while the gateway runs; restart it, or put "
		      "the old value back\n",
		      source.path, line, key);
	settings_free(&fresh);
	return NULL;
}

static int reload(struct control *control, FILE *out)
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
	struct config *fresh = load(control, out);
	return fresh == NULL ? refuse(control, 422) : take_over(control, fresh, out);
}

int control_reload(struct control *control, FILE *out)
{
	char *text = NULL;
	size_t len = 0;
	FILE *both = open_memstream(&text, &len);

	if (both == NULL)
		return refuse(control, 503);
	int status = reload(control, both);
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
