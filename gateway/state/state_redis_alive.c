#include "gateway/state/state_redis_alive.h"

#include "codec/base/hex.h"
#include "codec/base/must.h"

#include <hiredis/hiredis.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RENEW_EVERY SEC
/* A worker whose timer is a little early need not leave it to the next one. */
#define RENEW_EARLY (250 * MSEC)
/* Two renewals in time have no more between them: else Redis, or this process, stood still. */
#define GAP_MAX (2500 * MSEC)

struct alive {
	char name[ALIVE_NAME_BYTES];
	_Atomic nsec_t
		asked_at;      /* the latest renewal, by whichever worker; 0: the next one is due */
	_Atomic nsec_t set_at; /* the latest that was answered: when it was asked; 0: none */
	_Atomic uint32_t doubts;
	_Atomic nsec_t steady_at; /* since when there was no gap, and the key was never lost */
};

struct alive_redis {
	struct redis_user user;
	struct net_loop *loop;
	struct redis_link *link;
	struct alive *alive;
	struct net_timer timer;
	struct redis_call call; /* the renewal on its way, */
	nsec_t asked;           /* begun then */
};

/* ---- what the process knows ---- */

struct alive *alive_new(void)
{
	struct alive *alive = calloc(1, sizeof(*alive));

	if (alive == NULL)
		return NULL;
	must(getrandom(alive->name, sizeof(alive->name), 0) == (ssize_t)sizeof(alive->name));
	return alive;
}

void alive_free(struct alive *alive)
{
	free(alive);
}

struct slice alive_name(const struct alive *alive)
{
	return slice_of(alive->name, sizeof(alive->name));
}

/* Clocks of workers differ by a turn of their loops. */
static nsec_t since(nsec_t then, nsec_t now)
{
	return now > then ? now - then : 0;
}

bool alive_is_known(const struct alive *alive, nsec_t now)
{
	const nsec_t set_at = atomic_load_explicit(&alive->set_at, memory_order_acquire);

	return set_at != 0 && since(set_at, now) < GAP_MAX;
}

bool alive_is_steady(const struct alive *alive, nsec_t now)
{
	return alive_is_known(alive, now) &&
	       since(atomic_load_explicit(&alive->steady_at, memory_order_relaxed), now) >=
		       ALIVE_STEADY;
}

uint32_t alive_doubts(const struct alive *alive)
{
	return atomic_load_explicit(&alive->doubts, memory_order_relaxed);
}

/* `found`: it was there still. Answers to two workers may come at the same time: the later one's counts, and a
 * gap that one of them has seen. */
static void note_set(struct alive *alive, nsec_t asked, bool found, nsec_t now)
{
	nsec_t before = atomic_load_explicit(&alive->set_at, memory_order_relaxed);

	if (!found || before == 0 || since(before, now) > GAP_MAX) {
		atomic_store_explicit(&alive->steady_at, now, memory_order_relaxed);
		if (before != 0)
			(void)atomic_fetch_add_explicit(&alive->doubts, 1, memory_order_relaxed);
	}
	while (before < asked &&
	       !atomic_compare_exchange_weak_explicit(&alive->set_at, &before, asked,
						      memory_order_release, memory_order_relaxed))
		;
}

/* ---- renewing ---- */

static void put_key(struct redis_buffer *to, const struct alive *alive)
{
	static const char prefix[] = "sluice:gateway:1:"; /* idempotency.lua knows it too */
	char text[sizeof(prefix) + 2 * ALIVE_NAME_BYTES];

	(void)memcpy(text, prefix, sizeof(prefix) - 1);
	const char *end = hex_put_bytes(text + sizeof(prefix) - 1, (const uint8_t *)alive->name,
					sizeof(alive->name));
	redis_put(to, slice_of(text, (size_t)(end - text)));
}

static void on_done(struct redis_call *call, enum redis_outcome outcome,
		    const struct redisReply *reply)
{
	struct alive_redis *redis = CONTAINER_OF(call, struct alive_redis, call);

	if (outcome == REDIS_ANSWERED)
		note_set(redis->alive, redis->asked, reply->type == REDIS_REPLY_STRING,
			 net_now(redis->loop));
	else /* by whichever worker is next */
		atomic_store_explicit(&redis->alive->asked_at, 0, memory_order_relaxed);
}

/* It may be late: on_done sees how long it took. */
static const struct redis_call_type call_type = { .done = on_done };

static void renew(struct alive_redis *redis)
{
	const nsec_t now = net_now(redis->loop);
	struct redis_buffer *to = redis_link_begin(redis->link);

	if (to == NULL)
		return; /* Redis is away: on_ready comes when it is back */
	redis_put_count(to, 6);
	redis_put(to, SLICE("SET"));
	put_key(to, redis->alive);
	redis_put(to, SLICE("1"));
	redis_put(to, SLICE("PX"));
	redis_put_number(to, (uint32_t)(ALIVE_LASTS / MSEC));
	redis_put(to, SLICE("GET")); /* what it was: nothing, if Redis has lost it */
	/* Aside: the limits find out by themselves whether it takes writes. */
	if (!redis_link_send(redis->link,
			     &(struct redis_command){ .call = &redis->call, .aside = true }))
		return;
	redis->asked = now;
	atomic_store_explicit(&redis->alive->asked_at, now, memory_order_relaxed);
}

/* One of the workers is enough. */
static bool is_due(struct alive *alive, nsec_t now)
{
	nsec_t asked = atomic_load_explicit(&alive->asked_at, memory_order_relaxed);

	return (asked == 0 || since(asked, now) >= RENEW_EVERY - RENEW_EARLY) &&
	       atomic_compare_exchange_strong_explicit(&alive->asked_at, &asked, now,
						       memory_order_relaxed, memory_order_relaxed);
}

static void on_timer(struct net_timer *timer)
{
	struct alive_redis *redis = CONTAINER_OF(timer, struct alive_redis, timer);
	const nsec_t now = net_now(redis->loop);

	if (redis_link_ready(redis->link) && !redis_call_pending(&redis->call) &&
	    is_due(redis->alive, now))
		renew(redis);
	net_timer_set(redis->loop, timer, now + RENEW_EVERY);
}

/* It may be another server, or have lost the key. */
static void on_ready(struct redis_user *user)
{
	renew(CONTAINER_OF(user, struct alive_redis, user));
}

static const struct redis_user_events user_events = { .ready = on_ready };

struct alive_redis *alive_redis_new(struct net_loop *loop, struct redis_link *link,
				    struct alive *alive)
{
	struct alive_redis *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return NULL;
	*made = (struct alive_redis){
		.user = { .events = &user_events },
		.loop = loop,
		.link = link,
		.alive = alive,
		.timer.fire = on_timer,
		.call = { .type = &call_type },
	};
	redis_link_join(link, &made->user);
	net_timer_set(loop, &made->timer, net_now(loop) + RENEW_EVERY);
	return made;
}
