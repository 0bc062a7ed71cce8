/* Records that are found by their keys, also where several have the same key, or the same bucket. */
#include "gateway/state/key_shard.h"

#include "codec/base/attr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { BUCKETS = 4, RECORDS = 200 };

struct record {
	struct state_key key;
	struct key_link link;
};

static struct key_link *buckets[BUCKETS];
static struct key_shard shard;
static struct record records[RECORDS];

static int set_up(void **state)
{
	(void)state;
	key_shard_init(&shard, buckets, BUCKETS);
	return 0;
}

/* There must be nothing left. */
static int tear_down(void **state)
{
	(void)state;
	key_shard_fini(&shard);
	return 0;
}

static struct record *add(uint32_t i, uint32_t of)
{
	records[i].key = (struct state_key){ { 0, (uint8_t)(of >> 8), (uint8_t)of, 7 } };
	key_shard_add(&shard, &records[i].link, &records[i].key);
	return &records[i];
}

static struct record *find(const struct state_key *key)
{
	struct key_link *link = key_shard_find(&shard, key);

	return link == NULL ? NULL : CONTAINER_OF(link, struct record, link);
}

static void a_record_is_found_by_its_key_until_it_is_removed(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < RECORDS; i++)
		(void)add(i, i);
	for (uint32_t i = 0; i < RECORDS; i++)
		assert_ptr_equal(find(&records[i].key), &records[i]);
	for (uint32_t i = 0; i < RECORDS; i += 3)
		key_shard_remove(&records[i].link);
	for (uint32_t i = 0; i < RECORDS; i++)
		assert_ptr_equal(find(&records[i].key), i % 3 == 0 ? NULL : &records[i]);
	for (uint32_t i = 0; i < RECORDS; i++)
		if (i % 3 != 0)
			key_shard_remove(&records[i].link);
}

static void all_records_of_a_key_are_found_and_no_others_of_its_bucket(void **state)
{
	struct record *const same[] = { add(0, 4), add(1, 8), add(2, 4), add(3, 12), add(4, 4) };
	uint32_t found = 0;

	(void)state;
	for (struct key_link *at = key_shard_find(&shard, &same[0]->key); at != NULL;
	     at = key_link_next(at)) {
		assert_true(state_key_eq(at->key, &same[0]->key));
		found++;
	}
	assert_int_equal(found, 3);
	for (size_t i = 0; i < COUNT_OF(same); i++)
		key_shard_remove(&same[i]->link);
	assert_null(find(&same[0]->key));
}

static void the_first_byte_of_a_key_names_its_shard(void **state)
{
	(void)state;
	for (uint32_t i = 0; i <= UINT8_MAX; i++) {
		const struct state_key key = { { (uint8_t)i, 1 } };
		assert_int_equal(key_shard_number(&key), i % KEY_SHARDS);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_record_is_found_by_its_key_until_it_is_removed),
		TEST(all_records_of_a_key_are_found_and_no_others_of_its_bucket),
		TEST(the_first_byte_of_a_key_names_its_shard),
	};

	return cmocka_run_group_tests_name("key_shard", tests, NULL, NULL);
}
