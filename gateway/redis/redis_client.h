/* redis_client.h - a worker's connections to the configured Redis: one that all of its users share, and some that
 * listen, where somebody does. Everything belongs to the loop's thread. */
#ifndef GATEWAY_REDIS_REDIS_CLIENT_H
#define GATEWAY_REDIS_REDIS_CLIENT_H

#include "gateway/base/config.h"
#include "gateway/redis/redis_link.h"

struct redis_client;

/* `config` names the Redis (copied). The first of several workers (0) tells stderr what is wrong with the connection.
 * Lives until the process ends. NULL with words in `problem` when memory is refused or the CA cannot be used. */
struct redis_client *redis_client_new(struct net_loop *loop, const struct config_store *config,
				      uint32_t worker, char *problem, size_t room);

/* The one that all share. */
struct redis_link *redis_client_link(struct redis_client *client);

/* A connection of its own that listens to these channels (at most REDIS_CHANNELS_MAX, whose names must outlive it); what
 * is said there goes to `heard`. There are REDIS_LISTENERS_MAX of them at most. `config` as above. Whoever wants to
 * know how the connection is joins it (redis_link_join). NULL: memory. */
enum { REDIS_LISTENERS_MAX = 2 };
MUST_USE struct redis_link *redis_client_listen(struct redis_client *client,
						const struct config_store *config,
						const struct slice *channels, uint32_t count,
						void (*heard)(void *owner, struct slice message),
						void *owner);

/* User and password of `config` from now on (redis_link_set_login); it is not looked at for anything else. */
void redis_client_use_login(struct redis_client *client, const struct config_store *config);

/* Addresses of the configured host, whose ports are replaced, for the next connections; count 0: none are known. What
 * is beyond REDIS_ADDRESSES_MAX is passed over. */
void redis_client_resolved(struct redis_client *client, const struct redis_target *targets,
			   uint32_t count);

/* A turn of the loop is over: what is to be said to Redis leaves now, and not with the next one. */
void redis_client_end_turn(struct redis_client *client);

#endif
