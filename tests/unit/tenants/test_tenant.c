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
	struct tenants_duplicates twice;
	struct fixture f;

	(void)state;
	for (size_t c = 0; c < COUNT_OF(counts); c++) {
		fixture_init(&f, counts[c]);
		assert_true(tenants_init(&f.registry, &f.arena, &twice));
		assert_true(twice.tenant == SIZE_MAX && twice.key == SIZE_MAX &&
			    twice.alias == SIZE_MAX);
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
	struct tenants_duplicates twice;
	struct fixture f;

	(void)state;
	fixture_init(&f, 10);
	f.tenants[7].id = f.tenants[2].id;
	f.tenants[9].id = f.tenants[2].id;
	assert_true(tenants_init(&f.registry, &f.arena, &twice));
	assert_int_equal(twice.tenant, 7);
	assert_true(twice.key == SIZE_MAX);
	fixture_fini(&f);

	fixture_init(&f, 10);
	(void)memcpy(f.keys[6].digest, f.keys[5].digest, SHA256_BYTES);
	assert_true(tenants_init(&f.registry, &f.arena, &twice));
	assert_true(twice.tenant == SIZE_MAX);
	assert_int_equal(twice.key, 6);
	fixture_fini(&f);
}

/* Two aliases for each of the first `count` tenants: "alias-N" and "other-N". */
static void add_aliases(struct fixture *f, size_t count)
{
	struct tenant_alias *aliases = arena_zero(&f->arena, 2 * count * sizeof(*aliases));

	assert_non_null(aliases);
	for (size_t i = 0; i < 2 * count; i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "%s-%zu", i % 2 == 0 ? "alias" : "other", i / 2);
		f->tenants[i / 2].named = true;
		aliases[i] = (struct tenant_alias){ arena_copy(&f->arena, slice_str(name)),
						    &f->tenants[i / 2] };
	}
	f->registry.aliases = aliases;
	f->registry.alias_count = 2 * count;
}

static void a_tenant_is_found_by_its_aliases_or_else_by_its_id(void **state)
{
	struct tenants_duplicates twice;
	struct fixture f;

	(void)state;
	fixture_init(&f, 1000);
	add_aliases(&f, 500);
	assert_true(tenants_init(&f.registry, &f.arena, &twice));
	assert_true(twice.tenant == SIZE_MAX && twice.key == SIZE_MAX && twice.alias == SIZE_MAX);
	for (size_t i = 0; i < 1000; i++) {
		assert_ptr_equal(tenants_by_name(&f.registry, f.registry.aliases[i].name),
				 &f.tenants[i / 2]);
		assert_ptr_equal(tenants_by_name(&f.registry, f.tenants[i].id),
				 i < 500 ? NULL : &f.tenants[i]);
		assert_ptr_equal(tenants_by_id(&f.registry, f.tenants[i].id), &f.tenants[i]);
	}
	assert_null(tenants_by_name(&f.registry, SLICE("alias-500")));
	assert_null(tenants_by_name(&f.registry, SLICE("")));
	assert_null(tenants_by_id(&f.registry, SLICE("alias-1")));
	fixture_fini(&f);
}

static void a_name_that_is_there_twice_is_told_by_its_index(void **state)
{
	static const struct {
		const char *what, *name;
		size_t index; /* SIZE_MAX: nothing is wrong with it */
	} rows[] = {
		{ "another's alias", "alias-0", 5 },
		{ "the same tenant's", "alias-2", 5 },
		{ "the id of a tenant without aliases", "tenant-9", 5 },
		{ "the id of a tenant with aliases", "tenant-1", SIZE_MAX },
		{ "its own tenant's id", "tenant-2", SIZE_MAX },
	};
	struct tenants_duplicates twice;
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		fixture_init(&f, 10);
		add_aliases(&f, 3);
		((struct tenant_alias *)(uintptr_t)f.registry.aliases)[5].name =
			slice_str(rows[i].name);
		assert_true(tenants_init(&f.registry, &f.arena, &twice));
		if (twice.alias != rows[i].index)
			fail_msg("%s: %zu", rows[i].what, twice.alias);
		fixture_fini(&f);
	}
}

static void memory_that_runs_out_is_said(void **state)
{
	struct tenants_duplicates twice;
	struct fixture f;

	(void)state;
	for (size_t n = 1; n <= 3; n++) {
		fixture_init(&f, 1000); /* each table is larger than a chunk */
		add_aliases(&f, 500);
		f.pool.fail_next = n;
		assert_false(tenants_init(&f.registry, &f.arena, &twice));
		fixture_fini(&f);
	}
}

static void the_look_up_of_a_key_does_not_grow_with_the_tenants(void **state)
{
	struct tenants_duplicates twice;
	struct fixture f;

	(void)state;
	fixture_init(&f, 100000);
	assert_true(tenants_init(&f.registry, &f.arena, &twice));
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

static void servers_are_reached_by_globs_and_deny_wins(void **state)
{
	static const struct slice some[] = { SLICE_INIT("one"), SLICE_INIT("t*") };
	static const struct slice two[] = { SLICE_INIT("two"), SLICE_INIT("?") };
	const struct plan none = { .mcp_deny = two, .mcp_deny_count = 2 };
	const struct plan open = { .mcp_allow = some, .mcp_allow_count = 2 };
	const struct plan both = {
		.mcp_allow = some, .mcp_allow_count = 2, .mcp_deny = two, .mcp_deny_count = 2
	};

	(void)state;
	assert_false(plan_may_use_mcp(&none, SLICE("one")));
	assert_true(plan_may_use_mcp(&open, SLICE("one")));
	assert_true(plan_may_use_mcp(&open, SLICE("two")));
	assert_false(plan_may_use_mcp(&open, SLICE("ones")));
	assert_false(plan_may_use_mcp(&open, SLICE("One")));
	assert_true(plan_may_use_mcp(&both, SLICE("three")));
	assert_false(plan_may_use_mcp(&both, SLICE("two")));
	assert_false(plan_may_use_mcp(&both, SLICE("t")));
}

static void fronts_have_names_and_bits_of_their_own(void **state)
{
	(void)state;
	assert_int_equal(front_bit(SLICE("sampling")) | front_bit(SLICE("mcp")) |
				 front_bit(SLICE("direct")),
			 FRONTS_ALL);
	assert_int_equal(front_bit(SLICE("sampling")) + front_bit(SLICE("mcp")) +
				 front_bit(SLICE("direct")),
			 FRONTS_ALL);
	assert_int_equal(front_bit(SLICE("mcp")), FRONT_MCP);
	assert_int_equal(front_bit(SLICE("Mcp")), 0);
	assert_int_equal(front_bit(SLICE("")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tenant_is_found_by_its_id_and_nobody_else),
		cmocka_unit_test(a_duplicate_is_named_by_its_index),
		cmocka_unit_test(a_tenant_is_found_by_its_aliases_or_else_by_its_id),
		cmocka_unit_test(a_name_that_is_there_twice_is_told_by_its_index),
		cmocka_unit_test(memory_that_runs_out_is_said),
		cmocka_unit_test(the_look_up_of_a_key_does_not_grow_with_the_tenants),
		cmocka_unit_test(the_limit_key_is_the_front_of_the_digest_of_the_id),
		cmocka_unit_test(servers_are_reached_by_globs_and_deny_wins),
		cmocka_unit_test(fronts_have_names_and_bits_of_their_own),
	};

	return cmocka_run_group_tests_name("tenant", tests, NULL, NULL);
}
