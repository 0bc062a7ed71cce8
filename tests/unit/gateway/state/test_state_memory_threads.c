/* Many requests on several threads over one store: nothing is lost, nothing is mixed.
 * ctest: worker */
#include "gateway/state/state_memory.h"

#include "codec/base/must.h"
#include "gateway/state/state_chunks.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include <cmocka.h>

enum { THREADS = 4, STEPS = 4000, LOOPS = 8, NAMES = 64, ROOM = 40 };

struct scene {
	struct state_memory *memory;
	struct state *store;
	pthread_barrier_t together;
	_Atomic uint64_t kept, found, wrong;
};

struct thread {
	pthread_t id;
	struct scene *scene;
	void (*body)(struct scene *scene, unsigned thread);
	unsigned number;
};

static void *thread_main(void *argument)
{
	struct thread *thread = argument;

	(void)pthread_barrier_wait(&thread->scene->together);
	thread->body(thread->scene, thread->number);
	return NULL;
}

/* Runs `body` on all threads, which begin at once. */
static void scene_run(struct scene *scene, void (*body)(struct scene *scene, unsigned thread))
{
	struct thread threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){ .scene = scene, .body = body, .number = i };
		assert_int_equal(pthread_create(&threads[i].id, NULL, thread_main, &threads[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i].id, NULL), 0);
}

static void scene_init(struct scene *scene)
{
	const struct state_bounds bounds = { .sessions = 1000,
					     .calls = 4 * THREADS * STEPS,
					     .loops = 1000,
					     .blocks_bytes = ROOM * STATE_CHUNK_BYTES,
					     .blocks_each = 4 * STATE_CHUNK_BYTES,
					     .blocks_ttl = 3600 * SEC };

	*scene = (struct scene){ .memory = state_memory_new(&bounds) };
	assert_non_null(scene->memory);
	scene->store = state_memory_state(scene->memory);
	assert_int_equal(pthread_barrier_init(&scene->together, NULL, THREADS), 0);
}

static void scene_fini(struct scene *scene)
{
	assert_int_equal(pthread_barrier_destroy(&scene->together), 0);
	state_memory_free(scene->memory);
}

static struct state_key key_of(enum state_kind kind, uint32_t n)
{
	return state_key_of(kind, SLICE("acme"), SLICE(""), SLICE(""),
			    slice_of((const char *)&n, sizeof(n)));
}

/* ---- loops and sessions ---- */

static void spend(struct scene *scene, unsigned thread)
{
	const struct state_key session = key_of(STATE_SESSION, 1);

	for (uint32_t step = 0; step < STEPS; step++) {
		const struct state_key call = key_of(STATE_CALL, step * THREADS + thread);
		struct state_save save = { .session = session,
					   .change = STATE_BEGINS, /* it may: nothing is lost */
					   .requests = 1,
					   .tokens = 2,
					   .usd = 3,
					   .loop = key_of(STATE_LOOP, step % LOOPS),
					   .rounds = step,
					   .calls = &call,
					   .call_count = 1,
					   .now = SEC };
		struct state_load load = {
			.session = session, .calls = &call, .call_count = 1, .now = SEC
		};
		(void)scene->store->save(scene->store, &save);
		(void)scene->store->load(scene->store, &load);
		if (load.loop.rounds != step || load.session_is != STATE_SESSION_KNOWN)
			atomic_fetch_add(&scene->wrong, 1);
	}
}

static void what_forks_spend_at_once_is_added_up(void **state)
{
	const struct state_key session = key_of(STATE_SESSION, 1);
	struct state_load sum = { .session = session, .now = SEC };
	struct scene scene;

	(void)state;
	scene_init(&scene);
	scene_run(&scene, spend);
	assert_int_equal(atomic_load(&scene.wrong), 0);
	(void)scene.store->load(scene.store, &sum);
	assert_int_equal(sum.used.requests, THREADS * STEPS);
	assert_int_equal(sum.used.tokens, 2 * THREADS * STEPS);
	assert_int_equal(sum.used.usd, 3 * THREADS * STEPS);
	for (uint32_t loop = 0; loop < LOOPS; loop++) {
		const struct state_key call = key_of(STATE_CALL, (STEPS - LOOPS + loop) * THREADS);
		struct state_load load = { .calls = &call, .call_count = 1, .now = SEC };
		(void)scene.store->load(scene.store, &load);
		assert_int_equal(load.loop.tokens, 2 * THREADS * STEPS / LOOPS);
	}
	scene_fini(&scene);
}

/* ---- blocks ---- */

/* Of a name, so that they can be told from another's: as long as it says, and full of it. */
static struct slice blocks_of(uint32_t name, char *room)
{
	const size_t len = 1 + name * 61 % (3 * STATE_CHUNK_BYTES);

	(void)memset(room, (int)('0' + name), len);
	return slice_of(room, len);
}

/* The store has room for a part of what is kept. */
static void keep_and_look(struct scene *scene, unsigned thread)
{
	char room[3 * STATE_CHUNK_BYTES + 1];
	struct arena_pool pool = { .keep_max = 16 };
	struct arena arena;

	for (uint32_t step = 0; step < STEPS; step++) {
		const uint32_t name = (step * 31 + thread * 17) % NAMES;
		const struct state_key key = key_of(STATE_CALL, name);
		struct state_save save = { .calls = &key,
					   .call_count = 1,
					   .blocks = blocks_of(name, room),
					   .now = SEC + step };
		arena_init(&arena, &pool, 1 << 20);
		struct state_load load = {
			.blocks = &key, .block_count = 1, .arena = &arena, .now = SEC + step
		};
		(void)scene->store->load(scene->store, &load);
		must(load.found != NULL);
		if (!slice_absent(load.found[0])) {
			atomic_fetch_add(&scene->found, 1);
			if (!slice_eq(load.found[0], save.blocks))
				atomic_fetch_add(&scene->wrong, 1);
		}
		(void)scene->store->save(scene->store, &save);
		atomic_fetch_add(&scene->kept, save.blocks_kept);
		if (step % 7 == 0)
			scene->store->drop_blocks(scene->store, key, &key, 1);
		arena_give(&arena);
	}
	arena_pool_fini(&pool);
}

static void blocks_are_whole_or_not_there_while_others_push_them_out(void **state)
{
	struct state_figures figures;
	struct scene scene;

	(void)state;
	scene_init(&scene);
	scene_run(&scene, keep_and_look);
	assert_int_equal(atomic_load(&scene.wrong), 0);
	assert_true(atomic_load(&scene.kept) > THREADS * STEPS / 2);
	assert_true(atomic_load(&scene.found) > 0);
	state_memory_figures(scene.memory, &figures);
	assert_true(figures.evicted[STATE_OF_BLOCKS] > 0);
	assert_true(figures.blocks_bytes <= ROOM * STATE_CHUNK_BYTES);
	for (uint32_t name = 0; name < NAMES; name++) {
		const struct state_key key = key_of(STATE_CALL, name);
		scene.store->drop_blocks(scene.store, key, &key, 1);
	}
	state_memory_figures(scene.memory, &figures);
	assert_int_equal(figures.blocks_bytes, 0); /* none got lost */
	scene_fini(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_forks_spend_at_once_is_added_up),
		cmocka_unit_test(blocks_are_whole_or_not_there_while_others_push_them_out),
	};
	return cmocka_run_group_tests_name("state_memory_threads", tests, NULL, NULL);
}
