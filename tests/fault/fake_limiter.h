/* fake_limiter.h - what lies between the worker and the limiter of its memory, the shared one, and other gateways.
 *
 * Stands in for limiter_redis, state_redis, idempotency_redis, alive_redis and cancel_redis. */
#ifndef TESTS_FAULT_FAKE_LIMITER_H
#define TESTS_FAULT_FAKE_LIMITER_H

#include "tests/fault/world.h"

/* ---- the limiter, between the worker and that of its memory ---- */
static struct limiter *true_limiter(void)
{
	return &world.worker->memory.limiter;
}

static void rig_ask(struct reservation *reservation)
{
	must(true_limiter()->reserve(true_limiter(), reservation) == LIMITER_DONE);
	if (!reservation->granted)
		return;
	world.granted++;
	world.placed += reservation->ask.concurrent;
	world.reserved_usd += reservation->ask.usd;
}

static enum limiter_outcome rig_reserve(struct limiter *limiter, struct reservation *reservation)
{
	(void)limiter;
	must(world.pending == NULL);
	switch (world.limiter_mode) {
	case LIMITER_ASKS:
		rig_ask(reservation);
		return LIMITER_DONE;
	case LIMITER_REFUSES:
		reservation->granted = false;
		reservation->refusal = world.refusal;
		return LIMITER_DONE;
	case LIMITER_WAITS:
		break;
	}
	world.pending = reservation;
	return LIMITER_PENDING;
}

static uint64_t rig_settle(struct limiter *limiter, struct reservation *reservation,
			   uint64_t tokens, uint64_t usd, nsec_t now)
{
	(void)limiter;
	world.settled++;
	world.settled_usd += usd;
	return true_limiter()->settle(true_limiter(), reservation, tokens, usd, now);
}

static void rig_release(struct limiter *limiter, struct reservation *reservation)
{
	(void)limiter;
	world.released++;
	true_limiter()->release(true_limiter(), reservation);
}

static void rig_undo(struct limiter *limiter, struct reservation *reservation, nsec_t now)
{
	(void)limiter;
	world.undone++;
	world.granted--;
	world.placed -= reservation->ask.concurrent;
	world.reserved_usd -= reservation->ask.usd;
	true_limiter()->undo(true_limiter(), reservation, now);
}

static void rig_forget(struct limiter *limiter, struct reservation *reservation)
{
	(void)limiter;
	must(world.pending == reservation || world.pending == NULL);
	world.forgotten += world.pending != NULL;
	world.pending = NULL;
}

static uint32_t rig_series(struct limiter *limiter, const uint8_t key[16])
{
	(void)limiter;
	return true_limiter()->series(true_limiter(), key);
}

/* ---- the shared limiter: no configuration of these tests names one ---- */
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

struct limiter_redis *limiter_redis_new(struct net_loop *loop, struct redis_link *link,
					const struct config_store *config,
					struct limit_table *table, struct metrics_worker *metrics)
{
	(void)loop;
	(void)link;
	(void)config;
	(void)table;
	(void)metrics;
	return NULL;
}

struct limiter *limiter_redis_limiter(struct limiter_redis *redis)
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

void limiter_redis_ask(struct limiter_redis *redis, struct limiter_query *question)
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

struct idempotency_redis *idempotency_redis_new(struct net_loop *loop, struct redis_link *link,
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
struct idempotency_redis {
	char unused;
};
static struct idempotency_redis the_others;

bool idempotency_redis_claim(struct idempotency_redis *redis, struct idempotency_claim *claim)
{
	must(redis == &the_others && world.claim == NULL);
	claim->held = false;
	world.claim = claim;
	return true;
}

void idempotency_redis_forget(struct idempotency_redis *redis, struct idempotency_claim *claim)
{
	must(redis == &the_others);
	if (world.claim != claim)
		return;
	world.claim = NULL;
	claim->held = true;
	world.held++;
}

static void give_claim(const struct idempotency_redis *redis, const struct idempotency_claim *claim)
{
	must(redis == &the_others && (claim->held || claim->call->waited) && world.held > 0);
	world.held--;
}

void idempotency_redis_end(struct idempotency_redis *redis, const struct idempotency_claim *claim,
			   struct slice member)
{
	(void)member;
	give_claim(redis, claim);
}

void idempotency_redis_drop(struct idempotency_redis *redis, const struct idempotency_claim *claim)
{
	give_claim(redis, claim);
}

/* What they say to the claim. */
static inline void rig_others_answer(enum idempotency_verdict verdict)
{
	struct idempotency_claim *claim = world.claim;

	must(claim != NULL);
	world.claim = NULL;
	claim->held = verdict == IDEMPOTENCY_LEADS;
	world.held += claim->held;
	claim->call->verdict = verdict;
	claim->done(claim);
}

struct cancel_redis *cancel_redis_new(struct redis_client *redis, struct cancel_table *cancels,
				      const struct config_store *config)
{
	(void)redis;
	(void)cancels;
	(void)config;
	return NULL;
}

void cancel_redis_tell(struct cancel_redis *redis, struct state_key key)
{
	(void)redis;
	(void)key;
}

#endif
