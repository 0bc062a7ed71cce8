/* limiter_redis_fallback.c - who decides while Redis does not: this gateway, or nobody. */
#include "gateway/limits/limiter_redis_parts.h"

#include "codec/base/must.h"
#include "tenants/limit.h"

#include <string.h>

void limiter_refuse(struct reservation *reservation, enum err err, const char *limit,
		    nsec_t wait_ns)
{
	reservation->granted = false;
	reservation->refusal =
		(struct limit_refusal){ .err = err, .limit = limit, .wait_ns = wait_ns };
}

/* ---- Redis is not there: the tenant's own choice (on_store_failure) ---- */

/* What the tenant may spend in a day while Redis is not there, by all workers of this gateway: a slot of
 * its own. False: no room for one. */
static bool fallback_scope(struct limiter_redis *redis, const struct reservation *reservation,
			   struct limit_scope *out)
{
	*out = (struct limit_scope){ .limits = limit_none() };
	out->limits.usd_per_day = reservation->scopes[0].limits.away_usd;
	(void)memcpy(out->key, reservation->scopes[0].key, sizeof(out->key));
	out->key[sizeof(out->key) - 1] ^= UINT8_MAX; /* of a digest: as good as another one */
	out->slot = limit_table_slot(redis->table, out->key);
	return out->slot != NULL;
}

void limiter_redis_settle_fallback(struct limiter_redis *redis,
				   const struct reservation *reservation, uint64_t usd)
{
	const struct limit_ask ask = { .usd = reservation->ask.usd };
	struct limit_scope local;

	if (fallback_scope(redis, reservation, &local))
		(void)limit_settle(&local, 1, &ask, reservation->wall_s, 0, usd, 0);
}

/* False: refused, whatever the limits say. Else the money, if any, is taken from what may be spent. */
static bool fallback_allows(struct limiter_redis *redis, struct reservation *reservation)
{
	const struct limit_ask money = { .usd = reservation->ask.usd };
	struct limit_refusal refusal;
	struct limit_scope local;

	if (reservation->scopes[0].limits.away_rates_closed) {
		metrics_away(redis->metrics, AWAY_RATES_CLOSED, 0);
		return false;
	}
	if (fallback_scope(redis, reservation, &local) &&
	    limit_take(&local, 1, &money, reservation->now, reservation->wall_s, &refusal))
		return true;
	metrics_away(redis->metrics, AWAY_BUDGET_CLOSED, 0);
	return false;
}

void limiter_redis_fall_back(struct limiter_redis *redis, struct reservation *reservation)
{
	/* It may have waited for Redis, while others moved the table's times. */
	reservation->now = net_now(redis->loop);
	reservation->wall_s = net_wall_s(redis->loop);
	if (!fallback_allows(redis, reservation)) {
		limiter_refuse(reservation, ERR_STORE, NULL, 0);
		return;
	}
	reservation->granted =
		limit_take(reservation->scopes, reservation->scope_count, &reservation->ask,
			   reservation->now, reservation->wall_s, &reservation->refusal);
	if (reservation->left != NULL)
		limit_left_read(reservation->left, reservation->scopes, reservation->scope_count,
				reservation->now);
	metrics_away(redis->metrics, AWAY_RATES_LOCAL, 0);
	if (!reservation->granted) {
		limiter_redis_settle_fallback(redis, reservation, 0);
		return;
	}
	if (reservation->ask.usd != 0)
		metrics_away(redis->metrics, AWAY_BUDGET_LOCAL, reservation->ask.usd);
	reservation->fallback = true;
	limiter_redis_hold_places(redis, reservation);
}

/* ---- at the beginning ---- */

/* Until the first attempt to connect has ended, but no longer than a request may wait. */
static void on_waited(struct net_timer *timer)
{
	limiter_redis_end_waiting(CONTAINER_OF(timer, struct limiter_redis, patience));
}

void limiter_redis_begin_waiting(struct limiter_redis *redis)
{
	redis->connecting = true;
	list_init(&redis->waiting);
	redis->patience.fire = on_waited;
}

bool limiter_redis_await(struct limiter_redis *redis, struct reservation *reservation)
{
	if (!redis->connecting)
		return false;
	if (list_is_empty(&redis->waiting))
		net_timer_set(redis->loop, &redis->patience,
			      net_now(redis->loop) + redis->deadline);
	list_add(&redis->waiting, &reservation->waits);
	return true;
}

void limiter_redis_end_waiting(struct limiter_redis *redis)
{
	struct reservation *reservation;

	redis->connecting = false;
	net_timer_stop(redis->loop, &redis->patience);
	while ((reservation = limiter_redis_first(&redis->waiting)) != NULL) {
		list_remove(&reservation->waits);
		if (limiter_redis_claim(redis, reservation))
			continue;
		limiter_redis_fall_back(redis, reservation);
		reservation->done(reservation);
	}
}
