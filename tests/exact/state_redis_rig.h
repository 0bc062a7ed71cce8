/* state_redis_rig.h - a real Redis, and two gateways, each with a memory of its own, whose connections to it
 * the test is. To be included once, as limiter_redis_rig.h. */
#ifndef TESTS_STATE_REDIS_RIG_H
#define TESTS_STATE_REDIS_RIG_H

#include "tests/unit/gateway/limits/limiter_redis_rig.h"

#include "codec/mcp/sampling.h"
#include "gateway/state/state_redis.h"
#include "tests/unit/gateway/redis/redis_process_rig.h"

enum { GATEWAYS = 2, EACH = 4096 };

static struct net_loop loop;
static struct arena_pool pool;
static struct arena arena;

struct gateway {
	struct limiter_redis *redis;
	struct state_memory *memory;
	struct state *state;
};
static struct gateway gateways[GATEWAYS], *const a = &gateways[0], *const b = &gateways[1];

static const struct state_key tenant = { { 0xac, 0x3e } };

/* Everything that a gateway has sent is done and answered, and what it sends then, too. */
static inline void exchange(struct gateway *gateway)
{
	(void)exchange_link(gateway->redis->link);
}

/* ---- gateways ---- */

static const struct config_store settings = {
	.redis = true,
	.deadline = 20 * MSEC,
	.blocks = { .bytes = 1 << 20, .each = EACH, .ttl = 600 * SEC }
};

/* What its workers know is forgotten: the process is another one. */
static inline void restart(struct gateway *gateway)
{
	const struct state_bounds bounds = { .sessions = 1000,
					     .calls = 1000,
					     .loops = 1000,
					     .blocks_bytes = settings.blocks.bytes,
					     .blocks_each = settings.blocks.each,
					     .blocks_ttl = settings.blocks.ttl };

	gateway->redis = rig_new(&loop, 8); /* lives until the process ends */
	gateway->memory = state_memory_new(&bounds);
	assert_non_null(gateway->memory);
	struct state_redis *state = state_redis_new(&loop, gateway->redis->link, gateway->memory,
						    &settings, gateway->redis->metrics);
	assert_non_null(state);
	gateway->state = state_redis_state(state);
	rig_ready(gateway->redis);
	exchange(gateway);
}

static inline int begin(void **state)
{
	(void)state;
	loop = (struct net_loop){ .now = 100 * SEC, .wall_s = 1767571200 };
	command("FLUSHALL", NULL);
	command("SCRIPT FLUSH", NULL);
	for (size_t i = 0; i < GATEWAYS; i++)
		restart(&gateways[i]);
	arena_init(&arena, &pool, 64 << 20);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	for (size_t i = 0; i < GATEWAYS; i++)
		state_memory_free(gateways[i].memory);
	arena_give(&arena);
	arena_pool_fini(&pool);
	return 0;
}

/* ---- requests ---- */

static uint32_t done_count;

static inline void on_loaded(struct state_load *load)
{
	(void)load;
	done_count++;
}

static inline void on_saved(struct state_save *save)
{
	(void)save;
	done_count++;
}

static inline struct state_key key_of(enum state_kind kind, const char *name)
{
	return state_key_of(kind, SLICE("acme"), SLICE("billing"), SLICE(""), slice_str(name));
}

static inline void load_now(struct gateway *gateway, struct state_load *load)
{
	const uint32_t before = done_count;

	load->tenant = tenant;
	load->arena = &arena;
	load->now = loop.now;
	load->done = on_loaded;
	if (gateway->state->load(gateway->state, load) == STATE_DONE)
		return;
	exchange(gateway);
	assert_int_equal(done_count, before + 1);
}

static inline void save_now(struct gateway *gateway, struct state_save *save)
{
	const uint32_t before = done_count;

	save->tenant = tenant;
	save->now = loop.now;
	save->done = on_saved;
	if (gateway->state->save(gateway->state, save) == STATE_DONE)
		return;
	exchange(gateway);
	assert_int_equal(done_count, before + 1);
}

static inline struct state_load session_at(struct gateway *gateway, const char *name)
{
	struct state_load question = { .session = key_of(STATE_SESSION, name) };

	load_now(gateway, &question);
	return question;
}

static inline void session_begins(struct gateway *gateway, const char *name)
{
	struct state_save save = { .session = key_of(STATE_SESSION, name),
				   .change = STATE_BEGINS,
				   .revision = REVISION_2025_06_18 };

	save_now(gateway, &save);
}

static inline struct state_save session_ends(struct gateway *gateway, const char *name)
{
	struct state_save save = { .session = key_of(STATE_SESSION, name), .change = STATE_ENDS };

	save_now(gateway, &save);
	return save;
}

static inline struct state_save call_issued(struct gateway *gateway, const char *loop_name,
					    const char *call, uint32_t rounds, uint64_t tokens,
					    struct slice blocks)
{
	static struct state_key key;
	struct state_save save = { .loop = key_of(STATE_LOOP, loop_name),
				   .rounds = rounds,
				   .tokens = tokens,
				   .usd = 2 * tokens,
				   .calls = &key,
				   .call_count = 1,
				   .target = { { (uint8_t)rounds,
						 [STATE_TARGET_BYTES - 1] = 0xff } },
				   .blocks = blocks };

	key = key_of(STATE_CALL, call);
	save_now(gateway, &save);
	return save;
}

static inline struct state_loop loop_at(struct gateway *gateway, const char *const *calls,
					uint32_t count)
{
	struct state_key keys[8];
	struct state_load question = { .calls = keys, .call_count = count };

	assert_true(count <= COUNT_OF(keys));
	for (uint32_t i = 0; i < count; i++)
		keys[i] = key_of(STATE_CALL, calls[i]);
	load_now(gateway, &question);
	return question.loop;
}

static inline struct state_loop loop_of_one(struct gateway *gateway, const char *call)
{
	return loop_at(gateway, &call, 1);
}

static inline struct slice blocks_at(struct gateway *gateway, const char *call)
{
	const struct state_key key = key_of(STATE_CALL, call);
	struct state_load question = { .blocks = &key, .block_count = 1 };

	load_now(gateway, &question);
	assert_non_null(question.found);
	return question.found[0];
}

#endif
