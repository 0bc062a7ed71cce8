/* control_tenants.c - what an operator may ask of one tenant, and give it: /tenants/ID, .../budget.
 *
 * Ids, names and globs of a configuration hold nothing that JSON would have to escape. */
#include "gateway/control_parts.h"

#include "codec/base/must.h"
#include "gateway/limit_table.h"
#include "gateway/settings_value.h"
#include "tenants/limit.h"

#include <inttypes.h>
#include <time.h>

#define TOP_UP_MAX UINT64_C(10000000000000000) /* nano-USD; as much as a budget may have */

static uint64_t wall_now(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_REALTIME, &now) == 0);
	return (uint64_t)now.tv_sec;
}

/* ---- GET ---- */

static void put_rate(FILE *out, const char *name, struct quota_limit limit, nsec_t tat)
{
	if (limit.per_minute != 0)
		(void)fprintf(out,
			      "\"%s\":{\"limit\":%" PRIu64 ",\"burst\":%" PRIu64
			      ",\"remaining\":%" PRIu64 "},",
			      name, limit.per_minute, limit.burst,
			      quota_remaining(tat, limit, control_now()));
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
	put_rate(out, "requests_per_minute", limits->requests, state->requests_tat);
	put_rate(out, "tokens_per_minute", limits->tokens, state->tokens_tat);
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

/* One of the tenant's parts; nothing when the table is full. */
static void put_part(const struct control *control, const struct tenant *tenant, const char *kind,
		     struct slice name, const uint8_t part[16], const struct tenant_limits *limits,
		     FILE *out)
{
	uint8_t key[16];

	tenant_part_key(tenant, part, key);
	const struct limit_slot *slot = limit_table_slot(control->args.limits, key);
	if (slot == NULL)
		return;
	const struct limit_state state = limit_read(slot, wall_now());
	(void)fprintf(out, ",{\"%s\":\"%.*s\",", kind, (int)name.len, name.at);
	put_limits(out, limits, &state);
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

/* Each behind a comma: the tenant itself comes first. */
static void put_parts(const struct control *control, const struct tenant *tenant, FILE *out)
{
	const struct tenants *registry = &control->config->tenants;
	uint8_t part[16];

	for (size_t i = 0; i < registry->key_count; i++) {
		const struct tenant_key *key = &registry->keys[i];
		if (key->tenant != tenant || slice_absent(key->server) || is_repeated(registry, i))
			continue;
		const struct plan *plan = plan_for(tenant->plan, key->server);
		if (!plan->server_limited)
			continue;
		tenant_part(TENANT_PART_SERVER, key->server, part);
		put_part(control, tenant, "server", key->server, part, &plan->server_limits, out);
	}
	for (uint32_t i = 0; i < tenant->plan->model_limit_count; i++) {
		const struct model_limits *models = &tenant->plan->model_limits[i];
		put_part(control, tenant, "models", models->glob, models->part, &models->limits,
			 out);
	}
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

int control_tenant(void *arg, struct slice id, struct slice body, FILE *out)
{
	const struct control *control = arg;
	const struct tenant *tenant = tenants_by_id(&control->config->tenants, id);

	(void)body;
	if (tenant == NULL)
		return answer_unknown(id, out);
	const struct limit_slot *slot = limit_table_slot(control->args.limits, tenant->limit_key);
	if (slot == NULL)
		return answer_full(out);
	const struct limit_state state = limit_read(slot, wall_now());
	/* With a store, what follows is this gateway's own share of what was granted. */
	(void)fprintf(out, "{\"id\":\"%.*s\",\"disabled\":%s,\"mode\":\"%s\",", (int)id.len, id.at,
		      tenant->disabled ? "true" : "false",
		      control->config->store.redis ? "redis" : "memory");
	put_refusals(&state, out);
	(void)fputs(",\"scopes\":[{\"tenant\":\"", out);
	(void)fprintf(out, "%.*s\",", (int)id.len, id.at);
	put_limits(out, &tenant->plan->limits, &state);
	(void)fputc('}', out);
	put_parts(control, tenant, out);
	(void)fputs("]}\n", out);
	return 200;
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

int control_budget(void *arg, struct slice id, struct slice body, FILE *out)
{
	const struct control *control = arg;
	const struct tenant *tenant = tenants_by_id(&control->config->tenants, id);
	uint64_t nano_usd;

	if (tenant == NULL)
		return answer_unknown(id, out);
	if (control->config->store.redis) {
		(void)fputs("Budgets are kept in the store, and this version cannot top them up "
			    "there: raise the tenant's limit in the configuration instead.\n",
			    out);
		return 409;
	}
	struct json_work *work = json_work_new();
	if (work == NULL) {
		(void)fputs("out of memory\n", out);
		return 500;
	}
	const bool readable = read_amount(body, work, &nano_usd);
	json_work_free(work);
	if (!readable) {
		(void)fputs("Post {\"usd\": AMOUNT}, more than 0 and at most 10000000, with at "
			    "most nine decimal places: it is added to the budgets of the current "
			    "UTC day and month.\n",
			    out);
		return 400;
	}
	struct limit_slot *slot = limit_table_slot(control->args.limits, tenant->limit_key);
	if (slot == NULL)
		return answer_full(out);
	limit_top_up(slot, nano_usd, wall_now());
	return control_tenant(arg, id, body, out);
}
