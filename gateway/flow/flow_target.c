/* flow_target.c - where an attempt goes: model, endpoint and key, of the configuration in force.
 *
 * The first attempt goes where routing says. A further one goes to another key or endpoint of the same
 * model first, then to the next candidates; after a wait everybody may be asked again. */
#include "codec/dialects.h"
#include "gateway/flow/flow_steps.h"

/* ---- what is told of it ---- */

void flow_keep_asked(struct flow *flow)
{
	flow->retries.phase = FLOW_PREPARING;
	flow->retries.asked = arena_take(flow->arena, sizeof(*flow->retries.asked));
	if (flow->retries.asked == NULL)
		return;
	*flow->retries.asked = (struct flow_asked){
		.hint = flow->walk.hint,
		.route = flow->made->route,
		.drawn_count = flow->walk.choice.drawn_count,
		.held = flow->walk.choice.held,
	};
	(void)memcpy(flow->retries.asked->config_digest, flow->walk.config_digest,
		     sizeof(flow->walk.config_digest));
	(void)memcpy(flow->retries.asked->drawn, flow->walk.choice.drawn,
		     sizeof(flow->walk.choice.drawn));
}

static void restore_route(struct flow *flow, const struct flow_asked *asked)
{
	flow->walk.hint = asked->hint;
	flow->made->route = asked->route;
	(void)memcpy(flow->walk.config_digest, asked->config_digest,
		     sizeof(flow->walk.config_digest));
	(void)memcpy(flow->walk.choice.drawn, asked->drawn, sizeof(flow->walk.choice.drawn));
	flow->walk.choice.drawn_count = asked->drawn_count;
	flow->walk.choice.held = asked->held;
}

void flow_restore_asked(struct flow *flow)
{
	if (flow->retries.phase != FLOW_PREPARING)
		return;
	const struct flow_tried *last = &flow->retries.tried[flow->retries.attempts - 1];
	flow->walk.model_id = last->model;
	flow->walk.provider_name = last->provider;
	flow->walk.endpoint_url = last->endpoint;
	if (flow->retries.asked != NULL)
		restore_route(flow, flow->retries.asked);
	else
		flow->walk.config_digest[0] = '\0'; /* nothing, rather than another one's */
}

/* ---- what was tried ---- */

/* Whether what failed there would fail for the same reason where the flow would go now. */
static bool spends(const struct flow_tried *tried, const struct flow *flow,
		   const struct model *model, const struct provider *provider)
{
	const bool same_model = slice_eq(tried->model, model->id);
	const bool same_endpoint =
		slice_eq(tried->endpoint, provider->endpoints[flow->walk.choice.endpoint].url);

	if (!slice_eq(tried->provider, provider->name))
		return false;
	switch (tried->blame) {
	case BLAME_KEY: /* its rate is often counted by model; its rights and money are not */
		return same_endpoint && tried->key == flow->walk.choice.key &&
		       (same_model || tried->err != ERR_PROVIDER_RATE);
	case BLAME_MODEL:
		return same_model;
	case BLAME_ENDPOINT: /* what is overloaded is often a model; who is silent is the host */
		return same_endpoint && (same_model || !tried->answered);
	case BLAME_ANSWER: /* a slip: it may do better */
	case BLAME_REQUEST:
		break;
	}
	return false;
}

/* Since the last wait. */
static bool is_spent(const struct flow *flow, const struct model *model,
		     const struct provider *provider)
{
	for (uint32_t i = 0; i < flow->retries.attempts; i++)
		if (flow->retries.tried[i].round == flow->retries.round &&
		    spends(&flow->retries.tried[i], flow, model, provider))
			return true;
	return false;
}

/* Models that were tried since the last wait, and those whose provider was. */
static void mark_tried(const struct flow *flow, const struct config *config, struct bitset *models,
		       struct bitset *of_providers)
{
	for (uint32_t i = 0; i < flow->retries.attempts; i++) {
		const struct flow_tried *tried = &flow->retries.tried[i];
		for (uint32_t m = 0;
		     tried->round == flow->retries.round && m < config->catalog.count; m++) {
			const struct model *model = &config->catalog.models[m];
			if (slice_eq(model->id, tried->model))
				bitset_add(models, m);
			if (slice_eq(config->providers[model->provider].name, tried->provider))
				bitset_add(of_providers, m);
		}
	}
}

/* ---- endpoint and key ---- */

static struct health_tried tried_at(const struct flow *flow, const struct provider *provider)
{
	struct health_tried at = { .tenant = health_tenant(flow->ask->caller->limit_key) };

	if (flow->state != NULL)
		at.held = flow->state->loop.held;
	for (uint32_t i = 0; i < flow->retries.attempts; i++) {
		const struct flow_tried *tried = &flow->retries.tried[i];
		if (!slice_eq(tried->provider, provider->name))
			continue;
		for (uint32_t e = 0; e < provider->endpoint_count; e++)
			if (slice_eq(tried->endpoint, provider->endpoints[e].url))
				at.endpoints |= UINT64_C(1) << e;
		if (tried->key < provider->key_count)
			at.keys |= UINT32_C(1) << tried->key;
	}
	return at;
}

/* Sets flow->walk.choice; *wait is shortened to when it makes sense to ask again. `fresh`: not where an
 * attempt has failed since the last wait. */
static enum err choose(struct flow *flow, const struct flow_env *env, uint32_t m, bool fresh,
		       nsec_t *wait)
{
	const struct model *model = &env->config->catalog.models[m];
	const struct provider *provider = &env->config->providers[model->provider];
	const struct health_tried tried = tried_at(flow, provider);
	nsec_t longer;

	enum err err = health_choose(env->health, m, &tried, env->now, flow_draw(flow),
				     &flow->walk.choice, &longer);
	if (err != ERR_OK) {
		*wait = longer < *wait ? longer : *wait;
		return err;
	}
	if (!fresh || !is_spent(flow, model, provider))
		return ERR_OK;
	health_ended(&flow->walk.choice, NULL, env->now);
	return ERR_PROVIDER_NO_ATTEMPT;
}

/* Copies that lie one behind the other, each with a NUL behind it. False: no memory. */
static bool copy_texts(struct arena *into, struct slice *const *texts, size_t count)
{
	size_t len = 0;

	for (size_t i = 0; i < count; i++)
		len += texts[i]->len + 1;
	char *at = arena_take(into, len);
	if (at == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		*texts[i] = slice_of(memcpy(at, texts[i]->at, texts[i]->len), texts[i]->len);
		at[texts[i]->len] = '\0';
		at += texts[i]->len + 1;
	}
	return true;
}

/* The snapshot's may not be told. */
static void forget_texts(struct flow_walk *walk)
{
	walk->model_id = walk->provider_name = walk->endpoint_url = (struct slice){ NULL, 0 };
}

/* What later steps need of the snapshot, which is not theirs any more once the request waits. */
static bool copy_target(struct flow *flow, const struct config *config)
{
	const struct model *model = &config->catalog.models[flow->made->route.model];
	const struct provider *provider = &config->providers[model->provider];

	struct slice *const texts[] = { &flow->walk.model_id, &flow->walk.provider_name,
					&flow->walk.endpoint_url };

	flow->walk.provider = flow->walk.choice.provider;
	flow->walk.endpoint = flow->walk.choice.endpoint;
	flow->walk.model_id = model->id;
	flow->walk.provider_name = provider->name;
	flow->walk.endpoint_url = provider->endpoints[flow->walk.endpoint].url;
	if (!copy_texts(flow->arena, texts, COUNT_OF(texts))) {
		forget_texts(&flow->walk);
		return false;
	}
	flow->made->price =
		(struct price){ model->price_input, model->price_output, model->price_cache_read,
				model->price_cache_write, model->price_cache_write_1h };
	flow->walk.dialect = dialect_get(provider->dialect);
	flow->call.timeouts = provider->timeouts;
	(void)memcpy(flow->walk.config_digest, config->digest, sizeof(flow->walk.config_digest));
	return true;
}

/* The target is chosen, of the model flow->made->route says. */
static enum err take_target(struct flow *flow, const struct flow_env *env)
{
	if (copy_target(flow, env->config))
		return ERR_OK;
	health_ended(&flow->walk.choice, NULL, env->now);
	return ERR_BUSY;
}

/* ---- the model ---- */

enum err flow_stay(struct flow *flow, const struct flow_env *env, bool fresh)
{
	const struct catalog *catalog = &env->config->catalog;
	const int32_t found = catalog_find(catalog, flow->walk.model_id);
	struct bitset named;
	nsec_t wait = NSEC_NEVER;

	if (found < 0 || !bitset_has(&flow->caller.plan->models, (size_t)found) ||
	    !catalog->models[found].enabled)
		return ERR_NO_MODEL;
	if (flow->ask->raw != NULL && flow_raw_models(flow, env->config, &named) &&
	    !bitset_has(&named, (size_t)found))
		return ERR_NO_MODEL;
	enum err err = choose(flow, env, (uint32_t)found, fresh, &wait);
	if (err != ERR_OK)
		return err;
	flow->made->route.model = (uint32_t)found;
	return take_target(flow, env);
}

/* Of the reasons why two candidates cannot be asked, the one that passes soonest. */
static enum err sooner(enum err one, enum err other)
{
	static const enum err order[] = { ERR_PROVIDER_RATE, ERR_BUSY, ERR_PROVIDER_NO_ATTEMPT };

	for (size_t i = 0; i < COUNT_OF(order); i++)
		if (one == order[i] || other == order[i])
			return order[i];
	return one != ERR_OK ? one : other;
}

static enum err take_candidate(struct flow *flow, const struct flow_env *env,
			       const struct route *route)
{
	flow->made->route = *route;
	flow->walk.hint = (struct slice){ NULL, 0 };
	if (route->hint >= 0) /* a copy: the log line may outlive the body */
		flow->walk.hint =
			arena_copy(flow->arena, flow->ask->request->prefer.hints[route->hint]);
	return take_target(flow, env);
}

/* So many of the best are asked whether they can be had: with every provider away a catalogue of a
 * thousand models would be gone through for each request. */
enum { CANDIDATES_ASKED_MAX = 32 };

/* The best candidate that can be asked, beside those in `tried`. Routing's refusal if there is no
 * candidate, else why none can be asked, and *wait until one can. `late` not NULL: of a further
 * attempt. */
static enum err find_candidate(struct flow *flow, const struct flow_env *env,
			       const struct bitset *late, struct bitset *tried, nsec_t *wait)
{
	struct route_query query = flow_route_query(flow, flow->caller.plan);
	enum err why = ERR_OK;
	struct bitset held, named;
	const bool is_named = flow->ask->raw != NULL && flow_raw_models(flow, env->config, &named);

	if (is_named) {
		query.permitted = &named;
		query.input_tokens = flow_raw_input(flow);
	}
	query.tried = late == NULL ? NULL : tried;
	query.late = late;
	query.held = late == NULL ? flow_loop_held(flow, env, &held) : NULL;
	query.down =
		health_down(env->health, health_tenant(flow->ask->caller->limit_key), env->now);
	query.speeds = health_speeds(env->health);
	query.memory = health_hints(env->health);
	*wait = NSEC_NEVER;
	for (uint32_t asked = 0; asked < CANDIDATES_ASKED_MAX;) {
		const struct route route = route_pick(&env->config->catalog, &query, NULL);
		if (route.err == ERR_PROVIDER_NO_ATTEMPT && query.down != NULL) {
			query.down = NULL; /* nobody is up: so they tell themselves why not */
			continue;
		}
		if (route.err == ERR_MODEL_FORBIDDEN && is_named)
			return flow_raw_nobody(flow);
		if (route.err != ERR_OK)
			return why != ERR_OK ? why : route.err;
		enum err err = choose(flow, env, route.model, late != NULL, wait);
		if (err == ERR_OK)
			return take_candidate(flow, env, &route);
		why = sooner(why, err);
		bitset_add(tried, route.model);
		query.tried = tried;
		asked++;
	}
	return why;
}

enum err flow_move_on(struct flow *flow, const struct flow_env *env)
{
	struct bitset tried = { 0 }, late = { 0 };
	nsec_t wait;

	mark_tried(flow, env->config, &tried, &late);
	return find_candidate(flow, env, &late, &tried, &wait);
}

/* All candidates' keys cool: that may be worth a short wait, in which a caller would not do better. */
static bool outlasts(struct flow *flow, nsec_t now, nsec_t wait)
{
	static const nsec_t longest = 8 * SEC;

	if (wait > longest || flow_hands_on(flow, wait) || !flow_fits(flow, now, wait + wait / 4))
		return false;
	flow->retries.wait_until = now + flow_spread(flow, wait);
	return true;
}

/* There are candidates, but none that can be asked now. */
static enum flow_move nobody_now(struct flow *flow, const struct flow_env *env, enum err err,
				 nsec_t wait)
{
	struct flow_failure failure = {
		.why = { .err = err,
			 .retryable = err != ERR_PROVIDER_BILLING,
			 .retry_after_ms = -1 },
	};

	/* Before its limits were asked a request costs its tenant nothing: not many may wait so. */
	const bool may_wait = flow->retries.attempts != 0 || !env->crowded;
	if (flow_counts(flow))
		return flow->retries.attempts != 0 ? flow_give_up(flow) : flow_count_nowhere(flow);
	if (err == ERR_PROVIDER_RATE && may_wait && outlasts(flow, env->now, wait))
		return FLOW_DO_WAIT;
	if (flow->retries.attempts != 0)
		return flow_give_up(flow);
	if (err == ERR_PROVIDER_NO_ATTEMPT)
		return flow_refuse_route(flow, env, err, wait);
	if (err == ERR_PROVIDER_RATE && wait != NSEC_NEVER)
		failure.why.retry_after_ms = (int64_t)((wait + MSEC - 1) / MSEC);
	return flow_refuse_failure(flow, &failure);
}

/* Entered for the first attempt, and after a wait. */
enum flow_move flow_route(struct flow *flow, const struct flow_env *env)
{
	struct bitset tried = { 0 };
	nsec_t wait;

	if (flow->caller.account == NULL) {
		const struct verdict verdict = flow_permit_again(flow, env);
		if (verdict.err != ERR_OK)
			return flow->retries.attempts != 0 ? flow_give_up(flow)
							   : flow_refuse_verdict(flow, &verdict);
	}
	enum err err = find_candidate(flow, env, NULL, &tried, &wait);
	switch (err) {
	case ERR_OK:
		return FLOW_NEXT;
	case ERR_PROVIDER_RATE:
	case ERR_PROVIDER_NO_ATTEMPT:
	case ERR_PROVIDER_BILLING:
	case ERR_BUSY:
		return nobody_now(flow, env, err, wait);
	case ERR_MAX_TOKENS:
	case ERR_POLICY: /* of the models with the name: flow_raw_nobody */
		return flow->retries.attempts != 0
			       ? flow_give_up(flow)
			       : flow_refuse(flow, &flow->ask->raw->unsuited, NULL);
	default:
		return flow->retries.attempts != 0 ? flow_give_up(flow)
						   : flow_refuse_route(flow, env, err, NSEC_NEVER);
	}
}
