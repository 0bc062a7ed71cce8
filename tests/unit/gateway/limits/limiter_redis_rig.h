/* limiter_redis_rig.h - a loop and a connection that the test is, in place of net_h2o.c and redis_link.c.
 *
 * To be included once; it defines functions of net.h and, as fake_redis_link.h, of redis_link.h. */
#ifndef TESTS_STORE_REDIS_RIG_H
#define TESTS_STORE_REDIS_RIG_H

#include "codec/base/must.h"
#include "gateway/limits/limiter_redis.h"
#include "gateway/limits/limiter_redis_parts.h"
#include "tests/unit/gateway/redis/fake_redis_link.h"

#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct net_loop {
	nsec_t now;
	uint64_t wall_s;
	struct net_timer *timer; /* set last */
};

nsec_t net_now(const struct net_loop *loop)
{
	return loop->now;
}

uint64_t net_wall_s(const struct net_loop *loop)
{
	return loop->wall_s;
}

void net_timer_set(struct net_loop *loop, struct net_timer *timer, nsec_t due)
{
	loop->timer = timer;
	timer->due = due;
	timer->place = 1;
}

void net_timer_stop(struct net_loop *loop, struct net_timer *timer)
{
	(void)loop;
	timer->place = 0;
}

/* ---- what the test does ---- */

/* `patience` as store.patience. Over a limit table of its own, with room for `slots`. It lives until the process ends, and is never lost
 * sight of, or the leak checker would count it. */
static struct limiter_redis *rig_new_patient(struct net_loop *loop, size_t slots, nsec_t patience)
{
	static struct limiter_redis *volatile all[256];
	static size_t count;
	const struct config_store config = { .redis = true,
					     .host = SLICE("127.0.0.1"),
					     .name = SLICE("redis://127.0.0.1"),
					     .port = 6379,
					     .deadline = 20 * MSEC,
					     .patience = patience };
	const int fd = limit_table_create(slots);
	struct metrics *metrics = metrics_new(1, 1);

	must(fd >= 0 && metrics != NULL);
	struct limit_table *table = limit_table_map(fd);
	must(table != NULL);
	(void)close(fd);
	struct limiter_redis *redis = limiter_redis_new(loop, fake_link_new(), &config, table,
							metrics_worker(metrics, 0));
	must(redis != NULL && count < sizeof(all) / sizeof(all[0]));
	all[count++] = redis;
	return redis;
}

/* Without patience: what is late is decided at once. */
static inline struct limiter_redis *rig_new(struct net_loop *loop, size_t slots)
{
	return rig_new_patient(loop, slots, 0);
}

static inline void rig_ready(struct limiter_redis *redis)
{
	fake_ready(redis->link);
}

static inline void rig_unready(struct limiter_redis *redis)
{
	fake_unready(redis->link);
}

static inline void rig_turn(struct limiter_redis *redis, bool slow, bool closed_to_late)
{
	fake_turn(redis->link, slow, closed_to_late);
}

/* An answer is late: the first of those that the connection finds so. */
static inline void rig_late(struct limiter_redis *redis, uint64_t which)
{
	fake_late(redis->link, which);
}

/* True if it was set. */
static inline bool rig_fire(struct net_timer *timer)
{
	if (timer->place == 0)
		return false;
	timer->place = 0;
	timer->fire(timer);
	return true;
}

/* The oldest command is over. */
static inline void rig_answer(struct limiter_redis *redis, enum redis_outcome outcome,
			      const struct redisReply *reply)
{
	fake_answer(redis->link, outcome, reply);
}

/* The limits' call that was sent so many behind the oldest command. */
static inline const struct limiter_call *rig_call(struct limiter_redis *redis, uint64_t which)
{
	struct redis_call *call = fake_command(redis->link, which)->call;

	must(call != NULL && call->type == redis->call_type);
	return CONTAINER_OF(call, struct limiter_call, call);
}

/* Whether the oldest asks what the whole store is called. */
static inline bool rig_asks_epoch(struct limiter_redis *redis)
{
	return fake_waiting(redis->link) != 0 &&
	       fake_command(redis->link, 0)->call == &redis->epoch_call;
}

/* The script grants, in states of those epochs. */
static inline void rig_grants(struct limiter_redis *redis, const struct net_loop *loop,
			      const char *epochs)
{
	struct redis_pack answer = { 0 };

	redis_pack_byte(&answer, 0);
	redis_pack_byte(&answer, 0);
	redis_pack_number(&answer, 0);
	redis_pack_number(&answer, (uint32_t)loop->wall_s);
	redis_pack_amount(&answer, 0);
	redis_pack_bytes(&answer, epochs, strlen(epochs));
	const redisReply reply = { .type = REDIS_REPLY_STRING,
				   .str = (char *)answer.at,
				   .len = answer.len };
	rig_answer(redis, REDIS_ANSWERED, &reply);
}

static inline uint64_t rig_waiting(const struct limiter_redis *redis)
{
	return fake_waiting(redis->link);
}

#endif
