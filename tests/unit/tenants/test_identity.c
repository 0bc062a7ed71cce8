#include "tenants/identity.h"

#include "codec/base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void names_lead_to_one_tenant_or_to_nobody(void **state)
{
	static const struct {
		const char *what;
		const char *names[4];
		const char *tenant, *server; /* NULL: nobody */
	} rows[] = {
		{ "no name", { NULL }, NULL, NULL },
		{ "an alias", { "spiffe://mesh/acme/a" }, "acme", "spiffe://mesh/acme/a" },
		{ "the other alias", { "spiffe://mesh/acme/b" }, "acme", "spiffe://mesh/acme/b" },
		{ "an id without aliases", { "plain" }, "plain", "plain" },
		{ "an id with aliases", { "acme" }, NULL, NULL },
		{ "nobody's", { "spiffe://mesh/nobody" }, NULL, NULL },
		{ "case counts", { "Plain" }, NULL, NULL },
		{ "two of one tenant",
		  { "spiffe://mesh/acme/b", "spiffe://mesh/acme/a" },
		  "acme",
		  "spiffe://mesh/acme/b" },
		{ "nobody's around it", { "x", "plain", "y" }, "plain", "plain" },
		{ "two tenants", { "plain", "spiffe://mesh/acme/a" }, NULL, NULL },
		{ "two tenants and the first again",
		  { "plain", "spiffe://mesh/acme/a", "plain" },
		  NULL,
		  NULL },
	};
	struct tenant tenants[] = {
		{ .magic = TENANT_MAGIC, .id = SLICE_INIT("acme"), .named = true },
		{ .magic = TENANT_MAGIC, .id = SLICE_INIT("plain"), .disabled = true },
	};
	const struct tenant_alias aliases[] = {
		{ SLICE_INIT("spiffe://mesh/acme/a"), &tenants[0] },
		{ SLICE_INIT("spiffe://mesh/acme/b"), &tenants[0] },
	};
	struct tenants registry = {
		.tenants = tenants, .count = 2, .aliases = aliases, .alias_count = 2
	};
	struct tenants_duplicates twice;
	struct arena_pool pool = { 0 };
	struct arena arena;

	(void)state;
	arena_init(&arena, &pool, 1 << 20);
	assert_true(tenants_init(&registry, &arena, &twice));
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct identity identity = { 0 };
		for (size_t n = 0; rows[i].names[n] != NULL; n++)
			identity_add(&identity, &registry, slice_str(rows[i].names[n]));
		const struct tenant *found = identity_tenant(&identity);
		if ((found == NULL) != (rows[i].tenant == NULL))
			fail_msg("%s: %s", rows[i].what, found == NULL ? "nobody" : found->id.at);
		if (found == NULL)
			continue;
		assert_true(slice_eq(found->id, slice_str(rows[i].tenant)));
		assert_true(slice_eq(identity.server, slice_str(rows[i].server)));
	}
	arena_give(&arena);
	arena_pool_fini(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_lead_to_one_tenant_or_to_nobody),
	};

	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
