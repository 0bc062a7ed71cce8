#include "tenants/limit.h"

#include "codec/base/must.h"

static const struct limit_info limit_rows[] = {
#define LIMIT(limit, unit, minimum, preset, maximum, meaning) \
	{ #limit, unit, minimum, preset, maximum, meaning },
#include "tenants/tbl/limits.h"
#undef LIMIT
};

const struct limit_info *limit_info(enum limit limit)
{
	must(limit < LIMIT_COUNT);
	return &limit_rows[limit];
}

uint64_t limit_requests_burst(uint64_t per_minute)
{
	return per_minute < 10 ? 1 : per_minute / 10;
}

uint64_t limit_tokens_burst(uint64_t per_minute)
{
	return per_minute;
}

struct quota_limit limit_counts(uint64_t per_minute, uint64_t requests_per_minute)
{
	enum { TIMES = 10, AT_ONCE = 60 };

	if (per_minute == 0)
		per_minute = requests_per_minute < QUOTA_RATE_MAX / TIMES
				     ? requests_per_minute * TIMES
				     : QUOTA_RATE_MAX;
	const uint64_t tenth = limit_requests_burst(per_minute);
	const uint64_t least = per_minute < AT_ONCE ? per_minute : AT_ONCE;
	return (struct quota_limit){ per_minute, tenth > least ? tenth : least };
}

struct tenant_limits limit_defaults(void)
{
	const uint64_t requests = limit_rows[LIMIT_requests_per_minute].preset;
	const uint64_t tokens = limit_rows[LIMIT_tokens_per_minute].preset;

	return (struct tenant_limits){
		.requests = { requests, limit_requests_burst(requests) },
		.tokens = { tokens, limit_tokens_burst(tokens) },
		.concurrent = (uint32_t)limit_rows[LIMIT_concurrent].preset,
		.max_tokens = (uint32_t)limit_rows[LIMIT_max_tokens].preset,
		.tool_rounds = (uint32_t)limit_rows[LIMIT_tool_rounds].preset,
		.loop_tokens = limit_rows[LIMIT_loop_tokens].preset,
		.loop_usd = limit_rows[LIMIT_loop_usd].preset,
		.usd_per_day = limit_rows[LIMIT_usd_per_day].preset,
		.usd_per_month = limit_rows[LIMIT_usd_per_month].preset,
		.deadline = limit_rows[LIMIT_deadline].preset,
		.deadline_progress = limit_rows[LIMIT_deadline_progress].preset,
	};
}

struct tenant_limits limit_none(void)
{
	return (struct tenant_limits){
		.concurrent = UINT32_MAX,
		.max_tokens = UINT32_MAX,
		.tool_rounds = UINT32_MAX,
		.loop_tokens = LIMIT_NONE,
		.loop_usd = LIMIT_NONE,
		.usd_per_day = LIMIT_NONE,
		.usd_per_month = LIMIT_NONE,
		.deadline = NSEC_NEVER,
		.deadline_progress = NSEC_NEVER,
	};
}
