#include "gateway/state/cancel_redis.h"

#include "codec/base/must.h"

#include <stdlib.h>

/* The number is that of the message: the key. */
static const struct slice channel = SLICE_INIT("sluice:1:calloff");

struct flights_redis {
	struct redis_guest guest;
	struct redis_link *link;
	struct flights *flights;
};

/* ---- telling ---- */

static void on_done(struct redis_guest *guest, const struct redis_request *request,
		    enum redis_outcome outcome, const struct redisReply *reply)
{
	(void)guest;
	(void)request;
	(void)outcome;
	(void)reply; /* how many have heard it: that none of them knows the request is nothing new */
}

static void on_late(struct redis_guest *guest, struct redis_request *request)
{
	(void)guest;
	(void)request;
}

static void on_settled(struct redis_guest *guest, bool ready)
{
	(void)guest;
	(void)ready;
}

void flights_redis_call_off(struct flights_redis *redis, struct state_key key)
{
	struct redis_buffer *to;
	uint64_t ticket;
	struct redis_request *request = redis_link_begin(redis->link, &to, &ticket);

	if (request == NULL)
		return;
	request->kind = REDIS_GUEST;
	request->guest = &redis->guest;
	request->aside = true; /* a user may have no right to it */
	redis_put_count(to, 3);
	redis_put(to, SLICE("PUBLISH"));
	redis_put(to, channel);
	redis_put(to, slice_of((const char *)key.at, sizeof(key.at)));
	(void)!redis_link_send(redis->link);
}

/* ---- hearing ---- */

static void on_heard(void *owner, struct slice message)
{
	struct flights_redis *redis = owner;
	struct state_key key;

	if (message.len != sizeof(key.at))
		return;
	(void)memcpy(key.at, message.at, sizeof(key.at));
	(void)flights_call_off(redis->flights, key);
}

static void on_change(void *owner)
{
	(void)owner;
}

static const struct redis_link_events listener_events = {
	.ready = on_change,
	.unready = on_change,
	.failed = on_change,
	.heard = on_heard,
};

struct flights_redis *flights_redis_new(struct store_redis *redis, struct flights *flights,
					const struct config_store *config)
{
	struct flights_redis *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return NULL;
	*made = (struct flights_redis){
		.guest = { .done = on_done, .late = on_late, .settled = on_settled },
		.flights = flights,
	};
	if (config != NULL && !store_redis_listen(redis, config, channel, &listener_events, made)) {
		free(made);
		return NULL;
	}
	made->link = store_redis_join(redis, &made->guest);
	return made;
}
