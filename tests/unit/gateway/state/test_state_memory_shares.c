/* Two tenants, one of which leaves more behind than there is room for: what the other left stays. */
#include "gateway/state/state_memory.h"

#include "codec/base/must.h"
#include "gateway/state/state_chunks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { FEW = 200, MANY = 16000, CALLS = 10 };

static const struct state_key honest = { { 1 } }, hog = { { 2 } };
static struct state_memory *memory;
static struct state *store;
static struct arena_pool pool;
static struct arena arena;
static nsec_t now;

/* Room for so many records of each kind, and 2,048 chunks of blocks. */
static void begin_with(uint32_t records)
{
	memory = state_memory_new(&(struct state_bounds){ .sessions = records,
							  .calls = records,
							  .loops = records,
							  .blocks_bytes = 2 << 20,
							  .blocks_each = 64 << 10,
							  .blocks_ttl = 600 * SEC });
	must(memory != NULL);
	store = state_memory_state(memory);
	now = 100 * SEC;
	arena_init(&arena, &pool, 64 << 20);
}

static int begin(void **state)
{
	(void)state;
	begin_with(1 << 12);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_give(&arena);
	arena_pool_fini(&pool);
	state_memory_free(memory);
	return 0;
}

static struct state_key key_of(enum state_kind kind, const struct state_key *tenant, uint32_t n)
{
	char name[16];
	const int len = snprintf(name, sizeof(name), "%u", n);

	return state_key_of(kind, slice_of((const char *)tenant->at, 1), SLICE("s"), SLICE(""),
			    slice_of(name, (size_t)len));
}

/* ---- what the n-th request of a tenant leaves, and whether that is there ---------------------- */

static void leave_session(const struct state_key *tenant, uint32_t n)
{
	struct state_save save = { .tenant = *tenant,
				   .session = key_of(STATE_SESSION, tenant, n),
				   .change = STATE_BEGINS,
				   .now = ++now };

	assert_int_equal(store->save(store, &save), STATE_DONE);
}

static bool has_session(const struct state_key *tenant, uint32_t n)
{
	struct state_load load = { .session = key_of(STATE_SESSION, tenant, n), .now = now };

	assert_int_equal(store->load(store, &load), STATE_DONE);
	return load.session_is == STATE_SESSION_KNOWN;
}

static void leave_calls(const struct state_key *tenant, uint32_t n, struct slice blocks)
{
	struct state_key calls[CALLS];
	struct state_save save = { .tenant = *tenant,
				   .loop = key_of(STATE_LOOP, tenant, n),
				   .tokens = 7,
				   .calls = calls,
				   .call_count = CALLS,
				   .blocks = blocks,
				   .now = ++now };

	for (uint32_t i = 0; i < CALLS; i++)
		calls[i] = key_of(STATE_CALL, tenant, CALLS * n + i);
	assert_int_equal(store->save(store, &save), STATE_DONE);
}

static void leave_loop(const struct state_key *tenant, uint32_t n)
{
	leave_calls(tenant, n, slice_of(NULL, 0));
}

/* Every call of it is known, and leads to what it has used. */
static bool has_loop(const struct state_key *tenant, uint32_t n)
{
	struct state_key calls[CALLS];
	struct state_load load = { .calls = calls, .call_count = CALLS, .now = now };

	for (uint32_t i = 0; i < CALLS; i++)
		calls[i] = key_of(STATE_CALL, tenant, CALLS * n + i);
	assert_int_equal(store->load(store, &load), STATE_DONE);
	return load.loop.known == CALLS && load.loop.tokens == 7;
}

/* Of some chunks, by turns. */
static void leave_blocks(const struct state_key *tenant, uint32_t n)
{
	static char text[8 * STATE_CHUNK_BYTES];

	leave_calls(tenant, n, slice_of(text, 1 + n % 8 * STATE_CHUNK_BYTES));
}

static bool has_blocks(const struct state_key *tenant, uint32_t n)
{
	const struct state_key first = key_of(STATE_CALL, tenant, CALLS * n);
	struct state_load load = {
		.blocks = &first, .block_count = 1, .arena = &arena, .now = now
	};

	arena_give(&arena);
	arena_init(&arena, &pool, 64 << 20);
	assert_int_equal(store->load(store, &load), STATE_DONE);
	return !slice_absent(load.found[0]);
}

static const struct kind {
	const char *name;
	enum state_record record;
	void (*leave)(const struct state_key *tenant, uint32_t n);
	bool (*has)(const struct state_key *tenant, uint32_t n);
	uint32_t few, each; /* that a tenant leaves which is alone, or one of ten */
} kinds[] = {
	{ "sessions", STATE_OF_SESSION, leave_session, has_session, FEW, 2000 },
	{ "calls", STATE_OF_CALL, leave_loop, has_loop, FEW / 2, 200 },
	{ "loops", STATE_OF_LOOP, leave_loop, has_loop, FEW / 2, 200 },
	{ "blocks", STATE_OF_BLOCKS, leave_blocks, has_blocks, FEW / 2, 25 },
};

static uint64_t evicted(const struct kind *kind)
{
	struct state_figures figures;

	state_memory_figures(memory, &figures);
	return figures.evicted[kind->record];
}

static uint32_t left(const struct kind *kind, const struct state_key *tenant, uint32_t count)
{
	uint32_t there = 0;

	for (uint32_t n = 0; n < count; n++)
		there += kind->has(tenant, n);
	return there;
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void who_leaves_without_end_drives_out_its_own(void **state)
{
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		const struct kind *kind = &kinds[i];
		print_message("%s\n", kind->name);
		(void)end(state);
		(void)begin(state);
		for (uint32_t n = 0; n < kind->few; n++)
			kind->leave(&honest, n);
		for (uint32_t n = 0; n < MANY; n++)
			kind->leave(&hog, n);
		assert_true(evicted(kind) > MANY / 2);
		assert_int_equal(left(kind, &honest, kind->few), kind->few);
		assert_true(kind->has(&hog, MANY - 1));
		assert_false(kind->has(&hog, 0));
	}
}

/* And has not touched what is older for long. */
static void who_comes_late_finds_room(void **state)
{
	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		const struct kind *kind = &kinds[i];
		print_message("%s\n", kind->name);
		(void)end(state);
		(void)begin(state);
		for (uint32_t n = 0; n < MANY; n++)
			kind->leave(&hog, n);
		for (uint32_t n = 0; n < kind->few; n++) {
			kind->leave(&honest, n);
			kind->leave(&hog, MANY + n);
		}
		assert_int_equal(left(kind, &honest, kind->few), kind->few);
	}
}

/* Of ten others, that have most together and none of which has as much as the hog. */
static void one_that_has_less_than_half_drives_out_its_own_too(void **state)
{
	enum { OTHERS = 10, FIRST = 100 };

	for (size_t i = 0; i < COUNT_OF(kinds); i++) {
		const struct kind *kind = &kinds[i];
		print_message("%s\n", kind->name);
		(void)end(state);
		begin_with(1 << 15); /* of shards in which ten are spread evenly enough */
		for (uint8_t who = 0; who < OTHERS; who++)
			for (uint32_t n = 0; n < kind->each; n++)
				kind->leave(&(struct state_key){ { FIRST + who } }, n);
		for (uint32_t n = 0; n < MANY; n++)
			kind->leave(&hog, n);
		for (uint8_t who = 0; who < OTHERS; who++)
			assert_int_equal(
				left(kind, &(struct state_key){ { FIRST + who } }, kind->each),
				kind->each);
	}
}

static void what_has_expired_goes_before_anybody_s(void **state)
{
	const struct kind *blocks = &kinds[3];

	(void)state;
	for (uint32_t n = 0; n < FEW; n++)
		blocks->leave(&honest, n);
	now += 700 * SEC;
	for (uint32_t n = 0; n < FEW; n++)
		blocks->leave(&hog, n);
	assert_int_equal(evicted(blocks), 0);
	assert_int_equal(left(blocks, &hog, FEW), FEW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(who_leaves_without_end_drives_out_its_own),
		TEST(who_comes_late_finds_room),
		TEST(one_that_has_less_than_half_drives_out_its_own_too),
		TEST(what_has_expired_goes_before_anybody_s),
#undef TEST
	};
	return cmocka_run_group_tests_name("state_memory_shares", tests, NULL, NULL);
}
