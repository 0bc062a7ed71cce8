/* control_store.c - what control says about Redis: whose requests are refused while it is not in use. */
#include "gateway/control/control_parts.h"

#include <inttypes.h>

/* Slower than most of what passes by itself: a late answer, a failover in good order. */
#define TELL_AFTER (1 * SEC)

enum { LINE_ROOM = 160 };

/* The most that this gateway may spend in a day without Redis, all tenants together, and the tenants that may
 * spend nothing. */
static void look(struct control *control)
{
	const struct tenants *tenants = &control->config->tenants;
	uint64_t sum = 0;

	if (control->away_seq == control->seq || !control->config->store.redis)
		return;
	control->away_refused = control->away_tenants = 0;
	for (size_t i = 0; i < tenants->count; i++) {
		const struct tenant *tenant = &tenants->tenants[i];
		const struct tenant_limits *limits = &tenant->plan->limits;
		if (tenant->disabled)
			continue;
		control->away_tenants++;
		control->away_refused += limits->away_rates_closed || limits->away_usd == 0;
		if (limits->away_rates_closed)
			continue;
		const uint64_t most = limits->usd_per_day < limits->away_usd ? limits->usd_per_day
									     : limits->away_usd;
		sum = most < UINT64_MAX - sum ? sum + most : UINT64_MAX;
	}
	control->away_seq = control->seq;
	control->away_usd_bound = sum;
}

uint64_t control_store_bound(struct control *control)
{
	look(control);
	return control->away_usd_bound;
}

/* Whose requests are refused; in one piece, so that lines of other threads do not get into it. */
static void describe_refused(struct control *control, enum store_fault fault, char text[LINE_ROOM])
{
	look(control);
	if (control->away_refused == 0)
		(void)snprintf(text, LINE_ROOM, "no tenant's requests are refused for it");
	else
		(void)snprintf(text, LINE_ROOM,
			       "requests that cost money are refused%s for %zu of %zu tenants "
			       "(on_store_failure)",
			       fault == STORE_FAULT_LATE ? ", after store.patience," : "",
			       control->away_refused, control->away_tenants);
}

static void put_away(struct control *control, const char *front, FILE *out)
{
	const struct config_store *store = &control->config->store;
	enum store_fault fault;
	const uint32_t away = metrics_store_away(control->args.metrics, &fault);
	char refused[LINE_ROOM];

	describe_refused(control, fault, refused);
	(void)fprintf(out,
		      "%sstore %.*s is not in use by %" PRIu32 " of %" PRIu32 " workers: %s; %s\n",
		      front, (int)store->name.len, store->name.at, away, control->args.worker_count,
		      fault == STORE_FAULT_NONE ? "it is about to be" : store_fault_words(fault),
		      refused);
}

void control_store_note(struct control *control, FILE *out)
{
	if (metrics_store_is_away(control->args.metrics))
		put_away(control, "", out);
}

void control_store_begin(struct control *control)
{
	const struct config_store *store = &control->config->store;
	char refused[LINE_ROOM];

	if (!store->redis)
		return;
	describe_refused(control, STORE_FAULT_NONE, refused);
	(void)fprintf(stderr, "sluice: limits are in store %.*s; while it is not in use, %s\n",
		      (int)store->name.len, store->name.at, refused);
}

void control_store_watch(struct control *control, nsec_t now)
{
	if (!metrics_store_is_away(control->args.metrics)) {
		control->store_away_since = 0;
		control->store_away_told = false;
		return;
	}
	if (control->store_away_since == 0)
		control->store_away_since = now;
	if (control->store_away_told || now - control->store_away_since < TELL_AFTER)
		return;
	control->store_away_told = true;
	put_away(control, "sluice: ", stderr);
}
