/* mcp_shared_rig.h - three gateways of two workers each that share a real Redis; clock, threads and connections are the
 * test. To be included once; it defines functions of net.h, redis_client.h and, as fake_redis_link.h, of redis_link.h. */
#ifndef TESTS_MCP_SHARED_RIG_H
#define TESTS_MCP_SHARED_RIG_H

#include "codec/base/hex.h"
#include "gateway/state/mcp_channel.h"
#include "gateway/state/mcp_shared.h"
#include "tests/unit/gateway/redis/redis_process_rig.h"

enum { GATEWAYS = 3, WORKERS = 2, TIMERS = 8, FREED_KEPT = 8 };

struct net_loop {
	struct net_timer *timers[TIMERS];
	struct net_message *posted;
};

struct redis_client {
	struct redis_link *link, *listener;
	redisContext *heard_from; /* NULL: it does not listen */
	void (*heard)(void *owner, struct slice message);
	void *owner;
	bool deaf; /* what comes is lost */
};

struct worker {
	struct net_loop loop;
	struct redis_client client;
	struct inbox inbox;
	struct peer_bus *bus;
	struct mcp_shared *shared;
	/* told */
	uint32_t died, freed_count, gaps;
	struct state_key freed[FREED_KEPT];
};

static struct gateway {
	struct alive *alive;
	struct mcp_channels *channels;
	struct worker workers[WORKERS];
	bool dead;
	uint32_t orphans, taken;
	struct mcp_who orphan; /* the latest */
	char id[64], kept[64];
	bool is_kept;
} gateways[GATEWAYS], *const a = &gateways[0], *const b = &gateways[1], *const c = &gateways[2];

static nsec_t now;

/* ---- net.h ---- */

nsec_t net_now(const struct net_loop *loop)
{
	(void)loop;
	return now;
}

void net_timer_stop(struct net_loop *loop, struct net_timer *timer)
{
	for (size_t i = 0; i < TIMERS; i++)
		if (loop->timers[i] == timer)
			loop->timers[i] = NULL;
}

void net_timer_set(struct net_loop *loop, struct net_timer *timer, nsec_t due)
{
	size_t i = 0;

	net_timer_stop(loop, timer);
	while (i < TIMERS && loop->timers[i] != NULL)
		i++;
	assert_true(i < TIMERS);
	timer->due = due;
	loop->timers[i] = timer;
}

void net_post(struct net_loop *loop, struct net_message *message)
{
	assert_null(loop->posted); /* a worker's inbox is all that posts here */
	loop->posted = message;
}

/* ---- redis_client.h ---- */

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
	(void)config;
	client->heard = heard;
	client->owner = owner;
	client->listener = fake_link_new();
	client->heard_from = redisConnectUnix(socket_path);
	assert_int_equal(client->heard_from->err, 0);
	for (uint32_t i = 0; i < count; i++)
		freeReplyObject(redisCommand(client->heard_from, "SUBSCRIBE %b", channels[i].at,
					     channels[i].len));
	return client->listener;
}

/* Everything that has been published is heard. */
static inline void hear(struct redis_client *client)
{
	bool more = true;

	assert_int_equal(redisAppendCommand(client->heard_from, "PING"), REDIS_OK);
	while (more) {
		void *read = NULL;
		assert_int_equal(redisGetReply(client->heard_from, &read), REDIS_OK);
		const redisReply *reply = read;
		more = reply->elements == 3;
		if (more && !client->deaf)
			client->heard(client->owner,
				      slice_of(reply->element[2]->str, reply->element[2]->len));
		freeReplyObject(read);
	}
}

/* ---- what the gateways are told ---- */

static inline void on_died(void *owner)
{
	struct worker *worker = owner;

	worker->died++;
}

static inline void on_freed(void *owner, const struct state_key *key)
{
	struct worker *worker = owner;

	worker->freed[worker->freed_count++ % FREED_KEPT] = *key;
}

static inline void on_orphan(void *owner, const struct mcp_who *who, struct slice id,
			     struct slice kept)
{
	struct gateway *gateway = CONTAINER_OF((struct worker *)owner, struct gateway, workers[0]);

	gateway->orphans++;
	gateway->orphan = *who;
	gateway->is_kept = !slice_absent(kept);
	(void)snprintf(gateway->id, sizeof(gateway->id), "%.*s", (int)id.len, id.at);
	(void)snprintf(gateway->kept, sizeof(gateway->kept), "%.*s", (int)kept.len, kept.at);
}

static inline void on_taken(void *owner, const struct mcp_who *who, struct slice id)
{
	struct gateway *gateway = CONTAINER_OF((struct worker *)owner, struct gateway, workers[0]);

	gateway->taken++;
	gateway->orphan = *who;
	(void)snprintf(gateway->id, sizeof(gateway->id), "%.*s", (int)id.len, id.at);
}

static inline void on_gap(void *owner)
{
	struct worker *worker = owner;

	worker->gaps++;
}

/* ---- time ---- */

/* What all of them have sent is done, answered, heard and told, until nothing is left. Returns how many commands. */
static inline uint64_t settle(void)
{
	uint64_t sum = 0;
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < GATEWAYS * WORKERS; i++) {
			struct gateway *gateway = &gateways[i / WORKERS];
			struct worker *worker = &gateway->workers[i % WORKERS];
			if (gateway->dead)
				continue;
			const uint64_t count =
				worker->client.link->ready ? exchange_link(worker->client.link) : 0;
			hear(&worker->client);
			struct net_message *message = worker->loop.posted;
			worker->loop.posted = NULL;
			if (message != NULL)
				message->run(message, NULL);
			more = more || count != 0 || message != NULL;
			sum += count;
		}
	}
	return sum;
}

static inline void fire(struct worker *worker)
{
	for (size_t i = 0; i < TIMERS; i++) {
		struct net_timer *timer = worker->loop.timers[i];
		if (timer == NULL || timer->due > now)
			continue;
		worker->loop.timers[i] = NULL;
		timer->fire(timer);
	}
}

/* Gateways that are not dead renew their keys meanwhile, and look. */
static inline void pass_by(nsec_t span, nsec_t step)
{
	for (const nsec_t until = now + span; now < until;) {
		now += step;
		for (size_t i = 0; i < GATEWAYS * WORKERS; i++)
			if (!gateways[i / WORKERS].dead)
				fire(&gateways[i / WORKERS].workers[i % WORKERS]);
		(void)settle();
	}
}

static inline void pass(nsec_t span)
{
	pass_by(span, 250 * MSEC);
}

/* Or is stopped. Its key is there still, */
static inline void dies(struct gateway *gateway)
{
	gateway->dead = true;
}

static inline void key_of(const struct gateway *gateway, char text[64])
{
	char *at = stpcpy(text, "sluice:gateway:1:");

	*hex_put_bytes(at, (const uint8_t *)alive_name(gateway->alive).at, ALIVE_NAME_BYTES) = '\0';
}

/* and goes away some seconds later. */
static inline void key_expires(const struct gateway *gateway)
{
	char text[64];

	key_of(gateway, text);
	command("DEL %s", text);
}

/* ---- making them ---- */

/* Bus and link live until the process ends, and are never lost sight of, or the leak checker would count them. */
static inline void start_worker(struct gateway *gateway, uint32_t number)
{
	static const struct mcp_shared_events events = {
		.died = on_died, .freed = on_freed, .orphan = on_orphan, .taken = on_taken
	};
	static void *volatile all[1024];
	static size_t count;
	static const struct config_store config;
	struct worker *worker = &gateway->workers[number];

	*worker = (struct worker){ .client.link = fake_link_new() };
	inbox_init(&worker->inbox, &worker->loop);
	worker->bus = peer_bus_new(&worker->client, &config, gateway->alive, number);
	assert_non_null(worker->bus);
	peer_bus_on_gap(worker->bus, on_gap, worker);
	worker->shared = mcp_shared_new(&worker->loop, &worker->client, worker->bus, gateway->alive,
					gateway->channels, &worker->inbox, number, &events, worker);
	assert_non_null(worker->shared);
	struct alive_redis *renews =
		alive_redis_new(&worker->loop, worker->client.link, gateway->alive);
	assert_non_null(renews);
	assert_true(count + 5 <= COUNT_OF(all));
	all[count++] = worker->bus;
	all[count++] = worker->shared;
	all[count++] = worker->client.link;
	all[count++] = worker->client.listener;
	all[count++] = renews;
}

static inline void start_gateway(struct gateway *gateway)
{
	*gateway = (struct gateway){ .alive = alive_new(), .channels = mcp_channels_new() };
	assert_true(gateway->alive != NULL && gateway->channels != NULL);
	for (uint32_t i = 0; i < WORKERS; i++)
		start_worker(gateway, i);
	for (uint32_t i = 0; i < WORKERS; i++) {
		fake_ready(gateway->workers[i].client.listener);
		fake_ready(gateway->workers[i].client.link);
	}
}

static inline int begin(void **state)
{
	(void)state;
	now = 100 * SEC;
	command("FLUSHALL", NULL);
	command("SCRIPT FLUSH", NULL);
	for (size_t i = 0; i < GATEWAYS; i++)
		start_gateway(&gateways[i]);
	(void)settle();
	pass(ALIVE_STEADY + SEC);
	for (size_t i = 0; i < GATEWAYS * WORKERS; i++)
		gateways[i / WORKERS].workers[i % WORKERS].gaps = 0;
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < GATEWAYS; i++) {
		for (size_t k = 0; k < WORKERS; k++)
			redisFree(gateways[i].workers[k].client.heard_from);
		mcp_channels_free(gateways[i].channels);
		alive_free(gateways[i].alive);
	}
	return 0;
}

static const struct mcp_who session = { { { 1, 2 } }, { { 3 } }, { { 4 } } };
static const struct slice nothing;

/* ---- asking ---- */

static uint32_t done_count;
static char last_id[MCP_SHARED_ID_MAX + 1];

static inline void on_done(struct mcp_ask *ask)
{
	done_count++;
	(void)snprintf(last_id, sizeof(last_id), "%.*s", (int)ask->last_id.len, ask->last_id.at);
}

static inline struct mcp_ask question_of(const struct mcp_who *who)
{
	return (struct mcp_ask){ .who = *who, .done = on_done };
}

/* Everything that is on its way came before. */
static inline void is_answered(bool sent)
{
	const uint32_t before = done_count;

	assert_true(sent);
	(void)settle();
	assert_int_equal(done_count, before + 1);
}

static inline struct mcp_ask home_at(struct worker *worker, bool take)
{
	struct mcp_ask ask = question_of(&session);

	is_answered(mcp_ask_home(worker->shared, &ask, take));
	return ask;
}

static inline enum mcp_shared_answer takes(struct worker *worker)
{
	return home_at(worker, true).answer;
}

static inline enum mcp_shared_answer claims(struct worker *worker, const char *id,
					    struct slice kept)
{
	struct mcp_ask ask = question_of(&session);

	is_answered(mcp_ask_claim(worker->shared, &ask, slice_str(id), kept));
	return ask.answer;
}

static inline bool is_home(const struct mcp_ask *ask, const struct worker *worker)
{
	const struct peer_address own = peer_bus_own(worker->bus);

	return peer_address_eq(&ask->home, &own);
}

static inline bool lives(struct gateway *at, struct gateway *who)
{
	const struct peer_address address = peer_bus_own(who->workers[1].bus);

	return mcp_shared_lives(at->workers[1].shared, &address);
}

static inline struct mcp_home *home_in(struct gateway *gateway, size_t worker)
{
	static struct mcp_home homes[GATEWAYS];
	struct mcp_home *home = &homes[gateway - gateways];

	*home = (struct mcp_home){ .who = session, .told = (void (*)(struct mcp_home *))abort };
	assert_int_equal(
		mcp_home_open(gateway->channels, home, &gateway->workers[worker].inbox, now),
		MCP_OPENED);
	return home;
}

static inline enum mcp_shared_answer places(struct worker *worker, const struct mcp_who *who,
					    uint32_t tenant_max, uint32_t server_max,
					    struct mcp_ask *ask)
{
	*ask = question_of(who);
	is_answered(mcp_ask_place(worker->shared, ask, tenant_max, server_max));
	return ask->answer;
}

#endif
