/* fake_store.h - what lies between the worker and the memory store, the shared store, and other gateways.
 *
 * Stands in for store_redis, state_redis, once_redis, alive_redis and flights_redis. */
#ifndef TESTS_FAULT_FAKE_STORE_H
#define TESTS_FAULT_FAKE_STORE_H

#include "tests/fault/world.h"

/* ---- the store, between the worker and the memory store ---- */
static struct store *true_store(void)
{
	return &world.worker->memory.store;
}

static void rig_ask(struct reservation *reservation)
{
	must(true_store()->reserve(true_store(), reservation) == STORE_DONE);
	if (!reservation->granted)
		return;
	world.granted++;
	world.placed += reservation->ask.concurrent;
	world.reserved_usd += reservation->ask.usd;
}

static enum store_outcome rig_reserve(struct store *store, struct reservation *reservation)
{
	(void)store;
	must(world.pending == NULL);
	switch (world.store_mode) {
	case STORE_ASKS:
		rig_ask(reservation);
		return STORE_DONE;
	case STORE_REFUSES:
		reservation->granted = false;
		reservation->refusal = world.refusal;
		return STORE_DONE;
	case STORE_WAITS:
		break;
	}
	world.pending = reservation;
	return STORE_PENDING;
}

static uint64_t rig_settle(struct store *store, struct reservation *reservation, uint64_t tokens,
			   uint64_t usd, nsec_t now)
{
	(void)store;
	world.settled++;
	world.settled_usd += usd;
	return true_store()->settle(true_store(), reservation, tokens, usd, now);
}

static void rig_release(struct store *store, struct reservation *reservation)
{
	(void)store;
	world.released++;
	true_store()->release(true_store(), reservation);
}

static void rig_undo(struct store *store, struct reservation *reservation, nsec_t now)
{
	(void)store;
	world.undone++;
	world.granted--;
	world.placed -= reservation->ask.concurrent;
	world.reserved_usd -= reservation->ask.usd;
	true_store()->undo(true_store(), reservation, now);
}

static void rig_forget(struct store *store, struct reservation *reservation)
{
	(void)store;
	must(world.pending == reservation || world.pending == NULL);
	world.forgotten += world.pending != NULL;
	world.pending = NULL;
}

static uint32_t rig_series(struct store *store, const uint8_t key[16])
{
	(void)store;
	return true_store()->series(true_store(), key);
}

/* ---- the shared store: no configuration of these tests names one ---- */
struct redis_client *redis_client_new(struct net_loop *loop, const struct config_store *config,
				      uint32_t worker, char *problem, size_t room)
{
	(void)loop;
	(void)config;
	(void)worker;
	(void)problem;
	(void)room;
	return NULL;
}

struct redis_link *redis_client_link(struct redis_client *client)
{
	(void)client;
	return NULL;
}

struct store_redis *store_redis_new(struct net_loop *loop, struct redis_link *link,
				    const struct config_store *config, struct limit_table *table,
				    struct metrics_worker *metrics)
{
	(void)loop;
	(void)link;
	(void)config;
	(void)table;
	(void)metrics;
	return NULL;
}

struct store *store_redis_store(struct store_redis *redis)
{
	(void)redis;
	return NULL;
}

void redis_client_end_turn(struct redis_client *redis)
{
	(void)redis;
}

void redis_client_use_login(struct redis_client *redis, const struct config_store *config)
{
	(void)redis;
	(void)config;
}

void redis_client_resolved(struct redis_client *redis, const struct redis_target *addresses,
			   uint32_t count)
{
	(void)redis;
	(void)addresses;
	(void)count;
}

void store_redis_ask(struct store_redis *redis, struct store_question *question)
{
	(void)redis;
	(void)question;
}

struct state_redis *state_redis_new(struct net_loop *loop, struct redis_link *link,
				    struct state_memory *memory, const struct config_store *config,
				    struct metrics_worker *metrics)
{
	(void)loop;
	(void)link;
	(void)memory;
	(void)config;
	(void)metrics;
	return NULL;
}

struct state *state_redis_state(struct state_redis *redis)
{
	(void)redis;
	return NULL;
}

struct once_redis *once_redis_new(struct net_loop *loop, struct redis_link *link,
				  struct alive *alive, struct json_work *json,
				  struct metrics_worker *metrics)
{
	(void)loop;
	(void)link;
	(void)alive;
	(void)json;
	(void)metrics;
	return NULL;
}

struct alive_redis *alive_redis_new(struct net_loop *loop, struct redis_link *link,
				    struct alive *alive)
{
	(void)loop;
	(void)link;
	(void)alive;
	return NULL;
}

/* ---- other gateways, where a test gives the worker some ---- */
struct once_redis {
	char unused;
};
static struct once_redis the_others;

bool once_redis_claim(struct once_redis *redis, struct once_claim *claim)
{
	must(redis == &the_others && world.claim == NULL);
	claim->held = false;
	world.claim = claim;
	return true;
}

void once_redis_forget(struct once_redis *redis, struct once_claim *claim)
{
	must(redis == &the_others);
	if (world.claim != claim)
		return;
	world.claim = NULL;
	claim->held = true;
	world.held++;
}

static void give_claim(const struct once_redis *redis, const struct once_claim *claim)
{
	must(redis == &the_others && (claim->held || claim->call->waited) && world.held > 0);
	world.held--;
}

void once_redis_end(struct once_redis *redis, const struct once_claim *claim, struct slice member)
{
	(void)member;
	give_claim(redis, claim);
}

void once_redis_drop(struct once_redis *redis, const struct once_claim *claim)
{
	give_claim(redis, claim);
}

/* What they say to the claim. */
static inline void rig_others_answer(enum once_verdict verdict)
{
	struct once_claim *claim = world.claim;

	must(claim != NULL);
	world.claim = NULL;
	claim->held = verdict == ONCE_LEADS;
	world.held += claim->held;
	claim->call->verdict = verdict;
	claim->done(claim);
}

struct flights_redis *flights_redis_new(struct redis_client *redis, struct flights *flights,
					const struct config_store *config)
{
	(void)redis;
	(void)flights;
	(void)config;
	return NULL;
}

void flights_redis_call_off(struct flights_redis *redis, struct state_key key)
{
	(void)redis;
	(void)key;
}

#endif
