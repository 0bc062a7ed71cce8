#include "gateway/redis/redis_client.h"

#include "codec/base/must.h"
#include "gateway/tls/tls.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/un.h>

struct redis_client {
	struct net_loop *loop;
	struct redis_link *link;
	struct redis_link *listeners[REDIS_LISTENERS_MAX];
	uint32_t listener_count;
	uint16_t port;
};

static void target_of(const struct config_store *config, struct redis_link_args *args)
{
	struct redis_target *target = &args->targets[0];
	struct sockaddr_un *local = (struct sockaddr_un *)&target->address;
	struct sockaddr_in *v4 = (struct sockaddr_in *)&target->address;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&target->address;

	args->target_count = 1;
	if (!slice_absent(config->path)) {
		local->sun_family = AF_UNIX;
		(void)memcpy(local->sun_path, config->path.at, config->path.len);
		target->len = sizeof(*local);
	} else if (inet_pton(AF_INET, config->host.at, &v4->sin_addr) == 1) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(config->port);
		target->len = sizeof(*v4);
	} else if (inet_pton(AF_INET6, config->host.at, &v6->sin6_addr) == 1) {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(config->port);
		target->len = sizeof(*v6);
	} else {
		args->target_count = 0; /* a name: redis_client_resolved */
		args->server_name = config->host.at;
	}
}

/* A connection to the configured Redis, for whatever `args` says it is for. NULL with words in `problem`. */
static struct redis_link *connect_as(const struct redis_client *client,
				     const struct config_store *config,
				     struct redis_link_args *args, char *problem, size_t room)
{
	args->loop = client->loop;
	args->user = config->user;
	args->password = config->password;
	args->database = config->database;
	args->deadline = config->deadline;
	args->name = config->name.at;
	target_of(config, args);
	(void)snprintf(problem, room, "out of memory");
	if (config->tls) {
		args->tls = tls_client_new(config->host.at, config->ca_pem, problem, room);
		if (args->tls == NULL)
			return NULL;
	}
	must(getrandom(&args->seed, sizeof(args->seed), 0) == (ssize_t)sizeof(args->seed));
	return redis_link_new(args);
}

struct redis_client *redis_client_new(struct net_loop *loop, const struct config_store *config,
				      uint32_t worker, char *problem, size_t room)
{
	struct redis_client *client = calloc(1, sizeof(*client));
	struct redis_link_args args = { .quiet = worker != 0, .sniffs = worker == 0 };

	(void)snprintf(problem, room, "out of memory");
	if (client == NULL)
		return NULL;
	client->loop = loop;
	client->port = config->port;
	client->link = connect_as(client, config, &args, problem, room);
	if (client->link == NULL) {
		free(client);
		return NULL;
	}
	return client;
}

struct redis_link *redis_client_link(struct redis_client *client)
{
	return client->link;
}

struct redis_link *redis_client_listen(struct redis_client *client,
				       const struct config_store *config,
				       const struct slice *channels, uint32_t count,
				       void (*heard)(void *owner, struct slice message),
				       void *owner)
{
	struct redis_link_args args = {
		.channel_count = count,
		.heard = heard,
		.owner = owner,
		.quiet = true, /* what is wrong with the other connection is told of that */
	};
	char problem[256];

	must(client->listener_count < REDIS_LISTENERS_MAX && count <= REDIS_CHANNELS_MAX);
	(void)memcpy(args.channels, channels, count * sizeof(*channels));
	struct redis_link *made = connect_as(client, config, &args, problem, sizeof(problem));
	if (made != NULL)
		client->listeners[client->listener_count++] = made;
	return made;
}

void redis_client_use_login(struct redis_client *client, const struct config_store *config)
{
	redis_link_set_login(client->link, config->user, config->password);
	for (uint32_t i = 0; i < client->listener_count; i++)
		redis_link_set_login(client->listeners[i], config->user, config->password);
}

void redis_client_resolved(struct redis_client *client, const struct redis_target *targets,
			   uint32_t count)
{
	struct redis_target own[REDIS_ADDRESSES_MAX];

	count = count < REDIS_ADDRESSES_MAX ? count : REDIS_ADDRESSES_MAX;
	for (uint32_t i = 0; i < count; i++) {
		own[i] = targets[i];
		if (own[i].address.ss_family == AF_INET6)
			((struct sockaddr_in6 *)&own[i].address)->sin6_port = htons(client->port);
		else
			((struct sockaddr_in *)&own[i].address)->sin_port = htons(client->port);
	}
	redis_link_set_targets(client->link, own, count);
	for (uint32_t i = 0; i < client->listener_count; i++)
		redis_link_set_targets(client->listeners[i], own, count);
}

void redis_client_end_turn(struct redis_client *client)
{
	redis_link_flush(client->link);
}
