/* limiter_redis_patience.c - requests that nothing but a refusal awaits wait for a Redis that is slow.
 *
 * Where on_store_failure would refuse (rates: closed; budget: closed, and it costs money), a late answer is better
 * than none: such a request waits for it up to store.patience, and is sent also while the connection is in trouble
 * for late answers alone. What cannot be sent yet (the first connection is being made; or answers are in time
 * again, and a probe is to find out) waits in a queue. A connection that is lost, refuses, or was not heard for
 * that long decides it at once. Requests whose tenant lets this gateway decide never come here. */
#include "gateway/limits/limiter_redis_parts.h"

#include "codec/base/must.h"

static bool is_refused_by_fallback(const struct reservation *reservation)
{
	const struct tenant_limits *limits = &reservation->scopes[0].limits;

	return limits->away_rates_closed || (limits->away_usd == 0 && reservation->ask.usd != 0);
}

/* Whether there is any use in waiting. */
static bool may_hope(const struct limiter_redis *redis)
{
	return redis->opening || redis_link_is_slow(redis->link, redis->longest);
}

void limiter_redis_wait_no_more(struct limiter_redis *redis, struct reservation *reservation)
{
	net_timer_stop(redis->loop, &reservation->patience);
	if (list_has(&reservation->waits))
		list_remove(&reservation->waits);
}

static void refuse(struct limiter_redis *redis, struct reservation *reservation)
{
	if (reservation->deadline != 0 && net_now(redis->loop) >= reservation->deadline)
		limiter_refuse(reservation, ERR_DEADLINE, NULL, 0);
	else
		limiter_redis_fall_back(redis, reservation);
	reservation->done(reservation);
}

static void on_patience(struct net_timer *timer)
{
	struct reservation *reservation = CONTAINER_OF(timer, struct reservation, patience);
	struct limiter_redis *redis = reservation->waits_at;

	if (!list_has(&reservation->waits))
		reservation->call->reservation = NULL;
	limiter_redis_wait_no_more(redis, reservation);
	refuse(redis, reservation);
}

/* False: nothing is left to wait for. */
static bool begin_waiting(struct limiter_redis *redis, struct reservation *reservation)
{
	nsec_t due = reservation->now + redis->longest;

	if (redis->longest <= redis->deadline || !is_refused_by_fallback(reservation))
		return false;
	if (reservation->deadline != 0 && reservation->deadline < due)
		due = reservation->deadline;
	if (due <= net_now(redis->loop))
		return false;
	reservation->waits_at = redis;
	reservation->patience.fire = on_patience;
	net_timer_set(redis->loop, &reservation->patience, due);
	return true;
}

bool limiter_redis_persist(struct limiter_redis *redis, struct reservation *reservation)
{
	if (!may_hope(redis) || !begin_waiting(redis, reservation))
		return false;
	if (!list_is_empty(&redis->unsent) || !limiter_redis_claim(redis, reservation))
		list_add(&redis->unsent, &reservation->waits);
	return true;
}

bool limiter_redis_bear_with(struct limiter_redis *redis, struct reservation *reservation)
{
	return limiter_redis_is_patient(reservation) || begin_waiting(redis, reservation);
}

void limiter_redis_waited(struct limiter_redis *redis, struct reservation *reservation,
			  bool answered)
{
	if (!limiter_redis_is_patient(reservation))
		return;
	limiter_redis_wait_no_more(redis, reservation);
	if (answered)
		metrics_away(redis->metrics,
			     reservation->scopes[0].limits.away_rates_closed ? AWAY_RATES_WAITED
									     : AWAY_BUDGET_WAITED,
			     0);
}

void limiter_redis_go_on(struct limiter_redis *redis)
{
	struct reservation *reservation;

	redis->opening = false;
	while ((reservation = limiter_redis_first(&redis->unsent)) != NULL) {
		if (limiter_redis_claim(redis, reservation)) {
			list_remove(&reservation->waits);
			continue;
		}
		if (may_hope(redis))
			return; /* in a moment */
		limiter_redis_wait_no_more(redis, reservation);
		refuse(redis, reservation);
	}
}
