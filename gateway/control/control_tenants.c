/* control_tenants.c - what an operator may ask of one tenant, and give it: /tenants/ID, .../budget.
 *
 * Ids, names and globs of a configuration hold nothing that JSON would have to escape. */
#include "codec/set.h"
#include "gateway/control/control_parts.h"

#include "codec/base/must.h"
#include "gateway/limits/limit_table.h"
#include "gateway/limits/limiter_query.h"
#include "gateway/settings/settings_value.h"
#include "tenants/limit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define TOP_UP_MAX UINT64_C(10000000000000000) /* nano-USD; as much as a budget may have */
#define ASKED_MAX (1 * SEC) /* of store.deadline: this thread has other things to do */

static uint64_t wall_now(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_REALTIME, &now) == 0);
	return (uint64_t)now.tv_sec;
}

/* ---- GET ---- */

static void put_rate(FILE *out, const char *name, struct quota_limit limit,
		     const struct quota_state *state)
{
	const nsec_t now = control_now();

	if (limit.per_minute != 0)
		(void)fprintf(out,
			      "\"%s\":{\"limit\":%" PRIu64 ",\"burst\":%" PRIu64
			      ",\"remaining\":%" PRIu64 "},",
			      name, limit.per_minute, limit.burst,
			      quota_remaining(quota_read(state, limit, now), limit, now));
}

/* Spent includes what requests in flight have reserved. */
static void put_budget(FILE *out, const char *name, uint64_t limit, uint64_t more, uint64_t spent)
{
	const uint64_t most = limit < LIMIT_NONE - more ? limit + more : LIMIT_NONE;
	char text[48];

	value_format(TYPE_USD, spent, text, sizeof(text));
	(void)fprintf(out, "\"%s\":{\"spent\":%s", name, text);
	if (limit != LIMIT_NONE) {
		value_format(TYPE_USD, limit, text, sizeof(text));
		(void)fprintf(out, ",\"limit\":%s", text);
		value_format(TYPE_USD, more, text, sizeof(text));
		(void)fprintf(out, ",\"topped_up\":%s", text);
		value_format(TYPE_USD, most > spent ? most - spent : 0, text, sizeof(text));
		(void)fprintf(out, ",\"remaining\":%s", text);
	}
	(void)fputc('}', out);
}

static void put_limits(FILE *out, const struct tenant_limits *limits,
		       const struct limit_state *state)
{
	(void)fprintf(out, "\"enforce\":%s,\"limits\":{", limits->count_only ? "false" : "true");
	put_rate(out, "requests_per_minute", limits->requests, &state->requests);
	put_rate(out, "tokens_per_minute", limits->tokens, &state->tokens);
	(void)fprintf(out, "\"concurrent\":{\"in_flight\":%" PRIu32, state->concurrent);
	if (limits->concurrent != UINT32_MAX)
		(void)fprintf(out, ",\"limit\":%" PRIu32, limits->concurrent);
	(void)fputs("},", out);
	put_budget(out, "usd_per_day", limits->usd_per_day, state->usd_day_more, state->usd_day);
	(void)fputc(',', out);
	put_budget(out, "usd_per_month", limits->usd_per_month, state->usd_month_more,
		   state->usd_month);
	(void)fputc('}', out);
}

/* Whether an earlier key of the same tenant names the same server. */
static bool is_repeated(const struct tenants *registry, size_t at)
{
	const struct tenant_key *key = &registry->keys[at];

	while (at-- > 0 && registry->keys[at].tenant == key->tenant) /* they stand together */
		if (slice_eq(registry->keys[at].server, key->server))
			return true;
	return false;
}

/* What has limits of its own: the tenant, its servers, its use of some models. */
struct holding {
	const char *kind;
	struct slice name;
	enum limit_holder holder;
	const struct tenant_limits *limits;
	struct limit_state state;
};

struct holdings {
	const struct tenant *tenant;
	uint32_t count; /* the tenant first */
	struct holding *at;
	uint8_t (*keys)[16];
	const char *
		mode; /* whose figures these are: memory, redis; or what is done while that is away */
};

static void holdings_free(struct holdings *holdings)
{
	free(holdings->at);
	free(holdings->keys);
}

static void hold_part(struct holdings *holdings, enum limit_holder holder, struct slice name,
		      const uint8_t part[16], const struct tenant_limits *limits)
{
	holdings->at[holdings->count] =
		(struct holding){ .kind = holder == LIMIT_OF_SERVER ? "server" : "models",
				  .name = name,
				  .holder = holder,
				  .limits = limits };
	tenant_part_key(holdings->tenant, part, holdings->keys[holdings->count]);
	holdings->count++;
}

static void hold_servers(struct holdings *holdings, const struct tenants *registry)
{
	uint8_t part[16];

	for (size_t i = 0; i < registry->key_count; i++) {
		const struct tenant_key *key = &registry->keys[i];
		if (key->tenant != holdings->tenant || slice_absent(key->server) ||
		    is_repeated(registry, i))
			continue;
		const struct plan *plan = plan_for(holdings->tenant->plan, key->server);
		if (!plan->server_limited)
			continue;
		tenant_part(TENANT_PART_SERVER, key->server, part);
		hold_part(holdings, LIMIT_OF_SERVER, key->server, part, &plan->server_limits);
	}
}

/* False: memory. */
static bool holdings_init(struct holdings *holdings, const struct tenants *registry,
			  const struct tenant *tenant)
{
	size_t most = 1 + (size_t)tenant->plan->model_limit_count;

	for (size_t i = 0; i < registry->key_count; i++)
		most += registry->keys[i].tenant == tenant;
	*holdings = (struct holdings){ .tenant = tenant,
				       .count = 1,
				       .at = calloc(most, sizeof(struct holding)),
				       .keys = calloc(most, sizeof(holdings->keys[0])) };
	if (holdings->at == NULL || holdings->keys == NULL) {
		holdings_free(holdings);
		return false;
	}
	holdings->at[0] = (struct holding){ .kind = "tenant",
					    .name = tenant->id,
					    .holder = LIMIT_OF_TENANT,
					    .limits = &tenant->plan->limits };
	(void)memcpy(holdings->keys[0], tenant->limit_key, sizeof(tenant->limit_key));
	hold_servers(holdings, registry);
	for (uint32_t i = 0; i < tenant->plan->model_limit_count; i++) {
		const struct model_limits *models = &tenant->plan->model_limits[i];
		hold_part(holdings, LIMIT_OF_MODEL, models->glob, models->part, &models->limits);
	}
	return true;
}

/* ---- where the figures come from ---- */

/* This gateway's own; a part that has no slot has used nothing. False: the table is full. */
static bool read_table(const struct control *control, struct holdings *holdings)
{
	for (uint32_t i = 0; i < holdings->count; i++) {
		struct holding *holding = &holdings->at[i];
		const struct limit_slot *slot = limit_table_slot_for(
			control->args.limits, holding->holder, holdings->keys[i]);
		if (slot != NULL)
			holding->state = limit_read(slot, wall_now());
		else if (holding->holder == LIMIT_OF_TENANT)
			return false;
	}
	return true;
}

/* The first worker's connection is as good as any. Control waits no longer than a request does. */
static enum limiter_said ask_store(const struct control *control, struct holdings *holdings,
				   uint64_t top_up)
{
	const nsec_t deadline = control->config->store.deadline;
	struct limiter_query *question =
		limiter_query_new(holdings->tenant->limit_key, (const uint8_t(*)[16])holdings->keys,
				  holdings->count, top_up);

	if (question == NULL)
		return LIMITER_SAID_AWAY;
	worker_ask_store(control->args.workers[0], question);
	const enum limiter_said said =
		limiter_query_wait(question, deadline < ASKED_MAX ? deadline : ASKED_MAX);
	for (uint32_t i = 0; said == LIMITER_SAID_DONE && i < holdings->count; i++) {
		struct limit_state *state = &holdings->at[i].state;
		const struct limit_state own = *state;
		*state = *limiter_query_state(question, i);
		(void)memcpy(state->refused, own.refused, sizeof(own.refused));
	}
	if (said == LIMITER_SAID_DONE)
		holdings->mode = "redis";
	limiter_query_free(question);
	return said;
}

static const char *away_mode(const struct tenant_limits *limits)
{
	return limits->away_rates_closed || limits->away_usd == 0 ? "closed" : "local";
}

static void put_refusals(const struct limit_state *state, FILE *out)
{
	(void)fputs("\"refusals\":[", out);
	for (size_t i = 0; i < LIMIT_REFUSALS && state->refused[i].wall_s != 0; i++) {
		const struct limit_note *note = &state->refused[i];
		(void)fprintf(out, "%s{\"time\":%" PRIu64 ",\"reason\":\"%s\"", i == 0 ? "" : ",",
			      note->wall_s, err_info(note->err)->reason);
		if (note->limit != NULL)
			(void)fprintf(out, ",\"limit\":\"%s\",\"scope\":\"%s\"", note->limit,
				      limit_holder_name(note->holder));
		(void)fputc('}', out);
	}
	(void)fputc(']', out);
}

static int answer_unknown(struct slice id, FILE *out)
{
	(void)fprintf(out, "There is no tenant \"%.*s\".\n", (int)id.len, id.at);
	return 404;
}

static int answer_full(FILE *out)
{
	(void)fputs("The limit table is full: no figures of this tenant.\n", out);
	return 503;
}

static int answer_no_memory(FILE *out)
{
	(void)fputs("out of memory\n", out);
	return 500;
}

static void put_holdings(const struct holdings *holdings, FILE *out)
{
	const struct tenant *tenant = holdings->tenant;

	(void)fprintf(out, "{\"id\":\"%.*s\",\"disabled\":%s,\"mode\":\"%s\",", (int)tenant->id.len,
		      tenant->id.at, tenant->disabled ? "true" : "false", holdings->mode);
	put_refusals(&holdings->at[0].state, out);
	(void)fputs(",\"scopes\":[", out);
	for (uint32_t i = 0; i < holdings->count; i++) {
		const struct holding *holding = &holdings->at[i];
		(void)fprintf(out, "%s{\"%s\":\"%.*s\",", i == 0 ? "" : ",", holding->kind,
			      (int)holding->name.len, holding->name.at);
		put_limits(out, holding->limits, &holding->state);
		(void)fputc('}', out);
	}
	(void)fputs("]}\n", out);
}

int control_tenant(void *arg, struct slice id, struct slice body, FILE *out)
{
	const struct control *control = arg;
	const struct tenant *tenant = tenants_by_id(&control->config->tenants, id);
	struct holdings holdings;

	(void)body;
	if (tenant == NULL)
		return answer_unknown(id, out);
	if (!holdings_init(&holdings, &control->config->tenants, tenant))
		return answer_no_memory(out);
	const bool redis = control->config->store.redis;
	const bool known = read_table(control, &holdings);
	holdings.mode = redis ? away_mode(&tenant->plan->limits) : "memory";
	if (known && redis)
		(void)ask_store(control, &holdings, 0); /* else: this gateway's own share */
	if (known)
		put_holdings(&holdings, out);
	holdings_free(&holdings);
	return known ? 200 : answer_full(out);
}

/* ---- POST ---- */

/* {"usd": 5}, and nothing else. */
static bool read_usd(struct json_reader *r, struct slice *number)
{
	struct slice key;

	if (json_peek(r) != JSON_OBJECT || !json_enter_object(r))
		return false;
	while (json_next_key(r, &key))
		if (!json_str_eq(key, SLICE("usd")) || json_peek(r) != JSON_NUMBER ||
		    !json_number(r, number))
			return false;
	return json_finish(r) && !slice_absent(*number);
}

static bool read_amount(struct slice body, struct json_work *work, uint64_t *nano_usd)
{
	struct json_reader r;
	struct slice number = { NULL, 0 };

	json_open(&r, body, NULL, work);
	return read_usd(&r, &number) && value_number(TYPE_USD, number, nano_usd) == VALUE_OK &&
	       *nano_usd > 0 && *nano_usd <= TOP_UP_MAX;
}

static int top_up_store(const struct control *control, const struct tenant *tenant,
			uint64_t nano_usd, FILE *out)
{
	struct holdings holdings;

	if (!holdings_init(&holdings, &control->config->tenants, tenant))
		return answer_no_memory(out);
	if (!read_table(control, &holdings)) {
		holdings_free(&holdings);
		return answer_full(out);
	}
	const enum limiter_said said = ask_store(control, &holdings, nano_usd);
	if (said == LIMITER_SAID_DONE) { /* the own share may be decided by, while Redis is away */
		limit_top_up(limit_table_slot(control->args.limits, tenant->limit_key), nano_usd,
			     wall_now());
		put_holdings(&holdings, out);
	}
	holdings_free(&holdings);
	if (said == LIMITER_SAID_DONE)
		return 200;
	(void)fputs(said == LIMITER_SAID_AWAY ? "Redis, where budgets are kept, is not there: "
						"nothing was added. Try again "
						"when it is back.\n"
					      : "Redis, where budgets are kept, did not answer in "
						"time: look at topped_up "
						"of GET /tenants/ID before adding again.\n",
		    out);
	return said == LIMITER_SAID_AWAY ? 503 : 504;
}

int control_budget(void *arg, struct slice id, struct slice body, FILE *out)
{
	const struct control *control = arg;
	const struct tenant *tenant = tenants_by_id(&control->config->tenants, id);
	uint64_t nano_usd;

	if (tenant == NULL)
		return answer_unknown(id, out);
	struct json_work *work = json_work_new(codec_set_best());
	if (work == NULL)
		return answer_no_memory(out);
	const bool readable = read_amount(body, work, &nano_usd);
	json_work_free(work);
	if (!readable) {
		(void)fputs("Post {\"usd\": AMOUNT}, more than 0 and at most 10000000, with at "
			    "most nine decimal places: it is added to the budgets of the current "
			    "UTC day and month.\n",
			    out);
		return 400;
	}
	if (control->config->store.redis)
		return top_up_store(control, tenant, nano_usd, out);
	struct limit_slot *slot = limit_table_slot(control->args.limits, tenant->limit_key);
	if (slot == NULL)
		return answer_full(out);
	limit_top_up(slot, nano_usd, wall_now());
	return control_tenant(arg, id, body, out);
}
