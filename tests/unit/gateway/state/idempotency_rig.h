/* idempotency_rig.h - callers on two workers of the test's own, and a clock. To be included once, by a test's only source. */
#ifndef TESTS_UNIT_GATEWAY_STATE_IDEMPOTENCY_RIG_H
#define TESTS_UNIT_GATEWAY_STATE_IDEMPOTENCY_RIG_H

#include "codec/base/err.h"
#include "gateway/state/idempotency.h"
#include "tests/unit/gateway/net/inbox_rig.h"

static struct some_worker workers[2];
static struct idempotency *idempotency;
static struct arena_pool pool;
static struct arena arena;
static nsec_t now;
static struct state_key tenant; /* of who joins next */

struct caller {
	struct idempotency_call call;
	int decided;
	struct member *member; /* of a thread */
};

static inline void on_decided(struct idempotency_call *call)
{
	CONTAINER_OF(call, struct caller, call)->decided++;
}

static inline struct state_key key_of(const char *name)
{
	return state_key_of(STATE_IDEMPOTENCY, SLICE("acme"), SLICE("billing"), slice_of(NULL, 0),
			    slice_str(name));
}

static inline struct caller caller_of(const char *key, const char *body)
{
	struct caller c = { .call = { .key = key_of(key),
				      .tenant = tenant,
				      .large_max = IDEMPOTENCY_SMALL,
				      .arena = &arena,
				      .decided = on_decided } };

	sha256(slice_str(body), c.call.body);
	return c;
}

static inline enum idempotency_verdict join(struct caller *c, const char *key, const char *body,
					    int worker)
{
	*c = caller_of(key, body);
	idempotency_join(idempotency, &c->call, &workers[worker].inbox, now);
	return c->call.verdict;
}

static inline enum idempotency_verdict join_large(struct caller *c, const char *key,
						  uint32_t large_max)
{
	*c = caller_of(key, "body");
	c->call.large_max = large_max;
	idempotency_join(idempotency, &c->call, &workers[1].inbox, now);
	return c->call.verdict;
}

static inline void end(struct caller *c, enum err err, struct slice member)
{
	const struct idempotency_answer answer = { .err = err,
						   .member = member,
						   .retry_after_s = -1 };

	idempotency_end(&c->call, &answer, now);
}

static inline void turn(void)
{
	while (loop_turn(&workers[0].loop, false) + loop_turn(&workers[1].loop, false) != 0)
		;
}

static inline void assert_answered(const struct caller *c, enum err err, struct slice member)
{
	assert_int_equal(c->call.verdict, IDEMPOTENCY_ANSWERED);
	assert_int_equal(c->call.answer.err, err);
	assert_true(slice_eq(c->call.answer.member, member));
}

#define RESULT SLICE("\"result\":{\"x\":1}")
#define ERROR SLICE("\"error\":{\"code\":1}")

static inline int set_up(void **state)
{
	(void)state;
	some_worker_init(&workers[0]);
	some_worker_init(&workers[1]);
	idempotency = idempotency_new();
	arena_init(&arena, &pool, SIZE_MAX);
	now = 1000 * SEC;
	tenant = (struct state_key){ { 0 } };
	return idempotency == NULL;
}

static inline int tear_down(void **state)
{
	(void)state;
	arena_give(&arena);
	arena_pool_fini(&pool);
	idempotency_free(idempotency); /* where nobody may be left */
	return 0;
}

#define IN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
