/* health.c - the states, and the views of them. */
#include "gateway/providers/health.h"

#include "codec/base/must.h"
#include "gateway/providers/health_parts.h"

#include <stdlib.h>

_Static_assert((int)CONFIG_ENDPOINTS_MAX <= (int)POOL_MEMBERS_MAX, "every endpoint is a member");
_Static_assert((int)CONFIG_KEYS_MAX <= (int)KEYS_MAX, "every key can be picked");

/* ---- states ---------------------------------------------------------------------------------- */

static const size_t sizes[HEALTH_KINDS] = {
	[HEALTH_PROVIDER] = sizeof(struct provider_state),
	[HEALTH_ENDPOINT] = sizeof(struct endpoint_state),
	[HEALTH_KEY] = sizeof(struct key_state),
	[HEALTH_MODEL] = sizeof(struct model_state),
};

static struct health_entry **bucket_of(struct health *health, enum health_kind kind,
				       const uint8_t id[SHA256_BYTES])
{
	return &health->buckets[kind][id[0] % HEALTH_BUCKETS];
}

/* What a state belongs to. Lengths come first, so that no two lists of parts look the same. */
static void identify(const struct slice *parts, size_t count, uint8_t id[SHA256_BYTES])
{
	struct sha256_sum sum;

	sha256_begin(&sum);
	for (size_t i = 0; i < count; i++) {
		const uint64_t len = parts[i].len;
		sha256_add(&sum, slice_of((const char *)&len, sizeof(len)));
		if (len != 0)
			sha256_add(&sum, parts[i]);
	}
	sha256_end(&sum, id);
}

static struct health_entry *find(struct health *health, enum health_kind kind,
				 const uint8_t id[SHA256_BYTES])
{
	struct health_entry *entry = *bucket_of(health, kind, id);

	while (entry != NULL && memcmp(entry->id, id, SHA256_BYTES) != 0)
		entry = entry->next;
	return entry;
}

/* The state of that kind and identity, with one reference more; NULL: memory. */
static void *state_for(struct health *health, enum health_kind kind, const struct slice *parts,
		       size_t count)
{
	uint8_t id[SHA256_BYTES];

	identify(parts, count, id);
	struct health_entry *entry = find(health, kind, id);
	if (entry == NULL) {
		struct health_entry **bucket = bucket_of(health, kind, id);
		entry = calloc(1, sizes[kind]);
		if (entry == NULL)
			return NULL;
		entry->kind = kind;
		(void)memcpy(entry->id, id, sizeof(id));
		entry->next = *bucket;
		*bucket = entry;
		health->states++;
	}
	entry->refs++;
	return entry;
}

void health_hold(struct health_entry *entry)
{
	must(entry->refs > 0);
	entry->refs++;
}

void health_let_go(struct health *health, struct health_entry *entry)
{
	must(entry->refs > 0);
	if (--entry->refs > 0)
		return;
	health_trouble(health, entry, false);
	struct health_entry **at = bucket_of(health, entry->kind, entry->id);
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	health->states--;
	free(entry);
}

void health_trouble(struct health *health, struct health_entry *entry, bool troubled)
{
	health->changes += troubled || entry->troubled;
	if (troubled == entry->troubled)
		return;
	entry->troubled = troubled;
	if (troubled)
		health->troubles++;
	else
		health->troubles--;
}

struct health *health_new(void)
{
	struct health *health = calloc(1, sizeof(*health));

	if (health == NULL)
		return NULL;
	health->retry = retry_settings_default;
	return health;
}

void health_free(struct health *health)
{
	must(health == NULL || health->states == 0);
	free(health);
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Calls that an endpoint may have from one worker, those that wait for a connection included. */
static uint32_t calls_max(const struct endpoint *endpoint, uint32_t workers)
{
	uint32_t sum;

	return __builtin_add_overflow(config_share(endpoint->concurrent, workers),
				      config_share(endpoint->queue, workers), &sum)
		       ? UINT32_MAX
		       : sum;
}

static bool fill_endpoints(struct health *health, const struct config *config,
			   const struct provider *provider, uint32_t workers,
			   struct health_provider *out)
{
	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		const struct endpoint *endpoint = &provider->endpoints[e];
		const struct slice parts[] = { provider->name, endpoint->identity, endpoint->path };
		struct endpoint_state *state =
			state_for(health, HEALTH_ENDPOINT, parts, COUNT_OF(parts));

		if (state == NULL)
			return false;
		out->endpoints[e] = state;
		out->members[e] = (struct pool_member){
			.load = &state->load,
			.weight = endpoint->weight,
			.own_zone = !slice_absent(config->zone) &&
				    slice_eq(config->zone, endpoint->zone),
		};
		out->calls_max[e] = calls_max(endpoint, workers);
		out->endpoint_count = e + 1;
	}
	return true;
}

static bool fill_keys(struct health *health, const struct provider *provider,
		      const struct endpoint *endpoint, struct health_keys *out)
{
	for (uint32_t k = 0; k < provider->key_count; k++) {
		const struct slice parts[] = { provider->name, endpoint->identity, endpoint->path,
					       provider->keys[k] };
		struct key_state *state = state_for(health, HEALTH_KEY, parts, COUNT_OF(parts));

		if (state == NULL)
			return false;
		out->with[k] = state;
		out->at[k] = &state->key;
		out->count = k + 1;
	}
	return true;
}

static bool fill_all_keys(struct health *health, const struct provider *provider,
			  struct health_provider *out)
{
	out->keys = calloc(provider->endpoint_count, sizeof(*out->keys));
	if (out->keys == NULL)
		return false;
	for (uint32_t e = 0; e < provider->endpoint_count; e++)
		if (!fill_keys(health, provider, &provider->endpoints[e], &out->keys[e]))
			return false;
	return true;
}

static struct breaker_settings breaker_settings(const struct provider_breaker *breaker)
{
	return (struct breaker_settings){
		.row = breaker->failures,
		.ratio = breaker->ratio,
		.calls = breaker->calls,
		.window = breaker->window,
		.open_first = breaker->open,
		.open_max = breaker->open_max,
		.ramp = breaker->slow_start,
	};
}

static bool fill_providers(struct health_view *view, const struct config *config, uint32_t workers)
{
	struct health *health = view->health;

	for (uint32_t p = 0; p < config->provider_count; p++) {
		const struct provider *provider = &config->providers[p];
		struct health_provider *out = &view->providers[p];

		view->provider_count = p + 1;
		out->state = state_for(health, HEALTH_PROVIDER, &provider->name, 1);
		if (out->state == NULL)
			return false;
		if (!fill_endpoints(health, config, provider, workers, out) ||
		    !fill_all_keys(health, provider, out))
			return false;
	}
	return true;
}

static bool fill_models(struct health_view *view, const struct config *config)
{
	for (uint32_t m = 0; m < config->catalog.count; m++) {
		const struct model *model = &config->catalog.models[m];
		const struct slice parts[] = { config->providers[model->provider].name,
					       model->name };

		view->models[m] = state_for(view->health, HEALTH_MODEL, parts, COUNT_OF(parts));
		if (view->models[m] == NULL)
			return false;
		view->speeds[m] = speed_estimate(&view->models[m]->speed);
	}
	return true;
}

/* Last of all: a view that cannot be made changes nothing. */
static void use_settings(struct health_view *view, const struct config *config)
{
	view->health->retry.share = config->retries.budget;
	view->health->retry.floor = config->retries.floor;
	for (uint32_t p = 0; p < config->provider_count; p++)
		view->providers[p].state->breaker = breaker_settings(&config->providers[p].breaker);
}

struct health_view *health_view_new(struct health *health, const struct config *config,
				    uint32_t workers)
{
	struct health_view *view = calloc(1, sizeof(*view));

	must(workers > 0);
	if (view == NULL)
		return NULL;
	view->health = health;
	view->catalog = &config->catalog;
	view->model_count = config->catalog.count;
	view->providers = calloc(config->provider_count + 1, sizeof(*view->providers));
	view->models = calloc(config->catalog.count + 1, sizeof(struct model_state *));
	view->speeds = calloc(config->catalog.count + 1, sizeof(*view->speeds));
	if (view->providers != NULL && view->models != NULL && view->speeds != NULL &&
	    fill_providers(view, config, workers) && fill_models(view, config)) {
		use_settings(view, config);
		return view;
	}
	health_view_free(view);
	return NULL;
}

static void let_go_of_provider(struct health *health, struct health_provider *provider)
{
	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		const struct health_keys *keys = provider->keys == NULL ? NULL : &provider->keys[e];

		for (uint32_t k = 0; keys != NULL && k < keys->count; k++)
			health_let_go(health, &keys->with[k]->entry);
		health_let_go(health, &provider->endpoints[e]->entry);
	}
	free(provider->keys);
	if (provider->state != NULL)
		health_let_go(health, &provider->state->entry);
}

void health_view_free(struct health_view *view)
{
	if (view == NULL)
		return;
	for (uint32_t p = 0; p < view->provider_count; p++)
		let_go_of_provider(view->health, &view->providers[p]);
	for (uint32_t m = 0; view->models != NULL && m < view->model_count; m++)
		if (view->models[m] != NULL)
			health_let_go(view->health, &view->models[m]->entry);
	free(view->providers);
	free(view->models);
	free(view->speeds);
	free(view);
}

/* ---- what routing asks ----------------------------------------------------------------------- */

uint64_t health_tenant(const uint8_t tenant[16])
{
	uint64_t tag; /* the front of a digest */

	(void)memcpy(&tag, tenant, sizeof(tag));
	return tag | 1;
}

uint64_t health_tag(const struct health_entry *entry)
{
	uint64_t tag; /* ids are digests: any bytes of them will do */

	(void)memcpy(&tag, entry->id, sizeof(tag));
	return tag | 1;
}

bool health_models_at(const struct health_view *view, const struct health_target *target,
		      struct bitset *out)
{
	bool any = false;

	*out = (struct bitset){ 0 };
	for (uint32_t m = 0; target->model != 0 && m < view->model_count; m++) {
		if (health_tag(&view->models[m]->entry) != target->model)
			continue;
		bitset_add(out, m);
		any = true;
	}
	return any;
}

enum err health_key_for(const struct health_keys *keys, uint64_t model, uint32_t tried, nsec_t now,
			uint32_t *picked, nsec_t *wait)
{
	const struct key_lane *lanes[CONFIG_KEYS_MAX];

	for (uint32_t k = 0; k < keys->count; k++)
		lanes[k] = key_lane_of(&keys->with[k]->lanes, model);
	*picked = UINT32_MAX;
	return keys->count == 0 ? ERR_OK
				: keys_pick(keys->at, lanes, keys->count, tried, keys->turn, now,
					    picked, wait);
}

/* As health_choose sees it, where there is no other one. */
static bool may_admit(const struct health_provider *provider, uint32_t e, uint64_t tenant,
		      nsec_t now)
{
	const struct breaker *breaker = &provider->endpoints[e]->breaker;

	return breaker_admits(breaker, now) || breaker_spares(breaker, tenant) ||
	       breaker_early(breaker, &provider->state->breaker, tenant, now) <= now;
}

static bool model_up(const struct health_view *view, uint32_t model, uint64_t tenant, nsec_t now)
{
	const struct health_provider *provider =
		&view->providers[view->catalog->models[model].provider];
	const uint64_t tag = health_tag(&view->models[model]->entry);
	uint32_t picked;
	nsec_t wait;

	for (uint32_t e = 0; e < provider->endpoint_count; e++)
		if (may_admit(provider, e, tenant, now) &&
		    health_key_for(&provider->keys[e], tag, 0, now, &picked, &wait) == ERR_OK)
			return true;
	return false;
}

nsec_t health_wait(const struct health_view *view, uint32_t model, uint64_t tenant, nsec_t now)
{
	const struct health_provider *provider =
		&view->providers[view->catalog->models[model].provider];
	const uint64_t tag = health_tag(&view->models[model]->entry);
	nsec_t soonest = NSEC_NEVER;
	uint32_t picked;

	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		const nsec_t opens =
			may_admit(provider, e, tenant, now)
				? now
				: breaker_early(&provider->endpoints[e]->breaker,
						&provider->state->breaker, tenant, now);
		nsec_t cools, wait = opens == NSEC_NEVER ? NSEC_NEVER : opens - now;
		if (health_key_for(&provider->keys[e], tag, 0, now, &picked, &cools) != ERR_OK &&
		    cools > wait)
			wait = cools;
		soonest = wait < soonest ? wait : soonest;
	}
	return soonest;
}

/* A breaker half opens and a key is back by time alone, so that nothing is believed for longer. */
static const nsec_t down_valid = 5 * MSEC;

static uint64_t bit_of(uint64_t tenant)
{
	return UINT64_C(1) << (tenant >> 58);
}

/* Tenants that an open breaker does not treat as all others. */
static uint64_t bits_of(const struct breaker *breaker)
{
	uint64_t bits = breaker->only != 0 ? bit_of(breaker->only) : 0;

	for (uint32_t i = 0; i < breaker_blamed(breaker); i++)
		bits |= bit_of(breaker->blamed[i]);
	for (uint32_t i = 0; i < BREAKER_WELL_MAX; i++)
		if (breaker->well[i].at != 0)
			bits |= bit_of(breaker->well[i].of);
	return bits;
}

static uint64_t find_alone(const struct health_view *view)
{
	uint64_t alone = 0;

	for (uint32_t p = 0; p < view->provider_count; p++) {
		const struct health_provider *provider = &view->providers[p];
		for (uint32_t e = 0; e < provider->endpoint_count; e++) {
			const struct breaker *breaker = &provider->endpoints[e]->breaker;
			if (breaker->open)
				alone |= bits_of(breaker);
		}
	}
	return alone;
}

/* For whom it would be found: mostly nobody in particular, so that it is found once for all. */
static uint64_t down_for_whom(const struct health_view *view, uint64_t tenant)
{
	return (view->alone & bit_of(tenant)) != 0 ? tenant : 0;
}

static void find_down(struct health_view *view, uint64_t tenant, nsec_t now)
{
	view->alone = find_alone(view);
	view->down_for = tenant = down_for_whom(view, tenant);
	view->down = (struct bitset){ 0 };
	view->any_down = false;
	for (uint32_t m = 0; m < view->model_count; m++) {
		if (model_up(view, m, tenant, now))
			continue;
		bitset_add(&view->down, m);
		view->any_down = true;
	}
	view->down_changes = view->health->changes;
	view->down_until = now + down_valid;
}

const struct bitset *health_down(struct health_view *view, uint64_t tenant, nsec_t now)
{
	const struct health *health = view->health;

	if (health->troubles == 0)
		return NULL;
	if (view->down_changes != health->changes || now >= view->down_until ||
	    view->down_for != down_for_whom(view, tenant))
		find_down(view, tenant, now);
	return view->any_down ? &view->down : NULL;
}

const struct model_speed *health_speeds(const struct health_view *view)
{
	return view->speeds;
}

struct hint_memory *health_hints(struct health_view *view)
{
	return &view->hints;
}

/* ---- lessons --------------------------------------------------------------------------------- */

void health_learn(struct health_view *view, uint32_t model, learn_set facts,
		  const struct lesson_from *from, nsec_t now)
{
	must(model < view->model_count);
	lessons_note(&view->models[model]->lessons, facts, from, now);
}

learn_set health_learned(const struct health_view *view, uint32_t model, const uint8_t tenant[16],
			 nsec_t now)
{
	must(model < view->model_count);
	const struct lessons *lessons = &view->models[model]->lessons;
	return lessons->until <= now ? 0 : lessons_known(lessons, health_tenant(tenant), now);
}

const struct lessons *health_lessons(const struct health_view *view, uint32_t model, nsec_t now)
{
	must(model < view->model_count);
	const struct lessons *lessons = &view->models[model]->lessons;
	return lessons->until <= now ? NULL : lessons;
}

/* ---- once a second --------------------------------------------------------------------------- */

/* Rate limits end by time alone. */
static void review_keys(struct health *health, const struct health_keys *keys, nsec_t now)
{
	for (uint32_t k = 0; k < keys->count; k++) {
		struct key_state *with = keys->with[k];
		health_trouble(health, &with->entry,
			       with->key.why != ERR_OK || key_lanes_cool(&with->lanes, now) != 0);
	}
}

void health_tick(struct health_view *view, nsec_t now)
{
	for (uint32_t p = 0; p < view->provider_count; p++) {
		struct health_provider *provider = &view->providers[p];
		if (provider->endpoint_count > 1)
			pool_review(provider->members, provider->endpoint_count, now);
		for (uint32_t e = 0; e < provider->endpoint_count; e++)
			review_keys(view->health, &provider->keys[e], now);
	}
	for (uint32_t m = 0; m < view->model_count; m++)
		view->speeds[m] = speed_estimate(&view->models[m]->speed);
}

uint32_t health_breaker(const struct health_view *view, uint32_t provider, uint32_t endpoint,
			nsec_t now)
{
	return breaker_state(&view->providers[provider].endpoints[endpoint]->breaker, now);
}

nsec_t health_cools(const struct health_view *view, uint32_t provider, uint32_t key, nsec_t now)
{
	const struct health_provider *at = &view->providers[provider];
	nsec_t longest = 0;

	for (uint32_t e = 0; e < at->endpoint_count; e++) {
		const struct key_state *with = at->keys[e].with[key];
		const nsec_t whole = key_cools(&with->key, now);
		const nsec_t lane = key_lanes_cool(&with->lanes, now);
		const nsec_t cools = whole > lane ? whole : lane;
		longest = cools > longest ? cools : longest;
	}
	return longest;
}

void health_checked(struct health *health, struct slice provider, struct slice identity,
		    struct slice path, bool up, nsec_t now)
{
	const struct slice parts[] = { provider, identity, path };
	uint8_t id[SHA256_BYTES];

	identify(parts, COUNT_OF(parts), id);
	struct health_entry *entry = find(health, HEALTH_ENDPOINT, id);
	if (entry == NULL)
		return;
	struct endpoint_state *state = CONTAINER_OF(entry, struct endpoint_state, entry);
	breaker_checked(&state->breaker, up, now);
	health_trouble(health, entry, state->breaker.open || state->breaker.failing);
}
