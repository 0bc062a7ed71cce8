/* control_lessons.c - GET /lessons: what refusals have taught each worker, and for how long that holds.
 *
 * Ids of a configuration hold nothing that JSON would have to escape. */
#include "gateway/control/control_parts.h"

#include <inttypes.h>

/* Absent: it is gone. */
static struct slice tenant_of(const struct tenants *tenants, const struct worker_lesson *lesson)
{
	for (size_t i = 0; i < tenants->count; i++)
		if (worker_lesson_is_of(lesson, tenants->tenants[i].limit_key))
			return tenants->tenants[i].id;
	return slice_of(NULL, 0);
}

static bool put_lesson(const struct control *control, uint32_t worker,
		       const struct worker_lesson *lesson, bool first, FILE *out)
{
	const struct slice model = control->config->catalog.models[lesson->model].id;
	const nsec_t now = control_now();
	struct slice tenant = SLICE("");

	if (lesson->tenant != 0)
		tenant = tenant_of(&control->config->tenants, lesson);
	if (slice_absent(tenant) || lesson->until <= now)
		return false;
	(void)fprintf(out, "%s{\"model\":\"%.*s\",\"lesson\":\"%s\",\"tenant\":", first ? "" : ",",
		      (int)model.len, model.at, learn_name(lesson->fact));
	if (lesson->tenant == 0)
		(void)fputs("null", out);
	else
		(void)fprintf(out, "\"%.*s\"", (int)tenant.len, tenant.at);
	(void)fprintf(out, ",\"worker\":%" PRIu32 ",\"seconds\":%" PRIu64 "}", worker,
		      (lesson->until - now + SEC - 1) / SEC);
	return true;
}

int control_lessons(void *arg, FILE *out)
{
	static struct worker_lesson list[WORKER_LESSONS_MAX]; /* of this thread alone */
	const struct control *control = arg;
	bool first = true;

	(void)fputs("{\"lessons\":[", out);
	for (uint32_t w = 0; w < control->args.worker_count; w++) {
		const uint32_t count = worker_lessons(control->args.workers[w], control->seq, list);
		for (uint32_t i = 0; i < count; i++)
			first = !put_lesson(control, w, &list[i], first, out) && first;
	}
	(void)fputs("]}\n", out);
	return 200;
}
