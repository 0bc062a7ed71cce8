#include "tenants/tenant.h"

#include "codec/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
	struct arena_pool pool;
	struct arena arena;
	struct tenant *tenants;
	struct tenant_key *keys;
	struct tenants registry;
};

/* `count` tenants "tenant-N" with one key each, whose digest is that of the id. */
static void fixture_init(struct fixture *f, size_t count)
{
	*f = (struct fixture){ 0 };
	arena_init(&f->arena, &f->pool, 64 << 20);
	f->tenants = arena_zero(&f->arena, (count + 1) * sizeof(*f->tenants));
	f->keys = arena_zero(&f->arena, (count + 1) * sizeof(*f->keys));
	assert_true(f->tenants != NULL && f->keys != NULL);
	for (size_t i = 0; i < count; i++) {
		char id[32];
		(void)snprintf(id, sizeof(id), "tenant-%zu", i);
		f->tenants[i] = (struct tenant){ .magic = TENANT_MAGIC,
						 .id = arena_copy(&f->arena, slice_str(id)) };
		tenant_name(&f->tenants[i], f->tenants[i].id);
		sha256(f->tenants[i].id, f->keys[i].digest);
		f->keys[i].tenant = &f->tenants[i];
	}
	f->registry = (struct tenants){
		.tenants = f->tenants, .count = count, .keys = f->keys, .key_count = count
	};
}

static void fixture_fini(struct fixture *f)
{
	arena_give(&f->arena);
	arena_pool_fini(&f->pool);
}

static void every_tenant_is_found_by_its_id_and_nobody_else(void **state)
{
	static const size_t counts[] = { 0, 1, 2, 3, 100, 10000 };
	size_t tenant = 0, key = 0;
	struct fixture f;

	(void)state;
	for (size_t c = 0; c < COUNT_OF(counts); c++) {
		fixture_init(&f, counts[c]);
		assert_true(tenants_init(&f.registry, &f.arena, &tenant, &key));
		assert_true(tenant == SIZE_MAX && key == SIZE_MAX);
		for (size_t i = 0; i < counts[c]; i++)
			assert_ptr_equal(tenants_by_id(&f.registry, f.tenants[i].id),
					 &f.tenants[i]);
		assert_null(tenants_by_id(&f.registry, SLICE("tenant-10000")));
		assert_null(tenants_by_id(&f.registry, SLICE("TENANT-0")));
		assert_null(tenants_by_id(&f.registry, SLICE("")));
		fixture_fini(&f);
	}
}

static void a_duplicate_is_named_by_its_index(void **state)
{
	size_t tenant = 0, key = 0;
	struct fixture f;

	(void)state;
	fixture_init(&f, 10);
	f.tenants[7].id = f.tenants[2].id;
	f.tenants[9].id = f.tenants[2].id;
	assert_true(tenants_init(&f.registry, &f.arena, &tenant, &key));
	assert_int_equal(tenant, 7);
	assert_true(key == SIZE_MAX);
	fixture_fini(&f);

	fixture_init(&f, 10);
	(void)memcpy(f.keys[6].digest, f.keys[5].digest, SHA256_BYTES);
	assert_true(tenants_init(&f.registry, &f.arena, &tenant, &key));
	assert_true(tenant == SIZE_MAX);
	assert_int_equal(key, 6);
	fixture_fini(&f);
}

static void memory_that_runs_out_is_said(void **state)
{
	size_t tenant = 0, key = 0;
	struct fixture f;

	(void)state;
	for (size_t n = 1; n <= 2; n++) {
		fixture_init(&f, 1000); /* each table is larger than a chunk */
		f.pool.fail_next = n;
		assert_false(tenants_init(&f.registry, &f.arena, &tenant, &key));
		fixture_fini(&f);
	}
}

static void the_look_up_of_a_key_does_not_grow_with_the_tenants(void **state)
{
	size_t tenant = 0, key = 0;
	struct fixture f;

	(void)state;
	fixture_init(&f, 100000);
	assert_true(tenants_init(&f.registry, &f.arena, &tenant, &key));
	assert_in_range(f.registry.digest_probes, 1, 24);
	fixture_fini(&f);
}

/* The slot survives reloads and restarts, so its name must never change: SHA-256("tenant\0acme"). */
static void the_limit_key_is_the_front_of_the_digest_of_the_id(void **state)
{
	static const uint8_t acme[16] = { 0xd2, 0xe7, 0x95, 0x29, 0xba, 0x2c, 0x46, 0xb2,
					  0xb8, 0x49, 0x65, 0x11, 0x58, 0x5b, 0x5e, 0xd5 };
	struct tenant one = { 0 }, other = { 0 };
	static char text[5000];

	(void)state;
	tenant_name(&one, SLICE("acme"));
	assert_memory_equal(one.limit_key, acme, sizeof(acme));
	tenant_name(&one, SLICE(""));
	tenant_name(&other, SLICE("tenant"));
	assert_memory_not_equal(one.limit_key, other.limit_key, sizeof(one.limit_key));
	/* Ids of any length have a name of their own. */
	for (size_t len = 490; len < 530; len++) {
		(void)memset(text, 'x', sizeof(text));
		tenant_name(&one, slice_of(text, len));
		tenant_name(&other, slice_of(text, len + 1));
		assert_memory_not_equal(one.limit_key, other.limit_key, sizeof(one.limit_key));
		text[len - 1] = 'y';
		tenant_name(&other, slice_of(text, len));
		assert_memory_not_equal(one.limit_key, other.limit_key, sizeof(one.limit_key));
	}
	tenant_name(&one, slice_of(text, sizeof(text)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tenant_is_found_by_its_id_and_nobody_else),
		cmocka_unit_test(a_duplicate_is_named_by_its_index),
		cmocka_unit_test(memory_that_runs_out_is_said),
		cmocka_unit_test(the_look_up_of_a_key_does_not_grow_with_the_tenants),
		cmocka_unit_test(the_limit_key_is_the_front_of_the_digest_of_the_id),
	};

	return cmocka_run_group_tests_name("tenant", tests, NULL, NULL);
}
