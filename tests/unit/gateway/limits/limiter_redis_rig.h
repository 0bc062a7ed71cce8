/* store_redis_rig.h - a loop and a connection that the test is, in place of net_h2o.c and redis_link.c:
 * what the store sends gathers in `out`, and the test says what comes back, and when.
 *
 * To be included once; it defines functions of net.h and redis_link.h, so that neither is linked. */
#ifndef TESTS_STORE_REDIS_RIG_H
#define TESTS_STORE_REDIS_RIG_H

#include "codec/base/must.h"
#include "gateway/limits/limiter_redis.h"
#include "gateway/limits/limiter_redis_parts.h"

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

enum { RIG_REQUESTS = 256 };

struct redis_link {
	const struct redis_link_events *events;
	void *owner;
	bool ready;
	bool slow, closed_to_late; /* while it is not ready; it takes nothing more for now */
	struct redis_buffer out;
	struct redis_request ring[RIG_REQUESTS];
	uint64_t first, next; /* numbers of those that are not over */
};

struct redis_link *redis_link_new(const struct redis_link_args *args)
{
	struct redis_link *link = calloc(1, sizeof(*link));

	must(link != NULL);
	link->events = args->events;
	link->owner = args->owner;
	link->out.most = 1 << 20;
	return link;
}

void redis_link_set_targets(struct redis_link *link, const struct redis_target *targets,
			    uint32_t count)
{
	(void)link;
	(void)targets;
	(void)count;
}

void redis_link_set_login(struct redis_link *link, struct slice user, struct slice password)
{
	(void)link;
	(void)user;
	(void)password;
}

bool redis_link_ready(const struct redis_link *link)
{
	return link->ready;
}

struct redis_request *redis_link_begin(struct redis_link *link, struct redis_buffer **buffer,
				       uint64_t *ticket)
{
	struct redis_request *request = &link->ring[link->next % RIG_REQUESTS];

	if (!link->ready || link->next - link->first == RIG_REQUESTS)
		return NULL;
	*request = (struct redis_request){ .late = false };
	*buffer = &link->out;
	*ticket = link->next;
	return request;
}

bool redis_link_is_slow(const struct redis_link *link, nsec_t patience)
{
	(void)patience;
	return link->slow;
}

struct redis_request *redis_link_begin_slow(struct redis_link *link, nsec_t patience,
					    struct redis_buffer **buffer, uint64_t *ticket)
{
	const bool ready = link->ready;

	(void)patience;
	link->ready = link->slow && !link->closed_to_late;
	struct redis_request *request = redis_link_begin(link, buffer, ticket);
	link->ready = ready;
	return request;
}

bool redis_link_send(struct redis_link *link)
{
	must(!link->out.failed);
	link->next++;
	return true;
}

void redis_link_flush(struct redis_link *link)
{
	(void)link;
}

struct redis_request *redis_link_request(struct redis_link *link, uint64_t ticket)
{
	must(ticket >= link->first && ticket < link->next);
	return &link->ring[ticket % RIG_REQUESTS];
}

/* ---- what the test does ---- */

/* `patience` as store.patience. Over a limit table of its own, with room for `slots`. It lives until the process ends, and is never lost
 * sight of, or the leak checker would count it. */
static struct store_redis *rig_new_patient(struct net_loop *loop, size_t slots, nsec_t patience)
{
	static struct store_redis *volatile all[256];
	static size_t count;
	const struct config_store config = { .redis = true,
					     .host = SLICE("127.0.0.1"),
					     .name = SLICE("redis://127.0.0.1"),
					     .port = 6379,
					     .deadline = 20 * MSEC,
					     .patience = patience };
	const int fd = limit_table_create(slots);
	struct metrics *metrics = metrics_new(1, 1);
	char problem[256];

	must(fd >= 0 && metrics != NULL);
	struct limit_table *table = limit_table_map(fd);
	must(table != NULL);
	(void)close(fd);
	struct store_redis *redis = store_redis_new(
		loop, &config, table, metrics_worker(metrics, 0), 0, problem, sizeof(problem));
	must(redis != NULL && count < sizeof(all) / sizeof(all[0]));
	all[count++] = redis;
	return redis;
}

/* Without patience: what is late is decided at once. */
static inline struct store_redis *rig_new(struct net_loop *loop, size_t slots)
{
	return rig_new_patient(loop, slots, 0);
}

static inline void rig_ready(struct store_redis *redis)
{
	redis->link->ready = true;
	redis->link->slow = false;
	redis->link->events->ready(redis->link->owner);
}

static inline void rig_unready(struct store_redis *redis)
{
	redis->link->ready = false;
	redis->link->events->unready(redis->link->owner);
}

/* The connection is as said, and no more than that. */
static inline void rig_turn(struct store_redis *redis, bool slow, bool closed_to_late)
{
	redis->link->slow = slow;
	redis->link->closed_to_late = closed_to_late;
	redis->link->events->turned(redis->link->owner);
}

/* An answer is late: the first of those that the connection finds so. */
static inline void rig_late(struct store_redis *redis, uint64_t which)
{
	struct redis_link *link = redis->link;

	must(which < link->next - link->first);
	link->events->late(link->owner, &link->ring[(link->first + which) % RIG_REQUESTS]);
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

/* The oldest request is over. */
static inline void rig_answer(struct store_redis *redis, enum redis_outcome outcome,
			      const struct redisReply *reply)
{
	struct redis_link *link = redis->link;
	must(link->first < link->next);
	const struct redis_request request = link->ring[link->first % RIG_REQUESTS];

	link->first++;
	link->events->done(link->owner, &request, outcome, reply);
}

/* The script grants, in states of those births. */
static inline void rig_grants(struct store_redis *redis, const struct net_loop *loop,
			      const char *births)
{
	struct redis_pack answer = { 0 };

	redis_pack_byte(&answer, 0);
	redis_pack_byte(&answer, 0);
	redis_pack_number(&answer, 0);
	redis_pack_number(&answer, (uint32_t)loop->wall_s);
	redis_pack_amount(&answer, 0);
	redis_pack_bytes(&answer, births, strlen(births));
	const redisReply reply = { .type = REDIS_REPLY_STRING,
				   .str = (char *)answer.at,
				   .len = answer.len };
	rig_answer(redis, REDIS_ANSWERED, &reply);
}

static inline uint64_t rig_waiting(const struct store_redis *redis)
{
	return redis->link->next - redis->link->first;
}

#endif
