#include "gateway/control/control_jwks.h"

#include "codec/base/must.h"
#include "codec/set.h"
#include "gateway/control/control_jwks_plan.h"
#include "gateway/control/control_parts.h"
#include "gateway/control/control_peer.h"
#include "gateway/fetch/fetch.h"
#include "gateway/telemetry/metrics.h"

#include <stdlib.h>

enum { SOURCE_MAGIC = 0x4a574b50, BODY_MAX = 256 << 10 };
#define FETCH_DEADLINE (10 * SEC)

/* Copies of what a snapshot says of where it is. */
struct source {
	uint32_t magic;
	struct jwks *jwks;
	struct source *next;
	struct slice name, path;
	struct control_peer peer;
	nsec_t refresh;
	bool wanted; /* by the configuration in force */

	struct jwks_plan plan;
	struct fetch *fetch; /* NULL: none is under way */
	bool failing;
	struct jwt_keys *keys; /* the last good ones; NULL: none, or too old */
	uint64_t fetched, failed;
};

struct jwks {
	struct event_base *base;
	struct json_work *work;
	struct source *sources;
	jwks_told_fn *told;
	void *arg;
};

/* ---- sources --------------------------------------------------------------------------------- */

static void source_free(struct source *source)
{
	fetch_cancel(&source->fetch);
	control_peer_fini(&source->peer);
	jwt_keys_free(&source->keys);
	free((void *)(uintptr_t)source->name.at);
	free((void *)(uintptr_t)source->path.at);
	source->magic = 0;
	free(source);
}

static struct source *source_new(struct jwks *jwks, const struct jwks_place *place, nsec_t now)
{
	struct source *source = calloc(1, sizeof(*source));

	if (source == NULL)
		return NULL;
	source->magic = SOURCE_MAGIC;
	source->jwks = jwks;
	source->name = control_peer_copy(place->name);
	source->path = control_peer_copy(place->path);
	jwks_plan_init(&source->plan, now);
	if (control_peer_init(&source->peer, &place->endpoint) && !slice_absent(source->name) &&
	    !slice_absent(source->path))
		return source;
	source_free(source);
	return NULL;
}

static struct source *find(const struct jwks *jwks, struct slice place)
{
	for (struct source *source = jwks->sources; source != NULL; source = source->next)
		if (slice_eq(source->name, place))
			return source;
	return NULL;
}

/* ---- what came of a fetch -------------------------------------------------------------------- */

static void say_good(const struct source *source, bool changed, const char *skipped)
{
	const char *line;

	if (!changed && !source->failing)
		return;
	(void)fprintf(stderr, "sluice: keys of %s: %u%s\n", source->peer.url.at,
		      jwt_keys_count(source->keys), source->failing ? ", fetched again" : "");
	while (changed && *(line = skipped) != '\0') {
		const int len = (int)strcspn(line, "\n");
		(void)fprintf(stderr, "sluice: keys of %s: %.*s\n", source->peer.url.at, len, line);
		skipped = line + len + (line[len] == '\n');
	}
}

static void take_keys(struct source *source, struct jwt_keys *fresh, const char *skipped)
{
	struct jwks *jwks = source->jwks;
	const bool changed = source->keys == NULL || !jwt_keys_same(source->keys, fresh);

	jwt_keys_free(&source->keys);
	source->keys = fresh;
	if (changed)
		jwks->told(jwks->arg, source->name, source->keys);
	say_good(source, changed, skipped);
	source->failing = false;
}

static void end(struct source *source, bool good, nsec_t now)
{
	source->fetch = NULL;
	jwks_plan_end(&source->plan, good, source->refresh, now);
}

static void on_failure(struct source *source, const char *problem, nsec_t now)
{
	source->failed++;
	if (!source->failing)
		(void)fprintf(stderr, "sluice: keys of %s cannot be fetched: %s; %s\n",
			      source->peer.url.at, problem,
			      source->keys != NULL
				      ? "the last ones stay in use, for a day at most"
				      : "tokens of that issuer are refused until they can");
	source->failing = true;
	end(source, false, now);
}

static void on_document(struct source *source, struct slice body, nsec_t now)
{
	char problem[160], *skipped = NULL;
	size_t len = 0;
	FILE *lines = open_memstream(&skipped, &len);
	struct jwt_keys *fresh =
		jwt_keys_new(body, source->jwks->work, lines, problem, sizeof(problem));

	if (lines != NULL && fclose(lines) != 0)
		skipped = NULL;
	if (fresh == NULL) {
		on_failure(source, problem, now);
	} else {
		source->fetched++;
		take_keys(source, fresh, skipped == NULL ? "" : skipped);
		end(source, true, now);
	}
	free(skipped);
}

static void on_fetched(void *arg, const char *problem, struct slice body)
{
	struct source *source = arg;

	must_obj(source, SOURCE_MAGIC);
	if (problem != NULL)
		on_failure(source, problem, control_now());
	else
		on_document(source, body, control_now());
}

/* ---- fetching -------------------------------------------------------------------------------- */

static void begin(struct source *source, nsec_t now)
{
	struct fetch_ask ask = {
		.base = source->jwks->base,
		.path = source->path,
		.accept = "application/jwk-set+json, application/json",
		.deadline = FETCH_DEADLINE,
		.body_max = BODY_MAX,
		.done = on_fetched,
		.arg = source,
	};
	char room[160];

	jwks_plan_begin(&source->plan);
	const char *problem = control_peer_ask(&source->peer, &ask, room, sizeof(room));
	if (problem == NULL) {
		source->fetch = fetch_start(&ask);
		problem = source->fetch == NULL ? "there is no memory for it" : NULL;
	}
	if (problem != NULL)
		on_failure(source, problem, now);
}

static void expire(struct source *source)
{
	struct jwks *jwks = source->jwks;

	(void)fprintf(stderr,
		      "sluice: keys of %s are a day old and not used any longer; tokens of that "
		      "issuer are refused until they can be fetched\n",
		      source->peer.url.at);
	jwt_keys_free(&source->keys);
	jwks->told(jwks->arg, source->name, NULL);
}

void control_jwks_tick(struct jwks *jwks, nsec_t now)
{
	for (struct source *source = jwks->sources; source != NULL; source = source->next) {
		if (jwks_plan_expires(&source->plan, now))
			expire(source);
		if (source->peer.resolved && jwks_plan_is_due(&source->plan, now))
			begin(source, now);
	}
}

void control_jwks_refetch(struct jwks *jwks, struct slice place, nsec_t now)
{
	struct source *source = find(jwks, place);

	if (source != NULL)
		jwks_plan_refetch(&source->plan, now);
}

/* ---- where they are -------------------------------------------------------------------------- */

void control_jwks_resolved(struct jwks *jwks, struct slice host,
			   const struct upstream_address *addresses, uint32_t count)
{
	for (struct source *source = jwks->sources; source != NULL; source = source->next)
		/* One that is being tried needs its list; the next answer comes in 30 s. */
		if (source->fetch == NULL &&
		    control_peer_resolved(&source->peer, host, addresses, count))
			jwks_plan_hurry(&source->plan);
}

/* ---- configurations -------------------------------------------------------------------------- */

static void want(struct jwks *jwks, const struct jwks_place *place, nsec_t now)
{
	struct source *source = find(jwks, place->name);

	if (source == NULL) {
		source = source_new(jwks, place, now);
		if (source == NULL) {
			(void)fprintf(stderr, "sluice: no memory to fetch the keys of %s\n",
				      place->endpoint.url.at);
			return;
		}
		source->next = jwks->sources;
		jwks->sources = source;
	}
	/* Two issuers may share a place: the shorter period is good for both. */
	if (!source->wanted || place->refresh < source->refresh)
		source->refresh = place->refresh;
	source->wanted = true;
	jwks_plan_set_refresh(&source->plan, source->refresh, now);
}

static void sweep(struct jwks *jwks)
{
	for (struct source **at = &jwks->sources; *at != NULL;) {
		struct source *source = *at;
		if (source->wanted) {
			at = &source->next;
			continue;
		}
		*at = source->next;
		source_free(source);
	}
}

void control_jwks_want(struct jwks *jwks, const struct config *config, nsec_t now)
{
	for (struct source *source = jwks->sources; source != NULL; source = source->next)
		source->wanted = false;
	for (uint32_t i = 0; i < config->jwt_issuer_count; i++)
		want(jwks, &config->jwks[i], now);
	sweep(jwks);
}

struct jwks *control_jwks_new(struct event_base *base, jwks_told_fn *told, void *arg)
{
	struct jwks *jwks = calloc(1, sizeof(*jwks));

	if (jwks == NULL)
		return NULL;
	*jwks = (struct jwks){
		.base = base, .told = told, .arg = arg, .work = json_work_new(codec_set_best())
	};
	if (jwks->work == NULL) {
		free(jwks);
		return NULL;
	}
	return jwks;
}

/* ---- metrics --------------------------------------------------------------------------------- */

void control_jwks_print(const struct jwks *jwks, nsec_t now, FILE *out)
{
	const struct source *source;

	metrics_print_head(METRIC_JWKS_FETCHES, out);
	for (source = jwks->sources; source != NULL; source = source->next) {
		const struct slice ok[] = { source->peer.url, SLICE("ok") };
		const struct slice failed[] = { source->peer.url, SLICE("failed") };
		metrics_print_sample(METRIC_JWKS_FETCHES, ok, source->fetched, out);
		metrics_print_sample(METRIC_JWKS_FETCHES, failed, source->failed, out);
	}
	metrics_print_head(METRIC_JWKS_KEYS, out);
	for (source = jwks->sources; source != NULL; source = source->next)
		metrics_print_sample(METRIC_JWKS_KEYS, &source->peer.url,
				     source->keys == NULL ? 0 : jwt_keys_count(source->keys), out);
	metrics_print_head(METRIC_JWKS_AGE, out);
	for (source = jwks->sources; source != NULL; source = source->next)
		if (source->keys != NULL)
			metrics_print_sample(METRIC_JWKS_AGE, &source->peer.url,
					     (now - source->plan.good_at) / SEC, out);
}
