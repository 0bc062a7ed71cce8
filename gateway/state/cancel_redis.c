#include "gateway/state/cancel_redis.h"

#include <stdlib.h>

/* The number is that of the message: the key. */
static const struct slice channel = SLICE_INIT("sluice:1:calloff");

struct cancel_redis {
	struct redis_link *link;
	struct cancel_table *cancels;
};

/* ---- telling ---- */

/* How many have heard it does not matter: that none of them knows the request is nothing new. */
void cancel_redis_tell(struct cancel_redis *redis, struct state_key key)
{
	struct redis_buffer *to = redis_link_begin(redis->link);

	if (to == NULL)
		return;
	redis_put_count(to, 3);
	redis_put(to, SLICE("PUBLISH"));
	redis_put(to, channel);
	redis_put(to, slice_of((const char *)key.at, sizeof(key.at)));
	/* A user may have no right to it. */
	(void)!redis_link_send(redis->link, &(struct redis_command){ .aside = true });
}

/* ---- hearing ---- */

static void on_heard(void *owner, struct slice message)
{
	struct cancel_redis *redis = owner;
	struct state_key key;

	if (message.len != sizeof(key.at))
		return;
	(void)memcpy(key.at, message.at, sizeof(key.at));
	(void)cancel_all(redis->cancels, key);
}

struct cancel_redis *cancel_redis_new(struct redis_client *client, struct cancel_table *cancels,
				      const struct config_store *config)
{
	struct cancel_redis *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return NULL;
	made->link = redis_client_link(client);
	made->cancels = cancels;
	if (config == NULL ||
	    redis_client_listen(client, config, &channel, 1, on_heard, made) != NULL)
		return made;
	free(made);
	return NULL;
}
