/* limiter_redis_settle.c - what becomes of what was granted: reported to Redis behind the provider's answer. */
#include "gateway/limits/limiter_redis_parts.h"

#include "codec/base/must.h"

static void settle_tokens(struct redis_tenant *tenant, const struct limit_scope *scope,
			  uint64_t taken, uint64_t used)
{
	const struct quota_limit rate = scope->limits.tokens;
	enum { TOKENS = 2 }; /* of passed_over */

	if (rate.per_minute == 0 || (scope->passed_over & TOKENS) != 0)
		return;
	limiter_redis_owe_times(tenant,
				&(struct limiter_owed){ .tokens_rate = rate.per_minute,
							.tokens_more = quota_cost(rate, used),
							.tokens_less = quota_cost(rate, taken) });
}

uint64_t limiter_redis_settle(struct limiter *limiter, struct reservation *reservation,
			      uint64_t tokens, uint64_t usd, nsec_t now)
{
	struct limiter_redis *redis = limiter_redis_of(limiter);
	const struct limit_ask *ask = &reservation->ask;

	must(reservation->granted);
	if (reservation->fallback)
		limiter_redis_settle_fallback(redis, reservation, usd);
	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		struct redis_tenant *tenant = limiter_redis_tenant(redis, reservation, i);
		limiter_redis_owe(tenant, reservation->wall_s, usd,
				  reservation->fallback ? 0 : ask->usd);
		if (!reservation->fallback)
			settle_tokens(tenant, &reservation->scopes[i], ask->tokens, tokens);
		limiter_redis_touch(redis, tenant);
	}
	return limit_settle(reservation->scopes, reservation->scope_count, ask, reservation->wall_s,
			    tokens, usd, now);
}

void limiter_redis_release(struct limiter *limiter, struct reservation *reservation)
{
	struct limiter_redis *redis = limiter_redis_of(limiter);

	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		struct redis_tenant *tenant = limiter_redis_tenant(redis, reservation, i);
		limiter_redis_give_place(redis, reservation, i);
		limiter_redis_touch(redis, tenant);
	}
	limit_release(reservation->scopes, reservation->scope_count);
}

static void give_requests(struct redis_tenant *tenant, const struct limit_scope *scope,
			  uint64_t requests)
{
	const struct quota_limit rate = scope->limits.requests;
	enum { REQUESTS = 1 }; /* of passed_over */

	if (rate.per_minute != 0 && (scope->passed_over & REQUESTS) == 0)
		limiter_redis_owe_times(
			tenant,
			&(struct limiter_owed){ .requests_rate = rate.per_minute,
						.requests_less = quota_cost(rate, requests) });
}

void limiter_redis_undo(struct limiter *limiter, struct reservation *reservation, nsec_t now)
{
	struct limiter_redis *redis = limiter_redis_of(limiter);
	const struct limit_ask *ask = &reservation->ask;

	must(reservation->granted);
	reservation->granted = false;
	if (reservation->fallback)
		limiter_redis_settle_fallback(redis, reservation, 0);
	for (uint32_t i = 0; i < reservation->scope_count; i++) {
		const struct limit_scope *scope = &reservation->scopes[i];
		struct redis_tenant *tenant = limiter_redis_tenant(redis, reservation, i);
		if (!reservation->fallback) {
			limiter_redis_owe(tenant, reservation->wall_s, 0, ask->usd);
			settle_tokens(tenant, scope, ask->tokens, 0);
			give_requests(tenant, scope, ask->requests);
		}
		if (ask->concurrent != 0)
			limiter_redis_give_place(redis, reservation, i);
		limiter_redis_touch(redis, tenant);
	}
	limit_undo(reservation->scopes, reservation->scope_count, ask, reservation->wall_s, now);
}
