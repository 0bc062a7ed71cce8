#include "gateway/control/control_checks.h"

#include "codec/base/must.h"
#include "gateway/control/control_checks_plan.h"
#include "gateway/control/control_parts.h"
#include "gateway/control/control_peer.h"
#include "gateway/fetch/fetch.h"
#include "gateway/telemetry/metrics.h"

#include <stdlib.h>

enum { CHECK_MAGIC = 0x4348454b, BODY_MAX = 256 << 10 };

/* Copies of what a snapshot says of it. */
struct check {
	uint32_t magic;
	struct checks *checks;
	struct check *next;
	struct slice provider, identity, path; /* names the endpoint */
	struct control_peer peer;
	struct slice target;        /* what is asked for */
	struct provider_check rule; /* its path is not used */
	bool wanted;                /* by the configuration in force */
	struct checks_plan plan;
	struct fetch *fetch; /* NULL: none is under way */
	uint64_t good, failed;
};

struct checks {
	struct event_base *base;
	struct check *first;
	checks_told_fn *told;
	void *arg;
};

/* ---- checks ------------------------------------------------------------------------------------ */

static void check_free(struct check *check)
{
	const struct slice texts[] = { check->provider, check->identity, check->path,
				       check->target };

	fetch_cancel(&check->fetch);
	control_peer_fini(&check->peer);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		free((void *)(uintptr_t)texts[i].at);
	check->magic = 0;
	free(check);
}

static struct check *check_new(struct checks *checks, const struct provider *provider,
			       const struct endpoint *endpoint, nsec_t now)
{
	struct check *check = calloc(1, sizeof(*check));

	if (check == NULL)
		return NULL;
	check->magic = CHECK_MAGIC;
	check->checks = checks;
	check->provider = control_peer_copy(provider->name);
	check->identity = control_peer_copy(endpoint->identity);
	check->path = control_peer_copy(endpoint->path);
	check->target = control_peer_copy(provider->check.path);
	checks_plan_init(&check->plan, now);
	if (control_peer_init(&check->peer, endpoint) && !slice_absent(check->provider) &&
	    !slice_absent(check->identity) && !slice_absent(check->path) &&
	    !slice_absent(check->target))
		return check;
	check_free(check);
	return NULL;
}

static struct check *find(const struct checks *checks, const struct provider *provider,
			  const struct endpoint *endpoint)
{
	struct check *check = checks->first;

	while (check != NULL && !(slice_eq(check->provider, provider->name) &&
				  slice_eq(check->identity, endpoint->identity) &&
				  slice_eq(check->path, endpoint->path) &&
				  slice_eq(check->target, provider->check.path)))
		check = check->next;
	return check;
}

static void tell(const struct check *check, bool up)
{
	check->checks->told(check->checks->arg, check->provider, check->identity, check->path, up);
}

/* ---- one of them ------------------------------------------------------------------------------- */

static void end(struct check *check, const char *problem, nsec_t now)
{
	check->fetch = NULL;
	if (problem == NULL)
		check->good++;
	else
		check->failed++;
	if (!checks_plan_end(&check->plan, problem == NULL, &check->rule, now))
		return;
	if (problem == NULL)
		(void)fprintf(stderr, "sluice: provider %s: %s is well again: it gets calls\n",
			      check->provider.at, check->peer.url.at);
	else
		(void)fprintf(stderr, "sluice: provider %s: %s is not well: %s; it gets no calls\n",
			      check->provider.at, check->peer.url.at, problem);
	tell(check, check->plan.up);
}

static void on_fetched(void *arg, const char *problem, struct slice body)
{
	struct check *check = arg;

	(void)body;
	must_obj(check, CHECK_MAGIC);
	end(check, problem, control_now());
}

static void begin(struct check *check, nsec_t now)
{
	struct fetch_ask ask = {
		.base = check->checks->base,
		.path = check->target,
		.accept = "*/*",
		.any_success = true,
		.deadline = check->rule.timeout,
		.body_max = BODY_MAX,
		.done = on_fetched,
		.arg = check,
	};
	char room[160];

	checks_plan_begin(&check->plan, now);
	const char *problem = control_peer_ask(&check->peer, &ask, room, sizeof(room));
	if (problem == NULL) {
		check->fetch = fetch_start(&ask);
		problem = check->fetch == NULL ? "there is no memory for it" : NULL;
	}
	if (problem != NULL)
		end(check, problem, now);
}

void control_checks_tick(struct checks *checks, nsec_t now)
{
	for (struct check *check = checks->first; check != NULL; check = check->next)
		if (check->peer.resolved && checks_plan_is_due(&check->plan, now))
			begin(check, now);
}

void control_checks_resolved(struct checks *checks, struct slice host,
			     const struct upstream_address *addresses, uint32_t count)
{
	for (struct check *check = checks->first; check != NULL; check = check->next)
		/* One that is under way needs its list; the next answer comes in 30 s. */
		if (check->fetch == NULL)
			(void)control_peer_resolved(&check->peer, host, addresses, count);
}

/* ---- configurations ---------------------------------------------------------------------------- */

static void want(struct checks *checks, const struct provider *provider,
		 const struct endpoint *endpoint, nsec_t now)
{
	struct check *check = find(checks, provider, endpoint);

	if (check == NULL) {
		check = check_new(checks, provider, endpoint, now);
		if (check == NULL) {
			(void)fprintf(stderr, "sluice: no memory to check %.*s\n",
				      (int)endpoint->url.len, endpoint->url.at);
			return;
		}
		check->next = checks->first;
		checks->first = check;
	}
	check->wanted = true;
	check->rule = provider->check;
	check->rule.path = (struct slice){ NULL, 0 }; /* the snapshot's */
	checks_plan_set_interval(&check->plan, check->rule.interval, now);
	if (!check->plan.up)
		tell(check, false);
}

static void sweep(struct checks *checks)
{
	for (struct check **at = &checks->first; *at != NULL;) {
		struct check *check = *at;
		if (check->wanted) {
			at = &check->next;
			continue;
		}
		if (!check->plan.up)
			tell(check, true);
		*at = check->next;
		check_free(check);
	}
}

typedef void visit_fn(struct checks *checks, const struct provider *provider,
		      const struct endpoint *endpoint, nsec_t now);

static void mark(struct checks *checks, const struct provider *provider,
		 const struct endpoint *endpoint, nsec_t now)
{
	struct check *check = find(checks, provider, endpoint);

	(void)now;
	if (check != NULL)
		check->wanted = true;
}

/* Every endpoint that is to be checked. */
static void visit(struct checks *checks, const struct config *config, nsec_t now, visit_fn *each)
{
	for (uint32_t p = 0; p < config->provider_count; p++) {
		const struct provider *provider = &config->providers[p];
		if (!provider->enabled || slice_absent(provider->check.path))
			continue;
		for (uint32_t e = 0; e < provider->endpoint_count; e++)
			each(checks, provider, &provider->endpoints[e], now);
	}
}

/* What is not checked any more is let go of first: a new check of the same endpoint, by another path, has
 * the last word. */
void control_checks_want(struct checks *checks, const struct config *config, nsec_t now)
{
	for (struct check *check = checks->first; check != NULL; check = check->next)
		check->wanted = false;
	visit(checks, config, now, mark);
	sweep(checks);
	visit(checks, config, now, want);
}

struct checks *control_checks_new(struct event_base *base, checks_told_fn *told, void *arg)
{
	struct checks *checks = calloc(1, sizeof(*checks));

	if (checks != NULL)
		*checks = (struct checks){ .base = base, .told = told, .arg = arg };
	return checks;
}

/* ---- metrics ----------------------------------------------------------------------------------- */

void control_checks_print(const struct checks *checks, FILE *out)
{
	const struct check *check;

	metrics_print_head(METRIC_CHECKS, out);
	for (check = checks->first; check != NULL; check = check->next) {
		const struct slice good[] = { check->provider, check->peer.url, SLICE("ok") };
		const struct slice failed[] = { check->provider, check->peer.url, SLICE("failed") };
		metrics_print_sample(METRIC_CHECKS, good, check->good, out);
		metrics_print_sample(METRIC_CHECKS, failed, check->failed, out);
	}
	metrics_print_head(METRIC_ENDPOINT_UP, out);
	for (check = checks->first; check != NULL; check = check->next) {
		const struct slice labels[] = { check->provider, check->peer.url };
		metrics_print_sample(METRIC_ENDPOINT_UP, labels, check->plan.up, out);
	}
}
