/* limiter_redis_rates.c - times that are to be reported to Redis, when the rate that they are of has changed since.
 *
 * Between a claim and what is reported of it a reload may bring other limits. A time says how many units it stands
 * for only together with its rate. What is owed more is rounded up, what is given back is rounded down. */
#include "gateway/limits/limiter_redis_parts.h"

#include <string.h>

static uint64_t as_of(uint64_t time, uint64_t from, uint64_t to, bool up)
{
	return time == 0 || from == 0 || to == 0 ? time : quota_convert(time, from, to, up);
}

/* A rate that is no limit any more, or was none yet, leaves its times as they are. */
static struct limiter_owed owed_as_of(const struct limiter_owed *owed, uint64_t requests_rate,
				      uint64_t tokens_rate)
{
	return (struct limiter_owed){
		.requests_rate = requests_rate,
		.tokens_rate = tokens_rate,
		.requests_less =
			as_of(owed->requests_less, owed->requests_rate, requests_rate, false),
		.tokens_more = as_of(owed->tokens_more, owed->tokens_rate, tokens_rate, true),
		.tokens_less = as_of(owed->tokens_less, owed->tokens_rate, tokens_rate, false),
	};
}

/* Like two entries of workers without a place (limits.lua). */
static void pack_figure(struct redis_pack *news, uint64_t rate, uint64_t burst)
{
	limiter_pack_units(news, rate);
	limiter_pack_units(news, burst);
	redis_pack_bytes(news, "\0\0", 2);
	limiter_pack_no_place(news);
}

static void make_figures(struct redis_tenant *tenant)
{
	static const uint8_t no_larger_bursts[12];
	struct redis_pack pack = { 0 };

	pack_figure(&pack, tenant->owed.requests_rate, tenant->requests_burst);
	pack_figure(&pack, tenant->owed.tokens_rate, tenant->tokens_burst);
	redis_pack_bytes(&pack, no_larger_bursts, sizeof(no_larger_bursts));
	must(pack.len == sizeof(tenant->figures));
	(void)memcpy(tenant->figures, pack.at, pack.len);
}

/* 0 where there is no limit. */
static uint64_t burst_of(struct quota_limit limit)
{
	return limit.per_minute == 0 ? 0 : limit.burst;
}

void limiter_redis_claim_under(struct redis_tenant *tenant, const struct tenant_limits *limits)
{
	const struct quota_limit requests = limits->requests, tokens = limits->tokens;

	if (tenant->owed.requests_rate == requests.per_minute &&
	    tenant->owed.tokens_rate == tokens.per_minute &&
	    tenant->requests_burst == burst_of(requests) &&
	    tenant->tokens_burst == burst_of(tokens) && tenant->claimed)
		return;
	tenant->claimed = true;
	tenant->requests_burst = burst_of(requests);
	tenant->tokens_burst = burst_of(tokens);
	tenant->owed = owed_as_of(&tenant->owed, requests.per_minute, tokens.per_minute);
	make_figures(tenant);
}

void limiter_redis_owe_times(struct redis_tenant *tenant, const struct limiter_owed *times)
{
	struct limiter_owed *owed = &tenant->owed;
	const struct limiter_owed more = owed_as_of(times, owed->requests_rate, owed->tokens_rate);

	owed->requests_less = plus(owed->requests_less, more.requests_less);
	owed->tokens_more = plus(owed->tokens_more, more.tokens_more);
	owed->tokens_less = plus(owed->tokens_less, more.tokens_less);
}
