/* Threads that make the same requests: however they meet, each of these is made once. ctest: worker */
#include "tests/unit/gateway/state/idempotency_rig.h"

#include <stdatomic.h>

enum { THREADS = 4, KEYS = 400, EACH = 5 /* copies of a key on each thread */ };

static _Atomic int led[KEYS], ended[KEYS], answered[KEYS];

struct member {
	struct some_worker worker;
	pthread_t thread;
	struct arena_pool pool;
	struct arena arena;
	struct caller callers[EACH];
	int key, decided;
	uint32_t chance;
};

/* Its caller leaves at times. */
static void lead(struct member *m, struct caller *c)
{
	m->chance = m->chance * 1664525 + 1013904223;
	atomic_fetch_add(&led[m->key], 1);
	if ((m->chance >> 16) % 3 == 0) {
		(void)idempotency_leave(&c->call);
		return;
	}
	const struct idempotency_answer answer = { .err = ERR_OK,
						   .member = RESULT,
						   .retry_after_s = -1 };
	atomic_fetch_add(&ended[m->key], 1);
	idempotency_end(&c->call, &answer, now);
}

static void take_verdict(struct member *m, struct caller *c)
{
	if (c->call.verdict == IDEMPOTENCY_LEADS)
		lead(m, c);
	else if (c->call.verdict == IDEMPOTENCY_ANSWERED && slice_eq(c->call.answer.member, RESULT))
		atomic_fetch_add(&answered[m->key], 1);
	else
		abort();
}

static void decided(struct idempotency_call *call)
{
	struct caller *c = CONTAINER_OF(call, struct caller, call);

	c->member->decided++;
	take_verdict(c->member, c);
}

static void *member_main(void *arg)
{
	struct member *m = arg;

	for (m->key = 0; m->key < KEYS; m->key++) {
		char name[32];
		int waiting = 0;
		m->decided = 0;
		(void)snprintf(name, sizeof(name), "%d", m->key);
		for (int i = 0; i < EACH; i++) {
			struct caller *c = &m->callers[i];
			*c = caller_of(name, "body");
			c->call.arena = &m->arena;
			c->call.decided = decided;
			c->member = m;
			idempotency_join(idempotency, &c->call, &m->worker.inbox, now);
			if (c->call.verdict != IDEMPOTENCY_WAITS)
				take_verdict(m, c);
			else
				waiting++;
		}
		while (m->decided < waiting)
			(void)loop_turn(&m->worker.loop, true);
		arena_give(&m->arena);
	}
	return NULL;
}

static void of_any_number_on_any_threads_one_ends(void **state)
{
	static struct member members[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		some_worker_init(&members[i].worker);
		arena_init(&members[i].arena, &members[i].pool, SIZE_MAX);
		members[i].chance = (uint32_t)i;
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&members[i].thread, NULL, member_main, &members[i]),
				 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(members[i].thread, NULL), 0);
		arena_pool_fini(&members[i].pool);
	}
	int leaders = 0;
	for (int k = 0; k < KEYS; k++) {
		assert_in_range(ended[k], 0, 1); /* 0: all of them have left */
		assert_int_equal(led[k] + answered[k], THREADS * EACH);
		leaders += led[k];
	}
	print_message("%d led, %d keys\n", leaders, KEYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN(of_any_number_on_any_threads_one_ends),
	};
	return cmocka_run_group_tests_name("idempotency_threads", tests, NULL, NULL);
}
