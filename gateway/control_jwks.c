#include "gateway/control_jwks.h"

#include "codec/base/must.h"
#include "gateway/control_dns.h"
#include "gateway/control_fetch.h"
#include "gateway/control_jwks_plan.h"
#include "gateway/control_parts.h"
#include "gateway/metrics.h"
#include "gateway/tls.h"

#include <arpa/inet.h>
#include <stdlib.h>

enum { SOURCE_MAGIC = 0x4a574b50, ADDRESSES_MAX = 8, BODY_MAX = 256 << 10 };
#define FETCH_DEADLINE (10 * SEC)

/* Copies of what a snapshot says of its place. */
struct source {
	uint32_t magic;
	struct jwks *jwks;
	struct source *next;
	struct slice name, url, authority, path, ca_pem;
	char *host;
	uint16_t port;
	bool tls;
	nsec_t refresh;
	bool wanted; /* by the configuration in force */

	struct upstream_address addresses[ADDRESSES_MAX];
	uint32_t address_count;
	bool resolved;          /* DNS has said something: there is a list, or none */
	struct ssl_ctx_st *ctx; /* of TLS; made when it is needed */
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

static struct slice copy(struct slice s)
{
	if (slice_absent(s))
		return s;
	char *text = malloc(s.len + 1);
	if (text == NULL)
		return slice_of(NULL, 0);
	(void)memcpy(text, s.at, s.len);
	text[s.len] = '\0';
	return slice_of(text, s.len);
}

static void source_free(struct source *source)
{
	const struct slice texts[] = { source->name, source->url, source->authority, source->path,
				       source->ca_pem };

	fetch_cancel(&source->fetch);
	tls_client_free(source->ctx);
	jwt_keys_free(&source->keys);
	for (size_t i = 0; i < COUNT_OF(texts); i++)
		free((void *)(uintptr_t)texts[i].at);
	free(source->host);
	source->magic = 0;
	free(source);
}

/* An address instead of a name is known already. */
static void take_literal(struct source *source)
{
	struct upstream_address *out = &source->addresses[0];
	struct sockaddr_in *v4 = (struct sockaddr_in *)&out->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&out->address;

	if (inet_pton(AF_INET, source->host, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		out->len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, source->host, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		out->len = sizeof(*v6);
	} else {
		return;
	}
	control_dns_port(out, source->port);
	source->address_count = 1;
	source->resolved = true;
}

static struct source *source_new(struct jwks *jwks, const struct jwks_place *place, nsec_t now)
{
	const struct endpoint *endpoint = &place->endpoint;
	struct source *source = calloc(1, sizeof(*source));

	if (source == NULL)
		return NULL;
	source->magic = SOURCE_MAGIC;
	source->jwks = jwks;
	source->name = copy(place->name);
	source->url = copy(endpoint->url);
	source->authority = copy(endpoint->authority);
	source->path = copy(place->path);
	source->ca_pem = copy(endpoint->ca_pem);
	source->host = strndup(endpoint->host.at, endpoint->host.len);
	source->port = endpoint->port;
	source->tls = endpoint->tls;
	jwks_plan_init(&source->plan, now);
	const bool complete = !slice_absent(source->name) && !slice_absent(source->url) &&
			      !slice_absent(source->authority) && !slice_absent(source->path) &&
			      slice_absent(source->ca_pem) == slice_absent(endpoint->ca_pem) &&
			      source->host != NULL;
	if (!complete) {
		source_free(source);
		return NULL;
	}
	take_literal(source);
	return source;
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
	(void)fprintf(stderr, "sluice: keys of %s: %u%s\n", source->url.at,
		      jwt_keys_count(source->keys), source->failing ? ", fetched again" : "");
	while (changed && *(line = skipped) != '\0') {
		const int len = (int)strcspn(line, "\n");
		(void)fprintf(stderr, "sluice: keys of %s: %.*s\n", source->url.at, len, line);
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
			      source->url.at, problem,
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

static bool prepare_tls(struct source *source, char *problem, size_t room)
{
	if (!source->tls || source->ctx != NULL)
		return true;
	source->ctx = tls_client_new(source->host, source->ca_pem, problem, room);
	return source->ctx != NULL;
}

static void begin(struct source *source, nsec_t now)
{
	const struct fetch_ask ask = {
		.base = source->jwks->base,
		.host = source->host,
		.authority = source->authority,
		.path = source->path,
		.addresses = source->addresses,
		.address_count = source->address_count,
		.deadline = FETCH_DEADLINE,
		.body_max = BODY_MAX,
		.done = on_fetched,
		.arg = source,
	};
	char problem[160];

	jwks_plan_begin(&source->plan);
	if (source->address_count == 0) {
		on_failure(source, "its host has no address", now);
	} else if (!prepare_tls(source, problem, sizeof(problem))) {
		on_failure(source, problem, now);
	} else {
		struct fetch_ask whole = ask;
		whole.tls = source->ctx;
		source->fetch = fetch_start(&whole);
		if (source->fetch == NULL)
			on_failure(source, "there is no memory for it", now);
	}
}

static void expire(struct source *source)
{
	struct jwks *jwks = source->jwks;

	(void)fprintf(stderr,
		      "sluice: keys of %s are a day old and not used any longer; tokens of that "
		      "issuer are refused until they can be fetched\n",
		      source->url.at);
	jwt_keys_free(&source->keys);
	jwks->told(jwks->arg, source->name, NULL);
}

void control_jwks_tick(struct jwks *jwks, nsec_t now)
{
	for (struct source *source = jwks->sources; source != NULL; source = source->next) {
		if (jwks_plan_expires(&source->plan, now))
			expire(source);
		if (source->resolved && jwks_plan_is_due(&source->plan, now))
			begin(source, now);
	}
}

void control_jwks_wish(struct jwks *jwks, struct slice place, nsec_t now)
{
	struct source *source = find(jwks, place);

	if (source != NULL)
		jwks_plan_wish(&source->plan, now);
}

/* ---- where they are -------------------------------------------------------------------------- */

void control_jwks_resolved(struct jwks *jwks, struct slice host,
			   const struct upstream_address *addresses, uint32_t count)
{
	if (count > ADDRESSES_MAX)
		count = ADDRESSES_MAX;
	for (struct source *source = jwks->sources; source != NULL; source = source->next) {
		/* One that is being tried needs its list; the next answer comes in 30 s. */
		if (!slice_eq(slice_str(source->host), host) || source->fetch != NULL)
			continue;
		for (uint32_t i = 0; i < count; i++) {
			source->addresses[i] = addresses[i];
			control_dns_port(&source->addresses[i], source->port);
		}
		if (source->address_count == 0 && count != 0)
			jwks_plan_hurry(&source->plan);
		source->address_count = count;
		source->resolved = true;
	}
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
	*jwks = (struct jwks){ .base = base, .told = told, .arg = arg, .work = json_work_new() };
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
		const struct slice ok[] = { source->url, SLICE("ok") };
		const struct slice failed[] = { source->url, SLICE("failed") };
		metrics_print_sample(METRIC_JWKS_FETCHES, ok, source->fetched, out);
		metrics_print_sample(METRIC_JWKS_FETCHES, failed, source->failed, out);
	}
	metrics_print_head(METRIC_JWKS_KEYS, out);
	for (source = jwks->sources; source != NULL; source = source->next)
		metrics_print_sample(METRIC_JWKS_KEYS, &source->url,
				     source->keys == NULL ? 0 : jwt_keys_count(source->keys), out);
	metrics_print_head(METRIC_JWKS_AGE, out);
	for (source = jwks->sources; source != NULL; source = source->next)
		if (source->keys != NULL)
			metrics_print_sample(METRIC_JWKS_AGE, &source->url,
					     (now - source->plan.good_at) / SEC, out);
}
