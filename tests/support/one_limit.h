/* one_limit.h - a single slot's limits, for tests of what one slot does. */
#ifndef TESTS_ONE_LIMIT_H
#define TESTS_ONE_LIMIT_H

#include "gateway/limits/limit_table.h"

static inline bool one_take(struct limit_slot *slot, const struct tenant_limits *limits,
			    const struct limit_ask *ask, nsec_t now, uint64_t wall_s,
			    struct limit_refusal *refusal)
{
	struct limit_scope scope = { .limits = *limits, .slot = slot };

	return limit_take(&scope, 1, ask, now, wall_s, refusal);
}

static inline uint64_t one_settle(struct limit_slot *slot, const struct tenant_limits *limits,
				  const struct limit_ask *ask, uint64_t taken_wall_s,
				  uint64_t tokens_used, uint64_t usd_used, nsec_t now)
{
	struct limit_scope scope = { .limits = *limits, .slot = slot };

	return limit_settle(&scope, 1, ask, taken_wall_s, tokens_used, usd_used, now);
}

static inline void one_release(struct limit_slot *slot)
{
	struct limit_scope scope = { .slot = slot };

	limit_release(&scope, 1);
}

#endif
