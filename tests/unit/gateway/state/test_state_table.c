/* Records by key, in the order of their last use, against a list that is searched. */
#include "gateway/state/state_table.h"

#include "codec/base/must.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct number {
	struct state_item head;
	uint64_t value;
};

enum { OWNERS = 3 };

static struct state_table table;
static void *memory;

static void begin(uint32_t most)
{
	memory = calloc(1, state_table_bytes(sizeof(struct number), most));
	must(memory != NULL);
	state_table_init(&table, memory, sizeof(struct number), most);
}

static int end(void **state)
{
	(void)state;
	free(memory);
	memory = NULL;
	return 0;
}

static struct state_key key_of(uint32_t n)
{
	struct state_key key = { { 0 } };

	(void)memcpy(key.at, &n, sizeof(n));
	n *= 2654435761U; /* the bytes that buckets go by */
	(void)memcpy(key.at + STATE_KEY_BYTES - sizeof(n), &n, sizeof(n));
	return key;
}

/* Whose number it is. */
static struct state_key owner_of(uint32_t n)
{
	return (struct state_key){ { (uint8_t)(n % OWNERS) } };
}

static struct number *add(uint32_t n, nsec_t due)
{
	const struct state_key key = key_of(n), owner = owner_of(n);
	struct number *item = state_table_add(&table, &key, &owner, due);

	item->value = n;
	return item;
}

static struct number *find(uint32_t n)
{
	const struct state_key key = key_of(n);

	return state_table_find(&table, &key);
}

static void what_was_added_is_found_and_nothing_else(void **state)
{
	(void)state;
	begin(3);
	add(1, 10);
	add(2, 20);
	assert_int_equal(find(1)->value, 1);
	assert_int_equal(find(2)->value, 2);
	assert_true(find(2)->head.due == 20);
	assert_null(find(3));
	state_table_remove(&table, find(1));
	assert_null(find(1));
	assert_int_equal(find(2)->value, 2);
}

static void the_oldest_is_the_one_not_used_for_longest(void **state)
{
	static const uint32_t order[] = { 2, 3, 1 };

	(void)state;
	begin(3);
	assert_null(state_table_oldest(&table));
	for (uint32_t n = 1; n <= 3; n++)
		add(n, n);
	assert_true(state_table_full(&table));
	state_table_touch(&table, find(1), 4);
	for (size_t i = 0; i < COUNT_OF(order); i++) {
		struct number *oldest = state_table_oldest(&table);
		assert_int_equal(oldest->value, order[i]);
		state_table_remove(&table, oldest);
	}
	assert_null(state_table_oldest(&table));
	assert_int_equal(table.count, 0);
}

static void a_place_that_is_used_again_holds_nothing_of_before(void **state)
{
	(void)state;
	begin(1);
	add(1, 10);
	state_table_remove(&table, find(1));
	const struct state_key key = key_of(2);
	const struct state_key owner = owner_of(2);
	const struct number *item = state_table_add(&table, &key, &owner, 20);
	assert_int_equal(item->value, 0);
	assert_null(find(1));
}

static void the_owner_with_most_makes_room_by_its_oldest(void **state)
{
	static const uint32_t numbers[] = {
		0, 1, 4, 2, 7, 10, 3
	}; /* of owner 0: two, 1: four, 2: one */
	const struct state_key few = owner_of(2), many = owner_of(1), nobody = { { 77 } };

	(void)state;
	begin(COUNT_OF(numbers));
	for (uint32_t i = 0; i < COUNT_OF(numbers); i++)
		add(numbers[i], i);
	state_table_touch(&table, find(1), 10);
	assert_ptr_equal(state_table_victim(&table, &few), find(4));
	assert_ptr_equal(state_table_victim(&table, &many), find(4));
	assert_ptr_equal(state_table_victim(&table, &nobody), find(4));
	assert_ptr_equal(state_table_oldest(&table), find(0));
	assert_ptr_equal(state_table_oldest_of(&table, &few), find(2));
	assert_null(state_table_oldest_of(&table, &nobody));
	state_table_remove(&table, find(2));
	assert_null(state_table_oldest_of(&table, &few));
}

static void a_table_of_one_bucket_finds_all(void **state)
{
	(void)state;
	begin(64);
	table.bucket_mask = 0;
	for (uint32_t n = 0; n < 64; n++)
		add(n, n);
	for (uint32_t n = 0; n < 64; n += 2)
		state_table_remove(&table, find(n));
	for (uint32_t n = 0; n < 64; n++)
		assert_true((find(n) != NULL) == (n % 2 == 1));
}

/* ---- against a model ---- */

enum { NAMES = 48, ROOM = 32, STEPS = 20000 };

/* The names that are there, from the oldest to the newest. */
struct model {
	uint32_t names[ROOM];
	uint32_t count;
};

static bool model_take(struct model *model, uint32_t name)
{
	uint32_t at = 0;

	while (at < model->count && model->names[at] != name)
		at++;
	if (at == model->count)
		return false;
	(void)memmove(&model->names[at], &model->names[at + 1],
		      (model->count - at - 1) * sizeof(model->names[0]));
	model->count--;
	return true;
}

/* The first of them that is the owner's, and how many are. */
static uint32_t model_oldest(const struct model *model, uint32_t owner, uint32_t *count)
{
	uint32_t oldest = UINT32_MAX;

	*count = 0;
	for (uint32_t i = model->count; i-- > 0;)
		if (model->names[i] % OWNERS == owner) {
			oldest = model->names[i];
			++*count;
		}
	return oldest;
}

static void expect_same_owners(const struct model *model)
{
	uint32_t counts[OWNERS], oldest[OWNERS], most = 0;

	for (uint32_t owner = 0; owner < OWNERS; owner++) {
		const struct state_key key = owner_of(owner);
		oldest[owner] = model_oldest(model, owner, &counts[owner]);
		most = counts[owner] > most ? counts[owner] : most;
		const struct number *item = state_table_oldest_of(&table, &key);
		assert_true(item == NULL ? counts[owner] == 0 : item->value == oldest[owner]);
	}
	for (uint32_t owner = 0; owner < OWNERS && model->count == ROOM; owner++) {
		const struct state_key key = owner_of(owner);
		const struct number *victim = state_table_victim(&table, &key);
		assert_int_equal(victim->value, oldest[victim->value % OWNERS]);
		assert_int_equal(counts[victim->value % OWNERS], most);
		if (counts[owner] == most)
			assert_int_equal(victim->value % OWNERS, owner);
	}
}

static void expect_same(const struct model *model)
{
	const uint32_t first = model->count == 0 ? UINT32_MAX : model->names[0];
	const struct number *oldest = state_table_oldest(&table);

	assert_int_equal(table.count, model->count);
	assert_true(oldest == NULL ? model->count == 0 : oldest->value == first);
	for (uint32_t i = 0; i < model->count; i++)
		assert_int_equal(find(model->names[i])->value, model->names[i]);
}

static void any_row_of_steps_leaves_what_a_list_has(void **state)
{
	struct model model = { .count = 0 };
	uint64_t chance = 88172645463325252U;

	(void)state;
	begin(ROOM);
	for (uint32_t step = 0; step < STEPS; step++) {
		chance ^= chance << 13;
		chance ^= chance >> 7;
		chance ^= chance << 17;
		const uint32_t name = (uint32_t)(chance % NAMES);
		const bool there = model_take(&model, name);
		assert_true((find(name) != NULL) == there);
		if (there && chance >> 32 & 1) {
			state_table_remove(&table, find(name));
		} else if (there) {
			state_table_touch(&table, find(name), step);
			model.names[model.count++] = name;
		} else if (model.count < ROOM) {
			add(name, step);
			model.names[model.count++] = name;
		}
		expect_same(&model);
		expect_same_owners(&model);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(what_was_added_is_found_and_nothing_else, end),
		cmocka_unit_test_teardown(the_oldest_is_the_one_not_used_for_longest, end),
		cmocka_unit_test_teardown(a_place_that_is_used_again_holds_nothing_of_before, end),
		cmocka_unit_test_teardown(the_owner_with_most_makes_room_by_its_oldest, end),
		cmocka_unit_test_teardown(a_table_of_one_bucket_finds_all, end),
		cmocka_unit_test_teardown(any_row_of_steps_leaves_what_a_list_has, end),
	};
	return cmocka_run_group_tests_name("state_table", tests, NULL, NULL);
}
