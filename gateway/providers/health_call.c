/* health_call.c - one attempt: where it goes, and what its outcome tells. */
#include "gateway/providers/health.h"

#include "codec/base/must.h"
#include "gateway/providers/health_parts.h"

/* An answer that was not streamed is divided by what writing its tokens takes, so that a long one does
 * not make its endpoint look slow: about so many tokens are written while one waits for the first. */
static const double tokens_like_first = 50;

/* Where all endpoints have as many calls as they may: when it makes sense to ask again. */
static const nsec_t busy_wait = 1 * SEC;

/* ---- choosing -------------------------------------------------------------------------------- */

/* Endpoints by how gladly a call is sent there. */
struct welcome {
	uint64_t admitting; /* their breakers do */
	uint64_t early;     /* they were left alone as long as the first time */
	uint64_t lucky;     /* they answer some of their calls, and this one has drawn the chance */
	bool busy;          /* some would, but have as many calls as they may */
	nsec_t first;       /* when one will be early; NSEC_NEVER: not by time alone */
};

static void look_at(const struct health_provider *provider, uint32_t e, uint64_t tenant, nsec_t now,
		    uint64_t random, struct welcome *out)
{
	const struct endpoint_state *state = provider->endpoints[e];
	const struct breaker *breaker = &state->breaker;
	const bool admits = breaker_admits(breaker, now) || breaker_spares(breaker, tenant);
	const bool full = state->load.in_flight >= provider->calls_max[e];
	const uint64_t bit = UINT64_C(1) << e;
	const nsec_t early =
		admits ? now : breaker_early(breaker, &provider->state->breaker, tenant, now);

	if (early <= now) {
		out->busy = out->busy || full;
		if (!full)
			*(admits ? &out->admitting : &out->early) |= bit;
		return;
	}
	out->first = early < out->first ? early : out->first;
	/* One draw for all: many endpoints that fail are no better than one. */
	if (!full && random >> 48 < breaker_chance(breaker))
		out->lucky |= bit;
}

/* Endpoints that a call may go to, whatever their keys. None: why not, and for how long. */
static enum err admitted(struct health_provider *provider, uint64_t tenant, nsec_t now,
			 uint64_t random, uint64_t *may, nsec_t *wait)
{
	const struct breaker_settings *settings = &provider->state->breaker;
	struct welcome by = { .first = NSEC_NEVER };

	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		provider->members[e].share =
			breaker_share(&provider->endpoints[e]->breaker, settings, now);
		look_at(provider, e, tenant, now, random, &by);
	}
	*may = by.admitting;
	if (*may == 0 && !by.busy)
		*may = by.early != 0 ? by.early : by.lucky;
	if (*may != 0)
		return ERR_OK;
	*wait = by.busy || by.first == NSEC_NEVER ? busy_wait : by.first - now;
	return by.busy ? ERR_BUSY : ERR_PROVIDER_NO_ATTEMPT;
}

/* Takes those endpoints out of *may at which every key cools for the model: each has limits of its own.
 * None is left: why the one that is back first cools, and for how long. */
static enum err with_keys(const struct health_provider *provider, uint64_t model, nsec_t now,
			  uint64_t *may, nsec_t *wait)
{
	enum err why = ERR_OK;
	nsec_t first = NSEC_NEVER, cools;
	uint64_t left = 0;
	uint32_t picked;

	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		if ((*may >> e & 1) == 0)
			continue;
		const enum err err =
			health_key_for(&provider->keys[e], model, 0, now, &picked, &cools);
		if (err == ERR_OK) {
			left |= UINT64_C(1) << e;
		} else if (cools < first) {
			first = cools;
			why = err;
		}
	}
	if (left == 0) {
		*wait = first;
		return why;
	}
	*may = left;
	return ERR_OK;
}

/* The key where it belongs, if that is as good as any; KEYS_MAX: there is none. */
static uint32_t held_key(const struct health_keys *keys, uint64_t model,
			 const struct health_tried *tried, nsec_t now)
{
	for (uint32_t k = 0; tried->held.key != 0 && k < keys->count; k++) {
		const struct key_state *with = keys->with[k];
		if (health_tag(&with->entry) == tried->held.key && (tried->keys >> k & 1) == 0 &&
		    key_is_free(&with->key, key_lane_of(&with->lanes, model), now))
			return k;
	}
	return KEYS_MAX;
}

/* The endpoint has one. */
static void choose_key(struct health_provider *provider, uint64_t model,
		       const struct health_tried *tried, nsec_t now, struct health_choice *choice)
{
	struct health_keys *keys = &provider->keys[choice->endpoint];
	nsec_t wait;

	choice->key = choice->held ? held_key(keys, model, tried, now) : KEYS_MAX;
	if (choice->key == KEYS_MAX) {
		must(health_key_for(keys, model, tried->keys, now, &choice->key, &wait) == ERR_OK);
		if (keys->count != 0) /* who stays takes nobody's turn */
			keys->turn = (choice->key + 1) % keys->count;
	}
	if (keys->count != 0)
		choice->with = keys->with[choice->key];
	choice->several_keys = keys->count > 1;
}

/* The endpoint where it belongs, if it may go there and was not there yet; POOL_MEMBERS_MAX: there is none.
 * One that its pool has found to be worse than its peers is none, either. */
static uint32_t held_endpoint(const struct health_provider *provider, uint64_t may,
			      const struct health_tried *tried, nsec_t now)
{
	for (uint32_t e = 0; e < provider->endpoint_count; e++) {
		const struct endpoint_state *state = provider->endpoints[e];
		if (health_tag(&state->entry) == tried->held.endpoint &&
		    (may & ~tried->endpoints & UINT64_C(1) << e) != 0 &&
		    state->load.ejected_until <= now)
			return e;
	}
	return POOL_MEMBERS_MAX;
}

static bool hold_endpoint(struct health_provider *provider, uint64_t may,
			  const struct health_tried *tried, nsec_t now,
			  struct health_choice *choice)
{
	if (tried->held.model == 0 || health_tag(&choice->model->entry) != tried->held.model)
		return false;
	const uint32_t e = held_endpoint(provider, may, tried, now);
	if (e == POOL_MEMBERS_MAX)
		return false;
	choice->endpoint = e;
	choice->at = provider->endpoints[e];
	choice->held = true;
	return true;
}

static void choose_endpoint(struct health_provider *provider, uint64_t may, uint64_t tried,
			    nsec_t now, uint64_t random, struct health_choice *choice)
{
	const uint64_t fresh = may & ~tried;
	const struct pool_choice picked = pool_pick(provider->members, provider->endpoint_count,
						    fresh != 0 ? fresh : may, now, random);

	choice->endpoint = picked.member;
	choice->at = provider->endpoints[picked.member];
	choice->drawn_count = picked.drawn_count;
	for (uint32_t i = 0; i < picked.drawn_count; i++)
		choice->drawn[i] = picked.drawn[i];
}

/* Everything the call will report to stays until it has. */
static void hold(struct health_choice *choice, nsec_t now)
{
	struct endpoint_state *at = choice->at;

	choice->pass = breaker_began(&at->breaker, &choice->of->breaker, choice->tenant, now);
	at->load.in_flight++;
	health_hold(&choice->of->entry);
	health_hold(&at->entry);
	health_hold(&choice->model->entry);
	if (choice->with != NULL)
		health_hold(&choice->with->entry);
}

enum err health_choose(struct health_view *view, uint32_t model, const struct health_tried *tried,
		       nsec_t now, uint64_t random, struct health_choice *choice, nsec_t *wait)
{
	static const struct health_tried nowhere = { 0 };
	uint64_t may;

	must(model < view->model_count && choice->at == NULL);
	const uint32_t p = view->catalog->models[model].provider;
	struct health_provider *provider = &view->providers[p];
	struct health_choice made = { .health = view->health,
				      .of = provider->state,
				      .model = view->models[model],
				      .provider = p };
	if (tried == NULL)
		tried = &nowhere;
	made.tenant = tried->tenant;
	const uint64_t tag = health_tag(&made.model->entry);
	enum err err = admitted(provider, tried->tenant, now, random, &may, wait);
	if (err == ERR_OK && view->health->troubles != 0)
		err = with_keys(provider, tag, now, &may, wait);
	if (err != ERR_OK)
		return err;
	if (!hold_endpoint(provider, may, tried, now, &made))
		choose_endpoint(provider, may, tried->endpoints, now, random, &made);
	choose_key(provider, tag, tried, now, &made);
	hold(&made, now);
	*choice = made;
	return ERR_OK;
}

struct health_target health_target_of(const struct health_choice *choice)
{
	must(choice->at != NULL);
	return (struct health_target){
		.model = health_tag(&choice->model->entry),
		.endpoint = health_tag(&choice->at->entry),
		.key = choice->with == NULL ? 0 : health_tag(&choice->with->entry),
	};
}

void health_began(struct health_choice *choice, nsec_t now)
{
	must(choice->at != NULL);
	choice->began = true;
	if (choice->with != NULL)
		key_lanes_began(&choice->with->lanes, health_tag(&choice->model->entry), now);
}

void health_note_rates(struct health_choice *choice, const struct provider_headers *headers,
		       nsec_t now, uint64_t wall_ns)
{
	must(choice->at != NULL);
	if (choice->several_keys &&
	    headers->rates != NULL) /* else nothing would be chosen by them */
		key_lane_note_rates(
			key_lane_for(&choice->with->lanes, health_tag(&choice->model->entry)),
			headers->rates, now, wall_ns);
}

bool health_counts_tokens(const struct health_choice *choice, nsec_t now)
{
	must(choice->at != NULL);
	/* A probe of a circuit is for who tells what became of it: a count does not. */
	return choice->at->uncounted_until <= now && !choice->pass.probe && !choice->pass.fair;
}

void health_note_uncounted(struct health_choice *choice, nsec_t now)
{
	static const nsec_t lasts = 3600 * SEC;

	must(choice->at != NULL);
	choice->at->uncounted_until = now + lasts;
}

/* ---- what an outcome tells ------------------------------------------------------------------- */

/* Who answers, with whatever refusal, is there. 408, 409 and the like are nobody's failure. */
static enum breaker_result judge_answered(const struct health_outcome *outcome)
{
	if (outcome->blame == BLAME_KEY)
		return BREAKER_MUTE;
	if (outcome->blame != BLAME_ENDPOINT)
		return BREAKER_GOOD;
	if (outcome->status / 100 == 4)
		return BREAKER_MUTE;
	return outcome->late ? BREAKER_LATE : BREAKER_BAD;
}

static enum breaker_result judge(const struct health_outcome *outcome)
{
	switch (outcome->err) {
	case ERR_OK:
		return BREAKER_GOOD;
	case ERR_DEADLINE: /* ours; its fault only if it had the time that it is given */
		return !outcome->answered && outcome->took >= outcome->patience ? BREAKER_LATE
										: BREAKER_MUTE;
	case ERR_CANCELLED: /* ours as well, however far its answer had come */
	case ERR_DRAINING:
	case ERR_BUSY: /* our memory, or our queue */
		return BREAKER_MUTE;
	default:
		break;
	}
	if (outcome->status != 0)
		return judge_answered(outcome);
	switch (outcome->err) {
	case ERR_PROVIDER_DOWN:
	case ERR_PROVIDER_NO_ATTEMPT: /* no address, no connection */
	case ERR_PROVIDER_ANSWER:     /* not HTTP */
		return outcome->late ? BREAKER_LATE : BREAKER_BAD;
	default:
		return BREAKER_MUTE;
	}
}

static nsec_t without_tokens(nsec_t took, uint64_t tokens)
{
	return (nsec_t)((double)took * tokens_like_first / (tokens_like_first + (double)tokens));
}

static nsec_t latency(const struct health_outcome *outcome)
{
	return outcome->first != 0 ? outcome->first
				   : without_tokens(outcome->took, outcome->output_tokens);
}

/* Of a call that was given up without an answer: what it was waited for at least if all the time tokens
 * were written that nobody saw. So a caller cannot make an endpoint look slow by leaving a long answer. */
static nsec_t least_latency(const struct health_outcome *outcome)
{
	return without_tokens(outcome->took, outcome->unseen_max);
}

static void tell_endpoint(struct health *health, const struct health_choice *choice,
			  const struct health_outcome *outcome, nsec_t now)
{
	struct endpoint_state *at = choice->at;
	const enum breaker_result result = judge(outcome);

	/* What became of a request once it was there may be its own doing; that nobody was there is not. */
	const bool sent = outcome->took != 0 || outcome->status != 0;
	const uint64_t of = sent ? choice->tenant : 0;
	breaker_ended(&at->breaker, &choice->of->breaker, choice->pass, result, of, now);
	health_trouble(health, &at->entry, at->breaker.open || at->breaker.failing);
	if (outcome->err == ERR_OK)
		pool_note(&at->load, true, latency(outcome), now);
	else if (result == BREAKER_BAD || result == BREAKER_LATE)
		pool_note(&at->load, false, outcome->status == 0 ? outcome->took : 0, now);
	else if (!outcome->answered)
		pool_waited(&at->load, least_latency(outcome), now);
}

static void refuse_key(struct health_choice *choice, const struct health_outcome *outcome,
		       nsec_t now)
{
	struct key_state *with = choice->with;

	if (outcome->err == ERR_PROVIDER_RATE)
		key_lane_limited(key_lane_for(&with->lanes, health_tag(&choice->model->entry)),
				 outcome->retry_after_ms, now);
	else if (outcome->err == ERR_PROVIDER_OPERATOR || outcome->err == ERR_PROVIDER_BILLING)
		key_refused(&with->key, outcome->err, now);
}

static void tell_key(struct health_choice *choice, const struct health_outcome *outcome, nsec_t now)
{
	struct key_state *with = choice->with;

	if (outcome->headers != NULL)
		health_note_rates(choice, outcome->headers, now, outcome->wall_ns);
	if (outcome->err == ERR_OK) {
		key_accepted(&with->key);
		key_lanes_accepted(&with->lanes, health_tag(&choice->model->entry), now);
	} else if (outcome->status != 0 && outcome->blame == BLAME_KEY) {
		refuse_key(choice, outcome, now);
	}
	health_trouble(choice->health, &with->entry,
		       with->key.why != ERR_OK || key_lanes_cool(&with->lanes, now) != 0);
}

void health_ended(struct health_choice *choice, const struct health_outcome *outcome, nsec_t now)
{
	static const struct health_outcome nothing = { .err = ERR_CANCELLED, .retry_after_ms = -1 };
	struct health *health = choice->health;

	if (choice->at == NULL)
		return;
	if (outcome == NULL || !choice->began)
		outcome = &nothing;
	must(choice->at->load.in_flight > 0);
	choice->at->load.in_flight--;
	tell_endpoint(health, choice, outcome, now);
	if (choice->with != NULL) {
		tell_key(choice, outcome, now);
		health_let_go(health, &choice->with->entry);
	}
	if (outcome->err == ERR_OK && outcome->took != 0 && !outcome->held_up)
		speed_note(&choice->model->speed, outcome->first, outcome->took,
			   outcome->output_tokens);
	health_let_go(health, &choice->model->entry);
	health_let_go(health, &choice->at->entry);
	health_let_go(health, &choice->of->entry);
	choice->at = NULL;
	choice->with = NULL;
	choice->model = NULL;
	choice->of = NULL;
}

/* ---- retries --------------------------------------------------------------------------------- */

void health_note_request(struct health_view *view, const uint8_t tenant[16], uint32_t provider,
			 nsec_t now)
{
	struct health *health = view->health;

	must(provider < view->provider_count);
	retry_note_request(retry_table_find(&health->tenants, tenant), &health->retry, now);
	retry_note_request(&view->providers[provider].state->retries, &health->retry, now);
}

bool health_may_retry(struct health_view *view, const uint8_t tenant[16], uint32_t provider,
		      nsec_t now)
{
	struct health *health = view->health;

	must(provider < view->provider_count);
	struct retry_budget *own = retry_table_find(&health->tenants, tenant);
	struct retry_budget *shared = &view->providers[provider].state->retries;
	if (!retry_has(own, &health->retry, now) || !retry_has(shared, &health->retry, now))
		return false;
	retry_take(own);
	retry_take(shared);
	return true;
}
