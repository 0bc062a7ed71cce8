/* limit.h - the numbers of a plan: names, units, bounds and defaults, from tbl/limits.h. */
#ifndef TENANTS_LIMIT_H
#define TENANTS_LIMIT_H

#include "tenants/tenant.h"

/* Special values of the default column. */
#define LIMIT_DERIVED UINT64_C(0) /* computed from the rate beside it */
#define LIMIT_NONE UINT64_MAX     /* no such limit */

enum limit {
#define LIMIT(limit, unit, minimum, preset, maximum, meaning) LIMIT_##limit,
#include "tenants/tbl/limits.h"
#undef LIMIT
	LIMIT_COUNT
};

struct limit_info {
	const char *name; /* key in the configuration, data.limit in a refusal */
	const char *unit;
	uint64_t minimum, preset, maximum; /* preset: LIMIT_DERIVED and LIMIT_NONE are possible */
	const char *meaning;
};

/* `limit` below LIMIT_COUNT. Static, never NULL. */
const struct limit_info *limit_info(enum limit limit);

/* The burst of a rate whose plan names none: max(1, a tenth) requests, a minute's tokens. */
uint64_t limit_requests_burst(uint64_t per_minute);
uint64_t limit_tokens_burst(uint64_t per_minute);

/* The rate of requests that only count tokens, beside that many others; per_minute 0: what the plan says nothing of. At
 * once it has a minute's, of larger ones 60 or a tenth: editors count all they show when they begin. */
struct quota_limit limit_counts(uint64_t per_minute, uint64_t requests_per_minute);

/* What a plan has that says nothing: every preset, derived ones computed; clamp and final. */
struct tenant_limits limit_defaults(void);

/* No limit at all; with `count_only` false. */
struct tenant_limits limit_none(void);

#endif
