#include "gateway/limits/limit_left.h"

void limit_left_begin(struct limit_left *left, nsec_t at)
{
	*left = (struct limit_left){ .at = at };
}

void limit_room_add(struct limit_room *room, struct quota_limit limit, nsec_t tat, nsec_t now)
{
	if (limit.per_minute == 0)
		return;
	const struct limit_room other = {
		.known = true,
		.limit = limit.per_minute > limit.burst ? limit.per_minute : limit.burst,
		.remaining = quota_remaining(tat, limit, now),
		.full_in = tat > now ? tat - now : 0,
	};
	if (!room->known || other.remaining < room->remaining ||
	    (other.remaining == room->remaining && other.limit < room->limit))
		*room = other;
}

static nsec_t tat_of(const struct quota_state *state, struct quota_limit limit, nsec_t now)
{
	return limit.per_minute == 0 ? 0 : quota_read(state, limit, now);
}

void limit_left_read(struct limit_left *left, const struct limit_scope *scopes, uint32_t count,
		     nsec_t now)
{
	limit_left_begin(left, now);
	for (uint32_t i = 0; i < count; i++) {
		const struct tenant_limits *limits = &scopes[i].limits;
		if (limits->count_only)
			continue;
		const struct limit_state state = limit_read(scopes[i].slot, 0);
		limit_room_add(&left->requests, limits->requests,
			       tat_of(&state.requests, limits->requests, now), now);
		limit_room_add(&left->tokens, limits->tokens,
			       tat_of(&state.tokens, limits->tokens, now), now);
	}
}

nsec_t limit_tat_of_wait(struct quota_limit limit, uint64_t asked, nsec_t wait, nsec_t now)
{
	const nsec_t most = quota_cost(limit, limit.burst), cost = quota_cost(limit, asked);

	return now + wait + (most > cost ? most - cost : 0);
}
