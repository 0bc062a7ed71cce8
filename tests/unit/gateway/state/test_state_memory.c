/* What this process keeps: who finds it, for how long, and what goes when there is no room. */
#include "gateway/state/state_memory.h"

#include "codec/base/must.h"
#include "gateway/state/state_chunks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TTL (600 * SEC) /* of blocks */

enum { SHARDS = 64 };

static struct state_memory *memory;
static struct state *store;
static struct arena_pool pool;
static struct arena arena;
static nsec_t now;
static const struct state_key acme = { { 65 } };

static void begin_with(const struct state_bounds *bounds)
{
	memory = state_memory_new(bounds);
	must(memory != NULL);
	store = state_memory_state(memory);
	now = 100 * SEC;
	arena_init(&arena, &pool, 64 << 20);
}

static int begin(void **state)
{
	(void)state;
	begin_with(&(struct state_bounds){ .sessions = 1000,
					   .calls = 1000,
					   .loops = 1000,
					   .blocks_bytes = 8 * STATE_CHUNK_BYTES,
					   .blocks_each = 4 * STATE_CHUNK_BYTES,
					   .blocks_ttl = TTL });
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

static struct state_key key_of(enum state_kind kind, const char *name)
{
	return state_key_of(kind, SLICE("acme"), SLICE("billing"), SLICE(""), slice_str(name));
}

/* ---- what a request does ---- */

static void session_begins(const char *name, uint32_t revision)
{
	struct state_save save = { .session = key_of(STATE_SESSION, name),
				   .change = STATE_BEGINS,
				   .revision = revision,
				   .now = now };

	assert_int_equal(store->save(store, &save), STATE_DONE);
	assert_false(save.away);
}

static struct state_load load_session(const char *name)
{
	struct state_load load = { .session = key_of(STATE_SESSION, name),
				   .arena = &arena,
				   .now = now };

	assert_int_equal(store->load(store, &load), STATE_DONE);
	assert_false(load.away);
	return load;
}

static bool session_known(const char *name)
{
	return load_session(name).session_is == STATE_SESSION_KNOWN;
}

static bool session_ends(const char *name)
{
	struct state_save save = { .session = key_of(STATE_SESSION, name),
				   .change = STATE_ENDS,
				   .now = now };

	assert_int_equal(store->save(store, &save), STATE_DONE);
	return save.ended;
}

/* An answer with that call. */
static void call_issued(const char *loop, const char *call, uint32_t rounds, uint64_t tokens)
{
	const struct state_key key = key_of(STATE_CALL, call);
	struct state_save save = { .loop = key_of(STATE_LOOP, loop),
				   .rounds = rounds,
				   .tokens = tokens,
				   .usd = 2 * tokens,
				   .calls = &key,
				   .call_count = 1,
				   .target = { { (uint8_t)rounds, 1 } },
				   .now = now };

	assert_int_equal(store->save(store, &save), STATE_DONE);
}

static struct state_loop loop_of(const char *const *calls, uint32_t count)
{
	struct state_key keys[8];
	struct state_load load = {
		.calls = keys, .call_count = count, .arena = &arena, .now = now
	};

	assert_true(count <= COUNT_OF(keys));
	for (uint32_t i = 0; i < count; i++)
		keys[i] = key_of(STATE_CALL, calls[i]);
	assert_int_equal(store->load(store, &load), STATE_DONE);
	return load.loop;
}

static struct state_loop loop_of_one(const char *call)
{
	return loop_of(&call, 1);
}

static bool blocks_keep(const char *call, struct slice blocks)
{
	const struct state_key key = key_of(STATE_CALL, call);
	struct state_save save = { .calls = &key, .call_count = 1, .blocks = blocks, .now = now };

	assert_int_equal(store->save(store, &save), STATE_DONE);
	return save.blocks_kept;
}

static struct slice blocks_of(const char *call)
{
	const struct state_key key = key_of(STATE_CALL, call);
	struct state_load load = { .blocks = &key, .block_count = 1, .arena = &arena, .now = now };

	assert_int_equal(store->load(store, &load), STATE_DONE);
	assert_non_null(load.found);
	return load.found[0];
}

static struct state_figures figures(void)
{
	struct state_figures found;

	state_memory_figures(memory, &found);
	return found;
}

/* ---- sessions ---- */

static void a_session_is_known_with_its_revision_until_it_ends(void **state)
{
	(void)state;
	assert_false(session_known("a"));
	session_begins("a", 3);
	session_begins("b", 4);
	const struct state_load load = load_session("a");
	assert_int_equal(load.session_is, STATE_SESSION_KNOWN);
	assert_int_equal(load.revision, 3);
	assert_true(session_ends("a"));
	assert_false(session_known("a"));
	assert_false(session_ends("a"));
	assert_true(session_known("b"));
}

static void a_session_that_is_used_lives_on_and_one_that_is_not_expires(void **state)
{
	(void)state;
	session_begins("used", 1);
	session_begins("idle", 1);
	now += STATE_SESSION_TTL - 1;
	assert_true(session_known("used"));
	now += 1;
	assert_false(session_known("idle"));
	assert_false(session_ends("idle"));
	assert_true(session_known("used"));
	now += STATE_SESSION_TTL;
	assert_false(session_known("used"));
}

static void what_a_session_uses_is_summed(void **state)
{
	const struct state_key key = key_of(STATE_SESSION, "a");
	struct state_save save = {
		.session = key, .requests = 1, .tokens = 20, .usd = 300, .now = now
	};
	struct state_load load = { .session = key, .now = now };

	(void)state;
	assert_int_equal(store->save(store, &save), STATE_DONE); /* nobody's: it is not made */
	assert_int_equal(store->load(store, &load), STATE_DONE);
	assert_int_equal(load.session_is, STATE_SESSION_UNKNOWN);
	session_begins("a", 1);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(store->save(store, &save), STATE_DONE);
	assert_int_equal(store->load(store, &load), STATE_DONE);
	assert_int_equal(load.used.requests, 3);
	assert_int_equal(load.used.tokens, 60);
	assert_int_equal(load.used.usd, 900);
	save.tokens = UINT64_MAX;
	assert_int_equal(store->save(store, &save), STATE_DONE);
	assert_int_equal(store->load(store, &load), STATE_DONE);
	assert_true(load.used.tokens == UINT64_MAX);
}

static void where_sessions_are_too_many_the_one_idle_for_longest_goes(void **state)
{
	enum { MANY = 20 * SHARDS };
	char name[16];
	uint32_t known = 0;

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "s%u", i);
		session_begins(name, 1);
		assert_true(session_known(name));
		session_begins("used all the time", 1);
	}
	assert_true(session_known("used all the time"));
	for (uint32_t i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "s%u", i);
		known += session_known(name);
	}
	const struct state_figures found = figures();
	assert_int_equal(found.records[STATE_OF_SESSION], known + 1);
	assert_int_equal(found.evicted[STATE_OF_SESSION], MANY - known);
	assert_true(known <= 1024 && known > 900); /* a 64th part of each shard is the bound */
}

static void what_has_expired_goes_while_its_shard_is_used(void **state)
{
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		(void)snprintf(name, sizeof(name), "s%u", i);
		session_begins(name, 1);
	}
	assert_int_equal(figures().records[STATE_OF_SESSION], 500);
	now += STATE_SESSION_TTL;
	for (uint32_t i = 0; i < 16 * SHARDS; i++) { /* all shards, several times */
		(void)snprintf(name, sizeof(name), "t%u", i);
		assert_false(session_known(name));
	}
	assert_int_equal(figures().records[STATE_OF_SESSION], 0);
	assert_int_equal(figures().evicted[STATE_OF_SESSION], 0);
}

/* DESIGN: at most 1 KB without blocks, its share of buckets and of a loop with ten calls included. */
static void a_session_takes_less_than_a_kilobyte(void **state)
{
	enum { SESSIONS = 1 << 16, CALLS = 10 };
	const struct state_bounds bounds = { .sessions = SESSIONS,
					     .calls = SESSIONS * CALLS,
					     .loops = SESSIONS };

	(void)end(state); /* of the one that begin made */
	begin_with(&bounds);
	assert_true(figures().tables_bytes / SESSIONS < 1024);
}

/* ---- for state_redis.c ---- */

static void a_session_that_ended_here_alone_is_not_known_until_the_mark_goes(void **state)
{
	const struct state_key key = key_of(STATE_SESSION, "a");

	(void)state;
	assert_int_equal(state_memory_here(memory, &key, now), STATE_HERE_NOTHING);
	state_memory_set_here(memory, &acme, &key, STATE_HERE_BEGUN,
			      now); /* not here: nothing to mark */
	assert_int_equal(state_memory_here(memory, &key, now), STATE_HERE_NOTHING);
	session_begins("a", 1);
	state_memory_set_here(memory, &acme, &key, STATE_HERE_BEGUN, now);
	assert_int_equal(state_memory_here(memory, &key, now), STATE_HERE_BEGUN);
	assert_true(session_known("a"));
	state_memory_set_here(memory, &acme, &key, STATE_HERE_ENDED, now);
	assert_int_equal(state_memory_here(memory, &key, now), STATE_HERE_ENDED);
	assert_false(session_known("a"));
	assert_false(session_ends("a"));
	state_memory_set_here(memory, &acme, &key, STATE_HERE_NOTHING, now);
	assert_int_equal(state_memory_here(memory, &key, now), STATE_HERE_NOTHING);
	assert_int_equal(figures().records[STATE_OF_SESSION], 0);
}

static void a_mark_expires_as_a_session_does(void **state)
{
	const struct state_key key = key_of(STATE_SESSION, "a");

	(void)state;
	state_memory_set_here(memory, &acme, &key, STATE_HERE_ENDED, now);
	now += STATE_SESSION_TTL - 1;
	assert_int_equal(state_memory_here(memory, &key, now), STATE_HERE_ENDED);
	now += 1;
	assert_int_equal(state_memory_here(memory, &key, now), STATE_HERE_NOTHING);
}

/* ---- loops ---- */

static void every_call_of_a_loop_leads_to_it(void **state)
{
	const struct state_key id = key_of(STATE_LOOP, "l");

	(void)state;
	call_issued("l", "c1", 0, 100);
	call_issued("l", "c2", 1, 50);
	const struct state_loop loop = loop_of_one("c2");
	assert_true(state_key_eq(&loop.id, &id));
	assert_int_equal(loop.known, 1);
	assert_int_equal(loop.rounds, 1);
	assert_int_equal(loop.tokens, 150);
	assert_int_equal(loop.usd, 300);
	assert_int_equal(loop_of_one("c1").rounds, 0); /* a fork from there */
	assert_int_equal(loop_of_one("c1").tokens, 150);
}

/* Whichever of its calls it is asked by; what is told of it without calls does not move it. */
static void a_loop_is_where_calls_were_issued_last(void **state)
{
	const struct state_save end = { .loop = key_of(STATE_LOOP, "l"), .target = { { 9 } } };

	(void)state;
	call_issued("l", "c1", 4, 1);
	assert_int_equal(loop_of_one("c1").target.at[0], 4);
	call_issued("l", "c2", 5, 1);
	assert_int_equal(loop_of_one("c1").target.at[0], 5);
	struct state_save save = end;
	save.now = now;
	assert_int_equal(store->save(store, &save), STATE_DONE);
	assert_int_equal(loop_of_one("c2").target.at[0], 5);
	const struct state_loop none = loop_of_one("forged");
	assert_true(state_target_none(&none.target));
}

static void calls_that_nobody_issued_are_told_apart(void **state)
{
	static const char *const calls[] = { "c1", "forged", "c2" };

	(void)state;
	call_issued("l", "c1", 2, 1);
	call_issued("l", "c2", 2, 1);
	assert_int_equal(loop_of(calls, 3).known, 2);
	const struct state_loop none = loop_of_one("forged");
	assert_true(state_key_none(&none.id));
	assert_int_equal(none.known, 0);
	assert_int_equal(none.rounds, 0);
}

static void of_several_loops_the_one_with_most_tokens_counts(void **state)
{
	static const char *const orders[][3] = {
		{ "small", "large", "middle" },
		{ "large", "middle", "small" },
		{ "middle", "small", "large" },
	};
	const struct state_key large = key_of(STATE_LOOP, "L");

	(void)state;
	call_issued("S", "small", 7, 10);
	call_issued("M", "middle", 3, 20);
	call_issued("L", "large", 2, 30);
	for (size_t i = 0; i < COUNT_OF(orders); i++) {
		const struct state_loop loop = loop_of(orders[i], 3);
		assert_true(state_key_eq(&loop.id, &large));
		assert_int_equal(loop.tokens, 30);
		assert_int_equal(loop.usd, 60);
		assert_int_equal(loop.known, 3);
		assert_int_equal(loop.target.at[0], 2);
		assert_int_equal(loop.rounds, 7); /* nobody gets out of rounds by adding a call */
	}
}

static void nothing_is_consumed_by_a_recall(void **state)
{
	(void)state;
	call_issued("l", "c1", 0, 100);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(loop_of_one("c1").tokens, 100);
	call_issued("l", "retried", 1, 10);
	call_issued("l", "forked", 1, 10);
	assert_int_equal(loop_of_one("c1").tokens, 120);
}

static void a_loop_expires_an_hour_after_its_last_answer(void **state)
{
	(void)state;
	call_issued("l", "c1", 0, 100);
	now += STATE_LOOP_TTL / 2;
	call_issued("l", "c2", 1, 100);
	now += STATE_LOOP_TTL / 2;
	assert_int_equal(loop_of_one("c1").known, 0);
	assert_int_equal(loop_of_one("c2").tokens, 200);
	now += STATE_LOOP_TTL / 2;
	assert_int_equal(loop_of_one("c2").known, 0);
}

static void calls_beyond_the_bound_are_passed_over(void **state)
{
	enum { MANY = STATE_CALLS_MAX + 3 };
	static struct state_key keys[MANY];
	struct state_save save = {
		.loop = key_of(STATE_LOOP, "l"), .calls = keys, .call_count = MANY, .now = now
	};
	struct state_load load = { .calls = keys, .call_count = MANY, .arena = &arena, .now = now };
	char name[16];

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "c%u", i);
		keys[i] = key_of(STATE_CALL, name);
	}
	assert_int_equal(store->save(store, &save), STATE_DONE);
	assert_int_equal(store->load(store, &load), STATE_DONE);
	assert_int_equal(load.loop.known, STATE_CALLS_MAX);
	assert_int_equal(figures().records[STATE_OF_CALL], STATE_CALLS_MAX);
}

/* ---- blocks ---- */

static char large[5 * STATE_CHUNK_BYTES];

static struct slice text_of(size_t len, char fill)
{
	(void)memset(large, fill, len);
	return slice_of(large, len);
}

static void blocks_come_back_as_they_were(void **state)
{
	(void)state;
	assert_true(slice_absent(blocks_of("c1")));
	assert_true(blocks_keep("c1", SLICE("[{\"type\":\"thinking\"}]")));
	assert_true(slice_eq(blocks_of("c1"), SLICE("[{\"type\":\"thinking\"}]")));
	assert_true(slice_absent(blocks_of("c2")));
	assert_true(blocks_keep("c1", SLICE("another"))); /* a retry with the same ids */
	assert_true(slice_eq(blocks_of("c1"), SLICE("another")));
	assert_int_equal(figures().records[STATE_OF_BLOCKS], 1);
	assert_int_equal(figures().blocks_bytes, STATE_CHUNK_BYTES);
	assert_true(blocks_keep("empty", SLICE("")));
	assert_true(slice_eq(blocks_of("empty"), SLICE("")));
	assert_false(slice_absent(blocks_of("empty")));
}

static void no_blocks_are_not_kept(void **state)
{
	(void)state;
	assert_false(blocks_keep("c1", (struct slice){ NULL, 0 }));
	assert_int_equal(figures().records[STATE_OF_BLOCKS], 0);
}

static void what_is_too_large_is_not_kept_and_harms_nobody(void **state)
{
	(void)state;
	assert_true(blocks_keep("small", SLICE("s")));
	assert_false(blocks_keep("large", text_of(4 * STATE_CHUNK_BYTES + 1, 'x')));
	assert_true(slice_absent(blocks_of("large")));
	assert_true(blocks_keep("just", text_of(4 * STATE_CHUNK_BYTES, 'x')));
	assert_true(slice_eq(blocks_of("small"), SLICE("s")));
	assert_int_equal(figures().evicted[STATE_OF_BLOCKS], 0);
}

static void for_want_of_room_the_oldest_blocks_go(void **state)
{
	static const char *const names[] = { "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7" };

	(void)state;
	for (size_t i = 0; i < COUNT_OF(names); i++, now += SEC)
		assert_true(blocks_keep(names[i], SLICE("x")));
	assert_int_equal(figures().blocks_bytes, 8 * STATE_CHUNK_BYTES);
	assert_false(slice_absent(blocks_of("b0"))); /* used: the newest now */
	now += SEC;
	assert_true(blocks_keep("new", text_of(2 * STATE_CHUNK_BYTES, 'n')));
	assert_true(slice_absent(blocks_of("b1")));
	assert_true(slice_absent(blocks_of("b2")));
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (i != 1 && i != 2)
			assert_false(slice_absent(blocks_of(names[i])));
	assert_int_equal(figures().evicted[STATE_OF_BLOCKS], 2);
	assert_int_equal(figures().blocks_bytes, 8 * STATE_CHUNK_BYTES);
}

static void blocks_expire_after_their_last_use(void **state)
{
	(void)state;
	assert_true(blocks_keep("used", SLICE("u")));
	assert_true(blocks_keep("idle", SLICE("i")));
	now += TTL - 1;
	assert_false(slice_absent(blocks_of("used")));
	now += 1;
	assert_true(slice_absent(blocks_of("idle")));
	assert_false(slice_absent(blocks_of("used")));
	assert_int_equal(figures().evicted[STATE_OF_BLOCKS], 0);
}

static void blocks_that_are_dropped_are_gone(void **state)
{
	const struct state_key tenant = { { 1 } };
	const struct state_key keys[] = { key_of(STATE_CALL, "c1"), key_of(STATE_CALL, "c3") };

	(void)state;
	assert_true(blocks_keep("c1", SLICE("1")));
	assert_true(blocks_keep("c2", SLICE("2")));
	store->drop_blocks(store, tenant, keys, COUNT_OF(keys));
	assert_true(slice_absent(blocks_of("c1")));
	assert_true(slice_eq(blocks_of("c2"), SLICE("2")));
	assert_int_equal(figures().blocks_bytes, STATE_CHUNK_BYTES);
}

static void a_store_without_room_for_blocks_keeps_the_rest(void **state)
{
	(void)end(state);
	begin_with(&(struct state_bounds){
		.sessions = 1, .calls = 1, .loops = 1, .blocks_each = 1024 });
	assert_false(blocks_keep("c1", SLICE("x")));
	call_issued("l", "c1", 0, 5);
	assert_int_equal(loop_of_one("c1").tokens, 5);
}

static void where_the_arena_has_no_room_blocks_are_absent(void **state)
{
	(void)state;
	assert_true(blocks_keep("c1", text_of(3 * STATE_CHUNK_BYTES, 'x')));
	arena_give(&arena);
	arena_init(&arena, &pool, 2 * STATE_CHUNK_BYTES);
	assert_true(slice_absent(blocks_of("c1")));
	arena_give(&arena);
	arena_init(&arena, &pool, 64 << 20);
	assert_int_equal(blocks_of("c1").len, 3 * STATE_CHUNK_BYTES);
}

static void an_answer_holds_so_many_bytes_of_blocks(void **state)
{
	enum { EACH = 1 << 20, KEPT = 18 };
	struct state_key keys[KEPT];
	struct state_load load = {
		.blocks = keys, .block_count = KEPT, .arena = &arena, .now = now
	};
	static char text[EACH];
	char name[16];
	uint32_t found = 0;

	(void)end(state);
	begin_with(&(struct state_bounds){ .sessions = 1,
					   .calls = 1000,
					   .loops = 1,
					   .blocks_bytes = 64 << 20,
					   .blocks_each = EACH,
					   .blocks_ttl = TTL });
	for (uint32_t i = 0; i < KEPT; i++) {
		(void)snprintf(name, sizeof(name), "c%u", i);
		keys[i] = key_of(STATE_CALL, name);
		assert_true(blocks_keep(name, slice_of(text, EACH)));
	}
	assert_int_equal(store->load(store, &load), STATE_DONE);
	for (uint32_t i = 0; i < KEPT; i++)
		found += !slice_absent(load.found[i]);
	assert_int_equal(found, STATE_FOUND_MAX / EACH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
		TEST(a_session_is_known_with_its_revision_until_it_ends),
		TEST(a_session_that_is_used_lives_on_and_one_that_is_not_expires),
		TEST(what_a_session_uses_is_summed),
		TEST(where_sessions_are_too_many_the_one_idle_for_longest_goes),
		TEST(what_has_expired_goes_while_its_shard_is_used),
		TEST(a_session_takes_less_than_a_kilobyte),
		TEST(a_session_that_ended_here_alone_is_not_known_until_the_mark_goes),
		TEST(a_mark_expires_as_a_session_does),
		TEST(every_call_of_a_loop_leads_to_it),
		TEST(a_loop_is_where_calls_were_issued_last),
		TEST(calls_that_nobody_issued_are_told_apart),
		TEST(of_several_loops_the_one_with_most_tokens_counts),
		TEST(nothing_is_consumed_by_a_recall),
		TEST(a_loop_expires_an_hour_after_its_last_answer),
		TEST(calls_beyond_the_bound_are_passed_over),
		TEST(blocks_come_back_as_they_were),
		TEST(no_blocks_are_not_kept),
		TEST(what_is_too_large_is_not_kept_and_harms_nobody),
		TEST(for_want_of_room_the_oldest_blocks_go),
		TEST(blocks_expire_after_their_last_use),
		TEST(blocks_that_are_dropped_are_gone),
		TEST(a_store_without_room_for_blocks_keeps_the_rest),
		TEST(where_the_arena_has_no_room_blocks_are_absent),
		TEST(an_answer_holds_so_many_bytes_of_blocks),
#undef TEST
	};
	return cmocka_run_group_tests_name("state_memory", tests, NULL, NULL);
}
