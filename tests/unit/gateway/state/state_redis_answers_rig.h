/* state_redis_answers_rig.h - the store of state whose Redis is the test. To be included once, as limiter_redis_rig.h. */
#ifndef TESTS_STATE_REDIS_ANSWERS_RIG_H
#define TESTS_STATE_REDIS_ANSWERS_RIG_H

#include "tests/unit/gateway/limits/limiter_redis_rig.h"

#include "codec/mcp/sampling.h"
#include "gateway/state/state_redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const struct config_store settings = {
	.redis = true,
	.deadline = 20 * MSEC,
	.blocks = { .bytes = 1 << 16, .each = 4096, .ttl = SEC }
};
static const struct state_key tenant = { { 7 } }, session = { { 8 } }, call = { { 9 } };

static struct net_loop loop;
static struct limiter_redis *redis;
static struct state_memory *memory;
static struct state *store;
static struct arena_pool pool;
static struct arena arena;
static uint32_t loaded, saved;

static inline void on_loaded(struct state_load *load)
{
	(void)load;
	loaded++;
}

static inline void on_saved(struct state_save *save)
{
	(void)save;
	saved++;
}

/* Before its first connection. */
static inline int begin(void **state)
{
	const struct state_bounds bounds = { .sessions = 100,
					     .calls = 100,
					     .loops = 100,
					     .blocks_bytes = settings.blocks.bytes,
					     .blocks_each = settings.blocks.each,
					     .blocks_ttl = settings.blocks.ttl };

	(void)state;
	loop = (struct net_loop){ .now = 100 * SEC, .wall_s = 1767571200 };
	loaded = saved = 0;
	redis = rig_new(&loop, 8); /* lives until the process ends */
	memory = state_memory_new(&bounds);
	must(memory != NULL);
	struct state_redis *made =
		state_redis_new(&loop, redis->link, memory, &settings, redis->metrics);
	must(made != NULL);
	store = state_redis_state(made);
	arena_init(&arena, &pool, 1 << 20);
	return 0;
}

static inline int end(void **state)
{
	(void)state;
	arena_give(&arena);
	arena_pool_fini(&pool);
	state_memory_free(memory);
	return 0;
}

static inline struct state_load question(void)
{
	return (struct state_load){ .tenant = tenant,
				    .session = session,
				    .calls = &call,
				    .call_count = 1,
				    .blocks = &call,
				    .block_count = 1,
				    .arena = &arena,
				    .now = loop.now,
				    .done = on_loaded };
}

static inline struct state_save session_begins(void)
{
	return (struct state_save){ .tenant = tenant,
				    .session = session,
				    .change = STATE_BEGINS,
				    .revision = REVISION_2025_06_18,
				    .now = loop.now,
				    .done = on_saved };
}

/* ---- Redis's side ---- */

/* The limits ask for something of their own when the connection is ready. */
static inline void connected(void)
{
	const redisReply name = { .type = REDIS_REPLY_STRING, .str = (char *)"first", .len = 5 };

	rig_ready(redis);
	while (rig_asks_epoch(redis))
		rig_answer(redis, REDIS_ANSWERED, &name);
}

static inline bool sent(struct slice text)
{
	return memmem(redis->link->out.at, redis->link->out.len, text.at, text.len) != NULL;
}

static inline void refuses(const char *error)
{
	const redisReply reply = { .type = REDIS_REPLY_ERROR,
				   .str = (char *)(uintptr_t)error,
				   .len = strlen(error) };

	redis_buffer_clear(&redis->link->out);
	rig_answer(redis, REDIS_REFUSED, &reply);
}

static inline void is_late(void)
{
	rig_late(redis, 0);
}

/* An answer to question() that can be spoiled. */
struct answer {
	redisReply parts[11], *elements[11], reply;
};

static inline redisReply text_of(const char *text)
{
	return (redisReply){ .type = REDIS_REPLY_STRING,
			     .str = (char *)(uintptr_t)text,
			     .len = strlen(text) };
}

static inline redisReply number_of(long long number)
{
	return (redisReply){ .type = REDIS_REPLY_INTEGER, .integer = number };
}

static inline void answer_init(struct answer *answer)
{
	*answer = (struct answer){
		.parts = { text_of("2025-03-26"), number_of(1), number_of(3),
			   text_of("000102030405060708090a0b0c0d0e0f"), text_of("40"),
			   text_of("50"), text_of("the model, the endpoint."), text_of("6"),
			   text_of("70"), text_of("800"), text_of("[blocks]") },
		.reply = { .type = REDIS_REPLY_ARRAY, .elements = COUNT_OF(answer->parts) },
	};
	for (size_t i = 0; i < COUNT_OF(answer->parts); i++)
		answer->elements[i] = &answer->parts[i];
	answer->reply.element = answer->elements;
}

static inline void answers(const struct answer *answer)
{
	rig_answer(redis, REDIS_ANSWERED, &answer->reply);
}

#endif
