#include "codec/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void everything_comes_back_and_a_warm_pool_asks_libc_for_nothing(void **state)
{
	struct arena_pool pool = { .keep_max = 8 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 64 * 1024);
	for (int i = 0; i < 100; i++)
		assert_non_null(arena_take(&arena, 200));
	assert_true(pool.out >= 5);
	arena_give(&arena);
	assert_int_equal(pool.out, 0);
	size_t mallocs = pool.mallocs;
	for (int i = 0; i < 100; i++)
		assert_non_null(arena_take(&arena, 200));
	assert_int_equal(pool.mallocs, mallocs);
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void memory_is_aligned_and_pieces_do_not_overlap(void **state)
{
	struct arena_pool pool = { 0 };
	struct arena arena;
	char *pieces[300];

	(void)state;
	arena_init(&arena, &pool, 1024 * 1024);
	for (size_t i = 0; i < 300; i++) {
		pieces[i] = arena_take(&arena, i + 1);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 8, 0);
		(void)memset(pieces[i], (int)(i & 0xff), i + 1);
	}
	for (size_t i = 0; i < 300; i++)
		for (size_t at = 0; at <= i; at++)
			assert_int_equal((unsigned char)pieces[i][at], i & 0xff);
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void the_cap_refuses_and_smaller_things_still_fit(void **state)
{
	struct arena_pool pool = { 0 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1000);
	assert_non_null(arena_take(&arena, 900));
	assert_null(arena_take(&arena, 101));
	assert_null(arena_take(&arena, SIZE_MAX));
	assert_non_null(arena_take(&arena, 90));
	arena_give(&arena);
	assert_non_null(arena_take(&arena, 1000)); /* the cap counts anew */
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void large_objects_are_kept_up_to_a_size_and_within_the_same_bound(void **state)
{
	struct arena_pool pool = { .keep_max = 1 + 2 + 16 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 10 * 1024 * 1024);
	for (int round = 0; round < 3; round++) {
		char *small = arena_take(&arena, 16);
		char *two = arena_take(&arena, ARENA_CHUNK_BYTES);
		char *sixteen = arena_take(&arena, 12 * ARENA_CHUNK_BYTES);
		char *over = arena_take(&arena, ARENA_KEEP_BYTES);
		assert_true(small != NULL && two != NULL && sixteen != NULL && over != NULL);
		(void)memset(two, 1, ARENA_CHUNK_BYTES);
		(void)memset(sixteen, 2, 12 * ARENA_CHUNK_BYTES);
		(void)memset(over, 3, ARENA_KEEP_BYTES);
		assert_int_equal(two[ARENA_CHUNK_BYTES - 1], 1);
		arena_give(&arena);
		assert_int_equal(pool.free_count, pool.keep_max);
	}
	assert_int_equal(pool.mallocs, 3 + 3); /* what is over the size comes anew every time */
	assert_non_null(arena_take(&arena, 12 * ARENA_CHUNK_BYTES));
	assert_non_null(arena_take(&arena, 12 * ARENA_CHUNK_BYTES));
	arena_give(&arena);
	assert_int_equal(pool.free_count, pool.keep_max);
	arena_pool_fini(&pool);
}

static void a_pool_of_smaller_chunks_takes_and_keeps_less(void **state)
{
	struct arena_pool pool = { .chunk_bytes = 256, .keep_max = 1 + 4 };
	struct arena arena;

	(void)state;
	for (int round = 0; round < 2; round++) {
		arena_init(&arena, &pool, 64 * 1024);
		char *small = arena_take(&arena, 100);
		assert_true(arena_at_hand(&arena) < 256);
		char *four = arena_take(&arena, 900);
		char *last = arena_take(&arena, 64);
		assert_non_null(small);
		assert_non_null(four);
		assert_non_null(last);
		(void)memset(small, 1, 100);
		(void)memset(four, 2, 900);
		(void)memset(last, 3, 64);
		assert_int_equal(small[99], 1);
		assert_int_equal(four[899], 2);
		assert_int_equal(pool.out, 2);
		arena_give(&arena);
		assert_int_equal(pool.free_count, pool.keep_max);
		assert_int_equal(pool.mallocs, 2);
	}
	arena_pool_fini(&pool);
}

static void the_largest_objects_are_not_kept(void **state)
{
	struct arena_pool pool = { .keep_max = 4 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 10 * 1024 * 1024);
	char *small = arena_take(&arena, 16);
	char *large = arena_take(&arena, 1024 * 1024);
	char *next = arena_take(&arena, 16);
	assert_non_null(small);
	assert_non_null(large);
	(void)memset(large, 1, 1024 * 1024);
	assert_ptr_equal(next, small + 16 + POISON_FENCE); /* the chunk in use stays in use */
	arena_give(&arena);
	assert_int_equal(pool.free_count, 1);
	arena_pool_fini(&pool);
}

static void zero_and_copy_do_what_they_say(void **state)
{
	struct arena_pool pool = { .keep_max = 1 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 4096);
	(void)memset(arena_take(&arena, 64), 0xff, 64);
	arena_give(&arena);
	const unsigned char *bytes = arena_zero(&arena, 64);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(bytes[i], 0);
	struct slice copy = arena_copy(&arena, SLICE("text"));
	assert_string_equal(copy.at, "text");
	assert_int_equal(copy.len, 4);
	assert_string_equal(arena_copy(&arena, slice_str(NULL)).at, "");
	assert_true(slice_absent(arena_copy(&arena, slice_of(copy.at, 1 << 20))));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void a_failing_take_gives_null_and_loses_nothing(void **state)
{
	struct arena_pool pool = { .fail_next = 2 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1024 * 1024);
	assert_non_null(arena_take(&arena, 4000));
	assert_null(arena_take(&arena, 4000));
	assert_non_null(arena_take(&arena, 4000));
	assert_int_equal(pool.out, 2);
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void a_room_is_used_first_and_stays_its_owners(void **state)
{
	struct arena_pool pool = { .keep_max = 1 };
	struct arena arena;
	_Alignas(8) char room[64];

	(void)state;
	(void)memset(room, 7, sizeof(room));
	arena_init_in(&arena, &pool, 1024, room, sizeof(room));
	assert_ptr_equal(arena_take(&arena, 40), room);
	char *more = arena_take(&arena, 32); /* does not fit any more */
	assert_non_null(more);
	assert_true(more < room || more >= room + sizeof(room));
	assert_int_equal(pool.out, 1);
	assert_null(arena_take(&arena, 1024)); /* the room counts */
	arena_give(&arena);
	assert_int_equal(pool.out, 0);
	for (size_t i = 0; i < sizeof(room); i++)
		assert_int_equal(room[i], 7);
	more = arena_take(&arena, 8); /* no room any more */
	assert_true(more != NULL && (more < room || more >= room + sizeof(room)));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

static void the_end_of_what_was_taken_last_goes_back(void **state)
{
	struct arena_pool pool = { .keep_max = 1 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1024);
	char *first = arena_take(&arena, 100), *last = arena_take(&arena, 101);
	arena_give_end(&arena, first + 8, first + 100); /* not the last */
	assert_int_equal(arena.used, 104 + 104);
	arena_give_end(&arena, last + 9, last + 101);
	assert_int_equal(arena.used, 104 + 16);
	assert_ptr_equal(arena_take(&arena, 904), last + 16 + POISON_FENCE);
	assert_null(arena_take(&arena, 1));
	arena_give(&arena);
	arena_pool_fini(&pool);
}

#ifdef POISON_IS_SEEN
static void what_is_not_of_an_object_is_poison(void **state)
{
	struct arena_pool pool = { .keep_max = 2 };
	struct arena arena;

	(void)state;
	for (int warm = 0; warm < 2; warm++) {
		arena_init(&arena, &pool, 8192);
		char *first = arena_take(&arena, 13), *large = arena_take(&arena, 5000),
		     *next = arena_take(&arena, 8);
		assert_null(__asan_region_is_poisoned(first, 13));
		assert_null(__asan_region_is_poisoned(large, 5000));
		assert_null(__asan_region_is_poisoned(next, 8));
		assert_true(__asan_address_is_poisoned(first + 13));
		assert_true(__asan_address_is_poisoned(next - 1));
		assert_true(__asan_address_is_poisoned(next + 8));
		assert_true(__asan_address_is_poisoned(large + 5000));
		arena_give(&arena);
		assert_true(__asan_address_is_poisoned(first)); /* though it is kept */
	}
	arena_pool_fini(&pool);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back_and_a_warm_pool_asks_libc_for_nothing),
		cmocka_unit_test(memory_is_aligned_and_pieces_do_not_overlap),
		cmocka_unit_test(the_cap_refuses_and_smaller_things_still_fit),
		cmocka_unit_test(large_objects_are_kept_up_to_a_size_and_within_the_same_bound),
		cmocka_unit_test(a_pool_of_smaller_chunks_takes_and_keeps_less),
		cmocka_unit_test(the_largest_objects_are_not_kept),
		cmocka_unit_test(a_room_is_used_first_and_stays_its_owners),
		cmocka_unit_test(the_end_of_what_was_taken_last_goes_back),
		cmocka_unit_test(zero_and_copy_do_what_they_say),
		cmocka_unit_test(a_failing_take_gives_null_and_loses_nothing),
#ifdef POISON_IS_SEEN
		cmocka_unit_test(what_is_not_of_an_object_is_poison),
#endif
	};
	return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
